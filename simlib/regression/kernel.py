r"""The Gaussian kernel inside exp(X X^T), and conjugate gradients with it.

.. math::
    G_{ij} = e^{\langle x_i, x_j \rangle} , \quad G = D K D , \quad
    K_{ij} = e^{-\|x_i - x_j\|^2 / 2} , \quad D = \operatorname{diag} e^{\|x_i\|^2 / 2}
    \qquad
    (G + \lambda I) \alpha = y \iff (K + \lambda D^{-2}) \, D \alpha = D^{-1} y

Equation :eq:`eq:attention-scaled` of the book. The preconditioner, equation
:eq:`eq:kernel-preconditioner`, is

.. math::
    P = F F^\top + \mu I + \lambda D^{-2} ,

with a thin F, :math:`F F^\top \approx K`; mu is the mean diagonal entry of
:math:`K - F F^\top`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.utils.extmath import row_norms

from simlib._scale import norms
from simlib._typing import Seed
from simlib.landmarks import uniform
from simlib.regression.iterations import Descent, Linear

__all__ = ["factor", "shifted_inverse", "solve_by_rows"]

EPS = np.finfo(float).eps

IN_CACHE = 2**17  # entries of K at a time: they stay in the cache of the processor
LARGEST_CACHE = 2**26  # entries of half of K that are kept between products; 512 MiB
CHECK = 50  # steps after which the recursion for the residual is checked
RESTART = 1e-2  # factor by which a restart reduces the residual

Part = tuple[int, int, np.ndarray]


class GaussianKernel:
    """The matrix of ``exp(-|x_i - x_j|^2 / 2)``, a `Source` that counts no calls."""

    symmetric = True
    dtype = np.dtype(np.float64)
    calls, limit = 0, None

    def __init__(self, X: np.ndarray):
        self.centre = X.mean(axis=0)  # centred, rows far from 0 keep more digits
        self.X = X - self.centre
        halves = row_norms(self.X, squared=True)[:, None] / 2
        ones = np.ones((len(X), 1))
        # L R^T is -|x_i - x_j|^2 / 2.
        self._left = np.hstack([self.X, -halves, ones])
        self._right = np.hstack([self.X, ones, -halves])
        self.n = len(X)
        self.shape = (self.n, self.n)

    def diagonal(self) -> np.ndarray:
        return np.ones(self.n)

    def pairs(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        difference = self.X[np.asarray(i)] - self.X[np.asarray(j)]
        return np.exp(-np.square(difference).sum(axis=1) / 2)

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        return np.full(np.size(i), np.nan)

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        return iter(())

    def block(self, rows: ArrayLike, columns: ArrayLike) -> np.ndarray:
        block = self._left[np.asarray(rows)] @ self._right[np.asarray(columns)].T
        return np.exp(block, out=block)

    def exponents(self, points: np.ndarray) -> np.ndarray:
        """Return ``|x - m|^2 / 2 - |x - x_i|^2 / 2`` for points, shape (m, n).

        m is the centre. No square of a distance is formed, so points that are far from
        all x_i lose no digits.
        """
        exponents = (points - self.centre) @ self.X.T
        exponents += self._right[:, -1]
        return exponents

    def columns(self, columns: ArrayLike) -> np.ndarray:
        return self.block(np.arange(self.n), columns)

    def rows(self, rows: ArrayLike) -> np.ndarray:
        return self.columns(rows).T

    def __matmul__(self, P: np.ndarray) -> np.ndarray:
        """Return the product with an array of shape (n, k); half of K is evaluated."""
        out = np.zeros_like(P)
        for start, stop, block in self._kept or self._parts():
            out[start:stop] += block @ P[start:]
            out[stop:] += block[:, stop - start :].T @ P[start:stop]
        return out

    @cached_property
    def _kept(self) -> list[Part]:
        """The parts of half of K, an empty list if they are too large."""
        return list(self._parts()) if self.n**2 / 2 <= LARGEST_CACHE else []

    def _parts(self) -> Iterator[Part]:
        """Yield rows from the diagonal on, about `IN_CACHE` entries at a time."""
        stop = 0
        while stop < self.n:
            start, stop = stop, min(self.n, stop + max(1, IN_CACHE // (self.n - stop)))
            block = self._left[start:stop] @ self._right[start:].T
            yield start, stop, np.exp(block, out=block)


def factor(
    kernel: GaussianKernel, method: str, rank: int, rng: Seed = None
) -> np.ndarray:
    """Return F of at most `rank` columns, with F F^T near the kernel matrix."""
    if method == "rpcholesky":
        from simlib.approximation.rpcholesky import rpcholesky  # and all it imports

        # entries have the relative rounding error of the exponents
        tol = max(1e-11, 100 * EPS * row_norms(kernel.X, squared=True).max())
        return rpcholesky(kernel, rank, tol=tol, rng=rng).left
    landmarks = uniform(kernel.n, rank, rng=rng)
    C = kernel.columns(landmarks)
    values, vectors = np.linalg.eigh(C[landmarks])
    significant = values > rank * EPS * values[-1]
    return C @ (vectors[:, significant] / np.sqrt(values[significant]))


def shifted_inverse(F: np.ndarray, ridge: np.ndarray) -> Linear:
    r"""Return the inverse of P by the inversion lemma, for the ridge of each row.

    With the diagonal :math:`S = \mu I + \lambda D^{-2}` and :math:`W = S^{-1/2} F`,

    .. math::
        P^{-1} = S^{-1/2} \bigl( I - W (I + W^\top W)^{-1} W^\top \bigr) S^{-1/2} .

    mu is at least 1000 n rounding units: no jitter is needed for dependent columns.
    """
    explained = np.einsum("ik,ik->", F, F)
    missed = max(1 - explained / len(F), 1000 * EPS * explained)
    scale = ((ridge + missed) ** -0.5)[:, None]
    W = F * scale
    inner = scipy.linalg.cho_factor(np.eye(W.shape[1]) + W.T @ W)

    def solve(R: np.ndarray) -> np.ndarray:
        V = R * scale
        return (V - W @ scipy.linalg.cho_solve(inner, W.T @ V)) * scale

    return solve


@np.errstate(over="ignore", invalid="ignore")  # a step that overflows is the last
def solve_by_rows(
    multiply: Linear,
    Y: np.ndarray,
    precondition: Linear,
    *,
    tol: float,
    max_iter: int,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Solve A X = Y for a positive definite A; return X, Y - A X, and the iterations.

    A column is finished when its newly computed residual is at most `tol` times the
    norm of Y, both with rows multiplied by `weights`. Otherwise the iteration restarts
    from that residual, as long as a restart halves it.
    """
    rows = 1.0 if weights is None else weights[:, None]

    def sizes(R: np.ndarray) -> np.ndarray:
        return np.stack([norms(rows * R), norms(R)])

    X, R, steps = np.zeros_like(Y), Y.copy(), 0
    size = sizes(Y)
    target, enough = tol * size
    aim = 0.99 * target
    going = np.flatnonzero(size[0] > target)
    while going.size and steps < max_iter:
        descent = Descent(multiply, R[:, going], precondition)
        _descend(descent, rows, aim[going], max_iter - steps)
        trial = X[:, going] + descent.X
        left = Y[:, going] - multiply(trial)
        before, after = size[:, going], sizes(left)
        better = (after < before).any(axis=0)
        if steps == 0:  # the steps reduce x^T A x / 2 - x^T y, which was 0
            better |= np.einsum("ik,ik->k", trial, Y[:, going] + left) > 0
        X[:, going[better]], R[:, going[better]] = trial[:, better], left[:, better]
        halved = after < before / 2
        halved[1] &= after[1] > enough[going]
        going = going[(after[0] > target[going]) & halved.any(axis=0)]
        steps, size = steps + descent.steps, sizes(R)
        aim = np.maximum(target / 2, RESTART * size[0])
    return X, R, steps


def _descend(
    descent: Descent, rows: np.ndarray | float, target: np.ndarray, most: int
) -> None:
    """Iterate until the recursive residual is below the target or no longer true."""
    Y = descent.R
    while descent.going.size and descent.steps < most:
        going = descent.going
        keep = descent.step() & (norms(rows * descent.R) > target[going])
        if descent.steps % CHECK == 0:
            gap = norms(Y[:, going] - descent.multiply(descent.X[:, going]) - descent.R)
            keep &= gap < norms(descent.R) / 2
        descent.keep(keep)
