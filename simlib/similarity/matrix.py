"""Checks of matrices that exist already: real, finite, symmetric or not."""

from __future__ import annotations

from math import isqrt

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from simlib._checks import square
from simlib.similarity.items import unmasked

ROWS = 512  # and columns of a tile, which fits into the cache


class MatrixEntries:
    """The function ``(i, j) -> K[i, j]`` of a matrix that exists already."""

    def __init__(self, K: np.ndarray):
        self.K = K

    def __call__(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return K[i, j]."""
        first = min(np.min(i, initial=0), np.min(j, initial=0))
        if first < 0:  # would wrap
            raise IndexError(f"A matrix of shape {self.K.shape} has no item {first}.")
        return self.K[i, j]


def given_matrix(
    K: ArrayLike, symmetric: bool | None, two: bool = False
) -> tuple[np.ndarray, bool]:
    """Check a real matrix; return it, and whether it is symmetric."""
    if scipy.sparse.issparse(K):
        raise ValueError("The matrix is sparse: pass K.toarray().")
    K = unmasked(K)
    if K.ndim != 2 or K.dtype.kind not in "fiub":
        condensed = K.ndim == 1 and 8 * K.size + 1 == isqrt(8 * K.size + 1) ** 2
        raise ValueError(
            "A similarity matrix has rows and columns of real numbers; got shape "
            f"{K.shape}, dtype {K.dtype}."
            + " Of the condensed distances of pdist pass "
            "scipy.spatial.distance.squareform(K)." * condensed
        )
    if symmetric is False:
        return K, False
    if two and symmetric:
        raise ValueError("Two collections have no symmetry: leave out one of both.")
    if two or K.shape[0] != K.shape[1]:
        if symmetric:
            square(K.shape, "is symmetric")
        for k in range(0, K.shape[0], ROWS):
            _finite(K, k)
        return K, False
    gap, scale = _asymmetry(K)
    eps = np.finfo(K.dtype if K.dtype == np.float32 else float).eps
    is_symmetric = bool(gap <= 100 * eps * scale)
    if not is_symmetric and _is_triangle(K):
        raise ValueError(
            "The matrix is a triangle: on one side of the diagonal all entries "
            "are zero. Pass K + K.T - np.diag(np.diag(K)), which is symmetric, "
            "or symmetric=False if these zeros are similarities."
        )
    if symmetric and not is_symmetric:
        raise ValueError(
            f"The matrix is not symmetric: |K - K.T| reaches {gap:.3g}. Pass "
            "symmetric=False, or from_matrix(K, symmetric=False).symmetrized() "
            "to work with (K + K.T)/2."
        )
    return K, is_symmetric


def given_diagonal(
    diagonal: ArrayLike | None, n: int, dtype: np.dtype
) -> np.ndarray | None:
    """Return a given diagonal as an array of shape (n,)."""
    if diagonal is None:
        return None
    values = unmasked(diagonal)
    if values.dtype.kind not in "fiub" or values.shape not in ((), (n,)):
        raise ValueError(
            f"diagonal must be a number or an array of shape ({n},); got "
            f"{values.dtype} of shape {values.shape}."
        )
    with np.errstate(over="ignore"):
        values = np.array(values, dtype=dtype)
    if not np.isfinite(values).all():
        raise ValueError("diagonal must be finite; it holds NaN or an infinity.")
    return np.broadcast_to(values, (n,))


def _finite(K: np.ndarray, k: int) -> np.ndarray:
    """Return the next `ROWS` rows from the k-th on; raise where one is not finite."""
    rows = np.asarray(K[k : k + ROWS], dtype=float)
    if not np.isfinite(rows).all():
        i, j = np.argwhere(~np.isfinite(rows))[0]
        raise ValueError(f"The matrix holds {rows[i, j]} at ({k + i}, {j}).")
    return rows


def _is_triangle(K: np.ndarray) -> bool:
    """Tell whether all entries on one side of the diagonal are zero."""
    lower = upper = True
    for k in range(0, K.shape[0], ROWS):
        rows = np.asarray(K[k : k + ROWS])
        lower = lower and not np.triu(rows, k + 1).any()
        upper = upper and not np.tril(rows, k - 1).any()
    return lower or upper


def _asymmetry(K: np.ndarray) -> tuple[float, float]:
    """Return max |K - K.T| and max |K|, from tiles that fit into the cache."""
    gap = scale = 0.0
    for k in range(0, K.shape[0], ROWS):
        rows = _finite(K, k)
        for j in range(k, K.shape[0], ROWS):
            tile = np.asarray(K[j : j + ROWS, k : k + ROWS], dtype=float)
            gap = max(gap, np.abs(rows[:, j : j + ROWS] - tile.T).max())
        scale = max(scale, np.abs(rows).max())
    return float(gap), float(scale)
