"""The nearest items of every item: graph, certain ones, contenders."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist
from sklearn.cluster import HDBSCAN, SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from simlib import BudgetExceeded, Similarity, SimilarityError
from simlib.approximation.companion import as_companion
from simlib.neighbors import cheap as companions
from simlib.neighbors import loops, nearest, pairs_above, predict, rounds
from simlib.neighbors.cheap import Calibrated, neighbor_lists, strips
from simlib.neighbors.choice import divide
from simlib.neighbors.nearest import estimated_recall
from simlib.neighbors.paid import Paid
from simlib.similarity.views import View
from study import contenders
from study.trials import recall
from support.matrices import Recorder, asymmetric, quick, rbf


def points(n, d=4, *, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def brute(K, k, *, distance=False):
    """Return the k best values of each row, its own left out."""
    others = np.array(K if distance else -K, dtype=float)
    np.fill_diagonal(others, np.inf)
    best = np.sort(others, axis=1)[:, :k]
    return best if distance else -best


# Exact answers


@given(st.integers(2, 100), st.integers(1, 6), st.floats(0, 1), *[st.booleans()] * 3)
@example(30, 4, 1.0, True, False, False)
@example(30, 4, 1.0, False, True, True)
@settings(quick, max_examples=50)
def test_neighbours_are_others_and_paid_for(n, k, share, companion, distance, listed):
    """Also where candidates are listed, few of them, however few the items are."""
    k, K = min(k, n - 1), rbf(n, seed=n)
    K = -np.log(K) if distance else K
    record = Recorder(K)
    sim = Similarity(range(n), record, diagonal=K[0, 0], check_symmetry=False)
    pairs = n * (n - 1) // 2
    least = min(pairs, -(-n * k // 2) + k * k)
    limit = least + int(share * (pairs - least))
    options = {"cheap": points(n, 3) if companion else None, "rng": 0}
    with pytest.MonkeyPatch.context() as patch:
        if listed:
            patch.setattr(rounds, "DEARER", 0)
            patch.setattr(rounds, "LEAST", 40)
        graph = nearest(sim, k, limit=limit, distance=distance, **options)
    assert sim.calls == graph.calls <= limit
    assert len(set(record.unordered)) == len(record.asked)
    assert (graph.indices != np.arange(n)[:, None]).all()
    assert all(np.unique(row).size == k for row in graph.indices)
    assert graph.indices.dtype == np.int32
    values = np.take_along_axis(K, graph.indices.astype(int), axis=1)
    np.testing.assert_array_equal(graph.values, values)
    assert (np.diff(-values if not distance else values, axis=1) >= 0).all()
    peeked = sim.peek(np.repeat(range(n), k), graph.indices.ravel())
    assert not np.isnan(peeked).any()
    if limit == pairs:
        np.testing.assert_array_equal(values, brute(K, k, distance=distance))
        assert graph.calls == pairs


def test_float32():
    K, Z = rbf(60).astype(np.float32), rbf(60)[:, :59].astype(np.float32)
    graph = nearest(Similarity.from_matrix(K), 3, limit=700, cheap=Z, rng=0)
    assert graph.values.dtype == np.float32
    assert recall(K, graph.indices) > 0.9


def test_symmetrized_pays_twice():
    K = asymmetric(30)
    with pytest.raises(ValueError, match="symmetrized"):
        nearest(Similarity.from_matrix(K), 2, limit=400)
    sim = Similarity.from_matrix(K)
    graph = nearest(sim.symmetrized(), 2, limit=500, rng=0)
    assert sim.calls == graph.calls <= 500
    found = np.take_along_axis((K + K.T) / 2, graph.indices.astype(int), axis=1)
    np.testing.assert_allclose(graph.values, found)


@pytest.mark.parametrize("function", [np.negative, np.positive])
def test_a_companion_that_tells_everything(function):
    """A falling function of the similarity, and a rising one."""
    K = rbf(200)
    cheap = Similarity.from_matrix(np.exp(function(K)))
    graph = nearest(Similarity.from_matrix(K), 5, limit=2200, cheap=cheap, rng=0)
    assert recall(K, graph.indices) > 0.99


@pytest.mark.parametrize(
    "scaled",
    [
        lambda d: np.exp(-300 * d**2),
        lambda d: 1 / (d + 1e-12),
        lambda d: -np.where((1e4 * d).astype(int) % 100 == 7, 1e9, d),
    ],
    ids=["narrow kernel", "reciprocals", "a number for none"],
)
def test_the_order_of_a_companion_is_what_counts(scaled):
    """Whatever its scale is: most of its values may be alike beside a few."""
    n, k = 300, 5
    x = points(n)
    K, cheap = -cdist(x, x), scaled(cdist(x[:, :3], x[:, :3]))
    cheap = np.triu(cheap) + np.triu(cheap, 1).T
    options = {"limit": n * n // 25, "rng": 0}
    graph = nearest(
        Similarity.from_matrix(K), k, cheap=Similarity.from_matrix(cheap), **options
    )
    assert recall(K, graph.indices) > 0.8
    best = np.sort(K[np.triu_indices(n, 1)])[-k * n // 4]
    sim = Similarity.from_matrix(K)
    pairs = pairs_above(
        sim, best, recall=None, cheap=Similarity.from_matrix(cheap), **options
    )
    assert len(pairs.i) > 0.8 * (k * n // 4)
    K, cheap = K[:100], Similarity.from_matrix(cheap[:100], two=True)
    options["limit"] = n * 100 // 12
    graph = nearest(Similarity.from_matrix(K), k, cheap=cheap, **options)
    assert (graph.values >= -np.sort(-K, axis=1)[:, [k - 1]]).mean() > 0.8


def test_lists_find_what_all_pairs_do(monkeypatch):
    """The mean of a few draws; its error is below .01."""
    X = points(400, 6)
    D = cdist(X, X)
    nearly = Similarity(X[:, :5], cdist, batch="block")
    monkeypatch.setattr(rounds, "LEAST", 40)
    for cheap, least in ((nearly, 0.95), (X[:, :5], 0.95), (None, 0.57)):
        means = []
        for dearer in (0, 1000):
            monkeypatch.setattr(rounds, "DEARER", dearer)
            options = {"limit": 6000 if least > 0.6 else 9000, "distance": True}
            graphs = (
                nearest(Similarity.from_matrix(D), 5, cheap=cheap, rng=seed, **options)
                for seed in range(4)
            )
            means.append(np.mean([recall(-D, graph.indices) for graph in graphs]))
        assert means[0] > means[1] - 0.03
        assert means[0] > least


@pytest.mark.parametrize("items", ["listed", "all"])
@pytest.mark.parametrize("companion", [True, False])
def test_the_same_without_numba(companion, items, monkeypatch):
    X = points(150, 5)
    K = np.exp(-cdist(X, X))
    monkeypatch.setattr(rounds, "DEARER", 0 if items == "listed" else 1000)
    monkeypatch.setattr(rounds, "LEAST", 40)
    options = {"limit": 2000, "cheap": np.round(X[:, :4]) if companion else None}
    graphs = [nearest(Similarity.from_matrix(K), 4, rng=0, **options)]
    monkeypatch.setattr(loops, "COMPILED", False)
    graphs.append(nearest(Similarity.from_matrix(K), 4, rng=0, **options))
    np.testing.assert_array_equal(*(graph.indices for graph in graphs))
    assert graphs[0].history == graphs[1].history


@pytest.mark.parametrize("signs", [1, -1])
def test_products_of_wide_factors_in_few_columns(signs):
    """Of the leading directions; a factor of few columns is left as it is."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((300, 80)) * 0.8 ** np.arange(80)
    Z = Z @ np.linalg.qr(rng.standard_normal((80, 80)))[0] * 1e30
    left, right = predict.narrowed(Z.astype(np.float32), np.full(80, signs))
    assert left.shape == right.shape == (300, predict.WIDTH)
    error = left.astype(float) @ right.T.astype(float) - signs * Z @ Z.T
    assert abs(error).max() < 1e-5 * abs(Z @ Z.T).max()
    mixed = np.where(np.arange(80) % 2, 1, -1)
    for W, s in ((Z[:, :9] / 1e30, np.ones(9)), (Z / 1e30, mixed)):
        left, right = predict.narrowed(W, s)
        np.testing.assert_array_equal(right, W.astype(np.float32))
        np.testing.assert_array_equal(left, (W * s).astype(np.float32))


