r"""Regression with a tall matrix, and with powers of its Gram matrix.

.. math::
    \min_x \| A x - b \| , \qquad A^\top A\, x = y , \qquad
    (A^\top A)^j x = b , \qquad \min_x \| A (A^\top A)^j x - b \|

All four are stages, one after the other with the same preconditioner: a least-squares
stage where the power of A is odd, and j stages x_{k+1} = (A^T A)^{-1} x_k.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike

from simlib.regression import paper
from simlib.regression.iterations import (
    conjugate_gradients,
    heavy_ball,
    lsqr,
    normal_heavy_ball,
)
from simlib.regression.preconditioner import Preconditioner
from simlib.regression.rows import (
    as_rows,
    blocks,
    is_blocks,
    multiply,
    multiply_transposed,
)

__all__ = ["Solution", "even_power", "lstsq", "odd_power", "solve_gram"]

METHODS = ("auto", "cholesky_qr", "gram", "heavy_ball", "cg", "lsqr", "paper")
UNIT = np.finfo(float).eps / 2
WIDE = 2000  # columns from which iterations cost less than matrix products
OVERSAMPLING = {"heavy_ball": 12, "cg": 12, "lsqr": 12, "paper": paper.OVERSAMPLING}


@dataclass(frozen=True, eq=False)
class Solution:
    """The answer to a regression, and what is known about it.

    Attributes
    ----------
    x : ndarray of shape (d,) or (d, k)
        The solution.
    residual : float
        Norm of what is left of b, relative to b: of ``A x - b``, of
        ``(A^T A)^j x - b`` or of ``A (A^T A)^j x - b``, the largest of all columns. By
        "cholesky_qr" the powers are those of R^T R, which is A^T A to rounding.
    stage_residuals : tuple of float
        For each solve with A^T A, ``R^-T (A^T A x - y)`` relative to ``R^-T y``: the
        backward error in the norm in which it can be made small, whatever the
        condition. For a first least-squares stage, ``R^-T A^T (A x - b)`` over b.
    iterations : tuple of int
        Steps of each stage; 0 for direct ones.
    condition : float
        That of A, from R.
    error_estimate : float
        Estimate of the relative error of x, norm over norm: what each stage commits,
        and what the later ones make of it.
    method : str
        The method taken.
    """

    x: np.ndarray
    residual: float
    stage_residuals: tuple[float, ...]
    iterations: tuple[int, ...]
    condition: float
    error_estimate: float
    method: str


def lstsq(
    A: Any,
    b: ArrayLike,
    *,
    tol: float = 1e-12,
    method: str = "auto",
    preconditioner: Preconditioner | None = None,
    rng: int | np.random.Generator | None = None,
) -> Solution:
    """Solve min ||A x - b|| for a tall matrix of full rank.

    Parameters
    ----------
    A : array, memory map, sparse array, or re-iterable of row blocks, shape (n, d)
        At least as many rows as columns, which are independent.
    b : array of shape (n,) or (n, k)
        Right-hand side, or several as columns.
    tol : float, default=1e-12
        Relative accuracy asked for, in the sense of `Solution.stage_residuals`.
    method : str, default="auto"
        "cholesky_qr": the triangle of A in two passes, then triangular solves; digits
        as those of QR. "gram": A^T A and its Cholesky decomposition, fastest, loses
        twice the digits of the condition number. "heavy_ball", "lsqr", "cg":
        iterations, for sparse or very wide A ("cg" is for stages with A^T A, and takes
        LSQR here; so do stages of "lsqr" take CG). "paper": the algorithms as printed.
        "auto": "gram" if the condition of the sketch permits it at this `tol`,
        iterations for sparse A and beyond 2000 columns, otherwise "cholesky_qr".
    preconditioner : Preconditioner, optional
        Of the same A, made before.
    rng : int, Generator or None
        Source of randomness for the sketch, as in `numpy.random.default_rng`.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        Shapes that do not match, NaN or an infinity, fewer rows than columns, a method
        that does not exist, or a solution beyond the range of floating-point numbers.
    numpy.linalg.LinAlgError
        Dependent columns, or a Gram matrix that is not positive definite to rounding.

    See Also
    --------
    numpy.linalg.lstsq : by the SVD; takes any rank, and about twice the time.

    Notes
    -----
    2 n d^2 flops and two passes for "cholesky_qr", n d^2 and one for "gram"; for
    iterations a sketch of 12 d rows, 24 d^3, and some 20 products with A and A^T.
    Source: Song, Yin and Zhang (2024), Algorithm 4, for "paper", whose unit steps
    diverge for sketches of fewer than 11.7 d rows; the other routes are standard.
    """
    return _solve(A, b, 0, True, tol, method, preconditioner, rng)


def solve_gram(
    A: Any,
    y: ArrayLike,
    *,
    tol: float = 1e-12,
    method: str = "auto",
    preconditioner: Preconditioner | None = None,
    rng: int | np.random.Generator | None = None,
) -> Solution:
    """Solve A^T A x = y, for y of shape (d,) or (d, k). Options as in `lstsq`.

    Source: Song, Yin and Zhang (2024), Algorithm 5, for "paper".
    """
    return _solve(A, y, 1, False, tol, method, preconditioner, rng)


def even_power(
    A: Any,
    b: ArrayLike,
    j: int,
    *,
    tol: float = 1e-12,
    method: str = "auto",
    preconditioner: Preconditioner | None = None,
    rng: int | np.random.Generator | None = None,
) -> Solution:
    """Solve (A^T A)^j x = b, for b of shape (d,) or (d, k). Options as in `lstsq`.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        The condition number to the power 2 j times the rounding unit exceeds `tol`: no
        x in floating point has so small a residual. x may have many digits all the
        same: see `Solution.error_estimate`.

    Notes
    -----
    The preconditioner is made once; by "cholesky_qr" a further stage costs 2 d^2 flops.
    Source: Song, Yin and Zhang (2024), Algorithms 1, 5 and 7, for "paper".
    """
    _check_power(j)
    return _solve(A, b, j, False, tol, method, preconditioner, rng)


def odd_power(
    A: Any,
    b: ArrayLike,
    j: int,
    *,
    weight: ArrayLike | None = None,
    tol: float = 1e-12,
    method: str = "auto",
    preconditioner: Preconditioner | None = None,
    rng: int | np.random.Generator | None = None,
) -> Solution:
    """Solve min ||A (A^T A)^j x - b||, for b of shape (n,) or (n, k).

    Parameters
    ----------
    j : int
        At least 0; 0 is `lstsq`.
    weight : array of shape (d, d), optional
        A symmetric positive definite W, for j = 1: solve min ||A W A^T A x - b||
        instead, linear attention with W the product of query and key weights. With
        W = C C^T that is the odd power of A C.

    Notes
    -----
    The other parameters, and what is raised, are those of `lstsq`; it warns as
    `even_power` does. Source: Song, Yin and Zhang (2024), Algorithms 2 and 6, for
    "paper"; their Definitions A.5 and A.6 are equivalent for symmetric positive
    definite W only.
    """
    _check_power(j)
    if weight is None:
        return _solve(A, b, j, True, tol, method, preconditioner, rng)
    if j != 1 or preconditioner is not None or is_blocks(A):
        raise ValueError(
            "A weight is for j = 1 and a matrix A in memory, without a preconditioner "
            "of A: pass odd_power(A @ C, b, j) for a W = C C^T of your own."
        )
    W = np.asarray(weight, dtype=np.float64)
    if W.ndim != 2 or abs(W - W.T).max() > 1e-8 * abs(W).max():
        raise ValueError("The weight W must be symmetric, or A W A^T A is no power.")
    C = scipy.linalg.cholesky(W, lower=True)
    found = _solve(as_rows(A) @ C, b, 1, True, tol, method, None, rng)
    return replace(found, x=C @ found.x)


def _check_power(j: int) -> None:
    if isinstance(j, bool) or not isinstance(j, int | np.integer) or j < 0:
        raise ValueError(f"The power j must be an integer and at least 0; got {j!r}.")


def _solve(
    A: Any,
    b: ArrayLike,
    j: int,
    least_squares: bool,
    tol: float,
    method: str,
    made: Preconditioner | None,
    rng: int | np.random.Generator | None,
) -> Solution:
    """Go through the stages; all four names are this loop."""
    if method not in METHODS:
        raise ValueError(f"`method` is one of {', '.join(METHODS)}; got {method!r}.")
    if not 0 < tol < 1:
        raise ValueError(f"tol must lie between 0 and 1; got {tol}.")
    A, b = as_rows(A), np.asarray(b, dtype=np.float64)
    if b.ndim not in (1, 2) or not np.isfinite(b).all():
        raise ValueError(
            "b must be finite, of one right-hand side or of several as columns; got "
            f"shape {b.shape}."
        )
    method, made = _route(A, tol, method, made, rng)
    d = made.rank
    rows = sum(block.shape[0] for block in blocks(A)) if is_blocks(A) else A.shape[0]
    if len(b) != (rows if least_squares else d):
        raise ValueError(
            f"b has {len(b)} entries, A shape {(rows, d)}: it must have "
            f"{rows if least_squares else d}."
        )
    if made.condition ** (2 * j) * UNIT > tol:
        warnings.warn(
            f"With a condition number of {made.condition:.1e} no floating-point x has "
            f"a residual below about {made.condition ** (2 * j) * UNIT:.0e} of b, and "
            f"tol is {tol:.0e}. See error_estimate for the digits of x.",
            scipy.linalg.LinAlgWarning,
            stacklevel=3,
        )
    target = max(tol / 100, 1e-14)
    first, stage = _stages(A, made, method, target)
    B = b if b.ndim == 2 else b[:, None]
    x, iterates, gaps, steps = B, [], [], []
    if least_squares:
        x, taken = first(B)
        back = made.solve_transposed(multiply_transposed(A, multiply(A, x) - B))
        gaps.append(_relative(back, B))
        steps.append(taken)
        iterates.append(x)
    for _ in range(j):
        y = x
        x, taken = stage(y)
        back = multiply_transposed(A, multiply(A, x)) - y
        gaps.append(_relative(made.solve_transposed(back), made.solve_transposed(y)))
        steps.append(taken)
        iterates.append(x)
    if not (np.isfinite(x).all() and (x.any(axis=0) | ~B.any(axis=0)).all()):
        raise ValueError(
            "The solution is beyond the range of floating-point numbers: divide A by "
            f"its norm, about {np.linalg.norm(made.R):.0e}, and scale x afterwards."
        )
    return Solution(
        x=x if b.ndim == 2 else x[:, 0],
        residual=_residual(A, B, x, j, least_squares, made, method),
        stage_residuals=tuple(gaps),
        iterations=tuple(steps),
        condition=made.condition,
        error_estimate=_error(A, B, iterates, least_squares, made, method),
        method=method,
    )


def _route(
    A: Any,
    tol: float,
    method: str,
    made: Preconditioner | None,
    rng: int | np.random.Generator | None,
) -> tuple[str, Preconditioner]:
    """Choose the method, and make what preconditioner it needs."""
    sparse = scipy.sparse.issparse(A)
    width = next(blocks(A)).shape[1] if made is None else made.rank
    if method == "auto" and (sparse or width > WIDE):
        method = "heavy_ball"
    if made is None:
        oversampling = OVERSAMPLING.get(method, 4)
        made = Preconditioner.from_matrix(
            A, oversampling=oversampling, refine=False, rng=rng
        )
    if method == "auto":
        loses_little = made.condition**2 * UNIT < tol / 10
        method = "gram" if loses_little else "cholesky_qr"
    if method == "cholesky_qr" and made.distortion:
        made = made.refined(A)
    return method, made


def _stages(
    A: Any, made: Preconditioner, method: str, target: float
) -> tuple[Callable, Callable]:
    """Return the solvers of a least-squares stage and of a stage with A^T A."""

    def direct(solve: Callable) -> tuple[Callable, Callable]:
        def first(B: np.ndarray) -> tuple[np.ndarray, int]:
            X = solve(multiply_transposed(A, B))
            return X + solve(multiply_transposed(A, B - multiply(A, X))), 0

        return first, lambda Y: (solve(Y), 0)

    if method == "cholesky_qr":
        return direct(lambda Y: made.solve(made.solve_transposed(Y)))
    if method == "gram":
        scale = 2.0 ** np.round(np.log2(abs(made.R).max()))
        gram = sum((block / scale).T @ (block / scale) for block in blocks(A))
        gram = gram.toarray() if scipy.sparse.issparse(gram) else gram
        factor = scipy.linalg.cho_factor(gram)
        return direct(lambda Y: scipy.linalg.cho_solve(factor, Y / scale) / scale)
    if method == "paper":
        return paper.stages(A, made, target)
    first = heavy_ball if method == "heavy_ball" else lsqr
    stage = normal_heavy_ball if method == "heavy_ball" else conjugate_gradients
    return (
        lambda B: first(A, B, made, target),
        lambda Y: stage(A, Y, made, target),
    )


def _relative(gap: np.ndarray, reference: np.ndarray) -> float:
    """Return the largest ratio of norms of columns; 0 where both vanish."""
    norms, sizes = (np.linalg.norm(X, axis=0) for X in (gap, reference))
    return float(
        np.divide(norms, sizes, out=np.zeros_like(norms), where=sizes > 0).max()
    )


def _residual(
    A: Any,
    B: np.ndarray,
    x: np.ndarray,
    j: int,
    least_squares: bool,
    made: Preconditioner,
    method: str,
) -> float:
    for _ in range(j):
        if method == "cholesky_qr":
            x = made.R.T @ (made.R @ x)
        else:
            x = multiply_transposed(A, multiply(A, x))
    return _relative((multiply(A, x) if least_squares else x) - B, B)


def _error(
    A: Any,
    B: np.ndarray,
    iterates: list[np.ndarray],
    least_squares: bool,
    made: Preconditioner,
    method: str,
) -> float:
    """Estimate the relative error of the last iterate.

    A stage commits u (kappa + kappa^2 |A x| / (|A| |x|)), by "gram" u kappa^2, and a
    least-squares stage u (kappa + kappa^2 |A x - b| / (|A| |x|)); a later stage
    multiplies what was committed by |x_k| / (sigma_min^2 |x_{k+1}|).
    """
    largest = np.linalg.norm(made.R, 2)
    least = largest / made.condition
    total = np.zeros(B.shape[1])
    before = None
    for number, x in enumerate(iterates):
        size = np.linalg.norm(x, axis=0)
        safe = np.where(size > 0, size, 1)
        if before is not None:
            total = total * (before / safe) / least / least
        left = multiply(A, x) - B if least_squares and number == 0 else made.R @ x
        share = np.linalg.norm(left, axis=0) / largest / safe
        commits = made.condition + made.condition**2 * np.minimum(share, 1 / UNIT)
        if method == "gram":
            commits = np.maximum(commits, made.condition**2)
        total = np.where(size > 0, total + UNIT * commits, 0)
        before = size
    return float(total.max()) if iterates else 0.0
