"""Results of a function, kept on disk with the code that they came from.

A result is computed again when the arguments, the function, the values that it reads in
the notebook, the code that ran, the data or the locked versions have changed.
"""

import dis
import inspect
import os
import sys
import textwrap
import warnings
from _thread import get_ident
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial, update_wrapper
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import joblib
from joblib.hashing import NumpyHasher

from press.code import cell_names, packed, unpacked
from press.inputs import LOCK, Checkout, Trace, differing_units
from press.repository import Repository

_NOTHING = object()
_real = cache(os.path.realpath)  # without links, as the repository's
_NO_VALUE = ModuleType | FunctionType | BuiltinFunctionType | type

# The file of a result, and the hashes of what the function reads in the notebook.
Key = tuple[Path, list[tuple[str, str]]]


class Kept:
    """A function whose results are kept in a folder.

    Under the press the code of a result is what ran so far, in this process and in
    those that it started; elsewhere it is all of the repository that is imported.

    Parameters
    ----------
    function : callable
        Its arguments, and what it reads in the notebook, are told apart by
        `joblib.hash`; functions and classes of the notebook by their text.
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
        kept = {k: v for k, v in given.arguments.items() if k not in self.ignore}
        key = self.key(kept)
        found = self.read(key)
        if found is _NOTHING:
            found = self.write(key, self.function(*arguments, **options))
        return found

    def key(self, arguments: dict[str, Any]) -> Key:
        """Return what tells a result from others, before the function runs."""
        name = getattr(self, "__qualname__", "function").replace("<lambda>", "lambda")
        module = getattr(self, "__module__", None)
        hash = _hashed("an argument", arguments, module, set())
        run = [*_parts(self.function, module, set())]
        return self.folder / f"{name}-{hash}.joblib", run

    def read(self, key: Key, default: Any = _NOTHING) -> Any:
        """Return the result that is kept under a key, or the default."""
        path, run = key
        try:
            stored: dict[str, Any] = joblib.load(path) if path.exists() else {}
        except Exception:  # cut off, or of another version of joblib or NumPy
            return default
        if stored.get("run") != run:
            return default
        code, now = unpacked(stored["code"]), self._checkout
        same = (
            stored["files"] == now.hashes(stored["files"])
            and stored["data"] == {name: now.data.get(name) for name in stored["data"]}
            and not differing_units(code, now.code(code))
        )
        return stored["result"] if same else default

    def write(self, key: Key, result: Any) -> Any:
        """Keep a result under a key; return it, with a warning if that fails."""
        path, run = key
        part = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            joblib.dump({"run": run, **self._what_ran(run), "result": result}, part)
            part.replace(path)
        except Exception as error:
            warnings.warn(f"a result is not kept: {error}", stacklevel=3)
        finally:
            with suppress(OSError):
                part.unlink()
        return result

    def _what_ran(self, run: list[tuple[str, str]]) -> dict[str, Any]:
        """Return the code and data of all that ran so far, or what was imported."""
        if self._log is None:
            files = self._checkout.hashes([*_imported(self._repository.root), LOCK])
            return {"code": {}, "data": self._checkout.data, "files": files}
        size = self._log.stat().st_size
        if self._size != size:
            trace = Trace(self._repository.root, self._log)
            code = trace.code(cell_names(text for _, text in run))
            data = {name: self._checkout.data.get(name) for name in trace.data}
            files = self._checkout.hashes([LOCK])
            self._noted = {"code": packed(code), "data": data, "files": files}
            self._size = size
        return self._noted


def _imported(root: Path) -> Iterator[str]:
    """Yield the modules below a root that are imported."""
    for module in [*sys.modules.values()]:
        path = Path(_real(getattr(module, "__file__", None) or "/"))
        if path.is_relative_to(root) and "site-packages" not in path.parts:
            yield path.relative_to(root).as_posix()


def _inner(function: Any) -> Any:
    return _inner(function.func) if isinstance(function, partial) else function


def _parts(part: Any, module: str | None, seen: set[int]) -> Iterator[tuple[str, str]]:
    """Yield name and text, or hash, of a function and of what it reads by name."""
    if isinstance(part, Kept):
        part = part.function
    if isinstance(part, partial):
        arguments = part.args, part.keywords
        yield "arguments", _hashed("the arguments", arguments, module, seen)
    part = inspect.unwrap(_inner(part))
    if isinstance(part, MethodType):
        yield "self", _hashed("the object", part.__self__, module, seen)
        part = inspect.unwrap(part.__func__)
    if not isinstance(part, _NO_VALUE):
        yield "self", _hashed("the object", part, module, seen)
    if not isinstance(part, FunctionType | type) or id(part) in seen:
        return
    seen.add(id(part))
    if isinstance(part, type):
        yield from _class(part, module, seen)
        return
    codes = [*_codes(part.__code__)]
    try:
        yield part.__qualname__, textwrap.dedent(inspect.getsource(part))
        alone = part.__name__ != "<lambda>"  # in its line
    except OSError:  # made by a decorator, as that of dataclasses
        alone = False
    if not alone:
        plain = [(code.co_code, code.co_names, _constants(code)) for code in codes]
        yield part.__qualname__, _hashed("its code", plain, module, seen)
    read = {name for code in codes for name in _globals(code)}
    known = {n: part.__globals__[n] for n in sorted(read) if n in part.__globals__}
    defaults = {"defaults": (part.__defaults__, part.__kwdefaults__)}
    free = inspect.getclosurevars(part).nonlocals
    for name, value in (known | {**free} | defaults).items():
        if isinstance(value, Kept | partial) or _is_notebook(value, part.__module__):
            yield from _parts(value, module, seen)
        elif not isinstance(value, _NO_VALUE):
            yield name, _hashed(name, value, module, seen)


def _class(part: type, module: str | None, seen: set[int]) -> Iterator[tuple[str, str]]:
    """Yield what a class of a notebook consists of; its whole text is not at hand."""
    yield part.__qualname__, " ".join(base.__qualname__ for base in part.__mro__)
    for base in part.__mro__:
        for name, value in vars(base).items() if _is_notebook(base, module) else ():
            names = ("fget", "fset", "__func__", "func")
            held = [value, *(getattr(value, name, None) for name in names)]
            functions = [part for part in held if _is_notebook(part, module)]
            for function in functions:
                yield from _parts(function, module, seen)
            plain = not (functions or hasattr(value, "__get__"))
            if plain and not name.startswith(("__", "_abc_")):
                yield name, _hashed(name, value, module, seen)


def _is_notebook(part: Any, module: str | None) -> bool:
    """Tell whether this is a function or a class that the module defines."""
    inner = inspect.unwrap(part) if callable(part) else part
    is_code = isinstance(inner, FunctionType | type)
    return is_code and getattr(part, "__module__", None) == module


def _globals(code: CodeType) -> set[str]:
    reads = ("LOAD_GLOBAL", "LOAD_NAME")
    return {s.argval for s in dis.get_instructions(code) if s.opname in reads}


def _constants(code: CodeType) -> list[Any]:
    return [part for part in code.co_consts if not isinstance(part, CodeType)]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


class _Hasher(NumpyHasher):
    """`joblib.hash` that knows functions and classes of a notebook by their text."""

    def __init__(self, module: str | None, seen: set[int]):
        super().__init__("md5")
        self._module, self._seen = module, seen

    def save(self, obj: Any) -> None:
        """Add an object, or the text of one, to what is hashed."""
        if _is_notebook(obj, self._module):
            obj = [*_parts(obj, self._module, self._seen)]
        super().save(obj)


def _hashed(name: str, value: Any, module: str | None, seen: set[int]) -> str:
    try:
        return str(_Hasher(module, seen).hash(value))
    except Exception as error:
        raise TypeError(
            f"cannot tell whether {name} ({type(value).__name__}) is still the same: "
            "make it within the function, or keep no results"
        ) from error
