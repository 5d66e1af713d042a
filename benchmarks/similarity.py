"""What a Similarity and its methods cost beside what nothing can save, in one run.

Run with ``python benchmarks/similarity.py``. Each line is the processor time of a
contender over that of the work which nothing can save: the function alone, fetching the
items, sorting as many integers; or over that of scikit-learn. The best of some runs
each, alternately; on one thread (``OPENBLAS_NUM_THREADS=1``), or both use more.
"""

import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

from simlib import Similarity, anchored, estimate_error, nystrom, tikhonov

N = 10**6


def busy(seconds):
    """Return a function of two items that takes so long."""

    def function(x, y):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass
        return 1.0

    return function


def distance(x, y):
    return np.abs(x - y).astype(float)


def distances(x, y):
    return distance(x[:, None], y)


def best(*contenders, runs=7, clock=time.process_time):
    """Return the least processor time of each, in seconds."""
    times = []
    for _ in range(runs):
        row = []
        for contender in contenders:
            start = clock()
            contender()
            row.append(clock() - start)
        times.append(row)
    return np.min(times, axis=0)


def told(what, value, bar, unit=""):
    verdict = "" if value <= bar else "   TOO MUCH"
    print(f"{what:64s}{value:8.3f}{unit} (at most {bar:g}){verdict}")


def one_at_a_time():
    """One millisecond a call: what a whole column takes, over the calls alone."""
    items, function = list(range(400)), busy(1e-3)

    def plain():
        for x in items:
            function(x, 7)

    def ours():
        Similarity(items, function).columns([7])

    alone, whole = best(plain, ours, runs=3)
    told("whole column, 1 ms function: time over the function's", whole / alone, 1.05)


