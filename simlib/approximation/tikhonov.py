r"""The Tikhonov core: a symmetric least-squares fit to a block that is paid for.

.. math::
    \tilde K = C U C^\top, \qquad U = F A F^\top, \qquad
    F = (B^\top B + \lambda I)^{-1} B^\top

Equation :eq:`eq:tikhonov` of the book, with C = K[:, S1], B = K[S2, S1], A = K[S2, S2]
and S1 in S2: the entries that SMS-Nyström reads, without its shift. What is known
besides, the evaluated entries or the diagonal, can be kept as a sparse residual,
:eq:`eq:overlay` and :eq:`eq:nugget`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from numbers import Real
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from simlib._typing import Indices
from simlib.approximation.budget import block_calls, cross_calls
from simlib.approximation.overlay import overlay as laid_over
from simlib.landmarks import adaptive, draw, pivoted_qr, sample_size
from simlib.lowrank import LowRank
from simlib.similarity import Similarity

__all__ = ["tikhonov", "tikhonov_calls"]

N_FOLDS, LANDMARK_FOLDS = 5, 10
RIDGES = np.concatenate([[0.0], np.logspace(-10, 0, 21)])  # times sigma_max^2 of B
NUGGETS = np.linspace(0, 1, 6)  # times the mean diagonal of A
SELECTIONS = {"pivoted_qr": pivoted_qr, "adaptive": adaptive}


def tikhonov(
    sim: Similarity,
    n_landmarks: int | None = None,
    *,
    oversampling: float = 2,
    ridge: Literal["cv"] | float = "cv",
    landmarks: Literal["uniform", "pivoted_qr", "adaptive"] | Indices = "uniform",
    nugget: bool = False,
    overlay: bool = False,
    rng: int | np.random.Generator | None = None,
) -> LowRank:
    r"""Approximate any similarity matrix from the entries that SMS-Nyström reads.

    The method to start with: it needs neither positive semidefiniteness nor symmetry,
    and has, besides the number of landmarks, no parameter to be tuned.

    Parameters
    ----------
    sim : Similarity
        The n x n matrix, symmetric or not.
    n_landmarks : int
        Number s1 of landmarks, 1 to n; may be left out where `landmarks` are indices.
    oversampling : float, default=2
        z: the core is fitted to the block of min(z s1, n) items around the landmarks.
    ridge : "cv" or float, default="cv"
        The regularisation lambda. "cv" chooses among zero and 21 values from 1e-10 to 1
        times the squared spectral norm of B, by five folds over the items of the block
        that are no landmarks: fit without a fold, compare with the entries between its
        items and all of them. With fewer than ten such items every two of them are a
        fold, with fewer than two lambda is zero. Values that make the answer more than
        twice as large as K appears from the columns are left out. Costs no similarity
        call.
    landmarks : "uniform", "pivoted_qr", "adaptive" or array of int, default="uniform"
        How to choose the landmarks, or their indices. The second and third draw the
        block first and pick the landmarks in it, at no further call: see
        `simlib.landmarks.pivoted_qr` and `simlib.landmarks.adaptive`.
    nugget : bool, default=False
        Keep the true diagonal, and fit the core to K - tau I. For matrices whose items
        resemble themselves far more than anything else. The shift tau is chosen by
        cross-validation among six values from zero to the mean diagonal of the block:
        the smallest that is within one standard error of the best.
    overlay : bool, default=False
        Return the evaluated entries as they are, not as the core fits them.
    rng : int, Generator or None
        Source of randomness.

    Returns
    -------
    LowRank
        Of rank at most s1, symmetric if `sim` is; with `nugget` or `overlay` plus a
        sparse residual of n or about 2 n s1 + s2^2 entries.

    Raises
    ------
    ValueError
        More landmarks than items, a negative ridge, or no such choice of landmarks.
    BudgetExceeded, SimilarityError
        As for any request to `sim`.

    See Also
    --------
    anchored : with a cheap similarity beside.
    nystrom : where the matrix is positive semidefinite and the budget is large.
    sklearn.kernel_approximation.Nystroem : for positive semidefinite kernels.

    Notes
    -----
    Calls, with s2 = min(z s1, n): ``n s1 - s1 (s1 - 1) / 2`` for the columns plus
    ``(s2 - s1)(s2 - s1 + 1) / 2`` for the rest of the block, plus ``n - s2`` for the
    rest of the diagonal with `nugget`. Flops: O(s2^2 s1 + n s1^2), the first
    term some 25 times for the cross-validation, which tries 22 values on five folds,
    or on all pairs of up to nine held-out items; all six times with `nugget`.

    Source: ours. With lambda = 0 the core is that of Wang, Zhang and Zhang (2016,
    section 4), proposed there for positive semidefinite matrices. For an asymmetric
    matrix F acts on the columns, and the same built from K[S1, S2] on the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, relative_error, tikhonov
    >>> x = np.random.default_rng(0).standard_normal((500, 3))
    >>> K = np.tanh(x @ x.T / 5)  # indefinite
    >>> answer = tikhonov(Similarity.from_matrix(K), 40, rng=0)
    >>> answer
    LowRank(tikhonov: n=500, rank=40, calls=20040)
    >>> round(relative_error(K, answer), 2)
    0.02
    >>> Z, signs = answer.embedding()  # features for scikit-learn
    >>> Z.shape
    (500, 40)
    """
    if ridge != "cv" and not (isinstance(ridge, Real) and ridge >= 0):
        raise ValueError(f'ridge must be "cv" or a number >= 0; got {ridge!r}.')
    S1, S2 = _draw(sim, n_landmarks, oversampling, landmarks, rng)
    problem = Problem(
        A=sim.block(S2, S2).astype(float),
        C=sim.columns(S1),
        R=None if sim.symmetric else sim.rows(S1).T,
        S1=S1,
    )
    calls = cross_calls(sim.n, S1.size, symmetric=sim.symmetric)
    calls += block_calls(S2.size - S1.size, symmetric=sim.symmetric)
    if nugget:
        calls += sim.n - S2.size
        diagonal = sim.diagonal()
        problem, ridge = _without_nugget(problem, ridge)
    elif ridge == "cv":
        ridge, _ = problem.cross_validate("cv")
    C, R = problem.C, problem.R
    core = problem.fit().core(ridge).astype(sim.dtype)
    factors = LowRank(C, core, R, landmarks=S1, row_landmarks=S1)
    residual = laid_over(sim, factors, S2) if overlay else None
    if nugget:
        missed = diagonal - factors.diagonal()
        if overlay:
            missed[S2] = 0
        kept = scipy.sparse.diags_array(missed).tocsr()
        residual = kept if residual is None else residual + kept
    return LowRank(
        C,
        core,
        R,
        residual=residual,
        landmarks=S1,
        row_landmarks=None if sim.symmetric else S1,
        calls=calls,
        method="tikhonov",
    )


def tikhonov_calls(
    n: int,
    n_landmarks: int,
    oversampling: float = 2,
    *,
    nugget: bool = False,
    **_: object,
) -> int:
    """Return the calls of `tikhonov`."""
    sample = sample_size(n, n_landmarks, oversampling)
    rest = n - sample if nugget else 0
    return cross_calls(n, n_landmarks) + block_calls(sample - n_landmarks) + rest


def _draw(
    sim: Similarity,
    n_landmarks: int | None,
    oversampling: float,
    landmarks: str | Indices,
    rng: int | np.random.Generator | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return S1 and S2, which begins with S1."""
    rng = np.random.default_rng(rng)
    if not isinstance(landmarks, str):
        return draw(sim.n, n_landmarks, oversampling, landmarks=landmarks, rng=rng)
    if landmarks != "uniform" and landmarks not in SELECTIONS:
        raise ValueError(
            'landmarks must be "uniform", "pivoted_qr", "adaptive" or indices; got '
            f"{landmarks!r}."
        )
    S1, S2 = draw(sim.n, n_landmarks, oversampling, rng=rng)
    if landmarks in SELECTIONS:
        block = sim.block(S2, S2)
        S1 = S2[SELECTIONS[landmarks](block, S1.size, rng=rng)]
        S2 = np.concatenate([S1, S2[~np.isin(S2, S1)]])
    return S1, S2


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
        middle = self.left.filter(ridges)[..., :, None] * self.middle
        return left @ (middle * self.right.filter(ridges)[..., None, :]) @ right.T


