"""Executing chapters: each stale one once, through papermill."""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .chapters import cell_lines, code_cells, read_chapter, strip_ansi
from .fingerprints import Fingerprints
from .repository import PROFILES, Repository

if TYPE_CHECKING:
    from nbformat import NotebookNode


@dataclass(frozen=True)
class Failure:
    """What went wrong in one chapter.

    ``cell`` and ``line`` are None when the kernel gave no hint of the place.
    """

    source: str
    profile: str
    parameters: dict[str, Any]
    notebook: str
    error: str
    cell: int | None = None
    line: int | None = None
    detail: str = ""

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        cell = f" In [{self.cell}]:" if self.cell else ""
        values = ", ".join(f"{k}={v!r}" for k, v in self.parameters.items())
        detail = [f"    {text}" for text in self.detail.splitlines()]
        return "\n".join(
            [
                f"{self.source}{line}:{cell} {self.error}",
                *detail,
                f"    profile {self.profile}, parameters: {values or 'the defaults'}",
                f"    partial notebook: {self.notebook}",
            ]
        )


class ChapterError(Exception):
    """One or more chapters failed; ``failures`` has one entry for each."""

    def __init__(self, failures: list[Failure]):
        super().__init__("\n\n".join(map(str, failures)))
        self.failures = failures


def press(
    chapters: Sequence[str] = (),
    profile: str = "standard",
    *,
    force: bool = False,
    repository: Repository | None = None,
    echo: Callable[[str], None] = lambda text: print(text, flush=True),
) -> list[str]:
    """Execute the chapters whose notebooks are missing or out of date.

    Parameters
    ----------
    chapters : sequence of str
        Names such as ``cur`` or ``book/cur.md``; all of ``_toc.yml`` if empty.
    profile : {"quick", "standard", "full"}
        Which parameters to use; see ``book/profiles.yml``.
    force : bool
        Execute also what is up to date.
    repository : Repository, optional
        The book; by default the one that this file belongs to.
    echo : callable
        Receives the lines that report progress.

    Returns
    -------
    list of str
        The chapters that were executed.

    Raises
    ------
    ChapterError
        After all chapters were tried, if any failed: by an error, or by writing to
        standard error, as Python warnings and progress bars do.
    """
    repository = repository or Repository.here()
    fingerprints = Fingerprints(repository)
    selected = select(repository, chapters)
    if not selected:
        echo("nothing to execute: no page chosen has code")
    executed, failures = [], []
    for number, chapter in enumerate(selected, start=1):
        job = Job(repository, chapter, profile)
        job.key = fingerprints.key(chapter, job.parameters)
        label = f"[{number}/{len(selected)}] {chapter}:"
        if not force and job.reuse():
            echo(f"{label} up to date ({profile})")
            continue
        echo(f"{label} executing ({profile})")
        start = time.perf_counter()
        failure = job.execute(data=fingerprints.inputs(chapter)["data"])
        seconds = time.perf_counter() - start
        echo(f"{label} {'failed' if failure else 'done'} in {seconds:.1f} s")
        if failure:
            failures.append(failure)
        else:
            executed.append(chapter)
    if failures:
        raise ChapterError(failures)
    return executed


def select(repository: Repository, chapters: Sequence[str] = ()) -> list[str]:
    """Return the chosen chapters that have code, in the order of the book."""
    pages = repository.pages()
    chosen = [repository.chapter_name(chapter) for chapter in chapters] or pages
    unknown = sorted(set(chosen) - set(pages))
    if unknown:
        raise ValueError(
            f"not in _toc.yml: {', '.join(unknown)}. The pages are {', '.join(pages)}."
        )
    return [
        page
        for page in pages
        if page in chosen and code_cells(read_chapter(repository.source(page)))
    ]


