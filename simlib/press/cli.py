"""The command ``press``."""

import argparse
import subprocess
import sys
from collections.abc import Sequence

from .execution import ChapterError, press
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
    repository = repository or Repository.here()
    try:
        _run(options, repository)
    except subprocess.CalledProcessError as error:
        print(f"press: git: {error.stderr.strip()}", file=sys.stderr)
        return 1
    except (ChapterError, RuntimeError, ValueError, OSError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace, repository: Repository) -> None:
    if not options.record:
        press(
            options.chapters,
            options.profile,
            force=options.force,
            repository=repository,
        )
        return
    from .recording import check_clean, record_results

    check_clean(repository)
    press(options.chapters, "full", force=options.force, repository=repository)
    for path in record_results(repository, options.chapters):
        print(f"recorded {repository.relative(path)}")
