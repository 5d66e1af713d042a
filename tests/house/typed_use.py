"""What mypy tells a user of simlib; `make lint` runs it on this file.

An `ignore` stands where a mistake has to be found: one that finds nothing is an error.
"""

# mypy: warn-unused-ignores

from typing import Literal, assert_type

import numpy as np
from scipy.sparse import csr_array

import simlib
from simlib import (
    AttentionKernelRegressor,
    LowRank,
    Similarity,
    SimilarityFeatures,
    anchored,
    approximate_to,
    estimate_error,
    lstsq,
    nystrom,
    tikhonov,
)
from simlib.approximation import Anchored, ErrorEstimate
from simlib.biharmonic import interpolation
from simlib.regression import Solution
from simlib.regression.sketch import Sketch
from simlib.similarity.views import SimilarityMatrix


def common_letters(x: str, y: str) -> int:
    return len(set(x) & set(y))


def linear(xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    return xs @ ys.T


def letter(x: str) -> int:
    return len(x)


def question(words: list[str], X: np.ndarray) -> None:
    sim = Similarity(words, common_letters)
    assert_type(sim.columns([0, 1]), np.ndarray)
    assert_type(sim.map(np.exp).symmetrized().fork(limit=3), SimilarityMatrix)
    assert_type(sim.limit, float | None)
    Similarity(X, linear, batch="block", dtype=np.float32)
    Similarity(X, linear, batch="blocks")  # type: ignore[arg-type]
    Similarity(words, letter)  # type: ignore[arg-type]
    sim.calls = 0  # type: ignore[misc]


def answer(sim: Similarity, X: np.ndarray) -> None:
    K = tikhonov(sim, 10, rng=0)
    assert_type(K, LowRank)
    assert_type(K.core, np.ndarray)
    assert_type(K.shape, tuple[int, int])
    assert_type(K.T.embedding(), tuple[np.ndarray, np.ndarray])
    len(K.landmarks)  # type: ignore[arg-type]  # an answer need not have any
    for landmarks in ([0, 1], range(2), np.arange(2), list(np.arange(2))):
        tikhonov(sim, landmarks=landmarks)
    tikhonov(sim, 10, landmarks="pivoted_qr", ridge=0.1)
    tikhonov(sim, 10, landmarks="qr")  # type: ignore[arg-type]
    tikhonov(sim, 10, ridge="best")  # type: ignore[arg-type]
    nystrom(sim, 10, landmarks="uniform")  # type: ignore[arg-type]
    assert_type(anchored(sim, 10, X), Anchored)
    assert_type(simlib.METHODS["nystrom"].function(sim, 10), LowRank)


def error(sim: Similarity, K: LowRank) -> None:
    assert_type(estimate_error(sim, K), ErrorEstimate)
    assert_type(estimate_error(sim, K).high, float)
    reason = approximate_to(sim, 0.1).reason
    assert_type(reason, Literal["target", "limit", "items"])
    estimate_error(K, sim)  # type: ignore[arg-type]


def regression(A: np.ndarray, sparse: csr_array, b: np.ndarray) -> None:
    assert_type(lstsq(A, b), Solution)
    assert_type(lstsq(sparse, b).x, np.ndarray)
    lstsq([A, sparse], b, method="cholesky_qr")
    lstsq(A, b, method="qr")  # type: ignore[arg-type]
    model = AttentionKernelRegressor().fit(A, b)
    assert_type(model, AttentionKernelRegressor)
    assert_type(SimilarityFeatures().fit(A).transform(A), np.ndarray)


def surface(M: csr_array) -> None:
    assert_type(interpolation(M, [0]), np.ndarray)
    P: csr_array = interpolation(M, [0], nnz_per_row=8)
    interpolation(M, [0], solver="lapack")  # type: ignore[call-overload]
    P.toarray()


def subpackages() -> None:
    assert_type(simlib.regression.sketch.srht(10, 100), Sketch)
    assert_type(simlib.landmarks.uniform(100, 10), np.ndarray)
    assert_type(simlib.text.wmd.word_mover_distance([], [], {}), float)
    simlib.tikonov(1)  # type: ignore[attr-defined]
