"""Execution of chapters: each stale one once, several side by side."""

import asyncio
import json
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from filelock import FileLock, Timeout

from .chapters import (
    DECLARED,
    INJECTED,
    cell_lines,
    code_cells,
    parameters,
    parse_chapter,
    read_chapter,
    select,
    tags,
)
from .code import content_hash
from .inputs import Checkout, Hashes, Inputs, Trace, changes
from .kernel import machine, run
from .repository import PROFILES, Repository, write_atomically
from .results import collect

# What the press notes in a notebook, besides its cells and what it was made from.
NOTED = ("commit", "executed", "seconds", "machine")


@dataclass(frozen=True)
class Failure:
    """What went wrong in one chapter, with its place, and more of it."""

    chapter: str
    told: str
    details: list[str] = field(default_factory=list)

    def __str__(self):
        return "\n    ".join([self.told, *self.details])


class ChapterError(Exception):
    """One or more chapters failed; ``failures`` has one entry for each."""

    def __init__(self, failures: list[Failure]):
        super().__init__("\n\n".join(map(str, failures)))
        self.failures = failures


class Job:
    """One chapter to be executed with the parameters of one profile."""

    def __init__(self, repository: Repository, chapter: str, profile: str):
        self.repository, self.chapter, self.profile = repository, chapter, profile
        self.source = repository.source(chapter)
        self.notebook = repository.notebook(chapter, profile)
        self.partial = self.notebook.with_suffix(".partial.ipynb")  # if a cell fails
        # The kinds of changes after which a notebook still serves.
        self.bearable = {"display"} if profile == "full" else set[str]()
        declared = parameters(read_chapter(self.source))
        self.overrides = repository.overrides(profile).get(chapter, {})
        self.parameters: dict[str, Any] = declared | self.overrides
        unknown = sorted(map(str, self.overrides.keys() - declared.keys()))
        if unknown:
            raise ValueError(
                f"book/profiles.yml, {profile}: {chapter} has no parameter "
                f"{', '.join(unknown)}; it has {', '.join(declared) or 'none'}."
            )

    def changes(self, path: Path, checkout: Checkout) -> dict[str, list[str]] | None:
        """Return what has changed since a notebook was made, None if there is none."""
        stored = stored_metadata(path)
        if stored is None:
            return None
        then = Inputs.read(stored["inputs"])
        return changes(then, checkout.inputs(self.chapter, self.parameters, then))

    def reuse(self, checkout: Checkout, committed: bool = False) -> bool:
        """Say whether a notebook is up to date, if need be copied from a profile."""
        others = (self.repository.notebook(self.chapter, other) for other in PROFILES)
        for path in (self.notebook, *others):
            changed = self.changes(path, checkout)
            if changed is None or changed.keys() - self.bearable:
                continue
            if not committed or (stored_metadata(path) or {}).get("commit"):
                if path != self.notebook:
                    write_atomically(self.notebook, path.read_text(encoding="utf-8"))
                return True
        return False

    async def execute(self) -> Failure | None:
        """Execute the chapter; return the failure, or store the notebook."""
        self.partial.unlink(missing_ok=True)
        try:
            with tempfile.TemporaryDirectory() as folder:
                return await self._execute(Path(folder))
        except Exception as error:
            return self.failure(f"{type(error).__name__}: {error}")

    async def _execute(self, folder: Path) -> Failure | None:
        from nbclient.exceptions import CellExecutionError, DeadKernelError
        from papermill.translators import translate_parameters

        started, clock = datetime.now(UTC), time.perf_counter()
        checkout = Checkout(self.repository)
        before, data = checkout.inputs(self.chapter, self.parameters), checkout.data
        text, commit = self.source.read_text("utf-8"), self.repository.clean_commit()
        notebook = parse_chapter(text)
        if self.overrides:
            values = translate_parameters("", "python", self.overrides, "Parameters")
            place = next(i for i, c in enumerate(notebook.cells) if DECLARED in tags(c))
            injected = nbformat.v4.new_code_cell(values, metadata={"tags": [INJECTED]})
            notebook.cells.insert(place + 1, injected)
        try:
            await run(notebook, folder, self.repository, self.chapter)
            wrong = self._wrong(notebook, text)
        except CellExecutionError as error:
            wrong = self._wrong(notebook, text) or self.failure(str(error))
        except DeadKernelError:
            if (task := asyncio.current_task()) and task.cancelling():
                raise asyncio.CancelledError from None
            raise
        if wrong:
            return wrong
        seconds = round(time.perf_counter() - clock, 2)
        collect(notebook)
        # In this thread, as Python's parser fails in several at a time.
        made, torn = self._made(notebook, folder, before, data)
        if torn:
            told = f"{', '.join(sorted(torn))} changed while it ran"
            return self.failure(f"{told}: run the press again")
        notebook.metadata["press"] = {
            "inputs": made.write(),
            "cells": _digest(json.loads(nbformat.writes(notebook))),
            "commit": commit if self.repository.unchanged_since(commit) else None,
            "executed": started.isoformat(timespec="seconds"),
            "seconds": seconds,
            "machine": machine(),
        }
        write_atomically(self.notebook, nbformat.writes(notebook))
        return None

    def _made(
        self, notebook: Any, folder: Path, before: Inputs, data: Hashes
    ) -> tuple[Inputs, set[str]]:
        """Return what a notebook was made from, and what of it changed meanwhile."""
        again = Job(self.repository, self.chapter, self.profile).parameters
        checkout = Checkout(self.repository)
        known = checkout.inputs(self.chapter, again)
        trace = Trace(self.repository.root, folder / "log")
        cells = [cell.source for cell in code_cells(notebook)]
        made = trace.inputs(self.repository.relative(self.source), cells, known, data)
        after = checkout.inputs(self.chapter, again, made)
        moved = [*changes(made, after).items(), *changes(before, known).items()]
        kinds = self.bearable
        return made, {n for kind, names in moved if kind not in kinds for n in names}

    def _wrong(self, notebook: Any, text: str) -> Failure | None:
        """Return a failure for the first cell that raised or wrote an error."""
        for cell, first in zip(code_cells(notebook), cell_lines(text), strict=True):
            for output in cell.get("outputs", ()):
                if output.output_type == "error":
                    told = f"{output.ename}: {output.evalue}"
                    detail = plain("\n".join(output.traceback))
                    frame = rf"Cell In\[{cell.execution_count}\], line (\d+)"
                elif output.get("name") == "stderr" and output.text.strip():
                    told, detail = "wrote to standard error", plain(output.text.strip())
                    frame = r"ipykernel_\d+/\d+\.py:(\d+):"
                else:
                    continue
                *_, row = ["1", *re.findall(frame, detail)]
                place = f"{first + int(row) - 1}: In [{cell.execution_count}]: "
                write_atomically(self.partial, nbformat.writes(notebook))
                return self.failure(told, place, detail.splitlines())
        return None

    def failure(
        self, told: str, place: str = " ", details: list[str] | None = None
    ) -> Failure:
        """Return the failure of this job."""
        values = ", ".join(f"{k}={v!r}" for k, v in self.overrides.items())
        said = f"profile {self.profile}, parameters: {values or 'the defaults'}"
        lines = [*(details or ()), said]
        if self.partial.exists():
            lines.append(f"partial notebook: {self.repository.relative(self.partial)}")
        source = self.repository.relative(self.source)
        return Failure(self.chapter, f"{source}:{place}{told}", lines)


