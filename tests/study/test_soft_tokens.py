"""Soft token similarities: by hand, by loops, and what they refuse."""

import numpy as np
import pytest
from rapidfuzz.distance import JaroWinkler

from simlib import Similarity
from study.soft_tokens import TOKEN, SoftTokens

TEXTS = [
    "Canon camera EOS 500",
    "canon eos-500 cameras",
    "radio, black",
    "Radio (blck) 500",
    "Radio",
]


def by_loops(texts, a, b, cut):
    bags = [set(TOKEN.findall(text.lower())) for text in texts]
    weight = {
        word: np.log(1 + len(texts) / sum(word in bag for bag in bags)) ** 2
        for word in set().union(*bags)
    }
    means = []
    for x, y in ((bags[a], bags[b]), (bags[b], bags[a])):
        best = {w: max(JaroWinkler.similarity(w, v) for v in y) for w in x}
        total = sum(weight[w] * (best[w] if best[w] >= cut else 0) for w in x)
        means.append(total / sum(weight[w] for w in x))
    return sum(means) / 2


def test_by_hand():
    """Two words of two records each, one in common: equal weights would be a half."""
    common, own = np.log(2) ** 2, np.log(3) ** 2
    (value,) = SoftTokens(["same one", "same two"], cut=1)([0], [1])
    np.testing.assert_allclose(value, common / (common + own))


@pytest.mark.parametrize("cut", [0, 0.75, 0.9, 1])
def test_as_loops_say(cut):
    i, j = np.divmod(np.arange(25), 5)
    found = SoftTokens(TEXTS, cut=cut)(i, j)
    expected = [by_loops(TEXTS, a, b, cut) for a, b in zip(i, j, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(found.reshape(5, 5).diagonal(), 1, rtol=1e-6)


def test_strips_change_nothing(monkeypatch):
    function = SoftTokens(TEXTS)
    assert len(function) == 5
    i, j = np.triu_indices(5, 1)
    whole = function(i, j)
    monkeypatch.setattr("study.soft_tokens.STRIP", 1)
    np.testing.assert_array_equal(function(i, j), whole)
    sim = Similarity(range(5), function, batch="pairs")
    np.testing.assert_array_equal(sim.pairs(i, j), whole)
    assert sim.calls == 10


def test_a_long_text_costs_its_own_pairs_alone():
    class Counted(np.ndarray):
        def __getitem__(self, at):
            found = np.asarray(self)[at]
            looked_up.append(found.size)
            return found

    long = " ".join(f"word{k}" for k in range(300))
    texts = [*TEXTS, long]
    function, looked_up = SoftTokens(texts), []
    function._theta = function._theta.view(Counted)
    i, j = np.triu_indices(6)
    found = function(i, j)
    expected = [by_loops(texts, a, b, 0.9) for a, b in zip(i, j, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert sum(looked_up) < 300**2 + 5 * 8 * 310 + 15 * 8**2  # of 21 * 300**2
    alone = [function(i[[k]], j[[k]])[0] for k in range(i.size)]
    np.testing.assert_array_equal(found, alone)


def test_no_pairs_have_no_values():
    for one in (SoftTokens(["one", "two"]), SoftTokens([])):
        assert one(np.zeros(0, int), np.zeros(0, int)).shape == (0,)
        assert one([], []).shape == (0,)
