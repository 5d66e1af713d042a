"""Similarity: values, promises about calls, budget, failures and memory."""

import gc
import operator
import tracemalloc
from contextlib import suppress
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import linear_kernel

from simlib import BudgetExceeded, LowRank, Similarity, SimilarityError
from simlib.neighbors import search
from simlib.similarity import requests
from simlib.similarity.budget import Budget
from simlib.similarity.known import Known
from support.functions import (
    BATCHES,
    Mishap,
    Oracle,
    in_form,
    known_pairs,
    listed,
    make,
    matrix,
)
from support.hostile import masked
from support.processes import python

FORMATS = ["csr", "bsr", "dia", "coo"]

# Exact answers.

WORDS = ["a", "bb", "ccc", "dddd"]


def lengths(x, y):
    return len(x) * 10 + len(y)


def test_by_hand():
    sim = Similarity(WORDS, lengths, symmetric=False)
    assert_array_equal(sim.block([0, 2], [3, 1]), [[14, 12], [34, 32]])
    assert sim.calls == 4
    assert_array_equal(sim.pairs([0, 0, 3], [3, 3, 2]), [14, 14, 43])
    assert sim.calls == 5
    assert_array_equal(sim.columns([1])[:, 0], [12, 22, 32, 42])
    assert sim.calls == 7
    assert_array_equal(sim.rows([3]), [[41, 42, 43, 44]])
    assert sim.calls == 9
    assert_array_equal(sim.diagonal(), [11, 22, 33, 44])
    assert sim.calls == 11
    assert_array_equal(sim.block(range(4), range(4))[2], [31, 32, 33, 34])
    assert sim.calls == 16
    assert (sim.n, sim.shape, sim.dtype, sim.symmetric) == (4, (4, 4), float, False)
    assert repr(sim) == "Similarity(4 items, asymmetric, 16 calls)"


def test_a_block_function_counts_both_halves_of_a_small_tile():
    _, _, sim = make(9, batch="block")
    sim.columns(range(4))
    assert sim.calls == 9 * 4


def test_symmetrized_by_hand():
    sim = Similarity(WORDS, lengths, symmetric=False)
    mean = sim.symmetrized()
    assert_array_equal(mean.block([0], [1, 0]), [[16.5, 11]])
    assert (sim.calls, mean.calls, mean.symmetric) == (3, 3, True)
    assert mean.symmetrized() is mean
    symmetric = Similarity(WORDS, lengths)
    assert symmetric.symmetrized() is symmetric


@pytest.mark.parametrize("kind", ["plain", "mapped", "symmetrized", "both"])
def test_blank_knows_nothing_and_counts_together(kind):
    K = np.arange(25.0).reshape(5, 5)
    oracle = Oracle(K)
    sim = Similarity(range(5), oracle, symmetric=False, limit=100)
    view = sim.symmetrized() if kind in ("symmetrized", "both") else sim
    view = view.map(np.sqrt) if kind in ("mapped", "both") else view
    expected = view.columns([1, 2])
    calls = sim.calls
    blank = view.blank()
    assert np.isnan(blank.peek([0, 1], [1, 2])).all()
    assert_array_equal(blank.columns([1, 2]), expected)
    assert sim.calls == blank.calls == view.calls == 2 * calls
    assert blank.symmetric == view.symmetric
    blank.block([0, 3, 4], [0, 3, 4])
    assert np.isnan(view.peek([3], [4])).all()
    assert np.isfinite(view.peek([0, 1], [1, 2])).all()
    sim.limit = sim.calls
    with pytest.raises(BudgetExceeded):
        view.blank().columns([0])


def test_fork_shares_knowledge_and_counts_alone():
    K, oracle, sim = make(limit=100)
    sim.columns([0])
    fork = sim.fork(limit=8)
    assert_array_equal(fork.columns([0, 1]), K[:, [0, 1]])
    assert (sim.calls, fork.calls, sim.limit, fork.limit) == (9, 8, 100, 8)
    sim.columns([1])
    assert sim.calls == 9
    assert len(oracle.pairs) == 17
    view = sim.map(np.exp).fork(limit=0)
    assert_array_equal(view.columns([1]), np.exp(K[:, [1]]))
    assert (view.calls, view.limit, sim.limit) == (0, 0, 100)
    K, _, sim = make(symmetric=False)
    sim.columns([2])
    mean = sim.symmetrized().fork()
    mean.columns([2])
    assert (sim.calls, mean.calls) == (9, 8)


def test_from_matrix(tmp_path):
    disk = np.lib.format.open_memmap(tmp_path / "K.npy", "w+", shape=(5, 5))
    disk[:] = K = matrix(5)
    sim = Similarity.from_matrix(disk)
    assert type(sim.columns([0])) is np.ndarray
    sim = Similarity.from_matrix(K)
    assert_array_equal(sim.columns([3]), K[:, [3]])
    assert sim.calls == 5
    assert Similarity.from_matrix(K.astype(np.float32)).dtype == np.float32
    assert Similarity.from_matrix(np.eye(3, dtype=int)).dtype == np.float64
    assert not Similarity.from_matrix(K, symmetric=False).symmetric


