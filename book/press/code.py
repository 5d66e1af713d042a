"""Hashes of what ran: of the blocks of functions, and of the values that they read.

A module is cut into *units*: the blocks of its functions, as `press.tracer` names them;
its values, which are the assignments, classes and compiled functions at its top, by
name; and the rest, ``.``, which is what it does besides when it is imported. Values are
also what is imported under a name x, ``<x``, which methods a class C has, ``C~``, and
``def``: which names, Python's among them, the module defines again, and what the heads
of functions call. Of the modules that a chapter imports these decide its numbers:

* the blocks that ran;
* the values whose names occur in a unit that decides, or in the chapter;
* the rest.

So an edit of a function that did not run, of a value that nothing read, of a docstring
or a comment changes no hash, nor does a function that moves. Hashes are taken of the
text, so that every Python finds the same.
"""

import ast
import builtins
import hashlib
import io
import tokenize
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import decode_source
from typing import Any

from .chapters import cell_code
from .tracer import Function, blocks, cell_blocks, compiled, documented, suites

# The code of some files: path -> unit -> hash; "-" precedes that of a block which did
# not run, of a function which did.
Code = dict[str, dict[str, str]]

_Place = tuple[int, int]  # the line, counted from one, and the byte in it
_LISTS = {"__all__", "_MODULES"}  # of names and where they are; what ran is noted
_ORDERS = ast.Lt | ast.LtE | ast.Gt | ast.GtE
_EXTREMES = {"min", "max", "minimum", "maximum", "clip"}
_UNPACKED = ast.Tuple | ast.List | ast.expr_context
_HOUSE = {"simlib", "study"}  # between which what is defined may move
_PYTHON = {
    n for n, v in vars(builtins).items() if callable(v) and v.__module__ == "builtins"
}


@dataclass(frozen=True)
class Unit:
    """A part of a module."""

    hash: str  # of its text without the blocks within; of a block with its condition
    names: frozenset[str] = frozenset()  # the identifiers in it
    decided: frozenset[str] = frozenset()  # those in the condition or loop of a block
    switch: bool = False  # whether that compares sizes, and nothing shows that it ran
    is_value: bool = False
    sizes: frozenset[str] = frozenset()  # what it gives a number to, neither 0 nor 1
    alone: str = ""  # the hash of an import's name alone, as older records hold it


