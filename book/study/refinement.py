r"""Exact similarities where the clustering of items will look for them.

.. math::
    \tilde K_{ij} = \begin{cases} K_{ij} & \text{where evaluated,} \\
    f(G_{ij}) & \text{elsewhere} \end{cases}

Equation :eq:`eq:refining` of the book: G is a cheap similarity, f a monotone function
fitted to a random sample of pairs, and what is left of the budget goes, in rounds, to
the pairs that an average linkage of the present answer puts into one cluster first.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata
from sklearn.isotonic import IsotonicRegression

from simlib._checks import finite, one_of, whole_number
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

__all__ = ["refined"]

SAMPLE = 0.3  # of the calls go to random pairs
ROUNDS = 5  # that the rest is spent in
Choice = Literal["clusters", "highest", "nearest"]


def refined(
    sim: Source,
    cheap: Source,
    n_calls: int,
    *,
    choose: Choice = "clusters",
    threshold: float = 0.5,
    rng: int | np.random.Generator | None = None,
) -> np.ndarray:
    """Estimate a similarity matrix for a clustering, exact on the pairs that decide.

    Parameters
    ----------
    sim : Similarity
        The n x n matrix K, symmetric.
    cheap : Similarity
        A cheap similarity of the same items, symmetric; all its pairs are asked for.
    n_calls : int
        How many pairs of K to evaluate, 4 to n (n - 1) / 2; of ``sim.symmetrized()``
        each is two calls.
    choose : "clusters", "highest" or "nearest", default="clusters"
        Which pairs are evaluated after the random ones: those that are joined first in
        an average linkage, their estimate added; those of the highest estimate; those
        whose estimate is nearest to `threshold`.
    threshold : float, default=0.5
        Of the clustering; "nearest" alone looks at it.
    rng : int, Generator or None
        Source of randomness.

    Returns
    -------
    ndarray, shape (n, n)
        Symmetric, in the type of `sim`. Its diagonal is estimated.

    Raises
    ------
    ValueError
        An asymmetric similarity (use ``sim.symmetrized()``), a cheap one of other
        items, a number of calls out of range, no such choice.
    BudgetExceeded, SimilarityError
        As for any request to `sim` or `cheap`; the price is checked first.

    Notes
    -----
    Calls: `n_calls`, less what `sim` knows. Flops and memory: O(n^2). Source: ours, for
    `study.coreference.average_linkage`. `simlib.anchored` answers in factors.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity
    >>> from study.refinement import refined
    >>> x = np.random.default_rng(0).standard_normal((20, 2)).repeat(5, axis=0)
    >>> exact = np.exp(-np.abs(x[:, None] - x).sum(axis=2))
    >>> sim, cheap = (Similarity.from_matrix(K) for K in (exact, exact + 0.1))
    >>> K = refined(sim, cheap, 1000, rng=0)
    >>> sim.calls, bool(np.abs(K - exact).max() < 0.1)
    (1000, True)
    """
    one_of(choose, get_args(Choice), "choose")
    finite(threshold, "threshold")
    sim, cheap = check_similarity(sim), check_similarity(cheap)
    if cheap.n != sim.n:
        raise ValueError(f"The cheap similarity has {cheap.n} items, not {sim.n}.")
    if not (sim.symmetric and cheap.symmetric):
        raise ValueError(
            "Clusters need symmetric similarities; pass sim.symmetrized(), that is "
            "(K + K.T)/2."
        )
    i, j = np.triu_indices(sim.n, 1)
    n_calls = whole_number(n_calls, "n_calls", 4, i.size)
    price = 0 if sim.limit is None else _price(sim, i, j, n_calls)
    if price > sim.remaining:
        raise BudgetExceeded(
            f"This takes up to {price} evaluations, and of the limit of {sim.limit} "
            f"only {sim.remaining} are left. Nothing was evaluated for it: raise "
            "`limit` on this Similarity, or ask for fewer."
        )
    items = np.arange(sim.n)
    G = cheap.block(items, items).astype(float)
    # The regression takes what differs by less than 1e-15 for equal.
    G = np.ldexp(G, -np.frexp(np.abs(G[i, j]).max())[1])
    rng = np.random.default_rng(rng)
    evaluated = np.zeros(i.size, dtype=bool)
    sample = rng.choice(i.size, max(2, round(SAMPLE * n_calls)), replace=False)
    evaluated[sample] = True
    values = sim.pairs(i[sample], j[sample])
    seen = G[i[sample], j[sample]]
    ranks = rankdata(seen) - (sample.size + 1) / 2
    rising = bool(ranks @ rankdata(values) >= 0)
    f = IsotonicRegression(out_of_bounds="clip", increasing=rising).fit(seen, values)
    prior = f.predict(G[i, j]).astype(sim.dtype)
    answer = prior.copy()
    answer[sample] = values
    order = rng.permutation(i.size)  # of pairs that are equally good
    for k in range(ROUNDS):
        merit = _merit(answer, prior, choose, threshold)
        merit[evaluated] = -np.inf
        wanted = (n_calls - int(evaluated.sum())) // (ROUNDS - k)
        best = order[np.argsort(-merit[order], kind="stable")[:wanted]]
        answer[best] = sim.pairs(i[best], j[best])
        evaluated[best] = True
    K = squareform(answer)
    np.fill_diagonal(K, f.predict(np.diagonal(G)))
    return K


def _price(sim: SimilarityMatrix, i: np.ndarray, j: np.ndarray, n_pairs: int) -> int:
    """Return the most calls that so many pairs can take, in both orders if need be."""
    unknown = int(np.isnan(sim.peek(i, j)).sum())
    twice = sim.cost(pairs=(i, j)) - unknown
    return min(n_pairs, unknown) + min(n_pairs, twice)


def _merit(
    answer: np.ndarray, prior: np.ndarray, choose: str, threshold: float
) -> np.ndarray:
    """Say of every pair how much it is worth to be evaluated."""
    if choose == "highest":
        return prior.astype(float)
    if choose == "nearest":
        return -np.abs(prior.astype(float) - threshold)
    highest = answer.max()
    joined = highest - cophenet(linkage(highest - answer.astype(float), "average"))
    return joined + prior
