r"""Ridge fits of a core to a block of a matrix, and their cross-validation.

.. math::
    U = F A F^\top, \qquad F = (B^\top B + \lambda I)^{-1} B^\top, \qquad
    B = K_{S_2,S_1}, \; A = K_{S_2,S_2}

Equation :eq:`eq:tikhonov` of the book, with S1 in S2. `tikhonov` fits a core to K,
`anchored` to the difference of K and a cheap similarity. If K is not symmetric, the
right F is built from K[S1, S2]^T; for two collections S1 and S2 name rows on the left
of the comma and columns on the right. Cores are computed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, starmap
from math import prod
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from simlib import _scale
from simlib.approximation.plan import Reading, Sides
from simlib.lowrank.tall import svd
from simlib.similarity.known import others
from simlib.similarity.views import SimilarityMatrix

COMMON = 200  # fourth powers of numbers up to 2^COMMON do not overflow
N_FOLDS, LANDMARK_FOLDS = 5, 10
RIDGES = np.concatenate([[0.0], np.logspace(-10, 0, 21)])  # times sigma_max^2 of B
TOO_LARGE = 2.0  # times the norm of K, as estimated from the columns
ACCURATE = 0.05  # of the squares left out: below it an answer of any size is right
STACKED = 2**22  # entries of the matrices that are held for several ridges at a time


def smallest_inverted(dtype: np.dtype) -> float:
    """Return the smallest singular value to invert, as a share of the largest.

    Inverting a share t has an error of eps / t, leaving it out one of t: the root of
    eps balances them.
    """
    return float(np.sqrt(np.finfo(dtype).eps))


def in_units(ridge: float, exponent: int) -> float:
    """Return the ridge for K / 2^exponent; infinity or 0 where it is out of range."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(float(ridge), -2 * exponent))


class _Factor(NamedTuple):
    """Singular value decomposition of a tall block, without its smallest values."""

    P: np.ndarray
    sigma: np.ndarray
    Q: np.ndarray

    @classmethod
    def of(cls, B: np.ndarray, dtype: np.dtype) -> _Factor:
        P, sigma, Qt = svd(B)
        keep = sigma > sigma[:1] * smallest_inverted(dtype)
        return cls(P[:, keep], sigma[keep], Qt[keep].T)

    def filter(self, ridges: ArrayLike) -> np.ndarray:
        """Return sigma / (sigma^2 + ridge), so that F = Q diag(filter) P.T."""
        return self.sigma / (self.sigma**2 + np.asarray(ridges)[..., None])


class _Fit:
    """The fits for any ridges to the block A = K[S2, S2].

    Its first ``s1[0]`` rows and its first ``s1[1]`` columns are those of the landmarks.
    """

    def __init__(
        self, A: np.ndarray, s1: tuple[int, int], symmetric: bool, dtype: np.dtype
    ):
        self.left = _Factor.of(A[:, : s1[1]], dtype)
        self.right = self.left if symmetric else _Factor.of(A[: s1[0]].T, dtype)
        self.middle = self.left.P.T @ A @ self.right.P
        self.symmetric = symmetric

    def core(self, ridges: ArrayLike) -> np.ndarray:
        """Return U, for several ridges a stack of matrices."""
        U = self.predict(self.left.Q, self.right.Q, ridges)
        return (U + np.swapaxes(U, -1, -2)) / 2 if self.symmetric else U

    def predict(
        self, left: np.ndarray, right: np.ndarray, ridges: ArrayLike
    ) -> np.ndarray:
        """Return C U R^T, given ``C @ self.left.Q`` and ``R @ self.right.Q``."""
        return left @ self.filtered(ridges) @ right.T

    def filtered(self, ridges: ArrayLike) -> np.ndarray:
        """Return U in the bases Q, for several ridges a stack of matrices."""
        middle = self.left.filter(ridges)[..., :, None] * self.middle
        return middle * self.right.filter(ridges)[..., None, :]


