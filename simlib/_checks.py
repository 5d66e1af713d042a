"""Refusals of arguments, worded once."""

from __future__ import annotations

from numbers import Real

__all__ = ["whole_number"]


def whole_number(value: float, name: str) -> int:
    """Return a number that is an integer or a whole float, such as 2e3."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not (real and value % 1 == 0):  # infinity and NaN leave a NaN
        raise TypeError(f"{name} must be an integer; got {value!r}.")
    return int(value)
