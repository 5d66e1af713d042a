r"""Nearest neighbours in rounds: predict unpaid pairs, pay for some, predict again.

Three predictions rank the others for each item: the companion; the companion,
calibrated to what is paid for, plus the fits of what it leaves; and the number of
neighbours that two items share. A round divides its calls among them by the share of
their last ones that entered a list of nearest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import ceil, inf
from typing import Any

import numpy as np

from simlib._checks import symmetric, whole_number
from simlib.landmarks import uniform
from simlib.neighbors.cheap import Calibrated, as_companion, asked
from simlib.neighbors.choice import Chosen, distinct, divide, first, joined
from simlib.neighbors.paid import Paid
from simlib.neighbors.predict import EveryPair, Listed, PairPredictor, Strip
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

__all__ = ["ALL_PAIRS", "Rounds", "checked", "price", "warn_of_direction"]

ALL_PAIRS = 20_000  # items, most of which all pairs are predicted
N_ROUNDS = 11
PILOT, LANDMARKS = 0.04, 0.16  # shares of the calls for whole columns
RANK = 30  # of the residual columns
CANDIDATES_A_CALL = (
    2.0  # candidates for a call that an item can have, where these are listed
)
MOST_CANDIDATES = 2**26  # of all items together, likewise
PRICED = 1000  # pairs that tell the price of one
SAMPLE = 2**16  # pairs that tell the direction of a companion


def checked(sim: Source, least: int = 2) -> SimilarityMatrix:
    """Return a symmetric similarity of so many items at least, or raise."""
    sim = check_similarity(sim)
    symmetric(sim, "A search for neighbours")
    if sim.n < least:
        raise ValueError("A single item has no neighbours.")
    return sim


def warn_of_direction(
    sim: SimilarityMatrix, nearness: np.ndarray, distance: bool, stacklevel: int = 4
) -> None:
    """Warn where known items are farther from themselves than any from another."""
    own = sim.peek(np.arange(sim.n), np.arange(sim.n))
    own = own[~np.isnan(own)] * (-1 if distance else 1)
    top, low = own.max(initial=-inf), nearness.min(initial=inf)
    if own.size and top <= low < nearness.max(initial=-inf):
        one, other = ("similarities", "out") if distance else ("distances", "in")
        warnings.warn(
            f"No item is as near to itself as any two are: {abs(top):.3g} for an item "
            f"with itself. If these are {one}, leave {other} distance=True.",
            UserWarning,
            stacklevel=stacklevel,
        )


def price(sim: SimilarityMatrix) -> int:
    """Return the calls for a pair of which nothing is known."""
    return max(1, sim.blank().cost(pairs=([0], [sim.n - 1])))


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
        self.cheap = None if cheap is None else as_companion(cheap, sim)
        self.paid = Paid(sim, self.k, -1 if distance else 1)
        self.history: list[dict[str, tuple[int, float]]] = []
        self.show: Callable[..., object] = lambda **_: None  # beside a progress bar
        self.price = self._price()
        self.paid.limit = self._affordable(limit, check)

    def run(self) -> None:
        """Spend the limit."""
        if self.paid.left >= self.price * self._unpaid():
            self.paid.pay(self.paid.unpaid(*np.triu_indices(self.n, 1)))
            warn_of_direction(self.sim, self.paid.nearness, self.distance)
            return
        self._begin()
        warn_of_direction(self.sim, self.paid.nearness, self.distance)
        shares = np.full(len(self.names), 1 / len(self.names))
        for t in range(N_ROUNDS):
            if t == N_ROUNDS - 1:
                self._fill()
            budget = self.paid.left / (N_ROUNDS - t) / self.price
            chosen = self._choose(np.floor(shares * budget).astype(int))
            while (keys := np.concatenate(chosen)).size and not self._spares(keys):
                chosen = [some[: some.size // 2] for some in chosen]
            if keys.size:
                self.paid.pay(keys)
                rates = self._success(
                    chosen, max(1, round(self.k * (t + 1) / N_ROUNDS))
                )
                shares = divide(rates)
                self.show(round=f"{t + 1}/{N_ROUNDS}", entered=f"{rates.max():.0%}")

    # The limit

    def _unpaid(self) -> int:
        """Return how many pairs are not paid for."""
        return self.n * (self.n - 1) // 2 - self.paid.i.size

    def _spares(self, keys: np.ndarray) -> bool:
        """Tell whether after these every item can still be given k neighbours."""
        items = np.concatenate(np.divmod(keys, self.n))
        degree = self.paid.degree + np.bincount(items, minlength=self.n)
        left = self.paid.left - self.price * keys.size
        return left >= self.price * self._reserve(degree)

    def _reserve(self, degree: np.ndarray) -> int:
        """Return how many pairs give every item k neighbours, at most."""
        missing = int(np.maximum(self.k - degree, 0).sum())
        return ceil(missing / 2) + (self.k * self.k if missing else 0)

    def _affordable(self, limit: float, check: int) -> float:
        """Return the limit less what is set aside; raise if it is too low."""
        aside = self.price * check * self.n
        reserve = min(self._reserve(self.paid.degree), self._unpaid())
        needed = self.price * reserve + aside
        if not limit >= needed:
            rows = f", and for the whole rows of {check}" if check else ""
            raise ValueError(
                f"limit={limit} does not pay for {self.k} neighbours of each of "
                f"{self.n} items{rows}: it must be at least {needed}."
            )
        if limit > self.sim.remaining:
            raise BudgetExceeded(
                f"limit={limit} is more than the {self.sim.remaining} calls that the "
                f"limit of the Similarity, {self.sim.limit}, leaves. Nothing was "
                "evaluated."
            )
        return float(limit - aside)

    def _price(self) -> int:
        """Return the calls for a pair: two if both orders of some are not known."""
        i, j = self.rng.integers(self.n, size=(2, PRICED))
        unknown = (i != j) & np.isnan(self.sim.peek(i, j))
        keys = np.minimum(i, j)[unknown] * self.n + np.maximum(i, j)[unknown]
        i, j = np.divmod(np.unique(keys), self.n)
        return ceil(self.sim.cost(pairs=(i, j)) / i.size) if i.size else 1

    # The beginning

    def _begin(self) -> None:
        """Pay for whole columns or random pairs, and make what predicts."""
        n, k, pairs = self.n, self.k, self.paid.left / self.price
        order = uniform(n, n, rng=self.rng)
        S = order[: min(n, max(1, int(PILOT * pairs / n)))]
        if S.size * n > pairs / 4 or pairs < 0.75 * n * k:
            S = order[:0]
            self._pay_random(max(1, int(pairs / 10)))
        self.paid.pay_columns(S)
        companion = self._calibrated()
        if S.size:
            missed = self._missed(companion, S, int(2 * pairs / n))
            more = order[S.size : min(n, int(LANDMARKS * missed * pairs / n))]
            self.paid.pay_columns(more)
            S = np.append(S, more)
        predictor = self.predictor = PairPredictor(self.paid, companion, S, RANK)
        self.names: tuple[str, ...] = ("residual", "shared")
        if companion is not None:
            self.names = ("companion", *self.names)
        self.candidates: EveryPair | Listed = EveryPair(predictor)
        if n > ALL_PAIRS:
            each = 2 * self.paid.limit / (self.price * n)
            most = int(min(MOST_CANDIDATES / n, CANDIDATES_A_CALL * each))
            self.candidates = Listed(predictor, min(n - 1, max(4 * k, most)))

    def _pay_random(self, number: int) -> None:
        """Pay for so many random pairs, or somewhat fewer."""
        i, j = self.rng.integers(self.n, size=(2, 2 * number + 16))
        keys = self.rng.permutation(np.unique(self.paid.unpaid(i, j)))[:number]
        while keys.size and not self._spares(keys):
            keys = keys[: keys.size // 2]
        self.paid.pay(keys)

    def _calibrated(self) -> Calibrated | None:
        """Return the companion as a nearness."""
        if self.cheap is None:
            return None
        paid = self.paid
        some = self.rng.permutation(paid.i.size)[:SAMPLE]
        values = asked(self.cheap.blank().pairs, paid.i[some], paid.j[some])
        companion = Calibrated(self.cheap, values, paid.nearness[some])
        if self.n <= ALL_PAIRS:
            companion.read()
        return companion

    def _missed(self, companion: Calibrated | None, S: np.ndarray, m: int) -> float:
        """Return what share of the nearest of some items the companion alone misses."""
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

    def _choose(self, numbers: np.ndarray) -> list[np.ndarray]:
        """Return the keys of so many new pairs by each prediction."""
        self.predictor.update()
        nearness = self.predictor.nearness()
        low, high = nearness.min(), nearness.max()
        unit = 0.5 / (high - low) if high > low else 0.0
        found: dict[str, list[Chosen]] = {name: [] for name in self.names}
        for strip in self.candidates.strips():
            scores = {"residual": strip.predicted, "shared": strip.shared}
            scores["shared"] += (strip.predicted - low) * unit
            if "companion" in self.names:
                scores["companion"] = strip.codes.astype(np.float32)
            for name, number in zip(self.names, numbers, strict=True):
                found[name].append(self._first(strip, name, scores[name], number))
        return distinct([joined(found[name]) for name in self.names], numbers)

    def _first(self, strip: Strip, name: str, score: np.ndarray, number: int) -> Chosen:
        """Return the pairs of a strip that come first by one prediction."""
        score[strip.itself] = -np.inf
        keep = ceil(4 * number / self.n) + 4
        depth = ceil(2 * self.paid.i.size / self.n) + 2 * keep
        by_all = name != "shared"
        kept = score if by_all else score.copy()
        a, places, ranks = first(kept, strip.paid, keep, depth, among_all=by_all)
        i, j = strip.rows[a], strip.columns[a, places]
        keys = np.minimum(i, j) * self.n + np.maximum(i, j)
        return keys, ranks, score[a, places]

    def _success(self, chosen: list[np.ndarray], k: int) -> np.ndarray:
        """Return the share of the calls of each that entered a list of k nearest."""
        rates = np.zeros(len(chosen))
        kth = self.paid.values[:, k - 1]
        for place, keys in enumerate(chosen):
            i, j = np.divmod(keys, self.n)
            if i.size:
                values = self.paid.sign * self.sim.peek(i, j).astype(float)
                rates[place] = ((values >= kth[i]) | (values >= kth[j])).mean()
        sizes = (keys.size for keys in chosen)
        parts = zip(self.names, sizes, rates.tolist(), strict=True)
        self.history.append({name: (size, rate) for name, size, rate in parts})
        return rates

    # The end

    def _fill(self) -> None:
        """Give every item k neighbours, those that lack some to each other first."""
        others_too = False
        while (short := np.flatnonzero(self.paid.degree < self.k)).size:
            others = np.arange(self.n) if others_too else short
            order = self.rng.permutation(others)[: 4 * self.k + 1]
            a, b = map(np.ravel, np.meshgrid(short, order))
            keys = self.rng.permutation(np.unique(self.paid.unpaid(a, b)))
            if self.paid.pay(_apart(keys, self.n)) == 0:
                if others_too:
                    break
                others_too = True


def _apart(keys: np.ndarray, n: int) -> np.ndarray:
    """Return pairs of which none share an item: none gets more than it lacks."""
    i, j = np.divmod(keys, n)
    i, one = np.unique(i, return_index=True)
    j, two = np.unique(j[one], return_index=True)
    alone = ~np.isin(j, i) | (i.size == 1)
    return keys[one[two]][alone] if alone.any() else keys[:1]
