r"""The k nearest items of every item, from few calls.

.. math::
    N_k(i) = \text{the } k \text{ largest of } \{ K_{ij} : j \in P_i \} , \qquad
    \text{recall} = \frac{1}{n k} \sum_i \big| \{ j \in N_k(i) :
    K_{ij} \ge K_{i (k)} \} \big|

P_i are the items to which i was compared in rounds, and :math:`K_{i(k)}` is the k-th
largest similarity of i to any other item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike

from simlib._checks import most_calls, whole_number
from simlib.approximation.companion import as_companion
from simlib.neighbors.across import Across
from simlib.neighbors.exact import A_BOUND, filter_and_refine
from simlib.neighbors.graph import NeighborGraph, RecallEstimate
from simlib.neighbors.paid import Paid
from simlib.neighbors.rounds import ALL_PAIRS, Rounds, checked
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity


def nearest(
    sim: Source,
    k: int,
    *,
    limit: float | None,
    cheap: Source | Callable[[Any, Any], float] | ArrayLike | None = None,
    distance: bool = False,
    exact: bool = False,
    check: int = 0,
    rng: int | np.random.Generator | None = None,
) -> NeighborGraph:
    """Find the k nearest items of every item, a `NeighborGraph`, from few calls.

    For two collections the k nearest columns of every row. The search goes in rounds;
    each round pays for the pairs that are most promising by the values so far.
    `sklearn.neighbors.kneighbors_graph` is for vectors, by all pairs or a tree.

    Parameters
    ----------
    sim : Similarity
        n items under a symmetric similarity, or two collections. Known entries cost no
        call, but the search uses only what it has asked for itself, unless it is
        ``sim.informed()``: it then goes on from all that is known, and items for which
        fewest pairs are known come first.
    k : int
        Number of neighbours, 1 to n - 1; up to n for two collections.
    limit : int
        Most calls, for pairs known before or not: a few per cent of the n (n - 1) / 2
        pairs; with ``sim.informed()`` new calls alone. For two collections it counts
        the calls of all rows together, and each gets an equal share. With `exact` None
        means no limit.
    cheap : Similarity, function, or array or sparse array of shape (n, d), optional
        A companion, as in `simlib.anchored`: the same items under a cheap similarity or
        distance, a function of two items, or vectors Z of the items, which stand for
        the inner products :math:`Z Z^T`, or with ``distance=True`` for the Euclidean
        distances. For two collections a pair of arrays (Z, W). Without a companion few
        calls, above all for two collections, may find no more than chance does, and
        nothing warns of it: `check` tells.
    distance : bool, default=False
        Whether small values mean near. Without it distances give the farthest items,
        and no warning where neither the diagonal nor vectors of a companion tell.
    exact : bool, default=False
        With a companion that is never smaller than the similarity, or never larger than
        the distance, such as those of `simlib.text.bounds`: pay for all pairs that this
        bound does not exclude. The neighbours are then certain (Seidl and Kriegel
        1998), if it is a bound: only pairs that are paid for show that it is none. Not
        for two collections.
    check : int, default=0
        Number of items whose whole rows are evaluated in the end, to estimate the
        recall. A row costs n calls, 2 n for a symmetrized similarity, and these are
        taken from `limit`: raise `limit` by as many. Not with `exact`.
    rng : int, Generator or None
        Source of randomness.

    Raises
    ------
    ValueError
        An asymmetric similarity; k >= n; a limit that does not pay for k neighbours of
        each item and for `check` (the message names the smallest that does); a
        companion of other items; with `exact`, no companion, or one that is seen to be
        no bound.
    BudgetExceeded, SimilarityError
        The limit of `sim` leaves fewer calls than `limit`, and nothing was evaluated.
        It ends in the middle, as entries were known from searches with another seed;
        `exact` takes more calls than the limit; or `sim` or `cheap` failed: evaluated
        values are kept.

    Notes
    -----
    Flops: O(n^2 r) in each of sixteen rounds, with r at most 51, and 2 n^2 bytes. If it
    is cheaper, for more than a few thousand items, O(n m r): each item then has m
    candidates, a few times its calls, which are its neighbours under the companion,
    neighbours of neighbours, and random items. Neighbours under the companion take n^2
    products; beyond 20,000 items 100 m n products within near groups of items, and
    n^2 / 125 to make the groups. numba makes this faster: ``pip install
    simlib[neighbors]``. For two collections O(m n r) with r at most 102. Source: ours;
    the neighbours of neighbours are those of NN-descent, Dong et al. (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import cdist
    >>> from simlib import Similarity
    >>> from simlib.neighbors import nearest
    >>> x = np.random.default_rng(0).standard_normal((300, 3))
    >>> sim = Similarity(x, lambda a, b: np.exp(-np.sum((a - b) ** 2)))
    >>> cheap = Similarity(x[:, :2], cdist, batch="block")
    >>> graph = nearest(sim, 5, limit=4500, cheap=cheap, rng=0)  # a tenth of the pairs
    >>> graph.indices.shape, sim.calls <= 4500
    ((300, 5), True)
    """
    sim, rng = check_similarity(sim), np.random.default_rng(rng)
    two = isinstance(sim.extent, tuple)
    if not two or exact:
        checked(sim)
    m, n = sim.shape
    check = whole_number(check, "check", 0, m)
    most = np.inf if exact and limit is None else most_calls(limit, "limit")
    if exact:
        if check:
            raise ValueError(
                "Exact neighbours have the recall 1, and no rows tell more: leave out "
                f"check={check}."
            )
        return _exact(sim, k, most, cheap, distance)
    run = sim.run()
    if cheap is not None:
        cheap = as_companion(cheap, run, distance=distance)
    search: Any = (Across if two else Rounds)(run, k, most, cheap, distance, rng, check)
    found, every = search, m * n
    if not two:
        found, every = search.paid, search.price * n * (n - 1) // 2
    with run.progress_bar(min(most, every)) as search.show:
        search.run()
        recall = None
        if check:
            if known := sum(values.size for *_, values in sim.run().known()):
                # Not the rows of a search before with this seed: they are known.
                rng = np.random.default_rng([known, int(rng.integers(2**62))])
            recall = estimated_recall(run, found.indices, distance, check, rng)
    return _graph(sim, found, recall, search.history)


def _exact(
    sim: SimilarityMatrix, k: int, limit: float, cheap: Any, distance: bool
) -> NeighborGraph:
    if cheap is None:
        raise ValueError(f"Exact neighbours need {A_BOUND}.")
    if sim.n > ALL_PAIRS:
        raise ValueError(
            f"The bounds of all pairs are kept, of {ALL_PAIRS} items at most; these "
            f"are {sim.n}."
        )
    run = sim.run()
    paid = Paid(run, whole_number(k, "k", 1, sim.n - 1), -1 if distance else 1)
    paid.limit = min(limit, run.remaining)
    bound = as_companion(cheap, run, distance=distance)
    with run.progress_bar(None if paid.limit == np.inf else paid.limit):
        filter_and_refine(paid, bound)
    return _graph(sim, paid, None, [])


def _graph(
    sim: SimilarityMatrix,
    paid: Any,
    recall: RecallEstimate | None,
    history: list[dict[str, tuple[int, float]]],
) -> NeighborGraph:
    indices, distance = paid.indices.astype(np.int32), paid.sign < 0
    m, k = indices.shape
    values = sim.peek(np.repeat(np.arange(m), k), indices.ravel()).reshape(m, k)
    return NeighborGraph(indices, values, paid.calls, recall, distance, history, sim)


def estimated_recall(
    sim: SimilarityMatrix,
    indices: np.ndarray,
    distance: bool,
    check: int,
    rng: np.random.Generator,
) -> RecallEstimate:
    """Estimate the recall from the whole rows of `check` random items."""
    (m, n), k = sim.shape, indices.shape[1]
    rows = rng.permutation(m)[:check]
    calls = sim.cost((rows, None))
    exact = np.array(sim.rows(rows), dtype=float) * (-1 if distance else 1)
    if not isinstance(sim.extent, tuple):
        exact[np.arange(check), rows] = -np.inf
    kth = np.partition(exact, n - k, axis=1)[:, n - k]
    found = np.take_along_axis(exact, indices[rows], axis=1) >= kth[:, None]
    shares = found.mean(axis=1)
    value = float(shares.mean())
    if check == m:
        return RecallEstimate(value, value, value, calls)
    half = scipy.stats.t.ppf(0.975, check) * np.sqrt(1 - check / m)

    def end(one: int, sign: int) -> float:
        """Return an end of the interval, as if one more row had none, or all."""
        rows = np.append(shares, one)
        deviation = np.sqrt(rows.var(ddof=1) / rows.size)
        return float(np.clip(rows.mean() + sign * half * deviation, 0, 1))

    return RecallEstimate(value, end(0, -1), end(1, 1), calls)
