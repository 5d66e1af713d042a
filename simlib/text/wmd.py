r"""Word Mover's Distance, exact.

.. math::
    \mathrm{WMD}(x, y) = \min_{T \ge 0} \sum_{ij} T_{ij} \|v_i - v_j\|_2
    \quad\text{with}\quad T 1 = p_x, \; T^\top 1 = p_y

Equation :eq:`eq:wmd` of the book: p_x and p_y are the relative frequencies of the words
of two documents, v their vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from simlib.datasets import WordVectors

try:
    from ot.lp.emd_wrap import emd_c
except ImportError as error:
    raise ImportError(
        "Word Mover's Distance needs POT: pip install simlib[text]"
    ) from error

__all__ = ["WordMoverDistance", "word_mover_distance"]

MAX_ITERATIONS = 1_000_000
OPTIMAL = 1  # result code of POT's network simplex


class WordMoverDistance:
    """Word Mover's Distance between lists of words, as a function for `Similarity`.

    Parameters
    ----------
    vectors : mapping from str to array of shape (d,)
        Word vectors. A `simlib.datasets.WordVectors` is used as it is: joblib hands its
        one array to worker processes as a memory map.

    Notes
    -----
    ``Similarity(documents, WordMoverDistance(v)).map(lambda d: np.exp(-gamma * d))`` is
    the kernel of the paper; another gamma costs no evaluation. Words without a vector
    are left out. Solved by POT's network simplex, O(m^3 log m) for m distinct words;
    the same number as ``ot.emd2(p_x, p_y, cdist(X, Y))`` without its overhead. Source:
    Kusner et al. (2015).

    Examples
    --------
    >>> import numpy as np
    >>> distance = WordMoverDistance({"a": np.array([0.0]), "b": np.array([3.0])})
    >>> distance(["a", "a", "b"], ["b"])
    2.0
    """

    def __init__(self, vectors: Mapping[str, ArrayLike]):
        if not isinstance(vectors, WordVectors):
            words = tuple(vectors)
            vectors = WordVectors(words, np.array([vectors[word] for word in words]))
        self.vectors = vectors
        self._bags: dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]] = {}

    def __call__(self, x: Sequence[str], y: Sequence[str]) -> float:
        """Return the distance between two documents.

        Raises
        ------
        ValueError
            No word of a document has a vector.
        """
        rows_x, weights_x = self._bag(x)
        rows_y, weights_y = self._bag(y)
        vectors = self.vectors.array
        costs = cdist(vectors[rows_x], vectors[rows_y])
        _, distance, _, _, code = emd_c(weights_x, weights_y, costs, MAX_ITERATIONS, 1)
        if code != OPTIMAL:
            raise RuntimeError(
                f"The transport between documents of {rows_x.size} and {rows_y.size} "
                f"words was not solved (POT's result code {code})."
            )
        return float(distance)

    def _bag(self, document: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of the vectors and their weights, which add up to one."""
        key = tuple(document)
        if key not in self._bags:
            index = self.vectors.index
            counts = Counter(index[word] for word in key if word in index)
            if not counts:
                raise ValueError(
                    f"No word of this document has a vector: {' '.join(key[:10])!r}. "
                    "Leave such documents out, as load_twitter(vectors) does."
                )
            weights = np.array(list(counts.values()), dtype=float)
            self._bags[key] = np.array(list(counts)), weights / weights.sum()
        return self._bags[key]

    def __getstate__(self) -> dict[str, Any]:
        return {"vectors": self.vectors, "_bags": {}}


def word_mover_distance(
    x: Sequence[str], y: Sequence[str], vectors: Mapping[str, ArrayLike]
) -> float:
    """Return the Word Mover's Distance between two lists of words.

    For one pair; for many make one `WordMoverDistance`, which prepares each document
    once.

    Parameters
    ----------
    x, y : sequence of str
        The words of two documents; order does not matter, repetition does.
    vectors : mapping from str to array of shape (d,)
        Word vectors.

    Raises
    ------
    ValueError
        No word of a document has a vector.
    """
    return WordMoverDistance(vectors)(x, y)
