"""Every public function, and what nobody should give it, one argument at a time.

Either the answer is right or an error says on purpose, in simlib or in what it lets
check its input, what is wrong. Right is the answer for the same numbers in another form
(integers, bools, half precision, read-only memory, a list), and the answer in another
unit where the unit was changed; of all others what can be asked is that it is finite.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import simlib
from simlib import LowRank, Similarity, biharmonic, landmarks, neighbors, regression
from simlib.approximation import negative_mass
from simlib.approximation.overlay import overlay
from simlib.datasets import WordVectors, bumpy_sphere, generated, planar_roads
from simlib.datasets import point_clouds as clouds
from simlib.regression import sketch
from simlib.similarity.views import check_similarity
from simlib.text import bounds, wmd
from support.hostile import (
    ERRORS,
    TALL,
    UNBOUNDED,
    K,
    attacks,
    equivalents,
    masked,
    numbers,
    on_purpose,
)
from support.public import look_up, public_names

# The table

SIZES = "n m d d1 d2 j degree n_components n_subdivisions"
SIZES = set(SIZES.split())  # which memory is made for at once


def kind_of(name, value):
    """Tell by what attacks to replace an argument, by the good one."""
    if isinstance(value, Similarity):
        return "similarity"
    if isinstance(value, np.ndarray):
        return "array"
    if isinstance(value, dict):
        return "vectors"
    if scipy.sparse.issparse(value):
        return "bags"
    if isinstance(value, str | type):
        return "name"
    if callable(value):
        return "function"
    if isinstance(value, list):
        kinds = {int: "indices", list: "documents", np.ndarray: "blocks"}
        return "items" if name == "items" else kinds.get(type(value[0]), "words")
    if isinstance(value, float):
        return "number"
    return "size" if name in SIZES else "count"


@dataclass
class Entry:
    """How to call a function, and good values of the arguments, by name."""

    call: Callable[..., Any]
    good: dict[str, Any]
    degree: dict[str, float] = field(default_factory=dict)  # of the answer, in arrays
    linear: bool = False  # a product, by which NaN stays NaN


RNG = np.random.default_rng(0)
POINTS = RNG.standard_normal((12, 3))
SPHERE = bumpy_sphere(1)
MESH = {"vertices": SPHERE.vertices, "faces": SPHERE.faces}
ON_MESH = MESH | {"sources": [0, 5]}
SIM = Similarity.from_matrix(K)
WIDE = K[:, :7].copy()
PATH = np.diag(np.ones(11), 1) + np.diag(np.ones(11), -1)
OPERATOR = biharmonic.biharmonic_operator(biharmonic.graph_laplacian(PATH)).toarray()
VECTORS = {letter: np.array([k, k % 3, 1.0]) for k, letter in enumerate("abcdefgh")}
DOCUMENTS = [["a", "b"], ["c"], ["d", "e", "a"], ["b", "b", "h"]]
BAGS = wmd.bags_of_words(DOCUMENTS, WordVectors(tuple("abcdefgh"), np.eye(8)[:, :3]))
OF_BAGS = {"X": BAGS, "Y": BAGS, "points": RNG.standard_normal((8, 3))}
ITEMS = {"items": ["a", "bc", "def"], "function": lambda x, y: 1.0}
ANSWER = simlib.tikhonov(SIM, 4, rng=0)


def of_matrix(function, K, **options):
    """Call a method on a matrix that is read through a Similarity."""
    return function(Similarity.from_matrix(K), rng=0, **options)


def of_sim(function, *arguments, **options):
    """Return an entry for what does not take every similarity."""
    call = partial(function, **options)
    return Entry(lambda sim: call(sim, *arguments), {"sim": Similarity.from_matrix(K)})


def seeded(function):
    return lambda **arguments: function(**arguments, rng=0)


def method(name, more=(), *, two=False, **options):
    """Return the entries of a method: on a matrix, and on what is no similarity.

    `two`: and on a matrix between two collections.
    """
    function = partial(getattr(simlib, name), **options)
    good = {"K": K, "n_landmarks": 4} | dict(more)
    given = {"sim": Similarity.from_matrix(K), "landmarks": [1, 5, 3]}
    entries = [
        Entry(partial(of_matrix, function), good, {"K": 1.0}),
        Entry(partial(function, rng=0), given),
    ]
    if two:
        entries.append(Entry(entries[0].call, good | {"K": WIDE}, {"K": 1.0}))
        pair = {"rows": [1, 5, 3], "columns": [2, 0]}
        entries.append(Entry(partial(of_lines, function), pair))
    return entries


def of_lines(function, rows, columns):
    """Call a method with landmarks of two collections."""
    return function(Similarity.from_matrix(WIDE), landmarks=(rows, columns), rng=0)


def fitted(model, X, *y):
    """Fit where a warning says that a number is clipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, *y)


