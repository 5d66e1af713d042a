r"""A companion as a predictor: its values by rank, calibrated to what is paid for.

.. math:: B_{ij} = f(G_{ij}), \qquad f \text{ monotone, the least squares fit to } K

by isotonic regression, as in `simlib.anchored`; the direction of f is the sign of the
rank correlation. Values of G are kept to one part in 65,535 of their range, so that f
is a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.isotonic import IsotonicRegression

from simlib.approximation.companion import InnerProducts, as_companion
from simlib.approximation.tikhonov import tikhonov
from simlib.similarity.budget import BudgetExceeded, SimilarityError
from simlib.similarity.views import SimilarityMatrix

__all__ = ["Companion", "as_companion", "features", "neighbor_lists", "rising"]

LEVELS = 2**16
STRIP = 2**22  # entries of the companion computed at a time
N_FEATURES = 60  # landmarks of the companion's own approximation


class Companion:
    """The cheap similarities of n items, large where items are near.

    Parameters
    ----------
    cheap : SimilarityMatrix
        Nothing of it is kept.
    sign : int
        -1 where a small value means near.
    """

    def __init__(self, cheap: SimilarityMatrix, sign: int):
        self.cheap, self.sign, self.n = cheap, sign, cheap.n
        self.low, self.step, self.fresh = 0.0, 1.0, True
        self.table = np.zeros(LEVELS, np.float32)
        self._codes: np.ndarray | None = None

    def read(self) -> None:
        """Keep all of it, two bytes an entry."""
        n, every = self.n, np.arange(self.n)
        sample = np.random.default_rng(0).integers(n, size=(2, 2**16))
        some = self.pairs(*sample[:, sample[0] != sample[1]])
        self.set_range(some)
        self._codes = np.empty((n, n), np.uint16)
        for k in range(0, n, max(1, STRIP // n)):
            rows = every[k : k + max(1, STRIP // n)]
            block = self.sign * _asked(self.cheap.blank().block, rows, every)
            self._codes[rows] = self.codes(block)

    def set_range(self, values: np.ndarray) -> None:
        """Spread the table over the range of some values."""
        self.fresh = False
        low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
        if high > low:
            margin = (high - low) / 8
            self.low, self.step = low - margin, (high - low + 2 * margin) / (LEVELS - 1)

    def pairs(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return its values at some pairs, large where near."""
        return self.sign * _asked(self.cheap.blank().pairs, i, j)

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Return the places of values in the table."""
        codes = (values - self.low) / self.step
        return np.clip(codes, 0, LEVELS - 1).astype(np.uint16)

    def codes_at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the places in the table of some pairs."""
        if self._codes is not None:
            return self._codes[i, j]
        return self.codes(self.pairs(i, j))

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the places in the table of whole rows, once all was read."""
        assert self._codes is not None
        return self._codes[rows]

    def calibrate(self, codes: np.ndarray, nearness: np.ndarray) -> None:
        """Fit the table to pairs that are paid for."""
        count = np.bincount(codes, minlength=LEVELS)
        total = np.bincount(codes, nearness, minlength=LEVELS)
        (met,) = count.nonzero()
        if met.size:
            fit = IsotonicRegression().fit(met, total[met] / count[met], count[met])
            self.table = np.interp(
                np.arange(LEVELS), fit.X_thresholds_, fit.y_thresholds_
            ).astype(np.float32)


def _asked(request: Any, *arguments: np.ndarray) -> np.ndarray:
    try:
        values = request(*arguments)
    except SimilarityError as error:
        raise SimilarityError(f"The cheap similarity failed. {error}") from error
    except BudgetExceeded as error:
        raise BudgetExceeded(
            "The cheap similarity has a limit of its own, which does not pay for all "
            "that is asked of it: leave it without one. What the other similarity "
            "evaluated is kept."
        ) from error
    if not np.isfinite(values).all():
        raise SimilarityError("The cheap similarity holds NaN or an infinity.")
    return values


def rising(x: np.ndarray, y: np.ndarray) -> bool:
    """Tell whether the rank correlation is not negative."""
    x_rank, y_rank = rankdata(x), rankdata(y)
    return bool((x_rank - x_rank.mean()) @ (y_rank - y_rank.mean()) >= 0)


def features(cheap: SimilarityMatrix, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors Z and signs s with ``(Z * s) @ Z.T`` near the companion."""
    base = getattr(cheap, "base", None)
    if isinstance(base, InnerProducts) and isinstance(base.Z, np.ndarray):
        return base.Z, np.full(base.Z.shape[1], sign)
    answer = tikhonov(cheap.blank(), min(N_FEATURES, cheap.n), rng=0)
    Z, signs = answer.embedding()
    return np.asarray(Z), sign * signs


def neighbor_lists(Z: np.ndarray, signs: np.ndarray, m: int) -> np.ndarray:
    """Return of each item about m others with the largest ``(z_i * signs) @ z_j``.

    As distances of vectors with one more coordinate, by pynndescent where it is there.

    Returns
    -------
    array of int, shape (n, m)
        Now and then the item itself, where the library found fewer.
    """
    Z = np.asarray(Z, np.float32)
    squares = np.einsum("ij,ij->i", Z, Z)
    last = np.sqrt(np.maximum(squares.max() - squares, 0))
    points = np.hstack([Z, last[:, None]])
    queries = np.hstack([Z * signs.astype(np.float32), np.zeros((len(Z), 1), "f4")])
    try:
        from pynndescent import NNDescent
    except ImportError:
        from sklearn.neighbors import NearestNeighbors

        index = NearestNeighbors(n_neighbors=m + 1).fit(points)
        found = index.kneighbors(queries, return_distance=False)
    else:
        # A short list for each item in the index; a search for the length wanted.
        index = NNDescent(points, n_neighbors=30, random_state=0)
        found = index.query(queries, k=m + 1, epsilon=0.1)[0]
    return np.where(found < 0, np.arange(len(Z))[:, None], found)
