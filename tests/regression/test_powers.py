import re
import warnings
from functools import cache

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from test_preconditioner import coherent, matrix

from simlib.regression import Preconditioner, even_power, lstsq, odd_power, solve_gram
from study import as_printed as paper
from study.multiprecision import ExactGram, exact_product, relative_error
from support.matrices import orthogonal, quick

METHODS = ["auto", "gram", "cholesky_qr", "lsqr"]
UNIT = np.finfo(float).eps / 2

attainable = pytest.mark.filterwarnings(
    "ignore:x leaves a residual:scipy.linalg.LinAlgWarning"
)


def vector(n, seed):
    return np.random.default_rng(seed).standard_normal(n)


def right(A, level, seed=0):
    """A right-hand side, of which the given part is no combination of columns."""
    b = A @ vector(A.shape[1], seed)
    e = vector(len(A), seed + 1)
    Q = np.linalg.qr(A)[0]
    for _ in range(2):
        e -= Q @ (Q.T @ e)
    return b + level * np.linalg.norm(b) / np.linalg.norm(e) * e


def relative(x, truth):
    gap = np.asarray(x - truth, dtype=float)
    return np.linalg.norm(gap) / np.linalg.norm(np.asarray(truth, dtype=float))


# A reference in extended precision


def long_qr(A):
    """Gram-Schmidt, each column twice."""
    Q = A.astype(np.longdouble)
    R = np.zeros((A.shape[1],) * 2, np.longdouble)
    for k in range(A.shape[1]):
        for _ in range(2):
            part = Q[:, :k].T @ Q[:, k]
            Q[:, k] -= Q[:, :k] @ part
            R[:k, k] += part
        R[k, k] = np.sqrt((Q[:, k] ** 2).sum())
        Q[:, k] /= R[k, k]
    return Q, R


def back_substitute(R, y):
    x = y.astype(R.dtype)
    for k in reversed(range(len(R))):
        x[k] = (x[k] - R[k, k + 1 :] @ x[k + 1 :]) / R[k, k]
    return x


def through_gram(R, y):
    """(R^T R)^-1 y, where reversing rows and columns of R^T makes it upper."""
    y = back_substitute(R.T[::-1, ::-1], y[::-1])[::-1]
    return back_substitute(R, y)


def exact(A, b, j):
    """The odd power's solution."""
    Q, R = long_qr(A)
    x = back_substitute(R, Q.T @ b)
    for _ in range(j):
        x = through_gram(R, x)
    return x


@cache
def problem(condition):
    """A, b of d entries and c of n entries, and all that is needed to solve them."""
    A = matrix(2048, 40, condition, seed=7)
    return A, vector(40, 8), vector(2048, 9), *long_qr(A)


def truth(condition, j, odd=False):
    _, b, c, Q, R = problem(condition)
    x = back_substitute(R, Q.T @ c) if odd else b
    for _ in range(j):
        x = through_gram(R, x)
    return x


# Exactly


@attainable
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("j", [0, 1, 2, 3])
def test_a_diagonal_matrix(method, j):
    values = 2.0 ** np.arange(-2, 3)
    A = np.vstack([np.diag(values), np.zeros((300, 5))])
    x = np.arange(1.0, 6)
    small = 1e-14 * 16.0 ** (2 * j + 1)
    found = even_power(A, values ** (2 * j) * x, j, method=method, rng=0)
    np.testing.assert_allclose(found.x, x, rtol=small)
    b = np.r_[values ** (2 * j + 1) * x, np.ones(300)]
    found = odd_power(A, b, j, method=method, rng=0)
    np.testing.assert_allclose(found.x, x, rtol=small)
    assert len(found.iterations) == len(found.preconditioned_residuals) == j + 1


@pytest.mark.parametrize("method", METHODS)
def test_with_orthonormal_columns_all_powers_are_a_projection(method):
    A = orthogonal(300, np.random.default_rng(1))[:, :7]
    b = vector(300, 2)
    for j in (0, 1, 4):
        found = odd_power(A, b, j, method=method, rng=0)
        np.testing.assert_allclose(found.x, A.T @ b, atol=1e-13)
        found = even_power(A, b[:7], j, method=method, rng=0)
        np.testing.assert_allclose(found.x, b[:7], atol=1e-13)
    assert found.condition < 4


@pytest.mark.parametrize("method", METHODS)
def test_integers(method):
    """A small matrix of integers, and a solution of integers, for j = 2."""
    rng = np.random.default_rng(3)
    A, x = rng.integers(-4, 5, (60, 5)), rng.integers(-9, 10, 5)
    G = A.T @ A
    for found in (
        lstsq(A, A @ x, method=method, rng=0),
        solve_gram(A, G @ x, method=method, rng=0),
        even_power(A, G @ (G @ x), 2, method=method, rng=0),
        odd_power(A, A @ (G @ (G @ x)), 2, method=method, rng=0),
    ):
        np.testing.assert_allclose(found.x, x, rtol=0, atol=1e-10)
        assert found.residual < 1e-10


# Against NumPy and SciPy


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 9),
    tall=st.integers(0, 400),
    columns=st.integers(1, 3),
    j=st.integers(0, 3),
    method=st.sampled_from(METHODS),
)
def test_small_problems_of_all_shapes(seed, d, tall, columns, j, method):
    rng = np.random.default_rng(seed)
    A = matrix(d + tall, d, 3, seed=seed)
    B = rng.standard_normal((d + tall, columns))
    Y = rng.standard_normal((d, columns))
    G = A.T @ A
    expected = np.linalg.lstsq(A, B)[0]
    for _ in range(j):
        expected = np.linalg.solve(G, expected)
    with warnings.catch_warnings():
        # the paper's sketch of so few columns may be a bad one, and then it says so
        warnings.simplefilter("error" if method != "paper" else "ignore", LinAlgWarning)
        odd = odd_power(A, B, j, method=method, rng=seed)
        even = even_power(A, Y, j, method=method, rng=seed)
    powers = np.linalg.matrix_power(G, j)
    if max(odd.preconditioned_residuals) < 1e-12:
        np.testing.assert_allclose(odd.x, expected, atol=1e-9)
        left = np.linalg.norm(A @ (powers @ odd.x) - B, axis=0)
        share = (left / np.linalg.norm(B, axis=0)).max()
        assert odd.residual == pytest.approx(share, abs=1e-9)
    if max(even.preconditioned_residuals, default=0) < 1e-12:
        np.testing.assert_allclose(powers @ even.x, Y, atol=1e-9)
        assert even.residual < 1e-10


