"""The question: a similarity matrix that evaluates an entry only when it is asked for.

Evaluations are expensive. A `Similarity` counts them, stops at a limit, and never
evaluates a pair twice; every method of simlib reads its matrix through one.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from math import inf
from typing import Any, Literal, Self, SupportsFloat, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from simlib._checks import one_of
from simlib.similarity.budget import Budget, Lock
from simlib.similarity.evaluate import Evaluator
from simlib.similarity.items import as_items, count, unmasked
from simlib.similarity.known import Entries, Extent, Known, look, shape_of
from simlib.similarity.ledger import Ledger, open_ledger
from simlib.similarity.matrix import MatrixEntries, given_diagonal, given_matrix
from simlib.similarity.memory import Memory
from simlib.similarity.price import evaluations
from simlib.similarity.reading import Reading, compared_with
from simlib.similarity.requests import Block, Pairs, checked, places
from simlib.similarity.store import Record
from simlib.similarity.views import Bar, SimilarityMatrix

Value: TypeAlias = SupportsFloat | ArrayLike


class Similarity(SimilarityMatrix):
    r"""Similarities of all pairs, evaluated on demand, each at most once.

    Stands for the matrix :math:`K_{ij} = \Delta(x_i, x_j)` of n items, the equation
    :eq:`eq:similarity` of the book, or for :math:`K_{ij} = \Delta(x_i, y_j)` of two
    collections.

    Parameters
    ----------
    items : sequence, array, sparse matrix or data frame
        The n items, one per row or position. A data frame with one column stands for
        its values, one with several columns for its rows: a function of two items
        receives mappings, a function of pairs or blocks data frames, of blocks also of
        a single column of numbers. A file, such as an ``h5py.Dataset``, is read where
        needed, in increasing order.
    function : callable
        The similarity :math:`\Delta`, in the form that `batch` tells. A coroutine
        function runs in an event loop of its own.
    columns : sequence, array, sparse matrix or data frame, optional
        A second collection of n items, such as documents where the m `items` are
        queries: K has the shape (m, n), and no pair is within a collection.
    symmetric : bool, default=True
        For one collection: whether ``function(x, y)`` equals ``function(y, x)``, so
        that one call answers both. See `symmetrized` for one that is not symmetric.
    batch : None, "pairs" or "block", default=None
        None: ``function(x, y) -> float``. "pairs": ``function(xs, ys) -> (m,)``, one
        value for each of m pairs, the form of a cross-encoder. "block":
        ``function(xs, ys) -> (len(xs), len(ys))``, one matrix product. Answers may be
        tensors of PyTorch, CuPy or JAX, on a graphics card, too.
    dtype : float32 or float64, default=float64
        Type in which values are kept.
    n_jobs : int, optional
        Parallel evaluation through joblib, of a coroutine function in threads; None
        obeys ``joblib.parallel_config(backend="dask")`` and the like, and without that
        makes one call after the other, also of a coroutine function.
    limit : int, optional
        Most evaluations that may be made, those that failed included; the few of
        `check_symmetry` and `verify` come on top.
    progress : bool, default=False
        Show a progress bar (tqdm) while evaluating.
    diagonal : float or array of shape (n,), optional
        For one collection: the similarity of each item with itself, if it is known. It
        is evaluated only in the small tiles on the diagonal of ``batch="block"``.
    batch_size : int, optional
        How many pairs to hand to `function`, or to a worker, at a time. By default as
        many as take about a second. Not with ``batch="block"``.
    check_symmetry : bool, default=True
        Ask 1 in 50 pairs, 24 in all, in the other order too, and warn where the two
        values differ by more than 1 % of the largest. With ``batch="block"`` these are
        pairs of single rows or columns; of tiles on the diagonal the function gives
        both halves, which are compared in any case.
    store : str or path, optional
        An SQLite file that keeps each finished request for the next process; it is made
        if it does not exist. It finds items by their hashes: also in another order,
        among other items, or as new items of `between`. One process at a time opens it.
    function_id : str, optional
        Required with a store: names the function and its version.
    items_id : sequence of n strings or numbers, optional
        Names by which the store finds items that are no plain data (see
        `simlib.similarity.digest`), all different; for two collections a pair of
        sequences or None. Values of new items are then not kept.
    verify : int, default=8
        How many pairs of the store are evaluated again when it is opened, to detect a
        changed function; they do not count in `calls` nor against `limit`. Pass 0 for a
        function whose answers vary.

    Attributes
    ----------
    shape : tuple of int
        (n, n), or (m, n) of two collections; `n` is defined for one collection.
    remaining : int or infinity
        What `limit` leaves, ``limit - calls - failed``; `limit` can be set anew.
    verified : int
        Pairs of the store that were evaluated again when it was opened.

    Raises
    ------
    SimilarityError
        From any request: `function` raised, or returned NaN (a masked value counts as
        NaN), an infinity or a wrong shape, or a worker died. The error names the pair;
        finished values are kept.
    BudgetExceeded
        From any request that would pass `limit`; nothing is evaluated for it.
    StoreError
        The file is in use, is no store, or was made with another function, type,
        symmetry or format; or the function gives other values than it holds. From any
        request: the store could not be written; the next request writes the values.

    Warns
    -----
    UserWarning
        From any request: the function is not symmetric.
    StoreWarning
        The store has lost something to damage, knows none of the items, or gives values
        that differ by up to 1 % of their range.

    Notes
    -----
    Threads may share a similarity; requests wait for each other, and the function must
    not ask the similarity that calls it. Equal items are evaluated separately. Searches
    and estimates choose pairs only by what they have asked themselves, in a `run`: the
    same seed makes the same choices, and known entries cost nothing. See also
    `informed`.

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
        dtype = np.dtype(dtype)
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64; got {dtype}.")
        self.items, self.column_items, self.batch = items, columns, batch
        self._evaluator = Evaluator(
            items,
            columns,
            function,
            batch,
            batch_size=batch_size,
            n_jobs=n_jobs,
            check_symmetry=check_symmetry and symmetric,
        )
        self._budget = Budget(limit, progress=progress)
        given = given_diagonal(diagonal, shape_of(extent)[0], dtype)
        known = partial(Known, extent, symmetric=bool(symmetric), dtype=dtype)
        self._memory = Memory(known(diagonal=given), shelf := known())
        self._informed = False
        self._lock = Lock()  # for all objects that share the memory or the counter
        self._ledger, self.verified = open_ledger(
            store, function_id, items_id, verify, shelf, self._evaluator
        )

    @classmethod
    def from_matrix(
        cls, K: ArrayLike, *, symmetric: bool | None = None, two: bool = False
    ) -> Similarity:
        """Wrap a matrix that exists already, counting which entries are read.

        Parameters
        ----------
        K : array of shape (n, n) or (m, n)
            Of one collection, or of two if it is not square. float32 stays float32,
            every other type becomes float64. A memory map is read where entries are
            asked for. A masked entry counts as NaN.
        symmetric : bool, optional
            None tests whether K equals its transpose to rounding. True requires it.
        two : bool, default=False
            Whether rows and columns are two collections though K is square.

        Raises
        ------
        ValueError
            K is not real, or not symmetric although ``symmetric=True``. Unless
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
        return self._memory.asked.extent

    @property
    def dtype(self) -> np.dtype:
        return self._memory.asked.dtype

    @property
    def symmetric(self) -> bool:
        return self._memory.asked.symmetric

    @property
    def calls(self) -> int:
        """Values obtained from the function.

        With ``batch="block"`` small tiles on the diagonal count with both halves, and
        with their diagonal even if it is known.
        """
        return self._budget.calls

    @property
    def failed(self) -> int:
        """Evaluations handed to requests that failed, whose values are lost."""
        return self._budget.failed

    @property
    def checks(self) -> int:
        """Evaluations made for `check_symmetry`; `calls` and `limit` ignore them."""
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
        return self._memory.asked.diagonal is not None

    def read(self, *blocks: Block, pairs: Pairs | None = None) -> list[np.ndarray]:
        asked, scattered = checked(self.extent, blocks, pairs)
        with self._lock.held:
            return self._reading().read(asked, scattered)

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        """Return K[i[k], j[k]] where it is known and NaN elsewhere; no evaluation."""
        i, j = places(self.extent, i, j)
        with self._lock.held:
            return look(self._memory.seen, i, j)

    def known(self) -> Iterator[Entries]:
        """Iterate over all that is known now, without evaluating anything.

        Yields
        ------
        i, j, values : arrays of shape (m,)
            Rows, columns and K[i, j], about a million at a time; a symmetric pair comes
            once.
        """
        with self._lock.held:
            return self._memory.known()

    def cost(self, *blocks: Block, pairs: Pairs | None = None) -> int:
        asked, scattered = checked(self.extent, blocks, pairs)
        with self._lock.held:
            grids = self.batch == "block"
            return evaluations(self._memory.seen, asked, scattered, grids=grids)

    def between(
        self,
        new_items: Any,
        landmarks: ArrayLike | None = None,
        row_landmarks: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the similarities of new items to some items of the matrix.

        They count in `calls` and against `limit`. Only a store keeps them.

        Parameters
        ----------
        new_items : sequence, array, sparse matrix or data frame
            m items of the same kind as the items of the matrix. For two collections
            they are new rows, or new columns.
        landmarks : array of int, shape (l,)
            Items of the matrix. For two collections: columns, where the new items are
            rows.
        row_landmarks : array of int, shape (r,), optional
            Items of the matrix whose similarities *to* the new items are wanted. By
            default `landmarks` where the similarity is not symmetric, and none where it
            is. For two collections: rows, where the new items are columns, in place of
            `landmarks`.

        Returns
        -------
        array of shape (m, l), (m, l + r) or (m, r)
            ``function(new, landmark)``, then ``function(row_landmark, new)``. An answer
            ``K`` of one collection embeds new items by
            ``K.extend(sim.between(new, K.landmarks, K.row_landmarks))``.

        Raises
        ------
        ValueError
            No landmarks; new items with another shape, or with a `batch` other columns.
        """
        sides = compared_with(self, landmarks, row_landmarks)
        new_items = as_items(new_items, self.batch)
        with self._lock.held:
            values, pairs = self._reading().between(new_items, sides)
            self._compared(pairs)
        return values

    def _reading(self) -> Reading:
        self._ledger.catch_up()
        return Reading(self._memory, self._evaluator, self._budget, self._ledger)

    def _compared(self, pairs: int) -> None:
        """Count pairs with new items, known or not, in a `Run`."""

    def fork(self, *, limit: float | None = None) -> Self:
        fork = copy.copy(self)
        fork._budget = Budget(limit, progress=self._budget.progress)
        return fork

    def blank(self) -> Similarity:
        blank = copy.copy(self)
        blank._memory = self._memory.blank()
        blank._ledger = Ledger(blank._memory.shelf)
        return blank

    def run(self, *, asked: bool = False) -> Similarity:
        if self._informed:
            return self
        run = object.__new__(Run)
        with self._lock.held:
            run.__dict__ |= self.__dict__
            run._start = self._standing()
            run._memory, run._spent = self._memory.run(asked=asked), [0]
        return run

    def _standing(self) -> tuple[int, int]:
        """Return the calls so far, and how many entries a run may ask for at none."""
        if self.limit is None:
            return self.calls, 0
        free = sum(values.size for _, _, values in self.known())
        if self.batch == "block":  # of small tiles a run counts both halves
            return self.calls, 2 * free
        return self.calls, free - (self.n if self.diagonal_known else 0)

    def informed(self) -> Similarity:
        informed = copy.copy(self)
        informed._informed = True
        return informed

    def tell(self, i: ArrayLike, j: ArrayLike, values: ArrayLike) -> None:
        """Add entries that are known from elsewhere, at no call.

        Parameters
        ----------
        i, j, values : arrays of shape (m,)
            Items and K[i, j]. A store keeps them; if the function gives others, open
            the store with ``verify=0`` from then on.

        Raises
        ------
        ValueError
            The numbers of values and of pairs differ; a value is not finite, or differs
            beyond rounding from the known value or from another value given for the
            same pair. Then nothing is added.
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
            given, told = told, told.astype(self.dtype)
        if not np.isfinite(told).all():
            k = int(np.argmin(np.isfinite(told)))
            raise ValueError(f"{pair(k)} were told {given[k]}, no finite {self.dtype}.")
        with self._lock.held:
            self._ledger.catch_up()
            first, known = self._memory.agreed(i, j, told, pair)
            new = first[np.isnan(known[first])]
            names = self._ledger.names()
            if names is not None and new.size:
                names.hand(Record(i[new], j[new], told[new], False))
            self._memory.kept.put(i[new], j[new], told[new])
            kept = np.where(np.isnan(known), told, known)  # known values stay
            self._memory.note(i[first], j[first], kept[first])
            if names is not None:
                names.flush()

    def close(self) -> None:
        """Close the store, if there is one; all that is known stays in memory.

        If the store cannot be written, it stays open and StoreError is raised.
        """
        with self._lock.held:
            if self._ledger.store is not None:
                self._ledger.store.close()

    def __enter__(self) -> Self:
        """Return the similarity, which is closed at the end of ``with``."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store, as `close` does."""
        self.close()

    def progress_bar(self, total: float | None = None) -> Bar:
        return self._budget.bar(total)


