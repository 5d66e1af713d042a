"""The examples in the docstrings of simlib."""

import doctest
import importlib
from pathlib import Path

import pytest

import simlib

ROOT = Path(simlib.__file__).parents[1]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(Path(simlib.__file__).parent.rglob("*.py"))
    if ">>>" in path.read_text(encoding="utf-8")
]


def test_there_are_examples():
    assert {"simlib.similarity", "simlib.lowrank"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"{name} needs {error.name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
