"""LowRank against exact answers, dense arrays, SciPy and scikit-learn."""

import contextlib
import pickle
import tracemalloc
from itertools import product

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import (
    LinearOperator,
    aslinearoperator,
    cg,
    eigsh,
    minres,
    svds,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from simlib import LowRank
from simlib.lowrank.lowrank import Closed

# By hand: K = 3 (1, 2)^T (1, 2).


@pytest.fixture
def rank_one():
    return LowRank(np.array([[1.0], [2.0]]), np.array([[3.0]]))


def test_by_hand(rank_one):
    K = rank_one
    assert_array_equal(K.toarray(), [[3, 6], [6, 12]])
    assert_array_equal(K @ [1.0, 1.0], [9, 18])
    assert_array_equal(K @ np.array([[1.0, 0.0], [0.0, 2.0]]), [[3, 12], [6, 24]])
    assert_array_equal(K.entries([0, 1, 1], [1, 1, 0]), [6, 12, 6])
    assert_array_equal(K.rows([1, 0, 1]), [[6, 12], [3, 6], [6, 12]])
    assert_array_equal(K.diagonal(), [3, 12])
    assert (K.trace(), K.rank, K.shape) == (15.0, 1, (2, 2))
    assert K.norm() == pytest.approx(15)
    values, vectors = K.eigh()
    assert_allclose(values, [15])
    assert_allclose(np.abs(vectors[:, 0]), np.array([1, 2]) / np.sqrt(5))
    assert_allclose(K.solve(np.array([1.0, 2.0]), 1.0), [1 / 16, 2 / 16])
    assert_allclose(K.solve(np.array([2, -1]), 0.5), [4, -2])  # integers, null space
    Z, signs = K.embedding()
    assert_allclose(np.abs(Z), np.sqrt(3) * np.array([[1], [2]]))
    assert_array_equal(signs, [1])
    assert_allclose(np.abs(K.extend([4.0])), [[4 * np.sqrt(3)]])


def test_by_hand_with_a_residual():
    E = scipy.sparse.coo_array(([1.0, -6.0, -6.0], ([0, 0, 1], [0, 1, 0])), (2, 2))
    K = LowRank(np.array([[1.0], [2.0]]), np.array([[3.0]]), residual=E)
    assert_array_equal(K.toarray(), np.diag([4, 12]))
    assert_array_equal(K @ np.array([1.0, 1.0]), [4, 12])
    assert_array_equal(K.entries([0, 0], [0, 1]), [4, 0])
    assert_array_equal(K.rows(0), [[4, 0]])
    assert_array_equal(K.diagonal(), [4, 12])
    assert K.norm() == pytest.approx(np.sqrt(16 + 144))
    assert_allclose(K.solve(np.array([8.0, 26.0]), 1.0), [8 / 5, 2])
    assert_allclose(K.solve(np.array([8.0, 24.0]), 0.0), [2, 2])
    assert_allclose(K.eigh(1)[0], [12])
    Z, signs = K.embedding()  # of the factor part
    assert_allclose((Z * signs) @ Z.T, [[3, 6], [6, 12]])


def test_a_negative_core_has_negative_signs():
    Z, signs = LowRank(np.eye(2), np.diag([1.0, -4.0])).embedding()
    assert_array_equal(signs, [-1, 1])  # by decreasing magnitude
    assert_allclose(np.abs(Z), [[0, 1], [2, 0]])


def test_separate_factors_embed_their_mean_with_the_transpose():
    K = LowRank(np.array([[1.0], [0.0]]), [[2.0]], np.array([[0.0], [1.0]]))
    Z, signs = K.embedding()
    assert_allclose((Z * signs) @ Z.T, [[0, 1], [1, 0]], atol=1e-15)
    assert sorted(signs) == [-1, 1]
    assert_allclose(K.extend([[1.0, 0.0]]), Z[:1], atol=1e-15)


def test_landmarks_change_sides_in_the_transpose():
    K = LowRank(
        np.ones((3, 1)),
        [[1.0]],
        np.ones((4, 1)),
        landmarks=[5],
        row_landmarks=[6],
        calls=7,
        method="cur",
    )
    assert (K.T.landmarks, K.T.row_landmarks) == ([6], [5])
    assert (K.T.shape, K.T.calls, K.T.method) == ((4, 3), 7, "cur")


def test_repr():
    K = LowRank(np.ones((4, 1)), [[1.0]], calls=7, method="nystrom")
    assert repr(K) == "LowRank(nystrom: n=4, rank=1, calls=7)"
    K = LowRank(np.ones((4, 1)), [[1.0]], residual=scipy.sparse.eye_array(4))
    assert repr(K) == "LowRank(n=4, rank=1, residual nnz=4)"
    K = LowRank(np.ones((4, 1)), [[1.0]], np.ones((3, 1)))
    assert repr(K) == "LowRank(n=(4, 3), rank=1)"


def make(*, symmetric=True, residual=False, sparse=False, dtype=float, shape=None):
    """Return a LowRank and the dense matrix that it stands for."""
    rng = np.random.default_rng(7)
    n, m = shape or (12, 12)
    left, right = rng.standard_normal((n, 3)), rng.standard_normal((m, 4))
    core = rng.standard_normal((3, 4))
    if symmetric:
        right, core = left, core[:, :3] + core[:, :3].T
    dense = left @ core @ right.T
    E = None
    if residual:
        E = np.where(rng.random((n, m)) < 0.2, rng.standard_normal((n, m)), 0)
        E = E + E.T if symmetric else E
        dense = dense + E
        E = scipy.sparse.csr_array(E.astype(dtype))
    left, right = left.astype(dtype), right.astype(dtype)
    if sparse:
        left, right = scipy.sparse.csr_array(left), scipy.sparse.csr_array(right)
    right = None if symmetric else right
    return LowRank(left, core.astype(dtype), right, residual=E), dense


KINDS = [
    {"symmetric": s, "residual": r, "sparse": p, "dtype": d}
    for s, r, p, d in product([True, False], [True, False], [True, False], "df")
] + [
    {"symmetric": False, "residual": r, "sparse": p, "shape": shape}
    for r, p, shape in product([True, False], [True, False], [(12, 9), (9, 12)])
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_question_against_the_dense_matrix(kind):
    K, dense = make(**kind)
    tol = 1e-11 if K.dtype == np.float64 else 1e-4
    rng = np.random.default_rng(0)

    def check(answer, expected):
        assert isinstance(answer, np.ndarray)
        assert answer.dtype == K.dtype
        assert answer.shape == np.shape(expected)
        assert_allclose(answer, expected, rtol=tol, atol=tol)

    x = rng.standard_normal(dense.shape[1]).astype(K.dtype)
    y = rng.standard_normal(dense.shape[0]).astype(K.dtype)
    X, Y = np.stack([x, x + 1], 1), np.stack([y, y + 1], 1)
    check(K @ x, dense @ x)
    check(K @ x[:, None], dense @ x[:, None])
    check(K @ X, dense @ X)
    check(K @ scipy.sparse.csr_array(X), dense @ X)
    check(y @ K, y @ dense)
    check(K.rmatvec(y), dense.T @ y)
    check(K.rmatmat(Y), dense.T @ Y)
    check(K.T @ Y, dense.T @ Y)
    check(K.H @ y, dense.T @ y)
    check(K.T.toarray(), dense.T)
    check(K.toarray(), dense)
    check(K.rows([3, 1, 3]), dense[[3, 1, 3]])
    check(K.rows([]), dense[:0])
    check(K.entries([3, 1, 3], [0, 8, 0]), dense[[3, 1, 3], [0, 8, 0]])
    check(K.entries([], []), np.zeros(0))
    check(K.diagonal(), np.diag(dense))
    check(((K + K) - 0.5 * K) @ x, 1.5 * dense @ x)
    assert K.trace() == pytest.approx(np.trace(dense), rel=tol, abs=tol)
    assert K.norm() == pytest.approx(np.linalg.norm(dense), rel=tol)
    again = pickle.loads(pickle.dumps(K))
    assert repr(again) == repr(K)
    check(again.toarray(), dense)


@pytest.mark.parametrize("kind", [k for k in KINDS if "shape" not in k], ids=str)
def test_square_questions_against_the_dense_matrix(kind):
    K, dense = make(**kind)
    n = len(dense)
    tol = 1e-10 if K.dtype == np.float64 else 1e-3
    Y = np.random.default_rng(0).standard_normal((n, 2)).astype(K.dtype)
    shifted = dense + 60 * np.eye(n)
    for y in (Y, Y[:, 0]):
        answer = K.solve(y, 60.0)
        assert (answer.dtype, answer.shape) == (K.dtype, y.shape)
        assert_allclose(shifted @ answer, y, rtol=tol, atol=tol)
    Z, signs = K.embedding()
    assert Z.dtype == signs.dtype == K.dtype
    assert set(signs) <= {-1, 1}
    part = make(**(kind | {"residual": False}))[1]
    assert_allclose((Z * signs) @ Z.T, (part + part.T) / 2, rtol=tol, atol=tol)
    sides = [K.left] if K.symmetric else [K.left, K.right]
    new = np.hstack(
        [side[[2, 0]].toarray() if kind["sparse"] else side[[2, 0]] for side in sides]
    )
    assert_allclose(K.extend(new), Z[[2, 0]], rtol=tol, atol=tol)
    assert K.extend(new).dtype == K.dtype


@pytest.mark.parametrize("kind", [k for k in KINDS if k["symmetric"]], ids=str)
def test_eigenvalues_against_the_dense_matrix(kind):
    K, dense = make(**kind)
    tol = 1e-10 if K.dtype == np.float64 else 1e-3
    expected = np.linalg.eigvalsh(dense)
    for k in (1, 3):
        values, vectors = K.eigh(k)
        assert values.dtype == vectors.dtype == K.dtype
        assert_allclose(
            values, expected[np.argsort(-np.abs(expected))][:k], rtol=tol, atol=tol
        )
        assert_allclose(vectors.T @ vectors, np.eye(k), atol=tol)
        assert_allclose(dense @ vectors, vectors * values, rtol=tol, atol=10 * tol)
    assert K.eigh()[0].size == 3


def test_eigenvectors_that_sum_to_zero_are_found():
    # Swapping the two items of a pair leaves K as it is; the answer is odd.
    scale = scipy.sparse.diags_array(np.linspace(1, 2, 100))
    E = scipy.sparse.kron(scale, np.array([[1.0, -9.0], [-9.0, 1.0]]))
    K = LowRank(np.zeros((200, 1)), [[1.0]], residual=E)
    assert_allclose(K.eigh(1)[0], [20])


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 6),
    m=st.integers(1, 6),
    widths=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_shape(n, m, widths, seed):
    rng = np.random.default_rng(seed)
    left, right = (
        rng.standard_normal((n, widths[0])),
        rng.standard_normal((m, widths[1])),
    )
    core = rng.standard_normal(widths)
    K, dense = LowRank(left, core, right), left @ core @ right.T
    assert_allclose(K.toarray(), dense, atol=1e-12)
    assert_allclose(K @ np.eye(m), dense, atol=1e-12)
    assert_allclose(K.T @ np.eye(n), dense.T, atol=1e-12)
    assert_allclose(K.diagonal(), np.diag(dense), atol=1e-12)
    assert_allclose(K.rows(np.arange(n)), dense, atol=1e-12)
    assert_allclose(K.norm(), np.linalg.norm(dense))
    core = core[:, :1] @ core[:, :1].T
    K, dense = LowRank(left, core), left @ core @ left.T
    values, vectors = K.eigh(min(left.shape))
    assert_allclose((vectors * values) @ vectors.T, dense, atol=1e-10)
    assert_allclose((dense + np.eye(n)) @ K.solve(np.ones(n), 1.0), np.ones(n))
    Z, signs = K.embedding()
    assert_allclose((Z * signs) @ Z.T, dense, atol=1e-10)


# As a linear operator.


@pytest.mark.parametrize("symmetric", [True, False])
def test_it_is_a_linear_operator(symmetric):
    K, dense = make(symmetric=symmetric, residual=True)
    assert isinstance(K, LinearOperator)
    assert aslinearoperator(K) is K
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, len(dense)))
    assert np.dot(K @ x, y) == pytest.approx(np.dot(x, K.H @ y))
    assert_allclose((K @ K.T) @ x, dense @ dense.T @ x)
    assert_allclose((K**2) @ x, dense @ dense @ x)
    assert_allclose(K @ (x + 1j * y), dense @ (x + 1j * y))
    singular = np.linalg.svd(dense, compute_uv=False)
    assert_allclose(np.sort(svds(K, k=3, rng=0)[1]), np.sort(singular[:3]))


