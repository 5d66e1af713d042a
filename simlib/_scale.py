r"""Powers of two: sizes that squares can be taken of.

.. math:: A = 2^e B, \quad 1/2 \leq \max |B_{ij}| < 1

Multiplication by a power of two is exact, so that a norm or a solution of B, times a
power of two again, is that of A wherever it is a number at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def exponent(*arrays: Any) -> int:
    """Return e of the largest of the numbers, 0 if there is none but zeros."""
    largest = max(np.abs(array).max(initial=0) for array in arrays)
    return int(np.frexp(largest)[1])


def unit(A: np.ndarray) -> tuple[np.ndarray, int]:
    """Return B and e."""
    e = exponent(A)
    return np.ldexp(A, -e), e


def norm(A: np.ndarray) -> float:
    """Return the Frobenius norm, where squares would overflow or vanish too."""
    B, e = unit(A)
    return float(np.ldexp(np.linalg.norm(B), e))


def column_exponents(X: np.ndarray) -> np.ndarray:
    """Return e of the largest number of each column."""
    return np.frexp(abs(X).max(axis=0, initial=0))[1]


def unit_columns(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of entries up to 1, and the powers of 2 they were divided by."""
    exponents = column_exponents(X)
    return np.ldexp(X, -exponents), exponents


def norms(X: np.ndarray) -> np.ndarray:
    """Return the norms of columns, whose squares may be out of range."""
    X, exponents = unit_columns(X)
    return np.ldexp(np.linalg.norm(X, axis=0), exponents)


def largest_ratio(X: np.ndarray, Y: np.ndarray) -> float:
    """Return the largest ratio of norms of columns, X over Y; 0 where Y vanishes."""
    above, below = norms(X), norms(Y)
    return float(
        np.divide(above, below, out=np.zeros_like(above), where=below > 0).max()
    )
