r"""The operator that interpolates from landmarks to all items.

.. math::
    P_b = I , \qquad M_{uu} P_u = -M_{ub}

Equation :eq:`eq:interpolation` of the book: b are the landmarks, u the other items.
Column j is the smoothest function (of least biharmonic energy) that is 1 at landmark j
and 0 at the other landmarks. Most of its values are nearly 0. A sparse P keeps the
large ones, :eq:`eq:threshold`, and may be renormalised, :eq:`eq:renormalized`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, get_args, overload

import joblib
import numpy as np
import scipy.sparse
from scipy.sparse import coo_array, csc_array, csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils.validation import check_memory

from simlib._checks import inside, one_of
from simlib._typing import Indices, MatrixLike
from simlib.biharmonic.factorization import factorize
from simlib.biharmonic.operator import as_symmetric, compact, refuse_adjacency
from simlib.landmarks import draw

if TYPE_CHECKING:
    from simlib.biharmonic.selected_solve import SelectedSolve

Solver = Literal["auto", "selected", "superlu"]
SOLVED = 32  # columns that are solved for at a time, in the cache of the processor
PART = 1024  # columns that are computed, and kept in a folder, together
TOUCHED = 0.4  # share of the nodes above which whole columns are faster
OUT_OF_REACH = 1e-3  # sum of squares that may be missed, over that of kept entries
SMALLEST_SUM = 0.25  # a row with a smaller sum is computed again


class _Options(TypedDict, total=False):
    by: Literal["column", "row"]
    renormalize: bool
    solver: Solver
    memory: str | PathLike[str] | joblib.Memory | None
    progress: bool


@overload
def interpolation(
    M: MatrixLike,
    landmarks: Indices,
    *,
    nnz_per_row: None = None,
    **options: Unpack[_Options],
) -> np.ndarray: ...
@overload
def interpolation(
    M: MatrixLike,
    landmarks: Indices,
    *,
    nnz_per_row: float,
    **options: Unpack[_Options],
) -> csr_array: ...
def interpolation(
    M: MatrixLike,
    landmarks: Indices,
    *,
    nnz_per_row: float | None = None,
    by: Literal["column", "row"] = "column",
    renormalize: bool = True,
    solver: Solver = "auto",
    memory: str | PathLike[str] | joblib.Memory | None = None,
    progress: bool = False,
) -> np.ndarray | csr_array:
    """Return the interpolation operator P of some landmarks.

    Parameters
    ----------
    M : sparse or dense array, shape (n, n)
        The operator of `biharmonic_operator`; or a Laplacian, for harmonic
        interpolation, whose weights lie in [0, 1] and which has a kink at each
        landmark.
    landmarks : array of int, shape (l,)
        Distinct items, at least one in each connected piece of M.
    nnz_per_row : float, optional
        Mean number p_row of entries of a row of P_u to keep, the largest in magnitude.
        None keeps all, and returns a dense array.
    by : {"column", "row"}
        Keep (n - l) p_row / l entries of each column, or p_row entries of each row. Not
        used if P is dense.
    renormalize : bool, default=True
        Divide each row of a sparse P by its sum: the rows of the dense P sum to 1.
    solver : {"auto", "selected", "superlu"}
        "selected" computes only the entries of a column near its landmark, by
        `selected_columns`, which says what that can miss. "superlu" solves for whole
        columns. "auto" takes "selected" if it is faster and shown to miss little.
    memory : path or joblib.Memory, optional
        A folder that keeps the columns of a sparse P by column, a thousand at a time: a
        run that was stopped continues from there, with the same P as result.
    progress : bool, default=False
        Show a progress bar (tqdm) over the columns of a sparse P by column.

    Returns
    -------
    ndarray or csr_array, shape (n, l)
        P, in float64: ``P @ values`` carries values at the landmarks to all items. Its
        rows at the landmarks are those of the identity.

    Raises
    ------
    ValueError, IndexError
        M is not square, real, finite and symmetric, or has zeros on its diagonal, as an
        adjacency matrix has; a piece of M has no landmark, or is
        joined too weakly; landmarks repeat or are out of range; an option does not
        exist. The sum of a row of P is nearly 0, because the rows of M do not sum to 0.
        "selected" and M without the landmarks is not positive definite.
    ImportError
        "selected" without numba.

    Notes
    -----
    No similarity calls: one P serves many similarity functions. A sparse factorisation,
    O(n^1.5) flops on surfaces, and two triangular solves for each whole column; memory
    O(n l) dense, O(n (p_row + 32)) sparse. "auto" tries "selected" on 32 columns. It
    solves for whole columns if these need more than two fifths of the elimination tree,
    or if the entries out of reach have more than a thousandth of the sum of squares.

    Source: Turek and Huth (2022), eqs. (5) and (10), Algorithm 2 and appendix E. The
    renormalisation is ours. A row whose kept entries have a sum below 1/4 is first
    replaced by the p_row largest entries of the exact row.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import biharmonic
    >>> path = np.eye(3, k=1) + np.eye(3, k=-1)
    >>> M = biharmonic.biharmonic_operator(biharmonic.graph_laplacian(path))
    >>> biharmonic.interpolation(M, [0, 2]).round(2)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    one_of(by, ("column", "row"), "by")
    one_of(solver, get_args(Solver), "solver")
    M = as_symmetric(M, "The operator M")
    M.eliminate_zeros()  # stored zeros join no items
    landmarks, _ = draw(M.shape[0], None, landmarks=landmarks, rng=0)
    _demand_landmark_in_each_piece(M, landmarks)
    by_column = nnz_per_row is not None and by == "column"
    if solver == "selected" and not by_column:
        raise ValueError('solver="selected" is for a sparse P by column.')
    system = _System(compact(M), landmarks)
    places = landmarks, np.arange(landmarks.size)
    identity = coo_array((np.ones(landmarks.size), places), system.shape)
    if nnz_per_row is None:
        P = identity.toarray()
        for columns, block in system.columns(places[1]):
            P[system.free[:, None], columns] = block
        return P
    nnz_per_row = min(inside(nnz_per_row, "nnz_per_row", 0), landmarks.size)
    if system.free.size == 0:
        return compact(csr_array(identity))
    if by_column:
        memory = check_memory(str(memory) if isinstance(memory, PathLike) else memory)
        with _bar(landmarks.size, progress) as bar:
            sparse = _largest_by_column(system, nnz_per_row, solver, memory, bar)
    else:
        sparse = _largest_by_row(system, nnz_per_row)
    if renormalize:
        sparse = _renormalized(sparse, system, nnz_per_row)
    return compact(csr_array(sparse + identity))


