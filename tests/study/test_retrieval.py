"""Searches among queries and documents, beside the same formulas in other words."""

import re
from collections import Counter
from math import log

import numpy as np
import pytest
from scipy.linalg import lstsq

from simlib import Similarity
from study.datasets import planted_collection
from study.retrieval import adacur, anncur, axn, bm25, evaluated, rerank

ANCHORS = np.array([7, 1, 12])
QUERIES = np.array([0, 3, 14])


@pytest.fixture(scope="module")
def data():
    return planted_collection(15, 300, rng=2)


@pytest.fixture
def sim(data):
    """All scores, with the rows of the anchors paid for."""
    sim = Similarity.from_matrix(data.scores)
    sim.rows(ANCHORS)
    return sim


def asked(sim, q):
    return np.flatnonzero(np.isfinite(evaluated(sim, np.array([q]))[0]))


def first(scores, k, but=()):
    order = sorted(range(len(scores)), key=lambda j: -scores[j])
    return [j for j in order if j not in set(but)][:k]


def test_bm25_word_by_word(data):
    k1, b = 0.9, 0.4
    texts = [re.findall(r"\b\w\w+\b", text) for text in data.documents]
    mean = sum(map(len, texts)) / len(texts)
    holding = Counter(word for text in texts for word in set(text))
    expected = np.zeros(data.scores.shape)
    for i, query in enumerate(data.queries):
        for j, text in enumerate(texts):
            counts = Counter(text)
            for word in query.split():
                f, n_w = counts[word], holding[word]
                rarity = log(1 + (len(texts) - n_w + 0.5) / (n_w + 0.5))
                norm = k1 * (1 - b + b * len(text) / mean)
                expected[i, j] += rarity * f * (k1 + 1) / (f + norm)
    found = bm25(data.queries, data.documents, k1, b)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert bm25(["no such"], ["", "a red apple"]).tolist() == [[0, 0]]


def test_the_first_of_some_scores_are_paid_for(sim, data):
    cosines = data.query_vectors @ data.document_vectors.T
    before = sim.calls
    sim.pairs([3, 3], [5, 6])
    rerank(sim, QUERIES, 12, cosines[QUERIES])
    assert sim.calls == before + 3 * 12
    assert asked(sim, 0).tolist() == sorted(first(cosines[0], 12))
    assert asked(sim, 3).tolist() == sorted({5, 6, *first(cosines[3], 10, (5, 6))})
    known = evaluated(sim, QUERIES)
    paid = np.isfinite(known)
    np.testing.assert_array_equal(known[paid], data.scores[QUERIES][paid])


def test_anncur_by_least_squares(sim, data):
    K, before = data.scores, sim.calls
    anncur(sim, QUERIES, 20, ANCHORS, rng=4)
    assert sim.calls == before + 3 * 20
    S = set(asked(sim, 0)) & set(asked(sim, 3)) & set(asked(sim, 14))
    assert len(S) >= 10
    S = np.random.default_rng(4).permutation(300)[:10]
    for q in QUERIES:
        weights = lstsq(K[np.ix_(ANCHORS, S)].T, K[q, S])[0]
        rest = first(weights @ K[ANCHORS], 10, S)
        assert asked(sim, q).tolist() == sorted({*S, *rest})


def rounds(K, q, start, predict):
    """Ask for twenty documents, four at a time."""
    S, predicted = [], start
    for _ in range(5):
        S += first(predicted, 4, S)
        predicted = predict(S, K[q, S])
    return sorted(S)


def test_adacur_by_least_squares(sim, data):
    K, before = data.scores, sim.calls
    start = bm25(data.queries, data.documents)
    adacur(sim, QUERIES, 20, ANCHORS, start[QUERIES])
    assert sim.calls == before + 3 * 20

    def predict(S, known):
        return lstsq(K[np.ix_(ANCHORS, S)].T, known)[0] @ K[ANCHORS]

    for q in QUERIES:
        assert asked(sim, q).tolist() == rounds(K, q, start[q], predict)


def test_axn_by_descent(sim, data):
    """The least change is where gradients lead, of documents and of a query."""
    K, before = data.scores, sim.calls
    axn(sim, QUERIES, 20, ANCHORS, (data.query_vectors, data.document_vectors))
    assert sim.calls == before + 3 * 20
    cosines = data.query_vectors.astype(float) @ data.document_vectors.T
    x, y = cosines[ANCHORS].ravel(), K[ANCHORS].ravel()
    slope = np.cov(x, y)[0, 1] / x.var(ddof=1)
    level = y.mean() - slope * x.mean()
    U = np.c_[slope * data.query_vectors, np.full(15, level)]
    V, A = np.c_[data.document_vectors, np.ones(300)], U[ANCHORS]
    step = 1 / np.linalg.norm(A, 2) ** 2
    for _ in range(3000):
        V += step * (K[ANCHORS] - A @ V.T).T @ A
    np.testing.assert_allclose(A @ V.T, K[ANCHORS], atol=1e-6)
    for q in QUERIES:

        def predict(S, known, u=U[q]):
            return V @ (u + lstsq(V[S], known - V[S] @ u)[0])

        assert asked(sim, q).tolist() == rounds(K, q, cosines[q], predict)
