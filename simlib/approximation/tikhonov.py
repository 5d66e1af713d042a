r"""The Tikhonov core: a symmetric least-squares fit to a block that is paid for.

.. math::
    \tilde K = C U C^\top, \qquad U = F A F^\top, \qquad
    F = (B^\top B + \lambda I)^{-1} B^\top

Equation :eq:`eq:tikhonov` of the book, with C = K[:, S1], B = K[S2, S1], A = K[S2, S2]
and S1 in S2: the entries that SMS-Nyström reads, without its shift.
"""

from __future__ import annotations

from itertools import combinations
from numbers import Real
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from simlib.approximation.budget import block_calls, cross_calls
from simlib.landmarks import draw, sample_size
from simlib.lowrank import LowRank
from simlib.similarity import Similarity

__all__ = ["tikhonov", "tikhonov_calls"]

N_FOLDS = 5
RIDGES = np.concatenate([[0.0], np.logspace(-10, 0, 21)])  # times sigma_max^2 of B


def tikhonov(
    sim: Similarity,
    n_landmarks: int | None = None,
    *,
    oversampling: float = 2,
    ridge: Literal["cv"] | float = "cv",
    landmarks: Literal["uniform"] | ArrayLike = "uniform",
    rng: int | np.random.Generator | None = None,
) -> LowRank:
    r"""Approximate any similarity matrix from the entries that SMS-Nyström reads.

    The method to start with: it needs neither positive semidefiniteness nor symmetry,
    and has no parameter that must be known beforehand.

    Parameters
    ----------
    sim : Similarity
        The n x n matrix, symmetric or not.
    n_landmarks : int
        Number s1 of landmarks, 1 to n.
    oversampling : float, default=2
        z: the core is fitted to the block of min(z s1, n) items around the landmarks.
    ridge : "cv" or float, default="cv"
        The regularisation lambda. "cv" chooses among zero and 21 values from 1e-10 to 1
        times the squared norm of B, by five folds over the items of the block that are
        no landmarks: fit without a fold, compare with the entries between its items.
        With fewer than ten such items every two of them are a fold, with fewer than two
        lambda is zero. Costs no similarity call.
    landmarks : "uniform" or array of int, default="uniform"
        How to choose the landmarks, or their indices.
    rng : int, Generator or None
        Source of randomness.

    Returns
    -------
    LowRank
        Of rank at most s1, symmetric if `sim` is.

    Raises
    ------
    ValueError
        More landmarks than items, or a negative ridge.

    Notes
    -----
    Calls, with s2 = min(z s1, n): ``n s1 - s1 (s1 - 1) / 2`` for the columns plus
    ``(s2 - s1)(s2 - s1 + 1) / 2`` for the rest of the block. Flops: O(s2^2 s1), five
    times for the cross-validation.

    Source: ours. With lambda = 0 the core is that of Wang, Zhang and Zhang (2016,
    section 4), stated there for positive semidefinite matrices. For an asymmetric
    matrix F acts on the columns, and the same built from K[S1, S2] on the rows.
    """
    if isinstance(landmarks, str):
        if landmarks != "uniform":
            raise ValueError(
                f'landmarks must be "uniform" or indices; got {landmarks!r}.'
            )
        landmarks = None
    if ridge != "cv" and not (isinstance(ridge, Real) and ridge >= 0):
        raise ValueError(f'ridge must be "cv" or a number >= 0; got {ridge!r}.')
    S1, S2 = draw(sim.n, n_landmarks, oversampling, landmarks=landmarks, rng=rng)
    C = sim.columns(S1)
    R = None if sim.symmetric else sim.rows(S1).T
    A = sim.block(S2, S2).astype(float)
    if ridge == "cv":
        ridge = _cross_validated(A, S1.size, sim.symmetric, sim.dtype)
    core = _Fit(A, S1.size, sim.symmetric, sim.dtype).core(ridge)
    rest = block_calls(S2.size - S1.size, symmetric=sim.symmetric)
    return LowRank(
        C,
        core.astype(sim.dtype),
        R,
        landmarks=S1,
        row_landmarks=None if sim.symmetric else S1,
        calls=cross_calls(sim.n, S1.size, symmetric=sim.symmetric) + rest,
        method="tikhonov",
    )


def tikhonov_calls(
    n: int, n_landmarks: int, oversampling: float = 2, **_: object
) -> int:
    """Return the calls of `tikhonov`."""
    rest = sample_size(n, n_landmarks, oversampling) - n_landmarks
    return cross_calls(n, n_landmarks) + block_calls(rest)


class _Factor(NamedTuple):
    """Singular value decomposition of a tall block, cut at rounding error."""

    P: np.ndarray
    sigma: np.ndarray
    Q: np.ndarray

    @classmethod
    def of(cls, B: np.ndarray, dtype: np.dtype) -> _Factor:
        P, sigma, Qt = np.linalg.svd(B, full_matrices=False)
        keep = sigma > sigma[:1] * max(B.shape) * np.finfo(dtype).eps
        return cls(P[:, keep], sigma[keep], Qt[keep].T)

    def filter(self, ridge: float) -> np.ndarray:
        """Return sigma / (sigma^2 + ridge), so that F = Q diag(filter) P.T."""
        return self.sigma / (self.sigma**2 + ridge)


class _Fit:
    """The fits for every ridge, to the block A = K[S2, S2] that begins with S1."""

    def __init__(self, A: np.ndarray, s1: int, symmetric: bool, dtype: np.dtype):
        self.left = _Factor.of(A[:, :s1], dtype)
        self.right = self.left if symmetric else _Factor.of(A[:s1].T, dtype)
        self.middle = self.left.P.T @ A @ self.right.P
        self.symmetric = symmetric

    def core(self, ridge: float) -> np.ndarray:
        """Return U."""
        U = self.predict(self.left.Q, self.right.Q, ridge)
        return (U + U.T) / 2 if self.symmetric else U

    def predict(self, left: np.ndarray, right: np.ndarray, ridge: float) -> np.ndarray:
        """Return C U R^T, given left = C Q and right = R Q for their own Q."""
        middle = self.left.filter(ridge)[:, None] * self.middle
        return (left @ (middle * self.right.filter(ridge))) @ right.T


def _cross_validated(A: np.ndarray, s1: int, symmetric: bool, dtype: np.dtype) -> float:
    """Return the ridge with the smallest error on entries left out of the fit."""
    held_out = np.arange(s1, len(A))
    if held_out.size < 2:
        return 0.0
    if held_out.size < 2 * N_FOLDS:
        folds = [np.array(pair) for pair in combinations(held_out, 2)]
    else:
        folds = np.array_split(held_out, N_FOLDS)
    largest = (
        np.linalg.norm(A[:, :s1], 2)
        if symmetric
        else max(np.linalg.norm(A[:, :s1], 2), np.linalg.norm(A[:s1], 2))
    )
    ridges = RIDGES * largest**2
    scores = np.zeros(ridges.size)
    for fold in folds:
        kept = np.setdiff1d(np.arange(len(A)), fold)
        fit = _Fit(A[np.ix_(kept, kept)], s1, symmetric, dtype)
        left, right = A[fold, :s1] @ fit.left.Q, A[:s1, fold].T @ fit.right.Q
        for k, ridge in enumerate(ridges):
            error = A[np.ix_(fold, fold)] - fit.predict(left, right, ridge)
            np.fill_diagonal(error, 0.0)
            scores[k] += (error**2).sum()
    return float(ridges[np.argmin(scores)])
