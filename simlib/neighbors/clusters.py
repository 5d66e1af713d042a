r"""Clusters by linkage: merge the two most similar clusters while similar enough.

.. math::
    s(C, D) = \max_{i \in C, \, j \in D} s_{ij} , \qquad
    \frac{1}{|C| \, |D|} \sum_{i \in C, \, j \in D} s_{ij} , \qquad
    \min_{i \in C, \, j \in D} s_{ij}

for single, average and complete linkage. Clusters lie within the connected components
of similar pairs; average linkage also evaluates the other pairs of a component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import num_obs_y

from simlib._scale import exponent
from simlib.similarity.requests import once


def components(n: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return the connected component of each of n items joined by pairs, from 0."""
    graph = coo_array((np.ones(i.size), (i, j)), shape=(n, n))
    return once(connected_components(graph, directed=False)[1])[1]


def complete_linkage(
    n: int, i: np.ndarray, j: np.ndarray, nearness: np.ndarray
) -> np.ndarray:
    """Return the cluster of each item, from all pairs i < j that are near enough."""
    rank = 1.0 + np.unique(nearness, return_inverse=True)[1]  # other pairs have 0
    most = rank.max(initial=0)
    label = components(n, i, j)
    groups, place = _open_groups(label, i)
    a, b, size = place[i], place[j], np.bincount(label)[label[i]]
    at = a * size - a * (a + 1) // 2 + b - a - 1  # among the pairs of the group
    order = np.argsort(label[i], kind="stable")
    starts = np.searchsorted(label[i[order]], np.arange(label.max(initial=0) + 2))

    def cut(items: np.ndarray) -> np.ndarray:
        pairs = order[slice(*starts[label[items[0]] :][:2])]
        distances = np.full(items.size * (items.size - 1) // 2, most)
        distances[at[pairs]] -= rank[pairs]
        return fcluster(linkage(distances, "complete"), most - 0.5, "distance")

    return _within(label, groups, map(cut, groups))


def average_linkage(
    n: int,
    i: np.ndarray,
    j: np.ndarray,
    ask: Callable[[np.ndarray, np.ndarray], np.ndarray],
    threshold: float,
) -> np.ndarray:
    """Return the cluster of each item, from all near pairs; `ask` evaluates others."""
    label = components(n, i, j)
    groups, _ = _open_groups(label, i)
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
    # SciPy needs distances that are not negative: their ranks, which lose no digit.
    heights, tree[:, 2] = np.unique(tree[:, 2], return_inverse=True)
    bounds = np.ldexp(-np.ravel(thresholds).astype(float), -shift)
    bounds += n * np.finfo(float).eps * np.abs(bounds)  # for rounding errors of means
    ranks = np.searchsorted(heights, bounds, side="right") - 1
    cuts = [fcluster(tree, rank, "distance") for rank in ranks]
    return np.array(cuts, dtype=int).reshape(*np.shape(thresholds), n)


def _open_groups(
    label: np.ndarray, i: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the items of each component that lacks a pair, and the place of each item.

    A place is a number within the component.
    """
    order, sizes = np.argsort(label, kind="stable"), np.bincount(label)
    starts = np.cumsum(sizes) - sizes
    place = np.empty_like(order)
    place[order] = np.arange(label.size) - np.repeat(starts, sizes)
    pairs = np.bincount(label[i], minlength=sizes.size)
    lacking = np.flatnonzero(2 * pairs < sizes * (sizes - 1)).tolist()
    return [order[starts[k] : starts[k] + sizes[k]] for k in lacking], place


def _within(
    label: np.ndarray, groups: list[np.ndarray], cuts: Iterable[np.ndarray]
) -> np.ndarray:
    """Return the labels after some groups of items are divided further."""
    label, count = label.copy(), label.size
    for items, cut in zip(groups, cuts, strict=True):
        label[items] = count + cut
        count += items.size
    return once(label)[1]  # numbered in the order of the first items
