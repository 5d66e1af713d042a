"""The core of the residual against a cheap similarity."""

import pickle
import sys
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.isotonic import IsotonicRegression

from simlib import (
    METHODS,
    BudgetExceeded,
    Similarity,
    SimilarityError,
    anchored,
    approximate_to,
    largest,
    relative_error,
    tikhonov,
)
from simlib.approximation import COMPANION_METHODS, companion
from simlib.approximation.calibration import Interpolation
from simlib.approximation.companion import InnerProducts
from simlib.datasets import cross_encoder_like
from simlib.landmarks import draw
from simlib.neighbors import nearest, pairs_above, search
from support.matrices import Recorder, asymmetric, error, indefinite, psd, quick, rbf
from support.regression import peak
from support.ridge import core, plausible

inner_workings = sys.modules["simlib.approximation.calibration"]


def both(K, G):
    return Similarity.from_matrix(K), Similarity.from_matrix(G)


def levels(n, *, seed=0):
    """Return similarities of 12 levels off the diagonal, 1.5 on it."""
    K = np.ceil(12 * rbf(n, seed=seed)) / 12
    np.fill_diagonal(K, 1.5)
    return K


TRANSFORMS = {
    "itself": lambda K: K,
    "convex": np.exp,
    "far away": lambda K: 1e6 * K**3 - 7,
    "falling": lambda K: -np.sqrt(K),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("base_rank", [None, 60])
def test_a_monotone_transform_tells_everything(name, base_rank):
    K = levels(60)
    sim, cheap = both(K, TRANSFORMS[name](K))
    answer = anchored(sim, 8, cheap, base_rank=base_rank, rng=0)
    assert error(K, answer) < 1e-9
    assert answer.weight == 1
    assert error(K, tikhonov(sim, 8, rng=0)) > 0.1


@pytest.mark.parametrize("sign", [1, -1])
def test_large_entries_that_were_not_evaluated(sign):
    """Some are 16 times as large as any that were."""
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((400, 4)), rng.standard_normal((400, 400)) / 50
    K = np.exp(x @ x.T / 2)
    sim, cheap = both(K, sign * K * np.exp(noise + noise.T))
    answer = anchored(sim, 20, cheap, rng=4)
    i, j = np.triu_indices(400)
    assert K.max() > 15 * np.nanmax(sim.informed().peek(i, j))
    assert error(K, answer) < 0.05
    sim, cheap = both(np.tanh(K), K)  # bounded: no line goes on
    assert error(np.tanh(K), anchored(sim, 20, cheap, rng=4)) < 0.001


@pytest.mark.parametrize("power", [1000, 1018, -1000])
def test_a_companion_of_any_size(power):
    """Beyond the largest number no line goes on."""
    x = np.random.default_rng(0).standard_normal((80, 3))
    K = np.exp(x @ x.T / 4)

    def off(e):
        sim, cheap = both(K, np.ldexp(K, e))
        return error(K, anchored(sim, 10, cheap, rng=0))

    assert off(0) < 0.02
    if power == 1018:
        assert off(power) < 0.3
    else:
        assert off(power) == pytest.approx(off(0), rel=1e-9)


@pytest.mark.parametrize("make", [indefinite, asymmetric])
@pytest.mark.parametrize("base_rank", [None, 60])
def test_cheap_plus_low_rank(make, base_rank):
    """The core sees the residual alone: rank 3 needs 3 landmarks."""
    G = make(60, seed=1)
    K = G + make(60, seed=2, rank=3)
    sim, cheap = both(K, G)
    answer = anchored(sim, 6, cheap, calibration=None, base_rank=base_rank, rng=0)
    assert answer.weight == 1
    assert error(K, answer) < 1e-6
    assert error(K, tikhonov(sim, 6, rng=0)) > 0.5


@pytest.mark.parametrize("make", [indefinite, psd, asymmetric])
@pytest.mark.parametrize("base_rank", [None, 7])
def test_all_landmarks_give_the_matrix(make, base_rank):
    K = make(24)
    sim, cheap = both(K, make(24, seed=1))
    assert error(K, anchored(sim, 24, cheap, base_rank=base_rank, rng=0)) < 1e-9


# By brute force: scikit-learn, normal equations, and loops over what was read


def calibrated(K, G, S1, S2):
    """Return f(G), fitted to what was read, of a symmetric matrix each pair once.

    Beyond an eighth of the range that was met, the line of the nearer half of it.
    """
    read = np.zeros(K.shape, dtype=bool)
    read[:, S1] = read[S1] = read[np.ix_(S2, S2)] = True
    read = np.tril(read) if np.array_equal(K, K.T) else read
    off = read & ~np.eye(len(K), dtype=bool)
    scale = 2.0 ** (20 - np.floor(np.log2(np.abs(G)) + 1))
    G = np.round(G * scale) / scale
    rising = bool(spearmanr(G[off], K[off])[0] > 0)
    f = IsotonicRegression(increasing=rising, out_of_bounds="clip")
    f.fit(G[read], K[read])
    low, high = G[read].min(), G[read].max()
    bottom, middle, top = f.predict([low, (low + high) / 2, high])
    over = np.maximum(G - high - (high - low) / 8, 0) * (top - middle)
    under = np.maximum(low - G - (high - low) / 8, 0) * (middle - bottom)
    B = f.predict(G.ravel()).reshape(K.shape)
    return B + (over - under) / ((high - low) / 2)


def predictions(R, S1, kept, ridge):
    """Return the answer for R of the landmarks S1, fitted to the items kept."""
    s1 = len(S1)
    return R[:, S1] @ core(R[np.ix_(kept, kept)], s1, ridge) @ R[S1]


def score(R, S1, S2, ridge):
    """Return the squared error of everything that a fit was made without."""
    held_out, others = S2[len(S1) :], np.setdiff1d(np.arange(len(R)), S1)
    symmetric = np.array_equal(R, R.T)
    total = 0.0
    folds = combinations(held_out, 2)
    if len(held_out) >= 10:
        folds = np.array_split(held_out, 5)
    for fold in folds:
        kept = [i for i in S2 if i not in fold]
        E = (R - predictions(R, S1, kept, ridge)) ** 2
        np.fill_diagonal(E, 0)
        total += E[np.ix_(fold, held_out)].sum()
        total += 0 if symmetric else E[np.ix_(held_out, fold)].sum()
    for fold in np.array_split(S1, min(len(S1), 10)):
        kept = [i for i in S2 if i not in fold]
        E = (R - predictions(R, [i for i in S1 if i not in fold], kept, ridge)) ** 2
        total += E[np.ix_(others, fold)].sum()
        total += 0 if symmetric else E[np.ix_(fold, others)].sum()
    return total


@pytest.mark.parametrize("kind", ["companion", "noise", "falling", "asymmetric"])
@pytest.mark.parametrize(("s", "oversampling"), [(12, 2), (6, 2), (10, 1.3), (5, 1)])
def test_brute_force(kind, s, oversampling):
    rng = np.random.default_rng(3)
    K = cross_encoder_like(50, rng=1)
    E = rng.standard_normal((50, 50))
    if kind == "asymmetric":
        K, E = K + 0.05 * (E - E.T), E + 0.3 * E.T
    else:
        E = E + E.T
    G = {"companion": K + 0.05 * E, "noise": E, "falling": 0.1 * E - K}.get(kind, K)
    if kind == "asymmetric":
        G = np.tanh(3 * K) + 0.05 * E
    sim, cheap = both(K, G)
    answer = anchored(sim, s, cheap, oversampling=oversampling, rng=5)
    S1, S2 = draw(50, s, oversampling, rng=5)
    B = calibrated(K, G, S1, S2)
    table = []
    for weight in (0, 0.5, 1):
        R = K - weight * B
        ridges = plausible(R[np.ix_(S2, S2)], s, R[:, S1], R[S1])
        for ridge in [*ridges, np.inf]:
            table.append((score(R, S1, S2, ridge), weight, ridge))
    _, weight, ridge = min(table, key=lambda row: row[0])
    assert answer.weight == weight
    assert answer.ridge == pytest.approx(ridge)
    R = K - weight * B
    expected = weight * B + predictions(R, S1, S2, ridge)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(answer.toarray(), expected, atol=1e-7 * scale)
    if kind == "companion":
        assert weight > 0


# The answer is an operator that computes what it is asked for


def examples():
    n = 30
    symmetric = both(levels(n), rbf(n, seed=0))
    K, G = asymmetric(n), asymmetric(n, seed=1)
    return {
        "symmetric": symmetric,
        "asymmetric": both(K + G, G),
        "of a symmetric one": both(K + indefinite(n), indefinite(n)),
    }


@pytest.mark.parametrize("kind", examples())
@pytest.mark.parametrize("base_rank", [None, 12])
def test_every_question_against_the_dense_matrix(kind, base_rank, monkeypatch):
    monkeypatch.setattr(companion, "COMPUTED", 7 * 30)  # strips of seven rows
    sim, cheap = examples()[kind]
    answer = anchored(sim, 6, cheap, base_rank=base_rank, rng=0)
    assert answer.weight > 0
    assert answer.symmetric == sim.symmetric
    factors = answer.left @ answer.core @ answer.right.T
    dense = answer.toarray()
    rest = 0 if answer.residual is None else answer.residual @ np.eye(30)
    np.testing.assert_allclose(dense, factors + rest, atol=1e-12)
    rng = np.random.default_rng(0)
    i, j = rng.integers(30, size=(2, 80))
    i[:5] = j[:5]
    X = rng.standard_normal((30, 4))
    for matrix, expected in ((answer, dense), (answer.T, dense.T)):
        close = {"atol": 1e-11}
        np.testing.assert_allclose(matrix.entries(i, j), expected[i, j], **close)
        np.testing.assert_allclose(matrix.rows(i), expected[i], **close)
        np.testing.assert_allclose(matrix.diagonal(), np.diag(expected), **close)
        np.testing.assert_allclose(matrix @ X, expected @ X, **close)
        np.testing.assert_allclose(matrix @ X[:, 0], expected @ X[:, 0], **close)
        np.testing.assert_allclose(matrix.rmatvec(X[:, 0]), expected.T @ X[:, 0])
        assert matrix.norm() == pytest.approx(np.linalg.norm(expected))
        assert matrix.trace() == pytest.approx(np.trace(expected))
    again = pickle.loads(pickle.dumps(answer))
    np.testing.assert_array_equal(again.toarray(), dense)
    for one in (answer, again):
        parts = one.base_landmarks, one.base_row_landmarks, one.calibration.knots
        assert not any(part.flags.writeable for part in parts)
    for form in ("csr", "coo", "bsr", "dia"):
        sparse = scipy.sparse.eye_array(30, 4, format=form)
        np.testing.assert_allclose(answer @ sparse, dense[:, :4], atol=1e-11)
    if sim.symmetric:
        values, _ = answer.eigh(3)
        exact = np.linalg.eigvalsh(dense)
        np.testing.assert_allclose(values, exact[np.argsort(-abs(exact))[:3]])


@given(st.integers(2, 20_000), st.integers(0, 99), st.booleans())
@quick
def test_thinned_knots(size, seed, rising):
    rng = np.random.default_rng(seed)
    knots = np.unique(rng.standard_normal(size))
    values = np.sort(rng.standard_t(1, knots.size))
    values = values if rising else values[::-1]
    fewer, kept = inner_workings._thinned(knots, values)
    assert fewer.size <= 4096
    if knots.size <= 4096:
        assert fewer.size == knots.size
    found = np.interp(knots, fewer, kept)
    assert np.abs(found - values).max() <= np.ptp(values) / 2048
    whole = np.rint(1024 * values)
    fewer, kept = inner_workings._thinned(knots, whole)
    for power in (-1074, 900):
        same, its = inner_workings._thinned(knots, np.ldexp(whole, power))
        np.testing.assert_array_equal(same, fewer)
        np.testing.assert_array_equal(its, np.ldexp(kept, power))


def test_nothing_of_size_n_by_n_is_formed():
    n = 2500
    Z = np.random.default_rng(0).standard_normal((n, 8))
    sim = Similarity(Z, lambda x, y: np.exp(x @ y.T / 8), batch="block")

    def asked():
        answer = anchored(sim, 10, Z, rng=0)
        assert answer.weight == 1
        rows, _ = answer.rows(range(20)), answer.diagonal()
        np.testing.assert_allclose((answer @ np.ones(n))[:20], rows.sum(axis=1))

    assert peak(asked) < 8 * n * n / 2  # half of one such array


# With base_rank it consists of factors


@pytest.mark.parametrize("kind", examples())
def test_compressed_answer_embeds_items_old_and_new(kind):
    sim, cheap = examples()[kind]
    answer = anchored(sim, 6, cheap, base_rank=12, rng=0)
    assert answer.rank == 18
    assert answer.residual is None
    dense = answer.toarray()
    Z, signs = answer.embedding()
    mean = (Z * signs) @ Z.T
    np.testing.assert_allclose(mean, (dense + dense.T) / 2, atol=1e-10)
    S1, S3 = answer.landmarks, answer.base_landmarks
    sides = [(K.columns(S), K.rows(S).T) for K, S in ((sim, S1), (cheap, S3))]
    columns = [side[0] if sim.symmetric else np.hstack(side) for side in sides]
    np.testing.assert_allclose(answer.extend(*columns), Z, atol=1e-10)
    with pytest.raises(ValueError, match="cheap_columns"):
        answer.extend(columns[0])
    turned = answer.T
    np.testing.assert_allclose(turned.toarray(), dense.T, atol=1e-12)
    with pytest.raises(ValueError, match="cheap_columns"):
        turned.extend(columns[0])


# Which cheap similarity helps, and which is left out


@pytest.mark.parametrize("noise", [1e-16, 1e-7])
def test_rounding_tells_nothing(noise):
    """Cosines of items with themselves are 1, or nearly so, and none the larger."""
    K = cross_encoder_like(60, rng=0)
    Z = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 60)))[0][:, :20]
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    E = noise * np.random.default_rng(1).standard_normal((60, 60))
    G = Z @ Z.T
    np.fill_diagonal(G, 1)
    sim = Similarity.from_matrix(K)
    exact, rounded, falling = (
        anchored(sim, 6, Similarity.from_matrix(cheap), rng=0).toarray()
        for cheap in (G, G * (1 + E + E.T), -G * (1 + E + E.T))
    )
    np.testing.assert_allclose(rounded, exact, atol=1e-4)
    np.testing.assert_allclose(falling, rounded, atol=1e-9)


