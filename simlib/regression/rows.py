"""A tall matrix by blocks of rows, whatever it is kept in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array

from simlib._typing import MatrixLike

__all__ = ["Rows", "as_rows", "blocks", "is_blocks", "multiply", "multiply_transposed"]

Rows: TypeAlias = MatrixLike | Iterable[MatrixLike]  # one matrix, or its blocks

BLOCK = 2**22  # entries of a dense block of rows


def as_rows(A: Any) -> Any:
    """Return a matrix as a real array or csr_array, an iterable of blocks as it is."""
    if is_blocks(A):
        return A
    A = csr_array(A) if scipy.sparse.issparse(A) else np.asarray(A)
    if A.ndim != 2 or 0 in A.shape or A.dtype.kind not in "fiub":
        raise ValueError(
            f"A must be a real matrix of shape (n, d); got {A.dtype}, shape {A.shape}."
        )
    return A


def is_blocks(A: Any) -> bool:
    """Tell an iterable of blocks from one matrix, which may be a list of lists."""
    if scipy.sparse.issparse(A) or isinstance(A, np.ndarray):
        return False
    if isinstance(A, list | tuple):
        return len(A) > 0 and (scipy.sparse.issparse(A[0]) or np.ndim(A[0]) == 2)
    if hasattr(A, "__array__") or isinstance(A, str | bytes | Mapping):
        return False
    return isinstance(A, Iterable)


def blocks(A: Any, *, cut_sparse: bool = False) -> Iterator[np.ndarray | csr_array]:
    """Yield blocks of rows in float64, dense ones of moderate size, all finite."""
    if is_blocks(A):
        width = None
        for part in A:
            part = as_rows(part)
            width = part.shape[1] if width is None else width
            if part.shape[1] != width:
                raise ValueError(
                    f"The blocks of A have {width} columns and {part.shape[1]}."
                )
            yield from blocks(part, cut_sparse=cut_sparse)
        return
    sparse = scipy.sparse.issparse(A)
    whole = sparse and not cut_sparse
    step = A.shape[0] if whole else max(1, BLOCK // A.shape[1])
    for start in range(0, A.shape[0], step):
        block = A if whole else A[start : start + step]
        block = block.astype(np.float64, copy=False)
        if not np.isfinite(block.data if sparse else block).all():
            raise ValueError(
                f"A holds NaN or an infinity in rows {start} to "
                f"{min(start + step, A.shape[0]) - 1}."
            )
        yield block


def multiply(A: Any, X: np.ndarray) -> np.ndarray:
    """Return A X."""
    return np.concatenate([part @ X for part in _parts(A)])


def multiply_transposed(A: Any, Y: np.ndarray) -> np.ndarray:
    """Return A^T Y."""
    start, total = 0, np.zeros(())
    for part in _parts(A):
        total = total + part.T @ Y[start : start + part.shape[0]]
        start += part.shape[0]
    return total


def _parts(A: Any) -> Iterator[Any]:
    """Yield A itself if it can be multiplied with as it is, else blocks of rows."""
    if is_blocks(A):
        yield from map(as_rows, A)
    elif scipy.sparse.issparse(A) or A.dtype == np.float64:
        yield A
    else:
        yield from blocks(A)
