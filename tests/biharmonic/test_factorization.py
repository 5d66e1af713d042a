import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import spsolve

from simlib.biharmonic import (
    biharmonic_operator,
    factorization,
    graph_laplacian,
    interpolation,
)
from simlib.biharmonic.elimination_tree import depths, elimination_tree, postorder
from simlib.biharmonic.factorization import factorize
from simlib.biharmonic.selected_solve import selected_columns
from simlib.datasets import bumpy_sphere
from simlib.landmarks import uniform
from support.matrices import quick
from support.operators import random_laplacian, surface_operator

in_both_orders = pytest.mark.usefixtures("both_orders")


def definite(n, seed, harmonic=False):
    L = random_laplacian(n, seed)
    M = L if harmonic else biharmonic_operator(L)
    return csc_array(M + diags_array(np.linspace(0.1, 1, n)))


def in_the_order(factor, A):
    """A as it is eliminated, and its factors."""
    order = np.argsort(factor.place)
    L, D = factor.superlu.L.toarray(), factor.superlu.U.diagonal()
    return A.toarray()[np.ix_(order, order)], L, D


@in_both_orders
def test_small_ones():
    solve = factorize(csc_array([[2.0, 1], [1, 2]])).solve
    np.testing.assert_allclose(solve(np.array([4.0, 5])), [1, 2], rtol=1e-15)
    assert factorize(csc_array([[4.0]])).solve(np.array([2.0])) == 0.5
    B = np.arange(8.0).reshape(4, 2)
    of_a_diagonal = factorize(csc_array(diags_array([1.0, 2, 4, 8])))
    expected = B / [[1], [2], [4], [8]]
    np.testing.assert_array_equal(of_a_diagonal.solve(B), expected)


@in_both_orders
def test_shapes_of_right_hand_sides():
    A = definite(30, 0)
    factor, B = factorize(A), np.random.default_rng(0).standard_normal((30, 7))
    for right in B, np.asfortranarray(B), B[:, :1], B[:, 0], B[:, :0], B[:, ::2]:
        X = factor.solve(right)
        assert X.shape == right.shape
        np.testing.assert_allclose(A @ X, right, atol=1e-10)


@in_both_orders
@quick
@given(st.integers(2, 60), st.integers(0, 999), st.booleans())
def test_any_matrix(n, seed, harmonic):
    A = definite(n, seed, harmonic)
    factor, y = factorize(A), np.random.default_rng(seed).standard_normal(n)
    np.testing.assert_allclose(factor.solve(y), spsolve(A, y), atol=1e-9)
    permuted, L, D = in_the_order(factor, A)
    np.testing.assert_allclose(L * D @ L.T, permuted, atol=1e-9)


@in_both_orders
def test_a_pattern_that_is_not_symmetric():
    """As products leave it where a sum cancels on one side alone."""
    A = definite(40, 1).toarray()
    A[3, 7], A[7, 3] = 1e-17, 0
    y = np.random.default_rng(0).standard_normal(40)
    x = factorize(csc_array(A)).solve(y)
    np.testing.assert_allclose(x, spsolve(csc_array(A), y), atol=1e-9)


def test_the_orders_agree(monkeypatch):
    pytest.importorskip("pymetis", reason="needs pymetis, of the extra mesh")
    M, landmarks = surface_operator(bumpy_sphere(3)), uniform(642, 60, rng=0)
    whole = interpolation(M, landmarks)
    part, _ = selected_columns(M, landmarks, 20)
    entries = factorize(csc_array(M + diags_array(np.ones(642)))).superlu.L.nnz
    monkeypatch.setattr(factorization, "pymetis", None)
    np.testing.assert_allclose(interpolation(M, landmarks), whole, atol=1e-11)
    other, _ = selected_columns(M, landmarks, 20)
    assert abs(other - part).max() < 1e-11
    fewer = factorize(csc_array(M + diags_array(np.ones(642)))).superlu.L.nnz
    assert entries != fewer


@in_both_orders
def test_singular():
    for A in np.zeros((3, 3)), np.array([[1.0, -1], [-1, 1]]):
        with pytest.raises(ValueError, match="singular to rounding"):
            factorize(csc_array(A))


# The tree


def test_trees_of_a_path_and_a_star():
    n = 7
    path = csr_array(np.eye(n, k=1) + np.eye(n, k=-1))
    natural = np.arange(n)
    parent = elimination_tree(path.indptr, path.indices, natural, natural)
    np.testing.assert_array_equal(parent, [1, 2, 3, 4, 5, 6, -1])
    np.testing.assert_array_equal(depths(parent), n - 1 - natural)
    star = np.zeros((n, n))
    star[-1] = star[:, -1] = 1
    star = csr_array(star)
    parent = elimination_tree(star.indptr, star.indices, natural, natural)
    np.testing.assert_array_equal(parent, [n - 1] * (n - 1) + [-1])
    turned = natural[::-1].copy()  # the middle first: all are joined by it
    parent = elimination_tree(star.indptr, star.indices, turned, turned)
    np.testing.assert_array_equal(parent, [1, 2, 3, 4, 5, 6, -1])


@in_both_orders
@quick
@given(st.integers(1, 40), st.integers(0, 999))
def test_tree_of_the_factor(n, seed):
    """The parent is the first entry below the diagonal of the Cholesky factor."""
    A = definite(n, seed)
    factor = factorize(A)
    place = factor.place
    parent = elimination_tree(A.indptr, A.indices, place, np.argsort(place))
    permuted, *_ = in_the_order(factor, A)
    below = np.tril(abs(scipy.linalg.cholesky(permuted, lower=True)) > 1e-12, -1)
    first = np.where(below.any(axis=0), below.argmax(axis=0), -1)
    np.testing.assert_array_equal(parent, first)


@quick
@given(st.integers(1, 60), st.integers(0, 999))
def test_postorder(n, seed):
    rng = np.random.default_rng(seed)
    above = [rng.integers(q + 1, n + 1) for q in range(n)]
    parent = np.array([-1 if p == n else p for p in above])
    rank = postorder(parent)
    assert sorted(rank) == list(range(n))
    for q in range(n):
        below = [p for p in range(n) if q in ancestors(p, parent)]
        np.testing.assert_array_equal(
            np.sort(rank[below]), np.arange(rank[q] - len(below) + 1, rank[q] + 1)
        )


def ancestors(q, parent):
    """A node, its parent and so on."""
    chain = []
    while q != -1:
        chain.append(q)
        q = parent[q]
    return chain


@pytest.mark.parametrize("small", [1e-8, 1e-12, 1e-13, 1e-14, 0])
def test_pivots_of_an_indefinite_matrix_may_be_small(small):
    """A weight of -1 + small makes a pivot of size small; the condition is 10.5."""
    W = np.zeros((5, 5))
    W[[2, 2, 3, 3, 4, 4], [3, 0, 1, 4, 0, 1]] = [1, small - 1, 1, 0.5, 1, 2]
    L = graph_laplacian(W + W.T).toarray()
    expected = np.linalg.solve(L[2:, 2:], -L[2:, :2])
    np.testing.assert_allclose(interpolation(L, [0, 1])[2:], expected, rtol=1e-9)
