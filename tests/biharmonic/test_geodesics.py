import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import SparseEfficiencyWarning, coo_array, csr_array
from scipy.spatial import Delaunay

from simlib.biharmonic import (
    HubLabels,
    exact_geodesics,
    graph_distances,
    graph_laplacian,
    heat_geodesics,
)
from simlib.datasets import bumpy_sphere
from support.matrices import quick
from support.operators import TETRAHEDRON, flat_square


def floyd_warshall(lengths):
    """Shortest paths between all nodes; infinite lengths are no edges."""
    D = np.minimum(lengths, lengths.T)
    np.fill_diagonal(D, 0)
    for k in range(len(D)):
        D = np.minimum(D, D[:, [k]] + D[[k]])
    return D


@quick
@given(st.integers(2, 25), st.integers(0, 1000), st.booleans())
def test_graph_distances_against_floyd_warshall(n, seed, dense):
    rng = np.random.default_rng(seed)
    lengths = np.where(rng.random((n, n)) < 0.3, rng.uniform(0.1, 3, (n, n)), np.inf)
    lengths[np.arange(n - 1), np.arange(1, n)] = 2.5  # in one piece
    np.fill_diagonal(lengths, np.inf)
    graph = np.where(np.isfinite(lengths), lengths, 0)
    sources = rng.integers(0, n, 4)
    D = graph_distances(graph if dense else csr_array(graph), sources)
    np.testing.assert_allclose(D, floyd_warshall(lengths)[:, sources], rtol=1e-12)


def test_of_parallel_edges_the_shortest_counts():
    """In any format that keeps them, and the caller's array stays as it is."""
    table = np.array([[0, 1, 5], [1, 2, 1], [0, 1, 2], [1, 0, 4]])
    i, j, lengths = table.T
    roads = coo_array((lengths, (i, j)), shape=(3, 3))
    stored = csr_array(([5.0, 2.0, 4.0, 1.0], [1, 1, 0, 2], [0, 2, 4, 4]), (3, 3))
    for graph in roads, roads.astype(np.float32), stored, stored.tocsc().tocsr():
        before = graph.copy()
        found = graph_distances(graph, [0])[:, 0].tolist()
        assert found == ([0, 2, 3] if graph.nnz == 4 else [0, 4, 5])
        np.testing.assert_array_equal(graph.data, before.data)
    assert graph_distances(roads.tocsr(), [0])[:, 0].tolist() == [0, 4, 5]


def test_a_zero_that_is_stored_is_an_edge_of_length_0():
    path = csr_array(np.diag([1.0, 2, 3], k=1))
    with pytest.warns(SparseEfficiencyWarning):
        path[0, 3] = 0
    assert graph_distances(path, [0])[:, 0].tolist() == [0, 1, 3, 0]
    path.eliminate_zeros()
    assert graph_distances(path, [0])[:, 0].tolist() == [0, 1, 3, 6]
    assert graph_distances(path.toarray(), [0])[:, 0].tolist() == [0, 1, 3, 6]


def test_graphs_of_other_libraries_are_named():
    class MultiGraph(list):
        nodes = edges = property(lambda self: self)

    graph = MultiGraph("abc")
    for function in lambda G: graph_distances(G, [0]), graph_laplacian, HubLabels:
        with pytest.raises(ValueError, match=r"a MultiGraph.*to_scipy_sparse_array"):
            function(graph)
        with pytest.raises(ValueError, match=r"got shape \(4, 3\).*table of edges"):
            function(np.ones((4, 3)))


def test_exact_distances_do_not_depend_on_the_triangles():
    square = flat_square(2)[0][:, :2]
    points = np.vstack([square, np.random.default_rng(0).random((150, 2))])
    vertices = np.column_stack([points, np.zeros(len(points))])
    D = exact_geodesics(vertices, Delaunay(points).simplices, range(len(points)))
    exact = np.linalg.norm(vertices[:, None] - vertices, axis=-1)
    np.testing.assert_allclose(D, exact, rtol=1e-12, atol=1e-12)


