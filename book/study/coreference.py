r"""Coreference: mentions clustered by average linkage, and five scores of the clusters.

.. math::
    R = \frac{\sum_k w_k \, r_k}{\sum_k w_k} , \qquad
    P = \text{the same with key and response exchanged} , \qquad
    F_1 = \frac{2 P R}{P + R}

For a cluster k of the key, of :math:`|k|` mentions of which :math:`c_{kr}` are in the
cluster r of the response, MUC, B-cubed and LEA have

.. math::
    w_k \, r_k = |k| - p_k , \quad \sum_r c_{kr}^2 / |k| , \quad
    |k| \, \sum_r \tbinom{c_{kr}}{2} \big/ \tbinom{|k|}{2} ,
    \qquad w_k = |k| - 1 , \; |k| , \; |k| ,

where k lies in :math:`p_k` pieces and a mention that the response lacks is one of them.
CEAF-e pairs clusters one to one so that :math:`\sum 2 c_{kr} / (|k| + |r|)` is largest,
and divides that by the number of clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from sklearn.utils import check_array

from simlib.neighbors.clusters import average_cuts

__all__ = [
    "CoreferenceScore",
    "average_linkage",
    "b_cubed",
    "ceaf_e",
    "conll_f1",
    "lea",
    "muc",
]


class CoreferenceScore(NamedTuple):
    """Recall, precision and their harmonic mean; 0 where there is nothing to divide by.

    Examples
    --------
    >>> from study.coreference import CoreferenceScore
    >>> CoreferenceScore(0.5, 1.0).f1
    0.6666666666666666
    """

    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """The harmonic mean of recall and precision."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0


def muc(key: ArrayLike, response: ArrayLike) -> CoreferenceScore:
    """Score clusters by the links that are missing in them.

    Parameters
    ----------
    key : array_like of int, shape (n,)
        The true cluster of each of n mentions; negative where the mention is not one.
    response : array_like of int, shape (n,)
        The cluster found for each; negative where the mention was not found.

    Returns
    -------
    CoreferenceScore
        Singletons have no links and do not count: all zero where there is nothing else.

    Raises
    ------
    ValueError
        The two are not arrays of integers of one length.

    Notes
    -----
    O(n log n). Source: Vilain et al. (1995), as in the scorer of Pradhan et al. (2014).

    Examples
    --------
    One cluster of four, found in two halves:

    >>> from study.coreference import muc
    >>> score = muc([0, 0, 0, 0], [0, 0, 1, 1])
    >>> round(score.recall, 3), score.precision
    (0.667, 1.0)
    """
    return _both(_links, *_contingency(key, response))


def b_cubed(key: ArrayLike, response: ArrayLike) -> CoreferenceScore:
    """Score clusters by what a mention shares with those of its own, on average.

    Arguments, result and errors are those of `muc`. O(n log n). Source: Bagga and
    Baldwin (1998), as in the reference scorer.

    Examples
    --------
    >>> from study.coreference import b_cubed
    >>> b_cubed([0, 0, 0, 0], [0, 0, 1, 1])
    CoreferenceScore(recall=0.5, precision=1.0)
    """
    return _both(_shared, *_contingency(key, response))


def ceaf_e(key: ArrayLike, response: ArrayLike) -> CoreferenceScore:
    """Score clusters by the best pairing of those of the key with those found.

    Arguments, result and errors are those of `muc`. At worst cubic in the number of
    clusters. Source: Luo (2005) with his fourth similarity, as in the reference scorer.

    Examples
    --------
    >>> from study.coreference import ceaf_e
    >>> score = ceaf_e([0, 0, 0, 0], [0, 0, 1, 1])
    >>> round(score.recall, 3), round(score.precision, 3)
    (0.667, 0.333)
    """
    return _paired(*_contingency(key, response))


def lea(key: ArrayLike, response: ArrayLike) -> CoreferenceScore:
    """Score clusters by their links found, weighted by size.

    A singleton has one link, to itself, found where it is one on the other side too.
    Arguments, result and errors are those of `muc`. O(n log n). Source: Moosavi and
    Strube (2016).

    Examples
    --------
    >>> from study.coreference import lea
    >>> score = lea([0, 0, 0, 0], [0, 0, 1, 1])
    >>> round(score.recall, 3), score.precision
    (0.333, 1.0)
    """
    return _both(_resolved, *_contingency(key, response))


def conll_f1(key: ArrayLike, response: ArrayLike) -> float:
    """Return the mean of the F1 of `muc`, `b_cubed` and `ceaf_e`.

    Arguments and errors are those of `muc`. Source: Pradhan et al. (2014).

    Examples
    --------
    >>> from study.coreference import conll_f1
    >>> conll_f1([0, 0, 1, 2], [3, 3, 1, 0])
    1.0
    """
    table = _contingency(key, response)
    scores = _both(_links, *table), _both(_shared, *table), _paired(*table)
    return sum(score.f1 for score in scores) / 3


