"""Features of documents: the test is embedded by training documents alone."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from study.documents import approximate, document_features, scaled

N_TRAIN, N_TEST, RANK = 40, 12, 10
LANDMARKS = ["sms_nystrom", "stacur", "sicur", "sicur_sym", "tikhonov", "raw"]
EVERYTHING = [*LANDMARKS, "nystrom", "optimal", "wmd", "wme"]


def distances(method, last=None):
    """Distances of points; `last` moves the last one, which is in the test."""
    points = np.random.default_rng(1).standard_normal((N_TRAIN + N_TEST, 3))
    others = np.random.default_rng(2).standard_normal((RANK, 3))
    if last is not None:
        points[-1] = last
    return cdist(points, others if method == "wme" else points[:N_TRAIN])


def embed(method, D):
    return scaled(document_features(D, method, RANK, gamma=1.0, rng=3), N_TRAIN)


@pytest.mark.parametrize("method", EVERYTHING)
def test_a_test_document_changes_no_other(method):
    Z, moved = (embed(method, distances(method, last)) for last in (None, 2.0))
    np.testing.assert_array_equal(moved[:-1], Z[:-1])
    assert np.abs(moved[-1] - Z[-1]).max() > 1e-3


@pytest.mark.parametrize("method", LANDMARKS)
def test_a_test_document_is_compared_with_landmarks_only(method):
    used = 0
    expected = embed(method, distances(method))
    for column in range(N_TRAIN):
        D = distances(method)
        D[N_TRAIN:, column] += 1.0
        Z = embed(method, D)
        np.testing.assert_array_equal(Z[:N_TRAIN], expected[:N_TRAIN])
        used += bool((Z[N_TRAIN:] != expected[N_TRAIN:]).any())
    # The signed features of SiCUR are made of its rows, as many as features.
    assert used == RANK == expected.shape[1]


@pytest.mark.parametrize("method", ["sms_nystrom", "tikhonov", "nystrom"])
def test_features_have_the_products_of_the_approximation(method):
    """The kernel is positive definite, and so are these cores, so none has a sign."""
    D = distances(method)
    Z = document_features(D, method, RANK, gamma=1.0, rng=3)[:N_TRAIN]
    answer = approximate(np.exp(-D[:N_TRAIN]), method, RANK, rng=3)
    _, signs = answer.embedding()
    assert (signs > 0).all()
    np.testing.assert_allclose(Z @ Z.T, answer.toarray(), atol=1e-10)


@pytest.mark.parametrize("method", ["stacur", "sicur"])
def test_features_of_the_paper_have_the_products_that_the_book_derives(method):
    """C (U U^T)^(1/2) C^T, and not C U R."""
    D = distances(method)
    Z = document_features(D, method, RANK, gamma=1.0, rng=3)[:N_TRAIN]
    answer = approximate(np.exp(-D[:N_TRAIN]), method, RANK, rng=3)
    values, vectors = np.linalg.eigh(answer.core @ answer.core.T)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    expected = answer.left @ root @ answer.left.T
    np.testing.assert_allclose(Z @ Z.T, expected, rtol=1e-6)


def test_all_eigenvectors_reproduce_the_absolute_matrix():
    D = distances("wmd")
    K = np.cos(2 * D[:N_TRAIN])  # indefinite
    Z = document_features(-np.log(K + 2), "wmd", N_TRAIN, gamma=1.0)  # exp(log(K + 2))
    values, vectors = np.linalg.eigh(K + 2)
    assert values[0] < 0
    expected = (vectors * np.abs(values)) @ vectors.T
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-9)


def test_methods_share_their_landmarks():
    K = np.exp(-distances("raw")[:N_TRAIN])
    some = ("nystrom", "sms_nystrom", "stacur", "sicur", "tikhonov")
    first, *others = (approximate(K, name, RANK, rng=3).landmarks for name in some)
    for landmarks in others:
        np.testing.assert_array_equal(landmarks, first)
    columns = document_features(distances("raw"), "raw", RANK, gamma=1.0, rng=3)
    np.testing.assert_array_equal(columns[:N_TRAIN], K[:, first])


def test_scaled_features_have_no_mean_and_unit_mean_square_in_training():
    Z = document_features(distances("raw"), "raw", RANK, gamma=1.0, rng=3)
    found = scaled(Z, N_TRAIN)[:N_TRAIN]
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    assert np.square(found).sum(axis=1).mean() == pytest.approx(1)


@pytest.mark.parametrize("method", ["optimal", "wmd"])
def test_spectral_features_want_symmetric_distances(method):
    """Of an asymmetric matrix `eigh` would read one triangle."""
    D = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    D[1, 2] += 1
    with pytest.raises(ValueError, match="not symmetric"):
        document_features(D, method, 4, gamma=1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.1, 0.3, 1.7, 9.9])
@pytest.mark.parametrize("n", [3, 7, 10])
def test_equal_rows_have_no_scale(n, value, dtype):
    Z = np.append(np.full(n, value), 0.2).astype(dtype)[:, None]
    with pytest.raises(ValueError, match="all alike"):
        scaled(Z, n)
