"""Similar pairs, with a promise that is kept; and the neighbours of new items."""

import copy
import math
import pickle
import re
import sys
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.cluster.hierarchy
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.stats import chi2, hypergeom
from sklearn.cluster import DBSCAN

from simlib import BudgetExceeded, Similarity
from simlib.neighbors import most_similar, nearest, pairs_above, search
from simlib.neighbors.hits import Above, Nearest
from simlib.neighbors.pair_numbers import PairNumbers, unseen
from simlib.neighbors.pair_search import PairSearch
from simlib.neighbors.promise import Promise
from simlib.neighbors.recall_bound import alpha, at_most, most_hits
from support.matrices import asymmetric, quick, rbf


def noisy(n, *, seed=0):
    """Return a similarity, and a companion that nearly agrees."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    noise = rng.standard_normal((n, 3)) / 4
    G = np.exp(-cdist(x, x, "sqeuclidean"))
    return G + noise @ noise.T / 3, G


def both(n, *, seed=0):
    """Return a matrix, its similarity, and that of the companion."""
    K, G = noisy(n, seed=seed)
    return K, Similarity.from_matrix(K), Similarity.from_matrix(G)


def above(K, threshold):
    i, j = np.triu_indices(len(K), 1)
    good = K[i, j] >= threshold
    return set(zip(i[good].tolist(), j[good].tolist(), strict=True))


def found(pairs):
    return set(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True))


@given(st.integers(2, 30), st.floats(0, 1), st.booleans())
@quick
def test_all_of_them(n, threshold, distance):
    K = rbf(n, seed=n)
    sim = Similarity.from_matrix(-K if distance else K)
    level = -threshold if distance else threshold
    pairs = pairs_above(sim, level, recall=1, distance=distance, rng=0)
    assert found(pairs) == above(K, threshold)
    assert pairs.reached
    assert pairs.recall == 1
    np.testing.assert_array_equal(abs(pairs.values), K[pairs.i, pairs.j])
    assert (np.diff(K[pairs.i, pairs.j]) <= 0).all()


def companions(K, G, level, rng):
    """Companions that help, know nothing, mislead, and hide a third of the pairs."""
    noise, third = rng.standard_normal(K.shape), np.indices(K.shape).sum(axis=0) % 3
    hides = np.where((level <= K) & (third == 0), K.min() - 1, K)
    return None, G, noise + noise.T, -K, hides


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A promised recall")
@pytest.mark.parametrize("kind", range(5))
def test_the_promise_is_kept(kind):
    """A tenth of small runs may fail; limits hold, and no pair is paid for twice."""
    broken = 0
    for seed in range(40):
        K, G = noisy(60, seed=seed)
        asked, rng = np.zeros((60, 60), int), np.random.default_rng(seed)

        def function(i, j, K=K, asked=asked):
            np.add.at(asked, (np.minimum(i, j), np.maximum(i, j)), 1)
            return K[i, j]

        options = {"batch": "pairs", "check_symmetry": False}
        sim = Similarity(range(60), function, **options)
        cheap = companions(K, G, 0.45, rng)[kind]
        cheap = None if cheap is None else Similarity.from_matrix(cheap)
        limit = None if seed % 4 else int(rng.integers(100, 1700))
        options = {"recall": 0.8, "confidence": 0.9, "cheap": cheap, "rng": seed}
        truth = above(K, 0.45)
        if seed % 2:
            pairs = pairs_above(sim, 0.45, limit=limit, **options)
            assert found(pairs) <= truth
        else:
            pairs = most_similar(sim, len(truth), limit=limit, **options)
        broken += len(found(pairs) & truth) < pairs.recall * len(truth)
        assert asked.max() == 1
        assert pairs.calls == asked.sum()
        assert pairs.reached == (0.8 <= pairs.recall <= 1)
        assert pairs.reached if limit is None else pairs.calls <= limit
    assert broken <= 8  # more would come by chance once in fifty times


@pytest.mark.filterwarnings("ignore:A promised recall")
@pytest.mark.parametrize("cheap", ["factor", "function", None])
def test_listed_candidates_find_as_much(cheap, monkeypatch):
    """As among very many items."""
    monkeypatch.setattr("simlib.neighbors.pair_queue.EVERY", 0)
    x = np.random.default_rng(0).standard_normal((300, 3))
    x /= np.linalg.norm(x, axis=1)[:, None]
    K = x @ x.T
    function = Similarity(x, lambda a, b: a @ b.T, batch="block")
    options = {"cheap": {"factor": x, "function": function}.get(cheap), "rng": 0}
    sim = Similarity.from_matrix(K)
    pairs = pairs_above(sim, 0.99, recall=None, **options)
    if cheap:
        assert found(pairs) == above(K, 0.99)
        assert sim.calls < 0.3 * 300 * 299 / 2
    pairs = pairs_above(sim, 0.9, **options, limit=9000)
    assert found(pairs) <= above(K, 0.9)
    assert len(found(pairs)) >= pairs.recall * len(above(K, 0.9))


def test_it_pays_for_few_in_few_looks(monkeypatch):
    """Each costs confidence: a sample is continued by a quarter at least."""
    K, sim, cheap = both(300)
    made = PairSearch(sim, None, cheap, None, False, 0)
    looks = []

    def counted(look, confidence):
        looks.append(look)
        return alpha(look, confidence)

    monkeypatch.setattr("simlib.neighbors.promise.alpha", counted)
    promised, reached = made.run(Above(0.3), 0.95, 0.95)
    assert promised >= 0.95
    assert reached
    hits = np.count_nonzero(made.paid.nearness >= 0.3)
    assert hits >= 0.95 * len(above(K, 0.3))
    assert made.paid.calls == sim.calls < 0.25 * 300 * 299 / 2
    assert 1 <= max(looks) <= 15


def test_what_is_found_is_missing_no_longer():
    """Two are found of five that may be missing; or of one: the bound is wrong."""
    K = np.full((6, 6), 0.1)
    K[0, 1:3] = K[1:3, 0] = 0.9  # the pairs numbered 0 and 1
    for bound, left, recall in [(5, 3, 2 / 5), (1, np.inf, 0)]:
        search = PairSearch(Similarity.from_matrix(K), None, None, None, False, 0)
        promise = Promise(search, Above(0.5), 0.95, 0.95)
        promise.bound = bound
        promise.lower(search.pay(np.arange(4)))
        assert (promise.bound, promise.promised()) == (left, recall)


@pytest.mark.parametrize("groups", [False, True])
def test_every_pair_has_a_number(groups):
    """Of different groups only; those with two are far apart."""
    n, labels = 40, np.arange(40) % 2 if groups else np.arange(40)
    numbers = PairNumbers(n, labels if groups else None)
    i, j = numbers.pairs(np.arange(numbers.count))
    assert (i < j).all()
    pairs = set(zip(i.tolist(), j.tolist(), strict=True))
    assert len(pairs) == numbers.count
    one, other = np.triu_indices(n, 1)
    assert len(pairs) == np.count_nonzero(labels[one] != labels[other])
    np.testing.assert_array_equal(numbers.of(j, i), np.arange(numbers.count))
    many = PairNumbers(10**6)
    at = np.array([0, 10**6, many.count - 1])
    assert many.count == 499_999_500_000
    i, j = many.pairs(at)
    assert list(zip(i, j, strict=True)) == [(0, 1), (1, 3), (999_998, 999_999)]
    np.testing.assert_array_equal(many.of(i, j), at)


def test_draws_are_uniform_and_new():
    seen, numbers = np.array([0, 3, 4, 9]), PairNumbers(7, np.repeat([0, 1], [4, 3]))
    others = np.setdiff1d(np.arange(12), seen)
    np.testing.assert_array_equal(unseen(seen, np.arange(8)), others)
    rng, counts = np.random.default_rng(0), {2: np.zeros(12), 7: np.zeros(12)}
    for size, count in counts.items():
        for _ in range(4000):
            drawn = numbers.draw(rng, seen, size)
            assert np.unique(drawn).size == size
            count[drawn] += 1
        expected = 4000 * size / 8
        assert (count[seen] == 0).all()
        assert (abs(count[others] - expected) < 5 * np.sqrt(expected)).all()
    assert sorted(numbers.draw(rng, seen, 99)) == others.tolist()
    large = PairNumbers(10**6).draw(rng, np.arange(10**5), 10**5)
    assert large.min() >= 10**5
    assert abs(large.mean() / 2.5e11 - 1) < 0.01


def test_two_tables():
    K, sim, cheap = both(60)
    groups = np.repeat(["a", "b"], 30)
    pairs = pairs_above(sim, 0.2, recall=1, cheap=cheap, groups=groups, rng=0)
    assert found(pairs) == {(i, j) for i, j in above(K, 0.2) if i < 30 <= j}
    assert sim.calls <= 900 + 60  # whole columns have items with themselves


def test_a_limit_tells_how_far_it_came():
    K, sim, cheap = both(150)
    pairs = pairs_above(sim, 0.3, cheap=cheap, limit=900, rng=0)
    assert pairs.calls == sim.calls <= 900
    assert not pairs.reached
    assert len(found(pairs)) / len(above(K, 0.3)) >= pairs.recall
    more = pairs_above(sim, 0.3, cheap=cheap, rng=0)
    assert more.reached
    assert sim.calls <= 1.01 * more.calls  # the first calls are nearly those of before
    sim = Similarity.from_matrix(K)
    sim.pairs(pairs.i, pairs.j)
    more = pairs_above(sim.informed(), 0.3, cheap=cheap, rng=0)
    assert more.reached
    assert sim.calls == len(pairs.i) + more.calls


def test_the_most_similar():
    K, sim, cheap = both(200)
    best = np.sort(K[np.triu_indices(200, 1)])[::-1]
    pairs = most_similar(sim, 400, cheap=cheap, rng=0)
    assert pairs.reached
    assert pairs.i.size == 400
    assert np.mean(pairs.values >= best[399]) >= 0.95
    assert sim.calls < 19900
    whole = most_similar(Similarity.from_matrix(K), 7, recall=1)
    np.testing.assert_array_equal(whole.values, best[:7])


@pytest.mark.filterwarnings("ignore:A promised recall")
@pytest.mark.parametrize("recall", [0.9, None])
@pytest.mark.parametrize("share", [0.1, 0.5, 1])
def test_of_equal_pairs_some_are_as_good_as_all(share, recall):
    """A search for m of many that are as similar pays for few."""
    K, each = noisy(200)[0], np.triu_indices(200, 1)
    K = (np.quantile(K[each], 1 - share) <= K).astype(int)
    sim = Similarity.from_matrix(K)
    pairs = most_similar(sim, 400, recall=recall, rng=0)
    assert pairs.values.tolist() == [1] * 400
    assert pairs.reached
    assert sim.calls < 0.25 * 19900


@pytest.mark.parametrize(("U", "s"), [(50, 20), (400, 60), (30, 30)])
def test_the_bound_is_the_largest_that_fits(U, s):
    for x in range(4):
        most = most_hits(U, x, s, 0.05)
        assert hypergeom.cdf(x, U, most, s) >= 0.05
        assert most == U - s + x or hypergeom.cdf(x, U, most + 1, s) < 0.05


def test_the_bound_among_very_many_pairs():
    """Where the sample is a small part the number of hits in it is Poisson's."""
    U, s = 5 * 10**11, 10**7
    for x in (0, 3, 1000):
        events = chi2.ppf(0.99, 2 * (x + 1)) / 2
        assert most_hits(U, x, s, 0.01) == pytest.approx(events * U / s, rel=1e-4)
    terms = 1 - np.float64(s) / (U - np.arange(200_000.0))  # no hit in the sample
    expected = np.exp(np.log(terms).sum())
    assert at_most(0, U, 200_000, s) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"recall": 0}, "recall must be"),
        ({"recall": True}, "recall must be above 0 and at most 1"),
        ({"confidence": 1}, "confidence must"),
        ({"groups": [1, 2]}, "groups"),
        ({"groups": ["a", None] * 5}, "name all groups alike"),
        ({"groups": [0, "0"] * 5}, "name all groups alike"),
        ({"groups": [np.nan] * 2 + [1] * 8}, "some are masked or NaN"),
        ({"groups": np.ma.array([1] * 10, mask=[1] + [0] * 9)}, "some are masked"),
        ({"groups": pd.array([None, 1] * 5, dtype="Int64")}, "name all groups"),
        ({"groups": [1] * 10}, "one group"),
    ],
)
def test_pairs_are_refused(options, cause):
    sim = Similarity.from_matrix(rbf(10))
    with pytest.raises(ValueError, match=cause):
        pairs_above(sim, **{"threshold": 0.5, **options})
    with pytest.raises(ValueError, match="m must be"):
        most_similar(sim, 46)
    with pytest.raises(ValueError, match="symmetrized"):
        pairs_above(Similarity.from_matrix(asymmetric(9)), 0.5)
    assert sim.calls == 0


