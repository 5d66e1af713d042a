r"""The algorithms of Song, Yin and Zhang (2024), as their proofs describe them.

.. math::
    z \leftarrow z + R^{-\top} A^\top (b - A R^{-1} z) , \qquad
    z \leftarrow z - B (B z - R^{-\top} y) , \quad B = R^{-\top} A^\top A R^{-1}

Equation :eq:`eq:unit-step` of the book. Algorithm 4, for least squares, takes unit
steps, and Algorithm 5, for A^T A x = y, unit
steps on the squared operator. The first converges if the singular values of A R^-1 are
below sqrt 2, which wants a sketch of 11.7 d rows; the second if they are below the
fourth root of 2, which wants about 40 d; at their own 100 d both are fast.

- Algorithm 1, `even_power`, repeats Algorithm 5, and 7 is its case of j = 2.
- Algorithm 2, `odd_power`, has Algorithm 4 before, and 6 is its case of j = 1.
- Algorithm 3, `sketched_solve`, is Algorithm 6 with features of the attention kernel
  for A, and where they are more than the points, Algorithm 5 with their transpose.
- Algorithm 8 is ``PolynomialSketch(shared=True)`` of `simlib.regression.sketch`; by it
  ``ExponentialFeatures(kind="shared_tree")`` makes the features of Algorithm 3.

To solve such systems, take `simlib.lstsq` and its kin, and `AttentionKernelRegressor`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from simlib._checks import finite, inside, numbers
from simlib._scale import largest_ratio, norms
from simlib.regression.preconditioner import Preconditioner
from simlib.regression.rows import Rows, gap_and_back
from simlib.regression.sketch import sparse_sign
from simlib.regression.systems import Problem, Solution, solve_in_turn

__all__ = [
    "even_power",
    "fast_linear_regression",
    "fast_psd_regression",
    "odd_power",
    "sketched_solve",
]

EPS = np.finfo(float).eps
OVERSAMPLING = 100  # rows of the sketch over columns: the paper's embedding of 0.1
MOST = 1000  # steps


def even_power(
    A: Rows,
    b: ArrayLike,
    j: int,
    *,
    tol: float = 1e-12,
    preconditioner: Preconditioner | None = None,
    rng: int | np.random.Generator | None = None,
) -> Solution:
    """Solve (A^T A)^j x = b by Algorithm 1, Algorithm 5 j times.

    Parameters
    ----------
    A, b, j, tol, rng
        As in `simlib.even_power`, as are the answer, errors and warnings; steps that
        diverge raise `numpy.linalg.LinAlgError`.
    preconditioner : Preconditioner, optional
        Of the same A, made before. None for the paper's sketch, of 100 d rows.

    Notes
    -----
    The sketch, its QR, 200 d^3 flops, and four products with A or A^T a step, some 50
    steps for each power. Source: Song, Yin and Zhang (2024), Algorithms 1 and 7 and
    Theorem 1.4; their accuracies of the single solves are for exact arithmetic, and
    here all are those of the last.

    Examples
    --------
    >>> import numpy as np
    >>> from study import as_printed as paper
    >>> A = np.random.default_rng(0).standard_normal((5000, 20))
    >>> b = A.T @ (A @ (A.T @ (A @ np.ones(20))))
    >>> bool(np.allclose(paper.even_power(A, b, 2, rng=0).x, 1))
    True
    """
    return _solve(A, b, j, False, tol, preconditioner, rng)


def odd_power(
    A: Rows,
    b: ArrayLike,
    j: int,
    *,
    tol: float = 1e-12,
    preconditioner: Preconditioner | None = None,
    rng: int | np.random.Generator | None = None,
) -> Solution:
    """Solve min ||A (A^T A)^j x - b|| by Algorithm 2: 4 once, then 5 j times.

    All is as in `even_power`; j = 0 is Algorithm 4 alone. Source: Song, Yin and Zhang
    (2024), Algorithms 2, 4 and 6 and Theorem 1.5.

    Examples
    --------
    >>> import numpy as np
    >>> from study import as_printed as paper
    >>> A = np.random.default_rng(0).standard_normal((5000, 20))
    >>> b = A @ (A.T @ (A @ np.ones(20)))
    >>> bool(np.allclose(paper.odd_power(A, b, 1, rng=0).x, 1))
    True
    """
    return _solve(A, b, j, True, tol, preconditioner, rng)


def _solve(
    A: Any,
    b: ArrayLike,
    j: int,
    least_squares: bool,
    tol: float,
    preconditioner: Preconditioner | None,
    rng: int | np.random.Generator | None,
) -> Solution:
    """Solve one system after the other; both names end here."""
    inside(tol, "tol", 0, 1)
    problem = Problem.from_input(A, b, j, least_squares, preconditioner)
    R = preconditioner
    if R is None:
        R = Preconditioner.from_matrix(
            problem.A, oversampling=OVERSAMPLING, refine=False, rng=rng
        )
    target = max(tol / 100 * R.condition ** (-2 * problem.j - 1), EPS / 2)
    return solve_in_turn(
        problem,
        R,
        "paper",
        lambda B: fast_linear_regression(problem.A, B, R, target),
        lambda Y: fast_psd_regression(problem.A, Y, R, target),
    ).solution(tol)


def fast_linear_regression(
    A: Any, B: np.ndarray, R: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    """Return Algorithm 4's solutions of A X = B, and the number of steps."""

    def step(Z: np.ndarray) -> np.ndarray:
        return -R.solve_transposed(gap_and_back(A, R.solve(Z), B)[1])

    return _descend(step, R.start(A, B), R, target, norms(B))


