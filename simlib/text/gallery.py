"""The similarity matrices on which the methods are compared, by name.

Real where the data is at hand (see `simlib.datasets`), else generated or made from what
scikit-learn ships; `Example.source` says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simlib import datasets
from simlib.similarity import Similarity

__all__ = ["NAMES", "Example", "load"]

NAMES = ("gaussian", "uniform", "twitter", "stsb", "mrpc", "rte", "edit")
GAMMA = 0.3  # exp(-GAMMA * distance) for the Word Mover's Distance
SEED = 20220222  # of the choice of items and of generated matrices


@dataclass(frozen=True, eq=False)
class Example:
    """A similarity matrix with its provenance."""

    name: str
    title: str
    source: str
    real: bool
    similarity: Similarity

    @cached_property
    def matrix(self) -> np.ndarray:
        """The whole matrix; evaluates what is not known yet."""
        return self.similarity.columns(np.arange(self.similarity.n))


def load(name: str, n: int | None = None, *, n_jobs: int | None = None) -> Example:
    """Return one of the `NAMES`.

    Parameters
    ----------
    name : str
        "gaussian": Z Z^T of n x n normal numbers. "uniform": the same of numbers in
        [0, 1). "twitter": exp(-0.3 WMD) of tweets. "stsb", "mrpc", "rte": mean of both
        orders of a cross-encoder's output on GLUE sentences. "edit": exp(-2 d) of
        words, with d the edit distance over the length of the longer word.
    n : int, optional
        Number of items: the first n of the set in its fixed order, or all where there
        are fewer. None means all tweets or sentences, and 1000 of everything else.
    n_jobs : int, optional
        Processes that evaluate Word Mover's Distances.

    Raises
    ------
    ValueError
        No such name, or n < 1.
    """
    if name not in NAMES:
        raise ValueError(f"No matrix is called {name!r}; there are {', '.join(NAMES)}.")
    if n is not None and n < 1:
        raise ValueError(f"n must be at least 1; got {n}.")
    if name in ("gaussian", "uniform"):
        return _generated(name, n or 1000)
    if name == "twitter":
        real = _present("twitter", "glove-twitter-25")
        return (_tweets if real else _digits)(n, n_jobs)
    if name == "edit":
        return _words(n)
    return _sentences(name, n) if _present(name) else _simulated(name, n or 1000)


def _present(*names: str) -> bool:
    return all(datasets.available(name) for name in names)


def _generated(name: str, n: int) -> Example:
    make = {"gaussian": datasets.gaussian_psd, "uniform": datasets.uniform_psd}[name]
    return Example(
        name=name,
        title=f"{name.capitalize()} PSD",
        source=f"generated: Z Zᵀ with {name} numbers",
        real=False,
        similarity=Similarity.from_matrix(make(n, rng=SEED)),
    )


def _tweets(n: int | None, n_jobs: int | None) -> Example:
    vectors = datasets.load_word_vectors("glove-twitter-25")
    documents = _some(datasets.load_twitter(vectors).documents, n)
    return Example(
        name="twitter",
        title="Twitter, WMD",
        source="tweets, GloVe-Twitter vectors of 25 dimensions",
        real=True,
        similarity=_word_mover_kernel(documents, vectors, n_jobs),
    )


def _digits(n: int | None, n_jobs: int | None) -> Example:
    documents, vectors, _ = datasets.bundled_documents()
    return Example(
        name="twitter",
        title="Digits, earth mover's",
        source="stand-in: scikit-learn's digit images as bags of pixels",
        real=False,
        similarity=_word_mover_kernel(_some(documents, n or 1000), vectors, n_jobs),
    )


def _word_mover_kernel(
    documents: Sequence[list[str]], vectors: datasets.WordVectors, n_jobs: int | None
) -> Similarity:
    from simlib.text.wmd import WordMoverDistance

    distances = Similarity(documents, WordMoverDistance(vectors), n_jobs=n_jobs)
    return distances.map(lambda d: np.exp(-GAMMA * d))


def _sentences(name: str, n: int | None) -> Example:
    K = datasets.load_cross_encoder(name).matrix[:n, :n]
    return Example(
        name=name,
        title={"stsb": "STS-B", "mrpc": "MRPC", "rte": "RTE"}[name],
        source="GLUE sentences, cross-encoder, mean of both orders",
        real=True,
        similarity=Similarity.from_matrix((K + K.T) / 2),
    )


def _simulated(name: str, n: int) -> Example:
    kind = ("stsb", "mrpc", "rte").index(name)
    K = datasets.cross_encoder_like(n, rng=SEED + kind)
    return Example(
        name=name,
        title=f"Simulated cross-encoder {kind + 1}",
        source="stand-in: generated, low rank with six negative directions and noise",
        real=False,
        similarity=Similarity.from_matrix(K),
    )


def _words(n: int | None) -> Example:
    real = _present("words")
    words = datasets.load_words() if real else datasets.bundled_words()
    source = (
        "words of news and review corpora"
        if real
        else "stand-in: words of scikit-learn's data descriptions"
    )
    return Example(
        name="edit",
        title="Edit distance",
        source=source,
        real=real,
        similarity=Similarity(_some(words, n or 1000), _edit_similarity, batch="block"),
    )


def _edit_similarity(xs: Sequence[str], ys: Sequence[str]) -> np.ndarray:
    try:
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist
    except ImportError as error:
        raise ImportError(
            "Edit distances need rapidfuzz: pip install simlib[text]"
        ) from error
    distances = cdist(xs, ys, scorer=Levenshtein.normalized_distance, dtype=np.float64)
    return np.exp(-2 * distances)


def _some(items: Sequence, n: int | None) -> list:
    """Return the first n items of a fixed random order."""
    order = np.random.default_rng(SEED).permutation(len(items))
    return [items[k] for k in order[:n]]
