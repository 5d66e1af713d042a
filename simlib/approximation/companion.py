"""Cheap similarities beside those of a matrix, and one of them as a linear operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from simlib.lowrank.tall import is_symmetric
from simlib.similarity import Similarity
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

__all__ = ["CheapPart", "InnerProducts", "as_companion"]

COMPUTED = 2**19  # entries of the cheap part at a time
GATHERED = 2**16  # numbers at a time: they stay in the cache


def as_companion(cheap: Any, sim: SimilarityMatrix) -> SimilarityMatrix:
    """Return the cheap similarity, as `anchored` takes it, of the items of another."""
    if not isinstance(cheap, Source) and callable(cheap):
        if not hasattr(sim, "items"):
            raise TypeError(
                "This similarity does not tell its items: pass "
                "cheap=Similarity(items, function)."
            )
        cheap = Similarity(sim.items, cheap, symmetric=sim.symmetric)
    elif not isinstance(cheap, Source):
        cheap = InnerProducts(_factor(cheap, sim.n))
    cheap = check_similarity(cheap)
    if cheap.n != sim.n:
        raise ValueError(
            f"The cheap similarity has {cheap.n} items, the other {sim.n}; both must "
            "have the same items in the same order."
        )
    if sim.symmetric and not cheap.symmetric:
        raise ValueError(
            "The cheap similarity of a symmetric matrix must be symmetric; pass "
            "cheap.symmetrized()."
        )
    return cheap


def _factor(cheap: Any, n: int) -> Any:
    """Return a factor of cheap similarities as an array or csr array."""
    try:
        Z = check_array(
            cheap, accept_sparse="csr", dtype=[float, np.float32], input_name="cheap"
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`cheap` is a Similarity of the same items, a function of two of them, or "
            "an array of shape (n, d), a row of numbers for each item, of which the "
            f"inner products count. {error}"
        ) from error
    if n > 1 and Z.shape == (n, n) and is_symmetric(Z):
        raise ValueError(
            f"`cheap` has two meanings, as it is symmetric of shape {Z.shape}. If it "
            "holds the cheap similarities or distances pass "
            "Similarity.from_matrix(cheap); if its rows are features, of which the "
            "inner products count, Similarity.from_matrix(cheap @ cheap.T)."
        )
    return Z


class InnerProducts:
    r"""The matrix :math:`Z Z^\top` as a `Source`, computed wherever it is read.

    An entry costs so little that it is neither counted nor kept. Squared norms of rows
    that are no numbers, or all underflow, are a ValueError.
    """

    symmetric, calls, limit = True, 0, None

    def __init__(self, Z: Any):
        with np.errstate(over="ignore"):
            squares = row_norms(Z, squared=True)
        if not np.isfinite(squares).all():
            raise ValueError(
                "The rows of the cheap factor are so long that their inner products "
                "are no numbers; divide it by its largest entry."
            )
        if (squares < np.finfo(Z.dtype).tiny).all() and (Z != 0).sum():
            raise ValueError(
                "The rows of the cheap factor are so short that their inner products "
                "vanish; divide it by its largest entry."
            )
        self.Z, self.n, self.dtype = Z, Z.shape[0], Z.dtype
        self.shape = (self.n, self.n)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the entries of some rows and columns."""
        return safe_sparse_dot(self.Z[rows], self.Z[columns].T, dense_output=True)

    def columns(self, columns: np.ndarray) -> np.ndarray:
        """Return whole columns, shape (n, len(columns))."""
        return safe_sparse_dot(self.Z, self.Z[columns].T, dense_output=True)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Return whole rows, shape (len(rows), n)."""
        return self.columns(rows).T

    def pairs(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the entries (i[k], j[k])."""
        out = np.empty(len(i), self.dtype)
        sparse = scipy.sparse.issparse(self.Z)
        step = max(1, COMPUTED if sparse else GATHERED // max(1, self.Z.shape[1]))
        for k in range(0, len(i), step):
            part = slice(k, k + step)
            first, second = self.Z[i[part]], self.Z[j[part]]
            if sparse:
                out[part] = np.asarray(first.multiply(second).sum(axis=1)).ravel()
            else:
                out[part] = np.einsum("kd,kd->k", first, second)
        return out

    def peek(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return NaN for each entry: none is kept."""
        return np.full(len(i), np.nan)

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return nothing."""
        return iter(())


class CheapPart(LinearOperator):
    """A similarity as an operator, computed where it is asked for, and never kept."""

    def __init__(
        self, sim: SimilarityMatrix, dtype: np.dtype, *, transposed: bool = False
    ):
        super().__init__(dtype, sim.shape)
        self.sim, self.transposed = sim, transposed

    def rows(self, i: np.ndarray) -> np.ndarray:
        """Return whole rows, shape (len(i), n)."""
        return self._block(i, np.arange(self.shape[1]))

    def entries(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the entries (i[k], j[k])."""
        i, j = (j, i) if self.transposed else (i, j)
        return self.sim.blank().pairs(i, j).astype(self.dtype, copy=False)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, shape (n,)."""
        return self.sim.blank().diagonal().astype(self.dtype, copy=False)

    def _block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        sim = self.sim.blank()  # dies here, with all that it evaluates
        if self.transposed:
            block = sim.block(columns, rows).T
        else:
            block = sim.block(rows, columns)
        return block.astype(self.dtype, copy=False)

    def _matmat(self, X: np.ndarray) -> np.ndarray:
        n, symmetric = self.shape[0], self.sim.symmetric
        items, step = np.arange(n), max(1, COMPUTED // n)
        result = np.zeros((n, X.shape[1]), np.result_type(self.dtype, X.dtype))
        for k in range(0, n, step):
            strip = items[k : k + step]
            first = k if symmetric else 0  # what is left of it was met as a column
            block = self._block(strip, items[first:])
            result[strip] += block @ X[first:]
            if symmetric:
                rest = slice(strip[-1] + 1, None)
                result[rest] += block[:, strip.size :].T @ X[strip]
        return result

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        return self._matmat(x.reshape(-1, 1)).reshape(x.shape)

    def _transpose(self) -> CheapPart:
        if self.sim.symmetric:
            return self
        return CheapPart(self.sim, self.dtype, transposed=not self.transposed)

    _adjoint = _transpose
