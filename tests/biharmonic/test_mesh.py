"""Triangle meshes: what is refused as one, and the merging of vertices."""

import re

import numpy as np
import pytest

from simlib.biharmonic import (
    biharmonic_operator,
    exact_geodesics,
    heat_geodesics,
    interpolation,
    merge_vertices,
    mesh_laplacian,
)
from simlib.datasets import bumpy_sphere
from support.operators import TETRAHEDRON, flat_square

IN_USE = [
    lambda *mesh: heat_geodesics(*mesh, [0]),
    lambda *mesh: exact_geodesics(*mesh, [0]),
    mesh_laplacian,
]


def cut_open(vertices, faces, some):
    """Give a part of the triangles vertices of their own, as a seam of a texture."""
    used, corners = np.unique(faces[some], return_inverse=True)
    faces = faces.copy()
    faces[some] = len(vertices) + corners.reshape(-1, 3)
    return np.vstack([vertices, vertices[used]]), faces


def along_a_seam():
    """A cylinder of one piece, cut open along a line."""
    flat, faces = flat_square(41)
    angle, z = 2 * np.pi * flat[:, 0], 4 * flat[:, 1]
    points = np.column_stack([np.cos(angle), np.sin(angle), z])
    points[flat[:, 0] == 1] = points[flat[:, 0] == 0]
    return points, faces


def soup(vertices, faces):
    return vertices[faces].reshape(-1, 3), np.arange(faces.size).reshape(-1, 3)


def opened(mesh):
    """Along a seam, into halves, and between all triangles."""
    half = mesh.vertices[mesh.faces].mean(axis=1)[:, 2] > 0
    yield along_a_seam()
    yield cut_open(mesh.vertices, mesh.faces, half)
    yield soup(mesh.vertices, mesh.faces)


@pytest.mark.parametrize(
    ("vertices", "faces", "kind", "message"),
    [
        (np.zeros((1, 3)), np.zeros((0, 3), int), ValueError, "1 vertices alone"),
        (TETRAHEDRON[0], np.zeros((2, 4), int), ValueError, r"`faces`.* \(2, 4\)"),
        (TETRAHEDRON[0], np.zeros((2, 3)), ValueError, "`faces`.* got float64"),
        (TETRAHEDRON[0], TETRAHEDRON[1] + 1, IndexError, "numbered 0 to 3; got 4"),
        (TETRAHEDRON[0], TETRAHEDRON[1] - 1, IndexError, "got -1"),
    ],
)
@pytest.mark.parametrize("use", [*IN_USE, merge_vertices])
def test_what_is_no_mesh(use, vertices, faces, kind, message):
    with pytest.raises(kind, match=message):
        use(vertices, faces)


@pytest.mark.parametrize("use", IN_USE)
def test_meshes_that_are_cut_open_are_named(use):
    mesh = bumpy_sphere(2)
    for vertices, faces in opened(mesh):
        places = len(np.unique(vertices, axis=0))
        message = rf"{len(vertices)} vertices are at {places} places.*merge_vertices"
        with pytest.raises(ValueError, match=message):
            use(vertices, faces)
    for again in mesh.faces, mesh.faces[:, ::-1], mesh.faces[:1, [1, 2, 0]]:
        with pytest.raises(ValueError, match="triangles are there already"):
            use(mesh.vertices, np.vstack([mesh.faces, again]))


@pytest.mark.parametrize("use", IN_USE)
@pytest.mark.parametrize(
    ("dtype", "size"), [(float, 2e-16), (float, 1e-9), (float, 2e-6), ("f4", 1e-7)]
)
def test_seams_that_rounding_opens_are_named(use, dtype, size):
    """And are closed by the tolerance that the message names."""
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
    for vertices, faces in opened(bumpy_sphere(2)):
        places = len(np.unique(vertices, axis=0))
        noise = np.random.default_rng(0).uniform(-1, 1, vertices.shape)
        turned = vertices @ turn * 7 + size * noise
        message = rf"{len(vertices)} vertices are at {places} places to within .*tol="
        with pytest.raises(ValueError, match=message) as told:
            use(turned.astype(dtype), faces)
        tol = float(re.search(r"tol=([^)]*)", str(told.value))[1])
        merged, triangles, _ = merge_vertices(turned.astype(dtype), faces, tol=tol)
        assert len(merged) == places
        use(merged, triangles)


