"""Notebooks and records that still hold, and records confirmed by a short run.

A record is *fresh* while nothing that decided its values has changed. When something
has, the profile ``quick`` is run again and compared with the probe, the same short run
of the code that made the record. The record is then *confirmed*, or its values have
*moved*; *not confirmed* where code has changed that decides in the full run alone, or
may. Another processor may round otherwise: before values count as moved, the code that
made the record is run here, too, if the locked versions are its own.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any

import nbformat

from .chapters import select
from .code import Code, Unit, content_hash
from .execution import ChapterError, Failure, Job, press, stored_metadata
from .inputs import LOCK, Checkout, Inputs, changes, differing_units, displayed, place
from .repository import Repository
from .results import Entries, collect, edited, leaves, read_part, write_part

RTOL = 1e-6  # up to which two values are the same, unless a chapter says more
ATOL = 1e-12  # what is smaller is rounding
_SHOWN = 8  # of the names in a message
_INPUTS = [part.name for part in fields(Inputs)]  # that each part of a record has
_OUTCOME = ["key", "moved", "unreached", "commit", "values", "deviation", "seconds"]
_BY_HAND = {"data", "probe", "results"}  # changes that no short run can judge
_GONE = Unit("")  # in place of a unit that is not there any more


@dataclass(frozen=True)
class Standing:
    """Whether a record holds."""

    verdict: str  # "fresh", "confirmed", "moved", "not confirmed" or "data missing"
    told: str = ""
    changed: dict[str, list[str]] = field(default_factory=dict)  # as of the notebook

    def __str__(self):
        return f"{self.verdict}: {self.told}" if self.told else self.verdict


@dataclass(frozen=True)
class Status:
    """How fresh a chapter's notebook and its recorded results are."""

    chapter: str
    notebook: dict[str, list[str]] | None  # what changed, None if there is none
    seconds: float | None
    record: Standing | None  # None if nothing is recorded
    provenance: dict[str, Any]

    def __str__(self):
        notebook, recorded = "not executed", "nothing"
        if self.notebook is not None:
            notebook = f"{describe(self.notebook)} ({self.seconds} s)"
        if self.record:
            made = self.provenance
            of = f"of {made['executed'][:10]}, commit {made['commit'][:7]}"
            recorded = f"{self.record} ({of})"
        return f"{self.chapter}\n  notebook: {notebook}\n  recorded: {recorded}"


def status(
    chapters: Sequence[str] = (),
    profile: str = "standard",
    *,
    repository: Repository | None = None,
) -> list[Status]:
    """Return how fresh the notebooks of a profile are, and whether records hold.

    A record is stale if the code that decided its values, the locked versions, its data
    or the parameters of the profile ``full`` have changed.
    """
    repository = repository or Repository.here()
    checkout = Checkout(repository)
    found = []
    for chapter in select(repository, chapters):
        job = Job(repository, chapter, profile)
        changed = job.changes(job.notebook, checkout)
        seconds = (stored_metadata(job.notebook) or {}).get("seconds")
        needed = ["commit", "executed", *_INPUTS]
        made = read_part(repository.results(chapter), "provenance.json", needed)
        record = standing(checkout, chapter, made) if made else None
        found.append(Status(chapter, changed, seconds, record, made))
    return found


def confirm(
    chapters: Sequence[str] = (), *, jobs: int = 1, repository: Repository | None = None
) -> list[Status]:
    """Compare a short run of each record that has changed with its probe."""
    repository = repository or Repository.here()
    before = status(chapters, "quick", repository=repository)
    todo = [
        row.chapter
        for row in before
        if row.record and row.record.verdict not in ("fresh", "data missing")
        if not {"parameters", *_BY_HAND} & row.record.changed.keys()
    ]
    failed: dict[str, Failure] = {}
    try:
        if todo:
            press(todo, "quick", jobs=jobs, repository=repository)
    except ChapterError as error:
        failed = {failure.chapter: failure for failure in error.failures}
    checkout = Checkout(repository)
    for job in (Job(repository, chapter, "quick") for chapter in todo):
        if job.reuse(checkout):
            _compare(checkout, job)
    rows = status([row.chapter for row in before], "quick", repository=repository)
    return [
        replace(row, record=_given_up(repository, row, failed[row.chapter]))
        if row.chapter in failed
        else row
        for row in rows
        if row.record
    ]


