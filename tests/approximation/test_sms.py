import numpy as np
import pytest

from simlib import Similarity, nystrom, sms_nystrom
from simlib.landmarks import draw
from support.matrices import indefinite, psd, rbf

# Exact answers


def shift_of(K, alpha=1.5):
    return alpha * max(0.0, -np.linalg.eigvalsh(K)[0])


@pytest.mark.parametrize("variant", ["core", "landmarks", "printed"])
@pytest.mark.parametrize("make", [psd, rbf])
def test_no_shift_is_plain_nystrom(make, variant):
    K = make(40)
    ours = sms_nystrom(Similarity.from_matrix(K), 10, variant=variant, rng=0)
    plain = nystrom(Similarity.from_matrix(K), landmarks=ours.landmarks)
    np.testing.assert_array_equal(ours.core, plain.core)
    np.testing.assert_array_equal(ours.left, plain.left)


# Algorithm 1 written out in numpy


def written_out(K, S1, e, variant, rescale):
    n, s = len(K), len(S1)
    C, W = K[:, S1].copy(), K[np.ix_(S1, S1)]
    for j in range(s):
        if variant == "landmarks":
            C[S1[j], j] += e
        if variant == "printed":
            C[j, j] += e
    result = C @ np.linalg.inv(W + e * np.eye(s)) @ C.T
    assert result.shape == (n, n)
    if rescale == "spectral":
        largest = np.abs(np.linalg.eigvalsh(W)).max()
        result /= largest / np.abs(np.linalg.eigvalsh(W + e * np.eye(s))).max()
    if rescale == "frobenius":
        result /= np.sqrt((W**2).sum() / ((W + e * np.eye(s)) ** 2).sum())
    return result


@pytest.mark.parametrize("rescale", [False, "spectral", "frobenius"])
@pytest.mark.parametrize("variant", ["core", "landmarks", "printed"])
@pytest.mark.parametrize("shift", ["submatrix", "exact", 5.0])
def test_formula(shift, variant, rescale):
    K = indefinite(40)
    options = {"shift": shift, "variant": variant, "rescale": rescale, "alpha": 1.3}
    sim = Similarity.from_matrix(K)
    approximation = sms_nystrom(sim, 10, oversampling=2.5, rng=4, **options)
    S1, S2 = draw(40, 10, 2.5, rng=4)
    assert len(S2) == 25
    shifts = {"submatrix": shift_of(K[np.ix_(S2, S2)], 1.3), "exact": shift_of(K, 1.0)}
    e = shifts.get(shift, shift)
    expected = written_out(K, S1, e, variant, rescale)
    np.testing.assert_allclose(approximation.toarray(), expected, atol=1e-9)
    np.testing.assert_array_equal(approximation.landmarks, S1)


# The clamp


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("ratio", "shifts"), [(0.1, False), (10, True)])
def test_what_counts_as_a_rounding_error(ratio, shifts, dtype):
    """The bound is 32 rounding units of the largest entry, for a block of 32."""
    smallest = -ratio * 32 * np.finfo(dtype).eps
    K = np.diag([1, smallest, *np.zeros(30)]).astype(dtype)
    sim = Similarity.from_matrix(K)
    left = sms_nystrom(sim, landmarks=range(32), variant="landmarks").left
    expected = -1.5 * smallest if shifts else 0.0
    np.testing.assert_allclose(np.diag(left)[2:], expected, rtol=0.01)


def test_matrix_of_zeros():
    approximation = sms_nystrom(
        Similarity.from_matrix(np.zeros((5, 5))), 2, rescale="spectral", rng=0
    )
    np.testing.assert_array_equal(approximation.toarray(), np.zeros((5, 5)))


# What is refused, before anything is evaluated


@pytest.mark.parametrize("variant", ["landmarks", "printed"])
def test_columns_with_a_shift_take_no_new_items(variant):
    K = indefinite(30)
    sim = Similarity.from_matrix(K)
    answer = sms_nystrom(sim, 5, variant=variant, rng=0)
    with pytest.raises(ValueError, match='make it with variant="core"'):
        answer.extend(K[:3, answer.landmarks])
    plain = sms_nystrom(sim, 5, rng=0)
    Z, _ = plain.embedding()
    np.testing.assert_allclose(plain.extend(K[:3, plain.landmarks]), Z[:3])


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_rescaled_in_any_unit(scale):
    K = indefinite(60)
    plain, scaled = (
        sms_nystrom(Similarity.from_matrix(M), 10, rescale="frobenius", rng=0)
        for M in (K, scale * K)
    )
    np.testing.assert_allclose(scaled.toarray() / scale, plain.toarray(), rtol=1e-6)
