r"""Powers of the Gram matrix of a tall matrix.

.. math::
    (A^\top A)^j x = b , \qquad \min_x \| A (A^\top A)^j x - b \|

Equation :eq:`eq:powers` of the book. The systems are solved one after the other, with
the same R.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from simlib._checks import numbers, shaped
from simlib._scale import largest_ratio
from simlib._typing import Seed
from simlib.regression.least_squares import Method, solve
from simlib.regression.preconditioner import Preconditioner
from simlib.regression.rows import Rows, as_rows, is_blocks, multiply
from simlib.regression.systems import Solution


def even_power(
    A: Rows,
    b: ArrayLike,
    j: int,
    *,
    tol: float = 1e-12,
    method: Method = "auto",
    preconditioner: Preconditioner | None = None,
    rng: Seed = None,
) -> Solution:
    """Solve (A^T A)^j x = b, and return a `Solution`.

    Parameters
    ----------
    b : array of shape (d,) or (d, k)
        Right-hand side, or several as columns.
    j : int
        At least 0; 1 is `simlib.regression.solve_gram`.
    A, tol, method, preconditioner, rng
        As in `simlib.lstsq`; so are the errors.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        The residual is above `tol`; the rounding of x alone may cause this if the
        condition number to the power 2 j is large. Or ``Solution.error_estimate`` is
        above 0.01.

    Notes
    -----
    The triangle is made once. Each further power costs 2 d^2 flops, and one more column
    in the products with A for corrections and residuals. Source of the problem: Song,
    Yin and Zhang (2024), Algorithms 1 and 7, which are not used.
    `numpy.linalg.matrix_power` forms the power, and loses 2 j times as many digits.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import even_power
    >>> A = np.random.default_rng(0).standard_normal((5000, 20))
    >>> b = A.T @ (A @ (A.T @ (A @ np.ones(20))))
    >>> bool(np.allclose(even_power(A, b, 2, rng=0).x, 1))
    True
    """
    return solve(A, b, j, False, tol, method, preconditioner, rng)


def odd_power(
    A: Rows,
    b: ArrayLike,
    j: int,
    *,
    weight: ArrayLike | None = None,
    tol: float = 1e-12,
    method: Method = "auto",
    preconditioner: Preconditioner | None = None,
    rng: Seed = None,
) -> Solution:
    """Solve min ||A (A^T A)^j x - b||, and return a `Solution`.

    Parameters
    ----------
    b : array of shape (n,) or (n, k)
        Right-hand side, or several as columns.
    j : int
        At least 0; 0 is `simlib.lstsq`.
    weight : array of shape (d, d), optional
        A symmetric positive definite W, for j = 1: solve min ||A W A^T A x - b||
        instead, which is linear attention if W is the product of query and key weights.
        With W = C C^T it is the odd power of A C.
    A, tol, method, preconditioner, rng
        As in `simlib.lstsq`; so are the errors. It warns as `even_power` does.

    Raises
    ------
    ValueError, numpy.linalg.LinAlgError
        A weight that is not real, finite, symmetric and positive definite, or that
        comes with another j, with a preconditioner or with blocks.

    Notes
    -----
    The cost of `simlib.lstsq` and of j more solves. A weight also costs a dense A C,
    2 n d^2 flops and n d numbers. Source of the problem: Song, Yin and Zhang
    (2024), Algorithms 2 and 6, which are not used. Their Definitions A.5 and A.6 are
    equivalent: by C, or for any W of full rank by another unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import odd_power
    >>> A = np.random.default_rng(0).standard_normal((5000, 20))
    >>> b = A @ (A.T @ (A @ np.ones(20)))
    >>> bool(np.allclose(odd_power(A, b, 1, rng=0).x, 1))
    True
    """
    if weight is None:
        return solve(A, b, j, True, tol, method, preconditioner, rng)
    if j != 1 or preconditioner is not None or is_blocks(A):
        raise ValueError(
            "A weight is for j = 1 and a matrix A in memory, without a preconditioner "
            "of A: pass odd_power(A @ C, b, j) for a W = C C^T of your own."
        )
    A = as_rows(A)
    C = _root(weight, A.shape[1])
    found = solve(multiply(A, C), b, 1, True, tol, method, None, rng)
    x = C @ found.x
    stretch = float(np.linalg.norm(C, 2)) * largest_ratio(
        *(v.reshape(len(v), -1) for v in (found.x, x))
    )
    return replace(
        found,
        x=x,
        error_estimate=stretch * found.error_estimate,
        coefficient_errors=abs(C) @ found.coefficient_errors,
    )


def _root(weight: Any, d: int) -> np.ndarray:
    """Return the Cholesky factor of a weight."""
    W = shaped(numbers(weight, "The weight W"), (d, d), "The weight W")
    W = W.astype(np.float64, copy=False)
    lengths = np.sqrt(abs(np.diag(W)))
    if (abs(W - W.T) > 1e-8 * np.outer(lengths, lengths)).any():
        raise ValueError("The weight W must be symmetric: it needs a root, W = C C^T.")
    try:
        return scipy.linalg.cholesky((W + W.T) / 2, lower=True)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            "The weight W must be positive definite; its least eigenvalue is "
            f"{np.linalg.eigvalsh(W)[0]:.1e}, its largest entry {abs(W).max():.1e}."
        ) from error
