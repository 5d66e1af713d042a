r"""Predictions of what is not paid for: the companion, and fits of what it leaves.

.. math::
    \hat K_{ij} = B_{ij} + \tfrac12 (a_i^\top v_j + a_j^\top v_i) , \qquad
    a_i = \Big( \sum_{j \in P_i} v_j v_j^\top + \lambda I \Big)^{-1}
    \sum_{j \in P_i} v_j (K_{ij} - B_{ij})

B is the companion, calibrated to what is paid for, or a constant. P_i are the items to
which i was compared, v_j the features of an item: a constant, the residual columns of
the landmarks by their singular vectors, and the leading directions of the companion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from simlib._scale import exponent
from simlib.neighbors import loops
from simlib.neighbors.cheap import Calibrated, neighbor_lists, strips
from simlib.neighbors.paid import Paid

__all__ = ["EveryPair", "Listed", "PairPredictor", "Predictor", "Strip", "leading"]

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4)  # times the variance of the residuals
JUDGED = 500  # rows by which the ridge is chosen
DIRECTIONS = 20  # of the companion
OUTGROWN = 30  # bits above what came first, from which features are made anew
BACKWARD = 4  # times k: of how many others an item is a neighbour, in lists


class Predictor:
    """A table of the companion's values, or a constant, and ridge fits of rows."""

    def __init__(self, companion: Calibrated | None):
        self.companion, self.constant = companion, 0.0

    def codes_at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the places in the table of some pairs, 0 of a constant."""
        if self.companion is None:
            return np.zeros(np.shape(i), np.uint16)
        return self.companion.codes_at(i, j)

    def calibrate(self, codes: np.ndarray, nearness: np.ndarray) -> None:
        """Fit the table to what is paid for."""
        self.constant = float(nearness.mean()) if nearness.size else 0.0
        if self.companion is not None:
            self.companion.calibrate(codes, nearness)

    def explained(self, codes: np.ndarray) -> np.ndarray:
        """Return what the companion says."""
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
        """Return fits of rows, by the ridge with which the others predict new entries.

        `new` tells of the stored entries which these are.
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
            for ridge in RIDGES:
                predicted = np.einsum("kr,kr->k", self._fits(old, ridge)[i], self.V[j])
                errors.append(np.square(some.data[new] - predicted).sum())
            self.ridge = RIDGES[int(np.argmin(errors))]
        return self._fits(residuals, self.ridge)

    def _fits(self, data: csr_array, ridge: float) -> np.ndarray:
        penalty = np.float32(ridge * self._variance)
        entries = data.data.astype(np.float32)
        return loops.fits(data.indptr, data.indices, entries, self.V, penalty)


