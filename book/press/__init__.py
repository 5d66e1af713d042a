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
    "ChapterError": "press.job",
    "ChapterReader": "press.reader",
    "Repository": "press.repository",
    "confirm": "press.confirmation",
    "expect": "press.expectation",
    "figure_style": "press.style",
    "frames": "press.slider",
    "main": "press.cli",
    "paper": "press.results",
    "press": "press.execution",
    "provenance": "press.results",
    "read_chapter": "press.chapters",
    "record": "press.results",
    "recorded": "press.results",
    "setup": "press.sphinx_extension",
    "status": "press.confirmation",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
