r"""Iterations for A x = b and A^T A x = y that a preconditioner makes short.

.. math::
    z_{t+1} = z_t + \alpha\, R^{-\top} A^\top (b - A R^{-1} z_t)
    + \beta\, (z_t - z_{t-1}) , \qquad
    \alpha = (1 - \eta^2)^2 , \quad \beta = \eta^2

The heavy ball, equation :eq:`eq:heavy-ball` of the book, for singular values of A R^-1
between 1 / (1 + eta) and 1 / (1 - eta): it gains a factor eta a step. It is given a
little more than eta, as one singular value beyond the bounds would slow it down.
Conjugate gradients need not know eta. All work on several right-hand sides at a time,
as columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import lsqr as scipy_lsqr

from simlib.regression.rows import multiply, multiply_transposed

if TYPE_CHECKING:
    from simlib.regression.preconditioner import Preconditioner

__all__ = [
    "balanced",
    "conjugate_gradients",
    "heavy_ball",
    "lsqr",
    "normal_heavy_ball",
    "norms",
]

MOST = 500  # steps of an iteration that does not converge
RESTART = 1e-2  # to which the restart of conjugate gradients solves
WIDER = 1.07  # times eta, the bounds that hold for unlucky sketches too
MARGIN = 1.15  # times eta, the factor a step that is counted on


def heavy_ball(
    A: Any, B: np.ndarray, made: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    """Return the least-squares solutions X of A X = B, and the number of steps."""

    def gap(Z: np.ndarray) -> np.ndarray:
        return multiply_transposed(A, B - multiply(A, made.solve(Z)))

    return _heavy_ball(gap, made.start(A, B), norms(B), made, target)


def normal_heavy_ball(
    A: Any, Y: np.ndarray, made: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    """Return the solutions X of A^T A X = Y, and the number of steps."""

    def gap(Z: np.ndarray) -> np.ndarray:
        return Y - multiply_transposed(A, multiply(A, made.solve(Z)))

    start = made.solve_transposed(Y)
    return _heavy_ball(gap, start, norms(start), made, target)


def _heavy_ball(
    gap: Callable[[np.ndarray], np.ndarray],
    Z: np.ndarray,
    size: np.ndarray,
    made: Preconditioner,
    target: float,
) -> tuple[np.ndarray, int]:
    """Iterate a fixed number of steps, fewer where R^-T gap is small before."""
    eta = max(made.distortion, 1e-3)
    steps, before = int(np.ceil(np.log(target) / np.log(MARGIN * eta))), Z
    beta = (WIDER * eta) ** 2
    alpha = (1 - beta) ** 2
    for step in range(steps):
        residual = made.solve_transposed(gap(Z))
        if (norms(residual) <= target * size).all():
            return made.solve(Z), step
        Z, before = Z + alpha * residual + beta * (Z - before), Z
    return made.solve(Z), steps


def conjugate_gradients(
    A: Any, Y: np.ndarray, made: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    """Return the solutions X of A^T A X = Y, and the number of steps.

    In the variable R x, with a short restart from the residual computed anew, which
    recovers the digits that the recursion loses.
    """
    X, steps = _conjugate_gradients(A, Y, made, target)
    gap = Y - multiply_transposed(A, multiply(A, X))
    more, again = _conjugate_gradients(A, gap, made, RESTART)
    return X + more, steps + again


def _conjugate_gradients(
    A: Any, Y: np.ndarray, made: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    residual = made.solve_transposed(Y)
    size = norms(residual)
    residual = residual / np.where(size > 0, size, 1)
    Z, direction = np.zeros_like(residual), residual
    square = (residual**2).sum(axis=0)
    for step in range(MOST):
        going = square > target**2
        if not going.any():
            return made.solve(Z * size), step
        image = made.solve_transposed(
            multiply_transposed(A, multiply(A, made.solve(direction)))
        )
        curvature = (direction * image).sum(axis=0)
        length = np.divide(square, curvature, out=np.zeros_like(square), where=going)
        Z = Z + length * direction
        residual = residual - length * image
        new = (residual**2).sum(axis=0)
        ratio = np.divide(new, square, out=np.zeros_like(new), where=going)
        square, direction = new, residual + ratio * direction
    return made.solve(Z * size), MOST


def lsqr(
    A: Any, B: np.ndarray, made: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    """Return the least-squares solutions X of A X = B by SciPy's LSQR on A R^-1.

    For the correction of the start, to what is small beside B.
    """
    n, d = len(B), made.rank
    operator = LinearOperator(
        (n, d),
        matvec=lambda z: multiply(A, made.solve(z)),
        rmatvec=lambda y: made.solve_transposed(multiply_transposed(A, y)),
        dtype=np.float64,
    )
    Z, most = made.start(A, B), 0
    left, size = B - multiply(A, made.solve(Z)), norms(B)
    shares = norms(left) / np.where(size > 0, size, 1)
    for k, share in enumerate(shares):
        enough = target / max(share, 10 * target)
        move, _, steps, *_ = scipy_lsqr(
            operator, left[:, k], atol=enough, btol=enough, conlim=0, iter_lim=MOST
        )
        Z[:, k] += move
        most = max(most, steps)
    return made.solve(Z), most


def balanced(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of entries up to 1, and the powers of 2 they were divided by."""
    exponents = np.frexp(abs(X).max(axis=0))[1]
    return np.ldexp(X, -exponents), exponents


def norms(X: np.ndarray) -> np.ndarray:
    """Return the norms of columns, whose squares may be out of range."""
    X, exponents = balanced(X)
    return np.ldexp(np.linalg.norm(X, axis=0), exponents)
