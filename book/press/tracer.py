"""A hook and traced modules that note what the processes of a chapter read and ran.

The press copies this file, as ``sitecustomize.py``, into a folder at the head of
``PYTHONPATH``: it runs in the kernel and in every Python process that it starts. It
needs nothing but the standard library, and writes three kinds of lines to the log:

``file HASH PATH``
    A file below the root was opened for reading. The hash is that of its content at
    this moment, ``-`` where there was no such file. The sources read lie beside the
    log, under their hashes.
``ran BLOCK PATH``
    A block of a function in an imported module ran for the first time; the block
    ``.`` is the module itself. The path ``.`` stands for the chapter.
``data NAME``
    The package looked for a file of a data set and raised its audit event.

A module below the root is compiled with one expression more at the head of each block
of its functions, ``__ran__["BLOCK PATH"]``, which writes when the key is missing.
"""

import ast
import builtins
import hashlib
import os
import sys
from _thread import get_ident
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from itertools import product
from types import CodeType

# What lies below a root without being its source: environments, and what was built.
_BUILT = {"__pycache__", "_build", "build", "executed", "site-packages"}
_COMPILED = {"jit", "njit", "vectorize", "guvectorize", "compiled"}  # by numba

Function = ast.FunctionDef | ast.AsyncFunctionDef
# A block: its name, what it belongs to, and its statements.
Block = tuple[str, ast.AST, list[ast.stmt]]


def blocks(tree: ast.Module) -> Iterator[Block]:
    """Yield the blocks of a module's functions: bodies, branches, loops, handlers.

    The block ``f`` is the body of the function f, ``f/1`` is the second block within
    it, and so on; ``C.f~2`` is the second function of that name in a class C. What
    numba compiles is no function here.
    """
    counts: dict[str, int] = {}
    for name, node in _functions(tree.body, ""):
        counts[name] = counts.get(name, 0) + 1
        number = f"~{counts[name]}" if counts[name] > 1 else ""
        yield from _blocks(name + number, node, node.body)


def cell_blocks(tree: ast.Module) -> Iterator[Block]:
    """Yield the blocks of a cell, those outside of functions too, named by a hash."""
    todo: list[ast.AST] = [tree]
    while todo:
        for node in todo.pop().body:  # type: ignore
            whole = ast.dump(node)
            for number, suite in enumerate(suites(node)):
                name = hashlib.sha256(f"{number} {whole}".encode()).hexdigest()[:12]
                yield name, node, suite
                todo.append(ast.Module(suite, []))


