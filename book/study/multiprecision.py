"""Reference solutions without rounding, by which the digits of others are counted.

Floating-point numbers are integers over a power of two. Cut into pieces of 18 bits,
their products are integers that BLAS adds without rounding, so that A^T A is had
exactly; systems with it are then solved in long arithmetic, by mpmath.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["ExactGram", "exact_product", "relative_error"]

_PRECISION = 700  # bits of the long arithmetic
_BITS = 18  # of a piece
_ROWS = 2**16  # whose products of two pieces add up to less than 2^53


def exact_product(A: ArrayLike, B: ArrayLike) -> Any:
    """Return A^T B without rounding, a matrix of mpmath of shape (d, k).

    Parameters
    ----------
    A, B : array_like of shape (n, d) and (n, k) or (n,)
        Finite numbers: else ValueError.

    Examples
    --------
    >>> from study.multiprecision import exact_product
    >>> print(exact_product([[1e8], [1.0], [1e8]], [[1e8], [1.0], [-1e8]]))
    [1.0]
    """
    A, B = _matrix(A), _matrix(B)
    total: Any = np.zeros((A.shape[1], B.shape[1]), object)
    least = 0  # exponent of two that the sum is counted in
    for start in range(0, len(A), _ROWS):
        rows = slice(start, start + _ROWS)
        for some, a in _pieces(A[rows]):
            for others, b in _pieces(B[rows]):
                if a + b < least:
                    total, least = total * 2 ** (least - a - b), a + b
                whole = (some.T @ others).astype(np.int64).astype(object)
                total = total + whole * 2 ** (a + b - least)
    return _long().matrix(total.tolist()) * _long().ldexp(1, least)


class ExactGram:
    """A^T A without rounding, and solutions with its powers to some hundred digits.

    Parameters
    ----------
    A : array_like of shape (n, d)
        Of full column rank, with a condition number below 1e60 or so.

    Notes
    -----
    d^3 / 3 long multiplications once, and d^2 a solve: seconds for d = 100.

    Examples
    --------
    >>> from study.multiprecision import ExactGram, relative_error
    >>> gram = ExactGram([[1.0, 1.0], [1e-9, 0.0], [0.0, 1e-9]])
    >>> x = gram.solve([2.0, 2.0], 2)
    >>> relative_error([0.5, 0.5], x) < 1e-15
    True
    """

    def __init__(self, A: ArrayLike) -> None:
        self.gram = exact_product(A, A)
        self._triangles, self._pivots = _long().LU_decomp(self.gram.copy())

    def solve(self, b: Any, j: int = 1) -> Any:
        """Return (A^T A)^-j b; b in floating point or a matrix of mpmath."""
        x = _vector(b)
        for _ in range(j):
            x = _long().L_solve(self._triangles, x, self._pivots)
            x = _long().U_solve(self._triangles, x)
        return x

    def residual(self, x: Any, b: Any, j: int = 1) -> float:
        """Return the length of (A^T A)^j x - b over that of b."""
        x, b = _vector(x), _vector(b)
        for _ in range(j):
            x = self.gram * x
        return float(_long().norm(x - b) / _long().norm(b))


def relative_error(x: Any, exact: Any) -> float:
    """Return the length of x - exact over that of exact, without rounding.

    Examples
    --------
    >>> from study.multiprecision import relative_error
    >>> relative_error([1.0, 1e-20], [1.0, 0.0])
    1e-20
    """
    x, exact = _vector(x), _vector(exact)
    return float(_long().norm(x - exact) / _long().norm(exact))


@cache
def _long() -> Any:
    """Return a context of mpmath of our own, whose precision nobody else changes."""
    try:
        from mpmath import mp
    except ImportError:
        raise ImportError("Exact references need mpmath: pip install mpmath.") from None
    context = mp.clone()
    context.prec = _PRECISION
    return context


def _matrix(values: ArrayLike) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if not np.isfinite(values).all():
        raise ValueError("A product without rounding needs finite numbers.")
    return values[:, None] if values.ndim == 1 else values


def _pieces(values: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Cut numbers into integers of 18 bits; yield these, and the exponents of two."""
    exponent = int(np.frexp(abs(values).max(initial=0))[1])
    far = (values != 0) & (abs(values) < np.ldexp(1.0, exponent - 900))
    if far.any():  # beside the others they would be zero
        yield from _pieces(np.where(far, values, 0))
        values = np.where(far, 0, values)
    values = np.ldexp(values, -exponent)  # below 1
    while values.any():
        values = np.ldexp(values, _BITS)
        exponent -= _BITS
        yield np.rint(values), exponent
        values = values - np.rint(values)


def _vector(values: Any) -> Any:
    if isinstance(values, _long().matrix):
        return values
    flat = np.asarray(values, dtype=float).ravel()
    return _long().matrix([_long().mpf(v) for v in flat.tolist()])
