from math import comb, factorial

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

from simlib.regression import ExponentialFeatures, features
from simlib.regression.sketch import PolynomialSketch
from support.matrices import quick
from support.regression import attention, sphere

SKETCHES = ["tensor_srht", "polynomial_count_sketch", "shared_tree"]
KINDS = [*SKETCHES, "taylor", "positive"]
each = pytest.mark.parametrize("kind", KINDS)


def fails(estimator):
    return {"check_fit_idempotent": "exp of its squared norms, 20 000, overflows"}


@parametrize_with_checks(
    [
        ExponentialFeatures(),
        ExponentialFeatures(20, kind="taylor"),
        ExponentialFeatures(20, kind="positive"),
    ],
    expected_failed_checks=fails,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("d", "degree"), [(1, 4), (3, 4), (6, 2)])
def test_monomials_of_scikit_learn(d, degree):
    """The same, times one over the root of the factorials."""
    X = np.random.default_rng(0).standard_normal((10, d))
    theirs = PolynomialFeatures(degree).fit(X)
    weights = [np.prod([factorial(k) for k in row]) for row in theirs.powers_]
    Z = ExponentialFeatures(1000, kind="taylor", degree=degree).fit_transform(X)
    np.testing.assert_allclose(Z, theirs.transform(X) / np.sqrt(weights), rtol=1e-12)


@pytest.mark.parametrize("kind", ["taylor", *SKETCHES[:2]])
@pytest.mark.parametrize("r", [0.1, 1, 2])
def test_few_columns_need_no_sketch(kind, r):
    """The kernel itself, to rounding of its largest entry."""
    X = sphere(50, 2, r)
    maps = ExponentialFeatures(1000, kind=kind)
    Z = maps.fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, attention(X), atol=1e-14 * np.exp(r**2))
    assert maps.n_components_ == (maps.degree_ + 1) * (maps.degree_ + 2) // 2 < 1000


@each
@pytest.mark.parametrize("n_components", [1, 7, 100])
def test_rows_of_zeros(kind, n_components):
    X = sphere(20, 5)
    X[3] = 0
    maps = ExponentialFeatures(n_components, kind=kind).fit(X)
    Z = maps.transform(X)
    np.testing.assert_allclose(Z[3] @ Z[3], 1, rtol=1e-14)
    if kind != "positive":
        np.testing.assert_array_equal(Z @ Z[3], 1)
    Z = maps.fit(np.zeros((4, 5))).transform(np.zeros((2, 5)))
    np.testing.assert_allclose(Z @ Z.T, 1, rtol=1e-14)


# Put together by hand


@pytest.mark.parametrize("kind", SKETCHES)
@pytest.mark.parametrize(("d", "n_components"), [(6, 90), (40, 90), (200, 90)])
def test_sketches_put_together(kind, d, n_components):
    X = 1.3 * sphere(30, d)
    maps = ExponentialFeatures(n_components, kind=kind, random_state=5).fit(X)
    rng = np.random.default_rng(5)
    seed = rng.integers(2**63) if kind == "shared_tree" else None
    parts = [np.ones((30, 1))]
    for p in range(1, maps.degree_ + 1):
        m = maps.budget_[p]
        if m == comb(d + p - 1, p):
            start = comb(d + p - 1, d)
            every = ExponentialFeatures(10**4, kind="taylor", degree=p)
            parts.append(every.fit_transform(X)[:, start:])
        elif kind == "polynomial_count_sketch":
            sketch = PolynomialCountSketch(
                degree=p, n_components=m, random_state=int(rng.integers(2**31))
            )
            parts.append(sketch.fit_transform(X) / factorial(p) ** 0.5)
        else:
            shared = kind == "shared_tree"
            sketch = PolynomialSketch(m, d, p, shared=shared, rng=seed or rng)
            parts.append(sketch(X) / factorial(p) ** 0.5)
    np.testing.assert_allclose(maps.transform(X), np.hstack(parts), atol=1e-13)


def test_positive_features():
    X = sphere(30, 6, 1.5)
    Z = ExponentialFeatures(80, kind="positive", random_state=5).fit_transform(X)
    W = np.random.default_rng(5).standard_normal((6, 80))
    for x, z in zip(X, Z, strict=True):
        np.testing.assert_allclose(z, np.exp(x @ W - x @ x / 2) / np.sqrt(80))
    assert (Z > 0).all()


# The budget


def budget(n_components, d, square, q):
    """Return the features of each degree, what all monomials are, and the weights."""
    counts = np.array([comb(d + p - 1, p) for p in range(q + 1)], float)
    weights = scipy.stats.poisson.pmf(np.arange(q + 1), square)
    return (features._weighted_budget(n_components, counts, weights), counts, weights)


