"""The graph of the nearest items of every item, also as a sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import coo_array, csr_matrix
from scipy.sparse.csgraph import connected_components

from simlib._checks import one_collection, one_of
from simlib.lowrank.tall import read_only
from simlib.similarity.views import SimilarityMatrix

Mode: TypeAlias = Literal["distance", "similarity", "connectivity"]

LINKS = 8  # pairs that are tried to join a component to the largest


class RecallEstimate(NamedTuple):
    """The share of the true neighbours that was found, estimated from some rows.

    Attributes
    ----------
    value : float
        Mean share over the rows.
    low, high : float
        The ends of a 95 % confidence interval by Student's distribution, as if in one
        more row nothing was found, for `low`, or everything, for `high`: the rows that
        miss most, or least, may be few.
    calls : int
        Calls for the rows, in addition to those of the graph.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity
    >>> from simlib.neighbors import nearest
    >>> sim = Similarity(np.arange(60.0), lambda x, y: -abs(x - y))
    >>> graph = nearest(sim, 3, limit=1500, check=10, rng=0)
    >>> graph.recall.low <= graph.recall.value <= graph.recall.high
    True
    """

    value: float
    low: float
    high: float
    calls: int


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """The k nearest items of every item, or for two collections columns of every row.

    Attributes
    ----------
    indices : array of int32, shape (n, k)
        From the nearest on; an item is no neighbour of itself. Read-only.
    values : array of shape (n, k)
        Their similarities or distances, as `sim` has them. Read-only.
    calls, distance : int, bool
        Calls for the pairs that were asked for, known before or not, of
        ``sim.informed()`` new calls alone; whether small values mean near.
    recall : RecallEstimate or None
        Estimated share of the true neighbours, if ``check`` was given.
    history : list of dict
        For each round and each predictor, the number of pairs, and the share of these
        that entered a list of nearest items.
    sim : SimilarityMatrix
        The similarity of the items; `to_csr` asks it for pairs to join components.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity
    >>> from simlib.neighbors import nearest
    >>> sim = Similarity(np.arange(6.0), lambda x, y: abs(x - y))
    >>> graph = nearest(sim, 1, limit=15, distance=True, rng=0)
    >>> graph.indices[0].tolist(), graph.values[0].tolist()
    ([1], [1.0])
    """

    indices: np.ndarray
    values: np.ndarray
    calls: int
    recall: RecallEstimate | None
    distance: bool
    history: list[dict[str, tuple[int, float]]]
    sim: SimilarityMatrix

    def __post_init__(self) -> None:
        for name in ("indices", "values"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def __repr__(self) -> str:
        n, k = self.indices.shape
        of = "rows" if isinstance(self.sim.extent, tuple) else "items"
        parts = [f"{k} nearest of {n} {of}", f"calls={self.calls}"]
        if self.recall is not None:
            value, low, high, _ = self.recall
            parts.append(f"recall {value:.2f} ({low:.2f} to {high:.2f})")
        return f"NeighborGraph({', '.join(parts)})"

    def to_frame(self) -> Any:
        """Return a ``pandas.DataFrame``: i, its neighbour j, similarity or distance.

        From the nearest neighbour of each item on. i and j are places, as
        ``frame.iloc[i]`` takes them, whatever the index.
        """
        n, k = self.indices.shape
        i, j = np.repeat(np.arange(n), k), self.indices.ravel()
        return framed(i, j, self.values.ravel(), self.distance)

    def to_csr(
        self,
        mode: Mode = "distance",
        *,
        symmetric: bool = False,
        connected: bool = False,
        include_self: bool = False,
    ) -> csr_matrix:
        """Return the graph as a sparse matrix, for estimators of scikit-learn.

        With ``metric="precomputed"``: HDBSCAN takes ``connected=True``, with
        ``copy=True`` and ``min_samples`` of at most k + 1; UMAP ``symmetric=True``;
        t-SNE ``include_self=True``, with k of at least 3 perplexity + 1. DBSCAN needs
        all pairs within its radius instead: `SimilarPairs.to_csr`.

        Parameters
        ----------
        mode : "distance", "similarity" or "connectivity", default="distance"
            What the entries are. For "distance" a similarity s becomes m - s, where m
            is the largest value in the graph. For "similarity" a distance d becomes
            m - d, and the least similarity is subtracted if it is negative. Entries are
            one for "connectivity".
        symmetric : bool, default=False
            Whether i, j has an entry if either is a neighbour of the other. Not for two
            collections.
        connected : bool, default=False
            Join each component to the largest one, by the nearest of some pairs, for a
            few more calls: for HDBSCAN, and Isomap without ``n_neighbors``. Implies
            `symmetric`, and `include_self` for distances.
        include_self : bool, default=False
            Whether each item is its own nearest neighbour, at the distance 0. For
            t-SNE, and all that asks for k neighbours of the fitted items: scikit-learn
            takes the nearest entry for the item itself. For distances within one
            collection.

        Returns
        -------
        csr_matrix of shape (n, n), or (m, n)
            Indices are int32. Rows are sorted from the nearest on, by column if
            symmetric. Zeros are stored, with `connected` as very small numbers except
            on the diagonal.

        Raises
        ------
        ValueError, BudgetExceeded, SimilarityError
            No such mode, or no items themselves in it; if components are joined, any
            error of a request to `sim`.
        """
        (m, n), k = self.sim.shape, self.indices.shape[1]
        if symmetric or connected:
            one_collection(self.sim, "have a symmetric graph")
        if include_self:
            one_collection(self.sim, "have each item as its own neighbour")
            one_of(mode, ("distance",), "mode with include_self")
        i, j = np.repeat(np.arange(m), k), self.indices.ravel().astype(np.int64)
        values = self.values.ravel()
        if connected:
            extra_i, extra_j, extra = self._links(i, j)
            i, j = np.append(i, extra_i), np.append(j, extra_j)
            values = np.append(values, extra)
        entries = edge_weights(values, mode, self.distance)
        if include_self or (connected and mode == "distance"):
            own = np.arange(n)
            i, j = np.append(own, i), np.append(own, j)
            entries = np.append(np.zeros(n, entries.dtype), entries)
        if not (symmetric or connected):
            order = np.argsort(i, kind="stable")
            j, entries, k = j[order], entries[order], j.size // m
            indptr = np.arange(0, m * k + 1, k, dtype=np.int32)
            return csr_matrix((entries, j.astype(np.int32), indptr), shape=(m, n))
        keys = np.append(i * n + j, j * n + i)
        keys, first = np.unique(keys, return_index=True)
        places = np.stack(np.divmod(keys, n)).astype(np.int32)
        entries = np.tile(entries, 2)[first]
        if connected:
            tiny = np.finfo(entries.dtype)
            equal = (entries == 0) & (places[0] != places[1])
            entries[equal] = max(tiny.eps * entries.max(initial=0), tiny.tiny)
        return csr_matrix(coo_array((entries, tuple(places)), shape=(n, n)))

    def _links(
        self, i: np.ndarray, j: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pay for pairs between components; return the nearest ones, which join all."""
        n, rng = len(self.indices), np.random.default_rng(0)
        edges = coo_array((np.ones(i.size), (i, j)), shape=(n, n))
        count, label = connected_components(edges)
        order, size = np.argsort(label, kind="stable"), np.bincount(label)
        start, largest = np.cumsum(size) - size, int(np.argmax(size))
        others = np.delete(np.arange(count), largest)

        def some(component: np.ndarray) -> np.ndarray:
            places = rng.random((others.size, LINKS)) * size[component]
            return order[start[component] + places.astype(np.int64)]

        a, b = some(others[:, None]), some(np.array([[largest]]))
        values = self.sim.pairs(a.ravel(), b.ravel()).reshape(a.shape)
        best = (values if self.distance else -values).argmin(axis=1)
        at = np.arange(others.size), best
        return a[at], b[at], values[at]


def edge_weights(values: np.ndarray, mode: Mode, distance: bool) -> np.ndarray:
    """Return the weights of edges in this mode, from similarities or distances."""
    one_of(mode, ("distance", "similarity", "connectivity"), "mode")
    if mode == "connectivity":
        return np.ones_like(values)
    if (mode == "distance") != distance:
        return values.max(initial=-np.inf) - values
    if mode == "similarity":
        return values - values.min(initial=0)
    return values.copy()


def framed(i: np.ndarray, j: np.ndarray, values: np.ndarray, distance: bool) -> Any:
    """Return pairs and their values as a ``pandas.DataFrame``."""
    try:
        from pandas import DataFrame  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError("A frame needs pandas: pip install pandas.") from error
    name = "distance" if distance else "similarity"
    return DataFrame({"i": i, "j": j, name: values})
