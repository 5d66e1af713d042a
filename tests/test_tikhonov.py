from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import asymmetric, error, indefinite, psd, quick, rbf

from simlib import Similarity, largest, nystrom, sicur, sms_nystrom, stacur, tikhonov
from simlib.datasets import cross_encoder_like
from simlib.landmarks import draw
from simlib.text import gallery

# Exact answers


@pytest.mark.parametrize("make", [indefinite, psd, rbf, asymmetric])
@pytest.mark.parametrize("ridge", [0, "cv"])
def test_all_landmarks_give_the_matrix(make, ridge):
    K = make(40)
    sim = Similarity.from_matrix(K)
    assert error(K, tikhonov(sim, 40, ridge=ridge, rng=0)) < 1e-9


@pytest.mark.parametrize("make", [indefinite, psd, asymmetric])
@pytest.mark.parametrize("s", [7, 12])
def test_exact_where_the_rank_allows(make, s):
    K = make(40, rank=7)
    sim = Similarity.from_matrix(K)
    assert error(K, tikhonov(sim, s, ridge=0, rng=0)) < 1e-8
    assert error(K, tikhonov(sim, s, rng=0)) < 1e-6


@pytest.mark.parametrize("make", [indefinite, psd])
def test_without_oversampling_and_ridge_it_is_nystrom(make):
    K = make(40)
    sim = Similarity.from_matrix(K)
    ours = tikhonov(sim, 10, oversampling=1, rng=0)
    np.testing.assert_allclose(
        ours.toarray(), nystrom(sim, 10, rng=0).toarray(), atol=1e-7
    )


def test_with_all_rows_the_core_is_the_best_there_is():
    """S2 = all items and ridge 0: K projected on the span of C from both sides."""
    K = indefinite(40)
    approximation = tikhonov(Similarity.from_matrix(K), 10, oversampling=4, ridge=0)
    Q = np.linalg.qr(K[:, approximation.landmarks])[0]
    np.testing.assert_allclose(
        approximation.toarray(), Q @ Q.T @ K @ Q @ Q.T, atol=1e-10
    )


def test_infinite_ridge_is_the_zero_matrix():
    approximation = tikhonov(Similarity.from_matrix(psd(20)), 5, ridge=np.inf)
    np.testing.assert_array_equal(approximation.toarray(), np.zeros((20, 20)))


# The formula and the cross-validation, from the guide, by normal equations


def filtered(B, ridge):
    """(B^T B + ridge I)^-1 B^T."""
    return np.linalg.solve(B.T @ B + ridge * np.eye(B.shape[1]), B.T)


def core(A, s1, ridge):
    left = filtered(A[:, :s1], ridge)
    right = filtered(A[:s1, :].T, ridge)
    return left @ A @ right.T


def chosen_ridge(A, s1):
    """Return the ridge of the least off-diagonal error on held-out entries."""
    s2 = len(A)
    held_out = range(s1, s2)
    if len(held_out) < 2:
        return 0.0
    if len(held_out) < 10:
        folds = list(combinations(held_out, 2))
    else:
        folds = np.array_split(held_out, 5)
    largest_value = max(
        np.linalg.eigvalsh(A[:, :s1].T @ A[:, :s1])[-1],
        np.linalg.eigvalsh(A[:s1] @ A[:s1].T)[-1],
    )
    scores = {}
    for ridge in [0.0] + [10 ** (-10 + k / 2) * largest_value for k in range(21)]:
        scores[ridge] = 0.0
        for fold in folds:
            kept = [i for i in range(s2) if i not in fold]
            U = core(A[kept][:, kept], s1, ridge)
            for i in fold:
                for j in fold:
                    if i != j:
                        guess = A[i, :s1] @ U @ A[:s1, j]
                        scores[ridge] += (A[i, j] - guess) ** 2
    return min(scores, key=scores.get)


