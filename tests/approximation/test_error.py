import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simlib import LowRank, relative_error
from simlib.approximation import error as module
from support.matrices import quick


def random_factors(rng, n, m, rank=3):
    left, right = rng.standard_normal((n, rank)), rng.standard_normal((m, rank))
    return left, rng.standard_normal((rank, rank)), right


# Against numpy


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 1000))
@quick
def test_formula(n, m, seed):
    rng = np.random.default_rng(seed)
    K = rng.standard_normal((n, m))
    left, core, right = random_factors(rng, n, m)
    missed = np.linalg.norm(K - left @ core @ right.T) / np.linalg.norm(K)
    approximation = LowRank(left, core, right)
    assert relative_error(K, approximation) == pytest.approx(missed)
    assert relative_error(K, approximation, squared=True) == pytest.approx(missed**2)


def test_blocks_and_memory_maps(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    K = rng.standard_normal((20, 11)).astype(np.float32)
    approximation = LowRank(*random_factors(rng, 20, 11))
    whole = relative_error(K, approximation)
    np.save(tmp_path / "K.npy", K)
    stored = np.load(tmp_path / "K.npy", mmap_mode="r")
    for size in (1, 33, 219, 220):
        monkeypatch.setattr(module, "COMPARED", size)
        assert relative_error(stored, approximation) == pytest.approx(whole, rel=1e-12)


def test_sums_in_double_precision():
    n = 2000
    K = np.full((n, n), 1 + 2**-12, dtype=np.float32)
    ones = LowRank(np.ones((n, 1), np.float32), np.ones((1, 1), np.float32))
    assert relative_error(K, ones) == pytest.approx(1 / (2**12 + 1), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scale_does_not_matter(scale):
    K = np.diag([3.0, 4.0])
    half = LowRank(np.eye(2)[:, 1:] * scale, np.array([[4.0]]), np.eye(2)[:, 1:])
    assert relative_error(scale * K, half) == pytest.approx(0.6)
    assert relative_error(scale * K, half, squared=True) == pytest.approx(0.36)


@pytest.mark.parametrize("shape", [(3, 3), (3, 0), (0, 3)])
def test_a_matrix_of_zeros_or_of_nothing(shape):
    n, m = shape
    nothing = LowRank(np.zeros((n, 1)), [[1.0]], np.zeros((m, 1)))
    with pytest.raises(ValueError, match="zeros is not defined"):
        relative_error(np.zeros(shape), nothing)


def test_two_arrays_are_told_what_to_do():
    with pytest.raises(TypeError, match="Of two arrays: np"):
        relative_error(np.eye(3), np.eye(3))


def test_a_norm_beyond_all_numbers_is_told():
    K = np.full((500, 500), 3e307)
    with pytest.raises(ValueError, match="divide it, and the core"):
        relative_error(K, LowRank(np.full((500, 1), 3e307), [[1 / 3e307]]))
