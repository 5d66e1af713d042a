import inspect

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import simlib
from simlib import METHODS, BudgetExceeded, Similarity, largest, tikhonov
from simlib.approximation.plan import Plan, Sides
from support.matrices import Recorder, asymmetric, quick

# Formulas against counting


@given(st.integers(1, 25), st.data())
@quick
def test_cost_by_counting(n, data):
    """Of any plan, whether the matrix is symmetric and its diagonal known or not."""
    some = st.lists(st.integers(0, n - 1), unique=True).map(
        lambda items: np.array(items, dtype=int)
    )
    columns, block = data.draw(some), data.draw(some)
    rows, diagonal = data.draw(st.none() | some), data.draw(st.booleans())
    plan = Plan(n, Sides.same(columns), rows, Sides.same(block), diagonal)
    i, j = np.indices((n, n))
    for symmetric in (True, False):
        lines = columns if rows is None else rows
        seen = np.isin(j, columns) | np.isin(i, lines)
        seen |= np.isin(i, block) & np.isin(j, block)
        seen |= diagonal & (i == j)
        if symmetric:
            seen = np.triu(seen | seen.T)
        for known in (False, True):
            expected = (seen & ~(known & (i == j))).sum()
            cost = plan.cost(symmetric=symmetric, diagonal_known=known)
            assert cost == expected
        recorder = Recorder(np.eye(n))
        sim = Similarity(range(n), recorder, symmetric=symmetric, check_symmetry=False)
        assert plan.price(sim) == plan.calls(sim) == seen.sum()
        read = plan.read(sim)
        assert sim.calls == seen.sum() == len(recorder.asked)
        assert plan.price(sim) == 0
        np.testing.assert_array_equal(read.C, np.eye(n)[:, columns])
        np.testing.assert_array_equal(read.A, np.eye(n)[np.ix_(block, block)])


# The registry


def test_registry():
    for name, method in METHODS.items():
        assert method.function.__name__ == name
        assert getattr(simlib, name) is method.function


# The largest number of landmarks


OPTIONS = [
    {},
    {"oversampling": 1},
    {"oversampling": 1.3},
    {"oversampling": 3},
    {"nested": False},
    {"same_rows": False},
    {"shift": 1.0},
    {"rcond": "cv"},
]


@given(
    st.sampled_from(sorted(METHODS)),
    st.integers(1, 60),
    st.integers(0, 2000),
    st.sampled_from(OPTIONS),
)
@quick
def test_largest_by_trying_all(method, n, calls, options):
    cost = METHODS[method].calls
    parameters = inspect.signature(METHODS[method].function).parameters
    assume(set(options) <= set(parameters))
    costs = [cost(n, s, **options) for s in range(1, n + 1)]
    assert costs == sorted(costs)
    affordable = [s for s, c in enumerate(costs, start=1) if c <= calls]
    if affordable:
        assert largest(method, n, calls, **options) == affordable[-1]
    else:
        with pytest.raises(ValueError, match=f"{calls} calls.*costs {costs[0]}"):
            largest(method, n, calls, **options)


@pytest.mark.parametrize(
    ("method", "n", "options", "error", "message"),
    [
        ("nystroem", 10, {}, ValueError, r"method is one of .*got 'nystroem'"),
        ("sicur", 9, {"oversamplng": 3}, TypeError, "sicur has no option oversamplng"),
        ("nystrom", 100, {"n_landmarks": 3}, TypeError, "n_landmarks cannot be an opt"),
    ],
)
def test_what_largest_refuses(method, n, options, error, message):
    with pytest.raises(error, match=message):
        largest(method, n, 2000, **options)
    assert largest("nystrom", 10.0, 1e2) == largest("nystrom", 10, 100) == 10


@pytest.mark.parametrize("method", METHODS)
def test_largest_of_other_matrices(method):
    """A pair in both orders costs twice, a diagonal that is known nothing."""
    calls = METHODS[method].calls
    for s in (1, 7, 30):
        least = calls(30, s, diagonal_known=True)
        assert least < calls(30, s) <= calls(30, s, symmetric=False)
        assert largest(method, 30, least, diagonal_known=True) == s
    assert calls(30, 30, symmetric=False) == 900
    assert calls(30, 30, diagonal_known=True) == 30 * 29 // 2


@pytest.mark.parametrize("seed", range(20))
def test_rows_and_columns_of_the_same_items_cost_most_with_a_known_diagonal(seed):
    K, options = asymmetric(16), {"same_rows": False}
    known = {"symmetric": False, "diagonal": np.diag(K)}
    sim = Similarity(range(16), lambda i, j: K[i, j], **known)
    s = largest("stacur", 16, 144, symmetric=False, diagonal_known=True, **options)
    METHODS["stacur"].function(sim, s, rng=seed, **options)
    assert sim.calls <= 144


# The budget


@pytest.mark.parametrize("limit", [9, 300, 1000])
def test_the_landmarks_that_would_fit(limit):
    recorder = Recorder(np.eye(100))
    sim = Similarity(range(100), recorder, limit=limit, check_symmetry=False)
    fitting = "not one" if limit < 100 else largest("tikhonov", 100, limit)
    with pytest.raises(BudgetExceeded, match=rf"of which {fitting} would fit") as error:
        tikhonov(sim, 40, rng=0)
    assert "Nothing was evaluated" in str(error.value)
    assert recorder.asked == []
    if limit > 100:
        tikhonov(sim, fitting, rng=0)
        assert 0 <= limit - sim.calls < 100


@pytest.mark.parametrize("diagonal_known", [True, False])
@pytest.mark.parametrize("name", ["skeleton", "sicur", "stacur", "tikhonov", "nystrom"])
@given(st.integers(1, 12), st.integers(0, 5))
def test_no_draw_costs_more_than_told(name, diagonal_known, s, seed):
    """Of a matrix that is not symmetric, with the diagonal known or not."""
    K = np.random.default_rng(0).standard_normal((12, 12))
    diagonal = np.diag(K) if diagonal_known else None
    sim = Similarity(
        range(12), lambda i, j: K[i, j], symmetric=False, diagonal=diagonal
    )
    METHODS[name].function(sim, s, rng=seed)
    facts = {"symmetric": False, "diagonal_known": diagonal_known}
    assert sim.calls <= METHODS[name].calls(12, s, **facts)
