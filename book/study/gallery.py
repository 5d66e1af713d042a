"""The similarity matrices on which the methods are compared, by name.

Each is real where its data are at hand (see `study.datasets`); else a stand-in, made
from what scikit-learn ships or generated. ``Example.source`` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import cosine_similarity

from simlib._checks import one_of, whole_number
from simlib.biharmonic.geodesics import graph_distances, heat_geodesics
from simlib.datasets import (
    Mesh,
    WordVectors,
    bumpy_sphere,
    bundled_documents,
    bundled_words,
    cross_encoder_like,
    gaussian_psd,
    sigmoid_kernel,
    uniform_psd,
)
from simlib.lowrank.tall import read_only
from simlib.similarity import Similarity
from simlib.similarity.views import SimilarityMatrix
from simlib.text import bounds
from study import datasets

__all__ = ["FAMILIES", "NAMES", "TITLES", "Example", "companions", "load"]

FAMILIES = {
    "psd": ("gaussian", "uniform"),
    "wmd": ("twitter", "twitter_narrow", "twitter_squared", "docstrings"),
    "scorer": ("simulated", "pairs", "stsb", "mrpc", "rte"),
    "distance": ("swiss_roll", "cortex"),
    "sigmoid": ("sigmoid",),
    "edit": ("edit", "edit_plain"),
}
NAMES = tuple(name for names in FAMILIES.values() for name in names)
TITLES = {  # in figures; a stand-in has another
    "gaussian": "Gaussian PSD",
    "uniform": "Uniform PSD",
    "twitter": "Twitter, WMD",
    "twitter_narrow": "Twitter, WMD, narrow",
    "twitter_squared": "Twitter, WMD, squared",
    "docstrings": "Docstrings, WMD",
    "simulated": "Simulated cross-encoder",
    "pairs": "Digit pairs, network",
    "stsb": "STS-B",
    "mrpc": "MRPC",
    "rte": "RTE",
    "swiss_roll": "Swiss roll, shortest paths",
    "cortex": "Cortex, geodesic",
    "sigmoid": "Sigmoid kernel",
    "edit": "Edit distance",
    "edit_plain": "Edit distance, plain",
}
GAMMA = 0.3  # exp(-GAMMA * distance) for the Word Mover's Distance
SEED = 20220222  # of the choice of items and of generated matrices


@dataclass(frozen=True, eq=False)
class Example:
    """A similarity matrix with its provenance.

    Attributes
    ----------
    name, title, source : str
        One of `NAMES`, its name in figures, what it is made of.
    real : bool
        Computed from real data: not generated and no stand-in.
    similarity : SimilarityMatrix
        The matrix, one call for an unordered pair.

    Examples
    --------
    >>> from study import gallery
    >>> example = gallery.load("gaussian", 100)
    >>> example.title, example.family, example.real
    ('Gaussian PSD', 'psd', False)
    """

    name: str
    title: str
    source: str
    real: bool
    similarity: SimilarityMatrix

    @property
    def family(self) -> str:
        """The key of `FAMILIES` under which the name stands."""
        return next(key for key, names in FAMILIES.items() if self.name in names)

    @cached_property
    def matrix(self) -> np.ndarray:
        """The whole matrix; evaluates what is not known yet."""
        return read_only(self.similarity.columns(np.arange(self.similarity.n)))


def load(name: str, n: int | None = None, *, n_jobs: int | None = None) -> Example:
    """Return one of the `NAMES`.

    Parameters
    ----------
    name : str
        One of these matrices.

        - "gaussian", "uniform": Z Z^T of n x n normal numbers, of numbers in [0, 1).
        - "twitter", "twitter_narrow", "twitter_squared": exp(-0.3 d), exp(-0.6 d),
          exp(-(0.3 d)^2) of the Word Mover's Distance of tweets.
        - "docstrings": exp(-d) of docstrings of NumPy, SciPy and scikit-learn.
        - "simulated": generated with the spectrum of a cross-encoder.
        - "pairs": the probability a small neural network gives that two images show
          the same digit, mean of both orders.
        - "stsb", "mrpc", "rte": a cross-encoder's output on GLUE sentences, mean of
          both orders.
        - "swiss_roll": shortest paths in the graph of 8 nearest neighbours of 1500
          points on a swiss roll. A matrix of distances, as the next.
        - "cortex": heat distances among vertices of a cortical surface, mean of both
          orders.
        - "sigmoid": tanh of inner products.
        - "edit", "edit_plain": exp(-2 d / m) and exp(-d) of words, d their edit
          distance and m the length of the longer one.
    n : int, optional
        Number of items: the first n of the set in its fixed order, or all where there
        are fewer. None means all tweets or sentences, and 1000 of everything else.
    n_jobs : int, optional
        Processes that evaluate Word Mover's Distances.

    Returns
    -------
    Example
        Of which nothing is evaluated yet, but for matrices that are made whole. Within
        a process the matrices of tweets share the distances known.

    Raises
    ------
    ValueError
        No such name, or n < 1.
    ImportError
        POT, rapidfuzz or potpourri3d is missing; the message names the extra.

    Examples
    --------
    >>> from study import gallery
    >>> gallery.load("swiss_roll", 100).similarity
    Similarity(100 items, symmetric, 0 calls)
    """
    n = _checked(name, n)
    return Example(name, *_MAKERS[name](name, n, n_jobs))


def companions(name: str, n: int | None = None) -> dict[str, SimilarityMatrix]:
    """Return cheap similarities and distances of the same items, for `anchored`.

    Parameters
    ----------
    name : str
        One of the `NAMES`.

        - "twitter", "docstrings" and their like: "centroid distance" and "relaxed
          distance", bounds of the Word Mover's Distance.
        - "stsb", "mrpc", "rte": "bi-encoder cosine", with data only.
        - "pairs": "pixel cosine" of the images.
        - "swiss_roll", "cortex": "Euclidean distance".
        - "edit", "edit_plain": "q-gram distance", the bound of the edit distance in
          question.
        - of the others nothing.
    n : int, optional
        Number of items, as in `load`, whose errors these are.

    Examples
    --------
    >>> from simlib import anchored
    >>> from study import gallery
    >>> cheap = gallery.companions("edit", 200)["q-gram distance"]
    >>> answer = anchored(gallery.load("edit", 200).similarity, 10, cheap, rng=0)
    >>> answer.weight
    1.0
    """
    n = _checked(name, n)
    makers = {
        "wmd": _bounds,
        "scorer": _cosines,
        "distance": _euclidean_distances,
        "edit": _qgram_distances,
    }
    family = next(key for key, names in FAMILIES.items() if name in names)
    return makers[family](name, n) if family in makers else {}


def _bounds(name: str, n: int | None) -> dict[str, SimilarityMatrix]:
    from simlib.text.wmd import bags_of_words

    if name == "docstrings":
        documents, vectors = _docstring_documents(n)
    elif _present("twitter", "glove-twitter-25"):
        documents, vectors = _tweet_documents(n)
    else:
        documents, vectors = _digit_documents(n)
    bags = bags_of_words(documents, vectors)
    return {
        f"{key} distance": _companion(bags, partial(function, points=vectors.array))
        for key, function in (
            ("centroid", bounds.centroid_distances),
            ("relaxed", bounds.relaxed_word_mover_distances),
        )
    }


def _cosines(name: str, n: int | None) -> dict[str, SimilarityMatrix]:
    if name == "pairs":
        images = datasets.bundled_digit_pairs()[0][: n or 1000]
        return {"pixel cosine": _companion(images, cosine_similarity)}
    if name == "simulated" or not _present(name):
        return {}
    embeddings = datasets.load_cross_encoder(name).embeddings[:n].astype(float)
    return {"bi-encoder cosine": _companion(embeddings, cosine_similarity)}


def _euclidean_distances(name: str, n: int | None) -> dict[str, SimilarityMatrix]:
    if name == "swiss_roll":
        points = _swiss_roll_points()[: n or 1000]
    else:
        mesh, sources = _mesh(n)
        points = mesh.vertices[sources]
    return {"Euclidean distance": _companion(points, cdist)}


def _qgram_distances(name: str, n: int | None) -> dict[str, SimilarityMatrix]:
    normalized = name == "edit"
    distances = partial(bounds.qgram_distances, normalized=normalized)
    return {"q-gram distance": _companion(_some_words(n), distances)}


def _companion(items: ArrayLike, function: Callable[..., np.ndarray]) -> Similarity:
    return Similarity(items, function, batch="block")


def _checked(name: str, n: int | None) -> int | None:
    one_of(name, NAMES, "The name of a matrix")
    return None if n is None else whole_number(n, "n", 1)


# Each of the following makes some matrices of one kind from a name of theirs, n and
# n_jobs, and returns their title, source, whether they are real, and the similarity.
_Parts = tuple[str, str, bool, SimilarityMatrix]


def _generated(name: str, n: int | None, n_jobs: int | None) -> _Parts:
    make, how = {
        "gaussian": (gaussian_psd, "Z Zᵀ with gaussian numbers"),
        "uniform": (uniform_psd, "Z Zᵀ with uniform numbers"),
        "sigmoid": (sigmoid_kernel, "tanh of inner products of normal vectors"),
    }[name]
    K = make(n or 1000, rng=SEED)
    return TITLES[name], f"generated: {how}", False, Similarity.from_matrix(K)


# gamma and power of exp(-(gamma * distance)^power)
_TWEETS = {
    "twitter": (GAMMA, 1),
    "twitter_narrow": (2 * GAMMA, 1),
    "twitter_squared": (GAMMA, 2),
}
# Pixels are nearer to each other than word vectors.
_DIGITS = {
    "twitter": (GAMMA, 1),
    "twitter_narrow": (8 * GAMMA, 1),
    "twitter_squared": (4 * GAMMA, 2),
}


def _twitter(name: str, n: int | None, n_jobs: int | None) -> _Parts:
    if real := _present("twitter", "glove-twitter-25"):
        gamma, power = _TWEETS[name]
        title, distances = TITLES[name], _tweets(n, n_jobs)
        source = "tweets, GloVe-Twitter vectors of 25 dimensions"
    else:
        gamma, power = _DIGITS[name]
        title = TITLES[name].replace("Twitter, WMD", "Digits, earth mover's")
        distances = _digits(n, n_jobs)
        source = "stand-in: scikit-learn's digit images as bags of pixels"
    return title, source, real, _kernel(distances, gamma, power)


def _docstrings(name: str, n: int | None, n_jobs: int | None) -> _Parts:
    distances = _word_mover_distances(*_docstring_documents(n), n_jobs)
    source = "docstrings of NumPy, SciPy and scikit-learn, vectors from the same"
    return TITLES[name], source, True, _kernel(distances, 1)


def _kernel(
    distances: SimilarityMatrix, gamma: float, power: int = 1
) -> SimilarityMatrix:
    return distances.fork().map(lambda d: np.exp(-((gamma * d) ** power)))


@cache
def _tweets(n: int | None, n_jobs: int | None) -> SimilarityMatrix:
    return _word_mover_distances(*_tweet_documents(n), n_jobs)


@cache
def _digits(n: int | None, n_jobs: int | None) -> SimilarityMatrix:
    return _word_mover_distances(*_digit_documents(n), n_jobs)


# Documents with vectors of their words.
_Documents = tuple[list[list[str]], WordVectors]


def _tweet_documents(n: int | None) -> _Documents:
    vectors = datasets.load_word_vectors("glove-twitter-25")
    return _some(datasets.load_twitter(vectors).documents, n), vectors


def _digit_documents(n: int | None) -> _Documents:
    documents, vectors, _ = bundled_documents()
    return _some(documents, n or 1000), vectors


def _docstring_documents(n: int | None) -> _Documents:
    documents, vectors, _ = datasets.bundled_docstrings()
    return _some(documents, n or 1000), vectors


def _word_mover_distances(
    documents: Sequence[list[str]], vectors: WordVectors, n_jobs: int | None
) -> Similarity:
    from simlib.text.wmd import WordMoverDistance

    return Similarity(documents, WordMoverDistance(vectors), n_jobs=n_jobs)


def _sentences(name: str, n: int | None, n_jobs: int | None) -> _Parts:
    if not _present(name):
        return _simulated(name, n, n_jobs)
    K = datasets.load_cross_encoder(name).matrix[:n, :n]
    source = "GLUE sentences, cross-encoder, mean of both orders"
    return TITLES[name], source, True, _mean_of_both_orders(K)


def _simulated(name: str, n: int | None, n_jobs: int | None) -> _Parts:
    kind = ("stsb", "mrpc", "rte", "simulated").index(name)
    K = cross_encoder_like(n or 1000, rng=SEED + kind)
    title, source = TITLES["simulated"], "generated: "
    if name != "simulated":
        title, source = f"{title} {kind + 1}", "stand-in: generated, "
    source += "low rank with six negative directions and noise"
    return title, source, False, Similarity.from_matrix(K)


def _pairs(name: str, n: int | None, n_jobs: int | None) -> _Parts:
    images, scorer, _ = datasets.bundled_digit_pairs()
    images = images[: n or 1000]
    K = scorer(images, images)
    source = "pairs of scikit-learn's digit images, a network, mean of both orders"
    return TITLES[name], source, True, _mean_of_both_orders(K)


def _swiss_roll(name: str, n: int | None, n_jobs: int | None) -> _Parts:
    from sklearn.neighbors import kneighbors_graph

    points = _swiss_roll_points()
    sources = np.arange(len(points))[: n or 1000]
    graph = kneighbors_graph(points, 8, mode="distance")
    D = graph_distances(graph, sources)[sources]
    source = "generated: shortest paths between points on a swiss roll"
    return TITLES[name], source, False, _mean_of_both_orders(D)


def _swiss_roll_points() -> np.ndarray:
    from sklearn.datasets import make_swiss_roll

    return make_swiss_roll(1500, random_state=SEED)[0]


def _cortex(name: str, n: int | None, n_jobs: int | None) -> _Parts:
    real = _present("cortex")
    if real:
        title = TITLES[name]
        source = "heat distances on a cortical surface of 7502 vertices"
    else:
        title = "Bumpy sphere, geodesic"
        source = "stand-in: heat distances on a generated surface"
    mesh, sources = _mesh(n)
    D = heat_geodesics(mesh.vertices, mesh.faces, sources)[sources]
    return title, source, real, _mean_of_both_orders(D)


def _mesh(n: int | None) -> tuple[Mesh, list[int]]:
    """Return a surface, and n of its vertices."""
    mesh = datasets.load_cortex() if _present("cortex") else bumpy_sphere()
    return mesh, _some(range(len(mesh.vertices)), n or 1000)


def _words(name: str, n: int | None, n_jobs: int | None) -> _Parts:
    if real := _present("words"):
        source = "words of news and review corpora"
    else:
        source = "stand-in: words of scikit-learn's data descriptions"
    function = {"edit": _edit_similarity, "edit_plain": _plain_edit_similarity}[name]
    return (
        TITLES[name],
        source,
        real,
        Similarity(_some_words(n), function, batch="block"),
    )


def _some_words(n: int | None) -> list[str]:
    load = datasets.load_words if _present("words") else bundled_words
    return _some(load(), n or 1000)


def _edit_similarity(xs: Sequence[str], ys: Sequence[str]) -> np.ndarray:
    return np.exp(-2 * _edit_distances(xs, ys, "normalized_distance"))


def _plain_edit_similarity(xs: Sequence[str], ys: Sequence[str]) -> np.ndarray:
    return np.exp(-_edit_distances(xs, ys, "distance"))


def _edit_distances(xs: Sequence[str], ys: Sequence[str], scorer: str) -> np.ndarray:
    try:
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist
    except ImportError as error:
        raise ImportError(
            "Edit distances need rapidfuzz: pip install simlib[text]"
        ) from error
    return cdist(xs, ys, scorer=getattr(Levenshtein, scorer), dtype=np.float64)


def _present(*names: str) -> bool:
    return all(datasets.available(name) for name in names)


def _some(items: Sequence, n: int | None) -> list:
    """Return the first n items of a fixed random order."""
    order = np.random.default_rng(SEED).permutation(len(items))
    return [items[k] for k in order[:n]]


def _mean_of_both_orders(K: np.ndarray) -> Similarity:
    return Similarity.from_matrix((K + K.T) / 2)


_MAKERS: dict[str, Callable[[str, int | None, int | None], _Parts]] = {
    **dict.fromkeys((*FAMILIES["psd"], *FAMILIES["sigmoid"]), _generated),
    **dict.fromkeys(_TWEETS, _twitter),
    **dict.fromkeys(("stsb", "mrpc", "rte"), _sentences),
    **dict.fromkeys(FAMILIES["edit"], _words),
    "docstrings": _docstrings,
    "simulated": _simulated,
    "pairs": _pairs,
    "swiss_roll": _swiss_roll,
    "cortex": _cortex,
}
