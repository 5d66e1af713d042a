"""Tall matrices, right-hand sides, and points of an attention kernel."""

import tracemalloc
from functools import cache

import numpy as np
import pytest
import scipy.spatial
from sklearn.preprocessing import normalize

from simlib.regression import Preconditioner
from support.matrices import orthogonal

attainable = pytest.mark.filterwarnings(
    "ignore:x leaves a residual:scipy.linalg.LinAlgWarning"
)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def relative(x, truth):
    gap = np.asarray(x - truth, dtype=float)
    return np.linalg.norm(gap) / np.linalg.norm(np.asarray(truth, dtype=float))


def peak(function):
    """Bytes in use at most, beyond those before."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Tall matrices


def matrix(n, d, condition, *, seed=0):
    """Singular values spread evenly on a logarithmic scale, largest 1."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.standard_normal((n, d)))[0]
    values = np.logspace(0, -np.log10(condition), d)
    return (left * values) @ orthogonal(d, rng).T


def right(A, level, seed=0):
    """A right-hand side, of which the given part is no combination of columns."""
    b = A @ normal(A.shape[1], seed=seed)
    e = normal(len(A), seed=seed + 1)
    Q = np.linalg.qr(A)[0]
    for _ in range(2):
        e -= Q @ (Q.T @ e)
    return b + level * np.linalg.norm(b) / np.linalg.norm(e) * e


def sketched(A, oversampling, rng=0):
    return Preconditioner.from_matrix(
        A, oversampling=oversampling, refine=False, rng=rng
    )


def unpreconditioned(d):
    return Preconditioner(np.eye(d), 1.0, 0.0)


# A reference in extended precision


def long_qr(A):
    """Gram-Schmidt, each column twice."""
    Q = A.astype(np.longdouble)
    R = np.zeros((A.shape[1],) * 2, np.longdouble)
    for k in range(A.shape[1]):
        for _ in range(2):
            part = Q[:, :k].T @ Q[:, k]
            Q[:, k] -= Q[:, :k] @ part
            R[:k, k] += part
        R[k, k] = np.sqrt((Q[:, k] ** 2).sum())
        Q[:, k] /= R[k, k]
    return Q, R


def back_substitute(R, y):
    x = y.astype(R.dtype)
    for k in reversed(range(len(R))):
        x[k] = (x[k] - R[k, k + 1 :] @ x[k + 1 :]) / R[k, k]
    return x


def through_gram(R, y, j=1):
    """(R^T R)^-j y, where reversing rows and columns of R^T makes it upper."""
    for _ in range(j):
        y = back_substitute(R.T[::-1, ::-1], y[::-1])[::-1]
        y = back_substitute(R, y)
    return y


def exact_odd_power(A, b, j):
    """The solution by extended precision."""
    Q, R = long_qr(A)
    return through_gram(R, back_substitute(R, Q.T @ b), j)


@cache
def problem(condition):
    """A, b of d entries, and the factors by which powers are solved exactly."""
    A = matrix(2048, 40, condition, seed=7)
    return A, normal(40, seed=8), *long_qr(A)


def truth(condition, j):
    """The solution for b."""
    _, b, _, R = problem(condition)
    return through_gram(R, b, j)


# Points


def sphere(n, d=16, r=1.0, *, seed=0):
    """Points uniform on the sphere of radius r."""
    return r * normalize(normal(n, d, seed=seed))


def subspace(n, d=64, *, seed=0):
    """Points uniform on the unit sphere of a random 3-dimensional subspace."""
    basis = np.linalg.qr(normal(d, 3, seed=seed))[0]
    return sphere(n, 3, seed=seed + 1) @ basis.T


def attention(X):
    """The kernel matrix."""
    return np.exp(X @ X.T)


def gaussian(X):
    return np.exp(-scipy.spatial.distance.cdist(X, X, "sqeuclidean") / 2)