class Source:
    """A Python module in its units: blocks and values by name, and the rest."""

    def __init__(self, content: bytes, path: str = ""):
        text = decode_source(content)
        tree = ast.parse(text)
        self.path, self._text = path, _Text(text, tree)
        self.units: dict[str, Unit] = {}
        self._blocks: dict[str, list[ast.AST]] = {}  # with the statement of each
        self.imports = {
            alias.asname or alias.name: (_origin(node, path), alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        heads: list[ast.expr] = []
        for name, owner, body in blocks(tree):
            self.units[name] = self._block(owner, body)
            self._blocks[name] = [owner, *body]
            heads += _called(owner) if "/" not in name else []
        functions, values = {*self.units}, dict[str, Unit]()
        rest = self._value([n for n in tree.body if not self._sort(n, values)])
        again = sorted(  # what the module defines a second time, or imports too
            name
            for name in functions | {*values}
            if not {*"./<"} & {*name}
            if f"<{name}" in values or (name in functions and "~" in name)
        )
        again += sorted(n for n in functions | {*values} if n.lstrip("<") in _PYTHON)
        called = self._value(heads)
        values["def"] = replace(called, hash=_hash(f"{again} {called.hash}"))
        values["."] = replace(rest, names=rest.names | {"def"})
        self.units = values | self.units

    def _block(self, owner: ast.AST, body: list[ast.stmt]) -> Unit:
        """Return a block as a unit."""
        text = self._text.of(body) + b"\0" + self._text.of([owner])
        decided = _names([owner])
        switch = _compares(owner) and not _shows(body[-1])
        sizes = _sizes([owner, *body])
        return Unit(_hash(text), _names(body) | decided, decided, switch, sizes=sizes)

    def _value(self, nodes: Sequence[ast.AST]) -> Unit:
        """Return statements, all that is in them included, as a unit."""
        text, names = self._text.of(nodes, whole=True), _names(nodes, whole=True)
        return Unit(_hash(text), names, is_value=True)

    def _sort(self, node: ast.stmt, values: dict[str, Unit]) -> bool:
        """Take a statement at the top of the module, unless it belongs to the rest."""
        names: list[str] = []
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names = [name] * compiled(node)
                if not names:  # its blocks are units
                    return True
            case ast.ClassDef(name=name):
                parts = [*_class(node)]
                read = frozenset({f"{name}~"}).union(*map(_names, parts))
                text = b"\0".join(map(self._text.of, parts))
                sizes = frozenset[str]().union(*map(_sizes, parts))
                values[name] = Unit(_hash(text), read, is_value=True, sizes=sizes)
                of = (n for n in self.units if n.startswith(f"{name}."))
                methods = sorted(n for n in of if "/" not in n)
                values[f"{name}~"] = Unit(_hash(" ".join(methods)), is_value=True)
                return True
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case ast.Assign(targets=targets):
                walked = (part for target in targets for part in ast.walk(target))
                targeted = [part for part in walked if not isinstance(part, _UNPACKED)]
                names = [part.id for part in targeted if isinstance(part, ast.Name)]
                if len(names) < len(targeted):
                    return False
            case ast.Import() | ast.ImportFrom():
                for given, meant, alone in _imported(node, self.path):
                    unit = Unit(_hash(meant), is_value=True, alone=_hash(alone))
                    values[f"<{given}"] = unit
                return True
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[]):
                return True
            case ast.Expr(value=ast.Constant()):
                return True
        if self.units.keys() & {*names}:  # a function that is replaced
            return False
        for name in {*names} - _LISTS:
            unit, old = self._value([node]), values.get(name)
            if old:  # assigned again
                both = _hash(f"{old.hash} {unit.hash}")
                unit = replace(unit, hash=both, names=old.names | unit.names)
            values[name] = unit
        return bool(names)

    def has(self, name: str, hash: str) -> bool:
        """Tell whether a unit has a hash, as this or an older record holds it."""
        unit = self.units.get(name)
        return unit is not None and hash in (unit.hash, unit.alone)

    def bounds(self, name: str) -> Counter[str]:
        """Return the numbers and constants that may bound a size in a block.

        Those in comparisons of sizes, conditional values, slices, least and largest
        values, but in no test of a branch; and those given to the names in them.
        """
        nodes = [*_walk(self._blocks.get(name, ()), False)]
        tests = [n.test for n in nodes if isinstance(n, ast.If | ast.While)]
        bounds = [n for n in nodes if _is_bound(n) and n not in tests]
        names = {n.id for b in bounds for n in ast.walk(b) if isinstance(n, ast.Name)}
        given = [value for name, value in _given(nodes) if name in names]
        return Counter(size for node in [*bounds, *given] for size in _numbers(node))

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The hash of each unit."""
        return {name: unit.hash for name, unit in self.units.items()}


class Cells(Source):
    """The blocks of a chapter's cells, each named by its hash, as it has no place."""

    def __init__(self, cells: Iterable[str]):
        self.path, self.units, self.noted, self.imports = "", {}, {}, {}
        self._blocks = {}  # a chapter is the experiment: whoever edits it records it
        for cell in cells:
            code = cell_code(cell) or ""
            tree = ast.parse(code)
            self._text = _Text(code, tree)
            for name, owner, body in cell_blocks(tree):
                unit = self._block(owner, body)
                self.units[unit.hash], self.noted[name] = unit, unit.hash

    def code(self, ran: Collection[str]) -> dict[str, str]:
        """Return the hash of each block, with "-" before it unless it ran."""
        did = {self.noted[name] for name in ran if name in self.noted}
        return {hash: hash if hash in did else f"-{hash}" for hash in self.units}


def reached(
    sources: Mapping[str, Source], ran: Mapping[str, set[str]], names: Iterable[str]
) -> Code:
    """Return the units that decide the numbers, and of functions what did not run."""
    code: Code = {}
    read = {path: {*source.units["."].names} for path, source in sources.items()}
    for path, source in sources.items():
        noted = ran.get(path, set())
        functions = {name.partition("/")[0] for name in noted}
        code[path] = {".": source.hashes["."]}
        for name, unit in source.units.items():
            if unit.is_value:
                continue
            if name in noted:
                code[path][name] = unit.hash
                read[path] |= unit.names | {*name.partition("/")[0].split(".")}
            elif name.partition("/")[0] in functions:
                code[path][name] = f"-{unit.hash}"
    anywhere, size = {*names}, -1
    while size < (size := len(anywhere) + sum(map(len, read.values()))):
        for path, source in sources.items():
            seen = read[path]
            anywhere |= {name[1:] for name in seen if name.startswith(".")}
            if "*" in source.imports:
                anywhere |= seen
            for given in source.imports.keys() & (seen | anywhere):
                module, name = source.imports[given]
                read.get(module, anywhere).add(name)
            for name, unit in source.units.items():
                if unit.is_value and name.removeprefix("<") in seen | anywhere:
                    code[path][name] = unit.hash
                    seen |= unit.names
    return code


def cell_names(cells: Iterable[str]) -> set[str]:
    """Return the identifiers in the code of cells."""
    found: set[str] = set()
    for cell in cells:
        tree = ast.parse(cell_code(cell) or "")
        given = (n.names for n in ast.walk(tree) if isinstance(n, ast.ImportFrom))
        found |= {alias.name for names in given for alias in names}
        found |= {name.removeprefix(".") for name in _names(tree.body, whole=True)}
    return found


def content_hash(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def cell_hash(source: str) -> str:
    """Return the hash of a cell's code, blind to comments and docstrings."""
    code = cell_code(source)
    if code is None:
        return content_hash(source.encode())
    magic = source.partition("\n")[0] if source.startswith("%%") else ""
    tree = ast.parse(code)
    text = _Text(code, tree).of(tree.body, whole=True)
    return content_hash(magic.encode() + b"\n" + text)


def _hash(text: bytes | str) -> str:
    return content_hash(text.encode() if isinstance(text, str) else text)[:12]


def _compares(node: ast.AST) -> bool:
    """Tell whether the condition of a statement compares two sizes."""
    parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    return any(isinstance(p, _ORDERS) for part in parts for p in ast.walk(part))


def _is_bound(node: ast.AST) -> bool:
    """Tell whether an expression may give another value from some size on."""
    match node:
        case ast.IfExp() | ast.Slice():
            return True
        case ast.Compare(ops=ops):
            return any(isinstance(op, _ORDERS) for op in ops)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _EXTREMES
    return False


def _numbers(node: ast.AST) -> Iterator[str]:
    """Yield the numbers in it, but 0 and 1, and the names of constants."""
    for part in ast.walk(node):
        match part:
            case ast.Constant(value=int() | float() as value) if value not in (0, 1):
                yield str(value)
            case ast.Name(id=name) if len(name) > 1 and name.isupper():
                yield name


def _shows(node: ast.stmt) -> bool:
    """Tell whether a statement raises or warns, so that a run shows that it ran."""
    match node:
        case ast.Raise():
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="warn"))):
            return True
    return False


