"""Refusals of arguments: each says what was asked for, and what came instead.

Names of arguments come as messages show them: ``rank``, ``The number of items``.
A check returns its argument, in the type that is computed with.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse

__all__ = [
    "finite",
    "indices",
    "most_calls",
    "numbers",
    "one_of",
    "same_length",
    "share",
    "whole_number",
]


def whole_number(
    value: float, name: str, least: float = -inf, most: float = inf
) -> int:
    """Return a number that is an integer or a whole float, such as 2e3."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not (real and value % 1 == 0):  # infinity and NaN leave a NaN
        raise TypeError(f"{name} must be an integer; got {value!r}.")
    if not least <= value <= most:
        bounds = f"at least {least}" if most == inf else f"between {least} and {most}"
        raise ValueError(f"{name} must be {bounds}; got {value}.")
    return int(value)


def finite(value: float, name: str, least: float = -inf, below: float = inf) -> float:
    """Return a finite number from `least` on and below `below`."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not (real and isfinite(value) and least <= value < below):
        bounds = [f"at least {least}"] if least > -inf else []
        bounds += [f"below {below}"] if below < inf else []
        wanted = " of " + " and ".join(bounds) if bounds else ""
        raise ValueError(f"{name} must be a finite number{wanted}; got {value!r}.")
    return float(value)


def one_of(value: Any, choices: Iterable[str], name: str) -> Any:
    """Return a name that is among those there are."""
    choices = list(choices)
    if not (isinstance(value, str) and value in choices):
        raise ValueError(f"{name} is one of {', '.join(choices)}; got {value!r}.")
    return value


def indices(index: Any, n: int, what: str = "Items") -> np.ndarray:
    """Return a one-dimensional array of integers from 0 to n - 1."""
    index = np.atleast_1d(index)
    if index.size == 0:
        return index.astype(np.intp)  # an empty list is an array of floats
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise ValueError(
            f"{what} are named by a one-dimensional array of integers; got "
            f"{index.dtype} of shape {index.shape}."
        )
    if index.min() < 0 or index.max() >= n:
        wrong = index.min() if index.min() < 0 else index.max()
        raise IndexError(f"{what} are numbered 0 to {n - 1}; got {wrong}.")
    return index.astype(np.intp, copy=False)


def numbers(values: Any, name: str) -> np.ndarray:
    """Return a dense array of real and finite numbers."""
    if scipy.sparse.issparse(values):
        raise ValueError(f"{name} must be an array; got a sparse one: toarray() it.")
    values = np.asarray(values)
    if values.dtype.kind == "O":
        values = values.astype(float)
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise ValueError(f"{name} must be real and finite numbers; got {values.dtype}.")
    return values


def same_length(i: np.ndarray, j: np.ndarray, names: str = "`i` and `j`") -> None:
    """Refuse two arrays that do not go together one by one."""
    if len(i) != len(j):
        raise ValueError(f"{names} must be as long; got {len(i)} and {len(j)}.")


def most_calls(value: float | None, name: str) -> float:
    """Return a number of calls, which may be infinite."""
    if not isinstance(value, Real) or isinstance(value, bool) or not value >= 0:
        raise ValueError(f"{name} is a number of calls, from 0 on; got {value!r}.")
    return value


def share(value: float, name: str) -> float:
    """Return a number above 0 and at most 1."""
    if not (isinstance(value, Real) and 0 < value <= 1):
        raise ValueError(f"{name} must be above 0 and at most 1; got {value!r}.")
    return float(value)
