r"""Polyak's heavy ball for least squares, a contender of `simlib.lstsq`.

.. math::
    z_{t+1} = z_t + \alpha\, R^{-\top} A^\top (b - A R^{-1} z_t)
    + \beta\, (z_t - z_{t-1}) , \qquad
    \alpha = (1 - \eta^2)^2 , \quad \beta = \eta^2

Equation :eq:`eq:heavy-ball` of the book, for singular values of A R^-1 between
1 / (1 + eta) and 1 / (1 - eta): it gains a factor eta a step. It is given a little more
than eta, as one singular value beyond the bounds would slow it down.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simlib._scale import norms
from simlib.regression.iterations import Iterated
from simlib.regression.preconditioner import Preconditioner
from simlib.regression.rows import gap_and_back

__all__ = ["heavy_ball"]

WIDER = 1.07  # times eta, the bounds that hold for unlucky sketches too
MARGIN = 1.15  # times eta, the factor a step that is counted on


def heavy_ball(
    A: Any, B: np.ndarray, preconditioner: Preconditioner, target: float
) -> Iterated:
    """Return the least-squares solutions X of A X = B by the heavy ball.

    A fixed number of steps, fewer where R^-T A^T (B - A X) is small before. Raises
    `numpy.linalg.LinAlgError` where the steps diverge, as after a failed sketch.
    """
    Z, size = preconditioner.start(A, B), norms(B)
    eta = max(preconditioner.distortion, 1e-3)
    steps, before = int(np.ceil(np.log(target) / np.log(MARGIN * eta))), Z
    beta = (WIDER * eta) ** 2
    alpha = (1 - beta) ** 2
    first = np.inf
    for step in range(steps):
        residual = -preconditioner.solve_transposed(
            gap_and_back(A, preconditioner.solve(Z), B)[1]
        )
        left = np.max(norms(residual), initial=0)
        first = min(first, left)
        if not left <= max(1e3 * first, size.max()):
            raise np.linalg.LinAlgError(
                "The steps of the heavy ball diverge: the singular values of A R^-1 "
                f"are not what a distortion of {eta:.2f} says. The sketch has failed, "
                'or R is not of this A. Take the sketch "sparse_sign", or LSQR.'
            )
        if (norms(residual) <= target * size).all():
            return Iterated(preconditioner.solve(Z), step)
        Z, before = Z + alpha * residual + beta * (Z - before), Z
    return Iterated(preconditioner.solve(Z), steps)
