"""Similar pairs among planted records: recall at equal calls, promises, time, memory.

python benchmarks/pairs.py [--sizes 10000 100000] [--promise 10000]

Records are alike where Jaro-Winkler says .92 or more. The companion is that of 64
leading directions of letter trigrams. `pairs_above` hunts without a promise, and the
contenders spend as many calls: on the pairs with the largest cosines, by pynndescent,
and on a sorted neighbourhood, the records next to each other by their texts and by the
texts read backwards. Recall is that of planted matches that are alike. --promise: the
calls until a recall of .9 and .95 is promised, beside SUPG's recall target (Kang et al.
2020, by importance sampling), whose answer is what it sampled and all pairs above its
threshold, each to be paid for. Splink and BARGAIN are no part of the environment, and
are left out.
"""

import argparse
import resource
import time

import numpy as np
from pynndescent import NNDescent
from rapidfuzz.distance import JaroWinkler
from rapidfuzz.process import cpdist
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

from simlib import Similarity
from simlib.neighbors import pairs_above
from study.datasets import planted_records

THRESHOLD, DIRECTIONS, FITTED = 0.92, 64, 20_000


def score(xs, ys):
    return cpdist(xs, ys, scorer=JaroWinkler.similarity, dtype=np.float32)


def embedded(texts):
    """Unit vectors of trigrams: directions of some texts serve all."""
    grams = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), n_features=2**16)
    counts = grams.transform(texts)
    some = np.random.default_rng(0).permutation(len(texts))[:FITTED]
    directions = TruncatedSVD(DIRECTIONS, random_state=0).fit(counts[some])
    return normalize(directions.transform(counts)).astype(np.float32)


def first(n, i, j, calls):
    """So many distinct pairs, the first ones, as numbers."""
    low, high = np.minimum(i, j), np.maximum(i, j)
    numbers, places = np.unique((low * n + high)[low < high], return_index=True)
    return numbers[np.argsort(places)[:calls]]


def largest_cosines(texts, Z, calls):
    n = len(Z)
    m = min(n, int(2 * calls / n) + 2)
    index = NNDescent(Z, metric="cosine", n_neighbors=30, random_state=0)
    found, distances = index.query(Z, k=m, epsilon=0.1)
    order = np.argsort(distances.ravel())
    return first(n, order // m, found.ravel().astype(np.int64)[order], calls)


def sorted_neighborhood(texts, Z, calls):
    n, window = len(texts), int(0.6 * calls / len(texts)) + 1
    orders = [np.array(sorted(range(n), key=lambda k: texts[k][::s])) for s in (1, -1)]
    parts = [(o[:-w], o[w:]) for w in range(1, window + 1) for o in orders]
    return first(n, *map(np.concatenate, zip(*parts, strict=True)), calls)


def data(n):
    records = planted_records(n // 2, rng=0)
    texts = records.texts
    i, j = records.matches()
    alike = score([texts[k] for k in i], [texts[k] for k in j]) >= THRESHOLD
    return texts, embedded(texts), i[alike] * len(texts) + j[alike]


def search(texts, Z, true, **options):
    sim, start = Similarity(texts, score, batch="pairs"), time.process_time()
    pairs = pairs_above(sim, THRESHOLD, cheap=Z, rng=0, **options)
    recall = np.isin(true, pairs.i * len(texts) + pairs.j).mean()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{len(texts)} records, {options}: {pairs}, of the planted {recall:.4f}; "
        f"{time.process_time() - start:.0f} s, {memory:.1f} GB",
        flush=True,
    )
    return pairs


def compare(n):
    texts, Z, true = data(n)
    calls = search(texts, Z, true, recall=None).calls
    for contender in (largest_cosines, sorted_neighborhood):
        start = time.process_time()
        recall = np.isin(true, contender(texts, Z, calls)).mean()
        spent = time.process_time() - start
        print(f"    {contender.__name__}: {recall:.4f}; {spent:.0f} s", flush=True)


def supg(proxy, hits, recall, budget, rng, doubt=0.05):
    """How many pairs SUPG pays for, and the share of the hits that it returns."""
    weights = np.sqrt(np.clip(proxy, 0, 1))
    weights = 0.9 * weights / weights.sum() + 0.1 / weights.size
    chosen = rng.choice(weights.size, budget, p=weights)
    labels = hits[chosen] / weights[chosen] / weights.size
    order = np.argsort(-proxy[chosen])
    sums = np.cumsum(labels[order])

    def threshold(recall):
        place = np.searchsorted(sums, recall * sums[-1])
        return proxy[chosen][order[min(place, budget - 1)]]

    above = proxy[chosen] >= threshold(recall)
    width = np.sqrt(2 * np.log(2 / doubt) / budget)
    upper = (labels * above).mean() + (labels * above).std() * width
    lower = max(0, (labels * ~above).mean() - (labels * ~above).std() * width)
    returned = proxy >= threshold(min(1, upper / (upper + lower)))
    returned[chosen] = True
    return returned.sum(), hits[returned].sum() / hits.sum()


def promise(n, runs=50):
    texts, Z, true = data(n)
    i, j = np.triu_indices(len(texts), 1)
    hits = np.zeros(i.size, bool)
    for part in np.array_split(np.arange(i.size), 1 + i.size // 2**20):
        one, other = ([texts[k] for k in side[part]] for side in (i, j))
        hits[part] = score(one, other) >= np.float32(THRESHOLD)
    proxy, rng = (Z @ Z.T)[i, j], np.random.default_rng(0)
    for recall in (0.9, 0.95):
        pairs = search(texts, Z, true, recall=recall)
        print(
            f"    {pairs.calls / i.size:.3f} of the pairs, {pairs.i.size / hits.sum()}"
        )
        for share in (0.005, 0.02, 0.05):
            budget = int(share * i.size)
            got = [supg(proxy, hits, recall, budget, rng) for _ in range(runs)]
            paid, found = np.array(got).T
            broken = np.mean(found < recall)
            paid = paid.mean() / i.size
            print(f"    SUPG, budget {share}: {paid:.3f} paid, broken {broken:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000])
    parser.add_argument("--promise", type=int, nargs="*", default=[])
    arguments = parser.parse_args()
    for n in arguments.sizes:
        compare(n)
    for n in arguments.promise:
        promise(n)
