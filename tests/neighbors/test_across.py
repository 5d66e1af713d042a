"""The nearest columns of every row, of two collections."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from simlib import BudgetExceeded, Similarity, SimilarityError
from simlib.approximation.companion import InnerProducts, as_companion
from simlib.neighbors import SimilarityNeighbors, nearest, search
from simlib.neighbors.across import Across, TwoSided
from simlib.neighbors.cheap import Calibrated
from support.matrices import counted


def planted(m=40, n=300, rank=12, seed=0):
    """Scores, and vectors of which the inner products tell a part of them."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((m, rank)), rng.standard_normal((n, rank))
    M = np.eye(rank) / 2 + rng.standard_normal((rank, rank)) / np.sqrt(rank)
    return X @ M @ Y.T + rng.standard_normal((m, n)) / 2, (X, Y)


def recall(K, graph):
    k = graph.indices.shape[1]
    best = np.argsort(-K, axis=1)[:, :k]
    pairs = zip(best, graph.indices, strict=True)
    return np.mean([np.isin(row, found).mean() for row, found in pairs])


def test_all_pairs_give_the_exact_answer():
    K, _ = planted(7, 20)
    graph = nearest(Similarity.from_matrix(K), 5, limit=140)
    assert_array_equal(graph.indices, np.argsort(-K, axis=1)[:, :5])
    assert_array_equal(graph.values, -np.sort(-K, axis=1)[:, :5])
    assert graph.calls == 140
    graph = nearest(Similarity.from_matrix(K), 5, limit=1000, distance=True)
    assert_array_equal(graph.indices, np.argsort(K, axis=1)[:, :5])
    assert repr(graph) == "NeighborGraph(5 nearest of 7 rows, calls=140)"
    matrix = graph.to_csr()
    assert matrix.shape == (7, 20)
    assert_array_equal(matrix[3].indices, graph.indices[3])


@given(
    st.integers(1, 12),
    st.integers(1, 15),
    st.data(),
    st.sampled_from([None, "useful", "useless", "misleading", "constant"]),
    st.booleans(),
)
@settings(max_examples=100)
def test_limits_and_neighbours_against_what_was_asked(m, n, data, companion, distance):
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    K = rng.standard_normal((m, n)).round(1)  # with ties
    asked, sim = counted(K)
    k = data.draw(st.integers(1, n))
    limit = data.draw(st.integers(m * k, m * n + 3))
    cheap = {
        None: None,
        "useful": Similarity.from_matrix(K + 0.1, symmetric=False),
        "useless": (rng.standard_normal((m, 2)), rng.standard_normal((n, 2))),
        "misleading": lambda i, j: -K[i, j],
        "constant": (np.ones((m, 1)), np.ones((n, 1))),
    }[companion]
    if companion == "useful" and m == n:
        cheap = lambda i, j: K[i, j] + 0.1  # noqa: E731
    graph = nearest(sim, k, limit=limit, cheap=cheap, distance=distance, rng=1)
    assert sim.calls == len(asked) == len(set(asked)) == graph.calls <= limit
    if limit >= m * n:
        assert len(asked) == m * n
    sign = 1 if distance else -1
    for i in range(m):
        found = graph.indices[i]
        assert len(set(found.tolist())) == k
        assert_array_equal(graph.values[i], K[i, found])
        known = sorted(sign * K[pair] for pair in asked if pair[0] == i)
        assert_array_equal(sign * graph.values[i], known[:k])


def test_rows_learn_from_each_other():
    """More than the companion's best, and than each row alone."""
    K, (X, Y) = planted(200, 300)
    K += X @ np.random.default_rng(1).standard_normal((300, 12)).T  # told by no vector
    sim = Similarity.from_matrix(K)
    together = recall(K, nearest(sim, 10, limit=200 * 30, cheap=(X, Y), rng=0))
    order = np.argsort(-X @ Y.T, axis=1)[:, :30]
    best = np.argsort(-K, axis=1)[:, :10]
    ranked = np.mean([np.isin(b, o).mean() for b, o in zip(best, order, strict=True)])
    alone = []
    for i in range(20):
        one, cheap = Similarity.from_matrix(K[[i]]), (X[[i]], Y)
        alone.append(recall(K[[i]], nearest(one, 10, limit=30, cheap=cheap, rng=0)))
    assert together > np.mean(alone) + 0.15
    assert together > ranked + 0.25


def test_the_direction_of_the_companion_is_found():
    K, (X, Y) = planted()
    one, other = (
        nearest(Similarity.from_matrix(K), 5, limit=1600, cheap=cheap, rng=0)
        for cheap in ((X, Y), (-X, Y))
    )
    assert_array_equal(one.indices, other.indices)
    sim, cheap = Similarity.from_matrix(-K), InnerProducts(X, Y)
    turned = nearest(sim, 5, limit=1600, cheap=cheap, distance=True, rng=0)
    assert_array_equal(one.indices, turned.indices)


