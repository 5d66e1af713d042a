"""Shared fixtures."""

import os

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("house", deadline=None)  # no test measures time
settings.load_profile("house")


@pytest.fixture(scope="session")
def data():
    """Skip without SIMLIB_DATA; where it is set, a missing set fails in its loader."""
    if not os.environ.get("SIMLIB_DATA"):
        pytest.skip("SIMLIB_DATA is not set")


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread():
    """On a busy machine the threads of small products wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture(autouse=True)
def _same_floating_point_errors():
    """What NumPy warns of is left as it was, or later tests would hide warnings."""
    before = np.geterr()
    yield
    after = np.geterr()
    np.seterr(**before)
    assert after == before
