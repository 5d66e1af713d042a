r"""Least squares and powers of A^T A: time and error, against what else there is.

Run with ``python benchmarks/regression.py``, on one core for a quarter of an hour, or
with ``--quick`` for a minute. Claimed is that `lstsq` takes little more than the
fastest contender that has the digits, whatever the condition number kappa; that
"cholesky_qr" has those of LAPACK's QR in less time, and that a higher power costs
little. A^T A formed to a power loses digits with the power, and the algorithms as
printed diverge with small sketches.

Dense matrices are U diag(s) V^T with log-spaced s, so that the solution is known: to
about kappa times the rounding unit, as the product is rounded. Sparse ones have twin
columns that nearly agree, so that scaling columns does not help. CPU time on one BLAS
thread, the contenders in turn, the least of some turns. A contender has the digits if
its error is within ten times of the least of all but ours, or of eight times kappa
times the rounding unit if that is more. At the end the ratios for which there is a
target. "no": breaks down, or diverges.
"""

import argparse
import time
import warnings
from functools import partial, reduce

import numpy as np
import scipy.linalg
from scipy.linalg import LinAlgWarning, cho_factor, cho_solve, solve_triangular
from scipy.sparse import csr_array, hstack
from scipy.sparse.linalg import lsmr
from threadpoolctl import threadpool_limits

from simlib.regression import Preconditioner, even_power, lstsq
from simlib.regression.iterations import conjugate_gradients
from simlib.regression.sketch import sparse_sign
from study import as_printed as paper

SIZES = ("16x50", "16x100", "16x200", "16x500")
KAPPAS = (1e1, 1e4, 1e8)
SPARSE = ("20000x2000x4", "1000000x200x2", "1000000x2000x10")
SPARSE_KAPPAS = (1e1, 1e4)
RESIDUAL = 1e-6  # of the least squares, relative to A x
DIGITS = 10  # times the least error, up to which a contender has the digits
STEPS = 600  # of SciPy's LSMR, which has not arrived then
SLOW = 2.0  # CPU seconds from which a contender gets one turn only
QUICK = {"sizes": ("13x50", "14x100"), "sparse": ("20000x500x4",)}


def by_gram(A, b, j):
    """A^T A once, its Cholesky decomposition, and j solves."""
    factor = cho_factor(A.T @ A)
    return reduce(lambda x, _: cho_solve(factor, x), range(j), b)


def by_qr(A, b, j):
    """The triangle of LAPACK's QR once, and j solves."""
    solve = partial(solve_triangular, np.linalg.qr(A, mode="r"))
    return reduce(lambda x, _: solve(solve(x, trans="T")), range(j), b)


def by_squaring(A, b, j):
    """(A^T A)^j by squaring, and one solve."""
    return np.linalg.solve(np.linalg.matrix_power(A.T @ A, j), b)


def by_paper(A, b, j):
    """Algorithm 1, with a sketch of 100 d rows."""
    return paper.even_power(A, b, j, rng=0).x


def ours(method):
    return lambda A, b, j: even_power(A, b, j, method=method, rng=0).x


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


def lstsq_by_gelsy(A, b):
    """LAPACK's driver with a pivoted QR decomposition."""
    return scipy.linalg.lstsq(A, b, lapack_driver="gelsy", check_finite=False)[0]


def lstsq_by_lsmr(A, b):
    """SciPy's LSMR."""
    return lsmr(A, b, atol=1e-15, btol=1e-15, conlim=0, maxiter=STEPS)[0]


