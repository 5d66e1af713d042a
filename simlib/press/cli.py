"""The command ``press``."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from .execution import press, select
from .freshness import status, strays
from .job import ChapterError
from .repository import PROFILES, Repository


def main(
    arguments: Sequence[str] | None = None, repository: Repository | None = None
) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line, by default that of the process.
    repository : Repository, optional
        The book; by default the one that this file belongs to.
    """
    parser = argparse.ArgumentParser(
        prog="press", description="Execute the chapters that are out of date."
    )
    parser.add_argument(
        "chapters",
        nargs="*",
        metavar="CHAPTER",
        help="name such as cur or book/cur.md; all by default",
    )
    parser.add_argument("--profile", choices=PROFILES, default="standard")
    parser.add_argument(
        "-j",
        "--jobs",
        type=_positive,
        default=1,
        metavar="N",
        help="how many chapters to execute side by side",
    )
    parser.add_argument(
        "--status",
        action="store_true",
        help="execute nothing; say what is out of date, and why",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="write book/results/; only with --profile full and nothing to commit",
    )
    parser.add_argument(
        "--force", action="store_true", help="execute also what is up to date"
    )
    options = parser.parse_args(arguments)
    if options.record and options.profile != "full":
        parser.error("--record needs --profile full")
    ends = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    # Left as they are: a hang-up that nohup ignores, and what has a handler.
    caught = [end for end in ends if end and signal.getsignal(end) == signal.SIG_DFL]
    for end in caught:
        signal.signal(end, lambda number, _: sys.exit(128 + number))
    try:
        _run(options, repository or Repository.here())
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        where = f" in {interrupt}" if str(interrupt) else ""
        print(f"\npress: interrupted{where}; what was done is kept", file=sys.stderr)
        return 130
    except subprocess.CalledProcessError as error:
        print(f"press: git: {error.stderr.strip()}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # as in press --status | head; and so at the exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ModuleNotFoundError as error:
        print(f"press: {error}; pip install 'simlib[book]'", file=sys.stderr)
        return 1
    except (ChapterError, RuntimeError, ValueError, OSError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    finally:
        for end in caught:
            signal.signal(end, signal.SIG_DFL)
    return 0


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of chapters")
    return int(text)


def _run(options: argparse.Namespace, repository: Repository) -> None:
    if options.status:
        for row in status(options.chapters, options.profile, repository=repository):
            print(row)
        for stray in [] if options.chapters else strays(repository):
            print(f"{stray}: of no page in _toc.yml")
        return
    if not options.record:
        _press(options, repository)
        return
    from .recording import check_clean, record_results

    check_clean(repository)
    good = select(repository, options.chapters)
    failed = None
    try:
        _press(options, repository)
    except ChapterError as error:
        failed = error
        bad = {repository.chapter_name(failure.source) for failure in error.failures}
        good = [chapter for chapter in good if chapter not in bad]
    try:
        for path in record_results(repository, good) if good else []:
            print(f"recorded {repository.relative(path)}")
    except RuntimeError as refused:
        if failed:
            raise RuntimeError(f"{failed}\n\n{refused}") from refused
        raise
    if failed:
        raise failed


def _press(options: argparse.Namespace, repository: Repository) -> None:
    press(
        options.chapters,
        options.profile,
        force=options.force,
        jobs=options.jobs,
        committed=options.record,
        repository=repository,
    )
