"""How items are fetched and the function is called, here or in another process."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

__all__ = ["accessor", "call", "call_there", "unmasked"]


def accessor(items: Any, batch: str | None) -> Callable[[np.ndarray], Any]:
    """Return the function that fetches items, given an array of their numbers."""
    if hasattr(items, "columns") and len(getattr(items, "shape", ())) == 2:
        if batch is None:
            raise TypeError(
                "A function of two items cannot be given rows of a data frame: pass "
                'items=frame.to_numpy(), or a function with batch="pairs" or "block", '
                "which is given data frames."
            )
        if hasattr(items, "iloc"):
            return partial(_rows_of_frame, items)
        return partial(_rows_of_table, items)
    if hasattr(items, "iloc"):
        return partial(_rows_of_frame, items)
    if scipy.sparse.issparse(items) or hasattr(items, "shape"):
        return partial(_rows_of_array, items)
    return partial(_elements, items)


def _rows_of_frame(items: Any, index: np.ndarray) -> Any:
    return items.iloc[index].reset_index(drop=True)  # or pandas aligns by labels


def _rows_of_table(items: Any, index: np.ndarray) -> Any:
    return items.take(index) if hasattr(items, "take") else items[index]


def _rows_of_array(items: Any, index: np.ndarray) -> Any:
    return items[index]


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
            xs, ys = accessor(xs, batch)(places[0]), accessor(ys, batch)(places[1])
        if batch is None:
            for x, y in zip(xs, ys, strict=True):
                values.append(_number(function(x, y)))
            answer = np.array(values)
        else:
            answer = unmasked(function(xs, ys))
            if answer.dtype.kind not in "fiub":
                raise TypeError(f"values of type {answer.dtype} are not real numbers")
        return number, answer, time.perf_counter() - start, None
    except BaseException as error:
        return number, np.array(values), time.perf_counter() - start, error


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
