"""Every public function, and what nobody should give it, one argument at a time.

Either the answer is right or an error says on purpose, in simlib or in what it lets
check its input, what is wrong. Right is the answer for the same numbers in another form
(integers, bools, half precision, read-only memory, a list), and the answer in another
unit where the unit was changed; of all others what can be asked is that it is finite.
"""

import importlib
import linecache
import pkgutil
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

import simlib
import study
from simlib import LowRank, Similarity, landmarks, neighbors, regression
from simlib.approximation import methods
from simlib.approximation.overlay import overlay
from simlib.approximation.spectrum import negative_mass
from simlib.biharmonic import (
    HubLabels,
    biharmonic_approximation,
    biharmonic_operator,
    exact_geodesics,
    graph_distances,
    graph_laplacian,
    heat_geodesics,
    interpolation,
    merge_vertices,
    mesh_laplacian,
    neighbor_graph,
)
from simlib.datasets import (
    WordVectors,
    bumpy_sphere,
    cross_encoder_like,
    gaussian_psd,
    planar_roads,
    point_clouds,
    sigmoid_kernel,
    swiss_roll,
    uniform_psd,
)
from simlib.regression import sketch
from simlib.similarity.views import check_similarity
from simlib.text import bounds, wmd
from study import (
    coreference,
    gallery,
    labelled_pairs,
    mentions,
    pair_network,
    refinement,
    wme,
)
from study import documents as features
from study.as_printed import sketched_solve
from study.datasets import (
    available,
    find,
    load_cortex,
    load_cross_encoder,
    load_ecbplus,
    load_word_vectors,
    planted_mentions,
    planted_records,
)
from support.matrices import psd, rbf

ERRORS = (ValueError, TypeError, IndexError, KeyError, MemoryError, ImportError)
ERRORS = (*ERRORS, np.linalg.LinAlgError, simlib.BudgetExceeded)
OURS = ("/simlib/", "/study/", "/sklearn/")  # scikit-learn checks input where we let it


# Hostile input, by what is expected


def generator():
    yield from (0, 1)


def read_only(values):
    values = np.array(values)
    values.flags.writeable = False
    return values


NOTHING = {
    "None": None,
    "a string": "similar",
    "a generator": generator(),
    "an object": object(),
    "a dictionary": {"a": 1},
    "a list of None": [None, None, None],
    "a list of strings": ["a", "b"],
    "a complex number": 1j,
}
COUNTS = {
    "minus one": -1,
    "zero": 0,
    "a half": 0.5,
    "NaN": np.nan,
    "infinity": np.inf,
    "minus infinity": -np.inf,
    "a huge number": 10**12,
} | {key: NOTHING[key] for key in ("a string", "a generator", "a complex number")}
SIZES = {key: value for key, value in COUNTS.items() if key != "a huge number"}
NUMBERS = {
    "minus one": -1.0,
    "NaN": np.nan,
    "infinity": np.inf,
    "minus infinity": -np.inf,
    "huge": 1e300,
    "tiny": 1e-300,
} | {key: NOTHING[key] for key in ("a string", "a generator", "a complex number")}
NAMES = {"nonsense": "nonsense", "a number": 3, "bytes": b"x"}
INDICES = {
    "negative": [-1],
    "too large": [10**6],
    "repeated": [1, 1],
    "fractions": [0.5, 1.5],
    "floats": [0.0, 1.0],
    "bools": [True, False, True],
    "NaN": [np.nan],
    "two axes": [[0, 1], [2, 3]],
    "empty": [],
    "a number": 2,
    "a huge number": [2**63],
} | {key: NOTHING[key] for key in NOTHING if key != "None"}


