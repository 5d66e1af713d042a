"""Recording: results from executed notebooks, with how they came about."""

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .execution import select, write_atomically
from .repository import Repository
from .results import MIME

if TYPE_CHECKING:
    from nbformat import NotebookNode


def check_clean(repository: Repository) -> None:
    """Raise unless git would find nothing to commit."""
    changed = _git(repository, "status", "--porcelain")
    if changed:
        raise RuntimeError(f"commit first, then record; git status says:\n{changed}")


def record_results(repository: Repository, chapters: Sequence[str] = ()) -> list[Path]:
    """Write the results of executed full chapters to ``book/results/``.

    Parameters
    ----------
    repository : Repository
        The book; its tree must have been clean when the chapters were executed.
    chapters : sequence of str
        The chapters; all if empty. Those that record nothing are passed over.

    Returns
    -------
    list of Path
        The files written.
    """
    import nbformat

    commit = _git(repository, "rev-parse", "HEAD")
    written = []
    for chapter in select(repository, chapters):
        path = repository.notebook(chapter, "full")
        notebook = nbformat.read(path, as_version=4)
        values = collect(notebook)
        if not values:
            continue
        press = notebook.metadata["press"]
        provenance = {
            "commit": commit,
            "executed": press["executed"],
            "seconds": press["seconds"],
            "parameters": press["parameters"],
            "data": press["data"],
            "machine": press["machine"],
            "key": press["key"],
            "notebook": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        results = repository.results(chapter)
        content = {"values": values, "provenance": provenance}
        write_atomically(results, json.dumps(content, indent=1) + "\n")
        written.append(results)
    return written


def collect(notebook: "NotebookNode") -> dict[str, Any]:
    """Return the values that an executed notebook recorded."""
    values: dict[str, Any] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            entry = output.get("data", {}).get(MIME)
            if entry is None:
                continue
            if entry["name"] in values:
                raise ValueError(f"{entry['name']!r} is recorded twice")
            values[entry["name"]] = entry["value"]
    return values


def machine() -> dict[str, Any]:
    """Return the processor and the versions that results may depend on."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _git(repository: Repository, *arguments: str) -> str:
    command = ["git", "-C", str(repository.root), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()
