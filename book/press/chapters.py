"""Reading chapters: MyST Markdown in, notebooks out."""

import ast
import json
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .repository import Repository

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from papermill.iorw import LocalHandler

# papermill warns of our extension; nothing else is meant, in any project.
warnings.filterwarnings(
    "ignore",
    message=r"The specified file \(.*\.md\) does not end in",
    category=UserWarning,
    module=r"papermill\.iorw",
)


def parse_chapter(text: str) -> "NotebookNode":
    """Return the notebook that a chapter's text describes.

    ``metadata.source_map`` holds the zero-based line at which each cell starts.
    """
    from jupytext.myst import myst_to_notebook

    notebook = myst_to_notebook(text, add_source_map=True)
    notebook.metadata.pop("jupyter", None)
    if code_cells(notebook):
        notebook.metadata.setdefault(
            "kernelspec",
            {"name": "python3", "display_name": "Python 3", "language": "python"},
        )
    return notebook


def read_chapter(path: str | Path) -> "NotebookNode":
    """Return the notebook of a chapter, not executed."""
    from jupytext.myst import MystMetadataParsingError
    from nbformat import ValidationError

    try:
        return parse_chapter(Path(path).read_text(encoding="utf-8"))
    except (MystMetadataParsingError, ValidationError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error


class ChapterReader:
    """The reader that papermill uses for local paths.

    Papermill knows readers by the start of a path and asks for this one in every
    project, so whatever is not a chapter of this book goes to papermill's own reader.
    """

    @staticmethod
    def read(path: str) -> str:
        """Return a notebook as JSON: a chapter, or whatever the file is."""
        import nbformat

        if not _is_chapter(path):
            return _files().read(path)
        return nbformat.writes(read_chapter(path))

    @staticmethod
    def pretty_path(path: str) -> str:
        """Return the path as messages show it."""
        return path

    @staticmethod
    def listdir(path: str) -> list[str]:
        """Return the files of a folder."""
        return _files().listdir(path)

    @staticmethod
    def write(text: str, path: str) -> None:
        """Write a notebook, but not over a chapter."""
        if _is_chapter(path):
            raise OSError(f"{path} is a source; write the notebook to a .ipynb file")
        _files().write(text, path)


def _is_chapter(path: str) -> bool:
    """Tell whether a path is a page of the book that this package belongs to."""
    file = Path(path).resolve()
    if file.suffix != ".md":
        return False
    try:
        return file.parent == Repository.here().book.resolve()
    except FileNotFoundError as error:
        if (file.parent / "press").is_dir():  # a chapter, and a press from elsewhere
            raise OSError(str(error)) from None
        return False


def _files() -> "LocalHandler":
    """Return papermill's own reader and writer of files."""
    from papermill.iorw import papermill_io

    return papermill_io.get_handler("local")


def code_cells(notebook: "NotebookNode") -> list["NotebookNode"]:
    """Return the code cells that an author wrote."""
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and "injected-parameters" not in tags(cell)
    ]


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


def tags(cell: "NotebookNode") -> list[str]:
    """Return the tags of a cell."""
    return cell.metadata.get("tags") or []


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

    A default that is not a literal, or that JSON cannot hold, is given by its code.
    """
    values: dict[str, Any] = {}
    for cell in code_cells(notebook):
        if "parameters" in tags(cell):
            code = cell_code(cell.source)
            if code is None:
                raise ValueError(f"the parameters are no Python:\n{cell.source}")
            for node in ast.parse(code).body:
                match node:
                    case ast.AnnAssign(
                        target=ast.Name(id=name), value=ast.expr() as value
                    ):
                        values[name] = _literal(value)
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        values[name] = _literal(value)
    return values


def _literal(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
        json.dumps(value)
    except (TypeError, ValueError):
        return ast.unparse(node)
    return value


def cell_lines(text: str) -> list[int]:
    """Return the one-based line at which the code of each code cell begins."""
    lines = text.splitlines()
    notebook = parse_chapter(text)
    starts = []
    for cell, start in zip(notebook.cells, notebook.metadata.source_map, strict=True):
        if cell.cell_type != "code":
            continue
        source = cell.source.splitlines()
        while lines[start : start + len(source)] != source and start < len(lines):
            start += 1
        starts.append(start + 1)
    return starts


def strip_ansi(text: str) -> str:
    """Return text without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
