from functools import partial

import numpy as np
import pytest
import robust_laplacian
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array
from scipy.spatial import ConvexHull

from simlib.biharmonic import (
    biharmonic_operator,
    graph_distances,
    graph_laplacian,
    interpolation,
    mesh_laplacian,
    neighbor_graph,
)
from simlib.datasets import bumpy_sphere
from support.matrices import quick
from support.operators import TETRAHEDRON, flat_square


def weighted_graph(n, seed):
    """A dense adjacency matrix, about half of it zero."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.uniform(0.1, 3, (n, n)) * (rng.random((n, n)) < 0.5), 1)
    return A + A.T


def test_tetrahedron():
    """The cotangent of 60 degrees is 1 / sqrt(3), the area of a face 2 sqrt(3)."""
    L, mass = mesh_laplacian(*TETRAHEDRON)
    centring = 4 * np.eye(4) - 1
    np.testing.assert_allclose(L.toarray(), centring / np.sqrt(3), atol=1e-15)
    np.testing.assert_allclose(mass, np.full(4, 2 * np.sqrt(3)))
    M = biharmonic_operator(L, mass).toarray()
    np.testing.assert_allclose(M, centring * 2 / np.sqrt(27), atol=1e-14)


def test_square_grid_gives_the_five_point_stencil():
    L, mass = mesh_laplacian(*flat_square(5))
    row = np.zeros((5, 5))
    row[[1, 2, 2, 3], [2, 1, 3, 2]] = -1
    row[2, 2] = 4
    np.testing.assert_allclose(L.toarray()[12], row.ravel(), atol=1e-14)
    at_the_corner = L.toarray()[0, [1, 5, 6]]  # edges with one angle opposite
    np.testing.assert_allclose(at_the_corner, [-0.5, -0.5, 0], atol=1e-14)
    np.testing.assert_allclose(mass[12], 1 / 16)
    np.testing.assert_allclose(mass.sum(), 1)


def test_diagonal_of_an_adjacency_cancels():
    """However large it is."""
    A = weighted_graph(6, 0)
    loops = graph_laplacian(A + np.diag([0, 1, 2, -1, 1e20, 1e-20]))
    np.testing.assert_array_equal(loops.toarray(), graph_laplacian(A).toarray())


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (np.full(4, 200, np.uint8), 400),
        (np.ones(4, bool), 2),
        (np.array([1, 2**-24, 2**-24, 1], np.float32), 1 + 2**-24),
    ],
)
def test_what_is_stored_twice_is_added_in_float64(weights, expected):
    """Small integers would overflow, and float32 round in the order of storage."""
    twice = coo_array((weights, ([0, 0, 1, 1], [1, 1, 0, 0])), shape=(2, 2))
    for A in twice, scipy.sparse.coo_matrix(twice):
        L = graph_laplacian(A).toarray()
        np.testing.assert_array_equal(L, [[expected, -expected], [-expected, expected]])


def test_against_robust_laplacian():
    """On a mesh that is Delaunay already: the convex hull of points on a sphere."""
    points = np.random.default_rng(0).standard_normal((400, 3))
    vertices = points / np.linalg.norm(points, axis=1, keepdims=True)
    faces = ConvexHull(vertices).simplices
    L, mass = mesh_laplacian(vertices, faces)
    other, masses = robust_laplacian.mesh_laplacian(vertices, faces, mollify_factor=0)
    assert abs(L - other).max() < 1e-9 * abs(L).max()
    np.testing.assert_allclose(mass, masses.diagonal(), rtol=1e-9)


@quick
@given(st.integers(1, 15), st.integers(0, 1000))
def test_against_dense_formulas(n, seed):
    A = weighted_graph(n, seed)
    mass = np.random.default_rng(seed).uniform(0.1, 10, n)
    L = graph_laplacian(A)
    np.testing.assert_allclose(L.toarray(), np.diag(A.sum(axis=1)) - A, atol=1e-14)
    np.testing.assert_allclose(
        biharmonic_operator(L, mass).toarray(),
        L.toarray().T @ np.diag(1 / mass) @ L.toarray(),
        atol=1e-11,
    )


def check_operator(L, mass):
    M = biharmonic_operator(L, mass)
    assert (M != M.T).nnz == 0
    for A in L, M:
        assert abs(A.sum(axis=1)).max() < 1e-12 * abs(A).max()
        assert abs(A - A.T).max() < 1e-12 * abs(A).max()
        X = np.random.default_rng(0).standard_normal((A.shape[0], 20))
        assert ((X * (A @ X)).sum(axis=0) > 0).all()


def test_surface_operator():
    check_operator(*mesh_laplacian(*flat_square(8)))
    mesh = bumpy_sphere(3)
    L, mass = mesh_laplacian(mesh.vertices, mesh.faces)
    check_operator(L, mass)
    assert np.linalg.eigvalsh(L.toarray())[:2] == pytest.approx([0, 0.1], abs=0.1)


@pytest.mark.parametrize("power", [-500, -300, 300, 500])
def test_coordinates_of_any_size(power):
    mesh = bumpy_sphere(2)
    L, mass = mesh_laplacian(mesh.vertices, mesh.faces)
    scaled, masses = mesh_laplacian(np.ldexp(mesh.vertices, power), mesh.faces)
    np.testing.assert_array_equal(scaled.toarray(), L.toarray())
    np.testing.assert_array_equal(np.ldexp(masses, -2 * power), mass)


def test_mass_on_the_diagonal_of_a_sparse_array():
    L, mass = mesh_laplacian(*TETRAHEDRON)
    M = biharmonic_operator(L, mass)
    D = scipy.sparse.diags_array(mass)
    for kind in D, D.tocsr(), scipy.sparse.csc_matrix(D):
        assert abs(biharmonic_operator(L, kind) - M).max() == 0


@pytest.mark.parametrize(
    ("vertices", "faces", "message"),
    [
        (TETRAHEDRON[0], TETRAHEDRON[1][:1], "1 vertices .* vertex 3 is the first"),
        (np.eye(3), [[0, 1, 2], [0, 0, 1]], r"1 triangles have no area, face 1 .*0, 1"),
        ([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]], "no area, face 0"),
        (np.zeros((3, 3)), [[0, 1, 2]], "no area, face 0"),
        (1e-160 * TETRAHEDRON[0], TETRAHEDRON[1], "range of numbers; take another"),
        (1e160 * TETRAHEDRON[0], TETRAHEDRON[1], "range of numbers; take another"),
    ],
)
def test_meshes_without_a_laplacian(vertices, faces, message):
    with pytest.raises(ValueError, match=message):
        mesh_laplacian(vertices, faces)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"square; got shape \(2, 3\)"),
        (csr_array(np.full((2, 2), 1j)), "real and finite; this one of complex128"),
        ([[0, 1], [0, 0]], "symmetric; got one that is not"),
        (np.ma.masked_equal([[1, 2], [2, 1]], 2), "real and finite.* some are masked"),
        ([[0, np.inf], [np.inf, 0]], r"real and finite.* got inf at \[0, 1\]"),
    ],
)
def test_impossible_matrices(matrix, message):
    uses = [graph_laplacian, biharmonic_operator, lambda M: interpolation(M, [0])]
    if "symmetric" not in message:
        uses.append(lambda A: graph_distances(A, [0]))
    for use in uses:
        with pytest.raises(ValueError, match=message):
            use(matrix)


def test_a_hub_joins_all_its_neighbors():
    def star(leaves):
        ones, center = np.ones(leaves), np.full(leaves, 2)
        others = np.delete(np.arange(leaves + 1), 2)
        half = coo_array((ones, (center, others)), shape=(leaves + 1,) * 2)
        return graph_laplacian(half + half.T)

    with pytest.raises(ValueError, match=r"Node 2 has 5000 neighbours.* 25010001 ent"):
        biharmonic_operator(star(5000))
    assert biharmonic_operator(star(500)).nnz == 501**2
    stars = scipy.sparse.block_diag([star(1000)] * 20)
    with pytest.raises(ValueError, match=r"20 such hubs ask for 20040020 entries"):
        biharmonic_operator(stars)


@pytest.mark.parametrize("weight", [1e-170, 1e-155, 1e160])
def test_weights_of_which_the_squares_are_no_numbers(weight):
    with pytest.raises(ValueError, match="range of numbers; divide the stiffness"):
        biharmonic_operator(graph_laplacian(weight * weighted_graph(6, 0)))


def test_weights_of_which_the_sums_are_no_numbers():
    with pytest.raises(ValueError, match="divide the adjacency matrix by its largest"):
        graph_laplacian(np.full((4, 4), 1e308))


@pytest.mark.parametrize(
    ("mass", "message"),
    [
        (np.ones(3), r"the diagonal of D.* \(4,\); got \(3,\)"),
        ([1, 1, -1, 1], "positive"),
        (csr_array(np.ones((4, 4))), "sparse `mass` is diagonal"),
        (scipy.sparse.eye_array(4, 5), r"\(4, 4\); got \(4, 5\)"),
        (scipy.sparse.diags_array([1.0, 1, 0, 1]), "positive"),
    ],
)
def test_impossible_masses(mass, message):
    with pytest.raises(ValueError, match=message):
        biharmonic_operator(mesh_laplacian(*TETRAHEDRON)[0], mass)


def test_loops_hide_no_direction():
    with pytest.raises(ValueError, match="symmetric"):
        graph_laplacian([[1e9, 1.0], [0.0, 0.0]])


def test_a_laplacian_is_symmetric_where_weights_are_nearly():
    L = graph_laplacian([[0, 1, 0], [1, 0, 1e-9], [0, 0, 0]]).toarray()
    np.testing.assert_array_equal(L, L.T)
    np.testing.assert_allclose(L[2], [0, -5e-10, 5e-10])


def test_an_adjacency_matrix_is_no_operator():
    G = neighbor_graph(np.random.default_rng(0).random((60, 2)), n_neighbors=6)
    for of in (biharmonic_operator, partial(interpolation, landmarks=[0, 30])):
        for matrix in (G, G.toarray()):
            with pytest.raises(ValueError, match=r"take graph_laplacian\(adjacency\)"):
                of(matrix)


def test_a_light_part_has_to_be_symmetric_too():
    W = np.zeros((5, 5))
    W[0, 1] = W[1, 0] = 1e9
    W[2, 3] = W[3, 4] = 1
    with pytest.raises(ValueError, match="symmetric; got one that is not"):
        graph_laplacian(W)
