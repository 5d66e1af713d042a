"""The ledger on disk: nothing paid twice, whatever stops the process or the disk."""

import contextlib
import csv
import gc
import os
import pickle
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
import warnings

import joblib
import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from simlib import METHODS, Similarity, SimilarityError, StoreError, nystrom
from simlib.similarity import store
from simlib.similarity.identity import digest, digests
from simlib.similarity.known import Known
from simlib.similarity.store import Record, Store, main
from support.functions import listed
from support.processes import python, python_in_a_shell

N = 40
POINTS = np.random.default_rng(0).standard_normal((N, 3))
WORDS = [f"word {k}" for k in range(N)]


def product(x, y):
    return float(np.tanh(x @ y))


def products(xs, ys):
    return np.tanh(np.einsum("ij,ij->i", xs, ys))


def table(xs, ys):
    return np.tanh(xs @ ys.T)


FORMS = {None: product, "pairs": products, "block": table}


def opened(path, batch=None, items=POINTS, function=None, **options):
    """Return a similarity on a store that is closed again by `close`."""
    options = {"function_id": "tanh 1"} | options
    return Similarity(
        items, function or FORMS[batch], batch=batch, store=path, **options
    )


def filled(path, columns, *arguments, **options):
    """Write into a store what some columns hold."""
    with opened(path, *arguments, **options) as sim:
        sim.columns(columns)


def everything(sim):
    """Return what is known as a dictionary."""
    triples, found = listed(sim), {}
    for i, j, value in triples:
        found[(min(i, j), max(i, j)) if sim.symmetric else (i, j)] = value
    assert len(found) == len(triples)
    return found


