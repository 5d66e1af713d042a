"""The choice of the pairs to pay for next: the most promising pairs of each item.

An item ranks the others by a prediction; the better of its two ranks counts for a pair.
"""

from __future__ import annotations

import numpy as np

from simlib.neighbors import loops
from simlib.similarity.known import among

FLOOR = 0.04  # share of the calls of a round for each predictor, at least
POWER = 3  # the share of a predictor is proportional to this power of its success

Chosen = tuple[np.ndarray, np.ndarray, np.ndarray]  # keys, ranks and scores of pairs


def first(
    scores: np.ndarray, keep: int, indptr: np.ndarray, paid: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, places, ranks and scores of the `keep` best scores of each row.

    Scores have the shape (b, w); only finite ones count. A rank also counts the paid
    pairs with larger scores; those of row a are ``paid[indptr[a] : indptr[a + 1]]``.
    """
    places, top = loops.best(scores, keep)
    good = places >= 0
    rows, ranks = good.nonzero()
    if paid.size:
        ranks = ranks + loops.overtaken(top, indptr, paid)[good]
    return rows, places[good], ranks, top[good]


def distinct(
    found: list[list[Chosen]], numbers: np.ndarray, summed: int
) -> list[np.ndarray]:
    """Return `numbers` keys of each proposal; no key is taken from two proposals.

    A proposal comes in parts, and that with the largest number is served first. In the
    proposal `summed` the ranks of both items of a pair count.
    """
    chosen = [np.zeros(0, np.int64) for _ in found]
    taken = np.zeros(0, np.int64)
    for place in np.argsort(-numbers, kind="stable"):
        keys, ranks, scores = map(np.concatenate, zip(*found[place], strict=True))
        order = _by_both if place == summed else _by_one
        keys = order(keys, ranks, scores, numbers[place] + taken.size)
        chosen[place] = keys[~among(keys, taken)][: numbers[place]]
        taken = np.sort(np.append(taken, chosen[place]))
    return chosen


def _by_one(
    keys: np.ndarray, ranks: np.ndarray, scores: np.ndarray, number: int
) -> np.ndarray:
    """Return at least `number` distinct keys, by the best rank and then the score."""
    counts = np.cumsum(np.bincount(ranks)) if ranks.size else np.zeros(0)
    some = ranks <= np.searchsorted(counts, 2 * number)  # a key occurs at most twice
    keys, ranks, scores = keys[some], ranks[some], scores[some]
    keys = keys[np.lexsort((-scores, ranks))]
    _, places = np.unique(keys, return_index=True)
    return keys[np.sort(places)]


def _by_both(
    keys: np.ndarray, ranks: np.ndarray, scores: np.ndarray, number: int
) -> np.ndarray:
    """Return at least `number` distinct keys, by the sum of 1 / (1 + rank)."""
    keys, places, pair = np.unique(keys, return_index=True, return_inverse=True)
    gain, scores = np.bincount(pair, 1 / (1 + ranks)), scores[places]
    if number < keys.size:
        some = gain >= np.partition(gain, -number - 1)[-number - 1]
        keys, gain, scores = keys[some], gain[some], scores[some]
    return keys[np.lexsort((-scores, -gain))]


def divide(success: np.ndarray, least: float = FLOOR) -> np.ndarray:
    """Return the share of each predictor in the next round, by its success.

    None gets less than `least`, before the shares are brought to the sum of one.
    """
    if not success.sum() > 0:
        return np.full(success.size, 1 / success.size)
    shares = success**POWER / (success**POWER).sum()
    shares = np.maximum(shares, least)
    return shares / shares.sum()
