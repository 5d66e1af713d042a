"""Numbers that outlive a build: recorded results and the papers' own figures.

A record is a folder ``book/results/<chapter>/``. Each table is a CSV file with one row
for an observation; ``values.json`` holds what is no table, ``provenance.json`` how all
came about, ``probe.json`` the same values from a short run of the same code, and
``confirmation.json`` what became of that short run after the code had changed.
"""

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .code import content_hash
from .repository import Repository, read_yaml, write_atomically

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from pandas import DataFrame

MIME = "application/vnd.simlib.record+json"

# What a chapter recorded: name -> {"value": ...} or {"table": [[column, type, values],
# ...]}, with "volatile" and "rtol" as given.
Entries = dict[str, dict[str, Any]]

_KINDS = {"int", "float", "bool", "str"}  # of columns


class PaperFigure(NamedTuple):
    """A number printed in a paper, and where."""

    value: Any
    source: str
    table: str
    page: int | None = None


def record(
    name: str,
    value: Any,
    *,
    volatile: bool | tuple[str | int, ...] = (),
    rtol: float | None = None,
) -> None:
    """Mark a table, or a value, of a chapter for ``press --profile full --record``.

    Parameters
    ----------
    name : str
        Unique in the chapter, by more than capitals: letters, digits, ``_`` and ``-``.
    value : DataFrame or object
        A table with one row for an observation and named columns of numbers, truth
        values or text; or a number, string, list, dictionary or NumPy array, finite.
    volatile : bool or tuple of str and int
        What is not compared when a record is confirmed, as times and rates: these
        columns, what stands under these keys or at these places of the innermost lists;
        or all.
    rtol : float, optional
        The relative deviation up to which a value is confirmed, 1e-6 by default.

    Raises
    ------
    ValueError, TypeError
        What neither JSON nor a CSV file holds, or what is volatile and not there.

    Examples
    --------
    >>> from press import record
    >>> record("error", 0.25)  # doctest: +SKIP
    """
    from IPython.display import display

    if not re.fullmatch(r"[\w-]+", name):
        raise ValueError(f"{name!r} is no name: use letters, digits, _ and -")
    entry: dict[str, Any] = {"name": name}
    if hasattr(value, "columns") and hasattr(value, "dtypes"):
        entry["table"] = _columns(name, value)
        known = {column for column, _, _ in entry["table"]}
    else:
        text = json.dumps(value, default=_plain, allow_nan=False)
        entry["value"] = json.loads(text, object_pairs_hook=_distinct)
        known = {key for path, _ in leaves(entry["value"]) for key in path}
    marks = set() if isinstance(volatile, bool) else {*map(str, volatile)}
    if marks - known:
        told = ", ".join(sorted(marks - known))
        raise ValueError(f"{name!r} has no {told} to be volatile")
    if volatile:
        entry["volatile"] = volatile if isinstance(volatile, bool) else [*volatile]
    if rtol is not None:
        entry["rtol"] = rtol
    display({MIME: entry}, raw=True)


def recorded(chapter: str, name: str | None = None) -> Any:
    """Return a recorded table or value of a chapter, or None; without a name, all.

    Where papermill runs a chapter with given parameters there is nothing without a
    name: the chapter then shows its own results.

    Examples
    --------
    >>> from press import recorded
    >>> sorted(recorded("queries"))[:2]
    ['links', 'orders']
    """
    if name is None and _has_own_parameters():
        return {}
    values = read_results(Repository.here().book, chapter).get("values", {})
    return values if name is None else values.get(name)


def _has_own_parameters() -> bool:
    """Tell whether this is a run of papermill, not of the press, with parameters."""
    if "IPython" not in sys.modules or "PRESS_LOG" in os.environ:
        return False
    shell = sys.modules["IPython"].get_ipython()
    ran = shell.user_ns["In"] if shell else ()
    return any(cell.startswith("# Parameters\n") for cell in ran)


def provenance(chapter: str) -> dict[str, Any]:
    """Return how the results of a chapter came about; empty if there are none yet.

    Examples
    --------
    >>> from press import provenance
    >>> sorted(provenance("nystrom"))[:3]
    ['code', 'commit', 'data']
    """
    return read_results(Repository.here().book, chapter).get("provenance", {})


def paper(key: str) -> PaperFigure:
    """Return a figure of a paper from ``book/papers.yml``.

    Examples
    --------
    >>> from press import paper
    >>> figure = paper("items_stsb")
    >>> figure.value, figure.table
    (3000, 'Table 4')
    """
    return read_paper(Repository.here().book, key)


def expect(condition: Any, says: str) -> None:
    """Check a conclusion of a chapter.

    The profiles of the book hold to it: under the press it is an assertion. Whoever
    executes a chapter with parameters of his own is told on the page, and goes on. What
    `says` is a sentence.
    """
    if condition:
        return
    if "PRESS_LOG" in os.environ:
        raise AssertionError(f"this did not come out: {says}")
    from IPython.display import Markdown, display

    display(Markdown(f"> **With these parameters this did not come out:** {says}"))


def read_results(book: Path, chapter: str) -> dict[str, Any]:
    """Return the values and the provenance of a record; empty if there is none."""
    folder = book / "results" / chapter
    made = read_part(folder, "provenance.json")
    if not made:
        return {}
    values = {
        name: _read_table(folder / f"{name}.csv", types)
        for name, types in made.get("tables", {}).items()
    }
    return {"values": values | read_part(folder, "values.json"), "provenance": made}


