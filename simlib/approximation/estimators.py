r"""The methods as a scikit-learn transformer: items of any kind become feature vectors.

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
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from simlib._checks import whole_number
from simlib._typing import MatrixLike
from simlib.approximation.anchored import Anchored
from simlib.approximation.companion import InnerProducts, as_companion
from simlib.approximation.methods import named
from simlib.lowrank import LowRank
from simlib.similarity import Similarity
from simlib.similarity.budget import SimilarityError
from simlib.similarity.items import accessor, as_items, is_frame, numeric
from simlib.similarity.requests import Block
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, View, check_similarity

__all__ = ["OfItems", "SimilarityFeatures"]

BASE_RANK = 1000  # features of a cheap kernel, unless told

Kernel = str | Callable[..., Any] | Source


class OfItems(BaseEstimator):
    """An estimator on items of any kind: what `kernel`, `cheap` and `batch` may be."""

    kernel: Kernel
    cheap: Kernel | MatrixLike | None
    batch: Literal["pairs", "block"] | None
    kernel_params: dict[str, Any] | None = None
    n_jobs: int | None = None

    def _items(self, X: Any, *, reset: bool) -> Any:
        """Check X as far as its kind allows."""
        if self.batch not in (None, "pairs", "block"):
            raise ValueError(
                f'batch must be None, "pairs" or "block"; got {self.batch!r}.'
            )
        if reset:  # a kind of items without columns leaves none of an earlier fit
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        if isinstance(X, str | bytes):
            raise TypeError(f"X is a sequence of items, got one of them: pass [{X!r}].")
        if isinstance(self.kernel, Source):
            return _numbers(X)
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
        if not (is_frame(X) and numeric(X)):  # or rows are arrays, as in scikit-learn
            X = as_items(X, self.batch)
            if is_frame(X):
                return X
        return X.to_numpy() if hasattr(X, "to_numpy") else X

    def _cheap_kernel(self) -> Any:
        """Return `cheap`, for numbers of items as a Source whatever it is."""
        numbers = isinstance(self.kernel, Source)
        if self.cheap is None or isinstance(self.cheap, str | Source):
            if self.cheap is not None and isinstance(self.cheap, Source) != numbers:
                raise ValueError(
                    "Of `kernel` and `cheap` one is a Similarity, for which X is "
                    "numbers of items: the other must be one too."
                )
            return self.cheap
        if not numbers:
            return self.cheap
        return as_companion(self.cheap, check_similarity(self.kernel))

    def _cheap_items(self, items: Any) -> Any:
        """Return the items as the cheap kernel takes them."""
        if not isinstance(self.cheap, str):
            return items
        return check_array(items, accept_sparse="csr", dtype=[np.float64, np.float32])

    def _similarity(self, items: Any, kernel: Kernel) -> SimilarityMatrix:
        """Return the similarity of the items to each other under a kernel."""
        params = self.kernel_params if kernel is self.kernel else None
        if isinstance(kernel, Source):
            if params:
                raise ValueError(
                    "kernel_params are for functions; of a Similarity use `map`."
                )
            if isinstance(base := getattr(kernel, "base", None), InnerProducts):
                return check_similarity(InnerProducts(base.Z[items]))
            return _Subset(check_similarity(kernel), items)
        if kernel == "precomputed":
            return Similarity.from_matrix(items)
        if callable(kernel):
            return Similarity(
                items,
                partial(kernel, **(params or {})),
                batch=self.batch if kernel is self.kernel else None,
                n_jobs=self.n_jobs,
            )
        if kernel not in kernel_metrics():
            raise ValueError(
                'kernel must be a callable, a Similarity, "precomputed" or one of '
                f"{', '.join(sorted(kernel_metrics()))}; got {kernel!r}."
            )
        function = partial(pairwise_kernels, metric=kernel, **(params or {}))
        return Similarity(
            items, function, batch="block", dtype=items.dtype, n_jobs=self.n_jobs
        )

    def _between(self, items: Any, landmarks: Any, kernel: Kernel) -> np.ndarray:
        """Return the similarities of items to landmarks under a kernel."""
        if isinstance(kernel, Source):
            return kernel.block(items, landmarks)
        sim = self._similarity(landmarks, kernel)
        return sim.between(items, np.arange(sim.n))


class SimilarityFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, OfItems):
    r"""Features of items of any kind, from their similarities to some landmarks.

    Strings, lists of words, rows of numbers: whatever a similarity is defined for.

    Parameters
    ----------
    kernel : str, callable or Similarity, default="rbf"
        A name for `sklearn.metrics.pairwise.pairwise_kernels`; a symmetric function of
        items in one of the three forms that `batch` tells, each pair being evaluated in
        one order only; "precomputed", for a matrix that exists; or a symmetric
        `Similarity` over all items, those to be transformed later included. X then are
        the numbers of items, and all clones, as those of a grid search, share what it
        knows: no pair is evaluated twice. Processes share nothing: with ``n_jobs`` of a
        search above 1 each has a copy of its own.
    method : str, default="tikhonov"
        The function that makes the approximation: a name in `METHODS`.
    n_landmarks : int, default=100
        Number of landmarks. Where it exceeds the number of items, a warning says so and
        every item is a landmark.
    cheap : str, callable, Similarity, or array or sparse array, optional
        A kernel that costs little and nearly agrees: the features are then those of
        `anchored`, in place of `tikhonov`. A name or a function of two items where
        `kernel` is; where `kernel` is a `Similarity`, what `anchored` takes for all its
        items. Where it does not help the features are those of the kernel alone.
    batch : None, "pairs" or "block", default=None
        Form of a callable kernel, as in `Similarity`.
    kernel_params : dict, optional
        Keyword arguments of the kernel, named or callable.
    method_params : dict, optional
        Options of the method, such as ``{"oversampling": 3}``; with `cheap` those of
        `anchored`, whose ``base_rank`` is then 1000 unless told.
    random_state : int, RandomState or None
        Source of randomness; an integer draws what the function draws for that ``rng``.
    n_jobs : int, optional
        Parallel evaluation through joblib, as in `Similarity`.

    Attributes
    ----------
    components_ : list or array of l items
        The landmarks; nothing else of the data is kept. None where precomputed, numbers
        of items where the kernel is a `Similarity`.
    component_indices_ : array of int, shape (l,)
        Their places in the data.
    base_components_ : list or array of r items
        With `cheap`, its own landmarks; none where it does not help.
    calibration_ : callable
        With `cheap`, the function that turns its values into those of the kernel.
    normalization_ : array of shape (l, d)
        T: ``transform(X)`` is ``kernel(X, components_) @ normalization_``. With `cheap`
        there are further rows and columns, for
        ``calibration_(cheap(X, base_components_))``.
    signs_ : array of shape (d,)
        +1 or -1: with ``Z = fit_transform(X)``, ``(Z * signs_) @ Z.T`` is the
        approximation, indefinite where that is. A linear model needs no signs: its
        weights absorb them. All are +1 for CUR, see the notes.
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
    A step of a pipeline draws landmarks in every fold of a cross-validation, and pays
    for all of them. To draw them once, make a `Similarity` of all items the kernel, and
    cross-validate what comes after on ``fit_transform(range(sim.n))``: no label plays a
    part in the features.

    A new item costs as many calls as there are landmarks, and as many of `cheap` as
    there are ``base_components_``; where the kernel is a `Similarity`, less what it
    knows. In `fit` a callable is called as often as the method says, never twice for a
    pair; a function in blocks, as a named kernel is, gives both halves of small tiles
    on the diagonal. With "precomputed" `transform` takes similarities to all fitted
    items, and ``sklearn.model_selection`` cuts rows and columns. A data frame of
    numbers reaches a callable as rows of arrays, any other as in `Similarity`: one
    column as its values, several as mappings. Float32 data gives float32 features of a
    named kernel or precomputed matrix.

    Of "sicur", "stacur" and "skeleton" the features are those of the paper,
    :math:`Z = C P \Sigma^{1/2}` with the joining matrix :math:`U = P \Sigma Q^\top`.
    Their inner products are :math:`C (U U^\top)^{1/2} C^\top`, positive semidefinite,
    and not the approximation :math:`C U R`: signs of eigenvalues are lost, and with
    more rows than columns so is the scale, by about ``oversampling ** -0.5``. "sicur"
    with ``{"symmetrize": True}`` gives the approximation itself, from as many landmarks
    as there are rows. "sms_nystrom" shifts the core alone (``variant="core"``): the
    other variants add to rows of the fitted matrix, which is no function of an item.
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
    >>> features.n_calls_
    24
    >>> features.transform(["smiles", "nucleon"]).shape
    (2, 3)

    One similarity for all that is fitted and transformed:

    >>> from simlib import Similarity
    >>> sim = Similarity(words + ["smiles", "nucleon"], jaccard)
    >>> features = SimilarityFeatures(sim, n_landmarks=3, random_state=0)
    >>> features.fit(range(7)).transform([7, 8]).shape
    (2, 3)
    >>> sim.calls
    30
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
            Here so that pipelines can pass it.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            No such kernel or method, numbers that a named kernel cannot take, a matrix
            that is not square or not symmetric, or what the method refuses.
        TypeError
            The method has no such option, or the data is a single string.
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
        answer = self._fit(X)
        if answer.symmetric:
            return answer.embedding()[0]
        return answer.left @ self.normalization_

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
        TypeError
            The data is a single string.
        SimilarityError
            The callable raised, or returned something that is no number.
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
        if not sim.symmetric:
            raise ValueError(
                "Features are made of a symmetric matrix: use (K + K.T)/2, which is "
                "sim.symmetrized() of a Similarity."
            )
        if self.cheap is not None:
            base_items = self._cheap_items(items)
            options["cheap"] = self._similarity(base_items, self._cheap_kernel())
            rank = whole_number(options.get("base_rank", BASE_RANK), "base_rank")
            options["base_rank"] = min(rank, sim.n)
        if n_landmarks > sim.n:
            warnings.warn(
                f"n_landmarks={n_landmarks} is more than the {sim.n} items: all "
                "of them become landmarks, which evaluates the whole matrix.",
                UserWarning,
                stacklevel=3,
            )
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(2**31)
        calls = sim.calls
        try:
            answer = method(
                sim,
                n_landmarks=min(n_landmarks, sim.n),
                rng=np.random.default_rng(seed),
                **options,
            )
        except SimilarityError as error:
            if not isinstance(self.kernel, Source):
                error.add_note(
                    "An estimator keeps nothing of a fit that failed. Give it a "
                    "Similarity of all items as kernel, which keeps what was evaluated."
                )
            raise
        self.n_calls_ = sim.calls - calls
        assert answer.landmarks is not None
        self.component_indices_ = answer.landmarks
        self.components_ = (
            None if self.kernel == "precomputed" else _some(items, answer.landmarks)
        )
        if isinstance(answer, Anchored):
            self.base_components_ = _some(base_items, answer.base_landmarks)
            self.calibration_ = answer.calibration
        else:  # of an earlier fit
            self.__dict__.pop("base_components_", None)
            self.__dict__.pop("calibration_", None)
        self.normalization_, self.signs_ = _feature_map(answer)
        return answer

    def _method(self) -> tuple[Callable[..., LowRank], dict[str, Any]]:
        """Return the function, and its options but those that depend on the data."""
        cheap = self._cheap_kernel()
        for kernel in (self.kernel, "" if cheap is None else cheap):
            if not (isinstance(kernel, str | Source) or callable(kernel)):
                raise TypeError(
                    "A kernel is a callable, a Similarity or a name; got "
                    f"{type(kernel).__name__}. For a matrix take kernel="
                    '"precomputed", and pass it as X.'
                )
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
        if options.get("variant", "core") != "core":
            raise ValueError(
                'Features need variant="core": the other variants add to rows of the '
                "fitted matrix, which is no function of an item."
            )
        if options.get("nugget"):
            raise ValueError(
                "Features take no nugget: it moves the similarities of the fitted "
                "items with themselves, and a new item has none."
            )
        if options.get("overlay"):
            raise ValueError(
                "Features take no overlay: the evaluated entries, kept beside the "
                "factors, are no inner products of features."
            )
        return named(name, options).function, options

    @property
    def _n_features_out(self) -> int:
        return self.normalization_.shape[1]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Subset(View):
    """The similarities of some items, by their places among these."""

    def __init__(self, base: SimilarityMatrix, items: np.ndarray):
        super().__init__(base)
        base.peek(items, items)  # raises for numbers that are none of an item
        self.subset = items

    def on(self, base: Source) -> View:
        return _Subset(check_similarity(base), self.subset)

    @property
    def n(self) -> int:
        return self.subset.size

    @property
    def items(self) -> Any:
        return _some(super().items, self.subset)

    def block(self, rows: ArrayLike, columns: ArrayLike) -> np.ndarray:
        return self.base.block(self._of(rows), self._of(columns))

    def columns(self, columns: ArrayLike) -> np.ndarray:
        return self.base.block(self.subset, self._of(columns))

    def rows(self, rows: ArrayLike) -> np.ndarray:
        return self.base.block(self._of(rows), self.subset)

    def pairs(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        return self.base.pairs(self._of(i), self._of(j))

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        return self.base.peek(self._of(i), self._of(j))

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        place = np.full(self.base.n, -1)
        place[self.subset] = np.arange(self.n)
        for i, j, values in self.base.known():
            inside = (place[i] >= 0) & (place[j] >= 0)
            yield place[i[inside]], place[j[inside]], values[inside]

    def cost(
        self, *blocks: Block, pairs: tuple[ArrayLike, ArrayLike] | None = None
    ) -> int:
        def inside(items: ArrayLike | None) -> np.ndarray:
            return self.subset if items is None else self._of(items)

        those = [(inside(rows), inside(columns)) for rows, columns in blocks]
        if pairs is not None:
            pairs = (inside(pairs[0]), inside(pairs[1]))
        return check_similarity(self.base).cost(*those, pairs=pairs)

    def between(
        self,
        new_items: Any,
        landmarks: ArrayLike,
        row_landmarks: ArrayLike | None = None,
    ) -> np.ndarray:
        others = None if row_landmarks is None else self._of(row_landmarks)
        return super().between(new_items, self._of(landmarks), others)

    def _of(self, places: ArrayLike) -> np.ndarray:
        """Return the items at these places."""
        return self.subset[np.asarray(places)]


def _numbers(X: Any) -> np.ndarray:
    """Return the numbers of items, from a sequence or a single column."""
    numbers = np.asarray(X)
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "iu":
        raise ValueError(
            "Where the kernel is a Similarity, X is a sequence of the numbers of its "
            f"items; got {numbers.dtype} of shape {numbers.shape}."
        )
    return numbers.astype(np.int64)


def _some(items: Any, index: np.ndarray) -> Any:
    return accessor(items)(index)


def _feature_map(answer: LowRank) -> tuple[np.ndarray, np.ndarray]:
    """Return T and the signs of the features."""
    if not answer.symmetric:
        P, sigma, _ = np.linalg.svd(answer.core.astype(float), full_matrices=False)
        T = (P * np.sqrt(sigma)).astype(answer.dtype)
        return T, np.ones(sigma.size, answer.dtype)
    T, signs = answer.embedding_map()
    if not isinstance(answer, Anchored):
        T = answer.extend(np.eye(len(T), dtype=answer.dtype))
    return T, signs
