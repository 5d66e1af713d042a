import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from simlib import Similarity
from simlib.biharmonic import (
    biharmonic_approximation,
    biharmonic_operator,
    heat_geodesics,
    interpolation,
    mesh_laplacian,
)
from simlib.datasets import bumpy_sphere
from simlib.landmarks import uniform
from simlib.similarity.budget import BudgetExceeded
from support.matrices import Recorder, asymmetric, indefinite, quick
from support.operators import path, random_laplacian


def operator(n, landmarks, **options):
    M = biharmonic_operator(random_laplacian(n, n))
    return interpolation(M, landmarks, **options)


def from_function(K, **options):
    function = Recorder(K)
    return Similarity(range(len(K)), function, **options), function


# Exactly


def test_product_on_a_path_is_bilinear():
    """The harmonic interpolation of x y from the ends and the middle is exact."""
    x = np.arange(9.0)
    landmarks = [8, 0, 4]
    P = interpolation(path(*[1] * 8), landmarks)
    K = np.outer(x, x)
    approximation = biharmonic_approximation(Similarity.from_matrix(K), P, landmarks)
    np.testing.assert_allclose(approximation.toarray(), K, atol=1e-12)


@quick
@given(
    st.integers(2, 40),
    st.integers(1, 40),
    st.integers(0, 999),
    st.booleans(),
    st.sampled_from([None, 1, 3]),
)
def test_formula(n, n_landmarks, seed, symmetric, nnz_per_row):
    K = (indefinite if symmetric else asymmetric)(n, seed=seed)
    landmarks = uniform(n, min(n, n_landmarks), rng=seed)
    P = operator(n, landmarks, nnz_per_row=nnz_per_row)
    sim = Similarity.from_matrix(K, symmetric=symmetric)
    approximation = biharmonic_approximation(sim, P, landmarks)
    dense = P if nnz_per_row is None else P.toarray()
    W = K[np.ix_(landmarks, landmarks)]
    np.testing.assert_allclose(approximation.toarray(), dense @ W @ dense.T, atol=1e-9)
    np.testing.assert_allclose(approximation.rows(landmarks)[:, landmarks], W)
    assert approximation.symmetric == symmetric


# Calls


@pytest.mark.parametrize(("symmetric", "calls"), [(True, 36), (False, 64)])
def test_asks_for_the_landmarks_alone(symmetric, calls):
    K = (indefinite if symmetric else asymmetric)(40)
    landmarks = uniform(40, 8, rng=0)
    sim, function = from_function(K, symmetric=symmetric, limit=calls)
    approximation = biharmonic_approximation(sim, operator(40, landmarks), landmarks)
    assert approximation.calls == sim.calls == len(function.asked) == calls
    assert np.isin(function.asked, landmarks).all()
    again = biharmonic_approximation(sim, operator(40, landmarks), landmarks)
    assert again.calls == calls == sim.calls


def test_budget():
    landmarks = uniform(40, 8, rng=0)
    sim, function = from_function(indefinite(40), limit=35)
    with pytest.raises(BudgetExceeded):
        biharmonic_approximation(sim, operator(40, landmarks), landmarks)
    assert function.asked == []


@pytest.mark.parametrize("nnz_per_row", [None, 4])
def test_one_operator_for_several_similarities(nnz_per_row):
    X = np.random.default_rng(0).random((40, 2))
    D = np.linalg.norm(X[:, None] - X, axis=-1)
    landmarks = uniform(40, 8, rng=0)
    P = operator(40, landmarks, nnz_per_row=nnz_per_row)
    before = P.copy()
    sim, _ = from_function(D)
    for scale in 1, 2:
        kernel = sim.map(lambda d, scale=scale: np.exp(-scale * d))
        approximation = biharmonic_approximation(kernel, P, landmarks)
        W = np.exp(-scale * D[np.ix_(landmarks, landmarks)])
        exact = P @ W @ P.T
        np.testing.assert_allclose(approximation.toarray(), exact, atol=1e-12)
        if nnz_per_row is None:
            assert np.shares_memory(approximation.left, P)
    assert sim.calls == 36
    assert abs(P - before).max() == 0


# As factors


