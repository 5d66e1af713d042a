"""Which notebooks and which recorded results are still those of the code at hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .execution import select
from .inputs import Checkout, Inputs, changes
from .job import Job, stored_metadata
from .repository import Repository
from .results import read_results

_MADE = ("data", "executed", "commit", "parameters", "seconds")


@dataclass(frozen=True)
class Status:
    """How fresh a chapter's notebook and its recorded results are.

    Parameters
    ----------
    chapter : str
        Name of the chapter.
    notebook : dict or None
        What has changed since the notebook was executed: names under "code",
        "versions", "data", "parameters" and "display"; None if there is no notebook.
    seconds : float or None
        How long that took.
    record : dict or None
        What has changed since the results were recorded: names under "code", "data" and
        "parameters"; None if nothing is recorded.
    provenance : dict
        How the recorded results came about.
    """

    chapter: str
    notebook: dict[str, list[str]] | None
    seconds: float | None
    record: dict[str, list[str]] | None
    provenance: dict[str, Any]

    def __str__(self):
        notebook = "not executed"
        if self.notebook is not None:
            notebook = f"{describe(self.notebook)} ({self.seconds} s)"
        recorded = "nothing"
        if self.record is not None:
            day, commit = (
                self.provenance["executed"][:10],
                self.provenance["commit"][:7],
            )
            recorded = f"{describe(self.record)} (of {day}, commit {commit})"
        return f"{self.chapter}\n  notebook: {notebook}\n  recorded: {recorded}"


def status(
    chapters: Sequence[str] = (),
    profile: str = "standard",
    *,
    repository: Repository | None = None,
) -> list[Status]:
    """Return how fresh notebooks and recorded results are.

    A recorded result is stale if the code it came from, its data or the parameters of
    the profile ``full`` have changed. Versions of Python and of other packages stand in
    its provenance, and data that are not at hand are taken to be the same.

    Parameters
    ----------
    chapters : sequence of str
        Names such as ``cur``; all of ``_toc.yml`` if empty.
    profile : {"quick", "standard", "full"}
        Whose notebooks to look at.
    repository : Repository, optional
        The book; by default the one that this file belongs to.
    """
    repository = repository or Repository.here()
    checkout = Checkout(repository)
    found = []
    for chapter in select(repository, chapters):
        job = Job(repository, chapter, profile)
        stored = stored_metadata(job.notebook)
        provenance = _provenance(repository, chapter)
        found.append(
            Status(
                chapter,
                job.changes(job.notebook, checkout),
                stored["seconds"] if stored else None,
                _since(provenance, checkout, chapter) if provenance else None,
                provenance,
            )
        )
    return found


def strays(repository: Repository) -> list[str]:
    """Return the records that belong to no page, as that of a chapter renamed.

    Parameters
    ----------
    repository : Repository
        The book.
    """
    found = sorted((repository.book / "results").glob("*.json"))
    pages = {repository.results(page) for page in repository.pages()}
    return [repository.relative(path) for path in found if path not in pages]


def describe(changed: dict[str, list[str]]) -> str:
    """Return in words what has changed."""
    words = [f"{kind} changed: {', '.join(names)}" for kind, names in changed.items()]
    return "; ".join(words) or "fresh"


def _provenance(repository: Repository, chapter: str) -> dict[str, Any]:
    """Return how a chapter's results came about; empty if there are none."""
    found = read_results(repository.book, chapter).get("provenance", {})
    missing = [name for name in _MADE if found and name not in found]
    if missing:
        raise ValueError(
            f"{repository.relative(repository.results(chapter))} has a provenance "
            f"without {', '.join(missing)}; put back one that was committed, or "
            "delete it, commit, and record again: "
            f"press {chapter} --profile full --record"
        )
    return found


def _since(
    provenance: dict[str, Any], checkout: Checkout, chapter: str
) -> dict[str, list[str]]:
    """Return what has changed since results were recorded."""
    then = Inputs(
        files=provenance.get("files", {}),
        data=provenance["data"],
        display={},
        parameters=provenance["parameters"],
    )
    parameters = Job(checkout.repository, chapter, "full").parameters
    changed = changes(then, checkout.inputs(chapter, parameters, then.names))
    data = [name for name in changed.get("data", []) if checkout.data.get(name)]
    relevant = {
        "code": changed.get("code"),
        "data": data,
        "parameters": changed.get("parameters"),
    }
    return {kind: names for kind, names in relevant.items() if names}
