r"""The CUR family: columns, rows and a joining matrix.

.. math:: \tilde K = C U R, \qquad C = K_{:,S_1}, \; R = K_{S_2,:}

Equations :eq:`eq:skeleton` (``U = K[S2,S1]^+``), :eq:`eq:sicur` (the same, S2 larger
than S1: SiCUR) and :eq:`eq:stacur` (``U = (n/s2) (C^T C)^+ K[S2,S1]^T``, StaCUR) of the
book.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from simlib import _scale
from simlib._checks import symmetric
from simlib._typing import Indices, Seed
from simlib.approximation.fit import smallest_inverted
from simlib.approximation.nystrom import pinv
from simlib.approximation.plan import Number, Plan, drawn, nominal
from simlib.lowrank import LowRank
from simlib.similarity.known import Extent
from simlib.similarity.source import Source
from simlib.similarity.views import check_similarity


def skeleton(
    sim: Source,
    n_landmarks: Number = None,
    *,
    landmarks: Indices | tuple[Indices, Indices] | None = None,
    rng: Seed = None,
) -> LowRank:
    """Approximate a matrix by s of its columns and s independently drawn rows.

    One small singular value of the block ruins the result; `sicur` repairs this. The
    parameters and errors that are not listed here are those of `sicur`.

    Parameters
    ----------
    n_landmarks : int or pair
        Number s of columns, and of rows; for two collections also a pair, the numbers
        of rows and of columns.

    Returns
    -------
    LowRank
        Not symmetric, of rank at most s.

    Notes
    -----
    Calls: ``n u - u (u - 1) / 2`` with u the number of items in either draw; asymmetric
    ``2 n s - s^2``. Flops: O(s^3). Source: Goreinov et al. (1997); Ray et al. (2022),
    section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, skeleton
    >>> x, y = np.random.default_rng(0).standard_normal((2, 200, 3))
    >>> skeleton(Similarity.from_matrix(x @ y.T), 3, rng=0)
    LowRank(skeleton: n=200, rank=3, calls=1191)
    """
    sim = check_similarity(sim)
    choose = partial(drawn, landmarks=landmarks, rng=rng)
    plan = skeleton_plan(sim.extent, n_landmarks, draw=choose)
    read = plan.read(sim)
    core = pinv(read.C[plan.rows], symmetric=False)
    return plan.answer(sim, "skeleton", read.C, core, read.R)


def sicur(
    sim: Source,
    n_landmarks: Number = None,
    *,
    oversampling: float = 2,
    nested: bool = True,
    symmetrize: bool = False,
    landmarks: Indices | tuple[Indices, Indices] | None = None,
    rng: int | np.random.Generator | None = None,
) -> LowRank:
    """Approximate a matrix by columns and more rows ("Simple CUR").

    Parameters
    ----------
    sim : Similarity
        The n x n matrix, symmetric or not, or the m x n matrix of two collections.
    n_landmarks : int or pair
        Number s1 of columns, 1 to n. The paper counts the rows, s2. For two collections
        s1 rows and columns, before the oversampling, or a pair of numbers for them.
    oversampling : float, default=2
        z: min(z s1, n) rows are used, or min(z s1, m).
    nested : bool, default=True
        Draw rows that contain the columns, so that for a symmetric matrix only rows are
        evaluated. False draws rows and columns independently, as is always done for two
        collections.
    symmetrize : bool, default=False
        Return the mean of the result and its transpose, which for a symmetric matrix is
        never worse.
    landmarks : array of int, optional
        The columns, in place of a uniform draw; for two collections a pair, the first
        rows and the columns.
    rng : int, Generator or None

    Returns
    -------
    LowRank
        Of rank at most s1. Symmetrised it has rank at most 2 s1, and its factor one
        column for each item in either draw.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        More landmarks than items, or `symmetrize` with an asymmetric similarity; any
        error of a request to `sim`.

    Notes
    -----
    Calls, with s2 = min(z s1, n): ``n s2 - s2 (s2 - 1) / 2``; not nested, the same with
    the number of items in either draw for s2; asymmetric, or for two collections,
    ``m s1 + n s2 - s1 s2``. Flops: O(s1^2 s2). Source: Ray et al. (2022), section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, sicur
    >>> x = np.random.default_rng(0).standard_normal((500, 3))
    >>> sicur(Similarity.from_matrix(np.tanh(x @ x.T / 5)), 40, rng=0)
    LowRank(sicur: n=500, rank=40, calls=36840)
    """
    sim = check_similarity(sim)
    if symmetrize:
        symmetric(sim, "symmetrize=True")
    plan = sicur_plan(
        sim.extent,
        n_landmarks,
        oversampling,
        nested=nested,
        draw=partial(drawn, landmarks=landmarks, rng=rng),
    )
    S1, S2, read = plan.columns, plan.rows, plan.read(sim)
    assert S2 is not None
    core = pinv(read.C[S2], symmetric=False)
    if not symmetrize:
        return plan.answer(sim, "sicur", read.C, core, read.R)
    # The mean of C U R and its transpose, on the columns of the items in either draw.
    items = np.concatenate([S2, S1[~np.isin(S1, S2)]])
    place = np.argsort(items)[np.searchsorted(np.sort(items), S1)]
    both = np.zeros((items.size, items.size))
    both[place, : S2.size] = core
    return LowRank(
        sim.columns(items),
        ((both + both.T) / 2).astype(sim.dtype),
        landmarks=items,
        calls=plan.calls(sim),
        method="sicur",
    )


def stacur(
    sim: Source,
    n_landmarks: Number = None,
    *,
    same_rows: bool = True,
    oversampling: float = 1,
    landmarks: Indices | tuple[Indices, Indices] | None = None,
    rng: Seed = None,
) -> LowRank:
    r"""Approximate a matrix by a sampled projection onto its columns ("Stable CUR").

    The projection :math:`C (C^\top C)^{+} C^\top K` of K on the span of C reads all of
    K; StaCUR estimates :math:`C^\top K` from s2 of its n terms, scaled by n / s2. The
    parameters and errors that are not listed here are those of `sicur`.

    Parameters
    ----------
    n_landmarks : int
        Number s of columns, 1 to n.
    same_rows : bool, default=True
        Sample the rows of the landmarks, StaCUR(s): no further call, but a bias,
        because their diagonal entries count n / s times. False draws the rows
        independently, StaCUR(d).
    oversampling : float, default=1
        Number of rows for each column. With `same_rows` the first s rows are those of
        the landmarks.

    Returns
    -------
    LowRank
        Not symmetric, of rank at most s.

    Notes
    -----
    Calls: ``n s2 - s2 (s2 - 1) / 2`` with the same rows; otherwise the same with the
    number of items in either draw for s2; asymmetric ``n (s + s2) - s s2``. Flops:
    O(n s^2).
    Source: Drineas et al. (2006); Ray et al. (2022), section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, stacur
    >>> x = np.random.default_rng(0).standard_normal((500, 3))
    >>> stacur(Similarity.from_matrix(np.exp(x @ x.T / 10)), 40, rng=0)
    LowRank(stacur: n=500, rank=40, calls=19220)
    """
    sim = check_similarity(sim)
    choose = partial(drawn, landmarks=landmarks, rng=rng)
    plan = sicur_plan(
        sim.extent, n_landmarks, oversampling, nested=same_rows, draw=choose
    )
    S2, read = plan.rows, plan.read(sim)
    assert S2 is not None
    C, unit = _scale.unit(read.C.astype(float))  # or the norms of columns may overflow
    Q, T = np.linalg.qr(C)
    rcond = smallest_inverted(read.C.dtype)
    # (C^T C)^+ K[S2,S1]^T is C^+ at the columns S2, whose condition is not squared.
    core = (sim.shape[0] / S2.size) * pinv(T, symmetric=False, rcond=rcond) @ Q[S2].T
    return plan.answer(sim, "stacur", read.C, np.ldexp(core, -unit), read.R)


def sicur_plan(
    extent: Extent,
    n_landmarks: Number,
    oversampling: float = 2,
    *,
    nested: bool = True,
    draw: Any = nominal,
    **_: object,
) -> Plan:
    """Return what `sicur` reads."""
    S1, S2 = draw(extent, n_landmarks, oversampling, nested=nested)
    return Plan(extent, S1, rows=S2.rows, oversampling=oversampling)


def stacur_plan(
    extent: Extent,
    n_landmarks: Number,
    *,
    same_rows: bool = True,
    oversampling: float = 1,
    **options: Any,
) -> Plan:
    """Return what `stacur` reads."""
    return sicur_plan(extent, n_landmarks, oversampling, nested=same_rows, **options)


skeleton_plan = partial(sicur_plan, oversampling=1, nested=False)
