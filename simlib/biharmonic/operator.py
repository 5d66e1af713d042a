r"""The Laplacian of a surface or a graph, and the biharmonic operator made of it.

.. math::
    L = V - A , \qquad M = L^\top D^{-1} L

Equations :eq:`eq:laplacian` and :eq:`eq:biharmonic` of the book. A holds the weights of
the edges, V their sum at each vertex, D the lumped mass. On a mesh the weights are
cotangents, and the mass of a vertex is a third of the area of its triangles. On a graph
A is the adjacency matrix, and the mass is 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from simlib import _scale
from simlib._checks import numbers, shaped
from simlib._typing import MatrixLike
from simlib.biharmonic.mesh import check_mesh, triangles

DENSE = 10**7  # entries of M that hubs may cause, at most


def mesh_laplacian(
    vertices: ArrayLike, faces: ArrayLike
) -> tuple[csr_array, np.ndarray]:
    r"""Return the cotangent stiffness and the lumped mass of a triangle mesh.

    .. math::
        A_{ij} = \tfrac12 (\cot \alpha_{ij} + \cot \beta_{ij}) , \qquad
        D_{ii} = \tfrac13 \sum_{t \ni i} \operatorname{area}(t)

    Parameters
    ----------
    vertices : array of shape (n, 3)
        Coordinates.
    faces : array of int, shape (m, 3)
        The vertices of each triangle. The mesh may have a boundary and several pieces.

    Returns
    -------
    stiffness : csr_array, shape (n, n)
        L = V - A: symmetric, positive semidefinite, with rows of sum 0. It does not
        depend on the unit of the coordinates.
    mass : ndarray, shape (n,)
        The diagonal of D, in squared units of the coordinates.

    Raises
    ------
    ValueError, IndexError
        The arrays are no mesh, or a face names a vertex that does not exist; vertices
        coincide to rounding along a cut, or a triangle occurs twice (`merge_vertices`
        repairs both); a triangle has no area; a vertex has no triangle; an area is out
        of range.

    Notes
    -----
    O(m). Source: Turek and Huth (2022), eq. (8). In other packages:
    ``potpourri3d.cotan_laplacian``, which adds 1e-10 to areas, and
    ``robust_laplacian.mesh_laplacian``, for meshes that are not manifold or have
    slivers.

    Examples
    --------
    >>> from simlib.biharmonic import mesh_laplacian
    >>> vertices = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]  # of a square
    >>> stiffness, mass = mesh_laplacian(vertices, [[0, 1, 2], [0, 2, 3]])
    >>> stiffness.diagonal().round(2).tolist(), mass.round(3).tolist()
    ([1.0, 1.0, 1.0, 1.0], [0.333, 0.167, 0.333, 0.167])
    """
    vertices, faces = check_mesh(vertices, faces)
    n = len(vertices)
    if (unused := np.setdiff1d(np.arange(n), faces)).size:
        raise ValueError(
            f"{unused.size} vertices belong to no triangle, vertex {unused[0]} is the "
            "first: they have no mass. Leave them out and number the rest anew: kept, "
            "faces = np.unique(faces, return_inverse=True); vertices[kept], "
            "faces.reshape(-1, 3)."
        )
    unit, exponent = _scale.unit(vertices.astype(np.float64))
    sides, double, longest = triangles(unit, faces)
    if (flat := np.flatnonzero(double <= 1e-14 * longest)).size:
        raise ValueError(
            f"{flat.size} triangles have no area, face {flat[0]} with vertices "
            f"{faces[flat[0]].tolist()} is the first: their angles have no cotangent. "
            "Merge the vertices that coincide (merge_vertices), leave such faces out, "
            "or take robust_laplacian.mesh_laplacian."
        )
    # Corner k lies opposite side k and between the two others.
    others = np.roll(sides, 1, axis=1), np.roll(sides, -1, axis=1)
    cotangents = -np.einsum("tkx,tkx->tk", *others) / double[:, None]
    i, j = np.roll(faces, 1, axis=1).ravel(), np.roll(faces, -1, axis=1).ravel()
    A = coo_array((cotangents.ravel() / 2, (i, j)), shape=(n, n)).tocsr()
    mass = np.bincount(faces.ravel(), np.repeat(double / 6, 3), minlength=n)
    with np.errstate(over="ignore"):
        mass = np.ldexp(mass, 2 * exponent)
    if mass.min() < np.finfo(float).tiny or mass.max() == np.inf:
        raise ValueError(
            f"Of coordinates up to {abs(vertices).max():.3g} the areas are beyond the "
            "range of numbers; take another unit of length."
        )
    return graph_laplacian(A + A.T), mass


def graph_laplacian(adjacency: MatrixLike) -> csr_array:
    """Return the Laplacian V - A of an undirected graph, in O(edges).

    ``scipy.sparse.csgraph.laplacian`` also stores zeros for nodes without edges.

    Parameters
    ----------
    adjacency : sparse or dense array, shape (n, n)
        Weights A of the edges, symmetric, large where nodes are near, such as
        1 / length; `graph_distances` takes the lengths. The diagonal is ignored.

    Returns
    -------
    csr_array, shape (n, n)
        Symmetric, rows of sum 0; positive semidefinite if no weight is negative.

    Raises
    ------
    ValueError
        The matrix is not square, real, finite and symmetric; a sum of weights
        overflows.

    Examples
    --------
    >>> from simlib.biharmonic import graph_laplacian
    >>> graph_laplacian([[0, 2], [2, 0]]).toarray()
    array([[ 2., -2.],
           [-2.,  2.]])
    """
    A = as_square(adjacency, "An adjacency matrix")
    A = A - scipy.sparse.diags_array(A.diagonal())
    A = as_symmetric(A, "An adjacency matrix")
    if (A != A.T).nnz:  # by rounding
        A = (A + A.T) / 2
    with np.errstate(over="ignore"):
        sums = A.sum(axis=1)
    if not np.isfinite(sums).all():
        raise ValueError(
            "The sums of the weights are beyond the range of numbers; divide the "
            "adjacency matrix by its largest entry."
        )
    return csr_array(scipy.sparse.diags_array(sums) - A)


def biharmonic_operator(
    stiffness: MatrixLike, mass: MatrixLike | None = None
) -> csr_array:
    """Return the biharmonic operator M = L^T D^-1 L.

    O(n t^2) flops for t neighbours of each node. Source: Turek and Huth (2022), eq.
    (7); Lipman, Rustamov and Funkhouser (2010).

    Parameters
    ----------
    stiffness : sparse or dense array, shape (n, n)
        The Laplacian L of `mesh_laplacian` or `graph_laplacian`.
    mass : array of shape (n,) or sparse array of shape (n, n), optional
        The diagonal of D, or D. None means ones, as on graphs.

    Returns
    -------
    csr_array, shape (n, n)
        Symmetric to the last bit, positive semidefinite, rows of sum 0.

    Raises
    ------
    ValueError
        `stiffness` is not square, real, finite and symmetric, or has zeros on its
        diagonal, as an adjacency matrix has; `mass` has another shape or is not
        positive; an entry of M is out of range. Nodes of a sparse graph have thousands
        of neighbours: M joins all these neighbours to each other.

    Examples
    --------
    >>> from simlib.biharmonic import biharmonic_operator, graph_laplacian
    >>> L = graph_laplacian([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> biharmonic_operator(L).toarray()
    array([[ 2., -3.,  1.],
           [-3.,  6., -3.],
           [ 1., -3.,  2.]])
    """
    L = as_symmetric(stiffness, "A stiffness matrix")
    refuse_adjacency(L, "A stiffness matrix")
    D = np.ones(L.shape[0]) if mass is None else _masses(mass, L.shape[0])
    _refuse_hub(L)
    half = csr_array(scipy.sparse.diags_array(D**-0.5) @ L)
    M = csr_array(half.T @ half)
    largest = M.diagonal().max(initial=0)
    if L.count_nonzero() and not np.finfo(float).tiny <= largest < np.inf:
        raise ValueError(
            "The entries of L^T D^-1 L are beyond the range of numbers; divide the "
            "stiffness matrix by its largest entry, and the masses by the largest."
        )
    return M


def _masses(mass: Any, n: int) -> np.ndarray:
    if scipy.sparse.issparse(mass):
        shaped(mass, (n, n), "A sparse `mass`")
        if np.not_equal(*mass.nonzero()).any():
            raise ValueError("A sparse `mass` is diagonal; got one that is not.")
        mass = mass.diagonal()
    mass = shaped(numbers(mass, "`mass`"), (n,), "`mass`, the diagonal of D,")
    if not (mass > 0).all():
        raise ValueError("Every mass must be positive.")
    return mass.astype(np.float64)


def refuse_adjacency(A: csr_array, name: str) -> None:
    """Raise if there is nothing on the diagonal."""
    if A.nnz and not A.diagonal().any():
        raise ValueError(
            f"{name} is positive semidefinite; got a diagonal of zeros. Of an "
            "adjacency matrix take graph_laplacian(adjacency)."
        )


def _refuse_hub(L: csr_array) -> None:
    """Raise if M is too dense: the neighbours of each node form a dense block of M."""
    sizes = np.diff(L.indptr).astype(np.int64)
    hubs = sizes[sizes * L.shape[0] > 10 * L.nnz]
    entries = min((hubs**2).sum(), L.shape[0] ** 2)
    if entries > max(DENSE, 10 * L.nnz):
        raise ValueError(
            f"Node {sizes.argmax()} has {sizes.max() - 1} neighbours, and M joins all "
            f"of them to each other: {hubs.size} such hubs ask for {entries} entries, "
            f"where L has {L.nnz}. Leave them out, or give L itself to "
            "`interpolation`, which is then harmonic."
        )


def as_square(matrix: Any, name: str) -> csr_array:
    """Return a copy in float64 without duplicate entries, or raise ValueError."""
    if hasattr(matrix, "nodes") and hasattr(matrix, "edges"):
        raise ValueError(
            f"{name} is an array; got a {type(matrix).__name__}. Of a networkx graph "
            "take networkx.to_scipy_sparse_array(graph, weight=...), with the name of "
            "the numbers of its edges, or None for ones; rows come in the order of "
            "list(graph). It adds up parallel edges; with lengths, where the shortest "
            "counts, to_numpy_array(graph, weight=..., multigraph_weight=min)."
        )
    if not scipy.sparse.issparse(matrix):
        matrix = numbers(matrix, name)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        table = matrix.ndim == 2 and matrix.shape[1] in (2, 3)
        raise ValueError(
            f"{name} is square; got shape {matrix.shape}."
            + " Of a table of edges (i, j, value), take scipy.sparse.coo_array((value, "
            "(i, j)), shape=(n, n))." * table
        )
    if matrix.dtype.kind in "fiubO":
        A = csr_array(matrix.astype(np.float64, copy=False), copy=True)
        A.sum_duplicates()
        if np.isfinite(A.data).all():
            return A
    raise ValueError(f"{name} is real and finite; this one of {matrix.dtype} is not.")


def as_symmetric(matrix: MatrixLike, name: str) -> csr_array:
    """Return the copy of `as_square`; raise if not symmetric to half the digits."""
    A = as_square(matrix, name)
    if A.nnz and not _is_symmetric(A):
        raise ValueError(
            f"{name} is symmetric; got one that is not. Take (A + A.T) / 2, or "
            "A.maximum(A.T) where a direction was left out."
        )
    return A


def _is_symmetric(A: csr_array) -> bool:
    """Tell whether A is symmetric to half the digits of its rows."""
    gap, largest = (A - A.T).tocoo(), abs(A).max(axis=1).toarray().ravel()
    sizes = np.maximum(*(largest[k] for k in gap.coords))
    return bool((abs(gap.data) <= 1e-8 * sizes).all())


def compact(A: csr_array) -> csr_array:
    """Return A with indices of 4 bytes if they are large enough."""
    kind = scipy.sparse.get_index_dtype(maxval=max(A.nnz, *A.shape))
    parts = A.data, A.indices.astype(kind), A.indptr.astype(kind)
    return csr_array(parts, shape=A.shape)


def demand_one_piece(graph: csr_array | coo_array, kind: str) -> None:
    """Raise if a graph is empty or has several pieces, at infinite distances."""
    pieces, piece = connected_components(graph, directed=False)
    if pieces == 0:
        raise ValueError(f"The {kind} is empty: it has no vertex.")
    if pieces != 1:
        largest = np.bincount(piece).max()
        raise ValueError(
            f"The {kind} is in {pieces} pieces, the largest of {largest} of "
            f"{len(piece)} vertices: no path joins them. Keep one piece "
            "(scipy.sparse.csgraph.connected_components finds it)."
        )