def summary(rows: Iterable[Status]) -> str:
    """Return in one line how many records hold."""
    counts = Counter({"fresh": 0, "confirmed": 0})
    counts.update(row.record.verdict for row in rows if row.record)
    return "records: " + ", ".join(f"{n} {verdict}" for verdict, n in counts.items())


def standing(checkout: Checkout, chapter: str, made: dict[str, Any]) -> Standing:
    """Return whether a chapter's record holds, which was made so."""
    folder = checkout.repository.results(chapter)
    now = _now(checkout, chapter, made)
    changed = changes(Inputs.read(made), now)
    changed.pop("display", None)
    known = [name for name in changed.pop("data", ()) if checkout.data.get(name)]
    changed |= {"data": known} if known else {}
    if changed.get("versions") == ["Python"]:
        del changed["versions"]
    changed |= {"results": names} if (names := edited(folder, made)) else {}
    if not changed:
        return Standing("fresh")
    probe = read_part(folder, "probe.json", ["entries", *_INPUTS])
    changed |= {} if probe else {"probe": ["probe.json, which is gone"]}
    found = read_part(folder, "confirmation.json", [*_OUTCOME, *_INPUTS])
    told = describe(changed)
    if found:
        quick = Inputs.read(found)
        job = Job(checkout.repository, chapter, "quick")
        since = changes(quick, checkout.inputs(chapter, job.parameters, quick))
        decides = since.keys() & {"code", "parameters"} or _BY_HAND & changed.keys()
        if found["key"] == _key(now) and not decides:
            return Standing(*_outcome(found), changed)
        if since and found["commit"]:
            told = f"since commit {found['commit'][:7]} {describe(since)}"
    missing = any(checkout.data.get(name) is None for name in probe.get("data", ()))
    verdict = "data missing" if missing else "not confirmed"
    return Standing(verdict, told, changed)


def unreached(record: Code, probe: Code, quick: Code, checkout: Checkout) -> list[str]:
    """Return what has changed and decides in the full run, not in the short one.

    These are changed units that ran in the full run alone; units that ran in one of the
    two alone, under a condition with a value that has changed, or with a name that a
    changed unit gives a size to; and new blocks which the short run passes by, where a
    condition compares sizes and they end in no error or warning, and in the chapter
    whatever the condition is: parameters decide there.
    """
    changed = {
        (path, name): code[path][name]
        for code in (record, probe)
        for path, name in differing_units(code, checkout.code(code))
    }
    units = {unit: checkout.unit(*unit) or _GONE for unit in _ran(record) | _ran(probe)}
    values = {name for path, name in changed if units[path, name].is_value}
    values = values.union(*(units[unit].sizes for unit in changed))
    alone = changed.keys() & (_ran(record) - _ran(probe))
    found = {
        unit
        for unit in _ran(record) ^ _ran(probe)
        if (unit in alone and changed[unit] not in checkout.like(*unit))
        or values & {name.removeprefix(".") for name in units[unit].decided}
    }
    both = [*_units(record), *_units(probe)]
    known = {(_home(*unit), hash.removeprefix("-")) for unit, hash in both}
    found |= {
        (path, name)
        for (path, name), hash in _units(quick)
        if hash.startswith("-") and (_home(path, name), hash[1:]) not in known
        if path.endswith(".md") or (checkout.unit(path, name) or _GONE).switch
    }
    return sorted({place(unit) for unit in found})


