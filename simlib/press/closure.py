"""Which modules of the package a piece of code depends on."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

_OWN_NAMES = {"__all__", "_MODULES", "__getattr__", "__dir__"}


class Package:
    """The sources of a Python package, read but never imported.

    A name is followed to the module that defines it, through the re-exports of
    ``__init__.py``: ``from .x import y`` at top level or under ``TYPE_CHECKING``, and
    a dictionary literal ``_MODULES`` from names to modules. Using one name of a
    package therefore does not pull in the rest of it.

    Parameters
    ----------
    root : Path
        The folder that holds the package.
    name : str
        Name of the package.
    """

    def __init__(self, root: Path, name: str):
        self.root = root
        self.name = name
        self.path = cache(self._path)
        self.tree = cache(self._tree)
        self.exports = cache(self._exports)

    def closure(self, tree: ast.AST) -> set[str]:
        """Return the modules that code imports, directly or through others."""
        found: set[str] = set()
        waiting = self.imports(tree)
        while waiting:
            module = waiting.pop()
            found.add(module)
            waiting |= self.imports(self.tree(module), module) - found
        return found

    def imports(self, tree: ast.AST, module: str = "") -> set[str]:
        """Return the modules that code imports or names.

        Parameters
        ----------
        tree : ast.AST
            The code.
        module : str
            The module it is, to resolve relative imports; empty for a chapter.
        """
        uses = _Uses(self)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                uses.add_import(node)
            elif isinstance(node, ast.ImportFrom):
                uses.add_import_from(node, self._origin(node, module))
        uses.visit(tree)
        return {found for found in uses.modules - {module} if self.path(found)}

    def resolve(self, package: str, name: str) -> str:
        """Return the module or subpackage in which ``package.name`` is defined."""
        origin = self.exports(package).get(name)
        if origin and origin != (package, name):
            target, original = origin
            return self.resolve(target, original) if original else target
        submodule = f"{package}.{name}"
        return submodule if self.path(submodule) else package

    def is_package(self, module: str) -> bool:
        """Say whether a module has submodules."""
        path = self.path(module)
        return path is not None and path.name == "__init__.py"

    def parents(self, modules: Iterable[str]) -> set[str]:
        """Return the packages whose ``__init__`` runs when modules are imported."""
        return {
            module[:end]
            for module in modules
            for end, letter in enumerate(module)
            if letter == "."
        }

    def own_code(self, package: str) -> ast.Module:
        """Return an ``__init__`` without its re-exports."""
        body = [node for node in self.tree(package).body if not _is_reexport(node)]
        return ast.Module(body=body, type_ignores=[])

    def _path(self, module: str) -> Path | None:
        if module.split(".")[0] != self.name:
            return None
        stem = self.root.joinpath(*module.split("."))
        for path in (stem / "__init__.py", stem.with_suffix(".py")):
            if path.is_file():
                return path
        return None

    def _tree(self, module: str) -> ast.Module:
        path = self.path(module)
        return _without_docstrings(ast.parse(path.read_text(encoding="utf-8")))

    def _exports(self, module: str) -> dict[str, tuple[str, str]]:
        if not self.is_package(module):
            return {}
        exports = {}
        for node in _statements(self.tree(module).body):
            if isinstance(node, ast.ImportFrom):
                origin = self._origin(node, module)
                if self.path(origin):
                    for alias in node.names:
                        exports[alias.asname or alias.name] = (origin, alias.name)
            elif "_MODULES" in _assigned(node) and isinstance(node.value, ast.Dict):
                for name, target in ast.literal_eval(node.value).items():
                    target = module + target if target.startswith(".") else target
                    exports[name] = (target, name)
        return exports

    def _origin(self, node: ast.ImportFrom, module: str) -> str:
        """Return the absolute name of the module that a statement imports from."""
        if not node.level:
            return node.module or ""
        drop = node.level - self.is_package(module)
        base = module.split(".")[: -drop or None]
        return ".".join([*base, *([node.module] if node.module else [])])


class _Uses(ast.NodeVisitor):
    """Collects the modules that names and attribute chains lead to."""

    def __init__(self, package: Package):
        self.package = package
        self.modules: set[str] = set()
        self.bound: dict[str, str] = {}

    def add_import(self, node: ast.Import) -> None:
        for alias in node.names:
            if not self.package.path(alias.name):
                continue
            self._add(alias.name)
            if alias.asname:
                self.bound[alias.asname] = alias.name
            else:
                self.bound[self.package.name] = self.package.name

    def add_import_from(self, node: ast.ImportFrom, origin: str) -> None:
        if not self.package.path(origin):
            return
        for alias in node.names:
            if alias.name == "*":
                self.modules.add(origin)
                continue
            target = self.package.resolve(origin, alias.name)
            if target == origin or not self.package.is_package(target):
                self.modules.add(target)
            else:
                self.bound[alias.asname or alias.name] = target

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain: list[str] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            chain.insert(0, base.attr)
            base = base.value
        if isinstance(base, ast.Name):
            self._follow(base.id, chain)
        else:
            self.visit(base)

    def visit_Name(self, node: ast.Name) -> None:
        self._follow(node.id, [])

    def visit_Constant(self, node: ast.Constant) -> None:
        # A module named in a string is one that importlib will be asked for.
        if isinstance(node.value, str) and self._is_module(node.value):
            self._add(node.value)

    def _is_module(self, text: str) -> bool:
        dotted = text.startswith(f"{self.package.name}.") and text.isascii()
        return dotted and self.package.path(text) is not None

    def _add(self, module: str) -> None:
        if not self.package.is_package(module):
            self.modules.add(module)

    def _follow(self, name: str, chain: list[str]) -> None:
        if name not in self.bound:
            return
        module = self.bound[name]
        for attribute in chain:
            if not self.package.is_package(module):
                break
            target = self.package.resolve(module, attribute)
            if target == module:
                break
            module = target
        self.modules.add(module)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield top-level statements, those inside ``if`` and ``try`` included."""
    for node in body:
        yield node
        for block in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.ExceptHandler):
                yield from _statements(getattr(node, block, []))


def _assigned(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        targets = []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _is_reexport(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    if isinstance(node, ast.FunctionDef):
        return node.name in _OWN_NAMES
    return isinstance(node, ast.Import | ast.ImportFrom) or bool(
        _assigned(node) & _OWN_NAMES
    )


def _without_docstrings(tree: ast.Module) -> ast.Module:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
    return tree