def batches():
    """A function of many pairs, and of blocks: microseconds a pair beyond fetching."""
    rng = np.random.default_rng(0)
    n, s = 20_000, 100
    items = rng.standard_normal(n)
    S = rng.choice(n, s, replace=False)
    rows, columns = np.repeat(np.arange(n), s), np.tile(S, n)
    i, j = rng.integers(n, size=(2, N))

    def fetch(i, j, size=2**14):
        for k in range(0, i.size, size):
            distance(items[i[k : k + size]], items[j[k : k + size]])

    def tiles(size=2**17 // s):
        for k in range(0, n, size):
            distances(items[k : k + size], items[S])

    def columns_of(function, batch):
        return lambda: Similarity(items, function, batch=batch).columns(S)

    def scattered():
        Similarity(items, distance, batch="pairs").pairs(i, j)

    bare, ours, bare_block, block, bare_pairs, pairs = best(
        lambda: fetch(rows, columns),
        columns_of(distance, "pairs"),
        tiles,
        columns_of(distances, "block"),
        lambda: fetch(i, j),
        scattered,
    )
    size = rows.size / 1e6
    told("columns by pairs, beyond fetching", (ours - bare) / size, 0.2, " us")
    told("columns by blocks, beyond fetching", (block - bare_block) / size, 0.2, " us")
    told("scattered pairs, beyond fetching", (pairs - bare_pairs) / N * 1e6, 0.2, " us")


def one_column():
    """One column of a million: beside sorting a million integers."""
    items = np.arange(N)
    numbers = np.random.default_rng(0).integers(2**60, size=N)
    sort, pairs, block = best(
        lambda: np.sort(numbers),
        lambda: Similarity(items, distance, batch="pairs").columns([1]),
        lambda: Similarity(items, distances, batch="block").columns([1]),
        runs=15,
    )
    told("a column of a million by pairs, over a sort", pairs / sort, 3.5)
    told("a column of a million by blocks, over a sort", block / sort, 3.5)


def single_pairs():
    """One pair at a time where half a million are known."""
    rng = np.random.default_rng(0)
    sim = Similarity(np.arange(N), distance, batch="pairs")
    sim.pairs(*rng.integers(N, size=(2, N // 2)))
    pairs = iter(rng.integers(N, size=(20, 1000, 2, 1)))
    latest = []

    def new():
        latest[:] = next(pairs)
        for i, j in latest:
            sim.pairs(i, j)

    def known():
        for i, j in latest:
            sim.pairs(i, j)

    fresh, again = best(new, known, runs=20) / 1000 * 1e6
    told("a single new pair, 500 000 known", fresh, 50, " us")
    told("a single known pair, 500 000 known", again, 50, " us")


def stored():
    """A store: time beside none, by the clock on the wall, as disks make wait."""
    rng = np.random.default_rng(0)
    items, S = rng.standard_normal(20_000), rng.choice(20_000, 100, replace=False)
    numbers = iter(range(1000))

    with tempfile.TemporaryDirectory() as folder:

        def ask(items, function, columns, batch=None, kept=True):
            options = {"store": Path(folder, str(next(numbers))), "function_id": "1"}
            options = options if kept else {}
            sim = Similarity(items, function, batch=batch, **options)
            sim.columns(columns)
            sim.close()

        slow = list(range(2000)), busy(1e-3), [7]
        plain, with_store = best(
            lambda: ask(*slow, kept=False),
            lambda: ask(*slow),
            runs=3,
            clock=time.perf_counter,
        )
        told("a column of a 1 ms function, with a store", with_store / plain, 1.05)
        for batch, function in ("pairs", distance), ("block", distances):
            plain, with_store = best(
                lambda b=batch, f=function: ask(items, f, S, b, kept=False),
                lambda b=batch, f=function: ask(items, f, S, b),
                runs=5,
                clock=time.perf_counter,
            )
            size = items.size * S.size / 1e6
            told(
                f"a pair in the store, columns by {batch}",
                (with_store - plain) / size,
                2,
                " us",
            )
        path = Path(folder, "million")
        options = {"batch": "pairs", "store": path, "function_id": "1"}
        sim = Similarity(items, distance, **options)
        sim.columns(S[:25])
        sim.pairs(*rng.integers(items.size, size=(2, 500_000)))
        sim.close()

        def rerun():
            sim = Similarity(items, distance, **options)
            sim.columns(S[:25])
            if sim.calls:
                raise RuntimeError("A full store was paid for again.")
            sim.close()

        [seconds] = best(rerun, clock=time.perf_counter)
        weight = path.stat().st_size / 1e6
        print(f"  a million pairs weigh {weight:.0f} MB in the store")
        told("a rerun on a million stored pairs", seconds, 1, " s")


def features():
    """Two hundred features of 20 000 items: beside scikit-learn's Nystroem."""
    X = np.random.default_rng(0).standard_normal((20_000, 10))

    def theirs():
        Nystroem(gamma=0.1, n_components=200, random_state=0).fit_transform(X)

    def ours(method):
        sim = Similarity(X, partial(rbf_kernel, gamma=0.1), batch="block", n_jobs=1)
        method(sim, 200, rng=0).embedding()

    plain, one, other = best(
        theirs, lambda: ours(nystrom), lambda: ours(tikhonov), runs=5
    )
    told("nystrom and embedding, over Nystroem", one / plain, 1.5)
    told("tikhonov and embedding, over Nystroem", other / plain, 6)


def error_bars():
    """An error bar for 20 000 items: seconds beyond the function, called by rows."""
    X = np.random.default_rng(0).standard_normal((20_000, 10))
    spent = 0.0

    def function(x, y):
        nonlocal spent
        start = time.process_time()
        values = rbf_kernel(x, y, gamma=0.1)
        spent += time.process_time() - start
        return values

    took = []
    for seed in range(3):
        sim = Similarity(X, function, batch="block", n_jobs=1)
        answer = tikhonov(sim, 200, rng=seed)
        start, spent = time.process_time(), 0.0
        estimate_error(sim, answer, rng=seed)
        took.append(time.process_time() - start - spent)
    told("estimate_error, beyond the function", min(took), 3, " s")


def product():
    """A product with an answer that keeps its companion: beside Z (Z^T v) in blocks."""
    rng = np.random.default_rng(0)
    n, rows = 20_000, 500
    Z = rng.standard_normal((n, 384))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    v = rng.standard_normal(n)

    def function(x, y):
        return np.tanh(3 * x @ y.T) + 0.1 * (x[:, :5] @ y[:, :5].T)

    def plain():
        out = np.empty(n)
        for k in range(0, n, rows):
            out[k : k + rows] = np.abs(Z[k : k + rows] @ Z.T) @ v

    K = anchored(Similarity(Z, function, batch="block"), 100, Z, rng=0)
    bare, ours = best(plain, lambda: K @ v, runs=2)
    told("a product with an anchored answer, over the plain one", ours / bare, 10)


if __name__ == "__main__":
    one_at_a_time()
    batches()
    one_column()
    single_pairs()
    stored()
    features()
    error_bars()
    product()