def features_of(X, n_landmarks, **options):
    model = simlib.SimilarityFeatures(
        n_landmarks=n_landmarks, random_state=0, **options
    )
    Z = fitted(model, X).transform(X)
    return (Z * model.signs_) @ Z.T


def neighbor_distances(X, kernel):
    model = neighbors.SimilarityNeighbors(kernel, 2, random_state=0)
    return fitted(model, X).kneighbors()[0]


def attention_of(X, y, **options):
    model = simlib.AttentionKernelRegressor(random_state=0, **options)
    return fitted(model, X, y).predict(X)


def exponential_of(X, n_components, degree):
    model = regression.ExponentialFeatures(
        n_components, kind="taylor", degree=degree, random_state=0
    )
    return model.fit(X).transform(X)


def sketched(function, **options):
    return Entry(
        lambda m, n, A, **others: function(m, n, rng=0, **others) @ A,
        {"m": 8, "n": 40, "A": TALL} | options,
        {"A": 1.0},
        linear=True,
    )


def solver(function, degree, **options):
    good = {"A": TALL, "b": TALL[:, :1] + 0.1}
    if function is regression.solve_gram:
        good = {"A": TALL, "y": TALL.T @ np.ones(40)}
    return Entry(
        lambda **arguments: function(**arguments, rng=0).x,
        good | {"tol": 1e-12, "method": "auto"} | options,
        degree,
    )


