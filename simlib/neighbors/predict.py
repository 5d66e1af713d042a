r"""Predictions of unpaid pairs: the companion, and fits of its residuals.

.. math::
    \hat K_{ij} = B_{ij} + \tfrac12 (a_i^\top v_j + a_j^\top v_i) , \qquad
    a_i = \Big( \sum_{j \in P_i} v_j v_j^\top + \lambda I \Big)^{-1}
    \sum_{j \in P_i} v_j (K_{ij} - B_{ij})

B is the companion, calibrated to the paid pairs, or a constant. P_i are the items to
which i was compared. The features v_j of an item are a constant, the leading singular
vectors of the residual columns of the landmarks, and the leading directions of the
companion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from simlib._scale import exponent
from simlib.lowrank.tall import svd
from simlib.neighbors import loops
from simlib.neighbors.cheap import Calibrated, strips
from simlib.neighbors.paid import Paid

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4)  # times the variance of the residuals
JUDGED = 500  # rows on which the ridge is chosen
DIRECTIONS = 20  # of the companion, among the features
OUTGROWN = 30  # bits: features are made again if values grow or shrink by more
WIDTH = 64  # directions of the companion in products that approximate it
SAMPLE = 2**16  # pairs to which these products are scaled
CACHED = 2**17  # candidates at a time, whose data stay in the cache
MET = 4  # times k: candidates that share neighbours with an item
TAKEN = 8  # best ones of the drawn items that become candidates in a round
BACKWARD, ALONE = 4, 30  # times k: items that have an item in their lists, at most,
# with a companion and without one


class Predictor:
    """A table of the companion's values, or a constant, and ridge fits of rows."""

    def __init__(self, companion: Calibrated | None):
        self.companion, self.constant = companion, 0.0

    def codes_at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the codes of some pairs, 0 without a companion."""
        if self.companion is None:
            return np.zeros(np.shape(i), np.uint16)
        return self.companion.codes_at(i, j)

    def codes_of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the codes of `columns` (b, w) in each of the `rows` (b,)."""
        if self.companion is None:
            return np.zeros(columns.shape, np.uint16)
        return self.companion.entries(rows, columns)

    def calibrate(self, codes: np.ndarray, nearness: np.ndarray) -> None:
        """Fit the table, or the constant, to the paid pairs."""
        self.constant = float(nearness.mean()) if nearness.size else 0.0
        if self.companion is not None:
            self.companion.calibrate(codes, nearness)

    def explained(self, codes: np.ndarray) -> np.ndarray:
        """Return the predictions of the companion, or the constant."""
        if self.companion is None:
            return np.full(codes.shape, self.constant)
        return self.companion.table[codes]

    def begin(
        self, residuals: np.ndarray, columns: np.ndarray, directions: np.ndarray | None
    ) -> None:
        """Make the features from columns (n, r) of landmarks and directions (n, d)."""
        scale = float(np.sqrt(np.mean(residuals**2))) if residuals.size else 1.0
        scale = scale or 1.0
        parts = [np.full((len(columns), 1), scale), columns]
        if directions is not None:
            size = np.sqrt(np.square(directions).sum(axis=1).mean())
            parts.append(directions * (scale / size if size > 0 else 0))
        self.V = np.hstack(parts).astype(np.float32)
        self.ridge, self._variance = 1.0, max(scale**2, float(np.finfo("f4").tiny))

    def learn(self, residuals: csr_array, new: np.ndarray) -> np.ndarray:
        """Return fits of rows, by the ridge that best predicts new entries from old.

        `new` tells which of the stored entries are new.
        """
        if new.any() and not new.all():
            rows = np.random.default_rng(0).permutation(residuals.shape[0])[:JUDGED]
            parts = (new, residuals.indices, residuals.indptr)
            some, new = (
                residuals[rows],
                csr_array(parts, shape=residuals.shape)[rows].data,
            )
            i, j = (places[new] for places in some.tocoo().coords)
            indptr = np.append(0, np.cumsum(~new))[some.indptr]
            old = csr_array((some.data[~new], some.indices[~new], indptr), some.shape)
            errors = []
            for A in self._fits(old, RIDGES):
                predicted = np.einsum("kr,kr->k", A[i], self.V[j])
                errors.append(np.square(some.data[new] - predicted).sum())
            self.ridge = RIDGES[int(np.argmin(errors))]
        return self._fits(residuals, (self.ridge,))[0]

    def _fits(self, data: csr_array, ridges: tuple[float, ...]) -> np.ndarray:
        penalties = (self._variance * np.array(ridges)).astype(np.float32)
        entries = data.data.astype(np.float32)
        return loops.fits(data.indptr, data.indices, entries, self.V, penalties)


