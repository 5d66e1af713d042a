"""The reader that papermill uses for local paths: notebooks, and chapters.

Papermill knows readers by the start of a path and asks for this one in every project.
"""

import warnings
from typing import Any

import nbformat

from .chapters import read_chapter

# papermill warns of our extension; nothing else is meant, in any project.
warnings.filterwarnings(
    "ignore",
    message=r"The specified file \(.*\.md\) does not end in",
    category=UserWarning,
    module=r"papermill\.iorw",
)


class _Reader:
    def read(self, path: str) -> str:
        """Return a notebook as JSON: one in MyST Markdown, or whatever the file is."""
        if path.endswith(".md"):
            return nbformat.writes(read_chapter(path))
        return self.files.read(path)

    def write(self, text: str, path: str) -> None:
        """Write a notebook, but not over a chapter."""
        if path.endswith(".md"):
            raise OSError(f"{path} is a source; write the notebook to a .ipynb file")
        self.files.write(text, path)

    @property
    def files(self) -> Any:
        """Papermill's own reader and writer, not there while it loads this one."""
        from papermill.iorw import papermill_io

        return papermill_io.get_handler("local")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.files, name)


ChapterReader = _Reader()