@pytest.mark.parametrize("exponent", [-90, 900])
def test_pairs_at_any_scale(exponent):
    K, scale = noisy(50)[0], 2.0**exponent
    for hunt, goal, scaled in (pairs_above, 0.5, 0.5 * scale), (most_similar, 50, 50):
        one = hunt(Similarity.from_matrix(K), goal, rng=0)
        other = hunt(Similarity.from_matrix(K * scale), scaled, rng=0)
        assert found(one) == found(other)
        assert one.calls == other.calls
        np.testing.assert_array_equal(one.values * scale, other.values)


@pytest.mark.parametrize(("value", "distance"), [(0.7, False), (0.1, True)])
def test_a_threshold_is_rounded_as_values_are(value, distance):
    sim = Similarity.from_matrix(np.full((4, 4), value, np.float32))
    assert pairs_above(sim, value, distance=distance).i.size == 6


# New items


def split(n, m, **options):
    """Return a similarity of n items, m new ones, and both matrices of both."""
    K, G = noisy(n + m)
    sim = Similarity(range(n), lambda i, j: K[i, j], batch="pairs", **options)
    return sim, np.arange(n, n + m), K, G


def test_all_calls_find_the_nearest():
    sim, new, K, _ = split(80, 6)
    result = search(sim, new, 5, limit=80, fit_limit=0)
    best = -np.sort(-K[80:, :80], axis=1)[:, :5]
    np.testing.assert_array_equal(result.values, best)
    assert (result.calls, result.fit_calls) == (480, 0)