@pytest.mark.parametrize("dearer", [0, 1000])
def test_a_misleading_companion_does_little_harm(dearer, monkeypatch):
    monkeypatch.setattr(rounds, "DEARER", dearer)
    X, noise = points(300, 3), points(300, 5, seed=1)
    K, found = np.exp(-cdist(X, X)), []
    for cheap in (None, noise, X[::-1]):
        graphs = [
            nearest(Similarity.from_matrix(K), 5, limit=6000, cheap=cheap, rng=seed)
            for seed in range(3)
        ]
        found.append(np.mean([recall(K, graph.indices) for graph in graphs]))
    assert min(found[1:]) > found[0] - 0.07 > 0.6


def test_ends_tell_the_direction_where_a_correlation_does_not():
    """Over all pairs this companion falls as the similarity rises, at its top not."""
    D = cdist(*2 * [points(300, 3)])
    G = np.where(np.quantile(D, 0.02) > D, D.max() - D, D)
    for seed in range(3):
        sim, cheap = Similarity.from_matrix(-D), Similarity.from_matrix(G)
        graph = nearest(sim, 3, limit=3000, cheap=cheap, rng=seed)
        assert recall(-D, graph.indices) > 0.93  # .85 by the correlation


@pytest.mark.parametrize("compiled", [True, False])
def test_the_best_of_rows(compiled, monkeypatch):
    monkeypatch.setattr(loops, "COMPILED", compiled and loops.COMPILED)
    scores = np.random.default_rng(0).integers(5, size=(40, 30)).astype(np.float32)
    scores[:5, 2:] = -np.inf
    places, values = loops.best(scores, 6)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :6]
    expected[:5, 2:] = -1
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(values, -np.sort(-scores, axis=1)[:, :6])


@pytest.mark.parametrize("compiled", [True, False])
def test_ridge_fits_by_their_formula(compiled, monkeypatch):
    """Of rows without entries, with fewer than features, and with more."""
    monkeypatch.setattr(loops, "COMPILED", compiled and loops.COMPILED)
    rng = np.random.default_rng(0)
    V, y = rng.standard_normal((30, 6)), rng.standard_normal((9, 30))
    seen = np.arange(30) < np.array([0, 1, 4, 5, 6, 7, 12, 20, 30])[:, None]
    found = loops.fits(
        np.append(0, np.cumsum(seen.sum(axis=1))),
        seen.nonzero()[1],
        y[seen].astype(np.float32),
        V.astype(np.float32),
        np.array([0.1, 10], np.float32),
    )
    for fits, penalty in zip(found, [0.1, 10], strict=True):
        for fit, row, values in zip(fits, seen, y, strict=True):
            gram = V[row].T @ V[row] + penalty * np.eye(6)
            expected = np.linalg.solve(gram, V[row].T @ values[row])
            np.testing.assert_allclose(fit, expected, rtol=1e-4, atol=1e-5)


