r"""Certified nearest neighbours by a lower bound of the distance: filter and refine.

.. math::
    \underline d(i, j) \ge d_k(i) \implies
    j \text{ is no nearer to } i \text{ than the } k \text{ found}

d_k(i) is the k-th smallest distance of i found so far, which only falls. Each item asks
for those of the smallest bound first, and stops at the first that the bound excludes.
"""

from __future__ import annotations

import numpy as np

from simlib.neighbors.choice import strips
from simlib.neighbors.paid import Paid
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.views import SimilarityMatrix

__all__ = ["filter_and_refine"]

STEP = 4  # parts in which an item asks for what is not excluded


def filter_and_refine(
    sim: SimilarityMatrix, paid: Paid, bound: SimilarityMatrix, limit: float
) -> int:
    """Pay for pairs until every list of nearest is certain.

    Parameters
    ----------
    sim : SimilarityMatrix
        Distances.
    paid : Paid
        What is known of them, as nearness: distances times -1.
    bound : SimilarityMatrix
        At most the distance of each pair.
    limit : float
        Most calls.

    Returns
    -------
    int
        Calls made.

    Raises
    ------
    ValueError
        A distance is smaller than its bound.
    BudgetExceeded
        The limit is reached before all is certain; what was evaluated is known to
        `sim`.

    Notes
    -----
    Memory: n^2 numbers of four bytes, the bounds rounded downwards. With one item at a
    time as many calls as any method needs that knows only the bound; here a little
    more, since items ask for several at a time. Source: Seidl and Kriegel (1998).
    """
    n, k, calls = sim.n, paid.k, 0
    low = np.empty((n, n), np.float32)  # over a power of 2, whatever their size
    largest, power = 0.0, 0
    for rows in strips(n, n):
        block = bound.blank().block(rows, np.arange(n))
        if largest == 0:
            power = int(np.frexp(block.max())[1])
        block = np.ldexp(block, -power)
        largest = max(largest, float(block.max()))
        low[rows] = block
        above = low[rows] > block
        low[rows] = np.where(
            above, np.nextafter(low[rows], np.float32(-np.inf)), low[rows]
        )
    low[np.arange(n), np.arange(n)] = np.inf
    low[paid.i, paid.j] = low[paid.j, paid.i] = np.inf  # these need no asking
    active = np.arange(n)
    while active.size:
        keys, still = [], []
        for part in np.array_split(active, max(1, active.size * n // 2**22)):
            farthest = np.ldexp(-paid.values[part, -1], -power)
            bounds = low[part]
            open_ = bounds < farthest[:, None]
            count = open_.sum(axis=1)
            still.append(part[count > 0])
            asked = np.where(np.isinf(farthest), k, np.maximum(1, count // STEP))
            asked = np.minimum(asked, count)
            width = int(asked.max(initial=0))
            if width == 0:
                continue
            best = np.argpartition(bounds, min(width, n - 1), axis=1)[:, :width]
            ranks = np.argsort(np.take_along_axis(bounds, best, axis=1), axis=1)
            best = np.take_along_axis(best, ranks, axis=1)
            a, place = np.nonzero(np.arange(width) < asked[:, None])
            i, j = part[a], best[a, place]
            keys.append(np.minimum(i, j) * n + np.maximum(i, j))
        active = np.concatenate(still)
        if not keys:
            break
        i, j = np.divmod(np.unique(np.concatenate(keys)), n)
        cost = sim.cost(pairs=(i, j))
        if cost > limit - calls:
            raise BudgetExceeded(
                f"{calls} calls leave the neighbours of {active.size} "
                f"items uncertain, and the limit is {limit:.0f}: raise it, everything "
                "known is kept; or take exact=False."
            )
        values = sim.pairs(i, j).astype(float)
        calls += cost
        scaled = np.ldexp(values, -power)
        rounding = 1e-6 * np.abs(scaled) + 1e-9 * largest  # equal items may differ
        wrong = scaled + rounding < low[i, j]
        if wrong.any():
            at = int(np.argmax(wrong))
            raise ValueError(
                f"The companion is no lower bound: items {i[at]} and {j[at]} have the "
                f"distance {values[at]:.6g}, less than "
                f"{np.ldexp(float(low[i[at], j[at]]), power):.6g}."
            )
        paid.add(i, j, -values)
        low[i, j] = low[j, i] = np.inf
    return calls
