import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from simlib import Similarity
from simlib.biharmonic import (
    biharmonic_approximation,
    biharmonic_operator,
    interpolation,
)
from simlib.landmarks import uniform
from simlib.similarity.budget import BudgetExceeded
from support.matrices import Recorder, asymmetric, indefinite, quick
from support.operators import random_laplacian


def operator(n, landmarks, **options):
    M = biharmonic_operator(random_laplacian(n, n))
    return interpolation(M, landmarks, **options)


def from_function(K, **options):
    function = Recorder(K)
    return Similarity(range(len(K)), function, **options), function


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
    dense = P.copy() if nnz_per_row is None else P.toarray()
    sim = Similarity.from_matrix(K, symmetric=symmetric)
    approximation = biharmonic_approximation(sim, P, landmarks)
    if nnz_per_row is None:
        assert np.shares_memory(approximation.left, P)
    W = K[np.ix_(landmarks, landmarks)]
    np.testing.assert_allclose(approximation.toarray(), dense @ W @ dense.T, atol=1e-9)
    np.testing.assert_allclose(approximation.rows(landmarks)[:, landmarks], W)
    assert approximation.symmetric == symmetric


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


# As factors


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
    with pytest.raises((ValueError, IndexError), match=r"^[Ll]andmarks (must|are)"):
        biharmonic_approximation(sim, np.zeros((40, len(landmarks))), landmarks)
