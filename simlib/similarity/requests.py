"""Requests for entries: their indices, and how a block is cut into requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from simlib._checks import indices, same_length
from simlib.similarity.budget import AsymmetryError
from simlib.similarity.known import Extent, Places, grid, others, shape_of

Block: TypeAlias = tuple[ArrayLike | None, ArrayLike | None]
"""Rows and columns of a matrix; None stands for all of them."""
Pairs: TypeAlias = tuple[ArrayLike, ArrayLike]
"""Rows and columns of single entries, two arrays of one length."""
Sides: TypeAlias = tuple[np.ndarray | None, np.ndarray | None]

STRIP = 2**18  # entries that are searched for missing ones at a time
AREA = 2**17  # entries of a tile where the function sees blocks
WIDTH = 2**10  # columns of a tile, at most
TILE = 64  # side of the diagonal tiles of which a block function sees both halves


def checked(
    extent: Extent, blocks: Iterable[Block], pairs: Pairs | None
) -> tuple[list[Sides], Places | None]:
    """Check the indices of blocks and of pairs, and return them as arrays."""
    (m, n), (rows, columns) = shape_of(extent), names(extent)

    def side(items: ArrayLike | None, length: int, what: str) -> np.ndarray | None:
        return None if items is None else indices(items, length, what)

    asked = [(side(i, m, rows), side(j, n, columns)) for i, j in blocks]
    return asked, None if pairs is None else places(extent, *pairs)


def places(extent: Extent, i: ArrayLike, j: ArrayLike) -> Places:
    """Check the indices of pairs, and return them as arrays."""
    sides = zip((i, j), shape_of(extent), names(extent), strict=True)
    rows, columns = (indices(*side) for side in sides)
    same_length(rows, columns)
    return rows, columns


def names(extent: Extent) -> tuple[str, str]:
    """Return the words for rows and for columns in error messages."""
    return ("Rows", "Columns") if isinstance(extent, tuple) else ("Items", "Items")


def once(index: np.ndarray) -> Places:
    """Return the distinct indices, in order of appearance, and the place of each."""
    _, first, which = np.unique(index, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return index[first[order]], np.argsort(order)[which]


def distinct(index: np.ndarray) -> Places:
    """Return the distinct indices, sorted, and the place of each index among them."""
    if index.size == 1 or (index[1:] > index[:-1]).all():
        return index, np.arange(index.size)
    return np.unique(index, return_inverse=True)


class Request(NamedTuple):
    """The items of one call of the function, and the places of its answer.

    The items form pairs (i[k], j[k]), or the whole grid of i and j. `target` indexes
    the array that is being filled. `mirror` indexes it for pairs in the other order;
    `mirrored` selects the pairs that have a place there.
    """

    i: np.ndarray
    j: np.ndarray
    target: tuple[Any, ...]
    grid: bool = False
    mirror: tuple[Any, ...] | None = None
    mirrored: Any = slice(None)
    halves: bool = False  # a grid of one set of items: both orders of each pair
    partly: bool = False  # some entries, on the diagonal, are known and stay
    known: np.ndarray | None = None  # values in the other order, for `SymmetryCheck`

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer."""
        return (self.i.size, self.j.size) if self.grid else (self.i.size,)

    @property
    def size(self) -> int:
        """How many values are asked for."""
        return self.i.size * self.j.size if self.grid else self.i.size

    def pairs(self) -> Places:
        """Return the items of each value, flat."""
        return grid(self.i, self.j) if self.grid else (self.i, self.j)

    def pair(self, k: int) -> tuple[int, int]:
        """Return the items of the k-th value."""
        a, b = divmod(k, self.j.size) if self.grid else (k, k)
        return int(self.i[a]), int(self.j[b])

    def settled(self, values: np.ndarray) -> np.ndarray:
        """Return values in the shape of the answer; both halves of a tile are equal."""
        values = values.reshape(self.shape)
        return self._one_of_both(values) if self.halves else values

    def fill(self, values: np.ndarray, out: np.ndarray) -> None:
        """Write settled values into `out`."""
        out[self.target] = values
        if self.mirror is not None:
            out[self.mirror] = values.T[self.mirrored]

    def _one_of_both(self, block: np.ndarray) -> np.ndarray:
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
        return upper + np.triu(upper, 1).T


