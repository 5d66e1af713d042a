import sys
from contextlib import suppress

import joblib
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order

from simlib.biharmonic import (
    biharmonic_operator,
    graph_laplacian,
    interpolation,
    mesh_laplacian,
    selected_solve,
)
from simlib.biharmonic.interpolation import _System
from simlib.biharmonic.selected_solve import SelectedSolve, selected_columns
from simlib.datasets import bumpy_sphere
from simlib.landmarks import uniform
from study.datasets import load_road_graph
from support.matrices import quick
from support.operators import (
    by_dense_algebra,
    in_parts_of_nine,
    path,
    random_laplacian,
    surface_operator,
)


def roads(n):
    """The operator of the n nodes that are the fewest hops away from node 0."""
    graph = load_road_graph()
    order = breadth_first_order(graph, 0, directed=False, return_predecessors=False)
    near = np.sort(order[:n])
    return biharmonic_operator(graph_laplacian(graph[near][:, near]))


def check_kept(M, landmarks, kept):
    """What is kept is that of the whole columns; return the share that is missed."""
    columns, _ = selected_columns(M, landmarks, kept)
    P = interpolation(M, landmarks, solver="superlu")
    P[landmarks] = 0
    np.testing.assert_array_equal(np.diff(columns.indptr), kept)
    rows, values = columns.indices, columns.data
    numbers = np.repeat(np.arange(landmarks.size), kept)
    np.testing.assert_allclose(values, P[rows, numbers], rtol=0, atol=1e-10)
    best = np.sort(P**2, axis=0)[-kept:].sum()
    return 1 - np.square(values).sum() / best


@pytest.mark.parametrize("kept", [8, 3])
def test_largest_on_a_harmonic_path(kept):
    columns, _ = selected_columns(path(*[1] * 9), np.array([9, 0]), kept)
    falling = np.r_[0, np.arange(8, 8 - kept, -1) / 9, np.zeros(9 - kept)]
    exact = np.column_stack([falling[::-1], falling])
    np.testing.assert_allclose(columns.toarray(), exact, rtol=1e-13)


def test_reach_is_a_ball(monkeypatch):
    """Around the middle of a path, in the order of the hops."""
    M, landmarks = path(*[1] * 20), np.array([10, 0, 20])
    balls = [[9, 11], [8, 9, 11, 12], [7, 8, 9, 11, 12, 13]]
    for reach, rows in enumerate(balls, 1):
        monkeypatch.setattr(selected_solve, "REACH", reach)
        columns, _ = selected_columns(M, landmarks, 2)
        assert set(columns.indices[:2]) <= set(rows)
        monkeypatch.setattr(selected_solve, "REACH", 1)
        columns, _ = selected_columns(M, landmarks, len(rows))
        np.testing.assert_array_equal(np.sort(columns.indices[: len(rows)]), rows)


def test_reach_passes_through_landmarks():
    M = path(1, 1, 1, 1)
    columns, _ = selected_columns(M, np.array([2, 1]), 3)
    exact = [[0, 1], [0, 0], [0, 0], [1, 0], [1, 0]]
    np.testing.assert_allclose(columns.toarray(), exact, atol=1e-15)


def test_fewer_in_the_piece_than_are_kept():
    M = scipy.sparse.block_diag([path(1, 1), path(), path(1, 1, 1)], format="csr")
    columns, touched = selected_columns(M, np.array([3, 0, 6]), 4)
    exact = [[0, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0], *[[0, 0, 1]] * 3, [0, 0, 1]]
    exact[6] = [0, 0, 0]
    np.testing.assert_allclose(columns.toarray(), exact, atol=1e-15)
    np.testing.assert_array_equal(touched, [0, 2, 3])


def test_nothing_in_reach():
    """A landmark alone in its piece has no column, and no memory is read for one."""
    none, values = np.empty(0, dtype=np.int64), np.empty(0)
    assert selected_solve._keep.py_func(none, values, none, none, values) == 0


@quick
@given(st.integers(3, 60), st.integers(1, 30), st.integers(0, 999), st.booleans())
def test_all_in_reach(n, n_landmarks, seed, harmonic):
    L = random_laplacian(n, seed)
    M = L if harmonic else biharmonic_operator(L)
    landmarks = uniform(n, min(n - 1, n_landmarks), rng=seed)
    columns, _ = selected_columns(M, landmarks, n)
    exact = by_dense_algebra(M, landmarks)
    exact[landmarks] = 0
    np.testing.assert_allclose(columns.toarray(), exact, atol=1e-8)


def test_kept_on_the_sphere():
    mesh = bumpy_sphere(4)
    M = surface_operator(mesh)
    landmarks = uniform(2562, 180, rng=0)
    assert check_kept(M, landmarks, 330) < 1e-6
    L, _ = mesh_laplacian(mesh.vertices, mesh.faces)
    assert check_kept(L, landmarks, 330) < 1e-6