class PairPredictor(Predictor):
    """Predictions of the pairs of a search, from columns of items S and their rank."""

    def __init__(
        self, paid: Paid, companion: Calibrated | None, S: np.ndarray, rank: int
    ):
        super().__init__(companion)
        self.paid, self._S, self._rank = paid, S, rank
        self.codes, self._directions = np.zeros(0, np.uint16), None
        if companion is not None:
            self.Z, self.signs = companion.vectors()
            self._directions = leading(self.Z - self.Z.mean(axis=0), DIRECTIONS)
        self._make_features()
        if companion is None:
            self.Z, self.signs = self.V[:, 1:], np.ones(self.V.shape[1] - 1)

    def _make_features(self) -> None:
        paid, self._exponent, self._learnt = self.paid, exponent(self.paid.nearness), 0
        residuals = self._residuals()
        columns = paid.matrix(residuals)[:, self._S].toarray()
        columns = leading(columns, self._rank)
        self.begin(residuals, columns, self._directions)

    def nearness(self) -> np.ndarray:
        """Return that of the pairs that are paid for, in fractions."""
        return np.ldexp(self.paid.nearness, -self._exponent)

    def _residuals(self) -> np.ndarray:
        """Calibrate, and return what is left of the pairs that are paid for."""
        paid, nearness, new = self.paid, self.nearness(), slice(self.codes.size, None)
        codes = self.codes_at(paid.i[new], paid.j[new])
        self.codes = np.append(self.codes, codes)
        self.calibrate(self.codes, nearness)
        return nearness - self.explained(self.codes)

    def update(self) -> None:
        """Learn from all that is paid for."""
        paid = self.paid
        if exponent(paid.nearness) > self._exponent + OUTGROWN:
            self._make_features()
        self.residuals = paid.matrix(self._residuals())
        A = self.learn(self.residuals, paid.numbers.data > self._learnt)
        self._learnt = paid.i.size
        self._left, self._right = np.hstack([A, self.V]) / 2, np.hstack([self.V, A])

    def rows(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictions of whole rows, less the constant, and the codes."""
        predicted = self._left[rows] @ self._right.T
        if self.companion is None:
            return predicted, np.zeros(predicted.shape, np.uint16)
        codes = self.companion.rows(rows)
        return self._plus_companion(predicted, codes), codes

    def entries(
        self, rows: np.ndarray, columns: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        """Return those of some columns (b, w) of each of some rows (b,)."""
        left, right = self._left, self._right
        if loops.COMPILED:
            predicted = loops.products(left, right, rows, columns)
        else:
            predicted = np.einsum("ir,ijr->ij", left[rows], right[columns])
        return self._plus_companion(predicted, codes)

    def pairs(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return those of some pairs."""
        return self._at(i, j, self.codes_at(i, j))

    def of_paid(self) -> np.ndarray:
        """Return those of the pairs that are paid for."""
        return self._at(self.paid.i, self.paid.j, self.codes)

    def _at(self, i: np.ndarray, j: np.ndarray, codes: np.ndarray) -> np.ndarray:
        predicted = self.entries(i, j[:, None], codes[:, None])
        return predicted.ravel()

    def _plus_companion(self, predicted: np.ndarray, codes: np.ndarray) -> np.ndarray:
        if self.companion is not None:
            predicted += self.companion.table[codes]
        return predicted


class Strip(NamedTuple):
    """What is said of the candidates (b, w) of some items (b,)."""

    rows: np.ndarray  # the items, consecutive ones
    columns: np.ndarray  # candidates
    itself: Any  # where an item is its own candidate
    paid: Any  # where it is paid for
    shared: np.ndarray  # how many neighbours they share
    codes: np.ndarray  # what the companion says
    predicted: np.ndarray


class EveryPair:
    """All items as candidates of all; the companion was read."""

    def __init__(self, predictor: PairPredictor):
        self._predictor = predictor

    def strips(self) -> Iterator[Strip]:
        """Predict some rows at a time."""
        predictor, graph = self._predictor, self._predictor.paid.graph()
        n = predictor.paid.n
        for rows in strips(n, n):
            predicted, codes = predictor.rows(rows)
            known = predictor.residuals[rows].tocoo()
            yield Strip(
                rows,
                np.broadcast_to(np.arange(n), (rows.size, n)),
                (np.arange(rows.size), rows),
                known.coords,
                (graph[rows] @ graph).toarray(),
                codes,
                predicted,
            )


class Listed:
    """Lists of candidates of each item: its cheap neighbours, and items it met.

    These are the neighbours of its neighbours: those that share most with it, and
    random ones at first.
    """

    def __init__(self, predictor: PairPredictor, m: int, met: int):
        self._predictor, self._m, n = predictor, m, predictor.paid.n
        cheap = neighbor_lists(predictor.Z, predictor.signs, m).astype(np.int32)
        random = np.random.default_rng(0).integers(n, size=(n, met), dtype=np.int32)
        self._columns = np.hstack([cheap, random])
        self._codes = np.zeros(self._columns.shape, np.uint16)
        for rows in strips(n, self._columns.shape[1]):
            columns = self._columns[rows]
            i = np.repeat(rows, columns.shape[1])
            codes = predictor.codes_at(i, columns.ravel()).reshape(columns.shape)
            self._codes[rows] = codes

    def strips(self) -> Iterator[Strip]:
        """Predict some rows at a time, of what the items meet now."""
        predictor, paid = self._predictor, self._predictor.paid
        graph, known = paid.graph(BACKWARD * paid.k), predictor.residuals
        for rows in strips(paid.n, self._columns.shape[1]):
            shared, new = loops.listed(
                rows,
                self._columns,
                self._m,
                graph.indptr,
                graph.indices,
                known.indptr,
                known.indices,
            )
            columns, codes = self._columns[rows], self._codes[rows]
            a, places = new.nonzero()
            codes[a, places] = predictor.codes_at(rows[a], columns[a, places])
            self._codes[rows] = codes
            predicted = predictor.entries(rows, columns, codes)
            itself = columns == rows[:, None]
            yield Strip(rows, columns, itself, shared < 0, shared, codes, predicted)


def leading(columns: np.ndarray, rank: int) -> np.ndarray:
    """Return the leading left singular vectors of columns, as large as entries."""
    U, sigma, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, :rank] * (sigma[:rank] / np.sqrt(max(1, columns.shape[1])))


def mask(matrix: csr_array, rows: np.ndarray) -> np.ndarray:
    """Return where some consecutive rows of a sparse matrix have entries."""
    dense = np.zeros((rows.size, matrix.shape[1]), bool)
    start, stop = matrix.indptr[rows[0]], matrix.indptr[rows[-1] + 1]
    degree = np.diff(matrix.indptr[rows[0] : rows[-1] + 2])
    dense[np.repeat(np.arange(rows.size), degree), matrix.indices[start:stop]] = True
    return dense
