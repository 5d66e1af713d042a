"""How similarities are evaluated: cut into requests, counted, checked, in parallel."""

from __future__ import annotations

import itertools
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from math import isqrt
from numbers import Real
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.utils import _safe_indexing

__all__ = [
    "AsymmetryError",
    "BudgetExceeded",
    "Evaluator",
    "Ledger",
    "Request",
    "SimilarityError",
    "Tile",
]

CHUNK = 4096  # evaluations handed over at a time where the function sees pairs
BLOCK_CHUNK = 2**18  # the same where it sees blocks
TILE = 64  # side of the diagonal tiles of which a block function sees both halves


class SimilarityError(ValueError):
    """The similarity function failed, or answered with something that is no number."""


class AsymmetryError(SimilarityError):
    """A function declared symmetric gave two values for one pair."""


class BudgetExceeded(RuntimeError):
    """A request needs more evaluations than the limit leaves; none was made."""


class Ledger:
    """How many evaluations were made and how many may be."""

    def __init__(self, limit: int | None):
        self.calls, self.limit = 0, limit

    @property
    def limit(self) -> int | None:
        """Most evaluations that may be made."""
        return self._limit

    @limit.setter
    def limit(self, value: int | None) -> None:
        if value is not None and not (isinstance(value, Real) and value >= 0):
            raise ValueError(f"limit must be a number from 0 on, or None; got {value}.")
        self._limit = value

    def check(self, needed: int) -> None:
        """Raise `BudgetExceeded` if `needed` further evaluations pass the limit."""
        if self.limit is not None and self.calls + needed > self.limit:
            raise BudgetExceeded(
                f"This request needs {needed} evaluations, and of the limit of "
                f"{self.limit} only {max(self.limit - self.calls, 0)} are left. "
                "Nothing was evaluated and everything known is kept: raise `limit` on "
                "this Similarity, or ask for fewer landmarks (simlib.largest tells how "
                "many a budget allows)."
            )


