r"""Numbers of the pairs of n items, from 0 on, and uniform draws of unseen pairs.

.. math::
    \text{number}(a, b) = \sum_{c < a} (n - e_c) + b - e_a , \qquad
    u = r + \# \{ k : s_k - k \le r \}

Items stand in the order of their groups, by default each in its own group, and
:math:`e_a` is the first place after the group of place a. u is the r-th number, from 0
on, that is not among sorted numbers s: a draw needs no list of pairs.
"""

from __future__ import annotations

import numpy as np


class PairNumbers:
    """The pairs of items of different groups, and their numbers below `count`."""

    def __init__(self, n: int, groups: np.ndarray | None = None):
        groups = np.arange(n) if groups is None else groups
        self._order = np.argsort(groups, kind="stable")
        self._place = np.argsort(self._order)
        groups = groups[self._order]
        self._end = np.searchsorted(groups, groups, side="right")
        self._start = np.append(0, np.cumsum(n - self._end))
        self.count = int(self._start[-1])

    def pairs(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs i < j that have these numbers."""
        a = np.searchsorted(self._start, numbers, side="right") - 1
        i, j = self._order[a], self._order[numbers - self._start[a] + self._end[a]]
        return np.minimum(i, j), np.maximum(i, j)

    def of(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the numbers of some pairs of different groups."""
        a, b = self._place[i], self._place[j]
        a, b = np.minimum(a, b), np.maximum(a, b)
        return self._start[a] + b - self._end[a]

    def draw(self, rng: np.random.Generator, seen: np.ndarray, size: int) -> np.ndarray:
        """Draw `size` distinct numbers that are not among the sorted `seen`, or all."""
        left = self.count - seen.size
        return rng.permutation(unseen(seen, _distinct(rng, left, min(size, left))))


def unseen(seen: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return the numbers with these ranks among all numbers that are not in `seen`."""
    before = seen - np.arange(seen.size)  # how many are not seen
    return ranks + np.searchsorted(before, ranks, side="right")


def merged(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return two sorted arrays as one, each number once."""
    both = np.sort(np.append(one, other), kind="stable")
    return both[np.append(True, both[1:] > both[:-1])] if both.size else both


def _distinct(rng: np.random.Generator, most: int, size: int) -> np.ndarray:
    """Draw `size` distinct numbers below `most`, sorted."""
    if 2 * size > most:
        kept = np.ones(most, bool)
        kept[_distinct(rng, most, most - size)] = False
        return np.flatnonzero(kept)
    found = np.zeros(0, np.int64)
    while found.size < size:
        found = merged(found, np.sort(rng.integers(most, size=size - found.size)))
    return found
