"""Shared fixtures."""

import os

import pytest


@pytest.fixture(scope="session")
def data():
    """Skip without SIMLIB_DATA; where it is set, a missing set fails in its loader."""
    if not os.environ.get("SIMLIB_DATA"):
        pytest.skip("SIMLIB_DATA is not set")
