"""The reader that papermill uses for local paths: chapters, and all that is none.

Papermill knows readers by the start of a path and asks for this one in every project.
"""

import warnings
from pathlib import Path
from typing import Any

import nbformat

from .chapters import read_chapter
from .repository import Repository

# papermill warns of our extension; nothing else is meant, in any project.
warnings.filterwarnings(
    "ignore",
    message=r"The specified file \(.*\.md\) does not end in",
    category=UserWarning,
    module=r"papermill\.iorw",
)


class _Reader:
    def read(self, path: str) -> str:
        """Return a notebook as JSON: a chapter, or whatever the file is."""
        if _is_chapter(path):
            return nbformat.writes(read_chapter(path))
        return _files().read(path)

    def write(self, text: str, path: str) -> None:
        """Write a notebook, but not over a chapter."""
        if _is_chapter(path):
            raise OSError(f"{path} is a source; write the notebook to a .ipynb file")
        _files().write(text, path)

    def __getattr__(self, name: str) -> Any:
        return getattr(_files(), name)


def _files() -> Any:
    """Return papermill's own reader and writer of files."""
    from papermill.iorw import papermill_io

    return papermill_io.get_handler("local")


ChapterReader = _Reader()


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
