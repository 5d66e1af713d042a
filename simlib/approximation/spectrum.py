r"""A look at the spectrum from a random principal block.

.. math:: \hat\lambda_k = \tfrac{n}{s} \lambda_k(K_{S,S})

Equation :eq:`eq:spectrum-estimate` of the book.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simlib.landmarks import uniform
from simlib.source import Source
from simlib.views import check_similarity

__all__ = ["Spectrum", "estimate_spectrum", "negative_mass"]


class Spectrum(NamedTuple):
    """Estimated eigenvalues, decreasing, and the share of the norm below zero."""

    eigenvalues: np.ndarray
    negative_mass: float


def estimate_spectrum(
    sim: Source, n_sample: int, *, rng: int | np.random.Generator | None = None
) -> Spectrum:
    """Estimate the spectrum of a symmetric similarity matrix from a sample of items.

    Parameters
    ----------
    sim : Similarity
        The n x n matrix, symmetric.
    n_sample : int
        Size s of the principal block, 1 to n. With s = n the answer is exact.
    rng : int, Generator or None
        Source of randomness.

    Returns
    -------
    Spectrum
        ``eigenvalues``, shape (s,), decreasing: those of the block times n / s. The
        eigenvalues of K that are large compared with n / sqrt(s) times its largest
        entry are met; the many small ones are not, and the diagonal weighs n / s times
        what it should. ``negative_mass``: see `negative_mass`.

    Raises
    ------
    ValueError
        `sim` is not symmetric (use ``sim.symmetrized()``), or the sample is larger than
        the matrix.

    Notes
    -----
    Calls: ``s (s + 1) / 2``. Flops: O(s^3). Source: Swartworth and Woodruff (2024),
    who bound the error by eps n with s of order 1 / eps^2 for entries at most 1.
    """
    sim = check_similarity(sim)
    if not sim.symmetric:
        raise ValueError(
            "Eigenvalues are estimated for symmetric matrices; pass sim.symmetrized()."
        )
    S = uniform(sim.n, n_sample, rng=rng)
    values = np.linalg.eigvalsh(sim.block(S, S).astype(float))[::-1] * sim.n / S.size
    return Spectrum(values, negative_mass(values))


def negative_mass(eigenvalues: np.ndarray) -> float:
    r"""Return the part of the Frobenius norm that lies below zero.

    .. math:: \Big(\sum_{\lambda < 0} \lambda^2 \Big/ \sum \lambda^2\Big)^{1/2}

    Equation :eq:`eq:negative-mass` of the book. No positive semidefinite approximation
    has a smaller relative error.

    Raises
    ------
    ValueError
        An eigenvalue is complex, NaN or infinite.
    """
    values = np.asarray(eigenvalues)
    if np.iscomplexobj(values) or not np.isfinite(values := values.astype(float)).all():
        raise ValueError("Eigenvalues of a symmetric matrix are real and finite.")
    largest = np.abs(values).max(initial=0)
    if largest == 0:
        return 0.0
    values = values / largest
    return float(np.linalg.norm(np.minimum(values, 0)) / np.linalg.norm(values))
