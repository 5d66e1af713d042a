r"""Certain neighbours and pairs by a lower bound of the distance: filter and refine.

.. math::
    \underline d(i, j) \ge d_k(i) \implies
    j \text{ is no nearer to } i \text{ than the } k \text{ found} , \qquad
    \underline d(i, j) > t \implies d(i, j) > t

d_k(i) is the k-th smallest distance of item i found so far; it only falls. A similarity
with an upper bound counts as a distance with a lower one, both with the other sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from simlib._scale import exponent
from simlib.neighbors.cheap import asked, strips
from simlib.neighbors.paid import Paid
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.known import among
from simlib.similarity.views import SimilarityMatrix

if TYPE_CHECKING:
    from simlib.neighbors.hits import Above
    from simlib.neighbors.pair_search import PairSearch

A_BOUND = (
    "as `cheap` a similarity that is never smaller, or with distance=True a distance "
    "that is never larger, such as those of simlib.text.bounds"
)

PARTS = 4  # an item asks for this part of the items not excluded, in each round
SORTED_AT_ONCE = 2**22  # bounds that are sorted at a time


def filter_and_refine(paid: Paid, bound: SimilarityMatrix) -> None:
    """Pay for pairs until the nearest items of all are certain (Seidl, Kriegel 1998).

    Memory: 4 n^2 bytes. Each item asks for the items with the smallest bounds first, in
    rounds: at most a third more pairs than one after the other.
    """
    n, sim = paid.n, paid.sim
    low, largest, power = _lower_bounds(bound, paid.sign)
    low[np.arange(n), np.arange(n)] = np.inf
    low[paid.i, paid.j] = low[paid.j, paid.i] = np.inf  # these pairs are known
    active = np.arange(n)
    while active.size:
        parts = np.array_split(active, max(1, active.size * n // SORTED_AT_ONCE))
        wanted = [_not_excluded(low, paid, part, power) for part in parts]
        active = np.concatenate([still for still, _ in wanted])
        i, j = np.divmod(np.unique(np.concatenate([keys for _, keys in wanted])), n)
        cost = sim.cost(pairs=(i, j))
        if cost > paid.left:
            raise BudgetExceeded(
                f"{paid.calls} calls leave the neighbours of {active.size} "
                f"items uncertain, and the limit is {paid.limit:.0f}: raise it, "
                "everything known is kept; or take exact=False."
            )
        values = sim.pairs(i, j)
        paid.calls += cost
        scaled = np.ldexp(paid.sign * values.astype(float), -power)
        _check_bounds(i, j, scaled, -low[i, j], largest, paid.sign, power)
        paid.add(i, j, values)
        low[i, j] = low[j, i] = np.inf


def certify(search: PairSearch, hits: Above) -> tuple[float, bool]:
    """Pay for the pairs that a bound does not exclude, the most promising first.

    Return the recall that is certain, and whether that is all.
    """
    if search.cheap is None:
        raise ValueError(f"Exact pairs need {A_BOUND}.")
    numbers, bounds, count, largest = _candidates(search, search.cheap, hits)
    i, j = search.numbers.pairs(numbers)
    cost = search.sim.cost(pairs=(i, j))
    with search.sim.progress_bar(min(search.paid.limit, cost)):
        paid = search.pay(numbers).size
    i, j, sign = i[:paid], j[:paid], search.paid.sign
    nearness = sign * search.sim.peek(i, j).astype(float)
    _check_bounds(i, j - search.n_rows, nearness, bounds[:paid], largest, sign)
    recall = hits.recall(hits.count(search.paid.nearness), count - paid)
    return recall, recall == 1


def _candidates(
    search: PairSearch, bound: SimilarityMatrix, hits: Above
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Return numbers and bounds of unpaid pairs that a bound does not exclude.

    From the most promising on, as many as the limit may pay for; how many there are in
    all; and the largest bound.
    """
    n, paid, kept, count, largest = search.n, search.paid, 0, 0, 0.0
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for rows in strips(n, n):
        columns = np.arange(rows[0], n)
        block = paid.sign * asked(bound.blank().block, rows, columns).astype(float)
        largest = max(largest, float(np.abs(block).max()))
        least = hits.threshold - _rounding(hits.threshold, largest)
        a, c = np.nonzero(block >= least)
        i, j = rows[a], columns[c]
        counts = (i < j) & paid.allowed(i, j)
        new, near = search.numbers.of(i[counts], j[counts]), block[a, c][counts]
        unpaid = ~among(new, search.seen)
        parts.append((new[unpaid], near[unpaid]))
        count, kept = count + parts[-1][0].size, kept + parts[-1][0].size
        if kept > 2 * paid.left:
            parts = [_best(parts, paid.left)]
            kept = parts[0][0].size
    return *_best(parts, paid.left), count, largest


