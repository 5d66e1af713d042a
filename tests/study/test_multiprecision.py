"""Reference solutions without rounding."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from study.multiprecision import ExactGram, exact_product, relative_error
from support.matrices import quick


def fractions(A):
    return [[Fraction(v) for v in row] for row in np.asarray(A, float).tolist()]


@given(st.integers(0, 2**32 - 1), st.integers(-60, 60))
@quick
def test_products_are_those_of_fractions(seed, spread):
    rng = np.random.default_rng(seed)
    A = np.ldexp(rng.standard_normal((5, 3)), rng.integers(-abs(spread), 1, (5, 3)))
    B = np.ldexp(rng.standard_normal((5, 2)), spread)
    found = exact_product(A, B)
    a, b = fractions(A), fractions(B)
    for i in range(3):
        for k in range(2):
            truth = sum(a[row][i] * b[row][k] for row in range(5))
            value = found[i, k] * 2**300  # an integer
            assert Fraction(int(value)) == truth * 2**300


def test_numbers_far_apart():
    A, B = [[1e300, 1e-20, 0, -3e-310]], [[1e-20, 5e-324]]
    found = exact_product(A, B)
    for i, a in enumerate(A[0]):
        for k, b in enumerate(B[0]):
            value = int(found[i, k] * 2**2200)  # an integer
            assert value == Fraction(a) * Fraction(b) * 2**2200


def test_rows_beyond_one_block_are_added():
    ones = np.ones((2**16 + 3, 1))
    assert exact_product(ones, ones)[0] == 2**16 + 3


def test_nothing_times_nothing():
    assert exact_product(np.zeros((3, 2)), np.ones(3)).rows == 2


def test_solutions_solve():
    A = np.random.default_rng(0).standard_normal((9, 4)) * [1, 1e-4, 1e-8, 1e-12]
    gram, b = ExactGram(A), np.arange(1.0, 5)
    for j in (1, 3):
        assert gram.residual(gram.solve(b, j), b, j) < 1e-100


def test_a_well_conditioned_solution_is_that_of_lapack():
    A = np.random.default_rng(1).standard_normal((30, 5))
    b = A @ np.arange(5.0) + 1
    x = ExactGram(A).solve(exact_product(A, b))
    assert relative_error(np.linalg.lstsq(A, b)[0], x) < 1e-14
