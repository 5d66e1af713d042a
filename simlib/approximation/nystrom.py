r"""The Nyström approximation.

.. math:: \tilde K = C W^{+} C^\top, \qquad C = K_{:,S}, \; W = K_{S,S}

Equation :eq:`eq:nystrom` of the book. For an asymmetric similarity the right factor is
the rows, :math:`\tilde K = C W^{+} K_{S,:}`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from simlib._typing import Indices
from simlib.approximation.plan import Plan, nominal
from simlib.landmarks import draw
from simlib.lowrank import LowRank
from simlib.source import Source
from simlib.views import check_similarity

__all__ = ["nystrom", "nystrom_plan"]


def nystrom(
    sim: Source,
    n_landmarks: int | None = None,
    *,
    rcond: float | None = None,
    landmarks: Indices | None = None,
    rng: int | np.random.Generator | None = None,
) -> LowRank:
    """Approximate a similarity matrix from some of its columns.

    The method of choice where the matrix is positive semidefinite. On an indefinite one
    W may have eigenvalues close to zero that the pseudo-inverse blows up, and then the
    error is unbounded: see `sms_nystrom`, `sicur` and `tikhonov`.

    Parameters
    ----------
    sim : Similarity
        The n x n matrix.
    n_landmarks : int
        Number s of landmarks, 1 to n.
    rcond : float, optional
        Eigenvalues of W below `rcond` times the largest in magnitude count as zero.
        None means ``s * eps``; the code published with the paper uses 1e-15, which on
        indefinite matrices inverts rounding errors.
    landmarks : array of int, optional
        Indices to use in place of a uniform draw.
    rng : int, Generator or None
        Source of randomness.

    Returns
    -------
    LowRank
        Of rank at most s, symmetric if `sim` is; its ``left`` shares the columns.

    Raises
    ------
    ValueError
        More landmarks than items.
    BudgetExceeded, SimilarityError
        As for any request to `sim`.

    Notes
    -----
    Calls: ``n s - s (s - 1) / 2``; asymmetric ``2 n s - s^2``. Flops: O(s^3) beyond
    them. Source: Williams and Seeger (2001); Ray et al. (2022), section 2.1, which
    writes an inverse where a pseudo-inverse is needed as soon as an item is repeated.

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : positive semidefinite kernels only; on an
        indefinite one it silently returns C abs(W)^-1 C^T.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, nystrom, relative_error
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> K = X @ X.T
    >>> approximation = nystrom(Similarity.from_matrix(K), 5, rng=0)
    >>> relative_error(K, approximation) < 1e-12
    True
    """
    sim = check_similarity(sim)
    plan = nystrom_plan(
        sim.n, n_landmarks, draw=partial(draw, landmarks=landmarks, rng=rng)
    )
    S, read = plan.columns, plan.read(sim)
    core = pinv(read.C[S], symmetric=sim.symmetric, rcond=rcond)
    return LowRank(
        read.C,
        core.astype(sim.dtype),
        read.R,
        landmarks=S,
        row_landmarks=None if sim.symmetric else S,
        calls=plan.calls(sim),
        method="nystrom",
    )


def nystrom_plan(
    n: int,
    n_landmarks: int | None,
    *,
    draw: Callable[..., Any] = nominal,
    **_: object,
) -> Plan:
    """Return what `nystrom` reads."""
    S, _ = draw(n, n_landmarks)
    return Plan(n, S)


def pinv(W: np.ndarray, *, symmetric: bool, rcond: float | None = None) -> np.ndarray:
    """Return the pseudo-inverse in float64; `rcond` None is max(shape) * eps of W."""
    if rcond is None:
        rcond = max(W.shape) * np.finfo(W.dtype).eps
    if not 0 <= rcond < 1:
        raise ValueError(f"rcond must be at least 0 and below 1; got {rcond}.")
    W = W.astype(float)
    if symmetric:  # as scipy.linalg.pinvh, by a faster eigensolver
        values, vectors = scipy.linalg.eigh(W, driver="evd")
        size = np.abs(values)
        kept = size > rcond * size.max()
        inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        return (inverse + inverse.T) / 2
    return scipy.linalg.pinv(W, atol=0.0, rtol=rcond)
