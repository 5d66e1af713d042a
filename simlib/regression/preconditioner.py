r"""A triangular factor that makes a tall matrix well conditioned.

.. math::
    S A = Q_s R_s , \qquad
    W = (A R_s^{-1})^\top (A R_s^{-1}) = C^\top C , \qquad R = C R_s

Equations :eq:`eq:preconditioner` and :eq:`eq:refined` of the book. A sketch S of a few
times d rows gives a triangle R_s for which A R_s^-1 has a condition number near
(1 + eta) / (1 - eta), eta = sqrt(d / m). One more pass makes R the triangle of a QR
decomposition of A.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtrtri

from simlib._checks import finite, one_of
from simlib._scale import column_exponents, norms
from simlib._typing import Seed
from simlib.lowrank.tall import dense, read_only
from simlib.regression import sketch as sketches
from simlib.regression.rows import Rows, as_rows, blocks, is_blocks, multiply_transposed
from simlib.regression.triangle import (
    SMALL,
    condition_number,
    demand_full_rank,
    demand_in_range,
    demand_tall,
    norm_of,
)

SketchName = Literal["sparse_sign", "srht", "gaussian", "count_sketch"]
UNIT = np.finfo(float).eps / 2
SQUARES = 2.0**450  # squares of norms between its inverse and this lose no digit


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """An upper triangular R such that the columns of A R^-1 are nearly orthonormal.

    Attributes
    ----------
    R : ndarray of float64, shape (d, d)
        Upper triangular, positive diagonal; read-only.
    condition : float
        The condition number of R, which is that of A up to (1 + eta) / (1 - eta).
    distortion : float
        eta: the singular values of A R^-1 lie between 1 / (1 + eta) and 1 / (1 - eta),
        or a little outside for unlucky draws. 0 after the refining pass.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.regression import Preconditioner
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((2000, 20)) * np.geomspace(1, 1e-6, 20)
    >>> R = Preconditioner.from_matrix(A, rng=0)
    >>> print(f"{R.condition:.0e}, {np.linalg.cond(A @ R.solve(np.eye(20))):.3f}")
    1e+06, 1.000
    """

    R: np.ndarray
    condition: float
    distortion: float
    _start: Callable[[np.ndarray], np.ndarray] | None = field(default=None, repr=False)
    _norm: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "R", read_only(self.R))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @classmethod
    def from_matrix(
        cls,
        A: Rows,
        *,
        sketch: SketchName = "sparse_sign",
        oversampling: float = 4,
        refine: bool = True,
        rng: Seed = None,
    ) -> Preconditioner:
        """Make the preconditioner of a matrix with more rows than columns.

        Parameters
        ----------
        A : array, memory map, sparse array, or iterable of such, shape (n, d)
            A matrix, or its blocks of rows in order. Blocks are read twice, so a
            generator needs ``refine=False``.
        sketch : {"sparse_sign", "srht", "gaussian", "count_sketch"}
            The function of `simlib.regression.sketch` that makes S. "srht" is not for
            blocks; "count_sketch" fails on coherent matrices.
        oversampling : float, default=4
            Rows of the sketch for each column of A, at least 1.5. If A has no more rows
            than the sketch, R is the triangle of A itself.
        refine : bool, default=True
            Whether to make the second pass, which costs as much for a sparse A as for a
            dense one.
        rng : int, Generator or None
            Source of randomness.

        Raises
        ------
        ValueError
            Fewer rows than columns, NaN or an infinity, blocks of different widths, a
            generator to be refined, an option that does not exist, or columns whose
            norm is not between 1e-304 and 1e304.
        numpy.linalg.LinAlgError
            The columns are dependent to rounding error, in a second sketch of four
            times the rows too if A can be read again. The message names them.

        Notes
        -----
        Flops: the sketch, 2 oversampling d^3 for its QR, and 2 n d^2 in matrix products
        to refine. Peak memory besides A: the sketch and a block of 4 million entries.
        Source: Rokhlin and Tygert (2008) for the first triangle, Fan, Guo, Lin (2021)
        for the second.
        """
        one_of(sketch, get_args(SketchName), "`sketch`")
        finite(oversampling, "oversampling", 1.5)
        A = as_rows(A)
        if refine and iter(A) is A:
            raise ValueError(
                "A generator gives its blocks once, and refining reads them twice: "
                "pass refine=False, a list, or an object whose __iter__ starts anew."
            )
        seed = int(np.random.default_rng(rng).integers(2**63))
        try:
            R, SA, heights = _triangle(A, sketch, oversampling, seed)
        except np.linalg.LinAlgError:  # a sketch of few rows may be so by chance
            if iter(A) is A:
                raise
            R, SA, heights = _triangle(A, sketch, 4 * oversampling, seed)
        n, d = sum(heights), len(R)
        start = partial(_start, R=R, SA=SA, sketch=sketch, heights=heights, seed=seed)
        distortion = float(np.sqrt(d / len(SA))) if len(SA) < n else 0.0
        sketched = cls(R, condition_number(R), distortion, start)
        return sketched.refined(A) if refine and distortion else sketched

    def refined(self, A: Rows) -> Preconditioner:
        """Return the triangle of A itself, by one more pass over A: 2 n d^2 flops."""
        inverse = self.solve(np.eye(self.rank))
        W = np.zeros_like(self.R)
        height = 0
        for block in blocks(as_rows(A), cut_sparse=True):
            height += block.shape[0]
            self.demand_width(block.shape[1])
            if scipy.sparse.issparse(block):
                Q = block @ inverse
            else:  # a product with a triangle
                Q = dtrmm(1.0, inverse, block.T, trans_a=True).T
            W += Q.T @ Q
        if not height:
            raise ValueError(
                "A has no rows left: a generator gives its blocks once. Pass a list, "
                "or an object whose __iter__ starts anew."
            )
        R = scipy.linalg.cholesky(W) @ self.R
        return replace(
            self, R=R, condition=condition_number(R), distortion=0.0, _start=None
        )

    def demand_width(self, d: int) -> None:
        """Raise if d is not the number of columns of this preconditioner."""
        if d != self.rank:
            raise ValueError(
                f"The preconditioner is of a matrix of {self.rank} columns; A has {d}."
            )

    def start(self, A: Any, B: np.ndarray) -> np.ndarray:
        """Return R x for the sketched equations; for the normal ones if refined."""
        if self._start is not None:
            return self._start(B)
        return self.solve_transposed(multiply_transposed(A, B))

    @cached_property
    def norm(self) -> float:
        """The largest singular value of R; that of A differs by the distortion."""
        return norm_of(self.R) if self._norm is None else self._norm

    @cached_property
    def sizes(self) -> np.ndarray:
        """The norms of the columns of R; those of A differ by the distortion."""
        return norms(self.R)

    @cached_property
    def standard_errors(self) -> np.ndarray:
        """The norms of the rows of R^-1; upper bounds for more than 500 columns."""
        triangle = self.R / self.sizes
        if self.rank > SMALL:
            return condition_number(triangle, 1.0) / self.sizes
        return np.linalg.norm(dtrtri(triangle)[0], axis=1) / self.sizes

    @property
    def rank(self) -> int:
        """The number of columns, which is the rank: a smaller rank is an error."""
        return len(self.R)

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return R^-1 B, for B of shape (d,) or (d, k)."""
        return solve_triangular(self.R, B, check_finite=False)

    def solve_transposed(self, B: np.ndarray) -> np.ndarray:
        """Return R^-T B, for B of shape (d,) or (d, k)."""
        return solve_triangular(self.R, B, trans="T", check_finite=False)