def test_a_harmful_companion_is_left_out():
    """Uncalibrated noise, many times as large as the matrix."""
    K = cross_encoder_like(200, rng=0)
    sim, cheap = both(K, 100 * indefinite(200))
    answer = anchored(sim, 10, cheap, calibration=None, rng=0)
    assert answer.weight == 0
    assert answer.residual is None
    assert answer.base_landmarks.size == 0
    compressed = anchored(sim, 10, cheap, calibration=None, base_rank=50, rng=0)
    np.testing.assert_array_equal(compressed.toarray(), answer.toarray())
    Z, _ = answer.embedding()
    others = np.setdiff1d(range(200), answer.landmarks)
    columns = K[np.ix_(others, answer.landmarks)]
    np.testing.assert_allclose(compressed.extend(columns), Z[others], atol=1e-9)


# Calls and seeds


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("s", [1, 4, 15])
def test_both_kinds_of_calls(symmetric, s):
    K = (indefinite if symmetric else asymmetric)(15)
    dear, cheap = Recorder(K), Recorder(K + 1)
    sim, companion = (
        Similarity(range(15), function, symmetric=symmetric, check_symmetry=False)
        for function in (dear, cheap)
    )
    answer = anchored(sim, s, companion, rng=0)
    plain = tikhonov(Similarity.from_matrix(K), s, rng=0)
    for recorder, counter in ((dear, sim), (cheap, companion)):
        asked = recorder.unordered if symmetric else recorder.asked
        assert len(asked) == len(set(asked)) == counter.calls == plain.calls
    assert answer.calls == plain.calls
    answer.toarray(), answer @ np.ones(15), answer.diagonal()
    assert sim.calls == answer.calls
    assert (companion.calls > answer.calls) == (answer.weight > 0)


