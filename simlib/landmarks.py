"""Landmarks: random draws of items, and selections from an evaluated block.

Draws return indices in random order, not sorted. With the same seed a larger draw
contains a smaller one, and all methods draw the same landmarks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike

from simlib._checks import at_least, indices, numbers, whole_number
from simlib._scale import unit
from simlib._typing import Indices, Seed

__all__ = ["adaptive", "draw", "pivoted_qr", "sample_size", "uniform"]


def uniform(n: int, n_landmarks: int, *, rng: Seed = None) -> np.ndarray:
    """Draw landmarks uniformly without replacement.

    Parameters
    ----------
    n, n_landmarks : int
        Number of items, and how many of them to draw, 1 to n.
    rng : int, Generator or None

    Returns
    -------
    array of int, shape (n_landmarks,)
        Distinct indices in random order.

    Raises
    ------
    ValueError, TypeError
        More landmarks than items, fewer than one, or a number that is no integer.

    Examples
    --------
    >>> from simlib.landmarks import uniform
    >>> uniform(1000, 3, rng=0).tolist()
    [459, 206, 222]
    """
    n = whole_number(n, "The number of items")
    number = _number(n, n_landmarks)
    return np.random.default_rng(rng).permutation(n)[:number]


def draw(
    n: int,
    n_landmarks: int | None,
    oversampling: float = 1,
    *,
    nested: bool = True,
    landmarks: Indices | None = None,
    rng: Seed = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw landmarks S1, and a second sample S2 for the methods that need one.

    Parameters
    ----------
    n, n_landmarks
        As in `uniform`; `n_landmarks` may be None if `landmarks` are given.
    oversampling : float, default=1
        Size of the second sample as a multiple of the number of landmarks.
    nested : bool, default=True
        Whether the second sample contains the landmarks, or is drawn independently.
    landmarks : array of int, optional
        Indices to use in place of a draw.
    rng : int, Generator or None

    Returns
    -------
    landmarks : array of int, shape (n_landmarks,)
        S1 of the book.
    sample : array of int, shape (min(oversampling * n_landmarks, n),), rounded
        S2: the landmarks, then further items drawn uniformly; if not nested, a separate
        uniform draw.

    Raises
    ------
    ValueError, TypeError, IndexError
        As in `uniform`; indices that repeat or are out of range, or an oversampling
        below 1.

    Examples
    --------
    >>> from simlib.landmarks import draw
    >>> landmarks, sample = draw(1000, 2, oversampling=3, rng=0)
    >>> landmarks.tolist(), sample.tolist()
    ([459, 206], [459, 206, 222, 162, 711, 814])
    """
    rng, n = np.random.default_rng(rng), whole_number(n, "The number of items")
    order = rng.permutation(n)
    if landmarks is not None:
        landmarks = _valid(n, landmarks)
        if n_landmarks not in (None, landmarks.size):
            raise ValueError(
                f"n_landmarks is {n_landmarks}, but {landmarks.size} landmarks are "
                "given; leave one of the two out."
            )
        order = np.concatenate([landmarks, order[~np.isin(order, landmarks)]])
        n_landmarks = landmarks.size
    elif n_landmarks is None:
        raise ValueError("Give n_landmarks, or the indices of the landmarks.")
    n_landmarks = _number(n, n_landmarks)
    other = order if nested else rng.permutation(n)
    return order[:n_landmarks], other[: sample_size(n, n_landmarks, oversampling)]


