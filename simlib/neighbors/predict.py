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
from scipy.sparse import coo_array, csr_array

from simlib._scale import exponent
from simlib.neighbors.cheap import Calibrated, neighbor_lists, strips
from simlib.neighbors.paid import Paid

__all__ = ["EveryPair", "Listed", "PairPredictor", "Predictor", "Strip", "leading"]

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4)  # times the variance of the residuals
JUDGED = 500  # rows by which the ridge is chosen
SOLVED_AT_ONCE = 2**24  # entries of systems
DIRECTIONS = 20  # of the companion
OUTGROWN = 30  # bits above what came first, from which features are made anew
NEAR = 16  # times k: neighbours of neighbours, where candidates are listed
BACKWARD = 4  # times k: of how many others an item is a neighbour, likewise


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
        self,
        residuals: np.ndarray,
        columns: np.ndarray,
        directions: np.ndarray | None,
        n_rows: int,
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
        self._a, self._b = np.triu_indices(self.V.shape[1])
        self._squares = self.V[:, self._a] * self.V[:, self._b]
        self._gram = np.zeros((n_rows, self._a.size), np.float32)

    def learn(self, new: csr_array, residuals: csr_array) -> np.ndarray:
        """Return the fits of rows, by the ridge that predicts new residuals best."""
        if self._gram.any() and new.nnz:
            rows = np.random.default_rng(0).permutation(len(self._gram))[:JUDGED]
            some = coo_array(new[rows])
            right = (residuals[rows] - new[rows]) @ self.V
            fits = (self._solve(rows, right, ridge) for ridge in RIDGES)
            errors = [_squared_error(some, A, self.V) for A in fits]
            self.ridge = RIDGES[int(np.argmin(errors))]
        ones = new.copy()
        ones.data = np.ones(new.data.size, np.float32)
        self._gram += ones @ self._squares
        right = residuals.astype(np.float32) @ self.V
        A = np.empty(right.shape, np.float32)
        for rows in strips(len(A), self.V.shape[1] ** 2, SOLVED_AT_ONCE):
            A[rows] = self._solve(rows, right[rows], self.ridge)
        return A

    def _solve(self, rows: np.ndarray, right: np.ndarray, ridge: float) -> np.ndarray:
        r = self.V.shape[1]
        gram = np.empty((rows.size, r, r), np.float32)
        gram[:, self._a, self._b] = gram[:, self._b, self._a] = self._gram[rows]
        gram[:, np.arange(r), np.arange(r)] += ridge * self._variance
        return np.linalg.solve(gram, right[:, :, None])[:, :, 0]