def bounded(record: Code, then: Checkout, now: Checkout) -> list[str]:
    """Return what has changed and may bound a size that the full run alone reaches.

    These are changed units in whose bounds, see `Source.bounds`, one number or one
    constant stands for another, and units with a changed constant in a bound. A number
    that gets a name is the same.
    """
    changed = differing_units(record, now.code(record))
    constants = {
        name
        for path, name in changed
        if name.isupper() and (now.unit(path, name) or _GONE).is_value
    }
    found = {
        unit
        for unit in (_ran(record) if constants else ())
        if constants & now.bounds(*unit).keys()
    }
    for unit in changed:
        old, new = then.bounds(*unit), now.bounds(*unit)
        gone, come = ({*map(str.isupper, part)} for part in (old - new, new - old))
        if gone & come:
            found.add(unit)
    return sorted({place(unit) for unit in found})


def _home(path: str, name: str) -> str:
    """Return what a block belongs to: a chapter, or a function wherever it is."""
    return path if path.endswith(".md") else name.partition("/")[0]


def compare(then: Entries, now: Entries) -> tuple[int, float, list[str]]:
    """Return how many values are compared, the largest deviation, and what moved."""
    count, largest, moved = 0, 0.0, []
    for name in [*now, *(then.keys() - now.keys())]:
        old, new = (
            dict(_values(name, e.get(name), now.get(name))) for e in (then, now)
        )
        rtol = now.get(name, {}).get("rtol", RTOL)
        for where in [*new, *(old.keys() - new.keys())]:
            pair = old.get(where, "nothing"), new.get(where, "nothing")
            deviation = _deviation(*pair)
            count += 1
            if deviation > rtol:
                moved.append(f"{where}: {_shown(pair[0])} -> {_shown(pair[1])}")
            else:
                largest = max(largest, deviation)
    return count, largest, moved


def describe(changed: dict[str, list[str]]) -> str:
    """Return in words what has changed."""
    words = [f"{kind} changed: {_listed(names)}" for kind, names in changed.items()]
    return "; ".join(words) or "fresh"


def _compare(checkout: Checkout, job: Job) -> None:
    """Write what a short run says of a record."""
    folder = checkout.repository.results(job.chapter)
    made, probe = (read_part(folder, f"{p}.json") for p in ("provenance", "probe"))
    notebook = nbformat.read(job.notebook, as_version=4)
    noted = notebook.metadata["press"]
    entries, beside = collect(notebook), None
    commit = checkout.repository.clean_commit()  # before anything else runs
    count, deviation, moved = compare(probe["entries"], entries)
    if moved and (here := _run_here(checkout.repository, job.chapter, made["commit"])):
        again = compare(here, entries)
        if not again[-1]:
            (count, deviation, moved), beside = again, made["commit"]
    quick = Inputs.read(noted["inputs"])
    codes = (Inputs.read(made).code, Inputs.read(probe).code, quick.code)
    record, before, short = map(_decisive, codes)
    decides = unreached(record, before, short, checkout)
    with (
        suppress(OSError, subprocess.CalledProcessError),  # if the commit is not here
        checkout.repository.at(made["commit"]) as recorded,
    ):
        decides += bounded(record, Checkout(recorded), checkout)
    found = {
        "commit": commit,
        **{name: noted[name] for name in ("executed", "seconds", "machine")},
        "beside": beside,
        "values": count,
        "deviation": float(f"{deviation:.2g}"),
        "moved": moved,
        "unreached": sorted({*decides}),
        "key": _key(_now(checkout, job.chapter, made)),
        **quick.write(),
    }
    write_part(folder, "confirmation.json", found)


def _run_here(repository: Repository, chapter: str, commit: str) -> Entries | None:
    """Return the short run of a commit on this machine, None if there is none.

    With other versions than those of the commit it would tell nothing.
    """
    try:
        with repository.at(commit) as then:
            if not _versions(repository) <= _versions(then):
                return None
            press([chapter], "quick", repository=then)
            notebook = nbformat.read(then.notebook(chapter, "quick"), as_version=4)
            return collect(notebook)
    except (ChapterError, ValueError, OSError, subprocess.CalledProcessError):
        return None


