"""The sublinear methods by name, with what they cost: experiments iterate over them.

`METHODS` need the similarity alone, `COMPANION_METHODS` take a cheap one besides, as
the option ``cheap``.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from simlib.approximation.anchored import anchored, anchored_calls
from simlib.approximation.budget import Method, largest_below
from simlib.approximation.cur import (
    sicur,
    sicur_calls,
    skeleton,
    skeleton_calls,
    stacur,
    stacur_calls,
)
from simlib.approximation.nystrom import nystrom, nystrom_calls
from simlib.approximation.rpcholesky import rpcholesky, rpcholesky_calls
from simlib.approximation.sms import sms_calls, sms_nystrom
from simlib.approximation.tikhonov import tikhonov, tikhonov_calls

__all__ = ["COMPANION_METHODS", "METHODS", "largest"]

METHODS: dict[str, Method] = {
    "nystrom": Method(nystrom, nystrom_calls),
    "sms_nystrom": Method(sms_nystrom, sms_calls),
    "skeleton": Method(skeleton, skeleton_calls),
    "sicur": Method(sicur, sicur_calls),
    "stacur": Method(stacur, stacur_calls),
    "rpcholesky": Method(rpcholesky, rpcholesky_calls),
    "tikhonov": Method(tikhonov, tikhonov_calls),
}
COMPANION_METHODS: dict[str, Method] = {"anchored": Method(anchored, anchored_calls)}


def largest(method: str, n: int, calls: int, **options: Any) -> int:
    """Return the most landmarks that a method can use within a budget.

    Parameters
    ----------
    method : str
        A name in `METHODS` or `COMPANION_METHODS`.
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
    TypeError
        The method has no such option.

    Notes
    -----
    A bisection on the method's formula for its calls; no similarity is evaluated.

    Examples
    --------
    >>> from simlib import largest
    >>> largest("nystrom", 1000, 50_000)
    51
    """
    cost = named(method, options).calls
    return largest_below(calls, n, lambda s: cost(n, s, **options))


def named(method: str, options: dict[str, Any]) -> Method:
    """Return a method by its name, and check that it has these options."""
    methods = METHODS | COMPANION_METHODS
    if method not in methods:
        raise ValueError(
            f"No method is called {method!r}; there are {', '.join(methods)}."
        )
    parameters = signature(methods[method].function).parameters
    unknown = set(options) - set(parameters)
    if unknown:
        raise TypeError(f"{method} has no option {', '.join(sorted(unknown))}.")
    taken = set(options) & {"sim", "n_landmarks", "rng"}
    if taken:
        raise TypeError(f"{', '.join(sorted(taken))} cannot be an option here.")
    if not options.get("oversampling", 1) >= 1:
        raise ValueError(
            f"oversampling must be at least 1; got {options['oversampling']}."
        )
    return methods[method]
