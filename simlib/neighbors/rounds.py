r"""Nearest neighbours in rounds: predict unpaid pairs, pay for some, predict again.

Three predictions rank the other items for each item: "companion", its values;
"residual", the companion calibrated to the paid pairs plus the fits of its residuals;
and "shared", the number of neighbours that two items share. A round divides its calls
among them by the share of their last pairs that entered a list of nearest items.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, inf, sqrt
from typing import Any

import numpy as np

from simlib._checks import symmetric, warn, whole_number
from simlib.landmarks import uniform
from simlib.neighbors import loops
from simlib.neighbors.cheap import (
    Calibrated,
    asked,
    ends,
    factored,
    rank_correlation,
    strips,
    trial_size,
)
from simlib.neighbors.choice import FLOOR, Chosen, distinct, divide, first
from simlib.neighbors.paid import Paid, affordable
from simlib.neighbors.predict import Listed, PairPredictor, every_pair
from simlib.similarity.known import among
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

ALL_PAIRS = 20_000  # items at most for which all pairs are kept
N_ROUNDS = 16
FALLING = 0.85  # calls of a round over those before, with lists and a companion
FEW = 32  # random pairs beside a companion, if columns are too expensive
PILOT, LANDMARKS = 0.04, 0.16  # shares of the calls for whole columns: the first, all
ALONE, BESIDE = 1 / 4, 1 / 8  # most for the first, without and with a companion
UNSURE, CHANCE = 3 / 8, 3  # a companion is useless if the majority of its ends is below
# this share, and its rank correlation below so many standard deviations
RANK = 30  # of the residual columns
RELEARNT = 1.1  # times the paid pairs: the predictor then learns again, if candidates
# are listed and there is a companion
A_CALL = 2  # candidates for each call that an item can have, if they are listed
LEAST = 100  # candidates, if they are listed, at least
DEARER = 15  # cost of a listed candidate over that of an entry of a whole row
PRICED = 1000  # pairs that tell the price of a pair
SAMPLE = 2**16  # pairs to which the companion is calibrated at first
MATCHED = 2**24  # pairs of items that lack neighbours, at a time


def checked(sim: Source, least: int = 2) -> SimilarityMatrix:
    """Return a symmetric similarity of at least `least` items, or raise."""
    sim = check_similarity(sim)
    symmetric(
        sim,
        "This search",
        " Of two take nearest, or pairs_above, and not exact=True; for new rows "
        "nearest of sim.informed(), where sim has both and knows the old ones.",
    )
    if sim.n < least:
        raise ValueError("A single item has no neighbours.")
    return sim


def warn_of_direction(
    sim: SimilarityMatrix, nearness: np.ndarray, distance: bool
) -> None:
    """Warn if items are no nearer to themselves than to any other item."""
    own = sim.peek(np.arange(sim.n), np.arange(sim.n))
    own = own[~np.isnan(own)] * (-1 if distance else 1)
    top, low = own.max(initial=-inf), nearness.min(initial=inf)
    if own.size and top <= low < nearness.max(initial=-inf):
        cause = "similarities, leave out" if distance else "distances, pass"
        itself = (-top if distance else top) + 0.0  # and no -0
        warn(
            f"No item is as near to itself as any two are: {itself:.3g} for an item "
            f"with itself. If these are {cause} distance=True."
        )


def price(sim: SimilarityMatrix) -> int:
    """Return the calls for an unknown pair of items, one of which may be new."""
    return max(sim.orders, sim.blank().cost(pairs=([0], [sim.n - 1])))


class Rounds:
    """A search for the k nearest of every item, with the arguments of `nearest`."""

    def __init__(
        self,
        sim: SimilarityMatrix,
        k: int,
        limit: float,
        cheap: Any,
        distance: bool,
        rng: np.random.Generator,
        check: int = 0,
    ):
        self.sim, self.n = sim, sim.n
        self.k = whole_number(k, "k", 1, self.n - 1)
        self.rng, self.distance = rng, distance
        self.cheap = cheap
        self.paid = Paid(sim, self.k, -1 if distance else 1)
        self.history: list[dict[str, tuple[int, float]]] = []
        self.show: Callable[..., object] = lambda **_: None  # beside a progress bar
        self.names: tuple[str, ...] = ("residual", "shared")
        self.price = self._price()
        self._before = self.paid.degree.copy()  # pairs of each item that were known
        rows = f", and for the whole rows of {check}" if check else ""
        what = f"{self.k} neighbours of each of {self.n} items{rows}"
        least = self.price * min(self._reserve(self.paid.degree), self._unpaid())
        aside = self.price * check * self.n
        self.paid.limit = affordable(sim, limit, least, aside, what)

    def run(self) -> None:
        """Spend the limit in rounds."""
        if self.paid.left >= self.price * self._unpaid():
            self.paid.pay(self.paid.unpaid(*np.triu_indices(self.n, 1)))
            warn_of_direction(self.sim, self.paid.nearness, self.distance)
            return
        self._begin()
        warn_of_direction(self.sim, self.paid.nearness, self.distance)
        shares = divide((np.array(self.names) == self.names[0]).astype(float))
        weights = (FALLING if self.by_lists else 1.0) ** np.arange(N_ROUNDS)
        for t in range(N_ROUNDS):
            if t == N_ROUNDS - 1:
                self._fill()
            budget = self.paid.left * weights[t] / weights[t:].sum() / self.price
            due = self._due(budget)
            chosen = self._pay(self._choose(np.floor(shares * budget).astype(int), due))
            if any(keys.size for keys in chosen):
                k = max(1, round(self.k * (t + 1) / N_ROUNDS))
                rates = self._success(chosen, k)
                shares = divide(rates, FLOOR if 2 * (t + 1) < N_ROUNDS else 0)
                self.show(round=f"{t + 1}/{N_ROUNDS}", entered=f"{rates.max():.0%}")

    # The limit

    def _unpaid(self) -> int:
        """Return how many pairs are not paid for."""
        return self.n * (self.n - 1) // 2 - self.paid.i.size

    def _spares(self, keys: np.ndarray) -> bool:
        """Tell whether after these pairs every item can still get k neighbours."""
        items = np.concatenate(np.divmod(keys, self.n))
        degree = self.paid.degree + np.bincount(items, minlength=self.n)
        left = self.paid.left - self.price * keys.size
        return left >= self.price * self._reserve(degree)

    def _reserve(self, degree: np.ndarray) -> int:
        """Return how many more pairs give every item k neighbours, at most."""
        missing = int(np.maximum(self.k - degree, 0).sum())
        return ceil(missing / 2) + (self.k * self.k if missing else 0)

    def _price(self) -> int:
        """Return the calls for a pair: two if some pair is unknown in both orders."""
        i, j = self.rng.integers(self.n, size=(2, PRICED))
        unknown = (i != j) & np.isnan(self.sim.peek(i, j))
        keys = np.minimum(i, j)[unknown] * self.n + np.maximum(i, j)[unknown]
        i, j = np.divmod(np.unique(keys), self.n)
        if i.size == 0:  # hardly any pair is
            return price(self.sim)
        return ceil(self.sim.cost(pairs=(i, j)) / i.size)

    def _due(self, pairs: float) -> np.ndarray:
        """Tell the items that come first: those for which fewest pairs were known.

        With the pairs of the search so far and so many more they could catch up with
        the others. If nothing was known these are all items.
        """
        before, ordered = self._before, np.sort(self._before)
        fewer = np.searchsorted(ordered, before)
        behind = before * fewer - np.append(0, np.cumsum(ordered))[fewer]
        return behind < max(1, self.paid.calls / self.price + pairs)

    # The beginning

    def _begin(self) -> None:
        """Pay for whole columns or random pairs, and make the predictor."""
        n, k, pairs = self.n, self.k, self.paid.left / self.price
        order, alone = uniform(n, n, rng=self.rng), self.cheap is None
        S = order[: min(n, max(1, int(PILOT * pairs / n)))]
        most = (ALONE if alone else BESIDE) * pairs
        if S.size * n > most or pairs < 0.75 * n * k:
            most, few = 0, pairs / 10 if alone else min(pairs / 10, FEW)
            self._pay([self._random(max(1, int(few)))])
        elif not alone:
            most *= self._unexplained(self.cheap, pairs) ** 2
        S = S if S.size * n <= most else order[:0]
        self.paid.pay_columns(S)
        companion = self._calibrated()
        if S.size:
            missed = self._missed(companion, S, int(2 * pairs / n))
            more = order[S.size : min(n, int(LANDMARKS * missed * pairs / n))]
            self.paid.pay_columns(more)
            S = np.append(S, more)
        due = np.flatnonzero(self._due(self.paid.left / self.price))  # in some round
        m = min(n - 1, max(LEAST, A_CALL * int(2 * pairs / due.size)))
        listed = due.size > DEARER * m
        self.by_lists = listed and not alone
        if companion is not None and not listed:
            companion.spread()
            companion.read(due)
        self.predictor = PairPredictor(self.paid, companion, S, RANK)
        every = partial(every_pair, self.predictor, due)
        self.strips = Listed(self.predictor, m).strips if listed else every

    def _random(self, number: int) -> np.ndarray:
        """Return the keys of about `number` random unpaid pairs, or fewer."""
        i, j = self.rng.integers(self.n, size=(2, 2 * number + 16))
        due = np.flatnonzero(self._due(number))
        i = due[i % due.size]
        return self.rng.permutation(np.unique(self.paid.unpaid(i, j)))[:number]

    def _pay(self, chosen: list[np.ndarray]) -> list[np.ndarray]:
        """Pay for the first pairs, as many as leave calls for k neighbours of each."""
        while (keys := np.concatenate(chosen)).size and not self._spares(keys):
            chosen = [some[: some.size // 2] for some in chosen]
        self.paid.pay(keys)
        return chosen

    def _unexplained(self, cheap: SimilarityMatrix, pairs: float) -> float:
        """Test the companion on random pairs; return 1 minus its rank correlation."""
        paid, before = self.paid, self.paid.i.size
        self._pay([self._random(max(1, trial_size(pairs)))])
        new = slice(before if before < paid.i.size else 0, None)  # all, if none is new
        values = asked(cheap.blank().pairs, paid.i[new], paid.j[new])
        return 1 - abs(rank_correlation(values, paid.nearness[new]))

    def _calibrated(self) -> Calibrated | None:
        """Return the calibrated companion, one of the predictions.

        None if neither its ends nor its rank correlation show a direction.
        """
        if self.cheap is None:
            return None
        self.names = ("companion", *self.names)
        paid, votes = self.paid, np.zeros(0)
        rows, high, low = ends(self.cheap, self.rng)
        i, j = np.tile(rows, 2), np.append(high, low)
        keys = np.unique(paid.unpaid(i, j))
        if self._spares(keys):
            paid.pay(keys)
            near, far = paid.sign * self.sim.peek(i, j).astype(float).reshape(2, -1)
            votes = np.sign(near - far)
        opposite = votes.sum() < -UNSURE * votes.size and not self.distance
        if opposite and factored(self.cheap) is not None:
            warn(
                "Items whose vectors in `cheap` have the largest products are mostly "
                "farther apart than those with the smallest. If the values are "
                "distances, pass distance=True; if the vectors are of unlike lengths, "
                "normalize them."
            )
        some = self.rng.permutation(paid.i.size)[:SAMPLE]
        values = asked(self.cheap.blank().pairs, paid.i[some], paid.j[some])
        told = rank_correlation(values, paid.nearness[some]) * sqrt(some.size)
        unsure = abs(votes.sum()) < UNSURE * votes.size
        if unsure and abs(told) < CHANCE:
            self.names = self.names[1:]
        sign = int(np.sign(votes.sum()))
        calibrated = Calibrated(self.cheap, values, paid.nearness[some], sign)
        return calibrated if "companion" in self.names else None

    def _missed(self, companion: Calibrated | None, S: np.ndarray, m: int) -> float:
        """Return the share of the k nearest of some items that the companion misses."""
        if companion is None:
            return 1.0
        n, k = self.n, self.k
        itself = (S, np.arange(S.size))
        exact = self.paid.sign * np.array(self.sim.columns(S), dtype=float)
        cheap = companion.pairs(np.repeat(np.arange(n), S.size), np.tile(S, n))
        cheap = cheap.reshape(n, S.size)
        exact[itself] = cheap[itself] = -np.inf
        m = min(max(m, k), n - 1)
        best = np.argpartition(cheap, -m, axis=0)[-m:]
        kth = np.partition(exact, -k, axis=0)[-k]
        found = (np.take_along_axis(exact, best, axis=0) >= kth).sum(axis=0)
        return 1 - float(np.minimum(found, k).mean()) / k

    # A round

    def _choose(self, numbers: np.ndarray, due: np.ndarray) -> list[np.ndarray]:
        """Return the keys of `numbers` new pairs by each prediction, for items due."""
        predictor, pairs = self.predictor, (self.paid.i, self.paid.j)
        few = self.paid.i.size < RELEARNT * predictor.learnt
        if predictor.outgrown or not (self.by_lists and few):
            predictor.update()
        low, unit = predictor.unit()
        paid = {
            "companion": predictor.codes.astype(np.float32),
            "residual": predictor.pairs(*pairs, predictor.codes),
            "shared": np.zeros(0, np.float32),
        }
        found: dict[str, list[Chosen]] = {name: [] for name in self.names}
        for strip in self.strips():
            known = self.paid.numbers[strip.rows]
            strip.shared[~due[strip.rows]] = -np.inf
            free = np.minimum(strip.shared, 0)  # 0, or -inf for pairs to leave out
            scores = {"residual": strip.predicted, "shared": strip.shared}
            scores["shared"] += (strip.predicted - low) * unit
            scores["residual"] += free
            if "companion" in self.names:
                scores["companion"] = np.add(strip.codes, free, out=free)
            for name, number in zip(self.names, numbers, strict=True):
                others = paid[name][known.data - 1] if paid[name].size else paid[name]
                keep = min(ceil(4 * number / due.sum()) + 4, strip.columns.shape[1])
                own = scores[name], keep
                a, places, ranks, top = first(*own, known.indptr, others)
                i, j = strip.rows[a], strip.columns[a, places].astype(np.int64)
                keys = np.minimum(i, j) * self.n + np.maximum(i, j)
                found[name].append((keys, ranks, top))
        summed = self.names.index("companion") if "companion" in self.names else -1
        return distinct([*found.values()], numbers, summed)

    def _success(self, chosen: list[np.ndarray], k: int) -> np.ndarray:
        """Return for each prediction the share of pairs that entered a list of k."""
        kth, success = self.paid.values[:, k - 1], {}
        for name, keys in zip(self.names, chosen, strict=True):
            i, j = np.divmod(keys, self.n)
            values = self.paid.sign * self.sim.peek(i, j).astype(float)
            entered = (values >= kth[i]) | (values >= kth[j])
            success[name] = keys.size, float(entered.mean()) if keys.size else 0.0
        self.history.append(success)
        return np.array([rate for _, rate in success.values()])

    # The end

    def _fill(self) -> None:
        """Pay for pairs of items that lack neighbours, as the companion ranks them.

        First pairs in which both items lack neighbours, then pairs with any item.
        """
        n, paid, both = self.n, self.paid, True
        while (short := np.flatnonzero(paid.degree < self.k)).size:
            width = max(4 * self.k + 1, MATCHED // short.size)
            others = self.rng.permutation(short if both else n)[:width]
            step = strips(short.size, others.size)
            parts = [self._best_of(short[some], others) for some in step]
            keys, scores = map(np.concatenate, zip(*parts, strict=True))
            keys, places = np.unique(keys, return_index=True)
            keys = keys[np.argsort(-scores[places], kind="stable")]
            i, j = np.divmod(keys, n)
            if paid.pay(keys[loops.join(i, j, self.k - paid.degree, both)]) == 0:
                if not both:
                    break
                both = False

    def _best_of(
        self, items: np.ndarray, others: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return keys and scores of the most promising unpaid pairs of each item."""
        i, j = np.repeat(items, others.size), np.tile(others, items.size)
        keys = np.minimum(i, j) * self.n + np.maximum(i, j)
        if "companion" in self.names:
            scores = self.predictor.codes_at(i, j).astype(np.float32)
        else:
            scores = self.rng.random(i.size, np.float32)
        scores[(i == j) | among(keys, self.paid.keys)] = -np.inf
        scores = scores.reshape(items.size, -1)
        places, scores = loops.best(scores, min(4 * self.k + 1, others.size))
        rows, ranks = (places >= 0).nonzero()
        keys = keys.reshape(items.size, -1)[rows, places[rows, ranks]]
        return keys, scores[rows, ranks]
