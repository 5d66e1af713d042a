import re
from functools import partial

import numpy as np
import pytest
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from simlib import AttentionKernelRegressor
from simlib.regression import ExponentialFeatures, kernel
from support.regression import (
    attention,
    gaussian,
    normal,
    peak,
    relative,
    sphere,
    subspace,
)

Regressor = partial(AttentionKernelRegressor, random_state=0)
PRECONDITIONERS = [
    None,
    "rpcholesky",
    "nystroem",
    ExponentialFeatures(128, kind="taylor"),
    ExponentialFeatures(128, random_state=0),
    RBFSampler(random_state=0),  # of another kernel, and still only slow
]
each = pytest.mark.parametrize("preconditioner", PRECONDITIONERS, ids=repr)


def dense(X, y, ridge):
    return np.linalg.solve(attention(X) + ridge * np.eye(len(X)), y)


def cholesky(X, y, ridge):
    """As `dense`, with the digits of rows that are shorter than others."""
    system = attention(X) + ridge * np.eye(len(X))
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(system), y)


def cloud(norm=None):
    """Normal rows of norms about 1, but for the last."""
    X = normal(800, 4) / 2
    if norm is not None:
        X[-1] = norm / 2
    return X


LONG = (
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_n_features_in",
    "check_non_transformer_estimators_n_iter",
)


def fails(estimator):
    return dict.fromkeys(LONG, "exp of its squared norms, 120 or 20 000, has no digits")


@pytest.mark.filterwarnings(
    "ignore:The relative residual:sklearn.exceptions.ConvergenceWarning"
)
@parametrize_with_checks([AttentionKernelRegressor()], expected_failed_checks=fails)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_one_point_by_hand():
    model = Regressor(2.0).fit([[1.0, 1.0]], [3.0])
    np.testing.assert_allclose(model.dual_coef_, [3 / (np.exp(2) + 2)], rtol=1e-11)
    predicted = model.predict([[0.5, 0.0], [0.0, 0.0]])
    expected = model.dual_coef_ * [np.exp(0.5), 1.0]
    np.testing.assert_allclose(predicted, expected, rtol=1e-14)
    assert model.rank_ == 1
    assert model.n_iter_ == 1


@each
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("targets", [(), (3,)])
def test_the_dense_solution(preconditioner, ridge, targets):
    """Without a ridge LAPACK's residual is 2e-12."""
    X, y, new = sphere(150, 6), normal(150, *targets), sphere(40, 6, seed=1)
    model = Regressor(ridge, preconditioner=preconditioner, rank=40, tol=1e-11)
    model.fit(X, y)
    alpha = dense(X, y, ridge)
    condition = np.linalg.cond(attention(X) + ridge * np.eye(150))
    assert relative(model.dual_coef_, alpha) < condition * 1e-11
    assert model.dual_coef_.shape == y.shape
    left = (attention(X) + ridge * np.eye(150)) @ model.dual_coef_ - y
    residuals = np.linalg.norm(left, axis=0) / np.linalg.norm(y, axis=0)
    np.testing.assert_allclose(model.residual_, residuals.max(), rtol=0.2)
    assert model.residual_ <= 1e-11
    assert model.preconditioned_residual_ < 1e-10
    predicted = model.predict(new)
    assert predicted.shape == (40, *targets)
    np.testing.assert_allclose(
        predicted, np.exp(new @ X.T) @ model.dual_coef_, atol=1e-9
    )


@pytest.mark.parametrize("preconditioner", [None, "rpcholesky", "nystroem"])
@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_long_rows_do_not_overflow(preconditioner, ridge):
    """At norm 40 the diagonal is exp(1600), and the kernel that of distances."""
    X, y = sphere(150, 3, 40.0), normal(150)
    model = Regressor(ridge, preconditioner=preconditioner, rank=50).fit(X, y)
    scaled = np.exp(X @ X.T - 1600)
    np.testing.assert_allclose(
        model.gaussian_coef_, np.linalg.solve(scaled, y), rtol=1e-7, atol=1e-8
    )
    np.testing.assert_array_equal(model.dual_coef_, np.zeros(150))
    np.testing.assert_allclose(model.predict(X), y, atol=1e-8)
    with pytest.raises(ValueError, match="row 1 overflows"):
        model.predict([X[0], 2 * X[0]])