@pytest.mark.parametrize("method", METHODS)
def test_the_power_0_is_least_squares_and_1_the_gram_matrix(method):
    A, b = matrix(900, 12, 30), vector(900, 1)
    least, odd = (f(A, b, method=method, rng=4) for f in (lstsq, odd_zero))
    np.testing.assert_array_equal(least.x, odd.x)
    np.testing.assert_allclose(least.x, np.linalg.lstsq(A, b)[0], rtol=1e-10)
    gram, even = (f(A, b[:12], method=method, rng=4) for f in (solve_gram, even_one))
    np.testing.assert_array_equal(gram.x, even.x)
    np.testing.assert_allclose(A.T @ (A @ gram.x), b[:12], atol=1e-11)
    nothing = even_power(A, b[:12], 0, method=method, rng=4)
    np.testing.assert_array_equal(nothing.x, b[:12])
    assert not np.shares_memory(nothing.x, b)


def odd_zero(A, b, **options):
    return odd_power(A, b, 0, **options)


def even_one(A, b, **options):
    return even_power(A, b, 1, **options)


@pytest.mark.parametrize("method", METHODS)
def test_several_right_hand_sides_are_those_one_at_a_time(method):
    A, B = matrix(900, 70, 30), vector((900, 4), 1)
    B[:, 2] = 0
    together = odd_power(A, B, 1, method=method, rng=2)
    assert together.x.shape == (70, 4)
    for k in range(4):
        alone = odd_power(A, B[:, k], 1, method=method, rng=2)
        np.testing.assert_allclose(together.x[:, k], alone.x, atol=1e-9)
    np.testing.assert_array_equal(together.x[:, 2], 0)
    one = odd_power(A, B[:, :1], 1, method=method, rng=2)
    assert one.x.shape == (70, 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_the_power_0_of_the_gram_matrix_is_one(method, kind):
    A, b = kind(matrix(500, 8, 10)), vector(8, 1)
    np.testing.assert_array_equal(even_power(A, b, 0, method=method, rng=0).x, b)


@pytest.mark.parametrize("method", METHODS)
def test_zero_gives_zero(method):
    A = matrix(500, 70, 30)
    for found in (
        lstsq(A, np.zeros(500), method=method, rng=0),
        solve_gram(A, np.zeros((70, 2)), method=method, rng=0),
    ):
        assert not found.x.any()
        assert found.residual == found.error_estimate == 0


@pytest.mark.parametrize("method", METHODS)
def test_the_solution_may_be_exactly_zero(method):
    """Columns of a Hadamard matrix: the first right-hand side is orthogonal to both."""
    found = lstsq(np.array([[1.0], [-1.0]]), [1.0, 1.0], method=method, rng=0)
    assert (found.x == 0).all()
    assert (found.residual, found.error_estimate) == (1, 0)
    A = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    B = np.array([[1, 1], [1, 2], [1, 3], [1, 4]])
    for j in (0, 2):
        found = odd_power(A, B, j, method=method, rng=0)
        expected = np.array([[0, -1], [0, -0.5]]) / 4**j
        np.testing.assert_allclose(found.x, expected, rtol=1e-14)
        assert found.error_estimate < 1e-14
    found = odd_power(A, B, 1, weight=np.eye(2), method=method, rng=0)
    np.testing.assert_allclose(found.x, [[0, -0.25], [0, -0.125]], rtol=1e-14)


@pytest.mark.parametrize("method", METHODS)
def test_a_zero_that_underflow_leaves_is_refused(method):
    with pytest.raises(ValueError, match="beyond the range"):
        lstsq([[0.0], [1e150]], [1, 1e-200], method=method, rng=0)


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_is_between_A_and_its_transpose(method):
    A, b = matrix(400, 6, 5), vector(400, 1)
    C = matrix(6, 6, 4, seed=3)
    W = C @ C.T
    found = odd_power(A, b, 1, weight=W, method=method, rng=0)
    expected = np.linalg.lstsq(A @ W @ A.T @ A, b)[0]
    np.testing.assert_allclose(found.x, expected, rtol=1e-8)
    assert relative(found.x, expected) < max(found.error_estimate, 1e-11)
    share = np.linalg.norm(A @ W @ A.T @ A @ expected - b) / np.linalg.norm(b)
    assert found.residual == pytest.approx(share)
    sparse = odd_power(scipy.sparse.csc_array(A), b, 1, weight=W, method=method)
    np.testing.assert_allclose(sparse.x, expected, rtol=1e-8)
    plain = odd_power(A, b, 1, weight=np.eye(6), method=method, rng=0)
    again = odd_power(A, b, 1, method=method, rng=0)
    np.testing.assert_allclose(plain.x, again.x, rtol=1e-10)


# However A is kept


class Reader:
    """Blocks that are read anew for every pass."""

    def __init__(self, *blocks):
        self.blocks = blocks

    def __iter__(self):
        return iter(self.blocks)


@attainable
@pytest.mark.parametrize("method", METHODS)
def test_the_same_matrix_is_solved_however_it_is_kept(tmp_path, method):
    A = matrix(1200, 30, 1e2)
    A[abs(A) < 0.003] = 0
    b = right(A, 0.1)
    np.save(tmp_path / "A.npy", A)
    expected = odd_power(A, b, 1, method="cholesky_qr", rng=0).x
    for kind in (
        A,
        np.asfortranarray(A),
        [A[:400], A[400:401], A[401:]],
        Reader(A[:7], scipy.sparse.csr_array(A[7:760]), A[760:].tolist()),
        np.load(tmp_path / "A.npy", mmap_mode="r"),
        scipy.sparse.csc_array(A),
        scipy.sparse.coo_matrix(A),
        A.tolist(),
    ):
        found = odd_power(kind, b, 1, method=method, rng=2)
        assert relative(found.x, expected) < 1e-10
        found = odd_power(kind, b.tolist(), 1, method=method, rng=2)
        assert relative(found.x, expected) < 1e-10


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, bool])
def test_what_is_not_of_float64_is_computed_in_it(method, dtype):
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2 if dtype is bool else 6, (300, 5)).astype(dtype)
    b = rng.integers(-3, 4, 300)
    expected = lstsq(A.astype(float), b.astype(float), method=method, rng=1)
    for kind in (A, [A[:100], A[100:]], [A]):
        found = lstsq(kind, b.astype(np.float32), method=method, rng=1)
        assert found.x.dtype == np.float64
        assert relative(found.x, expected.x) < 1e-13
    if dtype is not np.float16:
        found = lstsq(scipy.sparse.csr_array(A), b, method=method, rng=1)
        assert relative(found.x, expected.x) < 1e-13