POWER_CONTENDERS = {
    "Gram, Cholesky": by_gram,
    "squaring": by_squaring,
    "LAPACK QR": by_qr,
    "paper, 100 d rows": by_paper,
    "auto": ours("auto"),
    "cholesky_qr": ours("cholesky_qr"),
    "lsqr": ours("lsqr"),
}
LSTSQ_CONTENDERS = {
    "Gram, Cholesky": lstsq_by_gram,
    "LAPACK QR": lstsq_by_qr,
    "LAPACK gelsy": lstsq_by_gelsy,
    "auto": our_lstsq("auto"),
    "cholesky_qr": our_lstsq("cholesky_qr"),
    "lsqr": our_lstsq("lsqr"),
}
SPARSE_CONTENDERS = {
    "Gram, Cholesky": lstsq_by_gram,
    "SciPy lsmr": lstsq_by_lsmr,
    "auto": our_lstsq("auto"),
}
OURS = ("auto", "cholesky_qr", "lsqr")
PARTS = {
    "sparse_sign": lambda A, b: sparse_sign(4 * A.shape[1], len(A), rng=0) @ A,
    "A^T A": lambda A, b: A.T @ A,
    "two passes": lambda A, b: A.T @ (A @ b),
}
TARGETS = (  # what over what at a kappa and power, and the bound by the width of A
    ("R1", "sparse_sign", "A^T A", "<=", {100: 5, 500: 1.5}),
    ("R9", "cholesky_qr j=1", "Gram, Cholesky j=1", "<=", {100: 7, 500: 5}),
    ("R10", "LAPACK QR j=1", "cholesky_qr j=1", ">=", {100: 2.5, 500: 1.5}),
    ("R11", "cholesky_qr j=4", "cholesky_qr j=1", "<=", {100: 1.3, 200: 1.3, 500: 1.3}),
    ("R11", "lsqr j=4", "lsqr j=1", "<=", {100: 4, 200: 4, 500: 4}),
    ("R12", "LAPACK gelsy", "lsqr", ">=", {100: 1.2, 200: 1.2, 500: 1.2}),
)
POWER_BOUNDS = {100: 2.2, 200: 2.2, 500: 1.6}  # LAPACK's QR over auto, j = 4


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


def print_table(title, contenders, times, errors):
    """Print, for each kappa, times and errors."""
    print(f"\n{title}")
    heads = "".join(f"{f'kappa {kappa:.0e}':>20}" for kappa in errors)
    print(f"  {'':20}{heads}")
    for name in contenders:
        cells = "".join(
            f"{times[kappa][name]:9.3f} s{errors[kappa][name]:9.0e}"
            if name in errors[kappa]
            else f"{'no':>20}"
            for kappa in errors
        )
        print(f"  {name:20}{cells}")


def judged(times, errors, kappa, most, passes=0.0):
    """Return the ratio of "auto" to the best that has the digits, and the bound.

    `passes` are seconds that it may take besides `most` times the best.
    """
    least = min(error for name, error in errors.items() if name not in OURS)
    least = max(least, 4 * kappa * np.finfo(float).eps)
    rivals = [
        times[name]
        for name, error in errors.items()
        if name not in OURS and error <= DIGITS * least
    ]
    if errors["auto"] > DIGITS * least:
        return np.inf, most
    return times["auto"] / min(rivals), most + passes / min(rivals)


def compare_dense(n, d, kappas, powers, repeats):
    """Print tables for least squares and the powers; return times and judgements."""
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((n, d)))[0]
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    y, noise = rng.standard_normal(d), rng.standard_normal(n)
    for _ in range(2):
        noise -= U @ (U.T @ noise)
    times, errors = ({j: {} for j in (0, *powers)} for _ in range(2))
    rows, parts = [], {}
    for kappa in kappas:
        s = np.geomspace(1, 1 / kappa, d)
        A = (U * s) @ V.T
        b = A @ y
        b += noise * (RESIDUAL * np.linalg.norm(b) / np.linalg.norm(noise))
        if not parts:
            parts, _ = race(PARTS, (A, y), repeats)
        for j in errors:  # 0 stands for least squares
            x = V @ (s ** (-2 * j) * (V.T @ y)) if j else y
            if j:
                taken, answers = race(POWER_CONTENDERS, (A, y, j), repeats)
            else:
                taken, answers = race(LSTSQ_CONTENDERS, (A, b), repeats)
            times[j][kappa], errors[j][kappa] = taken, distances(answers, x)
        ratio, bound = judged(
            times[0][kappa], errors[0][kappa], kappa, 1.5, 2 * parts["two passes"]
        )
        rows.append(
            (f"lstsq over the best, {n} x {d}, {kappa:.0e}", ratio, "<=", bound)
        )
    last = max(powers)
    if kappa in times[last] and d in POWER_BOUNDS and kappa == 1e8:
        taken, off = times[last][kappa], errors[last][kappa]
        what = f"even_power j={last}, {n} x {d}, {kappa:.0e}: QR over auto"
        rows.append((what, taken["LAPACK QR"] / taken["auto"], ">=", POWER_BOUNDS[d]))
        what = "  its error over that of QR"
        rows.append((what, off["auto"] / off["LAPACK QR"], "<=", DIGITS))
    for j in errors:
        title = f"(A^T A)^{j} x = b" if j else "min |A x - b|"
        title = f"{title}, {n} x {d}: CPU seconds and error of x"
        contenders = POWER_CONTENDERS if j else LSTSQ_CONTENDERS
        print_table(title, contenders, times[j], errors[j])
    flat = {
        f"{name} j={j}" if j else name: seconds
        for j in times
        for name, seconds in times[j][kappas[0]].items()
    }
    for number, above, below, sign, bounds in TARGETS:
        of = parts | flat
        if d in bounds and {above, below} <= of.keys():
            what = f"{number}: {above} / {below}, {n} x {d}"
            rows.append((what, of[above] / of[below], sign, bounds[d]))
    return rows


