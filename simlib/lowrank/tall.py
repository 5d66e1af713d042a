"""Tall matrices, dense, sparse or mapped from a file, some rows at a time.

Beside the result, such as a copy in another precision, at most `HELD` numbers are made
at a time: a matrix in a file may be larger than the memory.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import DTypeLike
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dtrcon

HELD = 2**21  # numbers made of a matrix at a time
TALL = 8  # rows of a block for each of its columns, at least
WELL_CONDITIONED = 1e-6  # reciprocal condition number of A^T A for a Cholesky factor
GATHERED = 2**16  # numbers of each matrix that are gathered at a time, for the cache

Orthonormal: TypeAlias = Callable[[np.ndarray], Iterator[tuple[slice, np.ndarray]]]
"""A function from V to the rows of Q V, in blocks, each with its slice of rows."""


def row_blocks(n: int, width: int, beside: int = 1) -> list[slice]:
    """Return slices of n rows, `height` rows each; an empty slice if n = 0."""
    step = height(width, beside)
    return [slice(k, min(k + step, n)) for k in range(0, max(n, 1), step)]


def height(width: int, beside: int = 1) -> int:
    """Return the number of rows of a tall block of about `HELD` numbers."""
    return max(HELD // max(1, width, beside), TALL * width, 1)


def dense(matrix: Any) -> np.ndarray:
    """Return a matrix as a plain array; a view if it is an array or a memory map."""
    return matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)


def svd(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the thin singular value decomposition of a dense matrix, U, sigma, V^T.

    It uses divide and conquer; where that does not converge, QR iterations, which are
    slower.
    """
    try:
        return np.linalg.svd(A, full_matrices=False)
    except np.linalg.LinAlgError:
        return scipy.linalg.svd(A, full_matrices=False, lapack_driver="gesvd")


