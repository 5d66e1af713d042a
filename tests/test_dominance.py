"""The Tikhonov core against SMS-Nyström and SiCUR, on data that no chapter shows.

From the same entries, or as many calls: no cell above 1.02 and 1 times their mean
error, and geometric means by family as stated for the chapter "Which core?".
"""

import numpy as np
import pytest
from matrices import error
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.neighbors import kneighbors_graph
from sklearn.neural_network import MLPClassifier

from simlib import Similarity, datasets, largest, sicur, sms_nystrom, tikhonov
from simlib.biharmonic import graph_distances, heat_geodesics

BUDGETS = (0.05, 0.1, 0.2, 0.4)
LIMITS = {
    "distance": (0.05, 0.62),
    "scorer": (0.6, 0.8),
    "text": (0.97, 0.88),
    "sigmoid": (0.2, 0.75),
    "psd": (1.02, 1.0),
}


def ratios(K, n_draws=3):
    """Return mean error over that of the two, shape (budget, 2)."""
    n = len(K)
    sim = Similarity.from_matrix(K)
    sim.columns(range(n))
    table = []
    for budget in BUDGETS:
        calls = int(budget * n * (n + 1) / 2)
        means = []
        for method in (tikhonov, sms_nystrom, sicur):
            s = largest(method.__name__, n, calls)
            answers = [method(sim, s, rng=1000 + k) for k in range(n_draws)]
            assert all(answer.calls <= calls for answer in answers)
            means.append(np.mean([error(K, answer) for answer in answers]))
        table.append([means[0] / means[1], means[0] / means[2]])
    return np.array(table)


def check(family, *matrices):
    table = np.array([ratios(K) for K in matrices]).reshape(-1, 2)
    assert (table.max(axis=0) <= (1.02, 1.0)).all(), table
    means = np.exp(np.log(table).mean(axis=0))
    assert (means <= LIMITS[family]).all(), means


def test_positive_semidefinite():
    check("psd", datasets.gaussian_psd(700, rng=77), datasets.uniform_psd(700, rng=77))


def test_sigmoid():
    check("sigmoid", datasets.sigmoid_kernel(1000, rng=77))


def swiss_roll(seed):
    X, _ = make_swiss_roll(1000, random_state=seed)
    graph = kneighbors_graph(X, 8, mode="distance")
    return graph_distances(graph.maximum(graph.T), np.arange(1000))


def surface(mesh, n):
    chosen = np.random.default_rng(77).permutation(len(mesh.vertices))[:n]
    D = heat_geodesics(mesh.vertices, mesh.faces, chosen)[chosen]
    return (D + D.T) / 2


def digit_pairs(seed, n):
    """Scores of a network that was trained on pairs of other digits."""
    X, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    X, labels = X[order] / 16, labels[order]

    def features(a, b):
        return np.hstack([a, b, a * b])

    i, j = rng.integers(0, 300, (2, 20_000))
    keep = (labels[i] == labels[j]) | (rng.random(i.size) < 0.15)
    i, j = i[keep], j[keep]
    network = MLPClassifier((64, 32), random_state=seed, max_iter=400)
    network.fit(features(X[i], X[j]), labels[i] == labels[j])
    items = X[300 : 300 + n]
    K = np.empty((n, n))
    for k, x in enumerate(items):
        rows = features(np.broadcast_to(x, items.shape), items)
        K[k] = network.predict_proba(rows)[:, 1]
    return (K + K.T) / 2


def test_distances():
    check("distance", swiss_roll(77), surface(datasets.bumpy_sphere(4), 1000))


@pytest.mark.usefixtures("data")
def test_distances_on_the_white_matter():
    check("distance", swiss_roll(78), surface(datasets.load_cortex("white"), 1000))


def test_scorers():
    check("scorer", datasets.cross_encoder_like(1000, rng=77), digit_pairs(77, 600))


@pytest.mark.usefixtures("data")
def test_scorers_with_later_sentences():
    """Sentences 400 to 1400 of STS-B."""
    K = datasets.load_cross_encoder("stsb").matrix[400:, 400:]
    others = datasets.cross_encoder_like(1000, rng=78), digit_pairs(78, 600)
    check("scorer", (K + K.T) / 2, *others)


@pytest.mark.usefixtures("data")
def test_other_tweets_and_words():
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    from simlib.text.wmd import WordMoverDistance

    rng = np.random.default_rng(77)
    vectors = datasets.load_word_vectors()
    tweets = datasets.load_twitter(vectors).documents
    chosen = [tweets[k] for k in rng.permutation(len(tweets))[:500]]
    sim = Similarity(chosen, WordMoverDistance(vectors), n_jobs=2)
    D = sim.columns(range(500))
    words = datasets.load_words()
    chosen = [words[k] for k in rng.permutation(len(words))[:700]]
    E = cdist(chosen, chosen, scorer=Levenshtein.normalized_distance)
    check("text", np.exp(-0.3 * D), np.exp(-0.5 * D), np.exp(-2.0 * E))
