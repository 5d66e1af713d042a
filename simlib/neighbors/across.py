r"""The nearest columns of every row of a matrix between two collections, in rounds.

.. math::
    \hat K_{ij} = B_{ij} + a_i^\top v_j + u_i^\top b_j

B is the companion, calibrated to the evaluated pairs, or a constant. For each row, a_i
is the ridge fit of K - B on features v_j of the columns. For each column, b_j is the
ridge fit of the remaining residual on features u_i of the rows: by these fits rows
learn from each other. Features are leading directions of the companion, or of whole
rows and columns that are evaluated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from simlib._checks import whole_number
from simlib._scale import exponent
from simlib.approximation.tikhonov import tikhonov
from simlib.neighbors.cheap import (
    FEWEST,
    N_LANDMARKS,
    Calibrated,
    asked,
    factored,
    rank_correlation,
    strips,
    trial_size,
)
from simlib.neighbors.paid import affordable
from simlib.neighbors.predict import OUTGROWN, Predictor, leading
from simlib.similarity.known import among
from simlib.similarity.views import SimilarityMatrix

N_ROUNDS = 16
LINES = 0.08  # share of the calls for whole rows, and for whole columns, or
FEW_LINES = 4  # one of each, if the calls pay for so many
CHANCE = 2  # standard deviations: a smaller correlation counts as none
ENDS = 32  # rows whose largest and smallest companion values tell its direction
RANK = 50  # of the features of one side
KEPT = 2**30  # entries of the companion that are kept, two bytes each, at most


class RowSearch(ABC):
    """A search for the k nearest columns of every row, with equal calls for each row.

    `keys` are the sorted numbers i n + j of the pairs that are paid for. `indices` and
    `values` (m, k) are as in `Paid`.
    """

    rounds = N_ROUNDS

    def __init__(
        self, shape: tuple[int, int], k: int, distance: bool, rng: np.random.Generator
    ):
        self.rng, (self.m, self.n) = rng, shape
        self.k, self.sign = whole_number(k, "k", 1, self.n), -1 if distance else 1
        self.keys, self.nearness, self.calls = np.zeros(0, np.int64), np.zeros(0), 0
        self.indices = np.full((self.m, self.k), -1)
        self.values = np.full((self.m, self.k), -np.inf)
        self.limit: float = 0
        self.history: list[dict[str, tuple[int, float]]] = []
        self.show: Callable[..., object] = lambda **_: None  # beside a progress bar

    @abstractmethod
    def begin(self) -> TwoSided:
        """Pay for the first pairs, and make the predictor."""

    @abstractmethod
    def evaluate(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the values of some pairs, and their calls."""

    def run(self) -> None:
        """Spend the limit, evenly on all rows."""
        m, n = self.m, self.n
        if self.limit - self.calls >= m * n - self.keys.size:
            self._pay(np.arange(m * n))
            return
        predictor = self.begin()
        for t in range(self.rounds):
            numbers = self._wanted() / (self.rounds - t)
            numbers = numbers + self.rng.random(m) * (t < self.rounds - 1)
            predictor.update(self.keys, self.nearness)
            new = self._best(predictor, numbers.astype(int))
            kth = self.values[:, -1].copy()
            self._pay(new)
            near = self.nearness[np.searchsorted(self.keys, new)] > kth[new // n]
            rate = float(near.mean()) if near.size else 0.0
            self.history.append({"residual": (new.size, rate)})
            self.show(round=f"{t + 1}/{self.rounds}", entered=f"{rate:.0%}")

    # Paying

    def _pay(self, keys: np.ndarray) -> None:
        """Evaluate the pairs that are not paid for."""
        keys = np.unique(keys)
        keys = keys[~among(keys, self.keys)]
        values, calls = self.evaluate(*np.divmod(keys, self.n))
        self.calls += calls
        self._add(keys, values)

    def _add(self, keys: np.ndarray, values: np.ndarray) -> None:
        keys = np.append(self.keys, keys)
        order = np.argsort(keys, kind="stable")
        nearness = np.append(self.nearness, self.sign * values.astype(float))
        self.keys, self.nearness = keys[order], nearness[order]
        i, j = np.divmod(self.keys, self.n)
        order = np.lexsort((-self.nearness, i))
        rank = np.arange(i.size) - np.searchsorted(i, i)
        first = rank < self.k
        places, order = (i[first], rank[first]), order[first]
        self.indices[places], self.values[places] = j[order], self.nearness[order]

    def _degree(self) -> np.ndarray:
        """Return how many pairs of each row are paid for."""
        return np.bincount(self.keys // self.n, minlength=self.m)

    def _missing(self) -> int:
        """Return how many more pairs give every row k neighbours."""
        return int(np.maximum(self.k - self._degree(), 0).sum())

    def _wanted(self) -> np.ndarray:
        """Return how many more pairs of each row the limit pays for, evenly."""
        degree = self._degree()
        left, levels = self.limit - self.calls, range(self.n + 1)
        level = bisect_right(
            levels, left, key=lambda s: np.maximum(s - degree, 0).sum()
        )
        wanted = np.maximum(level - 1 - degree, 0)
        rest = self.rng.permutation(np.flatnonzero(degree < min(level, self.n)))
        wanted[rest[: int(left - wanted.sum())]] += 1
        return wanted

    # Rounds

    def _best(self, predictor: TwoSided, numbers: np.ndarray) -> np.ndarray:
        """Return `numbers` unpaid pairs of each row, with the largest predictions."""
        n, width = self.n, min(int(numbers.max(initial=0)), self.n)
        chosen = [np.zeros(0, np.int64)]
        for rows in strips(self.m, n) if width else ():
            scores = predictor.predicted(rows)
            first, last = np.searchsorted(self.keys, [rows[0] * n, (rows[-1] + 1) * n])
            i, j = np.divmod(self.keys[first:last], n)
            scores[i - rows[0], j] = -np.inf
            best = np.argpartition(-scores, width - 1, axis=1)[:, :width]
            value = np.take_along_axis(scores, best, axis=1)
            order = np.argsort(-value, axis=1, kind="stable")
            best = np.take_along_axis(best, order, axis=1)
            unpaid = np.take_along_axis(value, order, axis=1) > -np.inf
            a, place = (unpaid & (np.arange(width) < numbers[rows, None])).nonzero()
            chosen.append(rows[a] * n + best[a, place])
        return np.concatenate(chosen)


class Across(RowSearch):
    """The search of `nearest` for two collections."""

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
        super().__init__(sim.shape, k, distance, rng)
        self.sim = sim
        self.cheap = cheap
        for i, j, values in sim.known():
            self._add(i * np.int64(self.n) + j, values)
        rows = f", and for the whole rows of {check}" if check else ""
        what = f"{self.k} neighbours of each of {self.m} rows{rows}"
        self.limit = affordable(sim, limit, self._missing(), check * self.n, what)

    def evaluate(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, int]:
        """Ask the similarity."""
        calls = self.sim.cost(pairs=(i, j))
        return self.sim.pairs(i, j), calls

    def begin(self) -> TwoSided:
        """Pay for pairs that test the companion, and for whole rows and columns."""
        m, n, rng = self.m, self.n, self.rng
        spare, companion, share = self.limit - self._missing(), None, 1.0
        if self.cheap is not None:
            self._pay(rng.integers(m * n, size=trial_size(spare)))
            rows = rng.permutation(m)[: min(ENDS, int(spare / 20))]
            cheap = asked(self.cheap.blank().block, rows, np.arange(n))
            self._pay((rows * n + [cheap.argmax(axis=1), cheap.argmin(axis=1)]).ravel())
            values = asked(self.cheap.blank().pairs, *np.divmod(self.keys, n))
            known = values.size
            correlation = rank_correlation(values, self.nearness) if known else 0.0
            share = (1 - abs(correlation)) ** 2
            if known < FEWEST or abs(correlation) > CHANCE / sqrt(known):
                sign = 1 if correlation >= 0 else -1
                companion = Calibrated(self.cheap, values, self.nearness, sign)
                companion.spread_beyond(values)
        rows, columns = (
            rng.permutation(size)[: max(int(share * LINES * spare / other), one)]
            for size, other in ((m, n), (n, m))
            for one in [int(FEW_LINES * other <= share * spare)]
        )
        self._pay((rows[:, None] * n + np.arange(n)).ravel())
        self._pay((np.arange(m)[:, None] * n + columns).ravel())
        if self.keys.size == 0:
            self._pay(np.arange(m) * n + rng.integers(n, size=m))
        return TwoSided(self, companion, rows, columns)


class Index(NamedTuple):
    """Whole columns (n, s) between the columns of a search, to learn features from."""

    codes: np.ndarray  # of the companion
    nearness: np.ndarray
    counts: np.ndarray  # False for items with themselves


class TwoSided:
    """The prediction, from a companion and whole rows and columns of the search.

    Rows learn from each other, or from an `Index`.
    """

    def __init__(
        self,
        search: RowSearch,
        companion: Calibrated | None,
        rows: np.ndarray,
        columns: np.ndarray,
        index: Index | None = None,
    ):
        self.shape, self._lines = (search.m, search.n), (rows, columns)
        none = np.zeros((search.n, 0))
        self._index = index or Index(none.astype(np.uint16), none, none.astype(bool))
        self._vectors: Any = (None, None)
        if companion is not None:
            if index is None:
                self._vectors = _vectors(companion)
            if search.m * search.n <= KEPT:
                companion.read()
        self._rows, self._columns = Predictor(companion), Predictor(None)
        self._make_features(search.keys, search.nearness)

    def _make_features(self, keys: np.ndarray, nearness: np.ndarray) -> None:
        index = self._index
        self._exponent, self._seen = exponent(nearness, index.nearness), keys[:0]
        i, j = np.divmod(keys, self.shape[1])
        residuals = self._residuals(nearness, self._rows.codes_at(i, j))
        K, (rows, columns) = csr_array((residuals, (i, j)), self.shape), self._lines
        left = np.ldexp(index.nearness, -self._exponent)
        left = np.where(index.counts, left - self._rows.explained(index.codes), 0)
        sides = zip((self._columns, self._rows), self._vectors, strict=True)
        lines = K[:, columns].toarray(), np.hstack([K[rows].T.toarray(), left])
        known = residuals, np.append(residuals, left[index.counts])
        for (side, Z), whole, some in zip(sides, lines, known, strict=True):
            if Z is not None:
                Z = Z - Z.mean(axis=0)
                Z = leading(np.ldexp(Z, -exponent(Z)), RANK)
            side.begin(some, leading(whole, RANK), Z)

    def _residuals(self, nearness: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Calibrate, and return the residuals of the pairs that are paid for."""
        index, nearness = self._index, np.ldexp(nearness, -self._exponent)
        known = np.ldexp(index.nearness[index.counts], -self._exponent)
        places = np.append(codes, index.codes[index.counts])
        self._rows.calibrate(places, np.append(nearness, known))
        return nearness - self._rows.explained(codes)

    def update(self, keys: np.ndarray, nearness: np.ndarray) -> None:
        """Learn from all pairs that are paid for."""
        if abs(exponent(nearness) - self._exponent) > OUTGROWN:
            self._make_features(keys, nearness)
        (m, n), (i, j) = self.shape, np.divmod(keys, self.shape[1])
        left = self._residuals(nearness, self._rows.codes_at(i, j))
        new, V, U = ~among(keys, self._seen), self._rows.V, self._columns.V
        lines = np.searchsorted(i, np.arange(m + 1))
        A = self._rows.learn(csr_array((left, j, lines), shape=(m, n)), new)
        self._left, self._right, self._seen = A, V, keys
        if self._index.codes.size:
            return
        left = left - np.einsum("kr,kr->k", A[i], V[j])
        order = np.argsort(j, kind="stable")
        lines = np.searchsorted(j[order], np.arange(n + 1))
        turned = csr_array((left[order], i[order], lines), shape=(n, m))
        B = self._columns.learn(turned, new[order])
        self._left, self._right = np.hstack([A, U]), np.hstack([V, B])

    def predicted(self, rows: np.ndarray) -> np.ndarray:
        """Return the predictions for whole rows, without the constant."""
        predicted = self._left[rows] @ self._right.T
        if (companion := self._rows.companion) is not None:
            predicted += companion.table[companion.block(rows, slice(None))]
        return predicted


def _vectors(companion: Calibrated) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors of rows and columns with inner products near the companion."""
    if (base := factored(companion.cheap)) is not None:
        return base.factors[:2]
    sim = companion.cheap.blank()
    answer = tikhonov(sim, min(N_LANDMARKS, *sim.shape), rng=0)
    return np.asarray(answer.left @ answer.core), np.asarray(answer.right)
