"""Labelled documents as lists of words, split into a training and a test part."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import re
import string
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from math import ceil
from sys import intern
from typing import Any, NamedTuple

import numpy as np

from study.datasets.registry import find
from study.datasets.selection import selection

SEED = 0  # of the split of a corpus whose source has none
TEST_SHARE = 0.3
RAREST = 5  # times that a word must occur in 20 Newsgroups to be kept
LONGEST = 500  # words of a message that are kept
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SUBJECT = re.compile(r"^subject:(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)


class Duplicates(NamedTuple):
    """How often documents of a corpus are the same but for the order of their words.

    Attributes
    ----------
    groups, documents, across, contradictory : int
        Sets of two or more such documents; documents in them; documents of the test
        part that equal one of the training part; sets with several labels.

    Examples
    --------
    >>> from study.datasets import load_twitter
    >>> duplicates = load_twitter().duplicates()
    >>> duplicates.groups, duplicates.documents, duplicates.across
    (119, 367, 93)
    """

    groups: int
    documents: int
    across: int
    contradictory: int


@dataclass(frozen=True, eq=False)
class Corpus:
    """Labelled documents.

    Attributes
    ----------
    documents : list of list of str
        The words of each of n documents, in order.
    labels : ndarray of str, shape (n,)
        The class of each document.
    texts : list of str
        What the words were taken from.
    train : ndarray of bool, shape (n,)
        Which documents are for training; the others are the test part.
    n_dropped : int
        How many documents had no word in the vocabulary and are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from study.datasets import Corpus
    >>> documents = [["a", "b"], ["b", "a"], ["c"]]
    >>> texts, train = ["a b", "b a", "c"], np.array([True, True, False])
    >>> corpus = Corpus(documents, np.array(["x", "x", "y"]), texts, train, n_dropped=0)
    >>> corpus.without_duplicates().documents
    [['a', 'b'], ['c']]
    """

    documents: list[list[str]]
    labels: np.ndarray
    texts: list[str]
    train: np.ndarray
    n_dropped: int

    def take(self, indices: Sequence[int] | np.ndarray) -> Corpus:
        """Return some documents, by numbers or by a mask, with the same `n_dropped`.

        Others raise ValueError or IndexError.
        """
        indices = selection(indices, len(self.train), "Documents")
        return Corpus(
            [self.documents[k] for k in indices],
            self.labels[indices],
            [self.texts[k] for k in indices],
            self.train[indices],
            self.n_dropped,
        )

    def duplicates(self) -> Duplicates:
        """Count the documents that are the same but for the order of their words.

        Their Word Mover's Distance is zero whatever the vectors.
        """
        groups = [group for group in self._groups() if len(group) > 1]
        return Duplicates(
            groups=len(groups),
            documents=sum(map(len, groups)),
            across=sum(
                int((~self.train[group]).sum())
                for group in groups
                if self.train[group].any()
            ),
            contradictory=sum(len(set(self.labels[group])) > 1 for group in groups),
        )

    def without_duplicates(self) -> Corpus:
        """Return one document of each set that `duplicates` counts, and all others.

        The first of the training part is kept, or else the first, with its label.
        """
        kept = [group[np.argmax(self.train[group])] for group in self._groups()]
        return self.take(np.sort(kept))

    def _groups(self) -> list[np.ndarray]:
        """Return the numbers of the documents by bag of words."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for number, words in enumerate(self.documents):
            groups.setdefault(tuple(sorted(words)), []).append(number)
        return [np.array(group) for group in groups.values()]


def load_twitter(vocabulary: Container[str] | None = None) -> Corpus:
    """Load the 3115 tweets as lists of words, punctuation deleted ("i'm" is "im").

    Three classes. The source has no split: 30 % at random, with seed 0 and before any
    are dropped, are the test part. Errors are those of `find`.

    Parameters
    ----------
    vocabulary : container of str, optional
        Keep these words only, and drop the documents left empty.

    Returns
    -------
    Corpus

    Examples
    --------
    >>> from study.datasets import load_twitter, load_word_vectors
    >>> corpus = load_twitter(load_word_vectors("glove-twitter-25"))
    >>> len(corpus.documents), corpus.n_dropped
    (3069, 46)
    """
    records = _records("twitter", "twitter.jsonl.xz")
    texts = [record["text"] for record in records]
    return _corpus(records, texts, map(_without_punctuation, texts), vocabulary)