@dataclass(frozen=True, eq=False)
class Problem:
    """What was evaluated: A = K[S2, S2], which begins with S1, and whole columns C.

    Where K is not symmetric R is the transpose of its rows S1, otherwise None.
    """

    A: np.ndarray
    C: np.ndarray
    R: np.ndarray | None
    S1: np.ndarray

    def without(self, tau: float) -> Problem:
        """Return the same for K - tau I."""

        def less(part: np.ndarray, rows: np.ndarray) -> np.ndarray:
            part = part.copy()
            part[rows, np.arange(rows.size)] -= tau
            return part

        C = less(self.C, self.S1)
        R = None if self.R is None else less(self.R, self.S1)
        return Problem(less(self.A, np.arange(len(self.A))), C, R, self.S1)

    def fit(self, kept: np.ndarray | None = None) -> _Fit:
        """Return the fits to the block, or to the part of it that is kept."""
        A = self.A if kept is None else self.A[np.ix_(kept, kept)]
        return _Fit(A, self.S1.size, self.R is None, self.C.dtype)

    def ridges(self) -> np.ndarray:
        """Return the ridges to choose from, without those whose answer is too large.

        P K P is never larger than K, whose norm the columns tell roughly. Entries that
        happen to be left out may not show what a small ridge does to other items; an
        answer of more than twice that norm does. Where all are too large the ridge is
        infinite, which makes the core zero.
        """
        s1, left = self.S1.size, self.C.astype(float)
        right = left if self.R is None else self.R.astype(float)
        sides = [self.A[:, :s1]] if self.R is None else [self.A[:, :s1], self.A[:s1]]
        ridges = RIDGES * max(np.linalg.norm(side, 2) for side in sides) ** 2
        gram_left, gram_right = left.T @ left, right.T @ right
        square = len(self.C) / s1 * (np.trace(gram_left) + np.trace(gram_right)) / 2
        fit = self.fit()
        squares = np.concatenate(
            [
                np.einsum("kab,kab->k", gram_left @ U, U @ gram_right)
                for U in map(fit.core, _few(ridges, s1**2))
            ]
        )
        good = squares <= 4 * square
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

        The rest is what the fit has not seen of K[S2 - S1, S2 - S1], off the diagonal:
        entries between items of the fold, and between these and the others.
        """
        A, s1 = self.A, self.S1.size
        held_out = np.arange(s1, len(A))
        if held_out.size < 2 * N_FOLDS:
            folds = [np.array(pair) for pair in combinations(held_out, 2)]
        else:
            folds = np.array_split(held_out, N_FOLDS)
        errors = np.zeros((len(folds), ridges.size))
        for k, fold in enumerate(folds):
            fit = self.fit(np.setdiff1d(np.arange(len(A)), fold))
            blocks = [(fold, held_out)]
            if self.R is not None:
                blocks.append((held_out, fold))
            for rows, columns in blocks:
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

        The fit does without the fold and predicts what its columns, and rows, hold for
        the items that are no landmarks: far more entries than are held out in the
        block. With Y = U B^T the error is ``|C_fold - C_kept Y|^2``, a quadratic form
        in the Gram matrix of C.
        """
        A, s1 = self.A, self.S1.size
        others = np.setdiff1d(np.arange(len(self.C)), self.S1)
        sides = [self.C] if self.R is None else [self.C, self.R]
        grams = [part.T @ part for part in (S[others].astype(float) for S in sides)]
        folds = np.array_split(np.arange(s1), min(LANDMARK_FOLDS, s1))
        errors = np.zeros((len(folds), ridges.size))
        for k, fold in enumerate(folds):
            kept = np.setdiff1d(np.arange(len(A)), fold)
            inner = np.setdiff1d(np.arange(s1), fold)
            fit = _Fit(A[np.ix_(kept, kept)], inner.size, self.R is None, self.C.dtype)
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
    return np.array_split(ridges, np.clip(ridges.size * size // 2**22, 1, ridges.size))


def _squared_errors(
    A: np.ndarray, rows: np.ndarray, columns: np.ndarray, predictions: np.ndarray
) -> np.ndarray:
    """Return the squared error of each prediction of A, off its diagonal."""
    errors = A[np.ix_(rows, columns)] - predictions
    errors *= rows[:, None] != columns
    return np.einsum("kij,kij->k", errors, errors)


def _without_nugget(
    problem: Problem, ridge: Literal["cv"] | float
) -> tuple[Problem, float]:
    """Return the problem less the smallest shift that is good enough, and its ridge.

    Good enough is within a standard error of the best.
    """
    shifts = np.unique(NUGGETS * np.diag(problem.A).mean())
    shifts = shifts[np.argsort(np.abs(shifts))]
    problems = [problem.without(tau) for tau in shifts]
    fits = [shifted.cross_validate(ridge) for shifted in problems]
    errors = np.array([error for _, error in fits])
    excess = errors - errors[np.argmin(errors.sum(axis=1))]
    good = excess.sum(axis=1) <= excess.std(axis=1) * np.sqrt(excess.shape[1])
    k = int(np.argmax(good))
    return problems[k], fits[k][0]