@pytest.mark.parametrize(
    ("dtype", "gap", "symmetric"),
    [
        (np.float64, 1e-14, True),
        (np.float64, 1e-10, False),
        (np.float32, 1e-6, True),
        (np.float32, 1e-3, False),
    ],
)
@pytest.mark.parametrize("scale", [1e-6, 1.0])
def test_how_symmetric_a_matrix_has_to_be(dtype, gap, symmetric, scale):
    K = scale * np.ones((5, 5))
    K[1, 3] *= 1 + gap
    K = K.astype(dtype)
    assert Similarity.from_matrix(K).symmetric == symmetric
    if not symmetric:
        message = r"not symmetric: \|K - K.T\| reaches .* Pass symmetric=False"
        with pytest.raises(ValueError, match=message):
            Similarity.from_matrix(K, symmetric=True)


@pytest.mark.parametrize(
    "items",
    [
        [0.0, 1.0, 2.0],
        (0.0, 1.0, 2.0),
        range(3),
        np.arange(3.0),
        np.arange(3.0)[:, None],
        *(scipy.sparse.coo_array(np.arange(3.0)[:, None]).asformat(f) for f in FORMATS),
        scipy.sparse.csr_matrix(np.arange(3.0)[:, None]),
    ],
    ids=lambda items: f"{type(items).__name__}{getattr(items, 'ndim', '')}",
)
def test_items_of_any_kind(items):
    def one(x, y):
        return (x * 10 + y).sum() if hasattr(x, "sum") else x * 10 + y

    for batch in BATCHES:
        sim = Similarity(items, in_form(one, batch), symmetric=False, batch=batch)
        assert_array_equal(sim.columns([2]).ravel(), [2, 12, 22])
        assert_array_equal(sim.pairs([0, 2], [1, 0]), [1, 20])


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("symmetric", [True, False])
def test_one_item(batch, symmetric):
    _, oracle, sim = make(1, symmetric=symmetric, batch=batch)
    value = oracle.matrix[0, 0]
    for answer in (sim.block([0, 0], [0]), sim.columns([0]), sim.rows([0])):
        assert_array_equal(answer, np.full(answer.shape, value))
    assert sim.pairs(0, 0) == sim.diagonal() == sim.symmetrized().diagonal() == value
    assert sim.calls == 1


@pytest.mark.parametrize("kind", ["u1", "i1", "u8", "i4", ">i8"])
def test_indices_of_any_integer_type(kind):
    n = 200
    sim = Similarity(range(n), lambda x, y: 1000 * x + y, symmetric=False)
    i, j = np.array([100, 7], kind), np.array([120, 7], kind)
    assert_array_equal(sim.pairs(i, j), [100_120, 7_007])
    assert_array_equal(sim.block(i, j), [[100_120, 100_007], [7_120, 7_007]])
    assert_array_equal(sim.columns(j)[100], [100_120, 100_007])
    symmetric = Similarity(range(n), lambda x, y: 1000 * min(x, y) + max(x, y))
    assert_array_equal(symmetric.pairs(i, [120, 7]), [100_120, 7_007])


@pytest.mark.parametrize("batch", BATCHES)
def test_float32_stays_float32(batch):
    K, _, sim = make(symmetric=False, batch=batch, dtype=np.float32)
    for view in (sim, sim.map(np.exp), sim.symmetrized(), sim.fork()):
        assert view.dtype == np.float32
        for answer in (
            view.columns([1, 2]),
            view.rows([1]),
            view.block([3, 4], [5]),
            view.pairs([6], [7]),
            view.diagonal(),
        ):
            assert answer.dtype == np.float32
    assert_array_equal(sim.columns([1]), K.astype(np.float32)[:, [1]])


# Any sequence of requests.

INDICES = st.lists(st.integers(0, 6), max_size=8)
REQUESTS = st.lists(
    st.one_of(
        st.tuples(st.just("block"), INDICES, INDICES),
        st.tuples(st.sampled_from(["columns", "rows"]), INDICES),
        st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=9).map(
            lambda pairs: ("pairs", [i for i, _ in pairs], [j for _, j in pairs])
        ),
        st.just(("diagonal",)),
    ),
    min_size=1,
    max_size=6,
)


# Of one collection, and numbers of rows and columns of two.
KINDS = st.sampled_from(["symmetric", "asymmetric", (5, 7), (1, 7), (5, 1), (6, 6)])


def of_kind(kind, **options):
    if kind in ("symmetric", "asymmetric"):
        return make(7, symmetric=kind == "symmetric", **options)
    return make(kind[0], columns=kind[1], **options)


def viewed(sim, K, view):
    """Return a view, and the matrix for which it stands."""
    if view == "symmetrized" and hasattr(sim, "n"):
        return sim.symmetrized(), (K + K.T) / 2
    return (sim, K) if view == "itself" else (sim.map(lambda v: 3 * v), 3 * K)


