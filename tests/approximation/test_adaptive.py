from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simlib import METHODS, BudgetExceeded, Similarity, approximate_to
from simlib.approximation.error_estimate import ValidationSample
from simlib.datasets import cross_encoder_like, gaussian_psd, sigmoid_kernel
from simlib.similarity import budget
from study import gallery
from support.matrices import Recorder, asymmetric, error, indefinite, psd, quick, rbf

# Exact answers


def test_rank_within_reach():
    """Ten landmarks are enough for rank 6, and the estimate says so."""
    K = indefinite(80, rank=6)
    result = approximate_to(Similarity.from_matrix(K), 1e-6, rng=0)
    assert result.reason == "target"
    assert result.approximation.landmarks.size == 10
    assert result.error.high <= 1e-6
    assert error(K, result.approximation) < 1e-6


def test_items_used_up():
    """SMS-Nyström of an indefinite matrix has an error that no number mends."""
    K = indefinite(40)
    sim = Similarity.from_matrix(K)
    result = approximate_to(sim, 0.01, method="sms_nystrom", rng=0)
    assert result.reason == "items"
    assert result.approximation.landmarks.size == 40
    assert result.error.value == pytest.approx(error(K, result.approximation))
    assert sim.calls == 820


@pytest.mark.parametrize("n", [1, 2, 5])
def test_hardly_any_items(n):
    K = psd(n)
    result = approximate_to(Similarity.from_matrix(K), 0.5, rng=0)
    assert result.reason == "target"
    assert error(K, result.approximation) < 1e-9


# What is asked


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"skeleton"}))
def test_no_pair_is_evaluated_twice(name):
    K = rbf(150) if name == "rpcholesky" else cross_encoder_like(150, rng=0)
    recorder = Recorder(K)
    sim = Similarity(range(150), recorder, check_symmetry=False)
    approximate_to(sim, 0.15, method=name, rng=0)
    pairs = recorder.unordered
    assert len(pairs) == len(set(pairs)) == sim.calls


@pytest.mark.parametrize("make", [indefinite, asymmetric])
def test_the_validation_sample_is_what_the_method_has_not_read(make, monkeypatch):
    """At each look: the pairs that count with a weight are none of the method's."""
    from simlib.approximation import adaptive

    K, looks = make(120, rank=50), []

    class Watched(adaptive.ValidationSample):
        def estimate(self, approximation, confidence, has_read):
            fresh = ~has_read(self._i, self._j)
            looks.append((self._i, self._j, fresh, approximation))
            return super().estimate(approximation, confidence, has_read)

    monkeypatch.setattr(adaptive, "ValidationSample", Watched)
    approximate_to(Similarity.from_matrix(K), 0.05, rng=3)
    assert len(looks) > 2
    for before, after in pairwise(looks):
        assert set(before[3].landmarks) <= set(after[3].landmarks)
        assert after[2].sum() < before[2].sum()
    symmetric = np.array_equal(K, K.T)
    for i, j, fresh, approximation in looks:
        S1 = approximation.landmarks
        touched = np.isin(i, S1) | np.isin(j, S1)
        assert not (touched & fresh).any()
        # Beyond its lines the method reads a block of at most as many items again.
        block = ~touched & ~fresh
        items = np.union1d(i[block], j[block])
        assert items.size <= S1.size
        within = np.isin(i, items) & np.isin(j, items)
        assert not (within & fresh).any()
        assert symmetric == approximation.symmetric


# The limit


@given(st.integers(0, 1000), st.integers(0, 6000), st.sampled_from([0.02, 0.2, 0.5]))
@quick
def test_limit_is_never_passed(seed, limit, target):
    sim = Similarity.from_matrix(cross_encoder_like(100, rng=0))
    sim.limit = limit
    if limit < 202:  # twice the calls of one landmark
        with pytest.raises(BudgetExceeded, match="does not pay for a landmark"):
            approximate_to(sim, target, rng=seed)
    else:
        result = approximate_to(sim, target, rng=seed)
        assert result.reason in ("target", "limit")
        assert (result.error.high <= target) == (result.reason == "target")
    assert sim.calls <= limit


@pytest.mark.parametrize("limit", [3000, 9000, 20_000])
def test_two_calls_for_a_pair_are_reckoned_with(limit, monkeypatch):
    """The first answer tells the price, and no later request is too dear."""
    refused = []

    def refuse(message):
        refused.append(message)
        return BudgetExceeded(message)

    monkeypatch.setattr(budget, "BudgetExceeded", refuse)
    K = cross_encoder_like(200, rng=0)
    K = K + 0.01 * np.random.default_rng(0).standard_normal(K.shape)
    sim = Similarity.from_matrix(K).symmetrized()
    sim.limit = limit
    assert approximate_to(sim, 0.01, rng=0).reason == "limit"
    assert limit - 2 * len(K) < sim.calls <= limit  # no landmark more
    assert not refused
    with pytest.raises(BudgetExceeded):
        sim.columns(range(200))
    assert len(refused) == 1