@dataclass(frozen=True, eq=False)
class ColumnScaling:
    """The diagonal R that makes the columns of A R^-1 have length one.

    The methods are those of `Preconditioner`. `extremes` are estimates of the smallest
    and the largest singular value of A R^-1, by an iteration.
    """

    sizes: np.ndarray
    extremes: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def from_matrix(cls, A: Any) -> ColumnScaling:
        """Compute the norms of the columns of a sparse matrix; raise if one is 0."""
        (A,) = blocks(A)
        with np.errstate(over="ignore"):
            sizes = np.sqrt(np.bincount(A.indices, A.data**2, A.shape[1]))
        if not ((sizes > 1 / SQUARES) & (sizes < SQUARES)).all():
            largest = abs(A).max(axis=0).toarray()
            exponents = column_exponents(largest[None])
            squares = np.ldexp(A.data, -exponents[A.indices]) ** 2
            sums = np.bincount(A.indices, squares, A.shape[1])
            sizes = np.ldexp(np.sqrt(sums), exponents)
        demand_in_range(sizes)
        return cls(sizes)

    def with_extremes(self, extremes: list[tuple[float, float]]) -> ColumnScaling:
        """Return the same scaling with extremes over several iterations."""
        told = [pair for pair in extremes if pair[1] > 0]
        if not told:
            return self
        largest = max(high for _, high in told)
        least = max(min(low for low, _ in told), 1e-16 * largest)
        return replace(self, extremes=(least, largest))

    @property
    def norm(self) -> float:
        """An upper bound of the largest singular value of A."""
        return float(self.extremes[1] * self.sizes.max())

    @property
    def standard_errors(self) -> np.ndarray:
        """Upper bounds of the norms of the rows of the inverse of the triangle of A."""
        return 1 / (self.extremes[0] * self.sizes)

    @property
    def condition(self) -> float:
        """An upper bound of the condition number of A, at most 1e100."""
        with np.errstate(over="ignore"):
            bound = self.norm / self.extremes[0] / float(self.sizes.min())
        return float(min(bound, 1e100))

    @property
    def distortion(self) -> float:
        """The number that replaces eta in an estimate of errors."""
        return float(self.extremes[0] ** -0.5 - 1)

    def start(self, A: Any, B: np.ndarray) -> np.ndarray:
        """Return zeros: nothing is known of the solution of A x = B."""
        return np.zeros((len(self.sizes), B.shape[1]))

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return R^-1 B, for B of shape (d, k)."""
        return B / self.sizes[:, None]

    def solve_transposed(self, B: np.ndarray) -> np.ndarray:
        """Return R^-T B, for B of shape (d, k)."""
        return self.solve(B)


Triangle: TypeAlias = Preconditioner | ColumnScaling


def rounding_errors(R: Triangle, X: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return estimates of |A dx|, where dx are the rounding errors of solutions X.

    They are u (|D x| + s |left|). D holds the lengths of the columns, s is the largest
    product of a standard error and the length of its column, and `left` is A x - b for
    least squares, R^-T y for A^T A x = y.
    """
    spread = (R.sizes * R.standard_errors).max()
    return UNIT * (norms(R.sizes[:, None] * X) + spread * norms(left))


