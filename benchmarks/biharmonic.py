"""Biharmonic approximation at scale: ratios of contenders in one run.

Run with ``python benchmarks/biharmonic.py``, on one core for some minutes, or with
``--quick`` for one; ``--full`` takes the cortex of 151487 vertices and a graph of two
million nodes, an hour and 10 GB. Claimed is that one sparse P for an ensemble of
kernels overtakes a Nyström approximation of each from a few kernels on, that the
selected solve is faster than whole columns where separators are small, as on road
networks, and that hub labels give the hop distances among many landmarks faster than
searches. Not that the selected solve pays on every surface: on small meshes, or with
few landmarks, what a column touches is too much of the mesh, and `interpolation` takes
whole columns then.

Kernels are Gaussian, of the coordinates. "Nyström, Gram": columns by scikit-learn, the
pseudo-inverse by eigenvalues, a solution by C^T C, the quickest that does what the
paper describes; "Nyström, QR": `LowRank.solve`, which keeps the digits that C^T C
loses. Whole columns are solved by SuperLU, 32 at a time, and their largest entries
found. "breadth-first" is SciPy's order of the nodes, without their depths, so that a
search can only take longer; "Dijkstra" is `graph_distances`. Hub labels are timed among
the landmarks, the upper triangle, and told for a source. Roads are those of New York
where the data are, a generated planar graph otherwise. CPU time on one BLAS thread, the
contenders in turn. At the end the ratios for which there is a target.
"""

import argparse
import time

import numpy as np
from scipy.sparse.csgraph import breadth_first_order
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from simlib import LowRank
from simlib.approximation.nystrom import pinv
from simlib.biharmonic import (
    HubLabels,
    biharmonic_operator,
    graph_distances,
    graph_laplacian,
    interpolation,
    mesh_laplacian,
)
from simlib.biharmonic.selected_solve import SelectedSolve
from simlib.datasets import bumpy_sphere, planar_roads
from simlib.landmarks import uniform
from study.datasets import available, load_bunny, load_cortex, load_road_graph

NNZ_PER_ROW = 50
RIDGE = 1.0
WIDTHS = (1.0, 4.0)  # gamma of the kernels, of which the mean time is taken
CROSSINGS = {1000: 8, 1500: 4.5, 2000: 3.5}  # at most, on the cortex
SELECTED, LABELS = 50, 15  # at least, on two million nodes
COLUMNS = 64  # solved for, of landmarks near each other as `interpolation` does
SOURCES = 20  # searched from
SHARES = {"mesh": (0.035, 0.07), "roads": (0.005, 0.05)}  # landmarks of the items


def timed(function, *arguments, **options):
    """Return the CPU time of a call, and the result."""
    start = time.process_time()
    result = function(*arguments, **options)
    return time.process_time() - start, result


def surface(name):
    """Return the coordinates, with mean square one, and the operator of a mesh."""
    if name == "full":
        mesh = load_cortex("full")
    else:
        mesh = load_bunny() if available("bunny") else bumpy_sphere(5)
    X = mesh.vertices - mesh.vertices.mean(axis=0)
    M = biharmonic_operator(*mesh_laplacian(mesh.vertices, mesh.faces))
    return X / np.sqrt((X**2).sum(axis=1).mean()), M


def roads(size):
    """Return a road network, generated with so many nodes or that of New York."""
    if size is None and available("road-network"):
        return load_road_graph()
    return planar_roads(size or 100_000, rng=0)[0]


def by_gram(C, U, y):
    """(C U C^T + rho I)^-1 y by C^T C."""
    left = RIDGE * np.eye(len(U)) + U @ (C.T @ C)
    return (y - C @ np.linalg.solve(left, U @ (C.T @ y))) / RIDGE


def compare_ensemble(name, sizes):
    """Print where the time of an ensemble goes; return the crossings by size."""
    took, (X, M) = timed(surface, name)
    y, found = X[:, 0] * X[:, 1], {}
    print(
        f"\nEnsemble of ridge regressions, {len(X)} vertices; seconds, M in {took:.1f}"
    )
    print("      l       P  P^T P  next |   C  pinv    Gram      QR |", end="")
    print(" crossing: Gram      QR")
    for size in sizes:
        b = uniform(len(X), size, rng=0)
        before, P = timed(interpolation, M, b, nnz_per_row=NNZ_PER_ROW)
        first = LowRank(P, rbf_kernel(X[b], gamma=WIDTHS[0]))
        decomposing, _ = timed(first.solve, y, RIDGE)
        rows, safe = [], None
        for gamma in WIDTHS:
            core, W = timed(rbf_kernel, X[b], gamma=gamma)
            again, _ = timed(first.with_core(W).solve, y, RIDGE)
            columns, C = timed(rbf_kernel, X, X[b], gamma=gamma)
            inverse, U = timed(pinv, C[b], symmetric=True, rcond=1e-10)
            quick, _ = timed(by_gram, C, U, y)
            if safe is None:
                safe, _ = timed(LowRank(C, U).solve, y, RIDGE)
            rows.append([core + again, columns, inverse, quick])
        each, columns, inverse, quick = np.mean(rows, axis=0)
        gram = decomposing - each
        gains = [columns + inverse + x - each for x in (quick, safe)]
        crossings = [(took + before + gram) / gain for gain in gains]
        found[size] = crossings[0]
        print(
            f"  {size:5}{before:8.2f}{gram:7.2f}{each:6.2f} |"
            f"{columns:4.1f}{inverse:6.2f}{quick:8.2f}{safe:8.2f} |"
            f"{crossings[0]:15.1f}{crossings[1]:8.1f}",
            flush=True,
        )
    return found


