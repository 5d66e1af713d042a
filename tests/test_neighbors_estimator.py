"""The neighbour graph as a scikit-learn transformer, and what takes it."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import DBSCAN, HDBSCAN, SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.manifold import TSNE, Isomap
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from simlib import Similarity
from simlib.neighbors import SimilarityNeighbors


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
        np.testing.assert_allclose(A.toarray(), B.toarray(), atol=1e-12)
        assert A.indices.dtype == np.int32
        assert np.diff(A.indptr).tolist() == [24] * len(data)
    np.testing.assert_allclose(ours.kneighbors()[0], theirs.kneighbors()[0])
    graph = ours.kneighbors_graph(mode="distance")
    np.testing.assert_allclose(
        graph.toarray(), theirs.kneighbors_graph(mode="distance").toarray()
    )
    assert ours.n_calls_ == 90 * 89 // 2
    assert ours.kneighbors(n_neighbors=2, return_distance=False).shape == (90, 2)


def test_clusters_on_the_graph(blobs):
    X, truth = blobs
    estimator = neighbors(20, limit=2400)
    graph = estimator.fit_transform(X)
    assert estimator.n_calls_ <= 2400
    joined = estimator.graph_.to_csr(connected=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            DBSCAN(eps=1.5, metric="precomputed").fit_predict(graph),
            HDBSCAN(metric="precomputed", copy=True).fit_predict(joined),
            SpectralClustering(
                3, affinity="precomputed_nearest_neighbors", random_state=0
            ).fit_predict(graph),
        ]
    for labels in found:
        assert adjusted_rand_score(truth, labels) > 0.95


def test_pictures_of_the_graph(blobs):
    X, truth = blobs
    graph = neighbors(31, limit=3000).fit_transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pictures = [
            TSNE(
                perplexity=10,
                metric="precomputed",
                init="random",
                max_iter=250,
                random_state=0,
            ).fit_transform(graph),
            Isomap(n_neighbors=31, metric="precomputed").fit_transform(graph),
        ]
    for Y in pictures:
        centers = np.array([Y[truth == label].mean(axis=0) for label in range(3)])
        near = np.linalg.norm(Y[:, None] - centers, axis=2).argmin(axis=1)
        assert np.mean(near == truth) > 0.95


@pytest.mark.slow
def test_umap(blobs):
    umap = pytest.importorskip("umap")
    X, truth = blobs
    graph = neighbors(15, limit=2400).fit(X).graph_.to_csr(symmetric=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = umap.UMAP(
            n_neighbors=15, metric="precomputed", n_epochs=50, random_state=0
        )
        Y = model.fit_transform(graph)
    centers = np.array([Y[truth == label].mean(axis=0) for label in range(3)])
    near = np.linalg.norm(Y[:, None] - centers, axis=2).argmin(axis=1)
    assert np.mean(near == truth) > 0.95


def test_a_similarity_shares_its_ledger(blobs):
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
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :2])
    np.testing.assert_array_equal(indices, np.argsort(D, axis=1)[:, :2])


def test_refusals(blobs):
    with pytest.raises(NotFittedError):
        neighbors(2).kneighbors()
    with pytest.raises(ValueError, match="from_matrix"):
        SimilarityNeighbors("precomputed").fit(np.eye(3))
    with pytest.warns(UserWarning, match="n_neighbors=10 is not less"):
        estimator = neighbors(10).fit(blobs[0][:5])
    with pytest.raises(ValueError, match="fit with more"):
        estimator.kneighbors(n_neighbors=5)
    with pytest.raises(ValueError, match="mode must be"):
        estimator.kneighbors_graph(mode="similarity")