def arrays(good):
    """Return what may come in place of an array of finite numbers."""
    good = np.asarray(good)
    if good.dtype.kind == "i":
        good = good.astype(float)

    def with_one(value):
        changed = good.copy()
        changed.flat[changed.size // 2] = value
        return changed

    yield from NOTHING.items()
    yield "empty", np.zeros((0,) * good.ndim)
    yield "no rows", good[:0]
    yield "one row", good[:1]
    if good.ndim == 2:
        yield "one entry", good[:1, :1]
        yield "one column", good[:, :1]
        yield "no columns", good[:, :0]
        yield "not square", good[:, :-1]
        yield "flat", good.ravel()
        yield "ragged", [[1.0], [1.0, 2.0]]
        yield "sparse", scipy.sparse.coo_array(good)
    yield "three axes", good[None, None] if good.ndim == 1 else good[None]
    yield "a scalar", 1.0
    yield "complex", good + 1j
    yield "NaN", with_one(np.nan)
    yield "infinity", with_one(-np.inf)
    yield "objects", good.astype(object)
    yield "an object among numbers", with_object(good)
    yield "strings", good.astype(str)
    yield "dates", np.zeros(good.shape, dtype="datetime64[s]")
    yield "zeros", np.zeros_like(good)
    yield "negative", -good
    yield "huge", good * 1e300
    yield "tiny", good * 1e-300


def with_object(good):
    changed = good.astype(object)
    changed.flat[0] = None
    return changed


def equivalents(good):
    """Return the same numbers in other forms; of whole numbers in more of them."""
    good = np.asarray(good)
    yield "read-only", read_only(good), good
    yield "a list", good.tolist(), good
    yield "in another order", np.asfortranarray(good), good
    yield "with strides", np.repeat(good, 2, axis=0)[::2], good
    yield "big-endian", good.astype(good.dtype.newbyteorder(">")), good
    half = good.astype(np.float16)
    yield "half precision", half, half.astype(float)
    for kind in (np.int8, np.uint8, np.int64, bool):
        whole = np.abs(np.rint(4 * good)).astype(kind)
        yield f"of {np.dtype(kind)}", whole, whole.astype(float)


# The table


@dataclass
class Entry:
    """How to call a function, and of what kind each argument is.

    `call` takes the arguments by name; `good` holds values for all of them. The kinds:
    "array" (finite numbers), "similarity", "items", "function", "count", "number",
    "name", "indices", "words", "documents", "bags".
    """

    call: Callable[..., Any]
    good: dict[str, Any]
    kinds: dict[str, str]
    degree: dict[str, float] = field(default_factory=dict)  # of the answer, in arrays
    linear: bool = False  # a product, by which NaN stays NaN


RNG = np.random.default_rng(0)
K = rbf(12) + 0.1 * np.eye(12)
POINTS = RNG.standard_normal((12, 3))
DISTANCES = np.sqrt(np.square(POINTS[:, None] - POINTS[:8]).sum(axis=2))
TALL = RNG.standard_normal((40, 4))
SPHERE = bumpy_sphere(1)
SIM = Similarity.from_matrix(K)
PATH = np.diag(np.ones(11), 1) + np.diag(np.ones(11), -1)
VECTORS = {letter: np.array([k, k % 3, 1.0]) for k, letter in enumerate("abcdefgh")}
DOCUMENTS = [["a", "b"], ["c"], ["d", "e", "a"], ["b", "b", "h"]]
BAGS = wmd.bags_of_words(DOCUMENTS, WordVectors(tuple("abcdefgh"), np.eye(8)[:, :3]))
WORD_POINTS = RNG.standard_normal((8, 3))


def of_matrix(function, K, **options):
    """Call a method on a matrix that is read through a Similarity."""
    return function(Similarity.from_matrix(K), rng=0, **options)


def method(name, **options):
    """Return the entries of a method: on a matrix, and on what is no similarity."""
    function = getattr(simlib, name)
    degree = {"K": 1.0}
    on_matrix = Entry(
        partial(of_matrix, function),
        {"K": K, "n_landmarks": 4} | options,
        {"K": "array", "n_landmarks": "count", "oversampling": "number"},
        degree,
    )
    given = Entry(
        partial(function, rng=0, **options),
        {"sim": Similarity.from_matrix(K), "landmarks": [1, 5, 3]},
        {"sim": "similarity", "landmarks": "indices"},
    )
    return [on_matrix, given]


def seeded(function):
    return lambda **arguments: function(**arguments, rng=0)


NETWORK = pair_network.PairNetwork(
    np.ones((3 * TALL.shape[1], 2)), np.zeros(2), np.ones(2), 0.0
)
ANSWER = simlib.tikhonov(Similarity.from_matrix(K), 4, rng=0)


def error_of(K, n_pairs, confidence):
    return simlib.estimate_error(
        Similarity.from_matrix(K), ANSWER, n_pairs, confidence=confidence, rng=0
    )


def features_of(X, n_landmarks, **options):
    model = simlib.SimilarityFeatures(
        n_landmarks=n_landmarks, random_state=0, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # n_landmarks is clipped
        Z = model.fit_transform(X)
    return (Z * model.signs_) @ Z.T


def nearest_of(sim, **options):
    return neighbors.nearest(sim, rng=0, **options).values


def neighbor_distances(X, kernel):
    model = neighbors.SimilarityNeighbors(kernel, 2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # n_neighbors is clipped
        return model.fit(X).kneighbors()[0]


def attention_of(X, y, **options):
    model = simlib.AttentionKernelRegressor(random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, y).predict(X)


def exponential_of(X, n_components, degree):
    model = regression.ExponentialFeatures(
        n_components, kind="taylor", degree=degree, random_state=0
    )
    return model.fit(X).transform(X)


def embedding_of(documents, n_components, gamma, max_length):
    model = wme.WordMoversEmbedding(
        VECTORS, n_components, gamma=gamma, max_length=max_length, random_state=0
    )
    return model.fit(documents).transform(documents)


def on_mesh(function):
    """Return an entry for a function of a mesh and sources."""
    return Entry(
        function,
        {"vertices": SPHERE.vertices, "faces": SPHERE.faces, "sources": [0, 5]},
        {"vertices": "array", "faces": "array", "sources": "indices"},
        {"vertices": 1.0},
    )


def sketched(function, **options):
    return Entry(
        lambda m, n, A, **others: function(m, n, rng=0, **others) @ A,
        {"m": 8, "n": 40, "A": TALL} | options,
        {"m": "size", "n": "size", "A": "array", "nnz_per_column": "count"},
        {"A": 1.0},
        linear=True,
    )


def generated(function, **good):
    return Entry(seeded(function), good, dict.fromkeys(good, "size"))


def solver(function, degree, **options):
    good = {"A": TALL, "b": TALL[:, :1] + 0.1}
    kinds = {"A": "array", "b": "array", "j": "size", "tol": "number"}
    kinds |= {"method": "name", "y": "array"}
    if function is regression.solve_gram:
        good = {"A": TALL, "y": TALL.T @ np.ones(40)}
    return Entry(
        lambda **arguments: function(**arguments, rng=0).x,
        good | {"tol": 1e-12, "method": "auto"} | options,
        kinds,
        degree,
    )


TABLE: dict[str, list[Entry]] = {
    # The question and the answer
    "Similarity": [
        Entry(
            lambda items, function, dtype, limit, batch_size: Similarity(
                items, function, dtype=dtype, limit=limit, batch_size=batch_size
            ).columns([0]),
            {
                "items": ["a", "bc", "def"],
                "function": lambda x, y: 1.0,
                "dtype": np.float64,
                "limit": 100,
                "batch_size": 3,
            },
            {
                "items": "items",
                "function": "function",
                "dtype": "name",
                "limit": "number",
                "batch_size": "count",
            },
        ),
        Entry(
            lambda K, diagonal, indices: Similarity(
                range(12), lambda i, j: K[i, j], diagonal=diagonal
            ).block(indices, indices),
            {"K": K, "diagonal": np.diag(K), "indices": [1, 2]},
            {"diagonal": "array", "indices": "indices"},
        ),
        Entry(
            lambda K: Similarity.from_matrix(K).columns([0]),
            {"K": K},
            {"K": "array"},
            {"K": 1.0},
        ),
    ],
    "check_similarity": [
        Entry(
            lambda sim: check_similarity(sim).columns([0]),
            {"sim": Similarity.from_matrix(K)},
            {"sim": "similarity"},
        ),
    ],
    "LowRank": [
        Entry(
            lambda left, core: LowRank(left, core),
            {"left": POINTS, "core": np.diag([1.0, -2.0, 0.5])},
            {"left": "array", "core": "array"},
            {"core": 1.0},
            linear=True,
        ),
        Entry(
            lambda i, x, columns: (
                ANSWER.rows(i),
                ANSWER.entries(i, i),
                ANSWER.solve(x, 1.0),
                ANSWER.extend(columns),
            ),
            {"i": [0, 3], "x": np.ones(12), "columns": np.ones((2, 4))},
            {"i": "indices", "x": "array", "columns": "array"},
        ),
        Entry(
            lambda ridge, k: (ANSWER.solve(np.ones(12), ridge), ANSWER.eigh(k)),
            {"ridge": 0.5, "k": 2},
            {"ridge": "number", "k": "count"},
        ),
    ],
    # Landmarks
    "uniform": [generated(landmarks.uniform, n=12, n_landmarks=3)],
    "draw": [
        Entry(
            seeded(landmarks.draw),
            {"n": 12, "n_landmarks": 3, "oversampling": 2.0},
            {"n": "size", "n_landmarks": "count", "oversampling": "number"},
        ),
        Entry(
            lambda given: landmarks.draw(12, None, landmarks=given, rng=0),
            {"given": [1, 5]},
            {"given": "indices"},
        ),
    ],
    "pivoted_qr": [
        Entry(
            landmarks.pivoted_qr,
            {"block": K, "n_landmarks": 3},
            {"block": "array", "n_landmarks": "count"},
            {"block": 0.0},
        )
    ],
    "adaptive": [
        Entry(
            seeded(landmarks.adaptive),
            {"block": K, "n_landmarks": 3},
            {"block": "array", "n_landmarks": "count"},
            {"block": 0.0},
        )
    ],
    # Methods
    "nystrom": method("nystrom") + method("nystrom", rcond="cv"),
    "sms_nystrom": method("sms_nystrom", oversampling=2.0),
    "skeleton": method("skeleton"),
    "sicur": method("sicur", oversampling=2.0),
    "stacur": method("stacur", oversampling=1.0),
    "rpcholesky": method("rpcholesky"),
    "tikhonov": method("tikhonov", oversampling=2.0),
    "anchored": [
        Entry(
            lambda K, cheap, n_landmarks: of_matrix(
                simlib.anchored, K, cheap=cheap, n_landmarks=n_landmarks
            ),
            {"K": K, "cheap": POINTS, "n_landmarks": 4},
            {"K": "array", "cheap": "array", "n_landmarks": "count"},
            {"K": 1.0},
        ),
        Entry(
            lambda cheap, base_rank: of_matrix(
                simlib.anchored, K, n_landmarks=4, cheap=cheap, base_rank=base_rank
            ),
            {"cheap": Similarity.from_matrix(K + 0.1), "base_rank": 3},
            {"cheap": "similarity", "base_rank": "count"},
        ),
    ],
    "optimal": [
        Entry(
            lambda K, rank: simlib.optimal(Similarity.from_matrix(K), rank),
            {"K": K, "rank": 4},
            {"K": "array", "rank": "count"},
            {"K": 1.0},
        ),
        Entry(
            lambda sim: simlib.optimal(sim, 2),
            {"sim": Similarity.from_matrix(K)},
            {"sim": "similarity"},
        ),
    ],
    "overlay": [
        Entry(
            lambda sim, sample: overlay(sim, ANSWER, sample),
            {"sim": Similarity.from_matrix(K), "sample": [0, 1, 2]},
            {"sim": "similarity", "sample": "indices"},
        )
    ],
    "largest": [
        Entry(
            simlib.largest,
            {"method": "tikhonov", "n": 100, "calls": 2000, "oversampling": 2.0},
            {
                "method": "name",
                "n": "size",
                "calls": "number",
                "oversampling": "number",
            },
        )
    ],
    "approximate_to": [
        Entry(
            lambda K, target_error, confidence, method: (
                of_matrix(
                    simlib.approximate_to,
                    K,
                    target_error=target_error,
                    confidence=confidence,
                    method=method,
                ).approximation
            ),
            {"K": K, "target_error": 0.5, "confidence": 0.9, "method": "tikhonov"},
            {
                "K": "array",
                "target_error": "number",
                "confidence": "number",
                "method": "name",
            },
            {"K": 1.0},
        ),
        Entry(
            lambda sim: simlib.approximate_to(sim, 0.5, rng=0),
            {"sim": Similarity.from_matrix(K)},
            {"sim": "similarity"},
        ),
    ],
    # How good it is
    "relative_error": [
        Entry(
            lambda K: simlib.relative_error(K, ANSWER),
            {"K": K},
            {"K": "array"},
        )
    ],
    "estimate_error": [
        Entry(
            error_of,
            {"K": K, "n_pairs": 40, "confidence": 0.9},
            {"K": "array", "n_pairs": "count", "confidence": "number"},
        ),
        Entry(
            lambda sim: simlib.estimate_error(sim, ANSWER, rng=0),
            {"sim": Similarity.from_matrix(K)},
            {"sim": "similarity"},
        ),
    ],
    "estimate_spectrum": [
        Entry(
            lambda K, n_sample: (
                of_matrix(simlib.estimate_spectrum, K, n_sample=n_sample).eigenvalues
            ),
            {"K": K, "n_sample": 6},
            {"K": "array", "n_sample": "count"},
            {"K": 1.0},
        ),
        Entry(
            lambda sim: simlib.estimate_spectrum(sim, 5, rng=0),
            {"sim": Similarity.from_matrix(K)},
            {"sim": "similarity"},
        ),
    ],
    "negative_mass": [
        Entry(
            negative_mass,
            {"eigenvalues": np.array([3.0, 1.0, -1.0])},
            {"eigenvalues": "array"},
            {"eigenvalues": 0.0},
        )
    ],
    "SimilarityFeatures": [
        Entry(
            features_of,
            {"X": POINTS, "n_landmarks": 5, "method": "tikhonov", "kernel": "rbf"},
            {"X": "array", "n_landmarks": "count", "method": "name", "kernel": "name"},
        ),
        Entry(
            lambda K: features_of(K, 5, kernel="precomputed"),
            {"K": K},
            {"K": "array"},
            {"K": 1.0},
        ),
        Entry(
            lambda items, function: features_of(items, 2, kernel=function),
            {"items": ["a", "bc", "def"], "function": lambda x, y: 1.0},
            {"items": "items", "function": "function"},
        ),
        Entry(
            lambda items: features_of(items, 2, kernel=Similarity.from_matrix(K)),
            {"items": [1, 5, 3]},
            {"items": "indices"},
        ),
    ],
    # Neighbours
    "nearest": [
        Entry(
            lambda sim, k, limit, cheap: nearest_of(sim, k=k, limit=limit, cheap=cheap),
            {"sim": SIM, "k": 2, "limit": 50, "cheap": POINTS},
            {"sim": "similarity", "k": "count", "limit": "count", "cheap": "array"},
        )
    ],
    "search": [
        Entry(
            lambda sim, k, limit: (
                neighbors.search(sim, [3, 4], k, limit=limit, rng=0).values
            ),
            {"sim": SIM, "k": 2, "limit": 5},
            {"sim": "similarity", "k": "count", "limit": "count"},
        )
    ],
    "pairs_above": [
        Entry(
            lambda sim, threshold: neighbors.pairs_above(sim, threshold, rng=0).values,
            {"sim": SIM, "threshold": 0.5},
            {"sim": "similarity", "threshold": "number"},
        )
    ],
    "most_similar": [
        Entry(
            lambda sim, m: neighbors.most_similar(sim, m, rng=0).values,
            {"sim": SIM, "m": 3},
            {"sim": "similarity", "m": "count"},
        )
    ],
    "SimilarityNeighbors": [
        Entry(
            lambda X: neighbor_distances(X, "rbf"),
            {"X": POINTS},
            {"X": "array"},
        ),
        Entry(
            lambda items, function: neighbor_distances(items, function),
            {"items": ["a", "bc", "def"], "function": lambda x, y: 1.0},
            {"items": "items", "function": "function"},
        ),
    ],
    # Matrices
    "load": [
        Entry(
            lambda name, n: gallery.load(name, n).matrix,
            {"name": "gaussian", "n": 20},
            {"name": "name", "n": "size"},
        )
    ],
    "companions": [
        Entry(
            lambda name, n: [
                sim.columns([0]) for sim in gallery.companions(name, n).values()
            ],
            {"name": "edit", "n": 20},
            {"name": "name", "n": "size"},
        )
    ],
    "planted_mentions": [
        Entry(
            lambda n_topics, size: planted_mentions(n_topics, size, rng=0).embeddings,
            {"n_topics": 2, "size": 5},
            {"n_topics": "size", "size": "size"},
        )
    ],
    "point_clouds": [
        Entry(
            seeded(lambda n, rng: np.hstack(list(point_clouds(n, rng=rng).values()))),
            {"n": 8},
            {"n": "size"},
        )
    ],
    "planted_records": [
        Entry(
            lambda n_entities: planted_records(n_entities, rng=0).entities,
            {"n_entities": 5},
            {"n_entities": "size"},
        )
    ],
    "gaussian_psd": [generated(gaussian_psd, n=8)],
    "uniform_psd": [generated(uniform_psd, n=8)],
    "sigmoid_kernel": [generated(sigmoid_kernel, n=8)],
    "cross_encoder_like": [generated(cross_encoder_like, n=40)],
    "swiss_roll": [generated(swiss_roll, n=8)],
    "planar_roads": [
        Entry(
            seeded(lambda n, rng: planar_roads(n, rng=rng)[0].toarray()),
            {"n": 8},
            {"n": "size"},
        )
    ],
    "bumpy_sphere": [
        Entry(
            lambda n_subdivisions: bumpy_sphere(n_subdivisions).vertices,
            {"n_subdivisions": 1},
            {"n_subdivisions": "size"},
        )
    ],
    "WordVectors": [
        Entry(
            lambda array, rows: WordVectors(("a", "b"), array, rows)["a"],
            {"array": np.ones((2, 3)), "rows": np.array([1, 0])},
            {"array": "array", "rows": "indices"},
            linear=True,
        )
    ],
    "available": [Entry(available, {"name": "words"}, {"name": "name"})],
    "find": [
        Entry(
            lambda dataset, file: find(dataset, file) and 0,
            {"dataset": "words", "file": "words.txt"},
            {"dataset": "name", "file": "name"},
        )
    ],
    "load_cortex": [
        Entry(lambda name: load_cortex(name) and 0, {"name": "x"}, {"name": "name"})
    ],
    "load_cross_encoder": [
        Entry(
            lambda name: load_cross_encoder(name) and 0,
            {"name": "x"},
            {"name": "name"},
        )
    ],
    "load_ecbplus": [
        Entry(
            lambda kind, split: load_ecbplus(kind, split) and 0,
            {"kind": "x", "split": "test"},
            {"kind": "name", "split": "name"},
        )
    ],
    "load_word_vectors": [
        Entry(
            lambda name: load_word_vectors(name) and 0, {"name": "x"}, {"name": "name"}
        )
    ],
    # Text
    **{
        metric.__name__: [
            Entry(
                metric,
                {"key": [0, 0, 1], "response": [0, 1, 1]},
                {"key": "indices", "response": "indices"},
            )
        ]
        for metric in (
            coreference.muc,
            coreference.b_cubed,
            coreference.ceaf_e,
            coreference.lea,
            coreference.conll_f1,
        )
    },
    "WordMoverDistance": [
        Entry(
            lambda x, y: wmd.WordMoverDistance(VECTORS)(x, y),
            {"x": ["a", "b"], "y": ["c"]},
            {"x": "words", "y": "words"},
        ),
        Entry(
            lambda vectors: wmd.WordMoverDistance(vectors)(["a"], ["b"]),
            {"vectors": VECTORS},
            {"vectors": "vectors"},
        ),
    ],
    "word_mover_distance": [
        Entry(
            wmd.word_mover_distance,
            {"x": ["a", "b"], "y": ["c"], "vectors": VECTORS},
            {"x": "words", "y": "words", "vectors": "vectors"},
        )
    ],
    "bags_of_words": [
        Entry(
            wmd.bags_of_words,
            {"documents": DOCUMENTS, "vectors": VECTORS},
            {"documents": "documents", "vectors": "vectors"},
        )
    ],
    "paired_word_mover_distances": [
        Entry(
            wmd.paired_word_mover_distances,
            {"X": BAGS, "Y": BAGS[::-1], "points": WORD_POINTS},
            {"X": "bags", "Y": "bags", "points": "array"},
            {"points": 1.0},
        )
    ],
    "pairwise_word_mover_distances": [
        Entry(
            wmd.pairwise_word_mover_distances,
            {"X": BAGS, "Y": BAGS, "points": WORD_POINTS},
            {"X": "bags", "Y": "bags", "points": "array"},
            {"points": 1.0},
        )
    ],
    "centroid_distances": [
        Entry(
            bounds.centroid_distances,
            {"X": BAGS, "Y": BAGS, "points": WORD_POINTS},
            {"X": "bags", "Y": "bags", "points": "array"},
            {"points": 1.0},
        )
    ],
    "relaxed_word_mover_distances": [
        Entry(
            bounds.relaxed_word_mover_distances,
            {"X": BAGS, "Y": BAGS, "points": WORD_POINTS},
            {"X": "bags", "Y": "bags", "points": "array"},
            {"points": 1.0},
        )
    ],
    "qgram_distances": [
        Entry(
            bounds.qgram_distances,
            {"xs": ["ab", "abc"], "ys": ["b", "cd"], "q": 2},
            {"xs": "words", "ys": "words", "q": "count"},
        )
    ],
    "WordMoversEmbedding": [
        Entry(
            embedding_of,
            {"documents": DOCUMENTS, "n_components": 4, "gamma": 1.0, "max_length": 3},
            {
                "documents": "documents",
                "n_components": "size",
                "gamma": "number",
                "max_length": "count",
            },
        )
    ],
    # Surfaces and graphs
    "mesh_laplacian": [
        Entry(
            mesh_laplacian,
            {"vertices": SPHERE.vertices, "faces": SPHERE.faces},
            {"vertices": "array", "faces": "array"},
        )
    ],
    "graph_laplacian": [
        Entry(
            graph_laplacian,
            {"adjacency": PATH},
            {"adjacency": "array"},
            {"adjacency": 1.0},
        )
    ],
    "neighbor_graph": [
        Entry(
            neighbor_graph,
            {"X": POINTS, "n_neighbors": 4, "perplexity": 3.0},
            {"X": "array", "n_neighbors": "count", "perplexity": "number"},
            {"X": 0.0},
        )
    ],
    "biharmonic_operator": [
        Entry(
            biharmonic_operator,
            {"stiffness": graph_laplacian(PATH).toarray(), "mass": np.ones(12)},
            {"stiffness": "array", "mass": "array"},
        )
    ],
    "interpolation": [
        Entry(
            interpolation,
            {
                "M": biharmonic_operator(graph_laplacian(PATH)).toarray(),
                "landmarks": [0, 4, 11],
                "nnz_per_row": 2,
                "by": "column",
                "solver": "auto",
            },
            {
                "M": "array",
                "landmarks": "indices",
                "nnz_per_row": "number",
                "by": "name",
                "solver": "name",
            },
            {"M": 0.0},
        )
    ],
    "biharmonic_approximation": [
        Entry(
            lambda K, P, landmarks: biharmonic_approximation(
                Similarity.from_matrix(K), P, landmarks
            ),
            {"K": K, "P": np.eye(12)[:, :3], "landmarks": [0, 1, 2]},
            {"K": "array", "P": "array", "landmarks": "indices"},
            {"K": 1.0},
        )
    ],
    "document_features": [
        Entry(
            seeded(features.document_features),
            {"D": DISTANCES, "method": method, "rank": 3, "gamma": 1.0},
            {"D": "array", "method": "name", "rank": "count", "gamma": "number"},
        )
        for method in ("tikhonov", "raw", "optimal")
    ],
    "average_linkage": [
        Entry(
            coreference.average_linkage,
            {"K": K, "threshold": 0.5},
            {"K": "array", "threshold": "number"},
            linear=True,
        )
    ],
    "refined": [
        Entry(
            seeded(refinement.refined),
            {
                "sim": Similarity.from_matrix(K),
                "cheap": Similarity.from_matrix(K),
                "n_calls": 20,
                "choose": "clusters",
                "threshold": 0.5,
            },
            {
                "sim": "similarity",
                "cheap": "similarity",
                "n_calls": "count",
                "choose": "name",
                "threshold": "number",
            },
        )
    ],
    "cosines": [
        Entry(mentions.cosines, {"embeddings": TALL[:, :2]}, {"embeddings": "array"})
    ],
    "approximations": [
        Entry(
            lambda K, share: mentions.approximations(
                K, K, share, threshold=0.5, methods=["sicur", "refined"], rng=0
            ),
            {"K": K, "share": 0.5},
            {"K": "array", "share": "number"},
            linear=True,
        )
    ],
    "without_singletons": [
        Entry(
            coreference.without_singletons,
            {"labels": [0, 1, 1]},
            {"labels": "indices"},
        )
    ],
    "PairNetwork": [
        Entry(
            NETWORK,
            {"x": TALL, "y": TALL[:3]},
            {"x": "array", "y": "array"},
            linear=True,
        )
    ],
    "train_pair_network": [
        Entry(
            lambda X, **options: pair_network.train_pair_network(
                X, np.repeat(np.arange(10), 4), np.repeat([0, 1], 20), **options
            )(TALL, TALL),
            {"X": TALL, "n_hidden": 3, "negatives": 2, "epochs": 1, "alpha": 0.1},
            {
                "X": "array",
                "n_hidden": "size",
                "negatives": "count",
                "epochs": "size",
                "alpha": "number",
            },
            linear=True,
        )
    ],
    "approximate": [
        Entry(
            seeded(features.approximate),
            {"K": K, "method": method, "rank": 4},
            {"K": "array", "method": "name", "rank": "count"},
            {"K": 1.0},
        )
        for method in ("tikhonov", "sicur_sym")
    ],
    "scaled": [
        Entry(
            features.scaled,
            {"Z": TALL, "n_train": 30},
            {"Z": "array", "n_train": "count"},
            {"Z": 0.0},
        )
    ],
    "out_of_fold_decisions": [
        Entry(
            labelled_pairs.out_of_fold_decisions,
            {
                "scores": TALL[:30, 0],
                "labels": np.arange(30) % 2.0,
                "metric": "f1",
                "n_splits": 3,
            },
            {
                "scores": "array",
                "labels": "array",
                "metric": "name",
                "n_splits": "count",
            },
            {"scores": 0.0},
        )
    ],
    "paired_bootstrap": [
        Entry(
            lambda **arguments: labelled_pairs.paired_bootstrap(
                labelled_pairs.pearson, **arguments, rng=0
            ),
            {
                "scores": TALL[:30, :3].T.copy(),
                "reference": TALL[:30, 3],
                "labels": TALL[10:, 0],
                "n_resamples": 10,
                "confidence": 0.9,
            },
            {
                "scores": "array",
                "reference": "array",
                "labels": "array",
                "n_resamples": "count",
                "confidence": "number",
            },
            {"scores": 0.0, "reference": 0.0, "labels": 0.0},
        )
    ],
    "heat_geodesics": [on_mesh(heat_geodesics)],
    "exact_geodesics": [on_mesh(exact_geodesics)],
    "merge_vertices": [
        Entry(
            merge_vertices,
            {"vertices": SPHERE.vertices, "faces": SPHERE.faces},
            {"vertices": "array", "faces": "array"},
        )
    ],
    "graph_distances": [
        Entry(
            graph_distances,
            {"adjacency": PATH, "sources": [0, 3]},
            {"adjacency": "array", "sources": "indices"},
            {"adjacency": 1.0},
        )
    ],
    "HubLabels": [
        Entry(
            lambda adjacency, sources: HubLabels(adjacency).rows(sources),
            {"adjacency": PATH, "sources": [0, 3]},
            {"adjacency": "array", "sources": "indices"},
            {"adjacency": 0.0},
        )
    ],
    # Sketches
    "sparse_sign": [sketched(sketch.sparse_sign, nnz_per_column=4)],
    "count_sketch": [sketched(sketch.count_sketch)],
    "srht": [sketched(sketch.srht)],
    "gaussian": [sketched(sketch.gaussian)],
    "Sketch": [
        Entry(
            lambda blocks: sketch.count_sketch(8, 40, rng=0).apply_blocks(blocks),
            {"blocks": [TALL[:30], TALL[30:]]},
            {"blocks": "blocks"},
            linear=True,
        )
    ],
    "TensorSRHT": [
        Entry(
            lambda m, d1, d2, X, Y: sketch.TensorSRHT(m, d1, d2, rng=0)(X, Y),
            {"m": 4, "d1": 3, "d2": 3, "X": POINTS, "Y": POINTS},
            {"m": "size", "d1": "size", "d2": "size", "X": "array", "Y": "array"},
            {"X": 1.0, "Y": 1.0},
            linear=True,
        )
    ],
    "PolynomialSketch": [
        Entry(
            lambda m, d, degree, X: sketch.PolynomialSketch(m, d, degree, rng=0)(X),
            {"m": 4, "d": 3, "degree": 2, "X": POINTS},
            {"m": "size", "d": "size", "degree": "size", "X": "array"},
            linear=True,
        )
    ],
    "hadamard_transform": [
        Entry(
            sketch.hadamard_transform,
            {"X": TALL[:4]},
            {"X": "array"},
            {"X": 1.0},
            linear=True,
        )
    ],
    # Regression
    "lstsq": [solver(regression.lstsq, {"A": -1.0, "b": 1.0})],
    "solve_gram": [solver(regression.solve_gram, {"y": 1.0})],
    "even_power": [solver(regression.even_power, {"b": 1.0}, j=1, b=np.ones((4, 1)))],
    "odd_power": [solver(regression.odd_power, {"A": 1.0, "b": 1.0}, j=1)],
    "Preconditioner": [
        Entry(
            lambda A, oversampling, sketch: (
                regression.Preconditioner.from_matrix(
                    A, oversampling=oversampling, sketch=sketch, rng=0
                ).R
            ),
            {"A": TALL, "oversampling": 4.0, "sketch": "sparse_sign"},
            {"A": "array", "oversampling": "number", "sketch": "name"},
        )
    ],
    "ExponentialFeatures": [
        Entry(
            exponential_of,
            {"X": POINTS / 4, "n_components": 20, "degree": 2},
            {"X": "array", "n_components": "size", "degree": "size"},
        )
    ],
    "AttentionKernelRegressor": [
        Entry(
            attention_of,
            {"X": POINTS / 4, "y": POINTS[:, 0], "ridge": 0.1, "rank": 5},
            {"X": "array", "y": "array", "ridge": "number", "rank": "count"},
        )
    ],
    "sketched_solve": [
        Entry(
            seeded(sketched_solve),
            {"Z": TALL, "y": TALL[:, 0], "ridge": 0.1},
            {"Z": "array", "y": "array", "ridge": "number"},
        )
    ],
}

# Names that stand in no table, and why

RECORD = "holds what a function returns; is made by it alone"
WITHOUT = "takes no argument that could be hostile"
EXCLUDED = {
    "digest": "of an item: test_store",
    "AdaptiveResult": RECORD,
    "Anchored": RECORD,
    "CoreferenceScore": RECORD,
    "Corpus": RECORD,
    "Difference": RECORD,
    "CrossEncoderData": RECORD,
    "Duplicates": RECORD,
    "ErrorEstimate": RECORD,
    "Example": RECORD,
    "Mentions": RECORD,
    "Mesh": RECORD,
    "NeighborGraph": RECORD,
    "RecallEstimate": RECORD,
    "Records": RECORD,
    "SearchResult": RECORD,
    "SimilarPairs": RECORD,
    "Solution": RECORD,
    "Spectrum": RECORD,
    "Dataset": "an entry of the registry, written by us",
    "File": "an entry of the registry, written by us",
    "MatrixLike": "a name for types",
    "content_sha256": "reads a file; what it cannot read has no hash",
    "PairScorer": "made by bundled_digit_pairs, whose tests give it other images",
    "bundled_attention_heads": WITHOUT,
    "bundled_cross_encoder": WITHOUT,
    "bundled_digit_pairs": WITHOUT,
    "bundled_docstrings": WITHOUT,
    "bundled_documents": WITHOUT,
    "bundled_words": WITHOUT,
    "fingerprint": WITHOUT,
    "load_abt_buy": WITHOUT,
    "load_bunny": WITHOUT,
    "load_early_childhood": WITHOUT,
    "load_edge_list": "reads a file; test_datasets has those that are none",
    "load_road_graph": "a name and a flag: test_datasets",
    "load_stop_words": WITHOUT,
    "load_stsb_train": WITHOUT,
    "load_words": WITHOUT,
    "load_banking77": "reads a file of ours; the vocabulary is any container",
    "load_newsgroups": "reads a file of ours; the vocabulary is any container",
    "load_ohsumed": "reads a file of ours; the vocabulary is any container",
    "load_recipes": "reads a file of ours; the vocabulary is any container",
    "load_twitter": "reads a file of ours; the vocabulary is any container",
    "SoftTokens": "of strings and their numbers: test_soft_tokens",
    "Source": "a protocol",
    "SimilarityMatrix": "abstract",
    "wmd": "a module",
    "bounds": "a module",
    "rescalings": "of a matrix and what sms_nystrom made of it",
    "symmetric_scores": "of what load_ecbplus returns",
    "clusters_of_topics": "average_linkage for each topic",
    "outcomes": "an experiment on what load_ecbplus returns: test_mentions",
}
INNER = {  # modules whose names only simlib calls, with what it has checked
    "simlib.approximation.companion": "called by anchored",
    "simlib.approximation.fit": "called by tikhonov and anchored",
    "simlib.approximation.plan": "called by the methods, and by METHODS and largest",
    "simlib.approximation.sampling_design": "called by estimate_error",
    "simlib.biharmonic.elimination_tree": "called by SelectedSolve and HubLabels",
    "simlib.biharmonic.factorization": "called by interpolation and HubLabels",
    "simlib.biharmonic.selected_solve": "called by interpolation",
    "simlib.lowrank.tall": "called by LowRank",
    "simlib._checks": "what refuses",
    "simlib.similarity.call": "called by Similarity",
    "simlib.similarity.items": "called by Similarity",
    "simlib.similarity.evaluate": "called by Similarity",
    "simlib.similarity.budget": "called by Similarity",
    "simlib.similarity.symmetry": "called by Similarity",
    "simlib.similarity.known": "called by Similarity",
    "simlib.similarity.requests": "called by Similarity",
    "simlib.neighbors.cheap": "called by nearest and its like",
    "simlib.neighbors.choice": "called by nearest and its like",
    "simlib.neighbors.clusters": "called by SimilarPairs and average_linkage",
    "study.contenders": "for the chapter and the benchmark alone",
    "study.trials": "for the chapter and the benchmark alone",
    "simlib.neighbors.exact": "called by nearest",
    "simlib.neighbors.paid": "called by nearest and its like",
    "simlib.neighbors.predict": "called by nearest and its like",
    "simlib.neighbors.rounds": "called by nearest",
    "simlib._scale": "powers of two, of what is checked",
    "study.exact": "references for tests and chapters: test_exact",
    "simlib.regression.gram": "called by lstsq and its like",
    "simlib.regression.iterations": "called by lstsq and its like",
    "simlib.regression.kernel": "called by AttentionKernelRegressor",
    "study.as_printed": "checks as lstsq does; Algorithm 3 has its own cases",
    "simlib.regression.rows": "called by lstsq and its like",
    "simlib.regression.systems": "called by lstsq and its like",
    "simlib.lowrank.saved": "the folder of LowRank: test_saved",
    "simlib.similarity.identity": "called by Similarity",
    "simlib.similarity.store": "called by Similarity",
    "simlib.text.bags": "called by the distances of documents",
    "study.sentences": "experiments on data of ours; what it calls checks",
}
INNER_NAMES = {
    "OfItems": "what SimilarityFeatures and SimilarityNeighbors have in common",
    "ColumnScaling": "called by lstsq and its like",
    "condition_number": "called by Preconditioner",
    "rounding_errors": "called by lstsq and its like",
    "as_square": "called by biharmonic_operator and interpolation",
    "as_symmetric": "called by biharmonic_operator and interpolation",
    "check_mesh": "called by mesh_laplacian and the geodesics",
    "sample_size": "called by draw and the plans",
    "accuracy": "called by paired_bootstrap",
    "f1": "called by paired_bootstrap",
    "pearson": "called by paired_bootstrap",
    "spearman": "called by paired_bootstrap",
} | {
    name: "what METHODS prices and the method reads"
    for name in dir(methods)
    if name.endswith("_plan")
}


def exported():
    """Yield every name in an ``__all__``, with its module."""
    for module in [
        *pkgutil.walk_packages(simlib.__path__, "simlib."),
        *pkgutil.walk_packages(study.__path__, "study."),
    ]:
        if module.name.startswith("press") or "__main__" in module.name:
            continue
        yield from (
            (module.name, name)
            for name in getattr(importlib.import_module(module.name), "__all__", ())
        )


def test_every_public_name_is_in_the_table_or_says_why_not():
    missing, modules = set(), {}
    for module, name in exported():
        modules.setdefault(name, set()).add(module)
        value = getattr(importlib.import_module(module), name)
        constant = not callable(value) and not hasattr(value, "__all__")
        error = isinstance(value, type) and issubclass(value, BaseException)
        plan = name.endswith("_plan")
        if not (constant or error or plan or module in INNER):
            missing.add(name)
    missing -= set(TABLE) | set(EXCLUDED) | set(INNER_NAMES)
    assert not missing
    gone = (set(TABLE) | set(EXCLUDED)) - set(modules)
    assert not gone


# The attacks


def attacks(kind, good):
    """Yield (what it is, the value) for an argument of a kind."""
    if kind == "array":
        yield from arrays(good)
    elif kind == "similarity":
        yield from NOTHING.items()
        yield "an array", np.eye(12)
        yield "an answer", ANSWER
        yield "of one item", Similarity.from_matrix([[2.0]])
        yield "of other items", Similarity.from_matrix(np.eye(3))
        yield "of zeros", Similarity.from_matrix(np.zeros((12, 12)))
        yield "without a limit left", Similarity(range(12), max, limit=0)
        yield "of NaN", Similarity(range(12), lambda i, j: np.nan)
        yield (
            "not symmetric",
            Similarity.from_matrix(np.triu(np.ones((12, 12))), symmetric=False),
        )
        yield "negative definite", Similarity.from_matrix(-psd(12))
        yield "of single precision", Similarity.from_matrix(K.astype(np.float32))
    elif kind == "items":
        yield from NOTHING.items()
        yield "empty", []
        yield "one item", ["a"]
        yield "a set", {"a", "b"}
        yield "a number", 3
        yield "an array without axes", np.array(3.0)
        yield "no rows", np.zeros((0, 3))
        yield "an iterator", iter("abc")
    elif kind == "function":
        yield from NOTHING.items()
        for name, value in RETURNED.items():
            yield f"returns {name}", lambda x, y, value=value: value
        yield "takes one item", lambda x: 1.0
        yield "raises", fails
        yield "is not symmetric", lambda x, y: float(x < y)
    elif kind == "words":
        yield from NOTHING.items()
        yield "empty", []
        yield "an empty word", [""]
        yield "an unknown word", ["zebra"]
        yield "numbers", [1, 2]
        yield "a number", 3
    elif kind == "documents":
        yield from NOTHING.items()
        yield "empty", []
        yield "an empty document", [["a"], []]
        yield "a string for a document", ["ab", "c"]
        yield "numbers", [[1, 2]]
        yield "None among them", [["a"], None]
    elif kind == "bags":
        yield from NOTHING.items()
        yield "dense", good.toarray()
        yield "negative", -good
        yield "zero", 0 * good
        yield "not normalised", 2 * good
        yield "NaN", good * np.nan
        yield "of other words", good[:, :-1]
        yield "no documents", good[:0]
        yield "complex", good * 1j
        yield "of integers", good.astype(int)
        yield "half precision", good.toarray().astype(np.float16)
    elif kind == "vectors":
        yield from NOTHING.items()
        yield "empty", {}
        yield "a list", [1, 2]
        for name, array in arrays(np.ones(3)):
            yield f"of {name}", dict.fromkeys("abcdefgh", array)
        yield "of different lengths", {"a": np.ones(2)} | {"b": np.ones(3)}
    elif kind == "blocks":
        yield from NOTHING.items()
        yield "empty", []
        yield "too few rows", [TALL[:3]]
        yield "too many rows", [TALL, TALL]
        yield "of different widths", [TALL[:30], TALL[30:, :2]]
        yield "NaN", [np.full_like(TALL, np.nan)]
        yield "complex", [TALL * 1j]
    else:
        kinds = {
            "count": COUNTS,
            "size": SIZES,
            "number": NUMBERS,
            "name": NAMES,
            "indices": INDICES,
        }
        yield from kinds[kind].items()


RETURNED = {
    "NaN": np.nan,
    "infinity": np.inf,
    "None": None,
    "a string": "1",
    "a complex number": 1j,
    "an array": np.ones(2),
    "an empty array": np.zeros(0),
    "an integer": 1,
    "a bool": True,
    "half precision": np.float16(1),
    "an array without axes": np.array(1.0),
    "a negative number": -1.0,
    "a huge number": 1e300,
    "a tiny number": 1e-300,
}


def fails(x, y):
    raise OSError("no route to host")


CASES = [
    pytest.param(name, k, argument, id=f"{name}-{k}-{argument}")
    for name, entries in TABLE.items()
    for k, entry in enumerate(entries)
    for argument in entry.kinds
    if argument in entry.good
]


def numbers(answer):
    """Return all numbers in an answer as one array of floats."""
    if answer is None:
        return np.zeros(0)
    if isinstance(answer, LowRank):
        return answer.toarray().astype(float).ravel()
    if isinstance(answer, LinearOperator):
        return numbers(answer @ np.eye(answer.shape[1]))
    if scipy.sparse.issparse(answer):
        return answer.toarray().astype(float).ravel()
    if isinstance(answer, Mapping):
        answer = tuple(answer.values())
    if isinstance(answer, tuple | list):
        parts = [numbers(part) for part in answer if not isinstance(part, str)]
        return np.concatenate(parts) if parts else np.zeros(0)
    answer = np.asarray(answer)
    if np.iscomplexobj(answer):
        return np.concatenate([numbers(answer.real), numbers(answer.imag)])
    return answer.astype(float).ravel()


UNBOUNDED = ("NaN", "infinity", "huge", "an object among numbers")
UNDERSTOOD = re.compile(  # Python, NumPy and SciPy on what is of another kind
    "could not convert string to float"
    "|argument must be a string or a real number"
    "|setting an array element with a sequence"
    "|not supported between instances of"
    "|cannot be interpreted as an integer"
    "|data type '.*' not understood|Cannot interpret '.*' as a data type"
    "|object is not iterable|has no len|Unable to allocate"
    "|dimension mismatch|expected 1-d or 2-d array|Scalar operands are not allowed"
    "|array must not contain infs or NaNs"
)


def on_purpose(error):
    """Tell whether an error was raised by simlib, or by what checks its input."""
    if UNDERSTOOD.search(str(error)):
        return True
    if isinstance(error, MemoryError):  # what was asked for is that large
        return True
    frame = error.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    file = frame.tb_frame.f_code.co_filename
    if any(part in file for part in OURS):
        line = linecache.getline(file, frame.tb_lineno)
        return "raise" in line and len(str(error)) > 15
    return False


@pytest.mark.parametrize(("name", "k", "argument"), CASES)
@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")  # as documented
@pytest.mark.filterwarnings("ignore:The approximation is symmetric")  # as documented
def test_a_right_answer_or_an_error_on_purpose(name, k, argument):
    entry = TABLE[name][k]
    bad = []
    for what, value in attacks(entry.kinds[argument], entry.good[argument]):
        try:
            answer = numbers(entry.call(**entry.good | {argument: value}))
        except ERRORS as error:
            if not on_purpose(error):
                bad.append(f"{what}: {type(error).__name__}: {error}")
            continue
        except RuntimeWarning as error:
            if not (entry.linear and what in UNBOUNDED):
                bad.append(f"{what}: {type(error).__name__}: {error}")
            continue
        except Exception as error:
            bad.append(f"{what}: {type(error).__name__}: {error}")
            continue
        if not (np.isfinite(answer).all() or (entry.linear and what in UNBOUNDED)):
            bad.append(f"{what}: the answer is not finite")
        degree = entry.degree.get(argument)
        if what in ("huge", "tiny") and degree is not None:
            bad += differs(entry, argument, value, what, degree, answer)
    assert not bad, "\n" + "\n".join(bad)


def differs(entry, argument, value, what, degree, answer):
    """Say so if an answer in another unit is another answer."""
    unit = {"huge": 1e300, "tiny": 1e-300}[what]
    expected = numbers(entry.call(**entry.good))
    scale = np.abs(expected).max(initial=0) or 1.0
    with np.errstate(all="ignore"):
        found = answer / unit if degree == 1 else answer
        found = answer * unit if degree == -1 else found
    if degree not in (-1, 0, 1):
        return
    if found.shape != expected.shape or not np.allclose(
        found, expected, atol=1e-6 * scale
    ):
        yield f"{what}: another answer"


@pytest.mark.parametrize(
    ("name", "k", "argument"),
    [
        case
        for case in CASES
        if TABLE[case.values[0]][case.values[1]].kinds[case.values[2]] == "array"
    ],
)
def test_the_same_numbers_in_another_form(name, k, argument):
    entry = TABLE[name][k]
    bad = []

    def outcome(value):
        try:
            return numbers(entry.call(**entry.good | {argument: value}))
        except ERRORS as error:
            return error

    for what, value, same in equivalents(entry.good[argument]):
        expected = outcome(same)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = outcome(value)
        if isinstance(found, Exception):
            if not (isinstance(expected, Exception) or on_purpose(found)):
                bad.append(f"{what}: {type(found).__name__}: {found}")
        elif isinstance(expected, Exception):
            bad.append(f"{what}: an answer, where float64 gives {expected}")
        elif not np.allclose(
            found, expected, atol=1e-6 * (np.abs(expected).max(initial=0) or 1)
        ):
            bad.append(f"{what}: another answer")
    assert not bad, "\n" + "\n".join(bad)
