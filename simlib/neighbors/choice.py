"""Which pairs to pay for next: the most promising of each item.

An item ranks the others by a prediction; a pair is as promising as the better of its
two ranks. Where those already paid for keep their ranks an item whose nearest are paid
for waits until the others have got as far.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from simlib.similarity.views import SimilarityMatrix

__all__ = ["Board", "affordable", "among", "divide", "first", "mask", "pick", "strips"]

STRIP = 2**22  # entries of a prediction held at a time
FLOOR = 0.08  # of the calls of a round, for each predictor


def strips(n: int, width: int) -> Iterator[np.ndarray]:
    """Yield the items, some at a time."""
    step = max(1, STRIP // max(1, width))
    for k in range(0, n, step):
        yield np.arange(k, min(k + step, n))


class Board:
    """Room for some rows of a sparse matrix with n columns, written and wiped again.

    Entries are found at once, in time and memory of those that are asked for.
    """

    def __init__(self, n: int):
        self._n = n
        self._cells = np.zeros((0, n), np.float32)

    def read(self, matrix: csr_array, columns: np.ndarray) -> np.ndarray:
        """Return the entries of a matrix at some columns of each row, shape (b, w)."""
        b = matrix.shape[0]
        if len(self._cells) < b:
            self._cells = np.zeros((b, self._n), np.float32)
        rows = np.repeat(np.arange(b), np.diff(matrix.indptr))
        self._cells[rows, matrix.indices] = matrix.data
        entries = np.take_along_axis(self._cells[:b], columns, axis=1)
        self._cells[rows, matrix.indices] = 0
        return entries


def first(
    scores: np.ndarray, paid: np.ndarray, keep: int, depth: int, *, among_all: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the places of the unpaid entries that come first in each row.

    Parameters
    ----------
    scores : array of shape (b, w)
        Minus infinity for what is no candidate. Overwritten.
    paid : array of bool, shape (b, w)
    keep : int
        How many unpaid ones of each row, at most.
    depth : int
        How far down to look for them.
    among_all : bool
        Whether paid entries keep their ranks.

    Returns
    -------
    rows, places : arrays of int
        The entries.
    ranks : array of int
        From 0 on.
    """
    if not among_all:
        scores[paid] = -np.inf
        depth = keep
    depth = min(depth, scores.shape[1])
    order = np.argpartition(scores, -depth, axis=1)[:, scores.shape[1] - depth :]
    top = np.take_along_axis(scores, order, axis=1)
    within = np.argsort(-top, axis=1, kind="stable")
    order = np.take_along_axis(order, within, axis=1)
    top = np.take_along_axis(top, within, axis=1)
    good = np.isfinite(top)
    if among_all:
        good &= ~np.take_along_axis(paid, order, axis=1)
        good &= np.cumsum(good, axis=1) <= keep
    rows, ranks = good.nonzero()
    return rows, order[rows, ranks], ranks


def pick(
    keys: np.ndarray, ranks: np.ndarray, scores: np.ndarray, number: int
) -> np.ndarray:
    """Return so many distinct keys of the best rank, among equals the best score."""
    counts = np.cumsum(np.bincount(ranks)) if ranks.size else np.zeros(0)
    last = np.searchsorted(counts, 2 * number)  # a key occurs at most twice
    some = ranks <= last
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


def mask(matrix: csr_array, rows: np.ndarray) -> np.ndarray:
    """Return where some consecutive rows of a sparse matrix have entries."""
    dense = np.zeros((rows.size, matrix.shape[1]), bool)
    start, stop = matrix.indptr[rows[0]], matrix.indptr[rows[-1] + 1]
    degree = np.diff(matrix.indptr[rows[0] : rows[-1] + 2])
    dense[np.repeat(np.arange(rows.size), degree), matrix.indices[start:stop]] = True
    return dense


def affordable(
    sim: SimilarityMatrix, i: np.ndarray, j: np.ndarray, left: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the first of some pairs, as many as so many calls pay for, and their cost.

    What is known, in one order or both, makes some pairs cheaper than others.
    """
    cost = sim.cost(pairs=(i, j))
    if cost > left:
        sizes = range(i.size)
        some = bisect_right(
            sizes, left, key=lambda size: sim.cost(pairs=(i[:size], j[:size]))
        )
        i, j = i[: max(0, some - 1)], j[: max(0, some - 1)]
        cost = sim.cost(pairs=(i, j))
    return i, j, cost


def among(keys: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Tell which keys are among sorted ones."""
    if known.size == 0:
        return np.zeros(keys.size, bool)
    return known.take(np.searchsorted(known, keys), mode="clip") == keys
