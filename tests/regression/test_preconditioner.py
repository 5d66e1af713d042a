import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from simlib.regression import Preconditioner
from simlib.regression.preconditioner import ColumnScaling
from support.matrices import quick
from support.regression import matrix, normal, sketched

# Exactly


def test_a_matrix_no_taller_than_its_sketch_is_not_sketched():
    A = matrix(60, 20, 1e3)
    R = Preconditioner.from_matrix(A, refine=False, rng=1)
    assert R.distortion == 0
    np.testing.assert_allclose(R.R.T @ R.R, A.T @ A, atol=1e-14)


def test_each_seed_draws_a_sketch_of_its_own():
    A, one = matrix(400, 10, 1e3), np.random.default_rng(1)
    drawn = [
        Preconditioner.from_matrix(A, refine=False, rng=rng).R for rng in (1, one, one)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert abs(drawn[1] - drawn[2]).max() > 1e-3 * abs(drawn[1]).max()


@pytest.mark.parametrize("condition", [1e1, 1e6, 1e12])
@pytest.mark.parametrize("sketch", ["sparse_sign", "srht", "gaussian"])
def test_refined_it_is_the_triangle_of_qr(condition, sketch):
    A = matrix(2048, 40, condition)
    R = Preconditioner.from_matrix(A, sketch=sketch, rng=1)
    Q = A @ R.solve(np.eye(40))
    assert np.linalg.norm(Q.T @ Q - np.eye(40), 2) < 1e-14 + condition * 2e-15
    theirs = np.linalg.qr(A, mode="r")
    theirs *= np.sign(np.diag(theirs))[:, None]
    gap = np.linalg.norm(R.R - theirs, 2) / np.linalg.norm(theirs, 2)
    assert gap < 1e-12
    assert R.condition == pytest.approx(condition, rel=1e-3)


def test_the_start_solves_the_sketched_equations():
    A, b = matrix(3000, 30, 1e6), normal(3000, seed=5)
    R = sketched(A, 12, 1)
    assert R.distortion == pytest.approx(12**-0.5, rel=1e-2)
    x = R.solve(R.start(A, b))
    best = np.linalg.norm(A @ np.linalg.lstsq(A, b)[0] - b)
    assert np.linalg.norm(A @ x - b) < 1.2 * best


@pytest.mark.parametrize("refine", [False, True])
def test_pickled_it_is_the_same(refine):
    A, b = matrix(900, 8, 1e3), normal(900, seed=5)
    R = Preconditioner.from_matrix(A, refine=refine, rng=1)
    again = pickle.loads(pickle.dumps(R))
    np.testing.assert_array_equal(again.start(A, b), R.start(A, b))
    np.testing.assert_array_equal(again.R, R.R)
    assert not again.R.flags.writeable


# However A is kept


def test_a_generator_is_read_once_and_not_refined():
    A = matrix(3000, 20, 1e4)
    parts = (A[k : k + 500] for k in range(0, 3000, 500))
    R = Preconditioner.from_matrix(parts, refine=False, rng=1)
    assert np.linalg.cond(A @ R.solve(np.eye(20))) < 4
    with pytest.raises(ValueError, match="refine=False"):
        Preconditioner.from_matrix(iter([A]), rng=1)


@quick
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1e-300, 1e-9, 1, 1e300]))
def test_scale_and_seed_do_not_matter(seed, scale):
    A = matrix(500, 8, 1e5)
    R = Preconditioner.from_matrix(scale * A, rng=seed)
    expected = Preconditioner.from_matrix(A, rng=0)
    np.testing.assert_allclose(R.R / scale, expected.R, rtol=0, atol=1e-13)
    assert R.condition == pytest.approx(expected.condition, rel=1e-6)


def test_solves():
    A = matrix(500, 8, 1e2)
    R = Preconditioner.from_matrix(A, rng=0)
    B = np.random.default_rng(3).standard_normal((8, 3))
    np.testing.assert_allclose(R.R @ R.solve(B), B, atol=1e-12)
    np.testing.assert_allclose(R.R.T @ R.solve_transposed(B), B, atol=1e-12)


def test_refining_by_what_is_no_longer_there():
    A = matrix(300, 8, 10)
    R = Preconditioner.from_matrix(A, refine=False, rng=0)
    with pytest.raises(ValueError, match="no rows left: a generator"):
        R.refined(iter([]))
    with pytest.raises(ValueError, match="of 8 columns; A has 3"):
        R.refined(A[:, :3])


