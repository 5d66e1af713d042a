r"""A companion as a predictor: its values in levels, calibrated to evaluated pairs.

.. math:: B_{ij} = f(G_{ij}), \qquad f \text{ monotone, the least squares fit to } K

The companion is the cheap similarity G. f is an isotonic regression, as in
`simlib.anchored`, on values of G in 65,536 levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

from simlib._scale import exponent
from simlib.approximation.companion import InnerProducts
from simlib.approximation.tikhonov import tikhonov
from simlib.landmarks import uniform
from simlib.neighbors import loops
from simlib.similarity.budget import BudgetExceeded, SimilarityError
from simlib.similarity.views import SimilarityMatrix

LEVELS = 2**16  # of the values of a companion
CROWD = 1 / 8  # of the different values in one level: ranks are the levels instead
SAMPLE = 2**16  # pairs that tell the direction and the range of a companion
ENTRIES_AT_ONCE = 2**22  # entries of the companion, or of a prediction
N_LANDMARKS = 60  # of an approximation of the companion
WHOLE = 20_000  # items at most for which all pairs are compared
PARTITIONS = 3  # into groups: an item at the edge of one is inside in another
SOUGHT = 33  # times m: other items that are compared in each partition
GROUP, GROUPS, FEW = 125, 4000, 16  # items in a group, groups at most, and items for
# each group that place the centres
FEW_GROUPS = 8  # up to so many groups are kept apart by additional coordinates
READ, TRIED = 64, 4  # all values are read up to READ m items, else TRIED m for each
ENDS = 32  # items whose largest and smallest values tell the direction
TRIAL = 0.02  # share of the calls for random pairs that test a companion,
FEWEST, MOST = 100, 2000  # within these bounds


class Calibrated:
    """Cheap similarities in levels: ``table[code]`` predicts a nearness.

    A code is the level of a cheap value times `sign`, which is large for near items.
    """

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

    def read(self, rows: np.ndarray | None = None) -> None:
        """Read these rows of the companion, or all; keep the codes, two bytes each."""
        m, n = self.cheap.shape
        rows = np.arange(m) if rows is None else rows
        codes = np.empty((rows.size, n), np.uint16)
        for some in strips(*codes.shape):
            codes[some] = self.block(rows[some], slice(None))
        self._place = np.full(m, -1, np.int32)
        self._place[rows], self._codes = np.arange(rows.size), codes

    def spread(self) -> None:
        """Spread the levels over the values of random pairs and of the diagonal."""
        i, j = np.random.default_rng(0).integers(self.cheap.n, size=(2, SAMPLE))
        self._spread(self.pairs(np.append(i, i), np.append(j, i)))

    def spread_beyond(self, values: np.ndarray) -> None:
        """Spread them over these and random values of two collections."""
        rng, (m, n) = np.random.default_rng(0), self.cheap.shape
        i, j = (rng.integers(size, size=min(SAMPLE, m * n)) for size in (m, n))
        self._spread(np.append(self.sign * values, self.pairs(i, j)))

    def _spread(self, values: np.ndarray) -> None:
        """Spread the levels over the range of some values, with a margin."""
        self._ranked: np.ndarray | None = None
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        if high > low:
            margin = (high - low) / 8
            self._low = low - margin
            self._step = (high - low + 2 * margin) / (LEVELS - 1)
            if self._crowded(values):
                self._rank(values)

    def _crowded(self, values: np.ndarray) -> bool:
        """Tell whether one level holds more than `CROWD` of all different values."""
        digits, powers = np.frexp(values)
        different = np.unique(np.ldexp(np.round(digits, 6), powers))  # beyond rounding
        most = np.bincount(self.codes(different)).max()
        return most > max(1, CROWD * different.size)

    def _rank(self, values: np.ndarray) -> None:
        """Take ranks among these and random values as levels."""
        rng, (m, n) = np.random.default_rng(0), self.cheap.shape
        more = self.pairs(rng.integers(m, size=SAMPLE), rng.integers(n, size=SAMPLE))
        self._ranked = np.unique(np.append(values, more))
        self._low, self._step = 0.0, self._ranked.size / (LEVELS - 1)

    def pairs(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the values of some pairs times `sign`: large for near items."""
        return self.sign * asked(self.cheap.blank().pairs, i, j)

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Return the codes of values that are already multiplied by `sign`."""
        if self._ranked is not None:
            values = self._ranked.searchsorted(values)
        codes = (values - self._low) / self._step
        return np.clip(codes, 0, LEVELS - 1).astype(np.uint16)

    def codes_at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the codes of some pairs."""
        if self._codes is None:
            return self.codes(self.pairs(i, j))
        place = self._place[i]
        codes, (others,) = self._codes[place, j], np.nonzero(place < 0)
        codes[others] = self.codes(self.pairs(i[others], j[others]))
        return codes

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the codes of `columns` (b, w) in each of the `rows` (b,)."""
        if (base := factored(self.cheap)) is not None:
            values = asked(loops.products, *base.factors[:2], rows, columns)
            return self.codes(self.sign * base.of_products(values))
        i = np.repeat(rows, columns.shape[1])
        return self.codes_at(i, columns.ravel()).reshape(columns.shape)

    def block(self, rows: np.ndarray, columns: np.ndarray | slice) -> np.ndarray:
        """Return the codes of a block."""
        if self._codes is not None:
            return self._codes[self._place[rows]][:, columns]
        columns = np.arange(self.cheap.shape[1])[columns]
        return self.codes(self.sign * asked(self.cheap.blank().block, rows, columns))

    def calibrate(self, codes: np.ndarray, nearness: np.ndarray) -> None:
        """Fit the table to the pairs that are paid for."""
        count = np.bincount(codes, minlength=LEVELS)
        total = np.bincount(codes, nearness, minlength=LEVELS)
        (met,) = count.nonzero()
        if met.size:
            means = total[met] / count[met]
            fit = isotonic_regression(means, weights=count[met]).x
            self.table = np.interp(np.arange(LEVELS), met, fit).astype(np.float32)

    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors Z and signs s with ``(Z * s) @ Z.T`` near `sign` times G."""
        if (base := factored(self.cheap)) is not None:
            _, Z, signs = base.factors
            return np.ldexp(Z, -exponent(Z)), self.sign * signs
        answer = tikhonov(self.cheap.blank(), min(N_LANDMARKS, self.cheap.n), rng=0)
        Z, signs = answer.embedding()
        return np.asarray(Z), self.sign * signs

    def neighbors(self, m: int, groups: np.ndarray | None = None) -> np.ndarray:
        """Return for each item about m others with the largest values, shape (n, m).

        With few groups items of other groups come first. If the companion has vectors,
        their products are compared. Otherwise all values are read; if these are too
        many, the values of `TRIED` m others, the nearest by `vectors`.
        """
        n, product = self.cheap.n, factored(self.cheap) is not None
        groups = np.arange(n) if groups is None else groups
        found = np.empty((n, m), np.int32)
        if not product and n <= READ * m:
            for rows in strips(n, n):
                block = self.sign * asked(self.cheap.blank().block, rows, np.arange(n))
                block[groups[rows, None] == groups] = -np.inf
                found[rows] = np.argpartition(block, -m, axis=1)[:, -m:]
            return found
        Z, signs = _apart(*self.vectors(), groups)
        if product:
            return neighbor_lists(Z, signs, m)
        lists = neighbor_lists(Z, signs, min(TRIED * m, n - 1))
        for rows in strips(n, lists.shape[1]):
            some = lists[rows]
            values = self.pairs(np.repeat(rows, some.shape[1]), some.ravel())
            values = values.reshape(some.shape)
            values[groups[rows, None] == groups[some]] = -np.inf
            found[rows], _ = _top(some, values, m)
        return found