def wanted(shape, name, *indices):
    """Return a request within a shape, as one to read, and its pairs (i, j).

    The pairs are in an array of the shape of the answer.
    """
    m, n = shape
    grid = np.moveaxis(np.indices(shape), 0, -1)
    ends = {"columns": [n], "rows": [m], "diagonal": []}.get(name, [m, n])
    sides = [np.array(x, int) % end for x, end in zip(indices, ends, strict=True)]
    if name == "block":
        return sides, ([sides], {}), grid[np.ix_(*sides)]
    if name == "columns":
        return sides, ([(None, *sides)], {}), grid[:, sides[0]]
    if name == "rows":
        return sides, ([(*sides, None)], {}), grid[sides[0]]
    i, j = sides or 2 * [range(min(m, n))]
    return sides, ([], {"pairs": (i, j)}), grid[i, j]


@settings(max_examples=400)
@given(
    requests=REQUESTS,
    batch=st.sampled_from(BATCHES),
    kind=KINDS,
    view=st.sampled_from(["itself", "map", "symmetrized"]),
    limit=st.none() | st.integers(0, 60),
    batch_size=st.sampled_from([None, 1, 3]),
)
def test_any_requests(requests, batch, kind, view, limit, batch_size):
    """Of each exactly what is not known is evaluated, and priced so before."""
    options = {} if batch == "block" else {"batch_size": batch_size}
    K, oracle, sim = of_kind(kind, batch=batch, limit=limit, **options)
    asked, dense = viewed(sim, K, view)
    known = set()
    for name, *indices in requests:
        if name == "diagonal" and K.shape == kind:
            continue  # two collections have none
        sides, (blocks, some), pairs = wanted(K.shape, name, *indices)
        needed = {tuple(pair) for pair in pairs.reshape(-1, 2).tolist()}
        if asked.symmetric:
            needed |= {(j, i) for i, j in needed}
        if sim.symmetric:
            needed = {(min(pair), max(pair)) for pair in needed}
        calls, times = sim.calls, len(oracle.asked)
        price = asked.cost(*blocks, **some)
        assert sim.calls == calls
        if batch != "block" or K.shape == kind:  # or the diagonal may come again
            assert price == len(needed - known)
        try:
            answer = getattr(asked, name)(*sides)
        except BudgetExceeded:
            assert price > asked.remaining
            assert (sim.calls, len(oracle.asked)) == (calls, times)
            continue
        known |= needed
        assert answer.shape == pairs.shape[:-1]
        assert_array_equal(answer, dense[pairs[..., 0], pairs[..., 1]])
        assert sim.calls == calls + price
        if not sim.symmetric:
            assert len(known) <= sim.calls <= len(known) + 7
        assert limit is None or sim.calls <= limit
    oracle.check(sim, symmetric=sim.symmetric)


@settings(max_examples=200)
@given(
    requests=REQUESTS,
    batch=st.sampled_from(BATCHES),
    symmetric=st.booleans(),
    stumbles=st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=6),
    trouble=st.sampled_from(
        [ValueError("no"), Mishap("no", 3), KeyboardInterrupt(), SystemExit()]
    ),
)
def test_nothing_finished_is_lost(requests, batch, symmetric, stumbles, trouble):
    """Each of `stumbles` raises once; a request is repeated until it succeeds."""
    left = set(stumbles)

    def fail(x, y):
        if (x, y) in left:
            left.remove((x, y))
            return trouble
        return None

    K, oracle, sim = make(7, symmetric=symmetric, batch=batch, fail=fail)
    raised = SimilarityError if isinstance(trouble, Exception) else type(trouble)
    for name, *indices in requests:
        *_, pairs = wanted((7, 7), name, *indices)
        while True:
            before = len(left)
            try:
                answer = getattr(sim, name)(*indices)
            except raised:
                assert len(left) < before
            else:
                assert len(left) == before
                break
        assert_array_equal(answer, K[pairs[..., 0], pairs[..., 1]])
    oracle.check(sim, symmetric=symmetric)


@settings(max_examples=200)
@given(
    requests=REQUESTS,
    batch=st.sampled_from([None, "pairs"]),
    symmetric=st.booleans(),
    holes=st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=6),
)
def test_only_what_was_nan_is_asked_again(requests, batch, symmetric, holes):
    K, oracle, sim = make(7, symmetric=symmetric, batch=batch)
    healthy = K.copy()
    for pair in holes:
        K[pair] = np.nan
        if symmetric:
            K[pair[::-1]] = np.nan
    for name, *indices in requests:
        *_, pairs = wanted((7, 7), name, *indices)
        expected = K[pairs[..., 0], pairs[..., 1]]
        if np.isnan(expected).any():
            with pytest.raises(SimilarityError, match="returned nan for items"):
                getattr(sim, name)(*indices)
        else:
            assert_array_equal(getattr(sim, name)(*indices), expected)
    hole = np.isnan(K)
    K[:] = healthy
    assert_array_equal(sim.block(range(7), range(7)), healthy)
    assert sim.calls == len(oracle.pairs)
    finite = [pair for pair in oracle.pairs if not hole[pair]]
    finite = [tuple(sorted(pair)) for pair in finite] if symmetric else finite
    assert len(finite) == len(set(finite))


# What is known.


