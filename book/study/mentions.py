"""The worth of approximations of a scorer's matrices to a clustering of mentions.

Each topic has a matrix of its own. It is approximated by every method from as many
evaluated pairs, the mentions are clustered by average linkage, and the clusters of all
topics together are scored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.preprocessing import normalize
from sklearn.utils import check_array

from simlib._checks import one_of
from simlib.approximation.anchored import anchored
from simlib.approximation.methods import METHODS, largest
from simlib.lowrank import LowRank
from simlib.similarity import Similarity
from study.coreference import average_linkage, conll_f1
from study.datasets.ecbplus import Mentions
from study.refinement import Choice, refined

__all__ = [
    "approximations",
    "clusters_of_topics",
    "cosines",
    "outcomes",
    "rescalings",
    "symmetric_scores",
]

LANDMARK_METHODS: dict[str, dict[str, float]] = {
    "nystrom": {},
    "truncated": {"rcond": 1e-2},
    "sms_nystrom": {},
    "skeleton": {},
    "sicur": {},
    "stacur": {},
    "tikhonov": {},
}
REFINED: dict[str, Choice] = {
    "refined": "clusters",
    "highest": "highest",
    "nearest": "nearest",
}


def cosines(embeddings: np.ndarray) -> np.ndarray:
    """Return the mean of the cosines of the two vectors that each mention has, (n, n).

    Of embeddings (n, 2 d), side by side; ValueError unless finite with an even number
    of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from study.mentions import cosines
    >>> cosines(np.array([[1, 0, 0, 1], [0, 1, 0, 2]])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    embeddings = check_array(embeddings, dtype=np.float64, input_name="embeddings")
    if embeddings.shape[1] % 2:
        raise ValueError(
            f"Pairs of vectors are rows of even length; got shape {embeddings.shape}."
        )
    parts = np.split(embeddings, 2, axis=1)
    scales = [-np.frexp(np.abs(part).max(axis=1, keepdims=True))[1] for part in parts]
    first, second = map(normalize, map(np.ldexp, parts, scales))
    return (first @ first.T + second @ second.T) / 2


def symmetric_scores(mentions: Mentions) -> dict[int, np.ndarray]:
    """Return for each topic the mean of the scores of both orders of its pairs.

    Examples
    --------
    >>> from study.datasets import planted_mentions
    >>> from study.mentions import symmetric_scores
    >>> K = symmetric_scores(planted_mentions(2, 30, rng=0))
    >>> K[1].shape
    (30, 30)
    """
    return {topic: (K + K.T) / 2 for topic, K in mentions.scores.items()}


def clusters_of_topics(
    topics: ArrayLike, matrices: Mapping[int, np.ndarray], thresholds: Sequence[float]
) -> np.ndarray:
    """Cluster the mentions of each topic by themselves, to labels of shape (m, n).

    Parameters
    ----------
    topics : array_like of int, shape (n,)
        The topic of each mention.
    matrices : mapping
        For each topic the similarities of its mentions.
    thresholds : sequence of m floats
        Where to stop, as in `average_linkage`, whose errors these are.

    Examples
    --------
    >>> import numpy as np
    >>> from study.mentions import clusters_of_topics
    >>> matrices = {1: np.ones((2, 2)), 2: np.eye(2)}
    >>> clusters_of_topics(np.array([1, 1, 2, 2]), matrices, [0.5]).tolist()
    [[1, 1, 3, 4]]
    """
    topics = np.asarray(topics)
    mentions = dict(zip(*np.unique(topics, return_counts=True), strict=True))
    sizes = {topic: len(K) for topic, K in matrices.items()}
    for topic in mentions | sizes:
        if mentions.get(topic, 0) != sizes.get(topic, 0):
            raise ValueError(
                f"Topic {topic} has {mentions.get(topic, 0)} mentions, and a matrix of "
                f"{sizes.get(topic, 0)}: it is as large as its mentions are many."
            )
    labels = np.zeros((len(thresholds), len(topics)), dtype=int)
    used = 0
    for topic, K in matrices.items():
        found = average_linkage(K, thresholds) if len(K) > 1 else 1
        labels[:, topics == topic] = used + found
        used += len(K)
    return labels


def rescalings(K: np.ndarray, answer: LowRank) -> dict[str, float]:
    """Return the factors by which an answer of `sms_nystrom` to K may be divided.

    "spectral", as the paper states; "frobenius", as its code for the other data;
    "twice", as its code for coreference: the Frobenius norm, of a core that is shifted
    twice.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, sms_nystrom
    >>> from study.mentions import rescalings
    >>> x = np.random.default_rng(0).standard_normal((50, 5))
    >>> K = np.tanh(x @ x.T)
    >>> sorted(rescalings(K, sms_nystrom(Similarity.from_matrix(K), 10, rng=0)))
    ['frobenius', 'spectral', 'twice']
    """
    S = answer.landmarks
    assert S is not None
    W, shifted = K[np.ix_(S, S)], np.linalg.pinv(answer.core)
    further = 2 * shifted - W  # W + 2 e I, for shifted = W + e I
    norm = np.linalg.norm
    return {
        "spectral": float(norm(W, 2) / norm(shifted, 2)),
        "frobenius": float(norm(W) / norm(shifted)),
        "twice": float(norm(shifted) / norm(further)),
    }


def approximations(
    K: np.ndarray,
    G: np.ndarray,
    share: float,
    *,
    threshold: float,
    methods: Sequence[str] | None = None,
    rng: int | None = None,
) -> dict[str, np.ndarray]:
    """Approximate a matrix by every method, from the same number of pairs.

    Parameters
    ----------
    K, G : arrays of shape (n, n)
        The matrix, symmetric, and a cheap similarity of the same items.
    share : float
        Of the pairs of K, those of an item with itself included, to evaluate.
    threshold : float
        Of the clustering.
    methods : sequence of str, optional
        Names of the answer, without those of `rescalings`; all if not given.
    rng : int, optional
        Seed; the same landmarks for all methods.

    Returns
    -------
    dict
        Name to a symmetric array of shape (n, n). "truncated" is Nyström with the
        cut-off 0.01; "spectral", "frobenius" and "twice" are SMS-Nyström divided by its
        `rescalings`; "highest", "nearest" and "refined" are choices of
        `study.refinement.refined`.

    Raises
    ------
    ValueError
        The share is no share, or does not pay for one landmark; no such method;
        matrices that are not finite, or not symmetric.

    Examples
    --------
    >>> from study.datasets import planted_mentions
    >>> from study.mentions import approximations, cosines, symmetric_scores
    >>> mentions = planted_mentions(1, 60, rng=0)
    >>> K, G = symmetric_scores(mentions)[0], cosines(mentions.embeddings)
    >>> sorted(approximations(K, G, 0.2, threshold=0.5, methods=["sicur", "anchored"]))
    ['anchored', 'sicur']
    """
    K = check_array(K, dtype=np.float64, input_name="K")
    G = check_array(G, dtype=np.float64, input_name="G")
    if not (isinstance(share, Real) and 0 < share <= 1):
        raise ValueError(f"share is above 0 and at most 1; got {share!r}.")
    names = (*LANDMARK_METHODS, "anchored", *REFINED)
    for name in methods or ():
        one_of(name, names, "A method")
    n = len(K)
    calls = int(share * n * (n + 1) / 2)
    fresh = partial(Similarity.from_matrix, K, symmetric=True)
    cheap = Similarity.from_matrix(G, symmetric=True)
    wanted = None if methods is None else set(methods)
    answers = {}
    for name, options in LANDMARK_METHODS.items():
        if wanted is None or name in wanted:
            method = "nystrom" if name == "truncated" else name
            s = largest(method, n, calls)
            answer = METHODS[method].function(fresh(), s, rng=rng, **options)
            answers[name] = answer.toarray()
            if wanted is None and name == "sms_nystrom":
                for rule, beta in rescalings(K, answer).items():
                    answers[rule] = answers[name] / beta
    if wanted is None or "anchored" in wanted:
        s = largest("anchored", n, calls)
        answers["anchored"] = anchored(fresh(), s, cheap, rng=rng).toarray()
    for name, choose in REFINED.items():
        if wanted is None or name in wanted:
            paid = min(calls, n * (n - 1) // 2)
            answers[name] = refined(
                fresh(), cheap, paid, choose=choose, threshold=threshold, rng=rng
            )
    return {name: (A + A.T) / 2 for name, A in answers.items()}


def outcomes(
    dev: Mentions,
    test: Mentions,
    share: float,
    *,
    kept: float,
    thresholds: Sequence[float],
    rng: int | None = None,
) -> dict[str, dict[str, float]]:
    """Return what each method's clusters are worth at a share of the pairs.

    Parameters
    ----------
    dev, test : Mentions
        With scores. A threshold for each method is chosen on `dev`, approximated
        likewise.
    share : float
        Of the pairs, to evaluate in each topic.
    kept : float
        The threshold that is best for the exact matrices of `dev`; in `thresholds`.
    thresholds : sequence of float
        Those to choose from.
    rng : int, optional
        Seed.

    Returns
    -------
    dict
        Method -> measure -> value on `test`: "kept" and "chosen", CoNLL F1 with the
        threshold `kept` and with the one chosen on `dev`; "same_kept" and
        "same_chosen", the same with the clusters of the exact matrices and `kept` in
        place of the true ones; "threshold", the one chosen; "error", relative, over all
        topics; "wrong", the pairs that are on another side of `kept` than in the exact
        matrices, for each that is above it there.

    Raises
    ------
    ValueError
        As `approximations`; `kept` is not among the thresholds.

    Examples
    --------
    >>> from study.datasets import planted_mentions
    >>> from study.mentions import outcomes
    >>> dev, test = (planted_mentions(2, 40, rng=seed) for seed in (0, 1))
    >>> found = outcomes(dev, test, 0.3, kept=0.5, thresholds=[0.3, 0.5], rng=0)
    >>> found["refined"]["same_kept"] > found["nystrom"]["same_kept"]
    True
    """
    if kept not in thresholds:
        raise ValueError(f"`kept` is one of the thresholds; got {kept}.")
    position = list(thresholds).index(kept)
    labels: dict[str, list[np.ndarray]] = {}
    squares: dict[str, np.ndarray] = {}
    for mentions in (dev, test):
        exact = symmetric_scores(mentions)
        found: dict[str, dict[int, np.ndarray]] = {}
        squares = {}
        for topic, K in exact.items():
            G = cosines(mentions.embeddings[mentions.topics == topic])
            answers = approximations(K, G, share, threshold=kept, rng=rng)
            off = ~np.eye(len(K), dtype=bool)
            above = (kept <= K) & off
            for name, A in answers.items():
                found.setdefault(name, {})[topic] = A
                wrong = ((kept <= A) & off) != above
                parts = (((A - K) ** 2).sum(), (K**2).sum(), wrong.sum(), above.sum())
                squares[name] = squares.get(name, 0) + np.array(parts)
        for name, matrices in found.items():
            cut = clusters_of_topics(mentions.topics, matrices, thresholds)
            labels.setdefault(name, []).append(cut)
        (reference,) = clusters_of_topics(mentions.topics, exact, [kept])
    return {
        name: _outcome(
            [conll_f1(dev.clusters, one) for one in on_dev],
            on_test,
            thresholds,
            position,
            test.clusters,
            reference,
        )
        | {
            "error": float(np.sqrt(squares[name][0] / squares[name][1])),
            "wrong": float(squares[name][2] / squares[name][3]),
        }
        for name, (on_dev, on_test) in labels.items()
    }


def _outcome(
    on_dev: Sequence[float],
    labels: np.ndarray,
    thresholds: Sequence[float],
    position: int,
    key: np.ndarray,
    reference: np.ndarray,
) -> dict[str, float]:
    best = int(np.argmax(on_dev))
    return {
        "kept": conll_f1(key, labels[position]),
        "chosen": conll_f1(key, labels[best]),
        "same_kept": conll_f1(reference, labels[position]),
        "same_chosen": conll_f1(reference, labels[best]),
        "threshold": float(thresholds[best]),
    }
