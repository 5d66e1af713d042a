import pickle
from itertools import pairwise

import joblib
import numpy as np
import pandas
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from matrices import Recorder, asymmetric, indefinite, psd, quick
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from simlib import METHODS, Similarity, SimilarityError, anchored
from simlib.approximation.estimators import (
    SiCUR,
    SMSNystroem,
    StaCUR,
    TikhonovNystroem,
)

METHOD = {
    SMSNystroem: "sms_nystrom",
    SiCUR: "sicur",
    StaCUR: "stacur",
    TikhonovNystroem: "tikhonov",
}
OPTIONS = [
    (SMSNystroem, {}),
    (SMSNystroem, {"oversampling": 3, "alpha": 1.0}),
    (SiCUR, {}),
    (SiCUR, {"oversampling": 1}),
    (StaCUR, {}),
    (StaCUR, {"oversampling": 2}),
    (TikhonovNystroem, {}),
    (TikhonovNystroem, {"ridge": 0.1, "oversampling": 3}),
    (TikhonovNystroem, {"landmarks": "pivoted_qr"}),
    (TikhonovNystroem, {"landmarks": "adaptive"}),
]
EVERY = list(METHOD)
SYMMETRIC = [SMSNystroem, TikhonovNystroem]
CUR = [SiCUR, StaCUR]

everywhere = pytest.mark.parametrize(("Estimator", "options"), OPTIONS)
each = pytest.mark.parametrize("Estimator", EVERY)


