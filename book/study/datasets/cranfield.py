"""Queries and documents with judgements, a cross-encoder's scores and cheap vectors."""

from __future__ import annotations

import gzip
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from simlib._checks import whole_number
from simlib.datasets.generated import bundled_words
from study.datasets.registry import find
from study.datasets.selection import selection

TRAINED = 112  # queries 1 to 112 are those that the network was trained on
TOPICS = 24  # of generated texts
WORDS = 15  # of each topic


@dataclass(frozen=True, eq=False)
class JudgedCollection:
    """Queries and documents, which of them belong together, and what a network says.

    Attributes
    ----------
    queries, documents : list of str
        The texts of the m queries and the n documents.
    scores : ndarray of float64, shape (m, n)
        The network's logit for each query with each document.
    query_vectors, document_vectors : ndarray of float32, shapes (m, d) and (n, d)
        Unit vectors of a bi-encoder; their inner products are the cheap similarity.
    relevant : ndarray of bool, shape (m, n)
        Whether people found the document relevant.
    trained : ndarray of bool, shape (m,)
        Whether the network was trained on judgements of the query.

    Examples
    --------
    >>> from study.datasets import load_cranfield
    >>> data = load_cranfield()
    >>> data.scores.shape, int(data.relevant.sum()), int(data.trained.sum())
    ((110, 1400), 782, 80)
    """

    queries: list[str]
    documents: list[str]
    scores: np.ndarray
    query_vectors: np.ndarray
    document_vectors: np.ndarray
    relevant: np.ndarray
    trained: np.ndarray

    def take(self, queries: ArrayLike, documents: ArrayLike) -> JudgedCollection:
        """Return some queries and some documents, by their numbers or by masks.

        Others raise ValueError or IndexError.
        """
        rows = selection(queries, len(self.queries), "Queries")
        columns = selection(documents, len(self.documents), "Documents")
        return JudgedCollection(
            queries=[self.queries[row] for row in rows],
            documents=[self.documents[column] for column in columns],
            scores=self.scores[np.ix_(rows, columns)],
            query_vectors=self.query_vectors[rows],
            document_vectors=self.document_vectors[columns],
            relevant=self.relevant[np.ix_(rows, columns)],
            trained=self.trained[rows],
        )


def load_cranfield() -> JudgedCollection:
    """Load the 1400 abstracts of Cranfield and the 110 queries that have scores.

    Of 225 queries the network, a weak re-ranker, has read 110 with all abstracts. Two
    of the abstracts are empty. Source of texts and judgements: Cleverdon (1967). Errors
    are those of `find`.

    Examples
    --------
    >>> from study.datasets import load_cranfield
    >>> data = load_cranfield()
    >>> data.queries[2]
    'what problems of heat conduction in composite slabs have been solved so far .'
    """
    with np.load(find("cranfield", "cross_encoder_K.npz")) as stored:
        scores, numbers = stored["K"].astype(np.float64), stored["query"].astype(int)
    with np.load(find("cranfield", "bi_encoder.npz")) as stored:
        vectors = [stored[name].astype(np.float32) for name in ("queries", "documents")]
    queries = [line.split("\t")[2] for line in _lines("queries.tsv.gz")]
    documents = [line.split("\t")[1].strip() for line in _lines("documents.tsv.gz")]
    relevant = np.zeros((len(queries), len(documents)), dtype=bool)
    for line in _lines("qrels.tsv.gz"):
        query, document, grade = map(int, line.split("\t"))
        relevant[query - 1, document - 1] = grade >= 1
    rows = numbers - 1
    return JudgedCollection(
        queries=[queries[row] for row in rows],
        documents=documents,
        scores=scores,
        query_vectors=vectors[0][rows],
        document_vectors=vectors[1],
        relevant=relevant[rows],
        trained=numbers <= TRAINED,
    )


def _lines(file: str) -> list[str]:
    with gzip.open(find("cranfield", file), "rt", encoding="utf8") as lines:
        return lines.read().splitlines()


def planted_collection(
    n_queries: int = 60,
    n_documents: int = 500,
    *,
    rng: int | np.random.Generator | None = None,
) -> JudgedCollection:
    """Make queries and documents of known topics, with a network and a bi-encoder.

    A text is a mixture of a few topics, and its words are drawn from theirs. Relevant
    to a query is the hundredth part of the documents whose mixtures are most like its
    own, by a noisy judgement. The network's scores are bilinear in the mixtures, with a
    part of ReLU units, a preference for some documents, and noise; the bi-encoder sees
    mixtures with another noise, and so explains a part of the scores.

    Parameters
    ----------
    n_queries, n_documents : int
        Two at least of each: else ValueError.
    rng : int, Generator or None
        Source of randomness.

    Returns
    -------
    JudgedCollection
        Three quarters of the queries count as trained on.

    Examples
    --------
    >>> from study.datasets import planted_collection
    >>> data = planted_collection(20, 300, rng=0)
    >>> data.scores.shape, int(data.relevant.sum(axis=1).max())
    ((20, 300), 3)
    """
    m = whole_number(n_queries, "n_queries", 2)
    n = whole_number(n_documents, "n_documents", 2)
    rng = np.random.default_rng(rng)
    mixtures = rng.dirichlet(np.full(TOPICS, 0.15), m + n)
    exact = _units(np.sqrt(mixtures))
    Q, D = exact[:m], exact[m:]
    names = rng.permutation(bundled_words())[: TOPICS * WORDS].reshape(TOPICS, WORDS)
    lengths = np.repeat([8, 60], [m, n])
    texts = [
        " ".join(names[topic, word] for topic, word in zip(
            rng.choice(TOPICS, length, p=mixture),
            rng.integers(WORDS, size=length),
            strict=True,
        ))
        for length, mixture in zip(lengths, mixtures, strict=True)
    ]  # fmt: skip
    seen = _units(exact + 0.06 * rng.standard_normal(exact.shape))
    bilinear = np.eye(TOPICS) + 0.1 * rng.standard_normal((TOPICS, TOPICS))
    units = [rng.standard_normal((TOPICS, 30)) for _ in range(2)]
    hidden = np.maximum((Q @ units[0])[:, None] + (D @ units[1])[None] - 1, 0)
    scores = 5 * (Q @ bilinear @ D.T) + hidden @ rng.standard_normal(30) / 10
    scores += 0.3 * rng.standard_normal(n) + 0.1 * rng.standard_normal((m, n)) - 2
    relevance = Q @ D.T + 0.1 * rng.standard_normal((m, n))
    least = np.sort(relevance, axis=1)[:, -max(1, n // 100), None]
    return JudgedCollection(
        queries=texts[:m],
        documents=texts[m:],
        scores=scores,
        query_vectors=seen[:m].astype(np.float32),
        document_vectors=seen[m:].astype(np.float32),
        relevant=relevance >= least,
        trained=np.arange(m) < 3 * m // 4,
    )


def _units(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
