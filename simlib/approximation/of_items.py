"""The base class of the estimators on items of any kind, and views of some items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import validate_data

from simlib._checks import finite, one_collection, one_of, readable, square
from simlib._typing import MatrixLike
from simlib.approximation.companion import InnerProducts, as_companion
from simlib.similarity import Similarity
from simlib.similarity.items import as_items, is_frame, numeric, some_of
from simlib.similarity.requests import Block, Pairs
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, View, check_similarity

__all__ = ["Kernel", "OfItems"]

Kernel = str | Callable[..., Any] | Source
FLOATS = [np.float64, np.float32]


class OfItems(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator on items of any kind, which checks `kernel`, `cheap` and `batch`."""

    kernel: Kernel
    cheap: Kernel | MatrixLike | None
    batch: Literal["pairs", "block"] | None
    random_state: int | np.random.RandomState | None
    distance: bool = False
    kernel_params: dict[str, Any] | None = None
    n_jobs: int | None = None

    def _items(self, X: Any, *, reset: bool) -> Any:
        """Check X as far as its kind allows."""
        if self.batch is not None:
            one_of(self.batch, ("pairs", "block"), "batch")
        if reset:  # drop the columns of an earlier fit
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        if isinstance(X, str | bytes):
            raise TypeError(f"X is a sequence of items, got one of them: pass [{X!r}].")
        if isinstance(self.kernel, Source):
            return _numbers(X)
        if not callable(self.kernel):
            sparse = "csr" if self.kernel != "precomputed" else False
            X = readable(X, "X")
            return validate_data(
                self, X, accept_sparse=sparse, dtype=FLOATS, reset=reset
            )
        if len(getattr(X, "shape", ())) == 2:
            validate_data(self, X, skip_check_array=True, reset=reset)
        if is_frame(X) and numeric(X):  # rows are arrays, as in scikit-learn
            X = X.to_numpy()
            return X.astype(float) if X.dtype == object else X  # of unlike columns
        X = as_items(X, self.batch)
        return X.to_numpy() if hasattr(X, "to_numpy") and not is_frame(X) else X

    def _check_kernels(self, *kernels: Any) -> None:
        """Raise for a kernel that is a matrix, or anything else that is none."""
        for kernel in kernels:
            if not (isinstance(kernel, str | Source) or callable(kernel)):
                raise TypeError(
                    "A kernel is a callable, a Similarity or a name; got "
                    f"{type(kernel).__name__}. For a matrix take kernel="
                    '"precomputed", and pass it as X.'
                )

    def _cheap_kernel(self) -> Any:
        """Return `cheap`, as a Source if X holds numbers of items."""
        numbers, cheap = isinstance(self.kernel, Source), self.cheap
        known = isinstance(cheap, str | Source)
        if known and isinstance(cheap, Source) != numbers:
            raise ValueError(
                "Of `kernel` and `cheap` one is a Similarity, for which X is numbers "
                "of items: the other must be one too."
            )
        if cheap is None or known or not numbers:
            return cheap
        kernel = check_similarity(self.kernel)
        return as_companion(cheap, kernel, distance=self.distance)

    def _cheap_items(self, items: Any) -> Any:
        if not isinstance(self.cheap, str):
            return items
        items = readable(items, "X")
        return check_array(items, accept_sparse="csr", dtype=FLOATS)

    def _similarity(self, items: Any, kernel: Kernel) -> SimilarityMatrix:
        """Return the similarity of the items to each other under a kernel."""
        params = self.kernel_params if kernel is self.kernel else None
        if isinstance(kernel, Source):
            if params:
                raise ValueError(
                    "kernel_params are for functions; of a Similarity use `map`."
                )
            if isinstance(base := getattr(kernel, "base", None), InnerProducts):
                return check_similarity(type(base)(base.Z[items]))
            kernel = check_similarity(kernel)
            one_collection(kernel, "are a kernel")
            return Subset(kernel, items)
        if kernel == "precomputed":
            square(np.shape(items), "is a precomputed kernel")
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
        function = partial(_named, metric=kernel, **(params or {}))
        return Similarity(
            items, function, batch="block", dtype=items.dtype, n_jobs=self.n_jobs
        )

    def _between(self, items: Any, landmarks: Any, kernel: Kernel) -> np.ndarray:
        if isinstance(kernel, Source):
            return kernel.block(items, landmarks)
        sim = self._similarity(landmarks, kernel)
        return sim.between(items, np.arange(sim.n))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise, tags.input_tags.sparse = pairwise, not pairwise
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _named(X: Any, Y: Any, *, metric: str, **params: Any) -> Any:
    """Return a block of a kernel of scikit-learn.

    Its "rbf" computes distances from inner products, which lose digits for rows far
    from 0: those of dense rows are computed from differences.
    """
    sparse = scipy.sparse.issparse(X) or scipy.sparse.issparse(Y)
    if metric != "rbf" or sparse or params.keys() - {"gamma"}:
        return pairwise_kernels(X, Y, metric=metric, **params)
    if (gamma := params.get("gamma")) is None:
        gamma = 1 / X.shape[1]
    squares = cdist(X, Y, "sqeuclidean")
    return np.exp(-finite(gamma, "gamma", 0) * squares).astype(X.dtype, copy=False)


