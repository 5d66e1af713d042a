"""Methods on similarities between two collections, against the formulas in NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from simlib import (
    METHODS,
    BudgetExceeded,
    LowRank,
    Similarity,
    SimilarityFeatures,
    anchored,
    approximate_to,
    estimate_error,
    estimate_spectrum,
    largest,
    overlay,
    relative_error,
    sicur,
    skeleton,
    stacur,
    tikhonov,
)
from simlib.approximation.fit import Problem
from simlib.approximation.plan import Sides
from support.matrices import counted

TWO = [name for name, method in METHODS.items() if method.two]
ONE = [name for name, method in METHODS.items() if not method.two]


def planted(m, n, rank=5, noise=0.0, seed=0):
    """Scores of m queries and n documents, and vectors that explain part of them."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((m, rank)), rng.standard_normal((n, rank))
    return np.tanh(X @ Y.T / rank) + noise * rng.standard_normal((m, n)), (X, Y)


@pytest.mark.parametrize("shape", [(12, 30), (30, 12), (20, 20), (1, 9), (9, 1)])
def test_cores_by_their_formulas(shape):
    (K, _), rng = planted(*shape), np.random.default_rng(3)
    r, c = min(4, shape[0]), min(6, shape[1])
    S1 = R1, C1 = rng.permutation(shape[0])[:r], rng.permutation(shape[1])[:c]
    for method, options in (
        (skeleton, {}),
        (sicur, {}),
        (sicur, {"oversampling": 1}),
        (stacur, {}),
        (tikhonov, {"ridge": 0.3, "oversampling": 2 if min(shape) > 1 else 1}),
    ):
        asked, sim = counted(K)
        answer = method(sim, landmarks=S1, rng=0, **options)
        assert answer.shape == shape
        assert_array_equal(answer.landmarks, C1)
        R2 = answer.row_landmarks
        assert_array_equal(R2[:r], R1)
        assert_array_equal(answer.left, K[:, C1])
        assert_array_equal(answer.right, K[R2].T)
        B = K[np.ix_(R2, C1)]
        if method in (skeleton, sicur):
            expected = np.linalg.pinv(B, rcond=1e-8)
        elif method is stacur:
            C = K[:, C1]
            gram = np.linalg.pinv(C.T @ C, rcond=1e-14)
            expected = shape[0] / R2.size * gram @ B.T
        else:  # of the block that was read besides the whole lines
            rows, columns = np.zeros(shape[0], bool), np.zeros(shape[1], bool)
            inside = [p for p in asked if p[0] not in R1 and p[1] not in C1]
            rows[list({i for i, _ in inside}) + R1.tolist()] = True
            columns[list({j for _, j in inside}) + C1.tolist()] = True
            left = np.linalg.inv(K[rows][:, C1].T @ K[rows][:, C1] + 0.3 * np.eye(c))
            D = K[R1][:, columns]
            F = left @ K[rows][:, C1].T
            G = np.linalg.solve(D @ D.T + 0.3 * np.eye(r), D)
            expected = F @ K[np.ix_(rows, columns)] @ G.T
        assert_allclose(answer.core, expected, atol=1e-7 * np.abs(expected).max())
        assert sim.calls == answer.calls == len(set(asked)) == len(asked)


@pytest.mark.parametrize("name", TWO)
@given(st.integers(1, 9), st.integers(1, 14), st.data())
@settings(max_examples=25)
def test_counts_limits_and_exactness(name, m, n, data):
    """The price is told, kept, and refused before the first call; rank 1 is exact."""
    s = data.draw(st.integers(1, min(m, n)))
    numbers = data.draw(st.sampled_from([s, (s, min(n, s + 2)), (min(m, s + 3), s)]))
    K = np.outer(np.arange(1.0, m + 1), np.arange(2.0, n + 2))
    asked, sim = counted(K)
    method = METHODS[name]
    answer = method.function(sim, numbers, rng=0)
    assert sim.calls == answer.calls == len(set(asked)) == len(asked)
    assert sim.calls == method.calls((m, n), numbers)
    if name != "stacur":
        assert_allclose(answer.toarray(), K, rtol=1e-6)
    again = method.function(sim, numbers, rng=0)
    assert_array_equal(again.toarray(), answer.toarray())
    asked, sim = counted(K, limit=answer.calls - 1)
    with pytest.raises(BudgetExceeded, match="would fit"):
        method.function(sim, numbers, rng=0)
    assert asked == []


