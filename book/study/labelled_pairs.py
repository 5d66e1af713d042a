"""The worth of scores of labelled pairs: agreement, and thresholds for decisions."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.model_selection import StratifiedKFold

from simlib._checks import numbers, one_of, shaped, whole_number

__all__ = ["accuracy", "f1", "out_of_fold_decisions", "pearson", "spearman"]


def pearson(scores: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Return the linear correlation of each row of scores with the labels.

    `scipy.stats.pearsonr` is of one row, with a test.

    Parameters
    ----------
    scores : array of shape (..., m)
        One row for each approximation.
    labels : array of shape (m,)

    Returns
    -------
    ndarray of shape (...)
        0 where the scores or the labels are all alike, or there are none.

    Raises
    ------
    ValueError
        Scores that are not as many as the labels, or either not finite.

    Examples
    --------
    >>> from study.labelled_pairs import pearson
    >>> pearson([[0.1, 0.2, 0.3], [3, 2, 1]], [1, 2, 3]).round(6).tolist()
    [1.0, -1.0]
    """
    rows, truth = _paired(scores, labels)
    if truth.size == 0:
        return np.zeros(rows.shape[:-1])
    flat, row = _of_size_one(rows.reshape(-1, truth.size)), _of_size_one(truth[None])
    found = 1 - cdist(flat, row, "correlation").reshape(rows.shape[:-1])
    return np.nan_to_num(found)