@settings(max_examples=250)
@given(
    requests=REQUESTS,
    batch=st.sampled_from(BATCHES),
    kind=KINDS,
    view=st.sampled_from(["itself", "map", "symmetrized"]),
    stumbles=st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=6),
    chunk=st.sampled_from([1, 5, 2**20]),
)
def test_what_is_known_comes_once(requests, batch, kind, view, stumbles, chunk):
    """Also of columns that were begun and not finished."""

    def fail(x, y):
        return ValueError("no") if (x, y) in stumbles else None

    K, oracle, sim = of_kind(kind, batch=batch, fail=fail)
    asked, dense = viewed(sim, K, view)
    for name, *indices in requests:
        if name != "diagonal" or K.shape != kind:
            sides, *_ = wanted(K.shape, name, *indices)
            with suppress(SimilarityError):
                getattr(asked, name)(*sides)
    known = set(oracle.pairs)
    if sim.symmetric:
        known |= {pair[::-1] for pair in known}
    if asked.symmetric:
        known &= {pair[::-1] for pair in known}
    calls = sim.calls
    i, j = np.indices(K.shape)
    mask = np.reshape([pair in known for pair in np.ndindex(K.shape)], K.shape)
    peeked = asked.peek(i.ravel(), j.ravel()).reshape(K.shape)
    assert_array_equal(peeked, np.where(mask, dense, np.nan))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simlib.similarity.known.LISTED", chunk)
        parts = list(asked.known())
    pairs = [(int(i), int(j)) for part in parts for i, j in zip(*part[:2], strict=True)]
    values = [value for part in parts for value in part[2]]
    assert values == [dense[pair] for pair in pairs]
    if asked.symmetric:
        pairs = [(min(pair), max(pair)) for pair in pairs]
        known = {(min(pair), max(pair)) for pair in known}
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == known
    assert (sim.calls, len(oracle.pairs)) == (calls, calls)


# Budget.


@pytest.mark.parametrize("batch", BATCHES)
def test_the_limit_is_checked_before_anything_is_evaluated(batch):
    K, oracle, sim = make(batch=batch, limit=9)
    sim.columns([0])
    for needed, request in (
        (8, lambda: sim.columns([0, 1])),
        (8, sim.diagonal),
        (1, lambda: sim.pairs([3], [4])),
        (1, lambda: sim.block([3], [4])),
    ):
        message = f"needs {needed} evaluations.* limit of 9 only 0"
        with pytest.raises(BudgetExceeded, match=message):
            request()
    assert len(oracle.pairs) == sim.calls == 9
    assert_array_equal(sim.rows([0]), K[[0]])
    sim.limit = 17
    assert_array_equal(sim.columns([1]), K[:, [1]])
    assert repr(sim) == "Similarity(9 items, symmetric, 17 of 17 calls)"


# Failures.


def test_an_exception_names_the_pair():
    def function(x, y):
        if y == "ccc":
            raise KeyError("spam")
        return 1.0

    sim = Similarity(WORDS, function, symmetric=False)
    message = r"raised KeyError\('spam'\) on items 1 and 2\. This"
    with pytest.raises(SimilarityError, match=message) as caught:
        sim.block([1], [0, 1, 2, 3])
    assert isinstance(caught.value.__cause__, KeyError)
    assert sim.calls == 2
    with pytest.raises(SimilarityError, match="on items 0 and 2"):
        sim.pairs([0], [2])


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_a_value_that_is_no_number_names_the_pair(batch, bad):
    """As the last is none of float32."""
    K, _, sim = make(symmetric=False, batch=batch, dtype=np.float32)
    K[2, 4] = bad
    said = r"1e\+300, beyond float32," if bad == 1e300 else bad
    with pytest.raises(SimilarityError, match=f"returned {said} for items 2 and 4"):
        sim.block([1, 2], [3, 4, 5])
    assert sim.calls == 6
    K[2, 4] = 8.0
    assert_array_equal(sim.block([1, 2], [3, 4, 5]), K[1:3, 3:6].astype(np.float32))
    assert sim.calls == 7


@pytest.mark.parametrize(
    ("batch", "answer", "message"),
    [
        ("pairs", np.ones(2), r"shape \(2,\) where \(3,\) was exp.* items 0 and 1 on"),
        ("pairs", 1.0, r"shape \(\) where \(3,\) was expected"),
        ("block", np.ones((3, 1)), r"shape \(3, 1\) where \(1, 3\) was expected"),
        ("block", np.ones(3), r"shape \(3,\) where \(1, 3\) was expected"),
        ("pairs", np.ones(3) * 1j, r"complex128 are not real.*items 0 and 1, or later"),
        ("pairs", ["a", "b", "c"], r"not real numbers.*items 0 and 1, or later"),
        *(
            (None, value, r"(TypeError|is no real number).*items 0 and 1")
            for value in (None, 1j, "0.5", b"0.5", np.complex128(0.5 + 1j))
        ),
        (None, np.timedelta64(5, "ns"), "is no real number.*items 0 and 1"),
    ],
)
def test_an_answer_of_the_wrong_form_names_the_pair(batch, answer, message):
    sim = Similarity(WORDS, lambda x, y: answer, batch=batch)
    with pytest.raises(SimilarityError, match=message):
        sim.block([0], [1, 2, 3])


