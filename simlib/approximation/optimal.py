r"""The best approximation of a given rank, which reads the whole matrix.

.. math:: \tilde K = \sum_{k \le r} \sigma_k u_k v_k^\top

Equation :eq:`eq:optimal` of the book, the Eckart-Young theorem: the bound against which
every sublinear method is measured.
"""

from __future__ import annotations

import numpy as np

from simlib.approximation.budget import block_calls
from simlib.lowrank import LowRank
from simlib.similarity import Similarity

__all__ = ["optimal"]


def optimal(sim: Similarity, rank: int) -> LowRank:
    """Return the best approximation of rank `rank` in the Frobenius norm.

    Parameters
    ----------
    sim : Similarity
        The n x n matrix; every entry is read.
    rank : int
        1 to n.

    Returns
    -------
    LowRank
        With orthonormal factors and a diagonal core, symmetric if `sim` is.

    Raises
    ------
    ValueError
        The rank does not lie between 1 and n.
    BudgetExceeded, SimilarityError
        As for any request to `sim`.

    Notes
    -----
    Calls: ``n (n + 1) / 2``; asymmetric ``n^2``. Flops: O(n^3). The same as a truncated
    ``scipy.linalg.svd``, by way of ``scipy.linalg.eigh`` where K is symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, optimal, relative_error
    >>> K = np.diag([12.0, 4.0, 3.0])
    >>> answer = optimal(Similarity.from_matrix(K), 1)
    >>> round(relative_error(K, answer), 3)  # 5 / 13
    0.385
    """
    if not isinstance(rank, int | np.integer) or not 1 <= rank <= sim.n:
        raise ValueError(
            f"rank must be an integer between 1 and {sim.n}; got {rank!r}."
        )
    K = sim.columns(np.arange(sim.n)).astype(float)
    calls = block_calls(sim.n, symmetric=sim.symmetric)
    if sim.symmetric:
        values, vectors = np.linalg.eigh(K)
        best = np.argsort(-np.abs(values), kind="stable")[:rank]
        factors = [vectors[:, best], np.diag(values[best])]
    else:
        left, sigma, right = np.linalg.svd(K)
        factors = [left[:, :rank], np.diag(sigma[:rank]), right[:rank].T]
    parts = [factor.astype(sim.dtype) for factor in factors]
    return LowRank(*parts, calls=calls, method="optimal")
