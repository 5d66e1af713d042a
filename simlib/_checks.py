"""Checks of arguments. An error says what is wanted, and what was given.

A check takes the name of its argument as messages show it: ``rank``, ``The number of
items``. It returns the argument in the type that is used for computing.
Warnings are here, too.
"""

from __future__ import annotations

import reprlib
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from math import inf
from numbers import Real
from sys import float_info
from types import FrameType
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse

LARGEST = float_info.max
TAKES_BOTH = " Take tikhonov, which needs only pairs of one from each."


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, at the line that called simlib."""
    frame: FrameType | None = sys._getframe()
    level = 0
    while frame and f"{frame.f_globals.get('__name__')}.".startswith("simlib."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def whole_number(
    value: float, name: str, least: float = -inf, most: float = inf
) -> int:
    """Return a number that is an integer or a whole float, such as 2e3."""
    if not (_is_real(value) and abs(value) < inf and value % 1 == 0):
        raise TypeError(f"{name} must be an integer; got {_told(value)}.")
    if not least <= value <= most:
        bounds = f"at least {least}" if most == inf else f"between {least} and {most}"
        raise ValueError(f"{name} must be {bounds}; got {value}.")
    return int(value)


def finite(value: float, name: str, least: float = -inf, below: float = inf) -> float:
    """Return a finite number that is at least `least` and below `below`."""
    if isinstance(value, np.floating):
        value = float(value)  # its type may not hold the bounds
    bounds = [f"at least {least}"] if least > -inf else []
    bounds += [f"below {below}"] if below < inf else []
    wanted = "be a finite number" + (" of " + " and ".join(bounds) if bounds else "")
    fits = _is_real(value) and abs(value) <= LARGEST and least <= value < below
    return _fitting(value, name, wanted, fits)


def at_least(value: float, name: str, least: float) -> float:
    """Return a number that is at least `least`; it may be infinite."""
    fits = _is_real(value) and value >= least
    return _fitting(value, name, f"be at least {least}", fits)


def one_of(value: Any, choices: Iterable[str], name: str) -> Any:
    """Return a name that is among the choices."""
    choices = list(choices)
    if not (isinstance(value, str) and value in choices):
        raise ValueError(f"{name} is one of {', '.join(choices)}; got {_told(value)}.")
    return value


def indices(index: Any, n: int, what: str = "Items") -> np.ndarray:
    """Return a one-dimensional array of integers from 0 to n - 1."""
    index = np.atleast_1d(readable(index, what))
    if index.shape == (0,):
        return index.astype(np.intp)  # an empty list is an array of floats
    if index.ndim != 1 or index.dtype.kind not in "iu":
        mask = " Of a mask take np.flatnonzero(mask)." if index.dtype == bool else ""
        raise ValueError(
            f"{what} are named by a one-dimensional array of integers; got "
            f"{index.dtype} of shape {index.shape}.{mask}"
        )
    if index.astype(np.uint64, copy=False).max() >= n:  # negative ones wrap
        wrong = index.min() if index.min() < 0 else index.max()
        raise IndexError(f"{what} are numbered 0 to {n - 1}; got {wrong}.")
    return index.astype(np.intp, copy=False)


def readable(values: Any, name: str) -> Any:
    """Return values in a form that NumPy can read; raise if some are masked."""
    some = values if isinstance(values, list | tuple) else [values]
    arrays = isinstance(next(iter(some), None), np.ndarray)
    if arrays and any(map(np.ma.is_masked, some)):
        raise ValueError(f"{name} must be real and finite numbers; some are masked.")
    return from_device(values)


def from_device(values: Any) -> Any:
    """Return values in a form that NumPy can read: tensors on a GPU, or in bfloat16."""
    if isinstance(values, list | tuple) and hasattr(next(iter(values), None), "detach"):
        return [from_device(value) for value in values]
    if hasattr(values, "detach"):  # PyTorch
        values = values.detach().cpu()
        short = values.is_floating_point() and values.element_size() < 4
        return (values.float() if short else values).numpy()
    if hasattr(values, "__cuda_array_interface__") and hasattr(values, "get"):  # CuPy
        return values.get()
    if getattr(getattr(values, "dtype", None), "name", "") == "bfloat16":  # JAX
        return np.asarray(values).astype(np.float32)
    return values


def numbers(values: Any, name: str, kinds: str = "fiub") -> np.ndarray:
    """Return a dense array of finite numbers; complex only if `kinds` has a c."""
    if scipy.sparse.issparse(values):
        raise ValueError(f"{name} must be an array; got a sparse one: toarray() it.")
    values = np.asarray(readable(values, name))
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError, OverflowError):
            values = values.astype(float)
    if values.dtype.kind not in kinds:
        raise ValueError(f"{name} must be real and finite numbers; got {values.dtype}.")
    if not (good := np.isfinite(values)).all():
        at = tuple(int(k) for k in np.argwhere(~good)[0])
        where = f" at {list(at)}, the first of {np.sum(~good)}" if at else ""
        raise ValueError(
            f"{name} must be real and finite numbers; got {values[at]}{where}."
        )
    return values


def same_length(i: np.ndarray, j: np.ndarray, names: str = "`i` and `j`") -> None:
    """Raise if two arrays have different lengths."""
    if len(i) != len(j):
        raise ValueError(
            f"{names} must have the same length; got {len(i)} and {len(j)}."
        )


def columns_like(y: Any, n: int, name: str) -> np.ndarray:
    """Return one right-hand side (n,), or several (n, k), of finite numbers."""
    y = numbers(y, name, "fiubc")
    if y.ndim not in (1, 2) or len(y) != n:
        raise ValueError(f"{name} must have shape ({n},) or ({n}, k); got {y.shape}.")
    return y


def square(shape: tuple[int, ...], what: str) -> None:
    """Raise if the shape is not that of a square matrix."""
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"Only a square matrix {what}; got shape {shape}.")


def word_or_number(
    value: Any, words: Iterable[str], name: str, least: float = -inf, below: float = inf
) -> Any:
    """Return one of some words, or a finite number."""
    if isinstance(value, str):
        return one_of(value, words, f"{name}, if it is no number,")
    return finite(value, name, least, below)


def symmetric(sim: Any, what: str, instead: str = TAKES_BOTH) -> None:
    """Raise if a similarity is not symmetric, or is of two collections."""
    if isinstance(sim.extent, tuple):
        m, n = sim.extent
        raise ValueError(
            f"{what} is for the similarities of one collection; these are between {m} "
            f"rows and {n} columns.{instead}"
        )
    if not sim.symmetric:
        raise ValueError(
            f"{what} needs a symmetric similarity; pass sim.symmetrized(), that is "
            "(K + K.T)/2, at two calls a pair."
        )


def shaped(array: np.ndarray, shape: tuple[int | str, ...], name: str) -> np.ndarray:
    """Return an array of this shape, in which a letter stands for any number."""
    pairs = zip(shape, array.shape, strict=False)
    fits = all(isinstance(want, str) or want == found for want, found in pairs)
    if len(shape) != array.ndim or not fits:
        wanted = ", ".join(map(str, shape)) + "," * (len(shape) == 1)
        raise ValueError(f"{name} must have shape ({wanted}); got {array.shape}.")
    return array


def inside(value: float, name: str, above: float, below: float = inf) -> float:
    """Return a number strictly between two bounds."""
    between = f"lie between {above} and {below}"
    wanted = between if below < inf else f"be a number above {above}"
    return _fitting(value, name, wanted, _is_real(value) and above < value < below)


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator for a `random_state` of scikit-learn."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    return np.random.default_rng(random_state)


def most_calls(value: float | None, name: str) -> float:
    """Return a number of calls, which may be infinite."""
    if not (_is_real(value) and (value == 0 or value >= 1)):
        raise ValueError(
            f"{name} is a number of calls, from 0 on, and not a fraction; got "
            f"{_told(value)}."
        )
    return value


def share(value: float, name: str) -> float:
    """Return a number above 0 and at most 1."""
    fits = _is_real(value) and 0 < value <= 1
    return _fitting(value, name, "be above 0 and at most 1", fits)


def one_collection(matrix: Any, what: str, instead: str = "") -> int:
    """Return the number of items; raise for a matrix of two collections."""
    if isinstance(matrix.extent, tuple):
        m, n = matrix.extent
        raise ValueError(
            f"Only similarities among the items of one collection {what}; these are "
            f"between {m} rows and {n} columns.{instead}"
        )
    return matrix.extent


def a_pair(value: Any, name: str) -> tuple[Any, Any]:
    """Return the two values of a pair, for the rows and for the columns."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(
            f"{name} of two collections is a pair, for rows and columns; got "
            f"{_told(value)}."
        )
    return value[0], value[1]


def _is_real(value: Any) -> TypeGuard[float]:
    """Tell whether a value is a real number, which True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _fitting(value: float, name: str, wanted: str, fits: bool) -> float:
    """Return a number that fits, or raise that it must do what is wanted."""
    if not fits:
        raise ValueError(f"{name} must {wanted}; got {_told(value)}.")
    return float(value)


def _told(value: Any) -> str:
    """Return what a value is in a few words: of an array its shape."""
    if (shape := getattr(value, "shape", None)) is not None and shape != ():
        return f"{type(value).__name__} of shape {shape}"
    return reprlib.repr(value)
