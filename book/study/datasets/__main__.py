"""Command line: ``python -m study.datasets list`` and ``fetch NAME``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from study.datasets.fetch import fetch
from study.datasets.registry import REGISTRY, available


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m study.datasets")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="what there is, and whether it is here")
    fetching = commands.add_parser("fetch", help="download, check and convert a set")
    fetching.add_argument("name", choices=REGISTRY, metavar="NAME")
    arguments = parser.parse_args(argv)
    try:
        lines = _list() if arguments.command == "list" else fetch(arguments.name)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    try:
        print(*lines, sep="\n", flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # of ``list | head``: all is well
            print(error, file=sys.stderr)
            return 1
    return 0


def _list() -> list[str]:
    return [
        f"{name} ({'here' if available(name) else 'missing'}): {dataset.title}\n"
        f"    source: {dataset.source}\n    licence: {dataset.licence}"
        for name, dataset in REGISTRY.items()
    ]


if __name__ == "__main__":
    raise SystemExit(main())
