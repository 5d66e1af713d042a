r"""Iterations for A x = b and A^T A x = y that a preconditioner makes short.

.. math::
    z_{t+1} = z_t + \alpha\, R^{-\top} A^\top (b - A R^{-1} z_t)
    + \beta\, (z_t - z_{t-1}) , \qquad
    \alpha = (1 - \eta^2)^2 , \quad \beta = \eta^2

The heavy ball, equation :eq:`eq:heavy-ball` of the book, for singular values of A R^-1
between 1 / (1 + eta) and 1 / (1 - eta): it gains a factor eta a step. It is given a
little more than eta, as one singular value beyond the bounds would slow it down. LSQR
and conjugate gradients need not know eta, and do with `ColumnScaling` where A is well
conditioned. All work on several right-hand sides at a time, as columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from simlib._scale import norms
from simlib.regression.preconditioner import (
    ColumnScaling,
    Preconditioner,
    rounding_errors,
)
from simlib.regression.rows import gap_and_back, multiply, multiply_transposed

__all__ = ["Iterated", "TooManySteps", "conjugate_gradients", "heavy_ball", "lsqr"]

MOST = 500  # steps of an iteration that does not converge
RESTART = 1e-2  # to which the restart of conjugate gradients solves
WIDER = 1.07  # times eta, the bounds that hold for unlucky sketches too
MARGIN = 1.15  # times eta, the factor a step that is counted on
RELIABLE = 1e-24  # squared share of a residual whose steps tell singular values
FIRST = 10  # steps before the pace of an iteration is judged
REACHED = 30  # rounding errors, above which another restart may gain digits
HOPE = 1.2  # times too many steps its pace may foretell


class Iterated(NamedTuple):
    """Solutions as columns, steps taken, and extreme singular values of A R^-1.

    The singular values are those of the Lanczos process; the heavy ball has none.
    """

    x: np.ndarray
    steps: int
    extremes: tuple[float, float] = (np.nan, np.nan)


class TooManySteps(ArithmeticError):
    """An iteration would take more steps than it was given."""


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


def conjugate_gradients(
    A: Any,
    Y: np.ndarray,
    preconditioner: Preconditioner | ColumnScaling,
    target: float,
    most: int | None = None,
    impatient: bool = False,
) -> Iterated:
    """Return the solutions X of A^T A X = Y by conjugate gradients.

    In the variable R x, with a short restart from the residual computed anew, which
    recovers the digits that the recursion loses. `most` steps, 500 if None; impatient,
    it raises `TooManySteps` as soon as their pace says that more will be needed. So it
    does for dependent columns, which otherwise are a `numpy.linalg.LinAlgError`.
    """
    X, steps, extremes = _conjugate_gradients(
        A, Y, preconditioner, target, most or MOST, impatient
    )
    gap = Y - gap_and_back(A, X)[1]
    more, again, _ = _conjugate_gradients(A, gap, preconditioner, RESTART, MOST, False)
    return Iterated(X + more, steps + again, extremes)


def _conjugate_gradients(
    A: Any,
    Y: np.ndarray,
    preconditioner: Preconditioner | ColumnScaling,
    target: float,
    most: int,
    impatient: bool,
) -> Iterated:
    residual = preconditioner.solve_transposed(Y)
    size = norms(residual)
    residual = residual / np.where(size > 0, size, 1)
    Z, direction = np.zeros_like(residual), residual
    square = (residual**2).sum(axis=0)
    lengths, ratios, shares = [], [], []
    for step in range(most + 1):
        going = square > target**2
        if not going.any() or (step == most and not impatient):
            break
        if impatient:
            shares.append(float(np.sqrt(square.max())))
            _judge_pace(shares, target, most)
        image = preconditioner.solve_transposed(
            gap_and_back(A, preconditioner.solve(direction))[1]
        )
        curvature = (direction * image).sum(axis=0)
        if (going & (curvature <= 0)).any():
            if impatient:
                raise TooManySteps
            raise np.linalg.LinAlgError(
                "Columns of A depend on each other to rounding error: A x = 0 for an x "
                "that conjugate gradients have met. Leave some out, or add a ridge."
            )
        length = np.divide(square, curvature, out=np.zeros_like(square), where=going)
        Z = Z + length * direction
        residual = residual - length * image
        new = (residual**2).sum(axis=0)
        ratio = np.divide(new, square, out=np.zeros_like(new), where=going)
        square, direction = new, residual + ratio * direction
        if square.max() > RELIABLE:
            lengths.append(length)
            ratios.append(ratio)
    return Iterated(
        preconditioner.solve(Z * size), step, _extremes_of_descent(lengths, ratios)
    )


def lsqr(
    A: Any,
    B: np.ndarray,
    preconditioner: Preconditioner | ColumnScaling,
    target: float,
    most: int | None = None,
    impatient: bool = False,
) -> Iterated:
    """Return the least-squares solutions X of A X = B by LSQR on A R^-1.

    From the start of the preconditioner, until R^-T A^T (B - A X) is below the target
    times ``|A R^-1| (|B - A X| + |A R^-1| |R X|)``, and with short restarts from the
    residual computed anew, for as long as each halves it or rounding explains it: of
    an ill-conditioned A the products with R^-1 leave few digits to one run (Epperly,
    Meier, Nakatsukasa 2024). `most` steps, 500 if None; impatient, there is no restart,
    and it raises `TooManySteps` as soon as their pace says that more will be needed.
    """
    R, most = preconditioner, most or MOST
    (Z, steps, extremes), _ = _lsqr(A, B, R.start(A, B), R, target, most, impatient)
    before = np.full(B.shape[1], np.inf)
    while not impatient:
        found, (size, gap) = _lsqr(A, B, Z, R, target, most, False, 10 * RESTART)
        rounding = rounding_errors(R, R.solve(Z), size[None])
        least = np.maximum(rounding, target * (size + norms(Z)))
        Z, steps = found.x, steps + found.steps
        if not ((gap > REACHED * least) & (gap < before / 2)).any():
            break
        before = gap
    return Iterated(R.solve(Z), steps, extremes)


def _lsqr(
    A: Any,
    B: np.ndarray,
    Z: np.ndarray,
    preconditioner: Preconditioner | ColumnScaling,
    target: float,
    most: int,
    impatient: bool,
    enough: float = 0.0,
) -> tuple[Iterated, tuple[np.ndarray, np.ndarray]]:
    """Improve Z = R X, until the gap is a share `enough` of that at the start.

    Also return the lengths of B - A X, and of R^-T A^T times that, at the start.
    """

    def image(Z: np.ndarray) -> np.ndarray:
        return multiply(A, preconditioner.solve(Z))

    def back(U: np.ndarray) -> np.ndarray:
        return preconditioner.solve_transposed(multiply_transposed(A, U))

    U, beta = _normalized(B - image(Z) if Z.any() else B)
    V, alpha = _normalized(back(U))
    W, left, bar, start = V, beta, alpha, (beta, beta * alpha)
    largest, cosine = alpha, np.ones_like(alpha)
    alphas, betas, shares = [alpha], [], []
    for step in range(most + 1):
        gap = left * alpha * abs(cosine)
        scale = largest * (left + largest * _lengths(Z))
        done = (gap <= np.maximum(target * scale, enough * start[1])).all()
        if done or (step == most and not impatient):
            break
        if impatient:
            ratio = np.divide(gap, scale, out=np.zeros_like(gap), where=scale > 0)
            shares.append(float(ratio.max()))
            _judge_pace(shares, target, most)
        U, beta = _normalized(image(V) - alpha * U)
        V, alpha = _normalized(back(U) - beta * V)
        rho = np.hypot(bar, beta)
        safe = np.where(rho > 0, rho, 1)
        cosine, sine = bar / safe, beta / safe
        Z = Z + (cosine * left / safe) * W
        W = V - (sine * alpha / safe) * W
        left, bar = sine * left, -cosine * alpha
        largest = np.maximum(largest, np.hypot(alpha, beta))
        alphas.append(alpha)
        betas.append(beta)
    return Iterated(Z, step, _extremes_of_bidiagonal(alphas, betas)), start


def _judge_pace(shares: list[float], target: float, most: int) -> None:
    """Give up if at the gain of the later half of the steps there are too few.

    Most iterations are fast first; on their last half they hardly ever gain speed.
    """
    step = len(shares) - 1
    if step >= most:
        raise TooManySteps
    if step < FIRST or step % 5:
        return
    half = step // 2
    gain = np.log(max(shares[half] / max(shares[-1], target), 1.001)) / (step - half)
    if step + np.log(max(shares[-1] / target, 1)) / gain > HOPE * most:
        raise TooManySteps


def _lengths(X: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->j", X, X))


def _normalized(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of length 1, or 0, and the lengths they had."""
    sizes = _lengths(X)
    return X / np.where(sizes > 0, sizes, 1), sizes


