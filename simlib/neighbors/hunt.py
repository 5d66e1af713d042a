"""The search for similar pairs, by the formulas of `simlib.neighbors.pairs`."""

from __future__ import annotations

import warnings
from math import pi
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, hypergeom

from simlib._checks import inside, most_calls, shaped, share
from simlib.landmarks import uniform
from simlib.neighbors.cheap import Calibrated, as_companion, asked, strips
from simlib.neighbors.paid import Paid
from simlib.neighbors.predict import PairPredictor, mask
from simlib.neighbors.rounds import ALL_PAIRS, checked, price, warn_of_direction
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.source import Source

__all__ = ["Hunt"]

START = 0.005  # of the pairs, at random and in whole columns at first, each
ROUND = 0.003  # of the pairs, in a round, or
GROWTH = 0.1  # of those paid for, if that is more
SPARED = 16  # U / goal^2 calls that a sample is smaller by for each hit found before
N_LANDMARKS = RANK = 20
WORTH_A_WARNING = 10_000  # calls without a companion
SAMPLE = 2**16  # pairs by which the cut of a round is found


class Hunt:
    """The search of either verb: hits are at least so near, or m of them."""

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
        self.alpha = 1 - inside(confidence, "confidence", 0, 1)
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

    def run(self, recall: float) -> None:
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

    def _round(self, recall: float) -> bool:
        """Pay for promising pairs, perhaps look at a sample; say whether it paid."""
        before, cut, paid = self._hits(), self.cut(), 0
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

    def cut(self) -> float:
        """Return the least nearness of a hit, as far as it is known."""
        if self.m == 0:
            return self.threshold
        if self.paid.i.size < self.m:
            return -np.inf
        place = self.paid.i.size - self.m
        return float(np.partition(self.paid.nearness, place)[place])

    def _hits(self, cut: float | None = None) -> int:
        cut = self.cut() if cut is None else cut
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
        """Look at random samples until enough is promised or it is hopeless."""
        U, cut = self._left(), self.cut()
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
