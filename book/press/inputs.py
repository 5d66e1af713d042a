"""Inputs of a notebook, and what of them has changed since.

The *execution* of a chapter depends on its code, on what ran of the modules that it
imported, on the files and data that it read, on the locked versions and on its
parameters. What a chapter merely *displays*, the recorded results, the papers' figures
and the style of the press, changes no number.
"""

import json
import platform
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from .chapters import DECLARED, code_cells, declarations, parameters, read_chapter, tags
from .code import (
    Cells,
    Code,
    Source,
    Unit,
    cell_hash,
    cell_names,
    content_hash,
    packed,
    reached,
    unpacked,
)
from .repository import Repository

LOCK = "requirements.lock"
Hashes = dict[str, str | None]  # by name, None for what is absent
_SKIPPED = "skip-execution"  # a tag of nbclient
_DISPLAYED = ("book/results/", "book/papers.yml", "book/claims/", "book/press/")


@dataclass(frozen=True)
class Inputs:
    """Hashes of all that decides the outputs of a chapter, None for what is absent."""

    files: Hashes  # the chapter, the lock, what was read
    code: Code
    data: Hashes  # files of data sets
    parameters: dict[str, Any]  # the defaults included
    python: str = field(default_factory=lambda: platform.python_version())

    @classmethod
    def read(cls, noted: Mapping[str, Any]) -> "Inputs":
        """Return inputs that `write` made plain, among whatever else was noted."""
        kept = {part.name: noted[part.name] for part in fields(cls)}
        return cls(**{**kept, "code": unpacked(kept["code"])})

    def write(self) -> dict[str, Any]:
        """Return the same as plain text and numbers, for a file."""
        return {**asdict(self), "code": packed(self.code)}


class Checkout:
    """The files of a repository as they are; what was read is not read again."""

    def __init__(self, repository: Repository):
        self.repository = repository
        self._hash = cache(lambda path: hash_of(repository.root / path))
        self.source = cache(self._read_source)

    def inputs(
        self, chapter: str, parameters: dict[str, Any], like: Inputs | None = None
    ) -> Inputs:
        """Return what a chapter would now be made from."""
        like = like or Inputs({}, {}, {}, {})
        files = self.hashes({*like.files, LOCK})
        source = self.repository.source(chapter)
        files[self.repository.relative(source)] = chapter_hash(source)
        data = {name: self.data.get(name) for name in sorted(like.data)}
        values = json.loads(json.dumps(parameters, default=str))
        return Inputs(dict(sorted(files.items())), self.code(like.code), data, values)

    def hashes(self, files: Iterable[str]) -> Hashes:
        """Return the present hashes of files, None for what is absent."""
        return {path: self._hash(path) for path in files}

    def code(self, like: Code) -> Code:
        """Return the present hashes of units, which may have moved elsewhere."""
        now: dict[str, Any] = {}
        for path, units in like.items():
            now[path] = {
                n: self._imported(path, n, then, like)
                if n.startswith("<")
                else self._present(path, n, then)
                for n, then in units.items()
            }
        return now

    def unit(self, path: str, name: str) -> Unit | None:
        """Return a unit of a module as it is, or as it moved; None if there is none."""
        sources = [self.source(path), *([] if name == "." else self._sources)]
        return next((s.units[name] for s in sources if name in s.units), None)

    def bounds(self, path: str, name: str) -> Counter[str]:
        """Return the numbers that may bound sizes in a unit, see `Source.bounds`."""
        sources = self.source(path), *self._sources
        return next((s.bounds(name) for s in sources if name in s.units), Counter())

    def like(self, path: str, name: str) -> set[str]:
        """Return the hashes of the blocks of the function that a block belongs to."""
        function, here = name.partition("/")[0], self.source(path).hashes
        return {hash for n, hash in here.items() if n.partition("/")[0] == function}

    def _present(self, path: str, name: str, then: str) -> Any:
        here, hash = self.source(path).hashes, then.removeprefix("-")
        if name in here:
            return then.removesuffix(hash) + here[name]
        top = re.split("[./~]", name)[0]
        if place := self._defined(path, top):
            source, given = place
            moved = source.hashes.get(given + name.removeprefix(top)) == hash
        else:
            gone = top not in self.source(path).imports
            moved = gone and any(s.hashes.get(name) == hash for s in self._sources)
        return then if moved else None

    def _imported(self, path: str, name: str, then: str, like: Code) -> Any:
        """Return the hash of an import, as noted if what it gives has only moved."""
        here = self.source(path)
        if here.has(name, then):
            return then
        if place := self._defined(path, name[1:]):
            source, given = place
            noted = [
                (old, units[given]) for old, units in like.items() if given in units
            ]
            moved = (not noted and given == name[1:]) or any(
                hash.removeprefix("-") == source.hashes[given]
                and given not in self.source(old).units
                for old, hash in noted
            )
        else:
            gone = name not in here.units
            moved = gone and any(source.has(name, then) for source in self._sources)
        return then if moved else here.hashes.get(name)

    def _defined(self, path: str, name: str) -> tuple[Source, str] | None:
        """Return where in the house a name of a module is defined, and as what."""
        source = self.source(path)
        for _ in self._sources:
            if name in source.units or name not in source.imports:
                break
            module, name = source.imports[name]
            ends = (s for s in self._sources if f"/{s.path}".endswith(f"/{module}"))
            source = next(ends, Cells(()))
        return (source, name) if name in source.units else None

    @cached_property
    def _sources(self) -> list[Source]:
        """All modules of the package and the book."""
        tops = (self.repository.root / self.repository.package, self.repository.book)
        files = [file for top in tops for file in sorted(top.rglob("*.py"))]
        return [self.source(self.repository.relative(file)) for file in files]

    def _read_source(self, path: str) -> Source:
        """Return a module or a chapter in its units, none if it cannot be read."""
        file = self.repository.root / path
        try:
            if path.endswith(".md"):
                return Cells(cell.source for cell in code_cells(read_chapter(file)))
            return Source(file.read_bytes(), path)
        except (OSError, SyntaxError, ValueError):
            return Cells(())

    @cached_property
    def data(self) -> Hashes:
        """Hashes of the files of data sets, by name; empty if the book has none."""
        place = self.repository.data.replace(".", "/")
        tops = self.repository.root, self.repository.book
        there = any((top / place).exists() for top in tops)
        return import_module(self.repository.data).fingerprint() if there else {}