def _demand_landmark_in_each_piece(M: csr_array, landmarks: np.ndarray) -> None:
    """Raise if a connected piece of M has no landmark, so that P is not determined."""
    pieces, piece = connected_components(M, directed=False)
    missing = np.setdiff1d(np.arange(pieces), piece[landmarks])
    if missing.size:
        members = np.flatnonzero(piece == missing[0])
        raise ValueError(
            f"{missing.size} of the {pieces} connected pieces have no landmark. The "
            f"first has {members.size} items, item {members[0]} among them: add one of "
            "them to the landmarks, or leave the piece out "
            "(scipy.sparse.csgraph.connected_components finds the pieces). Pieces of a "
            "mesh that only nearly meet are joined by merge_vertices with its `tol`."
        )


class _System:
    """M_uu P_u = -M_ub, and ``solve``, B -> M_uu^-1 B, factorised at its first use."""

    def __init__(self, M: csr_array, landmarks: np.ndarray):
        refuse_adjacency(M, "The operator M")
        self.M, self.landmarks = M, landmarks
        self.free = np.setdiff1d(np.arange(M.shape[0]), landmarks)
        self.shape = M.shape[0], landmarks.size  # of P

    @cached_property
    def solve(self) -> Callable[[np.ndarray], np.ndarray]:
        if self.free.size == 0:
            return lambda B: B
        return factorize(csc_array(self.M[self.free][:, self.free])).solve

    def columns(self, numbers: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield blocks of columns of P_u: their places among `numbers`, and values."""
        right_hand_sides = csc_array(-self.M[self.free][:, self.landmarks[numbers]])
        for start in range(0, numbers.size, SOLVED):
            some = np.arange(start, min(start + SOLVED, numbers.size))
            yield some, self.solve(right_hand_sides[:, some].toarray(order="F"))

    def rows(self, places: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the rows of P_u at these places: the item of each, and its values."""
        to_landmarks = csr_array(-self.M[self.landmarks][:, self.free])
        for start in range(0, places.size, SOLVED):
            some = places[start : start + SOLVED]
            units = np.zeros((self.free.size, some.size), order="F")
            units[some, np.arange(some.size)] = 1
            yield from zip(
                self.free[some], (to_landmarks @ self.solve(units)).T, strict=True
            )


@contextmanager
def _bar(total: int, progress: bool) -> Iterator[Callable[[int], object]]:
    """Yield a function to call with the number of columns that are finished."""
    if not progress:
        yield lambda count: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, unit=" columns", unit_scale=True) as bar:
        yield bar.update


