"""Which entries some blocks have, and how a block is cut into requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from simlib.similarity.budget import AsymmetryError

__all__ = ["TILE", "Block", "Rectangle", "Region", "Request", "again", "shared"]

Block: TypeAlias = tuple[ArrayLike | None, ArrayLike | None]
"""Rows and columns of a matrix; None stands for all of them."""

MOST = 31  # blocks of a `Region`: each has two bits of an integer

STRIP = 2**18  # entries looked through at a time for those that are missing
AREA = 2**17  # entries of a tile where the function sees blocks
WIDTH = 2**10  # columns of a tile, at most
TILE = 64  # side of the diagonal tiles of which a block function sees both halves


class Region:
    """The entries of some blocks of an n x n matrix, less those of others.

    Items that stand in the same rows and columns of all the blocks are alike, and there
    are few kinds of them: nothing here has the size of a block.

    Parameters
    ----------
    n : int
        Size of the matrix.
    blocks : iterable of Block
        What is inside.
    symmetric : bool
        Whether (i, j) and (j, i) are one entry.
    without : iterable of Block
        What is outside all the same.
    diagonal : bool
        Whether entries (i, i) can be inside.
    """

    def __init__(
        self,
        n: int,
        blocks: Iterable[Block],
        *,
        symmetric: bool,
        without: Iterable[Block] = (),
        diagonal: bool = True,
    ):
        inside, outside = list(blocks), list(without)
        if len(inside) + len(outside) > MOST:
            raise ValueError(
                f"At most {MOST} blocks are counted together; got "
                f"{len(inside) + len(outside)}. Join the rows or the columns of some."
            )
        signature = np.zeros(n, dtype=np.int64)
        sides = [side for block in inside + outside for side in block]
        for bit, side in enumerate(sides):
            items = slice(None) if side is None else np.asarray(side, dtype=np.int64)
            signature[items] |= np.int64(1) << bit
        kinds = np.unique(signature)
        self._kind = np.searchsorted(kinds, signature)
        has = (kinds[:, None] >> np.arange(len(sides))) & 1 == 1

        def union(first: int, blocks: list[Block]) -> np.ndarray:
            result = np.zeros((kinds.size, kinds.size), dtype=bool)
            for k in range(first, first + len(blocks)):
                result |= has[:, 2 * k, None] & has[:, 2 * k + 1]
            return result | result.T if symmetric else result

        self._inside = union(0, inside) & ~union(len(inside), outside)
        self._symmetric, self._diagonal = symmetric, diagonal

    def __len__(self) -> int:
        """Return the number of distinct entries, unordered if symmetric."""
        sizes = np.bincount(self._kind, minlength=len(self._inside))
        every = int(sizes @ self._inside @ sizes)
        on_diagonal = int(sizes @ np.diagonal(self._inside))
        off = (every - on_diagonal) // (2 if self._symmetric else 1)
        return off + (on_diagonal if self._diagonal else 0)

    def covers(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Tell for each k whether (i[k], j[k]) is inside."""
        inside = self._inside[self._kind[i], self._kind[j]]
        return inside if self._diagonal else inside & (i != j)


def shared(
    rows: np.ndarray, columns: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the items that are both rows and columns stand in the two.

    Neither repeats an item, and n of them are all items in order. Sorted by item.
    """
    if rows.size == n:
        order = np.argsort(columns)
        return columns[order], order
    if columns.size == n:
        order = np.argsort(rows)
        return order, rows[order]
    _, a, b = np.intersect1d(rows, columns, assume_unique=True, return_indices=True)
    return a, b


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
    partly: bool = False  # some of it, on the diagonal, is known, and stays
    known: np.ndarray | None = None  # values of these pairs in the other order: a check

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

    def settled(self, values: np.ndarray) -> np.ndarray:
        """Return values, NaN for those missing, as they belong into `out`."""
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
    ):
        self.rows, self.columns, self.out = rows, columns, out
        self.fresh, self.symmetric = fresh, symmetric
        self.on_diagonal = shared(rows, columns, n)  # places, of items that are both
        self.row_in, self.column_in = rows[:0], columns[:0]
        if symmetric:  # where a pair is met in both orders
            self.row_in, self.column_in = self.on_diagonal

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
        if grids and (self.symmetric or not self.fresh):
            masks = (mask for *_, mask in self._diagonal_tiles())
            count += sum(again(mask, symmetric=self.symmetric) for mask in masks)
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
        """Ask for pairs of the items that are both rows and columns, numbered so."""
        for here, there in _patterns(mask):
            a, b = x[here], y[there]
            request = self._grid(self.row_in[a], self.column_in[b])
            mirror = np.ix_(self.row_in[b], self.column_in[a])
            yield request._replace(mirror=mirror)

    def _diagonal_tiles(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the places of each tile on the diagonal, and what is missing of it."""
        row, column = self.on_diagonal
        for k in range(0, row.size, TILE):
            a, b = row[k : k + TILE], column[k : k + TILE]
            yield a, b, np.isnan(self.out[np.ix_(a, b)])

    def _known_again(self) -> np.ndarray:
        """Return the places, shape (2, m), that are known and evaluated all the same.

        They would cut the tiles of a matrix that is not symmetric into single rows.
        """
        if self.symmetric or self.fresh:
            return np.zeros((2, 0), dtype=np.int64)
        tiles = (
            (a, b, ~mask.diagonal())
            for a, b, mask in self._diagonal_tiles()
            if is_whole(mask)
        )
        places = [np.stack([a[known], b[known]]) for a, b, known in tiles]
        return np.hstack(places) if places else np.zeros((2, 0), dtype=np.int64)


def is_whole(mask: np.ndarray) -> bool:
    """Tell whether a tile on the diagonal is evaluated as a block, both halves of it.

    That is where nothing of it is known, but perhaps the diagonal.
    """
    return bool(mask.any() and (mask | np.eye(len(mask), dtype=bool)).all())


def again(mask: np.ndarray, *, symmetric: bool) -> int:
    """Return what a tile on the diagonal costs beside the entries that are missing."""
    if not is_whole(mask):
        return 0
    return mask.size - int(np.count_nonzero(np.triu(mask) if symmetric else mask))


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