def test_predictions_for_rows_far_from_all_points():
    """The Gaussian kernel is below the range of numbers, its product with D not."""
    X, y = sphere(60, 3), normal(60)
    model = Regressor().fit(X, y)
    new = np.stack([X[0], 0 * X[0], 45 * X[0], 300 * X[1]])
    expected = np.exp(new @ X.T) @ dense(X, y, 1.0)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-7, atol=1e-11)
    with pytest.raises(ValueError, match="row 0 overflows"):
        model.predict(900 * X[:2])
    with pytest.raises(ValueError, match="row 1 overflows"):
        model.predict([X[0], 1e200 * X[0]])


@pytest.mark.parametrize("length", [1e2, 5e7, 1e200])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_predictions_for_long_rows_that_are_orthogonal_to_the_points(length, shift):
    X, y = np.c_[sphere(60, 3) + shift, np.zeros(60)], normal(60)
    model = Regressor(0.1).fit(X, y)
    np.testing.assert_allclose(
        model.predict(np.add(X, [0, 0, 0, length])), model.predict(X), rtol=1e-12
    )


@pytest.mark.parametrize("norm", [0, 1e-8, 6.0])
@pytest.mark.parametrize("ridge", [1e-2, 1.0])
def test_one_row_of_another_length(norm, ridge):
    X, y = cloud(norm), normal(800, seed=1)
    model = Regressor(ridge).fit(X, y)
    assert model.rank_ == 256
    assert model.n_iter_ <= 10
    assert model.residual_ < 1e-10
    assert relative(model.dual_coef_, cholesky(X, y, ridge)) < 1e-10
    fitted = y - ridge * model.dual_coef_
    np.testing.assert_allclose(model.predict(X), fitted, atol=1e-8)


@pytest.mark.parametrize("norm", [16.9, 26.0])
def test_one_row_so_long_that_rounding_hides_its_target(norm):
    """Also in a dense solution, which is no better."""
    X, y = cloud(norm), normal(800, seed=1)
    with pytest.warns(ConvergenceWarning, match=f"row 799, of norm {norm:.3g}"):
        model = Regressor().fit(X, y)
    assert model.rank_ == 256
    assert model.n_iter_ <= 20
    alpha = cholesky(X, y, 1.0)
    assert relative(model.dual_coef_, alpha) < 1e-10
    assert model.residual_ < 10 * relative(attention(X) @ alpha + alpha, y)
    np.testing.assert_allclose(model.predict(cloud()), np.exp(cloud() @ X.T) @ alpha)


@pytest.mark.parametrize("norm", [40.0, 1e3])
def test_one_row_out_of_range(norm):
    """Its target is missed; the other rows do not know of it."""
    X, y = cloud(norm), normal(800, seed=1)
    with pytest.warns(ConvergenceWarning, match="row 799"):
        model = Regressor().fit(X, y)
    np.testing.assert_allclose(model.residual_, abs(y[-1]) / np.linalg.norm(y))
    alpha = dense(X[:-1], y[:-1], 1.0)
    np.testing.assert_allclose(
        model.predict(X[:-1]), attention(X[:-1]) @ alpha, rtol=1e-8, atol=1e-9
    )
    with pytest.raises(ValueError, match="row 799 overflows"):
        model.predict(X)


@pytest.mark.parametrize("length", [1e5, 1e200])
def test_rows_too_long_for_their_exponents(length):
    with pytest.raises(ValueError, match="Scale the rows"):
        Regressor().fit(sphere(20, 3, length), normal(20))


