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


@pytest.mark.parametrize(
    "K",
    [
        indefinite(30),
        psd(30),
        asymmetric(30),
        asymmetric(50)[:30],
        asymmetric(50)[:, 20:],
    ],
)
def test_truncated_singular_value_decomposition(K):
    U, sigma, Vt = scipy.linalg.svd(K, full_matrices=False)
    for rank in (1, 10, 30):
        sim = Similarity.from_matrix(K)
        approximation = optimal(sim, rank)
        pairs = 30 * 31 // 2 if sim.symmetric else K.size
        assert approximation.calls == sim.calls == pairs
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


def test_more_than_the_rank_there_is():
    for K in (asymmetric(20)[:12], asymmetric(20)[:, :12]):
        with pytest.raises(ValueError, match="rank"):
            optimal(Similarity.from_matrix(K), 13)


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