def test_a_product_with_a_symmetric_companion_computes_half_of_it():
    K = levels(40)
    sim, cheap = both(K, K)
    answer = anchored(sim, 4, cheap, rng=0)
    calls = cheap.calls
    answer @ np.ones((40, 3))
    assert cheap.calls == calls + 40 * 41 // 2


def test_limits_of_both():
    K = levels(20)
    calls = anchored(*both_of(K, None, None), rng=0).calls
    compressed = calls + METHODS["tikhonov"].calls(20, 6)
    for limits, options in (
        ((calls - 1, None), {}),
        ((None, calls - 1), {}),
        ((None, compressed - 1), {"base_rank": 6}),
    ):
        sim, s, cheap = both_of(K, *limits)
        with pytest.raises(BudgetExceeded, match="raise `limit`") as error:
            anchored(sim, s, cheap, rng=0, **options)
        assert ("The cheap similarity" in str(error.value)) == (limits[0] is None)
        assert sim.calls == cheap.calls == 0
    sim, s, cheap = both_of(K, calls, compressed)
    anchored(sim, s, cheap, base_rank=6, rng=0)
    assert cheap.calls == compressed
    sim, s, cheap = both_of(K, calls, calls)
    answer = anchored(sim, s, cheap, rng=0)
    with pytest.raises(BudgetExceeded):
        answer.rows([0])
    cheap.limit = None
    assert answer.rows([0]).shape == (1, 20)


