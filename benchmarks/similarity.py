"""What a Similarity costs beside the function that it calls, in one run.

Run with ``python benchmarks/similarity.py``. Each line is the processor time of a
contender over that of the work which nothing can save: the function alone, fetching the
items, sorting as many integers. The best of some runs each, alternately.
"""

import time

import numpy as np

from simlib import Similarity

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


def best(*contenders, runs=7):
    """Return the least processor time of each, in seconds."""
    times = []
    for _ in range(runs):
        row = []
        for contender in contenders:
            start = time.process_time()
            contender()
            row.append(time.process_time() - start)
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


if __name__ == "__main__":
    one_at_a_time()
    batches()
    one_column()
    single_pairs()
