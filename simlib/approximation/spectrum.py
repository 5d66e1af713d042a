r"""An estimate of the spectrum from a random principal block.

.. math:: \hat\lambda_k = \tfrac{n}{s} \lambda_k(K_{S,S})

Equation :eq:`eq:spectrum-estimate` of the book.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simlib._checks import numbers, symmetric
from simlib._typing import Seed
from simlib.landmarks import uniform
from simlib.similarity.source import Source
from simlib.similarity.views import check_similarity


class Spectrum(NamedTuple):
    """Estimated eigenvalues, shape (s,), and `negative_mass`: see `estimate_spectrum`.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, estimate_spectrum
    >>> sim = Similarity.from_matrix(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> eigenvalues, mass = estimate_spectrum(sim, 2)
    >>> eigenvalues.round(3).tolist(), round(mass, 3)
    ([1.0, -1.0], 0.707)
    """

    eigenvalues: np.ndarray
    negative_mass: float


def estimate_spectrum(sim: Source, n_sample: int, *, rng: Seed = None) -> Spectrum:
    """Estimate the spectrum of a symmetric similarity matrix from a sample of items.

    Parameters
    ----------
    sim : Similarity
        The n x n matrix, symmetric.
    n_sample : int
        Size s of the principal block, 1 to n. With s = n the answer is exact.
    rng : int, Generator or None

    Returns
    -------
    Spectrum
        ``eigenvalues``, shape (s,), decreasing: those of the block times n / s. They
        estimate the eigenvalues of K that are large beside n / sqrt(s) times the
        largest entry of K, and not the many small ones. ``negative_mass``: see
        `negative_mass`.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        `sim` is not symmetric (use ``sim.symmetrized()``), or the sample is larger than
        the matrix; any error of a request to `sim`.

    Notes
    -----
    Calls: ``s (s + 1) / 2``. Flops: O(s^3). Source: Swartworth and Woodruff (2024),
    who bound the error by eps n with s of order 1 / eps^2 for entries at most 1.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, estimate_spectrum
    >>> x = np.random.default_rng(0).standard_normal((1000, 2))
    >>> K = x @ np.diag([1.0, -0.5]) @ x.T  # its eigenvalues are 1040 and -481
    >>> spectrum = estimate_spectrum(Similarity.from_matrix(K), 100, rng=0)
    >>> spectrum.eigenvalues[[0, -1]].round().tolist()
    [1068.0, -451.0]
    """
    sim = check_similarity(sim)
    symmetric(sim, "estimate_spectrum")
    S = uniform(sim.n, n_sample, rng=rng)
    values = np.linalg.eigvalsh(sim.block(S, S).astype(float))[::-1] * sim.n / S.size
    return Spectrum(values, negative_mass(values))


def negative_mass(eigenvalues: np.ndarray) -> float:
    r"""Return the part of the Frobenius norm that lies below zero.

    .. math:: \Big(\sum_{\lambda < 0} \lambda^2 \Big/ \sum \lambda^2\Big)^{1/2}

    Equation :eq:`eq:negative-mass` of the book. No positive semidefinite approximation
    has a smaller relative error.

    Parameters
    ----------
    eigenvalues : array of shape (n,)
        All eigenvalues, in any order; one that is not real and finite is a ValueError.

    Returns
    -------
    float
        0 for a positive semidefinite matrix, 1 for a negative one.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.approximation import negative_mass
    >>> negative_mass(np.array([4.0, 0.0, -3.0]))
    0.6
    """
    values = numbers(eigenvalues, "eigenvalues").astype(float)
    largest = np.abs(values).max(initial=0)
    if largest == 0:
        return 0.0
    values = values / largest
    return float(np.linalg.norm(np.minimum(values, 0)) / np.linalg.norm(values))