class Run(Similarity):
    """The similarity of one run; its `calls` are what the run has asked for."""

    _spent: list[int]  # one number, which a blank of the run shares
    _start: tuple[int, int]  # calls before the run, and entries that it has for none

    @property
    def calls(self) -> int:
        return self._spent[0]

    @property
    def remaining(self) -> float:
        if self.limit is None:
            return inf
        (before, free), most = self._start, self.limit - self.failed
        return max(min(most, max(most - before, 0) + free) - self.calls, 0)

    def fork(self, *, limit: float | None = None) -> Self:
        fork = super().fork(limit=limit)
        fork._spent = [0]
        fork._start = Similarity._standing(fork)
        return fork

    def blank(self) -> Similarity:
        blank, before = cast(Run, super().blank()), self._start[0]
        had = self.calls - (self._budget.calls - before)  # what cost the run nothing
        blank._start = (before, had)
        return blank

    def _standing(self) -> tuple[int, int]:
        return self._start

    def read(self, *blocks: Block, pairs: Pairs | None = None) -> list[np.ndarray]:
        with self._lock.held:  # or two threads would both pay for one pair
            needed = self.cost(*blocks, pairs=pairs)
            try:
                return super().read(*blocks, pairs=pairs)
            except BaseException:
                needed -= self.cost(*blocks, pairs=pairs)
                raise
            finally:
                self._spent[0] += needed

    def _compared(self, pairs: int) -> None:
        self._spent[0] += pairs
