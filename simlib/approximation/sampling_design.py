r"""Stratified samples of the unknown pairs.

Two numbers that need no call assign a pair to a stratum: its predicted similarity, and
how alike the rows of the two items in the factors are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.ndimage
import scipy.optimize
import scipy.sparse
import scipy.special
import scipy.stats

from simlib._scale import unit
from simlib.lowrank import LowRank
from simlib.lowrank.tall import dense, triangle
from simlib.similarity.known import among
from simlib.similarity.views import SimilarityMatrix

POOL = 2**19  # pairs that are sorted into strata, a random sample if more are unknown
STEP = 4.0  # ratio of the sizes of neighbouring strata in a tail
LEAST = 4  # pairs that are evaluated in a stratum, at least
WINDOW = np.ones((3, 5))  # strata that share their variance: likeness x prediction


class Strata(NamedTuple):
    """The pairs of a pool in a grid of cells: likeness by predicted similarity."""

    cell: np.ndarray  # the cell of each pair of the pool
    shape: tuple[int, int]  # of the grid
    sizes: np.ndarray  # number of pairs in each cell
    numbers: np.ndarray  # number of pairs to evaluate in each cell
    unknown: int  # number of unknown pairs, of which the pool may be a sample

    @classmethod
    def of(
        cls, likeness: np.ndarray, prediction: np.ndarray, n_pairs: int, unknown: int
    ) -> Strata:
        """Lay the grid, as fine in the tails as `n_pairs` allow."""
        depth = max(n_pairs // (2 * LEAST), 1).bit_length() - 1
        tail = STEP ** -np.arange(1.0, depth + 1)
        lower = tail[: depth // 2][::-1]
        a, rows = _levels(likeness, 1 - tail)
        b, columns = _levels(prediction, np.concatenate([lower, 1 - tail[:-1]]))
        cell = (a * columns + b).astype(np.int16)  # some hundreds; int16 sorts fast
        sizes = np.bincount(cell, minlength=rows * columns)
        numbers = _allocation(sizes, n_pairs)
        return cls(cell, (rows, columns), sizes, numbers, unknown)

    def enlarged(self, n_pairs: int) -> Strata:
        """Return the same strata with at least `n_pairs` pairs to evaluate."""
        numbers = np.maximum(_allocation(self.sizes, n_pairs), self.numbers)
        return self._replace(numbers=numbers)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Return the places in the pool of a simple random sample of each cell."""
        order = np.argsort(rng.random(self.cell.size))
        order = order[np.argsort(self.cell[order], kind="stable")]
        rank = np.arange(order.size) - np.repeat(
            np.cumsum(self.sizes) - self.sizes, self.sizes
        )
        return order[rank < self.numbers[self.cell[order]]]

    @property
    def weights(self) -> np.ndarray:
        """The number of unknown pairs for each evaluated pair, by cell."""
        scale = self.unknown / max(self.cell.size, 1)
        return scale * self.sizes / np.maximum(self.numbers, 1)

    def variance(self, chosen: np.ndarray, values: np.ndarray) -> tuple[float, float]:
        """Return the variance of the estimated total, and the variance of this."""
        cell, number = self.cell[chosen], np.maximum(self.numbers, 1)
        mean, square = (
            np.bincount(cell, v, self.sizes.size) / number for v in (values, values**2)
        )
        spread = number * np.maximum(square - mean**2, 0)
        freedom = np.maximum(self.numbers - 1, 0)

        def together(x: np.ndarray) -> np.ndarray:
            grid = x.reshape(self.shape).astype(float)
            return scipy.ndimage.convolve(grid, WINDOW, mode="constant").ravel()

        own = spread / np.maximum(freedom, 1)
        shared = together(spread) / np.maximum(together(freedom), 1)
        left_out = 1 - self.numbers / np.maximum(self.sizes, 1)
        terms = self.weights**2 * number * left_out * np.maximum(own, shared)
        variance = terms.sum()
        uncertainty = (terms**2 / np.maximum(freedom, 1)).sum()
        if self.cell.size < self.unknown:  # the pool is a sample itself
            share = self.sizes / self.cell.size
            of_pool = share @ square - (share @ mean) ** 2
            left_out = 1 - self.cell.size / self.unknown
            variance += self.unknown**2 / self.cell.size * left_out * of_pool
        return variance, uncertainty


