"""Results of a function, kept on disk with the code that they came from.

A result is computed again when the arguments, the function, the values that it reads in
the notebook, the code that ran, the data or the locked versions have changed.
"""

import dis
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial, update_wrapper
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import joblib

from press.code import cell_names, packed, unpacked
from press.inputs import LOCK, Checkout, Trace, differing_units
from press.repository import Repository

_NOTHING = object()


class Kept:
    """A function whose results are kept in a folder.

    Under the press the code of a result is what ran so far, in this process and in
    those that it started; elsewhere it is all of the repository that is imported.

    Parameters
    ----------
    function : callable
        Its arguments, and what it reads in the notebook, are told apart by
        `joblib.hash`.
    folder : path
        Where the results lie, a file for each.
    ignore : iterable of str
        Arguments that do not change the result, as the number of processes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from study import Kept
    >>> with TemporaryDirectory() as folder:
    ...     double = Kept(lambda n: print("once") or 2 * n, folder)
    ...     double(3), double(3)
    once
    (6, 6)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        folder: str | os.PathLike[str],
        ignore: Iterable[str] = (),
    ):
        self.function, self.folder, self.ignore = function, Path(folder), {*ignore}
        update_wrapper(self, inspect.unwrap(_inner(function)), updated=())
        traced = "PRESS_LOG" in os.environ
        self._log = Path(os.environ["PRESS_LOG"]) if traced else None
        self._repository = Repository.here()
        if traced:
            package = os.environ["PRESS_DATA"].partition(".")[0]
            self._repository = Repository(Path(os.environ["PRESS_ROOT"]), package)
        self._checkout = Checkout(self._repository)
        self._size, self._noted = -1, dict[str, Any]()

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return the result for some arguments."""
        given = inspect.signature(self.function).bind(*arguments, **options)
        given.apply_defaults()
        key = {k: v for k, v in given.arguments.items() if k not in self.ignore}
        found = self.read(key)
        if found is _NOTHING:
            found = self.write(key, self.function(*arguments, **options))
        return found

    def read(self, arguments: dict[str, Any], default: Any = _NOTHING) -> Any:
        """Return the result that is kept for some arguments, or the default."""
        path = self._file(arguments)
        try:
            stored: dict[str, Any] = joblib.load(path) if path.exists() else {}
        except Exception:  # cut off, or of another version of joblib or NumPy
            return default
        if stored.get("run") != self._read_by_name():
            return default
        code, now = unpacked(stored["code"]), self._checkout
        same = (
            stored["files"] == now.hashes(stored["files"])
            and stored["data"] == {name: now.data.get(name) for name in stored["data"]}
            and not differing_units(code, now.code(code))
        )
        return stored["result"] if same else default

    def write(self, arguments: dict[str, Any], result: Any) -> Any:
        """Keep the result for some arguments; return it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._file(arguments)
        run = self._read_by_name()
        part = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            joblib.dump({"run": run, **self._what_ran(run), "result": result}, part)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return result

    def _file(self, arguments: dict[str, Any]) -> Path:
        name = getattr(self, "__qualname__", "function").replace("<lambda>", "lambda")
        return self.folder / f"{name}-{_hashed('an argument', arguments)}.joblib"

    def _read_by_name(self) -> dict[str, str]:
        return dict(_parts(self.function, set()))

    def _what_ran(self, run: dict[str, str]) -> dict[str, Any]:
        """Return the code and data of all that ran so far, or what was imported."""
        if self._log is None:
            files = self._checkout.hashes([*_imported(self._repository.root), LOCK])
            return {"code": {}, "data": self._checkout.data, "files": files}
        size = self._log.stat().st_size
        if self._size != size:
            trace = Trace(self._repository.root, self._log)
            code = trace.code(cell_names(run.values()))
            data = {name: self._checkout.data.get(name) for name in trace.data}
            files = self._checkout.hashes([LOCK])
            self._noted = {"code": packed(code), "data": data, "files": files}
            self._size = size
        return self._noted


def _imported(root: Path) -> Iterator[str]:
    """Yield the modules below a root that are imported."""
    for module in [*sys.modules.values()]:
        path = Path(getattr(module, "__file__", None) or "/")
        if path.is_relative_to(root) and "site-packages" not in path.parts:
            yield path.relative_to(root).as_posix()


def _inner(function: Any) -> Any:
    return _inner(function.func) if isinstance(function, partial) else function


def _parts(part: Any, seen: set[int]) -> Iterator[tuple[str, str]]:
    """Yield name and text, or hash, of a function and of what it reads by name.

    What is imported counts by the code that runs.
    """
    if isinstance(part, partial):
        yield "arguments", _hashed("the arguments", (part.args, part.keywords))
    if isinstance(part, Kept):
        part = part.function
    function = inspect.unwrap(_inner(part))
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    yield function.__qualname__, inspect.getsource(function)
    free = inspect.getclosurevars(function)
    read = {name for code in _codes(function.__code__) for name in _globals(code)}
    known = {n: v for n, v in function.__globals__.items() if n in read}
    defaults = {"defaults": (function.__defaults__, function.__kwdefaults__)}
    for name, value in (known | {**free.nonlocals} | defaults).items():
        if isinstance(value, Kept | partial) or _is_notebook(value, function):
            if isinstance(value, type):
                yield name, inspect.getsource(value)
            else:
                yield from _parts(value, seen)
        elif not isinstance(value, ModuleType | FunctionType | type):
            yield name, _hashed(name, value)


def _is_notebook(part: Any, function: FunctionType) -> bool:
    """Tell whether a function or a class is of the module that a function is of."""
    module = getattr(part, "__module__", None)
    return isinstance(part, FunctionType | type) and module == function.__module__


def _globals(code: CodeType) -> set[str]:
    reads = ("LOAD_GLOBAL", "LOAD_NAME")
    return {s.argval for s in dis.get_instructions(code) if s.opname in reads}


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _hashed(name: str, value: Any) -> str:
    try:
        return str(joblib.hash(value))
    except Exception as error:
        raise TypeError(
            f"cannot tell whether {name} ({type(value).__name__}) is still the same: "
            "make it within the function, or keep no results"
        ) from error