@dataclass
class Job:
    """One chapter to be executed with the parameters of one profile."""

    repository: Repository
    chapter: str
    profile: str
    key: str = ""
    parameters: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        overrides = self.repository.overrides(self.profile)
        self.parameters = overrides.get(self.chapter) or {}

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

    def reuse(self) -> bool:
        """Say whether a notebook with this key exists, under any profile.

        One that another profile made with the same parameters is copied.
        """
        others = (self.repository.notebook(self.chapter, other) for other in PROFILES)
        for path in (self.notebook, *others):
            if stored_key(path) == self.key:
                if path != self.notebook:
                    write_atomically(self.notebook, path.read_text(encoding="utf-8"))
                return True
        return False

    def execute(self, data: dict[str, str | None]) -> Failure | None:
        """Execute the chapter; return the failure, or store the notebook."""
        import nbformat
        import papermill
        from nbclient.exceptions import DeadKernelError
        from papermill.exceptions import PapermillExecutionError

        from .recording import machine

        self.partial.parent.mkdir(parents=True, exist_ok=True)
        started = datetime.now(UTC)
        clock = time.perf_counter()
        try:
            with _kernel_environment():
                notebook = papermill.execute_notebook(
                    read_chapter(self.source),
                    self.partial,
                    parameters=self.parameters,
                    cwd=self.repository.root,
                    progress_bar=sys.stderr.isatty(),
                )
        except PapermillExecutionError as error:
            return self._failure_of(error)
        except DeadKernelError as error:
            return self._failure(error=f"DeadKernelError: {error}")
        notebook.metadata["press"] = {
            "key": self.key,
            "parameters": self.parameters,
            "data": data,
            "executed": started.isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - clock, 2),
            "machine": machine(),
        }
        # papermill keeps the whole input and absolute paths here.
        relative = self.repository.relative
        notebook.metadata.papermill["input_path"] = relative(self.source)
        notebook.metadata.papermill["output_path"] = relative(self.notebook)
        noisy = self._stderr_of(notebook)
        if noisy:
            nbformat.write(notebook, self.partial)
            return noisy
        write_atomically(self.notebook, nbformat.writes(notebook))
        self.partial.unlink()
        return None

    def _stderr_of(self, notebook: "NotebookNode") -> Failure | None:
        """Return a failure for the first cell that wrote to standard error."""
        for number, cell in enumerate(code_cells(notebook)):
            streams = (o for o in cell.outputs if o.get("name") == "stderr")
            text = strip_ansi("".join(stream.text for stream in streams)).strip()
            if text:
                place = re.search(r"ipykernel_\d+/\d+\.py:(\d+):", text)
                return self._failure(
                    error="wrote to standard error",
                    cell=cell.execution_count,
                    line=self._line(number, place),
                    detail=text,
                )
        return None

    def _failure_of(self, error: Any) -> Failure:
        """Return the failure that papermill reports."""
        import nbformat

        cells = code_cells(nbformat.read(self.partial, as_version=4))
        counts = [cell.execution_count for cell in cells]
        traceback = strip_ansi("\n".join(error.traceback))
        frame = rf"Cell In\[{error.exec_count}\], line (\d+)"
        *_, place = [None, *re.finditer(frame, traceback)]
        return self._failure(
            error=f"{error.ename}: {error.evalue}",
            cell=error.exec_count,
            line=self._line(counts.index(error.exec_count), place)
            if error.exec_count in counts
            else None,
            detail=traceback,
        )

    def _line(self, number: int, place: re.Match | None) -> int:
        """Return the line of the chapter, given one of a code cell."""
        first = cell_lines(self.source.read_text(encoding="utf-8"))[number]
        return first + (int(place.group(1)) - 1 if place else 0)

    def _failure(self, **details: Any) -> Failure:
        return Failure(
            source=self.repository.relative(self.source),
            profile=self.profile,
            parameters=self.parameters,
            notebook=self.repository.relative(self.partial),
            **details,
        )


def stored_key(path: Path) -> str | None:
    """Return the key in an executed notebook, or None if there is none."""
    import json

    if not path.is_file():
        return None
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    except (ValueError, KeyError):
        return None
    return metadata.get("press", {}).get("key")


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that it is there either whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


@contextmanager
def _kernel_environment() -> Iterator[None]:
    """Start kernels with Python's own warning filters and no personal settings.

    Linear algebra gets one thread unless the environment says otherwise: the matrices
    of a chapter are small, and threads that wait for each other slow it down.
    """
    saved = dict(os.environ)
    os.environ.pop("PYTHONWARNINGS", None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IPYTHONDIR"] = folder
        os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(saved)
