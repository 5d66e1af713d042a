"""The printing press: chapters, through papermill, to executed notebooks and the book.

A chapter is a MyST Markdown file in ``book/``. `press` executes those whose inputs
changed and keeps the notebooks in ``executed/<profile>/``; as a Sphinx extension the
same package hands them to the book, so that nothing is executed twice. The press
knows no mathematics. Inside a chapter only `record`, `recorded`, `paper` and
`provenance` are of use; everything is loaded when it is first asked for.
"""

from importlib import import_module
from typing import Any

_MODULES = {
    "ChapterError": "simlib.press.job",
    "ChapterReader": "simlib.press.chapters",
    "Repository": "simlib.press.repository",
    "figure_style": "simlib.press.style",
    "frames": "simlib.press.slider",
    "main": "simlib.press.cli",
    "paper": "simlib.press.results",
    "press": "simlib.press.execution",
    "provenance": "simlib.press.results",
    "read_chapter": "simlib.press.chapters",
    "record": "simlib.press.results",
    "recorded": "simlib.press.results",
    "setup": "simlib.press.sphinx_extension",
    "status": "simlib.press.freshness",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