class Rectangle:
    """A block under evaluation: ``out = K[rows][:, columns]``, NaN where unknown.

    No item is twice among the rows or among the columns; if all are, they are in order.
    `on_diagonal` are the places of items that are both rows and columns, if any can be.
    `fresh` tells that nothing in `out` is known.
    """

    def __init__(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        out: np.ndarray,
        on_diagonal: Places | None,
        *,
        symmetric: bool,
        fresh: bool = True,
    ):
        self.rows, self.columns, self.out = rows, columns, out
        self.fresh, self.symmetric = fresh, symmetric
        none: Places = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.on_diagonal = on_diagonal or none
        # Those of them where a pair is met in both orders.
        self.row_in, self.column_in = self.on_diagonal if symmetric else none

    def count(self, *, grids: bool) -> int:
        """Return how many values the requests ask for, by `grids` or by pairs."""
        if self.on_diagonal[0].size == 0:  # nothing is met twice
            return int(np.count_nonzero(np.isnan(self.out)))
        cut = self.grids() if grids else self.pairwise(lambda: STRIP, exact=True)
        return sum(request.size for request in cut)

    def pairwise(self, size: Callable[[], int], *, exact: bool) -> Iterator[Request]:
        """Cut the missing entries into requests, by whole rows unless `exact`."""
        width, (row_in, column_in) = self.columns.size, (self.row_in, self.column_in)
        if self.fresh and not exact:
            yield from self._by_rows(size)
        groups = [(row_in, True)]
        if not self.fresh or exact:
            groups.insert(0, (others(self.rows.size, row_in), False))
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
        """Cut rows of items that are no columns into several rows, or parts of one."""
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
        """Cut the missing entries into requests for grids, in tiles of fixed shapes."""
        row_in, column_in = self.row_in, self.column_in
        row_out = others(self.rows.size, row_in)
        column_out = others(self.columns.size, column_in)
        every_column = np.arange(self.columns.size)
        once_more = self._known_again()
        for a, b in (*_cut(row_out, every_column), *_cut(row_in, column_out)):
            if self.fresh:
                yield self._grid(a, b)
                continue
            mask = np.isnan(self.out[np.ix_(a, b)])
            at, there = np.isin(once_more[0], a), np.isin(once_more[1], b)
            both = once_more[:, at & there]
            mask[a.searchsorted(both[0]), b.searchsorted(both[1])] = True
            for here, there in _patterns(mask):
                request = self._grid(a[here], b[there])
                yield request._replace(partly=both.size > 0)
        both = np.arange(row_in.size)
        for k in range(0, both.size, TILE):
            x = both[k : k + TILE]
            mask = np.isnan(self.out[np.ix_(row_in[x], column_in[x])])
            if is_whole(mask):
                request = self._grid(row_in[x], column_in[x])
                yield request._replace(halves=True, partly=not mask.all())
            else:
                yield from self._mirrored(x, x, np.triu(mask))
            for part, y in _cut(x, both[k + TILE :]):
                mask = np.isnan(self.out[np.ix_(row_in[part], column_in[y])])
                yield from self._mirrored(part, y, mask)

    def _mirrored(
        self, x: np.ndarray, y: np.ndarray, mask: np.ndarray
    ) -> Iterator[Request]:
        """Yield requests for x and y, numbers among the items that are on both sides.

        A pair is asked once, and written in both orders.
        """
        for here, there in _patterns(mask):
            a, b = x[here], y[there]
            request = self._grid(self.row_in[a], self.column_in[b])
            mirror = np.ix_(self.row_in[b], self.column_in[a])
            yield request._replace(mirror=mirror)

    def _known_again(self) -> np.ndarray:
        """Return the places, shape (2, m), that are known and evaluated again."""
        again = [np.zeros((2, 0), dtype=np.int64)]
        row, column = self.on_diagonal
        once = self.symmetric or self.fresh
        for k in range(0, 0 if once else row.size, TILE):
            a, b = row[k : k + TILE], column[k : k + TILE]
            mask = np.isnan(self.out[np.ix_(a, b)])
            if is_whole(mask):
                known = ~mask.diagonal()
                again.append(np.stack([a[known], b[known]]))
        return np.hstack(again)


def is_whole(mask: np.ndarray) -> bool:
    """Tell whether a tile on the diagonal is evaluated as a block, with both halves.

    It is if nothing in it is known, except perhaps entries of the diagonal.
    """
    return bool(mask.any() and (mask | np.eye(len(mask), dtype=bool)).all())


def _patterns(mask: np.ndarray) -> Iterator[Places]:
    """Cut the marked entries into grids (rows, columns); equal rows form one grid."""
    if mask.all():
        yield np.arange(mask.shape[0]), np.arange(mask.shape[1])
    elif mask.any():
        patterns, which = np.unique(mask, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            if pattern.any():
                yield np.flatnonzero(which.ravel() == k), np.flatnonzero(pattern)


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


def _cut(a: np.ndarray, b: np.ndarray) -> Iterator[Places]:
    """Cut the rectangle a x b into tiles of at most `AREA` entries."""
    width = max(1, min(b.size, WIDTH))
    height = max(1, AREA // width)
    for k in range(0, a.size, height):
        for m in range(0, b.size, width):
            yield a[k : k + height], b[m : m + width]