@pytest.fixture(autouse=True)
def _every_connection_is_closed(monkeypatch):
    """Python 3.13 warns of one that is not, in whatever test runs when it notices."""
    made, connect = [], sqlite3.connect

    def noted(*arguments, **options):
        made.append(connect(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    yield
    for connection in made:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.total_changes  # noqa: B018


# What comes back


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("batch", FORMS)
def test_the_next_process_knows_what_this_one_has_paid(
    tmp_path, batch, symmetric, dtype
):
    options = {"batch": batch, "symmetric": symmetric, "dtype": dtype}
    with opened(tmp_path / "s", **options) as sim:
        asked = [
            lambda sim: sim.columns([3, 5]),
            lambda sim: sim.rows([7, 3]),
            lambda sim: sim.block([1, 2, 3, 9], [2, 1, 8]),
            lambda sim: sim.pairs([0, 1, 2, 2], [10, 11, 12, 12]),
            lambda sim: sim.diagonal(),
        ]
        answers = [question(sim) for question in asked]
        before, calls = everything(sim), sim.calls
        assert calls > 0
    with opened(tmp_path / "s", **options) as again:
        assert everything(again) == before
        for question, answer in zip(asked, answers, strict=True):
            np.testing.assert_array_equal(question(again), answer)
            assert question(again).dtype == dtype
        assert again.calls == 0


def test_columns_come_back_as_columns(tmp_path):
    """And not as scattered entries, which take twice the memory."""
    filled(tmp_path / "s", [4, 6, 8], "block")
    with opened(tmp_path / "s", "block") as sim:
        assert sorted(sim._memory.shelf.columns.kept) == [4, 6, 8]


@settings(max_examples=60)
@given(st.data())
def test_grids_are_restored(data):
    """Whichever way round, overlapping, twice, or but a part."""
    n, symmetric = data.draw(st.integers(1, 9)), data.draw(st.booleans())
    K = np.arange(1.0, n * n + 1).reshape(n, n)
    K = K + K.T if symmetric else K
    sides = st.lists(st.integers(0, n - 1), min_size=1, unique=True).map(np.array)
    grids, expected = [], np.full((n, n), np.nan)
    for i, j in data.draw(st.lists(st.tuples(sides, sides), max_size=5)):
        grids.append((i, j, K[np.ix_(i, j)]))
        expected[np.ix_(i, j)] = K[np.ix_(i, j)]
        if symmetric:
            expected[np.ix_(j, i)] = K[np.ix_(j, i)]
    memory = Known(n, symmetric=symmetric, dtype=np.dtype(float))
    memory.restore(grids)
    i, j = np.indices((n, n)).reshape(2, -1)
    np.testing.assert_array_equal(memory.get(i, j).reshape(n, n), expected)
    upper = np.triu(np.ones((n, n), dtype=bool)) | (not symmetric)
    count = sum(i.size for i, *_ in memory.known())
    assert count == np.count_nonzero(~np.isnan(expected) & upper)


def test_views_forks_and_blanks(tmp_path):
    with opened(tmp_path / "s", symmetric=False) as sim:
        sim.map(np.exp).symmetrized().columns([1])
        sim.fork(limit=50).columns([2])
        sim.blank().columns([3])  # whose values are not worth their memory
    with opened(tmp_path / "s", symmetric=False) as sim:
        sim.symmetrized().map(abs).columns([1])
        sim.columns([2])
        assert sim.calls == 0
        sim.columns([3])
        assert sim.calls == N - 1  # the row of item 1 is known


def test_one_file_and_what_it_weighs(tmp_path):
    filled(tmp_path / "s", np.arange(30), "pairs")
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    assert (tmp_path / "s").stat().st_size < 30 * N * 16 + 20_000


# What is told


@pytest.mark.parametrize("kept", [True, False])
def test_what_a_run_is_told_is_known_to_all(tmp_path, kept):
    sim = opened(tmp_path / "s", verify=0) if kept else Similarity(POINTS, product)
    run = sim.run()
    run.tell([0], [1], [9.0])
    assert run.pairs([0], [1]) == sim.run().pairs([1], [0]) == sim.peek([0], [1]) == 9
    assert sim.pairs([0], [1]) == 9
    assert sim.calls == run.calls == 0
    sim.close()
    if kept:
        assert opened(tmp_path / "s", verify=0).pairs([0], [1]) == 9


def test_tell(tmp_path):
    with opened(tmp_path / "s") as sim:
        K = table(POINTS, POINTS)
        sim.tell([0, 2, 0], [1, 1, 1], [K[0, 1], K[1, 2], K[0, 1]])
        assert sim.calls == 0
        assert everything(sim) == {(0, 1): K[0, 1], (1, 2): K[1, 2]}
        sim.tell([1], [0], [K[0, 1] * (1 + 1e-15)])  # rounding; what is known stays
        before = everything(sim)
        for i, j, values, message in [
            ([1, 3], [0, 4], [0.5, 0.0], "Items 1 and 0 were told 0.5"),
            ([3, 4], [4, 3], [0.5, 0.6], "Items 4 and 3 were told 0.6"),
            ([3, 3], [4, 4], [1.7e308, -1.7e308], "Nothing was taken"),
            ([3], [4], [np.nan], "told nan"),
            ([3], [4], [0.5, 0.6], "one number for each of the 1 pairs"),
            ([3], [4], ["x"], "one number"),
            ([3], [4], [1j], "one number"),
        ]:
            with pytest.raises(ValueError, match=message):
                sim.tell(i, j, values)
        with pytest.raises(IndexError):
            sim.tell([3], [N], [0.5])
        assert everything(sim) == before
    with opened(tmp_path / "s") as sim:
        assert everything(sim) == before
        sim.columns([1])
        assert sim.calls == N - 2
    both = Similarity(POINTS, product, symmetric=False, dtype=np.float32)
    both.tell([0, 1], [1, 0], [0.1, 0.2])
    assert everything(both) == {(0, 1): np.float32(0.1), (1, 0): np.float32(0.2)}
    with pytest.raises(ValueError, match=r"told 1e\+300, no finite float32"):
        both.tell([2], [3], [1e300])


@pytest.mark.parametrize("asked", ["columns", "pairs", "run", None])
def test_what_is_known_stays_when_told_with_other_rounding(asked):
    K = table(POINTS, POINTS)
    sim, every = Similarity(POINTS, product), np.arange(N)
    if asked == "columns":
        sim.columns([1])
    elif asked == "pairs":
        sim.pairs(every, every * 0 + 1)
    elif asked == "run":
        sim.run().columns([1])
    value = K[0, 1] * (1 + 2e-15)
    sim.tell([0], [1], [value])
    expected = value if asked is None else K[0, 1]
    assert sim.pairs([0], [1])[0] == sim.peek([1], [0])[0] == expected
    assert everything(sim)[0, 1] == expected
    assert sim.columns([1])[0, 0] == sim.block([0], [1])[0, 0] == expected


# What is refused


def test_other_similarities_are_refused(tmp_path):
    opened(tmp_path / "s").close()
    for option, message in [
        ({"function_id": "tanh 2"}, "tanh 1 there and tanh 2 here"),
        ({"dtype": np.float32}, "same dtype"),
        ({"symmetric": False}, "same symmetric"),
    ]:
        with pytest.raises(StoreError, match=message):
            opened(tmp_path / "s", **option)
    opened(tmp_path / "s", "pairs").close()  # another form of the same function
    for name in (None, "", 3):
        with pytest.raises(ValueError, match="function_id"):
            opened(tmp_path / "none", function_id=name)
    assert not (tmp_path / "none").exists()
    with pytest.raises(ValueError, match="are for a store"):
        Similarity(POINTS, product, function_id="tanh 1")
    for version in (3, 1):
        queried(tmp_path / "s", f"PRAGMA user_version = {version}")
        with pytest.raises(StoreError, match=f"format {version}, and this .* reads 2"):
            opened(tmp_path / "s")


class Opaque:
    """An item of which nobody can tell what it is."""

    def __init__(self, value):
        self.value = value


def test_items_without_a_digest(tmp_path):
    items = [Opaque(k) for k in range(6)]

    def gap(x, y):
        return abs(x.value - y.value)

    with pytest.raises(TypeError, match="no digest of a Opaque: pass items_id"):
        opened(tmp_path / "s", None, items, gap)
    for ids, message in [
        ("points", "names each of the 6 items"),
        (range(5), "names each of the 6 items"),
        ([1, 2, 3, 4, 4, 5], "names two items alike"),
    ]:
        with pytest.raises(ValueError, match=message):
            opened(tmp_path / "s", None, items, gap, items_id=ids)
    with opened(tmp_path / "s", None, items, gap, items_id=list("abcdef")) as sim:
        sim.columns(range(6))
        sim.between([Opaque(2.5)], [0])  # which has no name, and is not kept
        sim.between([Opaque(2.5)], [0])
        assert sim.calls == 21 + 2
    two = [items[4], items[1]]
    with opened(tmp_path / "s", None, two, gap, items_id=["e", "b"]) as sim:
        assert sim.pairs([0], [1]) == [3.0]
        assert sim.calls == 0


@pytest.mark.parametrize(
    "changed",
    [{"items_id": range(N)}, {"items": POINTS.astype("f4")}, {"items": POINTS + 1}],
)
def test_a_store_that_knows_none_of_the_items_says_so(tmp_path, changed):
    filled(tmp_path / "s", [0])
    with opened(tmp_path / "s", items=np.vstack([POINTS[:1], POINTS + 1])):
        pass  # of one it knows something
    with pytest.warns(store.StoreWarning, match="40 values, and knows none") as told:
        sim = opened(tmp_path / "s", **changed)
    sim.close()
    assert told[0].filename == __file__
    assert ("go by items_id" in str(told[0].message)) == ("items_id" in changed)


def test_files_that_are_no_store(tmp_path):
    (tmp_path / "text").write_text("similar " * 200)
    with pytest.raises(StoreError, match="no store of similarities"):
        opened(tmp_path / "text")
    assert (tmp_path / "text").read_text() == "similar " * 200
    queried(tmp_path / "other", "CREATE TABLE t (a)")
    with pytest.raises(StoreError, match="a database, but no store"):
        opened(tmp_path / "other")
    with pytest.raises(StoreError, match="is there a folder"):
        opened(tmp_path / "missing" / "s")
    with pytest.raises(StoreError, match="is a folder: name a file in it"):
        opened(tmp_path)
    (tmp_path / "empty").touch()
    opened(tmp_path / "empty").close()


def test_one_writer(tmp_path):
    def refused():
        with pytest.raises(StoreError, match="is in use"):
            opened(tmp_path / "s")

    sim = opened(tmp_path / "s")
    refused()
    assert waited(forked(refused)) == 0
    sim.close()
    sim.columns([0])  # goes on without it
    with opened(tmp_path / "s") as again:
        assert not everything(again)


def test_the_hold_stays_when_the_file_is_copied_and_goes_with_the_last_name(tmp_path):
    """Whoever closes a file undoes the locks that SQLite has on it."""
    path = tmp_path / "s"
    inside = f"""
import sys
from simlib import Similarity
Similarity([1, 2], max, store={str(path)!r}, function_id="tanh 1", verify=0)
"""

    def another():
        done = python("-W", "ignore", "-c", inside)
        return done.returncode == 0 or "is in use" not in done.stderr

    sim = opened(path)
    sim.columns([0])
    shutil.copyfile(path, tmp_path / "copy")
    assert not another()
    child = forked(lambda: time.sleep(60))  # does not hold on
    gc.disable()
    try:
        del sim
        assert another()
        opened(path).close()
    finally:
        gc.enable()
        os.kill(child, signal.SIGKILL)
        waited(child)


@pytest.mark.parametrize("what", ["deleted", "moved", "replaced"])
def test_a_file_that_is_gone_while_it_is_open(tmp_path, what):
    path, aside = tmp_path / "s", tmp_path / "aside"
    sim = opened(path)
    sim.columns([0])
    paid = sim.calls
    path.rename(aside)
    if what == "deleted":
        aside.unlink()
    elif what == "replaced":
        opened(path).close()
    for _ in range(2):
        with pytest.raises(StoreError, match=r"moved, deleted or .*Nothing was"):
            sim.columns([1])
    assert sim.calls == paid
    if what == "moved":  # and back
        aside.rename(path)
        sim.columns([1])
    sim.close()
    if what == "replaced":
        with opened(path) as sim:
            assert not everything(sim)


def test_copies_do_not_write(tmp_path):
    with opened(tmp_path / "s") as sim:
        sim.columns([0])
        copy = pickle.loads(pickle.dumps(sim))
        copy.columns([0, 1])
        assert copy.calls == sim.calls + N - 1
        assert waited(forked(lambda: sim.columns([2]))) == 0
        sim.columns([3])
    with opened(tmp_path / "s") as sim:
        assert set(np.ravel(list(everything(sim)))) == set(range(N))
        assert len(everything(sim)) == 2 * N - 1


# The table changes


def rows_of(kind):
    """Return items of a kind, and how some of them are taken."""
    if kind == "array":
        return POINTS, lambda places: POINTS[places]
    if kind == "sparse":
        X = scipy.sparse.csr_array(POINTS)
        return X, lambda places: X[places]
    if kind in ("text", "mappings"):
        rows = [{"word": word, "at": k} for k, word in enumerate(WORDS)]
        rows = WORDS if kind == "text" else rows
        return rows, lambda places: [rows[k] for k in places]
    frame = pandas.DataFrame({"word": WORDS, "at": np.arange(N) / 2})
    frame.loc[3, "word"] = None
    frame.loc[4, "at"] = np.nan
    return frame, lambda places: frame.iloc[places]


class Row:
    """A function of pairs of anything, by a hash of both, that counts."""

    def __init__(self):
        self.calls = 0

    def __call__(self, xs, ys):
        one, other = (digests(side).astype(float) / 2**64 for side in (xs, ys))
        self.calls += one.size
        return one + other + one * other


@pytest.mark.parametrize("kind", ["array", "sparse", "text", "mappings", "frame"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_table_in_another_order_with_more_items_or_fewer(tmp_path, kind, symmetric):
    items, some = rows_of(kind)
    first, then = np.arange(30), np.random.default_rng(0).permutation(N)[:33]
    options = {"batch": "pairs", "symmetric": symmetric, "function": Row()}
    with opened(tmp_path / "s", items=some(first), **options) as sim:
        columns, pairs = sim.columns([3, 4, 8]), sim.pairs([10, 20, 5], [11, 21, 5])
    whole = Similarity(items, Row(), batch="pairs", symmetric=symmetric)
    np.testing.assert_array_equal(columns, whole.columns([3, 4, 8])[:30])
    np.testing.assert_array_equal(pairs, whole.pairs([10, 20, 5], [11, 21, 5]))
    paid = {(a, b) for i, j, _ in whole.known() for a, b in zip(i, j, strict=True)}
    paid = {(a, b) for a, b in paid if a < 30 and b < 30}
    paid |= {(b, a) for a, b in paid} if symmetric else set()
    with opened(tmp_path / "s", items=some(then), **options) as sim:
        assert sim.verified == 8
        i, j = np.indices((then.size, then.size)).reshape(2, -1)
        known = [pair in paid for pair in zip(then[i], then[j], strict=True)]
        np.testing.assert_array_equal(~np.isnan(sim.peek(i, j)), known)
        expected = whole.block(then, then)
        np.testing.assert_array_equal(sim.block(np.arange(33), np.arange(33)), expected)
        unknown = ~np.reshape(known, (33, 33))
        assert sim.calls == np.count_nonzero(np.triu(unknown) if symmetric else unknown)


def test_equal_items_have_what_was_paid_for_each_of_them(tmp_path):
    """In any order of the table; not that of the first instead of another."""
    words = ["a", "b", "a", "c", "a", "b"]
    with opened(tmp_path / "s", "pairs", words, Row()) as sim:
        K = sim.columns(range(6))
        assert sim.calls == 21
    with opened(tmp_path / "s", "pairs", [*words[::-1], "a"], Row()) as sim:
        np.testing.assert_array_equal(sim.block(range(6), range(6)), K[::-1, ::-1])
        assert sim.calls == 0
        sim.columns(range(7))
        assert sim.calls == 7


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("batch", ["pairs", "block"])
def test_what_new_items_cost_is_kept(tmp_path, batch, symmetric):
    options = {"symmetric": symmetric}
    old, new = POINTS[:30], POINTS[28:]  # two of which are no new ones
    K = table(POINTS, POINTS)
    with opened(tmp_path / "s", batch, old, **options) as sim:
        sim.rows([28]), sim.columns([28])
        paid = sim.calls
        values = sim.between(new, [3, 1])
        one = 22 if symmetric else 44
        assert sim.calls == paid + one
        np.testing.assert_allclose(values[:, :2], K[28:, [3, 1]], rtol=1e-12)
        np.testing.assert_array_equal(sim.between(new[:5], [1]), values[:5, 1::2])
        assert sim.calls == paid + one
    with opened(tmp_path / "s", batch, old, **options) as sim:
        np.testing.assert_array_equal(sim.between(new, [3, 1]), values)
        assert (sim.calls, sim.verified) == (0, 8)
        sim.between(new, [1, 2])
        assert sim.calls == 11 * (1 if symmetric else 2)  # items 28 and 2 are known
    with opened(tmp_path / "s", batch, POINTS, **options) as sim:
        assert not np.isnan(sim.peek(np.arange(28, N), np.full(12, 3))).any()
        np.testing.assert_array_equal(
            sim.pairs(np.arange(28, N), [3] * 12), values[:, 0]
        )
        assert sim.calls == 0


@pytest.mark.parametrize("batch", FORMS)
def test_new_items_that_are_landmarks_are_asked_in_one_order(tmp_path, batch):
    K = table(POINTS, POINTS)
    halves = 3 if batch == "block" else 0  # of a tile of three items
    with opened(tmp_path / "s", batch) as sim:
        for size in (3, 12, 12):
            new = np.arange(size)[::-1]
            np.testing.assert_allclose(
                sim.between(POINTS[new], range(size)), K[new, :size], rtol=1e-12
            )
            assert sim.calls == size * (size + 1) // 2 + halves
    asked = Similarity(POINTS, FORMS[batch], batch=batch)
    assert asked.between(POINTS[:12], range(12)).size == asked.calls == 144  # no ids


def test_an_interrupt_between_new_items_loses_nothing(tmp_path, monkeypatch):
    hand = Store.hand

    def interrupted(self, record):
        hand(self, record)
        raise KeyboardInterrupt

    with opened(tmp_path / "s", "pairs", POINTS[:30], batch_size=5) as sim:
        monkeypatch.setattr(Store, "hand", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sim.between(POINTS[30:], [1, 2])
        monkeypatch.undo()
        values = sim.between(POINTS[30:], [1, 2])
        np.testing.assert_allclose(values, table(POINTS, POINTS)[30:, [1, 2]])
        assert sim.calls == 20


# Another function


def test_a_forgotten_function_id(tmp_path):
    def other(x, y):
        return 0.9 * product(x, y)

    path = tmp_path / "s"
    with opened(path) as sim:
        sim.columns([0, 1])
        assert sim.verified == 0
    message = "and so have [5-8] of the 8 pairs that were evaluated again.*verify=0"
    with pytest.raises(StoreError, match=message):
        opened(path, function=other)
    with opened(path) as sim:
        assert (sim.verified, sim.calls) == (8, 0)
        assert repr(sim) == (
            "Similarity(40 items, symmetric, 0 calls, 8 of a store verified)"
        )
    with opened(path, function=lambda x, y: product(x, y) + 1e-9, verify=3) as sim:
        assert sim.verified == 3  # another machine, or batches of another size
    with opened(path, function=other, verify=0) as sim:
        assert sim.verified == 0
    with opened(path, function=other, items=POINTS[5:]) as sim:
        assert sim.verified == 0  # nothing is known of these items
    little = {"function": lambda x, y: 0.999 * product(x, y), "verify": 3}
    with pytest.warns(store.StoreWarning, match="of the 3 pairs.*verify=0") as warned:
        opened(path, **little).close()
    assert warned[0].filename == __file__
    for number in (-1, 0.5, None):
        with pytest.raises((TypeError, ValueError), match="verify"):
            opened(path, verify=number)


def test_a_store_with_a_value_that_only_was_told_can_be_opened(tmp_path):
    """The error of a function on a pair advises to tell its value."""

    def function(x, y):
        if {x, y} == {"b", "c"}:
            raise ZeroDivisionError
        return 1.0

    with opened(tmp_path / "s", None, list("abc"), function) as sim:
        with pytest.raises(SimilarityError, match="`tell` the value of the pair"):
            sim.columns([0, 1])
        sim.tell([1], [2], [0.5])
    with opened(tmp_path / "s", None, list("abc"), function) as sim:
        assert sim.verified > 0
        assert sim.block([1], [2]) == 0.5
        assert sim.calls == 0


def test_functions_are_verified_as_they_were_asked(tmp_path):
    """In the order of the two items, by pairs or by blocks, and not on the diagonal."""

    def order(x, y):
        return float(x) if x != y else 7.0

    numbers = np.arange(20.0)
    with opened(tmp_path / "s", None, numbers, order) as sim:
        sim.columns([3, 5])
        sim.diagonal()
    with opened(tmp_path / "s", None, numbers[::-1], order) as sim:
        assert sim.verified == 8
    filled(tmp_path / "t", [3, 5], "block")
    for batch in FORMS:
        with opened(tmp_path / "t", batch) as sim:
            assert sim.verified == 8
    with opened(tmp_path / "u") as sim:
        sim.diagonal()
    with opened(tmp_path / "u") as sim:
        assert sim.verified == 0


def test_a_function_that_fails_when_a_store_is_opened(tmp_path):
    def fails(x, y):
        raise OSError("no route to host")

    filled(tmp_path / "s", [0])
    with pytest.raises(ValueError, match="no route to host"):
        opened(tmp_path / "s", function=fails)
    opened(tmp_path / "s").close()


# Damage


def damaged(path, place, what=0xFF):
    data = bytearray(path.read_bytes())
    data[place] ^= what
    path.write_bytes(data)


def test_damage_anywhere_never_gives_a_wrong_value(tmp_path):
    """A byte that differs, and a file that was cut."""
    K, path, seen = table(POINTS, POINTS), tmp_path / "s", ""
    filled(path, np.arange(20), batch_size=20)
    whole = path.read_bytes()
    for place in [whole.index(b"tanh 1"), *range(0, len(whole), 397)]:
        path.write_bytes(whole)
        damaged(path, place)
        seen += told_of_damage(path, K)
    assert all(told in seen for told in DAMAGE)
    for share in (0.1, 0.5, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        said = told_of_damage(path, K)
        assert any(told in said for told in DAMAGE[:2])


DAMAGE = ["Restore a copy, or move it away", "is damaged", "Move the file away to"]


def told_of_damage(path, K):
    """Return what is said of a store when it is opened; what it then says is right."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            sim = opened(path, batch_size=20)
        except StoreError as error:
            return str(error)
    with sim:
        for i, j, values in sim.known():
            np.testing.assert_allclose(values, K[i, j], rtol=1e-12)
        assert all("damaged" in str(warning.message) for warning in caught)
        np.testing.assert_allclose(sim.columns(range(20)), K[:, :20], rtol=1e-12)
        assert sim.calls == 0 or caught
    with opened(path, batch_size=20) as sim:  # in order again
        sim.columns(range(20))
        assert sim.calls == 0
    assert {warning.category for warning in caught} <= {store.StoreWarning}
    return " ".join(str(warning.message) for warning in caught)


def queried(path, statement):
    """Execute a statement on a closed database; return its first row, if any."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchone()


SPOILT = "UPDATE requests SET entries = zeroblob(8) WHERE number = 1"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["link", "replace"])
def test_an_interrupt_of_a_rescue(tmp_path, monkeypatch, step, after):
    filled(tmp_path / "s", [0, 1], batch_size=20)
    queried(tmp_path / "s", SPOILT)
    function = getattr(os, step)

    def interrupted(*names):
        function(*names) if after else None
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        opened(tmp_path / "s")
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", store.StoreWarning)
        sim = opened(tmp_path / "s")
    assert len(everything(sim)) == sim.n + sim.n - 1 - 20
    sim.close()
    assert (tmp_path / "s.damaged").exists()


def test_a_rescue_without_hard_links_and_through_a_link(tmp_path, monkeypatch):
    def link(*names):
        raise OSError("no links here")

    (tmp_path / "disk").mkdir()
    path, real = tmp_path / "s", tmp_path / "disk" / "s"
    path.symlink_to(real)
    for trouble in (False, True):
        filled(path, [0, 1], batch_size=20)
        queried(real, SPOILT)
        before = real.read_bytes()
        monkeypatch.setattr(os, "link", link) if trouble else None
        with pytest.warns(store.StoreWarning, match="is damaged"):
            opened(path).close()
        assert path.is_symlink()
        assert real.with_name("s.damaged").read_bytes() == before
        assert not (tmp_path / "s.damaged").exists()


def test_a_number_beyond_all_reason(tmp_path):
    """It is not counted up to, and what stands there is known."""
    path = tmp_path / "s"
    filled(path, np.arange(N), batch_size=20)
    queried(path, "UPDATE requests SET number = 1 << 40 WHERE number = 1")
    [size] = queried(path, "PRAGMA page_size")
    data = bytearray(path.read_bytes())
    data[4 * size : 5 * size] = b"\xff" * size
    path.write_bytes(data)
    previous = signal.signal(signal.SIGALRM, lambda *_: sys.exit("it counts"))
    signal.alarm(20)
    try:
        with pytest.warns(store.StoreWarning, match="is damaged"):
            sim = opened(path)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    assert not np.isnan(sim.peek([0], [4])).any()
    assert N < len(everything(sim)) < N * (N + 1) / 2
    sim.close()


# The disk is full, an interrupt, a kill


class Paid:
    """A function of two numbers that writes down what it is asked."""

    def __init__(self, log, seconds=0.0):
        self.log, self.seconds = log, seconds

    def __call__(self, x, y):
        with open(self.log, "a") as log:
            log.write(f"{min(x, y)} {max(x, y)}\n")
        time.sleep(self.seconds)
        return 1 / (1 + abs(x - y))

    def pairs(self):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [tuple(map(int, line.split())) for line in lines]


def forked(function):
    """Run a function in a process of its own; return the number of the process."""
    with warnings.catch_warnings():  # of threads that have nothing to do with it
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    try:  # must not raise, nor run what the parent has to
        function()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def waited(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_at_any_moment(tmp_path, jobs):
    """The same answer, and nothing paid twice but what was under way."""
    function, answer = Paid(tmp_path / "log", 0.001), tmp_path / "answer"

    def ask(sim):
        nystrom(sim, 10, rng=0)
        sim.block(range(20, 40), range(30, 50))
        return repr(sorted(everything(sim).items()))

    def work():
        with joblib.parallel_config(backend="threading", n_jobs=jobs):
            options = {"batch_size": 5, "verify": 0}
            sim = opened(tmp_path / "s", None, range(60), function, **options)
            answer.write_text(ask(sim))

    generator = random.Random(jobs)
    kills = 20
    for _ in range(kills):
        child = forked(work)
        time.sleep(generator.uniform(0.01, 0.15))
        os.kill(child, signal.SIGKILL)
        assert waited(child) in (0, -signal.SIGKILL)
    assert waited(forked(work)) == 0
    sim = Similarity(range(60), lambda x, y: 1 / (1 + abs(x - y)))
    assert answer.read_text() == ask(sim)
    pairs = function.pairs()
    assert len(set(pairs)) == sim.calls
    under_way = 1 if jobs == 1 else 2 * jobs  # finished, but not yet written, included
    assert len(pairs) - sim.calls <= kills * under_way * 5


def test_no_large_array_is_deleted_under_the_workers(tmp_path, monkeypatch):
    # Joblib deletes the memory maps of a call after it, and meanwhile a second call of
    # the same Parallel takes them to be there still (three waves in a hundred failed).
    used = []
    call = joblib.Parallel.__call__

    def noted(self, calls):
        used.append(self)
        return call(self, calls)

    monkeypatch.setattr(joblib.Parallel, "__call__", noted)
    with opened(tmp_path / "s", "pairs", batch_size=10) as sim:
        with joblib.parallel_config(backend="threading", n_jobs=2):
            K = sim.columns(np.arange(N))
        np.testing.assert_allclose(K, table(POINTS, POINTS), rtol=1e-12)
        assert len(used) > 3
        assert len({id(parallel) for parallel in used}) == len(used)


def test_the_disk_is_full(tmp_path):
    """A file may not grow: what is finished is kept, and written when there is room."""
    path, function = tmp_path / "s", Paid(tmp_path / "log")
    limit = resource.RLIMIT_FSIZE

    def work():
        options = {"batch_size": 50, "check_symmetry": False}
        with opened(path, None, range(300), function, **options) as sim:
            sim.columns([0])
            hard = resource.getrlimit(limit)[1]
            resource.setrlimit(limit, (path.stat().st_size, hard))
            for column in range(1, 4):
                with pytest.raises(StoreError) as told:
                    sim.columns([column])
                assert "disk is full, or the file may grow no larger" in str(told.value)
                assert "kept in memory" in str(told.value)
            known = everything(sim)
            assert len(known) > 300
            np.testing.assert_array_equal(sim.columns([0])[:2, 0], [1, 0.5])  # known
            resource.setrlimit(limit, (hard, hard))
            sim.columns([1])
            assert len(everything(sim)) > len(known)

    assert waited(forked(work)) == 0
    pairs = function.pairs()
    assert len(pairs) == len(set(pairs))
    with opened(path, None, range(300), function, verify=0) as sim:
        assert set(everything(sim)) == set(pairs)


def test_more_values_than_a_row_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "LARGEST", 50)
    with opened(tmp_path / "s", symmetric=False) as sim:
        sim._ledger.store._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1500)
        K = table(POINTS, POINTS)
        i, j = np.repeat(np.arange(20), N), np.tile(np.arange(N), 20)
        sim.tell(i, j, K[i, j])
    for n, m in ((3, 20), (1, 120), (7, 9)):
        values, again = np.arange(1.0 * n * m).reshape(n, m), np.zeros((n, m))
        for part in store._cut(Record(np.arange(n), np.arange(m), values, True)):
            assert part.values.size <= 50
            assert part.grid
            again[np.ix_(part.i, part.j)] = part.values
        np.testing.assert_array_equal(again, values)
    with opened(tmp_path / "s", symmetric=False) as sim:
        np.testing.assert_array_equal(sim.rows(np.arange(20)), K[:20])
        assert sim.calls == 0


@pytest.mark.parametrize("place", ["hand", "flush"])
def test_an_interrupt_between_two_lines(tmp_path, monkeypatch, place):
    with opened(tmp_path / "s", batch_size=10) as sim:
        method = getattr(Store, place)

        def interrupted(self, *arguments):
            method(self, *arguments) if place == "hand" else None
            if len(self.pending) == 1 and everything(sim) != {}:
                raise KeyboardInterrupt

        sim.columns([0])
        monkeypatch.setattr(Store, place, interrupted)
        with pytest.raises(KeyboardInterrupt):
            sim.pairs(np.arange(20), np.full(20, 30))
        monkeypatch.undo()
        paid = sim.calls
        values = sim.pairs(np.arange(20), np.full(20, 30))
        assert sim.calls == paid + 20 - 1 - 10  # (0, 30) is known, ten were under way
        np.testing.assert_allclose(values, table(POINTS, POINTS)[:20, 30])
    with opened(tmp_path / "s") as sim:
        assert len(everything(sim)) == paid + 9


# The command line


def test_info_verify_export(tmp_path, capsys):
    def lengths(xs, ys):
        return np.outer(list(map(len, xs)), list(map(len, ys)))

    path = tmp_path / "s"
    with opened(path, "block", WORDS, lengths) as sim:
        sim.columns([1, 2])
        expected = everything(sim)
    assert main(["info", str(path)]) == 0
    said = capsys.readouterr().out
    assert "items: 40" in said
    assert "function_id: tanh 1" in said
    assert "damaged: nothing" in said
    assert main(["verify", str(path)]) == 0
    capsys.readouterr()
    assert main(["export", str(path)]) == 0
    header, *lines = csv.reader(capsys.readouterr().out.splitlines())
    assert header == ["i", "j", "value"]
    place = {digest(word): k for k, word in enumerate(WORDS)}
    found = {}
    for i, j, value in lines:
        a, b = sorted((place[int(i)], place[int(j)]))
        found[a, b] = float(value)
    assert len(found) == len(lines)
    assert found == expected
    damaged(path, path.read_bytes().rindex(np.float64(36.0).tobytes()))
    assert main(["verify", str(path)]) == 1
    assert "damaged: 1" in capsys.readouterr().out
    assert main(["info", str(tmp_path / "none")]) == 2
    assert "is not there" in capsys.readouterr().err
    (tmp_path / "text").write_text("text " * 100)
    assert main(["verify", str(tmp_path / "text")]) == 2
    assert not list(tmp_path.glob("none*"))


@pytest.mark.parametrize("place", ["s", ""])
def test_a_store_that_cannot_be_written_is_refused_before_it_pays(
    tmp_path, monkeypatch, place
):
    opened(tmp_path / "s").close()
    closed, access = tmp_path / place, os.access
    monkeypatch.setattr(  # root may write everything
        os, "access", lambda path, mode: path != closed and access(path, mode)
    )
    with pytest.raises(StoreError, match="is read-only: a store is opened for writing"):
        opened(tmp_path / "s")


def test_an_export_of_which_only_the_head_is_read(tmp_path):
    filled(tmp_path / "s", range(300), items=range(300), function=lambda x, y: x + y)
    export = f"-m simlib.similarity.store export {tmp_path}/s"
    done = python_in_a_shell(f"{export} | head -1")
    assert done.stdout == "i,j,value\n"
    assert not done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_an_export_onto_a_full_disk(tmp_path):
    filled(tmp_path / "s", [0])
    export = f"-m simlib.similarity.store export {tmp_path}/s"
    done = python_in_a_shell(f"{export} > /dev/full")
    assert done.returncode == 2
    assert "No space left on device" in done.stderr


def test_the_database_of_another_program_keeps_its_journal(tmp_path):
    path = tmp_path / "other"
    queried(path, "PRAGMA journal_mode = WAL")
    queried(path, "CREATE TABLE t (x)")
    with pytest.raises(StoreError, match="keeps a write-ahead log, which no store"):
        Similarity(["a", "b"], len, store=path, function_id="1")
    assert main(["info", str(path)]) == 2
    assert queried(path, "PRAGMA journal_mode") == ("wal",)


@pytest.mark.parametrize("batch", ["block", "pairs"])
def test_a_diagonal_that_was_given_is_not_what_the_function_said(tmp_path, batch):
    x = np.random.default_rng(0).standard_normal((70, 2))

    def products(a, b):
        return a @ b.T if batch == "block" else (a * b).sum(axis=1)

    with opened(tmp_path / "s", batch, x, products, diagonal=7.0) as sim:
        first = sim.columns(range(70))
    np.testing.assert_array_equal(first.diagonal(), 7.0)
    with opened(tmp_path / "s", batch, x, products) as sim:
        np.testing.assert_allclose(sim.columns(range(70)), x @ x.T)
        assert sim.calls == 70


def test_what_waits_for_room_on_the_disk_is_not_written_over(tmp_path):
    """The store stays open."""
    out = np.empty(4000)

    def gaps(a, b):
        return np.abs(a - b, out=out[: len(a)])

    options = {"batch": "pairs", "batch_size": 4000, "function": gaps}
    sim = opened(tmp_path / "s", items=np.arange(3000.0), **options)
    sim._ledger.store._connection.execute("PRAGMA max_page_count=10")
    with pytest.raises(StoreError, match="disk is full"):
        sim.pairs(np.zeros(4000, int), np.arange(4000) % 3000)
    for _ in range(2):
        with pytest.raises(StoreError, match="disk is full"):
            sim.close()
    sim._ledger.store._connection.execute("PRAGMA max_page_count=100000")
    sim.between(np.arange(7.0), [2000])
    sim.close()
    with opened(tmp_path / "s", items=np.arange(3000.0), **options) as sim:
        np.testing.assert_array_equal(sim.pairs([0] * 9, range(9)), range(9))
        assert sim.calls == 0


def closeness(x, y):
    return float(np.exp(-((x - y) ** 2).sum()))


def test_a_method_goes_on_where_it_stopped(tmp_path):
    for name, method in METHODS.items():
        whole = method.function(Similarity(POINTS, closeness), 8, rng=1)
        with opened(tmp_path / name, function=closeness) as sim:
            sim.columns([0, 1, 2])
            method.function(sim, 5, rng=1)
            paid = sim.calls
        with opened(tmp_path / name, function=closeness) as sim:
            method.function(sim, 5, rng=1)
            assert sim.calls == 0
            answer = method.function(sim, 8, rng=1)
            assert 0 < sim.calls < method.calls(N, 8) + paid
            np.testing.assert_array_equal(answer.left, whole.left)


def test_what_new_items_have_paid_for_answers_the_matrix_too(tmp_path):
    """In the process that paid, after an interrupt of the reading, and after close."""
    words = ["similar", "simile", "smile", "mile"]

    def lengths(x, y):
        return float(len(x) + len(y))

    with opened(tmp_path / "s", None, words, lengths) as sim:
        sim.between(["similar", "new"], [3])
        assert (sim.calls, sim.cost(pairs=([0], [3]))) == (2, 0)
        assert sim.pairs([0], [3]) == 11
        assert sim.calls == 2
    sim.between(["new"], [3])
    assert sim.calls == 2
    with opened(tmp_path / "s", None, words, lengths, verify=0) as sim:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Store, "records", interrupted)
            with pytest.raises(KeyboardInterrupt):
                sim.between(["new"], [3])
        sim.between(["new"], [3])
        assert sim.calls == 0


def interrupted(*_):
    raise KeyboardInterrupt


def test_a_store_whose_values_are_all_alike_allows_for_rounding(tmp_path):
    values = iter(np.float32(0.7) * (1 + np.array([0, 1e-7])))
    for _ in range(2):
        with opened(tmp_path / "s", None, [*"abc"], lambda x, y: next(values)) as sim:
            sim.pairs([0], [1])


def test_names_have_an_order(tmp_path):
    for names in ({"a", "b"}, {"a": 1, "b": 2}):
        with pytest.raises(ValueError, match="a sequence of as many"):
            opened(tmp_path / "s", None, range(2), max, items_id=names)


def test_two_columns_of_one_name_are_refused(tmp_path):
    frame = pandas.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    with pytest.raises(ValueError, match="rename one"):
        opened(tmp_path / "s", "pairs", frame, products)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_that_ends_leaves_the_journal_of_its_parent(tmp_path):
    script = """
import os, sys, warnings
from simlib import Similarity
warnings.simplefilter("ignore", DeprecationWarning)
sim = Similarity(range(50), lambda x, y: x + y, store="s", function_id="f")
sim.columns([0])
files = sorted(os.listdir())
if not os.fork():
    sys.exit()
os.wait()
assert sorted(os.listdir()) == files, (files, os.listdir())
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