def test_a_data_frame_is_a_matrix():
    pandas = pytest.importorskip("pandas")
    A, b = matrix(60, 4, 3), vector(60, 0)
    frame = pandas.DataFrame(A, columns=list("abcd"))
    found = lstsq(frame, pandas.Series(b), rng=0)
    np.testing.assert_allclose(found.x, lstsq(A, b, rng=0).x, rtol=1e-13)
    nullable = lstsq(frame.astype("Float64"), pandas.Series(b, dtype="Float64"), rng=0)
    np.testing.assert_array_equal(nullable.x, found.x)
    mixed = frame.assign(d=frame["d"] > 0)
    expected = lstsq(mixed.astype(float), b, rng=0).x
    for kind in (mixed, [mixed[:40], mixed[40:]]):
        np.testing.assert_allclose(lstsq(kind, b, rng=0).x, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="A must be a real matrix"):
        lstsq(frame.astype("Float64").mask(A > 0, pandas.NA), b)


@pytest.mark.parametrize("method", METHODS)
def test_blocks_without_rows(method):
    A, b = matrix(300, 4, 3), vector(300, 0)
    expected = lstsq([A[:50], A[50:]], b, method=method, rng=0).x
    sparse = scipy.sparse.csr_array((0, 4))
    for parts in ([A[:0], A[:50], A[50:50], A[50:]], [A[:50], sparse, A[50:]]):
        found = lstsq(parts, b, method=method, rng=0).x
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [30, 31, 100, 200, 361])
def test_square_and_hardly_tall_matrices(method, n):
    A = matrix(n, 30, 10)
    b = right(A, 0.1) if n > 30 else vector(30, 2)
    found = odd_power(A, b, 1, method=method, rng=0)
    assert relative(found.x, exact(A, b, 1)) < 1e-10


@attainable
def test_sparse_and_tall():
    rng = np.random.default_rng(0)
    A = scipy.sparse.random_array(
        (20_000, 300), density=0.03, rng=rng, data_sampler=rng.standard_normal
    )
    A = scipy.sparse.csr_array(A @ scipy.sparse.diags_array(np.logspace(0, -4, 300)))
    b = rng.standard_normal(20_000)
    Q, R = np.linalg.qr(A.toarray())
    x = scipy.linalg.solve_triangular(R, Q.T @ b)
    found = lstsq(A, b, rng=1)
    assert found.method == "lsqr"
    assert relative(found.x, x) < 1e-13
    y = scipy.linalg.solve_triangular(R, x, trans="T")
    found = odd_power(A, b, 1, rng=1)
    assert found.method == "gram"  # for two systems the iterations would take longer
    assert relative(found.x, scipy.linalg.solve_triangular(R, y)) < 1e-12


# The preconditioner


@attainable
@pytest.mark.parametrize("method", METHODS)
def test_made_before_or_inside(method):
    A, b = matrix(2000, 70, 1e3), vector(2000, 1)
    inside = odd_power(A, b, 1, method=method, rng=5)
    sketched = Preconditioner.from_matrix(A, refine=False, rng=5)
    before = odd_power(A, b, 1, method=method, preconditioner=sketched)
    np.testing.assert_array_equal(before.x, inside.x)
    assert before.iterations == inside.iterations
    refined = Preconditioner.from_matrix(A, rng=6)
    found = odd_power(A, b, 1, method=method, preconditioner=refined)
    assert relative(found.x, inside.x) < 1e-9
    assert sketched.distortion > 0


@attainable
def test_the_same_seed_gives_the_same():
    A, b = matrix(2000, 70, 1e3), vector(2000, 1)
    for method in METHODS:
        one, other = (odd_power(A, b, 1, method=method, rng=3).x for _ in range(2))
        np.testing.assert_array_equal(one, other)
    generator = np.random.default_rng(3)
    np.testing.assert_array_equal(
        odd_power(A, b, 1, method=method, rng=generator).x, one
    )


def test_the_method_is_chosen():
    b = vector(2000, 0)
    for condition, method in ((10, "gram"), (1e5, "gram"), (1e8, "cholesky_qr")):
        A = matrix(2000, 9, condition)
        assert lstsq(A, b, rng=0).method == method
        assert lstsq([A[:500], A[500:]], b, rng=0).method == method
        sketched = Preconditioner.from_matrix(A, refine=False, rng=0)
        assert lstsq(A, b, preconditioner=sketched).method == method
    refined = Preconditioner.from_matrix(matrix(2000, 9, 10), rng=0)
    found = lstsq(matrix(2000, 9, 10), b, preconditioner=refined)
    assert found.method == "cholesky_qr"