class Tile(NamedTuple):
    """Places of some rows and columns in a block under evaluation."""

    a: np.ndarray
    b: np.ndarray
    diagonal: bool = False  # a[k] and b[k] are the same item, and K is symmetric

    def missing(self, out: np.ndarray, rectangular: bool) -> np.ndarray:
        """Return the mask of what has to be evaluated of this tile."""
        mask = np.isnan(out[np.ix_(self.a, self.b)])
        if self.diagonal and not (rectangular and mask.all()):
            mask = np.triu(mask)
        return mask

    def requests(
        self, out: np.ndarray, rectangular: bool
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield places (rows, columns) to evaluate: pairs, or sides of rectangles."""
        mask = self.missing(out, rectangular)
        if not mask.any():
            return
        if rectangular and mask.all():
            yield self.a, self.b
        elif rectangular:
            patterns, which = np.unique(mask, axis=0, return_inverse=True)
            for k, pattern in enumerate(patterns):
                if pattern.any():
                    yield self.a[which.ravel() == k], self.b[pattern]
        else:
            r, c = np.nonzero(mask)
            yield self.a[r], self.b[c]


class Request(NamedTuple):
    """Items handed to the function in one go, and where the answer belongs."""

    i: np.ndarray
    j: np.ndarray
    target: tuple[np.ndarray, ...]  # an index into the array that is being filled

    def store(
        self, values: np.ndarray, error: BaseException | None, out: np.ndarray
    ) -> None:
        """Write the finite values into `out`; raise if anything is wrong with them."""
        place = out[self.target]
        if error is None and values.shape != place.shape:
            raise SimilarityError(
                f"The similarity function returned shape {values.shape} where "
                f"{place.shape} was expected, from items {self._name(0, place)} on. "
                "See `batch` of Similarity for the forms a function may have."
            )
        with np.errstate(over="ignore"):
            values = values.astype(out.dtype)
        good = np.isfinite(values)
        answered = place.reshape(-1)[: values.size]  # it may have stopped half way
        answered[good.ravel()] = values[good]
        out[self.target] = place
        if error is not None and not isinstance(error, Exception):
            try:
                raise error  # KeyboardInterrupt and the like
            finally:
                del error  # as in `Evaluator.run`
        if not good.all():
            where = int(np.flatnonzero(~good)[0])
            raise SimilarityError(
                f"The similarity function returned {values.flat[where]} for items "
                f"{self._name(where, place)}. This Similarity keeps every finite "
                "value; mend the function or leave the item out, and ask it again."
            )
        if error is not None:
            later = "" if values.ndim == 1 else ", or later ones of its batch"
            raise SimilarityError(
                f"The similarity function raised {error!r} on items "
                f"{self._name(values.size, place)}{later}. This Similarity keeps "
                "whatever is finished; mend the function and ask it again."
            ) from error

    def _name(self, k: int, place: np.ndarray) -> str:
        """Name the pair of the k-th value."""
        a, b = divmod(k, place.shape[1]) if place.ndim == 2 else (k, k)
        return f"{self.i[a]} and {self.j[b]}"


class Evaluator(NamedTuple):
    """The similarity function and how it is called."""

    items: Any
    function: Callable[..., Any]
    batch: str | None
    n_jobs: int | None
    progress: bool

    def tiles(
        self, rows: np.ndarray, columns: np.ndarray, symmetric: bool
    ) -> tuple[list[Tile], tuple[np.ndarray, np.ndarray]]:
        """Cut a block into tiles that hold each pair, unordered if symmetric, once.

        Also returns where the items that are both rows and columns stand in the two.
        """
        every_row, every_column = np.arange(rows.size), np.arange(columns.size)
        area = self._chunk(rows.size * columns.size)
        if not symmetric:
            return list(_cut(every_row, every_column, area)), (every_row[:0],) * 2
        _, row_in, column_in = np.intersect1d(rows, columns, return_indices=True)
        row_out = np.setdiff1d(every_row, row_in)
        column_out = np.setdiff1d(every_column, column_in)
        tiles = [*_cut(row_out, every_column, area), *_cut(row_in, column_out, area)]
        side = TILE if self.batch == "block" else isqrt(area)
        for k in range(0, row_in.size, side):
            here = slice(k, k + side)
            tiles.append(Tile(row_in[here], column_in[here], diagonal=True))
            tiles += _cut(row_in[here], column_in[k + side :], area)
        return tiles, (row_in, column_in)

    def _chunk(self, total: int) -> int:
        """Return how many evaluations to hand over at a time."""
        largest = BLOCK_CHUNK if self.batch == "block" else CHUNK
        workers = joblib.effective_n_jobs(self.n_jobs)
        return largest if workers == 1 else max(1, min(largest, total // (8 * workers)))

    def scattered(
        self, i: np.ndarray, j: np.ndarray, missing: np.ndarray
    ) -> Iterator[Request]:
        """Cut the missing ones among given pairs into requests."""
        if self.batch != "block":
            size = self._chunk(missing.size)
            for k in range(0, missing.size, size):
                part = missing[k : k + size]
                yield Request(i[part], j[part], (part,))
            return
        by_row = np.unique(i[missing]).size <= np.unique(j[missing]).size
        lines = (i if by_row else j)[missing]
        order = np.argsort(lines, kind="stable")
        for part in np.split(missing[order], np.flatnonzero(np.diff(lines[order])) + 1):
            if by_row:
                yield Request(i[part[:1]], j[part], (part[None, :],))
            else:
                yield Request(i[part], j[part[:1]], (part[:, None],))

    def run(
        self, requests: Iterator[Request], out: np.ndarray, total: int, ledger: Ledger
    ) -> None:
        """Carry out the requests into `out`; after a failure finish what was begun."""
        if total == 0:
            return
        begun: deque[Request] = deque()
        failures: list[SimilarityError] = []

        def calls() -> Iterator:
            for request in itertools.takewhile(lambda _: not failures, requests):
                begun.append(request)
                xs = _safe_indexing(self.items, request.i)
                ys = _safe_indexing(self.items, request.j)
                yield joblib.delayed(_call)(self.function, self.batch, xs, ys)

        if joblib.effective_n_jobs(self.n_jobs) == 1:
            answers = (function(*arguments) for function, arguments, _ in calls())
        else:
            answers = joblib.Parallel(self.n_jobs, return_as="generator")(calls())
        with _progress_bar(total) if self.progress else nullcontext() as bar:
            for values, error in answers:
                ledger.calls += values.size
                try:
                    begun.popleft().store(values, error, out)
                except SimilarityError as failure:
                    if not failures:
                        failures.append(failure)
                finally:
                    error = None  # its traceback leads to this frame and to `out`
                if bar is not None:
                    bar.update(values.size)
        if failures:
            raise failures.pop(0)  # a reference left here would keep `out` alive


def _call(
    function: Callable[..., Any], batch: str | None, xs: Any, ys: Any
) -> tuple[np.ndarray, BaseException | None]:
    """Evaluate one request, perhaps in another process: (values, what went wrong).

    The values are those obtained before, one-dimensional where pairs were evaluated one
    by one.
    """
    values = []
    try:
        if batch is None:
            for x, y in zip(xs, ys, strict=True):
                values.append(float(function(x, y)))
            return np.array(values), None
        answer = np.asarray(function(xs, ys))
        if answer.dtype.kind not in "fiub":
            raise TypeError(f"values of type {answer.dtype} are not real numbers")
        return answer, None
    except BaseException as error:
        done = np.array(values) if batch is None else np.empty((0, 0))
        return done, _portable(error)


def _portable(error: BaseException) -> BaseException:
    """Return an error that survives the way back from another process."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        substitute = RuntimeError(repr(error))
        substitute.__cause__ = error
        return substitute


def _cut(a: np.ndarray, b: np.ndarray, area: int) -> Iterator[Tile]:
    """Cut the rectangle a x b into tiles of at most `area` entries."""
    width = max(1, min(b.size, area))
    height = max(1, area // width)
    for k in range(0, a.size, height):
        for m in range(0, b.size, width):
            yield Tile(a[k : k + height], b[m : m + width])


def _progress_bar(total: int) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=total, unit=" calls", unit_scale=True)
