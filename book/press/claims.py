"""What the papers claim, and whether it holds: tests on recorded values.

``book/claims.yml`` says of each claim where it stands, what it would take to be true
and what was found. The second is a test, an expression of `press.expressions`
over the recorded results, and the verdict is what comes of it: nobody writes a verdict
down. What fails is *wrong in print* if no data could make it true, a *misprint* if the
paper itself shows what was meant, and otherwise *does not hold here*. Statements on
most cases hold where more than half of them do. ``book/numbered.yml`` lists what the
papers number; what became of an item follows from the verdicts on the claims that name
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from .expressions import evaluate, fill
from .repository import read_yaml
from .results import read_paper, read_results

__all__ = ["KINDS", "PAPERS", "Claim", "Item", "Records", "read_claims", "read_items"]

PAPERS = {
    "ray2022": "Ray et al. (2022)",
    "song2024": "Song, Yin and Zhang (2024)",
    "turek2022": "Turek and Huth (2022)",
}
KINDS = ("error", "misprint", "limit", "remark", "holds")
FAILED = {"error": "wrong in print", "misprint": "misprint"}
_BOOK = Path(__file__).resolve().parents[2] / "book"


class Records(Mapping[str, Any]):
    """The names of an expression: each chapter's recorded results, and the papers'.

    ``paper("key")`` is the value of an entry of ``book/papers.yml``.

    Parameters
    ----------
    book : Path
        The folder with ``results/`` and ``papers.yml``.
    """

    def __init__(self, book: Path = _BOOK):
        self.book = book
        self._read = cache(lambda chapter: read_results(book, chapter).get("values"))
        self._paper = cache(self._figure)

    def __getitem__(self, name: str) -> Any:
        if name == "paper":
            return self._paper
        found = self._read(name)
        if found is None:
            raise KeyError(name)
        return found

    def _figure(self, key: str) -> Any:
        try:
            return read_paper(self.book, key).value
        except KeyError as error:  # no record will ever have it
            raise ValueError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        yield from sorted(path.name for path in (self.book / "results").glob("*"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, with the test that decides about it.

    Parameters
    ----------
    records : Mapping
        What the expressions are about.
    name : str
        Unique in the book.
    paper : str
        Key of `PAPERS`.
    where : tuple of str
        Sections and numbered items of the paper.
    says : str
        The statement.
    kind : str
        One of `KINDS`: an error is wrong whatever the data, a misprint is a slip whose
        correction the paper has elsewhere, a limit is where a statement ends that is
        true of other data or sizes, a remark, on what is left unsaid, is not judged.
    chapter : str
        Label of the chapter that examines it.
    found : str
        What was found, with expressions such as ``@{mean(cur.errors.rte):.2f}``; or
        why nothing was looked for.
    test : tuple of str
        Expressions, each a condition or a list of conditions; empty if untested.
    most : tuple of str
        The same for statements with "most", "generally", "typically", "often" or "tend
        to": each is one case, met where more than half of its conditions are.
    """

    records: Mapping[str, Any]
    name: str
    paper: str
    where: tuple[str, ...]
    says: str
    kind: str
    chapter: str
    found: str
    test: tuple[str, ...] = ()
    most: tuple[str, ...] = ()

    def names(self, number: str) -> bool:
        """Tell whether it stands in a numbered item, such as "Algorithm 1, step 6"."""
        return any(place.partition(", ")[0] == number for place in self.where)

    @cached_property
    def cases(self) -> list[bool]:
        """The cases of the test, one after the other."""
        found = [met for expression in self.test for met in self._met(expression)]
        return found + [2 * met > of for met, of in self.counts]

    @cached_property
    def counts(self) -> list[tuple[int, int]]:
        """Of each statement on most conditions, how many are met, and of how many."""
        return [(sum(met), len(met)) for met in map(self._met, self.most)]

    def _met(self, expression: str) -> list[bool]:
        """Return the conditions of one expression."""
        value = evaluate(expression, self.records)
        several = value if isinstance(value, list) else [value]
        if {*map(type, several)} != {bool}:
            raise ValueError(f"{expression!r} is no condition: it gives {value!r}")
        return several

    @cached_property
    def unrecorded(self) -> str:
        """What is not recorded, or not yet, of what the claim reads; or nothing."""
        try:
            self.cases, fill(self.found, self.records)
        except LookupError as error:
            return f"Not recorded: {error.args[0]}"
        except ValueError as error:
            raise ValueError(f"the claim {self.name!r}: {error}") from error
        return ""

    @property
    def verdict(self) -> str:
        """Whether it holds, in part or not at all, or is not tested or judged."""
        if self.kind == "remark":
            return "remark"
        if self.unrecorded or not self.cases:
            return "not tested"
        if all(self.cases):
            return "holds"
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
        counts = ", ".join(f"{met} of {of}" for met, of in self.counts)
        return f"{told} ({counts})" if counts else told

    @property
    def measured(self) -> str:
        """What was found, with its numbers."""
        return self.unrecorded or fill(self.found, self.records)

    @property
    def entry(self) -> tuple[str, str]:
        """The claim, and what is said of it, for a definition list."""
        where = ", ".join(self.where)
        link = f"{{numref}}`Chapter {{number}} <chap:{self.chapter}>`"
        return self.says, f"{self.measured} ({where}: *{self.told}*; {link})"


