"""Numbers that outlive a build: recorded results and the papers' own figures."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from .repository import Repository, read_yaml

MIME = "application/vnd.simlib.record+json"


class PaperFigure(NamedTuple):
    """A number printed in a paper, and where."""

    value: Any
    source: str
    table: str
    page: int | None = None


def record(name: str, value: Any) -> None:
    """Mark a value of a chapter as a result worth keeping.

    It costs nothing in a normal build; ``press --profile full --record`` collects the
    values into ``book/results/<chapter>.json``.

    Parameters
    ----------
    name : str
        A name unique in the chapter.
    value : object
        A number, string, list, dictionary or NumPy array, all finite. Keys that are
        numbers become strings.

    Raises
    ------
    ValueError
        NaN, an infinity, or two keys of a dictionary that are one string.
    TypeError
        Another kind of value or key.

    Examples
    --------
    >>> from simlib.press import record
    >>> record("error", 0.25)  # doctest: +SKIP
    """
    from IPython.display import display

    entry = {"name": name, "value": value}
    text = json.dumps(entry, default=_plain, allow_nan=False)
    display({MIME: json.loads(text, object_pairs_hook=_distinct)}, raw=True)


def recorded(chapter: str) -> dict[str, Any]:
    """Return the recorded results of a chapter; empty if there are none yet.

    Examples
    --------
    >>> from simlib.press import recorded
    >>> values = recorded("cur")
    """
    return read_results(Repository.here().book, chapter).get("values", {})


def provenance(chapter: str) -> dict[str, Any]:
    """Return how the results of a chapter came about; empty if there are none yet.

    Examples
    --------
    >>> from simlib.press import provenance
    >>> "commit" in provenance("cur")
    True
    """
    return read_results(Repository.here().book, chapter).get("provenance", {})


def paper(key: str) -> PaperFigure:
    """Return a figure of a paper from ``book/papers.yml``.

    Examples
    --------
    >>> from simlib.press import paper
    >>> figure = paper("items_stsb")
    >>> figure.value, figure.table
    (3000, 'Table 4')
    """
    return read_paper(Repository.here().book, key)


def read_results(book: Path, chapter: str) -> dict[str, Any]:
    """Return the content of a results file, or an empty dictionary.

    Raises
    ------
    ValueError
        A file that the press did not write so, as one with the marks of a conflict.
    """
    path = book / "results" / f"{chapter}.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        for part in ("values", "provenance"):
            if not (isinstance(content, dict) and isinstance(content.get(part), dict)):
                raise ValueError(f"it holds no {part}")
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(
            f"{path} is no record: {error}. Put one back that was committed, or "
            "delete it, commit, and record again: "
            f"press {chapter} --profile full --record"
        ) from None
    return content


def read_paper(book: Path, key: str) -> PaperFigure:
    """Return one entry of a book's ``papers.yml``."""
    figures = read_yaml(book / "papers.yml")
    if key not in figures:
        raise KeyError(f"{key!r} is not in book/papers.yml, which has {list(figures)}")
    return PaperFigure(**figures[key])


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dictionary, or refuse keys of which one would hide the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(
            f"Two of the keys {[key for key, _ in pairs]} are the same as strings: "
            "rename one."
        )
    return found


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"cannot record a {type(value).__name__}")
