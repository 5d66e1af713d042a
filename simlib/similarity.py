"""The question: a similarity matrix that is evaluated only where someone asks.

Evaluations are what costs. A `Similarity` counts them, refuses to pass a budget, and
never evaluates a pair twice; every method of simlib reads its matrix through one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, SupportsFloat

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike

from simlib.evaluation import (
    AsymmetryError,
    BudgetExceeded,
    Evaluator,
    Ledger,
    Request,
    SimilarityError,
)
from simlib.memory import Lines, Memory

__all__ = ["BudgetExceeded", "Similarity", "SimilarityError"]


class Similarity:
    r"""Pairwise similarities of n items, evaluated on demand, each at most once.

    Stands for the n x n matrix :math:`K_{ij} = \Delta(x_i, x_j)`, the equation
    :eq:`eq:similarity` of the book.

    Parameters
    ----------
    items : sequence, array or sparse matrix
        The n items, of any kind; one per row or position. With `batch` also a data
        frame.
    function : callable
        The similarity :math:`\Delta`. What it is given depends on `batch`.
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
        Parallel evaluation through joblib; None obeys ``joblib.parallel_config``, so
        that a cluster is ``parallel_config(backend="dask")``.
    limit : int, optional
        Most evaluations that may be made. The request that would pass it raises
        `BudgetExceeded` before evaluating anything.
    progress : bool, default=False
        Show a progress bar (tqdm) while evaluating.

    Attributes
    ----------
    calls : int
        Values obtained from `function` so far. No pair (unordered if symmetric) is
        evaluated twice, except that ``batch="block"`` computes both halves of the small
        tiles on the diagonal, and both count.
    limit : int or None
        May be changed at any time.

    Raises
    ------
    SimilarityError
        From any request: `function` raised, or returned NaN, an infinity or a wrong
        shape. The message names the pair; finished evaluations are kept.
    BudgetExceeded
        From any request that would pass `limit`.

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
        function: Callable[[Any, Any], SupportsFloat | ArrayLike],
        *,
        symmetric: bool = True,
        batch: Literal["pairs", "block"] | None = None,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        limit: int | None = None,
        progress: bool = False,
    ):
        n = items.shape[0] if hasattr(items, "shape") else len(items)
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
        self.items = items.tocsr() if scipy.sparse.issparse(items) else items
        self._evaluator = Evaluator(self.items, function, batch, n_jobs, progress)
        self._symmetric = bool(symmetric)
        self._ledger = Ledger(limit)
        self._memory = Memory(n, symmetric=self._symmetric, dtype=np.dtype(dtype))

    @classmethod
    def from_matrix(cls, K: ArrayLike, *, symmetric: bool | None = None) -> Similarity:
        """Wrap a matrix that exists already, counting which entries are read.

        Parameters
        ----------
        K : array of shape (n, n)
            float32 stays float32, everything else becomes float64. Memory maps are read
            where asked.
        symmetric : bool, optional
            None looks whether K equals its transpose to rounding. True demands it.

        Raises
        ------
        ValueError
            K is not a square matrix of real numbers, or not symmetric although
            ``symmetric=True``. NaN or an infinity, unless ``symmetric=False``: then it
            is met where it is read.
        """
        if scipy.sparse.issparse(K):
            raise ValueError("The matrix is sparse: pass K.toarray().")
        K = np.asarray(K)
        if K.ndim != 2 or K.shape[0] != K.shape[1] or K.dtype.kind not in "fiub":
            raise ValueError(
                "A similarity matrix is square and real; got shape "
                f"{K.shape}, dtype {K.dtype}."
            )
        dtype = np.float32 if K.dtype == np.float32 else np.float64
        if symmetric is not False:
            gap, scale = _asymmetry(K)
            is_symmetric = gap <= 100 * float(np.finfo(dtype).eps) * scale
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
            symmetric=symmetric,
            batch="pairs",
            dtype=dtype,
            n_jobs=1,
        )

    @property
    def n(self) -> int:
        """Number of items."""
        return self._memory.n

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix, (n, n)."""
        return (self.n, self.n)

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return self._memory.dtype

    @property
    def symmetric(self) -> bool:
        """Whether one evaluation answers for both orders of a pair."""
        return self._symmetric

    @property
    def calls(self) -> int:
        """Evaluations made so far."""
        return self._ledger.calls

    @property
    def limit(self) -> int | None:
        """Most evaluations that may be made."""
        return self._ledger.limit

    @limit.setter
    def limit(self, value: int | None) -> None:
        self._ledger.limit = value

    def __repr__(self) -> str:
        kind = "symmetric" if self.symmetric else "asymmetric"
        limit = "" if self.limit is None else f" of {self.limit}"
        return (
            f"{type(self).__name__}({self.n} items, {kind}, {self.calls}{limit} calls)"
        )

    def block(self, rows: ArrayLike, columns: ArrayLike) -> np.ndarray:
        """Return K[rows][:, columns], an array of shape (len(rows), len(columns))."""
        rows, columns = self._indices(rows), self._indices(columns)
        some_rows, row_at = np.unique(rows, return_inverse=True)
        some_columns, column_at = np.unique(columns, return_inverse=True)
        if some_rows.size == self.n:
            return self.columns(some_columns)[np.ix_(row_at, column_at)]
        if some_columns.size == self.n:
            return self.rows(some_rows)[np.ix_(row_at, column_at)]
        out = self._known(some_rows, some_columns)
        missing = np.isnan(out)
        try:
            self._complete(some_rows, some_columns, out)
        finally:
            a, b = np.nonzero(missing & ~np.isnan(out))
            self._memory.put(some_rows[a], some_columns[b], out[a, b])
        return out[np.ix_(row_at, column_at)]

    def columns(self, columns: ArrayLike) -> np.ndarray:
        """Return K[:, columns], shape (n, len(columns)), and keep it whole.

        Where the columns were evaluated together the result is a read-only view of what
        is kept, not a copy.
        """
        return self._whole(self._indices(columns), self._memory.columns)

    def rows(self, rows: ArrayLike) -> np.ndarray:
        """Return K[rows], shape (len(rows), n), and keep it whole."""
        if self.symmetric:
            return self.columns(rows).T
        return self._whole(self._indices(rows), self._memory.rows).T

    def pairs(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        """Return K[i[k], j[k]] for every k, shape (len(i),).

        A function with ``batch="block"`` is called once for each distinct row or
        column among the pairs, whichever are fewer.
        """
        a, b = self._indices(i), self._indices(j)
        if a.size != b.size:
            raise ValueError(f"`i` and `j` must be as long; got {a.size} and {b.size}.")
        if self.symmetric:
            a, b = np.minimum(a, b), np.maximum(a, b)
        keys, at = np.unique(a * self.n + b, return_inverse=True)
        i, j = np.divmod(keys, self.n)
        values = self._memory.get(i, j)
        missing = np.flatnonzero(np.isnan(values))
        self._ledger.check(missing.size)
        try:
            requests = self._evaluator.scattered(i, j, missing)
            self._evaluator.run(requests, values, missing.size, self._ledger)
        finally:
            new = missing[~np.isnan(values[missing])]
            self._memory.put(i[new], j[new], values[new])
        return values[at]

    def diagonal(self) -> np.ndarray:
        """Return the similarity of each item with itself, shape (n,)."""
        return self.pairs(np.arange(self.n), np.arange(self.n))

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        """Return K[i[k], j[k]] where it is known and NaN elsewhere; no evaluation."""
        return self._memory.get(self._indices(i), self._indices(j))

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Iterate over all that is known, without evaluating anything.

        Yields
        ------
        i, j : arrays of int, shape (m,)
            Items. A pair comes once; of a symmetric similarity in one of the two
            orders.
        values : array of shape (m,)
            K[i, j]. A million of them at a time or so; nothing else is to be asked of
            this similarity in between.
        """
        return self._memory.known()

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Similarity:
        """Return the elementwise view ``function(K)``.

        It shares the known values, the counter and the limit of this similarity:
        ``sim.map(lambda d: np.exp(-gamma * d))`` of known distances costs nothing.
        """
        return MappedSimilarity(self, function)

    def symmetrized(self) -> Similarity:
        """Return the view (K + K.T)/2, symmetric, on the same counter.

        It costs two calls for a pair off the diagonal and one on it, less what is
        known. A symmetric similarity is returned as it is.
        """
        return self if self.symmetric else SymmetrizedSimilarity(self)

    def fork(self, *, limit: int | None = None) -> Similarity:
        """Return a similarity that shares what is known, with a counter of its own."""
        fork = object.__new__(type(self))
        fork.__dict__.update(self.__dict__)
        fork._ledger = Ledger(limit)
        return fork

    def blank(self) -> Similarity:
        """Return a similarity that knows nothing yet, on the same counter and limit.

        For passes over the matrix whose values are not worth their memory: what it
        evaluates is kept as long as it lives, and counts.
        """
        blank = object.__new__(type(self))
        blank.__dict__.update(self.__dict__)
        blank._memory = Memory(self.n, symmetric=self.symmetric, dtype=self.dtype)
        return blank

    def _indices(self, index: ArrayLike) -> np.ndarray:
        index = np.atleast_1d(np.asarray(index))
        if index.size == 0:
            return np.zeros(0, dtype=np.int64)
        if index.ndim != 1 or not np.issubdtype(index.dtype, np.integer):
            raise ValueError(
                "Items are named by a one-dimensional array of integers; got "
                f"{index.dtype} of shape {index.shape}."
            )
        if index.min() < 0 or index.max() >= self.n:
            raise IndexError(
                f"Items are numbered 0 to {self.n - 1}; got "
                f"{index.min() if index.min() < 0 else index.max()}."
            )
        return index.astype(np.int64)

    def _whole(self, lines: np.ndarray, store: Lines) -> np.ndarray:
        """Return the asked columns; from the store of rows, the asked rows as such."""
        if lines.size == 0:
            return np.zeros((self.n, 0), dtype=self.dtype)
        _, first = np.unique(lines, return_index=True)
        fresh = lines[np.sort(first)]
        fresh = fresh[~store.complete(fresh)]
        if fresh.size:
            everything = np.arange(self.n)
            order: Literal["C", "F"]
            if store is self._memory.columns:
                place, order = (everything, fresh), "F"
            else:
                place, order = (fresh, everything), "C"
            out = self._known(*place, order=order)
            block = out if order == "F" else out.T
            self._complete(*place, out, keep=lambda: store.add(fresh, block))
            store.finish(fresh)
        return store.take(lines)

    def _known(
        self, rows: np.ndarray, columns: np.ndarray, order: Literal["C", "F"] = "C"
    ) -> np.ndarray:
        """Return K[rows][:, columns] (no repeats) with NaN where it is not known."""
        out = np.full((rows.size, columns.size), np.nan, self.dtype, order=order)
        self._memory.fill(rows, columns, out)
        return out

    def _complete(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        out: np.ndarray,
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        """Evaluate every NaN of ``out = K[rows][:, columns]``; no index repeats.

        `keep` is called between the check of the budget and the first evaluation.
        """
        evaluator, rectangular = self._evaluator, self._evaluator.batch == "block"
        tiles, shared = evaluator.tiles(rows, columns, self.symmetric)
        needed = sum(int(tile.missing(out, rectangular).sum()) for tile in tiles)
        self._ledger.check(needed)
        keep()
        requests = (
            Request(rows[a], columns[b], np.ix_(a, b) if rectangular else (a, b))
            for tile in tiles
            for a, b in tile.requests(out, rectangular)
        )
        halves = np.ix_(*shared)
        try:
            evaluator.run(requests, out, needed, self._ledger)
            if rectangular:
                self._check_halves(rows[shared[0]], out[halves])
        except AsymmetryError:
            out[halves] = np.nan  # or the next request would find one half for both
            raise
        finally:
            upper = out[halves]
            out[halves] = np.triu(upper) + np.triu(upper, 1).T

    def _check_halves(self, items: np.ndarray, block: np.ndarray) -> None:
        """Compare the two halves of the tiles of which a block function gave both."""
        gap = np.abs(block - block.T)
        if gap.size and gap[~np.isnan(gap)].max() > 0.01 * np.nanmax(np.abs(block)):
            i, j = np.unravel_index(np.nanargmax(gap), gap.shape)
            raise AsymmetryError(
                f"The similarity function is not symmetric: it gives {block[i, j]:.6g} "
                f"for items {items[i]} and {items[j]}, and {block[j, i]:.6g} in the "
                "other order. Pass symmetric=False, and .symmetrized() for the mean of "
                "the two."
            )


class View(Similarity):
    """A similarity made of another one, on the same memory, counter and limit."""

    def __init__(self, base: Similarity):
        self.__dict__.update(base.__dict__)
        self.base = base

    def blank(self) -> Similarity:
        blank = object.__new__(type(self))
        blank.__dict__.update(self.__dict__)
        blank.base = self.base.blank()
        blank._memory = blank.base._memory
        return blank


class MappedSimilarity(View):
    """The elementwise view that `Similarity.map` returns."""

    def __init__(self, base: Similarity, function: Callable[[np.ndarray], np.ndarray]):
        super().__init__(base)
        self.function = function

    def block(self, rows: ArrayLike, columns: ArrayLike) -> np.ndarray:
        return self._apply(self.base.block(rows, columns))

    def columns(self, columns: ArrayLike) -> np.ndarray:
        return self._apply(self.base.columns(columns))

    def rows(self, rows: ArrayLike) -> np.ndarray:
        return self._apply(self.base.rows(rows))

    def pairs(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        return self._apply(self.base.pairs(i, j))

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        values = self.base.peek(i, j)
        known = ~np.isnan(values)
        values[known] = self._apply(values[known])
        return values

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for i, j, values in self.base.known():
            yield i, j, self._apply(values)

    def fork(self, *, limit: int | None = None) -> Similarity:
        return MappedSimilarity(self.base.fork(limit=limit), self.function)

    def _apply(self, values: np.ndarray) -> np.ndarray:
        result = np.asarray(self.function(values), dtype=self.dtype)
        if result.shape != values.shape:
            raise SimilarityError(
                f"The mapped function turned shape {values.shape} into {result.shape}; "
                "it must act on each value alone."
            )
        bad = ~np.isfinite(result)
        if bad.any():
            raise SimilarityError(
                f"The mapped function turned {values[bad][0]:.6g} into "
                f"{result[bad][0]}; the similarities themselves are kept."
            )
        return result


class SymmetrizedSimilarity(View):
    """The view (K + K.T)/2 that `Similarity.symmetrized` returns."""

    def __init__(self, base: Similarity):
        super().__init__(base)
        self._symmetric = True

    def block(self, rows: ArrayLike, columns: ArrayLike) -> np.ndarray:
        rows, columns = self._indices(rows), self._indices(columns)
        self._check(rows, columns)
        one, other = self.base.block(rows, columns), self.base.block(columns, rows).T
        return (one + other) / 2

    def columns(self, columns: ArrayLike) -> np.ndarray:
        columns = self._indices(columns)
        self._check(np.arange(self.n), columns)
        return (self.base.columns(columns) + self.base.rows(columns).T) / 2

    def rows(self, rows: ArrayLike) -> np.ndarray:
        return self.columns(rows).T

    def pairs(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        i, j = self._indices(i), self._indices(j)
        both = self.base.pairs(np.concatenate([i, j]), np.concatenate([j, i]))
        return (both[: i.size] + both[i.size :]) / 2

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        return (self.base.peek(i, j) + self.base.peek(j, i)) / 2

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for i, j, values in self.base.known():
            first = i <= j
            i, j = i[first], j[first]
            mean = (values[first] + self.base.peek(j, i)) / 2
            both = ~np.isnan(mean)
            yield i[both], j[both], mean[both]

    def fork(self, *, limit: int | None = None) -> Similarity:
        return SymmetrizedSimilarity(self.base.fork(limit=limit))

    def _check(self, rows: np.ndarray, columns: np.ndarray) -> None:
        """Check the budget for both orders before either is evaluated."""
        if self.limit is None:
            return

        def missing(i: np.ndarray, j: np.ndarray) -> int:
            return int(np.isnan(self._known(np.unique(i), np.unique(j))).sum())

        both = np.intersect1d(rows, columns)
        self._ledger.check(
            missing(rows, columns) + missing(columns, rows) - missing(both, both)
        )


class MatrixEntries:
    """The function ``(i, j) -> K[i, j]`` of a matrix that exists already."""

    def __init__(self, K: np.ndarray):
        self.K = K

    def __call__(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return self.K[i, j]


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
