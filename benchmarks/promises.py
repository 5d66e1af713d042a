"""Recall that is promised: how many pairs it takes, and how often it is kept.

OPENBLAS_NUM_THREADS=1 python benchmarks/promises.py [--things 300] [--runs 200]

BARGAIN is no part of the environment: pip install bargain. It is skipped if missing.

A recall of .9 and of .95 with a confidence of .95, of all pairs above a threshold: of
products of two shops by soft tokens, with the cosines of their words; of planted
records by Jaro-Winkler, with those of their letter trigrams; and of sentences by a
cross-encoder, with those of a bi-encoder. The recall targets
of SUPG (Kang et al. 2020, by importance sampling) and of BARGAIN (Zeighami et al. 2025)
label as many pairs as they are told, a share of all here, and return all pairs above a
cosine, whether alike or not. `pairs_above` finds its number itself and returns what it
has evaluated. Labels and paid are shares of all pairs: paid are the labels, and the
rest of what is returned, for an answer as exact as that of `pairs_above`. Precision is
of what is returned before that. Kept is the share of runs that had the recall.

Of 300 products `pairs_above` paid for 0.19 and 0.38 of the pairs, for 0.9 and 0.95, and
kept all of 200 promises each. SUPG with a budget of 0.03 paid for 0.04 and kept 200 and
194; with 0.01 it paid for 0.02 and kept 186 and 133. BARGAIN, for 0.9, paid for 0.27
from a budget of 0.3 and kept 198; with 0.1 it returned nearly all pairs. Of sentences,
whose companion is poor, `pairs_above` paid for 0.38 for 0.9 and kept all of 25
promises; SUPG paid for 0.33, 0.53 and 0.63 with budgets of 0.01, 0.03 and 0.1, and kept
1, 5 and 11. Its bound is that of large samples, ours and that of BARGAIN hold for every
one.
"""

import argparse

import numpy as np
from rapidfuzz.distance import JaroWinkler
from rapidfuzz.process import cdist
from sklearn.feature_extraction.text import TfidfVectorizer

from simlib import Similarity
from simlib.neighbors import pairs_above
from study import gallery
from study.datasets import load_abt_buy, planted_records
from study.soft_tokens import SoftTokens

try:
    import BARGAIN as bargain
except ImportError:
    bargain = None

DOUBT = 0.05  # that a promise is broken
BUDGETS = {"SUPG": (0.01, 0.03, 0.1), "BARGAIN": (0.1, 0.2, 0.4)}  # shares of pairs


# All similarities, those of the companion, the threshold, and which are pairs


def products(things):
    records = load_abt_buy()
    some = np.random.default_rng(0).permutation(records.entities.max() + 1)[:things]
    records = records.take(np.isin(records.entities, some))
    rows, columns = (np.flatnonzero(records.tables == table) for table in (0, 1))
    scorer = SoftTokens(records.texts)
    sim = Similarity(rows, scorer, columns=columns, batch="pairs")
    K = sim.rows(np.arange(rows.size))
    Z = TfidfVectorizer().fit_transform(records.texts)
    return K, (Z[rows] @ Z[columns].T).toarray(), 0.5, np.full(K.shape, True)


def planted(things):
    texts = planted_records(things, rng=0).texts
    K = cdist(texts, texts, scorer=JaroWinkler.similarity, dtype=np.float32)
    grams = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3))
    Z = grams.fit_transform(texts)
    return K, (Z @ Z.T).toarray(), 0.92, np.triu(np.full(K.shape, True), 1)


def sentences(things):
    K = gallery.load("stsb", things).matrix
    G = gallery.companions("stsb", things)["bi-encoder cosine"].columns(range(len(K)))
    each = np.triu(np.full(K.shape, True), 1)
    return K, G, float(np.quantile(K[each], 0.99)), each


# Contenders: the pairs that they label, and whether each is returned


