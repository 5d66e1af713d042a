r"""Least squares and powers of A^T A: time and error, against what else there is.

Run with ``python benchmarks/regression.py``, on one core for half an hour, or with
``--quick`` for a minute. Claimed is that "cholesky_qr" has the digits of LAPACK's QR in
less time, and that a higher power costs nothing; not that it is faster than A^T A with
Cholesky, which loses twice the digits of the condition number kappa. A^T A formed to a
power loses 2 j times as many; the printed algorithms diverge with small sketches.

Dense matrices are U diag(s) V^T with log-spaced s, so that the solution is known: to
about kappa times the rounding unit, as the product is rounded. Sparse ones have twin
columns that nearly agree. CPU time on one BLAS thread, the contenders in turn. At the
end the ratios for which there is a target. "no": breaks down, or diverges.
"""

import argparse
import time
import warnings
from functools import partial, reduce

import numpy as np
from scipy.linalg import LinAlgWarning, cho_factor, cho_solve, solve_triangular
from scipy.sparse import csr_array, hstack
from scipy.sparse.linalg import LinearOperator, cg, lsqr
from threadpoolctl import threadpool_limits

from simlib.regression import Preconditioner, even_power, lstsq
from simlib.regression.iterations import conjugate_gradients
from simlib.regression.paper import fast_psd_regression
from simlib.sketch import sparse_sign

SIZES = ("14x50", "16x100", "17x100", "16x250", "16x500", "15x1000")
KAPPAS = (1e1, 1e3, 1e6, 1e10)
TIMED = 1e3  # the condition number at which times are taken, if it is among those given
POWERS = (1, 2, 4)
SPARSE_KAPPAS = (1e2, 1e6, 1e9)
RESIDUAL = 1e-6  # of the least squares, relative to A x
STEPS = 100  # of iterations that have no preconditioner, over all stages
SLOW = 3.0  # CPU seconds from which a contender gets one turn only
REFERENCE = "cholesky_qr"


def by_gram(A, b, j):
    """A^T A once, its Cholesky decomposition, and j solves."""
    factor = cho_factor(A.T @ A)
    return reduce(lambda x, _: cho_solve(factor, x), range(j), b)


def by_qr(A, b, j):
    """The triangle of LAPACK's QR once, and j solves."""
    solve = partial(solve_triangular, np.linalg.qr(A, mode="r"))
    return reduce(lambda x, _: solve(solve(x, trans="T")), range(j), b)


def by_product(A, b, j):
    """(A^T A)^j factor by factor, and one solve."""
    return np.linalg.solve(reduce(np.matmul, [A.T @ A] * j), b)


def by_squaring(A, b, j):
    """(A^T A)^j by squaring, and one solve."""
    return np.linalg.solve(np.linalg.matrix_power(A.T @ A, j), b)


