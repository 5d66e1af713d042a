r"""Factorisation of a sparse symmetric positive definite matrix.

.. math::
    A = L D L^\top

with rows and columns in an order in which L has few entries. Nested dissection cuts the
graph of A by small sets of nodes, and eliminates these last. Minimum degree always
eliminates a node with the fewest neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import SuperLU, splu

try:
    import pymetis
except ImportError:
    pymetis = None  # type: ignore[assignment]

SINGULAR = (
    "M without the landmarks is singular to rounding error. Parts of it are joined too "
    "weakly, or are too far from any landmark: add landmarks there."
)
STABLE = 1e-12  # most residual of a solution, relative to A and the solution


@dataclass(frozen=True)
class Factorization:
    """Factors of A with rows and columns in another order.

    ``superlu`` factorises ``A[order][:, order]``. If A is positive definite, the row
    and the column permutation of ``superlu`` are the same, and ``superlu.U`` is D L^T.
    """

    superlu: SuperLU
    order: np.ndarray

    @property
    def place(self) -> np.ndarray:
        """The place of each row of A in the elimination, shape (m,)."""
        place = np.empty(self.order.size, dtype=np.int64)
        place[self.order] = self.superlu.perm_c
        return place

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return A^-1 B, of the shape of B: (m,) or (m, k)."""
        X = np.empty(B.shape, order="F")
        X[self.order] = self.superlu.solve(B[self.order])
        return X


def eliminate(A: csc_array) -> Factorization:
    """Factorise A in the order of METIS, or SuperLU; RuntimeError if it is singular."""
    order, permc_spec = np.arange(A.shape[0]), "MMD_AT_PLUS_A"
    graph = csc_array(A + A.T)  # symmetric, also where A is so only to rounding
    graph.setdiag(0)
    graph.eliminate_zeros()
    if pymetis is not None and graph.nnz:
        graph = pymetis.CSRAdjacency(graph.indptr, graph.indices)
        order, permc_spec = np.array(pymetis.nested_dissection(graph)[0]), "NATURAL"
        A = csc_array(A[order][:, order])
    factor = splu(
        A, permc_spec=permc_spec, diag_pivot_thresh=0, options={"SymmetricMode": True}
    )
    return Factorization(factor, order)


def factorize(A: csc_array) -> Factorization:
    """Factorise A = L D L^T, in O(m^1.5) flops on surfaces; ValueError if singular.

    An indefinite A whose pivots are too small is factorised as any square matrix.
    """
    try:
        factor = _stable(A) or Factorization(splu(A), np.arange(A.shape[0]))
    except RuntimeError as error:
        raise ValueError(SINGULAR) from error
    ones = np.ones(A.shape[0])
    if not abs(factor.solve(A @ ones) - ones).max() <= 1e-3:  # three digits
        raise ValueError(SINGULAR)
    return factor


def _stable(A: csc_array) -> Factorization | None:
    """Return the factors of `eliminate`, None if solutions leave a large residual."""
    try:
        factor = eliminate(A)
    except RuntimeError:  # a pivot is zero
        return None
    B = np.random.default_rng(0).standard_normal(A.shape[0])
    X = factor.solve(B)
    size = abs(A).sum(axis=1).max() * abs(X).max()
    return factor if abs(A @ X - B).max() <= STABLE * size else None
