import tracemalloc
from functools import partial

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from matrices import quick
from scipy.sparse import csc_array, csr_array

import simlib
from simlib import sketch
from simlib.sketch import (
    TensorSRHT,
    count_sketch,
    gaussian,
    hadamard_transform,
    sparse_sign,
    srht,
)

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


def peak(function):
    """Bytes in use at most, beyond those before."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


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


def test_whole_srht_is_orthogonal():
    S = srht(64, 64, rng=0)
    np.testing.assert_allclose(S.T @ (S @ np.eye(64)), np.eye(64), atol=1e-14)


@pytest.mark.parametrize("n", [2**k for k in range(12)])
def test_hadamard_transform(n):
    X = np.random.default_rng(n).standard_normal((n, 3))
    expected = scipy.linalg.hadamard(n) @ X
    np.testing.assert_allclose(hadamard_transform(X), expected, atol=1e-11)
    np.testing.assert_allclose(hadamard_transform(X[:, 0]), expected[:, 0], atol=1e-11)
    assert hadamard_transform(X.astype(np.float32)).dtype == np.float32


def test_hadamard_transform_of_another_length():
    for n in 12, 48:
        with pytest.raises(ValueError, match="power of 2"):
            hadamard_transform(np.ones((n, 2)))


def test_gaussian_entries():
    S = gaussian(50, 2000, rng=0) @ np.eye(2000)
    assert abs(S.mean()) < 4 / np.sqrt(50 * S.size)
    assert (50 * S**2).mean() == pytest.approx(1, abs=4 * np.sqrt(2 / S.size))


def test_count_sketch_has_one_sign():
    S, other = count_sketch(7, 40, rng=3), sparse_sign(7, 40, nnz_per_column=1, rng=3)
    np.testing.assert_array_equal(S @ np.eye(40), other @ np.eye(40))


# Products


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
    for kind_of_number in bool, np.int8, np.uint8, np.int64:
        A = np.full((200, 2), 255).astype(kind_of_number)
        assert (S @ A).dtype == np.float64
        np.testing.assert_allclose(S @ A, S @ A.astype(float))
        np.testing.assert_allclose(S @ csr_array(A), S @ A.astype(float))


@pytest.mark.parametrize("kind", KINDS)
def test_chunks(kind, monkeypatch):
    S = kind(10, 300, rng=0)
    A = matrices(300, 23)[0]
    whole, back = S @ A, S.T @ A[:10]
    for chunk in 1, 700, 1500:
        monkeypatch.setattr(sketch, "CHUNK", chunk)
        np.testing.assert_allclose(S @ A, whole, atol=1e-13)
        np.testing.assert_allclose(S.T @ A[:10], back, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_nan_is_passed_on(kind):
    A = np.ones((40, 2))
    A[3, 0] = np.nan
    product = kind(10, 40, rng=0) @ A
    assert np.isnan(product[:, 0]).any()
    assert np.isfinite(product[:, 1]).all()


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


def test_srht_refuses_blocks():
    with pytest.raises(NotImplementedError, match="sparse_sign, which reads them"):
        srht(4, 8, rng=0).apply_blocks([np.ones((8, 2))])


@pytest.mark.parametrize("kind", ONE_PASS)
def test_impossible_blocks(kind):
    S = kind(4, 8, rng=0)
    with pytest.raises(ValueError, match=r"have 7 rows in all.* of a matrix of 8"):
        S.apply_blocks([np.ones((4, 2)), np.ones((3, 2))])
    with pytest.raises(ValueError, match="have 0 rows in all"):
        S.apply_blocks([])
    with pytest.raises(ValueError, match=r"have 9 rows or more.* matrix of 8"):
        S.apply_blocks(np.ones((3, 2)) for _ in iter(int, 1))  # without end
    with pytest.raises(ValueError, match="the first, 2; the one at row 4 has 1"):
        S.apply_blocks([np.ones((4, 2)), np.ones((4, 1))])
    with pytest.raises(ValueError, match=r"matrix; got an array of shape \(8,\)"):
        S.apply_blocks([np.ones(8)])


# Randomness


@pytest.mark.parametrize("kind", KINDS)
def test_seeds(kind):
    A = np.eye(50)
    S = kind(20, 50, rng=7)
    np.testing.assert_array_equal(S @ A, kind(20, 50, rng=7) @ A)
    generator = np.random.default_rng(7)
    np.testing.assert_array_equal(S @ A, kind(20, 50, rng=generator) @ A)
    assert (kind(20, 50, rng=generator) @ A != S @ A).any()
    assert (kind(20, 50, rng=8) @ A != S @ A).any()


def check_mean(draws, expected):
    """Within four standard errors, entry by entry."""
    draws = np.array(draws)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (abs(draws.mean(axis=0) - expected) <= 4 * error + 1e-12).all()


@pytest.mark.parametrize("kind", [*KINDS, partial(sparse_sign, nnz_per_column=3)])
def test_isometry_in_expectation(kind):
    """Of padded lengths and of stretches that are not equal, too."""
    sketches = [kind(5, 11, rng=seed) @ np.eye(11) for seed in range(400)]
    check_mean([S.T @ S for S in sketches], np.eye(11))


@pytest.mark.parametrize("kind", KINDS)
def test_matrix_product(kind):
    """In the mean square the error is sqrt(2 / m), and it is not a bad bound."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 4))
    B = A + 0.1 * rng.standard_normal((300, 4))
    A[:3] *= 20
    for m in 16, 64:
        errors = []
        for seed in range(100):
            S = kind(m, 300, rng=seed)
            error = (S @ A).T @ (S @ B) - A.T @ B
            errors.append(np.linalg.norm(error))
        errors = np.array(errors) / (np.linalg.norm(A) * np.linalg.norm(B))
        bound = np.sqrt(2 / m)
        assert 0.3 * bound < np.sqrt((errors**2).mean()) < 1.1 * bound
        assert errors.max() < 4 * bound


