r"""Searches for the best documents of queries, at equal calls a query.

.. math::
    \text{BM25}(q, d) = \sum_{w \in q} \log \Big( 1 + \frac{n - n_w + 1/2}{n_w + 1/2}
    \Big) \frac{f_{wd} (k_1 + 1)}{f_{wd} + k_1 (1 - b + b \, l_d / \bar l)}

.. math::
    \text{ANNCUR and ADACUR:} \quad \hat k_q = k_{q,S} \, (K_{R,S})^+ \, K_{R,:} ,
    \qquad \text{AXN:} \quad \hat k_q = V \big( u_q + V_S^+ (k_{q,S} - V_S u_q) \big)

R are anchor queries, whose rows are paid for once; S are documents that a query has
paid for: with ANNCUR the same at random for all queries, with ADACUR and AXN those that
the last prediction ranked first, in rounds. A word w is in :math:`n_w` of n documents
and :math:`f_{wd}` times in d, which has :math:`l_d` words.

Each search pays, on `sim`, for a number of documents of each query; what is known then
is its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from simlib.landmarks import uniform
from simlib.similarity.views import SimilarityMatrix
from study.contenders import N_ROUNDS, SHARE, anncur_scores


def bm25(
    queries: Sequence[str], documents: Sequence[str], k1: float = 1.2, b: float = 0.75
) -> np.ndarray:
    """Return BM25 of every query with every document, shape (m, n).

    Words are runs of letters and digits, two at least, in lower case. Source: Robertson
    and Zaragoza (2009).

    Examples
    --------
    >>> from study.retrieval import bm25
    >>> bm25(["red apple"], ["an apple", "a red apple", "a pear"]).round(2).tolist()
    [[0.43, 1.34, 0.0]]
    """
    words = CountVectorizer()
    counts = words.fit_transform(documents).tocsc().astype(float)
    length = np.asarray(counts.sum(axis=1)).ravel()
    n, n_w = len(length), np.diff(counts.indptr)
    norm = k1 * (1 - b + b * length / length.mean())
    counts.data *= (k1 + 1) / (counts.data + norm[counts.indices])
    rarity = np.log1p((n - n_w + 0.5) / (n_w + 0.5))
    return (words.transform(queries).multiply(rarity) @ counts.T).toarray()


def evaluated(sim: SimilarityMatrix, queries: np.ndarray) -> np.ndarray:
    """Return the scores of queries that are known, minus infinity elsewhere: (q, n)."""
    i, j = np.meshgrid(queries, np.arange(sim.shape[1]), indexing="ij")
    return np.nan_to_num(sim.peek(i.ravel(), j.ravel()), nan=-np.inf).reshape(i.shape)


def rerank(
    sim: SimilarityMatrix, queries: np.ndarray, calls: int, scores: np.ndarray
) -> None:
    """Pay for the documents of the largest `scores`, until each query has paid `calls`.

    The scores, of shape (q, n), are those of the queries.
    """
    paid = np.isfinite(evaluated(sim, queries))
    order = np.argsort(-np.where(paid, np.inf, scores), axis=1, kind="stable")
    first = order[:, :calls]
    sim.pairs(np.repeat(queries, first.shape[1]), first.ravel())


def anncur(
    sim: SimilarityMatrix,
    queries: np.ndarray,
    calls: int,
    anchors: np.ndarray,
    rng: int | np.random.Generator | None = None,
) -> None:
    """Pay for random documents, then for those that ANNCUR ranks first.

    Source: Yadav et al. (2022). Half of the calls are for the random ones.
    """
    rows, S = sim.rows(anchors), uniform(sim.shape[1], int(SHARE * calls), rng=rng)
    rerank(sim, queries, calls, anncur_scores(rows, S, sim.block(queries, S)))


def adacur(
    sim: SimilarityMatrix,
    queries: np.ndarray,
    calls: int,
    anchors: np.ndarray,
    start: np.ndarray,
) -> None:
    """Pay for what ADACUR ranks first, in rounds, the first by scores at hand: (q, n).

    Source: Yadav et al. (2023), the variant that begins with a bi-encoder's cosines.
    """
    rows = sim.rows(anchors)
    for q, first in zip(queries, start, strict=True):
        _in_rounds(sim, q, calls, first, lambda S, known: anncur_scores(rows, S, known))


def axn(
    sim: SimilarityMatrix,
    queries: np.ndarray,
    calls: int,
    anchors: np.ndarray,
    vectors: tuple[np.ndarray, np.ndarray],
) -> None:
    """Pay for what AXN ranks first, in rounds, the first by the cosines.

    Source: Yadav et al. (2024). The vectors are a bi-encoder's, (m, d) of queries and
    (n, d) of documents. A line brings their products to the scale of the scores. Those
    of documents move as little as they must to factorise the rows of the anchors, to
    which descent by gradients converges; there training stops earlier, on fewer scores.
    """
    rows = sim.rows(anchors)
    U, V = (np.asarray(side, dtype=float) for side in vectors)
    slope, level = np.polyfit((U[anchors] @ V.T).ravel(), rows.ravel(), 1)
    U = np.hstack([slope * U, np.full((len(U), 1), level)])
    V = np.hstack([V, np.ones((len(V), 1))])
    start = U[queries] @ V.T
    V += (np.linalg.pinv(U[anchors]) @ (rows - U[anchors] @ V.T)).T
    for q, first in zip(queries, start, strict=True):

        def predict(S, known, u=U[q]):
            return V @ (u + np.linalg.pinv(V[S]) @ (known - V[S] @ u))

        _in_rounds(sim, q, calls, first, predict)


def _in_rounds(
    sim: SimilarityMatrix,
    q: int,
    calls: int,
    predicted: np.ndarray,
    predict: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> None:
    """Pay for the documents that are predicted to be the best, in equal rounds."""
    S, known = np.zeros(0, np.int64), np.zeros(0)
    for part in np.array_split(np.arange(calls), N_ROUNDS):
        predicted = np.array(predicted)
        predicted[S] = -np.inf
        new = np.argsort(-predicted, kind="stable")[: part.size]
        known = np.append(known, sim.pairs(np.full(new.size, q), new))
        S = np.append(S, new)
        predicted = predict(S, known)
