"""Small wrongs that the tests have to notice: ``make mutants``.

Each is one edit of one function, wherever that stands. It is made in a temporary copy
of the checkout, where the tests of the function's package run, and the whole suite if
these notice nothing; all without data.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("simlib", "book/claims", "book/press", "book/study")
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "_build", "build", "executed")


class Place(NamedTuple):
    """Where something stands: a file seen from the root, and its lines from 0."""

    path: Path
    start: int
    stop: int


class Mutant(NamedTuple):
    """One edit: `old`, which stands in the source of `where` once, becomes `new`.

    `where` is the qualified name of a function, a class or a constant, with its package
    before it where two have one name (``lowrank/_write``). For a blank in `old` the
    source may have several, and line breaks. The tests are those of the package's
    folder and, looked at first, of the folders in `tests`.
    """

    what: str
    where: str
    old: str
    new: str
    tests: str = ""

    @property
    def place(self) -> Place:
        """The one place of this name."""
        package, _, name = self.where.rpartition("/")
        found = [
            place
            for place in places(ROOT).get(name, [])
            if package in ("", *place.path.parts)
        ]
        if len(found) != 1:
            at = ", ".join(str(place.path) for place in found) or "nowhere"
            raise ValueError(
                f"the mutant {self.what!r} has lost its place: {self.where} has to "
                f"stand once, and stands {at}"
            )
        return found[0]

    @property
    def folders(self) -> list[str]:
        """The tests that should notice: folders, or the module, seen from the root."""
        path = self.place.path
        if path.parts[:-1] == ("simlib",):
            return [f"tests/test_{path.name}"]
        return [f"tests/{name}" for name in [*self.tests.split(), path.parts[1]]]

    @property
    def looked_at(self) -> list[str]:
        """The tests to run one after the other: of the module, the folders, and all."""
        near = f"{self.folders[-1]}/test_{self.place.path.name}"
        return [near] * (ROOT / near).is_file() + [*self.folders, "tests"]

    def is_meant(self, words: Sequence[str]) -> bool:
        """Tell whether its file, name or description holds one of the words."""
        said = f"{self.place.path} {self.where} {self.what}"
        return not words or any(word in said for word in words)

    def mutated(self) -> str:
        """Return the text of the file with the edit, or raise if there is no place."""
        path, start, stop = self.place
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines(keepends=True)
        old = r"\s+".join(map(re.escape, self.old.split()))
        text, count = re.subn(old, lambda _: self.new, "".join(lines[start:stop]))
        if count != 1:
            raise ValueError(
                f"the mutant {self.what!r} has lost its place: {self.where} in {path} "
                f"has to hold {self.old!r} once, and holds it {count} times"
            )
        return "".join([*lines[:start], text, *lines[stop:]])


@cache
def places(root: Path) -> dict[str, list[Place]]:
    """Return where each function, class and constant of the packages stands."""
    found: dict[str, list[Place]] = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for name, node in named(tree):
                place = Place(path.relative_to(root), node.lineno - 1, node.end_lineno)
                found.setdefault(name, []).append(place)
    return found


def named(scope: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Yield what a module or a class defines, with qualified names."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield prefix + node.targets[0].id, node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from named(node, f"{prefix}{node.name}.")


MUTANTS = [
    # The question
    Mutant(
        "the two orders of a pair are remembered apart",
        "Known.keys",
        "i, j = np.minimum(i, j), np.maximum(i, j)",
        "pass",
    ),
    Mutant(
        "the diagonal inside known columns is not told",
        "Known._listed",
        "new &= ~whole[i] | (i <= j)",
        "new &= ~whole[i] | (i < j)",
    ),
    Mutant(
        "what an attempt that failed leaves is kept for ever",
        "Lines.add",
        "if again:",
        "if False:",
    ),
    Mutant(
        "every evaluation counts twice",
        "Budget.answered",
        "self._got = calls + values, over + size - failed",
        "self._got = calls + 2 * values, over + size - failed",
    ),
    Mutant(
        "a request may pass the limit by one",
        "check_budget",
        "if needed > budget.remaining:",
        "if needed > budget.remaining + 1:",
    ),
    Mutant(
        "a fork spends from the same counter",
        "Similarity.fork",
        "fork._budget = Budget(limit)",
        "fork._budget.limit = limit",
    ),
    Mutant(
        "a matrix of float32 becomes one of float64",
        "Similarity.from_matrix",
        "np.float32 if K.dtype == np.float32 else np.float64",
        "np.float64",
    ),
    Mutant(
        "what is not quite symmetric passes for symmetric",
        "given_matrix",
        "gap <= 100 * eps * scale",
        "gap <= 1e12 * eps * scale",
    ),
    Mutant(
        "pairs are checked in the order in which they were asked",
        "SymmetryCheck.see",
        "Request(j[some], i[some], ()",
        "Request(i[some], j[some], ()",
    ),
    Mutant(
        "a triangle passes for a matrix",
        "_is_triangle",
        "lower = lower and not np.triu(rows, k + 1).any()",
        "lower = False",
    ),
    Mutant(
        "a file is asked in any order",
        "_rows_of_array",
        "return items[index][at]",
        "return items[index]",
    ),
    Mutant(
        "each coroutine has a loop of its own",
        "_awaited",
        "if loop is None:",
        "if True:",
    ),
    Mutant(
        "a diagonal that is known cuts a block into rows",
        "Rectangle._known_again",
        "if self.symmetric or self.fresh:",
        "if True:",
    ),
    # Landmarks
    Mutant(
        "the second sample is drawn apart from the landmarks",
        "draw",
        "other = order if nested else rng.permutation(n)",
        "other = rng.permutation(n)",
    ),
    Mutant(
        "adaptive sampling does not look at what is explained",
        "adaptive",
        "residual -= np.outer(direction, direction @ residual)",
        "pass",
    ),
    # The methods of system 1
    Mutant(
        "pairs of landmarks count twice",
        "Region.__len__",
        "// (2 if self._symmetric else 1)",
        "// 1",
        tests="approximation",
    ),
    Mutant(
        "the largest number within a budget is one too few",
        "largest",
        "cost(s) <= calls)",
        "cost(s) < calls)",
    ),
    Mutant(
        "the pseudo-inverse cuts float32 at the rounding of float64",
        "pinv",
        "rcond = smallest_inverted(W.dtype)",
        "rcond = smallest_inverted(float)",
    ),
    Mutant(
        "a positive definite block is shifted all the same",
        "_shift",
        "if smallest >= -len(block) * eps * np.abs(block).max():",
        "if False:",
    ),
    Mutant(
        "the shift goes without its safety factor",
        "_shift",
        '(alpha if shift == "submatrix" else 1.0)',
        "1.0",
    ),
    Mutant(
        "the terms of StaCUR are summed and not scaled",
        "stacur",
        "core = (sim.n / S2.size) * pinv(",
        "core = pinv(",
    ),
    Mutant(
        "cross-validation counts the diagonal",
        "_squared_errors",
        "errors *= rows[:, None] != columns",
        "pass",
    ),
    Mutant(
        "answers far larger than the matrix stay among the ridges",
        "Problem.ridges",
        "squares <= TOO_LARGE**2 * square",
        "squares < np.inf",
    ),
    Mutant(
        "a block in float32 is inverted down to the rounding of float64",
        "_Factor.of",
        "keep = sigma > sigma[:1] * smallest_inverted(dtype)",
        "keep = sigma > sigma[:1] * smallest_inverted(float)",
    ),
    Mutant(
        "the diagonal that the nugget reads is not in the price",
        "Plan.cost",
        "+ (0 if diagonal_known else apart)",
        "",
    ),
    Mutant(
        "nugget and overlay both mend the diagonal of the block",
        "tikhonov",
        "missed[S2] = 0",
        "pass",
    ),
    Mutant(
        "every proposal of a block is accepted",
        "_PartialCholesky.draw",
        "weights[proposals] * rng.random(block_size)",
        "np.zeros(block_size)",
    ),
    Mutant(
        "rounding in float32 counts as information",
        "_Entries.eps",
        "np.finfo(np.float32 if single else self.sim.dtype).eps",
        "np.finfo(float).eps",
    ),
    # How far off
    Mutant(
        "an interval leaves its whole doubt on one side",
        "ValidationSample._deviation",
        "scipy.stats.t.ppf((1 + confidence) / 2, freedom)",
        "scipy.stats.t.ppf(confidence, freedom)",
    ),
    Mutant(
        "the interval takes the root of the error for the error",
        "ValidationSample.estimate",
        "/ total.error.sum() / 2",
        "/ total.error.sum()",
    ),
    Mutant(
        "a sampled pair does not stand for its stratum",
        "Strata.weights",
        "return scale * self.sizes / np.maximum(self.numbers, 1)",
        "return scale * np.ones(self.sizes.size)",
    ),
    Mutant(
        "strata do not share their variance",
        "Strata.variance",
        "left_out * np.maximum(own, shared)",
        "left_out * own",
    ),
    # The answer
    Mutant(
        "an embedding forgets its signs",
        "LowRank.embedding_map",
        "signs = np.where(values < 0, -1, 1)",
        "signs = np.ones(values.size)",
    ),
    Mutant(
        "new items are embedded with the columns in another order",
        "LowRank.extend",
        "return columns @ transform",
        "return columns[:, ::-1] @ transform",
    ),
    Mutant(
        "a decomposition forgets the blocks before",
        "qr",
        "V, rows = np.split(block @ V, [len(above[k])])",
        "_, rows = np.split(block @ V, [len(above[k])])",
    ),
    Mutant(
        "eigenvectors are written beside their place",
        "qr",
        "yield parts[k], rows",
        "yield parts[-1 - k], rows",
    ),
    Mutant(
        "a changed byte is not noticed",
        "_read_array",
        'if mode is None and _checksum(path) != listed.get("crc32"):',
        "if False:",
    ),
    Mutant(
        "what was there is lost if saving is stopped",
        "lowrank/_write",
        "if old.exists() and not folder.exists():",
        "if False:",
    ),
    Mutant(
        "a saved calibration is forgotten",
        "Anchored._of_parts",
        'if own["knots"] is not None:',
        "if False:",
        tests="lowrank",
    ),
    Mutant(
        "singular values are inverted down to rounding",
        "smallest_inverted",
        "return float(np.sqrt(np.finfo(dtype).eps))",
        "return float(np.finfo(dtype).eps)",
    ),
    Mutant(
        "no step of refinement follows the inversion lemma",
        "lowrank/_refined",
        "for _ in range(REFINEMENTS):",
        "for _ in range(1):",
    ),
    Mutant(
        "a small right-hand side is refined as its large neighbour is",
        "lowrank/_refined",
        "y, sizes = unit_columns(y)",
        "sizes = 0",
    ),
    Mutant(
        "what does not solve a system is returned",
        "lowrank/_refined",
        "if not norm(missed) <= UNSOLVED * norm(y):",
        "if False:",
    ),
    Mutant(
        "the transpose keeps the residual as it is",
        "LowRank._transpose",
        '"residual": None if self.residual is None else self.residual.T',
        '"residual": self.residual',
    ),
    Mutant(
        "an estimator does not pass its seed on",
        "SimilarityFeatures._fit",
        "rng=generator(self.random_state),",
        "rng=np.random.default_rng(0),",
    ),
    # System 2
    Mutant(
        "sparse signs are not scaled",
        "sparse_sign",
        "shape=(m, n)), k**-0.5",
        "shape=(m, n)), 1.0",
    ),
    Mutant(
        "the Hadamard sketch is scaled by its other side",
        "HadamardSketch._by_columns",
        "result *= self.shape[0] ** -0.5",
        "result *= self.shape[1] ** -0.5",
    ),
    Mutant(
        "a preconditioner is never refined",
        "Preconditioner.from_matrix",
        "return sketched.refined(A) if refine and distortion else sketched",
        "return sketched",
    ),
    Mutant(
        "refining sees the last block alone",
        "Preconditioner.refined",
        "W += Q.T @ Q",
        "W = Q.T @ Q",
    ),
    Mutant(
        "a preconditioner ignores its seed",
        "Preconditioner.from_matrix",
        "seed = int(np.random.default_rng(rng).integers(2**63))",
        "seed = 0",
    ),
    Mutant(
        "dependent columns pass",
        "demand_full_rank",
        "if rank < len(R):",
        "if False:",
    ),
    Mutant(
        "a power is one solve short",
        "solve_in_turn",
        "for k in range(len(problem)):",
        "for k in range(len(problem) - (problem.j > 1)):",
    ),
    Mutant(
        "the ridge is not scaled with the kernel",
        "AttentionKernelRegressor._solve",
        "ridge = self.ridge * np.exp(-squares)",
        "ridge = self.ridge * np.ones_like(squares)",
    ),
    # System 3
    Mutant(
        "a corner has half the area of its triangle",
        "mesh_laplacian",
        "np.repeat(double / 6, 3)",
        "np.repeat(double / 4, 3)",
    ),
    Mutant(
        "the perplexity may be that of all neighbours",
        "_probabilities",
        "0.99 * sizes",
        "sizes",
    ),
    Mutant(
        "sparse rows are not renormalised",
        "_renormalized",
        "P.data /= np.repeat(sums, np.diff(P.indptr))",
        "np.repeat(sums, np.diff(P.indptr))",
    ),
    Mutant(
        "the largest entries of a column are those without a sign",
        "_whole_columns",
        "top = np.argpartition(-abs(block), nnz - 1, axis=0)[:nnz]",
        "top = np.argpartition(-block, nnz - 1, axis=0)[:nnz]",
    ),
    # Data
    Mutant(
        "the hash of a file on disk is not looked at",
        "find",
        '!= known[file].sha256 != "":',
        "is None:",
    ),
    Mutant(
        "the hash of a converted file is not looked at",
        "_download",
        '!= file.sha256 != "":',
        "is None:",
    ),
    Mutant(
        "the split of a corpus is another each time",
        "_train",
        "np.random.default_rng(SEED).permutation(len(records))",
        "np.random.default_rng().permutation(len(records))",
    ),
    # The press
    Mutant(
        "a notebook is up to date whatever the parameters of the profile",
        "changes",
        '"parameters": _differing(then.parameters, now.parameters)',
        '"parameters": []',
    ),
    Mutant(
        "a notebook is up to date on every Python",
        "changes",
        '["Python"] * (then.python != now.python)',
        "[]",
    ),
    Mutant(
        "a confirmation outlives the code that it is of",
        "standing",
        'if found and found["key"] == _key(now) and "data" not in changed:',
        "if found:",
    ),
    Mutant(
        "a confirmation compares with the record before",
        "compare",
        "if deviation > rtol:",
        "if deviation > 10 * rtol:",
    ),
    Mutant(
        "what the full run alone reaches is confirmed",
        "unreached",
        "for unit in _ran(record) ^ _ran(probe)",
        "for unit in _ran(record) & set()",
    ),
    Mutant(
        "a block that no run has seen is confirmed",
        "unreached",
        'if hash.startswith("-") and',
        "if False and",
    ),
    Mutant(
        "a value that decides is not counted",
        "reached",
        'if name.removeprefix("<") in seen | anywhere:',
        "if False:",
    ),
    Mutant(
        "every recorded result has the same commit",
        "press/_made",
        '{name: noted[name] for name in NOTED} | noted["inputs"]',
        'dict.fromkeys(NOTED, "0" * 40) | noted["inputs"]',
    ),
    Mutant(
        "a file is written in place",
        "write_atomically",
        'temporary.write_text(text, encoding="utf-8") temporary.replace(path)',
        'path.write_text(text, encoding="utf-8")',
    ),
    Mutant(
        "a notebook is stored whatever changed while it ran",
        "Job._execute",
        "if torn:",
        "if False:",
    ),
    Mutant(
        "a press does not wait for another",
        "_only_press",
        "return lock.acquire()",
        "return open(path)",
    ),
    # The cut-off, one pass for two products, the bound of the pairs, the claims
    Mutant(
        "the cut-off is judged by the diagonal, too",
        "_cross_validated",
        "np.fill_diagonal(error, 0)",
        "pass",
    ),
    Mutant(
        "a cut-off may blow the answer up",
        "_cross_validated",
        "np.flatnonzero(squares <= TOO_LARGE**2 * norm)",
        "range(cutoffs.size)",
    ),
    Mutant(
        "every block is taken from the first rows of b",
        "gap_and_back",
        "start += len(gap)",
        "pass",
    ),
    Mutant(
        "so few hits are taken for as likely as this very number",
        "neighbors/at_most",
        "(1 + np.cumprod(ratios).sum())",
        "1",
    ),
    Mutant(
        "a claim that holds in one case holds",
        "Claim.verdict",
        "if all(self.cases):",
        "if any(self.cases):",
    ),
    Mutant(
        "a run that came to nothing counts as the best",
        "claims/median",
        "math.inf if v is None",
        "-math.inf if v is None",
    ),
    Mutant(
        "sparse least squares are solved without the probe",
        "_iterate",
        "if isinstance(R, ColumnScaling) and not extremes:",
        "if False:",
    ),
    Mutant(
        "loops are left in before symmetry is judged",
        "graph_laplacian",
        "A = A - scipy.sparse.diags_array(A.diagonal()) A = as_symmetric",
        "A = as_symmetric",
    ),
    Mutant(
        "means as large as the threshold are rounded below it",
        "average_cuts",
        "bounds += n * np.finfo(float).eps * np.abs(bounds)",
        "bounds += 0",
        tests="study",
    ),
    Mutant(
        "the sparse matrix of a graph shares its values",
        "edge_weights",
        "return values.copy()",
        "return values",
        tests="similarity",
    ),
    Mutant(
        "a pair that is paid for is drawn again",
        "unseen",
        'side="right"',
        'side="left"',
    ),
    Mutant(
        "every look may err as the first",
        "neighbors/alpha",
        "(pi * look) ** 2",
        "pi**2",
    ),
    Mutant(
        "hits in a sample teach nothing and are lost",
        "PairSearch.pay",
        "near = nearness >= least",
        "near = nearness > np.inf",
    ),
    Mutant(
        "what was found since a bound still counts as missing",
        "PairSearch.pay",
        "self.bound -= 0 if self.m else np.count_nonzero(nearness >= self.threshold)",
        "pass",
    ),
    Mutant(
        "a component that lacks a pair is taken for whole",
        "_open_groups",
        "2 * pairs < sizes * (sizes - 1)",
        "pairs < sizes - 1",
    ),
    Mutant(
        "complete linkage joins what is no pair",
        "complete_linkage",
        "most - 0.5",
        "most + 0.5",
    ),
    Mutant(
        "similarities are taken for a factor",
        "_factor",
        "n > 1 and Z.shape == (n, n) and is_symmetric(Z)",
        "False",
    ),
    Mutant(
        "a diagonal that was given is stored as the function's",
        "similarity/_keep",
        "got &= np.isnan(out[request.target])",
        "pass",
    ),
    Mutant(
        "searches go by all that is known, and pay again",
        "Similarity.run",
        "if self._informed:",
        "if True:",
    ),
    Mutant(
        "a store of another function is taken",
        "DIFFERENT",
        "DIFFERENT = 0.01",
        "DIFFERENT = 100.0",
    ),
    Mutant(
        "of equal items the second is not found again",
        "identities",
        "order[earlier > 0], earlier[earlier > 0]",
        "order[earlier > 1], earlier[earlier > 1]",
    ),
    Mutant(
        "the store keeps what the function may write over",
        "Store.hand",
        "values = record.values.copy()",
        "values = record.values",
    ),
    Mutant(
        "new items are placed among those of the base",
        "Subset.between",
        "return super().between(new_items, self._of(landmarks), others)",
        "return super().between(new_items, landmarks, others)",
    ),
]


def failures(root: Path, tests: str) -> str:
    """Return what pytest says if a test fails, "" if none does; raise if none runs."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += ["-m", "not browser"]  # slow ones, too
    environment = {k: v for k, v in os.environ.items() if k != "SIMLIB_DATA"} | {
        "PYTHONPATH": f"{root}{os.pathsep}{root / 'book'}",
        "PYTHONDONTWRITEBYTECODE": "1",  # two edits of one size may fall into a second
    }
    done = subprocess.run(
        [*command, tests], cwd=root, env=environment, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest {tests} does not run:\n{done.stdout}")
    return done.stdout if done.returncode else ""


def copy(root: Path) -> None:
    """Copy the checkout."""
    shutil.copytree(ROOT, root, ignore=LEFT_OUT, dirs_exist_ok=True)


def kill(mutant: Mutant) -> bool:
    """Tell whether a test fails on a mutant; say so."""
    with TemporaryDirectory() as folder:
        root, path = Path(folder), mutant.place.path
        copy(root)
        (root / path).write_text(mutant.mutated(), encoding="utf-8")
        killed = any(failures(root, tests) for tests in mutant.looked_at)
    word = "killed  " if killed else "SURVIVED"
    print(f"{word} {path}: {mutant.what}", flush=True)
    return killed


def passes(tests: str) -> bool:
    """Tell whether some tests pass as it is; say so if they do not."""
    with TemporaryDirectory() as folder:
        copy(Path(folder))
        failed = failures(Path(folder), tests)
    if failed:
        print(f"FAILS    {tests} without any mutant\n{failed}", flush=True)
    return not failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants whose file or description holds one of some words, or all."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("words", nargs="*", help="parts of a file or a description")
    parser.add_argument("-j", type=int, default=os.cpu_count(), help="side by side")
    options = parser.parse_args(arguments)
    chosen = [mutant for mutant in MUTANTS if mutant.is_meant(options.words)]
    folders = sorted({tests for mutant in chosen for tests in mutant.folders})
    with ThreadPoolExecutor(options.j) as pool:
        if not all(pool.map(passes, folders)):
            return 1
        survived = len(chosen) - sum(pool.map(kill, chosen))
    print(f"{len(chosen)} mutants, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
