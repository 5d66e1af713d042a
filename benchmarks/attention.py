"""Regression with the attention kernel: what a preconditioner costs and saves.

Run with ``python benchmarks/attention.py``, on one core for some minutes, or with
``--quick`` for one. Claimed is that some columns of the kernel matrix, drawn by
randomly pivoted Cholesky, are a better preconditioner than any sketch of it, that with
them conjugate gradients overtake a dense Cholesky decomposition from some 3000 points
where a ridge or the data leave few directions to find, that rows of different lengths
do no harm to the answer, and that ridge regression on features, by `lstsq` on blocks of
them, takes some five passes. Not that sketches help: on rows of norm 2 they are worse
than nothing. Nor that some thousand points in many directions with a small ridge are
solved faster: there `KernelRidge` is.

"sphere": points uniform on the unit sphere of R^16. "clusters": 10 centres on the unit
sphere of R^64, each point its centre and 0.3 times a random unit vector, then made 2
long. "subspace": points uniform on the unit sphere of a random 3-dimensional subspace
of R^64. "digits" and "cancer": scikit-learn's, standardised and divided by d^(1/4).
"long row": 800 normal rows of R^4, halved, the last of them of the norm given. Targets
are normal. CPU time on one BLAS thread, the contenders in turn, the least of the
repeats, all of a fit to a residual of 1e-10. "no": not there after 1000 iterations, or
where rounding leaves more. At the end the figures for which there is a target.
"""

import argparse
import resource
import time
import tracemalloc
import warnings

import numpy as np
import scipy.linalg
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from simlib.regression import AttentionKernelRegressor, ExponentialFeatures, lstsq

SIZES = (1000, 3000)  # all contenders
LARGER = (4000, 6000)  # the dense decomposition and the best
RIDGES = (1e-3, 1e-6)  # times the number of points
RANK, FEATURES = 256, 512
MANY = (15_000, "sphere", 1e-4)  # of which the kernel is not kept
MILLION = 10**6
SLOW = 3.0  # CPU seconds from which a contender gets one turn only
BEST, DENSE, NONE = "RPCholesky", "dense Cholesky", "none"


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def sphere(n, d=16):
    return unit(np.random.default_rng(0).standard_normal((n, d)))


def clusters(n, d=64, radius=2.0):
    rng = np.random.default_rng(0)
    centres = unit(rng.standard_normal((10, d)))[rng.integers(10, size=n)]
    return radius * unit(centres + 0.3 * unit(rng.standard_normal((n, d))))


def subspace(n, d=64):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((d, 3)))[0]
    return unit(rng.standard_normal((n, 3))) @ basis.T


def standardised(load):
    X = StandardScaler().fit_transform(load().data)
    return X / X.shape[1] ** 0.25


def long_row(norm):
    X = np.random.default_rng(0).standard_normal((800, 4)) / 2
    X[-1] = norm / 2
    return X


GEOMETRIES = {"sphere": sphere, "clusters": clusters, "subspace": subspace}


def features(kind, size=FEATURES):
    return ExponentialFeatures(size, kind=kind, random_state=0)


CONTENDERS = {
    NONE: {"preconditioner": None},
    "shared tree": {"preconditioner": features("shared_tree")},
    "TensorSRHT": {"preconditioner": features("tensor_srht")},
    "TensorSRHT 1030": {"preconditioner": features("tensor_srht", 1030)},
    "PolynomialCountSketch": {"preconditioner": features("polynomial_count_sketch")},
    "positive features": {"preconditioner": features("positive")},
    "exact Taylor": {"preconditioner": features("taylor", 153)},
    "uniform Nystroem": {"preconditioner": "nystroem"},
    BEST: {},
    DENSE: None,
}


def timed(function, repeats):
    """Return the least CPU time of some calls, one if it is slow, and the result."""
    least = np.inf
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        least = min(least, time.process_time() - start)
        if least > SLOW:
            break
    return least, result