def points(n, *, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


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
    options = estimator.get_params()
    for name in ("kernel", "kernel_params", "n_jobs", "cheap", "base_rank"):
        options.pop(name, None)
    function = METHODS[METHOD[type(estimator)]].function
    return function(
        Similarity.from_matrix(K), rng=options.pop("random_state"), **options
    )


# The contract of scikit-learn


@pytest.mark.filterwarnings("ignore:n_landmarks=100 is more:UserWarning")
@parametrize_with_checks(
    [Estimator(n_landmarks=5) for Estimator in EVERY] + [TikhonovNystroem()]
)
def test_scikit_learn(estimator, check):
    check(estimator)


# Exact answers


@pytest.mark.parametrize("Estimator", SYMMETRIC)
@pytest.mark.parametrize("kind", [indefinite, psd])
def test_signed_inner_products_are_the_approximation(Estimator, kind):
    K = kind(40)
    estimator = Estimator("precomputed", n_landmarks=10, random_state=0)
    Z = estimator.fit_transform(K)
    expected = approximation(estimator, K)
    found = (Z * estimator.signs_) @ Z.T
    np.testing.assert_allclose(
        found, expected.toarray(), atol=1e-12 * np.linalg.norm(K)
    )
    np.testing.assert_array_equal(estimator.component_indices_, expected.landmarks)
    if Estimator is TikhonovNystroem and kind is indefinite:
        assert set(estimator.signs_) == {-1, 1}
    else:
        assert set(estimator.signs_) == {1}


@pytest.mark.parametrize(
    ("estimator", "joining"),
    [
        (SiCUR(), lambda C, B, n: np.linalg.pinv(B)),
        (SiCUR(oversampling=3), lambda C, B, n: np.linalg.pinv(B)),
        (StaCUR(), lambda C, B, n: n / len(B) * np.linalg.inv(C.T @ C) @ B.T),
        (
            StaCUR(same_rows=False, oversampling=2),
            lambda C, B, n: n / len(B) * np.linalg.inv(C.T @ C) @ B.T,
        ),
    ],
)
def test_inner_products_of_cur(estimator, joining):
    """C (U U^T)^(1/2) C^T, as the docstring says; not C U R, as the paper does."""
    K = indefinite(40)
    estimator.set_params(kernel="precomputed", n_landmarks=10, random_state=0)
    Z = estimator.fit_transform(K)
    answer = approximation(estimator, K)
    C, B = K[:, answer.landmarks], K[np.ix_(answer.row_landmarks, answer.landmarks)]
    U = joining(C, B, 40)
    root = scipy.linalg.sqrtm(U @ U.T).real
    np.testing.assert_allclose(Z @ Z.T, C @ root @ C.T, atol=1e-9)
    np.testing.assert_allclose(C @ U @ K[answer.row_landmarks], answer @ np.eye(40))
    assert set(estimator.signs_) == {1}
    symmetrised = (answer.toarray() + answer.toarray().T) / 2
    assert np.linalg.norm(Z @ Z.T - symmetrised) > 0.5 * np.linalg.norm(symmetrised)


def test_cur_loses_the_signs_and_nothing_else_where_the_joining_matrix_is_symmetric():
    K = indefinite(40)
    estimator = SiCUR("precomputed", n_landmarks=10, oversampling=1, random_state=0)
    Z = estimator.fit_transform(K)
    S = estimator.component_indices_
    values, vectors = np.linalg.eigh(K[np.ix_(S, S)])
    absolute = (K[:, S] @ vectors / np.abs(values)) @ (K[:, S] @ vectors).T
    np.testing.assert_allclose(Z @ Z.T, absolute, atol=1e-9)


def test_cur_shrinks_a_positive_semidefinite_matrix():
    K = psd(600, rank=5)
    Z = SiCUR("precomputed", n_landmarks=100, random_state=0).fit_transform(K)
    scale = np.vdot(Z @ Z.T, K) / np.vdot(K, K)
    assert scale == pytest.approx(2**-0.5, rel=0.05)


def test_all_landmarks_give_the_matrix():
    K = indefinite(30)
    estimator = TikhonovNystroem("precomputed", n_landmarks=30, random_state=0)
    Z = estimator.fit_transform(K)
    np.testing.assert_allclose((Z * estimator.signs_) @ Z.T, K, atol=1e-10)


def test_new_items_of_a_matrix_of_low_rank():
    """Fitted on some of the items, the features give the matrix of all of them."""
    K = indefinite(60, rank=6)
    estimator = TikhonovNystroem("precomputed", n_landmarks=10, random_state=0)
    Z = estimator.fit(K[:40, :40]).transform(K[:, :40])
    np.testing.assert_allclose((Z * estimator.signs_) @ Z.T, K, atol=1e-8)


@pytest.mark.parametrize("Estimator", SYMMETRIC)
def test_the_same_as_scikit_learn_on_a_positive_semidefinite_kernel(Estimator):
    X, new = points(50), points(20, seed=1)
    ours = Estimator(
        n_landmarks=12, kernel_params={"gamma": 1.0}, oversampling=1, random_state=0
    )
    if Estimator is TikhonovNystroem:
        ours.set_params(ridge=0)
    Z = ours.fit_transform(X)
    theirs = Nystroem(gamma=1.0, n_components=12, random_state=0)
    Y = theirs.fit(X[ours.component_indices_]).transform(np.vstack([X, new]))
    Z = np.vstack([Z, ours.transform(new)])
    np.testing.assert_allclose(Z @ Z.T, Y @ Y.T, atol=1e-10)


# Every way to give a similarity


@everywhere
def test_one_matrix_given_in_four_ways(Estimator, options):
    X, new = points(30), points(5, seed=1)
    K, K_new = (pairwise_kernels(A, X, metric="rbf", gamma=0.25) for A in (X, new))
    products = []
    for kernel, params, items, new_items in [
        ("rbf", {"gamma": 0.25}, X, new),
        (gaussian, None, X, new),
        (gaussian, None, list(X), list(new)),
        ("precomputed", None, K, K_new),
    ]:
        estimator = Estimator(
            kernel, n_landmarks=6, kernel_params=params, random_state=0, **options
        )
        Z = estimator.fit_transform(items)
        assert Z.shape == (30, 6)
        np.testing.assert_allclose(estimator.transform(items), Z, atol=1e-12)
        np.testing.assert_allclose(estimator.fit(items).transform(items), Z, atol=1e-12)
        Z = np.vstack([Z, estimator.transform(new_items)])
        products.append((Z * estimator.signs_) @ Z.T)
    for product in products[1:]:
        np.testing.assert_allclose(product, products[0], atol=1e-10)


@quick
@given(
    Estimator=st.sampled_from(EVERY),
    n=st.integers(1, 25),
    share=st.floats(0, 1),
    oversampling=st.floats(1, 4),
    seed=st.integers(0, 99),
)
def test_any_size(Estimator, n, share, oversampling, seed):
    K = indefinite(n, seed=seed)
    s = max(1, round(share * n))
    estimator = Estimator(
        Recorder(K), n_landmarks=s, oversampling=oversampling, random_state=seed
    )
    Z = estimator.fit_transform(np.arange(n))
    assert Z.shape == (n, s)
    calls = METHODS[METHOD[Estimator]].calls(n, s, oversampling=oversampling)
    assert estimator.n_calls_ == calls
    again = estimator.transform(np.arange(n))
    np.testing.assert_allclose(again, Z, atol=1e-9 * np.abs(Z).max())


@pytest.mark.parametrize(
    "name", ["cosine", "laplacian", "linear", "poly", "polynomial", "sigmoid", "chi2"]
)
def test_named_kernels(name):
    X = np.abs(points(20))
    estimator = TikhonovNystroem(name, n_landmarks=20, random_state=0)
    Z = estimator.fit_transform(X)
    K = pairwise_kernels(X, metric=name)
    np.testing.assert_allclose((Z * estimator.signs_) @ Z.T, K, atol=1e-4)
    again = estimator.transform(X)
    np.testing.assert_allclose((again * estimator.signs_) @ again.T, K, atol=1e-4)


@each
@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_sparse_data(Estimator, form):
    X = points(30) * (points(30, seed=1) > 0)
    estimator = Estimator(n_landmarks=5, random_state=0)
    Z = estimator.fit_transform(X)
    sparse = clone(estimator)
    np.testing.assert_allclose(sparse.fit_transform(form(X)), Z, atol=1e-12)
    np.testing.assert_allclose(sparse.transform(form(X)), Z, atol=1e-12)
    assert scipy.sparse.issparse(sparse.components_)
    np.testing.assert_array_equal(sparse.components_.toarray(), estimator.components_)


@each
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_single_precision(Estimator, kernel):
    X = points(30, d=30)
    X = X + X.T
    single, double = (
        Estimator(kernel, n_landmarks=5, random_state=0).fit(X.astype(dtype))
        for dtype in (np.float32, np.float64)
    )
    for Z in (single.fit_transform(X.astype("f")), single.transform(X.astype("f"))):
        assert Z.dtype == np.float32
        expected = double.transform(X)
        product = (expected * double.signs_) @ expected.T
        np.testing.assert_allclose(
            (Z * single.signs_) @ Z.T, product, atol=1e-4 * np.abs(product).max()
        )
    assert single.normalization_.dtype == single.signs_.dtype == np.float32
    assert double.transform(X).dtype == np.float64


@each
def test_parallel_evaluation(Estimator):
    X, _ = words(20)
    estimator = Estimator(jaccard, n_landmarks=5, random_state=0).fit(X)
    parallel = clone(estimator).set_params(n_jobs=2)
    with joblib.parallel_config("threading"):
        np.testing.assert_array_equal(
            parallel.fit(X).transform(X), estimator.transform(X)
        )
    assert parallel.n_calls_ == estimator.n_calls_


# What it costs


@everywhere
def test_calls(Estimator, options):
    K = indefinite(30)
    recorder = Recorder(K)
    estimator = Estimator(recorder, n_landmarks=6, random_state=0, **options)
    estimator.fit_transform(np.arange(30))
    expected = METHODS[METHOD[Estimator]].calls(30, 6, **options)
    assert estimator.n_calls_ == len(recorder.asked) == expected
    assert len(set(recorder.unordered)) == expected

    recorder.asked.clear()
    estimator.transform(np.array([3, 7, 9]))
    landmarks = estimator.component_indices_
    assert sorted(recorder.asked) == sorted(
        (i, j) for i in (3, 7, 9) for j in landmarks
    )
    estimator.transform(np.arange(0))
    assert len(recorder.asked) == 18


def test_calls_of_independent_rows():
    recorder = Recorder(indefinite(30))
    estimator = StaCUR(recorder, n_landmarks=6, same_rows=False, random_state=0)
    estimator.fit(np.arange(30))
    most = METHODS["stacur"].calls(30, 6, same_rows=False)
    assert estimator.n_calls_ == len(set(recorder.unordered)) == len(recorder.asked)
    assert METHODS["stacur"].calls(30, 6) < estimator.n_calls_ <= most


@each
def test_precomputed_reads_what_a_callable_is_asked(Estimator):
    K = indefinite(30)
    estimator = Estimator("precomputed", n_landmarks=6, random_state=0).fit(K)
    assert estimator.n_calls_ == METHODS[METHOD[Estimator]].calls(30, 6)
    unread = np.setdiff1d(np.arange(30), estimator.component_indices_)
    other = K.copy()
    other[:, unread] = 99.0
    np.testing.assert_array_equal(estimator.transform(other), estimator.transform(K))


@each
def test_only_the_landmarks_are_kept(Estimator):
    items = [f"item number {k}." for k in range(50)]
    estimator = Estimator(jaccard, n_landmarks=5, random_state=0).fit(items)
    landmarks = [items[k] for k in estimator.component_indices_]
    assert estimator.components_ == landmarks
    kept = pickle.dumps(estimator)
    assert [item for item in items if item.encode() in kept] == sorted(
        landmarks, key=items.index
    )
    X = points(50)
    estimator = Estimator(n_landmarks=5, random_state=0).fit(X)
    np.testing.assert_array_equal(
        estimator.components_, X[estimator.component_indices_]
    )
    assert estimator.components_.base is None
    estimator = Estimator("precomputed", n_landmarks=5).fit(X @ X.T)
    assert estimator.components_ is None


@each
def test_more_landmarks_than_items(Estimator):
    K = psd(8)
    estimator = Estimator("precomputed", n_landmarks=9)
    with pytest.warns(UserWarning, match="n_landmarks=9 is more than the 8 items"):
        Z = estimator.fit_transform(K)
    assert Z.shape == (8, 8)
    assert sorted(estimator.component_indices_) == list(range(8))
    assert estimator.n_landmarks == 9


# Items of any kind


@each
def test_strings(Estimator):
    similarity = fuzz.ratio
    X, y = words(60)
    model = make_pipeline(
        Estimator(similarity, n_landmarks=15, random_state=0),
        LogisticRegression(max_iter=10_000),
    )
    model.fit(X[:40], y[:40])
    assert model.score(X[40:], y[40:]) >= 0.9
    Z = model[0].transform(["similarity"])
    row = np.array([[similarity("similarity", x) for x in model[0].components_]])
    np.testing.assert_allclose(Z, row @ model[0].normalization_)


def word_mover_kernel(x, y, *, distance, gamma):
    return np.exp(-gamma * distance(x, y))


@each
def test_lists_of_words(Estimator):
    from simlib.text.wmd import WordMoverDistance

    vectors = {letter: np.array([float(k)]) for k, letter in enumerate("abcdefghi")}
    X, y = words(60)
    X = [list(x) for x in X]
    params = {"distance": WordMoverDistance(vectors), "gamma": 0.5}
    estimator = Estimator(
        word_mover_kernel, n_landmarks=15, kernel_params=params, random_state=0
    )
    model = make_pipeline(estimator, LogisticRegression(max_iter=10_000))
    model.fit(X[:40], y[:40])
    assert model.score(X[40:], y[40:]) >= 0.9
    assert not hasattr(model[0], "n_features_in_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@each
def test_containers(Estimator):
    """A list, a tuple, an array of strings and one of objects are the same items."""
    X, _ = words(20)
    estimator = Estimator(jaccard, n_landmarks=5, random_state=0)
    expected = estimator.fit_transform(X)
    for items in (tuple(X), np.array(X), np.array(X, dtype=object)):
        np.testing.assert_array_equal(estimator.fit_transform(items), expected)
        np.testing.assert_allclose(estimator.transform(items), expected)
        assert list(estimator.components_) == [
            X[k] for k in estimator.component_indices_
        ]
    records = [{"name": x} for x in X]
    estimator.set_params(kernel=lambda x, y: jaccard(x["name"], y["name"]))
    np.testing.assert_array_equal(estimator.fit_transform(records), expected)


def frame_of(columns):
    """Return a data frame whose index is not the order of the rows."""
    frame = pandas.DataFrame(columns)
    return frame.set_index(frame.index[::-1])


@each
def test_a_callable_on_data_frames(Estimator):
    X, _ = words(20)
    frame = frame_of({"word": X, "length": [len(x) for x in X]})
    estimator = Estimator(jaccard, n_landmarks=5, random_state=0)
    expected = estimator.fit_transform(X)
    np.testing.assert_array_equal(estimator.fit_transform(frame["word"]), expected)
    np.testing.assert_allclose(estimator.transform(frame["word"]), expected)
    assert not hasattr(estimator, "n_features_in_")

    estimator.set_params(kernel=lambda x, y: jaccard(x[0], y[0]))
    np.testing.assert_array_equal(estimator.fit_transform(frame), expected)
    np.testing.assert_allclose(estimator.transform(frame), expected)
    assert estimator.n_features_in_ == 2
    assert list(estimator.feature_names_in_) == ["word", "length"]
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.transform(frame[["length", "word"]])


@each
@pytest.mark.parametrize("kernel", ["rbf", gaussian])
def test_set_output(Estimator, kernel):
    X = points(20)
    frame = frame_of(dict(zip("abcd", X.T, strict=True)))
    estimator = Estimator(kernel, n_landmarks=5, random_state=0)
    expected = estimator.fit_transform(X)
    estimator.set_output(transform="pandas")
    for Z in (estimator.fit_transform(frame), estimator.transform(frame)):
        assert type(Z) is type(frame)
        assert list(Z.columns) == list(estimator.get_feature_names_out())
        np.testing.assert_allclose(Z.to_numpy(), expected)
    assert list(estimator.feature_names_in_) == list("abcd")


@each
def test_feature_names(Estimator):
    estimator = Estimator(n_landmarks=3).fit(points(10))
    name = Estimator.__name__.lower()
    assert list(estimator.get_feature_names_out()) == [f"{name}{k}" for k in range(3)]


# Choices by cross-validation


@each
def test_grid_search_on_strings(Estimator):
    X, y = words(40)
    model = make_pipeline(Estimator(jaccard, random_state=0), LogisticRegression())
    name = Estimator.__name__.lower()
    grid = {
        f"{name}__n_landmarks": [2, 8],
        f"{name}__kernel_params": [None, {"power": 2}],
    }
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ >= 0.8
    best = search.best_estimator_[0]
    assert len(best.components_) == best.n_landmarks
    assert search.predict(["abc", "ghi"]).tolist() == [0, 1]


@each
def test_grid_search_on_a_precomputed_matrix(Estimator):
    """Rows and columns are cut, so the scores are those of the items."""
    X, y = words(40)
    K = np.array([[jaccard(a, b) for b in X] for a in X])
    scores = []
    for kernel, items in ((jaccard, X), ("precomputed", K)):
        estimator = Estimator(kernel, random_state=0)
        assert get_tags(estimator).input_tags.pairwise == (kernel == "precomputed")
        model = make_pipeline(estimator, LogisticRegression())
        grid = {f"{Estimator.__name__.lower()}__n_landmarks": [2, 8]}
        search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(items, y)
        scores.append(search.cv_results_["mean_test_score"])
    np.testing.assert_allclose(scores[0], scores[1])


@each
def test_clone_and_pickle(Estimator):
    X, _ = words(20)
    estimator = Estimator(
        jaccard,
        n_landmarks=5,
        kernel_params={"power": 2},
        random_state=0,
        oversampling=3,
    )
    Z = estimator.fit_transform(X)
    assert clone(estimator).get_params() == estimator.get_params()
    np.testing.assert_array_equal(clone(estimator).fit_transform(X), Z)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(estimator)).transform(X), Z)


