from functools import partial

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array

from simlib.regression import sketch
from simlib.regression.sketch import (
    PolynomialSketch,
    TensorSRHT,
    count_sketch,
    gaussian,
    hadamard_transform,
    sparse_sign,
    srht,
)
from support.matrices import quick
from support.regression import peak

KINDS = [sparse_sign, count_sketch, srht, gaussian]
ONE_PASS = [sparse_sign, count_sketch, gaussian]


def matrices(n, d, seed=0):
    """One dense and one sparse."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    return A, csr_array(A * (rng.random((n, d)) < 0.3))


def pieces(A, heights):
    ends = np.cumsum(heights)
    return [A[end - height : end] for height, end in zip(heights, ends, strict=True)]


def basis(X):
    return np.linalg.qr(X)[0]


# What they are


@quick
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 12), st.integers(0, 99))
def test_sparse_signs(m, n, nnz, seed):
    """As many distinct rows in each column as asked, one in each stretch."""
    S = sparse_sign(m, n, nnz_per_column=nnz, rng=seed) @ np.eye(n)
    nnz = min(m, nnz)
    np.testing.assert_array_equal((S != 0).sum(axis=0), nnz)
    np.testing.assert_allclose(abs(S[S != 0]), nnz**-0.5, rtol=1e-15)
    edges = np.arange(nnz) * m // nnz
    np.testing.assert_array_equal(np.add.reduceat(S != 0, edges, axis=0), 1)


@quick
@given(st.integers(1, 40), st.floats(0, 1), st.integers(0, 99))
def test_srht_is_rows_of_a_hadamard_matrix(n, share, seed):
    m = 1 + int(share * (n - 1))
    S = srht(m, n, rng=seed)
    H = scipy.linalg.hadamard(1 << (n - 1).bit_length())
    expected = H[np.ix_(S.rows, S.places)] * S.signs.T / np.sqrt(m)
    np.testing.assert_allclose(S @ np.eye(n), expected, atol=1e-14)
    assert len(set(S.rows)) == m
    assert len(set(S.places)) == n
    assert set(S.signs.ravel()) <= {-1, 1}


@pytest.mark.parametrize("n", [2**k for k in range(12)])
def test_hadamard_transform(n):
    X = np.random.default_rng(n).standard_normal((n, 3))
    expected = scipy.linalg.hadamard(n) @ X
    np.testing.assert_allclose(hadamard_transform(X), expected, atol=1e-11)
    np.testing.assert_allclose(hadamard_transform(X[:, 0]), expected[:, 0], atol=1e-11)
    assert hadamard_transform(X.astype(np.float32)).dtype == np.float32
    assert not np.shares_memory(hadamard_transform(X), X)


def test_hadamard_transform_of_integers_and_other_lengths():
    few = np.array([200, 100], dtype=np.uint8)
    np.testing.assert_array_equal(hadamard_transform(few), [300, 100])
    for wrong in np.ones((0, 2)), np.ones((12, 2)), 1.0:
        with pytest.raises(ValueError, match="must be a power of 2"):
            hadamard_transform(wrong)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(st.integers(1, 20), st.integers(0, 20), st.integers(0, 4), st.integers(0, 1000))
def test_products(kind, m, more, d, seed):
    """Of dense and sparse matrices, vectors, and the transposed sketch."""
    n = m + more
    S = kind(m, n, rng=seed)
    dense = S @ np.eye(n)
    assert S.shape == dense.shape == (m, n)
    np.testing.assert_allclose(S.T @ np.eye(m), dense.T, atol=1e-14)
    for A in matrices(n, d, seed):
        np.testing.assert_allclose(S @ A, dense @ A, atol=1e-13)
    Y = matrices(m, d, seed)[0]
    np.testing.assert_allclose(S.T @ Y, dense.T @ Y, atol=1e-13)
    x, y = np.arange(n) - 3.5, np.arange(m) - 2.5
    np.testing.assert_allclose(S @ x, dense @ x, atol=1e-12)
    np.testing.assert_allclose(S.T @ y, dense.T @ y, atol=1e-12)
    assert (S @ x) @ y == pytest.approx(x @ (S.T @ y), abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_formats_and_orders(kind):
    """Always an array, whatever A is."""
    S = kind(20, 60, rng=0)
    A = matrices(60, 7)[1]
    expected = S @ A.toarray()
    assert type(expected) is np.ndarray
    for name in "csr", "csc", "coo", "bsr", "dia", "lil", "dok":
        product = S @ A.asformat(name)
        assert type(product) is np.ndarray
        np.testing.assert_allclose(product, expected, atol=1e-13)
    for other in (
        scipy.sparse.csr_matrix(A),
        np.asfortranarray(A.toarray()),
        np.repeat(A.toarray(), 2, axis=1)[:, ::2],
        A.toarray().tolist(),
    ):
        np.testing.assert_allclose(S @ other, expected, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_precision(kind):
    S = kind(30, 200, rng=0)
    for A in matrices(200, 5):
        single = A.astype(np.float32)
        assert (S @ single).dtype == np.float32
        assert (S.T @ (S @ single)).dtype == np.float32
        np.testing.assert_allclose(S @ single, S @ A, atol=2e-5)
        assert (S @ A).dtype == np.float64
    assert (S @ np.ones(200, np.float32)).dtype == np.float32
    for number in bool, np.int8, np.uint8, np.int64:
        A = np.full((200, 2), 255).astype(number)
        assert (S @ A).dtype == np.float64
        np.testing.assert_allclose(S @ A, S @ A.astype(float))
        np.testing.assert_allclose(S @ csr_array(A), S @ A.astype(float))
        twice = A[:3, 0], ([0, 0, 0], [0, 0, 0])  # entries that stand there thrice
        thrice = scipy.sparse.coo_array(twice, shape=(200, 1))
        whole = np.eye(200, 1) * 3 * float(A[0, 0])
        np.testing.assert_allclose(S @ thrice, S @ whole)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks(kind, monkeypatch):
    S = kind(10, 300, rng=0)
    A = matrices(300, 23)[0]
    whole, back = S @ A, S.T @ A[:10]
    for chunk in 1, 700, 1500:
        monkeypatch.setattr(sketch, "AT_ONCE", chunk)
        np.testing.assert_allclose(S @ A, whole, atol=1e-13)
        np.testing.assert_allclose(S.T @ A[:10], back, atol=1e-13)


# Blocks


@quick
@given(st.lists(st.integers(0, 9), min_size=1).filter(sum), st.integers(0, 1000))
def test_blocks_equal_the_whole(heights, seed):
    for kind in ONE_PASS:
        S = kind(12, sum(heights), rng=seed)
        for A in matrices(sum(heights), 3, seed):
            blocks = (block for block in pieces(A, heights))
            np.testing.assert_allclose(S.apply_blocks(blocks), S @ A, atol=1e-13)


@pytest.mark.parametrize("kind", ONE_PASS)
def test_kinds_of_blocks(kind):
    S = kind(6, 12, rng=0)
    A = np.arange(36).reshape(12, 3)
    a, b, c = pieces(A, (5, 3, 4))
    mixed = S.apply_blocks([a.tolist(), csc_array(b), c.astype(np.float32)])
    np.testing.assert_allclose(mixed, S @ A, rtol=1e-6)
    assert mixed.dtype == np.float64
    singles = (block.astype(np.float32) for block in (a, b, c))
    assert S.apply_blocks(singles).dtype == np.float32


@pytest.mark.parametrize("kind", ONE_PASS)
def test_impossible_blocks(kind):
    with pytest.raises(NotImplementedError, match="sparse_sign, which reads them"):
        srht(4, 8, rng=0).apply_blocks([np.ones((8, 2))])
    S = kind(4, 8, rng=0)
    with pytest.raises(NotImplementedError, match="takes a matrix as a whole"):
        S.T.apply_blocks([np.ones((4, 2))])
    for blocks, message in (
        ([np.ones((4, 2)), np.ones((3, 2))], r"have 7 rows in all.* of a matrix of 8"),
        ([], "have 0 rows in all"),
        ((np.ones((3, 2)) for _ in iter(int, 1)), "have 9 rows or more"),  # no end
        ([np.ones((4, 2)), np.ones((4, 1))], "the first, 2; the one at row 4 has 1"),
        ([np.ones(8)], r"an array of shape \(8,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            S.apply_blocks(blocks)


@pytest.mark.parametrize("kind", KINDS)
def test_seeds(kind):
    A = np.eye(50)
    S = kind(20, 50, rng=7)
    np.testing.assert_array_equal(S @ A, kind(20, 50, rng=7) @ A)
    generator = np.random.default_rng(7)
    np.testing.assert_array_equal(S @ A, kind(20, 50, rng=generator) @ A)
    assert (kind(20, 50, rng=generator) @ A != S @ A).any()
    assert (kind(20, 50, rng=8) @ A != S @ A).any()


def check_mean(draws, expected, errors=4):
    """Within some standard errors, entry by entry."""
    draws = np.array(draws)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (abs(draws.mean(axis=0) - expected) <= errors * error + 1e-12).all()


@pytest.mark.parametrize("kind", [*KINDS, partial(sparse_sign, nnz_per_column=3)])
def test_isometry_in_expectation(kind):
    """Of padded lengths and of stretches that are not equal, too."""
    sketches = [kind(5, 11, rng=seed) @ np.eye(11) for seed in range(400)]
    check_mean([S.T @ S for S in sketches], np.eye(11))


def inputs():
    """Orthonormal columns: of no direction, of a few rows, and of rows of all sizes."""
    n, d = 4096, 50
    G = np.random.default_rng(0).standard_normal((n, d))
    return {
        "incoherent": basis(G),
        "first rows": np.eye(n, d),
        "rows anywhere": np.eye(n, d)[np.random.default_rng(1).permutation(n)],
        "ridge below": basis(np.vstack([G[d:] / np.sqrt(n), 3 * np.eye(d)])),
        "all scales": basis(G * np.logspace(0, -6, n)[:, None]),
    }


def singular_values(kind, U):
    m = 4 * U.shape[1]
    seeds = range(1000, 1040)  # with those of `inputs` a sketch would know its input
    sketches = (kind(m, len(U), rng=seed) @ U for seed in seeds)
    return np.array([np.linalg.svd(SU, compute_uv=False) for SU in sketches])


@pytest.mark.parametrize("name", inputs())
def test_subspace_embedding(name):
    """With m = 4 d no failure in 40 draws; in thousands sparse signs have one."""
    for kind in sparse_sign, srht:
        values = singular_values(kind, inputs()[name])
        assert abs(values - 1).max() < 1.25 / 2
    assert values.min() < 0.6  # the band is not wider than it must be
    assert values.max() > 1.4


# Products of vectors


def rowwise_kronecker(X, Y):
    return (X[:, :, None] * Y[:, None, :]).reshape(len(X), -1)


@quick
@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 9), st.integers(0, 1000))
def test_tensor_srht_by_its_definition(m, d1, d2, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((4, d1)), rng.standard_normal((4, d2))
    T = TensorSRHT(m, d1, d2, rng=seed)
    factors = []
    for Z, signs, rows in zip((X, Y), T.signs, T.rows, strict=True):
        H = scipy.linalg.hadamard(1 << (Z.shape[1] - 1).bit_length())
        padded = np.pad(Z * signs, ((0, 0), (0, len(H) - Z.shape[1])))
        factors.append(padded @ H[rows].T)
    np.testing.assert_allclose(T(X, Y), factors[0] * factors[1] / m**0.5, atol=1e-12)


@pytest.mark.parametrize("flat", [0, 1])
def test_tensor_srht_mixes_both_factors(flat):
    """Without its signs the transform of a constant factor is one large entry."""
    factors = np.random.default_rng(0).choice([-1.0, 1.0], (2, 1, 64)) / 8
    factors[flat] = 1 / 8
    squares = [
        np.square(TensorSRHT(64, 64, 64, rng=seed)(*factors)).sum()
        for seed in range(200)
    ]
    assert np.var(squares) < 0.5  # about 0.1, and 2 or more without


# Powers of vectors


def matrix_of(T, m, d):
    """Of a leaf; of a node, for which d is the pair of widths."""
    if T is None:
        return np.eye(m, d)
    if isinstance(T, TensorSRHT):
        i, j = np.divmod(np.arange(d[0] * d[1]), d[1])
        return T(np.eye(d[0])[i], np.eye(d[1])[j]).T
    return T @ np.eye(d)


def kronecker_power(X, degree):
    power = np.ones((len(X), 1))
    for _ in range(degree):
        power = rowwise_kronecker(power, X)
    return power


TREES = {  # as matrices, of leaves T and nodes S of which those of x alone come first
    1: lambda T, S: T[0],
    2: lambda T, S: S[0] @ np.kron(T[0], T[1]),
    3: lambda T, S: S[1] @ np.kron(T[2], TREES[2](T, S)),
    4: lambda T, S: S[2] @ np.kron(TREES[2](T, S), TREES[2](T[2:], S[1:])),
    5: lambda T, S: (
        S[3]
        @ np.kron(
            TREES[2](T[2:], S[1:]), S[2] @ np.kron(T[4], S[0] @ np.kron(T[0], T[1]))
        )
    ),
}
WIDTHS = {1: "", 2: "dd", 3: "dddm", 4: "ddddmm", 5: "dddddmmm"}


@pytest.mark.parametrize(("m", "d"), [(5, 3), (4, 4), (3, 5)])
@pytest.mark.parametrize("degree", TREES)
def test_trees_by_their_definition(degree, m, d):
    """Through matrices of as many columns as x^p has entries."""
    X = np.random.default_rng(0).standard_normal((4, d))
    P = PolynomialSketch(m, d, degree, rng=degree)
    widths = [m if name == "m" else min(m, d) for name in WIDTHS[degree]]
    S = [
        matrix_of(node, m, pair)
        for node, pair in zip(P.nodes, pieces(widths, [2] * len(P.nodes)), strict=True)
    ]
    matrix = TREES[degree]([matrix_of(T, min(m, d), d) for T in P.leaves], S)
    Z = kronecker_power(X, degree) @ matrix.T
    np.testing.assert_allclose(P(X)[:, : Z.shape[1]], Z, atol=1e-12)


@pytest.mark.parametrize(("m", "d"), [(5, 3), (4, 4), (3, 5)])
def test_trees_of_shared_sketches_by_their_definition(m, d):
    X = np.random.default_rng(0).standard_normal((4, d))
    P = PolynomialSketch(m, d, 7, shared=True, rng=0)
    assert len(P.leaves) == 1
    S, R = (matrix_of(node, m, (m, m)) for node in P.nodes)
    one = X @ matrix_of(P.leaves[0], m, d).T
    two = rowwise_kronecker(one, one) @ S.T
    four = rowwise_kronecker(two, two) @ R.T
    expected = {
        1: one,
        2: two,
        3: rowwise_kronecker(one, two) @ S.T,
        4: four,
        5: rowwise_kronecker(one, four) @ R.T,
        6: rowwise_kronecker(two, four) @ R.T,
        7: rowwise_kronecker(rowwise_kronecker(one, two) @ S.T, four) @ R.T,
    }
    for degree, powers in expected.items():
        found = PolynomialSketch(m, d, degree, shared=True, rng=0)(X)
        np.testing.assert_allclose(found, powers, atol=1e-11)


@quick
@given(
    st.integers(1, 20),
    st.integers(1, 30),
    st.integers(0, 9),
    st.booleans(),
    st.integers(0, 1000),
)
def test_polynomial_sketch_row_by_row(m, d, degree, shared, seed):
    """Rows do not know of each other, and the same seed gives the same sketch."""
    X, sparse = matrices(7, d, seed)
    P = PolynomialSketch(m, d, degree, shared=shared, rng=seed)
    Z = P(X)
    order = np.random.default_rng(seed).permutation(7)
    scale = abs(Z).max() + 1
    np.testing.assert_allclose(P(X[order]), Z[order], atol=1e-13 * scale)
    np.testing.assert_allclose(P(sparse), P(sparse.toarray()), atol=1e-13 * scale)
    again = PolynomialSketch(m, d, degree, shared=shared, rng=seed)
    np.testing.assert_array_equal(again(X), Z)
    generator = np.random.default_rng(seed)
    drawn = PolynomialSketch(m, d, degree, shared=shared, rng=generator)
    np.testing.assert_array_equal(drawn(X), Z)
    np.testing.assert_allclose(P(-2 * X), (-2) ** degree * Z, rtol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_powers_that_need_no_sketch(shared):
    X = matrices(6, 5)[0]
    one = PolynomialSketch(8, 5, 1, shared=shared)(X)
    np.testing.assert_array_equal(one, np.pad(X, ((0, 0), (0, 3))))
    zero = PolynomialSketch(8, 5, 0, shared=shared)(X)
    assert zero.shape == (6, 8)
    np.testing.assert_array_equal(zero @ zero.T, 1)


@pytest.mark.parametrize("d", [6, 40])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_polynomial_sketch_in_expectation(degree, d):
    """Over 300 draws within 3 standard errors."""
    X = np.random.default_rng(2).standard_normal((2, d)) / np.sqrt(d)
    X[1] += X[0]
    sketches = [PolynomialSketch(24, d, degree, rng=k)(X) for k in range(300)]
    check_mean([Z @ Z.T for Z in sketches], (X @ X.T) ** degree, errors=3)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("d", [12, 40])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_polynomial_sketch_types(degree, d, shared):
    X, sparse = matrices(5, d)
    P = PolynomialSketch(20, d, degree, shared=shared, rng=3)
    for A in X, sparse:
        single = P(A.astype(np.float32))
        assert type(single) is np.ndarray
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, P(A), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(P(np.asfortranarray(X)), P(X), atol=1e-12)
    for other in sparse.tocoo(), scipy.sparse.csc_matrix(sparse):
        np.testing.assert_allclose(P(other), P(sparse), atol=1e-12)
    assert P(X > 0).dtype == np.float64
    assert P(X[:0]).shape == (0, 20)
    if degree:
        X[1, 2] = np.nan
        assert (np.isnan(P(X)).any(axis=1) == np.isnan(X).any(axis=1)).all()


def test_memory_of_sparse_signs():
    """The sketch itself would take 500 MiB, a copy of A 8, the result 2."""
    n, m = 2**15, 2000
    A = np.ones((n, 32))
    assert peak(lambda: sparse_sign(m, n, rng=0)) < 16 * 2**20
    S = sparse_sign(m, n, rng=0)
    assert peak(lambda: S @ A) < 8 * 2**20
    assert peak(lambda: S.apply_blocks(A[i : i + m] for i in range(0, n, m))) < 2**23


def test_memory_of_srht():
    """The Hadamard matrix would take 2 GiB (and 8, padded), padded columns 160 MiB."""
    n = 2**14 + 1
    A = np.ones((n, 640), dtype=np.float32)
    S = srht(200, n, rng=0)
    assert peak(lambda: S @ A) < 48 * 2**20
    assert peak(lambda: srht(200, n, rng=0)) < 2**20


@pytest.mark.parametrize("m", [30, 60])
@pytest.mark.parametrize("shared", [False, True])
def test_memory_of_polynomial_sketch(m, shared):
    """The sixth power of one row would take 116 GiB, and the third one MiB."""
    X = matrices(4, 50)[0]
    P = partial(PolynomialSketch, m, 50, 6, shared=shared)
    assert peak(lambda: P(rng=0)(X)) < 2**18


@pytest.mark.parametrize("degree", [0, 1, 3])
@pytest.mark.parametrize("shape", [(4, 6), (4, 8), (7,), (2, 3, 7)])
def test_rows_that_do_not_match(shape, degree):
    message = "rows of length 7" if len(shape) == 2 else "Expected a matrix"
    with pytest.raises(ValueError, match=message):
        PolynomialSketch(5, 7, degree)(np.ones(shape))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((5, 3), (5, 3), r"lengths \[3, 4\]; got shapes \(5, 3\) and \(5, 3\)"),
        ((5, 3), (6, 4), r"as many rows in X as in Y"),
        ((3,), (4,), r"Expected a matrix; got an array of shape \(3,\)"),
    ],
)
def test_factors_that_do_not_match(x, y, message):
    with pytest.raises(ValueError, match=message):
        TensorSRHT(7, 3, 4, rng=0)(np.ones(x), np.ones(y))


@pytest.mark.parametrize("make", [sparse_sign, count_sketch, srht, gaussian])
def test_the_transpose_reads_what_the_sketch_reads(make):
    S = make(4, 9, rng=0)
    dense, one = S @ np.eye(9), np.ones((4, 1))
    for transpose in (S.T, S.H):
        np.testing.assert_allclose(transpose @ csr_array(one), dense.T @ one)
        np.testing.assert_allclose(transpose @ one[:, 0], dense.T @ one[:, 0])
        np.testing.assert_allclose(transpose.T @ np.eye(9), dense)
        with pytest.raises(ValueError, match="some are masked"):
            transpose @ np.ma.array(one, mask=one > 0)
    np.testing.assert_allclose(S.rmatvec(csr_array(one)), dense.T @ one)
