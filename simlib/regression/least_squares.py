r"""Regression with a tall matrix, by its triangle or by iterations.

.. math::
    \min_x \| A x - b \| , \qquad A^\top A\, x = y

Answers by a triangle R of A are corrected,

.. math::
    x \leftarrow x + R^{-1} R^{-\top} A^\top (b - A x) , \qquad
    x \leftarrow x + R^{-1} R^{-\top} (y - A^\top (A x)) ,

for all of a chain of systems in one pass over A, equation :eq:`eq:corrected` of the
book.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from simlib._checks import inside, one_of
from simlib._scale import largest_ratio
from simlib._typing import Seed
from simlib.regression.gram import condition_of_rows, gram_preconditioner
from simlib.regression.iterations import (
    Iterated,
    TooManySteps,
    conjugate_gradients,
    lsqr,
)
from simlib.regression.preconditioner import ColumnScaling, Preconditioner, Triangle
from simlib.regression.rows import Rows, is_blocks, multiply_transposed
from simlib.regression.systems import Chain, Problem, Solution, Solver, solve_in_turn

Method = Literal["auto", "gram", "cholesky_qr", "lsqr"]
UNIT = np.finfo(float).eps / 2
WIDE = 2000  # columns from which iterations cost less than matrix products
CORRECTIONS = 10  # of an answer, at most
CORRECTABLE = 1e-12  # least reciprocal condition number of A^T A for corrections
ILL = 1e7  # condition number of some rows above which A^T A is not tried
LARGEST_GRAM = 2**31  # bytes of A^T A that are made for a sparse A, at most
FEWEST = 15  # with fewer steps iterations are not tried


def lstsq(
    A: Rows,
    b: ArrayLike,
    *,
    tol: float = 1e-12,
    method: Method = "auto",
    preconditioner: Preconditioner | None = None,
    rng: Seed = None,
) -> Solution:
    """Solve min ||A x - b|| for a tall matrix of full rank, and return a `Solution`.

    `numpy.linalg.lstsq` takes matrices of any rank and uses the SVD, which takes many
    times as long; `scipy.sparse.linalg.lsmr` takes operators.

    Parameters
    ----------
    A : array, memory map, sparse array, or re-iterable of row blocks, shape (n, d)
        A matrix with independent columns, and at least as many rows.
    b : array of shape (n,) or (n, k)
        Right-hand side, or several as columns.
    tol : float, default=1e-12
        Relative accuracy to reach, of x and of ``Solution.residual`` (for least squares
        of its excess over the minimum). Rounding errors may prevent it: see
        ``Solution.error_estimate``.
    method : str, default="auto"
        "gram": the triangle of A^T A by a Cholesky decomposition, and corrections; as
        accurate as QR up to a condition number of about 10^6, and fails beyond 10^8.
        "cholesky_qr": the triangle of A by a sketch and one more pass, and corrections;
        as accurate as QR. "lsqr": LSQR, and conjugate gradients for A^T A,
        preconditioned by a sketch. "auto": for a dense A or for blocks "gram" if the
        condition number permits it, otherwise "cholesky_qr", or "lsqr" beyond 2000
        columns; for a sparse A the iterations without a sketch, for as long as "gram"
        would take, then "gram", then "lsqr".
    preconditioner : Preconditioner, optional
        A preconditioner of the same A, made before, for "cholesky_qr" and "lsqr".
    rng : int, Generator or None
        Source of randomness for the sketch.

    Raises
    ------
    ValueError, TypeError
        Shapes that do not match, NaN or an infinity, fewer rows than columns, an option
        that does not exist, or a matrix or a solution beyond the range of
        floating-point numbers.
    numpy.linalg.LinAlgError
        Dependent columns; for "gram" a Gram matrix that is not positive definite to
        rounding. LSQR on a sparse A may not notice dependent columns, and then returns
        the x for which the sum of ``(norm of column i * x_i)^2`` is smallest.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        The residual is above `tol`, and above what rounding errors explain; or
        ``Solution.error_estimate`` is above 0.01.

    Notes
    -----
    n d^2 flops for "gram", 2 n d^2 and a sketch for "cholesky_qr"; for each correction,
    mostly one, a product of A and one of A^T with vectors. "lsqr": a sketch of 4 d
    rows, 8 d^3 flops, and some 35 products with A and A^T. A sparse A is not made dense
    as a whole, unless it has no more rows than its sketch. For weights of rows multiply
    the rows of A and b by their square roots. Sources: corrected
    seminormal equations, Bjorck (1987); preconditioned Cholesky QR, Fan, Guo, Lin
    (2021); the problem, Song, Yin and Zhang (2024), whose algorithms are not used.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import lstsq
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((5000, 20)) * np.geomspace(1, 1e-6, 20)
    >>> solution = lstsq(A, A @ np.ones(20), rng=0)
    >>> solution.error_estimate < 1e-8, solution.method
    (True, 'gram')
    """
    return solve(A, b, 0, True, tol, method, preconditioner, rng)


def solve_gram(
    A: Rows,
    y: ArrayLike,
    *,
    tol: float = 1e-12,
    method: Method = "auto",
    preconditioner: Preconditioner | None = None,
    rng: Seed = None,
) -> Solution:
    """Solve A^T A x = y, and return a `Solution`: `simlib.even_power` with j = 1.

    `scipy.linalg.cho_solve` takes the Gram matrix, which loses half of the digits.

    Parameters
    ----------
    y : array of shape (d,) or (d, k)
        Right-hand side, or several as columns.
    A, tol, method, preconditioner, rng
        As in `lstsq`; so are the errors and the cost. It warns as `simlib.even_power`.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.regression import solve_gram
    >>> A = np.random.default_rng(0).standard_normal((5000, 20))
    >>> y = A.T @ (A @ np.ones(20))
    >>> bool(np.allclose(solve_gram(A, y, rng=0).x, 1))
    True
    """
    return solve(A, y, 1, False, tol, method, preconditioner, rng)


def solve(
    A: Any,
    b: ArrayLike,
    j: int,
    least_squares: bool,
    tol: float,
    method: str,
    preconditioner: Preconditioner | None,
    rng: Seed,
) -> Solution:
    """Solve by the first method that reaches `tol`; the four functions call this."""
    one_of(method, get_args(Method), "`method`")
    inside(tol, "tol", 0, 1)
    problem = Problem.from_input(A, b, j, least_squares, preconditioner)
    seeded = np.random.default_rng(rng)
    for chain in _attempts(problem, method, tol, preconditioner, seeded):
        if chain.arrived(tol):
            break
    return chain.solution(tol)


def _attempts(
    problem: Problem,
    method: str,
    tol: float,
    R: Preconditioner | None,
    rng: np.random.Generator,
) -> Iterator[Chain]:
    """Yield solutions by the method; for "auto" by several, the cheapest first."""
    A, d = problem.A, problem.shape[0]
    sparse = scipy.sparse.issparse(A)
    automatic, tried = method == "auto", False
    if method == "gram":
        yield _direct(problem, _demand_gram(A, rng), "gram")
        return
    if automatic and R is None:
        if sparse:
            yield from _iterate_cheaply(problem, tol)
            if d * d * 8 > LARGEST_GRAM:
                return
        if sparse or is_blocks(A) or condition_of_rows(A, rng) < ILL:
            tried = True
            yield from _try_gram(problem)
    if R is None:
        R = Preconditioner.from_matrix(A, refine=False, rng=rng)
    if method == "lsqr" or (automatic and R.distortion and (sparse or d > WIDE)):
        yield _iterate(problem, R, tol)
        return
    if R.distortion:
        if automatic and not tried and R.condition < CORRECTABLE**-0.5:
            yield from _try_gram(problem)
        R = R.refined(A)
    yield _direct(problem, R, "cholesky_qr")


def _direct(problem: Problem, R: Preconditioner, name: str) -> Chain:
    """Solve with the triangle of A, and correct all answers by their residuals."""

    def first(B: np.ndarray) -> tuple[np.ndarray, int]:
        return then(multiply_transposed(problem.A, B))

    def then(Y: np.ndarray) -> tuple[np.ndarray, int]:
        return R.solve(R.solve_transposed(Y)), 0

    chain = solve_in_turn(problem, R, name, first, then)
    before: list[np.ndarray] = []
    exact = not R.distortion and not problem.least_squares
    for _ in range(0 if exact else CORRECTIONS):
        moves, lengths = list[np.ndarray](), list[np.ndarray]()
        for k, back in enumerate(chain.gaps[1]):
            carried = np.ldexp(moves[-1], -chain.exponents[k]) if k else 0
            turned = R.solve_transposed(carried - back)
            moves.append(R.solve(turned))
            lengths.append(turned)
        share = max(map(largest_ratio, moves, chain.answers), default=0)
        rate = max(map(largest_ratio, lengths, before), default=0)
        if not share > 4 * UNIT or rate > 0.5:
            break
        chain.correct(moves)
        if share * (rate if before else min(share, 1)) < UNIT:
            break
        before = lengths
    return chain


def _iterate(
    problem: Problem,
    R: Triangle,
    tol: float,
    most: int | None = None,
    impatient: bool = False,
) -> Chain:
    """Solve by LSQR for least squares, by conjugate gradients for A^T A."""
    target, extremes = float(UNIT), list[tuple[float, float]]()
    if isinstance(R, Preconditioner):
        target = max(tol / 100 * R.condition ** (-2 * problem.j - 1), UNIT)

    def by(iteration: Callable[..., Iterated]) -> Solver:
        def solve(Y: np.ndarray) -> tuple[np.ndarray, int]:
            k = Y.shape[1]
            if isinstance(R, ColumnScaling) and not extremes:
                probe = np.random.default_rng(0).standard_normal(len(Y))
                Y = np.column_stack([Y, probe])
            found = iteration(problem.A, Y, R, target, most, impatient)
            extremes.append(found.extremes)
            return found.x[:, :k], found.steps

        return solve

    name = ", ".join(["lsqr"] * problem.least_squares + ["cg"] * (problem.j > 0))
    name = name or "lsqr"  # of no solve
    chain = solve_in_turn(problem, R, name, by(lsqr), by(conjugate_gradients))
    if isinstance(R, ColumnScaling):
        chain.R = R.with_extremes(extremes)
    return chain


def _iterate_cheaply(problem: Problem, tol: float) -> Iterator[Chain]:
    """Iterate without a sketch, for as long as a Gram matrix would take.

    The constants are times on a common processor in nanoseconds. A step: for an entry
    of A, a number of a vector, a call. The Gram matrix: for a product of two entries of
    a row, the transpose, the Cholesky decomposition.
    """
    A, (n, d), k = problem.A, problem.A.shape, problem.B.shape[1] + 1  # the probe
    step = (1.7 * A.nnz + 7.0 * n + 10.0 * d) * k + 2e5
    products = float((np.diff(A.indptr).astype(float) ** 2).sum())
    gram = (10 + d / 100) * products + 20.0 * A.nnz + 0.01 * d**3 + 20.0 * d**2
    most, impatient = int(gram / step / max(len(problem), 1)), True
    if d * d * 8 > LARGEST_GRAM:
        most, impatient = 4 * d, False
    if most >= FEWEST:
        scaling = ColumnScaling.from_matrix(A)
        with suppress(TooManySteps):
            yield _iterate(problem, scaling, tol, most, impatient)


def _try_gram(problem: Problem) -> Iterator[Chain]:
    """Solve by A^T A, unless its condition number is too large for corrections."""
    found = gram_preconditioner(problem.A)
    if found is not None and found[1] > CORRECTABLE:
        yield _direct(problem, found[0], "gram")


def _demand_gram(A: Any, rng: np.random.Generator) -> Preconditioner:
    """Return the triangle of A^T A; raise if there is none."""
    found = gram_preconditioner(A)
    if found is None:
        condition = Preconditioner.from_matrix(A, refine=False, rng=rng).condition
        raise np.linalg.LinAlgError(
            "A^T A is not positive definite to rounding: the condition number of A is "
            f'{condition:.1e}. Take method="cholesky_qr".'
        )
    return found[0]