@pytest.mark.parametrize("make", [indefinite, rbf, asymmetric])
@pytest.mark.parametrize("ridge", [0, 1e-3, 2.5])
def test_core_by_normal_equations(make, ridge):
    K = make(40)
    approximation = tikhonov(Similarity.from_matrix(K), 8, ridge=ridge, rng=0)
    S1, S2 = draw(40, 8, 2, rng=0)
    U = core(K[np.ix_(S2, S2)], 8, ridge)
    scale = np.abs(U).max()
    np.testing.assert_allclose(approximation.core, U, atol=1e-8 * scale)
    right = K[:, S1].T if approximation.symmetric else K[S1]
    np.testing.assert_allclose(
        approximation.toarray(), K[:, S1] @ U @ right, atol=1e-8 * scale
    )


def skew(n, *, seed):
    """A cross-encoder before it is symmetrised."""
    E = np.random.default_rng(seed).standard_normal((n, n))
    return cross_encoder_like(n, rng=seed) + 0.05 * (E - E.T)


@pytest.mark.parametrize("kind", ["noisy", "sharp", "asymmetric"])
@pytest.mark.parametrize(
    ("s", "oversampling"), [(12, 2), (15, 2.4), (10, 1.7), (10, 1.2), (10, 1.1)]
)
def test_cross_validation_by_brute_force(kind, s, oversampling):
    K = {
        "noisy": lambda: cross_encoder_like(60, rng=1),
        "sharp": lambda: rbf(60, seed=1),
        "asymmetric": lambda: skew(60, seed=1),
    }[kind]()
    approximation = tikhonov(
        Similarity.from_matrix(K), s, oversampling=oversampling, rng=5
    )
    S1, S2 = draw(60, s, oversampling, rng=5)
    A = K[np.ix_(S2, S2)]
    ridge = chosen_ridge(A, s)
    expected = core(A, s, ridge)
    np.testing.assert_allclose(
        approximation.core, expected, atol=1e-7 * np.abs(expected).max()
    )
    if len(S2) - len(S1) < 2:
        assert ridge == 0


def test_cross_validation_regularises_noise_and_nothing_else():
    def ridge(K):
        S2 = draw(len(K), 12, 2, rng=0)[1]
        return chosen_ridge(K[np.ix_(S2, S2)], 12)

    assert ridge(cross_encoder_like(60, rng=1)) > 0
    assert ridge(psd(60, rank=4) + 0.1 * np.eye(60)) < ridge(indefinite(60))


# Numerical soundness


def test_repeated_items_do_not_matter():
    K = indefinite(30)
    twice = np.tile(np.arange(30), 2)
    K = K[np.ix_(twice, twice)]
    landmarks = [0, 30, 1, 31, 2]
    for ridge in (0, "cv", 1e-3):
        approximation = tikhonov(
            Similarity.from_matrix(K), landmarks=landmarks, ridge=ridge, rng=0
        )
        assert np.abs(approximation.core).max() < 100
        result = approximation.toarray()
        np.testing.assert_allclose(result[:30], result[30:], atol=1e-10)


def test_matrix_of_zeros():
    approximation = tikhonov(Similarity.from_matrix(np.zeros((20, 20))), 5, rng=0)
    np.testing.assert_array_equal(approximation.toarray(), np.zeros((20, 20)))


@given(st.integers(0, 1000), st.sampled_from([1e-20, 1e-4, 1e12]))
@quick
def test_scale_does_not_matter(seed, scale):
    K = cross_encoder_like(30, rng=seed)
    one = tikhonov(Similarity.from_matrix(K), 8, rng=seed).toarray()
    other = tikhonov(Similarity.from_matrix(scale * K), 8, rng=seed).toarray()
    np.testing.assert_allclose(other / scale, one, atol=1e-7 * np.abs(one).max())