@pytest.mark.parametrize("scale", [1e-6, 1.0])
def test_a_block_function_that_is_not_symmetric_is_found_out(scale):
    """To one per cent of its largest value; below, both halves are made equal."""

    def similarity(gap):
        K = scale * np.ones((9, 9))
        K[1, 2] *= 1 + gap
        return Similarity(np.arange(9), Oracle(K, "block"), batch="block")

    both = similarity(0.005).columns([1, 2])[1:3]
    assert_array_equal(both, both.T)
    sim = similarity(0.02)
    for _ in range(2):  # and however often it is asked
        with pytest.raises(SimilarityError, match=r"not symmetric: .* items 1 and 2,"):
            sim.columns([1, 2])


# What it refuses.


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.array([[1, np.nan], [np.nan, 1]]), r"holds nan at \(0, 1\)"),
        (scipy.sparse.eye_array(3), r"pass K\.toarray"),
        (pdist(np.ones((5, 2))), r"shape \(10,\).*distance.squareform\(K\)"),
        (np.ones(9), r"shape \(9,\), dtype float64.$"),
    ],
)
def test_matrices_that_are_none(K, message):
    with pytest.raises(ValueError, match=message):
        Similarity.from_matrix(K)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ([0, -1], IndexError, "numbered 0 to 8; got -1"),
        ([2**63], IndexError, "numbered 0 to 8; got 9223372036854775808"),
        (np.ones(9, bool), ValueError, "array of integers; got bool"),
        ([[0, 1]], ValueError, r"of shape \(1, 2\)"),
    ],
)
def test_indices_that_are_none(index, error, message):
    _, oracle, sim = make()
    for request in (
        lambda: sim.columns(index),
        lambda: sim.rows(index),
        lambda: sim.block(index, [0]),
        lambda: sim.block([0], index),
        lambda: sim.pairs(index, index),
        lambda: sim.map(np.exp).columns(index),
        lambda: sim.symmetrized().columns(index),
    ):
        with pytest.raises(error, match=message):
            request()
    for request in (sim.pairs, sim.peek):
        with pytest.raises(ValueError, match="same length; got 2 and 1"):
            request([0, 1], [0])
    assert oracle.pairs == []


# What callers may do with an answer.


def test_columns_are_shared_with_lowrank_and_read_only():
    _, _, sim = make()
    C = sim.columns([4, 2, 7])
    assert np.shares_memory(C, sim.columns([4, 2, 7]))
    assert np.shares_memory(C, sim.columns([2]))
    assert np.shares_memory(C, sim.rows([2, 7]))
    left = LowRank(C, np.eye(3)).left
    assert np.shares_memory(left, sim.columns([2]))
    for view in (C, left, sim.rows([2]), sim.map(lambda values: values).columns([2])):
        with pytest.raises(ValueError, match="read-only"):
            view[0, 0] = 5.0


def test_a_function_that_reuses_its_buffer():
    buffer = np.zeros(4096)

    def function(x, y):
        buffer[: len(x)] = x * 10.0 + y
        return buffer[: len(x)]

    sim = Similarity(np.arange(9), function, symmetric=False, batch="pairs")
    first = sim.pairs([1, 2], [3, 4])
    sim.columns([7])
    assert_array_equal(first, [13, 24])
    assert_array_equal(sim.pairs([1, 2], [3, 4]), [13, 24])


# What failed.


@pytest.mark.parametrize("batch", ["pairs", "block"])
def test_what_a_failing_request_was_handed_counts_against_the_limit(batch):
    _, oracle, sim = make(
        40, batch=batch, symmetric=False, limit=1000, fail=lambda x, y: ValueError("no")
    )
    size = 16 if batch == "pairs" else 40
    message = f"Evaluations handed over with it and lost: {size}. They count against"
    with pytest.raises(SimilarityError, match=message):
        sim.columns([1])
    assert (sim.calls, sim.failed, sim.remaining) == (0, size, 1000 - size)
    assert repr(sim).endswith(f"0 of 1000 calls, {size} failed)")
    oracle.fail = lambda x, y: None
    sim.limit = 40 + size - 1
    with pytest.raises(BudgetExceeded, match=rf"only 39 are left \({size} failed\)"):
        sim.columns([1])
    sim.limit += 1
    sim.columns([1])
    assert (sim.calls, sim.failed, sim.remaining) == (40, size, 0)
    assert sim.fork().failed == 0
    assert sim.map(np.exp).failed == sim.symmetrized().failed == size


