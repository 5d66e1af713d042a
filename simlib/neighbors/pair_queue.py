"""The queue of a search for pairs: those of the largest prediction, many at once.

All pairs are predicted where that is cheap, in blocks that are not kept; else those of
the neighbours under the companion, and of neighbours of neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simlib.approximation.companion import InnerProducts
from simlib.neighbors.cheap import strips
from simlib.neighbors.paid import among
from simlib.neighbors.pair_numbers import PairNumbers
from simlib.neighbors.predict import Listed, PairPredictor
from simlib.similarity.views import SimilarityMatrix

__all__ = ["PairQueue", "is_listed"]

EVERY = 2**33  # pairs of which all are predicted, by a companion that multiplies rows;
ASKED = 32  # any other costs so much more
PART, PART_ASKED = 1 / 512, 1 / 8  # of the pairs are queued, likewise,
QUEUED = 64  # for every item at most, or as many as are paid for
CANDIDATES = 48  # of every item under the companion, where candidates are listed
RELEARNT = 1.25  # times as many paid pairs
PREDICTED_AT_ONCE = 2**14  # pairs
SAMPLE = 2**16  # pairs by which the cut of a queue is found

Part = tuple[np.ndarray, np.ndarray, np.ndarray]  # numbers of pairs, scores, codes
Block = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
NOTHING = np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.uint16)


def is_listed(count: int, cheap: SimilarityMatrix | None) -> bool:
    """Tell whether to predict all of so many pairs costs too much."""
    return count * (ASKED if _asks(cheap) else 1) > EVERY


class PairQueue:
    """Unpaid pairs of the largest prediction, by their numbers."""

    def __init__(self, predictor: PairPredictor, numbers: PairNumbers):
        self._predictor, self._numbers = predictor, numbers
        cheap = None if predictor.companion is None else predictor.companion.cheap
        self._part = PART_ASKED if _asks(cheap) else PART
        self._lists = None
        if is_listed(numbers.count, cheap):
            most = predictor.paid.n - 1
            self._lists = Listed(predictor, min(most, CANDIDATES))
        self._queue, self._codes = np.zeros(0, np.int64), np.zeros(0, np.uint16)
        self._learnt = self._least = 0

    def take(self, number: int, seen: np.ndarray) -> np.ndarray:
        """Return the best that are not among sorted ones, sorted: so many, or fewer."""
        paid = self._predictor.paid.i.size
        short = self._queue.size < max(number, self._least)
        if short or paid >= RELEARNT * self._learnt:
            self._predictor.update()
            self._learnt = paid
            if short:
                self._fill(number, seen)
            else:
                order = np.argsort(-self._scores(self._queue, self._codes))
                self._queue, self._codes = self._queue[order], self._codes[order]
        best = self._queue[:number]
        self._queue, self._codes = self._queue[number:], self._codes[number:]
        best = np.sort(best)
        return best[~among(best, seen)]

    def _fill(self, number: int, seen: np.ndarray) -> None:
        """Predict all candidates, and queue the best."""
        paid, left = self._predictor.paid, self._numbers.count - seen.size
        part = min(self._part * self._numbers.count, QUEUED * paid.n)
        size = min(int(max(4 * number, part, paid.i.size)), left)
        cut = np.float32(-np.inf)
        if self._lists is None and 2 * size < left:
            some = self._numbers.draw(np.random.default_rng(0), seen, SAMPLE)
            cut = np.float32(np.quantile(self._scores(some), 1 - 2 * size / left))
        parts, found = [NOTHING], 0
        for rows, columns, predicted, codes in self._candidates():
            a, c = np.nonzero(predicted >= cut)
            i, j = rows[a], columns[a, c]
            counts = paid.allowed(i, j)
            if self._lists is None:
                counts &= i < j
            a, c, i, j = a[counts], c[counts], i[counts], j[counts]
            keys = self._numbers.of(i, j)
            new = ~among(keys, seen)
            a, c = a[new], c[new]
            parts.append((keys[new], predicted[a, c], codes[a, c]))
            found += a.size
            if found > 4 * size:
                parts = [_best(parts, size)]
                found, cut = size, np.nextafter(parts[0][1][-1], np.float32(np.inf))
        self._queue, _, self._codes = _best(parts, size)
        self._least = self._queue.size // 2

    def _scores(self, keys: np.ndarray, codes: np.ndarray | None = None) -> np.ndarray:
        """Predict some pairs, whose codes may be known."""
        scores = np.empty(keys.size, np.float32)
        for some in strips(keys.size, 1, PREDICTED_AT_ONCE):
            known = None if codes is None else codes[some]
            scores[some] = self._predictor.pairs(
                *self._numbers.pairs(keys[some]), known
            )
        return scores

    def _candidates(self) -> Iterator[Block]:
        """Yield rows, the columns of each, what is predicted, and the codes."""
        if self._lists is not None:
            for strip in self._lists.strips():
                yield strip.rows, strip.columns, strip.predicted, strip.codes
            return
        n = self._predictor.paid.n
        for rows in strips(n, n):
            columns = np.arange(rows[0], n)
            predicted, codes = self._predictor.block(rows, columns)
            yield rows, np.broadcast_to(columns, predicted.shape), predicted, codes


def _asks(cheap: SimilarityMatrix | None) -> bool:
    """Tell whether a companion is more than products of rows."""
    base = getattr(cheap, "base", None)
    product = isinstance(base, InnerProducts) and isinstance(base.Z, np.ndarray)
    return cheap is not None and not product


def _best(parts: list[Part], size: int) -> Part:
    """Return so many distinct pairs of the best scores, from the best on."""
    keys, scores, codes = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not (keys[1:] > keys[:-1]).all():
        keys, first = np.unique(keys, return_index=True)
        scores, codes = scores[first], codes[first]
    best = np.arange(keys.size)
    if size < keys.size:
        best = np.argpartition(-scores, size)[:size]
    best = best[np.argsort(-scores[best], kind="stable")]
    return keys[best], scores[best], codes[best]