def test_iterative_solvers_take_it():
    left = np.random.default_rng(0).standard_normal((40, 5))
    K = LowRank(left, np.eye(5), residual=scipy.sparse.eye_array(40))
    dense = left @ left.T + np.eye(40)
    y = np.arange(40.0)
    x, failed = cg(K, y, rtol=1e-12)
    assert failed == 0
    assert_allclose(x, np.linalg.solve(dense, y))
    assert_allclose(x, K.solve(y, 0))
    assert_allclose(eigsh(K, k=2, rng=0)[0], np.linalg.eigvalsh(dense)[-2:])


# The factors.


def test_factors_are_shared_not_copied(tmp_path):
    left, core = np.ones((5, 2)), np.eye(2)
    K = LowRank(left, core)
    assert K.left.base is left
    assert K.right is K.left
    sparse = scipy.sparse.csr_array(left)
    assert np.shares_memory(LowRank(sparse, core).left.data, sparse.data)
    disk = np.lib.format.open_memmap(tmp_path / "left.npy", "w+", shape=(5, 2))
    assert isinstance(LowRank(disk, core).left, np.memmap)
    disk[:] = 1
    assert_array_equal(LowRank(disk, core).toarray(), np.full((5, 5), 2.0))


@pytest.mark.parametrize("form", ["coo", "csc", "csr", "dia", "lil", "bsr"])
def test_any_sparse_format(form):
    part = scipy.sparse.coo_array(np.diag([1.0, 2.0, 3.0])).asformat(form)
    K = LowRank(part, np.eye(3), residual=part)
    assert_array_equal(K.toarray(), np.diag([2, 6, 12]))
    assert_array_equal(K.rows([1, 2]), [[0, 6, 0], [0, 0, 12]])
    assert_array_equal(K.entries([1, 1], [1, 2]), [6, 0])
    assert_array_equal(K.diagonal(), [2, 6, 12])
    old = scipy.sparse.csr_matrix(part)
    K = LowRank(old, np.eye(3), residual=old)
    assert type(K.toarray()) is type(K @ np.eye(3)) is np.ndarray


