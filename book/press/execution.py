"""Execution of chapters: each stale one once, several side by side."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from .chapters import select
from .inputs import Checkout
from .job import Failure, Job
from .repository import Repository


class ChapterError(Exception):
    """One or more chapters failed; ``failures`` has one entry for each."""

    def __init__(self, failures: list[Failure]):
        super().__init__("\n\n".join(map(str, failures)))
        self.failures = failures


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
    from filelock import FileLock, Timeout

    path = repository.root / "executed" / profile / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        print(f"waiting for another press ({profile})", flush=True)
        return lock.acquire()