def both_of(K, limit, cheap_limit):
    """A matrix, four landmarks, and the same as its companion."""
    sim, cheap = both(K, K)
    sim.limit, cheap.limit = limit, cheap_limit
    return sim, 4, cheap


def test_seeds_and_landmarks():
    K = cross_encoder_like(60, rng=0)
    sim, cheap = both(K, np.tanh(K))
    one = anchored(sim, 6, cheap, rng=7)
    again = anchored(sim, 6, cheap, rng=np.random.default_rng(7))
    np.testing.assert_array_equal(one.toarray(), again.toarray())
    given = anchored(sim, None, cheap, landmarks=one.landmarks, rng=7)
    np.testing.assert_array_equal(given.landmarks, one.landmarks)
    np.testing.assert_array_equal(one.landmarks, tikhonov(sim, 6, rng=7).landmarks)
    options = {"base_rank": 20, "rng": 7}
    compressed = [anchored(sim, 6, cheap, **options).toarray() for _ in range(2)]
    np.testing.assert_array_equal(*compressed)


@pytest.mark.parametrize("base_rank", [None, 30])
def test_float32_stays_float32(base_rank):
    K = cross_encoder_like(60, rng=0)
    G = np.tanh(K) + 0.02 * indefinite(60)
    single, double = (
        anchored(sim, 8, cheap, base_rank=base_rank, rng=0)
        for sim, cheap in (both(K.astype(np.float32), G), both(K, G))
    )
    assert single.dtype == single.toarray().dtype == np.float32
    assert single.left.dtype == single.core.dtype == np.float32
    assert single.weight > 0
    assert (single @ np.ones(60, np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.toarray(), double.toarray(), atol=1e-3)


def test_factors_in_single_precision_of_a_companion_in_double():
    """Factors made for float64 may be so large that float32 leaves no digit."""
    x = np.random.default_rng(0).standard_normal((300, 3))
    G = np.exp(-cdist(x, x, "sqeuclidean") / 4)
    single = G.astype(np.float32)
    answers = [
        anchored(sim, 10, cheap, base_rank=100, calibration=None, rng=0)
        for sim, cheap in (both(single, single), both(single, G))
    ]
    assert relative_error(G, answers[1]) < 0.01
    np.testing.assert_array_equal(answers[1].toarray(), answers[0].toarray())


def test_a_companion_that_gives_no_number():
    K = levels(20)

    def broken(x, y):
        return np.nan if {x, y} == {3, 7} else K[x, y]

    sim, cheap = Similarity.from_matrix(K), Similarity(range(20), broken)
    message = r"cheap similarity failed.*nan for items (3 and 7|7 and 3)"
    with pytest.raises(SimilarityError, match=message):
        anchored(sim, None, cheap, landmarks=[0, 3, 5])
    Z = np.ones((20, 2))
    Z[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"cheap.*NaN"):
        anchored(sim, 4, Z)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cheap": np.ones((19, 2))}, "19 items, the other 20"),
        ({"cheap": Similarity.from_matrix(asymmetric(20))}, r"cheap\.symmetrized\(\)"),
        ({"cheap": np.ones(20)}, "2D"),
        ({"cheap": np.full((20, 2), 1e300)}, "so long.*by its largest entry"),
        ({"cheap": np.full((20, 2), 1e-300)}, "so short.*by its largest entry"),
        ({"cheap": scipy.sparse.csr_array(np.full((20, 2), 1e-160))}, "so short"),
        ({"cheap": np.full((20, 2), 2.0**-74, np.float32)}, "so short"),
        ({"calibration": "linear"}, "calibration, .* is one of isotonic"),
        ({"base_rank": 21}, "base_rank must be between 1 and 20; got 21"),
        ({"n_landmarks": None, "landmarks": [0, 0]}, "none twice"),
    ],
)
def test_impossible_options(options, message):
    sim = Similarity.from_matrix(levels(20))
    with pytest.raises(ValueError, match=message):
        anchored(sim, **{"n_landmarks": 4, "cheap": np.ones((20, 2))} | options)
    assert sim.calls == 0


