"""The counter of evaluations, their limit, and the errors of a similarity."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from math import inf
from typing import Any, TypeAlias

from simlib._checks import most_calls

Bar: TypeAlias = AbstractContextManager[Callable[..., object]]


class SimilarityError(ValueError):
    """The similarity function failed, or returned something that is not a number.

    Attributes
    ----------
    pair : tuple of two ints, or None
        The row and the column where it failed first, if that is known. With a batch of
        pairs it may have been a later one.
    """

    def __init__(self, message: str = "", pair: tuple[int, int] | None = None):
        super().__init__(message)
        self.pair = pair


class AsymmetryError(SimilarityError):
    """A function declared symmetric gave two values for one pair."""


class BudgetExceeded(RuntimeError):
    """A request needs more evaluations than the limit leaves; none was made."""


class Lock:
    """Holds a re-entrant lock; its pickle holds a new one."""

    def __init__(self) -> None:
        self.held = threading.RLock()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


class Budget:
    """How many evaluations were made, how many were lost, and how many may be made."""

    def __init__(self, limit: float | None, *, progress: bool = False):
        # Requests may begin in one thread and be answered in another.
        self._lock = Lock()
        self._begun = 0
        self._got = (0, 0)  # values; evaluations that are answered and not lost
        self.limit, self.progress = limit, progress
        self._bar: Any = None

    @property
    def calls(self) -> int:
        """Values obtained."""
        return self._got[0]

    @property
    def failed(self) -> int:
        """Evaluations handed over from which no value came back."""
        return self._begun - self._got[1]

    @property
    def limit(self) -> float | None:
        """Most evaluations that may be made, those that failed included."""
        return self._limit

    @limit.setter
    def limit(self, value: float | None) -> None:
        if value is not None:
            value = most_calls(value, "limit")
            value = inf if value == inf else int(value)
        self._limit = value

    @property
    def remaining(self) -> float:
        """Evaluations that may still be made."""
        limit = inf if self.limit is None else self.limit
        return max(limit - self.calls - self.failed, 0)

    def hand_over(self, size: int) -> None:
        """Count `size` evaluations as lost, until they are answered."""
        with self._lock.held:
            self._begun += size

    def answered(self, size: int, values: int, failed: int) -> None:
        """Count the values of a request of `size` pairs, and its failed evaluations."""
        with self._lock.held:
            calls, over = self._got
            self._got = calls + values, over + size - failed
        if (bar := self._bar) is not None:  # which another thread may end now
            bar.update(values)

    @contextmanager
    def bar(self, total: float | None) -> Iterator[Callable[..., object]]:
        """Show the evaluations made inside on one progress bar, the outermost."""
        if not self.progress or total == 0:
            yield lambda **_: None
            return
        if (outer := self._bar) is not None:
            yield partial(outer.set_postfix, refresh=False)
            return
        from tqdm.auto import tqdm

        try:
            with tqdm(total=total, unit=" calls", unit_scale=True) as bar:
                self._bar = bar
                yield partial(bar.set_postfix, refresh=False)
        finally:
            self._bar = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_bar": None}


def check_budget(needed: int, budget: Any) -> None:
    """Raise `BudgetExceeded` if a request needs more evaluations than remain."""
    if needed > budget.remaining:
        raise BudgetExceeded(
            f"This request needs {needed} evaluations, and {left(budget)}: raise "
            "`limit` on this Similarity, or ask for fewer pairs; of fewer landmarks "
            "simlib.largest tells how many a budget allows."
        )


def left(budget: Any) -> str:
    """Return the clause of an error that says how much of the limit is left."""
    failed = f" ({budget.failed} failed)" if budget.failed else ""
    return (
        f"of the limit of {budget.limit} only {budget.remaining} are left{failed}. "
        "Nothing was evaluated for it, and everything known is kept"
    )
