"""How a function is asked: workers, threads, coroutines, batches, interrupts."""

import asyncio
import itertools
import operator
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rapidfuzz.distance import JaroWinkler

from simlib import Similarity, SimilarityError
from simlib.similarity import call, evaluate, requests
from simlib.similarity.budget import AsymmetryError, Budget
from support.functions import BATCHES, Mishap, in_form, listed, matrix

# In parallel.

FUNCTIONS = {None: operator.mul, "pairs": np.multiply, "block": np.multiply.outer}


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(
    "options",
    [{"symmetric": True}, {"symmetric": False}, {"columns": np.arange(70.0)}],
    ids=["symmetric", "asymmetric", "two"],
)
def test_two_workers(backend, batch, options):
    items = np.arange(70.0)
    table = np.multiply.outer(items, items)
    sim, alone = (
        Similarity(items, FUNCTIONS[batch], batch=batch, n_jobs=n_jobs, **options)
        for n_jobs in (2, None)
    )
    with joblib.parallel_config(backend=backend):
        for one in (sim, alone):
            assert_array_equal(one.block(range(30), range(20, 50)), table[:30, 20:50])
            assert_array_equal(one.columns([69, 1, 25]), table[:, [69, 1, 25]])
            assert_array_equal(one.rows([4]), table[[4]])
            pairs = one.pairs(range(69), range(1, 70))
            assert_array_equal(pairs, items[1:] * items[:-1])
    assert sim.calls == alone.calls


def stumble(x, y):
    if y == 60 or x == 60:
        raise Mishap("stumbled", 60)
    return float(x + y)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_failure_among_workers_names_the_pair(backend):
    sim = Similarity(np.arange(100), stumble, symmetric=False)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        message = r"raised .*Mishap\('stumbled at 60'\).* on items 60 and 1\b"
        with pytest.raises(SimilarityError, match=message) as failure:
            sim.columns([1])
        assert failure.value.pair == (60, 1)
        known = sim.calls
        assert known < 100
        assert_array_equal(sim.pairs([0, 1], [1, 1]), [1, 2])  # finished before
        assert sim.calls == known
        others = np.delete(np.arange(100), 60)
        assert_array_equal(sim.pairs(others, others * 0 + 1), others + 1)
        assert sim.calls == 99
        with pytest.raises(SimilarityError, match=message):
            sim.columns([1])
    assert sim.calls == 99
    sim.tell([60], [1], [61.0])
    assert_array_equal(sim.columns([1])[:, 0], np.arange(100) + 1)
    assert sim.calls == 99


# How much is handed over at a time.


class Clock:
    """A function that tells how many pairs it is given, and the time as it wants."""

    def __init__(self, monkeypatch, seconds):
        self.seconds, self.now, self.sizes = seconds, 0.0, []
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def __call__(self, x, y):
        size = np.size(x)
        self.now += self.seconds * size
        self.sizes.append(size)
        return np.zeros(np.broadcast(x, y).shape)


def test_requests_of_pairs_take_about_a_second(monkeypatch):
    clock = Clock(monkeypatch, 2**-7)
    sim = Similarity(np.arange(1000), clock, batch="pairs", symmetric=False)
    sim.columns([5])
    assert clock.sizes[:3] == [16, 64, 128]
    assert max(clock.sizes) == 128
    del clock.sizes[:]
    sim.pairs(range(384), range(384, 768))  # what was measured is remembered
    assert clock.sizes == [128, 128, 128]
    clock = Clock(monkeypatch, 1e-9)
    Similarity(np.arange(10**5), clock, batch="pairs").columns([5])
    assert max(clock.sizes) == 2**14
    clock = Clock(monkeypatch, 5.0)
    Similarity(np.arange(100), clock, batch="pairs", symmetric=False).columns([5])
    assert (clock.sizes[0], set(clock.sizes[1:])) == (16, {1})