def _largest_by_column(
    system: _System,
    nnz_per_row: float,
    solver: str,
    memory: joblib.Memory,
    finished: Callable[[int], object],
) -> csr_array:
    """Keep the entries of each column that are largest in magnitude (Algorithm 2)."""
    M, landmarks, n_free = system.M, system.landmarks, system.free.size
    nnz = min(max(round(n_free * nnz_per_row / landmarks.size), 1), n_free)
    of = joblib.hash((_sources(), solver, M.data, M.indices, M.indptr, landmarks))
    rows = np.empty((landmarks.size, nnz), dtype=M.indices.dtype)
    values = np.empty((landmarks.size, nnz))
    counts = np.full(landmarks.size, nnz)
    whole = np.ones(landmarks.size, dtype=bool)
    selected = _selected_solve(M, landmarks, nnz, solver)
    if selected is not None:
        system.solve = selected.solve
        part_of_columns = memory.cache(_parts_of_columns, ignore=["system"])
        for numbers in _sample_and_rest(selected.order):
            *found, touched, beyond = part_of_columns(selected, of, numbers, nnz)
            sums = (found[1] ** 2).sum(axis=1)
            shown = (beyond <= OUT_OF_REACH * sums) | (solver == "selected")
            for every, some in zip((rows, values, counts), found, strict=True):
                every[numbers[shown]] = some[shown]
            whole[numbers] = ~shown
            finished(shown.sum())
            pays = touched.mean() <= TOUCHED * n_free and shown.mean() >= 0.5
            if numbers.size <= SOLVED and not (pays or solver == "selected"):
                break
    whole_columns = memory.cache(_whole_columns, ignore=["system"])
    for numbers in _parts(np.flatnonzero(whole)):
        rows[numbers], values[numbers] = whole_columns(system, of, numbers, nnz)
        finished(numbers.size)
    filled = np.arange(nnz) < counts[:, None]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csc_array((values[filled], rows[filled], indptr), system.shape).tocsr()


def _sources() -> list[bytes]:
    """Return the code of this package: if it changes, columns are computed again."""
    return [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]


def _parts_of_columns(
    system: SelectedSolve, of: str, numbers: np.ndarray, nnz: int
) -> tuple[np.ndarray, ...]:
    """Return ``system.largest(numbers, nnz)``; `of` identifies the system in caches."""
    return system.largest(numbers, nnz)


