"""What a similarity knows: what answers its requests, and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Literal

import numpy as np

from simlib.similarity.known import Entries, Known, Places, grid, look, shared
from simlib.similarity.requests import Rectangle


class Memory:
    """The entries that were asked for, `asked`, and those known otherwise, the `shelf`.

    The shelf holds the entries of a store and those that runs have paid for. All of
    `answers` answer requests. `peek` and `known` show only `seen`: in a run, what the
    run itself has asked for. New values go to `kept`.
    """

    def __init__(self, asked: Known, shelf: Known):
        self.asked = self.kept = asked
        self.shelf = shelf
        self.answers: tuple[Known, ...] = (asked, shelf)
        self.seen: tuple[Known, ...] = self.answers

    def blank(self) -> Memory:
        """Return a memory that knows nothing but a given diagonal."""
        return Memory(self.asked.blank(), self.shelf.blank())

    def run(self, *, asked: bool) -> Memory:
        """Return the memory of a new run; with `asked` it shows what was asked here."""
        known = self.asked.snapshot() if asked else self.asked.blank()
        run = Memory(known, self.shelf)
        run.kept, run.seen = self.shelf, (run.asked,)
        run.answers = (run.asked, *self.answers[1:], self.asked)
        return run

    def known(self) -> Iterator[Entries]:
        """Return an iterator over all known entries that are shown, each pair once."""
        asked = self.asked.snapshot()
        besides = chain(*[known.known() for known in self.seen[1:]])

        def others() -> Iterator[Entries]:
            for i, j, values in besides:
                new = np.isnan(asked.get(i, j))
                yield i[new], j[new], values[new]

        return chain(asked.known(), others())

    def rectangle(
        self, rows: np.ndarray, columns: np.ndarray, order: Literal["C", "F"] = "C"
    ) -> Rectangle:
        """Return K[rows][:, columns] (no repeats) with NaN where it is not known."""
        asked = self.asked
        out = np.full((rows.size, columns.size), np.nan, asked.dtype, order=order)
        some = [known.fill(rows, columns, out) for known in (*self.answers[1:], asked)]
        extent = asked.extent
        both = None if isinstance(extent, tuple) else shared(rows, columns, extent)
        fresh, symmetric = not any(some), asked.symmetric
        return Rectangle(rows, columns, out, both, symmetric=symmetric, fresh=fresh)

    def agreed(
        self, i: np.ndarray, j: np.ndarray, told: np.ndarray, name: Callable[[int], str]
    ) -> Places:
        """Return where each pair stands first, and K[i, j], NaN where unknown.

        A told value that differs from the known one, or from another told value of the
        same pair, is a ValueError.
        """
        keys, known = self.asked.keys(i, j), look(self.answers, i, j)
        _, first, at = np.unique(keys, return_index=True, return_inverse=True)
        for before in known, told[first][at]:
            scale = np.maximum(np.abs(before), np.abs(told))
            with np.errstate(over="ignore"):
                gap = np.abs(before - told)
            wrong = gap > 100 * np.finfo(told.dtype).eps * scale
            if wrong.any():
                k = int(np.argmax(wrong))
                raise ValueError(
                    f"{name(k)} were told {told[k]}, but their similarity is "
                    f"{before[k]} already. Nothing was taken."
                )
        return first, known

    def note(self, i: np.ndarray, j: np.ndarray, values: np.ndarray) -> None:
        """Add to `asked` the values of pairs, or of a grid if `values` is a matrix."""
        if values.ndim == 2:
            i, j = grid(i, j)
        new = np.isnan(self.asked.get(i, j))
        self.asked.put(i[new], j[new], values.ravel()[new])