def test_a_useless_companion_does_no_harm():
    K, _ = planted()
    sim, rng = Similarity.from_matrix(K), np.random.default_rng(4)
    shares = []
    for seed in range(5):
        noise = rng.standard_normal((40, 12)), rng.standard_normal((300, 12))
        for cheap in (None, noise):
            graph = nearest(sim, 5, limit=3000, cheap=cheap, rng=seed)
            shares.append(recall(K, graph))
    assert np.mean(shares[1::2]) > np.mean(shares[::2]) - 0.05


def test_without_a_companion_more_is_found_than_by_chance():
    K, _ = planted(60, 200, rank=3)
    graph = nearest(Similarity.from_matrix(K), 5, limit=60 * 60, rng=0)
    assert recall(K, graph) > 0.6  # by chance .3


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**900])
def test_units_do_not_matter(scale):
    K, cheap = planted()
    one = nearest(Similarity.from_matrix(K), 5, limit=1600, cheap=cheap, rng=0)
    other = nearest(
        Similarity.from_matrix(K * scale), 5, limit=1600, cheap=cheap, rng=0
    )
    assert_array_equal(one.indices, other.indices)
    assert_array_equal(one.values * scale, other.values)
    single = Similarity.from_matrix(K.astype("f4"))
    assert nearest(single, 5, limit=1600, cheap=cheap, rng=0).values.dtype == np.float32


def test_a_companion_is_read_row_by_row_where_it_is_large(monkeypatch):
    K, cheap = planted()
    whole = nearest(Similarity.from_matrix(K), 5, limit=1600, cheap=cheap, rng=0)
    monkeypatch.setattr("simlib.neighbors.across.KEPT", 10)
    again = nearest(Similarity.from_matrix(K), 5, limit=1600, cheap=cheap, rng=0)
    assert_array_equal(whole.indices, again.indices)


def test_the_prediction_by_its_formula():
    """Fits of rows to what the companion leaves, of columns to what these leave."""
    K, (X, Y) = planted(8, 20, rank=3)
    rng = np.random.default_rng(0)
    keys = np.sort(rng.permutation(160)[:70])
    i, j = np.divmod(keys, 20)
    sim = Similarity.from_matrix(K).run()
    search = Across(sim, 1, 100, as_companion((X, Y), sim), False, rng)
    values = (X @ Y.T)[i, j]
    companion = Calibrated(search.cheap, values, K[i, j], 1)
    search.keys, search.nearness = keys, K[i, j]
    none = np.zeros(0, int)
    predictor = TwoSided(search, companion, none, none)
    predictor.update(keys, K[i, j])
    rows, columns = predictor._rows, predictor._columns
    B = companion.table[companion.codes(X @ Y.T)].astype(float)
    B = B * 2.0**predictor._exponent
    known = np.zeros((8, 20), bool)
    known[i, j] = True

    def fits(R, seen, side):
        V = side.V.astype(float) * 2.0**predictor._exponent
        ridge = side.ridge * side._variance * 4.0**predictor._exponent
        ridge = ridge * np.eye(V.shape[1])
        rows = [
            np.linalg.solve(V[s].T @ V[s] + ridge, V[s].T @ r[s])
            for r, s in zip(R, seen, strict=True)
        ]
        return V, np.array(rows)

    V, A = fits(K - B, known, rows)
    U, C = fits((K - B - A @ V.T).T, known.T, columns)
    expected = (B + A @ V.T + U @ C.T) / 2.0**predictor._exponent
    assert_allclose(predictor.predicted(np.arange(8)), expected, atol=1e-4)


# Going on.


def failing(K, error):
    """Return what raises once, at the 900th call, and its calls."""
    calls = []

    def score(i, j):
        calls.append((i, j))
        if len(calls) == 900:
            raise error
        return K[i, j]

    return score, calls


def test_an_interrupted_search_goes_on_to_the_same_end(tmp_path):
    K, cheap = planted()
    whole = nearest(counted(K)[1], 5, limit=1600, cheap=cheap, rng=0)
    score, _ = failing(K, KeyboardInterrupt)
    options = {"columns": range(300), "store": tmp_path / "s", "function_id": "1"}
    with (
        Similarity(range(40), score, **options) as sim,
        pytest.raises(KeyboardInterrupt),
    ):
        nearest(sim, 5, limit=1600, cheap=cheap, rng=0)
    with Similarity(range(40), score, verify=0, **options) as sim:
        again = nearest(sim, 5, limit=1600, cheap=cheap, rng=0)
        assert sim.calls <= whole.calls - 899
        assert_array_equal(again.indices, whole.indices)
    with Similarity(range(40), score, verify=0, **options) as sim:
        assert nearest(sim, 5, limit=1600, cheap=cheap, rng=0).calls == whole.calls
        assert sim.calls == 0


