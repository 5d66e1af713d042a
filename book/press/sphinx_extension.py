"""The Sphinx side: pages get the outputs of the executed notebooks."""

import os
import posixpath
import re
import shutil
from functools import partial
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from docutils import nodes
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from .chapters import (
    DECLARED,
    INJECTED,
    code_cells,
    parameters,
    parse_chapter,
    read_chapter,
    select,
    tags,
)
from .confirmation import Status, describe, status
from .downloads import links, record_files, run_it
from .execution import ChapterError, press
from .repository import Repository
from .results import MIME
from .standalone import hide_values, standalone
from .typography import typeset_page

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from sphinx.application import Sphinx

# MathJax with its commonest fonts and the TeX extensions it loads on demand.
_MATHJAX = ("tex-chtml.js", "output/chtml/fonts/woff-v2/*", "input/tex/extensions/*.js")

_PRELOAD = re.compile(r' *<link rel="preload" as="font"[^>]*>\n')

# What opens and closes folded parameters, in place of "Show the source".
_FOLDED = {DECLARED: "the parameters", INJECTED: "the parameters of this run"}

# At the head of a notebook that was taken home.
_NEEDS = (
    "*This notebook runs in a checkout of the repository, in the environment that "
    "`make book` creates: `study` and `press` are not part of `pip install simlib`.*"
)

# Several attributes under one description, which napoleon would take for one.
_JOINED = re.compile(r"(?P<indent> *)(?P<names>\w+(, \w+)+) :(?P<kind>.*)")

# The page that Sphinx is reading; myst-nb hands its reader the text alone.
_page: Path | None = None


