r"""Cheap distances that bound expensive ones from below.

.. math::
    \Big\| \sum_i p_i v_i - \sum_j r_j v_j \Big\|_2
    \;\le\; \mathrm{WMD} , \\
    \max \Big( \sum_i p_i \min_j \|v_i - v_j\|_2 ,\;
    \sum_j r_j \min_i \|v_i - v_j\|_2 \Big) \;\le\; \mathrm{WMD} , \\
    \frac{1}{2q} \sum_g |x_g - y_g| \;\le\; \text{edit distance}

Equation :eq:`eq:bounds` of the book: p and r are the word frequencies of two documents;
x_g and y_g count the substring g of q characters in two strings. Each function takes
many items at a time, for ``Similarity(..., batch="block")``, and can be the cheap
similarity of `anchored`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, sparray
from scipy.spatial.distance import cdist

from simlib._checks import whole_number
from simlib.similarity.items import as_items
from simlib.text.bags import checked, common_exponent, distances_between, in_range

__all__ = ["centroid_distances", "qgram_distances", "relaxed_word_mover_distances"]

DISTANCES_AT_ONCE = 2**21  # distances between words


def centroid_distances(X: sparray, Y: sparray, points: np.ndarray) -> np.ndarray:
    """Return the distances between the mean word vectors of documents, shape (n, m).

    Each distance is at most the Word Mover's Distance of the pair.

    Parameters
    ----------
    X, Y : sparse arrays of shape (n, w) and (m, w)
        Bags of words, such as rows of `simlib.text.wmd.bags_of_words`.
    points : array of shape (w, d)
        The vectors of the words: ``vectors.array``.

    Raises
    ------
    ValueError
        Shapes that do not match, an empty bag, weights that are negative or do not add
        up to 1, the vector of a word that is not real and finite, a distance that
        overflows.

    Notes
    -----
    Flops: O(d) for each word of a document, then O(d) for each pair. Source: Kusner et
    al. (2015), section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from simlib.text.bounds import centroid_distances
    >>> points = np.array([[0.0], [3.0]])
    >>> bags = csr_array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> centroid_distances(bags, bags[:1], points)[:, 0].tolist()
    [0.0, 1.5, 3.0]
    """
    X, Y, points = _of_words_used(X, Y, points)
    power = common_exponent(points)  # or sums overflow
    points = np.ldexp(points, -power)
    with np.errstate(over="ignore"):
        return in_range(np.ldexp(cdist(X @ points, Y @ points), power))


def relaxed_word_mover_distances(
    X: sparray, Y: sparray, points: np.ndarray
) -> np.ndarray:
    """Return the relaxed Word Mover's Distances between documents, shape (n, m).

    Every word moves to the nearest word of the other document, however much arrives
    there; the larger value of the two directions counts. It is often close to the Word
    Mover's Distance, and never above it. Parameters and errors are those of
    `centroid_distances`.

    Notes
    -----
    Flops: O(u v d) for u distinct words in X and v in Y, and O(u N_Y + v N_X), where X
    and Y have N_X and N_Y entries: take large blocks. Source: Kusner et al. (2015),
    section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from simlib.text.bounds import relaxed_word_mover_distances
    >>> bags = csr_array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> points = np.array([[0.0], [3.0]])
    >>> relaxed_word_mover_distances(bags, bags[:1], points)[:, 0].tolist()
    [0.0, 1.5, 3.0]
    """
    X, Y, points = _of_words_used(X, Y, points)
    there, back = _to_nearest(X, Y, points), _to_nearest(Y, X, points).T
    return in_range(np.maximum(there, back))


def qgram_distances(
    xs: Sequence[str], ys: Sequence[str], *, q: int = 2, normalized: bool = True
) -> np.ndarray:
    """Return the q-gram distances between strings, shape (n, m).

    The number of unmatched substrings divided by 2 q, which is at most the edit
    distance.

    Parameters
    ----------
    xs, ys : sequences of n and m strings
        Strings, or other sequences of characters or tokens. They are compared by how
        often each substring of q characters occurs, with q - 1 blanks added at both
        ends; a blank equals no character.
    q : int, default=2
        Length of the substrings, at least 1.
    normalized : bool, default=True
        Divide by the length of the longer string, as
        ``rapidfuzz.distance.Levenshtein.normalized_distance`` does.

    Raises
    ------
    ValueError, TypeError
        q < 1; a single string in place of several, or an item that is no sequence.

    Notes
    -----
    O(g) for each pair, if a string has g distinct substrings. Source: Ukkonen (1992).

    Examples
    --------
    >>> from simlib.text.bounds import qgram_distances
    >>> qgram_distances(["simile"], ["smile", "simile"], normalized=False).tolist()
    [[0.75, 0.0]]
    """
    q = whole_number(q, "q", 1)
    xs, ys = as_items(xs, None), as_items(ys, None)
    for strings in (xs, ys):
        wrong = [string for string in strings if not isinstance(string, Sequence)]
        if wrong:
            raise TypeError(f"Strings are compared; got {wrong[0]!r} among them.")
    X, Y = _profiles(xs, ys, q)
    sizes_x, sizes_y = np.diff(X.indptr), np.diff(Y.indptr)
    common = (X @ Y.T).toarray()
    distances = (np.add.outer(sizes_x, sizes_y) - 2 * common) / (2 * q)
    if normalized:
        longer = np.maximum.outer([len(x) for x in xs], [len(y) for y in ys])
        distances /= np.maximum(longer, 1)
    return distances


def _of_words_used(
    X: sparray, Y: sparray, points: np.ndarray
) -> tuple[csr_array, csr_array, np.ndarray]:
    """Return bags, and vectors, of the words that occur; other vectors may be NaN."""
    X, Y, points = checked(X, Y, points)
    used = np.zeros(len(points), dtype=bool)
    used[X.indices] = used[Y.indices] = True
    return X[:, used], Y[:, used], points[used].astype(float, copy=False)


def _to_nearest(X: csr_array, Y: csr_array, points: np.ndarray) -> np.ndarray:
    """Return the mean distance of the words of each X to the nearest word in each Y."""
    words_x, words_y = np.unique(X.indices), np.unique(Y.indices)
    places = np.searchsorted(words_y, Y.indices)
    nearest = np.empty((words_x.size, Y.shape[0]))
    step = max(1, DISTANCES_AT_ONCE // max(1, places.size))
    for k in range(0, words_x.size, step):
        words = words_x[k : k + step]
        distances = distances_between(points[words], points[words_y])[:, places]
        nearest[k : k + step] = np.minimum.reduceat(distances, Y.indptr[:-1], axis=1)
    return X[:, words_x] @ nearest


def _profiles(
    xs: Sequence[str], ys: Sequence[str], q: int
) -> tuple[csr_array, csr_array]:
    """Return the q-grams of strings as ones; the k-th of equal ones has a column."""
    numbers: dict[tuple[tuple[str, ...], int], int] = {}
    indices, ends = [], [0]
    for string in (*xs, *ys):
        padded = [*[""] * (q - 1), *string, *[""] * (q - 1)]
        met: Counter[tuple[str, ...]] = Counter()
        for k in range(len(padded) - q + 1):
            gram = tuple(padded[k : k + q])
            met[gram] += 1
            indices.append(numbers.setdefault((gram, met[gram]), len(numbers)))
        ends.append(len(indices))
    ones = np.ones(len(indices), dtype=np.float32)
    profiles = csr_array((ones, indices, ends), (len(ends) - 1, len(numbers)))
    return profiles[: len(xs)], profiles[len(xs) :]
