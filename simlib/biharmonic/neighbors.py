r"""A graph on points: nearest neighbours, weighted by stochastic neighbour embedding.

.. math::
    p_{j|i} = \frac{e^{-\|x_i - x_j\|^2 / 2 \sigma_i^2}}
    {\sum_{k \in N(i)} e^{-\|x_i - x_k\|^2 / 2 \sigma_i^2}} , \qquad
    A_{ij} = \tfrac12 (p_{j|i} + p_{i|j})

Equation :eq:`eq:sne` of the book. The bandwidth of each point is chosen such that all
points have the same perplexity, which is the effective number of neighbours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array
from sklearn.neighbors import NearestNeighbors

from simlib import _scale
from simlib._checks import at_least, numbers, shaped, whole_number

DIFFERENCES = 2**22  # coordinates of differences held at a time


def neighbor_graph(
    X: ArrayLike, *, n_neighbors: int = 20, perplexity: float = 20
) -> csr_array:
    r"""Return the adjacency of a neighbour graph with perplexity-equalised weights.

    Parameters
    ----------
    X : array of shape (n, d)
        Points.
    n_neighbors : int, default=20
        Number t of nearest neighbours of each point, 1 to n - 1. N(i) holds them, and
        the points that have i as a neighbour.
    perplexity : float, default=20
        exp of the entropy of each :math:`p_{\cdot|i}`, cut to 0.99 times the size of
        N(i); for equal weights it would be that size.

    Returns
    -------
    csr_array, shape (n, n)
        Symmetric, with no diagonal. The sum of all weights is n. The graph may have
        several pieces: `interpolation` then needs a landmark in each.

    Raises
    ------
    ValueError
        X has another shape, or is sparse, not real or not finite; `n_neighbors` is not
        below the number of points; `perplexity` is below 1.

    Notes
    -----
    The neighbours are those of `sklearn.neighbors.kneighbors_graph`, O(d n t log n)
    in few dimensions. The bandwidths are found by bisection, O(n t) for each step.
    Above 15 dimensions the search subtracts squares of lengths: if clusters are 1e7
    times as far apart as they are wide, it misses some of the nearest points, and more
    if they are farther apart. Source: Turek and Huth (2022), eq. (9); Hinton and Roweis
    (2002).

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.biharmonic import neighbor_graph
    >>> points = np.random.default_rng(0).random((500, 3))
    >>> graph = neighbor_graph(points, n_neighbors=10, perplexity=5)
    >>> round(float(graph.sum()), 6)
    500.0
    """
    X = shaped(numbers(X, "`X`"), ("n", "d"), "`X`").astype(np.float64)
    n = len(X)
    n_neighbors = whole_number(n_neighbors, "n_neighbors", 1, n - 1)
    perplexity = at_least(perplexity, "perplexity", 1)
    points, _ = _scale.unit(X)  # or squares may overflow
    # In many dimensions the search subtracts squares, which are small for centred X.
    points -= np.median(points, axis=0)
    search = NearestNeighbors(n_neighbors=n_neighbors).fit(points)
    j = search.kneighbors(return_distance=False).ravel()
    i = np.repeat(np.arange(n), n_neighbors)
    step = max(1, DIFFERENCES // max(1, points.shape[1]))
    parts = [slice(k, k + step) for k in range(0, i.size, step)]
    squares = [
        np.square(points[i[part]] - points[j[part]]).sum(axis=1) for part in parts
    ]
    keys, first = np.unique(np.concatenate([i * n + j, j * n + i]), return_index=True)
    i, j = np.divmod(keys, n)
    lengths = np.tile(np.concatenate(squares), 2)[first]
    p = _probabilities(lengths, i, perplexity)
    A = coo_array((p / 2, (i, j)), shape=(n, n)).tocsr()
    return csr_array(A + A.T)


def _probabilities(squares: np.ndarray, i: np.ndarray, perplexity: float) -> np.ndarray:
    """Return p_{j|i} for edges sorted by i, from the squares of their lengths."""
    starts = np.searchsorted(i, np.arange(i[-1] + 1))
    sizes = np.diff(starts, append=i.size)
    least = np.minimum.reduceat(squares, starts)[i]
    excess = np.where(squares <= (1 + 1e-9) * least, 0, squares - least)
    scale = np.add.reduceat(excess, starts) / sizes
    excess /= np.where(scale > 0, scale, 1)[i]
    target = np.log(np.maximum(np.minimum(perplexity, 0.99 * sizes), 1))

    def distribution(precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights = np.exp(-precision[i] * excess)
        totals = np.add.reduceat(weights, starts)
        mean = np.add.reduceat(weights * excess, starts) / totals
        return weights / totals[i], np.log(totals) + precision * mean

    # With growing precision the entropy falls, from log |N(i)| to that of the nearest.
    low, high = np.full(sizes.size, -18.0), np.full(sizes.size, 100.0)
    for _ in range(60):
        middle = (low + high) / 2
        too_wide = distribution(np.exp(middle))[1] > target
        low, high = np.where(too_wide, middle, low), np.where(too_wide, high, middle)
    return distribution(np.exp(high))[0]