def test_few_calls_find_most():
    sim, new, K, G = split(400, 50)
    cheap = {"cheap": Similarity.from_matrix(G[:400, :400]), "cheap_new": G[400:, :400]}
    result = search(sim, new, 5, limit=40, fit_limit=8000, **cheap)
    kth = -np.sort(-K[400:, :400], axis=1)[:, 4]
    assert np.mean(result.values >= kth[:, None]) > 0.9
    assert result.calls == 50 * 40
    assert 0 < result.fit_calls <= 8000
    assert sim.calls == result.calls + result.fit_calls
    np.testing.assert_array_equal(result.values, K[new[:, None], result.indices])


@pytest.mark.parametrize("factor", [False, True])
def test_a_factor_and_a_distance(factor):
    x = np.random.default_rng(0).standard_normal((130, 5))
    D = cdist(x, x)
    sim = Similarity(range(100), lambda i, j: D[i, j], batch="pairs")
    cheap, cheap_new = Similarity(x[:100, :4], cdist, batch="block"), D[100:, :100]
    if factor:
        cheap, cheap_new = x[:100], x[100:]
    options = {"cheap": cheap, "cheap_new": cheap_new, "distance": True, "rng": 0}
    result = search(sim, range(100, 130), 3, limit=25, **options)
    best = np.sort(D[100:, :100], axis=1)[:, :3]
    assert np.mean(result.values <= best[:, -1:]) > (0.5 if factor else 0.95)


@pytest.mark.parametrize("exponent", [-80, 70, 900])
def test_searches_at_any_scale(exponent):
    results = []
    for scale in (1.0, 2.0**exponent):
        K, _ = noisy(130)
        K *= scale
        sim = Similarity(range(100), lambda i, j, K=K: K[i, j], batch="pairs")
        results.append(search(sim, range(100, 130), 3, limit=20, rng=0))
    np.testing.assert_array_equal(results[0].indices, results[1].indices)
    assert all(np.unique(row).size == 3 for row in results[1].indices)


@pytest.mark.parametrize("limit", [8, 10])
def test_a_companion_helps_without_landmarks(limit):
    x = np.random.default_rng(0).standard_normal((230, 3))
    D = cdist(x, x)
    sim = Similarity(range(200), lambda i, j: D[i, j], batch="pairs")
    cheap = Similarity.from_matrix(D[:200, :200])
    options = {"cheap": cheap, "cheap_new": D[200:, :200], "fit_limit": 0}
    new = range(200, 230)
    result = search(sim, new, 1, limit=limit, distance=True, rng=0, **options)
    best = D[200:, :200].argmin(axis=1)
    assert np.mean(result.indices[:, 0] == best) > 0.9


def test_a_symmetrized_search_pays_twice():
    K = asymmetric(40)

    def similarity(**options):
        function = Similarity(
            range(30), lambda i, j: K[i, j], batch="pairs", symmetric=False, **options
        )
        return function.symmetrized()

    sim = similarity()
    result = search(sim, range(30, 35), 3, limit=21, fit_limit=300, rng=0)
    assert result.calls == 5 * 20
    assert result.calls + result.fit_calls == sim.calls
    with pytest.raises(BudgetExceeded, match="100 evaluations"):
        search(similarity(limit=99), range(30, 35), 3, limit=20, fit_limit=0)
    with pytest.raises(ValueError, match="give 6"):
        search(sim, range(30, 35), 3, limit=5)


