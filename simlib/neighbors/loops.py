"""Loops over rows that numba compiles, if it is there; without it most are slow."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

__all__ = ["COMPILED", "best", "fits", "join", "listed", "overtaken", "products"]

COMPILED = find_spec("numba") is not None


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function, once for all processes, or leave it as it is."""
    if not COMPILED:
        return lambda function: function
    import numba

    return numba.njit(nogil=True, cache=True, **options)


@compiled()
def best(scores, keep):
    """Return places (b, keep) of the largest finite scores (b, w) of rows, else -1.

    From the largest on, among equals the first ones.
    """
    b, w = scores.shape
    places = np.full((b, keep), -1, np.int64)
    values = np.empty(keep, scores.dtype)
    for a in range(b):
        row, at = scores[a], places[a]
        values[:] = -np.inf
        for c in range(w):
            if row[c] > values[keep - 1]:
                k = keep - 1
                while k > 0 and values[k - 1] < row[c]:
                    values[k], at[k] = values[k - 1], at[k - 1]
                    k -= 1
                values[k], at[k] = row[c], c
    return places


@compiled()
def overtaken(scores, indptr, others):
    """Count of each score (b, w) which others of its row, in `indptr`, are larger."""
    counts = np.empty(scores.shape, np.int64)
    for a in range(len(scores)):
        ranked = np.sort(others[indptr[a] : indptr[a + 1]])
        smaller = np.searchsorted(ranked, scores[a], side="right")
        counts[a] = ranked.size - smaller
    return counts


@compiled()
def fits(indptr, indices, data, V, penalty):
    """Return the ridge fits (m, r) of sparse rows to features V (n, r).

    The smaller of the two systems of equations, that of entries or that of features.
    """
    r = V.shape[1]
    A = np.zeros((indptr.size - 1, r), V.dtype)
    for a in range(len(A)):
        start, stop = indptr[a], indptr[a + 1]
        F, y = V[indices[start:stop]], data[start:stop]
        if 0 < y.size < r:
            gram = F @ F.T
            for k in range(y.size):
                gram[k, k] += penalty
            A[a] = np.linalg.solve(gram, y) @ F
        elif y.size:
            gram = F.T @ F
            for k in range(r):
                gram[k, k] += penalty
            A[a] = np.linalg.solve(gram, y @ F)
    return A


@compiled(fastmath=True)
def products(left, right, rows, columns):
    """Return the products of some rows (b,) of left with rows (b, w) of right."""
    b, w = columns.shape
    out = np.empty((b, w), left.dtype)
    for a in range(b):
        row = left[rows[a]]
        for c in range(w):
            other = right[columns[a, c]]
            total = np.float32(0)
            for k in range(row.size):
                total += row[k] * other[k]
            out[a, c] = total
    return out


@compiled()
def listed(rows, columns, first, graph_indptr, graph, paid_indptr, paid):
    """Count shared neighbours of candidates, and replace those that share fewest.

    In rows of `columns` (n, w) the places from `first` on belong to the items that
    share most neighbours. Returns counts (b, w), -1 of what is paid for or no
    candidate, and where a candidate is new.
    """
    n, w = columns.shape
    counts, touched = np.zeros(n, np.int32), np.empty(n, np.int32)
    shared = np.empty((rows.size, w), np.float32)
    new = np.zeros((rows.size, w), np.bool_)
    for a in range(rows.size):
        i, size = rows[a], 0
        for e in range(graph_indptr[i], graph_indptr[i + 1]):
            p = graph[e]
            for f in range(graph_indptr[p], graph_indptr[p + 1]):
                q = graph[f]
                if counts[q] == 0:
                    touched[size] = q
                    size += 1
                counts[q] += 1
        for e in range(paid_indptr[i], paid_indptr[i + 1]):
            counts[paid[e]] = -1
        counts[i] = -1
        for c in range(w):
            q = columns[i, c]
            shared[a, c] = counts[q]
            counts[q] = -1
        least = first + np.argmin(shared[a, first:]) if first < w else w
        for t in range(size):
            q = touched[t]
            if least < w and counts[q] > max(shared[a, least], 0):
                counts[columns[i, least]] = 0
                columns[i, least], shared[a, least] = q, counts[q]
                new[a, least] = True
                least = first + np.argmin(shared[a, first:])
            counts[q] = 0
        for e in range(paid_indptr[i], paid_indptr[i + 1]):
            counts[paid[e]] = 0
        counts[i] = 0
        for c in range(w):
            counts[columns[i, c]] = 0
    return shared, new


@compiled()
def join(i, j, lack, both):
    """Tell which pairs to take, in order, so that no item gets more than it lacks.

    Of pairs of which `both` lack something, or one does.
    """
    taken = np.zeros(i.size, np.bool_)
    for t in range(i.size):
        a, b = lack[i[t]] > 0, lack[j[t]] > 0
        if (a and b) or (not both and (a or b)):
            lack[i[t]] -= 1
            lack[j[t]] -= 1
            taken[t] = True
    return taken