@pytest.mark.parametrize("n", [3, 4, 5, 40])
def test_a_limit_that_pays_for_everything(n):
    K = cross_encoder_like(n, rng=0)
    for known in (False, True):
        sim = Similarity.from_matrix(K)
        sim.limit = n * (n + 1) // 2
        if known:
            sim.columns(range(n))
        assert approximate_to(sim, 1e-9, rng=0).reason == "target"


def test_a_sample_that_cannot_be_enlarged_stays():
    sim = Similarity.from_matrix(cross_encoder_like(100, rng=0))
    answer = METHODS["tikhonov"].function(sim, 10, rng=0)
    sample = ValidationSample(sim, answer, 100, 0)
    before = sample.estimate(answer, 0.95)
    sim.limit = sim.calls + 10
    with pytest.raises(BudgetExceeded):
        sample.enlarge(1000)
    assert sample.estimate(answer, 0.95) == before


@pytest.mark.parametrize("limit", [None, 9000])
def test_the_limit_of_a_cheap_similarity_is_named(limit):
    K = cross_encoder_like(100, rng=0)
    sim, cheap = Similarity.from_matrix(K), Similarity.from_matrix(K)
    sim.limit, cheap.limit = limit, 10
    with pytest.raises(BudgetExceeded, match=r"cheap similarity.*the limit of 10"):
        approximate_to(sim, 0.1, method="anchored", cheap=cheap, rng=0)


def test_bad_arguments():
    sim = Similarity.from_matrix(psd(20))
    with pytest.raises(ValueError, match=r"method is one of .*got 'magic'"):
        approximate_to(sim, 0.1, method="magic")
    for target in (0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="target_error must be a number above 0"):
            approximate_to(sim, target)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        approximate_to(sim, 0.1, confidence=95)
    with pytest.raises(ValueError, match="draws the landmarks itself"):
        approximate_to(sim, 0.1, landmarks=np.arange(3))
    with pytest.raises(ValueError, match="symmetrized"):
        approximate_to(Similarity.from_matrix(asymmetric(20)), 0.1, method="rpcholesky")
    assert sim.calls == 0


# The promise: where the target is met, the true error is at most 1.1 times it


def promise(K, targets, n_seeds, **options):
    """Return true error over target for the runs that report it met."""
    ratios, runs = [], 0
    for target in targets:
        for seed in range(n_seeds):
            sim = Similarity.from_matrix(K)
            result = approximate_to(sim, target, rng=seed, **options)
            runs += 1
            if result.reason == "target":
                ratios.append(error(K, result.approximation) / target)
    assert len(ratios) > 0.9 * runs
    return np.array(ratios)


MATRICES = {
    "scorer": lambda: cross_encoder_like(300, rng=1),
    "sigmoid": lambda: sigmoid_kernel(300, rng=1),
    "smooth": lambda: rbf(300, seed=1),
    "noise": lambda: gaussian_psd(300, rng=1),
    "distances": lambda: gallery.load("swiss_roll", 300).matrix,
}


@pytest.mark.parametrize(
    ("kind", "method", "targets"),
    [
        ("smooth", "sicur", (0.05,)),
        ("smooth", "nystrom", (0.05,)),
        ("scorer", "sicur", (0.3,)),
        *(
            pytest.param(kind, "tikhonov", targets, marks=pytest.mark.slow)
            for kind, targets in [
                ("scorer", (0.3, 0.2)),
                ("sigmoid", (0.4, 0.2)),
                ("smooth", (0.1, 0.01)),
                ("noise", (0.9,)),
                ("distances", (0.1, 0.03)),
            ]
        ),
    ],
)
def test_target_met_means_met(kind, method, targets):
    few = len(targets) == 1 and kind != "noise"
    ratios = promise(MATRICES[kind](), targets, 5 if few else 6, method=method)
    assert (ratios <= 1.1).mean() >= (0.8 if few else 0.9)
    assert ratios.max() < 1.5


@pytest.mark.slow
def test_costs_little_more_than_an_oracle():
    """Against the fewest calls with which the same draw reaches the target."""
    K = cross_encoder_like(400, rng=1)
    full = Similarity.from_matrix(K)
    ratios = []
    for seed in range(6):
        sim = Similarity.from_matrix(K)
        approximate_to(sim, 0.2, rng=seed)
        s = next(
            s
            for s in range(10, 400)
            if error(K, METHODS["tikhonov"].function(full, s, rng=seed)) <= 0.2
        )
        ratios.append(sim.calls / METHODS["tikhonov"].calls(400, s))
    assert np.mean(ratios) < 1.7


def test_the_calls_that_are_missing_are_not_more_than_all():
    sim = Similarity([1.0], lambda x, y: x * y, limit=0)
    with pytest.raises(BudgetExceeded, match="that takes some 1 more"):
        approximate_to(sim, 0.1)
