from functools import partial

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from simlib._scale import norms
from simlib.regression import Preconditioner
from simlib.regression.iterations import (
    Descent,
    TooManySteps,
    conjugate_gradients,
    lsqr,
)
from support.matrices import quick
from support.regression import matrix, normal, sketched, unpreconditioned

each = pytest.mark.parametrize("solver", [lsqr, conjugate_gradients])


@pytest.mark.parametrize("diagonal", [False, True])
def test_steps_of_conjugate_gradients_are_optimal_in_krylov_spaces(diagonal):
    """By an independent way: least squares over M^-1 r, M^-1 A M^-1 r, ..."""
    A = np.diag(np.linspace(1, 3, 30)) + np.ones((30, 30)) / 60
    M = np.diag(A) if diagonal else np.ones(30)
    Y = normal(30, 2)
    descent = Descent(partial(np.matmul, A), Y, lambda R: R / M[:, None])
    spaces = [(Y / M[:, None])]
    for _ in range(5):
        assert descent.step().all()
        for k in range(2):
            V = np.linalg.qr(np.stack([S[:, k] for S in spaces], axis=1))[0]
            best = V @ np.linalg.solve(V.T @ A @ V, V.T @ Y[:, k])
            np.testing.assert_allclose(descent.X[:, k], best, atol=1e-12)
        np.testing.assert_allclose(descent.R, Y - A @ descent.X, atol=1e-13)
        spaces.append(A @ spaces[-1] / M[:, None])


@each
def test_the_steps_tell_the_singular_values(solver):
    A, X = matrix(400, 12, 50), normal(12, 2)
    B = A @ X if solver is lsqr else A.T @ (A @ X)
    least, largest = solver(A, B, unpreconditioned(12), 1e-15).extremes
    assert (least, largest) == pytest.approx((1 / 50, 1), rel=1e-3)


class Counted:
    """A matrix, as one block, that counts how often it is read."""

    def __init__(self, A):
        self.A, self.reads = A, 0

    def __iter__(self):
        self.reads += 1
        return iter([self.A])


@each
def test_impatience(solver):
    """Ill-conditioned, it gives up early; well-conditioned, it goes through."""
    R, b = unpreconditioned(200), normal(500 if solver is lsqr else 200, 1)
    slow = Counted(matrix(500, 200, 1e4))
    with pytest.raises(TooManySteps):
        solver(slow, b, R, 1e-16, 60, True)
    assert slow.reads < 2 * 50
    A = matrix(500, 200, 1.5)
    x, steps, _ = solver(A, b, R, 1e-16, 60, True)
    y = A.T @ b if solver is lsqr else b
    np.testing.assert_allclose(A.T @ (A @ x), y, atol=1e-12)
    assert steps <= 60


# Steps needed, and that the condition is not among what they depend on


@pytest.mark.parametrize("condition", [1e1, 1e3, 1e6, 1e8, 1e10])
@pytest.mark.parametrize(("oversampling", "most"), [(12, 20), (4, 33)])
def test_steps_of_least_squares(condition, oversampling, most):
    A = matrix(4096, 100, condition)
    b, e = A @ normal(100, 1), normal(4096, 1, seed=1)
    b += 1e-3 * np.linalg.norm(b) / np.linalg.norm(e) * e
    x, steps, _ = lsqr(A, b, sketched(A, oversampling), 1e-13)
    assert steps <= most
    optimum = A @ np.linalg.lstsq(A, b)[0]
    assert np.linalg.norm(A @ x - optimum) < 1e-9 * np.linalg.norm(b)


@pytest.mark.parametrize(
    ("impatient", "error"), [(True, TooManySteps), (False, np.linalg.LinAlgError)]
)
def test_conjugate_gradients_with_equal_columns(impatient, error):
    A, y = np.repeat(normal(50, 1), 2, axis=1), np.array([[1.0], [-1]])
    with pytest.raises(error):
        conjugate_gradients(A, y, unpreconditioned(2), 1e-12, 100, impatient)


def test_conjugate_gradients_recover_what_their_recursion_loses():
    A, y = matrix(4096, 50, 1e8), normal(50, 1, seed=1)
    R = sketched(A, 12)
    x, steps, _ = conjugate_gradients(A, y, R, 1e-14)
    left = R.solve_transposed(A.T @ (A @ x) - y)  # in the norm of R^-T
    assert np.linalg.norm(left) < 1e-8 * np.linalg.norm(R.solve_transposed(y))
    assert steps <= 32


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    columns=st.integers(1, 3),
    condition=st.sampled_from([1.0, 1e2, 1e4]),
)
def test_all_solve_the_same_equations(seed, columns, condition):
    rng = np.random.default_rng(seed)
    A = matrix(400, 9, condition, seed=seed)
    B, Y = rng.standard_normal((400, columns)), rng.standard_normal((9, columns))
    B[:, 0] = 0 if seed % 3 == 0 else B[:, 0]
    R = Preconditioner.from_matrix(A, rng=seed)
    Q, T = np.linalg.qr(A)
    for solver, target, truth in (
        (lsqr, B, np.linalg.solve(T, Q.T @ B)),
        (conjugate_gradients, Y, np.linalg.solve(T, np.linalg.solve(T.T, Y))),
    ):
        for kind in A, scipy.sparse.csr_array(A), [A[:100], A[100:]]:
            x, *_ = solver(kind, target, R, 1e-14)
            assert (norms(x - truth) <= 1e-13 * condition**2 * norms(truth)).all()


@each
def test_columns_of_every_size_are_solved_alike(solver):
    A = matrix(500, 6, 1e2)
    R = Preconditioner.from_matrix(A, rng=0)
    column = normal(500 if solver is lsqr else 6, 1, seed=1)
    x, *_ = solver(A, np.tile(column, 4) * [1, 1e-120, 1e120, 0], R, 1e-13)
    np.testing.assert_allclose(x[:, 1] * 1e120, x[:, 0], rtol=1e-9)
    np.testing.assert_allclose(x[:, 2] / 1e120, x[:, 0], rtol=1e-9)
    np.testing.assert_array_equal(x[:, 3], 0)
