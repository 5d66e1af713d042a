r"""Biharmonic matrix approximation.

.. math::
    \tilde K = P W P^\top , \qquad W = K[b, b]

Equation :eq:`eq:bha` of the book, with b the landmarks. P interpolates W along the
columns, P^T along the rows.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array
from sklearn.utils import check_array

from simlib._checks import one_collection, readable, shaped
from simlib._typing import Indices
from simlib.approximation.plan import Plan, Sides
from simlib.landmarks import draw
from simlib.lowrank import LowRank
from simlib.lowrank.lowrank import Closed
from simlib.similarity.source import Source
from simlib.similarity.views import check_similarity

INTERPOLATED = "its factor P interpolates over these; make P of the new ones too."


def biharmonic_approximation(
    sim: Source, P: np.ndarray | csr_array, landmarks: Indices
) -> LowRank:
    """Approximate a matrix that varies smoothly over a manifold.

    The method of choice if similarities are expensive and the manifold is known: it
    evaluates only similarities between landmarks.

    Parameters
    ----------
    sim : Similarity
        The n x n matrix. The approximation is symmetric if the matrix is.
    P : ndarray or sparse array, shape (n, l)
        The operator of `interpolation`. It is not copied, and can be used again.
    landmarks : array of int, shape (l,)
        The landmarks of P, in the same order.

    Returns
    -------
    LowRank
        ``left = right = P``, ``core = W``. It equals W on the landmarks, and is exact
        for a constant matrix.

    Raises
    ------
    ValueError, IndexError, BudgetExceeded, SimilarityError
        P has another shape or other landmarks, or these are out of range; any error of
        a request to `sim`.

    Notes
    -----
    l (l + 1) / 2 similarity calls (l^2 if asymmetric), no flops. Source: Turek and Huth
    (2022), eq. (6), Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, biharmonic
    >>> angle = np.arange(200) * np.pi / 100  # on a circle
    >>> sim = Similarity(angle, lambda x, y: np.exp(np.cos(x - y)))
    >>> ring = np.roll(np.eye(200), 1, axis=0) + np.roll(np.eye(200), -1, axis=0)
    >>> M = biharmonic.biharmonic_operator(biharmonic.graph_laplacian(ring))
    >>> landmarks = np.arange(0, 200, 10)
    >>> P = biharmonic.interpolation(M, landmarks)
    >>> biharmonic.biharmonic_approximation(sim, P, landmarks)
    LowRank(biharmonic_approximation: n=200, rank=20, calls=210)
    """
    sim = check_similarity(sim)
    n = one_collection(sim, "are interpolated")
    landmarks, _ = draw(n, None, landmarks=landmarks, rng=0)
    P = check_array(
        readable(P, "P"),
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        input_name="P",
    )
    shaped(P, (n, landmarks.size), "P, items by landmarks,")
    off = abs(P[landmarks] - scipy.sparse.eye_array(landmarks.size)).max()
    if not off <= 1e-6:
        raise ValueError(
            "P is not the identity on these landmarks: it was made for others, or for "
            "the same in another order."
        )
    return Closed(
        P,
        sim.block(landmarks, landmarks),
        None if sim.symmetric else P,
        landmarks=landmarks,
        calls=Plan(n, block=Sides.same(landmarks)).calls(sim),
        method="biharmonic_approximation",
        reason=INTERPOLATED,
    )