@dataclass(frozen=True, eq=False)
class Problem:
    """The evaluated entries: A = K[S2, S2], which begins with S1, and whole columns C.

    R is the transpose of the rows S1, or None if K is symmetric. All are divided by
    2^exponent; the exponent is 0 unless squares might overflow or underflow.
    """

    A: np.ndarray
    C: np.ndarray
    R: np.ndarray | None
    S1: Sides
    has_diagonal: bool  # rows and columns are of one collection
    exponent: int = 0

    @classmethod
    def of(cls, read: Reading, S1: Sides, sim: SimilarityMatrix) -> Problem:
        """Return the problem of a reading whose block begins with the landmarks S1."""
        R = None if sim.symmetric else read.C if read.R is None else read.R
        one = not isinstance(sim.extent, tuple)
        problem = cls(read.A.astype(float), read.C, R, S1, one)
        exponent = _scale.exponent(problem.largest)
        return problem.divided(exponent if abs(exponent) > COMMON else 0)

    @property
    def largest(self) -> float:
        """The largest magnitude of an entry."""
        parts = [part for part in (self.A, self.C, self.R) if part is not None]
        return float(max(max(part.max(), -part.min()) for part in parts))

    def divided(self, exponent: int) -> Problem:
        """Return the same in units of 2^exponent."""
        if exponent == 0:
            return self
        A, C = np.ldexp(self.A, -exponent), np.ldexp(self.C, -exponent)
        R = None if self.R is None else np.ldexp(self.R, -exponent)
        return replace(self, A=A, C=C, R=R, exponent=self.exponent + exponent)

    def factors(self, ridge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return C, U and R of K ~ C U R^T, in the units of the matrix."""
        U = np.ldexp(self.fit.core(ridge), -self.exponent).astype(self.C.dtype)
        whole = self.divided(-self.exponent)
        return whole.C, U, whole.R

    def without(self, tau: float) -> Problem:
        """Return the problem for K - tau I."""

        def less(part: np.ndarray, rows: np.ndarray) -> np.ndarray:
            part = part.copy()
            part[rows, np.arange(rows.size)] -= tau
            return part

        A, C = less(self.A, np.arange(len(self.A))), less(self.C, self.S1.columns)
        R = None if self.R is None else less(self.R, self.S1.rows)
        return replace(self, A=A, C=C, R=R)

    @property
    def s1(self) -> tuple[int, int]:
        """How many landmarks there are among the rows and the columns."""
        return self.S1.rows.size, self.S1.columns.size

    @property
    def unseen(self) -> int:
        """How many items of the block are no landmarks."""
        return int(np.subtract(self.A.shape, self.s1).min())

    @cached_property
    def fit(self) -> _Fit:
        """The fits to the whole block."""
        return self._without(Sides.same(np.zeros(0, int)), self.s1)

    def _without(self, fold: Sides, s1: tuple[int, int]) -> _Fit:
        """Return the fits to the rest of the block, which begins with s1 landmarks."""
        kept = map(others, self.A.shape, fold)
        return _Fit(self.A[np.ix_(*kept)], s1, self.R is None, self.C.dtype)

    def _grams(self, but: Sides | None = None) -> list[np.ndarray]:
        """Return C^T C, and R^T R if there is R, without the rows and columns `but`."""
        sides = [self.C] if self.R is None else [self.C, self.R]
        if but is not None:
            pairs = zip(sides, but, strict=False)
            sides = [side[others(len(side), items)] for side, items in pairs]
        parts = (side.astype(float, copy=False) for side in sides)
        return [part.T @ part for part in parts]

    def ridges(self) -> np.ndarray:
        """Return the ridges to choose from, without those whose answer is too large.

        An answer is compared with the norm of K, which is estimated from the columns
        (a projection P K P is never larger than K). The estimate is too small where
        few rows have most of the norm and no landmark is among them, so that what
        predicts the entries left out, if these are more than a few, and the columns is
        kept. If every answer is too large, the only ridge is infinite.
        """
        fit, grams = self.fit, self._grams()
        sides = fit.left, fit.right
        ridges = RIDGES * max(side.sigma.max(initial=0) for side in sides) ** 2
        lengths = (len(self.C) if self.R is None else len(self.R)), len(self.C)
        shares = zip(lengths, self.s1[::-1], grams, strict=False)  # of each side in K
        square = np.mean([n / s * np.trace(G) for n, s, G in shares])
        left, right = (
            side.Q.T @ gram @ side.Q
            for side, gram in zip(sides, (grams[0], grams[-1]), strict=True)
        )
        squares = np.concatenate(
            [
                np.einsum("kab,kab->k", left @ middle, middle @ right)
                for middle in map(fit.filtered, _few(ridges, prod(self.s1)))
            ]
        )
        good = squares <= TOO_LARGE**2 * square
        if not good.all():
            tried = np.append(ridges, np.inf)
            held_out, columns = self.held_out_errors(tried), self._column_errors(tried)
            errors = np.array([held_out.sum(axis=0), columns])
            accurate = (errors[:, :-1] < ACCURATE * errors[:, -1:]).all(axis=0)
            good |= accurate & (self.unseen >= N_FOLDS)
        return ridges[good] if good.any() else np.array([np.inf])

    def _column_errors(self, ridges: np.ndarray) -> np.ndarray:
        """Return the squared errors of C, and of R, in the answer for each ridge."""
        (r, c), grams = self.s1, self._grams()
        W, errors = self.A[:r, :c], np.zeros(ridges.size)
        for few in _few(np.arange(ridges.size), prod(self.s1)):
            U = self.fit.core(ridges[few])
            weights = U @ W, np.swapaxes(U, -1, -2) @ W.T
            for gram, Y in zip(grams, weights, strict=False):
                missed = np.eye(len(gram)) - Y
                errors[few] += np.einsum("kab,kab->k", gram @ missed, missed)
        return errors

    def cross_validate(self, ridge: Literal["cv"] | float) -> tuple[float, np.ndarray]:
        """Return the best ridge, and its squared error on each fold."""
        unseen = self.unseen
        if unseen < (2 if self.has_diagonal else 1):
            return 0.0 if ridge == "cv" else float(ridge), np.zeros(1)
        ridges = self.ridges() if ridge == "cv" else np.array([float(ridge)])
        errors = self.held_out_errors(ridges)
        best = int(np.argmin(errors.sum(axis=0)))
        return float(ridges[best]), errors[:, best]

    def held_out_errors(self, ridges: np.ndarray) -> np.ndarray:
        """Return the squared errors of fits without a fold, for each fold and ridge.

        They are errors on the entries of K[S2 - S1, S2 - S1] off the diagonal that have
        an item in the fold.
        """
        A, (r, c) = self.A, self.s1
        held_out, folds = Sides(*map(np.arange, self.s1, A.shape)), self._folds()
        errors = np.zeros((len(folds), ridges.size))
        for k, fold in enumerate(folds):
            fit = self._without(fold, self.s1)
            blocks = [(fold.rows, held_out.columns), (held_out.rows, fold.columns)]
            for rows, columns in blocks[: 1 if self.R is None else 2]:
                left, right = A[rows, :c] @ fit.left.Q, A[:r, columns].T @ fit.right.Q
                size = max(c, rows.size) * max(r, columns.size)
                errors[k] += np.concatenate(
                    [
                        self._squares(rows, columns, fit.predict(left, right, few))
                        for few in _few(ridges, size)
                    ]
                )
        return errors

    def _folds(self) -> list[Sides]:
        """Return folds of the rows and columns of the block that are no landmarks."""
        rows, columns = map(np.arange, self.s1, self.A.shape)
        if self.has_diagonal and rows.size < 2 * N_FOLDS:
            pairs = combinations(rows, 2)  # each fold has a pair off the diagonal
            return [Sides.same(np.array(pair)) for pair in pairs]
        number = min(N_FOLDS, max(rows.size, columns.size))
        if number == 0:  # the landmarks of one side are all that the other is fitted to
            return []
        sides = (np.array_split(side, number) for side in (rows, columns))
        return [Sides(*fold) for fold in zip(*sides, strict=True)]

    def _squares(
        self, rows: np.ndarray, columns: np.ndarray, predictions: np.ndarray
    ) -> np.ndarray:
        """Return the squared error of each prediction of a block, off the diagonal."""
        errors = self.A[np.ix_(rows, columns)] - predictions
        if self.has_diagonal:
            errors *= rows[:, None] != columns
        return np.einsum("kij,kij->k", errors, errors)

    def landmark_errors(self, ridges: np.ndarray) -> np.ndarray:
        """Return the squared errors of fits without a fold of landmarks.

        For each fold and ridge the error is that of the columns of the fold,
        ``|C_fold - C_kept Y|^2`` with Y = U B^T.
        """
        A, grams = self.A, self._grams(but=self.S1)
        number = min(LANDMARK_FOLDS, max(self.s1))
        every = Sides(*map(np.arange, self.s1))
        parts = (np.array_split(side, number) for side in every)
        errors = np.zeros((number, ridges.size))
        for k, fold in enumerate(starmap(Sides, zip(*parts, strict=True))):
            inner = Sides(*map(np.setdiff1d, every, fold))
            fit = self._without(fold, (inner.rows.size, inner.columns.size))
            for few in _few(np.arange(ridges.size), prod(self.s1)):
                U = fit.core(ridges[few])
                weights = [(inner.columns, U @ A[np.ix_(inner.rows, fold.columns)])]
                if self.R is not None:
                    V = np.swapaxes(U, -1, -2) @ A[np.ix_(fold.rows, inner.columns)].T
                    weights.append((inner.rows, V))
                sides = zip(grams, weights, (fold.columns, fold.rows), strict=False)
                for gram, (kept, Y), left_out in sides:
                    both = np.zeros((few.size, len(gram), left_out.size))
                    both[:, kept] = -Y
                    both[:, left_out, np.arange(left_out.size)] = 1
                    errors[k, few] += np.einsum("kab,kab->k", gram @ both, both)
        return np.maximum(errors, 0)  # against rounding


def _few(ridges: np.ndarray, size: int) -> list[np.ndarray]:
    """Cut the ridges so that a stack of matrices of that size takes little memory."""
    parts = np.clip(ridges.size * size // STACKED, 1, ridges.size)
    return np.array_split(ridges, parts)