def test_an_operator_in_no_order_and_with_entries_twice():
    """That of a path of four; the caller's arrays stay as they are."""
    data = [-1, 1, -1, 1, 1, -1, -1, 1, 1, -1, 1, -0.5, -0.5]
    indices, indptr = [1, 0, 2, 1, 1, 0, 3, 2, 2, 1, 3, 2, 2], [0, 2, 6, 10, 13]
    M = csr_array((data, indices, indptr), (4, 4))
    columns, _ = selected_columns(M, np.array([0, 3]), 2)
    exact = np.array([[0, 0], [2, 1], [1, 2], [0, 0]]) / 3
    np.testing.assert_allclose(columns.toarray(), exact, rtol=1e-14)
    rows, values, *_ = SelectedSolve(M, np.array([0, 3])).largest(np.arange(2), 2)
    found = coo_array((values.ravel(), (rows.ravel(), [0, 0, 1, 1])), (4, 2))
    np.testing.assert_allclose(found.toarray(), exact, rtol=1e-14)
    assert (M.data.tolist(), M.indices.tolist()) == (data, indices)


def test_two_threads():
    M = surface_operator(bumpy_sphere(3))
    landmarks = uniform(642, 50, rng=0)
    columns, touched = selected_columns(M, landmarks, 40)
    for options in {"n_jobs": 2}, {"n_jobs": 2, "backend": "loky"}:
        with joblib.parallel_config(**options):
            others, touched_too = selected_columns(M, landmarks, 40)
        np.testing.assert_array_equal(others.toarray(), columns.toarray())
        np.testing.assert_array_equal(touched_too, touched)


def hubs(n, joined, rng):
    """A graph in which new nodes prefer those that have many edges."""
    rng = np.random.default_rng(rng)
    ends, edges = list(range(joined)), []
    for node in range(joined, n):
        others = set()
        while len(others) < joined:
            others.add(ends[rng.integers(len(ends))])
        edges += [(node, other) for other in others]
        ends += [*others, *[node] * joined]
    i, j = np.transpose(edges)
    half = coo_array((np.ones(i.size), (i, j)), shape=(n, n))
    return graph_laplacian(half + half.T)


@pytest.mark.parametrize("joined", [1, 3])
@pytest.mark.parametrize("harmonic", [False, True])
def test_hubs_take_whole_columns(joined, harmonic):
    """Of which the items a few hops away are not the largest.

    On a tree many entries are equal, and the rounding of a BLAS says which are kept.
    """
    L = hubs(2000, joined, rng=0)
    M = L if harmonic else biharmonic_operator(L)
    landmarks = uniform(2000, 200, rng=0)
    exact, selected, auto = (
        interpolation(M, landmarks, nnz_per_row=4, solver=solver, renormalize=False)
        for solver in ("superlu", "selected", "auto")
    )
    norm = scipy.sparse.linalg.norm
    size = np.sqrt(norm(exact) ** 2 - 200)  # of P_u
    assert norm(selected - exact) > 0.1 * size
    assert norm(auto - exact) < 0.03 * size
    assert norm(auto) == pytest.approx(norm(exact), rel=1e-12)


def columns_by_reach(monkeypatch):
    """Count the columns that are computed around their landmarks."""
    counts, solve = [], selected_solve._solve

    def counted(landmarks, *others):
        counts.append(landmarks.size)
        return solve(landmarks, *others)

    monkeypatch.setattr(selected_solve, "_solve", counted)
    return counts


def test_whole_columns_where_nearly_all_is_kept(monkeypatch):
    counts = columns_by_reach(monkeypatch)
    M = surface_operator(bumpy_sphere(3))
    landmarks = uniform(642, 60, rng=0)
    interpolation(M, landmarks, nnz_per_row=20)
    assert sum(counts) == 0
    interpolation(M, landmarks, nnz_per_row=2)  # the ancestors are too many
    assert sum(counts) == 32
    interpolation(M, landmarks, nnz_per_row=2, solver="selected")
    assert sum(counts) == 92


def test_parts_of_columns_on_the_roads(data, monkeypatch):
    """But for the columns of which too much is out of reach."""
    counts = columns_by_reach(monkeypatch)
    M, landmarks = roads(8000), uniform(8000, 400, rng=0)
    options = {"nnz_per_row": 10, "renormalize": False}
    P = interpolation(M, landmarks, **options)
    assert sum(counts) == 400
    exact, selected = (
        interpolation(M, landmarks, solver=solver, **options)
        for solver in ("superlu", "selected")
    )
    squares, best, missed = (
        A.power(2).sum(axis=0) for A in (P, exact, exact - selected)
    )
    assert missed.max() > 0.3
    assert (1 - squares / best).max() < 1e-3


@pytest.mark.parametrize("reach", [3, 20])
def test_what_is_out_of_reach(reach, monkeypatch):
    M = surface_operator(bumpy_sphere(3))
    landmarks = uniform(642, 40, rng=0)
    monkeypatch.setattr(selected_solve, "REACH", 1)  # all in reach is kept
    inside = selected_columns(M, landmarks, 10 * reach)[0].toarray()
    monkeypatch.setattr(selected_solve, "REACH", reach)
    outside = interpolation(M, landmarks, solver="superlu") - inside
    outside[landmarks] = 0
    exact = np.square(outside).sum(axis=0)
    for probes in 16, 4000:
        system = SelectedSolve(M, landmarks, probes=probes)
        *_, beyond = system.largest(np.arange(40), 10)
        np.testing.assert_allclose(beyond / exact, 1, atol=6 * (2 / probes) ** 0.5)


