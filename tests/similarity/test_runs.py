"""What was paid for is not paid for again: searches and estimates that start again."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from simlib import (
    BudgetExceeded,
    Similarity,
    SimilarityError,
    approximate_to,
    estimate_error,
    tikhonov,
)
from simlib.neighbors import (
    SimilarityNeighbors,
    most_similar,
    nearest,
    pairs_above,
    search,
)
from support.matrices import indefinite

N = 120
X = np.random.default_rng(0).standard_normal((N, 2))
NEW = np.random.default_rng(1).standard_normal((9, 2))
CHEAP = Similarity.from_matrix(cdist(X, X) + cdist(X[:, :1], X[:, :1]))


def closeness(x, y):
    return np.exp(-np.sum((x - y) ** 2, axis=-1))


FORMS = {
    None: closeness,
    "pairs": closeness,
    "block": lambda xs, ys: np.exp(-cdist(xs, ys, "sqeuclidean")),
}


class Fails:
    """A function that fails after so many calls, twice: a check lets one pass."""

    def __init__(self, batch, calls):
        self.batch, self.left, self.asked, self.failures = batch, calls, 0, 2

    def __call__(self, x, y):
        values = FORMS[self.batch](x, y)
        self.left -= np.size(values)
        if self.left < 0 < self.failures:
            self.failures -= 1
            raise OSError("no route to host")
        self.asked += np.size(values)
        return values


def neighbors(sim):
    return nearest(sim, 3, limit=2500, check=3, rng=0)


def helped(sim):
    return nearest(sim, 3, limit=2500, cheap=CHEAP, rng=0)


def certain(sim):
    distance = sim.map(lambda s: np.sqrt(-np.log(np.maximum(s, 1e-300))))
    bound = Similarity.from_matrix(cdist(X[:, :1], X[:, :1]))
    return nearest(distance, 3, limit=None, cheap=bound, distance=True, exact=True)


def above(sim):
    return pairs_above(sim, 0.8, rng=0)


def most(sim):
    return most_similar(sim, 300, limit=3000, cheap=CHEAP, rng=0)


def hunted(sim):
    return pairs_above(sim, 0.1, recall=None, cheap=CHEAP, rng=0)


def graph(sim):
    return SimilarityNeighbors(sim, random_state=0).fit(np.arange(N)).graph_


def error(sim):
    approximation = tikhonov(sim, 9, rng=0)
    return estimate_error(sim, approximation, 600, rng=0)


def adaptive(sim):
    return approximate_to(sim, 0.2, rng=0)


def looked_up(sim):
    return search(sim, NEW, 3, limit=40, fit_limit=2000, rng=0)


VERBS = [neighbors, helped, certain, above, most, hunted]
VERBS += [graph, error, adaptive, looked_up]


def told(result):
    """Return all numbers of a result."""
    if hasattr(result, "approximation"):
        return result.error, result.reason, result.approximation.toarray().tolist()
    names = ("i", "j", "indices", "values", "recall", "value", "low", "high", "calls")
    return [np.asarray(getattr(result, name, None)).tolist() for name in names]


@pytest.mark.parametrize("verb", VERBS)
def test_started_again_in_the_same_process(verb):
    """With whatever is looked at in between, if it is no sample of what is unknown."""
    sim = Similarity(X, closeness)
    first, paid = told(verb(sim)), sim.calls
    if verb is not error:
        sim.pairs([0, 1, 2], [5, 6, 7])
        paid = sim.calls
    assert told(verb(sim)) == first
    new = NEW.shape[0] * 40 if verb is looked_up else 0  # nothing keeps these
    assert sim.calls == paid + new


@pytest.mark.parametrize("batch", FORMS)
@pytest.mark.parametrize("verb", VERBS)
def test_interrupted_twice_and_started_again(tmp_path, verb, batch):
    """One price in all, and the next time none."""
    options = {"batch": batch, "check_symmetry": False}  # whose failures are not told
    one_go = Similarity(X, FORMS[batch], **options)
    expected = told(verb(one_go))
    options |= {"store": tmp_path / "s", "function_id": "1"}
    if batch != "block":
        options["batch_size"] = 50
    paid = 0
    for calls in (one_go.calls // 3, one_go.calls // 5):
        with Similarity(X, Fails(batch, calls), **options) as sim:
            with pytest.raises(SimilarityError, match="no route to host"):
                verb(sim)
            paid += sim.calls
    with Similarity(X, FORMS[batch], **options) as sim:
        assert told(verb(sim)) == expected
        paid += sim.calls
        assert told(verb(sim)) == expected
        assert sim.verified == 8 or batch == "block"
    if batch != "block":  # which asks again for whole tiles on the diagonal
        assert paid == one_go.calls
    function = Fails(batch, np.inf)
    with Similarity(X, function, verify=0, **options) as sim:
        assert told(verb(sim)) == expected
        assert sim.calls == function.asked == 0


def test_threads_pay_once_for_what_they_ask_alike():
    sim = Similarity(X, closeness)
    with ThreadPoolExecutor(3) as threads:
        results = [told(result) for result in threads.map(neighbors, [sim] * 3)]
    assert results == [told(neighbors(Similarity(X, closeness)))] * 3
    assert sim.calls <= 2500


@pytest.mark.filterwarnings("ignore:A promised recall")
def test_of_both_orders_as_well(tmp_path):
    K = indefinite(N) + np.triu(indefinite(N, seed=1)) / 10
    options = {"batch": "pairs", "symmetric": False}
    options |= {"store": tmp_path / "s", "function_id": "1"}
    results = []
    for _ in range(2):
        with Similarity(np.arange(N), lambda i, j: K[i, j], **options) as sim:
            mean = sim.symmetrized().map(np.tanh)
            results.append((told(helped(mean)), told(above(mean)), told(error(mean))))
    assert results[0] == results[1]
    assert sim.calls == 0


def test_the_limit_of_the_similarity_is_that_of_what_is_paid():
    sim = Similarity(X, closeness, limit=2500)
    first = neighbors(sim)
    assert sim.remaining < 150  # rows of the check that were known in part
    assert told(neighbors(sim)) == told(first)  # at no call
    pairs = pairs_above(sim, 0.8, rng=0)  # has to stop where the limit is reached
    assert not pairs.reached
    assert 2490 < sim.calls <= 2500


def test_a_search_for_new_items_does_not_begin_what_the_limit_cannot_pay():
    sim = Similarity(X, closeness)
    sim.columns(np.arange(40))
    paid = sim.calls
    sim.limit = paid + 359
    with pytest.raises(BudgetExceeded, match="Nothing was evaluated"):
        search(sim, NEW, 3, limit=40, fit_limit=0, rng=0)
    assert sim.calls == paid
    sim.limit = paid + 360
    search(sim, NEW, 3, limit=40, fit_limit=0, rng=0)
    assert sim.calls == paid + 360


def test_a_run_knows_what_it_has_asked():
    K = indefinite(30)
    sim = Similarity.from_matrix(K)
    sim.columns([3])
    run = sim.run()
    assert (run.calls, run.cost((None, [3])), list(run.known())) == (0, 30, [])
    np.testing.assert_array_equal(run.columns([3, 4]), K[:, [3, 4]])
    np.testing.assert_array_equal(run.block([1, 2], [5, 3]), K[[1, 2]][:, [5, 3]])
    np.testing.assert_array_equal(run.pairs([7, 1], [8, 3]), K[[7, 1], [8, 3]])
    np.testing.assert_array_equal(run.rows([5]), K[[5]])
    assert run.calls == 59 + 2 + 1 + 26
    assert sim.calls == 30 + 29 + 2 + 1 + 26
    known = {
        (min(pair), max(pair))
        for i, j, _ in sim.known()
        for pair in zip(i.tolist(), j.tolist(), strict=True)
    }
    assert len(known) == sum(i.size for i, *_ in sim.known()) == sim.calls
    assert sim.cost((None, [3, 4, 5])) == 0
    every = np.arange(30)
    assert sim.cost((every, every)) == 465 - sim.calls
    assert sim.cost(pairs=([7, 9], [8, 10])) == 1
    assert np.isnan(run.peek([9], [10])).all()
    other = sim.run(asked=True)
    assert (other.cost((None, [3])), other.cost((None, [4]))) == (0, 29)
    sim.columns([9])  # by another thread, say
    assert run.cost((None, [9])) == 27
    run.columns([9])
    assert sim.calls == 88 + 27
    assert sim.informed().run().cost((None, [9])) == 0


def test_a_run_counts_what_threads_ask_and_what_was_not_in_vain():
    K = indefinite(30)

    def slowly(x, y):
        time.sleep(1e-4)
        if (x, y) == (29, 7) and trouble:
            raise OSError(trouble.pop())
        return K[x, y]

    trouble = ["no route to host"]
    sim = Similarity(range(30), slowly, check_symmetry=False)
    run = sim.run()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run.columns, [[3, 4]] * 4))
    assert run.calls == sim.calls == 59
    with pytest.raises(SimilarityError):
        run.columns([7])
    assert run.calls == sim.calls == 59 + 26  # without (7, 7), which comes last
    run.columns([7])
    run.between([1, 2], [5, 6, 5])
    assert run.calls == sim.calls == 59 + 28 + 4


def test_what_is_known_is_used_where_it_is_asked_for_by_name():
    sim = Similarity(X, closeness)
    sim.columns(np.arange(N))
    paid = sim.calls
    assert nearest(sim.informed(), 3, limit=0).calls == 0
    assert nearest(sim.map(np.sqrt).informed(), 3, limit=0).calls == 0
    assert nearest(sim, 3, limit=2500, rng=0).calls > 2400  # of the run
    assert sim.calls == paid


def test_both_halves_of_small_tiles_do_not_spend_the_limit_twice():
    sim = Similarity(X[:40], FORMS["block"], batch="block", limit=300)
    K, error, _ = approximate_to(sim, 0.5, rng=0)
    paid = sim.calls
    again, the_same, _ = approximate_to(sim, 0.5, rng=0)
    assert (again.rank, the_same) == (K.rank, error)
    assert sim.calls == paid
    sim = Similarity(X[:40], FORMS["block"], batch="block", limit=755)
    first = told(nearest(sim, 1, limit=755, rng=0))
    assert told(nearest(sim, 1, limit=755, rng=0)) == first
    assert sim.calls <= 755


def test_a_run_knows_what_the_limit_leaves_now():
    """Through views, of a given diagonal, after failures, and where it changed."""
    sim = Similarity(X, closeness, limit=1000, check_symmetry=False)
    sim.between(NEW, np.arange(60))
    for run in (sim.run(), sim.map(np.sqrt).run(), sim.run().map(np.sqrt)):
        assert run.remaining == sim.remaining == 460
    with pytest.raises(BudgetExceeded, match="only 460 are left"):
        nearest(sim.map(np.sqrt), 3, limit=900, rng=0)
    assert sim.calls == 540
    whole = Similarity(X, closeness, limit=1000, diagonal=1.0)
    assert whole.run().remaining == 1000
    run = sim.run()
    for limit, left in ((2000, 1460), (None, np.inf), (300, 0), (1000, 460)):
        sim.limit = limit
        assert run.remaining == sim.remaining == left
    assert run.fork(limit=5).remaining == 5
    tiles = Similarity(X, FORMS["block"], batch="block").run()
    tiles.block(range(8), range(8))  # 64 calls for 36 pairs
    assert tiles.fork(limit=50).remaining == 50

    def fails(x, y):
        raise OSError("gone")

    sim = Similarity(range(9), fails, limit=10)
    run = sim.run()
    with pytest.raises(SimilarityError):
        run.pairs([0], [1])
    assert run.remaining == sim.remaining == 9


def test_a_run_is_told_nothing_else_than_what_is_known():
    sim = Similarity(range(9), lambda x, y: float(x + y))
    sim.pairs([0], [1])
    with pytest.raises(ValueError, match=r"is 1\.0 already"):
        sim.run().tell([0], [1], [99.0])
