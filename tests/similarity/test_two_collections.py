"""Similarities between two collections: a row for each item of one."""

import itertools
import multiprocessing
import os
import signal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from simlib import BudgetExceeded, Similarity, SimilarityError
from simlib.similarity.price import evaluations
from simlib.similarity.store import StoreError
from support.functions import BATCHES, Oracle, in_form, known_pairs

QUERIES, DOCUMENTS = ["a", "bb", "cccc"], ["x", "yyy", "", "zz", "wwwww"]


def score(query, document):
    return 10.0 * len(query) - len(document)


def table(queries=QUERIES, documents=DOCUMENTS):
    return np.array([[score(q, d) for d in documents] for q in queries])


def test_by_hand():
    sim = Similarity(QUERIES, score, columns=DOCUMENTS)
    assert (sim.shape, sim.symmetric, sim.dtype) == ((3, 5), False, float)
    assert repr(sim) == "Similarity(3 rows, 5 columns, 0 calls)"
    assert_array_equal(sim.block([0, 2], [4, 1]), [[5, 7], [35, 37]])
    assert sim.calls == 4
    assert_array_equal(sim.pairs([2, 2, 1], [4, 4, 0]), [35, 35, 19])
    assert sim.calls == 5
    assert sim.cost(([0], None), (None, [4]), pairs=([0], [0])) == 3 + 1
    assert_array_equal(sim.rows([0]), [[9, 7, 10, 8, 5]])
    assert_array_equal(sim.columns([4])[:, 0], [5, 15, 35])
    assert sim.calls == 9
    assert_array_equal(sim.columns(range(5)), table())
    assert sim.calls == 15 == len(known_pairs(sim))
    assert_array_equal(np.sqrt(table()), sim.map(np.sqrt).rows(range(3)))


def test_large_blocks_are_priced_without_their_size():
    sim = Similarity(range(10**6), score, columns=range(2 * 10**6))
    some = np.arange(1000)
    assert sim.cost((some, None), (None, some)) == 1000 * 3 * 10**6 - 10**6
    assert evaluations((sim._memory.asked,), [(None, None)]) == 2 * 10**12


def test_the_limit_and_a_failure_lose_nothing():
    K = np.random.default_rng(0).standard_normal((4, 6))
    bad = {(2, 3)}
    fail = lambda x, y: ValueError("no") if (x, y) in bad else None  # noqa: E731
    oracle = Oracle(K, fail=fail)
    sim = Similarity(range(4), oracle, columns=range(6), limit=20)
    with pytest.raises(BudgetExceeded):
        sim.columns(range(6))
    assert sim.calls == 0
    with pytest.raises(SimilarityError, match="row 2 and column 3"):
        sim.rows([2])
    assert (sim.calls, sim.failed) == (3, 1)
    bad.clear()
    sim.rows([2])
    assert (sim.calls, sim.failed, sim.remaining) == (6, 1, 13)
    with pytest.raises(SimilarityError, match="row 0 and column 1"):
        Similarity([1, 2], lambda x, y: y / (y - 2), columns=[1, 2]).rows([0])


@pytest.mark.parametrize("batch", BATCHES)
def test_new_rows_and_new_columns(batch):
    sim = Similarity(QUERIES, in_form(score, batch), columns=DOCUMENTS, batch=batch)
    new = ["qqqqqq", "r"]
    assert_array_equal(sim.between(new, [4, 0, 4]), table(new)[:, [4, 0, 4]])
    assert sim.calls == 4
    there = sim.between(new, row_landmarks=[2, 1])
    assert_array_equal(there, table(documents=new)[[2, 1]].T)
    assert sim.calls == 8
    assert_array_equal(sim.map(np.exp).between(new, [1]), np.exp(table(new)[:, [1]]))
    for landmarks in ([[0], [0]], [None, None]):
        with pytest.raises(ValueError, match="New rows are compared with columns"):
            sim.between(new, *landmarks)
    with pytest.raises(IndexError, match="Columns are numbered 0 to 4"):
        sim.between(new, [5])
    failing = Similarity([1], lambda x, y: 1 / (y - 2), columns=[1])
    with pytest.raises(SimilarityError, match="row 0 and new column 1"):
        failing.between([1, 2], row_landmarks=[0])


