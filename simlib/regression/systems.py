r"""The systems of a power of A^T A, one after the other, and the errors of answers.

.. math::
    \min_{x_0} \| A x_0 - b \| , \qquad A^\top A\, x_k = x_{k-1}

The residuals of all answers are computed in one pass over A. They are measured in the
norm of R^-T, in which they can be small for any condition number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike

from simlib._checks import numbers, warn, whole_number
from simlib._scale import largest_ratio, norms, unit_columns
from simlib.regression.preconditioner import Preconditioner, Triangle, rounding_errors
from simlib.regression.rows import as_rows, blocks, gap_and_back, is_blocks, multiply
from simlib.regression.triangle import demand_tall

NO_DIGITS = 0.01  # relative error of x above which there is a warning
TINY = np.finfo(float).tiny

DIRECT = ("gram", "cholesky_qr")  # methods whose R is the triangle of A to rounding
Solver = Callable[[np.ndarray], tuple[np.ndarray, int]]


@dataclass(frozen=True, eq=False)
class Solution:
    """The answer to a regression, with its residuals and estimates of its error.

    Attributes
    ----------
    x : ndarray of shape (d,) or (d, k)
        The solution.
    residual : float
        Norm of the residual relative to b: of ``A x - b``, of ``(A^T A)^j x - b`` or of
        ``A (A^T A)^j x - b``; the largest of all columns.
    preconditioned_residuals : tuple of float
        For each solve with A^T A, ``R^-T (A^T A x - y)`` relative to ``R^-T y``: the
        backward error, in a norm in which it can be small for any condition number. For
        the least squares of an odd power, ``R^-T A^T (A x - b)`` relative to b.
    iterations : tuple of int
        Number of steps of each solve; 0 for direct solves.
    condition : float
        The condition number of A, from R or from the steps of iterations, at most
        1e100. For more than 500 columns an estimate, for "gram" up to 25 % low; for
        "lsqr" with a sketch up to three times off.
    error_estimate : float
        Estimate of the relative error of x in norm, the largest of all right-hand
        sides. It is too small for one matrix in a hundred, by up to 2 times, and often
        30 times too large, or a thousand with columns that nearly depend on others. If
        a few among 10,000 rows are longer by orders of magnitude, sums over rows lose
        more digits, and it may be too small by up to 20 times for least squares, 50 for
        powers, and 500 for powers of a single column. Of ``A^T A x = y`` with fewer
        than five columns it is too small for one matrix in seven, by up to 5 times. A
        solution that is exactly 0 counts as exact.
    coefficient_errors : ndarray of the shape of x
        Estimates of the absolute error of each entry of x; up to 5 times too small.
    method : str
        The method that was used: "gram", "cholesky_qr", "lsqr", "cg", or "lsqr, cg" for
        odd powers.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import lstsq
    >>> A = np.random.default_rng(0).standard_normal((5000, 20))
    >>> solution = lstsq(A, A[:, 0], rng=0)
    >>> solution.residual < 1e-12, solution.error_estimate < 1e-12, solution.iterations
    (True, True, (0,))
    >>> round(solution.condition, 1), solution.method
    (1.1, 'gram')
    """

    x: np.ndarray
    residual: float
    preconditioned_residuals: tuple[float, ...]
    iterations: tuple[int, ...]
    condition: float
    error_estimate: float
    coefficient_errors: np.ndarray
    method: str


@dataclass(frozen=True, eq=False)
class Problem:
    """A checked matrix, right-hand side and power; `from_input` makes it."""

    A: Any  # a csr_array in float64, an array, or blocks of rows
    B: np.ndarray  # (m, k), in float64, each column divided by 2 to its exponent
    exponents: np.ndarray
    shape: tuple[int, ...]  # of the solution
    j: int  # number of systems with A^T A
    least_squares: bool  # whether a least-squares problem comes first

    @classmethod
    def from_input(
        cls,
        A: Any,
        b: ArrayLike,
        j: int,
        least_squares: bool,
        preconditioner: Preconditioner | None,
    ) -> Problem:
        """Check A, b and that the preconditioner fits A; raise ValueError if not."""
        j, b = whole_number(j, "The power j", 0), numbers(b, "b")
        A = as_rows(A)
        if is_blocks(A) and iter(A) is A:
            raise ValueError(
                "A generator gives its blocks once, and solving reads them many times: "
                "pass a list, or an object whose __iter__ starts anew."
            )
        if scipy.sparse.issparse(A):
            (A,) = blocks(A)
        shapes = [part.shape for part in blocks(A)] if is_blocks(A) else [A.shape]
        n, d = sum(height for height, _ in shapes), shapes[0][1] if shapes else 0
        demand_tall(n, d)
        if preconditioner is not None:
            preconditioner.demand_width(d)
            if isinstance(A, np.ndarray):  # check that it is finite
                for _ in blocks(A):
                    pass
        rows = n if least_squares else d
        if b.ndim not in (1, 2) or len(b) != rows or b.size == 0:
            raise ValueError(
                f"b must have shape ({rows},) or ({rows}, k) for an A of shape "
                f"{(n, d)}; got {b.shape}."
            )
        B, exponents = unit_columns(b.astype(np.float64).reshape(len(b), -1))
        return cls(A, B, exponents, (d, *b.shape[1:]), j, least_squares)

    def __len__(self) -> int:
        """Return the number of systems."""
        return self.j + self.least_squares


class Stage(NamedTuple):
    """The next correction of an answer, and norms of the residual of its system."""

    moves: np.ndarray
    left: np.ndarray
    reference: np.ndarray
    rounding: np.ndarray

    @property
    def share(self) -> float:
        """The largest ratio of a residual and its reference."""
        return largest_ratio(self.left[None], self.reference[None])

    def arrived(self, tol: float) -> bool:
        """Tell whether the residuals are at most `tol`, or rounding errors."""
        least = np.maximum(tol * self.reference, 100 * self.rounding)
        return bool((self.left <= least).all())


@dataclass(eq=False)
class Chain:
    """Right-hand sides and answers of a chain of systems, and the R that solved them.

    A right-hand side is the answer of the system before, divided by powers of 2.
    """

    problem: Problem
    R: Triangle
    method: str
    right_hand_sides: list[np.ndarray] = field(default_factory=list)
    answers: list[np.ndarray] = field(default_factory=list)
    exponents: list[np.ndarray] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)

    def correct(self, moves: list[np.ndarray]) -> None:
        """Add corrections to the answers, and update the right-hand sides."""
        self.answers = [x + move for x, move in zip(self.answers, moves, strict=True)]
        for k in range(1, len(self.answers)):
            self.right_hand_sides[k] = np.ldexp(self.answers[k - 1], -self.exponents[k])
        del self.gaps

    @cached_property
    def gaps(self) -> tuple[np.ndarray | None, list[np.ndarray]]:
        """A x - b, and for each system A^T (A x - b) or A^T (A x) - y, in one pass."""
        problem = self.problem
        if not self.answers:
            return None, []
        B = problem.B if problem.least_squares else None
        images, products = gap_and_back(problem.A, np.hstack(self.answers), B)
        left = None if B is None else images[:, : B.shape[1]]
        back = np.split(products, len(self.answers), axis=1)
        for i in range(int(problem.least_squares), len(back)):
            back[i] = back[i] - self.right_hand_sides[i]
        return left, back

    def stages(self) -> list[Stage]:
        """Return the residuals of each system."""
        R, stages = self.R, []
        for k, (x, back) in enumerate(zip(self.answers, self.gaps[1], strict=True)):
            reference = self.right_hand_sides[k]
            if k or self.gaps[0] is None:
                image = reference = R.solve_transposed(reference)
            else:
                image = self.gaps[0]
            left = R.solve_transposed(back)
            sizes = norms(left), norms(reference), rounding_errors(R, x, image)
            stages.append(Stage(R.solve(left), *sizes))
        return stages

    def arrived(self, tol: float) -> bool:
        """Tell whether preconditioned residuals are at most `tol`, or rounding."""
        return all(stage.arrived(tol) for stage in self.stages())

    def solution(self, tol: float) -> Solution:
        """Return the last answer with its errors; warn if they are above `tol`."""
        problem, R, stages = self.problem, self.R, self.stages()
        left = self.gaps[0]
        x, target = (self.answers or [problem.B])[-1], problem.B
        if left is not None:
            # A column of x may be exactly 0, unless its residual is tiny and not 0.
            lost = (stages[0].left > 0) & (stages[0].left < TINY * R.norm)
            target = np.where(self.answers[0].any(axis=0) | lost, problem.B, 0)
        exponents = sum(self.exponents, np.zeros_like(problem.exponents))
        with np.errstate(over="ignore"):
            estimate, entries = self._errors(stages, x)
            entries = np.ldexp(np.ldexp(entries, exponents), problem.exponents)
            x = np.ldexp(x, exponents)
            scaled = np.ldexp(x, problem.exponents)
        if not all(_in_range(X, target) for X in (x, scaled)):
            raise _beyond(R.norm)
        residual, excess = self._residual(x)
        self._warn(stages, excess, estimate, tol)
        return Solution(
            x=scaled.reshape(problem.shape),
            residual=residual,
            preconditioned_residuals=tuple(stage.share for stage in stages),
            iterations=tuple(self.steps),
            condition=R.condition,
            error_estimate=estimate,
            coefficient_errors=entries.reshape(problem.shape),
            method=self.method,
        )

    def _errors(self, stages: list[Stage], x: np.ndarray) -> tuple[float, np.ndarray]:
        """Estimate the relative error of x, and the errors of its entries.

        The estimate is the next correction, which is not made, plus errors that it does
        not show. These are measured by |A dx|: half of the bound of rounding errors,
        which is their mean; the part due to the distortion of R; and the error of the
        stage before, divided by sigma_min^2.
        """
        R, moves = self.R, np.zeros_like(x)
        inverse = max(R.condition / R.norm, float(R.standard_errors.max()))
        unseen, length = np.zeros((2, x.shape[1]))
        for stage, exponents in zip(stages, self.exponents, strict=True):
            unseen = stage.rounding / 2 + ((1 + R.distortion) ** 2 - 1) * stage.left
            unseen = unseen + np.ldexp(length, -exponents) * inverse * inverse
            moves, length = stage.moves, unseen + stage.left
        some = x.any(axis=0)
        entries = (abs(moves) + R.standard_errors[:, None] * unseen) * some
        errors = (norms(moves) + inverse * unseen) * some
        return largest_ratio(errors[None], norms(x)[None]), entries

    def _residual(self, x: np.ndarray) -> tuple[float, float]:
        """Return the residual relative to b, and its excess over the minimum."""
        A, B, left, R = self.problem.A, self.problem.B, self.gaps[0], self.R
        for _ in range(self.problem.j):
            if self.method in DIRECT and isinstance(R, Preconditioner):
                x = R.R.T @ (R.R @ x)
            else:
                x = gap_and_back(A, x)[1]
        if left is None:
            gap = largest_ratio(x - B, B)
            return gap, gap
        if not self.problem.j:
            return largest_ratio(left, B), 0.0
        image = multiply(A, x) - B
        return largest_ratio(image, B), largest_ratio(image - left, B)

    def _warn(
        self, stages: list[Stage], excess: float, estimate: float, tol: float
    ) -> None:
        """Warn of a residual or an error that is too large, and name the cause."""
        condition = self.R.condition
        if not all(stage.arrived(tol) for stage in stages):
            worst = max(stage.share for stage in stages)
            message = (
                f"{self.method!r} ended at preconditioned residuals of up to "
                f"{worst:.0e}, and tol is {tol:.0e}. If the preconditioner is of this "
                'A, make it with more oversampling, or take method="cholesky_qr".'
            )
        elif excess > tol:
            message = (
                f"x leaves a residual of {excess:.0e} of b more than it must, and tol "
                f"is {tol:.0e}: with a condition number of {condition:.1e} the "
                "rounding of x alone may leave as much. See error_estimate for the "
                "digits of x."
            )
        elif estimate > NO_DIGITS:
            message = (
                f"x may be off by {min(estimate, 1):.0%} of its norm; the condition "
                f"number of A is {condition:.1e}. Leave out columns that are nearly "
                "combinations of others, or add a ridge; coefficient_errors tells what "
                "has digits."
            )
        else:
            return
        warn(message, scipy.linalg.LinAlgWarning)


def solve_in_turn(
    problem: Problem, R: Triangle, method: str, first: Solver, then: Solver
) -> Chain:
    """Solve least squares by `first`, and each system with A^T A by `then`."""
    chain = Chain(problem, R, method)
    if problem.j and not 2.0**-511 <= R.norm <= 2.0**511:
        raise _beyond(R.norm)
    right_hand_side, exponents = problem.B, np.zeros_like(problem.exponents)
    for k in range(len(problem)):
        if k:
            right_hand_side, exponents = unit_columns(chain.answers[-1])
        elif not problem.least_squares:
            right_hand_side, exponents = unit_columns(right_hand_side)
        solve = first if k == 0 and problem.least_squares else then
        X, steps = solve(right_hand_side)
        chain.right_hand_sides.append(right_hand_side)
        chain.answers.append(X)
        chain.exponents.append(exponents)
        chain.steps.append(steps)
    return chain


def _in_range(X: np.ndarray, target: np.ndarray) -> bool:
    """Tell whether all columns are finite, and only columns with target 0 vanish."""
    sizes = abs(X).max(axis=0)
    return bool(np.isfinite(X).all() and ((sizes >= TINY) | ~target.any(axis=0)).all())


def _beyond(largest: float) -> ValueError:
    return ValueError(
        "The solution is beyond the range of floating-point numbers: divide A by its "
        f"norm, about {largest:.0e}, and b by its own, and scale x afterwards."
    )
