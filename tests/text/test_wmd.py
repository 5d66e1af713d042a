import math
import pickle
from collections import Counter
from functools import partial

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from simlib import Similarity
from simlib.datasets import WordVectors
from simlib.text import wmd
from simlib.text.bags import distances_between
from simlib.text.bounds import relaxed_word_mover_distances
from simlib.text.wmd import (
    WordMoverDistance,
    bags_of_words,
    paired_word_mover_distances,
    pairwise_word_mover_distances,
    word_mover_distance,
)
from support.matrices import quick

WORDS = tuple("abcdefghij")
POINTS = np.random.default_rng(0).integers(-8, 9, (10, 3)).astype(float)
VECTORS = dict(zip(WORDS, POINTS, strict=True))
ARRAY = WordVectors(WORDS, POINTS)
distance = WordMoverDistance(VECTORS)
documents = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12)

# Exact answers


def test_a_document_is_at_no_distance_from_itself():
    points = 1e3 * np.random.default_rng(0).standard_normal((50, 30))
    bags = csr_array(np.random.default_rng(1).dirichlet(np.ones(50), 5))
    assert not paired_word_mover_distances(bags, bags, points).any()


def frequencies(document):
    counts = np.array([document.count(word) for word in WORDS], dtype=float)
    return counts / counts.sum()


def costs():
    return np.sqrt(((POINTS[:, None] - POINTS[None]) ** 2).sum(-1))


@given(documents, documents)
@quick
def test_linear_program(x, y):
    n = len(WORDS)
    rows = np.kron(np.eye(n), np.ones(n))
    columns = np.kron(np.ones(n), np.eye(n))
    program = linprog(
        costs().ravel(),
        A_eq=np.vstack([rows, columns]),
        b_eq=np.concatenate([frequencies(x), frequencies(y)]),
    )
    assert program.status == 0
    assert distance(x, y) == pytest.approx(program.fun, abs=1e-8)
    assert distance(x, ["unknown", *y]) == distance(x, y)
    assert distance(x, x[::-1]) == pytest.approx(0, abs=1e-12)


def test_long_documents():
    rng = np.random.default_rng(1)
    words = [f"w{k}" for k in range(400)]
    points = rng.standard_normal((400, 20)).astype(np.float32)
    far = WordMoverDistance(WordVectors(tuple(words), points))
    for _ in range(5):
        sides = [rng.integers(0, 400, size) for size in (300, 250)]
        bags = [np.bincount(side, minlength=400) / len(side) for side in sides]
        exact = points.astype(float)
        gaps = np.sqrt(((exact[:, None] - exact) ** 2).sum(-1))
        found = far(*([words[k] for k in side] for side in sides))
        assert found == pytest.approx(ot.emd2(*bags, gaps), rel=1e-10)


# Words without a vector


@pytest.mark.parametrize("document", [["unknown", "words"], []])
def test_nothing_known(document):
    for pair in (document, ["a"]), (["a"], document):
        with pytest.raises(ValueError, match="No word of this document has a vector"):
            distance(*pair)
    with pytest.raises(ValueError, match="No word of document 2 has a vector"):
        bags_of_words([["a"], ["b"], document], VECTORS)


# Bags of words


@given(st.lists(documents, max_size=6))
@quick
def test_bags_are_frequencies_of_words(texts):
    bags = bags_of_words(iter(texts), ARRAY)
    assert bags.shape == (len(texts), 10)
    np.testing.assert_allclose(bags.sum(axis=1), 1, rtol=1e-15)
    for text, bag in zip(texts, bags.toarray(), strict=True):
        np.testing.assert_allclose(bag, frequencies(text), rtol=1e-15)


def test_forms_of_a_word_are_one_word():
    forms = WordVectors(("tomato", "tomatoes", "salt"), np.eye(2), rows=[1, 1, 0])
    bags = bags_of_words([["tomato", "tomatoes", "salt"], ["tomatoes"]], forms)
    np.testing.assert_allclose(bags.toarray(), [[1 / 3, 2 / 3], [0, 1]])
    assert bags.nnz == 3
    apart = WordMoverDistance(forms)
    assert apart(["tomato"], ["tomatoes"]) == 0
    assert apart(["tomato", "salt"], ["tomatoes"]) == pytest.approx(0.5**0.5)