# Elsewhere in the library


def test_registry():
    assert set(COMPANION_METHODS) == {"anchored"}
    assert not set(COMPANION_METHODS) & set(METHODS)
    method = COMPANION_METHODS["anchored"]
    K = levels(40)
    sim, cheap = both(K, K)
    for options in ({}, {"oversampling": 3, "calibration": None}):
        s = largest("anchored", 40, 300, **options)
        answer = method.function(sim, s, cheap=cheap, rng=0, **options)
        assert answer.calls == method.calls(40, s, **options) <= 300
    with pytest.raises(TypeError, match="anchored has no option ridge"):
        largest("anchored", 40, 300, ridge=0)


def test_approximate_to():
    K = cross_encoder_like(200, rng=0)
    E = np.random.default_rng(2).standard_normal((200, 200))
    sim, cheap = both(K, np.tanh(3 * K) + 0.02 * (E + E.T))
    result = approximate_to(sim, 0.15, method="anchored", cheap=cheap, rng=0)
    assert (result.reason, result.approximation.method) == ("target", "anchored")
    assert error(K, result.approximation) < 0.15
    plain = Similarity.from_matrix(K)
    without = approximate_to(plain, 0.15, rng=0)
    assert result.approximation.calls < 0.5 * without.approximation.calls
    assert sim.calls < plain.calls
    with pytest.raises(TypeError, match="anchored has no option ridge"):
        approximate_to(sim, 0.1, method="anchored", cheap=cheap, ridge=0)
    with pytest.raises(TypeError, match="'cheap'"):
        approximate_to(sim, 0.1, method="anchored")


