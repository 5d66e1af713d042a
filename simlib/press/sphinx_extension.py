"""The Sphinx side: pages get the outputs of the executed notebooks."""

import os
import shutil
from datetime import datetime
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .chapters import code_cells, parse_chapter, tags
from .execution import ChapterError, Job, press, select
from .fingerprints import Fingerprints
from .repository import Repository
from .results import MIME

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from sphinx.application import Sphinx

# MathJax with its commonest fonts and the TeX extensions it loads on demand.
_MATHJAX = ("tex-chtml.js", "output/chtml/fonts/woff-v2/*", "input/tex/extensions/*.js")

# The page that Sphinx is reading; myst-nb hands its reader the text alone.
_page: Path | None = None


def setup(app: "Sphinx") -> dict[str, Any]:
    """Register the press with Sphinx."""
    app.connect("config-inited", _configure)
    app.connect("env-get-outdated", _find_outdated)
    app.connect("env-before-read-docs", _execute)
    app.connect("source-read", _note_page)
    app.connect("build-finished", _copy_mathjax)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def read_page(text: str) -> "NotebookNode":
    """Return the notebook of the page that Sphinx is reading."""
    import nbformat

    notebook = parse_chapter(text)
    if code_cells(notebook) and _page is not None:
        merge(notebook, nbformat.read(_page, as_version=4))
    return notebook


def merge(notebook: "NotebookNode", executed: "NotebookNode") -> None:
    """Give the cells of a chapter the outputs of its executed notebook.

    The cell with a profile's parameters is put in place; recorded values, which are
    for the press alone, are left out.
    """
    for cell, done in zip(code_cells(notebook), code_cells(executed), strict=True):
        cell.execution_count = done.execution_count
        cell.outputs = [o for o in done.outputs if MIME not in o.get("data", {})]
    for injected in executed.cells:
        if "injected-parameters" in tags(injected):
            at = next(
                i for i, cell in enumerate(notebook.cells) if "parameters" in tags(cell)
            )
            notebook.cells.insert(at + 1, injected)
            lines = notebook.metadata.source_map
            lines.insert(at + 1, lines[at])


def _configure(app: "Sphinx", config: Any) -> None:
    config.nb_custom_formats = {".md": f"{__name__}.read_page"}
    config.mathjax_path = "mathjax/tex-chtml.js"


def _repository(app: "Sphinx") -> Repository:
    return Repository(Path(app.srcdir))


def _profile() -> str:
    return os.environ.get("PROFILE", "standard")


def _find_outdated(app: "Sphinx", env: Any, *_: Any) -> list[str]:
    """Return the pages whose outputs will differ from those in the last build."""
    repository = _repository(app)
    fingerprints = Fingerprints(repository)
    last = getattr(env, "press_keys", {})
    env.press_keys = {}
    for chapter in select(repository):
        parameters = Job(repository, chapter, _profile()).parameters
        env.press_keys[f"book/{chapter}"] = fingerprints.key(chapter, parameters)
    pages = env.press_keys.items() - last.items()
    return sorted(page for page, _ in pages if page in env.found_docs)


def _execute(app: "Sphinx", env: Any, docnames: list[str]) -> None:
    from sphinx.errors import ExtensionError
    from sphinx.util import logging

    try:
        press(
            profile=_profile(),
            repository=_repository(app),
            echo=logging.getLogger(__name__).info,
        )
    except ChapterError as error:
        raise ExtensionError(f"chapters failed\n\n{error}") from None


def _note_page(app: "Sphinx", docname: str, source: list[str]) -> None:
    """Note which notebook belongs to a page, and what `nb-exec-table` shows of it."""
    global _page
    import nbformat
    from myst_nb.sphinx_ import NbMetadataCollector

    repository = _repository(app)
    _page = repository.notebook(repository.chapter_name(docname), _profile())
    if docname not in getattr(app.env, "press_keys", {}):
        return
    stored = nbformat.read(_page, as_version=4).metadata["press"]
    result = {
        "mtime": datetime.fromisoformat(stored["executed"]).timestamp(),
        "runtime": stored["seconds"],
        "method": f"papermill, {_profile()}",
        "succeeded": True,
        "error": None,
        "traceback": None,
    }
    NbMetadataCollector.set_exec_data(app.env, docname, result)


def _copy_mathjax(app: "Sphinx", exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    package = distribution("sphinx-mathjax-offline")
    folder = package.locate_file("sphinx-mathjax-offline/static/mathjax")
    source = Path(str(folder))
    for pattern in _MATHJAX:
        for file in source.glob(pattern):
            if file.name == "all-packages.js":
                continue
            target = Path(app.outdir, "_static/mathjax", file.relative_to(source))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
