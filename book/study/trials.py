r"""The share of the neighbours that a method finds, where all similarities are known.

.. math::
    \text{recall}_k = \frac{1}{n k} \sum_i \big| \{ j \in N_k(i) :
    K_{ij} \ge K_{i (k)} \} \big|

Equation :eq:`eq:recall` of the book: N_k(i) are the k items that a method names for i,
and :math:`K_{i(k)}` is the k-th largest similarity of i to another item. Items that tie
with the k-th count as found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from simlib.neighbors.nearest import nearest
from simlib.similarity import Similarity
from study.contenders import CONTENDERS


def rounds(sim, k, limit, cheap, rng=None) -> np.ndarray:
    """Return the neighbours that `nearest` finds with a companion, shape (n, k)."""
    companion = Similarity.from_matrix(cheap)
    return nearest(sim, k, limit=limit, cheap=companion, rng=rng).indices


def rounds_alone(sim, k, limit, cheap=None, rng=None) -> np.ndarray:
    """Return the neighbours that `nearest` finds without one, shape (n, k)."""
    return nearest(sim, k, limit=limit, rng=rng).indices


SEARCHES: dict[str, Callable[..., np.ndarray]] = {
    "nearest": rounds,
    "nearest alone": rounds_alone,
    **CONTENDERS,
}


def recall(K: ArrayLike, indices: ArrayLike, k: int | None = None) -> float:
    """Return the share of the nearest that are among those named.

    Parameters
    ----------
    K : array of shape (n, n)
        All similarities, large where near. The diagonal does not count.
    indices : array of int, shape (n, m)
        The items named for each, from the nearest on; -1 where there are fewer.
    k : int, optional
        How many of them count, 1 to m. None means all.

    Raises
    ------
    ValueError
        k is not between 1 and m, or K and `indices` are of different items.

    Examples
    --------
    >>> import numpy as np
    >>> from study.trials import recall
    >>> x = np.array([0.0, 1.0, 3.0])
    >>> recall(-abs(x[:, None] - x), [[1], [2], [1]])
    0.6666666666666666
    """
    K, indices = np.asarray(K), np.asarray(indices)
    n, m = indices.shape
    k = m if k is None else k
    if K.shape != (n, n):
        raise ValueError(f"Neighbours of {n} items do not fit K of shape {K.shape}.")
    if not 1 <= k <= m:
        raise ValueError(f"k must be between 1 and the {m} items named; got {k}.")
    others = K.astype(float)
    np.fill_diagonal(others, -np.inf)
    kth = np.partition(others, n - k, axis=1)[:, n - k]
    named = indices[:, :k].astype(int)
    values = np.take_along_axis(others, np.maximum(named, 0), axis=1)
    return float(((values >= kth[:, None]) & (named >= 0)).mean())
