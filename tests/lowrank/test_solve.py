"""Solving with a ridge against dense solvers and scikit-learn."""

import contextlib
import pickle
import sys

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from simlib import LowRank, Similarity, nystrom
from support.interrupts import Lines
from support.lowrank import dense_array, interpolating, make
from support.regression import peak

module = sys.modules["simlib.lowrank.solve"]


@pytest.fixture
def rank_one():
    return LowRank(np.array([[1.0], [2.0]]), np.array([[3.0]]))


def test_solutions_predict_new_items_as_a_ridge_regression_does():
    X, new = np.split(np.random.default_rng(0).standard_normal((90, 3)), [70])
    sim = Similarity(X, rbf_kernel, batch="block")
    K, y = nystrom(sim, 20, rng=0), X[:, 0] * X[:, 1]
    Z, signs = K.embedding()
    features = K.extend(sim.between(new, K.landmarks, K.row_landmarks))
    predicted = (features * signs) @ (Z.T @ K.solve(y, 0.1))
    ridge = Ridge(alpha=0.1, fit_intercept=False).fit(Z, y)
    assert_allclose(predicted, ridge.predict(features), atol=1e-8)


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_solve_survives_a_pseudo_inverse_as_core(ridge, separate):
    rng = np.random.default_rng(0)
    kernel = rbf_kernel(rng.standard_normal((300, 2)), gamma=0.5)
    core = scipy.linalg.pinvh(kernel[:100, :100])
    assert np.abs(core).max() > 1e9
    C = kernel[:, :100]
    K = LowRank(C, core, C if separate else None)
    y = rng.standard_normal(300)
    expected = np.linalg.solve(K.toarray() + ridge * np.eye(300), y)
    error = np.linalg.norm(K.solve(y, ridge) - expected)
    assert error < 1e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize("ridge", [1e-4, 1e-8, 1e-11])