def pivoted_qr(
    block: ArrayLike, n_landmarks: int, *, principal: bool = True, rng: Seed = None
) -> np.ndarray:
    """Pick the columns of a block that a QR decomposition with pivoting takes first.

    Each column is the farthest from the span of the columns before it, so unusual items
    are favoured. ``scipy.linalg.qr(block, pivoting=True)`` finds them, in O(m^3) flops.

    Parameters
    ----------
    block : array of shape (m, m) or (m, n)
        A principal block of the matrix; one that is not square is a ValueError. If it
        is not symmetric, an item counts with its column and its row.
    n_landmarks : int
        How many columns to pick, 1 to all of them; more are a ValueError.
    principal : bool, default=True
        False: rows and columns are of two collections, and the n columns are picked.
    rng : ignored

    Returns
    -------
    array of int, shape (n_landmarks,)
        Positions in the block, in the order in which they are picked.

    Examples
    --------
    >>> from simlib.landmarks import pivoted_qr
    >>> pivoted_qr([[3, 2, 0], [2, 2, 0], [0, 0, 2]], 2).tolist()
    [0, 2]
    """
    columns = _columns(block, principal)
    n_landmarks = _number(columns.shape[1], n_landmarks)
    return scipy.linalg.qr(columns, mode="r", pivoting=True)[1][:n_landmarks]


def adaptive(
    block: ArrayLike, n_landmarks: int, *, principal: bool = True, rng: Seed = None
) -> np.ndarray:
    """Pick columns of a block at random, unexplained columns more often.

    The probability of a column is proportional to its squared distance from the span of
    the columns before; it is uniform once everything is explained. Flops: O(m^2
    n_landmarks). Source: Deshpande et al. (2006).

    Parameters
    ----------
    block, n_landmarks, principal
        As in `pivoted_qr`; so are the answer and the errors.
    rng : int, Generator or None

    Examples
    --------
    >>> from simlib.landmarks import adaptive
    >>> block = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]  # the first two items are alike
    >>> 2 in adaptive(block, 2, rng=0)
    True
    """
    rng = np.random.default_rng(rng)
    residual = _columns(block, principal).copy()
    n_landmarks = _number(residual.shape[1], n_landmarks)
    total = np.square(residual).sum()
    free = np.ones(residual.shape[1], dtype=bool)
    picked = []
    for _ in range(n_landmarks):
        weights = np.where(free, np.square(residual).sum(axis=0), 0.0)
        if weights.sum() <= residual.size * np.finfo(float).eps ** 2 * total:
            weights = free.astype(float)
        pick = rng.choice(weights.size, p=weights / weights.sum())
        picked.append(pick)
        free[pick] = False
        length = np.linalg.norm(residual[:, pick])
        if length > 0:
            direction = residual[:, pick] / length
            residual -= np.outer(direction, direction @ residual)
    return np.array(picked)


def sample_size(n: int, n_landmarks: int, oversampling: float) -> int:
    """Return how many items `draw` puts into the second sample.

    The parameters are those of `draw`; an oversampling below 1 is a ValueError.

    Examples
    --------
    >>> from simlib.landmarks import sample_size
    >>> sample_size(1000, 300, 2), sample_size(1000, 600, 2)
    (600, 1000)
    """
    oversampling = at_least(oversampling, "oversampling", 1)
    return round(min(oversampling * n_landmarks, n))


def _columns(block: Any, principal: bool) -> np.ndarray:
    """Return one column for each item of a principal block, or the block's columns."""
    block = block.toarray() if scipy.sparse.issparse(block) else block
    block = numbers(block, "A principal block")
    if block.ndim != 2 or (principal and block.shape[0] != block.shape[1]):
        raise ValueError(f"A principal block is square; got shape {block.shape}.")
    block, _ = unit(block.astype(float))  # or squares may overflow
    alike = not principal or np.array_equal(block, block.T)
    return block if alike else np.vstack([block, block.T])


def _number(n: int, n_landmarks: float) -> int:
    return whole_number(n_landmarks, f"The number of landmarks among {n} items", 1, n)


def _valid(n: int, landmarks: Any) -> np.ndarray:
    if np.ndim(landmarks) == 0:
        raise ValueError("landmarks are indices; a number of them is n_landmarks.")
    landmarks = indices(landmarks, n, "Landmarks")
    if landmarks.size == 0 or np.unique(landmarks).size < landmarks.size:
        raise ValueError("landmarks must name at least one item, and none twice.")
    return landmarks
