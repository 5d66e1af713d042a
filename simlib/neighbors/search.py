r"""The nearest known items of new items, found as the nearest columns of rows.

.. math::
    \hat K_{qj} = B_{qj} + a_q^\top v_j , \qquad
    a_q = \operatorname*{argmin}_a \sum_{j \in P_q} (K_{qj} - B_{qj} - a^\top v_j)^2
    + \lambda \|a\|^2

A query q is a new item. v_j are features of the known items, from whole columns among
them, the index. P_q are the known items to which the query was compared: first the same
items for all queries, then the most promising ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from simlib._checks import most_calls, readable, shaped, whole_number
from simlib._typing import MatrixLike
from simlib.approximation.companion import InnerProducts, as_companion
from simlib.landmarks import uniform
from simlib.neighbors.across import Index, RowSearch, TwoSided
from simlib.neighbors.cheap import Calibrated, asked, direction
from simlib.neighbors.rounds import checked, price, warn_of_direction
from simlib.similarity import Similarity
from simlib.similarity.budget import BudgetExceeded, left
from simlib.similarity.items import count, indexable, some_of
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

N_LANDMARKS = 60  # columns among the known items, by default
FIRST = 0.25  # share of the calls of a query for items that are the same for all,
MOST_FIRST = 10  # at most so many
N_ROUNDS = 6


class SearchResult(NamedTuple):
    """The nearest known items of new items, and the calls they cost.

    Attributes
    ----------
    indices, values : arrays of shape (m, k)
        Numbers of known items, from the nearest on, and their similarities or
        distances.
    calls, fit_calls : int
        Calls for pairs with new items, and for pairs of known items, whether the values
        were known before or not.

    Examples
    --------
    >>> from simlib import Similarity
    >>> from simlib.neighbors import search
    >>> known = Similarity([0.0, 1.0, 3.0, 7.0], lambda x, y: abs(x - y))
    >>> result = search(known, [2.9], 1, limit=4, distance=True, rng=0)
    >>> result.indices.tolist(), result.calls
    ([[2]], 4)
    """

    indices: np.ndarray
    values: np.ndarray
    calls: int
    fit_calls: int

    def __repr__(self) -> str:
        m, k = self.indices.shape
        return (
            f"SearchResult({k} nearest of {m} items, calls={self.calls}, "
            f"fit_calls={self.fit_calls})"
        )


def search(
    sim: Source,
    new_items: Any,
    k: int,
    *,
    limit: int,
    fit_limit: int | None = None,
    cheap: Source | Callable[[Any, Any], float] | ArrayLike | None = None,
    cheap_new: MatrixLike | None = None,
    distance: bool = False,
    rng: int | np.random.Generator | None = None,
) -> SearchResult:
    """Find the nearest known items of new items, a `SearchResult`, by few calls each.

    `sklearn.neighbors.NearestNeighbors` compares a new item with all known items, or
    uses a metric.

    Parameters
    ----------
    sim, cheap, distance, rng
        As in `nearest`, for the n known items.
    new_items : sequence, array, sparse matrix or data frame
        m items of the same kind.
    k : int
        Number of neighbours, 1 to n.
    limit : int
        Most calls for each new item, at least k, or 2 k for a symmetrized similarity.
        The calls of `fit_limit` come on top, once for all of them.
    fit_limit : int, optional
        Most calls among the known items, for whole columns of landmarks, whether their
        values are known before or not. None means those of 60 columns, or of as many as
        there are new items if these are fewer: that is at most what it takes to compare
        them with all known ones. None are paid for if `limit` is n.
    cheap_new : array of shape (m, n) or (m, d), optional
        The cheap similarities of the new items to the known items; if `cheap` are
        vectors, the vectors of the new items. Not needed if `cheap` is a function or a
        Similarity of items of the same kind, which is then asked.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        An asymmetric similarity, k > n, limit < k, a companion of other items, or a
        `cheap_new` that does not fit `cheap`; any error of a request to `sim` or
        `cheap`.

    Notes
    -----
    Flops: O(n r) for each new item and round, with r at most 51; without columns new
    items learn from each other, and r is at most 102. With columns they share the
    calibration of `cheap` and a ridge. So the answer for one depends on the others, and
    on their order, unless `limit` pays for all n comparisons. Memory: some 40 m n
    bytes. Pass very many new items in parts of hundreds, with the same `rng`: the
    columns are then known. Of parts below 60 give `fit_limit`.
    Source: ours; the linear fit for a query as in Yadav et al. (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity
    >>> from simlib.neighbors import search
    >>> x = np.random.default_rng(0).standard_normal((300, 3))
    >>> sim = Similarity(x, lambda a, b: np.exp(-np.sum((a - b) ** 2)))
    >>> result = search(sim, x[:5] + 0.01, 1, limit=40, fit_limit=6000, rng=0)
    >>> result.indices[:, 0].tolist(), result.calls
    ([0, 1, 2, 3, 4], 200)
    """
    whole = checked(sim, 1)
    sim = whole.run()
    n, k = sim.n, whole_number(k, "k", 1, sim.n)
    each, limit = price(sim), whole_number(limit, "limit")
    if limit < k * each:
        raise ValueError(
            f"limit={limit} does not pay for {k} neighbours: give {k * each}."
        )
    if cheap is None and cheap_new is not None:
        raise ValueError(
            "`cheap_new` tells of the new items what `cheap` tells of the known ones: "
            "pass both."
        )
    limit = min(limit // each, n)  # items that a new one is compared to
    new_items = indexable(new_items)
    m, rng = count(new_items), np.random.default_rng(rng)
    if m == 0:
        nothing = np.zeros((0, k), np.int64)
        return SearchResult(nothing, nothing.astype(sim.dtype), 0, 0)
    most = most_calls(inf if fit_limit is None else fit_limit, "fit_limit")
    S = uniform(n, n, rng=rng)[:N_LANDMARKS]
    if limit == n or fit_limit is None:
        S = S[: 0 if limit == n else m]
    else:
        sizes = range(1, S.size + 1)
        S = S[: bisect_right(sizes, most, key=lambda s: sim.cost((None, S[:s])))]
    fit_calls, calls = sim.cost((None, S)), m * limit * each
    needed = whole.cost((None, S)) + calls
    if whole.remaining < needed:
        raise BudgetExceeded(
            f"This takes up to {needed} evaluations, and {left(whole)}: raise `limit` "
            "on this Similarity, or give this search a lower one."
        )
    guess = None
    if cheap is not None:
        companion = as_companion(cheap, sim, distance=distance)
        rows = _cheap_rows(companion, cheap_new, new_items, m)
        guess = rows, companion.blank().columns(S).astype(float)
    with sim.progress_bar(fit_calls + calls):
        sim.between(new_items, S[:0])  # raises, at no call, for what cannot be compared
        queries = Queries(sim, new_items, k, limit, distance, rng, S, guess)
        warn_of_direction(sim, queries.known(), distance)
        queries.run()
    values = (queries.sign * queries.values).astype(sim.dtype)
    return SearchResult(queries.indices, values, calls, fit_calls)


class Queries(RowSearch):
    """A search for the nearest known items of new items, with columns S as index."""

    rounds = N_ROUNDS

    def __init__(
        self,
        sim: SimilarityMatrix,
        new_items: Any,
        k: int,
        limit: int,
        distance: bool,
        rng: np.random.Generator,
        S: np.ndarray,
        guess: tuple[SimilarityMatrix, np.ndarray] | None,
    ):
        super().__init__((count(new_items), sim.n), k, distance, rng)
        self.limit, self._guess = self.m * limit, guess
        self._sim, self._items = sim, new_items
        self._columns = self.sign * np.array(sim.columns(S), dtype=float)
        self._others = np.arange(self.n)[:, None] != S  # no item with itself
        number = min(MOST_FIRST, max(1, int(FIRST * limit)))
        first = S[:number] if S.size else uniform(self.n, number, rng=rng)
        self._first = np.sort(first)
        keys = np.arange(self.m)[:, None] * self.n + self._first
        self._add(keys.ravel(), sim.between(new_items, self._first).ravel())
        self.calls = keys.size

    def evaluate(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, int]:
        """Compare each new item i[k] with the known item j[k]."""
        queries, starts = np.unique(i, return_index=True)
        values = [np.zeros(0)]
        for query, known in zip(queries, np.split(j, starts)[1:], strict=True):
            new = some_of(self._items, query[None])
            values.append(self._sim.between(new, known).ravel())
        return np.concatenate(values), i.size

    def known(self) -> np.ndarray:
        """Return the nearness of all paid pairs, those of the columns included."""
        return np.append(self._columns[self._others], self.nearness)

    def begin(self) -> TwoSided:
        """Calibrate the companion to columns and first calls."""
        companion, codes = None, np.zeros(self._columns.shape, np.uint16)
        if self._guess is not None:
            cheap, among = self._guess
            met = asked(cheap.pairs, *np.divmod(self.keys, self.n))
            both = np.append(among[self._others], met)
            companion = Calibrated(cheap, both, self.known(), self._direction(among))
            companion.spread_beyond(both)
            codes = companion.codes(companion.sign * among)
        index = Index(codes, self._columns, self._others) if codes.size else None
        rows = np.zeros(0, np.int64)
        return TwoSided(self, companion, rows, self._first, index)

    def _direction(self, among: np.ndarray) -> int:
        """Return the sign of the companion by its ends in the columns, 0 if unclear."""
        high = np.where(self._others, among, -inf).argmax(axis=0)
        low = np.where(self._others, among, inf).argmin(axis=0)
        columns = np.arange(high.size)
        return direction(self._columns[high, columns], self._columns[low, columns])


def _cheap_rows(
    cheap: SimilarityMatrix, cheap_new: Any, new_items: Any, m: int
) -> SimilarityMatrix:
    """Return the cheap similarities of m new items to the known ones."""
    what = "`cheap_new`, of new items and known ones,"
    if isinstance(base := getattr(cheap, "base", None), InnerProducts):
        if cheap_new is None:
            raise ValueError(
                "`cheap` has vectors: pass those of the new items, cheap_new."
            )
        new = readable(cheap_new, "cheap_new")
        rows = check_array(
            new, accept_sparse="csr", dtype=float, input_name="cheap_new"
        )
        shaped(rows, (m, base.Z.shape[1]), "`cheap_new`, of vectors,")
        return check_similarity(type(base)(rows, base.Z))
    if cheap_new is None:
        cheap_new = asked(cheap.between, new_items, np.arange(cheap.n))
    values = readable(cheap_new, "cheap_new")
    values = check_array(values, input_name="cheap_new", dtype=float)
    return Similarity.from_matrix(shaped(values, (m, cheap.n), what), two=True)
