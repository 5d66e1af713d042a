"""Columns of any size: their norms, and their scaling by powers of two."""

from __future__ import annotations

import numpy as np

__all__ = ["balanced", "largest_ratio", "norms"]


def balanced(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of entries up to 1, and the powers of 2 they were divided by."""
    exponents = np.frexp(abs(X).max(axis=0))[1]
    return np.ldexp(X, -exponents), exponents


def norms(X: np.ndarray) -> np.ndarray:
    """Return the norms of columns, whose squares may be out of range."""
    X, exponents = balanced(X)
    return np.ldexp(np.linalg.norm(X, axis=0), exponents)


def largest_ratio(X: np.ndarray, Y: np.ndarray) -> float:
    """Return the largest ratio of norms of columns, X over Y; 0 where Y vanishes."""
    above, below = norms(X), norms(Y)
    return float(
        np.divide(above, below, out=np.zeros_like(above), where=below > 0).max()
    )
