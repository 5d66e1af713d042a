"""Claims, numbered items and their verdicts, which are computed from records.

A claim is a function. Its docstring is what the paper says, its arguments are the
recorded results of chapters, by name, and ``paper``, which gives a figure of
``book/papers.yml`` for its key. It returns what would have to be true, and what was
found: the verdict is what comes of it, and nobody writes a verdict down. What fails is
*wrong in print* (*wrong as we read it*, where our text of the paper lacks a formula) if
a counterexample or the paper's own numbers refute it, a *misprint* if text, tables or
code of the paper show what was meant, and otherwise *does not hold here*. What became
of a table, a figure, an algorithm or a theorem follows from the verdicts on the claims
that name it.
"""

from __future__ import annotations

import inspect
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from press.results import read_paper, read_results

KINDS = ("error", "misprint", "limit", "remark", "holds")
FAILED = {"error": "wrong in print", "misprint": "misprint"}
_F = TypeVar("_F", bound=Callable[..., Any])
_BOOK = Path(__file__).resolve().parents[1]


class Record(dict[str, Any]):
    """A dictionary of a record: what is under a key is an attribute, too."""

    def __init__(self, values: Mapping[str, Any], place: str):
        self._place = place
        super().__init__({k: _named(v, f"{place}.{k}") for k, v in values.items()})

    def __missing__(self, key: Any) -> Any:
        if str(key) in self:
            return self[str(key)]
        raise LookupError(f"{key!r} in {self._place}")

    def __getattr__(self, key: str) -> Any:
        return self[key]


def _named(value: Any, place: str) -> Any:
    """Return a value with its dictionaries as records."""
    if isinstance(value, Mapping):
        return Record(value, place)
    if isinstance(value, list):
        return [_named(part, f"{place}[{at}]") for at, part in enumerate(value)]
    return value


class Records:
    """The arguments of claims by name: recorded results of a chapter, and ``paper``."""

    def __init__(self, book: Path = _BOOK):
        self.book = book  # with results/ and papers.yml
        self._read = cache(self._chapter)
        self._paper = cache(self._figure)

    def __getitem__(self, name: str) -> Any:
        return self._paper if name == "paper" else self._read(name)

    def _chapter(self, name: str) -> Record:
        found = read_results(self.book, name).get("values")
        if found is None:
            raise KeyError(name)
        return Record(found, name)

    def _figure(self, key: str) -> Any:
        try:
            return _named(read_paper(self.book, key).value, f"paper({key!r})")
        except KeyError as error:  # no record will ever have it
            raise ValueError(error.args[0]) from None

    def call(self, function: Callable[..., Any]) -> Any:
        """Return what a function gives for the records that it names."""
        return function(*map(self.__getitem__, inspect.signature(function).parameters))


def found(record: Any, item: str, case: str = "") -> Any:
    """Return what the small problems of a paper's page give, by case, for an item.

    Of the cases only those that match an expression.
    """
    checks = record.checks
    rows = checks[(checks["item"] == item) & checks["case"].str.contains(case)]
    return rows.set_index("case")["found"]


def median(values: Iterable[float | None]) -> float:
    """Return the median; None, a run that came to nothing, counts as infinite."""
    return statistics.median(math.inf if v is None else v for v in values)


def where(table: Any, **values: Any) -> Any:
    """Return the rows of a table in which columns have these values."""
    for column, value in values.items():
        table = table[table[column] == value]
    return table


def mean_of(table: Any, column: str, **values: Any) -> float:
    """Return the mean of a column over some rows of a table, if there are any."""
    rows = where(table, **values)
    if rows.empty:
        raise LookupError(f"{column} where {values}")
    return float(rows[column].mean())


def typical(table: Any, column: str = "error", **values: Any) -> float:
    """Return the median of a column over some rows of a table."""
    return float(where(table, **values)[column].median())


@dataclass(frozen=True)
class Most:
    """One case, met where more than half of its conditions are."""

    met: int
    of: int


def most(conditions: Iterable[bool]) -> Most:
    """Return the case of a statement with "most", "generally", "typically" or "often".

    Raises
    ------
    ValueError
        Something else than conditions.
    """
    met = [*_conditions([*conditions])]
    return Most(sum(met), len(met))