# Randomness


@each
def test_random_state(Estimator):
    K = indefinite(40)

    def landmarks(state):
        estimator = Estimator("precomputed", n_landmarks=10, random_state=state)
        return estimator.fit(K).component_indices_.tolist()

    assert landmarks(0) == landmarks(0) != landmarks(1)
    assert landmarks(None) != landmarks(None)
    state, same = np.random.RandomState(0), np.random.RandomState(0)
    first, second = landmarks(state), landmarks(state)
    assert first != second
    assert [landmarks(same), landmarks(same)] == [first, second]


# Errors


@each
def test_errors(Estimator):
    X = points(20)
    with pytest.raises(NotFittedError):
        Estimator().transform(X)
    with pytest.raises(NotFittedError):
        Estimator().get_feature_names_out()
    with pytest.raises(ValueError, match=r"one of .*rbf.*; got 'rfb'"):
        Estimator("rfb", n_landmarks=5).fit(X)
    failed = Estimator(n_landmarks=0)
    with pytest.raises(ValueError, match="between 1 and 20"):
        failed.fit(X)
    with pytest.raises(NotFittedError):
        failed.transform(X)
    with pytest.raises(ValueError, match="string"):
        Estimator(n_landmarks=5).fit([["a"], ["b"]])
    with pytest.raises(ValueError, match="oversampling must be at least 1"):
        Estimator(n_landmarks=5, oversampling=0.5).fit(X)
    with pytest.raises(SimilarityError, match="unexpected keyword argument 'sigma'"):
        Estimator(gaussian, n_landmarks=5, kernel_params={"sigma": 1}).fit(X)
    with pytest.raises(SimilarityError, match="unexpected keyword argument 'sigma'"):
        Estimator(n_landmarks=5, kernel_params={"sigma": 1}).fit(X)
    estimator = Estimator(gaussian, n_landmarks=5).fit(X)
    with pytest.raises(SimilarityError, match="nan for items 0 and 2"):
        estimator.transform(np.full((2, 4), np.nan))
    with pytest.raises(ValueError, match="expecting 4 features"):
        estimator.transform(X[:, :3])
    estimator = Estimator("precomputed", n_landmarks=5)
    with pytest.raises(ValueError, match="square"):
        estimator.fit(X)
    with pytest.raises(ValueError, match=r"symmetric; use \(K \+ K.T\)/2"):
        estimator.fit(asymmetric(20))
    with pytest.raises(TypeError, match=r"(?i)sparse"):
        estimator.fit(scipy.sparse.csr_array(psd(20)))
    with pytest.raises(ValueError, match="expecting 20 features"):
        estimator.fit(X @ X.T).transform(X[:3] @ X[:10].T)


