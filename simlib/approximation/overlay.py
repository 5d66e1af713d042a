r"""A sparse correction of an approximation by the evaluated entries.

.. math::
    \tilde K + E, \qquad
    E_{ij} = K_{ij} - \tilde K_{ij} \text{ where } K_{ij} \text{ was evaluated, else } 0

Equation :eq:`eq:overlay` of the book.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from simlib._checks import a_pair, indices
from simlib.approximation.error import check_approximation
from simlib.approximation.plan import Sides
from simlib.lowrank import LowRank
from simlib.similarity.known import grid
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity


def overlay(
    sim: Source,
    approximation: LowRank,
    sample: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
) -> scipy.sparse.csr_array:
    """Return the residual that corrects an approximation at the evaluated entries.

    The squared error loses the terms of these entries and keeps the others, so it never
    grows. ``tikhonov(..., overlay=True)`` does the same. Flops: O(n l^2).

    Parameters
    ----------
    sim : Similarity
        The matrix. The columns and rows of the landmarks and the block of `sample` are
        read, at no cost if a method has read them before.
    approximation : LowRank
        An approximation that has landmarks and no residual.
    sample : array of int, optional
        Items whose principal block was read too: S2 of `sms_nystrom` and `tikhonov`.
        For two collections a pair, rows and columns.

    Returns
    -------
    csr_array of shape (m, n)
        To pass as ``residual`` of a `LowRank` with the same factors. About 2 n l
        entries for l landmarks, plus those of the block.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        The shapes differ, the approximation has a residual or has no landmarks, or it
        is symmetric and `sim` is not; any error of a request to `sim`.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import LowRank, Similarity, relative_error, sicur
    >>> from simlib.approximation.overlay import overlay
    >>> x = np.random.default_rng(0).standard_normal((300, 5))
    >>> K = np.tanh(x @ x.T)
    >>> sim = Similarity.from_matrix(K)
    >>> answer = sicur(sim, 30, symmetrize=True, rng=0)
    >>> better = LowRank(answer.left, answer.core, residual=overlay(sim, answer))
    >>> relative_error(K, better) < relative_error(K, answer)
    True
    """
    sim = check_similarity(sim)
    sides: Any = ((), ())
    if sample is not None:
        two = isinstance(sim.extent, tuple)
        sides = a_pair(sample, "sample") if two else (sample, sample)
    return corrections(sim, approximation, Sides(*sides))


def corrections(
    sim: SimilarityMatrix, approximation: LowRank, sample: Sides
) -> scipy.sparse.csr_array:
    """Return the residual of `overlay`, for a sample of rows and columns."""
    check_approximation(approximation, sim.shape)
    columns = approximation.landmarks
    rows = columns if approximation.symmetric else approximation.row_landmarks
    if columns is None or rows is None or approximation.residual is not None:
        raise ValueError(
            "overlay corrects an answer that was made from landmarks, and has no "
            "residual yet."
        )
    if approximation.symmetric and not (sim.symmetric or isinstance(sim.extent, tuple)):
        raise ValueError(
            "The approximation is symmetric, and the similarity is not: the residual "
            "would be right in neither order. Pass `sim.symmetrized()`."
        )
    if sim.symmetric:
        rows = columns = np.union1d(rows, columns)
    m, n = sim.shape
    left, core, right = approximation.left, approximation.core, approximation.right
    i, j = (
        indices(items, n, "Items of the sample")
        for items, n in zip(sample, sim.shape, strict=True)
    )
    places = [
        (np.arange(m), columns),
        (rows, np.setdiff1d(np.arange(n), columns)),
        (np.setdiff1d(i, rows), np.setdiff1d(j, columns)),
    ]
    parts = []
    for i, j in places:
        difference = sim.block(i, j) - left[i] @ core @ right[j].T
        parts.append((difference.ravel(), *grid(i, j)))
    values, i, j = (np.concatenate(part) for part in zip(*parts, strict=True))
    residual = scipy.sparse.csr_array((values, (i, j)), shape=sim.shape)
    if approximation.symmetric:
        residual = (residual + residual.T) * sim.dtype.type(0.5)
    return residual