def test_counts_and_bytes_are_no_list_of_words():
    counted = Counter({"a": 1, "b": 3})
    listed = list(counted.elements())
    assert bags_of_words([listed], ARRAY)[[0], [0, 1]].tolist() == [0.25, 0.75]
    for document in (counted, dict(counted), b"abbb"):
        with pytest.raises(TypeError, match="A document is a list of words"):
            distance(document, ["a"])
        with pytest.raises(TypeError, match="A document is a list of words"):
            bags_of_words([listed, document], ARRAY)


# Many pairs at a time


def pairs_of(texts_x, texts_y, vectors=ARRAY):
    return paired_word_mover_distances(
        bags_of_words(texts_x, vectors), bags_of_words(texts_y, vectors), vectors.array
    )


@pytest.mark.parametrize("chunk", [1, 7, wmd.PAIRS_AT_ONCE])
def test_a_block_is_what_single_calls_give(monkeypatch, chunk):
    monkeypatch.setattr(wmd, "PAIRS_AT_ONCE", chunk)
    bags = bags_of_words(DOCUMENTS, ARRAY)
    found = pairwise_word_mover_distances(bags, bags[3:8], ARRAY.array)
    expected = [[distance(x, y) for y in DOCUMENTS[3:8]] for x in DOCUMENTS]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(0, 3), (3, 0), (0, 0)])
def test_a_block_may_be_empty(n, k):
    bags = bags_of_words(DOCUMENTS, ARRAY)
    found = pairwise_word_mover_distances(bags[:n], bags[:k], ARRAY.array)
    assert found.shape == (n, k)
    assert paired_word_mover_distances(bags[:0], bags[:0], ARRAY.array).shape == (0,)
    for X, Y, points in (
        (bags[:n], bags[:k, :-1], ARRAY.array),
        (bags[:n], bags[:k], ARRAY.array[:-1]),
    ):
        with pytest.raises(ValueError, match="do not fit"):
            pairwise_word_mover_distances(X, Y, points)


@pytest.mark.slow
def test_a_block_by_two_processes():
    bags = bags_of_words(DOCUMENTS, ARRAY)
    found, expected = (
        pairwise_word_mover_distances(bags, bags[:5], ARRAY.array, n_jobs=n)
        for n in (2, 1)
    )
    np.testing.assert_array_equal(found, expected)


def far_apart(n, *, scale=1.0):
    """Documents of 5 of 400 words in 20 dimensions: they have little in common."""
    rng = np.random.default_rng(2)
    names = tuple(f"w{k}" for k in range(400))
    vectors = WordVectors(names, scale * rng.standard_normal((400, 20)))
    return [[names[k] for k in rng.integers(0, 400, 5)] for _ in range(n)], vectors


@pytest.mark.parametrize("largest", [1, 60, wmd.DISTANCES_AT_ONCE])
def test_pairs_however_they_are_cut(monkeypatch, largest):
    """One by one, in halves, or as one product."""
    monkeypatch.setattr(wmd, "DISTANCES_AT_ONCE", largest)
    texts, vectors = far_apart(60)
    apart = WordMoverDistance(vectors)
    repeated = [x for x in texts[:5] for _ in range(20)]
    for xs, ys in (texts[:30], texts[30:]), (repeated, texts[20:40] * 5):
        expected = [apart(x, y) for x, y in zip(xs, ys, strict=True)]
        np.testing.assert_allclose(pairs_of(xs, ys, vectors), expected, atol=1e-12)


def test_a_rectangle_needs_one_product(monkeypatch):
    asked = []

    def spy(points, rows, columns):
        asked.append((rows.size, columns.size))
        return distances(points, rows, columns)

    distances = wmd._distances
    monkeypatch.setattr(wmd, "_distances", spy)
    texts, vectors = far_apart(40)
    pairs_of([texts[0]] * 30, texts[10:], vectors)
    assert asked == [(len({*texts[0]}), len({w for t in texts[10:] for w in t}))]
    asked.clear()
    pairs_of(texts[:20], texts[20:], vectors)
    assert len(asked) == 20
    assert max(rows * columns for rows, columns in asked) <= 25


