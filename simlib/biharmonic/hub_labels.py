r"""Hop distances of a graph, by labels on an elimination tree.

.. math::
    d(s, t) = \min_{a \,\in\, A(s) \cap A(t)} d(s, a) + d(a, t)

Equation :eq:`eq:hub_labels` of the book. Nodes are eliminated one by one. When a node
is eliminated, its remaining neighbours are joined by edges as long as the path through
it. Every shortest path then passes a common ancestor of its ends in the elimination
tree, the hub. The label of node s holds the distances from s to its ancestors A(s).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.sparse import coo_array, csc_array, csr_array, diags_array

from simlib._checks import indices, readable, whole_number
from simlib._typing import Indices, MatrixLike
from simlib.biharmonic.elimination_tree import depths, in_postorder, njit
from simlib.biharmonic.factorization import eliminate
from simlib.biharmonic.operator import as_square, demand_one_piece
from simlib.lowrank.tall import read_only

FARTHEST = 2**15 - 1  # largest distance to a hub: the sum of two fits into two bytes
TILE = 64  # targets whose labels are compared with all sources at a time
NONE = 2**30  # the weight that means no edge
SHIFT = 1e-9  # makes a Laplacian definite; a larger one makes entries of L underflow


class HubLabels:
    """The number of edges on a shortest path between any two nodes of a graph.

    Parameters
    ----------
    adjacency : sparse or dense array, shape (n, n)
        An entry that is not 0 is an edge, in both directions. Values of entries and the
        diagonal do not matter: for edges of different lengths take
        `simlib.biharmonic.graph_distances`. The graph is in one piece.

    Attributes
    ----------
    n : int
        Number of nodes.
    depth : int
        The depth of the elimination tree in nodes, the length of the longest label.
    nbytes : int
        Size of the index.

    Raises
    ------
    ValueError
        The matrix is not square, real and finite; the graph has no nodes or several
        pieces, or a node more than 32,767 edges away from a hub.
    ImportError
        From the module: numba is not installed.

    Notes
    -----
    The order of elimination is the nested dissection of METIS; without pymetis the
    minimum degree of SuperLU, which makes longer labels. The index takes two bytes for
    each pair of a node and an ancestor, and d times as many steps, for d neighbours
    that are eliminated later. If no small sets of nodes separate the graph, the depth
    approaches n. Source: Abraham et al. (2012); Dibbelt, Strasser and Wagner (2016). In
    SciPy: ``csgraph.breadth_first_order``, from one node at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.biharmonic import HubLabels
    >>> labels = HubLabels(np.eye(100, k=1))  # a path
    >>> labels.distances([0, 10], [99, 10])
    array([99,  0], dtype=uint16)
    """

    def __init__(self, adjacency: MatrixLike):
        as_square(adjacency, "An adjacency matrix")  # or an error
        A = csr_array(coo_array(adjacency, dtype=bool))  # where no values cancel
        A.setdiag(0)
        A.eliminate_zeros()
        A = csc_array(A + A.T)
        A.data = np.ones(A.nnz)
        self.n = A.shape[0]
        demand_one_piece(A, "graph")
        factor = eliminate(csc_array(diags_array(A.sum(axis=0) + SHIFT) - A))
        # The place of a node in the elimination, children first.
        self._place, self._parent, L, _ = in_postorder(A, factor)
        L.sort_indices()
        indptr, indices = L.indptr, L.indices
        del factor, L
        weights = _edges(indptr, indices, A.indptr, A.indices, self._place)
        self._depth = depths(self._parent)
        self.depth = int(self._depth.max()) + 1
        if not _contract(indptr, indices, weights):
            raise ValueError(
                "The factor has fewer entries than the elimination fills in: a chain "
                "of nodes is too long for it. Take graph_distances."
            )
        self._start = np.concatenate([[0], np.cumsum(self._depth + 1)])
        self._labels = np.empty(self._start[-1], dtype=np.uint16)
        if not _label(indptr, indices, weights, self._depth, self._start, self._labels):
            raise ValueError(
                f"A node is more than {FARTHEST} edges away from a hub, which is more "
                "than a label of two bytes may hold. Take graph_distances."
            )

    @property
    def _index(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self._labels, self._start, self._depth, self._parent

    @property
    def nbytes(self) -> int:
        """The size of the index in bytes."""
        return sum(part.nbytes for part in (*self._index, self._place))

    def __repr__(self) -> str:
        return f"HubLabels({self.n} nodes, depth {self.depth}, {self.nbytes} bytes)"

    def distances(self, i: Indices, j: Indices) -> np.ndarray:
        """Return the distances of pairs of nodes, each in about a microsecond.

        ``Similarity(np.arange(n), labels.distances, batch="pairs", dtype=np.float32)``
        is the matrix of all distances.

        Parameters
        ----------
        i, j : array of int
            Nodes; they broadcast. One that does not exist is an IndexError.

        Returns
        -------
        array of uint16
            The number of edges on a shortest path from i to j.
        """
        i, j = np.broadcast_arrays(self._nodes(i), self._nodes(j))
        found = _pairs(*self._index, self._place[i].ravel(), self._place[j].ravel())
        return found.reshape(i.shape)

    def rows(self, sources: Indices, targets: Indices | None = None) -> np.ndarray:
        """Return the distances from some nodes to others.

        It uses the threads that ``joblib.parallel_config(n_jobs=...)`` allows.

        Parameters
        ----------
        sources, targets : arrays of int, shapes (k,) and (m,)
            Nodes; one that does not exist is an IndexError. None means all nodes.

        Returns
        -------
        array of uint16, shape (k, m)
        """
        first = self._place[self._nodes(sources).ravel()]
        every = slice(None) if targets is None else self._nodes(targets).ravel()
        places = self._place[every]
        order = np.argsort(places, kind="stable")
        return self._between(first, places[order], order)

    def blocks(
        self, landmarks: Indices, *, size: int = 1024
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the upper triangle of the distances among landmarks, rows at a time.

        Parameters
        ----------
        landmarks : array of int, shape (l,)
            Nodes; one that does not exist is an IndexError.
        size : int, default=1024
            Rows in a block; below 1 it is a ValueError.

        Yields
        ------
        rows, columns : arrays of int, shapes (k,) and (m,)
            Places among the landmarks, read-only. The columns are these rows, and all
            rows of later blocks.
        block : array of uint16, shape (k, m)
            ``block[a, b]`` is the distance from ``landmarks[rows[a]]`` to
            ``landmarks[columns[b]]``.

        Examples
        --------
        >>> import numpy as np
        >>> from simlib.biharmonic import HubLabels
        >>> labels = HubLabels(np.eye(100, k=1))
        >>> for rows, columns, block in labels.blocks(np.arange(0, 90, 30), size=2):
        ...     print(rows.size, columns.size, block.max())
        2 3 60
        1 1 0
        """
        size = whole_number(size, "size", 1)
        places = self._place[self._nodes(landmarks).ravel()]
        order = read_only(np.argsort(places, kind="stable"))
        places = places[order]
        for start in range(0, places.size, size):
            rest = places[start:]
            block = self._between(rest[:size], rest, np.arange(rest.size))
            yield order[start : start + size], order[start:], block

    def _between(
        self, sources: np.ndarray, targets: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """Return the distances from places `sources` to ascending places `targets`.

        Target k fills column ``columns[k]``.
        """
        found = np.empty((sources.size, targets.size), dtype=np.uint16)
        shared = _shared(self._depth, self._parent, targets)
        n_chunks = max(1, min(4 * effective_n_jobs(), sources.size))
        Parallel(require="sharedmem")(
            delayed(_rows)(*self._index, some, targets, shared, columns, out)
            for some, out in zip(
                np.array_split(sources, n_chunks),
                np.array_split(found, n_chunks),
                strict=True,
            )
        )
        return found

    def _nodes(self, nodes: Indices) -> np.ndarray:
        nodes = np.asarray(readable(nodes, "Nodes"))
        return indices(nodes.ravel(), self.n, "Nodes").reshape(nodes.shape)


@njit(nogil=True, cache=True)
def _edges(indptr, indices, A_indptr, A_indices, place):
    """Return the weights of the entries of L: 1 for edges of the graph, else `NONE`."""
    weights = np.full(indices.size, NONE, np.int32)
    for i in range(place.size):
        q = place[i]
        for e in range(A_indptr[i], A_indptr[i + 1]):
            r = place[A_indices[e]]
            if r > q:
                first = indptr[q]
                k = first + np.searchsorted(indices[first : indptr[q + 1]], r)
                weights[k] = 1
    return weights


@njit(nogil=True, cache=True)
def _contract(indptr, indices, weights):
    """Add the edges of the elimination; return whether L has a place for each."""
    for q in range(indptr.size - 1):
        last = indptr[q + 1]
        for e in range(indptr[q], last):
            r = indices[e]
            k, end = indptr[r], indptr[r + 1]
            for f in range(e + 1, last):
                s, through = indices[f], weights[e] + weights[f]
                while k < end and indices[k] < s:
                    k += 1
                if k < end and indices[k] == s:
                    weights[k] = min(weights[k], through)
                elif through < NONE:
                    return False
    return True


@njit(nogil=True, cache=True)
def _label(indptr, indices, weights, depth, start, labels):
    """Fill in the labels, from the root on; return whether all distances fit."""
    chain = np.empty(depth.max() + 1, np.int64)  # the ancestors of a node, by depth
    found = np.empty(depth.max() + 1, np.int32)
    for q in range(depth.size - 1, -1, -1):
        d = depth[q]
        chain[d] = q
        found[:d] = NONE
        for e in range(indptr[q], indptr[q + 1]):
            r, weight = indices[e], weights[e]
            if weight >= NONE:
                continue
            through, first = depth[r], start[r]
            for k in range(through + 1):
                found[k] = min(found[k], weight + np.int32(labels[first + k]))
            for k in range(through + 1, d):
                beyond = np.int32(labels[start[chain[k]] + through])
                found[k] = min(found[k], weight + beyond)
        for k in range(d):
            if found[k] > FARTHEST:
                return False
            labels[start[q] + k] = found[k]
        labels[start[q] + d] = 0
    return True


@njit(nogil=True, cache=True)
def _meeting(depth, parent, p, q):
    """Return the depth of the last common ancestor of two places."""
    while p != q:
        if p < q:
            p = parent[p]
        else:
            q = parent[q]
    return depth[p]


@njit(nogil=True, cache=True)
def _shortest(one, other):
    """Return the least sum of two labels, cut to their common ancestors."""
    best = np.uint16(2 * FARTHEST)
    for k in range(one.size):
        best = min(best, np.uint16(one[k] + other[k]))
    return best


@njit(nogil=True, cache=True)
def _pairs(labels, start, depth, parent, i, j):
    found = np.empty(i.size, np.uint16)
    for k in range(i.size):
        p, q = start[i[k]], start[j[k]]
        size = _meeting(depth, parent, i[k], j[k]) + 1
        found[k] = _shortest(labels[p : p + size], labels[q : q + size])
    return found


@njit(nogil=True, cache=True)
def _shared(depth, parent, places):
    """Return the depth of the last common ancestor of each place and the next.

    The places are in ascending order.
    """
    shared = np.empty(max(places.size - 1, 0), np.int64)
    for k in range(shared.size):
        shared[k] = _meeting(depth, parent, places[k], places[k + 1])
    return shared


@njit(nogil=True, cache=True)
def _rows(labels, start, depth, parent, sources, targets, shared, columns, out):
    """Fill in distances to targets in ascending order, a tile of targets at a time."""
    n = targets.size
    middle = np.searchsorted(targets, sources)
    common = np.empty(sources.size, np.int64)
    for step in (1, -1):
        for tile in range(0, n, TILE):
            low, high = tile, min(tile + TILE, n)
            if step == -1:
                low, high = n - high, n - low
            for a in range(sources.size):
                p, m = sources[a], middle[a]
                own = labels[start[p] : start[p] + depth[p] + 1]
                b = max(low, m) if step == 1 else min(high, m) - 1
                while low <= b < high:
                    if b == (m if step == 1 else m - 1):
                        common[a] = _meeting(depth, parent, p, targets[b])
                    else:
                        beside = shared[b - 1 if step == 1 else b]
                        common[a] = min(common[a], beside)
                    q, size = start[targets[b]], common[a] + 1
                    out[a, columns[b]] = _shortest(own[:size], labels[q : q + size])
                    b += step
