"""The question: a similarity matrix that is evaluated only where someone asks.

Evaluations are what costs. A `Similarity` counts them, refuses to pass a budget, and
never evaluates a pair twice; every method of simlib reads its matrix through one.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import inf
from typing import Any, Literal, Self, SupportsFloat, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from simlib._checks import one_of, whole_number
from simlib.similarity.budget import Budget, Lock, check_budget
from simlib.similarity.evaluate import Evaluator, Finished, Target
from simlib.similarity.identity import Table
from simlib.similarity.items import accessor, as_items, check_alike, count, unmasked
from simlib.similarity.known import Extent, Known, Lines, grid, look, shape_of
from simlib.similarity.ledger import Ledger, evaluate_again
from simlib.similarity.matrix import MatrixEntries, given_diagonal, given_matrix
from simlib.similarity.price import evaluations
from simlib.similarity.requests import (
    Block,
    Pairs,
    Places,
    Rectangle,
    Sides,
    checked,
    names,
    places,
)
from simlib.similarity.store import Record, Store
from simlib.similarity.views import ONE_SIDED, Bar, SimilarityMatrix, no_bar

__all__ = ["Similarity"]

Value: TypeAlias = SupportsFloat | ArrayLike


class Similarity(SimilarityMatrix):
    r"""Similarities of all pairs, evaluated on demand, each at most once.

    Stands for the matrix :math:`K_{ij} = \Delta(x_i, x_j)` of n items, the equation
    :eq:`eq:similarity` of the book, or for :math:`K_{ij} = \Delta(x_i, y_j)` of two
    collections.

    Parameters
    ----------
    items : sequence, array, sparse matrix or data frame
        The n items, one per row or position. Of a data frame with one column these are
        its values, of one with several its rows: to a function of two items mappings,
        to one of pairs or blocks data frames. A file, such as an ``h5py.Dataset``, is
        read where needed, in increasing order.
    function : callable
        The similarity :math:`\Delta`, in the form that `batch` tells; a coroutine
        function too, which runs in an event loop of its own.
    columns : sequence, array, sparse matrix or data frame, optional
        A second collection, such as documents where `items` are queries: K has a row
        for each of the m `items` and a column for each of these n, and nothing is ever
        asked within a collection.
    symmetric : bool, default=True
        Of one collection: whether ``function(x, y)`` equals ``function(y, x)``, and one
        call answers both. One that is not symmetric can be averaged by `symmetrized`.
    batch : None, "pairs" or "block", default=None
        None: ``function(x, y) -> float``. "pairs": ``function(xs, ys) -> (m,)``, one
        value for each of m pairs, the form of a cross-encoder. "block":
        ``function(xs, ys) -> (len(xs), len(ys))``, one matrix product. Answers may be
        tensors of PyTorch, CuPy or JAX, on a graphics card, too.
    dtype : float32 or float64, default=float64
        Type in which values are kept.
    n_jobs : int, optional
        Parallel evaluation through joblib, of a coroutine function in threads; None
        obeys ``joblib.parallel_config(backend="dask")`` and the like.
    limit : int, optional
        Most evaluations that may be made, those that failed included. The request that
        would pass it raises `BudgetExceeded` before evaluating anything.
    progress : bool, default=False
        Show a progress bar (tqdm) while evaluating.
    diagonal : float or array of shape (n,), optional
        Of one collection: the similarity of each item with itself, where it is known:
        never asked for, but in the small tiles of ``batch="block"`` on the diagonal.
    batch_size : int, optional
        How many pairs to hand to `function`, or to a worker, at a time. By default as
        many as take about a second. Not with ``batch="block"``.
    check_symmetry : bool, default=True
        Ask 1 in 50 of the pairs that were evaluated, 24 in all, in the other order too,
        and warn where the two differ by more than 1 % of the largest; of blocks those
        of single lines, as searches ask, and the halves of tiles on the diagonal.
    store : str or path, optional
        An SQLite file, made if it is not there, that keeps each finished request for
        the next process. It knows items by hashes of them, in another order or number
        and as new items of `between` too. One process at a time opens it.
    function_id : str, optional
        Required with a store: names the function and its version.
    items_id : sequence of n strings or numbers, optional
        By which the store is to know the items, all different, where these are no plain
        data (see `simlib.similarity.digest`). New items are not kept then. Of two
        collections a pair of these, one of which may be None.
    verify : int, default=8
        As many pairs of the store are evaluated again when it is opened, beside `limit`
        and `calls`, to tell that the function was changed. 0 for functions whose
        answers vary.

    Attributes
    ----------
    shape : tuple of int
        (n, n), or (m, n) of two collections; `n` is defined for one.
    remaining : int or infinity
        What `limit` leaves, ``limit - calls - failed``.
    verified : int
        Pairs of the store that were evaluated again when it was opened.

    Raises
    ------
    SimilarityError
        From any request: `function` raised, or returned NaN (as a masked value is), an
        infinity or a wrong shape, or a worker died. It names the pair; what is finished
        is kept.
    BudgetExceeded
        From any request that would pass `limit`.
    UserWarning
        From any request: the function is not symmetric.
    StoreError
        The store is one of another function, type, symmetry or format, gives other
        values, is in use, or is none; or, from any request, it could not be written:
        the values are written with the next one.
    StoreWarning
        The store has lost something to damage, or knows none of the items.

    Notes
    -----
    Threads may share a similarity. Equal items are evaluated each for itself. Searches
    and estimates of an error choose pairs by what they have asked themselves, in a
    `run`: the same seed means the same choices, and what is known costs nothing.
    ``sim.informed()`` goes by all that is known.

    Examples
    --------
    >>> from simlib import Similarity
    >>> words = ["similar", "simile", "smile", "mile"]
    >>> def jaccard(x, y):
    ...     return len(set(x) & set(y)) / len(set(x) | set(y))
    >>> sim = Similarity(words, jaccard)
    >>> sim.columns([2])[:, 0].round(2).tolist()
    [0.57, 1.0, 1.0, 0.8]
    >>> sim.calls
    4
    >>> Similarity(["smiles", "limes"], jaccard, columns=words).rows([1]).round(2)
    array([[0.57, 1.  , 1.  , 0.8 ]])
    """

    def __init__(
        self,
        items: Any,
        function: Callable[[Any, Any], Value | Awaitable[Value]],
        *,
        columns: Any = None,
        symmetric: bool = True,
        batch: Literal["pairs", "block"] | None = None,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        limit: float | None = None,
        progress: bool = False,
        diagonal: ArrayLike | None = None,
        batch_size: int | None = None,
        check_symmetry: bool = True,
        store: str | os.PathLike[str] | None = None,
        function_id: str | None = None,
        items_id: Sequence[Any] | None = None,
        verify: int = 8,
    ):
        items = as_items(items, batch)
        extent: Extent = count(items)
        if columns is not None:
            columns = as_items(columns, batch)
            extent, symmetric = (count(items), count(columns)), False
            if diagonal is not None:
                raise ValueError("Two collections have no diagonal: leave it out.")
        if 0 in shape_of(extent):
            raise ValueError("A similarity matrix needs at least one item; got none.")
        if not callable(function):
            raise TypeError(
                "`function` must be callable; for a matrix that you already have use "
                "Similarity.from_matrix(K)."
            )
        if batch is not None:
            one_of(batch, ("pairs", "block"), "batch, if not None,")
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(
                f"dtype must be float32 or float64; got {np.dtype(dtype)}."
            )
        self.items, self.column_items, self.batch = items, columns, batch
        self._evaluator = Evaluator(
            items,
            columns,
            function,
            batch,
            batch_size=_batch_size(batch_size, batch),
            n_jobs=n_jobs,
            progress=progress,
            check_symmetry=check_symmetry and symmetric,
        )
        self._budget = Budget(limit)
        self._known = Known(
            extent,
            symmetric=bool(symmetric),
            dtype=np.dtype(dtype),
            diagonal=given_diagonal(diagonal, shape_of(extent)[0], np.dtype(dtype)),
        )
        # What is known and was not asked of this object: a store's, or paid in a run.
        self._shelf = Known(extent, symmetric=bool(symmetric), dtype=np.dtype(dtype))
        self._seen: tuple[Known, ...] = (self._shelf,)  # what is known, too
        self._besides: tuple[Known, ...] = self._seen  # and what answers
        self._kept = self._known  # where evaluations go
        self._informed = False
        self._lock = Lock()  # of all that shares the memory or the counter
        self.verified = 0
        self._ledger = Ledger(self._shelf)
        self._open(store, function_id, items_id, verify)

    @classmethod
    def from_matrix(
        cls, K: ArrayLike, *, symmetric: bool | None = None, two: bool = False
    ) -> Similarity:
        """Wrap a matrix that exists already, counting which entries are read.

        Parameters
        ----------
        K : array of shape (n, n) or (m, n)
            Of one collection, or of two if it is not square. float32 stays float32,
            everything else becomes float64. Memory maps are read where asked. What is
            masked counts as NaN.
        symmetric : bool, optional
            None looks whether K equals its transpose to rounding. True demands it.
        two : bool, default=False
            Whether rows and columns are two collections though K is square.

        Raises
        ------
        ValueError
            K is not real and, with ``symmetric=True``, symmetric. Unless
            ``symmetric=False``: K is a triangle, or has NaN or an infinity.
        """
        K, symmetric = given_matrix(K, symmetric, two)
        m, n = K.shape
        return cls(
            np.arange(m),
            MatrixEntries(K),
            columns=np.arange(n) if two or m != n else None,
            symmetric=symmetric,
            batch="pairs",
            dtype=np.float32 if K.dtype == np.float32 else np.float64,
            n_jobs=1,
            check_symmetry=False,
        )

    @property
    def extent(self) -> Extent:
        """Number n of items of one collection, or (m, n) of those of two."""
        return self._known.extent

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return self._known.dtype

    @property
    def symmetric(self) -> bool:
        """Whether one evaluation answers for both orders of a pair."""
        return self._known.symmetric

    @property
    def calls(self) -> int:
        """Values obtained from the function, of both halves of small tiles too."""
        return self._budget.calls

    @property
    def failed(self) -> int:
        """Evaluations handed to requests that failed, whose values are lost."""
        return self._budget.failed

    @property
    def checks(self) -> int:
        """Evaluations made for `check_symmetry`, beside `calls` and `limit`."""
        return self._evaluator.symmetry.calls

    @property
    def limit(self) -> float | None:
        """Most evaluations that may be made; it may be changed at any time."""
        return self._budget.limit

    @limit.setter
    def limit(self, value: float | None) -> None:
        self._budget.limit = value

    @property
    def diagonal_known(self) -> bool:
        """Whether the diagonal was given, and costs nothing."""
        return self._known.diagonal is not None

    def read(self, *blocks: Block, pairs: Pairs | None = None) -> list[np.ndarray]:
        """Return blocks and then pairs, see ``SimilarityMatrix.read``."""
        asked, scattered = checked(self.extent, blocks, pairs)
        with self._lock.held:
            self._ledger.catch_up()
            if not asked:  # of pairs alone the price is what is found missing
                return [] if scattered is None else [self._scattered(*scattered)]
            needed = self._price(asked, scattered, self._besides)
            check_budget(needed, self._budget)
            with self.progress_bar(needed) if needed else no_bar():
                answers = [self._block(*block, needed) for block in asked]
                if scattered is not None:
                    answers.append(self._scattered(*scattered))
        return answers

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        """Return K[i[k], j[k]] where it is known and NaN elsewhere; no evaluation."""
        i, j = places(self.extent, i, j)
        with self._lock.held:
            return look((self._known, *self._seen), i, j)

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Iterate over all that is known now, without evaluating anything.

        Yields
        ------
        i, j, values : arrays of shape (m,)
            Rows, columns and K[i, j], about a million at a time; a symmetric pair comes
            once.
        """
        with self._lock.held:
            asked = self._known.snapshot()
            besides = [known.known() for known in self._seen]

        def others() -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
            for i, j, values in chain(*besides):
                new = np.isnan(asked.get(i, j))
                yield i[new], j[new], values[new]

        return chain(asked.known(), others())

    def cost(self, *blocks: Block, pairs: Pairs | None = None) -> int:
        """Return the price of requests, see ``SimilarityMatrix.cost``."""
        asked, scattered = checked(self.extent, blocks, pairs)
        with self._lock.held:
            return self._price(asked, scattered, self._seen)

    def between(
        self,
        new_items: Any,
        landmarks: ArrayLike | None = None,
        row_landmarks: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the similarities of items outside the matrix to some inside.

        They count and `limit` holds; only a store keeps them.

        Parameters
        ----------
        new_items : sequence, array, sparse matrix or data frame
            m items of the kind of those of the matrix; of two collections new rows, or
            new columns.
        landmarks : array of int, shape (l,)
            Items of the matrix; of two collections columns, to new rows.
        row_landmarks : array of int, shape (r,), optional
            Where the similarity is not symmetric: items of the matrix whose
            similarities *to* the new ones are wanted. By default `landmarks`; of two
            collections rows, to new columns, in place of `landmarks`.

        Returns
        -------
        array of shape (m, l), (m, l + r) or (m, r)
            ``function(new, landmark)``, and where the similarity is not symmetric, then
            ``function(row_landmark, new)``: what ``LowRank.extend`` takes.

        Raises
        ------
        ValueError
            Landmarks of no meaning here, or none; new items of another shape or with
            other columns.
        """
        rows, columns = self._landmarks(landmarks, row_landmarks)
        new_items = as_items(new_items, self.batch)
        new, fetch_new = np.arange(count(new_items)), accessor(new_items)
        two = self.column_items is not None
        inside = self.items, self.column_items if two else self.items
        answers, asked, total = [], [], 0
        with self._lock.held:
            self._ledger.catch_up()
            for side, those in enumerate((columns, rows)):  # new rows, new columns
                if those is None:
                    continue
                check_alike(inside[side], new_items)
                those, at = _once(those)
                i, j = (those, new) if side else (new, those)
                out = np.full((i.size, j.size), np.nan, dtype=self.dtype)
                store, finished = None, None
                ids = self._ledger.ids_with(new_items, side)
                if ids is not None:
                    store, finished = self._ledger.names(ids), self._ledger.keeper(ids)
                    known = self._known, *self._besides
                    self._ledger.fill(ids[0][i], ids[1][j], out, known)
                fresh = bool(np.isnan(out).all())
                rectangle = Rectangle(i, j, out, n=0, symmetric=False, fresh=fresh)
                needed = int(np.count_nonzero(np.isnan(out)))
                requests = partial(self._evaluator.requests, rectangle, needed)
                fetch = list(self._evaluator.fetch)
                form = [f"{name[:-1].lower()} {{}}" for name in names(self.extent)]
                fetch[side], form[side] = fetch_new, f"new {form[side]}"
                target = Target(out, self._budget, finished, store, " and ".join(form))
                asked.append(partial(self._evaluator.run, requests, target, fetch))
                answers.append((out.T if side else out, at))
                total += needed
            check_budget(total, self._budget)
            with self.progress_bar(total):
                for evaluate in asked:
                    evaluate()
            self._compared(sum(values.size for values, _ in answers))
        return np.hstack([np.take(values, at, axis=1) for values, at in answers])

    def _compared(self, pairs: int) -> None:
        """Note so many pairs of new items, known or not."""

    def _landmarks(
        self, landmarks: ArrayLike | None, row_landmarks: ArrayLike | None
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the rows, and the columns, that new items are compared with."""
        columns = None if landmarks is None else self._columns(landmarks)
        rows = None if row_landmarks is None else self._rows(row_landmarks)
        if isinstance(self.extent, tuple):
            if (rows is None) == (columns is None):
                raise ValueError(
                    "New rows are compared with columns, between(new_rows, columns), "
                    "and new columns with rows, between(new, row_landmarks=rows)."
                )
        elif columns is None:
            raise ValueError("Name the landmarks, items of the matrix.")
        elif self.symmetric and rows is not None:
            raise ValueError(ONE_SIDED)
        elif not self.symmetric and rows is None:
            rows = columns
        return rows, columns

    def fork(self, *, limit: float | None = None) -> Similarity:
        """Return a similarity that shares what is known, with a counter of its own."""
        fork = copy.copy(self)
        fork._budget = Budget(limit)
        return fork

    def blank(self) -> Similarity:
        """Return a similarity that knows nothing yet, on the same counter and limit.

        For passes over the matrix whose values are not worth their memory.
        """
        blank = copy.copy(self)
        blank._known = blank._kept = self._known.blank()
        blank._shelf = self._shelf.blank()
        blank._ledger = Ledger(blank._shelf)
        blank._seen = blank._besides = (blank._shelf,)
        return blank

    def run(self, *, asked: bool = False) -> Similarity:
        """Return what knows only what is asked of it, see ``SimilarityMatrix.run``."""
        if self._informed:
            return self
        run = object.__new__(Run)
        with self._lock.held:
            run.__dict__ |= self.__dict__
            if self.limit is None:
                run._start = inf
            else:  # what is known may be among what is asked for, and is free
                known = sum(values.size for _, _, values in self.known())
                run._start = min(self.limit - self.failed, self.remaining + known)
            run._known = self._known.snapshot() if asked else self._known.blank()
            run._seen, run._besides = (), (*self._besides, self._known)
            run._kept = self._shelf
            run.spent = 0
        return run

    def informed(self) -> Similarity:
        """Return one whose runs know all, see ``SimilarityMatrix.informed``."""
        informed = copy.copy(self)
        informed._informed = True
        return informed

    def tell(self, i: ArrayLike, j: ArrayLike, values: ArrayLike) -> None:
        """Take entries that are known from elsewhere, at no call.

        Parameters
        ----------
        i, j, values : arrays of shape (m,)
            Items and K[i, j]. A store keeps them.

        Raises
        ------
        ValueError
            Not as many values as pairs; a value that is not finite, or contradicts,
            beyond rounding, what is known or another one. Nothing is taken then.
        """
        i, j = places(self.extent, i, j)

        def pair(k: int) -> str:
            return self._evaluator.form.format(i[k], j[k]).capitalize()

        told = unmasked(values)
        if told.shape != i.shape or told.dtype.kind not in "fiub":
            raise ValueError(
                f"Tell one number for each of the {i.size} pairs; got {told.dtype} of "
                f"shape {told.shape}."
            )
        with np.errstate(over="ignore"):
            told = told.astype(self.dtype)
        if not np.isfinite(told).all():
            k = int(np.argmin(np.isfinite(told)))
            raise ValueError(f"{pair(k)} were told {told[k]}.")
        with self._lock.held:
            self._ledger.catch_up()
            _, first, at = np.unique(
                self._known.keys(i, j), return_index=True, return_inverse=True
            )
            known = look((self._known, *self._seen), i, j)
            for before in known, told[first][at]:
                scale = np.maximum(np.abs(before), np.abs(told))
                with np.errstate(over="ignore"):
                    gap = np.abs(before - told)
                wrong = gap > 100 * np.finfo(self.dtype).eps * scale
                if wrong.any():
                    k = int(np.argmax(wrong))
                    raise ValueError(
                        f"{pair(k)} were told {told[k]}, but their similarity is "
                        f"{before[k]} already. Nothing was taken."
                    )
            new = first[np.isnan(known[first])]
            record = Record(i[new], j[new], told[new], False)
            sides = self._ledger.names()
            if sides is not None and new.size:
                sides.hand(record)
            asked = first[np.isnan(self._known.get(i[first], j[first]))]
            known = known[asked]  # what is known already stays
            told[asked] = np.where(np.isnan(known), told[asked], known)
            self._known.put(i[asked], j[asked], told[asked])
            if sides is not None:
                sides.flush()

    def close(self) -> None:
        """Let go of the store, if there is one; what is known stays in memory.

        Raises StoreError, and the store stays open, where it could not be written.
        """
        with self._lock.held:
            if self._ledger.store is not None:
                self._ledger.store.close()

    def __enter__(self) -> Self:
        """Return itself; at the end of ``with`` it is closed."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the store, as `close` does."""
        self.close()

    def progress_bar(self, total: float | None = None) -> Bar:
        """Show what is evaluated in this context on one bar, with ``progress=True``.

        As `SimilarityMatrix.progress_bar`.
        """
        return self._budget.bar(total) if self._evaluator.progress else no_bar()

    def _open(
        self,
        path: str | os.PathLike[str] | None,
        function_id: str | None,
        items_id: Sequence[Any] | None,
        verify: int,
    ) -> None:
        """Open the store, if one is named, and take what it holds of these items."""
        if path is None:
            if function_id is not None or items_id is not None:
                raise ValueError("function_id and items_id are for a store.")
            return
        if not (isinstance(function_id, str) and function_id):
            raise ValueError(
                "A store needs function_id, a text that names the function and its "
                "version: nothing else could tell that the function was changed; got "
                f"{function_id!r}."
            )
        verify = whole_number(verify, "verify", least=0)
        manifest = {
            "dtype": self.dtype.name,
            "symmetric": str(self.symmetric),
            "form": str(self.batch),
            "function_id": function_id,
        }
        tables, store = self._named(items_id), Store(path, manifest)
        self._ledger = Ledger(self._shelf, store, tables)
        try:
            every = store.records()
            records = self._ledger.take(every)
            self._ledger.warn_of_strangers(every)
            self.verified = evaluate_again(
                records, verify, self._known, self._evaluator, store.path
            )
        except BaseException:
            store.close()
            raise

    def _named(self, items_id: Any) -> list[Table]:
        """Return what the rows and the columns go by in the store."""
        if self.column_items is None:
            return [Table(self.items, self.shape[0], items_id)] * 2
        if items_id is not None and not (
            isinstance(items_id, tuple) and len(items_id) == 2
        ):
            raise ValueError(
                "items_id names the rows and the columns of two collections: pass a "
                "pair, of which one may be None."
            )
        sides = (self.items, self.column_items), self.shape, items_id or (None, None)
        return list(map(Table, *sides))

    def _asked(self, i: np.ndarray, j: np.ndarray, values: np.ndarray) -> None:
        """Note pairs, or a grid, as asked for, wherever the answers came from."""
        if self._kept is self._known and not self._shelf:
            return
        if values.ndim == 2:
            i, j = grid(i, j)
        new = np.isnan(self._known.get(i, j))
        self._known.put(i[new], j[new], values.ravel()[new])

    def _price(
        self, blocks: list[Sides], pairs: Places | None, besides: Sequence[Known]
    ) -> int:
        grids = self.batch == "block"
        return evaluations((self._known, *besides), blocks, pairs, grids=grids)

    def _block(
        self, rows: np.ndarray | None, columns: np.ndarray | None, needed: int
    ) -> np.ndarray:
        """Return a block, for which the budget allows what is needed."""
        m, n = self.shape
        if rows is None:
            columns = np.arange(n) if columns is None else columns
            return self._whole(columns, "columns", needed)
        if columns is None:
            return self._whole(rows, "rows", needed).T
        rows, row_at = _distinct(rows)
        columns, column_at = _distinct(columns)
        if rows.size == m:
            out = self._whole(columns, "columns", needed)
        elif columns.size == n:
            out = self._whole(rows, "rows", needed).T
        else:
            rectangle = self._rectangle(rows, columns)
            out = rectangle.out
            self._evaluate(rectangle, needed, self._kept.put)
            self._asked(rows, columns, out)
        return out[np.ix_(row_at, column_at)]

    def _whole(
        self, lines: np.ndarray, side: Literal["columns", "rows"], needed: int
    ) -> np.ndarray:
        """Return the asked columns, or rows as such."""
        store: Lines = getattr(self._known, side)
        if lines.size == 0:
            return np.zeros((store.length, 0), dtype=self.dtype)
        fresh = lines[~store.complete(lines)]
        if fresh.size:
            fresh, everything = _once(fresh)[0], np.arange(store.length)
            if fresh.size == self.shape[side == "columns"]:
                fresh = np.arange(fresh.size)  # a `Rectangle` has all items in order
            if store is self._known.columns:
                rectangle = self._rectangle(everything, fresh, order="F")
                block = rectangle.out
            else:
                rectangle = self._rectangle(fresh, everything)
                block = rectangle.out.T
            both = {id(kept): kept for kept in (store, getattr(self._kept, side))}
            for kept in both.values():  # before: nothing finished gets lost
                kept.add(fresh, block)
            self._evaluate(rectangle, needed)
            for kept in both.values():
                kept.finish(fresh)
        return store.take(lines)

    def _rectangle(
        self, rows: np.ndarray, columns: np.ndarray, order: Literal["C", "F"] = "C"
    ) -> Rectangle:
        """Return K[rows][:, columns] (no repeats) with NaN where it is not known."""
        out = np.full((rows.size, columns.size), np.nan, self.dtype, order=order)
        fresh = True
        for known in (*self._besides, self._known):
            if known and known.fill(rows, columns, out):
                fresh = False
        n = 0 if isinstance(self.extent, tuple) else self.extent
        return Rectangle(rows, columns, out, n=n, symmetric=self.symmetric, fresh=fresh)

    def _evaluate(
        self, rectangle: Rectangle, needed: int, finished: Finished | None = None
    ) -> None:
        """Evaluate what is missing, if anything `needed` is."""
        if needed := min(needed, rectangle.out.size):
            requests = partial(self._evaluator.requests, rectangle, needed)
            self._evaluator.run(requests, self._target(rectangle.out, finished))

    def _target(self, out: np.ndarray, finished: Finished | None) -> Target:
        return Target(out, self._budget, finished, self._ledger.names())

    def _scattered(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return K[i[k], j[k]] for every k, if the budget allows what is missing."""
        keys, at = _distinct(self._known.keys(i, j))
        i, j = self._known.pairs_of(keys)
        values = look((self._known, *self._besides), i, j)
        (missing,) = np.isnan(values).nonzero()
        if missing.size:
            check_budget(missing.size, self._budget)
            requests = partial(self._evaluator.scattered, i, j, missing)
            with self.progress_bar(missing.size):
                self._evaluator.run(requests, self._target(values, self._kept.put))
        self._asked(i, j, values)
        return values[at]


class Run(Similarity):
    """A similarity of which a run has asked nothing yet; its `calls` are the run's."""

    spent: int
    _start: float

    @property
    def calls(self) -> int:
        return self.spent

    @property
    def remaining(self) -> float:
        return max(self._start - self.spent, 0)

    def read(self, *blocks: Block, pairs: Pairs | None = None) -> list[np.ndarray]:
        with self._lock.held:  # or two threads pay both for what they ask alike
            needed = self.cost(*blocks, pairs=pairs)
            try:
                return super().read(*blocks, pairs=pairs)
            except BaseException:
                needed -= self.cost(*blocks, pairs=pairs)
                raise
            finally:
                self.spent += needed

    def _compared(self, pairs: int) -> None:
        self.spent += pairs


def _batch_size(batch_size: int | None, batch: str | None) -> int | None:
    """Return a valid `batch_size`."""
    if batch_size is None:
        return None
    if batch == "block":
        raise ValueError(
            'batch_size is for batch=None and "pairs"; the blocks of a function with '
            'batch="block" have fixed shapes.'
        )
    return whole_number(batch_size, "batch_size", least=1)


def _once(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct indices in their order, and where each one stands there."""
    _, first, which = np.unique(index, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return index[first[order]], np.argsort(order)[which]


def _distinct(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct indices, sorted, and where each one stands there."""
    if index.size == 1 or (index[1:] > index[:-1]).all():
        return index, np.arange(index.size)
    return np.unique(index, return_inverse=True)
