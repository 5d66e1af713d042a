"""Loops over rows that numba compiles if it is installed; otherwise most are slow."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib.util import find_spec
from typing import Any

import numpy as np

COMPILED = find_spec("numba") is not None


def compiled(
    by_numpy: Callable[..., Any] | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function at its first call if numba is installed; cache it on disk.

    Without numba `by_numpy` is called, or the function as it is.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @cache
        def kernel() -> Callable[..., Any]:
            import numba

            return numba.njit(nogil=True, cache=True, **options)(function)

        @wraps(function)
        def call(*arguments: Any) -> Any:
            return (kernel() if COMPILED else by_numpy or function)(*arguments)

        return call

    return decorate


def _best(scores, keep):
    b, w = scores.shape
    places, values = np.full((b, keep), -1), np.full((b, keep), -np.inf, scores.dtype)
    width = min(keep, w)
    least = np.partition(scores, w - width, axis=1)[:, w - width, None]
    above, equal = scores > least, (scores == least) & np.isfinite(scores)
    room = width - above.sum(axis=1, keepdims=True)
    above |= equal & (np.cumsum(equal, axis=1) <= room)
    rows, columns = above.nonzero()
    order = np.lexsort((-scores[rows, columns], rows))
    rows, columns = rows[order], columns[order]
    ranks = np.arange(rows.size) - np.searchsorted(rows, rows)
    places[rows, ranks], values[rows, ranks] = columns, scores[rows, columns]
    return places, values


@compiled(_best)
def best(scores, keep):
    """Return places (b, keep) of the largest finite scores (b, w), and the scores.

    From the largest on, of equal scores the first; missing places are -1, with -inf.
    """
    b, w = scores.shape
    places = np.full((b, keep), -1, np.int64)
    values = np.full((b, keep), -np.inf, scores.dtype)
    for a in range(b):
        row, at, top = scores[a], places[a], values[a]
        for c in range(w):
            if row[c] > top[keep - 1]:
                k = keep - 1
                while k > 0 and top[k - 1] < row[c]:
                    top[k], at[k] = top[k - 1], at[k - 1]
                    k -= 1
                top[k], at[k] = row[c], c
    return places, values


@compiled()
def overtaken(scores, indptr, others):
    """Count for each score (b, w) the larger `others` of its row, by `indptr`."""
    counts = np.empty(scores.shape, np.int64)
    for a in range(len(scores)):
        own = others[indptr[a] : indptr[a + 1]]
        for c in range(scores.shape[1]):
            counts[a, c] = np.sum(own > scores[a, c])
    return counts


@compiled(fastmath={"contract", "reassoc"})
def fits(indptr, indices, data, V, penalties):
    """Return ridge fits (p, m, r) of sparse rows (m, n) on V (n, r), for p penalties.

    It solves the smaller system, with an equation for each entry or each feature.
    """
    r = V.shape[1]
    A = np.zeros((len(penalties), indptr.size - 1, r), V.dtype)
    for a in range(indptr.size - 1):
        start, stop = indptr[a], indptr[a + 1]
        F, y = V[indices[start:stop]], data[start:stop]
        few = y.size < r
        gram, moments = (F @ F.T, y) if few else (F.T @ F, y @ F)
        for p in range(len(penalties)):
            G, x = gram.copy(), moments.copy()
            for k in range(x.size):
                G[k, k] += penalties[p]
            if COMPILED:  # the same as by LAPACK, without the overhead of its calls
                for k in range(x.size):
                    for j in range(k + 1, x.size):
                        factor = G[k, j] / G[k, k]
                        x[j] -= factor * x[k]
                        for c in range(j, x.size):
                            G[j, c] -= factor * G[k, c]
                for k in range(x.size - 1, -1, -1):
                    for c in range(k + 1, x.size):
                        x[k] -= G[k, c] * x[c]
                    x[k] /= G[k, k]
            else:
                x = np.linalg.solve(G, x)
            A[p, a] = x @ F if few else x
    return A


def _products(left, right, rows, columns):
    return np.einsum("ir,ijr->ij", left[rows], right[columns])


@compiled(_products, fastmath=True)
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


@compiled(fastmath={"contract", "reassoc"})
def meet(rows, columns, first, products, graph, paid, left, right, unit, low):
    """Count shared neighbours of candidates, and replace those that share fewest.

    In `columns` (b, w) the places from `first` on are for the items that share most
    neighbours with the row. Of items that share equally many, the one with the larger
    ``unit * (product - low)`` is taken, where a product is that of rows of left (n, r)
    and right (n, r); `products` are those of the present candidates. If unit is 0, the
    present one stays. `graph` and `paid` are pairs (indptr, indices). Returns counts
    (b, w), with -inf for pairs that are paid for and for the item itself, and where a
    candidate is new.
    """
    n, w = len(left), columns.shape[1]
    counts, touched = np.zeros(n, np.int32), np.empty(n + 1, np.int32)
    tried, values = touched.copy(), np.empty(n, np.float32)
    shared = np.empty((rows.size, w), np.float32)
    new = np.zeros((rows.size, w), np.bool_)
    scores = np.empty(products.shape[1], np.float32)
    last, margin = first + scores.size, 0.5 if unit > 0 else 0.0
    for a in range(rows.size):
        i, size, some = rows[a], 0, 0
        for p in graph[1][graph[0][i] : graph[0][i + 1]]:
            for q in graph[1][graph[0][p] : graph[0][p + 1]]:
                touched[size] = q
                size += counts[q] == 0
                counts[q] += 1
        known = paid[1][paid[0][i] : paid[0][i + 1]]
        counts[known] = counts[i] = -1
        for c in range(w):
            q = columns[a, c]
            shared[a, c] = counts[q] if counts[q] >= 0 else -np.inf
            counts[q] = -1
            if first <= c < last:
                scores[c - first] = shared[a, c] + unit * (products[a, c - first] - low)
        least = np.argmin(scores)
        for q in touched[:size]:
            tried[some] = q
            some += counts[q] > max(0, scores[least] - margin)
        own = left[i]
        for t in range(some):
            other, total = right[tried[t]], np.float32(0)
            if unit == 0:
                total = low
            elif COMPILED:
                for k in range(own.size):
                    total += own[k] * other[k]
            else:
                total = np.dot(own, other)
            values[t] = counts[tried[t]] + unit * (total - low)
        for t in range(some):
            if values[t] > scores[least]:
                q = tried[t]
                counts[columns[a, first + least]] = 0
                columns[a, first + least], scores[least] = q, values[t]
                shared[a, first + least] = counts[q]
                new[a, first + least] = True
                least = np.argmin(scores)
        counts[touched[:size]] = counts[known] = counts[columns[a]] = counts[i] = 0
    return shared, new


@compiled()
def draw(rows, columns, first, predicted, others, values, paid):
    """Replace candidates with small predictions by others (b, t) with larger values.

    Only candidates at places from `first` on in `columns` (b, w) are replaced. Returns
    the new places of the others, -1 for those that are not taken.
    """
    places = np.full(others.shape, -1, np.int64)
    taken = np.zeros(paid[0].size - 1, np.bool_)
    for a in range(rows.size):
        i = rows[a]
        own = columns[a]
        taken[paid[1][paid[0][i] : paid[0][i + 1]]] = taken[i] = True
        predicted[a][taken[own[first:]]] = -np.inf
        taken[own] = True
        for t in range(others.shape[1]):
            q, least = others[a, t], np.argmin(predicted[a])
            if taken[q] or values[a, t] <= predicted[a, least]:
                continue
            taken[own[first + least]], taken[q] = False, True
            own[first + least], predicted[a, least] = q, values[a, t]
            places[a, t] = first + least
        taken[paid[1][paid[0][i] : paid[0][i + 1]]] = taken[i] = False
        taken[own] = False
    return places


@compiled()
def join(i, j, lack, both):
    """Tell which pairs to take, in order, for items that lack neighbours.

    A pair is taken if both items still lack a neighbour, or one of them unless `both`.
    """
    taken = np.zeros(i.size, np.bool_)
    for t in range(i.size):
        a, b = lack[i[t]] > 0, lack[j[t]] > 0
        if (a and b) or (not both and (a or b)):
            lack[i[t]] -= 1
            lack[j[t]] -= 1
            taken[t] = True
    return taken
