"""What holds for every method of the registry."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from simlib import METHODS, BudgetExceeded, LowRank, Similarity, SimilarityError
from support.matrices import Recorder, asymmetric, error, indefinite, psd, quick, rbf

OPTIONS = [
    *((name, {}) for name in METHODS),
    ("nystrom", {"rcond": "cv"}),
    ("sms_nystrom", {"oversampling": 3, "variant": "landmarks"}),
    ("sms_nystrom", {"oversampling": 1, "variant": "printed"}),
    ("sms_nystrom", {"oversampling": 9, "rescale": "spectral"}),
    ("sms_nystrom", {"shift": "exact", "rescale": "frobenius"}),
    ("sms_nystrom", {"shift": 2.0}),
    ("sicur", {"symmetrize": True}),
    ("sicur", {"nested": False}),
    ("sicur", {"nested": False, "symmetrize": True, "oversampling": 1}),
    ("sicur", {"oversampling": 1.5}),
    ("stacur", {"oversampling": 2}),
    ("stacur", {"same_rows": False}),
    ("rpcholesky", {"block_size": 2}),
    ("tikhonov", {"ridge": 0.1}),
    ("tikhonov", {"oversampling": 3}),
    ("tikhonov", {"landmarks": "pivoted_qr"}),
    ("tikhonov", {"landmarks": "adaptive", "overlay": True}),
    ("tikhonov", {"nugget": True}),
    ("tikhonov", {"nugget": True, "overlay": True, "oversampling": 1}),
]
UNIFORM = sorted(set(METHODS) - {"rpcholesky"})  # draw their landmarks uniformly
READS_A_BLOCK = {"tikhonov"}  # beside whole lines
EXACT = sorted(set(METHODS) - {"sms_nystrom"})

everywhere = pytest.mark.parametrize(("name", "options"), OPTIONS)
each = pytest.mark.parametrize("name", METHODS)
TWO_SIDED = [
    (name, options)
    for name, options in OPTIONS
    if name not in ("sms_nystrom", "rpcholesky") and not options.get("symmetrize")
]
two_sided = pytest.mark.parametrize(("name", "options"), TWO_SIDED)


def run(name, sim, *args, **options):
    return METHODS[name].function(sim, *args, **options)


def suited(name, n, **options):
    """Return a matrix that the method takes."""
    return (psd if name == "rpcholesky" else indefinite)(n, **options)


KINDS = {  # of matrices that a method may meet
    "indefinite": indefinite,
    "low rank": lambda n, seed: indefinite(n, seed=seed, rank=max(n // 4, 1)),
    "psd": psd,
    "smooth": rbf,
    "repeated": lambda n, seed: np.kron(indefinite(n // 2, seed=seed), np.ones((2, 2))),
    "constant": lambda n, seed: np.ones((n, n)),
    "identity": lambda n, seed: np.eye(n),
    "zero": lambda n, seed: np.zeros((n, n)),
}
PSD_KINDS = ("psd", "smooth", "constant", "identity", "zero")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name, kind in product(EXACT, KINDS)
        if name != "rpcholesky" or kind in PSD_KINDS
    ],
)
def test_all_landmarks_give_the_matrix(name, kind):
    K = KINDS[kind](24, seed=0)
    result = run(name, Similarity.from_matrix(K), 24, rng=0).toarray()
    np.testing.assert_allclose(result, K, atol=1e-9 * max(np.abs(K).max(), 1))


@pytest.mark.parametrize(
    ("name", "symmetric"),
    [
        (name, symmetric)
        for name, symmetric in product(EXACT, [True, False])
        if name != "stacur" and (symmetric or name != "rpcholesky")
    ],
)
def test_exact_where_the_rank_allows(name, symmetric):
    K = suited(name, 40, rank=6) if symmetric else asymmetric(40, rank=6)
    options = {"ridge": 0} if name == "tikhonov" else {}
    for s in (6, 9):
        answer = run(name, Similarity.from_matrix(K), s, rng=1, **options)
        assert error(K, answer) < 1e-8


@pytest.mark.parametrize("name", sorted(set(EXACT) - {"stacur"}))
def test_rounding_of_single_precision_is_not_inverted(name):
    """What is left of 20 landmarks at rank 5 is rounding, some 1e-7 of the rest."""
    K = suited(name, 60, rank=5).astype(np.float32)
    options = {"ridge": 0} if name == "tikhonov" else {}
    for seed in range(3):
        answer = run(name, Similarity.from_matrix(K), 20, rng=seed, **options)
        assert error(K, answer) < 1e-4


@each
@pytest.mark.parametrize("value", [2.0, -2.0])
def test_one_item(name, value):
    sim = Similarity.from_matrix([[value]])
    if name == "rpcholesky" and value < 0:
        with pytest.raises(np.linalg.LinAlgError, match="tikhonov"):
            run(name, sim, 1)
        return
    shifted = name == "sms_nystrom" and value < 0  # by e = 3, so that W + e = 1
    assert run(name, sim, 1).toarray() == pytest.approx(4.0 if shifted else value)
    assert sim.calls == 1


@each
def test_repeated_items_get_equal_rows(name):
    K = np.kron(suited(name, 12), np.ones((2, 2)))
    result = run(name, Similarity.from_matrix(K), landmarks=[0, 1, 2, 3, 8], rng=0)
    rows = result.toarray()
    assert np.abs(rows).max() < 1e3 * np.abs(K).max()
    np.testing.assert_allclose(rows[::2], rows[1::2], atol=1e-9 * np.abs(rows).max())


@everywhere
@pytest.mark.parametrize("s", [1, 4, 11, 15])
def test_calls_are_the_formula_and_no_pair_is_asked_twice(name, options, s):
    recorder = Recorder(suited(name, 15))
    sim = Similarity(range(15), recorder, check_symmetry=False)
    answer = run(name, sim, s, rng=s, **options)
    pairs = recorder.unordered
    assert len(pairs) == len(set(pairs)) == sim.calls == answer.calls
    most = METHODS[name].calls(15, s, **options)
    independent = name == "skeleton" or False in (
        options.get("nested"),
        options.get("same_rows"),
    )
    if independent:
        S, R = answer.landmarks, answer.row_landmarks
        lines = (np.isin(range(15), some) for some in (S if R is None else R, S))
        seen = np.logical_or.outer(*lines)
        assert answer.calls == np.triu(seen | seen.T).sum() <= most
    else:
        assert answer.calls == most
    run(name, sim, s, rng=s, **options)
    assert sim.calls == answer.calls


@everywhere
@pytest.mark.parametrize("known", [False, True])
def test_a_pair_of_a_symmetrized_similarity_is_two_calls(name, options, known):
    K = suited(name, 15)
    recorder, diagonal = Recorder(K), np.diag(K) if known else None
    sim = Similarity(range(15), recorder, symmetric=False, diagonal=diagonal)
    answer = run(name, sim.symmetrized(), 4, rng=0, **options)
    asked = recorder.asked
    assert len(asked) == len(set(asked)) == sim.calls == answer.calls


@two_sided
@pytest.mark.parametrize("s", [1, 4, 15])
def test_calls_of_an_asymmetric_matrix(name, options, s):
    recorder = Recorder(asymmetric(15))
    sim = Similarity(range(15), recorder, symmetric=False)
    answer = run(name, sim, s, rng=s, **options)
    asked = recorder.asked
    assert len(asked) == len(set(asked)) == sim.calls == answer.calls
    lines = (np.isin(range(15), S) for S in (answer.row_landmarks, answer.landmarks))
    seen = np.logical_or.outer(*lines)
    if name in READS_A_BLOCK or options.get("rcond") == "cv":
        s2 = min(options.get("oversampling", 2) * s, 15)
        diagonal = 15 - s2 if options.get("nugget") else 0
        assert answer.calls == seen.sum() + (s2 - s) ** 2 + diagonal
    else:
        assert answer.calls == seen.sum()
    assert not answer.symmetric


# Budget and failures


@pytest.mark.parametrize(
    ("name", "options", "symmetric"),
    [(*case, True) for case in OPTIONS] + [(*case, False) for case in TWO_SIDED],
)
def test_limit(name, options, symmetric):
    K = suited(name, 15) if symmetric else asymmetric(15)
    recorder = Recorder(K)

    def sim(limit):
        kind = {"symmetric": symmetric, "check_symmetry": False}
        return Similarity(range(15), recorder, limit=limit, **kind)

    needed = run(name, sim(None), 4, rng=0, **options).calls
    recorder.asked.clear()
    small = sim(needed - 1)
    with pytest.raises(BudgetExceeded, match=r"raise `limit`.*fewer landmarks"):
        run(name, small, 4, rng=0, **options)
    assert recorder.asked == []
    small.limit = needed
    answer = run(name, small, 4, rng=0, **options)
    asked = recorder.unordered if symmetric else recorder.asked
    assert len(set(asked)) == len(asked) == small.calls == needed
    plain = run(name, Similarity.from_matrix(K), 4, rng=0, **options)
    np.testing.assert_array_equal(answer.toarray(), plain.toarray())


@everywhere
@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_a_run_that_failed_goes_on_within_the_limit(name, options, fraction):
    """What is known lowers the price, and is not paid again."""
    K = suited(name, 15)
    needed = run(name, Similarity.from_matrix(K), 4, rng=0, **options).calls
    asked = []

    def function(i, j):
        if len(asked) == fails_at:
            raise ConnectionError
        asked.append((i, j))
        return K[i, j]

    fails_at = int(fraction * needed)
    sim = Similarity(range(15), function, batch_size=1, check_symmetry=False)
    with pytest.raises(SimilarityError, match="ConnectionError"):
        run(name, sim, 4, rng=0, **options)
    fails_at, sim.limit = None, needed + sim.failed
    if name == "rpcholesky":  # knows an upper bound, of landmarks yet to be drawn
        sim.limit = None
    run(name, sim, 4, rng=0, **options)
    assert len(asked) == len(set(asked)) == sim.calls == needed


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_diagonal_that_is_known_costs_nothing(name):
    K = suited(name, 15)
    calls = METHODS[name].calls
    recorder = Recorder(K)
    sim = Similarity(range(15), recorder, diagonal=np.diag(K), check_symmetry=False)
    answer = run(name, sim, 4, rng=0)
    assert all(i != j for i, j in recorder.asked)
    assert len(recorder.asked) == sim.calls == answer.calls
    assert answer.calls <= calls(15, 4, diagonal_known=True) < calls(15, 4)
    plain = run(name, Similarity.from_matrix(K), 4, rng=0)
    np.testing.assert_array_equal(answer.toarray(), plain.toarray())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        *((name, {"n_landmarks": None}, "Give n_landmarks, or") for name in METHODS),
        *(
            ("nystrom", {"rcond": rcond}, "rcond")
            for rcond in (np.nan, -1.0, 1.0, "best")
        ),
        *(("tikhonov", {"ridge": r}, "ridge") for r in (-1.0, "auto", None, np.nan)),
        ("tikhonov", {"landmarks": "best"}, "landmarks"),
        ("rpcholesky", {"block_size": 0}, "must be at least 1; got 0"),
        *(("rpcholesky", {"tol": tol}, "tol must be") for tol in (-1e-9, 1.0)),
        ("sms_nystrom", {"variant": "code"}, "variant is one of core"),
        ("sms_nystrom", {"rescale": True}, "rescale is one of spectral"),
        ("sms_nystrom", {"shift": "sub"}, "shift, .*one of submatrix, exact; got .sub"),
        *(("sms_nystrom", {"shift": e}, f"be .* got {e}") for e in (None, np.nan)),
        *(("sms_nystrom", {"alpha": a}, "alpha must be") for a in (-1.0, np.inf)),
    ],
)
def test_impossible_options(name, options, message):
    sim = Similarity.from_matrix(suited(name, 10))
    with pytest.raises(ValueError, match=message):
        run(name, sim, **{"n_landmarks": 3} | options)
    assert sim.calls == 0


@each
def test_asymmetric_matrix(name):
    K = asymmetric(30)
    sim = Similarity.from_matrix(K)
    if name in ("sms_nystrom", "rpcholesky"):
        with pytest.raises(ValueError, match=r"sim\.symmetrized\(\)"):
            run(name, sim, 5)
    else:
        answer = run(name, sim, 30, rng=0)
        assert error(K, answer) < 1e-9
        answer = run(name, sim, 8, rng=0)
        np.testing.assert_allclose(answer.T.toarray(), answer.toarray().T, atol=1e-12)
    if name == "rpcholesky":
        return
    mean = run(name, sim.symmetrized(), 8, rng=0)
    plain = run(name, Similarity.from_matrix((K + K.T) / 2), 8, rng=0)
    np.testing.assert_allclose(mean.toarray(), plain.toarray(), atol=1e-8)


@everywhere
def test_answer(name, options):
    sim = Similarity.from_matrix(suited(name, 30))
    answer = run(name, sim, 5, rng=0, **options)
    assert isinstance(answer, LowRank)
    assert answer.shape == (30, 30)
    assert answer.method == name
    assert answer.dtype == np.float64
    assert set(range(30)) >= set(answer.landmarks)
    two_sided = name in ("skeleton", "sicur", "stacur")
    assert answer.symmetric != (two_sided and not options.get("symmetrize", False))
    residual = 0 if answer.residual is None else answer.residual.toarray()
    rank = np.linalg.matrix_rank(answer.toarray() - residual)
    assert rank <= (10 if "sicur" in name else 5)


@everywhere
def test_float32_stays_float32(name, options):
    K = suited(name, 40, rank=8) + 8 * np.eye(40)
    single = Similarity.from_matrix(K.astype(np.float32))
    answer = run(name, single, 10, rng=0, **options)
    assert answer.dtype == answer.toarray().dtype == np.float32
    assert answer.left.dtype == answer.core.dtype == np.float32
    double = run(name, Similarity.from_matrix(K), 10, rng=0, **options)
    scale = np.abs(double.toarray()).max()
    np.testing.assert_allclose(answer.toarray(), double.toarray(), atol=2e-3 * scale)


@each
def test_seed_generator_and_landmarks(name):
    sim = Similarity.from_matrix(suited(name, 30))
    one = run(name, sim, 6, rng=7)
    again = run(name, sim, 6, rng=7)
    generator = run(name, sim, 6, rng=np.random.default_rng(7))
    given = run(name, sim, landmarks=one.landmarks, rng=7)
    for other in (again, generator):
        np.testing.assert_array_equal(other.landmarks, one.landmarks)
        np.testing.assert_array_equal(other.toarray(), one.toarray())
    np.testing.assert_array_equal(given.landmarks, one.landmarks)
    assert set(run(name, sim, 6, rng=8).landmarks) != set(one.landmarks)
    np.testing.assert_array_equal(
        run(name, sim, 6, landmarks=list(one.landmarks), rng=1).landmarks, one.landmarks
    )


def test_one_seed_means_one_draw_for_all_methods():
    sim = Similarity.from_matrix(indefinite(30))
    draws = {tuple(run(name, sim, 6, rng=3).landmarks) for name in UNIFORM}
    assert len(draws) == 1


@given(
    st.sampled_from(sorted(METHODS)),
    st.sampled_from(list(KINDS)),
    st.integers(2, 20),
    st.data(),
)
@settings(quick, max_examples=150)
def test_any_matrix_gets_a_finite_answer_and_never_too_many_calls(name, kind, n, data):
    n -= n % 2
    s = data.draw(st.integers(1, n))
    seed = data.draw(st.integers(0, 1000))
    if name == "rpcholesky" and kind not in PSD_KINDS:
        kind = PSD_KINDS[seed % len(PSD_KINDS)]
    K = KINDS[kind](n, seed=seed)
    sim = Similarity.from_matrix(K)
    answer = run(name, sim, s, rng=seed)
    assert np.isfinite(answer.toarray()).all()
    assert sim.calls == answer.calls <= METHODS[name].calls(n, s) <= n * (n + 1) // 2
    if answer.symmetric:
        np.testing.assert_array_equal(answer.core, answer.core.T)


SMOOTH = {  # clouds, width of the kernel, landmarks: W is singular to rounding
    "interval": (np.linspace(0, 1, 200)[:, None], 1.0, 10),
    "square": (np.random.default_rng(0).random((300, 2)), 1.0, 40),
    "cube": (np.random.default_rng(0).random((300, 3)), 3.0, 100),
}


@pytest.mark.parametrize("cloud", SMOOTH)
@pytest.mark.parametrize(
    "name", ["nystrom", "sicur", "skeleton", "sms_nystrom", "tikhonov"]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_smooth_kernels_keep_their_digits(name, cloud, dtype):
    """Half of the digits: a core is explicit, and as large as what it inverts."""
    points, width, n_landmarks = SMOOTH[cloud]
    K = np.exp(-cdist(points, points, "sqeuclidean") / width)
    most = 5e-5 if dtype == np.float64 else 5e-3
    for seed in range(5):
        sim = Similarity.from_matrix(K.astype(dtype))
        answer = run(name, sim, n_landmarks, rng=seed)
        assert error(K, answer) < most
        rows = answer.rows([0, 1])
        assert np.abs(rows - answer.toarray()[:2]).max() < most / 10
