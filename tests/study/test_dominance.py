"""The Tikhonov core against SMS-Nyström and SiCUR, on data that no chapter shows.

From the same entries, or as many calls: no cell above 1.02 and 1 times their mean
error, and geometric means by family as stated for the chapter on the core.
"""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_swiss_roll
from sklearn.neighbors import kneighbors_graph

from simlib import Similarity, largest, sicur, sms_nystrom, tikhonov
from simlib.biharmonic import graph_distances, heat_geodesics
from simlib.datasets import (
    bumpy_sphere,
    cross_encoder_like,
    gaussian_psd,
    sigmoid_kernel,
    uniform_psd,
)
from study import datasets
from support.matrices import error

pytestmark = pytest.mark.slow

BUDGETS = (0.05, 0.1, 0.2, 0.4)
LIMITS = {
    "distance": (0.05, 0.62),
    "scorer": (0.6, 0.8),
    "text": (0.97, 0.88),
    "sigmoid": (0.2, 0.75),
    "psd": (1.02, 1.0),
}


def ratios(K, n_draws=2):
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


def check(family, *tables):
    table = np.concatenate(tables)
    assert (table.max(axis=0) <= (1.02, 1.0)).all(), table
    means = np.exp(np.log(table).mean(axis=0))
    assert (means <= LIMITS[family]).all(), means


def test_positive_semidefinite():
    made = (make(700, rng=77) for make in (gaussian_psd, uniform_psd))
    check("psd", *map(ratios, made))


def test_sigmoid():
    check("sigmoid", ratios(sigmoid_kernel(1000, rng=77)))


@cache
def swiss_roll():
    X, _ = make_swiss_roll(1000, random_state=77)
    graph = kneighbors_graph(X, 8, mode="distance")
    return ratios(graph_distances(graph.maximum(graph.T), np.arange(1000)))


def surface(mesh, n):
    chosen = np.random.default_rng(77).permutation(len(mesh.vertices))[:n]
    D = heat_geodesics(mesh.vertices, mesh.faces, chosen)[chosen]
    return ratios((D + D.T) / 2)


@cache
def cross_encoder():
    return ratios(cross_encoder_like(1000, rng=77))


@cache
def digit_pairs():
    """Scores of the last images; chapters show the first thousand at most."""
    images, scorer, _ = datasets.bundled_digit_pairs()
    K = scorer(images[900:], images[900:])
    return ratios((K + K.T) / 2)


def test_distances():
    check("distance", swiss_roll(), surface(bumpy_sphere(4), 600))


@pytest.mark.usefixtures("data")
def test_distances_on_the_white_matter():
    check("distance", swiss_roll(), surface(datasets.load_cortex("white"), 600))


def test_scorers():
    check("scorer", cross_encoder(), digit_pairs())


@pytest.mark.usefixtures("data")
def test_scorers_with_later_sentences():
    """Sentences 400 to 1400 of STS-B."""
    K = datasets.load_cross_encoder("stsb").matrix[400:, 400:]
    check("scorer", ratios((K + K.T) / 2), cross_encoder(), digit_pairs())


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
    kernels = np.exp(-0.3 * D), np.exp(-0.5 * D), np.exp(-2.0 * E)
    check("text", *map(ratios, kernels))
