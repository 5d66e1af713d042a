import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein
from sklearn.datasets import make_swiss_roll

from simlib import estimate_spectrum
from simlib.biharmonic import heat_geodesics
from simlib.datasets import bumpy_sphere
from simlib.text.wmd import WordMoverDistance
from study import gallery
from study.datasets import load_cross_encoder, load_twitter, load_word_vectors

everywhere = pytest.mark.parametrize("name", gallery.NAMES)
GENERATED = {"gaussian", "uniform", "simulated", "swiss_roll", "sigmoid"}
ALWAYS_REAL = {"docstrings", "pairs"}


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """No data: stand-ins only."""
    monkeypatch.delenv("SIMLIB_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture(params=["bare", "data"])
def real(request):
    """Tell whether there are data, in a test with and without."""
    request.getfixturevalue(request.param)
    return request.param == "data"


@pytest.mark.usefixtures("bare")
def test_edit_similarities():
    example, plain = gallery.load("edit", 30), gallery.load("edit_plain", 30)
    words = example.similarity.items
    for i, j in ((0, 0), (0, 1), (5, 29), (12, 3)):
        distance = Levenshtein.distance(words[i], words[j])
        longest = max(len(words[i]), len(words[j]))
        assert example.matrix[i, j] == pytest.approx(np.exp(-2 * distance / longest))
        assert plain.matrix[i, j] == pytest.approx(np.exp(-distance))


@pytest.mark.usefixtures("bare")
def test_stand_in_of_the_tweets_moves_earth():
    example = gallery.load("twitter", 12)
    pixels = [
        np.array([name.split(",") for name in document], dtype=float)
        for document in example.similarity.items
    ]
    one = min(range(12), key=lambda k: len(pixels[k]))
    assert example.matrix[one, one] == pytest.approx(1)
    for other, cloud in enumerate(pixels):
        shift = np.linalg.norm(cloud.mean(axis=0) - pixels[one].mean(axis=0))
        assert example.matrix[one, other] <= np.exp(-0.3 * shift) + 1e-12


def test_swiss_roll_is_unrolled():
    """The arc length of the spiral t -> t (cos t, sin t) and the height are exact."""
    points, t = make_swiss_roll(1500, random_state=gallery.SEED)
    arc = (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2
    flat = np.column_stack([arc, points[:, 1]])[:300]
    exact = np.linalg.norm(flat[:, None] - flat, axis=-1)
    D = gallery.load("swiss_roll", 300).matrix
    assert np.corrcoef(D.ravel(), exact.ravel())[0, 1] > 0.99


@pytest.mark.usefixtures("bare")
def test_cortex_is_the_mean_of_both_orders():
    mesh = bumpy_sphere()
    items = np.random.default_rng(gallery.SEED).permutation(len(mesh.vertices))[:12]
    D = heat_geodesics(mesh.vertices, mesh.faces, items)[items]
    assert not np.array_equal(D, D.T)
    np.testing.assert_array_equal(gallery.load("cortex", 12).matrix, (D + D.T) / 2)


# Variants of the same distances


def test_tweets_are_measured_once(real):
    plain = gallery.load("twitter", 13)
    distances = -np.log(plain.matrix) / 0.3
    evaluated = plain.similarity.calls
    narrow, squared = (gallery.load(f"twitter_{k}", 13) for k in ("narrow", "squared"))
    shrink, twice = (1, 2) if real else (4, 8)
    np.testing.assert_allclose(narrow.matrix, np.exp(-0.3 * twice * distances))
    expected = np.exp(-((0.3 * shrink * distances) ** 2))
    np.testing.assert_allclose(squared.matrix, expected, atol=1e-9)
    assert narrow.similarity.calls == squared.similarity.calls == 0
    narrow.similarity.limit = 5
    assert squared.similarity.limit is None
    assert plain.similarity.calls == evaluated > 0


# Every matrix, with and without data


@everywhere
def test_matrices(name, real):
    example = gallery.load(name, 25)
    assert example.name == name
    assert name in gallery.FAMILIES[example.family]
    assert example.similarity.symmetric
    K = example.matrix
    assert K.shape == (25, 25)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    assert np.isfinite(K).all()
    assert example.matrix is K
    np.testing.assert_array_equal(example.similarity.columns([3]), K[:, [3]])
    if example.family == "distance":
        assert (K.diagonal() == 0).all()
    if example.family in ("wmd", "edit"):
        np.testing.assert_allclose(K.diagonal(), 1, atol=1e-6)
    stands_in = not real and name not in ALWAYS_REAL | GENERATED
    assert example.real == (name not in GENERATED and not stands_in)
    assert ("stand-in" in example.source) == stands_in
    assert ("generated:" in example.source) == (name in GENERATED)
    assert example.title
    assert example.title == gallery.TITLES[name] or not real


@everywhere
@pytest.mark.usefixtures("bare")
def test_nothing_is_evaluated_before_it_is_asked(name):
    n = 40 + gallery.NAMES.index(name)  # tweets of the same number share what is known
    example = gallery.load(name, n)
    assert example.similarity.calls == 0
    estimate_spectrum(example.similarity, 10, rng=0)
    assert 0 < example.similarity.calls <= 10 * 10


@pytest.mark.usefixtures("bare")
def test_sizes():
    assert gallery.load("gaussian").similarity.n == 1000
    assert gallery.load("twitter").similarity.n == 1000
    assert gallery.load("edit", 10**6).similarity.n > 500
    assert gallery.load("rte", 1).matrix.shape == (1, 1)
    assert gallery.load("swiss_roll", 10**6).similarity.n == 1500


@pytest.mark.usefixtures("bare")
def test_first_items_of_a_fixed_order():
    long, short = (gallery.load("edit", n).similarity.items for n in (50, 20))
    assert long[:20] == short


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", ["stsb", "mrpc", "rte"])
def test_cross_encoders_are_the_mean_of_both_orders(name):
    raw = load_cross_encoder(name).matrix
    K = gallery.load(name, 60).matrix
    np.testing.assert_allclose(K[3, 50], (raw[3, 50] + raw[50, 3]) / 2)
    assert gallery.load(name).similarity.n == len(raw)


@pytest.mark.usefixtures("data")
def test_tweets():
    example = gallery.load("twitter", 40)
    vectors = load_word_vectors("glove-twitter-25")
    assert len(example.similarity.items) == 40
    tweets = {tuple(words) for words in load_twitter(vectors).documents}
    assert all(tuple(words) in tweets for words in example.similarity.items)
    x, y = example.similarity.items[:2]
    expected = np.exp(-0.3 * WordMoverDistance(vectors)(x, y))
    assert example.matrix[0, 1] == pytest.approx(expected)


# Companions


COMPANIONS = {
    "wmd": {"centroid distance", "relaxed distance"},
    "distance": {"Euclidean distance"},
    "edit": {"q-gram distance"},
}
SCORERS = {"pairs": {"pixel cosine"}}
SCORERS |= {name: {"bi-encoder cosine"} for name in ("stsb", "mrpc", "rte")}


@everywhere
def test_companions(name, real):
    """Each goes with the matrix, so the items must be the same."""
    example, found = gallery.load(name, 45), gallery.companions(name, 45)
    own = SCORERS.get(name, set()) if real or name == "pairs" else set()
    assert set(found) == COMPANIONS.get(example.family, own)
    K, off = example.matrix, np.tri(45, k=-1, dtype=bool)
    for label, cheap in found.items():
        assert cheap.symmetric
        assert cheap.calls == 0
        G = cheap.block(range(45), range(45))
        np.testing.assert_allclose(G, G.T, atol=1e-6)
        sign = -1 if "distance" in label and example.family != "distance" else 1
        assert sign * np.corrcoef(G[off], K[off])[0, 1] > 0.1, label
