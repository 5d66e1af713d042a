r"""Clusters by linkage: merge the two most similar ones while they are similar enough.

.. math::
    s(C, D) = \max_{i \in C, \, j \in D} s_{ij} , \qquad
    \frac{1}{|C| \, |D|} \sum_{i \in C, \, j \in D} s_{ij} , \qquad
    \min_{i \in C, \, j \in D} s_{ij}

by single, average and complete linkage. Clusters lie within the components that similar
pairs connect; average linkage also asks for the other pairs of a component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import num_obs_y, squareform

from simlib._scale import exponent

__all__ = ["average_cuts", "average_linkage", "complete_linkage", "components"]


def components(n: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return for each of n items the component in which some pairs put it, from 0."""
    graph = coo_array((np.ones(i.size), (i, j)), shape=(n, n))
    return _counted(connected_components(graph, directed=False)[1])


def complete_linkage(
    n: int, i: np.ndarray, j: np.ndarray, nearness: np.ndarray
) -> np.ndarray:
    """Return the cluster of each item, from all pairs that are near enough."""
    rank = 1.0 + np.unique(nearness, return_inverse=True)[1]  # 0 is that of the others
    most = rank.max(initial=0)
    ranks = coo_array((rank, (i, j)), shape=(n, n)).tocsr()
    ranks = (ranks + ranks.T).tocsr()

    def cut(items: np.ndarray) -> np.ndarray:
        distances = squareform(most - ranks[items][:, items].toarray(), checks=False)
        return fcluster(linkage(distances, "complete"), most - 0.5, "distance")

    label = components(n, i, j)
    groups = _groups(label)
    return _within(label, groups, map(cut, groups))


def average_linkage(
    n: int,
    i: np.ndarray,
    j: np.ndarray,
    ask: Callable[[np.ndarray, np.ndarray], np.ndarray],
    threshold: float,
) -> np.ndarray:
    """Return the cluster of each item from all near pairs; `ask` tells the others."""
    label = components(n, i, j)
    groups = _groups(label)
    if not groups:
        return label
    inside = [items[np.stack(np.triu_indices(items.size, 1))] for items in groups]
    nearness = ask(*np.hstack(inside))
    ends = np.cumsum([pairs.shape[1] for pairs in inside])[:-1]
    cuts = (average_cuts(part, threshold) for part in np.split(nearness, ends))
    return _within(label, groups, cuts)


def average_cuts(
    similarities: np.ndarray, thresholds: np.ndarray | float
) -> np.ndarray:
    """Return clusters from 1 on by average linkage, (n,) or (m, n) for m thresholds."""
    n = num_obs_y(similarities)
    largest = exponent(similarities) + n.bit_length()
    shift = max(largest - np.finfo(float).maxexp, 0)  # sums of entries are numbers
    tree = linkage(np.ldexp(-similarities, -shift), "average")
    # SciPy cuts at distances that are not negative: at ranks, which lose no digit.
    heights, tree[:, 2] = np.unique(tree[:, 2], return_inverse=True)
    bounds = np.ldexp(-np.ravel(thresholds).astype(float), -shift)
    bounds += n * np.finfo(float).eps * np.abs(bounds)  # as means are rounded
    ranks = np.searchsorted(heights, bounds, side="right") - 1
    cuts = [fcluster(tree, rank, "distance") for rank in ranks]
    return np.array(cuts, dtype=int).reshape(*np.shape(thresholds), n)


def _groups(label: np.ndarray) -> list[np.ndarray]:
    """Return the items of each component of three or more: two are one pair."""
    order = np.argsort(label, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(label))[:-1])
    return [items for items in groups if items.size > 2]


def _within(
    label: np.ndarray, groups: list[np.ndarray], cuts: Iterable[np.ndarray]
) -> np.ndarray:
    """Return the labels with those of some groups of items divided further."""
    label, count = label.copy(), label.size
    for items, cut in zip(groups, cuts, strict=True):
        label[items] = count + cut
        count += cut.size
    return _counted(label)


def _counted(label: np.ndarray) -> np.ndarray:
    """Return the same clusters, counted from 0 in the order of their first items."""
    _, first, place = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[place]
