r"""The Nyström approximation.

.. math:: \tilde K = C W^{+} C^\top, \qquad C = K_{:,S}, \; W = K_{S,S}

Equation :eq:`eq:nystrom` of the book. For an asymmetric similarity the right factor is
the rows, :math:`\tilde K = C W^{+} K_{S,:}`.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from simlib._typing import Indices
from simlib.approximation.budget import cross_calls
from simlib.landmarks import draw
from simlib.lowrank import LowRank
from simlib.similarity import Similarity

__all__ = ["nystrom", "nystrom_calls"]


def nystrom(
    sim: Similarity,
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
    S, _ = draw(sim.n, n_landmarks, landmarks=landmarks, rng=rng)
    C = sim.columns(S)
    R = None if sim.symmetric else sim.rows(S).T
    core = pinv(C[S], symmetric=sim.symmetric, rcond=rcond)
    return LowRank(
        C,
        core.astype(sim.dtype),
        R,
        landmarks=S,
        row_landmarks=None if sim.symmetric else S,
        calls=cross_calls(sim.n, S.size, symmetric=sim.symmetric),
        method="nystrom",
    )


def nystrom_calls(n: int, n_landmarks: int, **_: object) -> int:
    """Return the calls of `nystrom`."""
    return cross_calls(n, n_landmarks)


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
