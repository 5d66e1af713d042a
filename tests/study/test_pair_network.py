"""The network on pairs: what it computes, what it learns, and what it refuses."""

import numpy as np
import pytest
from scipy.special import expit

from study.pair_network import PairNetwork, train_pair_network

rng = np.random.default_rng(0)
NETWORK = PairNetwork(
    rng.standard_normal((15, 4)).astype(np.float32),
    rng.standard_normal(4).astype(np.float32),
    rng.standard_normal(4).astype(np.float32),
    0.3,
)
X, Y = rng.standard_normal((7, 5)), rng.standard_normal((3, 5))


def test_the_formula_pair_by_pair():
    scores = NETWORK(X, Y)
    assert scores.dtype == np.float32
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            hidden = np.concatenate([x, y, x * y]) @ NETWORK.hidden + NETWORK.bias
            expected = expit(hidden.clip(min=0) @ NETWORK.output + NETWORK.offset)
            assert scores[i, j] == pytest.approx(expected, abs=1e-5)


def groups_of_points(seed=1):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(60), 4)
    points = rng.standard_normal((60, 6))[labels]
    return points + 0.1 * rng.standard_normal((240, 6)), labels, labels // 12


@pytest.mark.slow
def test_it_learns_from_some_groups_what_holds_in_others():
    points, labels, groups = groups_of_points()
    train = groups < 4
    network = train_pair_network(
        points[train], labels[train], groups[train], n_hidden=32, epochs=30
    )
    scores = network(points[~train], points[~train])
    same = labels[~train, None] == labels[~train]
    others = ~np.eye(len(same), dtype=bool)
    assert scores[same & others].mean() > 5 * scores[~same].mean()
    again = train_pair_network(
        points[train], labels[train], groups[train], n_hidden=32, epochs=30
    )
    np.testing.assert_array_equal(again.hidden, network.hidden)


def test_pairs_across_groups_are_not_looked_at():
    points, labels, groups = groups_of_points()
    labels = np.where(groups == 1, labels - 12, labels)  # the same names as group 0
    options = {"n_hidden": 4, "epochs": 1}
    one = train_pair_network(points, labels, groups, **options)
    two = train_pair_network(points, labels + 100 * groups, groups, **options)
    np.testing.assert_array_equal(one.hidden, two.hidden)
