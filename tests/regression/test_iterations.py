import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from test_preconditioner import coherent, matrix

from simlib._scale import norms
from simlib.regression import Preconditioner
from simlib.regression.iterations import (
    TooManySteps,
    conjugate_gradients,
    heavy_ball,
    lsqr,
)
from support.matrices import quick

LEAST_SQUARES = [heavy_ball, lsqr]
NORMAL = [conjugate_gradients]


def column(n, seed):
    return np.random.default_rng(seed).standard_normal((n, 1))


def noisy(A, level, seed=0):
    """A right-hand side whose residual is about the given part of it."""
    b = A @ column(A.shape[1], seed)
    e = column(len(A), seed + 1)
    return b + level * np.linalg.norm(b) / np.linalg.norm(e) * e


def sketched(A, oversampling, rng=0):
    return Preconditioner.from_matrix(
        A, oversampling=oversampling, refine=False, rng=rng
    )


def unpreconditioned(d):
    return Preconditioner(np.eye(d), 1.0, 0.0)


def gap(A, x, y, R):
    """The relative residual of A^T A x = y in the norm of R^-T."""
    left = R.solve_transposed(A.T @ (A @ x) - y)
    return np.linalg.norm(left) / np.linalg.norm(R.solve_transposed(y))


# Exactly


@pytest.mark.parametrize("solver", NORMAL)
def test_a_diagonal_matrix_is_its_own_triangle(solver):
    values = 2.0 ** np.arange(-8, 8)
    A = np.vstack([np.diag(values), np.zeros((30, 16))])
    R = Preconditioner.from_matrix(A, rng=0)
    x, steps, _ = solver(A, (values**2 * np.arange(1, 17))[:, None], R, 1e-15)
    np.testing.assert_allclose(x[:, 0], np.arange(1, 17), rtol=1e-14)
    assert steps <= 25


@pytest.mark.parametrize("solver", LEAST_SQUARES)
def test_least_squares_with_orthonormal_columns_are_a_projection(solver):
    A, b = matrix(900, 70, 1), column(900, 1)
    x, steps, _ = solver(A, b, sketched(A, 12), 1e-14)
    np.testing.assert_allclose(x, A.T @ b, atol=1e-13)
    assert steps <= 36


def test_the_heavy_ball_gains_eta_a_step_on_all_of_the_spectrum():
    eta = 12**-0.5
    singular = np.linspace(1 / (1 + eta), 1 / (1 - eta), 60)
    A, R = np.diag(singular), Preconditioner(np.eye(60), 1.0, eta)
    truth = column(60, 2)
    for target in (1e-4, 1e-8, 1e-12):
        x, steps, _ = heavy_ball(A, A @ truth, R, target)
        assert np.linalg.norm(x - truth) / np.linalg.norm(truth) < 10 * target
        assert steps <= np.log(target) / np.log(1.15 * eta) + 1


@pytest.mark.parametrize("solver", [lsqr, conjugate_gradients])
def test_the_steps_tell_the_singular_values(solver):
    A, X = matrix(400, 12, 50), np.random.default_rng(0).standard_normal((12, 2))
    R = Preconditioner(np.eye(12), 1.0, 0.0)
    right = A @ X if solver is lsqr else A.T @ (A @ X)
    least, largest = solver(A, right, R, 1e-15).extremes
    assert (least, largest) == pytest.approx((1 / 50, 1), rel=1e-3)


class Counted:
    """A matrix, as one block, that counts how often it is read."""

    def __init__(self, A):
        self.A, self.reads = A, 0

    def __iter__(self):
        self.reads += 1
        return iter([self.A])


@pytest.mark.parametrize("solver", [lsqr, conjugate_gradients])
def test_impatience(solver):
    """Ill-conditioned, it gives up early; well-conditioned, it goes through."""
    rng = np.random.default_rng(0)
    R = Preconditioner(np.eye(200), 1.0, 0.0)
    for condition, slow in ((1e4, True), (1.5, False)):
        A = matrix(500, 200, condition)
        right = rng.standard_normal((500 if solver is lsqr else 200, 1))
        if slow:
            counted = Counted(A)
            with pytest.raises(TooManySteps):
                solver(counted, right, R, 1e-16, 60, True)
            assert counted.reads < 2 * 50
        else:
            x, steps, _ = solver(A, right, R, 1e-16, 60, True)
            y = A.T @ right if solver is lsqr else right
            np.testing.assert_allclose(A.T @ (A @ x), y, atol=1e-12)
            assert steps <= 60


# Steps needed, and that the condition is not among what they depend on


