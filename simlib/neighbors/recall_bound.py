r"""A bound of the hits among U pairs, from a uniform sample of them.

.. math::
    M_\ell = \max \{ M : P(X \le x_\ell \mid U, M, s) \ge \alpha_\ell \} , \qquad
    \alpha_\ell = \frac{6 \, (1 - \text{confidence})}{\pi^2 \ell^2} , \\
    P(X = x) = \frac{b(x; M, s/U) \, b(s - x; U - M, s/U)}{b(s; U, s/U)}

X, the number of hits in a sample of s pairs, is hypergeometric if M of the U pairs are
hits. b are binomial probabilities, which keep the digits that factorials of U lose
(Loader, 2000). Look l errs with probability at most :math:`\alpha_\ell`. These add up
to 1 - confidence, so all bounds hold together, whenever the search stops.
"""

from __future__ import annotations

from math import ceil, expm1, floor, pi

import numpy as np
from scipy.stats import binom, chi2


def alpha(look: int, confidence: float) -> float:
    """Return the probability with which a look may err; the first look is 1."""
    return min(0.5, 6 * (1 - confidence) / (pi * look) ** 2)


def at_most(x: int, U: int, M: int, s: int) -> float:
    """Return the probability of at most x hits in a sample of s of U, if M are hits.

    It is accurate for x up to the mean, M s / U.
    """
    p, t = s / U, np.arange(x, max(0, s - U + M), -1.0)
    equal = binom.pmf(x, M, p) * binom.pmf(s - x, U - M, p) / binom.pmf(s, U, p)
    ratios = t * (U - M - s + t) / ((M - t + 1) * (s - t + 1))  # of t - 1 hits to t
    return float(equal * (1 + np.cumprod(ratios).sum()))


def most_hits(U: int, x: int, s: int, alpha: float) -> int:
    """Return the most hits among U pairs that a sample of s with x does not exclude."""
    low, high = x * U // s, U - s + x  # for `low` hits, x is at least the median
    while low < high:
        middle = (low + high + 1) // 2
        fits = at_most(x, U, middle, s) >= alpha
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def sample_size(U: int, x: int, goal: float, alpha: float) -> int:
    """Return the size of a sample that bounds other hits by `goal`, if it shows x."""
    events = chi2.ppf(1 - alpha, 2 * (x + 1)) / 2
    return ceil(-U * expm1(-1.02 * events / (floor(goal) + x + 0.5))) + 1
