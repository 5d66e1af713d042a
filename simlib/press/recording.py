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

from .execution import select
from .inputs import Checkout, Inputs
from .job import Job, write_atomically
from .repository import Repository
from .results import MIME

if TYPE_CHECKING:
    from nbformat import NotebookNode

# Files that git does not know count, whatever the user's configuration hides.
_STATUS = ("status", "--porcelain", "--untracked-files=normal")
_KNOWN = ("ls-files", "--error-unmatch", "_toc.yml")
# All but recorded results, which a press that records writes while others run.
_FILES = ("--", ".", ":!book/results")


def check_clean(repository: Repository) -> None:
    """Raise unless git knows the book and would find nothing to commit."""
    changed = _git(repository, *_STATUS)
    if changed:
        raise RuntimeError(f"commit first, then record; git status says:\n{changed}")
    _git(repository, *_KNOWN)


def clean_commit(repository: Repository) -> str | None:
    """Return the commit that the files are of, None if any of them differs from it.

    Recorded results aside; None also if git does not know the book, as where it lies
    in another repository that ignores it.
    """
    try:
        _git(repository, *_KNOWN)
        changed = _git(repository, *_STATUS, *_FILES)
        return None if changed else _git(repository, "rev-parse", "HEAD")
    except (subprocess.CalledProcessError, OSError):
        return None


def unchanged_since(repository: Repository, commit: str | None) -> bool:
    """Tell whether the files are still those of a commit, recorded results aside."""
    now = clean_commit(repository)
    if commit is None or now is None:
        return False
    try:
        _git(repository, "diff", "--quiet", commit, now, *_FILES)
    except subprocess.CalledProcessError:
        return False
    return True


def record_results(repository: Repository, chapters: Sequence[str] = ()) -> list[Path]:
    """Write the results of executed full chapters to ``book/results/``.

    Parameters
    ----------
    repository : Repository
        The book.
    chapters : sequence of str
        The chapters; all if empty. Those that record nothing are passed over.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    RuntimeError
        Something was edited, committed or not, while a chapter ran, or its notebook
        is missing or out of date: it is not recorded, the others are.
    """
    import nbformat

    checkout = Checkout(repository)
    commit = clean_commit(repository)
    written, refused = [], []
    for chapter in select(repository, chapters):
        job = Job(repository, chapter, "full")
        if commit is None or not job.reuse(checkout, committed=True):
            refused.append(chapter)
            continue
        notebook = nbformat.read(job.notebook, as_version=4)
        values = collect(notebook)
        if not values:
            continue
        press = notebook.metadata["press"]
        inputs = Inputs(**press["inputs"])
        provenance = {
            "commit": press["commit"],
            "executed": press["executed"],
            "seconds": press["seconds"],
            "parameters": inputs.parameters,
            "files": inputs.files,
            "data": inputs.data,
            "machine": press["machine"],
            "key": inputs.execution_key,
            "notebook": hashlib.sha256(job.notebook.read_bytes()).hexdigest(),
        }
        results = repository.results(chapter)
        content = {"values": values, "provenance": provenance}
        write_atomically(results, json.dumps(content, indent=1) + "\n")
        written.append(results)
    if refused:
        raise RuntimeError(
            f"not recorded: {', '.join(refused)}. Something was edited while they ran; "
            "commit, then record them again."
        )
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
                raise ValueError(f"{entry['name']!r} is recorded twice: rename one")
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
