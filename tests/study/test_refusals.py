"""What the functions of the study refuse, each with the reason."""

from functools import partial

import numpy as np
import pytest

from simlib import Similarity
from study import gallery
from study.as_printed import sketched_solve
from study.coreference import average_linkage
from study.datasets import (
    bundled_cross_encoder,
    find,
    load_cortex,
    load_cross_encoder,
    load_ecbplus,
    load_road_graph,
    planted_collection,
    planted_mentions,
)
from study.labelled_pairs import out_of_fold_decisions
from study.mentions import approximations, cosines
from study.multiprecision import exact_product
from study.pair_network import PairNetwork, train_pair_network
from study.refinement import refined
from study.sentences import equal_calls, outcomes
from study.soft_tokens import SoftTokens
from study.trials import recall
from study.wme import WordMoversEmbedding

K, ONES = np.eye(6), np.ones(6)
SIM = Similarity.from_matrix(K)
NETWORK = PairNetwork(np.ones((15, 4)), np.ones(4), np.ones(4), 0.3)
TOKENS, CUTS = SoftTokens(["one", "two"]), (-1, 2, np.nan)
GALLERY = [gallery.load, gallery.companions]
train = partial(train_pair_network, K, [0, 0, 1, 1, 2, 2], np.zeros(6, int))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sketched_solve(ONES, ONES), "Z must be a matrix"),
        (lambda: sketched_solve(1e200 * K, ONES), "beyond 1e150"),
        (lambda: sketched_solve(K, ONES[:3]), "y must"),
        (lambda: sketched_solve(K, ONES, ridge=-1), "ridge must be"),
        (lambda: exact_product([[np.nan]], [[1.0]]), "finite"),
        (lambda: average_linkage(K[:3], 0.5), "square"),
        (lambda: average_linkage(K, np.nan), "finite number"),
        (lambda: average_linkage(K, [[0.5]]), "one axis"),
        (lambda: average_linkage(np.nan * K, 0.5), "K contains NaN"),
        (lambda: train_pair_network(np.nan * K, ONES, ONES), "X contains NaN"),
        (lambda: cosines(ONES), "Expected 2D"),
        (
            lambda: approximations(K, K, 0.2, threshold=0.5, methods=["nys"]),
            "got 'nys'",
        ),
        (lambda: outcomes(bundled_cross_encoder(), {"none": 3}), "got 'none'"),
        (lambda: equal_calls(100, 0.1, ["nothing"]), "name of a form"),
        (lambda: equal_calls(100, 0), "share must be"),
        (lambda: equal_calls(100, 1e-4, ["tikhonov"]), "does not pay"),
        (lambda: find("nothing", "words.txt"), "no data set 'nothing'"),
        (lambda: find("words", "nothing"), "no file 'nothing'"),
        (lambda: load_cross_encoder("words"), "is one of stsb, mrpc, rte"),
        (lambda: load_ecbplus("time"), "event, entity; got 'time'"),
        (lambda: load_ecbplus("event", "x"), "train, dev, test"),
        (lambda: load_cortex("pial"), "fiducial, white, full; got 'pial'"),
        (lambda: load_road_graph("ohio"), "new-york, roadnet-ca"),
        *((lambda f=f: f("tweets"), r"gaussian, .*; got 'tweets'") for f in GALLERY),
        *((lambda f=f: f("edit", 0), "n must be at least 1; got 0") for f in GALLERY),
        (lambda: planted_collection(1, 5), "n_queries must be"),
        (lambda: planted_mentions(0, 5), "n_topics must be"),
        (lambda: planted_mentions(2, 1), "size must be"),
        (lambda: out_of_fold_decisions(ONES, ONES, n_splits=2.5), "n_splits must be"),
        (lambda: out_of_fold_decisions(ONES, ONES, n_splits=1), "folds"),
        (lambda: out_of_fold_decisions(ONES, ONES, 3), "metric is one of"),
        (lambda: out_of_fold_decisions(ONES, ONES, "recall"), "metric is one of"),
        (lambda: out_of_fold_decisions(K[:, 1:], ONES), "as many scores"),
        (lambda: out_of_fold_decisions(np.nan * K, ONES), "got nan"),
        (lambda: out_of_fold_decisions(K, range(6)), "true or false"),
        (lambda: out_of_fold_decisions(K, np.arange(6) < 3), "folds"),
        (lambda: refined(SIM, SIM, 9, threshold=np.nan), "threshold must be"),
        (lambda: refined(K, SIM, 9), "Similarity"),
        (lambda: recall(K, np.zeros((6, 2), int), 3), "k must be between 1 and the 2"),
        (lambda: recall(K, np.zeros((5, 2), int)), "do not fit K"),
        (lambda: train_pair_network(K, ONES[1:], ONES), "6 vectors need as many"),
        (lambda: train_pair_network(K, 0 * ONES, ONES), "nothing to tell"),
        (lambda: NETWORK(K[:, :5], K[:, :4]), "vectors of 5 entries"),
        (lambda: NETWORK(ONES, K[:, :5]), "2D array"),
        (lambda: train(epochs=0), "epochs must be at least 1"),
        (lambda: train(alpha=-1.0), "alpha must be"),
        (lambda: train(n_hidden=0), "n_hidden must be"),
        (lambda: train(negatives=0), "negatives must be"),
        (lambda: SoftTokens(["one", "?!"]), "Text 1 has no word"),
        (lambda: SoftTokens("one"), "sequence of strings"),
        (lambda: SoftTokens(["one", None]), "sequence of strings"),
        *((lambda c=c: SoftTokens(["a"], cut=c), "cut must be") for c in CUTS),
        (lambda: TOKENS([0], [0, 1]), "same length"),
        (lambda: TOKENS([0.5], [1.0]), "array of integers"),
        (lambda: TOKENS([0], [2]), "numbered 0 to 1"),
        (lambda: TOKENS([-1], [0]), "numbered 0 to 1"),
        (lambda: WordMoversEmbedding({}, 0).fit([["a"]]), "n_components must be"),
        (lambda: WordMoversEmbedding({}, gamma=0).fit([["a"]]), "gamma must be"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        call()