# Subspaces


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
    """R2 of the guide: with m = 4 d no failure in 40 draws.

    In some thousands sparse signs are out of the band once, by one part in fifty.
    """
    for kind in sparse_sign, srht:
        values = singular_values(kind, inputs()[name])
        assert abs(values - 1).max() < 1.25 / 2
    assert values.min() < 0.6  # the band is not wider than it must be
    assert values.max() > 1.4


def test_gaussian_embedding():
    """It does not know one subspace from another."""
    values = singular_values(gaussian, inputs()["incoherent"])
    assert abs(values - 1).max() < 1.25 / 2


def test_count_sketch_loses_rank():
    """Where few rows carry all; it does well where none stands out."""
    values = singular_values(count_sketch, inputs()["first rows"])
    assert (values[:, -1] < 1e-8).sum() >= 39
    values = singular_values(count_sketch, inputs()["incoherent"])
    assert abs(values - 1).max() < 1.25 / 2


# Products of vectors


def rowwise_kronecker(X, Y):
    return (X[:, :, None] * Y[:, None, :]).reshape(len(X), -1)


@quick
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 9), st.integers(0, 1000))
def test_tensor_srht(m, d1, d2, seed):
    """Linear in the Kronecker product: the unit vectors give its matrix."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((6, d1)), rng.standard_normal((6, d2))
    T = TensorSRHT(m, d1, d2, rng=seed)
    i, j = np.divmod(np.arange(d1 * d2), d2)
    matrix = T(np.eye(d1)[i], np.eye(d2)[j])
    np.testing.assert_allclose(abs(matrix), m**-0.5)
    sketched = T(X, Y)
    assert sketched.shape == (6, m)
    np.testing.assert_allclose(sketched, rowwise_kronecker(X, Y) @ matrix, atol=1e-12)


def test_tensor_srht_by_its_definition():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((4, 11)), rng.standard_normal((4, 3))
    T = TensorSRHT(200, 11, 3, rng=1)
    left, right = (
        np.pad(Z * signs, ((0, 0), (0, side - Z.shape[1])))
        @ scipy.linalg.hadamard(side)[rows].T
        for Z, signs, rows, side in zip((X, Y), T.signs, T.rows, (16, 4), strict=True)
    )
    np.testing.assert_allclose(T(X, Y), left * right / np.sqrt(200), atol=1e-14)
    assert [set(rows) for rows in T.rows] == [set(range(16)), set(range(4))]


def test_tensor_srht_in_expectation():
    """R19 of the guide, over 300 draws."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((5, 10)), rng.standard_normal((5, 6))
    sketches = [TensorSRHT(8, 10, 6, rng=seed)(X, Y) for seed in range(300)]
    check_mean([Z @ Z.T for Z in sketches], (X @ X.T) * (Y @ Y.T))


