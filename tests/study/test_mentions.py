"""The experiment on mentions: its parts, and what must come out at the ends."""

import numpy as np
import pytest

from simlib import Similarity, sms_nystrom
from study.coreference import average_linkage, conll_f1
from study.datasets import planted_mentions
from study.mentions import (
    approximations,
    clusters_of_topics,
    cosines,
    outcomes,
    rescalings,
    symmetric_scores,
)

DEV, TEST = planted_mentions(3, 40, rng=1), planted_mentions(3, 40, rng=2)
THRESHOLDS = [0.2, 0.4, 0.5, 0.6, 0.8]


def test_planted_mentions():
    mentions = planted_mentions(4, 50, rng=0)
    assert len(mentions.texts) == 200
    sizes = np.bincount(mentions.clusters)
    assert sizes.min() == 1  # singletons, as in the corpus
    assert sizes.max() > 5
    for topic, K in mentions.scores.items():
        labels = mentions.clusters[mentions.topics == topic]
        assert not set(labels) & set(mentions.clusters[mentions.topics != topic])
        same = labels[:, None] == labels
        np.fill_diagonal(same, False)
        assert K[same].mean() > 3 * K[~same].mean()
        assert not np.array_equal(K, K.T)
        assert np.linalg.eigvalsh((K + K.T) / 2)[0] < -0.1  # indefinite
    again = planted_mentions(4, 50, rng=0)
    np.testing.assert_array_equal(again.embeddings, mentions.embeddings)


def test_cosines_of_two_vectors():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((5, 6))
    for i in range(5):
        for j in range(5):
            parts = [(Z[i, p], Z[j, p]) for p in (slice(3), slice(3, 6))]
            expected = np.mean(
                [x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in parts]
            )
            assert cosines(Z)[i, j] == pytest.approx(expected)
    rows = np.array([[1e250, 0, 1, 0], [1, 0, 1e-250, 0]])  # each half by itself
    np.testing.assert_allclose(cosines(rows), np.ones((2, 2)))
    for exponent in (-1000, 1000):  # squares are no numbers
        np.testing.assert_array_equal(cosines(np.ldexp(Z, exponent)), cosines(Z))
    with pytest.raises(ValueError, match="even length"):
        cosines(Z[:, :5])


def test_topics_are_clustered_by_themselves():
    exact = symmetric_scores(TEST)
    labels = clusters_of_topics(TEST.topics, exact, [0.5, 0.99])
    for topic, K in exact.items():
        part = labels[0, TEST.topics == topic]
        assert conll_f1(average_linkage(K, 0.5), part) == 1
        assert not set(part) & set(labels[0, TEST.topics != topic])


def test_topics_have_matrices_of_their_mentions():
    matrices = {1: np.ones((2, 2)), 2: np.ones((1, 1)), 3: np.eye(2)}
    labels = clusters_of_topics([1, 2, 1, 3, 3], matrices, [0.5, 2.0])
    assert labels.tolist() == [[1, 3, 1, 4, 5], [1, 3, 2, 4, 5]]
    matrices = {1: np.ones((2, 2)), 2: np.eye(2)}
    for topics in ([1, 1, 2, 2, 3], [1, 1, 2], [1, 1, 2, 2, 2], [1, 1]):
        with pytest.raises(ValueError, match="as large as its mentions are many"):
            clusters_of_topics(np.array(topics), matrices, [0.5])


def test_rescalings_are_those_of_the_formulas():
    K = symmetric_scores(TEST)[0]
    sim = Similarity.from_matrix(K)
    answer = sms_nystrom(sim.fork(), 10, rng=4)
    found = rescalings(K, answer)
    for rule in ("spectral", "frobenius"):
        scaled = sms_nystrom(sim.fork(), 10, rescale=rule, rng=4).toarray()
        np.testing.assert_allclose(answer.toarray() / found[rule], scaled, rtol=1e-6)
    S2 = np.random.default_rng(4).permutation(40)[:20]
    e = -1.5 * np.linalg.eigvalsh(K[np.ix_(S2, S2)])[0]
    W = K[np.ix_(answer.landmarks, answer.landmarks)]
    norms = [np.linalg.norm(W + k * e * np.eye(10)) for k in (1, 2)]
    assert found["twice"] == pytest.approx(norms[0] / norms[1])


def test_every_method_makes_the_calls_of_its_share(monkeypatch):
    K, G = symmetric_scores(TEST)[0], cosines(TEST.embeddings[TEST.topics == 0])
    made, from_matrix = [], Similarity.from_matrix

    def kept(matrix, **options):
        made.append((matrix is G, from_matrix(matrix, **options)))
        return made[-1][1]

    monkeypatch.setattr(Similarity, "from_matrix", kept)
    answers = approximations(K, G, 0.3, threshold=0.5, rng=0)
    budget = 0.3 * 40 * 41 / 2
    calls = [sim.calls for cheap, sim in made if not cheap]
    assert len(calls) == len(answers) - 3  # rescaled answers read nothing
    assert all(0.6 * budget < spent <= budget for spent in calls)
    for A in answers.values():
        np.testing.assert_array_equal(A, A.T)


def test_all_pairs_give_the_exact_clusters():
    exact = clusters_of_topics(TEST.topics, symmetric_scores(TEST), [0.5])[0]
    found = outcomes(DEV, TEST, 1.0, kept=0.5, thresholds=THRESHOLDS, rng=0)
    for method in ("nystrom", "sicur", "stacur", "tikhonov", "refined", "highest"):
        assert found[method]["same_kept"] == pytest.approx(1, abs=1e-9)
        assert found[method]["kept"] == pytest.approx(conll_f1(TEST.clusters, exact))
        assert found[method]["wrong"] == 0
    assert found["sms_nystrom"]["error"] > 0.01  # the shift stays