@pytest.mark.parametrize("d", [1, 2, 5, 10])
@pytest.mark.parametrize("max_iter", [1, 1000])
def test_columns_of_0_to_10_are_refused_with_the_scale_that_fits(d, max_iter):
    """Whatever the solver does: predictions would be 1e31 to 1e68."""
    X = np.random.default_rng(0).uniform(0, 10, (400, d))
    y, longest = np.sin(X.sum(axis=1)), np.linalg.norm(X, axis=1).max()
    with pytest.raises(ValueError, match=f"norm {longest:.3g}, and exp") as caught:
        Regressor(max_iter=max_iter).fit(X, y)
    scale = float(re.search("by ([0-9.]+) or more", str(caught.value))[1])
    assert scale == pytest.approx(longest / 4.2, rel=0.05)
    model = Regressor(tol=1e-8).fit(X / scale, y)  # and no warning
    assert abs(model.predict(X / scale) - y).max() < 2
    for once in (1, np.sqrt(50)):  # by which rows have norms about 1
        model = Regressor(0.1).fit(X / (10 * once), y)
        assert abs(model.predict(X / (10 * once))).max() < 2


@pytest.mark.parametrize("mean", [3, 4, 10, 1e9])
def test_rows_with_a_large_common_mean_are_to_be_centred(mean):
    """Scaled, they have lost what tells them apart; centred, they are ordinary."""
    rows = normal(400, 4) / 2
    X, y = rows + mean, np.sin(rows.sum(axis=1))
    caught = pytest.warns(ConvergenceWarning, match="mostly their mean: subtract it")
    if mean >= 10:
        caught = pytest.raises(ValueError, match="mostly their mean: subtract it")
    with caught:
        Regressor().fit(X, y)
    centred = X - X.mean(axis=0)
    assert Regressor().fit(centred, y).score(centred, y) > 0.98


def test_the_model_keeps_a_copy_of_the_points():
    X, y = sphere(50, 3), normal(50)
    model = Regressor().fit(X, y)
    expected, points = model.predict(X[:5]), X[:5].copy()
    X[:] = 0
    np.testing.assert_array_equal(model.predict(points), expected)


def test_repeated_rows_and_zero_rows():
    X, y = sphere(200, 8), normal(200)
    X[100:150], X[150:160] = X[:50], 0
    for preconditioner in (None, "rpcholesky", "nystroem"):
        model = Regressor(0.1, preconditioner=preconditioner, tol=1e-12).fit(X, y)
        np.testing.assert_allclose(model.dual_coef_, dense(X, y, 0.1), rtol=1e-8)
    with pytest.raises(np.linalg.LinAlgError, match="Rows 0 and 100 of X are equal"):
        Regressor(0.0).fit(X, y)
    with pytest.raises(np.linalg.LinAlgError, match="Rows 0 and 1"):
        Regressor(0.0).fit([[0.0, 1.0], [-0.0, 1.0]], [1.0, 2.0])


def test_without_a_ridge_a_singular_matrix_is_refused():
    """G has rank 150 to rounding; smooth targets it can produce, others not."""
    X = subspace(500)
    with pytest.raises(np.linalg.LinAlgError, match="singular to rounding"):
        Regressor(0.0).fit(X, normal(500))
    smooth = np.exp(X[:, 0]) + X[:, 1] ** 2
    model = Regressor(0.0).fit(X, smooth)
    assert model.residual_ < 1e-10
    np.testing.assert_allclose(model.predict(X), smooth, atol=1e-8)