def _conditions(value: Any) -> Iterator[Any]:
    """Yield the conditions in nested lists, none of which is empty."""
    if isinstance(value, list) and value:
        for part in value:
            yield from _conditions(part)
    elif isinstance(value, bool | np.bool_ | Most):
        yield value
    else:
        raise ValueError(f"{value!r} is no condition")


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, with the test that decides about it.

    Parameters
    ----------
    function : callable
        Returns the cases, each a condition, a list of conditions or what `most` gives,
        and what was found; or that alone, if nothing is tested.
    where : tuple of str
        Sections and numbered items of the paper.
    kind : str
        An "error" is wrong whatever the data, a "misprint" is a slip whose correction
        the paper or its code has elsewhere, a "limit" is where a statement ends that
        is true of other data or sizes, a "remark", on what is left unsaid, is not
        judged, and what "holds" does.
    chapter : str
        Label of the chapter that examines it.
    records : Records
        What it is tested on.
    """

    function: Callable[..., Any]
    where: tuple[str, ...]
    kind: str
    chapter: str
    records: Records = field(default_factory=Records)

    @property
    def name(self) -> str:
        """Unique in the book."""
        return self.function.__name__

    @property
    def paper(self) -> str:
        """The module it stands in."""
        return self.function.__module__.rpartition(".")[2]

    @property
    def says(self) -> str:
        """The statement."""
        return " ".join((self.function.__doc__ or "").split())

    def names(self, number: str) -> bool:
        """Tell whether it stands in a numbered item, such as "Algorithm 1, step 6"."""
        return any(place.partition(", ")[0] == number for place in self.where)

    @cached_property
    def outcome(self) -> tuple[list[bool | Most], str, str]:
        """The cases, what was found, and what is not recorded of what it reads."""
        try:
            found = self.records.call(self.function)
        except LookupError as error:
            return [], "", f"Not recorded: {error.args[0]}"
        if isinstance(found, str):
            return [], found, ""
        cases = [c if isinstance(c, Most) else bool(c) for c in _conditions(found[0])]
        return cases, found[1], ""

    @property
    def unrecorded(self) -> str:
        """What is not recorded, or not yet, of what the claim reads; or nothing."""
        return self.outcome[2]

    @property
    def measured(self) -> str:
        """What was found, with its numbers."""
        return self.unrecorded or self.outcome[1]

    @property
    def counts(self) -> list[Most]:
        """Of each statement on most conditions, how many are met, and of how many."""
        return [case for case in self.outcome[0] if isinstance(case, Most)]

    @property
    def cases(self) -> list[bool]:
        """Whether each case is met."""
        return [
            2 * case.met > case.of if isinstance(case, Most) else case
            for case in self.outcome[0]
        ]

    @property
    def verdict(self) -> str:
        """Whether it holds, in part or not at all, or is not tested or judged."""
        if self.kind == "remark":
            return "remark"
        if not self.cases:
            return "not tested"
        if all(self.cases):
            return "holds"
        if self.kind == "error" and self.measured.startswith("As we read it"):
            return "wrong as we read it"
        if self.kind in FAILED:
            return FAILED[self.kind]
        return "holds in part" if any(self.cases) else "does not hold here"

    @property
    def told(self) -> str:
        """The verdict, with the cases where they disagree, and what most are of."""
        if self.verdict in ("remark", "not tested"):
            return self.verdict
        told, met = self.verdict, sum(self.cases)
        if told == "holds in part":
            told = f"holds in {met} of {len(self.cases)} cases"
        elif met and told != "holds":
            told += f"; holds in {met} of {len(self.cases)} cases"
        counts = ", ".join(f"{most.met} of {most.of}" for most in self.counts)
        return f"{told} ({counts})" if counts else told

    @property
    def row(self) -> list[str]:
        """What a table says of it."""
        where = ", ".join(self.where)
        return [where, self.says, self.measured, self.told, link(self.chapter)]


@dataclass(frozen=True)
class Item:
    """A table, figure, algorithm or theorem that a paper numbers.

    Parameters
    ----------
    function : callable
        Returns the paper's numbers and ours, as text; nothing if there are none. Its
        docstring is what the item shows.
    number : str
        As in "Table 5".
    chapter : str
        Label of the chapter with its counterpart, or that tells why there is none.
    corrected : str
        What is mended in the book's counterpart.
    absent : str
        Why there is no counterpart.
    partly : bool
        Whether the book has but a part of it.
    claims : tuple of Claim
        Those that name it.
    records : Records
        What the numbers are from.
    """

    function: Callable[..., Any]
    number: str
    chapter: str
    corrected: str = ""
    absent: str = ""
    partly: bool = False
    claims: tuple[Claim, ...] = ()
    records: Records = field(default_factory=Records)

    @property
    def paper(self) -> str:
        """The module it stands in."""
        return self.function.__module__.rpartition(".")[2]

    @property
    def what(self) -> str:
        """What it shows."""
        return " ".join((self.function.__doc__ or "").split()).removesuffix(".")

    @property
    def status(self) -> str:
        """What became of it; follows from the verdicts on its claims."""
        if self.absent:
            return "not reproduced here"
        if self.corrected:
            return "corrected"
        verdicts = {claim.verdict for claim in self.claims} - {"remark", "not tested"}
        if verdicts == {"holds"} and not self.partly:
            return "reproduced"
        if verdicts and not verdicts & {"holds", "holds in part"}:
            return verdicts.pop() if len(verdicts) == 1 else "does not hold here"
        if not verdicts and any(claim.unrecorded for claim in self.claims):
            return "not recorded"
        if not verdicts:
            raise ValueError(f"{self.paper}, {self.number}: no claim tells its status")
        return "reproduced in part"

    @cached_property
    def beside(self) -> tuple[str, str]:
        """The paper's numbers and ours."""
        try:
            return self.records.call(self.function) or ("", "")
        except LookupError as error:
            return "", f"not recorded: {error.args[0]}"

    @property
    def row(self) -> list[str]:
        """What a table says of it."""
        theirs, ours = self.beside
        shown = [f"{self.what}.", f"Theirs: {theirs}." if theirs else ""]
        found = [f"Ours: {ours}." if ours else "", self.absent]
        found += [f"Mended: {self.corrected}" if self.corrected else ""]
        cells = (" ".join(filter(None, some)) for some in (shown, found))
        return [f"**{self.number}**", *cells, self.status, link(self.chapter)]


