r"""The search for similar pairs: rounds of promising pairs, and samples of the others.

.. math:: \text{recall} \ge \frac{F}{F + M_\ell - x_\ell}

A hit is a pair that is similar enough. F is the number of hits found. A look, at a
uniform sample of the unpaid pairs, gives the bound :math:`M_\ell - x_\ell` of the
missing hits, see `simlib.neighbors.recall_bound`. An earlier bound still holds, minus
the hits found since.
"""

from __future__ import annotations

import warnings
from math import inf, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from simlib._checks import inside, most_calls, shaped, share
from simlib.landmarks import uniform
from simlib.neighbors.cheap import (
    ENDS,
    Calibrated,
    as_companion,
    asked,
    direction,
    ends,
    rank_correlation,
)
from simlib.neighbors.joined import Joined, joined_companion
from simlib.neighbors.paid import Paid, among, payable
from simlib.neighbors.pair_numbers import PairNumbers, merged
from simlib.neighbors.pair_queue import PairQueue, is_listed
from simlib.neighbors.predict import PairPredictor
from simlib.neighbors.recall_bound import alpha, most_hits, sample_size
from simlib.neighbors.rounds import checked, price, warn_of_direction
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.source import Source
from simlib.similarity.views import check_similarity

__all__ = ["PairSearch"]

START = 0.005  # share of the pairs at random, and in whole columns, at the start,
OF_LIMIT = 0.05  # or share of the limit, if that is less
COLUMN = 0.25  # share of the limit, times the squared part of random pairs that a
# companion does not explain: no column is paid for if it costs more
AT_MOST = 0.125  # share of the limit in a round
ROUND = 0.003  # share of the pairs in a round, but
EACH = 10  # at most so many for every item, also at the start; or
GROWTH = 0.1  # share of the paid pairs, if that is more
LITTLE = 0.01  # share of the hits: without a promise a round that adds no more is idle;
# less for a round that is smaller than `GROWTH`
IDLE, ENOUGH, MOST_IDLE = 2, 10, 20  # a search without a promise ends after so many
# idle rounds in a row, if they have as many pairs as brought `ENOUGH` hits before or
# `MOST_IDLE` for every item, and as many as `IDLE` first rounds
SPARED = 64  # U / goal^2 calls that a sample is smaller by for each hit found before
N_LANDMARKS = RANK = 20
NEIGHBORS = 4  # neighbours whose neighbours are candidates, if candidates are listed
AT_ONCE = 2**21  # pairs of a sample at a time
FADES = 0.5  # of the paid pairs: after so many pairs the rate of hits falls to 1/e
WITHOUT = 0.92  # of the pairs: the price of a promise without a companion
WORTH_A_WARNING = 10_000  # calls: a promise that takes fewer gives no warning
MOST, MANY = 0.5, 100  # a warning if this share of so many random pairs are hits


