r"""Division by powers of two, so that squares neither overflow nor underflow.

.. math:: A = 2^e B, \quad 1/2 \leq \max |B_{ij}| < 1

Multiplication by a power of two is exact: a norm or a solution for B, multiplied by a
power of two, is the one for A, if it is in the range of numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def exponent(*arrays: Any) -> int:
    """Return e for the largest number in the arrays, 0 if all numbers are zero."""
    largest = max(np.abs(array).max(initial=0) for array in arrays)
    return int(np.frexp(largest)[1])


def unit(A: np.ndarray) -> tuple[np.ndarray, int]:
    """Return B and e."""
    e = exponent(A)
    return np.ldexp(A, -e), e


def norm(A: np.ndarray) -> float:
    """Return the Frobenius norm, also if squares would overflow or underflow."""
    B, e = unit(A)
    return float(np.ldexp(np.linalg.norm(B), e))


def column_exponents(X: np.ndarray) -> np.ndarray:
    """Return e for the largest number in each column."""
    return np.frexp(abs(X).max(axis=0, initial=0))[1]


def unit_columns(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns with entries up to 1, and the e of each: they are X / 2^e."""
    exponents = column_exponents(X)
    return np.ldexp(X, -exponents), exponents


def norms(X: np.ndarray) -> np.ndarray:
    """Return the norms of columns, also if their squares are out of range."""
    X, exponents = unit_columns(X)
    return np.ldexp(np.linalg.norm(X, axis=0), exponents)


def largest_ratio(X: np.ndarray, Y: np.ndarray) -> float:
    """Return the largest ratio |x| / |y| of columns of X and Y; it is 0 if y = 0."""
    above, below = norms(X), norms(Y)
    return float(
        np.divide(above, below, out=np.zeros_like(above), where=below > 0).max()
    )
