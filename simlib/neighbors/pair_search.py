r"""The search for similar pairs: rounds of promising pairs, and what ends them.

.. math::
    b = \max \Big( 100, \min (0.003 \, N, 10 \, n), \frac{P}{10} \Big)

A round learns from the P pairs that are paid for, predicts the others of all N, and
pays for the b most promising, or fewer if the limit is low. What is looked for says
`simlib.neighbors.hits`; when it ends say `promise` and `idle`.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from simlib._checks import most_calls, shaped, warn
from simlib.approximation.companion import as_companion
from simlib.landmarks import uniform
from simlib.neighbors.cheap import (
    ENDS,
    Calibrated,
    asked,
    direction,
    ends,
    rank_correlation,
)
from simlib.neighbors.hits import Hits
from simlib.neighbors.idle import Idle
from simlib.neighbors.joined import Joined, joined_companion
from simlib.neighbors.paid import Paid, payable
from simlib.neighbors.pair_numbers import PairNumbers, merged
from simlib.neighbors.pair_queue import PairQueue, is_listed
from simlib.neighbors.predict import PairPredictor
from simlib.neighbors.promise import Promise
from simlib.neighbors.rounds import checked, price, warn_of_direction
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.known import among
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

START = 0.005  # share of the pairs at random, and in whole columns, at the start,
OF_LIMIT = 0.05  # or share of the limit, if that is less
COLUMN = 0.25  # share of the limit, times the squared part of random pairs that a
# companion does not explain: if a column costs more, none is paid for unless the
# random pairs cost as much
ROUND = 0.003  # share of the pairs in a round, but
EACH = 10  # at most so many for every item, also at the start; or
GROWTH = 0.1  # share of the paid pairs, if that is more
AT_MOST = 0.125  # share of the limit in a round
N_LANDMARKS = RANK = 20
NEIGHBORS = 4  # neighbours whose neighbours are candidates, if candidates are listed
MOST, MANY = 0.5, 100  # a warning if this share of so many random pairs are hits


class PairSearch:
    """The pairs of a similarity, those that are paid for, and rounds that pay."""

    def __init__(
        self,
        sim: Source,
        limit: float | None,
        cheap: Any,
        groups: ArrayLike | None,
        distance: bool,
        rng: int | np.random.Generator | None,
    ):
        self.asked = given = check_similarity(sim)
        self.n_rows = 0  # of two collections: its columns are the items after them
        if isinstance(given.extent, tuple):
            if groups is not None:
                raise ValueError("Two collections are groups: leave `groups` out.")
            groups = np.repeat([0, 1], given.shape)
            if cheap is not None:
                cheap = joined_companion(cheap, given, distance)
            self.n_rows, given = given.shape[0], Joined(given)
        checked(given)
        self.sim = sim = given.run()
        self.n = n = sim.n
        limit = inf if limit is None else most_calls(limit, "limit")
        groups = None if groups is None else _labels(groups, n)
        self.numbers = PairNumbers(n, groups)
        self.n_pairs = self.numbers.count
        if self.n_pairs == 0:
            raise ValueError("All items are of one group: there are no pairs.")
        self.distance, self.rng = distance, np.random.default_rng(rng)
        if cheap is not None:
            cheap = as_companion(cheap, sim, distance=distance)
        self.cheap = cheap
        k = NEIGHBORS if is_listed(self.n_pairs, self.cheap) else 1
        self.paid = Paid(sim, k, -1 if distance else 1, groups)
        self.paid.limit = min(limit, sim.remaining)
        self.seen = np.sort(self.numbers.of(self.paid.i, self.paid.j))
        self.first_round = min(ROUND * self.n_pairs, EACH * n)
        self.price, self.spent = price(given), False
        self.every = min(self.price * self.n_pairs, given.cost((None, None)))

    def run(
        self, hits: Hits, recall: float | None, confidence: float
    ) -> tuple[float, bool]:
        """Search until `recall` is promised, rounds find little, or nothing is left.

        Return the promised recall, and whether the limit sufficed.
        """
        rule: Idle | Promise = Idle(self, hits)
        if recall is not None:
            rule = Promise(self, hits, recall, confidence)
        with self.sim.progress_bar(min(self.paid.limit, self.every)) as show:
            self._begin()
            warn_of_direction(self.sim, self.paid.nearness, self.distance)
            self._warn_of_hits(hits)
            while self.n_left and not self.spent:
                cut = hits.cut(self.paid.nearness)
                whole = recall == 1 and self.pays_for_all()  # the look takes all
                near = self.pay(self.seen[:0] if whole else self._promising(cut))
                if rule.ends(near, hits.new(near, cut), show):
                    break
        return rule.promised(), rule.reached()

    @property
    def n_left(self) -> int:
        """How many pairs are not paid for."""
        return self.n_pairs - self.seen.size

    @property
    def growth(self) -> float:
        """How many pairs a round has, but for the first."""
        return GROWTH * self.seen.size

    def pays_for_all(self) -> bool:
        """Tell whether the limit pays for all pairs that are left."""
        return self.price * self.n_left <= self.paid.left

    def _warn_of_hits(self, hits: Hits) -> None:
        """Warn if most random pairs are hits."""
        size, near = self.first.size, hits.certain(self.first)
        if near > MOST * max(size, MANY):
            cause = "similarities, leave out" if self.distance else "distances, pass"
            warn(
                f"Of {size} random pairs {near} pass the threshold. If these are "
                f"{cause} distance=True."
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
        near = nearness >= least
        self.paid.add(pairs[0][near], pairs[1][near], values[near])
        return nearness

    def pay_random(self, number: int, least: float = -inf) -> np.ndarray:
        """Pay for so many random pairs, or all that are left."""
        return self.pay(self.numbers.draw(self.rng, self.seen, number), least)

    def _pay_pairs(self, i: np.ndarray, j: np.ndarray) -> None:
        """Pay for those of some pairs that are not paid for."""
        numbers = np.unique(self.numbers.of(i, j))
        self.pay(numbers[~among(numbers, self.seen)])

    # Promising pairs

    def _begin(self) -> None:
        """Pay for some random pairs and columns, and make the features."""
        n, paid = self.n, self.paid
        number = min(START * self.n_pairs, EACH * n, OF_LIMIT * paid.limit / self.price)
        number, before = max(20, int(number)), paid.i.size
        self.first = self.pay_random(number)
        least, sign, companion = 1, 0, None
        if (cheap := self.cheap) is not None and self.first.size:
            values = asked(cheap.blank().pairs, paid.i[before:], paid.j[before:])
            unexplained = 1 - abs(rank_correlation(values, paid.nearness[before:]))
            dear = n * self.price > COLUMN * unexplained**2 * paid.limit
            least, sign = int(not dear), self._direction(cheap, min(ENDS, number // 4))
        S = uniform(n, n, rng=self.rng)[: min(n, N_LANDMARKS, max(least, number // n))]
        i, j = np.repeat(np.arange(n), S.size), np.tile(S, n)
        counts = paid.allowed(i, j)
        self._pay_pairs(i[counts], j[counts])
        if cheap is not None and paid.i.size:
            values = asked(cheap.blank().pairs, paid.i, paid.j)
            companion = Calibrated(cheap, values, paid.nearness, sign)
            companion.spread()
        self.queue = PairQueue(PairPredictor(paid, companion, S, RANK), self.numbers)

    def _direction(self, cheap: SimilarityMatrix, most: int) -> int:
        """Return the sign of the companion, by paying for the two ends of some rows."""
        rows, high, low = ends(cheap, self.rng, self.paid.allowed, most)
        i, j = np.tile(rows, 2), np.append(high, low)
        self._pay_pairs(i, j)
        near, far = self.paid.sign * self.sim.peek(i, j).astype(float).reshape(2, -1)
        return direction(near, far)

    def _promising(self, cut: float) -> np.ndarray:
        """Return the numbers of the most promising unpaid pairs, for a round."""
        number = max(100, self.first_round, self.growth)
        number = min(number, max(100, AT_MOST * self.paid.limit / self.price))
        number = min(number, max(1, self.paid.left / self.price), self.n_left)
        return self.queue.take(int(number), self.seen, cut)


def _labels(groups: ArrayLike, n: int) -> np.ndarray:
    plain = np.asarray(groups, None if hasattr(groups, "dtype") else object)
    plain = shaped(plain, (n,), "groups")  # a list of 0 and "0" is none of strings
    try:
        if np.ma.is_masked(groups) or (plain != plain).any():
            raise TypeError("some are masked or NaN")
        return np.unique(plain, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(
            "`groups` must name all groups alike, by numbers or by strings, those of "
            f"no name too: {error}."
        ) from error
