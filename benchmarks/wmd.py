"""Word Mover's Distance: pairs a second and core, against gensim and plain POT.

Run with ``python benchmarks/wmd.py``. All contenders get the same documents and vectors
and one thread, and are timed by turns in one process, by processor time. Documents are
those of the papers' corpora where the data are at hand, with vectors of 300 dimensions,
and else short docstrings. gensim is used if it is installed; nothing else here needs
it.
"""

import argparse
import time

import numpy as np
import ot
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from simlib.text.wmd import (
    WordMoverDistance,
    bags_of_words,
    paired_word_mover_distances,
)
from study import datasets

try:
    from gensim.models import KeyedVectors
except ImportError:
    KeyedVectors = None

CORPORA = {
    "tweets": ("twitter", datasets.load_twitter),
    "recipes": ("recipes", datasets.load_recipes),
    "ohsumed": ("ohsumed", datasets.load_ohsumed),
    "newsgroups": ("newsgroups", datasets.load_newsgroups),
}
VECTORS = "wordbridge-300"
N_ROWS, REPEATS = 12, 5
N_COLUMNS = {"tweets": 400, "recipes": 200, "ohsumed": 40, "newsgroups": 40}
GOAL = 10  # times as fast as gensim on tweets


def simlib_bags(xs, ys, vectors):
    """All pairs at a time, as Similarity asks for them; makes the bags too."""
    X, Y = bags_of_words(xs, vectors), bags_of_words(ys, vectors)
    i, j = np.indices((len(xs), len(ys))).reshape(2, -1)
    return paired_word_mover_distances(X[i], Y[j], vectors.array)


def simlib_lists(xs, ys, vectors):
    """One call for each pair of lists of words."""
    distance = WordMoverDistance(vectors)
    return [distance(x, y) for x in xs for y in ys]


def plain_pot(xs, ys, vectors):
    """One call of ot.emd2 for each pair, the bags prepared beforehand."""

    def bag(words):
        rows, counts = np.unique([vectors.index[w] for w in words], return_counts=True)
        return vectors.array[rows], counts / counts.sum()

    xs, ys = list(map(bag, xs)), list(map(bag, ys))
    return [ot.emd2(p, q, cdist(x, y)) for x, p in xs for y, q in ys]


class Gensim:
    """One call of wmdistance for each pair, the vectors prepared beforehand."""

    def __init__(self, vectors):
        self.keyed = KeyedVectors(vectors.array.shape[1])
        self.keyed.add_vectors(vectors.words, vectors.array[vectors.rows])

    def __call__(self, xs, ys, vectors):
        return [self.keyed.wmdistance(x, y, norm=False) for x in xs for y in ys]


def corpora():
    """Yield the name, lists of words and vectors of each corpus."""
    if not datasets.available(VECTORS) or not datasets.available("stop-words"):
        texts, vectors, _ = datasets.bundled_docstrings()
        yield "docstrings", texts, vectors
        return
    vectors = datasets.load_word_vectors(VECTORS)
    for name, (dataset, load) in CORPORA.items():
        if datasets.available(dataset):
            yield name, load(vectors).documents, vectors


def race(xs, ys, vectors, contenders, repeats):
    """Return the median seconds of each contender; their answers must agree."""
    seconds = {name: [] for name in contenders}
    for _ in range(repeats):
        answers = {}
        for name, contender in contenders.items():
            start = time.process_time()
            answers[name] = contender(xs, ys, vectors)
            seconds[name].append(time.process_time() - start)
    for name, answer in answers.items():
        np.testing.assert_allclose(answer, answers["simlib, bags"], 1e-5, err_msg=name)
    return {name: np.median(values) for name, values in seconds.items()}


def main():
    """Print the time of a pair for each corpus and contender."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few pairs, once")
    quick = parser.parse_args().quick
    contenders = {
        "simlib, bags": simlib_bags,
        "simlib, lists": simlib_lists,
        "ot.emd2": plain_pot,
    }
    if KeyedVectors is None:
        print("gensim is not installed and left out: pip install gensim")
    made_for = None
    for name, texts, vectors in corpora():
        if KeyedVectors is not None and made_for is not vectors:
            contenders["gensim"], made_for = Gensim(vectors), vectors
        rng = np.random.default_rng(0)
        n_rows = 2 if quick else N_ROWS
        n_columns = 10 if quick else N_COLUMNS.get(name, 200)
        chosen = rng.choice(len(texts), n_rows + n_columns, replace=False)
        chosen = [texts[k] for k in chosen]
        xs, ys = chosen[:n_rows], chosen[n_rows:]
        words = np.mean([len({vectors.index[w] for w in text}) for text in chosen])
        seconds = race(xs, ys, vectors, contenders, 1 if quick else REPEATS)
        n_pairs = len(xs) * len(ys)
        print(f"{name}: {words:.1f} distinct words a document, {n_pairs} pairs")
        ours = seconds["simlib, bags"]
        for contender, value in seconds.items():
            pair = value / n_pairs
            print(
                f"  {contender:13} {1e6 * pair:8.1f} us a pair {1 / pair:8.0f} pairs "
                f"a second   x{value / ours:.2f}"
            )
        if "gensim" in seconds and name == "tweets":
            ratio = seconds["gensim"] / ours
            verdict = "met" if ratio >= GOAL else "missed"
            print(f"  goal of {GOAL} times as fast as gensim: {verdict} ({ratio:.1f})")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
