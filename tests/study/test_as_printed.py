import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning

from simlib.regression import ExponentialFeatures, Preconditioner
from study import as_printed as paper
from study.as_printed import fast_linear_regression, fast_psd_regression, sketched_solve
from support.matrices import quick
from support.regression import (
    matrix,
    normal,
    relative,
    sketched,
    sphere,
    unpreconditioned,
)

# Algorithms 4 and 5, exactly


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
    squares = A.T @ A
    truth = np.linalg.solve(squares, A.T @ right if len(right) == len(A) else right)
    return np.linalg.norm(x - truth) < 1e-6 * np.linalg.norm(truth)


@pytest.mark.parametrize(
    ("solver", "limit"),
    [(fast_linear_regression, 2), (fast_psd_regression, np.sqrt(2))],
)
def test_unit_steps_converge_below_an_eigenvalue_and_not_above(solver, limit):
    for largest, expected in ((0.97 * limit, True), (1.1 * limit, False)):
        A = np.vstack([np.diag(np.sqrt([0.9, 1.0, largest])), np.zeros((2, 3))])
        right = np.ones((5 if solver is fast_linear_regression else 3, 1))
        start = Preconditioner(
            np.eye(3), 1.0, 0.0, lambda B: np.full((3, B.shape[1]), 0.5)
        )
        assert converges(solver, A, right, start) == expected


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


def test_a_sketch_that_is_too_small_says_so():
    A, b = matrix(4096, 70, 10), normal(70, seed=0)
    with pytest.warns(LinAlgWarning, match="'paper' ended") as caught:
        paper.even_power(A, b, 1, preconditioner=sketched(A, 30))
    assert caught[0].filename == paper.__file__  # which calls simlib
    with pytest.raises(np.linalg.LinAlgError, match="diverge"):
        paper.even_power(A, b, 1, preconditioner=sketched(A, 8))


# A sketch in place of the kernel, and Algorithm 3


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