@dataclass(frozen=True)
class Item:
    """A table, figure, algorithm or theorem that a paper numbers.

    Parameters
    ----------
    records : Mapping
        What the expressions are about.
    paper : str
        Key of `PAPERS`.
    number : str
        As in "Table 5".
    what : str
        What it shows.
    claims : tuple of Claim
        Those that name it.
    chapter : str
        Label of the chapter with its counterpart, if there is one.
    theirs, ours : str
        Numbers side by side, texts with expressions.
    corrected : str
        What is mended in the book's counterpart.
    absent : str
        Why there is no counterpart.
    """

    records: Mapping[str, Any]
    paper: str
    number: str
    what: str
    claims: tuple[Claim, ...] = ()
    chapter: str = ""
    theirs: str = ""
    ours: str = ""
    corrected: str = ""
    absent: str = ""

    @property
    def status(self) -> str:
        """What became of it; follows from the verdicts on its claims."""
        if self.absent:
            return "not reproduced here"
        if self.corrected:
            return "corrected"
        verdicts = {claim.verdict for claim in self.claims} - {"remark", "not tested"}
        if verdicts == {"holds"}:
            return "reproduced"
        if verdicts and not verdicts & {"holds", "holds in part"}:
            return verdicts.pop() if len(verdicts) == 1 else "does not hold here"
        if not verdicts and any(claim.unrecorded for claim in self.claims):
            return "not recorded"
        if not verdicts:
            raise ValueError(f"{self.paper}, {self.number}: no claim tells its status")
        return "reproduced in part"

    @property
    def beside(self) -> tuple[str, str]:
        """The paper's numbers and ours."""
        try:
            return fill(self.theirs, self.records), fill(self.ours, self.records)
        except LookupError as error:
            return "", f"not recorded: {error.args[0]}"
        except ValueError as error:
            raise ValueError(f"{self.paper}, {self.number}: {error}") from error


def read_claims(book: Path = _BOOK) -> list[Claim]:
    """Return the claims of ``claims.yml``, in its order."""
    records = Records(book)
    return [
        Claim(records, name, paper, **_fields(entry))
        for paper, entries in read_yaml(book / "claims.yml").items()
        for name, entry in entries.items()
    ]


def read_items(book: Path = _BOOK) -> list[Item]:
    """Return the items of ``numbered.yml``, each with the claims that name it."""
    claims, records = read_claims(book), Records(book)
    items = []
    for paper, entries in read_yaml(book / "numbered.yml").items():
        for number, entry in entries.items():
            about = [c for c in claims if c.paper == paper and c.names(number)]
            fields = _fields(entry)
            items.append(Item(records, paper, number, claims=tuple(about), **fields))
    return items


def _fields(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry, a single place or condition as one of many."""
    fields = dict(entry)
    for key in {"where", "test", "most"} & fields.keys():
        several = fields[key]
        fields[key] = (several,) if isinstance(several, str) else tuple(several)
    return fields
