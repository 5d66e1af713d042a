import numpy as np
import pytest
import scipy.linalg

from simlib import Similarity, optimal
from support.matrices import asymmetric, error, indefinite, psd

# Exact answers


def test_largest_magnitudes_are_kept():
    approximation = optimal(Similarity.from_matrix(np.diag([1.0, -5.0, 3.0])), 2)
    np.testing.assert_allclose(approximation.toarray(), np.diag([0, -5, 3]), atol=1e-15)
    np.testing.assert_allclose(np.diag(approximation.core), [-5, 3])


@pytest.mark.parametrize("make", [indefinite, psd, asymmetric])
def test_truncated_singular_value_decomposition(make):
    K = make(30)
    U, sigma, Vt = scipy.linalg.svd(K)
    for rank in (1, 10, 30):
        approximation = optimal(Similarity.from_matrix(K), rank)
        np.testing.assert_allclose(
            approximation.toarray(),
            (U[:, :rank] * sigma[:rank]) @ Vt[:rank],
            atol=1e-10,
        )
        missed = np.linalg.norm(sigma[rank:]) / np.linalg.norm(sigma)
        assert error(K, approximation) == pytest.approx(missed, abs=1e-12)
        np.testing.assert_allclose(
            approximation.left.T @ approximation.left, np.eye(rank), atol=1e-12
        )


def test_calls():
    sim = Similarity.from_matrix(psd(20))
    assert optimal(sim, 3).calls == sim.calls == 210
    sim = Similarity.from_matrix(asymmetric(20))
    assert optimal(sim, 3).calls == sim.calls == 400


# What is refused


def test_no_new_items():
    """Singular vectors of the whole are no similarities to landmarks."""
    answer = optimal(Similarity.from_matrix(psd(5)), 2.0)
    assert answer.rank == 2
    with pytest.raises(ValueError, match=r"no place .*singular vectors.*tikhonov"):
        answer.extend(np.ones((3, 2)))
    turned = optimal(Similarity.from_matrix(asymmetric(5)), 2).T
    with pytest.raises(ValueError, match=r"no place .*singular vectors"):
        turned.extend(np.ones((3, 4)))
    assert isinstance(turned.T, type(answer))
