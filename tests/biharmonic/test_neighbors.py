import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from simlib.biharmonic import neighbor_graph
from support.matrices import quick


def row_by_row(X, n_neighbors, perplexity):
    """The formulas of the module, each bandwidth by Brent's method."""
    squares = ((X[:, None] - X) ** 2).sum(axis=-1)
    np.fill_diagonal(squares, np.inf)
    near = np.zeros(squares.shape, dtype=bool)
    nearest = np.argsort(squares, axis=1)[:, :n_neighbors]
    np.put_along_axis(near, nearest, True, axis=1)
    near |= near.T
    P = np.zeros(squares.shape)
    for i, N in enumerate(near):
        excess = squares[i, N] - squares[i, N].min()

        def conditional(logarithm, excess=excess):
            weights = np.exp(-np.exp(logarithm) * excess)
            return weights / weights.sum()

        def gap(logarithm, conditional=conditional):
            p = conditional(logarithm)
            entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
            return np.exp(entropy) - min(perplexity, 0.99 * p.size)

        P[i, N] = conditional(brentq(gap, -30, 30, xtol=1e-13) if N.sum() > 1 else 0)
    return (P + P.T) / 2


def test_two_points():
    A = neighbor_graph([[0.0], [1.0]], n_neighbors=1)
    np.testing.assert_array_equal(A.toarray(), [[0, 1], [1, 0]])


def test_perplexity_one_means_the_nearest_alone():
    """0, 1 and 3 choose each other, 1 and 0."""
    A = neighbor_graph([[0.0], [1.0], [3.0]], n_neighbors=2, perplexity=1)
    exact = [[0, 1, 0], [1, 0, 0.5], [0, 0.5, 0]]
    np.testing.assert_allclose(A.toarray(), exact, atol=1e-12)


@quick
@given(st.integers(2, 25), st.floats(1.2, 30), st.integers(1, 4), st.integers(0, 999))
def test_against_brent_on_any_points(n, perplexity, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-5, 6)
    n_neighbors = int(rng.integers(1, n))
    A = neighbor_graph(X, n_neighbors=n_neighbors, perplexity=perplexity)
    exact = row_by_row(X / abs(X).max(), n_neighbors, perplexity)
    np.testing.assert_allclose(A.toarray(), exact, atol=1e-6)


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6])
def test_far_point_does_not_change_the_others(distance):
    """They are in its neighbourhood, so it is in theirs, with a weight of 0."""
    X = np.random.default_rng(0).random((40, 2))
    A = neighbor_graph(X, n_neighbors=39, perplexity=5)
    outlier = np.vstack([X, [[distance, distance]]])
    B = neighbor_graph(outlier, n_neighbors=39, perplexity=5)
    np.testing.assert_allclose(B[:40, :40].toarray(), A.toarray(), atol=1e-9)


@pytest.mark.parametrize("d", [2, 20])
def test_a_place_far_away_does_not_matter(d):
    """In many dimensions the search for neighbours cancels unless it is centred."""
    X = np.random.default_rng(0).standard_normal((200, d))
    for shift in (1e5, 1e7):
        moved = X + shift
        A = neighbor_graph(moved, n_neighbors=8, perplexity=5)
        B = neighbor_graph(moved - shift, n_neighbors=8, perplexity=5)
        assert abs(A - B).max() < 1e-8


def test_two_far_clouds_have_their_own_weights():
    """Lengths are taken from differences, not from squares of large numbers."""
    X = np.random.default_rng(0).standard_normal((60, 20))
    far = np.vstack([X, X + 2.0**18])
    A = neighbor_graph(far, n_neighbors=59, perplexity=5).toarray()
    B = neighbor_graph(far[60:] - 2.0**18, n_neighbors=59, perplexity=5).toarray()
    assert abs(A[60:, 60:] - B).max() < 1e-6


@pytest.mark.parametrize("n_neighbors", [1, 4, 29])
def test_equal_points(n_neighbors):
    A = neighbor_graph(np.ones((30, 2)), n_neighbors=n_neighbors)
    assert A.sum() == pytest.approx(30)
    sizes = np.diff(A.indptr)
    i, j = A.nonzero()
    np.testing.assert_allclose(A.data, (1 / sizes[i] + 1 / sizes[j]) / 2)
    assert (A.diagonal() == 0).all()


@pytest.mark.parametrize("d", [2, 40])
def test_points_of_any_size(d):
    X = np.random.default_rng(0).standard_normal((50, d))
    A = neighbor_graph(X)
    for power in (-1000, 1000):
        assert (neighbor_graph(np.ldexp(X, power)) != A).nnz == 0


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (csr_array(np.eye(30)), {}, "sparse"),
        (np.zeros((20, 2)), {}, "between 1 and 19; got 20"),
        (np.zeros((20, 2)), {"n_neighbors": 0}, "between 1 and 19"),
        (np.zeros((1, 2)), {"n_neighbors": 1}, "between 1 and 0"),
        (np.zeros((30, 2)), {"perplexity": 0.5}, "at least 1; got 0.5"),
    ],
)
def test_impossible_points(X, options, message):
    with pytest.raises(ValueError, match=message):
        neighbor_graph(X, **options)


def test_one_outlier_spoils_no_other_neighbour():
    X = np.random.default_rng(0).standard_normal((60, 30))
    far = np.r_[X, np.full((1, 30), 1e9)]
    A = neighbor_graph(far, n_neighbors=5).toarray()
    D = cdist(far, far)
    np.fill_diagonal(D, np.inf)
    nearest = np.argsort(D, axis=1)[:, :5]
    assert (A[np.arange(61)[:, None], nearest] > 0)[:60].all()


def test_a_perplexity_beyond_the_neighbors_is_any_larger_one():
    X = np.random.default_rng(0).random((60, 2))
    A, B = (neighbor_graph(X, n_neighbors=5, perplexity=p) for p in (1e9, np.inf))
    assert (A != B).nnz == 0
    with pytest.raises(ValueError, match="perplexity must be at least 1; got nan"):
        neighbor_graph(X, n_neighbors=5, perplexity=np.nan)
