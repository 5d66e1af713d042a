r"""Distances along a surface or a graph, from some sources to everywhere.

.. math::
    (D + t L) \, u = e_s , \qquad X = -\frac{\nabla u}{\|\nabla u\|} , \qquad
    L \, \phi = -\nabla \cdot X

The heat method: D and L are the mass and the stiffness matrix of the mesh, t is the
squared mean edge length, and phi is shifted to be 0 at s. The exact method unfolds the
triangles that the shortest paths cross. Distances in a graph are found by Dijkstra's
algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components, dijkstra

from simlib import _scale
from simlib._checks import indices
from simlib._typing import MatrixLike
from simlib.biharmonic.mesh import check_mesh, triangles
from simlib.biharmonic.operator import as_square, demand_one_piece

LONG = 0.06  # times the root of the area: longer edges make the heat method inaccurate
ADDED = 10**5  # vertices that are added, about, at most
FAR = 350  # mean edges: of what is farther off the heat is lost
# The parts of a triangle by the number of its sides that are cut. Corners are 0 to 2;
# middle 3 + k is that of the side from corner k to the next. The side from corner 0 is
# the only one that is cut, or the only one that is not.
PARTS: list[list[list[int]]] = [
    [[0, 1, 2]],
    [[0, 3, 2], [3, 1, 2]],
    [[0, 1, 4], [0, 4, 5], [5, 4, 2]],
    [[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]],
]


def heat_geodesics(
    vertices: ArrayLike, faces: ArrayLike, sources: ArrayLike
) -> np.ndarray:
    """Return approximate geodesic distances from some vertices of a triangle mesh.

    Parameters
    ----------
    vertices : array of shape (n, 3)
        Coordinates. For float32 the distances are float32.
    faces : array of int, shape (m, 3)
        The vertices of each triangle; the mesh is in one piece.
    sources : array of int, shape (k,)
        Vertices from which to measure.

    Returns
    -------
    ndarray, shape (n, k)
        Column j holds the distances from sources[j]. They are **not symmetric**, by
        about a percent: for a similarity matrix take the mean of D and its transpose.

    Raises
    ------
    ValueError, IndexError
        The arrays are no mesh; vertices coincide to rounding along a cut, or a triangle
        occurs twice (`merge_vertices` repairs both); the mesh has several pieces; all
        triangles of a vertex have no area; a distance overflows; a source or a corner
        is no vertex.
    ImportError
        potpourri3d is not installed.

    Notes
    -----
    The median error is 1 to 4 percent. Within five edges of the source it may be a
    half: take `exact_geodesics` if that matters, and for narrow strips that are
    thousands of edges long, on which a tenth and more of the largest distances is
    missing. Two sparse factorisations, then two solves for each source. Edges longer
    than 0.06 times the root of the area are halved first. The time of the heat is the
    squared mean edge, or longer where the surface is more than 350 edges long, as less
    heat than the smallest number comes that far.
    Source: Crane, Weischedel and Wardetzky (2013), in the package potpourri3d, with the
    Laplacian of Sharp and Crane (2020).

    Examples
    --------
    >>> from simlib.biharmonic import heat_geodesics
    >>> from simlib.datasets import bumpy_sphere
    >>> mesh = bumpy_sphere()
    >>> D = heat_geodesics(mesh.vertices, mesh.faces, [0, 1])[[0, 1]]
    >>> ((D + D.T) / 2).round(2).tolist()
    [[0.0, 2.28], [2.28, 0.0]]
    """
    vertices, faces, exponent = _mesh(vertices, faces)
    _demand_area(vertices, faces)
    sources = indices(sources, len(vertices), "Sources")
    try:
        from potpourri3d import MeshHeatMethodDistanceSolver
    except ImportError as error:
        raise ImportError(
            "Heat distances need potpourri3d: pip install simlib[mesh]"
        ) from error
    n = len(vertices)
    surface = _refined(vertices, faces)
    solver = MeshHeatMethodDistanceSolver(*surface, _time(*surface))
    return _columns(
        lambda s: solver.compute_distance(s)[:n], vertices, sources, exponent
    )


def _refined(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the surface with long edges halved; its first vertices are the same."""
    vertices, most = vertices.astype(np.float64), len(vertices) + ADDED
    area = triangles(vertices, faces)[1].sum() / 2
    while len(vertices) < most:
        ends = np.stack([faces, np.roll(faces, -1, axis=1)], axis=-1)
        edges, side = np.unique(
            np.sort(ends.reshape(-1, 2), axis=1), axis=0, return_inverse=True
        )
        first, last = vertices[edges].transpose(1, 0, 2)
        long = np.linalg.norm(first - last, axis=1) > LONG * np.sqrt(area)
        if not long.any():
            break
        number = np.where(long, len(vertices) + np.cumsum(long) - 1, -1)
        middles = number[side.reshape(faces.shape)]
        vertices = np.vstack([vertices, (first[long] + last[long]) / 2])
        counts = (middles >= 0).sum(axis=1)
        other = np.where(counts[:, None] == 1, middles >= 0, middles < 0)
        turn = (other.argmax(axis=1)[:, None] + np.arange(3)) % 3
        points = np.hstack([np.take_along_axis(x, turn, 1) for x in (faces, middles)])
        faces = np.vstack(
            [
                points[counts == count][:, part]
                for count, parts in enumerate(PARTS)
                for part in parts
            ]
        )
    return vertices, faces