def average_linkage(K: ArrayLike, threshold: ArrayLike) -> np.ndarray:
    """Cluster items by average linkage: merge while the mean similarity is high enough.

    `sklearn.cluster.AgglomerativeClustering` does so at one threshold,
    `simlib.neighbors.SimilarPairs.clusters` from the pairs above it. ValueError for
    what is not finite, and for other shapes.

    Parameters
    ----------
    K : array_like, shape (n, n)
        Similarities, n >= 2; the mean of both orders counts, the diagonal does not.
    threshold : float or array_like, shape (m,)
        Two clusters are merged if the mean similarity between them is at least this, up
        to rounding.

    Returns
    -------
    ndarray of int, shape (n,) or (m, n)
        Labels from 1, for each threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from study.coreference import average_linkage
    >>> K = np.array([[1, 0.9, 0.2], [0.9, 1, 0.3], [0.2, 0.3, 1]])
    >>> average_linkage(K, [0.5, 0.2]).tolist()
    [[1, 1, 2], [1, 1, 1]]
    """
    given: np.ndarray = check_array(
        K, dtype=np.float64, input_name="K", ensure_min_samples=2
    )
    if given.shape[0] != given.shape[1]:
        raise ValueError(f"Similarities of all pairs are square; got {given.shape}.")
    thresholds = np.asarray(threshold)
    if thresholds.dtype.kind not in "fiu" or not np.isfinite(thresholds).all():
        raise ValueError(
            f"`threshold` is a finite number or several; got {threshold!r}."
        )
    if thresholds.ndim > 1:
        raise ValueError(f"`threshold` has one axis; got shape {thresholds.shape}.")
    mean = given / 2 + given.T / 2
    np.fill_diagonal(mean, 0)
    return average_cuts(squareform(mean, checks=False), thresholds)


def _labels(labels: ArrayLike, name: str) -> np.ndarray:
    labels = np.asarray(labels)
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iu"):
        raise ValueError(
            f"`{name}` holds an integer for each mention; got {labels.dtype} of shape "
            f"{labels.shape}."
        )
    if labels.dtype.kind == "u" and labels.size and labels.max() >= 2**63:
        raise ValueError(
            f"`{name}` has labels of 2^63 and more, which no signed integer holds: "
            "number the clusters by numpy.unique(labels, return_inverse=True)[1]."
        )
    return labels.astype(np.int64)


def _contingency(
    key: ArrayLike, response: ArrayLike
) -> tuple[csr_array, np.ndarray, np.ndarray]:
    """Return how many mentions two clusters share, and the sizes of either kind."""
    key, response = _labels(key, "key"), _labels(response, "response")
    if key.size != response.size:
        raise ValueError(
            f"key and response have a label for each mention, -1 where it is none; got "
            f"{key.size} and {response.size}."
        )
    sides = []
    for labels in (key, response):
        names, numbers = np.unique(labels[labels >= 0], return_inverse=True)
        column = np.full(labels.size, -1)
        column[labels >= 0] = numbers
        sides.append((column, np.bincount(numbers, minlength=names.size)))
    (rows, sizes), (columns, found) = sides
    both = (rows >= 0) & (columns >= 0)
    shape = (sizes.size, found.size)
    ones = np.ones(np.count_nonzero(both))
    common = coo_array((ones, (rows[both], columns[both])), shape=shape).tocsr()
    return common, sizes, found


_Part = Callable[[csr_array, np.ndarray, np.ndarray], tuple[float, float]]


def _both(
    part: _Part, common: csr_array, sizes: np.ndarray, found: np.ndarray
) -> CoreferenceScore:
    """Return recall and precision: a measure with key and response, and exchanged."""
    recall = _ratio(*part(common, sizes, found))
    return CoreferenceScore(recall, _ratio(*part(common.T.tocsr(), found, sizes)))


def _paired(
    common: csr_array, sizes: np.ndarray, found: np.ndarray
) -> CoreferenceScore:
    total = _best_pairing(common, sizes, found)
    return CoreferenceScore(_ratio(total, sizes.size), _ratio(total, found.size))


def _links(
    common: csr_array, sizes: np.ndarray, found: np.ndarray
) -> tuple[float, float]:
    pieces = np.diff(common.indptr) + sizes - common.sum(axis=1)
    return (sizes - pieces).sum(), (sizes - 1).sum()


def _shared(
    common: csr_array, sizes: np.ndarray, found: np.ndarray
) -> tuple[float, float]:
    return (common.power(2).sum(axis=1) / sizes).sum(), sizes.sum()


def _resolved(
    common: csr_array, sizes: np.ndarray, found: np.ndarray
) -> tuple[float, float]:
    pairs = common.copy()
    pairs.data *= (pairs.data - 1) / 2
    of_large = pairs.sum(axis=1) / np.maximum(sizes * (sizes - 1) / 2, 1)
    alone = common @ (found == 1.0)  # 1 for a singleton on both sides
    resolved = np.where(sizes > 1, of_large, alone)
    return (sizes * resolved).sum(), sizes.sum()


def _best_pairing(common: csr_array, sizes: np.ndarray, found: np.ndarray) -> float:
    """Return the largest sum of similarities, group by group of what overlaps."""
    likeness = common.tocoo()
    likeness.data *= 2 / (sizes[likeness.row] + found[likeness.col])
    n = sizes.size
    ends = (likeness.row, likeness.col + n)
    graph = coo_array((likeness.data, ends), shape=(n + found.size,) * 2)
    _, group = connected_components(graph, directed=False)
    of_edge = group[likeness.row]
    members = np.zeros((2, group.max(initial=-1) + 1), dtype=int)
    for side, part in zip(members, (group[:n], group[n:]), strict=True):
        side += np.bincount(part, minlength=side.size)
    best = np.zeros(members.shape[1])
    np.maximum.at(best, of_edge, likeness.data)  # right where a side has one cluster
    total = best.sum()
    for one in np.flatnonzero(members.min(axis=0) > 1):
        edges = np.flatnonzero(of_edge == one)
        rows, i = np.unique(likeness.row[edges], return_inverse=True)
        columns, j = np.unique(likeness.col[edges], return_inverse=True)
        block = np.zeros((rows.size, columns.size))
        block[i, j] = likeness.data[edges]
        pairs = linear_sum_assignment(block, maximize=True)
        total += block[pairs].sum() - best[one]
    return float(total)


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0
