from functools import cache

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from simlib.regression import Preconditioner, even_power, lstsq, odd_power, solve_gram
from study import as_printed as paper
from support.matrices import quick
from support.regression import (
    attainable,
    back_substitute,
    long_qr,
    matrix,
    normal,
    problem,
    relative,
    right,
    truth,
)

METHODS = ["auto", "gram", "cholesky_qr", "lsqr"]


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
    odd = odd_power(A, B, j, method=method, rng=seed)
    powers = np.linalg.matrix_power(G, j)
    np.testing.assert_allclose(odd.x, expected, atol=1e-9)
    left = np.linalg.norm(A @ (powers @ odd.x) - B, axis=0)
    share = (left / np.linalg.norm(B, axis=0)).max()
    assert odd.residual == pytest.approx(share, abs=1e-9)
    assert len(odd.iterations) == len(odd.preconditioned_residuals) == j + 1
    even = even_power(A, Y, j, method=method, rng=seed)
    np.testing.assert_allclose(powers @ even.x, Y, atol=1e-9)
    assert even.residual < 1e-10


@pytest.mark.parametrize("method", METHODS)
def test_the_power_0_is_least_squares_and_1_the_gram_matrix(method):
    A, b = matrix(900, 12, 30), normal(900, seed=1)
    options = {"method": method, "rng": 4}
    least, odd = lstsq(A, b, **options), odd_power(A, b, 0, **options)
    np.testing.assert_array_equal(least.x, odd.x)
    np.testing.assert_allclose(least.x, np.linalg.lstsq(A, b)[0], rtol=1e-10)
    gram, even = solve_gram(A, b[:12], **options), even_power(A, b[:12], 1, **options)
    np.testing.assert_array_equal(gram.x, even.x)
    np.testing.assert_allclose(A.T @ (A @ gram.x), b[:12], atol=1e-11)
    for kind in A, scipy.sparse.csr_array(A):
        nothing = even_power(kind, b[:12], 0, method=method, rng=4)
        np.testing.assert_array_equal(nothing.x, b[:12])
    assert not np.shares_memory(nothing.x, b)


@pytest.mark.parametrize("method", METHODS)
def test_the_solution_may_be_exactly_zero(method):
    """Columns of a Hadamard matrix: the first right-hand side is orthogonal to both."""
    nothing = solve_gram(np.eye(3, 2), np.zeros((2, 2)), method=method, rng=0)
    assert not nothing.x.any()
    assert nothing.residual == nothing.error_estimate == 0
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
    A, b = matrix(400, 6, 5), normal(400, seed=1)
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
    A, b = matrix(60, 4, 3), normal(60, seed=0)
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
    A, b = matrix(300, 4, 3), normal(300, seed=0)
    expected = lstsq([A[:50], A[50:]], b, method=method, rng=0).x
    sparse = scipy.sparse.csr_array((0, 4))
    for parts in ([A[:0], A[:50], A[50:50], A[50:]], [A[:50], sparse, A[50:]]):
        found = lstsq(parts, b, method=method, rng=0).x
        np.testing.assert_array_equal(found, expected)


# The preconditioner


def test_the_method_is_chosen():
    b = normal(2000, seed=0)
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
    A, b = matrix(900, 30, 50), normal(900, seed=1)
    assert lstsq(A, b, method="lsqr", rng=0).method == "lsqr"
    assert solve_gram(A, b[:30], method="lsqr", rng=0).method == "cg"
    assert odd_power(A, b, 1, method="lsqr", rng=0).method == "lsqr, cg"
    for method in ("heavy_ball", "cg", "paper"):
        told = f"auto, gram, cholesky_qr, lsqr; got '{method}'"
        with pytest.raises(ValueError, match=told):
            lstsq(A, b, method=method)


@cache
def tall(condition):
    """A of 4096 rows, and its factors."""
    A = matrix(4096, 70, condition, seed=1)
    return A, *long_qr(A)


