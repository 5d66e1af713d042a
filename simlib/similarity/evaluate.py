"""The evaluation of requests: in parallel, checked, counted, kept."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from math import inf
from typing import Any, NamedTuple, TypeAlias

import joblib
import numpy as np

from simlib._checks import whole_number
from simlib.similarity.budget import AsymmetryError, Budget, SimilarityError
from simlib.similarity.call import call, call_there, is_async
from simlib.similarity.items import check_alike, some_of
from simlib.similarity.requests import Rectangle, Request
from simlib.similarity.store import Names, Record, StoreError
from simlib.similarity.symmetry import SymmetryCheck

SECONDS = 1.0  # that a request of pairs should take
LARGEST = 2**14  # pairs in a request, at most
FASTER = 4  # pairs of a request over the pairs of the last measured one, at most

Finished: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


class Target(NamedTuple):
    """Where answers go."""

    out: np.ndarray
    budget: Budget
    finished: Finished | None = None  # is called with items and values of a request
    store: Names | None = None  # keeps the values for the next process


class Pace:
    """The number of pairs in a request that takes about a second."""

    def __init__(self, first: int):
        self.size = first

    def measured(self, size: int, seconds: float) -> None:
        """Adapt the size after a request of `size` pairs took these seconds."""
        wanted = int(SECONDS * size / max(seconds, 1e-9))
        most = min(max(FASTER * size, self.size), LARGEST)
        self.size = min(max(wanted, 1), most)


class Evaluator:
    """The similarity function and how it is called."""

    def __init__(
        self,
        items: Any,
        columns: Any,
        function: Callable[..., Any],
        batch: str | None,
        *,
        batch_size: int | None,
        n_jobs: int | None,
        check_symmetry: bool,
    ):
        if batch_size is not None:
            if batch == "block":
                raise ValueError(
                    'batch_size is for batch=None and "pairs"; the blocks of a '
                    'function with batch="block" have fixed shapes.'
                )
            batch_size = whole_number(batch_size, "batch_size", least=1)
        self.collections = [items, items if columns is None else columns]
        self.form = "items {} and {}" if columns is None else "row {} and column {}"
        self.of_items = True  # both items of a pair are items of the matrix
        self.function, self.batch, self.batch_size = function, batch, batch_size
        self.n_jobs, self.pace = n_jobs, Pace(1 if batch is None else 16)
        self.symmetry = SymmetryCheck(check_symmetry)

    def of_new(self, new_items: Any, side: int) -> Evaluator:
        """Return an evaluator of pairs whose item on this side is a new item."""
        check_alike(self.collections[side], new_items)
        new, one = copy.copy(self), self.form.startswith("items")
        names = ["item {}", "item {}"] if one else ["row {}", "column {}"]
        names[side] = f"new {names[side]}"
        new.form, new.of_items = " and ".join(names), False
        new.collections = [*self.collections]
        new.collections[side] = new_items
        new.symmetry = SymmetryCheck(False)
        return new

    def requests(self, block: Rectangle, total: int) -> Iterator[Request]:
        """Cut the missing entries of a block into requests."""
        if self.batch == "block":
            return block.grids()
        exact = self.batch_size is not None
        return block.pairwise(self._sizes(total), exact=exact)

    def scattered(
        self, i: np.ndarray, j: np.ndarray, missing: np.ndarray
    ) -> Iterator[Request]:
        """Cut the missing ones among given pairs into requests."""
        if self.batch != "block":
            size = self._sizes(missing.size)
            while missing.size:
                m = size()
                part, missing = missing[:m], missing[m:]
                yield Request(i[part], j[part], (part,))
            return
        by_row = np.unique(i[missing]).size <= np.unique(j[missing]).size
        lines = (i if by_row else j)[missing]
        order = np.argsort(lines, kind="stable")
        for part in np.split(missing[order], np.flatnonzero(np.diff(lines[order])) + 1):
            if by_row:
                yield Request(i[part[:1]], j[part], (part[None, :],), grid=True)
            else:
                yield Request(i[part], j[part[:1]], (part[:, None],), grid=True)

    def _sizes(self, total: int) -> Callable[[], int]:
        """Return a function that gives the size of the next request of pairs."""
        if self.batch_size is not None:
            return itertools.repeat(self.batch_size).__next__
        workers = joblib.effective_n_jobs(self.n_jobs)
        share = LARGEST if workers == 1 else max(1, total // (8 * workers))
        return lambda: min(self.pace.size, share)

    def _asked_back(self) -> Iterator[Request]:
        """Yield requests for pairs in the other order; for blocks one pair each."""
        while self.symmetry.due:
            pairs = self.symmetry.due.pop()
            assert pairs.known is not None
            if self.batch != "block":
                yield pairs
                continue
            for k in range(pairs.size):
                i, j, known = (x[k : k + 1] for x in (pairs.i, pairs.j, pairs.known))
                yield Request(i, j, (), grid=True, known=known)

    def _sent(self, request: Request, workers: int) -> tuple[Any, ...]:
        """Return the items to fetch and, for workers, the places of the pairs."""
        if self.batch == "block":
            return request.i, request.j, None
        if workers == 1:
            return *request.pairs(), None
        sides = (np.unique(side, return_inverse=True) for side in request.pairs())
        (i, a), (j, b) = sides
        return i, j, (a.astype(np.uint32), b.astype(np.uint32))

    def run(self, requests: Iterator[Request], target: Target) -> None:
        """Evaluate the requests; after a failure finish those that were begun."""
        if target.store is not None:
            target.store.flush()  # if this fails, nothing is evaluated
        begun: dict[int, Request] = {}
        failures: dict[int, SimilarityError | StoreError] = {}
        grids, workers = self.batch == "block", joblib.effective_n_jobs(self.n_jobs)
        x, y = self.collections

        def every() -> Iterator[Request]:
            yield from self._asked_back()
            for request in requests:
                yield request
                yield from self._asked_back()

        def calls() -> Iterator[tuple[Any, ...]]:
            for number, request in enumerate(every()):
                if failures:
                    return
                i, j, places = self._sent(request, workers)
                try:
                    xs, ys = some_of(x, i), some_of(y, j)
                except Exception as error:  # if raised here joblib would wait for ever
                    where = self.form.format(*request.pair(0))
                    failures[number] = failure = SimilarityError(
                        f"The items themselves could not be read, {where} or later "
                        f"ones: {error!r}. `items` has to be a sequence or an array, "
                        "one item for each position or row."
                    )
                    failure.__cause__ = error
                    return
                begun[number] = request
                if request.known is None:
                    target.budget.hand_over(request.size)
                yield number, self.function, self.batch, xs, ys, places

        # Requests that may be begun and not yet written.
        most = inf if target.store is None else 2 * workers
        answering = self._answers(calls(), workers, most, begun, target.budget)
        with closing(answering) as answers:
            for number, values, seconds, error in answers:
                request = begun.pop(number)
                if request.known is not None:
                    if error is not None and not isinstance(error, Exception):
                        raise error
                    self.symmetry.compare(request, values)
                    continue
                failure = self._settle(request, values, error, target)
                try:
                    if failure is None:
                        if not grids:
                            self.pace.measured(request.size, seconds)
                        # In other blocks tiles on the diagonal show an asymmetry.
                        if not grids or 1 in request.shape:
                            self.symmetry.see(request, values)
                    elif isinstance(failure, SimilarityError | StoreError):
                        failures[number] = failure
                    else:
                        raise failure  # KeyboardInterrupt and the like
                finally:  # or the traceback of an error would keep `out` alive
                    error = failure = None
        if failures:
            raise failures.pop(min(failures))
        if self.symmetry.due:  # workers may answer when all requests are sent
            self.run(iter(()), target)

    def _answers(
        self,
        calls: Iterator[tuple[Any, ...]],
        workers: int,
        most: float,
        begun: dict[int, Request],
        budget: Budget,
    ) -> Generator[tuple[int, np.ndarray, float, BaseException | None], None, None]:
        """Yield the answers as they come, from here or from the workers of joblib."""
        if workers == 1:
            for arguments in calls:
                yield call(*arguments)
            return
        sent: dict[int, Callable[[], Any]] = {}  # and not yet answered
        # A new Parallel each time: joblib deletes the large arrays of a call when it is
        # over, and the next call of the same Parallel would expect them to exist.
        waits = is_async(self.function)  # in threads; joblib starts one if not told
        parallel = partial(
            joblib.Parallel,
            workers if waits else self.n_jobs,
            prefer="threads" if waits else None,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs",
        )
        more = True

        def some() -> Iterator[Any]:
            nonlocal more
            while len(begun) < most:
                each = next(calls, None)
                if each is None:
                    more = False
                    return
                # Dask would leave separate arguments with one worker, and lose them
                # with it.
                sending = sent[each[0]] = partial(call_there, *each)
                yield joblib.delayed(sending)()

        try:
            while more:
                with _closing(parallel()(some())) as answers:
                    for answer in answers:
                        del sent[answer[0]]
                        yield answer
        except Exception as error:
            raise _broken(begun, sent, error, budget, self.form) from error

    def _settle(
        self,
        request: Request,
        answer: np.ndarray,
        error: BaseException | None,
        target: Target,
    ) -> BaseException | None:
        """Keep and count the finite values of an answer; return the error, if any."""
        out, form = target.out, self.form
        expected = request.shape if self.batch == "block" else (request.size,)
        if error is None and answer.shape != expected:
            return SimilarityError(
                f"The similarity function returned shape {answer.shape} where "
                f"{expected} was expected, from {form.format(*request.pair(0))} on. "
                "See `batch` of Similarity for the forms a function may have. "
                f"{_lost(request.size)}"
            )
        lost = 0 if error is None else 1 if self.batch is None else request.size
        count = partial(target.budget.answered, request.size, answer.size, lost)
        with np.errstate(over="ignore"):
            values = answer.ravel().astype(out.dtype, copy=False)
        if request.partly and values.size == request.size:
            before = out[request.target].ravel()
            values = np.where(np.isnan(before), values, before)
        finite = np.isfinite(values)
        every = np.full(request.size, np.nan, dtype=out.dtype)
        np.copyto(every[: values.size], values, where=finite)
        try:
            settled = request.settled(every)
        except AsymmetryError as asymmetry:
            target.budget.answered(request.size, 0, request.size)
            return asymmetry
        unwritten = _keep(request, settled, target, count)
        if error is None and finite.all():
            return unwritten
        if error is not None and not isinstance(error, Exception):
            return error
        keeps = (
            "This Similarity keeps every finite value"
            if self.of_items or target.store is not None
            else "Nothing of a request for new items is kept"
        )
        mend = "mend the function, leave the item out"
        mend += ", or `tell` the value of the pair" if self.of_items else ""
        if finite.all():
            k, did, gone = values.size, f"raised {error!r} on", f" {_lost(lost)}"
            later = "" if self.batch is None else ", or later ones of its batch"
        else:
            k, later, gone = int(np.argmin(finite)), "", ""
            value = answer.ravel()[k]
            beyond = f", beyond {out.dtype}," if np.isfinite(value) else ""
            did = f"returned {value}{beyond} for"
        pair = request.pair(k)
        failure = SimilarityError(
            f"The similarity function {did} {form.format(*pair)}{later}. {keeps}; "
            f"{mend}, and ask it again.{gone}",
            pair,
        )
        failure.__cause__ = error
        return failure


def _keep(
    request: Request, values: np.ndarray, target: Target, count: Callable[[], None]
) -> StoreError | None:
    """Keep and count the values that are not NaN; return the store's error, if any."""
    out, store, finished = target.out, target.store, target.finished
    record = Record(request.i, request.j, values, request.grid)
    got = ~np.isnan(values)
    if request.partly:  # known values are no answers of the function
        got &= np.isnan(out[request.target])
    if not got.all():
        got = got.ravel()
        i, j = (items[got] for items in request.pairs())
        record = Record(i, j, values.ravel()[got], False)

    def keep() -> None:
        if store is not None:  # first: a value that it has not received is not known
            store.hand(record)
        request.fill(values, out)
        if finished is not None:
            finished(*record.pairs(), record.values.ravel())

    try:
        keep()
    except KeyboardInterrupt:
        keep()  # twice does no harm, and now nothing is left out
        raise
    finally:
        count()
    if store is not None:
        try:
            store.flush()
        except StoreError as error:
            return error
    return None


