r"""The triangle of a tall matrix, read off its Gram matrix.

.. math::
    A^\top A = R^\top R

The fastest way to R. It is as accurate as any other up to a condition number of about
10^6. Columns are scaled to length one first, which lowers the condition number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.linalg.lapack import dpocon

from simlib._scale import column_exponents, norms
from simlib.lowrank.tall import dense
from simlib.regression.preconditioner import Preconditioner
from simlib.regression.rows import CACHED, blocks
from simlib.regression.triangle import SMALL, condition_number, demand_in_range

UNIT = np.finfo(float).eps / 2
SQUARES = 2.0**900  # squared norms above this or below its inverse lose digits
LEAST_EXPONENT = -1020  # smallest exponent of a power of 2 that has an inverse
ILL = 1e-10  # reciprocal condition number of A^T A below which columns are scaled
POWER_STEPS = 4  # steps of the power method for the largest singular value
NO_DIGITS = 1e-13  # a smaller quotient of singular values means dependent columns


def gram_matrix(A: Any, exponents: np.ndarray | int = 0) -> np.ndarray:
    """Return A^T A in float64, with columns divided by powers of 2, shape (d, d)."""
    total = np.zeros(())
    for block in blocks(A, size=CACHED):
        if np.any(exponents):
            block = block @ scipy.sparse.diags_array(np.ldexp(1.0, -exponents))
        product = dense(block.T @ block)
        total = total + product if total.ndim else product
    return total


def gram_preconditioner(A: Any) -> tuple[Preconditioner, float] | None:
    """Return the triangle of A^T A and the reciprocal condition number of A^T A.

    Returns None if A^T A is singular to rounding error.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gram = gram_matrix(A)
    squares, exponents = np.diag(gram).copy(), np.zeros(len(gram), int)
    if not ((squares > 1 / SQUARES) & (squares < SQUARES)).all():
        largest = [dense(abs(block).max(axis=0)) for block in blocks(A)]
        exponents = np.maximum(column_exponents(np.array(largest)), LEAST_EXPONENT)
        gram = gram_matrix(A, exponents)
        squares = np.diag(gram).copy()
    if not (squares > 0).all():
        return None
    sizes = np.sqrt(squares)
    with np.errstate(over="ignore"):
        scales = np.ldexp(sizes, exponents)
    demand_in_range(scales)
    gram /= sizes
    gram /= sizes[:, None]
    norm = _norm_of_factor(gram, scales)
    try:
        triangle = scipy.linalg.cholesky(gram, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    R = triangle * scales
    condition = condition_number(R, norm)
    reciprocal = condition**-2
    if reciprocal < ILL:  # perhaps only the lengths of the columns differ
        lengths = np.linalg.norm(triangle, 1) * np.linalg.norm(triangle, np.inf)
        reciprocal = max(reciprocal, float(dpocon(triangle, lengths)[0]))
    if reciprocal < len(gram) * UNIT:
        return None
    distortion = min(UNIT / reciprocal, 0.5)
    return Preconditioner(R, condition, distortion, _norm=norm), reciprocal


def _norm_of_factor(gram: np.ndarray, sizes: np.ndarray) -> float | None:
    """Return an estimate of the norm of A, up to 25 % low; None for few columns."""
    if len(gram) <= SMALL:
        return None
    scale = sizes.max()
    sizes = sizes / scale
    x, norm = np.random.default_rng(0).standard_normal(len(gram)), 1.0
    for _ in range(POWER_STEPS):
        x = sizes * (gram @ (sizes * (x / norm)))
        norm = float(np.linalg.norm(x))
    return float(scale * np.sqrt(norm))


def condition_of_rows(A: np.ndarray, rng: np.random.Generator) -> float:
    """Return the condition number of a few random rows, with columns of length one.

    Returns 1 if A has too few rows to be worth it.
    """
    n, d = A.shape
    if n < 16 * d:
        return 1.0
    some = A[np.sort(rng.choice(n, 2 * d, replace=False))].astype(np.float64)
    if not np.isfinite(some).all():
        return np.inf
    sizes = norms(some)
    condition = np.linalg.cond(some / np.where(sizes > 0, sizes, 1))
    return float(condition) if condition < 1 / NO_DIGITS else np.inf