def by_plain_cg(A, b, j):
    """SciPy's conjugate gradients, j times."""
    d = A.shape[1]
    square = LinearOperator((d, d), lambda x: A.T @ (A @ x), dtype=float)
    return reduce(
        lambda x, _: cg(square, x, rtol=1e-13, maxiter=STEPS // j)[0], range(j), b
    )


def ours(method, oversampling=None):
    def solve(A, b, j):
        made = oversampling and Preconditioner.from_matrix(
            A, oversampling=oversampling, refine=False, rng=0
        )
        return even_power(A, b, j, method=method, preconditioner=made, rng=0).x

    return solve


def our_lstsq(method):
    return lambda A, b: lstsq(A, b, method=method, rng=0).x


def lstsq_by_qr(A, b):
    """The triangle of LAPACK's QR, and the normal equations corrected once."""
    solve = partial(solve_triangular, np.linalg.qr(A, mode="r"))
    x = solve(solve(A.T @ b, trans="T"))
    return x + solve(solve(A.T @ (b - A @ x), trans="T"))


def lstsq_by_gram(A, b):
    """A^T A, sparse or not, and a dense Cholesky decomposition."""
    G = A.T @ A
    return cho_solve(
        cho_factor(G if isinstance(A, np.ndarray) else G.toarray()), A.T @ b
    )


def plain_lsqr(A, b):
    """SciPy's LSQR."""
    return lsqr(A, b, atol=1e-13, btol=1e-13, conlim=0, iter_lim=STEPS)[0]


POWER_CONTENDERS = {
    "Gram, Cholesky": by_gram,
    "explicit product": by_product,
    "squaring": by_squaring,
    "LAPACK QR": by_qr,
    "plain CG": by_plain_cg,
    "paper, 20 d rows": ours("paper", 20),
    "paper, 100 d rows": ours("paper"),
    "cholesky_qr": ours("cholesky_qr"),
    "heavy_ball": ours("heavy_ball"),
    "cg": ours("cg"),
}
LSTSQ_CONTENDERS = {
    "Gram, Cholesky": lstsq_by_gram,
    "LAPACK QR": lstsq_by_qr,
    "LAPACK lstsq": lambda A, b: np.linalg.lstsq(A, b)[0],
    "plain LSQR": plain_lsqr,
    "paper, 100 d rows": our_lstsq("paper"),
    "cholesky_qr": our_lstsq("cholesky_qr"),
    "heavy_ball": our_lstsq("heavy_ball"),
    "lsqr": our_lstsq("lsqr"),
}
SPARSE_CONTENDERS = {
    name: LSTSQ_CONTENDERS[name]
    for name in ("Gram, Cholesky", "plain LSQR", "heavy_ball", "lsqr")
}
SKETCHES = {
    "sparse_sign": lambda A: sparse_sign(4 * A.shape[1], len(A), rng=0) @ A,
    "A^T A": lambda A: A.T @ A,
}
TARGETS = (  # what over what, and the bound by the width of A
    ("R1", "sparse_sign", "A^T A", "<=", {100: 5, 500: 1.5}),
    ("R9", "cholesky_qr j=1", "Gram, Cholesky j=1", "<=", {100: 7, 500: 5}),
    ("R10", "LAPACK QR j=1", "cholesky_qr j=1", ">=", {100: 2.5, 500: 1.5}),
    ("R11", "cholesky_qr j=4", "cholesky_qr j=1", "<=", {100: 1.3, 250: 1.3, 500: 1.3}),
    ("R11", "heavy_ball j=4", "heavy_ball j=1", "<=", {100: 4, 250: 4, 500: 4}),
    ("R11", "cg j=4", "cg j=1", "<=", {100: 4, 250: 4, 500: 4}),
    ("R12", "LAPACK lstsq", "heavy_ball", ">=", {100: 1.2, 250: 1.2, 500: 1.2}),
    ("R12", "LAPACK lstsq", "lsqr", ">=", {100: 1.2, 250: 1.2, 500: 1.2}),
)


def race(contenders, arguments, repeats):
    """Return least CPU times and answers, without those who break down."""
    times, answers = {}, {}
    for turn in range(repeats):
        for name, run in contenders.items():
            if turn and times.get(name, np.inf) > SLOW:
                continue
            start = time.process_time()
            try:
                answers[name] = run(*arguments)
            except np.linalg.LinAlgError:
                continue
            seconds = time.process_time() - start
            times[name] = min(seconds, times.get(name, np.inf))
    return times, answers


def distances(answers, x):
    return {
        name: np.linalg.norm(answer - x) / np.linalg.norm(x)
        for name, answer in answers.items()
    }


def print_table(title, contenders, times, errors, reference=REFERENCE):
    """Print times, their ratios to that of the reference, and errors by kappa."""
    print(f"\n{title}")
    kappas = "".join(f"{kappa:9.0e}" for kappa in errors)
    print(f"  {'':20}  CPU s{'/ ' + reference:>15}{kappas}")
    for name in contenders:
        cells = "".join(
            f"{error[name]:9.0e}" if name in error else f"{'no':>9}"
            for error in errors.values()
        )
        took = f"{'':7}{'':15}"
        if name in times:
            took = f"{times[name]:7.3f}{times[name] / times[reference]:15.2f}"
        print(f"  {name:20}{took}{cells}")


def compare_dense(n, d, kappas, powers, repeats):
    """Print tables for least squares and the powers; return the times."""
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((n, d)))[0]
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    y, noise = rng.standard_normal(d), rng.standard_normal(n)
    for _ in range(2):
        noise -= U @ (U.T @ noise)
    timed = TIMED if TIMED in kappas else kappas[0]
    times, errors = {}, {j: {} for j in (0, *powers)}  # 0 stands for least squares
    for kappa in kappas:
        turns = repeats if kappa == timed else 1
        s = np.geomspace(1, 1 / kappa, d)
        A = (U * s) @ V.T
        b = A @ y
        b += noise * (RESIDUAL * np.linalg.norm(b) / np.linalg.norm(noise))
        for j in errors:
            if j:
                x = V @ (s ** (-2 * j) * (V.T @ y))
                taken, answers = race(POWER_CONTENDERS, (A, y, j), turns)
            else:
                x = y
                taken, answers = race(LSTSQ_CONTENDERS, (A, b), turns)
            errors[j][kappa] = distances(answers, x)
            if kappa == timed:
                times[j] = taken
        if kappa == timed:
            sketches, _ = race(SKETCHES, (A,), repeats)
    for j in errors:
        title = f"(A^T A)^{j} x = b" if j else "min |A x - b|"
        title = f"{title}, {n} x {d}; error of x by condition number"
        contenders = POWER_CONTENDERS if j else LSTSQ_CONTENDERS
        print_table(title, contenders, times[j], errors[j])
    return sketches | {
        f"{name} j={j}" if j else name: seconds
        for j in times
        for name, seconds in times[j].items()
    }


