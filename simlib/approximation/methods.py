"""The sublinear methods by name, with what they cost: experiments iterate over them.

`METHODS` need the similarity alone, `COMPANION_METHODS` take a cheap one besides, as
the option ``cheap``.
"""

from __future__ import annotations

from functools import partial
from inspect import signature
from numbers import Real
from typing import Any

from simlib.approximation.anchored import anchored, anchored_plan
from simlib.approximation.cur import (
    sicur,
    sicur_plan,
    skeleton,
    skeleton_plan,
    stacur,
    stacur_plan,
)
from simlib.approximation.nystrom import nystrom, nystrom_plan
from simlib.approximation.plan import Calls, Method, largest_below
from simlib.approximation.rpcholesky import rpcholesky, rpcholesky_plan
from simlib.approximation.sms import sms_nystrom, sms_plan
from simlib.approximation.tikhonov import tikhonov, tikhonov_plan

__all__ = ["COMPANION_METHODS", "METHODS", "largest"]

METHODS: dict[str, Method] = {
    "nystrom": Method(nystrom, Calls(nystrom_plan)),
    "sms_nystrom": Method(sms_nystrom, Calls(sms_plan)),
    "skeleton": Method(skeleton, Calls(skeleton_plan)),
    "sicur": Method(sicur, Calls(sicur_plan)),
    "stacur": Method(stacur, Calls(stacur_plan)),
    "rpcholesky": Method(rpcholesky, Calls(rpcholesky_plan)),
    "tikhonov": Method(tikhonov, Calls(tikhonov_plan)),
}
COMPANION_METHODS: dict[str, Method] = {
    "anchored": Method(anchored, Calls(anchored_plan)),
}


def largest(
    method: str,
    n: int,
    calls: float,
    *,
    symmetric: bool = True,
    diagonal_known: bool = False,
    **options: Any,
) -> int:
    """Return the most landmarks that a method can use within a budget.

    Parameters
    ----------
    method : str
        A name in `METHODS` or `COMPANION_METHODS`.
    n : int
        Number of items.
    calls : int
        Budget of similarity calls.
    symmetric : bool, default=True
        Whether the similarity is; otherwise a pair counts in both orders. Pass False
        for ``symmetrized()``, too, which asks for both.
    diagonal_known : bool, default=False
        Whether the diagonal was given, ``Similarity(..., diagonal=1.0)``, and costs
        nothing.
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
    plan = partial(named(method, options).calls.plan, **options)

    def cost(s: int) -> int:
        return plan(int(n), s).cost(symmetric=symmetric, diagonal_known=diagonal_known)

    return largest_below(calls, n, cost)


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
    oversampling = options.get("oversampling", 1)
    if not (isinstance(oversampling, Real) and float(oversampling) >= 1):
        raise ValueError(f"oversampling must be at least 1; got {oversampling}.")
    return methods[method]