def test_what_failed_counts_and_the_refusal_says_how_to_go_on():
    K, cheap = planted()
    whole = nearest(counted(K)[1], 5, limit=1600, cheap=cheap, rng=0)
    score, calls = failing(K, OSError("no route to host"))
    sim = Similarity(range(40), score, columns=range(300), limit=1600)
    with pytest.raises(SimilarityError, match="no route to host"):
        nearest(sim, 5, limit=1600, cheap=cheap, rng=0)
    with pytest.raises(BudgetExceeded, match=r"1599 are left \(1 failed\).* raise"):
        nearest(sim, 5, limit=1600, cheap=cheap, rng=0)
    assert len(calls) == 900
    sim.limit += sim.failed
    again = nearest(sim, 5, limit=1600, cheap=cheap, rng=0)
    assert_array_equal(again.indices, whole.indices)
    assert len(calls) == sim.calls + 1 == whole.calls + 1


def test_what_is_known_is_used_where_it_is_asked_for():
    K, cheap = planted()
    asked, sim = counted(K)
    best = np.argsort(-K, axis=1)[:, :5]
    sim.pairs(np.repeat(np.arange(40), 5), best.ravel())
    graph = nearest(sim.informed(), 5, limit=400, cheap=cheap, rng=0)
    assert recall(K, graph) == 1
    assert len(asked) == len(set(asked)) <= 200 + 400
    assert recall(K, nearest(sim.informed(), 5, limit=0, cheap=cheap)) == 1


def test_the_recall_is_estimated_within_the_limit():
    K, cheap = planted(80, 200)
    inside = 0
    for seed in range(10):
        asked, sim = counted(K)
        graph = nearest(sim, 5, limit=6000, cheap=cheap, check=15, rng=seed)
        assert len(asked) == len(set(asked)) == sim.calls <= 6000
        inside += graph.recall.low <= recall(K, graph) <= graph.recall.high
    assert inside >= 9


# Refusals.


def test_what_is_refused():
    K, (X, Y) = planted(6, 9)
    asked, sim = counted(K, limit=30)
    for options, error, message in [
        ({"k": 10, "limit": 54}, ValueError, "k must be between 1 and 9"),
        ({"k": 3, "limit": 17}, ValueError, "neighbours of each of 6 rows.* least 18"),
        ({"k": 3, "limit": 20, "check": 1}, ValueError, "at least 27"),
        ({"k": 3, "limit": 31}, BudgetExceeded, "only 30 are left. Nothing was"),
        ({"k": 3, "limit": 20, "cheap": X}, ValueError, r"a pair.*of shape \(6, \d+\)"),
        ({"k": 3, "limit": 20, "cheap": X @ Y.T}, ValueError, "two=True"),
        ({"k": 3, "limit": 20, "cheap": (Y, X)}, ValueError, "same items"),
        ({"k": 3, "limit": 20, "exact": True}, ValueError, "one collection"),
        ({"k": 3, "limit": 20, "check": 7}, ValueError, "check"),
    ]:
        with pytest.raises(error, match=message):
            nearest(sim, **options)
    assert asked == []
    graph = nearest(sim, 3, limit=20, cheap=(X, Y), rng=0)
    for options in ({"symmetric": True}, {"connected": True}):
        with pytest.raises(ValueError, match="one collection"):
            graph.to_csr(**options)
    failing = Similarity(range(6), lambda i, j: 1 / (j - 4), columns=range(9))
    with pytest.raises(SimilarityError, match="column 4"):
        nearest(failing, 3, limit=54)
    with pytest.raises(ValueError, match="one collection"):
        SimilarityNeighbors(sim, n_neighbors=2).fit(np.arange(6))


@pytest.mark.parametrize("scale", [1, 1e4])
def test_a_companion_counts_in_full_where_few_pairs_are_known(scale):
    """Its levels lie where its values are, whatever was met of them."""
    rng = np.random.default_rng(0)
    x, y = (np.abs(rng.standard_normal((size, 6))) for size in (50, 1000))
    x /= np.linalg.norm(x, axis=1)[:, None]
    y /= np.linalg.norm(y, axis=1)[:, None]
    K, k = x @ y.T, 5
    sim = Similarity.from_matrix(K, two=True)
    graph = nearest(sim, k, limit=50 * k + 10, cheap=(scale * x, y), rng=0)
    kth = np.sort(K, axis=1)[:, -k][:, None]
    assert (np.take_along_axis(K, graph.indices, 1) >= kth).mean() > 0.85
    known = Similarity(y, lambda a, b: float(a @ b))
    options = {"limit": 20, "fit_limit": 0, "cheap": y, "cheap_new": scale * x[:1]}
    found = search(known, x[:1], k, **options, rng=0)
    assert_allclose(found.values[0], np.sort(K[0])[::-1][:k])


def test_a_cheap_similarity_that_fails_for_new_items_is_named():
    sim = Similarity(range(60), lambda a, b: -float(abs(a - b)))
    with pytest.raises(SimilarityError, match="The cheap similarity failed"):
        search(sim, [3], 2, limit=5, cheap=lambda a, b: np.nan)
