"""What a public object hands out is a copy or read-only."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from simlib import METHODS, LowRank, Similarity, SimilarityFeatures, anchored, lstsq
from simlib.neighbors import SimilarityNeighbors, nearest, pairs_above, search
from simlib.regression import Preconditioner
from simlib.regression.sketch import PolynomialSketch
from study import gallery
from study.datasets import bundled_cross_encoder

X = np.random.default_rng(0).standard_normal((60, 2))
SOME, EVERY = np.array([4, 1, 1]), np.arange(60)


def kernel(xs, ys):
    return np.exp(-2 * cdist(xs, ys, "sqeuclidean"))


def similarity(**options):
    return Similarity(X, cdist, batch="block", **options)


def asymmetric():
    return Similarity(X, kernel, batch="block", symmetric=False)


def arrays(thing, seen=None):
    """Yield the arrays in a thing, in its attributes and in theirs."""
    seen = {} if seen is None else seen
    if id(thing) in seen or isinstance(thing, type):
        return
    seen[id(thing)] = thing
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, list | tuple):
        for part in thing:
            yield from arrays(part, seen)
    elif isinstance(thing, dict):
        yield from arrays(list(thing.values()), seen)
    else:
        yield from arrays(getattr(thing, "__dict__", {}), seen)


def demand_own(thing, *answers):
    mine = list(arrays(thing))
    for answer in arrays(answers):
        if answer.flags.writeable:
            assert not any(np.shares_memory(answer, part) for part in mine)


@pytest.mark.parametrize(
    "sim",
    [
        similarity(),
        similarity(diagonal=0),
        similarity().map(np.asarray),
        asymmetric(),
        asymmetric().symmetrized(),
        asymmetric().map(np.asarray).symmetrized(),
    ],
    ids=repr,
)
def test_similarities(sim):
    for _ in range(2):  # from the function, from what is known
        for indices in (SOME, EVERY):
            demand_own(
                sim,
                sim.block(indices, SOME),
                sim.block(SOME, indices),
                sim.columns(indices),
                sim.rows(indices),
                sim.pairs(indices, indices[::-1]),
                sim.peek(indices, indices),
                sim.diagonal(),
                list(sim.known()),
                sim.between(X[:3], indices),
            )


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_approximations(method, symmetric):
    sim = similarity() if symmetric or method == "rpcholesky" else asymmetric()
    sim = sim.symmetrized() if method == "sms_nystrom" else sim
    K = METHODS[method].function(sim.map(lambda d: np.exp(-d)), 9, rng=0)
    for answer in (K, K.T, K.with_core(2 * K.core)):
        attributes = answer.left, answer.core, answer.right, answer.landmarks
        demand_own(answer, *attributes, answer.row_landmarks)
        demand_own(sim, *attributes)
        demand_own(answer, answer.toarray(), answer.rows(EVERY), answer.diagonal())
        demand_own(answer, answer.embedding(), answer.embedding_map())


def test_factors_are_read_only_and_given_ones_stay_as_they_are():
    left, core = np.ones((4, 2)), np.eye(2)
    parts = np.ones(3), np.array([2, 0, 0]), np.array([0, 3, 3, 3, 3])
    twice = sp.csr_array(parts, shape=(4, 4))  # the entry (0, 0) is there twice
    K = LowRank(left, core, left.copy(), residual=twice, landmarks=[0, 1])
    for part in (K.left, K.core, K.right, K.landmarks, K.residual.data):
        with pytest.raises(ValueError, match="read-only"):
            part[:1] = 2
    sparse = LowRank(sp.csr_array(left), core)
    with pytest.raises(ValueError, match="read-only"):
        sparse.left.data *= 2
    np.testing.assert_array_equal(sparse.left.max(axis=1).toarray(), 1)
    K.residual.max(axis=1)  # SciPy sorts, and adds up, in place
    np.testing.assert_array_equal(K.toarray()[0], [4, 2, 3, 2])
    assert twice.indices.tolist() == [2, 0, 0]
    left *= 3  # what is mine stays writable
    assert K.left[0, 0] == 3


def test_an_anchored_answer():
    K = anchored(similarity(), 9, X, base_rank=9, rng=0)
    demand_own(K, K.left, K.core, K.landmarks, K.base_landmarks, K.embedding())


@pytest.mark.parametrize("distance", [True, False])
def test_graphs_and_pairs(distance):
    sim = similarity() if distance else similarity().map(lambda d: np.exp(-d))
    graph = nearest(sim, 5, limit=800, distance=distance, rng=0)
    before = graph.indices.copy(), graph.values.copy()
    demand_own(graph, graph.indices, graph.values)
    assert not np.shares_memory(graph.to_frame().iloc[:, 2].to_numpy(), graph.values)
    for mode in ("distance", "similarity", "connectivity"):
        for options in ({}, {"symmetric": True}, {"connected": True}):
            A = graph.to_csr(mode, **options)
            demand_own(graph, A)
            A.sort_indices()
            A.data *= 2
    np.testing.assert_array_equal(graph.indices, before[0])
    np.testing.assert_array_equal(graph.values, before[1])
    pairs = pairs_above(sim, 0.5, distance=distance, recall=1, rng=0)
    demand_own(sim, pairs[:6])
    demand_own(pairs, pairs.to_csr(), pairs.to_csr("similarity"))
    assert not np.shares_memory(pairs.to_frame().iloc[:, 2].to_numpy(), pairs.values)
    demand_own(pairs, pairs.clusters(), pairs[:6])
    demand_own(sim, search(sim, X[:3], 2, limit=9, distance=distance, rng=0))


@pytest.mark.parametrize("distance", [True, False])
def test_estimators_of_neighbours(distance):
    function = cdist if distance else kernel
    options = {"n_neighbors": 3, "distance": distance, "random_state": 0}
    by_function = SimilarityNeighbors(function, batch="block", **options)
    by_numbers = SimilarityNeighbors(
        Similarity(X, function, batch="block", symmetric=True), **options
    )
    for model, old, new in (
        (by_function, X[:40], X[40:]),
        (by_numbers, EVERY[:40], EVERY[40:]),
    ):
        handed = [model.fit_transform(old), model.transform(old), model.transform(new)]
        for items in (None, old, new):
            handed += [model.kneighbors(items), model.kneighbors_graph(items)]
            handed += [model.kneighbors_graph(items, mode="distance")]
        demand_own(model, handed)
        distances, indices = model.kneighbors()
        before = model.graph_.to_csr().toarray()
        distances *= 2
        indices[:] = 0
        np.testing.assert_array_equal(model.graph_.to_csr().toarray(), before)


def test_others():
    features = SimilarityFeatures(n_landmarks=9, random_state=0)
    demand_own(features, features.fit_transform(X), features.transform(X))
    R = Preconditioner.from_matrix(X, rng=0)
    demand_own(R, R.R, R.solve(np.eye(2)))
    demand_own(R, lstsq(X, X[:, 0], preconditioner=R))
    example = gallery.load("gaussian", 30)
    demand_own(example, example.matrix)
    data = bundled_cross_encoder()
    demand_own(data, data.first(30))
    for shared in (True, False):  # the power 1 of X, which needs no sketch
        powers = PolynomialSketch(2, 2, 1, shared=shared, rng=0)(X)
        demand_own([X], powers)
        np.testing.assert_array_equal(powers, X)


def test_blocks_of_distances_do_not_depend_on_what_became_of_those_before():
    hub_labels = pytest.importorskip("simlib.biharmonic.hub_labels")
    labels = hub_labels.HubLabels(np.eye(30, k=1))
    for rows, columns, _ in labels.blocks(np.arange(30), size=8):
        for part in (rows, columns):
            with pytest.raises(ValueError, match="read-only"):
                part.sort()
