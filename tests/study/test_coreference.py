"""Scores of coreference: published cases, sets and brute force; and the clusters."""

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import AgglomerativeClustering

from study.coreference import average_linkage, b_cubed, ceaf_e, conll_f1, lea, muc

# Cases of the reference scorer (Pradhan et al. 2014) with the values that its tests and
# those of its port by Moosavi state: recall and precision of MUC, B-cubed, CEAF-e and
# LEA, None where none is stated. D and E are those of Bagga and Baldwin (1998), K and L
# those of Vilain et al. (1995).
DOCUMENT = "a bc def"
CASES = {
    "A2": (DOCUMENT, "a de", "1/3 1", "7/18 1", "3/5 9/10", "1/3 1"),
    "A3": (DOCUMENT, "a bcx defy z", "1 3/5", "1 55/108", "31/35 93/140", "1 4/9"),
    "A4": (DOCUMENT, "a bcx dy z", "1/3 1/3", "5/9 17/42", "11/15 11/20", "1/2 2/7"),
    "A5": (DOCUMENT, "a bcxB dy z", "1/3 1/4", "5/9 5/16", "31/45 31/60", "1/2 5/24"),
    "A6": (DOCUMENT, "a bcx dy Bz", "1/3 1/4", "5/9 17/48", "11/15 11/20", "1/2 1/4"),
    "A10": (DOCUMENT, "a b c d e f", "0 0", "1/2 1", None, "1/6 1/6"),
    "A12": (DOCUMENT, "a x y c d e z", "0 0", "13/36 4/7", None, "1/6 1/7"),
    "D1": ("12345 67 89ABC", "12345 6789ABC", "1 9/10", "1 16/21", None, "1 13/18"),
    "E1": ("12345 67 89ABC", "1234589ABC 67", "1 9/10", "1 7/12", None, "1 29/54"),
    "K1": ("BCDEGHJ", "ABC DEF GHI", "1/2 1/2", None, None, "1/7 1/3"),
    "L1": ("ABC DEFG", "AB CD FGH", "2/5 1/2", None, None, "5/21 3/7"),
    "N1": ("a b c d e f", "a b c d e f", "0 0", "1 1", "1 1", "1 1"),
}
METRICS = (muc, b_cubed, ceaf_e, lea)


def labels(*partitions):
    """Return the label of every letter in each partition, -1 where it has none."""
    clusters = [partition.split() for partition in partitions]
    letters = sorted({letter for found in clusters for letter in "".join(found)})
    return [
        [next((k for k, c in enumerate(found) if x in c), -1) for x in letters]
        for found in clusters
    ]


@pytest.mark.parametrize("case", CASES)
def test_published_cases(case):
    key, response, *expected = CASES[case]
    key, response = labels(key, response)
    for metric, values in zip(METRICS, expected, strict=True):
        if values is not None:
            recall, precision = (float(Fraction(value)) for value in values.split())
            score = metric(key, response)
            assert score.recall == pytest.approx(recall, abs=1e-6)
            assert score.precision == pytest.approx(precision, abs=1e-6)


def test_the_score_of_the_shared_task_is_a_mean_of_three():
    key, response = labels(*CASES["A4"][:2])
    f1 = [metric(key, response).f1 for metric in (muc, b_cubed, ceaf_e)]
    assert conll_f1(key, response) == pytest.approx(np.mean(f1), abs=1e-12)


def as_sets(values):
    return [
        {i for i, value in enumerate(values) if value == name}
        for name in set(values)
        if name >= 0
    ]


def by_sets(metric, key, response):
    """Recall by the definitions, on sets of mentions."""
    if metric is muc:
        whole = sum(len(k) - 1 for k in key)
        part = 0
        for k in key:
            found = [k & r for r in response if k & r]
            part += len(k) - len(found) - len(k - set().union(*response))
    elif metric is b_cubed:
        whole = sum(map(len, key))
        part = sum(len(k & r) ** 2 / len(k) for k in key for r in response)
    elif metric is lea:
        whole, part = sum(map(len, key)), 0
        for k in key:
            pairs = list(combinations(k, 2))
            if pairs:
                found = [p for p in pairs if any(set(p) <= r for r in response)]
                part += len(k) * len(found) / len(pairs)
            else:
                part += k in response
    else:
        whole, part = len(key), 0
        few, many = sorted((key, response), key=len)
        for chosen in permutations(many, len(few)):
            pairs = zip(few, chosen, strict=True)
            part = max(part, sum(2 * len(a & b) / (len(a) + len(b)) for a, b in pairs))
    return part / whole if whole else 0.0


