"""Recording: results from executed notebooks, with how they came about."""

import json
from collections.abc import Sequence
from typing import Any

import nbformat

from .chapters import select
from .code import content_hash
from .execution import NOTED, ChapterError, Failure, Job, press
from .inputs import Checkout
from .repository import Repository
from .results import collect, write_part, write_results


def record_chapters(
    repository: Repository, chapters: Sequence[str] = (), jobs: int = 1
) -> None:
    """Execute in full, and in short for the probe; record what did not fail."""
    if changed := repository.changed():
        raise RuntimeError(f"commit first, then record; git status says:\n{changed}")
    good, failures = select(repository, chapters), list[Failure]()
    for profile in ("full", "quick"):
        try:
            if good:
                press(good, profile, jobs=jobs, committed=True, repository=repository)
        except ChapterError as error:
            failures += error.failures
            bad = {failure.chapter for failure in error.failures}
            good = [chapter for chapter in good if chapter not in bad]
    checkout, committed = Checkout(repository), repository.clean_commit()

    def is_ready(chapter: str) -> bool:
        made = (Job(repository, chapter, profile) for profile in ("full", "quick"))
        return bool(committed) and all(job.reuse(checkout, True) for job in made)

    ready = [chapter for chapter in good if is_ready(chapter)]
    for chapter in ready:
        _record(repository, chapter)
    refused = [chapter for chapter in good if chapter not in ready]
    told = [str(ChapterError(failures))] if failures else []
    if refused:
        told.append(
            f"not recorded: {', '.join(refused)}. Something was edited while they ran; "
            "commit, then record them again."
        )
    if told:
        raise RuntimeError("\n\n".join(told))


def _record(repository: Repository, chapter: str) -> None:
    """Write the results of a chapter, if it has any, and its probe."""
    notebook, short = (repository.notebook(chapter, p) for p in ("full", "quick"))
    full, quick = (nbformat.read(path, as_version=4) for path in (notebook, short))
    entries, folder = collect(full), repository.results(chapter)
    if not entries:
        return
    digest = content_hash(notebook.read_bytes())
    for name in ("probe", "confirmation"):  # of the record before
        (folder / f"{name}.json").unlink(missing_ok=True)
    write_results(folder, entries, {**_made(full), "notebook": digest})
    text = json.dumps(collect(quick))
    probe = json.loads(text, parse_float=lambda x: float(f"{float(x):.12g}"))
    write_part(folder, "probe.json", {**_made(quick), "entries": probe})
    print(f"recorded {repository.relative(folder)}")


def _made(notebook: Any) -> dict[str, Any]:
    """Return how an executed notebook came about."""
    noted = notebook.metadata["press"]
    return {name: noted[name] for name in NOTED} | noted["inputs"]