def suites(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements that a statement holds."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value:
            if isinstance(value[0], ast.stmt):
                yield value
            elif isinstance(value[0], ast.ExceptHandler | ast.match_case):
                yield from (part.body for part in value)


def compiled(node: ast.stmt) -> bool:
    """Tell whether numba compiles a function."""
    return isinstance(node, Function) and any(
        name in _COMPILED
        for decorator in node.decorator_list
        for part in ast.walk(decorator)
        for name in (getattr(part, "id", ""), getattr(part, "attr", ""))
    )


def documented(node: ast.AST) -> bool:
    """Tell whether a definition begins with a docstring."""
    kinds = Function | ast.ClassDef | ast.Module
    return isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
    for node in body:
        if isinstance(node, Function):
            if not compiled(node):
                yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        else:
            for suite in suites(node):
                yield from _functions(suite, prefix)


def _blocks(name: str, owner: ast.AST, body: list[ast.stmt]) -> Iterator[Block]:
    yield name, owner, body
    within = ((node, suite) for node in body for suite in suites(node))
    for number, (node, suite) in enumerate(within):
        yield from _blocks(f"{name}/{number}", node, suite)


class Ran(dict):
    """What ran in this process: a key that is missing is told, once.

    For IPython it transforms cells, so that their blocks note that they run.
    """

    def __init__(self, tell: Callable[[str], None]):
        super().__init__()
        self.tell = tell

    def __missing__(self, key: str) -> None:
        self[key] = None
        self.tell(f"ran {key}")

    def visit(self, tree: ast.Module) -> ast.Module:
        """Return the tree of a cell, changed in place."""
        for name, owner, body in [*cell_blocks(tree)]:
            _note(f"{name} .", owner, body)
        return tree


def _note(key: str, owner: ast.AST, body: list[ast.stmt]) -> None:
    """Let a block begin by saying that it runs."""
    first = int(documented(owner))
    note = ast.parse(f"__ran__[{key!r}]").body[0]
    near = body[min(first, len(body) - 1)]
    for node in ast.walk(note):
        ast.copy_location(node, near)
    body.insert(first, note)


def _note_modules(below: Callable[[str], str], ran: Ran) -> None:
    """Let modules below the root note which of their blocks run."""
    plain = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        """Return the code of a module; none is read from a cache or put there."""
        relative = below(self.path)
        if not relative or type(self) is not SourceFileLoader:
            return plain(self, fullname)
        tree = ast.parse(self.get_data(self.path), self.path)
        for name, owner, body in [*blocks(tree)]:
            _note(f"{name} {relative}", owner, body)
        ran[f". {relative}"]
        return compile(tree, self.path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_code  # type: ignore


class Log:
    """The log of what this process, and those forked from it, read and ran."""

    def __init__(self, root: str, log: str, data_event: str):
        self.stream = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.folder = os.path.dirname(log)
        self.data_event = data_event
        self.roots = {
            os.path.join(os.path.abspath(root), ""),
            os.path.realpath(root) + os.sep,
        }
        self.noted: set[str] = set()
        self.hashes: dict[tuple[object, ...], str] = {}
        self.inside: set[int] = set()  # threads in the hook: its reads do not count

    def below(self, path: str) -> str:
        """Return a path as seen from the root, or nothing if it does not count."""
        environment = os.path.join(sys.prefix, "")
        paths = os.path.abspath(path), os.path.realpath(path)  # through another link
        for path, root in product(paths, self.roots):
            if path.startswith(root) and not (
                sys.prefix.startswith(root) and path.startswith(environment)
            ):
                relative = path.removeprefix(root)
                if _BUILT.isdisjoint(relative.split(os.sep)) and relative[0] != ".":
                    return relative
        return ""

    def write(self, line: str) -> None:
        """Write a line that is not there yet."""
        if line not in self.noted:
            self.noted.add(line)
            os.write(self.stream, f"{line}\n".encode("utf-8", "surrogateescape"))

    def hook(self, event: str, arguments: tuple) -> None:
        """Note an audit event."""
        if event not in ("open", self.data_event) or get_ident() in self.inside:
            return
        self.inside.add(get_ident())
        try:
            if event == self.data_event:
                self.write(f"data {arguments[0]}")
            elif _reads(*arguments):
                path = os.path.abspath(os.fsdecode(arguments[0]))
                relative = self.below(path)
                if relative and not os.path.isdir(path):
                    self.write(f"file {self._hash(path)} {relative}")
        finally:
            self.inside.discard(get_ident())

    def _hash(self, path: str) -> str:
        try:
            stat = os.stat(path)
            version = path, stat.st_ino, stat.st_size, stat.st_mtime_ns
            if version in self.hashes:
                return self.hashes[version]
            with open(path, "rb") as source:
                content = source.read()
        except OSError:
            return "-"
        self.hashes[version] = hashlib.sha256(content).hexdigest()
        if path.endswith((".py", ".pyi")):
            with open(os.path.join(self.folder, self.hashes[version]), "wb") as copy:
                copy.write(content)
        return self.hashes[version]


def trace(root: str, log: str, data_event: str) -> None:
    """Note what this process, and those forked from it, read and ran from now on."""
    noted = Log(root, log, data_event)
    builtins.__ran__ = ran = Ran(noted.write)  # type: ignore[attr-defined]
    _note_modules(noted.below, ran)
    sys.addaudithook(noted.hook)


def _reads(path: object, mode: str | None, flags: int) -> bool:
    """Tell whether a file is opened to be read: by `open`, or by `os.open`.

    The latter tells a name within an open folder, as `shutil.rmtree` gives, like any
    other relative path; it does not count.
    """
    if isinstance(path, int):
        return False
    if mode is None:
        written = os.O_WRONLY | getattr(os, "O_DIRECTORY", 0)
        return not flags & written and os.path.isabs(os.fsdecode(path))  # type: ignore
    return "r" in mode or "+" in mode


if __name__ == "sitecustomize" and "PRESS_LOG" in os.environ:
    trace(*(os.environ[name] for name in ("PRESS_ROOT", "PRESS_LOG", "PRESS_DATA")))
