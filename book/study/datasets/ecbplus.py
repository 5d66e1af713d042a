"""ECB+: mentions of events and entities in news, with gold clusters and scores."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.special import expit

from simlib._checks import one_of, whole_number
from study.datasets.registry import find

KINDS = ("event", "entity")
SPLITS = ("train", "dev", "test")
DIMENSIONS = 32  # of each vector of a generated mention


@dataclass(frozen=True, eq=False)
class Mentions:
    """The mentions of one kind in one part of a corpus, by topic and document.

    Attributes
    ----------
    texts : list of str
        The words of the n mentions.
    sentences : list of list of str
        The tokens of the sentence of each.
    spans : ndarray of int, shape (n, 2)
        First and last token in the sentence. What lies between them is part of the
        mention, but for a few that are in pieces.
    documents : ndarray of str, shape (n,)
        The document of each.
    topics : ndarray of int, shape (n,)
        The topic of each, rising.
    clusters : ndarray of int, shape (n,)
        Mentions of the same event or entity have the same number.
    embeddings : ndarray of float32, shape (n, 768)
        The vector of the mention in its sentence, then that of its text alone.
    scores : dict of int to ndarray of float64, shape (m, m)
        For each topic what a trained network says of every ordered pair of its m
        mentions, in their order, between 0 and 1. Not symmetric. None for "train".

    Examples
    --------
    >>> from study.datasets import load_ecbplus
    >>> mentions = load_ecbplus("event", "test")
    >>> mentions.texts[0], " ".join(mentions.sentences[0][:3])
    ('charged', 'Polygamist prophet Warren')
    """

    texts: list[str]
    sentences: list[list[str]]
    spans: np.ndarray
    documents: np.ndarray
    topics: np.ndarray
    clusters: np.ndarray
    embeddings: np.ndarray
    scores: dict[int, np.ndarray]

    def of_topics(self, topics: ArrayLike) -> Mentions:
        """Return the mentions of some topics, by their numbers."""
        wanted: Any = topics
        if isinstance(topics, Iterable) and not isinstance(topics, np.ndarray):
            wanted = list(topics)
        rows = np.flatnonzero(np.isin(self.topics, wanted))
        return Mentions(
            texts=[self.texts[row] for row in rows],
            sentences=[self.sentences[row] for row in rows],
            spans=self.spans[rows],
            documents=self.documents[rows],
            topics=self.topics[rows],
            clusters=np.unique(self.clusters[rows], return_inverse=True)[1],
            embeddings=self.embeddings[rows],
            scores={t: K for t, K in self.scores.items() if t in self.topics[rows]},
        )


def load_ecbplus(kind: str = "event", split: str = "test") -> Mentions:
    """Load the gold `Mentions` of ECB+ in its validated sentences.

    Source: Cybulska and Vossen (2014). Errors are those of `find`, and ValueError for
    another kind or part.

    Parameters
    ----------
    kind : {"event", "entity"}
        What is mentioned. Times and places count as entities.
    split : {"train", "dev", "test"}
        25, 8 and 10 topics: 3808, 1245 and 1780 mentions of events, 4758, 1476 and 2055
        of entities.

    Examples
    --------
    >>> from study.datasets import load_ecbplus
    >>> mentions = load_ecbplus("entity", "dev")
    >>> mentions.embeddings.shape, mentions.scores[5].shape
    ((1476, 768), (140, 140))
    """
    one_of(kind, KINDS, "kind")
    one_of(split, SPLITS, "split")
    records = _records("ecbplus_mentions.jsonl.gz")
    rows = [
        row
        for row, record in enumerate(records)
        if record["kind"] == kind and record["split"] == split
    ]
    records = [records[row] for row in rows]
    tokens = {
        (sentence["doc"], sentence["sent"]): sentence["tokens"]
        for sentence in _records("ecbplus_sentences.jsonl.gz")
    }
    with np.load(find("ecbplus", "mention_embeddings.npz")) as stored:
        parts = [stored[name][rows] for name in ("span", "text")]
    topics = np.array([record["topic"] for record in records])
    scores = {}
    if split != "train":
        with np.load(find("ecbplus", f"pair_scores_{kind}.npz")) as stored:
            for topic in np.unique(topics).tolist():
                scores[topic] = stored[f"{split}_{topic}"].astype(np.float64)
    names = [record["cluster"] for record in records]
    return Mentions(
        texts=[record["text"] for record in records],
        sentences=[tokens[record["doc"], record["sent"]] for record in records],
        spans=np.array([(record["start"], record["end"]) for record in records]),
        documents=np.array([record["doc"] for record in records]),
        topics=topics,
        clusters=np.unique(names, return_inverse=True)[1],
        embeddings=np.hstack(parts).astype(np.float32),
        scores=scores,
    )


def _records(file: str) -> list[dict[str, Any]]:
    with gzip.open(find("ecbplus", file), "rt", encoding="utf8") as lines:
        return [json.loads(line) for line in lines]


def planted_mentions(
    n_topics: int = 10, size: int = 120, *, rng: int | np.random.Generator | None = None
) -> Mentions:
    """Make mentions whose clusters are known, with vectors and a noisy scorer.

    In each topic a mention joins one of the clusters there are with a probability that
    grows with their sizes, or is the first of a new one. Its vector is that of its
    topic and its cluster, with noise. The scorer compares vectors with a noise of
    their own, which depends on the order of the two.

    Parameters
    ----------
    n_topics : int, default=10
        Topics, numbered from 0; one at least.
    size : int, default=120
        Mentions of each, two at least.
    rng : int, Generator or None
        Source of randomness.

    Returns
    -------
    Mentions
        Two vectors of 32 dimensions in place of two of 384; the words are numbers.

    Examples
    --------
    >>> from study.datasets import planted_mentions
    >>> mentions = planted_mentions(3, 50, rng=0)
    >>> mentions.embeddings.shape, mentions.scores[2].shape
    ((150, 64), (50, 50))
    """
    n_topics, size = (
        whole_number(n_topics, "n_topics", 1),
        whole_number(size, "size", 2),
    )
    rng = np.random.default_rng(rng)
    clusters: list[np.ndarray] = []
    vectors, scores = [], {}
    for topic in range(n_topics):
        labels = np.zeros(size, dtype=int)
        for k in range(1, size):
            fresh = rng.random() < 0.35
            labels[k] = labels[:k].max() + 1 if fresh else rng.choice(labels[:k])
        centres = rng.standard_normal((labels.max() + 1, DIMENSIONS))
        centres += rng.standard_normal(DIMENSIONS)
        exact = centres[labels]
        read = [exact + 0.5 * rng.standard_normal(exact.shape) for _ in range(2)]
        distances = cdist(*read, "sqeuclidean") / DIMENSIONS
        noise = rng.standard_normal((size, size))
        scores[topic] = expit(6 * (1.2 - distances) + 0.7 * noise)
        seen = [exact + 0.7 * rng.standard_normal(exact.shape) for _ in range(2)]
        vectors.append(np.hstack(seen).astype(np.float32))
        clusters.append(labels + (max(map(np.max, clusters)) + 1 if clusters else 0))
    n = n_topics * size
    return Mentions(
        texts=[str(k) for k in range(n)],
        sentences=[[str(k)] for k in range(n)],
        spans=np.zeros((n, 2), dtype=int),
        documents=np.arange(n).astype(str),
        topics=np.repeat(np.arange(n_topics), size),
        clusters=np.concatenate(clusters),
        embeddings=np.concatenate(vectors),
        scores=scores,
    )