def test_exact_distances_on_the_tetrahedron():
    D = exact_geodesics(*TETRAHEDRON, range(4))
    np.testing.assert_allclose(D, np.sqrt(8) * (1 - np.eye(4)), rtol=1e-14)


@pytest.mark.parametrize("geodesics", [heat_geodesics, exact_geodesics])
def test_types_of_numbers(geodesics):
    vertices, faces = TETRAHEDRON
    D = geodesics(vertices.tolist(), faces.astype(np.uint32), range(4))
    assert D.dtype == np.float64
    for kind in np.uint8, np.uint64:
        same = geodesics(vertices, faces.astype(kind), range(4))
        np.testing.assert_array_equal(same, D)
    single = geodesics(vertices.astype(np.float32), faces, [0, 1, 2, 3])
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, D, rtol=1e-6)
    for nothing in [], (), np.arange(0):
        assert geodesics(vertices, faces, nothing).shape == (4, 0)
        assert graph_distances(np.ones((4, 4)), nothing).shape == (4, 0)


@pytest.mark.parametrize("power", [-1000, -70, -14, 330, 1000])
def test_coordinates_of_any_size(power):
    """Without scaling packages fail or, exact ones below 1e-3, err."""
    mesh = bumpy_sphere(2)
    scaled = np.ldexp(mesh.vertices, power)
    for geodesics in heat_geodesics, exact_geodesics:
        expected = geodesics(mesh.vertices, mesh.faces, [0, 7])
        D = np.ldexp(geodesics(scaled, mesh.faces, [0, 7]), -power)
        np.testing.assert_allclose(D, expected, rtol=1e-9)


@pytest.mark.parametrize("axes", [[1, 2], [0, 1]])
def test_heat_on_a_mesh_collapsed_to_a_line(axes):
    mesh = bumpy_sphere(2)
    vertices = np.repeat(np.linspace(-1, 1, 162)[:, None], 3, axis=1)
    vertices[:, axes] = 0
    with pytest.raises(ValueError, match=r"162 of 162 vertices .* without area only"):
        heat_geodesics(vertices, mesh.faces, [0])
    collapsed = np.zeros_like(vertices)
    collapsed[5] = 1
    with pytest.raises(ValueError, match=r"without area only, vertex 0 is the first"):
        heat_geodesics(collapsed, mesh.faces, [0])


def test_heat_goes_round_a_triangle_without_area():
    mesh = bumpy_sphere(3)
    vertices, few = mesh.vertices.copy(), mesh.faces[100]
    vertices[few] = vertices[few].mean(axis=0)
    D = heat_geodesics(vertices, mesh.faces, [0])
    expected = heat_geodesics(mesh.vertices, mesh.faces, [0])
    assert abs(D - expected).max() < 0.1 * expected.max()


@pytest.mark.parametrize(
    ("vertices", "faces", "message"),
    [
        (5, [[0, 1, 2], [0, 1, 3], [0, 1, 4]], "an edge is in more than two"),
        (5, [[0, 1, 2], [0, 3, 4]], "joined at a vertex only"),
        (7, [*TETRAHEDRON[1], *TETRAHEDRON[1] + 3], "joined at a vertex only"),
        (1, np.empty((0, 3), int), "no surface"),
        (4, [[0, 1, 2], [0, 0, 3]], "1 of 2 triangles are thinner .* first face 1"),
        ([[0, 0, 0], [1, 0, 0], [2, 1e-6, 0]], [[0, 1, 2]], "thinner than 1e-5"),
    ],
)
def test_meshes_that_are_no_surface(vertices, faces, message):
    """Without the checks pygeodesic ends the process or gives infinite distances."""
    if isinstance(vertices, int):
        vertices = np.random.default_rng(0).random((vertices, 3))
    with pytest.raises(ValueError, match=message):
        exact_geodesics(vertices, faces, [0])


