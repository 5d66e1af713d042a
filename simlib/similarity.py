"""The question: a similarity matrix that is evaluated only where someone asks.

Evaluations are what costs. A `Similarity` counts them, refuses to pass a budget, and
never evaluates a pair twice; every method of simlib reads its matrix through one.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from math import isqrt
from numbers import Real
from typing import Any, Literal, Self, SupportsFloat, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike

from simlib.calling import accessor, as_items, count, unmasked
from simlib.evaluation import Evaluator, Finished
from simlib.ledger import Ledger, check_budget
from simlib.memory import Lines, Memory
from simlib.rectangle import TILE, Rectangle, again
from simlib.region import Block, Region
from simlib.store import Record, Store, StoreError, digest
from simlib.views import ONE_SIDED, Bar, SimilarityMatrix, no_bar

__all__ = ["Similarity"]

Value: TypeAlias = SupportsFloat | ArrayLike
Indices: TypeAlias = tuple[np.ndarray | None, np.ndarray | None]


class Similarity(SimilarityMatrix):
    r"""Pairwise similarities of n items, evaluated on demand, each at most once.

    Stands for the n x n matrix :math:`K_{ij} = \Delta(x_i, x_j)`, the equation
    :eq:`eq:similarity` of the book.

    Parameters
    ----------
    items : sequence, array, sparse matrix or data frame
        The n items, of any kind; one per row or position. Of a data frame with one
        column these are its values, of one with several its rows: to a function of two
        items mappings, ``x["name"]``, to one of pairs or blocks data frames. (A column
        of numbers is a matrix to a function of blocks.) What is read from a file, such
        as an ``h5py.Dataset``, is fetched when it is needed, in increasing order.
    function : callable
        The similarity :math:`\Delta`. What it is given depends on `batch`. A coroutine
        function, ``async def``, may be passed as it is, in a notebook too: it runs in
        an event loop of its own, the same for all, for at most `n_jobs` requests at a
        time. A client that belongs to another loop, as one that was used there, has to
        be made anew.
    symmetric : bool, default=True
        Whether ``function(x, y)`` equals ``function(y, x)``: one call then answers
        both. A function that is not symmetric can be averaged by `symmetrized`.
    batch : None, "pairs" or "block", default=None
        None: ``function(x, y) -> float``. "pairs": ``function(xs, ys) -> (m,)``, one
        value for each of m pairs, the form of a cross-encoder. "block":
        ``function(xs, ys) -> (len(xs), len(ys))``, for kernels that are one matrix
        product.
    dtype : float32 or float64, default=float64
        Type in which values are kept.
    n_jobs : int, optional
        Parallel evaluation through joblib, of a coroutine function in threads, which
        wait; None obeys ``joblib.parallel_config``, so
        that a cluster is ``parallel_config(backend="dask")``.
    limit : int, optional
        Most evaluations that may be made, those that failed included. The request that
        would pass it raises `BudgetExceeded` before evaluating anything.
    progress : bool, default=False
        Show a progress bar (tqdm) while evaluating: one for a search, which tells the
        hits and what is promised.
    diagonal : float or array of shape (n,), optional
        The similarity of each item with itself, where it is known: it is never asked
        for. (A function with ``batch="block"`` computes it, as any entry (i, i) that is
        known, again in the small tiles on the diagonal; what is known stays.)
    batch_size : int, optional
        How many pairs to hand to `function`, or to a worker, at a time. By default as
        many as take about a second, measured from the first ones. Not with
        ``batch="block"``, which works in tiles of fixed shapes.
    check_symmetry : bool, default=True
        Ask a few of the pairs that were evaluated in the other order too, one for each
        50 evaluations and 24 in all, and warn where the two differ by more than 1 % of
        the largest. These are counted apart, see `checks`. Not with ``batch="block"``,
        which computes both halves of the small tiles on the diagonal and compares them.
    store : str or path, optional
        A file that keeps what is evaluated, request by request as they finish, for the
        next process: an SQLite database, made if it is not there. One process at a time
        opens it, until `close`, or the end of ``with Similarity(...) as sim:``; copies
        sent to workers carry none. What kills it costs the requests under way, two for
        each worker at most.
    function_id : str, optional
        Required with a store: names the function and its version. A store that was made
        with another one is refused; change it when you change what the function does.
    items_id : str, optional
        The same for the items. Not needed where these are strings, bytes, numbers,
        arrays or lists of these, of which the store knows a hash.

    Attributes
    ----------
    calls : int
        Values obtained from `function` so far, by this object: what a store held is
        not among them. No pair (unordered if symmetric) is
        evaluated twice, except that ``batch="block"`` computes both halves of the small
        tiles on the diagonal, and both count.
    failed : int
        Evaluations handed over to requests that failed, whose values are lost.
    checks : int
        Evaluations made for `check_symmetry`, beside `calls` and `limit`.
    remaining : int or infinity
        What `limit` leaves, ``limit - calls - failed``.
    limit : int or None
        May be changed at any time.

    Raises
    ------
    SimilarityError
        From any request: `function` raised, or returned NaN, which a masked value
        counts as, an infinity or a wrong shape, or a worker process died. The message
        names the pair; finished evaluations are kept.
    BudgetExceeded
        From any request that would pass `limit`.
    UserWarning
        From any request: the function is not symmetric; with how many pairs differ.
    StoreError
        The store is one of other items, of another function, type or symmetry, or of a
        newer format; in use; no store; or, from any request, it could not be written:
        the values are kept, and written with the next request.

    Notes
    -----
    Threads may share a similarity: while one evaluates the others wait, and find known
    what it has evaluated.

    See Also
    --------
    sklearn.metrics.pairwise_distances : computes every entry, at once.

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
    """

    def __init__(
        self,
        items: Any,
        function: Callable[[Any, Any], Value | Awaitable[Value]],
        *,
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
        items_id: str | None = None,
    ):
        items = as_items(items, batch)
        n = count(items)
        if n < 1:
            raise ValueError("A similarity matrix needs at least one item; got none.")
        if not callable(function):
            raise TypeError(
                "`function` must be callable; for a matrix that you already have use "
                "Similarity.from_matrix(K)."
            )
        if batch not in (None, "pairs", "block"):
            raise ValueError(
                f'batch must be None, "pairs" or "block"; got {batch!r}. '
                "See the description of `batch` for the three forms of a function."
            )
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(
                f"dtype must be float32 or float64; got {np.dtype(dtype)}."
            )
        self.items, self.batch = items, batch
        self._evaluator = Evaluator(
            items,
            function,
            batch,
            batch_size=_batch_size(batch_size, batch),
            n_jobs=n_jobs,
            progress=progress,
            check_symmetry=check_symmetry and symmetric,
        )
        self._ledger = Ledger(limit)
        self._memory = Memory(
            n,
            symmetric=bool(symmetric),
            dtype=np.dtype(dtype),
            diagonal=_given(diagonal, n, np.dtype(dtype)),
        )
        self._lock = Lock()  # of all that shares the memory or the counter
        self._store = self._opened(store, function_id, items_id)

    @classmethod
    def from_matrix(cls, K: ArrayLike, *, symmetric: bool | None = None) -> Similarity:
        """Wrap a matrix that exists already, counting which entries are read.

        Parameters
        ----------
        K : array of shape (n, n)
            float32 stays float32, everything else becomes float64. Memory maps are read
            where asked. What is masked counts as NaN.
        symmetric : bool, optional
            None looks whether K equals its transpose to rounding, and takes no
            triangle. True demands it.

        Raises
        ------
        ValueError
            K is not a square matrix of real numbers, or not symmetric although
            ``symmetric=True``. A triangle, NaN or an infinity, unless
            ``symmetric=False``: then these are met where they are read.
        """
        if scipy.sparse.issparse(K):
            raise ValueError("The matrix is sparse: pass K.toarray().")
        K = unmasked(K)
        if K.ndim != 2 or K.shape[0] != K.shape[1] or K.dtype.kind not in "fiub":
            condensed = K.ndim == 1 and 8 * K.size + 1 == isqrt(8 * K.size + 1) ** 2
            raise ValueError(
                "A similarity matrix is square and real; got shape "
                f"{K.shape}, dtype {K.dtype}."
                + " Of the condensed distances of pdist pass "
                "scipy.spatial.distance.squareform(K)." * condensed
            )
        dtype = np.float32 if K.dtype == np.float32 else np.float64
        if symmetric is not False:
            gap, scale = _asymmetry(K)
            is_symmetric = bool(gap <= 100 * np.finfo(dtype).eps * scale)
            if not is_symmetric and _is_triangle(K):
                raise ValueError(
                    "The matrix is a triangle: on one side of the diagonal all entries "
                    "are zero. Pass K + K.T - np.diag(np.diag(K)), which is symmetric, "
                    "or symmetric=False if these zeros are similarities."
                )
            if symmetric and not is_symmetric:
                raise ValueError(
                    f"The matrix is not symmetric: |K - K.T| reaches {gap:.3g}. Pass "
                    "symmetric=False, or from_matrix(K, symmetric=False).symmetrized() "
                    "to work with (K + K.T)/2."
                )
            symmetric = is_symmetric
        return cls(
            np.arange(K.shape[0]),
            MatrixEntries(K),
            symmetric=bool(symmetric),
            batch="pairs",
            dtype=dtype,
            n_jobs=1,
            check_symmetry=False,
        )

    @property
    def n(self) -> int:
        """Number of items."""
        return self._memory.n

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return self._memory.dtype

    @property
    def symmetric(self) -> bool:
        """Whether one evaluation answers for both orders of a pair."""
        return self._memory.symmetric

    @property
    def calls(self) -> int:
        """Evaluations made so far."""
        return self._ledger.calls

    @property
    def failed(self) -> int:
        """Evaluations handed to requests that failed; they count against `limit`."""
        return self._ledger.failed

    @property
    def checks(self) -> int:
        """Evaluations in the other order of pairs, to see whether it matters."""
        return self._evaluator.symmetry.calls

    @property
    def limit(self) -> float | None:
        """Most evaluations that may be made."""
        return self._ledger.limit

    @limit.setter
    def limit(self, value: float | None) -> None:
        self._ledger.limit = value

    @property
    def diagonal_known(self) -> bool:
        """Whether the diagonal was given, and costs nothing."""
        return self._memory.diagonal is not None

    def block(self, rows: ArrayLike, columns: ArrayLike) -> np.ndarray:
        """Return K[rows][:, columns], an array of shape (len(rows), len(columns))."""
        some_rows, row_at = _distinct(self._indices(rows))
        some_columns, column_at = _distinct(self._indices(columns))
        if some_rows.size == self.n:
            return self.columns(some_columns)[np.ix_(row_at, column_at)]
        if some_columns.size == self.n:
            return self.rows(some_rows)[np.ix_(row_at, column_at)]
        with self._lock.held:
            self._catch_up()
            rectangle = self._rectangle(some_rows, some_columns)
            needed = self._needed(rectangle)
            self._evaluate(rectangle, needed, self._memory.put)
        return rectangle.out[np.ix_(row_at, column_at)]

    def columns(self, columns: ArrayLike) -> np.ndarray:
        """Return K[:, columns], shape (n, len(columns)), and keep it whole.

        Where the columns were evaluated together the result is a read-only view of what
        is kept, not a copy.
        """
        with self._lock.held:
            self._catch_up()
            return self._whole(self._indices(columns), self._memory.columns)

    def rows(self, rows: ArrayLike) -> np.ndarray:
        """Return K[rows], shape (len(rows), n), and keep it whole."""
        with self._lock.held:
            self._catch_up()
            return self._whole(self._indices(rows), self._memory.rows).T

    def pairs(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        """Return K[i[k], j[k]] for every k, shape (len(i),).

        A function with ``batch="block"`` is called once for each distinct row or
        column among the pairs, whichever are fewer.
        """
        i, j = self._pairs(i, j)
        keys, at = _distinct(self._memory.keys(i, j))
        i, j = np.divmod(keys, self.n)
        with self._lock.held:
            self._catch_up()
            values = self._memory.get(i, j)
            (missing,) = np.isnan(values).nonzero()
            if missing.size:
                check_budget(missing.size, self._ledger)
                requests = partial(self._evaluator.scattered, i, j, missing)
                with self.progress_bar(missing.size):
                    self._evaluator.run(
                        requests, values, self._ledger, self._memory.put, self._store
                    )
        return values[at]

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        """Return K[i[k], j[k]] where it is known and NaN elsewhere; no evaluation."""
        i, j = self._pairs(i, j)
        with self._lock.held:
            return self._memory.get(i, j)

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Iterate over all that is known now, without evaluating anything.

        Yields
        ------
        i, j : arrays of int, shape (m,)
            Items. A pair comes once; of a symmetric similarity in one of the two
            orders.
        values : array of shape (m,)
            K[i, j]. A million of them at a time or so.
        """
        with self._lock.held:
            return self._memory.known()

    def cost(
        self, *blocks: Block, pairs: tuple[ArrayLike, ArrayLike] | None = None
    ) -> int:
        """Return the evaluations that some requests would make; none is made.

        Parameters
        ----------
        *blocks : tuple of two arrays of int, or None
            Rows and columns of each request; None stands for all items.
        pairs : tuple of two arrays of int, optional
            Further pairs, of a request for these after the blocks.

        Returns
        -------
        int
            Calls of ``block``, ``columns``, ``rows`` and ``pairs`` in this order, less
            what is known. What stands in several counts once.
        """

        def side(items: ArrayLike | None) -> np.ndarray | None:
            return None if items is None else self._indices(items)

        asked = [(side(rows), side(columns)) for rows, columns in blocks]
        i, j = (self._indices(items) for items in pairs or ((), ()))
        if i.size != j.size:
            raise ValueError(
                f"Pairs are two arrays as long; got {i.size} and {j.size}."
            )
        with self._lock.held:
            count = self._memory.unknown(asked, i, j)
            if self._evaluator.batch == "block":
                count += self._again(asked)
        return count

    def between(
        self,
        new_items: Any,
        landmarks: ArrayLike,
        row_landmarks: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the similarities of items outside the matrix to some inside.

        They are counted and `limit` holds, but nothing of them is kept.

        Parameters
        ----------
        new_items : sequence, array, sparse matrix or data frame
            m items of the kind of those of the matrix.
        landmarks : array of int, shape (l,)
            Items of the matrix.
        row_landmarks : array of int, shape (r,), optional
            Where the similarity is not symmetric: items of the matrix whose
            similarities *to* the new ones are wanted. By default `landmarks`.

        Returns
        -------
        array of shape (m, l) or (m, l + r)
            ``function(new, landmark)``, and where the similarity is not symmetric, then
            ``function(row_landmark, new)``: what ``LowRank.extend`` takes.

        Raises
        ------
        ValueError
            `row_landmarks` although the similarity is symmetric, or arrays of items of
            which the new ones have another shape, or data frames with other columns.
        """
        landmarks, at = _once(self._indices(landmarks))
        new_items, places = as_items(new_items, self.batch), [at]
        m, fetch = count(new_items), accessor(new_items)
        _check_alike(self.items, new_items)
        new, inside = np.arange(m), self._evaluator.fetch
        parts = [(new, landmarks, (fetch, inside), "new item {} and item {}")]
        if not self.symmetric:
            others = landmarks
            if row_landmarks is not None:
                others, at = _once(self._indices(row_landmarks))
            places.append(at)
            parts.append((others, new, (inside, fetch), "item {} and new item {}"))
        elif row_landmarks is not None:
            raise ValueError(ONE_SIDED)
        needed = sum(i.size * j.size for i, j, *_ in parts)
        answers = []
        with self._lock.held, self.progress_bar(needed):
            check_budget(needed, self._ledger)
            for i, j, fetch_both, form in parts:
                out = np.full((i.size, j.size), np.nan, dtype=self.dtype)
                rectangle = Rectangle(i, j, out, n=self.n, symmetric=False)
                requests = partial(self._evaluator.requests, rectangle, out.size)
                self._evaluator.run(
                    requests, out, self._ledger, fetch=fetch_both, form=form
                )
                answers.append(out if i is new else out.T)
        return np.hstack(list(map(partial(np.take, axis=1), answers, places)))

    def fork(self, *, limit: float | None = None) -> Similarity:
        """Return a similarity that shares what is known, with a counter of its own."""
        fork = copy.copy(self)
        fork._ledger = Ledger(limit)
        return fork

    def blank(self) -> Similarity:
        """Return a similarity that knows nothing yet, on the same counter and limit.

        For passes over the matrix whose values are not worth their memory: what it
        evaluates is kept as long as it lives, and counts.
        """
        blank = copy.copy(self)
        blank._memory, blank._store = self._memory.blank(), None
        return blank

    def tell(self, i: ArrayLike, j: ArrayLike, values: ArrayLike) -> None:
        """Take entries that are known from elsewhere, at no call.

        Parameters
        ----------
        i, j : arrays of int, shape (m,)
            Items.
        values : array of shape (m,)
            K[i, j]. A store keeps them.

        Raises
        ------
        ValueError
            Not as many values as pairs; a value that is no finite number; one that
            contradicts, beyond rounding, what is known or another one. Nothing is taken
            then.

        Examples
        --------
        >>> from simlib import Similarity
        >>> sim = Similarity(["a", "b", "c"], lambda x, y: float(x == y))
        >>> sim.tell([0, 1], [1, 2], [0.0, 0.0])
        >>> sim.block([0, 1], [1, 2]).tolist(), sim.calls
        ([[0.0, 0.0], [1.0, 0.0]], 2)
        """
        i, j = self._pairs(i, j)
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
            raise ValueError(f"Items {i[k]} and {j[k]} were told {told[k]}.")
        with self._lock.held:
            self._catch_up()
            _, first, at = np.unique(
                self._memory.keys(i, j), return_index=True, return_inverse=True
            )
            known = self._memory.get(i, j)
            for before in known, told[first][at]:
                scale = np.maximum(np.abs(before), np.abs(told))
                with np.errstate(over="ignore"):
                    gap = np.abs(before - told)
                wrong = gap > 100 * np.finfo(self.dtype).eps * scale
                if wrong.any():
                    k = int(np.argmax(wrong))
                    raise ValueError(
                        f"Items {i[k]} and {j[k]} were told {told[k]}, but their "
                        f"similarity is {before[k]} already. Nothing was taken."
                    )
            new = first[np.isnan(known[first])]
            record = Record(i[new], j[new], told[new], False)
            if self._store is not None and new.size:
                self._store.hand(record)
            self._memory.put(*record[:3])
            if self._store is not None:
                self._store.flush()

    def close(self) -> None:
        """Let go of the store, if there is one; what is known stays in memory.

        Raises
        ------
        StoreError
            What is finished could not be written: the store stays open.
        """
        with self._lock.held:
            if self._store is not None:
                self._store.close()

    def __enter__(self) -> Self:
        """Return itself; at the end of ``with`` it is closed."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the store, as `close` does."""
        self.close()

    def progress_bar(self, total: float | None = None) -> Bar:
        """Show what is evaluated in this context on one progress bar.

        Does nothing without ``progress=True``; the bar of an outer context serves. What
        ``with`` returns takes keyword arguments to be shown beside it.
        """
        return self._ledger.bar(total) if self._evaluator.progress else no_bar()

    def _opened(
        self,
        path: str | os.PathLike[str] | None,
        function_id: str | None,
        items_id: str | None,
    ) -> Store | None:
        """Open the store, if one is named, and remember what it holds."""
        if path is None:
            if function_id is not None or items_id is not None:
                raise ValueError("function_id and items_id are for a store.")
            return None
        if not (isinstance(function_id, str) and function_id):
            raise ValueError(
                "A store needs function_id, a text that names the function and its "
                "version: nothing else could tell that the function was changed; got "
                f"{function_id!r}."
            )
        manifest = {
            "n": str(self.n),
            "dtype": self.dtype.name,
            "symmetric": str(self.symmetric),
            "form": str(self.batch),
            "function_id": function_id,
            "items": f"id {items_id}" if items_id else f"sha256 {digest(self.items)}",
        }
        store = Store(path, manifest)
        self._memory.restore([r[:3] for r in store.records if r.grid])
        for record in store.records:
            if not record.grid:
                self._memory.put(*record[:3])
        store.records = []
        return store

    def _catch_up(self) -> None:
        """Remember and write what an interrupt or a full disk has left."""
        if self._store is None or not self._store.pending:
            return
        for record in self._store.pending:
            self._memory.put(*record.pairs(), record.values.ravel())
        with suppress(StoreError):  # the next evaluation raises it
            self._store.flush()

    def _indices(self, index: ArrayLike) -> np.ndarray:
        index = np.asarray(index)
        if index.ndim == 0:
            index = index.reshape(1)
        if index.size == 0:
            return np.zeros(0, dtype=np.int64)
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise ValueError(
                "Items are named by a one-dimensional array of integers; got "
                f"{index.dtype} of shape {index.shape}."
            )
        if index.astype(np.uint64, copy=False).max() >= self.n:  # negative ones wrap
            raise IndexError(
                f"Items are numbered 0 to {self.n - 1}; got "
                f"{index.min() if index.min() < 0 else index.max()}."
            )
        return index.astype(np.int64)

    def _pairs(self, i: ArrayLike, j: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        a, b = self._indices(i), self._indices(j)
        if a.size != b.size:
            raise ValueError(f"`i` and `j` must be as long; got {a.size} and {b.size}.")
        return a, b

    def _whole(self, lines: np.ndarray, store: Lines) -> np.ndarray:
        """Return the asked columns; from the store of rows, the asked rows as such."""
        if lines.size == 0:
            return np.zeros((self.n, 0), dtype=self.dtype)
        fresh = lines[~store.complete(lines)]
        if fresh.size:
            _, first = np.unique(fresh, return_index=True)
            fresh, everything = fresh[np.sort(first)], np.arange(self.n)
            if fresh.size == self.n:  # a `Rectangle` has all items in order
                fresh = everything
            if store is self._memory.columns:
                rectangle = self._rectangle(everything, fresh, order="F")
                block = rectangle.out
            else:
                rectangle = self._rectangle(fresh, everything)
                block = rectangle.out.T
            needed = self._needed(rectangle)
            store.add(fresh, block)  # before it is filled: nothing finished gets lost
            self._evaluate(rectangle, needed)
            store.finish(fresh)
        return store.take(lines)

    def _rectangle(
        self, rows: np.ndarray, columns: np.ndarray, order: Literal["C", "F"] = "C"
    ) -> Rectangle:
        """Return K[rows][:, columns] (no repeats) with NaN where it is not known."""
        out = np.full((rows.size, columns.size), np.nan, self.dtype, order=order)
        known = self._memory.fill(rows, columns, out)
        return Rectangle(
            rows,
            columns,
            out,
            n=self.n,
            symmetric=self.symmetric,
            fresh=not known,
        )

    def _needed(self, rectangle: Rectangle) -> int:
        """Return the evaluations that it needs, if the limit allows them."""
        needed = self._evaluator.missing(rectangle)
        check_budget(needed, self._ledger)
        return needed

    def _evaluate(
        self, rectangle: Rectangle, needed: int, finished: Finished | None = None
    ) -> None:
        """Evaluate what is missing."""
        if needed:
            requests = partial(self._evaluator.requests, rectangle, needed)
            with self.progress_bar(needed):
                self._evaluator.run(
                    requests, rectangle.out, self._ledger, finished, self._store
                )

    def _again(self, blocks: list[Indices]) -> int:
        """Count what a block function computes beside what is not known."""
        extra, every = 0, np.arange(self.n)
        columns_known = self._memory.columns.complete(every)
        rows_known = columns_known
        if not self.symmetric:
            rows_known = self._memory.rows.complete(every)
        for k, sides in enumerate(blocks):
            rows, columns = (every if side is None else side for side in sides)
            rows, columns = _distinct(rows)[0], _distinct(columns)[0]
            items = np.intersect1d(rows, columns, assume_unique=True)
            if self.n in (rows.size, columns.size):  # read as whole lines
                by_column = rows.size == self.n
                complete = columns_known if by_column else rows_known
                items = items[~complete[items]]
                complete[columns if by_column else rows] = True
            earlier = Region(self.n, blocks[:k], symmetric=self.symmetric)
            for tile in np.split(items, range(TILE, items.size, TILE)):
                i, j = np.repeat(tile, tile.size), np.tile(tile, tile.size)
                mask = np.isnan(self._memory.get(i, j)) & ~earlier.covers(i, j)
                mask = mask.reshape(tile.size, tile.size)
                extra += again(mask, symmetric=self.symmetric)
        return extra


class Lock:
    """Holds a re-entrant lock, and is pickled as one that holds a new one."""

    def __init__(self) -> None:
        self.held = threading.RLock()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


class MatrixEntries:
    """The function ``(i, j) -> K[i, j]`` of a matrix that exists already."""

    def __init__(self, K: np.ndarray):
        self.K = K

    def __call__(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        first = min(np.min(i, initial=0), np.min(j, initial=0))
        if first < 0:  # would wrap
            raise IndexError(f"Items are numbered 0 to {len(self.K) - 1}; got {first}.")
        return self.K[i, j]


def _check_alike(items: Any, new_items: Any) -> None:
    """Raise where the items of two arrays have different shapes."""
    one, other = (getattr(array, "shape", None) for array in (items, new_items))
    if one is not None and other is not None and one[1:] != other[1:]:
        raise ValueError(
            f"New items are like those of the matrix, each of shape {tuple(one[1:])}; "
            f"got some of shape {tuple(other[1:])}. A single item x is passed as "
            "x[None], an array of one."
        )
    tables = [table for table in (items, new_items) if hasattr(table, "columns")]
    names = [list(table.columns) for table in tables]
    if len(names) == 2 and names[0] != names[1]:
        raise ValueError(
            f"New items have the columns of the others, {names[0]}, in their order; "
            f"got {names[1]}."
        )


def _batch_size(batch_size: int | None, batch: str | None) -> int | None:
    """Return a valid `batch_size`."""
    if batch_size is None:
        return None
    if batch == "block":
        raise ValueError(
            'batch_size is for batch=None and "pairs"; the blocks of a function with '
            'batch="block" have fixed shapes.'
        )
    if not (isinstance(batch_size, Real) and batch_size >= 1 and batch_size % 1 == 0):
        raise ValueError(f"batch_size must be an integer from 1 on; got {batch_size}.")
    return int(batch_size)


def _given(diagonal: ArrayLike | None, n: int, dtype: np.dtype) -> np.ndarray | None:
    """Return a given diagonal as an array of shape (n,)."""
    if diagonal is None:
        return None
    values = unmasked(diagonal)
    if values.dtype.kind not in "fiub" or values.shape not in ((), (n,)):
        raise ValueError(
            f"diagonal must be a number or an array of shape ({n},); got "
            f"{values.dtype} of shape {values.shape}."
        )
    with np.errstate(over="ignore"):
        values = np.array(values, dtype=dtype)
    if not np.isfinite(values).all():
        raise ValueError("diagonal must be finite; it holds NaN or an infinity.")
    return np.broadcast_to(values, (n,))


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


def _is_triangle(K: np.ndarray) -> bool:
    """Tell whether all entries on one side of the diagonal are zero."""
    lower = upper = True
    for k in range(0, K.shape[0], 512):
        rows = np.asarray(K[k : k + 512])
        lower = lower and not np.triu(rows, k + 1).any()
        upper = upper and not np.tril(rows, k - 1).any()
    return lower or upper


def _asymmetry(K: np.ndarray) -> tuple[float, float]:
    """Return max |K - K.T| and max |K|, from tiles that fit into the cache."""
    gap = scale = 0.0
    step = 512
    for k in range(0, K.shape[0], step):
        rows = np.asarray(K[k : k + step], dtype=float)
        if not np.isfinite(rows).all():
            i, j = np.argwhere(~np.isfinite(rows))[0]
            raise ValueError(f"The matrix holds {rows[i, j]} at ({k + i}, {j}).")
        for j in range(k, K.shape[0], step):
            tile = np.asarray(K[j : j + step, k : k + step], dtype=float)
            gap = max(gap, np.abs(rows[:, j : j + step] - tile.T).max())
        scale = max(scale, np.abs(rows).max())
    return float(gap), float(scale)
