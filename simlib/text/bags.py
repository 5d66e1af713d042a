"""Documents as bags of words, and their vectors: what may be given as such."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

__all__ = ["check_vectors", "normalized_bags"]

TOLERANCE = 1e-6  # of the sum of a row of bags, which may be of float32


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
