"""Recording: results from executed notebooks, with how they came about."""

from collections.abc import Sequence
from typing import Any

from .chapters import select
from .code import content_hash
from .git import clean_commit
from .inputs import Checkout
from .job import Job
from .repository import Repository
from .results import collect, write_part, write_results

_DIGITS = 12  # of the numbers in a probe


def record_results(repository: Repository, chapters: Sequence[str] = ()) -> list[str]:
    """Write the results of executed full chapters to ``book/results/``.

    What the same code gives in the profile ``quick`` is written beside them: the probe,
    with which `press.confirmation.confirm` compares later.

    Parameters
    ----------
    repository : Repository
        The book.
    chapters : sequence of str
        The chapters; all if empty. Those that record nothing are passed over.

    Returns
    -------
    list of str
        The chapters that were recorded.

    Raises
    ------
    RuntimeError
        Something was edited, committed or not, while a chapter ran, or one of its
        notebooks is missing or out of date: it is not recorded, the others are.
    """
    import nbformat

    checkout = Checkout(repository)
    commit = clean_commit(repository)
    written, refused = [], []
    for chapter in select(repository, chapters):
        jobs = {name: Job(repository, chapter, name) for name in ("full", "quick")}
        if commit is None or not all(
            job.reuse(checkout, committed=True) for job in jobs.values()
        ):
            refused.append(chapter)
            continue
        full, quick = (
            nbformat.read(job.notebook, as_version=4) for job in jobs.values()
        )
        entries = collect(full)
        if not entries:
            continue
        folder = repository.results(chapter)
        digest = content_hash(jobs["full"].notebook.read_bytes())
        write_results(folder, entries, {**_made(full), "notebook": digest})
        probe = rounded(collect(quick))
        write_part(folder, "probe.json", {**_made(quick), "entries": probe})
        (folder / "confirmation.json").unlink(missing_ok=True)
        written.append(chapter)
    if refused:
        raise RuntimeError(
            f"not recorded: {', '.join(refused)}. Something was edited while they ran; "
            "commit, then record them again."
        )
    return written


def rounded(value: Any) -> Any:
    """Return values, in dictionaries and lists, with numbers of twelve digits."""
    match value:
        case dict():
            return {key: rounded(part) for key, part in value.items()}
        case list():
            return [rounded(part) for part in value]
        case float():
            return float(f"{value:.{_DIGITS}g}")
    return value


def _made(notebook: Any) -> dict[str, Any]:
    """Return how an executed notebook came about."""
    noted = notebook.metadata["press"]
    kept = ("commit", "executed", "seconds", "machine")
    return {**{name: noted[name] for name in kept}, **noted["inputs"]}
