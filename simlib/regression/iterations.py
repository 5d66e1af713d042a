r"""Iterations for A x = b and A^T A x = y that a preconditioner makes short.

.. math::
    z_{t+1} = z_t + \alpha\, R^{-\top} A^\top (b - A R^{-1} z_t)
    + \beta\, (z_t - z_{t-1}) , \qquad
    \alpha = (1 - \eta^2)^2 , \quad \beta = \eta^2

The heavy ball, for singular values of A R^-1 between 1 / (1 + eta) and 1 / (1 - eta):
it gains a factor eta a step. Conjugate gradients need not know eta. All work on several
right-hand sides at a time, as columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import lsqr as scipy_lsqr

from simlib.regression.preconditioner import Preconditioner
from simlib.regression.rows import multiply, multiply_transposed

__all__ = ["conjugate_gradients", "heavy_ball", "lsqr", "normal_heavy_ball"]

MOST = 500  # steps of an iteration that does not converge
RESTART = 1e-3  # to which the restart of conjugate gradients solves
MARGIN = 1.15  # on eta, for unlucky sketches


def heavy_ball(
    A: Any, B: np.ndarray, made: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    """Return the least-squares solutions X of A X = B, and the number of steps."""

    def gap(Z: np.ndarray) -> np.ndarray:
        return multiply_transposed(A, B - multiply(A, made.solve(Z)))

    size = np.linalg.norm(B, axis=0)
    return _heavy_ball(gap, made.start(A, B), size, made, target)


def normal_heavy_ball(
    A: Any, Y: np.ndarray, made: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    """Return the solutions X of A^T A X = Y, and the number of steps."""

    def gap(Z: np.ndarray) -> np.ndarray:
        return Y - multiply_transposed(A, multiply(A, made.solve(Z)))

    start = made.solve_transposed(Y)
    size = np.linalg.norm(start, axis=0)
    return _heavy_ball(gap, start, size, made, target)


def _heavy_ball(
    gap: Callable[[np.ndarray], np.ndarray],
    Z: np.ndarray,
    size: np.ndarray,
    made: Preconditioner,
    target: float,
) -> tuple[np.ndarray, int]:
    """Iterate a fixed number of steps, fewer where R^-T gap is small before."""
    eta = max(made.distortion, 1e-3)
    alpha, beta = (1 - eta**2) ** 2, eta**2
    steps, before = int(np.ceil(np.log(target) / np.log(MARGIN * eta))), Z
    for step in range(steps):
        residual = made.solve_transposed(gap(Z))
        if (np.linalg.norm(residual, axis=0) <= target * size).all():
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
    Z, direction = np.zeros_like(residual), residual
    square = first = (residual**2).sum(axis=0)
    for step in range(MOST):
        going = square > target**2 * first
        if not going.any():
            return made.solve(Z), step
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
    return made.solve(Z), MOST


def lsqr(
    A: Any, B: np.ndarray, made: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    """Return the least-squares solutions X of A X = B by SciPy's LSQR on A R^-1."""
    n, d = len(B), made.rank
    operator = LinearOperator(
        (n, d),
        matvec=lambda z: multiply(A, made.solve(z)),
        rmatvec=lambda y: made.solve_transposed(multiply_transposed(A, y)),
        dtype=np.float64,
    )
    start, columns, most = made.start(A, B), [], 0
    for z, b in zip(start.T, B.T, strict=True):
        found = scipy_lsqr(
            operator, b, x0=z, atol=target, btol=target, conlim=0, iter_lim=MOST
        )
        columns.append(found[0])
        most = max(most, found[2])
    return made.solve(np.column_stack(columns)), most
