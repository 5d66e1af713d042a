import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.utils import estimator_checks

from simlib.datasets import WordVectors
from study.wme import WordMoversEmbedding
from support.matrices import quick

WORDS = tuple("abcdefghij")
POINTS = np.random.default_rng(0).standard_normal((10, 3)).astype(np.float32)
UNIT = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
VECTORS = WordVectors(WORDS, UNIT)
documents = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12)
TEXTS = [
    [WORDS[k] for k in np.random.default_rng(seed).integers(0, 10, 1 + seed % 7)]
    for seed in range(30)
]


def embedding(n_components=8, vectors=VECTORS, **options):
    return WordMoversEmbedding(
        vectors, n_components, **({"random_state": 0} | options)
    ).fit(TEXTS)


CHECKS = """estimator_cloneable estimator_tags_renamed valid_tag_types estimator_repr
no_attributes_set_in_init get_params_invariance set_params mixin_order"""


@pytest.mark.parametrize("name", CHECKS.split())
def test_scikit_learn(name):
    """Of the checks those that feed no numbers: documents are lists of words."""
    check = getattr(estimator_checks, f"check_{name}")
    check(name, WordMoversEmbedding(VECTORS, 5))


def test_fit_transform_is_fit_and_transform():
    Z = WordMoversEmbedding(VECTORS, 8, random_state=0).fit_transform(TEXTS)
    assert_array_equal(Z, embedding().transform(TEXTS))
    assert Z.shape == (30, 8)
    assert Z.dtype == np.float64


def test_features_are_exponentials_of_the_distances():
    fitted = embedding(gamma=0.7)
    expected = np.exp(-0.7 * fitted.distances(TEXTS)) / np.sqrt(8)
    assert_array_equal(fitted.transform(TEXTS), expected)


def program(x, component):
    """The distance of a document to a random one, by linear programming."""
    words = sorted(set(x))
    p = np.array([x.count(word) for word in words]) / len(x)
    m, n = len(words), len(component)
    points = UNIT[[WORDS.index(word) for word in words]].astype(float)
    costs = np.linalg.norm(points[:, None] - component, axis=2)
    solution = linprog(
        costs.ravel(),
        A_eq=np.vstack(
            [np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))]
        ),
        b_eq=np.concatenate([p, np.full(n, 1 / n)]),
    )
    assert solution.status == 0
    return solution.fun


@given(documents, st.integers(0, 10**6))
@quick
def test_linear_program(x, seed):
    fitted = embedding(3, max_length=6, random_state=seed)
    expected = [program(x, component) for component in fitted.components_]
    assert_allclose(fitted.distances([x])[0], expected, atol=1e-8)


def test_every_length_is_as_likely():
    lengths = [
        len(component) for component in embedding(3000, max_length=5).components_
    ]
    counts = np.bincount(lengths, minlength=6)[1:]
    assert_allclose(counts, 600, atol=5 * np.sqrt(600 * 0.8))


def test_more_features_keep_the_first():
    few, many = embedding(5), embedding(40)
    for one, other in zip(few.components_, many.components_[:5], strict=True):
        assert_array_equal(one, other)
    assert_allclose(
        few.transform(TEXTS), many.transform(TEXTS)[:, :5] * np.sqrt(8), rtol=1e-12
    )


def test_random_vectors_point_where_the_words_lie():
    """Coordinates between the least and the greatest of the fitted documents."""
    corner = WordVectors(("a", "b", "c"), np.array([[1.0, 2.0], [2.0, 1.0], [-9, -9]]))
    fitted = WordMoversEmbedding(corner, 200, random_state=0).fit([["a"], ["b"]])
    points = np.concatenate(fitted.components_)
    slopes = points[:, 0] / points[:, 1]
    assert (points > 0).all()
    assert 0.5 <= slopes.min() < 0.6
    assert 1.8 < slopes.max() <= 2
    assert_allclose(np.linalg.norm(points, axis=1), 5**0.5, rtol=1e-6)


def test_fit_looks_at_vectors_of_the_documents_only():
    """So that nothing of the test part enters the embedding."""
    fitted = WordMoversEmbedding(VECTORS, 5, random_state=0).fit([["a"], ["b", "a"]])
    few = WordVectors(("a", "b"), UNIT[:2])
    other = WordMoversEmbedding(few, 5, random_state=0).fit([["b"], ["a"]])
    for one, two in zip(fitted.components_, other.components_, strict=True):
        assert_array_equal(one, two)


def test_forms_of_a_word():
    forms = WordVectors(("a", "as", "b"), UNIT[:2], rows=[0, 0, 1])
    Z = WordMoversEmbedding(forms, 6).fit_transform([["a", "b"], ["as", "b"]])
    assert_array_equal(Z[0], Z[1])


def test_random_state():
    Z = embedding().transform(TEXTS)
    assert_array_equal(Z, embedding().transform(TEXTS))
    assert not np.array_equal(Z, embedding(random_state=1).transform(TEXTS))
    state = np.random.RandomState(5)
    first = embedding(random_state=state).transform(TEXTS)
    second = embedding(random_state=state).transform(TEXTS)
    again = embedding(random_state=np.random.RandomState(5)).transform(TEXTS)
    assert_array_equal(first, again)
    assert not np.array_equal(first, second)


@pytest.mark.slow
@pytest.mark.parametrize("n_components", [3, 5000])
def test_two_processes(n_components):
    serial = embedding(n_components, max_length=2)
    parallel = embedding(n_components, max_length=2, n_jobs=2)
    assert_array_equal(parallel.transform(TEXTS[:6]), serial.transform(TEXTS[:6]))


@pytest.mark.parametrize("exponent", [-1000, -530, 900])
def test_the_unit_of_the_vectors_does_not_matter(exponent):
    """Also where squares of lengths are no numbers."""
    vectors = {"a": np.array([1.0, 0.5]), "b": np.array([-0.25, 2.0])}
    texts = [["a"], ["a", "b"]]
    scaled = {word: np.ldexp(v, exponent) for word, v in vectors.items()}
    one, other = (
        WordMoversEmbedding(given, 4, random_state=0).fit(texts).distances(texts)
        for given in (vectors, scaled)
    )
    assert_allclose(np.ldexp(other, -exponent), one, rtol=1e-12)


def test_vectors_that_are_all_zero():
    """A random document of their length has no direction."""
    zero = {"a": [0.0, 0], "b": [0.0, 0], "c": [1.0, 0]}
    with pytest.raises(ValueError, match="are zero"):
        WordMoversEmbedding(zero, 4, random_state=0).fit([["a"], ["a", "b"]])
    fitted = WordMoversEmbedding(zero, 4, random_state=0).fit([["a"], ["c"]])
    assert np.isfinite(np.concatenate(fitted.components_)).all()


def test_documents_that_make_no_sense():
    fitted = embedding()
    for method in (fitted.fit, fitted.transform, fitted.distances):
        with pytest.raises(ValueError, match="No word of document 1 has a vector"):
            method([["a"], ["unknown"], ["b"]])
        with pytest.raises(ValueError, match="At least one document"):
            method([])
        with pytest.raises(TypeError, match="Split it into words"):
            method(["a b c"])
