"""The answer: a matrix in thin factors, its products, entries and solutions."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, sparray, spmatrix
from scipy.sparse.linalg import LinearOperator

from simlib._checks import (
    columns_like,
    finite,
    indices,
    readable,
    same_length,
    square,
    whole_number,
)
from simlib._scale import exponent as exponent_of
from simlib._scale import norm
from simlib._typing import Indices, MatrixLike
from simlib.lowrank.eigen import eigen_of_array, eigen_of_products
from simlib.lowrank.embedded import Embedded
from simlib.lowrank.saved import Saved
from simlib.lowrank.solve import Orthogonal, solve
from simlib.lowrank.tall import (
    assembled,
    dense,
    entries,
    is_symmetric,
    largest_first,
    qr,
    read_only,
    row_blocks,
    times,
    transposed_times,
    triangle,
)

__all__ = ["LowRank"]

LARGEST_ARRAY = 2 * 2**30  # bytes that `toarray` makes without being forced
ENTRIES_OF_ROWS = 2**20  # entries that are computed at a time for a norm
SMALL = 64  # rows of a matrix whose eigenvalues are found from the array


class LowRank(Embedded, Saved, LinearOperator):
    r"""A matrix :math:`\tilde K = L U R^\top + E` with thin L and R and a residual E.

    The equation :eq:`eq:lowrank` of the book, as a SciPy linear operator. Nothing of
    size n x n is formed except by `toarray`: factors may be memory maps larger than the
    memory. All parts are read-only, because several objects may share them.

    Parameters
    ----------
    left : array or sparse array of shape (n, l)
        Often columns of the matrix itself.
    core : array of shape (l, r)
        The joining matrix U. Symmetric where `right` is None.
    right : array or sparse array of shape (m, r), optional
        None means ``right = left`` and a symmetric matrix.
    residual : sparse array or LinearOperator of shape (n, m), optional
        The correction E, sparse; or an operator that also has the methods
        ``entries(i, j)``, ``rows(i)`` and ``diagonal()``, as the one of `anchored` has.
        Symmetric where `right` is None.
    landmarks, row_landmarks : array of int, optional
        Items whose columns are in `left`, and items whose rows are in `right`.
    calls : int, optional
        Calls for the distinct pairs that the method has asked for, known before or not:
        one for each pair, two if the similarity is symmetrized.
    method : str, optional
        Name of the method that made this.

    Raises
    ------
    ValueError
        The shapes do not chain, a part is complex or masked, `core` or `residual` has
        NaN or infinities, or is not symmetric although `right` is None.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import LowRank
    >>> K = LowRank(np.array([[1.0], [2.0]]), np.array([[3.0]]))
    >>> K @ np.array([1.0, 1.0])
    array([ 9., 18.])
    """

    landmarks: np.ndarray | None
    row_landmarks: np.ndarray | None
    calls: int | None
    method: str | None
    T: LowRank

    def __init__(
        self,
        left: MatrixLike,
        core: ArrayLike,
        right: MatrixLike | None = None,
        *,
        residual: sparray | spmatrix | LinearOperator | None = None,
        landmarks: Indices | None = None,
        row_landmarks: Indices | None = None,
        calls: int | None = None,
        method: str | None = None,
    ):
        self.left, self.core = _part(left), _core(core)
        self._right = self.left if right is left else None
        if right is not None and right is not left:
            self._right = _part(right)
        sparse = scipy.sparse.issparse(residual)
        self.residual = _part(residual) if sparse else residual
        self.landmarks, self.row_landmarks = (
            None if items is None else read_only(np.asarray(items))
            for items in (landmarks, row_landmarks)
        )
        self.calls, self.method = calls, method
        self._check()
        self._orthogonal = Orthogonal(self.left, self.right)
        parts = [self.left, self.core, self.right, self.residual]
        dtype = np.result_type(*(part.dtype for part in parts if part is not None))
        super().__init__(dtype, (self.left.shape[0], self.right.shape[0]))

    def _check(self) -> None:
        """Raise where the parts do not fit each other."""
        (n, width), (m, r), residual = self.left.shape, self.right.shape, self.residual
        if self.core.shape != (width, r):
            raise ValueError(
                f"The factors do not chain: left {n, width}, core {self.core.shape}, "
                f"right {m, r}; the core must have shape {width, r}."
            )
        if not np.isfinite(self.core).all():
            raise ValueError(
                "The core has entries that are NaN or infinite. Where it was computed "
                "from similarities of extreme size, multiply these by a power of two "
                "first: sim.map(lambda values: values * 2.0**k)."
            )
        if residual is not None:
            if not (scipy.sparse.issparse(residual) or hasattr(residual, "entries")):
                raise TypeError(
                    "The residual is a sparse matrix, or an operator with the methods "
                    f"of LowRank; got {type(residual).__name__}."
                )
            if residual.shape != (n, m):
                raise ValueError(
                    f"The residual has shape {residual.shape}, the matrix {n, m}."
                )
            if scipy.sparse.issparse(residual) and not np.isfinite(residual.data).all():
                raise ValueError("The residual has entries that are NaN or infinite.")
        for name, part in (("core", self.core), ("residual", residual)):
            if self.symmetric and part is not None and not is_symmetric(part):
                raise ValueError(
                    f"The {name} is not symmetric, so the matrix is not: pass "
                    "right=left."
                )

    @property
    def right(self) -> np.ndarray | csr_array:
        """The right factor; the left one where the matrix is symmetric."""
        return self.left if self._right is None else self._right

    @property
    def symmetric(self) -> bool:
        """Whether the matrix is symmetric by construction."""
        return self._right is None

    @property
    def rank(self) -> int:
        """Bound on the rank of the factor part, the smaller side of the core."""
        return min(self.core.shape)

    def __repr__(self) -> str:
        size = self.shape[0] if self.shape[0] == self.shape[1] else self.shape
        parts = [f"n={size}", f"rank={self.rank}"]
        if self.calls is not None:
            parts.append(f"calls={self.calls}")
        if self.residual is not None:
            sparse = scipy.sparse.issparse(self.residual)
            kind = type(self.residual).__name__
            parts.append(f"residual {f'nnz={self.residual.nnz}' if sparse else kind}")
        name = "" if self.method is None else f"{self.method}: "
        return f"LowRank({name}{', '.join(parts)})"

    def dot(self, x: Any) -> Any:
        """Return the matrix times x; a masked x is a ValueError."""
        return super().dot(readable(x, "x"))

    def _rdot(self, x: Any) -> Any:
        return super()._rdot(readable(x, "x"))

    def _matmat(self, X: Any) -> np.ndarray:
        X = readable(X, "x")
        X = X.tocsr() if scipy.sparse.issparse(X) else X
        result = times(self.left, self.core @ transposed_times(self.right, X))
        return result if self.residual is None else result + self.residual @ X

    def _rmatmat(self, X: np.ndarray) -> np.ndarray:
        return self._transpose()._matmat(X)

    _matvec, _rmatvec = _matmat, _rmatmat

    def _transpose(self) -> LowRank:
        if self.symmetric:
            return self
        turned = {
            "left": self._right,
            "core": self.core.T,
            "right": self.left,
            "residual": None if self.residual is None else self.residual.T,
            "landmarks": self.row_landmarks,
            "row_landmarks": self.landmarks,
        }
        return type(self)(**(self._arguments() | turned))

    _adjoint = _transpose

    def entries(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        """Return the entries (i[k], j[k]), shape (len(i),)."""
        i, j = indices(i, self.shape[0], "Rows"), indices(j, self.shape[1], "Columns")
        same_length(i, j)
        values = entries(self.left, self.core, self.right, i, j)
        if self.residual is None:
            return values
        if scipy.sparse.issparse(self.residual):
            return values + dense(self.residual[i, j]).ravel()
        return values + self.residual.entries(i, j)

    def rows(self, i: ArrayLike) -> np.ndarray:
        """Return the rows i as an array of shape (len(i), m)."""
        i = indices(i, self.shape[0], "Rows")
        values = times(self.right, (dense(self.left[i]) @ self.core).T).T
        return values if self.residual is None else values + self._residual_rows(i)

    def _residual_rows(self, i: np.ndarray) -> np.ndarray:
        residual: Any = self.residual
        sparse = scipy.sparse.issparse(residual)
        return dense(residual[i]) if sparse else residual.rows(i)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, shape (min(n, m),), in O(l r) flops for each entry."""
        left, core, right = self.left, self.core, self.right
        parts = row_blocks(min(self.shape), max(core.shape))
        sums = (np.einsum("ka,ka->k", left[p] @ core, dense(right[p])) for p in parts)
        values = np.concatenate(list(sums))
        return values if self.residual is None else values + self.residual.diagonal()

    def trace(self) -> float:
        """Return the sum of the diagonal."""
        return float(self.diagonal().sum(dtype=float))

    def norm(self) -> float:
        """Return the Frobenius norm, from the factors in O(n l^2) flops.

        If the residual is an operator, or cancels most of the factors, every row is
        computed.
        """
        if self._has_operator():
            return self._norm_of_rows()
        left = triangle(self.left)
        right = left if self.symmetric else triangle(self.right)
        small = left @ self.core @ right.T
        if self.residual is None:
            return norm(small)
        E = scipy.sparse.coo_array(self.residual)
        factors = entries(self.left, self.core, self.right, *E.coords).astype(float)
        added, exponent = E.data.astype(float), exponent_of(small, E.data)
        small, factors, added = (
            np.ldexp(part, -exponent) for part in (small, factors, added)
        )
        whole = np.linalg.norm(small) ** 2
        squared = whole + (added * (2 * factors + added)).sum()
        if squared < np.sqrt(np.finfo(self.dtype).eps) * whole:
            return self._norm_of_rows()
        return float(np.ldexp(np.sqrt(squared), exponent))

    def _norm_of_rows(self) -> float:
        n, step = self.shape[0], max(1, ENTRIES_OF_ROWS // self.shape[1])
        parts = np.split(np.arange(n), range(step, n, step))
        rows = (self.rows(i).astype(float) for i in parts)
        return norm(np.array([norm(part) for part in rows]))

    def eigh(self, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the k eigenvalues largest in magnitude and their eigenvectors.

        O(n l^2) flops by a QR decomposition of the factor. With a residual
        `scipy.sparse.linalg.eigsh` is used.

        Parameters
        ----------
        k : int, optional
            At most the rank without a residual; with a residual at most n - 1, or n if
            n <= 64. None means the rank. Another k, a matrix that is not symmetric or
            holds NaN, and eigenvalues beyond the range of its type are a ValueError, a
            k that is no whole number a TypeError. With a residual and n > 4096 a k
            that parts eigenvalues that are nearly equal is a LinAlgError.

        Returns
        -------
        values : array of shape (k,)
            Sorted by decreasing magnitude.
        vectors : array of shape (n, k)
            Orthonormal columns.
        """
        if not self.symmetric:
            raise ValueError(
                "eigh needs a symmetric approximation; this one has separate left and "
                "right factors. sicur(..., symmetrize=True) makes a symmetric one, and "
                "scipy.sparse.linalg.svds works on this one."
            )
        n, small = self.shape[0], self.shape[0] <= SMALL
        most = min(self.left.shape) if self.residual is None else n - (not small)
        least = min(1, most)
        k = min(max(self.rank, least), most) if k is None else whole_number(k, "k")
        if not least <= k <= most:
            raise ValueError(
                f"k must be between {least} and {most}; got {k}. "
                "numpy.linalg.eigh(K.toarray()) finds all."
            )
        if self.residual is None:
            Q, R = qr(self.left)
            values, vectors = eigen_of_array(R @ self.core @ R.T)
        elif small:
            values, vectors = eigen_of_array(self.toarray())
        else:
            values, vectors = eigen_of_products(self, k)
        values, vectors = largest_first(values, vectors, k)
        if self.residual is None:
            vectors = assembled(Q(vectors), (n, k), self.dtype)
        return _fitting(values, self.dtype, "An eigenvalue"), vectors

    def solve(self, y: ArrayLike, ridge: float) -> np.ndarray:
        r"""Solve :math:`(\tilde K + \rho I) x = y` by the inversion lemma.

        Parameters
        ----------
        y : array of shape (n,) or (n, k)
            Right-hand sides.
        ridge : float
            The shift rho. It may be negative, and with a residual zero.

        Returns
        -------
        array of shape (n,) or (n, k)
            x.

        Raises
        ------
        numpy.linalg.LinAlgError
            The system is singular to working precision, as it is without a residual for
            a ridge of zero.
        ValueError
            The matrix is not square, y has another length, the residual is an operator,
            a factor holds NaN or an infinity, or the solution is beyond the range of
            its type.

        Notes
        -----
        O(n l^2) flops in float64; with a residual, memory for n l numbers. The QR
        decomposition of L is kept for other ridges and for the matrices of `with_core`,
        whose solutions without a residual take O(l^3) flops and a few products with L.
        `sklearn.kernel_ridge.KernelRidge` solves the same system, with ``alpha =
        ridge``, and predicts by the rows of its kernel. Here these are rows of the
        approximation: with ``Z, signs = K.embedding()`` and the similarities of new
        items to the landmarks, ``(K.extend(columns) * signs) @ (Z.T @ x)``. Exact rows
        in their place may be far off. An eigenvalue of the matrix below -ridge (`eigh`)
        makes x a solution, but no minimum of the regression: raise the ridge, or fit
        `sklearn.linear_model.Ridge` to Z, which also fits a constant, as the factors
        may not.
        """
        square(self.shape, "can be solved")
        y, ridge = columns_like(y, self.shape[0], "y"), finite(ridge, "ridge")
        self._refuse_operator(
            "solve", "or give it to an iterative solver, scipy.sparse.linalg.minres say"
        )
        if ridge == 0 and self.residual is None:
            raise np.linalg.LinAlgError(
                "Without a residual the inversion lemma divides by the ridge; give one "
                "that is not zero."
            )
        columns = y if y.ndim == 2 else y[:, None]
        if np.iscomplexobj(y):
            both = self.solve(np.hstack([columns.real, columns.imag]), ridge)
            real, imaginary = np.hsplit(both, 2)
            return (real + 1j * imaginary).reshape(y.shape)
        x = solve(self, self._orthogonal, columns.astype(float, copy=False), ridge)
        dtype = np.result_type(self, y)
        return _fitting(x.reshape(y.shape), dtype, "An entry of the solution")

    def with_core(self, core: ArrayLike) -> Self:
        r"""Return the matrix with the same factors and residual, and another core.

        The two matrices share the decomposition that `solve` keeps: one operator P
        serves the matrices :math:`P W P^\top` of many similarity functions. `calls` of
        the new matrix is None.

        Parameters
        ----------
        core : array of shape (l, r)
            Another shape, or complex numbers, are a ValueError. If the core is not
            symmetric, the matrix is not either.

        Examples
        --------
        >>> import numpy as np
        >>> from simlib import LowRank
        >>> K = LowRank(np.array([[1.0], [2.0]]), np.array([[3.0]]))
        >>> K.with_core([[5.0]]).trace()
        25.0
        """
        W, right = _core(core), self._right
        if right is None and W.shape == self.core.shape and not is_symmetric(W):
            right = self.left
        changed = {"core": W, "right": right, "calls": None}
        other = type(self)(**(self._arguments() | changed))
        other._orthogonal = self._orthogonal
        return other

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "The matrix stands for n x n numbers: K.toarray() makes all of them, "
            "K.rows(i) and K.entries(i, j) some. Of a sparse S the product S @ K is "
            "(K.T @ S.T).T."
        )

    def __getitem__(self, _: Any) -> NoReturn:
        raise TypeError(
            "The matrix has no [i, j]: ask for many entries at a time, by "
            "K.entries(i, j), K.rows(i) or K.toarray()."
        )

    def toarray(self, *, force: bool = False) -> np.ndarray:
        """Return the matrix as an array of shape (n, m).

        Beyond 2 GiB it raises MemoryError, unless `force` is true.
        """
        size = self.shape[0] * self.shape[1] * self.dtype.itemsize
        if size > LARGEST_ARRAY and not force:
            raise MemoryError(
                f"The array would take {size / 2**30:.1f} GiB; pass force=True if you "
                "want it, or ask for `rows`, `entries` or products instead."
            )
        result = dense(self.left @ self.core @ self.right.T)
        if self.residual is None:
            return result
        return result + self._residual_rows(np.arange(self.shape[0]))

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._arguments()), ()  # read-only there, too

    def _parts(self) -> dict[str, Any]:
        self._refuse_operator("be saved", "which makes factors of the residual")
        return self._arguments()

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor that make this matrix."""
        parts = {"left": self.left, "core": self.core, "right": self._right}
        others = ("residual", "landmarks", "row_landmarks", "calls", "method")
        return parts | {name: getattr(self, name) for name in others}


class Closed(LowRank):
    """A matrix that takes in no new items; `reason` says why."""

    def __init__(self, *factors: Any, reason: str, **options: Any):
        super().__init__(*factors, **options)
        self.reason = reason

    def _arguments(self) -> dict[str, Any]:
        return super()._arguments() | {"reason": self.reason}

    def extend(self, columns: ArrayLike) -> NoReturn:
        raise ValueError(f"New items have no place in this matrix: {self.reason}")


def _part(part: Any) -> Any:
    """Return a part in float32 or float64, by rows if sparse, and read-only."""
    sparse, part = scipy.sparse.issparse(part), readable(part, "A factor")
    mapped = isinstance(part, np.memmap)
    part = csr_array(part) if sparse else part if mapped else np.asarray(part)
    if part.ndim != 2:
        raise ValueError(f"Factors are two-dimensional; got shape {part.shape}.")
    if np.iscomplexobj(part):
        raise ValueError("LowRank is for real matrices; got a complex factor.")
    if part.dtype not in (np.float32, np.float64):
        part = part.astype(float)
    if sparse and not part.has_canonical_format:  # SciPy would add up in place
        part = part.copy()
        part.sum_duplicates()
    return read_only(part)


def _core(core: Any) -> np.ndarray:
    """Return a core, given as any kind of matrix, as a read-only array."""
    return read_only(dense(_part(core)))


def _fitting(values: np.ndarray, dtype: np.dtype, what: str) -> np.ndarray:
    """Return values in a type; raise if one is beyond the range of the type."""
    with np.errstate(over="ignore"):
        cast = values.astype(dtype, copy=False)
    if not np.isfinite(cast).all():
        raise ValueError(
            f"{what} is no number of {dtype}: multiply the matrix by a power of two, "
            "or make it of factors in float64."
        )
    return cast