def test_unattainable_tolerances_are_reported():
    X, y = sphere(200), normal(200)
    with pytest.warns(ConvergenceWarning, match="fall no further") as caught:
        model = Regressor(tol=1e-17).fit(X, y)
    assert caught[0].filename == __file__
    assert model.residual_ < 1e-13
    with pytest.warns(ConvergenceWarning, match="after max_iter=3 iterations"):
        model = Regressor(1e-6, preconditioner=None, max_iter=3).fit(X, y)
    assert model.n_iter_ == 3


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e300])
def test_targets_of_any_size(scale):
    X, y = sphere(100), normal(100)
    unit = Regressor().fit(X, y).predict(X)
    found = Regressor().fit(X, scale * y).predict(X)
    np.testing.assert_allclose(found, scale * unit, rtol=1e-9)


def test_right_answer_or_a_word():
    """Rows of any lengths, repeated or not, and any ridge."""
    answers = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(1, 100), rng.integers(1, 20)
        X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-4, 3)
        if seed % 3 == 0:
            X = X[rng.integers(n, size=n)]
        if seed % 4 == 0:
            X *= rng.uniform(0, 1, (n, 1)) ** 3
        y, ridge = rng.standard_normal(n), rng.choice([0, 1e-6, 1e-3, 1, 1e6, 1e100])
        preconditioner = [None, "rpcholesky", "nystroem"][rng.integers(3)]
        model = Regressor(ridge, preconditioner=preconditioner, max_iter=200)
        try:
            model.fit(X, y)
        except (ConvergenceWarning, np.linalg.LinAlgError, ValueError):
            continue
        answers += 1
        squares = np.square(X).sum(axis=1)
        small = np.exp((squares.min() - squares) / 2)
        system = gaussian(X) + ridge * np.diag(np.exp(-squares))
        left = system @ model.gaussian_coef_ - small * y
        assert np.linalg.norm(left / small) < 1e-9 * np.linalg.norm(y)
        fitted = y - ridge * model.dual_coef_
        np.testing.assert_allclose(model.predict(X), fitted, atol=1e-8)
    assert answers > 15


def test_coefficients_beyond_floating_point():
    with pytest.raises(ValueError, match="beyond the range"):
        Regressor(0.0).fit([[0.0, 0.0], [1e-2, 0.0]], [1e308, -1e308])


