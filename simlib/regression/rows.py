"""Blocks of rows of a tall matrix: dense, sparse, mapped, or given in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array

from simlib._checks import readable
from simlib._typing import MatrixLike

Rows: TypeAlias = MatrixLike | Iterable[MatrixLike]  # one matrix, or its blocks

ENTRIES_OF_A_BLOCK = 2**22  # entries of a dense block of rows
CACHED = 2**16  # entries of a block that stays in the cache of a processor
LEAST = 64  # rows of such a block


def as_rows(A: Any) -> Any:
    """Return a matrix as a real array or csr_array; an iterable of blocks unchanged."""
    if is_blocks(A):
        return A
    A = readable(A, "A")
    A = _summed(csr_array(A)) if scipy.sparse.issparse(A) else np.asarray(A)
    if A.dtype == object:  # of a mixed frame, say
        with suppress(TypeError, ValueError, OverflowError):
            A = A.astype(np.float64)
    if A.ndim != 2 or 0 in A.shape or A.dtype.kind not in "fiub":
        raise ValueError(
            f"A must be a real matrix of shape (n, d); got {A.dtype}, shape {A.shape}."
        )
    return A


def _summed(A: csr_array) -> csr_array:
    """Return a matrix that stores no entry twice."""
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
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


def blocks(
    A: Any, *, cut_sparse: bool = False, size: int = ENTRIES_OF_A_BLOCK
) -> Iterator[np.ndarray | csr_array]:
    """Yield blocks of rows in float64, of about `size` entries; all must be finite."""
    if is_blocks(A):
        width = None
        for part in _members(A):
            width = part.shape[1] if width is None else width
            if part.shape[1] != width:
                raise ValueError(
                    f"The blocks of A have {width} columns and {part.shape[1]}."
                )
            yield from blocks(part, cut_sparse=cut_sparse, size=size)
        return
    sparse = scipy.sparse.issparse(A)
    whole = sparse and not cut_sparse
    n, d = A.shape
    step = n if whole else max(size // d, min(4 * d, ENTRIES_OF_A_BLOCK // d), 1)
    for start in range(0, n, step):
        block = A if whole else A[start : start + step]
        block = block.astype(np.float64, copy=False)
        if not np.isfinite(block.data if sparse else block).all():
            raise ValueError(
                f"A holds NaN or an infinity in rows {start} to "
                f"{min(start + step, n) - 1}."
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


def gap_and_back(
    A: Any, X: np.ndarray, B: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return A X, minus B in its first columns, and A^T times that, in one pass."""
    gaps, back, start = [], np.zeros(()), 0
    for part in _parts(A):
        n = part.shape[0]
        cut = not scipy.sparse.issparse(part) and part.flags.c_contiguous
        step = max(LEAST, CACHED // part.shape[1]) if cut else n
        for first in range(0, n, step):
            block = part[first : first + step] if step < n else part
            gap = block @ X
            if B is not None:
                gap[:, : B.shape[1]] -= B[start : start + len(gap)]
            gaps.append(gap)
            back = back + block.T @ gap
            start += len(gap)
    return np.concatenate(gaps), back


def _parts(A: Any) -> Iterator[Any]:
    """Yield A itself if products need no conversion, else blocks of rows."""
    if is_blocks(A):
        yield from _members(A)
    elif scipy.sparse.issparse(A) or A.dtype == np.float64:
        yield A
    else:
        yield from blocks(A)


def _members(A: Iterable[Any]) -> Iterator[Any]:
    """Yield the blocks of an iterable that have rows."""
    for part in A:
        if np.shape(part)[:1] != (0,):
            yield as_rows(part)
