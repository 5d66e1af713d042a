import numpy as np
import pytest

from simlib import Similarity, estimate_spectrum
from simlib.approximation import negative_mass
from support.matrices import Recorder, asymmetric, indefinite, psd

# Exact answers


@pytest.mark.parametrize(
    ("values", "expected"),
    [([3, 4], 0), ([3, -4], 0.8), ([-1], 1), ([0, 0], 0), ([12, -3, -4], 5 / 13)],
)
def test_negative_mass(values, expected):
    assert negative_mass(np.array(values, dtype=float)) == pytest.approx(expected)


@pytest.mark.parametrize("make", [indefinite, psd])
def test_all_items_give_the_spectrum(make):
    K = make(30)
    values, mass = estimate_spectrum(Similarity.from_matrix(K), 30, rng=0)
    exact = np.linalg.eigvals(K).real
    np.testing.assert_allclose(values, np.sort(exact)[::-1], atol=1e-10)
    negative = np.linalg.norm(exact[exact < 0]) / np.linalg.norm(K)
    assert mass == pytest.approx(negative, abs=1e-12)


def test_calls():
    recorder = Recorder(indefinite(30))
    sim = Similarity(range(30), recorder, check_symmetry=False)
    estimate_spectrum(sim, 12, rng=0)
    pairs = recorder.unordered
    assert sim.calls == len(pairs) == len(set(pairs)) == 12 * 13 // 2
    assert np.unique(pairs).size == 12


# What is refused


def test_asymmetric_matrix_names_the_way_out():
    sim = Similarity.from_matrix(asymmetric(10))
    with pytest.raises(ValueError, match=r"sim\.symmetrized\(\)"):
        estimate_spectrum(sim, 5)
