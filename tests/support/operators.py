"""Surfaces, graphs and their operators, and what interpolates by dense algebra."""

import sys

import numpy as np
import pytest
from scipy.sparse import coo_array

from simlib.biharmonic import (
    biharmonic_operator,
    graph_laplacian,
    interpolation,
    mesh_laplacian,
)
from simlib.datasets import bumpy_sphere
from simlib.landmarks import uniform

TETRAHEDRON = (
    np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=float),
    np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]]),
)


def flat_square(m):
    """m x m vertices in the unit square of the plane."""
    x, y = np.meshgrid(*[np.linspace(0, 1, m)] * 2, indexing="ij")
    k = np.arange(m * m).reshape(m, m)
    a, b, c, d = k[:-1, :-1], k[1:, :-1], k[1:, 1:], k[:-1, 1:]
    faces = [
        np.stack(corners, axis=-1).reshape(-1, 3) for corners in ([a, b, c], [a, c, d])
    ]
    return np.stack([x, y, 0 * x], axis=-1).reshape(-1, 3), np.concatenate(faces)


def path(*weights):
    w, k = np.array(weights, dtype=float), np.arange(len(weights))
    half = coo_array((w, (k, k + 1)), shape=(k.size + 1,) * 2)
    return graph_laplacian(half + half.T)


def random_laplacian(n, seed):
    """Of a connected graph: a cycle and some chords, of different weights."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.uniform(0.3, 3, (n, n)) * (rng.random((n, n)) < 2 / n), 1)
    A[np.arange(n - 1), np.arange(1, n)] = rng.uniform(0.5, 2, n - 1)
    A[0, -1] = 1
    return graph_laplacian(np.triu(A, 1) + np.triu(A, 1).T)


def surface_operator(mesh):
    return biharmonic_operator(*mesh_laplacian(mesh.vertices, mesh.faces))


def by_dense_algebra(M, landmarks):
    M = M.toarray()
    free = np.setdiff1d(np.arange(len(M)), landmarks)
    P = np.zeros((len(M), len(landmarks)))
    P[landmarks, np.arange(len(landmarks))] = 1
    P[free] = -np.linalg.solve(M[np.ix_(free, free)], M[np.ix_(free, landmarks)])
    return P


def thresholded(P, landmarks, nnz_per_row, by):
    """Keep what is largest in P_u, not renormalised."""
    P_u = np.delete(P, landmarks, axis=0)
    axis, kept = (0, len(P_u) * nnz_per_row / len(landmarks)), (1, nnz_per_row)
    axis, kept = axis if by == "column" else kept
    kept = min(max(round(kept), 1), P_u.shape[axis])
    least = np.sort(abs(P_u), axis=axis).take([-kept], axis=axis)
    result = P.copy()
    result[np.setdiff1d(np.arange(len(P)), landmarks)] = np.where(
        abs(P_u) >= least, P_u, 0
    )
    return result


def in_parts_of_nine(folder, **options):
    """Interpolate on a sphere, and keep nine columns at a time in a folder."""
    module = sys.modules["simlib.biharmonic.interpolation"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART", 9)
        M, landmarks = surface_operator(bumpy_sphere(3)), uniform(642, 60, rng=0)
        return interpolation(M, landmarks, nnz_per_row=2, memory=folder, **options)
