"""How similarities are evaluated: cut into requests, counted, checked, in parallel."""

from __future__ import annotations

import itertools
import pickle
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from math import inf
from numbers import Real
from typing import Any, NamedTuple, Protocol, TypeAlias

import joblib
import numpy as np
import scipy.sparse

from simlib.memory import shared
from simlib.store import Record, Store, StoreError

__all__ = [
    "TILE",
    "AsymmetryError",
    "BudgetExceeded",
    "Evaluator",
    "Finished",
    "Ledger",
    "Rectangle",
    "Request",
    "SimilarityError",
    "accessor",
    "check_budget",
    "is_whole",
    "unmasked",
]

ITEMS = "items {} and {}"  # how a pair is named
SECONDS = 1.0  # that a request should take where the function sees pairs
LARGEST = 2**14  # pairs in such a request, at most
FASTER = 4  # a request has at most as many times the pairs of those measured
STRIP = 2**18  # entries looked through at a time for those that are missing
AREA = 2**17  # entries of a tile where the function sees blocks
WIDTH = 2**10  # columns of a tile, at most
TILE = 64  # side of the diagonal tiles of which a block function sees both halves

Fetch: TypeAlias = Callable[[np.ndarray], Any]
Finished: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], None]


class SimilarityError(ValueError):
    """The similarity function failed, or answered with something that is no number."""


class AsymmetryError(SimilarityError):
    """A function declared symmetric gave two values for one pair."""


class BudgetExceeded(RuntimeError):
    """A request needs more evaluations than the limit leaves; none was made."""


class Ledger:
    """How many evaluations were made, how many were lost, and how many may be made."""

    def __init__(self, limit: float | None):
        # Each is written by one thread only: where requests begin, where answers come.
        self._begun = 0
        self._got = (0, 0)  # values; evaluations that are no longer awaited or lost
        self.limit = limit
        self._bar: Any = None

    @property
    def calls(self) -> int:
        """Values obtained."""
        return self._got[0]

    @property
    def failed(self) -> int:
        """Evaluations handed over from which no value came back."""
        return self._begun - self._got[1]

    @property
    def limit(self) -> float | None:
        """Most evaluations that may be made, those that failed included."""
        return self._limit

    @limit.setter
    def limit(self, value: float | None) -> None:
        real = isinstance(value, Real) and not isinstance(value, bool)
        if value is not None and not (real and value >= 0):
            raise ValueError(f"limit must be a number from 0 on, or None; got {value}.")
        self._limit = None if value is None else inf if value == inf else int(value)

    @property
    def remaining(self) -> float:
        """Evaluations that may still be made."""
        if self.limit is None:
            return inf
        return max(self.limit - self.calls - self.failed, 0)

    def hand_over(self, size: int) -> None:
        """Count so many evaluations as lost, until they are answered."""
        self._begun += size

    def answered(self, size: int, values: int, failed: int) -> None:
        """Count the values of a request that was handed over, and what it lost."""
        calls, over = self._got
        self._got = calls + values, over + size - failed
        if self._bar is not None:
            self._bar.update(values)

    @contextmanager
    def bar(self, total: float | None) -> Iterator[None]:
        """Show what is counted inside on one progress bar, the outermost."""
        if self._bar is not None:
            yield
            return
        from tqdm.auto import tqdm

        try:
            with tqdm(total=total, unit=" calls", unit_scale=True) as self._bar:
                yield
        finally:
            self._bar = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_bar": None}


class _Budget(Protocol):
    @property
    def limit(self) -> float | None: ...
    @property
    def remaining(self) -> float: ...
    @property
    def failed(self) -> int: ...


def check_budget(needed: int, budget: _Budget) -> None:
    """Raise `BudgetExceeded` if a request needs more evaluations than remain."""
    if needed > budget.remaining:
        failed = f" ({budget.failed} failed)" if budget.failed else ""
        raise BudgetExceeded(
            f"This request needs {needed} evaluations, and of the limit of "
            f"{budget.limit} only {budget.remaining} are left{failed}. "
            "Nothing was evaluated and everything known is kept: raise `limit` on "
            "this Similarity, or ask for fewer landmarks (simlib.largest tells how "
            "many a budget allows)."
        )