def spearman(scores: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Return the rank correlation of each row of scores with the labels.

    As `pearson`, but infinities have ranks. `scipy.stats.spearmanr` is of one row.

    Examples
    --------
    >>> from study.labelled_pairs import spearman
    >>> float(spearman([1, 10, 100], [1, 2, 3]).round(6))
    1.0
    """
    rows, truth = _paired(scores, labels)
    return pearson(rankdata(rows, axis=-1), rankdata(truth))


def accuracy(decisions: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Return the share of right decisions in each row, (..., m) to (...).

    `sklearn.metrics.accuracy_score` takes for one row the time of a thousand here.

    Parameters
    ----------
    decisions, labels : arrays of bool, shapes (..., m) and (m,)

    Raises
    ------
    ValueError
        Decisions that are not as many as the labels, none, or neither true nor false.

    Examples
    --------
    >>> from study.labelled_pairs import accuracy
    >>> float(accuracy([True, True, False, False], [True, False, False, False]))
    0.75
    """
    said, true = map(_decided, _paired(decisions, labels))
    if true.size == 0:
        raise ValueError("Of no decision there is no share that is right.")
    return (said == true).mean(axis=-1)


def f1(decisions: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Return the F1 score of each row: the harmonic mean of precision and recall.

    As `accuracy`; 0 where nothing is true and nothing said to be. The equivalent of
    `sklearn.metrics.f1_score`.

    Examples
    --------
    >>> from study.labelled_pairs import f1
    >>> float(f1([True, True, False, False], [True, False, True, False]))
    0.5
    """
    said, true = map(_decided, _paired(decisions, labels))
    both = 2 * (said & true).sum(axis=-1)
    total = said.sum(axis=-1) + true.sum()
    return np.divide(both, total, out=np.zeros(said.shape[:-1]), where=total > 0)


def out_of_fold_decisions(
    scores: ArrayLike,
    labels: ArrayLike,
    metric: Literal["accuracy", "f1"] = "accuracy",
    *,
    n_splits: int = 5,
    random_state: int = 0,
) -> np.ndarray:
    """Decide which pairs are positive, by thresholds that have not seen them.

    The threshold of a fold is the best for the other folds. Returns bools of the shape
    of `scores`, in O(d n_splits m log m). For classifiers there is
    `sklearn.model_selection.TunedThresholdClassifierCV`.

    Parameters
    ----------
    scores : array of shape (m,) or (d, m)
        Higher means rather positive; each row is decided by itself.
    labels : array of bool, shape (m,)
        At least `n_splits` of either kind.
    metric : {"accuracy", "f1"}
        What is the best. Of equals the highest threshold; between two scores it lies
        in the middle.
    n_splits : int
        Number of folds, each with its share of both labels.
    random_state : int
        Of the folds, which are the same for all scores.

    Raises
    ------
    ValueError
        Other scores than labels, or too few of a label for the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from study.labelled_pairs import out_of_fold_decisions
    >>> labels = np.arange(40) >= 20
    >>> scores = np.linspace(0, 1, 40) + labels
    >>> bool((out_of_fold_decisions(scores, labels) == labels).all())
    True
    """
    one_of(metric, ("accuracy", "f1"), "metric")
    rows, given = _paired(np.atleast_2d(scores), labels)
    rows = shaped(numbers(rows, "scores"), ("d", "m"), "scores")
    truth = _decided(numbers(given, "labels"))
    n_splits, positive = whole_number(n_splits, "n_splits"), int(truth.sum())
    if not 2 <= n_splits <= min(positive, truth.size - positive):
        raise ValueError(
            f"{n_splits} folds (2 or more) need as many pairs of either label; there "
            f"are {positive} and {truth.size - positive}."
        )
    cut = StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    decisions = np.empty(rows.shape, dtype=bool)
    for rest, fold in cut.split(truth, truth):
        thresholds = _best_thresholds(rows[:, rest], truth[rest], metric)
        decisions[:, fold] = rows[:, fold] > thresholds[:, None]
    return decisions.reshape(np.shape(scores))


def _paired(scores: ArrayLike, labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return scores or decisions of as many pairs as there are labels."""
    rows, truth = map(_numbers, (scores, labels))
    if truth.ndim != 1 or rows.shape[-1:] != truth.shape:
        raise ValueError(
            "Labels are one row, and need as many scores in each row; got shapes "
            f"{truth.shape} and {rows.shape}."
        )
    return rows, truth


def _numbers(values: ArrayLike) -> np.ndarray:
    """Return an array of real numbers; texts have an order too, but another."""
    found = np.asarray(values)
    if found.dtype == object and not any(isinstance(x, str) for x in found.flat):
        with suppress(TypeError, ValueError):
            found = found.astype(float)
    if found.dtype.kind not in "biuf":
        raise ValueError(f"Scores, decisions and labels are numbers; got {values!r}.")
    return found


def _decided(values: np.ndarray) -> np.ndarray:
    """Return decisions or labels as truth values."""
    decided = values.astype(bool)
    if not np.array_equal(decided, values):
        raise ValueError(
            "Decisions and their labels are true or false, 1 or 0: compare scores "
            "with a threshold, as out_of_fold_decisions does, and labels of -1 with 0."
        )
    return decided


def _of_size_one(rows: np.ndarray) -> np.ndarray:
    """Return rows in units of their largest entries: squares stay in range."""
    rows = numbers(rows, "Scores and labels").astype(float)
    largest = np.abs(rows).max(axis=-1, keepdims=True)
    return np.divide(rows, largest, out=np.zeros(rows.shape), where=largest > 0)


def _best_thresholds(rows: np.ndarray, labels: np.ndarray, metric: str) -> np.ndarray:
    """Return for each row of scores the threshold above which saying yes is best."""
    order = np.argsort(rows, axis=1)[:, ::-1]
    ends = np.full((len(rows), 1), np.inf)
    ranked = np.hstack([ends, np.take_along_axis(rows, order, axis=1), -ends])
    said = np.arange(labels.size + 1)  # how many are said to be true
    hits = np.hstack([np.zeros_like(ends), labels[order].cumsum(axis=1)])
    found = 2 * hits - said if metric == "accuracy" else hits / (said + labels.sum())
    found = np.round(found, 12)
    found[ranked[:, 1:] == ranked[:, :-1]] = -np.inf  # between equal scores
    best = found.argmax(axis=1)[:, None]
    above, below = (np.take_along_axis(ranked, best + k, axis=1) for k in (0, 1))
    middle = above / 2 + below / 2
    return np.minimum(middle, np.nextafter(above, -np.inf))[:, 0]  # never the upper
