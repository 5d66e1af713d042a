"""Recorded results as tidy tables: a row for each number, a column for each level."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .job import write_atomically
from .repository import Repository
from .results import read_results

__all__ = ["FIELDS", "LEVEL", "resource", "rows", "table", "write_tables"]

LEVEL = "level_{}"
FIELDS = {
    "result": ("string", "Name under which the chapter recorded the result."),
    LEVEL: (
        "string",
        "Where in the result the value stands, from the outside in: a key, or the "
        "position in a list, counted from 0; empty where there is no such level.",
    ),
    "value": ("number", "The value, if it is a number."),
    "text": (
        "string",
        "The value, if it is text, or true or false; empty beside no number: nothing "
        "was to be computed.",
    ),
}


def rows(value: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield of nested dictionaries and lists each value with the path to it.

    Examples
    --------
    >>> from simlib.press.tables import rows
    >>> list(rows({"errors": {"sicur": [0.25, 0.5]}, "n": 9}))
    [(('errors', 'sicur', '0'), 0.25), (('errors', 'sicur', '1'), 0.5), (('n',), 9)]
    """
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from rows(part, *path, str(key))
    else:
        yield path, value


def table(values: dict[str, Any]) -> list[list[Any]]:
    """Return the recorded values of a chapter as lines of a table, the header first.

    Parameters
    ----------
    values : dict
        Name of a result -> numbers, text, truth values and None, in dictionaries and
        lists.

    Returns
    -------
    list of lists
        Of equal lengths; `FIELDS` describes the columns.

    Examples
    --------
    >>> from simlib.press.tables import table
    >>> for line in table({"errors": {"sicur": [0.25]}, "mesh": "bunny"}):
    ...     print(line)
    ['result', 'level_1', 'level_2', 'value', 'text']
    ['errors', 'sicur', '0', 0.25, '']
    ['mesh', '', '', '', 'bunny']
    """
    found = [*rows(values)]
    depth = max((len(path) for path, _ in found), default=1)
    levels = [LEVEL.format(k) for k in range(1, depth)]
    lines: list[list[Any]] = [["result", *levels, "value", "text"]]
    for path, value in found:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        text = value if isinstance(value, str) else json.dumps(value)
        cells = [value, ""] if number else ["", "" if value is None else text]
        lines.append([*path, *[""] * (depth - len(path)), *cells])
    return lines


def resource(
    chapter: str, results: dict[str, Any], header: list[str]
) -> dict[str, Any]:
    """Return the entry of a chapter's table in the Data Package that describes all.

    Parameters
    ----------
    chapter : str
        Name of the chapter.
    results : dict
        Content of its file in ``book/results/``.
    header : list of str
        The columns of its table.
    """
    described = {LEVEL.format(k): FIELDS[LEVEL] for k in range(1, len(header) - 2)}
    described |= {name: told for name, told in FIELDS.items() if name != LEVEL}
    made = results["provenance"]
    return {
        "profile": "tabular-data-resource",
        "name": chapter,
        "path": f"{chapter}.csv",
        "encoding": "utf-8",
        "description": f"Recorded by book/{chapter}.md",
        "provenance": {
            key: made[key]
            for key in ("commit", "executed", "seconds", "parameters", "machine")
            if key in made
        },
        "schema": {
            "fields": [
                {"name": name, "type": described[name][0], "title": described[name][1]}
                for name in header
            ]
        },
    }


def write_tables(repository: Repository, folder: Path) -> list[str]:
    """Write the recorded results of all chapters as CSV, and what describes them.

    The description is ``datapackage.json``, of the `Tabular Data Package
    <https://specs.frictionlessdata.io/tabular-data-package/>`__.

    Parameters
    ----------
    repository : Repository
        The book.
    folder : Path
        Where the files go.

    Returns
    -------
    list of str
        The chapters that have recorded something, in the order of the book.
    """
    resources = []
    for chapter in repository.pages():
        results = read_results(repository.book, chapter)
        if not results:
            continue
        lines = table(results["values"])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        write_atomically(folder / f"{chapter}.csv", text.getvalue())
        resources.append(resource(chapter, results, lines[0]))
    package = {
        "profile": "tabular-data-package",
        "name": f"{repository.package}-results",
        "resources": resources,
    }
    content = json.dumps(package, indent=1, ensure_ascii=False) + "\n"
    write_atomically(folder / "datapackage.json", content)
    return [entry["name"] for entry in resources]
