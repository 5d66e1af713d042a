"""What scores of labelled pairs are worth."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from study.labelled_pairs import accuracy, f1, out_of_fold_decisions, pearson, spearman

M = 60
RNG = np.random.default_rng(0)
SCORES = RNG.standard_normal((4, M)).round(1)  # with ties
LABELS = SCORES[0] + RNG.standard_normal(M) > 0.5


@pytest.mark.parametrize(
    ("ours", "theirs"), [(pearson, stats.pearsonr), (spearman, stats.spearmanr)]
)
def test_correlations_are_those_of_scipy(ours, theirs):
    y = np.random.default_rng(1).integers(0, 6, M)
    expected = [theirs(row, y).statistic for row in SCORES]
    np.testing.assert_allclose(ours(SCORES, y), expected, atol=1e-12)
    assert ours(SCORES[0], y) == pytest.approx(expected[0])


@pytest.mark.parametrize(
    ("ours", "theirs"), [(accuracy, metrics.accuracy_score), (f1, metrics.f1_score)]
)
def test_agreement_of_decisions_is_that_of_scikit_learn(ours, theirs):
    decisions = SCORES > 0.3
    expected = [theirs(LABELS, row) for row in decisions]
    np.testing.assert_allclose(ours(decisions, LABELS), expected, atol=1e-12)


def test_what_tells_nothing_has_no_agreement():
    assert pearson(np.ones(M), LABELS) == 0
    assert pearson(np.ones((2, 0)), []).tolist() == [0, 0]
    assert spearman(SCORES, np.zeros(M)).tolist() == [0] * 4
    assert f1(np.zeros(3, bool), np.zeros(3, bool)) == 0


@pytest.mark.parametrize("metric", ["accuracy", "f1"])
def test_scores_that_are_neighbours_among_the_numbers_are_told_apart(metric):
    """Their middle is one of them, the upper one between these."""
    labels = np.arange(40) >= 20
    scores = 1 + np.finfo(float).eps * (1 + labels)
    found = out_of_fold_decisions(scores, labels, metric)
    np.testing.assert_array_equal(found, labels)


@pytest.mark.parametrize("metric", ["accuracy", "f1"])
def test_a_threshold_is_the_best_of_all_for_the_other_folds(metric):
    """Against a search through every threshold, fold by fold."""
    from sklearn.model_selection import StratifiedKFold

    score = {"accuracy": metrics.accuracy_score, "f1": metrics.f1_score}[metric]
    cut = StratifiedKFold(5, shuffle=True, random_state=3)
    for row in SCORES:
        found = out_of_fold_decisions(row, LABELS, metric, random_state=3)
        for rest, fold in cut.split(row, LABELS):
            values = np.unique(row[rest])[::-1]
            middles = [np.inf, *(values[:-1] + values[1:]) / 2, -np.inf]
            said = [score(LABELS[rest], row[rest] > t) for t in middles]
            threshold = middles[int(np.argmax(np.round(said, 12)))]
            np.testing.assert_array_equal(found[fold], row[fold] > threshold)


def test_all_rows_are_decided_as_each_alone():
    together = out_of_fold_decisions(SCORES, LABELS, "f1")
    for row, decided in zip(SCORES, together, strict=True):
        alone = out_of_fold_decisions(row, LABELS, "f1")
        np.testing.assert_array_equal(alone, decided)


def test_infinite_scores_have_ranks():
    assert spearman([np.inf, 1, 2], [1, 2, 3]) == pytest.approx(-0.5)


CORRELATIONS, AGREEMENTS = [pearson, spearman], [accuracy, f1]
WRONG = [
    np.array(wrong, kind)
    for wrong in (["9", "10", "11"], [1j, 2, 3])
    for kind in (None, object)
]


@pytest.mark.parametrize(
    ("measures", "message", "pairs"),
    [
        (
            [*CORRELATIONS, *AGREEMENTS],
            "as many scores",
            [([1, 0, 1], [1]), ([[1], [0]], [1, 0]), ([1], [[1]])],
        ),
        (
            [*CORRELATIONS, *AGREEMENTS],
            "are numbers",
            [pair for w in WRONG for pair in ((w, [0, 1, 1]), ([0, 1, 1], w))],
        ),
        (CORRELATIONS, "finite", [([np.nan, 1], [1, 2]), ([1, 2], [1, np.nan])]),
        ([pearson], "finite", [([np.inf, 1, 2], [1, 2, 3])]),
        (
            AGREEMENTS,
            "true or false, 1 or 0",
            [
                ([1, -1], [1, 0]),
                ([0.7, 0.2], [1, 0]),
                ([np.nan, 1], [1, 1]),
                ([1], [-1]),
            ],
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(measures, message, pairs):
    for scores, labels in pairs:
        for measure in measures:
            with pytest.raises(ValueError, match=message):
                measure(scores, labels)
