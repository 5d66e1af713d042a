"""Small wrongs that the tests have to notice: ``make mutants``.

Each is one edit of one file. It is made in a temporary copy of the checkout, where the
tests of that file run, and the whole suite if these notice nothing; all without data.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "_build", "build", "executed")


class Mutant(NamedTuple):
    """One edit: `old`, which stands in `file` once, becomes `new`.

    The file is named without ``simlib/`` or ``book/``, and ``.py``. Unless said
    otherwise its tests are those of its name; several modules are parted by blanks.
    """

    what: str
    file: str
    old: str
    new: str
    tests: str = ""

    @property
    def path(self) -> str:
        """The file, seen from the root."""
        of_the_book = self.file.startswith(("claims/", "press/", "study/"))
        return f"{'book' if of_the_book else 'simlib'}/{self.file}.py"

    @property
    def modules(self) -> list[str]:
        """The test modules that should notice, seen from the root."""
        names = self.tests or Path(self.file).name
        found = {path.stem: path for path in (ROOT / "tests").rglob("test_*.py")}
        return [
            found[f"test_{name}"].relative_to(ROOT).as_posix() for name in names.split()
        ]

    def mutated(self, root: Path = ROOT) -> str:
        """Return the text of the file with the edit, or raise if there is no place."""
        text = (root / self.path).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.path} has {text.count(self.old)} places for the mutant "
                f"{self.what!r}; it needs exactly one: {self.old!r}"
            )
        return text.replace(self.old, self.new)


MUTANTS = [
    # The question
    Mutant(
        "the two orders of a pair are remembered apart",
        "similarity/known",
        "i, j = np.minimum(i, j), np.maximum(i, j)",
        "pass",
        tests="similarity",
    ),
    Mutant(
        "the diagonal inside known columns is not told",
        "similarity/known",
        "new &= ~whole[i] | (i <= j)",
        "new &= ~whole[i] | (i < j)",
        tests="similarity",
    ),
    Mutant(
        "what an attempt that failed leaves is kept for ever",
        "similarity/known",
        "if again:",
        "if False:",
        tests="similarity",
    ),
    Mutant(
        "every evaluation counts twice",
        "similarity/budget",
        "self._got = calls + values, over + size - failed",
        "self._got = calls + 2 * values, over + size - failed",
        tests="similarity",
    ),
    Mutant(
        "a request may pass the limit by one",
        "similarity/budget",
        "if needed > budget.remaining:",
        "if needed > budget.remaining + 1:",
        tests="similarity",
    ),
    Mutant(
        "a fork spends from the same counter",
        "similarity/similarity",
        "fork._ledger = Ledger(limit)",
        "fork._ledger.limit = limit",
    ),
    Mutant(
        "a matrix of float32 becomes one of float64",
        "similarity/similarity",
        "np.float32 if K.dtype == np.float32 else np.float64",
        "np.float64",
    ),
    Mutant(
        "what is not quite symmetric passes for symmetric",
        "similarity/similarity",
        "gap <= 100 * np.finfo(dtype).eps * scale",
        "gap <= 1e12 * np.finfo(dtype).eps * scale",
    ),
    Mutant(
        "pairs are checked in the order in which they were asked",
        "similarity/symmetry",
        "Request(j[some], i[some], ()",
        "Request(i[some], j[some], ()",
        tests="similarity",
    ),
    Mutant(
        "a triangle passes for a matrix",
        "similarity/similarity",
        "lower = lower and not np.triu(rows, k + 1).any()",
        "lower = False",
    ),
    Mutant(
        "a file is asked in any order",
        "similarity/items",
        "return items[index][at]",
        "return items[index]",
        tests="similarity",
    ),
    Mutant(
        "each coroutine has a loop of its own",
        "similarity/call",
        "if loop is None:",
        "if True:",
        tests="similarity",
    ),
    Mutant(
        "a diagonal that is known cuts a block into rows",
        "similarity/requests",
        "if self.symmetric or self.fresh:",
        "if True:",
        tests="similarity",
    ),
    # Landmarks
    Mutant(
        "the second sample is drawn apart from the landmarks",
        "landmarks",
        "other = order if nested else rng.permutation(n)",
        "other = rng.permutation(n)",
    ),
    Mutant(
        "adaptive sampling does not look at what is explained",
        "landmarks",
        "residual -= np.outer(direction, direction @ residual)",
        "pass",
    ),
    # The methods of system 1
    Mutant(
        "pairs of landmarks count twice",
        "approximation/plan",
        "count = n * lines.size - lines.size * (lines.size - 1) // 2",
        "count = n * lines.size",
        tests="plan methods",
    ),
    Mutant(
        "the largest number within a budget is one too few",
        "approximation/plan",
        "cost(middle) <= calls else",
        "cost(middle) < calls else",
        tests="plan methods",
    ),
    Mutant(
        "the pseudo-inverse cuts float32 at the rounding of float64",
        "approximation/nystrom",
        "rcond = smallest_inverted(W.dtype)",
        "rcond = smallest_inverted(float)",
        tests="methods",
    ),
    Mutant(
        "a positive definite block is shifted all the same",
        "approximation/sms",
        "if smallest >= -len(block) * eps * np.abs(block).max():",
        "if False:",
    ),
    Mutant(
        "the shift goes without its safety factor",
        "approximation/sms",
        '(alpha if shift == "submatrix" else 1.0)',
        "1.0",
    ),
    Mutant(
        "the terms of StaCUR are summed and not scaled",
        "approximation/cur",
        "core = (sim.n / S2.size) * pinv(",
        "core = pinv(",
    ),
    Mutant(
        "cross-validation counts the diagonal",
        "approximation/fit",
        "errors *= rows[:, None] != columns",
        "pass",
        tests="tikhonov methods",
    ),
    Mutant(
        "answers far larger than the matrix stay among the ridges",
        "approximation/fit",
        "good = squares <= 4 * square",
        "good = squares < np.inf",
        tests="tikhonov methods",
    ),
    Mutant(
        "a block in float32 is inverted down to the rounding of float64",
        "approximation/fit",
        "keep = sigma > sigma[:1] * smallest_inverted(dtype)",
        "keep = sigma > sigma[:1] * smallest_inverted(float)",
        tests="methods",
    ),
    Mutant(
        "the diagonal that the nugget reads is not in the price",
        "approximation/plan",
        "return count + (n - met if self.diagonal else 0)",
        "return count",
        tests="methods tikhonov",
    ),
    Mutant(
        "nugget and overlay both mend the diagonal of the block",
        "approximation/tikhonov",
        "missed[S2] = 0",
        "pass",
    ),
    Mutant(
        "every proposal of a block is accepted",
        "approximation/rpcholesky",
        "weights[proposals] * rng.random(block_size)",
        "np.zeros(block_size)",
    ),
    Mutant(
        "rounding in float32 counts as information",
        "approximation/rpcholesky",
        "eps = np.finfo(np.float32 if single else self.sim.dtype).eps",
        "eps = np.finfo(float).eps",
    ),
    # How far off
    Mutant(
        "an interval leaves its whole doubt on one side",
        "approximation/error_estimate",
        "scipy.stats.t.ppf((1 + confidence) / 2, freedom)",
        "scipy.stats.t.ppf(confidence, freedom)",
    ),
    Mutant(
        "the interval takes the root of the error for the error",
        "approximation/error_estimate",
        "/ total.error.sum() / 2",
        "/ total.error.sum()",
    ),
    Mutant(
        "a sampled pair does not stand for its stratum",
        "approximation/sampling_design",
        "return scale * self.sizes / np.maximum(self.numbers, 1)",
        "return scale * np.ones(self.sizes.size)",
        tests="error_estimate",
    ),
    Mutant(
        "strata do not share their variance",
        "approximation/sampling_design",
        "left_out * np.maximum(own, shared)",
        "left_out * own",
        tests="error_estimate",
    ),
    # The answer
    Mutant(
        "an embedding forgets its signs",
        "lowrank/lowrank",
        "signs = np.where(values < 0, -1, 1)",
        "signs = np.ones(values.size)",
    ),
    Mutant(
        "new items are embedded with the columns in another order",
        "lowrank/lowrank",
        "return columns @ transform",
        "return columns[:, ::-1] @ transform",
    ),
    Mutant(
        "a decomposition forgets the blocks before",
        "lowrank/tall",
        "V, rows = np.split(block @ V, [len(above[k])])",
        "_, rows = np.split(block @ V, [len(above[k])])",
    ),
    Mutant(
        "eigenvectors are written beside their place",
        "lowrank/tall",
        "yield parts[k], rows",
        "yield parts[-1 - k], rows",
    ),
    Mutant(
        "a changed byte is not noticed",
        "lowrank/saved",
        'if mode is None and _checksum(path) != listed.get("crc32"):',
        "if False:",
    ),
    Mutant(
        "what was there is lost if saving is stopped",
        "lowrank/saved",
        "if old.exists() and not folder.exists():",
        "if False:",
    ),
    Mutant(
        "a saved calibration is forgotten",
        "approximation/anchored",
        'if own["knots"] is not None:',
        "if False:",
        tests="saved",
    ),
    Mutant(
        "singular values are inverted down to rounding",
        "approximation/fit",
        "return float(np.sqrt(np.finfo(dtype).eps))",
        "return float(np.finfo(dtype).eps)",
        tests="methods",
    ),
    Mutant(
        "no step of refinement follows the inversion lemma",
        "lowrank/lowrank",
        "for _ in range(REFINEMENTS):",
        "for _ in range(1):",
    ),
    Mutant(
        "a small right-hand side is refined as its large neighbour is",
        "lowrank/lowrank",
        "y = np.ldexp(y, -sizes)",
        "sizes = 0 * sizes",
    ),
    Mutant(
        "what does not solve a system is returned",
        "lowrank/lowrank",
        "if not norm(missed) <= UNSOLVED * norm(y):",
        "if False:",
    ),
    Mutant(
        "the transpose keeps the residual as it is",
        "lowrank/lowrank",
        '"residual": None if self.residual is None else self.residual.T',
        '"residual": self.residual',
    ),
    Mutant(
        "an estimator does not pass its seed on",
        "approximation/estimators",
        "rng=np.random.default_rng(seed),",
        "rng=np.random.default_rng(0),",
    ),
    # System 2
    Mutant(
        "sparse signs are not scaled",
        "regression/sketch",
        "shape=(m, n)), k**-0.5",
        "shape=(m, n)), 1.0",
    ),
    Mutant(
        "the Hadamard sketch is scaled by its other side",
        "regression/sketch",
        "result *= self.shape[0] ** -0.5",
        "result *= self.shape[1] ** -0.5",
    ),
    Mutant(
        "a preconditioner is never refined",
        "regression/preconditioner",
        "return sketched.refined(A) if refine and distortion else sketched",
        "return sketched",
    ),
    Mutant(
        "refining sees the last block alone",
        "regression/preconditioner",
        "W += Q.T @ Q",
        "W = Q.T @ Q",
    ),
    Mutant(
        "a preconditioner ignores its seed",
        "regression/preconditioner",
        "seed = int(np.random.default_rng(rng).integers(2**63))",
        "seed = 0",
    ),
    Mutant(
        "dependent columns pass",
        "regression/preconditioner",
        "if rank < len(R):",
        "if False:",
    ),
    Mutant(
        "a power is one solve short",
        "regression/systems",
        "for k in range(len(problem)):",
        "for k in range(len(problem) - (problem.j > 1)):",
        tests="powers",
    ),
    Mutant(
        "the ridge is not scaled with the kernel",
        "regression/attention",
        "ridge = self.ridge * np.exp(-squares)",
        "ridge = self.ridge * np.ones_like(squares)",
    ),
    # System 3
    Mutant(
        "a corner has half the area of its triangle",
        "biharmonic/operator",
        "np.repeat(double / 6, 3)",
        "np.repeat(double / 4, 3)",
    ),
    Mutant(
        "the perplexity may be that of all neighbours",
        "biharmonic/neighbors",
        "0.99 * sizes",
        "sizes",
    ),
    Mutant(
        "sparse rows are not renormalised",
        "biharmonic/interpolation",
        "P.data /= np.repeat(sums, np.diff(P.indptr))",
        "np.repeat(sums, np.diff(P.indptr))",
    ),
    Mutant(
        "the largest entries of a column are those without a sign",
        "biharmonic/interpolation",
        "top = np.argpartition(-abs(block), nnz - 1, axis=0)[:nnz]",
        "top = np.argpartition(-block, nnz - 1, axis=0)[:nnz]",
    ),
    # Data
    Mutant(
        "the hash of a file on disk is not looked at",
        "study/datasets/registry",
        '!= known[file].sha256 != "":',
        "is None:",
        tests="datasets",
    ),
    Mutant(
        "the hash of a converted file is not looked at",
        "study/datasets/fetch",
        '!= file.sha256 != "":',
        "is None:",
        tests="datasets",
    ),
    Mutant(
        "the split of a corpus is another each time",
        "study/datasets/corpora",
        "np.random.default_rng(SEED).permutation(len(records))",
        "np.random.default_rng().permutation(len(records))",
        tests="datasets",
    ),
    # The press
    Mutant(
        "a notebook is up to date whatever the parameters of the profile",
        "press/inputs",
        '"parameters": _differing(then.parameters, now.parameters)',
        '"parameters": []',
        "press",
    ),
    Mutant(
        "a notebook is up to date on every Python",
        "press/inputs",
        '["Python"] * (then.python != now.python)',
        "[]",
        "press",
    ),
    Mutant(
        "a confirmation outlives the code that it is of",
        "press/confirmation",
        'if found and found["key"] == _key(now) and "data" not in changed:',
        "if found:",
        "confirmation",
    ),
    Mutant(
        "a confirmation compares with the record before",
        "press/confirmation",
        "if deviation > rtol:",
        "if deviation > 10 * rtol:",
        "confirmation",
    ),
    Mutant(
        "what the full run alone reaches is confirmed",
        "press/confirmation",
        "for unit in _ran(record) ^ _ran(probe)",
        "for unit in _ran(record) & set()",
        "confirmation",
    ),
    Mutant(
        "a block that no run has seen is confirmed",
        "press/confirmation",
        'if hash.startswith("-") and (path, hash[1:]) not in known',
        "if False",
        "confirmation",
    ),
    Mutant(
        "a value that decides is not counted",
        "press/code",
        'if name.removeprefix("<") in seen | anywhere:',
        "if False:",
        "press",
    ),
    Mutant(
        "every recorded result has the same commit",
        "press/recording",
        '{name: noted[name] for name in NOTED} | noted["inputs"]',
        'dict.fromkeys(NOTED, "0" * 40) | noted["inputs"]',
        "press",
    ),
    Mutant(
        "a file is written in place",
        "press/repository",
        """        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