@pytest.mark.parametrize("condition", [1e1, 1e3, 1e6, 1e8, 1e10])
@pytest.mark.parametrize(
    ("oversampling", "most_lsqr", "most_heavy"), [(12, 20, 22), (4, 33, 38)]
)
def test_steps_of_least_squares(condition, oversampling, most_lsqr, most_heavy):
    A = matrix(4096, 100, condition)
    R, b = sketched(A, oversampling), noisy(A, 1e-3)
    x, steps, _ = lsqr(A, b, R, 1e-13)
    assert steps <= most_lsqr
    other, steps, _ = heavy_ball(A, b, R, 1e-13)
    assert steps <= (most_heavy if condition <= 1e3 else 1.5 * most_heavy)
    optimum = A @ np.linalg.lstsq(A, b)[0]
    for found in (x, other):
        assert np.linalg.norm(A @ found - optimum) < 1e-9 * np.linalg.norm(b)


@pytest.mark.parametrize("oversampling", [4, 12])
@pytest.mark.parametrize("condition", [1e1, 1e5])
def test_unlucky_sketches_cost_no_more_steps(condition, oversampling):
    A = matrix(3000, 100, condition)
    b = A @ column(100, 1)
    for seed in range(12):
        R = sketched(A, oversampling, seed)
        x = heavy_ball(A, b, R, 1e-13).x
        left = R.solve_transposed(A.T @ (A @ x - b))
        assert np.linalg.norm(left) < condition * 1e-14 * np.linalg.norm(b)


@pytest.mark.parametrize("oversampling", [1.5, 4])
def test_a_failed_sketch_is_told(oversampling):
    """All that matters is in few rows, which fall on the same row of the sketch."""
    A = coherent(4096, 70)
    A[70:] = 1e-9 * np.random.default_rng(1).standard_normal((4026, 70))
    b = column(4096, 1)
    R = Preconditioner.from_matrix(
        A, sketch="count_sketch", oversampling=oversampling, refine=False, rng=0
    )
    with pytest.raises(np.linalg.LinAlgError, match="The sketch has failed"):
        heavy_ball(A, b, R, 1e-13)


@pytest.mark.parametrize(
    ("impatient", "error"), [(True, TooManySteps), (False, np.linalg.LinAlgError)]
)
def test_conjugate_gradients_with_equal_columns(impatient, error):
    A, y = np.repeat(column(50, 0), 2, axis=1), np.array([[1.0], [-1]])
    with pytest.raises(error):
        conjugate_gradients(A, y, unpreconditioned(2), 1e-12, 100, impatient)


def test_conjugate_gradients_recover_what_their_recursion_loses():
    A, y = matrix(4096, 50, 1e8), column(50, 1)
    R = sketched(A, 12)
    x, steps, _ = conjugate_gradients(A, y, R, 1e-14)
    assert gap(A, x, y, R) < 1e-8
    assert steps <= 32


# Against each other


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
    for solvers, right, truth in (
        (LEAST_SQUARES, B, np.linalg.solve(T, Q.T @ B)),
        (NORMAL, Y, np.linalg.solve(T, np.linalg.solve(T.T, Y))),
    ):
        for solver in solvers:
            x, *_ = solver(A, right, R, 1e-14)
            small = 1e-13 * condition**2 * norms(truth)
            assert (norms(x - truth) <= small).all()
        dense, *_ = solvers[0](A, right, R, 1e-14)
        sparse, *_ = solvers[0](scipy.sparse.csr_array(A), right, R, 1e-14)
        blocks, *_ = solvers[0]([A[:100], A[100:]], right, R, 1e-14)
        assert (norms(sparse - dense) <= 1e-13 * condition**2 * norms(truth)).all()
        assert (norms(blocks - dense) <= 1e-13 * condition**2 * norms(truth)).all()


@pytest.mark.parametrize("solver", LEAST_SQUARES + NORMAL)
def test_columns_of_every_size_are_solved_alike(solver):
    A = matrix(500, 6, 1e2)
    R = Preconditioner.from_matrix(A, rng=0)
    rows = 500 if solver in LEAST_SQUARES else 6
    right = np.tile(column(rows, 1), 4) * [1, 1e-120, 1e120, 0]
    x, *_ = solver(A, right, R, 1e-13)
    np.testing.assert_allclose(x[:, 1] * 1e120, x[:, 0], rtol=1e-9)
    np.testing.assert_allclose(x[:, 2] / 1e120, x[:, 0], rtol=1e-9)
    np.testing.assert_array_equal(x[:, 3], 0)
