r"""Random matrices S that reduce the rows of a matrix and keep its geometry.

.. math::
    \mathbb E\, S^\top S = I , \qquad
    1 - \varepsilon \le \sigma_i(S U) \le 1 + \varepsilon , \qquad
    \mathbb E\, \|A^\top S^\top S B - A^\top B\|_F^2
    \le \tfrac 2 m \|A\|_F^2 \|B\|_F^2

The bounds in the middle, equation :eq:`eq:singular` of the book, hold with high
probability for orthonormal columns U, with :math:`\varepsilon` about
:math:`\sqrt{d / m}`, but not for `count_sketch`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from scipy.sparse import csc_array, issparse
from scipy.sparse.linalg import LinearOperator

from simlib._checks import readable, whole_number
from simlib._typing import MatrixLike, Seed
from simlib.lowrank.tall import dense

__all__ = [
    "PolynomialSketch",
    "Sketch",
    "TensorSRHT",
    "count_sketch",
    "gaussian",
    "hadamard_transform",
    "sparse_sign",
    "srht",
]

AT_ONCE = 2**20  # entries of a matrix copied or transformed at a time
SIDE = 16  # of the Hadamard matrices in products


class Sketch(LinearOperator):
    """A sketch S of shape (m, n), a linear operator of SciPy.

    `sparse_sign`, `count_sketch`, `srht` and `gaussian` make it. ``S @ A`` is an array,
    for an array or sparse array A of shape (n, d) or a vector; so is ``S.T @ Y``.
    float32 stays float32, integers become float64.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.regression.sketch import sparse_sign
    >>> A = np.random.default_rng(0).standard_normal((10_000, 20))
    >>> S = sparse_sign(200, 10_000, rng=0)
    >>> blocks = (A[i : i + 1000] for i in range(0, 10_000, 1000))  # from a file, say
    >>> bool(np.allclose(S.apply_blocks(blocks), S @ A))
    True
    """

    shape: tuple[int, int]
    dtype: np.dtype

    def __init__(self, m: int, n: int):
        super().__init__(np.dtype(np.float64), (m, n))

    def dot(self, x: Any) -> Any:
        """Return S @ x; a masked x is a ValueError."""
        return super().dot(readable(x, "A sketched matrix"))

    def matvec(self, x: Any) -> np.ndarray:
        """Return S @ x for a vector, or one column that may be sparse."""
        return self.matmat(x) if issparse(x) else super().matvec(x)

    def rmatvec(self, x: Any) -> np.ndarray:
        """Return S.T @ x, as `matvec` does."""
        return self._adjoint().matvec(x)

    def _adjoint(self) -> Sketch:
        return Transposed(self)

    _transpose = _adjoint

    def apply_blocks(self, blocks: Iterable[Any]) -> np.ndarray:
        """Return S @ A, (m, d), for a matrix A that is given in blocks of rows.

        The blocks are arrays or sparse arrays in order, with n rows in all; each is
        read once.

        Raises
        ------
        ValueError, NotImplementedError
            The blocks do not have n rows in all, or their widths differ; the sketch is
            made by `srht`, or is a transpose.
        """
        n, start = self.shape[1], 0
        total: np.ndarray | None = None
        for block in map(_inexact, blocks):
            stop = start + block.shape[0]
            if stop > n:
                raise ValueError(
                    f"The blocks have {stop} rows or more, but the sketch is of a "
                    f"matrix of {n}."
                )
            part = self._part(start, stop, block)
            if total is not None and total.shape != part.shape:
                raise ValueError(
                    "All blocks must have as many columns as the first, "
                    f"{total.shape[1]}; the one at row {start} has {part.shape[1]}."
                )
            total, start = part if total is None else total + part, stop
        if total is None or start < n:
            raise ValueError(
                f"The blocks have {start} rows in all, but the sketch is of a matrix "
                f"of {n}."
            )
        return total

    def _part(self, start: int, stop: int, block: Any) -> np.ndarray:
        raise NotImplementedError(
            "The transform of srht mixes all rows, and a transposed sketch takes a "
            "matrix as a whole: stack the blocks, or take sparse_sign, which reads "
            "them one by one."
        )


class Transposed(Sketch):
    """The transpose of a sketch."""

    def __init__(self, sketch: Sketch):
        super().__init__(*sketch.shape[::-1])
        self._sketch = sketch

    def _matmat(self, X: Any) -> np.ndarray:
        return self._sketch._rmatmat(X)

    def _rmatmat(self, X: Any) -> np.ndarray:
        return self._sketch._matmat(X)

    def _adjoint(self) -> Sketch:
        return self._sketch

    _transpose = _adjoint


class ExplicitSketch(Sketch):
    """The sketch scale * matrix; the matrix is dense, or holds signs by columns."""

    def __init__(self, matrix: np.ndarray | csc_array, scale: float):
        super().__init__(*matrix.shape)
        self.matrix, self.scale = matrix, scale

    def _matmat(self, A: Any) -> np.ndarray:
        if issparse(A):
            return self.apply_blocks([A])
        m, n = self.shape
        height = max(m, AT_ONCE // max(1, A.shape[1]))  # copies are made block by block
        return self.apply_blocks(A[i : i + height] for i in range(0, n, height))

    def _rmatmat(self, Y: Any) -> np.ndarray:
        return self._product(self.matrix.T, _inexact(Y))

    def _part(self, start: int, stop: int, block: Any) -> np.ndarray:
        return self._product(self.matrix[:, start:stop], block)

    def _product(self, matrix: Any, A: Any) -> np.ndarray:
        product = dense(matrix @ A)
        product *= self.scale
        return product.astype(A.dtype, copy=False)


class HadamardSketch(Sketch):
    """The sketch P H E D / sqrt(m), see `srht`."""

    def __init__(self, signs: np.ndarray, places: np.ndarray, rows: np.ndarray):
        super().__init__(len(rows), len(signs))
        self.signs, self.places, self.rows = signs[:, None], places, rows

    def _matmat(self, A: Any) -> np.ndarray:
        def transform(X: np.ndarray) -> np.ndarray:
            return _hadamard(X * self.signs, self.places, self.shape[1])[self.rows]

        return self._by_columns(transform, A, self.shape[0])

    def _rmatmat(self, Y: Any) -> np.ndarray:
        def transform(X: np.ndarray) -> np.ndarray:
            return _hadamard(X, self.rows, self.shape[1])[self.places] * self.signs

        return self._by_columns(transform, Y, self.shape[1])

    def _by_columns(
        self, transform: Callable[[np.ndarray], np.ndarray], A: Any, height: int
    ) -> np.ndarray:
        """Transform some columns at a time: a transformed column is longer than A."""
        A = csc_array(_inexact(A)) if issparse(A) else _matrix(A)
        result = np.empty((height, A.shape[1]), _inexact_type(A))
        width = max(1, AT_ONCE // self.shape[1])
        for j in range(0, A.shape[1], width):
            columns = dense(A[:, j : j + width]).astype(result.dtype, copy=False)
            result[:, j : j + width] = transform(columns)
        result *= self.shape[0] ** -0.5
        return result


def sparse_sign(m: int, n: int, *, nnz_per_column: int = 8, rng: Seed = None) -> Sketch:
    r"""Draw a `Sketch` with a few random signs in each column; the best by default.

    .. math::
        S_{h_k(j), j} = \pm \zeta^{-1/2} , \qquad k = 1, \dots, \zeta

    h_k(j) is uniform on the k-th of :math:`\zeta` equal parts of the m rows.

    Parameters
    ----------
    m, n : int
        Shape. Four rows for each column of A are enough for a preconditioner.
    nnz_per_column : int, default=8
        :math:`\zeta`, at most m; see `count_sketch` for 1.
    rng : int, Generator or None
        Source of randomness.

    Raises
    ------
    ValueError, TypeError
        A size is not a positive integer.

    Notes
    -----
    Flops: 2 nnz_per_column for each entry of A that is not 0. Memory: 5 bytes for each
    sign. Source: Kane and Nelson (2014); OSNAP of Nelson and Nguyên (2013).

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.regression.sketch import sparse_sign
    >>> S = sparse_sign(200, 10_000, rng=0)
    >>> (S @ np.ones((10_000, 3))).shape
    (200, 3)
    """
    m, n = _sizes(m=m, n=n)
    k = min(whole_number(nnz_per_column, "nnz_per_column", 1), m)
    rng = np.random.default_rng(rng)
    edges = np.arange(k + 1) * m // k
    index = np.int32 if max(m, n * k) < 2**31 else np.int64
    rows = rng.integers(edges[:-1], edges[1:], size=(n, k), dtype=index)
    starts = np.arange(0, n * k + 1, k, dtype=index)
    signs = _signs(n * k, rng), rows.ravel(), starts
    return ExplicitSketch(csc_array(signs, shape=(m, n)), k**-0.5)


def count_sketch(m: int, n: int, *, rng: Seed = None) -> Sketch:
    """Draw a sketch with one random sign in each column: `sparse_sign` with one.

    The fastest sketch, and not safe: if A has d rows far longer than the others, S A
    loses rank unless m is of the order of d^2.
    `scipy.linalg.clarkson_woodruff_transform` does the same for one matrix.

    Notes
    -----
    Flops: 2 for each entry of A that is not 0. Source: Charikar, Chen and
    Farach-Colton (2002); Clarkson and Woodruff (2013).

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.regression.sketch import count_sketch
    >>> count_sketch(3, 5, rng=0) @ np.eye(5)
    array([[ 0.,  0.,  0.,  1.,  1.],
           [ 0.,  1.,  1.,  0.,  0.],
           [-1.,  0.,  0.,  0.,  0.]])
    """
    return sparse_sign(m, n, nnz_per_column=1, rng=rng)


def srht(m: int, n: int, *, rng: Seed = None) -> Sketch:
    """Draw a subsampled randomised Hadamard transform.

    .. math::
        S = m^{-1/2} P H E D

    D changes signs at random. E puts the n rows at random places among N, the next
    power of two. H is the Hadamard matrix of N rows with entries 1 and -1. P picks m
    rows at random, none twice.

    Parameters
    ----------
    m, n, rng
        As in `sparse_sign`; so are the errors. m is at most n. `Sketch.apply_blocks` is
        not implemented.

    Notes
    -----
    Flops: O(n d log n). Memory: a few padded columns of A at a time. Source: Ailon and
    Chazelle (2009); Tropp (2011). Without E, long rows of A next to each other would be
    combined in only a few different ways.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.regression.sketch import srht
    >>> (srht(500, 10_000, rng=0) @ np.ones((10_000, 3))).shape
    (500, 3)
    """
    m, n = _sizes(m=m, n=n)
    if m > n:
        raise ValueError(
            f"srht picks m = {m} rows of a transform of n = {n}; take m at most n, or "
            "no sketch at all: it is to be shorter than the matrix."
        )
    rng = np.random.default_rng(rng)
    length = _power_of_two(n)
    places, rows = rng.permutation(length)[:n], rng.permutation(length)[:m]
    return HadamardSketch(_signs(n, rng), places, rows)


def gaussian(m: int, n: int, *, rng: Seed = None) -> Sketch:
    """Draw a dense sketch with independent normal entries of variance 1 / m.

    m, n and rng are as in `sparse_sign`. 2 m n d flops and 8 m n bytes: by far the
    slowest. `sklearn.random_projection.GaussianRandomProjection` does the same for
    points.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.regression.sketch import gaussian
    >>> (gaussian(500, 1000, rng=0) @ np.ones((1000, 3))).shape
    (500, 3)
    """
    m, n = _sizes(m=m, n=n)
    return ExplicitSketch(np.random.default_rng(rng).standard_normal((m, n)), m**-0.5)


class TensorSRHT:
    r"""A sketch of tensor products of two vectors, made from the vectors.

    .. math::
        S (x \otimes y)_k = m^{-1/2} (H D_1 x)_{i_k} (H D_2 y)_{j_k}

    The expected value of an inner product of sketches is the inner product of the
    tensor products. No array of size d1 d2 is formed.

    Parameters
    ----------
    m, d1, d2 : int
        Lengths of the sketch and of the two vectors, at least 1.
    rng : int, Generator or None
        Source of randomness.

    Notes
    -----
    Flops: O(n (d1 log d1 + d2 log d2 + m)) for n pairs. Source: Ahle et al. (2020);
    the pairs (i_k, j_k) are drawn uniformly and independently.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.regression.sketch import TensorSRHT
    >>> X, Y = np.random.default_rng(0).standard_normal((2, 5, 30))
    >>> TensorSRHT(100, 30, 30, rng=1)(X, Y).shape
    (5, 100)
    """

    def __init__(self, m: int, d1: int, d2: int, *, rng: Seed = None):
        m, d1, d2 = self.shape = _sizes(m=m, d1=d1, d2=d2)
        rng = np.random.default_rng(rng)
        self.signs = _signs(d1, rng), _signs(d2, rng)
        self.rows = [rng.integers(_power_of_two(d), size=m) for d in (d1, d2)]

    def __call__(self, X: MatrixLike, Y: MatrixLike) -> np.ndarray:
        """Sketch the products of the rows of X (n, d1) and Y (n, d2), shape (n, m)."""
        m, *widths = self.shape
        factors = [dense(_inexact(factor)) for factor in (X, Y)]
        expected = [(len(factors[0]), d) for d in widths]
        if [factor.shape for factor in factors] != expected:
            raise ValueError(
                f"Expected as many rows in X as in Y, of lengths {widths}; got shapes "
                f"{factors[0].shape} and {factors[1].shape}."
            )
        sides = zip(factors, self.signs, self.rows, widths, strict=True)
        left, right = (
            _hadamard(factor.T * signs[:, None], slice(d), d)[rows]
            for factor, signs, rows, d in sides
        )
        return (left * right * m**-0.5).T


class PolynomialSketch:
    r"""A sketch of a tensor power of a vector, made from the vector.

    .. math::
        \Pi^1 = T_i , \qquad
        \Pi^{a + b} x^{\otimes (a + b)}
        = S \left( \Pi^a x^{\otimes a} \otimes \Pi^b x^{\otimes b} \right)

    A binary tree. A leaf T is a `sparse_sign` sketch of x, or x itself if d is at most
    m. A node S is a `TensorSRHT` of its two branches. The expected value of an inner
    product is :math:`\langle x, y \rangle^p`. No array of size d^p is formed.

    Parameters
    ----------
    m, d : int
        Lengths of a sketched power and of the vectors, at least 1.
    degree : int
        p, at least 0. The power 0 is padded with zeros to the length m; so is the power
        1 if d is at most m.
    shared : bool, default=False
        Whether all leaves have the same T, and all nodes of a level the same S. This
        takes fewer products, but has a bias: the mean of
        :math:`\|\Pi^p x^{\otimes p}\|^2` exceeds :math:`\|x\|^{2p}`.
    rng : int, Generator or None
        Source of randomness. With `shared`, one seed gives the same T and S for all
        degrees.

    Notes
    -----
    The error of an inner product is about :math:`\sqrt{c / m} \, \|x\|^p \|y\|^p`, with
    a c that grows with p. Flops: O(p n m log m) for n rows; if d is more than m, also
    16 p for each entry that is not 0. Memory: p sketches of the rows. Source: Song, Yin
    and Zhang (2024), Algorithm 8, for `shared`; otherwise Ahle et al. (2020), with
    independent leaves and nodes. `sklearn.kernel_approximation.PolynomialCountSketch`
    uses Fourier transforms.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.regression.sketch import PolynomialSketch
    >>> X = np.eye(3, 1000)
    >>> Z = PolynomialSketch(500, 1000, 4, rng=0)(X)
    >>> bool(abs(Z @ Z.T - (X @ X.T) ** 4).max() < 0.3)
    True
    """

    def __init__(
        self, m: int, d: int, degree: int, *, shared: bool = False, rng: Seed = None
    ):
        m, d = self.shape = _sizes(m=m, d=d)
        self.degree, self.shared = whole_number(degree, "degree", 0), shared
        rng = np.random.default_rng(rng)
        n_leaves = min(self.degree, 1) if shared else self.degree
        self.leaves: list[Sketch | None] = [
            sparse_sign(m, d, rng=rng) if d > m else None for _ in range(n_leaves)
        ]
        levels = range(1, self.degree.bit_length()) if shared else []
        self.nodes = [TensorSRHT(m, m, m, rng=rng) for _ in levels]
        widths = deque([min(d, m)] * n_leaves)
        while len(widths) > 1:
            pair = widths.popleft(), widths.popleft()
            self.nodes.append(TensorSRHT(m, *pair, rng=rng))
            widths.append(m)

    def __call__(self, X: MatrixLike) -> np.ndarray:
        """Sketch the powers of the rows of X (n, d), dense or sparse, shape (n, m)."""
        m, d = self.shape
        rows = _inexact(X)
        if rows.shape[1] != d:
            raise ValueError(f"Expected rows of length {d}; got shape {rows.shape}.")
        if self.degree == 0:
            return np.eye(1, m, dtype=rows.dtype).repeat(rows.shape[0], axis=0)
        rows = rows if d > m else dense(rows)
        powers = deque(rows if T is None else (T @ rows.T).T for T in self.leaves)
        if not self.shared:
            for S in self.nodes:
                powers.append(S(powers.popleft(), powers.popleft()))
        product = np.pad(powers[0], ((0, 0), (0, m - powers[0].shape[1])))
        return self._by_squaring(product) if self.shared else product

    def _by_squaring(self, power: np.ndarray) -> np.ndarray:
        """Return the power by repeated squaring, along the bits of the degree."""
        product = power if self.degree & 1 else None
        for level, S in enumerate(self.nodes, start=1):
            power = S(power, power)
            if self.degree >> level & 1:
                product = power if product is None else S(product, power)
        assert product is not None  # the degree has a highest bit
        return product


def hadamard_transform(X: ArrayLike) -> np.ndarray:
    """Return H @ X for the H of `scipy.linalg.hadamard` and X of shape (n, ...).

    n is a power of two. About 8 n d log2 n flops for d columns.

    Examples
    --------
    >>> from simlib.regression.sketch import hadamard_transform
    >>> hadamard_transform([1.0, 2.0, 3.0, 4.0]).tolist()
    [10.0, -2.0, -4.0, 0.0]
    """
    Y = np.asarray(readable(X, "X"))
    if not Y.ndim or len(Y) != _power_of_two(len(Y)):
        raise ValueError(
            f"The number of rows must be a power of 2; got shape {Y.shape}. Add rows "
            "of zeros."
        )
    Y = Y.astype(_inexact_type(Y), copy=len(Y) == 1)
    n, shape, done = len(Y), Y.shape, 1
    while done < n:
        H = scipy.linalg.hadamard(min(n // done, SIDE), dtype=Y.dtype)
        Y = H @ Y.reshape(done, len(H), -1)
        done *= len(H)
    return Y.reshape(shape)


def _hadamard(X: np.ndarray, where: Any, n: int) -> np.ndarray:
    """Put the rows of X at places `where` among n rows, pad with zeros, transform."""
    padded = np.zeros((_power_of_two(n), X.shape[1]), X.dtype)
    padded[where] = X
    return hadamard_transform(padded)


def _power_of_two(n: int) -> int:
    """Return the least power of two that is not below n."""
    return 1 << (int(n) - 1).bit_length()


def _signs(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n signs: 1 or -1, a byte each."""
    return 1 - 2 * rng.integers(2, size=n, dtype=np.int8)


def _inexact_type(A: Any) -> np.dtype:
    """Return the type of A, at least float32; float64 if it is no floating type."""
    inexact = A.dtype.kind in "fc"
    return np.result_type(A.dtype, np.float32) if inexact else np.dtype(np.float64)


def _inexact(A: Any) -> Any:
    """Return a matrix, dense or sparse, in floating point."""
    A = _matrix(A)
    return A.astype(_inexact_type(A), copy=False)


def _matrix(A: Any) -> Any:
    """Return a matrix, dense or sparse; refuse arrays of other dimensions."""
    A = A if issparse(A) else np.asarray(readable(A, "A sketched matrix"))
    if A.ndim != 2:
        raise ValueError(f"Expected a matrix; got an array of shape {A.shape}.")
    return A


def _sizes(**sizes: int) -> tuple[int, ...]:
    """Return the sizes as integers; raise if one is not a positive integer."""
    return tuple(whole_number(size, name, 1) for name, size in sizes.items())
