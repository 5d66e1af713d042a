import numpy as np
import pytest
from numpy.linalg import inv

from simlib import Similarity, sicur, skeleton, stacur
from support.matrices import asymmetric, error, indefinite, rbf

# Against numpy


@pytest.mark.parametrize("make", [indefinite, rbf, asymmetric])
@pytest.mark.parametrize(
    ("method", "options"),
    [
        (skeleton, {}),
        (sicur, {}),
        (sicur, {"oversampling": 3, "nested": False}),
        (stacur, {}),
        (stacur, {"same_rows": False}),
        (stacur, {"oversampling": 2}),
        (stacur, {"same_rows": False, "oversampling": 2}),
    ],
)
def test_formula(method, options, make):
    K = make(40)
    approximation = method(Similarity.from_matrix(K), 10, rng=2, **options)
    S1, S2 = approximation.landmarks, approximation.row_landmarks
    C, R, B = K[:, S1], K[S2], K[np.ix_(S2, S1)]
    if method is stacur:
        U = 40 / len(S2) * inv(C.T @ C) @ B.T
    else:
        U = inv(B.T @ B) @ B.T if len(S2) > len(S1) else inv(B)
    expected = C @ U @ R
    tolerance = 1e-8 * np.abs(expected).max()
    np.testing.assert_allclose(approximation.toarray(), expected, atol=tolerance)
    nested = options.get("nested", options.get("same_rows", method is not skeleton))
    assert np.isin(S1, S2).all() == nested


@pytest.mark.parametrize("options", [{}, {"nested": False}, {"oversampling": 3}])
def test_symmetrised_sicur_is_the_mean_with_its_transpose(options):
    K = indefinite(40)
    plain = sicur(Similarity.from_matrix(K), 10, rng=0, **options).toarray()
    mean = sicur(Similarity.from_matrix(K), 10, rng=0, symmetrize=True, **options)
    assert mean.symmetric
    np.testing.assert_allclose(mean.toarray(), (plain + plain.T) / 2, atol=1e-10)
    assert np.linalg.norm(K - mean.toarray()) <= np.linalg.norm(K - plain)


def test_symmetrising_needs_a_symmetric_matrix():
    sim = Similarity.from_matrix(asymmetric(20))
    with pytest.raises(ValueError, match=r"symmetrize=True.*sim\.symmetrized\(\)"):
        sicur(sim, 5, symmetrize=True)
    assert sicur(sim.symmetrized(), 5, symmetrize=True, rng=0).symmetric


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stacur_does_not_square_the_condition(dtype):
    """Columns of a smooth kernel are dependent to rounding; a projection stays small.

    (n / s) P_C S S^T K is at most n / s times as large as K.
    """
    X = np.random.default_rng(0).standard_normal((300, 2))
    K = np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(-1)).astype(dtype)
    assert error(K, stacur(Similarity.from_matrix(K), 60, rng=0)) < 2