def fit(X, y, ridge, options):
    model = AttentionKernelRegressor(ridge, rank=RANK, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.set_params(**options).fit(X, y)


def dense(X, y, ridge):
    """The kernel matrix, and its Cholesky decomposition."""
    G = X @ X.T
    np.exp(G, out=G)
    G[np.diag_indices_from(G)] += ridge
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(G, overwrite_a=True), y)


def race(X, ridge, repeats, contenders=CONTENDERS):
    """Return the time, the steps or None, and the rank of each contender."""
    y = np.random.default_rng(5).standard_normal(len(X))
    results = {}
    for name in contenders:
        options = CONTENDERS[name]
        if options is None:
            took, _ = timed(lambda: dense(X, y, ridge), repeats)
            results[name] = took, 0, len(X)
            continue
        took, model = timed(lambda given=options: fit(X, y, ridge, given), repeats)
        arrived = model.residual_ <= model.tol
        results[name] = took, model.n_iter_ if arrived else None, model.rank_
    return results


def print_table(title, results):
    print(f"\n{title}")
    print(f"  {'':24}rank  steps   total  / {BEST}")
    for name, (took, steps, rank) in results.items():
        count = "no" if steps is None else steps
        print(
            f"  {name:22}{rank:6}{count:>7}{took:8.3f}{took / results[BEST][0]:14.2f}",
            flush=True,
        )


def compare(sizes, larger, repeats):
    """Print a table for each geometry, ridge and size; return the results."""
    found = {}
    for name, points in GEOMETRIES.items():
        for share in RIDGES:
            for n in (*sizes, *larger):
                if name == "clusters" and n not in sizes:
                    continue
                some = CONTENDERS if n in sizes else (BEST, DENSE)
                results = race(points(n), share * n, repeats, some)
                print_table(f"{name}, ridge {share:.0e} n, n = {n}", results)
                found[name, share, n] = results
    return found


def compare_lengths(repeats):
    """Print what comes of rows of different lengths, beside a dense decomposition."""
    cases = [
        (name, standardised(load), share * len(load().data))
        for name, load in (("digits", load_digits), ("cancer", load_breast_cancer))
        for share in RIDGES
    ]
    cases += [
        (f"long row, {norm:g}", long_row(norm), 1.0) for norm in (0, 1e-8, 6, 12, 16.9)
    ]
    print(
        "\nRows of different lengths; the error is that of alpha beside the dense one"
    )
    print(f"  {'':18}ridge  rank  steps  dense / {BEST}", end="")
    print("     error  residual  of the dense one")
    found = {}
    for name, X, ridge in cases:
        y = np.random.default_rng(5).standard_normal(len(X))
        took, model = timed(lambda X=X, y=y, r=ridge: fit(X, y, r, {}), repeats)
        slow, alpha = timed(lambda X=X, y=y, r=ridge: dense(X, y, r), repeats)
        error = np.linalg.norm(model.dual_coef_ - alpha) / np.linalg.norm(alpha)
        left = np.exp(X @ X.T) @ alpha + ridge * alpha - y
        left = np.linalg.norm(left) / np.linalg.norm(y)
        found[name, ridge] = error, model.residual_, left
        print(
            f"  {name:16}{ridge:7.1e}{model.rank_:6}{model.n_iter_:7}"
            f"{slow / took:19.2f}{error:10.0e}{model.residual_:10.0e}{left:18.0e}",
            flush=True,
        )
    return found


def compare_many(n, name, share):
    """Print a table for many points, and the memory of a fit; return both."""
    X = GEOMETRIES[name](n)
    results = race(X, share * n, 1, (NONE, "exact Taylor", "uniform Nystroem", BEST))
    print_table(f"{name}, ridge {share:.0e} n, n = {n}", results)
    tracemalloc.start()
    fit(X, X[:, 0], 1e-2 * n, {})
    peak = tracemalloc.get_traced_memory()[1] / (8 * n * RANK)
    tracemalloc.stop()
    print(f"  peak memory of a fit with rank {RANK}: {peak:.1f} n rank numbers")
    return results, peak


class RidgeRows:
    """Features of rows, some at a time, and the root of a ridge below them."""

    def __init__(self, maker, X, ridge):
        self.maker, self.X, self.ridge = maker, X, ridge

    def __iter__(self):
        for start in range(0, len(self.X), 4096):
            yield self.maker.transform(self.X[start : start + 4096])
        yield np.sqrt(self.ridge) * np.eye(self.maker.n_components_)


