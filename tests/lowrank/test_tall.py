"""Factors larger than the memory: the same answers, a block of rows at a time."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from simlib import LowRank
from simlib.lowrank import tall as blocks
from support.lowrank import make
from support.matrices import quick
from support.regression import peak


@quick
@given(st.integers(0, 50), st.integers(0, 9), st.integers(1, 9), st.integers(1, 100))
def test_blocks_are_all_rows_once(n, width, beside, held):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "HELD", held)
        parts = blocks.row_blocks(n, width, beside)
    assert_array_equal(np.concatenate([np.arange(n)[p] for p in parts]), np.arange(n))
    sizes = [part.stop - part.start for part in parts]
    allowed = max(held // max(1, width, beside), 8 * width, 1)
    assert max(sizes) <= allowed
    assert all(size == allowed for size in sizes[:-1])


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4), (5, 0)])
def test_singular_values_where_divide_and_conquer_fails(shape, monkeypatch):
    A = np.random.default_rng(0).standard_normal(shape)
    expected = np.linalg.svd(A, compute_uv=False)
    fails = [False]

    def divided(*arguments, old=np.linalg.svd, **options):
        if fails[0]:
            raise np.linalg.LinAlgError("SVD did not converge")
        return old(*arguments, **options)

    monkeypatch.setattr(np.linalg, "svd", divided)
    for fails[0] in (False, True):
        U, sigma, Vt = blocks.svd(A)
        assert_allclose(sigma, expected, atol=1e-14)
        assert_allclose((U * sigma) @ Vt, A, atol=1e-14)
        assert U.shape[1] == Vt.shape[0] == min(shape)


@quick
@given(
    st.integers(1, 40),
    st.integers(0, 80),
    st.integers(0, 99),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_entries(n, m, seed, sparse, grid, in_blocks):
    """However many and however spread."""
    rng = np.random.default_rng(seed)
    left, core, right = (rng.standard_normal(s) for s in ((n, 3), (3, 2), (n + 2, 2)))
    expected = left @ core @ right.T
    i, j = rng.integers(n, size=m), rng.integers(n + 2, size=m)
    if grid:  # most of a block
        i, j = np.repeat(i[:5], n + 2), np.tile(np.arange(n + 2), i[:5].size)
    if sparse:
        left, right = (scipy.sparse.csr_array(factor) for factor in (left, right))
    with pytest.MonkeyPatch.context() as patch:
        if in_blocks:
            patch.setattr(blocks, "HELD", 9)
            patch.setattr(blocks, "TALL", 1)
        found = LowRank(left, core, right).entries(i, j)
    assert_allclose(found, expected[i, j], atol=1e-12)


@pytest.mark.parametrize("held", [1, 40, 1000])
@pytest.mark.parametrize("rank", [2, 6])
def test_a_decomposition_in_blocks(monkeypatch, held, rank):
    monkeypatch.setattr(blocks, "HELD", held)
    monkeypatch.setattr(blocks, "TALL", 1)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, rank)) @ rng.standard_normal((rank, 6))
    multiply, R = blocks.qr(A)
    Q = np.full_like(A, np.nan)
    for part, rows in multiply(np.eye(6)):
        Q[part] = rows
    assert_allclose(Q @ R, A, atol=1e-12)
    assert_allclose(Q.T @ Q, np.eye(6), atol=1e-13)  # the rank may be less
    assert_array_equal(R, np.triu(R))
    assert_allclose(abs(blocks.triangle(A)), abs(R), atol=1e-12)


def test_eigenvectors_of_nearly_dependent_columns_in_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "HELD", 100)
    rng = np.random.default_rng(0)
    left = rng.standard_normal((300, 1)) + 1e-13 * rng.standard_normal((300, 5))
    vectors = LowRank(left, np.eye(5)).eigh(5)[1]
    assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-13)


SHAPE = (100_000, 64)


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """Return an answer with a factor in a file, single precision, and the folder."""
    folder = tmp_path_factory.mktemp("mapped")
    rng = np.random.default_rng(0)
    left = rng.standard_normal(SHAPE).astype(np.float32)
    right = rng.standard_normal(SHAPE).astype(np.float32)
    core = np.diag(np.linspace(-1, 2, SHAPE[1])).astype(np.float32)
    LowRank(left, core).save(folder / "symmetric")
    LowRank(left, core, right).save(folder / "separate")
    return folder


ASKED = {
    "product": lambda K, file: K @ np.ones(K.shape[1]),  # of another precision
    "product, same precision": lambda K, file: K @ np.ones(K.shape[1], np.float32),
    "several": lambda K, file: K @ np.ones((K.shape[1], 3)),
    "transposed": lambda K, file: K.T @ np.ones(K.shape[1]),
    "rows": lambda K, file: K.rows([0, 99_999]),
    "entries": lambda K, file: K.entries(*np.indices((2, 50_000)).reshape(2, -1)),
    "scattered": lambda K, file: K.entries(
        np.arange(K.shape[1]), np.arange(K.shape[1])[::-1]
    ),
    "a row by entries": lambda K, file: K.entries(
        np.zeros(K.shape[1], int), np.arange(K.shape[1])
    ),
    "diagonal": lambda K, file: K.diagonal(),
    "trace": lambda K, file: K.trace(),
    "norm": lambda K, file: K.norm(),
    "embedding": lambda K, file: K.embedding(out=file),
    "map": lambda K, file: K.embedding_map(),
    "solve": lambda K, file: K.solve(np.ones(K.shape[0]), 1.0),
    "eigh": lambda K, file: K.eigh(2),
}


@pytest.mark.parametrize("kind", ["symmetric", "separate"])
@pytest.mark.parametrize("what", ASKED)
def test_no_copy_of_a_factor_is_made(mapped, tmp_path, monkeypatch, kind, what):
    if (what, kind) == ("eigh", "separate"):
        pytest.skip("symmetric matrices only")
    monkeypatch.setattr(blocks, "HELD", 2**17)
    K = LowRank.load(mapped / kind, mmap_mode="r")
    assert isinstance(K.left, np.memmap)
    shape = (SHAPE[0], SHAPE[1] * (1 if K.symmetric else 2))
    file = np.lib.format.open_memmap(tmp_path / "Z.npy", "w+", np.float32, shape)
    assert peak(lambda: ASKED[what](K, file)) < K.left.nbytes / 2  # 32 vectors


def test_embedding_into_a_given_array(tmp_path):
    K, _ = make(symmetric=False, dtype="f")
    Z, signs = K.embedding()
    file = np.lib.format.open_memmap(tmp_path / "Z.npy", "w+", "f4", Z.shape)
    for out in (np.empty_like(Z), np.empty(Z.shape), np.asfortranarray(Z), file):
        got, same = K.embedding(out=out)
        assert got is out
        assert_allclose(out, Z, rtol=1e-6)
        assert_array_equal(same, signs)
    locked = np.empty_like(Z)
    locked.flags.writeable = False
    half = np.empty(Z.shape, np.float16)
    for out in (locked, Z[:-1], Z.T, np.empty(Z.shape, int), half, Z.tolist(), 3):
        with pytest.raises(ValueError, match=r"`out` must be a writable array of sha"):
            K.embedding(out=out)
    with pytest.raises(ValueError, match="float64; got int32"):
        LowRank(np.ones((2, 1)), [[1.0]]).embedding(out=np.empty((2, 1), np.int32))
    with pytest.raises(ValueError, match="beyond the range of float32"):
        LowRank([[1e39]], [[1.0]]).embedding(out=np.empty((1, 1), np.float32))


def test_embedding_of_a_core_at_the_end_of_the_range():
    for right in (None, np.ones((2, 1))):
        Z, signs = LowRank(np.ones((2, 1)), [[1e308]], right).embedding()
        assert_allclose((Z * signs) @ Z.T, np.full((2, 2), 1e308))
