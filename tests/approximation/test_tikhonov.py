from functools import partial
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from simlib import METHODS, Similarity, nystrom, tikhonov
from simlib.approximation.fit import Problem
from simlib.approximation.plan import Sides
from simlib.datasets import cross_encoder_like
from simlib.landmarks import draw
from support.matrices import asymmetric, error, indefinite, psd, rbf
from support.ridge import core, plausible

# Exact answers


@pytest.mark.parametrize("make", [indefinite, psd])
def test_without_oversampling_and_ridge_it_is_nystrom(make):
    K = make(40)
    sim = Similarity.from_matrix(K)
    ours = tikhonov(sim, 10, oversampling=1, rng=0)
    assert_allclose(ours.toarray(), nystrom(sim, 10, rng=0).toarray(), atol=1e-7)


def test_infinite_ridge_is_the_zero_matrix():
    approximation = tikhonov(Similarity.from_matrix(psd(20)), 5, ridge=np.inf)
    assert_array_equal(approximation.toarray(), np.zeros((20, 20)))


# The formula and the cross-validation, by normal equations


def held_out_errors(A, s1, ridges):
    """Return the squared off-diagonal error of each fold and ridge, by loops."""
    held_out = range(s1, len(A))
    if len(held_out) < 10:
        folds = list(combinations(held_out, 2))
    else:
        folds = np.array_split(held_out, 5)
    errors = np.zeros((len(folds), len(ridges)))
    for k, fold in enumerate(folds):
        kept = [i for i in range(len(A)) if i not in fold]
        pairs = [(i, j) for i in fold for j in held_out if i != j]
        if not np.array_equal(A, A.T):
            pairs += [(j, i) for i, j in pairs]
        for m, ridge in enumerate(ridges):
            guess = A[:, :s1] @ core(A[kept][:, kept], s1, ridge) @ A[:s1]
            for i, j in pairs:
                errors[k, m] += (A[i, j] - guess[i, j]) ** 2
    return errors


def chosen_ridge(A, s1, C, R):
    """Return the ridge of the least off-diagonal error on held-out entries."""
    if len(A) - s1 < 2:
        return 0.0
    ridges = plausible(A, s1, C, R)
    return ridges[np.argmin(held_out_errors(A, s1, ridges).sum(axis=0))]


@pytest.mark.parametrize("make", [indefinite, rbf, asymmetric])
@pytest.mark.parametrize("ridge", [0, 1e-3, 2.5])
def test_core_by_normal_equations(make, ridge):
    K = make(40)
    approximation = tikhonov(Similarity.from_matrix(K), 8, ridge=ridge, rng=0)
    S1, S2 = draw(40, 8, 2, rng=0)
    U = core(K[np.ix_(S2, S2)], 8, ridge)
    scale = np.abs(U).max()
    assert_allclose(approximation.core, U, atol=1e-8 * scale)
    right = K[:, S1].T if approximation.symmetric else K[S1]
    assert_allclose(approximation.toarray(), K[:, S1] @ U @ right, atol=1e-8 * scale)


NOISY, E = cross_encoder_like(60, rng=1), np.random.default_rng(1).normal(size=(60, 60))
MATRICES = {"noisy": NOISY, "sharp": rbf(60, seed=1), "skew": NOISY + (E - E.T) / 20}


