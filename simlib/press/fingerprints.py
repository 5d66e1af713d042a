"""Fingerprints, which tell when an executed notebook is still right."""

import ast
import hashlib
import json
import platform
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from .chapters import code_cells, parse_cell, read_chapter, tags
from .closure import Package
from .repository import Repository

_TAGS = {"parameters", "raises-exception", "skip-execution"}


class Fingerprints:
    """Hashes of all that decides the outputs of a chapter.

    These are the code of its cells, the parameters of the profile, the modules of the
    package that it uses, the data sets, the recorded results and papers' figures it
    shows, ``requirements.lock`` and the Python version. Prose, comments, docstrings
    and tags that do not steer execution count for nothing. Sources are read once: make
    a new object to see changes.

    Parameters
    ----------
    repository : Repository
        The book and its package.
    """

    def __init__(self, repository: Repository):
        self.repository = repository
        self.package = Package(repository.root, repository.package)

    def key(self, chapter: str, parameters: dict[str, Any]) -> str:
        """Return the fingerprint of a chapter executed with some parameters."""
        inputs = self.inputs(chapter) | {"parameters": parameters}
        return _digest(json.dumps(inputs, sort_keys=True, default=str))

    def inputs(self, chapter: str) -> dict[str, Any]:
        """Return what the outputs of a chapter depend on, parameters aside."""
        cells = code_cells(read_chapter(self.repository.source(chapter)))
        trees = [parse_cell(cell.source) for cell in cells]
        code = ast.Module([node for tree in trees if tree for node in tree.body], [])
        modules = self.package.closure(code)
        return {
            "cells": [_cell(*pair) for pair in zip(cells, trees, strict=True)],
            "modules": self._modules(modules),
            "data": self.data if self._reads_data(modules) else {},
            "files": {
                self.repository.relative(path): _digest(path.read_bytes())
                for path in self._files(code, modules)
            },
            "python": platform.python_version(),
        }

    @cached_property
    def data(self) -> dict[str, str | None]:
        """Hashes of the data sets, by name."""
        return import_module(f"{self.repository.package}.datasets").fingerprint()

    def _reads_data(self, modules: set[str]) -> bool:
        datasets = f"{self.repository.package}.datasets"
        return any(f"{module}.".startswith(f"{datasets}.") for module in modules)

    def _modules(self, modules: set[str]) -> dict[str, str]:
        trees = {name: self.package.tree(name) for name in modules}
        for parent in self.package.parents(modules) - modules:
            trees[parent] = self.package.own_code(parent)
        return {name: _digest(ast.dump(tree)) for name, tree in trees.items()}

    def _files(self, code: ast.AST, modules: set[str]) -> list[Path]:
        """Return the files that count whole."""
        root = self.repository.root
        folders = {self.package.path(module).parent for module in modules}
        beside = (
            path
            for folder in folders - {root / self.repository.package}
            for path in folder.iterdir()
            if path.is_file() and path.suffix not in (".py", ".pyc", "")
        )
        files = {root / "requirements.lock", *beside}
        names = {_name(node) for node in ast.walk(code)}
        if names & {"recorded", "provenance"}:
            files |= self._results(code)
        if "paper" in names:
            files.add(self.repository.book / "papers.yml")
        return sorted(path for path in files if path.is_file())

    def _results(self, code: ast.AST) -> set[Path]:
        """Return the results files named in code, or all if a name is computed."""
        calls = [
            node
            for node in ast.walk(code)
            if isinstance(node, ast.Call)
            and _name(node.func) in ("recorded", "provenance")
        ]
        arguments = [call.args[0] for call in calls if call.args]
        if all(isinstance(argument, ast.Constant) for argument in arguments):
            return {self.repository.results(str(a.value)) for a in arguments}
        return set((self.repository.book / "results").rglob("*.json"))


def _cell(cell: Any, tree: ast.Module | None) -> list[Any]:
    magic = cell.source.partition("\n")[0] if cell.source.startswith("%%") else ""
    code = ast.dump(tree) if tree else cell.source
    return [magic, _digest(code), sorted(_TAGS & set(tags(cell)))]


def _name(node: ast.AST) -> str:
    """Return the last part of the name that a node stands for, if it does."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
            return name
    return ""


def _digest(content: str | bytes) -> str:
    if isinstance(content, str):
        content = content.encode()
    return hashlib.sha256(content).hexdigest()
