r"""The k nearest items of every item, from few calls.

.. math::
    N_k(i) = \text{the } k \text{ largest of } \{ K_{ij} : j \in P_i \} , \qquad
    \text{recall} = \frac{1}{n k} \sum_i \big| \{ j \in N_k(i) :
    K_{ij} \ge K_{i (k)} \} \big|

P_i are the items to which i was compared, in rounds, and
:math:`K_{i(k)}` is the k-th largest similarity of i to any other item.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_matrix
from scipy.sparse.csgraph import connected_components

from simlib._checks import most_calls, one_collection, one_of, whole_number
from simlib.lowrank.tall import read_only
from simlib.neighbors.across import Across
from simlib.neighbors.cheap import as_companion
from simlib.neighbors.exact import filter_and_refine
from simlib.neighbors.paid import Paid
from simlib.neighbors.rounds import ALL_PAIRS, Rounds, checked
from simlib.similarity.source import Source
from simlib.similarity.views import SimilarityMatrix, check_similarity

__all__ = ["NeighborGraph", "RecallEstimate", "nearest"]

Mode: TypeAlias = Literal["distance", "similarity", "connectivity"]

LINKS = 8  # pairs tried for each component that is joined to another


class RecallEstimate(NamedTuple):
    """The share of the true neighbours that was found, from a sample of rows.

    Attributes
    ----------
    value : float
        Mean over the rows.
    low, high : float
        The interval of 95 % confidence: Student's, of the rows and of one more in which
        nothing was found, since the rows that miss most may be few.
    calls : int
        Pairs of the sample, beyond those of the graph.

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
    """The k nearest items of every item, or of two collections columns of every row.

    Attributes
    ----------
    indices : array of int32, shape (n, k)
        From the nearest on; an item is no neighbour of itself. Read-only.
    values : array of shape (n, k)
        Their similarities or distances, as `sim` has them. Read-only.
    calls, distance : int, bool
        Pairs that were asked for, known before or not; whether small values mean near.
    recall : RecallEstimate or None
        What share of the true neighbours these are, if it was asked for.
    history : list of dict
        Of each round, by predictor: its calls, and the share that entered a list.
    sim : SimilarityMatrix
        Of the items; `to_csr` asks it to join components.

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

    def __repr__(self) -> str:
        n, k = self.indices.shape
        of = "rows" if isinstance(self.sim.extent, tuple) else "items"
        parts = [f"{k} nearest of {n} {of}", f"calls={self.calls}"]
        if self.recall is not None:
            value, low, high, _ = self.recall
            parts.append(f"recall {value:.2f} ({low:.2f} to {high:.2f})")
        return f"NeighborGraph({', '.join(parts)})"

    def to_csr(
        self,
        mode: Mode = "distance",
        *,
        symmetric: bool = False,
        connected: bool = False,
    ) -> csr_matrix:
        """Return the graph as a sparse matrix, for scikit-learn, but not for DBSCAN.

        That wants all pairs within its radius: `SimilarPairs.to_csr`.

        Parameters
        ----------
        mode : "distance", "similarity" or "connectivity", default="distance"
            What the entries are. A similarity s becomes the distance m - s, where m is
            the largest of all here, and a distance d the similarity m - d. Of negative
            similarities the least is taken off. Ones with "connectivity".
        symmetric : bool, default=False
            Whether an entry has its mirror image: neighbours of either. Not of two
            collections, as `connected`.
        connected : bool, default=False
            Join each component to the largest, by the nearest of some pairs: a few more
            calls. HDBSCAN needs it. Implies `symmetric`.

        Returns
        -------
        csr_matrix of shape (n, n), or (m, n)
            Indices are int32; each row goes from the nearest on; where symmetric by
            column. Zeros are stored, with `connected` as numbers next to zero.

        Raises
        ------
        ValueError, BudgetExceeded, SimilarityError
            No such mode; where components are joined, as for any request to `sim`.
        """
        (m, n), k = self.sim.shape, self.indices.shape[1]
        if symmetric or connected:
            one_collection(self.sim, "have a symmetric graph")
        i, j = np.repeat(np.arange(m), k), self.indices.ravel().astype(np.int64)
        values = self.values.ravel()
        if connected:
            extra_i, extra_j, extra = self._links(i, j)
            i, j = np.append(i, extra_i), np.append(j, extra_j)
            values = np.append(values, extra)
        entries = edge_weights(values, mode, self.distance)
        if not (symmetric or connected):
            indptr = np.arange(0, m * k + 1, k, dtype=np.int32)
            return csr_matrix((entries, j.astype(np.int32), indptr), shape=(m, n))
        keys = np.append(i * n + j, j * n + i)
        keys, first = np.unique(keys, return_index=True)
        places = np.stack(np.divmod(keys, n)).astype(np.int32)
        entries = np.tile(entries, 2)[first]
        if connected:
            tiny = np.finfo(entries.dtype)
            entries[entries == 0] = max(tiny.eps * entries.max(initial=0), tiny.tiny)
        return csr_matrix(coo_array((entries, tuple(places)), shape=(n, n)))

    def _links(
        self, i: np.ndarray, j: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pay for pairs between components; return the nearest that join them all."""
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
    """Return new weights of edges from their similarities or distances."""
    one_of(mode, ("distance", "similarity", "connectivity"), "mode")
    if mode == "connectivity":
        return np.ones_like(values)
    if (mode == "distance") != distance:
        return values.max(initial=-np.inf) - values
    if mode == "similarity":
        return values - values.min(initial=0)
    return values.copy()


