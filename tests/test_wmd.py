import pickle
from collections import Counter
from functools import partial

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import quick
from scipy.optimize import linprog

from simlib import Similarity
from simlib.datasets import WordVectors
from simlib.text.wmd import WordMoverDistance, word_mover_distance

WORDS = tuple("abcdefghij")
POINTS = np.random.default_rng(0).integers(-8, 9, (10, 3)).astype(float)
VECTORS = dict(zip(WORDS, POINTS, strict=True))
distance = WordMoverDistance(VECTORS)
documents = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12)

# Exact answers


def test_single_words_are_as_far_apart_as_their_vectors():
    for x, y in (("a", "b"), ("c", "j")):
        expected = np.linalg.norm(VECTORS[x] - VECTORS[y])
        assert distance([x], [y]) == pytest.approx(expected)


def test_on_a_line_it_is_the_area_between_distribution_functions():
    line = {str(k): np.array([float(k)]) for k in range(6)}
    assert word_mover_distance(["0", "1"], ["4", "5"], line) == pytest.approx(4)
    assert word_mover_distance(["0", "0", "0", "4"], ["0"], line) == pytest.approx(1)
    assert word_mover_distance(["0", "3"], ["1", "2", "2"], line) == pytest.approx(
        np.abs([1 / 2, 1 / 2 - 1 / 3, -1 / 2]).sum()
    )


def test_one_word_is_the_mean_distance_to_it():
    x = ["a", "b", "b", "c"]
    expected = np.mean([np.linalg.norm(VECTORS[w] - VECTORS["d"]) for w in x])
    assert distance(x, ["d"]) == pytest.approx(expected)


# Against a linear program and POT


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


@given(documents, documents)
@quick
def test_pot(x, y):
    expected = ot.emd2(frequencies(x), frequencies(y), costs())
    assert distance(x, y) == pytest.approx(expected, abs=1e-12)


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


# A metric on bags of words


@given(documents, documents, documents)
@quick
def test_metric(x, y, z):
    assert distance(x, y) == pytest.approx(distance(y, x), abs=1e-12)
    assert distance(x, z) <= distance(x, y) + distance(y, z) + 1e-12
    assert distance(x, y) >= 0


@given(documents, st.randoms(use_true_random=False), st.integers(1, 3))
@quick
def test_identity(x, random, times):
    y = x * times
    random.shuffle(y)
    assert distance(x, y) == pytest.approx(0, abs=1e-12)
    assert distance(x, x) == 0


@given(documents, documents)
@quick
def test_at_least_the_distance_of_the_means(x, y):
    means = (np.mean([VECTORS[w] for w in side], axis=0) for side in (x, y))
    assert distance(x, y) >= np.linalg.norm(np.subtract(*means)) - 1e-12


def test_same_point_under_two_names():
    twins = {"x": np.array([1.0, 2.0]), "y": np.array([1.0, 2.0])}
    assert word_mover_distance(["x"], ["y"], twins) == 0


# Words without a vector


def test_unknown_words_are_left_out():
    assert distance(["a", "unknown", "b"], ["c"]) == distance(["a", "b"], ["c"])


@pytest.mark.parametrize("document", [["unknown", "words"], []])
def test_nothing_known(document):
    with pytest.raises(ValueError, match="No word of this document has a vector"):
        distance(document, ["a"])
    with pytest.raises(ValueError, match=r"load_twitter\(vectors\)"):
        distance(["a"], document)


# As a function for Similarity


DOCUMENTS = [
    [WORDS[k] for k in np.random.default_rng(seed).integers(0, 10, 6)]
    for seed in range(20)
]


def test_pickling_keeps_the_vectors_and_drops_the_bags():
    used = WordMoverDistance(VECTORS)
    used(DOCUMENTS[0], DOCUMENTS[1])
    copy = pickle.loads(pickle.dumps(used))
    assert len(pickle.dumps(used)) == len(pickle.dumps(WordMoverDistance(VECTORS)))
    assert copy(DOCUMENTS[0], DOCUMENTS[1]) == used(DOCUMENTS[0], DOCUMENTS[1])


def test_word_vectors_are_shared():
    vectors = WordVectors(WORDS, POINTS.astype(np.float32))
    assert WordMoverDistance(vectors).vectors is vectors


def test_two_processes():
    serial = Similarity(DOCUMENTS, WordMoverDistance(VECTORS))
    parallel = Similarity(DOCUMENTS, WordMoverDistance(VECTORS), n_jobs=2)
    everything = range(len(DOCUMENTS))
    np.testing.assert_array_equal(
        parallel.columns(everything), serial.columns(everything)
    )
    assert parallel.calls == serial.calls == 20 * 21 // 2


def test_another_gamma_costs_nothing():
    distances = Similarity(DOCUMENTS, WordMoverDistance(VECTORS))

    def kernel(gamma, d):
        return np.exp(-gamma * d)

    one = distances.map(partial(kernel, 0.3)).columns([0, 1])
    calls = distances.calls
    other = distances.map(partial(kernel, 0.9)).columns([0, 1])
    assert distances.calls == calls == 20 + 19
    np.testing.assert_allclose(other, one**3)


def test_counts_matter_and_order_does_not():
    x, y = ["a", "a", "b"], ["c"]
    assert Counter(x) != Counter(set(x))
    assert distance(x, y) != pytest.approx(distance(["a", "b"], y))
    assert distance(x, y) == pytest.approx(distance(["b", "a", "a"], y))