@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize(
    ("s", "oversampling"), [(12, 2), (15, 2.4), (10, 1.7), (10, 1.2), (10, 1.1)]
)
def test_cross_validation_by_brute_force(kind, s, oversampling):
    K = MATRICES[kind]
    approximation = tikhonov(
        Similarity.from_matrix(K), s, oversampling=oversampling, rng=5
    )
    S1, S2 = draw(60, s, oversampling, rng=5)
    A = K[np.ix_(S2, S2)]
    ridge = chosen_ridge(A, s, K[:, S1], K[S1])
    expected = core(A, s, ridge)
    assert_allclose(approximation.core, expected, atol=1e-7 * np.abs(expected).max())
    if len(S2) - len(S1) < 2:
        assert ridge == 0


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("size", "left_out"), [(1.9, 0), (2.1, 18), (3, 20), (99, 22)])
def test_ridges_by_hand(size, left_out, symmetric):
    """One landmark: the answer is size / (1 + ridge)^2 times what K appears to be."""
    column = np.array([[0.0, 1, 1, 1, 1]]).T
    A = np.array([[0.0, 1], [1, size * np.sqrt(5) / 2]])
    R = None if symmetric else column
    problem = Problem(A, column, R, Sides.same(np.array([0])), True)
    ridges = [0.0] + [10 ** (-10 + k / 2) for k in range(21)]
    assert_allclose(problem.ridges(), ridges[left_out:] or [np.inf])


@pytest.mark.parametrize("seed", [48, 278, 776])
def test_where_all_answers_are_too_large_the_core_is_zero(seed):
    """Less the nugget the columns are next to nothing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 3))
    K = np.exp(-rng.choice([1, 3, 6, 10]) * ((X[:, None] - X) ** 2).sum(-1))
    answer = tikhonov(Similarity.from_matrix(K), 2, nugget=True, rng=seed)
    assert error(K, answer) < 1


@pytest.mark.parametrize("nugget", [False, True])
def test_an_answer_is_not_much_larger_than_the_matrix(nugget):
    """Item 0 hardly resembles itself; zeros left out do not show what that does."""
    K = np.diag(np.repeat([1.0, 0.0], 20))
    K[0, 0], K[0, 20:], K[20:, 0] = 1e-3, 1, 1
    sim = Similarity.from_matrix(K)
    plain = []
    for seed in range(20):
        answer = tikhonov(sim, landmarks=[0, 1, 2], nugget=nugget, rng=seed)
        size = np.linalg.norm(answer.left @ answer.core @ answer.left.T)
        assert size <= 2 * np.sqrt(40 / 3) * np.linalg.norm(answer.left) * (1 + 1e-9)
        answer = tikhonov(sim, landmarks=[0, 1, 2], ridge=0, rng=seed)
        plain.append(np.linalg.norm(answer.toarray()))
    assert max(plain) > 1000


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("of", [tikhonov, partial(nystrom, rcond="cv")])
def test_rows_far_larger_than_those_of_the_landmarks(of, seed):
    """Most of the norm is in six rows, of which the columns tell too little."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 5))
    X[:6] *= 100
    K = X @ X.T
    assert error(K, of(Similarity.from_matrix(K), 15, rng=seed)) < 1e-10
    noise = rng.standard_normal((2, 200, 200))
    K += 0.1 * (noise[0] + noise[0].T)
    assert error(K, of(Similarity.from_matrix(K), 15, rng=seed)) < 0.1
    X = rng.standard_cauchy((300, 5))
    K = X @ X.T
    assert error(K, of(Similarity.from_matrix(K), 8, rng=seed)) < 1e-8


def test_rows_far_larger_than_those_of_the_landmarks_of_two_collections():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((200, 5)), rng.standard_cauchy((150, 5))
    X[:6] *= 100
    K = X @ Y.T
    assert error(K, tikhonov(Similarity.from_matrix(K), (15, 15), rng=0)) < 1e-10


@pytest.mark.parametrize("seed", range(8))
def test_a_row_that_the_landmarks_do_not_explain(seed):
    """What predicts all other rows says 20 times too much of a hub and itself."""
    X = np.random.default_rng(seed).standard_normal((200, 6))
    K = np.tanh(X @ X.T / 6)
    K[7] += 5
    K[:, 7] += 5
    answer = tikhonov(Similarity.from_matrix(K), 40, rng=seed)
    assert error(K, answer) < 2


