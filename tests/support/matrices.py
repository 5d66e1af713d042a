"""Matrices of a known kind, and a function that remembers what it was asked."""

import numpy as np
from hypothesis import settings

from simlib import Similarity

quick = settings(max_examples=25, derandomize=True)


def orthogonal(n, rng):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def indefinite(n, *, seed=0, rank=None, dtype=float):
    """Symmetric, of full rank unless told, a third of the eigenvalues negative."""
    rng = np.random.default_rng(seed)
    rank = rank or n
    values = rng.uniform(1, 3, rank) * np.where(np.arange(rank) % 3 == 1, -1, 1)
    Q = orthogonal(n, rng)[:, :rank]
    K = (Q * values) @ Q.T
    return ((K + K.T) / 2).astype(dtype)


def psd(n, *, seed=0, rank=None):
    Z = np.random.default_rng(seed).standard_normal((n, rank or n))
    return Z @ Z.T


def asymmetric(n, *, seed=0, rank=None):
    rng = np.random.default_rng(seed)
    rank = rank or n
    left, right = orthogonal(n, rng), orthogonal(n, rng)
    return (left[:, :rank] * rng.uniform(1, 3, rank)) @ right[:, :rank].T


def rbf(n, *, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 4))
    return np.exp(-((X[:, None] - X) ** 2).sum(-1) / 4)


def error(K, approximation):
    return np.linalg.norm(K - approximation.toarray()) / np.linalg.norm(K)


class Recorder:
    """K[i, j] as a function of two items, and the list of what it was asked."""

    def __init__(self, K):
        self.K, self.asked = K, []

    def __call__(self, i, j):
        self.asked.append((i, j))
        return self.K[i, j]

    @property
    def unordered(self):
        return [tuple(sorted(pair)) for pair in self.asked]


def counted(K, **options):
    """The pairs that are asked for, in order, and a similarity of rows and columns."""
    recorder, (m, n) = Recorder(K), K.shape
    return recorder.asked, Similarity(range(m), recorder, columns=range(n), **options)
