r"""Columns of the interpolation operator, computed only around their landmarks.

.. math::
    M_{uu} = L D L^\top , \qquad L z = -M_{ub} e_j , \qquad L^\top x = D^{-1} z

Equation :eq:`eq:selected` of the book. In the elimination tree the parent of a node is
the first row below the diagonal in its column of L, and all other rows of that column
are ancestors. Hence z lives on the paths from the few entries of the right-hand side to
the root, and x on a set S of nodes needs no more than x on S and the ancestors of S:
exact values, at a cost that depends on S and the depth of the tree and not on n.
"""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.sparse import csc_array, csr_array

from simlib.biharmonic.factorization import factorize
from simlib.biharmonic.operator import compact

try:
    from numba import njit
except ImportError as error:
    raise ImportError(
        "The selected solve needs numba: pip install simlib[mesh]. Without it, solver="
        '"superlu" solves for whole columns.'
    ) from error

__all__ = ["SelectedSolve", "selected_columns"]

REACH = 4  # items looked at for each entry that is kept
PROBES = 16  # random signs by item that tell how large the entries out of reach are


class SelectedSolve:
    """One factorisation of M_uu, for whole columns of P_u and for parts of them.

    Parameters
    ----------
    M : csr_array, shape (n, n)
        The operator, symmetric, with a landmark in each piece.
    landmarks : array of int, shape (l,)
        Distinct items, but not all.
    probes : int, default=0
        Right-hand sides of random signs solved for beforehand, by which `largest` tells
        what is out of reach.

    Attributes
    ----------
    order : array of int, shape (l,)
        The places of the landmarks, such that those near each other come together:
        columns computed in this order find what they need in the cache.
    solve : callable
        B -> M_uu^-1 B.

    Raises
    ------
    ValueError
        M without the landmarks is singular to rounding error, or not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import biharmonic
    >>> from simlib.biharmonic.selected_solve import SelectedSolve
    >>> path = np.eye(50, k=1) + np.eye(50, k=-1)
    >>> M = biharmonic.biharmonic_operator(biharmonic.graph_laplacian(path))
    >>> system = SelectedSolve(M, np.array([10, 30]), probes=16)
    >>> rows, values, *_, beyond = system.largest(np.array([1]), nnz=12)
    >>> rows.shape, bool(beyond[0] < 1e-12)  # all in reach
    ((1, 12), True)
    """

    def __init__(self, M: csr_array, landmarks: np.ndarray, *, probes: int = 0):
        self.M, self.landmarks = compact(csr_array(M)), landmarks
        self.M.sort_indices()
        n = self.M.shape[0]
        free = np.setdiff1d(np.arange(n), landmarks)
        A = csc_array(self.M[free][:, free])
        factor = factorize(A)
        if not np.array_equal(factor.perm_r, factor.perm_c):
            raise ValueError(
                "M without the landmarks is not positive definite, and not M_uu = L D "
                'L^T. Take solver="superlu".'
            )
        self.solve = factor.solve
        L, D, position = factor.L, factor.U.diagonal(), factor.perm_c.astype(np.int64)
        parent = _elimination_tree(A.indptr, A.indices, position, np.argsort(position))
        rank = _postorder(parent)
        order = np.argsort(rank)
        # With subtrees side by side in memory, neighbours on the surface are too.
        self.L, self.D, position = L[:, order], D[order], rank[position]
        self.L.indices = rank[self.L.indices].astype(self.L.indices.dtype)
        self.parent = np.where(parent[order] < 0, -1, rank[parent[order]])
        self.node = np.full(n, -1, dtype=np.int64)  # an item's place in the elimination
        self.node[free] = position
        order = np.argsort(position)
        self.item = free[order]
        signs = np.random.default_rng(0).integers(0, 2, (free.size, probes)) * 2.0 - 1
        self.signs = signs[order].astype(np.int8)
        beside = csr_array(self.M[landmarks])
        beside.data = self.node[beside.indices] + 1
        self.order = np.argsort(beside.max(axis=1).toarray().ravel(), kind="stable")
        to_landmarks = csr_array(-self.M[landmarks][:, free])
        self.sums = to_landmarks @ self.solve(signs) if probes else signs[:0]

    def largest(
        self, numbers: np.ndarray, nnz: int, reach: int | None = None
    ) -> tuple[np.ndarray, ...]:
        """Return the `nnz` largest entries in reach of some columns of P_u.

        Parameters
        ----------
        numbers : array of int, shape (k,)
            Which columns: places among the landmarks.
        nnz, reach
            Those of `selected_columns`.

        Returns
        -------
        rows, values : arrays of shape (k, nnz)
            The entries kept, of each column in a row; what there is no entry for is 0.
        counts : array of int, shape (k,)
            How many there are: `nnz`, or all that are in reach.
        touched : array of int, shape (k,)
            Nodes of the elimination tree that each column needed.
        beyond : array, shape (k,)
            Estimate of the sum of squares of the entries out of reach: the mean, over
            the probes, of the squared difference between the signed sums of the whole
            column and of what is in reach. It is unbiased, of relative deviation at
            most (2 / probes)^(1/2). Without probes zeros.
        """
        M, L = self.M, self.L
        m = self.item.size
        nnz = min(nnz, m)
        reach = min(max(REACH * nnz if reach is None else reach, nnz), m)

        def some(chunk: np.ndarray) -> tuple[np.ndarray, ...]:
            return _solve(
                chunk, M.indptr, M.indices, M.data, L.indptr, L.indices, L.data,
                self.D, self.parent, self.node, self.item, self.signs, reach, nnz,
            )  # fmt: skip

        n_chunks = max(1, min(4 * effective_n_jobs(), numbers.size))
        chunks = np.array_split(self.landmarks[numbers], n_chunks)
        parts = Parallel(require="sharedmem")(delayed(some)(chunk) for chunk in chunks)
        rows, values, counts, touched, sums = map(
            np.concatenate, zip(*parts, strict=True)
        )
        beyond = np.zeros(numbers.size)
        if self.signs.shape[1]:
            beyond = np.square(self.sums[numbers] - sums).mean(axis=1)
        return rows, values, counts, touched, beyond