def test_merged_meshes_have_the_distances_of_the_whole():
    mesh = bumpy_sphere(3)
    half = mesh.vertices[mesh.faces].mean(axis=1)[:, 2] > 0
    expected = exact_geodesics(mesh.vertices, mesh.faces, [0, 9])
    for vertices, faces in (
        cut_open(mesh.vertices, mesh.faces, half),
        soup(mesh.vertices, mesh.faces),
        (mesh.vertices, np.vstack([mesh.faces, mesh.faces[:, ::-1]])),
    ):
        merged, triangles, index = merge_vertices(vertices, faces)
        assert (merged[index] == vertices).all()
        assert len(triangles) == len(mesh.faces)
        places = [np.flatnonzero((vertices == v).all(axis=1))[0] for v in mesh.vertices]
        D = exact_geodesics(merged, triangles, index[places][[0, 9]])[index[places]]
        np.testing.assert_allclose(D, expected, rtol=1e-9, atol=1e-12)
    vertices, faces, index = merge_vertices(*along_a_seam())
    D = exact_geodesics(vertices, faces, [0])[index, 0]
    assert D.max() == pytest.approx(np.hypot(4, np.pi), rel=2e-3)  # half way round
    np.testing.assert_array_equal(D[:41], D[-41:])  # both sides of the seam


def test_merging():
    mesh = bumpy_sphere(2)
    vertices, faces, index = merge_vertices(mesh.vertices, mesh.faces)
    np.testing.assert_array_equal(vertices, mesh.vertices)
    np.testing.assert_array_equal(faces, mesh.faces)
    np.testing.assert_array_equal(index, np.arange(len(vertices)))
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [-0.0, 0, 0]], np.float32)
    vertices, faces, index = merge_vertices(corners, [[0, 1, 2], [0, 3, 1], [2, 1, 3]])
    assert vertices.dtype == np.float32
    assert (faces.tolist(), index.tolist()) == ([[0, 1, 2]], [0, 1, 2, 0])


def test_a_tolerance_far_above_the_edges_is_named():
    grid = np.indices((200, 200, 1)).reshape(3, -1).T / 200  # all within 2 of all
    message = "`tol` 2.0 reaches from each of 40000 vertices to about 39999 others"
    with pytest.raises(ValueError, match=message):
        merge_vertices(grid, [[0, 1, 200]], tol=2)


def test_merging_within_a_tolerance():
    mesh = bumpy_sphere(3)
    exact, faces = soup(mesh.vertices, mesh.faces)
    noise = np.random.default_rng(0).uniform(-1, 1, exact.shape)
    scanned = exact + 1e-3 * noise
    P = biharmonic_operator(*mesh_laplacian(scanned, faces))
    with pytest.raises(ValueError, match="merge_vertices with its `tol`"):
        interpolation(P, np.arange(50))
    merged, triangles, index = merge_vertices(scanned, faces, tol=1e-2)
    _, expected, numbers = merge_vertices(exact, faces)
    np.testing.assert_array_equal(index, numbers)  # in the order of the first ones
    np.testing.assert_array_equal(triangles, expected)
    assert np.abs(merged[index] - exact).max() < 1e-2
    chain = [[0, 0, 0], [0, 0, 0.5], [0, 0, 1], [5, 0, 0], [0, 5, 0]]
    found = merge_vertices(chain, [[0, 3, 4], [2, 4, 3]], tol=0.6)
    assert (found[1].tolist(), found[2].tolist()) == ([[0, 1, 2]], [0, 0, 0, 1, 2])
    with pytest.raises(ValueError, match=r"No triangle is left.* at `tol` 10"):
        merge_vertices(scanned, faces, tol=10)
    with pytest.raises(ValueError, match="`tol` must be a finite number of at least 0"):
        merge_vertices(scanned, faces, tol=-1)


def test_what_is_not_finite_is_named():
    vertices = bumpy_sphere(1).vertices.copy()
    vertices[3:5, 1] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"got nan at \[3, 1\], the first of 2"):
        mesh_laplacian(vertices, bumpy_sphere(1).faces)