def test_new_rows_of_two_collections():
    """As the refusal tells: a search of both learns from the old ones."""
    rng = np.random.default_rng(0)
    K = -cdist(rng.standard_normal((60, 6)), rng.standard_normal((400, 6)))
    sim = Similarity(range(60), lambda i, j: K[i, j], columns=range(400), batch="pairs")
    sim.rows(range(50))
    with pytest.raises(ValueError, match=r"new rows nearest of sim.informed\(\)"):
        search(sim, [1], 5, limit=60)
    found = nearest(sim.informed(), 5, limit=600, rng=0).indices[50:]
    assert sim.calls == 50 * 400 + 600
    best = np.argsort(-K[50:], axis=1)[:, :5]
    both = zip(found.tolist(), best.tolist(), strict=True)
    assert np.mean([len(set(one) & set(other)) / 5 for one, other in both]) > 0.4


def test_searches_are_refused_before_they_pay():
    sim, new, _, G = split(30, 4)
    square = Similarity.from_matrix(G[:30, :30])
    for k, options, cause in [
        (3, {"limit": 2}, "limit=2 does not pay"),
        (31, {"limit": 40}, "k must be between"),
        (3, {"cheap": G[:30, :5]}, "cheap_new"),
        (3, {"cheap": square, "cheap_new": G[:5, :30]}, r"shape \(4, 30\)"),
        (3, {"cheap": G[:30, :5], "cheap_new": G[:3, :5]}, r"shape \(4, 5\)"),
        (3, {"cheap": G[:30, :5], "cheap_new": G[30:33, :5].tolist()}, "cheap_new"),
        (3, {"cheap": G[:30, :5], "cheap_new": G[30:, :4]}, r"shape \(4, 5\)"),
        (3, {"cheap": G[:29, :5], "cheap_new": G[:4, :5]}, "have the same items"),
        (3, {"cheap_new": G[30:, :5]}, "pass both"),
    ]:
        with pytest.raises(ValueError, match=cause):
            search(sim, new, k, **{"limit": 9, **options})
    with pytest.raises(TypeError, match="no order"):
        search(sim, {1, 2}, 3, limit=9)
    assert sim.calls == 0
    with pytest.raises(BudgetExceeded, match="Nothing was evaluated"):
        search(split(30, 4, limit=50)[0], new, 3, limit=9)
    X = scipy.sparse.random(30, 9, 0.5, format="csr", random_state=0)
    sim = Similarity(X, lambda x, y: (x @ y.T).toarray(), batch="block")
    assert search(sim, X[:5].tocoo(), 3, limit=9).indices.shape == (5, 3)


def test_results_are_told_in_a_line():
    sim = Similarity(np.arange(5.0), lambda x, y: abs(x - y))
    pairs = pairs_above(sim, 1.0, distance=True, rng=0)
    assert "4 pairs, recall at least 1.000 (reached), calls=10" in repr(pairs)
    told = repr(pairs._replace(recall=0.0))
    assert told == "SimilarPairs(4 pairs, without a promise, calls=10)"
    found = search(sim, [1.2, 3.4], 1, limit=4, distance=True, rng=0)
    assert "1 nearest of 2 items, calls=8, fit_calls=9" in repr(found)
    assert sim.calls == 20  # ten pairs, two of the diagonal, eight with new items
    graph = nearest(sim.informed(), 2, limit=10, distance=True, check=2, rng=0)
    told = "2 nearest of 5 items, calls=0, recall 1.00 (0.00 to 1.00)"
    assert told in repr(graph)


def test_search_of_none_and_among_one():
    sim = Similarity([1.0], lambda x, y: abs(x - y))
    options = {"limit": 1, "fit_limit": 0, "distance": True, "rng": 0}
    found = search(sim, [2.0, 5.0], 1, **options)
    assert found.indices.tolist() == [[0], [0]]
    assert found.values.tolist() == [[1.0], [4.0]]
    for nothing in ([], np.zeros((0, 4))):
        result = search(sim, nothing, 1, **options)
        assert result.indices.shape == result.values.shape == (0, 1)
    sim = Similarity([1.0], lambda x, y: x - 2 * y, symmetric=False).symmetrized()
    with pytest.raises(ValueError, match="give 2"):
        search(sim, [2.0, 5.0], 1, **options)
    found = search(sim, [2.0, 5.0], 1, **{**options, "limit": 2})
    assert found.values.tolist() == [[-1.5], [-3.0]]
    assert found.calls == sim.calls == 4


# From pairs to clusters


def same_clusters(one, other):
    """Tell whether two labellings are the same partition."""
    return (np.equal.outer(one, one) == np.equal.outer(other, other)).all()


def of_all_pairs(D, threshold, linkage):
    """Clusters by SciPy from all distances."""
    tree = scipy.cluster.hierarchy.linkage(squareform(D, checks=False), linkage)
    return fcluster(tree, threshold, "distance")


LINKAGES = ("single", "complete", "average")