def load_recipes(vocabulary: Container[str] | None = None) -> Corpus:
    """Load the 39774 recipes of 20 cuisines, a `Corpus` of the words of ingredients.

    By its counts the corpus that the papers call Recipe-L. Lower case, punctuation
    deleted, without the words of `load_stop_words`; 11933 at random, with seed 0, are
    the test part. Parameter and errors are those of `load_twitter`.

    Examples
    --------
    >>> from study.datasets import load_recipes
    >>> corpus = load_recipes()
    >>> corpus.documents[0][:4], str(corpus.labels[0])
    (['romaine', 'lettuce', 'black', 'olives'], 'greek')
    """
    records = _records("recipes", "recipes.jsonl.xz")
    texts = [", ".join(record["ingredients"]) for record in records]
    documents = _without(load_stop_words(), map(_without_punctuation, texts))
    return _corpus(records, texts, documents, vocabulary)


def load_ohsumed(vocabulary: Container[str] | None = None) -> Corpus:
    """Load 7400 medical abstracts in 23 classes of diseases, title first, a `Corpus`.

    The classes are the MeSH categories C01 to C23. Runs of letters, lower case, without
    the words of `load_stop_words`; 3357 abstracts for training and 4043 for the test.
    These are the documents with one label; the papers have 10 classes with 3999 and
    5153, so their accuracies cannot be matched. Parameter and errors are those of
    `load_twitter`.

    Examples
    --------
    >>> from study.datasets import load_ohsumed
    >>> corpus = load_ohsumed()
    >>> int(corpus.train.sum()), int((~corpus.train).sum())
    (3357, 4043)
    """
    records = _records("ohsumed", "ohsumed_single23.jsonl.xz")
    texts = [record["text"] for record in records]
    documents = _without(load_stop_words(), map(_letters, texts))
    return _corpus(records, texts, documents, vocabulary)


def load_newsgroups(vocabulary: Container[str] | None = None) -> Corpus:
    """Load the 18846 messages of 20 Newsgroups, sorted by date, as a `Corpus`.

    Subject and body; runs of letters, lower case, without the words of
    `load_stop_words` and those that occur fewer than 5 times; then of each message the
    500 words it has most often. 11314 messages for training and 7532 for the test; the
    papers' version lacks 25 of them. Parameter and errors are those of `load_twitter`.
    `sklearn.datasets.fetch_20newsgroups` has the messages as they are.

    Examples
    --------
    >>> from study.datasets import load_newsgroups
    >>> corpus = load_newsgroups()  # doctest: +SKIP
    >>> int(corpus.train.sum()), int((~corpus.train).sum())  # doctest: +SKIP
    (11314, 7532)
    """
    records = _records("newsgroups", "20news_bydate.jsonl.xz")
    texts = [_subject_and_body(record["text"]) for record in records]
    documents = list(map(_letters, texts))
    counts = Counter(chain.from_iterable(documents))
    rare = {word for word, count in counts.items() if count < RAREST}
    kept = _without(load_stop_words() | rare, documents)
    return _corpus(records, texts, kept, vocabulary, longest=LONGEST)


