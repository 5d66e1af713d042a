r"""Preconditioned iterations for A x = b and A^T A x = y.

.. math::
    \alpha = \frac{r^\top M^{-1} r}{p^\top B p} , \qquad
    x \leftarrow x + \alpha p , \qquad r \leftarrow r - \alpha B p , \qquad
    p \leftarrow M^{-1} r + \beta p

Conjugate gradients for B x = y, with a preconditioner M of B, and LSQR. Both take
several right-hand sides at a time, as columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from simlib._scale import norms
from simlib.regression.preconditioner import Triangle, rounding_errors
from simlib.regression.rows import gap_and_back, multiply, multiply_transposed

Linear = Callable[[np.ndarray], np.ndarray]

MOST = 500  # steps of an iteration that does not converge
RESTART = 1e-2  # relative residual that a restart of conjugate gradients reaches
RELIABLE = 1e-24  # steps above this squared relative residual show singular values
FIRST = 10  # steps before the pace of an iteration is judged
REACHED = 30  # rounding errors: above so many another restart may gain digits
HOPE = 1.2  # times `most`: the steps that the pace may predict


class Iterated(NamedTuple):
    """Solutions as columns, steps, and extreme singular values of A R^-1, or NaN."""

    x: np.ndarray
    steps: int
    extremes: tuple[float, float] = (np.nan, np.nan)


class TooManySteps(ArithmeticError):
    """An iteration would take more steps than it may take."""


class Descent:
    """Conjugate gradients for B X = Y, a step at a time, for the columns `going`.

    `multiply` and `precondition` are the products with B and M^-1, both symmetric and
    positive definite. For the columns `going`, `R` is Y - B X by recursion, `square`
    is r^T M^-1 r before the last step, and `length` is alpha of the last step.
    """

    def __init__(self, multiply: Linear, Y: np.ndarray, precondition: Linear):
        self.multiply, self.precondition = multiply, precondition
        self.X, self.R, self.P = np.zeros_like(Y), Y.copy(), np.zeros_like(Y)
        self.going, self.steps = np.arange(Y.shape[1]), 0
        self.square = self.length = np.ones(Y.shape[1])

    @np.errstate(over="ignore", invalid="ignore")  # a step that overflows is not taken
    def step(self) -> np.ndarray:
        """Make a step; return for which columns it succeeds.

        It fails where B turns out not to be positive definite, or a number overflows.
        """
        Z = self.precondition(self.R)
        before, self.square = self.square, _products(self.R, Z)
        self.P = Z + self.square / before * self.P
        image = self.multiply(self.P)
        curvature = _products(self.P, image)
        sound = (curvature > 0) & (self.square > 0)
        self.length = np.divide(
            self.square, curvature, out=np.zeros_like(curvature), where=sound
        )
        move, fall = self.length * self.P, self.length * image
        sound &= np.isfinite(move).all(axis=0) & np.isfinite(fall).all(axis=0)
        self.X[:, self.going[sound]] += move[:, sound]
        self.R, self.steps = self.R - fall, self.steps + 1
        return sound

    def keep(self, columns: np.ndarray) -> None:
        """Continue with some of the columns, and leave the others as they are."""
        self.going, self.square = self.going[columns], self.square[columns]
        self.R, self.P = self.R[:, columns], self.P[:, columns]


def conjugate_gradients(
    A: Any,
    Y: np.ndarray,
    R: Triangle,
    target: float,
    most: int | None = None,
    impatient: bool = False,
) -> Iterated:
    """Return the solutions X of A^T A X = Y by conjugate gradients.

    A short restart follows, from a newly computed residual. At most `most` steps, 500
    by default. If `impatient`, it raises `TooManySteps` as soon as the pace shows that
    more steps are needed, and for dependent columns of A, which otherwise are a
    `numpy.linalg.LinAlgError`.
    """
    X, steps, extremes = _normal_equations(A, Y, R, target, most or MOST, impatient)
    gap = Y - gap_and_back(A, X)[1]
    more, again, _ = _normal_equations(A, gap, R, RESTART, MOST, False)
    return Iterated(X + more, steps + again, extremes)


def _normal_equations(
    A: Any, Y: np.ndarray, R: Triangle, target: float, most: int, impatient: bool
) -> Iterated:
    def image(Z: np.ndarray) -> np.ndarray:
        return R.solve_transposed(gap_and_back(A, R.solve(Z))[1])

    right = R.solve_transposed(Y)
    size = norms(right)
    descent = Descent(image, right / np.where(size > 0, size, 1), lambda Z: Z)
    descent.keep(size > 0)
    lengths, squares, shares = [], [], [1.0]
    while descent.going.size and descent.steps < most:
        length, square = np.zeros((2, len(size)))
        going = descent.going
        if not descent.step().all():
            if impatient:
                raise TooManySteps
            raise np.linalg.LinAlgError(
                "Columns of A depend on each other to rounding error: A x = 0 for an x "
                "that conjugate gradients have met. Leave some out, or add a ridge."
            )
        left = _products(descent.R, descent.R)
        if left.max() > RELIABLE:
            length[going], square[going] = descent.length, descent.square
            lengths.append(length)
            squares.append(square)
        shares.append(float(np.sqrt(left.max())))
        descent.keep(left > target**2)
        if impatient and descent.going.size:
            _judge_pace(shares, target, most)
    return Iterated(
        R.solve(descent.X * size), descent.steps, _extremes_of_descent(lengths, squares)
    )


def lsqr(
    A: Any,
    B: np.ndarray,
    R: Triangle,
    target: float,
    most: int | None = None,
    impatient: bool = False,
) -> Iterated:
    """Return the least-squares solutions X of A X = B by LSQR on A R^-1.

    It iterates until R^-T A^T (B - A X) is below the target times ``|A R^-1| (|B - A X|
    + |A R^-1| |R X|)``. Short restarts from a newly computed residual follow, as long
    as each halves it (Epperly, Meier, Nakatsukasa 2024); none if `impatient`. `most` is
    that of `conjugate_gradients`.
    """
    most = most or MOST
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
    R: Triangle,
    target: float,
    most: int,
    impatient: bool,
    enough: float = 0.0,
) -> tuple[Iterated, tuple[np.ndarray, np.ndarray]]:
    """Improve Z = R X by LSQR, until the gap is `enough` times the gap at the start."""

    def image(Z: np.ndarray) -> np.ndarray:
        return multiply(A, R.solve(Z))

    def back(U: np.ndarray) -> np.ndarray:
        return R.solve_transposed(multiply_transposed(A, U))

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
    """Raise `TooManySteps` if the pace of the later half of the steps is too slow."""
    step = len(shares) - 1
    if step >= most:
        raise TooManySteps
    if step < FIRST or step % 5:
        return
    half = step // 2
    gain = np.log(max(shares[half] / max(shares[-1], target), 1.001)) / (step - half)
    if step + np.log(max(shares[-1] / target, 1)) / gain > HOPE * most:
        raise TooManySteps


def _products(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.asarray((X * Y).sum(axis=0))


def _lengths(X: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->j", X, X))


def _normalized(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns scaled to length 1, or 0, and their lengths."""
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
    lengths: list[np.ndarray], squares: list[np.ndarray]
) -> tuple[float, float]:
    """Return the same from the tridiagonal matrices of conjugate gradients."""
    if not lengths:
        return np.nan, np.nan
    a, r = np.array(lengths), np.array(squares)
    a = np.where(a > 0, a, np.inf)
    ratios = np.divide(r[1:], r[:-1], out=np.zeros_like(r[1:]), where=r[:-1] > 0)
    diagonal = 1 / a
    diagonal[1:] += ratios / a[:-1]
    return _extremes(diagonal, np.sqrt(ratios) / a[:-1])


def _extremes(diagonals: np.ndarray, beside: np.ndarray) -> tuple[float, float]:
    """Return the roots of the extreme eigenvalues of some tridiagonal matrices."""
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