def setup(app: "Sphinx") -> dict[str, Any]:
    """Register the press with Sphinx."""
    app.add_directive("press-status", PressStatus)
    app.add_directive("recorded-results", RecordedResults)
    app.connect("builder-inited", _execute)
    app.connect("source-read", _note_page)
    app.connect("autodoc-process-docstring", _split_attributes, priority=400)
    app.connect("doctree-resolved", typeset_page)
    app.connect("html-page-context", _offer_notebook)
    app.connect("build-finished", _finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


class RecordedResults(SphinxDirective):
    """The directive ``recorded-results``: links to the files of all records."""

    def run(self) -> list[nodes.Node]:
        """Return a table of the chapters and their files."""
        repository = _repository(self.env.app)
        rows = ["| Chapter | Recorded |", "|:--|:--|"]
        for page in repository.pages():
            if files := record_files(repository, page):
                rows.append(f"| {{doc}}`{page}` | {links(files)} |")
        return self.parse_text_to_nodes("\n".join(rows))


class PressStatus(SphinxDirective):
    """The directive ``press-status``: what was executed, and what is still fresh."""

    def run(self) -> list[nodes.Node]:
        """Return a table of the chapters."""
        rows = status(profile=_profile(), repository=_repository(self.env.app))
        here = sum(row.seconds or 0 for row in rows)
        recorded = sum(row.provenance.get("seconds", 0) for row in rows)
        head = f"| Chapter | Seconds ({_profile()}) | Recorded run | Seconds | Result |"
        last = f"| All | {here:.0f} | | {recorded:.0f} | |"
        lines = [head, "|:--|--:|:--|--:|:--|", *map(_row, rows), last]
        return self.parse_text_to_nodes("\n".join(lines))


def _row(row: Status) -> str:
    """Return the line of a chapter in the table of `PressStatus`."""
    cells = [f"{{doc}}`{row.chapter}`", f"{row.seconds or 0:.0f}", "", "", ""]
    if row.record is not None:
        made, told = row.provenance, str(row.record)
        names = row.record.changed.get("code", ())
        if row.record.verdict in ("not confirmed", "data missing") and names:
            listed = ", ".join(f"`{name}`" for name in names)
            folded = f"<summary>{len(names)} functions and files</summary>{listed}"
            changed = row.record.changed | {"code": [f"<details>{folded}</details>"]}
            told = f"{row.record.verdict}: {describe(changed)}"
        cells[2:] = [made["executed"][:10], f"{made['seconds']:.0f}", told]
    return f"| {' | '.join(cells)} |"


def read_page(text: str) -> "NotebookNode":
    """Return the notebook of the page that Sphinx is reading."""
    notebook = parse_chapter(text)
    if code_cells(notebook) and _page is not None:
        executed = nbformat.read(_page, as_version=4)
        merge(notebook, executed)
        _append_box(notebook, executed, _page)
    return notebook


def merge(notebook: "NotebookNode", executed: "NotebookNode") -> None:
    """Give the cells of a chapter the outputs of its executed notebook.

    The cell with a profile's parameters is put in place, folded as the chapter's own,
    and the words on the folds say what is in them; recorded values, which are for the
    press alone, are left out; what is glued and is no figure is in the text alone.
    """
    for cell, done in zip(code_cells(notebook), code_cells(executed), strict=True):
        cell.execution_count = done.execution_count
        cell.outputs = [o for o in done.outputs if MIME not in o.get("data", {})]
    hide_values(notebook)
    for injected in (cell for cell in executed.cells if INJECTED in tags(cell)):
        place = [DECLARED in tags(cell) for cell in notebook.cells].index(True)
        folded = [tag for tag in tags(notebook.cells[place]) if tag != DECLARED]
        injected.metadata["tags"] = [INJECTED, *folded]
        notebook.cells.insert(place + 1, injected)
        lines = notebook.metadata.source_map
        lines.insert(place + 1, lines[place])
    for cell in notebook.cells:
        for tag in _FOLDED.keys() & tags(cell):
            prompts = {
                f"code_prompt_{k.lower()}": f"{k} {_FOLDED[tag]}"
                for k in ("Show", "Hide")
            }
            cell.metadata["mystnb"] = prompts


def _append_box(notebook: "NotebookNode", executed: "NotebookNode", page: Path) -> None:
    """End a chapter that has parameters with the command that executes it again."""
    kept = executed.metadata["press"]["inputs"]["parameters"]
    values = {name: kept[name] for name in parameters(notebook)}
    if values:
        repository = Repository(page.parents[2])
        [row] = status([page.stem], repository=repository)
        files = [f"/{repository.relative(page)}", f"{page.stem}.md"]
        files += record_files(repository, page.stem)
        box = nbformat.v4.new_markdown_cell(run_it(row, values, files))
        notebook.cells.append(box)
        notebook.metadata.source_map.append(notebook.metadata.source_map[-1])


def _repository(app: "Sphinx") -> Repository:
    return Repository(Path(app.srcdir))


def _profile() -> str:
    return os.environ.get("PROFILE", "standard")


def _execute(app: "Sphinx") -> None:
    try:
        press(profile=_profile(), repository=_repository(app))
    except (ChapterError, ValueError) as error:
        raise ExtensionError(f"chapters failed\n\n{error}") from None


def _split_attributes(
    app: "Sphinx", what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Describe each attribute of a class by itself, also where they share a text."""
    if what not in ("class", "exception") or "Attributes" not in map(str.strip, lines):
        return
    start = [line.strip() for line in lines].index("Attributes")
    whole, lines[start:] = lines[start:], []
    while whole:
        line, text = whole.pop(0), []
        if not (joined := _JOINED.fullmatch(line)):
            lines.append(line)
            continue
        while whole and (
            not whole[0].strip() or whole[0].startswith(joined["indent"] + " ")
        ):
            text.append(whole.pop(0))
        for each in joined["names"].split(", "):
            lines += [f"{joined['indent']}{each} :{joined['kind']}", *text]


def _note_page(app: "Sphinx", docname: str, source: list[str]) -> None:
    """Note which notebook belongs to a page."""
    global _page
    _page = _notebook(app, docname)


def _notebook(app: "Sphinx", docname: str) -> Path:
    repository = _repository(app)
    return repository.notebook(repository.chapter_name(docname), _profile())


def _offer_notebook(
    app: "Sphinx", page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Let the theme's button offer the executed notebook of a page.

    And leave out the scripts of live code, which no page has and which are in twice.
    """
    if _notebook(app, page).exists():
        context["ipynb_source"] = f"{page}.ipynb"
    context["script_files"] = [
        script
        for script in context["script_files"]
        if "thebe" not in f"{script.filename} {script.attributes}".lower()
    ]


def _told(app: "Sphinx", page: str, role: str, target: str) -> str:
    """Return the text that a reference has on a page."""
    domain, _, kind = role.rpartition(":")
    domain = domain or {"eq": "math", "cite": "cite"}.get(role, "std")
    kind = "p" if role == "cite" else kind
    explicit = re.fullmatch(r"(.*?)\s*<(.*)>", target, re.DOTALL)
    text, label = explicit.groups() if explicit else ("", target)
    if kind == "doc":
        label = posixpath.join(posixpath.dirname(page), label)
    options = {"refdoc": page, "reftarget": label, "refexplicit": bool(text)}
    node = addnodes.pending_xref("", nodes.inline(text, text), **options)
    asked = app.env, page, app.builder, kind, label, node, nodes.inline(text, text)
    found = app.env.domains[domain].resolve_xref(*asked)
    return found.astext() if found is not None else text or label


def _finish(app: "Sphinx", exception: Exception | None) -> None:
    """Put MathJax and the executed notebooks into a built book.

    And leave out the theme's preloading of fonts, an error in pages opened as files.
    """
    if exception or app.builder.format != "html":
        return
    folder, repository = Path(app.outdir), _repository(app)
    package = distribution("sphinx-mathjax-offline")
    mathjax = Path(str(package.locate_file("sphinx-mathjax-offline/static/mathjax")))
    for file in (file for pattern in _MATHJAX for file in mathjax.glob(pattern)):
        target = folder / "_static/mathjax" / file.relative_to(mathjax)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.name != "all-packages.js":
            shutil.copyfile(file, target)
    macros = app.config.mathjax3_config["tex"]["macros"]
    for page in select(repository):
        executed = nbformat.read(repository.notebook(page, _profile()), as_version=4)
        notebook = read_chapter(repository.source(page))  # its words may be newer
        merge(notebook, executed)
        for number, cell in enumerate(notebook.cells):
            cell.id = f"cell-{number}"  # the same in every build
        target = folder / f"_sources/book/{page}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        made = standalone(notebook, partial(_told, app, f"book/{page}"), macros, _NEEDS)
        for path in (target, *folder.glob(f"_downloads/*/{page}.ipynb")):
            nbformat.write(made, path)
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        path.write_text(_PRELOAD.sub("", text), encoding="utf-8")
