import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_what_a_user_is_told():
    pytest.importorskip("mypy", reason="needs mypy, of the extra test")
    mypy = [sys.executable, "-m", "mypy", "tests/typed_use.py"]
    found = subprocess.run(mypy, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
