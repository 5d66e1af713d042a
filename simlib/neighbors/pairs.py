"""All similar pairs, a bound of how many are missing, and clusters of items."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from simlib._checks import finite, inside, one_collection, one_of, whole_number
from simlib.lowrank.tall import read_only
from simlib.neighbors.clusters import average_linkage, complete_linkage, components
from simlib.neighbors.exact import certify
from simlib.neighbors.graph import Mode, edge_weights, framed
from simlib.neighbors.hits import Above, Hits, Nearest
from simlib.neighbors.pair_search import PairSearch
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix


class SimilarPairs(NamedTuple):
    """Pairs of similar items, from the most similar on, and a bound of their recall.

    Attributes
    ----------
    i, j : arrays of int, shape (m,)
        The two items of each pair, i < j; for two collections its row and its column.
        Read-only.
    values : array of shape (m,)
        Similarities, or distances, of the pairs. Read-only.
    recall : float
        Lower bound of the share of all such pairs that was found, at the confidence of
        the search. 0 if no recall was asked for, unless all pairs are paid for.
    reached : bool
        Whether the search reached the recall that was asked for; for None, whether it
        ended because rounds found little. If not, the limit was too low.
    calls : int
        Calls for the pairs that were asked for, known before or not; for a search of
        ``sim.informed()`` new calls alone.
    threshold : float
        The smallest similarity, or largest distance, of a pair.
    distance : bool
        Whether small values mean near.
    sim : SimilarityMatrix
        The similarity of the n items; average linkage asks it for more pairs.

    Examples
    --------
    >>> from simlib import Similarity
    >>> from simlib.neighbors import pairs_above
    >>> sim = Similarity([0.0, 1.0, 1.5, 9.0], lambda x, y: -abs(x - y))
    >>> pairs = pairs_above(sim, -1.0, rng=0)
    >>> list(zip(pairs.i.tolist(), pairs.j.tolist())), pairs.recall, pairs.reached
    ([(1, 2), (0, 1)], 1.0, True)
    >>> pairs.clusters().tolist(), pairs.clusters("complete").tolist()
    ([0, 0, 0, 1], [0, 1, 1, 2])
    """

    i: np.ndarray
    j: np.ndarray
    values: np.ndarray
    recall: float
    reached: bool
    calls: int
    threshold: float
    distance: bool
    sim: SimilarityMatrix

    def __reduce__(self) -> Any:
        return _of_arrays, tuple(self)

    def __repr__(self) -> str:
        reached = "reached" if self.reached else "not reached"
        promise = f"recall at least {self.recall:.3f} ({reached})"
        if self.reached and self.recall == 0:
            promise = "without a promise"
        return f"SimilarPairs({len(self.i)} pairs, {promise}, calls={self.calls})"

    def to_csr(self, mode: Mode = "distance") -> csr_matrix:
        """Return the pairs as a sparse matrix (n, n), each in both orders.

        For two collections (m, n), each pair once. `mode`, the order of rows and the
        errors are those of `NeighborGraph.to_csr`. ``DBSCAN(eps,
        metric="precomputed")`` gives the same clusters for this matrix as for all
        distances, if ``eps`` is the threshold of `pairs_above`; for similarities, if
        ``eps`` is at least the largest entry.
        """
        entries = edge_weights(self.values, mode, self.distance)
        rows, columns, times = self.i, self.j, 1
        if not self._two:
            rows, columns, times = np.append(rows, columns), np.append(columns, rows), 2
        order = np.lexsort((np.tile(np.arange(self.i.size), times), rows))
        indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=self.sim.shape[0])))
        parts = columns[order].astype(np.int32), indptr.astype(np.int32)
        data = np.tile(entries, times)[order]
        return csr_matrix((data, *parts), shape=self.sim.shape)

    @property
    def _two(self) -> bool:
        return isinstance(self.sim.extent, tuple)

    def to_frame(self) -> Any:
        """Return a ``pandas.DataFrame``: i, j, and similarity or distance.

        i and j are places, for ``frame.iloc[i]``, whatever the index of a frame is.
        """
        return framed(self.i, self.j, self.values, self.distance)

    def clusters(
        self, linkage: Literal["single", "complete", "average"] = "single"
    ) -> np.ndarray:
        """Return the cluster of each item, cut at the threshold, shape (n,).

        Clusters are numbered from 0 in the order of their first items. An item without
        a pair is a cluster of its own. For two collections the shape is (m + n,), for
        the rows and then the columns, and only single linkage is possible.
        `sklearn.cluster.DBSCAN` takes `to_csr` instead: with ``min_samples=2`` it finds
        the clusters of single linkage, and single items are noise.

        Parameters
        ----------
        linkage : "single", "complete" or "average", default="single"
            "single": items that a chain of pairs connects. "complete": clusters in
            which every two items are a pair. "average": clusters merge while the mean
            similarity, or distance, between them is no worse than the threshold. A
            ValueError for another name.

        Notes
        -----
        The clusters are those of linkage on all similarities, if no pair is missing.
        Average linkage evaluates the other pairs of each component of c > 2 items:
        c (c - 1) / 2 calls, minus known pairs. Time and memory O(c^2).
        """
        one_of(linkage, ("single", "complete", "average"), "linkage")
        if self._two and linkage != "single":
            one_collection(self.sim, f"have {linkage} linkage")
        n, j = self.sim.shape[0], self.j
        if self._two:
            n, j = sum(self.sim.shape), j + n
        pairs, sign = (n, self.i, j), -1 if self.distance else 1
        if linkage == "single":
            return components(*pairs)
        if linkage == "complete":
            return complete_linkage(*pairs, sign * self.values)

        def ask(i: np.ndarray, j: np.ndarray) -> np.ndarray:
            return sign * self.sim.pairs(i, j).astype(float)

        return average_linkage(*pairs, ask, sign * self.threshold)


def pairs_above(
    sim: Source,
    threshold: float,
    *,
    recall: float | None = 0.95,
    confidence: float = 0.95,
    limit: float | None = None,
    cheap: Source | Callable[[Any, Any], float] | ArrayLike | None = None,
    groups: ArrayLike | None = None,
    distance: bool = False,
    exact: bool = False,
    rng: int | np.random.Generator | None = None,
) -> SimilarPairs:
    """Find all pairs above a threshold, as `SimilarPairs`: duplicates, or links.

    Parameters
    ----------
    sim, cheap, distance, rng
        As in `nearest`.
    threshold : float
        The smallest similarity; with `distance` the largest distance.
    recall : float or None, default=0.95
        Share of these pairs to be found. 1 evaluates all pairs or, if the limit does
        not pay for them, the most promising pairs. None promises nothing; the search
        then ends after two idle rounds in a row, when no candidate is left, or with the
        limit. See the notes.
    confidence : float, default=0.95
        Probability, over the random draws of a single call, that the `recall` of the
        result is no larger than the true one, whatever the similarities are. Of
        searches that seldom reach the recall, as with a low limit, those that do may
        err more often; so does a search that is repeated with other seeds until it
        succeeds.
    limit : int, optional
        Most calls, for pairs known before or not. None means no limit: most pairs are
        evaluated if `cheap` is None.
    groups : array of shape (n,), optional
        For one collection: only pairs of different groups count. To link two tables
        take two collections.
    exact : bool, default=False
        As in `nearest`: pay for all pairs that the bound does not exclude, and no
        other. The recall is then 1, and `recall` and `confidence` play no part. With a
        lower limit the most promising pairs are paid for, and `recall` of the result is
        what is certain of them.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        An asymmetric similarity, a `recall` or `confidence` out of range, `groups` of
        another length; with `exact`, no companion, or one that is seen to be no bound;
        any error of a request to `sim` or `cheap`.

    Warns
    -----
    UserWarning
        After the first rounds, if the recall is estimated to take more than 10,000
        calls and more than the limit leaves or half of all; a progress bar shows the
        estimate as ``ahead``. Also if most of the first random pairs pass the
        threshold, as for distances without ``distance=True``.

    Notes
    -----
    To bound the missing pairs by F / 20, if F are found, takes a random sample of about
    70 / F of the other pairs, however good the predictions are; the bound assumes
    nothing. Without a companion the search took 92 % of the pairs. A second run with
    the same `rng` pays only for unknown pairs. More items make the promise anew: for
    a few, evaluate their rows and add the hits; the promise of the old pairs stays.

    A round pays for a tenth of the pairs paid for so far, at first for 0.3 % of all, at
    most ten for each item. For ``recall=None`` it is idle if it adds at most a
    hundredth to the pairs found, in proportion less if it is shorter. Idle rounds end
    the search when they have taken as many calls as ten of the pairs found so far, or
    twenty for each item, and as many as two first rounds.

    Flops: O(n^2 r) to predict all pairs, with r at most 41 plus the number of columns
    of a factor `cheap`. They are predicted again when half of the queue, of n^2 / 1024
    pairs or as many as are paid for, is used up. Beyond 130,000 items, or 23,000 if
    `cheap` has to be asked, O(n r) for listed candidates. Memory: some 130 bytes for a
    call, 4 kB for an item. Source: ours; the bound of a look is that of Clopper and
    Pearson (1934) for a finite population.

    Examples
    --------
    >>> from simlib import Similarity
    >>> from simlib.neighbors import pairs_above
    >>> sim = Similarity([0.0, 1.0, 1.5, 9.0], lambda x, y: abs(x - y))
    >>> pairs = pairs_above(sim, 1.0, distance=True, rng=0)
    >>> list(zip(pairs.i.tolist(), pairs.j.tolist())), pairs.values.tolist()
    ([(1, 2), (0, 1)], [0.5, 1.0])
    """
    threshold = finite(threshold, "threshold")
    confidence = inside(confidence, "confidence", 0, 1)
    search = PairSearch(sim, limit, cheap, groups, distance, rng)
    with np.errstate(over="ignore"):
        rounded = float(search.sim.dtype.type(threshold))  # as values are
    fits = np.isfinite(rounded) and (rounded != 0 or threshold == 0)
    threshold = rounded if fits else threshold
    hits = Above(-threshold if distance else threshold)
    promise = certify(search, hits) if exact else search.run(hits, recall, confidence)
    return _result(search, hits, *promise)._replace(threshold=threshold)


def most_similar(
    sim: Source,
    m: int,
    *,
    recall: float | None = 0.95,
    confidence: float = 0.95,
    limit: float | None = None,
    cheap: Source | Callable[[Any, Any], float] | ArrayLike | None = None,
    groups: ArrayLike | None = None,
    distance: bool = False,
    rng: int | np.random.Generator | None = None,
) -> SimilarPairs:
    """Find the m most similar pairs, or fewer where the limit did not pay for m.

    Parameters
    ----------
    m : int
        Number of pairs, from 1 to all of them.
    sim, recall, confidence, limit, cheap, groups, distance, rng
        As in `pairs_above`; so are the errors. `recall` is the share of the m pairs
        that are among the m most similar ones; of equal pairs any counts.

    Examples
    --------
    >>> from simlib import Similarity
    >>> from simlib.neighbors import most_similar
    >>> sim = Similarity([0.0, 1.0, 1.5, 9.0], lambda x, y: -abs(x - y))
    >>> pairs = most_similar(sim, 1, rng=0)
    >>> pairs.i.tolist(), pairs.j.tolist(), pairs.values.tolist()
    ([1], [2], [-0.5])
    """
    confidence = inside(confidence, "confidence", 0, 1)
    search = PairSearch(sim, limit, cheap, groups, distance, rng)
    hits = Nearest(whole_number(m, "m", 1, search.n_pairs))
    return _result(search, hits, *search.run(hits, recall, confidence))


def _result(
    search: PairSearch, hits: Hits, recall: float, reached: bool
) -> SimilarPairs:
    """Return the hits that were found, from the most similar on."""
    paid = search.paid
    found = np.flatnonzero(paid.nearness >= hits.cut(paid.nearness))
    order = np.lexsort((paid.j[found], paid.i[found], -paid.nearness[found]))
    found = found[order][: hits.count(paid.nearness)]
    values = paid.sign * paid.nearness[found]
    return _of_arrays(
        paid.i[found],
        paid.j[found] - search.n_rows,
        values.astype(search.sim.dtype),
        recall,
        reached,
        paid.calls,
        float(values[-1] if values.size else paid.sign * inf),
        search.distance,
        search.asked,
    )


def _of_arrays(
    i: np.ndarray, j: np.ndarray, values: np.ndarray, *others: Any
) -> SimilarPairs:
    """Return pairs whose arrays are read-only."""
    return SimilarPairs(read_only(i), read_only(j), read_only(values), *others)
