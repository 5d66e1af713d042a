r"""Other searches for nearest neighbours from few calls, to compare with `nearest`.

.. math::
    \text{ANNCUR:} \quad \hat K = K_{:,S} \, (K_{R,S})^+ \, K_{R,:} , \qquad
    \text{ADACUR:} \quad \hat k_q = k_{q,S_q} \, (K_{R,S_q})^+ \, K_{R,:}

R are anchor queries, whose rows are known, S anchor items; ADACUR gives every query q
anchors of its own: what is known of it, and in rounds those that its last prediction
ranks first. Each contender returns the k nearest of all items among what it has
evaluated, and spends its limit: pairs that are known cost nothing, and what is left
over goes to the next query or to the next in rank.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from simlib.approximation.anchored import anchored
from simlib.approximation.methods import largest
from simlib.approximation.tikhonov import tikhonov
from simlib.landmarks import uniform
from simlib.similarity.views import SimilarityMatrix

N_ROUNDS = 5  # of ADACUR, as published
SHARE = 0.5  # of the calls for anchors or landmarks; the rest is for those found


def random_pairs(sim, k, limit, cheap=None, rng=None) -> np.ndarray:
    """Return neighbours among random pairs, shape (n, k); -1 where there are fewer."""
    rng = np.random.default_rng(rng)
    return _ranked(sim, k, limit, rng.random((sim.n, sim.n)), rng)


def rerank(sim, k, limit, cheap, rng=None) -> np.ndarray:
    """Return neighbours by ranking cheap ones, large where near, anew: (n, k)."""
    return _ranked(sim, k, limit, cheap, rng)


def anncur_scores(rows: np.ndarray, S: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the scores of m queries with all items, (m, n); Yadav et al. (2022).

    From the rows (r, n) of anchor queries, and the scores (m, s) with anchor items S.
    """
    return scores @ (np.linalg.pinv(rows[:, S]) @ rows)


def anncur(sim, k, limit, cheap=None, rng=None) -> np.ndarray:
    """Return neighbours by ANNCUR: anchors, then those that it ranks first."""
    rng = np.random.default_rng(rng)
    S = uniform(sim.n, _anchors(sim.n, limit), rng=rng)
    columns = sim.columns(S)
    scores = anncur_scores(columns.T, S, columns)
    return _ranked(sim, k, limit - sim.calls, scores + scores.T, rng)


def adacur_search(
    rows: np.ndarray,
    known: np.ndarray,
    ask: Callable[[np.ndarray], np.ndarray],
    number: int,
) -> np.ndarray:
    """Return the scores of a query that are known or paid for, NaN elsewhere, (n,).

    From the rows (r, n) of anchor queries. It asks for `number` items in rounds, those
    of the largest predictions. Source: Yadav et al. (2023), the variant that takes the
    first of each round; they know nothing at first, and begin with random items.
    """
    known = known.copy()
    for part in np.array_split(np.arange(number), N_ROUNDS):
        S = np.flatnonzero(~np.isnan(known))
        predicted = known[S] @ np.linalg.pinv(rows[:, S]) @ rows
        predicted[S] = -np.inf
        new = np.argsort(-predicted, kind="stable")[: part.size]
        known[new] = ask(new)
    return known


def adacur(sim, k, limit, cheap=None, rng=None) -> np.ndarray:
    """Return neighbours by ADACUR, each item being a query."""
    rng = np.random.default_rng(rng)
    n = sim.n
    R = uniform(n, _anchors(n, limit), rng=rng)
    rows = np.array(sim.columns(R)).T
    for q in range(n):
        others = np.delete(np.arange(n), q)
        known = sim.peek(np.full(n - 1, q), others)
        number = int(limit - sim.calls) // (n - q)
        adacur_search(rows[:, others], known, partial(_row, sim, q, others), number)
    return _best(sim, k)


