r"""The end of a search with a promise: looks at samples, until few hits can be missing.

.. math::
    B_\ell = M_\ell - x_\ell , \qquad
    \frac{b}{f} \ge \frac{64 \, U}{g^2} , \qquad
    s + \max \Big( \frac{h}{r}, \frac P 2 \Big) \log \frac{64 \, r \, U}{g^2}

A look, at a uniform sample of the U unpaid pairs, gives the bound :math:`B_\ell` of the
missing hits, see `simlib.neighbors.recall_bound`. An earlier bound still holds, minus
the hits found since. g hits may be missing. Each that is found before a look spares
:math:`64 \, U / g^2` calls of it: the search looks when a round of b pairs with f hits
has paid more for one. The third formula estimates the pairs to come: s of the look, and
those of rounds in which hits come at the rate r, which falls slowly as the h missing
ones are found; P are paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log
from typing import TYPE_CHECKING

import numpy as np

from simlib._checks import share, warn
from simlib.neighbors.hits import Hits
from simlib.neighbors.recall_bound import alpha, most_hits, sample_size

if TYPE_CHECKING:
    from simlib.neighbors.pair_search import PairSearch

SPARED = 64  # U / g^2 calls that a sample is smaller by for each hit found before
AT_ONCE = 2**21  # pairs of a sample at a time
FADES = 0.5  # of the paid pairs: after so many pairs the rate of hits falls to 1/e
WITHOUT = 0.92  # of the pairs: the price of a promise without a companion
WORTH_A_WARNING = 10_000  # calls: a promise that takes fewer gives no warning


class Promise:
    """A recall of a search, and the bound of the missing hits so far."""

    def __init__(
        self, search: PairSearch, hits: Hits, recall: float, confidence: float
    ):
        self.search, self.hits, self.confidence = search, hits, confidence
        self.recall = share(recall, "recall")
        self.bound, self.rounds, self.looks = inf, 0, 0

    def ends(self, near: np.ndarray, found: int, show: Callable[..., object]) -> bool:
        """Look if a round found few hits; tell whether the recall is promised."""
        search = self.search
        self.lower(near)
        goal = self.hits.goal(self.recall, self._found())
        look = SPARED * search.n_left * found <= near.size * goal**2
        if near.size and goal < 1 and not search.pays_for_all():
            look = False  # it would take all
        ahead = int(self._ahead(near) / search.n_pairs * search.every)
        show(hits=self._found(), promised=f"{self.promised():.0%}", ahead=ahead)
        self.rounds += 1
        if self.looks == 0 and (self.rounds == 2 or (self.rounds == 1 and look)):
            self._warn(ahead)
        if look:
            self._look(show)
        return self.reached()

    def lower(self, near: np.ndarray) -> None:
        """Lower the bound by the hits among new pairs."""
        self.bound -= self.hits.certain(near)
        if self.bound < 0:  # more hits than the bound allowed: it was wrong
            self.bound = inf

    def promised(self) -> float:
        """Return the lower bound of the recall."""
        if self.search.n_left == 0:
            return 1.0
        return self.hits.recall(self._found(), self.bound)

    def reached(self) -> bool:
        """Tell whether the recall is promised."""
        return self.promised() >= self.recall

    def _found(self) -> int:
        return self.hits.count(self.search.paid.nearness)

    def _look(self, show: Callable[..., object]) -> None:
        """Pay for a growing random sample until the recall is promised or hopeless.

        Its possible sizes do not depend on its values, and each of them counts as a
        look, even if it is passed over.
        """
        search, hits = self.search, self.hits
        U, cut, s, x, size = search.n_left, hits.cut(search.paid.nearness), 0, 0, 0
        while s < U and not search.spent:
            goal, needed = hits.goal(self.recall, self._found()), U + 1
            while size < min(needed, U):
                self.looks += 1
                doubt = alpha(self.looks, self.confidence)
                if goal > 0:
                    needed = sample_size(U, x, goal, doubt)
                size = needed if size == 0 else size + size // 4 + 1
            drawn = int(min(size, U) - s) * search.price
            show(hits=self._found(), promised=f"{self.promised():.0%}", ahead=drawn)
            while s < min(size, U) and not search.spent:
                near = search.pay_random(min(min(size, U) - s, AT_ONCE), cut)
                self.lower(near)
                s, x = s + near.size, x + hits.new(near, cut)
                if goal == 0 < x:  # the first hits
                    return
            if s:
                self.bound = min(self.bound, most_hits(U, x, s, doubt) - x)
            hopeless = sample_size(U, x, goal, doubt) > 2 * s
            if self.reached() or hopeless:
                break

    def _ahead(self, near: np.ndarray) -> float:
        """Estimate the pairs to come: those of the last look, and those of rounds.

        The number of hits is estimated from the first random sample, minus one standard
        deviation, or two if the last round found no hit.
        """
        search, hits, U = self.search, self.hits, self.search.n_left
        first, n_pairs = search.first, search.n_pairs
        likely, cut = hits.expected(first, n_pairs, 1 if hits.certain(near) else 2)
        goal = hits.goal(self.recall, max(likely, self._found()))
        if goal * U == 0:
            return U
        number: float = sample_size(U, 0, goal, alpha(self.looks + 1, self.confidence))
        missing = max(0, likely - np.count_nonzero(search.paid.nearness >= cut))
        rate = max(hits.new(near, cut) / max(1, near.size), missing / U)
        last = goal**2 / (SPARED * U)
        if rate > last:
            number += max(missing / rate, FADES * search.seen.size) * log(rate / last)
            if search.cheap is None:
                number = max(number, WITHOUT * n_pairs)
        return min(U, number)

    def _warn(self, ahead: int) -> None:
        """Warn if a promise takes most of all calls, or more than the limit leaves."""
        left, every = self.search.paid.left, self.search.every
        if self.recall < 1 and ahead > WORTH_A_WARNING and ahead > min(left, every / 2):
            limit = "" if left == inf else f" The limit leaves {left:.0f}."
            better, none = "a companion, `cheap`", ""
            if self.search.cheap is not None:
                better = "a better `cheap`"
            if (paid := self.search.paid).nearness.size and not self._found():
                nearest = paid.sign * paid.nearness.max()
                none = f" No pair passes so far: the nearest has {nearest:.3g}."
            warn(
                f"A promised recall of {self.recall:g} takes about {ahead} more calls; "
                f"all pairs take {every}.{limit}{none} Pass {better}, or recall=None "
                "with a limit, which promises nothing."
            )