@pytest.mark.parametrize("symmetric", [True, False])
def test_batch_size_is_kept_to(monkeypatch, symmetric):
    for name, arguments in (
        ("columns", [[3, 4, 5]]),
        ("block", [range(10), range(5, 20)]),
        ("pairs", [range(49), range(1, 50)]),
    ):
        clock = Clock(monkeypatch, 7.0)
        options = {"batch": "pairs", "batch_size": 32.0, "check_symmetry": False}
        sim = Similarity(np.arange(50), clock, symmetric=symmetric, **options)
        getattr(sim, name)(*arguments)
        assert set(clock.sizes[:-1]) == {32}
        assert sum(clock.sizes) == sim.calls


def test_tiles_of_a_block_function_heed_neither_clock_nor_workers(monkeypatch):
    shapes = []

    def function(x, y):
        shapes.append((len(x), len(y)))
        return np.zeros((len(x), len(y)))

    def tiles(seconds, n_jobs):
        shapes.clear()
        ticks = itertools.count(0, seconds)
        sim = Similarity(np.arange(3000), function, batch="block", n_jobs=n_jobs)
        with monkeypatch.context() as patch:
            patch.setattr(
                "simlib.similarity.call.time.perf_counter", lambda: next(ticks)
            )
            with joblib.parallel_config(backend="threading"):
                sim.columns(range(100))
                sim.block(range(200, 400), range(300, 500))
        return sorted(shapes)

    alone = tiles(1e-3, 1)
    assert alone == tiles(1e3, 1) == tiles(1e-3, 2)
    assert max(rows * columns for rows, columns in alone) <= 2**17


# Functions that wait.


class Service:
    """Judges pairs, some only when asked again, over a connection of its own loop."""

    def __init__(self, K, fails=lambda i, j: False):
        self.K, self.fails, self.loop = K, fails, None
        self.asked, self.busy, self.most = [], 0, 0

    async def post(self, i, j):
        loop = asyncio.get_running_loop()
        self.loop = self.loop or loop
        assert loop is self.loop
        first = (i, j) not in self.asked
        self.asked.append((i, j))
        self.busy += 1
        self.most = max(self.most, self.busy)
        await asyncio.sleep(0.001)
        self.busy -= 1
        if first and self.fails(i, j):
            raise ConnectionError
        return self.K[i, j]


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("n_jobs", [None, 1, 4])
@pytest.mark.parametrize("batch", BATCHES)
def test_coroutine_functions(running, n_jobs, batch):
    K = matrix(12)
    service = Service(K)

    async def judge_all(xs, ys):
        return K[xs[:, None], ys[None, :]]

    async def judge_some(xs, ys):
        return await asyncio.gather(*map(service.post, xs, ys))

    function = {None: service.post, "pairs": judge_some, "block": judge_all}[batch]
    sim = Similarity(np.arange(12), function, batch=batch, n_jobs=n_jobs)

    def use():
        assert_array_equal(sim.columns([5, 2]), K[:, [5, 2]])
        assert_array_equal(sim.pairs([7, 1], [8, 1]), K[[7, 1], [8, 1]])
        assert_array_equal(sim.between(np.arange(3), [4]), K[:3, [4]])
        wrapped = Similarity(np.arange(12), lambda x, y: function(x, y), batch=batch)
        assert_array_equal(wrapped.pairs([3], [4]), K[[3], [4]])

    async def cell():
        use()

    asyncio.run(cell()) if running else use()
    if batch is None:
        assert service.most <= (n_jobs or 1)
        assert n_jobs != 4 or service.most > 1


def test_a_coroutine_that_fails_names_the_pair():
    K = matrix(6)
    service = Service(K, lambda i, j: {i, j} == {2, 4})

    class Judge:
        async def __call__(self, x, y):
            return await service.post(x, y)

    sim = Similarity(range(6), Judge(), n_jobs=2)
    with pytest.raises(SimilarityError, match=r"ConnectionError.* on items 2 and 4"):
        sim.columns([4])
    assert sim.failed == 1
    assert_array_equal(sim.columns([4]), K[:, [4]])
    assert len(service.asked) == 7


# Together.


