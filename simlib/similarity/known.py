"""The known part of a similarity matrix: whole lines, and scattered entries as keys.

A line is a row or a column. NaN stands for "not known yet". A change makes new arrays
and puts them in place by one assignment: an interrupt loses nothing, and the old arrays
may be read-only, as joblib maps them.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

Extent: TypeAlias = int | tuple[int, int]
"""The number of items of one collection, or the numbers of rows and of columns."""
Places: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Rows and columns of entries."""
_Run: TypeAlias = tuple[np.ndarray, np.ndarray]
Entries: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows, columns and values; a grid has its rows and its columns once."""

LISTED = 2**20  # entries that are listed at a time
RATIO = 16  # a sorted array is so many times larger than the next, or they are merged


class _Kept(NamedTuple):
    """State of `Lines`."""

    slot: np.ndarray  # column -> running number of its storage, or -1
    blocks: list[tuple[int, np.ndarray]]  # (first slot, (m, k) array)
    complete: np.ndarray  # per slot


class Lines:
    """Whole columns of an m x n matrix, kept in the blocks in which they arrived."""

    def __init__(self, m: int, n: int):
        slot = np.broadcast_to(np.int32(-1), (n,))  # takes no memory
        self.length = m
        self._kept = _Kept(slot, [], np.zeros(0, dtype=bool))

    def __bool__(self) -> bool:
        return bool(self._kept.blocks)

    @property
    def kept(self) -> np.ndarray:
        """The columns of which anything is kept."""
        return np.flatnonzero(self._kept.slot >= 0) if self else np.zeros(0, np.int64)

    @property
    def whole(self) -> np.ndarray:
        """The columns of which every entry is known."""
        kept = self.kept
        return kept[self.complete(kept)]

    @property
    def partly(self) -> np.ndarray:
        """The columns of which only some entries are known."""
        kept = self.kept
        return kept[~self.complete(kept)]

    def complete(self, columns: np.ndarray) -> np.ndarray:
        """Tell for each column whether every entry of it is known."""
        if not self:  # taking from an array without memory copies all of it
            return np.zeros(columns.size, dtype=bool)
        slots = self._kept.slot[columns]
        known = slots >= 0
        known[known] = self._kept.complete[slots[known]]
        return known

    def add(self, columns: np.ndarray, block: np.ndarray) -> None:
        """Keep the array `block` (m, k) itself as these columns, NaN until `finish`."""
        slot, blocks, complete = self._kept
        first = complete.size
        again = (slot[columns] >= 0).any()
        slot = slot.copy()
        slot[columns] = first + np.arange(columns.size)
        blocks = [*blocks, (first, block)]
        if again:  # an earlier attempt was not finished: drop blocks without columns
            blocks = [
                (start, kept)
                for start, kept in blocks
                if np.isin(start + np.arange(kept.shape[1]), slot).any()
            ]
        complete = np.append(complete, np.zeros(columns.size, dtype=bool))
        self._kept = _Kept(slot, blocks, complete)

    def finish(self, columns: np.ndarray) -> None:
        """Declare these columns complete."""
        complete = self._kept.complete.copy()
        complete[self._kept.slot[columns]] = True
        self._kept = self._kept._replace(complete=complete)

    def entries(self, i: np.ndarray, j: np.ndarray, out: np.ndarray) -> None:
        """Write every known K[i, j] into `out`, all three of one dimension."""
        slots = self._kept.slot[j]
        places = np.flatnonzero(slots >= 0)
        if places.size == 0:
            return
        slots, i = slots[places], i[places]
        for first, block in self._kept.blocks:
            here = np.flatnonzero((slots >= first) & (slots < first + block.shape[1]))
            if here.size:
                values = block[i[here], slots[here] - first]
                known = ~np.isnan(values)
                out[places[here[known]]] = values[known]

    def fill(self, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> bool:
        """Write the known entries of K[rows, columns] to `out`; tell if any is."""
        if not self:
            return False
        slots = self._kept.slot[columns]
        if slots.max(initial=-1) < 0:
            return False
        for first, block in self._kept.blocks:
            inside = (slots >= first) & (slots < first + block.shape[1])
            for position in np.flatnonzero(inside):
                values = block[rows, slots[position] - first]
                known = ~np.isnan(values)
                out[known, position] = values[known]
        return True

    def take(self, columns: np.ndarray) -> np.ndarray:
        """Return K[:, columns], complete: a read-only view where storage allows."""
        slots = self._kept.slot[columns]
        for first, block in self._kept.blocks:
            start = slots[0] - first
            if 0 <= start < block.shape[1] and np.array_equal(
                slots, slots[0] + np.arange(slots.size)
            ):
                if start + slots.size > block.shape[1]:
                    break
                view = np.asarray(block)[:, start : start + slots.size]
                view.flags.writeable = False
                return view
        dtype = self._kept.blocks[0][1].dtype
        result = np.empty((self.length, columns.size), dtype=dtype, order="F")
        for first, block in self._kept.blocks:
            here = np.flatnonzero((slots >= first) & (slots < first + block.shape[1]))
            result[:, here] = block[:, slots[here] - first]
        return result


class _Entries(NamedTuple):
    """Scattered entries: arrays of keys beside arrays of values."""

    runs: list[_Run]  # sorted, from the largest on
    recent: list[_Run]  # as they came


class Known:
    """Known entries of a matrix, behind `get` and `put`; NaN where unknown.

    With `symmetric` K[i, j] answers for K[j, i]. `diagonal` holds a diagonal that is
    known from the start. Both are for one collection.
    """

    def __init__(
        self,
        extent: Extent,
        *,
        symmetric: bool,
        dtype: np.dtype,
        diagonal: np.ndarray | None = None,
    ):
        self.extent, self.symmetric, self.dtype = extent, symmetric, dtype
        self.shape = m, n = shape_of(extent)
        self.diagonal = diagonal
        self.columns = Lines(m, n)
        self.rows = self.columns if symmetric else Lines(n, m)  # K[i, j] = rows[j, i]
        self._entries = _Entries([], [])

    def __bool__(self) -> bool:
        lines = self.columns or self.rows
        return bool(lines or any(self._entries) or self.diagonal is not None)

    def get(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return K[i[k], j[k]] for every k, NaN where unknown."""
        out = self._from_lines(i, j)
        if runs := self._settle():
            keys = self.keys(i, j)
            for known, values in runs:
                at = known.searchsorted(keys)
                found = known.take(at, mode="clip") == keys
                if np.count_nonzero(found):  # far quicker than any() on a few
                    out[found] = values[at[found]]
        return out

    def put(self, i: np.ndarray, j: np.ndarray, values: np.ndarray) -> None:
        """Remember scattered entries; if a pair has several values the first stays."""
        if self.diagonal is not None:
            off = i != j
            i, j, values = i[off], j[off], values[off]
        if i.size:
            values = np.array(values, dtype=self.dtype)
            self._entries.recent.append((self.keys(i, j), values))

    def restore(self, grids: Sequence[Entries]) -> None:
        """Remember grids (rows, columns, values) that another process has evaluated."""
        length: Counter[tuple[int, bytes]] = Counter()
        for *sides, _ in grids:
            for a in (0, 1):
                length[a, sides[a].tobytes()] += sides[1 - a].size
        together: dict[tuple[int, bytes], list[Entries]] = {}
        for i, j, values in grids:
            keys = (1, j.tobytes()), (0, i.tobytes())
            most = max(keys, key=lambda key: length[key])
            if 2 * length[most] >= self.shape[1 - most[0]]:
                together.setdefault(most, []).append((i, j, values))
            else:
                self.put(*grid(i, j), values.ravel())
        for (side, _), parts in together.items():
            lines, kept = parts[0][side], self.columns if side else self.rows
            every = np.arange(kept.length)
            block = np.full((every.size, lines.size), np.nan, self.dtype, order="F")
            self.fill(*((every, lines, block) if side else (lines, every, block.T)))
            for i, j, values in parts:
                if side:
                    block[i] = values
                else:
                    block[j] = values.T
            kept.add(lines, block)
            kept.finish(lines[~np.isnan(block).any(axis=0)])

    def fill(self, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> bool:
        """Write the known entries of K[rows, columns]; tell if there may be any."""
        runs = self._settle()
        size = sum(keys.size for keys, _ in runs)
        if 0 < size <= out.size:
            row_at, column_at = (np.full(length, -1) for length in self.shape)
            row_at[rows] = np.arange(rows.size)
            column_at[columns] = np.arange(columns.size)
            for keys, values in runs:
                i, j = self.pairs_of(keys)
                for a, b in ((i, j), (j, i))[: 1 + self.symmetric]:
                    inside = (row_at[a] >= 0) & (column_at[b] >= 0)
                    out[row_at[a[inside]], column_at[b[inside]]] = values[inside]
        elif size:
            i, j = np.repeat(rows, columns.size), np.tile(columns, rows.size)
            values = self.get(i, j).reshape(out.shape)
            np.copyto(out, values, where=~np.isnan(values))
        some = self.columns.fill(rows, columns, out)
        some |= self.rows.fill(columns, rows, out.T)
        if self.diagonal is not None:
            a, b = shared(rows, columns, self.shape[0])
            out[a, b] = self.diagonal[rows[a]]
        return some or size > 0 or self.diagonal is not None

    def blank(self) -> Known:
        """Return a `Known` that knows nothing but a given diagonal."""
        return Known(
            self.extent,
            symmetric=self.symmetric,
            dtype=self.dtype,
            diagonal=self.diagonal,
        )

    def snapshot(self) -> Known:
        """Return a copy, which does not know entries that are put here later."""
        now = copy.copy(self)
        now._entries = _Entries(self._settle(), [])
        now.columns = copy.copy(self.columns)
        now.rows = now.columns if self.symmetric else copy.copy(self.rows)
        return now

    @property
    def size(self) -> int:
        """Entries that `scattered` looks through."""
        sides = [self.columns] if self.symmetric else [self.columns, self.rows]
        partly = sum(lines.length * lines.partly.size for lines in sides)
        return partly + sum(keys.size for keys, _ in self._settle())

    def known(self) -> Iterator[Entries]:
        """Return an iterator over the known (i, j, K[i, j]), each pair once."""
        now = self.snapshot()
        return now._listed(now.columns.kept, now.rows.kept)

    def scattered(self) -> Iterator[Entries]:
        """Yield known entries that are in no complete line and no given diagonal."""
        self._settle()
        return self._listed(self.columns.partly, self.rows.partly, diagonal=False)

    def _listed(
        self, columns: np.ndarray, rows: np.ndarray, *, diagonal: bool = True
    ) -> Iterator[Entries]:
        """Yield the known entries of these lines, then those that are in no line."""
        given = self.diagonal is not None

        def but(
            new: np.ndarray, i: np.ndarray, j: np.ndarray, values: np.ndarray
        ) -> Entries:
            new = new & (i != j) if given else new
            return i[new], j[new], values[new]

        whole = np.zeros(self.shape[1], dtype=bool)
        whole[columns] = True
        for i, j in _crossed(self.shape[0], columns):
            values = self._from_lines(i, j, rows=self.symmetric)
            new = ~np.isnan(values)
            if self.symmetric:  # an entry of two lines is met in both orders
                new &= ~whole[i] | (i <= j)
            yield but(new, i, j, values)
        if not self.symmetric:
            for j, i in _crossed(self.shape[1], rows):
                values = self._from_lines(i, j)
                new = ~np.isnan(values) & np.isnan(self._from_lines(i, j, rows=False))
                yield but(new, i, j, values)
        for keys, kept in self._entries.runs:
            for k in range(0, keys.size, LISTED):
                i, j = self.pairs_of(keys[k : k + LISTED])
                new = np.isnan(self._from_lines(i, j))
                yield but(new, i, j, kept[k : k + LISTED])
        if self.diagonal is not None and diagonal:
            for k in range(0, self.diagonal.size, LISTED):
                i = np.arange(k, min(k + LISTED, self.diagonal.size))
                yield i, i, self.diagonal[i]

    def _from_lines(
        self, i: np.ndarray, j: np.ndarray, *, rows: bool = True
    ) -> np.ndarray:
        """Return K[i[k], j[k]] as far as lines, and the given diagonal, know it."""
        out = np.full(i.shape, np.nan, dtype=self.dtype)
        if self.columns:
            self.columns.entries(i, j, out)
        if rows and self.rows:
            self.rows.entries(j, i, out)
        if self.diagonal is not None:
            on = np.flatnonzero(i == j)
            out[on] = self.diagonal[i[on]]
        return out

    def keys(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return one number for each pair, the same for both orders if symmetric."""
        if self.symmetric:
            i, j = np.minimum(i, j), np.maximum(i, j)
        return i.astype(np.int64) * self.shape[1] + j

    def pairs_of(self, keys: np.ndarray) -> Places:
        """Return the pairs (i, j) of numbers that `keys` has made."""
        return np.divmod(keys, self.shape[1])

    def _settle(self) -> list[_Run]:
        """Sort the entries put since the last call; merge arrays of similar size."""
        runs, recent = self._entries
        if not recent:
            return runs
        new = _but(runs, *_sorted(recent))
        runs = [*runs, new] if new[0].size else runs
        while len(runs) > 1 and runs[-2][0].size < RATIO * runs[-1][0].size:
            runs[-2:] = [_merged(*runs[-2:])]
        self._entries = _Entries(runs, [])
        return runs


def shape_of(extent: Extent) -> tuple[int, int]:
    """Return the shape of a matrix of one collection or of two."""
    return extent if isinstance(extent, tuple) else (extent, extent)


def others(n: int, items: np.ndarray) -> np.ndarray:
    """Return the numbers from 0 to n - 1 without these items."""
    return np.delete(np.arange(n), items)


def grid(i: np.ndarray, j: np.ndarray) -> Places:
    """Return the pairs of the grid of i and j, row by row."""
    return np.repeat(i, j.size), np.tile(j, i.size)


def _crossed(length: int, lines: np.ndarray) -> Iterator[Places]:
    """Yield the places (item, line) of whole lines, some items at a time."""
    step = max(1, LISTED // max(1, lines.size))
    for k in range(0, length if lines.size else 0, step):
        items = np.arange(k, min(k + step, length))
        yield grid(items, lines)


def shared(rows: np.ndarray, columns: np.ndarray, n: int) -> Places:
    """Return the places of the items that are in both, by increasing item."""
    if rows.size == n:
        order = np.argsort(columns)
        return columns[order], order
    if columns.size == n:
        order = np.argsort(rows)
        return order, rows[order]
    _, a, b = np.intersect1d(rows, columns, assume_unique=True, return_indices=True)
    return a, b


def look(known: Sequence[Known], i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return K[i[k], j[k]] from the first that knows it, NaN if none does."""
    values = known[0].get(i, j)
    for other in known[1:]:
        if other and (gap := np.isnan(values)).any():
            values[gap] = other.get(i[gap], j[gap])
    return values


def _sorted(parts: list[_Run]) -> _Run:
    """Join arrays of keys, and their values, and sort; the first of equals stays."""
    keys, values = parts[0]
    if len(parts) > 1:
        keys = np.concatenate([keys for keys, _ in parts])
        values = np.concatenate([values for _, values in parts])
    elif (keys[1:] > keys[:-1]).all():
        return keys, values
    order = np.argsort(keys, kind="stable")
    return _once(keys[order], values[order])


def among(keys: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Tell which of the keys are among the sorted keys `known`."""
    if known.size == 0:
        return np.zeros(keys.shape, bool)
    return known.take(known.searchsorted(keys), mode="clip") == keys


def _but(runs: list[_Run], keys: np.ndarray, values: np.ndarray) -> _Run:
    """Return keys that are in none of the runs, and their values."""
    for known, _ in runs:
        again = among(keys, known)
        if np.count_nonzero(again):
            keys, values = keys[~again], values[~again]
    return keys, values


def _merged(one: _Run, other: _Run) -> _Run:
    """Join two sorted runs; the first of equals stays."""
    at = one[0].searchsorted(other[0], side="right") + np.arange(other[0].size)
    rest = np.ones(one[0].size + at.size, bool)
    rest[at] = False
    both = [np.empty(rest.size, part.dtype) for part in one]
    for out, first, second in zip(both, one, other, strict=True):
        out[rest], out[at] = first, second
    return _once(*both)


def _once(keys: np.ndarray, values: np.ndarray) -> _Run:
    """Return sorted keys and their values, of equals the first."""
    again = keys[1:] == keys[:-1]
    if np.count_nonzero(again):
        new = np.append(True, ~again)
        return keys[new], values[new]
    return keys, values
