"""Vectors of the items of a matrix in factors, and vectors of new items."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

from simlib._checks import numbers, shaped, square
from simlib.lowrank.tall import dense, largest_first, row_blocks, symmetric_part


class Embedded:
    """A matrix in factors that embeds its items and new items."""

    left: np.ndarray | csr_array
    core: np.ndarray
    right: Any
    residual: csr_array | LinearOperator | None
    symmetric: Any
    shape: tuple[int, int]
    dtype: np.dtype

    def _has_operator(self) -> bool:
        return not (self.residual is None or scipy.sparse.issparse(self.residual))

    def _refuse_operator(self, what: str, hint: str) -> None:
        if self._has_operator():
            raise ValueError(
                f"The residual is an operator, with which this matrix cannot {what}. "
                f"Make it by anchored(..., base_rank=r), {hint}."
            )

    def embedding(
        self, *, out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Return features whose signed inner products are the symmetrised factor part.

        Parameters
        ----------
        out : array of shape (n, d), optional
            Where to write Z, such as a memory map.

        Returns
        -------
        Z : array of shape (n, d)
            One row for each item; d is the rank, or l + r for separate factors.
        signs : array of shape (d,)
            +1 or -1: ``(Z * signs) @ Z.T`` equals the mean of ``L U R^T`` and its
            transpose (the equation :eq:`eq:embedding` of the book). A residual is left
            out.

        Raises
        ------
        ValueError
            The matrix is not square, its residual is an operator, or `out` has another
            shape, or is no float32 or float64 that holds the features.

        Examples
        --------
        >>> import numpy as np
        >>> from simlib import LowRank
        >>> K = LowRank(np.array([[1.0], [2.0]]), np.array([[-4.0]]))
        >>> Z, signs = K.embedding()
        >>> abs(Z[:, 0]).tolist(), signs.tolist()
        ([2.0, 4.0], [-1.0])
        """
        transform, signs = self.embedding_map()
        shape = (self.shape[0], signs.size)
        out = np.empty(shape, self.dtype) if out is None else out
        if not (
            isinstance(out, np.ndarray)
            and out.shape == shape
            and out.flags.writeable
            and out.dtype.kind == "f"
            and out.dtype.itemsize >= 4
        ):
            raise ValueError(
                f"`out` must be a writable array of shape {shape}, of float32 or "
                f"float64; got {getattr(out, 'dtype', type(out).__name__)} of shape "
                f"{np.shape(out)}."
            )
        for part in row_blocks(shape[0], max(transform.shape)):
            rows = dense(self.left[part])
            if not self.symmetric:
                rows = np.hstack([rows, dense(self.right[part])])
            with np.errstate(over="ignore"):
                np.matmul(rows, transform, out=np.asarray(out)[part])
            if out.dtype != self.dtype and not np.isfinite(out[part]).all():
                raise ValueError(
                    f"A feature is beyond the range of {out.dtype}, the type of `out`: "
                    f"pass an array of {self.dtype}."
                )
        return out, signs

    def embedding_map(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix that turns the factors into features, as `embedding` does.

        For new items take `extend`. For most methods L are the similarities to the
        landmarks; for `rpcholesky` they are not.

        Returns
        -------
        transform : array of shape (l, d), or (l + r, d)
            ``Z = L @ transform``, or ``[L R] @ transform`` for separate factors.
        signs : array of shape (d,)
            As in `embedding`. The errors are the same.
        """
        square(self.shape, "embeds items")
        self._refuse_operator("embed items", "which makes factors of the residual")
        core = self.core.astype(float)  # G diag(e) G^T
        if not self.symmetric:
            blocks = scipy.sparse.block_array([[None, core / 2], [core.T / 2, None]])
            core = blocks.toarray()
        values, vectors = largest_first(*np.linalg.eigh(symmetric_part(core)))
        transform = vectors * np.sqrt(np.abs(values))
        signs = np.where(values < 0, -1, 1)
        return transform.astype(self.dtype), signs.astype(self.dtype)

    def extend(self, columns: ArrayLike) -> np.ndarray:
        """Embed new items from their similarities to the landmarks.

        Parameters
        ----------
        columns : array of shape (m, l) or (m, l + r)
            Similarities of m new items to `landmarks` in their order; for a matrix with
            separate factors to `landmarks`, then `row_landmarks`, or to `landmarks`
            alone.

        Returns
        -------
        array of shape (m, d)
            Rows to set beside the Z of `embedding`. If the matrix has separate factors,
            as for two collections, and only similarities to `landmarks` are given: rows
            Y to set beside ``left @ core``; ``Y @ right.T`` are new rows of the matrix.

        Raises
        ------
        ValueError
            The number of columns is another one, the factors are no columns of the
            matrix (such as those of `optimal`), or an error of `embedding`.
        """
        columns = np.atleast_2d(numbers(columns, "columns"))
        shaped(columns, ("m", "l"), "columns")
        if not self.symmetric and columns.shape[1] == self.core.shape[0]:
            self._refuse_operator("take in rows", "which makes factors of the residual")
            return columns @ self.core
        transform, _ = self.embedding_map()
        if columns.shape[1] != transform.shape[0]:
            raise ValueError(
                f"Expected the similarities of each new item to {transform.shape[0]} "
                f"landmarks; got {columns.shape[1]}."
            )
        return columns @ transform