def test_near_vectors_lose_no_digits_that_matter():
    """Squares of lengths cancel: what is left of them is below the promise."""
    texts, vectors = far_apart(40, scale=1e3)
    near = np.concatenate([vectors.array, vectors.array + np.float32(1e-3)])
    names = tuple(f"{word}{k}" for k in range(2) for word in vectors.words)
    both = WordVectors(names, near)
    xs = [[f"{word}0" for word in text] for text in texts]
    ys = [[f"{word}1" for word in text] for text in texts]
    apart = WordMoverDistance(both)
    expected = [apart(x, y) for x, y in zip(xs, ys, strict=True)]
    longest = np.linalg.norm(near, axis=1).max()
    np.testing.assert_allclose(pairs_of(xs, ys, both), expected, atol=1e-7 * longest)


def test_pairs_that_do_not_fit():
    bags = bags_of_words([["a"], ["b", "c"]], ARRAY)
    with pytest.raises(ValueError, match="rows are pairs"):
        paired_word_mover_distances(bags, bags[[0]], POINTS)
    with pytest.raises(ValueError, match="do not fit 9 vectors"):
        paired_word_mover_distances(bags, bags, POINTS[:9])
    hole = csr_array(vstack([bags, csr_array((1, 10))]))
    full = bags_of_words([["a"], ["b"], ["c"]], ARRAY)
    for pair in (hole, full), (full, hole):
        with pytest.raises(ValueError, match="Bag 2 is empty"):
            paired_word_mover_distances(*pair, POINTS)


def test_bags_of_single_precision():
    """Their rows add up to 1 to 1e-8 only, which POT would not take."""
    bags = bags_of_words([list("aabcdef"), list("abbcdgh"), list("abcccij")], ARRAY)
    single = bags.astype(np.float32)
    assert abs(single.astype(float).sum(axis=1) - 1).max() > 1e-9
    np.testing.assert_allclose(
        pairwise_word_mover_distances(single, bags, POINTS),
        pairwise_word_mover_distances(bags, bags, POINTS),
        rtol=1e-6,
        atol=1e-6,
    )


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_that_are_not_finite(value):
    points = np.where(np.arange(10)[:, None] == 1, value, POINTS)  # of "b"
    vectors = dict(zip(WORDS, points, strict=True))
    assert word_mover_distance(["a"], ["c"], vectors) == distance(["a"], ["c"])
    with pytest.raises(
        ValueError, match=r"A word of this document .* finite: 'a', 'b'"
    ):
        word_mover_distance(["a", "b"], ["c"], vectors)
    with pytest.raises(ValueError, match=r"A word of document 1 .* not finite"):
        bags_of_words([["a"], ["b"]], vectors)
    bags = bags_of_words([["a"], ["b"], ["c"]], ARRAY)
    with pytest.raises(ValueError, match="real and finite"):
        paired_word_mover_distances(bags, bags[::-1], points)
    found = paired_word_mover_distances(bags[[0]], bags[[2]], points)
    assert found == paired_word_mover_distances(bags[[0]], bags[[2]], POINTS)


# A word far off


def with_a_word_at(far):
    """Two documents of random words, and of one that is far from all others."""
    rng = np.random.default_rng(3)
    array = np.vstack([rng.standard_normal((12, 3)), [[far, -far / 2, 0]]])
    vectors = WordVectors(tuple("abcdefghijklm"), array)
    return list("abcdef"), list("ghijkl"), vectors


@pytest.mark.parametrize("far", [1e3, 1e12, 1e14, 1e16, 1e32, 1e150, 1e200, 1e300])
def test_a_word_far_off_in_both_documents_stays_where_it_is(far):
    x, y, vectors = with_a_word_at(far)
    few = word_mover_distance(x, y, vectors)
    for times in (1, 3):
        expected = few * 6 / (6 + times)
        xs, ys = [x + times * ["m"]], [y + times * ["m"]]
        assert word_mover_distance(*xs, *ys, vectors) == pytest.approx(expected)
        assert pairs_of(xs, ys, vectors) == pytest.approx(expected)
    only = relaxed_word_mover_distances(
        *(bags_of_words([[*each, "m"]], vectors) for each in (x, y)), vectors.array
    )
    bags = [bags_of_words([each], vectors) for each in (x, y)]
    near = relaxed_word_mover_distances(*bags, vectors.array)
    np.testing.assert_allclose(only, near * 6 / 7, rtol=1e-12)