THE_QUESTION_AND_THE_ANSWER = {
    "Similarity": [
        Entry(
            lambda items, function, **options: Similarity(
                items, function, **options
            ).columns([0]),
            ITEMS | {"dtype": np.float64, "limit": 100.0, "batch_size": 3},
        ),
        Entry(
            lambda diagonal, indices: Similarity(
                range(12), lambda i, j: K[i, j], diagonal=diagonal
            ).block(indices, indices),
            {"diagonal": np.diag(K), "indices": [1, 2]},
        ),
        Entry(lambda K: Similarity.from_matrix(K).columns([0]), {"K": K}, {"K": 1.0}),
        Entry(
            lambda items, columns: Similarity(
                items, lambda x, y: float(len(str(x)) + len(str(y))), columns=columns
            ).columns([0]),
            {"items": ["a", "bc", "def"], "columns": ["uv", "w"]},
        ),
        Entry(
            lambda rows, columns: [
                Similarity.from_matrix(WIDE).block(rows, columns),
                Similarity.from_matrix(WIDE).between([3, 4], columns),
            ],
            {"rows": [1, 2], "columns": [0, 6]},
        ),
    ],
    "check_similarity": of_sim(lambda sim: check_similarity(sim).columns([0])),
    "LowRank": [
        Entry(
            LowRank,
            {"left": POINTS, "core": np.diag([1.0, -2.0, 0.5])},
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
        ),
        Entry(
            lambda ridge, k: (ANSWER.solve(np.ones(12), ridge), ANSWER.eigh(k)),
            {"ridge": 0.5, "k": 2},
        ),
    ],
    "uniform": Entry(seeded(landmarks.uniform), {"n": 12, "n_landmarks": 3}),
    "draw": [
        Entry(seeded(landmarks.draw), {"n": 12, "n_landmarks": 3, "oversampling": 2.0}),
        Entry(
            lambda given: landmarks.draw(12, None, landmarks=given, rng=0),
            {"given": [1, 5]},
        ),
    ],
    "pivoted_qr": Entry(
        landmarks.pivoted_qr, {"block": K, "n_landmarks": 3}, {"block": 0.0}
    ),
    "adaptive": Entry(
        seeded(landmarks.adaptive), {"block": K, "n_landmarks": 3}, {"block": 0.0}
    ),
}
METHODS = {
    "nystrom": method("nystrom") + method("nystrom", rcond="cv"),
    "sms_nystrom": method("sms_nystrom", {"oversampling": 2.0}),
    "skeleton": method("skeleton", two=True),
    "sicur": method("sicur", {"oversampling": 2.0}, two=True),
    "stacur": method("stacur", {"oversampling": 1.0}, two=True),
    "rpcholesky": method("rpcholesky"),
    "tikhonov": method("tikhonov", {"oversampling": 2.0}, two=True),
    "anchored": [
        Entry(
            partial(of_matrix, simlib.anchored),
            {"K": K, "cheap": POINTS, "n_landmarks": 4},
            {"K": 1.0},
        ),
        Entry(
            partial(of_matrix, simlib.anchored, K, n_landmarks=4),
            {"cheap": Similarity.from_matrix(K + 0.1), "base_rank": 3},
        ),
        Entry(
            lambda Z, W, **given: of_matrix(simlib.anchored, **given, cheap=(Z, W)),
            {"K": WIDE, "n_landmarks": 4, "Z": POINTS, "W": POINTS[:7]},
            {"K": 1.0},
        ),
    ],
    "optimal": [
        of_sim(simlib.optimal, 2),
        *(
            Entry(
                lambda K, rank: simlib.optimal(Similarity.from_matrix(K), rank),
                {"K": matrix, "rank": 4},
                {"K": 1.0},
            )
            for matrix in (K, WIDE)
        ),
    ],
    "overlay": Entry(
        lambda sim, sample: overlay(sim, ANSWER, sample),
        {"sim": Similarity.from_matrix(K), "sample": [0, 1, 2]},
    ),
    "largest": Entry(
        simlib.largest,
        {"method": "tikhonov", "n": 100, "calls": 2000.0, "oversampling": 2.0},
    ),
    "approximate_to": [
        Entry(
            lambda **given: of_matrix(simlib.approximate_to, **given).approximation,
            {"K": K, "target_error": 0.5, "confidence": 0.9, "method": "tikhonov"},
            {"K": 1.0},
        ),
        of_sim(simlib.approximate_to, 0.5, rng=0),
    ],
    "relative_error": Entry(lambda K: simlib.relative_error(K, ANSWER), {"K": K}),
    "estimate_error": [
        of_sim(simlib.estimate_error, ANSWER, rng=0),
        *(
            Entry(
                partial(of_matrix, simlib.estimate_error, approximation=answer),
                {"K": matrix, "n_pairs": 40, "confidence": 0.9},
            )
            for matrix, answer in (
                (K, ANSWER),
                (WIDE, of_matrix(simlib.sicur, WIDE, n_landmarks=3)),
            )
        ),
    ],
    "estimate_spectrum": [
        Entry(
            lambda **given: of_matrix(simlib.estimate_spectrum, **given).eigenvalues,
            {"K": K, "n_sample": 6},
            {"K": 1.0},
        ),
        of_sim(simlib.estimate_spectrum, 5, rng=0),
    ],
    "negative_mass": Entry(
        negative_mass, {"eigenvalues": np.array([3.0, 1.0, -1.0])}, {"eigenvalues": 0.0}
    ),
    "SimilarityFeatures": [
        Entry(
            features_of,
            {"X": POINTS, "n_landmarks": 5, "method": "tikhonov", "kernel": "rbf"},
        ),
        Entry(lambda K: features_of(K, 5, kernel="precomputed"), {"K": K}, {"K": 1.0}),
        Entry(lambda items, function: features_of(items, 2, kernel=function), ITEMS),
        Entry(
            lambda numbers: features_of(numbers, 2, kernel=Similarity.from_matrix(K)),
            {"numbers": [1, 5, 3]},
        ),
    ],
}
NEIGHBOURS = {
    "nearest": [
        Entry(
            lambda **given: of_matrix(neighbors.nearest, **given).values,
            {"K": WIDE, "k": 2, "limit": 50.0, "check": 1},
            {"K": 1.0},
        ),
        Entry(
            lambda Z, W: (
                of_matrix(neighbors.nearest, WIDE, k=2, limit=40, cheap=(Z, W)).values
            ),
            {"Z": POINTS, "W": POINTS[:7]},
        ),
        Entry(
            lambda **given: neighbors.nearest(**given, rng=0).values,
            {"sim": SIM, "k": 2, "limit": 50, "cheap": POINTS},
        ),
    ],
    "search": Entry(
        lambda sim, k, limit: (
            neighbors.search(sim, [3, 4], k, limit=limit, rng=0).values
        ),
        {"sim": SIM, "k": 2, "limit": 5},
    ),
    "pairs_above": Entry(
        lambda **given: neighbors.pairs_above(**given, rng=0).values,
        {"sim": SIM, "threshold": 0.5},
    ),
    "most_similar": Entry(
        lambda **given: neighbors.most_similar(**given, rng=0).values,
        {"sim": SIM, "m": 3},
    ),
    "SimilarityNeighbors": [
        Entry(lambda X: neighbor_distances(X, "rbf"), {"X": POINTS}),
        Entry(lambda items, function: neighbor_distances(items, function), ITEMS),
    ],
}
DATA = {
    name: Entry(seeded(getattr(generated, name)), {"n": n})
    for name, n in [
        ("gaussian_psd", 8),
        ("uniform_psd", 8),
        ("sigmoid_kernel", 8),
        ("cross_encoder_like", 40),
        ("swiss_roll", 8),
    ]
} | {
    "point_clouds": Entry(lambda n: list(clouds(n, rng=0).values()), {"n": 8}),
    "planar_roads": Entry(lambda n: planar_roads(n, rng=0)[0].toarray(), {"n": 8}),
    "bumpy_sphere": Entry(
        lambda n_subdivisions: bumpy_sphere(n_subdivisions).vertices,
        {"n_subdivisions": 1},
    ),
    "WordVectors": Entry(
        lambda array, rows: WordVectors(("a", "b"), array, rows)["a"],
        {"array": np.ones((2, 3)), "rows": [1, 0]},
        linear=True,
    ),
}
TEXT = {
    "WordMoverDistance": [
        Entry(
            lambda x, y: wmd.WordMoverDistance(VECTORS)(x, y),
            {"x": ["a", "b"], "y": ["c"]},
        ),
        Entry(
            lambda vectors: wmd.WordMoverDistance(vectors)(["a"], ["b"]),
            {"vectors": VECTORS},
        ),
    ],
    "word_mover_distance": Entry(
        wmd.word_mover_distance, {"x": ["a", "b"], "y": ["c"], "vectors": VECTORS}
    ),
    "bags_of_words": Entry(
        wmd.bags_of_words, {"documents": DOCUMENTS, "vectors": VECTORS}
    ),
    "paired_word_mover_distances": Entry(
        wmd.paired_word_mover_distances, OF_BAGS, {"points": 1.0}
    ),
    "pairwise_word_mover_distances": Entry(
        wmd.pairwise_word_mover_distances, OF_BAGS, {"points": 1.0}
    ),
    "centroid_distances": Entry(bounds.centroid_distances, OF_BAGS, {"points": 1.0}),
    "relaxed_word_mover_distances": Entry(
        bounds.relaxed_word_mover_distances, OF_BAGS, {"points": 1.0}
    ),
    "qgram_distances": Entry(
        bounds.qgram_distances, {"xs": ["ab", "abc"], "ys": ["b", "cd"], "q": 2}
    ),
}
SURFACES_AND_GRAPHS = {
    "mesh_laplacian": Entry(biharmonic.mesh_laplacian, MESH),
    "merge_vertices": Entry(biharmonic.merge_vertices, MESH),
    "heat_geodesics": Entry(biharmonic.heat_geodesics, ON_MESH, {"vertices": 1.0}),
    "exact_geodesics": Entry(biharmonic.exact_geodesics, ON_MESH, {"vertices": 1.0}),
    "graph_laplacian": Entry(
        biharmonic.graph_laplacian, {"adjacency": PATH}, {"adjacency": 1.0}
    ),
    "neighbor_graph": Entry(
        biharmonic.neighbor_graph,
        {"X": POINTS, "n_neighbors": 4, "perplexity": 3.0},
        {"X": 0.0},
    ),
    "biharmonic_operator": Entry(
        biharmonic.biharmonic_operator,
        {"stiffness": biharmonic.graph_laplacian(PATH).toarray(), "mass": np.ones(12)},
    ),
    "interpolation": Entry(
        biharmonic.interpolation,
        {"M": OPERATOR, "landmarks": [0, 4, 11], "by": "column", "solver": "auto"}
        | {"nnz_per_row": 2},
        {"M": 0.0},
    ),
    "biharmonic_approximation": Entry(
        lambda K, P, landmarks: biharmonic.biharmonic_approximation(
            Similarity.from_matrix(K), P, landmarks
        ),
        {"K": K, "P": np.eye(12)[:, :3], "landmarks": [0, 1, 2]},
        {"K": 1.0},
    ),
    "graph_distances": Entry(
        biharmonic.graph_distances,
        {"adjacency": PATH, "sources": [0, 3]},
        {"adjacency": 1.0},
    ),
    "HubLabels": Entry(
        lambda adjacency, sources: biharmonic.HubLabels(adjacency).rows(sources),
        {"adjacency": PATH, "sources": [0, 3]},
        {"adjacency": 0.0},
    ),
}
SKETCHES_AND_REGRESSION = {
    "sparse_sign": sketched(sketch.sparse_sign, nnz_per_column=4),
    "count_sketch": sketched(sketch.count_sketch),
    "srht": sketched(sketch.srht),
    "gaussian": sketched(sketch.gaussian),
    "Sketch": Entry(
        lambda blocks: sketch.count_sketch(8, 40, rng=0).apply_blocks(blocks),
        {"blocks": [TALL[:30], TALL[30:]]},
        linear=True,
    ),
    "TensorSRHT": Entry(
        lambda m, d1, d2, X, Y: sketch.TensorSRHT(m, d1, d2, rng=0)(X, Y),
        {"m": 4, "d1": 3, "d2": 3, "X": POINTS, "Y": POINTS},
        {"X": 1.0, "Y": 1.0},
        linear=True,
    ),
    "PolynomialSketch": Entry(
        lambda m, d, degree, X: sketch.PolynomialSketch(m, d, degree, rng=0)(X),
        {"m": 4, "d": 3, "degree": 2, "X": POINTS},
        linear=True,
    ),
    "hadamard_transform": Entry(
        sketch.hadamard_transform, {"X": TALL[:4]}, {"X": 1.0}, linear=True
    ),
    "lstsq": solver(regression.lstsq, {"A": -1.0, "b": 1.0}),
    "solve_gram": solver(regression.solve_gram, {"y": 1.0}),
    "even_power": solver(regression.even_power, {"b": 1.0}, j=1, b=np.ones((4, 1))),
    "odd_power": solver(regression.odd_power, {"A": 1.0, "b": 1.0}, j=1),
    "Preconditioner": Entry(
        lambda **given: regression.Preconditioner.from_matrix(**given, rng=0).R,
        {"A": TALL, "oversampling": 4.0, "sketch": "sparse_sign"},
    ),
    "ExponentialFeatures": Entry(
        exponential_of, {"X": POINTS / 4, "n_components": 20, "degree": 2}
    ),
    "AttentionKernelRegressor": Entry(
        attention_of, {"X": POINTS / 4, "y": POINTS[:, 0], "ridge": 0.1, "rank": 5}
    ),
}
TABLE: dict[str, Entry | list[Entry]] = (
    THE_QUESTION_AND_THE_ANSWER | METHODS | NEIGHBOURS | DATA | TEXT
)
TABLE |= SURFACES_AND_GRAPHS | SKETCHES_AND_REGRESSION

