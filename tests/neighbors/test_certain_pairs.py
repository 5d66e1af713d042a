"""Similar pairs that a bound makes certain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist
from scipy.spatial.distance import squareform

from simlib import Similarity
from simlib.datasets import bundled_words
from simlib.neighbors import pairs_above
from simlib.text.bounds import qgram_distances
from support.matrices import quick


def bounded(n, seed, distance, dtype=float):
    """Return a matrix of whole numbers, with ties, and a bound of it."""
    rng = np.random.default_rng(seed)
    D = squareform(rng.integers(0, 12, n * (n - 1) // 2)).astype(dtype)
    low = D - squareform(rng.integers(0, 4, n * (n - 1) // 2))
    return (D, low) if distance else (-D, -low)


@given(
    st.integers(2, 25),
    st.integers(0, 10**6),
    st.integers(-1, 12),
    st.booleans(),
    st.sampled_from(["one", "groups", "two"]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([None, 0, 5, 40]),
)
@quick
def test_all_pairs_that_a_bound_leaves(
    n, seed, threshold, distance, kind, dtype, limit
):
    K, bound = bounded(n, seed, distance, dtype)
    i, j = np.triu_indices(n, 1)
    options, m = {"distance": distance, "exact": True, "limit": limit}, 0
    if kind == "groups":
        groups = np.random.default_rng(seed).permutation(n) % 2
        options["groups"] = groups
        other = groups[i] != groups[j]
        i, j = i[other], j[other]
    if kind == "two":
        m = n // 2
        i, j = np.divmod(np.arange(m * (n - m)), n - m)
        j += m
        sim, cheap = (Similarity.from_matrix(M[:m, m:], two=True) for M in (K, bound))
    else:
        sim, cheap = Similarity.from_matrix(K), Similarity.from_matrix(bound)
    threshold, sign = (threshold, -1) if distance else (-threshold, 1)
    pairs = pairs_above(sim, threshold, cheap=cheap, **options)
    hits = sign * K[i, j] >= sign * threshold
    left = np.count_nonzero(sign * bound[i, j] >= sign * threshold)
    true = set(zip(i[hits].tolist(), j[hits].tolist(), strict=True))
    found = set(zip(pairs.i.tolist(), (pairs.j + m).tolist(), strict=True))
    assert pairs.calls == sim.calls == (left if limit is None else min(left, limit))
    assert pairs.reached == (pairs.recall == 1) == (pairs.calls == left)
    assert found == true if pairs.reached else found < true or found == true
    assert pairs.recall * len(true) <= len(found)
    np.testing.assert_array_equal(pairs.values, K[pairs.i, pairs.j + m])
    assert (np.diff(sign * pairs.values) <= 0).all()


def test_words_a_few_letters_apart():
    words = bundled_words()
    D = cdist(words, words, scorer=Levenshtein.distance)
    low = qgram_distances(words, words, normalized=False)
    sim = Similarity(words, Levenshtein.distance)
    options = {"cheap": Similarity.from_matrix(low), "distance": True, "exact": True}
    pairs = pairs_above(sim, 1, **options)
    i, j = np.nonzero(np.triu(D <= 1, 1))
    assert set(zip(pairs.i, pairs.j, strict=True)) == set(zip(i, j, strict=True))
    assert 0 < i.size < sim.calls < 0.1 * sim.n * (sim.n - 1) / 2
    again = pairs_above(sim.informed(), 2, **options)
    assert again.calls + pairs.calls == sim.calls
    assert sim.calls == np.count_nonzero(np.triu(low <= 2, 1))


def test_most_promising_pairs_come_first():
    D, low = bounded(40, 0, distance=True)
    cheap = Similarity.from_matrix(low)
    sim = Similarity.from_matrix(D)
    pairs = pairs_above(sim, 6, limit=100, cheap=cheap, distance=True, exact=True)
    i, j = np.triu_indices(40, 1)
    known = ~np.isnan(sim.peek(i, j))
    assert low[i, j][known].max() <= low[i, j][~known].min()
    left = np.count_nonzero(low[i, j] <= 6) - 100
    assert pairs.recall == len(pairs.i) / (len(pairs.i) + left)
    assert not pairs.reached


@pytest.mark.parametrize("distance", [True, False])
def test_bounds_that_fail_are_named(distance):
    K, bound = bounded(30, 0, distance)
    K[3, 20] = K[20, 3] = 5 if distance else -5
    bound[3, 20] = bound[20, 3] = 6 if distance else -6
    what = (
        "lower .* distance 5, less than 6" if distance else "upper .* -5, more than -6"
    )
    options = {"distance": distance, "exact": True}
    threshold = 7 if distance else -7
    for two, other in ((False, 20), (True, 8)):
        rows, columns = (slice(12), slice(12, None)) if two else (slice(None),) * 2
        sim, cheap = (
            Similarity.from_matrix(M[rows, columns], two=two) for M in (K, bound)
        )
        with pytest.raises(ValueError, match=rf"no {what}\.") as told:
            pairs_above(sim, threshold, cheap=cheap, **options)
        assert f"items 3 and {other} have" in str(told.value)
        assert sim.calls > 0  # what was paid for is kept
    with pytest.raises(ValueError, match="never larger"):
        pairs_above(Similarity.from_matrix(K), threshold, **options)


@pytest.mark.parametrize(("threshold", "found"), [(-1e300, 15), (1e300, 0)])
def test_a_threshold_beyond_single_precision_is_no_infinity(threshold, found):
    K = np.arange(36, dtype=np.float32).reshape(6, 6)
    sim, bound = Similarity.from_matrix(K + K.T), Similarity.from_matrix(K + K.T + 1)
    pairs = pairs_above(sim, threshold, cheap=bound, exact=True, rng=0)
    assert (pairs.i.size, pairs.threshold) == (found, threshold)
