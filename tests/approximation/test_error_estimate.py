import warnings

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from simlib import (
    METHODS,
    LowRank,
    Similarity,
    approximate_to,
    estimate_error,
    largest,
    relative_error,
    tikhonov,
)
from simlib.approximation import sampling_design as module
from simlib.approximation.error_estimate import ValidationSample
from simlib.datasets import cross_encoder_like, gaussian_psd
from study import gallery
from support.matrices import Recorder, asymmetric, indefinite, quick, rbf


def low_rank(n, *, rank=4, seed=0, symmetric=True):
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((2, n, rank))
    core = np.diag(rng.standard_normal(rank))
    return LowRank(left, core, None if symmetric else right)


def parts(K, approximation):
    """Return the error off and on the diagonal, relative to the norm of K."""
    E = K - approximation.toarray()
    on = np.linalg.norm(np.diag(E))
    off = np.linalg.norm(E - np.diag(np.diag(E)))
    return off / np.linalg.norm(K), on / np.linalg.norm(K)


def test_by_hand():
    K = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    identity = LowRank(np.eye(3), np.eye(3))
    sim = Similarity.from_matrix(K)
    estimate = estimate_error(sim, identity)  # misses 3 on the diagonal and 4 off it
    assert estimate.value == estimate.low == estimate.high == np.sqrt(7 / 16)
    assert estimate.off_diagonal == np.sqrt(4 / 16)
    assert estimate.diagonal == np.sqrt(3 / 16)
    assert sim.calls == 6
    assert all(type(x) is float for x in estimate[:5])
    assert type(estimate.heavy_tailed) is bool


def views(symmetric):
    """Yield similarities of which nothing is known, with their matrices."""
    K = indefinite(30) if symmetric else asymmetric(30)
    yield Similarity.from_matrix(K), K
    yield Similarity.from_matrix(K).map(np.square), K**2
    yield Similarity.from_matrix(K).symmetrized(), (K + K.T) / 2
    mean = (np.abs(K) + np.abs(K).T) / 2
    yield Similarity.from_matrix(K).map(np.abs).symmetrized(), mean


@pytest.mark.filterwarnings("ignore:The approximation is symmetric")
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("one_sided", [True, False])
@pytest.mark.parametrize("known", ["nothing", "lines", "pairs", "all"])
def test_all_unknown_evaluated_is_exact(symmetric, one_sided, known):
    approximation = low_rank(30, symmetric=not one_sided)
    for sim, K in views(symmetric):
        if known == "lines":
            sim.columns([3, 4])
            sim.rows([4, 9])
        elif known == "pairs":
            sim.pairs([1, 5, 7], [2, 1, 7])
            sim.block([1, 2], [2, 3, 8])
        elif known == "all":
            sim.columns(range(30))
        estimate = estimate_error(sim, approximation, 900)
        off, on = parts(K, approximation)
        assert estimate.value == estimate.low == estimate.high
        assert estimate.value == pytest.approx(relative_error(K, approximation))
        assert (estimate.off_diagonal, estimate.diagonal) == pytest.approx((off, on))


def test_perfect_and_nothing():
    K = indefinite(60)
    nothing = LowRank(np.zeros((60, 0)), np.zeros((0, 0)))
    for approximation, value in [(LowRank(np.eye(60), K), 0), (nothing, 1)]:
        estimate = estimate_error(Similarity.from_matrix(K), approximation, 200, rng=0)
        for found in (estimate.low, estimate.value, estimate.high):
            assert found == pytest.approx(value, rel=1e-14, abs=0)


@pytest.mark.parametrize(("size", "heavy"), [(12.0, True), (6.0, False)])
def test_heavy_tail_by_hand(size, heavy):
    """Of 1225 pairs the thousandth is 1.2: one error of `size`, the others 1.

    It carries 144 of 1369, or 36 of 1260; the rest of the thousandth next to nothing.
    """
    K = np.ones((50, 50)) + 99 * np.eye(50)  # the diagonal has no part in it
    K[7, 30] = K[30, 7] = size
    sim = Similarity.from_matrix(K)
    zero = LowRank(np.zeros((50, 1)), np.zeros((1, 1)))
    assert estimate_error(sim, zero).heavy_tailed == heavy
    assert estimate_error(sim, zero).heavy_tailed == heavy  # now that all is known


