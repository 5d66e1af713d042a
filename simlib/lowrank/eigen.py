r"""Eigenvalues of a symmetric matrix, from an array or from products with vectors.

.. math:: K v = \lambda v

ARPACK takes eigenvalues far below one for zero: K is divided by a power of two. It may
not end if some are nearly equal and only a part of them is asked for: the array is the
way out.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from simlib._scale import exponent
from simlib.lowrank.tall import symmetric_part

RESTARTS = 100  # of ARPACK; a handful is usual
LARGEST_ARRAY = 4096  # rows of a matrix whose array is the way out


def eigen_of_array(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenvalues and vectors of a matrix that is symmetric to rounding."""
    return np.linalg.eigh(symmetric_part(_of_numbers(A)))


def eigen_of_products(K: LinearOperator, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k eigenvalues of largest magnitude, or all, and their vectors."""
    n = K.shape[0]
    start = np.random.default_rng(0).standard_normal(n).astype(K.dtype)
    product = _of_numbers(K @ start)
    if not product.any():  # of a matrix of zeros, which ARPACK refuses
        return np.zeros(k), np.eye(n, k, dtype=K.dtype)
    e = exponent(product)
    unit = LinearOperator(K.shape, lambda x: np.ldexp(K @ x, -e), dtype=K.dtype)
    try:
        values, vectors = eigsh(unit, k, which="LM", v0=start, maxiter=RESTARTS)
    except ArpackNoConvergence as error:
        if n <= LARGEST_ARRAY:
            return eigen_of_array(K @ np.eye(n, dtype=K.dtype))
        raise np.linalg.LinAlgError(
            f"The {k} largest eigenvalues are not found by products with vectors: "
            f"number {k} and those after it are nearly equal. Take a smaller k."
        ) from error
    return np.ldexp(values.astype(float), e), vectors


def _of_numbers(made: np.ndarray) -> np.ndarray:
    """Return a product of the parts of a matrix; raise if it is not finite."""
    if not np.isfinite(made).all():
        raise ValueError(
            "A factor holds NaN or an infinity, or they are so large that their "
            "products overflow; multiply the matrix by a power of two then."
        )
    return made
