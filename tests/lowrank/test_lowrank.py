"""LowRank against exact answers, dense arrays, SciPy and scikit-learn."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator, aslinearoperator, minres

from simlib import LowRank
from simlib.lowrank import eigen, tall
from simlib.lowrank.lowrank import Closed
from support.lowrank import KINDS, Answers, make


@pytest.fixture(params=["whole", "in blocks"])
def heights(request, monkeypatch):
    """Let factors be read whole, or as many rows at a time as they have columns."""
    if request.param == "in blocks":
        monkeypatch.setattr(tall, "HELD", 1)
        monkeypatch.setattr(tall, "TALL", 1)


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


def test_landmarks_change_sides_in_the_transpose():
    facts = {"landmarks": [5], "row_landmarks": [6], "calls": 7, "method": "cur"}
    K = LowRank(np.ones((3, 1)), [[1.0]], np.ones((4, 1)), **facts)
    assert (K.T.landmarks, K.T.row_landmarks) == ([6], [5])
    assert (K.T.shape, K.T.calls, K.T.method) == ((4, 3), 7, "cur")


@pytest.mark.usefixtures("heights")
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
    for again in (pickle.loads(pickle.dumps(K)), copy.deepcopy(K)):
        assert repr(again) == repr(K)
        check(again.toarray(), dense)
        left = again.left.data if scipy.sparse.issparse(again.left) else again.left
        assert not left.flags.writeable
        assert not again.core.flags.writeable
        assert again.symmetric == K.symmetric


@pytest.mark.usefixtures("heights")
@pytest.mark.parametrize(
    "kind",
    [k for k in KINDS if "shape" not in k and k["residual"] != "operator"],
    ids=str,
)
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
    part = make(**(kind | {"residual": None}))[1]
    assert_allclose((Z * signs) @ Z.T, (part + part.T) / 2, rtol=tol, atol=tol)
    sides = [K.left] if K.symmetric else [K.left, K.right]
    new = np.hstack(
        [side[[2, 0]].toarray() if kind["sparse"] else side[[2, 0]] for side in sides]
    )
    assert_allclose(K.extend(new), Z[[2, 0]], rtol=tol, atol=tol)
    assert K.extend(new).dtype == K.dtype


@pytest.mark.usefixtures("heights")
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [-100, -40, 0, 100])
def test_eigenvalues_with_a_residual_have_no_scale(power, dtype):
    E = scipy.sparse.diags_array(np.ldexp(np.arange(100.0, 0, -1), power))
    K = LowRank(np.zeros((100, 1), dtype), [[0.0]], residual=E.astype(dtype))
    values, vectors = K.eigh(9)
    assert_allclose(np.ldexp(values, -power), np.arange(100, 91, -1), rtol=1e-5)
    assert_allclose(abs(vectors), np.eye(100, 9), atol=1e-3)
    assert values.dtype == vectors.dtype == K.dtype


def clustered(n):
    """Return a matrix of rank three with most numbers on its diagonal nearly equal."""
    rng = np.random.default_rng(0)
    d = np.where(np.arange(n) < 9, 0.5, 1 + 1e-14 * rng.random(n))
    left = 2 * rng.standard_normal((n, 3))
    return LowRank(left, np.eye(3), residual=scipy.sparse.diags_array(d))


def test_eigenvalues_that_are_nearly_equal():
    K = clustered(300)
    values, vectors = K.eigh(20)
    expected = np.linalg.eigvalsh(K.toarray())[::-1]
    assert_allclose(values, expected[:20], rtol=1e-12)
    assert_allclose(K @ vectors, vectors * values, atol=1e-9)
    assert_allclose(vectors.T @ vectors, np.eye(20), atol=1e-12)


def test_eigenvalues_that_are_nearly_equal_of_a_large_matrix(monkeypatch):
    monkeypatch.setattr(eigen, "LARGEST_ARRAY", 200)
    assert clustered(300).eigh(3)[0].size == 3
    with pytest.raises(np.linalg.LinAlgError, match="Take a smaller k"):
        clustered(300).eigh(20)


def test_eigenvalues_of_nothing():
    none = LowRank(np.zeros((3, 0)), np.zeros((0, 0)))
    assert [part.shape for part in none.eigh()] == [(0,), (3, 0)]
    zeros = LowRank(
        np.zeros((80, 2)), np.eye(2), residual=scipy.sparse.csr_array((80, 80))
    )
    values, vectors = zeros.eigh(3)
    assert_array_equal(values, [0, 0, 0])
    assert_array_equal(vectors.T @ vectors, np.eye(3))


@pytest.mark.parametrize(("n", "residual"), [(3, False), (3, True), (80, True)])
def test_eigenvalues_of_what_is_no_number(n, residual):
    left = np.ones((n, 1))
    left[-1] = np.nan
    E = scipy.sparse.eye_array(n) if residual else None
    with pytest.raises(ValueError, match="A factor holds NaN"):
        LowRank(left, [[1.0]], residual=E).eigh(1)


def test_a_sparse_core_is_an_array(rank_one):
    core = scipy.sparse.csr_array([[3.0]])
    for K in (LowRank(rank_one.left, core), rank_one.with_core(core)):
        assert isinstance(K.core, np.ndarray)
        assert_array_equal(K.toarray(), rank_one.toarray())


@settings(max_examples=60)
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
    K, dense = make(symmetric=symmetric, residual="sparse")
    assert isinstance(K, LinearOperator)
    assert aslinearoperator(K) is K
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, len(dense)))
    assert np.dot(K @ x, y) == pytest.approx(np.dot(x, K.H @ y))
    assert_allclose((K @ K.T) @ x, dense @ dense.T @ x)
    assert_allclose(K @ (x + 1j * y), dense @ (x + 1j * y))


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


def test_a_million_rows_stay_thin(rank_one, monkeypatch):
    n = 10**6
    K = LowRank(np.ones((n, 1), np.float32), np.ones((1, 1), np.float32))
    assert K.trace() == n
    assert K.norm() == pytest.approx(n, rel=1e-5)
    assert_array_equal(K.entries([n - 1], [0]), [1])
    with pytest.raises(MemoryError, match=r"3725\.3 GiB; pass force=True"):
        K.toarray()
    monkeypatch.setattr("simlib.lowrank.lowrank.LARGEST_ARRAY", 31)
    with pytest.raises(MemoryError, match="force=True"):
        rank_one.toarray()
    assert_array_equal(rank_one.toarray(force=True), [[3, 6], [6, 12]])


THIN, ONE = np.ones((4, 2)), np.eye(2)
UPPER = scipy.sparse.csr_array(np.triu(np.ones((4, 4))))


@pytest.mark.parametrize(
    ("parts", "residual", "message"),
    [
        ((THIN, np.eye(3)), None, r"left \(4, 2\), core \(3, 3\).*shape \(2, 2\)"),
        ((THIN, [[1.0, 2.0], [0.0, 1.0]]), None, r"core is not symmetric.*right=left"),
        ((THIN, ONE), scipy.sparse.eye_array(3), r"residual has shape \(3, 3\)"),
        ((THIN, ONE), UPPER, "residual is not symmetric"),
        ((np.ones(4), np.eye(1)), None, r"two-dimensional; got shape \(4,\)"),
        ((THIN * 1j, ONE), None, "complex"),
        ((THIN, ONE), 1j * scipy.sparse.eye_array(4), "complex"),
        ((THIN, np.diag([1, np.nan])), None, "NaN or infinite"),
        ((THIN, ONE), np.nan * scipy.sparse.eye_array(4), "residual.*NaN or infinite"),
    ],
)
def test_refusals_at_birth(parts, residual, message):
    with pytest.raises(ValueError, match=message):
        LowRank(*parts, residual=residual)
    LowRank(THIN, ONE, THIN, residual=UPPER)
    with pytest.raises(TypeError, match="sparse matrix, or an operator"):
        LowRank(THIN, ONE, residual=np.eye(4))


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
    with pytest.raises(ValueError, match=r"shape \(m, l\); got \(1, 1, 1\)"):
        rank_one.extend([[[1.0]]])
    with pytest.raises(ValueError, match=r"(?i)dimension mismatch"):
        rank_one @ np.ones(3)
    with pytest.raises(ValueError, match="must have the same length; got 2 and 1"):
        rank_one.entries([0, 1], [0])
    with pytest.raises(ValueError, match="one-dimensional array of integers"):
        rank_one.rows(np.zeros((0, 3), int))
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for ask in (
        rank_one.extend,
        lambda y: rank_one.solve(y, 1),
        rank_one.dot,
        rank_one.matvec,
        rank_one.rmatvec,
        lambda y: y @ rank_one,
        lambda y: rank_one.matmat(np.ma.column_stack([y, y])),
    ):
        with pytest.raises(ValueError, match="some are masked"):
            ask(masked)
    for sparse in ([[1.0]], [[1.0], [2.0]]):
        with pytest.raises(ValueError, match=r"sparse one: toarray\(\) it"):
            rank_one.extend(scipy.sparse.csr_array(sparse))


# A residual that is an operator


def test_rows_of_an_operator_are_asked_some_at_a_time(monkeypatch):
    K, dense = make(residual="operator")
    monkeypatch.setattr("simlib.lowrank.lowrank.ENTRIES_OF_ROWS", 60)
    assert K.norm() == pytest.approx(np.linalg.norm(dense), rel=1e-5)
    assert K.residual.asked == [5, 5, 2]
    assert repr(K).endswith("residual Answers)")


def test_operator_residual_has_no_factors():
    K = LowRank(np.ones((3, 1)), [[1.0]], residual=Answers(np.eye(3)))
    for ask in (K.embedding, lambda: K.extend([[1.0]]), lambda: K.solve([1, 2, 3], 1)):
        with pytest.raises(
            ValueError, match=r"operator.*anchored\(\.\.\., base_rank=r\)"
        ):
            ask()
    solution = minres(K, np.ones(3), rtol=1e-12)[0]  # what the last message proposes
    assert_allclose(solution, [0.25, 0.25, 0.25])


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


def test_an_array_and_an_entry_name_what_gives_them(rank_one):
    for attempt in (np.asarray, lambda K: K[0, 1], lambda K: K[0], np.linalg.norm):
        with pytest.raises(TypeError, match=r"K\.rows\(i\)") as error:
            attempt(rank_one)
        for name in ("toarray()", "entries(i, j)"):
            assert name in str(error.value)


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


def test_a_residual_alone_and_an_old_kind_of_matrix():
    n = 5
    alone = LowRank(
        np.zeros((n, 0)), np.zeros((0, 0)), residual=scipy.sparse.eye_array(n).tocsr()
    )
    assert_allclose(alone.eigh()[0], [1])
    left = np.arange(6.0).reshape(3, 2)
    old = LowRank(left.view(np.matrix), np.eye(2).view(np.matrix))
    assert type(old.left) is type(old.core) is np.ndarray
    assert_allclose(old.toarray(), left @ left.T)


def test_a_product_of_a_sparse_matrix_is_told():
    K, S = LowRank(np.ones((4, 1)), np.eye(1)), scipy.sparse.eye_array(4).tocsr()
    with pytest.raises(TypeError, match=r"S @ K is \(K\.T @ S\.T\)\.T"):
        S @ K
    assert_array_equal((K.T @ S.T).T, np.ones((4, 4)))