def fast_psd_regression(
    A: Any, Y: np.ndarray, R: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    """Return Algorithm 5's solutions of A^T A X = Y, and the number of steps."""
    right_hand_side = R.solve_transposed(Y)

    def image(Z: np.ndarray) -> np.ndarray:
        return R.solve_transposed(gap_and_back(A, R.solve(Z))[1])

    def step(Z: np.ndarray) -> np.ndarray:
        return image(right_hand_side - image(Z))

    return _descend(
        step, np.zeros_like(right_hand_side), R, target, norms(right_hand_side)
    )


def sketched_solve(
    Z: ArrayLike,
    y: ArrayLike,
    *,
    ridge: float = 0.0,
    tol: float = 1e-10,
    rng: int | np.random.Generator | None = None,
) -> Solution:
    r"""Solve with Z Z^T in place of the kernel matrix, by Algorithm 3.

    .. math::
        x = Z (Z^\top Z)^{-2} Z^\top y \quad \text{without a ridge,} \qquad
        x = \rho^{-1} (y - Z v) , \quad (Z^\top Z + \rho I) v = Z^\top y

    The first is the x of least norm that makes :math:`\|Z Z^\top x - y\|` least, an odd
    power regression with Z; the second solves :math:`(Z Z^\top + \rho I) x = y`. With
    more features than points both are :math:`(Z Z^\top + \rho I)^{-1} y`.

    A small residual of the sketched system says nothing about that of the kernel
    matrix: to solve that, see `AttentionKernelRegressor`.

    Parameters
    ----------
    Z : array of shape (n, m)
        Features of n points, with ``Z @ Z.T`` about ``exp(X @ X.T)``; the paper's W^T.
    y : array of shape (n,) or (n, k)
        Right-hand side, or several as columns.
    ridge : float, default=0.0
        The ridge rho.
    tol, rng
        As in `even_power`.

    Returns
    -------
    Solution
        ``x`` has the shape of y. ``residual`` is that of the sketched system, relative
        to y; ``preconditioned_residuals``, ``iterations`` and ``condition`` are those
        of the regression with Z, or with ``[Z; sqrt(ridge) I]``.

    Raises
    ------
    ValueError
        Shapes that do not match, NaN or an infinity, a negative ridge.
    numpy.linalg.LinAlgError
        Without a ridge and with more features than points: points whose features are
        dependent. A Z of zeros.

    Notes
    -----
    Cost: that of `odd_power` without a ridge, otherwise of `lstsq`, for an n x m
    matrix. Source: Song, Yin and Zhang (2024), Algorithm 3 and Theorem 4.2, read so
    that the sizes match.

    Examples
    --------
    >>> import numpy as np
    >>> from study.as_printed import sketched_solve
    >>> rng = np.random.default_rng(0)
    >>> Z, y = rng.standard_normal((50, 4)), rng.standard_normal(50)
    >>> x = sketched_solve(Z, y, ridge=2.0, rng=0).x
    >>> bool(np.allclose(Z @ (Z.T @ x) + 2 * x, y))
    True
    """
    Z, y, ridge = numbers(Z, "Z"), numbers(y, "y"), finite(ridge, "ridge", 0)
    if Z.ndim != 2 or Z.size == 0:
        raise ValueError(
            "Z must be a matrix of shape (n, m), one row for each point; got shape "
            f"{Z.shape}."
        )
    if float(np.abs(Z).max()) > 1e150:
        raise ValueError(
            "Z reaches beyond 1e150, where squares are no numbers: divide it, and what "
            "is to be solved for is multiplied by the square."
        )
    if y.ndim not in (1, 2) or len(y) != len(Z):
        raise ValueError(
            f"y must have shape ({len(Z)},) or ({len(Z)}, k), as Z has {len(Z)} rows; "
            f"got {y.shape}."
        )
    eps = float(np.finfo(np.float32).eps if Z.dtype == np.float32 else EPS)
    Z = Z.astype(np.float64, copy=False)
    n, m = Z.shape
    options: dict[str, Any] = {"tol": tol, "rng": rng}
    A = Z if m <= n else Z.T
    if m <= n and ridge == 0:
        A = Z = _independent(Z, eps, rng)
        if Z.shape[1] == 0:
            raise np.linalg.LinAlgError("Z is zero: Z Z^T x = y has no solution.")
    if ridge > 0:
        A = np.vstack([A, np.sqrt(ridge) * np.eye(A.shape[1])])
    if m > n:
        found = even_power(A, y, 1, **options)
        x, stretch = found.x, 1.0
        errors = found.coefficient_errors
    elif ridge > 0:
        below = np.zeros((m, *y.shape[1:]))
        found = odd_power(A, np.concatenate([y, below]), 0, **options)
        x, stretch = (y - Z @ found.x) / ridge, float(np.linalg.norm(Z)) / ridge
        errors = abs(Z) @ found.coefficient_errors / ridge
    else:
        found = odd_power(A, y, 1, **options)
        x, stretch = Z @ found.x, float(np.linalg.norm(Z))
        errors = abs(Z) @ found.coefficient_errors
    if m <= n:
        stretch *= _column_ratio(found.x, x)
    left = Z @ (Z.T @ x) + ridge * x - y
    return replace(
        found,
        x=x,
        residual=_column_ratio(left, y),
        error_estimate=found.error_estimate * stretch,
        coefficient_errors=errors,
    )


def _independent(
    Z: np.ndarray, eps: float, rng: int | np.random.Generator | None
) -> np.ndarray:
    """Return a matrix Z V of independent columns with the same product Z V V^T Z^T."""
    n, m = Z.shape
    SZ = sparse_sign(4 * m, n, rng=rng) @ Z if 4 * m < n else Z
    _, sizes, V = np.linalg.svd(SZ, full_matrices=False)
    significant = sizes > max(SZ.shape) * eps * sizes[0]
    return Z if significant.all() else Z @ V[significant].T


def _descend(
    step: Callable[[np.ndarray], np.ndarray],
    Z: np.ndarray,
    R: Preconditioner,
    target: float,
    size: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Take unit steps until they are short, no longer shorten, or grow."""
    shortest = np.full_like(size, np.inf)
    stalled = 0
    for taken in range(1, MOST + 1):
        move = step(Z)
        length = norms(move)
        shorter = length < 0.99 * shortest
        stalled = 0 if shorter.any() else stalled + 1
        grown = length > np.maximum(3 * shortest, 1e-14 * R.condition * size)
        if not np.isfinite(length).all() or (stalled > 5 and grown.any()):
            raise np.linalg.LinAlgError(
                f"The unit steps of the paper's algorithm diverge: A R^-1 has a "
                f"distortion of {R.distortion:.2f}, or R is not of this A. Least "
                "squares want a sketch of 12 d rows, A^T A wants 40 d. Take a larger "
                "one, or another method."
            )
        Z = Z + move
        if stalled > 5 or (length <= target * size).all():
            return R.solve(Z), taken
        shortest = np.minimum(shortest, length)
    return R.solve(Z), MOST


def _column_ratio(X: np.ndarray, Y: np.ndarray) -> float:
    """Return the largest ratio of norms of columns."""
    return largest_ratio(*(A.reshape(len(A), -1).astype(float) for A in (X, Y)))
