import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "name", ["lstsq", "AttentionKernelRegressor", "ExponentialFeatures"]
)
def test_a_name_loads_what_it_uses(name):
    """At most 20 modules of the library, and of the methods none."""
    code = f"""
import sys
from simlib.regression import {name}
print(*(module for module in sys.modules if module.startswith("simlib")))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = run.stdout.split()
    assert 0 < len(loaded) <= 20
    assert not [module for module in loaded if "approximation" in module]