# Public names that stand in no table: what a function returns and alone makes, and
RETURNED = "AdaptiveResult Anchored ErrorEstimate Mesh NeighborGraph RecallEstimate"
RETURNED += " SearchResult SimilarPairs Solution Spectrum"
EXCLUDED = {
    "Source": "a protocol",
    "SimilarityMatrix": "abstract",
    "digest": "of an item: test_store",
    "sample_size": "called by draw and the plans",
} | dict.fromkeys(RETURNED.split(), "made by a function")


def test_every_public_name_is_in_the_table_or_says_why_not():
    names = set()
    for path in public_names():
        value = look_up(path)
        error = isinstance(value, type) and issubclass(value, BaseException)
        nothing_to_give = path.rpartition(".")[2].startswith("bundled_")
        if callable(value) and not (error or nothing_to_give):
            names.add(path.rpartition(".")[2])
    missing = sorted(names - set(TABLE) - set(EXCLUDED))
    assert not missing, f"no row in {__file__}: {missing}"
    assert not set(EXCLUDED) - names


# The attacks

CASES = [
    pytest.param(entry, argument, id=f"{name}-{k}-{argument}")
    for name, entries in TABLE.items()
    for k, entry in enumerate(entries if isinstance(entries, list) else [entries])
    for argument in entry.good
]


