r"""The algorithms of Song, Yin and Zhang (2024) as they are printed.

.. math::
    z \leftarrow z + R^{-\top} A^\top (b - A R^{-1} z) , \qquad
    z \leftarrow z - B (B z - R^{-\top} y) , \quad B = R^{-\top} A^\top A R^{-1}

Equation :eq:`eq:unit-step` of the book. Algorithm 4, for least squares, takes unit
steps, and Algorithm 5, for A^T A x = y, unit
steps on the squared operator. The first converges if the singular values of A R^-1 are
below sqrt 2, which wants a sketch of 11.7 d rows; the second if they are below the
fourth root of 2, which wants about 40 d; at their own 100 d both are fast. Algorithms
1, 2, 6 and 7 are stages of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simlib.regression.iterations import norms
from simlib.regression.preconditioner import Preconditioner
from simlib.regression.rows import multiply, multiply_transposed

__all__ = ["OVERSAMPLING", "fast_linear_regression", "fast_psd_regression", "stages"]

OVERSAMPLING = 100  # rows of the sketch over columns: the paper's embedding of 0.1
MOST = 1000  # steps


def fast_linear_regression(
    A: Any, B: np.ndarray, made: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    """Return Algorithm 4's solutions of A X = B, and the number of steps."""

    def step(Z: np.ndarray) -> np.ndarray:
        gap = B - multiply(A, made.solve(Z))
        return made.solve_transposed(multiply_transposed(A, gap))

    return _descend(step, made.start(A, B), made, target, norms(B))


def fast_psd_regression(
    A: Any, Y: np.ndarray, made: Preconditioner, target: float
) -> tuple[np.ndarray, int]:
    """Return Algorithm 5's solutions of A^T A X = Y, and the number of steps."""
    right = made.solve_transposed(Y)

    def image(Z: np.ndarray) -> np.ndarray:
        product = multiply_transposed(A, multiply(A, made.solve(Z)))
        return made.solve_transposed(product)

    def step(Z: np.ndarray) -> np.ndarray:
        return image(right - image(Z))

    return _descend(step, np.zeros_like(right), made, target, norms(right))


def stages(
    A: Any, made: Preconditioner, target: float
) -> tuple[Callable[..., tuple], Callable[..., tuple]]:
    """Return Algorithms 4 and 5 with one preconditioner for all stages."""
    return (
        lambda B: fast_linear_regression(A, B, made, target),
        lambda Y: fast_psd_regression(A, Y, made, target),
    )


def _descend(
    step: Callable[[np.ndarray], np.ndarray],
    Z: np.ndarray,
    made: Preconditioner,
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
        grown = length > np.maximum(3 * shortest, 1e-14 * made.condition * size)
        if not np.isfinite(length).all() or (stalled > 5 and grown.any()):
            raise np.linalg.LinAlgError(
                f"The unit steps of the paper's algorithm diverge: A R^-1 has a "
                f"distortion of {made.distortion:.2f}, or R is not of this A. Least "
                "squares want a sketch of 12 d rows, A^T A wants 40 d. Take a larger "
                "one, or another method."
            )
        Z = Z + move
        if stalled > 5 or (length <= target * size).all():
            return made.solve(Z), taken
        shortest = np.minimum(shortest, length)
    return made.solve(Z), MOST
