"""A test of whether a function is symmetric, on a few pairs in both orders.

If the two orders differ for an eighth of all pairs, the test misses it once in 25
times.
"""

from __future__ import annotations

import numpy as np

from simlib._checks import warn
from simlib.similarity.requests import Request

MOST = 24  # pairs that are asked in both orders
SHARE = 50  # evaluations for each pair in both orders
TOLERANCE = 0.01  # times the largest value, as for the halves of a block


class SymmetryCheck:
    """The pairs to ask in the other order: `calls` are made, at most `left` will be.

    `due` are the requests for pairs that are chosen and not yet asked.
    """

    def __init__(self, on: bool):
        self.calls, self.left = 0, MOST if on else 0
        self._seen, self._told, self._largest = 0, False, 0.0
        self.due: list[Request] = []
        self._values = np.zeros((2, 0))  # in the one order and in the other

    def see(self, request: Request, values: np.ndarray) -> None:
        """Choose some of the evaluated pairs, to be asked in the other order."""
        self._seen += values.size
        self._largest = max(self._largest, float(np.abs(values).max(initial=0)))
        number = min(self.left, self._seen // SHARE - (MOST - self.left))
        if number > 0:
            i, j = request.pairs()
            off = np.flatnonzero(i != j)
            some = np.random.default_rng(self._seen).permutation(off)[:number]
            self.left -= some.size
            if some.size:
                known = values.ravel()[some]
                self.due.append(Request(j[some], i[some], (), known=known))

    def compare(self, request: Request, answer: np.ndarray) -> None:
        """Warn where the two orders differ; ignore an answer that failed."""
        self.calls += request.size
        if answer.shape != request.shape or request.known is None or self._told:
            return
        answer = answer.ravel()
        self._values = np.hstack([self._values, [request.known, answer]])
        with np.errstate(over="ignore", invalid="ignore"):
            gap = np.abs(self._values[0] - self._values[1])
        differ = gap > TOLERANCE * self._largest
        if differ.any():
            self._told, self.left, (one, other) = True, 0, self._values
            self.due.clear()
            k = int(np.argmax(differ[-answer.size :]))
            warn(
                f"The similarity function is not symmetric: of {gap.size} pairs asked "
                f"in both orders {np.count_nonzero(differ)} differ, by up to "
                f"{np.nanmax(gap):.3g}. It gives {one[k - answer.size]:.6g} for items "
                f"{request.j[k]} and {request.i[k]}, and {other[k - answer.size]:.6g} "
                "in the other order. Pass symmetric=False, and .symmetrized() for the "
                "mean of the two; or check_symmetry=False if one order is meant."
            )
