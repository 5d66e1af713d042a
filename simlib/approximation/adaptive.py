r"""Growth of the landmark set until the error is small enough.

.. math::
    \hat T(z) = \sum_{p \in R_t} z_p + \sum_h \frac{N_h}{n_h}
    \sum_{p \in s_h \setminus R_t} z_p , \qquad R_1 \subset R_2 \subset \dots

Equation :eq:`eq:adaptive` of the book. The error is estimated as in `estimate_error`:
R_t are the pairs that the method has read after t steps, and s_h the pairs of one
validation sample in stratum h.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from simlib._checks import inside
from simlib._typing import Seed
from simlib.approximation.error_estimate import (
    FEWEST,
    ErrorEstimate,
    ValidationSample,
    default_size,
)
from simlib.approximation.methods import named
from simlib.approximation.plan import Method, Plan, Sides, drawn, last
from simlib.lowrank import LowRank
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.requests import Block, Pairs
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, View, check_similarity

FIRST = 10  # landmarks at the start
DECAY = 0.7  # error ~ s^-DECAY, until two estimated errors give a better exponent


class AdaptiveResult(NamedTuple):
    """An approximation, its error with an interval, and why the search ended.

    Attributes
    ----------
    approximation : LowRank
        The last answer, which has the most landmarks.
    error : ErrorEstimate
        The error of that answer.
    reason : "target", "limit" or "items"
        The upper end of the interval is at most the target; the next step would pass
        the limit of the similarity; every item is a landmark, of two collections every
        item of the smaller one. All pairs are then known, and ``overlay=True`` of
        "tikhonov" keeps them.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, approximate_to
    >>> x = np.random.default_rng(0).standard_normal((50, 3))
    >>> answer, error, reason = approximate_to(Similarity.from_matrix(x @ x.T), 0.1)
    >>> reason
    'target'
    """

    approximation: LowRank
    error: ErrorEstimate
    reason: Literal["target", "limit", "items"]


def approximate_to(
    sim: Source,
    target_error: float,
    *,
    method: str = "tikhonov",
    confidence: float = 0.95,
    rng: Seed = None,
    **options: Any,
) -> AdaptiveResult:
    r"""Approximate a matrix to a given relative Frobenius error.

    Parameters
    ----------
    sim : Similarity
        The matrix, of one collection or of two. Its ``limit`` is heeded. Known entries
        cost no call, but do not change the choices, unless it is ``sim.informed()``.
    target_error : float
        The relative error to reach, above zero.
    method : str, default="tikhonov"
        A name in `METHODS`, or "anchored" with the option ``cheap``.
    confidence : float, default=0.95
        Confidence of the interval whose upper end has to reach the target.
    rng : int, Generator or None
    **options
        Options of the method. Where the answer need not be of low rank, ``nugget=True,
        overlay=True`` of "tikhonov" reach the error from fewer calls.

    Returns
    -------
    AdaptiveResult
        ``approximation``, ``error``, ``reason``.

    Raises
    ------
    ValueError
        No such method, a target or a confidence out of range, or an error of the
        method.
    TypeError
        The method has no such option, or needs one that is missing.
    BudgetExceeded
        The limit does not pay for one landmark and the smallest sample. What was
        evaluated is kept.

    Warns
    -----
    UserWarning
        The error is not told, as in `estimate_error`: the sample is zero.

    Notes
    -----
    No pair is evaluated twice. A larger set of landmarks contains the smaller one, but
    not for ``landmarks="adaptive"`` or "pivoted_qr", which choose anew. The validation
    sample costs ``max(2000, m + n)`` calls, fewer if the limit leaves fewer, and more
    where a narrower interval is cheaper than more landmarks. Source: ours.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, approximate_to, relative_error
    >>> x = np.random.default_rng(0).standard_normal((500, 3))
    >>> K = np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / 8)
    >>> result = approximate_to(Similarity.from_matrix(K), 0.01, rng=0)
    >>> relative_error(K, result.approximation) < 0.01
    True
    """
    sim = check_similarity(sim).run()
    if not isinstance(options.get("landmarks", ""), str):
        raise ValueError(
            "approximate_to draws the landmarks itself, more and more of them: pass "
            "the name of a way to draw them as `landmarks`, or none. For an answer "
            "from given ones call the method, and estimate_error."
        )
    inside(target_error, "target_error", 0)
    inside(confidence, "confidence", 0, 1)
    of = named(method, options)
    chosen = Method(partial(of.function, **options), partial(of.plan, **options))
    search = _Search(sim, chosen, np.random.default_rng(rng))
    looks = []  # (landmarks, estimated error)
    while True:
        answer, has_read = search.answer, search.reader.has_read
        error = search.sample.estimate(answer, confidence, has_read)
        looks.append((search.n_landmarks, error.value))
        if error.high <= target_error:
            return AdaptiveResult(answer, error, "target")
        if search.n_landmarks == min(sim.shape):
            return AdaptiveResult(answer, error, "items")
        wanted = _landmarks_needed(looks, error, target_error)
        n_pairs = _pairs_needed(search.sample.n_pairs, error, target_error)
        if not (search.enlarge_sample(n_pairs, wanted) or search.grow(wanted)):
            return AdaptiveResult(answer, error, "limit")


def _landmarks_needed(
    looks: list[tuple[int, float]], error: ErrorEstimate, target: float
) -> int:
    """Return how many landmarks would bring the end of the interval to the target."""
    s, value = looks[-1]
    decay, fewer = DECAY, [look for look in looks if look[0] < s]
    if fewer and value > 0:
        size, other = fewer[-1]
        decay = np.clip(np.log(other / value) / np.log(s / size), 0.25, 3)
    with np.errstate(over="ignore"):
        factor = np.float64(error.high / target) ** (1 / decay)
    return int(np.ceil(s * np.clip(factor, 1.1, 3)))


def _pairs_needed(n_pairs: int, error: ErrorEstimate, target: float) -> float:
    """Return the sample size for which the interval would end at the target."""
    if not 0 < error.value < target:
        return np.inf
    shrink = np.log(error.high / error.value) / np.log(target / error.value)
    return np.ceil(1.1 * n_pairs * shrink**2)


class _Search:
    """The answer so far, what the method has read for it, and the sample."""

    answer: LowRank
    sample: ValidationSample
    refusal: BudgetExceeded | None  # the last, by the matrix or a cheap similarity

    def __init__(self, sim: SimilarityMatrix, method: Method, rng: np.random.Generator):
        self.sim, self.reader = sim, _Reader(sim)
        self.method, self.seed = method, int(rng.integers(2**62))
        self.n_landmarks, self.refusal = 0, None
        last_one = [sim.shape[1] - 1]
        pair = sim.blank().cost(pairs=([0], last_one))  # for an unknown pair
        self.price = max(pair, 1.0 if sim.symmetric else 2.0)  # calls / counted pairs
        calls = sim.calls
        first = self.grow(FIRST, share=0.5)
        if not (first or (self.pays_for_all() and self.grow(FIRST))):
            raise self._too_little() from self.refusal
        paid = (sim.calls - calls) / self.cost(self.n_landmarks)
        self.price = max(self.price, paid)
        n_pairs = min(default_size(sim.shape), sim.remaining / self.price)
        if n_pairs < FEWEST and self.pays_for_all():
            n_pairs = FEWEST
        while n_pairs >= FEWEST:  # pairs may cost more than `price` says
            try:
                self.sample = ValidationSample(sim, self.answer, int(n_pairs), rng)
                return
            except BudgetExceeded as error:
                self.refusal = error
                n_pairs /= 2
        raise self._too_little() from self.refusal

    def pays_for_all(self) -> bool:
        """Tell whether the limit pays for all that is unknown."""
        return self._price_of_all() <= self.sim.remaining

    def _price_of_all(self) -> int:
        every = Plan(self.sim.extent, Sides(*map(np.arange, self.sim.shape)))
        return every.price(self.sim)

    def unknown(self, n_landmarks: int) -> int:
        """Return the calls for this many landmarks, if the method draws them."""
        choose = partial(drawn, rng=self.seed)
        plan = self.method.plan(self.sim.extent, n_landmarks, draw=choose)
        return plan.price(self.sim)

    def cost(self, n_landmarks: int) -> float:
        """Return the calls for this many landmarks, by the formula of the method."""
        if n_landmarks == 0:
            return 0.0
        return self.price * self.method.calls(self.sim.extent, n_landmarks)

    def further_cost(self, n_landmarks: int) -> float:
        """Return the calls for this many landmarks, less those of the answer so far."""
        return self.cost(n_landmarks) - self.cost(self.n_landmarks)

    def grow(self, wanted: int, share: float = 1) -> bool:
        """Use more landmarks: as many as wanted, or as the limit allows."""
        left = share * self.sim.remaining
        most = last(
            self.n_landmarks,
            min(wanted, *self.sim.shape),
            lambda s: self.further_cost(s) <= left or self.unknown(s) <= left,
        )
        while most > self.n_landmarks:
            try:
                self.answer = self.method.function(self.reader, most, rng=self.seed)
            except BudgetExceeded as error:  # a method may cost more than its formula
                self.refusal, most = error, (self.n_landmarks + most) // 2
            else:
                self.refusal, self.n_landmarks = None, most
                return True
        return False

    def enlarge_sample(self, n_pairs: float, wanted: int) -> bool:
        """Evaluate more pairs if that costs less than the landmarks that are wanted."""
        before = self.sample.n_pairs
        more = self.price * (n_pairs - before)
        landmarks = self.further_cost(min(wanted, *self.sim.shape))
        if not 0 < more < min(landmarks, self.sim.remaining):
            return False
        try:
            self.sample.enlarge(int(n_pairs))
        except BudgetExceeded:
            return False
        return self.sample.n_pairs > before

    def _too_little(self) -> BudgetExceeded:
        least = min(self.cost(1), self.unknown(1)) + self.price * FEWEST
        if self.refusal is not None and least <= self.sim.remaining:
            return self.refusal  # of the cheap similarity
        needed = min(2 * least, self._price_of_all())
        return BudgetExceeded(
            f"The limit of {self.sim.limit} calls, of which {self.sim.calls} are made, "
            f"does not pay for a landmark and a sample to judge it by: that takes some "
            f"{needed:.0f} more. Raise `limit`; what is known stays known."
        )


class _Reader(View):
    """Passes requests on, and remembers their pairs."""

    def __init__(self, base: Source):
        super().__init__(base)
        self._blocks: list[tuple[np.ndarray, np.ndarray]] = []
        self._pairs: list[np.ndarray] = []

    def read(self, *blocks: Block, pairs: Pairs | None = None) -> list[np.ndarray]:
        answers = super().read(*blocks, pairs=pairs)
        m, n = self.shape
        for i, j in blocks:
            rows = np.arange(m) if i is None else np.unique(i)
            columns = np.arange(n) if j is None else np.unique(j)
            self._blocks.append((rows, columns))
        if pairs is not None:
            i, j = map(np.asarray, pairs)
            self._pairs.append(i * n + j)
        return answers

    def has_read(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Tell which of the pairs were asked for, in either order if symmetric."""
        read = np.zeros(i.shape, dtype=bool)
        for a, b in [(i, j), (j, i)] if self.symmetric else [(i, j)]:
            for rows, columns in self._blocks:
                read |= np.isin(a, rows) & np.isin(b, columns)
            for pairs in self._pairs:
                read |= np.isin(a * self.shape[1] + b, pairs)
        return read