def largest_first(
    values: np.ndarray, vectors: np.ndarray, k: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k eigenvalues largest in magnitude, or all, and their vectors."""
    order = np.argsort(-np.abs(values), kind="stable")[:k]
    return values[order], vectors[:, order]


def is_symmetric(A: Any) -> bool:
    """Tell whether A equals A.T to half the digits; an operator has A.symmetric."""
    if not (scipy.sparse.issparse(A) or isinstance(A, np.ndarray)):
        return bool(getattr(A, "symmetric", True))
    if 0 in A.shape:
        return True
    return not abs(A - A.T).max() > np.sqrt(np.finfo(A.dtype).eps) * abs(A).max()


def symmetric_part(A: np.ndarray) -> np.ndarray:
    """Return the mean of A and its transpose."""
    return A / 2 + A.T / 2


def read_only(matrix: Any) -> Any:
    """Return a read-only view of an array or a csr array."""
    if scipy.sparse.issparse(matrix):
        view = copy.copy(matrix)
        for part in ("data", "indices", "indptr"):
            setattr(view, part, read_only(getattr(matrix, part)))
    else:
        view = matrix.view()
        view.flags.writeable = False
    return view


def assembled(
    parts: Iterable[tuple[slice, np.ndarray]],
    shape: tuple[int, int],
    dtype: DTypeLike = float,
) -> np.ndarray:
    """Return the matrix that consists of these blocks of rows, each with its slice."""
    out = np.empty(shape, dtype)
    for part, rows in parts:
        out[part] = rows
    return out


def times(A: Any, B: np.ndarray) -> np.ndarray:
    """Return A B for a tall A and a small B, of one axis or two."""
    if scipy.sparse.issparse(A):
        return A @ B
    A, k = np.asarray(A), B.shape[1:]
    out = np.empty((len(A), *k), np.result_type(A.dtype, B.dtype))
    for part in row_blocks(*A.shape, *k):
        np.matmul(A[part], B, out=out[part])
    return out


def transposed_times(A: Any, X: Any) -> Any:
    """Return A^T X for a tall A and an X of as many rows, of one axis or two."""
    if scipy.sparse.issparse(A):
        return A.T @ X
    A, X = np.asarray(A), X.tocsr() if scipy.sparse.issparse(X) else X
    parts = row_blocks(*A.shape, *X.shape[1:])
    return reduce(lambda sum, more: sum + more, (A[p].T @ X[p] for p in parts))


def triangle(A: Any) -> np.ndarray:
    """Return R of the QR decomposition of a tall matrix, in float64."""
    R = np.empty((0, A.shape[1]))
    for part in row_blocks(*A.shape):
        R = _triangle(np.vstack([R, dense(A[part])]))
    return R


def qr(A: Any) -> tuple[Orthonormal, np.ndarray]:
    """Return the QR decomposition of a tall matrix in float64: Q as a function, and R.

    ``Q(V)`` yields the rows of Q V in blocks, each with its slice of rows. Sequential
    TSQR: every block is decomposed below the R of the blocks before it, and once more
    for Q. Source: Demmel, Grigori, Hoemmen and Langou (2012), section 4.
    """
    parts = row_blocks(*A.shape)
    above = [np.empty((0, A.shape[1]))]  # R of the blocks before each

    def stacked(k: int) -> np.ndarray:
        return np.vstack([above[k], dense(A[parts[k]])])

    for k in range(len(parts) - 1):
        above.append(_triangle(stacked(k)))
    last, R = np.linalg.qr(stacked(-1))

    def Q(V: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        for k in reversed(range(len(parts))):
            block = last if k == len(parts) - 1 else np.linalg.qr(stacked(k))[0]
            V, rows = np.split(block @ V, [len(above[k])])
            yield parts[k], rows

    return Q, R


def gram_qr(A: Any) -> tuple[Orthonormal, np.ndarray] | None:
    """Return the same as `qr`, in float64, for a sparse matrix, without a dense block.

    R is the Cholesky factor of A^T A, and Q V = A (R^-1 V). Returns None if Q would not
    be orthonormal to about ten digits.
    """
    A = A.astype(float)
    R, failed = dpotrf(dense(A.T @ A), clean=1)
    if failed or not dtrcon(R, norm="1")[0] ** 2 > WELL_CONDITIONED:
        return None

    def Q(V: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        V = solve_triangular(R, V)
        for part in row_blocks(A.shape[0], V.shape[1]):
            yield part, A[part] @ V

    return Q, R


def entries(
    left: Any, core: np.ndarray, right: Any, i: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Return entries (i[k], j[k]) of left core right^T, each row multiplied once."""
    rows, row_at = _distinct(i, left.shape[0])
    columns, column_at = _distinct(j, right.shape[0])
    block = rows.size * columns.size <= 2 * i.size
    step = height(max(core.shape))
    for index, named in ((i, rows), (j, columns))[: 1 + block]:
        if named.size > step:
            order = np.argsort(index, kind="stable")
            out = np.empty(i.size, np.result_type(left.dtype, core, right.dtype))
            for part in np.split(
                order, np.searchsorted(index[order], named[step::step])
            ):
                out[part] = entries(left, core, right, i[part], j[part])
            return out
    product = dense(left[rows]) @ core
    if block:
        return (product @ dense(right[columns]).T)[row_at, column_at]
    return inner_products(product, row_at, right, j)


def _distinct(index: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct numbers below n and the place of each among them."""
    if index.size < n // 16:
        return np.unique(index, return_inverse=True)
    there = np.zeros(n, dtype=bool)
    there[index] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[index]


def inner_products(A: np.ndarray, i: np.ndarray, B: Any, j: np.ndarray) -> np.ndarray:
    """Return the inner products of the rows A[i[k]] and B[j[k]]."""
    out = np.empty(len(i), np.result_type(A.dtype, B.dtype))
    step = max(1, GATHERED // max(1, A.shape[1]))
    if scipy.sparse.issparse(B):  # its rows are found slowly, but take little memory
        step = max(step, 16 * GATHERED // max(1, A.shape[1]))
    for k in range(0, len(i), step):
        part = slice(k, k + step)
        out[part] = np.einsum("ka,ka->k", A[i[part]], dense(B[j[part]]))
    return out


def _triangle(A: np.ndarray) -> np.ndarray:
    # The stub has QRResult for every mode.
    return np.linalg.qr(A, mode="r")  # type: ignore[return-value]
