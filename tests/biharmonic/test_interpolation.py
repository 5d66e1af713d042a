import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from simlib.biharmonic import biharmonic_operator, interpolation
from simlib.biharmonic.factorization import factorize
from simlib.datasets import bumpy_sphere
from simlib.landmarks import uniform
from support.matrices import quick
from support.operators import (
    by_dense_algebra,
    path,
    random_laplacian,
    surface_operator,
    thresholded,
)

SPARSE = [
    {"by": "column", "solver": "selected"},
    {"by": "column", "solver": "superlu"},
    {"by": "row"},
]


@pytest.mark.parametrize(
    ("M", "exact"),
    [
        (path(1, 0.5, 0.25), [[1, 0], [6 / 7, 1 / 7], [4 / 7, 3 / 7], [0, 1]]),
        (biharmonic_operator(path(1, 1, 1)), [[1, 0], [0.7, 0.3], [0.3, 0.7], [0, 1]]),
    ],
    ids=["conductances", "6 x - 4 y = 3 and 6 y - 4 x = -1"],
)
def test_two_ends_of_a_path(M, exact):
    np.testing.assert_allclose(interpolation(M, [0, 3]), exact, atol=1e-14)


@pytest.mark.parametrize("options", [{}, {"by": "row"}, {"solver": "superlu"}])
@pytest.mark.parametrize("nnz_per_row", [None, 3])
def test_one_landmark_and_all(nnz_per_row, options):
    M = biharmonic_operator(random_laplacian(30, 0))
    one = interpolation(M, [7], nnz_per_row=nnz_per_row, **options)
    np.testing.assert_allclose(_dense(one), np.ones((30, 1)), rtol=1e-9)
    turn = uniform(30, 30, rng=0)
    P = interpolation(M, turn, nnz_per_row=nnz_per_row, **options)
    np.testing.assert_array_equal(_dense(P), np.eye(30)[:, turn])


@quick
@given(st.integers(2, 40), st.integers(1, 40), st.integers(0, 1000), st.booleans())
def test_against_dense_algebra(n, n_landmarks, seed, harmonic):
    L = random_laplacian(n, seed)
    M = L if harmonic else biharmonic_operator(L)
    landmarks = uniform(n, min(n, n_landmarks), rng=seed)
    P = interpolation(M, landmarks)
    np.testing.assert_allclose(P, by_dense_algebra(M, landmarks), atol=1e-8)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-9)


@quick
@given(
    st.integers(3, 40),
    st.integers(2, 39),
    st.floats(0.1, 50),
    st.integers(0, 1000),
    st.sampled_from(["column", "row"]),
)
def test_against_brute_force_thresholding(n, n_landmarks, nnz_per_row, seed, by):
    M = biharmonic_operator(random_laplacian(n, seed))
    landmarks = uniform(n, min(n - 1, n_landmarks), rng=seed)
    options = {"by": by, "renormalize": False, "solver": "superlu"}
    P = interpolation(M, landmarks, nnz_per_row=nnz_per_row, **options)
    whole = interpolation(M, landmarks, solver="superlu")
    exact = thresholded(whole, landmarks, nnz_per_row, by)
    np.testing.assert_allclose(P.toarray(), exact, atol=1e-9)


def test_many_landmarks_in_blocks():
    """600 landmarks are solved for in three blocks."""
    M = surface_operator(bumpy_sphere(3))
    landmarks = uniform(642, 600, rng=0)
    exact = by_dense_algebra(M, landmarks)
    np.testing.assert_allclose(interpolation(M, landmarks), exact, atol=1e-11)
    for options in SPARSE:
        P = interpolation(M, landmarks, nnz_per_row=20, renormalize=False, **options)
        np.testing.assert_allclose(
            P.toarray(), thresholded(exact, landmarks, 20, options["by"]), atol=1e-11
        )


# What is kept


@pytest.mark.parametrize("options", SPARSE)
@pytest.mark.parametrize("nnz_per_row", [1, 5, 20])
def test_renormalised_rows(nnz_per_row, options):
    M = surface_operator(bumpy_sphere(3))
    landmarks = uniform(642, 40, rng=0)
    P = interpolation(M, landmarks, nnz_per_row=nnz_per_row, **options)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-13)
    np.testing.assert_array_equal(P[landmarks].toarray(), np.eye(40))
    as_kept = interpolation(
        M, landmarks, nnz_per_row=nnz_per_row, renormalize=False, **options
    )
    sums = as_kept.sum(axis=1)
    rich = sums > 0.25
    np.testing.assert_allclose(
        P.toarray()[rich], as_kept.toarray()[rich] / sums[rich, None], rtol=1e-12
    )


