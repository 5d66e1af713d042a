"""Known: scattered entries against a dictionary, and interrupts at any line."""

from contextlib import suppress
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from simlib import Similarity, SimilarityError
from simlib.similarity.known import Known
from support.functions import Oracle
from support.interrupts import Lines

PAIRS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30)


@given(
    st.lists(PAIRS, max_size=8),
    st.booleans(),
    st.sampled_from([1, 2, 16]),
    st.booleans(),
)
def test_scattered_entries_against_a_dictionary(parts, symmetric, ratio, again):
    memory = Known(9, symmetric=symmetric, dtype=np.dtype(float))
    expected = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simlib.similarity.known.RATIO", ratio)
        for number, pairs in enumerate(parts):
            i, j = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
            new = np.isnan(memory.get(i, j)) | again  # the first stays
            memory.put(i[new], j[new], np.full(int(new.sum()), float(number)))
            for a, b in pairs:
                expected.setdefault(
                    (min(a, b), max(a, b)) if symmetric else (a, b), number
                )
        i, j = np.indices((9, 9)).reshape(2, -1)
        key = memory.keys(i, j)
        table = {a * 9 + b: value for (a, b), value in expected.items()}
        assert_array_equal(memory.get(i, j), [table.get(int(k), np.nan) for k in key])
        listed = [p for part in memory.known() for p in zip(*part, strict=True)]
        assert sorted(listed) == sorted((a, b, v) for (a, b), v in expected.items())


def test_known_is_what_is_known_at_the_call():
    sim = Similarity(range(9), lambda x, y: float(x * y))
    sim.pairs([1, 2], [3, 4])
    sim.columns([5])
    known = sim.known()
    sim.columns([1, 3])
    sim.pairs([7], [7])
    assert sum(values.size for _, _, values in known) == 2 + 9


NAMES = "known memory reading requests items call budget evaluate similarity views"
TRACED = [import_module(f"simlib.similarity.{name}") for name in NAMES.split()]


def moments(action):
    """Return when each line of simlib runs for the first and for the last time."""
    with Lines(*TRACED) as lines:
        action()
    first = {line: k for k, line in reversed(list(enumerate(lines.seen)))}
    last = {line: k for k, line in enumerate(lines.seen)}
    return sorted({*first.values(), *last.values()})


@pytest.mark.parametrize(
    ("batch", "symmetric"),
    [
        (None, True),
        pytest.param("pairs", True, marks=pytest.mark.slow),
        pytest.param("pairs", False, marks=pytest.mark.slow),
        pytest.param("block", True, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_before_any_line_loses_one_request_at_most(batch, symmetric):
    K = np.arange(144.0).reshape(12, 12)
    K = K + K.T if symmetric else K
    places = np.indices((12, 12)).reshape(2, -1)

    def make():
        oracle, size = Oracle(K, batch), None if batch == "block" else 4
        options = {"symmetric": symmetric, "batch": batch, "batch_size": size}
        return oracle.asked, Similarity(np.arange(12), oracle, **options)

    def request(sim):
        sim.pairs([0, 1, 2, 3, 4, 5], [7, 7, 8, 9, 9, 9])
        sim.block([1, 2, 3], [2, 3, 4])
        sim.columns([4, 7])
        sim.pairs([10], [11])

    asked, sim = make()
    found = moments(lambda: request(sim))
    assert len(found) > 200
    best = sum(map(len, asked))
    for moment in found:
        asked, sim = make()
        with pytest.raises(KeyboardInterrupt), Lines(*TRACED, stop=moment):
            request(sim)
        largest = max(map(len, asked), default=0)
        if batch is None:  # requests of four, evaluated one by one
            largest *= 4
        evaluated = sum(map(len, asked))
        assert sim.calls <= evaluated <= sim.calls + sim.failed
        assert sim.failed <= max(largest, 24 if batch == "block" else 4)
        distinct = {
            tuple(sorted(pair)) if symmetric else pair
            for part in asked
            for pair in part
        }
        known = sum(values.size for _, _, values in sim.known())
        assert len(distinct) - largest <= known <= len(distinct)
        if batch != "block":  # which pays for both halves of a tile
            assert known >= sim.calls  # what is counted is not lost
        peeked = sim.peek(*places).reshape(12, 12)
        assert_array_equal(peeked, np.where(np.isnan(peeked), np.nan, K))
        request(sim)
        assert sum(map(len, asked)) <= best + largest
        assert_array_equal(sim.columns([4, 7]), K[:, [4, 7]])
        assert_array_equal(sim.block([1, 2, 3], [2, 3, 4]), K[1:4, 2:5])


def test_an_interrupt_while_values_are_sorted_in_loses_none():
    n = 1000

    def make():
        memory = Known(n, symmetric=True, dtype=np.dtype(float))
        rng = np.random.default_rng(0)
        keys = rng.permutation(n * 9)[:3000].reshape(3, -1)
        for part in keys:
            i, j = np.minimum(*np.divmod(part, 9)), np.maximum(*np.divmod(part, 9))
            memory.put(i, j, i * n + j + 0.5)
            if part is not keys[-1]:
                memory.get(i[:1], j[:1])
        return memory

    items = np.arange(n)
    count = sum(values.size for _, _, values in make().known())
    for moment in moments(partial(make().get, items, items)):
        memory = make()
        with Lines(*TRACED, stop=moment), suppress(KeyboardInterrupt):
            memory.get(items, items)
        found = list(memory.known())
        assert sum(values.size for _, _, values in found) == count
        assert all((values == i * n + j + 0.5).all() for i, j, values in found)


def test_failures_leave_nothing_of_their_request_in_memory():
    sim = Similarity(range(9), lambda x, y: float("nan"), batch_size=3)
    for _ in range(3):
        with pytest.raises(SimilarityError, match="returned nan"):
            sim.pairs([1, 2], [3, 4])
    assert list(sim.known()) == []
