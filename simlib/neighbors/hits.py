r"""What a search for pairs is for: the pairs above a threshold, or the m nearest pairs.

.. math::
    \text{recall} \ge \frac{F}{F + B} \text{ of those above} , \qquad
    \text{recall} \ge 1 - \frac{B}{m} \text{ of the } m \text{ nearest}

F hits are found and at most B are missing. Whether a pair is one of the m nearest is
not certain before the end: F of them count as found if there are m, and B bounds the
pairs nearer than the m-th of these.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import TypeAlias

import numpy as np

DIGITS = 9  # of a goal: at a recall of 0.9 one of ten may be missing, not 0.9999999...


class Above:
    """The pairs with at least this nearness."""

    def __init__(self, threshold: float):
        self.threshold = threshold

    def cut(self, nearness: np.ndarray) -> float:
        """Return the least nearness of a hit, by what is paid for."""
        return self.threshold

    def count(self, nearness: np.ndarray) -> int:
        """Count the hits among what is paid for."""
        return int(np.count_nonzero(nearness >= self.threshold))

    def certain(self, nearness: np.ndarray) -> int:
        """Count the pairs that are hits whatever is found beside them."""
        return self.count(nearness)

    def new(self, nearness: np.ndarray, cut: float) -> int:
        """Count the hits among new pairs, by the cut before them."""
        return self.count(nearness)

    def recall(self, found: int, missing: float) -> float:
        """Return the least recall if at most so many hits are missing."""
        return found / (found + missing) if found else float(missing == 0)

    def goal(self, recall: float, found: float) -> float:
        """Return how many hits may be missing for this recall."""
        return round(found * (1 - recall) / recall, DIGITS)

    def expected(self, some: np.ndarray, n_pairs: int, z: int) -> tuple[float, float]:
        """Estimate how many hits there are, less z deviations, and the cut."""
        x = self.count(some)
        return (x - z * sqrt(x)) * n_pairs / max(1, some.size), self.threshold


class Nearest:
    """The m nearest pairs, with the methods of `Above`; of equal pairs any count."""

    def __init__(self, m: int):
        self.m = m

    def cut(self, nearness: np.ndarray) -> float:
        """Return the nearness of the m-th so far."""
        place = nearness.size - self.m
        return -inf if place < 0 else float(np.partition(nearness, place)[place])

    def count(self, nearness: np.ndarray) -> int:
        """Count the pairs, up to m."""
        return min(nearness.size, self.m)

    def certain(self, nearness: np.ndarray) -> int:
        """Return 0: others may be nearer."""
        return 0

    def new(self, nearness: np.ndarray, cut: float) -> int:
        """Count the pairs that are nearer than the m-th."""
        return int(np.count_nonzero(nearness > cut))

    def recall(self, found: int, missing: float) -> float:
        """Return the least recall: none before m are found."""
        return max(0.0, (self.m - missing) / self.m) if found == self.m else 0.0

    def goal(self, recall: float, found: float) -> float:
        """Return how many of the m may be missing."""
        return round(self.m * (1 - recall), DIGITS)

    def expected(self, some: np.ndarray, n_pairs: int, z: int) -> tuple[float, float]:
        """Return m, and estimate the cut."""
        return float(self.m), float(np.quantile(some, 1 - self.m / n_pairs))


Hits: TypeAlias = Above | Nearest
