"""The protocol of similarity matrices: the twelve names that a method may use."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike


@runtime_checkable
class Source(Protocol):
    """An n x n matrix of similarities that evaluates what is asked, and counts it.

    A `Similarity` and its views are sources; every method of simlib takes any object
    with these twelve names, but `simlib.neighbors.search`, which compares new items.
    Indices are arrays of integers from 0 to n - 1.

    Examples
    --------
    >>> from simlib import Similarity
    >>> from simlib.similarity.source import Source
    >>> sim = Similarity([1.0, 2.0, 4.0], lambda x, y: x * y)
    >>> isinstance(sim, Source), isinstance(sim.map(abs), Source)
    (True, True)
    """

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of items."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix, (n, n)."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """Type of the values, float32 or float64."""

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether one evaluation answers for both orders of a pair."""

    @property
    @abstractmethod
    def calls(self) -> int:
        """Evaluations made so far."""

    @property
    @abstractmethod
    def limit(self) -> float | None:
        """Most evaluations that may be made."""

    @abstractmethod
    def block(self, rows: ArrayLike, columns: ArrayLike) -> np.ndarray:
        """Return K[rows][:, columns], an array of shape (len(rows), len(columns))."""

    @abstractmethod
    def columns(self, columns: ArrayLike) -> np.ndarray:
        """Return K[:, columns], shape (n, len(columns)); it may be read-only."""

    @abstractmethod
    def rows(self, rows: ArrayLike) -> np.ndarray:
        """Return K[rows], shape (len(rows), n); it may be read-only."""

    @abstractmethod
    def pairs(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        """Return K[i[k], j[k]] for every k, shape (len(i),)."""

    @abstractmethod
    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        """Return K[i[k], j[k]] where it is known and NaN elsewhere; no evaluation.

        Known is at least what was asked for: a search looks it up here.
        """

    @abstractmethod
    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the known entries as arrays (i, j, K[i, j]), each pair once."""
