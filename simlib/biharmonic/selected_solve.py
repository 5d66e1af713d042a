r"""Columns of the interpolation operator, computed only around their landmarks.

.. math::
    M_{uu} = L D L^\top , \qquad L z = -M_{ub} e_j , \qquad L^\top x = D^{-1} z

Equation :eq:`eq:selected` of the book. In the elimination tree z is not 0 only on the
paths from the few entries of the right-hand side to the root. x on a set S of nodes
depends only on x at the ancestors of S. So the values on S are exact, at a cost that
depends on S and the depth of the tree, and not on n.
"""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.sparse import csc_array, csr_array

from simlib._checks import whole_number
from simlib._typing import Indices, MatrixLike
from simlib.biharmonic.elimination_tree import in_postorder, njit
from simlib.biharmonic.factorization import factorize
from simlib.biharmonic.operator import as_symmetric, compact
from simlib.landmarks import draw

__all__ = ["selected_columns"]

REACH = 4  # items in reach for each entry that is kept
WIDTH = 16  # columns that are solved together, with one pass over L
PROBES = 16  # vectors of random signs that estimate the size of entries out of reach


class SelectedSolve:
    """One factorisation of M_uu, for whole columns of P_u and for parts of them.

    Parameters
    ----------
    M, landmarks
        As in `selected_columns`; so are the errors.
    probes : int, default=0
        Number of right-hand sides of random signs, which are solved first; with them
        `largest` estimates the entries out of reach.

    Attributes
    ----------
    order : array of int, shape (l,)
        The places of the landmarks, with landmarks near each other together.
    solve : callable
        B -> M_uu^-1 B.
    """

    def __init__(self, M: csr_array, landmarks: np.ndarray, *, probes: int = 0):
        M = csr_array(M, copy=not M.has_canonical_format)
        M.sum_duplicates()
        self.M, self.landmarks = compact(M), landmarks
        n = self.M.shape[0]
        free = np.setdiff1d(np.arange(n), landmarks)
        A = csc_array(self.M[free][:, free])
        factor = factorize(A)
        D, perm_r = factor.superlu.U.diagonal(), factor.superlu.perm_r
        one_sign = (D > 0).all() or (D < 0).all()
        if not (one_sign and np.array_equal(perm_r, factor.superlu.perm_c)):
            raise ValueError(
                "M without the landmarks is not positive definite, and not M_uu = L D "
                'L^T. Take solver="superlu".'
            )
        # With contiguous subtrees, neighbours on the surface are near in memory.
        place, self.parent, self.L, order = in_postorder(A, factor)
        self.solve, self.D = factor.solve, D[order]
        self.node = np.full(n, -1, dtype=np.int64)  # an item's place in the elimination
        self.node[free] = place
        order = np.argsort(place)
        self.item = free[order]
        signs = np.random.default_rng(0).integers(0, 2, (free.size, probes)) * 2.0 - 1
        self.signs = signs[order].astype(np.int8)
        beside = csr_array(self.M[landmarks])
        beside.data = self.node[beside.indices] + 1
        self.order = np.argsort(beside.max(axis=1).toarray().ravel(), kind="stable")
        to_landmarks = csr_array(-self.M[landmarks][:, free])
        self.sums = to_landmarks @ self.solve(signs) if probes else signs[:0]

    def largest(self, numbers: np.ndarray, nnz: int) -> tuple[np.ndarray, ...]:
        """Return the `nnz` largest entries in reach of some columns of P_u.

        `numbers` are places among the landmarks, shape (k,); `nnz` is as in
        `selected_columns`.

        Returns
        -------
        rows, values : arrays of shape (k, nnz)
            The kept entries of column k in row k, filled up with zeros.
        counts, touched : arrays of int, shape (k,)
            Number of kept entries, and number of nodes of the elimination tree that the
            column needed.
        beyond : array, shape (k,)
            Unbiased estimate of the sum of squares of the entries out of reach, of
            relative deviation at most (2 / probes)^(1/2). Zeros without probes.
        """
        M, L = self.M, self.L
        m = self.item.size
        nnz = min(nnz, m)
        reach = min(REACH * nnz, m)

        def some(chunk: np.ndarray) -> tuple[np.ndarray, ...]:
            space = np.zeros((m, min(WIDTH, chunk.size)))
            marks = [np.zeros(size, dtype=np.int32) for size in (m, m, m, M.shape[0])]
            return _solve(
                chunk, M.indptr, M.indices, M.data, L.indptr, L.indices, L.data,
                self.D, self.parent, self.node, self.item, self.signs, reach, nnz,
                space, *marks,
            )  # fmt: skip

        n_batches = -(-numbers.size // WIDTH)
        step = WIDTH * max(1, -(-n_batches // (4 * effective_n_jobs())))
        parts = Parallel(require="sharedmem")(
            delayed(some)(self.landmarks[numbers[k : k + step]])
            for k in range(0, max(1, numbers.size), step)
        )
        rows, values, counts, touched, sums = map(
            np.concatenate, zip(*parts, strict=True)
        )
        beyond = np.zeros(numbers.size)
        if self.signs.shape[1]:
            beyond = np.square(self.sums[numbers] - sums).mean(axis=1)
        return rows, values, counts, touched, beyond


def selected_columns(
    M: MatrixLike, landmarks: Indices, nnz: int
) -> tuple[csc_array, np.ndarray]:
    r"""Return the `nnz` largest entries of each column of P_u, and the nodes it took.

    Parameters
    ----------
    M : sparse or dense array, shape (n, n)
        The operator, symmetric, with a landmark in each connected piece.
    landmarks : array of int, shape (l,)
        Distinct items.
    nnz : int
        How many entries of each column to keep, the largest in magnitude. Only the
        4 nnz items nearest to its landmark, along the edges of M, are in reach.

    Returns
    -------
    columns : csc_array, shape (n, l)
        The kept entries, equal to those of the whole column to rounding; 0 at the
        landmarks. An entry among the `nnz` largest that is out of reach is missed.
    touched : array of int, shape (l,)
        Number of nodes of the elimination tree that each column needed.

    Raises
    ------
    ImportError
        From the module: numba is not installed.
    ValueError, IndexError
        M is not square, real, finite and symmetric; M without the landmarks is not
        definite, or is singular to rounding error; landmarks repeat or are out of
        range; `nnz` is below 1.

    Notes
    -----
    Two triangular solves along the tree for each landmark, on the threads that
    ``joblib.parallel_config(n_jobs=...)`` allows. Source: ours; for the tree Davis
    (2006), chapters 3 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import biharmonic
    >>> from simlib.biharmonic.selected_solve import selected_columns
    >>> path = np.eye(50, k=1) + np.eye(50, k=-1)
    >>> M = biharmonic.biharmonic_operator(biharmonic.graph_laplacian(path))
    >>> columns, touched = selected_columns(M, np.array([10, 30]), nnz=8)
    >>> columns.nnz
    16
    """
    M = as_symmetric(M, "The operator M")
    landmarks, _ = draw(M.shape[0], None, landmarks=landmarks, rng=0)
    nnz = whole_number(nnz, "nnz", 1)
    n, n_landmarks = M.shape[0], landmarks.size
    if n_landmarks == n:
        return csc_array((n, n_landmarks)), np.zeros(n_landmarks, dtype=np.int64)
    system = SelectedSolve(M, landmarks)
    back = np.argsort(system.order)
    rows, values, counts, touched, _ = (
        part[back] for part in system.largest(system.order, nnz)
    )
    filled = np.arange(rows.shape[1]) < counts[:, None]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    columns = csc_array((values[filled], rows[filled], indptr), (n, n_landmarks))
    return columns, touched


@njit(nogil=True, cache=True)
def _near(start, stamp, M_indptr, M_indices, node, seen, queue, near):
    """Fill `near` with the nodes of items around `start`, breadth first; count them."""
    queue[0], seen[start] = start, stamp
    first, last, count = 0, 1, 0
    while first < last and count < near.size:
        i = queue[first]
        first += 1
        for k in range(M_indptr[i], M_indptr[i + 1]):
            j = M_indices[k]
            if seen[j] != stamp:
                seen[j] = stamp
                queue[last] = j
                last += 1
                if node[j] >= 0 and count < near.size:
                    near[count] = node[j]
                    count += 1
    return count


@njit(nogil=True, cache=True)
def _climb(q, stamp, parent, mark, batch, taken, path, order, size):
    """Mark the nodes from q to the root, up to the first that is already marked.

    Append those new to the batch to `order`; return its size, and how many nodes are
    new to the column.
    """
    length, new, fresh = 0, 0, 0
    while q != -1 and mark[q] != stamp:
        fresh += mark[q] != stamp - 1  # stamp - 1: marked from the right-hand side
        mark[q] = stamp
        if taken[q] != batch:
            taken[q] = batch
            path[new] = q
            new += 1
        length += 1
        q = parent[q]
    for k in range(new):
        order[size + k] = path[new - 1 - k]
    return size + new, fresh


@njit(nogil=True, cache=True)
def _forward(order, L_indptr, L_indices, L_data, x):
    """Solve L z = x in place, on nodes in ascending order."""
    width = x.shape[1]
    for q in order:
        for e in range(L_indptr[q], L_indptr[q + 1]):
            r, value = L_indices[e], L_data[e]
            for s in range(width):
                x[r, s] -= value * x[q, s]


@njit(nogil=True, cache=True)
def _backward(order, L_indptr, L_indices, L_data, D, x):
    """Solve L^T x = D^-1 z in place, on nodes that each come after their ancestors."""
    width = x.shape[1]
    total = np.empty(width)
    for q in order:
        for s in range(width):
            total[s] = x[q, s] / D[q]
        for e in range(L_indptr[q], L_indptr[q + 1]):
            r, value = L_indices[e], L_data[e]
            for s in range(width):
                total[s] -= value * x[r, s]
        for s in range(width):
            x[q, s] = total[s]


@njit(nogil=True, cache=True)
def _keep(near, x, item, rows, values):
    """Fill in the largest entries; of several equal to the least, the first found."""
    if near.size == 0:
        return 0
    magnitudes = np.empty(near.size)
    for k in range(near.size):
        magnitudes[k] = abs(x[near[k]])
    count = min(rows.size, near.size)
    least = np.partition(magnitudes, near.size - count)[near.size - count]
    ties = count - (magnitudes > least).sum()
    kept = 0
    for k in range(near.size):
        if magnitudes[k] > least or (magnitudes[k] == least and ties > 0):
            ties -= magnitudes[k] == least
            rows[kept] = item[near[k]]
            values[kept] = x[near[k]]
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def _solve(
    landmarks, M_indptr, M_indices, M_data, L_indptr, L_indices, L_data, D,
    parent, node, item, signs, reach, nnz, x, mark, first, second, seen,
):  # fmt: skip
    """Return the arrays of `SelectedSolve.largest`, with sums by signs in the end."""
    m, width = x.shape
    queue = np.empty(seen.size, node.dtype)
    forward, backward = np.empty(m, node.dtype), np.empty(m, node.dtype)
    path = np.empty(m, node.dtype)
    near, sizes = np.empty((width, reach), node.dtype), np.zeros(width, np.int64)
    rows = np.zeros((landmarks.size, nnz), M_indices.dtype)
    values = np.zeros((landmarks.size, nnz))
    counts = np.zeros(landmarks.size, np.int64)
    touched = np.zeros(landmarks.size, np.int64)
    sums = np.zeros((landmarks.size, signs.shape[1]))
    for start in range(0, landmarks.size, width):
        stop = min(start + width, landmarks.size)
        batch, n_forward, n_backward = start + 1, 0, 0
        for c in range(start, stop):
            s, landmark = c - start, landmarks[c]
            for k in range(M_indptr[landmark], M_indptr[landmark + 1]):
                q = node[M_indices[k]]
                if q >= 0:
                    x[q, s] = -M_data[k]
                    n_forward, fresh = _climb(
                        q, 3 * c + 2, parent, mark, batch, first, path, forward,
                        n_forward,
                    )  # fmt: skip
                    touched[c] += fresh
            sizes[s] = _near(
                landmark, c + 1, M_indptr, M_indices, node, seen, queue, near[s]
            )
            for k in range(sizes[s]):
                n_backward, fresh = _climb(
                    near[s, k], 3 * c + 3, parent, mark, batch, second, path, backward,
                    n_backward,
                )  # fmt: skip
                touched[c] += fresh

        forward[:n_forward].sort()
        _forward(forward[:n_forward], L_indptr, L_indices, L_data, x)
        _backward(backward[:n_backward], L_indptr, L_indices, L_data, D, x)
        for c in range(start, stop):
            s = c - start
            some = near[s, : sizes[s]]
            counts[c] = _keep(some, x[:, s], item, rows[c], values[c])
            for q in some:
                for k in range(signs.shape[1]):
                    sums[c, k] += signs[q, k] * x[q, s]
        for q in forward[:n_forward]:
            x[q] = 0
        for q in backward[:n_backward]:
            x[q] = 0
    return rows, values, counts, touched, sums