@pytest.mark.parametrize("nnz_per_row", [1, 3])
def test_rows_of_which_next_to_nothing_was_kept(nnz_per_row):
    """They are replaced by their largest entries, as many as it takes."""
    M = biharmonic_operator(path(*np.random.default_rng(0).uniform(0.5, 2, 299)))
    landmarks = uniform(300, 30, rng=0)
    exact = by_dense_algebra(M, landmarks)
    options = {"nnz_per_row": nnz_per_row, "solver": "superlu"}
    kept = interpolation(M, landmarks, renormalize=False, **options)
    poor = np.flatnonzero(kept.sum(axis=1) < 0.25)
    assert poor.size > 2
    P = interpolation(M, landmarks, **options).toarray()
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-13)
    for row in poor:
        order, size = np.argsort(-abs(exact[row])), nnz_per_row
        while exact[row, order[:size]].sum() < 0.25:
            size *= 2
        largest = np.where(np.isin(np.arange(30), order[:size]), exact[row], 0)
        np.testing.assert_allclose(P[row], largest / largest.sum(), atol=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("nnz_per_row", [None, 3])
def test_extreme_weights(nnz_per_row, scale):
    L = random_laplacian(30, 0)
    landmarks = uniform(30, 8, rng=0)
    P = interpolation(biharmonic_operator(L), landmarks, nnz_per_row=nnz_per_row)
    M = biharmonic_operator(scale * L)
    scaled = interpolation(M, landmarks, nnz_per_row=nnz_per_row)
    np.testing.assert_allclose(_dense(scaled), _dense(P), rtol=1e-9)


def test_landmarks_in_any_order_and_type():
    M = biharmonic_operator(random_laplacian(40, 0))
    landmarks = uniform(40, 12, rng=0)
    turn = uniform(12, 12, rng=1)
    others = (
        landmarks[turn].tolist(),
        landmarks[turn].astype(np.int32),
        np.repeat(landmarks[turn], 2).astype(np.uint16)[::2],
    )
    for nnz_per_row in None, 4:
        P = _dense(interpolation(M, landmarks, nnz_per_row=nnz_per_row))
        for other in others:
            turned = interpolation(M, other, nnz_per_row=nnz_per_row)
            np.testing.assert_allclose(_dense(turned), P[:, turn], atol=1e-12)


def test_entries_stored_twice_or_as_zero():
    M = biharmonic_operator(random_laplacian(40, 0))
    landmarks = uniform(40, 12, rng=0)
    share = np.random.default_rng(0).uniform(-1, 2, M.nnz)
    thrice = np.stack([share * M.data, (1 - share) * M.data, 0 * M.data], axis=1)
    again = csr_array((thrice.ravel(), np.repeat(M.indices, 3), 3 * M.indptr))
    for options in [{}, *({"nnz_per_row": 4, **more} for more in SPARSE)]:
        P = _dense(interpolation(M, landmarks, **options))
        same = _dense(interpolation(again, landmarks, **options))
        np.testing.assert_allclose(same, P, atol=1e-10)
    assert again.nnz == 3 * M.nnz


def test_poor_rows_take_few_solves_with_the_one_factor(monkeypatch):
    module = sys.modules["simlib.biharmonic.interpolation"]
    factors, widths = [], []

    class Counted:
        def __init__(self, A):
            factors.append(A)
            self.factor = factorize(A)

        def solve(self, B):
            widths.append(B.shape[1] if B.ndim == 2 else 1)
            return self.factor.solve(B)

    monkeypatch.setattr(module, "factorize", Counted)
    M = surface_operator(bumpy_sphere(4))
    landmarks = uniform(2562, 100, rng=0)
    options = {"nnz_per_row": 1, "by": "column", "solver": "superlu"}
    interpolation(M, landmarks, renormalize=False, **options)
    raw = len(widths)
    P = interpolation(M, landmarks, **options)
    assert len(factors) == 2
    extra = widths[2 * raw :]
    assert sum(extra) > 100
    assert len(extra) == -(-sum(extra) // 32)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)


# Pieces


@pytest.mark.parametrize("options", [{}, *({"nnz_per_row": 3, **o} for o in SPARSE)])
def test_pieces_do_not_see_each_other(options):
    parts = [biharmonic_operator(random_laplacian(n, n)) for n in (20, 30)]
    M = scipy.sparse.block_diag([*parts, csr_array((1, 1))], format="csr")
    P = _dense(interpolation(M, [3, 50, 25, 11, 44], **options))
    assert (P[:20, [1, 2, 4]] == 0).all()
    assert (P[20:50, [0, 1, 3]] == 0).all()
    np.testing.assert_array_equal(P[50], [0, 1, 0, 0, 0])
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-9)
    if not options:
        first = interpolation(parts[0], [3, 11])
        np.testing.assert_allclose(P[:20][:, [0, 3]], first, atol=1e-12)


@pytest.mark.parametrize("nnz_per_row", [None, 2])
def test_piece_without_landmark(nnz_per_row):
    M = scipy.sparse.block_diag([biharmonic_operator(path(1, 1)) for _ in range(3)])
    with pytest.raises(ValueError, match=r"2 of the 3 .* first has 3 items, item 0"):
        interpolation(M, [5], nnz_per_row=nnz_per_row)


def test_zeros_join_nothing():
    parts = [biharmonic_operator(path(1, 1)) for _ in range(2)]
    M = scipy.sparse.block_diag(parts, format="coo")
    edges = np.r_[M.row, 2, 3], np.r_[M.col, 3, 2]
    joined = csr_array((np.r_[M.data, 0, 0], edges))
    assert joined.nnz == M.nnz + 2
    with pytest.raises(ValueError, match="item 3 among them: add one of them"):
        interpolation(joined, [0])


@pytest.mark.parametrize("nnz_per_row", [None, 2])
def test_joined_too_weakly(nnz_per_row):
    """Where the rows of P would be anything rather than sum to 1."""
    for M in biharmonic_operator(path(1, 1, 1e-9, 1, 1)), path(1e-300, 1):
        for solver in "auto", "superlu":
            options = {"nnz_per_row": nnz_per_row, "solver": solver}
            with pytest.raises(ValueError, match=r"singular to rounding .* add landma"):
                interpolation(M, [0], **options)


def test_operator_whose_rows_do_not_sum_to_0():
    M = path(1, 1, 1, 1) + 10 * scipy.sparse.eye_array(5)
    P = interpolation(M, [0, 4])
    np.testing.assert_allclose(P, by_dense_algebra(M, [0, 4]), atol=1e-15)
    with pytest.raises(ValueError, match=r"item 1 sums to 0.08\d+, .* renormalize=Fa"):
        interpolation(M, [0, 4], nnz_per_row=1)
    kept = interpolation(M, [0, 4], nnz_per_row=2, renormalize=False)
    np.testing.assert_allclose(kept.toarray(), P, atol=1e-15)


@pytest.mark.parametrize(
    ("landmarks", "message"),
    [
        ([0, 0], "none twice"),
        ([4], "numbered 0 to 3; got 4"),
        ([-1], "numbered 0 to 3; got -1"),
        ([True, False, False, True], "array of integers; got bool"),
    ],
)
def test_impossible_landmarks(landmarks, message):
    with pytest.raises((ValueError, IndexError), match=message):
        interpolation(path(1, 1, 1), landmarks)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nnz_per_row": 0}, "above 0; got 0"),
        ({"nnz_per_row": 1, "by": "rows"}, "by is one of column, row; got .rows"),
        ({"solver": "cholmod"}, "superlu; got .cholmod"),
        ({"solver": "selected"}, "for a sparse P by column"),
        ({"solver": "selected", "by": "row", "nnz_per_row": 1}, "sparse P by column"),
    ],
)
def test_impossible_options(options, message):
    with pytest.raises(ValueError, match=message):
        interpolation(path(1, 1, 1), [0], **options)


def _dense(P):
    return P.toarray() if scipy.sparse.issparse(P) else P


@pytest.mark.parametrize("options", SPARSE)
@pytest.mark.parametrize("nnz_per_row", [20, 1e9, 1.7e308, np.int8(100)])
def test_more_than_there_are_is_dense(options, nnz_per_row):
    M = surface_operator(bumpy_sphere(2))
    landmarks = uniform(162, 20, rng=0)
    sparse = interpolation(M, landmarks, nnz_per_row=nnz_per_row, **options)
    P = interpolation(M, landmarks)
    np.testing.assert_allclose(sparse.toarray(), P, atol=1e-11)
