r"""The methods as a scikit-learn transformer: items of any kind become feature vectors.

.. math:: Z = K(X, X_{S_1}) \, T, \qquad T T^\top = (U U^\top)^{1/2}

T is made of the joining matrix U of a method. A symmetric
:math:`U = G \operatorname{diag}(e) G^\top` gives
:math:`T = G \, |\!\operatorname{diag}(e)|^{1/2}`, equation :eq:`eq:embedding` of the
book; the matrix :math:`U = P \Sigma Q^\top` of CUR gives :math:`T = P \Sigma^{1/2}`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from simlib._checks import generator, symmetric, warn, whole_number
from simlib._typing import MatrixLike
from simlib.approximation.anchored import Anchored
from simlib.approximation.methods import named
from simlib.approximation.of_items import Kernel, OfItems
from simlib.lowrank import LowRank
from simlib.lowrank.tall import svd
from simlib.similarity.budget import SimilarityError
from simlib.similarity.items import some_of
from simlib.similarity.source import Source

BASE_RANK = 1000  # features of a cheap kernel, by default
NO_FEATURES = {  # options whose answer gives no features of a new item, and why
    "variant": 'Features need variant="core": the other variants add to rows of the '
    "fitted matrix, which is no function of an item.",
    "nugget": "Features take no nugget: it moves the similarities of the fitted items "
    "with themselves, and a new item has none.",
    "overlay": "Features take no overlay: the evaluated entries, kept beside the "
    "factors, are no inner products of features.",
}


class SimilarityFeatures(OfItems):
    r"""Features of items of any kind, from their similarities to some landmarks.

    Parameters
    ----------
    kernel : str, callable or Similarity, default="rbf"
        A name for `sklearn.metrics.pairwise.pairwise_kernels`; a symmetric function of
        items in one of the three forms that `batch` tells; "precomputed", for a matrix
        that exists; or a symmetric `Similarity` over all items, including those to be
        transformed later. X then holds the numbers of items. All clones, such as those
        of a grid search, share what the `Similarity` knows. Processes do not share it:
        each process of ``GridSearchCV(n_jobs=2)`` evaluates by itself, so give `n_jobs`
        to the `Similarity` instead.
    method : str, default="tikhonov"
        The function that makes the approximation: a name in `METHODS`.
    n_landmarks : int, default=100
        Number of landmarks. If it exceeds the number of items, every item becomes a
        landmark, with a warning.
    cheap : str, callable, Similarity, or array or sparse array, optional
        A kernel that costs little and nearly agrees: the features are then those of
        `anchored`, in place of `tikhonov`. A name or a function of two items if
        `kernel` is a name or a function; if `kernel` is a `Similarity`, any `cheap` of
        `anchored` for all its items. If it does not help, the features are those of the
        kernel alone.
    batch : None, "pairs" or "block", default=None
        Form of a callable kernel, as in `Similarity`.
    kernel_params : dict, optional
        Keyword arguments of the kernel, named or callable. A grid search names them
        together: ``{"kernel_params": [{"gamma": 0.1}, {"gamma": 1.0}]}``.
    method_params : dict, optional
        Options of the method, such as ``{"oversampling": 3}``; with `cheap` options of
        `anchored`, whose ``base_rank`` is then 1000 by default.
    random_state : int, RandomState or None
        An integer gives the draws of the function for that ``rng``.
    n_jobs : int, optional
        Parallel evaluation through joblib, as in `Similarity`.

    Attributes
    ----------
    components_ : list or array of l items
        The landmarks; no other data are kept. None for a precomputed matrix, numbers of
        items if the kernel is a `Similarity`.
    component_indices_ : array of int, shape (l,)
        The places of the landmarks in the data.
    base_components_ : list or array of r items
        With `cheap`, the landmarks of the cheap kernel; empty if it does not help.
    calibration_ : callable
        With `cheap`, the function from values of the cheap kernel to predicted values
        of the kernel.
    normalization_ : array of shape (l, d)
        T: ``transform(X)`` is ``kernel(X, components_) @ normalization_``. With `cheap`
        it has more rows and columns, for
        ``calibration_(cheap(X, base_components_))``.
    signs_ : array of shape (d,)
        +1 or -1: with ``Z = fit_transform(X)``, ``(Z * signs_) @ Z.T`` is the
        approximation, except for CUR. A linear model needs no signs.
    n_calls_ : int
        Evaluations of the kernel in `fit`, or entries of a precomputed matrix read.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn, if the data are a table.

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : for positive semidefinite kernels of arrays;
        takes no strings, and evaluates pairs of landmarks again in ``transform``.

    Notes
    -----
    `fit` costs the calls of the method, of s landmarks among m items s (m + 1) by
    default; `simlib.largest` tells s for a number of calls. A new item costs one call
    for each landmark, and one call of `cheap` for each of ``base_components_``. In a
    pipeline every fold of a cross-validation draws and pays for its own landmarks: to
    draw them once, take a `Similarity` as kernel and cross-validate on
    ``fit_transform(range(sim.n))``. The features of a landmark are unlike those of
    other items, and a fold holds some: with more than a tenth of the items as landmarks
    the score is then too low by a little.

    A callable receives the rows of a data frame of numbers as arrays. For a named
    kernel or a precomputed matrix, float32 data give float32 features.

    The features of "sicur", "stacur" and "skeleton" are those of the paper: their inner
    products are :math:`C (U U^\top)^{1/2} C^\top`, positive semidefinite, and not the
    approximation :math:`C U R`. "sicur" gives that with ``{"symmetrize": True}``.
    Source: Ray et al. (2022), section 4.1.

    Examples
    --------
    >>> from simlib import SimilarityFeatures
    >>> words = ["similar", "simile", "smile", "mile", "kernel", "colonel", "colon"]
    >>> def jaccard(x, y):
    ...     return len(set(x) & set(y)) / len(set(x) | set(y))
    >>> features = SimilarityFeatures(jaccard, n_landmarks=3, random_state=0)
    >>> features.fit(words).components_
    ['smile', 'kernel', 'mile']
    >>> features.transform(["smiles", "nucleon"]).shape
    (2, 3)
    """

    def __init__(
        self,
        kernel: Kernel = "rbf",
        *,
        method: str = "tikhonov",
        n_landmarks: int = 100,
        cheap: Kernel | MatrixLike | None = None,
        batch: Literal["pairs", "block"] | None = None,
        kernel_params: dict[str, Any] | None = None,
        method_params: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ):
        self.kernel = kernel
        self.method = method
        self.n_landmarks = n_landmarks
        self.cheap = cheap
        self.batch = batch
        self.kernel_params = kernel_params
        self.method_params = method_params
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks and join them.

        Parameters
        ----------
        X : array of shape (n, d), or a sequence of n items
            Numbers for a named kernel, dense or sparse; items of any kind for a
            callable, one for each row of an array or data frame; the symmetric (n, n)
            matrix itself for "precomputed"; integers for a `Similarity`.
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            No such kernel, method or option, data that the kernel cannot take, a matrix
            that is not square or not symmetric, or an error of the method.
        SimilarityError
            The callable raised, or returned something that is not a number.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return what `transform` returns of X, at no further kernel call."""
        answer = self._fit(X)
        if answer.symmetric:
            return answer.embedding()[0]
        return answer.left @ self.normalization_

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of items, at one kernel call for each of the landmarks.

        Parameters
        ----------
        X : array of shape (m, d), or a sequence of m items
            Items of the kind that was fitted; for "precomputed" the similarities to all
            fitted items, shape (m, n), of which the columns of the landmarks are read.

        Returns
        -------
        array of shape (m, d)

        Raises
        ------
        sklearn.exceptions.NotFittedError, ValueError, TypeError, SimilarityError
            `fit` was not called; other columns than in `fit`; or an error of `fit`.
        """
        check_is_fitted(self, "normalization_")
        items = self._items(X, reset=False)
        if self.kernel == "precomputed":
            columns = items[:, self.component_indices_]
        elif self.component_indices_.size == 0:  # of a matrix of zeros
            empty = self.component_indices_
            columns = self._similarity(items, self.kernel).columns(empty)
        else:
            columns = self._between(items, self.components_, self.kernel)
        if self.cheap is not None and len(self.normalization_) > columns.shape[1]:
            cheap = self._between(
                self._cheap_items(items), self.base_components_, self._cheap_kernel()
            )
            calibrated = self.calibration_(cheap).astype(columns.dtype)
            columns = np.hstack([columns, calibrated])
        return columns @ self.normalization_

    def _fit(self, X: Any) -> LowRank:
        method, options = self._method()
        n_landmarks = whole_number(self.n_landmarks, "n_landmarks")
        items = self._items(X, reset=True)
        sim = self._similarity(items, self.kernel)
        symmetric(sim, "SimilarityFeatures")
        if self.cheap is not None:
            base_items = self._cheap_items(items)
            options["cheap"] = self._similarity(base_items, self._cheap_kernel())
            rank = whole_number(options.get("base_rank", BASE_RANK), "base_rank")
            options["base_rank"] = min(rank, sim.n)
        if n_landmarks > sim.n:
            warn(
                f"n_landmarks={n_landmarks} is more than the {sim.n} items: all "
                "of them become landmarks, which evaluates the whole matrix."
            )
        calls, n_landmarks = sim.calls, min(n_landmarks, sim.n)
        options |= {"n_landmarks": n_landmarks, "rng": generator(self.random_state)}
        try:
            answer = method(sim, **options)
        except SimilarityError as error:
            if not isinstance(self.kernel, Source):
                error.add_note(
                    "An estimator keeps nothing of a fit that failed. Give it a "
                    "Similarity of all items as kernel, which keeps what was evaluated."
                )
            raise
        self.n_calls_ = sim.calls - calls
        assert answer.landmarks is not None
        self.component_indices_, self.components_ = answer.landmarks, None
        if self.kernel != "precomputed":
            self.components_ = some_of(items, answer.landmarks)
        for name in ("base_components_", "calibration_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if isinstance(answer, Anchored):
            self.base_components_ = some_of(base_items, answer.base_landmarks)
            self.calibration_ = answer.calibration
        self.normalization_, self.signs_ = _feature_map(answer)
        return answer

    def _method(self) -> tuple[Callable[..., LowRank], dict[str, Any]]:
        """Return the function, and its options that do not depend on the data."""
        cheap = self._cheap_kernel()
        self._check_kernels(self.kernel, "" if cheap is None else cheap)
        name, options = self.method, dict(self.method_params or {})
        if self.cheap is not None:
            if name not in ("tikhonov", "anchored"):
                raise ValueError(
                    f'With a cheap kernel the method is "tikhonov"; got {name!r}.'
                )
            if "precomputed" in (self.kernel, cheap):
                raise ValueError(
                    "A cheap kernel needs items, not a precomputed matrix; the "
                    "function simlib.anchored takes two matrices."
                )
            name = "anchored"
        elif name == "anchored":
            raise ValueError('The method "anchored" needs a `cheap` kernel.')
        for option, reason in NO_FEATURES.items():
            if options.get(option) not in (None, False, "core"):
                raise ValueError(reason)
        return named(name, options).function, options

    @property
    def _n_features_out(self) -> int:
        return self.normalization_.shape[1]


def _feature_map(answer: LowRank) -> tuple[np.ndarray, np.ndarray]:
    """Return T and the signs of the features."""
    if not answer.symmetric:
        P, sigma, _ = svd(answer.core.astype(float))
        T = (P * np.sqrt(sigma)).astype(answer.dtype)
        return T, np.ones(sigma.size, answer.dtype)
    T, signs = answer.embedding_map()
    if not isinstance(answer, Anchored):
        T = answer.extend(np.eye(len(T), dtype=answer.dtype))
    return T, signs
