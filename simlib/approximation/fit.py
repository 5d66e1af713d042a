r"""Ridge fits of a core to a block of a matrix, and their cross-validation.

.. math::
    U = F A F^\top, \qquad F = (B^\top B + \lambda I)^{-1} B^\top, \qquad
    B = K_{S_2,S_1}, \; A = K_{S_2,S_2}

Equation :eq:`eq:tikhonov` of the book, with S1 in S2: what `tikhonov` fits to K and
`anchored` to what a cheap similarity leaves of it. Cores are computed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from simlib import _scale
from simlib.approximation.plan import Reading

__all__ = ["COMMON", "RIDGES", "Problem", "in_units", "smallest_inverted"]

COMMON = 200  # binary orders of magnitude whose fourth powers are numbers
N_FOLDS, LANDMARK_FOLDS = 5, 10
RIDGES = np.concatenate([[0.0], np.logspace(-10, 0, 21)])  # times sigma_max^2 of B
TOO_LARGE = 2.0  # times the norm that K appears to have
STACKED = 2**22  # entries of the matrices that are held for several ridges


def smallest_inverted(dtype: np.dtype) -> float:
    """Return the least share t of the norm to invert: that costs eps / t, none t."""
    return float(np.sqrt(np.finfo(dtype).eps))


def in_units(ridge: float, exponent: int) -> float:
    """Return a ridge in units of 2^exponent K, infinity or 0 beyond the numbers."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(float(ridge), -2 * exponent))


class _Factor(NamedTuple):
    """Singular value decomposition of a tall block, cut where inverses drown."""

    P: np.ndarray
    sigma: np.ndarray
    Q: np.ndarray

    @classmethod
    def of(cls, B: np.ndarray, dtype: np.dtype) -> _Factor:
        P, sigma, Qt = np.linalg.svd(B, full_matrices=False)
        keep = sigma > sigma[:1] * smallest_inverted(dtype)
        return cls(P[:, keep], sigma[keep], Qt[keep].T)

    def filter(self, ridges: ArrayLike) -> np.ndarray:
        """Return sigma / (sigma^2 + ridge), so that F = Q diag(filter) P.T."""
        return self.sigma / (self.sigma**2 + np.asarray(ridges)[..., None])


class _Fit:
    """The fits for any ridges to the block A = K[S2, S2], which begins with S1."""

    def __init__(self, A: np.ndarray, s1: int, symmetric: bool, dtype: np.dtype):
        self.left = _Factor.of(A[:, :s1], dtype)
        self.right = self.left if symmetric else _Factor.of(A[:s1].T, dtype)
        self.middle = self.left.P.T @ A @ self.right.P
        self.symmetric = symmetric

    def core(self, ridges: ArrayLike) -> np.ndarray:
        """Return U, for many ridges a stack."""
        U = self.predict(self.left.Q, self.right.Q, ridges)
        return (U + np.swapaxes(U, -1, -2)) / 2 if self.symmetric else U

    def predict(
        self, left: np.ndarray, right: np.ndarray, ridges: ArrayLike
    ) -> np.ndarray:
        """Return C U R^T, given left = C Q and right = R Q for their own Q."""
        return left @ self.filtered(ridges) @ right.T

    def filtered(self, ridges: ArrayLike) -> np.ndarray:
        """Return U in the bases Q, for many ridges a stack."""
        middle = self.left.filter(ridges)[..., :, None] * self.middle
        return middle * self.right.filter(ridges)[..., None, :]