def test_methods_are_named_by_what_ran():
    A, b = matrix(900, 30, 50), vector(900, 1)
    assert lstsq(A, b, method="lsqr", rng=0).method == "lsqr"
    assert solve_gram(A, b[:30], method="lsqr", rng=0).method == "cg"
    assert odd_power(A, b, 1, method="lsqr", rng=0).method == "lsqr, cg"
    for method in ("heavy_ball", "cg", "paper"):
        with pytest.raises(ValueError, match="auto, gram, cholesky_qr, lsqr"):
            lstsq(A, b, method=method)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 10, 30, 64, 65])
def test_few_columns_whose_sketches_may_be_bad(d):
    """The law of the singular values holds for many columns only."""
    A, b = matrix(1500, d, 10), vector(1500, 0)
    expected = np.linalg.solve(A.T @ A, np.linalg.lstsq(A, b)[0])
    for seed in range(10):
        found = odd_power(A, b, 1, method="lsqr", rng=seed)
        assert relative(found.x, expected) < 1e-10


def test_all_that_matters_may_be_in_few_rows():
    A = coherent(4096, 70)
    b = right(A, 1e-3)
    for method in METHODS:
        found = lstsq(A, b, method=method, rng=1)
        assert relative(found.x, np.linalg.lstsq(A, b)[0]) < 1e-8


# The guide's figures


@cache
def tall(condition):
    """A of 4096 rows, and its factors."""
    A = matrix(4096, 70, condition, seed=1)
    return A, *long_qr(A)


@pytest.mark.filterwarnings("ignore:x may be off:scipy.linalg.LinAlgWarning")
@pytest.mark.parametrize("level", [1e-10, 1e-3])
@pytest.mark.parametrize("condition", [1e4, 1e6, 1e8, 1e10])
def test_least_squares_have_the_digits_of_lapack(condition, level):
    """R4: within 10 times, in the median; the Gram matrix has no digits at 1e8."""
    A, Q, R = tall(condition)
    gram = scipy.linalg.cho_factor(A.T @ A) if condition <= 1e8 else None
    methods = ["cholesky_qr"] + ["gram"] * (condition <= 1e6)
    methods += ["lsqr"] * (condition <= 1e8)
    ratios, lost = [], []
    for seed in (0, 10, 20):
        b = right(A, level, seed)
        x = back_substitute(R, Q.T @ b)
        theirs = relative(np.linalg.lstsq(A, b)[0], x)
        ours = [relative(lstsq(A, b, method=m, rng=1).x, x) for m in methods]
        ratios.append(np.array(ours) / theirs)
        if condition == 1e8:
            lost.append(relative(scipy.linalg.cho_solve(gram, A.T @ b), x))
    assert not lost or max(lost) > 0.1
    assert (np.median(ratios, axis=0) < 10).all()
    assert (np.max(ratios, axis=0) < 30).all()


@pytest.mark.parametrize("method", ["auto", "cholesky_qr"])
@pytest.mark.parametrize("condition", [1e12, 1e13, 1e14])
def test_consistent_systems_have_the_digits_of_qr_up_to_the_last(condition, method):
    """The first answer is off by more than itself; corrections gain all the same."""
    for seed in range(3):
        A = matrix(400, 20, condition, seed=seed)
        b = A @ np.ones(20)
        Q, R = np.linalg.qr(A)
        theirs = np.abs(scipy.linalg.solve_triangular(R, Q.T @ b) - 1).max()
        found = lstsq(A, b, method=method, rng=0)
        assert np.abs(found.x - 1).max() < max(10 * theirs, 1e-5)
        assert np.linalg.norm(A @ found.x - b) < 1e-14 * np.linalg.norm(b)


@attainable
@pytest.mark.parametrize("method", METHODS)
def test_even_powers_of_a_condition_of_a_million(method):
    """R5 and R6."""
    A, b, *_ = problem(1e6)
    G = A.T @ A
    gram = scipy.linalg.cho_factor(G)
    y = b
    for j in range(1, 5):
        y, x = scipy.linalg.cho_solve(gram, y), truth(1e6, j)
        ours = relative(even_power(A, b, j, method=method, rng=1).x, x)
        assert ours < 1e-10
        assert relative(y, x) > 1e5 * ours
    assert relative(y, x) > 1e-6
    explicit = scipy.linalg.lstsq(np.linalg.matrix_power(G, 4), b)[0]
    assert relative(explicit, x) > 0.5


@attainable
@pytest.mark.parametrize("condition", [1e1, 1e3, 1e6, 1e8, 1e10])
def test_even_powers_have_the_digits_of_householder(condition):
    """R7: within 5 times, in the median over orders of the rows and over sketches."""
    A, b, *_ = problem(condition)
    seeds = range(5)
    shuffled = [np.random.default_rng(seed).permutation(A) for seed in seeds]
    factors = [np.linalg.qr(rows, mode="r") for rows in shuffled]
    answers = [b for _ in factors]
    for j in (1, 2, 4):
        for _ in range(1 if j < 4 else 2):
            answers = list(map(normal_equations, factors, answers))
        x = truth(condition, j)
        theirs = np.median([relative(answer, x) for answer in answers])
        for method in ["cholesky_qr", "lsqr"] + ["gram"] * (condition <= 1e6):
            found = [even_power(A, b, j, method=method, rng=seed) for seed in seeds]
            assert np.median([relative(each.x, x) for each in found]) < 5 * theirs


def normal_equations(R, y):
    """Solve R^T R x = y."""
    return scipy.linalg.solve_triangular(
        R, scipy.linalg.solve_triangular(R, y, trans="T")
    )


@attainable
@pytest.mark.parametrize("method", METHODS)
def test_odd_powers_of_a_condition_of_a_million(method):
    """R8."""
    A, _, c, *_ = problem(1e6)
    found = odd_power(A, c, 2, method=method, rng=1)
    assert relative(found.x, truth(1e6, 2, odd=True)) < 1e-8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("j", [1, 2, 3])
