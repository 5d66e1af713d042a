"""Nearest neighbours: recall against calls, of every contender on every stored matrix.

python benchmarks/neighbors.py [--draws 5] [--time 10000 100000]

An item counts as found if it is at least as near as the exact tenth. First comes the
processor time of our own for each paid pair, by a cheap vectorised function.
"""

import argparse
import time

import numpy as np
from scipy.stats import spearmanr

from simlib import Similarity, gallery
from simlib.neighbors import nearest
from simlib.neighbors.trials import METHODS, trial

MATRICES = {
    "stsb": ("bi-encoder cosine", 1400),
    "mrpc": ("bi-encoder cosine", None),
    "rte": ("bi-encoder cosine", None),
    "twitter": ("relaxed distance", 1200),
    "edit": ("q-gram distance", 1200),
    "edit_plain": ("q-gram distance", 1200),
    "pairs": ("pixel cosine", 1000),
}
SHARES = (0.02, 0.05, 0.1)
K = 10


def compare(draws):
    for name, (key, n) in MATRICES.items():
        companions = gallery.companions(name, n)
        if key not in companions:
            print(f"{name}: no data", flush=True)
            continue
        matrix = np.array(gallery.load(name, n).matrix, dtype=float)
        n = len(matrix)
        cheap = companions[key].columns(np.arange(n))
        upper = np.triu_indices(n, 1)
        if spearmanr(cheap[upper], matrix[upper])[0] < 0:
            cheap = -cheap
        for method in METHODS:
            row = []
            for share in SHARES:
                found = [
                    trial(method, matrix, cheap, share, (K,), rng=rng)
                    for rng in range(draws)
                ]
                row.append(f"{np.mean(found):.3f}")
            print(f"{name:12} {method:20} {'  '.join(row)}", flush=True)


def measure(sizes):
    for n in sizes:
        x = np.random.default_rng(0).standard_normal((n, 16))
        spent = [0.0]

        def gaussian(xs, ys, spent=spent):
            start = time.process_time()
            values = np.exp(-np.square(xs - ys).sum(axis=1) / 16)
            spent[0] += time.process_time() - start
            return values

        sim = Similarity(x, gaussian, batch="pairs")
        limit = int(min(0.05 * n * (n - 1) / 2, 50 * n if n > 20_000 else np.inf))
        start = time.process_time()
        nearest(sim, K, limit=limit, cheap=x[:, :8].astype(np.float32), rng=0)
        own = time.process_time() - start - spent[0]
        print(f"{n} items, {sim.calls} calls: {1e6 * own / sim.calls:.1f} us a call")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--time", type=int, nargs="*", default=[10_000])
    arguments = parser.parse_args()
    measure(arguments.time)
    compare(arguments.draws)
