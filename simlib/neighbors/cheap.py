r"""A companion as a predictor: its values by rank, calibrated to what is paid for.

.. math:: B_{ij} = f(G_{ij}), \qquad f \text{ monotone, the least squares fit to } K

by isotonic regression, as in `simlib.anchored`, of G in 65,535 levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.isotonic import IsotonicRegression

from simlib.approximation.companion import InnerProducts, as_companion
from simlib.approximation.tikhonov import tikhonov
from simlib.neighbors import loops
from simlib.similarity.budget import BudgetExceeded, SimilarityError
from simlib.similarity.views import SimilarityMatrix

__all__ = [
    "Calibrated",
    "as_companion",
    "asked",
    "best",
    "ends",
    "neighbor_lists",
    "rank_correlation",
    "strips",
]

LEVELS = 2**16  # of the values that are told apart
SAMPLE = 2**16  # pairs that tell the direction and the range
ENTRIES_AT_ONCE = 2**22  # entries of the companion, or of a prediction
N_LANDMARKS = 60  # of the companion's own approximation
INDEXED = 30  # neighbours of each item in an index of pynndescent
SEARCHED = 1000  # times so many neighbours: items from which on an index is faster
ENDS = 32  # items whose ends tell the direction


class Calibrated:
    """Cheap similarities of n items, large where items are near: ``table[code]``."""

    def __init__(
        self,
        cheap: SimilarityMatrix,
        values: np.ndarray,
        nearness: np.ndarray,
        sign: int = 0,
    ):
        self.cheap = cheap
        if sign == 0:
            some = np.random.default_rng(0).permutation(values.size)[:SAMPLE]
            sign = 1 if rank_correlation(values[some], nearness[some]) >= 0 else -1
        self.sign = sign
        self._low, self._step = 0.0, 1.0
        self._spread(self.sign * values)
        self.table = np.zeros(LEVELS, np.float32)
        self._codes: np.ndarray | None = None

    def read(self) -> None:
        """Keep all of it, two bytes an entry."""
        n = self.cheap.n
        every = np.arange(n)
        i, j = np.random.default_rng(0).integers(n, size=(2, SAMPLE))
        self._spread(self.pairs(i[i != j], j[i != j]))
        self._codes = np.empty((n, n), np.uint16)
        for rows in strips(n, n):
            block = self.sign * asked(self.cheap.blank().block, rows, every)
            self._codes[rows] = self.codes(block)

    def _spread(self, values: np.ndarray) -> None:
        """Spread the table over the range of some values."""
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        if high > low:
            margin = (high - low) / 8
            self._low = low - margin
            self._step = (high - low + 2 * margin) / (LEVELS - 1)

    def pairs(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return its values at some pairs, large where near."""
        return self.sign * asked(self.cheap.blank().pairs, i, j)

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Return the places in the table of values that are large where near."""
        codes = (values - self._low) / self._step
        return np.clip(codes, 0, LEVELS - 1).astype(np.uint16)

    def codes_at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the places in the table of some pairs."""
        if self._codes is not None:
            return self._codes[i, j]
        return self.codes(self.pairs(i, j))

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the places in the table of whole rows, once all was read."""
        assert self._codes is not None
        return self._codes[rows]

    def calibrate(self, codes: np.ndarray, nearness: np.ndarray) -> None:
        """Fit the table to what is paid for."""
        count = np.bincount(codes, minlength=LEVELS)
        total = np.bincount(codes, nearness, minlength=LEVELS)
        (met,) = count.nonzero()
        if met.size:
            fit = IsotonicRegression().fit(met, total[met] / count[met], count[met])
            self.table = np.interp(
                np.arange(LEVELS), fit.X_thresholds_, fit.y_thresholds_
            ).astype(np.float32)

    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors Z and signs s with ``(Z * s) @ Z.T`` near the companion."""
        base = getattr(self.cheap, "base", None)
        if isinstance(base, InnerProducts) and isinstance(base.Z, np.ndarray):
            return base.Z, np.full(base.Z.shape[1], self.sign)
        answer = tikhonov(self.cheap.blank(), min(N_LANDMARKS, self.cheap.n), rng=0)
        Z, signs = answer.embedding()
        return np.asarray(Z), self.sign * signs


