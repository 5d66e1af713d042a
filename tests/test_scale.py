import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simlib._scale import largest_ratio, norms, unit_columns
from support.matrices import quick


@quick
@given(seed=st.integers(0, 2**32 - 1), power=st.integers(-300, 300))
def test_norms_of_columns_of_any_size(seed, power):
    X = np.random.default_rng(seed).standard_normal((7, 3))
    expected = np.linalg.norm(X, axis=0)
    np.testing.assert_allclose(norms(X * 10.0**power), expected * 10.0**power)
    Y, exponents = unit_columns(X)
    np.testing.assert_array_equal(np.ldexp(Y, exponents), X)
    assert ((abs(Y).max(axis=0) >= 0.5) & (abs(Y).max(axis=0) < 1)).all()


def test_norms_of_nothing_are_nothing():
    np.testing.assert_array_equal(norms(np.zeros((3, 2))), 0)


def test_the_largest_ratio_of_norms():
    X, Y = np.diag([3.0, 1e-200, 0]), np.diag([2.0, 1e-201, 0])
    assert largest_ratio(X, Y) == 10
    assert largest_ratio(X, 0 * Y) == 0