def _class(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the head of a class and its statements that define no function."""
    yield [node]
    for suite in suites(node):
        for part in suite:
            if compiled(part) or not isinstance(part, Function):
                yield from _class(part)


def _called(owner: ast.AST) -> list[ast.expr]:
    """Return what the head of a function calls when it is defined."""
    if not isinstance(owner, Function):
        return []
    defaults = [*owner.args.defaults, *filter(None, owner.args.kw_defaults)]
    return [
        part
        for part in [*owner.decorator_list, *defaults]
        if any(isinstance(within, ast.Call) for within in ast.walk(part))
    ]


def _names(nodes: Iterable[ast.AST], whole: bool = False) -> frozenset[str]:
    """Return the identifiers in statements or text, of inner blocks only if `whole`."""
    found = set()
    for node in _walk(nodes, whole):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(f".{node.attr}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value, f".{node.value}"}
    return frozenset(found)


def _sizes(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names that statements give a size to: a number, neither 0 nor 1."""
    return frozenset(
        name
        for name, value in _given(_walk(nodes, False))
        if isinstance(value, ast.Constant | ast.BinOp | ast.UnaryOp)
        if any(
            isinstance(number, ast.Constant) and number.value not in (0, 1, None)
            for number in ast.walk(value)
        )
    )


def _given(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that nodes give a value to, each with the value."""
    given: list[tuple[Any, ast.expr | None]] = []
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                given += [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=value):
                given.append((target, value))
            case ast.keyword(value=value):
                given.append((node, value))
            case ast.arguments():
                places = [*node.posonlyargs, *node.args]
                given += zip(reversed(places), reversed(node.defaults), strict=False)
                given += zip(node.kwonlyargs, node.kw_defaults, strict=True)
    for target, value in given:
        for part in ("id", "attr", "arg"):
            if value and (name := getattr(target, part, None)):
                yield name, value


def _walk(nodes: Iterable[ast.AST], whole: bool) -> Iterator[ast.AST]:
    """Yield all nodes in statements, those of the blocks in them only if `whole`."""
    todo = [*nodes]
    while todo:
        node = todo.pop()
        yield node
        within = () if whole else [part for suite in suites(node) for part in suite]
        todo += [part for part in ast.iter_child_nodes(node) if part not in within]


def _origin(node: ast.ImportFrom, path: str) -> str:
    """Return the path of the module that a statement imports from."""
    above = path.split("/")[: -node.level] if node.level else []
    return "/".join([*above, *(node.module or "__init__").split(".")]) + ".py"


def _imported(node: ast.Import | ast.ImportFrom, path: str) -> Iterator[list[str]]:
    """Yield the names that a statement gives, what they mean, and its name if near."""
    module = getattr(node, "module", None) or ""
    top = module.partition(".")[0]
    near = getattr(node, "level", 0) or top in _HOUSE or top in path.split("/")
    for alias in node.names:
        given = alias.asname or alias.name
        if isinstance(node, ast.Import):
            meant = alias.name if alias.asname else ""
            yield [given.partition(".")[0], meant, meant]
        elif near:
            yield [given, f"{_origin(node, path)}:{alias.name}", alias.name]
        else:
            yield [given, *2 * [f"{module}.{alias.name}"]]


class _Text:
    """A text without comments and docstrings, from which parts are taken."""

    def __init__(self, text: str, tree: ast.Module):
        self.lines = text.encode().splitlines()
        self.joined = set[int]()  # to the line before, by a string
        starts: list[int] = []
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind, (row, column) = tokenize.tok_name[token.type], token.start
            if kind == "COMMENT":
                before = self.lines[row - 1].decode()[:column]
                self.lines[row - 1] = before.encode()
            if kind.endswith(("STRING", "STRING_START")):
                starts.append(row)
            if kind.endswith(("STRING", "STRING_END")):  # of an f-string
                self.joined |= {*range(starts.pop() + 1, token.end[0] + 1)}
        for node in filter(documented, ast.walk(tree)):
            document = _span(node.body[0])  # type: ignore[attr-defined]
            for row, start, end in self._rows(*document):
                line = self.lines[row - 1]
                self.lines[row - 1] = line[:start] + b" " * (end - start) + line[end:]
            self.joined -= {*range(document[0][0] + 1, document[1][0] + 1)}

    def of(self, nodes: Iterable[ast.AST], whole: bool = False) -> bytes:
        """Return the text of statements, without the blocks within unless `whole`."""
        kept: list[bytes] = []
        for node in nodes:
            first, last = _span(node)
            cuts = [] if whole else sorted(_span(*suite) for suite in suites(node))
            edges, parts = [first, *(edge for cut in cuts for edge in cut), last], []
            for span in zip(edges[::2], edges[1::2], strict=True):
                for row, start, end in self._rows(*span):
                    part = self.lines[row - 1][start:end]
                    if row + 1 not in self.joined:
                        part = part.rstrip()
                    if part.strip() or row in self.joined:
                        parts.append(part)
                parts.append(b"\0")
            if any(part != b"\0" for part in parts):  # no docstring
                kept += parts
        return b"\n".join(kept)

    def _rows(self, first: _Place, last: _Place) -> Iterator[tuple[int, int, int]]:
        """Yield the rows of a part, each with its first byte and its end."""
        for row in range(first[0], last[0] + 1):
            start, length = first[1] * (row == first[0]), len(self.lines[row - 1])
            yield row, start, last[1] if row == last[0] else length


def _span(*nodes: Any) -> tuple[_Place, _Place]:
    """Return where statements stand that follow each other, decorators included."""
    heads = [nodes[0], *getattr(nodes[0], "decorator_list", ())]
    start = min((head.lineno, head.col_offset) for head in heads)
    return start, (nodes[-1].end_lineno, nodes[-1].end_col_offset)


def packed(code: Code) -> dict[str, str]:
    """Return code with the units of a module in one line, as files keep it."""
    return {
        path: " ".join(f"{name} {hash}" for name, hash in sorted(units.items()))
        for path, units in code.items()
    }


def unpacked(lines: Mapping[str, str]) -> Code:
    """Return code from what `packed` made of it."""
    words = ((path, line.split()) for path, line in lines.items())
    return {path: dict(zip(w[::2], w[1::2], strict=True)) for path, w in words}
