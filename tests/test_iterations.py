import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from matrices import quick
from test_preconditioner import matrix

from simlib.regression import Preconditioner
from simlib.regression.iterations import (
    balanced,
    conjugate_gradients,
    heavy_ball,
    lsqr,
    normal_heavy_ball,
    norms,
)
from simlib.regression.paper import fast_linear_regression, fast_psd_regression

LEAST_SQUARES = [heavy_ball, lsqr, fast_linear_regression]
NORMAL = [normal_heavy_ball, conjugate_gradients, fast_psd_regression]


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


def gap(A, x, y, made):
    """The relative residual of A^T A x = y in the norm of R^-T."""
    left = made.solve_transposed(A.T @ (A @ x) - y)
    return np.linalg.norm(left) / np.linalg.norm(made.solve_transposed(y))


# Exactly


@pytest.mark.parametrize("solver", NORMAL)
def test_a_diagonal_matrix_is_its_own_triangle(solver):
    values = 2.0 ** np.arange(-8, 8)
    A = np.vstack([np.diag(values), np.zeros((30, 16))])
    made = Preconditioner.from_matrix(A, rng=0)
    x, steps = solver(A, (values**2 * np.arange(1, 17))[:, None], made, 1e-15)
    np.testing.assert_allclose(x[:, 0], np.arange(1, 17), rtol=1e-14)
    assert steps <= 25


@pytest.mark.parametrize("solver", LEAST_SQUARES)
def test_least_squares_with_orthonormal_columns_are_a_projection(solver):
    A, b = matrix(900, 70, 1), column(900, 1)
    x, steps = solver(A, b, sketched(A, 12), 1e-14)
    np.testing.assert_allclose(x, A.T @ b, atol=1e-13)
    if solver is not fast_linear_regression:
        assert steps <= 36


@pytest.mark.parametrize("steps", [1, 2, 5, 20])
def test_algorithm_5_contracts_as_lemma_d2_says(steps):
    """I - B^2 for eigenvalues of B in [3/4, 5/4] is 9/16 at the worst."""
    A = np.diag(np.sqrt([0.75, 1.25]))
    made = unpreconditioned(2)
    y = np.array([[0.0], [1.0]])
    # the move before the last step is B (9/16)^(steps-1)
    target = 1.25 * (9 / 16) ** (steps - 1) * 1.0001
    x, taken = fast_psd_regression(A, y, made, target)
    assert taken == steps
    left = abs(x[1, 0] - 1 / 1.25) / (1 / 1.25)
    assert left == pytest.approx((9 / 16) ** steps, rel=1e-9)
    x, taken = fast_psd_regression(A, y[::-1], made, 1e-12)
    assert taken == pytest.approx(np.log(1e-12) / np.log(1 - 9 / 16), abs=2)


@pytest.mark.parametrize("solver", LEAST_SQUARES[:1] + NORMAL[:1])
def test_the_heavy_ball_gains_eta_a_step_on_all_of_the_spectrum(solver):
    eta = 12**-0.5
    singular = np.linspace(1 / (1 + eta), 1 / (1 - eta), 60)
    A, made = np.diag(singular), Preconditioner(np.eye(60), 1.0, eta)
    truth = column(60, 2)
    right = A @ truth if solver is heavy_ball else A @ (A @ truth)
    errors = []
    for target in (1e-4, 1e-8, 1e-12):
        x, steps = solver(A, right, made, target)
        errors.append(np.linalg.norm(x - truth) / np.linalg.norm(truth))
        assert errors[-1] < 10 * target
        assert steps <= np.log(target) / np.log(1.15 * eta) + 1


# The thresholds of the paper's unit steps


def converges(solver, A, right, made):
    try:
        x, _ = solver(A, right, made, 1e-10)
    except np.linalg.LinAlgError:
        return False
    truth = np.linalg.lstsq(A, right)[0] if len(right) == len(A) else None
    truth = np.linalg.solve(A.T @ A, right) if truth is None else truth
    return np.linalg.norm(x - truth) < 1e-6 * np.linalg.norm(truth)


@pytest.mark.parametrize(
    ("solver", "limit"),
    [(fast_linear_regression, 2), (fast_psd_regression, np.sqrt(2))],
)
def test_unit_steps_converge_below_an_eigenvalue_and_not_above(solver, limit):
    for largest, expected in ((0.97 * limit, True), (1.1 * limit, False)):
        A = np.diag(np.sqrt([0.9, 1.0, largest]))
        A = np.vstack([A, np.zeros((2, 3))])
        right = np.ones((5 if solver is fast_linear_regression else 3, 1))
        right[-1] = 1
        start = Preconditioner(
            np.eye(3), 1.0, 0.0, lambda B: np.full((3, B.shape[1]), 0.5)
        )
        assert converges(solver, A, right, start) == expected


def test_algorithm_4_wants_a_sketch_of_more_than_11_66_d_rows():
    """1 / (1 - eta)^2 < 2 at m = d / (1 - 2^-1/2)^2."""
    assert pytest.approx(11.66, abs=0.01) == 1 / (1 - 2**-0.5) ** 2
    A = matrix(4096, 100, 1e4)
    b = noisy(A, 1e-3)
    for oversampling, expected in ((4, False), (8, False), (16, True), (20, True)):
        made = sketched(A, oversampling)
        assert converges(fast_linear_regression, A, b, made) == expected


