"""How items are fetched and the function is called, here or in another process."""

from __future__ import annotations

import inspect
import os
import pickle
import threading
import time
from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

__all__ = [
    "accessor",
    "as_items",
    "call",
    "call_there",
    "count",
    "indexable",
    "is_async",
    "is_frame",
    "numeric",
    "unmasked",
]


def indexable(items: Any) -> Any:
    """Return items that can be fetched by number; raise for what is none."""
    if scipy.sparse.issparse(items):
        return items.tocsr()
    if isinstance(items, str | bytes | bytearray | os.PathLike):
        raise TypeError(
            f"Items are a sequence or an array; a {type(items).__name__} is one item: "
            "pass [x]. The name of a file is not read: pass what it holds."
        )
    sized = hasattr(items, "shape") or hasattr(items, "__len__")
    if isinstance(items, Mapping | Set) or not sized:
        mapping = isinstance(items, Mapping)
        lacks = "no numbers" if mapping else "no order" if sized else "no len()"
        raise TypeError(
            f"Items are a sequence or an array; a {type(items).__name__} has {lacks}. "
            f"Pass list(items{'.values()' if mapping else ''})."
        )
    return items


def as_items(items: Any, batch: str | None) -> Any:
    """Return items as a function of this form is given them.

    A data frame of one column is that column, and so is an array of one that holds no
    numbers; but a function of blocks takes a column of numbers as a matrix. Of several
    columns the rows are mappings to a function of two items.
    """
    items = indexable(items)
    if is_frame(items):
        if items.shape[1] == 1 and not (batch == "block" and numeric(items)):
            if hasattr(items, "iloc"):
                return items.iloc[:, 0]
            return [value for row in _records(items) for value in row.values()]
        return _records(items) if batch is None else items
    if isinstance(items, np.ndarray) and items.shape[1:] == (1,) and not numeric(items):
        return items[:, 0]
    return items


def count(items: Any) -> int:
    """Return how many items there are."""
    if not hasattr(items, "shape"):
        return len(items)
    if len(items.shape) == 0:
        raise ValueError("Items are a sequence or an array; got a single value.")
    return int(items.shape[0])


def is_frame(items: Any) -> bool:
    """Tell whether items are the rows of a data frame."""
    return hasattr(items, "columns") and len(getattr(items, "shape", ())) == 2


def numeric(table: Any) -> bool:
    """Tell whether a data frame or an array holds numbers alone."""
    dtypes = getattr(table, "dtypes", None)  # of a data frame
    if dtypes is None:
        return getattr(table, "dtype", np.dtype(object)).kind in "biufcV"
    return all(
        dtype.is_numeric() if hasattr(dtype, "is_numeric") else dtype.kind in "biufc"
        for dtype in dtypes
    )


def _records(frame: Any) -> list[dict[Any, Any]]:
    """Return the rows of a data frame, each a mapping from the names of columns."""
    for name in ("to_dicts", "to_pylist"):  # of Polars, of Arrow
        if hasattr(frame, name):
            return getattr(frame, name)()
    return frame.to_dict("records")


def accessor(items: Any) -> Callable[[np.ndarray], Any]:
    """Return the function that fetches items, given an array of their numbers."""
    if hasattr(items, "iloc"):
        return partial(_rows_of_frame, items)
    if is_frame(items):
        return partial(_rows_of_table, items)
    if scipy.sparse.issparse(items) or hasattr(items, "shape"):
        return partial(_rows_of_array, items)
    return partial(_elements, items)


def _rows_of_frame(items: Any, index: np.ndarray) -> Any:
    return items.iloc[index].reset_index(drop=True)  # or pandas aligns by labels


def _rows_of_table(items: Any, index: np.ndarray) -> Any:
    return items.take(index) if hasattr(items, "take") else items[index]


def _rows_of_array(items: Any, index: np.ndarray) -> Any:
    plain = isinstance(items, np.ndarray) or scipy.sparse.issparse(items)
    if plain or (np.diff(index) > 0).all():
        return items[index]
    index, at = np.unique(index, return_inverse=True)  # as an HDF5 file demands
    return items[index][at]


def _elements(items: Any, index: np.ndarray) -> list[Any]:
    return [items[k] for k in index.tolist()]


def call(
    number: int,
    function: Callable[..., Any],
    batch: str | None,
    xs: Any,
    ys: Any,
    places: tuple[np.ndarray, np.ndarray] | None,
) -> tuple[int, np.ndarray, float, BaseException | None]:
    """Evaluate one request, perhaps in another process.

    `places` tells where among the items those of the pairs are, if not one by one.
    Returns its number, the values obtained, the seconds it took and what went wrong.
    The values are one-dimensional unless a block was asked for.
    """
    start = time.perf_counter()
    values: list[float] = []
    try:
        if places is not None:
            xs, ys = accessor(xs)(places[0]), accessor(ys)(places[1])
        if batch is None:
            for x, y in zip(xs, ys, strict=True):
                values.append(_number(_awaited(function(x, y))))
            answer = np.array(values)
        else:
            answer = unmasked(_awaited(function(xs, ys)))
            if answer.dtype.kind not in "fiub":
                raise TypeError(f"values of type {answer.dtype} are not real numbers")
        return number, answer, time.perf_counter() - start, None
    except BaseException as error:
        return number, np.array(values), time.perf_counter() - start, error


_loops: dict[int, Any] = {}  # that of each process
_starting = threading.Lock()


def _awaited(value: Any) -> Any:
    """Return a value, or what a coroutine returns, whether or not a loop runs here.

    All coroutines run in one loop, in a thread of its own: the connections that a
    client keeps belong to the loop in which they were opened.
    """
    if not hasattr(value, "__await__"):
        return value
    import asyncio

    with _starting:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, daemon=True).start()

    async def waiting() -> Any:
        return await value

    future = asyncio.run_coroutine_threadsafe(waiting(), loop)
    try:
        return future.result()
    finally:
        future.cancel()  # after an interrupt


def is_async(function: Any) -> bool:
    """Tell whether a function, or what is called like one, is a coroutine function."""
    called = (function, type(function).__call__)
    return any(map(inspect.iscoroutinefunction, called))


def _number(value: Any) -> float:
    """Return one value as a float, if it is a real number."""
    if isinstance(value, str | bytes | np.complexfloating | np.timedelta64):
        raise TypeError(f"{value!r}, of type {type(value).__name__}, is no real number")
    return float(value)


def unmasked(values: Any) -> np.ndarray:
    """Return values as an array, NaN where they are masked."""
    if np.ma.isMaskedArray(values) and values.dtype.kind in "fiub":
        dtype = values.dtype if values.dtype.kind == "f" else float
        return np.ma.filled(values.astype(dtype), np.nan)
    return np.asarray(values)


def call_there(
    *arguments: Any,
) -> tuple[int, np.ndarray, float, BaseException | None]:
    """Evaluate one request in another process."""
    number, values, seconds, error = call(*arguments)
    return number, values, seconds, None if error is None else _portable(error)


def _portable(error: BaseException) -> BaseException:
    """Return an error that survives the way back from another process."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        kind = RuntimeError if isinstance(error, Exception) else BaseException
        substitute = kind(repr(error))
        substitute.__cause__ = error
        return substitute