def _time(vertices: np.ndarray, faces: np.ndarray) -> float:
    """Return the time of the heat in units of the squared mean edge, at least 1."""
    i, j = np.concatenate([faces, np.roll(faces, -1, axis=1)], axis=None).reshape(2, -1)
    lengths = np.linalg.norm(vertices[i] - vertices[j], axis=1)
    edges = coo_array((lengths, (i, j)), shape=(len(vertices),) * 2)
    end = graph_distances(edges, [0]).argmax()
    reach = graph_distances(edges, [end]).max()
    return max(1.0, float(reach / (FAR * lengths.mean())) ** 2)


def exact_geodesics(
    vertices: ArrayLike, faces: ArrayLike, sources: ArrayLike
) -> np.ndarray:
    """Return the geodesic distances from some vertices of a triangle mesh.

    Parameters
    ----------
    vertices, faces, sources : arrays
        As in `heat_geodesics`; the mesh is a surface, with or without boundary.

    Returns
    -------
    ndarray, shape (n, k)
        Column j holds the lengths of the shortest paths over the triangles from
        sources[j]. They are symmetric to rounding; to about 1e-6 if the height of a
        triangle is below 1e-4 of its longest side.

    Raises
    ------
    ValueError, IndexError
        As in `heat_geodesics`; or three triangles share an edge, parts of the mesh
        share only a vertex, or the height of a triangle is at most 1e-5 of its longest
        side.
    ImportError
        pygeodesic is not installed.

    Notes
    -----
    A source vertex takes about 25 ms on 2562 vertices, 0.2 s on 10242. Source:
    Mitchell, Mount and Papadimitriou (1987), by the code of Kirsanov in the package
    pygeodesic.

    Examples
    --------
    >>> from simlib.biharmonic import exact_geodesics
    >>> vertices = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]  # of a square
    >>> faces = [[0, 1, 2], [0, 2, 3]]
    >>> exact_geodesics(vertices, faces, [1]).round(3).tolist()
    [[1.0], [0.0], [1.0], [1.414]]
    """
    vertices, faces, exponent = _mesh(vertices, faces)
    _demand_surface(vertices, faces)
    sources = indices(sources, len(vertices), "Sources")
    try:
        from pygeodesic.geodesic import PyGeodesicAlgorithmExact
    except ImportError as error:
        raise ImportError(
            "Exact distances need pygeodesic: pip install simlib[mesh]"
        ) from error
    solver = PyGeodesicAlgorithmExact(vertices, faces)
    return _columns(
        lambda s: solver.geodesicDistances([s])[0], vertices, sources, exponent
    )


def graph_distances(adjacency: MatrixLike, sources: ArrayLike) -> np.ndarray:
    """Return the lengths of shortest paths from some nodes of an undirected graph.

    `scipy.sparse.csgraph.dijkstra` computes them, O(k (n log n + edges)).

    Parameters
    ----------
    adjacency : sparse or dense array, shape (n, n)
        Lengths of the edges, not negative. An edge that is stored in one direction
        counts in both; of several lengths the smallest counts. In a dense array 0 means
        no edge; in a sparse array a stored 0 is an edge of length 0.
    sources : array of int, shape (k,)
        Nodes from which to measure; one that does not exist is an IndexError.

    Returns
    -------
    ndarray, shape (n, k)
        Column j holds the distances from sources[j].

    Raises
    ------
    ValueError
        The matrix is not square, real and finite, a length is negative, the graph has
        several pieces, or a distance overflows.

    Examples
    --------
    >>> from simlib.biharmonic import graph_distances
    >>> lengths = [[0, 1, 5], [1, 0, 2], [5, 2, 0]]
    >>> graph_distances(lengths, [0])[:, 0].tolist()
    [0.0, 1.0, 3.0]
    """
    graph = as_square(_shortest(adjacency), "An adjacency matrix")
    if (graph.data < 0).any():
        raise ValueError("Lengths of edges are not negative.")
    demand_one_piece(graph, "graph")
    sources = indices(sources, graph.shape[0], "Sources")
    return _finite(dijkstra(graph, directed=False, indices=sources).T)


