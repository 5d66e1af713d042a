"""The neighbour graph as a scikit-learn transformer, and what takes it."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, csr_matrix
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.cluster import DBSCAN, HDBSCAN, SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.manifold import TSNE, Isomap
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from simlib import Similarity
from simlib.neighbors import SimilarityNeighbors, nearest, search


@pytest.mark.filterwarnings("ignore:n_neighbors=:UserWarning")
@parametrize_with_checks([SimilarityNeighbors()])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, 3, centers=3, cluster_std=0.5, random_state=0)


def euclidean(xs, ys):
    return np.linalg.norm(np.subtract(xs, ys), axis=1)


def neighbors(k, **options):
    return SimilarityNeighbors(
        euclidean, k, distance=True, batch="pairs", random_state=0, **options
    )


def test_the_graph_of_scikit_learn(blobs):
    X, new = blobs[0], blobs[0][:7] + 0.01
    ours = neighbors(23, limit=90 * 89 // 2).fit(X)
    theirs = KNeighborsTransformer(n_neighbors=23).fit(X)
    for data in (X, new):
        A, B = ours.transform(data), theirs.transform(data)
        assert_allclose(A.toarray(), B.toarray(), atol=1e-12)
        assert A.indices.dtype == np.int32
        assert np.diff(A.indptr).tolist() == [24] * len(data)
    assert_allclose(ours.kneighbors()[0], theirs.kneighbors()[0])
    graph = ours.kneighbors_graph(mode="distance")
    assert_allclose(graph.toarray(), theirs.kneighbors_graph(mode="distance").toarray())
    assert ours.n_calls_ == 90 * 89 // 2
    assert ours.kneighbors(n_neighbors=2, return_distance=False).shape == (90, 2)


def clusters_of(graph, joined, k):
    """Yield what scikit-learn makes of the graph of three blobs."""
    model = SpectralClustering(
        3, affinity="precomputed_nearest_neighbors", random_state=0
    )
    yield DBSCAN(eps=1.5, metric="precomputed").fit_predict(graph)
    yield HDBSCAN(metric="precomputed", copy=True).fit_predict(joined)
    yield model.fit_predict(graph)


def pictures_of(graph, joined, k):
    options = {"init": "random", "max_iter": 250, "random_state": 0}
    yield TSNE(perplexity=10, metric="precomputed", **options).fit_transform(graph)
    yield Isomap(n_neighbors=k, metric="precomputed").fit_transform(graph)


def picture_by_umap(graph, joined, k):
    umap = pytest.importorskip("umap")
    options = {"n_neighbors": 15, "n_epochs": 50, "random_state": 0}
    yield umap.UMAP(metric="precomputed", **options).fit_transform(joined)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [clusters_of, pictures_of, pytest.param(picture_by_umap, marks=pytest.mark.slow)],
)
def test_what_takes_the_graph_finds_the_clusters(make, blobs):
    X, truth = blobs
    estimator = neighbors(31, limit=3000)
    graph = estimator.fit_transform(X)
    joined = estimator.graph_.to_csr(connected=True)
    for found in make(graph, joined, 31):
        if found.ndim == 1:
            assert adjusted_rand_score(truth, found) > 0.95
        else:  # a picture
            centers = np.array([found[truth == c].mean(axis=0) for c in range(3)])
            assert np.mean(cdist(found, centers).argmin(axis=1) == truth) > 0.95


def test_a_similarity_shares_its_counter(blobs):
    X = blobs[0]
    sim = Similarity(X, euclidean, batch="pairs")
    estimator = SimilarityNeighbors(sim, 3, distance=True, limit=1500, random_state=0)
    estimator.fit(range(60))
    assert sim.calls == estimator.n_calls_ <= 1500
    again = clone(estimator).fit(range(60))
    assert again.n_calls_ <= 1500
    assert again.kernel is sim
    distances, indices = estimator.kneighbors(range(60, 64), 2)
    D = np.linalg.norm(X[60:64, None] - X[:60], axis=2)
    assert_allclose(distances, np.sort(D, axis=1)[:, :2])
    assert_array_equal(indices, np.argsort(D, axis=1)[:, :2])


def test_fit_transform_pays_once():
    """Although what holds NaN is unequal to itself."""
    X = np.random.default_rng(0).random((60, 4))
    X[3, 1] = np.nan
    calls = []

    def gower(a, b):
        calls.append(1)
        return float(np.nanmean(abs(a - b)))

    estimator = SimilarityNeighbors(gower, 3, distance=True, random_state=0)
    graph = estimator.fit_transform(pd.DataFrame(X))
    checks = len(calls) - estimator.n_calls_  # both orders of some pairs
    assert 0 < checks == min(24, estimator.n_calls_ // 50)
    assert graph.indices.reshape(60, 4)[:, 0].tolist() == list(range(60))


@pytest.mark.parametrize("kind", [list, "object"])
def test_items_that_are_arrays(kind):
    fitted, new = (list(X) for X in np.random.default_rng(0).random((2, 12, 5)))
    if kind == "object":
        arrays = np.empty((2, 12), object)
        for row, items in zip(arrays, (fitted, new), strict=True):
            row[:] = items
        fitted, new = arrays
    model = SimilarityNeighbors(
        lambda a, b: float(abs(a - b).sum()), 3, distance=True, random_state=0
    ).fit(fitted)
    assert model.transform(new).shape == (12, 12)
    again = model.transform(fitted[:])
    assert again.indices.reshape(12, 4)[:, 0].tolist() == list(range(12))


NAT = np.array(["2020", "2022", "NaT", "2021"], "datetime64[Y]")


@pytest.mark.parametrize(
    "items",
    [
        list(np.arange(12.0).reshape(4, 3)),
        [csr_array([[k, 1]]) for k in range(4)],
        [pd.DataFrame({"a": [k]}) for k in range(4)],
        [{"v": np.full(2, k)} for k in range(4)],
        NAT,
        list(NAT),
    ],
    ids=["arrays", "sparse", "frames", "records", "dates", "listed dates"],
)
def test_copies_of_what_was_fitted_cost_nothing(items):
    asked = []

    def near(x, y):
        asked.append(1)
        return 1.0

    model = SimilarityNeighbors(near, 2, random_state=0)
    graph, calls = model.fit_transform(items), len(asked)
    assert (model.transform(deepcopy(items)) != graph).nnz == 0
    assert len(asked) == calls
    assert model.transform(items[::-1]).shape == (4, 4)
    assert len(asked) > calls


@pytest.mark.parametrize("form", [list, np.array, pd.Series])
def test_what_was_fitted_may_change(form):
    def near(x, y):
        return -float(abs(x - y))

    numbers = form([0.0, 1.0, 3.0, 7.0])
    model = SimilarityNeighbors(near, 1, random_state=0).fit(numbers)
    if form is list:
        numbers.append(2.5)
    numbers[0] = 6.0
    assert model.kneighbors([0.2, 6.5], return_distance=False).tolist() == [[0], [3]]
    nearest_of = model.kneighbors(numbers, return_distance=False).ravel().tolist()
    assert nearest_of == [3, 1, 2, 3, 2][: len(numbers)]
    again = model.transform(numbers)
    assert again.indices[::2].tolist() == nearest_of


def test_refusals(blobs):
    X = blobs[0]
    with pytest.raises(NotFittedError):
        neighbors(2).kneighbors()
    with pytest.raises(ValueError, match="from_matrix"):
        SimilarityNeighbors("precomputed").fit(np.eye(3))
    with pytest.warns(UserWarning, match="n_neighbors=10 is not less"):
        estimator = neighbors(10).fit(X[:5])
    with pytest.raises(ValueError, match="fit with more"):
        estimator.kneighbors(n_neighbors=5)
    with pytest.raises(ValueError, match="mode is one of"):
        estimator.kneighbors_graph(mode="similarity")
    sim = Similarity(X, euclidean, batch="pairs")
    given = SimilarityNeighbors(sim, 3, distance=True).fit(range(40)), [41, 42]
    for model, new in (given, (neighbors(3).fit(X[:40]), X[41:43])):
        assert model.kneighbors(new, 40)[1].shape == (2, 40)
        for k in (-1, 0, 41):
            with pytest.raises(ValueError, match="between 1 and 40"):
                model.kneighbors(new, k)


def test_a_sparse_table_is_another_than_a_dense_one_of_its_shape(blobs):
    X = blobs[0]
    model = SimilarityNeighbors("rbf", 3, random_state=0)
    for one, other in ((X, csr_matrix(X)), (csr_matrix(X), X)):
        assert model.fit(one).transform(other).shape == (90, 90)


def test_the_graph_of_some_items_answers_for_these():
    x = np.random.default_rng(0).standard_normal((60, 2))

    def near(a, b):
        return -np.linalg.norm(a - b, axis=1)

    sim = Similarity(x, near, batch="pairs")
    fitted = SimilarityNeighbors(sim, n_neighbors=2, random_state=0)
    part = fitted.fit(np.arange(20, 50)).graph_.sim
    assert_array_equal(part.items, x[20:50])
    assert_allclose(part.between(x[[20, 31]], [0, 11]), part.block([0, 11], [0, 11]))
    found = search(part, x[20:23], 1, limit=30, rng=0)
    assert found.indices.ravel().tolist() == [0, 1, 2]


def test_a_data_frame_of_texts_and_of_records():
    texts = ["martha", "marhta", "dwayne", "duane", "dixon", "dicksonx", "jon", "john"]
    frame = pd.DataFrame({"name": texts, "age": range(8)}, index=range(8)[::-1])
    asked = []

    def alike(x, y):
        asked.append(1)
        return len(set(x) & set(y)) / len(set(x) | set(y))

    def both(x, y):
        return alike(x["name"], y["name"]) - abs(x["age"] - y["age"]) / 100

    for kernel, table, listed in (
        (alike, frame[["name"]], texts),
        (both, frame, frame.to_dict("records")),
    ):
        one = SimilarityNeighbors(kernel, n_neighbors=2, random_state=0)
        other = clone(one).fit(listed)
        graph, calls = one.fit_transform(table), len(asked)
        assert_array_equal(one.graph_.indices, other.graph_.indices)
        assert_array_equal(one.graph_.values, other.graph_.values)
        assert (one.transform(table.copy()) != graph).nnz == 0
        assert len(asked) == calls
        some = one.kneighbors(table[2:5])
        assert_array_equal(some, other.kneighbors(listed[2:5]))


@pytest.mark.parametrize("distance", [False, True])
@pytest.mark.parametrize("form", [np.asarray, csr_matrix, csr_array])
def test_an_array_as_companion(form, distance):
    """As `nearest` takes it: rows of the fitted items, or of all of a Similarity."""
    X = 5 + np.random.default_rng(0).standard_normal((120, 3))
    Z, given = form(X), {"limit": 900, "distance": distance}

    def near(x, y):
        return np.linalg.norm(x - y) if distance else np.exp(x @ y / 30)

    sim = Similarity(X, near)
    options = given | {"random_state": 0}
    graph = nearest(sim.fork(), 3, cheap=Z, rng=0, **given)
    for kernel, items in ((near, X), (Similarity(X, near), range(120))):
        model = SimilarityNeighbors(kernel, 3, cheap=Z, **options).fit(items)
        assert_array_equal(model.graph_.indices, graph.indices)
        assert clone(model).fit(items).n_calls_ <= 900
        assert model.transform(items[:4]).shape == (4, 120)
    numbers = np.arange(20, 100)
    model = SimilarityNeighbors(Similarity(X, near), 3, cheap=Z, **options)
    model.fit(numbers)
    part = nearest(Similarity(X[20:100], near), 3, cheap=Z[20:100], rng=0, **given)
    assert_array_equal(model.graph_.indices, part.indices)
    for kernel, items in ((near, X[:50]), (Similarity(X[:50], near), range(50))):
        with pytest.raises(ValueError, match="has 120 items, the other 50"):
            SimilarityNeighbors(kernel, 3, cheap=Z).fit(items)


def test_a_function_as_companion_of_numbers_of_items():
    words = ["similar", "simile", "smile", "mile", "kernel", "colonel", "colon"]

    def jaccard(x, y):
        return len(set(x) & set(y)) / len(set(x) | set(y))

    def cheap(x, y):
        asked.append((x, y))
        return len(set(x) & set(y))

    asked = []
    sim = Similarity(words, jaccard)
    model = SimilarityNeighbors(sim, 1, limit=12, cheap=cheap, random_state=0)
    model.fit(range(7))
    assert {x for pair in asked for x in pair} == set(words)
    for kernel, companion in ((sim, "rbf"), (jaccard, sim)):
        with pytest.raises(ValueError, match="the other must be one too"):
            SimilarityNeighbors(kernel, 1, cheap=companion).fit(range(7))


@pytest.mark.parametrize("random_state", [None, 0, np.random.RandomState(0)])
def test_new_items_have_the_same_neighbours_whenever_they_are_asked_for(random_state):
    X = np.random.default_rng(0).standard_normal((400, 8))
    model = SimilarityNeighbors("rbf", 5, random_state=random_state).fit(X[:370])
    distances, indices = model.kneighbors(X[370:])
    again = model.kneighbors(X[370:])
    assert_array_equal(again[0], distances)
    assert_array_equal(again[1], indices)


def test_the_recall_of_fit():
    X = np.random.default_rng(0).standard_normal((200, 8))
    checked = SimilarityNeighbors("rbf", 5, check=20, random_state=0).fit(X)
    plain = SimilarityNeighbors("rbf", 5, random_state=0).fit(X)
    low, high = checked.graph_.recall[1:3]
    exact = KNeighborsTransformer(n_neighbors=5).fit(X).kneighbors()[1]
    found = (checked.graph_.indices[..., None] == exact[:, None]).any(axis=1).mean()
    assert low <= found <= high
    assert_array_equal(checked.graph_.indices, plain.graph_.indices)  # `limit` is more
    assert plain.graph_.recall is None


def test_a_matrix_as_kernel_is_named():
    K = np.eye(9)
    for kernel in (K, pd.DataFrame(K), K.tolist()):
        with pytest.raises(TypeError, match="A kernel is a callable"):
            SimilarityNeighbors(kernel, 3).fit(np.arange(9))


def test_one_far_item_spoils_no_neighbour():
    X = np.random.default_rng(0).standard_normal((60, 3))
    X = np.vstack([X, [1e12, 0, 0]])
    K = np.exp(-cdist(X, X, "sqeuclidean") / 3)
    graph = SimilarityNeighbors("rbf", 3, limit=61 * 30).fit(X).graph_
    assert_allclose(graph.values, np.take_along_axis(K, graph.indices, 1))


def test_new_items_one_by_one_have_their_neighbours():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((600, 6)), rng.standard_normal((20, 6))
    model = neighbors(5).fit(x)
    found = np.vstack([model.kneighbors(item[None])[1] for item in y])
    nearest_ones = np.argsort(cdist(y, x), axis=1)[:, :5]
    hits = [len({*a} & {*b}) for a, b in zip(found, nearest_ones, strict=True)]
    assert np.mean(hits) > 0.85 * 5