def test_threads_never_pay_twice():
    K = matrix(60)
    asked = []

    def function(x, y):
        asked.append((x, y))
        time.sleep(1e-5)
        return K[x, y]

    sim = Similarity(range(60), function, limit=60 * 61 // 2, check_symmetry=False)
    views = [sim, sim.map(np.exp), sim.fork()]
    found = {}

    def read(k):
        view = views[k % 3]
        found[k] = view.block(range(5 * k, 5 * k + 20), range(30)), view.columns([k])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(read, range(8)))
    assert len(set(asked)) == len(asked) == sim.calls + views[2].calls
    assert_array_equal(found[0][0], K[:20, :30])
    assert_array_equal(found[4][1], np.exp(K[:, [4]]))


def test_it_can_be_pickled_and_the_lock_stays_shared():
    sim = Similarity(range(4), operator.sub, symmetric=False, limit=20)
    sim.columns([1])
    one, fork = pickle.loads(pickle.dumps((sim, sim.fork())))
    assert one._lock is fork._lock
    assert one._lock is not sim._lock
    assert_array_equal(one.columns([1]), fork.columns([1]))
    assert (one.calls, one.limit) == (4, 20)


def columns_in_a_worker(sim, k):
    sim.pairs([k], [k])
    sim.block([k, k + 1], [k + 2])
    view = sim.columns([k])
    return type(view), float(view[3, 0]), sim.calls


def test_workers_are_given_a_large_similarity_mapped_read_only():
    n = 300_000
    sim = Similarity(np.arange(n), np.add, batch="pairs")
    sim.columns([1])
    sim.pairs(range(200_000), range(2, 200_002))
    calls = sim.calls
    answers = joblib.Parallel(2)(
        joblib.delayed(columns_in_a_worker)(sim, k) for k in (5, 6)
    )
    assert [value for _, value, _ in answers] == [8.0, 9.0]
    assert all(kind is np.ndarray for kind, *_ in answers)
    assert all(after > calls + n - 10 for *_, after in answers)


def dies(x, y):
    if x == 60:
        os._exit(1)
    return float(x + y)


def test_a_worker_that_dies():
    sim = Similarity(np.arange(100), dies, symmetric=False, n_jobs=2, batch_size=10)
    with pytest.raises(SimilarityError, match="A worker gave no answer from items"):
        sim.columns([1])
    assert sim.failed > 0
    assert sim.failed % 10 == 0
    assert sim.calls + sim.failed <= 100
    assert len(listed(sim)) == sim.calls
    sim._evaluator.function = operator.add
    assert_array_equal(sim.columns([1])[:, 0], np.arange(100) + 1.0)
    assert sim.calls == 100


