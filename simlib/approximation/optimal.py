r"""The best approximation of a given rank, which reads the whole matrix.

.. math:: \tilde K = \sum_{k \le r} \sigma_k u_k v_k^\top

Equation :eq:`eq:optimal` of the book, the Eckart-Young theorem: the bound against which
every sublinear method is measured.
"""

from __future__ import annotations

import numpy as np

from simlib._checks import whole_number
from simlib.approximation.plan import Plan, Sides
from simlib.lowrank import LowRank
from simlib.lowrank.lowrank import Closed
from simlib.lowrank.tall import largest_first, svd
from simlib.similarity.source import Source
from simlib.similarity.views import check_similarity

WHOLE = "its factors are singular vectors of all of K; tikhonov takes new items in."


def optimal(sim: Source, rank: int) -> LowRank:
    """Return the best approximation of rank `rank` in the Frobenius norm.

    Calls: ``n (n + 1) / 2``; asymmetric ``m n``. Flops: O(m n min(m, n)), by
    `numpy.linalg.eigh` if K is symmetric, else `numpy.linalg.svd`.

    Parameters
    ----------
    sim : Similarity
        The matrix, of one collection or of two; every entry is read.
    rank : int
        1 to min(m, n).

    Returns
    -------
    LowRank
        With orthonormal factors and a diagonal core, symmetric if `sim` is.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        The rank is out of range; any error of a request to `sim`.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, optimal, relative_error
    >>> K = np.diag([12.0, 4.0, 3.0])
    >>> round(relative_error(K, optimal(Similarity.from_matrix(K), 1)), 3)  # 5 / 13
    0.385
    """
    sim = check_similarity(sim)
    rank = whole_number(rank, "rank", 1, min(sim.shape))
    plan = Plan(sim.extent, block=Sides(*map(np.arange, sim.shape)))
    K = plan.read(sim).A.astype(float)
    if sim.symmetric:
        values, vectors = largest_first(*np.linalg.eigh(K), rank)
        factors = [vectors, np.diag(values)]
    else:
        left, sigma, right = svd(K)
        factors = [left[:, :rank], np.diag(sigma[:rank]), right[:rank].T]
    parts = [factor.astype(sim.dtype) for factor in factors]
    return Closed(*parts, calls=plan.calls(sim), method="optimal", reason=WHOLE)