def pool(
    sim: SimilarityMatrix,
    known: np.ndarray,
    unknown: int,
    n_pairs: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the unknown pairs off the diagonal, or a random sample of them.

    `known` are the sorted numbers i n + j of the known pairs, i <= j if symmetric.
    """
    size, (m, n) = max(POOL, 8 * n_pairs), sim.shape
    if unknown <= 4 * size:
        found = [np.zeros((2, 0), dtype=int)]
        step = max(1, POOL // n)
        for k in range(0, m, step):
            i, j = np.indices((min(step, m - k), n)).reshape(2, -1)
            found.append(_unknown(sim, known, i + k, j))
        i, j = np.concatenate(found, axis=1)
        if unknown <= size:
            return i, j
        chosen = np.sort(rng.choice(i.size, size, replace=False))
        return i[chosen], j[chosen]
    keys = np.zeros(0, dtype=int)
    while keys.size < size:
        i, j = rng.integers([[m], [n]], size=(2, size))
        if sim.symmetric:
            i, j = np.minimum(i, j), np.maximum(i, j)
        i, j = _unknown(sim, known, i, j)
        keys = np.sort(np.append(keys, i * n + j))
        keys = keys[np.append(True, keys[1:] > keys[:-1])]
    keys = np.sort(rng.choice(keys, size, replace=False))
    return np.divmod(keys, n)


def _unknown(
    sim: SimilarityMatrix, known: np.ndarray, i: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Return the unknown pairs off the diagonal; with i < j if symmetric."""
    if not isinstance(sim.extent, tuple):
        off = i < j if sim.symmetric else i != j
        i, j = i[off], j[off]
    return np.stack([i, j])[:, ~among(i * sim.shape[1] + j, known)]


def features(
    approximation: LowRank, i: np.ndarray, j: np.ndarray, *, two: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the likeness and the predicted similarity of pairs.

    For two collections the likeness is the product of the norms of row and column.
    """
    if two:
        rows, columns = _lengths(approximation)
        return rows[i] * columns[j], approximation.entries(i, j).astype(float)
    profiles = _profiles(approximation)
    alike = LowRank(profiles, np.eye(profiles.shape[1]))
    prediction = approximation.entries(i, j).astype(float)
    if not approximation.symmetric:
        prediction += approximation.entries(j, i)
    return alike.entries(i, j), prediction


def _lengths(approximation: LowRank) -> list[np.ndarray]:
    """Return the norms of rows and columns of the factor part, scaled to at most 1."""
    lengths = []
    for K in (approximation, approximation.T):
        left, right = dense(K.left).astype(float), dense(K.right).astype(float)
        half, _ = unit(left @ (K.core @ triangle(right).T))
        length = np.linalg.norm(half, axis=1)
        lengths.append(length / (length.max() or 1))
    return lengths


def _profiles(approximation: LowRank) -> np.ndarray:
    """Return the rows of the factors as normal scores, whitened, of length one."""
    n, factors = approximation.shape[0], [approximation.left]
    if not approximation.symmetric:
        factors.append(approximation.right)
    ranks = np.vstack([scipy.stats.rankdata(dense(f).T, axis=1) for f in factors]).T
    scores = scipy.special.ndtri((ranks - 0.5) / n)
    values, vectors = np.linalg.eigh(scores.T @ scores)
    keep = values > n * np.finfo(float).eps * values.max(initial=0)
    profiles = scores @ (vectors[:, keep] / np.sqrt(values[keep]))
    length = np.linalg.norm(profiles, axis=1, keepdims=True)
    return profiles / np.where(length > 0, length, 1)


def _levels(values: np.ndarray, quantiles: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the level of each value between quantiles, and the number of levels."""
    if quantiles.size == 0:
        return np.zeros(values.size, dtype=int), 1
    edges = np.quantile(values, quantiles)
    return np.searchsorted(edges, values), quantiles.size + 1


def _allocation(sizes: np.ndarray, total: int) -> np.ndarray:
    """Return sample sizes, in proportion to the roots of the sizes where possible."""
    if total >= sizes.sum():
        return sizes
    least = np.minimum(sizes, min(LEAST, total // int(np.count_nonzero(sizes))))
    root = np.sqrt(sizes)

    def numbers(t: float) -> np.ndarray:
        return np.clip(t * root, least, sizes)

    t = scipy.optimize.brentq(lambda t: numbers(t).sum() - total, 0, root.max())
    rounded = np.floor(np.cumsum(numbers(t)) + 0.5).astype(int)
    return np.minimum(np.diff(rounded, prepend=0), sizes)
