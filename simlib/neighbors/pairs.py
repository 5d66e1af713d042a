"""All pairs at least so similar, how sure it is that few are missing, and clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from simlib._checks import finite, one_collection, one_of, whole_number
from simlib.lowrank.tall import read_only
from simlib.neighbors.clusters import average_linkage, complete_linkage, components
from simlib.neighbors.graph import Mode, edge_weights, framed
from simlib.neighbors.joined import Joined
from simlib.neighbors.pair_search import PairSearch
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

__all__ = ["SimilarPairs", "most_similar", "pairs_above"]


class SimilarPairs(NamedTuple):
    """Pairs of similar items, from the most similar on, and what is promised of them.

    Attributes
    ----------
    i, j : arrays of int, shape (m,)
        The two items of each pair, i < j, or its row and its column of two collections;
        read-only, as the next.
    values : array of shape (m,)
        Their similarities, or distances.
    recall : float
        Lower bound of the share that was found, at the confidence that was asked for; 0
        where none was, and not all pairs are paid for.
    reached : bool
        Whether that is the recall that was asked for, or, if it was None, rounds found
        little; if not, the limit was too low.
    calls : int
        Calls for the pairs that were asked for, known before or not.
    threshold : float
        The least similarity, or largest distance, of a pair.
    distance : bool
        Whether small values mean near.
    sim : SimilarityMatrix
        Of the n items; average linkage asks it for more.

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

    def __repr__(self) -> str:
        reached = "reached" if self.reached else "not reached"
        promise = f"recall at least {self.recall:.3f} ({reached})"
        if self.reached and self.recall == 0:
            promise = "without a promise"
        return f"SimilarPairs({len(self.i)} pairs, {promise}, calls={self.calls})"

    def to_csr(self, mode: Mode = "distance") -> csr_matrix:
        """Return the pairs as a sparse matrix (n, n), each in both orders.

        Of two collections (m, n), each once. `mode`, rows and errors are those of
        `NeighborGraph.to_csr`. ``DBSCAN(eps, metric="precomputed")`` makes of it what
        it makes of all distances, with the threshold of `pairs_above` in distances as
        ``eps``; of similarities with each ``eps`` from the largest entry on.
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

        i and j are places, as ``frame.iloc[i]`` takes them, whatever the index.
        """
        return framed(self.i, self.j, self.values, self.distance)

    def clusters(
        self, linkage: Literal["single", "complete", "average"] = "single"
    ) -> np.ndarray:
        """Return the cluster of each item, cut at the threshold, shape (n,).

        Counted from 0 in the order of their first items; an item without a pair is one
        alone. Of two collections those of the rows, then of the columns, shape (m + n,)
        and by single linkage. `sklearn.cluster.DBSCAN` takes `to_csr` instead: with
        ``min_samples=2`` it finds those of single linkage, and items alone are noise.

        Parameters
        ----------
        linkage : "single", "complete" or "average", default="single"
            Items that pairs connect, however long the chain; clusters in which every
            two items are a pair; or those between which the mean similarity, or
            distance, is no worse than the threshold. ValueError for others.

        Notes
        -----
        What linkage makes of all similarities, if no pair is missing. Average linkage
        evaluates the other pairs of each component of c > 2 items: c (c - 1) / 2 calls,
        less what is known. Time and memory O(c^2).
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
    """Find all `SimilarPairs` at least so similar: duplicates, links of two tables.

    Parameters
    ----------
    sim, cheap, distance, rng
        As in `nearest`.
    threshold : float
        The least similarity, with `distance` the largest distance.
    recall : float or None, default=0.95
        Share of these pairs to be found. 1 evaluates all pairs, or, if the limit does
        not pay for them, the most promising ones. None promises nothing: the search
        ends when two rounds in a row have each added no more than a hundredth to the
        pairs found, or as much less as they are shorter than a tenth of the pairs paid
        for, and took as many calls as brought ten pairs before or twenty an item, and
        as two first rounds; when no candidate is left, or with the limit. A round is
        that tenth or more, at first 0.3 % of all or ten an item, and an eighth of the
        limit at most.
    confidence : float, default=0.95
        Probability with which that is true where ``reached`` says so, of one call: who
        repeats a search, with other seeds, until it is satisfied errs more often.
    limit : int, optional
        Most calls, known before or not. None means as many as it takes: most pairs, if
        `cheap` is None.
    groups : array of shape (n,), optional
        Of one collection: only pairs of different groups count. Two tables to be linked
        are two collections.
    exact : bool, default=False
        With a companion that is never smaller than the similarity, or never larger than
        the distance, such as those of `simlib.text.bounds`: pay for all pairs that this
        bound does not exclude, and no other. The recall is then 1, whatever `recall`
        and `confidence` are; with a lower limit what is certain of the most promising.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        An asymmetric similarity, a share that is none, groups of other items; as for
        any request to `sim` or `cheap`.

    Warns
    -----
    UserWarning
        After the first rounds, if a promise is estimated to take more calls than are
        left, or more than half of all, and 10,000 at least; a progress bar shows the
        estimate as ``ahead``. If most of the first, random pairs pass the threshold, as
        distances do without `distance`.

    Notes
    -----
    That no more than F / 20 are missing, with F found, takes a random sample of about
    70 / F of the other pairs, however good the predictions; the bound assumes nothing.
    Without a companion it took 92 % of the pairs. Run again with the same `rng` it pays
    only for what is not known. Flops: O(n^2 r) for all predictions, r at most 41 and
    the width of a factor `cheap`, made anew when half of n^2/1024 pairs, or of as many
    as are paid for, are used up; beyond 130,000 items, or 23,000 if `cheap` is asked,
    O(n r) for those of listed candidates. Memory: some 130 bytes for a call, 4 kB for
    an item. Source: ours; the bound of a look is that of Clopper and Pearson (1934) for
    a finite population.

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
    search = PairSearch(sim, confidence, limit, cheap, groups, distance, rng)
    with np.errstate(over="ignore"):
        threshold = float(search.sim.dtype.type(threshold))  # as values are rounded
    search.threshold = -threshold if distance else threshold
    if exact:
        search.run_exact()
    else:
        search.run(recall)
    return _result(search, 1.0 if exact else recall)


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
        How many pairs, from 1 to all of them.
    sim, recall, confidence, limit, cheap, groups, distance, rng
        As in `pairs_above`, as are the errors; `recall` is the share of the m pairs
        that are among the m most similar ones. Of equal ones it does not matter which.

    Examples
    --------
    >>> from simlib import Similarity
    >>> from simlib.neighbors import most_similar
    >>> sim = Similarity([0.0, 1.0, 1.5, 9.0], lambda x, y: -abs(x - y))
    >>> pairs = most_similar(sim, 1, rng=0)
    >>> pairs.i.tolist(), pairs.j.tolist(), pairs.values.tolist()
    ([1], [2], [-0.5])
    """
    search = PairSearch(sim, confidence, limit, cheap, groups, distance, rng)
    search.m = whole_number(m, "m", 1, search.n_pairs)
    search.run(recall)
    return _result(search, recall)


def _result(search: PairSearch, recall: float | None) -> SimilarPairs:
    """Return the hits that were found, from the most similar on."""
    paid = search.paid
    given, m = search.given, 0
    if isinstance(given, Joined):
        m, given = given.m, check_similarity(given.base)
    hits = np.flatnonzero(paid.nearness >= search.cut())
    order = np.lexsort((paid.j[hits], paid.i[hits], -paid.nearness[hits]))
    hits = hits[order][: search.m or None]
    promised, values = search.promised(), paid.sign * paid.nearness[hits]
    least = values[-1] if search.m and hits.size else paid.sign * search.threshold
    return SimilarPairs(
        read_only(paid.i[hits]),
        read_only(paid.j[hits] - m),
        read_only(values.astype(search.sim.dtype)),
        promised,
        search.reached(recall),
        paid.calls,
        float(least),
        search.distance,
        given,
    )