class Request(NamedTuple):
    """Items handed to the function in one go, and where the answer belongs.

    Pairs (i[k], j[k]), or the whole grid of i and j; `target` and `mirror` are indices
    into the array that is being filled, the second for the same pairs the other way
    round, of which `mirrored` tells where there are any.
    """

    i: np.ndarray
    j: np.ndarray
    target: tuple[Any, ...]
    grid: bool = False
    mirror: tuple[Any, ...] | None = None
    mirrored: Any = slice(None)
    halves: bool = False  # a grid of one set of items: both orders of each pair

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer."""
        return (self.i.size, self.j.size) if self.grid else (self.i.size,)

    @property
    def size(self) -> int:
        """How many values are asked for."""
        return self.i.size * self.j.size if self.grid else self.i.size

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the items of each value, flat."""
        if not self.grid:
            return self.i, self.j
        return np.repeat(self.i, self.j.size), np.tile(self.j, self.i.size)

    def pair(self, k: int) -> tuple[int, int]:
        """Return the items of the k-th value."""
        a, b = divmod(k, self.j.size) if self.grid else (k, k)
        return int(self.i[a]), int(self.j[b])

    def settled(self, values: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Return values, NaN for those missing, as they belong into `out`."""
        values = values.reshape(self.shape)
        return self._one_of_both(values, out[self.target]) if self.halves else values

    def fill(self, values: np.ndarray, out: np.ndarray) -> None:
        """Write settled values into `out`."""
        out[self.target] = values
        if self.mirror is not None:
            out[self.mirror] = values.T[self.mirrored]

    def _one_of_both(self, block: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return a symmetric block; raise where its two halves differ."""
        gap = np.abs(block - block.T)
        if not (np.isnan(gap).all() or np.nanmax(gap) <= 0.01 * np.nanmax(abs(block))):
            a, b = np.unravel_index(np.nanargmax(gap), gap.shape)
            raise AsymmetryError(
                f"The similarity function is not symmetric: it gives {block[a, b]:.6g} "
                f"for items {self.i[a]} and {self.j[b]}, and {block[b, a]:.6g} in the "
                "other order. Pass symmetric=False, and .symmetrized() for the mean of "
                "the two."
            )
        upper = np.triu(block)
        upper[np.isnan(upper)] = np.triu(block.T)[np.isnan(upper)]
        block = upper + np.triu(upper, 1).T
        known = np.flatnonzero(~np.isnan(before.diagonal()))
        block[known, known] = before[known, known]
        return block


class Rectangle:
    """A block under evaluation: ``out = K[rows][:, columns]``, NaN where unknown.

    Parameters
    ----------
    rows, columns : arrays of int
        Items, none twice; n of them are all items in order.
    out : array of shape (len(rows), len(columns))
    n : int
        Number of items.
    symmetric : bool
        Whether a pair that is met in both orders is one.
    fresh : bool
        Nothing in `out` is known.
    given : bool
        The diagonal of the matrix was given.
    """

    def __init__(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        out: np.ndarray,
        *,
        n: int,
        symmetric: bool,
        fresh: bool = True,
        given: bool = False,
    ):
        self.rows, self.columns, self.out = rows, columns, out
        self.fresh, self.given = fresh, given
        self.row_in, self.column_in = rows[:0], columns[:0]
        if symmetric:  # where the items stand that are rows and columns
            self.row_in, self.column_in = shared(rows, columns, n)

    def missing(self, *, grids: bool) -> int:
        """Return how many evaluations are needed, of grids or of single pairs."""
        count, out = self.out.size, self.out
        if not self.fresh:
            flat = out.reshape(-1, order="A")
            parts = (flat[k : k + STRIP] for k in range(0, flat.size, STRIP))
            count = sum(int(np.count_nonzero(np.isnan(part))) for part in parts)
        for k in range(0, self.row_in.size, TILE):  # what lies below the diagonal
            lower = out[np.ix_(self.row_in[k:], self.column_in[k : k + TILE])]
            count -= int(np.count_nonzero(np.tril(np.isnan(lower), -1)))
        if grids:
            for mask in self._diagonal_tiles():
                whole = is_whole(mask, self.given)
                count += whole * (mask.size - int(np.count_nonzero(np.triu(mask))))
        return count

    def pairwise(self, size: Callable[[], int], *, exact: bool) -> Iterator[Request]:
        """Cut what is missing into requests of pairs, `size()` at most.

        Unless they have to be `exact`, whole rows are preferred.
        """
        width, (row_in, column_in) = self.columns.size, (self.row_in, self.column_in)
        if self.fresh and not exact:
            yield from self._by_rows(size)
        groups = [(row_in, True)]
        if not self.fresh or exact:
            groups.insert(0, (_others(self.rows.size, row_in), False))
        rank = np.full(width, row_in.size)  # among the items that are rows too
        rank[column_in] = np.arange(row_in.size)
        height = max(1, STRIP // max(1, width))
        rest = np.zeros((3, 0), dtype=np.int64)
        for rows, is_in in groups:
            for k in range(0, rows.size, height):
                mask = np.isnan(self.out[rows[k : k + height]])
                if is_in:
                    mask &= np.arange(k, k + len(mask))[:, None] <= rank
                x, b = np.nonzero(mask)
                x += k
                found = np.stack([rows[x], b, x if is_in else np.full(x.size, -1)])
                rest = np.concatenate([rest, found], axis=1)
                while rest.shape[1] >= (m := size()):
                    yield self._scattered(rest[:, :m], rank)
                    rest = rest[:, m:]
        while rest.shape[1]:
            m = size()
            yield self._scattered(rest[:, :m], rank)
            rest = rest[:, m:]

    def _by_rows(self, size: Callable[[], int]) -> Iterator[Request]:
        """Cut the rows of items that are no columns, or one at a time into pieces."""
        every, k = np.arange(self.columns.size), 0
        row_in = np.sort(self.row_in)
        while k < self.rows.size and every.size:
            height = size() // every.size
            end = k + max(height, 1)
            inside = row_in[slice(*row_in.searchsorted([k, end]))]
            rows = np.delete(np.arange(k, min(end, self.rows.size)), inside - k)
            k = end
            if height and rows.size:
                yield self._grid(rows, every)
                continue
            first = 0
            while first < every.size and rows.size:
                places = every[first : first + size()]
                yield self._grid(rows, places)
                first += places.size

    def _scattered(self, places: np.ndarray, rank: np.ndarray) -> Request:
        """Ask for pairs; x and rank[b] number the items that are rows and columns."""
        a, b, x = places
        request = Request(self.rows[a], self.columns[b], (a, b))
        both = np.flatnonzero((x >= 0) & (rank[b] < self.row_in.size))
        if both.size == 0:
            return request
        mirror = self.row_in[rank[b[both]]], self.column_in[x[both]]
        return request._replace(mirror=mirror, mirrored=both)

    def _grid(self, a: np.ndarray, b: np.ndarray) -> Request:
        return Request(self.rows[a], self.columns[b], _index(a, b), grid=True)

    def grids(self) -> Iterator[Request]:
        """Cut what is missing into requests for grids, in tiles of fixed shapes."""
        row_in, column_in = self.row_in, self.column_in
        row_out = _others(self.rows.size, row_in)
        column_out = _others(self.columns.size, column_in)
        every_column = np.arange(self.columns.size)
        for a, b in (*_cut(row_out, every_column), *_cut(row_in, column_out)):
            if self.fresh:
                yield self._grid(a, b)
                continue
            for here, there in _patterns(np.isnan(self.out[np.ix_(a, b)])):
                yield self._grid(a[here], b[there])
        both = np.arange(row_in.size)
        for k in range(0, both.size, TILE):
            x = both[k : k + TILE]
            mask = np.isnan(self.out[np.ix_(row_in[x], column_in[x])])
            if is_whole(mask, self.given):
                yield self._grid(row_in[x], column_in[x])._replace(halves=True)
            else:
                yield from self._mirrored(x, x, np.triu(mask))
            for part, y in _cut(x, both[k + TILE :]):
                mask = np.isnan(self.out[np.ix_(row_in[part], column_in[y])])
                yield from self._mirrored(part, y, mask)

    def _mirrored(
        self, x: np.ndarray, y: np.ndarray, mask: np.ndarray
    ) -> Iterator[Request]:
        """Ask for pairs of the items that are both rows and columns, numbered so."""
        for here, there in _patterns(mask):
            a, b = x[here], y[there]
            request = self._grid(self.row_in[a], self.column_in[b])
            mirror = np.ix_(self.row_in[b], self.column_in[a])
            yield request._replace(mirror=mirror)

    def _diagonal_tiles(self) -> Iterator[np.ndarray]:
        """Yield what is missing of each tile on the diagonal."""
        for k in range(0, self.row_in.size, TILE):
            a, b = self.row_in[k : k + TILE], self.column_in[k : k + TILE]
            yield np.isnan(self.out[np.ix_(a, b)])


class Pace:
    """How many pairs to hand over at a time so that it takes about a second."""

    def __init__(self, first: int):
        self.size = first

    def measured(self, size: int, seconds: float) -> None:
        """Learn that so many pairs took so long."""
        wanted = int(SECONDS * size / max(seconds, 1e-9))
        most = min(max(FASTER * size, self.size), LARGEST)
        self.size = min(max(wanted, 1), most)


class Evaluator:
    """The similarity function and how it is called."""

    def __init__(
        self,
        items: Any,
        function: Callable[..., Any],
        batch: str | None,
        *,
        batch_size: int | None,
        n_jobs: int | None,
        progress: bool,
    ):
        self.fetch = accessor(items, batch)
        self.function, self.batch, self.batch_size = function, batch, batch_size
        self.n_jobs, self.progress = n_jobs, progress
        self.pace = Pace(1 if batch is None else 16)

    def missing(self, block: Rectangle) -> int:
        """Return how many evaluations a block needs."""
        return block.missing(grids=self.batch == "block")

    def requests(self, block: Rectangle, total: int, workers: int) -> Iterator[Request]:
        """Cut what is missing of a block into requests."""
        if self.batch == "block":
            return block.grids()
        exact = self.batch_size is not None
        return block.pairwise(self._sizes(total, workers), exact=exact)

    def scattered(
        self, i: np.ndarray, j: np.ndarray, missing: np.ndarray, workers: int
    ) -> Iterator[Request]:
        """Cut the missing ones among given pairs into requests."""
        if self.batch != "block":
            size = self._sizes(missing.size, workers)
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

    def _sizes(self, total: int, workers: int) -> Callable[[], int]:
        """Return what tells the size of the next request of pairs."""
        if self.batch_size is not None:
            return itertools.repeat(self.batch_size).__next__
        share = LARGEST if workers == 1 else max(1, total // (8 * workers))
        return lambda: min(self.pace.size, share)

    def run(
        self,
        requests: Callable[[int], Iterator[Request]],
        out: np.ndarray,
        ledger: Ledger,
        finished: Finished | None = None,
        store: Store | None = None,
        fetch: tuple[Fetch, Fetch] | None = None,
        form: str = ITEMS,
    ) -> None:
        """Carry out the requests into `out`; after a failure finish what was begun.

        `requests` is called with the number of workers.
        `finished` is given the items and the values of each request that came back,
        and `store` keeps them.
        `fetch` is for pairs of which one is no item: what fetches the two sides, and
        `form` how a pair is named.
        """
        if store is not None:
            store.flush()  # what could not be written: or nothing is evaluated
        begun: dict[int, Request] = {}
        failures: dict[int, SimilarityError | StoreError] = {}
        grids, workers = self.batch == "block", joblib.effective_n_jobs(self.n_jobs)
        fetch_x, fetch_y = fetch or (self.fetch, self.fetch)

        def calls() -> Iterator[tuple[Any, ...]]:
            for number, request in enumerate(requests(workers)):
                if failures:
                    return
                i, j = (request.i, request.j) if grids else request.pairs()
                places = None
                if not grids and workers > 1:  # an item is sent once
                    i, a = np.unique(i, return_inverse=True)
                    j, b = np.unique(j, return_inverse=True)
                    places = a.astype(np.uint32), b.astype(np.uint32)
                try:
                    xs, ys = fetch_x(i), fetch_y(j)
                except Exception as error:  # raised here, joblib would wait for ever
                    where = form.format(*request.pair(0))
                    failures[number] = _unreadable(where, error)
                    return
                begun[number] = request
                ledger.hand_over(request.size)
                yield number, self.function, self.batch, xs, ys, places

        most = inf if store is None else 2 * workers  # begun, and not yet written
        with closing(self._answers(calls(), workers, most, begun, ledger)) as answers:
            for number, values, seconds, error in answers:
                request = begun.pop(number)
                failure = self._settle(
                    request, values, error, out, ledger, finished, store, form
                )
                try:
                    if isinstance(failure, SimilarityError | StoreError):
                        failures[number] = failure
                    elif failure is not None:
                        raise failure  # KeyboardInterrupt and the like
                    elif not grids:
                        self.pace.measured(request.size, seconds)
                finally:  # or their traceback would keep `out` alive
                    error = failure = None
        if failures:
            raise failures.pop(min(failures))

    def _answers(
        self,
        calls: Iterator[tuple[Any, ...]],
        workers: int,
        most: float,
        begun: dict[int, Request],
        ledger: Ledger,
    ) -> Generator[tuple[int, np.ndarray, float, BaseException | None], None, None]:
        """Yield the answers as they come, from here or from the workers of joblib.

        Where answers are not taken as fast as they come, `most` requests are begun
        before the workers wait.
        """
        if workers == 1:
            for arguments in calls:
                yield _call(*arguments)
            return
        sent: dict[int, Callable[[], Any]] = {}  # and not yet answered
        # Another one each time: joblib deletes the large arrays of a call when it is
        # over, and the next call of the same Parallel would take them to be there.
        parallel = partial(
            joblib.Parallel,
            self.n_jobs,
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
                # Arguments of their own would be left with one worker of Dask, and lost
                # with it.
                call = sent[each[0]] = partial(_call_there, *each)
                yield joblib.delayed(call)()

        try:
            while more:
                with _closing(parallel()(some())) as answers:
                    for answer in answers:
                        del sent[answer[0]]
                        yield answer
        except Exception as error:
            raise _broken(begun, sent, error, ledger) from error

    def _settle(
        self,
        request: Request,
        answer: np.ndarray,
        error: BaseException | None,
        out: np.ndarray,
        ledger: Ledger,
        finished: Finished | None,
        store: Store | None,
        form: str,
    ) -> BaseException | None:
        """Keep what is good of an answer, count it and return what is wrong.

        Until it is counted it is one of those that failed.
        """
        expected = request.shape if self.batch == "block" else (request.size,)
        if error is None and answer.shape != expected:
            return SimilarityError(
                f"The similarity function returned shape {answer.shape} where "
                f"{expected} was expected, from {form.format(*request.pair(0))} on. "
                "See `batch` of Similarity for the forms a function may have. "
                f"{_lost(request.size)}"
            )
        lost = 0 if error is None else 1 if self.batch is None else request.size
        count = partial(ledger.answered, request.size, answer.size, lost)
        values = answer.ravel()
        if values.dtype != out.dtype:
            with np.errstate(over="ignore"):
                values = values.astype(out.dtype)
        finite = np.isfinite(values)
        whole = values.size == request.size and bool(finite.all())
        if not whole:
            full = np.full(request.size, np.nan, dtype=out.dtype)
            full[: values.size][finite] = values[finite]
        try:
            settled = request.settled(values if whole else full, out)
        except AsymmetryError as asymmetry:
            count()
            return asymmetry
        unwritten = self._keep(request, settled, whole, out, count, finished, store)
        if whole and error is None:
            return unwritten
        if error is not None and not isinstance(error, Exception):
            return error
        keeps = (
            "Nothing of a request for new items is kept"
            if form != ITEMS
            else "This Similarity keeps every finite value"
        )
        if not finite.all():
            k = int(np.argmin(finite))
            return SimilarityError(
                f"The similarity function returned {values[k]} for "
                f"{form.format(*request.pair(k))}. {keeps}; mend the function or leave "
                "the item out, and ask it again."
            )
        later = "" if self.batch is None else ", or later ones of its batch"
        where = form.format(*request.pair(values.size))
        failure = SimilarityError(
            f"The similarity function raised {error!r} on {where}{later}. "
            f"{keeps}; mend the function and ask it again. {_lost(lost)}"
        )
        failure.__cause__ = error
        return failure

    def _keep(
        self,
        request: Request,
        values: np.ndarray,
        whole: bool,
        out: np.ndarray,
        count: Callable[[], None],
        finished: Finished | None,
        store: Store | None,
    ) -> StoreError | None:
        """Keep what is not NaN and count it; return why it could not be written."""
        record = Record(request.i, request.j, values, request.grid)
        if not whole:
            got = ~np.isnan(values.ravel())
            i, j = (items[got] for items in request.pairs())
            record = Record(i, j, values.ravel()[got], False)

        def keep() -> None:
            if store is not None:  # first: what it has not been handed is not known
                store.hand(record)
            request.fill(values, out)
            if finished is not None:
                finished(*record.pairs(), record.values.ravel())

        try:
            keep()
        except KeyboardInterrupt:
            keep()  # twice does no harm, and then all of it is kept
            raise
        finally:
            count()
        if store is not None:
            try:
                store.flush()
            except StoreError as error:
                return error
        return None


def accessor(items: Any, batch: str | None) -> Callable[[np.ndarray], Any]:
    """Return the function that fetches items, given an array of their numbers."""
    if hasattr(items, "columns") and len(getattr(items, "shape", ())) == 2:
        if batch is None:
            raise TypeError(
                "A function of two items cannot be given rows of a data frame: pass "
                'items=frame.to_numpy(), or a function with batch="pairs" or "block", '
                "which is given data frames."
            )
        if hasattr(items, "iloc"):
            return partial(_rows_of_frame, items)
        return partial(_rows_of_table, items)
    if hasattr(items, "iloc"):
        return partial(_rows_of_frame, items)
    if scipy.sparse.issparse(items) or hasattr(items, "shape"):
        return partial(_rows_of_array, items)
    return partial(_elements, items)


def _rows_of_frame(items: Any, index: np.ndarray) -> Any:
    return items.iloc[index].reset_index(drop=True)  # or pandas aligns by labels


def _rows_of_table(items: Any, index: np.ndarray) -> Any:
    return items.take(index) if hasattr(items, "take") else items[index]


def _rows_of_array(items: Any, index: np.ndarray) -> Any:
    return items[index]


def _elements(items: Any, index: np.ndarray) -> list[Any]:
    return [items[k] for k in index.tolist()]


@contextmanager
def _closing(answers: Any) -> Iterator[Any]:
    """Close the answers of joblib, which warns of those that nobody has taken."""
    try:
        yield answers
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)
            answers.close()


def _call(
    number: int,
    function: Callable[..., Any],
    batch: str | None,
    xs: Any,
    ys: Any,
    places: tuple[np.ndarray, np.ndarray] | None,
) -> tuple[int, np.ndarray, float, BaseException | None]:
    """Evaluate one request, perhaps in another process.

    `places` tells where among the items those of the pairs are, if not one by one.
    Returns its number, the values obtained, the seconds it took and what went wrong.
    The values are one-dimensional unless a block was asked for.
    """
    start = time.perf_counter()
    values: list[float] = []
    try:
        if places is not None:
            xs, ys = accessor(xs, batch)(places[0]), accessor(ys, batch)(places[1])
        if batch is None:
            for x, y in zip(xs, ys, strict=True):
                values.append(_number(function(x, y)))
            answer = np.array(values)
        else:
            answer = unmasked(function(xs, ys))
            if answer.dtype.kind not in "fiub":
                raise TypeError(f"values of type {answer.dtype} are not real numbers")
        return number, answer, time.perf_counter() - start, None
    except BaseException as error:
        return number, np.array(values), time.perf_counter() - start, error


def _number(value: Any) -> float:
    """Return one value as a float, if it is a real number."""
    if isinstance(value, str | bytes | np.complexfloating | np.timedelta64):
        raise TypeError(f"{value!r}, of type {type(value).__name__}, is no real number")
    return float(value)


def unmasked(values: Any) -> np.ndarray:
    """Return values as an array, NaN where they are masked."""
    if np.ma.isMaskedArray(values) and values.dtype.kind in "fiub":
        dtype = values.dtype if values.dtype.kind == "f" else float
        return np.ma.filled(values.astype(dtype), np.nan)
    return np.asarray(values)


def _call_there(
    *arguments: Any,
) -> tuple[int, np.ndarray, float, BaseException | None]:
    """Evaluate one request in another process."""
    number, values, seconds, error = _call(*arguments)
    return number, values, seconds, None if error is None else _portable(error)


def _portable(error: BaseException) -> BaseException:
    """Return an error that survives the way back from another process."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        kind = RuntimeError if isinstance(error, Exception) else BaseException
        substitute = kind(repr(error))
        substitute.__cause__ = error
        return substitute


def _unreadable(where: str, error: Exception) -> SimilarityError:
    failure = SimilarityError(
        f"The items themselves could not be read, {where} or later ones: "
        f"{error!r}. `items` has to be a sequence or an array, one item for each "
        "position or row."
    )
    failure.__cause__ = error
    return failure


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
    ledger: Ledger,
) -> SimilarityError:
    """Return the error for workers that gave no answer to what was begun."""
    if not begun:
        return SimilarityError(
            f"joblib could not begin: {error!r}. Nothing is lost. Answers are taken as "
            'they come, which the backends "loky", "threading" and "dask" can do.'
        )
    size = sum(request.size for request in begun.values())
    if isinstance(error, pickle.PicklingError) or "pickle" in str(error):
        unsent = [number for number, call in sent.items() if not _sendable(call)]
        kept = sum(begun[number].size for number in unsent)
        ledger.answered(kept, 0, 0)  # the others may have been evaluated
        return SimilarityError(
            f"The similarity function or an item cannot be sent to a worker process: "
            f"{error!r}. Leave out what cannot be pickled (an open file, a connection, "
            "a lock), make it inside the function, or pass n_jobs=1 or use "
            'joblib.parallel_config(backend="threading").'
            + (f" {_lost(size - kept)}" if size > kept else "")
        )
    i, j = next(iter(begun.values())).pair(0)
    return SimilarityError(
        f"A worker gave no answer from items {i} and {j} on: {error!r}. It may have "
        "run out of memory or crashed. This Similarity keeps whatever is finished; "
        f"mend the function and ask it again. {_lost(size)}"
    )


def _lost(size: int) -> str:
    """Tell what a failure cost."""
    one = size == 1
    return (
        f"The {'evaluation' if one else f'{size} evaluations'} handed over with it "
        f"{'is' if one else 'are'} lost and {'counts' if one else 'count'} against "
        "`limit`, see `failed`."
    )


def is_whole(mask: np.ndarray, given: bool) -> bool:
    """Tell whether a tile on the diagonal is evaluated as a block, both halves of it.

    That is where nothing of it is known, but for a diagonal that was given.
    """
    if not given:
        return bool(mask.all())
    return len(mask) > 1 and bool((mask | np.eye(len(mask), dtype=bool)).all())


def _patterns(mask: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Cut what is marked into grids (rows, columns): rows that are alike together."""
    if mask.all():
        yield np.arange(mask.shape[0]), np.arange(mask.shape[1])
    elif mask.any():
        patterns, which = np.unique(mask, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            if pattern.any():
                yield np.flatnonzero(which.ravel() == k), np.flatnonzero(pattern)


def _others(size: int, places: np.ndarray) -> np.ndarray:
    """Return the places from 0 to size - 1 that are not among these."""
    return np.delete(np.arange(size), places)


def _index(a: np.ndarray, b: np.ndarray) -> tuple[Any, Any]:
    """Return the index of the rectangle a x b in an array, by slices if it can be."""
    spans: list[Any] = [
        slice(int(places[0]), int(places[-1]) + 1)
        if (np.diff(places) == 1).all()
        else places
        for places in (a, b)
    ]
    if any(isinstance(span, slice) for span in spans):
        return spans[0], spans[1]
    rows, columns = np.ix_(a, b)
    return rows, columns


def _cut(a: np.ndarray, b: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Cut the rectangle a x b into tiles of at most `AREA` entries."""
    width = max(1, min(b.size, WIDTH))
    height = max(1, AREA // width)
    for k in range(0, a.size, height):
        for m in range(0, b.size, width):
            yield a[k : k + height], b[m : m + width]