def paid_for(K, k):
    """Return what is paid for after a column and some random pairs."""
    n, rng = len(K), np.random.default_rng(0)
    paid = Paid(Similarity.from_matrix(K).run(), k, 1)
    paid.pay_columns(np.array([3]))
    i, j = rng.integers(n, size=(2, n * n // 10))
    paid.pay(np.unique(paid.unpaid(i, j)))
    return paid


@pytest.mark.parametrize("companion", [True, False])
def test_candidates_are_predicted_as_all_pairs_are(companion, monkeypatch):
    """Where the lists hold all: the entries of every strip are those of the whole."""
    monkeypatch.setattr(predict, "strips", lambda n, w, *_: strips(n, w, 60 * 7))
    X, cheap = points(60), None
    paid = paid_for(-cdist(X, X), 4)
    if companion:
        G = as_companion(X[:, :3], paid.sim)
        cheap = Calibrated(G, G.pairs(paid.i, paid.j), paid.nearness)
        cheap.read()
    predictor = predict.PairPredictor(paid, cheap, np.array([3]), 5)
    predictor.update()
    every = list(predict.every_pair(predictor, np.arange(60)))
    assert len(every) > 5
    known = np.zeros((60, 60), bool)
    for strip in every:
        known[strip.rows] = strip.shared < 0
    assert known.diagonal().all()
    assert (known.sum(axis=1) == paid.degree + 1).all()
    whole = [np.vstack(part) for part in zip(*(e[2:] for e in every), strict=True)]
    i, j = paid.i, paid.j
    predicted = predictor.pairs(i, j, predictor.codes)
    np.testing.assert_allclose(predicted, whole[2][i, j], atol=1e-6)
    lists = predict.Listed(predictor, 20)
    for _ in range(2):  # in the second round lists hold what items met
        for strip in lists.strips():
            places = np.broadcast_arrays(strip.rows[:, None], strip.columns)
            free = strip.shared >= 0
            assert not (known[*places] & free).any()
            for row, some in zip(strip.columns, free, strict=True):
                assert np.unique(row[some]).size == some.sum()
            for entries, expected in zip(strip[2:], whole, strict=True):
                got, expected = entries[free], expected[*places][free]
                np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_hundred_thousand_items():
    """In groups of fifty; the companion sees them through noise."""
    n, k, each = 100_000, 10, 20
    rng = np.random.default_rng(0)

    def unit(x):
        return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)

    x = rng.standard_normal((n // 50, 16))[rng.integers(n // 50, size=n)]
    x = unit(x + 0.5 * rng.standard_normal((n, 16)))
    noisy = unit(x + 0.1 * rng.standard_normal((n, 16)))
    asked = 0

    def cosines(i, j):
        nonlocal asked
        asked += i.size
        return np.einsum("ij,ij->i", x[i], x[j])

    sim = Similarity(np.arange(n), cosines, batch="pairs", dtype=np.float32)
    graph = nearest(sim, k, limit=each * n, cheap=noisy, rng=0)
    assert asked == sim.calls + sim.checks
    assert sim.calls <= each * n
    rows = rng.permutation(n)[:200]
    exact, alone = x[rows] @ x.T, noisy[rows] @ noisy.T
    for values in (exact, alone):
        values[np.arange(200), rows] = -np.inf
    true = np.argpartition(-exact, k, axis=1)[:, :k]
    ranked = np.argpartition(-alone, 2 * each, axis=1)[:, : 2 * each]  # re-ranking
    hits = np.mean([np.isin(true[a], graph.indices[i]) for a, i in enumerate(rows)])
    found = np.mean([np.isin(true[a], ranked[a]) for a in range(200)])
    assert hits > max(0.75, found + 0.15)
    assert all(np.unique(row).size == k for row in graph.indices[::97])
    values = np.take_along_axis(exact, graph.indices[rows].astype(int), axis=1)
    np.testing.assert_allclose(graph.values[rows], values, atol=1e-6)


@pytest.mark.parametrize("copies", [1, 40])
@pytest.mark.parametrize("sought", [2, 10])
def test_lists_of_candidates(sought, copies, monkeypatch):
    """Of all, or among groups; where half are equal too."""
    monkeypatch.setattr(companions, "WHOLE", 10)
    monkeypatch.setattr(companions, "SOUGHT", sought)
    monkeypatch.setattr(companions, "GROUP", 10)
    Z, signs = points(400, 5), np.array([1, 1, -1, 1, 1])
    Z[:copies] = Z[0]
    n, m = len(Z), 20
    lists = neighbor_lists(Z, signs, m)
    assert lists.shape == (n, m)
    assert all(np.unique(row).size == m for row in lists)
    assert not (lists == np.arange(n)[:, None]).any()
    scores = (Z * signs) @ Z.T
    np.fill_diagonal(scores, -np.inf)
    least = -np.sort(-scores, axis=1)[:, m - 1, None]
    hits = (np.take_along_axis(scores, lists, axis=1) >= least - 1e-6).mean()
    assert hits > (0.99 if sought == 10 else 0.7)


def test_division_of_the_calls():
    np.testing.assert_allclose(divide(np.array([0.5, 0.5, 0.0])).min(), 0.04 / 1.04)
    np.testing.assert_allclose(divide(np.array([0.2, 0.4])), [1 / 9, 8 / 9])
    np.testing.assert_allclose(divide(np.array([0.5, 0.5, 0.0]), 0), [0.5, 0.5, 0])
    np.testing.assert_allclose(divide(np.zeros(2)), 0.5)


def test_a_predictor_that_failed_is_asked_again_in_the_first_rounds_only():
    rng = np.random.default_rng(1)
    X, E, N = (rng.standard_normal((200, m)) for m in (8, 200, 200))
    K = np.exp(-cdist(X, X) / 4) + 0.05 * (E + E.T)
    cheap = Similarity.from_matrix(K + 0.05 * (N + N.T))
    graph = nearest(Similarity.from_matrix(K), 10, limit=4000, cheap=cheap, rng=0)
    asked = {True: [], False: []}
    for t, (last, now) in enumerate(pairwise(graph.history), start=1):
        failed = [name for name, (_, rate) in last.items() if rate == 0]
        if len(failed) < len(last):
            asked[t < 8] += [now[name][0] for name in failed]
    assert min(asked[True]) > 0
    assert asked[False], "no prediction was given up in the later rounds"
    assert max(asked[False]) == 0


@pytest.mark.parametrize("exponent", [-400, 80, 900])
@pytest.mark.parametrize("known", [False, True])
def test_any_scale_whatever_came_first(exponent, known):
    """A far item's similarities, next to zero, do not set the scale of the others."""
    rng = np.random.default_rng(0)
    rng.integers(60, size=(2, 1000))
    X = points(60, 3)
    X[rng.permutation(60)[0]] += 8  # the first landmark
    K = np.exp(-cdist(X, X, "sqeuclidean"))
    for cheap in (None, X[:, :2]):
        graphs = []
        for scale in (1.0, 2.0**exponent):
            sim = Similarity.from_matrix(K * scale)
            if known:
                sim.pairs(*np.unravel_index([K.argmin()], K.shape))
            graphs.append(nearest(sim, 3, limit=900, cheap=cheap, rng=0))
        np.testing.assert_array_equal(graphs[0].indices, graphs[1].indices)
        assert graphs[0].calls > 890
        assert sum(len(part) for part in graphs[0].history) > 11


def test_any_scale_after_zeros():
    """Most similarities are zero, and all of the first ones may be."""
    X = 4 * np.random.default_rng(1).standard_normal((60, 2))
    K = np.maximum(1 - cdist(X, X), 0)
    for seed in range(6):
        graphs = [
            nearest(Similarity.from_matrix(K * scale), 3, limit=300, rng=seed)
            for scale in (1.0, 2.0**-400)
        ]
        np.testing.assert_array_equal(graphs[0].indices, graphs[1].indices)


@pytest.mark.parametrize("companion", [True, False])
def test_any_shift_of_distances(companion, monkeypatch):
    """Shared neighbours count the same wherever the distances are, far from zero."""
    monkeypatch.setattr(rounds, "DEARER", 0)
    monkeypatch.setattr(rounds, "LEAST", 40)
    X = points(300, 4)
    D = np.round(cdist(X, X) * 2**10) / 2**10
    cheap = Similarity(X[:, :3], cdist, batch="block") if companion else None
    options = {"limit": 4500, "cheap": cheap, "distance": True, "rng": 0}
    graph, shifted = (
        nearest(Similarity.from_matrix(D + shift), 5, **options) for shift in (0, 512)
    )
    np.testing.assert_array_equal(graph.indices, shifted.indices)


def test_the_smallest_limit_is_enough():
    D = cdist(points(100), points(100))
    for n in (4, 5, 6, 8):
        for k in range(1, min(n, 4)):
            least = min(-(-n * k // 2) + k * k, n * (n - 1) // 2)
            sim = Similarity.from_matrix(D[:n, :n])
            graph = nearest(sim, k, limit=least, distance=True, rng=0)
            assert (graph.indices >= 0).all()
    sim = Similarity.from_matrix(D)  # what is known gives the others nothing
    sim.block(range(50), range(50))
    with pytest.raises(ValueError, match="at least 150"):
        nearest(sim.informed(), 5, limit=149, distance=True, rng=0)
    for limit in (150, 200):
        graph = nearest(sim.fork().informed(), 5, limit=limit, distance=True, rng=0)
        assert (graph.indices >= 0).all()
    sim.columns(range(100))
    graph = nearest(sim.informed(), 3, limit=0, distance=True)
    np.testing.assert_array_equal(graph.values, brute(D, 3, distance=True))


def test_a_pair_costs_two_calls_though_no_sample_meets_one(monkeypatch):
    """Of a few new items, in a symmetrized similarity."""
    monkeypatch.setattr(rounds, "PRICED", 1)
    D = cdist(points(60), points(60)) + np.arange(60)
    i, j = np.indices((59, 59)).reshape(2, -1)
    for seed in range(5):
        sim = Similarity.from_matrix(D)
        sim.tell(i, j, D[i, j])
        both = sim.symmetrized().informed()
        with pytest.raises(ValueError, match="at least 4"):
            nearest(both, 1, limit=3, distance=True, rng=seed)


class Busy(View):
    """One of which another thread, before each of our requests, asks for a column."""

    column = 0

    def pairs(self, i, j):
        self.base.columns([self.column])
        self.column += 1
        return super().pairs(i, j)


def test_calls_of_others_are_not_ours():
    D = cdist(points(120), points(120))
    sim = Similarity.from_matrix(D)
    graph = nearest(Busy(sim), 5, limit=1000, distance=True, rng=0)
    assert 600 < graph.calls <= 1000 < sim.calls
    pairs = pairs_above(Busy(sim.fork()), 0.5, limit=1000, distance=True, rng=0)
    assert pairs.calls <= 1000


@pytest.mark.parametrize("rows", [15, 50])
def test_pairs_of_which_one_order_is_known_are_cheaper(rows):
    K = np.random.default_rng(0).random((100, 100))
    for seed in range(3):
        one, other = (Similarity.from_matrix(K).fork() for _ in range(2))
        one.rows(range(rows))
        other.rows(range(rows))
        one, other = one.fork().symmetrized(), other.fork(limit=1000).symmetrized()
        graph = nearest(one.informed(), 3, limit=1000, rng=seed)
        assert 900 < graph.calls == one.calls <= 1000
        pairs = pairs_above(other.informed(), 0.9, rng=seed)
        assert pairs.calls == other.calls <= 1000


# The graph


def test_as_scikit_learn_has_it():
    X = points(50)
    sim = Similarity.from_matrix(cdist(X, X))
    graph = nearest(sim, 5, limit=1225, distance=True)
    ours, theirs = graph.to_csr(), kneighbors_graph(X, 5, mode="distance").toarray()
    np.testing.assert_allclose(ours.toarray(), theirs)
    assert ours.indices.dtype == ours.indptr.dtype == np.int32
    ones = graph.to_csr("connectivity")
    np.testing.assert_array_equal(ones.toarray(), kneighbors_graph(X, 5).toarray())
    both = graph.to_csr(symmetric=True).toarray()
    np.testing.assert_allclose(both, np.maximum(theirs, theirs.T))
    near = graph.to_csr("similarity")
    np.testing.assert_allclose(near.data, graph.values.max() - ours.data)


def test_components_are_joined():
    X = np.vstack([points(20) + 20 * c for c in range(4)])
    D = cdist(X, X)
    sim = Similarity(range(80), Recorder(D))
    graph = nearest(sim, 3, limit=1500, cheap=X, distance=True, rng=0)
    assert connected_components(graph.to_csr())[0] >= 4
    before = sim.calls
    joined = graph.to_csr(connected=True)
    assert connected_components(joined)[0] == 1
    assert (joined != joined.T).nnz == 0
    assert sim.calls > before
    np.testing.assert_allclose(joined.data[joined.data > 0], D[joined.nonzero()])
    assert joined.nnz == np.count_nonzero(joined.data) + 80  # itself, at distance 0
    assert not joined.diagonal().any()
    near = graph.to_csr("similarity", connected=True)  # the longest is no max - max
    assert (near.data > 0).all()
    assert connected_components(near)[0] == 1


def test_the_recall_is_estimated():
    K = rbf(300)
    errors, inside = [], 0
    for seed in range(8):
        sim = Similarity.from_matrix(K)
        graph = nearest(sim, 5, limit=6000, check=10, rng=seed)
        assert sim.calls == graph.calls + graph.recall.calls <= 6000
        truth = recall(K, graph.indices)
        errors.append(graph.recall.value - truth)
        inside += graph.recall.low <= truth <= graph.recall.high
    assert inside >= 7
    assert abs(np.mean(errors)) < 0.08
    assert nearest(Similarity.from_matrix(K), 5, limit=6000).recall is None


def test_a_search_that_goes_on_checks_other_rows():
    """The rows of the check before are known, and tell nothing of the others."""
    errors, new = [], 0
    for seed in range(20):
        K = -cdist(*2 * [np.random.default_rng(seed).standard_normal((200, 6))])
        sim = Similarity.from_matrix(K)
        for _ in range(3):
            graph = nearest(sim, 5, limit=4000, check=10, rng=seed)
            new += graph.recall.calls > 500
            sim = sim.informed()
        errors.append(graph.recall.value - recall(K, graph.indices))
    assert new == 60
    assert abs(np.mean(errors)) < 0.03


def test_the_sample_of_the_recall_is_in_the_limit():
    X = points(60)
    sim = Similarity.from_matrix(-cdist(X, X))
    with pytest.raises(BudgetExceeded, match="Nothing was evaluated"):
        nearest(sim.fork(limit=1000), 3, limit=1500, check=10)
    with pytest.raises(ValueError, match=r"rows of 5: it must be at least 399\."):
        nearest(sim, 3, limit=398, check=5)
    assert nearest(sim, 3, limit=399, check=5).recall is not None
    sim = Similarity.from_matrix(np.random.default_rng(0).random((60, 60)))
    graph = nearest(sim.symmetrized(), 3, limit=3000, check=15, rng=0)
    assert graph.calls + graph.recall.calls == sim.calls <= 3000


# Certain neighbours


@pytest.mark.parametrize("distance", [True, False])
@pytest.mark.parametrize(("n", "known"), [(2, 0), (40, 0), (60, 3), (150, 0)])
def test_certain_neighbours(n, known, distance):
    X, sign = points(n, 6), 1 if distance else -1
    D, low = cdist(X, X), cdist(X[:, :4], X[:, :4])
    sim, k = Similarity.from_matrix(sign * D), min(5, n - 1)
    sim.columns(range(known))
    options = {"distance": distance, "cheap": Similarity.from_matrix(sign * low)}
    graph = nearest(sim.informed(), k, limit=None, exact=True, **options)
    np.testing.assert_array_equal(sign * graph.values, brute(D, k, distance=True))
    if n == 150:
        needed = low < brute(D, k, distance=True)[:, -1:]
        needed = np.triu(needed | needed.T, 1).sum()
        assert needed <= graph.calls == sim.calls <= 1.3 * needed
        assert graph.calls < 0.5 * n * (n - 1) / 2


@pytest.mark.parametrize("power", [-700, -170, 200, 900])
def test_bounds_count_whatever_the_unit(power):
    X = points(60, 4)
    D = np.ldexp(cdist(X, X), power)
    calls = []
    for unit in (0, -power):
        sim = Similarity.from_matrix(np.ldexp(D, unit))
        bound = Similarity.from_matrix(np.ldexp(0.9 * D, unit))
        graph = nearest(sim, 3, limit=None, cheap=bound, distance=True, exact=True)
        expected = brute(np.ldexp(D, unit), 3, distance=True)
        np.testing.assert_array_equal(graph.values, expected)
        calls.append(graph.calls)
    assert calls[0] == calls[1] < 600


def test_a_bound_that_fails_is_named():
    def broken(x, y):
        raise ZeroDivisionError

    X = points(20)
    sim, bound = (Similarity(X, f, batch="block") for f in (cdist, broken))
    with pytest.raises(SimilarityError, match="The cheap similarity failed"):
        nearest(sim, 3, limit=None, cheap=bound, distance=True, exact=True)
    assert sim.calls == 0


def test_certainty_is_refused():
    X = points(60)
    sim = Similarity.from_matrix(cdist(X, X))
    good, bad = (Similarity.from_matrix(c * cdist(X, X)) for c in (0.9, 1.1))
    for error, cause, options in [
        (ValueError, "no lower bound", {"cheap": bad}),
        (ValueError, "never larger", {"cheap": None}),
        (ValueError, "no upper bound", {"distance": False}),
        (ValueError, "leave out check=10", {"check": 10}),
        (ValueError, "limit is a number", {"limit": np.nan}),
        (ValueError, "limit is a number", {"limit": "9"}),
        (BudgetExceeded, "uncertain", {"limit": 100}),
    ]:
        options = {"limit": None, "cheap": good, "distance": True, **options}
        with pytest.raises(error, match=cause):
            nearest(sim.fork(), 3, exact=True, **options)
    doubled = np.repeat(X[:20], 2, axis=0)  # bounds may be off by rounding
    D = cdist(doubled, doubled)
    bound = Similarity.from_matrix(0.9 * D + 1e-15 * (1 - np.eye(40)))
    options = {"cheap": bound, "distance": True, "exact": True}
    graph = nearest(Similarity.from_matrix(D), 3, limit=None, **options)
    np.testing.assert_array_equal(graph.values, brute(D, 3, distance=True))


# Refusals


def test_refusals():
    sim = Similarity.from_matrix(rbf(20))
    smaller = Similarity.from_matrix(rbf(19))
    for of, k, options, cause in [
        (sim, 20, {"limit": 190}, "k must be between 1 and 19"),
        (sim, 3, {"limit": 38}, "at least 39"),
        (sim, 3, {"limit": None}, "limit"),
        (sim, 3, {"limit": 100, "cheap": smaller}, "must have the same items"),
        (sim, 3, {"limit": 100, "check": 21}, "check must be between"),
        (Similarity.from_matrix([[1.0]]), 1, {"limit": 1}, "single item"),
    ]:
        with pytest.raises(ValueError, match=cause):
            nearest(of, k, **options)
    with pytest.raises(BudgetExceeded, match="Nothing was evaluated"):
        nearest(sim.fork(limit=50), 3, limit=100)
    assert sim.calls == 0
    assert nearest(sim, 3, limit=39, rng=0).calls <= 39


def test_what_fails_is_named_and_the_rest_is_kept():
    K = rbf(40)
    K[3, 7] = K[7, 3] = np.nan
    sim = Similarity(range(40), lambda i, j: K[i, j])
    with pytest.raises(SimilarityError, match=r"items (3 and 7|7 and 3)"):
        nearest(sim, 5, limit=780)
    assert 0 < sim.calls < 780
    sim = Similarity.from_matrix(rbf(40))
    for error, cause, cheap in [
        (SimilarityError, "cheap similarity", Similarity(range(40), lambda *_: np.nan)),
        (BudgetExceeded, "has a limit", Similarity(range(40), min, limit=10)),
    ]:
        with pytest.raises(error, match=cause):
            nearest(sim, 5, limit=500, cheap=cheap)
    assert sim.calls > 0


# Contenders


def test_anncur_by_hand():
    rows = np.array([[2.0, 0.0, 4.0], [0.0, 1.0, 3.0]])
    scores = contenders.anncur_scores(rows, np.array([0, 1]), np.array([[4.0, 5.0]]))
    np.testing.assert_allclose(scores, [[4.0, 5.0, 2 * 4.0 + 5 * 3.0]])


def test_adacur_by_hand():
    """Of rank one: one score tells all, and the best ones come next."""
    v, asked = np.array([1.0, 3.0, 2.0, 5.0, 4.0]), []

    def ask(items):
        asked.extend(items.tolist())
        return 2 * v[items]

    known = np.array([np.nan, np.nan, 4.0, np.nan, np.nan])
    scores = contenders.adacur_search(v[None, :], known, ask, 3)
    np.testing.assert_array_equal(scores, [np.nan, 6, 4, 10, 8])
    assert asked == [3, 4, 1]


@pytest.mark.parametrize("name", ["ANNCUR", "ADACUR", "tikhonov", "anchored"])
def test_contenders_that_cannot_pay_for_a_column(name):
    sim = Similarity.from_matrix(rbf(80))
    with pytest.raises(ValueError, match="pay for"):
        contenders.CONTENDERS[name](sim, 1, 45, rbf(80), rng=0)
    assert sim.calls == 0


def test_a_connected_graph_of_repeated_items_is_one_for_trees():
    """Its zeros would be no edges, with which HDBSCAN never ends."""
    x = np.repeat(np.random.default_rng(0).random((40, 2)), 5, axis=0)
    sim = Similarity(x, lambda a, b: np.sum((a - b) ** 2))
    graph = nearest(sim, 5, limit=4000, cheap=x, distance=True, rng=0)
    joined = graph.to_csr(connected=True)
    joined_pairs = joined.data[joined.data > 0]
    assert joined.nnz - joined_pairs.size == len(x)  # itself, at distance 0
    assert joined_pairs.min() < 1e-12
    assert minimum_spanning_tree(joined).nnz == len(x) - 1
    model = HDBSCAN(min_cluster_size=3, min_samples=3, metric="precomputed", copy=True)
    labels = model.fit_predict(joined)
    assert adjusted_rand_score(np.repeat(np.arange(40), 5), labels) == 1
    assert (graph.to_csr().data == 0).any()


@pytest.mark.parametrize("right", [0.9, 0.1])
@pytest.mark.parametrize("check", [5, 10, 30])
def test_an_interval_where_few_rows_miss_all_or_hit(check, right):
    """One row in ten without a neighbour that is right, or with any."""
    n, k, rng = 200, 4, np.random.default_rng(0)
    K = rng.random((n, n))
    K = K + K.T
    np.fill_diagonal(K, -1)
    order, held = np.argsort(-K, axis=1), 0
    for seed in range(100):
        indices = order[:, :k].copy()
        bad = np.random.default_rng(seed).permutation(n)[int(n * right) :]
        indices[bad] = order[bad, -k - 1 : -1]
        sim = Similarity.from_matrix(K)
        found = estimated_recall(sim, indices, False, check, rng.spawn(1)[0])
        assert 0 <= found.low <= found.value <= found.high <= 1
        held += found.low <= right <= found.high
    assert held >= 90


def test_scores_below_zero_are_weights_that_are_not():
    """So log-likelihoods, and distances with a minus, go to spectral clustering."""
    X, truth = make_blobs(90, 3, centers=3, cluster_std=0.5, random_state=0)
    sim = Similarity.from_matrix(-cdist(X, X) - 1)
    graph = nearest(sim, 20, limit=2000, cheap=X, rng=0)
    W = graph.to_csr("similarity", connected=True)
    assert (W.data > 0).all()
    expected = (graph.values - graph.values.min()).ravel()
    np.testing.assert_allclose(graph.to_csr("similarity").data, expected)
    model = SpectralClustering(3, affinity="precomputed", random_state=0)
    assert adjusted_rand_score(truth, model.fit_predict(W)) > 0.95


@pytest.mark.parametrize("n", [300, 1000])
def test_distances_without_the_flag_beside_vectors_give_a_warning(n):
    x = np.random.default_rng(1).standard_normal((n, 3))

    def distances(i, j):
        return np.linalg.norm(x[i] - x[j], axis=1)

    def similarities(i, j):
        return x[i, 0] * x[j, 0] + x[i, 1] * x[j, 1]

    sim = Similarity(np.arange(n), distances, batch="pairs")
    with pytest.warns(UserWarning, match="If the values are distances") as caught:
        nearest(sim, 5, limit=30 * n, cheap=x, rng=0)
    assert caught[0].filename == __file__
    nearest(sim, 5, limit=30 * n, cheap=x, rng=0, distance=True)
    near = Similarity(np.arange(n), similarities, batch="pairs")
    nearest(near, 5, limit=30 * n, cheap=x, rng=0)


def test_searches_that_go_on_with_the_same_seed():
    """The random pairs on which the companion is tried are known from the second on."""
    x = points(300, 20)
    K = np.exp(x @ x.T / 10)
    sim, recalls = Similarity.from_matrix(K), []
    for _ in range(4):
        graph = nearest(sim.informed(), 5, limit=6000, cheap=x[:, :5], rng=0)
        recalls.append(recall(K, graph.indices, 5))
    assert recalls == sorted(recalls)
    assert recalls[-1] > 0.96


def test_a_copy_of_a_graph_is_read_only_too():
    graph = nearest(Similarity.from_matrix(np.eye(9)), 2, limit=36)
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        np.testing.assert_array_equal(again.indices, graph.indices)
        assert not again.indices.flags.writeable
        assert not again.values.flags.writeable


@pytest.mark.parametrize("power", [-80, 0, 70, 300])
def test_vectors_of_any_length_make_the_same_lists(power):
    x = points(1700, 6)
    x /= np.linalg.norm(x, axis=1)[:, None]
    K = x @ x.T
    sim = Similarity.from_matrix(K)
    graph = nearest(sim, 5, limit=12_000, cheap=np.ldexp(x, power), rng=0)
    assert recall(K, graph.indices, 5) > 0.99


def test_sparse_vectors_far_from_the_origin_are_a_bound_too():
    x = np.random.default_rng(0).random((60, 3))
    x[:, 0] += 1e4
    sim = Similarity(x, lambda a, b: float(np.linalg.norm(a - b)))
    graph = nearest(sim, 3, limit=None, exact=True, cheap=csr_array(x), distance=True)
    distances = cdist(x, x)
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_allclose(graph.values, np.sort(distances, axis=1)[:, :3])


def test_the_warning_of_the_direction_tells_the_value():
    sim = Similarity(np.arange(8.0), lambda a, b: abs(a - b) - 5)
    sim.diagonal()
    with pytest.warns(UserWarning, match="are: -5 for an item with itself"):
        nearest(sim.informed(), 1, limit=28, rng=0)


def test_an_item_is_its_own_neighbour_where_that_is_asked_for():
    """scikit-learn takes the nearest entry for the item, as t-SNE does."""
    X = points(100)
    D = cdist(X, X)
    graph = nearest(Similarity.from_matrix(D), 17, limit=4950, distance=True, rng=0)
    own, model = graph.to_csr(include_self=True), NearestNeighbors(metric="precomputed")
    far, near = model.fit(own).kneighbors(n_neighbors=17)
    np.testing.assert_array_equal(near, graph.indices)
    np.testing.assert_allclose(far, graph.values)
    np.testing.assert_array_equal(own.indices[::18], np.arange(100))
    assert not own.data[::18].any()
    np.testing.assert_array_equal(own.indptr, 18 * np.arange(101))
    np.testing.assert_allclose(own.data.reshape(100, 18)[:, 1:], graph.values)
    both = graph.to_csr(symmetric=True, include_self=True)
    assert both.nnz == graph.to_csr(symmetric=True).nnz + 100
    with pytest.raises(ValueError, match="mode with include_self is one of distance"):
        graph.to_csr("similarity", include_self=True)


def test_a_connected_graph_has_the_density_of_all_distances():
    X = points(40, 2)
    D = cdist(X, X)
    graph = nearest(Similarity.from_matrix(D), 39, limit=780, distance=True, rng=0)
    joined = graph.to_csr(connected=True)
    rows = np.sort(joined.data.reshape(40, 40), axis=1)  # HDBSCAN takes the m-th
    np.testing.assert_allclose(rows, np.sort(D, axis=1), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_new_items_come_first(seed):
    """Of a search that goes on by all that is known."""
    X = points(300)
    K, n = np.exp(-(cdist(X, X) ** 2)), 275
    old = Similarity.from_matrix(K[:n, :n])
    nearest(old, 5, limit=8000, rng=seed)
    sim = Similarity.from_matrix(K)
    for entries in old.known():
        sim.tell(*entries)
    graph = nearest(sim.informed(), 5, limit=1000, rng=seed)
    degree = np.zeros(300, int)
    for i, j, _ in sim.known():
        degree += np.bincount(i, minlength=300) + np.bincount(j, minlength=300)
    assert graph.calls <= 1000
    assert degree[n:].min() > 25
    assert degree[n:].sum() > 800


@pytest.mark.parametrize("cheap", [False, True])
def test_a_large_limit_is_spent_on_few_new_items(cheap):
    n, new = 1700, 8  # so many that pairs of all items would be listed
    X = points(n)
    K = X @ X.T
    sim = Similarity.from_matrix(K)
    i, j = np.triu_indices(n - new, 1)
    sim.tell(i, j, K[i, j])
    companion = X[:, :3] if cheap else None
    graph = nearest(sim.informed(), 5, limit=7000, cheap=companion, rng=0)
    assert 6900 <= graph.calls <= 7000
    np.fill_diagonal(K, -np.inf)
    best = np.sort(K[n - new :], axis=1)[:, :-6:-1]
    assert np.isclose(graph.values[n - new :], best).mean() > 0.95


def test_a_limit_just_below_what_makes_all_items_due_is_spent():
    n, half = 2000, 100
    X = points(n)

    def products(i, j):
        return np.einsum("kd,kd->k", X[i], X[j])

    sim = Similarity(np.arange(n), products, batch="pairs")
    i = np.tile(np.arange(n - 1), half)
    j = (i + np.repeat(np.arange(1, half + 1), n - 1)) % (n - 1)
    sim.tell(i, j, products(i, j))
    graph = nearest(sim.informed(), 5, limit=195, cheap=X[:, :3], rng=0)
    assert graph.calls >= 190


def test_some_rows_of_a_companion():
    X, none = points(40), np.zeros(1)
    G, i, rows = as_companion(X, Similarity.from_matrix(X @ X.T)), np.arange(40), [9, 5]
    whole, some = Calibrated(G, none, none), Calibrated(G, none, none)
    whole.spread()
    some.spread()
    whole.read()
    some.read(np.array([5, 30, 9]))
    expected = whole.codes_at(i, i[::-1])
    np.testing.assert_array_equal(some.codes_at(i, i[::-1]), expected)
    assert np.unique(expected).size > 10
    expected = whole.block(rows, slice(3, 20))
    np.testing.assert_array_equal(some.block(rows, slice(3, 20)), expected)


def test_of_few_new_items_the_companion_is_asked_in_their_rows():
    n, new, asked = 2000, 20, []
    X = points(n)

    def companion(xs, ys):
        asked.append(len(xs) * len(ys))
        return xs @ ys.T

    K = X @ X.T
    sim = Similarity.from_matrix(K)
    i, j = np.triu_indices(n - new, 1)
    sim.tell(i[::50], j[::50], K[i, j][::50])
    cheap = Similarity(X[:, :3], companion, batch="block")
    graph = nearest(sim.informed(), 5, limit=300, cheap=cheap, rng=0)
    assert 280 < graph.calls <= 300
    assert sum(asked) < 1.6e6  # a whole companion has four millions