""",
        """        path.write_text(text, encoding="utf-8")
""",
        "press",
    ),
    Mutant(
        "a notebook is stored whatever changed while it ran",
        "press/job",
        "        if torn:",
        "        if False:",
        "press",
    ),
    Mutant(
        "a press does not wait for another",
        "press/execution",
        "        return lock.acquire()\n",
        "        return open(path)\n",
        "press",
    ),
    # The cut-off, one pass for two products, the bound of the pairs, the claims
    Mutant(
        "the cut-off is judged by the diagonal, too",
        "approximation/nystrom",
        "        np.fill_diagonal(error, 0)\n",
        "",
        "nystrom",
    ),
    Mutant(
        "a cut-off may blow the answer up",
        "approximation/nystrom",
        "np.flatnonzero(squares <= 4 * norm)",
        "range(cutoffs.size)",
        "nystrom",
    ),
    Mutant(
        "every block is taken from the first rows of b",
        "regression/rows",
        "            start += len(gap)\n",
        "",
        "gram",
    ),
    Mutant(
        "so few hits are taken for as likely as this very number",
        "neighbors/pairs",
        "hypergeom.cdf(x, U, middle, s)",
        "hypergeom.pmf(x, U, middle, s)",
        "similar_pairs",
    ),
    Mutant(
        "a claim that holds in one case holds",
        "claims/verdicts",
        "        if all(self.cases):",
        "        if any(self.cases):",
        "claims",
    ),
    Mutant(
        "a run that came to nothing counts as the best",
        "claims/verdicts",
        "math.inf if v is None",
        "-math.inf if v is None",
        "claims",
    ),
    Mutant(
        "sparse least squares are solved without the probe",
        "regression/powers",
        "if isinstance(R, ColumnScaling) and not extremes:",
        "if False:",
    ),
    Mutant(
        "loops are left in before symmetry is judged",
        "biharmonic/operator",
        "    A = A - scipy.sparse.diags_array(A.diagonal())\n    A = as_symmetric",
        "    A = as_symmetric",
    ),
    Mutant(
        "means as large as the threshold are rounded below it",
        "neighbors/clusters",
        "bounds += n * np.finfo(float).eps * np.abs(bounds)",
        "bounds += 0",
        tests="coreference",
    ),
    Mutant(
        "the sparse matrix of a graph shares its values",
        "neighbors/graph",
        "return values.copy()",
        "return values",
        tests="shared_memory",
    ),
    Mutant(
        "complete linkage joins what is no pair",
        "neighbors/clusters",
        "most - 0.5",
        "most + 0.5",
        tests="similar_pairs",
    ),
    Mutant(
        "similarities are taken for a factor",
        "approximation/anchored",
        "n > 1 and Z.shape == (n, n) and is_symmetric(Z)",
        "False",
    ),
    Mutant(
        "a diagonal that was given is stored as the function's",
        "similarity/evaluate",
        "got &= np.isnan(out[request.target])",
        "pass",
        tests="store",
    ),
    Mutant(
        "searches go by all that is known, and pay again",
        "similarity/similarity",
        "if self._informed:",
        "if True:",
        tests="runs",
    ),
    Mutant(
        "a store of another function is taken",
        "similarity/similarity",
        "DIFFERENT = 0.01",
        "DIFFERENT = 100.0",
        tests="store",
    ),
    Mutant(
        "of equal items the second is not found again",
        "similarity/identity",
        "order[earlier > 0], earlier[earlier > 0]",
        "order[earlier > 1], earlier[earlier > 1]",
        tests="store",
    ),
    Mutant(
        "the store keeps what the function may write over",
        "similarity/store",
        "values = record.values.copy()",
        "values = record.values",
    ),
    Mutant(
        "new items are placed among those of the base",
        "approximation/estimators",
        "return super().between(new_items, self._of(landmarks), others)",
        "return super().between(new_items, landmarks, others)",
        tests="neighbors_estimator",
    ),
]


def fails(root: Path, tests: Sequence[str]) -> bool:
    """Tell whether any of the tests fails; raise if they cannot be run."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-m", "not browser"]  # slow ones, too
    environment = {k: v for k, v in os.environ.items() if k != "SIMLIB_DATA"} | {
        "PYTHONPATH": f"{root}{os.pathsep}{root / 'book'}",
        "PYTHONDONTWRITEBYTECODE": "1",  # two edits of one size may fall into a second
    }
    done = subprocess.run(
        [*command, *tests], cwd=root, env=environment, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest {' '.join(tests)} does not run:\n{done.stdout}")
    return done.returncode == 1


def copy(root: Path) -> None:
    """Copy the checkout."""
    shutil.copytree(ROOT, root, ignore=LEFT_OUT, dirs_exist_ok=True)


def kill(mutant: Mutant) -> bool:
    """Tell whether a test fails on a mutant; say so."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        copy(root)
        text = mutant.mutated(root)
        (root / mutant.path).write_text(text, encoding="utf-8")
        killed = fails(root, mutant.modules) or fails(root, ["tests"])
    word = "killed  " if killed else "SURVIVED"
    print(f"{word} {mutant.path}: {mutant.what}", flush=True)
    return killed


def passes(module: str) -> bool:
    """Tell whether a test module passes as it is; say so if it does not."""
    with TemporaryDirectory() as folder:
        copy(Path(folder))
        failed = fails(Path(folder), [module])
    if failed:
        print(f"FAILS    {module} without any mutant", flush=True)
    return not failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants whose file or description holds one of some words, or all."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("words", nargs="*", help="parts of a file or a description")
    parser.add_argument("-j", type=int, default=os.cpu_count(), help="side by side")
    options = parser.parse_args(arguments)
    chosen = [
        mutant
        for mutant in MUTANTS
        if not options.words
        or any(word in f"{mutant.path} {mutant.what}" for word in options.words)
    ]
    modules = sorted({module for mutant in chosen for module in mutant.modules})
    with ThreadPoolExecutor(options.j) as pool:
        if not all(pool.map(passes, modules)):
            return 1
        survived = len(chosen) - sum(pool.map(kill, chosen))
    print(f"{len(chosen)} mutants, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