class Trace:
    """What the processes of a chapter read and ran, as `press.tracer` noted it."""

    def __init__(self, root: Path, log: Path):
        self.root, self.folder = root, log.parent
        self.versions = defaultdict[str, set[str]](set)
        self.ran = defaultdict[str, set[str]](set)
        self.data: set[str] = set()
        for line in log.read_text("utf-8", "surrogateescape").split("\n"):
            match line.split(" ", 2):
                case ["data", *name]:
                    self.data.add(" ".join(name))
                case ["file", version, path]:
                    self.versions[path].add(version)
                case ["ran", block, path]:
                    self.ran[path].add(block)
        self.blocks = self.ran.pop(".", set())  # of the chapter

    def inputs(
        self, chapter: str, cells: Sequence[str], now: Inputs, data: Hashes
    ) -> Inputs:
        """Return what a chapter was made from."""
        modules = self.ran.keys() | self._lists
        others = self.versions.keys() - modules - now.files.keys()
        files = {path: self._version(path) for path in others} | now.files
        known = {name: data.get(name) for name in sorted(self.data)}
        code = self.code(cell_names(cells))
        code[chapter] = Cells(cells).code(self.blocks)
        return replace(now, files=dict(sorted(files.items())), code=code, data=known)

    def code(self, names: Iterable[str]) -> Code:
        """Return the units of modules that decided, given the names in a chapter."""
        sources = {}
        for path in sorted(self.ran.keys() | self._lists):
            copy = self.folder / (self._version(path) or "-")
            sources[path] = Source(copy.read_bytes(), path)
        return reached(sources, self.ran, names)

    @property
    def _lists(self) -> set[str]:
        """Lists of the public names of packages, which are read to find a name."""
        return {path for path in self.versions if path.endswith(".pyi")}

    def _version(self, path: str) -> str | None:
        """Return the hash of a file as it was read; of two, not the present one."""
        present = hash_of(self.root / path) or "-"
        found = sorted(self.versions.get(path, {present}), key=lambda v: v == present)
        return None if found[0] == "-" else found[0]


def hash_of(path: Path) -> str | None:
    """Return the hash of a file, None if it cannot be read."""
    try:
        return content_hash(path.read_bytes())
    except OSError:
        return None


def chapter_hash(path: Path) -> str:
    """Return the hash of the code of a chapter, without prose and parameters."""
    notebook = read_chapter(path)
    cells: list[list[Any]] = []
    for cell in code_cells(notebook):
        if DECLARED in tags(cell):
            _, rest = declarations(cell.source)
            code = sorted(parameters(notebook)) + [cell_hash(rest)] * bool(rest)
            cells.append([code, [DECLARED]])
        else:
            cells.append([cell_hash(cell.source), [*{_SKIPPED} & {*tags(cell)}]])
    return content_hash(json.dumps(cells).encode())


def changes(then: Inputs, now: Inputs) -> dict[str, list[str]]:
    """Return what differs: names under "code", "versions", "data" and so on."""
    files = {*_differing(then.files, now.files)}
    units = differing_units(then.code, now.code)
    code = sorted(files - {LOCK} | {*map(place, units)})
    found = {
        "code": [name for name in code if not displayed(name)],
        "versions": [LOCK] * (LOCK in files) + ["Python"] * (then.python != now.python),
        "data": _differing(then.data, now.data),
        "parameters": _differing(then.parameters, now.parameters),
        "display": [name for name in code if displayed(name)],
    }
    return {kind: names for kind, names in found.items() if names}


def differing_units(then: Code, now: Code) -> set[tuple[str, str]]:
    """Return path and name of the units that ran and differ."""
    return {
        (path, name)
        for path, units in then.items()
        for name, hash in units.items()
        if not hash.startswith("-") and now.get(path, {}).get(name) != hash
    }


def place(unit: tuple[str, str]) -> str:
    """Return a unit, or the function that a block belongs to, as messages show it."""
    path, name = unit
    if path.endswith(".md"):  # a block of a chapter
        return path
    name = name.partition("/")[0].partition("~")[0].removeprefix("<")
    return path if name in (".", "def") else f"{path}:{name}"


def displayed(name: str) -> bool:
    """Tell whether a file or a unit only says what a chapter displays."""
    return name.startswith(_DISPLAYED)


def _differing(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the names whose values differ as JSON, which tells 3 from 3.0."""
    texts = [
        {name: json.dumps(value, sort_keys=True) for name, value in values.items()}
        for values in (then, now)
    ]
    return sorted({name for name, _ in texts[0].items() ^ texts[1].items()})
