"""Views, the cost of requests told beforehand, and sources of other kinds."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from simlib import BudgetExceeded, Similarity, SimilarityError
from simlib.approximation.of_items import Subset
from simlib.neighbors.joined import Joined
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity
from support.functions import BATCHES, in_form, matrix
from support.regression import peak


class Table:
    """A source that knows half of its matrix, and counts what is read of the other."""

    def __init__(self, K, limit=None):
        self.K, self.limit = np.asarray(K, dtype=float), limit
        self.n, self.shape, self.dtype = len(K), self.K.shape, self.K.dtype
        self.symmetric = bool((self.K == self.K.T).all())
        self.read = np.indices(self.K.shape).sum(axis=0) < self.n
        self.calls = 0

    def block(self, rows, columns):
        index = np.ix_(rows, columns)
        self.calls += int((~self.read[index]).sum())
        self.read[index] = True
        if self.symmetric:
            self.read |= self.read.T
        return self.K[index]

    def columns(self, columns):
        return self.block(range(self.n), columns)

    def rows(self, rows):
        return self.block(rows, range(self.n))

    def pairs(self, i, j):
        return np.array([self.block([a], [b])[0, 0] for a, b in zip(i, j, strict=True)])

    def peek(self, i, j):
        return np.where(self.read[i, j], self.K[i, j], np.nan)

    def known(self):
        i, j = np.nonzero(np.triu(self.read) if self.symmetric else self.read)
        yield i, j, self.K[i, j]


def test_a_source_of_another_kind():
    K = matrix(6)
    table = Table(K, limit=30)
    assert isinstance(table, Source)
    assert isinstance(Similarity.from_matrix(K), Source)
    sim = check_similarity(table)
    assert (sim.n, sim.shape, sim.dtype, sim.symmetric) == (6, (6, 6), float, True)
    assert (sim.failed, sim.remaining, sim.diagonal_known) == (0, 30, False)
    assert sim.cost((None, [5])) == 5
    assert sim.cost((None, [0]), pairs=([5, 4, 5], [4, 5, 0])) == 1
    assert_array_equal(sim.map(np.square).columns([1]), K[:, [1]] ** 2)
    assert_array_equal(sim.diagonal(), np.diag(K))
    handed = K[[1, 2], [3, 4]]  # the same array each time
    table.peek = lambda i, j: handed
    for _ in range(2):
        assert_array_equal(sim.map(np.square).peek([1, 2], [3, 4]), handed**2)
    del table.peek
    assert sim.blank() is sim
    with sim.progress_bar(3):
        pass
    assert check_similarity(sim) is sim
    assert sim.run() is sim
    for refused in (sim.fork, lambda: sim.between([1], [0]), sim.informed):
        with pytest.raises(TypeError, match="A Table has no fork, between or informed"):
            refused()
    A = matrix(6, symmetric=False)
    mean = check_similarity(Table(A)).symmetrized()
    assert mean.cost((None, [5])) == 9
    assert_array_equal(mean.columns([5]), (A + A.T)[:, [5]] / 2)


def test_a_matrix_that_is_not_one():
    sim = Similarity(range(5), lambda x, y: x * y)
    for view in (sim, sim.map(np.exp), sim.symmetrized()):
        assert isinstance(view, SimilarityMatrix)
        with pytest.raises(ValueError, match="evaluated only where asked: use block"):
            np.asarray(view)
        with pytest.raises(TypeError, match=r"no \[i, j\]: ask .* by pairs\(i, j\)"):
            view[0, 1]
    assert sim.calls == 0


# What requests will cost.

SIDE = st.none() | st.lists(st.integers(0, 69), max_size=69, unique=True)
PAIRS = st.lists(st.tuples(st.integers(0, 69), st.integers(0, 69)), max_size=9)
INDICES = st.lists(st.integers(0, 69), min_size=1, max_size=6)
BEFORE = st.lists(
    st.tuples(st.sampled_from(["columns", "rows", "pairs", "block"]), INDICES),
    max_size=3,
)


def values(x, y):
    return np.minimum(x, y) * 100.0 + np.maximum(x, y)


@settings(max_examples=200)
@given(
    blocks=st.lists(st.tuples(SIDE, SIDE), max_size=3),
    pairs=PAIRS,
    before=BEFORE,
    batch=st.sampled_from(BATCHES),
    symmetric=st.booleans(),
    diagonal=st.booleans(),
    view=st.sampled_from(["itself", "map", "symmetrized"]),
    together=st.booleans(),
)
@example([([0], None), (None, None)], [], [], "block", False, True, "symmetrized", 0)
def test_cost_is_what_the_requests_make(
    blocks, pairs, before, batch, symmetric, diagonal, view, together
):
    options = {"diagonal": np.arange(70) * 101.0} if diagonal else {}
    options |= {"batch": batch, "symmetric": symmetric}
    sim = Similarity(np.arange(70), in_form(values, batch), **options)
    asked = {"itself": sim, "map": sim.map(np.sqrt), "symmetrized": sim.symmetrized()}
    asked = asked[view]
    for name, index in before:
        getattr(sim, name)(*[index, index][: 1 + (name in ("pairs", "block"))])
    i, j = np.array(pairs, dtype=int).reshape(-1, 2).T
    calls = sim.calls
    cost = asked.cost(*blocks, pairs=(i, j))
    assert sim.calls == calls
    sim.limit = calls + cost
    if together:
        asked.read(*blocks, pairs=(i, j))
    for rows, columns in blocks:
        rows = range(70) if rows is None else rows
        columns = range(70) if columns is None else columns
        asked.block(rows, columns)
    asked.pairs(i, j)
    assert sim.calls == calls + cost
    assert asked.remaining == 0
    assert asked.cost(*blocks, pairs=(i, j)) == 0


def test_cost_after_a_failure():
    """Columns that were begun are counted as far as they got."""

    def function(x, y):
        if x == 40:
            raise ValueError("no")
        return float(x + y)

    sim = Similarity(range(70), function, symmetric=False, batch_size=7)
    with pytest.raises(ValueError, match="no"):
        sim.columns([3, 5])
    assert sim.cost((None, [3, 5])) == 140 - sim.calls
    assert sim.cost(([0, 40], [3, 5])) == 2
    assert sim.cost((None, [5]), ([0], None)) == 30 + 68


def test_cost_of_many_items_takes_no_mask():
    n, S = 10**6, np.arange(1000)
    sim = Similarity(np.arange(n), np.add, batch="pairs")

    def tell():
        assert sim.cost((None, S), (S, S)) == n * 1000 - 1000 * 999 // 2

    assert peak(tell) < 64 * n


def test_remaining():
    sim = Similarity(range(5), lambda x, y: x * y)
    assert sim.remaining == np.inf
    sim.columns([0])
    infinite = np.float32(np.inf)
    for limit, left in (7.0, 2), (4, 0), (np.float32(9), 4), (infinite, np.inf):
        sim.limit = limit
        assert sim.remaining == sim.map(np.exp).remaining == left
        assert type(sim.remaining) in (int, float)
    for limit in (-1, 0.05):
        with pytest.raises(ValueError, match="limit is a number of calls"):
            sim.limit = limit


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda v: v * np.nan, r"turned .* into nan; the similarities"),
        (lambda v: v.astype(float) * 1e300, r"turned .* into -?inf"),
        (lambda v: np.emath.sqrt(-abs(v)), "type complex64, which are not real"),
        (np.ravel, r"turned shape \(9, 1\) into \(9,\)"),
    ],
)
def test_a_mapped_function_that_fails_leaves_the_values(function, message):
    K = matrix(9)
    sim = Similarity(range(9), lambda i, j: K[i, j], dtype=np.float32)
    with pytest.raises(SimilarityError, match=message):
        sim.map(function).columns([1])
    assert sim.calls == 9
    assert_array_equal(sim.columns([1]), K[:, [1]].astype(np.float32))
    assert sim.calls == 9


# Items outside the matrix.


@pytest.mark.parametrize("batch", BATCHES)
def test_between_by_hand(batch):
    function = in_form(lambda x, y: 10 * len(x) + len(y), batch)
    words, new = ["a", "bb", "ccc", "dddd"], ["eeeee", "ffffff"]
    sim = Similarity(words, function, batch=batch)
    assert_array_equal(sim.between(new, [2, 0]), [[53, 51], [63, 61]])
    assert sim.calls == 4
    assert_array_equal(sim.map(np.negative).between(new, [2]), [[-53], [-63]])
    assert sim.between([], [2, 0]).shape == (0, 2)
    assert sim.between(new, []).shape == (2, 0)
    assert_array_equal(sim.between(new, [2], [0, 2]), [[53, 51, 53], [63, 61, 63]])
    sim = Similarity(words, function, batch=batch, symmetric=False)
    assert_array_equal(sim.between(new, [2]), [[53, 35], [63, 36]])
    assert_array_equal(sim.between(new, [2], [0, 1]), [[53, 15, 25], [63, 16, 26]])
    assert_array_equal(sim.symmetrized().between(new, [2]), [[44], [49.5]])
    assert sim.calls == 4 + 6 + 4
    sides = sim.symmetrized().between(new, [2], [0])
    assert_array_equal(sides, sim.symmetrized().between(new, [2, 0]))


@pytest.mark.parametrize("names", ["iu", "ui", "iI"])
def test_symmetrized_pairs_of_any_integer_types(names):
    sim = Similarity(range(6), lambda x, y: 10 * x + y, symmetric=False).symmetrized()
    i, j = (np.array([1, 2]).astype({"u": np.uint64}.get(t, t)) for t in names)
    j += j.dtype.type(1)
    assert sim.cost(pairs=(i, j)) == 4
    assert_array_equal(sim.pairs(i, j), [16.5, 27.5])
    with pytest.raises(ValueError, match="same length; got 2 and 1"):
        sim.cost(pairs=([0, 1], [2]))
    with pytest.raises(ValueError, match="one-dimensional array of integers"):
        sim.pairs([1.0], [2.0])


def test_a_mean_does_not_overflow():
    K = np.array([[1.5e308, -1.2e308, 5e-324], [-1.6e308, 1, 2], [5e-324, 4, 3]])
    expected = [[1.5e308, -1.4e308, 5e-324], [-1.4e308, 1, 3], [5e-324, 3, 3]]
    sim = Similarity.from_matrix(K, symmetric=False).symmetrized()
    i, j = np.indices((3, 3)).reshape(2, -1)
    assert_allclose(sim.block([0, 1], [0, 1]), np.array(expected)[:2, :2])
    assert_allclose(sim.columns([0, 1, 2]), expected)
    assert_allclose(sim.pairs(i, j), np.ravel(expected))
    assert_allclose(sim.peek(i, j), np.ravel(expected))
    assert_array_equal(sim.columns([2])[:, 0], [5e-324, 3, 3])


def test_a_mapped_function_is_not_given_nothing():
    """`numpy.vectorize` cannot be called on no values."""
    sim = Similarity([1.0, 2.0], lambda x, y: x * y).map(np.vectorize(lambda v: v + 1))
    assert np.isnan(sim.peek([0], [1])).all()
    assert sim.block([], [0]).shape == (0, 1)
    assert_array_equal(sim.pairs([0], [1]), [3])


def test_between_evaluates_a_pair_once():
    sim = Similarity(range(6), lambda x, y: 10 * x + y, symmetric=False)
    asked = sim.between([7, 8], [4, 1, 4], [2, 2])
    assert_array_equal(asked, [[74, 71, 74, 27, 27], [84, 81, 84, 28, 28]])
    assert sim.calls == 6
    sim.limit = 10
    assert_array_equal(sim.between([7], [5, 5]), [[75, 75, 57, 57]])
    with pytest.raises(TypeError, match=r"Pass list\(items\)"):
        sim.between((item for item in [7]), [4])


def test_new_items_are_like_those_of_the_matrix():
    X = np.arange(12.0).reshape(4, 3)
    sim = Similarity(X, lambda x, y: float(x @ y), limit=9)
    message = r"each of shape \(3,\); got some of shape \(\)"
    with pytest.raises(ValueError, match=message):
        sim.between(X[0], [0, 1])
    with pytest.raises(ValueError, match=r"got some of shape \(2,\).*x\[None\]"):
        sim.between(X[:, :2], [0, 1])
    assert sim.calls == 0
    assert_array_equal(sim.between(X[0][None], [0, 1]), X[:1] @ X[:2].T)
    assert_array_equal(sim.between(list(X[:1]), [2]), X[:1] @ X[2:3].T)


def test_between_of_a_matrix_counts_its_items_from_zero():
    sim = Similarity.from_matrix(matrix(4))
    assert_array_equal(sim.between([3], [2]), matrix(4)[3:, 2:3])
    for new in (-1, 4):
        with pytest.raises(SimilarityError, match="IndexError"):
            sim.between([new], [2])


def test_between_obeys_the_limit_and_tells_what_failed():
    asked = []

    def function(x, y):
        asked.append((x, y))
        if x == "bad":
            raise ValueError("no")
        return 1.0

    sim = Similarity(["a", "b", "c"], function, limit=5)
    with pytest.raises(BudgetExceeded, match="needs 6 evaluations"):
        sim.between(["x", "y"], [0, 1, 2])
    assert asked == []
    message = "on new item 1 and item 2. Nothing of a request for new items is kept"
    with pytest.raises(ValueError, match=message):
        sim.between(["x", "bad"], [2])
    assert (sim.calls, sim.failed, sim.remaining) == (1, 1, 3)
    sim = Similarity(["a", "b", "c"], function, symmetric=False)
    with pytest.raises(ValueError, match="on item 2 and new item 0"):
        Similarity(["a", "b", "bad"], function, symmetric=False, limit=5).between(
            ["x"], [0], [2]
        )


def test_none_names_no_items():
    """As the landmarks of an answer that has none; in requests to read it is all."""
    sim = Similarity.from_matrix(np.eye(50), symmetric=False)
    for view in (sim, sim.map(abs), sim.symmetrized(), sim.run()):
        for ask in (view.columns, view.rows, lambda i, m=view: m.block(i, [0])):
            with pytest.raises(ValueError, match="one-dimensional array of integers"):
                ask(None)
    assert sim.calls == 0


def test_many_blocks_of_a_matrix_of_which_nothing_is_known_are_priced():
    sim = Similarity.from_matrix(np.eye(100), symmetric=False)
    assert sim.cost(*[(None, [j]) for j in range(29)]) == 2900


def test_a_source_of_ones_own_is_priced_where_it_matters_alone():
    class Own(Table):
        def known(self):
            raise AssertionError("nobody need know")

    sim = check_similarity(Own(np.eye(9)))
    assert sim.columns([1]).shape == (9, 1)
    assert [a.shape for a in sim.read(([0], [1]), pairs=([1], [2]))] == [(1, 1), (1,)]


def test_both_orders_refuse_a_mask_as_the_matrix_does():
    sim = Similarity(range(9), lambda x, y: float(x - 2 * y), symmetric=False)
    for view in (sim, sim.symmetrized()):
        with pytest.raises(ValueError, match="flatnonzero"):
            view.pairs([True, False, True], [0, 1, 2])


def test_known_of_means_is_what_is_known_when_it_is_asked():
    sim = Similarity(range(9), lambda x, y: float(x + y), symmetric=False)
    sim.pairs([0], [1])
    mean = sim.symmetrized()
    entries = mean.known()
    sim.pairs([2, 3], [3, 2])
    assert not [value for *_, values in entries for value in values]
    assert [values.tolist() for *_, values in mean.known()] == [[5.0]]
    sim.pairs([4], [4])
    entries = mean.known()
    sim.pairs([1], [0])  # the other order of a pair of which one is known
    assert sum(values.size for *_, values in entries) == 2


@pytest.mark.parametrize(
    "view",
    [lambda sim: sim.map(np.sqrt), lambda sim: Subset(sim, np.arange(3)), Joined],
)
def test_known_of_a_view_is_what_is_known_when_it_is_asked(view):
    columns = {"columns": range(9)} if view is Joined else {}
    sim = Similarity(range(9), lambda x, y: float(x + y), **columns)
    entries = view(sim).known()
    sim.pairs([0], [1])
    assert list(entries) == []
    assert [values.tolist() for *_, values in view(sim).known()] == [[1.0]]


def test_a_blank_of_a_run_is_on_its_counter():
    sim = Similarity([1.0, 2.0, 4.0], lambda x, y: x * y, limit=6)
    run = sim.run()
    run.blank().pairs([0, 1, 2], [0, 1, 2])
    assert (run.calls, run.remaining, sim.calls, sim.remaining) == (3, 3, 3, 3)
    with pytest.raises(BudgetExceeded):
        run.blank().block([0, 1], [0, 1, 2])
    assert run.block([0], [1, 2]).tolist() == [[2.0, 4.0]]
    whole = Similarity([1.0, 2.0, 4.0], lambda x, y: x * y, limit=6)
    whole.block(range(3), range(3))
    again = whole.run()
    assert (again.remaining, again.blank().remaining) == (6, 0)


def test_a_blank_of_a_run_has_what_the_limit_leaves():
    """Also where the run was answered by what was known."""
    sim = Similarity([1.0, 2.0, 4.0], lambda x, y: x * y, limit=12)
    sim.block([0, 1, 2], [0, 1, 2])
    run = sim.run()
    run.columns([0, 1])
    assert (run.calls, sim.remaining, run.blank().remaining) == (5, 6, 6)
    run.blank().pairs([0], [0])
    assert (sim.remaining, run.blank().remaining) == (5, 5)