@pytest.mark.parametrize("form", ["symmetric", "separate", "residual"])
def test_solve_keeps_its_digits_with_small_ridges(ridge, form):
    """As many as a dense solver, which leaves eps |K| / ridge."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((200, 8)))[0]
    core = np.diag(np.logspace(0, -6, 8))
    residual = scipy.sparse.diags_array(ridge * rng.random(200))
    K = LowRank(
        Q,
        core,
        Q if form == "separate" else None,
        residual=residual if form == "residual" else None,
    )
    dense = K.toarray() + ridge * np.eye(200)
    y = np.column_stack([rng.standard_normal(200), Q @ np.ones(8)])
    for right in (y, y[:, 1], y.astype(np.float32), y * [1, 1e-40]):
        missed = np.linalg.norm(dense @ K.solve(right, ridge) - right, axis=0)
        bound = 20 * np.finfo(float).eps / ridge * np.linalg.norm(right, axis=0)
        assert (missed < bound).all()


@pytest.mark.parametrize("with_residual", [False, True])
def test_a_small_right_hand_side_is_refined_beside_a_large_one(with_residual):
    """The large one is solved without an error, as K is zero where it is not."""
    ridge, rng = 2.0**-36, np.random.default_rng(0)
    Q = np.vstack([np.linalg.qr(rng.standard_normal((200, 8)))[0], np.zeros((200, 8))])
    E = scipy.sparse.diags_array(ridge * np.append(rng.random(200), np.zeros(200)))
    K = LowRank(
        Q, np.diag(np.logspace(0, -6, 8)), residual=E if with_residual else None
    )
    large = np.repeat([0.0, 1.0], 200)
    x = K.solve(np.column_stack([large, 1e-40 * Q[:, 0]]), ridge)[:, 1]
    missed = np.linalg.norm(K @ x + ridge * x - 1e-40 * Q[:, 0])
    assert missed < 100 * np.finfo(float).eps * 1e-40


def test_solve_returns_nothing_that_solves_nothing():
    """The ridge is not an eigenvalue, but rounding errors of K are larger."""
    points = np.linspace(0, 1, 300)[:, None]
    C = rbf_kernel(points, gamma=0.5)[:, ::30]
    K = LowRank(C, np.linalg.pinv(C[::30], 1e-8, True))
    y, solved = np.sin(points[:, 0]), 0
    for ridge in np.logspace(-16, -6, 21):
        with contextlib.suppress(np.linalg.LinAlgError):
            x = K.solve(y, ridge)
            solved += 1
            assert np.linalg.norm(K @ x + ridge * x - y) < 2e-3 * np.linalg.norm(y)
    assert 10 < solved < 21
    with pytest.raises(np.linalg.LinAlgError, match="or negligible beside one"):
        K.solve(y, 1e-16)


def test_solve_accepts_a_negative_ridge(rank_one):
    assert_allclose(rank_one.solve(np.array([1.0, 2.0]), -5.0), [0.1, 0.2])


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("separate", [False, True])
def test_solve_makes_no_sparse_factor_dense(residual, separate, monkeypatch):
    n, k = 10000, 250
    P, R, rng = interpolating(n, k), interpolating(n, k, 1), np.random.default_rng(0)
    G = rng.standard_normal((k, k))
    E = scipy.sparse.diags_array(rng.random(n)) if residual else None
    K = LowRank(P, G @ G.T, R if separate else None, residual=E)
    y = rng.standard_normal(n)
    monkeypatch.setattr("simlib.lowrank.solve.qr", None)
    assert peak(lambda: K.solve(y, 500.0)) < 0.75 * 8 * n * k
    monkeypatch.undo()
    x = K.solve(y, 500.0)
    assert_allclose(K @ x + 500 * x, y, rtol=0, atol=1e-8)
    dense = LowRank(P.toarray(), K.core, R.toarray() if separate else None, residual=E)
    assert_allclose(x, dense.solve(y, 500.0), rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("columns", [[0, 1, 1], [0, 0, 0]])
def test_solve_with_dependent_sparse_columns(columns):
    """Of which the Gram matrix has no Cholesky factor."""
    P = interpolating(40, 2)[:, columns]
    P[:, [2]] *= 1e-9
    K = LowRank(P, np.diag([1.0, 2, 3e9]))
    y = np.random.default_rng(0).standard_normal(40)
    expected = np.linalg.solve(K.toarray() + 0.1 * np.eye(40), y)
    assert_allclose(K.solve(y, 0.1), expected, rtol=1e-9)
    empty = LowRank(scipy.sparse.csr_array((40, 3)), np.eye(3))
    assert_allclose(empty.solve(y, 0.1), y / 0.1)
    none = LowRank(scipy.sparse.csr_array((40, 0)), np.eye(0))
    assert_allclose(none.solve(y, 0.1), y / 0.1)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_another_core_shares_what_solving_takes(sparse, symmetric, monkeypatch):
    K, _ = make(symmetric=symmetric, sparse=sparse)
    y = np.random.default_rng(1).standard_normal(12)
    K.solve(y, 50.0)
    for name in "qr", "gram_qr":
        monkeypatch.setattr(f"simlib.lowrank.solve.{name}", None)
    core = np.random.default_rng(2).standard_normal(K.core.shape)
    other = K.with_core(core)
    assert (other.core == core).all()
    parts = [k.left.data if sparse else k.left for k in (K, other)]
    assert np.shares_memory(*parts)
    assert not other.symmetric
    right = dense_array(K.right)
    dense = dense_array(K.left) @ core @ right.T
    assert_allclose(other.toarray(), dense, atol=1e-13)
    expected = np.linalg.solve(dense + 70 * np.eye(12), y)
    assert_allclose(other.solve(y, 70.0), expected, rtol=1e-10)
    if symmetric:
        again = other.with_core(core + core.T).with_core(np.eye(3))
        expected = np.linalg.solve(right @ right.T + 70 * np.eye(12), y)
        assert_allclose(again.solve(y, 70.0), expected, rtol=1e-10)
    copy = pickle.loads(pickle.dumps(other))
    monkeypatch.undo()
    assert_allclose(copy.solve(y, 70.0), other.solve(y, 70.0), rtol=1e-10)


def test_solve_refuses_singular_systems(rank_one):
    y = np.ones(2)
    with pytest.raises(np.linalg.LinAlgError, match="ridge; give one that is not zero"):
        rank_one.solve(y, 0)
    with pytest.raises(np.linalg.LinAlgError, match="minus the ridge is an eigenvalue"):
        rank_one.solve(y, -15.0)
    K = LowRank(np.ones((2, 1)), [[1.0]], residual=scipy.sparse.eye_array(2))
    with pytest.raises(np.linalg.LinAlgError, match="residual plus the ridge is sing"):
        K.solve(y, -1.0)
    with pytest.raises(ValueError, match=r"square matrix can be solved.*\(2, 3\)"):
        LowRank(np.ones((2, 1)), [[1.0]], np.ones((3, 1))).solve(y, 1.0)
    for wrong in (3.0, np.ones(3), np.ones((2, 1, 1))):
        with pytest.raises(ValueError, match=r"shape \(2,\) or \(2, k\); got"):
            rank_one.solve(wrong, 1.0)
    with pytest.raises(ValueError, match=r"sparse one: toarray\(\) it"):
        rank_one.solve(scipy.sparse.csr_array([[1.0], [2.0]]), 1.0)
    for ridge in (np.nan, "1", 1j):
        with pytest.raises(ValueError, match="ridge must be a finite number"):
            rank_one.solve(y, ridge)
    unknown = LowRank(np.array([[1.0], [np.nan]]), [[3.0]])
    with pytest.raises(ValueError, match="holds NaN or an infinity"):
        unknown.solve(y, 1.0)


@pytest.mark.parametrize("with_residual", [True, False])
@pytest.mark.parametrize("shape", [(300,), (300, 2)])
def test_solve_in_float64_whatever_the_type_of_y(with_residual, shape):
    rng = np.random.default_rng(0)
    points = rng.standard_normal((300, 2))
    G = rbf_kernel(points, gamma=0.125).astype(np.float32)
    residual = scipy.sparse.eye_array(300) if with_residual else None
    left, core = G[:, :20], np.linalg.pinv(G[:20, :20], 1e-4, True)
    answer = LowRank(left, core, residual=residual)
    dense = left.astype(float) @ core @ left.T + (1e-4 + with_residual) * np.eye(300)
    y = (G[:, :3].sum(1) * np.ones(shape[::-1])).T.astype(np.float32)
    expected = np.linalg.solve(dense, y.astype(float))
    tolerance = 1e-4 * np.abs(expected).max()
    x = answer.solve(y, 1e-4)
    assert x.dtype == answer.dtype
    assert_allclose(x, expected, atol=tolerance)
    x = answer.solve(y + 2j * y, 1e-4)
    assert_allclose(x, expected + 2j * expected, atol=3 * tolerance)


@pytest.mark.parametrize("shape", [(3, 0), (0, 0)])
def test_solve_without_a_rank(shape, capfd):
    answer = LowRank(np.ones(shape), np.ones((0, 0)))
    assert_array_equal(answer.solve(np.ones(shape[0]), 0.5), np.full(shape[0], 2))
    assert capfd.readouterr() == ("", "")


def test_an_interrupt_leaves_nothing_half_made():
    def new():
        one = np.ones((2, 1))
        return LowRank(one, [[1.0]], one.copy())

    answer = new()
    with Lines(module) as lines:
        answer.solve(np.ones(2), 1.0)
    assert len(lines.seen) > 20
    for moment in range(len(lines.seen)):
        answer = new()
        with pytest.raises(KeyboardInterrupt), Lines(module, stop=moment):
            answer.solve(np.ones(2), 1.0)
        assert_allclose(answer.solve(np.ones(2), 1.0), [1 / 3, 1 / 3])


def test_solutions_beyond_single_precision_are_refused():
    K = LowRank(np.full((3, 1), 1e-15, np.float32), np.ones((1, 1), np.float32))
    y = np.full(3, 1e10)
    assert_allclose(K.solve(y, 1e-30), 1e10 / (1e-30 + 3e-30))
    with pytest.raises(ValueError, match="solution is no number of float32"):
        K.solve(y.astype(np.float32), 1e-30)


@pytest.mark.parametrize("ridge", [1, -1])
def test_a_system_whose_inverse_is_beyond_numbers_is_singular(ridge):
    K = LowRank(np.eye(4), np.full((4, 4), 1e308))
    with pytest.raises(np.linalg.LinAlgError, match="hange the ridge"):
        K.solve(np.ones(4), ridge)


def nearly_singular_shift(seed, smallest):
    """A matrix of small condition whose residual has entries near zero."""
    rng = np.random.default_rng(seed)
    L, d = rng.standard_normal((12, 3)), rng.uniform(0.5, 2, 12)
    d[:3] = 10.0 ** -rng.uniform(*smallest) * rng.standard_normal(3)
    return L, d, rng.standard_normal(12), rng


def test_a_column_that_is_not_solved_does_not_pass_beside_others():
    L, d, y, rng = nearly_singular_shift(27, (12, 15))
    L, d = np.r_[L, np.zeros((50, 3))], np.r_[d, np.ones(50)]
    K = LowRank(L, np.eye(3), residual=scipy.sparse.diags_array(d))
    Y = np.zeros((62, 20_001))
    Y[:12, 0], Y[12:, 1:] = y, rng.standard_normal((50, 20_000))
    assert_allclose(K @ K.solve(Y[:, 1:], 0), Y[:, 1:], atol=1e-9)
    for some in (Y[:, 0], Y):
        with pytest.raises(np.linalg.LinAlgError, match="of its residual, or"):
            K.solve(some, 0.0)


@pytest.mark.parametrize("ridge", [1e-6, 1e-8])
def test_small_ridges_beside_noise_are_solved(ridge):
    rng = np.random.default_rng(0)
    L, y = rng.standard_normal((200, 10)), rng.standard_normal(200)
    x = LowRank(L, np.eye(10)).solve(y, ridge)
    expected = np.linalg.solve(L @ L.T + ridge * np.eye(200), y)
    assert_allclose(x, expected, atol=1e-4 * abs(expected).max())


def test_solutions_have_their_digits_or_are_refused():
    tried = solved = 0
    for seed in (3398, *range(60)):
        L, d, y, _ = nearly_singular_shift(seed, (5, 13))
        K = LowRank(L, np.eye(3), residual=scipy.sparse.diags_array(d))
        if np.linalg.cond(K.toarray()) > 1e4:
            continue
        tried += 1
        with contextlib.suppress(np.linalg.LinAlgError):
            assert_allclose(K @ K.solve(y, 0.0), y, atol=1e-7)
            solved += 1
    assert solved > 0.8 * tried > 30
