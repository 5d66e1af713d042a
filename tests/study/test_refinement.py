"""Exact similarities on the pairs that decide a clustering."""

from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simlib import BudgetExceeded, Similarity
from study.coreference import average_linkage, conll_f1
from study.datasets import planted_mentions
from study.mentions import cosines, symmetric_scores
from study.refinement import refined

MENTIONS = planted_mentions(1, 60, rng=3)
K = symmetric_scores(MENTIONS)[0]
G = cosines(MENTIONS.embeddings)
PAIRS = 60 * 59 // 2


def given_matrix(K, **options):
    sim = Similarity.from_matrix(K, symmetric=True)
    return sim.fork(**options)


@cache
def plain():
    return refined(given_matrix(K), given_matrix(G), 300, rng=0)


@example(PAIRS, "clusters")
@example(PAIRS, "highest")
@example(PAIRS, "nearest")
@given(st.integers(4, PAIRS), st.sampled_from(["clusters", "highest", "nearest"]))
def test_calls_symmetry_and_what_is_exact(calls, choose):
    sim = given_matrix(K)
    answer = refined(sim, given_matrix(G), calls, choose=choose, rng=1)
    assert sim.calls == calls
    np.testing.assert_array_equal(answer, answer.T)
    i, j = np.triu_indices(60, 1)
    known = sim.peek(i, j)
    read = ~np.isnan(known)
    assert read.sum() == calls
    np.testing.assert_array_equal(answer[i[read], j[read]], known[read])
    assert K.min() <= answer.min()
    assert answer.max() <= K.max()  # a monotone fit stays within what it saw


def test_the_highest_estimates_are_read_first():
    """With a companion that ranks as the matrix does, the top pairs are all read."""
    sim, calls = given_matrix(K), 500
    refined(sim, given_matrix(K**3), calls, choose="highest", rng=0)
    i, j = np.triu_indices(60, 1)
    top = np.argsort(-K[i, j])[: calls // 2]
    assert not np.isnan(sim.peek(i[top], j[top])).any()


def test_the_nearest_to_the_threshold_are_read():
    sim = given_matrix(K)
    options = {"choose": "nearest", "threshold": 0.6, "rng": 0}
    refined(sim, given_matrix(K**3), 900, **options)
    i, j = np.triu_indices(60, 1)
    near = np.argsort(np.abs(K[i, j] - 0.6))[:300]
    assert np.isnan(sim.peek(i[near], j[near])).mean() < 0.05


def test_a_distance_serves_as_companion():
    one = refined(given_matrix(K), given_matrix(G), 400, rng=2)
    two = refined(given_matrix(K), given_matrix(2 - G), 400, rng=2)
    np.testing.assert_allclose(one, two, atol=1e-9)


def test_clusters_of_few_pairs_are_those_of_all():
    exact = average_linkage(K, 0.5)
    answer = refined(given_matrix(K), given_matrix(G), PAIRS // 4, rng=0)
    plain = refined(given_matrix(K), given_matrix(np.eye(60)), PAIRS // 4, rng=0)
    found = conll_f1(exact, average_linkage(answer, 0.5))
    assert found > 0.9
    assert found > conll_f1(exact, average_linkage(plain, 0.5))


def test_single_precision_stays():
    answer = refined(given_matrix(K.astype(np.float32)), given_matrix(G), 300, rng=0)
    assert answer.dtype == np.float32


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**-1000, 2.0**1000])
def test_the_unit_of_the_companion_does_not_matter(scale):
    """The regression takes what differs by less than 1e-15 for the same."""
    answer = refined(given_matrix(K), given_matrix(scale * G), 300, rng=0)
    np.testing.assert_array_equal(answer, plain())


def test_a_companion_in_single_precision_of_large_similarities():
    """The regression would take the similarities in the companion's type."""
    single = given_matrix(G.astype(np.float32))
    answer = refined(given_matrix(K * 1e50), single, 300, rng=0)
    expected = 1e50 * refined(given_matrix(K), single, 300, rng=0)
    np.testing.assert_allclose(answer, expected)


def test_the_mean_of_both_orders_is_paid_twice_unless_it_is_known():
    scores = MENTIONS.scores[0]
    short = Similarity.from_matrix(scores, symmetric=False).fork(limit=599)
    with pytest.raises(BudgetExceeded, match="up to 600 evaluations"):
        refined(short.symmetrized(), given_matrix(G), 300, rng=0)
    assert short.calls == 0
    short.limit = None
    i, j = np.triu_indices(60, 1)
    short.pairs(i[59:], j[59:])  # one order, of all but the first item
    short.limit = short.calls + 358
    with pytest.raises(BudgetExceeded, match="up to 359 evaluations"):
        refined(short.symmetrized(), given_matrix(G), 300, rng=0)
    short.limit += 1
    refined(short.symmetrized(), given_matrix(G), 300, rng=0)


def test_what_is_known_is_free():
    sim = given_matrix(K)
    sim.columns(range(60))
    sim.limit = sim.calls
    answer = refined(sim, given_matrix(G), 300, rng=0)
    np.testing.assert_array_equal(answer, plain())


def test_what_it_refuses():
    sim, cheap = given_matrix(K), given_matrix(G)
    with pytest.raises(ValueError, match="clusters, highest, nearest"):
        refined(sim, cheap, 100, choose="lowest")
    with pytest.raises(ValueError, match="between 4 and 1770"):
        refined(sim, cheap, 1771)
    with pytest.raises(ValueError, match="has 60 items, not 30"):
        refined(given_matrix(K[:30, :30]), cheap, 100)
    with pytest.raises(ValueError, match="symmetrized"):
        refined(Similarity.from_matrix(MENTIONS.scores[0]), cheap, 100)
    limited = given_matrix(K, limit=99)
    with pytest.raises(BudgetExceeded, match="up to 100 evaluations"):
        refined(limited, cheap, 100)
    assert limited.calls == 0