def nn_descent(sim, k, limit, cheap, rng=None) -> np.ndarray:
    """Return neighbours by NN-descent from the cheap ones, shape (n, k).

    Source: Dong et al. (2011), who sample the pairs; here those with the most common
    neighbours are first.
    """
    n, rng = sim.n, np.random.default_rng(rng)
    _ranked(sim, k, min(limit, n * k), cheap, rng)
    while sim.calls < limit:
        best = _best(sim, k)
        graph = np.zeros((n, n), bool)
        np.put_along_axis(graph, np.maximum(best, 0), best >= 0, axis=1)
        graph |= graph.T
        common = np.triu(graph.astype(np.float32) @ graph, 1)
        i, j = np.nonzero(common)
        order = np.argsort(-common[i, j] + rng.random(i.size) / 2)
        i, j = i[order], j[order]
        new = np.isnan(sim.peek(i, j))
        some = min(limit - sim.calls, n * k // 4)  # then the graph is a better one
        i, j = i[new][:some], j[new][:some]
        if i.size == 0:
            break
        sim.pairs(i, j)
    return _ranked(sim, k, limit - sim.calls, cheap, rng)  # it may have converged


def tikhonov_alone(sim, k, limit, cheap=None, rng=None) -> np.ndarray:
    """Return neighbours by the first of one answer of `tikhonov`, looked up."""
    number = largest("tikhonov", sim.n, SHARE * limit)
    answer = tikhonov(sim, number, rng=rng).toarray()
    return _ranked(sim, k, limit - sim.calls, answer, rng)


def anchored_alone(sim, k, limit, cheap, rng=None) -> np.ndarray:
    """Return neighbours by the first of one answer of `anchored`, looked up."""
    from simlib.similarity import Similarity

    number = largest("tikhonov", sim.n, SHARE * limit)
    answer = anchored(sim, number, Similarity.from_matrix(cheap), rng=rng).toarray()
    return _ranked(sim, k, limit - sim.calls, answer, rng)


CONTENDERS: dict[str, Callable[..., np.ndarray]] = {
    "random": random_pairs,
    "re-ranking": rerank,
    "ANNCUR": anncur,
    "ADACUR": adacur,
    "NN-descent": nn_descent,
    "tikhonov": tikhonov_alone,
    "anchored": anchored_alone,
}


def _anchors(n: int, limit: float) -> int:
    """Return how many whole columns to pay for; raise if not even one is affordable."""
    if limit < n:
        raise ValueError(f"limit={limit} does not pay for one column of {n} items.")
    return max(1, int(SHARE * limit / n))


def _row(sim: SimilarityMatrix, q: int, items: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Return the similarities of one item to those at some places among others."""
    return sim.pairs(np.full(S.size, q), items[S])


def _ranked(sim, k, limit, scores, rng) -> np.ndarray:
    """Pay for the pairs that one of the items ranks first; return the nearest."""
    n = sim.n
    scores = np.array(scores, dtype=float)
    scores[np.arange(n), np.arange(n)] = -np.inf
    ranks = np.empty((n, n), np.int32)
    order = np.argsort(-scores, axis=1, kind="stable")
    np.put_along_axis(ranks, order, np.arange(n, dtype=np.int32)[None, :], axis=1)
    i, j = np.triu_indices(n, 1)
    ranks = np.minimum(ranks, ranks.T)[i, j]
    i, j = (side[np.argsort(ranks, kind="stable")] for side in (i, j))
    new = np.isnan(sim.peek(i, j))
    limit = max(0, int(limit))
    sim.pairs(i[new][:limit], j[new][:limit])
    return _best(sim, k)


def _best(sim: SimilarityMatrix, k: int) -> np.ndarray:
    """Return the nearest among what is known, shape (n, k)."""
    n = sim.n
    known = np.full((n, n), -np.inf)
    for i, j, values in sim.known():
        known[i, j] = known[j, i] = values
    known[np.arange(n), np.arange(n)] = -np.inf
    order = np.argsort(-known, axis=1, kind="stable")[:, :k]
    found = np.isfinite(np.take_along_axis(known, order, axis=1))
    return np.where(found, order, -1)
