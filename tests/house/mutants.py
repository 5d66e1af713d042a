"""Small wrongs that the tests have to notice: ``make mutants``.

Each is one edit of one function, wherever that stands. It is made in a temporary copy
of the checkout, where the tests of the function's package run, and the whole suite if
these notice nothing; all without data. They stand in mutants.txt: a name (and further
folders of tests) and what is wrong, then - the code that becomes + another.
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


def read(text: str) -> list[Mutant]:
    """Read mutants from the lines of a list such as mutants.txt."""
    mutants = re.findall(r"^(\S+)(?: \((.+)\))?: (.+)\n- (.+)\n\+ ?(.*)$", text, re.M)
    lines = [line for line in text.splitlines() if line and line[0] != "#"]
    if 3 * len(mutants) != len(lines):
        raise ValueError(f"{len(lines)} lines are not {len(mutants)} mutants")
    return [
        Mutant(what, where, old, new, tests) for where, tests, what, old, new in mutants
    ]


MUTANTS = read(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))


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
    print(f"trying   {tests} without any mutant", flush=True)
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
