"""The elimination tree of a symmetric matrix, numbered so that subtrees are contiguous.

The parent of node j is the first row below the diagonal in column j of the factor L;
all other rows of that column are ancestors of j. See Davis (2006), chapter 4. A tree is
an array of parents, -1 for a root; a parent is larger than its children.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array

from simlib.biharmonic.factorization import Factorization

try:
    from numba import njit
except ImportError as error:
    raise ImportError(
        "Hub labels and the selected solve need numba: pip install simlib[mesh]. "
        'Without it take graph_distances, and solver="superlu".'
    ) from error


def in_postorder(
    A: csc_array, factor: Factorization
) -> tuple[np.ndarray, np.ndarray, csc_array, np.ndarray]:
    """Return the tree and L, numbered so that subtrees are contiguous in memory.

    Returns
    -------
    place, parent : arrays of int64, shape (m,)
        The number of each row of A, and the parent of each number.
    L : csc_array, shape (m, m)
        The entries below the unit diagonal, not sorted within columns.
    order : array of int64, shape (m,)
        The place of each number in the elimination.
    """
    place, L = factor.place, factor.superlu.L
    parent = elimination_tree(A.indptr, A.indices, place, np.argsort(place))
    rank = postorder(parent)
    order = np.argsort(rank)
    L = L[:, order]
    L.indices = rank[L.indices].astype(L.indices.dtype)
    L.setdiag(0)
    L.eliminate_zeros()
    L.has_sorted_indices = False
    parent = np.where(parent[order] < 0, -1, rank[parent[order]])
    return rank[place], parent, L, order


@njit(nogil=True, cache=True)
def elimination_tree(indptr, indices, place, order):
    """Return the parents of the nodes, shape (m,), from the pattern of the matrix.

    ``place[i]`` is the place of row i in the elimination, and `order` the inverse of
    `place`. Liu's algorithm with path compression: its steps are nearly proportional to
    the number of entries.
    """
    m = order.size
    parent, ancestor = np.full(m, -1, np.int64), np.full(m, -1, np.int64)
    for q in range(m):
        for k in range(indptr[order[q]], indptr[order[q] + 1]):
            i = place[indices[k]]
            while i != -1 and i < q:
                above = ancestor[i]
                ancestor[i] = q
                if above == -1:
                    parent[i] = q
                i = above
    return parent


@njit(nogil=True, cache=True)
def postorder(parent):
    """Return new numbers, in which the descendants of a node come just before it."""
    m = parent.size
    below = np.zeros(m, np.int64)
    for q in range(m):
        if parent[q] != -1:
            below[parent[q]] += below[q] + 1
    rank, taken, roots = np.empty(m, np.int64), np.zeros(m, np.int64), m
    for q in range(m - 1, -1, -1):
        p = parent[q]
        if p == -1:
            rank[q] = roots - 1
            roots -= below[q] + 1
        else:
            rank[q] = rank[p] - 1 - taken[p]
            taken[p] += below[q] + 1
    return rank


@njit(nogil=True, cache=True)
def depths(parent):
    """Return how many ancestors each node has."""
    depth = np.zeros(parent.size, np.int64)
    for q in range(parent.size - 1, -1, -1):
        if parent[q] != -1:
            depth[q] = depth[parent[q]] + 1
    return depth
