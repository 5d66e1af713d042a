"""Plans: what a method reads of a similarity matrix, its price, and the reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from simlib.landmarks import sample_size
from simlib.lowrank import LowRank
from simlib.similarity.budget import BudgetExceeded
from simlib.similarity.requests import Block, Pairs, Region
from simlib.similarity.views import SimilarityMatrix

__all__ = ["Method", "Plan", "Reading", "last", "nominal"]


def _none() -> np.ndarray:
    return np.zeros(0, dtype=np.intp)


class Reading(NamedTuple):
    """What was read: of a plan all that it holds."""

    C: np.ndarray  # columns, (n, s1)
    R: np.ndarray | None  # transposed rows, (n, s2)
    A: np.ndarray  # block
    diagonal: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Plan:
    """What a method reads of an n x n matrix: it is told, priced and read here alone.

    Parameters
    ----------
    columns : array of int
        S1, the landmarks: items whose columns are read whole.
    rows : array of int, optional
        S2 of the CUR family: items whose rows are read whole. None means none where the
        matrix is symmetric, and the rows of the landmarks where it is not.
    block : array of int
        S2 of the other methods: items whose similarities among each other are read.
    diagonal : bool
        Whether the diagonal is read.
    oversampling : float
        Items in S2 for each landmark; of a smaller plan too.
    """

    n: int
    columns: np.ndarray = field(default_factory=_none)
    rows: np.ndarray | None = None
    block: np.ndarray = field(default_factory=_none)
    diagonal: bool = False
    oversampling: float = 1.0

    def cost(self, *, symmetric: bool = True, diagonal_known: bool = False) -> int:
        """Return the distinct pairs in it, unordered if symmetric."""
        region = Region(
            self.n,
            self._requests(symmetric),
            symmetric=symmetric,
            diagonal=not diagonal_known,
        )
        apart = self.n - region.on_diagonal if self.diagonal else 0
        return len(region) + (0 if diagonal_known else apart)

    def calls(self, sim: SimilarityMatrix) -> int:
        """Return the distinct pairs of a matrix in it, known before or not."""
        return self.cost(symmetric=sim.symmetric, diagonal_known=sim.diagonal_known)

    def price(self, sim: SimilarityMatrix) -> int:
        """Return the evaluations that `read` would make, less what is known."""
        return sim.cost(*self._requests(sim.symmetric), pairs=self._pairs())

    def check(self, sim: SimilarityMatrix, besides: int = 0) -> int:
        """Return the price; where it passes the limit, raise with what would fit."""
        needed = self.price(sim) + besides
        if needed <= sim.remaining:
            return needed
        raise self.exceeded(sim, needed, lambda plan: plan.price(sim) + besides)

    def exceeded(
        self, sim: SimilarityMatrix, needed: int, price: Callable[[Plan], int]
    ) -> BudgetExceeded:
        """Return the error that says which smaller plan would fit the budget."""
        low = last(
            0, self.columns.size - 1, lambda s: price(self.first(s)) <= sim.remaining
        )
        fitting = f"{low} would fit" if low else "not one would fit"
        failed = f" ({sim.failed} failed)" if sim.failed else ""
        return BudgetExceeded(
            f"This takes up to {needed} evaluations, and of the limit of {sim.limit} "
            f"only {sim.remaining} are left{failed}. Nothing was evaluated for it, and "
            "everything known is kept: raise `limit` on this Similarity, or ask for "
            f"fewer landmarks, of which {fitting}."
        )

    def first(self, n_landmarks: int) -> Plan:
        """Return the plan of the first landmarks alone."""
        sample = sample_size(self.n, n_landmarks, self.oversampling)
        return replace(
            self,
            columns=self.columns[:n_landmarks],
            rows=None if self.rows is None else self.rows[:sample],
            block=self.block[:sample],
        )

    def read(self, sim: SimilarityMatrix) -> Reading:
        """Read all of it; the budget is checked before the first evaluation."""
        try:
            answers = sim.read(*self._requests(sim.symmetric), pairs=self._pairs())
        except BudgetExceeded:
            self.check(sim)  # says how many landmarks would fit
            raise
        diagonal = answers.pop() if self.diagonal else None
        *R, C, A = answers
        return Reading(C=C, R=R[0].T if R else None, A=A, diagonal=diagonal)

    def _pairs(self) -> Pairs | None:
        every = np.arange(self.n)
        return (every, every) if self.diagonal else None

    def _rows(self, symmetric: bool) -> np.ndarray | None:
        return self.columns if self.rows is None and not symmetric else self.rows

    def _requests(self, symmetric: bool) -> list[Block]:
        """Return what is asked for, in the order in which it is."""
        rows = self._rows(symmetric)
        lines: list[Block] = [] if rows is None else [(rows, None)]
        return [*lines, (None, self.columns), (self.block, self.block)]


def nominal(
    n: int, n_landmarks: int, oversampling: float = 1, *, nested: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return S1 and S2 as `draw` does, but the same ones always.

    Those drawn independently have as few items in common as can be: the dearest draw,
    unless the matrix is not symmetric and its diagonal known.
    """
    sample = sample_size(n, n_landmarks, oversampling)
    S2 = np.arange(sample) if nested else np.arange(n - sample, n)
    return np.arange(n_landmarks), S2


def _overlapping(
    n: int, n_landmarks: int, oversampling: float = 1, *, nested: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return S1 and S2 with as many items in common as can be."""
    return nominal(n, n_landmarks, oversampling)


@dataclass(frozen=True)
class Method:
    """A method, ``function(sim, n_landmarks, *, rng, **options)``, and what it reads.

    ``plan(n, n_landmarks, *, draw=nominal, **options)`` is the largest that the method
    may need; it ignores options that do not matter.
    """

    function: Callable[..., LowRank]
    plan: Callable[..., Plan]

    def calls(
        self,
        n: int,
        n_landmarks: int,
        *,
        symmetric: bool = True,
        diagonal_known: bool = False,
        **options: Any,
    ) -> int:
        """Return the distinct pairs that it reads for this many landmarks, at most."""
        plans = [self.plan(n, n_landmarks, **options)]
        if diagonal_known and not symmetric:  # the more in common the fewer known ones
            plans.append(self.plan(n, n_landmarks, draw=_overlapping, **options))
        return max(
            plan.cost(symmetric=symmetric, diagonal_known=diagonal_known)
            for plan in plans
        )


def last(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to `high` that fits, or `low`, by doubling steps."""
    step = 1
    while low + step <= high and fits(low + step):
        low, step = low + step, 2 * step
    high = min(high, low + step - 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