def twins(n, d, entries, kappa, rng):
    """Return a sparse matrix whose columns come in pairs, with entries in each row.

    The columns of a pair have the same places, and differ by a share of their norm:
    from all of it down to 1 / kappa.
    """
    half = entries // 2
    places = np.repeat(np.arange(n), half), rng.integers(d // 2, size=half * n)
    first, second = (
        csr_array((rng.standard_normal(half * n), places), shape=(n, d // 2))
        for _ in range(2)
    )
    second.data *= np.geomspace(1, 1 / kappa, d // 2)[second.indices]
    return csr_array(hstack([first, first + second]))


def compare_sparse(n, d, entries, kappas, repeats):
    """Print a table for least squares with sparse A; return the judgements."""
    rng = np.random.default_rng(0)
    x, times, errors, rows = rng.standard_normal(d), {}, {}, []
    for kappa in kappas:
        A = twins(n, d, entries, kappa, rng)
        times[kappa], answers = race(SPARSE_CONTENDERS, (A, A @ x), repeats)
        errors[kappa] = distances(answers, x)
        ratio, bound = judged(times[kappa], errors[kappa], kappa, 2)
        what = f"sparse lstsq over the best, {n} x {d}, {kappa:.0e}"
        rows.append((what, ratio, "<=", bound))
    title = f"min |A x - b|, {n} x {d} sparse, {entries} entries a row"
    print_table(title, SPARSE_CONTENDERS, times, errors)
    return rows


def count_steps(n, d):
    """Return the steps of a solve to 1e-10, the paper's and ours; inf if it fails."""
    A = np.random.default_rng(0).standard_normal((n, d)) * np.geomspace(1, 1e-3, d)
    Y = np.random.default_rng(1).standard_normal((d, 1))
    rows = []
    for what, run, oversampling, sign, bound in (
        ("paper, 20 d rows", paper.fast_psd_regression, 20, ">=", np.inf),
        ("paper, 100 d rows", paper.fast_psd_regression, 100, "<=", 45),
        ("conjugate gradients, 12 d rows", conjugate_gradients, 12, "<=", 22),
    ):
        R = Preconditioner.from_matrix(
            A, oversampling=oversampling, refine=False, rng=0
        )
        try:
            taken = run(A, Y, R, 1e-10)[1]
        except np.linalg.LinAlgError:
            taken = np.inf
        rows.append((f"R13: steps of {what}", taken, sign, bound))
    return rows


def print_targets(rows):
    """Print the ratios for which there is a target, and whether it is met."""
    print("\nTargets, set for n of 2^16 and more")
    for what, value, sign, bound in rows:
        met = value <= bound if sign == "<=" else value >= bound
        verdict = "met" if met else "MISSED"
        print(f"  {what:58}{value:7.2f} {sign} {bound:<7.3g}{verdict}")


def dense_size(text):
    """Read "16x100" as 2^16 x 100."""
    exponent, d = map(int, text.split("x"))
    return 2**exponent, d


def main():
    """Compare on dense matrices, then on sparse ones, then judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--sizes", nargs="*", help='"16x100" for 2^16 x 100')
    parser.add_argument("--kappas", nargs="+", type=float, default=KAPPAS)
    parser.add_argument("--powers", nargs="+", type=int, default=(1, 4))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sparse", nargs="*", help='"1000x10x2": 2 entries a row')
    options = parser.parse_args()
    default = QUICK if options.quick else {"sizes": SIZES, "sparse": SPARSE}
    sizes = default["sizes"] if options.sizes is None else options.sizes
    sparse = default["sparse"] if options.sparse is None else options.sparse
    rows = []
    for n, d in map(dense_size, sizes):
        rows += compare_dense(n, d, options.kappas, options.powers, options.repeats)
    for text in sparse:
        n, d, entries = map(int, text.split("x"))
        rows += compare_sparse(n, d, entries, SPARSE_KAPPAS, options.repeats)
    print_targets(rows + count_steps(2**14, 100))


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # the powers are ill-conditioned
        main()
