import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsmr

from simlib.regression import even_power, least_squares, lstsq, odd_power, solve_gram
from simlib.regression.gram import condition_of_rows, gram_matrix, gram_preconditioner
from simlib.regression.rows import gap_and_back
from support.matrices import quick
from support.regression import attainable, matrix, normal, relative


def sparse(n, d, entries, closeness=1.0, *, seed=0):
    """Random places in a row; the columns of a pair differ by `closeness`, or more."""
    rng = np.random.default_rng(seed)
    half = entries // 2
    places = np.repeat(np.arange(n), half), rng.integers(d // 2, size=half * n)
    first, second = (
        csr_array((rng.standard_normal(half * n), places), shape=(n, d // 2))
        for _ in range(2)
    )
    second.data *= np.geomspace(1, closeness, d // 2)[second.indices]
    return csr_array(scipy.sparse.hstack([first, first + second]))


EASY = sparse(12000, 1200, 8)
WIDER = sparse(16000, 2000, 8)


# The triangle of A^T A


@quick
@given(
    seed=st.integers(0, 2**32 - 1), d=st.integers(1, 12), power=st.integers(-900, 900)
)
def test_the_triangle_is_that_of_qr(seed, d, power):
    A = matrix(60, d, 10, seed=seed)
    R, reciprocal = gram_preconditioner(np.ldexp(A, power))
    theirs = np.linalg.qr(A, mode="r")
    theirs *= np.sign(np.diag(theirs))[:, None]
    np.testing.assert_allclose(np.ldexp(R.R, -power), theirs, atol=1e-13)
    assert R.condition == pytest.approx(np.linalg.cond(A), rel=1e-9)
    assert 1 / reciprocal < 1e5


def test_singular_to_rounding():
    A = matrix(500, 8, 10)
    for B in np.column_stack([A, A[:, 3]]), A * ([1] * 7 + [0]), A[:5]:
        assert gram_preconditioner(B) is None


@pytest.mark.parametrize("method", ["auto", "gram", "cholesky_qr"])
@pytest.mark.parametrize("power", [-1030, -1060, 1018])
def test_columns_out_of_range_are_refused_by_name(power, method):
    """Whose norms, or the inverses, are no numbers of full precision."""
    A = np.random.default_rng(0).integers(1, 5, (40, 2)) * [1.0, np.ldexp(1.0, power)]
    for B in A, [A[:10], A[10:]], csr_array(A):
        with pytest.raises(ValueError, match=r"Column 1 of A has a norm of .*Divide A"):
            lstsq(B, np.ones(40), method=method, rng=0)


def test_what_is_masked_is_not_read():
    A = np.ma.masked_equal(normal(40, 2), 0)
    assert lstsq(A, np.ones(40), rng=0).method == "gram"
    A[3, 1] = np.ma.masked
    for B in A, [A[:2], A[2:]]:
        with pytest.raises(ValueError, match="some are masked"):
            lstsq(B, np.ones(40), rng=0)


def test_the_norm_of_many_columns_is_estimated_from_below():
    for A in matrix(1600, 520, 1e4), normal(1600, 520):
        R, _ = gram_preconditioner(A)
        values = scipy.linalg.svdvals(A)
        assert 0.85 * values[0] < R.norm <= 1.001 * values[0]
        assert R.condition / R.norm == pytest.approx(1 / values[-1], rel=0.1)


def test_some_rows_hint_at_the_condition():
    rng = np.random.default_rng(0)
    for condition in (1e1, 1e8):
        found = condition_of_rows(matrix(4000, 20, condition), rng)
        assert condition / 30 < found < 30 * condition
    assert condition_of_rows(matrix(100, 20, 1e8), rng) == 1
    assert (
        condition_of_rows(np.vstack([np.eye(20)] + [np.zeros((20, 20))] * 50), rng)
        == np.inf
    )


# Corrections


@attainable
@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6])
def test_corrected_the_gram_matrix_has_the_digits_of_qr(condition):
    A, b = matrix(2000, 30, condition), normal(30, seed=1)
    reads = []

    class Counted:
        def __iter__(self):
            reads.append(1)
            return iter([A])

    R = np.linalg.qr(A, mode="r")
    for j in (1, 4):
        x = b
        for _ in range(j):
            x = scipy.linalg.solve_triangular(R, x, trans="T")
            x = scipy.linalg.solve_triangular(R, x)
        reads.clear()
        found = even_power(Counted(), b, j, method="gram", rng=0)
        # shapes twice, A^T A, and two for each correction and for the measuring
        assert len(reads) <= 3 + 2 * (3 if condition <= 1e4 else 5)
        assert relative(found.x, x) < condition * 1e-14


# Sparse A


@pytest.fixture
def never_dense(monkeypatch):
    """No method may turn a sparse matrix of 12000 rows into an array."""
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_array):
        plain = kind.toarray

        def toarray(self, *args, plain=plain, **options):
            assert self.shape[0] < 12000, "made dense"
            return plain(self, *args, **options)

        monkeypatch.setattr(kind, "toarray", toarray)


@pytest.mark.parametrize(
    ("closeness", "method"), [(1.0, "lsqr"), (1e-4, "gram"), (1e-9, "lsqr")]
)
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_sparse_matrices_are_never_made_dense(never_dense, closeness, method, noise):
    A, rng = sparse(12000, 1200, 8, closeness), np.random.default_rng(1)
    x = rng.standard_normal(1200)
    b = A @ x + noise * rng.standard_normal(12000)
    found = lstsq(A, b, rng=0)
    assert found.method == method
    left = A.T @ (A @ found.x - b)
    size = scipy.sparse.linalg.norm(A)
    scale = size * (np.linalg.norm(b) + size * np.linalg.norm(found.x))
    assert np.linalg.norm(left) < 1e-14 * scale
    if not noise:
        assert relative(found.x, x) < found.error_estimate < 1e-4
        theirs = lsmr(A, b, atol=1e-15, btol=1e-15, conlim=0, maxiter=1000)[0]
        assert relative(found.x, x) < 10 * relative(theirs, x) + 1e-15


@pytest.mark.slow
def test_sparse_powers(never_dense):
    A, b = WIDER, normal(2000, seed=1)
    G = (A.T @ A).todense()
    expected = np.linalg.solve(G, np.linalg.solve(G, b))
    found = even_power(A, b, 2, tol=1e-9, rng=0)
    assert found.method == "cg"
    assert relative(found.x, expected) < 1e-12
    c = normal(16000, seed=2)
    found = odd_power(A, c, 1, tol=1e-9, rng=0)
    assert found.method == "lsqr, cg"
    expected = np.linalg.solve(G, np.linalg.solve(G, A.T @ c))
    assert relative(found.x, expected) < 1e-12
    condition = np.linalg.cond(G) ** 0.5
    assert 0.99 * condition < found.condition < 4 * condition


@pytest.mark.parametrize("scale", [1e-150, 1e150, 1e-300, 1e300])
def test_sparse_scales(scale):
    b = normal(12000, seed=1)
    expected = lstsq(EASY, b, rng=0)
    found = lstsq(EASY * scale, b, rng=0)
    assert found.method == "lsqr"
    assert relative(found.x * scale, expected.x) < 1e-13
    assert found.condition == pytest.approx(expected.condition)
    found = lstsq(EASY, b * scale, rng=0)
    assert relative(found.x / scale, expected.x) < 1e-13


def test_sparse_right_hand_sides_and_rows_of_nothing():
    A = csr_array(scipy.sparse.vstack([WIDER, csr_array((500, 2000))]))
    B = normal(16500, 3, seed=1)
    B[:, 1] = 0
    B[:, 2] = A @ np.ones(2000)
    found = lstsq(A.astype(np.float32), B, rng=0)
    assert found.method == "lsqr"
    found = lstsq(A, B, rng=0)
    np.testing.assert_array_equal(found.x[:, 1], 0)
    np.testing.assert_allclose(found.x[:, 2], 1, atol=1e-13)
    gram = (WIDER.T @ WIDER).toarray()  # of a small condition number
    expected = np.linalg.solve(gram, WIDER.T @ B[:16000, 0])
    np.testing.assert_allclose(found.x[:, 0], expected, atol=1e-13)
    nothing = lstsq(A, np.zeros(16500), rng=0)
    assert not nothing.x.any()
    assert nothing.residual == nothing.error_estimate == 0


@pytest.mark.slow
def test_sparse_columns_that_are_missing_or_repeated():
    empty = csr_array(scipy.sparse.hstack([EASY, csr_array((12000, 1))]))
    b = normal(12000, seed=1)
    with pytest.raises(np.linalg.LinAlgError, match="Column 1200 of A is zero"):
        lstsq(empty, b, rng=0)
    twice = csr_array(scipy.sparse.hstack([EASY, EASY[:, [3]]]))
    found = lstsq(twice, b, rng=0)  # the x that is shortest in units of the columns
    assert found.x[3] == pytest.approx(found.x[1200])
    assert np.linalg.norm(twice.T @ (twice @ found.x - b)) < 1e-11
    with pytest.raises(np.linalg.LinAlgError, match="rank 1200"):
        solve_gram(twice, normal(1201, seed=1), rng=0)
    with pytest.raises(ValueError, match="1200 rows and 12000 columns"):
        lstsq(EASY.T, normal(1200, seed=1), rng=0)


def test_equal_columns_where_no_gram_matrix_is_made(monkeypatch):
    monkeypatch.setattr(least_squares, "LARGEST_GRAM", 1000)
    A = EASY[:, :200]
    twice, y = csr_array(scipy.sparse.hstack([A, A[:, [3]]])), np.zeros(201)
    y[[3, 200]] = 1, -1
    with pytest.raises(np.linalg.LinAlgError, match="depend on each other"):
        solve_gram(twice, y, rng=0)


@pytest.mark.slow
def test_a_gram_matrix_that_does_not_fit_is_not_made(monkeypatch):
    monkeypatch.setattr(least_squares, "LARGEST_GRAM", 1000)
    monkeypatch.setattr(least_squares, "gram_preconditioner", None)
    x = normal(1200, seed=0)
    assert relative(lstsq(EASY, EASY @ x, rng=0).x, x) < 1e-12
    with pytest.warns(scipy.linalg.LinAlgWarning, match="'cg' ended"):
        solve_gram(sparse(12000, 1200, 8, 1e-7), x, rng=0)


@pytest.mark.parametrize(
    "kind", ["dense", "columns", "float32", "sparse", "blocks", "wide"]
)
def test_one_pass_for_both_products(kind):
    n, d = (300, 900) if kind == "wide" else (5000, 30)
    rng = np.random.default_rng(0)
    dense = rng.integers(-9, 10, (n, d)).astype(float)
    X, B = rng.integers(-9, 10, (d, 3)), rng.integers(-9, 10, (n, 2))
    A = {
        "dense": dense,
        "columns": np.asfortranarray(dense),
        "float32": dense.astype(np.float32),
        "sparse": csr_array(dense),
        "blocks": [dense[:7], csr_array(dense[7:3000]), dense[3000:]],
        "wide": dense,
    }[kind]
    gap, back = gap_and_back(A, X.astype(float), B.astype(float))
    expected = dense @ X - np.hstack([B, np.zeros((n, 1))])
    np.testing.assert_array_equal(gap, expected)  # integers: no rounding
    np.testing.assert_array_equal(back, dense.T @ expected)
    np.testing.assert_array_equal(gap_and_back(A, X)[1], dense.T @ (dense @ X))
    np.testing.assert_array_equal(gram_matrix(A), dense.T @ dense)
