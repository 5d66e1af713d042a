r"""All pairs at least so similar, and how sure it is that few are missing.

.. math::
    \text{recall} \ge \frac{F}{F + M_\ell - x_\ell} , \\
    M_\ell = \max \{ M : P(X \le x_\ell \mid U, M, s) \ge \alpha_\ell \} , \qquad
    \alpha_\ell = \frac{6 \, (1 - \text{confidence})}{\pi^2 \ell^2}

Promising pairs are paid for in rounds. Then a uniform sample of s of the U pairs not
paid for is: X, the hits in it, is hypergeometric if M of the U pairs are hits, whatever
was paid for before and why. So each look errs with probability :math:`\alpha_\ell` at
most; these add up to 1 - confidence, and all bounds hold together, however often one
looks and whenever one stops. F counts all hits found, those of the sample too. A sample
that was not enough is continued, which is one more look at a larger one; once pairs
are paid for by choice the next sample is of what is left then, and an earlier bound
still holds, less what was found since.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import pi
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from scipy.stats import chi2, hypergeom

from simlib._checks import (
    between_0_and_1,
    finite,
    most_calls,
    one_of,
    shaped,
    share,
    whole_number,
)
from simlib.landmarks import uniform
from simlib.lowrank.tall import read_only
from simlib.neighbors.cheap import Calibrated, as_companion, asked, strips
from simlib.neighbors.clusters import average_linkage, complete_linkage, components
from simlib.neighbors.graph import Mode, edge_weights
from simlib.neighbors.paid import Paid
from simlib.neighbors.predict import PairPredictor, mask
from simlib.neighbors.rounds import ALL_PAIRS, checked, price, warn_of_direction
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix

__all__ = ["SimilarPairs", "most_similar", "pairs_above"]

START = 0.005  # of the pairs, at random and in whole columns at first, each
ROUND = 0.003  # of the pairs, in a round, or
GROWTH = 0.1  # of those paid for, if that is more
SPARED = 16  # U / goal^2 calls that a sample is smaller by for each hit found before
N_LANDMARKS = RANK = 20
WORTH_A_WARNING = 10_000  # calls without a companion
SAMPLE = 2**16  # pairs by which the cut of a round is found


class SimilarPairs(NamedTuple):
    """Pairs of similar items, from the most similar on, and what is promised of them.

    Attributes
    ----------
    i, j : arrays of int, shape (m,)
        The two items of each pair, i < j; read-only, as the next.
    values : array of shape (m,)
        Their similarities, or distances.
    recall : float
        Lower bound of the share that was found, at the confidence that was asked for.
    reached : bool
        Whether that is the recall that was asked for; if not, the limit was too low.
    calls : int
        Pairs that were asked for, known before or not.
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
        promise = "reached" if self.reached else "not reached"
        return (
            f"SimilarPairs({len(self.i)} pairs, recall at least {self.recall:.3f} "
            f"({promise}), calls={self.calls})"
        )

    def to_csr(self, mode: Mode = "distance") -> csr_matrix:
        """Return the pairs as a sparse matrix, each in both orders.

        ``DBSCAN(eps, metric="precomputed")``, with the threshold of `pairs_above` in
        distances as ``eps``, makes of it what it makes of all distances; of
        similarities each ``eps`` from the largest entry on.

        Parameters
        ----------
        mode : "distance", "similarity" or "connectivity", default="distance"
            What the entries are, as in `NeighborGraph.to_csr`.

        Returns
        -------
        csr_matrix of shape (n, n)
            Indices are int32; each row goes from the nearest on. Zeros are stored.

        Raises
        ------
        ValueError
            No such mode.
        """
        n, entries = self.sim.n, edge_weights(self.values, mode, self.distance)
        rows, columns = np.append(self.i, self.j), np.append(self.j, self.i)
        order = np.lexsort((np.tile(np.arange(self.i.size), 2), rows))
        indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=n)))
        parts = columns[order].astype(np.int32), indptr.astype(np.int32)
        return csr_matrix((np.tile(entries, 2)[order], *parts), shape=(n, n))

    def to_frame(self) -> Any:
        """Return a ``pandas.DataFrame``: i, j, and similarity or distance."""
        try:
            from pandas import DataFrame  # type: ignore[import-untyped]
        except ImportError as error:
            raise ImportError("A frame needs pandas: pip install pandas.") from error
        name = "distance" if self.distance else "similarity"
        return DataFrame({"i": self.i, "j": self.j, name: self.values})

    def clusters(
        self, linkage: Literal["single", "complete", "average"] = "single"
    ) -> np.ndarray:
        """Return clusters of the items, cut at the threshold.

        Parameters
        ----------
        linkage : "single", "complete" or "average", default="single"
            Items that pairs connect, however long the chain; clusters in which every
            two items are a pair; or those between which the mean similarity, or
            distance, is no worse than the threshold.

        Returns
        -------
        array of int, shape (n,)
            The cluster of each item, counted from 0 in the order of their first items;
            an item without a pair is one alone.

        Raises
        ------
        ValueError
            No such linkage.
        BudgetExceeded, SimilarityError
            Average linkage, as for any request to `sim`.

        See Also
        --------
        sklearn.cluster.DBSCAN : takes `to_csr`; leaves items with few pairs as noise.

        Notes
        -----
        What linkage makes of all similarities, if no pair is missing. Average linkage
        evaluates the other pairs of each component of c > 2 items, of one group too:
        c (c - 1) / 2 calls, less what is known. Time and memory O(c^2).
        """
        one_of(linkage, ("single", "complete", "average"), "linkage")
        pairs, sign = (self.sim.n, self.i, self.j), -1 if self.distance else 1
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
    recall: float = 0.95,
    confidence: float = 0.95,
    limit: float | None = None,
    cheap: Source | Callable[[Any, Any], float] | ArrayLike | None = None,
    groups: ArrayLike | None = None,
    distance: bool = False,
    rng: int | np.random.Generator | None = None,
) -> SimilarPairs:
    """Find the pairs that are at least so similar: duplicates, links of two tables.

    Of them are made clusters: `SimilarPairs.clusters`, or by DBSCAN.

    Parameters
    ----------
    sim : Similarity
        n items under a symmetric similarity, 20,000 at most. What it knows answers at
        no call, but the search goes by what it has asked itself; by all, of
        ``sim.informed()``.
    threshold : float
        The least similarity, with `distance` the largest distance.
    recall : float, default=0.95
        Share of these pairs to be found. 1 evaluates all pairs.
    confidence : float, default=0.95
        Probability with which that is true where ``reached`` says so.
    limit : int, optional
        Most calls, known before or not. None means as many as it takes: most pairs, if
        `cheap` is None.
    cheap : Similarity, function, or array or sparse array of shape (n, d), optional
        A companion, as in `nearest`.
    groups : array of shape (n,), optional
        Only pairs of different groups count: the tables to be linked.
    distance : bool, default=False
        Whether small means near.
    rng : int, Generator or None
        Source of randomness.

    Returns
    -------
    SimilarPairs
        ``i``, ``j``, ``values``, ``recall``, ``reached``, ``calls``.

    Raises
    ------
    ValueError
        An asymmetric similarity, more than 20,000 items, a share that is none, a
        threshold that is no number, groups of another number of items.
    BudgetExceeded, SimilarityError
        As for any request to `sim` or `cheap`.

    See Also
    --------
    most_similar : the m most similar pairs, whatever their similarity.
    nearest : of each item.
    SimilarPairs.clusters : of the items, from these pairs.

    Notes
    -----
    If F pairs are found, that no more than F / 20 are missing takes a random sample of
    about 70 / F of the other pairs, however good the predictions. Without a companion
    it takes most pairs, and a warning says so before. Run again with the same `rng` it
    makes the same choices, and pays for what is not known.
    Flops: O(n^2 r) for a round, r at most 41. Memory: up to 45 n^2 bytes. Source:
    ours; the bound of a look is that of Clopper and Pearson (1934) for a finite
    population.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import cdist
    >>> from simlib import Similarity
    >>> from simlib.neighbors import pairs_above
    >>> x = np.random.default_rng(0).standard_normal((400, 3))
    >>> noise = np.random.default_rng(1).standard_normal((400, 2)) / 10
    >>> K = np.exp(-((x[:, None] - x) ** 2).sum(axis=2)) + noise @ noise.T
    >>> cheap = Similarity(x, cdist, batch="block")
    >>> pairs = pairs_above(Similarity.from_matrix(K), 0.3, cheap=cheap, rng=0)
    >>> pairs.reached, pairs.calls < 0.5 * 400 * 399 / 2
    (True, True)
    """
    threshold = finite(threshold, "threshold")
    hunt = Hunt(sim, confidence, limit, cheap, groups, distance, rng)
    with np.errstate(over="ignore"):
        threshold = float(hunt.sim.dtype.type(threshold))  # as values are rounded
    hunt.threshold = -threshold if distance else threshold
    return hunt.run(recall)