@dataclass(frozen=True, eq=False)
class Problem:
    """What was evaluated: A = K[S2, S2], which begins with S1, and whole columns C.

    R is the transpose of the rows S1, or None where K is symmetric. All are divided by
    2^exponent, which is 1 but where squares may be no numbers.
    """

    A: np.ndarray
    C: np.ndarray
    R: np.ndarray | None
    S1: np.ndarray
    exponent: int = 0

    @classmethod
    def of(cls, read: Reading, S1: np.ndarray, *, symmetric: bool) -> Problem:
        """Return what was read, of landmarks S1 with which the block begins."""
        R = read.C if read.R is None else read.R
        problem = cls(read.A.astype(float), read.C, None if symmetric else R, S1)
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
        return Problem(A, C, R, self.S1, self.exponent + exponent)

    def factors(self, ridge: float) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return C, U and R of K ~ C U R^T, in the units of the matrix."""
        U = np.ldexp(self.fit.core(ridge), -self.exponent).astype(self.C.dtype)
        whole = self.divided(-self.exponent)
        return whole.C, U, whole.R

    def without(self, tau: float) -> Problem:
        """Return the same for K - tau I."""

        def less(part: np.ndarray, rows: np.ndarray) -> np.ndarray:
            part = part.copy()
            part[rows, np.arange(rows.size)] -= tau
            return part

        A, C = less(self.A, np.arange(len(self.A))), less(self.C, self.S1)
        return replace(
            self, A=A, C=C, R=None if self.R is None else less(self.R, self.S1)
        )

    @cached_property
    def fit(self) -> _Fit:
        """The fits to the whole block."""
        return self._fit(np.arange(len(self.A)), self.S1.size)

    def _fit(self, kept: np.ndarray, s1: int) -> _Fit:
        """Return the fits to a part of the block that begins with s1 landmarks."""
        return _Fit(self.A[np.ix_(kept, kept)], s1, self.R is None, self.C.dtype)

    def _grams(self, items: np.ndarray | slice) -> list[np.ndarray]:
        """Return C^T C of some items, and R^T R where there is R."""
        sides = [self.C] if self.R is None else [self.C, self.R]
        parts = (side[items].astype(float, copy=False) for side in sides)
        return [part.T @ part for part in parts]

    def ridges(self) -> np.ndarray:
        """Return the ridges to choose from, without those whose answer is too large.

        P K P is never larger than K, whose norm the columns tell roughly. Where all are
        too large the ridge is infinite.
        """
        fit, grams = self.fit, self._grams(slice(None))
        sides = fit.left, fit.right
        ridges = RIDGES * max(side.sigma.max(initial=0) for side in sides) ** 2
        square = len(self.C) / self.S1.size * np.mean([np.trace(G) for G in grams])
        left, right = (
            side.Q.T @ gram @ side.Q
            for side, gram in zip(sides, (grams[0], grams[-1]), strict=True)
        )
        squares = np.concatenate(
            [
                np.einsum("kab,kab->k", left @ middle, middle @ right)
                for middle in map(fit.filtered, _few(ridges, self.S1.size**2))
            ]
        )
        good = squares <= TOO_LARGE**2 * square
        return ridges[good] if good.any() else np.array([np.inf])

    def cross_validate(self, ridge: Literal["cv"] | float) -> tuple[float, np.ndarray]:
        """Return the best ridge, and for each fold its squared error on the rest."""
        if len(self.A) - self.S1.size < 2:
            return 0.0 if ridge == "cv" else float(ridge), np.zeros(1)
        ridges = self.ridges() if ridge == "cv" else np.array([float(ridge)])
        errors = self.held_out_errors(ridges)
        best = int(np.argmin(errors.sum(axis=0)))
        return float(ridges[best]), errors[:, best]

    def held_out_errors(self, ridges: np.ndarray) -> np.ndarray:
        """Return the squared error of each fold and ridge on the rest of the block.

        That is K[S2 - S1, S2 - S1] off the diagonal: entries with an item of the fold.
        """
        A, s1 = self.A, self.S1.size
        held_out = np.arange(s1, len(A))
        if held_out.size < 2 * N_FOLDS:
            folds = [np.array(pair) for pair in combinations(held_out, 2)]
        else:
            folds = np.array_split(held_out, N_FOLDS)
        errors = np.zeros((len(folds), ridges.size))
        for k, fold in enumerate(folds):
            fit = self._fit(np.setdiff1d(np.arange(len(A)), fold), s1)
            blocks = [(fold, held_out), (held_out, fold)]
            for rows, columns in blocks[: 1 if self.R is None else 2]:
                left, right = A[rows, :s1] @ fit.left.Q, A[:s1, columns].T @ fit.right.Q
                size = max(s1, rows.size) * max(s1, columns.size)
                errors[k] += np.concatenate(
                    [
                        _squared_errors(A, rows, columns, fit.predict(left, right, few))
                        for few in _few(ridges, size)
                    ]
                )
        return errors

    def landmark_errors(self, ridges: np.ndarray) -> np.ndarray:
        """Return the squared error of each fold of landmarks and ridge in its columns.

        The fit does without the fold: with Y = U B^T ``|C_fold - C_kept Y|^2``.
        """
        A, s1 = self.A, self.S1.size
        grams = self._grams(np.setdiff1d(np.arange(len(self.C)), self.S1))
        folds = np.array_split(np.arange(s1), min(LANDMARK_FOLDS, s1))
        errors = np.zeros((len(folds), ridges.size))
        for k, fold in enumerate(folds):
            inner = np.setdiff1d(np.arange(s1), fold)
            fit = self._fit(np.setdiff1d(np.arange(len(A)), fold), inner.size)
            for few in _few(np.arange(ridges.size), s1**2):
                U = fit.core(ridges[few])
                weights = [U @ A[np.ix_(inner, fold)]]
                if self.R is not None:
                    weights.append(np.swapaxes(U, -1, -2) @ A[np.ix_(fold, inner)].T)
                for gram, Y in zip(grams, weights, strict=True):
                    both = np.zeros((few.size, s1, fold.size))
                    both[:, inner] = -Y
                    both[:, fold, np.arange(fold.size)] = 1
                    errors[k, few] += np.einsum("kab,kab->k", gram @ both, both)
        return np.maximum(errors, 0)  # against rounding


def _few(ridges: np.ndarray, size: int) -> list[np.ndarray]:
    """Cut the ridges so that a stack of matrices of that size takes little memory."""
    parts = np.clip(ridges.size * size // STACKED, 1, ridges.size)
    return np.array_split(ridges, parts)


def _squared_errors(
    A: np.ndarray, rows: np.ndarray, columns: np.ndarray, predictions: np.ndarray
) -> np.ndarray:
    """Return the squared error of each prediction of A, off its diagonal."""
    errors = A[np.ix_(rows, columns)] - predictions
    errors *= rows[:, None] != columns
    return np.einsum("kij,kij->k", errors, errors)
