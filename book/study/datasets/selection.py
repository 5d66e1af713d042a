"""Some items of a data set, chosen by numbers or by a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from simlib._checks import indices


def selection(index: Any, n: int, what: str = "Items") -> np.ndarray:
    """Return numbers from 0 to n - 1, given as such or as a mask of n booleans."""
    index = np.asarray(index, dtype=None if np.size(index) else np.intp)
    if index.dtype == bool and index.shape == (n,):
        return np.flatnonzero(index)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise ValueError(
            f"{what} are chosen by integers or by a mask of {n} booleans; got "
            f"{index.dtype} of shape {index.shape}."
        )
    return indices(index, n, what)
