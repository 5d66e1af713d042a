"""The record of a chapter after edits of this repository, in a copy of it."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest

from press.inputs import Inputs, place
from press.results import read_part
from press.tracer import blocks
from support.books import edit
from support.processes import python

ROOT = Path(__file__).parents[2]
SMS = "simlib/approximation/sms.py"
CUR = "simlib/approximation/cur.py"


class Copy:
    """A clone of this repository, with the press in it."""

    def __init__(self, folder):
        self.root = folder
        clone = ["git", "clone", "--quiet", ROOT, folder]
        subprocess.run(clone, check=True)
        path = os.pathsep.join([str(folder), str(folder / "book")])
        self.environment = os.environ | {"PYTHONPATH": path}

    def run(self, code):
        """Return what some code prints with the press of the copy."""
        return python("-c", code, cwd=self.root, env=self.environment).stdout

    def press(self, option):
        """Return what the press says of the record of one chapter."""
        command = f"main(['{option}', 'ray_reexamined'])"
        told = self.run(f"import sys\nfrom press import main\n\nsys.exit({command})")
        (line,) = [x for x in told.splitlines() if "recorded: " in x]
        return line.partition("recorded: ")[2]

    def changed(self):
        """Return the names of all code that has changed since the record was made."""
        rows = "status(['ray_reexamined'], 'quick')"
        what = f"{rows}[0].record.changed['code']"
        return self.run(f"from press.confirmation import status\n\nprint({what})")

    def edited(self, file, *edits):
        """Edit a file as it was cloned; return what the press then says."""
        git = ["git", "-C", self.root, "checkout", "--quiet", "--", "simlib"]
        subprocess.run(git, check=True)
        for old, new in edits:
            edit(self.root / file, old, new)
        return self.press("--status")


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_edits_of_this_repository(tmp_path):
    copy = Copy(tmp_path / "copy")
    as_it_is = copy.press("--confirm")
    assert as_it_is.startswith(("fresh", "confirmed"))
    for file, old, new in [
        (CUR, "def sicur(\n", "def unused():\n    return 1\n\n\ndef sicur(\n"),
        (CUR, "Parameters\n", "Arguments\n"),
        (CUR, "\n\ndef sicur(", "  # here\n\n\ndef sicur("),
    ]:
        text = (copy.root / file).read_text()
        assert copy.edited(file, (old, new)) == as_it_is
        assert (copy.root / file).read_text() != text

    places = ("    smallest = scipy", "if smallest >=", "float(-smallest *")
    edits = [(old, old.replace("smallest", "least")) for old in places]
    renamed = copy.edited(SMS, *edits)
    assert renamed.startswith("not confirmed: ")
    assert " code changed: " in renamed
    assert f"{SMS}:_shift" in copy.changed()
    assert copy.press("--confirm").startswith("confirmed: ")

    assert copy.edited(SMS, ("alpha: float = 1.5", "alpha: float = 1.45")) != as_it_is
    moved = copy.press("--confirm")
    assert re.match(r"moved: [\w.]+: \S+ -> \S+; ", moved)

    unit = next(unit for unit in only_in_full(copy.root) if "/" in unit[1])
    path, name = unit
    source = (copy.root / path).read_text()
    found = {block: body for block, _, body in blocks(ast.parse(source))}
    lines = source.splitlines(keepends=True)
    first = found[name][0]
    lines.insert(first.lineno - 1, " " * first.col_offset + "pass\n")
    copy.edited(path)
    (copy.root / path).write_text("".join(lines))
    told = copy.press("--confirm")
    assert told.startswith("not confirmed: only the full run reaches what changed in ")
    assert place(unit) in told


def only_in_full(root):
    """Yield the blocks of the library that the full run reaches, and quick does not."""
    folder = root / "book/results/ray_reexamined"
    full, quick = (
        Inputs.read(read_part(folder, f"{part}.json")).code
        for part in ("provenance", "probe")
    )
    for path, units in full.items():
        for name, hash in units.items():
            there = quick.get(path, {}).get(name, "-")
            if path.startswith("simlib/") and hash[0] != "-" and there[0] == "-":
                yield path, name