@pytest.mark.parametrize("name", TWO)
def test_largest_by_trying_all(name):
    for calls in (40, 200, 500):
        costs = [METHODS[name].calls((15, 40), s) for s in range(1, 16)]
        fitting = [s for s, cost in enumerate(costs, 1) if cost <= calls]
        if fitting:
            assert largest(name, (15, 40), calls) == fitting[-1]
        else:
            with pytest.raises(ValueError, match="does not pay"):
                largest(name, (15, 40), calls)


def test_what_would_fit():
    K, _ = planted(50, 200)
    _, sim = counted(K, limit=2000)
    with pytest.raises(BudgetExceeded, match=r"of which \(6, 18\) would fit"):
        skeleton(sim, (10, 30), rng=0)
    assert skeleton(sim, (6, 18), rng=0).calls <= 2000
    with pytest.raises(BudgetExceeded, match="of which 8 would fit"):
        tikhonov(counted(K, limit=2000)[1], 20, rng=0)
    assert largest("tikhonov", (50, 200), 2000) == 8


@pytest.mark.parametrize("name", TWO)
def test_draws_grow_and_types_stay(name):
    K, _ = planted(40, 60)
    sim = Similarity.from_matrix(K.astype("f4"))
    small, large = (METHODS[name].function(sim, s, rng=1) for s in ((4, 6), (9, 8)))
    assert_array_equal(large.landmarks[:6], small.landmarks)
    assert_array_equal(large.row_landmarks[:4], small.row_landmarks[:4])
    assert large.dtype == np.float32
    again = METHODS[name].function(Similarity.from_matrix(K), (9, 8), rng=1)
    assert_array_equal(again.landmarks, large.landmarks)


def held_out_errors(A, r, c, ridge):
    """Five folds of the rows and columns of a block that are no landmarks."""
    rows, columns = np.arange(r, len(A)), np.arange(c, A.shape[1])
    number, total = min(5, max(rows.size, columns.size)), []
    pairs = zip(
        np.array_split(rows, number), np.array_split(columns, number), strict=True
    )
    for row_fold, column_fold in pairs:
        i = [k for k in range(len(A)) if k not in row_fold]
        j = [k for k in range(A.shape[1]) if k not in column_fold]
        B, D = A[i][:, :c], A[:r][:, j]
        F = np.linalg.solve(B.T @ B + ridge * np.eye(c), B.T)
        G = np.linalg.solve(D @ D.T + ridge * np.eye(r), D)
        error = (A - A[:, :c] @ F @ A[np.ix_(i, j)] @ G.T @ A[:r]) ** 2
        total.append(
            error[row_fold][:, columns].sum() + error[rows][:, column_fold].sum()
        )
    return total


@pytest.mark.parametrize("block", [(9, 14), (5, 14), (14, 8), (20, 30)])
def test_cross_validation_by_loops(block):
    K, _ = planted(20, 30, noise=0.1)
    A = K[: block[0], : block[1]]
    S1 = Sides(np.arange(4), np.arange(7))
    problem = Problem(A, K[:, :7], K[:4].T, S1, False)
    ridges = np.array([0.1, 1.0, 10.0])
    errors = problem.held_out_errors(ridges).T
    assert_allclose(errors, [held_out_errors(A, 4, 7, ridge) for ridge in ridges])


@pytest.mark.parametrize("landmarks", ["pivoted_qr", "adaptive"])
def test_selected_landmarks(landmarks):
    K, _ = planted(30, 50)
    K[7], K[:, 11] = 40, -30  # what is unusual is found
    asked, sim = counted(K)
    answer = tikhonov(sim, (15, 20), oversampling=2, landmarks=landmarks, rng=0)
    assert 7 in answer.row_landmarks
    assert 11 in answer.landmarks
    assert answer.calls == sim.calls == len(asked)
    assert answer.calls == METHODS["tikhonov"].calls((30, 50), (15, 20))