def test_errors_of_the_options():
    K = indefinite(20)
    with pytest.raises(ValueError, match="alpha must be"):
        SMSNystroem("precomputed", n_landmarks=5, alpha=-1).fit(K)
    with pytest.raises(ValueError, match="ridge must be"):
        TikhonovNystroem("precomputed", n_landmarks=5, ridge=-1).fit(K)
    with pytest.raises(ValueError, match="landmarks must be"):
        TikhonovNystroem("precomputed", n_landmarks=5, landmarks="best").fit(K)


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
    model = TikhonovNystroem(
        kernel, n_landmarks=8, cheap=cheap, base_rank=30, random_state=0
    )
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
    np.testing.assert_allclose((Z * model.signs_) @ Z.T, expected.toarray(), atol=1e-8)
    np.testing.assert_allclose(model.transform(X), Z, atol=1e-8)
    again = (
        pickle.loads(pickle.dumps(model)) if kind != "names" else clone(model).fit(X)
    )
    np.testing.assert_allclose(again.transform(X[:5]), Z[:5], atol=1e-8)
    if kind != "names":  # those of a named kernel count both halves of small tiles
        assert model.n_calls_ == expected.calls


def test_cheap_kernel_that_does_not_help():
    X = points(60)
    model, plain = (
        TikhonovNystroem(gaussian, n_landmarks=20, cheap=cheap, random_state=0).fit(X)
        for cheap in (noise, None)
    )
    assert len(model.base_components_) == 0
    assert model.transform(X[:7]).shape == (7, 20)
    np.testing.assert_array_equal(model.component_indices_, plain.component_indices_)