def test_numbers_become_floats_and_the_widest_wins():
    assert LowRank([[1], [2]], [[3]]).dtype == np.float64
    assert LowRank(np.ones((2, 1), np.float16), [[True]]).dtype == np.float64
    f, F = np.ones((2, 1), np.float32), np.ones((1, 1), np.float32)
    assert LowRank(f, F).dtype == np.float32
    assert LowRank(f, F.astype(float)).dtype == np.float64
    wide = scipy.sparse.eye_array(2)
    assert LowRank(f, F, residual=wide).dtype == np.float64
    assert LowRank(f, F, residual=wide.astype(np.float32)).dtype == np.float32


def test_a_million_rows_stay_thin():
    n = 10**6
    K = LowRank(np.ones((n, 1), np.float32), np.ones((1, 1), np.float32))
    assert K.trace() == n
    assert K.norm() == pytest.approx(n, rel=1e-5)
    assert_array_equal(K.entries([n - 1], [0]), [1])
    with pytest.raises(MemoryError, match=r"3725\.3 GiB; pass force=True"):
        K.toarray()


def test_force_makes_the_array(monkeypatch, rank_one):
    monkeypatch.setattr("simlib.lowrank.lowrank.LARGEST_ARRAY", 31)
    with pytest.raises(MemoryError, match="force=True"):
        rank_one.toarray()
    assert_array_equal(rank_one.toarray(force=True), [[3, 6], [6, 12]])