class PairSearch:
    """The search of `pairs_above`, by `threshold`, and of `most_similar`, by `m`."""

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
        self.given = check_similarity(sim)
        if isinstance(self.given.extent, tuple):
            if groups is not None:
                raise ValueError("Two collections are groups: leave `groups` out.")
            groups = np.repeat([0, 1], self.given.shape)
            if cheap is not None:
                cheap = joined_companion(cheap, self.given, distance)
            self.given = Joined(self.given)
        checked(self.given)
        self.sim = sim = self.given.run()
        self.n = n = sim.n
        self.confidence = inside(confidence, "confidence", 0, 1)
        limit = inf if limit is None else most_calls(limit, "limit")
        groups = None if groups is None else _labels(groups, n)
        self.numbers = PairNumbers(n, groups)
        self.n_pairs = self.numbers.count
        if self.n_pairs == 0:
            raise ValueError("All items are of one group: there are no pairs.")
        self.distance, self.rng, self.looks = distance, np.random.default_rng(rng), 0
        if cheap is not None:
            cheap = as_companion(cheap, sim, distance=distance)
        self.cheap = cheap
        k = NEIGHBORS if is_listed(self.n_pairs, self.cheap) else 1
        self.paid = Paid(sim, k, -1 if distance else 1, groups)
        self.paid.limit = min(limit, sim.remaining)
        self.seen = np.sort(self.numbers.of(self.paid.i, self.paid.j))
        self._round = min(ROUND * self.n_pairs, EACH * n)
        self.price, self.spent = price(self.given), False
        self.threshold, self.m, self.bound = inf, 0, inf

    def run(self, recall: float | None) -> None:
        """Search until `recall` is promised, rounds find little, or nothing is left."""
        wanted = 1.0 if recall is None else share(recall, "recall")
        every = min(self.price * self.n_pairs, self.given.cost((None, None)))
        rounds = idle = stale = told = 0
        with self.sim.progress_bar(min(self.paid.limit, every)) as show:
            self._begin()
            warn_of_direction(self.sim, self.paid.nearness, self.distance)
            self._warn_of_hits()
            while not self.spent and self.promised() < wanted:
                before, cut = self._hits(), self.cut()
                whole = recall == 1 and self._pays_for_all()
                near = self.pay(self.seen[:0] if whole else self._promising())
                found, rounds = self._new(near, cut), rounds + 1
                if recall is None:
                    show(hits=self._hits())
                    size = min(1, near.size / (GROWTH * self.seen.size))
                    new = found > LITTLE * size * before
                    idle, stale = (0, 0) if new else (idle + 1, stale + near.size)
                    if near.size == 0 or (idle >= IDLE and stale >= self._enough()):
                        break
                    continue
                gain, goal = SPARED * self._left() * found, self._goal(recall)
                enough = gain <= near.size * goal**2
                if near.size and goal < 1 and not self._pays_for_all():
                    enough = False  # a look would take all
                ahead = int(self._ahead(recall, near) / self.n_pairs * every)
                show(hits=self._hits(), promised=f"{self.promised():.0%}", ahead=ahead)
                if not told and (enough or rounds == 2):
                    self._warn(recall, ahead, every)
                    told = 1
                if enough:
                    self._look(recall)

    def _pays_for_all(self) -> bool:
        """Tell whether the limit pays for all unpaid pairs."""
        return self.price * self._left() <= self.paid.left

    def _enough(self) -> float:
        """Return how many pairs in idle rounds end a search without a promise."""
        each = self.seen.size / max(1, self._hits())
        return max(min(ENOUGH * each, MOST_IDLE * self.n), IDLE * self._round)

    def reached(self, recall: float | None) -> bool:
        """Tell whether the search reached its aim, and was not ended by the limit."""
        if recall is None:
            return not self.spent and (self.price <= self.paid.left or not self._left())
        return self.promised() >= recall

    def _left(self) -> int:
        """Return how many pairs are not paid for."""
        return self.n_pairs - self.seen.size

    def _goal(self, recall: float) -> float:
        """Return how many hits may be missing for this recall."""
        if self.m:
            return self.m * (1 - recall)
        return self._hits() * (1 - recall) / recall

    def cut(self) -> float:
        """Return the least nearness of a hit; of m pairs, that of the m-th so far."""
        if self.m == 0:
            return self.threshold
        place = self.paid.nearness.size - self.m
        if place < 0:
            return -inf
        return float(np.partition(self.paid.nearness, place)[place])

    def _hits(self, cut: float | None = None) -> int:
        cut = self.cut() if cut is None else cut
        hits = int(np.count_nonzero(self.paid.nearness >= cut))
        return min(hits, self.m or hits)

    def _new(self, near: np.ndarray, cut: float) -> int:
        """Count the hits among new pairs; with m only pairs nearer than the m-th."""
        return int(np.count_nonzero(near > cut if self.m else near >= cut))

    def promised(self) -> float:
        """Return the lower bound of the recall."""
        if self._left() == 0:
            return 1.0
        hits = self._hits()
        if self.m:
            return max(0.0, 1 - self.bound / self.m) if hits >= self.m else 0.0
        return hits / (hits + self.bound) if hits else float(self.bound == 0)

    def _ahead(self, recall: float, near: np.ndarray) -> float:
        """Estimate the pairs to come: those of the last look, and those of rounds.

        The number of hits is estimated from the first random sample, minus one standard
        deviation, or two if the last round found no hit. Rounds end when a hit costs
        more calls than it spares the look. The rate of hits falls slowly as the missing
        hits are found.
        """
        U, cut = self._left(), self.threshold
        if self.m:
            likely, goal = float(self.m), self._goal(recall)
            cut = float(np.quantile(self.first, 1 - self.m / self.n_pairs))
        else:
            x = np.count_nonzero(self.first >= cut)
            sure = x - (1 if self._new(near, cut) else 2) * sqrt(x)
            likely = sure * self.n_pairs / max(1, self.first.size)
            goal = max(likely, self._hits()) * (1 - recall) / recall
        if goal * U == 0:
            return U
        number: float = sample_size(U, 0, goal, alpha(self.looks + 1, self.confidence))
        missing = max(0, likely - self._hits(cut))
        rate = max(self._new(near, cut) / max(1, near.size), missing / U)
        last = goal**2 / (SPARED * U)
        if rate > last:
            number += max(missing / rate, FADES * self.seen.size) * log(rate / last)
            if self.cheap is None:
                number = max(number, WITHOUT * self.n_pairs)
        return min(U, number)

    def _warn_of_hits(self) -> None:
        """Warn if most random pairs are hits."""
        size, near = self.first.size, np.count_nonzero(self.first >= self.threshold)
        if near > MOST * max(size, MANY):
            cause = "similarities, leave out" if self.distance else "distances, pass"
            warnings.warn(
                f"Of {size} random pairs {near} pass the threshold. If these are "
                f"{cause} distance=True.",
                UserWarning,
                stacklevel=4,
            )

    def _warn(self, recall: float, ahead: int, every: int) -> None:
        """Warn if a promise takes most of all calls, or more than the limit leaves."""
        left = self.paid.left
        if recall < 1 and ahead > WORTH_A_WARNING and ahead > min(left, every / 2):
            limit = "" if left == inf else f" The limit leaves {left:.0f}."
            warnings.warn(
                f"A promised recall of {recall:g} takes about {ahead} more calls; all "
                f"pairs take {every}.{limit} Pass a better `cheap`, or recall=None, "
                "which promises nothing.",
                UserWarning,
                stacklevel=4,
            )

    # Paying

    def pay(self, numbers: np.ndarray, least: float = -inf) -> np.ndarray:
        """Evaluate unpaid pairs, from the first on as far as the limit allows.

        Return their nearness. The predictor learns from those at least as near as
        `least`.
        """
        i, j = self.numbers.pairs(numbers)
        size, left, values = numbers.size, self.paid.left, None
        if size * self.price > left:
            size, _ = payable(self.sim, i, j, left)
        while values is None:
            keys = np.sort(i[:size] * self.n + j[:size])  # sorted pairs are found fast
            pairs = np.divmod(keys, self.n)
            calls = self.sim.cost(pairs=pairs)
            try:
                values = self.sim.pairs(*pairs)
            except BudgetExceeded:  # the similarity's limit pays for fewer
                size //= 2
        self.spent = size == 0 < numbers.size
        self.paid.calls += calls
        self.seen = merged(self.seen, np.sort(numbers[:size]))
        nearness = self.paid.sign * values.astype(float)
        self.bound -= 0 if self.m else np.count_nonzero(nearness >= self.threshold)
        if self.bound < 0:  # more hits than the bound allowed: it was wrong
            self.bound = inf
        near = nearness >= least
        self.paid.add(pairs[0][near], pairs[1][near], values[near])
        return nearness

    # Promising pairs

    def _begin(self) -> None:
        """Pay for some random pairs and columns, and make the features."""
        n, paid = self.n, self.paid
        number = min(START * self.n_pairs, EACH * n, OF_LIMIT * paid.limit / self.price)
        number, before = max(20, int(number)), paid.i.size
        self.first = self.pay(self.numbers.draw(self.rng, self.seen, number))
        least, sign, companion = 1, 0, None
        if self.cheap is not None and self.first.size:
            values = self._cheap(before)
            unexplained = 1 - abs(rank_correlation(values, paid.nearness[before:]))
            dear = n * self.price > COLUMN * unexplained**2 * paid.limit
            least, sign = int(not dear), self._direction(min(ENDS, number // 4))
        S = uniform(n, n, rng=self.rng)[: min(n, N_LANDMARKS, max(least, number // n))]
        i, j = np.repeat(np.arange(n), S.size), np.tile(S, n)
        counts = paid.allowed(i, j)
        columns = merged(self.seen[:0], np.sort(self.numbers.of(i[counts], j[counts])))
        self.pay(columns[~among(columns, self.seen)])
        if self.cheap is not None and paid.i.size:
            companion = Calibrated(self.cheap, self._cheap(), paid.nearness, sign)
            companion.spread()
        self.queue = PairQueue(PairPredictor(paid, companion, S, RANK), self.numbers)

    def _cheap(self, first: int = 0) -> np.ndarray:
        """Ask the companion for the paid pairs, from the pair `first` on."""
        assert self.cheap is not None
        return asked(self.cheap.blank().pairs, self.paid.i[first:], self.paid.j[first:])

    def _direction(self, most: int) -> int:
        """Return the sign of the companion, by paying for the two ends of some rows."""
        assert self.cheap is not None
        rows, high, low = ends(self.cheap, self.rng, self.paid.allowed, most)
        i, j = np.tile(rows, 2), np.append(high, low)
        numbers = np.unique(self.numbers.of(i, j))
        self.pay(numbers[~among(numbers, self.seen)])
        near, far = self.paid.sign * self.sim.peek(i, j).astype(float).reshape(2, -1)
        return direction(near, far)

    def _promising(self) -> np.ndarray:
        """Return the numbers of the most promising unpaid pairs, for a round."""
        number = max(100, self._round, GROWTH * self.seen.size)
        number = min(number, max(100, AT_MOST * self.paid.limit / self.price))
        number = min(number, max(1, self.paid.left / self.price), self._left())
        return self.queue.take(int(number), self.seen, self.cut())

    # Looking

    def _look(self, recall: float) -> None:
        """Pay for a growing random sample until the recall is promised or hopeless.

        Its possible sizes do not depend on its values, and each of them counts as a
        look, even if it is passed over.
        """
        U, cut, s, x, size = self._left(), self.cut(), 0, 0, 0
        while s < U and not self.spent:
            goal, needed = self._goal(recall), U + 1
            while size < min(needed, U):
                self.looks += 1
                doubt = alpha(self.looks, self.confidence)
                if goal > 0:
                    needed = sample_size(U, x, goal, doubt)
                size = needed if size == 0 else size + size // 4 + 1
            while s < min(size, U) and not self.spent:
                some = min(min(size, U) - s, AT_ONCE)
                near = self.pay(self.numbers.draw(self.rng, self.seen, some), cut)
                s, x = s + near.size, x + self._new(near, cut)
                if goal == 0 < x:  # the first hits
                    return
            if s:
                self.bound = min(self.bound, most_hits(U, x, s, doubt) - x)
            hopeless = sample_size(U, x, goal, doubt) > 2 * s
            if self.promised() >= recall or hopeless:
                break


def _labels(groups: ArrayLike, n: int) -> np.ndarray:
    groups = shaped(np.asarray(groups), (n,), "groups")
    try:
        return np.unique(groups, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(
            "`groups` must name all groups alike, by numbers or by strings, those of "
            f"no name too: {error}."
        ) from error