def nearest(
    sim: Source,
    k: int,
    *,
    limit: float | None,
    cheap: Source | Callable[[Any, Any], float] | ArrayLike | None = None,
    distance: bool = False,
    exact: bool = False,
    check: int = 0,
    rng: int | np.random.Generator | None = None,
) -> NeighborGraph:
    """Find the k nearest items of every item, a `NeighborGraph`, from few calls.

    Of two collections the k nearest columns of every row. In rounds: each pays for the
    pairs that promise most by what is known.
    `sklearn.neighbors.kneighbors_graph` is for vectors: all pairs, or a tree.

    Parameters
    ----------
    sim : Similarity
        n items under a symmetric similarity, or two collections. What it knows answers
        at no call, but the search goes by what it has asked itself; by all, of
        ``sim.informed()``.
    k : int
        How many neighbours, 1 to n - 1, or to n of two collections.
    limit : int
        Most calls, known before or not: a few per cent of the n (n - 1) / 2 pairs. Of
        two collections each row has an equal share of them. With `exact` None means as
        many as it takes.
    cheap : Similarity, function, or array or sparse array of shape (n, d), optional
        A companion, as in `simlib.anchored`: the same items under a cheap similarity or
        distance, a function of two items, or the factor Z of similarities
        :math:`Z Z^T`. For the distances between rows of Z pass
        ``Similarity(Z, cdist, batch="block")``, with `scipy.spatial.distance.cdist`. Of
        two collections a pair of factors (Z, W) for :math:`Z W^T`.
    distance : bool, default=False
        Whether small values mean near.
    exact : bool, default=False
        With ``distance=True`` and a companion that is never larger than the distance,
        such as those of `simlib.text.bounds`: pay for all that this bound does not
        exclude. The neighbours are then certain (Seidl and Kriegel 1998). Not of two
        collections.
    check : int, default=0
        Items whose whole rows are evaluated afterwards, to estimate the recall: n calls
        for each, twice that of a symmetrized similarity, taken from `limit` beforehand.
        Not with `exact`.
    rng : int, Generator or None
        Source of randomness.

    Raises
    ------
    ValueError
        An asymmetric similarity, k >= n, a limit that does not pay for k neighbours of
        each item and for `check` (the message names the smallest that does), a
        companion of other items, or, with `exact`, none or one that is no lower bound.
    BudgetExceeded, SimilarityError
        The limit of `sim` leaves fewer calls than `limit`, and nothing was evaluated;
        `exact` takes more; `sim` or `cheap` failed: what was evaluated is kept.

    Notes
    -----
    Flops: O(n^2 r) a round with r at most 51, of some ten rounds. Beyond 20,000 items
    only candidates are predicted: cheap neighbours, by pynndescent if that is there
    (``pip install simlib[neighbors]``), and neighbours of neighbours; time is in
    proportion to the calls, memory some 20 kB for each item. Source: ours; the
    neighbours of neighbours are those of NN-descent, Dong et al. (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity
    >>> from simlib.neighbors import nearest
    >>> x = np.random.default_rng(0).standard_normal((300, 3))
    >>> sim = Similarity(x, lambda a, b: np.exp(-np.sum((a - b) ** 2)))
    >>> graph = nearest(sim, 5, limit=4500, cheap=x, rng=0)  # a tenth of the pairs
    >>> graph.indices.shape, sim.calls <= 4500
    ((300, 5), True)
    """
    sim, rng = check_similarity(sim), np.random.default_rng(rng)
    two = isinstance(sim.extent, tuple)
    if not two or exact:
        checked(sim)
    m, n = sim.shape
    check = whole_number(check, "check", 0, m)
    most = np.inf if exact and limit is None else most_calls(limit, "limit")
    if exact:
        if check:
            raise ValueError(
                "Exact neighbours have the recall 1, and no rows tell more: leave out "
                f"check={check}."
            )
        return _exact(sim, k, most, cheap, distance)
    run = sim.run()
    search: Any = (Across if two else Rounds)(run, k, most, cheap, distance, rng, check)
    found, every = (search, m * n) if two else (search.paid, n * (n - 1) // 2)
    every *= 1 if two else search.price
    with run.progress_bar(min(most, every)) as search.show:
        search.run()
        recall = None
        if check:
            recall = estimated_recall(run, found.indices, distance, check, rng)
    return _graph(sim, found, recall, search.history)


def _exact(
    sim: SimilarityMatrix, k: int, limit: float, cheap: Any, distance: bool
) -> NeighborGraph:
    if cheap is None or not distance:
        raise ValueError(
            "Exact neighbours need distance=True and, as `cheap`, a distance that is "
            "never larger, such as those of simlib.text.bounds."
        )
    if sim.n > ALL_PAIRS:
        raise ValueError(
            f"The bounds of all pairs are kept, of {ALL_PAIRS} items at most; these "
            f"are {sim.n}."
        )
    run = sim.run()
    paid = Paid(run, whole_number(k, "k", 1, sim.n - 1), -1)
    paid.limit = min(limit, run.remaining)
    bound = as_companion(cheap, run)
    with run.progress_bar(None if paid.limit == np.inf else paid.limit):
        filter_and_refine(paid, bound)
    return _graph(sim, paid, None, [])


def _graph(
    sim: SimilarityMatrix,
    paid: Any,
    recall: RecallEstimate | None,
    history: list[dict[str, tuple[int, float]]],
) -> NeighborGraph:
    indices, distance = paid.indices.astype(np.int32), paid.sign < 0
    m, k = indices.shape
    values = sim.peek(np.repeat(np.arange(m), k), indices.ravel()).reshape(m, k)
    return NeighborGraph(indices, values, paid.calls, recall, distance, history, sim)


def estimated_recall(
    sim: SimilarityMatrix,
    indices: np.ndarray,
    distance: bool,
    check: int,
    rng: np.random.Generator,
) -> RecallEstimate:
    """Compare with the whole rows of some items."""
    (m, n), k = sim.shape, indices.shape[1]
    rows = rng.permutation(m)[:check]
    calls = sim.cost((rows, None))
    exact = np.array(sim.rows(rows), dtype=float) * (-1 if distance else 1)
    if not isinstance(sim.extent, tuple):
        exact[np.arange(check), rows] = -np.inf
    kth = np.partition(exact, n - k, axis=1)[:, n - k]
    found = np.take_along_axis(exact, indices[rows], axis=1) >= kth[:, None]
    shares = found.mean(axis=1)
    value = float(shares.mean())
    if check == m:
        return RecallEstimate(value, value, value, calls)
    shares = np.append(shares, 0)  # a row without any found may have been missed
    middle, t = shares.mean(), scipy.stats.t.ppf(0.975, check)
    half = t * np.sqrt(shares.var(ddof=1) / shares.size * (1 - check / m))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return RecallEstimate(value, min(value, float(low)), max(value, float(high)), calls)