def test_every_unknown_pair_can_be_drawn_and_no_other():
    K = np.random.default_rng(8).choice([-1.0, 1.0], (24, 24), p=[0.2, 0.8])
    K, approximation = np.where(np.tri(24) > 0, K.T, K), low_rank(24)
    seen = np.zeros((24, 24), dtype=int)
    for seed in range(150):
        recorder = Recorder(K)
        sim = Similarity(range(24), recorder, check_symmetry=False)
        sim.columns([3, 8])
        recorder.asked.clear()
        estimate_error(sim, approximation, 60, rng=seed)
        assert len(set(recorder.unordered)) == len(recorder.asked) == 60
        np.add.at(seen, tuple(np.array(recorder.unordered).T), 1)
    upper = np.triu(np.ones((24, 24), dtype=bool))
    upper[[3, 8]] = upper[:, [3, 8]] = False
    assert (seen > 0)[upper].all()
    assert not seen[~upper].any()


def test_near_duplicates_are_looked_at_first():
    """Of 44850 pairs 30 are alike; a uniform sample of 600 would hold 0.4 of them."""
    x = np.random.default_rng(0).standard_normal((300, 6))
    x[:30] = x[30:60] + 1e-3
    K = np.exp(-((x[:, None] - x) ** 2).sum(-1))
    recorder = Recorder(K)
    sim = Similarity(range(300), recorder, check_symmetry=False)
    S = np.arange(100, 120)
    approximation = METHODS["tikhonov"].function(sim, landmarks=S, rng=0)
    recorder.asked.clear()
    estimate_error(sim, approximation, 900, rng=0)
    alike = [(i, j) for i, j in recorder.unordered if j == i + 30 < 60]
    assert len(alike) > 15


@pytest.mark.filterwarnings("ignore:The approximation is symmetric")
@given(
    st.integers(2, 40),
    st.integers(16, 500),
    st.integers(0, 1000),
    st.booleans(),
    st.booleans(),
    st.sampled_from([-40, 0, 3, 30]),
)
@quick
def test_any_estimate(n, n_pairs, seed, symmetric, one_sided, exponent):
    K = indefinite(n, seed=seed) if symmetric else asymmetric(n, seed=seed)
    approximation = low_rank(n, seed=seed, symmetric=not one_sided)
    recorder = Recorder(K)
    sim = Similarity(range(n), recorder, symmetric=symmetric, check_symmetry=False)
    sim.columns([seed % n])
    recorder.asked.clear()
    estimate = estimate_error(sim, approximation, n_pairs, rng=seed)
    value, low, high, off, on, _ = estimate
    assert 0 <= low <= value <= high < np.inf
    assert value**2 == pytest.approx(off**2 + on**2)
    asked = recorder.unordered if symmetric else recorder.asked
    unknown = n * (n - 1) // 2 if symmetric else n * (n - 1)
    assert len(set(asked)) == len(asked) == min(n_pairs, unknown)
    scale = 2.0**exponent
    other = Similarity.from_matrix(scale * K, symmetric=symmetric)
    other.columns([seed % n])
    scaled = LowRank(
        approximation.left,
        scale * approximation.core,
        None if approximation.symmetric else approximation.right,
    )
    assert estimate_error(other, scaled, n_pairs, rng=seed) == estimate


def test_a_symmetric_answer_to_an_asymmetric_question_is_told():
    x, y = np.random.default_rng(0).standard_normal((2, 150, 4))
    K = np.tanh(x @ x.T / 3 + 0.3 * x @ y.T)
    sim = Similarity.from_matrix(K)
    symmetrized = sim.symmetrized()
    answer = METHODS["tikhonov"].function(symmetrized, 40, rng=0)
    with pytest.warns(UserWarning, match=r"estimate_error\(sim.symmetrized\(\), app"):
        other = estimate_error(sim, answer, 150**2)
    assert other.value == pytest.approx(relative_error(K, answer))
    error = estimate_error(symmetrized, answer, 150**2)
    assert error.value == pytest.approx(relative_error((K + K.T) / 2, answer))
    assert other.value > 3 * error.value
    estimate_error(sim, METHODS["tikhonov"].function(sim, 40, rng=0), 100)


# The interval, from the formula by plain loops


