"""The sublinear methods by name, with their costs: experiments iterate over them.

`METHODS` need only the similarity; `COMPANION_METHODS` also take a cheap similarity,
as the option ``cheap``.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from simlib._checks import TAKES_BOTH, one_of, whole_number
from simlib.approximation import cur
from simlib.approximation.anchored import anchored
from simlib.approximation.nystrom import nystrom, nystrom_plan
from simlib.approximation.plan import Method, last
from simlib.approximation.rpcholesky import rpcholesky, rpcholesky_plan
from simlib.approximation.sms import sms_nystrom, sms_plan
from simlib.approximation.tikhonov import tikhonov, tikhonov_plan
from simlib.similarity.known import Extent, shape_of

METHODS: dict[str, Method] = {
    "nystrom": Method(nystrom, nystrom_plan),
    "sms_nystrom": Method(sms_nystrom, sms_plan),
    "skeleton": Method(cur.skeleton, cur.skeleton_plan, two=True),
    "sicur": Method(cur.sicur, cur.sicur_plan, two=True),
    "stacur": Method(cur.stacur, cur.stacur_plan, two=True),
    "rpcholesky": Method(rpcholesky, rpcholesky_plan),
    "tikhonov": Method(tikhonov, tikhonov_plan, two=True),
}
COMPANION_METHODS: dict[str, Method] = {
    "anchored": Method(anchored, tikhonov_plan, two=True)
}


def largest(
    method: str,
    n: Extent,
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
    n : int or tuple of two
        Number of items, or numbers of rows and of columns of two collections.
    calls : int
        Budget of similarity calls.
    symmetric : bool, default=True
        Whether the similarity is symmetric. Pass False for ``symmetrized()`` too: a
        pair then counts in both orders. For "skeleton", "sicur" and "stacur" of it pass
        True and half the budget.
    diagonal_known : bool, default=False
        Whether the diagonal was given, ``Similarity(..., diagonal=1.0)``.
    **options
        Options of the method; only those that change its cost matter.

    Returns
    -------
    int
        Between 1 and n; for two collections the number on each side. The method then
        makes at most `calls` calls. It makes as many as a whole number of landmarks
        allows, or fewer if it draws rows and columns independently. With
        ``batch="block"`` it makes more, as a symmetric function then gives both halves
        of small blocks on the diagonal: ``sim.cost`` tells.

    Raises
    ------
    ValueError, TypeError
        No such method or option, or the budget does not pay for one landmark.

    Examples
    --------
    >>> from simlib import largest
    >>> largest("nystrom", 1000, 50_000)
    51
    """
    chosen = named(method, options)
    two = isinstance(n, tuple)
    if two and not chosen.two:
        raise ValueError(f"{method} is for one collection.{TAKES_BOTH}")
    sizes = [whole_number(size, "The number of items", 1) for size in shape_of(n)]
    extent: Any = tuple(sizes) if two else sizes[0]

    options |= {"symmetric": symmetric, "diagonal_known": diagonal_known}

    def cost(s: int) -> int:
        return chosen.calls(extent, s, **options)

    if not cost(1) <= calls:
        raise ValueError(
            f"A budget of {calls} calls does not pay for one landmark: that costs "
            f"{cost(1)}."
        )
    return last(1, min(sizes), lambda s: cost(s) <= calls)


def named(method: str, options: dict[str, Any]) -> Method:
    """Return a method by its name, and check that it has these options."""
    methods = METHODS | COMPANION_METHODS
    one_of(method, methods, "method")
    parameters = signature(methods[method].function).parameters
    unknown = set(options) - set(parameters)
    if unknown:
        raise TypeError(f"{method} has no option {', '.join(sorted(unknown))}.")
    taken = set(options) & {"sim", "n_landmarks", "rng"}
    if taken:
        raise TypeError(f"{', '.join(sorted(taken))} cannot be an option here.")
    return methods[method]
