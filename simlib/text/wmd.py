r"""Word Mover's Distance, exact.

.. math::
    \mathrm{WMD}(x, y) = \min_{T \ge 0} \sum_{ij} T_{ij} \|v_i - v_j\|_2
    \quad\text{with}\quad T 1 = p_x, \; T^\top 1 = p_y

Equation :eq:`eq:wmd` of the book: p_x and p_y are the relative frequencies of the words
of two documents, v_i the vectors of the words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, sparray

from simlib._checks import readable
from simlib._scale import exponent
from simlib.datasets import WordVectors
from simlib.text.bags import (
    as_bags,
    as_points,
    checked,
    common_exponent,
    distances_between,
    in_range,
)

try:
    from ot.lp.emd_wrap import emd_c
except ImportError as error:
    raise ImportError(
        "Word Mover's Distance needs POT: pip install simlib[text]"
    ) from error

__all__ = [
    "WordMoverDistance",
    "bags_of_words",
    "paired_word_mover_distances",
    "pairwise_word_mover_distances",
    "word_mover_distance",
]

MAX_ITERATIONS = 1_000_000
OPTIMAL = 1  # result code of POT's network simplex
DISTANCES_AT_ONCE = 2**22  # distances between words
FAR = 1e11  # quotient of distances above which POT's simplex loses digits
DUST = 1e-15  # share of a weight that rounding errors may leave
SMALL = 2.0**-30  # POT takes smaller costs for zero
PAIRS_AT_ONCE = 4096  # pairs in a task of a worker


class WordMoverDistance:
    """Word Mover's Distance between lists of words, as a function for `Similarity`.

    `paired_word_mover_distances` gives the same distances faster, many at a time.

    Parameters
    ----------
    vectors : mapping from str to array of shape (d,)
        Word vectors; a `simlib.datasets.WordVectors` reaches worker processes as a
        memory map. Words without a vector are left out of documents.

    Raises
    ------
    ValueError, TypeError
        In a call: no word of a document has a vector, or a vector is not real and
        finite, or so far away that the distance has no digits; a document is a string,
        or a mapping such as a Counter.

    Notes
    -----
    ``Similarity(documents, WordMoverDistance(v)).map(lambda d: np.exp(-gamma * d))`` is
    the kernel of the paper. O(m^3 log m) for m distinct words, by POT's network
    simplex, as ``ot.emd2(p_x, p_y, cdist(X, Y))``. Source: Kusner et al. (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.text.wmd import WordMoverDistance
    >>> distance = WordMoverDistance({"a": np.array([0.0]), "b": np.array([3.0])})
    >>> distance(["a", "a", "b"], ["b"])
    2.0
    """

    def __init__(self, vectors: Mapping[str, ArrayLike]):
        self.vectors = as_word_vectors(vectors)
        self._bags: dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]] = {}

    def __call__(self, x: Sequence[str], y: Sequence[str]) -> float:
        """Return the distance between two documents."""
        rows_x, weights_x = self._bag(x)
        rows_y, weights_y = self._bag(y)
        points = self.vectors.array
        costs = distances_between(points[rows_x], points[rows_y])
        return _transport(weights_x, weights_y, costs)

    def _bag(self, document: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and weights of a document, computed once for each document."""
        key = _listed(document)
        if key not in self._bags:
            self._bags[key] = _bag(key, self.vectors)
        return self._bags[key]

    def __getstate__(self) -> dict[str, Any]:
        return {"vectors": self.vectors, "_bags": {}}


def word_mover_distance(
    x: Sequence[str], y: Sequence[str], vectors: Mapping[str, ArrayLike]
) -> float:
    """Return the Word Mover's Distance between two lists of words, a float.

    The order of words does not matter, repetition does. `vectors` and errors are those
    of `WordMoverDistance`; for many pairs make one of these.
    `scipy.stats.wasserstein_distance_nd` solves the same problem far more slowly.

    Examples
    --------
    >>> from simlib.text.wmd import word_mover_distance
    >>> vectors = {"obama": [0.0, 0.0], "president": [0.0, 1.0], "banana": [3.0, 4.0]}
    >>> word_mover_distance(["obama"], ["president", "banana"], vectors)
    3.0
    """
    return WordMoverDistance(vectors)(x, y)


def bags_of_words(
    documents: Iterable[Iterable[str]], vectors: Mapping[str, ArrayLike]
) -> csr_array:
    """Return documents as normalised bags of words, a csr_array of shape (n, m).

    Every row adds up to 1. Errors are those of `WordMoverDistance`, and name the
    document. `sklearn.feature_extraction.text.CountVectorizer` does not normalise.

    Parameters
    ----------
    documents : iterable of n iterables of str
        Words; those without a vector are left out.
    vectors : mapping from str to array of shape (d,)
        Word vectors, best a `simlib.datasets.WordVectors`: words that share one of its
        m vectors count as one word.

    Examples
    --------
    >>> from simlib.text.wmd import bags_of_words
    >>> bags = bags_of_words([["b", "?"], ["a", "b", "b", "b"]], {"a": [0], "b": [3]})
    >>> bags.toarray()
    array([[0.  , 1.  ],
           [0.25, 0.75]])
    """
    vectors = as_word_vectors(vectors)
    rows, weights, ends = [np.zeros(0, int)], [np.zeros(0)], [0]
    for number, document in enumerate(documents):
        words, shares = _bag(document, vectors, f"document {number}")
        rows.append(words)
        weights.append(shares)
        ends.append(ends[-1] + words.size)
    shape = (len(ends) - 1, len(vectors.array))
    return csr_array((np.concatenate(weights), np.concatenate(rows), ends), shape)


def paired_word_mover_distances(
    X: sparray, Y: sparray, points: np.ndarray
) -> np.ndarray:
    """Return the Word Mover's Distance of row k of X to row k of Y, shape (n,).

    Parameters
    ----------
    X, Y : sparse arrays of shape (n, m)
        Bags of words over the same m vectors, such as rows of `bags_of_words`: each row
        adds up to 1.
    points : array of shape (m, d)
        The vectors: ``vectors.array``.

    Raises
    ------
    ValueError
        A row that is empty, has negative weights or does not add up to 1; a vector of a
        word that is not real and finite, or is too far from the others; shapes that do
        not match.

    Notes
    -----
    Equal to `WordMoverDistance` to 1e-7 of the longest vector, in a third to a half of
    the time for 300 dimensions: distances between words come from one matrix product
    for all pairs.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np
    >>> from simlib import Similarity
    >>> from simlib.text.wmd import bags_of_words, paired_word_mover_distances
    >>> points = np.array([[0.0], [3.0]])
    >>> bags = bags_of_words([["a"], ["a", "a", "b"], ["b"]], {"a": [0], "b": [3]})
    >>> distance = partial(paired_word_mover_distances, points=points)
    >>> Similarity(bags, distance, batch="pairs").columns([0])[:, 0].tolist()
    [0.0, 1.0, 3.0]
    """
    X, Y, points = checked(X, Y, points)
    if X.shape != Y.shape:
        raise ValueError(
            f"Bags of shapes {X.shape} and {Y.shape} do not fit each other: rows are "
            "pairs."
        )
    sizes_x, sizes_y = np.diff(X.indptr), np.diff(Y.indptr)
    weights_x, weights_y = _cut(X.data, X.indptr), _cut(Y.data, Y.indptr)
    values = np.empty(X.shape[0])
    # One matrix product gives the distances for all pairs of a block. A block whose
    # pairs share few words is cut into single pairs, one that is too large into halves.
    blocks = [(0, X.shape[0])] if X.shape[0] else []
    while blocks:
        start, stop = blocks.pop()
        words_x, x = _words(X, start, stop)
        words_y, y = _words(Y, start, stop)
        together = words_x.size * words_y.size
        apart = sizes_x[start:stop] @ sizes_y[start:stop]
        if together > min(2 * apart, DISTANCES_AT_ONCE) and stop - start > 1:
            parts = 2 if together <= 2 * apart else stop - start
            cuts = np.linspace(start, stop, parts + 1).astype(int)
            blocks += pairwise(cuts.tolist())
            continue
        costs = _distances(points, words_x, words_y)
        pairs = dict(zip(range(start, stop), zip(x, y, strict=True), strict=True))
        largest = costs.max()
        solve = _cost if largest < 1 / SMALL else _transport
        for k, (i, j) in pairs.items():
            values[k] = solve(weights_x[k], weights_y[k], costs[i[:, None], j])
        least = max(SMALL, largest / FAR)  # below, sizes are looked at pair by pair
        small = [k for k in pairs if not values[k] >= least]
        values[small] = [
            _transport(weights_x[k], weights_y[k], costs[np.ix_(*pairs[k])])
            for k in small
        ]
    return values


def pairwise_word_mover_distances(
    X: sparray, Y: sparray, points: np.ndarray, *, n_jobs: int | None = None
) -> np.ndarray:
    """Return the Word Mover's Distance of every row of X to every row of Y, (n, k).

    `Similarity` evaluates pairs on demand, each pair once, within a budget.

    Parameters
    ----------
    X, Y, points
        As in `paired_word_mover_distances`, of shapes (n, m), (k, m) and (m, d).
    n_jobs : int, optional
        Number of joblib processes, each with some rows of X.

    Notes
    -----
    Errors and cost of `paired_word_mover_distances`, n k times. To keep results on disk
    use ``joblib.Memory(folder).cache(pairwise_word_mover_distances,
    ignore=["n_jobs"])``, a part of Y at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.text.wmd import bags_of_words, pairwise_word_mover_distances
    >>> bags = bags_of_words([["a"], ["a", "a", "b"], ["b"]], {"a": [0], "b": [3]})
    >>> pairwise_word_mover_distances(bags, bags[:1], np.array([[0.0], [3.0]]))
    array([[0.],
           [1.],
           [3.]])
    """
    X, Y, points = as_bags(X), as_bags(Y), as_points(points)
    step = max(1, PAIRS_AT_ONCE // max(1, Y.shape[0]))
    blocks = joblib.Parallel(n_jobs)(
        joblib.delayed(_block)(X[k : k + step], Y, points)
        for k in range(0, max(1, X.shape[0]), step)  # an empty X is checked too
    )
    return np.concatenate(blocks)


def as_word_vectors(vectors: Mapping[str, ArrayLike]) -> WordVectors:
    """Return a mapping from words to vectors as views of one array."""
    if isinstance(vectors, WordVectors):
        return vectors
    if not isinstance(vectors, Mapping):
        raise TypeError(
            "`vectors` is a mapping from words to their vectors, such as a dict or "
            f"WordVectors; got {type(vectors).__name__}."
        )
    words = tuple(vectors)
    listed = [np.asarray(readable(vectors[word], "Vectors of words")) for word in words]
    for word, vector in zip(words, listed, strict=True):
        if vector.shape != listed[0].shape:
            raise ValueError(
                f"Vectors of words are as long as each other; that of {word!r} has "
                f"shape {vector.shape}, that of {words[0]!r} {listed[0].shape}."
            )
    return WordVectors(words, np.array(listed))


def _bag(
    document: Iterable[str], vectors: WordVectors, name: str = "this document"
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of the vectors and their weights, which add up to one."""
    document = _listed(document)
    index = vectors.index
    counts = Counter(index[word] for word in document if word in index)
    first = ", ".join(map(repr, document[:10]))
    if not counts:
        raise ValueError(
            f"No word of {name} has a vector: {first or 'it has no words'}. "
            "Leave such documents out."
        )
    rows, weights = np.array(list(counts)), np.array(list(counts.values()), dtype=float)
    if not np.isfinite(vectors.array[rows]).all():
        raise ValueError(
            f"A word of {name} has a vector that is not finite: {first}. Leave such "
            "words out of the vectors."
        )
    return rows, weights / weights.sum()


def _listed(document: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a document, or raise if it is a string or a mapping."""
    if isinstance(document, str | bytes):
        raise TypeError(
            f"A document is a list of words; got the string {document[:40]!r}. Split "
            "it into words."
        )
    if isinstance(document, Mapping):
        raise TypeError(
            "A document is a list of words, repeated as often as they occur; got a "
            f"{type(document).__name__}. Of a Counter pass list(counter.elements())."
        )
    return tuple(document)


def _block(X: csr_array, Y: csr_array, points: np.ndarray) -> np.ndarray:
    """Return the distances of every row of X to every row of Y, in one process."""
    i, j = np.indices((X.shape[0], Y.shape[0])).reshape(2, -1)
    distances = paired_word_mover_distances(X[i], Y[j], points)
    return distances.reshape(X.shape[0], Y.shape[0])


def _words(
    bags: csr_array, start: int, stop: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the distinct words of some bags, and the places of each bag's words."""
    ends = bags.indptr[start : stop + 1]
    words, places = np.unique(bags.indices[ends[0] : ends[-1]], return_inverse=True)
    return words, _cut(places, ends - ends[0])


def _cut(values: np.ndarray, ends: np.ndarray) -> list[np.ndarray]:
    """Return the parts of an array between successive ends."""
    return [values[start:stop] for start, stop in pairwise(ends.tolist())]


def _distances(points: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the distances between some vectors and others, by one product."""
    x, y = points[rows].astype(float), points[columns].astype(float)
    if common_exponent(x, y):
        return distances_between(x, y)
    squares = -2 * (x @ y.T)
    squares += np.square(x).sum(axis=1)[:, None]
    squares += np.square(y).sum(axis=1)
    squares[rows[:, None] == columns] = 0
    return np.sqrt(squares.clip(min=0, out=squares), out=squares)


def _cost(p: np.ndarray, q: np.ndarray, costs: np.ndarray) -> float:
    """Return the cost of moving the weights p to q, NaN if POT does not find it."""
    _, cost, _, _, code = emd_c(p, q, costs, MAX_ITERATIONS, 1)
    return cost if code == OPTIMAL else np.nan


def _transport(p: np.ndarray, q: np.ndarray, costs: np.ndarray) -> float:
    """Return the cost of moving the weights p to q."""
    largest = in_range(costs.max())
    power = exponent(largest)
    if abs(power) <= 30:  # beyond, POT takes tiny costs for zero
        power = 0
    scaled = np.ldexp(costs, -power) if power else costs
    _, cost, _, _, code = emd_c(p, q, scaled, MAX_ITERATIONS, 1)
    if code != OPTIMAL:
        raise RuntimeError(
            f"The transport between documents of {p.size} and {q.size} words was not "
            f"solved (POT's result code {code})."
        )
    cost = float(np.ldexp(cost, power))
    if 0 < cost < largest / FAR:
        return _transport_of_the_rest(p, q, costs, cost)
    return cost


def _transport_of_the_rest(
    p: np.ndarray, q: np.ndarray, costs: np.ndarray, about: float
) -> float:
    """Return the cost if the largest distance leaves the simplex no digits.

    Weights of words that both documents share stay in place, and the others move.
    """
    left, wanted = p.copy(), q.copy()
    for i, j in zip(*np.nonzero(costs == 0), strict=True):
        shared = min(left[i], wanted[j])
        left[i] -= shared
        wanted[j] -= shared
    rows, columns = left > DUST * p, wanted > DUST * q
    if rows.all() and columns.all():
        raise ValueError(
            f"The documents are about {about:.1g} apart, and words of theirs "
            f"{costs.max():.1g}: beside that their distance has no digits. Leave out "
            "words whose vectors are that far off."
        )
    if not (rows.any() and columns.any()):
        return 0.0
    mass, left, wanted = left[rows].sum(), left[rows], wanted[columns]
    rest = np.ascontiguousarray(costs[rows][:, columns])
    return float(mass) * _transport(left / mass, wanted / wanted.sum(), rest)
