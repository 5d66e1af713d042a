"""The price of requests: the number of their entries that are not known yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from itertools import starmap
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from simlib.similarity.known import Extent, Known, Places, grid, look
from simlib.similarity.requests import TILE, Block, Sides, is_whole

MOST_BLOCKS = 29  # of a `Region`: each has two bits of an integer, as have two others
LISTED = 2**10  # entries of blocks that are looked up one by one, if no more are known


def evaluations(
    known: Sequence[Known],
    blocks: Sequence[Sides],
    pairs: Places | None = None,
    *,
    grids: bool = False,
) -> int:
    """Return the number of evaluations that requests for blocks and then pairs make.

    An entry in several requests counts once. With `grids` the function takes blocks,
    and evaluates both halves of small tiles on the diagonal.
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
        keys = first.keys(i, j)
        if not (keys[1:] > keys[:-1]).all():
            keys = np.unique(keys)
        i, j = first.pairs_of(keys)
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
        without=_whole_lines(known),
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


def _whole_lines(known: Sequence[Known]) -> list[Block]:
    """Return the columns, and the rows, that are known whole, as at most two blocks."""
    columns = np.concatenate([each.columns.whole for each in known])
    rows = np.concatenate([each.rows.whole for each in known])
    found: list[Block] = [(None, np.unique(columns))] if columns.size else []
    if rows.size and not known[0].symmetric:
        found.append((np.unique(rows), None))
    return found


def _both_halves(known: Sequence[Known], blocks: Sequence[Sides]) -> int:
    """Count what a block function evaluates besides the unknown entries."""
    first, extra = known[0], 0
    n, symmetric = first.shape[0], first.symmetric
    kept, read = (first.columns, first.rows), [np.zeros(0, dtype=np.int64)] * 2
    for k, sides in enumerate(blocks):
        rows, columns = (None if side is None else np.unique(side) for side in sides)
        if rows is not None and columns is not None:  # a full side is read as lines
            if rows.size == n:
                rows = None
            elif columns.size == n:
                columns = None
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
            i, j = grid(tile, tile)
            mask = np.isnan(look(known, i, j))
            if earlier is not None:
                mask &= ~earlier.covers(i, j)
            mask = mask.reshape(tile.size, tile.size)
            if is_whole(mask):
                needed = np.triu(mask) if symmetric else mask
                extra += mask.size - int(np.count_nonzero(needed))
    return extra


def _lengths(block: Sides, shape: tuple[int, int]) -> list[int]:
    """Return how many rows and columns a block has."""
    sides = zip(block, shape, strict=True)
    return [length if side is None else side.size for side, length in sides]


def _listed(block: Sides, shape: tuple[int, int]) -> Places:
    """Return the pairs of a block."""
    sides = zip(block, shape, strict=True)
    i, j = (np.arange(n) if side is None else side for side, n in sides)
    return grid(i, j)


def _ints(side: ArrayLike | None) -> np.ndarray | None:
    return None if side is None else np.asarray(side, dtype=np.int64)


class _Kinds:
    """Kinds of items, by which of some sets they are in; None is the set of all."""

    def __init__(self, n: int, sets: Sequence[np.ndarray | None]):
        named = [items for items in sets if items is not None]
        none = np.zeros(0, np.int64)
        self._n, self._items = n, np.unique(np.concatenate([*named, none]))
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
    """The entries of some blocks of a matrix, without those of others.

    Items that are rows of the same blocks, and columns of the same blocks, are of one
    kind. There are few kinds: no array here has the size of a block.
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
        if len(inside) > MOST_BLOCKS:
            raise ValueError(
                f"At most {MOST_BLOCKS} blocks are counted together; got "
                f"{len(inside)}. Join the rows or the columns of some."
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
        """The number of entries (i, i) inside; 0 for two collections."""
        if isinstance(self._extent, tuple):
            return 0
        return int(self._rows.sizes @ np.diagonal(self._inside))

    def covers(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Tell for each k whether (i[k], j[k]) is inside."""
        inside = self._inside[self._rows.of[i], self._columns.of[j]]
        return inside if self._diagonal else inside & (i != j)