def test_a_core_of_zero_is_told():
    """As in the test above, with too much noise to predict what is left out."""
    rng = np.random.default_rng(1)
    X, noise = rng.standard_normal((200, 5)), rng.standard_normal((200, 200))
    X[:6] *= 100
    sim = Similarity.from_matrix(X @ X.T + noise + noise.T)
    with pytest.warns(UserWarning, match="Take more landmarks"):
        answer = tikhonov(sim, 15, rng=1)
    assert not answer.toarray().any()
    K = np.random.default_rng(19).standard_t(1, (30, 30))
    with pytest.warns(UserWarning, match="its core is zero"):
        answer = tikhonov(Similarity.from_matrix(K + K.T), 4, nugget=True, rng=19)
    assert not answer.core.any()


# Landmarks out of the block


@pytest.mark.parametrize("make", [indefinite, rbf, asymmetric])
def test_pivoted_qr_by_greedy_projection(make):
    K = make(40)
    answer = tikhonov(Similarity.from_matrix(K), 8, landmarks="pivoted_qr", rng=3)
    S2 = draw(40, 8, 2, rng=3)[1]
    A = K[np.ix_(S2, S2)]
    columns = A if answer.symmetric else np.vstack([A, A.T])
    picked = []
    for _ in range(8):  # the column farthest from the span of those before
        basis = np.linalg.qr(columns[:, picked])[0]
        distances = np.linalg.norm(columns - basis @ (basis.T @ columns), axis=0)
        picked.append(int(np.argmax(distances)))
    assert answer.landmarks.tolist() == S2[picked].tolist()
    assert answer.calls == METHODS["tikhonov"].calls(40, 8) or not answer.symmetric


@pytest.mark.parametrize("landmarks", ["pivoted_qr", "adaptive"])
def test_picked_landmarks_answer_as_given_ones_do(landmarks):
    """The sample is what the draw gives, whatever is picked in it."""
    K = NOISY
    answer = tikhonov(Similarity.from_matrix(K), 12, landmarks=landmarks, rng=5)
    S2 = draw(60, 12, 2, rng=5)[1]
    assert set(answer.landmarks) <= set(S2)
    rest = [item for item in S2 if item not in answer.landmarks]
    order = [*answer.landmarks, *rest]
    A = K[np.ix_(order, order)]
    S1 = answer.landmarks
    expected = core(A, 12, chosen_ridge(A, 12, K[:, S1], K[S1]))
    assert_allclose(answer.core, expected, atol=1e-7 * np.abs(expected).max())


# The residual


def nugget_by_brute_force(A, s1, K, S1, ridge):
    """Return the shift and the ridge; errors on the fold against all held out."""
    table = []
    for tau in np.linspace(0, 1, 6) * np.diag(A).mean():
        shifted = A - tau * np.eye(len(A))
        whole = K - tau * np.eye(len(K))
        sides = whole[:, S1], whole[S1]
        ridges = plausible(shifted, s1, *sides) if ridge == "cv" else [ridge]
        folds = held_out_errors(shifted, s1, ridges).T
        for one, errors in zip(ridges, folds, strict=True):
            table.append((sum(errors), tau, one, errors))
    best = min(table, key=lambda row: row[0])
    for tau in sorted({row[1] for row in table}):
        row = min((row for row in table if row[1] == tau), key=lambda row: row[0])
        excess = row[3] - best[3]
        if excess.mean() <= excess.std() / np.sqrt(len(excess)):
            return row[1:3]
    raise AssertionError


@pytest.mark.parametrize("ridge", ["cv", 0.0, 0.1])
@pytest.mark.parametrize("seed", range(4, 7))
def test_nugget_by_brute_force(seed, ridge):
    K = psd(60, seed=seed, rank=5) / 10 + 2 * np.eye(60)
    K += 0.1 * np.random.default_rng(seed).standard_normal((60, 60))
    K = (K + K.T) / 2
    sim = Similarity.from_matrix(K)
    answer = tikhonov(sim, 12, nugget=True, ridge=ridge, rng=5)
    S1, S2 = draw(60, 12, 2, rng=5)
    tau, ridge = nugget_by_brute_force(K[np.ix_(S2, S2)], 12, K, S1, ridge)
    shifted = K - tau * np.eye(60)
    U = core(shifted[np.ix_(S2, S2)], 12, ridge)
    expected = shifted[:, S1] @ U @ shifted[S1]
    np.fill_diagonal(expected, np.diag(K))
    assert tau > 0
    assert_allclose(answer.toarray(), expected, atol=1e-8)


