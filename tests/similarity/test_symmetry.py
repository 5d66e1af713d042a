"""Pairs asked in both orders, by which a function that is not symmetric shows."""

import difflib
import re

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from simlib import Similarity, SimilarityError
from simlib.datasets import bundled_words
from simlib.neighbors import nearest
from support.functions import Mishap, Oracle, make, matrix


def matching(x, y):
    """Return the ratio of difflib, which takes the order for part of the question."""
    return difflib.SequenceMatcher(None, x, y).ratio()


@pytest.mark.parametrize("batch", [None, "pairs"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_function_that_is_not_symmetric_is_told(batch, n_jobs):
    words = bundled_words()
    texts = [" ".join(words[k : k + 2]) for k in range(0, 160, 2)]  # half differ

    def pairs(xs, ys):
        return [matching(x, y) for x, y in zip(xs, ys, strict=True)]

    function = matching if batch is None else pairs
    sim = Similarity(texts, function, batch=batch)
    message = (
        r"not symmetric: of (\d+) pairs asked in both orders (\d+) differ, by up to "
        r"(\S+)\. It gives (\S+) for items (\d+) and (\d+), and (\S+) in the other"
    )
    with (
        joblib.parallel_config("threading", n_jobs=n_jobs),
        pytest.warns(UserWarning, match=message) as told,
    ):
        columns = sim.columns(range(80))
    assert len(told) == 1  # once
    numbers = re.search(message, str(told[0].message)).groups()
    pairs_asked, differ, i, j = (int(numbers[k]) for k in (0, 1, 4, 5))
    most, one, other = (float(numbers[k]) for k in (2, 3, 6))
    assert 1 <= differ <= pairs_asked <= 24
    assert most >= abs(one - other) * 0.99
    assert_allclose(one, matching(texts[i], texts[j]), rtol=1e-5)
    assert_allclose(other, matching(texts[j], texts[i]), rtol=1e-5)
    assert columns[i, j] == matching(texts[i], texts[j])
    assert sim.calls == 80 * 81 / 2
    assert pairs_asked <= sim.checks <= 24


def test_blocks_of_single_lines_are_asked_in_both_orders():
    """As searches ask; a block on the diagonal is compared with its own transpose."""
    K = matrix(80, symmetric=False)
    sim = Similarity(range(80), lambda x, y: K[np.ix_(x, y)], batch="block")
    with pytest.warns(UserWarning, match="asked in both orders 1 differ"):
        sim.pairs(np.zeros(60, int), np.arange(10, 70))
    assert (sim.calls, sim.checks) == (60, 1)
    _, _, sim = make(80, batch="block")
    nearest(sim, 3, limit=1500, rng=0)
    assert 10 < sim.checks <= 24


def test_checks_are_few_and_counted_apart():
    K, oracle, sim = make(80, batch="pairs", limit=80 * 81 // 2)
    sim.columns([0])
    assert (sim.calls, sim.checks) == (80, 1)
    fork = sim.fork()
    fork.columns([1, 2])  # of the same function
    assert (sim.calls, fork.calls, sim.checks) == (80, 157, 4)
    assert_array_equal(sim.columns(range(80)), K)
    assert (sim.calls, sim.checks, sim.remaining) == (3083, 24, 157)
    assert len(oracle.pairs) == 80 * 81 // 2 + 24
    again = [pair for pair in oracle.pairs if pair[::-1] in oracle.pairs]
    assert len({frozenset(pair) for pair in again if len(set(pair)) == 2}) == 24
    none = {"check_symmetry": False}, {"symmetric": False}, {"batch": "block"}
    for options in none:
        _, _, sim = make(80, **options)
        sim.columns(range(80))
        assert sim.checks == 0
    _, _, sim = make(9)
    sim.columns(range(9))
    assert (sim.calls, sim.checks) == (45, 0)


@pytest.mark.parametrize("other", [-1.7e308, np.inf, 1.6e308])
def test_orders_that_differ_beyond_numbers(other):
    sim = Similarity(range(60), lambda x, y: 1.7e308 if x <= y else other)
    with pytest.warns(UserWarning, match=r"by up to (inf|1e\+307)"):
        sim.columns([59])  # asked in the order (0, 59)
    assert (sim.calls, sim.checks) == (60, 1)


def test_rounding_is_no_asymmetry_and_a_failing_check_no_failure():
    K = matrix(40)
    noisy = K + 1e-3 * matrix(40, symmetric=False)
    sim = Similarity(range(40), Oracle(noisy))
    sim.columns(range(40))
    assert sim.checks == 16

    asked = set()

    def once(x, y):
        if frozenset((x, y)) in asked:
            raise Mishap("asked again", 0)
        asked.add(frozenset((x, y)))
        return K[x, y]

    sim = Similarity(range(40), once)
    assert_array_equal(sim.columns(range(40)), K)
    assert (sim.calls, sim.failed) == (820, 0)


def test_of_a_tile_the_half_that_is_a_number_is_kept():
    def function(xs, ys):
        values = np.add.outer(xs, ys)
        values[(xs[:, None] == 0) & (ys == 1)] = np.nan  # in one order alone
        return values

    sim = Similarity(np.arange(3.0), function, batch="block")
    with pytest.raises(SimilarityError, match="returned nan for items 0 and 1"):
        sim.columns(range(3))
    assert sim.peek([0, 1], [1, 0]).tolist() == [1, 1]
    calls = sim.calls
    assert sim.columns(range(3)).tolist() == np.add.outer(*[np.arange(3)] * 2).tolist()
    assert sim.calls == calls


def test_values_near_zero_are_measured_by_all_that_was_seen():
    """Sparse similarities: the first pairs that are asked back may be rounding."""
    n = 60
    B = np.random.default_rng(0).standard_normal((n, n))
    A = B @ B.T / n + np.eye(n)
    sizes, vectors = np.linalg.eigh(A)
    X = vectors / np.sqrt(sizes) @ vectors.T  # X A X.T is the identity
    sim = Similarity(X, lambda x, y: float(x @ A @ y))
    np.testing.assert_allclose(sim.columns(range(n)), np.eye(n), atol=1e-12)
    assert sim.checks == 24


def test_what_comes_due_with_the_last_answers_of_workers_is_asked():
    with joblib.parallel_config(backend="threading"):
        sim = Similarity(
            np.arange(90.0), np.subtract, batch="pairs", n_jobs=4, batch_size=2000
        )
        with pytest.warns(UserWarning, match="not symmetric"):
            sim.pairs(*np.triu_indices(90, 1))
    assert sim.checks == 24