class PairPredictor(Predictor):
    """Predictions of the pairs of a search, with features from the columns S."""

    def __init__(
        self, paid: Paid, companion: Calibrated | None, S: np.ndarray, rank: int
    ):
        super().__init__(companion)
        self.paid, self._S, self._rank = paid, S, rank
        self._codes, self._directions = np.zeros(0, np.uint16), None
        self._narrow: tuple[np.ndarray, np.ndarray] | None = None
        if companion is not None:
            self._Z, self._signs = companion.vectors()
            self._directions = leading(self._Z - self._Z.mean(axis=0), DIRECTIONS)
        self._make_features()

    def _make_features(self) -> None:
        paid, self._exponent, self.learnt = self.paid, exponent(self.paid.nearness), 0
        residuals = self._residuals()
        columns = paid.matrix(residuals)[:, self._S].toarray()
        columns = leading(columns, self._rank)
        self.begin(residuals, columns, self._directions)

    @property
    def codes(self) -> np.ndarray:
        """Codes of the paid pairs."""
        paid, known = self.paid, self._codes.size
        if known < paid.i.size:
            new = self.codes_at(paid.i[known:], paid.j[known:])
            self._codes = np.append(self._codes, new)
        return self._codes

    @property
    def outgrown(self) -> bool:
        """Whether the values grew or shrank too much for the features."""
        return abs(exponent(self.paid.nearness) - self._exponent) > OUTGROWN

    def nearness(self) -> np.ndarray:
        """Return the nearness of the paid pairs, divided by a power of two."""
        return np.ldexp(self.paid.nearness, -self._exponent)

    def unit(self) -> tuple[float, float]:
        """Return the least nearness, and 0.5 divided by the range of nearness."""
        nearness = self.nearness()
        low, high = float(nearness.min()), float(nearness.max())
        return low, 0.5 / (high - low or 1.0)

    def _residuals(self) -> np.ndarray:
        """Calibrate, and return the residuals of the paid pairs."""
        codes, nearness = self.codes, self.nearness()
        self.calibrate(codes, nearness)
        return nearness - self.explained(codes)

    def update(self) -> None:
        """Learn from all paid pairs."""
        paid = self.paid
        if self.outgrown:
            self._make_features()
        residuals = paid.matrix(self._residuals())
        A = self.learn(residuals, paid.numbers.data > self.learnt)
        self.learnt = paid.i.size
        self._left, self._right = np.hstack([A, self.V]) / 2, np.hstack([self.V, A])

    def block(
        self, rows: np.ndarray, columns: np.ndarray | slice
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictions of a block, without the constant, and its codes."""
        predicted = self._left[rows] @ self._right[columns].T
        if self.companion is None:
            return predicted, np.broadcast_to(np.uint16(0), predicted.shape)
        codes = self.companion.block(rows, columns)
        return self._plus_companion(predicted, codes), codes

    def entries(
        self, rows: np.ndarray, columns: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        """Return the predictions of `columns` (b, w) in each of the `rows` (b,)."""
        predicted = loops.products(self._left, self._right, rows, columns)
        return self._plus_companion(predicted, codes)

    def pairs(self, i: np.ndarray, j: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the predictions of some pairs with these codes."""
        return self.entries(i, j[:, None], codes[:, None]).ravel()

    def factors(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return L, R, c with L R^T + c near the predictions.

        The table of the companion is replaced by a line, the companion by products.
        """
        if self.companion is None:
            return self._left, self._right, self.constant
        if self._narrow is None:
            self._narrow = narrowed(self._Z, self._signs)
        left, right = self._narrow
        some = np.random.default_rng(0).permutation(self.codes.size)[:SAMPLE]
        i, j = self.paid.i[some], self.paid.j[some]
        x = loops.products(left, right, i, j[:, None]).ravel().astype(float)
        y = self.explained(self.codes[some])
        means = x.mean(), y.mean()
        x, y = x - means[0], y - means[1]
        slope = np.float32(x @ y / (x @ x or 1.0))
        left = np.hstack([self._left, slope * left])
        right = np.hstack([self._right, right])
        return left, right, float(means[1] - slope * means[0])

    def _plus_companion(self, predicted: np.ndarray, codes: np.ndarray) -> np.ndarray:
        if self.companion is not None:
            predicted += self.companion.table[codes]
        return predicted


class Strip(NamedTuple):
    """The candidates (b, w) of some items (b,), with their predictions."""

    rows: np.ndarray  # the items
    columns: np.ndarray  # the candidates
    shared: np.ndarray  # number of shared neighbours; -inf for the item and paid pairs
    codes: np.ndarray  # of the companion
    predicted: np.ndarray


def every_pair(predictor: PairPredictor, items: np.ndarray) -> Iterator[Strip]:
    """Predict all items as candidates of these items, some rows at a time."""
    n, numbers, graph = predictor.paid.n, predictor.paid.numbers, predictor.paid.graph()
    for some in strips(items.size, n):
        rows = items[some]
        predicted, codes = predictor.block(rows, slice(n))
        shared = (graph[rows] @ graph).toarray()
        shared[numbers[rows].tocoo().coords] = -np.inf
        shared[np.arange(rows.size), rows] = -np.inf
        columns = np.broadcast_to(np.arange(n), (rows.size, n))
        yield Strip(rows, columns, shared, codes, predicted)


class Listed:
    """Lists of w candidates of each item, in three parts.

    The m nearest items under the companion; the items that share most neighbours with
    the item, which are neighbours of its neighbours; and the items with the largest
    predictions among items that are drawn at random in every round. Without a companion
    the first part is empty, and the last has m items.
    """

    def __init__(self, predictor: PairPredictor, m: int):
        self._predictor, paid = predictor, predictor.paid
        n, met, companion = paid.n, MET * paid.k, predictor.companion
        cheap = np.zeros((n, 0), np.int32)
        if companion is not None:
            cheap = companion.neighbors(m, paid.groups)
        # Items with a candidate in common follow each other: its data stay in the
        # cache.
        self._order = np.argsort(cheap.min(axis=1, initial=n), kind="stable")
        self._met, self._drawn = cheap.shape[1], cheap.shape[1] + met
        self._rng, self._learnt = np.random.default_rng(0), 0
        size = (n, met + (m if companion is None else met))
        random = self._rng.integers(n, size=size, dtype=np.int32)
        self._columns = np.hstack([cheap, random], dtype=np.int32)[self._order]
        self._codes = np.zeros(self._columns.shape, np.uint16)
        self._predicted = np.zeros(self._columns.shape, np.float32)
        for some in strips(n, self._columns.shape[1]):
            rows, columns = self._order[some], self._columns[some]
            self._codes[some] = predictor.codes_of(rows, columns)
        falling = np.argsort(~self._codes[:, : self._met], axis=1, kind="stable")
        for lists in (self._columns, self._codes):  # sorted, the best are found sooner
            near = lists[:, : self._met]
            near[:] = np.take_along_axis(near, falling, axis=1)

    def nearest(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return items, the nearest of each under the companion, and their codes."""
        near = slice(self._met)
        return self._order, self._columns[:, near], self._codes[:, near]

    def strips(self) -> Iterator[Strip]:
        """Update the candidates and predict them, some rows at a time.

        If nothing was learnt since the last time, no items are drawn, and only items
        that share more neighbours replace those that share fewer.
        """
        predictor, paid = self._predictor, self._predictor.paid
        learnt, self._learnt = predictor.learnt > self._learnt, predictor.learnt
        most = ALONE if predictor.companion is None else BACKWARD
        graph, known = paid.graph(most * paid.k), paid.numbers
        graph, known = (graph.indptr, graph.indices), (known.indptr, known.indices)
        w, (left, right, constant) = self._columns.shape[1], predictor.factors()
        low, unit = predictor.unit()
        unit *= learnt  # by 0 no candidates are exchanged in a tie
        others = self._rng.permutation(paid.n)[:w]
        old, drawn = slice(self._drawn), slice(self._drawn, None)
        for some in strips(paid.n, w, CACHED):
            part = slice(some[0], some[-1] + 1)
            rows, columns, codes = (
                a[part] for a in (self._order, self._columns, self._codes)
            )
            predicted, met = self._predicted[part], columns[:, self._met : self._drawn]
            likely = np.zeros(met.shape, np.float32)
            if learnt:
                values = left[rows] @ right[others].T
                best_of, _ = loops.best(values, min(TAKEN, others.size))
                likely = loops.products(left, right, rows, met)
                found = self._draw(rows, columns, codes, others[best_of], known)
                predicted[:, drawn] = found
                found = predictor.entries(rows, columns[:, old], codes[:, old])
                predicted[:, old] = found
            lists = (columns, self._met, likely, graph, known)
            shared, new = loops.meet(rows, *lists, left, right, unit, low - constant)
            a, places = np.divmod(np.flatnonzero(new), w)
            i, j = rows[a], columns[a, places]
            codes[a, places] = predictor.codes_of(i, j[:, None])[:, 0]
            predicted[a, places] = predictor.pairs(i, j, codes[a, places])
            yield Strip(rows, columns, shared, codes, predicted.copy())

    def _draw(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        codes: np.ndarray,
        others: np.ndarray,
        known: tuple[np.ndarray, np.ndarray],
    ) -> np.ndarray:
        """Replace candidates with small predictions by drawn items with larger ones.

        Return the predictions of the candidates, -inf for paid pairs.
        """
        predictor, drawn = self._predictor, slice(self._drawn, None)
        found = predictor.codes_of(rows, others)
        values = predictor.entries(rows, others, found)
        predicted = predictor.entries(rows, columns[:, drawn], codes[:, drawn])
        lists = (columns, self._drawn, predicted, others, values, known)
        places = loops.draw(rows, *lists)
        a, t = (places >= 0).nonzero()
        codes[a, places[a, t]] = found[a, t]
        return predicted


def narrowed(Z: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return L and R of few columns with L R^T near ``(Z * signs) @ Z.T``."""
    if Z.shape[1] > WIDTH and np.ptp(signs) == 0:
        scaled = np.ldexp(Z, -exponent(Z))
        _, V = np.linalg.eigh((scaled.T @ scaled).astype(float))
        Z, signs = Z @ V[:, -WIDTH:].astype(Z.dtype), signs[-WIDTH:]
    return (Z * signs).astype(np.float32), Z.astype(np.float32)


def leading(columns: np.ndarray, rank: int) -> np.ndarray:
    """Return the leading left singular vectors of columns, scaled like the entries."""
    U, sigma, _ = svd(columns)
    return U[:, :rank] * (sigma[:rank] / np.sqrt(max(1, columns.shape[1])))