class Subset(View):
    """The similarities of some items, numbered by their places in `subset`."""

    def __init__(self, base: SimilarityMatrix, items: np.ndarray):
        super().__init__(base)
        base.peek(items, items)  # raises for numbers that are out of range
        self.subset = items

    def on(self, base: Source) -> View:
        return Subset(check_similarity(base), self.subset)

    @property
    def extent(self) -> int:
        return self.subset.size

    @property
    def items(self) -> Any:
        return some_of(super().items, self.subset)

    def read(self, *blocks: Block, pairs: Pairs | None = None) -> list[np.ndarray]:
        those, pairs = self._inside(blocks, pairs)
        return super().read(*those, pairs=pairs)

    def peek(self, i: ArrayLike, j: ArrayLike) -> np.ndarray:
        return self.base.peek(self._of(i), self._of(j))

    def known(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        place = np.full(self.base.n, -1)
        place[self.subset] = np.arange(self.n)
        entries = ((place[i], place[j], values) for i, j, values in self.base.known())
        return (
            (i[inside], j[inside], values[inside])
            for i, j, values in entries
            for inside in [(i >= 0) & (j >= 0)]
        )

    def cost(self, *blocks: Block, pairs: Pairs | None = None) -> int:
        those, pairs = self._inside(blocks, pairs)
        return super().cost(*those, pairs=pairs)

    def between(
        self,
        new_items: Any,
        landmarks: ArrayLike | None = None,
        row_landmarks: ArrayLike | None = None,
    ) -> np.ndarray:
        both = landmarks, row_landmarks
        those = (None if items is None else self._of(items) for items in both)
        return super().between(new_items, *those)

    def _inside(
        self, blocks: Iterable[Block], pairs: Pairs | None
    ) -> tuple[list[Block], Pairs | None]:
        """Return the requests in the numbers of the base."""

        def inside(side: ArrayLike | None) -> np.ndarray:
            return self.subset if side is None else self._of(side)

        those: list[Block] = [(inside(a), inside(b)) for a, b in blocks]
        return those, None if pairs is None else (inside(pairs[0]), inside(pairs[1]))

    def _of(self, places: ArrayLike) -> np.ndarray:
        return self.subset[np.asarray(places)]


def _numbers(X: Any) -> np.ndarray:
    """Return the numbers of items, from a sequence or a single column."""
    numbers = np.asarray(readable(X, "X"))
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "iu":
        raise ValueError(
            "Where the kernel is a Similarity, X is a sequence of the numbers of its "
            f"items; got {numbers.dtype} of shape {numbers.shape}."
        )
    return numbers.astype(np.int64)
