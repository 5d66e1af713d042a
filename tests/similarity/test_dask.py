"""On a Dask cluster of processes: the same answers, also where a worker is killed."""

import os
import signal
import time
from collections import Counter
from functools import partial

import joblib
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster

from simlib import Similarity, tikhonov
from simlib.similarity.store import digest

pytestmark = pytest.mark.slow

N, BATCH, WORKERS = 24, 20, 2
POINTS = np.random.default_rng(0).standard_normal((N, 200))
TEXTS = ["".join(map(chr, row)) for row in (97 + (25 * abs(POINTS)) % 26).astype(int)]
RUNS = int(os.environ.get("SIMLIB_DASK_RUNS", "1"))  # workers killed one by one


@pytest.fixture(scope="module")
def processes():
    """Return the client of a cluster of processes, the one joblib takes."""
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    workers = LocalCluster(n_workers=WORKERS, **options)
    with workers, Client(workers) as client:
        yield client


@pytest.fixture
def cluster(processes):
    """Wait for the worker that replaces a killed one: joblib starts none by itself.

    One that is dead counts until the scheduler hears of it, so that all have to answer.
    """
    end = time.monotonic() + 60
    while sum(type(pid) is int for pid in answers(processes)) < WORKERS:
        assert time.monotonic() < end
        time.sleep(0.1)


def answers(processes):
    """Return the number of each worker's process, or why there is none."""
    return processes.run(os.getpid, on_error="return").values()


def alike(x, y):
    """Compare two points, or two texts."""
    if isinstance(x, str):
        return sum(map(str.__eq__, x, y)) / len(x)
    return float(np.tanh(x @ y / 20))


def deadly(folder, victim, x, y):
    """Note a pair in a file, and kill the worker that is first to meet the victim."""
    time.sleep(0.001)
    with open(folder / "asked", "ab", buffering=0) as asked:  # one write, appended
        asked.write(b"%d\n" % digest([x, y]))
    if digest([x, y]) == victim and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return alike(x, y)


def test_the_answer_is_that_of_one_process(cluster):
    forms = {
        None: alike,
        "pairs": lambda xs, ys: np.tanh(np.einsum("ij,ij->i", xs, ys) / 20),
        "block": lambda xs, ys: np.tanh(xs @ ys.T / 20),
    }
    for batch, form in forms.items():
        alone, parallel = (Similarity(POINTS, form, batch=batch) for _ in range(2))
        expected = tikhonov(alone, 6, rng=0).toarray()
        with joblib.parallel_config(backend="dask"):
            K = tikhonov(parallel, 6, rng=0).toarray()
        np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-12)
        assert parallel.calls == alone.calls


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize(("items", "stored"), [(POINTS, False), (TEXTS, True)])
def test_a_killed_worker_changes_nothing(cluster, tmp_path, items, stored, run):
    """Arrays too, which joblib by itself leaves with a worker, to die with it."""
    a, b = np.sort(np.random.default_rng(run).choice(N, 2, replace=False))
    function = partial(deadly, tmp_path, digest([items[a], items[b]]))
    options = {"check_symmetry": False}
    if stored:
        options |= {"store": tmp_path / "store", "function_id": "deadly"}
    sim = Similarity(items, function, batch_size=BATCH, **options)
    with joblib.parallel_config(backend="dask"):
        K = sim.columns(np.arange(N))
    assert (tmp_path / "killed").exists()
    expected = Similarity(items, alike).columns(np.arange(N))
    np.testing.assert_array_equal(K, expected)
    assert (sim.calls, sim.failed) == (N * (N + 1) / 2, 0)
    asked = Counter((tmp_path / "asked").read_bytes().splitlines())
    assert len(asked) == sim.calls
    again = sum(count > 1 for count in asked.values())
    assert 0 < again <= WORKERS * BATCH  # pairs of the requests in flight
    sim.close()
    if stored:
        with Similarity(items, function, **options) as sim:
            np.testing.assert_array_equal(sim.columns(np.arange(N)), expected)
            assert sim.calls == 0


def test_nothing_listens_but_on_this_machine(cluster):
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    addresses = {
        connection.laddr.ip
        for process in processes
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}