def test_overlay_is_exact_where_it_looked():
    K, _ = planted(30, 50, noise=0.2)
    for answer in (
        tikhonov(sim := Similarity.from_matrix(K), (5, 8), overlay=True, rng=0),
        LowRank(
            *(plain := sicur(sim, 6, rng=0)).left[None],
            plain.core,
            plain.right,
            residual=overlay(sim, plain),
        ),
    ):
        i, j, values = (np.concatenate(part) for part in zip(*sim.known(), strict=True))
        near = np.isclose(answer.entries(i, j), values, atol=1e-12)
        assert near.mean() > 0.5
        rows, columns = answer.residual.nonzero()
        assert_allclose(answer.entries(rows, columns), K[rows, columns], atol=1e-12)
    wide = overlay(sim, plain, ([0, 1], [2, 3, 4]))
    assert set(zip(*wide.nonzero(), strict=True)) >= {(0, 2), (1, 4)}
    with pytest.raises(ValueError, match="pair"):
        overlay(sim, plain, [0, 1, 2])


# A companion.


def test_a_companion_of_two_factors():
    K, (X, Y) = planted(60, 90, rank=20, noise=0.02)
    sim = Similarity.from_matrix(K)
    alone = relative_error(K, tikhonov(sim, 10, rng=0))
    answer = anchored(sim, 10, (X, Y), rng=0)
    assert relative_error(K, answer) < alone / 2
    assert answer.weight == 1
    only = anchored(sim, 10, (X, Y), oversampling=1, rng=0)  # nothing else is read
    assert relative_error(K, only) < alone / 2
    gram = Similarity.from_matrix(X @ Y.T)
    assert_allclose(
        answer.toarray(), anchored(sim, 10, gram, rng=0).toarray(), atol=1e-10
    )
    there = anchored(
        Similarity(X, lambda x, y: np.tanh(x @ y / 20), columns=Y),
        10,
        lambda x, y: x @ y,
        rng=0,
    )
    assert relative_error(np.tanh(X @ Y.T / 20), there) < 0.01
    x = np.random.default_rng(0).standard_normal(90)
    assert_allclose(answer @ x, answer.toarray() @ x)
    assert_allclose(answer.T @ x[:60], answer.toarray().T @ x[:60])
    assert_allclose(answer.diagonal(), np.diagonal(answer.toarray()))
    assert_allclose(answer.T.trace(), np.trace(answer.toarray()))
    assert_allclose(
        answer.entries([3, 59], [0, 89]), answer.toarray()[[3, 59], [0, 89]]
    )


def test_a_companion_is_a_function_of_the_items_of_a_view():
    x, y = np.random.default_rng(0).standard_normal((2, 60, 4))
    sim = Similarity(x, lambda x, y: np.tanh(x @ y), columns=y[:50])
    view, by_array = sim.map(np.exp), (x, y[:50])
    for ask in (
        lambda cheap: anchored(view, 5, cheap, rng=0),
        lambda cheap: (
            approximate_to(
                sim, 0.3, method="anchored", cheap=cheap, rng=0
            ).approximation
        ),
    ):
        by_function = ask(lambda x, y: x @ y)
        assert_allclose(by_function.toarray(), ask(by_array).toarray())


def test_a_useless_companion_is_left_out():
    K, _ = planted(60, 90)
    rng = np.random.default_rng(5)
    noise = rng.standard_normal((60, 3)), rng.standard_normal((90, 3))
    answer = anchored(Similarity.from_matrix(K), 15, noise, rng=0)
    assert answer.weight == 0
    alone = tikhonov(Similarity.from_matrix(K), 15, rng=0)
    assert relative_error(K, answer) < 1.2 * relative_error(K, alone)


def test_a_compressed_companion_takes_in_new_rows(tmp_path):
    K, (X, Y) = planted(70, 90, rank=20)
    sim = Similarity.from_matrix(K[:60])
    answer = anchored(sim, 10, (X[:60], Y), base_rank=40, rng=0)
    assert_allclose(answer.left.shape, (60, 10 + 40))
    new = answer.extend(K[60:, answer.landmarks], X[60:] @ Y[answer.base_landmarks].T)
    error = np.linalg.norm(new @ answer.right.T - K[60:]) / np.linalg.norm(K[60:])
    assert error < 0.1
    answer.save(tmp_path / "answer")
    loaded = LowRank.load(tmp_path / "answer")
    assert_array_equal(loaded.toarray(), answer.toarray())
    for turned in (answer.T, answer.H, loaded.T, answer.T.T.T):  # for new columns
        inside = K[turned.landmarks].T, Y @ X[turned.base_landmarks].T
        again = turned.extend(*inside) @ turned.right.T
        assert_allclose(again, turned.toarray(), atol=1e-6)


