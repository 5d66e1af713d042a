"""Cheap similarities of the items of a matrix, also as a linear operator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator
from scipy.spatial.distance import cdist
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from simlib._checks import a_pair, readable
from simlib.lowrank.tall import inner_products, is_symmetric
from simlib.similarity import Similarity
from simlib.similarity.known import Extent
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

__all__ = ["as_companion"]

COMPUTED = 2**19  # entries of the cheap part at a time


def as_companion(
    cheap: Any, sim: SimilarityMatrix, *, distance: bool = False
) -> SimilarityMatrix:
    """Return the `cheap` of `anchored` as a similarity of the items of `sim`.

    An array stands for the inner products of its rows, with `distance` for the
    Euclidean distances between them.
    """
    made = Distances if distance else InnerProducts
    two = isinstance(sim.extent, tuple)
    if not isinstance(cheap, Source) and callable(cheap):
        if not hasattr(sim, "items"):
            raise TypeError(
                "This similarity does not tell its items: pass "
                "cheap=Similarity(items, function)."
            )
        columns = sim.column_items if two else None  # type: ignore[attr-defined]
        cheap = Similarity(sim.items, cheap, columns=columns, symmetric=sim.symmetric)
    elif not isinstance(cheap, Source) and two:
        m, n = sim.shape
        if getattr(cheap, "shape", None) == (m, n):
            raise ValueError(
                f"`cheap` has a value for each of {m} rows and {n} columns: pass "
                "Similarity.from_matrix(cheap, two=True). Otherwise it is a pair of "
                "factors, for rows and columns."
            )
        Z, W = a_pair(cheap, "`cheap`, if it is none of similarities,")
        cheap = made(_factor(Z, m, n, made), _factor(W, n, m, made))
    elif not isinstance(cheap, Source):
        cheap = made(_factor(cheap, *sim.shape, made))
    cheap = check_similarity(cheap)
    if cheap.extent != sim.extent:
        raise ValueError(
            f"The cheap similarity has {_size(cheap)}, the other {_size(sim)}; both "
            "must have the same items in the same order."
        )
    if sim.symmetric and not cheap.symmetric:
        raise ValueError(
            "The cheap similarity of a symmetric matrix must be symmetric; pass "
            "cheap.symmetrized()."
        )
    return cheap


def _size(sim: SimilarityMatrix) -> str:
    two = isinstance(sim.extent, tuple)
    return ("{} rows and {} columns" if two else "{} items").format(*sim.shape)


def _factor(cheap: Any, n: int, others: int, made: type[InnerProducts]) -> Any:
    """Return a factor of cheap similarities as an array or csr array."""
    try:
        Z = check_array(
            readable(cheap, "These"),
            accept_sparse="csr",
            dtype=[float, np.float32],
            input_name="cheap",
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`cheap` is a Similarity of the same items, a function of two of them, or "
            "an array of shape (n, d), a row of numbers for each item, of which the "
            f"{made.name} count. {error}"
        ) from error
    if n > 1 and Z.shape == (n, others) and n == others and is_symmetric(Z):
        raise ValueError(
            f"`cheap` has two meanings, as it is symmetric of shape {Z.shape}. If it "
            "holds the cheap similarities or distances pass "
            "Similarity.from_matrix(cheap); if its rows are features, of which the "
            f"{made.name} count, Similarity.from_matrix({made.formula})."
        )
    return Z


class InnerProducts:
    r"""The matrix :math:`Z W^\top` as a `Source`, computed where it is read.

    For one collection W is Z. An entry costs so little that it is neither counted nor
    kept. ValueError: the squared norm of a row overflows, or all of them underflow.
    """

    calls, limit = 0, None
    name, formula = "inner products", "cheap @ cheap.T"

    def __init__(self, Z: Any, W: Any = None):
        if W is not None and scipy.sparse.issparse(Z) != scipy.sparse.issparse(W):
            Z, W = map(scipy.sparse.csr_array, (Z, W))
        self.Z, self.W, self.symmetric = Z, Z if W is None else W, W is None
        if self.Z.shape[1] != self.W.shape[1]:
            raise ValueError(
                f"The cheap factors have {self.Z.shape[1]} and {self.W.shape[1]} "
                "columns; inner products need as many."
            )
        self.dtype = np.result_type(self.Z.dtype, self.W.dtype)
        self.shape = self.n, columns = self.Z.shape[0], self.W.shape[0]
        self.extent: Extent = self.n if W is None else (self.n, columns)
        for factor in (self.Z, self.W):
            with np.errstate(over="ignore"):
                squares = row_norms(factor, squared=True)
            if not np.isfinite(squares).all():
                raise ValueError(
                    "The rows of the cheap factor are so long that their inner "
                    "products are no numbers; divide it by its largest entry."
                )
            if (squares < np.finfo(factor.dtype).tiny).all() and (factor != 0).sum():
                raise ValueError(
                    "The rows of the cheap factor are so short that their inner "
                    "products vanish; divide it by its largest entry."
                )

    @cached_property
    def factors(self) -> tuple[Any, Any, np.ndarray]:
        """L, R and signs s, with the entries `of_products` of L R^T.

        For one collection L is R s.
        """
        return self.Z, self.W, np.ones(self.Z.shape[1])

    def of_products(self, products: np.ndarray) -> np.ndarray:
        """Return the entries that belong to these entries of L R^T."""
        return products

    def _values(self, Z: Any, W: Any) -> np.ndarray:
        """Return the entries for all rows of Z and all of W; both may be sparse."""
        return safe_sparse_dot(Z, W.T, dense_output=True)

    def block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self._values(self.Z[rows], self.W[columns])

    def columns(self, columns: np.ndarray) -> np.ndarray:
        return self._values(self.Z, self.W[columns])

    def rows(self, rows: np.ndarray) -> np.ndarray:
        return self._values(self.W, self.Z[rows]).T

    def pairs(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        if not scipy.sparse.issparse(self.Z):
            return inner_products(self.Z, i, self.W, j)
        parts = [slice(k, k + COMPUTED) for k in range(0, len(i), COMPUTED)]
        products = (self.Z[i[part]].multiply(self.W[j[part]]) for part in parts)
        sums = [np.asarray(product.sum(axis=1)).ravel() for product in products]
        return np.concatenate([np.zeros(0, self.dtype), *sums])

    def peek(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return np.full(len(i), np.nan)

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        return iter(())


class Distances(InnerProducts):
    r"""The Euclidean distances between rows of Z and of W.

    The squares of the distances are products of factors,

    .. math::
        \tfrac12 \|z - w\|^2 = - z^\top w
        + \tfrac12 \left( \tfrac{p}{c} + c \right) \left( \tfrac{q}{c} + c \right)
        - \tfrac12 \left( \tfrac{p}{c} - c \right) \left( \tfrac{q}{c} - c \right)

    where z and w are centred, p and q are half their squared norms, and c^2 is the mean
    of all p and q.
    """

    name, formula = "distances between them", "cdist(cheap, cheap)"

    @cached_property
    def factors(self) -> tuple[Any, Any, np.ndarray]:
        d, centre = self.Z.shape[1], np.concatenate([self.Z, self.W]).mean(axis=0)
        centred = self.Z - centre, self.W - centre
        halves = [row_norms(factor, squared=True)[:, None] / 2 for factor in centred]
        c = np.sqrt(np.concatenate(halves).mean()) or 1
        Z, W = (
            np.hstack([factor, (p / c + c) / sqrt(2), (p / c - c) / sqrt(2)])
            for factor, p in zip(centred, halves, strict=True)
        )
        signs = np.repeat(Z.dtype.type([-1, 1, -1]), [d, 1, 1])
        return Z * signs, W, signs

    def of_products(self, products: np.ndarray) -> np.ndarray:
        return np.sqrt(2 * np.maximum(products, 0))

    def _values(self, Z: Any, W: Any) -> np.ndarray:
        if not scipy.sparse.issparse(Z):
            return cdist(Z, W).astype(self.dtype, copy=False)
        p, q = (row_norms(factor, squared=True) for factor in (Z, W))
        both = p[:, None] + q
        rounding = 4 * np.finfo(both.dtype).eps * both  # no distance is too large
        squares = both - 2 * super()._values(Z, W) - rounding
        return np.sqrt(np.maximum(squares, 0))

    def pairs(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        width = 1 if scipy.sparse.issparse(self.Z) else max(1, self.Z.shape[1] // 8)
        step = max(1, COMPUTED // width)
        parts = [slice(k, k + step) for k in range(0, len(i), step)]
        found = [row_norms(self.Z[i[part]] - self.W[j[part]]) for part in parts]
        return np.concatenate([np.zeros(0, self.dtype), *found])


class CheapPart(LinearOperator):
    """A similarity as a linear operator, whose entries are computed and not kept."""

    def __init__(self, sim: SimilarityMatrix, dtype: Any, transposed: bool = False):
        super().__init__(dtype, sim.shape[:: -1 if transposed else 1])
        self.sim, self.transposed = sim, transposed

    def rows(self, i: np.ndarray) -> np.ndarray:
        return self._block(i, np.arange(self.shape[1]))

    def entries(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        i, j = (j, i) if self.transposed else (i, j)
        return self.sim.blank().pairs(i, j).astype(self.dtype, copy=False)

    def diagonal(self) -> np.ndarray:
        every = np.arange(min(self.shape))
        return self.entries(every, every)

    def _block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        sim = self.sim.blank()  # is freed on return, with the entries it evaluates
        turned = self.transposed
        block = sim.block(columns, rows).T if turned else sim.block(rows, columns)
        return block.astype(self.dtype, copy=False)

    def _matmat(self, X: np.ndarray) -> np.ndarray:
        (m, n), symmetric = self.shape, self.sim.symmetric
        rows, columns, step = np.arange(m), np.arange(n), max(1, COMPUTED // n)
        result = np.zeros((m, X.shape[1]), np.result_type(self.dtype, X.dtype))
        for k in range(0, m, step):
            strip = rows[k : k + step]
            first = k if symmetric else 0  # earlier columns were used by symmetry
            block = self._block(strip, columns[first:])
            result[strip] += block @ X[first:]
            if symmetric:
                rest = slice(strip[-1] + 1, None)
                result[rest] += block[:, strip.size :].T @ X[strip]
        return result

    def _transpose(self) -> CheapPart:
        if self.sim.symmetric:
            return self
        return CheapPart(self.sim, self.dtype, not self.transposed)

    _adjoint = _transpose