def of_kinds(*kinds):
    """Return the cases in which the argument is of one of these kinds."""
    return [
        case
        for case in CASES
        if kind_of(case.values[1], case.values[0].good[case.values[1]]) in kinds
    ]


OF_ARRAYS = of_kinds("array")
OF_NUMBERS = of_kinds("array", "indices", "vectors", "bags", "blocks")
OF_SIZES = of_kinds("size", "count")


@pytest.mark.parametrize(("entry", "argument"), CASES)
@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")  # as documented
@pytest.mark.filterwarnings("ignore:The approximation is symmetric")  # as documented
def test_a_right_answer_or_an_error_on_purpose(entry, argument):
    good = entry.good[argument]
    wrong = {}
    for what, value in attacks(kind_of(argument, good), good).items():
        unbounded = entry.linear and what in UNBOUNDED
        try:
            answer = numbers(entry.call(**entry.good | {argument: value}))
        except Exception as error:
            meant = isinstance(error, ERRORS) and on_purpose(error)
            if not meant and not (unbounded and isinstance(error, RuntimeWarning)):
                wrong[what] = repr(error)
            continue
        if not (np.isfinite(answer).all() or unbounded):
            wrong[what] = "the answer is not finite"
        elif what in ("huge", "tiny") and argument in entry.degree:
            unit = {"huge": 1e300, "tiny": 1e-300}[what]
            if not is_in_unit(answer, entry, unit ** entry.degree[argument]):
                wrong[what] = "another answer"
    assert not wrong


