"""Similar pairs of two collections: links of two tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from simlib import Similarity
from simlib.neighbors import most_similar, pairs_above
from simlib.neighbors.joined import Joined
from support.matrices import counted


def tables(m=60, n=90, seed=0):
    """Records of two tables: every third has a counterpart, and vectors that tell."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((m, 8)), rng.standard_normal((n, 8))
    Y[: m // 3] = X[: m // 3] + rng.standard_normal((m // 3, 8)) / 4
    K = -np.linalg.norm(X[:, None] - Y, axis=2)
    return K, (X + rng.standard_normal(X.shape) / 5, Y)


@pytest.mark.parametrize("companion", ["factors", "similarity"])
@pytest.mark.parametrize("within", ["tables", "groups"])
def test_listed_candidates_are_of_the_other_table(within, companion, monkeypatch):
    """Though the nearest by the vectors, and by the companion, are of one's own."""
    monkeypatch.setattr("simlib.neighbors.pair_queue.EVERY", 0)
    monkeypatch.setattr("simlib.neighbors.cheap.READ", 4)
    n, rng = 400, np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((n // 4, 6)), 4, axis=0)
    X, Y = X + rng.standard_normal((2, n, 6)) / 9
    K, ones = X @ Y.T, np.ones((n, 1))
    Z = np.hstack([X, 9 * ones]), np.hstack([Y, -9 * ones])  # 81 less than within
    level, options = np.quantile(K, 0.99), {"recall": None, "limit": 6 * n, "rng": 0}
    if within == "tables":
        sim = Similarity.from_matrix(K, two=True)
        cheap = Z if companion == "factors" else Similarity.from_matrix(K, two=True)
    else:
        Z = np.vstack(Z)
        sim, cheap = Similarity.from_matrix(Z @ Z.T), Z
        options["groups"], level = np.repeat(["a", "b"], n), level - 81
        if companion == "similarity":
            cheap = Similarity.from_matrix(Z @ Z.T)
    pairs = pairs_above(sim, level, cheap=cheap, **options)
    assert pairs.i.size > 0.9 * 0.01 * n**2


@settings(max_examples=60)
@given(
    st.integers(1, 8),
    st.integers(1, 10),
    st.integers(0, 99),
    st.sampled_from([None, "factors", "similarity"]),
    st.booleans(),
)
def test_all_pairs_against_brute_force(m, n, seed, companion, distance):
    rng = np.random.default_rng(seed)
    K = rng.standard_normal((m, n)).round(1)
    asked, sim = counted(K)
    factors = rng.standard_normal((m, 2)), rng.standard_normal((n, 2))
    cheap = {None: None, "factors": factors, "similarity": lambda i, j: K[i, j]}
    pairs = pairs_above(
        sim, 0.5, recall=1, cheap=cheap[companion], distance=distance, rng=0
    )
    good = K <= 0.5 if distance else K >= 0.5
    assert set(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)) == set(
        zip(*(x.tolist() for x in good.nonzero()), strict=True)
    )
    assert_array_equal(pairs.values, K[pairs.i, pairs.j])
    assert len(asked) == len(set(asked)) == sim.calls == pairs.calls == m * n
    assert pairs.recall == 1
    assert pairs.to_csr("connectivity").shape == (m, n)
    graph = np.block([[np.zeros((m, m)), good], [good.T, np.zeros((n, n))]])
    count, labels = connected_components(csr_array(graph))
    clusters = pairs.clusters()
    assert clusters.size == m + n
    assert clusters.max() + 1 == count
    assert len(set(zip(labels.tolist(), clusters.tolist(), strict=True))) == count
    number = int(rng.integers(1, m * n + 1))
    best = most_similar(counted(K)[1], number, recall=1, distance=distance, rng=0)
    order = np.sort(K.ravel()) if distance else -np.sort(-K.ravel())
    assert_array_equal(best.values, order[:number])


def test_a_promise_is_kept_from_fewer_calls():
    broken = 0
    for seed in range(12):
        K, vectors = tables(450, 500, seed=seed)
        sim, (X, Y) = Similarity.from_matrix(K), vectors
        near = Similarity.from_matrix(-np.linalg.norm(X[:, None] - Y, axis=2))
        pairs = pairs_above(sim, -1.1, recall=0.9, cheap=near, rng=seed)
        assert pairs.reached
        assert sim.calls == pairs.calls < K.size / 3
        broken += pairs.i.size < 0.9 * np.count_nonzero(K >= -1.1)
    assert broken <= 2


def test_limits_and_going_on(tmp_path):
    K, vectors = tables()
    asked, sim = counted(K)
    pairs = pairs_above(sim, -1.5, limit=700, cheap=vectors, rng=0)
    assert sim.calls == len(set(asked)) == pairs.calls <= 700
    options = {"store": tmp_path / "s", "function_id": "1", "columns": range(90)}
    results = []
    for limit in (700, None, None):
        with Similarity(range(60), lambda i, j: K[i, j], limit=limit, **options) as sim:
            results.append(pairs_above(sim, -1.5, cheap=vectors, rng=0))
            results[-1] = results[-1][:3], sim.calls
    whole = pairs_above(counted(K)[1], -1.5, cheap=vectors, rng=0)
    for k in range(3):
        assert_array_equal(results[1][0][k], whole[k])
        assert_array_equal(results[2][0][k], whole[k])
    assert results[0][1] + results[1][1] == whole.calls
    assert results[2][1] == 0


def test_prices_of_the_joined_items():
    """Of any block, against the set of pairs of one row and one column."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        sim = Similarity.from_matrix(tables(6, 9)[0])
        sim.block(rng.integers(6, size=2), rng.integers(9, size=3))
        known = {
            (int(i), int(j))
            for part in sim.known()
            for i, j in zip(*part[:2], strict=True)
        }
        rows, columns = rng.integers(15, size=(2, 5))
        asked = {(min(a, b), max(a, b) - 6) for a in rows for b in columns}
        asked = {(i, j) for i, j in asked if i < 6 and j >= 0}
        assert Joined(sim).cost((rows, columns)) == len(asked - known)
        whole = {(i, int(j) - 6) for i in range(6) for j in rows if j >= 6}
        whole |= {(int(i), j) for i in rows if i < 6 for j in range(9)}
        assert Joined(sim).cost((rows, None)) == len(whole - known)
        assert Joined(sim).cost((None, None)) == 54 - len(known)


def test_of_two_items_of_one_collection_nothing_is_known():
    K = np.arange(6.0).reshape(2, 3)
    both = Joined(Similarity.from_matrix(K, two=True))
    i, j = np.divmod(np.arange(25), 5)
    expected = np.full((5, 5), np.nan)
    expected[:2, 2:], expected[2:, :2] = K, K.T
    both.read((None, None))
    assert_array_equal(both.peek(i, j), expected.ravel())


def test_what_is_refused():
    K, (X, Y) = tables(6, 9)
    _, sim = counted(K)
    with pytest.raises(ValueError, match="leave `groups` out"):
        pairs_above(sim, 0.0, groups=np.zeros(15))
    with pytest.raises(ValueError, match="same items"):
        pairs_above(sim, 0.0, cheap=(Y, X))
    pairs = pairs_above(sim, -4.0, recall=1)
    for linkage in ("complete", "average"):
        with pytest.raises(ValueError, match="one collection"):
            pairs.clusters(linkage)
    frame = pairs.to_frame()
    assert_array_equal(frame.j, pairs.j)