@given(st.integers(0, 1000), st.integers(1, 20))
@quick
def test_a_larger_ridge_shrinks_the_answer(seed, s):
    sim = Similarity.from_matrix(indefinite(20, seed=seed))
    norms = [
        np.linalg.norm(tikhonov(sim, s, ridge=ridge, rng=seed).core)
        for ridge in (0, 1e-3, 1.0, 1e3)
    ]
    assert norms == sorted(norms, reverse=True)


@given(st.integers(0, 1000), st.integers(1, 20))
@quick
def test_asymmetric_form_of_a_symmetric_matrix(seed, s):
    K = indefinite(20, seed=seed)
    one = tikhonov(Similarity.from_matrix(K), s, ridge=0.1, rng=seed)
    other = tikhonov(Similarity.from_matrix(K, symmetric=False), s, ridge=0.1, rng=seed)
    np.testing.assert_allclose(other.toarray(), one.toarray(), atol=1e-10)


@pytest.mark.parametrize("ridge", [-1.0, "auto", None, np.nan])
def test_impossible_ridge(ridge):
    sim = Similarity.from_matrix(psd(10))
    with pytest.raises(ValueError, match='ridge must be "cv" or a number >= 0; got'):
        tikhonov(sim, 3, ridge=ridge)
    assert sim.calls == 0


def test_impossible_landmarks():
    with pytest.raises(ValueError, match='landmarks must be "uniform" or indices'):
        tikhonov(Similarity.from_matrix(psd(10)), 3, landmarks="best")


# Figures of the guide: mean errors at equal budgets


def errors_at(K, budget, n_seeds, *methods):
    """Return an array (method, seed) at a share of the unordered pairs."""
    n = len(K)
    sim = Similarity.from_matrix(K)
    calls = int(budget * n * (n + 1) / 2)
    rows = []
    for method in methods:
        s = largest(method.__name__, n, calls)
        answers = [method(sim, s, rng=seed) for seed in range(n_seeds)]
        assert all(answer.calls <= calls for answer in answers)
        rows.append([error(K, answer) for answer in answers])
    return np.array(rows)


@pytest.mark.parametrize(
    ("budget", "figures"), [(0.1, (0.41, 0.25, 0.19)), (0.4, (0.41, 0.16, 0.13))]
)
def test_simulated_cross_encoder(budget, figures):
    """Guide 5.2; its tolerance on means is 5 %, and SMS varies more than that."""
    K = cross_encoder_like(1000, rng=0)
    errors = errors_at(K, budget, 3, sms_nystrom, sicur, tikhonov)
    sms, cur, ours = errors.mean(axis=1)
    assert sms == pytest.approx(figures[0], rel=0.1)
    assert cur == pytest.approx(figures[1], rel=0.07)
    assert ours <= figures[2] * 1.05
    assert (errors[2] < errors[:2].min(axis=0)).all()


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("budget", "figures"),
    [
        (0.1, (0.431, 0.408, 0.39)),
        (0.2, (0.427, 0.341, 0.32)),
        (0.4, (0.429, 0.282, 0.255)),
    ],
)
def test_real_cross_encoder(budget, figures):
    """Guide 3.8: the first 400 sentences of STS-B, symmetrised."""
    K = gallery.load("stsb", 400).matrix
    errors = errors_at(K, budget, 10, sms_nystrom, sicur, tikhonov)
    sms, cur, ours = errors.mean(axis=1)
    assert sms == pytest.approx(figures[0], rel=0.1)
    assert cur == pytest.approx(figures[1], rel=0.05)
    assert ours <= figures[2]
    assert ours <= 1.02 * min(sms, cur)
    assert (errors[2] < errors[:2].min(axis=0)).mean() >= 0.8


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("budget", [0.1, 0.2])
def test_order_of_the_methods_on_tweets(budget, tweets):
    errors = errors_at(tweets, budget, 5, tikhonov, sms_nystrom, sicur, stacur)
    means = errors.mean(axis=1)
    assert means.tolist() == sorted(means)
    assert (errors[0] < errors[1]).all()


@pytest.fixture(scope="module")
def tweets():
    return gallery.load("twitter", 500).matrix
