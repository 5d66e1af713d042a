"""One chapter, executed once: what goes in, what comes out, what can go wrong."""

import json
import logging
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import tracer
from .chapters import cell_lines, code_cells, parameters, parse_chapter, read_chapter
from .code import content_hash
from .git import clean_commit, unchanged_since
from .inputs import Checkout, Inputs, Trace, changes
from .repository import PROFILES, Repository, write_atomically
from .results import collect

if TYPE_CHECKING:
    from nbformat import NotebookNode

# What a user sets for sessions of their own: filters, a start, a way to draw, kernels.
PERSONAL = (
    "PYTHONWARNINGS",
    "PYTHONSTARTUP",
    "MPLBACKEND",
    "MATPLOTLIBRC",
    "JUPYTER_PATH",
)

# What the press notes in a notebook, besides its cells and what it was made from.
NOTED = ("commit", "executed", "seconds", "machine")


@dataclass(frozen=True)
class Failure:
    """What went wrong in one chapter, at a cell and line or, if not known, None."""

    source: str
    profile: str
    parameters: dict[str, Any]
    notebook: str
    error: str
    cell: int | None = None
    line: int | None = None
    detail: str = ""

    def __str__(self):
        line = f":{self.line}" if self.line else ""
        cell = f" In [{self.cell}]:" if self.cell else ""
        values = ", ".join(f"{k}={v!r}" for k, v in self.parameters.items())
        lines = [f"{self.source}{line}:{cell} {self.error}", *self.detail.splitlines()]
        lines.append(f"profile {self.profile}, parameters: {values or 'the defaults'}")
        if self.notebook:
            lines.append(f"partial notebook: {self.notebook}")
        return "\n    ".join(lines)


class ChapterError(Exception):
    """One or more chapters failed; ``failures`` has one entry for each."""

    def __init__(self, failures: list[Failure]):
        super().__init__("\n\n".join(map(str, failures)))
        self.failures = failures


@dataclass
class Job:
    """One chapter to be executed with the parameters of one profile."""

    repository: Repository
    chapter: str
    profile: str
    number: str = ""
    overrides: dict[str, Any] = field(init=False)
    parameters: dict[str, Any] = field(init=False)
    text: str = field(init=False, repr=False, default="")  # as it was executed

    def __post_init__(self):
        declared = parameters(read_chapter(self.source))
        self.overrides = self.repository.overrides(self.profile).get(self.chapter) or {}
        self.parameters = declared | self.overrides
        unknown = sorted(map(str, self.overrides.keys() - declared.keys()))
        if unknown:
            raise ValueError(
                f"book/profiles.yml, {self.profile}: {self.chapter} has no parameter "
                f"{', '.join(unknown)}; it has {', '.join(declared) or 'none'}."
            )

    def __str__(self):
        return f"{self.number} {self.chapter}:"

    @property
    def source(self) -> Path:
        """The chapter's text."""
        return self.repository.source(self.chapter)

    @property
    def notebook(self) -> Path:
        """Where the executed notebook belongs."""
        return self.repository.notebook(self.chapter, self.profile)

    @property
    def partial(self) -> Path:
        """Where the notebook lies until it is complete."""
        return self.notebook.with_suffix(".partial.ipynb")

    @property
    def bearable(self) -> set[str]:
        """The kinds of changes after which a notebook still serves."""
        return {"display"} if self.profile == "full" else set()

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

    def execute(self, progress: bool = False) -> Failure | None:
        """Execute the chapter; return the failure, or store the notebook."""
        from papermill.exceptions import PapermillExecutionError

        try:
            with tempfile.TemporaryDirectory() as folder:
                return self._execute(Path(folder), progress)
        except (KeyboardInterrupt, SystemExit):
            # Else asyncio reports the cell that was given up, in a hundred lines.
            logging.getLogger("asyncio").setLevel(logging.CRITICAL)
            self.discard()
            raise
        except PapermillExecutionError as error:
            return self._failure_of(error)
        except Exception as error:
            if isinstance(error, OSError) and error.errno and error.filename is None:
                self.discard()  # as on a full disk
                where = self.repository.relative(self.partial)
                return self.failure(f"cannot write {where}: {error.strerror}")
            return self.failure(f"{type(error).__name__}: {error}")

    def _execute(self, folder: Path, progress: bool) -> Failure | None:
        import nbformat
        import papermill

        started, clock = datetime.now(UTC), time.perf_counter()
        checkout = Checkout(self.repository)
        before, data = checkout.inputs(self.chapter, self.parameters), checkout.data
        self.text = self.source.read_text(encoding="utf-8")
        commit = clean_commit(self.repository)
        self.partial.parent.mkdir(parents=True, exist_ok=True)
        with _kernel_environment(folder, self.repository):
            notebook = papermill.execute_notebook(
                parse_chapter(self.text),
                self.partial,
                parameters=self.overrides,
                cwd=self.repository.root,
                progress_bar=progress,
            )
        seconds = round(time.perf_counter() - clock, 2)
        noisy = self._stderr_of(notebook)
        if noisy:
            nbformat.write(notebook, self.partial)
            return noisy
        collect(notebook)
        trace = Trace(self.repository.root, folder / "log")
        again: dict[str, Any] = {}
        with suppress(Exception):  # the chapter or profiles.yml is no longer whole
            again = Job(self.repository, self.chapter, self.profile).parameters
        checkout = Checkout(self.repository)
        known = checkout.inputs(self.chapter, again)
        cells = [cell.source for cell in code_cells(notebook)]
        made = trace.inputs(self.repository.relative(self.source), cells, known, data)
        after = checkout.inputs(self.chapter, again, made)
        moved = [*changes(made, after).items(), *changes(before, known).items()]
        torn = {n for kind, names in moved if kind not in self.bearable for n in names}
        if torn:
            told = f"{', '.join(sorted(torn))} changed while it ran"
            return self.failure(f"{told}: run the press again")
        notebook.metadata["press"] = {
            "inputs": made.write(),
            "cells": _digest(json.loads(nbformat.writes(notebook))),
            "commit": commit if unchanged_since(self.repository, commit) else None,
            "executed": started.isoformat(timespec="seconds"),
            "seconds": seconds,
            "machine": machine(),
        }
        # papermill keeps the whole input and absolute paths here.
        relative = self.repository.relative
        notebook.metadata.papermill["input_path"] = relative(self.source)
        notebook.metadata.papermill["output_path"] = relative(self.notebook)
        write_atomically(self.notebook, nbformat.writes(notebook))
        self.partial.unlink()
        return None

    def discard(self) -> None:
        """Remove the notebook that is not complete."""
        self.partial.unlink(missing_ok=True)

    def _stderr_of(self, notebook: "NotebookNode") -> Failure | None:
        """Return a failure for the first cell that wrote to standard error."""
        for number, cell in enumerate(code_cells(notebook)):
            streams = (o for o in cell.outputs if o.get("name") == "stderr")
            text = plain("".join(stream.text for stream in streams)).strip()
            if text:
                place = re.search(r"ipykernel_\d+/\d+\.py:(\d+):", text)
                told, line = "wrote to standard error", self._line(number, place)
                return self.failure(told, cell.execution_count, line, text)
        return None

    def _failure_of(self, error: Any) -> Failure:
        """Return the failure that papermill reports."""
        import nbformat

        cells = code_cells(nbformat.read(self.partial, as_version=4))
        counts = [cell.execution_count for cell in cells]
        traceback = plain("\n".join(error.traceback))
        frame = rf"Cell In\[{error.exec_count}\], line (\d+)"
        *_, place = [None, *re.finditer(frame, traceback)]
        line, told = None, f"{error.ename}: {error.evalue}"
        if error.exec_count in counts:
            line = self._line(counts.index(error.exec_count), place)
        return self.failure(told, error.exec_count, line, traceback)

    def _line(self, number: int, place: re.Match | None) -> int:
        """Return the line of the chapter, given one of a code cell."""
        first = cell_lines(self.text)[number]
        return first + (int(place.group(1)) - 1 if place else 0)

    def failure(self, error: str, *details: Any) -> Failure:
        """Return the failure of this job."""
        relative = self.repository.relative
        partial = relative(self.partial) if self.partial.exists() else ""
        source = relative(self.source)
        return Failure(source, self.profile, self.overrides, partial, error, *details)