def test_algorithm_5_diverges_at_20_and_converges_at_100():
    A, y = matrix(8192, 50, 1e3), column(50, 3)
    for seed in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="diverge"):
            fast_psd_regression(A, y, sketched(A, 20, seed), 1e-10)
        made = sketched(A, 100, seed)
        x, steps = fast_psd_regression(A, y, made, 1e-10)
        assert steps <= 45
        assert gap(A, x, y, made) < 1e-10
        made = sketched(A, 12, seed)
        x, steps = conjugate_gradients(A, y, made, 1e-10)
        assert steps <= 22
        assert gap(A, x, y, made) < 1e-10


# Steps needed, and that the condition is not among what they depend on


@pytest.mark.parametrize("condition", [1e1, 1e3, 1e6, 1e8, 1e10])
@pytest.mark.parametrize(
    ("oversampling", "most_lsqr", "most_heavy"), [(12, 20, 22), (4, 33, 38)]
)
def test_steps_of_least_squares(condition, oversampling, most_lsqr, most_heavy):
    A = matrix(4096, 100, condition)
    made, b = sketched(A, oversampling), noisy(A, 1e-3)
    x, steps = lsqr(A, b, made, 1e-13)
    assert steps <= most_lsqr
    other, steps = heavy_ball(A, b, made, 1e-13)
    assert steps <= (most_heavy if condition <= 1e3 else 1.5 * most_heavy)
    optimum = A @ np.linalg.lstsq(A, b)[0]
    for found in (x, other):
        assert np.linalg.norm(A @ found - optimum) < 1e-9 * np.linalg.norm(b)


@pytest.mark.parametrize("oversampling", [4, 12])
@pytest.mark.parametrize("condition", [1e1, 1e5])
def test_unlucky_sketches_cost_no_more_steps(condition, oversampling):
    A, y = matrix(3000, 100, condition), column(100, 1)
    for seed in range(12):
        made = sketched(A, oversampling, seed)
        x, _ = normal_heavy_ball(A, y, made, 1e-13)
        assert gap(A, x, y, made) < max(1e-12, condition * 1e-15)


def test_conjugate_gradients_recover_what_their_recursion_loses():
    A, y = matrix(4096, 50, 1e8), column(50, 1)
    made = sketched(A, 12)
    x, steps = conjugate_gradients(A, y, made, 1e-14)
    assert gap(A, x, y, made) < 1e-8
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
    made = Preconditioner.from_matrix(A, rng=seed)
    Q, R = np.linalg.qr(A)
    for solvers, right, truth in (
        (LEAST_SQUARES, B, np.linalg.solve(R, Q.T @ B)),
        (NORMAL, Y, np.linalg.solve(R, np.linalg.solve(R.T, Y))),
    ):
        for solver in solvers:
            x, _ = solver(A, right, made, 1e-14)
            small = 1e-13 * condition**2 * norms(truth)
            assert (norms(x - truth) <= small).all()
        dense, _ = solvers[0](A, right, made, 1e-14)
        sparse, _ = solvers[0](scipy.sparse.csr_array(A), right, made, 1e-14)
        blocks, _ = solvers[0]([A[:100], A[100:]], right, made, 1e-14)
        assert (norms(sparse - dense) <= 1e-13 * condition**2 * norms(truth)).all()
        assert (norms(blocks - dense) <= 1e-13 * condition**2 * norms(truth)).all()


@pytest.mark.parametrize("solver", LEAST_SQUARES + NORMAL)
def test_columns_of_every_size_are_solved_alike(solver):
    A = matrix(500, 6, 1e2)
    made = Preconditioner.from_matrix(A, rng=0)
    rows = 500 if solver in LEAST_SQUARES else 6
    right = np.tile(column(rows, 1), 4) * [1, 1e-120, 1e120, 0]
    x, _ = solver(A, right, made, 1e-13)
    np.testing.assert_allclose(x[:, 1] * 1e120, x[:, 0], rtol=1e-9)
    np.testing.assert_allclose(x[:, 2] / 1e120, x[:, 0], rtol=1e-9)
    np.testing.assert_array_equal(x[:, 3], 0)


# Columns and their norms


@quick
@given(seed=st.integers(0, 2**32 - 1), power=st.integers(-300, 300))
def test_norms_of_columns_of_any_size(seed, power):
    X = np.random.default_rng(seed).standard_normal((7, 3))
    expected = np.linalg.norm(X, axis=0)
    np.testing.assert_allclose(norms(X * 10.0**power), expected * 10.0**power)
    Y, exponents = balanced(X)
    np.testing.assert_array_equal(np.ldexp(Y, exponents), X)
    assert ((abs(Y).max(axis=0) >= 0.5) & (abs(Y).max(axis=0) < 1)).all()


def test_norms_of_nothing_are_nothing():
    np.testing.assert_array_equal(norms(np.zeros((3, 2))), 0)
