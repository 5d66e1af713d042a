"""What is loaded with what."""

import pytest

from support.processes import python

LOADED = """
import sys

{statement}
print(*(name for name in sys.modules if name.partition(".")[0] == "simlib"))
"""


@pytest.mark.parametrize(
    ("statement", "most", "without"),
    [
        ("import simlib", 1, ""),
        ("import simlib.datasets", 8, ""),
        ("from simlib.regression import *", 20, "approximation neighbors similarity"),
        ("import simlib.text.wmd", 12, "approximation regression similarity"),
        ("from simlib import tikhonov", 30, "regression neighbors biharmonic text"),
    ],
)
def test_a_subpackage_loads_what_it_uses_and_not_its_siblings(statement, most, without):
    code = LOADED.format(statement=statement)
    names = python("-c", code, check=True).stdout.split()
    assert len(names) <= most
    assert not {name.split(".")[1] for name in names[1:]} & set(without.split())


IMPORTS = """
import sys
from importlib.metadata import packages_distributions

import simlib

for name in set(simlib.__all__) - {"biharmonic", "neighbors", "text"}:  # have extras
    getattr(simlib, name)

owners = packages_distributions()
names = {name.partition(".")[0] for name in sys.modules} & set(owners)
print(*{owner for name in names for owner in owners[name]})
"""

# What numpy, scipy, scikit-learn and joblib bring along, some of it where installed.
BROUGHT = {"threadpoolctl", "narwhals", "cloudpickle", "loky", "psutil"}
BROUGHT |= {"charset-normalizer", "pandas", "python-dateutil", "rich", "six"}
BROUGHT |= {"setuptools", "distutils-precedence"}


def test_simlib_imports_four_packages():
    found = set(python("-c", IMPORTS, check=True).stdout.split())
    expected = {"simlib", "lazy-loader", "numpy", "scipy", "scikit-learn", "joblib"}
    assert expected <= found <= expected | BROUGHT
