r"""Regression with a tall matrix, and with powers of its Gram matrix.

.. math::
    \min_x \| A x - b \| , \qquad A^\top A\, x = y , \qquad
    (A^\top A)^j x = b , \qquad \min_x \| A (A^\top A)^j x - b \|

The powers are equation :eq:`eq:powers` of the book. All four are stages, one after the
other with the same preconditioner: a least-squares stage where the power of A is odd,
and j stages x_{k+1} = (A^T A)^{-1} x_k.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike

from simlib.regression import paper
from simlib.regression.iterations import (
    balanced,
    conjugate_gradients,
    heavy_ball,
    lsqr,
    normal_heavy_ball,
    norms,
)
from simlib.regression.preconditioner import Preconditioner
from simlib.regression.rows import (
    Rows,
    as_rows,
    blocks,
    is_blocks,
    multiply,
    multiply_transposed,
)

__all__ = ["Solution", "even_power", "lstsq", "odd_power", "solve_gram"]

Method = Literal["auto", "cholesky_qr", "gram", "heavy_ball", "cg", "lsqr", "paper"]
METHODS = get_args(Method)
UNIT = np.finfo(float).eps / 2
TINY = np.finfo(float).tiny
WIDE = 2000  # columns from which iterations cost less than matrix products
NARROW = 64  # columns up to which a sketch may be far from what its size promises
OVERSAMPLING = {"heavy_ball": 12, "cg": 12, "lsqr": 12, "paper": paper.OVERSAMPLING}


@dataclass(frozen=True, eq=False)
class Solution:
    """The answer to a regression, and what is known about it.

    Attributes
    ----------
    x : ndarray of shape (d,) or (d, k)
        The solution.
    residual : float
        Norm of what is left of b, relative to b: of ``A x - b``, of
        ``(A^T A)^j x - b`` or of ``A (A^T A)^j x - b``, the largest of all columns. By
        "cholesky_qr" the powers are those of R^T R, which is A^T A to rounding.
    stage_residuals : tuple of float
        For each solve with A^T A, ``R^-T (A^T A x - y)`` relative to ``R^-T y``: the
        backward error in the norm in which it can be made small, whatever the
        condition. For a first least-squares stage, ``R^-T A^T (A x - b)`` over b.
    iterations : tuple of int
        Steps of each stage; 0 for direct ones.
    condition : float
        That of A, from R.
    error_estimate : float
        Estimate of the relative error of x, norm over norm: what each stage commits,
        and what the later ones make of it. Seldom too small, often 50 times too large.
        The largest of all columns; a column of exact zeros counts as exact.
    method : str
        The method taken.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import lstsq
    >>> A = np.random.default_rng(0).standard_normal((5000, 20))
    >>> solution = lstsq(A, A[:, 0], rng=0)
    >>> solution.x.round(9)[:2].tolist()
    [1.0, 0.0]
    >>> solution.residual < 1e-12, solution.error_estimate < 1e-12, solution.iterations
    (True, True, (0,))
    >>> round(solution.condition, 1)
    2.3
    """

    x: np.ndarray
    residual: float
    stage_residuals: tuple[float, ...]
    iterations: tuple[int, ...]
    condition: float
    error_estimate: float
    method: str


def lstsq(
    A: Rows,
    b: ArrayLike,
    *,
    tol: float = 1e-12,
    method: Method = "auto",
    preconditioner: Preconditioner | None = None,
    rng: int | np.random.Generator | None = None,
) -> Solution:
    """Solve min ||A x - b|| for a tall matrix of full rank.

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
        "cholesky_qr": the triangle of A in two passes, then triangular solves, for
        least squares corrected once or thrice; digits as those of QR. "gram": A^T A and
        its Cholesky decomposition, fastest, loses twice the digits of the condition
        number. "heavy_ball", "lsqr", "cg": iterations, for sparse or very wide A ("cg"
        is for stages with A^T A, and takes LSQR here; so do stages of "lsqr" take CG).
        "heavy_ball" takes the triangle of A too up to 64 columns, as sketches of so few
        may be bad ones. "paper": the algorithms as printed.
        "auto": "gram" if the condition of the sketch permits it at this `tol`,
        iterations for sparse A and beyond 2000 columns, otherwise "cholesky_qr".
    preconditioner : Preconditioner, optional
        Of the same A, made before.
    rng : int, Generator or None
        Source of randomness for the sketch, as in `numpy.random.default_rng`.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        Shapes that do not match, NaN or an infinity, fewer rows than columns, a method
        that does not exist, or a matrix or a solution beyond the range of
        floating-point numbers.
    numpy.linalg.LinAlgError
        Dependent columns, a Gram matrix that is not positive definite to rounding, or
        steps of "paper" that diverge.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        A stage ended above `tol`, and above what rounding explains.

    See Also
    --------
    numpy.linalg.lstsq : by the SVD; takes any rank, and about twice the time.

    Notes
    -----
    2 n d^2 flops and two passes for "cholesky_qr", n d^2 and one for "gram"; for
    iterations a sketch of 12 d rows, 24 d^3, and some 30 products with A and A^T.
    Source: Song, Yin and Zhang (2024), Algorithm 4, for "paper", whose unit steps
    diverge for sketches of fewer than 11.7 d rows; the other routes are standard.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import lstsq
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((5000, 20)) * np.geomspace(1, 1e-6, 20)
    >>> solution = lstsq(A, A @ np.ones(20), rng=0)
    >>> bool(np.allclose(solution.x, 1))
    True
    >>> solution.error_estimate < 1e-8, solution.method
    (True, 'cholesky_qr')
    """
    return _solve(A, b, 0, True, tol, method, preconditioner, rng)


def solve_gram(
    A: Rows,
    y: ArrayLike,
    *,
    tol: float = 1e-12,
    method: Method = "auto",
    preconditioner: Preconditioner | None = None,
    rng: int | np.random.Generator | None = None,
) -> Solution:
    """Solve A^T A x = y.

    Parameters
    ----------
    A : array, memory map, sparse array, or re-iterable of row blocks, shape (n, d)
        As in `lstsq`.
    y : array of shape (d,) or (d, k)
        Right-hand side, or several as columns.
    tol, method, preconditioner, rng
        As in `lstsq`.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError, numpy.linalg.LinAlgError
        As `lstsq`.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        As `even_power`, of which this is the case j = 1.

    See Also
    --------
    scipy.linalg.cho_solve : with the Gram matrix at hand, and half of its digits.

    Notes
    -----
    The cost of `lstsq`, without a right-hand side of n numbers. Source: Song, Yin and
    Zhang (2024), Algorithm 5, for "paper".

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.regression import solve_gram
    >>> A = np.random.default_rng(0).standard_normal((5000, 20))
    >>> y = A.T @ (A @ np.ones(20))
    >>> bool(np.allclose(solve_gram(A, y, rng=0).x, 1))
    True
    """
    return _solve(A, y, 1, False, tol, method, preconditioner, rng)


def even_power(
    A: Rows,
    b: ArrayLike,
    j: int,
    *,
    tol: float = 1e-12,
    method: Method = "auto",
    preconditioner: Preconditioner | None = None,
    rng: int | np.random.Generator | None = None,
) -> Solution:
    """Solve (A^T A)^j x = b.

    Parameters
    ----------
    A : array, memory map, sparse array, or re-iterable of row blocks, shape (n, d)
        As in `lstsq`.
    b : array of shape (d,) or (d, k)
        Right-hand side, or several as columns.
    j : int
        At least 0; 1 is `solve_gram`.
    tol, method, preconditioner, rng
        As in `lstsq`.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError, numpy.linalg.LinAlgError
        As `lstsq`, and for a j that is negative or no integer.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        The condition number to the power 2 j times the rounding unit exceeds `tol`: for
        most b, rounding x alone leaves a larger residual. x may have many digits all
        the same: see ``Solution.error_estimate``.

    See Also
    --------
    numpy.linalg.matrix_power : forms the power, at 2 j times the loss of digits.

    Notes
    -----
    The preconditioner is made once; by "cholesky_qr" a further stage costs 2 d^2 flops.
    Source: Song, Yin and Zhang (2024), Algorithms 1, 5 and 7, for "paper".

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import even_power
    >>> A = np.random.default_rng(0).standard_normal((5000, 20))
    >>> b = A.T @ (A @ (A.T @ (A @ np.ones(20))))
    >>> solution = even_power(A, b, 2, rng=0)
    >>> bool(np.allclose(solution.x, 1))
    True
    >>> len(solution.stage_residuals), solution.method
    (2, 'gram')
    """
    _check_power(j)
    return _solve(A, b, j, False, tol, method, preconditioner, rng)


def odd_power(
    A: Rows,
    b: ArrayLike,
    j: int,
    *,
    weight: ArrayLike | None = None,
    tol: float = 1e-12,
    method: Method = "auto",
    preconditioner: Preconditioner | None = None,
    rng: int | np.random.Generator | None = None,
) -> Solution:
    """Solve min ||A (A^T A)^j x - b||.

    Parameters
    ----------
    A : array, memory map, sparse array, or re-iterable of row blocks, shape (n, d)
        As in `lstsq`.
    b : array of shape (n,) or (n, k)
        Right-hand side, or several as columns.
    j : int
        At least 0; 0 is `lstsq`.
    weight : array of shape (d, d), optional
        A symmetric positive definite W, for j = 1: solve min ||A W A^T A x - b||
        instead, linear attention with W the product of query and key weights. With
        W = C C^T that is the odd power of A C.
    tol, method, preconditioner, rng
        As in `lstsq`.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError, numpy.linalg.LinAlgError
        As `lstsq`, and for a weight that is not real, finite, symmetric and positive
        definite, or that comes with another j, with a preconditioner or with blocks.

    Notes
    -----
    The cost of `lstsq`, and of j solves more. It warns as `even_power` does. Source:
    Song, Yin and Zhang (2024), Algorithms 2 and 6, for "paper"; their Definitions A.5
    and A.6 are equivalent for symmetric positive definite W only.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import odd_power
    >>> A = np.random.default_rng(0).standard_normal((5000, 20))
    >>> b = A @ (A.T @ (A @ np.ones(20)))
    >>> bool(np.allclose(odd_power(A, b, 1, rng=0).x, 1))
    True
    """
    _check_power(j)
    if weight is None:
        return _solve(A, b, j, True, tol, method, preconditioner, rng)
    if j != 1 or preconditioner is not None or is_blocks(A):
        raise ValueError(
            "A weight is for j = 1 and a matrix A in memory, without a preconditioner "
            "of A: pass odd_power(A @ C, b, j) for a W = C C^T of your own."
        )
    A, W = as_rows(A), np.asarray(weight)
    shape = (A.shape[1], A.shape[1])
    if W.dtype.kind not in "fiub" or W.shape != shape or not np.isfinite(W).all():
        raise ValueError(
            f"The weight W must be a real and finite matrix of shape {shape}; got "
            f"{W.dtype}, shape {W.shape}."
        )
    if abs(W - W.T).max() > 1e-8 * abs(W).max():
        raise ValueError("The weight W must be symmetric, or A W A^T A is no power.")
    try:
        C = scipy.linalg.cholesky(W, lower=True)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            "The weight W must be positive definite; its least eigenvalue is "
            f"{np.linalg.eigvalsh(W)[0]:.1e}, its largest entry {abs(W).max():.1e}."
        ) from error
    found = _solve(multiply(A, C), b, 1, True, tol, method, None, rng)
    x = C @ found.x
    stretch = float(np.linalg.norm(C, 2)) * _relative(found.x, x)
    return replace(found, x=x, error_estimate=stretch * found.error_estimate)


def _check_power(j: int) -> None:
    if isinstance(j, bool) or not isinstance(j, int | np.integer) or j < 0:
        raise ValueError(f"The power j must be an integer and at least 0; got {j!r}.")


def _solve(
    A: Any,
    b: ArrayLike,
    j: int,
    least_squares: bool,
    tol: float,
    method: str,
    made: Preconditioner | None,
    rng: int | np.random.Generator | None,
) -> Solution:
    """Go through the stages; all four names are this loop."""
    if method not in METHODS:
        raise ValueError(f"`method` is one of {', '.join(METHODS)}; got {method!r}.")
    if not 0 < tol < 1:
        raise ValueError(f"tol must lie between 0 and 1; got {tol}.")
    A, b = as_rows(A), np.asarray(b)
    if is_blocks(A) and iter(A) is A:
        raise ValueError(
            "A generator gives its blocks once, and solving reads them many times: "
            "pass a list, or an object whose __iter__ starts anew."
        )
    if (
        b.dtype.kind not in "fiub"
        or b.ndim not in (1, 2)
        or b.size == 0
        or not np.isfinite(b).all()
    ):
        raise ValueError(
            "b must be real and finite, of one right-hand side or of several as "
            f"columns; got {b.dtype}, shape {b.shape}."
        )
    method, made = _route(A, tol, method, made, rng)
    d = made.rank
    rows = sum(block.shape[0] for block in blocks(A)) if is_blocks(A) else A.shape[0]
    if len(b) != (rows if least_squares else d):
        raise ValueError(
            f"b has {len(b)} entries, A shape {(rows, d)}: it must have "
            f"{rows if least_squares else d}."
        )
    decay = made.condition ** (-2 * j)
    if tol * decay < UNIT:
        reach = 2 * j * math.log10(made.condition) + math.log10(UNIT)
        warnings.warn(
            f"With a condition number of {made.condition:.1e} the rounding of x alone "
            f"leaves a residual of up to about 1e{reach:+.0f} of most b, and tol is "
            f"{tol:.0e}. See error_estimate for the digits of x.",
            scipy.linalg.LinAlgWarning,
            stacklevel=3,
        )
    target = max(tol / 100 * decay / made.condition, UNIT)
    first, stage = _stages(A, made, method, target)
    B, scale = balanced(b.astype(np.float64).reshape(len(b), -1))
    x, given, shift = B, B, np.zeros_like(scale)
    gaps, steps, errors = [], [], np.zeros(B.shape[1])
    largest = made.norm
    if j and not 2.0**-511 <= largest <= 2.0**511:  # A^T A is out of range
        raise _beyond(largest)
    if least_squares:
        x, taken = first(B)
        left = multiply(A, x) - B
        back = made.solve_transposed(multiply_transposed(A, left))
        # A column of x may be 0 exactly, unless R^-1 back is more than 0 and too small.
        lost = (norms(back) > 0) & (norms(back) < TINY * largest)
        given = np.where(x.any(axis=0) | lost, B, 0)
        gaps.append(_relative(back, B))
        steps.append(taken)
        ended = gaps[-1] * norms(B)
        errors = _errors(errors, B, x, left, ended, made, largest, method)
    for _ in range(j):
        y, more = balanced(x)
        shift = shift + more
        x, taken = stage(y)
        back = made.solve_transposed(multiply_transposed(A, multiply(A, x)) - y)
        image = made.solve_transposed(y)
        gaps.append(_relative(back, image))
        steps.append(taken)
        ended = gaps[-1] * norms(image)
        errors = _errors(errors, y, x, image, ended, made, largest, method)
    with np.errstate(over="ignore"):
        x = np.ldexp(x, shift)
        scaled = np.ldexp(x, scale)
    if not all(_in_range(X, given) for X in (x, scaled)):
        raise _beyond(largest)
    floor = 100 * UNIT * made.condition ** (2 if method == "gram" else 1)
    if max(gaps, default=0) > max(tol, floor):
        warnings.warn(
            f"By {method!r} the stages ended at residuals of up to {max(gaps):.0e}, "
            f"and tol is {tol:.0e}. If the preconditioner is of this A, make it with "
            'more oversampling, or take method="cholesky_qr".',
            scipy.linalg.LinAlgWarning,
            stacklevel=3,
        )
    return Solution(
        x=scaled.reshape(d, *b.shape[1:]),
        residual=_residual(A, B, x, j, least_squares, made, method),
        stage_residuals=tuple(gaps),
        iterations=tuple(steps),
        condition=made.condition,
        error_estimate=float(errors.max()),
        method=method,
    )


def _route(
    A: Any,
    tol: float,
    method: str,
    made: Preconditioner | None,
    rng: int | np.random.Generator | None,
) -> tuple[str, Preconditioner]:
    """Choose the method, and make what preconditioner it needs."""
    sparse = scipy.sparse.issparse(A)
    width = next(blocks(A)).shape[1] if is_blocks(A) else A.shape[1]
    if made is not None and made.rank != width:
        raise ValueError(
            f"The preconditioner is of a matrix of {made.rank} columns; A has {width}."
        )
    if method == "auto" and (sparse or width > WIDE):
        method = "heavy_ball"
    if made is None:
        oversampling = OVERSAMPLING.get(method, 4)
        made = Preconditioner.from_matrix(
            A, oversampling=oversampling, refine=False, rng=rng
        )
    if method == "auto":
        loses_little = made.condition**2 * UNIT < tol / 10
        method = "gram" if loses_little else "cholesky_qr"
    narrow = method == "heavy_ball" and width <= NARROW
    if made.distortion and (method == "cholesky_qr" or narrow):
        made = made.refined(A)
    return method, made


def _stages(
    A: Any, made: Preconditioner, method: str, target: float
) -> tuple[Callable, Callable]:
    """Return the solvers of a least-squares stage and of a stage with A^T A."""

    def direct(solve: Callable) -> tuple[Callable, Callable]:
        def first(B: np.ndarray) -> tuple[np.ndarray, int]:
            X = solve(multiply_transposed(A, B))
            for _ in range(1 if made.condition < 1e8 else 3):
                X = X + solve(multiply_transposed(A, B - multiply(A, X)))
            return X, 0

        return first, lambda Y: (solve(Y), 0)

    if method == "cholesky_qr":
        return direct(lambda Y: made.solve(made.solve_transposed(Y)))
    if method == "gram":
        scale = 2.0 ** np.round(np.log2(abs(made.R).max()))
        gram = sum(part.T @ part for part in (block / scale for block in blocks(A)))
        gram = gram.toarray() if scipy.sparse.issparse(gram) else gram
        try:
            factor = scipy.linalg.cho_factor(gram)
        except np.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(
                "A^T A is not positive definite to rounding: the condition number of A "
                f'is {made.condition:.1e}. Take method="cholesky_qr".'
            ) from error
        return direct(lambda Y: scipy.linalg.cho_solve(factor, Y / scale) / scale)
    if method == "paper":
        return paper.stages(A, made, target)
    first = heavy_ball if method == "heavy_ball" else lsqr
    stage = normal_heavy_ball if method == "heavy_ball" else conjugate_gradients
    return (
        lambda B: first(A, B, made, target),
        lambda Y: stage(A, Y, made, target),
    )


def _relative(gap: np.ndarray, reference: np.ndarray) -> float:
    """Return the largest ratio of norms of columns; 0 where both vanish."""
    gaps, sizes = norms(gap), norms(reference)
    return float(np.divide(gaps, sizes, out=np.zeros_like(gaps), where=sizes > 0).max())


def _residual(
    A: Any,
    B: np.ndarray,
    x: np.ndarray,
    j: int,
    least_squares: bool,
    made: Preconditioner,
    method: str,
) -> float:
    for _ in range(j):
        if method == "cholesky_qr":
            x = made.R.T @ (made.R @ x)
        else:
            x = multiply_transposed(A, multiply(A, x))
    return _relative((multiply(A, x) if least_squares else x) - B, B)


def _errors(
    errors: np.ndarray,
    y: np.ndarray,
    x: np.ndarray,
    left: np.ndarray,
    ended: np.ndarray,
    made: Preconditioner,
    largest: float,
    method: str,
) -> np.ndarray:
    """Estimate the relative errors of x after a stage, from those of y before.

    The stage multiplies what it is given by |y| / (sigma_min^2 |x|). It commits
    2 u (kappa + kappa^2 |left| / (|A| |x|)), where left is A x - b in a least-squares
    stage and otherwise R^-T y, by "gram" 2 u kappa^2 at least, and what iterations that
    end early leave, (1 + eta)^2 ended / (sigma_min |x|).
    """
    least = largest / made.condition
    size = norms(x)
    size = np.where(size > 0, size, np.inf)
    commits = made.condition + made.condition**2 * (norms(left) / largest / size)
    if method == "gram":
        commits = np.maximum(commits, made.condition**2)
    carried = errors / least * (norms(y) / size) / least
    ended = (1 + made.distortion) ** 2 * (ended / least / size)
    return np.where(size < np.inf, carried + 2 * UNIT * commits + ended, 0)


def _in_range(X: np.ndarray, given: np.ndarray) -> bool:
    """Tell whether all columns are finite, and none vanish but those given as 0."""
    sizes = abs(X).max(axis=0)
    return bool(np.isfinite(X).all() and ((sizes >= TINY) | ~given.any(axis=0)).all())


def _beyond(largest: float) -> ValueError:
    return ValueError(
        "The solution is beyond the range of floating-point numbers: divide A by its "
        f"norm, about {largest:.0e}, and b by its own, and scale x afterwards."
    )
