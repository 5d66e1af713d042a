r"""The nearest known items of new ones, in rounds.

.. math::
    \hat K_{qj} = B_{qj} + a_q^\top v_j , \qquad
    a_q = \operatorname*{argmin}_a \sum_{j \in P_q} (K_{qj} - B_{qj} - a^\top v_j)^2
    + \lambda \|a\|^2

B is the calibrated companion, v_j are the singular vectors of the residual columns of
landmarks among the known items, P_q the items to which the query was compared: first
some that are the same for all, then the most promising ones.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array
from sklearn.utils import check_array
from sklearn.utils.extmath import safe_sparse_dot

from simlib._checks import whole_number
from simlib._typing import MatrixLike
from simlib.approximation.companion import InnerProducts
from simlib.landmarks import uniform
from simlib.neighbors.cheap import Companion, as_companion, features, rising
from simlib.neighbors.residual import RowFits, exponent, leading
from simlib.neighbors.rounds import checked, price, warn_of_direction
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.items import accessor, count, indexable
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix

__all__ = ["SearchResult", "search"]

N_LANDMARKS = 60  # columns among the known items, unless told
FIRST = 0.25  # of the calls of a query: to items that are the same for all
MOST_FIRST = 10
RANK = 30
N_ROUNDS = 6


class SearchResult(NamedTuple):
    """The nearest known items of new ones, and what they cost.

    Attributes
    ----------
    indices : array of int, shape (m, k)
        Numbers of known items, from the nearest on.
    values : array of shape (m, k)
        Their similarities, or distances.
    calls : int
        Pairs of new and known items that were asked for, known before or not.
    fit_calls : int
        Pairs of known items, likewise.

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
    r"""Find the nearest known items of new ones, by few calls for each.

    Parameters
    ----------
    sim : Similarity
        The n known items, under a symmetric similarity.
    new_items : sequence, array, sparse matrix or data frame
        m items of the same kind.
    k : int
        How many neighbours, 1 to n.
    limit : int
        Most calls for each new item, at least k, or 2 k of a symmetrized similarity.
    fit_limit : int, optional
        Most calls among the known items, for whole columns of landmarks, known before
        or not. None means those of 60 columns.
    cheap : Similarity, function, or array or sparse array of shape (n, d), optional
        A companion, as in `nearest`: the known items under a cheap similarity or
        distance, a function of two items, or a factor.
    cheap_new : array of shape (m, n) or (m, d), optional
        The cheap similarities of the new items to the known ones; where `cheap` is a
        factor its rows for them. Not needed where `cheap` is a function, or a
        Similarity of items of the same kind, which is then asked.
    distance : bool, default=False
        Whether small means near.
    rng : int, Generator or None
        Source of randomness.

    Returns
    -------
    SearchResult
        ``indices``, ``values``, ``calls``, ``fit_calls``.

    Raises
    ------
    ValueError
        An asymmetric similarity, k > n, limit < k, a companion of other items, or
        `cheap_new` that does not fit it.
    BudgetExceeded, SimilarityError
        As for any request to `sim` or `cheap`.

    See Also
    --------
    nearest : of the known items themselves.
    sklearn.neighbors.NearestNeighbors : compares a new item with all, or uses a metric.

    Notes
    -----
    What new items were compared to is kept in a store, if there is one. A function is
    called for one new item at a time. Flops: O(n r) for a new item and round, r at most
    30. Memory: some 40 m n bytes; hand over very many new items in parts, with the same
    `rng`, whose landmarks are then known. Source: ours; the companion as in
    `simlib.anchored`, the linear fit for a query as in Yadav et al. (2024), where items
    are factors learnt beforehand.

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
    n, k, limit = sim.n, whole_number(k, "k"), whole_number(limit, "limit")
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and {n}, for {n} items; got {k}.")
    each = price(sim)
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
    fetch, m = accessor(new_items), count(new_items)
    rng, sign = np.random.default_rng(rng), -1 if distance else 1
    if m == 0:
        nothing = np.zeros((0, k), np.int64)
        return SearchResult(nothing, nothing.astype(sim.dtype), 0, 0)
    S = _affordable(sim, uniform(n, n, rng=rng)[: min(N_LANDMARKS, n)], fit_limit)
    fit_calls, calls = sim.cost((None, S)), m * limit * each
    needed = whole.cost((None, S)) + calls
    if whole.remaining < needed:
        raise BudgetExceeded(
            f"This takes up to {needed} evaluations, and only {whole.remaining} are "
            "left. Nothing was evaluated."
        )
    guess = _Guess(n, m, S)
    if cheap is not None:
        guess.help(as_companion(cheap, sim), cheap_new, new_items)
    with sim.progress_bar(fit_calls + calls):
        sim.between(new_items, S[:0])  # raises, at no call, for what cannot be compared
        columns = sign * np.array(sim.columns(S), dtype=float)
        number = min(MOST_FIRST, max(1, int(FIRST * limit)))
        first = S[:number] if S.size else uniform(n, number, rng=rng)
        met = np.tile(first, (m, 1))
        nearness = sign * sim.between(new_items, first).astype(float)
        warn_of_direction(sim, np.append(columns[guess.pairs], nearness), distance, 3)
        unit = exponent(columns, nearness)
        guess.columns = np.ldexp(columns, -unit)
        fits = None
        for t in range(N_ROUNDS):
            number = ceil((limit - met.shape[1]) / (N_ROUNDS - t))
            if number < 1:
                break
            explained, residuals = guess.explained(met, np.ldexp(nearness, -unit))
            if fits is None:
                fits, old = RowFits(*guess.features(), n_rows=m), 0
            fits.see(
                _sparse(met[:, old:], residuals[:, old:], n), _sparse(met, residuals, n)
            )
            old = met.shape[1]
            predicted = explained + fits.fit(_sparse(met, residuals, n)) @ fits.V.T
            np.put_along_axis(predicted, met, -np.inf, axis=1)
            best = np.argpartition(-predicted, number - 1, axis=1)[:, :number]
            rows = [sim.between(fetch(np.array([q])), best[q]) for q in range(m)]
            met = np.hstack([met, best])
            nearness = np.hstack([nearness, sign * np.vstack(rows).astype(float)])
    order = np.argsort(-nearness, axis=1, kind="stable")[:, :k]
    return SearchResult(
        np.take_along_axis(met, order, axis=1),
        (sign * np.take_along_axis(nearness, order, axis=1)).astype(sim.dtype),
        calls,
        fit_calls,
    )


def _affordable(
    sim: SimilarityMatrix, S: np.ndarray, fit_limit: float | None
) -> np.ndarray:
    """Return as many of the landmarks as the limit pays for."""
    if fit_limit is None:
        return S
    if not fit_limit >= 0:
        raise ValueError(f"fit_limit is a number of calls, from 0 on; got {fit_limit}.")
    low, high = 0, S.size
    while low < high:
        middle = (low + high + 1) // 2
        fits = sim.cost((None, S[:middle])) <= fit_limit
        low, high = (middle, high) if fits else (low, middle - 1)
    return S[:low]


def _sparse(met: np.ndarray, data: np.ndarray, n: int) -> csr_array:
    """Return the matrix that has these data in some columns of each row."""
    rows = np.repeat(np.arange(len(met)), met.shape[1])
    places = (rows, met.ravel())
    return csr_array(coo_array((data.ravel(), places), shape=(len(met), n)))


class _Guess:
    """What is said of new items before their own entries: a constant, or a companion.

    Parameters
    ----------
    n, m : int
        Known and new items.
    S : array of int, shape (s,)
        Landmarks among the known items.
    """

    def __init__(self, n: int, m: int, S: np.ndarray):
        self.n, self.m, self.S = n, m, S
        self.columns = np.zeros((n, 0))  # of the landmarks, large where near
        self.pairs = np.arange(n)[:, None] != S
        self.companion: Companion | None = None

    def help(self, cheap: SimilarityMatrix, cheap_new: Any, new_items: Any) -> None:
        """Take a companion, at first as it comes."""
        n, every = self.n, np.arange(self.n)
        if isinstance(base := getattr(cheap, "base", None), InnerProducts):
            if cheap_new is None:
                raise ValueError(
                    "`cheap` is a factor: pass its rows for the new items, cheap_new."
                )
            rows = check_array(
                cheap_new, accept_sparse="csr", dtype=float, input_name="cheap_new"
            )
            if rows.shape != (self.m, base.Z.shape[1]):
                raise ValueError(
                    f"`cheap_new` must be the rows of the factor `cheap` for {self.m} "
                    f"new items, of {base.Z.shape[1]} entries; got shape {rows.shape}."
                )
            values = safe_sparse_dot(rows, base.Z.T, dense_output=True)
        elif cheap_new is None:
            values = cheap.between(new_items, every)
        else:
            values = cheap_new
        values = check_array(values, input_name="cheap_new", dtype=float)
        if values.shape != (self.m, n):
            raise ValueError(
                f"`cheap_new` must tell of {self.m} new items and {n} known ones; "
                f"got shape {values.shape}."
            )
        self.cheap, self.companion = cheap, Companion(cheap, 1)
        self.values = values
        self.among = cheap.blank().columns(self.S).astype(float)

    def explained(
        self, met: np.ndarray, nearness: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a first guess of all, and what it leaves of what was met."""
        known = np.append(self.columns[self.pairs], nearness)
        companion = self.companion
        if companion is None:
            self.left = np.where(self.pairs, self.columns - known.mean(), 0)
            explained = np.full((self.m, self.n), known.mean())
            return explained, nearness - known.mean()
        cheap = np.take_along_axis(self.values, met, axis=1)
        if companion.fresh:
            both = np.append(self.among[self.pairs], cheap)
            some = np.random.default_rng(0).permutation(both.size)[: 2**16]
            companion.sign = 1 if rising(both[some], known[some]) else -1
            self.values, self.among = (
                companion.sign * part for part in (self.values, self.among)
            )
            companion.set_range(companion.sign * both)
            cheap = companion.sign * cheap
            self.codes = companion.codes(self.values)
        among = companion.codes(self.among)
        codes = np.append(among[self.pairs], companion.codes(cheap))
        companion.calibrate(codes, known)
        table = companion.table
        self.left = np.where(self.pairs, self.columns - table[among], 0)
        return table[self.codes], nearness - table[companion.codes(cheap)]

    def features(self) -> tuple[np.ndarray, float]:
        """Return those of the known items, and the variance of what is left."""
        scale = float(np.sqrt(np.mean(self.left**2))) if self.left.size else 1.0
        scale = scale or 1.0
        parts = [np.full((self.n, 1), scale)]
        if self.S.size:
            parts.append(leading(self.left, RANK))
        elif self.companion is not None:
            directions = leading(features(self.cheap, 1)[0], RANK)
            size = np.sqrt(np.square(directions).sum(axis=1).mean())
            if size > 0:
                parts.append(directions * (scale / size))
        return np.hstack(parts), scale**2