def test_a_surface_may_have_a_boundary_and_one_side():
    moebius = [[i, (i + 1) % 5, (i + 2) % 5] for i in range(5)]
    corners = np.random.default_rng(0).random((5, 3))
    D = exact_geodesics(corners, moebius, range(5))
    np.testing.assert_allclose(D, D.T)
    assert np.isfinite(D).all()


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (np.zeros((0, 0)), "graph is empty: it has no vertex"),
        ([[0, -1], [-1, 0]], "not negative"),
        (np.eye(3), "graph is in 3 pieces, the largest of 1 of 3"),
    ],
)
def test_impossible_graphs(adjacency, message):
    with pytest.raises(ValueError, match=message):
        graph_distances(adjacency, [0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_beyond_the_largest_number(dtype):
    vertices, faces = TETRAHEDRON
    vertices = np.finfo(dtype).max * vertices.astype(dtype)
    for geodesics in heat_geodesics, exact_geodesics:
        with pytest.raises(ValueError, match="beyond the largest number; take anoth"):
            geodesics(vertices, faces, [0])
    with pytest.raises(ValueError, match="beyond the largest number; take anoth"):
        graph_distances(1e308 * np.eye(4, k=1), [0])


@pytest.mark.parametrize(
    ("package", "geodesics"),
    [("potpourri3d", heat_geodesics), ("pygeodesic.geodesic", exact_geodesics)],
)
def test_missing_package(package, geodesics, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install simlib\[mesh\]"):
        geodesics(*TETRAHEDRON, [0])


def long_cylinder(around):
    """As CAD draws one: triangles from end to end."""
    angle = 2 * np.pi * np.arange(around) / around
    ring = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    a, b = np.arange(around), np.roll(np.arange(around), -1)
    faces = [
        np.column_stack(t) for t in ([a, b, b + around], [a, b + around, a + around])
    ]
    return np.vstack([ring, np.add(ring, [0, 0, 3])]), np.concatenate(faces)


STRIP = np.array([[0, 0, 0], [2, 0, 0], [0, 0.3, 0], [2, 0.3, 0]])
SPHERE = bumpy_sphere(2)


@pytest.mark.parametrize(
    ("mesh", "median", "most"),
    [
        (TETRAHEDRON, 0.03, 0.1),
        (flat_square(2), 0.04, 0.1),
        (flat_square(3), 0.04, 0.1),
        (flat_square(10), 0.03, 0.1),
        (flat_square(50), 0.03, 0.1),
        ((STRIP, np.array([[0, 1, 2], [1, 3, 2]])), 0.04, 0.1),
        (long_cylinder(60), 0.04, 0.15),
        ((SPHERE.vertices, SPHERE.faces), 0.04, 0.1),
    ],
)
def test_heat_on_coarse_meshes(mesh, median, most):
    """Single distances near the source are off."""
    sources = np.random.default_rng(0).permutation(len(mesh[0]))[:20]
    D = heat_geodesics(*mesh, sources)
    exact = exact_geodesics(*mesh, sources)
    gaps = abs(D - exact)[exact > 0] / exact[exact > 0]
    assert np.median(gaps) < median
    assert np.quantile(gaps, 0.95) < most


@pytest.mark.parametrize("n", [300, 600])
def test_heat_reaches_the_end_of_long_surfaces(n):
    """Beyond some 370 edges it was below the smallest number."""
    x, y = np.meshgrid(np.arange(n), np.arange(6), indexing="ij")
    vertices = np.c_[x.ravel(), y.ravel(), np.zeros(x.size)].astype(float)
    k = np.arange(x.size).reshape(n, 6)
    near, far = (k[:-1, :-1], k[1:, 1:]), (k[:-1, 1:], k[1:, :-1])
    faces = [(near[0], near[1], far[0]), (near[0], far[1], near[1])]
    faces = np.concatenate([np.stack(f, -1).reshape(-1, 3) for f in faces])
    found = heat_geodesics(vertices, faces, [0])[:, 0]
    exact = np.linalg.norm(vertices, axis=1)
    far = exact > 10
    np.testing.assert_allclose(found[far], exact[far], rtol=0.07)
