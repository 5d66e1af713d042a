"""Error against similarity calls, and wall time: simlib against what else there is.

Run with ``python benchmarks/approximation.py``. Every contender gets the same budget of
calls, a share of the distinct pairs, and one that evaluates a pair twice pays twice:
scikit-learn's Nystroem (a callable on indices), adaptive cross approximation with
partial pivoting, and the methods of simlib. On real matrices where the data are at
hand, else on stand-ins, which the headings call so.
"""

import argparse
import time

import numpy as np
from sklearn.kernel_approximation import Nystroem

from simlib import (
    METHODS,
    BudgetExceeded,
    LowRank,
    Similarity,
    largest,
    nystrom,
    relative_error,
)
from study import gallery

MATRICES = (
    "gaussian",
    "uniform",
    "twitter",
    "simulated",
    "stsb",
    "swiss_roll",
    "sigmoid",
    "edit",
)
BUDGETS = (0.05, 0.1, 0.2)
OURS = ("tikhonov", "nystrom", "sms_nystrom", "sicur", "rpcholesky")
SECONDS_A_CALL = 1e-4  # of the similarity that is expensive


class Entries:
    """K[i, j] as a function of two items, which counts and may take its time."""

    def __init__(self, K, seconds=0.0):
        self.K, self.seconds, self.calls = K, seconds, 0

    def __call__(self, i, j):
        end = time.perf_counter() + self.seconds
        self.calls += 1
        while time.perf_counter() < end:
            pass
        return self.K[int(np.squeeze(i)), int(np.squeeze(j))]


def asked(entries, limit):
    """A similarity of those items, every call for an entry of its own."""
    items = np.arange(len(entries.K))
    return Similarity(items, entries, limit=limit, check_symmetry=False)


