"""What a notebook was made from, and what of it has changed since.

Two things are kept apart. The *execution* of a chapter depends on its code, on the
sources and data that it read, on the locked versions and on its parameters: if any of
these changes, so may every number. What a chapter merely *displays* beside them, the
recorded results, the papers' figures and the style of the press, changes no number.
"""

import ast
import json
import platform
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from .chapters import cell_code, code_cells, parameters, read_chapter, tags
from .repository import Repository
from .sources import cell_hash, content_hash, source_hash

LOCK = "requirements.lock"
_TAGS = {"parameters", "raises-exception", "skip-execution"}


@dataclass(frozen=True)
class Inputs:
    """Hashes of all that decides the outputs of a chapter, None for what is absent.

    Parameters
    ----------
    files : dict
        Path of a file -> hash: the chapter, the lock, the sources that were read.
    data : dict
        File of a data set -> hash.
    display : dict
        Path of a file with results, figures or style -> hash.
    parameters : dict
        Name -> value, the defaults included.
    python : str
        Version of Python.
    """

    files: dict[str, str | None]
    data: dict[str, str | None]
    display: dict[str, str | None]
    parameters: dict[str, Any]
    python: str = field(default_factory=lambda: platform.python_version())

    @property
    def execution_key(self) -> str:
        """Hash of what decides the numbers."""
        parts = {k: v for k, v in asdict(self).items() if k != "display"}
        return _digest(parts)

    @property
    def display_key(self) -> str:
        """Hash of what is shown beside them."""
        return _digest(self.display)

    @property
    def names(self) -> "Names":
        """The names of the files and data sets, without their hashes."""
        return Names(frozenset({*self.files, *self.display}), frozenset(self.data))


@dataclass(frozen=True)
class Names:
    """The files, and the files of data sets, that a chapter read."""

    files: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()


class Checkout:
    """The files of a repository as they are; what was read is not read again.

    Parameters
    ----------
    repository : Repository
        The book and its package.
    """

    def __init__(self, repository: Repository):
        self.repository = repository
        self._read = cache(self._read_hash)

    def inputs(
        self, chapter: str, parameters: dict[str, Any], names: Names = Names()
    ) -> Inputs:
        """Return what a chapter would now be made from.

        Parameters
        ----------
        chapter : str
            Name of the chapter.
        parameters : dict
            Their values in force.
        names : Names
            What it read when it was executed.
        """
        source = self.repository.relative(self.repository.source(chapter))
        hashes = {path: self._hash(path, names) for path in sorted(names.files)}
        display = {path: hashes.pop(path) for path in [*hashes] if self.displayed(path)}
        own: dict[str, str | None] = {source: None}
        with suppress(FileNotFoundError):
            own[source] = chapter_hash(self.repository.source(chapter))
        lock = {LOCK: self._hash(LOCK, names)}
        data = {name: self.data.get(name) for name in sorted(names.data)}
        values = json.loads(json.dumps(parameters, default=str))
        return Inputs(hashes | own | lock, data, display, values)

    def _hash(self, path: str, names: Names) -> str | None:
        """Return the hash of a file; only packages depend on what else was read."""
        package = path.endswith("__init__.py")
        return self._read(path, names.files if package else frozenset())

    def _read_hash(self, path: str, files: frozenset[str]) -> str | None:
        try:
            content = (self.repository.root / path).read_bytes()
        except OSError:
            return None
        return source_hash(path, content, files)

    def displayed(self, path: str) -> bool:
        """Tell whether a file only says what a chapter displays."""
        press = f"{self.repository.package}/press/"
        lists = ("book/papers.yml", "book/claims.yml", "book/numbered.yml")
        return path.startswith(("book/results/", *lists, press))

    @cached_property
    def data(self) -> dict[str, str | None]:
        """Hashes of the files of data sets, by name; empty if the package has none."""
        if not (self.repository.root / self.repository.package / "datasets").exists():
            return {}
        return import_module(f"{self.repository.package}.datasets").fingerprint()


class Trace:
    """What the processes of a chapter read, as `simlib.press.tracer` noted it.

    Parameters
    ----------
    folder : Path
        The folder with the log and the sources that were read.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.versions: dict[str, set[str]] = {}
        data = set()
        log = (folder / "log").read_bytes().decode("utf-8", "surrogateescape")
        for line in log.split("\n"):
            match line.split(" ", 2):
                case ["data", *name]:
                    data.add(" ".join(name))
                case ["file", version, path]:
                    self.versions.setdefault(path, set()).add(version)
        self.names = Names(frozenset(self.versions), frozenset(data))

    def inputs(self, now: Inputs, data: dict[str, str | None]) -> Inputs:
        """Return what a chapter was made from.

        Parameters
        ----------
        now : Inputs
            What it would now be made from. Of a file that was read in several versions
            one counts that is not the present one.
        data : dict
            File of a data set -> hash when the chapter began.
        """
        files = {path: self._read(path, hash) for path, hash in now.files.items()}
        display = {path: self._read(path, hash) for path, hash in now.display.items()}
        known = {name: data.get(name) for name in now.data}
        return replace(now, files=files, display=display, data=known)

    def _read(self, path: str, now: str | None) -> str | None:
        read = (self._hash(path, version) for version in self.versions.get(path, ()))
        return next((hash for hash in read if hash != now), now)

    def _hash(self, path: str, version: str) -> str | None:
        copy = self.folder / version
        if copy.is_file():
            return source_hash(path, copy.read_bytes(), self.names.files)
        return None if version == "-" else version


def chapter_hash(path: Path) -> str:
    """Return the hash of the code of a chapter.

    Prose counts for nothing, and neither do the defaults of parameters, whose values
    in force are inputs of their own.
    """
    notebook = read_chapter(path)
    declared = sorted(parameters(notebook))
    cells = []
    for cell in code_cells(notebook):
        steering = sorted(_TAGS & {*tags(cell)})
        code: str | list[str] = cell_hash(cell.source)
        if "parameters" in steering:
            rest = _undeclaring(cell.source)
            code = [*declared, *([cell_hash(rest)] if rest else [])]
        cells.append([code, steering])
    return _digest(cells)


def _undeclaring(source: str) -> str:
    """Return the statements of a cell that declare no parameter."""
    code = cell_code(source)
    if code is None:
        return source
    segments = []
    for node in ast.parse(code).body:
        match node:
            case ast.AnnAssign(target=ast.Name(), value=ast.expr()):
                continue
            case ast.Assign(targets=[ast.Name()]):
                continue
        segments.append(ast.get_source_segment(code, node) or "")
    return "\n".join(segments)


def changes(then: Inputs, now: Inputs) -> dict[str, list[str]]:
    """Return what differs: names under "code", "versions", "data" and so on.

    Kinds of which nothing differs are left out.
    """
    code = _differing(then.files, now.files)
    found = {
        "code": [path for path in code if path != LOCK],
        "versions": [LOCK] * (LOCK in code) + ["Python"] * (then.python != now.python),
        "data": _differing(then.data, now.data),
        "parameters": _differing(then.parameters, now.parameters),
        "display": _differing(then.display, now.display),
    }
    return {kind: names for kind, names in found.items() if names}


def _differing(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the names whose values differ as JSON, which tells 3 from 3.0."""
    texts = [
        {name: json.dumps(value, sort_keys=True) for name, value in values.items()}
        for values in (then, now)
    ]
    return sorted({name for name, _ in texts[0].items() ^ texts[1].items()})


def _digest(value: Any) -> str:
    return content_hash(json.dumps(value, sort_keys=True, default=str).encode())
