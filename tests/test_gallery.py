import numpy as np
import pytest
from scipy.stats import spearmanr

from simlib import Similarity, estimate_spectrum
from simlib.approximation import negative_mass
from simlib.datasets import load_cross_encoder, load_twitter, load_word_vectors
from simlib.text import gallery
from simlib.text.wmd import WordMoverDistance

everywhere = pytest.mark.parametrize("name", gallery.NAMES)


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """No data: stand-ins only."""
    monkeypatch.delenv("SIMLIB_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def levenshtein(x, y):
    row = list(range(len(y) + 1))
    for i, a in enumerate(x, start=1):
        corner, row[0] = row[0], i
        for j, b in enumerate(y, start=1):
            change = min(row[j] + 1, row[j - 1] + 1, corner + (a != b))
            corner, row[j] = row[j], change
    return row[-1]


# Exact answers


@pytest.mark.usefixtures("bare")
def test_edit_similarity():
    example = gallery.load("edit", 30)
    words = example.similarity.items
    for i, j in ((0, 0), (0, 1), (5, 29), (12, 3)):
        longest = max(len(words[i]), len(words[j]))
        expected = np.exp(-2 * levenshtein(words[i], words[j]) / longest)
        assert example.matrix[i, j] == pytest.approx(expected)


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


# Every matrix, with and without data


def check(name, example):
    assert example.name == name
    assert example.title
    assert example.similarity.symmetric
    K = example.matrix
    assert K.shape == (25, 25)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    assert np.isfinite(K).all()
    assert example.matrix is K
    np.testing.assert_array_equal(example.similarity.columns([3]), K[:, [3]])


@everywhere
@pytest.mark.usefixtures("bare")
def test_stand_ins(name):
    example = gallery.load(name, 25)
    check(name, example)
    assert not example.real
    assert ("stand-in" in example.source) == (name not in ("gaussian", "uniform"))


@everywhere
@pytest.mark.usefixtures("data")
def test_real_matrices(name):
    example = gallery.load(name, 25)
    check(name, example)
    assert example.real == (name not in ("gaussian", "uniform"))
    assert "stand-in" not in example.source


@everywhere
@pytest.mark.usefixtures("bare")
def test_nothing_is_evaluated_before_it_is_asked(name):
    example = gallery.load(name, 40)
    assert example.similarity.calls == 0
    estimate_spectrum(example.similarity, 10, rng=0)
    assert 0 < example.similarity.calls <= 10 * 10


@everywhere
@pytest.mark.usefixtures("bare")
def test_same_matrix_every_time(name):
    one, other = gallery.load(name, 15), gallery.load(name, 15)
    np.testing.assert_array_equal(one.matrix, other.matrix)


@pytest.mark.usefixtures("bare")
def test_sizes():
    assert gallery.load("gaussian").similarity.n == 1000
    assert gallery.load("twitter").similarity.n == 1000
    assert gallery.load("edit", 10**6).similarity.n > 500
    assert gallery.load("rte", 1).matrix.shape == (1, 1)


@pytest.mark.usefixtures("bare")
def test_first_items_of_a_fixed_order():
    long, short = (gallery.load("edit", n).similarity.items for n in (50, 20))
    assert long[:20] == short


@pytest.mark.usefixtures("bare")
def test_kinds_of_spectra():
    """Positive semidefinite, and with a negative part, as the titles promise."""
    for name, bounds in {
        "gaussian": (0, 1e-7),
        "uniform": (0, 1e-7),
        "twitter": (0, 1e-3),
        "stsb": (0.1, 0.25),
        "mrpc": (0.1, 0.25),
        "rte": (0.1, 0.25),
        "edit": (0, 0.05),
    }.items():
        mass = negative_mass(np.linalg.eigvalsh(gallery.load(name, 150).matrix))
        assert bounds[0] <= mass <= bounds[1], name


# Real data


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", ["stsb", "mrpc", "rte"])
def test_cross_encoders_are_the_mean_of_both_orders(name):
    raw = load_cross_encoder(name).matrix
    K = gallery.load(name, 60).matrix
    np.testing.assert_allclose(K[3, 50], (raw[3, 50] + raw[50, 3]) / 2)
    assert gallery.load(name).similarity.n == len(raw)


@pytest.mark.usefixtures("data")
def test_stsb_of_the_guide():
    """Guide 3.8: negative mass .117, skew part .106, scores agree with the labels."""
    data = load_cross_encoder("stsb")
    raw = data.matrix[:400, :400]
    K = gallery.load("stsb", 400).matrix
    values = np.linalg.eigvalsh(K)
    assert negative_mass(values) == pytest.approx(0.117, abs=0.001)
    assert values[0] == pytest.approx(-8.0, abs=0.1)
    assert values[-1] == pytest.approx(64.8, abs=0.1)
    skew = np.linalg.norm(raw - raw.T) / 2 / np.linalg.norm(raw)
    assert skew == pytest.approx(0.106, abs=0.001)
    i, j = data.pairs.T
    full = gallery.load("stsb").matrix
    assert spearmanr(full[i, j], data.scores).statistic > 0.8


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


@pytest.mark.usefixtures("bare")
def test_jobs_are_handed_on():
    one, two = gallery.load("twitter", 12), gallery.load("twitter", 12, n_jobs=2)
    np.testing.assert_array_equal(one.matrix, two.matrix)
    assert isinstance(two.similarity, Similarity)


# What is refused


def test_unknown_name():
    with pytest.raises(ValueError, match="No matrix is called 'tweets'; there are gau"):
        gallery.load("tweets")


@pytest.mark.parametrize("n", [0, -3])
def test_impossible_size(n):
    with pytest.raises(ValueError, match=f"n must be at least 1; got {n}"):
        gallery.load("gaussian", n)