def test_tensor_srht_errors_fall():
    """As one over the root of m."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 20, 30))
    exact = (X @ X.T) * (Y @ Y.T)
    errors = []
    for m in 100, 1600:
        sketches = [TensorSRHT(m, 30, 30, rng=seed)(X, Y) for seed in range(30)]
        errors.append(np.mean([np.linalg.norm(Z @ Z.T - exact) for Z in sketches]))
    assert 3 < errors[0] / errors[1] < 5


def test_tensor_srht_is_reproducible():
    X, Y = np.random.default_rng(0).standard_normal((2, 5, 12))
    draws = [TensorSRHT(20, 12, 12, rng=rng)(X, Y) for rng in (3, 3, 4)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any()
    assert not np.allclose(draws[0], TensorSRHT(20, 12, 12, rng=3)(Y, X))


def test_tensor_srht_types():
    X, Y = np.random.default_rng(0).standard_normal((2, 5, 12))
    T = TensorSRHT(20, 12, 12, rng=3)
    single = T(X.astype(np.float32), Y.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, T(X, Y), atol=1e-5)
    np.testing.assert_allclose(T(csr_array(X), Y.tolist()), T(X, Y))
    assert T(X > 0, Y > 0).dtype == np.float64
    X[1, 2] = np.nan
    assert (np.isnan(T(X, Y)).all(axis=1) == np.isnan(X).any(axis=1)).all()


# Memory


def test_memory_of_sparse_signs():
    """The sketch itself would take 500 MiB, a copy of A 8, the result 2."""
    n, m = 2**15, 2000
    A = np.ones((n, 32))
    assert peak(lambda: sparse_sign(m, n, rng=0)) < 16 * 2**20
    S = sparse_sign(m, n, rng=0)
    assert peak(lambda: S @ A) < 8 * 2**20
    assert peak(lambda: S.apply_blocks(A[i : i + m] for i in range(0, n, m))) < 2**23


def test_memory_of_other_orders():
    """Rows that do not lie together are copied by parts: 8 of 80 MiB at a time."""
    A = np.ones((2**15, 320), dtype=np.float64, order="F")
    S = sparse_sign(100, len(A), rng=0)
    assert peak(lambda: S @ A) < 24 * 2**20


def test_memory_of_srht():
    """The Hadamard matrix would take 2 GiB (and 8, padded), padded columns 160 MiB."""
    n = 2**14 + 1
    A = np.ones((n, 640), dtype=np.float32)
    S = srht(200, n, rng=0)
    assert peak(lambda: S @ A) < 48 * 2**20
    assert peak(lambda: srht(200, n, rng=0)) < 2**20


def test_memory_of_tensor_srht():
    """The Kronecker products would take 128 MiB."""
    X, Y = np.random.default_rng(0).standard_normal((2, 16, 1000))
    assert peak(lambda: TensorSRHT(500, 1000, 1000, rng=0)(X, Y)) < 2**21


# What is refused


@pytest.mark.parametrize("size", [0, -3, 2.5, None])
def test_sizes(size):
    for kind in KINDS:
        with pytest.raises(
            ValueError, match=f"m must be a positive integer; got {size}"
        ):
            kind(size, 5)
        with pytest.raises(ValueError, match="n must be a positive integer"):
            kind(5, size)
    with pytest.raises(ValueError, match="nnz_per_column must be a positive integer"):
        sparse_sign(5, 5, nnz_per_column=size)
    for name, sizes in {
        "m": (size, 2, 3),
        "d1": (1, size, 3),
        "d2": (1, 2, size),
    }.items():
        with pytest.raises(ValueError, match=f"{name} must be a positive integer"):
            TensorSRHT(*sizes)


def test_srht_longer_than_the_matrix():
    with pytest.raises(ValueError, match="m = 9 rows of a transform of n = 8; take m"):
        srht(9, 8)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_that_do_not_match(kind):
    S = kind(3, 8, rng=0)
    for A in np.ones((7, 2)), np.ones(7), csr_array((9, 2)), np.ones((2, 8, 2)):
        with pytest.raises(ValueError, match=r"dimension|2-d"):
            S @ A
    with pytest.raises(ValueError, match="dimension"):
        S.T @ np.ones((8, 2))


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


def test_it_is_loaded_on_first_use():
    assert simlib.sketch is sketch
    assert "sketch" in dir(simlib)