def is_in_unit(answer, entry, unit):
    """Tell whether an answer is the good one in another unit."""
    expected = numbers(entry.call(**entry.good))
    with np.errstate(all="ignore"):
        return is_close(answer / unit, expected)


def is_close(found, expected):
    scale = np.abs(expected).max(initial=0) or 1.0
    return found.shape == expected.shape and np.allclose(
        found, expected, atol=1e-6 * scale
    )


@pytest.mark.parametrize(("entry", "argument"), OF_NUMBERS)
def test_nothing_is_read_under_a_mask(entry, argument):
    with pytest.raises(ERRORS, match=r"masked|holds nan|holds NaN"):
        entry.call(**entry.good | {argument: masked(entry.good[argument])})


@pytest.mark.parametrize(("entry", "argument"), OF_SIZES)
def test_a_whole_float_is_a_whole_number(entry, argument):
    whole = {argument: float(entry.good[argument])}
    np.testing.assert_array_equal(
        numbers(entry.call(**entry.good | whole)), numbers(entry.call(**entry.good))
    )


@pytest.mark.parametrize(("entry", "argument"), OF_ARRAYS)
def test_the_same_numbers_in_another_form(entry, argument):
    def outcome(value):
        try:
            return numbers(entry.call(**entry.good | {argument: value}))
        except ERRORS as error:
            return error

    wrong = {}
    for what, value, same in equivalents(entry.good[argument]):
        expected = outcome(same)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = outcome(value)
        if isinstance(found, Exception):
            if not (isinstance(expected, Exception) or on_purpose(found)):
                wrong[what] = repr(found)
        elif isinstance(expected, Exception):
            wrong[what] = f"an answer, where float64 gives {expected}"
        elif not is_close(found, expected):
            wrong[what] = "another answer"
    assert not wrong
