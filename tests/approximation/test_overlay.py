from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from simlib import LowRank, Similarity, nystrom, sicur, skeleton, sms_nystrom, stacur
from simlib.approximation.overlay import overlay
from support.matrices import asymmetric, indefinite


def corrected(sim, answer, sample=()):
    right = None if answer.symmetric else answer.right
    residual = overlay(sim, answer, sample)
    return LowRank(answer.left, answer.core, right, residual=residual)


ANY = (nystrom, skeleton, sicur, stacur)


@pytest.mark.parametrize(
    ("method", "make"),
    [(sms_nystrom, indefinite), *product(ANY, (indefinite, asymmetric))],
)
def test_evaluated_lines_are_exact_and_the_rest_is_left_alone(method, make):
    K = make(30)
    sim = Similarity.from_matrix(K)
    answer = method(sim, 5, rng=0)
    calls = sim.calls
    result = corrected(sim, answer).toarray()
    if method is not sms_nystrom:  # the shift was read off a block
        assert sim.calls == calls
    columns = answer.landmarks
    rows = columns if answer.row_landmarks is None else answer.row_landmarks
    if sim.symmetric:
        rows = columns = np.union1d(rows, columns)
    seen = np.zeros((30, 30), dtype=bool)
    seen[:, columns] = seen[rows] = True
    expected = np.where(seen, K, answer.toarray())
    np.testing.assert_allclose(result, expected, atol=1e-9 * np.abs(expected).max())


def test_answers_that_cannot_be_corrected():
    sim = Similarity.from_matrix(np.eye(6))
    residual = overlay(sim, nystrom(sim, 2, rng=0))
    corrected = LowRank(np.ones((6, 1)), np.eye(1), residual=residual, landmarks=[0])
    for answer in (LowRank(np.ones((6, 1)), np.eye(1)), corrected):
        with pytest.raises(ValueError, match="made from landmarks"):
            overlay(sim, answer)
    with pytest.raises(ValueError, match="The similarity has shape"):
        overlay(Similarity.from_matrix(np.eye(9)), nystrom(sim, 2))
    sim = Similarity.from_matrix(asymmetric(20), symmetric=False)
    answer = nystrom(sim.symmetrized(), 3, rng=0)
    assert overlay(sim.symmetrized(), answer).nnz
    with pytest.raises(ValueError, match=r"Pass `sim.symmetrized\(\)`"):
        overlay(sim, answer)


@pytest.mark.parametrize("method", [skeleton, sicur, stacur])
def test_block_beside_rows_and_columns_of_other_items(method):
    """With the block of all items nothing is left of the error."""
    K = asymmetric(12)
    sim = Similarity.from_matrix(K, symmetric=False)
    answer = method(sim, 3, rng=0)
    E = overlay(sim, answer, np.arange(12))
    assert_allclose(answer.toarray() + E.toarray(), K, atol=1e-12)