def _shortest(adjacency: Any) -> Any:
    """Return a graph without repeated entries: the least length of each edge counts."""
    if not issparse(adjacency) or adjacency.ndim != 2:
        return adjacency
    graph = coo_array(adjacency)
    i, j = graph.coords
    order = np.lexsort((graph.data, j, i))
    i, j, lengths = i[order], j[order], graph.data[order]
    first = np.diff(i, prepend=-1).astype(bool) | np.diff(j, prepend=-1).astype(bool)
    return coo_array((lengths[first], (i[first], j[first])), shape=graph.shape)


def _mesh(vertices: ArrayLike, faces: ArrayLike) -> tuple[np.ndarray, np.ndarray, int]:
    """Return vertices, faces, and the power of 2 that divided the vertices."""
    points, faces = check_mesh(vertices, faces)
    if (points == points[0]).all():
        raise ValueError("All vertices coincide: they are no surface.")
    i, j = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]]]).T
    points, largest = _scale.unit(points)  # or squares may overflow
    mean = _scale.exponent(np.linalg.norm(points[i] - points[j], axis=1).mean())
    edges = coo_array((np.ones(len(i)), (i, j)), shape=(len(points),) * 2)
    demand_one_piece(edges, "mesh")
    return np.ldexp(points, -mean), faces, largest + mean


def _columns(
    distances_from: Callable[[int], np.ndarray],
    vertices: np.ndarray,
    sources: np.ndarray,
    exponent: int,
) -> np.ndarray:
    distances = np.empty((len(vertices), len(sources)), vertices.dtype, order="F")
    for column, source in enumerate(sources):
        distances[:, column] = distances_from(source)
    with np.errstate(over="ignore"):
        np.ldexp(distances, exponent, out=distances)
    return _finite(distances)


def _finite(distances: np.ndarray) -> np.ndarray:
    if distances.max(initial=0) == np.inf:
        raise ValueError(
            "Distances are beyond the largest number; take another unit of length."
        )
    return distances


def _demand_area(vertices: np.ndarray, faces: np.ndarray) -> None:
    """Raise if a vertex has no mass, as in a mesh that is collapsed to a line."""
    _, double, longest = triangles(vertices, faces)
    without = np.setdiff1d(np.arange(len(vertices)), faces[double > 1e-14 * longest])
    if without.size:
        raise ValueError(
            f"{without.size} of {len(vertices)} vertices are in triangles without area "
            f"only, vertex {without[0]} is the first: merge the vertices that "
            "coincide (merge_vertices), and leave out such triangles."
        )


def _demand_surface(vertices: np.ndarray, faces: np.ndarray) -> None:
    """Raise for meshes on which pygeodesic crashes or leaves out distances."""
    _, double, longest = triangles(vertices, faces)
    thin = double <= 1e-5 * longest
    if thin.any():
        raise ValueError(
            f"{thin.sum()} of {len(faces)} triangles are thinner than 1e-5 of their "
            f"longest side, first face {thin.argmax()}: collapse or flip their edges."
        )
    n, faces = len(vertices), faces.astype(np.int64)
    ahead = np.roll(faces, -1, axis=1)
    keys = np.minimum(faces, ahead) * n + np.maximum(faces, ahead)
    edges, edge, counts = np.unique(keys, return_inverse=True, return_counts=True)
    edge = edge.reshape(faces.shape)
    start, end = 2 * edge + (faces > ahead), 2 * edge + (faces < ahead)
    meet = start.ravel(), np.roll(end, 1, axis=1).ravel()
    fans = coo_array((np.ones(faces.size), meet), shape=(2 * len(edges),) * 2)
    if (counts > 2).any() or connected_components(fans, directed=False)[0] != n:
        raise ValueError(
            "The mesh is no surface: an edge is in more than two triangles, or parts "
            "are joined at a vertex only."
        )
