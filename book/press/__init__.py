"""The printing press: chapters to executed notebooks and the book.

A chapter is a MyST Markdown file in ``book/``. `press` executes those whose inputs
changed and keeps the notebooks in ``executed/<profile>/``; as a Sphinx extension the
same package hands them to the book, so that nothing is executed twice. The press
knows no mathematics. Inside a chapter only `record`, `recorded`, `paper`, `provenance`,
`expect` and `frames` are of use; everything is loaded when it is first asked for.
"""

import lazy_loader  # type: ignore[import-untyped]

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "chapters": ["ChapterReader", "read_chapter"],
        "cli": ["main"],
        "confirmation": ["confirm", "status"],
        "execution": ["ChapterError", "press"],
        "repository": ["Repository"],
        "results": ["expect", "paper", "provenance", "record", "recorded"],
        "slider": ["frames"],
        "sphinx_extension": ["setup"],
        "style": ["figure_style"],
    },
)
