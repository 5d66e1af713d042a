import pickle
from itertools import pairwise

import numpy as np
import pandas
import pytest
import scipy.linalg
import scipy.sparse
import scipy.spatial
from numpy.testing import assert_allclose, assert_array_equal
from rapidfuzz.distance import Levenshtein
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from simlib import (
    METHODS,
    BudgetExceeded,
    Similarity,
    SimilarityError,
    SimilarityFeatures,
    anchored,
)
from support.matrices import Recorder, asymmetric, indefinite, psd

OPTIONS = [
    ("nystrom", {}),
    ("sms_nystrom", {}),
    ("sms_nystrom", {"oversampling": 3, "alpha": 1.0}),
    ("skeleton", {}),
    ("sicur", {}),
    ("sicur", {"oversampling": 1}),
    ("sicur", {"symmetrize": True, "oversampling": 1}),
    ("stacur", {}),
    ("stacur", {"oversampling": 2}),
    ("rpcholesky", {}),
    ("tikhonov", {}),
    ("tikhonov", {"ridge": 0.1, "oversampling": 3}),
    ("tikhonov", {"landmarks": "pivoted_qr"}),
    ("tikhonov", {"landmarks": "adaptive"}),
]
PAPER = ["sms_nystrom", "sicur", "stacur", "tikhonov"]

everywhere = pytest.mark.parametrize(("method", "options"), OPTIONS)
each = pytest.mark.parametrize("method", PAPER)


def features(method, kernel="rbf", **options):
    """Return the estimator; options that are not its own go to the method."""
    own = set(SimilarityFeatures().get_params())
    of_method = {name: options.pop(name) for name in set(options) - own}
    return SimilarityFeatures(
        kernel, method=method, method_params=of_method or None, **options
    )