def most_similar(
    sim: Source,
    m: int,
    *,
    recall: float = 0.95,
    confidence: float = 0.95,
    limit: float | None = None,
    cheap: Source | Callable[[Any, Any], float] | ArrayLike | None = None,
    groups: ArrayLike | None = None,
    distance: bool = False,
    rng: int | np.random.Generator | None = None,
) -> SimilarPairs:
    """Find the m most similar pairs.

    Parameters
    ----------
    sim : Similarity
        n items under a symmetric similarity, 20,000 at most.
    m : int
        How many pairs, from 1 to all of them.
    recall, confidence, limit, cheap, groups, distance, rng
        As in `pairs_above`; `recall` is the share of the m pairs that are among the m
        most similar ones.

    Returns
    -------
    SimilarPairs
        m pairs, or fewer where the limit did not pay for m.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        As in `pairs_above`.

    See Also
    --------
    pairs_above : all pairs that are similar enough.

    Notes
    -----
    Those missing are among the unpaid pairs that are more similar than the m-th found
    when a sample is drawn, which is bounded as in `pairs_above`.

    Examples
    --------
    >>> from simlib import Similarity
    >>> from simlib.neighbors import most_similar
    >>> sim = Similarity([0.0, 1.0, 1.5, 9.0], lambda x, y: -abs(x - y))
    >>> pairs = most_similar(sim, 1, rng=0)
    >>> pairs.i.tolist(), pairs.j.tolist(), pairs.values.tolist()
    ([1], [2], [-0.5])
    """
    hunt = Hunt(sim, confidence, limit, cheap, groups, distance, rng)
    hunt.m = whole_number(m, "m", 1, hunt.n_pairs)
    return hunt.run(recall)