class PairPredictor(Predictor):
    """Predictions of the pairs of a search, from columns of items S and their rank."""

    def __init__(
        self, paid: Paid, companion: Calibrated | None, S: np.ndarray, rank: int
    ):
        super().__init__(companion)
        self.paid, self._S, self._rank = paid, S, rank
        self._codes, self._directions = np.zeros(0, np.uint16), None
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
        self.begin(residuals, columns, self._directions, paid.n)

    def nearness(self) -> np.ndarray:
        """Return that of the pairs that are paid for, in fractions."""
        return np.ldexp(self.paid.nearness, -self._exponent)

    def _residuals(self) -> np.ndarray:
        """Calibrate, and return what is left of the pairs that are paid for."""
        paid, nearness, new = self.paid, self.nearness(), slice(self._codes.size, None)
        codes = self.codes_at(paid.i[new], paid.j[new])
        self._codes = np.append(self._codes, codes)
        self.calibrate(self._codes, nearness)
        return nearness - self.explained(self._codes)

    def update(self) -> None:
        """Learn from all that is paid for."""
        paid = self.paid
        if exponent(paid.nearness) > self._exponent + OUTGROWN:
            self._make_features()
        residuals = self._residuals()
        self.residuals = paid.matrix(residuals)
        new = paid.matrix(residuals[self._learnt :], self._learnt)
        A, self._learnt = self.learn(new, self.residuals), paid.i.size
        self._left, self._right = np.hstack([A, self.V]) / 2, np.hstack([self.V, A])

    def rows(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictions of whole rows, less the constant, and the codes."""
        predicted = self._left[rows] @ self._right.T
        if self.companion is None:
            return predicted, np.zeros(predicted.shape, np.uint16)
        codes = self.companion.rows(rows)
        return self._plus_companion(predicted, codes), codes

    def block(
        self, rows: np.ndarray, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return those of some rows and columns, and the codes; none is kept."""
        predicted = self._left[rows] @ self._right[columns].T
        if self.companion is None:
            return predicted, np.broadcast_to(np.uint16(0), predicted.shape)
        codes = self.companion.block(rows, columns)
        return self._plus_companion(predicted, codes), codes

    def entries(
        self, rows: np.ndarray, columns: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        """Return those of some columns (b, w) of each of some rows (b,)."""
        predicted = np.einsum("ir,ijr->ij", self._left[rows], self._right[columns])
        return self._plus_companion(predicted, codes)

    def pairs(
        self, i: np.ndarray, j: np.ndarray, codes: np.ndarray | None = None
    ) -> np.ndarray:
        """Return those of some pairs, whose codes may be known."""
        codes = self.codes_at(i, j) if codes is None else codes
        return self.entries(i, j[:, None], codes[:, None]).ravel()

    def _plus_companion(self, predicted: np.ndarray, codes: np.ndarray) -> np.ndarray:
        if self.companion is not None:
            predicted += self.companion.table[codes]
        return predicted


class Strip(NamedTuple):
    """What is said of the candidates (b, w) of some items (b,)."""

    rows: np.ndarray  # the items
    columns: np.ndarray  # candidates
    itself: Any  # where an item is its own candidate
    paid: np.ndarray
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
            yield Strip(
                rows,
                np.broadcast_to(np.arange(n), (rows.size, n)),
                (np.arange(rows.size), rows),
                mask(predictor.residuals, rows),
                (graph[rows] @ graph).toarray(),
                codes,
                predicted,
            )


class Listed:
    """As candidates m cheap neighbours of each item, and neighbours of neighbours."""

    def __init__(self, predictor: PairPredictor, m: int):
        self._predictor, n = predictor, predictor.paid.n
        self._lists = lists = neighbor_lists(predictor.Z, predictor.signs, m)
        self._codes = np.zeros(lists.shape, np.uint16)
        self._cells = np.zeros((0, n), np.float32)
        if (companion := predictor.companion) is not None:
            rows = np.repeat(np.arange(n), lists.shape[1])
            cheap = companion.pairs(rows, lists.ravel()).reshape(lists.shape)
            order = np.argsort(-cheap, axis=1)
            self._lists = np.take_along_axis(lists, order, axis=1)
            self._codes = companion.codes(np.take_along_axis(cheap, order, axis=1))

    def strips(self) -> Iterator[Strip]:
        """Predict some rows at a time."""
        predictor, paid = self._predictor, self._predictor.paid
        graph = paid.graph(BACKWARD * paid.k)
        for rows in strips(paid.n, paid.n // 16):
            shared = graph[rows] @ graph
            met = self._shared_neighbours(rows, shared)
            codes = predictor.codes_at(np.repeat(rows, met.shape[1]), met.ravel())
            codes = np.hstack([self._codes[rows], codes.reshape(met.shape)])
            columns = np.hstack([self._lists[rows], met])
            known = predictor.residuals[rows].astype(np.float32)
            known.data[:] = 1
            yield Strip(
                rows,
                columns,
                columns == rows[:, None],
                self._read(known, columns) > 0,
                self._read(shared, columns),
                codes,
                predictor.entries(rows, columns, codes),
            )

    def _shared_neighbours(self, rows: np.ndarray, shared: csr_array) -> np.ndarray:
        """Return the items with which some share most neighbours, else themselves."""
        i = np.repeat(np.arange(rows.size), np.diff(shared.indptr))
        order = np.lexsort((-shared.data, i))
        i, j = i[order], shared.indices[order]
        place = np.arange(i.size) - np.searchsorted(i, i)
        few = place < NEAR * self._predictor.paid.k
        i, j, place = i[few], j[few], place[few]
        met = np.repeat(rows[:, None], place.max(initial=-1) + 1, axis=1)
        met[i, place] = j
        return met

    def _read(self, matrix: csr_array, columns: np.ndarray) -> np.ndarray:
        """Return the entries of a sparse matrix at some columns of each row."""
        b = matrix.shape[0]
        if len(self._cells) < b:
            self._cells = np.zeros((b, matrix.shape[1]), np.float32)
        rows = np.repeat(np.arange(b), np.diff(matrix.indptr))
        self._cells[rows, matrix.indices] = matrix.data
        entries = np.take_along_axis(self._cells[:b], columns, axis=1)
        self._cells[rows, matrix.indices] = 0
        return entries


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


def _squared_error(some: coo_array, A: np.ndarray, V: np.ndarray) -> float:
    """Return the mean squared error of A V^T at the places of a sparse matrix."""
    i, j = some.coords
    if some.nnz == 0:
        return 0.0
    return float(np.mean((some.data - np.einsum("kr,kr->k", A[i], V[j])) ** 2))
