r"""Estimates of the error of an approximation, from few more entries.

.. math::
    \hat\varepsilon^2 = \frac{\hat T(e^2)}{\hat T(k^2)}, \qquad
    \hat T(z) = \sum_{\text{known}} z_p + \sum_h \frac{N_h}{n_h} \sum_{p \in s_h} z_p,
    \qquad \hat\varepsilon \exp \Big( {\pm \frac{t}{2}}
    \frac{\sqrt{V(e^2 - \hat\varepsilon^2 k^2)}}{\hat T(e^2)} \Big)

Equation :eq:`eq:error-estimate` of the book: e is the error and k the similarity of a
pair p. Stratum h has N_h unknown pairs, of which a sample s_h of n_h pairs is
evaluated. V is the variance of an estimated total, t a quantile of Student's
distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike

from simlib._checks import inside, warn, whole_number
from simlib._scale import exponent
from simlib._typing import Seed
from simlib.approximation.error import check_approximation
from simlib.approximation.sampling_design import Strata, features, pool
from simlib.lowrank import LowRank
from simlib.similarity.known import Known, among
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

__all__ = ["ErrorEstimate", "estimate_error"]

FEWEST = 16  # pairs in a sample, at least
FEW = 100  # in a sample of fewer pairs a few large residuals decide the interval
BINS_PER_OCTAVE, OCTAVES = 8, 2200


class ErrorEstimate(NamedTuple):
    """A relative error with its interval and its parts.

    Attributes
    ----------
    value, low, high : float
        Estimate of ``relative_error(K, approximation)``, and the ends of the interval.
    off_diagonal, diagonal : float
        The parts off the diagonal and on it: their squares add up to that of `value`.
    heavy_tailed : bool
        Whether the thousandth of the pairs off the diagonal that has the largest errors
        carries over a tenth of the squared error off the diagonal. Few pairs then
        decide the error, and a uniform sample would miss them.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import LowRank, Similarity, estimate_error
    >>> sim = Similarity.from_matrix(np.diag([12.0, 4.0, 3.0]))
    >>> error = estimate_error(sim, LowRank(np.eye(3, 1), np.array([[12.0]])))
    >>> round(error.diagonal, 3), error.off_diagonal
    (0.385, 0.0)
    """

    value: float
    low: float
    high: float
    off_diagonal: float
    diagonal: float
    heavy_tailed: bool


def estimate_error(
    sim: Source,
    approximation: LowRank,
    n_pairs: float | None = None,
    *,
    confidence: float = 0.95,
    rng: Seed = None,
) -> ErrorEstimate:
    r"""Estimate the relative Frobenius error from few similarities.

    The entries that `sim` was asked for, by the method for example, count with their
    known errors. A sample of the other entries is drawn and evaluated.

    Parameters
    ----------
    sim : Similarity
        The matrix, symmetric or not, or of two collections. Entries known only to its
        store, to a search or to another estimate cost no call, but count as unknown,
        unless it is ``sim.informed()``.
    approximation : LowRank
        An approximation of that matrix, by any method.
    n_pairs : int, optional
        How many pairs to evaluate; unordered pairs if `sim` is symmetric. The diagonal
        takes at most half of them, and more only if fewer other pairs are unknown. None
        means the larger of 2000 and m + n. If no more pairs than `n_pairs` are unknown,
        all are evaluated and the answer is exact.
    confidence : float, default=0.95
        Confidence of the interval.
    rng : int, Generator or None

    Returns
    -------
    ErrorEstimate
        ``value``, ``low``, ``high``, ``off_diagonal``, ``diagonal``, ``heavy_tailed``.

    Raises
    ------
    ValueError, TypeError
        The shapes differ, or `approximation` is not a LowRank; `n_pairs` is below 16
        and below the number of unknown pairs; every similarity seen is zero, or
        negligible beside the approximation.
    BudgetExceeded
        The limit does not pay for the sample; nothing was evaluated.

    Warns
    -----
    UserWarning
        The approximation is symmetric and the similarity is not; the similarity and the
        approximation are zero on all of the sample, off the diagonal.

    Notes
    -----
    Calls: at most `n_pairs`; twice as many for ``symmetrized()``, whose pairs cost two
    calls. The same steps with the same `rng` cost nothing a second time. Flops: O(n
    l^2) for factors of l columns, and O(l) for each unknown pair, or for some 500,000
    random pairs if more are unknown.

    A sample misses errors that the approximation does not predict: if a few dozen pairs
    among a hundred thousand carry the error, all may be missed, and the interval is
    then too low. Source: ratio estimation in stratified samples, Cochran (1977),
    chapter 6; Bankier (1988); degrees of freedom after Satterthwaite (1946).

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, estimate_error, relative_error, tikhonov
    >>> x = np.random.default_rng(0).standard_normal((500, 5))
    >>> K = np.tanh(x @ x.T)
    >>> sim = Similarity.from_matrix(K)
    >>> approximation = tikhonov(sim, 20, rng=0)
    >>> estimate = estimate_error(sim, approximation, rng=1)
    >>> estimate.low <= relative_error(K, approximation) <= estimate.high
    True
    """
    inside(confidence, "confidence", 0, 1)
    sim = check_similarity(sim).run(asked=True)
    n_pairs = default_size(sim.shape) if n_pairs is None else n_pairs
    n_pairs = whole_number(n_pairs, "n_pairs")
    sample = ValidationSample(sim, approximation, n_pairs, rng)
    if approximation.symmetric and not sim.symmetric:
        warn(
            "The approximation is symmetric and the similarity is not: the error "
            "contains how far K is from (K + K.T)/2. If that was approximated, the "
            "error is estimate_error(sim.symmetrized(), approximation)."
        )
    return sample.estimate(approximation, confidence)


def default_size(shape: tuple[int, int]) -> int:
    """Return how many pairs are evaluated by default."""
    return max(2000, sum(shape))


class ValidationSample:
    """An evaluated stratified sample; the parameters are those of `estimate_error`."""

    def __init__(
        self, sim: SimilarityMatrix, approximation: LowRank, n_pairs: int, rng: Seed
    ):
        check_approximation(approximation, sim.shape)
        rng = np.random.default_rng(rng)
        self.sim, self.two, (m, n) = sim, isinstance(sim.extent, tuple), sim.shape
        one = Known(sim.extent, symmetric=sim.symmetric, dtype=sim.dtype)
        self._keys = one.keys  # one number for each pair
        items = np.arange(0 if self.two else n)  # on the diagonal
        self.all_off = (m * n - items.size) // (2 if sim.symmetric else 1)
        self._largest, known = 0.0, [np.zeros(0, dtype=np.int64)]
        for i, j, values in sim.known():
            known.append(self._keys(i, j))
            self._largest = max(self._largest, np.abs(values).max(initial=0))
        # Pairs that other threads evaluate from now on count as unknown.
        self._known = np.sort(np.concatenate(known))
        diagonal = items[~among(self._keys(items, items), self._known)]
        unknown = self.all_off - (self._known.size - (items.size - diagonal.size))
        if n_pairs < min(FEWEST, unknown + diagonal.size):
            raise ValueError(
                f"{n_pairs} pairs say nothing about the {unknown + diagonal.size} that "
                f"are unknown; n_pairs must be at least {FEWEST}."
            )
        m_off = min(unknown, n_pairs - min(diagonal.size, n_pairs // 2))
        m_diagonal = min(diagonal.size, n_pairs - m_off)
        self._pool = pool(sim, self._known, unknown, m_off, rng)
        told = features(approximation, *self._pool, two=self.two)
        strata = Strata.of(*told, m_off, unknown)
        self._seed = int(rng.integers(2**62))
        self._on = rng.choice(diagonal, m_diagonal, replace=False)
        self._diagonal = diagonal.size
        self._evaluate(strata)

    @property
    def n_pairs(self) -> int:
        return int(self._strata.numbers.sum())

    def enlarge(self, n_pairs: int) -> None:
        """Add pairs off the diagonal until there are n_pairs, or all of them."""
        self._evaluate(self._strata.enlarged(n_pairs))

    def _evaluate(self, strata: Strata) -> None:
        """Draw the sample, which contains the sample before, and evaluate it."""
        chosen = strata.draw(np.random.default_rng(self._seed))
        i, j = (np.append(part[chosen], self._on) for part in self._pool)
        values = self.sim.pairs(i, j)
        self._strata, self._chosen = strata, chosen
        self._i, self._j, self._values = i, j, values
        self._largest = max(self._largest, np.abs(values).max(initial=0))

    def estimate(
        self,
        approximation: LowRank,
        confidence: float,
        has_read: Callable[..., np.ndarray] = lambda i, j: np.zeros(i.shape, bool),
    ) -> ErrorEstimate:
        """Estimate the error of this or of another approximation.

        `has_read` tells which pairs (i, j) the method has read since the sample was
        drawn: such a pair has the weight one.
        """
        fresh, total = ~has_read(self._i, self._j), _Total()
        for i, j, values in self.sim.known():
            seen = among(self._keys(i, j), self._known) | has_read(i, j)
            i, j, values = i[seen], j[seen], values[seen]
            on_diagonal = (i == j) & (not self.two)
            total.add(on_diagonal, *self._squares(approximation, i, j, values))
        on_diagonal = (self._i == self._j) & (not self.two)
        error, norm = self._squares(approximation, self._i, self._j, self._values)
        weights = np.full(self._i.size, self._diagonal / max(self._on.size, 1))
        cells = self._strata.cell[self._chosen]
        weights[: cells.size] = self._strata.weights[cells]
        total.add(*(part[fresh] for part in (on_diagonal, error, norm, weights)))
        norm_squared = total.norm.sum()
        if norm_squared == 0:
            raise ValueError(
                "Every similarity seen is zero: the error relative to a matrix of "
                "zeros is not defined."
            )
        squared = total.error.sum() / norm_squared
        off = fresh & ~on_diagonal
        most, rounding = weights[off].max(initial=1), np.finfo(self.sim.dtype).eps ** 2
        if most > 1 and not norm[off].any() and (error[off] <= rounding).all():
            warn(
                "All pairs of the sample are zero, as the approximation says, so that "
                f"the interval knows of no error; yet some {3 * most:.0f} pairs that "
                "are not may have been missed. Where few pairs are similar and the "
                "others are not, look for these: simlib.neighbors.pairs_above."
            )
        residual = np.where(fresh, error - squared * norm, 0.0)
        deviation = self._deviation(residual, weights, confidence)
        spread = deviation and deviation / total.error.sum() / 2
        value = np.sqrt(squared)
        with np.errstate(over="ignore"):
            low, high = value * np.exp(-spread), value * np.exp(spread)
        off_diagonal, diagonal = np.sqrt(total.error / norm_squared)
        heavy = total.share_of_largest(self.all_off / 1000) > 0.1
        numbers = map(float, (value, low, high, off_diagonal, diagonal))
        return ErrorEstimate._make([*numbers, bool(heavy)])

    def _squares(
        self, approximation: LowRank, i: np.ndarray, j: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the terms of pairs in the squared norms of K - K~ and of K."""
        unit, symmetric = -exponent(self._largest), self.sim.symmetric
        values = values.astype(float)
        both = 1 + (symmetric & (i != j))

        def error(i: np.ndarray, j: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore"):
                return np.ldexp(values - approximation.entries(i, j), unit) ** 2

        errors = error(i, j)
        if symmetric and not approximation.symmetric:
            errors = (errors + error(j, i)) / 2
        if not np.isfinite(errors).all():
            raise ValueError(
                "The approximation is off by more than 1e150 times the largest "
                "similarity: it does not approximate this matrix."
            )
        return both * errors, both * np.ldexp(values, unit) ** 2

    def _deviation(
        self, residual: np.ndarray, weights: np.ndarray, confidence: float
    ) -> float:
        """Return half the width of the interval for the total of the residuals."""
        off = self._chosen.size
        in_strata = self._strata.variance(self._chosen, residual[:off])
        on_diagonal = _simple_variance(residual[off:], self._diagonal)
        variance, uncertainty = np.add(in_strata, on_diagonal)
        if variance <= 0:
            return 0.0
        freedom = max(variance**2 / uncertainty, 1.0) if uncertainty > 0 else np.inf
        if residual.size < FEW:  # at most the effective number of large residuals
            shares = np.abs(weights * residual)
            shares = np.square(shares / shares.max())
            effective = shares.sum() ** 2 / np.square(shares).sum()
            freedom = min(freedom, max(effective - 1, 1.0))
        quantile = scipy.stats.t.ppf((1 + confidence) / 2, freedom)
        return float(quantile * np.sqrt(variance))


class _Total:
    """Weighted sums over pairs, and a histogram of their squared errors."""

    def __init__(self) -> None:
        self.error, self.norm = np.zeros((2, 2))  # off the diagonal, on it
        self._spread = np.zeros((2, OCTAVES * BINS_PER_OCTAVE))  # pairs, squared error

    def add(
        self,
        on_diagonal: np.ndarray,
        error: np.ndarray,
        norm: np.ndarray,
        weights: ArrayLike = 1.0,
    ) -> None:
        """Add pairs with their weights."""
        weights = np.broadcast_to(weights, error.shape)
        for sums, part in ((self.error, error), (self.norm, norm)):
            sums += np.bincount(on_diagonal, weights * part, minlength=2)
        large = ~on_diagonal & (error > 0)
        octave = np.log2(error[large]) + OCTAVES / 2
        bins = (octave * BINS_PER_OCTAVE).astype(int)
        for row, values in zip(self._spread, (1.0, error[large]), strict=True):
            row += np.bincount(bins, weights[large] * values, row.size)

    def share_of_largest(self, n_pairs: float) -> float:
        """Return the share of the largest errors in the squared error, off diagonal."""
        pairs, error = np.cumsum(self._spread[:, ::-1], axis=1)
        if error[-1] == 0:
            return 0.0
        return np.interp(n_pairs, np.append(0, pairs), np.append(0, error)) / error[-1]


def _simple_variance(values: np.ndarray, size: int) -> tuple[float, float]:
    """Return the variance of an estimated total, and the variance of this value.

    The total is that of `size` numbers, of which `values` are a simple random sample.
    """
    if values.size == size:
        return 0.0, 0.0
    variance = size**2 / values.size * (1 - values.size / size) * values.var(ddof=1)
    return variance, variance**2 / (values.size - 1)
