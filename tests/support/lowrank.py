"""Matrices in factors beside the dense ones that they stand for."""

from itertools import product

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from simlib import LowRank

KINDS = [
    {"symmetric": s, "residual": r, "sparse": p, "dtype": d}
    for s, r, p, d in product(
        [True, False], [None, "sparse", "operator"], [True, False], "df"
    )
] + [
    {"symmetric": False, "residual": r, "sparse": p, "shape": shape}
    for r, p, shape in product([None, "sparse"], [True, False], [(12, 9), (9, 12)])
]


class Answers(LinearOperator):
    """A matrix that answers what a residual has to answer, and counts the rows."""

    def __init__(self, E):
        super().__init__(E.dtype, E.shape)
        self.E, self.asked = E, []

    def entries(self, i, j):
        return self.E[i, j]

    def rows(self, i):
        self.asked.append(len(i))
        return self.E[i]

    def diagonal(self):
        return np.diag(self.E)

    def _matmat(self, X):
        return self.E @ X

    _matvec = _matmat

    def _transpose(self):
        return Answers(self.E.T)

    _adjoint = _transpose


def make(*, symmetric=True, residual=None, sparse=False, dtype=float, shape=(12, 12)):
    """Return a LowRank and the dense matrix that it stands for."""
    rng = np.random.default_rng(7)
    n, m = shape
    left, right = rng.standard_normal((n, 3)), rng.standard_normal((m, 4))
    core = rng.standard_normal((3, 4))
    if symmetric:
        right, core = left, core[:, :3] + core[:, :3].T
    dense, E = left @ core @ right.T, None
    if residual:
        E = np.where(rng.random((n, m)) < 0.2, rng.standard_normal((n, m)), 0)
        E = E + E.T if symmetric else E
        dense = dense + E
        form = scipy.sparse.csr_array if residual == "sparse" else Answers
        E = form(E.astype(dtype))
    left, right = left.astype(dtype), right.astype(dtype)
    if sparse:
        left, right = scipy.sparse.csr_array(left), scipy.sparse.csr_array(right)
    right = None if symmetric else right
    return LowRank(left, core.astype(dtype), right, residual=E), dense


def dense_array(factor):
    return factor.toarray() if scipy.sparse.issparse(factor) else factor


def interpolating(n, k, seed=0):
    """A sparse factor: the identity, below it rows of a few weights of sum 1."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n - k), 5)
    weights = rng.dirichlet(np.ones(5), n - k).ravel()
    P = scipy.sparse.coo_array(
        (weights, (rows, rng.integers(0, k, rows.size))), shape=(n - k, k)
    )
    return scipy.sparse.vstack([scipy.sparse.eye_array(k), P], format="csr")