def _extremes_of_bidiagonal(
    alphas: list[np.ndarray], betas: list[np.ndarray]
) -> tuple[float, float]:
    """Return the extreme singular values of the bidiagonal matrices of LSQR."""
    a, b = np.array(alphas[: len(betas)]), np.array(betas)
    if not len(a):
        return float(alphas[0].max()), float(alphas[0].max())
    return _extremes(a**2 + b**2, a[1:] * b[:-1])


def _extremes_of_descent(
    lengths: list[np.ndarray], ratios: list[np.ndarray]
) -> tuple[float, float]:
    """Return them for the tridiagonal matrices of conjugate gradients."""
    if not lengths:
        return np.nan, np.nan
    a, b = np.array(lengths), np.array(ratios)
    a = np.where(a > 0, a, np.inf)
    diagonal = 1 / a
    diagonal[1:] += b[:-1] / a[:-1]
    return _extremes(diagonal, np.sqrt(b[:-1]) / a[:-1])


def _extremes(diagonals: np.ndarray, beside: np.ndarray) -> tuple[float, float]:
    """Return the roots of the extreme eigenvalues of tridiagonal matrices, as columns.

    Where a column came to its end, its entries are 0.
    """
    found = []
    for k in range(diagonals.shape[1]):
        some = diagonals[:, k]
        count = int(np.argmin(some > 0)) if (some <= 0).any() else len(some)
        if count:
            values = eigvalsh_tridiagonal(some[:count], beside[: count - 1, k])
            values = np.sqrt(np.maximum(values, 0))
            found.append((values[0], values[-1]))
    if not found:
        return np.nan, np.nan
    least, largest = zip(*found, strict=True)
    return float(min(least)), float(max(largest))