def scatter(sample):
    mean = sum(sample) / len(sample)
    return sum((z - mean) ** 2 for z in sample)


def variance_by_loops(samples, sizes, unknown):
    """Return V, and the sum of the squares of its terms over their freedom.

    Cell (a, b) of a grid holds sizes[a, b] pairs of a pool that is drawn from all that
    are unknown; of them samples[a, b] are the values that were evaluated.
    """
    pool = sum(sizes.values())
    mean = sum(sizes[h] / pool * sum(z) / len(z) for h, z in samples.items())
    of_pool = doubt = V = 0.0
    for (a, b), sample in samples.items():
        size, n = sizes[a, b], len(sample)
        near = [
            z for (c, d), z in samples.items() if abs(a - c) <= 1 and abs(b - d) <= 2
        ]
        own = scatter(sample) / max(n - 1, 1)
        shared = sum(map(scatter, near)) / max(sum(len(z) - 1 for z in near), 1)
        stands_for = unknown * size / pool
        term = stands_for**2 / n * (1 - n / size) * max(own, shared)
        V += term
        doubt += term**2 / max(n - 1, 1)
        of_pool += size / pool * sum((z - mean) ** 2 for z in sample) / n
    return V + unknown**2 * (1 / pool - 1 / unknown) * of_pool, doubt


@pytest.mark.parametrize("outside", [0, 1000])
def test_variance_by_loops(outside):
    """Strata that are empty, evaluated whole, calm and wild among each other."""
    sizes = np.array(
        [
            [90, 30, 0, 9, 40, 7, 60],
            [50, 4, 20, 0, 1, 0, 30],
            [0, 70, 25, 80, 10, 12, 0],
        ]
    )
    numbers = np.minimum(sizes, [4, 5, 6, 7, 8, 9, 10])
    wild = np.array([1, 20, 3, 1, 9, 1, 1, 2, 1, 7, 1, 1, 1, 5, 1, 4, 1, 30, 1, 2, 1])
    cell = np.repeat(np.arange(21), sizes.ravel())
    rank = np.concatenate([np.arange(size) for size in sizes.ravel()])
    chosen = np.flatnonzero(rank < numbers.ravel()[cell])
    values = np.random.default_rng(0).normal(3, wild[cell[chosen]])
    samples = {
        divmod(h, 7): values[cell[chosen] == h] for h in np.unique(cell).tolist()
    }
    unknown = cell.size + outside
    strata = module.Strata(cell, (3, 7), sizes.ravel(), numbers.ravel(), unknown)
    expected = variance_by_loops(samples, dict(np.ndenumerate(sizes)), unknown)
    assert strata.variance(chosen, values) == pytest.approx(expected)


@pytest.mark.parametrize("pool", ["all pairs", "some pairs"])
@pytest.mark.parametrize("known", ["diagonal", "rest", "nothing"])
def test_interval_by_loops(known, pool, monkeypatch):
    """Nothing tells pairs from each other where the approximation is constant.

    So off the diagonal, as on it, the sample is a simple random one.
    """
    if pool == "some pairs":
        monkeypatch.setattr(module, "POOL", 1)
    K, constant = indefinite(40), LowRank(np.ones((40, 1)), np.array([[0.2]]))
    recorder = Recorder(K)
    sim = Similarity(range(40), recorder, check_symmetry=False)
    if known == "diagonal":
        sim.diagonal()
    elif known == "rest":
        sim.pairs(*np.triu_indices(40, 1))
    seen = recorder.asked.copy()
    recorder.asked.clear()
    estimate = estimate_error(sim, constant, 16, confidence=0.9, rng=0)

    def squares(i, j):
        return (2 - (i == j)) * np.array([(K[i, j] - 0.2) ** 2, K[i, j] ** 2])

    off = [(i, j) for i, j in recorder.asked if i != j]
    on = [(i, j) for i, j in recorder.asked if i == j]
    in_pool = 780 if pool == "all pairs" else 8 * len(off)
    parts = [part for part in ((off, in_pool, 780), (on, 40, 40)) if part[0]]
    total = sum((squares(*pair) for pair in seen), np.zeros(2))
    for sample, _, unknown in parts:
        total += unknown / len(sample) * sum(squares(*pair) for pair in sample)
    ratio = total[0] / total[1]
    V, doubt, shares = 0.0, 0.0, []
    for sample, size, unknown in parts:
        z = [squares(*pair) @ [1, -ratio] for pair in sample]
        shares += [(unknown / len(sample) * one) ** 2 for one in z]
        terms = variance_by_loops({(0, 0): z}, {(0, 0): size}, unknown)
        V, doubt = V + terms[0], doubt + terms[1]
    effective = sum(shares) ** 2 / sum(share**2 for share in shares)
    t = scipy.stats.t.ppf(0.95, min(V**2 / doubt, effective - 1))
    factor = np.exp(t / 2 * np.sqrt(V) / total[0])
    value = np.sqrt(ratio)
    assert len(off + on) == 16
    assert estimate[:3] == pytest.approx((value, value / factor, value * factor))


