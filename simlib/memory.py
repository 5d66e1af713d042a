"""What is already known of a similarity matrix.

Whole columns (and, where the matrix is not symmetric, whole rows) are kept as arrays,
scattered entries as one sorted array of int64 keys beside one array of values. Nothing
is a dictionary of pairs or a mask of the whole matrix: a million items with 64 columns
and a million pairs take 0.6 GiB. NaN stands for "not known yet".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["Memory"]

CHUNK = 2**20  # entries enumerated at a time


class Lines:
    """Whole columns of an n x n matrix, kept in the blocks in which they arrived."""

    def __init__(self, n: int):
        self._slot = np.full(n, -1)  # column -> running number of its storage
        self._blocks: list[tuple[int, np.ndarray]] = []  # (first slot, (n, k) array)
        self._complete = np.zeros(0, dtype=bool)  # per slot

    @property
    def kept(self) -> np.ndarray:
        """The columns of which anything is kept."""
        return np.flatnonzero(self._slot >= 0)

    def complete(self, columns: np.ndarray) -> np.ndarray:
        """Tell for each column whether every entry of it is known."""
        slots = self._slot[columns]
        known = slots >= 0
        known[known] = self._complete[slots[known]]
        return known

    def add(self, columns: np.ndarray, block: np.ndarray) -> None:
        """Keep `block` (n, k) as these columns; it may hold NaN until `finish`."""
        first = self._complete.size
        again = (self._slot[columns] >= 0).any()
        self._blocks.append((first, block))
        self._slot[columns] = first + np.arange(columns.size)
        if again:  # an earlier attempt was not finished: let go of what it leaves
            self._blocks = [
                (start, kept)
                for start, kept in self._blocks
                if np.isin(start + np.arange(kept.shape[1]), self._slot).any()
            ]
        self._complete = np.append(self._complete, np.zeros(columns.size, dtype=bool))

    def finish(self, columns: np.ndarray) -> None:
        """Declare these columns complete."""
        self._complete[self._slot[columns]] = True

    def entries(self, i: np.ndarray, j: np.ndarray, out: np.ndarray) -> None:
        """Write every known K[i, j] into `out`, all three of one shape."""
        slots = self._slot[j]
        for first, block in self._blocks:
            here = (slots >= first) & (slots < first + block.shape[1])
            if here.any():
                values = block[i[here], slots[here] - first]
                out[here] = np.where(np.isnan(values), out[here], values)

    def fill(self, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
        """Write what is known of K[rows, columns] into `out`, column by column."""
        slots = self._slot[columns]
        for first, block in self._blocks:
            inside = (slots >= first) & (slots < first + block.shape[1])
            for position in np.flatnonzero(inside):
                values = block[rows, slots[position] - first]
                known = ~np.isnan(values)
                out[known, position] = values[known]

    def take(self, columns: np.ndarray) -> np.ndarray:
        """Return K[:, columns], complete: a read-only view where storage allows."""
        slots = self._slot[columns]
        for first, block in self._blocks:
            start = slots[0] - first
            if 0 <= start < block.shape[1] and np.array_equal(
                slots, slots[0] + np.arange(slots.size)
            ):
                if start + slots.size > block.shape[1]:
                    break
                view = block[:, start : start + slots.size]
                view.flags.writeable = False
                return view
        n, dtype = self._slot.size, self._blocks[0][1].dtype
        result = np.empty((n, columns.size), dtype=dtype, order="F")
        for first, block in self._blocks:
            here = np.flatnonzero((slots >= first) & (slots < first + block.shape[1]))
            result[:, here] = block[:, slots[here] - first]
        return result


class Memory:
    """Known entries of an n x n matrix, behind `get` and `put`.

    Parameters
    ----------
    n : int
        Number of items.
    symmetric : bool
        Whether K[i, j] answers for K[j, i].
    dtype : dtype
        Floating type of the values; NaN stands for an unknown one.
    """

    def __init__(self, n: int, *, symmetric: bool, dtype: np.dtype):
        self.n, self.symmetric, self.dtype = n, symmetric, dtype
        self.columns = Lines(n)
        self.rows = self.columns if symmetric else Lines(n)
        self._keys = np.zeros(0, dtype=np.int64)
        self._values = np.zeros(0, dtype=dtype)
        self._recent: list[tuple[np.ndarray, np.ndarray]] = []

    def get(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return K[i[k], j[k]] for every k, NaN where unknown."""
        self._settle()
        out = self._from_lines(i, j)
        if self._keys.size:
            keys = self._key(i, j)
            at = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
            found = np.isnan(out) & (self._keys[at] == keys)
            out[found] = self._values[at[found]]
        return out

    def put(self, i: np.ndarray, j: np.ndarray, values: np.ndarray) -> None:
        """Remember scattered entries; a pair may come in both orders."""
        if i.size:
            self._recent.append((self._key(i, j), np.array(values, dtype=self.dtype)))

    def fill(self, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
        """Write what is known of K[rows, columns] (no repeats) into `out`."""
        self._settle()
        if self._keys.size:
            row_at, column_at = np.full((2, self.n), -1)
            row_at[rows] = np.arange(rows.size)
            column_at[columns] = np.arange(columns.size)
            i, j = np.divmod(self._keys, self.n)
            for a, b in ((i, j), (j, i))[: 1 + self.symmetric]:
                inside = (row_at[a] >= 0) & (column_at[b] >= 0)
                out[row_at[a[inside]], column_at[b[inside]]] = self._values[inside]
        self.columns.fill(rows, columns, out)
        (self.columns if self.symmetric else self.rows).fill(columns, rows, out.T)

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield what is known as (i, j, K[i, j]), each pair once, some at a time."""
        self._settle()
        whole = np.isin(np.arange(self.n), self.columns.kept)
        for i, j in self._grid(self.columns.kept):
            values = self._from_lines(i, j, rows=self.symmetric)
            new = ~np.isnan(values)
            if self.symmetric:  # an entry of two lines is met in both orders
                new &= ~whole[i] | (i <= j)
            yield i[new], j[new], values[new]
        if not self.symmetric:
            for j, i in self._grid(self.rows.kept):
                values = self._from_lines(i, j)
                new = ~np.isnan(values) & np.isnan(self._from_lines(i, j, rows=False))
                yield i[new], j[new], values[new]
        for k in range(0, self._keys.size, CHUNK):
            i, j = np.divmod(self._keys[k : k + CHUNK], self.n)
            new = np.isnan(self._from_lines(i, j))
            yield i[new], j[new], self._values[k : k + CHUNK][new]

    def _grid(self, lines: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the places of whole lines, some items of all of them at a time."""
        step = max(1, CHUNK // max(1, lines.size))
        for k in range(0, self.n if lines.size else 0, step):
            items = np.arange(k, min(k + step, self.n))
            yield np.repeat(items, lines.size), np.tile(lines, items.size)

    def _from_lines(
        self, i: np.ndarray, j: np.ndarray, *, rows: bool = True
    ) -> np.ndarray:
        """Return K[i[k], j[k]] as far as whole columns, and whole rows, know it."""
        out = np.full(i.shape, np.nan, dtype=self.dtype)
        self.columns.entries(i, j, out)
        if rows:
            (self.columns if self.symmetric else self.rows).entries(j, i, out)
        return out

    def _key(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        if self.symmetric:
            i, j = np.minimum(i, j), np.maximum(i, j)
        return i.astype(np.int64) * self.n + j

    def _settle(self) -> None:
        """Merge what was put since the last look into the sorted arrays."""
        if self._recent:
            keys, values = zip(*self._recent, strict=True)
            self._recent.clear()
            keys = np.concatenate([self._keys, *keys])
            self._keys, first = np.unique(keys, return_index=True)
            self._values = np.concatenate([self._values, *values])[first]
