r"""The inversion lemma for a matrix in factors, with a ridge.

.. math::
    (\tilde K + \rho I)^{-1} = D^{-1} - D^{-1} Q (I + V R^\top D^{-1} Q)^{-1}
    V R^\top D^{-1}, \qquad L = Q T, \; V = T U, \; D = \rho I + E

L = Q T is the QR decomposition. Without it the rounding errors of a large core, such as
a pseudo-inverse, would hide the small system.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.linalg import LinAlgError
from scipy.linalg import lu_solve, solve_triangular
from scipy.linalg.lapack import dgecon, dgetrf
from scipy.sparse.linalg import splu

from simlib._scale import norm, norms, unit_columns
from simlib.lowrank.tall import assembled, dense, gram_qr, qr, transposed_times

if TYPE_CHECKING:
    from simlib.lowrank.lowrank import LowRank


EPS = np.finfo(float).eps
REFINEMENTS = 40  # steps at most, each of which halves the residual
UNSOLVED = 1e-3  # times the right-hand side: the largest residual of a solution
INEXACT = 1e-9  # times its terms and their factors, likewise
DENSE_COLUMNS = 32  # columns of Q that are made at a time, if L is sparse

Solver: TypeAlias = Callable[[np.ndarray], np.ndarray]


class Orthogonal:
    """The parts of L = Q T and R that `solve` needs, in float64, made when needed."""

    def __init__(self, left: Any, right: Any):
        self.left, self.right = left, right

    @cached_property
    def decomposition(self) -> tuple[Callable[..., Any], np.ndarray, bool]:
        """Q as a function, T, and whether they come from the Gram matrix of L."""
        if scipy.sparse.issparse(self.left) and (by_gram := gram_qr(self.left)):
            return *by_gram, True
        return *qr(self.left), False

    def times(self, V: np.ndarray) -> np.ndarray:
        """Return Q V."""
        return assembled(self.decomposition[0](V), (self.left.shape[0], V.shape[1]))

    @cached_property
    def joint(self) -> np.ndarray:
        """R^T Q."""
        Q, T, by_gram = self.decomposition
        if self.right is self.left:
            return T.T
        if by_gram:
            product = dense(self.left.astype(float).T @ self.right)
            return solve_triangular(T, product, trans="T").T
        return sum(self.right[part].T @ rows for part, rows in Q(np.eye(len(T))))

    def joint_through(self, inverse: Solver) -> np.ndarray:
        """Return R^T D^-1 Q."""
        _, T, by_gram = self.decomposition
        every, step = np.eye(len(T)), DENSE_COLUMNS if by_gram else max(1, len(T))
        joint = np.empty((self.right.shape[1], len(T)))
        for start in range(0, len(T), step):
            some = slice(start, start + step)
            joint[:, some] = self.right.T @ inverse(self.times(every[:, some]))
        return joint


def solve(K: LowRank, factors: Orthogonal, y: np.ndarray, ridge: float) -> np.ndarray:
    """Return x with (K + ridge I) x = y, for y of shape (n, k), in float64."""
    inverse = _inverse_of_shift(K.residual, ridge)
    if K.residual is None:
        joint = factors.joint / ridge
    else:
        joint = factors.joint_through(inverse)
    _, T, _ = factors.decomposition
    V = T @ K.core
    small_inverse = _small_inverse(np.eye(len(V)) + V @ joint, ridge)

    def by_lemma(y: np.ndarray) -> np.ndarray:
        scaled = inverse(y)
        weights = small_inverse(V @ transposed_times(K.right, scaled))
        return scaled - inverse(factors.times(weights))

    return _refined(by_lemma, K, y, ridge, norm(T) * norm(K.core))


def _inverse_of_shift(residual: Any, ridge: float) -> Solver:
    """Return D^-1."""
    if residual is None:
        return lambda z: z / ridge
    E = scipy.sparse.csc_array(residual, dtype=float)
    try:
        return splu(E + ridge * scipy.sparse.eye_array(E.shape[0], format="csc")).solve
    except RuntimeError as error:
        raise LinAlgError(
            "The residual plus the ridge is singular; change the ridge."
        ) from error


def _small_inverse(system: np.ndarray, ridge: float) -> Solver:
    """Return the inverse of I + V R^T D^-1 Q; raise if that is singular."""
    if system.size == 0:
        return lambda small: small
    if not np.isfinite(system).all():
        raise ValueError(
            "A factor, the core or the residual holds NaN or an infinity, or they "
            "are so large, or the ridge so small, that their products overflow."
        )
    lu, pivots = dgetrf(system)[:2]
    with np.errstate(over="ignore"):  # infinity is refused below
        size = float(np.linalg.norm(system, 1))
    smallest = dgecon(lu, size)[0] * size  # 1 / |system^-1|, estimated
    if not min(smallest, 1) >= EPS * max(size, 1):  # NaN is no number either
        raise _singular(ridge)
    return partial(lu_solve, (lu, pivots))


def _refined(
    solve: Solver, K: LowRank, y: np.ndarray, ridge: float, size_of_factors: float
) -> np.ndarray:
    """Return solutions, refined because a small ridge costs D^-1 y some digits."""
    y, sizes = unit_columns(y)
    x, before = solve(y), np.full(y.shape[1], np.inf)
    for _ in range(REFINEMENTS):
        product = K.matmat(x)
        missed = y - product - ridge * x
        size, terms = norms(missed), norms(product) + abs(ridge) * norms(x) + norms(y)
        going = (size > EPS * terms) & (size < before / 2)
        if not going.any():
            break
        before = size
        x = x + np.where(going, solve(missed), 0)
    columns: Any = [K.right.data] if scipy.sparse.issparse(K.right) else K.right.T
    with np.errstate(over="ignore"):
        size_of_right = np.hypot.reduce([norm(column) for column in columns], initial=0)
        terms += size_of_factors * norms(transposed_times(K.right, x))
        least = 10 * EPS * size_of_factors * size_of_right * norms(x)  # of any solver
        if not (size <= np.minimum(UNSOLVED * norms(y), INEXACT * terms + least)).all():
            raise _singular(ridge)
        return np.ldexp(x, sizes)


def _singular(ridge: float) -> LinAlgError:
    return LinAlgError(
        f"The matrix plus {ridge:g} I is singular to working precision: minus the "
        "ridge is an eigenvalue, of it or of its residual, or negligible beside one. "
        "Change the ridge."
    )