# Ridge regression.


def test_solve_is_kernel_ridge():
    rng = np.random.default_rng(0)
    left, y = rng.standard_normal((30, 4)), rng.standard_normal((30, 2))
    K = LowRank(left, np.eye(4))
    ridge = KernelRidge(alpha=0.1, kernel="precomputed").fit(left @ left.T, y)
    assert_allclose(K.solve(y, 0.1), ridge.dual_coef_)


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
    with pytest.raises(np.linalg.LinAlgError, match="or nothing beside one"):
        K.solve(y, 1e-16)


def test_solve_accepts_a_negative_ridge(rank_one):
    assert_allclose(rank_one.solve(np.array([1.0, 2.0]), -5.0), [0.1, 0.2])


def sparse_factor(n, k, seed=0):
    """The identity on some rows, and a few weights of sum 1 in the others."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n - k), 5)
    weights = rng.dirichlet(np.ones(5), n - k).ravel()
    P = scipy.sparse.coo_array(
        (weights, (rows, rng.integers(0, k, rows.size))), shape=(n - k, k)
    )
    return scipy.sparse.vstack([scipy.sparse.eye_array(k), P], format="csr")


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("separate", [False, True])
def test_solve_makes_no_sparse_factor_dense(residual, separate, monkeypatch):
    n, k = 10000, 250
    P, R, rng = sparse_factor(n, k), sparse_factor(n, k, 1), np.random.default_rng(0)
    G = rng.standard_normal((k, k))
    E = scipy.sparse.diags_array(rng.random(n)) if residual else None
    K = LowRank(P, G @ G.T, R if separate else None, residual=E)
    y = rng.standard_normal(n)
    monkeypatch.setattr("simlib.lowrank.lowrank.qr", None)
    tracemalloc.start()
    x = K.solve(y, 500.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    monkeypatch.undo()
    assert peak < 0.75 * 8 * n * k
    assert_allclose(K @ x + 500 * x, y, rtol=0, atol=1e-8)
    dense = LowRank(P.toarray(), K.core, R.toarray() if separate else None, residual=E)
    assert_allclose(x, dense.solve(y, 500.0), rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("columns", [[0, 1, 1], [0, 0, 0]])
def test_solve_with_dependent_sparse_columns(columns):
    """Of which the Gram matrix has no Cholesky factor."""
    P = sparse_factor(40, 2)[:, columns]
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
        monkeypatch.setattr(f"simlib.lowrank.lowrank.{name}", None)
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


def test_another_core_keeps_the_rest():
    E = scipy.sparse.eye_array(4)
    facts = {"residual": E, "landmarks": [1], "method": "mine", "reason": "none."}
    K = Closed(np.ones((4, 1)), [[1.0]], calls=3, **facts)
    other = K.with_core([[2]])
    assert (type(other), other.method, other.calls) == (Closed, "mine", None)
    assert other.symmetric
    assert_allclose(other.toarray(), 2 + np.eye(4))
    with pytest.raises(ValueError, match=r"must have shape \(1, 1\)"):
        K.with_core(np.eye(2))
    with pytest.raises(ValueError, match="complex"):
        K.with_core([[1j]])


def dense_array(factor):
    return factor.toarray() if scipy.sparse.issparse(factor) else factor


def test_solve_refuses_singular_systems(rank_one):
    y = np.ones(2)
    with pytest.raises(np.linalg.LinAlgError, match="ridge; give one that is not zero"):
        rank_one.solve(y, 0)
    with pytest.raises(np.linalg.LinAlgError, match="minus the ridge is an eigenvalue"):
        rank_one.solve(y, -15.0)
    K = LowRank(np.ones((2, 1)), [[1.0]], residual=scipy.sparse.eye_array(2))
    with pytest.raises(np.linalg.LinAlgError, match="residual plus the ridge is sing"):
        K.solve(y, -1.0)
    with pytest.raises(ValueError, match="y has 3 rows, the matrix has 2"):
        rank_one.solve(np.ones(3), 1.0)
    with pytest.raises(
        ValueError, match=r"square matrix can be solved; shape \(2, 3\)"
    ):
        LowRank(np.ones((2, 1)), [[1.0]], np.ones((3, 1))).solve(y, 1.0)

    with pytest.raises(ValueError, match=r"shape \(2,\) or \(2, k\); got \(\)"):
        rank_one.solve(3.0, 1.0)
    with pytest.raises(ValueError, match=r"got \(2, 1, 1\)"):
        rank_one.solve(np.ones((2, 1, 1)), 1.0)
    for question in (lambda y: rank_one.solve(y, 1.0), rank_one.extend):
        with pytest.raises(ValueError, match=r"sparse one: toarray\(\) it"):
            question(scipy.sparse.csr_array([[1.0], [2.0]]))
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


def test_solve_after_an_interrupt():
    """Whatever of its decomposition is kept is whole."""
    one = np.ones((2, 1))
    answer = LowRank(one, [[1.0]], one.copy())

    class Interrupted(dict):
        def __setitem__(self, name, value):
            super().__setitem__(name, value)
            raise KeyboardInterrupt

    answer._products = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        answer.solve(np.ones(2), 1.0)
    answer._products = dict(answer._products)
    assert_allclose(answer.solve(np.ones(2), 1.0), [1 / 3, 1 / 3])


# What it refuses.


def test_refusals_at_birth():
    thin = np.ones((4, 2))
    with pytest.raises(
        ValueError, match=r"left \(4, 2\), core \(3, 3\).*shape \(2, 2\)"
    ):
        LowRank(thin, np.eye(3))
    with pytest.raises(ValueError, match=r"core is not symmetric.*right=left"):
        LowRank(thin, [[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"residual has shape \(3, 3\)"):
        LowRank(thin, np.eye(2), residual=scipy.sparse.eye_array(3))
    upper = scipy.sparse.csr_array(np.triu(np.ones((4, 4))))
    with pytest.raises(ValueError, match="residual is not symmetric"):
        LowRank(thin, np.eye(2), residual=upper)
    LowRank(thin, np.eye(2), thin, residual=upper)
    with pytest.raises(ValueError, match=r"two-dimensional; got shape \(4,\)"):
        LowRank(np.ones(4), np.eye(1))
    for parts in (
        (thin * 1j, np.eye(2)),
        (thin, np.eye(2) * 1j),
        (thin, np.eye(2), thin * 1j),
        (scipy.sparse.csr_array(thin * 1j), np.eye(2)),
    ):
        with pytest.raises(ValueError, match="got a complex factor"):
            LowRank(*parts)
    with pytest.raises(ValueError, match="got a complex factor"):
        LowRank(thin, np.eye(2), residual=1j * scipy.sparse.eye_array(4))


def test_refusals_of_questions(rank_one):
    wide = LowRank(np.ones((2, 1)), [[1.0]], np.ones((3, 1)))
    with pytest.raises(ValueError, match="eigh needs a symmetric approximation"):
        wide.eigh()
    with pytest.raises(ValueError, match=r"Only a square matrix embeds.*\(2, 3\)"):
        wide.embedding()
    for k in (0, 2):
        with pytest.raises(ValueError, match=f"k must be between 1 and 1; got {k}"):
            rank_one.eigh(k)
    large = LowRank(np.ones((65, 1)), [[1.0]], residual=scipy.sparse.eye_array(65))
    with pytest.raises(ValueError, match=r"numpy.linalg.eigh\(K.toarray\(\)\) finds"):
        large.eigh(65)
    with pytest.raises(ValueError, match="to 1 landmarks; got 2"):
        rank_one.extend([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"(?i)dimension mismatch"):
        rank_one @ np.ones(3)


# A residual that is an operator


class Answers(LinearOperator):
    """A matrix that answers what a residual has to answer, and counts the rows."""

    def __init__(self, E):
        super().__init__(E.dtype, E.shape)
        self.E, self.asked = E, []

    def entries(self, i, j):
        return self.E[i, j]

    def rows(self, i):
        self.asked.append(len(i))
        return self.E[i]

    def diagonal(self):
        return np.diag(self.E)

    def _matmat(self, X):
        return self.E @ X

    _matvec = _matmat

    def _transpose(self):
        return Answers(self.E.T)

    _adjoint = _transpose


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_operator_residual_against_the_dense_matrix(symmetric, dtype, monkeypatch):
    plain, dense = make(symmetric=symmetric, dtype=dtype)
    E = np.random.default_rng(1).standard_normal((12, 12)).astype(dtype)
    E = E + E.T if symmetric else E
    right = None if symmetric else plain.right
    K, dense = LowRank(plain.left, plain.core, right, residual=Answers(E)), dense + E
    tol = dict.fromkeys(("rtol", "atol"), 1e-11 if dtype is np.float64 else 1e-4)
    i, j = np.array([0, 3, 3, 11]), np.array([0, 5, 3, 2])
    x = np.arange(12, dtype=dtype)
    for matrix, expected in ((K, dense), (K.T, dense.T)):
        assert matrix.dtype == matrix.toarray().dtype == dtype
        assert_allclose(matrix.toarray(), expected, **tol)
        assert_allclose(matrix.entries(i, j), expected[i, j], **tol)
        assert_allclose(matrix.rows(i), expected[i], **tol)
        assert_allclose(matrix.diagonal(), np.diag(expected), **tol)
        assert_allclose(matrix @ x, expected @ x, **tol)
        assert_allclose(matrix.rmatvec(x), expected.T @ x, **tol)
        assert matrix.trace() == pytest.approx(np.trace(expected), rel=1e-4)
        assert matrix.norm() == pytest.approx(np.linalg.norm(expected), rel=1e-5)
    monkeypatch.setattr("simlib.lowrank.lowrank.CHUNK", 60)
    K.residual.asked.clear()
    assert K.norm() == pytest.approx(np.linalg.norm(dense), rel=1e-5)
    assert K.residual.asked == [5, 5, 2]
    assert repr(K).endswith("residual Answers)")
    if symmetric and dtype is np.float64:
        exact = np.linalg.eigvalsh(dense)
        assert_allclose(K.eigh(2)[0], exact[np.argsort(-abs(exact))[:2]])


def test_operator_residual_has_no_factors():
    K = LowRank(np.ones((3, 1)), [[1.0]], residual=Answers(np.eye(3)))
    for ask in (K.embedding, lambda: K.extend([[1.0]]), lambda: K.solve([1, 2, 3], 1)):
        with pytest.raises(
            ValueError, match=r"operator.*anchored\(\.\.\., base_rank=r\)"
        ):
            ask()
    solution = minres(K, np.ones(3), rtol=1e-12)[0]  # what the last message proposes
    assert_allclose(solution, [0.25, 0.25, 0.25])


def test_entries_are_of_as_many_rows_as_columns():
    answer = LowRank(np.ones((3, 1)), np.eye(1))
    with pytest.raises(ValueError, match="must be as long; got 3 and 1"):
        answer.entries([0, 1, 2], [0])


def test_dense_residuals_are_refused():
    with pytest.raises(TypeError, match="sparse matrix, or an operator"):
        LowRank(np.ones((3, 1)), np.eye(1), residual=np.eye(3))


@pytest.mark.parametrize("scale", [1e-25, 1e18])
def test_norm_of_single_precision_neither_vanishes_nor_overflows(scale):
    left = np.float32([[3.0], [4.0]]) * np.float32(scale)
    answer = LowRank(left, np.eye(1, dtype=np.float32), np.float32([[1.0], [0.0]]))
    assert answer.norm() == pytest.approx(5 * scale, rel=1e-6)


@pytest.mark.parametrize(("dtype", "digits"), [(np.float32, 25), (np.float64, 200)])
@pytest.mark.parametrize("sign", [1, -1])
def test_norm_with_a_residual_at_any_scale(dtype, digits, sign):
    one, scale = np.ones((1, 1), dtype), 10.0 ** (sign * digits)
    left = np.array([[2.0], [1.0]], dtype) * dtype(scale)
    for entry, expected in ((0.0, 5), (1.0, 10), (-2.0, 1)):
        residual = scipy.sparse.csr_array([[entry], [0]] * np.full((2, 1), scale))
        answer = LowRank(left, one, one, residual=residual.astype(dtype))
        assert answer.norm() == pytest.approx(np.sqrt(expected) * scale, rel=1e-6)
    if dtype == np.float64:
        half = LowRank(np.sqrt(left), one)
        assert half.norm() == pytest.approx(3 * scale)


def test_a_residual_in_which_an_entry_stands_twice():
    parts = np.ones(3), np.array([0, 0, 1]), np.array([0, 2, 3])
    for part in parts:
        part.flags.writeable = False
    residual = scipy.sparse.csr_array(parts, (2, 2))
    for right in (None, np.ones((2, 1))):
        answer = LowRank(np.ones((2, 1)), [[1.0]], right, residual=residual)
        assert answer.norm() == pytest.approx(np.linalg.norm([[3, 1], [1, 2]]))
        assert_array_equal(answer.toarray(), [[3, 1], [1, 2]])
    assert residual.nnz == 3


def test_norm_of_a_residual_that_cancels_the_factors():
    exact = np.random.default_rng(0).standard_normal((30, 30))
    left = 1e8 * np.ones((30, 1))
    residual = scipy.sparse.csr_array(exact - left @ np.ones((1, 30)))
    answer = LowRank(left, np.eye(1), np.ones((30, 1)), residual=residual)
    assert answer.norm() == pytest.approx(np.linalg.norm(exact), rel=1e-6)


@pytest.mark.parametrize("symmetric", [True, False])
def test_embedding_map_makes_features_of_the_columns(symmetric):
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, 6, 3))
    core = rng.standard_normal((3, 3))
    factors = (left, core + core.T) if symmetric else (left, core, right)
    transform, signs = LowRank(*factors).embedding_map()
    Z = (left if symmetric else np.hstack([left, right])) @ transform
    K = LowRank(*factors).toarray()
    assert_allclose((Z * signs) @ Z.T, (K + K.T) / 2, atol=1e-12)


# What is refused


def test_an_array_and_an_entry_name_what_gives_them(rank_one):
    for attempt in (np.asarray, lambda K: K[0, 1], lambda K: K[0], np.linalg.norm):
        with pytest.raises(TypeError, match=r"K\.rows\(i\)") as error:
            attempt(rank_one)
        for name in ("toarray()", "entries(i, j)"):
            assert name in str(error.value)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ([-1], IndexError, "numbered 0 to 1; got -1"),
        ([0, 2], IndexError, "numbered 0 to 1; got 2"),
        ([0.0], ValueError, "array of integers; got float64"),
        ([True, False], ValueError, "array of integers; got bool"),
        ([[0], [1]], ValueError, r"of shape \(2, 1\)"),
    ],
)
def test_indices_that_are_none(rank_one, index, error, message):
    with pytest.raises(error, match=message):
        rank_one.rows(index)
    with pytest.raises(error, match=message):
        rank_one.entries(index, np.zeros(np.size(index), dtype=int))
    with pytest.raises(error, match=message):
        rank_one.entries(np.zeros(np.size(index), dtype=int), index)
    assert_array_equal(rank_one.rows(np.uint8([1])), [[6, 12]])
    assert rank_one.rows([]).shape == (0, 2)


@given(st.integers(1, 40), st.integers(0, 60), st.integers(0, 99), st.booleans())
@settings(deadline=None, max_examples=25, derandomize=True)
def test_entries_however_many_and_however_spread(n, m, seed, in_sparse_factors):
    rng = np.random.default_rng(seed)
    left, core, right = (rng.standard_normal(s) for s in ((n, 3), (3, 2), (n + 2, 2)))
    if in_sparse_factors:
        left, right = (scipy.sparse.csr_array(factor) for factor in (left, right))
    K = LowRank(left, core, right)
    i, j = rng.integers(n, size=m), rng.integers(n + 2, size=m)
    assert_allclose(K.entries(i, j), K.toarray()[i, j], atol=1e-12)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_core_beyond_the_range_is_refused(wrong):
    with pytest.raises(ValueError, match="core has entries that are NaN or infinite"):
        LowRank(np.ones((3, 1)), [[wrong]])


def test_factors_have_no_masked_entries():
    masked = np.ma.masked_array([[1.0], [2.0]], mask=[[True], [False]])
    with pytest.raises(ValueError, match="factor has masked entries"):
        LowRank(masked, [[1.0]])


def test_an_operator_residual_that_is_not_symmetric_is_refused():
    z = np.random.default_rng(0).standard_normal((6, 2))
    residual = LowRank(z, np.eye(2), z[::-1].copy())
    with pytest.raises(ValueError, match="residual is not symmetric"):
        LowRank(np.ones((6, 1)), np.eye(1), residual=residual)
    left = np.ones((6, 1))
    K = LowRank(left, np.eye(1), left, residual=residual)
    v = np.arange(6.0)
    assert_allclose(K.T @ v, (1 + residual.toarray()).T @ v)


def test_norms_beyond_single_precision():
    K = LowRank(np.full((500, 1), 3e37, np.float32), np.float32([[1 / 3e37]]))
    assert K.norm() == pytest.approx(1.5e40)
    with pytest.raises(ValueError, match="eigenvalue is no number of float32"):
        K.eigh()
    half = LowRank(np.full((500, 1), 2e37, np.float32), np.float32([[1e-39]]))
    values, vectors = half.eigh()
    assert values.dtype == vectors.dtype == np.float32
    assert_allclose(values, 500 * 4e35, rtol=1e-5)
    assert_allclose(abs(vectors), np.full((500, 1), 500**-0.5), rtol=1e-6)


def test_solutions_beyond_single_precision_are_refused():
    K = LowRank(np.full((3, 1), 1e-15, np.float32), np.ones((1, 1), np.float32))
    y = np.full(3, 1e10)
    assert_allclose(K.solve(y, 1e-30), 1e10 / (1e-30 + 3e-30))
    with pytest.raises(ValueError, match="solution is no number of float32"):
        K.solve(y.astype(np.float32), 1e-30)


@pytest.mark.parametrize("n", [1, 5, 64, 65])
def test_all_eigenvalues_of_a_small_matrix_with_a_residual(n):
    x = np.random.default_rng(0).standard_normal((n, 1))
    E = scipy.sparse.diags_array(np.linspace(1, 2, n))
    K = LowRank(x, [[1.0]], residual=E)
    k = n if n < 65 else n - 1
    exact = np.linalg.eigvalsh(K.toarray())
    values, vectors = K.eigh(k)
    assert_allclose(values, exact[np.argsort(-abs(exact))][:k])
    assert_allclose(K @ vectors, vectors * values, atol=1e-10)
    nothing = LowRank(
        np.zeros((5, 1)), [[0.0]], residual=scipy.sparse.csr_array((5, 5))
    )
    assert_array_equal(nothing.eigh(2)[0], [0, 0])
