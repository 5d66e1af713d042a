r"""The nearest known items of new ones, in rounds.

.. math::
    \hat K_{qj} = B_{qj} + a_q^\top v_j , \qquad
    a_q = \operatorname*{argmin}_a \sum_{j \in P_q} (K_{qj} - B_{qj} - a^\top v_j)^2
    + \lambda \|a\|^2

B is the calibrated companion, v_j are features of known items, P_q those to which the
query was compared: first the same for all, then the most promising ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.utils import check_array
from sklearn.utils.extmath import safe_sparse_dot

from simlib._checks import from_device, most_calls, shaped, whole_number
from simlib._scale import exponent
from simlib._typing import MatrixLike
from simlib.approximation.companion import InnerProducts
from simlib.landmarks import uniform
from simlib.neighbors.cheap import Calibrated, as_companion
from simlib.neighbors.predict import Predictor, leading
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
    indices, values : arrays of shape (m, k)
        Numbers of known items, from the nearest on, and their similarities or
        distances.
    calls, fit_calls : int
        Pairs that were asked for, known before or not: of new items, of known ones.

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
    """Find the nearest known items of new ones, a `SearchResult`, by few calls each.

    `sklearn.neighbors.NearestNeighbors` compares a new item with all, or uses a metric.

    Parameters
    ----------
    sim, cheap, distance, rng
        As in `nearest`, of the n known items.
    new_items : sequence, array, sparse matrix or data frame
        m items of the same kind.
    k : int
        How many neighbours, 1 to n.
    limit : int
        Most calls for each new item, at least k, or 2 k of a symmetrized similarity.
    fit_limit : int, optional
        Most calls among the known items, for whole columns of landmarks, known before
        or not. None means those of 60 columns.
    cheap_new : array of shape (m, n) or (m, d), optional
        The cheap similarities of the new items to the known ones; where `cheap` is a
        factor its rows for them. Not needed where `cheap` is a function, or a
        Similarity of items of the same kind, which is then asked.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        An asymmetric similarity, k > n, limit < k, a companion of other items, or
        `cheap_new` that does not fit it; as for any request to `sim` or `cheap`.

    Notes
    -----
    Flops: O(n r) for a new item and round, r at most 30. Memory: some 40 m n bytes.
    Very many new items go in parts, with the same `rng`: landmarks are then known.
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
    S = _affordable(sim, uniform(n, n, rng=rng)[: min(N_LANDMARKS, n)], fit_limit)
    fit_calls, calls = sim.cost((None, S)), m * limit * each
    needed = whole.cost((None, S)) + calls
    if whole.remaining < needed:
        raise BudgetExceeded(
            f"This takes up to {needed} evaluations, and only {whole.remaining} are "
            "left. Nothing was evaluated."
        )
    guess = None
    if cheap is not None:
        companion = as_companion(cheap, sim)
        values = _cheap_rows(companion, cheap_new, new_items, m)
        guess = companion, values, companion.blank().columns(S).astype(float)
    number = min(MOST_FIRST, max(1, int(FIRST * limit)))
    first = S[:number] if S.size else uniform(n, number, rng=rng)
    with sim.progress_bar(fit_calls + calls):
        sim.between(new_items, S[:0])  # raises, at no call, for what cannot be compared
        queries = _Queries(sim, new_items, S, first, distance)
        warn_of_direction(sim, queries.known(), distance, 3)
        queries.begin(guess)
        for t in range(N_ROUNDS):
            number = ceil((limit - queries.met.shape[1]) / (N_ROUNDS - t))
            if number > 0:
                predicted = queries.predicted()
                best = np.argpartition(-predicted, number - 1, axis=1)[:, :number]
                queries.ask(best)
    order = np.argsort(-queries.nearness, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(queries.nearness, order, axis=1)
    values = (-values if distance else values).astype(sim.dtype)
    met = np.take_along_axis(queries.met, order, axis=1)
    return SearchResult(met, values, calls, fit_calls)


class _Queries:
    """New items, what they were compared to, and what is said of the others."""

    def __init__(
        self,
        sim: SimilarityMatrix,
        new_items: Any,
        S: np.ndarray,
        first: np.ndarray,
        distance: bool,
    ):
        self._sim, self._fetch, self._S = sim, accessor(new_items), S
        self._sign, m = -1 if distance else 1, count(new_items)
        self._columns = self._sign * np.array(sim.columns(S), dtype=float)
        self._others = np.arange(sim.n)[:, None] != S  # no item with itself
        self.met = np.tile(first, (m, 1))
        self.nearness = self._sign * sim.between(new_items, first).astype(float)

    def ask(self, columns: np.ndarray) -> None:
        """Compare each new item with its own ones."""
        rows = [
            self._sim.between(self._fetch(np.array([query])), some)
            for query, some in enumerate(columns)
        ]
        self.met = np.hstack([self.met, columns])
        new = self._sign * np.vstack(rows).astype(float)
        self.nearness = np.hstack([self.nearness, new])

    def known(self) -> np.ndarray:
        """Return the nearness of all that is paid for."""
        return np.append(self._columns[self._others], self.nearness)

    def begin(
        self, guess: tuple[SimilarityMatrix, np.ndarray, np.ndarray] | None
    ) -> None:
        """Make what predicts, from a companion and what it says of new items and S."""
        n, m, companion = self._sim.n, len(self.met), None
        self._exponent, self._seen = exponent(self._columns, self.nearness), 0
        self._codes = np.zeros((m, n), np.uint16)
        self._codes_S = np.zeros(self._columns.shape, np.uint16)
        if guess is not None:
            cheap, values, among = guess
            met = np.take_along_axis(values, self.met, axis=1)
            both = np.append(among[self._others], met)
            companion = Calibrated(cheap, both, self.known())
            self._codes = companion.codes(companion.sign * values)
            self._codes_S = companion.codes(companion.sign * among)
        self._predictor = Predictor(companion)
        self._residuals()
        columns = np.ldexp(self._columns, -self._exponent)
        left = columns - self._predictor.explained(self._codes_S)
        left = np.where(self._others, left, 0)
        directions = None
        if companion is not None and self._S.size == 0:
            directions = leading(companion.vectors()[0], RANK)
        self._predictor.begin(left, leading(left, RANK), directions)

    def _residuals(self) -> np.ndarray:
        """Calibrate, and return what is left of what the new items were compared to."""
        codes = np.take_along_axis(self._codes, self.met, axis=1)
        known = np.ldexp(self.known(), -self._exponent)
        self._predictor.calibrate(np.append(self._codes_S[self._others], codes), known)
        nearness = np.ldexp(self.nearness, -self._exponent)
        return nearness - self._predictor.explained(codes)

    def predicted(self) -> np.ndarray:
        """Return the nearness of each to all known items; -inf to those met."""
        predictor, residuals, n = self._predictor, self._residuals(), self._sim.n
        m, c = self.met.shape
        lines = np.arange(0, m * c + 1, c)
        entries = (residuals.ravel(), self.met.ravel(), lines)
        new = np.tile(np.arange(c) >= self._seen, m)
        A = predictor.learn(csr_array(entries, shape=(m, n)), new)
        self._seen = c
        predicted = predictor.explained(self._codes) + A @ predictor.V.T
        np.put_along_axis(predicted, self.met, -np.inf, axis=1)
        return predicted


def _affordable(
    sim: SimilarityMatrix, S: np.ndarray, fit_limit: float | None
) -> np.ndarray:
    """Return as many of the landmarks as the limit pays for."""
    if fit_limit is None:
        return S
    most = most_calls(fit_limit, "fit_limit")
    sizes = range(1, S.size + 1)
    return S[: bisect_right(sizes, most, key=lambda s: sim.cost((None, S[:s])))]


def _cheap_rows(
    cheap: SimilarityMatrix, cheap_new: Any, new_items: Any, m: int
) -> np.ndarray:
    """Return the cheap similarities of m new items to the known ones."""
    values = cheap_new = from_device(cheap_new)
    if isinstance(base := getattr(cheap, "base", None), InnerProducts):
        if cheap_new is None:
            raise ValueError(
                "`cheap` is a factor: pass its rows for the new items, cheap_new."
            )
        rows = check_array(
            cheap_new, accept_sparse="csr", dtype=float, input_name="cheap_new"
        )
        shaped(rows, (m, base.Z.shape[1]), "`cheap_new`, rows of a factor,")
        values = safe_sparse_dot(rows, base.Z.T, dense_output=True)
    elif cheap_new is None:
        values = cheap.between(new_items, np.arange(cheap.n))
    values = check_array(values, input_name="cheap_new", dtype=float)
    return shaped(values, (m, cheap.n), "`cheap_new`, of new items and known ones,")
