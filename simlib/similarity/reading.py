"""The answer to requests: from memory, or evaluated within the budget."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from simlib.similarity.budget import Budget, check_budget
from simlib.similarity.evaluate import Evaluator, Finished, Target
from simlib.similarity.items import count
from simlib.similarity.known import Lines, Places, look
from simlib.similarity.ledger import Ledger
from simlib.similarity.memory import Memory
from simlib.similarity.price import evaluations
from simlib.similarity.requests import Rectangle, Sides, checked, distinct, once
from simlib.similarity.views import SimilarityMatrix


class Reading(NamedTuple):
    """Answers requests: evaluates the missing entries, counts them and keeps them."""

    memory: Memory
    evaluator: Evaluator
    budget: Budget
    ledger: Ledger

    def read(self, blocks: Sequence[Sides], pairs: Places | None) -> list[np.ndarray]:
        """Return the blocks and then the pairs, after a check of the budget for all."""
        if not blocks:
            return [] if pairs is None else [self._scattered(*pairs)]
        grids = self.evaluator.batch == "block"
        needed = evaluations(self.memory.answers, blocks, pairs, grids=grids)
        check_budget(needed, self.budget)
        with self.budget.bar(needed):
            answers = [self._block(*block, needed) for block in blocks]
            if pairs is not None:
                answers.append(self._scattered(*pairs))
        return answers

    def between(self, new_items: Any, sides: Sides) -> tuple[np.ndarray, int]:
        """Return the similarities of new items, and the number of distinct pairs.

        `sides` are the columns of the matrix that they are compared with as new rows,
        and the rows that they are compared with as new columns.
        """
        runs, answers, pairs, total = [], [], 0, 0
        for side, those in enumerate(sides):
            if those is None:
                continue
            evaluator = self.evaluator.of_new(new_items, side)
            those, at = once(those)
            new = np.arange(count(new_items))
            i, j = (those, new) if side else (new, those)
            out = np.full((i.size, j.size), np.nan, self.memory.asked.dtype)
            ids, store, finished = self.ledger.ids_with(new_items, side), None, None
            if ids is not None:
                store, finished = self.ledger.names(ids), self.ledger.keeper(ids)
                self.ledger.fill(ids[0][i], ids[1][j], out, self.memory.answers)
            both = None  # of the items that are rows and columns
            if ids is not None and self.memory.asked.symmetric:
                names = ids[0][i], ids[1][j]
                _, a, b = np.intersect1d(*names, return_indices=True)
                both = a, b
            fresh = bool(np.isnan(out).all())
            block = Rectangle(i, j, out, both, symmetric=True, fresh=fresh)
            needed = block.count(grids=evaluator.batch == "block")
            requests = evaluator.requests(block, needed)
            target = Target(out, self.budget, finished, store)
            runs.append(partial(evaluator.run, requests, target))
            answers.append((out.T if side else out, at))
            pairs, total = pairs + out.size, total + needed
        check_budget(total, self.budget)
        with self.budget.bar(total):
            for run in runs:
                run()
        return np.hstack([np.take(out, at, axis=1) for out, at in answers]), pairs

    def _block(
        self, rows: np.ndarray | None, columns: np.ndarray | None, needed: int
    ) -> np.ndarray:
        """Return a block; the budget is already checked for what is `needed`."""
        m, n = self.memory.asked.shape
        if rows is None:
            columns = np.arange(n) if columns is None else columns
            return self._whole(columns, "columns", needed)
        if columns is None:
            return self._whole(rows, "rows", needed).T
        rows, row_at = distinct(rows)
        columns, column_at = distinct(columns)
        if rows.size == m:
            out = self._whole(columns, "columns", needed)
        elif columns.size == n:
            out = self._whole(rows, "rows", needed).T
        else:
            rectangle = self.memory.rectangle(rows, columns)
            out = rectangle.out
            self._evaluate(rectangle, needed, self.memory.kept.put)
            self._note(rows, columns, out)
        return out[np.ix_(row_at, column_at)]

    def _whole(
        self, lines: np.ndarray, side: Literal["columns", "rows"], needed: int
    ) -> np.ndarray:
        """Return whole columns, or whole rows as the columns of the transpose."""
        memory, asked = self.memory, self.memory.asked
        known: Lines = getattr(asked, side)
        if lines.size == 0:
            return np.zeros((known.length, 0), dtype=asked.dtype)
        fresh = lines[~known.complete(lines)]
        if fresh.size:
            fresh, everything = once(fresh)[0], np.arange(known.length)
            if fresh.size == asked.shape[side == "columns"]:
                fresh = np.arange(fresh.size)  # a `Rectangle` has all items in order
            if known is asked.columns:
                rectangle = memory.rectangle(everything, fresh, order="F")
                block = rectangle.out
            else:
                rectangle = memory.rectangle(fresh, everything)
                block = rectangle.out.T
            both = {known, getattr(memory.kept, side)}  # in a run they differ
            for kept in both:  # before the evaluation: no finished value gets lost
                kept.add(fresh, block)
            self._evaluate(rectangle, needed)
            for kept in both:
                kept.finish(fresh)
        return known.take(lines)

    def _evaluate(
        self, rectangle: Rectangle, needed: int, finished: Finished | None = None
    ) -> None:
        """Evaluate the missing entries of a rectangle, at most `needed`."""
        if needed := min(needed, rectangle.out.size):
            requests = self.evaluator.requests(rectangle, needed)
            target = Target(rectangle.out, self.budget, finished, self.ledger.names())
            self.evaluator.run(requests, target)

    def _scattered(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return K[i[k], j[k]] for every k, if the budget pays for the missing ones."""
        memory = self.memory
        keys, at = distinct(memory.asked.keys(i, j))
        i, j = memory.asked.pairs_of(keys)
        values = look(memory.answers, i, j)
        (missing,) = np.isnan(values).nonzero()
        if missing.size:
            check_budget(missing.size, self.budget)
            requests = self.evaluator.scattered(i, j, missing)
            target = Target(values, self.budget, memory.kept.put, self.ledger.names())
            with self.budget.bar(missing.size):
                self.evaluator.run(requests, target)
        self._note(i, j, values)
        return values[at]

    def _note(self, i: np.ndarray, j: np.ndarray, values: np.ndarray) -> None:
        """Note what was asked for, if answers may have come from elsewhere."""
        if self.memory.kept is not self.memory.asked or self.memory.shelf:
            self.memory.note(i, j, values)


def compared_with(
    sim: SimilarityMatrix, landmarks: ArrayLike | None, row_landmarks: ArrayLike | None
) -> Sides:
    """Return the columns, and the rows, that new items are compared with."""
    ((rows, columns),), _ = checked(sim.extent, [(row_landmarks, landmarks)], None)
    if isinstance(sim.extent, tuple):
        if (rows is None) == (columns is None):
            raise ValueError(
                "New rows are compared with columns, between(new_rows, columns), "
                "and new columns with rows, between(new, row_landmarks=rows)."
            )
    elif columns is None:
        raise ValueError("Name the landmarks, items of the matrix.")
    elif sim.symmetric and rows is not None:  # the same from them as to them
        columns, rows = np.append(columns, rows), None
    elif not sim.symmetric and rows is None:
        rows = columns
    return columns, rows
