r"""Nearest neighbours in rounds: predict unpaid pairs, pay for some, predict again.

Three predictors rank the others for each item: the companion; the companion, calibrated
to what is paid for, plus the `RowFits` of what it leaves; and the number of neighbours
that two items share. A round divides its calls among them by the share of their last
ones that entered a list of nearest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import ceil, inf
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from simlib._checks import whole_number
from simlib.landmarks import uniform
from simlib.neighbors.cheap import (
    Companion,
    as_companion,
    features,
    neighbor_lists,
    rising,
)
from simlib.neighbors.choice import (
    Board,
    affordable,
    among,
    divide,
    first,
    mask,
    pick,
    strips,
)
from simlib.neighbors.paid import Paid
from simlib.neighbors.residual import RowFits, exponent, leading
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

__all__ = ["LARGEST", "Rounds", "checked", "price", "warn_of_direction"]

LARGEST = 20_000  # items of which all pairs are predicted
N_ROUNDS = 11
PILOT, LANDMARKS = 0.04, 0.16  # shares of the calls for whole columns
RANK = 30  # of the residual columns
DIRECTIONS = 20  # of the companion
FACTOR = 2.0  # candidates for a call that an item can have, where items are very many
CANDIDATES = 2**26  # of all items together, where there are very many
NEAR = 16  # times k: neighbours of neighbours, likewise
BACKWARD = 4  # times k: of how many others an item is a neighbour, likewise


def checked(sim: Source, least: int = 2) -> SimilarityMatrix:
    """Return a symmetric similarity of so many items at least, or raise."""
    sim = check_similarity(sim)
    if not sim.symmetric:
        raise ValueError(
            "Neighbours are those of a symmetric similarity: pass sim.symmetrized(), "
            "which is (K + K.T)/2 at two calls a pair."
        )
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
    """What is paid for, and how the next pairs are chosen.

    Parameters
    ----------
    sim : SimilarityMatrix
        As `checked` returns it.
    k : int
        How many neighbours are wanted.
    limit : int
        Most calls.
    cheap : Similarity or array, optional
        The companion.
    distance : bool
        Whether small means near.
    rng : int, Generator or None
        Source of randomness.
    check : int
        Items whose whole rows the limit pays for besides.
    """

    def __init__(
        self,
        sim: SimilarityMatrix,
        k: int,
        limit: float | None,
        cheap: Any,
        distance: bool,
        rng: int | np.random.Generator | None,
        check: int = 0,
    ):
        self.sim, self.n = sim, sim.n
        self.k = whole_number(k, "k")
        if not 1 <= self.k < self.n:
            raise ValueError(
                f"k must be between 1 and {self.n - 1}, for {self.n} items; got {k}."
            )
        self.sign = -1 if distance else 1
        self.rng = np.random.default_rng(rng)
        self.cheap = None if cheap is None else as_companion(cheap, sim)
        self.paid = Paid(self.n, self.k)
        self.lists: np.ndarray | None = None  # of candidates, where items are many
        self.companion: Companion | None = None
        self.history: list[dict[str, tuple[int, float]]] = []
        self.calls = 0  # made here: those of other threads are not ours
        self.show: Callable[..., object] = lambda **_: None  # beside a progress bar
        self._take_known()
        self.limit = np.inf if limit is None else self._affordable(limit, check)

    @property
    def left(self) -> float:
        """Calls that may still be made."""
        return self.limit - self.calls

    def run(self) -> None:
        """Spend the limit."""
        n, every = self.n, self.n * (self.n - 1) // 2 - self.paid.i.size
        if self.left >= self.price * every:
            i, j = np.triu_indices(n, 1)
            keys = i * n + j
            self._pay(keys[~among(keys, np.sort(self.paid.i * n + self.paid.j))])
            warn_of_direction(self.sim, self.paid.nearness, self.sign < 0)
            return
        self._landmarks()
        warn_of_direction(self.sim, self.paid.nearness, self.sign < 0)
        shares = np.full(len(self.names), 1 / len(self.names))
        for t in range(N_ROUNDS):
            if t == N_ROUNDS - 1:
                self._fill()
            budget = self.left / (N_ROUNDS - t) / self.price
            chosen = self._choose(np.floor(shares * budget).astype(int))
            while (keys := np.concatenate(chosen)).size and not self._spares(keys):
                chosen = [some[: some.size // 2] for some in chosen]
            if keys.size:
                self._pay(keys)
                rates = self._success(chosen, t)
                shares = divide(rates)
                self.show(round=f"{t + 1}/{N_ROUNDS}", entered=f"{rates.max():.0%}")

    def _spares(self, keys: np.ndarray) -> bool:
        """Tell whether after these every item can still be given k neighbours."""
        i, j = np.divmod(keys, self.n)
        degree = self.paid.degree + np.bincount(np.append(i, j), minlength=self.n)
        reserve = self._reserve(degree)
        return self.left - self.price * keys.size >= self.price * reserve

    def _reserve(self, degree: np.ndarray) -> int:
        """Return how many pairs give every item k neighbours, at most."""
        missing = int(np.maximum(self.k - degree, 0).sum())
        return ceil(missing / 2) + (self.k * self.k if missing else 0)

    def _affordable(self, limit: float, check: int) -> float:
        """Return the limit less what is set aside; raise if it is too low."""
        self.price = self._price()
        every = self.n * (self.n - 1) // 2 - self.paid.i.size
        aside = self.price * check * self.n
        needed = self.price * min(self._reserve(self.paid.degree), every) + aside
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
        i, j = self.rng.integers(self.n, size=(2, 1000))
        unknown = (i != j) & np.isnan(self.sim.peek(i, j))
        keys = np.minimum(i, j)[unknown] * self.n + np.maximum(i, j)[unknown]
        i, j = np.divmod(np.unique(keys), self.n)
        return ceil(self.sim.cost(pairs=(i, j)) / i.size) if i.size else 1

    def _take_known(self) -> None:
        for i, j, values in self.sim.known():
            off = i != j
            low, high = np.minimum(i, j)[off], np.maximum(i, j)[off]
            self._add(low, high, values[off])

    def _add(self, i: np.ndarray, j: np.ndarray, values: np.ndarray) -> None:
        self.paid.add(i, j, self.sign * values.astype(float))

    def _pay(self, keys: np.ndarray) -> None:
        """Evaluate pairs that are not paid for, as far as the limit goes."""
        i, j, cost = affordable(self.sim, *np.divmod(keys, self.n), self.left)
        values = self.sim.pairs(i, j)
        self.calls += cost
        self._add(i, j, values)

    # The beginning

    def _landmarks(self) -> None:
        """Pay for whole columns, and make what the predictors need."""
        n, pairs = self.n, self.left / self.price
        order = uniform(n, n, rng=self.rng)
        S = order[: min(n, max(1, int(PILOT * pairs / n)))]
        if S.size * n > pairs / 4 or pairs < 0.75 * n * self.k:
            S = order[:0]
            keys = self._random(max(1, int(pairs / 10)))
            while keys.size and not self._spares(keys):
                keys = keys[: keys.size // 2]
            self._pay(keys)
        columns = [self._column_nearness(S)]
        missed = 1.0
        if self.cheap is not None:
            self._direction()
            missed = self._missed(S, columns[0], int(2 * pairs / n))
        if S.size:
            more = order[S.size : min(n, int(LANDMARKS * missed * pairs / n))]
            columns.append(self._column_nearness(more))
            S = np.append(S, more)
        self._features(S, np.hstack(columns))

    def _column_nearness(self, S: np.ndarray) -> np.ndarray:
        """Return whole columns, their own items NaN, and count them as paid."""
        if S.size == 0:
            return np.zeros((self.n, 0))
        cost = self.sim.cost((None, S))
        new = np.array(self.sim.columns(S), dtype=float)
        self.calls += cost
        mine = np.zeros((self.n, S.size), bool)
        mine[S, np.arange(S.size)] = True
        mine[S] |= np.arange(S.size)[:, None] > np.arange(S.size)  # each pair once
        i, c = np.nonzero(~mine)
        j = S[c]
        values = new[i, c]
        keys = np.minimum(i, j) * self.n + np.maximum(i, j)
        paid = np.sort(self.paid.i * self.n + self.paid.j)
        fresh = ~among(keys, paid)
        low, high = np.divmod(keys[fresh], self.n)
        self._add(low, high, values[fresh])
        new[S, np.arange(S.size)] = np.nan
        return self.sign * new

    def _random(self, number: int) -> np.ndarray:
        """Return so many random pairs that are not paid for, or somewhat fewer."""
        i, j = self.rng.integers(self.n, size=(2, 2 * number + 16))
        keys = np.unique((np.minimum(i, j) * self.n + np.maximum(i, j))[i != j])
        keys = keys[~among(keys, np.sort(self.paid.i * self.n + self.paid.j))]
        return self.rng.permutation(keys)[:number]

    def _direction(self) -> None:
        """Make the companion a nearness, and calibrate it."""
        paid = self.paid
        some = self.rng.permutation(paid.i.size)[: 2**16]
        i, j = paid.i[some], paid.j[some]
        assert self.cheap is not None
        companion = Companion(self.cheap, 1)
        values = companion.pairs(i, j)
        companion.sign = 1 if rising(values, paid.nearness[some]) else -1
        self.companion = companion
        if self.n <= LARGEST:
            companion.read()
        else:
            companion.set_range(companion.sign * values)

    def _missed(self, S: np.ndarray, columns: np.ndarray, m: int) -> float:
        """Return what share of the nearest of some items the companion alone misses."""
        if S.size == 0:
            return 1.0
        every = np.repeat(np.arange(self.n), S.size)
        assert self.companion is not None
        values = self.companion.pairs(every, np.tile(S, self.n))
        cheap = np.where(np.isnan(columns), -np.inf, values.reshape(self.n, S.size))
        exact = np.where(np.isnan(columns), -np.inf, columns)
        m = min(max(m, self.k), self.n - 1)
        best = np.argpartition(cheap, -m, axis=0)[-m:]
        kth = np.partition(exact, -self.k, axis=0)[-self.k]
        found = (np.take_along_axis(exact, best, axis=0) >= kth).sum(axis=0)
        return 1 - float(np.minimum(found, self.k).mean()) / self.k

    def _features(self, S: np.ndarray, columns: np.ndarray) -> None:
        n, paid = self.n, self.paid
        self._exponent = exponent(paid.nearness)
        columns = np.ldexp(columns, -self._exponent)
        self.codes = np.zeros(0, np.uint16)
        self.seen = 0
        self._calibrate()
        residuals = self._nearness() - self._explained()
        scale = np.sqrt(np.mean(residuals**2)) or 1.0
        explained = np.full((n, S.size), self.constant)
        if self.companion is not None and S.size:
            every = np.repeat(np.arange(n), S.size)
            codes = self.companion.codes_at(every, np.tile(S, n))
            explained = self.companion.table[codes].reshape(n, S.size)
        parts = [np.full((n, 1), scale)]
        if S.size:
            parts.append(leading(np.nan_to_num(columns - explained), RANK))
        Z = None
        if self.companion is not None and self.cheap is not None:
            Z, signs = features(self.cheap, self.companion.sign)
            directions = leading(Z - Z.mean(axis=0), DIRECTIONS)
            size = np.sqrt(np.square(directions).sum(axis=1).mean())
            parts.append(directions * (scale / size if size > 0 else 0))
        self.fits = RowFits(np.hstack(parts), scale**2)
        self.names: tuple[str, ...] = ("residual", "shared")
        if self.companion is not None:
            self.names = ("companion", *self.names)
        if n > LARGEST:
            each = 2 * self.limit / (self.price * n)
            m = min(n - 1, max(4 * self.k, int(min(CANDIDATES / n, FACTOR * each))))
            if Z is None:
                Z = self.fits.V[:, 1:]
                signs = np.ones(Z.shape[1])
            lists = neighbor_lists(Z, signs, m)
            if self.companion is not None:
                cheap = self.companion.pairs(
                    np.repeat(np.arange(n), lists.shape[1]), lists.ravel()
                ).reshape(lists.shape)
                order = np.argsort(-cheap, axis=1)
                lists = np.take_along_axis(lists, order, axis=1)
                cheap = np.take_along_axis(cheap, order, axis=1)
                self.list_codes = self.companion.codes(cheap)
            self.lists, self.board = lists, Board(n)

    # A round

    def _nearness(self) -> np.ndarray:
        """Return that of the pairs that are paid for, in fractions."""
        return np.ldexp(self.paid.nearness, -self._exponent)

    def _calibrate(self) -> None:
        paid, nearness = self.paid, self._nearness()
        self.constant = float(nearness.mean())
        if self.companion is not None:
            new = slice(self.codes.size, None)
            codes = self.companion.codes_at(paid.i[new], paid.j[new])
            self.codes = np.append(self.codes, codes)
            self.companion.calibrate(self.codes, nearness)

    def _explained(self) -> np.ndarray:
        """Return what the companion says of the pairs that are paid for."""
        if self.companion is None:
            return np.full(self.paid.i.size, self.constant)
        return self.companion.table[self.codes]

    def _choose(self, numbers: np.ndarray) -> list[np.ndarray]:
        """Return the keys of so many new pairs by each predictor."""
        n, paid = self.n, self.paid
        self._calibrate()
        nearness = self._nearness()
        differences = nearness - self._explained()
        residuals = paid.matrix(differences)
        self.fits.see(paid.matrix(differences[self.seen :], self.seen), residuals)
        self.seen = paid.i.size
        A, V = self.fits.fit(residuals), self.fits.V
        left, right = np.hstack([A, V]) / 2, np.hstack([V, A])
        graph = self._graph()
        low, high = nearness.min(), nearness.max()
        unit = 0.5 / (high - low) if high > low else 0.0
        found: dict[str, tuple[list, list, list]] = {
            name: ([], [], []) for name in self.names
        }
        width = n if self.lists is None else n // 16
        for rows in strips(n, width):
            shared = graph[rows] @ graph
            if self.lists is None:
                columns, taken, counts = None, mask(residuals, rows), shared.toarray()
                predicted = left[rows] @ right.T
                if self.companion is not None:
                    codes = self.companion.rows(rows)
                no_pair: Any = (np.arange(rows.size), rows)
            else:
                columns = self._candidates(rows, shared)
                known = residuals[rows].astype(np.float32)
                known.data[:] = 1
                taken = self.board.read(known, columns) > 0
                counts = self.board.read(shared, columns)
                predicted = np.einsum("ir,ijr->ij", left[rows], right[columns])
                if self.companion is not None:
                    codes = self._codes_of(rows, columns)
                no_pair = columns == rows[:, None]
            if self.companion is not None:
                predicted += self.companion.table[codes]
            counts += (predicted - low) * unit
            scores = {"residual": predicted, "shared": counts}
            if self.companion is not None:
                scores["companion"] = codes.astype(np.float32)
            for name, number in zip(self.names, numbers, strict=True):
                score = scores[name]
                score[no_pair] = -np.inf
                keep = ceil(4 * number / n) + 4
                depth = ceil(2 * paid.i.size / n) + 2 * keep
                kept = score.copy() if name == "shared" else score
                a, places, ranks = first(
                    kept, taken, keep, depth, among_all=name != "shared"
                )
                i = rows[a]
                j = places if columns is None else columns[a, places]
                keys = np.minimum(i, j) * n + np.maximum(i, j)
                for part, new in zip(
                    found[name], (keys, ranks, score[a, places]), strict=True
                ):
                    part.append(new)
        chosen = [np.zeros(0, np.int64) for _ in self.names]
        taken_keys = np.zeros(0, np.int64)
        for place in np.argsort(-numbers, kind="stable"):
            keys, ranks, score = map(np.concatenate, found[self.names[place]])
            new = ~among(keys, taken_keys)
            keys = pick(keys[new], ranks[new], score[new], numbers[place])
            chosen[place] = keys
            taken_keys = np.sort(np.append(taken_keys, keys))
        return chosen

    def _graph(self) -> csr_array:
        """Return the nearest of every item so far, made symmetric.

        Where items are very many an item that is near to nearly all, such as a landmark
        in the first rounds, keeps only some of these: or all would share neighbours.
        """
        n, paid = self.n, self.paid
        i, c = np.nonzero(paid.indices >= 0)
        j = paid.indices[i, c]
        graph = coo_array((np.ones(i.size, np.float32), (i, j)), shape=(n, n)).tocsr()
        if self.lists is None:
            back = graph.T
        else:
            order = np.lexsort((-paid.values[i, c], j))
            i, j = i[order], j[order]
            few = np.arange(j.size) - np.searchsorted(j, j) < BACKWARD * self.k
            places = (j[few], i[few])
            ones = np.ones(np.count_nonzero(few), np.float32)
            back = coo_array((ones, places), shape=(n, n))
        return graph.maximum(back.tocsr()).tocsr()

    def _candidates(self, rows: np.ndarray, shared: csr_array) -> np.ndarray:
        """Return the cheap neighbours of some items, and neighbours of neighbours."""
        assert self.lists is not None
        i = np.repeat(np.arange(rows.size), np.diff(shared.indptr))
        order = np.lexsort((-shared.data, i))
        i, j = i[order], shared.indices[order]
        place = np.arange(i.size) - np.searchsorted(i, i)
        few = place < NEAR * self.k
        i, j, place = i[few], j[few], place[few]
        near = np.repeat(rows[:, None], place.max(initial=-1) + 1, axis=1)
        near[i, place] = j
        return np.hstack([self.lists[rows], near])

    def _codes_of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the companion's places in its table for candidates."""
        assert self.companion is not None
        first = self.list_codes[rows]
        new = columns[:, first.shape[1] :]
        codes = self.companion.codes_at(np.repeat(rows, new.shape[1]), new.ravel())
        return np.hstack([first, codes.reshape(new.shape)])

    def _success(self, chosen: list[np.ndarray], t: int) -> np.ndarray:
        """Return the share of each predictor's calls that entered a list of nearest.

        Lists grow from one to k: at first everything would enter.
        """
        k = max(1, round(self.k * (t + 1) / N_ROUNDS))
        rates = np.zeros(len(chosen))
        for place, keys in enumerate(chosen):
            i, j = np.divmod(keys, self.n)
            if i.size:
                values = self.sign * self.sim.peek(i, j).astype(float)
                enters = (values >= self.paid.values[i, k - 1]) | (
                    values >= self.paid.values[j, k - 1]
                )
                rates[place] = enters.mean()
        self.history.append(
            {
                name: (keys.size, float(rate))
                for name, keys, rate in zip(self.names, chosen, rates, strict=True)
            }
        )
        return rates

    # The end

    def _fill(self) -> None:
        """Give every item k neighbours, those that lack some to each other first."""
        others_too = False
        while (short := np.flatnonzero(self.paid.degree < self.k)).size:
            others = np.arange(self.n) if others_too else short
            order = self.rng.permutation(others)[: 4 * self.k + 1]
            a, b = np.meshgrid(short, order)
            i, j = np.minimum(a, b)[a != b], np.maximum(a, b)[a != b]
            keys = np.unique(i * self.n + j)
            keys = keys[~among(keys, np.sort(self.paid.i * self.n + self.paid.j))]
            keys = self.rng.permutation(keys)
            i, j = np.divmod(
                keys, self.n
            )  # no item twice: none gets more than it lacks
            i, one = np.unique(i, return_index=True)
            j, two = np.unique(j[one], return_index=True)
            alone = ~np.isin(j, i) | (i.size == 1)
            keys = keys[one[two]][alone] if alone.any() else keys[:1]
            before = self.paid.i.size
            self._pay(keys)
            if self.paid.i.size == before:
                if others_too:
                    break
                others_too = True
