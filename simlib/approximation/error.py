r"""The error of an approximation of a matrix that is known.

.. math:: \|K - \tilde K\|_F / \|K\|_F

Equation :eq:`eq:error` of the book.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike

from simlib._checks import readable
from simlib.lowrank import LowRank

COMPARED = 2**22  # entries at a time


def relative_error(
    K: ArrayLike, approximation: LowRank, *, squared: bool = False
) -> float:
    """Return the relative Frobenius error of an approximation.

    2 n m l flops for factors of l columns; memory for some rows of K.

    Parameters
    ----------
    K : array of shape (n, m)
        The whole matrix; a memory map is read some rows at a time.
    approximation : LowRank
        An approximation of the same shape.
    squared : bool, default=False
        Return the square: the share of the squared norm of K that is missed.

    Returns
    -------
    float
        0 for a perfect answer, 1 for the zero matrix, unbounded above.

    Raises
    ------
    ValueError, TypeError
        The shapes differ, or K is zero, sparse, masked, or not of finite real numbers;
        the approximation is no LowRank.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import LowRank, relative_error
    >>> ones = LowRank(np.ones((2, 1)), np.ones((1, 1)))
    >>> round(relative_error(np.array([[1.0, 1.0], [1.0, 3.0]]), ones), 3)
    0.577
    """
    if scipy.sparse.issparse(K):
        raise ValueError("The matrix is sparse: pass K.toarray().")
    K = readable(K, "The entries of the matrix")
    K = np.asanyarray(K)
    if K.dtype.kind not in "fiub":
        raise ValueError(f"The matrix must be real; got dtype {K.dtype}.")
    check_approximation(approximation, K.shape, "matrix")
    missed = total = 0.0
    step = max(1, COMPARED // max(1, K.shape[1]))
    for k in range(0, K.shape[0], step):
        rows = np.arange(k, min(k + step, K.shape[0]))
        exact = np.asarray(K[rows[0] : rows[-1] + 1], dtype=float)
        missed = np.hypot(missed, _norm(exact - approximation.rows(rows)))
        total = np.hypot(total, _norm(exact))
    if not np.isfinite(total):
        raise ValueError(
            "The matrix has entries that are NaN or infinite, or so large that its "
            "norm is no number: divide it, and the core, by a power of two."
        )
    if total == 0:
        raise ValueError("The error relative to a matrix of zeros is not defined.")
    return float((missed / total) ** 2 if squared else missed / total)


def check_approximation(
    approximation: LowRank, shape: tuple[int, ...], what: str = "similarity"
) -> None:
    """Raise if the approximation is not a `LowRank` or has another shape."""
    if not hasattr(approximation, "rows"):
        raise TypeError(
            f"The approximation is a LowRank; got {type(approximation).__name__}. "
            "Of two arrays: np.linalg.norm(K - A) / np.linalg.norm(K)."
        )
    if approximation.shape != shape:
        raise ValueError(
            f"The {what} has shape {shape}, the approximation {approximation.shape}."
        )


def _norm(A: np.ndarray) -> float:
    """Return the Frobenius norm, by a BLAS function that does not overflow."""
    return scipy.linalg.norm(A.ravel(), check_finite=False)