@pytest.mark.parametrize(
    ("new", "told"),
    [(-1, r"shape \(3, 5\) has no item -1"), (5, "5 is out of bounds .* size 5")],
)
def test_new_columns_of_a_given_matrix_are_numbers_of_its_columns(new, told):
    sim = Similarity.from_matrix(np.arange(15.0).reshape(3, 5))
    assert sim.between([4], row_landmarks=[2]).tolist() == [[14.0]]
    with pytest.raises(SimilarityError, match=told):
        sim.between([new], row_landmarks=[0])


def test_what_is_of_one_collection_alone_says_so():
    sim = Similarity(QUERIES, score, columns=QUERIES)  # m = n, and yet two
    assert not sim.symmetric
    assert not hasattr(sim, "n")
    with pytest.raises(AttributeError, match="two collections: use `shape`"):
        _ = sim.n
    for ask in (sim.diagonal, sim.symmetrized, sim.map(abs).symmetrized):
        with pytest.raises(ValueError, match="of one collection"):
            ask()
    with pytest.raises(ValueError, match="no diagonal"):
        Similarity(QUERIES, score, columns=QUERIES, diagonal=1.0)
    for items, columns in ([], QUERIES), (QUERIES, []):
        with pytest.raises(ValueError, match="at least one item"):
            Similarity(items, score, columns=columns)
    with pytest.raises(TypeError, match="one item"):
        Similarity(QUERIES, score, columns="document")
    with pytest.raises(IndexError, match="Rows are numbered 0 to 2"):
        sim.rows([3])
    with pytest.raises(IndexError, match="Columns are numbered 0 to 2"):
        sim.pairs([0], [-1])


def test_two_equal_collections_are_asked_in_both_orders():
    K = np.random.default_rng(0).standard_normal((70, 70))
    for batch in BATCHES:
        oracle = Oracle(K, batch)
        sim = Similarity(range(70), oracle, columns=range(70), batch=batch)
        sim.pairs(range(70), range(70))
        assert_array_equal(sim.columns(range(70)), K)
        assert sim.calls == len(oracle.pairs) == len(set(oracle.pairs)) == 70 * 70


def test_from_matrix_of_any_shape():
    K = np.random.default_rng(0).standard_normal((4, 6)).astype("f4")
    sim = Similarity.from_matrix(K)
    assert (sim.shape, sim.dtype, sim.symmetric) == ((4, 6), np.float32, False)
    assert_array_equal(sim.rows([1, 3]), K[[1, 3]])
    assert_array_equal(sim.columns([5]), K[:, [5]])
    assert sim.calls == 12 + 2
    with pytest.raises(ValueError, match="square"):
        Similarity.from_matrix(K, symmetric=True)
    K[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"nan at \(1, 2\)"):
        Similarity.from_matrix(K)
    with pytest.raises(SimilarityError, match="row 1 and column 2"):
        Similarity.from_matrix(K, symmetric=False).rows([1])


def test_a_square_matrix_between_two_collections():
    K = np.arange(9.0).reshape(3, 3)
    K = K + K.T
    sim = Similarity.from_matrix(K, two=True)
    assert (sim.shape, sim.symmetric, sim.extent) == ((3, 3), False, (3, 3))
    assert_array_equal(sim.rows([0, 1, 2]), K)
    assert sim.calls == 9
    with pytest.raises(ValueError, match="Two collections have no symmetry"):
        Similarity.from_matrix(K, symmetric=True, two=True)
    K[1, 2] = np.inf
    with pytest.raises(ValueError, match=r"inf at \(1, 2\)"):
        Similarity.from_matrix(K, two=True)
    triangle = Similarity.from_matrix(np.triu(np.ones((3, 3))), two=True)
    assert triangle.rows([2]).tolist() == [[0, 0, 1]]


def test_items_of_two_kinds():
    X = np.random.default_rng(0).standard_normal((5, 3))
    names = pd.DataFrame({"weight": [1.0, 2.0], "power": [1, 2]})

    def one(x, row):
        return row["weight"] * x.sum() ** row["power"]

    sim = Similarity(X, one, columns=names)
    sums = X.sum(axis=1)
    assert_allclose(sim.columns([1])[:, 0], 2 * sums**2)
    new = pd.DataFrame({"weight": [3.0], "power": [1]})
    assert_allclose(sim.between(new, row_landmarks=[0]), [[3 * sums[0]]])
    with pytest.raises(ValueError, match="New items"):
        sim.between(X[:, :2], [0])
    sparse = scipy.sparse.csr_array(np.eye(3))
    sim = Similarity(sparse, lambda x, y: x @ y.T, columns=X, batch="block")
    assert_allclose(sim.columns(range(5)), X.T)


