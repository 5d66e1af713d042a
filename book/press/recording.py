"""Recording: results from executed notebooks, with how they came about."""

import json
from collections.abc import Sequence
from typing import Any

from .chapters import select
from .code import content_hash
from .git import clean_commit
from .inputs import Checkout
from .job import NOTED, Job
from .repository import Repository
from .results import collect, write_part, write_results

_DIGITS = 12  # of the numbers in a probe


def record_results(repository: Repository, chapters: Sequence[str] = ()) -> list[str]:
    """Write results of executed full chapters, and probes, to ``book/results/``."""
    import nbformat

    checkout = Checkout(repository)
    committed = clean_commit(repository) is not None
    written, refused = [], []
    for chapter in select(repository, chapters):
        jobs = [Job(repository, chapter, profile) for profile in ("full", "quick")]
        if not committed or not all(job.reuse(checkout, committed) for job in jobs):
            refused.append(chapter)
            continue
        full, quick = (nbformat.read(job.notebook, as_version=4) for job in jobs)
        entries = collect(full)
        if entries:
            folder = repository.results(chapter)
            digest = content_hash(jobs[0].notebook.read_bytes())
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

    def number(text: str) -> float:
        return float(f"{float(text):.{_DIGITS}g}")

    return json.loads(json.dumps(value), parse_float=number)


def _made(notebook: Any) -> dict[str, Any]:
    """Return how an executed notebook came about."""
    noted = notebook.metadata["press"]
    return {name: noted[name] for name in NOTED} | noted["inputs"]