def supg(proxy, hits, recall, budget, rng):
    weights = np.sqrt(np.clip(proxy, 0, 1))
    weights = 0.9 * weights / weights.sum() + 0.1 / weights.size
    chosen = np.searchsorted(np.cumsum(weights), rng.random(budget))
    chosen = np.minimum(chosen, weights.size - 1)
    labels = hits[chosen] / weights[chosen] / weights.size
    order = np.argsort(-proxy[chosen])
    sums = np.cumsum(labels[order])

    def threshold(recall):
        place = np.searchsorted(sums, recall * sums[-1])
        return proxy[chosen][order[min(place, budget - 1)]]

    above = proxy[chosen] >= threshold(recall)
    width = np.sqrt(2 * np.log(2 / DOUBT) / budget)
    upper = (labels * above).mean() + (labels * above).std() * width
    lower = max(0, (labels * ~above).mean() - (labels * ~above).std() * width)
    return chosen, proxy >= threshold(min(1, upper / (upper + lower)))


def by_bargain(proxy, hits, recall, budget, rng):
    chosen = []

    class Labels(bargain.Oracle):
        def get_pred(self, records, places=None):
            chosen.append(places)
            return hits[places]

    class Scores(bargain.Proxy):
        def get_preds_and_scores(self, places, records):
            return np.ones(len(places)), proxy[places]

    options = {"delta": DOUBT, "target": recall, "budget": budget}
    seed = int(rng.integers(2**32))
    method = bargain.BARGAIN_R(Scores(), Labels(), seed=seed, **options)
    returned = np.zeros(hits.size, bool)
    returned[method.process(np.zeros(hits.size))] = True
    return np.concatenate(chosen), returned


def compare(load, things, runs):
    K, G, threshold, pairs = load(things)
    hits, proxy = K[pairs] >= K.dtype.type(threshold), G[pairs]
    columns = np.arange(K.shape[1]) if pairs.all() else None

    def known(values):
        def look_up(i, j):
            return values[i, j]

        return Similarity(np.arange(len(K)), look_up, columns=columns, batch="pairs")

    def simlib(recall, run):
        found = pairs_above(known(K), threshold, recall=recall, cheap=known(G), rng=run)
        right = found.i.size / hits.sum()
        return found.calls / hits.size, found.calls / hits.size, 1, right

    def contender(method, *arguments):
        chosen, returned = method(proxy, hits, *arguments)
        labels, more = np.unique(chosen), np.delete(returned, chosen)
        returned[labels] |= hits[labels]
        right = np.count_nonzero(returned & hits)
        paid = labels.size + np.count_nonzero(more)
        shares = labels.size / hits.size, paid / hits.size
        return *shares, right / np.count_nonzero(returned), right / hits.sum()

    def show(name, results):
        kept = np.mean([result[3] >= recall for result in results])
        figures = *np.mean(results, axis=0), kept
        line = [f"{recall:6} {name:14}", *(f"{figure:9.3f}" for figure in figures)]
        print(*line, flush=True)

    print(f"{load.__name__}: {hits.size} pairs, {hits.sum()} alike, {runs} runs")
    print("recall method            labels      paid precision     found      kept")
    for recall in (0.9, 0.95):
        show("simlib", [simlib(recall, run) for run in range(runs)])
        for name, method in {"SUPG": supg, "BARGAIN": bargain and by_bargain}.items():
            for share in BUDGETS[name] if method else ():
                rng, budget = np.random.default_rng(0), int(share * hits.size)
                some = (contender(method, recall, budget, rng) for _ in range(runs))
                show(f"{name} {share}", list(some))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--things", type=int, default=300)
    parser.add_argument("--runs", type=int, default=200)
    sets = ["products", "planted", "sentences"]
    parser.add_argument("--sets", nargs="*", choices=sets, default=sets)
    arguments = parser.parse_args()
    if bargain is None:
        print("BARGAIN is missing.")
    for name in arguments.sets:
        compare(globals()[name], arguments.things, arguments.runs)