@pytest.mark.parametrize("solver", ["selected", "superlu", "auto"])
def test_a_stopped_run_goes_on_to_the_same_operator(tmp_path, monkeypatch, solver):
    """Interrupted again and again: each time it comes two parts further."""
    expected = in_parts_of_nine(None, solver=solver)
    turns, done = [], []

    def stopping(function):
        def stopped(*arguments):
            if len(turns) == 2:
                raise KeyboardInterrupt
            turns.append(None)
            done.append(None)
            return function(*arguments)

        return stopped

    monkeypatch.setattr(SelectedSolve, "largest", stopping(SelectedSolve.largest))
    monkeypatch.setattr(_System, "columns", stopping(_System.columns))
    for _ in range(4):
        turns.clear()
        with suppress(KeyboardInterrupt):
            found = in_parts_of_nine(str(tmp_path), solver=solver)
    assert len(done) == {"selected": 5, "superlu": 7, "auto": 8}[solver]
    assert abs(found - expected).max() == 0
    turns[:] = [None, None]  # nothing is left to compute
    assert abs(in_parts_of_nine(str(tmp_path), solver=solver) - expected).max() == 0


def test_another_operator_in_the_same_folder(tmp_path):
    M, landmarks = surface_operator(bumpy_sphere(3)), uniform(642, 60, rng=0)
    for operator, b in (M, landmarks), (2 * M @ M, landmarks), (M, landmarks[::-1]):
        for solver in "selected", "auto", "superlu":
            options = {"nnz_per_row": 2, "solver": solver}
            found = interpolation(operator, b, memory=tmp_path, **options)
            assert abs(found - interpolation(operator, b, **options)).max() == 0


def test_columns_of_other_code_are_computed_again(tmp_path, monkeypatch):
    module = sys.modules["simlib.biharmonic.interpolation"]
    assert b"class SelectedSolve" in b"".join(module._sources())
    calls = []
    largest = SelectedSolve.largest
    monkeypatch.setattr(
        SelectedSolve, "largest", lambda *args: calls.append(0) or largest(*args)
    )
    counts = []
    for sources in ([b"one"], [b"one"], [b"two"]):
        monkeypatch.setattr(module, "_sources", lambda sources=sources: sources)
        in_parts_of_nine(str(tmp_path), solver="selected")
        counts.append(len(calls))
    assert counts == [counts[0], counts[0], 2 * counts[0]]


# What is refused


@pytest.mark.parametrize(
    ("M", "landmarks", "nnz", "message"),
    [
        (np.triu(np.ones((4, 4))), [0], 1, "operator M is symmetric"),
        (np.eye(4), [0, -1], 1, "numbered 0 to 3; got -1"),
        (np.eye(4), [0, 0], 1, "none twice"),
        (np.eye(4), [True, False, False, True], 1, "array of integers"),
        (np.eye(4), [0], 0, "nnz must be at least 1; got 0"),
    ],
)
def test_impossible_columns(M, landmarks, nnz, message):
    with pytest.raises((ValueError, IndexError), match=message):
        selected_columns(M, landmarks, nnz)


@pytest.mark.parametrize("pivot", [0, -1])
def test_not_positive_definite(pivot):
    """Pivots of 0 and, of both signs, -1 and 3; by small ones digits would be lost."""
    M = np.array([[2.0, -1, -1], [-1, pivot, 1 - pivot], [-1, 1 - pivot, pivot]])
    with pytest.raises(ValueError, match="not positive definite"):
        interpolation(M, [0], nnz_per_row=2, solver="selected")
    P = interpolation(M, [0], solver="superlu")
    np.testing.assert_allclose(P, np.ones((3, 1)), rtol=1e-15)


def test_whole_columns_where_it_is_not_positive_definite():
    M, landmarks = path(*[1] * 399).tolil(), np.arange(0, 400, 20)
    M[100, 100] = M[101, 101] = 0
    P, auto = (
        interpolation(M, landmarks, nnz_per_row=1, renormalize=False, solver=solver)
        for solver in ("superlu", "auto")
    )
    np.testing.assert_array_equal(auto.toarray(), P.toarray())


def test_without_numba(monkeypatch):
    M = biharmonic_operator(path(1, 1, 1))
    P = interpolation(M, [0, 3], nnz_per_row=2).toarray()
    monkeypatch.delitem(sys.modules, "simlib.biharmonic.elimination_tree")
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "simlib.biharmonic.selected_solve")
    with pytest.raises(ImportError, match=r"numba: pip install simlib\[mesh\]"):
        interpolation(M, [0, 3], nnz_per_row=2, solver="selected")
    others = {}, {"solver": "superlu"}, {"by": "row"}
    for options in others:
        other = interpolation(M, [0, 3], nnz_per_row=2, **options)
        np.testing.assert_allclose(other.toarray(), P, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(interpolation(M, [0, 3]), P, rtol=1e-12, atol=1e-15)
