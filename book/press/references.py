"""The Sphinx side of docstrings: names between backticks become links.

A name of a parameter or an attribute of what a docstring describes stays as it is. Any
other is looked up among all that the reference documents, and has to be there. Under a
function or a class stand the chapters that import it. A class is shown with what its
own constructor takes, whatever a base class hides.
"""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from .chapters import cell_code, code_cells, read_chapter, select
from .repository import Repository

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_NAME = re.compile(r"(?<![`:\w])`([A-Za-z_][\w.]*)`(?!`)")
_SECTION = re.compile(r"^ *(.+)\n *-{3,}$", re.MULTILINE)
_FIELDS = re.compile(r"^ *(\w+(?:, \w+)*) : ", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the links with Sphinx."""
    uses = dict[int, list[str]]()

    def find_uses(app: Sphinx) -> None:
        uses.update(chapters_by_import(Repository(Path(app.srcdir))))

    def tell_uses(app: Sphinx, what: str, name: str, *more: Any) -> None:
        described, _, lines = more
        chapters = uses.get(id(described), [])
        if what in ("function", "class", "exception") and chapters:
            links = ", ".join(f":doc:`/book/{chapter}`" for chapter in chapters)
            lines += ["", ".. container:: used-in", "", f"   Used in {links}.", ""]

    app.connect("builder-inited", find_uses)
    app.connect("autodoc-process-docstring", _link, priority=400)  # before Napoleon
    app.connect("autodoc-process-docstring", tell_uses, priority=600)  # after it
    app.connect("autodoc-process-signature", _show)
    app.connect("autodoc-skip-member", _skip)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def references(docstring: str, *described: Any) -> set[str]:
    """Return the names in a docstring that have to be in the reference."""
    own = _fields(docstring)
    for part in described:
        own |= _fields(inspect.getdoc(part) or "")
        if callable(part):
            try:
                own |= inspect.signature(part).parameters.keys()
            except ValueError:  # some built-in classes have none
                continue
    return set(_NAME.findall(docstring)) - own


def _fields(docstring: str) -> set[str]:
    """Return the names that the sections of a docstring explain."""
    _, *sections = _SECTION.split(docstring)
    return {
        name
        for title, body in zip(sections[::2], sections[1::2], strict=True)
        if title != "See Also"
        for names in _FIELDS.findall(body)
        for name in names.split(", ")
    }


def _link(app: Sphinx, what: str, name: str, described: Any, *more: Any) -> None:
    lines, parts = more[-1], [described]
    if what in ("method", "property"):
        parts.append(resolve_name(name.rpartition(".")[0]))
    linked = references("\n".join(lines), *parts)

    def link(match: re.Match[str]) -> str:
        return f":py:obj:`.{match[1]}`" if match[1] in linked else match[0]

    lines[:] = [_NAME.sub(link, line) for line in lines]


def constructor(described: type) -> str:
    """Return what a class takes, without types; nothing if it is not made by itself."""
    made = inspect.getattr_static(described, "__init__")
    if made.__module__.split(".")[0] != described.__module__.split(".")[0]:
        return ""
    _, *parameters = inspect.signature(made).parameters.values()
    plain = [one.replace(annotation=one.empty) for one in parameters]
    return str(inspect.Signature(plain))


def _show(app: Sphinx, what: str, *more: Any) -> tuple[str, None] | None:
    """Look behind a `__new__` that takes all, as that of a LinearOperator."""
    _, described, _, signature, _ = more
    hidden = what == "class" and signature == "(*args, **kwargs)"
    return (constructor(described), None) if hidden else None


def _skip(app: Sphinx, what: str, name: str, member: Any, *more: Any) -> bool | None:
    """Leave out the fields of named tuples, which the class explains."""
    alias = (inspect.getdoc(member) or "").startswith("Alias for field number")
    return True if alias else None


def chapters_by_import(repository: Repository) -> dict[int, list[str]]:
    """Return the chapters that import something of ours, by its identity."""
    found: dict[int, list[str]] = {}
    ours = repository.package, repository.data.split(".")[0]
    for chapter in select(repository):
        imported = {
            id(getattr(import_module(node.module), name.name, None))
            for cell in code_cells(read_chapter(repository.source(chapter)))
            for node in ast.walk(ast.parse(cell_code(cell.source) or ""))
            if isinstance(node, ast.ImportFrom) and node.module
            if node.module.split(".")[0] in ours
            for name in node.names
        }
        for identity in imported:
            found.setdefault(identity, []).append(chapter)
    return found
