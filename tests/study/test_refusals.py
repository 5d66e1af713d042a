"""What the functions of the study refuse, each with the reason."""

from functools import partial

import numpy as np
import pytest

from simlib import Similarity
from study.as_printed import sketched_solve
from study.coreference import average_linkage
from study.datasets import find, planted_collection, planted_mentions
from study.labelled_pairs import out_of_fold_decisions
from study.mentions import cosines
from study.pair_network import train_pair_network
from study.refinement import refined
from study.wme import WordMoversEmbedding

K, ONES = np.eye(6), np.ones(6)
SIM = Similarity.from_matrix(K)
train = partial(train_pair_network, K, [0, 0, 1, 1, 2, 2], np.zeros(6, int))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sketched_solve(ONES, ONES), "Z must be a matrix"),
        (lambda: sketched_solve(1e200 * K, ONES), "beyond 1e150"),
        (lambda: sketched_solve(K, ONES[:3]), "y must"),
        (lambda: sketched_solve(K, ONES, ridge=-1), "ridge must be"),
        (lambda: average_linkage(K[:3], 0.5), "square"),
        (lambda: average_linkage(K, np.nan), "finite number"),
        (lambda: average_linkage(K, [[0.5]]), "one axis"),
        (lambda: average_linkage(np.nan * K, 0.5), "K contains NaN"),
        (lambda: train_pair_network(np.nan * K, ONES, ONES), "X contains NaN"),
        (lambda: cosines(ONES), "Expected 2D"),
        (lambda: find("nothing", "words.txt"), "no data set 'nothing'"),
        (lambda: find("words", "nothing"), "no file 'nothing'"),
        (lambda: planted_collection(1, 5), "n_queries must be"),
        (lambda: planted_mentions(0, 5), "n_topics must be"),
        (lambda: planted_mentions(2, 1), "size must be"),
        (lambda: out_of_fold_decisions(ONES, ONES, n_splits=2.5), "n_splits must be"),
        (lambda: out_of_fold_decisions(ONES, ONES, n_splits=1), "folds"),
        (lambda: out_of_fold_decisions(ONES, ONES, 3), "metric is one of"),
        (lambda: out_of_fold_decisions(ONES, ONES, "recall"), "metric is one of"),
        (lambda: out_of_fold_decisions(K[:, 1:], ONES), "as many scores"),
        (lambda: out_of_fold_decisions(np.nan * K, ONES), "NaN"),
        (lambda: out_of_fold_decisions(K, range(6)), "true or false"),
        (lambda: out_of_fold_decisions(K, np.arange(6) < 3), "folds"),
        (lambda: refined(SIM, SIM, 9, threshold=np.nan), "threshold must be"),
        (lambda: refined(K, SIM, 9), "Similarity"),
        (lambda: train(alpha=-1.0), "alpha must be"),
        (lambda: train(n_hidden=0), "n_hidden must be"),
        (lambda: train(negatives=0), "negatives must be"),
        (lambda: WordMoversEmbedding({}, 0).fit([["a"]]), "n_components must be"),
        (lambda: WordMoversEmbedding({}, gamma=0).fit([["a"]]), "gamma must be"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
