r"""Regression with the attention kernel, the entrywise exponential of X X^T.

.. math::
    (G + \lambda I) \alpha = y , \qquad G_{ij} = e^{\langle x_i, x_j \rangle} , \qquad
    f(x) = \sum_i \alpha_i \, e^{\langle x, x_i \rangle}

Equation :eq:`eq:attention-kernel` of the book, solved as the scaled system with the
Gaussian kernel, :eq:`eq:attention-scaled`. The paper replaces G by a sketch.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted, validate_data

from simlib._checks import finite, generator, inside, readable, warn, whole_number
from simlib._scale import largest_ratio, norms, unit, unit_columns
from simlib.lowrank.tall import dense
from simlib.regression.kernel import (
    IN_CACHE,
    GaussianKernel,
    factor,
    shifted_inverse,
    solve_by_rows,
)

EPS = np.finfo(float).eps
NO_DIGITS = 1e-6  # residual or rounding error above which there is no answer
HALF = -np.log(EPS) / 2  # beside exp(HALF) half of the digits of 1 are left
LONGEST = HALF**0.5  # norm |x| with exp(|x|^2) = exp(HALF)
FEW = 0.1  # share of the rows whose targets may lose more digits
FACTORS = ("rpcholesky", "nystroem")


class AttentionKernelRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Kernel ridge regression with the attention kernel exp(<x, y>).

    `sklearn.kernel_ridge.KernelRidge` with the callable kernel ``exp(x @ y)`` computes
    the same by a dense Cholesky decomposition, and is faster up to a few thousand
    points. Neither has an intercept.

    Parameters
    ----------
    ridge : float, default=1.0
        The ridge lambda; it is ``alpha`` in scikit-learn. 0 is allowed, but then a
        kernel matrix that is singular to rounding is an error.
    preconditioner : "rpcholesky", "nystroem", transformer or None
        How to approximate the Gaussian kernel matrix by a thin factor. The two names
        use some of its columns, drawn by randomly pivoted Cholesky or uniformly. A
        transformer, of which a clone is fitted, makes features of the attention kernel,
        as `simlib.regression.ExponentialFeatures` does. None uses the diagonal alone.
    rank : int, default=256
        Number of columns in the factor, at most the number of points.
    tol, max_iter : float, default=1e-10, and int, default=1000
        Relative residual to reach, see `residual_`, and the most iterations.
    random_state : int, RandomState or None
        Source of randomness for the columns. A transformer has its own.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, k)
        alpha. Numbers below 1e-308 become 0, for example those of rows longer than 27.
    gaussian_coef_ : array of shape (n,) or (n, k)
        beta: f(x) is ``exp((|x|^2 - c) / 2)`` times the sum of the beta_i
        ``exp(-|x - x_i|^2 / 2)``, where c is the smallest squared norm of a row in
        `fit`. `predict` uses beta, which is accurate for rows of any length.
    X_fit_ : array of shape (n, d)
        The points.
    rank_ : int
        Number of columns of the preconditioning factor: fewer than `rank` if they
        explain the kernel matrix to rounding error; 0 for ``preconditioner=None``.
    n_iter_ : int
        Number of iterations.
    residual_ : float
        Norm of ``y - (G + ridge I) alpha``, relative to y; the largest of all targets.
    preconditioned_residual_ : float
        Relative residual of the scaled system, in the norm of the inverse
        preconditioner. It bounds the error of f in the norm of the system matrix, up to
        the quality of the preconditioner.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn.

    Notes
    -----
    Rows should have norms about 1: for norms above 2 or so, in more than a few
    dimensions, G is nearly diagonal. Attention divides X by d^(1/4). Centre rows with a
    large common mean c: that takes a factor exp(<c, x>) out of f.

    Cost: n rank kernel evaluations and 2 n rank^2 flops for the preconditioner. n^2 / 2
    evaluations at d flops each, once for up to some 11,000 points, for more points in
    each iteration. 2 n^2 + 4 n rank flops in each iteration. Memory for 2 n rank
    numbers, and for n^2 / 2 if the kernel is kept. All in float64.

    Source: Song, Yin and Zhang (2024), Definition 1.3; for the preconditioner Díaz et
    al. (2024), and Frangella, Tropp and Udell (2023); the shift differs.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import AttentionKernelRegressor
    >>> X = np.random.default_rng(0).standard_normal((1000, 4)) / 2
    >>> y = np.sin(X.sum(axis=1))
    >>> model = AttentionKernelRegressor(0.1, random_state=0).fit(X[:800], y[:800])
    >>> model.score(X[800:], y[800:]) > 0.99
    True
    """

    def __init__(
        self,
        ridge: float = 1.0,
        *,
        preconditioner: Any = "rpcholesky",
        rank: int = 256,
        tol: float = 1e-10,
        max_iter: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.ridge = ridge
        self.preconditioner = preconditioner
        self.rank = rank
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Solve for the coefficients, from points (n, d) and targets (n,) or (n, k).

        A fit that fails leaves the model as it was.

        Raises
        ------
        ValueError, TypeError
            NaN or an infinity, an option out of range, or rows so long that products or
            exponentials lose their digits or coefficients overflow.
        numpy.linalg.LinAlgError
            Without a ridge: repeated points, or a kernel matrix that is singular to
            rounding error with a `y` outside its range.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            The residual is above `tol`, for example if a few rows are much longer than
            the others.
        """
        fresh = copy(self)  # a fit that fails leaves this model as it was
        fresh._fit(X, y)
        self.__dict__ = fresh.__dict__
        return self

    def _fit(self, X: Any, y: Any) -> None:
        """Fit in place."""
        finite(self.ridge, "ridge", 0)
        whole_number(self.rank, "rank", 1)
        whole_number(self.max_iter, "max_iter", 1)
        inside(self.tol, "tol", 0, 1)
        known = self.preconditioner is None or self.preconditioner in FACTORS
        if not known and not hasattr(self.preconditioner, "transform"):
            raise ValueError(
                'preconditioner is "rpcholesky", "nystroem", None, or a transformer; '
                f"got {self.preconditioner!r}."
            )
        if scipy.sparse.issparse(y):
            raise ValueError("y is sparse, and its solution is not: pass y.toarray().")
        options = {"multi_output": True, "y_numeric": True, "copy": True}  # X is kept
        X, y = readable(X, "X"), readable(y, "y")
        X, y = validate_data(self, X, y, dtype=np.float64, **options)
        Y, scale = unit_columns(y.astype(np.float64).reshape(len(y), -1))
        rng = generator(self.random_state)
        _demand_digits(X)
        if self.ridge == 0:
            _refuse_repeated(X)
        self.X_fit_, kernel = X, GaussianKernel(X)
        coef = self._solve(kernel, self._factor(kernel, X, y, rng), Y)
        with np.errstate(over="ignore"):
            coef = np.ldexp(coef, scale)
        if not np.isfinite(coef).all():
            raise ValueError(
                "The coefficients are beyond the range of floating-point numbers: take "
                "a larger ridge, or divide y by its size."
            )
        self.gaussian_coef_ = coef.reshape(y.shape)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return predictions for points (m, d), shape (m,) or (m, k).

        m n kernel evaluations. ValueError: NaN or an infinity, other columns than in
        `fit`, or a row so long that its prediction overflows.
        """
        check_is_fitted(self)
        X = readable(X, "X")
        points = validate_data(self, X, dtype=np.float64, reset=False)
        kernel, step = GaussianKernel(self.X_fit_), max(1, IN_CACHE // len(self.X_fit_))
        centre, least = kernel.centre, row_norms(self.X_fit_, squared=True).min()
        constant = (centre @ centre + least) / 2

        def image(points: np.ndarray) -> np.ndarray:
            exponents = kernel.exponents(points)
            largest = exponents.max(axis=1)
            exponents -= largest[:, None]  # rows of the kernel are up to 1
            sums = np.exp(exponents, out=exponents) @ self.gaussian_coef_
            scale = np.exp(points @ centre - constant + largest)
            return (scale * sums.T).T

        with np.errstate(over="ignore", invalid="ignore"):
            predictions = np.concatenate(
                [image(points[rows]) for rows in gen_batches(len(points), step)]
            )
        if not (good := np.isfinite(predictions)).all():
            raise ValueError(
                f"The prediction for row {np.argwhere(~good)[0, 0]} overflows: the row "
                "is too long for the exponential of its products with the points of "
                "fit. Scale all rows, in fit too."
            )
        return predictions

    @property
    def dual_coef_(self) -> np.ndarray:
        """alpha, of shape (n,) or (n, k)."""
        squares = row_norms(self.X_fit_, squared=True)
        scale = np.exp(-(squares + squares.min()) / 2)
        return (scale * self.gaussian_coef_.T).T

    def _factor(
        self, kernel: GaussianKernel, X: Any, y: Any, rng: np.random.Generator
    ) -> np.ndarray:
        """Return F with F F^T about the Gaussian kernel matrix, shape (n, rank_)."""
        if self.preconditioner is None:
            return np.empty((kernel.n, 0))
        if isinstance(self.preconditioner, str):
            rank = min(int(self.rank), kernel.n)
            return factor(kernel, self.preconditioner, rank, rng)
        transformer = clone(self.preconditioner).fit(X, y)
        Z = dense(transformer.transform(X))
        if Z.dtype.kind not in "fiub" or not np.isfinite(Z).all():
            raise ValueError(
                f"The features that {type(transformer).__name__} makes are not real "
                "and finite; for features of the exponential kernel, scale the rows "
                "of X."
            )
        return Z * np.exp(-row_norms(X, squared=True) / 2)[:, None]

    def _solve(
        self, kernel: GaussianKernel, F: np.ndarray, Y: np.ndarray
    ) -> np.ndarray:
        """Return the Gaussian coefficients for targets Y with columns of unit size."""
        self.rank_ = F.shape[1]
        squares = row_norms(self.X_fit_, squared=True)
        ridge = self.ridge * np.exp(-squares)
        solve = shifted_inverse(F, ridge)
        del F
        small = np.exp((squares.min() - squares) / 2)  # D^-1, the largest made 1
        held = small > np.finfo(float).tiny
        weights = np.divide(1, small, out=np.zeros_like(small), where=held)
        right = small[:, None] * Y
        coef, gap, self.n_iter_ = solve_by_rows(
            lambda P: kernel @ P + ridge[:, None] * P,
            right,
            solve,
            tol=self.tol,
            max_iter=int(self.max_iter),
            weights=weights,
        )
        left = np.where(held[:, None], weights[:, None] * gap, Y)
        self.residual_ = largest_ratio(left, Y)
        sizes = (np.sqrt(abs((R * solve(R)).sum(axis=0))) for R in (gap, right))
        self.preconditioned_residual_ = largest_ratio(*(size[None] for size in sizes))
        uneven = largest_ratio(gap, right) <= self.tol
        self._judge(int(abs(left).max(axis=1).argmax()) if uneven else None)
        return coef

    def _judge(self, worst: int | None) -> None:
        """Warn where the residual is above `tol`; refuse a singular system."""
        residual, stalled = self.residual_, self.n_iter_ < self.max_iter
        if residual <= self.tol:
            return
        if stalled and self.ridge == 0 and worst is None and residual > NO_DIGITS:
            raise np.linalg.LinAlgError(
                "The kernel matrix is singular to rounding error: conjugate gradients "
                f"stopped at a relative residual of {residual:.1e}. Give a ridge, say "
                "1e-6 times the number of points."
            )
        if not stalled:
            reason = f"after max_iter={self.max_iter} iterations"
            remedy = (
                "Raise `max_iter` or `rank`, take another `preconditioner`, or a "
                "larger `ridge`"
            )
        elif worst is not None:
            lengths = norms(self.X_fit_.T)
            reason = (
                f"and largest in row {worst}, of norm {lengths[worst]:.3g}: beside the "
                f"shortest, of norm {lengths.min():.3g}, its equation counts for so "
                "little that rounding errors, or too small a `rank`, leave it unmet"
            )
            remedy = "Scale the rows to norms about 1, or leave out the long ones"
        else:
            reason = "and rounding lets it fall no further"
            remedy = "Take a larger `ridge`, or scale the rows to norms about 1"
        warn(
            f"The relative residual is {residual:.1e} {reason}; tol is "
            f"{self.tol:.0e}. {_mean_first(self.X_fit_)}{remedy}.",
            ConvergenceWarning,
        )


def _mean_first(X: np.ndarray) -> str:
    """Return the advice to subtract the mean of the rows, if it is most of them."""
    X, _ = unit(X)  # or sums may overflow
    centred = X - X.mean(axis=0)
    mostly = np.median(norms(centred.T)) < np.median(norms(X.T)) / 2
    advice = (
        "The rows are mostly their mean: subtract it, in `predict` too. Otherwise: "
    )
    return advice if mostly else ""


def _demand_digits(X: np.ndarray) -> None:
    r"""Raise if the exponentials of long rows hide the targets of other rows.

    Row j alone contributes about :math:`y_j e^{\langle x_i, x_j \rangle - \|x_j\|^2}`
    to the prediction at row i. If that is larger than y_i by more than half of the
    digits, its rounding error hides y_i.
    """
    longest = norms(X.T).max()
    if longest > np.sqrt(NO_DIGITS / EPS):
        raise ValueError(
            f"The longest row has norm {longest:.4g}: its exponents have no digits "
            f"left. {_mean_first(X)}Scale the rows: attention divides them by "
            "d ** 0.25, sklearn.preprocessing.normalize makes their norms 1."
        )
    squares = row_norms(X, squared=True)
    far = X[squares > 4 * HALF]
    if len(far) <= FEW * len(X):
        return
    exponents = (
        (far[rows] @ X.T - squares).max(axis=1)
        for rows in gen_batches(len(far), max(1, IN_CACHE // len(X)))
    )
    hidden = (np.concatenate(list(exponents)) > HALF).sum() / len(X)
    if hidden > FEW:
        raise ValueError(
            f"The longest row has norm {longest:.3g}, and exp({longest**2:.3g}) is "
            f"beyond the {1 / EPS:.0e} that numbers resolve: beside such terms "
            f"{hidden:.0%} of the targets lose half of their digits or more. "
            f"{_mean_first(X)}Divide X, here and in `predict`, by "
            f"{longest / LONGEST:.2g} or more, which makes the longest norm "
            f"{LONGEST:.2g}; best are norms about 1."
        )


def _refuse_repeated(X: np.ndarray) -> None:
    """Refuse equal rows, which make the kernel matrix singular."""
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    if first.size < len(X):
        group = group.ravel()
        i = np.flatnonzero(first[group] != np.arange(len(X)))[0]
        raise np.linalg.LinAlgError(
            f"Rows {first[group[i]]} and {i} of X are equal, so the kernel matrix is "
            "singular: give a ridge above 0, or leave one of them out."
        )