def factored(cheap: Any) -> InnerProducts | None:
    """Return the `InnerProducts` of a companion with dense vectors, else None."""
    base = getattr(cheap, "base", None)
    if isinstance(base, InnerProducts) and isinstance(base.Z, np.ndarray):
        return base
    return None


def asked(request: Any, *arguments: Any) -> np.ndarray:
    """Return an answer of the companion; raise errors that name the companion."""
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


def trial_size(calls: float) -> int:
    """Return how many random pairs test a companion; at most a tenth of the calls."""
    return min(int(calls / 10), MOST, max(FEWEST, int(TRIAL * calls)))


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Return Spearman's rank correlation, 0 if x or y is constant or empty."""
    if not x.size:
        return 0.0
    x, y = rankdata(x), rankdata(y)
    x, y = x - x.mean(), y - y.mean()
    size = np.linalg.norm(x) * np.linalg.norm(y)
    return float(x @ y / size) if size > 0 else 0.0


def ends(
    cheap: SimilarityMatrix,
    rng: np.random.Generator,
    allowed: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.not_equal,
    most: int = ENDS,
) -> np.ndarray:
    """Return items, and for each the others with the largest and the smallest value.

    Shape (3, most) or less, among some columns that are allowed. A companion is used at
    its extreme values: which of these are near tells its direction, even if its
    correlation over all pairs tells nothing.
    """
    rows = rng.permutation(cheap.n)[:most]
    columns = rng.permutation(cheap.n)[: ENTRIES_AT_ONCE // ENDS]
    block = asked(cheap.blank().block, rows, columns).astype(float)
    counts = allowed(*np.broadcast_arrays(rows[:, None], columns))
    block[~counts] = np.nan
    rows, block = rows[counts.any(axis=1)], block[counts.any(axis=1)]
    high, low = np.nanargmax(block, axis=1), np.nanargmin(block, axis=1)
    return np.stack([rows, columns[high], columns[low]])


def direction(near: np.ndarray, far: np.ndarray) -> int:
    """Return 1 if `near` is nearer than `far` in most rows, -1 if `far` is, else 0."""
    return int(np.sign(np.nansum(np.sign(near - far))))


def strips(n: int, width: int, most: int = ENTRIES_AT_ONCE) -> Iterator[np.ndarray]:
    """Yield the numbers of n rows of `width` entries, at most `most` at a time."""
    step = max(1, most // max(1, width))
    for k in range(0, n, step):
        yield np.arange(k, min(k + step, n))


def neighbor_lists(Z: np.ndarray, signs: np.ndarray, m: int) -> np.ndarray:
    """Return for each item about m others with the largest ``(z_i * signs) @ z_j``.

    A few items are compared with all others, many items with those in near groups.
    """
    Z = np.asarray(Z, np.float32)
    queries, n = Z * signs.astype(np.float32), len(Z)
    if n > max(WHOLE, PARTITIONS * SOUGHT * m):
        return _grouped(Z, signs, m)
    found = np.empty((n, m), np.int32)
    for rows in strips(n, n):
        values = queries[rows] @ Z.T
        values[np.arange(rows.size), rows] = -np.inf
        found[rows] = np.argpartition(values, -m, axis=1)[:, -m:]
    return found


def _apart(
    Z: np.ndarray, signs: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors with smaller products within groups, and the same between them.

    Only for a few groups; otherwise the vectors are returned as they are.
    """
    number = groups.max() + 1
    if number > FEW_GROUPS:
        return Z, signs
    size = np.sqrt(2 * np.square(Z).sum(axis=1).max())
    own = size * (groups[:, None] == np.arange(number))
    return np.hstack([Z, own]), np.append(signs, -np.ones(number))


def _grouped(Z: np.ndarray, signs: np.ndarray, m: int) -> np.ndarray:
    """Return neighbours among the groups with the nearest centres.

    Vectors are extended to one length: the nearest ones then have the largest products.
    """
    squares, n = np.einsum("ij,ij->i", Z, Z), len(Z)
    length = np.sqrt(squares.max())
    last = np.sqrt(np.maximum(squares.max() - squares, 0))
    points = np.hstack([Z, last[:, None]])
    queries = np.hstack([Z * signs.astype(np.float32), np.zeros((n, 1), np.float32)])
    found, nearness = np.full((n, m), -1, "i4"), np.full((n, m), -np.inf, "f4")
    for seed in range(PARTITIONS):
        centres = _centres(points, length, seed)
        groups = _groups(points, centres)
        sizes = np.bincount(groups, minlength=len(centres))
        members = np.split(np.argsort(groups, kind="stable"), np.cumsum(sizes)[:-1])
        for asking in filter(np.size, members):
            order = np.argsort(-(centres @ queries[asking].mean(axis=0)), kind="stable")
            few = np.searchsorted(np.cumsum(sizes[order]), min(SOUGHT * m, n)) + 1
            others = np.concatenate([members[group] for group in order[:few]])
            others = others[: 2 * SOUGHT * m]  # of many equal items these will do
            for part in strips(asking.size, others.size):
                rows = asking[part]
                values = queries[rows] @ points[others].T
                columns = np.broadcast_to(others, values.shape)
                columns, values = _top(columns, values, m + 1)
                values[columns == rows[:, None]] = -np.inf
                columns = np.hstack([found[rows], columns])
                values = np.hstack([nearness[rows], values])
                found[rows], nearness[rows] = _top(*_distinct(columns, values), m)
    return found


def _centres(points: np.ndarray, length: float, seed: int) -> np.ndarray:
    """Return centres of groups, by two steps of spherical k-means on a few items."""
    order = uniform(len(points), len(points), rng=seed)
    number = min(len(points) // GROUP, GROUPS)
    centres, points = points[order[:number]], points[order[: FEW * number]]
    for _ in range(2):
        nearest, sums = _groups(points, centres), np.zeros_like(centres)
        np.add.at(sums, nearest, points)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = length * sums / np.where(norms > 0, norms, 1)
    return centres


def _top(
    columns: np.ndarray, values: np.ndarray, m: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of the m largest values of each row, and these values."""
    best = np.argpartition(values, -m, axis=1)[:, -m:]
    return np.take_along_axis(columns, best, 1), np.take_along_axis(values, best, 1)


def _distinct(columns: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and values sorted by column; repeated columns get values -inf."""
    order = np.argsort(columns, axis=1, kind="stable")
    columns, values = (np.take_along_axis(a, order, 1) for a in (columns, values))
    values[:, 1:][columns[:, 1:] == columns[:, :-1]] = -np.inf
    return columns, values


def _groups(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return for each point the centre with the largest product."""
    parts = strips(len(points), len(centres))
    return np.concatenate([(points[k] @ centres.T).argmax(axis=1) for k in parts])
