"""Word Mover's Distance: pairs a second, ours against plain POT in the same run.

Run with ``python benchmarks/wmd.py``. Prints the time that a pair takes, and the
ratio to ours, on tweets where the data is at hand and else on scikit-learn's digits.
"""

import time

import numpy as np
import ot
from scipy.spatial.distance import cdist

from simlib import Similarity, datasets
from simlib.text.wmd import WordMoverDistance

N_DOCUMENTS = 150
REPEATS = 5


def documents():
    """Return lists of words and their vectors."""
    if datasets.available("twitter") and datasets.available("glove-twitter-25"):
        vectors = datasets.load_word_vectors("glove-twitter-25")
        return datasets.load_twitter(vectors).documents[:N_DOCUMENTS], vectors
    texts, vectors, _ = datasets.bundled_documents()
    return texts[:N_DOCUMENTS], vectors


def simlib_wmd(texts, vectors):
    """Evaluate every pair through a Similarity."""
    sim = Similarity(texts, WordMoverDistance(vectors))
    return sim.columns(np.arange(sim.n))


def plain_pot(texts, vectors):
    """Loop over the pairs and call ot.emd2, the bags prepared beforehand."""
    bags = []
    for text in texts:
        words, counts = np.unique([w for w in text if w in vectors], return_counts=True)
        bags.append((np.array([vectors[w] for w in words]), counts / counts.sum()))
    K = np.zeros((len(texts),) * 2)
    for i, (x, p) in enumerate(bags):
        for j, (y, q) in enumerate(bags[: i + 1]):
            K[i, j] = K[j, i] = ot.emd2(p, q, cdist(x, y))
    return K


def main():
    """Time both contenders alternately and print the medians."""
    texts, vectors = documents()
    contenders = {"simlib": simlib_wmd, "ot.emd2": plain_pot}
    times = {name: [] for name in contenders}
    results = {}
    for _ in range(REPEATS):
        for name, contender in contenders.items():
            start = time.perf_counter()
            results[name] = contender(texts, vectors)
            times[name].append(time.perf_counter() - start)
    np.testing.assert_allclose(results["simlib"], results["ot.emd2"], atol=1e-6)
    pairs = len(texts) * (len(texts) + 1) // 2
    ours = np.median(times["simlib"])
    for name, values in times.items():
        median = np.median(values)
        print(f"{name:8} {1e6 * median / pairs:7.1f} us a pair  x{median / ours:.2f}")


if __name__ == "__main__":
    main()
