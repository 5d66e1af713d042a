r"""The nearest columns of every row of a matrix between two collections, in rounds.

.. math::
    \hat K_{ij} = B_{ij} + a_i^\top v_j + u_i^\top b_j

B is the companion, calibrated to what is paid for, or a constant; a_i is the ridge fit
of a row, on features v_j of columns, to what B leaves, and b_j that of a column, on
features u_i of rows, to what a leaves: by these rows learn from each other. Features
are leading directions of the companion, or of whole lines that are paid for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from simlib._checks import whole_number
from simlib._scale import exponent
from simlib.approximation.companion import InnerProducts
from simlib.approximation.tikhonov import tikhonov
from simlib.neighbors.cheap import (
    N_LANDMARKS,
    Calibrated,
    as_companion,
    asked,
    rank_correlation,
    strips,
)
from simlib.neighbors.paid import affordable, among
from simlib.neighbors.predict import OUTGROWN, Predictor, leading
from simlib.similarity.views import SimilarityMatrix

__all__ = ["Across"]

N_ROUNDS = 16
TRIAL = 0.02  # of the calls, for random pairs that try the companion, and
FEWEST, MOST = 100, 2000  # how many these are
LINES = 0.08  # of the calls, for whole rows, and as much for whole columns, or
FEW_LINES = 4  # one of each where the calls pay for so many
CHANCE = 2  # standard deviations of a correlation of which nothing is believed
ENDS = 32  # rows of which both ends of the companion tell its direction
RANK = 50  # of the features of a side
KEPT = 2**30  # entries of the companion that are kept, of two bytes each


class Across:
    """A search for the k nearest columns of every row, as `nearest` makes it.

    Pairs that are paid for are known by their sorted `keys`, i n + j.
    """

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
        self.sim, self.rng, (self.m, self.n) = sim, rng, sim.shape
        self.k, self.sign = whole_number(k, "k", 1, self.n), -1 if distance else 1
        self.cheap = None if cheap is None else as_companion(cheap, sim)
        self.keys, self.nearness, self.calls = np.zeros(0, np.int64), np.zeros(0), 0
        for i, j, values in sim.known():
            self._add(i * np.int64(self.n) + j, values)
        self.limit = self._affordable(limit, check)
        self.history: list[dict[str, tuple[int, float]]] = []
        self.show: Callable[..., object] = lambda **_: None  # beside a progress bar

    def run(self) -> None:
        """Spend the limit, evenly on all rows."""
        m, n = self.m, self.n
        if self.limit - self.calls >= m * n - self.keys.size:
            self._pay(np.arange(m * n))
            return
        predictor = self._begin()
        for t in range(N_ROUNDS):
            numbers = self._wanted() / (N_ROUNDS - t)
            numbers = (numbers + self.rng.random(m) * (t < N_ROUNDS - 1)).astype(int)
            predictor.update(self.keys, self.nearness)
            new, kth = self._best(predictor, numbers), self._kth()
            self._pay(new)
            i, j = np.divmod(new, n)
            near = self.sign * self.sim.peek(i, j).astype(float) > kth[i]
            rate = float(near.mean()) if near.size else 0.0
            self.history.append({"residual": (new.size, rate)})
            self.show(round=f"{t + 1}/{N_ROUNDS}", entered=f"{rate:.0%}")

    def _affordable(self, limit: float, check: int) -> float:
        """Return the limit less what is set aside; raise if it is too low."""
        rows = f", and for the whole rows of {check}" if check else ""
        what = f"{self.k} neighbours of each of {self.m} rows{rows}"
        return affordable(self.sim, limit, self._missing(), check * self.n, what)

    # Paying

    def _pay(self, keys: np.ndarray) -> None:
        """Evaluate the pairs that are not paid for."""
        keys = np.unique(keys)
        keys = keys[~among(keys, self.keys)]
        i, j = np.divmod(keys, self.n)
        self.calls += self.sim.cost(pairs=(i, j))
        self._add(keys, self.sim.pairs(i, j))

    def _add(self, keys: np.ndarray, values: np.ndarray) -> None:
        keys = np.append(self.keys, keys)
        order = np.argsort(keys, kind="stable")
        nearness = np.append(self.nearness, self.sign * values.astype(float))
        self.keys, self.nearness = keys[order], nearness[order]

    def _degree(self) -> np.ndarray:
        """Return how many pairs of each row are paid for."""
        return np.bincount(self.keys // self.n, minlength=self.m)

    def _missing(self) -> int:
        """Return how many pairs give every row k neighbours."""
        return int(np.maximum(self.k - self._degree(), 0).sum())

    def _wanted(self) -> np.ndarray:
        """Return how many pairs of each row to pay for, so that all have as many."""
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

    def _begin(self) -> TwoSided:
        """Pay for what tries the companion, and for whole lines."""
        m, n, rng = self.m, self.n, self.rng
        spare, companion, share = self.limit - self._missing(), None, 1.0
        if self.cheap is not None:
            number = min(int(spare / 10), MOST, max(FEWEST, int(TRIAL * spare)))
            self._pay(rng.integers(m * n, size=number))
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

    def _best(self, predictor: TwoSided, numbers: np.ndarray) -> np.ndarray:
        """Return so many unpaid pairs of each row, those of the largest prediction."""
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

    # The answer

    def _kth(self) -> np.ndarray:
        """Return the k-th nearness of each row so far."""
        kth = np.full(self.m, -np.inf)
        i, _, nearness, rank = self._ranked()
        at = rank == self.k - 1
        kth[i[at]] = nearness[at]
        return kth

    @property
    def indices(self) -> np.ndarray:
        """The k nearest columns of each row, from the nearest on."""
        indices = np.full((self.m, self.k), -1)
        i, j, _, rank = self._ranked()
        first = rank < self.k
        indices[i[first], rank[first]] = j[first]
        return indices

    def _ranked(self) -> tuple[np.ndarray, ...]:
        """Return what is paid for, by row from the nearest on, and the ranks there."""
        i, j = np.divmod(self.keys, self.n)
        order = np.lexsort((-self.nearness, i))
        i = i[order]
        rank = np.arange(i.size) - np.searchsorted(i, i)
        return i, j[order], self.nearness[order], rank


class TwoSided:
    """The prediction, from a companion and whole rows and columns of the search."""

    def __init__(
        self,
        search: Across,
        companion: Calibrated | None,
        rows: np.ndarray,
        columns: np.ndarray,
    ):
        self.shape = search.m, search.n
        self._companion, self._codes = companion, None
        self._lines = rows, columns
        self._vectors: Any = (None, None)
        if companion is not None:
            self._vectors = _vectors(companion)
            if search.m * search.n <= KEPT:
                parts = (self._codes_of(rows) for rows in strips(*self.shape))
                self._codes = np.vstack(list(parts))
        self._rows, self._columns = Predictor(companion), Predictor(None)
        self._make_features(search.keys, search.nearness)

    def _make_features(self, keys: np.ndarray, nearness: np.ndarray) -> None:
        self._exponent, self._seen = exponent(nearness), keys[:0]
        i, j = np.divmod(keys, self.shape[1])
        residuals = self._residuals(nearness, self._codes_at(i, j))
        K, (rows, columns) = csr_array((residuals, (i, j)), self.shape), self._lines
        sides = zip((self._columns, self._rows), self._vectors, strict=True)
        lines = K[:, columns], K[rows].T
        for (side, Z), whole in zip(sides, lines, strict=True):
            if Z is not None:
                Z = Z - Z.mean(axis=0)
                Z = leading(np.ldexp(Z, -exponent(Z)), RANK)
            side.begin(residuals, leading(whole.toarray(), RANK), Z)

    def _residuals(self, nearness: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Calibrate, and return what is left of what is paid for."""
        nearness = np.ldexp(nearness, -self._exponent)
        self._rows.calibrate(codes, nearness)
        return nearness - self._rows.explained(codes)

    def update(self, keys: np.ndarray, nearness: np.ndarray) -> None:
        """Learn from all that is paid for."""
        if exponent(nearness) > self._exponent + OUTGROWN:
            self._make_features(keys, nearness)
        (m, n), (i, j) = self.shape, np.divmod(keys, self.shape[1])
        left = self._residuals(nearness, self._codes_at(i, j))
        new, V, U = ~among(keys, self._seen), self._rows.V, self._columns.V
        lines = np.searchsorted(i, np.arange(m + 1))
        A = self._rows.learn(csr_array((left, j, lines), shape=(m, n)), new)
        left = left - np.einsum("kr,kr->k", A[i], V[j])
        order = np.argsort(j, kind="stable")
        lines = np.searchsorted(j[order], np.arange(n + 1))
        turned = csr_array((left[order], i[order], lines), shape=(n, m))
        B = self._columns.learn(turned, new[order])
        self._left, self._right, self._seen = np.hstack([A, U]), np.hstack([V, B]), keys

    def predicted(self, rows: np.ndarray) -> np.ndarray:
        """Return the predictions of whole rows, less the constant."""
        predicted = self._left[rows] @ self._right.T
        if self._companion is not None:
            codes = self._codes_of(rows) if self._codes is None else self._codes[rows]
            predicted += self._companion.table[codes]
        return predicted

    def _codes_at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the places in the companion's table of some pairs, 0 without one."""
        if self._codes is not None:
            return self._codes[i, j]
        return self._rows.codes_at(i, j)

    def _codes_of(self, rows: np.ndarray) -> np.ndarray:
        """Return those of whole rows."""
        companion: Any = self._companion
        block = asked(companion.cheap.blank().block, rows, np.arange(self.shape[1]))
        return companion.codes(companion.sign * block)


def _vectors(companion: Calibrated) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors of rows and of columns whose inner products are near it."""
    base = getattr(companion.cheap, "base", None)
    if isinstance(base, InnerProducts) and isinstance(base.Z, np.ndarray):
        return base.Z, np.asarray(base.W)
    sim = companion.cheap.blank()
    answer = tikhonov(sim, min(N_LANDMARKS, *sim.shape), rng=0)
    return np.asarray(answer.left @ answer.core), np.asarray(answer.right)
