"""The Sphinx side: pages get the outputs of the executed notebooks."""

import os
import shutil
from datetime import datetime
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from .chapters import code_cells, parse_chapter, tags
from .execution import press, select
from .freshness import Status, describe, status
from .job import ChapterError, stored_metadata
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
    app.add_directive("press-status", PressStatus)
    app.connect("config-inited", _configure)
    app.connect("builder-inited", _execute)
    app.connect("env-get-outdated", _find_outdated)
    app.connect("source-read", _note_page)
    app.connect("build-finished", _copy_mathjax)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


class PressStatus(SphinxDirective):
    """The directive ``press-status``: what was executed, and what is still fresh."""

    def run(self) -> list[nodes.Node]:
        """Return a table of the chapters."""
        rows = status(profile=_profile(), repository=_repository(self.env.app))
        here = sum(row.seconds or 0 for row in rows)
        recorded = sum(row.provenance.get("seconds", 0) for row in rows)
        lines = [
            f"| Chapter | Seconds ({_profile()}) | Recorded run | Seconds | Result |",
            "|:--|--:|:--|--:|:--|",
            *map(_row, rows),
            f"| All | {here:.0f} | | {recorded:.0f} | |",
        ]
        table = nodes.container()
        self.state.nested_parse(StringList(lines, ""), self.content_offset, table)
        return table.children


def _row(row: Status) -> str:
    """Return the line of a chapter in the table of `PressStatus`."""
    cells = [f"{{doc}}`{row.chapter}`", f"{row.seconds or 0:.0f}", "", "", ""]
    if row.record is not None:
        made, state = row.provenance, describe(row.record)
        if "code" in row.record:
            changed, all_files = row.record["code"], made.get("files", ())
            folded = (
                f"<details><summary>{len(changed)} of {len(all_files)} files</summary>"
                f"{', '.join(f'`{file}`' for file in changed)}</details>"
            )
            state = describe(row.record | {"code": [folded]})
        cells[2:] = [made["executed"][:10], f"{made['seconds']:.0f}", state]
    return f"| {' | '.join(cells)} |"


def read_page(text: str) -> "NotebookNode":
    """Return the notebook of the page that Sphinx is reading."""
    import nbformat

    notebook = parse_chapter(text)
    if code_cells(notebook) and _page is not None:
        merge(notebook, nbformat.read(_page, as_version=4))
    return notebook


def merge(notebook: "NotebookNode", executed: "NotebookNode") -> None:
    """Give the cells of a chapter the outputs of its executed notebook.

    The cell with a profile's parameters is put in place, folded as the chapter's own;
    recorded values, which are for the press alone, are left out.
    """
    for cell, done in zip(code_cells(notebook), code_cells(executed), strict=True):
        cell.execution_count = done.execution_count
        cell.outputs = [o for o in done.outputs if MIME not in o.get("data", {})]
    for injected in executed.cells:
        if "injected-parameters" in tags(injected):
            at = next(
                i for i, cell in enumerate(notebook.cells) if "parameters" in tags(cell)
            )
            folded = [tag for tag in tags(notebook.cells[at]) if tag != "parameters"]
            injected.metadata["tags"] = ["injected-parameters", *folded]
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


def _execute(app: "Sphinx") -> None:
    from sphinx.errors import ExtensionError
    from sphinx.util import logging

    try:
        press(
            profile=_profile(),
            repository=_repository(app),
            echo=logging.getLogger(__name__).info,
        )
    except (ChapterError, ValueError) as error:
        raise ExtensionError(f"chapters failed\n\n{error}") from None


def _find_outdated(app: "Sphinx", env: Any, *_: Any) -> list[str]:
    """Return the pages whose outputs will differ from those in the last build."""
    repository = _repository(app)
    last = getattr(env, "press_keys", {})
    env.press_keys = {}
    for chapter in select(repository):
        stored = stored_metadata(repository.notebook(chapter, _profile())) or {}
        env.press_keys[f"book/{chapter}"] = stored
    pages = [page for page, key in env.press_keys.items() if last.get(page) != key]
    return [page for page in pages if page in env.found_docs]


def _note_page(app: "Sphinx", docname: str, source: list[str]) -> None:
    """Note which notebook belongs to a page, and what `nb-exec-table` shows of it."""
    global _page
    from myst_nb.sphinx_ import NbMetadataCollector

    repository = _repository(app)
    _page = repository.notebook(repository.chapter_name(docname), _profile())
    stored = getattr(app.env, "press_keys", {}).get(docname)
    if not stored:
        return
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
    source = Path(str(package.locate_file("sphinx-mathjax-offline/static/mathjax")))
    for pattern in _MATHJAX:
        for file in source.glob(pattern):
            if file.name == "all-packages.js":
                continue
            target = Path(app.outdir, "_static/mathjax", file.relative_to(source))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
