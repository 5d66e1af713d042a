"""The answer: a matrix held as thin factors, and what can be asked of it."""

from __future__ import annotations

from numbers import Real
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.linalg import lu_solve, solve_triangular
from scipy.linalg.lapack import dgecon, dgetrf
from scipy.sparse import csr_array, sparray, spmatrix
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from simlib._checks import whole_number
from simlib._scale import exponent as exponent_of
from simlib._scale import norm
from simlib._typing import Indices, MatrixLike
from simlib.lowrank.saved import Saved
from simlib.lowrank.tall import (
    dense,
    entries,
    gram_qr,
    qr,
    read_only,
    row_blocks,
    times,
    transposed_times,
    triangle,
)

__all__ = ["LowRank"]

LARGEST_ARRAY = 2 * 2**30  # bytes that `toarray` makes without being forced
CHUNK = 2**20  # entries of the rows computed at a time
DENSE = 64  # rows of a matrix whose eigenvalues are found from the array
REFINEMENTS = 5  # steps of `solve` at most
UNSOLVED = 1e-3  # of the right-hand side: what it may leave
BLOCK = 32  # columns of a sparse factor that are dense at a time


class LowRank(Saved, LinearOperator):
    r"""A matrix :math:`\tilde K = L U R^\top + E` with thin L and R and a residual E.

    The equation :eq:`eq:lowrank` of the book. It is a SciPy linear operator, so ``@``,
    ``.T``, sums and every iterative solver of `scipy.sparse.linalg` work on it. Nothing
    of size n x n is formed except by `toarray`, and beside an answer some rows of a
    factor at most: factors may be maps of files that are larger than the memory. They,
    core, residual and landmarks are read-only here, for others may share their memory.

    Parameters
    ----------
    left : array or sparse array of shape (n, l)
        Often columns of the matrix itself, which are then shared and not copied.
    core : array of shape (l, r)
        The joining matrix U. Symmetric where `right` is None.
    right : array or sparse array of shape (m, r), optional
        None means ``right = left`` and a symmetric matrix.
    residual : sparse array or LinearOperator of shape (n, m), optional
        Exactly known corrections E, sparse; or an operator that also answers
        ``entries(i, j)``, ``rows(i)`` and ``diagonal()``, as that of `anchored` does.
        Symmetric where `right` is None.
    landmarks, row_landmarks : array of int, optional
        Items whose columns `left` (rows, for `right`) holds.
    calls : int, optional
        Distinct pairs of which the method that made this asked the similarity, known to
        it before or not.
    method : str, optional
        Name of that method.

    Raises
    ------
    ValueError
        The shapes do not chain, a part is complex, `core` has NaN or infinities, or
        `core` or `residual` is not symmetric although `right` is None.

    See Also
    --------
    scipy.sparse.linalg.LinearOperator : the interface that this class implements.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import LowRank
    >>> K = LowRank(np.array([[1.0], [2.0]]), np.array([[3.0]]))
    >>> K @ np.array([1.0, 1.0])
    array([ 9., 18.])
    >>> K.trace()
    15.0
    """

    left: np.ndarray | csr_array
    core: np.ndarray
    residual: csr_array | LinearOperator | None
    landmarks: np.ndarray | None
    row_landmarks: np.ndarray | None
    calls: int | None
    method: str | None
    shape: tuple[int, int]
    dtype: np.dtype
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
        self.left, self.core = _inexact(left), _inexact(np.asarray(core))
        self._right = self.left if right is left else None
        if right is not None and right is not left:
            self._right = _inexact(right)
        rows, columns = self.left.shape, self.right.shape
        if self.core.shape != (rows[1], columns[1]):
            raise ValueError(
                f"The factors do not chain: left {rows}, core {self.core.shape}, right "
                f"{columns}; the core must have shape {(rows[1], columns[1])}."
            )
        if not np.isfinite(self.core).all():
            raise ValueError(
                "The core has entries that are NaN or infinite. Where it was computed "
                "from similarities of extreme size, multiply these by a power of two "
                "first: sim.map(lambda values: values * 2.0**k)."
            )
        if self._right is None and not is_symmetric(self.core):
            raise ValueError(
                "The core is not symmetric, so the matrix is not: pass right=left."
            )
        shape = (rows[0], columns[0])
        sparse = scipy.sparse.issparse(residual)
        self.residual = _inexact(residual) if sparse else residual
        if residual is not None and not (sparse or hasattr(residual, "entries")):
            raise TypeError(
                "The residual is a sparse matrix, or an operator with the methods of "
                f"LowRank; got {type(residual).__name__}."
            )
        if residual is not None and residual.shape != shape:
            raise ValueError(
                f"The residual has shape {residual.shape}, the matrix {shape}."
            )
        if residual is not None and self._right is None and not _is_own(self.residual):
            raise ValueError(
                "The residual is not symmetric, so the matrix is not: pass right=left."
            )
        self.landmarks, self.row_landmarks = (
            None if items is None else read_only(np.asarray(items))
            for items in (landmarks, row_landmarks)
        )
        self.calls, self.method = calls, method
        self._products: dict[str, Any] = {}  # of the factors, kept by `solve`
        parts = [self.left, self.core, self.right, self.residual]
        dtype = np.result_type(*(part.dtype for part in parts if part is not None))
        super().__init__(dtype, shape)

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

    def _matmat(self, X: np.ndarray) -> np.ndarray:
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
        i, j = _index(i, self.shape[0]), _index(j, self.shape[1])
        if i.size != j.size:
            raise ValueError(f"`i` and `j` must be as long; got {i.size} and {j.size}.")
        values = entries(self.left, self.core, self.right, i, j)
        if self.residual is None:
            return values
        return values + _entries(self.residual, i, j)

    def rows(self, i: ArrayLike) -> np.ndarray:
        """Return the rows i as an array of shape (len(i), m)."""
        i = _index(i, self.shape[0])
        values = times(self.right, (dense(self.left[i]) @ self.core).T).T
        return values if self.residual is None else values + _rows(self.residual, i)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, shape (min(n, m),), at O(l r) flops an entry."""
        parts = row_blocks(min(self.shape), max(self.core.shape))
        values = np.concatenate([self._diagonal(part) for part in parts])
        return values if self.residual is None else values + self.residual.diagonal()

    def _diagonal(self, part: slice) -> np.ndarray:
        product = self.left[part] @ self.core
        return np.einsum("ka,ka->k", product, dense(self.right[part]))

    def trace(self) -> float:
        """Return the sum of the diagonal."""
        return float(self.diagonal().sum(dtype=float))

    def norm(self) -> float:
        """Return the Frobenius norm, computed from the factors.

        O(n l^2) flops. Where the residual is an operator, or cancels the factors, every
        row is computed once.
        """
        if self._has_operator():
            return self._norm_of_rows()
        small = self._small_core()
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
        n, step = self.shape[0], max(1, CHUNK // self.shape[1])
        parts = np.split(np.arange(n), range(step, n, step))
        rows = (self.rows(i).astype(float) for i in parts)
        return norm(np.array([norm(part) for part in rows]))

    def eigh(self, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the k eigenvalues largest in magnitude and their eigenvectors.

        Parameters
        ----------
        k : int, optional
            At most the rank without a residual, at most n - 1 with one, or n up to 64.
            None means the rank.

        Returns
        -------
        values : array of shape (k,)
            Sorted by decreasing magnitude.
        vectors : array of shape (n, k)
            Orthonormal columns.

        Raises
        ------
        ValueError
            The matrix is not symmetric, k is too large, or eigenvalues are beyond
            float32.

        Notes
        -----
        O(n l^2) flops by a QR decomposition of the factor; with a residual as
        `scipy.sparse.linalg.eigsh`, which does the work, or of the array where n is
        small.
        """
        if not self.symmetric:
            raise ValueError(
                "eigh needs a symmetric approximation; this one has separate left and "
                "right factors. sicur(..., symmetrize=True) makes a symmetric one, and "
                "scipy.sparse.linalg.svds works on this one."
            )
        n, small = self.shape[0], self.shape[0] <= DENSE
        most = min(self.left.shape) if self.residual is None else n - (not small)
        k = min(self.rank, most) if k is None else whole_number(k, "k")
        if not 1 <= k <= most:
            every = (
                ""
                if self.residual is None
                else " eigsh of SciPy, which serves a residual, finds no more; "
                "numpy.linalg.eigh(K.toarray()) finds all."
            )
            raise ValueError(f"k must be between 1 and {most}; got {k}.{every}")
        if self.residual is None:
            Q, R = qr(self.left, float)
            values, small_vectors = np.linalg.eigh(_symmetric(R @ self.core @ R.T))
            order = np.argsort(-np.abs(values), kind="stable")[:k]
            vectors = np.empty((n, k), self.dtype)
            for part, rows in Q(small_vectors[:, order]):
                vectors[part] = rows
            return _fitting(values[order], self.dtype, "An eigenvalue"), vectors
        if small:
            values, vectors = np.linalg.eigh(_symmetric(self.toarray()))
        else:
            start = np.random.default_rng(0).standard_normal(n)
            values, vectors = eigsh(self, k=k, which="LM", v0=start.astype(self.dtype))
        order = np.argsort(-np.abs(values), kind="stable")[:k]
        return values[order], vectors[:, order]

    def solve(self, y: ArrayLike, ridge: float) -> np.ndarray:
        r"""Solve :math:`(\tilde K + \rho I) x = y` by the inversion lemma.

        With L = Q T (QR), V = T U and D = rho I + E, an l x l system and one
        application of D^-1 to Q suffice:
        :math:`x = D^{-1} y - D^{-1} Q (I + V R^\top D^{-1} Q)^{-1} V R^\top D^{-1} y`.
        Without the QR a large core, a pseudo-inverse say, would drown it in rounding.

        Parameters
        ----------
        y : array of shape (n,) or (n, k)
            Right-hand sides.
        ridge : float
            The shift rho. Not zero, as a thin matrix alone cannot be inverted; it may
            be negative.

        Returns
        -------
        array of shape (n,) or (n, k)
            x.

        Raises
        ------
        numpy.linalg.LinAlgError
            The system is singular to working precision: minus the ridge is an
            eigenvalue.
        ValueError
            The matrix is not square, y has another length, the residual is an operator,
            or a factor holds NaN or an infinity; the solution is beyond float32.

        Notes
        -----
        In float64. The first time O(n l^2) flops, and with a residual n l numbers of
        memory; a sparse L with well conditioned columns, such as the P of
        `biharmonic_approximation`, is not made dense: T is then the Cholesky factor of
        L^T L. This decomposition is kept for the next ridge, and for the matrices that
        `with_core` makes; without a residual those take O(l^3) and some products of L.
        Factors must not be changed in between. The same as
        ``sklearn.kernel_ridge.KernelRidge`` with kernel ``K`` and ``alpha = ridge``.
        """
        y = _numbers(y, "y")
        if not (isinstance(ridge, Real) and np.isfinite(ridge)):
            raise ValueError(f"The ridge is a finite number; got {ridge!r}.")
        if self.shape[0] != self.shape[1]:
            raise ValueError(f"Only a square matrix can be solved; shape {self.shape}.")
        n = self.shape[0]
        if y.ndim not in (1, 2):
            raise ValueError(f"y has shape ({n},) or ({n}, k); got {y.shape}.")
        if len(y) != n:
            raise ValueError(f"y has {len(y)} rows, the matrix has {n}.")
        self._refuse_operator(
            "solve", "or give it to an iterative solver, scipy.sparse.linalg.minres say"
        )
        if ridge == 0 and self.residual is None:
            raise np.linalg.LinAlgError(
                "Without a residual the inversion lemma divides by the ridge; give one "
                "that is not zero."
            )
        if np.iscomplexobj(y):
            columns = y.reshape(n, -1)
            both = self.solve(np.hstack([columns.real, columns.imag]), ridge)
            real, imaginary = np.hsplit(both, 2)
            return (real + 1j * imaginary).reshape(y.shape)
        dtype = np.result_type(self, y)
        y = y.astype(np.result_type(y, float), copy=False)  # before anything cancels
        Q, T, by_gram = self._decomposed()
        core = T @ self.core
        if self.residual is None:
            joint = self._joint() / ridge
        else:
            D = scipy.sparse.csc_array(self.residual, dtype=float)
            D = D + ridge * scipy.sparse.eye_array(self.shape[0], format="csc")
            try:
                factor = splu(D)
            except RuntimeError as error:
                raise np.linalg.LinAlgError(
                    "The residual plus the ridge is singular; change the ridge."
                ) from error
            joint = np.empty((self.right.shape[1], len(T)))
            step = BLOCK if by_gram else max(1, len(T))
            for start in range(0, len(T), step):
                some = np.eye(len(T))[:, start : start + step]
                Q_some = np.empty((n, some.shape[1]))
                for part, rows in Q(some):
                    Q_some[part] = rows
                joint[:, start : start + step] = self.right.T @ factor.solve(Q_some)
        system = np.eye(len(core)) + core @ joint
        if not np.isfinite(system).all():
            raise ValueError(
                "A factor, the core or the residual holds NaN or an infinity, or they "
                "are so large, or the ridge so small, that their products overflow."
            )
        lu, pivots = dgetrf(system)[:2] if system.size else (system, np.empty(0))
        eps = np.finfo(float).eps
        singular = np.linalg.LinAlgError(
            f"The matrix plus {ridge:g} I is singular to working precision: minus the "
            "ridge is an eigenvalue, or nothing beside one. Change the ridge."
        )
        if _condition(system, lu) > 1 / eps:  # away from Q it is 1
            raise singular

        def by_lemma(y: np.ndarray) -> np.ndarray:
            scaled = y / ridge if self.residual is None else factor.solve(y)
            small = core @ transposed_times(self.right, scaled)
            weights = lu_solve((lu, pivots), small) if small.size else small
            gap = np.empty(y.shape)
            for part, rows in Q(weights[:, None] if weights.ndim == 1 else weights):
                gap[part] = rows.reshape(gap[part].shape)
            return scaled - (
                gap / ridge if self.residual is None else factor.solve(gap)
            )

        # D^-1 y and what is taken from it are large and nearly equal where the ridge is
        # small: some steps of refinement bring the digits back. Columns are made of one
        # size, or a small one would be forgotten.
        sizes = np.frexp(np.abs(y).max(axis=0, initial=0))[1]
        y = np.ldexp(y, -sizes)
        x, before = by_lemma(y), np.inf
        for _ in range(REFINEMENTS):
            product = self._matmat(x)
            missed = y - product - ridge * x
            rounding = eps * (norm(product) + abs(ridge) * norm(x) + norm(y))
            if not rounding < norm(missed) < before / 2:
                break
            before = norm(missed)
            x = x + by_lemma(missed)
        if not norm(missed) <= UNSOLVED * norm(y):
            raise singular
        with np.errstate(over="ignore"):
            x = np.ldexp(x, sizes)
        return _fitting(x, dtype, "An entry of the solution")

    def with_core(self, core: ArrayLike) -> Self:
        r"""Return the matrix with the same factors and residual, and another core.

        Both share what `solve` keeps of the factors. One operator P serves any number
        of similarity functions: :math:`P W_1 P^\top`, :math:`P W_2 P^\top` and so on.

        Parameters
        ----------
        core : array of shape (l, r)
            The joining matrix. Where it is not symmetric, neither is the matrix.

        Returns
        -------
        LowRank
            Of the same class. Its `calls` are None: where the core is from, only you
            know.

        Raises
        ------
        ValueError
            The core has another shape, or is complex.

        Examples
        --------
        >>> import numpy as np
        >>> from simlib import LowRank
        >>> K = LowRank(np.array([[1.0], [2.0]]), np.array([[3.0]]))
        >>> K.with_core([[5.0]]).trace()
        25.0
        """
        W, right = _inexact(np.asarray(core)), self._right
        if right is None and W.shape == self.core.shape and not is_symmetric(W):
            right = self.left
        changed = {"core": W, "right": right, "calls": None}
        other = type(self)(**(self._arguments() | changed))
        other._products = self._products
        return other

    def embedding(
        self, *, out: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Return features whose signed inner products are the symmetrised factor part.

        Parameters
        ----------
        out : array of shape (n, d), optional
            Where to write Z: a map of a file, say.

        Returns
        -------
        Z : array of shape (n, d)
            One row for each item; d is the rank, or l + r for a matrix with separate
            left and right factors.
        signs : array of shape (d,)
            +1 or -1: ``(Z * signs) @ Z.T`` equals the mean of ``L U R^T`` and its
            transpose (the equation :eq:`eq:embedding` of the book). A sparse residual
            takes no part.

        Raises
        ------
        ValueError
            The matrix is not square, its residual is an operator, or `out` has another
            shape or takes no such numbers.

        Examples
        --------
        A factor in a file gives features in a file, whatever the memory; d is known
        from the map:

        >>> import tempfile
        >>> import numpy as np
        >>> from simlib import LowRank
        >>> K = LowRank(np.array([[1.0], [2.0]]), np.array([[4.0]]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     K.save(f"{folder}/K")
        ...     mapped = LowRank.load(f"{folder}/K", mmap_mode="r")
        ...     shape = (2, mapped.embedding_map()[1].size)
        ...     file = f"{folder}/Z.npy"
        ...     out = np.lib.format.open_memmap(file, "w+", K.dtype, shape)
        ...     Z, signs = mapped.embedding(out=out)
        >>> print(abs(Z[:, 0]))
        [2. 4.]
        """
        transform, signs = self.embedding_map()
        shape = (self.shape[0], signs.size)
        out = np.empty(shape, self.dtype) if out is None else out
        if not (
            isinstance(out, np.ndarray)
            and out.shape == shape
            and out.flags.writeable
            and np.can_cast(self.dtype, out.dtype, "same_kind")
        ):
            raise ValueError(
                f"`out` must be a writable array of shape {shape} for {self.dtype}; "
                f"got {getattr(out, 'dtype', type(out).__name__)} of shape "
                f"{np.shape(out)}."
            )
        for part in row_blocks(shape[0], max(transform.shape)):
            np.matmul(self._features(part), transform, out=np.asarray(out)[part])
        return out, signs

    def embedding_map(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what turns similarities to the landmarks into features.

        Returns
        -------
        transform : array of shape (l, d), or (l + r, d)
            ``Z = L @ transform``, or ``[L R] @ transform`` for a matrix with separate
            factors.
        signs : array of shape (d,)
            As in `embedding`.

        Raises
        ------
        ValueError
            As in `embedding`.
        """
        if self.shape[0] != self.shape[1]:
            raise ValueError(f"Only a square matrix embeds items; shape {self.shape}.")
        self._refuse_operator("embed items", "which makes factors of the residual")
        core = self.core.astype(float)  # G diag(e) G^T
        if not self.symmetric:
            core = np.block(
                [
                    [np.zeros((core.shape[0],) * 2), core / 2],
                    [core.T / 2, np.zeros((core.shape[1],) * 2)],
                ]
            )
        values, vectors = np.linalg.eigh(_symmetric(core))
        order = np.argsort(-np.abs(values), kind="stable")
        values, vectors = values[order], vectors[:, order]
        transform = vectors * np.sqrt(np.abs(values))
        signs = np.where(values < 0, -1, 1)
        return transform.astype(self.dtype), signs.astype(self.dtype)

    def extend(self, columns: ArrayLike) -> np.ndarray:
        """Embed new items from their similarities to the landmarks.

        Parameters
        ----------
        columns : array of shape (m, l) or (m, l + r)
            Similarities of m new items to `landmarks` in their order; for a matrix with
            separate factors to `landmarks`, then `row_landmarks`.

        Returns
        -------
        array of shape (m, d)
            Rows to set beside the Z of `embedding`.

        Raises
        ------
        ValueError
            Another number of columns, factors that are no columns of the matrix (those
            of `optimal`), or as in `embedding`.
        """
        columns = np.atleast_2d(_numbers(columns, "columns"))
        transform, _ = self.embedding_map()
        if columns.shape[1] != transform.shape[0]:
            raise ValueError(
                f"Expected the similarities of each new item to {transform.shape[0]} "
                f"landmarks; got {columns.shape[1]}."
            )
        return columns @ transform

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "The matrix stands for n x n numbers: K.toarray() makes all of them, "
            "K.rows(i) and K.entries(i, j) some."
        )

    def __getitem__(self, _: Any) -> NoReturn:
        raise TypeError(
            "The matrix has no [i, j]: ask for many entries at a time, by "
            "K.entries(i, j), K.rows(i) or K.toarray()."
        )

    def toarray(self, *, force: bool = False) -> np.ndarray:
        """Return the matrix as an array of shape (n, m).

        Parameters
        ----------
        force : bool, default=False
            Whether to make it even if it takes more than 2 GiB.

        Raises
        ------
        MemoryError
            It does, and `force` is false.
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
        return result + _rows(self.residual, np.arange(self.shape[0]))

    def _has_operator(self) -> bool:
        return not (self.residual is None or scipy.sparse.issparse(self.residual))

    def _refuse_operator(self, what: str, hint: str) -> None:
        if self._has_operator():
            raise ValueError(
                f"The residual is an operator, with which this matrix cannot {what}. "
                f"Make it by anchored(..., base_rank=r), {hint}."
            )

    def _small_core(self) -> np.ndarray:
        """Return a small matrix with the norm of the factor part, in float64."""
        left = triangle(self.left)
        right = left if self.symmetric else triangle(self.right)
        return left @ self.core @ right.T

    def _decomposed(self) -> tuple[Any, np.ndarray, bool]:
        """Return the QR decomposition of the left factor in float64, made once.

        And whether it is that of `gram_qr`.
        """
        if "qr" not in self._products:
            by_gram = gram_qr(self.left) if scipy.sparse.issparse(self.left) else None
            Q, T = by_gram or qr(self.left, float)
            self._products["qr"] = Q, T, by_gram is not None
        return self._products["qr"]

    def _joint(self) -> np.ndarray:
        """Return R^T Q for the right factor and Q of the left one, made once."""
        Q, T, by_gram = self._decomposed()
        if self.right is self.left:
            return T.T
        if "joint" not in self._products:
            if by_gram:
                product = dense(self.left.astype(float).T @ self.right)
                joint = solve_triangular(T, product, trans="T").T
            else:
                parts = Q(np.eye(len(T)))
                joint = sum(self.right[part].T @ rows for part, rows in parts)
            self._products["joint"] = joint
        return self._products["joint"]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_products": {}}

    def _features(self, part: slice) -> np.ndarray:
        """Return some rows of the columns that `embedding_map` applies to."""
        left = dense(self.left[part])
        return left if self.symmetric else np.hstack([left, dense(self.right[part])])

    def _parts(self) -> dict[str, Any]:
        self._refuse_operator("be saved", "which makes factors of the residual")
        return self._arguments()

    def _arguments(self) -> dict[str, Any]:
        """Return what makes this matrix."""
        return {
            "left": self.left,
            "core": self.core,
            "right": self._right,
            "residual": self.residual,
            "landmarks": self.landmarks,
            "row_landmarks": self.row_landmarks,
            "calls": self.calls,
            "method": self.method,
        }


class Closed(LowRank):
    """A matrix that takes in no new items, and says why.

    Parameters
    ----------
    *factors, **options
        Those of `LowRank`.
    reason : str
        What its factors are instead of columns of the matrix, and the way out.
    """

    def __init__(self, *factors: Any, reason: str, **options: Any):
        super().__init__(*factors, **options)
        self.reason = reason

    def _arguments(self) -> dict[str, Any]:
        return super()._arguments() | {"reason": self.reason}

    def extend(self, columns: ArrayLike) -> NoReturn:
        raise ValueError(f"New items have no place in this matrix: {self.reason}")


def _inexact(factor: Any) -> Any:
    """Return a factor in float32 or float64, by rows if sparse, and read-only."""
    sparse = scipy.sparse.issparse(factor)
    if np.ma.is_masked(factor):
        raise ValueError("A factor has masked entries; give numbers for them.")
    factor = scipy.sparse.csr_array(factor) if sparse else np.asanyarray(factor)
    if factor.ndim != 2:
        raise ValueError(f"Factors are two-dimensional; got shape {factor.shape}.")
    if np.iscomplexobj(factor):
        raise ValueError("LowRank is for real matrices; got a complex factor.")
    known = factor.dtype in (np.float32, np.float64)
    factor = factor if known else factor.astype(float)
    return read_only(_unique(factor) if sparse else factor)


def _unique(matrix: csr_array) -> csr_array:
    """Return a sparse matrix in which no entry stands twice, the given one untouched.

    SciPy would add up in place what stands twice.
    """
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _condition(A: np.ndarray, lu: np.ndarray) -> float:
    """Return the condition of A beside the number 1, estimated in the 1-norm."""
    norm = float(np.linalg.norm(A, 1)) if A.size else 0.0
    inverse = dgecon(lu, norm)[0] * norm if A.size else 1  # 1 / |A^-1|
    return float(max(norm, 1) / min(inverse, 1)) if inverse > 0 else np.inf


def is_symmetric(A: Any) -> bool:
    """Tell whether a matrix, dense or sparse, is its transpose to half the digits."""
    if 0 in A.shape:
        return True
    return not abs(A - A.T).max() > np.sqrt(np.finfo(A.dtype).eps) * abs(A).max()


def _is_own(residual: Any) -> bool:
    """Tell whether a residual is its transpose, as far as an operator tells."""
    if scipy.sparse.issparse(residual):
        return is_symmetric(residual)
    return bool(getattr(residual, "symmetric", True))


def _fitting(values: np.ndarray, dtype: np.dtype, what: str) -> np.ndarray:
    """Return values in a type, if they are numbers of it."""
    with np.errstate(over="ignore"):
        cast = values.astype(dtype, copy=False)
    if not np.isfinite(cast).all():
        raise ValueError(
            f"{what} is no number of {dtype}: multiply the matrix by a power of two, "
            "or make it of factors in float64."
        )
    return cast


def _index(i: ArrayLike, n: int) -> np.ndarray:
    """Return valid indices below n."""
    i = np.atleast_1d(i)
    if i.size == 0:
        return i.astype(np.intp)  # an empty list is an array of floats
    if i.ndim != 1 or i.dtype.kind not in "iu":
        raise ValueError(
            "Rows and columns are named by a one-dimensional array of integers; got "
            f"{i.dtype} of shape {i.shape}."
        )
    if i.min() < 0 or i.max() >= n:
        wrong = i.min() if i.min() < 0 else i.max()
        raise IndexError(f"They are numbered 0 to {n - 1}; got {wrong}.")
    return i.astype(np.intp, copy=False)


def _numbers(values: ArrayLike, name: str) -> np.ndarray:
    """Return an array of finite numbers, or raise."""
    if scipy.sparse.issparse(values):
        raise ValueError(f"{name} must be an array; got a sparse one: toarray() it.")
    values = np.asarray(values)
    if values.dtype.kind == "O":
        values = values.astype(float)
    if values.dtype.kind not in "fiubc" or not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite numbers; got {values.dtype}.")
    return values


def _rows(residual: Any, i: np.ndarray) -> np.ndarray:
    if not scipy.sparse.issparse(residual):
        return residual.rows(i)
    return dense(residual[i])


def _entries(residual: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    if not scipy.sparse.issparse(residual):
        return residual.entries(i, j)
    return dense(residual[i, j]).ravel()


def _symmetric(A: np.ndarray) -> np.ndarray:
    return (A + A.T) / 2