def stored_metadata(path: Path) -> dict[str, Any] | None:
    """Return what the press noted in an executed notebook, None if that changed."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        stored = notebook["metadata"]["press"]
        Inputs.read(stored["inputs"])
        whole = stored["cells"] == _digest(notebook) and stored.keys() >= {*NOTED}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return stored if whole else None


def plain(text: str) -> str:
    """Return text without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _digest(notebook: dict[str, Any]) -> str:
    """Return a hash of the sources and outputs of a notebook, as the file has them."""
    cells = [(cell["source"], cell.get("outputs")) for cell in notebook["cells"]]
    return content_hash(json.dumps(cells).encode())


def press(
    chapters: Sequence[str] = (),
    profile: str = "standard",
    *,
    jobs: int = 1,
    committed: bool = False,
    repository: Repository | None = None,
) -> list[str]:
    """Execute the chapters whose notebooks are missing or out of date.

    A notebook is out of date if anything that its execution depends on has changed: the
    code that ran, the data and sources it read, its parameters, the locked versions. If
    only what it displays besides has changed, such as a recorded result, it is executed
    again too, but not in the profile ``full``, which takes hours. One press at a time
    works on a profile; another waits.

    `committed` executes also what was executed with uncommitted changes; `jobs` is how
    many chapters are executed side by side. Returned are the chapters executed.

    Raises
    ------
    ChapterError
        After all chapters were tried, if any failed: by an error, by writing to
        standard error, as Python warnings and progress bars do, or because what it
        depends on changed while it ran.
    ValueError
        No such chapter or profile, or a parameter that a chapter does not declare.
    """
    repository = repository or Repository.here()
    selected = select(repository, chapters)
    found = [Job(repository, chapter, profile) for chapter in selected]
    todo: dict[str, Job] = {}
    with _only_press(repository, profile):
        checkout = Checkout(repository)
        for number, job in enumerate(found, start=1):
            title = f"[{number}/{len(found)}] {job.chapter}:"
            if job.reuse(checkout, committed):
                print(f"{title} up to date ({profile})", flush=True)
            else:
                todo[title] = job
        failures = asyncio.run(_execute(todo, jobs))
    if failures:
        raise ChapterError(failures)
    return [job.chapter for job in todo.values()]


async def _execute(todo: dict[str, Job], jobs: int) -> list[Failure]:
    """Execute jobs, some at a time; return what failed."""
    places = asyncio.Semaphore(jobs)

    async def execute(title: str, job: Job) -> Failure | None:
        async with places:
            print(f"{title} executing ({job.profile})", flush=True)
            start = time.perf_counter()
            failure = await job.execute()
            seconds, word = time.perf_counter() - start, "failed" if failure else "done"
            print(f"{title} {word} in {seconds:.1f} s", flush=True)
            return failure

    ended = await asyncio.gather(*(execute(*item) for item in todo.items()))
    return [failure for failure in ended if failure]


def _only_press(repository: Repository, profile: str) -> Any:
    """Wait until no other press works on a profile; return what lets go of it."""
    path = repository.root / "executed" / profile / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        print(f"waiting for another press ({profile})", flush=True)
        return lock.acquire()
