"""The choice of the pairs to pay for next: the most promising of each item.

An item ranks the others by a prediction; a pair is as promising as the better of its
two ranks.
"""

from __future__ import annotations

import numpy as np

from simlib.neighbors.paid import among

__all__ = ["Chosen", "distinct", "divide", "first", "joined"]

FLOOR = 0.08  # of the calls of a round, for each predictor

Chosen = tuple[np.ndarray, np.ndarray, np.ndarray]  # keys, ranks and scores of pairs


def first(
    scores: np.ndarray, paid: np.ndarray, keep: int, depth: int, *, among_all: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, places and ranks of the `keep` best unpaid entries of each row.

    Of scores (b, w), minus infinity for what is no candidate; overwritten unless paid
    ones keep their ranks, `among_all`. It looks down to `depth`.
    """
    if not among_all:
        scores[paid] = -np.inf
        depth = keep
    depth = min(depth, scores.shape[1])
    order = np.argpartition(scores, -depth, axis=1)[:, scores.shape[1] - depth :]
    top = np.take_along_axis(scores, order, axis=1)
    within = np.argsort(-top, axis=1, kind="stable")
    order = np.take_along_axis(order, within, axis=1)
    good = np.isfinite(np.take_along_axis(top, within, axis=1))
    if among_all:
        good &= ~np.take_along_axis(paid, order, axis=1)
        good &= np.cumsum(good, axis=1) <= keep
    rows, ranks = good.nonzero()
    return rows, order[rows, ranks], ranks


def joined(parts: list[Chosen]) -> Chosen:
    """Return what several strips propose as one."""
    keys, ranks, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
    return keys, ranks, scores


def distinct(found: list[Chosen], numbers: np.ndarray) -> list[np.ndarray]:
    """Return of each proposal so many keys, each for one; who may pay most is first."""
    chosen = [np.zeros(0, np.int64) for _ in found]
    taken = np.zeros(0, np.int64)
    for place in np.argsort(-numbers, kind="stable"):
        keys, ranks, scores = found[place]
        new = ~among(keys, taken)
        chosen[place] = _best(keys[new], ranks[new], scores[new], numbers[place])
        taken = np.sort(np.append(taken, chosen[place]))
    return chosen


def _best(
    keys: np.ndarray, ranks: np.ndarray, scores: np.ndarray, number: int
) -> np.ndarray:
    """Return so many distinct keys of the best rank, among equals the best score."""
    counts = np.cumsum(np.bincount(ranks)) if ranks.size else np.zeros(0)
    some = ranks <= np.searchsorted(counts, 2 * number)  # a key occurs at most twice
    keys, ranks, scores = keys[some], ranks[some], scores[some]
    keys = keys[np.lexsort((-scores, ranks))]
    _, places = np.unique(keys, return_index=True)
    return keys[np.sort(places)][:number]


def divide(success: np.ndarray) -> np.ndarray:
    """Return the share of each predictor in the next round, from its success."""
    if not success.sum() > 0:
        return np.full(success.size, 1 / success.size)
    shares = np.maximum(success / success.sum(), FLOOR)
    return shares / shares.sum()
