"""An array as a companion of distances: its rows count by their distances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from simlib import Similarity
from simlib.approximation.companion import Distances, as_companion
from simlib.neighbors import most_similar, nearest, pairs_above, search

RNG = np.random.default_rng(0)


def points(n, spread=1.0):
    """Vectors of few directions and unlike norms."""
    x = RNG.standard_normal((n, 5)) * [3, 2, 1, 0.5, 0.5]
    return x * np.exp(spread * RNG.standard_normal((n, 1)))


def taxi(x, y=None):
    """The similarity of these tests, near the companion's distance."""
    return Similarity(
        x, lambda a, b: np.abs(a - b).sum(axis=1), batch="pairs", columns=y
    )


def recall(D, indices):
    k = indices.shape[1]
    kth = np.partition(D, k - 1, axis=1)[:, k - 1]
    return (np.take_along_axis(D, indices, axis=1) <= kth[:, None]).mean()


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("two", [False, True])
def test_entries_are_distances(form, dtype, two):
    Z = points(30).round(1).astype(dtype)
    W = points(20).round(1).astype(dtype) if two else Z
    made = Distances(form(Z), form(W)) if two else Distances(form(Z))
    D, i, j = cdist(Z, W), np.array([2, 29, 0, 2]), np.array([2, 19, 0, 3])
    close = {"rtol": 1e-4, "atol": 2e-3} if dtype is np.float32 else {"atol": 1e-6}
    assert_allclose(made.block(i, j), D[i][:, j], **close)
    assert_allclose(made.columns(j), D[:, j], **close)
    assert_allclose(made.rows(i), D[i], **close)
    assert_allclose(made.pairs(i, j), D[i, j], **close)
    assert made.pairs(i[:0], j[:0]).shape == (0,)
    assert made.block(i[:0], j).shape == (0, 4)
    assert made.dtype == dtype


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_distances_factor(dtype):
    Z, W = (points(n).astype(dtype) + 100 for n in (40, 25))
    made = Distances(Z, W)
    left, right, _ = made.factors
    assert left.dtype == right.dtype == dtype
    D = cdist(Z, W)
    atol = (1e-2 if dtype is np.float32 else 1e-6) * D.max()
    assert_allclose(made.of_products(left @ right.T), D, atol=atol)
    left, right, signs = Distances(Z).factors
    assert_array_equal(left, right * signs)


def test_equal_rows_factor():
    left, right, _ = Distances(np.ones((3, 2))).factors
    assert_allclose(left @ right.T, np.zeros((3, 3)), atol=1e-15)


def test_neighbours_by_vectors_of_unlike_norms():
    x = points(400)
    D = cdist(x, x, "cityblock")
    np.fill_diagonal(D, np.inf)
    found = []
    for cheap in (x, csr_array(x), Similarity(x, cdist, batch="block")):
        graph = nearest(taxi(x), 5, limit=4000, cheap=cheap, distance=True, rng=0)
        found.append(recall(D, graph.indices))
    assert min(found) > 0.85
    assert found[0] > found[2] - 0.02


def test_lists_of_neighbours_by_vectors(monkeypatch):
    monkeypatch.setattr("simlib.neighbors.rounds.DEARER", 0)
    x = points(500)
    D = cdist(x, x, "cityblock")
    np.fill_diagonal(D, np.inf)
    graph = nearest(taxi(x), 5, limit=5000, cheap=x, distance=True, rng=0)
    assert recall(D, graph.indices) > 0.85


def test_columns_of_rows_by_vectors():
    x, y = points(150), points(200)
    graph = nearest(taxi(x, y), 5, limit=3000, cheap=(x, y), distance=True, rng=0)
    assert recall(cdist(x, y, "cityblock"), graph.indices) > 0.85


def test_new_items_by_vectors():
    x, new = points(300), points(50)
    options = {"limit": 20, "distance": True, "rng": 0}
    result = search(taxi(x), new, 5, cheap=x, cheap_new=new, **options)
    assert recall(cdist(new, x, "cityblock"), result.indices) > 0.85


@pytest.mark.parametrize("two", [False, True])
def test_pairs_by_vectors(two):
    x, y = points(150), points(150)
    sim, cheap = (taxi(x, y), (x, y)) if two else (taxi(x), x)
    D = cdist(x, y if two else x, "cityblock")
    every = np.sort(D.ravel() if two else D[np.triu_indices(150, 1)])
    options = {"cheap": cheap, "distance": True, "rng": 0, "recall": None}
    near = pairs_above(sim, every[99], limit=2000, **options)
    assert len(near.i) > 90
    best = most_similar(sim, 50, limit=2000, **options)
    assert_allclose(np.sort(best.values), every[:50])


def test_exact_by_vectors():
    x = points(80)
    sim = taxi(x)
    graph = nearest(sim, 3, limit=None, cheap=x, distance=True, exact=True)
    D = cdist(x, x, "cityblock")
    np.fill_diagonal(D, np.inf)
    assert recall(D, graph.indices) == 1
    assert sim.calls < 2000  # of 3,160 pairs


def test_what_no_vectors_are():
    sim = taxi(points(4))
    with pytest.raises(ValueError, match="distances between them count"):
        as_companion(["a", "b", "c", "d"], sim, distance=True)
    with pytest.raises(ValueError, match=r"from_matrix\(cdist\(cheap, cheap\)\)"):
        as_companion(np.eye(4), sim, distance=True)