@contextmanager
def _closing(answers: Any) -> Iterator[Any]:
    """Close the answers of joblib, without its warning that some were not taken."""
    try:
        yield answers
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)
            answers.close()


def _sendable(call: Callable[[], Any]) -> bool:
    """Tell whether a call can be sent to another process."""
    try:
        pickle.dumps(joblib.wrap_non_picklable_objects(call))
    except Exception:
        return False
    return True


def _broken(
    begun: dict[int, Request],
    sent: dict[int, Callable[[], Any]],
    error: Exception,
    budget: Budget,
    form: str,
) -> SimilarityError:
    """Return the error for requests that were begun and that no worker answered."""
    if not sent:
        return SimilarityError(
            f"joblib could not begin: {error!r}. Nothing is lost. Answers are taken as "
            'they come, which the backends "loky", "threading" and "dask" can do.'
        )
    where = form.format(*next(iter(begun.values())).pair(0))
    begun = {k: request for k, request in begun.items() if request.known is None}
    size = sum(request.size for request in begun.values())
    if isinstance(error, pickle.PicklingError) or "pickle" in str(error):
        unsent = [k for k in begun if k in sent and not _sendable(sent[k])]
        kept = sum(begun[k].size for k in unsent)
        budget.answered(kept, 0, 0)  # the others may have been evaluated
        return SimilarityError(
            f"The similarity function or an item cannot be sent to a worker process: "
            f"{_first_cause(error)}. Leave out what cannot be pickled (an open file, a "
            "connection, a lock), make it inside the function, or pass n_jobs=1 or use "
            'joblib.parallel_config(backend="threading"). A function of a compiled '
            "module goes inside one of your own, lambda x, y: module.function(x, y)."
            + (f" {_lost(size - kept)}" if size > kept else "")
        )
    return SimilarityError(
        f"A worker gave no answer from {where} on: {error!r}. It may have "
        "run out of memory or crashed. This Similarity keeps whatever is finished; "
        f"mend the function and ask it again. {_lost(size)}"
    )


def _first_cause(error: BaseException) -> str:
    """Return what the error says that led to an error, perhaps in another process."""
    while (cause := error.__cause__) not in (None, error):
        error = cause
    remote = type(error).__module__.startswith("joblib")  # its text is a traceback
    return str(error).rstrip('\n"').rpartition("\n")[2] if remote else repr(error)


def _lost(size: int) -> str:
    """Return the sentence that says how many evaluations a failure lost."""
    return (
        f"Evaluations handed over with it and lost: {size}. They count against "
        "`limit`, see `failed`."
    )