@pytest.mark.parametrize(("ours", "theirs"), [(0, 340), (-530, 0), (-530, 400)])
def test_a_companion_of_another_size_says_so(ours, theirs):
    X = np.random.default_rng(0).standard_normal((60, 4))
    sim = Similarity.from_matrix(np.ldexp(np.tanh(X @ X.T), ours))
    cheap = Similarity.from_matrix(np.ldexp(X @ X.T, theirs))
    with pytest.raises(ValueError, match="cheap similarities are so much larger"):
        anchored(sim, 8, cheap, calibration=None, rng=0)
    assert anchored(sim, 8, cheap, rng=0).weight > 0


@pytest.mark.parametrize("calibration", [None, "isotonic"])
@pytest.mark.parametrize(("ours", "theirs"), [(-204, -196), (-700, -700), (204, 196)])
def test_a_companion_of_about_the_same_size_is_none_of_another(
    ours, theirs, calibration
):
    X = np.random.default_rng(0).standard_normal((60, 4))
    K = np.tanh(X @ X.T)
    sim = Similarity.from_matrix(np.ldexp(K, ours))
    for B in (np.ldexp(K, theirs), np.zeros_like(K)):
        cheap = Similarity.from_matrix(B)
        answer = anchored(sim, 8, cheap, calibration=calibration, rng=0)
        assert np.isfinite(answer.rows([0])).all()


