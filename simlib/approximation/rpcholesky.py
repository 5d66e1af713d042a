r"""Randomly pivoted Cholesky.

.. math::
    \tilde K = F F^\top, \qquad F = C L^{-\top}, \quad L L^\top = W, \qquad
    \Pr(s_{k+1} = j) \propto (K - \tilde K_k)_{jj}

Equation :eq:`eq:rpcholesky` of the book, with C = K[:, S], W = K[S, S] and
:math:`\tilde K_k` from the first k landmarks: a landmark is drawn with a probability
proportional to the diagonal of the residual.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from simlib import _scale
from simlib._checks import finite, numbers, symmetric, whole_number
from simlib._typing import Indices, Seed
from simlib.approximation.plan import Plan, Sides, drawn, nominal
from simlib.lowrank import LowRank
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity


def rpcholesky(
    sim: Source,
    n_landmarks: int | None = None,
    *,
    block_size: int = 64,
    tol: float = 1e-11,
    landmarks: Indices | None = None,
    rng: Seed = None,
) -> LowRank:
    r"""Approximate a positive semidefinite matrix by randomly pivoted Cholesky.

    The method of choice for kernels with outliers or small clusters, which a uniform
    draw misses, and for smooth kernels, where it keeps digits that `nystrom` loses.

    Parameters
    ----------
    sim, n_landmarks, rng
        As in `nystrom`; `sim` is symmetric and positive semidefinite.
    block_size : int, default=64
        How many landmarks are proposed, and their columns evaluated, at a time. The
        distribution of the landmarks and the number of calls do not depend on it,
        unless `tol` ends the draw: the trace is known after each block.
    tol : float, default=1e-11
        Stop drawing, with fewer landmarks, once the trace of the residual is at most
        `tol` times the trace of K. Residuals that are negative by at most `tol` times
        the largest diagonal entry count as rounding errors: raise `tol` if the
        similarities have fewer digits.
    landmarks : array of int, optional
        Indices to use in place of the draw. A landmark that earlier landmarks explain
        to rounding error, such as a repeated item, is left out.

    Returns
    -------
    LowRank
        Symmetric, positive semidefinite, of rank at most s. Its ``left`` is F, shape
        (n, rank), its ``core`` the identity; ``extend`` solves with L.

    Raises
    ------
    ValueError
        `sim` is not symmetric (use ``sim.symmetrized()``), or an option out of range.
    numpy.linalg.LinAlgError
        A residual diagonal entry is negative beyond rounding, so K is indefinite. `sim`
        keeps the evaluated entries, and `tikhonov` can use them.
    BudgetExceeded, SimilarityError
        As for any request to `sim`.

    Notes
    -----
    Calls: ``n r - r (r - 1) / 2`` for the r columns of the answer plus ``n - r`` for
    the rest of the diagonal; a column if that is zero. Flops: O(n r^2). A residual
    below 100 rounding units of the largest diagonal entry counts as zero.
    ``scipy.linalg.lapack.dpstrf`` takes the item of largest residual in each step, and
    reads the whole matrix.

    Source: Chen, Epperly, Tropp and Webber (2025), Algorithm 1, with the rejection of
    Epperly, Tropp and Webber (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, rpcholesky
    >>> x = np.linspace(0, 1, 200)
    >>> K = np.exp(-((x[:, None] - x) ** 2))
    >>> rpcholesky(Similarity.from_matrix(K), 50, rng=0).rank < 15
    True
    """
    sim, rng = check_similarity(sim), np.random.default_rng(rng)
    symmetric(sim, "rpcholesky")
    block_size = whole_number(block_size, "block_size", 1)
    tol = finite(tol, "tol", 0, 1)
    choose = partial(drawn, landmarks=landmarks, rng=rng)
    plan = rpcholesky_plan(sim.n, n_landmarks, draw=choose)
    S = plan.columns
    if landmarks is not None:
        plan.check(sim)
    cholesky = _PartialCholesky(_Entries(sim, S.size), S.size, tol)
    if landmarks is None:
        cholesky.draw(block_size, rng)
    else:
        cholesky.add(S, np.zeros(S.size))
    if cholesky.rank == 0:
        cholesky.check_column(S[0])
    return _Factored(
        cholesky.F[:, : cholesky.rank].astype(sim.dtype, copy=False),
        np.eye(cholesky.rank, dtype=sim.dtype),
        landmarks=cholesky.landmarks,
        calls=plan.first(max(cholesky.rank, 1)).calls(sim),
        method="rpcholesky",
    )


def rpcholesky_plan(
    n: int, n_landmarks: int | None, *, draw: Any = nominal, **_: object
) -> Plan:
    """Return what `rpcholesky` reads at most; it reads less if it stops early."""
    S, _ = draw(n, n_landmarks)
    return Plan(n, S, diagonal=True)


class _Factored(LowRank):
    """F F^T, where the rows of F at the landmarks are the triangle L."""

    def extend(self, columns: ArrayLike) -> np.ndarray:
        columns = np.atleast_2d(numbers(columns, "columns"))
        of_transpose = self.landmarks is None
        L = self.left[self.row_landmarks if of_transpose else self.landmarks]
        sides = columns.shape[1] // max(self.rank, 1)  # 2 for a core that has two
        if sides and sides * self.rank == columns.shape[1]:
            parts = np.split(columns, sides, axis=1)
            columns = np.hstack([_divide(part, L) for part in parts])
        return super().extend(columns)


class _PartialCholesky:
    """F, the landmarks, and the diagonal of K - F F^T, block by block."""

    def __init__(self, entries: _Entries, most: int, tol: float):
        self.entries = entries
        self.residual = entries.diagonal()
        self.F = np.empty((self.residual.size, most), order="F")
        self.landmarks = np.zeros(0, dtype=np.intp)
        self.largest, self.tol, self._noise = np.abs(self.residual).max(), tol, 0.0
        self._check(np.arange(self.residual.size), self.residual, self.F[:, :0], [])

    @property
    def rank(self) -> int:
        return self.landmarks.size

    def draw(self, block_size: int, rng: np.random.Generator) -> None:
        """Add landmarks until there are enough, or the trace is explained."""
        unit = _scale.exponent(self.largest)  # or the sums may overflow
        enough = self.tol * np.ldexp(self.residual, -unit).sum()
        while self.rank < self.F.shape[1]:
            weights = np.where(self.residual > self._rounding, self.residual, 0.0)
            shares = np.ldexp(weights, -unit)
            if shares.sum() <= enough:
                break
            proposals = rng.choice(weights.size, block_size, p=shares / shares.sum())
            self.add(proposals, weights[proposals] * rng.random(block_size))

    def add(self, proposals: np.ndarray, thresholds: np.ndarray) -> None:
        """Take the proposals whose residual passes the threshold, and their columns."""
        S, L = self._accepted(proposals, thresholds)
        F, new = self.F[:, : self.rank], self.F[:, self.rank :][:, : S.size]
        new[:] = _divide(self.entries.columns(self.landmarks, S) - F @ F[S].T, L)
        self.residual -= np.einsum("ik,ik->i", new, new)
        self.landmarks = np.append(self.landmarks, S)
        every, F = np.arange(self.residual.size), self.F[:, : self.rank]
        self._check(every, self.residual, F, [])

    def _accepted(
        self, proposals: np.ndarray, thresholds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the accepted proposals and the Cholesky factor of their residual."""
        F, residual = self.F[proposals, : self.rank], self.residual[proposals]
        room = self.F.shape[1] - self.rank
        L = np.zeros((proposals.size, min(proposals.size, room)))
        taken: list[int] = []
        for k, threshold in enumerate(thresholds):
            if residual[k] <= max(threshold, self._rounding):
                continue
            m, later = len(taken), slice(k + 1, None)
            taken.append(k)
            L[k, m] = np.sqrt(residual[k])
            if len(taken) == room:
                break
            decided = np.append(self.landmarks, proposals[taken])
            column = self.entries.column(decided, proposals[later])
            column = column - F[later] @ F[k] - L[later, :m] @ L[k, :m]
            L[later, m] = column / L[k, m]
            residual[later] -= L[later, m] ** 2
            self._check(proposals, residual, np.hstack([F, L[:, : m + 1]]), taken)
        return proposals[taken], L[taken, : len(taken)]

    @property
    def _unit(self) -> float:
        """The rounding error of the largest diagonal entry, a hundred units of it."""
        return float(100 * self.entries.eps * self.largest)

    @property
    def _rounding(self) -> float:
        """The bound that the residual of a landmark has to exceed."""
        return max(self._unit, 10 * self._noise)

    @property
    def _allowed(self) -> float:
        """By how much a residual may be negative."""
        return max(self.tol * self.largest, self._rounding)

    def _check(
        self,
        items: np.ndarray,
        residual: np.ndarray,
        rows: np.ndarray,
        taken: list[int],
    ) -> None:
        """Raise where the diagonal of the residual is negative beyond rounding."""
        worst = int(np.argmin(residual))
        if residual[worst] >= -self._allowed:
            return
        known = rows.shape[1] - len(taken)
        L = np.zeros((rows.shape[1], rows.shape[1]))
        L[:known, :known] = self.F[self.landmarks, :known]
        L[known:] = rows[taken]
        # Rounding errors grow by this factor: large if landmarks are nearly dependent.
        inner = scipy.linalg.solve_triangular(L, rows[worst], trans="T", lower=True)
        explained = self._unit * (1 + np.square(inner).sum())
        if residual[worst] < -explained:
            raise _indefinite(
                f"the residual diagonal is {residual[worst]:.3g} at item {items[worst]}"
            )
        self._noise = max(self._noise, -float(residual[worst]))

    def check_column(self, j: int) -> None:
        """Raise where K[i, j]^2 > K[i, i] K[j, j], with K[j, j] about 0."""
        column = self.entries.columns(self.landmarks, [j])[:, 0].astype(float)
        worst = np.argmax(np.abs(column))
        bound = np.sqrt(self.largest) * np.sqrt(self._allowed)
        if np.abs(column[worst]) > bound:
            raise _indefinite(
                f"item {j} has the diagonal entry {self.residual[j]:.3g}, but the "
                f"similarity {column[worst]:.3g} with item {worst}"
            )


class _Entries:
    """Entries of K, after a check that the budget pays for the whole answer."""

    def __init__(self, sim: SimilarityMatrix, most: int):
        self.sim, self.most = sim, most
        self._affordable = sim.remaining == np.inf
        self._single, self._fine = True, False  # all fit float32; some use all its bits

    @property
    def eps(self) -> float:
        """The rounding unit of the values: that of float32 if all values fit in it."""
        single = self._single and self._fine
        return float(np.finfo(np.float32 if single else self.sim.dtype).eps)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal in float64."""
        self._afford(())
        return self.sim.diagonal().astype(float)

    def columns(self, landmarks: np.ndarray, new: ArrayLike) -> np.ndarray:
        """Return the columns `new`, where those of the landmarks are already read."""
        self._afford(np.append(landmarks, new))
        return self._seen(self.sim.columns(new))

    def column(self, landmarks: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return some entries of the column of the last landmark."""
        self._afford(landmarks)
        return self._seen(self.sim.block(rows, landmarks[-1:]))[:, 0]

    def _seen(self, values: np.ndarray) -> np.ndarray:
        if self._single:
            with np.errstate(over="ignore"):
                single = values.astype(np.float32)
            self._single = bool((single == values).all())
            self._fine = self._fine or bool((single.view(np.int32) & 15).any())
        return values

    def _afford(self, landmarks: ArrayLike) -> None:
        """Check the budget for these landmarks and for all that may follow."""
        if self._affordable:
            return
        sim, n = self.sim, self.sim.n
        landmarks = np.asarray(landmarks, dtype=np.intp)
        decided = Plan(n, Sides.same(landmarks), diagonal=True)
        price = decided.price(sim)
        if price == 0:
            return
        known = decided.price(sim.blank()) - price
        order = np.append(landmarks, np.setdiff1d(np.arange(n), landmarks))
        plan = Plan(n, Sides.same(order[: self.most]), diagonal=True)
        plan.check(sim, lambda plan: plan.price(sim.blank()) - known)
        self._affordable = True


def _divide(columns: np.ndarray, L: np.ndarray) -> np.ndarray:
    """Return columns L^-T; entries above the diagonal of L are not used."""
    return scipy.linalg.solve_triangular(L, columns.T, lower=True, check_finite=False).T


def _indefinite(reason: str) -> np.linalg.LinAlgError:
    return np.linalg.LinAlgError(
        f"The matrix is not positive semidefinite: {reason}. Use tikhonov, which takes "
        "any matrix and finds what was evaluated here known; or raise `tol`, if the "
        "similarities are exact to fewer digits."
    )