def sklearn_nystroem(entries, budget, seed):
    """Nystroem with a callable on X = 0, 1, ..., n - 1, as large as the budget pays."""
    n = len(entries.K)
    s = max(s for s in range(1, n) if n * s + s * (s + 1) // 2 <= budget)
    X = np.arange(n, dtype=float)[:, None]
    map_ = Nystroem(entries, n_components=s, random_state=seed)
    Z = map_.fit_transform(X)
    return LowRank(Z, np.eye(s), landmarks=map_.component_indices_)


def cross_approximation(entries, budget, seed):
    """Adaptive cross approximation: rows and columns of the residual, in turn.

    The next column is where the row is largest, the next row where the column is. Its
    entries pass through a Similarity, so it pays once for a pair that it meets twice.
    """
    sim = asked(entries, budget)
    rng = np.random.default_rng(seed)
    unused = np.ones(sim.n, dtype=bool)
    left, right = np.zeros((2, sim.n, 0))
    i = rng.integers(sim.n)
    try:
        while unused.any():
            unused[i] = False
            row = sim.rows([i])[0] - right @ left[i]
            j = np.argmax(np.abs(row))
            if abs(row[j]) < 1e-13 * np.abs(sim.rows([i])).max():
                i = rng.choice(np.flatnonzero(unused))
                continue
            column = (sim.columns([j])[:, 0] - left @ right[j]) / row[j]
            left, right = np.c_[left, column], np.c_[right, row]
            i = np.argmax(np.where(unused, np.abs(column), -1))
    except BudgetExceeded:
        pass
    return LowRank(left, np.eye(left.shape[1]), right)


def simlib_method(name):
    def run(entries, budget, seed):
        sim = asked(entries, budget)
        return METHODS[name].function(sim, largest(name, sim.n, budget), rng=seed)

    return run


CONTENDERS = {
    **{name: simlib_method(name) for name in OURS},
    "sklearn Nystroem": sklearn_nystroem,
    "ACA": cross_approximation,
}


def measure(K, contender, share, seeds):
    """Return the median error, and of the calls their median share of the pairs."""
    pairs = len(K) * (len(K) + 1) // 2
    errors, calls = [], []
    for seed in range(seeds):
        entries = Entries(K)
        try:
            answer = contender(entries, int(share * pairs), seed)
            errors.append(relative_error(K, answer))
        except np.linalg.LinAlgError:
            errors.append(np.inf)  # rpcholesky, on a matrix that is not semidefinite
        assert entries.calls <= share * pairs
        calls.append(entries.calls / pairs)
    return np.median(errors), np.median(calls)


def compare_errors(names, n, seeds):
    """Print a table for each matrix, and the ratios over all of them."""
    ratios = {name: [] for name in CONTENDERS}
    for name in names:
        example = gallery.load(name, n)
        K = example.matrix
        print(f"\n{example.title}, n = {len(K)}; {example.source}")
        print("  calls / pairs     " + "".join(f"{b:>12}" for b in BUDGETS))
        reference = {}
        for contender, run in CONTENDERS.items():
            cells = ""
            for share in BUDGETS:
                error, calls = measure(K, run, share, seeds)
                reference.setdefault(share, error)
                refused = not np.isfinite(error)
                cells += f"{f'no ({calls:.3f})' if refused else f'{error:.4f}':>12}"
                if not refused:
                    ratios[contender].append(error / reference[share])
            print(f"  {contender:18}{cells}")
    print(f"\nError over that of {OURS[0]} at the same calls, all matrices and budgets")
    print("                      geo. mean    best   worst   cells below 1")
    for contender, values in ratios.items():
        values = np.array(values)
        print(
            f"  {contender:18}{np.exp(np.log(values).mean()):12.2f}{values.min():9.2f}"
            f"{values.max():9.3g}{(values < 0.995).sum():7} of {values.size}"
        )
    print('  "no (x)": refused as indefinite (most seeds), after a share x of pairs')


def compare_times(K, share, repeats):
    """Print wall times at the same calls, alternately, as ratios to the first."""
    budget = int(share * len(K) * (len(K) + 1) // 2)
    print(f"\nWall time at {budget} calls, n = {len(K)}: median of {repeats}")
    for seconds in (0.0, SECONDS_A_CALL):
        times = {name: [] for name in CONTENDERS}
        calls = {}
        for seed in range(repeats):
            for name, run in CONTENDERS.items():
                entries = Entries(K, seconds)
                start = time.perf_counter()
                run(entries, budget, seed)
                times[name].append(time.perf_counter() - start)
                calls[name] = entries.calls
        first = np.median(times[OURS[0]])
        print(f"  a call that takes {1e6 * seconds:.0f} us more than a look-up")
        for name, values in times.items():
            median = np.median(values)
            print(
                f"    {name:18}{median:8.3f} s  x{median / first:.2f}"
                f"{calls[name]:9} calls"
            )


def sklearn_on_an_indefinite_matrix(n, s):
    """Print what scikit-learn returns there, and what it evaluates."""
    K = gallery.load("simulated", n).matrix
    entries = Entries(K)
    map_ = Nystroem(entries, n_components=s, random_state=0)
    Z = map_.fit_transform(np.arange(n, dtype=float)[:, None])
    S = map_.component_indices_
    C, W = K[:, S], K[np.ix_(S, S)]
    values, Q = np.linalg.eigh(W)
    absolute = C @ (Q / np.abs(values)) @ Q.T @ C.T
    signed = C @ (Q / values) @ Q.T @ C.T
    sim = Similarity(np.arange(n), Entries(K))
    ours = nystrom(sim, landmarks=S)

    def gap(A, B):
        return np.linalg.norm(A - B) / np.linalg.norm(B)

    theirs, ours = Z @ Z.T, ours.toarray()
    print(f"A cross-encoder's spectrum, n = {n}, the same s = {s} landmarks")
    print(f"  {(values < 0).sum()} of the {s} eigenvalues of W are negative")
    print(f"  sklearn Z Z^T  against C abs(W)^-1 C^T: {gap(theirs, absolute):.1e}")
    print(f"                 against C W^-1 C^T:      {gap(theirs, signed):.1e}")
    print(f"  simlib.nystrom against C W^-1 C^T:      {gap(ours, signed):.1e}")
    print(f"  errors: sklearn {gap(theirs, K):.3g}, simlib.nystrom {gap(ours, K):.3g}")
    twice, once = n * s + s * (s + 1) // 2, n * s - s * (s - 1) // 2
    print(f"  sklearn evaluates {entries.calls} pairs: n s + s (s + 1) / 2 = {twice}")
    print(f"  simlib  evaluates {sim.calls} pairs: n s - s (s - 1) / 2 = {once}")


def main():
    """Compare what scikit-learn computes, then errors, then times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=500, help="items of each matrix")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--matrices", nargs="+", default=MATRICES)
    options = parser.parse_args()
    sklearn_on_an_indefinite_matrix(options.n, options.n // 10)
    compare_errors(options.matrices, options.n, options.seeds)
    K = gallery.load("gaussian", options.n).matrix  # that no contender refuses
    compare_times(K, 0.1, 3)


if __name__ == "__main__":
    main()
