"""The pairs that are paid for: as a sparse matrix, and the nearest of each item."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

__all__ = ["Paid"]


class Paid:
    """Pairs of n items with their nearness, and the k nearest of each item so far.

    Parameters
    ----------
    n : int
        Number of items.
    k : int
        How many of the nearest are kept at hand.

    Attributes
    ----------
    i, j : arrays of int, shape (m,)
        The pairs, each once, in the order in which they came.
    nearness : array of shape (m,)
        Large means near.
    indices, values : arrays of shape (n, k)
        The k nearest, from the nearest on; -1 and minus infinity where there are fewer.
    degree : array of int, shape (n,)
        Pairs of each item.
    """

    def __init__(self, n: int, k: int):
        self.n, self.k = n, k
        self.i = self.j = np.zeros(0, np.int64)
        self.nearness = np.zeros(0)
        self.indices = np.full((n, k), -1)
        self.values = np.full((n, k), -np.inf)
        self.degree = np.zeros(n, np.int64)

    def add(self, i: np.ndarray, j: np.ndarray, nearness: np.ndarray) -> None:
        """Add pairs that are not there yet, of two items each."""
        self.i, self.j = np.append(self.i, i), np.append(self.j, j)
        self.nearness = np.append(self.nearness, nearness)
        rows, columns = np.append(i, j), np.append(j, i)
        values = np.append(nearness, nearness)
        better = values > self.values[rows, -1]
        self.degree += np.bincount(rows, minlength=self.n)
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

    def matrix(self, data: np.ndarray, first: int = 0) -> csr_array:
        """Return the symmetric matrix that has these data at the pairs from one on."""
        i, j = self.i[first:], self.j[first:]
        places = (np.append(i, j), np.append(j, i))
        both = coo_array((np.append(data, data), places), shape=(self.n, self.n))
        return csr_array(both)

    def complete(self) -> bool:
        """Tell whether every pair is there."""
        return self.i.size == self.n * (self.n - 1) // 2
