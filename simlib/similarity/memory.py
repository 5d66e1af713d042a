"""What a similarity knows, and which of it answers and decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Literal

import numpy as np

from simlib.similarity.known import Entries, Known, Places, grid, look
from simlib.similarity.requests import Rectangle

__all__ = ["Memory"]


class Memory:
    """What was asked, `asked`, beside what is known from elsewhere, the `shelf`.

    On the shelf stands what a store knows, and what was paid in a run. `answers` are
    all that answer requests, `seen` those of them that this memory owns up to: of a run
    only what it has asked itself. Evaluations go to `kept`.
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
        """Return that of a run, which knows nothing yet, or what was asked here."""
        known = self.asked.snapshot() if asked else self.asked.blank()
        run = Memory(known, self.shelf)
        run.kept, run.seen = self.shelf, (run.asked,)
        run.answers = (run.asked, *self.answers[1:], self.asked)
        return run

    def peek(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return K[i[k], j[k]] where it is seen to be known and NaN elsewhere."""
        return look(self.seen, i, j)

    def look(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return K[i[k], j[k]] where anything knows it and NaN elsewhere."""
        return look(self.answers, i, j)

    def known(self) -> Iterator[Entries]:
        """Return an iterator over all that is seen now, each pair once."""
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
        asked, fresh = self.asked, True
        out = np.full((rows.size, columns.size), np.nan, asked.dtype, order=order)
        for known in (*self.answers[1:], asked):
            if known and known.fill(rows, columns, out):
                fresh = False
        n = 0 if isinstance(asked.extent, tuple) else asked.extent
        symmetric = asked.symmetric
        return Rectangle(rows, columns, out, n=n, symmetric=symmetric, fresh=fresh)

    def agreed(
        self, i: np.ndarray, j: np.ndarray, told: np.ndarray, name: Callable[[int], str]
    ) -> Places:
        """Return where each pair is told first, and K[i, j] as far as it is known.

        What is told agrees with what is known, and with itself, or is a ValueError.
        """
        keys, known = self.asked.keys(i, j), self.peek(i, j)
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
        """Note pairs, or a grid, as asked for, wherever the answers came from."""
        if values.ndim == 2:
            i, j = grid(i, j)
        new = np.isnan(self.asked.get(i, j))
        self.asked.put(i[new], j[new], values.ravel()[new])
