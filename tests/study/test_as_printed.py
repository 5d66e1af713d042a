import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning

from simlib import AttentionKernelRegressor
from simlib.regression import ExponentialFeatures, Preconditioner
from simlib.regression.iterations import conjugate_gradients
from study import as_printed as paper
from study.as_printed import (
    fast_linear_regression,
    fast_psd_regression,
    sketched_solve,
)
from support.matrices import quick
from support.regression import (
    attainable,
    attention,
    matrix,
    noisy,
    normal,
    preconditioned_gap,
    problem,
    relative,
    sketched,
    sphere,
    truth,
    unpreconditioned,
)

# Algorithms 4 and 5, exactly


@pytest.mark.parametrize("j", [0, 1, 2, 3])
def test_a_diagonal_matrix(j):
    values = 2.0 ** np.arange(-2, 3)
    A = np.vstack([np.diag(values), np.zeros((300, 5))])
    x = np.arange(1.0, 6)
    small = 1e-14 * 16.0 ** (2 * j + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        found = paper.even_power(A, values ** (2 * j) * x, j, rng=0)
        np.testing.assert_allclose(found.x, x, rtol=small)
        b = np.r_[values ** (2 * j + 1) * x, np.ones(300)]
        found = paper.odd_power(A, b, j, rng=0)
    np.testing.assert_allclose(found.x, x, rtol=small)
    assert len(found.iterations) == len(found.preconditioned_residuals) == j + 1


@pytest.mark.parametrize("steps", [1, 2, 5, 20])
def test_algorithm_5_contracts_as_lemma_d2_says(steps):
    """I - B^2 for eigenvalues of B in [3/4, 5/4] is 9/16 at the worst."""
    A = np.diag(np.sqrt([0.75, 1.25]))
    R = unpreconditioned(2)
    y = np.array([[0.0], [1.0]])
    # the move before the last step is B (9/16)^(steps-1)
    target = 1.25 * (9 / 16) ** (steps - 1) * 1.0001
    x, taken = fast_psd_regression(A, y, R, target)
    assert taken == steps
    left = abs(x[1, 0] - 1 / 1.25) / (1 / 1.25)
    assert left == pytest.approx((9 / 16) ** steps, rel=1e-9)
    x, taken = fast_psd_regression(A, y[::-1], R, 1e-12)
    assert taken == pytest.approx(np.log(1e-12) / np.log(1 - 9 / 16), abs=2)


# The thresholds of the paper's unit steps


def converges(solver, A, right, R):
    try:
        x, _ = solver(A, right, R, 1e-10)
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
        R = sketched(A, oversampling)
        assert converges(fast_linear_regression, A, b, R) == expected


def test_algorithm_5_diverges_at_20_and_converges_at_100():
    A, y = matrix(8192, 50, 1e3), normal(50, 1, seed=3)
    for seed in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="diverge"):
            fast_psd_regression(A, y, sketched(A, 20, seed), 1e-10)
        R = sketched(A, 100, seed)
        x, steps = fast_psd_regression(A, y, R, 1e-10)
        assert steps <= 45
        assert preconditioned_gap(A, x, y, R) < 1e-10
        R = sketched(A, 12, seed)
        x, steps, _ = conjugate_gradients(A, y, R, 1e-10)
        assert steps <= 22
        assert preconditioned_gap(A, x, y, R) < 1e-10


# Algorithms 1 and 2


@quick
@given(seed=st.integers(0, 2**32 - 1), j=st.integers(0, 3), columns=st.integers(1, 3))
def test_small_problems(seed, j, columns):
    rng = np.random.default_rng(seed)
    A = matrix(300, 6, 3, seed=seed)
    B, Y = rng.standard_normal((300, columns)), rng.standard_normal((6, columns))
    expected = np.linalg.lstsq(A, B)[0]
    for _ in range(j):
        expected = np.linalg.solve(A.T @ A, expected)
    with warnings.catch_warnings():  # the sketch of so few columns may be a bad one
        warnings.simplefilter("ignore", LinAlgWarning)
        odd = paper.odd_power(A, B, j, rng=seed)
        even = paper.even_power(scipy.sparse.csr_array(A), Y, j, rng=seed)
    if max(odd.preconditioned_residuals) < 1e-12:
        np.testing.assert_allclose(odd.x, expected, atol=1e-9)
    if max(even.preconditioned_residuals, default=0) < 1e-12:
        left = np.linalg.matrix_power(A.T @ A, j) @ even.x
        np.testing.assert_allclose(left, Y, atol=1e-9)