def points(n, *, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def gaussians(xs, ys):
    return np.exp(-np.square(np.subtract(xs, ys)).sum(axis=1) / 4)


def words(n, *, seed=0):
    """Two classes of words, told apart by their letters."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    alphabets = np.array([list("abcdef"), list("defghi")])
    return ["".join(rng.choice(alphabets[label], 6)) for label in y], y


def jaccard(x, y, power=1):
    return (len(set(x) & set(y)) / len(set(x) | set(y))) ** power


def gaussian(x, y):
    return np.exp(-np.square(x - y).sum() / 4)


def approximation(estimator, K):
    """Return what the function of the same name answers with the same draw."""
    return METHODS[estimator.method].function(
        Similarity.from_matrix(K),
        estimator.n_landmarks,
        rng=estimator.random_state,
        **(estimator.method_params or {}),
    )


@pytest.mark.filterwarnings("ignore:n_landmarks=100 is more:UserWarning")
@parametrize_with_checks(
    [
        SimilarityFeatures(),
        SimilarityFeatures(method="sms_nystrom", n_landmarks=5),
        SimilarityFeatures(method="stacur", n_landmarks=5),
        SimilarityFeatures("linear", cheap="rbf", n_landmarks=3),
        SimilarityFeatures("precomputed", n_landmarks=1),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", ["sms_nystrom", "tikhonov"])
@pytest.mark.parametrize("kind", [indefinite, psd])
def test_signed_inner_products_are_the_approximation(method, kind):
    K = kind(40)
    estimator = features(method, "precomputed", n_landmarks=10, random_state=0)
    Z = estimator.fit_transform(K)
    expected = approximation(estimator, K)
    found = (Z * estimator.signs_) @ Z.T
    assert_allclose(found, expected.toarray(), atol=1e-12 * np.linalg.norm(K))
    assert_array_equal(estimator.component_indices_, expected.landmarks)
    if method == "tikhonov" and kind is indefinite:
        assert set(estimator.signs_) == {-1, 1}
    else:
        assert set(estimator.signs_) == {1}


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("sicur", {}),
        ("sicur", {"oversampling": 3}),
        ("stacur", {}),
        ("stacur", {"same_rows": False, "oversampling": 2}),
    ],
)
def test_inner_products_of_cur(method, options):
    """C (U U^T)^(1/2) C^T, as the docstring says; not C U R, as the paper does."""
    K, options = indefinite(40), {"n_landmarks": 10, "random_state": 0, **options}
    estimator = features(method, "precomputed", **options)
    Z = estimator.fit_transform(K)
    answer = approximation(estimator, K)
    C, B = K[:, answer.landmarks], K[np.ix_(answer.row_landmarks, answer.landmarks)]
    U = np.linalg.pinv(B)
    if method == "stacur":
        U = 40 / len(B) * np.linalg.inv(C.T @ C) @ B.T
    root = scipy.linalg.sqrtm(U @ U.T).real
    assert_allclose(Z @ Z.T, C @ root @ C.T, atol=1e-9)
    assert_allclose(C @ U @ K[answer.row_landmarks], answer @ np.eye(40))
    assert set(estimator.signs_) == {1}
    symmetrised = (answer.toarray() + answer.toarray().T) / 2
    assert np.linalg.norm(Z @ Z.T - symmetrised) > 0.5 * np.linalg.norm(symmetrised)


def test_new_items_of_a_matrix_of_low_rank():
    """Fitted on some of the items, the features give the matrix of all of them."""
    K = indefinite(60, rank=6)
    estimator = SimilarityFeatures("precomputed", n_landmarks=10, random_state=0)
    Z = estimator.fit(K[:40, :40]).transform(K[:, :40])
    assert_allclose((Z * estimator.signs_) @ Z.T, K, atol=1e-8)


# Every way to give a similarity


@everywhere
def test_one_matrix_given_in_every_way(method, options):
    X, new = points(30), points(5, seed=1)
    K, K_new = (pairwise_kernels(A, X, metric="rbf", gamma=0.25) for A in (X, new))
    products = []
    sim = Similarity(np.vstack([X, new]), gaussian)
    for kernel, batch, params, items, new_items in [
        ("rbf", None, {"gamma": 0.25}, X, new),
        (gaussian, None, None, X, new),
        (gaussian, None, None, list(X), list(new)),
        (gaussians, "pairs", None, X, new),
        (pairwise_kernels, "block", {"metric": "rbf", "gamma": 0.25}, X, new),
        ("precomputed", None, None, K, K_new),
        (sim, None, None, np.arange(30), np.arange(30, 35)),
        (sim.map(np.square).map(np.sqrt), None, None, range(30), [[30], [34]]),
    ]:
        given = {"batch": batch, "kernel_params": params, "random_state": 0}
        estimator = features(method, kernel, n_landmarks=6, **given, **options)
        if isinstance(kernel, Similarity):
            assert clone(estimator).kernel is kernel
        Z = estimator.fit_transform(items)
        assert Z.shape == (30, 6)
        assert_allclose(estimator.transform(items), Z, atol=1e-12)
        assert_allclose(estimator.fit(items).transform(items), Z, atol=1e-12)
        Z = np.vstack([Z, estimator.transform(new_items)])
        products.append((Z * estimator.signs_) @ Z.T)
    few = np.append(np.arange(31), 34)
    for product in products[1:-1]:
        assert_allclose(product, products[0], atol=1e-10)
    assert_allclose(products[-1], products[0][np.ix_(few, few)], atol=1e-10)


def test_rbf_of_rows_far_from_zero():
    """Seconds since 1970, say; inner products would leave no digit of distances."""
    X = 1.6e9 + np.round(100 * points(40), 2)
    K = np.exp(-scipy.spatial.distance.cdist(X, X, "sqeuclidean") / 1e4)
    estimator = features("rpcholesky", kernel_params={"gamma": 1e-4}, n_landmarks=40)
    Z = estimator.fit_transform(X)
    assert_allclose(Z @ Z.T, K, atol=1e-10)
    assert_allclose(estimator.transform(X), Z, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_rbf_of_repeated_rows_is_positive_semidefinite(seed):
    X = 150 + np.repeat(points(100, seed=seed), 2, axis=0)
    options = {"kernel_params": {"gamma": 1.0}, "random_state": seed}
    estimator = features("rpcholesky", n_landmarks=150, **options)
    assert estimator.fit(X).transform(X).shape == (200, 100)


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_sparse_data(form):
    X = points(30) * (points(30, seed=1) > 0)
    estimator = SimilarityFeatures(n_landmarks=5, random_state=0)
    Z = estimator.fit_transform(X)
    sparse = clone(estimator)
    assert_allclose(sparse.fit_transform(form(X)), Z, atol=1e-12)
    assert_allclose(sparse.transform(form(X)), Z, atol=1e-12)
    assert scipy.sparse.issparse(sparse.components_)
    assert_array_equal(sparse.components_.toarray(), estimator.components_)


@each
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_single_precision(method, kernel):
    X = points(30, d=30)
    X = X + X.T
    single, double = (
        features(method, kernel, n_landmarks=5, random_state=0).fit(X.astype(dtype))
        for dtype in (np.float32, np.float64)
    )
    for Z in (single.fit_transform(X.astype("f")), single.transform(X.astype("f"))):
        assert Z.dtype == np.float32
        expected = double.transform(X)
        product = (expected * double.signs_) @ expected.T
        assert_allclose(
            (Z * single.signs_) @ Z.T, product, atol=1e-4 * np.abs(product).max()
        )
    assert single.normalization_.dtype == single.signs_.dtype == np.float32
    assert double.transform(X).dtype == np.float64


@everywhere
def test_calls(method, options):
    if method == "skeleton":
        pytest.skip("the draws are independent: the formula is the most")
    K = psd(30) if method == "rpcholesky" else indefinite(30)
    recorder = Recorder(K)
    estimator = features(method, recorder, n_landmarks=6, random_state=0, **options)
    estimator.fit_transform(np.arange(30))
    expected = METHODS[method].calls(30, 6, **options)
    assert estimator.n_calls_ == len(set(recorder.unordered)) == expected
    checks = len(recorder.asked) - expected  # both orders of some pairs
    assert checks == expected // 50

    recorder.asked.clear()
    estimator.transform(np.array([3, 7, 9]))
    landmarks = estimator.component_indices_
    assert sorted(recorder.asked) == sorted(
        (i, j) for i in (3, 7, 9) for j in landmarks
    )
    estimator.transform(np.arange(0))
    assert len(recorder.asked) == 18


class Words:
    """The similarity of two of some words by their numbers, and what was asked."""

    def __init__(self, items, function):
        self.items, self.function, self.asked = items, function, []

    def __call__(self, i, j):
        self.asked.append((min(i, j), max(i, j)))
        return self.function(self.items[i], self.items[j])


@pytest.mark.parametrize("with_cheap", [False, True])
def test_a_grid_search_on_one_similarity(with_cheap):
    """What one fold has paid for the others find known, and so do new items."""
    X, y = words(60)
    X += ["abcdef", "defghi"]
    dear, cheap = Words(X, edit_similarity), Words(X, bigrams)
    sim = Similarity(np.arange(62), dear, check_symmetry=False)
    estimator = SimilarityFeatures(sim, random_state=0)
    if with_cheap:
        companion = Similarity(np.arange(62), cheap)
        estimator.set_params(cheap=companion, method_params={"base_rank": 10})
    model = make_pipeline(estimator, LogisticRegression())
    grid = {
        "similarityfeatures__n_landmarks": [2, 8],
        "similarityfeatures__method": ["tikhonov"] if with_cheap else PAPER,
    }
    search = GridSearchCV(model, grid, cv=3, error_score="raise")
    search.fit(np.arange(60), y)
    assert search.best_score_ >= 0.8
    assert search.best_estimator_[0].kernel is sim
    fitted = sim.calls
    assert fitted == len(dear.asked) == len(set(dear.asked)) < 61 * 60 / 2
    assert search.predict([60, 61]).tolist() == [0, 1]
    n_landmarks = search.best_params_["similarityfeatures__n_landmarks"]
    assert sim.calls == fitted + 2 * n_landmarks
    search.predict(np.arange(62))
    assert sim.calls == len(dear.asked) == len(set(dear.asked))
    assert bool(cheap.asked) == with_cheap


def test_calls_of_a_fit_on_what_is_known():
    recorder = Recorder(indefinite(30))
    sim = Similarity(range(40), recorder, limit=200)
    some = np.arange(5, 30)
    first = SimilarityFeatures(sim, n_landmarks=4, random_state=0).fit(some)
    assert first.n_calls_ == sim.calls == METHODS["tikhonov"].calls(25, 4)
    again = clone(first).fit(some)
    assert again.n_calls_ == 0
    assert first.components_.tolist() == (first.component_indices_ + 5).tolist()
    made = sim.calls
    with pytest.raises(BudgetExceeded, match=r"of which [1-9]\d? would fit"):
        clone(first).set_params(n_landmarks=20).fit(some)
    assert sim.calls == made


@each
def test_precomputed_reads_what_a_callable_is_asked(method):
    K = indefinite(30)
    estimator = features(method, "precomputed", n_landmarks=6, random_state=0).fit(K)
    assert estimator.n_calls_ == METHODS[method].calls(30, 6)
    assert get_tags(estimator).input_tags.pairwise
    unread = np.setdiff1d(np.arange(30), estimator.component_indices_)
    other = K.copy()
    other[:, unread] = 99.0
    assert_array_equal(estimator.transform(other), estimator.transform(K))


@each
def test_only_the_landmarks_are_kept(method):
    items = [f"item number {k}." for k in range(50)]
    estimator = features(method, jaccard, n_landmarks=5, random_state=0).fit(items)
    landmarks = [items[k] for k in estimator.component_indices_]
    assert estimator.components_ == landmarks
    kept = pickle.dumps(estimator)
    assert [item for item in items if item.encode() in kept] == sorted(
        landmarks, key=items.index
    )
    X = points(50)
    estimator = features(method, n_landmarks=5, random_state=0).fit(X)
    assert_array_equal(estimator.components_, X[estimator.component_indices_])
    assert estimator.components_.base is None
    estimator = features(method, "precomputed", n_landmarks=5).fit(X @ X.T)
    assert estimator.components_ is None


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (lambda x, y: 0.0, points(9)),
        (lambda x, y: 0.0, ["a", "b", "c"]),
        ("linear", np.zeros((9, 2))),
        ("linear", scipy.sparse.csr_array((9, 2))),
        ("precomputed", np.zeros((9, 9))),
        (Similarity(range(9), lambda x, y: 0.0), range(9)),
    ],
)
def test_a_kernel_of_zeros_has_no_features(kernel, X):
    estimator = features("rpcholesky", kernel, n_landmarks=2, random_state=0)
    n = len(X) if hasattr(X, "__len__") and not scipy.sparse.issparse(X) else 9
    assert estimator.fit_transform(X).shape == (n, 0)
    assert estimator.transform(X[:2]).shape == (2, 0)


def test_more_landmarks_than_items():
    estimator = SimilarityFeatures("precomputed", n_landmarks=9)
    with pytest.warns(UserWarning, match="n_landmarks=9 is more than the 8 items"):
        assert estimator.fit_transform(psd(8)).shape == (8, 8)
    assert sorted(estimator.component_indices_) == list(range(8))


def test_random_state():
    K = indefinite(40)

    def landmarks(state):
        estimator = SimilarityFeatures("precomputed", n_landmarks=9, random_state=state)
        return estimator.fit(K).component_indices_.tolist()

    assert landmarks(0) == landmarks(0) != landmarks(1)
    state, same = np.random.RandomState(0), np.random.RandomState(0)
    first, second = landmarks(state), landmarks(state)
    assert first != second
    assert [landmarks(same), landmarks(same)] == [first, second]


# Items of any kind


@each
def test_a_callable_on_data_frames(method):
    def check(table):
        assert_array_equal(estimator.fit_transform(table), expected)
        assert_allclose(estimator.transform(table), expected)

    X, _ = words(20)
    columns = {"word": X, "length": [len(x) for x in X]}
    frame = pandas.DataFrame(columns, index=range(20)[::-1])
    estimator = features(method, jaccard, n_landmarks=5, random_state=0)
    expected = estimator.fit_transform(X)
    check(frame["word"])
    assert not hasattr(estimator, "n_features_in_")
    for table in (frame[["word"]], frame[["word"]].to_numpy()):
        check(table)
        assert estimator.n_features_in_ == 1
    columns = ColumnTransformer([("words", estimator, ["word"])])
    assert_array_equal(columns.fit_transform(frame), expected)

    estimator.set_params(kernel=lambda x, y: jaccard(x["word"], y["word"]))
    check(frame)
    assert estimator.n_features_in_ == 2
    assert list(estimator.feature_names_in_) == ["word", "length"]
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.transform(frame[["length", "word"]])
    estimator.set_params(
        kernel=lambda xs, ys: list(map(jaccard, xs["word"], ys["word"])), batch="pairs"
    )
    check(frame)


# Choices by cross-validation


LINE = points(20)
SQUARE = LINE @ LINE.T
UNKNOWN = {"kernel_params": {"sigma": 1}}
SHIFTED = {"method": "sms_nystrom", "variant": "landmarks"}


@pytest.mark.parametrize(
    ("kernel", "options", "X", "error", "message"),
    [
        ("rbf", {"batch": "rows"}, LINE, ValueError, "batch is one of pairs"),
        ("rfb", {}, LINE, ValueError, r"one of .*rbf.*; got 'rfb'"),
        ("precomputed", {}, LINE, ValueError, "square"),
        ("precomputed", {}, asymmetric(20), ValueError, r"symmetric.*\(K \+ K.T\)/2"),
        (SQUARE, {}, LINE, TypeError, 'kernel="precomputed", and pass it as X'),
        (["rbf"], {}, LINE, TypeError, "a Similarity or a name; got list"),
        (gaussian, UNKNOWN, LINE, SimilarityError, "keyword argument 'sigma'"),
        ("rbf", {"method": "tikhonow"}, LINE, ValueError, "method is one of"),
        ("rbf", {"alpha": 1}, LINE, TypeError, "tikhonov has no option alpha"),
        ("rbf", {"nugget": True}, LINE, ValueError, "take no nugget"),
        ("rbf", SHIFTED, LINE, ValueError, 'need variant="core"'),
        ("precomputed", {"cheap": "rbf"}, SQUARE, ValueError, "needs items, not a pre"),
        ("rbf", {"cheap": "precomputed"}, LINE, ValueError, "needs items, not a pre"),
        ("rbf", {"cheap": "linear", "ridge": 0.1}, LINE, TypeError, "no option ridge"),
        ("rbf", {"cheap": "linear", "method": "sicur"}, LINE, ValueError, "'sicur'"),
        ("rbf", {"method": "anchored"}, LINE, ValueError, "needs a `cheap` kernel"),
        ("rbf", {"cheap": LINE}, LINE, TypeError, "A kernel is a callable"),
        ("rbf", {"cheap": "cosin"}, LINE, ValueError, r"must be a callable.*'cosin'"),
        (Similarity(LINE, gaussian), {"cheap": "rbf"}, range(20), ValueError, "other"),
        (gaussian, {"cheap": Similarity(LINE, gaussian)}, LINE, ValueError, "other"),
    ],
)
def test_what_is_refused(kernel, options, X, error, message):
    options = {"method": "tikhonov", "n_landmarks": 5} | options
    estimator = features(options.pop("method"), kernel, **options)
    with pytest.raises(error, match=message):
        estimator.fit(X)
    with pytest.raises(NotFittedError):
        estimator.transform(X)


def test_new_items_that_are_refused():
    estimator = SimilarityFeatures(gaussian, n_landmarks=5).fit(LINE)
    with pytest.raises(SimilarityError, match="nan for new item 0 and item 0"):
        estimator.transform(np.full((2, 4), np.nan))
    with pytest.raises(ValueError, match="expecting 4 features"):
        estimator.transform(LINE[:, :3])
    estimator = SimilarityFeatures("precomputed", n_landmarks=5).fit(SQUARE)
    with pytest.raises(ValueError, match="expecting 20 features"):
        estimator.transform(SQUARE[:3, :10])


def test_errors_of_a_similarity_as_kernel():
    sim = Similarity(range(20), gaussian)
    estimator = SimilarityFeatures(sim, n_landmarks=5)
    for X in (points(20), [0.0, 1.0], [], [[0, 1], [2, 3]], ["a"], [True, False]):
        with pytest.raises(ValueError, match="X is a sequence of the numbers of its"):
            estimator.fit(X)
    for X in ([0, 20], [-1, 0]):
        with pytest.raises(IndexError, match="numbered 0 to 19"):
            estimator.fit(X)
    with pytest.raises(ValueError, match="of a Similarity use `map`"):
        clone(estimator).set_params(kernel_params={"gamma": 1}).fit(range(20))
    estimator.set_params(kernel=Similarity(range(20), gaussian, symmetric=False))
    with pytest.raises(ValueError, match=r"sim\.symmetrized\(\)"):
        estimator.fit(range(20))
    assert sim.calls == 0


# A cheap kernel beside


def edit_similarity(x, y):
    return np.exp(-Levenshtein.distance(x, y) / 2)


def bigrams(x, y):
    x, y = (set(pairwise(f" {word} ")) for word in (x, y))
    return len(x & y) / len(x | y)


@pytest.mark.parametrize("kind", ["callables", "names", "callable and name"])
def test_cheap_kernel(kind):
    """The features are those of `anchored`, for old items and new."""
    kernel, cheap = {
        "callables": (edit_similarity, bigrams),
        "names": ("laplacian", "rbf"),
        "callable and name": (gaussian, "laplacian"),
    }[kind]
    X = words(80)[0] if kind == "callables" else points(80)
    options = {"method_params": {"base_rank": 30}, "random_state": 0}
    model = SimilarityFeatures(kernel, n_landmarks=8, cheap=cheap, **options)
    Z = model.fit_transform(X)
    K, G = (
        pairwise_kernels(X, metric=metric)
        if isinstance(metric, str)
        else np.array([[metric(x, y) for y in X] for x in X])
        for metric in (kernel, cheap)
    )
    expected = anchored(
        Similarity.from_matrix(K), 8, Similarity.from_matrix(G), base_rank=30, rng=0
    )
    assert expected.weight > 0
    assert Z.shape == (80, 38) == (80, len(model.get_feature_names_out()))
    assert (len(model.components_), len(model.base_components_)) == (8, 30)
    assert_allclose((Z * model.signs_) @ Z.T, expected.toarray(), atol=1e-8)
    assert_allclose(model.transform(X), Z, atol=1e-8)
    kept = clone(model).fit(X) if kind == "names" else pickle.loads(pickle.dumps(model))
    assert_allclose(kept.transform(X[:5]), Z[:5], atol=1e-8)
    if kind != "names":  # those of a named kernel count both halves of small tiles
        assert model.n_calls_ == expected.calls


def test_cheap_kernel_that_does_not_help():
    X = points(60)
    model, plain = (
        SimilarityFeatures(gaussian, n_landmarks=20, cheap=cheap, random_state=0).fit(X)
        for cheap in (noise, None)
    )
    assert len(model.base_components_) == 0
    assert model.transform(X[:7]).shape == (7, 20)
    assert_array_equal(model.component_indices_, plain.component_indices_)


def noise(x, y):
    """A number that depends on both items, and on nothing that matters."""
    return np.sin(1e4 * (x @ x + y @ y))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, None])
def test_a_companion_of_numbers_of_items(form):
    """The rows of an array, or a function, for all items of the similarity."""
    X = points(40)
    sim = Similarity(X, lambda x, y: np.exp(x @ y / 10))
    cheap = np.dot if form is None else form(X)
    options = {"n_landmarks": 5, "method_params": {"base_rank": 9}, "random_state": 0}
    model = SimilarityFeatures(sim, cheap=cheap, **options).fit(range(5, 30))
    given = Similarity.from_matrix(X @ X.T)
    other = SimilarityFeatures(sim, cheap=given, **options).fit(range(5, 30))
    assert model.base_components_.size == 9
    for numbers in (range(5, 30), range(30, 40)):
        assert_allclose(
            abs(model.transform(numbers)), abs(other.transform(numbers)), atol=1e-6
        )


def test_a_fit_that_failed_says_what_is_lost():
    def fragile(x, y):
        return 1 / (x + y - 30)

    with pytest.raises(SimilarityError, match="raised ZeroDivisionError") as caught:
        SimilarityFeatures(fragile, n_landmarks=5, random_state=0).fit(range(20))
    assert "keeps nothing of a fit that failed" in caught.value.__notes__[0]
    sim = Similarity(range(20), fragile)
    with pytest.raises(SimilarityError, match="raised ZeroDivisionError") as caught:
        SimilarityFeatures(sim, n_landmarks=5, random_state=0).fit(range(20))
    assert not hasattr(caught.value, "__notes__")
    assert sim.calls > 0


def test_a_fit_forgets_the_one_before():
    frame = pandas.DataFrame(LINE, columns=list("abcd"))
    model = SimilarityFeatures(gaussian, n_landmarks=2, random_state=0)
    model.set_params(cheap=np.dot).fit(frame)
    assert list(model.feature_names_in_) == list("abcd")
    assert hasattr(model, "calibration_")
    wide = list(np.hstack([LINE, LINE]))
    model.set_params(cheap=None).fit(wide)
    assert model.transform(wide[:2]).shape == (2, 2)
    for name in ("feature_names_in_", "n_features_in_", "calibration_"):
        assert not hasattr(model, name)
    assert not hasattr(model, "base_components_")


def test_a_grid_search_over_kernels_that_are_similarities():
    """They are compared as objects, and share what the distance knows."""
    x = np.random.default_rng(0).standard_normal(90)
    distance = Similarity(x, lambda a, b: abs(a - b), diagonal=0.0)
    kernels = [distance.map(lambda t, q=q: np.exp(-q * t)) for q in (0.01, 2.0)]
    model = make_pipeline(SimilarityFeatures(n_landmarks=20, random_state=0), Ridge())
    grid = {"similarityfeatures__kernel": kernels}
    search = GridSearchCV(model, grid, cv=3).fit(range(90), np.sin(3 * x))
    assert search.best_index_ == 1
    assert list(search.cv_results_["param_similarityfeatures__kernel"]) == kernels
    assert distance.calls == kernels[1].calls <= 90 * 89 / 2


@pytest.mark.parametrize("far", [0, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("gamma", [None, 0.5])
def test_one_far_item_spoils_no_similarity_of_the_others(far, gamma):
    X = np.random.default_rng(0).standard_normal((60, 3))
    X = np.vstack([X, [far, 0, 0]]) if far else X + 1e8
    K = np.exp(-(gamma or 1 / 3) * cdist(X, X, "sqeuclidean"))
    params = {} if gamma is None else {"gamma": gamma}
    model = SimilarityFeatures("rbf", n_landmarks=len(X), kernel_params=params)
    Z = model.fit_transform(X)
    assert_allclose((Z * model.signs_) @ Z.T, K, atol=1e-7)
    assert model.fit(X.astype("f4")).transform(X.astype("f4")).dtype == np.float32


def test_unlike_columns_of_numbers_are_rows_of_floats():
    """A bool beside floats, and the nullable types of pandas."""
    plain = pandas.DataFrame({"flag": [1.0, 0.0, 1.0], "x": [1.0, 2.0, 3.0]})
    model = SimilarityFeatures(
        lambda x, y: np.exp(-abs(x - y)).prod(), n_landmarks=2, random_state=0
    )
    expected = model.fit_transform(plain)
    for kinds in (
        {"flag": bool},
        {"flag": "boolean", "x": "Int64"},
        {"flag": "Int64", "x": "Float64"},
    ):
        assert_array_equal(model.fit_transform(plain.astype(kinds)), expected)


def test_a_matrix_as_kernel_is_named_in_a_search_too():
    model = make_pipeline(SimilarityFeatures(SQUARE), Ridge())
    with pytest.raises(TypeError, match="A kernel is a callable"):
        cross_val_score(model, np.eye(9), np.arange(9), error_score="raise")