def noise(x, y):
    """A number that depends on both items, and on nothing that matters."""
    return np.sin(1e4 * (x @ x + y @ y))


def test_errors_of_a_cheap_kernel():
    X = points(20)
    with pytest.raises(ValueError, match="needs items, not a precomputed"):
        TikhonovNystroem("precomputed", n_landmarks=3, cheap="rbf").fit(X @ X.T)
    with pytest.raises(ValueError, match="needs items, not a precomputed"):
        TikhonovNystroem("rbf", n_landmarks=3, cheap="precomputed").fit(X)
    with pytest.raises(ValueError, match='leave ridge="cv"'):
        TikhonovNystroem("rbf", n_landmarks=3, cheap="linear", ridge=0.1).fit(X)
    with pytest.raises(ValueError, match=r"kernel must be a callable.*'cosin'"):
        TikhonovNystroem("rbf", n_landmarks=3, cheap="cosin").fit(X)
    with pytest.raises(ValueError, match="string"):
        TikhonovNystroem(jaccard, n_landmarks=3, cheap="rbf").fit(words(20)[0])


def test_a_fit_that_failed_says_what_is_lost():
    def fragile(x, y):
        return 1 / (x + y - 30)

    with pytest.raises(SimilarityError, match="raised ZeroDivisionError") as caught:
        TikhonovNystroem(fragile, n_landmarks=5, random_state=0).fit(range(20))
    assert "keeps nothing of a fit that failed" in caught.value.__notes__[0]