@pytest.mark.parametrize("power", [40, 60, 100, -40, -100])
def test_single_precision_has_no_scale(power):
    x = np.random.default_rng(0).standard_normal((60, 5))
    K = (np.exp(x @ x.T / 5) + 0.1 * np.tanh(x @ x.T)).astype(np.float32)
    errors = []
    for scaled in (K, np.ldexp(K, power)):
        answer = anchored(Similarity.from_matrix(scaled), 8, x, rng=0)
        errors.append(relative_error(scaled, answer))
    assert errors[1] == pytest.approx(errors[0], rel=1e-3)


# What `cheap` may be


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_a_symmetric_array_may_be_similarities_or_a_factor(form):
    x = np.random.default_rng(0).standard_normal((40, 3))
    G = np.exp(-cdist(x, x, "sqeuclidean"))
    sim = Similarity.from_matrix(G)
    for ask in (
        lambda cheap: anchored(sim, 5, cheap, rng=0),
        lambda cheap: nearest(sim, 3, limit=400, cheap=cheap, rng=0),
        lambda cheap: pairs_above(sim, 0.5, cheap=cheap, rng=0),
        lambda cheap: search(sim, [0, 1], 3, limit=9, cheap=cheap, rng=0),
    ):
        with pytest.raises(ValueError, match="two meanings") as error:
            ask(form(G))
        assert "from_matrix(cheap);" in str(error.value)
        assert "from_matrix(cheap @ cheap.T)" in str(error.value)
    assert sim.calls == 0
    square = np.linalg.cholesky(G + np.eye(40))  # no two meanings
    factor, inner = form(square), Similarity.from_matrix(square @ square.T)
    one, other = (anchored(sim, 5, cheap, rng=0) for cheap in (factor, inner))
    np.testing.assert_allclose(one.toarray(), other.toarray(), atol=1e-6)


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_function_of_two_items_as_companion(symmetric):
    x = np.random.default_rng(0).standard_normal((40, 3))

    def cheap(a, b):
        return float(np.exp(-np.sum((a - (1 if symmetric else 2) * b) ** 2)))

    K = np.array([[cheap(a, b) ** 0.9 for b in x] for a in x])
    sim = Similarity(x, lambda a, b: cheap(a, b) ** 0.9, symmetric=symmetric)
    given = Similarity(x, cheap, symmetric=symmetric)
    answers = [anchored(sim.fork(), 5, one, rng=0) for one in (cheap, given)]
    np.testing.assert_array_equal(*(answer.toarray() for answer in answers))
    assert relative_error(K, answers[0]) < 0.05
    mapped = anchored(sim.map(np.sqrt), 5, cheap, rng=0)  # of the items of its base
    assert mapped.symmetric == symmetric