def selected_columns(
    M: csr_array, landmarks: np.ndarray, nnz: int, *, reach: int | None = None
) -> tuple[csc_array, np.ndarray]:
    r"""Return the `nnz` largest entries of each column of P_u, and what that took.

    Parameters
    ----------
    M : csr_array, shape (n, n)
        The operator, symmetric, with a landmark in each piece.
    landmarks : array of int, shape (l,)
        Distinct items.
    nnz : int
        How many entries of each column to keep, the largest in magnitude.
    reach : int, optional
        How many items around each landmark to look at: those that M joins to it, those
        that it joins to these, and so on, until there are as many. None means 4 nnz.

    Returns
    -------
    columns : csc_array, shape (n, l)
        The entries kept, 0 at the landmarks themselves. Each is that of the whole
        column to rounding. One that is among the `nnz` largest but out of reach is
        missed, and a smaller one kept instead.
    touched : array of int, shape (l,)
        Nodes of the elimination tree that each column needed.

    Raises
    ------
    ImportError
        From the module: numba is not installed.
    ValueError
        M without the landmarks is singular to rounding error.

    Notes
    -----
    Two triangular solves along the tree for each landmark, in machine code, on the
    threads that ``joblib.parallel_config(n_jobs=...)`` allows. Source: ours; the theory
    of the elimination tree is in Davis (2006), chapters 3 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import biharmonic
    >>> from simlib.biharmonic.selected_solve import selected_columns
    >>> path = np.eye(50, k=1) + np.eye(50, k=-1)
    >>> M = biharmonic.biharmonic_operator(biharmonic.graph_laplacian(path))
    >>> columns, touched = selected_columns(M, np.array([10, 30]), nnz=8)
    >>> i, j = columns.nonzero()
    >>> i.size
    16
    >>> bool(np.allclose(columns[i, j], biharmonic.interpolation(M, [10, 30])[i, j]))
    True
    """
    n, n_landmarks = M.shape[0], landmarks.size
    if n_landmarks == n:
        return csc_array((n, n_landmarks)), np.zeros(n_landmarks, dtype=np.int64)
    system = SelectedSolve(M, landmarks)
    back = np.argsort(system.order)
    rows, values, counts, touched, _ = (
        part[back] for part in system.largest(system.order, nnz, reach)
    )
    filled = np.arange(rows.shape[1]) < counts[:, None]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    columns = csc_array((values[filled], rows[filled], indptr), (n, n_landmarks))
    return columns, touched


@njit(nogil=True, cache=True)
def _elimination_tree(indptr, indices, position, order):
    """Parent of each node, -1 at a root (Liu, with path compression)."""
    m = order.size
    parent, ancestor = np.full(m, -1, np.int64), np.full(m, -1, np.int64)
    for q in range(m):
        for k in range(indptr[order[q]], indptr[order[q] + 1]):
            i = position[indices[k]]
            while i != -1 and i < q:
                above = ancestor[i]
                ancestor[i] = q
                if above == -1:
                    parent[i] = q
                i = above
    return parent


