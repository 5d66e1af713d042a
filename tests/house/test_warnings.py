"""Warnings point at the line of the user, not at one of simlib."""

import warnings

import numpy as np
import pytest

from simlib import Similarity, SimilarityFeatures, lstsq, tikhonov
from simlib.neighbors import SimilarityNeighbors, nearest

X = np.random.default_rng(0).standard_normal((100, 3))
FAR = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
NEAR_SINGULAR = np.random.default_rng(0).standard_normal((300, 3))
NEAR_SINGULAR[:, 2] = NEAR_SINGULAR[:, 0] + 1e-13 * NEAR_SINGULAR[:, 2]


def heavy():
    """A matrix of which the columns tell too little."""
    rng = np.random.default_rng(1)
    rows, noise = rng.standard_normal((200, 5)), rng.standard_normal((200, 200))
    rows[:6] *= 100
    return Similarity.from_matrix(rows @ rows.T + noise + noise.T)


def asymmetric(xs, ys):
    return xs[:, 0] - ys[:, 1]


WARNED = {
    "a core of zero": lambda: tikhonov(heavy(), 15, rng=1),
    "distances": lambda: nearest(Similarity.from_matrix(FAR), 3, limit=2000, rng=0),
    "no symmetric function": lambda: tikhonov(
        Similarity(X, asymmetric, batch="pairs"), 10, rng=0
    ),
    "more landmarks than items": lambda: SimilarityFeatures("rbf", n_landmarks=101).fit(
        X
    ),
    "more neighbours than items": lambda: SimilarityNeighbors("rbf", 101).fit(X),
    "few digits": lambda: lstsq(NEAR_SINGULAR, X[:, 0].repeat(3), rng=0),
}


@pytest.mark.parametrize("name", WARNED)
def test_a_warning_points_at_the_caller(name):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        WARNED[name]()
    assert told
    assert {warning.filename for warning in told} == {__file__}