def _versions(repository: Repository) -> set[str]:
    """Return the packages that are locked, with their versions."""
    lines = (repository.root / LOCK).read_text("utf-8").splitlines()
    return {line for line in lines if "==" in line.partition("#")[0]}


def _given_up(repository: Repository, row: Status, failure: Failure) -> Standing:
    """Return whether a record holds, given that its short run failed."""
    told, moved = f"it fails, {failure.told}", list[str]()
    partial = Job(repository, row.chapter, "quick").partial
    if partial.exists():
        made = collect(nbformat.read(partial, as_version=4))
        probe = read_part(repository.results(row.chapter), "probe.json")["entries"]
        _, _, moved = compare({n: probe[n] for n in made if n in probe}, made)
    told = "; ".join([*([_listed(moved, "; ")] if moved else ()), told])
    changed = row.record.changed if row.record else {}
    return Standing("moved" if moved else "not confirmed", told, changed)


def _outcome(found: dict[str, Any]) -> tuple[str, str]:
    """Return the verdict of a confirmation, and what there is to say of it."""
    if found["moved"]:
        return "moved", _listed(found["moved"], "; ")
    if not found["values"]:
        return "not confirmed", "the short run has no value that the record has"
    if names := _listed(found["unreached"]):
        return "not confirmed", f"only the full run reaches what changed in {names}"
    commit = f"commit {found['commit'][:7]}" if found["commit"] else "uncommitted"
    beside = ", beside the recorded code here" if found.get("beside") else ""
    return "confirmed", (
        f"{commit}, {found['values']} values, largest deviation "
        f"{found['deviation']:.1g}{beside}, {found['seconds']:.0f} s"
    )


def _listed(names: Sequence[str], mark: str = ", ") -> str:
    """Return the first of some names, and how many more there are."""
    more = [f"and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return mark.join([*names[:_SHOWN], *more])


def _now(checkout: Checkout, chapter: str, made: dict[str, Any]) -> Inputs:
    """Return what a record would now be made from."""
    parameters = Job(checkout.repository, chapter, "full").parameters
    return checkout.inputs(chapter, parameters, Inputs.read(made))


def _key(now: Inputs) -> str:
    parts = [_decisive(now.files), _decisive(now.code), now.parameters]
    return content_hash(json.dumps(parts, sort_keys=True).encode())


def _decisive(parts: dict[str, Any]) -> dict[str, Any]:
    """Return of files or code what is not merely displayed."""
    return {path: part for path, part in parts.items() if not displayed(path)}


def _units(code: Code) -> Iterable[tuple[tuple[str, str], str]]:
    """Yield path and name of each unit, and its hash."""
    for path, units in code.items():
        yield from (((path, name), hash) for name, hash in units.items())


def _ran(code: Code) -> set[tuple[str, str]]:
    return {unit for unit, hash in _units(code) if not hash.startswith("-")}


def _values(name: str, entry: Any, marks: Any) -> Iterable[tuple[str, Any]]:
    """Yield the values of a result that are compared, each with its place."""
    volatile = (marks or entry or {}).get("volatile", ())
    if entry is None or volatile is True:
        return
    table = {column: values for column, _, values in entry.get("table", ())}
    for path, part in leaves(table or entry.get("value")):
        last = int(path[-1]) if path and path[-1].isdecimal() else None
        if not {*path, last} & {*volatile}:
            yield ".".join([name, *path]), part


def _deviation(old: Any, new: Any) -> float:
    """Return how far two values are apart, relative to the larger."""
    if not {type(old), type(new)} <= {int, float}:
        return 0.0 if type(old) is type(new) and old == new else float("inf")
    apart = abs(old - new)
    return 0.0 if apart <= ATOL else apart / max(abs(old), abs(new))


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