class Hunt:
    """The search of either verb, with its arguments.

    A hit has at least the nearness `threshold`, or m > 0 says how many there are;
    `bound` is of the hits that are not found, after so many `looks` at samples.
    """

    def __init__(
        self,
        sim: Source,
        confidence: float,
        limit: float | None,
        cheap: Any,
        groups: ArrayLike | None,
        distance: bool,
        rng: int | np.random.Generator | None,
    ):
        self.given = checked(sim)
        self.sim = sim = self.given.run()
        self.n = n = sim.n
        if n > ALL_PAIRS:
            raise ValueError(
                f"Pairs are hunted among {ALL_PAIRS} items at most; these are {n}. "
                "Take the pairs of `nearest`, whose values are exact."
            )
        self.alpha = 1 - between_0_and_1(confidence, "confidence")
        limit = np.inf if limit is None else most_calls(limit, "limit")
        groups = None if groups is None else _labels(groups, n)
        sizes = np.ones(n) if groups is None else np.bincount(groups)
        self.n_pairs = (n * n - int(np.square(sizes).sum())) // 2
        if self.n_pairs == 0:
            raise ValueError("All items are of one group: there are no pairs.")
        self.distance, self.rng, self.looks = distance, np.random.default_rng(rng), 0
        self.cheap = None if cheap is None else as_companion(cheap, sim)
        self.paid = Paid(sim, 1, -1 if distance else 1, groups)
        self.paid.limit = min(limit, sim.remaining)
        self.threshold, self.m, self.bound = np.inf, 0, np.inf

    def run(self, recall: float) -> SimilarPairs:
        """Search until so much is promised, or the limit is spent."""
        share(recall, "recall")
        most = min(price(self.given) * self.n_pairs, self.given.cost((None, None)))
        limit = self.paid.limit
        if self.cheap is None and recall < 1 and WORTH_A_WARNING < most <= limit:
            warnings.warn(
                f"Without a companion a promise takes most of {most} calls. Pass "
                "`cheap`; or a `limit`, at which you are told what is promised.",
                UserWarning,
                stacklevel=3,
            )
        with self.sim.progress_bar(min(limit, most)) as show:
            self._begin()
            warn_of_direction(self.sim, self.paid.nearness, self.distance)
            while self.promised() < recall and self._left():
                show(hits=self._hits(), promised=f"{self.promised():.0%}")
                if not self._round(recall):
                    break
        return self._result(recall)

    def _round(self, recall: float) -> bool:
        """Pay for promising pairs, and look at a sample if it is time to.

        Returns whether anything was evaluated.
        """
        before, cut, paid = self._hits(), self._cut(), 0
        if recall < 1:
            paid = self.pay(self._promising())
            if paid == 0:
                return False
        gain = SPARED * self._left() * (self._hits(cut) - before)
        return gain > paid * self._goal(recall) ** 2 or self._sample(recall)

    def _left(self) -> int:
        """Return how many pairs are not paid for."""
        return self.n_pairs - self.paid.i.size

    def _goal(self, recall: float) -> float:
        """Return how many hits may be missing."""
        if self.m:
            return self.m * (1 - recall)
        return self._hits() * (1 - recall) / recall

    def _cut(self) -> float:
        """Return the least nearness of a hit, as far as it is known."""
        if self.m == 0:
            return self.threshold
        if self.paid.i.size < self.m:
            return -np.inf
        place = self.paid.i.size - self.m
        return float(np.partition(self.paid.nearness, place)[place])

    def _hits(self, cut: float | None = None) -> int:
        cut = self._cut() if cut is None else cut
        return int(np.count_nonzero(self.paid.nearness >= cut))

    def promised(self) -> float:
        """Return the lower bound of the recall."""
        if self._left() == 0:
            return 1.0
        if self.m:
            found = 0 if self.paid.i.size < self.m else self.m
            return max(0.0, 1 - self.bound / self.m) if found else 0.0
        hits = self._hits()
        return hits / (hits + self.bound) if hits else 0.0

    # Paying

    def pay(self, keys: np.ndarray) -> int:
        """Evaluate new pairs as far as the limit goes; return how many."""
        found, number = self._hits(), None
        while number is None:
            try:
                number = self.paid.pay(keys)
            except BudgetExceeded:  # the similarity's limit pays for fewer
                keys = keys[: keys.size // 2]
        if not self.m:
            self.bound -= self._hits() - found
        if self.bound < 0:  # there were more than it allowed: it was wrong
            self.bound = np.inf
        return number

    def draw(self, number: int) -> np.ndarray:
        """Draw pairs that are not paid for, uniformly without replacement."""
        n, left = self.n, self._left()
        number = min(number, left)
        if number > left / 4 or left < n * n / 40:  # too many would be drawn in vain
            keys = self.paid.unpaid(*np.triu_indices(n, 1))
            return self.rng.permutation(keys)[:number]
        drawn = np.zeros(0, np.int64)
        while drawn.size < number:
            i, j = self.rng.integers(n, size=(2, int(number * n * n / left) + 100))
            drawn = np.append(drawn, self.paid.unpaid(i, j))
            drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
        return drawn[:number]

    # Promising pairs

    def _begin(self) -> None:
        """Pay for some random pairs and columns, and make the features."""
        n, paid, number = self.n, self.paid, max(20, int(START * self.n_pairs))
        S = uniform(n, n, rng=self.rng)[: min(n, N_LANDMARKS, max(1, number // n))]
        columns = np.repeat(np.arange(n), S.size), np.tile(S, n)
        self.pay(np.unique(paid.unpaid(*columns)))
        self.pay(self.draw(number))
        companion = None
        if self.cheap is not None and paid.i.size:
            values = asked(self.cheap.blank().pairs, paid.i, paid.j)
            companion = Calibrated(self.cheap, values, paid.nearness)
            companion.read()
        self.predictor = PairPredictor(paid, companion, S, RANK)

    def _promising(self) -> np.ndarray:
        """Return the keys of the unpaid pairs of the largest prediction, in order."""
        n, paid, predictor = self.n, self.paid, self.predictor
        predictor.update()
        number = int(max(100, ROUND * self.n_pairs, GROWTH * paid.i.size))
        part = 1.5 * min(number, self._left()) / self._left()
        i, j = self.rng.integers(n, size=(2, min(SAMPLE, 8 * self.n_pairs)))
        some, cut = np.divmod(paid.unpaid(i, j), n), -np.inf
        if part < 1 and some[0].size:
            cut = np.quantile(predictor.pairs(*some), 1 - part)
        found, scores = [], []
        for rows in strips(n, n):
            predicted, _ = predictor.rows(rows)
            good = predicted >= cut
            good &= ~mask(predictor.residuals, rows) & (rows[:, None] < np.arange(n))
            a, j = good.nonzero()
            counts = paid.allowed(rows[a], j)
            a, j = a[counts], j[counts]
            found.append(rows[a] * n + j)
            scores.append(predicted[a, j])
        keys, score = np.concatenate(found), np.concatenate(scores)
        return keys[np.argsort(-score, kind="stable")[: min(number, self._left())]]

    # Looking

    def _sample(self, recall: float) -> bool:
        """Look at random samples until enough is promised or it is hopeless.

        Returns whether anything was evaluated.
        """
        U, cut = self._left(), self._cut()
        s = x = 0
        while s < U:
            self.looks += 1
            alpha = 6 * self.alpha / (pi * self.looks) ** 2
            goal = self._goal(recall)
            wanted = _sample_size(U, x, goal, alpha) if goal > 0 else U
            wanted = max(wanted, s + s // 4, s + 1)  # each look costs confidence
            before = self._hits(cut)
            got = self.pay(self.draw(wanted - s))
            if got == 0:
                return s > 0
            s, x = s + got, x + self._hits(cut) - before
            self.bound = min(self.bound, _most_hits(U, x, s, alpha) - x)
            if self.promised() >= recall or self.paid.left <= 0:
                return True
            if _sample_size(U, x, goal, alpha) > 2 * s:  # too many are missing
                return True
        return True

    def _result(self, recall: float) -> SimilarPairs:
        paid = self.paid
        hits = np.flatnonzero(paid.nearness >= self._cut())
        order = np.lexsort((paid.j[hits], paid.i[hits], -paid.nearness[hits]))
        hits = hits[order][: self.m or None]
        promised, values = self.promised(), paid.sign * paid.nearness[hits]
        least = values[-1] if self.m and hits.size else paid.sign * self.threshold
        return SimilarPairs(
            read_only(paid.i[hits]),
            read_only(paid.j[hits]),
            read_only(values.astype(self.sim.dtype)),
            promised,
            promised >= recall,
            paid.calls,
            float(least),
            self.distance,
            self.given,
        )


def _labels(groups: ArrayLike, n: int) -> np.ndarray:
    groups = shaped(np.asarray(groups), (n,), "groups")
    try:
        return np.unique(groups, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(
            "`groups` must name all groups alike, by numbers or by strings, those of "
            f"no name too: {error}."
        ) from error


def _most_hits(U: int, x: int, s: int, alpha: float) -> int:
    """Return the most hits among U pairs of which a sample of s would show so few."""
    low, high = x, U - s + x
    while low < high:
        middle = (low + high + 1) // 2
        fits = hypergeom.cdf(x, U, middle, s) >= alpha
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _sample_size(U: int, x: int, goal: float, alpha: float) -> int:
    """Return a sample that promises no more misses than that, if it shows x hits."""
    events = chi2.ppf(1 - alpha, 2 * (x + 1)) / 2
    return int(np.ceil(U * -np.expm1(-1.02 * events / (np.floor(goal) + x + 0.5)))) + 1