@pytest.mark.filterwarnings("ignore:x may be off:scipy.linalg.LinAlgWarning")
@pytest.mark.parametrize("level", [1e-10, 1e-3])
@pytest.mark.parametrize("condition", [1e4, 1e6, 1e8, 1e10])
def test_least_squares_have_the_digits_of_lapack(condition, level):
    """Within 10 times, in the median."""
    A, Q, R = tall(condition)
    methods = ["cholesky_qr"] + ["gram"] * (condition <= 1e6)
    methods += ["lsqr"] * (condition <= 1e8)
    ratios = []
    for seed in (0, 10, 20):
        b = right(A, level, seed)
        x = back_substitute(R, Q.T @ b)
        theirs = relative(np.linalg.lstsq(A, b)[0], x)
        ours = [relative(lstsq(A, b, method=m, rng=1).x, x) for m in methods]
        ratios.append(np.array(ours) / theirs)
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
@pytest.mark.parametrize("condition", [1e1, 1e3, 1e6, 1e8, 1e10])
def test_even_powers_have_the_digits_of_householder(condition):
    """Within 5 times, in the median over orders of the rows and over sketches."""
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
@pytest.mark.parametrize("scale", [1e-150, 1e-80, 1e80, 1e150])
def test_scales_near_the_end_of_the_range(method, scale):
    A, b, y = matrix(600, 8, 30), normal(600, seed=1), normal(8, seed=2)
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
    A, b = matrix(600, 8, 30), normal(600, seed=1)
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
    A, b = matrix(500, 8, 10), normal(500, seed=1)
    scales = np.logspace(0, -decades, 8)
    found = lstsq(A * scales, b, method=method, rng=0)
    np.testing.assert_allclose(found.x * scales, np.linalg.lstsq(A, b)[0], rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.full((50, 3), np.nan)}, "NaN or an infinity in rows 0 to 49"),
        ({"A": np.ones((2, 3)), "b": np.ones(2)}, "2 rows and 3 columns"),
        ({"b": np.ones(49)}, r"shape \(50,\) or .* for an A of shape \(50, 3\); got"),
        ({"b": np.full(50, np.inf)}, "b must be real and finite"),
        ({"b": scipy.sparse.csr_array(np.ones((50, 1)))}, "b must be an array.*toarr"),
        ({"b": np.ones((50, 0))}, "b must have shape"),
        ({"tol": 0}, "tol"),
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
        lstsq(np.column_stack([A, A[:, 3]]), normal(500, seed=0), method=method, rng=0)


@pytest.mark.parametrize("j", [-1, 1.5, "1", None, True, np.array([1])])
@pytest.mark.parametrize("function", [even_power, odd_power])
def test_the_power_is_an_integer(function, j):
    with pytest.raises((ValueError, TypeError), match="power j"):
        function(matrix(50, 3, 5), np.ones(3 if function is even_power else 50), j)
    function(matrix(50, 3, 5), np.ones(3 if function is even_power else 50), np.int8(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": np.ones((3, 2))}, r"shape \(3, 3\)"),
        ({"weight": np.eye(4)}, r"shape \(3, 3\)"),
        ({"weight": np.eye(3, dtype=complex)}, "complex"),
        ({"weight": np.diag([1, np.nan, 1])}, "weight W must be real and finite"),
        ({"weight": np.arange(9.0).reshape(3, 3)}, "symmetric"),
        ({"weight": np.eye(3), "j": 2}, "j = 1"),
        ({"weight": np.eye(3), "A": [matrix(50, 3, 5)]}, "j = 1"),
        ({"weight": scipy.sparse.eye_array(3)}, r"W must be an array.*toarray"),
        ({"weight": np.diag([1.0, -2, 1])}, r"weight W .* eigenvalue is -2\.0"),
    ],
)
def test_weights_that_are_none(options, message):
    options = {"A": matrix(50, 3, 5), "b": np.ones(50), "j": 1} | options
    with pytest.raises((ValueError, np.linalg.LinAlgError), match=message):
        odd_power(**options)


def test_weights_of_small_integers():
    A, b, W = matrix(50, 2, 5), normal(50, seed=0), np.array([[120, -60], [-60, 120]])
    expected = odd_power(A, b, 1, weight=W.astype(float), rng=0).x
    narrow = odd_power(A, b, 1, weight=W.astype(np.int8), rng=0).x
    np.testing.assert_array_equal(narrow, expected)
    unit = odd_power(A, b, 1, weight=np.eye(2, dtype=bool), rng=0).x
    np.testing.assert_allclose(unit, odd_power(A, b, 1, rng=0).x, rtol=1e-12)
    with pytest.raises(ValueError, match="symmetric"):
        odd_power(A, b, 1, weight=np.array([[100, -128], [0, 127]], np.int8))


def test_a_gram_matrix_without_digits():
    A = matrix(500, 8, 1e12)
    with pytest.raises(np.linalg.LinAlgError, match='Take method="cholesky_qr"'):
        lstsq(A, normal(500, seed=0), method="gram", rng=0)


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


def test_a_weight_is_symmetric_in_its_light_part_too():
    W = np.array([[1, 9e-9], [0, 1e-9]])
    with pytest.raises(ValueError, match="must be symmetric"):
        odd_power(np.eye(4, 2), np.arange(4.0), 1, weight=W)