def _whole_columns(
    system: _System, of: str, numbers: np.ndarray, nnz: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and values of the largest entries; `of` identifies the system."""
    rows = np.empty((numbers.size, nnz), dtype=system.M.indices.dtype)
    values = np.empty((numbers.size, nnz))
    for some, block in system.columns(numbers):
        top = np.argpartition(-abs(block), nnz - 1, axis=0)[:nnz]
        rows[some] = system.free[top].T
        values[some] = np.take_along_axis(block, top, axis=0).T
    return rows, values


def _selected_solve(
    M: csr_array, landmarks: np.ndarray, nnz: int, solver: str
) -> SelectedSolve | None:
    """Return the `SelectedSolve` for parts of columns, or None if it does not pay."""
    if solver == "superlu":
        return None
    try:
        from simlib.biharmonic.selected_solve import PROBES, REACH, SelectedSolve
    except ImportError:
        if solver == "selected":
            raise
        return None
    if solver == "selected":
        return SelectedSolve(M, landmarks)
    if REACH * nnz > TOUCHED * (M.shape[0] - landmarks.size):
        return None
    try:
        return SelectedSolve(M, landmarks, probes=PROBES)
    except ValueError:  # M_uu is not definite, or is singular, also for whole columns
        return None


def _parts(numbers: np.ndarray) -> list[np.ndarray]:
    return [numbers[k : k + PART] for k in range(0, numbers.size, PART)]


def _sample_and_rest(numbers: np.ndarray) -> list[np.ndarray]:
    """Return a block of evenly spread numbers, and then the others in parts."""
    spread = np.linspace(0, numbers.size - 1, min(numbers.size, SOLVED)).astype(int)
    return [numbers[spread], *_parts(np.delete(numbers, spread))]


def _largest_by_row(system: _System, nnz_per_row: float) -> csr_array:
    """Keep the entries of each row that are largest in magnitude, block by block."""
    n_free, n_landmarks = system.free.size, system.landmarks.size
    nnz = min(max(round(nnz_per_row), 1), n_landmarks)
    values = np.zeros((n_free, 0))
    numbers = np.zeros((n_free, 0), dtype=np.intp)
    for columns, block in system.columns(np.arange(n_landmarks)):
        values = np.hstack([values, block])
        numbers = np.hstack([numbers, np.broadcast_to(columns, block.shape)])
        if values.shape[1] > nnz:
            top = np.argpartition(-abs(values), nnz - 1, axis=1)[:, :nnz]
            values = np.take_along_axis(values, top, axis=1)
            numbers = np.take_along_axis(numbers, top, axis=1)
    places = np.repeat(system.free, values.shape[1]), numbers.ravel()
    return coo_array((values.ravel(), places), system.shape).tocsr()


def _renormalized(P: csr_array, system: _System, nnz_per_row: float) -> csr_array:
    """Divide each row by its sum; compute a row again if its sum is too small."""
    poor = np.flatnonzero(P.sum(axis=1)[system.free] < SMALLEST_SUM)  # places in P_u
    if poor.size:
        keep = np.ones(P.shape[0])
        keep[system.free[poor]] = 0
        rich = csr_array(scipy.sparse.diags_array(keep) @ P)
        rich.eliminate_zeros()
        P = rich + _exact_rows(poor, system, max(round(nnz_per_row), 1))
    sums = P.sum(axis=1)
    P.data /= np.repeat(sums, np.diff(P.indptr))
    return P


def _exact_rows(poor: np.ndarray, system: _System, nnz: int) -> csr_array:
    """Return the largest entries of some rows of P_u, enough for sums of 1/4."""
    values, rows, columns = [], [], []
    for row, exact in system.rows(poor):
        order = np.argsort(-abs(exact))
        sums, size = exact[order].cumsum(), nnz
        if sums[-1] < SMALLEST_SUM:
            raise ValueError(
                f"All of the row of item {row} sums to {sums[-1]:.3g}, since the "
                "rows of M do not sum to 0. Take renormalize=False."
            )
        while sums[min(size, sums.size) - 1] < SMALLEST_SUM:
            size *= 2
        columns.append(order[:size])
        values.append(exact[columns[-1]])
        rows.append(np.full(values[-1].size, row))
    places = np.concatenate(rows), np.concatenate(columns)
    return coo_array((np.concatenate(values), places), system.shape).tocsr()