partitions = st.integers(1, 7).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-1, 4), min_size=n, max_size=n)] * 2)
)


@given(partitions)
def test_definitions_on_sets(pair):
    key, response = map(as_sets, pair)
    for metric in METRICS:
        score = metric(*pair)
        assert score.recall == pytest.approx(by_sets(metric, key, response))
        assert score.precision == pytest.approx(by_sets(metric, response, key))


def test_a_perfect_answer_without_singletons():
    key = [4, 4, 2, 7, 2, 9]
    assert [metric(key, key).f1 for metric in METRICS] == [1, 1, 1, 1]
    kept = [4, 4, 2, -1, 2, -1]
    assert conll_f1(kept, kept) == 1
    assert conll_f1([0, 1, 2], [0, 1, 2]) == pytest.approx(2 / 3)  # MUC has no links


@pytest.mark.parametrize(
    ("key", "response", "message"),
    [
        ([0, 1], [0], "a label for each mention"),
        ([0.5, 1], [0, 1], "`key` holds an integer for each"),
        ([0, 1], [[0, 1]], "`response` holds an integer for each"),
        (np.array([2**63], np.uint64), [0], "`key` has labels of 2\\^63 and more"),
    ],
)
def test_what_the_metrics_refuse(key, response, message):
    for metric in (*METRICS, conll_f1):
        with pytest.raises(ValueError, match=message):
            metric(key, response)


# Clusters


@pytest.mark.parametrize("threshold", [0.2, 0.45, 0.8])
def test_average_linkage_as_in_scikit_learn(threshold):
    K = np.random.default_rng(0).random((40, 40))
    model = AgglomerativeClustering(
        n_clusters=None,
        metric="precomputed",
        linkage="average",
        distance_threshold=1 - threshold,
    )
    expected = model.fit_predict(1 - (K + K.T) / 2)
    found = average_linkage(K, threshold)
    assert b_cubed(expected, found) == (1, 1)


def test_similarities_above_one_and_below_zero():
    K = np.array([[0, 3.0, -2.0], [3.0, 0, -2.0], [-2.0, -2.0, 0]])
    found = average_linkage(K, [3.1, 2.9, -1.9, -2.0])
    assert found.tolist() == [[1, 2, 3], [1, 1, 2], [1, 1, 2], [1, 1, 1]]
    assert average_linkage(K, 0.9).tolist() == [1, 1, 2]


@pytest.mark.parametrize("scale", [1e-200, 1e-17, 1e-10, 1, 1e100])
def test_clusters_do_not_depend_on_the_unit(scale):
    K = scale * np.array([[0, 9.0, 2.0], [9.0, 0, 3.0], [2.0, 3.0, 0]])
    found = average_linkage(K, [5 * scale, 2 * scale])
    assert found.tolist() == [[1, 1, 2], [1, 1, 1]]


def test_a_similarity_of_any_size_beside_small_thresholds():
    K = np.array([[0, 1e17, 0.2, 0.2], [0, 0, 0.2, 0.2], [0, 0, 0, 0.3], [0, 0, 0, 0]])
    found = average_linkage(K + K.T, [0.5, 0.25, 0.1, 1e18])
    assert found.tolist() == [[1, 1, 2, 3], [1, 1, 2, 2], [1] * 4, [1, 2, 3, 4]]
    huge = np.where(np.eye(4, k=1) + np.eye(4, k=-1), 1.5e308, 1e300)
    found = average_linkage(huge, [1e308, 1e307])
    assert found.tolist() == [[1, 1, 2, 2], [1, 1, 1, 1]]


@pytest.mark.parametrize("value", [0.1, 0.3, -0.7])
@pytest.mark.parametrize("n", [2, 7, 50, 200])
def test_clusters_as_alike_as_the_threshold_are_merged(n, value):
    K = np.full((n, n), value)
    assert average_linkage(K, value).max() == 1
    assert average_linkage(K, value + 1e-9).max() == n