@pytest.mark.parametrize(
    ("owner", "step", "late"),
    [
        (requests.Request, "fill", False),
        (requests.Request, "fill", True),
        (Known, "put", False),
        (Known, "put", True),
        (Budget, "answered", True),
    ],
)
def test_an_interrupt_while_values_are_kept_loses_none(owner, step, late, monkeypatch):
    method, left = getattr(owner, step), [KeyboardInterrupt]

    def interrupted(self, *arguments):
        if late or not left:
            method(self, *arguments)
        if left:
            raise left.pop()

    K, oracle, sim = make(batch="pairs", batch_size=3)
    monkeypatch.setattr(owner, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        sim.block([0, 1], [2, 3, 4])
    assert (sim.calls, sim.failed, len(listed(sim))) == (3, 0, 3)
    assert_array_equal(sim.block([0, 1], [2, 3, 4]), K[:2, 2:5])
    assert len(oracle.pairs) == 6


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (name, fault)
        for name in ("columns", "block", "pairs")
        for fault in ("raises", "nan", "shape", "asymmetric", "interrupt")
        if (name, fault) != ("pairs", "asymmetric")  # single pairs have one half
    ],
)
def test_a_failure_keeps_no_array_alive(fault, name):
    """Without the garbage collector: no cycle of an error and the frames it names."""

    def function(x, y):
        if fault == "raises":
            raise ValueError("no")
        if fault == "interrupt":
            raise KeyboardInterrupt
        if fault == "shape":
            return np.zeros(3)
        block = np.zeros((len(x), len(y)))
        return block + (np.nan if fault == "nan" else x[:, None] - y)

    arguments = {
        "columns": [range(2)],
        "block": [range(400), range(400)],
        "pairs": [[0] * 50_000, range(50_000)],
    }[name]
    sim = Similarity(np.arange(100_000), function, batch="block")
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(4):
            with suppress(SimilarityError, KeyboardInterrupt):
                getattr(sim, name)(*arguments)
                pytest.fail("no error")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    whole = 100_000 * (2 * 8 + 4) if name == "columns" else 0  # begun columns stay
    assert kept < whole + 2**17


# A diagonal that is known.