def test_the_guarantees_of_the_theorems(method, j):
    """R14: Theorems 1.4 and 1.5, for a condition of 20."""
    A, b, c = matrix(2000, 70, 20), vector(70, 1), vector(2000, 2)
    worst = np.linalg.svd(A, full_matrices=False)[2][0]
    powers = np.linalg.matrix_power(A.T @ A, j)
    optimum = np.linalg.norm(A @ np.linalg.lstsq(A, c)[0] - c)
    made = Preconditioner.from_matrix(A, oversampling=12, refine=False, rng=1)
    for tol in (1e-2, 1e-4, 1e-6):
        options = {"method": method, "tol": tol, "rng": 1}
        if method == "lsqr":
            options["preconditioner"] = made
        for y in (b, worst):
            even = even_power(A, y, j, **options)
            assert np.linalg.norm(powers @ even.x - y) <= tol * np.linalg.norm(y)
            assert even.residual <= tol
        odd = odd_power(A, c, j, **options)
        cost = np.linalg.norm(A @ (powers @ odd.x) - c)
        assert cost <= (1 + tol) * optimum + tol * np.linalg.norm(c)


# What is known about the answer


@quick
@given(seed=st.integers(0, 2**32 - 1), method=st.sampled_from(METHODS))
def test_the_error_estimate_is_seldom_too_small(seed, method):
    rng = np.random.default_rng(seed)
    A = matrix(600, int(rng.integers(2, 9)), 10 ** rng.uniform(0, 6), seed=seed)
    j = int(rng.integers(0, 4))
    b = right(A, 1.0, seed) if rng.random() < 0.5 else A @ vector(A.shape[1], seed)
    tol = 10 ** rng.uniform(-13, -2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        found = odd_power(A, b, j, tol=tol, method=method, rng=seed)
    assert relative(found.x, exact(A, b, j)) < 2 * found.error_estimate


@attainable
@pytest.mark.parametrize("method", METHODS)
def test_the_error_estimate_is_not_far_too_large(method):
    """The error itself depends on the BLAS: up to 3013 times have been seen."""
    for condition in (1e1, 1e3, 1e6):
        A, b, *_ = problem(condition)
        for j in (1, 4):
            runs = [even_power(A, b, j, method=method, rng=k) for k in range(3)]
            errors = [relative(found.x, truth(condition, j)) for found in runs]
            for found, error in zip(runs, errors, strict=True):
                assert error < found.error_estimate < 5000 * max(errors)


FILIP = """
0.8116 -6.860120914; 0.9072 -4.324130045; 0.9052 -4.358625055; 0.9039 -4.358426747;
0.8053 -6.955852379; 0.8377 -6.661145254; 0.8667 -6.355462942; 0.8809 -6.118102026;
0.7975 -7.115148017; 0.8162 -6.815308569; 0.8515 -6.519993057; 0.8766 -6.204119983;
0.8885 -5.853871964; 0.8859 -6.109523091; 0.8959 -5.79832982; 0.8913 -5.482672118;
0.8959 -5.171791386; 0.8971 -4.851705903; 0.9021 -4.517126416; 0.909 -4.143573228;
0.9139 -3.709075441; 0.9199 -3.499489089; 0.8692 -6.300769497; 0.8872 -5.953504836;
0.89 -5.642065153; 0.891 -5.031376979; 0.8977 -4.680685696; 0.9035 -4.329846955;
0.9078 -3.928486195; 0.7675 -8.56735134; 0.7705 -8.363211311; 0.7713 -8.107682739;
0.7736 -7.823908741; 0.7775 -7.522878745; 0.7841 -7.218819279; 0.7971 -6.920818754;
0.8329 -6.628932138; 0.8641 -6.323946875; 0.8804 -5.991399828; 0.7668 -8.781464495;
0.7633 -8.663140179; 0.7678 -8.473531488; 0.7697 -8.247337057; 0.77 -7.971428747;
0.7749 -7.676129393; 0.7796 -7.352812702; 0.7897 -7.072065318; 0.8131 -6.774174009;
0.8498 -6.478861916; 0.8741 -6.159517513; 0.8061 -6.835647144; 0.846 -6.53165267;
0.8751 -6.224098421; 0.8856 -5.910094889; 0.8919 -5.598599459; 0.8934 -5.290645224;
0.894 -4.974284616; 0.8957 -4.64454848; 0.9047 -4.290560426; 0.9129 -3.885055584;
0.9209 -3.408378962; 0.9219 -3.13200249; 0.7739 -8.726767166; 0.7681 -8.66695597;
0.7665 -8.511026475; 0.7703 -8.165388579; 0.7702 -7.886056648; 0.7761 -7.588043762;
0.7809 -7.283412422; 0.7961 -6.995678626; 0.8253 -6.691862621; 0.8602 -6.392544977;
0.8809 -6.067374056; 0.8301 -6.684029655; 0.8664 -6.378719832; 0.8834 -6.065855188;
0.8898 -5.752272167; 0.8964 -5.132414673; 0.8963 -4.811352704; 0.9074 -4.098269308;
0.9119 -3.66174277; 0.9228 -3.2644011
"""  # y and x of NIST's Filip


def everyday(name, rng):
    """A and b of regressions whose columns differ in length by 3 to 11 orders."""
    years, days = np.arange(1960.0, 2021), 1.6e9 + 86400 * np.arange(365.0)
    if name == "filip":
        table = np.array([row.split() for row in FILIP.split(";")], float)
        return table[:, 1:] ** np.arange(11), table[:, 0]
    if name == "line in years":
        columns, b = [years], 14 + 0.02 * (years - 1990)
    elif name == "quadratic in years":
        columns, b = [years, years**2], 14 + 0.02 * (years - 1990)
    elif name == "line in unix seconds":
        columns, b = [days], 20 + 1e-7 * (days - days[0])
    elif name == "integers near 2^32":
        columns = [2.0**32 + rng.integers(0, 1000, 300)]
        b = (columns[0] - 2**32) / 100
    else:
        columns = [rng.uniform(30, 200, 500), rng.lognormal(10.5, 0.5, 500)]
        b = 2000 * columns[0] + 1.5 * columns[1]
    A = np.column_stack([np.ones(len(b)), *columns])
    return A, b + 0.2 * b.std() * rng.standard_normal(len(b))


def true_errors(x, A, b, j=0):
    """The errors of the entries of x, and the relative one, without rounding."""
    truth = ExactGram(A).solve(exact_product(A, b), j + 1)
    errors = [float(abs(one - exact)) for one, exact in zip(x, truth, strict=True)]
    return np.array(errors), relative_error(x, truth)


@pytest.mark.parametrize("method", ["auto", "cholesky_qr", "lsqr"])
@pytest.mark.parametrize(
    "name",
    [
        "line in years",
        "quadratic in years",
        "line in unix seconds",
        "integers near 2^32",
        "square metres and income",
        "filip",
    ],
)
def test_the_error_estimate_of_everyday_regressions(name, method):
    """Between the truth and a hundred times as much, for each coefficient too.

    Rounding errors may cancel by luck: the factor is the median of nine draws.
    """
    ratios = []
    for seed in range(9):
        A, b = everyday(name, np.random.default_rng(seed))
        found = lstsq(A, b, method=method, rng=seed)
        errors, error = true_errors(found.x, A, b)
        assert error < found.error_estimate
        assert (errors < found.coefficient_errors).all()
        ratios.append([found.error_estimate / error])
        ratios[-1] += list(found.coefficient_errors / errors)
    assert (np.median(ratios, axis=0) < (100 if method == "auto" else 300)).all()
    if name == "filip":
        certified = [-1467.4896142298, -2772.17959193342, -2316.37108160893]
        np.testing.assert_allclose(found.x[:3], certified, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
@pytest.mark.parametrize("method", METHODS)
def test_the_error_estimate_does_not_depend_on_the_lengths_of_columns(method):
    """Nor is it below the truth where digits cancel, as in integers near 2^30."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A = matrix(600, 5, 10 ** rng.uniform(0, 6), seed=seed)
        if seed % 2 and method != "gram":
            A = np.round(A / abs(A).max(axis=0) * 2**10) + 2.0**30
        b, scales = (
            A @ vector(5, seed) + vector(600, seed),
            2.0 ** rng.integers(-30, 30, 5),
        )
        found = lstsq(A, b, method=method, rng=seed)
        scaled = lstsq(A * scales, b, method=method, rng=seed)
        ratio = scaled.coefficient_errors * scales / found.coefficient_errors
        assert (abs(np.log10(ratio)) < 1).all()
        for one, B in (found, A), (scaled, A * scales):
            errors, error = true_errors(one.x, B, b)
            assert error < one.error_estimate
            assert (errors < one.coefficient_errors).all()


@attainable
@pytest.mark.parametrize("method", ["cholesky_qr", "lsqr"])
def test_coefficient_errors_of_powers_weights_and_columns(method):
    A, B = matrix(300, 5, 1e3) * np.logspace(0, -8, 5), vector((300, 2), 1)
    found = odd_power(A, B, 1, method=method, rng=0)
    assert found.coefficient_errors.shape == (5, 2)
    for k in range(2):
        errors, _ = true_errors(found.x[:, k], A, B[:, k], 1)
        assert (errors < found.coefficient_errors[:, k]).all()
        assert (found.coefficient_errors[:, k] < 1e5 * errors).all()
    C = np.linalg.cholesky(matrix(5, 5, 4, seed=3) @ matrix(5, 5, 4, seed=3).T)
    A = matrix(300, 5, 1e3)
    found = odd_power(A, B, 1, weight=C @ C.T, method=method, rng=0)
    expected = C @ odd_power(A @ C, B, 1, method=method, rng=1).x
    assert (abs(found.x - expected) < 2 * found.coefficient_errors).all()


@pytest.mark.parametrize("method", ["auto", "cholesky_qr", "lsqr"])
def test_an_answer_without_digits_is_a_warning(method):
    A = matrix(400, 20, 1e15)
    with pytest.warns(LinAlgWarning, match=r"x may be off by \d+% .*add a ridge"):
        lstsq(A, A @ np.ones(20), method=method, rng=0)


@pytest.mark.parametrize("condition", [1e11, 1e12, 1e13])
def test_restarts_of_lsqr_find_the_digits_that_one_run_loses(condition):
    """One run leaves a residual of 1e-11 of b here, and x without a digit."""
    for seed in range(3):
        A = matrix(400, 20, condition, seed=seed)
        found = lstsq(A, A @ np.ones(20), method="lsqr", rng=0)
        assert found.residual < 1e-14
        assert np.abs(found.x - 1).max() < 1e3 * UNIT * condition


@attainable
@pytest.mark.filterwarnings("ignore:x may be off:scipy.linalg.LinAlgWarning")
def test_the_worst_right_hand_side_is_known_to_be():
    """The top singular vector has no digits if those of any power do not exist."""
    A, *_ = problem(1e6)
    worst = np.linalg.svd(A, full_matrices=False)[2][0]
    for j in (1, 2, 4):
        assert even_power(A, worst, j, rng=1).error_estimate > 1e-5
    assert even_power(A, worst, 4, rng=1).error_estimate > 0.1


@pytest.mark.parametrize("j", [1, 2, 3])
@pytest.mark.parametrize("function", [even_power, odd_power])
def test_it_warns_where_the_measured_residual_exceeds_the_tolerance(function, j):
    A = matrix(800, 5, 100)
    b = vector(5, 1) if function is even_power else right(A, 1.0)
    R = Preconditioner.from_matrix(A, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        found = function(A, b, j, preconditioner=R)
        first = lstsq(A, b, preconditioner=R).x if function is odd_power else 0
    x = found.x
    for _ in range(j):
        x = R.R.T @ (R.R @ x)
    excess = np.linalg.norm(A @ (x - first) if function is odd_power else x - b)
    excess /= np.linalg.norm(b)
    with pytest.warns(LinAlgWarning, match="x leaves a residual") as caught:
        function(A, b, j, preconditioner=R, tol=excess / 3)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    shown = float(re.search("residual of ([-0-9.e]+) of b", str(caught[0].message))[1])
    assert shown == pytest.approx(excess, rel=0.5)
    function(A, b, j, preconditioner=R, tol=min(3 * excess, 0.9))


@pytest.mark.parametrize("condition", [6, 30, 100])
@pytest.mark.parametrize("method", METHODS)
def test_it_does_not_warn_where_the_residual_is_below_the_tolerance(condition, method):
    """Warnings are errors here."""
    A, b = matrix(1000, 20, condition), vector(20, 3)
    for j, tol in ((1, 1e-12), (2, 1e-8)):
        found = even_power(A, b, j, tol=tol, method=method, rng=0)
        assert found.residual < tol
        assert found.error_estimate < max(tol, 1e-11)


@attainable
def test_an_enormous_power_is_no_overflow():
    A = matrix(100, 4, 1e12)
    with pytest.raises(ValueError, match="beyond the range"):
        even_power(A, np.ones(4), 40, rng=0)


def test_what_does_not_arrive_says_so():
    """A preconditioner that is quite wrong."""
    A = matrix(4096, 70, 10)
    b = vector(4096, 0)
    wrong = Preconditioner.from_matrix(A * np.linspace(0.5, 2, 70), rng=0)
    with pytest.warns(LinAlgWarning, match="residuals of up to") as caught:
        lstsq(A, b, method="cholesky_qr", preconditioner=wrong)
    assert caught[0].filename == __file__


@attainable
@pytest.mark.parametrize("method", ["cholesky_qr", "lsqr"])
def test_rounding_is_no_failure_to_arrive(method):
    for condition in (1e8, 1e12):
        A = matrix(2000, 70, condition)
        made = Preconditioner.from_matrix(
            A, oversampling=20, refine=False, rng=0
        ).refined(A)
        found = odd_power(A, vector(2000, 0), 2, method=method, preconditioner=made)
        assert max(found.iterations) <= 60


# Scales


@attainable
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-150, 1e-80, 1e80, 1e150])
def test_scales_near_the_end_of_the_range(method, scale):
    A, b, y = matrix(600, 8, 30), vector(600, 1), vector(8, 2)
    for function, right_hand, power, digits in (
        (lstsq, b, 1, 1e-11),
        (solve_gram, y, 2, 1e-11),
        (lambda *a, **k: odd_power(*a, 1, **k), b, 3, 1e-11),
        (lambda *a, **k: even_power(*a, 3, **k), y, 6, 1e-11),
    ):
        expected = function(A, right_hand, method=method, rng=0)
        if abs(power * np.log10(scale)) < 301:
            found = function(scale * A, right_hand, method=method, rng=0)
            assert relative(found.x * scale**power, expected.x) < digits
            assert 0.2 < found.error_estimate / expected.error_estimate < 5
            assert found.residual == pytest.approx(expected.residual, abs=1e-7)
        else:
            with pytest.raises(ValueError, match="beyond the range"):
                function(scale * A, right_hand, method=method, rng=0)
        found = function(A, scale**1.9 * right_hand, method=method, rng=0)
        assert relative(found.x / scale**1.9, expected.x) < digits
        assert found.residual == pytest.approx(expected.residual, abs=1e-7)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("power", [-990, 990])
def test_scales_at_the_end_of_the_range(method, power):
    A, b = matrix(600, 8, 30), vector(600, 1)
    expected = lstsq(A, b, method=method, rng=0)
    found = lstsq(np.ldexp(A, power), b, method=method, rng=0)
    assert relative(np.ldexp(found.x, power), expected.x) < 1e-11
    for function in solve_gram, lambda *a, **k: odd_power(*a, 1, **k):
        right_hand = b if function is not solve_gram else b[:8]
        with pytest.raises(ValueError, match="beyond the range"):
            function(np.ldexp(A, power), right_hand, method=method, rng=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("decades", [40, 160])
def test_columns_of_very_different_scales(method, decades):
    A, b = matrix(500, 8, 10), vector(500, 1)
    scales = np.logspace(0, -decades, 8)
    found = lstsq(A * scales, b, method=method, rng=0)
    np.testing.assert_allclose(found.x * scales, np.linalg.lstsq(A, b)[0], rtol=1e-12)


@quick
@given(seed=st.integers(0, 2**32 - 1), powers=st.integers(-40, 40))
def test_powers_of_two_change_no_digit(seed, powers):
    A, b = matrix(90, 5, 20, seed=seed), vector(90, seed)
    one = odd_power(A, b, 1, method="cholesky_qr", rng=seed).x
    other = odd_power(A, b * 2.0**powers, 1, method="cholesky_qr", rng=seed).x
    np.testing.assert_array_equal(other, one * 2.0**powers)


# What is refused


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.full((50, 3), np.nan)}, "NaN or an infinity in rows 0 to 49"),
        ({"A": np.ones((2, 3)), "b": np.ones(2)}, "2 rows and 3 columns"),
        ({"A": np.ones((50, 3), complex)}, "complex"),
        ({"A": np.ones(50)}, "shape"),
        ({"b": np.ones(49)}, r"b has 49 entries, A shape \(50, 3\): it must have 50"),
        ({"b": np.full(50, np.inf)}, "b must be real and finite"),
        ({"b": np.ones(50, complex)}, "complex"),
        ({"b": np.ones((50, 0))}, "several as columns"),
        ({"b": np.ones((50, 1, 1))}, "several as columns"),
        ({"tol": 0}, "tol"),
        ({"tol": 1}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"method": "magic"}, "magic"),
        ({"A": (np.ones((5, 3)) for _ in range(10))}, "A generator gives"),
    ],
)
def test_what_cannot_be_solved_is_refused(method, change, message):
    options = {"A": matrix(50, 3, 5), "b": np.ones(50), "method": method} | change
    with pytest.raises(ValueError, match=message):
        lstsq(**options)


@pytest.mark.parametrize("method", METHODS)
def test_dependent_columns_are_named(method):
    A = matrix(500, 8, 10)
    with pytest.raises(np.linalg.LinAlgError, match=r"rank 8 .* columns \[\d\]"):
        lstsq(np.column_stack([A, A[:, 3]]), vector(500, 0), method=method, rng=0)


def test_right_hand_sides_of_the_wrong_kind_of_power():
    A = matrix(50, 3, 5)
    with pytest.raises(ValueError, match="must have 3"):
        solve_gram(A, np.ones(50))
    with pytest.raises(ValueError, match="must have 50"):
        odd_power(A, np.ones(3), 1)


@pytest.mark.parametrize("j", [-1, 1.0, "1", None, True, np.array([1])])
@pytest.mark.parametrize("function", [even_power, odd_power])
def test_the_power_is_an_integer(function, j):
    with pytest.raises(ValueError, match="power j"):
        function(matrix(50, 3, 5), np.ones(3 if function is even_power else 50), j)
    function(matrix(50, 3, 5), np.ones(3 if function is even_power else 50), np.int8(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": np.ones((3, 2))}, r"shape \(3, 3\)"),
        ({"weight": np.eye(4)}, r"shape \(3, 3\)"),
        ({"weight": np.eye(3, dtype=complex)}, "complex"),
        ({"weight": np.diag([1, np.nan, 1])}, "weight W must be a real and finite"),
        ({"weight": np.arange(9.0).reshape(3, 3)}, "symmetric"),
        ({"weight": np.eye(3), "j": 2}, "j = 1"),
        ({"weight": np.eye(3), "A": [matrix(50, 3, 5)]}, "j = 1"),
    ],
)
def test_weights_that_are_none(options, message):
    options = {"A": matrix(50, 3, 5), "b": np.ones(50), "j": 1} | options
    with pytest.raises(ValueError, match=message):
        odd_power(**options)


def test_weights_of_small_integers():
    A, b, W = matrix(50, 2, 5), vector(50, 0), np.array([[120, -60], [-60, 120]])
    expected = odd_power(A, b, 1, weight=W.astype(float), rng=0).x
    narrow = odd_power(A, b, 1, weight=W.astype(np.int8), rng=0).x
    np.testing.assert_array_equal(narrow, expected)
    unit = odd_power(A, b, 1, weight=np.eye(2, dtype=bool), rng=0).x
    np.testing.assert_allclose(unit, odd_power(A, b, 1, rng=0).x, rtol=1e-12)
    with pytest.raises(ValueError, match="symmetric"):
        odd_power(A, b, 1, weight=np.array([[100, -128], [0, 127]], np.int8))


def test_an_indefinite_weight():
    W = np.diag([1.0, -2, 1])
    with pytest.raises(np.linalg.LinAlgError, match=r"weight W .* eigenvalue is -2\.0"):
        odd_power(matrix(50, 3, 5), np.ones(50), 1, weight=W, rng=0)


def test_a_gram_matrix_without_digits():
    A = matrix(500, 8, 1e12)
    with pytest.raises(np.linalg.LinAlgError, match='Take method="cholesky_qr"'):
        lstsq(A, vector(500, 0), method="gram", rng=0)


def test_a_preconditioner_of_another_width():
    made = Preconditioner.from_matrix(matrix(50, 4, 5), rng=0)
    with pytest.raises(ValueError, match="of 4 columns; A has 3"):
        lstsq(matrix(50, 3, 5), np.ones(50), preconditioner=made)
    with pytest.raises(ValueError, match="of 4 columns; A has 3"):
        paper.even_power(matrix(50, 3, 5), np.ones(3), 1, preconditioner=made)


@pytest.mark.parametrize("method", ["auto", "cholesky_qr", "lsqr"])
@pytest.mark.parametrize("oversampling", [4, 20])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_are_none_beside_a_preconditioner(method, oversampling, wrong):
    A = matrix(50, 3, 5)
    made = Preconditioner.from_matrix(A, oversampling=oversampling, rng=0)
    A[3, 2] = wrong
    for function, right_hand in (lstsq, np.ones(50)), (solve_gram, np.ones(3)):
        with pytest.raises(ValueError, match="NaN or an infinity in rows 0 to 49"):
            function(A, right_hand, method=method, preconditioner=made)


@pytest.mark.parametrize("d", [300, 17000])
def test_sparse_and_wide(d):
    A = scipy.sparse.random_array((10, d), density=0.01, rng=0, format="csr")
    with pytest.raises(ValueError, match=f"10 rows and {d} columns"):
        lstsq(A, np.ones(10), rng=0)


@pytest.mark.parametrize("small", [1e-3, 1e-5, 1e-7, 1e-9])
def test_a_sparse_matrix_shows_no_direction_that_b_hides(small):
    rng = np.random.default_rng(0)
    S = scipy.sparse.random_array((4000, 200), density=0.1, rng=rng).tocsr()
    other = scipy.sparse.random_array((4000, 1), density=0.1, rng=rng)
    A = scipy.sparse.hstack([S, S[:, :1] + small * other]).tocsr()
    x = rng.standard_normal(201)
    found = lstsq(A, A @ x, rng=0)
    condition = np.linalg.cond(A.toarray())
    assert relative(found.x, x) < 100 * np.finfo(float).eps * condition
    assert found.condition > condition / 10
    assert found.error_estimate > relative(found.x, x)


def test_sparse_right_hand_sides_and_weights_are_named():
    A = matrix(30, 4, 2)
    with pytest.raises(ValueError, match=r"b is sparse.*b\.toarray"):
        lstsq(A, scipy.sparse.csr_array(np.ones((30, 1))))
    with pytest.raises(ValueError, match=r"W is sparse.*weight\.toarray"):
        odd_power(A, np.ones(30), 1, weight=scipy.sparse.eye_array(4))
