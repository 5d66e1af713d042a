"""Execution of chapters: each stale one once, through papermill."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from signal import SIG_IGN, SIGINT, SIGTERM, signal
from threading import Thread
from typing import Any

from .chapters import select
from .inputs import Checkout
from .job import ChapterError, Failure, Job
from .repository import Repository


def press(
    chapters: Sequence[str] = (),
    profile: str = "standard",
    *,
    force: bool = False,
    jobs: int = 1,
    committed: bool = False,
    repository: Repository | None = None,
    echo: Callable[[str], None] = lambda text: print(text, flush=True),
) -> list[str]:
    """Execute the chapters whose notebooks are missing or out of date.

    A notebook is out of date if anything that its execution depends on has changed: the
    code that ran, the data and sources it read, its parameters, the locked versions. If
    only what it displays besides has changed, such as a recorded result, it is executed
    again too, but not in the profile ``full``, which takes hours. One press at a time
    works on a profile; another waits.

    `force` executes also what is up to date, `committed` what was executed with
    uncommitted changes; `jobs` is how many chapters are executed side by side, `echo`
    receives the lines that report progress. Returned are the chapters executed.

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
    if not selected:
        echo("nothing to execute: no page chosen has code")
        return []
    todo = {
        chapter: Job(repository, chapter, profile, f"[{number}/{len(selected)}]")
        for number, chapter in enumerate(selected, start=1)
    }
    with _only_press(repository, profile, echo):
        checkout = Checkout(repository)
        for job in [*todo.values()]:
            if not force and job.reuse(checkout, committed):
                echo(f"{job} up to date ({profile})")
                del todo[job.chapter]
        run = _one_by_one if jobs == 1 else _side_by_side
        ended = [*run([*todo.values()], jobs, echo)]
    failures = [failure for _, failure in ended if failure]
    if failures:
        raise ChapterError(failures)
    return [job.chapter for job, _ in ended]


def _only_press(
    repository: Repository, profile: str, echo: Callable[[str], None]
) -> Any:
    """Wait until no other press works on a profile; return what lets go of it."""
    from filelock import FileLock, Timeout

    path = repository.executed(profile) / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        echo(f"waiting for another press ({profile})")
        return lock.acquire()


_Outcomes = Iterator[tuple[Job, Failure | None]]


def _one_by_one(todo: list[Job], jobs: int, echo: Callable[[str], None]) -> _Outcomes:
    for job in todo:
        echo(f"{job} executing ({job.profile})")
        start = time.perf_counter()
        try:
            failure = job.execute(progress=sys.stderr.isatty())
        except KeyboardInterrupt:
            raise KeyboardInterrupt(job.chapter) from None
        _report(job, failure, start, echo)
        yield job, failure


def _side_by_side(todo: list[Job], jobs: int, echo: Callable[[str], None]) -> _Outcomes:
    """Execute jobs in processes of their own, as papermill changes the directory."""
    context = get_context("spawn")
    waiting = todo[::-1]
    running: dict[Any, tuple[Job, SpawnProcess, float]] = {}
    ended: Any
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                job = waiting.pop()
                echo(f"{job} executing ({job.profile})")
                answer, question = context.Pipe(duplex=False)
                process = context.Process(target=_execute, args=(job, question))
                process.start()
                question.close()
                running[answer] = job, process, time.perf_counter()
            for ended in wait([*running]):
                job, process, start = running.pop(ended)
                try:
                    failure = ended.recv()
                except EOFError:
                    process.join()
                    failure = job.failure(f"its process died ({process.exitcode})")
                process.join()
                _report(job, failure, start, echo)
                yield job, failure
    except KeyboardInterrupt:
        names = ", ".join(job.chapter for job, *_ in running.values())
        raise KeyboardInterrupt(names) from None
    finally:
        for job, process, _ in running.values():
            process.terminate()
            process.join()
            job.discard()


def _execute(job: Job, answer: Connection) -> None:
    """Execute a job in a process of its own; end it as the one that waits says."""
    signal(SIGINT, SIG_IGN)
    signal(SIGTERM, lambda *_: sys.exit(1))  # and so its kernel, too
    Thread(target=_end_with_parent, daemon=True).start()
    answer.send(job.execute())


def _end_with_parent() -> None:
    """Wait for the end of the process that waits for this one, then end this one."""
    parent = parent_process()
    if parent:
        parent.join()
        os.kill(os.getpid(), SIGTERM)


def _report(
    job: Job, failure: Failure | None, start: float, echo: Callable[[str], None]
) -> None:
    seconds = time.perf_counter() - start
    echo(f"{job} {'failed' if failure else 'done'} in {seconds:.1f} s")
