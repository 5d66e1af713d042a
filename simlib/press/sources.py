"""Hashes of code that are blind to comments, docstrings and blank lines.

They are taken of the text, not of the syntax tree, so that every Python finds the same.
"""

import ast
import hashlib
import io
import tokenize
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath

from .chapters import cell_code

# A part of a text: from (line, byte) to (line, byte), lines counted from one.
_Span = tuple[tuple[int, int], tuple[int, int]]
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def content_hash(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def source_hash(path: str, content: bytes, files: Collection[str] = ()) -> str:
    """Return the hash of a file: of its code, if it is a Python module.

    Parameters
    ----------
    path : str
        The file, seen from the root of the repository.
    content : bytes
        What it holds.
    files : collection of str
        All files that were read. In an ``__init__.py`` the names that it re-exports,
        by ``from ... import`` or in a dictionary ``_MODULES``, count if the module that
        defines them is one of these. So a new name elsewhere changes nothing.
    """
    if not path.endswith(".py"):
        return content_hash(content)
    try:
        tree = ast.parse(content)
    except SyntaxError:
        return content_hash(content)
    tokens = _tokens(content)
    spans = [*_docstrings(tree), *_comments(tokens)]
    names: list[str] = []
    if path.endswith("__init__.py"):
        package = PurePosixPath(path).parent
        for node in _reexports(tree, package):
            spans.append(_span(node))
            names += _kept(node, package, files)
    code = _without(content, spans, _strings(tokens))
    return content_hash(b"\n".join([code, *map(str.encode, names)]))


def cell_hash(source: str) -> str:
    """Return the hash of a cell's code."""
    code = cell_code(source)
    if code is None:
        return content_hash(source.encode())
    text = code.encode()
    magic = source.partition("\n")[0] if source.startswith("%%") else ""
    tokens = _tokens(text)
    spans = [*_docstrings(ast.parse(text)), *_comments(tokens)]
    kept = _without(text, spans, _strings(tokens))
    return content_hash(magic.encode() + b"\n" + kept)


def _without(content: bytes, spans: list[_Span], strings: Iterable[_Span]) -> bytes:
    """Return a text without some parts, blank lines and trailing blanks.

    Lines of one string stay as they are: until the end a zero byte, which no code has,
    holds them together.
    """
    lines = content.splitlines()
    for row in {row for (first, _), (last, _) in strings for row in range(first, last)}:
        lines[row - 1] += b"\0"
    for (first, start), (last, end) in sorted(spans, reverse=True):
        lines[first - 1 : last] = [lines[first - 1][:start] + lines[last - 1][end:]]
    whole = b"\n".join(lines).replace(b"\0\n", b"\0").splitlines()
    kept = b"\n".join(line.rstrip() for line in whole if line.strip())
    return kept.replace(b"\0", b"\n")


def _docstrings(tree: ast.Module) -> Iterator[_Span]:
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False):
            yield _span(node.body[0])


def _tokens(content: bytes) -> list[tokenize.TokenInfo]:
    return [*tokenize.tokenize(io.BytesIO(content).readline)]


def _comments(tokens: list[tokenize.TokenInfo]) -> Iterator[_Span]:
    for token in tokens:
        if token.type == tokenize.COMMENT:
            row, column = token.start
            start = len(token.line[:column].encode())
            yield (row, start), (row, start + len(token.string.encode()))


def _strings(tokens: list[tokenize.TokenInfo]) -> Iterator[_Span]:
    """Yield where strings stand; from Python 3.12 on an f-string is many tokens."""
    starts = []
    for token in tokens:
        kind = tokenize.tok_name[token.type]
        if kind == "STRING":
            yield token.start, token.end
        elif kind.endswith("STRING_START"):
            starts.append(token.start)
        elif kind.endswith("STRING_END"):
            yield starts.pop(), token.end


def _span(node: ast.stmt) -> _Span:
    end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return (node.lineno, node.col_offset), end


def _reexports(tree: ast.Module, package: PurePosixPath) -> Iterator[ast.stmt]:
    """Yield the top-level statements that say where names of a package come from."""
    for node in tree.body:
        match node:
            case ast.ImportFrom():
                if _origin(node, package).split(".")[0] == package.parts[0]:
                    yield node
            case ast.Assign(targets=[ast.Name(id="__all__" | "_MODULES")]):
                yield node
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield node


def _origin(node: ast.ImportFrom, package: PurePosixPath) -> str:
    """Return the absolute name of the module that a statement imports from."""
    parts = package.parts[: len(package.parts) + 1 - node.level] if node.level else ()
    return ".".join([*parts, *([node.module] if node.module else [])])


def _kept(node: ast.stmt, package: PurePosixPath, files: Collection[str]) -> list[str]:
    """Return ``name module`` for the names whose module is among the files."""
    pairs: list[tuple[str, str]] = []
    match node:
        case ast.ImportFrom(names=names):
            origin = _origin(node, package)
            for alias in names:
                name = f"{alias.name} {alias.asname or alias.name}"
                pairs += [(name, origin), (name, f"{origin}.{alias.name}")]
        case ast.Assign(value=ast.Dict(keys=keys, values=values)):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    pairs.append((str(key.value), str(value.value)))
    return sorted(
        f"{name} {module}"
        for name, module in pairs
        for stem in [module.replace(".", "/")]
        if f"{stem}.py" in files or f"{stem}/__init__.py" in files
    )
