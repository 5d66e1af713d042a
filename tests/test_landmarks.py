from collections import Counter
from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from simlib.landmarks import adaptive, draw, pivoted_qr, sample_size, uniform
from support.matrices import asymmetric, indefinite, quick

# Exact answers


def test_given_landmarks_keep_their_order_and_lead_the_sample():
    for dtype in (np.uint8, np.uint64, np.int32):
        mine = np.array([7, 1, 4], dtype)
        S1, S2 = draw(10, None, 2, landmarks=mine, rng=0)
        mine[0] = 4
        assert S1.tolist() == S2[:3].tolist() == [7, 1, 4]
        assert len(set(S2)) == np.arange(10)[S2].size == 6


@pytest.mark.parametrize(
    ("n", "s", "oversampling", "expected"),
    [
        (10, 3, 1, 3),
        (10, 3, 2, 6),
        (10, 6, 2, 10),
        (10, 3, 1.4, 4),
        (10, 10, 1, 10),
        (10, 1, np.inf, 10),
        (1, 1, 2, 1),
    ],
)
def test_size_of_the_sample(n, s, oversampling, expected):
    assert sample_size(n, s, oversampling) == expected
    for nested in (True, False):
        S1, S2 = draw(n, s, oversampling, nested=nested, rng=0)
        assert (S1.size, S2.size) == (s, expected)


def test_draws_are_uniform():
    draws, n, s = 3000, 12, 4
    rng = np.random.default_rng(0)
    counts = np.zeros((2, n))
    for _ in range(draws):
        S1, S2 = draw(n, s, 2, rng=rng)
        counts[0][S1] += 1
        counts[1][S2] += 1
    for seen, size in zip(counts, (s, 2 * s), strict=True):
        # Without replacement: the variance of a count is draws * p * (1 - p).
        p = size / n
        statistic = ((seen - draws * p) ** 2).sum() / (draws * p * (1 - p))
        assert statistic * (n - 1) / n < chi2.ppf(0.999, n - 1)


@given(st.integers(1, 40), st.data(), st.integers(0, 2**32))
@quick
def test_a_larger_draw_contains_a_smaller_one(n, data, seed):
    s = data.draw(st.integers(1, n))
    small, large = uniform(n, s, rng=seed), uniform(n, n, rng=seed)
    np.testing.assert_array_equal(small, large[:s])
    S1, S2 = draw(n, s, 1.5, rng=seed)
    np.testing.assert_array_equal(S1, small)
    np.testing.assert_array_equal(S2[:s], small)
    assert np.unique(S2).size == S2.size
    apart, other = draw(n, s, 1.5, nested=False, rng=seed)
    np.testing.assert_array_equal(apart, small)
    assert np.unique(other).size == other.size


BETWEEN = "landmarks among 5 items.*1 and 5; got"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        *((partial(uniform, 5, s), f"{BETWEEN} {s}") for s in (0, -1, 6)),
        *((partial(draw, 5, s), f"{BETWEEN} {s}") for s in (0, -1, 6)),
        *((partial(draw, 5, 2, o), "at least 1; got") for o in (0.5, 0, -1, np.nan)),
        *((partial(draw, 10, s), "an integer") for s in (2.5, "2", 1j, np.inf, np.nan)),
        (partial(draw, 5, None), "Give n_landmarks, or the indices"),
        (partial(draw, 5, True), "must be an integer"),
    ],
)
def test_impossible_numbers(ask, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ask(rng=0)


@pytest.mark.parametrize(
    ("landmarks", "message"),
    [
        ([0, 0], "none twice"),
        ([], "at least one item"),
        (np.zeros(0, int), "at least one item"),
        ([-1, 2], "Landmarks are numbered 0 to 4; got -1"),
        ([5], "Landmarks are numbered 0 to 4; got 5"),
        ([0.5, 1.0], "array of integers; got float64"),
        ([True, False], r"got bool of shape \(2,\). Of a mask take np.flatnonzero"),
        ([[0], [1]], "one-dimensional"),
        (3, "a number of them is n_landmarks"),
    ],
)
def test_impossible_landmarks(landmarks, message):
    with pytest.raises((ValueError, IndexError), match=message):
        draw(5, None, landmarks=landmarks)


def test_number_and_landmarks():
    assert draw(5, 2, landmarks=[0, 3])[0].tolist() == [0, 3]
    with pytest.raises(ValueError, match="n_landmarks is 3, but 2 landmarks"):
        draw(5, 3, landmarks=[0, 3])


# Selections from a block


@pytest.mark.parametrize("select", [pivoted_qr, adaptive])
@given(st.integers(0, 1000), st.integers(1, 12))
@quick
def test_selections_name_distinct_items(select, seed, s):
    block = indefinite(12, seed=seed, rank=1 + seed % 12)
    picked = select(block, s, rng=seed)
    assert len(set(picked.tolist())) == s
    assert set(picked.tolist()) <= set(range(12))
    np.testing.assert_array_equal(picked, select(block, s, rng=seed))


@pytest.mark.parametrize("select", [pivoted_qr, adaptive])
def test_selections_span_a_block_of_low_rank(select):
    for make in (indefinite, asymmetric):
        block = make(30, rank=5)
        picked = select(block, 5, rng=0)
        basis = np.linalg.qr(block[:, picked])[0]
        np.testing.assert_allclose(basis @ (basis.T @ block), block, atol=1e-10)


@pytest.mark.parametrize("select", [pivoted_qr, adaptive])
@pytest.mark.parametrize("block", [np.zeros((9, 9)), np.ones((9, 9)), np.eye(9)])
def test_selections_of_degenerate_blocks(select, block):
    assert len(set(select(block, 9, rng=0).tolist())) == 9


@pytest.mark.parametrize("select", [pivoted_qr, adaptive])
def test_scale_does_not_matter_to_selections(select):
    block = indefinite(20, rank=6)
    picks = [select(scale * block, 6, rng=0).tolist() for scale in (1e-20, 1, 1e20)]
    assert picks[0] == picks[1] == picks[2]


def test_law_of_adaptive_picks():
    """Two picks of four: probabilities by squared distances, computed by hand."""
    block = np.array([[2.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 3], [0, 0, 3, 0]])
    squares = np.array([5.0, 2.0, 9.0, 9.0])
    # Columns 0 and 1: the squared distance of one from the other is det^2 / norm^2.
    second = {0: [0, 1 / 5, 9, 9], 1: [1 / 2, 0, 9, 9]}
    second |= {2: [5, 2, 0, 9], 3: [5, 2, 9, 0]}
    pairs = list(permutations(range(4), 2))
    law = [squares[i] / squares.sum() * second[i][j] / sum(second[i]) for i, j in pairs]
    rng, law = np.random.default_rng(0), np.array(law)
    counts = Counter(tuple(adaptive(block, 2, rng=rng).tolist()) for _ in range(4000))
    observed = np.array([counts[pair] for pair in pairs])
    statistic = ((observed - 4000 * law) ** 2 / (4000 * law)).sum()
    assert statistic < chi2(11).ppf(0.999)


@pytest.mark.parametrize("select", [pivoted_qr, adaptive])
def test_impossible_selections(select):
    with pytest.raises(ValueError, match=r"landmarks among 4 items.*; got 5"):
        select(np.eye(4), 5)
    with pytest.raises(ValueError, match=r"square; got shape \(4, 3\)"):
        select(np.ones((4, 3)), 2)
    for strange in (np.nan, np.inf, 1j):
        with pytest.raises(ValueError, match="block must be real and finite"):
            select(np.full((4, 4), strange), 2)
