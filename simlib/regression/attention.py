r"""Regression with the attention kernel, the entrywise exponential of X X^T.

.. math::
    (G + \rho I) \, \alpha = y , \qquad G_{ij} = e^{\langle x_i, x_j \rangle} , \qquad
    f(x) = \sum_i \alpha_i \, e^{\langle x, x_i \rangle}

Equation :eq:`eq:attention-kernel` of the book, solved as a system with the Gaussian
kernel inside G, :eq:`eq:attention-scaled`. The paper solves with a sketch in place
of G. One that is spectrally close to G still leaves a residual that grows with the root
of its condition number, so here a sketch is at most a preconditioner, and mostly a
worse one than some columns of G itself. `study.as_printed.sketched_solve` is
what the paper does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from numbers import Integral, Real
from sys import float_info
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted, validate_data

from simlib._scale import balanced, norms
from simlib.regression.kernel import (
    BLOCK,
    GaussianKernel,
    Linear,
    conjugate_gradients,
    factor,
    shifted_inverse,
)
from simlib.regression.powers import lstsq

__all__ = ["AttentionKernelRegressor"]

EPS = np.finfo(float).eps
LARGEST_CACHE = 2**24  # features that are kept between passes; more are computed anew
FEATURES = 2**20  # features computed at a time
NO_DIGITS = 1e-6  # residual or rounding error above which there is no answer
LONGEST = (-np.log(EPS) / 2) ** 0.5  # norm for which exp(|x|^2) leaves half the digits
MISSED = 0.1  # share of targets out of reach that is no longer that of a few rows
SINGULAR = 1e-11  # reciprocal condition number from which Z^T Z is not factored


class AttentionKernelRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Kernel ridge regression with the attention kernel exp(<x, y>).

    Conjugate gradients on the kernel matrix, which is evaluated in blocks, and half of
    it kept up to some 11,000 points; or, with `features`, ridge regression on features
    of the kernel, in time and memory linear in the number of points.

    Parameters
    ----------
    ridge : float, default=1.0
        The ridge, rho above; it is ``alpha`` in scikit-learn. 0 is allowed, and then
        a kernel matrix that is singular to rounding is refused.
    preconditioner : "rpcholesky", "nystroem", transformer or None
        How to approximate the Gaussian kernel matrix K below by a factor F: some of its
        columns, drawn by randomly pivoted Cholesky or uniformly; or features of the
        attention kernel such as `ExponentialFeatures`, of which a clone is fitted. None
        for the diagonal alone.
    rank : int, default=256
        Number of columns. As many as there are points, where they are fewer, make the
        preconditioner exact.
    features : transformer, optional
        None for the kernel itself. Otherwise a map of rows to features Z with
        ``Z @ Z.T`` about ``exp(X @ X.T)``, row by row: a clone is fitted, and the model
        is ridge regression on Z. `preconditioner`, `rank` and `max_iter` then have no
        part in it.
    tol : float, default=1e-10
        Relative residual asked for: `residual_`; with `features`,
        `preconditioned_residual_`.
    max_iter : int, default=1000
        Most iterations.
    random_state : int, RandomState or None
        Source of randomness of the columns. Transformers have their own.

    Attributes
    ----------
    dual_coef_ : array of shape (n,) or (n, k)
        alpha, without `features`. Numbers below 1e-308 are 0, as they are for rows
        longer than 27.
    gaussian_coef_ : array of shape (n,) or (n, k)
        gamma, for f(x) as ``exp((|x|^2 - c) / 2)`` times the sum of the gamma_i
        ``exp(-|x - x_i|^2 / 2)``, where c is the smallest squared norm of a row in
        `fit`. It is what `predict` takes, whatever the lengths of rows.
    X_fit_ : array of shape (n, d)
        The points, without `features`.
    rank_ : int
        Columns of the preconditioning factor. Fewer than `rank` where they explain the
        kernel matrix to rounding error; 0 for ``preconditioner=None``.
    coef_ : array of shape (m,) or (k, m)
        Weights of the m features, where there are any.
    features_ : transformer or None
        The fitted clone.
    n_iter_ : int
        Iterations; 1 where least squares are solved directly.
    residual_ : float
        What is left of ``y - (G + ridge I) alpha``, or with features of their normal
        equations, computed from the answer, relative to the right-hand side in the l2
        norm. The largest of all targets.
    preconditioned_residual_ : float
        The same of ``(K + ridge D^-2) D alpha`` and ``D^-1 y`` in the norm of M^-1,
        where M is the preconditioner. It bounds the error of f in the natural norm,
        that of the system matrix, up to the quality of the preconditioner. With
        features, where M is the matrix of the normal equations, relative to y.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Their names, where all are strings.

    See Also
    --------
    sklearn.kernel_ridge.KernelRidge : with the callable kernel ``exp(x @ y)`` the same
        by a dense Cholesky decomposition, fastest up to a few thousand points.
    sklearn.linear_model.Ridge : with ``fit_intercept=False`` on features of the kernel,
        what `features` computes in blocks.

    Notes
    -----
    As in KernelRidge there is no intercept. Rows should have norms about 1: the
    diagonal of G is ``exp(|x|^2)``, and beyond 2 or so, in more than a few dimensions,
    G is nearly diagonal. Attention divides X by d^(1/4).

    G = D K D with the Gaussian kernel K and ``D = diag(exp(|x|^2 / 2))``. Solved is
    (K + ridge D^-2) (D alpha) = D^-1 y, in which long rows do not outweigh the others
    and nothing overflows. A residual of row i is one of G multiplied by
    ``exp(-|x_i|^2 / 2)``, and it is that of G which has to fall below `tol`. In rows
    much longer than the rest this may be more than rounding allows, in a dense solver,
    too; a warning then names the row.

    The preconditioner is M = F F^T + mu I + ridge D^-2, where mu is the mean of the
    diagonal of K - F F^T. With mu = 0 it is that of Díaz et al. (2024) for "rpcholesky"
    and a constant ridge. Frangella, Tropp and Udell (2023) put the smallest eigenvalue
    of F F^T in place of mu.

    Cost: n rank kernel evaluations and 2 n rank^2 flops before, then n^2 / 2
    evaluations at d flops each, once up to some 11,000 points and in each iteration
    beyond, and 2 n^2 + 4 n rank flops an iteration; memory 2 n rank and, where the
    kernel is kept, n^2 / 2. With `features` two passes over them, n m^2 flops, and
    memory m^2 besides blocks; some ten passes where their normal equations have a
    condition number above 1e11. All is done in float64.

    Source: Song, Yin and Zhang (2024), Definition 1.3. Their Theorem 4.2 solves with a
    sketch of G, by Algorithm 3. No sketch with fewer rows than points is spectrally
    close to G, which is nonsingular; one that is close to within epsilon leaves
    a residual of up to epsilon times the root of the condition number.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import AttentionKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 4)) / 2
    >>> y = np.sin(X.sum(axis=1))
    >>> model = AttentionKernelRegressor(0.1, random_state=0).fit(X[:800], y[:800])
    >>> model.residual_ < 1e-10
    True
    >>> model.n_iter_ < 10
    True
    >>> model.score(X[800:], y[800:]) > 0.99
    True

    With features, for as many points as there may be:

    >>> from simlib.regression import ExponentialFeatures
    >>> features = ExponentialFeatures(126, kind="taylor")
    >>> model = AttentionKernelRegressor(0.1, features=features).fit(X[:800], y[:800])
    >>> model.coef_.shape
    (126,)
    >>> model.score(X[800:], y[800:]) > 0.99
    True
    """

    features_: Any

    def __init__(
        self,
        ridge: float = 1.0,
        *,
        preconditioner: Any = "rpcholesky",
        rank: int = 256,
        features: Any = None,
        tol: float = 1e-10,
        max_iter: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.ridge = ridge
        self.preconditioner = preconditioner
        self.rank = rank
        self.features = features
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Solve for the coefficients. A fit that fails leaves the model as it was.

        Parameters
        ----------
        X : array of shape (n, d)
            The points.
        y : array of shape (n,) or (n, k)
            Target, or several as columns.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            NaN or an infinity, an option out of range, rows so long that the products
            of two have no digits behind the point or their exponentials miss most
            targets, coefficients too large for floating-point numbers, or without a
            ridge more features than points.
        numpy.linalg.LinAlgError
            Without a ridge: repeated points, dependent features, or a kernel matrix
            that is singular to rounding and a `y` it cannot produce. With one: features
            that are singular to rounding all the same.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            The residual is above `tol`. So it may be where some rows are much longer
            than others: 12 and 1, say. Beyond 38 and 0 the targets of the long rows are
            missed.
        """
        fresh = copy(self)
        fresh.__dict__ = {k: v for k, v in vars(self).items() if not k.endswith("_")}
        fresh._fit(X, y)
        self.__dict__ = fresh.__dict__
        return self

    def _fit(self, X: Any, y: Any) -> None:
        """Set the attributes of a model that has none."""
        self._check_options()
        if scipy.sparse.issparse(y):
            raise ValueError("y is sparse, and its solution is not: pass y.toarray().")
        X, y = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            copy=self.features is None,  # which is kept
            multi_output=True,
            y_numeric=True,
        )
        Y, scale = balanced(y.astype(np.float64).reshape(len(y), -1))
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(2**31)
        rng = np.random.default_rng(seed)
        solve = self._fit_kernel if self.features is None else self._fit_features
        coef = solve(X, y, Y, rng)
        with np.errstate(over="ignore"):
            coef = np.ldexp(coef, scale)
        if not np.isfinite(coef).all():
            raise ValueError(
                "The coefficients are beyond the range of floating-point numbers: take "
                "a larger ridge, or divide y by its size."
            )
        if self.features is None:
            self.gaussian_coef_ = coef.reshape(y.shape)
        else:
            self.coef_ = coef.T if y.ndim == 2 else coef[:, 0]

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the predictions for points.

        Parameters
        ----------
        X : array of shape (m, d)
            The points.

        Returns
        -------
        ndarray of shape (m,) or (m, k)
            One for each target of `fit`. Costs n kernel evaluations for each point.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            NaN or an infinity, another number or other names of columns than in `fit`,
            or a row so long that its prediction overflows.
        """
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        image: Callable[[np.ndarray], np.ndarray]
        if self.features_ is None:
            n, image = len(self.X_fit_), self._expansion()
            step = BLOCK // n
        else:
            step = FEATURES // len(self.coef_.T)

            def image(rows: np.ndarray) -> np.ndarray:
                return _transformed(self.features_, rows) @ self.coef_.T

        with np.errstate(over="ignore", invalid="ignore"):
            predictions = np.concatenate(
                [image(points[rows]) for rows in gen_batches(len(points), max(1, step))]
            )
        if not np.isfinite(predictions).all():
            sums = predictions.reshape(len(points), -1).sum(1)
            lost = np.flatnonzero(~np.isfinite(sums))
            raise ValueError(
                f"The prediction for row {lost[0]} overflows: the row is too long for "
                "the exponential of its products with the points of fit. Scale all "
                "rows, in fit too."
            )
        return predictions

    @property
    def dual_coef_(self) -> np.ndarray:
        """alpha, of shape (n,) or (n, k)."""
        squares = row_norms(self.X_fit_, squared=True)
        scale = np.exp(-(squares + squares.min()) / 2)
        return (scale * self.gaussian_coef_.T).T

    def _expansion(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the map of points to predictions.

        The largest entry of the kernel in a row becomes 1 before the sum, and what it
        was goes with ``exp(|x|^2 / 2)``, of which no square of x is left.
        """
        kernel = GaussianKernel(self.X_fit_)
        centre = kernel.centre
        least = row_norms(self.X_fit_, squared=True).min()
        constant = (centre @ centre + least) / 2

        def predict(points: np.ndarray) -> np.ndarray:
            exponents = kernel.exponents(points)
            largest = exponents.max(axis=1)
            exponents -= largest[:, None]
            sums = np.exp(exponents, out=exponents) @ self.gaussian_coef_
            scale = np.exp(points @ centre - constant + largest)
            return (scale * sums.T).T

        return predict

    def _check_options(self) -> None:
        if not isinstance(self.ridge, Real) or not 0 <= self.ridge <= float_info.max:
            raise ValueError(
                f"ridge must be a finite number of at least 0; got {self.ridge!r}."
            )
        for name in ("rank", "max_iter"):
            value = getattr(self, name)
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not whole or value < 1:
                raise ValueError(
                    f"{name} must be an integer of at least 1; got {value!r}."
                )
        if not isinstance(self.tol, Real) or not 0 < self.tol < 1:
            raise ValueError(f"tol must lie between 0 and 1; got {self.tol!r}.")
        known = self.preconditioner in (None, "rpcholesky", "nystroem")
        if not known and not hasattr(self.preconditioner, "transform"):
            raise ValueError(
                'preconditioner is "rpcholesky", "nystroem", None, or a transformer; '
                f"got {self.preconditioner!r}."
            )
        if self.features is not None and not hasattr(self.features, "transform"):
            raise ValueError(
                f"features must be a transformer or None; got {self.features!r}."
            )

    def _fit_kernel(
        self, X: np.ndarray, y: np.ndarray, Y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the Gaussian coefficients of the targets Y, y balanced."""
        longest = norms(X.T).max()
        if longest > np.sqrt(NO_DIGITS / EPS):
            raise ValueError(
                f"The longest row has norm {longest:.4g}: its exponents have no digits "
                "left. Scale the rows: attention divides them by d ** 0.25, "
                "sklearn.preprocessing.normalize makes their norms 1."
            )
        if self.ridge == 0:
            _refuse_repeated(X)
        self.X_fit_, self.features_ = X, None
        kernel = GaussianKernel(X)
        F = self._factor(kernel, X, y, rng)
        self.rank_ = F.shape[1]
        squares = row_norms(X, squared=True)
        ridge = self.ridge * np.exp(-squares)
        solve = shifted_inverse(F, ridge)
        del F
        small = np.exp((squares.min() - squares) / 2)  # D^-1, the largest made 1
        held = small > np.finfo(float).tiny
        weights = np.divide(1, small, out=np.zeros_like(small), where=held)
        right_hand_side = small[:, None] * Y
        coef, gap, self.n_iter_ = conjugate_gradients(
            lambda P: kernel @ P + ridge[:, None] * P,
            right_hand_side,
            solve,
            tol=self.tol,
            max_iter=self.max_iter,
            weights=weights,
        )
        left = np.where(held[:, None], weights[:, None] * gap, Y)
        self.residual_ = _largest_ratio(norms(left), norms(Y))
        missed = (abs(left) > abs(Y).max(axis=0)).any(axis=1).mean()
        if missed > MISSED and longest > LONGEST:
            raise ValueError(
                f"The longest row has norm {longest:.3g}, and exp({longest**2:.3g}) is "
                f"beyond the {1 / EPS:.0e} that numbers resolve: sums of such terms "
                f"miss {missed:.0%} of the targets by more than the largest. Divide X, "
                f"here and in `predict`, by {longest / LONGEST:.2g} or more, which "
                f"makes the longest norm {LONGEST:.2g}; best are norms about 1."
            )
        self.preconditioned_residual_ = _largest_ratio(
            *(
                np.sqrt(abs(np.einsum("ik,ik->k", R, solve(R))))
                for R in (gap, right_hand_side)
            )
        )
        uneven = _largest_ratio(norms(gap), norms(right_hand_side)) <= self.tol
        self._judge(int(abs(left).max(axis=1).argmax()) if uneven else None)
        return coef

    def _factor(
        self,
        kernel: GaussianKernel,
        X: np.ndarray,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Return F with F F^T about the Gaussian kernel matrix, shape (n, rank_)."""
        if self.preconditioner is None:
            return np.empty((kernel.n, 0))
        if isinstance(self.preconditioner, str):
            return factor(kernel, self.preconditioner, min(self.rank, kernel.n), rng)
        F = _transformed(clone(self.preconditioner).fit(X, y), X)
        F = F.toarray() if scipy.sparse.issparse(F) else F
        return np.asarray(F * np.exp(-row_norms(X, squared=True) / 2)[:, None])

    def _fit_features(
        self, X: np.ndarray, y: np.ndarray, Y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the weights of the features for the targets Y, y balanced."""
        self.features_ = clone(self.features).fit(X, y)
        Z = _Features(self.features_, X)
        if self.ridge == 0 and len(X) < Z.width:
            raise ValueError(
                f"{Z.width} features of {len(X)} points are dependent: give a ridge "
                "above 0."
            )
        gram, right_hand_side = Z.normal_equations(Y)
        gram[np.diag_indices_from(gram)] += self.ridge
        self.n_iter_ = 1
        try:
            solve, natural = _cholesky(gram)
        except np.linalg.LinAlgError:
            coef, self.preconditioned_residual_ = self._by_triangle(Z, Y, rng)
            left = Z.left_over(Y, coef) - self.ridge * coef
        else:
            coef = solve(right_hand_side)
            left = Z.left_over(Y, coef) - self.ridge * coef
            better = coef + solve(left)
            coef, left = better, left - gram @ (better - coef)
            self.preconditioned_residual_ = _largest_ratio(
                norms(natural(left)), norms(Y)
            )
        self.residual_ = _largest_ratio(norms(left), norms(right_hand_side))
        self._judge()
        return coef

    def _by_triangle(
        self, Z: _Features, Y: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, float]:
        """Return the weights of features whose normal equations lose too many digits.

        And their residual in the natural norm. By several passes over the features.
        """
        rows: Iterable[Any] = Z
        targets = Y
        if self.ridge > 0:
            rows = _Stacked(Z, np.sqrt(self.ridge) * np.eye(Z.width))
            targets = np.vstack([Y, np.zeros((Z.width, Y.shape[1]))])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # _judge
                found = lstsq(rows, targets, tol=self.tol, rng=rng)
        except np.linalg.LinAlgError as error:
            if self.ridge == 0:
                raise
            raise np.linalg.LinAlgError(
                "The features are dependent to rounding error, beside the largest of "
                "which the ridge is nothing. Take a larger `ridge`, or scale the rows "
                "of X to norms about 1, all alike."
            ) from error
        self.n_iter_ = max(found.iterations[0], 1)
        return found.x, found.preconditioned_residuals[0]

    def _judge(self, worst: int | None = None) -> None:
        """Warn where the residual is above `tol`; refuse a singular system.

        `worst` is the row with the largest residual, if its length is to blame.
        """
        exact = self.features_ is None
        residual = self.residual_ if exact else self.preconditioned_residual_
        if residual <= self.tol:
            return
        stalled = exact and self.n_iter_ < self.max_iter
        if stalled and self.ridge == 0 and worst is None and residual > NO_DIGITS:
            raise np.linalg.LinAlgError(
                "The kernel matrix is singular to rounding error: conjugate gradients "
                f"stopped at a relative residual of {residual:.1e}. Give a ridge, say "
                "1e-6 times the number of points."
            )
        if exact and not stalled:
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
        warnings.warn(
            f"The relative residual is {residual:.1e} {reason}; tol is "
            f"{self.tol:.0e}. {remedy}.",
            ConvergenceWarning,
            stacklevel=5,
        )


class _Features:
    """Features in blocks of rows, kept if they are few, otherwise anew each time."""

    def __init__(self, transformer: Any, X: np.ndarray):
        self.transformer, self.X = transformer, X
        self.width = _transformed(transformer, X[:1]).shape[1]
        few = len(X) * self.width <= LARGEST_CACHE
        self.cached = list(self._blocks()) if few else None

    def __iter__(self) -> Iterator[Any]:
        return self._blocks() if self.cached is None else iter(self.cached)

    def _blocks(self) -> Iterator[Any]:
        for rows in gen_batches(len(self.X), max(1, FEATURES // self.width)):
            yield _transformed(self.transformer, self.X[rows])

    def normal_equations(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Z^T Z and Z^T Y, of one pass."""
        gram = np.zeros((self.width, self.width))
        right_hand_side = np.zeros((self.width, Y.shape[1]))
        start = 0
        for part in self:
            part = part.astype(np.float64, copy=False)
            gram += part.T @ part
            right_hand_side += part.T @ Y[start : start + part.shape[0]]
            start += part.shape[0]
        return gram, right_hand_side

    def left_over(self, Y: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Return Z^T (Y - Z coef)."""
        start, left = 0, np.zeros_like(coef)
        for part in self:
            some = Y[start : start + part.shape[0]]
            start += part.shape[0]
            left += part.T @ (some - part @ coef)
        return left


class _Stacked:
    """The rows of blocks, and those of a matrix below them."""

    def __init__(self, blocks: _Features, below: np.ndarray):
        self.blocks, self.below = blocks, below

    def __iter__(self) -> Iterator[Any]:
        yield from self.blocks
        yield self.below


def _transformed(transformer: Any, X: np.ndarray) -> Any:
    """Return the features of rows, dense or sparse, of a transformer that may frame."""
    Z = transformer.transform(X)
    Z = scipy.sparse.csr_array(Z) if scipy.sparse.issparse(Z) else np.asarray(Z)
    values = Z.data if isinstance(Z, scipy.sparse.csr_array) else Z
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise ValueError(
            f"The features that {type(transformer).__name__} makes are not real and "
            "finite; for features of the exponential kernel, scale the rows of X."
        )
    return Z


def _cholesky(gram: np.ndarray) -> tuple[Linear, Linear]:
    """Return the inverses of a Gram matrix and of its Cholesky factor R^T.

    Of the columns divided by their norms, whose condition number is what counts.
    """
    sizes = np.sqrt(np.diag(gram))[:, None]
    if not (sizes > 0).all() or not np.isfinite(gram).all():
        raise np.linalg.LinAlgError("A feature is zero, or beyond measure.")
    scaled = gram / sizes / sizes.T
    R = scipy.linalg.cholesky(scaled)
    share, _ = scipy.linalg.lapack.dpocon(R, np.linalg.norm(scaled, 1), uplo="U")
    if share < SINGULAR:
        raise np.linalg.LinAlgError(f"Its condition number is {1 / share:.1e}.")
    return (
        lambda B: scipy.linalg.cho_solve((R, False), B / sizes) / sizes,
        lambda B: scipy.linalg.solve_triangular(R, B / sizes, trans="T"),
    )


def _largest_ratio(parts: np.ndarray, wholes: np.ndarray) -> float:
    """Return the largest ratio, 0 where there is nothing."""
    ratios = np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes > 0)
    return float(ratios.max())


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
