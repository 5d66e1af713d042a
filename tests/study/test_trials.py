"""Recall, and searches at equal calls."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from simlib import Similarity
from study.trials import SEARCHES, recall
from support.matrices import rbf


def test_recall_by_hand():
    K = np.array([[9.0, 3, 2, 1], [3, 9, 1, 1], [2, 1, 9, 5], [1, 1, 5, 9]])
    assert recall(K, [[1], [0], [3], [2]]) == 1
    assert recall(K, [[1, 2], [0, 2], [3, 0], [2, 1]]) == 1
    assert recall(K, [[1, 2], [0, 3], [3, 0], [2, 0]]) == 1  # ties
    assert recall(K, [[3, -1], [0, -1], [1, 0], [2, 0]]) == (0 + 1 + 1 + 2) / 8
    assert recall(K, [[3, -1], [0, -1], [1, 0], [2, 0]], 1) == 2 / 4
    assert recall(K, [[0], [1], [2], [3]]) == 0  # an item is not its own


def test_recall_of_other_neighbours():
    X = np.random.default_rng(0).standard_normal((60, 3))
    named = NearestNeighbors(n_neighbors=4).fit(X).kneighbors(return_distance=False)
    K = -np.linalg.norm(X[:, None] - X, axis=2)
    assert recall(K, named) == 1
    assert recall(K, named[::-1]) < 0.3


@pytest.mark.parametrize("method", SEARCHES)
def test_searches_spend_their_limit(method):
    """A contender that spends less would seem to find less."""
    K = rbf(60)
    for k, limit in ((5, 500), (3, 600)):
        sim = Similarity.from_matrix(K)
        found = SEARCHES[method](sim, k, limit, K, rng=0)
        assert 0.98 * limit <= sim.calls <= limit
        assert found.shape == (60, k)
        assert recall(K, found) > 0.2
    if method in ("re-ranking", "NN-descent"):
        assert recall(K, found) == 1
    full = SEARCHES[method](Similarity.from_matrix(K), 3, 1770, K, rng=0)
    assert recall(K, full) > 0.85


def test_searches_are_those_of_the_book():
    assert set(SEARCHES) > {"nearest", "ANNCUR", "ADACUR", "NN-descent", "random"}