def load_banking77(
    vocabulary: Container[str] | None = None,
) -> tuple[Corpus, np.ndarray]:
    """Load 13083 questions to a bank with their 77 intents, and vectors of them.

    Runs of letters, lower case, without the words of `load_stop_words`; 10003 questions
    for training and then 3080 for the test. Source: Casanueva et al. (2020). Parameter
    and errors are those of `load_twitter`.

    Returns
    -------
    corpus : Corpus
        The questions.
    embeddings : ndarray of float32, shape (n, 384)
        Unit vectors of their texts by a bi-encoder.

    Examples
    --------
    >>> from study.datasets import load_banking77
    >>> corpus, embeddings = load_banking77()
    >>> corpus.texts[0], str(corpus.labels[0]), embeddings.shape
    ('I am still waiting on my card?', 'card_arrival', (13083, 384))
    """
    records = []
    for split in ("train", "test"):
        path = find("banking77", f"{split}.csv.gz")
        with gzip.open(path, "rt", encoding="utf8", newline="") as rows:
            for row in csv.DictReader(rows):
                records.append(row | {"split": split, "label": row["category"]})
    texts = [record["text"].strip() for record in records]
    documents = list(_without(load_stop_words(), map(_letters, texts)))
    vocabulary = _words_of(vocabulary)
    kept = [
        vocabulary is None or any(word in vocabulary for word in words)
        for words in documents
    ]
    with np.load(find("banking77", "bi_encoder.npz")) as stored:
        embeddings = stored["embeddings"][kept].astype(np.float32)
    return _corpus(records, texts, documents, vocabulary), embeddings


def load_stop_words() -> frozenset[str]:
    """Load the 115 words that the papers leave out of every corpus but the tweets.

    Errors are those of `find`.

    Examples
    --------
    >>> from study.datasets import load_stop_words
    >>> len(load_stop_words()), "the" in load_stop_words()
    (115, True)
    """
    return frozenset(find("stop-words", "stop_words_115.txt").read_text("utf8").split())


def _records(dataset: str, file: str) -> list[dict[str, Any]]:
    with lzma.open(find(dataset, file), "rt", encoding="utf8") as lines:
        return [json.loads(line) for line in lines]


def _without_punctuation(text: str) -> list[str]:
    return [intern(word) for word in text.lower().translate(_PUNCTUATION).split()]


def _letters(text: str) -> list[str]:
    return [intern(word) for word in re.findall("[a-z]+", text.lower())]


def _subject_and_body(message: str) -> str:
    headers, _, body = message.partition("\n\n")
    return "\n".join([*map(str.strip, _SUBJECT.findall(headers)), body])


def _without(
    words: Container[str], documents: Iterable[list[str]]
) -> Iterable[list[str]]:
    for document in documents:
        yield [word for word in document if word not in words]


def _corpus(
    records: list[dict[str, Any]],
    texts: list[str],
    documents: Iterable[list[str]],
    vocabulary: Container[str] | None,
    longest: int | None = None,
) -> Corpus:
    """Keep the words of the vocabulary, and the documents that have any."""
    vocabulary = _words_of(vocabulary)
    kept, bags = [], []
    for number, words in enumerate(documents):
        if vocabulary is not None:
            words = [word for word in words if word in vocabulary]
        if longest is not None and len(words) > longest:
            often = {word for word, _ in Counter(words).most_common(longest)}
            words = [word for word in words if word in often]
        if words or vocabulary is None:
            kept.append(number)
            bags.append(words)
    return Corpus(
        documents=bags,
        labels=np.array([records[k]["label"] for k in kept], dtype=str),
        texts=[texts[k] for k in kept],
        train=_train(records)[kept],
        n_dropped=len(records) - len(kept),
    )


def _words_of(vocabulary: Container[str] | None) -> Container[str] | None:
    """Return what tells of each word, however often, whether it is among the words."""
    if isinstance(vocabulary, str):
        raise TypeError("A vocabulary is a collection of words; got a single text.")
    if isinstance(vocabulary, Mapping | Set) or not isinstance(vocabulary, Iterable):
        return vocabulary
    return frozenset(vocabulary)


def _train(records: list[dict[str, Any]]) -> np.ndarray:
    """Return which records are for training."""
    if "split" in records[0]:
        return np.array([record["split"] == "train" for record in records])
    train = np.ones(len(records), dtype=bool)
    order = np.random.default_rng(SEED).permutation(len(records))
    train[order[: ceil(TEST_SHARE * len(records))]] = False
    return train