def whole_columns(system, B, nnz):
    """Solve for whole columns, and find their largest entries."""
    block = system.solve(B.toarray())
    return np.argpartition(-abs(block), nnz - 1, axis=0)


def compare_columns(cases):
    """Print the times of a column, selected and whole; return the ratios."""
    print(f"\nOne column of P, {NNZ_PER_ROW} entries kept in a row; milliseconds")
    print(f"  {'':8}{'n':>9}{'l':>8}  touched  selected   whole   ratio")
    found = {}
    for name, M in cases.items():
        n = M.shape[0]
        for share in SHARES[name]:
            b = uniform(n, round(share * n), rng=0)
            free = np.setdiff1d(np.arange(n), b)
            nnz = min(round(free.size * NNZ_PER_ROW / b.size), free.size)
            system = SelectedSolve(M, b)
            some = system.order[b.size // 2 :][:COLUMNS]
            took, (*_, touched, _) = timed(system.largest, some, nnz)
            B = -M[free][:, b[some[::2]]]
            slow, _ = timed(whole_columns, system, B, nnz)
            took, slow = 1e3 * took / some.size, 1e3 * slow / B.shape[1]
            found[name, n, b.size] = slow / took
            print(
                f"  {name:8}{n:9}{b.size:8}{touched.mean() / n:8.1%}"
                f"{took:10.2f}{slow:8.1f}{slow / took:8.1f}",
                flush=True,
            )
    return found


def among(labels, landmarks):
    """Compute the distances among landmarks, and keep none."""
    for _ in labels.blocks(landmarks):
        pass


def search_all(A, sources):
    """Search a graph from some nodes."""
    for source in sources.tolist():
        breadth_first_order(A, source)


def compare_labels(A, sizes):
    """Print the times of the hop distances from a source; return the ratios."""
    n = A.shape[0]
    building, labels = timed(HubLabels, A)
    sources = uniform(n, SOURCES, rng=1)
    search = timed(search_all, A, sources)[0] / SOURCES
    dijkstra = timed(graph_distances, A, sources)[0] / SOURCES
    print(f"\nHop distances among landmarks; milliseconds a source; {labels}")
    print(f"  breadth-first {1e3 * search:.1f}, Dijkstra {1e3 * dijkstra:.1f}", end="")
    print(f", index of the labels in {building:.1f} s")
    print("        l    labels  breadth-first / labels  and their index  Dijkstra /")
    found = {}
    for size in sizes:
        took, _ = timed(among, labels, uniform(n, size, rng=0))
        found[n, size] = size * search / took
        print(
            f"  {size:7}{1e3 * took / size:10.3f}{found[n, size]:24.1f}"
            f"{size * search / (took + building):17.1f}"
            f"{size * dijkstra / took:12.1f}",
            flush=True,
        )
    return found


def warm_up():
    """Compile, so that no time contains it."""
    M = surface("sphere")[1]
    SelectedSolve(M, np.arange(0, M.shape[0], 20)).largest(np.arange(4), 50)
    labels = HubLabels(planar_roads(1000, rng=0)[0])
    list(labels.blocks(np.arange(0, 900, 3)))


def print_targets(crossings, columns, labels, full):
    """Print what has a target; those are for the sizes of --full."""
    rows = []
    for size, value in crossings.items():
        if full:
            rows.append((f"crossing, l = {size}", value, "<=", CROSSINGS[size]))
    (_, n, size), value = list(columns.items())[-1]
    rows.append(
        (f"whole / selected column, n = {n}, l = {size}", value, ">=", SELECTED)
    )
    (n, size), value = list(labels.items())[-1]
    rows.append((f"breadth-first / labels, n = {n}, l = {size}", value, ">=", LABELS))
    print("\nTargets" + ("" if full else ", which are those of --full"))
    for what, value, sign, bound in rows:
        met = value <= bound if sign == "<=" else value >= bound
        verdict = "met" if met else "missed"
        print(f"  {what:52}{value:8.2g} {sign} {bound:<6g}{verdict}")


def main():
    """Compare ensembles, columns and labels, then judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sized = parser.add_mutually_exclusive_group()
    sized.add_argument("--quick", action="store_true", help="small sizes")
    sized.add_argument("--full", action="store_true", help="the sizes of the targets")
    options = parser.parse_args()
    quick, full = options.quick, options.full
    warm_up()
    sizes = (500,) if quick else (500, 1000) if not full else tuple(CROSSINGS)
    crossings = compare_ensemble("full" if full else "bunny", sizes)
    A = roads(20_000 if quick else 2_000_000 if full else None)
    operators = {"mesh": surface("bunny")[1]}
    operators["roads"] = biharmonic_operator(graph_laplacian(A))
    columns = compare_columns(operators)
    n = A.shape[0]
    labels = compare_labels(A, [round(share * n) for share in SHARES["roads"]])
    print_targets(crossings, columns, labels, full)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
