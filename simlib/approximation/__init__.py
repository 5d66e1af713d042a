"""Approximations of a similarity matrix from few of its entries (system 1).

Every method reads its matrix through a `Similarity` and answers with a `LowRank`.
`METHODS` lists the sublinear ones; experiments iterate over it.
"""

from __future__ import annotations

from typing import Any

from simlib.approximation.budget import Method, cross_calls, largest_below
from simlib.approximation.cur import (
    sicur,
    sicur_calls,
    skeleton,
    skeleton_calls,
    stacur,
    stacur_calls,
)
from simlib.approximation.error import relative_error
from simlib.approximation.nystrom import nystrom
from simlib.approximation.optimal import optimal
from simlib.approximation.sms import sms_calls, sms_nystrom
from simlib.approximation.spectrum import Spectrum, estimate_spectrum, negative_mass
from simlib.approximation.tikhonov import tikhonov, tikhonov_calls

__all__ = [
    "METHODS",
    "Spectrum",
    "estimate_spectrum",
    "largest",
    "negative_mass",
    "nystrom",
    "optimal",
    "relative_error",
    "sicur",
    "skeleton",
    "sms_nystrom",
    "stacur",
    "tikhonov",
]


def _nystrom_calls(n: int, n_landmarks: int, **_: object) -> int:
    return cross_calls(n, n_landmarks)


METHODS: dict[str, Method] = {
    "nystrom": Method(nystrom, _nystrom_calls),
    "sms_nystrom": Method(sms_nystrom, sms_calls),
    "skeleton": Method(skeleton, skeleton_calls),
    "sicur": Method(sicur, sicur_calls),
    "stacur": Method(stacur, stacur_calls),
    "tikhonov": Method(tikhonov, tikhonov_calls),
}


def largest(method: str, n: int, calls: int, **options: Any) -> int:
    """Return the most landmarks that a method can use within a budget.

    Parameters
    ----------
    method : str
        A name in `METHODS`.
    n : int
        Number of items; the matrix is symmetric.
    calls : int
        Budget of similarity calls.
    **options
        Options of the method; those that change its cost are heeded.

    Returns
    -------
    int
        Between 1 and n. Methods with two independent draws make at most `calls` calls,
        the others at most that and as close as a whole landmark allows.

    Raises
    ------
    ValueError
        No such method, or the budget does not pay for one landmark.

    Examples
    --------
    >>> from simlib import largest
    >>> largest("nystrom", 1000, 50_000)
    51
    """
    if method not in METHODS:
        raise ValueError(
            f"No method is called {method!r}; there are {', '.join(METHODS)}."
        )
    cost = METHODS[method].calls
    return largest_below(calls, n, lambda s: cost(n, s, **options))