@njit(nogil=True, cache=True)
def _postorder(parent):
    """Return new numbers, by which the nodes below any one come just before it."""
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
def _climb(q, parent, mark, stamp, order, size, path):
    """Add the nodes from q to the root that are new, ancestors before descendants."""
    length = 0
    while q != -1 and mark[q] != stamp:
        mark[q] = stamp
        path[length] = q
        length += 1
        q = parent[q]
    for k in range(length):
        order[size + k] = path[length - 1 - k]
    return size + length


@njit(nogil=True, cache=True)
def _solve(
    landmarks, M_indptr, M_indices, M_data, L_indptr, L_indices, L_data, D,
    parent, node, item, signs, reach, nnz,
):  # fmt: skip
    """Rows, values and number of entries kept, nodes touched, and sums by signs."""
    n, m = node.size, item.size
    x = np.zeros(m)
    mark = np.full(m, -1, np.int64)  # the last path that came through a node
    seen = np.full(n, -1, np.int64)
    queue = np.empty(n, np.int64)
    forward, backward = np.empty(m, np.int64), np.empty(m, np.int64)
    path = np.empty(m, np.int64)
    neighbourhood = np.empty(reach, np.int64)
    rows = np.zeros((landmarks.size, nnz), M_indices.dtype)
    values = np.zeros((landmarks.size, nnz))
    counts = np.zeros(landmarks.size, np.int64)
    touched = np.zeros(landmarks.size, np.int64)
    sums = np.zeros((landmarks.size, signs.shape[1]))
    for c in range(landmarks.size):
        start = landmarks[c]

        # The neighbourhood of the landmark, breadth first.
        queue[0], seen[start] = start, c
        first, last, n_near = 0, 1, 0
        while first < last and n_near < reach:
            i = queue[first]
            first += 1
            for k in range(M_indptr[i], M_indptr[i + 1]):
                j = M_indices[k]
                if seen[j] != c:
                    seen[j] = c
                    queue[last] = j
                    last += 1
                    if node[j] >= 0 and n_near < reach:
                        neighbourhood[n_near] = node[j]
                        n_near += 1

        # L z = -M_ub e_j, along the paths from the entries of the right-hand side.
        n_forward = 0
        for k in range(M_indptr[start], M_indptr[start + 1]):
            q = node[M_indices[k]]
            if q >= 0:
                x[q] = -M_data[k]
                n_forward = _climb(q, parent, mark, 2 * c, forward, n_forward, path)
        for k in range(n_forward - 1, -1, -1):
            q = forward[k]
            for e in range(L_indptr[q], L_indptr[q + 1]):
                if L_indices[e] != q:
                    x[L_indices[e]] -= L_data[e] * x[q]

        # L^T x = D^-1 z, on the neighbourhood and its ancestors.
        n_backward = 0
        for k in range(n_near):
            n_backward = _climb(
                neighbourhood[k], parent, mark, 2 * c + 1, backward, n_backward, path
            )
        for k in range(n_backward):
            q = backward[k]
            total = x[q] / D[q]
            for e in range(L_indptr[q], L_indptr[q + 1]):
                if L_indices[e] != q:
                    total -= L_data[e] * x[L_indices[e]]
            x[q] = total

        # The largest, those first found where several are as large as the least.
        magnitudes = np.abs(x[neighbourhood[:n_near]])
        count = min(nnz, n_near)
        least = np.partition(magnitudes, n_near - count)[n_near - count]
        ties = count - (magnitudes > least).sum()
        for k in range(n_near):
            if magnitudes[k] > least or (magnitudes[k] == least and ties > 0):
                ties -= magnitudes[k] == least
                rows[c, counts[c]] = item[neighbourhood[k]]
                values[c, counts[c]] = x[neighbourhood[k]]
                counts[c] += 1

        for k in range(n_near):
            for s in range(signs.shape[1]):
                sums[c, s] += signs[neighbourhood[k], s] * x[neighbourhood[k]]

        touched[c] = n_backward
        for k in range(n_forward):
            touched[c] += mark[forward[k]] != 2 * c + 1
            x[forward[k]] = 0
        for k in range(n_backward):
            x[backward[k]] = 0
    return rows, values, counts, touched, sums