def test_new_rows_without_a_companion():
    K, _ = planted(70, 90)
    for shape in ((60, 90), (60, 60)):
        inside = K[: shape[0], : shape[1]]
        answer = tikhonov(Similarity.from_matrix(inside, symmetric=False), 20, rng=0)
        inside = answer.left @ answer.core
        assert_allclose(answer.extend(answer.left), inside)
        new = answer.extend(K[60:, answer.landmarks]) @ answer.right.T
        missed = np.linalg.norm(new - K[60:, : shape[1]])
        assert missed < 0.2 * np.linalg.norm(K[60:, : shape[1]])
    with pytest.raises(ValueError, match="landmarks; got 3"):
        answer.extend(K[60:, :3])


def test_companions_that_do_not_fit():
    K, (X, Y) = planted(30, 40)
    sim = Similarity.from_matrix(K)
    for cheap, message in [
        (X, "a pair, for rows and columns"),
        ((Y, X), "both must have the same items"),
        ((X, Y[:, :3]), "need as many"),
        (Similarity.from_matrix(K.T.copy()), "30 rows and 40 columns"),
        (Similarity.from_matrix(np.eye(30)), "has 30 items"),
    ]:
        with pytest.raises(ValueError, match=message):
            anchored(sim, 5, cheap)


# The error.


def test_an_error_estimate_covers_and_is_exact_at_the_end():
    K, _ = planted(80, 120, noise=0.2)
    inside = 0
    for seed in range(40):
        asked, sim = counted(K)
        answer = tikhonov(sim, 10, rng=seed)
        before = sim.calls
        error = estimate_error(sim, answer, 500, rng=seed)
        assert sim.calls == before + 500 == len(set(asked))
        inside += error.low <= relative_error(K, answer) <= error.high
        assert error.diagonal == 0
    assert inside >= 34
    error = estimate_error(sim, answer, 10**6)
    assert error.value == pytest.approx(relative_error(K, answer), rel=1e-10)
    assert error.low == error.value == error.high


@pytest.mark.parametrize("method", ["tikhonov", "sicur", "anchored"])
def test_approximation_to_a_target(method):
    K, cheap = planted(120, 200, rank=8, noise=0.02)
    options = {"cheap": cheap} if method == "anchored" else {}
    _, sim = counted(K)
    result = approximate_to(sim, 0.25, method=method, rng=0, **options)
    assert result.reason == "target"
    assert relative_error(K, result.approximation) < 0.25
    result = approximate_to(counted(K)[1], 1e-9, method=method, rng=0, **options)
    assert result.approximation.calls == K.size  # all of it was needed
    assert relative_error(K, result.approximation) < 1e-9
    assert approximate_to(counted(K, limit=3000)[1], 1e-9, rng=0).reason == "limit"


def test_methods_of_one_collection_name_what_to_do():
    K, _ = planted(20, 20)
    _, sim = counted(K)
    for name in ONE:
        with pytest.raises(ValueError, match="Take tikhonov"):
            METHODS[name].function(sim, 5)
        with pytest.raises(ValueError, match="Take tikhonov"):
            largest(name, (20, 20), 100)
        with pytest.raises(ValueError, match="Take tikhonov"):
            approximate_to(sim, 0.1, method=name)
    with pytest.raises(ValueError, match="Take tikhonov"):
        estimate_spectrum(sim, 10)
    with pytest.raises(ValueError, match="one collection"):
        SimilarityFeatures(kernel=sim, n_landmarks=5).fit(np.arange(20))
    with pytest.raises(ValueError, match="Leave `nugget` out"):
        tikhonov(sim, 5, nugget=True)
    with pytest.raises(ValueError, match="symmetrize"):
        sicur(sim, 5, symmetrize=True)
    for numbers in ((5,), (5, 6, 7), (0, 5), (21, 5), (5, 2.5)):
        with pytest.raises((ValueError, TypeError), match="landmarks"):
            tikhonov(sim, numbers)
    with pytest.raises(ValueError, match="landmarks of two collections is a pair"):
        tikhonov(sim, landmarks=np.arange(5))
    with pytest.raises(TypeError, match="number of landmarks"):
        tikhonov(Similarity.from_matrix(K), (5, 5))
    assert sim.calls == 0
