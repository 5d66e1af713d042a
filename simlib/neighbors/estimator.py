"""The neighbour graph as a scikit-learn transformer.

With ``metric="precomputed"`` Isomap takes it, and t-SNE, with at least 3 perplexity + 1
neighbours; SpectralClustering with ``affinity="precomputed_nearest_neighbors"``. For
others see `NeighborGraph.to_csr`.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from simlib._checks import from_device, generator, one_of, warn, whole_number
from simlib._typing import MatrixLike
from simlib.approximation.of_items import Kernel, OfItems
from simlib.neighbors.cheap import asked
from simlib.neighbors.nearest import nearest
from simlib.neighbors.rounds import price
from simlib.neighbors.search import N_LANDMARKS, search
from simlib.similarity.items import is_frame
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix

SHARE = 0.05  # of the pairs, by default
LEAST = 4  # calls for each neighbour of an item, by default at least


class SimilarityNeighbors(OfItems):
    """The nearest neighbours of items of any kind, from few calls.

    `sklearn.neighbors.KNeighborsTransformer` compares all pairs, or uses a metric.

    Parameters
    ----------
    kernel : str, callable or Similarity, default="rbf"
        As in `SimilarityFeatures`: a name for
        `sklearn.metrics.pairwise.pairwise_kernels`, a symmetric function of items, or a
        symmetric `Similarity` over all items; X then holds numbers of items. Not
        "precomputed": pass ``Similarity.from_matrix(K)``.
    n_neighbors : int, default=10
        Number of neighbours. If there are not more items, all other items are
        neighbours, with a warning.
    limit : int, optional
        Most calls in `fit`. None means calls for 5 % of the pairs, and at least four
        for each neighbour of each item, besides those of `check`.
    cheap : str, callable, Similarity, or array or sparse array, optional
        A companion, as in `nearest`. If `kernel` is a name or a function: a name or a
        function of two items. If `kernel` is a `Similarity`: a `Similarity` of the same
        items, or a function. In both cases also an array of shape (n, d) with a row for
        each item; their inner products are the cheap similarities, or with
        ``distance=True`` their distances the cheap distances. New items are then
        searched without a companion.
    distance, check, random_state
        As ``distance``, ``check`` and ``rng`` in `nearest`; `random_state` is an int,
        RandomState or None. With `check` items ``graph_.recall`` tells how many of the
        neighbours were found.
    batch : None, "pairs" or "block", default=None
        Form of a callable kernel, as in `Similarity`.

    Attributes
    ----------
    graph_ : NeighborGraph
        The neighbours of the fitted items.
    n_calls_, n_samples_fit_ : int
        Number of pairs that were asked for in `fit`, known before or not, besides the
        rows of `check` (``graph_.recall.calls``), and number of fitted items.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn, if the data are a table.

    Notes
    -----
    A similarity s counts as the distance m - s, where m is the largest similarity that
    was found in `fit`; for a new item a negative distance becomes zero. If n items are
    fitted, a new item costs n / 20 calls, and at least four for each neighbour; the
    first search also costs up to 60 columns among the fitted items.
    If the kernel is a `Similarity`, a new item costs n calls. Otherwise the answer for
    a new item depends a little on the others that are passed with it, see `search`.

    Examples
    --------
    >>> from simlib.neighbors import SimilarityNeighbors
    >>> words = ["similar", "simile", "smile", "mile", "kernel", "colonel", "colon"]
    >>> def jaccard(x, y):
    ...     return len(set(x) & set(y)) / len(set(x) | set(y))
    >>> neighbors = SimilarityNeighbors(jaccard, n_neighbors=2, random_state=0)
    >>> neighbors.fit(words).kneighbors(return_distance=False)[2].tolist()
    [1, 3]
    """

    def __init__(
        self,
        kernel: Kernel = "rbf",
        n_neighbors: int = 10,
        *,
        limit: int | None = None,
        cheap: Kernel | MatrixLike | None = None,
        distance: bool = False,
        check: int = 0,
        batch: Literal["pairs", "block"] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.kernel = kernel
        self.n_neighbors = n_neighbors
        self.limit = limit
        self.cheap = cheap
        self.distance = distance
        self.check = check
        self.batch = batch
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the neighbours of all items; y is ignored.

        Errors are those of `nearest`; ValueError for a precomputed kernel.

        Parameters
        ----------
        X : array of shape (n, d), or a sequence of n items
            Numbers for a named kernel, dense or sparse; items of any kind for a
            callable; integers for a `Similarity`.
        """
        self._check_kernels(self.kernel)
        if self.kernel == "precomputed":
            raise ValueError(
                "Of a matrix that exists pass kernel=Similarity.from_matrix(K), and as "
                "X the numbers of its rows."
            )
        items = self._items(X, reset=True)
        if hasattr(items, "copy") and not isinstance(items, np.memmap):
            items = items.copy()  # X may change, and the graph does not
        sim = self._similarity(items, self.kernel)
        n, k = sim.n, whole_number(self.n_neighbors, "n_neighbors")
        check = whole_number(self.check, "check", 0, n)
        if n < 2:
            raise ValueError(f"n_samples={n}: a single item has no neighbours.")
        if k >= n:
            told = f"n_neighbors={k} is not less than the {n} items: all others become"
            warn(f"{told} neighbours.")
            k = n - 1
        cheap = self._cheap_kernel()
        if isinstance(cheap, str | Source) or callable(cheap):
            cheap = self._similarity(self._cheap_items(items), cheap)
        limit = self.limit
        if limit is None:
            pairs = n * (n - 1) // 2
            limit = min(pairs, max(int(SHARE * pairs), LEAST * k * n)) + check * n
            limit *= price(sim)
        rng = generator(self.random_state)
        options = {"cheap": cheap, "distance": self.distance, "rng": rng}
        self.graph_ = nearest(sim, k, limit=limit, check=check, **options)
        self._seed = int(rng.integers(2**62))  # the same answer whenever it is asked
        self._fitted, self._sim = items, sim
        self._cheap = cheap if isinstance(cheap, SimilarityMatrix) else None
        self._far = float(self.graph_.values.max())
        self.n_calls_, self.n_samples_fit_ = self.graph_.calls, n
        return self

    def fit_transform(self, X: Any, y: Any = None) -> csr_matrix:
        """Fit, and return the graph of the fitted items, as `transform` does."""
        return self.fit(X)._fitted_graph()

    def transform(self, X: Any) -> csr_matrix:
        """Return the distances of items to their neighbours among the fitted items.

        A csr_matrix of shape (m, n) with ``n_neighbors + 1`` entries in each row, as in
        scikit-learn. If X are the fitted items, the first entry of a row is the item
        itself, at the distance zero. Errors are those of `fit`.
        """
        check_is_fitted(self, "graph_")
        items = self._items(X, reset=False)
        if _same(items, self._fitted):
            return self._fitted_graph()
        return self._csr(*self._found(items, self.graph_.indices.shape[1] + 1))

    def kneighbors(
        self,
        X: Any = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray:
        """Return the distances and the numbers of the neighbours of items, (m, k).

        Parameters
        ----------
        X : sequence of m items, optional
            None means the fitted items; an item is then not its own neighbour.
        n_neighbors : int, optional
            Number k of neighbours. For the fitted items a number above that of `fit` is
            a ValueError.
        return_distance : bool, default=True
            Whether the distances are returned, before the numbers.
        """
        check_is_fitted(self, "graph_")
        n, found = self.graph_.indices.shape
        k = found if n_neighbors is None else n_neighbors
        if X is None:
            if (k := whole_number(k, "n_neighbors", 1)) > found:
                raise ValueError(
                    f"`fit` found {found} neighbours of each item, and {k} are asked "
                    "for: fit with more."
                )
            distances, indices = self._known(k)
        else:
            k = whole_number(k, "n_neighbors", 1, n)
            distances, indices = self._found(self._items(X, reset=False), k)
        return (distances, indices) if return_distance else indices

    def kneighbors_graph(
        self,
        X: Any = None,
        n_neighbors: int | None = None,
        mode: Literal["connectivity", "distance"] = "connectivity",
    ) -> csr_matrix:
        """Return the graph of `kneighbors`, a csr_matrix (m, n) of ones or distances.

        `mode` is "connectivity" or "distance".
        """
        one_of(mode, ("connectivity", "distance"), "mode")
        distances, indices = self.kneighbors(X, n_neighbors)
        if mode == "connectivity":
            distances = np.ones_like(distances)
        return self._csr(distances, indices)

    def _fitted_graph(self) -> csr_matrix:
        """Return the graph of the fitted items, each its own first neighbour."""
        distances, indices = self._known(self.graph_.indices.shape[1])
        own = np.arange(len(indices))[:, None]
        distances = np.hstack([np.zeros_like(distances[:, :1]), distances])
        return self._csr(distances, np.hstack([own, indices]))

    def _known(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first k distances and neighbours of the fitted items."""
        graph = self.graph_
        return self._distances(graph.values[:, :k]), graph.indices[:, :k].copy()

    def _found(self, items: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        n = self.n_samples_fit_
        limit = min(n, max(int(SHARE * n), LEAST * k))
        if isinstance(self.kernel, Source):
            values = self.kernel.block(items, self._fitted)
            far = values if self.distance else -values
            order = np.argsort(far, axis=1, kind="stable")[:, :k]
            return self._distances(np.take_along_axis(values, order, axis=1)), order
        cheap_new = None
        if self._cheap is not None:
            new = self._cheap_items(items)
            cheap_new = asked(self._cheap.between, new, np.arange(n))
        pairs = n * self._sim.orders
        result = search(
            self._sim,
            items,
            k,
            limit=limit,
            cheap=self._cheap,
            cheap_new=cheap_new,
            distance=self.distance,
            rng=self._seed,
            fit_limit=None if limit >= pairs else N_LANDMARKS * pairs,  # once for all
        )
        return self._distances(result.values), result.indices

    def _distances(self, values: np.ndarray) -> np.ndarray:
        return values.copy() if self.distance else np.maximum(self._far - values, 0)

    def _csr(self, distances: np.ndarray, indices: np.ndarray) -> csr_matrix:
        m, k = indices.shape
        indptr = np.arange(0, m * k + 1, k, dtype=np.int32)
        entries = distances.ravel(), indices.ravel().astype(np.int32), indptr
        return csr_matrix(entries, shape=(m, self.n_samples_fit_))

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_


def _same(X: Any, Y: Any) -> bool:
    """Tell whether two collections hold the same items."""
    if X is Y:
        return True
    if is_frame(X):
        return type(X) is type(Y) and X.equals(Y)
    if hasattr(X, "shape") and hasattr(Y, "shape"):
        if X.shape != Y.shape or hasattr(X, "nnz") != hasattr(Y, "nnz"):
            return False
        if hasattr(X, "nnz"):
            return (X != Y).nnz == 0
        X, Y = (np.asarray(from_device(values)) for values in (X, Y))
        if X.dtype != object:
            missing = X.dtype.kind in "fcmM" and Y.dtype.kind in "fcmM"
            return np.array_equal(X, Y, equal_nan=missing)
        X, Y = X.ravel().tolist(), Y.ravel().tolist()
    try:
        if isinstance(X, list) and isinstance(Y, list):
            return len(X) == len(Y) and all(map(_alike, X, Y))
        return type(X) is type(Y) and bool(X == Y)
    except (TypeError, ValueError):  # arrays or pandas.NA, which are not identical
        return False


def _alike(x: Any, y: Any) -> bool:
    """Tell whether two items are identical, or equal, or both NaN."""
    if isinstance(x, dict) and isinstance(y, dict):
        return list(x) == list(y) and all(map(_alike, x.values(), y.values()))
    if hasattr(x, "shape") and hasattr(y, "shape"):
        return _same(x, y)
    return x is y or bool(x == y) or bool(x != x and y != y)
