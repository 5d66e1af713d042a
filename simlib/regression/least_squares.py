r"""Regression with a tall matrix, by its triangle or by iterations.

.. math::
    \min_x \| A x - b \| , \qquad A^\top A\, x = y

Answers by a triangle R of A are corrected,

.. math::
    x \leftarrow x + R^{-1} R^{-\top} A^\top (b - A x) , \qquad
    x \leftarrow x + R^{-1} R^{-\top} (y - A^\top (A x)) ,

all of a chain of systems in one pass over A (equation :eq:`eq:corrected` of the book).
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
CORRECTIONS = 10  # at most
CORRECTABLE = 1e-12  # reciprocal condition number of A^T A from which corrections do
ILL = 1e7  # condition number of some rows from which A^T A is not worth a try
LARGEST_GRAM = 2**31  # bytes of A^T A that are made for a sparse A
FEWEST = 15  # steps that are worth a try


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

    `numpy.linalg.lstsq`, by the SVD, takes any rank, and many times as long;
    `scipy.sparse.linalg.lsmr` takes operators.

    Parameters
    ----------
    A : array, memory map, sparse array, or re-iterable of row blocks, shape (n, d)
        At least as many rows as columns, which are independent.
    b : array of shape (n,) or (n, k)
        Right-hand side, or several as columns.
    tol : float, default=1e-12
        Relative accuracy asked for, of ``Solution.residual``, for least squares over
        its minimum, and of x. Rounding may not permit it: see
        ``Solution.error_estimate``.
    method : str, default="auto"
        "gram": the triangle of A^T A by Cholesky's decomposition, and corrections,
        which have the digits of QR up to a condition number of some 10^6 and fail
        beyond 10^8. "cholesky_qr": that of A itself, by a sketch and one more pass, and
        corrections; has the digits of QR. "lsqr": LSQR, and conjugate gradients for
        A^T A, preconditioned by a sketch. "auto": for a dense A or for blocks "gram",
        if the condition permits it, otherwise "cholesky_qr", and "lsqr" beyond 2000
        columns; for a sparse A the iterations, without a sketch, for as long as "gram"
        would take, then "gram", then "lsqr".
    preconditioner : Preconditioner, optional
        Of the same A, made before, for "cholesky_qr" and "lsqr".
    rng : int, Generator or None
        Source of randomness for the sketch.

    Raises
    ------
    ValueError, TypeError
        Shapes that do not match, NaN or an infinity, fewer rows than columns, an option
        that does not exist, or a matrix or a solution beyond the range of
        floating-point numbers.
    numpy.linalg.LinAlgError
        Dependent columns, or by "gram" a Gram matrix that is not positive definite to
        rounding. LSQR on a sparse A need not notice dependent columns, and then gives
        the x for which the sum of ``(norm of column i * x_i)^2`` is least.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        The answer leaves more than `tol`, and more than rounding explains; or
        ``Solution.error_estimate`` is above 0.01.

    Notes
    -----
    n d^2 flops for "gram" and 2 n d^2 and a sketch for "cholesky_qr"; then two products
    of A and A^T with vectors for each correction, mostly one. "lsqr": a sketch of 4 d
    rows, 8 d^3, and some 35 products with A and A^T. A sparse A is not made dense as a
    whole, unless a sketch of it has no fewer rows. Sources: corrected seminormal
    equations, Bjorck (1987); preconditioned Cholesky QR, Fan, Guo, Lin (2021); the
    problem, Song, Yin and Zhang (2024), whose algorithms are in `study.as_printed`.

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

    `scipy.linalg.cho_solve` takes the Gram matrix, and has half of the digits.

    Parameters
    ----------
    y : array of shape (d,) or (d, k)
        Right-hand side, or several as columns.
    A, tol, method, preconditioner, rng
        As in `lstsq`, as are its errors and its cost. It warns as `simlib.even_power`.

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
    """Take the first method that arrives; all four names end here."""
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
    """Solve by the method; by "auto", by one after the other, the cheapest first."""
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
    """Solve with the triangle of A, and correct all answers by residuals with A."""

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
    """Solve by LSQR, and by conjugate gradients where there is A^T A."""
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
    chain = solve_in_turn(problem, R, name, by(lsqr), by(conjugate_gradients))
    if isinstance(R, ColumnScaling):
        chain.R = R.with_extremes(extremes)
    return chain


def _iterate_cheaply(problem: Problem, tol: float) -> Iterator[Chain]:
    """Iterate with nothing but A, for as long as a Gram matrix would take.

    By times of a common processor, in nanoseconds: an entry of A in a product, numbers
    of vectors, a call; products of two entries of a row, transpose, Cholesky.
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
    """Return the triangle of A^T A, or say why there is none."""
    found = gram_preconditioner(A)
    if found is None:
        condition = Preconditioner.from_matrix(A, refine=False, rng=rng).condition
        raise np.linalg.LinAlgError(
            "A^T A is not positive definite to rounding: the condition number of A is "
            f'{condition:.1e}. Take method="cholesky_qr".'
        )
    return found[0]
