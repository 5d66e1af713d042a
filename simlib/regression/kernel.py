r"""The matrix exp(X X^T), which is never formed, and conjugate gradients with it.

.. math::
    (G + \rho I) \alpha = y , \qquad G_{ij} = e^{\langle x_i, x_j \rangle - c} , \qquad
    M = F F^\top + \rho I + \mu \operatorname{diag}(G)

M, equation :eq:`eq:kernel-preconditioner` of the book, is the preconditioner, made of a
thin F with :math:`F F^\top \approx G`, and mu the mean share of the diagonal of G that
:math:`F F^\top` misses. Without the last term, rows of X of different norms, which give
G a diagonal of many sizes, take hundreds of iterations; with it, no ridge is too small
for M to be inverted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.linalg

from simlib.approximation.rpcholesky import rpcholesky
from simlib.landmarks import uniform
from simlib.regression.iterations import norms

__all__ = ["ExponentialKernel", "conjugate_gradients", "factor", "shifted_inverse"]

EPS = np.finfo(float).eps

BLOCK = 2**18  # entries of G at a time: they stay in the cache of the processor
TINY = 1e-280  # diagonal entries below, beside the largest, are left out of M
CHECK = 50  # steps after which the recursion for the residual is checked
RESTART = 1e-2  # by which an iteration that starts again lessens the residual

Linear = Callable[[np.ndarray], np.ndarray]


class ExponentialKernel:
    """The matrix of ``exp(<x_i, x_j> - exponent)``, evaluated wherever it is read.

    A `Source`, which `rpcholesky` reads; an entry costs so little here that it is
    neither counted nor kept.

    Parameters
    ----------
    X : array of float64, shape (n, d)
    exponent : float
        What to subtract so that nothing overflows.
    """

    symmetric = True
    dtype = np.dtype(np.float64)
    calls, limit = 0, None

    def __init__(self, X: np.ndarray, exponent: float = 0.0):
        self.X, self.exponent, self.n = X, exponent, len(X)
        self.shape = (self.n, self.n)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, shape (n,)."""
        return self.pairs(slice(None), slice(None))

    def pairs(self, i: np.ndarray | slice, j: np.ndarray | slice) -> np.ndarray:
        """Return the entries (i[k], j[k])."""
        return np.exp(np.einsum("kd,kd->k", self.X[i], self.X[j]) - self.exponent)

    def peek(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return NaN for each entry: none is kept."""
        return np.full(len(i), np.nan)

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return nothing."""
        return iter(())

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the entries of some rows and columns."""
        return self.with_rows(self.X[rows], self.X[columns])

    def columns(self, columns: np.ndarray) -> np.ndarray:
        """Return whole columns, shape (n, len(columns))."""
        return self.with_rows(self.X, self.X[columns])

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Return whole rows, shape (len(rows), n)."""
        return self.columns(rows).T

    def with_rows(self, Y: np.ndarray, X: np.ndarray | None = None) -> np.ndarray:
        """Return the kernel of the rows of Y with those of X, by default all."""
        block = Y @ (self.X if X is None else X).T
        if self.exponent:
            block -= self.exponent
        return np.exp(block, out=block)

    def __matmul__(self, P: np.ndarray) -> np.ndarray:
        """Return the product with an array of shape (n, k); half of G is evaluated."""
        out = np.zeros_like(P)
        start = 0
        while start < self.n:
            stop = min(self.n, start + max(1, BLOCK // (self.n - start)))
            block = self.with_rows(self.X[start:stop], self.X[start:])
            out[start:stop] += block @ P[start:]
            out[stop:] += block[:, stop - start :].T @ P[start:stop]
            start = stop
        return out


def factor(
    kernel: ExponentialKernel,
    method: str,
    rank: int,
    rng: int | np.random.Generator | None = None,
) -> np.ndarray:
    """Return F of at most `rank` columns with F F^T about the kernel.

    "rpcholesky" or "nystroem", with a uniform draw. The second divides by the square
    roots of those eigenvalues of its block that are not rounding error.
    """
    if method == "rpcholesky":
        # entries have the relative rounding error of the exponents
        tol = max(1e-11, 100 * EPS * norms(kernel.X.T).max() ** 2)
        return rpcholesky(kernel, rank, tol=tol, rng=rng).left
    landmarks = uniform(kernel.n, rank, rng=rng)
    C = kernel.columns(landmarks)
    values, vectors = np.linalg.eigh(C[landmarks])
    kept = values > rank * EPS * values[-1]
    return C @ (vectors[:, kept] / np.sqrt(values[kept]))


def shifted_inverse(F: np.ndarray, diagonal: np.ndarray, ridge: float) -> Linear:
    r"""Return the inverse of M by the inversion lemma.

    With :math:`D = \rho I + \mu \operatorname{diag}(G)` and :math:`W = D^{-1/2} F`,

    .. math::
        M^{-1} = D^{-1/2} \bigl( I - W (I + W^\top W)^{-1} W^\top \bigr) D^{-1/2} .

    mu is kept so large, at 1000 n rounding units, that the inner matrix has a condition
    number below 1e13: no jitter is needed where F has dependent columns.
    """
    shares = np.divide(
        np.einsum("ik,ik->i", F, F),
        diagonal,
        out=np.ones_like(diagonal),
        where=diagonal > 0,
    )
    missed = max(1 - shares.mean(), 1000 * EPS * shares.sum())
    rest = (ridge + missed * diagonal)[:, None]
    scale = np.divide(1, np.sqrt(rest), out=np.zeros_like(rest), where=rest > TINY)
    W = F * scale
    inner = scipy.linalg.cho_factor(np.eye(W.shape[1]) + W.T @ W)

    def solve(R: np.ndarray) -> np.ndarray:
        V = R * scale
        return (V - W @ scipy.linalg.cho_solve(inner, W.T @ V)) * scale

    return solve


@np.errstate(over="ignore", invalid="ignore")  # a step that overflows is the last
def conjugate_gradients(
    multiply: Linear,
    Y: np.ndarray,
    precondition: Linear,
    *,
    tol: float,
    max_iter: int,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Solve A X = Y for a positive definite A; return X, Y - A X, and the iterations.

    All columns go together, a finished one drops out. Where the recursion claims to be
    done the residual is computed anew; if it is not as small, the iteration starts
    again from it, as long as that halves it.
    """
    X, R = np.zeros_like(Y), Y.copy()
    target, size, steps = tol * norms(Y), norms(Y), 0
    aim = 0.99 * target
    going = np.flatnonzero(size > target)
    while going.size and steps < max_iter:
        move, taken = _run(
            multiply, R[:, going], precondition, aim[going], max_iter - steps
        )
        trial = X[:, going] + move
        left = Y[:, going] - multiply(trial)
        before, after = size[going], norms(left)
        better = after < before
        if steps == 0:  # the steps lessen x^T A x / 2 - x^T y, which is 0 before
            better |= np.einsum("ik,ik->k", trial, Y[:, going] + left) > 0
        X[:, going[better]], R[:, going[better]] = trial[:, better], left[:, better]
        going = going[(after > target[going]) & (after < before / 2)]
        steps, size = steps + taken, norms(R)
        aim = np.maximum(target / 2, RESTART * size)
    return X, R, steps


def _run(
    multiply: Linear,
    Y: np.ndarray,
    precondition: Linear,
    target: np.ndarray,
    max_iter: int,
) -> tuple[np.ndarray, int]:
    """Iterate from 0 until the recursion is below the target, or no longer true."""
    X = np.zeros_like(Y)
    going = np.arange(Y.shape[1])
    R, P, square = Y.copy(), np.zeros_like(Y), np.ones(Y.shape[1])
    for step in range(max_iter):
        Z = precondition(R)
        before, square = square, np.einsum("ik,ik->k", R, Z)
        P = Z + square / before * P
        image = multiply(P)
        curvature = np.einsum("ik,ik->k", P, image)
        sound = (curvature > 0) & (square > 0)
        length = np.divide(square, curvature, out=np.zeros_like(square), where=sound)
        move, fall = length * P, length * image
        sound &= np.isfinite(move).all(axis=0) & np.isfinite(fall).all(axis=0)
        X[:, going[sound]] += move[:, sound]
        R = R - fall
        keep = sound & (norms(R) > target[going])
        if step % CHECK == CHECK - 1:
            gap = norms(Y[:, going] - multiply(X[:, going]) - R)
            keep &= gap < norms(R) / 2
        if not keep.any():
            return X, step + 1
        going, R, P, square = going[keep], R[:, keep], P[:, keep], square[keep]
    return X, max_iter
