"""Nearest neighbours: recall against calls, of every contender on every stored matrix.

python benchmarks/neighbors.py [--draws 5] [--time 10000 100000] [--promise 200]

An item counts as found if it is at least as near as the exact tenth. First comes the
processor time of our own for each paid pair, by a cheap vectorised function, with so
many --calls an item, and the peak of the process's memory. With --promise in how many
runs `pairs_above` kept its promise, on both record-linkage sets and on a block of
STS-B, and nothing else.

Of a million items 20 calls for each took 13 minutes of one core, 40 us a call, and 6.5
GB; of 100,000 items 25 calls took 22 us each, and 1.1 GB.
"""

import argparse
import resource
import time

import numpy as np
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer

from simlib import Similarity
from simlib.neighbors import nearest, pairs_above
from study import datasets, gallery
from study.soft_tokens import SoftTokens
from study.trials import SEARCHES, recall

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
        for method in SEARCHES:
            row = []
            for share in SHARES:
                limit = int(share * n * (n - 1) / 2)
                found = []
                for rng in range(draws):
                    sim = Similarity.from_matrix(matrix)
                    indices = SEARCHES[method](sim, K, limit, cheap, rng=rng)
                    found.append(recall(matrix, indices))
                row.append(f"{np.mean(found):.3f}")
            print(f"{name:12} {method:20} {'  '.join(row)}", flush=True)


def measure(sizes, calls):
    for n in sizes:
        x = np.random.default_rng(0).standard_normal((n, 32), dtype=np.float32)
        spent = [0.0]

        def gaussian(xs, ys, spent=spent):
            start = time.process_time()
            values = np.exp(-np.square(xs - ys).sum(axis=1) / 32)
            spent[0] += time.process_time() - start
            return values

        sim = Similarity(x, gaussian, batch="pairs")
        start = time.process_time()
        nearest(sim, K, limit=calls * n, cheap=x[:, :16], rng=0)
        own = time.process_time() - start - spent[0]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{n} items, {sim.calls} calls: {own:.0f} s, "
            f"{1e6 * own / sim.calls:.1f} us a call, {peak:.1f} GB",
            flush=True,
        )


def linked(records, between):
    n = len(records.texts)
    i, j = np.triu_indices(n, 1)
    if between:
        other = records.tables[i] != records.tables[j]
        i, j = i[other], j[other]
    K = np.zeros((n, n))
    K[i, j] = K[j, i] = SoftTokens(records.texts)(i, j)
    Z = TfidfVectorizer().fit_transform(records.texts)
    return K, (Z @ Z.T).toarray(), records.tables if between else None, 0.5


def block(n):
    data = datasets.load_cross_encoder("stsb").first(n)
    K, Z = (data.matrix + data.matrix.T) / 2, data.embeddings.astype(float)
    return K, Z @ Z.T, None, float(np.quantile(K, 0.98))


def promise(runs):
    sites = datasets.load_early_childhood()
    for name, (K, G, groups, threshold) in {
        "products": linked(datasets.load_abt_buy(), True),
        "sites": linked(sites.take(sites.entities < 400), False),
        "sentences": block(300),
    }.items():
        i, j = np.triu_indices(len(K), 1)
        if groups is not None:
            i, j = i[groups[i] != groups[j]], j[groups[i] != groups[j]]
        hits, start = np.count_nonzero(K[i, j] >= threshold), time.process_time()
        shares, spent = [], []
        for rng in range(runs):
            sim, cheap = Similarity.from_matrix(K), Similarity.from_matrix(G)
            found = pairs_above(sim, threshold, cheap=cheap, groups=groups, rng=rng)
            shares.append(found.i.size / hits)
            spent.append(found.calls / i.size)
        kept = sum(share >= 0.95 for share in shares)
        each = (time.process_time() - start) / runs
        print(
            f"{name}: {len(K)} items, {hits} pairs; kept {kept} of {runs}, recall "
            f"{np.mean(shares):.3f}, least {min(shares):.3f}; {np.mean(spent):.3f} of "
            f"the pairs, at most {max(spent):.3f}; {each:.2f} s a run",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--time", type=int, nargs="*", default=[10_000])
    parser.add_argument("--calls", type=int, default=25)
    parser.add_argument("--promise", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.promise:
        promise(arguments.promise)
    else:
        measure(arguments.time, arguments.calls)
        if arguments.draws:
            compare(arguments.draws)