@pytest.mark.parametrize("far", [1e3, 1e16, 1e150, 1e300])
def test_a_word_far_off_in_one_document_is_what_counts(far):
    """Of the other document all words are as far from it, to rounding."""
    x, y, vectors = with_a_word_at(far)
    distance = word_mover_distance([*x, "m"], y, vectors)
    away = distances_between(vectors.array[12:], vectors.array[6:12]).mean()
    assert distance == pytest.approx(away / 7, rel=0.03 if far == 1e3 else 1e-12)
    assert word_mover_distance([*x, "m"], [*x, "m"], vectors) == 0


def test_two_words_far_off_are_refused():
    """They are near each other, but their distance has lost its digits."""
    x, y, vectors = with_a_word_at(1e16)
    array = np.vstack([vectors.array, vectors.array[12] + [0, 0, 100]])
    vectors = WordVectors((*vectors.words, "n"), array)
    for few in (x, x[:1]):
        with pytest.raises(ValueError, match=r"apart, and words .* 1e\+16.* no digits"):
            word_mover_distance([*few, "m"], [*y[: len(few)], "n"], vectors)


def test_distances_whatever_the_sizes():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 3)) * 10.0 ** np.array([[-200, -3, 0, 160, 300]]).T
    y = np.vstack([x[:3] * 1.5, x[3:] * (1 + 1e-6)])
    expected = [[math.dist(a, b) for b in y.tolist()] for a in x.tolist()]
    np.testing.assert_allclose(distances_between(x, y), expected, rtol=1e-9)
    least = 5e-324 * np.array([[0.0], [1], [3], [2**40]])
    found = distances_between(least, np.zeros((1, 1)))
    np.testing.assert_array_equal(found, least)
    few = distances_between(x[1:3], y[1:3].astype(np.float32))
    assert few.dtype == np.float64
    np.testing.assert_allclose(few, np.array(expected)[1:3, 1:3], rtol=1e-6)


# As a function for Similarity


DOCUMENTS = [
    [WORDS[k] for k in np.random.default_rng(seed).integers(0, 10, 6)]
    for seed in range(20)
]


def test_pickling_keeps_the_vectors_and_drops_the_bags():
    used, vectors = WordMoverDistance(ARRAY), ARRAY
    assert used.vectors is vectors
    first = used(DOCUMENTS[0], DOCUMENTS[1])
    assert len(pickle.dumps(used)) == len(pickle.dumps(WordMoverDistance(vectors)))
    assert pickle.loads(pickle.dumps(used))(DOCUMENTS[0], DOCUMENTS[1]) == first


def of_bags(vectors=ARRAY, **options):
    function = partial(paired_word_mover_distances, points=vectors.array)
    bags = bags_of_words(DOCUMENTS, vectors)
    return Similarity(bags, function, batch="pairs", **options)


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_similarity_of_bags(n_jobs):
    lists = Similarity(DOCUMENTS, distance, n_jobs=n_jobs)
    bags = of_bags(n_jobs=n_jobs)
    for sim in lists, bags:
        sim.columns([3, 7])
        sim.block([1, 2, 3], [4, 5])
    everything = range(len(DOCUMENTS))
    expected = lists.columns(everything)
    np.testing.assert_allclose(bags.columns(everything), expected, atol=1e-12)
    np.testing.assert_allclose(bags.pairs([1, 2], [5, 9]), expected[[1, 2], [5, 9]])
    assert bags.calls == lists.calls == 20 * 21 // 2


def test_vectors_keep_all_digits():
    for large, small, distance in [
        (16777217.0, 16777216.0, 1),
        (16777217, 16777216, 1),
        (1e39, 0.0, 1e39),
        (1e300, -1e300, 2e300),
        (1e-300, 0.0, 1e-300),
    ]:
        vectors = {"a": [large, 0], "b": [small, 0]}
        assert word_mover_distance(["a"], ["b"], vectors) == distance


@pytest.mark.parametrize("kind", ["<f2", ">f2", "<f4", ">f4"])
def test_single_precision_of_any_byte_order_stays(kind):
    vectors = WordVectors(("salt", "rice"), np.eye(2, dtype=kind))
    assert vectors.array.dtype == np.float32


def test_vectors_in_an_array_with_a_mask_of_nothing():
    points = np.ma.array([[0.0], [3.0]])
    bags = csr_array(np.eye(2))
    assert paired_word_mover_distances(bags, bags[::-1], points).tolist() == [3.0, 3.0]
