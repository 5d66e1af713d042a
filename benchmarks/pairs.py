"""Similar pairs among planted records: recall beside the calls and the time.

OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/pairs.py [--sizes 10000]

Splink is no part of the environment: pip install splink. It is skipped if missing.

Records are alike where Jaro-Winkler says .92 or more. `pairs_above` has the cosines of
64 leading directions of letter trigrams for a companion and promises nothing. Recall is
that of planted matches that are alike; hits are all alike pairs that were found, some
by chance. Splink compares records that agree in the number or in two fields, or that
have two words in common, wherever they are; pynndescent has the metric compiled, and
its calls are counted. "=" marks those that get as many calls as another took:
`pairs_above`, the pairs with the largest cosines, and the records next to each other by
their texts and by the texts read backwards. Seconds are of the processor.

Of 10,000 records splink took 1.4 and 2.7 calls for each and had 0.966 and 0.988 of the
matches. `pairs_above` took 50 and had 0.998; with 1.4 and 2.7 it had 0.973 and 0.983,
the largest cosines 0.969 and 0.981. Of 100,000 splink took 10 and 22 calls, two and
five seconds, and had 0.961 and 0.984; `pairs_above` took 60 and 68 seconds, and had
0.973; with 10 and 22 it had 0.953 and 0.968, the largest cosines 0.963 and 0.979. Of a
million, with five calls for each, 0.825 in 240 seconds and 8 GB, the largest cosines
0.832, and the records next to each other 0.815; of all alike pairs these three found
351,262, 340,711 and 316,930. Where records are many a word in common is a better rule
than any prediction here, and costs less. The largest cosines come from an index that
misses fewer of the nearest, and spend no calls on finding out which order is best.
"""

import argparse
import time
from itertools import combinations

import numpy as np
import pandas as pd
from llvmlite.ir import IntType
from numba import carray, njit, types
from numba.extending import intrinsic
from pynndescent import NNDescent
from rapidfuzz.distance import JaroWinkler
from rapidfuzz.process import cpdist
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

from simlib import Similarity
from simlib.neighbors import pairs_above
from study.datasets import planted_records

try:
    import duckdb
    import splink
    from splink import comparison_library
except ImportError:
    splink = None

THRESHOLD, DIRECTIONS, FITTED = 0.92, 64, 20_000
COUNT = np.zeros(1, np.int64)  # calls of the compiled metric
ADDRESS = COUNT.ctypes.data


def score(xs, ys):
    return cpdist(xs, ys, scorer=JaroWinkler.similarity, dtype=np.float32)


def values(texts, i, j):
    return score([texts[k] for k in i], [texts[k] for k in j])


def embedded(texts):
    """Unit vectors of trigrams: directions of some texts serve all."""
    grams = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), n_features=2**16)
    counts = grams.transform(texts)
    some = np.random.default_rng(0).permutation(len(texts))[:FITTED]
    directions = TruncatedSVD(DIRECTIONS, random_state=0).fit(counts[some])
    return normalize(directions.transform(counts)).astype(np.float32)


# Contenders: the numbers of the pairs that they evaluate or find, and their calls


def numbered(n, i, j):
    return np.minimum(i, j).astype(np.int64) * n + np.maximum(i, j)


def first(n, i, j, calls):
    """So many distinct pairs, the first ones."""
    numbers, places = np.unique(numbered(n, i, j)[i != j], return_index=True)
    return numbers[np.argsort(places)[:calls]], calls


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


def by_splink(texts, fields, *rules):
    """The pairs of some blocking rules to which splink's comparison says yes."""
    n, connection = len(texts), duckdb.connect(config={"threads": 1})
    api = splink.DuckDBAPI(connection)
    frame = pd.DataFrame({"unique_id": np.arange(n), "name": texts} | fields)
    comparison = comparison_library.JaroWinklerAtThresholds("name", THRESHOLD)
    options = {"retain_intermediate_calculation_columns": True}
    settings = splink.SettingsCreator("dedupe_only", [comparison], rules, **options)
    linker = splink.Linker(api.register(frame), settings, log_level="ERROR")
    blocked = linker.inference.compute_blocked_pairs_for_predict().physical_name
    calls = connection.execute(f"select count(*) from {blocked}").fetchall()[0][0]
    found = linker.inference.predict().physical_name
    query = f"select unique_id_l, unique_id_r from {found} where mw_name > 0"
    return numbered(n, *connection.execute(query).fetchnumpy().values()), calls