def test_float32_data_is_computed_in_float64():
    X, y = sphere(100).astype(np.float32), normal(100).astype(np.float32)
    model = Regressor(0.1).fit(X, y)
    wide = Regressor(0.1).fit(X.astype(float), y.astype(float))
    np.testing.assert_array_equal(model.dual_coef_, wide.dual_coef_)
    assert model.residual_ < 1e-10


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"ridge": -1.0}, "ridge must be"),
        ({"ridge": 10**400}, "ridge must be"),
        ({"rank": True}, "rank must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"tol": 0.0}, "tol must lie"),
        ({"preconditioner": "jacobi"}, "preconditioner is"),
        ({"preconditioner": 3}, "preconditioner is"),
    ],
)
def test_options_out_of_range(options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        Regressor(**options).fit(sphere(10), normal(10))


def test_same_seed_same_result():
    X, y = sphere(300), normal(300)
    for preconditioner in ("rpcholesky", "nystroem"):
        first, second, other = (
            AttentionKernelRegressor(
                preconditioner=preconditioner, rank=20, random_state=seed
            ).fit(X, y)
            for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
        assert (first.dual_coef_ != other.dual_coef_).any()
    state = np.random.RandomState(0)
    drawn = AttentionKernelRegressor(rank=20, random_state=state).fit(X, y)
    again = AttentionKernelRegressor(rank=20, random_state=state).fit(X, y)
    assert (drawn.dual_coef_ != again.dual_coef_).any()


def test_transformers_are_cloned_and_grid_search_finds_the_ridge():
    X, y = sphere(200), sphere(200)[:, 0]
    features = ExponentialFeatures(50, random_state=0)
    model = Regressor(preconditioner=features)
    search = GridSearchCV(model, {"ridge": [1e-3, 1e3]}, cv=3).fit(X, y)
    assert search.best_params_ == {"ridge": 1e-3}
    assert not hasattr(features, "n_components_")


def test_a_fit_keeps_what_a_subclass_has_learnt():
    class Centred(AttentionKernelRegressor):
        def fit(self, X, y):
            self.centre_ = X.mean(axis=0)
            return super().fit(X - self.centre_, y)

    X = np.random.default_rng(0).standard_normal((30, 2))
    model = Centred(random_state=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(model.centre_, X.mean(axis=0))
    assert model.residual_ < 1e-10


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y = sphere(100), normal(100)
    model = Regressor(0)
    twins = np.repeat(X[:3, :2], 2, axis=0)
    with pytest.raises(np.linalg.LinAlgError):
        model.fit(twins, y[:6])
    with pytest.raises(NotFittedError):
        model.predict(twins)
    expected = model.set_params(ridge=1).fit(X, y).predict(X)
    with pytest.raises(np.linalg.LinAlgError):
        model.set_params(ridge=0).fit(twins, y[:6])
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("preconditioner", [None, "rpcholesky", "nystroem"])
def test_no_kernel_matrix_is_kept_where_it_is_large(monkeypatch, preconditioner):
    """It would have 288 MB; columns have 3, and a block of entries 2."""
    monkeypatch.setattr(kernel, "LARGEST_CACHE", 0)
    n, rank = 6000, 64
    X, y = sphere(n), normal(n)
    model = Regressor(0.1 * n, preconditioner=preconditioner, rank=rank)
    assert peak(lambda: model.fit(X, y)) < 8 * 3 * n * rank + 1e7
    assert peak(lambda: model.predict(X)) < 1e7


def test_half_of_the_kernel_matrix_is_kept_where_it_is_small():
    n = 3000
    model = Regressor(0.1 * n, rank=64)
    used = peak(lambda: model.fit(sphere(n), normal(n)))
    assert 8 * n**2 / 2 < used < 8 * (n**2 / 2 + 3 * 64 * n) + 2e7


def iterations(X, ridge, preconditioner, rank=256):
    model = Regressor(ridge, preconditioner=preconditioner, rank=rank, max_iter=400)
    model.fit(X, normal(len(X), seed=5))
    assert model.residual_ < 1e-10
    return model.n_iter_


def test_iterations_on_the_sphere():
    n = 3000
    counts = {
        name: iterations(sphere(n), 1e-3 * n, preconditioner)
        for name, preconditioner in {
            "none": None,
            "rpcholesky": "rpcholesky",
            "nystroem": "nystroem",
            "taylor": ExponentialFeatures(153, kind="taylor"),
            "tensor_srht": ExponentialFeatures(1030, random_state=0),
            "shared_tree": ExponentialFeatures(
                1030, kind="shared_tree", random_state=0
            ),
        }.items()
    }
    assert 40 <= counts["none"] <= 60
    assert counts["rpcholesky"] <= 18
    assert counts["nystroem"] <= 18
    assert counts["taylor"] <= 13
    assert counts["tensor_srht"] <= 32
    assert counts["shared_tree"] > 2 * counts["tensor_srht"]


@pytest.mark.parametrize("wrong", [1j, np.nan, np.inf])
def test_features_that_are_no_numbers_are_named(wrong):
    transformer = FunctionTransformer(lambda X: X * wrong)
    with pytest.raises(ValueError, match="features that FunctionTransformer makes"):
        Regressor(preconditioner=transformer).fit(np.eye(3) + 0.1, np.ones(3))


@pytest.mark.parametrize("d", [2, 5])
def test_a_fit_that_does_not_arrive_is_no_refusal(d):
    """These rows are solved up to a residual of 0.03, or as far as steps permit."""
    X = np.random.default_rng(0).uniform(0, 5, (400, d))
    y = np.sin(X.sum(axis=1))
    for max_iter in (1, 3, 30):
        with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter}"):
            Regressor(max_iter=max_iter, preconditioner=None).fit(X, y)