@pytest.mark.parametrize("batch", [None, "pairs"])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("given", [1.0, np.arange(9) + 0.5], ids=["scalar", "array"])
def test_a_given_diagonal_is_never_asked_for(batch, symmetric, given):
    n, s = 9, 4
    K, oracle, sim = make(n, symmetric=symmetric, batch=batch, diagonal=given)
    np.fill_diagonal(K, given)
    assert_array_equal(sim.diagonal(), np.diag(K))
    assert (sim.calls, sim.diagonal_known) == (0, True)
    assert_array_equal(sim.peek([3, 3], [3, 4]), [K[3, 3], np.nan])
    assert_array_equal(sim.columns(range(s)), K[:, :s])
    assert sim.calls == n * s - s - symmetric * (s * (s - 1) // 2)
    assert_array_equal(sim.block([5, 6], [5, 6]), K[5:7, 5:7])
    assert_array_equal(sim.pairs([7, 8, 8], [7, 8, 7]), K[[7, 8, 8], [7, 8, 7]])
    assert_array_equal(sim.rows([8]), K[[8]])
    oracle.check(sim, symmetric=symmetric)
    assert not {(i, i) for i in range(n)} & set(oracle.pairs)
    known = known_pairs(sim)
    assert len(known) == len(set(known)) == sim.calls + n
    assert_array_equal(sim.blank().diagonal(), np.diag(K))
    assert sim.fork().map(np.abs).diagonal_known


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("given", [True, False])
def test_a_known_diagonal_does_not_cut_blocks_into_rows(symmetric, given):
    """And is not taken from the function again, where that gives no number for it."""
    K = matrix(300, symmetric=symmetric)
    np.fill_diagonal(K, 1.0)
    shapes, silent, every = [], K.copy(), range(300)
    np.fill_diagonal(silent, np.nan)

    def block(x, y):
        shapes.append((len(x), len(y)))
        return silent[np.ix_(x, y)]

    def similarity():
        options = {"batch": "block", "symmetric": symmetric}
        if given:
            return Similarity(np.arange(300), block, diagonal=1.0, **options)
        sim = Similarity(np.arange(300), block, **options)
        sim.tell(every, every, np.ones(300))
        return sim

    one_by_one = (None, range(100)), (range(50), None), (range(40, 250), range(20, 200))
    blocks = [(range(40), range(200)), (None, range(30, 60)), (range(70, 90), None)]
    for request in ([one] for one in one_by_one), [blocks]:
        for asked in request:
            sim = similarity()
            price = sim.cost(*asked)
            shapes.clear()
            for (rows, columns), found in zip(asked, sim.read(*asked), strict=True):
                side = [every if s is None else s for s in (rows, columns)]
                assert_array_equal(found, K[np.ix_(*side)])
            assert price == sim.calls == sum(m * n for m, n in shapes) - sim.checks
            assert len(shapes) < 12 * len(asked)
    assert_array_equal(sim.columns(every), K)


# Items.


@pytest.mark.parametrize("batch", BATCHES)
@given(st.permutations(range(7)), st.sampled_from(["rows", "columns"]), st.booleans())
def test_all_lines_in_any_order(batch, order, lines, given_diagonal):
    """Of all lines asked in an order of their own each value stands in its place."""
    K = matrix(7, symmetric=False)
    diagonal = np.diag(K) if given_diagonal else None
    K, _, sim = make(7, symmetric=False, batch=batch, diagonal=diagonal)
    expected = K[order] if lines == "rows" else K[:, order]
    assert_array_equal(getattr(sim, lines)(order), expected)
    assert_array_equal(sim.block(range(7), range(7)), K)
    if batch != "block":
        assert sim.calls == (42 if given_diagonal else 49)


@pytest.mark.parametrize("pack", [pd.Series, lambda x: pd.DataFrame({"p": x})])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_pandas_does_not_align_pairs(pack, n_jobs):
    """Labels of rows are those of a batch, whatever rows it has."""
    x = np.array([1.0, 2.0, 4.0, 8.0])
    options = {"batch": "pairs", "symmetric": False, "n_jobs": n_jobs}
    sim = Similarity(pack(x), lambda a, b: np.asarray(a - b).ravel(), **options)
    with joblib.parallel_config("threading"):
        assert_array_equal(sim.pairs([0, 1, 3], [1, 0, 3]), [-1, 1, 0])
        assert_array_equal(sim.symmetrized().pairs([0, 2], [3, 3]), [0, 0])
        assert_array_equal(sim.columns([2])[:, 0], x - 4)
    both_ways = [[-3, 0, 3, 0], [-2, 1, 2, -1]]
    assert_array_equal(sim.between(pack(x[:2]), [2, 0]), both_ways)


def test_rows_of_a_data_frame():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]}, index=[7, 8, 9])
    table = (frame.to_numpy() @ frame.to_numpy().T)[:, [2]]
    functions = {
        None: lambda x, y: x["a"] * y["a"] + x["b"] * y["b"],
        "pairs": lambda xs, ys: (xs.to_numpy() * ys.to_numpy()).sum(axis=1),
        "block": lambda xs, ys: xs.to_numpy() @ ys.to_numpy().T,
    }
    for batch, function in functions.items():
        sim = Similarity(frame, function, batch=batch)
        assert_array_equal(sim.columns([2]), table)
        assert_array_equal(sim.between(frame[1:], [2]), table[1:])
        if batch is not None:
            with pytest.raises(ValueError, match="have the columns of the others"):
                sim.between(frame[["b", "a"]], [0, 1])
        else:
            with pytest.raises(SimilarityError, match="KeyError"):
                sim.between(frame.rename(columns={"a": "c"}), [2])
    series = Similarity(frame["a"], operator.mul)
    assert_array_equal(series.columns([2]).ravel(), [3.0, 6.0, 9.0])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"items": (word for word in WORDS)}, r"has no len\(\). Pass list\(items\)"),
        ({"items": {1: "a", 2: "b"}.values()}, r"no numbers. Pass list\(items\)"),
        ({"items": {"a", "b"}}, "a set has no order"),
        ({"function": np.eye(4)}, r"callable.*from_matrix\(K\)"),
        ({"batch": "rows"}, "is one of pairs, block; got 'rows'"),
        *(({"dtype": t}, "float32 or float64; got") for t in (int, complex, "f2")),
        ({"batch": "block", "batch_size": 8}, "batch_size is for batch=None and"),
        ({"diagonal": np.eye(4)}, r"of shape \(4, 4\)"),
        *(({"diagonal": d}, "must be finite") for d in (np.nan, [1, 2, np.inf, 4])),
        *(({"diagonal": d}, "diagonal must be a number") for d in (1j, "one")),
    ],
)
def test_refusals_at_birth(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Similarity(**{"items": WORDS, "function": lengths} | wrong)


@pytest.mark.parametrize("one", ["words.csv", b"ab", Path("words.csv")])
def test_one_item_is_no_collection(one):
    sim = Similarity(["a", "b"], lengths)
    for take in (
        lambda: Similarity(one, lengths),
        lambda: sim.between(one, [0]),
        lambda: search(sim, one, 1, limit=2),
    ):
        with pytest.raises(TypeError, match=r"is one item: pass \[x\]"):
            take()
    assert sim.calls == 0


def test_a_table_of_one_column_is_a_column_of_items():
    texts = ["martha", "marta", "dwayne", "duane", "dixon"]
    frame = pd.DataFrame({"name": texts}, index=[3, 1, 4, 0, 2])

    def alike(x, y):
        return len(set(x) & set(y)) / len(set(x) | set(y))

    K = np.array(in_form(alike, "block")(texts, texts))
    for table in (frame, frame.to_numpy(), frame["name"]):
        for batch in BATCHES:
            sim = Similarity(table, in_form(alike, batch), batch=batch)
            assert_array_equal(sim.pairs([0, 2], [1, 4]), K[[0, 2], [1, 4]])
            assert_array_equal(sim.between(table[2:4], [0, 3]), K[2:4][:, [0, 3]])
            found = search(sim, table, 1, limit=5, rng=0)
            assert_array_equal(found.values.ravel(), 1.0)
            assert_array_equal(sim.columns(range(5)), K)
    numbers = pd.DataFrame({"x": [1.0, 2.0, 4.0]}, index=[2, 0, 1])
    for function, batch in ((operator.mul, None), (linear_kernel, "block")):
        sim = Similarity(numbers, function, batch=batch)
        assert_array_equal(sim.columns(range(3)), np.outer([1, 2, 4], [1, 2, 4]))


class Increasing:
    """An array in a file, as h5py reads it: by increasing numbers, none twice."""

    def __init__(self, x):
        self.x, self.shape, self.dtype = x, x.shape, x.dtype

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        if isinstance(index, np.ndarray) and (np.diff(index) <= 0).any():
            raise TypeError("Indexing elements must be in increasing order")
        return self.x[index]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("batch", BATCHES)
def test_items_in_a_file(n_jobs, batch):
    x = np.random.default_rng(0).standard_normal((40, 3))
    K = x @ x.T
    function = in_form(lambda a, b: float(a @ b), batch)
    sim = Similarity(Increasing(x), function, batch=batch, n_jobs=n_jobs)
    with joblib.parallel_config("threading"):
        i, j = np.array([[7, 7, 3, 30], [5, 2, 3, 1]])
        assert_allclose(sim.pairs(i, j), K[i, j])
        assert_allclose(sim.columns([9, 2, 9]), K[:, [9, 2, 9]])
        assert_allclose(sim.between(x[:2], [9, 2]), K[:2, [9, 2]])
        found = search(sim, sim.items, 1, limit=40, rng=0)
    assert_array_equal(found.indices.ravel(), K.argmax(axis=1))


@pytest.mark.parametrize("n", [2, 3, 600])
def test_a_triangle_is_no_matrix_of_similarities(n):
    x = np.random.default_rng(0).standard_normal(n)
    D = np.abs(x[:, None] - x)
    lower = np.triu(D)[::-1, ::-1] - np.eye(n)
    for K in (np.triu(D), np.tril(D), np.triu(D) + np.eye(n), lower):
        for symmetric in (None, True):
            with pytest.raises(ValueError, match="is a triangle: on one side of the"):
                Similarity.from_matrix(K, symmetric=symmetric)
        whole = Similarity.from_matrix(K + K.T - np.diag(np.diag(K)))
        assert whole.symmetric
        given = Similarity.from_matrix(K, symmetric=False)
        assert_array_equal(given.columns([0]), K[:, [0]])
    assert Similarity.from_matrix(np.diag(x)).symmetric
    if n > 2:
        other = np.triu(D)
        other[-1, 0] = 1e-9
        assert not Similarity.from_matrix(other).symmetric


# Promises about the machine.

MEMORY = """
import numpy as np
from simlib import Similarity

def status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key))

def distance(x, y):
    return np.abs(x - y).astype(float)

n = 10**6
rng = np.random.default_rng(0)
before = status("VmRSS")
sim = Similarity(np.arange(n), distance, batch="pairs")
i, j = rng.integers(n, size=(2, n))
near = sim.pairs(i, j)
S = rng.choice(n, 64, replace=False)
C = sim.columns(S)
assert (sim.pairs(i, j) == near).all() and (near == abs(i - j)).all()
assert (C[:, 63] == abs(np.arange(n) - S[63])).all()
print(sim.calls, status("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_a_million_items_stay_below_one_gibibyte():
    calls, kibibytes = map(int, python("-c", MEMORY, check=True).stdout.split())
    columns = 64 * 10**6 - 64 * 63 // 2
    assert columns < calls <= columns + 10**6
    assert kibibytes < 2**20


def test_what_is_masked_is_not_a_number():
    K, _, sim = make()
    with pytest.raises(ValueError, match="Items 0 and 2 were told nan"):
        sim.tell([0, 0], [1, 2], masked(K[0, 1:3]))
    with pytest.raises(ValueError, match="diagonal must be finite"):
        make(diagonal=masked(np.arange(9)))
    hidden = np.ma.masked_array(np.ones((3, 3), int), np.eye(3))
    with pytest.raises(ValueError, match=r"The matrix holds nan at \(0, 0\)"):
        Similarity.from_matrix(hidden)
    read = Similarity.from_matrix(hidden, symmetric=False)
    with pytest.raises(SimilarityError, match="returned nan for items 2 and 2"):
        read.pairs([1, 2], [2, 2])
    assert_array_equal(read.peek([1, 2], [2, 2]), [1, np.nan])
    asked = Similarity(np.arange(3), lambda x, y: masked(x * 1.0), batch="pairs")
    with pytest.raises(SimilarityError, match="returned nan for items 0 and 1"):
        asked.pairs([0, 1], [0, 0])
    with pytest.raises(SimilarityError, match=r"turned .* into nan"):
        sim.map(lambda values: np.ma.masked_equal(values, K[0, 1])).pairs([0], [1])
    plain = np.ma.masked_array(K.astype(np.float32), False)
    assert Similarity.from_matrix(plain).dtype == np.float32


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("symmetric", [True, False])
def test_no_answer_can_spoil_the_memory(batch, symmetric):
    K, _, sim = make(symmetric=symmetric, batch=batch)
    requests = [
        lambda: sim.block([1, 2], [3, 4]),
        lambda: sim.pairs([5, 6], [6, 7]),
        lambda: sim.diagonal(),
        lambda: sim.columns([8]),
        lambda: sim.columns([8, 8]),
        lambda: sim.rows([0]),
    ]
    for request in requests * 2:
        answer = request()
        if answer.flags.writeable:
            answer[...] = 99.0
    indices = np.array([2, 3])
    sim.columns(indices)
    indices[:] = 0
    assert_array_equal(sim.block(range(9), range(9)), K)