@attainable
def test_a_condition_of_a_million():
    """R5 and R8."""
    A, b, c, *_ = problem(1e6)
    for j in (1, 4):
        found = paper.even_power(A, b, j, rng=1)
        assert relative(found.x, truth(1e6, j)) < 1e-10
        assert relative(found.x, truth(1e6, j)) < found.error_estimate
    found = paper.odd_power(A, c, 2, rng=1)
    assert relative(found.x, truth(1e6, 2, odd=True)) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("j", [1, 2, 3])
def test_the_guarantees_of_the_theorems(j):
    """R14: Theorems 1.4 and 1.5, for a condition of 20."""
    A, b, c = matrix(8000, 70, 20), normal(70, seed=1), normal(8000, seed=2)
    powers = np.linalg.matrix_power(A.T @ A, j)
    optimum = np.linalg.norm(A @ np.linalg.lstsq(A, c)[0] - c)
    for tol in (1e-2, 1e-4, 1e-6):
        even = paper.even_power(A, b, j, tol=tol, rng=1)
        assert np.linalg.norm(powers @ even.x - b) <= tol * np.linalg.norm(b)
        odd = paper.odd_power(A, c, j, tol=tol, rng=1)
        cost = np.linalg.norm(A @ (powers @ odd.x) - c)
        assert cost <= (1 + tol) * optimum + tol * np.linalg.norm(c)


def test_a_sketch_that_is_too_small_says_so():
    A, b = matrix(4096, 70, 10), normal(70, seed=0)
    with pytest.warns(LinAlgWarning, match="'paper' ended") as caught:
        paper.even_power(A, b, 1, preconditioner=sketched(A, 30))
    assert caught[0].filename == __file__
    with pytest.raises(np.linalg.LinAlgError, match="diverge"):
        paper.even_power(A, b, 1, preconditioner=sketched(A, 8))


# A sketch in place of the kernel: T8, and Algorithm 3


@pytest.mark.parametrize("shape", [(80, 7), (9, 30), (12, 12)])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("targets", [(), (3,)])
def test_sketched_solution(shape, ridge, targets):
    Z, y = normal(*shape), normal(shape[0], *targets)
    found = sketched_solve(Z, y, ridge=ridge, rng=0)
    K = Z @ Z.T + ridge * np.eye(shape[0])
    expected = np.linalg.pinv(K, rcond=1e-10) @ y
    np.testing.assert_allclose(found.x, expected, rtol=1e-6, atol=1e-9)
    left = np.linalg.norm(K @ expected - y, axis=0) / np.linalg.norm(y, axis=0)
    np.testing.assert_allclose(found.residual, left.max(), rtol=1e-6, atol=1e-10)
    assert relative(found.x, expected) <= found.error_estimate + 1e-13


def test_dependent_features():
    """On the unit sphere the squares of the coordinates add up to the constant."""
    X, y = sphere(200, 3), normal(200)
    Z = ExponentialFeatures(10, kind="taylor").fit_transform(X)
    assert np.linalg.matrix_rank(Z) == 9
    found = sketched_solve(Z, y, rng=0)
    np.testing.assert_allclose(
        found.x, np.linalg.pinv(Z @ Z.T, rcond=1e-10) @ y, atol=1e-9
    )


def test_the_steps_of_the_paper():
    Z, y = normal(3000, 6) * [1, 1, 2, 2, 3, 3], normal(3000)
    for ridge in (0.0, 10.0):
        found = sketched_solve(Z, y, ridge=ridge, rng=0)
        K = Z.T @ Z + ridge * np.eye(6)
        if ridge:
            expected = (y - Z @ np.linalg.solve(K, Z.T @ y)) / ridge
        else:
            expected = Z @ np.linalg.solve(K, np.linalg.solve(K, Z.T @ y))
        assert sum(found.iterations) > 5
        assert found.method == "paper"
        np.testing.assert_allclose(found.x, expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:x leaves a residual:scipy.linalg.LinAlgWarning")
@pytest.mark.parametrize(
    ("size", "sketched", "true"), [(500, 0.7, 1950), (8000, 0.0, 1.75)]
)
def test_the_sketched_problem_is_another_problem(size, sketched, true):
    """T8b: fewer features than points leave a residual, more a false answer."""
    X, y = sphere(1000), normal(1000, seed=1)
    features = ExponentialFeatures(size, kind="shared_tree", random_state=0)
    found = sketched_solve(features.fit_transform(X), y, rng=0)
    np.testing.assert_allclose(found.residual, sketched, rtol=0.05, atol=1e-10)
    residual = relative(attention(X) @ found.x, y)
    assert 0.4 * true < residual < 2.5 * true
    exact = AttentionKernelRegressor(0.0, random_state=0).fit(X, y)
    assert relative(attention(X) @ exact.dual_coef_, y) < 1e-10