def compare_linear(n):
    """Print the times of ridge regression on features, and the memory of it all."""
    rng = np.random.default_rng(0)
    X = sphere(n)
    y = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    print(f"\nRidge regression on features, n = {n}; Z would have 8 n m bytes")
    print(f"  {'':21}m    Z, MB one pass   lstsq  residual   1 - R^2  peak RSS, MB")
    ratios = {}
    for kind, size in (("taylor", 153), ("tensor_srht", 256)):
        maker = ExponentialFeatures(size, kind=kind, random_state=0).fit(X)
        m = maker.n_components_
        blocks, targets = RidgeRows(maker, X, 1e-3), np.append(y, np.zeros(m))
        once, _ = timed(lambda blocks=blocks: [None for _ in blocks], 1)
        took, found = timed(
            lambda blocks=blocks, targets=targets: lstsq(blocks, targets), 1
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        ratios[kind] = took / once
        left = found.residual**2 * (y @ y) / (len(y) * y.var())
        print(
            f"  {kind:17}{m:5}{8e-6 * n * m:9.0f}{once:9.1f}{took:8.1f}"
            f"{found.preconditioned_residuals[0]:10.0e}{left:10.4f}{peak:14.0f}",
            flush=True,
        )
    return ratios


def print_targets(found, lengths, many, peak, passes):
    """Print what has a target, at the sizes that were run."""
    rows = []
    for n in sorted({key[2] for key in found}):
        of = found["sphere", 1e-3, n]
        for name, bound in ((BEST, 18), ("exact Taylor", 13), ("TensorSRHT 1030", 32)):
            if name in of:
                steps = np.inf if of[name][1] is None else of[name][1]
                rows.append((f"{name}, sphere, {n}: steps", steps, "<=", bound))
        if n < 3000:  # a dense decomposition is too fast to be overtaken
            continue
        for name, share, bound in (("sphere", 1e-3, 1), ("subspace", 1e-6, 4)):
            of = found[name, share, n]
            ratio = of[DENSE][0] / of[BEST][0]
            rows.append((f"{DENSE} / {BEST}, {name}, {n}", ratio, ">=", bound))
    errors = [error for error, _, _ in lengths.values()]
    rows.append(("rows of different lengths: error", max(errors), "<=", 1e-9))
    worse = max(max(own, 1e-10) / max(left, 1e-10) for _, own, left in lengths.values())
    rows.append(("  residual / the dense one's", worse, "<=", 10))
    plain = many[NONE][1] or np.inf
    rows.append((f"none / {BEST}, many: steps", plain / many[BEST][1], ">=", 3))
    rows.append((f"none / {BEST}, many", many[NONE][0] / many[BEST][0], ">=", 2))
    rows.append(("memory of a fit over n rank numbers", peak, "<=", 4))
    for kind, ratio in passes.items():
        rows.append((f"lstsq / one pass, {kind}", ratio, "<=", 8))
    print("\nTargets")
    for what, value, sign, bound in rows:
        met = value <= bound if sign == "<=" else value >= bound
        verdict = "met" if met else "missed"
        print(f"  {what:44}{value:8.2g} {sign} {bound:<6g}{verdict}")


def main():
    """Measure the memory of the linear mode first, then compare, then judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--sizes", nargs="+", type=int)
    parser.add_argument("--many", type=int, help="points whose kernel is not kept")
    parser.add_argument("--linear", type=int, help="points of the linear mode")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    quick = options.quick
    passes = compare_linear(options.linear or (MILLION // 50 if quick else MILLION))
    sizes = options.sizes or ((1000,) if quick else SIZES)
    repeats = 1 if quick else options.repeats
    found = compare(sizes, () if quick or options.sizes else LARGER, repeats)
    lengths = compare_lengths(repeats)
    many, peak = compare_many(options.many or (12_000 if quick else MANY[0]), *MANY[1:])
    print_targets(found, lengths, many, peak, passes)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