def _best(
    parts: list[tuple[np.ndarray, np.ndarray]], size: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of so many of the most promising pairs, and their bounds."""
    numbers, bounds = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(-bounds, kind="stable")[: int(min(size, bounds.size))]
    return numbers[order], bounds[order]


def _lower_bounds(bound: SimilarityMatrix, sign: int) -> tuple[np.ndarray, float, int]:
    """Return the bounds and their largest, divided by 2^power, and the power."""
    n, largest, power = bound.n, 0.0, 0
    low = np.empty((n, n), np.float32)
    for rows in strips(n, n):
        block = -sign * asked(bound.blank().block, rows, np.arange(n))
        power = power if largest else exponent(block)
        block = np.ldexp(block, -power)
        largest = max(largest, float(np.abs(block).max()))
        low[rows] = block
        down = np.nextafter(low[rows], np.float32(-np.inf))
        low[rows] = np.where(low[rows] > block, down, low[rows])
    return low, largest, power


def _not_excluded(
    low: np.ndarray, paid: Paid, items: np.ndarray, power: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the items whose lists are not certain, and the pairs that they ask for."""
    n, k, bounds = paid.n, paid.k, low[items]
    farthest = np.ldexp(-paid.values[items, -1], -power)
    count = (bounds < farthest[:, None]).sum(axis=1)
    asked = np.where(np.isinf(farthest), k, np.maximum(1, count // PARTS))
    asked = np.minimum(asked, count)
    width = int(asked.max(initial=0))
    best = np.argpartition(bounds, min(width, n - 1), axis=1)[:, :width]
    ranks = np.argsort(np.take_along_axis(bounds, best, axis=1), axis=1)
    best = np.take_along_axis(best, ranks, axis=1)
    a, place = np.nonzero(np.arange(width) < asked[:, None])
    i, j = items[a], best[a, place]
    return items[count > 0], np.minimum(i, j) * n + np.maximum(i, j)


def _check_bounds(
    i: np.ndarray,
    j: np.ndarray,
    nearness: np.ndarray,
    bounds: np.ndarray,
    largest: float,
    sign: int,
    power: int = 0,
) -> None:
    """Raise if nearness exceeds a bound by more than rounding, both over 2^power."""
    wrong = nearness > bounds + _rounding(nearness, largest)
    if not wrong.any():
        return
    at = int(np.argmax(wrong))
    value, bound = np.ldexp([sign * nearness[at], sign * bounds[at]], power).tolist()
    if sign < 0:
        side, told = "lower", f"distance {value:.6g}, less than {bound:.6g}"
    else:
        side, told = "upper", f"similarity {value:.6g}, more than {bound:.6g}"
    raise ValueError(
        f"The companion is no {side} bound: items {i[at]} and {j[at]} have the {told}."
    )


def _rounding(values: ArrayLike, largest: float) -> np.ndarray:
    """Return how far rounding may move bounds: those of equal items may differ."""
    return 1e-6 * np.abs(values) + 1e-9 * largest
