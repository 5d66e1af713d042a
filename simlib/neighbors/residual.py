r"""What a companion leaves unexplained, fitted to every row's own paid entries.

.. math::
    a_i = \Big( \sum_{j \in P_i} v_j v_j^\top + \lambda I \Big)^{-1}
    \sum_{j \in P_i} v_j r_{ij} , \qquad
    \hat r_{ij} = \tfrac12 (a_i^\top v_j + a_j^\top v_i)

P_i are the items to which i has been compared, r the residuals there, v_j the features
of an item: a constant, the residual columns of the landmarks by their singular vectors,
and the leading directions of the companion.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

__all__ = ["RowFits", "exponent", "leading"]

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4)  # times the variance of the residuals
STRIP = 2**24  # entries of the systems that are solved at a time
SAMPLE = 500  # rows by which the ridge is chosen


class RowFits:
    """Ridge fits of rows on the same features.

    Parameters
    ----------
    V : array of shape (n, r)
        Features of the columns, as large as the residuals that they explain.
    variance : float
        Of the residuals, the unit of the ridge.
    n_rows : int, optional
        Rows, n unless told.
    """

    def __init__(self, V: np.ndarray, variance: float, n_rows: int | None = None):
        self.V = V.astype(np.float32)
        self._variance = max(float(variance), float(np.finfo(np.float32).tiny))
        self.ridge = 1.0
        self._a, self._b = np.triu_indices(V.shape[1])
        self._squares = self.V[:, self._a] * self.V[:, self._b]
        shape = (len(V) if n_rows is None else n_rows, self._a.size)
        self._gram = np.zeros(shape, np.float32)

    def see(self, new: csr_array, all_of_them: csr_array) -> None:
        """Take new residuals, and all up to now, as sparse matrices.

        The ridge becomes the one by which fits without the new ones predict these best,
        in some of the rows.
        """
        if self._gram.any() and new.nnz:
            rows = np.random.default_rng(0).permutation(len(self._gram))[:SAMPLE]
            some = coo_array(new[rows])
            right = (all_of_them[rows] - new[rows]) @ self.V
            errors = [
                _squared_error(some, self._solve(rows, right, ridge), self.V)
                for ridge in RIDGES
            ]
            self.ridge = RIDGES[int(np.argmin(errors))]
        ones = new.copy()
        ones.data = np.ones(new.data.size, np.float32)
        self._gram += ones @ self._squares

    def fit(self, residuals: csr_array) -> np.ndarray:
        """Return A, whose rows are the fits to all residuals, shape (n_rows, r)."""
        right = residuals.astype(np.float32) @ self.V
        n, r = right.shape
        A, step = np.empty((n, r), np.float32), max(1, STRIP // r**2)
        for k in range(0, n, step):
            rows = np.arange(k, min(k + step, n))
            A[rows] = self._solve(rows, right[rows], self.ridge)
        return A

    def _solve(self, rows: np.ndarray, right: np.ndarray, ridge: float) -> np.ndarray:
        r = self.V.shape[1]
        gram = np.empty((rows.size, r, r), np.float32)
        gram[:, self._a, self._b] = gram[:, self._b, self._a] = self._gram[rows]
        gram[:, np.arange(r), np.arange(r)] += ridge * self._variance
        return np.linalg.solve(gram, right[:, :, None])[:, :, 0]


def _squared_error(some: coo_array, A: np.ndarray, V: np.ndarray) -> float:
    """Return the mean squared error of A V^T at the places of a sparse matrix."""
    i, j = some.coords
    if some.nnz == 0:
        return 0.0
    return float(np.mean((some.data - np.einsum("kr,kr->k", A[i], V[j])) ** 2))


def exponent(*values: np.ndarray) -> int:
    """Return that of the power of two above all values: fits are of their fractions.

    Squares of float32 would overflow from 2^64 on, and vanish below 2^-75.
    """
    largest = max(np.abs(some).max(initial=0) for some in values)
    return int(np.frexp(largest)[1])


def leading(columns: np.ndarray, rank: int) -> np.ndarray:
    """Return the leading left singular vectors of columns, each times its size.

    Divided by the root of the number of columns, so that rows are as large as entries.
    """
    U, sigma, _ = np.linalg.svd(columns, full_matrices=False)
    return U[:, :rank] * (sigma[:rank] / np.sqrt(max(1, columns.shape[1])))