# Runs, forks and blanks.


def test_runs_forks_and_blanks():
    sim = Similarity(QUERIES, score, columns=DOCUMENTS, limit=20)
    sim.rows([1])
    run = sim.run()
    assert_array_equal(run.rows([1]), table()[[1]])
    assert (run.calls, sim.calls) == (5, 5)
    run.columns([0])
    assert (run.calls, sim.calls) == (7, 7)
    assert sim.cost((None, [0])) == 0
    fork = sim.fork(limit=0)
    assert_array_equal(fork.columns([0]), table()[:, [0]])
    blank = sim.blank()
    blank.columns([0])
    assert (blank.calls, sim.remaining) == (10, 10)
    sim.tell([2, 2], [3, 4], table()[2, [3, 4]])
    assert sim.cost(([2], None)) == 2
    with pytest.raises(ValueError, match="Row 0 and column 0 were told"):
        sim.tell([0], [0], [3.0])


# Stores.


def opened(path, queries=QUERIES, documents=DOCUMENTS, function=score, **options):
    return Similarity(
        queries, function, columns=documents, store=path, function_id="1", **options
    )


def test_a_store_knows_both_sides_by_their_items(tmp_path):
    with opened(tmp_path / "s") as sim:
        sim.rows([1])
        sim.columns([3])
        sim.between(["new"], [0, 1])
        sim.between(["fresh"], row_landmarks=[2])
        assert sim.calls == 7 + 3
    queries, documents = ["new", *QUERIES[::-1]], ["fresh", *DOCUMENTS[::-1], "more"]
    with opened(tmp_path / "s", queries, documents) as sim:
        assert sim.verified > 0
        assert len(known_pairs(sim)) == 10
        assert_array_equal(sim.rows(range(4)), table(queries, documents))
        assert sim.calls == 4 * 7 - 10
    with opened(tmp_path / "s", queries, documents) as sim:
        assert sim.cost((None, None)) == 0
        assert_array_equal(
            sim.between(["bb"], [1, 2]), table(["bb"], documents)[:, [1, 2]]
        )
        assert sim.calls == 0


def test_a_store_of_the_same_text_on_both_sides(tmp_path):
    """A query may be a document too: (q, d) is not (d, q)."""
    texts = ["a", "bbb", "cc"]
    with opened(tmp_path / "s", texts, texts) as sim:
        sim.pairs([0], [1])
        assert sim.cost(pairs=([1], [0])) == 1
    with opened(tmp_path / "s", texts, texts) as sim:
        assert known_pairs(sim) == [(0, 1)]
        assert sim.peek([0], [1]) == score("a", "bbb")


def test_a_store_refuses_another_function_and_bad_names(tmp_path):
    with opened(tmp_path / "s") as sim:
        sim.rows([0, 1])
    with pytest.raises(StoreError, match=r"row \d and column"):
        opened(tmp_path / "s", function=lambda x, y: -score(x, y))
    with pytest.raises(ValueError, match="pair"):
        opened(tmp_path / "t", items_id=["a", "b", "c"])
    objects = [object() for _ in range(3)]
    table = dict(zip(map(id, objects), QUERIES, strict=True))
    with opened(
        tmp_path / "u",
        objects,
        function=lambda x, y: score(table[id(x)], y),
        items_id=(QUERIES, None),
    ) as sim:
        sim.rows([2])
    with opened(tmp_path / "u", QUERIES[2:]) as sim:
        assert sim.cost((None, None)) == 0


def _until_killed(path, count):
    def counted(query, document):
        if next(counter) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return score(query, document)

    counter = itertools.count()
    opened(path, function=counted, batch_size=1, verify=0).columns(range(5))


def test_a_killed_process_loses_one_request(tmp_path):
    process = multiprocessing.get_context("fork").Process(
        target=_until_killed, args=(tmp_path / "s", 8)
    )
    process.start()
    process.join()
    with opened(tmp_path / "s", verify=0) as sim:
        assert len(known_pairs(sim)) == 8
        assert_array_equal(sim.columns(range(5)), table())
        assert sim.calls == 7


def test_a_store_of_one_collection_is_none_of_two(tmp_path):
    path = tmp_path / "s"
    options = {"store": path, "function_id": "1"}
    with Similarity(["a", "b"], lambda x, y: 1.0, **options) as sim:
        sim.rows([0])
    with pytest.raises(StoreError, match="Of two collections the order of a pair"):
        Similarity(["a"], lambda x, y: 1.0, columns=["b"], **options)