class Locked:
    """A function that no other process can have."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, x, y):
        return 1.0


def test_a_function_that_cannot_be_pickled():
    sim = Similarity(np.arange(10), Locked(), n_jobs=2)
    told = r"cannot be sent to a worker process: TypeError: cannot pickle.*lock"
    with pytest.raises(SimilarityError, match=told):
        sim.columns([1])
    assert (sim.calls, sim.failed) == (0, 0)
    with joblib.parallel_config(backend="threading"):
        sim.columns([1])


def test_a_function_of_a_compiled_module():
    words = ["one", "once", "two"]
    sim = Similarity(words, JaroWinkler.similarity, n_jobs=2)
    with pytest.raises(
        SimilarityError, match=r"pickle <cyfunction.*inside one of your"
    ):
        sim.columns([0])
    sim = Similarity(words, lambda x, y: JaroWinkler.similarity(x, y), n_jobs=2)
    expected = [JaroWinkler.similarity(word, "one") for word in words]
    assert_array_equal(sim.columns([0])[:, 0], expected)


class Slow(int):
    """A number that another thread may overtake while it is added."""

    def __radd__(self, other):
        time.sleep(0.01)
        return int(self) + other


def test_threads_that_count_at_once():
    budget = Budget(None)
    with ThreadPoolExecutor(6) as threads:
        for _ in "abc":
            threads.submit(budget.hand_over, Slow(1))
            threads.submit(budget.answered, 0, Slow(1), 0)
    assert (budget.calls, budget.failed) == (3, 3)


def test_a_bar_that_another_thread_ends_now():
    shown = []
    bars = [SimpleNamespace(update=shown.append), None]

    class Shared(Budget):
        _bar = property(lambda self: bars.pop(0), lambda self, bar: None)

    Shared(None).answered(3, 3, 0)
    assert shown == [3]


def test_a_backend_that_does_not_answer_as_it_comes():
    sim = Similarity(np.arange(10), operator.add)
    with (
        joblib.parallel_config(backend="multiprocessing", n_jobs=2),
        pytest.raises(SimilarityError, match=r'could not begin.*"loky", "threading"'),
    ):
        sim.columns([1])
    assert (sim.calls, sim.failed) == (0, 0)


class Stop(BaseException):
    """Is no Exception, and does not survive being pickled (nor by `distributed`)."""

    def __new__(cls, a, b):
        return super().__new__(cls)

    def __init__(self, a, b):
        super().__init__(a)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_coroutine_that_ends_the_program(n_jobs, kind):
    """It would end the loop in which it runs, and nobody would answer any more."""

    async def judge(x, y):
        if y == 3:
            raise kind
        return x * y

    sim = Similarity(range(6), judge, n_jobs=n_jobs)
    with pytest.raises(kind):
        sim.columns([3])
    assert sim.pairs([4], [5]) == [20]


@pytest.mark.parametrize(("n_jobs", "kind"), [(1, Stop), (2, BaseException)])
def test_no_exception_becomes_one(n_jobs, kind):
    def stops(x, y):
        raise Stop(x, y)

    sim = Similarity(range(9), stops)
    with (
        joblib.parallel_config(backend="threading", n_jobs=n_jobs),
        pytest.raises(kind, match=r"^[1-8]$|Stop\([1-8]\)") as told,
    ):
        sim.columns([0])
    assert type(told.value) is kind


def test_answers_that_nobody_takes_are_no_warning(monkeypatch):
    """Of joblib, which warns where others are done, or under way, at an interrupt."""
    settle = evaluate.Evaluator._settle

    def slowly(*arguments):
        time.sleep(0.05)
        return settle(*arguments)

    def stops(x, y):
        time.sleep(0.02)
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate.Evaluator, "_settle", slowly)
    sim = Similarity(range(9), stops)
    with (
        joblib.parallel_config(backend="threading", n_jobs=2),
        pytest.raises(KeyboardInterrupt),
    ):
        sim.columns([0])


# Progress.


def bars(capsys):
    return capsys.readouterr().err.count("\n")


def test_one_bar_for_all_that_is_read_together(capsys):
    Similarity(range(50), operator.mul).columns([1])
    assert capsys.readouterr().err == ""
    sim = Similarity(range(50), operator.sub, symmetric=False, progress=True)
    mean = sim.symmetrized()
    mean.columns([1])
    assert "99.0/99.0" in (shown := capsys.readouterr().err)
    assert shown.count("\n") == 1
    with sim.progress_bar(sim.cost((None, [2, 3]), ([7, 8], [7, 8]))):
        sim.columns([2, 3])
        sim.map(np.exp).block([7, 8], [7, 8])
    assert bars(capsys) == 1
    sim.columns([2, 3])  # known
    assert bars(capsys) == 0
    sim.between([1, 2], [3])
    assert bars(capsys) == 1
    pickle.dumps(sim)


class Drawers:
    """Items of which one cannot be read."""

    def __len__(self):
        return 40

    def __getitem__(self, k):
        if k == 30:
            raise OSError("stuck")
        return float(k)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_items_that_cannot_be_read(n_jobs):
    sim = Similarity(Drawers(), operator.mul, n_jobs=n_jobs, batch_size=4)
    with (
        joblib.parallel_config(backend="threading"),
        pytest.raises(SimilarityError, match="items themselves could not be read"),
    ):
        sim.columns([1])
    assert sim.failed == 0
    assert_array_equal(sim.pairs([2], [3]), [6.0])


@pytest.mark.parametrize("batch", [None, "pairs"])
@pytest.mark.parametrize("items", [np.eye(60), [f"word {k}" for k in range(60)]])
def test_an_item_goes_to_a_worker_once_with_a_request(monkeypatch, items, batch):
    calls, sent = call.call, []

    def recorded(number, function, batch, xs, ys, places):
        sent.append((len(xs), len(ys)))
        return calls(number, function, batch, xs, ys, places)

    def alike(x, y):
        return float(x == y) if isinstance(x, str) else float(np.dot(x, y))

    monkeypatch.setattr(call, "call", recorded)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        sim = Similarity(items, in_form(alike, batch), batch=batch, batch_size=50)
        assert_array_equal(sim.columns([3, 5]), np.eye(60)[:, [3, 5]])
    assert len(sent) > 2
    assert max(right for _, right in sent) <= 2


@pytest.mark.parametrize(
    ("batch", "trouble", "failed"),
    [
        (None, ValueError, 1),
        ("pairs", ValueError, 8),
        ("pairs", KeyboardInterrupt, 8),
        ("pairs", None, 8),  # an answer of the wrong shape
        ("block", ValueError, 39),  # the item itself comes later
    ],
)
def test_what_was_handed_over_in_vain(batch, trouble, failed):
    def function(x, y):
        if trouble is None:
            return np.ones(2)
        raise trouble

    size = None if batch == "block" else 8
    sim = Similarity(np.arange(40), function, batch=batch, batch_size=size)
    with pytest.raises((SimilarityError, KeyboardInterrupt)):
        sim.columns([1])
    assert (sim.calls, sim.failed) == (0, failed)


class Unsendable:
    def __reduce__(self):
        raise TypeError("cannot pickle this one")


def test_an_item_that_cannot_be_pickled():
    """The requests without it may have been evaluated: they stay counted."""
    begun = {
        number: requests.Request(np.arange(2), np.arange(2), ()) for number in (3, 5)
    }
    calls = {3: partial(abs, -1), 5: partial(abs, Unsendable())}
    budget = Budget(10)
    budget.hand_over(4)
    error = TypeError("cannot pickle this one")
    told = evaluate._broken(begun, calls, error, budget, "items {} and {}")
    assert "Evaluations handed over with it and lost: 2." in str(told)
    assert (budget.calls, budget.failed) == (0, 2)


def test_a_coroutine_asks_another_similarity_with_coroutines():
    """And that one a third: each keeps its own event loop waiting."""

    async def plain(x, y):
        return float(x + y)

    first = Similarity(range(4), plain)

    async def asks(x, y):
        return -float(first.pairs([x], [y])[0])

    second = Similarity(range(4), asks)

    async def asks_again(x, y):
        return 2 * float(second.pairs([x], [y])[0])

    third = Similarity(range(4), asks_again)
    found = []
    thread = threading.Thread(
        target=lambda: found.append(third.pairs([0, 1], [2, 3])), daemon=True
    )
    thread.start()
    thread.join(60)
    assert_array_equal(found, [[-4, -8]])


def test_what_an_asymmetric_tile_has_cost_counts_as_lost():
    sim = Similarity(np.arange(5), np.subtract.outer, batch="block")
    for k in (1, 2):
        with pytest.raises(AsymmetryError):
            sim.columns(range(5))
        assert (sim.calls, sim.failed) == (0, 25 * k)


@pytest.mark.parametrize(
    "value",
    [
        np.datetime64("2020-01-01", "ns"),
        np.array(["2020-01-01"], "M8[ns]"),
        np.array([5], "m8[ns]"),
        np.array("1.5"),
        np.array("2", object),
        bytearray(b"2"),
        memoryview(b"2"),
        np.complex64(1),
    ],
)
def test_dates_and_texts_are_no_numbers(value):
    with pytest.raises(SimilarityError, match="is no real number"):
        Similarity(range(3), lambda x, y: value).pairs([0], [1])


def test_objects_that_are_numbers_are_numbers():
    for value in (np.array(1, object), np.array([[1.0]]), np.float32(1), True, 1):
        sim = Similarity(range(3), lambda x, y, value=value: value)
        assert sim.pairs([0], [1]).tolist() == [1.0]