def read_part(folder: Path, name: str, needs: Iterable[str] = ()) -> dict[str, Any]:
    """Return one of the JSON files of a record; empty if there is none."""
    path = folder / name
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it holds no dictionary")
        if missing := [key for key in needs if key not in content]:
            raise ValueError(f"it has no {', '.join(missing)}")
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(
            f"{path} is no part of a record: {error}. Put one back that was committed, "
            "or delete it, commit, and record again: "
            f"press {folder.name} --profile full --record"
        ) from None
    return content


def write_part(folder: Path, name: str, content: dict[str, Any]) -> Path:
    """Write one of the JSON files of a record."""
    path = folder / name
    write_atomically(path, _lines(content, 2) + "\n")
    return path


def _lines(content: Any, levels: int) -> str:
    """Return JSON with a line for each entry down to a level."""
    if not (levels and content and isinstance(content, dict)):
        return json.dumps(content, ensure_ascii=False)
    names = (json.dumps(key, ensure_ascii=False) for key in content)
    parts = (_lines(value, levels - 1) for value in content.values())
    entries = ",\n".join(map(": ".join, zip(names, parts, strict=True)))
    return f"{{\n{entries}\n}}"


def write_results(folder: Path, entries: Entries, made: dict[str, Any]) -> None:
    """Write the tables and values of a record, and how they came about."""
    import pandas as pd

    files: dict[str, str] = {}
    types: dict[str, dict[str, str]] = {}
    for name, table in ((n, e["table"]) for n, e in entries.items() if "table" in e):
        frame = pd.DataFrame({c: pd.Series(v, dtype=object) for c, _, v in table})
        files[f"{name}.csv"] = frame.to_csv(index=False, lineterminator="\n")
        types[name] = {column: kind for column, kind, _ in table}
    if values := {name: e["value"] for name, e in entries.items() if "value" in e}:
        files["values.json"] = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
    for name, text in files.items():
        write_atomically(folder / name, text)
    digests = {name: content_hash(text.encode()) for name, text in files.items()}
    made = {**made, "tables": types, "digests": digests}
    write_part(folder, "provenance.json", made)
    for path in [*folder.glob("*.csv"), folder / "values.json"]:
        if path.name not in files:
            path.unlink(missing_ok=True)


def edited(folder: Path, made: dict[str, Any]) -> list[str]:
    """Return the tables and values of a record that are not as they were written."""
    return [
        name
        for name, digest in made.get("digests", {}).items()
        for path in [folder / name]
        if not path.exists() or content_hash(path.read_bytes()) != digest
    ]


def collect(notebook: "NotebookNode") -> Entries:
    """Return what an executed notebook recorded."""
    entries: Entries = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            entry = dict(output.get("data", {}).get(MIME, {}))
            name = entry.pop("name", "")
            if name.lower() in map(str.lower, entries):
                raise ValueError(f"{name!r} is recorded twice: rename one")
            entries |= {name: entry} if entry else {}
    return entries


def leaves(value: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield of nested dictionaries and lists each value with the path to it."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from leaves(part, *path, str(key))
    else:
        yield path, value


def _columns(name: str, frame: "DataFrame") -> list[list[Any]]:
    """Return name, type and plain values of each column, None where one is missing."""
    if frame.index.nlevels > 1 or [*frame.index] != [*range(len(frame))]:
        raise ValueError(f"{name!r} has an index of its own: record its reset_index()")
    if {*map(type, frame.columns)} != {str} or frame.columns.has_duplicates:
        raise ValueError(f"{name!r} wants columns, each with a text of its own as name")
    columns = []
    for column in frame.columns:
        cells = zip(frame[column].tolist(), frame[column].isna(), strict=True)
        values = [None if missing else value for value, missing in cells]
        found = [value for value in values if value is not None]
        kinds = {type(value).__name__ for value in found} or {"float"}
        if (len(kinds) > 1 and kinds != {"int", "float"}) or not kinds <= _KINDS:
            told = ", ".join(sorted(kinds))
            raise TypeError(f"{name!r} has {told} in {column!r}: one type a column")
        missing = kinds == {"int"} and None in values
        kind = "float" if missing or "float" in kinds else kinds.pop()
        texts = [column, *(found if kind == "str" else ())]
        for wrong, told in [
            (kind == "int" and max(map(abs, found)) >= 2**63, "more than 64 bits"),
            (kind == "float" and any(map(math.isinf, found)), "an infinity"),
            ("" in texts or "\r" in "".join(texts), "empty text or a return"),
        ]:
            if wrong:
                raise ValueError(f"{name!r} has {told} in {column!r}")
        columns.append([column, kind, values])
    return columns


def _read_table(path: Path, types: dict[str, str]) -> "DataFrame":
    """Return a table; its numbers to the last digit."""
    import pandas as pd

    frame = pd.read_csv(path, dtype="str", keep_default_na=False, na_values=[""])
    for column, kind in types.items():
        if kind == "bool":
            frame[column] = frame[column].map({"True": True, "False": False})
        else:
            frame[column] = frame[column].astype(kind)
    return frame[[*types]]


def read_paper(book: Path, key: str) -> PaperFigure:
    """Return one entry of a book's ``papers.yml``."""
    figures = read_yaml(book / "papers.yml")
    if key not in figures:
        raise KeyError(f"{key!r} is not in book/papers.yml, which has {list(figures)}")
    return PaperFigure(**figures[key])


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dictionary, unless one of its keys would hide another."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"Two of the keys {keys} are the same as strings: rename one.")
    return found


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"cannot record a {type(value).__name__}")
