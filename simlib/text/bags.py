"""Checks of bags of words and of word vectors, and distances of word vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from simlib._checks import readable
from simlib._scale import exponent

TOLERANCE = 1e-6  # of the sum of a row of bags, which may be float32
SQUARED = 400  # sums of squares of numbers up to 2^SQUARED do not overflow


def as_bags(bags: Any) -> csr_array:
    """Return bags of words in float64, without weights of zero, or raise."""
    if not scipy.sparse.issparse(bags):
        bags = np.asarray(readable(bags, "Bags of words"))
    if bags.ndim != 2 or bags.dtype.kind not in "fiub":
        raise ValueError(
            "Bags of words are a real sparse array of shape (n, m), such as rows of "
            f"simlib.text.wmd.bags_of_words; got {bags.dtype} of shape {bags.shape}."
        )
    bags = csr_array(bags, dtype=float)
    if not bags.data.all():
        bags = bags.copy()  # or the given bags would change
        bags.eliminate_zeros()
    return bags


def as_points(points: ArrayLike) -> np.ndarray:
    """Return vectors of words as an array of shape (m, d), or raise."""
    points = readable(points, "Vectors of words")
    points = np.asarray(points)
    if points.ndim != 2:
        raise ValueError(
            "Vectors of words are an array of shape (m, d); got "
            f"{points.dtype} of shape {points.shape}."
        )
    return points


def checked(
    X: Any, Y: Any, points: ArrayLike
) -> tuple[csr_array, csr_array, np.ndarray]:
    """Return bags whose rows add up to 1, and the vectors of their words, or raise."""
    X, Y, points = as_bags(X), as_bags(Y), as_points(points)
    if not X.shape[1] == Y.shape[1] == len(points):
        raise ValueError(
            f"Bags of shapes {X.shape} and {Y.shape} do not fit {len(points)} vectors: "
            "every column is a vector."
        )
    used = np.zeros(len(points), dtype=bool)
    for bags in (X, Y):
        if (empty := np.flatnonzero(np.diff(bags.indptr) == 0)).size:
            raise ValueError(
                f"Bag {empty[0]} is empty. Make bags by simlib.text.wmd.bags_of_words, "
                "which names documents in which no word has a vector."
            )
        used[bags.indices] = True
    if points.dtype.kind not in "fiub" or not np.isfinite(points[used]).all():
        raise ValueError(
            "Vectors of words must be real and finite; those of these bags, of "
            f"{points.dtype}, are not. Leave out the words whose are not."
        )
    return _normalized(X), _normalized(Y), points


def _normalized(bags: csr_array) -> csr_array:
    """Return bags whose rows add up to 1 to rounding; raise if a row is far from it."""
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


def common_exponent(*vectors: np.ndarray) -> int:
    """Return the power of two to divide by so that squares stay in range, or 0."""
    power = exponent(*vectors)
    return power if abs(power) > SQUARED else 0


def distances_between(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the distances of rows to rows, in float64, also for extreme sizes."""
    x, y = x.astype(float, copy=False), y.astype(float, copy=False)
    power = common_exponent(x, y)
    if not power:
        return cdist(x, y)
    e = 2 if power > 0 else 0  # or differences overflow
    x, y = np.ldexp(x, -e), np.ldexp(y, -e)
    roots = [np.hypot.reduce(row - y, axis=1) for row in x]
    with np.errstate(over="ignore"):
        return np.ldexp(np.array(roots).reshape(len(x), len(y)), e)


def in_range(distances: Any) -> Any:
    """Return distances; raise if one is infinite."""
    if np.max(distances, initial=0) == np.inf:
        raise ValueError(
            "Distances of words are beyond the largest number: divide the vectors."
        )
    return distances
