"""Which entries of a matrix a number of blocks have in all, and how many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Block", "Region"]

Block: TypeAlias = tuple[ArrayLike | None, ArrayLike | None]
"""Rows and columns of a matrix; None stands for all of them."""

MOST = 31  # blocks: each has two bits of an integer


class Region:
    """The entries of some blocks of an n x n matrix, less those of others.

    Items that stand in the same rows and columns of all the blocks are alike, and there
    are few kinds of them: nothing here has the size of a block.

    Parameters
    ----------
    n : int
        Size of the matrix.
    blocks : iterable of Block
        What is inside.
    symmetric : bool
        Whether (i, j) and (j, i) are one entry.
    without : iterable of Block
        What is outside all the same.
    diagonal : bool
        Whether entries (i, i) can be inside.
    """

    def __init__(
        self,
        n: int,
        blocks: Iterable[Block],
        *,
        symmetric: bool,
        without: Iterable[Block] = (),
        diagonal: bool = True,
    ):
        inside, outside = list(blocks), list(without)
        if len(inside) + len(outside) > MOST:
            raise ValueError(
                f"At most {MOST} blocks are counted together; got "
                f"{len(inside) + len(outside)}. Join the rows or the columns of some."
            )
        signature = np.zeros(n, dtype=np.int64)
        sides = [side for block in inside + outside for side in block]
        for bit, side in enumerate(sides):
            items = slice(None) if side is None else np.asarray(side, dtype=np.int64)
            signature[items] |= np.int64(1) << bit
        kinds = np.unique(signature)
        self._kind = np.searchsorted(kinds, signature)
        has = (kinds[:, None] >> np.arange(len(sides))) & 1 == 1

        def union(first: int, blocks: list[Block]) -> np.ndarray:
            result = np.zeros((kinds.size, kinds.size), dtype=bool)
            for k in range(first, first + len(blocks)):
                result |= has[:, 2 * k, None] & has[:, 2 * k + 1]
            return result | result.T if symmetric else result

        self._inside = union(0, inside) & ~union(len(inside), outside)
        self._symmetric, self._diagonal = symmetric, diagonal

    def __len__(self) -> int:
        """Return the number of distinct entries, unordered if symmetric."""
        sizes = np.bincount(self._kind, minlength=len(self._inside))
        every = int(sizes @ self._inside @ sizes)
        on_diagonal = int(sizes @ np.diagonal(self._inside))
        off = (every - on_diagonal) // (2 if self._symmetric else 1)
        return off + (on_diagonal if self._diagonal else 0)

    def covers(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Tell for each k whether (i[k], j[k]) is inside."""
        inside = self._inside[self._kind[i], self._kind[j]]
        return inside if self._diagonal else inside & (i != j)
