"""Two collections as one, in which only pairs between the two are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from simlib.approximation.companion import InnerProducts, as_companion
from simlib.similarity.requests import Block, Pairs
from simlib.similarity.views import SimilarityMatrix, View, check_similarity

__all__ = ["joined_companion"]


class Joined(View):
    """The m rows and then the n columns as the items of one symmetric similarity.

    A pair within one collection is never known and never asked for; in a block it is
    zero.
    """

    symmetric = True

    def __init__(self, base: SimilarityMatrix):
        super().__init__(base)
        self.m, _ = base.shape

    @property
    def extent(self) -> int:
        return sum(self.base.shape)

    def read(self, *blocks: Block, pairs: Pairs | None = None) -> list[np.ndarray]:
        asked: list[Block] = []
        kept = []
        for block in blocks:
            i, j = (np.arange(self.n) if k is None else np.asarray(k) for k in block)
            up, left = i < self.m, j < self.m
            asked += [(i[up], j[~left] - self.m), (j[left], i[~up] - self.m)]
            kept.append((np.zeros((i.size, j.size), self.dtype), up, left))
        across, both = np.zeros(0, bool), None
        if pairs is not None:
            across, both = self._between(*pairs)
        told = iter(self.base.read(*asked, pairs=both))
        for values, up, left in kept:
            values[np.ix_(up, ~left)] = next(told)
            values[np.ix_(~up, left)] = next(told).T
        answers = [values for values, _, _ in kept]
        if pairs is not None:
            answers.append(np.zeros(across.size, self.dtype))
            answers[-1][across] = next(told)
        return answers

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        across, both = self._between(i, j)
        values = np.full(across.size, np.nan, self.dtype)
        values[across] = self.base.peek(*both)
        return values

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        entries = self.base.known()  # now, not when the first is taken
        return ((i, j + self.m, values) for i, j, values in entries)

    def cost(self, *blocks: Block, pairs: Pairs | None = None) -> int:
        parts: list[Block] = []
        for block in blocks:
            (a, b), (c, d) = map(self._apart, block)
            parts += [(a, d), (c, b)]  # in either order
        _, both = self._between(*(pairs or ((), ())))
        return super().cost(*parts, pairs=both)

    def _apart(self, items: Any) -> tuple[Any, Any]:
        """Return the rows and the columns among some items; None stands for all."""
        if items is None:
            return None, None
        items = np.asarray(items)
        return items[items < self.m], items[items >= self.m] - self.m

    def _between(self, i: ArrayLike, j: ArrayLike) -> tuple[np.ndarray, Pairs]:
        """Tell which pairs are of a row and a column, and return these two."""
        i, j = map(np.atleast_1d, (i, j))
        across = (i < self.m) != (j < self.m)
        i, j = i[across], j[across]
        return across, (np.minimum(i, j), np.maximum(i, j) - self.m)


def joined_companion(
    cheap: Any, sim: SimilarityMatrix, distance: bool
) -> SimilarityMatrix:
    """Return the companion of two collections as one of their joined items."""
    cheap = as_companion(cheap, sim, distance=distance)
    if isinstance(base := getattr(cheap, "base", None), InnerProducts):
        stack = scipy.sparse.vstack if scipy.sparse.issparse(base.Z) else np.vstack
        return check_similarity(type(base)(stack([base.Z, base.W])))
    return Joined(cheap)