def test_refusals():
    sim, approximation = Similarity.from_matrix(indefinite(30)), low_rank(30)
    for other in (approximation + approximation, approximation.toarray()):
        with pytest.raises(TypeError, match="The approximation is a LowRank; got"):
            estimate_error(sim, other)
    with pytest.raises(ValueError, match=r"shape \(30, 30\), the approx.* \(20, 20\)"):
        estimate_error(sim, low_rank(20))
    for confidence in (0, 1, 95):
        with pytest.raises(ValueError, match=f"between 0 and 1; got {confidence}"):
            estimate_error(sim, approximation, confidence=confidence)
    with pytest.raises(ValueError, match="15 pairs say nothing about the 465 that"):
        estimate_error(sim, approximation, 15)
    assert sim.calls == 0
    with pytest.raises(ValueError, match="zeros is not defined"):
        estimate_error(Similarity.from_matrix(np.zeros((30, 30))), approximation)


# The promise: an interval of 95 % holds in at least 90 % of 40 seeds, and is not wide


def carried_by_the_thousandth(E):
    """Share of the largest thousandth of the pairs i < j in their squared error."""
    i, j = np.triu_indices(len(E), 1)
    squares = np.sort(E[i, j] ** 2 + E[j, i] ** 2)[::-1]
    return squares[: len(squares) // 1000].sum() / squares.sum()


MATRICES = {
    "noise": lambda: gaussian_psd(300, rng=1),
    "scorer": lambda: cross_encoder_like(300, rng=1),
    "smooth": lambda: rbf(300, seed=1),
    "distances": lambda: gallery.load("swiss_roll", 300).matrix,
}


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("scorer", "tikhonov"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                ("noise", "tikhonov"),
                ("distances", "tikhonov"),
                ("smooth", "sicur"),
                ("distances", "sms_nystrom"),
                ("scorer", "nystrom"),
            ]
        ),
    ],
)
def test_coverage(kind, method):
    """The truth, by brute force, against one interval for each seed."""
    K = MATRICES[kind]()
    s = largest(method, 300, 300 * 301 // 20)
    covered, widths, heavy, values, truths = [], [], [], [], []
    for seed in range(40):
        sim = Similarity.from_matrix(K)
        approximation = METHODS[method].function(sim, s, rng=seed)
        estimate = estimate_error(sim, approximation, rng=1000 + seed)
        assert sim.calls <= approximation.calls + 2000
        E = K - approximation.toarray()
        truths.append(np.linalg.norm(E) / np.linalg.norm(K))
        values.append(estimate.value)
        covered.append(estimate.low <= truths[-1] <= estimate.high)
        widths.append(estimate.high / estimate.low)
        heavy.append(carried_by_the_thousandth(E) > 0.1)
    assert np.mean(covered) >= 0.9
    assert np.median(widths) <= (2 if np.mean(heavy) > 0.5 else 1.5)
    assert np.mean(np.divide(values, truths)) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("scale", [2.0**-270, 2.0**250, 1e-82, 1e75, 1e-140, 1e140])
@pytest.mark.parametrize("known", ["columns", "nothing"])
def test_the_unit_of_similarity_does_not_matter(scale, known):
    K, answers = cross_encoder_like(300, rng=0), []
    for factor in (1.0, scale):
        sim = Similarity.from_matrix(factor * K)
        approximation = METHODS["nystrom"].function(sim, 10, rng=0)
        if known == "nothing":
            sim = Similarity.from_matrix(factor * K)
        answers.append(estimate_error(sim, approximation, 2e3, rng=1))
    one, other = answers
    assert one.low < one.value < one.high
    assert other == pytest.approx(one, rel=1e-6)


@pytest.mark.parametrize("power", [-1000, 1000])
def test_the_unit_of_two_collections_does_not_matter(power):
    K, answers = cross_encoder_like(200, rng=0)[:, :120], []
    for factor in (1.0, 2.0**power):
        sim = Similarity.from_matrix(factor * K)
        approximation = METHODS["sicur"].function(sim, 10, rng=0)
        answers.append(estimate_error(sim, approximation, 2e3, rng=1))
    assert answers[1] == pytest.approx(answers[0], rel=1e-6)


def test_few_pairs_make_a_wide_interval():
    """Of thirty pairs the largest residuals decide: no more misses than promised."""
    misses = 0
    for seed in range(100):
        x = np.random.default_rng(seed).standard_normal((200, 3))
        K = np.exp(-cdist(x, x, "sqeuclidean") / 2)
        sim = Similarity.from_matrix(K)
        answer = tikhonov(sim, 12, rng=seed)
        error = estimate_error(sim, answer, 30, confidence=0.9, rng=seed + 7)
        misses += not error.low <= relative_error(K, answer) <= error.high
    assert misses <= 18  # the binomial's 99.5 % at one in ten; 32 with all of them


@pytest.mark.parametrize("symmetric", [True, False])
def test_what_others_evaluate_meanwhile_changes_nothing(symmetric):
    """A pair that another thread evaluates is still one for which the sample stands."""
    K = np.random.default_rng(0).standard_normal((60, 60))
    K = K + K.T if symmetric else K
    K[:20, :20] += 5
    sim = Similarity(range(60), lambda i, j: K[i, j], symmetric=symmetric)
    sim.columns([3])
    answer = low_rank(60, symmetric=symmetric)
    sample = ValidationSample(sim, answer, 300, 0)
    before = sample.estimate(answer, 0.9)
    sim.block(range(20), range(20))
    assert sample.estimate(answer, 0.9) == before


def test_a_sample_of_zeros_is_no_proof_that_there_is_no_error():
    """Of twins among items that are unlike all others a sample may hold none."""
    K, missed = np.eye(250), 0
    i = 2 * np.arange(12)
    K[i, i + 1] = K[i + 1, i] = 1
    sim = Similarity.from_matrix(K)
    zero = LowRank(np.zeros((250, 1)), np.eye(1), residual=scipy.sparse.eye_array(250))
    for seed in range(10):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            error = estimate_error(sim, zero, rng=seed)
        assert bool(told) == (error.value == 0)
        missed += error.value == 0
    assert missed > 0
    with pytest.warns(UserWarning, match="All pairs of the sample are zero"):
        _, error, _ = approximate_to(sim, 0.1, nugget=True, overlay=True, rng=0)
    assert error.high == 0
    whole = estimate_error(sim, zero, 31_375)  # all: no doubt
    assert whole.value == pytest.approx(relative_error(K, zero))


def test_an_error_that_is_known_does_not_hide_that_the_sample_is_zero():
    K, i = np.eye(2000), np.arange(20, 60, 2)
    K[0, 1:6] = K[1:6, 0] = K[i, i + 1] = K[i + 1, i] = 1
    eye = scipy.sparse.eye_array(2000, format="csr")
    for size, known, dtype in ((1, [0], "f8"), (1 + 1e-15, [], "f8"), (1, [], "f4")):
        core = np.full((1, 1), 1e-8 * (dtype == "f4"))  # the rounding of the others
        zero = LowRank(np.ones((2000, 1)), core, residual=eye * size)
        sim = Similarity.from_matrix(K.astype(dtype))
        sim.columns(known)
        with pytest.warns(UserWarning, match="All pairs of the sample are zero"):
            estimate_error(sim, zero, rng=1)


def test_a_sample_of_the_diagonal_alone_gives_no_warning():
    sim = Similarity.from_matrix(np.ones((100, 100)))
    sim.pairs(*np.triu_indices(100, 1))
    one = LowRank(np.ones((100, 1)), np.ones((1, 1)))
    assert estimate_error(sim, one, 20, rng=0).value == 0