CLAIMS: list[Claim] = []
ITEMS: list[Item] = []


def claim(*where: str, kind: str, chapter: str) -> Callable[[_F], _F]:
    """Enter the function that follows as a `Claim`."""

    def entered(function: _F) -> _F:
        CLAIMS.append(Claim(function, where, kind, chapter))
        return function

    return entered


def item(
    number: str,
    *,
    chapter: str,
    corrected: str = "",
    absent: str = "",
    partly: bool = False,
) -> Callable[[_F], _F]:
    """Enter the function that follows as an `Item`."""

    def entered(function: _F) -> _F:
        ITEMS.append(Item(function, number, chapter, corrected, absent, partly))
        return function

    return entered


def read_claims(book: Path = _BOOK) -> list[Claim]:
    """Return all claims, tested on the records of a book."""
    records = Records(book)
    return [replace(claim, records=records) for claim in CLAIMS]


def read_items(book: Path = _BOOK) -> list[Item]:
    """Return what the papers number, each item with the claims that name it."""
    claims, records = read_claims(book), Records(book)
    return [
        replace(
            item,
            records=records,
            claims=tuple(
                c for c in claims if c.paper == item.paper and c.names(item.number)
            ),
        )
        for item in ITEMS
    ]


def link(chapter: str) -> str:
    """Return a reference to a chapter by its number."""
    return f"{{numref}}`{{number}} <chap:{chapter}>`"


def table(paper: str, book: Path = _BOOK) -> Any:
    """Return all that a paper numbers and claims, with verdicts, as a Markdown table.

    Pages give it a search field and a choice of verdicts.
    """
    from IPython.display import Markdown

    rows = [item.row for item in read_items(book) if item.paper == paper]
    rows += [claim.row for claim in read_claims(book) if claim.paper == paper]
    head = ["Where", "The paper", "This book", "Verdict", "Chapter"]
    lines = [head, [":--"] * len(head), *rows]
    text = "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)
    return Markdown(text)


def _cell(text: str) -> str:
    """Return a cell of Markdown, in whose numbers no line breaks."""
    return re.sub(r"(?<=\de)-(?=\d)", "−", text).replace("|", r"\|")