@quick
@given(
    st.integers(1, 3000), st.integers(1, 100), st.floats(1, 100), st.integers(1, 200)
)
def test_budget(n_components, d, square, q):
    sizes, counts, weights = budget(n_components, d, square, q)
    exact = sizes == counts
    assert exact[0]
    assert exact[1] or 2 * d >= n_components
    assert (sizes >= 0).all()
    assert (sizes <= counts).all()
    assert sizes.sum() == n_components or exact.all()
    shares = weights[~exact] / max(weights[~exact].sum(), 1e-300)
    off = sizes[~exact] - shares * (n_components - counts[exact].sum())
    assert (abs(off) < 1.001).all()


@pytest.mark.parametrize("square", [1, 2, 4])
@pytest.mark.parametrize("d", [2, 5, 16, 40])
@pytest.mark.parametrize("n_components", [90, 512, 2000])
def test_no_other_choice_of_exact_degrees_is_better(n_components, d, square):
    """Of all 2^8; the variance is W^2 / L as in the docstring."""
    sizes, counts, weights = budget(n_components, d, square, 9)

    def variance(exact):
        left = n_components - counts[exact].sum()
        weight = weights[~exact].sum()
        return np.inf if left < 0 else weight**2 / max(left, 1e-300)

    choices = (np.arange(256)[:, None] >> np.arange(8)) % 2 == 1
    choices = np.hstack([np.ones((256, 2), bool), choices])
    least = min(variance(choice) for choice in choices)
    assert variance(sizes == counts) <= least * (1 + 1e-12)


@pytest.mark.parametrize("lengths", [(1.5, 1.5, 1.5), (1, 1.5, 2)])
def test_budget_of_rows_of_some_lengths(lengths):
    """Nothing but degrees 0 and 1 exact: shares of the mean of exp(-r^2) r^2p / p!."""
    X = sphere(60, 64) * np.repeat(lengths, 20)[:, None]
    maps = ExponentialFeatures(1000, random_state=0).fit(X)
    assert list(maps.budget_[:2]) == [1, 64]
    p = np.arange(2, 40)[:, None]
    weights = scipy.stats.poisson.pmf(p, np.square(lengths)).mean(axis=1)
    shares = 935 * weights / weights.sum()
    assert abs(maps.budget_[2:] - shares[: maps.degree_ - 1]).max() < 1
    assert shares[maps.degree_ - 1 :].max() < 1
    assert maps.budget_.sum() == maps.n_components_ == 1000


def test_budget_of_the_paper():
    maps = ExponentialFeatures(1024, kind="shared_tree").fit(sphere(20, 16))
    assert list(maps.budget_) == [1, 16] + 7 * [143]
    maps.set_params(n_components=30).fit(sphere(20, 16))
    assert list(maps.budget_) == [1] + 8 * [3]
    maps.set_params(n_components=5).fit(sphere(20, 16))
    assert list(maps.budget_) == [1] + 4 * [1]
    maps.set_params(n_components=1000, degree=2).fit(sphere(20, 16))
    assert list(maps.budget_) == [1, 16, 983]


def test_degrees():
    """By the mean over the rows of where the tail of a Poisson distribution ends."""
    for r, degree in (0, 8), (1, 8), (1.5, 10), (2, 14):
        X = np.diag([r, r / 2, 0, 0])
        maps = ExponentialFeatures(kind="shared_tree").fit(X)
        squares = np.maximum([r, r / 2, 1, 1], 1)[:, None] ** 2
        tail = scipy.stats.poisson.sf([degree - 1, degree], squares).mean(axis=0)
        assert tail[1] <= 1e-5 < tail[0]
        assert maps.degree_ == degree
    for r in 1, 3, 10:
        maps = ExponentialFeatures(kind="taylor").fit([[r]])
        tail = scipy.stats.poisson.sf([maps.degree_ - 1, maps.degree_], r**2)
        assert tail[1] <= 2**-52 < tail[0]
    for kind in SKETCHES:
        maps = ExponentialFeatures(500, kind=kind, degree=3).fit(sphere(5, 4, 1.9))
        assert maps.degree_ == 3


# Forms of data


