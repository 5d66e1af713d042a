"""Fixtures of the tests of system 3."""

import pytest

from simlib.biharmonic import factorization


@pytest.fixture(params=["nested dissection", "minimum degree"])
def both_orders(request, monkeypatch):
    """Run a test in each order of elimination."""
    if request.param == "minimum degree":
        monkeypatch.setattr(factorization, "pymetis", None)
    else:
        pytest.importorskip("pymetis", reason="needs pymetis, of the extra mesh")
