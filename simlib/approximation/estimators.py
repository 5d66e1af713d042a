r"""The methods as scikit-learn transformers: items of any kind become feature vectors.

.. math:: Z = K(X, X_{S_1}) \, T, \qquad T T^\top = (U U^\top)^{1/2}

An item is represented by its similarities to the landmarks S1, times a matrix T made of
the joining matrix U that a method found. A symmetric
:math:`U = G \operatorname{diag}(e) G^\top` gives
:math:`T = G \, |\!\operatorname{diag}(e)|^{1/2}`, and signed inner products of the
features are then the approximation, equation :eq:`eq:embedding` of the book. CUR has no
such U: its :math:`U = P \Sigma Q^\top` gives :math:`T = P \Sigma^{1/2}`, the embedding
of the paper, whose inner products are another matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels
from sklearn.utils import Tags, _safe_indexing, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from simlib.approximation.anchored import anchored
from simlib.approximation.cur import sicur, stacur
from simlib.approximation.sms import sms_nystrom
from simlib.approximation.tikhonov import tikhonov
from simlib.lowrank import LowRank
from simlib.similarity import Similarity, SimilarityError

__all__ = ["SMSNystroem", "SiCUR", "StaCUR", "TikhonovNystroem"]


class _LandmarkFeatures(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Features of an item from its similarities to the landmarks of a method."""

    def __init__(
        self,
        kernel: str | Callable[..., float],
        n_landmarks: int,
        kernel_params: dict[str, Any] | None,
        random_state: int | np.random.RandomState | None,
        n_jobs: int | None,
    ):
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.kernel_params = kernel_params
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _approximate(self, sim: Similarity, **draw: Any) -> LowRank:
        """Call the method; `draw` is n_landmarks and rng."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks and join them.

        Parameters
        ----------
        X : array of shape (n, d), or a sequence of n items
            Numbers for a named kernel, dense or sparse; items of any kind for a
            callable, one for each row of an array or data frame; the symmetric (n, n)
            matrix itself for "precomputed".
        y : ignored
            Here so that pipelines can pass it.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            No such kernel, numbers that a named kernel cannot take, a matrix that is
            not square or not symmetric, or what the method refuses.
        SimilarityError
            The callable raised, or returned something that is no number.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the features of the items; costs no further kernel call.

        Parameters and errors are those of `fit`.

        Returns
        -------
        array of shape (n, d)
            What ``fit(X).transform(X)`` returns, to rounding.
        """
        return self._fit(X).left @ self.normalization_

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of items, at one kernel call for each of the landmarks.

        Parameters
        ----------
        X : array of shape (m, d), or a sequence of m items
            Of the kind that was fitted; for "precomputed" the similarities to all
            fitted items, shape (m, n), of which the columns of the landmarks are read.

        Returns
        -------
        array of shape (m, d)

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            Another number or other names of columns than in `fit`.
        SimilarityError
            The callable raised, or returned something that is no number. The landmarks
            are numbered after the items.
        """
        check_is_fitted(self, "normalization_")
        return self._columns(self._items(X, reset=False)) @ self.normalization_

    def _fit(self, X: Any) -> LowRank:
        items = self._items(X, reset=True)
        sim = self._similarity(items)
        if self.n_landmarks > sim.n:
            warnings.warn(
                f"n_landmarks={self.n_landmarks} is more than the {sim.n} items: all "
                "of them become landmarks, which evaluates the whole matrix.",
                UserWarning,
                stacklevel=3,
            )
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(2**31)
        try:
            answer = self._approximate(
                sim,
                n_landmarks=min(self.n_landmarks, sim.n),
                rng=np.random.default_rng(seed),
            )
        except SimilarityError as error:
            error.add_note(
                "An estimator keeps nothing of a fit that failed. Make a Similarity of "
                "the items and call the method on it to keep what was evaluated."
            )
            raise
        self.component_indices_ = answer.landmarks
        self.components_ = (
            None
            if self.kernel == "precomputed"
            else _safe_indexing(items, answer.landmarks)
        )
        self.normalization_, self.signs_ = _feature_map(answer)
        self.n_calls_ = sim.calls
        return answer

    def _items(self, X: Any, *, reset: bool) -> Any:
        """Check X as far as its kind allows; rows of a data frame become arrays."""
        if not callable(self.kernel):
            return validate_data(
                self,
                X,
                accept_sparse="csr" if self.kernel != "precomputed" else False,
                dtype=[np.float64, np.float32],
                reset=reset,
            )
        if len(getattr(X, "shape", ())) == 2:
            validate_data(self, X, skip_check_array=True, reset=reset)
        return X.to_numpy() if hasattr(X, "to_numpy") else X

    def _similarity(self, items: Any) -> Similarity:
        """Return the similarity of the items to each other."""
        if self.kernel == "precomputed":
            sim = Similarity.from_matrix(items)
            if not sim.symmetric:
                raise ValueError(
                    "A precomputed matrix must be symmetric; use (K + K.T)/2."
                )
            return sim
        return _similarity(items, self.kernel, self.kernel_params, self.n_jobs)

    def _columns(self, items: Any) -> np.ndarray:
        """Return the similarities of items to the landmarks."""
        if self.kernel == "precomputed":
            return items[:, self.component_indices_]
        return _between(
            items, self.components_, self.kernel, self.kernel_params, self.n_jobs
        )

    @property
    def _n_features_out(self) -> int:
        return self.normalization_.shape[1]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _similarity(
    items: Any,
    kernel: str | Callable[..., float],
    params: dict[str, Any] | None,
    n_jobs: int | None,
) -> Similarity:
    """Return the similarity of the items to each other under a kernel."""
    if callable(kernel):
        return Similarity(items, _function(kernel, params), n_jobs=n_jobs)
    if kernel not in kernel_metrics():
        raise ValueError(
            f'kernel must be a callable, "precomputed" or one of '
            f"{', '.join(sorted(kernel_metrics()))}; got {kernel!r}."
        )
    return Similarity(
        items,
        _function(kernel, params),
        batch="block",
        dtype=items.dtype,
        n_jobs=n_jobs,
    )


def _between(
    items: Any,
    landmarks: Any,
    kernel: str | Callable[..., float],
    params: dict[str, Any] | None,
    n_jobs: int | None,
) -> np.ndarray:
    """Return the similarities of items to landmarks under a kernel."""
    function = _function(kernel, params)
    if not callable(kernel):
        return function(items, landmarks, n_jobs=n_jobs)
    new, landmarks = list(items), list(landmarks)
    sim = Similarity(new + landmarks, function, n_jobs=n_jobs)
    return sim.block(range(len(new)), range(len(new), sim.n))


def _function(
    kernel: str | Callable[..., float], params: dict[str, Any] | None
) -> Callable[..., Any]:
    """Return the kernel of two items; a named one takes two arrays of them."""
    if callable(kernel):
        return partial(kernel, **(params or {}))
    return partial(pairwise_kernels, metric=kernel, **(params or {}))


def _feature_map(answer: LowRank) -> tuple[np.ndarray, np.ndarray]:
    """Return T and the signs of the features."""
    if answer.symmetric:
        return answer.embedding_map()
    P, sigma, _ = np.linalg.svd(answer.core.astype(float), full_matrices=False)
    return (P * np.sqrt(sigma)).astype(answer.dtype), np.ones(sigma.size, answer.dtype)


class TikhonovNystroem(_LandmarkFeatures):
    """Features by the Tikhonov core (`tikhonov`), for any symmetric similarity.

    The estimator to start with. It takes items of any kind: strings, lists of words,
    rows of numbers.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        A name for `sklearn.metrics.pairwise.pairwise_kernels`; a symmetric function of
        two items that returns a number, each pair being evaluated in one order only; or
        "precomputed", for a matrix that exists.
    n_landmarks : int, default=100
        Number of landmarks and of features. Where it exceeds the number of items, a
        warning says so and every item is a landmark.
    kernel_params : dict, optional
        Keyword arguments of the kernel, named or callable.
    random_state : int, RandomState or None
        Source of randomness; an integer draws what the function draws for that ``rng``.
    n_jobs : int, optional
        Parallel evaluation through joblib, as in `Similarity`.
    oversampling : float, default=2
        The core is fitted to the block of ``oversampling * n_landmarks`` items.
    ridge : "cv" or float, default="cv"
        Its regularisation; "cv" finds it by cross-validation, at no kernel call.
    landmarks : "uniform", "pivoted_qr" or "adaptive", default="uniform"
        How to choose the landmarks; see `tikhonov`.
    cheap : str or callable, optional
        A kernel that costs little and nearly agrees, given as `kernel` is, but not
        precomputed: the features are then those of `anchored`. Where it does not help
        they are those of the kernel alone. Ridge and landmarks have to be the default.
    base_rank : int, default=1000
        How many features the cheap kernel gives at most.

    Attributes
    ----------
    components_ : list or array of n_landmarks items
        The landmarks; nothing else of the data is kept. None where precomputed.
    component_indices_ : array of int, shape (n_landmarks,)
        Their places in the data.
    base_components_ : list or array of at most base_rank items
        With `cheap`, its own landmarks; none where it does not help.
    calibration_ : callable
        With `cheap`, the function that turns its values into those of the kernel.
    normalization_ : array of shape (n_landmarks, n_landmarks)
        T: ``transform(X)`` is ``kernel(X, components_) @ normalization_``. With `cheap`
        there are further rows and columns, for
        ``calibration_(cheap(X, base_components_))``.
    signs_ : array of shape (n_landmarks,)
        +1 or -1: with ``Z = fit_transform(X)``, ``(Z * signs_) @ Z.T`` is the
        approximation, indefinite where the kernel is. A linear model needs no signs:
        its weights absorb them.
    n_calls_ : int
        Evaluations of the kernel in `fit`, or entries of a precomputed matrix read.
    n_features_in_ : int
        Number of columns, where the data is a table.
    feature_names_in_ : array of str
        Their names, where all are strings.

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : for positive semidefinite kernels of arrays;
        takes no strings, and evaluates pairs of landmarks again to transform them.

    Notes
    -----
    A new item costs ``n_landmarks`` calls, and as many of `cheap` as there are
    ``base_components_``. In `fit` a callable is called as often as
    `tikhonov` says, never twice for a pair; a named kernel is computed in blocks, which
    adds both halves of small tiles on the diagonal. With "precomputed" `transform`
    takes similarities to all fitted items, and ``sklearn.model_selection`` cuts rows
    and columns. A data frame reaches a callable as rows of arrays.

    Float32 data gives float32 features of a named kernel or precomputed matrix.

    Examples
    --------
    >>> from simlib import TikhonovNystroem
    >>> words = ["similar", "simile", "smile", "mile", "kernel", "colonel", "colon"]
    >>> def jaccard(x, y):
    ...     return len(set(x) & set(y)) / len(set(x) | set(y))
    >>> features = TikhonovNystroem(jaccard, n_landmarks=3, random_state=0).fit(words)
    >>> features.components_
    ['smile', 'kernel', 'mile']
    >>> features.n_calls_
    24
    >>> features.transform(["smiles", "nucleon"]).shape
    (2, 3)
    """

    def __init__(
        self,
        kernel: str | Callable[..., float] = "rbf",
        *,
        n_landmarks: int = 100,
        kernel_params: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        oversampling: float = 2,
        ridge: Literal["cv"] | float = "cv",
        landmarks: Literal["uniform", "pivoted_qr", "adaptive"] = "uniform",
        cheap: str | Callable[..., float] | None = None,
        base_rank: int = 1000,
    ):
        super().__init__(kernel, n_landmarks, kernel_params, random_state, n_jobs)
        self.oversampling = oversampling
        self.ridge = ridge
        self.landmarks = landmarks
        self.cheap = cheap
        self.base_rank = base_rank

    def _approximate(self, sim: Similarity, **draw: Any) -> LowRank:
        if self.cheap is None:
            return tikhonov(
                sim,
                oversampling=self.oversampling,
                ridge=self.ridge,
                landmarks=self.landmarks,
                **draw,
            )
        if "precomputed" in (self.kernel, self.cheap):
            raise ValueError(
                "A cheap kernel needs items, not a precomputed matrix; the function "
                "simlib.anchored takes two matrices."
            )
        if (self.ridge, self.landmarks) != ("cv", "uniform"):
            raise ValueError(
                'With a cheap kernel leave ridge="cv" and landmarks="uniform".'
            )
        items = self._cheap_items(sim.items)
        answer = anchored(
            sim,
            cheap=_similarity(items, self.cheap, None, self.n_jobs),
            oversampling=self.oversampling,
            base_rank=min(self.base_rank, sim.n),
            **draw,
        )
        self.base_components_ = _safe_indexing(items, answer.base_landmarks)
        self.calibration_ = answer.calibration
        return answer

    def _columns(self, items: Any) -> np.ndarray:
        columns = super()._columns(items)
        if self.cheap is None or len(self.normalization_) == columns.shape[1]:
            return columns
        cheap_columns = _between(
            self._cheap_items(items),
            self.base_components_,
            self.cheap,
            None,
            self.n_jobs,
        )
        calibrated = self.calibration_(cheap_columns).astype(columns.dtype)
        return np.hstack([columns, calibrated])

    def _cheap_items(self, items: Any) -> Any:
        """Return the items as the cheap kernel takes them."""
        if callable(self.cheap):
            return items
        return check_array(items, accept_sparse="csr", dtype=[np.float64, np.float32])


class SMSNystroem(_LandmarkFeatures):
    """Features by submatrix-shifted Nyström (`sms_nystrom`).

    Parameters
    ----------
    kernel, n_landmarks, kernel_params, random_state, n_jobs
        As in `TikhonovNystroem`.
    oversampling : float, default=2
        The shift is read off a block of ``oversampling * n_landmarks`` items.
    alpha : float, default=1.5
        Safety factor on the eigenvalue found there.

    Notes
    -----
    Attributes are those of `TikhonovNystroem`; ``signs_`` are +1 but for features of
    the size of rounding, so ``Z @ Z.T`` is the approximation. An `alpha` below 1 may
    change that.

    The shift goes into the core alone (``variant="core"``): the other variants add it
    to some rows of the fitted matrix, which is no function of an item. Calls are those
    of `sms_nystrom`, and ``n_landmarks`` for a new item. Source: Ray et al. (2022),
    section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import SMSNystroem
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> SMSNystroem("sigmoid", n_landmarks=20, random_state=0).fit_transform(X).shape
    (200, 20)
    """

    def __init__(
        self,
        kernel: str | Callable[..., float] = "rbf",
        *,
        n_landmarks: int = 100,
        kernel_params: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        oversampling: float = 2,
        alpha: float = 1.5,
    ):
        super().__init__(kernel, n_landmarks, kernel_params, random_state, n_jobs)
        self.oversampling = oversampling
        self.alpha = alpha

    def _approximate(self, sim: Similarity, **draw: Any) -> LowRank:
        return sms_nystrom(
            sim, oversampling=self.oversampling, alpha=self.alpha, **draw
        )


class SiCUR(_LandmarkFeatures):
    r"""The features of the paper for Simple CUR (`sicur`).

    They are :math:`Z = C P \Sigma^{1/2}`, with C the columns of the landmarks and the
    joining matrix :math:`U = P \Sigma Q^\top`. Their inner products are
    :math:`C (U U^\top)^{1/2} C^\top`, positive semidefinite, and not the approximation
    :math:`C U R`: signs of eigenvalues are lost, and with more rows than columns so is
    the scale, by about ``oversampling ** -0.5``. The approximation itself, symmetrised,
    is what the features of `LowRank.embedding` give, which ask for the rows too.

    Parameters
    ----------
    kernel, n_landmarks, kernel_params, random_state, n_jobs
        As in `TikhonovNystroem`.
    oversampling : float, default=2
        Rows for each landmark, drawn around the landmarks.

    Notes
    -----
    Attributes are those of `TikhonovNystroem`; ``signs_`` are all +1. Calls are those
    of `sicur`, and ``n_landmarks`` for a new item. Source: Ray et al. (2022), section
    4.1; the paper counts the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import SiCUR
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> SiCUR("sigmoid", n_landmarks=20, random_state=0).fit_transform(X).shape
    (200, 20)
    """

    def __init__(
        self,
        kernel: str | Callable[..., float] = "rbf",
        *,
        n_landmarks: int = 100,
        kernel_params: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        oversampling: float = 2,
    ):
        super().__init__(kernel, n_landmarks, kernel_params, random_state, n_jobs)
        self.oversampling = oversampling

    def _approximate(self, sim: Similarity, **draw: Any) -> LowRank:
        return sicur(sim, oversampling=self.oversampling, **draw)


class StaCUR(_LandmarkFeatures):
    r"""The features of the paper for Stable CUR (`stacur`).

    As for `SiCUR` their inner products are :math:`C (U U^\top)^{1/2} C^\top`, and not
    the approximation :math:`C U R`.

    Parameters
    ----------
    kernel, n_landmarks, kernel_params, random_state, n_jobs
        As in `TikhonovNystroem`.
    same_rows : bool, default=True
        Sample the rows of the landmarks themselves; False draws them independently.
    oversampling : float, default=1
        Rows for each landmark.

    Notes
    -----
    Attributes are those of `TikhonovNystroem`; ``signs_`` are all +1. Calls are those
    of `stacur`, and ``n_landmarks`` for a new item. Source: Ray et al. (2022), section
    4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import StaCUR
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> StaCUR("sigmoid", n_landmarks=20, random_state=0).fit_transform(X).shape
    (200, 20)
    """

    def __init__(
        self,
        kernel: str | Callable[..., float] = "rbf",
        *,
        n_landmarks: int = 100,
        kernel_params: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        same_rows: bool = True,
        oversampling: float = 1,
    ):
        super().__init__(kernel, n_landmarks, kernel_params, random_state, n_jobs)
        self.same_rows = same_rows
        self.oversampling = oversampling

    def _approximate(self, sim: Similarity, **draw: Any) -> LowRank:
        return stacur(
            sim, same_rows=self.same_rows, oversampling=self.oversampling, **draw
        )