@each
@quick
@given(st.integers(1, 20), st.integers(1, 12), st.integers(1, 60), st.integers(0, 1000))
def test_rows_and_columns(kind, n, d, n_components, seed):
    """Rows do not know of each other, and the same seed gives the same features."""
    rng = np.random.default_rng(seed)
    X = 2 * rng.random((n, d)) / np.sqrt(d) * (rng.random((n, d)) < 0.7)
    n_components += d if kind == "taylor" else 0
    maps = ExponentialFeatures(n_components, kind=kind, random_state=seed)
    Z = maps.fit_transform(X)
    assert Z.shape == (n, maps.n_components_)
    assert maps.n_components_ <= n_components
    assert len(maps.get_feature_names_out()) == Z.shape[1]
    if kind != "positive":
        assert maps.budget_.sum() == maps.n_components_
        assert len(maps.budget_) == maps.degree_ + 1
        assert maps.budget_[-1] > 0
    np.testing.assert_array_equal(clone(maps).fit_transform(X), Z)
    order = rng.permutation(n)
    atol = 1e-13 * abs(Z).max()
    np.testing.assert_allclose(maps.transform(X[order]), Z[order], atol=atol)
    sparse = scipy.sparse.csr_array(X)
    np.testing.assert_allclose(maps.transform(sparse), Z, atol=atol)
    np.testing.assert_allclose(clone(maps).fit_transform(sparse), Z, atol=atol)


@each
@pytest.mark.parametrize("d", [5, 300])
def test_types(kind, d):
    X = sphere(20, d)
    maps = ExponentialFeatures(301, kind=kind, random_state=0)
    Z = maps.fit_transform(X)
    single = maps.fit_transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, Z, atol=1e-5)
    assert maps.transform(scipy.sparse.csc_array(X, dtype="f")).dtype == np.float32
    assert maps.transform(X.tolist()).dtype == np.float64
    assert maps.transform(np.eye(3, d, dtype=int)).dtype == np.float64


@each
def test_seeds(kind):
    X = sphere(20, 5)

    def draw(seed):
        maps = ExponentialFeatures(60, kind=kind, random_state=seed)
        return maps.fit_transform(X)

    np.testing.assert_array_equal(draw(0), draw(0))
    state = np.random.RandomState(0)
    first = draw(state)
    np.testing.assert_array_equal(first, draw(np.random.RandomState(0)))
    if kind != "taylor":
        assert (draw(0) != draw(1)).any()
        assert (first != draw(state)).any()
        assert (draw(None) != draw(None)).any()


@pytest.mark.parametrize("kind", ["taylor", *SKETCHES[:2]])
def test_the_longest_rows_of_a_given_degree(kind):
    """Of one column, so that all degrees are exact."""
    X = np.array([[37.6], [-30], [0.1]])
    maps = ExponentialFeatures(2000, kind=kind, degree=60, random_state=0)
    Z = maps.fit_transform(X)
    expected = [sum(x ** (2 * p) / factorial(p) for p in range(61)) for x in X[:, 0]]
    found = np.square(Z).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"n_components": n}, "n_components must be") for n in (0, 2.5, None)),
        *(({"degree": degree}, "degree, if not") for degree in (0, 1.5, "automatic")),
        ({"kind": "taylors"}, r"one of tensor_srht, .*; got 'taylors'"),
    ],
)
def test_impossible_options(options, message):
    maps = ExponentialFeatures(**options)
    with pytest.raises((ValueError, TypeError), match=message):
        maps.fit(sphere(10, 4))
    with pytest.raises(NotFittedError):
        maps.transform(sphere(10, 4))


def test_monomials_that_do_not_fit():
    X = sphere(10, 16)
    with pytest.raises(ValueError, match=r"degree 1 in 16 variables are 17 features"):
        ExponentialFeatures(16, kind="taylor").fit(X)
    with pytest.raises(ValueError, match=r"are 969 .* n_components=968: .*tensor_srht"):
        ExponentialFeatures(968, kind="taylor", degree=3).fit(X)
    ExponentialFeatures(17, kind="taylor").fit(X)
    ExponentialFeatures(969, kind="taylor", degree=3).fit(X)


@each
def test_rows_that_are_too_long(kind):
    X = np.eye(3)
    maps = ExponentialFeatures(20, kind=kind).fit(X)
    for dtype, square in (np.float64, 1420), (np.float32, 178):
        message = rf"norm {square}, .*{dtype.__name__} .* exp\({square // 2}\)"
        with pytest.raises(ValueError, match=message + ".*Scale the rows"):
            maps.transform((np.sqrt(square) * X).astype(dtype))
    maps.set_params(degree=2).fit(X).transform(10.1 * X)
    if kind != "positive":
        maps.set_params(degree="auto").fit(X)
        with pytest.raises(ValueError, match=r"norm 102, .*Scale .* or give a degree"):
            maps.transform(10.1 * X)
    with pytest.raises(ValueError, match="squared norm inf"):
        maps.transform(np.full((1, 3), 1e30, np.float32))
