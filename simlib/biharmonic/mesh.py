"""Triangle meshes: checks of their arrays, and the merging of coincident vertices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from simlib import _scale
from simlib._checks import finite, indices, numbers, readable, shaped

# Vertices coincide to rounding if their distance is at most `ULPS` units in the last
# place of the largest coordinate in float32, the type of most files, and at most `FAR`
# times the mean edge length.
ULPS, FAR = 64, 1e-3

# Ordered pairs of near vertices, at most, as estimated from a sample of vertices.
PAIRS, SAMPLE = 2**26, 2**10


def merge_vertices(
    vertices: ArrayLike, faces: ArrayLike, *, tol: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a triangle mesh with one vertex at each place, in O(n log n + m log m).

    Files for graphics store a vertex once for each texture or normal, or three vertices
    for each triangle. The triangles on the two sides of an edge are then not connected.
    Double vertices of a scanner may differ in their last digits: choose a `tol` far
    below the lengths of the edges.

    Parameters
    ----------
    vertices : array of shape (n, 3)
        Coordinates.
    faces : array of int, shape (m, 3)
        The vertices of each triangle.
    tol : float, default=0.0
        Vertices are merged if their distance is at most `tol`, or if a chain of such
        steps joins them; by default only if they are equal to the last bit. Rounding
        the coordinates is no substitute: near vertices may round to different places.

    Returns
    -------
    vertices : ndarray, shape (k, 3)
        One vertex for each place, in the order of the first vertex there.
    faces : ndarray of int, shape (l, 3)
        The triangles that still have three different vertices, each set of three
        vertices once, whatever its orientation.
    index : ndarray of int, shape (n,)
        The new number of each old vertex.

    Raises
    ------
    ValueError, IndexError
        Arrays of another shape or kind; coordinates that are not finite; no face, or
        none after the merge; a `tol` that is negative, or so far above the lengths of
        edges that there are too many near pairs; a face with a vertex that does not
        exist.

    Examples
    --------
    >>> from simlib.biharmonic import merge_vertices
    >>> soup = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0]]
    >>> vertices, faces, index = merge_vertices(soup, [[0, 1, 2], [3, 4, 5]])
    >>> faces.tolist(), index.tolist()
    ([[0, 1, 2], [0, 2, 3]], [0, 1, 2, 0, 2, 3])
    """
    points, triples = _as_mesh(vertices, faces)
    first, index = _places(points, finite(tol, "`tol`", least=0))
    triples = index[triples]
    corners = np.sort(triples, axis=1)
    whole = (np.diff(corners, axis=1) > 0).all(axis=1)
    if not whole.any():
        raise ValueError(
            "No triangle is left: each has vertices that are merged"
            + (f" at `tol` {tol}." if tol else ".")
        )
    _, once = np.unique(corners[whole], axis=0, return_index=True)
    return points[first], triples[whole][np.sort(once)], index


def check_mesh(vertices: ArrayLike, faces: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return both as arrays, vertices in float32 or float64; raise if they are no mesh.

    Vertices may coincide to rounding only if a chain of edges as short joins them.
    """
    points, triples = _as_mesh(vertices, faces)
    n, ends = len(points), (triples.ravel(), np.roll(triples, 1, axis=1).ravel())
    tol = _rounding(points, ends)
    first, index = _places(points, tol)
    still = index[ends[0]] == index[ends[1]]
    joined = coo_array((still[still], [i[still] for i in ends]), shape=(n, n))
    if connected_components(joined, directed=False)[0] > first.size:
        exact = first.size == _places(points)[0].size
        raise ValueError(
            f"{n} vertices are at {first.size} places"
            + ("" if exact else f" to within {tol}")
            + ", and no edges join those that coincide: the surface is cut open there, "
            "as along the seams of a texture or between all triangles of a soup. Close "
            "it: `vertices, faces, index = merge_vertices(vertices, faces"
            + ("" if exact else f", tol={tol}")
            + ")`, where index[i] is the new number of vertex i."
        )
    _, number, counts = np.unique(
        np.sort(triples, axis=1), axis=0, return_index=True, return_counts=True
    )
    m = len(triples)
    if number.size < m:
        raise ValueError(
            f"{m - number.size} of {m} triangles are there already, "
            f"as face {number[counts.argmax()]} is {counts.max()} times: their area "
            "would count as often. Take `vertices, faces, _ = merge_vertices(vertices, "
            "faces)`, which leaves them out."
        )
    return points, triples


def _rounding(points: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> float:
    """Return how far apart vertices may be that coincide to rounding, to one digit."""
    unit, exponent = _scale.unit(points.astype(np.float64))
    edge = np.linalg.norm(unit[ends[0]] - unit[ends[1]], axis=1).mean()
    rounding = min(ULPS * float(np.finfo(np.float32).eps), FAR * edge)
    return float(f"{np.ldexp(rounding, exponent):.0e}")


def _places(vertices: np.ndarray, tol: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the first vertex at each place, in order, and the place of each vertex.

    Vertices that a chain of steps up to `tol` joins are at one place.
    """
    _, first, place = np.unique(
        vertices + 0.0, axis=0, return_index=True, return_inverse=True
    )  # + 0.0 turns -0 into 0
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    first, index = first[order], rank[place.ravel()]
    if tol == 0:
        return first, index
    unit, exponent = _scale.unit(vertices[first].astype(np.float64))
    tree, reach = KDTree(unit), np.ldexp(tol, -exponent)
    some = unit[:: first.size // SAMPLE + 1]
    others = tree.query_ball_point(some, reach, return_length=True).mean() - 1
    if others * first.size > PAIRS:
        raise ValueError(
            f"`tol` {tol} reaches from each of {first.size} vertices to about "
            f"{others:.0f} others: choose it far below the lengths of edges."
        )
    near = tree.query_pairs(reach, output_type="ndarray").T
    ones = np.ones(near.shape[1], bool)
    joined = coo_array((ones, tuple(near)), shape=(first.size, first.size))
    _, piece = connected_components(joined, directed=False)
    _, kept, place = np.unique(piece, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(kept))
    return first[np.sort(kept)], rank[place][index]


def _as_mesh(vertices: ArrayLike, faces: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices in float32 or float64, and faces, as arrays."""
    points = shaped(numbers(vertices, "`vertices`"), ("n", 3), "`vertices`")
    if points.dtype != np.float32:
        points = points.astype(np.float64)
    triples = np.asarray(readable(faces, "`faces`"))
    triples, n = shaped(triples, ("m", 3), "`faces`"), len(points)
    if not triples.size:
        raise ValueError(f"`faces` are empty, and {n} vertices alone are no surface.")
    if triples.dtype.kind not in "iu":
        raise ValueError(f"`faces` must be integers; got {triples.dtype}.")
    corners = indices(triples.ravel(), n, "Vertices, by `faces`,")
    return points, corners.reshape(-1, 3)


def triangles(
    vertices: np.ndarray, faces: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each triangle its sides, twice its area, and its longest side squared.

    Side k, a vector, lies opposite corner k: shape (m, 3, 3).
    """
    corners = vertices[faces].astype(np.float64)
    sides = np.roll(corners, 1, axis=1) - np.roll(corners, -1, axis=1)
    double = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    return sides, double, (sides**2).sum(axis=2).max(axis=1)
