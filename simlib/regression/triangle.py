"""Triangles of tall matrices: norms, condition numbers, and checks of full rank."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import LinearOperator, eigsh

from simlib._scale import norms

LARGEST = 2.0**1010  # largest norm of a column, and the inverse of the smallest norm
GRADED = 1e-10  # smaller singular values, relative to the largest, lose digits
SMALL = 500  # columns up to which all singular values are computed


def condition_number(R: np.ndarray, norm: float | None = None) -> float:
    """Return the condition number of a triangle, at most 1e100, with finite square."""
    if len(R) <= SMALL:
        values = scipy.linalg.svdvals(R)
        if values[-1] < GRADED * values[0]:
            falling = R[:, np.argsort(-norms(R), kind="stable")]
            values = scipy.linalg.svdvals(np.linalg.qr(falling, mode="r"))
        return float(values[0] / max(values[-1], 1e-100 * values[0]))
    scale = float(R.diagonal().max())
    if scale >= 1e100 * R.diagonal().min():  # a lower bound of the condition number
        return 1e100
    T = np.asfortranarray(R / scale)

    def inverse(x: np.ndarray) -> np.ndarray:
        x = solve_triangular(T, x, trans="T", check_finite=False)
        return solve_triangular(T, x, check_finite=False)

    norm = norm_of(R) if norm is None else norm
    return float(min(norm / scale * np.sqrt(_largest_eigenvalue(inverse, T)), 1e100))


def norm_of(R: np.ndarray) -> float:
    """Return the largest singular value; an estimate for more than 500 columns."""
    if len(R) <= SMALL:
        return float(np.linalg.norm(R, 2))
    scale = float(R.diagonal().max())
    T = R / scale
    return float(scale * np.sqrt(_largest_eigenvalue(lambda x: T.T @ (T @ x), T)))


def _largest_eigenvalue(
    image: Callable[[np.ndarray], np.ndarray], R: np.ndarray
) -> float:
    """Return the largest eigenvalue of a symmetric map, by some Lanczos steps."""
    operator = LinearOperator(R.shape, matvec=image, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(len(R))
    values = eigsh(operator, 1, v0=start, ncv=8, tol=0.1, return_eigenvectors=False)
    return float(values[0])


def demand_tall(n: int, d: int) -> None:
    """Raise if there are fewer rows than columns."""
    if n < d:
        raise ValueError(
            f"A has {n} rows and {d} columns, and must have at least as many rows: "
            "otherwise A^T A is singular. Take A.T, or scipy.linalg.lstsq for the "
            "solution of least norm."
        )


def demand_full_rank(R: np.ndarray) -> None:
    """Raise if columns are dependent, after scaling each to length one."""
    sizes = norms(R)
    demand_in_range(sizes)
    triangle, pivots = scipy.linalg.qr(R / sizes, mode="r", pivoting=True)
    sizes = abs(np.diag(triangle))
    least = max(len(R), 16) * np.finfo(float).eps * sizes[0]
    rank = int((sizes > least).sum())
    if rank < len(R):
        some = np.sort(pivots[rank:])
        raise np.linalg.LinAlgError(
            f"A has rank {rank} to rounding error, and {len(R)} columns: columns "
            f"{some[:10].tolist()}{' and more' if some.size > 10 else ''} are "
            "combinations of the others. Leave them out, or take scipy.linalg.lstsq, "
            "or add a ridge."
        )


def demand_in_range(sizes: np.ndarray) -> None:
    """Raise if the norm of a column is 0, or too small or too large for products."""
    if (sizes == 0).any():
        raise np.linalg.LinAlgError(
            f"Column {np.argmin(sizes)} of A is zero: leave it out."
        )
    good = (sizes >= 1 / LARGEST) & (sizes <= LARGEST)
    if not good.all():
        raise ValueError(
            f"Column {np.argmin(good)} of A has a norm of {sizes[~good][0]:.0e}, and "
            f"from {1 / LARGEST:.0e} to {LARGEST:.0e} floating-point numbers have room "
            "for products. Divide A, or such columns, by the norm, and scale x."
        )