@given(st.integers(2, 40), st.floats(0, 2), st.integers(0, 10**6))
@quick
def test_clusters_are_those_of_all_pairs(n, threshold, seed):
    x = np.random.default_rng(seed).random((n, 2)) * 4
    D = cdist(x, x)
    by_distance = Similarity.from_matrix(D), {"distance": True}, threshold
    by_similarity = Similarity.from_matrix(-5 - D), {}, -5 - threshold  # below zero
    for sim, options, level in (by_distance, by_similarity):
        pairs = pairs_above(sim, level, recall=1, rng=0, **options)
        for linkage in LINKAGES:
            labels = pairs.clusters(linkage)
            assert same_clusters(labels, of_all_pairs(D, threshold, linkage))
            _, first = np.unique(labels, return_index=True)
            assert (np.diff(first) > 0).all()
            assert labels[first].tolist() == list(range(first.size))
        assert same_clusters(pairs.clusters(), pairs.clusters("single"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clusters_of_equal_values(dtype):
    """A path 0 1 2 3 and a triangle, all pairs equally similar."""
    K = np.zeros((8, 8), dtype)
    for i, j in [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (4, 6)]:
        K[i, j] = K[j, i] = 0.7
    sim = Similarity.from_matrix(K)
    pairs = pairs_above(sim, 0.7, recall=1, rng=0)
    assert pairs.clusters().tolist() == [0, 0, 0, 0, 1, 1, 1, 2]
    complete = pairs.clusters("complete")
    together = np.equal.outer(complete, complete) & ~np.eye(8, dtype=bool)
    assert (K[together] > 0).all()
    assert np.unique(complete).size == np.unique(pairs.clusters("average")).size == 4
    none = pairs_above(sim, 0.8, recall=1, rng=0)
    for linkage in LINKAGES:
        assert none.clusters(linkage).tolist() == list(range(8))


def test_average_linkage_pays_for_the_components_and_the_others_for_nothing():
    x = np.concatenate([np.arange(5.0), 100 + np.arange(2.0), [200]])
    sim = Similarity(x, lambda a, b: abs(a - b))
    known = Similarity(x, lambda a, b: abs(a - b))
    found = most_similar(known, 5, distance=True, recall=1, rng=0)
    pairs = found._replace(sim=sim)  # which knows nothing
    assert (pairs.threshold, pairs.distance) == (1.0, True)
    assert pairs.clusters().tolist() == [0, 0, 0, 0, 0, 1, 1, 2]
    assert np.unique(pairs.clusters("complete")).size == 5
    assert sim.calls == 0
    sim.limit = 9
    with pytest.raises(BudgetExceeded, match="10 evaluations"):
        pairs.clusters("average")
    sim.limit = None
    D = np.abs(x[:, None] - x)
    assert same_clusters(pairs.clusters("average"), of_all_pairs(D, 1, "average"))
    assert sim.calls == 10
    with pytest.raises(ValueError, match="linkage is one of"):
        pairs.clusters("ward")


def test_clusters_of_two_tables():
    """By complete linkage no two items of one table are joined."""
    x = np.array([0.0, 0.1, 5.0, 0.05, 5.1, 9.0])
    sim = Similarity(x, lambda a, b: abs(a - b))
    groups = list("aaabbb")
    pairs = pairs_above(sim, 0.5, groups=groups, distance=True, recall=1, rng=0)
    assert found(pairs) == {(0, 3), (1, 3), (2, 4)}
    assert same_clusters(pairs.clusters(), [0, 0, 1, 0, 1, 2])
    assert pairs.clusters("complete")[0] != pairs.clusters("complete")[1]


@pytest.mark.parametrize("distance", [True, False])
def test_pairs_as_a_graph_and_as_a_frame(distance):
    x = np.random.default_rng(0).random((50, 2))
    D = cdist(x, x)
    sim = Similarity.from_matrix(D if distance else 2 - D)
    level = 0.15 if distance else 2 - 0.15
    pairs = pairs_above(sim, level, distance=distance, recall=1, rng=0)
    near = (D <= 0.15) & ~np.eye(50, dtype=bool)
    A, least = pairs.to_csr(), 0 if distance else D[near].min()
    np.testing.assert_allclose(A.toarray(), np.where(near, D - least, 0), atol=1e-15)
    assert A.nnz == near.sum()
    assert A.indices.dtype == A.indptr.dtype == np.int32
    steps = np.diff(A.data)
    steps[A.indptr[1:-1] - 1] = 0  # from a row to the next
    assert (steps >= 0).all()
    np.testing.assert_array_equal(pairs.to_csr("connectivity").toarray(), near)
    weights, top = pairs.to_csr("similarity").toarray(), D[near].max()
    expected = np.where(near, (top if distance else 2) - D, 0)
    np.testing.assert_allclose(weights, expected, atol=1e-15)
    for samples in (1, 4):
        eps = level if distance else A.max()
        model = DBSCAN(eps, min_samples=samples, metric="precomputed")
        whole = DBSCAN(0.15, min_samples=samples, metric="precomputed")
        np.testing.assert_array_equal(model.fit_predict(A), whole.fit_predict(D))
    frame, name = pairs.to_frame(), "distance" if distance else "similarity"
    assert frame.columns.tolist() == ["i", "j", name]
    np.testing.assert_array_equal(frame[name], pairs.values)
    graph = nearest(pairs.sim, 3, limit=2000, distance=distance, rng=0)
    frame = graph.to_frame()
    assert frame.columns.tolist() == ["i", "j", name]
    np.testing.assert_array_equal(frame.i, np.arange(len(frame)) // 3)
    np.testing.assert_array_equal(frame.j, graph.indices.ravel())
    np.testing.assert_array_equal(frame[name], pairs.sim.peek(frame.i, frame.j))
    with pytest.raises(ValueError, match="mode is one of"):
        pairs.to_csr("length")
    with pytest.raises(ValueError, match="read-only"):
        pairs.values.sort()


def test_a_frame_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    sim = Similarity.from_matrix(np.eye(3))
    pairs = pairs_above(sim, 0.5, recall=1)
    assert pairs.to_csr().nnz == 0
    for found in (pairs, nearest(sim, 1, limit=3)):
        with pytest.raises(ImportError, match="pip install pandas"):
            found.to_frame()


# What is said before, and while it takes time


def test_a_threshold_that_most_pairs_pass_is_told():
    """Distances are, without distance=True: no diagonal has to tell."""
    D = cdist(*[np.random.default_rng(0).random((300, 2))] * 2)
    for K, level, way, cause in (D, 0.1, False, "pass"), (-D, -0.1, True, "leave out"):
        options = {"distance": way, "recall": None, "limit": 3000, "rng": 0}
        with pytest.warns(UserWarning, match=f"pass the thr.*{cause}") as told:
            pairs_above(Similarity.from_matrix(K), level, **options)
        assert told[0].filename == __file__
        pairs_above(Similarity.from_matrix(K), level, **options | {"distance": not way})


def test_distances_that_are_taken_for_similarities_are_told():
    """Otherwise the farthest items would be the nearest."""
    x = np.random.default_rng(0).random((60, 2))
    D = cdist(x, x)

    def searches(K, new, **options):
        def sim():
            return Similarity(range(60), lambda i, j: K[i, j], batch="pairs", **options)

        yield lambda way: nearest(sim(), 3, limit=600, distance=way, rng=0)
        yield lambda way: search(sim(), new, 3, limit=9, distance=way, rng=0)
        if options:
            yield lambda way: nearest(sim(), 3, limit=1770, distance=way, rng=0)
            yield lambda way: pairs_above(sim(), 0.5, distance=way, limit=900)
            yield lambda way: most_similar(sim(), 9, distance=way, limit=900)

    for options in ({}, {"diagonal": 0}):  # met in whole columns, or given
        for ask in searches(D, range(4), **options):
            ask(True)
            with pytest.warns(UserWarning, match="are distances, pass dis") as told:
                ask(False)
            assert told[0].filename == __file__
    for ask in searches(np.exp(-D), range(4), diagonal=1):
        ask(False)
        with pytest.warns(UserWarning, match="are similarities, leave out"):
            ask(True)


def test_as_many_may_be_missing_as_the_recall_allows():
    """Those that fractions allow, and no rounding error fewer."""
    for percent, found in product(range(1, 101), range(1, 200)):
        for hits, allowed in (
            (Above(0.0), found * (100 - percent) // percent),
            (Nearest(found), found * (100 - percent) // 100),
        ):
            assert math.floor(hits.goal(percent / 100, found)) == allowed
            assert hits.recall(found, allowed) >= percent / 100
            assert hits.recall(found, allowed + 1) < percent / 100


def test_what_a_promise_costs_is_told_before_it_is_paid():
    K, G = noisy(200)
    paid = []

    def similarity(**options):
        def function(i, j):
            paid.append(len(i))
            return K[i, j]

        return Similarity(range(200), function, batch="pairs", **options)

    with pytest.warns(UserWarning, match="all pairs take 19900. Pass") as told:
        pairs = pairs_above(similarity(), 0.9, rng=0)
    assert told[0].filename == __file__
    (ahead,) = re.findall("about ([0-9]+) more", str(told[0].message))
    assert abs(int(ahead) - pairs.calls) < 2000
    for verb, goal, more in ((pairs_above, 0.3, 0.3), (most_similar, 200, 400)):
        paid.clear()
        with pytest.raises(UserWarning, match="recall=None"):  # warnings are errors
            verb(similarity(), goal, rng=0)
        assert sum(paid) < 1000
        verb(similarity(), more, cheap=Similarity.from_matrix(G), rng=0)
    twice = similarity(symmetric=False).symmetrized()
    with pytest.warns(UserWarning, match="all pairs take 39800. The limit leaves 2"):
        pairs_above(twice, 0.3, limit=3000, rng=0)
    with pytest.warns(UserWarning, match="The limit leaves"):
        pairs_above(similarity(limit=900), 0.3, rng=0)
    known = similarity()
    known.columns(range(200))
    pairs_above(known, 0.3, rng=0)
    for recall in (1, None):  # says so itself, or none
        pairs_above(similarity(), 0.3, recall=recall, rng=0)


@pytest.mark.filterwarnings("ignore:A promised recall")
@pytest.mark.parametrize("verb", [pairs_above, most_similar])
def test_what_is_told_to_be_ahead_comes(verb, monkeypatch):
    """By a poor companion, too: rounds go on while they spare calls of the look."""
    monkeypatch.setattr("tqdm.auto.tqdm", Bar)
    rng = np.random.default_rng(0)
    K = np.exp(-cdist(*2 * [rng.standard_normal((300, 5))], "sqeuclidean") / 4)
    noise, each = rng.standard_normal((300, 300)), K[np.triu_indices(300, 1)]
    cheap = Similarity.from_matrix(K + 0.4 * (noise + noise.T))
    hits = np.quantile(each, 0.99) if verb is pairs_above else each.size // 100
    off = []
    for seed in range(6):
        sim = Similarity(range(300), lambda i, j: K[i, j], batch="pairs", progress=True)
        pairs = verb(sim, hits, recall=0.9, cheap=cheap, rng=seed)
        bar = Bar.made.pop()
        off += [(pairs.calls - n) / beside["ahead"] for n, beside in bar.told[1:]]
    assert 0.5 < np.median(off) < 2
    assert np.quantile(off, 0.95) < 4


def test_a_promise_that_is_near_is_not_told_to_be_far():
    """Where the first sample has more of the pairs than there are, by chance."""
    n, hits = 600, 211
    i, j = np.triu_indices(n, 1)
    rng = np.random.default_rng(0)
    K, some = np.zeros((n, n)), rng.permutation(i.size)[:hits]
    K[i[some], j[some]] = K[j[some], i[some]] = 1
    noise = rng.random((n, n)) / 4
    for seed in (28, 58, 79):  # a warning is an error
        cheap = Similarity.from_matrix(K + noise + noise.T)
        sim = Similarity.from_matrix(K)
        pairs = pairs_above(sim, 1, recall=0.9, cheap=cheap, rng=seed)
        assert pairs.reached
        assert pairs.calls < 0.2 * i.size


def test_a_forecast_of_few_pairs():
    """The last round may pay for all that is left."""
    for seed in range(20):
        x = np.random.default_rng(seed).standard_normal(9)
        sim = Similarity(x, lambda a, b: -abs(a - b))
        pairs = most_similar(sim, 9, rng=seed)
        assert pairs.values.tolist() == np.sort(-pdist(x[:, None]))[:-10:-1].tolist()


def test_a_hunt_without_a_promise_ends_by_itself():
    """When rounds find little, with the limit, or when nothing is left."""
    K, sim, cheap = both(300)
    options = {"recall": None, "cheap": cheap, "rng": 0}
    pairs = pairs_above(sim, 0.5, **options)
    assert (pairs.reached, pairs.recall) == (True, 0)
    assert len(found(pairs)) >= 0.9 * len(above(K, 0.5))
    proven = pairs_above(Similarity.from_matrix(K), 0.5, cheap=cheap, rng=0)
    assert pairs.calls == sim.calls < proven.calls
    limited = pairs_above(Similarity.from_matrix(K), 0.5, limit=800, **options)
    assert not limited.reached
    assert 780 < limited.calls <= 800
    best = most_similar(Similarity.from_matrix(K), 100, **options)
    kth = np.sort(K[np.triu_indices(300, 1)])[-100]
    assert np.mean(best.values >= kth) > 0.9
    few = pairs_above(Similarity.from_matrix(K[:9, :9]), 0.0, recall=None, rng=0)
    assert (few.recall, few.calls) == (1, 36)


@pytest.mark.parametrize("limit", [400, 800, 900, 1000, 2000])
def test_a_hunt_that_ends_with_its_limit_says_so(limit):
    """Not that rounds found little: the last ones have few pairs to pay for."""
    _, sim, cheap = both(300)
    pairs = pairs_above(sim, 0.5, limit=limit, recall=None, cheap=cheap, rng=0)
    assert (pairs.reached, pairs.calls) == (False, limit)
    assert len(found(pairs)) > 0.9 * limit  # of 2379


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_pairs_of_every_item_before_many_of_a_few(share):
    """Of a crowd the companion says most, and a share of it is true."""
    n, crowd = 600, 120
    rng = np.random.default_rng(0)
    G = rng.uniform(0, 0.3, (n, n))
    G[:crowd, :crowd] = rng.uniform(0.7, 0.9, (crowd, crowd))
    twins = np.arange(crowd, n).reshape(-1, 2).T
    G[tuple(twins)] = rng.uniform(0.5, 0.7, twins.shape[1])
    K = np.zeros((n, n))
    K[:crowd, :crowd] = rng.uniform(size=(crowd, crowd)) < share
    K[tuple(twins)] = 1
    K, G = (np.triu(A, 1) + np.triu(A, 1).T for A in (K, G))
    sim, cheap = Similarity.from_matrix(K), Similarity.from_matrix(G)
    pairs = pairs_above(sim, 0.5, recall=None, limit=3 * n, cheap=cheap, rng=0)
    assert pairs.calls == 3 * n
    assert np.isin(twins[0], pairs.i).mean() > 0.9


@pytest.mark.parametrize("sign", [1, -1])
def test_a_search_by_few_columns_knows_the_direction(sign):
    """Of a companion that finds the neighbours, and goes the other way over all."""
    _, G = noisy(400)
    level = np.quantile(G, 0.95, axis=1, keepdims=True)
    K = np.where(np.minimum(level, level.T) <= G, G, -G)
    known, new = np.arange(40, 400), np.arange(40)
    best = np.argsort(-K[:40, 40:], axis=1)[:, :5]
    for seed in range(5):
        sim = Similarity(known, lambda i, j: K[i, j], batch="pairs")
        cheap = Similarity.from_matrix(sign * G[np.ix_(known, known)])
        options = {"cheap": cheap, "cheap_new": sign * G[:40, 40:], "rng": seed}
        result = search(sim, new, 5, limit=15, fit_limit=3 * 360, **options)
        shared = [
            np.isin(*pair).mean() for pair in zip(result.indices, best, strict=True)
        ]
        assert np.mean(shared) > 0.8


@pytest.mark.parametrize("sign", [1, -1])
def test_few_calls_are_spent_where_the_companion_is_sure(sign):
    """It finds the pairs, and goes the other way over all of them."""
    _, G = noisy(200)
    i, j = np.triu_indices(200, 1)
    level = np.quantile(G[i, j], 0.98)
    K = np.where(level <= G, G, -G)
    cheap = Similarity.from_matrix(sign * G)
    for seed in range(3):
        sim = Similarity.from_matrix(K)
        options = {"cheap": cheap, "recall": None, "limit": 200, "rng": seed}
        pairs = pairs_above(sim, level, **options)
        assert len(found(pairs)) > 150  # of 398


def hunted(K, level, cheap, **options):
    """Return the share of the pairs that was found, and of all that was paid for."""
    cheap = None if cheap is None else Similarity.from_matrix(cheap)
    sim, every = Similarity.from_matrix(K), len(K) * (len(K) - 1) / 2
    pairs = pairs_above(sim, level, cheap=cheap, **options)
    assert found(pairs) <= above(K, level)
    assert pairs.calls == sim.calls
    return len(found(pairs)) / len(above(K, level)), sim.calls / every


@pytest.mark.parametrize("verb", [pairs_above, most_similar])
def test_a_limit_below_all_pairs_goes_to_promising_ones(verb):
    """Not to random ones, though all were asked for; nothing more is promised."""
    for seed, count in product(range(3), (90, 450)):
        K, sim, cheap = both(300, seed=seed)
        best = np.sort(K[np.triu_indices(300, 1)])[::-1]
        goal = best[count - 1] if verb is pairs_above else count
        pairs = verb(sim, goal, recall=1, cheap=cheap, limit=4000, rng=seed)
        assert np.mean(best[:count] == pairs.values[:count]) >= 0.99
        assert sim.calls == pairs.calls == 4000
        assert not pairs.reached


def with_companions(quantile, seed):
    """Return a matrix, a high level, and three companions: of no help to helpful."""
    K, G = noisy(300, seed=seed)
    level = np.quantile(K[np.triu_indices(300, 1)], quantile)
    none, useful, useless, *_ = companions(K, G, level, np.random.default_rng(seed))
    return K, level, {"none": none, "useless": useless, "useful": useful}


@pytest.mark.parametrize("kind", ["none", "useless"])
def test_a_limit_without_help_is_no_worse_than_chance(kind):
    """By itself the search learns; a companion that knows nothing costs little."""
    for seed in range(3):
        K, level, cheap = with_companions(0.99, seed)
        share, _ = hunted(K, level, cheap[kind], recall=1, limit=13_500, rng=seed)
        assert share > 0.45  # at random .3


@pytest.mark.parametrize("kind", ["none", "useless", "useful"])
def test_a_hunt_goes_on_while_pairs_are_found(kind):
    for seed in range(3):
        K, level, cheap = with_companions(0.998, seed)
        options = {"recall": None, "rng": seed}
        share, paid = hunted(K, level, cheap[kind], **options)
        assert share > (0.99 if kind == "useful" else 0.75)
        assert kind != "useful" or paid < 0.05
        share, _ = hunted(K, level, cheap[kind], limit=13_500, **options)
        assert share > (0.99 if kind == "useful" else 0.45)


def test_a_hunt_for_nothing_ends():
    """After twenty calls an item, though no pair says what one costs."""
    _, sim, cheap = both(300)
    pairs = pairs_above(sim, 9.0, recall=None, cheap=cheap, rng=0)
    assert (pairs.i.size, pairs.reached) == (0, True)
    assert 6000 < sim.calls < 8000


@pytest.mark.filterwarnings("ignore:A promised recall")
def test_a_first_round_without_a_pair_is_followed_by_others():
    """Not by all calls at random: to prove so little takes more than the limit."""
    K, G = noisy(400)
    i, j = np.triu_indices(400, 1)
    hits = np.random.default_rng(0).permutation(np.argsort(-G[i, j])[900:1800])[:60]
    K = np.zeros((400, 400))
    K[i[hits], j[hits]] = K[j[hits], i[hits]] = 1
    assert hunted(K, 0.5, G, recall=0.9, limit=20_000, rng=0)[0] == 1


class Bar:
    """As much of tqdm as is used, and all that were made."""

    made: ClassVar[list] = []

    def __init__(self, total, **_):
        self.total, self.n, self.told = total, 0, []
        self.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def update(self, n):
        self.n += n

    def set_postfix(self, *, refresh, **numbers):
        assert refresh is False
        self.told.append((self.n, numbers))


def test_a_search_has_one_bar(monkeypatch):
    monkeypatch.setattr("tqdm.auto.tqdm", Bar)
    D = cdist(*2 * [np.random.default_rng(0).random((60, 2))])
    near = {"cheap": Similarity.from_matrix(D)}

    def ask(search, *arguments, **more):
        def function(i, j):
            return D[i, j]

        sim = Similarity(range(60), function, batch="pairs", progress=True)
        search(sim, *arguments, distance=True, rng=0, **more)
        bar = Bar.made.pop()
        assert not Bar.made
        assert bar.n == sim.calls
        return bar

    bar = ask(nearest, 3, limit=600, check=1, **near)
    assert bar.total == 600
    assert [numbers["round"] for _, numbers in bar.told][:2] == ["1/16", "2/16"]
    assert ask(nearest, 3, limit=10**6).total == 60 * 59 // 2
    assert ask(nearest, 3, limit=None, exact=True, **near).total is None
    bar = ask(search, range(4), 3, limit=9)
    assert bar.total == bar.n
    bar = ask(pairs_above, 0.5, **near)
    assert bar.total == 60 * 59 // 2
    assert set(bar.told[-1][1]) == {"hits", "promised", "ahead"}
    assert ask(most_similar, 5, limit=500).total == 500


@pytest.mark.parametrize("limit", [10, 0])
def test_a_companion_that_fails_costs_no_call_of_a_search(limit):
    x = np.random.default_rng(0).standard_normal((60, 3))

    def distance(a, b):
        return float(np.linalg.norm(a - b))

    sim, cheap = Similarity(x, distance), Similarity(x, distance, limit=limit)
    options = {"limit": 20, "fit_limit": 300, "distance": True, "rng": 0}
    with pytest.raises(BudgetExceeded):
        search(sim, x[:7], 2, cheap=cheap, cheap_new=np.ones((7, 60)), **options)
    assert sim.calls == 0


def test_a_threshold_below_single_precision_is_kept():
    sim = Similarity.from_matrix(np.eye(5, dtype=np.float32))
    assert pairs_above(sim, 1e-50).i.size == 0
    assert pairs_above(sim, 0).i.size == 10


def test_columns_cost_no_more_than_all_comparisons():
    sim = Similarity(np.arange(90.0), lambda x, y: abs(x - y))
    whole = search(sim.fork(), [1.2, 3.4], 1, limit=90, distance=True, rng=0)
    assert (whole.calls, whole.fit_calls) == (180, 0)
    assert whole.indices.ravel().tolist() == [1, 3]
    with pytest.raises(ValueError, match="fit_limit is a number of calls"):
        search(sim, [1.2], 1, limit=90, fit_limit=0.5)
    few = search(sim.fork(), [1.2, 3.4], 1, limit=20, distance=True, rng=0)
    assert (few.calls, few.fit_calls) == (40, 2 * 90 - 1)


def test_pickles_of_pairs_are_read_only():
    pairs = pairs_above(Similarity.from_matrix(rbf(20)), 0.5, rng=0)
    for copied in (pickle.loads(pickle.dumps(pairs)), copy.deepcopy(pairs)):
        assert copied[5:8] == pairs[5:8]
        for name in ("i", "j", "values"):
            array = getattr(copied, name)
            assert not array.flags.writeable
            np.testing.assert_array_equal(array, getattr(pairs, name))


def test_a_threshold_that_nothing_passes_is_told():
    K = rbf(200)
    with pytest.warns(UserWarning, match="No pair passes so far: .* a companion, "):
        pairs_above(Similarity.from_matrix(K), 90, rng=0)
