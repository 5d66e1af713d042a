import numpy as np
import pytest

from simlib import Similarity, nystrom
from simlib.landmarks import draw
from support.matrices import asymmetric, indefinite, orthogonal, psd, rbf

# Against numpy and scikit-learn


@pytest.mark.parametrize("make", [indefinite, psd, rbf, asymmetric])
def test_formula(make):
    K = make(40)
    approximation = nystrom(Similarity.from_matrix(K), 10, rng=0)
    S = approximation.landmarks
    expected = K[:, S] @ np.linalg.inv(K[np.ix_(S, S)]) @ K[S]
    np.testing.assert_allclose(approximation.toarray(), expected, atol=1e-9)
    if make is asymmetric:
        np.testing.assert_array_equal(approximation.row_landmarks, S)


# The cut of the pseudo-inverse


def block_with_a_small_eigenvalue(small):
    """A 6 x 6 matrix whose first 3 x 3 block has eigenvalues 1, -2 and `small`."""
    rng = np.random.default_rng(0)
    Q = orthogonal(3, rng)
    K = np.eye(6)
    K[:3, :3] = (Q * [1, -2, small]) @ Q.T
    K[3:, :3] = rng.standard_normal((3, 3))
    K[:3, 3:] = K[3:, :3].T
    return (K + K.T) / 2


def test_rounding_errors_are_not_inverted():
    K = block_with_a_small_eigenvalue(3e-16)
    sim = Similarity.from_matrix(K)
    assert np.abs(nystrom(sim, landmarks=[0, 1, 2]).core).max() < 10
    wild = nystrom(sim, landmarks=[0, 1, 2], rcond=0.0)
    assert np.abs(wild.core).max() > 1e12


def test_rcond_is_relative_to_the_largest_magnitude():
    K = 1e9 * block_with_a_small_eigenvalue(1e-3)
    sim = Similarity.from_matrix(K)
    for rcond, rank in ((1e-4, 3), (4.9e-4, 3), (5.1e-4, 2), (0.4, 2), (0.6, 1)):
        core = nystrom(sim, landmarks=[0, 1, 2], rcond=rcond).core
        assert np.linalg.matrix_rank(core) == rank


def test_rcond_of_an_asymmetric_matrix_cuts_singular_values():
    sim = Similarity.from_matrix(K := asymmetric(30))
    sigma = np.linalg.svd(K[:8, :8], compute_uv=False)
    rcond = (sigma[2] + sigma[3]) / 2 / sigma[0]
    core = nystrom(sim, landmarks=np.arange(8), rcond=rcond).core
    assert np.linalg.matrix_rank(core) == 3
    np.testing.assert_allclose(np.linalg.norm(core, 2), 1 / sigma[2])


# The cut-off chosen by the block


def candidates(K, S, block):
    """Yield each cut-off's answer and its squared error in the block."""
    sim, rest = Similarity.from_matrix(K), np.setdiff1d(block, S)
    for rcond in (None, *np.logspace(-5, 0, 21)[:-1]):
        answer = nystrom(sim, landmarks=S, rcond=rcond).toarray()
        E = (K - answer)[np.ix_(rest, rest)]
        yield answer, np.square(E).sum() - np.square(np.diag(E)).sum()


def case(kind):
    """A matrix, a number of landmarks and a seed."""
    if kind == "asymmetric":
        return asymmetric(60), 15, 4
    if kind == "few":  # where an answer far too large fits the block best
        rng = np.random.default_rng(21)
        x = rng.standard_normal((60, 3))
        return np.tanh(x @ x.T / 2), 3, 21
    K = indefinite(60, rank=10)
    unit = np.linalg.norm(K) / 60
    noise = np.random.default_rng(3).standard_normal(K.shape)
    if kind != "clean":
        K = K + 0.02 * unit * (noise + noise.T)
    if kind == "spikes":  # where the diagonal would choose another
        return K + np.diag(3 * unit * noise[0]), 15, 4
    return K, 15, 4


@pytest.mark.parametrize("kind", ["clean", "noisy", "asymmetric", "spikes", "few"])
def test_the_cutoff_is_the_best_for_the_block(kind):
    """By brute force, from another route through the public function."""
    K, s, seed = case(kind)
    found = nystrom(Similarity.from_matrix(K), s, rcond="cv", rng=seed)
    S, block = draw(60, s, 2, rng=seed)
    np.testing.assert_array_equal(found.landmarks, S)
    answers, errors = zip(*candidates(K, S, block), strict=True)
    bound = np.sqrt(60 / s * (np.sum(K[:, S] ** 2) + np.sum(K[S] ** 2)) / 2)
    sizes = np.array([np.linalg.norm(answer) for answer in answers])
    errors = np.where(sizes <= 2 * bound, errors, np.inf)
    best = answers[int(np.argmin(errors))]
    np.testing.assert_allclose(found.toarray(), best, atol=1e-8 * np.abs(K).max())


@pytest.mark.parametrize(("n", "s"), [(1, 1), (6, 6), (6, 5)])
def test_without_a_block_there_is_nothing_to_choose(n, s):
    K = indefinite(n)
    sim = Similarity.from_matrix(K)
    plain = nystrom(sim.fork(), s, rng=0)
    chosen = nystrom(sim.fork(), s, rcond="cv", rng=0)
    np.testing.assert_array_equal(chosen.core, plain.core)
    assert chosen.calls == n * (n + 1) // 2
