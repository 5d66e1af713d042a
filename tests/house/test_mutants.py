"""The mutants of ``make mutants`` still have a place in the code."""

import ast
from collections import Counter

import pytest
from mutants import MUTANTS, ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_it_can_be_made(mutant):
    text = (ROOT / mutant.path).read_text(encoding="utf-8")
    mutated = mutant.mutated()
    assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(text))
    assert all((ROOT / module).is_file() for module in mutant.modules)


def test_each_stands_once():
    edits = Counter((mutant.path, mutant.old, mutant.new) for mutant in MUTANTS)
    names = Counter(mutant.what for mutant in MUTANTS)
    assert max(edits.values()) == max(names.values()) == 1
