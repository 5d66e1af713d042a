r"""The monotone function from cheap similarities to entries of K.

.. math:: f = \operatorname{argmin} \sum_{(i, j) \text{ read}} (K_{ij} - f(G_{ij}))^2

An isotonic regression, rising or falling, on the evaluated entries of K and of G.
Beyond their range f goes on along a line, with the mean slope of the nearer half of the
range: the largest entries of a heavy-tailed matrix are seldom among the evaluated ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.isotonic import IsotonicRegression

from simlib import _scale
from simlib.approximation.plan import Plan, Reading
from simlib.lowrank.tall import read_only
from simlib.similarity.views import SimilarityMatrix

MANTISSA = 20  # bits of a cheap similarity that count
LEVELS = 2048  # between the least and the largest value of f, if there are many knots
MARGIN = 1 / 4  # beyond the range f is constant for this part of half the range,
BEYOND = 32  # and then goes along a line for so many halves


def calibration_of(
    plan: Plan, cheap: Reading, dear: Reading, sim: SimilarityMatrix
) -> Callable[[ArrayLike], np.ndarray]:
    """Return the isotonic regression of K on G, as a function."""
    x, y = (_off_diagonal(plan, read, sim) for read in (cheap, dear))
    x = _rounded(x)  # values that differ by rounding errors are equal
    x_rank, y_rank = rankdata(x), rankdata(y)
    rising = not x.size or (x_rank - x_rank.mean()) @ (y_rank - y_rank.mean()) >= 0
    if not isinstance(sim.extent, tuple):
        x = np.append(x, _rounded(np.diag(cheap.A)))
        y = np.append(y, np.diag(dear.A))
    met, place = np.unique(x, return_inverse=True)  # scikit-learn merges within 1e-15
    fit = IsotonicRegression(increasing=bool(rising)).fit(place, y)
    knots = met[fit.X_thresholds_.astype(int)]
    knots, values = _thinned(knots, fit.y_thresholds_)
    with np.errstate(over="ignore"):
        longer = _continued(knots, values)
    if knots[0] < knots[-1] and np.isfinite(longer).all():
        knots, values = longer
    return Interpolation(knots, values)


def _off_diagonal(plan: Plan, read: Reading, sim: SimilarityMatrix) -> np.ndarray:
    """Return the entries that were read, each pair off the diagonal once."""
    r, c = (side.size for side in plan.landmarks)

    def once(block: np.ndarray) -> np.ndarray:
        if isinstance(sim.extent, tuple):
            return block.ravel()
        i, j = np.indices(block.shape)
        return block[i > j if sim.symmetric else i != j]

    lines = [read.C]
    if not sim.symmetric:
        lines.append(read.C if read.R is None else read.R)
    parts = [once(read.A[:r, :c]), once(read.A[r:, c:])]
    for side, items in zip(lines, plan.landmarks, strict=False):
        parts.append(np.delete(side, items, axis=0).ravel())
    return np.concatenate(parts).astype(float)


def _thinned(knots: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return fewer knots: the ends of the stretches on which f stays in one level."""
    if knots.size <= 2 * LEVELS:
        return knots, values
    scaled, _ = _scale.unit(values)
    low, high = scaled.min(), scaled.max()
    jumps = np.diff(np.floor((scaled - low) * (LEVELS / (high - low)))) != 0
    kept = np.append(True, jumps) | np.append(jumps, True)
    return knots[kept], values[kept]


def _continued(knots: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return knots with two more at each end, by the slope of the nearer half."""
    low, high = knots[0], knots[-1]
    middle, half = _interpolated((low + high) / 2, knots, values), (high - low) / 2
    near, far = MARGIN * half, (MARGIN + BEYOND) * half
    below = values[0] + BEYOND * (values[0] - middle)
    above = values[-1] + BEYOND * (values[-1] - middle)
    knots = np.r_[low - far, low - near, knots, high + near, high + far]
    return knots, np.r_[below, values[0], values, values[-1], above]


@dataclass(frozen=True)
class Interpolation:
    """The piecewise linear function through the knots, constant beyond them."""

    knots: np.ndarray
    values: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "knots", read_only(self.knots))
        object.__setattr__(self, "values", read_only(self.values))

    def __reduce__(self) -> tuple[Any, ...]:
        return Interpolation, (self.knots, self.values)

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """Return the values at x."""
        return _interpolated(_rounded(x), self.knots, self.values)


def _interpolated(x: Any, knots: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the values at x; no slope overflows, whatever the units."""
    (knots, e), (values, f) = _scale.unit(knots), _scale.unit(values)
    with np.errstate(over="ignore"):
        return np.ldexp(np.interp(np.ldexp(x, -e), knots, values), f)


def _rounded(x: ArrayLike) -> np.ndarray:
    """Return numbers rounded to a mantissa of `MANTISSA` bits, six digits."""
    x = np.asarray(x, dtype=float)
    unit = np.spacing(x) * 2.0 ** (53 - MANTISSA)
    return np.rint(x / unit) * unit
