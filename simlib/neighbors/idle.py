r"""The end of a search that promises nothing: rounds that find little.

.. math::
    f \le \frac{F}{100} \min \Big( 1, \frac{b}{P / 10} \Big) , \qquad
    \sum b \ge \max \Big( \min \Big( \frac{10 \, P}{F}, 20 \, n \Big), 2 \, b_0 \Big)

A round of b pairs is idle if it adds f hits, no more than this, to F; P pairs of n
items are paid for. The search ends after two idle rounds in a row, or more, that have
as many pairs in sum, where the first round of a search has :math:`b_0`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from simlib.neighbors.hits import Hits

if TYPE_CHECKING:
    from simlib.neighbors.pair_search import PairSearch

LITTLE = 0.01  # share of the hits: a round that adds no more is idle
IDLE = 2  # rounds in a row, and pairs in them over those of a first round, at least
ENOUGH, MOST = 10, 20  # pairs in them: as many as brought `ENOUGH` hits before, or
# `MOST` for every item


class Idle:
    """Idle rounds in a row, until they are enough."""

    def __init__(self, search: PairSearch, hits: Hits):
        self.search, self.hits = search, hits
        self.rounds = self.pairs = 0

    def ends(self, near: np.ndarray, found: int, show: Callable[..., object]) -> bool:
        """Tell whether a round was the last, by its nearness and its new hits."""
        search, nearness = self.search, self.search.paid.nearness
        hits = self.hits.count(nearness)
        show(hits=hits)
        before = self.hits.count(nearness[: nearness.size - near.size])
        if found > LITTLE * min(1, near.size / search.growth) * before:
            self.rounds = self.pairs = 0
        else:
            self.rounds, self.pairs = self.rounds + 1, self.pairs + near.size
        each = search.seen.size / max(1, hits)
        enough = max(min(ENOUGH * each, MOST * search.n), IDLE * search.first_round)
        return near.size == 0 or (self.rounds >= IDLE and self.pairs >= enough)

    def promised(self) -> float:
        """Return the recall that is certain: none, unless all pairs are paid for."""
        return float(self.search.n_left == 0)

    def reached(self) -> bool:
        """Tell whether the search was not ended by the limit."""
        search = self.search
        left = search.price <= search.paid.left
        return not search.spent and (left or not search.n_left)
