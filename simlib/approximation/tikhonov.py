r"""The Tikhonov core: a symmetric least-squares fit to an evaluated block.

.. math::
    \tilde K = C U C^\top, \qquad U = F A F^\top, \qquad
    F = (B^\top B + \lambda I)^{-1} B^\top

Equation :eq:`eq:tikhonov` of the book, with C = K[:, S1], B = K[S2, S1], A = K[S2, S2]
and S1 in S2. The evaluated entries or the diagonal can be kept exactly, as a sparse
residual, :eq:`eq:overlay` and :eq:`eq:nugget`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse

from simlib._checks import one_collection, one_of, warn, word_or_number
from simlib._typing import Indices
from simlib.approximation.fit import Problem, in_units
from simlib.approximation.overlay import corrections
from simlib.approximation.plan import Number, Plan, Sides, drawn, nominal
from simlib.landmarks import adaptive, pivoted_qr
from simlib.lowrank import LowRank
from simlib.similarity.known import Extent
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

NUGGETS = np.linspace(0, 1, 6)  # times the mean diagonal of A
SELECTIONS = {"pivoted_qr": pivoted_qr, "adaptive": adaptive}


def tikhonov(
    sim: Source,
    n_landmarks: Number = None,
    *,
    oversampling: float = 2,
    ridge: Literal["cv"] | float = "cv",
    landmarks: Literal["uniform", "pivoted_qr", "adaptive"]
    | Indices
    | tuple[Indices, Indices] = "uniform",
    nugget: bool = False,
    overlay: bool = False,
    rng: int | np.random.Generator | None = None,
) -> LowRank:
    r"""Approximate any similarity matrix by some of its columns and a fitted core.

    The method to start with: it needs neither positive semidefiniteness nor symmetry,
    and only the number of landmarks has to be chosen. It reads what SMS-Nyström reads.

    Parameters
    ----------
    sim : Similarity
        The n x n matrix, symmetric or not, or the m x n matrix of two collections.
    n_landmarks : int or pair
        Number s1 of landmarks, 1 to n; not needed if `landmarks` are indices. For two
        collections the number of rows and of columns, or a pair of numbers.
    oversampling : float, default=2
        z: the core is fitted to a block of min(z s1, n) items that contains the
        landmarks; for two collections so on each side.
    ridge : "cv" or float, default="cv"
        The regularisation lambda. "cv" chooses among zero and 21 values from 1e-10 to 1
        times the squared spectral norm of B, by five folds over the items of the block
        that are no landmarks. Values that make the norm of the answer more than twice
        the norm of K, as estimated from the columns, are left out, unless they predict
        the columns and the entries left out of a fit. If the block has fewer than two
        further items, as with one landmark or without oversampling, it is zero. Costs
        no call. With any ridge, singular values of B below the root of the machine
        epsilon, relative to the largest, are left out.
    landmarks : "uniform", "pivoted_qr", "adaptive" or array of int, default="uniform"
        How to choose the landmarks, or their indices; for two collections a pair of
        arrays. "pivoted_qr" and "adaptive" pick landmarks in the block, at no further
        call: see `simlib.landmarks.pivoted_qr` and `simlib.landmarks.adaptive`.
    nugget : bool, default=False
        Keep the true diagonal, and fit the core to K - tau I. Among six values of tau
        from 0 to the mean diagonal of the block, the smallest is taken whose
        cross-validated error is within a standard error of the best. For items that
        are far more similar to themselves than to others; not for two collections.
    overlay : bool, default=False
        Keep the evaluated entries exactly, by a sparse residual.
    rng : int, Generator or None

    Returns
    -------
    LowRank
        Of rank at most s1, symmetric if `sim` is. A sparse residual is added by
        `nugget`, with n entries, and by `overlay`, with about 2 n s1 + s2^2 entries.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        An option out of range; any error of a request to `sim`.

    Warns
    -----
    UserWarning
        With every ridge of "cv" the answer would be too large, so that its core is
        zero.

    See Also
    --------
    anchored : uses a cheap similarity too.
    nystrom : for a positive semidefinite matrix the answer is positive semidefinite.

    Notes
    -----
    Calls, with s2 = min(z s1, n): ``n s1 - s1 (s1 - 1) / 2`` for the columns plus
    ``(s2 - s1)(s2 - s1 + 1) / 2`` for the rest of the block, plus ``n - s2`` for the
    rest of the diagonal with `nugget`. Flops: O(s2^2 s1 + n s1^2); the cross-validation
    takes the first term some 25 times, `nugget` all of it six times.

    For an asymmetric matrix F acts on the columns, and an F built from K[S1, S2] acts
    on the rows. For two collections with r and c landmarks the calls are
    ``m c + n r - r c + (min(z r, m) - r) (min(z c, n) - c)``. Source: ours; with
    lambda = 0 the core is that of Wang, Zhang and Zhang (2016, section 4).

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
    """
    sim, rng = check_similarity(sim), np.random.default_rng(rng)
    if nugget:
        one_collection(sim, "have a diagonal to keep", " Leave `nugget` out.")
    if ridge != np.inf:
        word_or_number(ridge, ["cv"], "ridge", 0)
    given, select = None, None
    if isinstance(landmarks, str):
        one_of(landmarks, ("uniform", *SELECTIONS), "landmarks, if no indices,")
        select = SELECTIONS.get(landmarks)
    else:
        given = landmarks
    plan = tikhonov_plan(
        sim.extent,
        n_landmarks,
        oversampling,
        nugget=nugget,
        draw=partial(drawn, landmarks=given, rng=rng),
    )
    if select:
        plan = _selected(sim, plan, select, rng)
    S1, S2, read = plan.landmarks, plan.block, plan.read(sim)
    K = Problem.of(read, S1, sim)
    chosen = ridge if ridge == "cv" else in_units(ridge, K.exponent)
    if nugget:
        K, chosen = _choose_nugget(K, chosen)
    elif chosen == "cv":
        chosen, _ = K.cross_validate("cv")
    if ridge == "cv" and chosen == np.inf:
        warn(
            "With every ridge the answer would be far larger than the columns tell "
            "that the matrix is: its core is zero. Take more landmarks, or name "
            "`ridge`."
        )
    C, U, R = K.factors(chosen)
    answer = partial(plan.answer, sim, "tikhonov", C, U, R)
    plain = answer()
    residual = corrections(sim, plain, S2) if overlay else None
    if nugget:
        missed = read.diagonal - plain.diagonal()
        if overlay:
            missed[S2.rows] = 0
        kept = scipy.sparse.diags_array(missed).tocsr()
        residual = kept if residual is None else residual + kept
    return answer(residual=residual)


def tikhonov_plan(
    extent: Extent,
    n_landmarks: Number,
    oversampling: float = 2,
    *,
    nugget: bool = False,
    draw: Any = nominal,
    **_: object,
) -> Plan:
    """Return what `tikhonov` reads."""
    S1, S2 = draw(extent, n_landmarks, oversampling)
    return Plan(extent, S1, block=S2, diagonal=nugget, oversampling=oversampling)


def _selected(
    sim: SimilarityMatrix,
    plan: Plan,
    select: Callable[..., np.ndarray],
    rng: np.random.Generator,
) -> Plan:
    """Read the block of a plan, and return the plan with landmarks selected in it."""
    S2, blank = plan.block, sim.blank()
    block = Plan(sim.extent, block=S2)

    def most(smaller: Plan) -> int:
        inside = Plan(sim.extent, block=smaller.block)
        return smaller.price(blank) - inside.price(blank) + inside.price(sim)

    if block.price(sim):
        plan.check(sim, most)
    A, (r, c) = block.read(sim).A, (side.size for side in plan.landmarks)
    if isinstance(sim.extent, tuple):
        choose = partial(select, principal=False, rng=rng)
        rows, columns = choose(A.T, r), choose(A, c)
    else:
        rows = columns = select(A, c, rng=rng)
    S1 = Sides(S2.rows[rows], S2.columns[columns])
    sides = zip(S1, S2, strict=True)  # the block begins with the landmarks
    begun = Sides(*(np.append(s, t[~np.isin(t, s)]) for s, t in sides))
    return replace(plan, landmarks=S1, block=begun)


def _choose_nugget(K: Problem, ridge: Literal["cv"] | float) -> tuple[Problem, float]:
    """Return the problem for the smallest tau that is good enough, and its ridge."""
    shifts = np.unique(NUGGETS * np.diag(K.A).mean())
    shifts = shifts[np.argsort(np.abs(shifts))]
    problems = [K.without(tau) for tau in shifts]
    ridges, folds = zip(*(one.cross_validate(ridge) for one in problems), strict=True)
    errors = np.array(folds)
    # Good enough is within a standard error of the best.
    excess = errors - errors[np.argmin(errors.sum(axis=1))]
    good = excess.sum(axis=1) <= excess.std(axis=1) * np.sqrt(excess.shape[1])
    k = int(np.argmax(good))
    return problems[k], ridges[k]
