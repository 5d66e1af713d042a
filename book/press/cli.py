"""The command ``press``."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .chapters import select
from .confirmation import confirm, status, strays, summary
from .execution import press
from .job import ChapterError, Failure
from .repository import PROFILES, Repository

_CHAPTERS = "name such as cur or book/cur.md; all by default"
_JOBS = "how many chapters to execute side by side"
_OPTIONS = {
    "--status": "execute nothing; say what is out of date, and why",
    "--confirm": "execute in the profile quick what a changed record comes from, and "
    "compare with the probe that was kept with it",
    "--record": "write book/results/; only with --profile full and nothing to commit",
    "--force": "execute also what is up to date",
}


def main(
    arguments: Sequence[str] | None = None, repository: Repository | None = None
) -> int:
    """Run the command, by default on this book; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="press", description="Execute the chapters that are out of date."
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help=_CHAPTERS)
    parser.add_argument("--profile", choices=PROFILES, default="standard")
    parser.add_argument(
        "-j", "--jobs", type=_positive, default=1, metavar="N", help=_JOBS
    )
    for option, told in _OPTIONS.items():
        parser.add_argument(option, action="store_true", help=told)
    options = parser.parse_args(arguments)
    if options.record and options.profile != "full":
        parser.error("--record needs --profile full")
    ends = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    # Left as they are: a hang-up that nohup ignores, and what has a handler.
    caught = [end for end in ends if end and signal.getsignal(end) == signal.SIG_DFL]
    for end in caught:
        signal.signal(end, lambda number, _: sys.exit(128 + number))
    try:
        held = _run(options, repository or Repository.here())
        sys.stdout.flush()
        return 0 if held else 1
    except KeyboardInterrupt as interrupt:
        where = f" in {interrupt}" if str(interrupt) else ""
        print(f"\npress: interrupted{where}; what was done is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:  # as in press --status | head; and so at the exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except subprocess.CalledProcessError as error:
        print(f"press: git: {error.stderr.strip()}", file=sys.stderr)
    except ModuleNotFoundError as error:
        print(f"press: {error}; pip install -e . -e ./book", file=sys.stderr)
    except (ChapterError, RuntimeError, ValueError, OSError) as error:
        print(f"\n{error}", file=sys.stderr)
    finally:
        for end in caught:
            signal.signal(end, signal.SIG_DFL)
    return 1


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of chapters")
    return int(text)


def _run(options: argparse.Namespace, repository: Repository) -> bool:
    """Do what was asked; return whether the records hold, where that was asked."""
    if options.status or options.confirm:
        return _tell(options, repository)
    run = partial(
        press,
        force=options.force,
        jobs=options.jobs,
        committed=options.record,
        repository=repository,
    )
    if options.record:
        _record(run, select(repository, options.chapters), repository)
    else:
        run(options.chapters, options.profile)
    return True


def _record(run: Callable[..., Any], good: list[str], repository: Repository) -> None:
    """Execute in full, and in short for the probe; record what did not fail."""
    from .git import check_clean
    from .recording import record_results

    check_clean(repository)
    failures: list[Failure] = []
    for profile in ("full", "quick"):
        try:
            if good:
                run(good, profile)
        except ChapterError as error:
            failures += error.failures
            bad = {repository.chapter_name(f.source) for f in error.failures}
            good = [chapter for chapter in good if chapter not in bad]
    failed = ChapterError(failures) if failures else None
    try:
        for chapter in record_results(repository, good) if good else []:
            print(f"recorded {repository.relative(repository.results(chapter))}")
    except RuntimeError as refused:
        raise RuntimeError(f"{failed}\n\n{refused}" if failed else refused) from None
    if failed:
        raise failed


def _tell(options: argparse.Namespace, repository: Repository) -> bool:
    """Say what is out of date; confirm records first, where that was asked."""
    if options.confirm:
        rows = confirm(options.chapters, jobs=options.jobs, repository=repository)
    else:
        rows = status(options.chapters, options.profile, repository=repository)
    for row in rows:
        print(row)
    for stray in [] if options.chapters else strays(repository):
        print(f"{stray}: of no page in _toc.yml")
    print(summary(rows))
    verdicts = {row.record.verdict for row in rows if row.record}
    return not (options.confirm and verdicts & {"moved", "not confirmed"})