def test_sparse_factors_answer_as_dense_ones():
    K, landmarks = asymmetric(60), uniform(60, 10, rng=0)
    P = operator(60, landmarks, nnz_per_row=3)
    for symmetric, matrix in [(True, K + K.T), (False, K)]:
        sim = Similarity.from_matrix(matrix, symmetric=symmetric)
        sparse = biharmonic_approximation(sim, P, landmarks)
        dense = biharmonic_approximation(sim, P.toarray(), landmarks)
        assert scipy.sparse.issparse(sparse.left)
        A, (i, j) = dense.toarray(), np.random.default_rng(0).integers(0, 60, (2, 30))
        x = np.random.default_rng(1).standard_normal(60)
        exact = {"rtol": 1e-12, "atol": 1e-12}
        np.testing.assert_allclose(sparse.toarray(), A, **exact)
        np.testing.assert_allclose(sparse.rows(i), A[i], **exact)
        np.testing.assert_allclose(sparse.entries(i, j), A[i, j], **exact)
        np.testing.assert_allclose(sparse @ x, A @ x, **exact)
        np.testing.assert_allclose(sparse.T @ x, A.T @ x, **exact)
        np.testing.assert_allclose(sparse.diagonal(), np.diag(A), **exact)
        assert sparse.norm() == pytest.approx(np.linalg.norm(A))
        ridge = 100
        np.testing.assert_allclose(
            sparse.solve(x, ridge), np.linalg.solve(A + ridge * np.eye(60), x), **exact
        )


def test_landmarks_as_a_list_and_other_formats_of_P():
    K, landmarks = indefinite(40, dtype=np.float32), uniform(40, 8, rng=0)
    P = operator(40, landmarks, nnz_per_row=3)
    sim = Similarity.from_matrix(K)
    exact = biharmonic_approximation(sim, P, landmarks)
    np.testing.assert_array_equal(exact.landmarks, landmarks)
    assert exact.method == "biharmonic_approximation"
    for other in P.tocsc(), scipy.sparse.csr_matrix(P), P.toarray(order="F"):
        same = biharmonic_approximation(sim, other, landmarks.tolist())
        np.testing.assert_allclose(same.toarray(), exact.toarray(), atol=1e-6)
    single = biharmonic_approximation(sim, P.astype(np.float32), landmarks)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.toarray(), exact.toarray(), atol=1e-4)


# Accuracy


def test_more_landmarks_help_and_harmonic_ones_less():
    mesh = bumpy_sphere(4)
    L, mass = mesh_laplacian(mesh.vertices, mesh.faces)
    M = biharmonic_operator(L, mass)
    order = uniform(len(mesh.vertices), 280, rng=0)
    D = heat_geodesics(mesh.vertices, mesh.faces, order)[order]
    K = (D + D.T) / 2

    def missed(operator, n_landmarks):
        landmarks, items = order[:n_landmarks], order[180:]
        P = interpolation(operator, landmarks)[items]
        return np.linalg.norm(P @ K[:n_landmarks, :n_landmarks] @ P.T - K[180:, 180:])

    many, few, harmonic = missed(M, 180), missed(M, 40), missed(L, 180)
    assert 3 * many**2 < few**2
    assert 4 * many**2 < harmonic**2


# What is refused


def test_operator_of_other_landmarks():
    landmarks = uniform(40, 8, rng=0)
    sim, function = from_function(indefinite(40))
    for nnz_per_row in None, 3:
        P = operator(40, landmarks, nnz_per_row=nnz_per_row)
        for others in landmarks[::-1], uniform(40, 8, rng=1), np.roll(landmarks, 1):
            with pytest.raises(ValueError, match="not the identity on these landmarks"):
                biharmonic_approximation(sim, P, others)
    for other in P[:, :7], P[:39], P.T:
        with pytest.raises(ValueError, match=r"must have shape \(40, 8\)"):
            biharmonic_approximation(sim, other, landmarks)
    P[landmarks[0], 0] = np.nan
    with pytest.raises(ValueError, match="P contains NaN"):
        biharmonic_approximation(sim, P, landmarks)
    assert function.asked == []


@pytest.mark.parametrize("landmarks", [[0, 0], [40], [], [[0, 1]], [0.0]])
def test_impossible_landmarks(landmarks):
    sim = Similarity.from_matrix(indefinite(40))
    with pytest.raises(ValueError, match="landmarks must"):
        biharmonic_approximation(sim, np.zeros((40, len(landmarks))), landmarks)