@pytest.mark.parametrize(
    "cheap",
    [
        ["one", "two", "three", "four"],
        np.array(["one", "two", "three", "four"]),
        pd.DataFrame({"word": ["one", "two", "three", "four"]}),
        [["a"], ["a", "b"], ["c"], ["d"]],
        [1.0, 2.0, 3.0, 4.0],
        [{"a": 1}] * 4,
    ],
    ids=["list", "array", "frame", "documents", "numbers", "mappings"],
)
def test_items_are_no_companion_without_a_function(cheap):
    with pytest.raises(ValueError, match="a function of two of them, or an array"):
        anchored(Similarity.from_matrix(np.eye(4)), 2, cheap)


def test_a_source_without_items_and_a_function():
    with pytest.raises(TypeError, match="does not tell its items"):
        anchored(InnerProducts(np.eye(4)), 2, min)


def test_new_items_take_each_of_the_two_widths():
    x = np.random.default_rng(0).standard_normal((100, 20))
    noise = np.random.default_rng(1).standard_normal((100, 2))
    K = np.exp(x @ x.T / 10) + noise @ noise.T  # which x almost agrees with
    answer = anchored(Similarity.from_matrix(K), 10, x, base_rank=20, rng=0)
    for widths, message in [
        ((20, 10), r"`landmarks` must have shape \(m, 10\); got \(3, 20\)"),
        ((11, 20), r"\(m, 10\); got \(3, 11\)"),
        ((10, 19), r"`base_landmarks` .*\(m, 20\); got \(3, 19\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            answer.extend(*(np.ones((3, width)) for width in widths))
    with pytest.raises(ValueError, match="same length; got 1 and 2"):
        answer.extend(np.ones((1, 10)), np.ones((2, 20)))
    for bad in (scipy.sparse.csr_array((1, 20)), np.full((1, 20), 1j)):
        with pytest.raises(ValueError, match=r"^cheap_columns must be"):
            answer.extend(np.ones((1, 10)), bad)
    skew = K + np.random.default_rng(2).standard_normal(K.shape)
    answer = anchored(Similarity.from_matrix(skew), 10, x, base_rank=15, rng=0)
    with pytest.raises(ValueError, match=r"\(m, 30\); got \(3, 15\)"):
        answer.extend(np.ones((3, 20)), np.ones((3, 15)))


@pytest.mark.parametrize(("cheap", "dear"), [(1e-200, 1e200), (1e200, 1e-200)])
def test_calibration_in_any_units(cheap, dear):
    knots, values = np.array([0.0, 1, 2]), np.array([0.0, 1, 3])
    x = np.array([-1.0, 0.5, 1.5, 9.0])
    found = Interpolation(cheap * knots, dear * values)(cheap * x)
    np.testing.assert_allclose(found, dear * np.array([0, 0.5, 2, 3]), rtol=1e-5)
    x = np.random.default_rng(0).standard_normal((50, 3))
    K = np.tanh(x @ x.T)
    sim, companion = (Similarity.from_matrix(K * unit) for unit in (dear, cheap))
    error = relative_error(K * dear, anchored(sim, 5, companion, rng=0))
    other = Similarity.from_matrix(K)
    assert error == pytest.approx(
        relative_error(K, anchored(other, 5, other.fork(), rng=0)), rel=0.1, abs=1e-6
    )
