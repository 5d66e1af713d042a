"""Cheap distances against the exact ones that they bound, and loops."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from scipy.sparse import csr_array

from simlib.text import bounds
from simlib.text.bounds import (
    centroid_distances,
    qgram_distances,
    relaxed_word_mover_distances,
)
from simlib.text.wmd import WordMoverDistance, bags_of_words
from support.matrices import quick

WORDS = tuple("abcdefghij")
POINTS = np.random.default_rng(0).integers(-8, 9, (10, 3)).astype(float)
VECTORS = dict(zip(WORDS, POINTS, strict=True))
documents = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12)
corpora = st.lists(documents, min_size=1, max_size=5)
strings = st.text(alphabet="abc", max_size=8)
BOUNDS = [centroid_distances, relaxed_word_mover_distances]


def loops(x, y):
    """Return both distances of two documents, by their definitions."""
    x, y = (np.array([VECTORS[word] for word in document]) for document in (x, y))
    D = np.linalg.norm(x[:, None] - y, axis=2)
    centroid = np.linalg.norm(x.mean(axis=0) - y.mean(axis=0))
    return centroid, max(D.min(axis=1).mean(), D.min(axis=0).mean())


@given(corpora, corpora)
@quick
def test_definitions_and_bounds(xs, ys):
    X, Y = bags_of_words(xs, VECTORS), bags_of_words(ys, VECTORS)
    centroid = centroid_distances(X, Y, POINTS)
    relaxed = relaxed_word_mover_distances(X, Y, POINTS)
    assert centroid.shape == relaxed.shape == (len(xs), len(ys))
    expected = np.array([[loops(x, y) for y in ys] for x in xs])
    np.testing.assert_allclose(centroid, expected[..., 0], atol=1e-12)
    np.testing.assert_allclose(relaxed, expected[..., 1], atol=1e-12)
    exact = WordMoverDistance(VECTORS)
    wmd = np.array([[exact(x, y) for y in ys] for x in xs])
    assert (centroid <= wmd + 1e-9).all()
    assert (relaxed <= wmd + 1e-9).all()


def test_piece_by_piece(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = (csr_array(rng.dirichlet(np.ones(10), size) * 1.0) for size in (6, 4))
    whole = relaxed_word_mover_distances(X, Y, POINTS)
    monkeypatch.setattr(bounds, "DISTANCES_AT_ONCE", 120)
    np.testing.assert_allclose(relaxed_word_mover_distances(X, Y, POINTS), whole)


@pytest.mark.parametrize("distances", BOUNDS)
def test_no_documents(distances):
    bags = bags_of_words([["a"], ["b"]], VECTORS)
    for n, m in ((2, 0), (0, 2), (0, 0)):
        assert distances(bags[:n], bags[:m], POINTS).shape == (n, m)


# Strings


def qgram_loops(x, y, q):
    def profile(string):
        padded = ["#"] * (q - 1) + list(string) + ["#"] * (q - 1)
        return Counter(tuple(padded[k : k + q]) for k in range(len(padded) - q + 1))

    x, y = profile(x), profile(y)
    return sum(abs(x[gram] - y[gram]) for gram in x | y) / (2 * q)


@given(st.lists(strings, min_size=1), st.lists(strings, min_size=1), st.integers(1, 4))
@quick
def test_qgrams_by_loops_and_below_the_edit_distance(xs, ys, q):
    distances = qgram_distances(xs, ys, q=q, normalized=False)
    expected = [[qgram_loops(x, y, q) for y in ys] for x in xs]
    np.testing.assert_allclose(distances, expected)
    edit = [[Levenshtein.distance(x, y) for y in ys] for x in xs]
    assert (distances <= np.array(edit)).all()
    edit = [[Levenshtein.normalized_distance(x, y) for y in ys] for x in xs]
    assert (qgram_distances(xs, ys, q=q) <= np.array(edit) + 1e-12).all()


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_distance_beyond_the_largest_number_is_refused(bound):
    bags = csr_array(np.eye(2))
    near, far = np.array([[1e308], [0.5e308]]), np.array([[1e308], [-1e308]])
    assert bound(bags, bags, near).tolist() == [[0, 0.5e308], [0.5e308, 0]]
    with pytest.raises(ValueError, match="beyond the largest number: divide"):
        bound(bags, bags, far)


def test_qgrams_by_hand():
    distances = qgram_distances(["abab", ""], ["ab", "ba"], normalized=False)
    np.testing.assert_allclose(distances, [[0.5, 1.5], [1.0, 1.0]])
    np.testing.assert_allclose(
        qgram_distances(["abab", ""], ["ab", "ba"]), distances / [[4, 4], [2, 2]]
    )
    with pytest.raises(ValueError, match="q must be at least 1"):
        qgram_distances(["a"], ["b"], q=0)


@pytest.mark.parametrize("one", ["abc", {"ab", "cd"}, {1: "ab"}])
def test_one_string_is_no_collection(one):
    for pair in ((one, ["ab"]), (["ab"], one)):
        with pytest.raises(TypeError, match=r"pass \[x\]|Pass list\(items"):
            qgram_distances(*pair)


@pytest.mark.parametrize("distances", BOUNDS)
def test_a_word_of_weight_zero_is_not_there(distances):
    points = np.array([[0.0], [5.0], [np.nan]])
    stored = csr_array(([1.0, 0.0, 0.0], [0, 1, 2], [0, 3]), shape=(1, 3))
    both = csr_array([[0.5, 0.5, 0.0]])
    for x, y in (stored, both), (both, stored):
        assert distances(x, y, points).tolist() == [[2.5]]
    assert stored.nnz == 3
    with pytest.raises(ValueError, match="Bag 0 is empty"):
        distances(csr_array(([0.0], [0], [0, 1]), shape=(1, 3)), both, points)


@pytest.mark.parametrize("unused", [1e300, np.nan, np.inf])
@pytest.mark.parametrize("distances", BOUNDS)
def test_words_in_no_bag_may_be_anything(distances, unused):
    for length in (3.0, 3e200):
        points = np.array([[unused], [0.0], [length]])
        found = distances([[0, 1.0, 0]], [[0, 0, 1.0]], points)
        np.testing.assert_allclose(found, [[length]])