def stored_metadata(path: Path) -> dict[str, Any] | None:
    """Return what the press noted in an executed notebook, None if that changed."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        stored = notebook["metadata"]["press"]
        Inputs.read(stored["inputs"])
        whole = stored["cells"] == _digest(notebook) and stored.keys() >= {*NOTED}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return stored if whole else None


def plain(text: str) -> str:
    """Return text without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _digest(notebook: dict[str, Any]) -> str:
    """Return a hash of the sources and outputs of a notebook, as the file has them."""
    cells = [(cell["source"], cell.get("outputs")) for cell in notebook["cells"]]
    return content_hash(json.dumps(cells).encode())


@contextmanager
def _kernel_environment(folder: Path, repository: Repository) -> Iterator[None]:
    """Start kernels traced, with Python's own warning filters, no personal settings.

    Linear algebra gets one thread unless the environment says otherwise.
    """
    shutil.copyfile(tracer.__file__, folder / "sitecustomize.py")
    startup = folder / "ipython" / "profile_default" / "startup" / "press.py"
    startup.parent.mkdir(parents=True)
    startup.write_text("get_ipython().ast_transformers.append(__ran__.cells)\n")
    saved = dict(os.environ)
    for name in PERSONAL:
        os.environ.pop(name, None)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    path = os.environ.get("PYTHONPATH")
    os.environ |= {
        "IPYTHONDIR": str(folder / "ipython"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONPATH": os.pathsep.join([str(folder), *([path] if path else [])]),
        "PRESS_ROOT": str(repository.root),
        "PRESS_LOG": str(folder / "log"),
        "PRESS_DATA": repository.data,
    }
    fonts = Path(sys.prefix, "matplotlib")
    if fonts.is_dir():  # made by make
        os.environ["MPLCONFIGDIR"] = str(fonts)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


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
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        if found := re.search(r"^model name.*?:(.*)", text, re.MULTILINE):
            return found[1].strip()
    return platform.processor() or platform.machine()
