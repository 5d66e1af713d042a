"""The command ``press``."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from .confirmation import confirm, status, summary
from .execution import ChapterError, press
from .repository import PROFILES, Repository

_OPTIONS = {
    "--status": "execute nothing; say what is out of date, and why",
    "--confirm": "execute in the profile quick what a changed record comes from, and "
    "compare with the probe that was kept with it",
    "--record": "write book/results/; only with --profile full and nothing to commit",
}


def main(
    arguments: Sequence[str] | None = None, repository: Repository | None = None
) -> int:
    """Run the command, by default on this book; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="press", description="Execute the chapters that are out of date."
    )
    told = "name such as core or book/core.md; all by default"
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help=told)
    parser.add_argument("--profile", choices=PROFILES, default="standard")
    told = "how many chapters to execute side by side"
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help=told)
    instead = parser.add_mutually_exclusive_group()
    for option, told in _OPTIONS.items():
        instead.add_argument(option, action="store_true", help=told)
    options = parser.parse_args(arguments)
    if options.record and options.profile != "full":
        parser.error("--record needs --profile full")
    if options.jobs < 1:
        parser.error(f"--jobs wants a number of chapters, not {options.jobs}")
    with suppress(ValueError):  # in another thread than the main one
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        held = _run(options, repository or Repository.here())
        sys.stdout.flush()
        return 0 if held else 1
    except KeyboardInterrupt:
        print("\npress: interrupted; what was done is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:  # as in press --status | head; and so at the exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except subprocess.CalledProcessError as error:
        print(f"press: git: {error.stderr.strip()}", file=sys.stderr)
    except (ChapterError, RuntimeError, ValueError, OSError) as error:
        print(f"\n{error}", file=sys.stderr)
    return 1


def _run(options: argparse.Namespace, repository: Repository) -> bool:
    """Do what was asked; return whether the records hold, where that was asked."""
    chapters, jobs = options.chapters, options.jobs
    if options.record:
        from .recording import record_chapters

        record_chapters(repository, chapters, jobs)
        return True
    if options.status:
        rows = status(chapters, options.profile, repository=repository)
    elif options.confirm:
        rows = confirm(chapters, jobs=jobs, repository=repository)
    else:
        press(chapters, options.profile, jobs=jobs, repository=repository)
        return True
    print(*rows, sep="\n")
    print(summary(rows))
    verdicts = {row.record.verdict for row in rows if row.record}
    return not (options.confirm and verdicts & {"moved", "not confirmed"})