def asked(request: Any, *arguments: np.ndarray) -> np.ndarray:
    """Return what the companion answers, or say that it is the one that fails."""
    try:
        values = request(*arguments)
    except SimilarityError as error:
        raise SimilarityError(f"The cheap similarity failed. {error}") from error
    except BudgetExceeded as error:
        raise BudgetExceeded(
            "The cheap similarity has a limit of its own, which does not pay for all "
            "that is asked of it: leave it without one. What the other similarity "
            "evaluated is kept."
        ) from error
    if not np.isfinite(values).all():
        raise SimilarityError("The cheap similarity holds NaN or an infinity.")
    return values


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Return Spearman's, 0 where one of both is constant."""
    x, y = rankdata(x), rankdata(y)
    x, y = x - x.mean(), y - y.mean()
    size = np.linalg.norm(x) * np.linalg.norm(y)
    return float(x @ y / size) if size > 0 else 0.0


def ends(cheap: SimilarityMatrix, rng: np.random.Generator) -> np.ndarray:
    """Return items and, of each, the others of the largest and the smallest value.

    Shape (3, ENDS) at most, of some columns. There a companion is believed: which end
    is near tells its direction, when over all pairs it may tell nothing.
    """
    rows = rng.permutation(cheap.n)[:ENDS]
    columns = rng.permutation(cheap.n)[: ENTRIES_AT_ONCE // ENDS]
    block = asked(cheap.blank().block, rows, columns).astype(float)
    block[rows[:, None] == columns] = np.nan
    high, low = np.nanargmax(block, axis=1), np.nanargmin(block, axis=1)
    return np.stack([rows, columns[high], columns[low]])


def strips(n: int, width: int, most: int = ENTRIES_AT_ONCE) -> Iterator[np.ndarray]:
    """Yield the numbers of n rows, of so many entries each, some at a time."""
    step = max(1, most // max(1, width))
    for k in range(0, n, step):
        yield np.arange(k, min(k + step, n))


def neighbor_lists(Z: np.ndarray, signs: np.ndarray, m: int) -> np.ndarray:
    """Return of each item about m others with the largest ``(z_i * signs) @ z_j``.

    By blocks of all, or, where that takes longer, by an index of pynndescent. Items
    themselves stand where there are fewer.
    """
    Z = np.asarray(Z, np.float32)
    queries, n = Z * signs.astype(np.float32), len(Z)
    itself = np.arange(n)
    found = None
    if n > SEARCHED * m:
        found = _indexed(Z, queries, m + 1)
    if found is None:
        found = np.empty((n, m), np.int32)
        for rows in strips(n, n):
            scores = queries[rows] @ Z.T
            scores[np.arange(rows.size), rows] = -np.inf
            found[rows] = np.argpartition(scores, n - m, axis=1)[:, n - m :]
    return np.where(found < 0, itself[:, None], found)


def _indexed(Z: np.ndarray, queries: np.ndarray, m: int) -> np.ndarray | None:
    """Return neighbours by an index, on vectors of one length; None without one."""
    try:
        from pynndescent import NNDescent
    except ImportError:
        return None
    squares = np.einsum("ij,ij->i", Z, Z)
    last = np.sqrt(np.maximum(squares.max() - squares, 0))
    points = np.hstack([Z, last[:, None]])
    queries = np.hstack([queries, np.zeros((len(Z), 1), np.float32)])
    # A short list for each item in the index; a search for the length wanted.
    index = NNDescent(points, n_neighbors=INDEXED, random_state=0)
    return index.query(queries, k=m, epsilon=0.1)[0]


def best(scores: np.ndarray, keep: int) -> np.ndarray:
    """Return places (b, keep) of the largest finite scores (b, w) of rows, else -1.

    From the largest on, among equals the first ones.
    """
    if loops.COMPILED:
        return loops.best(scores, keep)
    b, w = scores.shape
    places = np.full((b, keep), -1)
    width = min(keep, w)
    least = np.partition(scores, w - width, axis=1)[:, w - width, None]
    above, equal = scores > least, (scores == least) & np.isfinite(scores)
    room = width - above.sum(axis=1, keepdims=True)
    above |= equal & (np.cumsum(equal, axis=1) <= room)
    rows, columns = above.nonzero()
    order = np.lexsort((-scores[rows, columns], rows))
    rows, columns = rows[order], columns[order]
    places[rows, np.arange(rows.size) - np.searchsorted(rows, rows)] = columns
    return places
