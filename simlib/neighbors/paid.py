"""The pairs that a search has paid for, their prices, and the nearest of each item."""

from __future__ import annotations

from bisect import bisect_right
from math import inf

import numpy as np
from scipy.sparse import coo_array, csr_array

from simlib.similarity.budget import BudgetExceeded, left
from simlib.similarity.known import among
from simlib.similarity.views import SimilarityMatrix


def affordable(
    sim: SimilarityMatrix, limit: float, least: int, aside: int, what: str
) -> float:
    """Return the limit minus the calls set aside; raise if it is too low or high."""
    if not limit >= least + aside:
        raise ValueError(
            f"limit={limit} does not pay for {what}: it must be at least "
            f"{least + aside}."
        )
    if limit > sim.remaining:
        raise BudgetExceeded(
            f"With limit={limit} this takes as many evaluations, and {left(sim)}: "
            "raise the attribute `limit` of this Similarity by "
            f"{limit - sim.remaining:.0f}, or give this search a lower one, with which "
            "it asks for other pairs."
        )
    return float(limit - aside)


def payable(
    sim: SimilarityMatrix, i: np.ndarray, j: np.ndarray, calls: float
) -> tuple[int, int]:
    """Return how many of the first pairs these calls pay for, and the cost of these."""

    def cost(size: int) -> int:
        return sim.cost(pairs=(i[:size], j[:size]))

    size, price = i.size, cost(i.size)
    if price > calls:
        size = max(0, bisect_right(range(size), calls, key=cost) - 1)
        price = cost(size)
    return size, price


class Paid:
    """Pairs i < j of n items with their nearness, and the k nearest of each so far.

    It starts with the pairs that the run `sim` knows. `sign` is -1 if small values mean
    near. `indices` and `values` (n, k) go from the nearest on; missing neighbours are
    -1, with values of minus infinity. `keys` are the sorted numbers i n + j. `numbers`,
    a symmetric sparse matrix, holds the number of each pair, from 1 on.
    """

    def __init__(
        self, sim: SimilarityMatrix, k: int, sign: int, groups: np.ndarray | None = None
    ):
        self.sim, self.n, self.k, self.sign = sim, sim.n, k, sign
        self.groups = groups
        self.i = self.j = self.keys = np.zeros(0, np.int64)
        self.nearness = np.zeros(0)
        self.indices = np.full((self.n, k), -1)
        self.values = np.full((self.n, k), -np.inf)
        self.degree = np.zeros(self.n, np.int64)
        self.calls, self.limit = 0, inf
        self.numbers = csr_array((self.n, self.n), dtype=np.int32)
        for known in sim.known():
            self.add(*known)

    @property
    def left(self) -> float:
        """Calls that may still be made."""
        return self.limit - self.calls

    def allowed(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Tell which pairs count: those of different items, and of different groups."""
        if self.groups is None:
            return i != j
        return self.groups[i] != self.groups[j]

    def unpaid(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the keys of those pairs that count and are not paid for, in order."""
        keys = (np.minimum(i, j) * self.n + np.maximum(i, j))[self.allowed(i, j)]
        return keys[~among(keys, self.keys)]

    def pay(self, keys: np.ndarray) -> int:
        """Evaluate unpaid pairs as far as the limit allows; return how many."""
        i, j = np.divmod(keys, self.n)
        size, price = payable(self.sim, i, j, self.left)
        i, j = i[:size], j[:size]
        values = self.sim.pairs(i, j)
        self.calls += price
        self.add(i, j, values)
        return size

    def pay_columns(self, S: np.ndarray) -> None:
        """Evaluate whole columns."""
        price, values = self.sim.cost((None, S)), self.sim.columns(S)
        self.calls += price
        once = np.ones(values.shape, bool)
        once[S] = ~np.tri(S.size, dtype=bool)  # two columns have one pair in common
        i, c = np.nonzero(once)
        low, high = np.minimum(i, S[c]), np.maximum(i, S[c])
        new = ~among(low * self.n + high, self.keys)
        self.add(low[new], high[new], values[i, c][new])

    def add(self, i: np.ndarray, j: np.ndarray, values: np.ndarray) -> None:
        """Add pairs that are not paid for yet; pairs that do not count are left out."""
        i, j, right = np.minimum(i, j), np.maximum(i, j), self.allowed(i, j)
        i, j, nearness = i[right], j[right], self.sign * values[right].astype(float)
        self.i, self.j = np.append(self.i, i), np.append(self.j, j)
        self.nearness = np.append(self.nearness, nearness)
        number = np.arange(self.i.size - i.size + 1, self.i.size + 1, dtype=np.int32)
        places = (np.append(i, j), np.append(j, i))
        new = coo_array((np.tile(number, 2), places), shape=(self.n, self.n))
        self.numbers = self.numbers + new.tocsr()
        keys = np.append(self.keys, np.sort(i * self.n + j))
        self.keys = np.sort(keys, kind="stable")  # merges both
        self.degree += np.bincount(np.append(i, j), minlength=self.n)
        self._rank(np.append(i, j), np.append(j, i), np.append(nearness, nearness))

    def _rank(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Insert new entries into the lists of nearest items."""
        better = values > self.values[rows, -1]
        rows, columns, values = rows[better], columns[better], values[better]
        order = np.lexsort((columns, -values, rows))
        rows, columns, values = rows[order], columns[order], values[order]
        place = np.arange(rows.size) - np.searchsorted(rows, rows)
        few = place < self.k
        rows, place = rows[few], place[few]
        new_indices = np.full((self.n, self.k), -1)
        new_values = np.full((self.n, self.k), -np.inf)
        new_indices[rows, place], new_values[rows, place] = columns[few], values[few]
        indices = np.hstack([self.indices, new_indices])
        values = np.hstack([self.values, new_values])
        order = np.argsort(-values, axis=1, kind="stable")[:, : self.k]
        self.indices = np.take_along_axis(indices, order, axis=1)
        self.values = np.take_along_axis(values, order, axis=1)

    def matrix(self, data: np.ndarray) -> csr_array:
        """Return the symmetric matrix with these data, one number for each pair."""
        numbers, shape = self.numbers, (self.n, self.n)
        data = data[numbers.data - 1]
        return csr_array((data, numbers.indices, numbers.indptr), shape=shape)

    def graph(self, most: float = inf) -> csr_array:
        """Return ones at the nearest items of every item, and in the other direction.

        An item has at most `most` entries for items that have it in their lists.
        """
        c, i = np.nonzero(self.indices.T >= 0)  # first the nearest item of each
        j, shape = self.indices[i, c], (self.n, self.n)
        graph = coo_array((np.ones(i.size, np.float32), (i, j)), shape=shape).tocsr()
        places = (np.arange(i.size), j)
        back = coo_array((graph.data, places), shape=(i.size, self.n)).tocsc()
        few = np.diff(back.indptr)
        few = np.arange(i.size) - np.repeat(back.indptr[:-1], few) < most
        i, j = i[back.indices][few], j[back.indices][few]
        reverse = coo_array((np.ones(i.size, np.float32), (j, i)), shape=shape)
        return graph.maximum(reverse.tocsr()).tocsr()
