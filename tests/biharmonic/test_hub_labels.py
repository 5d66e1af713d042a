import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, random_array
from scipy.sparse.csgraph import connected_components, dijkstra

from simlib import Similarity
from simlib.biharmonic import HubLabels, graph_distances
from simlib.datasets import bumpy_sphere, planar_roads
from study.datasets import load_road_graph
from support.matrices import quick


def edges_of(mesh):
    i, j = np.concatenate([mesh.faces[:, [0, 1]], mesh.faces[:, [1, 2]]]).T
    n = len(mesh.vertices)
    return csr_array((np.ones(i.size), (i, j)), shape=(n, n))


def whole(labels, landmarks, size):
    """The matrix of which `blocks` yields the upper triangle."""
    W = np.full((len(landmarks), len(landmarks)), -1)
    for rows, columns, block in labels.blocks(landmarks, size=size):
        assert block.dtype == np.uint16
        W[rows[:, None], columns] = block
        W[columns[:, None], rows] = block.T
    return W


in_both_orders = pytest.mark.usefixtures("both_orders")


# Against SciPy


@in_both_orders
@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.floats(0.02, 0.4))
def test_any_graph(seed, n, density):
    rng = np.random.default_rng(seed)
    A = csr_array(random_array((n, n), density=density, rng=rng))
    _, piece = connected_components(A, directed=False)
    largest = np.flatnonzero(piece == np.bincount(piece).argmax())
    A = A[largest][:, largest]
    labels, D = HubLabels(A), dijkstra(A, directed=False, unweighted=True)
    np.testing.assert_array_equal(labels.rows(np.arange(labels.n)), D)
    i, j = rng.integers(0, labels.n, (2, 4, 5))
    np.testing.assert_array_equal(labels.distances(i, j), D[i, j])
    S = rng.permutation(labels.n)[: rng.integers(1, labels.n + 1)]
    np.testing.assert_array_equal(whole(labels, S, 3), D[S][:, S])
    np.testing.assert_array_equal(labels.rows(S, S[::-1]), D[S][:, S[::-1]])


@in_both_orders
def test_a_mesh_and_a_plane():
    for graph in edges_of(bumpy_sphere(4)), planar_roads(5000, rng=0)[0]:
        labels, sources = HubLabels(graph), [0, 77, 2000]
        D = dijkstra(graph, directed=False, unweighted=True, indices=sources)
        np.testing.assert_array_equal(labels.rows(sources), D)
        assert labels.depth < 12 * np.sqrt(labels.n)


@pytest.mark.slow
def test_roads(data):
    graph = load_road_graph()
    labels = HubLabels(graph)
    D = graph_distances(graph, [123456])[:, 0]
    np.testing.assert_array_equal(labels.rows([123456])[0], D)
    assert labels.depth < 700


# As users have it


def test_as_a_similarity():
    graph = planar_roads(400, rng=0)[0]
    labels = HubLabels(graph)
    D = dijkstra(graph, directed=False, unweighted=True)
    for batch, function in ("pairs", labels.distances), ("block", labels.rows):
        sim = Similarity(np.arange(400), function, batch=batch, dtype=np.float32)
        np.testing.assert_array_equal(sim.columns([3, 99]), D[:, [3, 99]])


def test_weights_diagonal_and_direction_do_not_count():
    A = planar_roads(200, rng=0)[0]
    expected = HubLabels(A).rows(range(200))
    upper = csr_array(np.triu(A.toarray())) * -7.5
    for other in upper, A.toarray().astype(np.float32), A + csr_array(np.eye(200)):
        before = other.copy()
        np.testing.assert_array_equal(HubLabels(other).rows(range(200)), expected)
        assert abs(other - before).max() == 0


def test_an_edge_of_opposite_values():
    """The sum of both directions is 0, and yet it is an edge."""
    ring = np.eye(10, k=1)
    ring[9, 0], ring[0, 9] = 1, -1
    assert HubLabels(ring).distances(0, 9) == 1
    skew = csr_array(np.eye(5, k=1) - np.eye(5, k=-1))
    assert HubLabels(skew).distances(0, 4) == 4


def test_values_of_one_edge_do_not_cancel():
    """In a triangle of which one side is stored with 1 and with -1."""
    sides = [0, 0, 0, 1], [1, 2, 2, 2]
    for values in [1, 1, -1, 1], [1, 1, 0, 1], np.array([1, 128, 128, 1], np.uint8):
        triangle = coo_array((values, sides), shape=(3, 3))
        stored = csr_array((values, sides[1], [0, 3, 4, 4]), (3, 3))
        for graph in triangle, stored:
            D = HubLabels(graph).rows(range(3))
            np.testing.assert_array_equal(D, 1 - np.eye(3))


def test_little_asked_for():
    labels = HubLabels(np.ones((4, 4)))
    assert labels.rows([]).shape == (0, 4)
    assert labels.rows([1], []).shape == (1, 0)
    assert labels.distances([], []).shape == (0,)
    assert list(labels.blocks([])) == []
    assert "4 nodes, depth 4" in repr(labels)
    labels, S = HubLabels(np.eye(9, k=1)), np.array([4, 4, 0, 8, 0])
    np.testing.assert_array_equal(whole(labels, S, 2), abs(S[:, None] - S))
    np.testing.assert_array_equal(labels.rows(S, S), abs(S[:, None] - S))
    assert HubLabels([[0.0]]).rows([0]).tolist() == [[0]]


def test_several_pieces():
    with pytest.raises(ValueError, match="in 2 pieces"):
        HubLabels(np.kron(np.eye(2), np.ones((3, 3))))
    with pytest.raises(ValueError, match="it has no vertex"):
        HubLabels(np.zeros((0, 0)))
    with pytest.raises(ValueError, match="square"):
        HubLabels(np.zeros((2, 3)))


def test_labels_that_do_not_fit():
    for n, fits in (60_000, True), (70_000, False):
        path = csr_array((np.ones(n - 1), (np.arange(n - 1), np.arange(1, n))), (n, n))
        if fits:
            assert HubLabels(path).distances(0, n - 1) == n - 1
        else:
            with pytest.raises(ValueError, match="more than 32767 edges away"):
                HubLabels(path)


@pytest.mark.parametrize("nodes", [[-1], [4], [0.5], ["a"]])
def test_nodes_that_do_not_exist(nodes):
    labels = HubLabels(np.ones((4, 4)))
    for ask in (
        lambda: labels.distances(nodes, 0),
        lambda: labels.rows(nodes),
        lambda: labels.rows([0], nodes),
        lambda: list(labels.blocks(nodes)),
    ):
        with pytest.raises((IndexError, ValueError), match="Nodes are"):
            ask()
    with pytest.raises(ValueError, match="at least 1"):
        list(labels.blocks([0], size=0))


def test_numba_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.delitem(sys.modules, "simlib.biharmonic.elimination_tree")
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "simlib.biharmonic.hub_labels")
    with pytest.raises(ImportError, match=r"pip install simlib\[mesh\]"):
        from simlib.biharmonic import HubLabels  # noqa: F401
