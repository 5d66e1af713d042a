"""Forms of approximations of a cross-encoder's matrix, and what they cost."""

from functools import cache

import numpy as np
import pytest

from simlib import Similarity, anchored, relative_error, sicur, tikhonov
from study.datasets import CrossEncoderData, bundled_cross_encoder
from study.sentences import FORMS, equal_calls, outcomes


@cache
def scored():
    return bundled_cross_encoder().first(120)


def mean():
    return (scored().matrix + scored().matrix.T) / 2


def sim():
    return Similarity.from_matrix(mean())


def test_an_outcome_is_that_of_the_function():
    found = outcomes(scored(), {"sicur": 10, "tikhonov": 15}, rng=3)
    for name, answer in (
        ("sicur", sicur(sim(), 10, rng=3)),
        ("tikhonov", tikhonov(sim(), 15, rng=3)),
    ):
        assert found[name].symmetrised == pytest.approx(relative_error(mean(), answer))
        assert found[name].raw == pytest.approx(relative_error(scored().matrix, answer))
        i, j = scored().pairs.T
        np.testing.assert_allclose(found[name].scores, answer.entries(i, j))
        assert found[name].share == pytest.approx(answer.calls / 7260, rel=0.01)


@pytest.mark.parametrize("options", [{}, {"nugget": True}])
def test_what_is_kept_is_what_the_overlay_keeps(options):
    name = "nugget" if options else "tikhonov"
    found = outcomes(scored(), {name: 15}, rng=3)[f"{name}_kept"]
    answer = tikhonov(sim(), 15, overlay=True, rng=3, **options)
    assert found.symmetrised == pytest.approx(relative_error(mean(), answer))


def test_the_companion_is_the_translated_cosine():
    found = outcomes(scored(), {"anchored": 15}, rng=3)["companion"]
    Z = scored().embeddings.astype(float)
    G = anchored(sim(), 15, Z, rng=3).calibration(Z @ Z.T)
    expected = np.linalg.norm(mean() - G) / np.linalg.norm(mean())
    assert found.symmetrised == pytest.approx(expected)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_equal_calls_are_equal(share):
    landmarks = equal_calls(120, share)
    assert set(landmarks) == set(FORMS)
    for name, outcome in outcomes(scored(), landmarks).items():
        if name.startswith("optimal"):
            assert outcome.share == 1
        else:
            assert share - 0.03 < outcome.share <= share + 0.005, name


def test_what_is_read_and_kept_is_exact():
    found = outcomes(scored(), equal_calls(120, 0.3, ["nugget", "anchored"]))
    i, j = scored().pairs.T
    for name in ("nugget_kept", "anchored_kept"):
        kept = found[name]
        assert kept.read.any()
        exact = mean()[i, j][kept.read]
        np.testing.assert_array_equal(kept.scores[kept.read], exact)
    assert found["anchored_kept"].symmetrised < found["anchored"].symmetrised


def test_the_first_sentences_are_a_set_of_their_own():
    small = scored().first(31)
    assert len(small.sentences) == len(small.embeddings) == 31
    assert small.pairs.tolist() == [[k, k + 1] for k in range(0, 30, 2)]
    assert len(small.scores) == len(small.dev_rows) == 15
    assert isinstance(small, CrossEncoderData)
    assert scored().first(1000).matrix.shape == (120, 120)
    with pytest.raises(ValueError, match="at least 1"):
        scored().first(0)


def test_the_stand_in_has_one_pair_for_each_image():
    data = bundled_cross_encoder()
    assert np.array_equal(np.unique(data.pairs), np.arange(1000))
    digits = np.array([text[-1] for text in data.sentences])
    same = digits[data.pairs[:, 0]] == digits[data.pairs[:, 1]]
    np.testing.assert_array_equal(data.scores, same)
    i, j = data.pairs.T
    assert ((data.matrix[i, j] > 0.5) == same).mean() > 0.85
    assert not np.array_equal(data.matrix, data.matrix.T)
    np.testing.assert_allclose(np.linalg.norm(data.embeddings, axis=1), 1, rtol=1e-6)
