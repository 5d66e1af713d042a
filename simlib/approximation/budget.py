"""How many similarity calls a method makes, and how many landmarks a budget allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from simlib.lowrank import LowRank

__all__ = ["Method", "block_calls", "cross_calls", "largest_below"]


class Method(NamedTuple):
    """A method and its cost: ``calls(n, n_landmarks, **options)``, K symmetric."""

    function: Callable[..., LowRank]
    calls: Callable[..., int]


def cross_calls(n: int, s: int, rows: int = 0, *, symmetric: bool = True) -> int:
    """Return the distinct pairs among whole columns and rows of an n x n matrix.

    Parameters
    ----------
    n : int
        Size of the matrix.
    s : int
        Columns read whole. Where the matrix is not symmetric, as many rows: those of
        the same items, unless `rows` says otherwise.
    rows : int, optional
        Number of rows read whole of an asymmetric matrix, if not s.
    symmetric : bool
        Whether a column answers for a row.
    """
    if symmetric:
        return n * s - s * (s - 1) // 2
    rows = rows or s
    return n * (s + rows) - s * rows


def block_calls(m: int, *, symmetric: bool = True) -> int:
    """Return the distinct pairs in an m x m principal block."""
    return m * (m + 1) // 2 if symmetric else m * m


def largest_below(calls: int, n: int, cost: Callable[[int], int]) -> int:
    """Return the largest s in 1..n with ``cost(s) <= calls``, by bisection."""
    if not (isinstance(n, int | np.integer) and n >= 1):
        raise ValueError(f"n is the number of items, an integer from 1 on; got {n!r}.")
    if cost(1) > calls:
        raise ValueError(
            f"A budget of {calls} calls does not pay for one landmark: that costs "
            f"{cost(1)}."
        )
    low, high = 1, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(middle) <= calls else (low, middle - 1)
    return low
