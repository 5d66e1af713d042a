from functools import partial

import numpy as np
import pytest

from simlib import AttentionKernelRegressor
from simlib.regression import kernel
from simlib.regression.kernel import (
    GaussianKernel,
    factor,
    shifted_inverse,
    solve_by_rows,
)
from support.regression import attention, gaussian, normal, sphere, subspace


@pytest.mark.parametrize("block", [1, 100, 4096])
@pytest.mark.parametrize("kept", [0, 10**6])
def test_products_in_blocks(monkeypatch, block, kept):
    monkeypatch.setattr(kernel, "IN_CACHE", block)
    monkeypatch.setattr(kernel, "LARGEST_CACHE", kept)
    X, P, shifted = normal(90, 4) / 2, normal(90, 3), normal(90, 4) / 2 + 100
    K = GaussianKernel(X)
    for _ in range(2):
        np.testing.assert_allclose(K @ P, gaussian(X) @ P, rtol=1e-12)
    np.testing.assert_allclose(GaussianKernel(shifted) @ P, gaussian(shifted) @ P)
    np.testing.assert_array_equal(K.diagonal(), np.ones(90))
    places = np.array([3, 80, 3])
    np.testing.assert_allclose(K.columns(places), gaussian(X)[:, places])
    np.testing.assert_allclose(K.rows(places), gaussian(X)[places])
    np.testing.assert_allclose(K.pairs(places, places[::-1])[0], 1)
    np.testing.assert_allclose(K.pairs(places[:1], places[1:2]), gaussian(X)[3, 80])
    halves = ((X[:7] - X.mean(axis=0)) ** 2).sum(axis=1, keepdims=True) / 2
    np.testing.assert_allclose(np.exp(K.exponents(X[:7]) - halves), gaussian(X)[:7])


def test_the_kernel_is_evaluated_once_where_it_is_kept(monkeypatch):
    counts = []
    parts = GaussianKernel._parts

    def counted(self):
        for start, stop, block in parts(self):
            counts.append(block.size)
            yield start, stop, block

    monkeypatch.setattr(GaussianKernel, "_parts", counted)
    monkeypatch.setattr(kernel, "IN_CACHE", 5000)
    evaluated = {}
    for kept in (0, 10**6):
        monkeypatch.setattr(kernel, "LARGEST_CACHE", kept)
        counts.clear()
        model = AttentionKernelRegressor(1e-3, preconditioner=None).fit(
            sphere(300), normal(300)
        )
        evaluated[kept] = sum(counts) / 300**2
    assert 0.5 <= evaluated[10**6] < 1
    assert evaluated[0] > model.n_iter_ / 2 > 20


@pytest.mark.parametrize("columns", [0, 7, 60])
@pytest.mark.parametrize("ridge", [1e-3, 10.0])
def test_the_inverse_of_the_preconditioner(columns, ridge):
    """M = F F^T + mu I + ridge D^-2, and mu the mean that F misses."""
    X = normal(60, 3) / 2
    F = np.linalg.cholesky(gaussian(X))[:, :columns]
    ridges = ridge * np.exp(-np.square(X).sum(axis=1))
    missed = 1 - (F**2).sum() / 60
    M = F @ F.T + np.diag(ridges + missed)
    R = normal(60, 2)
    found = shifted_inverse(F, ridges)(R)
    np.testing.assert_allclose(found, np.linalg.solve(M, R), rtol=1e-6, atol=1e-9)


def test_the_preconditioner_needs_no_jitter():
    """Equal columns, a numerically low rank, no ridge: M is positive all the same."""
    X = subspace(300)
    C = gaussian(X)[:, :40]
    for F in (np.hstack([C, C]), factor(GaussianKernel(X), "nystroem", 300, 0)):
        solve = shifted_inverse(F, np.zeros(300))
        inverse = solve(np.eye(300))
        values = np.linalg.eigvalsh((inverse + inverse.T) / 2)
        assert values[0] > -1e-10 * values[-1]  # rounding errors of the largest


def test_factors():
    """Both are Nyström approximations: exact on the columns of their landmarks."""
    X = sphere(100, 4)
    for method in ("rpcholesky", "nystroem"):
        F = factor(GaussianKernel(X), method, 30, 0)
        assert F.shape == (100, 30)
        gap = gaussian(X) - F @ F.T
        values = np.linalg.eigvalsh(gap)
        assert values[0] > -1e-10
        assert (np.abs(gap).max(axis=0) < 1e-9).sum() == 30


# Conjugate gradients


def solved(A, Y, **options):
    """Without a preconditioner."""
    return solve_by_rows(partial(np.matmul, A), Y, np.copy, **options)


def test_columns_stop_when_they_are_done():
    A = np.diag(np.arange(1.0, 101))
    Y = np.stack([np.eye(100)[3], np.ones(100), np.zeros(100)], axis=1)
    widths = []

    def multiply(P):
        widths.append(P.shape[1])
        return A @ P

    X, R, steps = solve_by_rows(multiply, Y, np.copy, tol=1e-12, max_iter=200)
    np.testing.assert_allclose(X, np.linalg.solve(A, Y), atol=1e-11)
    np.testing.assert_allclose(R, Y - A @ X, atol=1e-15)
    assert widths[0] == 2, "a column of zeros needs no step"
    assert widths[1] == 1, "one eigenvector takes one step"
    assert sum(widths) < steps + 6


def test_most_iterations():
    A = np.diag(np.geomspace(1, 1e6, 100))
    y = np.ones((100, 1))
    X, R, steps = solved(A, y, tol=1e-10, max_iter=7)
    assert steps == 7
    np.testing.assert_allclose(R, y - A @ X, atol=1e-10)
    energy = (X * (A @ X)).sum() / 2 - (X * y).sum()
    assert energy < 0, "what was gained is given back"


def test_no_steps_beyond_stagnation():
    A = attention(sphere(200, 8)) + 1e-3 * np.eye(200)
    y = normal(200, 1)
    count = {}
    for tol in (1e-12, 1e-30):
        _, R, count[tol] = solved(A, y, tol=tol, max_iter=10**5)
        assert np.linalg.norm(R) < 1e-11 * np.linalg.norm(y)
    assert count[1e-30] < 2 * count[1e-12]


def test_weighted_residuals():
    """They go on until the rows of large weights are right, too."""
    A = np.diag(np.geomspace(1, 1e3, 100))
    y, weights = np.geomspace(1, 1e-3, 100)[:, None], np.geomspace(1, 1e3, 100)
    residuals = []
    for given in (None, weights):
        _, R, _ = solved(A, y, tol=1e-8, max_iter=1000, weights=given)
        residuals.append(np.linalg.norm(weights * R[:, 0]) / 10)
    assert residuals[1] <= 1e-8 < residuals[0]


def test_indefinite_matrix_ends():
    A = np.diag(np.append(np.ones(20), -1.0))
    _, R, steps = solved(A, np.ones((21, 1)), tol=1e-10, max_iter=1000)
    assert steps < 100
    assert np.isfinite(R).all()
