"""The mutants of ``make mutants`` still have a place in the code."""

import ast
from collections import Counter

import pytest
from mutants import MUTANTS, ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_it_can_be_made(mutant):
    text = (ROOT / mutant.place.path).read_text(encoding="utf-8")
    assert ast.dump(ast.parse(mutant.mutated())) != ast.dump(ast.parse(text))
    assert all((ROOT / tests).exists() for tests in mutant.looked_at)


def test_each_stands_once():
    edits = Counter((mutant.where, mutant.old, mutant.new) for mutant in MUTANTS)
    names = Counter(mutant.what for mutant in MUTANTS)
    assert max(edits.values()) == max(names.values()) == 1