def splink_fields(texts):
    words = [text.split() for text in texts]
    fields = {f"w{k}": [(w + [None] * 5)[k] for w in words] for k in range(3)}
    fields["last"] = [w[-1] for w in words]
    fields["number"] = [w[-1] if w[-1].isdigit() else None for w in words]
    pairs = ("w0", "w1"), ("w0", "w2"), ("w1", "w2"), ("w0", "last"), ("w1", "last")
    rules = [splink.block_on(*pair) for pair in pairs]
    return by_splink(texts, fields, splink.block_on("number"), *rules)


def splink_words(texts):
    two = [["|".join(pair) for pair in combinations(t.split(), 2)] for t in texts]
    rule = splink.block_on("two", arrays_to_explode=["two"])
    return by_splink(texts, {"two": two}, rule)


@intrinsic
def pointer(_, address):
    def code(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], IntType(8).as_pointer())

    return types.voidptr(address), code


@njit
def jaro_winkler_distance(x, y):
    """Of the letters' codes, with zeros at the end."""
    carray(pointer(ADDRESS), 1, np.int64)[0] += 1
    m, n = np.count_nonzero(x), np.count_nonzero(y)
    reach, common, swapped, k = max(m, n) // 2 - 1, 0, 0, 0
    a, b = np.zeros(m, np.bool_), np.zeros(n, np.bool_)
    for i in range(m):
        for j in range(max(0, i - reach), min(n, i + reach + 1)):
            if not b[j] and x[i] == y[j]:
                a[i] = b[j] = True
                common += 1
                break
    if common == 0:
        return 1.0
    for i in range(m):
        if a[i]:
            while not b[k]:
                k += 1
            swapped += x[i] != y[k]
            k += 1
    jaro = (common / m + common / n + (common - swapped // 2) / common) / 3
    prefix = 0
    while prefix < min(4, m, n) and x[prefix] == y[prefix]:
        prefix += 1
    return (1 - jaro) * (1 - 0.1 * prefix if jaro > 0.7 else 1)


def compiled_metric(texts, neighbors=5):
    codes = np.array(texts, dtype=bytes).view(np.uint8).reshape(len(texts), -1)
    options = {"n_neighbors": neighbors, "random_state": 0}
    COUNT[0] = 0
    index = NNDescent(codes.astype(np.float32), metric=jaro_winkler_distance, **options)
    found, distances = index.neighbor_graph
    i, k = np.nonzero(distances <= 1 - THRESHOLD + 1e-6)
    return first(len(texts), i, found[i, k], None)[0], int(COUNT[0])


def compare(n):
    records = planted_records(n // 2, rng=0)
    texts, Z = records.texts, embedded(records.texts)
    i, j = records.matches()
    true = numbered(len(texts), i, j)[values(texts, i, j) >= np.float32(THRESHOLD)]

    def simlib(limit=None):
        sim = Similarity(texts, score, batch="pairs")
        pairs = pairs_above(sim, THRESHOLD, recall=None, limit=limit, cheap=Z, rng=0)
        return numbered(n, pairs.i, pairs.j), pairs.calls

    def show(contender, *arguments):
        start = time.process_time()
        numbers, calls = contender(*arguments)
        spent = time.process_time() - start
        alike = values(texts, *np.divmod(numbers, n)) >= np.float32(THRESHOLD)
        recall, limited = np.isin(true, numbers).mean(), arguments[-1:] == (calls,)
        print(
            f"{n:8} {contender.__name__:20} {calls / n:8.1f}{' =' if limited else '  '}"
            f"{recall:8.4f} {np.count_nonzero(alike):8} {spent:8.1f}",
            flush=True,
        )
        return calls

    print("   items contender            calls/item  recall     hits  seconds")
    spent = {show(simlib)}
    for contender in (splink_fields, splink_words, compiled_metric):
        if splink or contender is compiled_metric:
            spent.add(show(contender, texts))
    for calls in sorted(spent):
        if calls < max(spent):
            show(simlib, calls)
            show(largest_cosines, texts, Z, calls)
            show(sorted_neighborhood, texts, Z, calls)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000])
    arguments = parser.parse_args()
    if splink is None:
        print("splink is missing.")
    some = [f"item {k}" for k in range(200)]  # all is compiled before it is timed
    compiled_metric(some)
    largest_cosines(some, np.random.default_rng(0).random((200, 4), np.float32), 100)
    for n in arguments.sizes:
        compare(n)
