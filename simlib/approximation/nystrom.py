r"""The Nyström approximation.

.. math:: \tilde K = C W^{+} C^\top, \qquad C = K_{:,S}, \; W = K_{S,S}

Equation :eq:`eq:nystrom` of the book. For an asymmetric similarity the right factor
holds rows, :math:`\tilde K = C W^{+} K_{S,:}`. The error for an indefinite matrix
depends on which eigenvalues the pseudo-inverse counts as zero; the cut-off can be
chosen on a block of further items.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.linalg

from simlib import _scale
from simlib._checks import TAKES_BOTH, one_collection, word_or_number
from simlib._typing import Indices, Seed
from simlib.approximation.fit import (
    ACCURATE,
    N_FOLDS,
    TOO_LARGE,
    Problem,
    smallest_inverted,
)
from simlib.approximation.plan import Plan, drawn, nominal
from simlib.lowrank import LowRank
from simlib.lowrank.tall import svd
from simlib.similarity.source import Source
from simlib.similarity.views import check_similarity

CUTOFFS = np.logspace(-5, 0, 21)[:-1]  # times the largest eigenvalue of W
OVERSAMPLING = 2  # items in the block that chooses the cut-off, for each landmark


def nystrom(
    sim: Source,
    n_landmarks: int | None = None,
    *,
    rcond: Literal["cv"] | float | None = None,
    landmarks: Indices | None = None,
    rng: Seed = None,
) -> LowRank:
    """Approximate a similarity matrix from some of its columns.

    The method of choice for a positive semidefinite matrix. For an indefinite matrix W
    may have eigenvalues close to zero, whose inverses make the error arbitrarily large:
    cut them off with ``rcond="cv"``, or see `tikhonov`.

    Parameters
    ----------
    sim : Similarity
        The n x n matrix.
    n_landmarks : int
        Number s of landmarks, 1 to n.
    rcond : "cv" or float, optional
        Eigenvalues of W (singular values if asymmetric) below `rcond` times the largest
        in magnitude count as zero. None means the square root of the machine epsilon.
        "cv" chooses among None and 20 values from 1e-5 to 0.56, by the similarities of
        min(s, n - s) further items among each other; these are the entries that
        `tikhonov` reads. Values that make the norm of the answer more than twice the
        norm of K, as estimated from the columns, are left out, unless they predict
        these entries.
    landmarks : array of int, optional
        Indices to use in place of a uniform draw.
    rng : int, Generator or None

    Returns
    -------
    LowRank
        Of rank at most s, symmetric if `sim` is; ``left`` shares the memory of the
        columns.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        More landmarks than items, an invalid cut-off, or any error of a request to
        `sim`.

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : positive semidefinite kernels only; on an
        indefinite one it silently returns C abs(W)^-1 C^T.

    Notes
    -----
    Calls: ``n s - s (s - 1) / 2``; asymmetric ``2 n s - s^2``. With ``rcond="cv"`` and
    t = min(s, n - s), ``t (t + 1) / 2`` more; asymmetric ``t^2`` more. Flops: O(s^3);
    the choice of `rcond` takes some 20 times as many, and O(n s^2).

    Source: Williams and Seeger (2001); Ray et al. (2022), section 2.1, which writes an
    inverse; a repeated item needs the pseudo-inverse. The choice of the cut-off is
    ours.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, nystrom, relative_error
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> K = X @ X.T
    >>> approximation = nystrom(Similarity.from_matrix(K), 5, rng=0)
    >>> relative_error(K, approximation) < 1e-12
    True
    """
    sim = check_similarity(sim)
    n = one_collection(sim, "have a Nyström approximation", TAKES_BOTH)
    if rcond is not None:
        word_or_number(rcond, ["cv"], "rcond", 0, 1)
    choose = partial(drawn, landmarks=landmarks, rng=rng)
    plan = nystrom_plan(n, n_landmarks, rcond=rcond, draw=choose)
    read = plan.read(sim)
    if rcond == "cv":
        rcond = _cross_validated(Problem.of(read, plan.landmarks, sim))
    core = pinv(read.C[plan.columns], symmetric=sim.symmetric, rcond=rcond)
    return plan.answer(sim, "nystrom", read.C, core, read.R)


def nystrom_plan(
    n: int,
    n_landmarks: int | None,
    *,
    rcond: Literal["cv"] | float | None = None,
    draw: Any = nominal,
    **_: object,
) -> Plan:
    """Return what `nystrom` reads."""
    if rcond != "cv":
        return Plan(n, draw(n, n_landmarks)[0])
    S, block = draw(n, n_landmarks, OVERSAMPLING)
    return Plan(n, S, block=block, oversampling=OVERSAMPLING)


def _cross_validated(problem: Problem) -> float:
    """Return the cut-off that fits the block best, off its diagonal."""
    A, C, s = problem.A, problem.C.astype(float, copy=False), problem.s1[1]
    R = C if problem.R is None else problem.R.astype(float, copy=False)
    least = smallest_inverted(problem.C.dtype)
    cutoffs = np.append(least, CUTOFFS[least < CUTOFFS])
    rest = A[s:, s:]
    if len(rest) < 2:
        return float(cutoffs[0])
    U, sizes, Vt = svd(A[:s, :s])
    kept = sizes > cutoffs[:, None] * sizes.max()
    weights = np.divide(1, sizes, where=kept, out=np.zeros(kept.shape))
    columns, rows = Vt @ C.T, U.T @ R.T
    grams = (columns @ columns.T) * (rows @ rows.T)
    squares = np.einsum("ki,ij,kj->k", weights, grams, weights)
    norm = len(C) / s * (np.square(C).sum() + np.square(R).sum()) / 2
    left, right = A[s:, :s] @ Vt.T, A[:s, s:].T @ U

    def error(weights: np.ndarray) -> float:
        off = rest - (left * weights) @ right.T
        np.fill_diagonal(off, 0)
        return np.square(off).sum()

    errors = np.array([error(some) for some in weights])
    accurate = (errors < ACCURATE * error(np.zeros(s))) & (len(rest) >= N_FOLDS)
    errors[(squares > TOO_LARGE**2 * norm) & ~accurate] = np.inf
    return float(cutoffs[np.argmin(errors) if np.isfinite(errors).any() else -1])


def pinv(W: np.ndarray, *, symmetric: bool, rcond: float | None = None) -> np.ndarray:
    """Return the pseudo-inverse in float64; by default `rcond` depends on W.dtype."""
    if rcond is None:
        rcond = smallest_inverted(W.dtype)
    W, exponent = _scale.unit(W.astype(float))  # or sums of entries may overflow
    if symmetric:  # as scipy.linalg.pinvh, by a faster eigensolver
        values, vectors = scipy.linalg.eigh(W, driver="evd")
        size = np.abs(values)
        kept = size > rcond * size.max()
        inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        inverse = (inverse + inverse.T) / 2
    else:
        U, sigma, Vt = svd(W)
        kept = sigma > rcond * sigma.max(initial=0)
        inverse = (Vt[kept].T / sigma[kept]) @ U[:, kept].T
    return np.ldexp(inverse, -exponent)
