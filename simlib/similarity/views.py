"""The base class of similarity matrices, and views of a similarity matrix."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from math import inf
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from simlib._checks import indices, one_collection
from simlib.similarity.budget import Bar, SimilarityError, check_budget
from simlib.similarity.items import unmasked
from simlib.similarity.known import Entries, Extent, Known, shape_of
from simlib.similarity.price import evaluations
from simlib.similarity.requests import Block, Pairs, checked, names, places
from simlib.similarity.source import Source

__all__ = ["SimilarityMatrix", "check_similarity"]


class SimilarityMatrix(Source):
    """A `Source` with the further requests that methods make.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity
    >>> distance = Similarity([0.0, 1.0, 3.0], lambda x, y: abs(x - y))
    >>> kernel = distance.map(np.negative).map(np.exp)  # on the same budget
    >>> kernel.columns([1])[:, 0].round(3).tolist(), distance.calls
    ([0.368, 1.0, 0.135], 3)
    """

    orders = 1  # in which two items are compared: 2 in a symmetrized matrix

    @property
    @abstractmethod
    def extent(self) -> Extent:
        """Number n of items of one collection, or numbers (m, n) of two collections."""

    @property
    def n(self) -> int:
        """Number of items."""
        if isinstance(self.extent, tuple):
            m, n = self.extent
            raise AttributeError(
                f"{m} rows and {n} columns are two collections: use `shape`."
            )
        return self.extent

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix, (n, n), or (m, n) of two collections."""
        return shape_of(self.extent)

    @property
    @abstractmethod
    def failed(self) -> int:
        """Evaluations handed to requests that failed; they count against `limit`."""

    @property
    @abstractmethod
    def diagonal_known(self) -> bool:
        """Whether the diagonal was given, so that it costs nothing."""

    @property
    def remaining(self) -> float:
        """Evaluations that `limit` leaves; infinity without one."""
        limit = inf if self.limit is None else self.limit
        return max(limit - self.calls - self.failed, 0)

    @abstractmethod
    def cost(self, *blocks: Block, pairs: Pairs | None = None) -> int:
        """Return the number of evaluations that requests would make, and make none.

        A known entry costs nothing, and an entry in several requests counts once.

        Parameters
        ----------
        *blocks : tuple of two arrays of int, or None
            Rows and columns of each request; None stands for all items. At most 29, and
            14 of a symmetrized similarity, count together; more are a ValueError.
        pairs : tuple of two arrays of int, optional
            Rows and columns of single entries, requested after the blocks.
        """

    @abstractmethod
    def read(self, *blocks: Block, pairs: Pairs | None = None) -> list[np.ndarray]:
        """Return blocks and then pairs; the parameters are those of `cost`.

        If the limit does not pay for all of them, it raises BudgetExceeded first.
        """

    def block(self, rows: ArrayLike, columns: ArrayLike) -> np.ndarray:
        """Return K[rows][:, columns], an array of shape (len(rows), len(columns))."""
        return self.read((self._rows(rows), self._columns(columns)))[0]

    def columns(self, columns: ArrayLike) -> np.ndarray:
        """Return K[:, columns], shape (m, len(columns)), and keep it whole.

        Where the columns were evaluated together the result is a read-only view of the
        kept array, not a copy.
        """
        return self.read((None, self._columns(columns)))[0]

    def rows(self, rows: ArrayLike) -> np.ndarray:
        """Return K[rows], shape (len(rows), n), and keep it whole."""
        return self.read((self._rows(rows), None))[0]

    def pairs(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        """Return K[i[k], j[k]] for every k, shape (len(i),).

        A function with ``batch="block"`` is called once for each distinct row or
        column among the pairs, whichever are fewer; of a symmetric one the smaller
        number of a pair is its row.
        """
        return self.read(pairs=(i, j))[0]

    def diagonal(self) -> np.ndarray:
        """Return the similarity of each item with itself, shape (n,)."""
        n = one_collection(self, "have a diagonal")
        return self.pairs(np.arange(n), np.arange(n))

    def _rows(self, rows: ArrayLike) -> np.ndarray:
        return indices(rows, self.shape[0], names(self.extent)[0])

    def _columns(self, columns: ArrayLike) -> np.ndarray:
        return indices(columns, self.shape[1], names(self.extent)[1])

    @abstractmethod
    def between(
        self,
        new_items: Any,
        landmarks: ArrayLike | None = None,
        row_landmarks: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the similarities of new items to some items of the matrix."""

    @abstractmethod
    def blank(self) -> SimilarityMatrix:
        """Return a similarity that knows nothing yet, on the same counter and limit.

        For passes over the matrix whose values are not to be kept in memory.
        """

    @abstractmethod
    def fork(self, *, limit: float | None = None) -> SimilarityMatrix:
        """Return a similarity that shares the known entries, with its own counter."""

    @abstractmethod
    def run(self, *, asked: bool = False) -> SimilarityMatrix:
        """Return a similarity that knows only what it is asked, on the same counter.

        Entries that this similarity knows cost the run no evaluation, but the run does
        not show them before it has asked for them: a search with the same seed makes
        the same choices, whatever was paid for before. `calls` of a run counts all that
        the run has asked for, known before or not.

        Parameters
        ----------
        asked : bool, default=False
            Whether the run knows from the start what this object was asked outside of
            runs. It never shows what only the store knows.
        """

    @abstractmethod
    def informed(self) -> SimilarityMatrix:
        """Return a similarity whose runs know all that is known, the store included.

        For searches where items were added, or by what other methods paid for. A search
        of it starts from what is known, and its `limit` and `calls` are of new calls
        alone; `search`, for new items, counts all pairs in any case.
        """

    @abstractmethod
    def progress_bar(self, total: float | None = None) -> Bar:
        """Return a context in which evaluations move one progress bar, if one is shown.

        Inside another such context the outer bar moves. ``with`` returns a function,
        which shows its keyword arguments beside the bar.
        """

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> SimilarityMatrix:
        """Return the elementwise view ``function(K)``, on the same values and counter.

        ``sim.map(lambda d: np.exp(-gamma * d))`` costs nothing for known distances.
        """
        return MappedSimilarity(self, function)

    def symmetrized(self) -> SimilarityMatrix:
        """Return the view (K + K.T)/2, symmetric, on the same counter.

        A pair off the diagonal costs two calls, a pair on it one; known entries cost
        none. A symmetric similarity is returned unchanged.
        """
        one_collection(self, "can be symmetrized")
        return self if self.symmetric else SymmetrizedSimilarity(self)

    def __repr__(self) -> str:
        kind = "symmetric" if self.symmetric else "asymmetric"
        limit = "" if self.limit is None else f" of {self.limit}"
        failed = f", {self.failed} failed" if self.failed else ""
        verified = getattr(self, "verified", 0)
        again = f", {verified} of a store verified" if verified else ""
        items = "{} items, " + kind
        if isinstance(self.extent, tuple):
            items = "{} rows, {} columns"
        return (
            f"{type(self).__name__}({items.format(*self.shape)}, {self.calls}{limit} "
            f"calls{failed}{again})"
        )

    def __sklearn_clone__(self) -> Self:
        """Return itself: clones of an estimator share known entries and the counter."""
        return self

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise ValueError(
            "A similarity matrix is evaluated only where asked: use block, columns, "
            "rows or pairs; sim.columns(range(sim.shape[1])) evaluates all of it."
        )

    def __getitem__(self, _: Any) -> NoReturn:
        raise TypeError(
            "A similarity matrix has no [i, j]: ask for many entries at a time, by "
            "pairs(i, j), block(rows, columns), columns(j) or rows(i)."
        )


def _of_base(name: str, *otherwise: Any) -> Any:
    """Return a property that reads and sets this attribute of the base."""

    def get(view: Any) -> Any:
        return getattr(view.base, name, *otherwise)

    return property(get, lambda view, value: setattr(view.base, name, value))


class View(SimilarityMatrix):
    """A similarity matrix made of another, `base`, which has values, counter, limit."""

    items = _of_base("items")
    column_items = _of_base("column_items")
    extent = _of_base("extent")
    dtype = _of_base("dtype")
    symmetric = _of_base("symmetric")
    orders = _of_base("orders", 1)
    calls = _of_base("calls")
    failed = _of_base("failed", 0)
    limit = _of_base("limit")
    diagonal_known = _of_base("diagonal_known", False)
    read = _of_base("read")
    peek = _of_base("peek")
    known = _of_base("known")
    cost = _of_base("cost")
    between = _of_base("between")
    progress_bar = _of_base("progress_bar")

    @property
    def remaining(self) -> float:
        return getattr(self.base, "remaining", super().remaining)

    def __init__(self, base: Source):
        self.base: Any = base  # a SimilarityMatrix, in an `Adapted` a Source

    def on(self, base: Source) -> View:
        """Return the same view of another matrix."""
        return type(self)(base)

    def blank(self) -> SimilarityMatrix:
        return self.on(self.base.blank())

    def fork(self, *, limit: float | None = None) -> SimilarityMatrix:
        return self.on(self.base.fork(limit=limit))

    def run(self, *, asked: bool = False) -> SimilarityMatrix:
        return self.on(self.base.run(asked=asked))

    def informed(self) -> SimilarityMatrix:
        return self.on(self.base.informed())


class Adapted(View):
    """A `Source` with no more than its twelve names, as a `SimilarityMatrix`."""

    @property
    def extent(self) -> Extent:
        m, n = self.base.shape
        return getattr(self.base, "extent", m if m == n else (m, n))

    def read(self, *blocks: Block, pairs: Pairs | None = None) -> list[np.ndarray]:
        several = len(blocks) + (pairs is not None) > 1
        if several and self.limit is not None:  # one request the base checks itself
            check_budget(self.cost(*blocks, pairs=pairs), self)
        answers = []
        for rows, columns in blocks:
            if rows is None:
                every = range(self.shape[1])
                answers.append(self.base.columns(every if columns is None else columns))
            elif columns is None:
                answers.append(self.base.rows(rows))
            else:
                answers.append(self.base.block(rows, columns))
        return answers if pairs is None else [*answers, self.base.pairs(*pairs)]

    def cost(self, *blocks: Block, pairs: Pairs | None = None) -> int:
        known = Known(self.extent, symmetric=self.symmetric, dtype=self.dtype)
        for i, j, values in self.base.known():
            known.put(i, j, values)
        return evaluations([known], *checked(self.extent, blocks, pairs))

    def blank(self) -> SimilarityMatrix:
        blank = getattr(self.base, "blank", None)
        return self if blank is None else Adapted(blank())

    def run(self, *, asked: bool = False) -> SimilarityMatrix:
        return self

    def progress_bar(self, total: float | None = None) -> Bar:
        return nullcontext(lambda **_: None)

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            f"A {type(self.base).__name__} has no fork, between or informed; of the "
            "matrices in simlib those made by Similarity have."
        )

    fork = between = informed = _refused


class MappedSimilarity(View):
    """The elementwise view that `SimilarityMatrix.map` returns."""

    def __init__(
        self,
        base: Source,
        function: Callable[[np.ndarray], np.ndarray],
        dtype: np.dtype | None = None,
    ):
        super().__init__(base)
        self.function, self._dtype = function, dtype

    def on(self, base: Source) -> View:
        return MappedSimilarity(base, self.function, self._dtype)

    @property
    def dtype(self) -> np.dtype:
        return self.base.dtype if self._dtype is None else self._dtype

    def read(self, *blocks: Block, pairs: Pairs | None = None) -> list[np.ndarray]:
        return list(map(self._apply, super().read(*blocks, pairs=pairs)))

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        values = self.base.peek(i, j)
        known, mapped = ~np.isnan(values), np.full(values.shape, np.nan, self.dtype)
        mapped[known] = self._apply(values[known])
        return mapped

    def known(self) -> Iterator[Entries]:
        entries = self.base.known()  # now, not when the first is taken
        return ((i, j, self._apply(values)) for i, j, values in entries)

    def between(self, *items: Any, **by_name: Any) -> np.ndarray:
        return self._apply(super().between(*items, **by_name))

    def _apply(self, values: np.ndarray) -> np.ndarray:
        if values.size == 0:  # which numpy.vectorize refuses
            return values.astype(self.dtype)
        result = unmasked(self.function(values))
        if result.dtype.kind == "c":
            raise SimilarityError(
                f"The mapped function returned values of type {result.dtype}, which "
                "are not real numbers; the similarities themselves are kept."
            )
        with np.errstate(over="ignore"):
            result = result.astype(self.dtype, copy=False)
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
    """The view (K + K.T)/2 that `SimilarityMatrix.symmetrized` returns."""

    orders = 2
    symmetric = True

    def read(self, *blocks: Block, pairs: Pairs | None = None) -> list[np.ndarray]:
        orders, both = _both_orders(self, blocks, pairs)
        answers = super().read(*orders, pairs=both)
        last = [] if pairs is None else [_mean(*np.split(answers.pop(), 2))]
        halves = zip(answers[::2], answers[1::2], strict=True)
        return [_mean(one, other.T) for one, other in halves] + last

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        return _mean(self.base.peek(i, j), self.base.peek(j, i))

    def known(self) -> Iterator[Entries]:
        return iter([self._both_known(*some) for some in self.base.known()])  # now

    def _both_known(self, i: np.ndarray, j: np.ndarray, values: np.ndarray) -> Entries:
        """Return the means of pairs i <= j that are known in both orders."""
        first = i <= j
        i, j = i[first], j[first]
        mean = _mean(values[first], self.base.peek(j, i))
        both = ~np.isnan(mean)
        return i[both], j[both], mean[both]

    def cost(self, *blocks: Block, pairs: Pairs | None = None) -> int:
        orders, both = _both_orders(self, blocks, pairs)
        return super().cost(*orders, pairs=both)

    def between(
        self,
        new_items: Any,
        landmarks: ArrayLike | None = None,
        row_landmarks: ArrayLike | None = None,
    ) -> np.ndarray:
        if landmarks is not None and row_landmarks is not None:
            sides = self._columns(landmarks), self._rows(row_landmarks)
            landmarks = np.concatenate(sides)
        both = super().between(new_items, landmarks, landmarks)
        return _mean(*np.hsplit(both, 2))


def _both_orders(
    sim: SimilarityMatrix, blocks: Iterable[Block], pairs: Pairs | None
) -> tuple[list[Block], Pairs | None]:
    """Return each block and its transpose, and the pairs (i, j) before all (j, i)."""
    orders = [
        order
        for rows, columns in blocks
        for order in ((rows, columns), (columns, rows))
    ]
    if pairs is None:
        return orders, None
    i, j = places(sim.extent, *pairs)
    return orders, (np.concatenate([i, j]), np.concatenate([j, i]))


def _mean(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the mean of two arrays, which is finite where both are."""
    with np.errstate(over="ignore"):
        mean = (one + other) / 2
    beyond = np.isinf(mean)
    if beyond.any():
        mean[beyond] = one[beyond] / 2 + other[beyond] / 2
    return mean


def check_similarity(sim: Any) -> SimilarityMatrix:
    """Return a similarity matrix that methods can read: a `Source`, or a view of it.

    Anything else, such as an array, is a TypeError.
    """
    if isinstance(sim, SimilarityMatrix):
        return sim
    if isinstance(sim, Source):
        return Adapted(sim)
    raise TypeError(
        "A method reads a Similarity; for a matrix that you already have pass "
        f"Similarity.from_matrix(K). Got {type(sim).__name__}."
    )
