"""The queue of a search for pairs: the most promising unpaid pairs, many at once.

Three proposals: the pairs with the largest predictions; those with the largest values
of the companion; and for every item its nearest item under the companion, then its
second, and so on. All pairs are predicted if that is cheap, in blocks that are not
kept; otherwise only pairs of neighbours under the companion, and of neighbours of
neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simlib.neighbors.cheap import factored, strips
from simlib.neighbors.choice import divide
from simlib.neighbors.pair_numbers import PairNumbers, merged
from simlib.neighbors.predict import Listed, PairPredictor
from simlib.similarity.known import among
from simlib.similarity.views import SimilarityMatrix

EVERY = 2**33  # all of at most so many pairs are predicted, if products of rows suffice
ASKED = 32  # times the cost of a product of rows: that of asking a companion
PART, PART_ASKED = 1 / 512, 1 / 8  # of the pairs are queued, in these two cases,
QUEUED = 64  # but at most so many for every item, or as many as are paid for
CANDIDATES = 48  # of every item under the companion, if candidates are listed,
NEAREST = 12  # of which so many are proposed by their rank
RELEARNT = 1.25  # times the paid pairs: the predictor then learns again
PREDICTED_AT_ONCE = 2**14  # pairs
SAMPLE = 2**16  # pairs from which the cut of a queue is estimated

Part = tuple[np.ndarray, np.ndarray, np.ndarray]  # numbers of pairs, scores, codes
Block = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
NOTHING = np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.uint16)


def is_listed(count: int, cheap: SimilarityMatrix | None) -> bool:
    """Tell whether predicting all of `count` pairs costs too much."""
    return count * (ASKED if _asks(cheap) else 1) > EVERY


class PairQueue:
    """Unpaid pairs by three proposals, as numbers of `PairNumbers`.

    The share of a proposal in a round depends on its hits in the round before.
    """

    def __init__(self, predictor: PairPredictor, numbers: PairNumbers):
        self._predictor, self._numbers = predictor, numbers
        cheap = None if predictor.companion is None else predictor.companion.cheap
        self._part = PART_ASKED if _asks(cheap) else PART
        self._lists = None
        if is_listed(numbers.count, cheap):
            self._lists = Listed(predictor, min(predictor.paid.n - 1, CANDIDATES))
        self._queue, self._learnt, self._least = NOTHING, 0, 0
        self._taken, self._nearest = [NOTHING[0]], NOTHING[0]
        if predictor.companion is not None:
            self._taken, self._nearest = 3 * self._taken, self._ranked()

    def take(self, number: int, seen: np.ndarray, cut: float) -> np.ndarray:
        """Return at most `number` pairs that are not among the sorted `seen`."""
        paid, left = self._predictor.paid.i.size, ~among(self._queue[0], seen)
        keys, scores, codes = (part[left] for part in self._queue)
        short = keys.size < max(number, self._least)
        if short or paid >= RELEARNT * self._learnt:
            self._predictor.update()
            self._learnt = paid
            scores = scores if short else self._scores(keys, codes)
        if short:
            keys, scores, codes = self._fill(number, seen)
            self._least = keys.size // 2
        self._queue = keys, scores, codes
        self._nearest = self._nearest[~among(self._nearest, seen)]
        ranked = self._nearest, -np.arange(self._nearest.size)
        proposals = [(keys, scores), (keys, codes), ranked]
        numbers = np.floor(number * self._shares(cut)).astype(int)
        numbers[0] += number - numbers.sum()
        chosen, owed = seen[:0], 0
        for k in np.argsort(-numbers, kind="stable"):
            keys, values = proposals[k]
            new, owed = ~among(keys, chosen), owed + numbers[k]
            self._taken[k] = np.sort(keys[new][_largest(values[new], owed)])
            chosen = merged(chosen, self._taken[k])
            owed -= self._taken[k].size
        return chosen

    def _shares(self, cut: float) -> np.ndarray:
        """Return the share of each proposal in this round, by its hits in the last."""
        paid, rates = self._predictor.paid, np.zeros(len(self._taken))
        for k, keys in enumerate(self._taken):
            values = paid.sim.peek(*self._numbers.pairs(keys)).astype(float)
            rates[k] = np.count_nonzero(paid.sign * values >= cut) / max(1, keys.size)
        if not any(keys.size for keys in self._taken):
            rates[1:] = 1
        return divide(rates**2)  # squared: more calls for the best proposal

    def _ranked(self) -> np.ndarray:
        """Return the nearest pairs of every item under the companion, by rank."""
        paid, companion, parts = self._predictor.paid, self._predictor.companion, []
        assert companion is not None
        if self._lists is None:
            lists = companion.neighbors(min(paid.n - 1, CANDIDATES), paid.groups)
            items = np.arange(paid.n)
            said = companion.entries(items, lists)
        else:
            items, lists, said = self._lists.nearest()
        for part in strips(*lists.shape):
            rows, columns, codes = items[part], lists[part], said[part].astype(int)
            codes[~paid.allowed(rows[:, None], columns)] = -1
            order = np.argsort(-codes, axis=1, kind="stable")[:, :NEAREST]
            columns, codes = (np.take_along_axis(a, order, 1) for a in (columns, codes))
            a, ranks = (codes >= 0).nonzero()
            keys = self._numbers.of(rows[a], columns[a, ranks])
            parts.append((keys, ranks, codes[a, ranks]))
        keys, ranks, codes = (np.concatenate(part) for part in zip(*parts, strict=True))
        keys = keys[np.lexsort((-codes, ranks))]
        _, first = np.unique(keys, return_index=True)
        return keys[np.sort(first)]

    def _fill(self, number: int, seen: np.ndarray) -> Part:
        """Predict all candidates, and return the best as the new queue."""
        paid, left = self._predictor.paid, self._numbers.count - seen.size
        part = min(self._part * self._numbers.count, QUEUED * paid.n)
        size = min(int(max(4 * number, part, paid.i.size)), left)
        cuts = [-np.inf, 0.0]
        if self._lists is None and 2 * size < left:
            some = self._numbers.draw(np.random.default_rng(0), seen, SAMPLE)
            codes = self._predictor.codes_at(*self._numbers.pairs(some))
            both, level = (self._scores(some, codes), codes), 1 - 2 * size / left
            cuts = [float(np.quantile(values, level)) for values in both]
        parts: list[Part] = [NOTHING]
        found = 0
        for rows, columns, predicted, codes in self._candidates():
            good = predicted >= np.float32(cuts[0])
            if len(self._taken) > 1:
                good |= codes >= cuts[1]
            a, c = np.nonzero(good)
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
            if found > 6 * size:
                parts = [_best(parts, size)]
                found = parts[0][0].size
                if found >= size:
                    cuts = [_above(parts[0][k], found - size) for k in (1, 2)]
        return _best(parts, size)

    def _scores(self, keys: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Predict some pairs whose codes are known."""
        scores = np.empty(keys.size, np.float32)
        for some in strips(keys.size, 1, PREDICTED_AT_ONCE):
            pairs = self._numbers.pairs(keys[some])
            scores[some] = self._predictor.pairs(*pairs, codes[some])
        return scores

    def _candidates(self) -> Iterator[Block]:
        """Yield rows, the columns of each row, predictions, and codes."""
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
    """Tell whether a companion has to be asked, as it has no dense vectors."""
    return cheap is not None and factored(cheap) is None


def _above(values: np.ndarray, place: int) -> float:
    """Return the next float32 above the value at this place in increasing order."""
    value = np.partition(values, place)[place]
    return float(np.nextafter(np.float32(value), np.float32(np.inf)))


def _largest(values: np.ndarray, size: int) -> np.ndarray:
    """Return the places of the `size` largest values, or of all."""
    if not 0 < size < values.size:
        return np.arange(min(size, values.size))
    return np.argpartition(values, values.size - size)[values.size - size :]


def _best(parts: list[Part], size: int) -> Part:
    """Return distinct pairs: the `size` best by score and the `size` best by code."""
    keys, scores, codes = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not (keys[1:] > keys[:-1]).all():
        keys, first = np.unique(keys, return_index=True)
        scores, codes = scores[first], codes[first]
    best = np.zeros(keys.size, bool)
    best[_largest(scores, size)] = best[_largest(codes, size)] = True
    return keys[best], scores[best], codes[best]
