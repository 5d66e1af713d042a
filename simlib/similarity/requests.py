"""Requests: their price, by the one counter, and how a block is cut into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, reduce
from itertools import starmap
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from simlib._checks import indices, same_length
from simlib.similarity.budget import AsymmetryError
from simlib.similarity.known import Extent, Known, look, shape_of, shared

__all__ = [
    "Block",
    "Pairs",
    "Rectangle",
    "Region",
    "Request",
    "checked",
    "evaluations",
    "names",
    "places",
]

Block: TypeAlias = tuple[ArrayLike | None, ArrayLike | None]
"""Rows and columns of a matrix; None stands for all of them."""
Pairs: TypeAlias = tuple[ArrayLike, ArrayLike]
"""Rows and columns of single entries, as long."""
Sides: TypeAlias = tuple[np.ndarray | None, np.ndarray | None]
Places: TypeAlias = tuple[np.ndarray, np.ndarray]

_NONE = np.zeros(0, np.int64)

MOST_BLOCKS = 31  # of a `Region`: each has two bits of an integer
LISTED = 2**10  # pairs of blocks that are looked up one by one, if no more are known
STRIP = 2**18  # entries looked through at a time for those that are missing
AREA = 2**17  # entries of a tile where the function sees blocks
WIDTH = 2**10  # columns of a tile, at most
TILE = 64  # side of the diagonal tiles of which a block function sees both halves


def checked(
    extent: Extent, blocks: Iterable[Block], pairs: Pairs | None
) -> tuple[list[Sides], Places | None]:
    """Return requests for blocks, and for pairs, by arrays of indices."""
    (m, n), (rows, columns) = shape_of(extent), names(extent)

    def side(items: ArrayLike | None, length: int, what: str) -> np.ndarray | None:
        return None if items is None else indices(items, length, what)

    asked = [(side(i, m, rows), side(j, n, columns)) for i, j in blocks]
    return asked, None if pairs is None else places(extent, *pairs)


def places(extent: Extent, i: ArrayLike, j: ArrayLike) -> Places:
    """Return pairs by arrays of indices."""
    sides = zip((i, j), shape_of(extent), names(extent), strict=True)
    rows, columns = (indices(*side) for side in sides)
    same_length(rows, columns)
    return rows, columns


def names(extent: Extent) -> tuple[str, str]:
    """Return what those on either side are called."""
    return ("Rows", "Columns") if isinstance(extent, tuple) else ("Items", "Items")


def evaluations(
    known: Sequence[Known],
    blocks: Sequence[Sides],
    pairs: Places | None = None,
    *,
    grids: bool = False,
) -> int:
    """Return how many evaluations requests for blocks, and then for pairs, make.

    What stands in several counts once; `grids`: both halves of small tiles on the
    diagonal are evaluated.
    """
    first = known[0]
    two = isinstance(first.extent, tuple)
    extra = _both_halves(known, blocks) if grids and not two else 0
    size = sum(prod(_lengths(block, first.shape)) for block in blocks)
    some = [] if pairs is None else [pairs]
    if size <= max(LISTED, sum(each.size for each in known)):
        some += [_listed(block, first.shape) for block in blocks]
        blocks = []
    count = _unknown(known, blocks) if blocks else 0
    if some:
        i, j = (np.concatenate(side) for side in zip(*some, strict=True))
        i, j = first.pairs_of(np.unique(first.keys(i, j)))
        if blocks:
            region = Region(first.extent, blocks, symmetric=first.symmetric)
            new = ~region.covers(i, j)
            i, j = i[new], j[new]
        count += int(np.count_nonzero(np.isnan(look(known, i, j))))
    return count + extra


def _unknown(known: Sequence[Known], blocks: Sequence[Sides]) -> int:
    """Count the entries of blocks that are not known."""
    region = Region(
        known[0].extent,
        blocks,
        symmetric=known[0].symmetric,
        without=[lines for each in known for lines in each.whole_lines()],
        diagonal=known[0].diagonal is None,
    )
    count = len(region)
    for k, each in enumerate(known):
        for i, j, _ in each.scattered():
            new = region.covers(i, j)
            if k:
                new[new] = np.isnan(look(known[:k], i[new], j[new]))
            count -= int(np.count_nonzero(new))
    return count


def _both_halves(known: Sequence[Known], blocks: Sequence[Sides]) -> int:
    """Count what a block function computes beside what is not known."""
    first, extra = known[0], 0
    n, symmetric = first.shape[0], first.symmetric
    kept, read = (first.columns, first.rows), [np.zeros(0, dtype=np.int64)] * 2
    for k, sides in enumerate(blocks):
        rows, columns = (_some(side, n) for side in sides)
        if rows is not None and columns is not None:
            items = np.intersect1d(rows, columns, assume_unique=True)
        else:  # read as whole lines
            a = int(rows is not None and not symmetric)
            lines = columns if rows is None else rows
            items = np.arange(n) if lines is None else lines
            items = items[~kept[a].complete(items) & ~np.isin(items, read[a])]
            read[a] = np.append(read[a], items)
        earlier = Region(n, blocks[:k], symmetric=symmetric) if k else None
        for tile in np.split(items, range(TILE, items.size, TILE)):
            i, j = np.repeat(tile, tile.size), np.tile(tile, tile.size)
            mask = np.isnan(look(known, i, j))
            if earlier is not None:
                mask &= ~earlier.covers(i, j)
            mask = mask.reshape(tile.size, tile.size)
            if is_whole(mask):
                needed = np.triu(mask) if symmetric else mask
                extra += mask.size - int(np.count_nonzero(needed))
    return extra


def _some(side: np.ndarray | None, n: int) -> np.ndarray | None:
    """Return the distinct items, None if they are all."""
    items = None if side is None else np.unique(side)
    return None if items is None or items.size == n else items


def _lengths(block: Sides, shape: tuple[int, int]) -> list[int]:
    """Return how many rows and columns a block has."""
    sides = zip(block, shape, strict=True)
    return [length if side is None else side.size for side, length in sides]


def _listed(block: Sides, shape: tuple[int, int]) -> Places:
    """Return the pairs of a block."""
    sides = zip(block, shape, strict=True)
    i, j = (np.arange(n) if side is None else side for side, n in sides)
    return np.repeat(i, j.size), np.tile(j, i.size)


def _ints(side: ArrayLike | None) -> np.ndarray | None:
    return None if side is None else np.asarray(side, dtype=np.int64)


class _Kinds:
    """Items told apart by which of some sets they are in; None is the set of all."""

    def __init__(self, n: int, sets: Sequence[np.ndarray | None]):
        named = [items for items in sets if items is not None]
        self._n, self._items = n, np.unique(np.concatenate([*named, _NONE]))
        signature = np.zeros(self._items.size + 1, dtype=np.int64)  # last: all others
        for bit, items in enumerate(sets):
            at = slice(None) if items is None else self._items.searchsorted(items)
            signature[at] |= np.int64(1) << bit
        kinds, self._kind = np.unique(signature, return_inverse=True)
        self.sizes = np.bincount(self._kind, minlength=kinds.size)
        self.sizes[self._kind[-1]] += n - self._items.size - 1
        self.within = (kinds[:, None] >> np.arange(len(sets))) & 1 == 1

    @cached_property
    def of(self) -> np.ndarray:
        """The kind of each item."""
        kinds = np.full(self._n, self._kind[-1], dtype=np.int32)
        kinds[self._items] = self._kind[:-1]
        return kinds


class Region:
    """The entries of some blocks of a matrix, less those of others.

    Items that stand in the same rows and columns of all the blocks are alike, and there
    are few kinds of them: nothing here has the size of a block.
    """

    def __init__(
        self,
        extent: Extent,
        blocks: Iterable[Block],
        *,
        symmetric: bool,
        without: Iterable[Block] = (),
        diagonal: bool = True,
    ):
        inside = list(blocks)
        all_blocks = [*inside, *without]
        if len(all_blocks) > MOST_BLOCKS:
            raise ValueError(
                f"At most {MOST_BLOCKS} blocks are counted together; got "
                f"{len(all_blocks)}. Join the rows or the columns of some."
            )
        rows, columns = ([_ints(block[a]) for block in all_blocks] for a in (0, 1))
        if isinstance(extent, tuple):
            self._rows, self._columns = map(_Kinds, extent, (rows, columns))
            i, j = self._rows.within, self._columns.within
        else:
            self._rows = self._columns = _Kinds(extent, [*rows, *columns])
            i, j = np.hsplit(self._rows.within, 2)

        def union(blocks: slice) -> np.ndarray:
            pairs = zip(i.T[blocks], j.T[blocks], strict=True)
            none = np.zeros((len(i), len(j)), dtype=bool)
            result = reduce(np.logical_or, starmap(np.outer, pairs), none)
            return result | result.T if symmetric else result

        count = len(inside)
        self._inside = union(slice(count)) & ~union(slice(count, None))
        self._extent, self._symmetric, self._diagonal = extent, symmetric, diagonal

    def __len__(self) -> int:
        """Return the number of distinct entries, unordered if symmetric."""
        every = int(self._rows.sizes @ self._inside @ self._columns.sizes)
        off = (every - self.on_diagonal) // (2 if self._symmetric else 1)
        return off + (self.on_diagonal if self._diagonal else 0)

    @property
    def on_diagonal(self) -> int:
        """How many entries (i, i) the blocks have, none of two collections."""
        if isinstance(self._extent, tuple):
            return 0
        return int(self._rows.sizes @ np.diagonal(self._inside))

    def covers(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Tell for each k whether (i[k], j[k]) is inside."""
        inside = self._inside[self._rows.of[i], self._columns.of[j]]
        return inside if self._diagonal else inside & (i != j)


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

    No item twice; where it has all of them, in order. `n` items if rows and columns are
    of one collection, or else 0. `fresh`: nothing in `out` is known.
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
        none = np.zeros(0, dtype=np.int64)
        # Places of the items that are both.
        self.on_diagonal = shared(rows, columns, n) if n else (none, none)
        self.row_in, self.column_in = none, none
        if symmetric:  # where a pair is met in both orders
            self.row_in, self.column_in = self.on_diagonal

    def pairwise(self, size: Callable[[], int], *, exact: bool) -> Iterator[Request]:
        """Cut what is missing into requests of pairs, by whole rows unless `exact`."""
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
        """Return the places, shape (2, m), that are known and evaluated again."""
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