def twins(n, d, kappa, rng):
    """Return a sparse matrix of 10 entries a row whose columns come in pairs.

    The columns of a pair have the same places, and differ by a share of their norm:
    from all of it down to 1 / kappa. Scaling the columns does not help.
    """
    places = np.repeat(np.arange(n), 5), rng.integers(d // 2, size=5 * n)
    first, second = (
        csr_array((rng.standard_normal(5 * n), places), shape=(n, d // 2))
        for _ in range(2)
    )
    second.data *= np.geomspace(1, 1 / kappa, d // 2)[second.indices]
    return csr_array(hstack([first, first + second]))


def compare_sparse(n, d, repeats):
    """Print a table for least squares with sparse A, and the condition numbers."""
    rng = np.random.default_rng(0)
    x, times, errors = rng.standard_normal(d), {}, {}
    for kappa in SPARSE_KAPPAS:
        A = twins(n, d, kappa, rng)
        turns = 1 if errors else repeats
        taken, answers = race(SPARSE_CONTENDERS, (A, A @ x), turns)
        times = times or taken
        errors[kappa] = distances(answers, x)
    title = f"min |A x - b|, {n} x {d} sparse, {A.nnz / n:.1f} entries a row; by kappa"
    print_table(title, SPARSE_CONTENDERS, times, errors, "heavy_ball")


def steps(n, d):
    """Return the steps of a stage to 1e-10, the paper's and ours; inf if it fails."""
    A = np.random.default_rng(0).standard_normal((n, d)) * np.geomspace(1, 1e-3, d)
    Y = np.random.default_rng(1).standard_normal((d, 1))
    counts = {}
    for name, run, rows in (
        ("paper", fast_psd_regression, 20),
        ("paper", fast_psd_regression, 100),
        ("cg", conjugate_gradients, 12),
    ):
        made = Preconditioner.from_matrix(A, oversampling=rows, refine=False, rng=0)
        try:
            _, counts[name, rows] = run(A, Y, made, 1e-10)
        except np.linalg.LinAlgError:
            counts[name, rows] = np.inf
    return counts


def print_targets(times, counts):
    """Print the ratios for which there is a target, at the sizes that were run."""
    rows = []
    for number, above, below, sign, bounds in TARGETS:
        for (n, d), of in times.items():
            if d in bounds and {above, below} <= of.keys():
                what, ratio = f"{above} / {below}, {n} x {d}", of[above] / of[below]
                rows.append((number, what, ratio, sign, bounds[d]))
    rows += [
        (
            "R13",
            "paper, 20 d rows: inf if it diverges",
            counts["paper", 20],
            ">=",
            np.inf,
        ),
        ("R13", "paper, 100 d rows: steps a stage", counts["paper", 100], "<=", 45),
        ("R13", "cg, 12 d rows: steps a stage", counts["cg", 12], "<=", 22),
    ]
    print("\nTargets, set for n of 2^16 and more")
    for number, what, value, sign, bound in rows:
        met = value <= bound if sign == "<=" else value >= bound
        verdict = "met" if met else "missed"
        print(f"  {number:5}{what:52}{value:7.2f} {sign} {bound:<5g}{verdict}")


def size(text):
    """Read "16x100" as 2^16 x 100."""
    exponent, d = map(int, text.split("x"))
    return 2**exponent, d


def main():
    """Compare on dense matrices, then on a sparse one, then judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--sizes", nargs="*", help='"16x100" for 2^16 x 100')
    parser.add_argument("--kappas", nargs="+", type=float, default=KAPPAS)
    parser.add_argument("--powers", nargs="+", type=int, default=POWERS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sparse", nargs=2, type=int, metavar=("N", "D"))
    options = parser.parse_args()
    sizes = options.sizes
    if sizes is None:
        sizes = ("13x50", "14x100") if options.quick else SIZES
    sparse = options.sparse or ((10**5, 500) if options.quick else (10**6, 2000))
    times = {}
    for n, d in map(size, sizes):
        times[n, d] = compare_dense(
            n, d, options.kappas, options.powers, options.repeats
        )
    compare_sparse(*sparse, options.repeats)
    print_targets(times, steps(2**14, 100))


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # the powers are ill-conditioned
        main()
