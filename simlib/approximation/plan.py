"""Plans: the entries that a method reads, their price, and the reading of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from simlib._checks import a_pair
from simlib._typing import Seed
from simlib.landmarks import draw, sample_size
from simlib.lowrank import LowRank
from simlib.similarity.budget import BudgetExceeded, left
from simlib.similarity.known import Extent, shape_of
from simlib.similarity.price import Region
from simlib.similarity.requests import Block, Pairs
from simlib.similarity.views import SimilarityMatrix

Number: TypeAlias = int | tuple[int, int] | None
"""A number of landmarks, also for each of two collections; or a number for each."""


class Sides(NamedTuple):
    """Some rows and some columns; for one collection they are the same items."""

    rows: np.ndarray
    columns: np.ndarray

    @classmethod
    def same(cls, items: np.ndarray) -> Sides:
        """Return the same items on both sides."""
        return cls(items, items)


NONE = Sides.same(np.zeros(0, dtype=np.intp))


class Reading(NamedTuple):
    """The entries of a plan, after they were read."""

    C: np.ndarray  # columns, (m, s1)
    R: np.ndarray | None  # transposed rows, (n, s2)
    A: np.ndarray  # block
    diagonal: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Plan:
    """The entries that a method reads, with their price.

    Parameters
    ----------
    landmarks : Sides
        S1: items whose columns are read whole, and items that stand for rows.
    rows : array of int, optional
        S2 of the CUR family: items whose rows are read whole. None means no rows for a
        symmetric matrix, and the rows of the landmarks for any other.
    block : Sides
        S2 of the other methods: items whose similarities among each other are read.
    diagonal : bool
        Whether the diagonal is read.
    oversampling : float
        Items in S2 for each landmark, also for a smaller plan made by `first`.
    """

    extent: Extent
    landmarks: Sides = NONE
    rows: np.ndarray | None = None
    block: Sides = NONE
    diagonal: bool = False
    oversampling: float = 1.0

    @property
    def columns(self) -> np.ndarray:
        """The items whose columns are read whole."""
        return self.landmarks.columns

    def cost(
        self, *, symmetric: bool = True, diagonal_known: bool = False, orders: int = 1
    ) -> int:
        """Return the number of distinct pairs in the plan, unordered if symmetric.

        A pair off the diagonal counts once for each of the `orders` it is asked in.
        """
        symmetric = symmetric and not isinstance(self.extent, tuple)
        requests = self._requests(symmetric)
        off = Region(self.extent, requests, symmetric=symmetric, diagonal=False)
        on = shape_of(self.extent)[0] if self.diagonal else off.on_diagonal
        return orders * len(off) + (0 if diagonal_known else on)

    def calls(self, sim: SimilarityMatrix) -> int:
        """Return the calls for the distinct pairs in the plan, known before or not."""
        diagonal_known, orders = sim.diagonal_known, sim.orders
        return self.cost(
            symmetric=sim.symmetric, diagonal_known=diagonal_known, orders=orders
        )

    def price(self, sim: SimilarityMatrix) -> int:
        """Return the evaluations that `read` would make; known entries cost none."""
        return sim.cost(*self._requests(sim.symmetric), pairs=self._pairs())

    def check(
        self, sim: SimilarityMatrix, price: Callable[[Plan], int] | None = None
    ) -> None:
        """Raise if the price passes the limit, and say which smaller plan would fit."""
        price = price or (lambda plan: plan.price(sim))
        needed, most = price(self), self.columns.size - 1
        if needed <= sim.remaining:
            return
        low = last(0, most, lambda s: price(self.first(s)) <= sim.remaining)
        fitting = "not one would fit"
        if low:
            r, s = (side.size for side in self.first(low).landmarks)
            fitting = f"{s if r == s else (r, s)} would fit"
        raise BudgetExceeded(
            f"This takes up to {needed} evaluations, and {left(sim)}: raise `limit` on "
            f"this Similarity, or ask for fewer landmarks, of which {fitting}."
        )

    def first(self, n_landmarks: int) -> Plan:
        """Return the plan of the first landmarks only, `n_landmarks` on the columns."""
        rows, columns = self.landmarks
        s1 = ceil(n_landmarks * rows.size / max(columns.size, 1)), n_landmarks
        s2 = [
            sample_size(n, s, self.oversampling)
            for n, s in zip(shape_of(self.extent), s1, strict=True)
        ]
        return replace(
            self,
            landmarks=Sides(rows[: s1[0]], columns[: s1[1]]),
            rows=None if self.rows is None else self.rows[: s2[0]],
            block=Sides(self.block.rows[: s2[0]], self.block.columns[: s2[1]]),
        )

    def read(self, sim: SimilarityMatrix) -> Reading:
        """Read all entries; the budget is checked before the first evaluation."""
        try:
            answers = sim.read(*self._requests(sim.symmetric), pairs=self._pairs())
        except BudgetExceeded:
            self.check(sim)  # raises an error that says how many landmarks would fit
            raise
        diagonal = answers.pop() if self.diagonal else None
        *R, C, A = answers
        return Reading(C=C, R=R[0].T if R else None, A=A, diagonal=diagonal)

    def answer(
        self,
        sim: SimilarityMatrix,
        method: str,
        C: np.ndarray,
        core: np.ndarray,
        R: np.ndarray | None = None,
        kind: Callable[..., LowRank] = LowRank,
        **options: Any,
    ) -> LowRank:
        """Return C core R^T as the answer of a method."""
        return kind(
            C,
            core.astype(sim.dtype),
            R,
            landmarks=self.columns,
            row_landmarks=self._rows(sim.symmetric),
            calls=self.calls(sim),
            method=method,
            **options,
        )

    def _pairs(self) -> Pairs | None:
        every = np.arange(shape_of(self.extent)[0])
        return (every, every) if self.diagonal else None

    def _rows(self, symmetric: bool) -> np.ndarray | None:
        return self.landmarks.rows if self.rows is None and not symmetric else self.rows

    def _requests(self, symmetric: bool) -> list[Block]:
        """Return the blocks that are read, in the order in which they are read."""
        rows = self._rows(symmetric)
        lines: list[Block] = [] if rows is None else [(rows, None)]
        return [*lines, (None, self.columns), self.block]


def drawn(
    extent: Extent,
    n_landmarks: Any,
    oversampling: float = 1,
    *,
    nested: bool = True,
    landmarks: Any = None,
    rng: Seed = None,
) -> tuple[Sides, Sides]:
    """Return S1 and S2 by `simlib.landmarks.draw`.

    For two collections `n_landmarks` and `landmarks` are pairs, for rows and columns;
    one number is for both.
    """
    choose = partial(draw, oversampling=oversampling, rng=np.random.default_rng(rng))
    if not isinstance(extent, tuple):
        S1, S2 = choose(extent, n_landmarks, nested=nested, landmarks=landmarks)
        return Sides.same(S1), Sides.same(S2)
    given = (None, None) if landmarks is None else a_pair(landmarks, "landmarks")
    sides = zip(extent, _numbers(n_landmarks), given, strict=True)
    rows, columns = (choose(n, number, landmarks=items) for n, number, items in sides)
    return Sides(rows[0], columns[0]), Sides(rows[1], columns[1])


def nominal(
    extent: Extent, n_landmarks: Number, oversampling: float = 1, *, nested: bool = True
) -> tuple[Sides, Sides]:
    """Return S1 and S2 of the sizes that `drawn` gives, without a draw.

    If not nested, S1 and S2 have as few items in common as possible. That is the most
    expensive draw, except for an asymmetric matrix with a known diagonal.
    """
    numbers = _numbers(n_landmarks)
    S1 = Sides(*map(np.arange, numbers))
    S2 = []
    for n, number in zip(shape_of(extent), numbers, strict=True):
        sample = sample_size(n, number, oversampling)
        S2.append(np.arange(sample) if nested else np.arange(n - sample, n))
    return S1, Sides(*S2)


def _numbers(n_landmarks: Any) -> tuple[Any, Any]:
    if isinstance(n_landmarks, tuple | list):
        return a_pair(n_landmarks, "n_landmarks")
    return n_landmarks, n_landmarks


@dataclass(frozen=True)
class Method:
    """A method, ``function(sim, n_landmarks, *, rng, **options)``, and what it reads.

    ``plan(extent, n_landmarks, *, draw=nominal, **options)`` returns the largest plan
    that the method may need; it ignores options that do not matter. `extent` is n for
    one collection, (m, n) for two.
    """

    function: Callable[..., LowRank]
    plan: Callable[..., Plan]
    two: bool = False  # whether it takes two collections

    def calls(
        self,
        extent: Extent,
        n_landmarks: Number,
        *,
        symmetric: bool = True,
        diagonal_known: bool = False,
        **options: Any,
    ) -> int:
        """Return how many distinct pairs the method reads at most."""
        plan = partial(self.plan, extent, n_landmarks, **options)
        plans = [plan()]
        if diagonal_known and not symmetric:  # nested draws may read more unknown pairs
            plans.append(plan(draw=lambda *sizes, **_: nominal(*sizes)))
        known = {"symmetric": symmetric, "diagonal_known": diagonal_known}
        return max(plan.cost(**known) for plan in plans)


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
