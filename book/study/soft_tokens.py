r"""Likeness of two records that name things: each word beside its best counterpart.

.. math::
    K_{ab} = \tfrac12 (k_{ab} + k_{ba}) , \qquad
    k_{ab} = \frac{\sum_{w \in a} t_w \max_{v \in b} \theta(w, v)}{\sum_{w \in a} t_w} ,
    \qquad t_w = \log^2 (1 + n / n_w)

Equation :eq:`eq:soft-tokens` of the book. θ is the similarity of Jaro and Winkler, 0
below a cut; :math:`n_w` of n records have the word w. A cosine of TF-IDF vectors has
the square of such weights too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from simlib._checks import indices, same_length

__all__ = ["SoftTokens"]

TOKEN = re.compile(r"[^\W_]+")  # runs of letters and digits
STRIP = 2**21  # pairs of words looked up at a time


class SoftTokens:
    """The similarity of any two of some texts, by their numbers.

    Parameters
    ----------
    texts : iterable of str
        n records. Words are runs of letters and digits, in lower case.
    cut : float, default=0.9
        The least similarity of two words that counts, from 0 to 1.

    Attributes
    ----------
    words : list of str
        All words, sorted.

    Raises
    ------
    ValueError, ImportError
        A text without a word, one that is no string, a cut that is no share; rapidfuzz
        is not installed.

    Notes
    -----
    The V words are compared once, 4 V^2 bytes; a pair then costs a look-up for each
    pair of words. Source: Monge and Elkan (1996) with the similarity of words of Cohen,
    Ravikumar and Fienberg (2003); mean of both ways.

    Examples
    --------
    >>> from simlib import Similarity
    >>> from study.soft_tokens import SoftTokens
    >>> texts = ["Canon camera EOS", "canon eos cameras", "radio"]
    >>> sim = Similarity(range(3), SoftTokens(texts), batch="pairs")
    >>> sim.pairs([0, 0], [1, 2]).round(2).tolist()
    [0.98, 0.0]
    """

    def __init__(self, texts: Iterable[str], *, cut: float = 0.9):
        if not 0 <= cut <= 1:
            raise ValueError(f"cut must be between 0 and 1; got {cut}.")
        given = list(texts)
        if isinstance(texts, str) or not all(isinstance(text, str) for text in given):
            raise ValueError("`texts` is a sequence of strings, one for each record.")
        bags = [sorted(set(TOKEN.findall(text.lower()))) for text in given]
        empty = [k for k, bag in enumerate(bags) if not bag]
        if empty:
            raise ValueError(
                f"Text {empty[0]} has no word ({len(empty)} such); leave it out."
            )
        self.words = sorted(set().union(*bags))
        place = {word: k for k, word in enumerate(self.words)}
        n, V = len(bags), len(self.words)
        lengths = np.array([len(bag) for bag in bags], dtype=np.int64)
        longest = lengths.max(initial=1)
        # Sums of eights do not depend on how many zeros follow, to the last bit
        self._widths = np.minimum(-(-lengths // 8) * 8, longest)
        self._tokens = np.full((n, longest), V, np.int32)
        for row, bag in zip(self._tokens, bags, strict=True):
            row[: len(bag)] = [place[word] for word in bag]
        count = np.bincount(self._tokens.ravel(), minlength=V + 1)[:V]
        weight = np.append(np.log1p(n / np.maximum(count, 1)) ** 2, 0)[self._tokens]
        self._weights = weight / weight.sum(axis=1, keepdims=True)
        self._theta = _likeness(self.words, cut)

    def __len__(self) -> int:
        return len(self._tokens)

    def __call__(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        """Return the similarities, 0 to 1, of the pairs of texts i and j, shape (m,).

        Raises ValueError or IndexError for numbers that are none, or of no text.
        """
        i, j = (indices(side, len(self), "Texts") for side in (i, j))
        same_length(i, j)
        shapes = self._widths[i] * (self._tokens.shape[1] + 1) + self._widths[j]
        order = np.argsort(shapes, kind="stable")
        found = np.empty(i.size)
        for alike in np.split(order, np.flatnonzero(np.diff(shapes[order])) + 1):
            p, q = (self._widths[side[alike]].max(initial=1) for side in (i, j))
            step = max(1, STRIP // (p * q))
            for k in range(0, alike.size, step):
                at = alike[k : k + step]
                found[at] = self._strip(i[at], j[at], p, q)
        return np.minimum(found, 1, out=found)  # against rounding

    def _strip(self, a: np.ndarray, b: np.ndarray, p: int, q: int) -> np.ndarray:
        """Return the similarities of pairs of texts of at most p and q words."""
        words_a, words_b = self._tokens[:, :p][a], self._tokens[:, :q][b]
        theta = self._theta[words_a[:, :, None], words_b[:, None]]
        of_a = np.einsum("kw,kw->k", self._weights[:, :p][a], theta.max(axis=2))
        of_b = np.einsum("kw,kw->k", self._weights[:, :q][b], theta.max(axis=1))
        return (of_a + of_b) / 2


def _likeness(words: list[str], cut: float) -> np.ndarray:
    """Return θ of all words, and of a last one that is like none."""
    try:
        from rapidfuzz.distance import JaroWinkler
        from rapidfuzz.process import cdist
    except ImportError as error:
        raise ImportError(
            "SoftTokens needs rapidfuzz: pip install simlib[text]", name="rapidfuzz"
        ) from error
    V = len(words)
    theta = np.zeros((V + 1, V + 1), np.float32)
    scorer = JaroWinkler.similarity
    theta[:V, :V] = cdist(words, words, scorer=scorer, score_cutoff=cut, workers=1)
    return theta