@pytest.mark.parametrize("symmetric", [True, False])
def test_low_rank_plus_a_multiple_of_the_identity_is_exact(symmetric):
    """Rank 3 with diagonal 2, plus 8 I: 8 is on the grid of shifts."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (60, 3))
    K = (signs * [1.5, 1.5, -1.0]) @ signs.T + 8 * np.eye(60)
    sim = Similarity.from_matrix(K, symmetric=symmetric)
    assert error(K, tikhonov(sim, 12, rng=0)) > 0.3
    answer = tikhonov(sim, 12, nugget=True, rng=0)
    assert_allclose(answer.toarray(), K, atol=1e-9)
    assert answer.residual.nnz == 60


@pytest.mark.parametrize("make", [indefinite, asymmetric])
@pytest.mark.parametrize("options", [{}, {"nugget": True}, {"oversampling": 3}])
def test_overlay_returns_what_was_evaluated_and_changes_nothing_else(make, options):
    K = make(40)
    plain, laid = (
        tikhonov(Similarity.from_matrix(K), 6, overlay=overlay, rng=1, **options)
        for overlay in (False, True)
    )
    S1, S2 = draw(40, 6, options.get("oversampling", 2), rng=1)
    seen = np.zeros((40, 40), dtype=bool)
    seen[:, S1] = seen[S1] = seen[np.ix_(S2, S2)] = True
    if options.get("nugget"):
        np.fill_diagonal(seen, True)
    expected = np.where(seen, K, plain.toarray())
    assert_allclose(laid.toarray(), expected, atol=1e-12)
    assert laid.residual.nnz <= seen.sum()
    assert laid.calls == plain.calls
    assert laid.symmetric == plain.symmetric
    assert error(K, laid) < error(K, plain)
    i = np.array([0, S1[0], 7])
    assert_allclose(laid.rows(i), expected[i], atol=1e-12)
    x = np.arange(40.0)
    assert_allclose(laid @ x, expected @ x, atol=1e-10)


def test_new_items_of_a_matrix_with_a_nugget():
    """Off the diagonal the answer for old items, treated as new, is the same."""
    K = psd(60, rank=4) + 3 * np.eye(60)
    answer = tikhonov(Similarity.from_matrix(K), 12, nugget=True, rng=0)
    Z, signs = answer.embedding()
    others = np.setdiff1d(np.arange(60), answer.landmarks)
    new = answer.extend(K[np.ix_(others, answer.landmarks)])
    assert_allclose(new, Z[others], atol=1e-12)
    assert_allclose(
        (new * signs) @ Z.T + answer.residual.toarray()[others],
        answer.rows(others),
        atol=1e-12,
    )


def test_large_numbers_in_single_precision():
    K = rbf(40).astype(np.float32)
    small, large = (
        tikhonov(Similarity.from_matrix(K * np.float32(scale)), 8, rng=0)
        for scale in (1, 2.0**64)
    )
    scaled = K.astype(float) * 2.0**64
    assert error(scaled, large) == pytest.approx(error(K, small), rel=1e-3)


@pytest.mark.parametrize("make", [indefinite, asymmetric])
@pytest.mark.parametrize("s2", [15, 16, 19])
def test_held_out_errors_by_loops(make, s2):
    K = make(30)
    R = None if make is indefinite else K[:6].T
    problem = Problem(K[:s2, :s2], K[:, :6], R, Sides.same(np.arange(6)), True)
    ridges = np.array([0.1, 1.0, 10.0])
    assert_allclose(
        problem.held_out_errors(ridges), held_out_errors(K[:s2, :s2], 6, ridges)
    )
