"""Chapters: MyST Markdown in, notebooks out."""

import ast
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .repository import Repository

if TYPE_CHECKING:
    from nbformat import NotebookNode

DECLARED, INJECTED = "parameters", "injected-parameters"  # tags of papermill


def parse_chapter(text: str) -> "NotebookNode":
    """Return the notebook that a chapter's text describes.

    ``metadata.source_map`` holds the zero-based line at which each cell starts.
    """
    from jupytext.myst import myst_to_notebook

    notebook = myst_to_notebook(text, add_source_map=True)
    notebook.metadata.pop("jupyter", None)
    return notebook


def read_chapter(path: str | Path) -> "NotebookNode":
    """Return the notebook of a chapter, not executed."""
    from jupytext.myst import MystMetadataParsingError

    try:
        return parse_chapter(Path(path).read_text(encoding="utf-8"))
    except MystMetadataParsingError as error:
        raise ValueError(f"{path}: {error}") from error


def code_cells(notebook: "NotebookNode") -> list["NotebookNode"]:
    """Return the code cells that an author wrote."""
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and INJECTED not in tags(cell)
    ]


def tags(cell: "NotebookNode") -> list[str]:
    """Return the tags of a cell."""
    return cell.metadata.get("tags") or []


def select(repository: Repository, chapters: Sequence[str] = ()) -> list[str]:
    """Return the chosen chapters that have code, in the order of the book."""
    pages = repository.pages()
    chosen = [repository.chapter_name(chapter) for chapter in chapters] or pages
    unknown = ", ".join(sorted({*chosen} - {*pages}))
    if unknown:
        told = f"not in _toc.yml: {unknown}. The pages are {', '.join(pages)}."
        raise ValueError(told)
    return [
        page
        for page in pages
        if page in chosen and code_cells(read_chapter(repository.source(page)))
    ]


def cell_code(source: str) -> str | None:
    """Return the Python code of a cell, or None if it is something else.

    Line magics and shell escapes become calls; a leading cell magic such as
    ``%%time`` is set aside.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    if source.startswith("%%"):
        source = source.partition("\n")[2]
    try:
        code = TransformerManager().transform_cell(source)
        ast.parse(code)
    except SyntaxError:
        return None
    return code


def parameters(notebook: "NotebookNode") -> dict[str, Any]:
    """Return the parameters that a chapter declares, with their default values.

    A default that JSON cannot hold is given by its code.
    """
    values: dict[str, Any] = {}
    for cell in code_cells(notebook):
        if DECLARED in tags(cell):
            found, _ = declarations(cell.source)
            values |= {name: _literal(value) for name, value in found.items()}
    return values


def declarations(source: str) -> tuple[dict[str, ast.expr], str]:
    """Return the parameters that a cell declares, and its other statements."""
    code, found, rest = cell_code(source), {}, []
    if code is None:
        raise ValueError(f"the parameters are no Python:\n{source}")
    for node in ast.parse(code).body:
        match node:
            case (
                ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                | ast.Assign(targets=[ast.Name(id=name)], value=value)
            ):
                found[name] = value
            case _:
                rest.append(ast.get_source_segment(code, node) or "")
    return found, "\n".join(rest)


def _literal(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
        json.dumps(value)
    except (TypeError, ValueError):
        return ast.unparse(node)
    return value


def cell_lines(text: str) -> list[int]:
    """Return the one-based line at which the code of each code cell begins."""
    lines, notebook = text.splitlines(), parse_chapter(text)
    starts = []
    for cell, start in zip(notebook.cells, notebook.metadata.source_map, strict=True):
        source = cell.source.splitlines()
        while lines[start : start + len(source)] != source and start < len(lines):
            start += 1
        starts += [start + 1] if cell.cell_type == "code" else []
    return starts


class _Reader:
    """The reader that papermill uses for local paths: notebooks, and chapters.

    Papermill knows readers by the start of a path, and asks for this one in every
    project, while it is loaded itself.
    """

    def __getattr__(self, name: str) -> Any:
        from papermill.iorw import LocalHandler

        return getattr(LocalHandler(), name)

    def read(self, path: str) -> str:
        """Return a notebook as JSON: one in MyST Markdown, or whatever the file is."""
        if path.endswith(".md"):
            return json.dumps(read_chapter(path))
        return str(self.__getattr__("read")(path))

    def write(self, text: str, path: str) -> None:
        """Write a notebook as it is taken home, but not over a chapter."""
        if path.endswith(".md"):
            raise OSError(f"{path} is a source; write the notebook to a .ipynb file")
        self.__getattr__("write")(_told(text), path)


def _told(text: str) -> str:
    """Return a notebook with its numbers in its text, if it is made of a chapter."""
    import nbformat

    from .standalone import named, standalone

    notebook = nbformat.reads(text, as_version=4)
    source = notebook.metadata.get("papermill", {}).get("input_path")
    if not str(source).endswith(".md"):
        return text
    made = standalone(notebook, named, Repository.here().macros())
    return str(nbformat.writes(made))


ChapterReader = _Reader()
# papermill warns of our extension; nothing else is meant, in any project.
warnings.filterwarnings(
    "ignore", r"The specified file \(.*\.md\) does not end in", UserWarning
)