def _triangle(
    A: Any, sketch: str, oversampling: float, seed: int
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return the triangle of S A, S A, and the heights of the blocks of A."""
    SA, heights = _sketch(A, sketch, oversampling, seed)
    demand_tall(sum(heights), SA.shape[1])
    # The stub has QRResult for every mode.
    R: np.ndarray = np.linalg.qr(SA, mode="r")  # type: ignore[assignment]
    R *= np.where(np.diag(R) < 0, -1.0, 1.0)[:, None]
    demand_full_rank(R)
    return R, SA, heights


def _sketch(
    A: Any, sketch: str, oversampling: float, seed: int
) -> tuple[np.ndarray, list[int]]:
    """Return S A and the heights of the blocks of A; A itself if it has fewer rows.

    S consists of a sketch for each block.
    """
    if sketch == "srht" and is_blocks(A):
        raise ValueError(
            'The transform of sketch="srht" mixes all rows; blocks of rows want '
            '"sparse_sign".'
        )
    make, rng = getattr(sketches, sketch), np.random.default_rng(seed)
    heights, waiting, SA, m = [], [], np.zeros(()), 0
    parts = blocks(A)
    if sketch == "srht" and not scipy.sparse.issparse(A):
        parts = iter([np.vstack(list(parts))])
    for block in parts:
        m = m or int(np.ceil(oversampling * block.shape[1]))
        heights.append(block.shape[0])
        waiting.append(block)
        if sum(heights) > m:
            for part in waiting:
                SA = SA + dense(make(m, part.shape[0], rng=rng) @ part)
            waiting = []
    if not heights:
        raise ValueError("A has no rows.")
    short = sum(heights) <= m
    return (np.vstack([dense(part) for part in waiting]) if short else SA), heights


def _start(
    B: np.ndarray,
    *,
    R: np.ndarray,
    SA: np.ndarray,
    sketch: str,
    heights: list[int],
    seed: int,
) -> np.ndarray:
    """Return R x for the sketched equations S A x = S B; `seed` makes S again."""
    if len(B) != sum(heights):
        raise ValueError(
            f"The preconditioner is of a matrix of {sum(heights)} rows; A has {len(B)}."
        )
    make, m, rng = getattr(sketches, sketch), len(SA), np.random.default_rng(seed)
    if m < len(B):
        parts = np.split(B, np.cumsum(heights)[:-1])
        B = sum(make(m, len(part), rng=rng) @ part for part in parts)
    return solve_triangular(R, SA.T @ B, trans="T")
