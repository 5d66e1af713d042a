"""The choice of the pairs to pay for next: the most promising of each item.

An item ranks the others by a prediction; a pair is as promising as the better of its
two ranks.
"""

from __future__ import annotations

import numpy as np

from simlib.neighbors import loops
from simlib.neighbors.cheap import best
from simlib.neighbors.paid import among

__all__ = ["Chosen", "distinct", "divide", "first", "joined"]

FLOOR = 0.04  # of the calls of a round, for each predictor
POWER = 3  # of the success: the best predictor gets most calls

Chosen = tuple[np.ndarray, np.ndarray, np.ndarray]  # keys, ranks and scores of pairs


def first(
    scores: np.ndarray, keep: int, indptr: np.ndarray, paid: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, places, ranks and scores of the `keep` best finite ones of each row.

    Of scores (b, w). They rank among the scores of what is paid for too: those of row a
    are ``paid[indptr[a] : indptr[a + 1]]``.
    """
    places, top = best(scores, keep)
    good = places >= 0
    rows, ranks = good.nonzero()
    if paid.size:
        ranks = ranks + loops.overtaken(top, indptr, paid)[good]
    return rows, places[good], ranks, top[good]


def joined(parts: list[Chosen]) -> Chosen:
    """Return what several strips propose as one."""
    keys, ranks, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
    return keys, ranks, scores


def distinct(found: list[Chosen], numbers: np.ndarray, summed: int) -> list[np.ndarray]:
    """Return of each proposal so many keys, each for one; who may pay most is first.

    Of the proposal `summed` what both items rank high comes first.
    """
    chosen = [np.zeros(0, np.int64) for _ in found]
    taken = np.zeros(0, np.int64)
    for place in np.argsort(-numbers, kind="stable"):
        keys, ranks, scores = found[place]
        order = _by_both if place == summed else _by_one
        keys = order(keys, ranks, scores, numbers[place] + taken.size)
        chosen[place] = keys[~among(keys, taken)][: numbers[place]]
        taken = np.sort(np.append(taken, chosen[place]))
    return chosen


def _by_one(
    keys: np.ndarray, ranks: np.ndarray, scores: np.ndarray, number: int
) -> np.ndarray:
    """Return so many distinct keys of the best rank, among equals the best score."""
    counts = np.cumsum(np.bincount(ranks)) if ranks.size else np.zeros(0)
    some = ranks <= np.searchsorted(counts, 2 * number)  # a key occurs at most twice
    keys, ranks, scores = keys[some], ranks[some], scores[some]
    keys = keys[np.lexsort((-scores, ranks))]
    _, places = np.unique(keys, return_index=True)
    return keys[np.sort(places)]


def _by_both(
    keys: np.ndarray, ranks: np.ndarray, scores: np.ndarray, number: int
) -> np.ndarray:
    """Return so many distinct keys by the sum of 1 / (1 + rank) over both items."""
    keys, places, pair = np.unique(keys, return_index=True, return_inverse=True)
    gain, scores = np.bincount(pair, 1 / (1 + ranks)), scores[places]
    if number < keys.size:
        some = gain >= np.partition(gain, -number - 1)[-number - 1]
        keys, gain, scores = keys[some], gain[some], scores[some]
    return keys[np.lexsort((-scores, -gain))]


def divide(success: np.ndarray) -> np.ndarray:
    """Return the share of each predictor in the next round, from its success."""
    if not success.sum() > 0:
        return np.full(success.size, 1 / success.size)
    shares = success**POWER / (success**POWER).sum()
    shares = np.maximum(shares, FLOOR)
    return shares / shares.sum()