def test_the_start_wants_as_many_rows():
    A = matrix(400, 8, 10)
    R = Preconditioner.from_matrix([A[:200], A[200:]], refine=False, rng=0)
    for height in 150, 300, 500:
        with pytest.raises(ValueError, match=f"of 400 rows; A has {height}"):
            R.start(A, np.ones((height, 1)))


@pytest.mark.parametrize("sketch", ["sparse_sign", "srht"])
@pytest.mark.parametrize("A", [np.ones((10, 1)), np.eye(400, 2)], ids=["one", "two"])
def test_columns_that_only_a_sketch_makes_dependent_are_no_error(A, sketch):
    for seed in range(300):  # signs that cancel: about one draw in 100
        R = Preconditioner.from_matrix(A, sketch=sketch, rng=seed)
        np.testing.assert_allclose(R.R, np.sqrt(A.T @ A), atol=1e-12)


def test_dependent_columns_are_named():
    A = matrix(500, 8, 10)
    with pytest.raises(np.linalg.LinAlgError, match=r"rank 8 .* columns \[\d\]"):
        Preconditioner.from_matrix(np.column_stack([A, A[:, 3]]), rng=0)
    A[:, 2] = 0
    with pytest.raises(np.linalg.LinAlgError, match="Column 2 of A is zero"):
        Preconditioner.from_matrix(A, rng=0)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.eye(5, 2) * [1, 1e305], r"Column 1 of A has a norm of 1e\+305"),
        (np.eye(5, 2) * [1, 1e-305], "Column 1 of A has a norm of 1e-305"),
        (np.ones((3, 5)), "3 rows and 5 columns"),
        ([np.ones((5, 2)), np.ones((5, 3))], "2 columns and 3"),
    ],
)
def test_what_is_no_tall_matrix_is_refused(A, message):
    with pytest.raises(ValueError, match=message):
        Preconditioner.from_matrix(A, rng=0)


@pytest.mark.parametrize("options", [{"sketch": "fourier"}, {"oversampling": 1}])
def test_options_that_do_not_exist(options):
    (name, value) = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"{name}.*{value}"):
        Preconditioner.from_matrix(matrix(50, 2, 10), **options)


def test_srht_takes_a_sparse_matrix_and_no_blocks():
    A = matrix(3000, 20, 1e3)
    A[abs(A) < 0.002] = 0
    for refine in (False, True):
        R = Preconditioner.from_matrix(
            scipy.sparse.csr_array(A), sketch="srht", refine=refine, rng=1
        )
        dense = Preconditioner.from_matrix(A, sketch="srht", refine=refine, rng=1)
        np.testing.assert_allclose(R.R, dense.R, rtol=0, atol=1e-13)
    with pytest.raises(ValueError, match="sparse_sign"):
        Preconditioner.from_matrix([A, A], sketch="srht", rng=0)


def test_many_columns_have_an_estimated_condition():
    """Beyond 500 columns, within some percent."""
    A = matrix(3000, 520, 1e5)
    R = Preconditioner.from_matrix(A, refine=False, rng=0)
    values = scipy.linalg.svdvals(R.R)
    assert R.condition == pytest.approx(values[0] / values[-1], rel=0.1)
    assert R.norm == pytest.approx(values[0], rel=0.1)


def test_columns_of_length_one():
    rng = np.random.default_rng(0)
    A = scipy.sparse.random_array((300, 8), density=0.1, rng=rng, format="csr")
    expected = np.linalg.norm(A.toarray(), axis=0)
    for scale in (1.0, 1e-200, 1e200):
        scaling = ColumnScaling.from_matrix(A * scale)
        np.testing.assert_allclose(scaling.sizes, expected * scale, rtol=1e-14)
    told = ColumnScaling.from_matrix(A).with_extremes([(0.5, 2.0), (0.7, 3.0)])
    assert told.extremes == (0.5, 3.0)
    assert told.condition == pytest.approx(6 * expected.max() / expected.min())
    with pytest.raises(np.linalg.LinAlgError, match="Column 1 of A is zero"):
        ColumnScaling.from_matrix(scipy.sparse.csr_array(np.eye(5, 2) * [1, 0]))
