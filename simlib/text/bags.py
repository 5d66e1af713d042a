"""Documents as bags of words, and their vectors: what may be given as such."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

__all__ = [
    "as_bags",
    "as_points",
    "check_vectors",
    "common_exponent",
    "distances_between",
    "normalized_bags",
]

TOLERANCE = 1e-6  # of the sum of a row of bags, which may be of float32


def as_bags(bags: Any) -> csr_array:
    """Return bags of words in float64, or raise if they are no real matrix.

    A word of weight zero is not in the bag.
    """
    if not scipy.sparse.issparse(bags):
        bags = np.asarray(bags)
    if bags.ndim != 2 or bags.dtype.kind not in "fiub":
        raise ValueError(
            "Bags of words are a real sparse array of shape (n, m), such as rows of "
            f"simlib.text.wmd.bags_of_words; got {bags.dtype} of shape {bags.shape}."
        )
    bags = csr_array(bags, dtype=float)
    if not bags.data.all():
        bags = bags.copy()  # or it shares its entries with what was given
        bags.eliminate_zeros()
    return bags


def as_points(points: ArrayLike) -> np.ndarray:
    """Return vectors of words as an array, or raise if they are no table."""
    points = np.asanyarray(points)
    if points.ndim != 2:
        raise ValueError(
            "Vectors of words are an array of shape (m, d); got "
            f"{points.dtype} of shape {points.shape}."
        )
    return points


def common_exponent(*vectors: np.ndarray) -> int:
    """Return the power of two by which to divide so that squares are numbers."""
    largest = max(max(x.max(initial=0), -x.min(initial=0)) for x in vectors)
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) > 400 else 0


def distances_between(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the distances of rows to rows, in float64, whatever their sizes.

    Where squares of the largest are no numbers, one root after the other: rows that are
    near each other keep their digits, too.
    """
    x, y = x.astype(float, copy=False), y.astype(float, copy=False)
    if not common_exponent(x, y):
        return cdist(x, y)
    x, y = np.ldexp(x, -2), np.ldexp(y, -2)
    roots = [np.hypot.reduce(row - y, axis=1) for row in x]
    with np.errstate(over="ignore"):
        return np.ldexp(np.array(roots).reshape(len(x), len(y)), 2)


def normalized_bags(bags: csr_array) -> csr_array:
    """Return bags whose rows add up to 1, or raise ValueError if they do not nearly.

    Rows that do to rounding are not divided by their sum: they keep all digits.
    """
    sums = bags.sum(axis=1)
    if (bags.data < 0).any() or not (abs(sums - 1) <= TOLERANCE).all():
        raise ValueError(
            "The weights of a bag are not negative and add up to 1; got weights of "
            f"{bags.data.min():.3g} at least, and sums of {sums.min():.7g} to "
            f"{sums.max():.7g}. Divide each row by its sum, or make bags by "
            "simlib.text.wmd.bags_of_words."
        )
    sums[abs(sums - 1) < 1e-12] = 1
    weights = bags.data / np.repeat(sums, np.diff(bags.indptr))
    return csr_array((weights, bags.indices, bags.indptr), bags.shape)


def check_vectors(points: np.ndarray, *bags: csr_array) -> None:
    """Raise ValueError unless the vectors of the words of bags are real and finite."""
    used = np.zeros(len(points), dtype=bool)
    for words in bags:
        used[words.indices] = True
    if points.dtype.kind not in "fiub" or not np.isfinite(points[used]).all():
        raise ValueError(
            "Vectors of words must be real and finite; those of these bags, of "
            f"{points.dtype}, are not. Leave out the words whose are not."
        )
