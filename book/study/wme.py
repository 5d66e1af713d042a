r"""Word Mover's Embedding: features of documents from distances to random documents.

.. math::
    z_r(x) = \frac{1}{\sqrt{R}} \, e^{-\gamma \, \mathrm{WMD}(x, \omega_r)} , \qquad
    \langle z(x), z(y) \rangle \approx
    \mathbb{E}_\omega \, e^{-\gamma (\mathrm{WMD}(x, \omega) + \mathrm{WMD}(\omega, y))}

Equation :eq:`eq:wme` of the book. The random document :math:`\omega_r` has 1 to
:math:`D_{\max}` random vectors of equal weight. The kernel of these features is
positive semidefinite and is not :math:`e^{-\gamma \, \mathrm{WMD}(x, y)}`: by the
triangle inequality it is smaller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from simlib._checks import inside, whole_number
from simlib.text.bags import common_exponent
from simlib.text.wmd import (
    as_word_vectors,
    bags_of_words,
    pairwise_word_mover_distances,
)

__all__ = ["WordMoversEmbedding"]


class WordMoversEmbedding(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Features of documents by their Word Mover's Distance to random documents.

    Parameters
    ----------
    vectors : mapping from str to array of shape (d,)
        Word vectors. A `simlib.datasets.WordVectors` is used as it is.
    n_components : int, default=512
        Number R of random documents and of features. A larger number adds features and
        keeps the first, up to their scale.
    gamma : float, default=1.0
        Positive factor of the distance. The authors search 0.01 to 1.58.
    max_length : int, default=9
        Most words D_max of a random document. The authors search 3 to 21.
    random_state : int, RandomState or None
        Source of randomness.
    n_jobs : int, optional
        Processes of joblib, each with some documents.

    Attributes
    ----------
    components_ : list of R arrays of shape (length, d)
        The random documents.

    See Also
    --------
    simlib.SimilarityFeatures : features by distances to some of the documents, which
        approximate a kernel of the distance itself.

    Notes
    -----
    A document costs R evaluations of the distance in `transform`, and none in `fit`;
    random documents are short.

    The coordinates of a random vector are uniform between the least and the greatest of
    all vectors of words of the fitted documents; then it is scaled to the root mean
    square length of these. In many dimensions it is nearly orthogonal to every word: a
    linear classifier on the features needs a weak penalty.

    Source: Wu et al. (2018), and their code github.com/IBM/WordMoversEmbeddings, which
    also has weights by inverse document frequency, and plain `distances`.

    Examples
    --------
    >>> import numpy as np
    >>> from study.wme import WordMoversEmbedding
    >>> vectors = {"cat": [1.0, 0.0], "dog": [0.8, 0.6], "car": [0.0, -1.0]}
    >>> documents = [["cat", "dog"], ["dog", "cat"], ["car"]]
    >>> embedding = WordMoversEmbedding(vectors, n_components=4, random_state=0)
    >>> Z = embedding.fit_transform(documents)
    >>> np.allclose(Z, np.exp(-embedding.distances(documents)) / 2)
    True
    """

    def __init__(
        self,
        vectors: Mapping[str, ArrayLike],
        n_components: int = 512,
        *,
        gamma: float = 1.0,
        max_length: int = 9,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ):
        self.vectors = vectors
        self.n_components = n_components
        self.gamma = gamma
        self.max_length = max_length
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Sequence[Sequence[str]], y: Any = None) -> Self:
        """Draw the random documents; evaluates no distance.

        Of the documents X only the extent of their vectors is used; y is ignored.

        Raises
        ------
        ValueError
            `n_components` or `max_length` is no positive integer, `gamma` no positive
            number, there is no document, no word of one has a vector, that of one is
            not finite, or those of all words are zero.
        """
        self._check_options()
        _, known = self._bags(X)
        exponent = common_exponent(known)
        points = np.ldexp(known.astype(float), -exponent)
        low, high = points.min(), points.max()
        length = np.sqrt(np.square(points).sum(axis=1).mean())
        if not length > 0:
            raise ValueError(
                "The vectors of all words of these documents are zero, so random "
                "documents of their length have no direction: give other vectors."
            )
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(2**31)
        rng = np.random.default_rng(seed)
        self.components_ = []
        for _ in range(self.n_components):
            size = (rng.integers(1, self.max_length + 1), known.shape[1])
            directions = rng.uniform(low, high, size)
            norms = np.linalg.norm(directions, axis=1, keepdims=True)
            component = np.ldexp(length * (directions / norms), exponent)
            self.components_.append(component.astype(known.dtype))
        return self

    def transform(self, X: Sequence[Sequence[str]]) -> np.ndarray:
        """Return the features of n documents, shape (n, n_components).

        Raises
        ------
        sklearn.exceptions.NotFittedError, ValueError
            Before `fit`; there is no document, no word of one has a vector, or that of
            one is not finite.
        """
        distances = self.distances(X)
        return np.exp(-self.gamma * distances) / np.sqrt(distances.shape[1])

    def distances(self, X: Sequence[Sequence[str]]) -> np.ndarray:
        """Return the distances of documents to the random ones, (n, n_components).

        All of the work of `transform`, and the errors: another `gamma` needs no others,
        and a smaller `n_components` the first columns.
        """
        check_is_fitted(self)
        bags, known = self._bags(X)
        lengths = np.array([len(component) for component in self.components_])
        ends = np.cumsum([0, *lengths])
        points = np.concatenate([known, *self.components_])
        weights = np.repeat(1 / lengths, lengths)
        others = csr_array(
            (weights, np.arange(len(known), len(points)), ends),
            shape=(lengths.size, len(points)),
        )
        bags.resize(bags.shape[0], len(points))
        return pairwise_word_mover_distances(bags, others, points, n_jobs=self.n_jobs)

    def _bags(self, X: Sequence[Sequence[str]]) -> tuple[csr_array, np.ndarray]:
        """Return documents as bags over a few vectors, and these vectors."""
        vectors = as_word_vectors(self.vectors)
        bags = bags_of_words(X, vectors)
        if not bags.shape[0]:
            raise ValueError("At least one document is needed; got none.")
        used, words = np.unique(bags.indices, return_inverse=True)
        shape = (bags.shape[0], used.size)
        return csr_array((bags.data, words, bags.indptr), shape), vectors.array[used]

    def _check_options(self) -> None:
        whole_number(self.n_components, "n_components", 1)
        whole_number(self.max_length, "max_length", 1)
        inside(self.gamma, "gamma", 0)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
