import pickle
import re
from copy import deepcopy

import joblib
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_swiss_roll

from simlib.datasets import (
    WordVectors,
    bumpy_sphere,
    bundled_documents,
    bundled_words,
    cross_encoder_like,
    generated,
    point_clouds,
    swiss_roll,
)
from support.meshes import check_closed_surface

MATRICES = ["gaussian_psd", "uniform_psd", "cross_encoder_like", "sigmoid_kernel"]


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("n", [1, 5, 59, 100])
def test_generated_matrices_are_symmetric_and_seeded(name, n):
    make = getattr(generated, name)
    k = make(n, rng=3)
    assert k.shape == (n, n)
    assert np.isfinite(k).all()
    np.testing.assert_array_equal(k, k.T)
    np.testing.assert_array_equal(k, make(n, rng=np.random.default_rng(3)))
    assert not np.array_equal(k, make(n, rng=4))


@pytest.mark.parametrize("name", MATRICES)
def test_negative_mass(name):
    mass = {"cross_encoder_like": 0.18, "sigmoid_kernel": 0.77}.get(name, 0)
    w = np.linalg.eigvalsh(getattr(generated, name)(1000 if mass else 100, rng=0))
    found = np.linalg.norm(w[w < 0]) / np.linalg.norm(w)
    assert found == pytest.approx(mass, abs=0.02 if mass else 1e-10)


def test_cross_encoder_like_spectrum():
    n = 500
    w = np.linalg.eigvalsh(cross_encoder_like(n, rng=0))
    assert w[-1] == pytest.approx(0.25 * n, rel=0.02)
    assert w[-2] == pytest.approx(0.06 * n * 2**-0.9, rel=0.1)
    assert w[0] == pytest.approx(-0.03 * n, rel=0.1)


def test_point_clouds():
    clouds = point_clouds(300, rng=3)
    again = point_clouds(300, rng=np.random.default_rng(3))
    shapes = {}
    for name, X in clouds.items():
        np.testing.assert_array_equal(X, again[name])
        radius = float(name.rpartition("= ")[2])
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), radius, rtol=1e-12)
        shapes[name] = X.shape[1], int(np.linalg.matrix_rank(X))
        assert point_clouds(1)[name].shape == (1, X.shape[1])
    assert list(shapes.values()) == [(16, 16), (16, 16), (64, 64), (64, 3)]
    clusters = clouds["clusters, d = 64, r = 2"]
    found = KMeans(20, n_init=5, random_state=0).fit(clusters)
    assert found.inertia_ < 0.15 * ((clusters - clusters.mean(axis=0)) ** 2).sum()


@pytest.mark.parametrize("k", [0, 1, 4])
def test_bumpy_sphere(k):
    mesh = bumpy_sphere(k)
    check_closed_surface(mesh, 10 * 4**k + 2)
    corners = mesh.vertices[mesh.faces]
    assert (np.linalg.det(corners) > 0).all()  # seen from the centre, they look outward
    radius = np.linalg.norm(mesh.vertices, axis=1)
    assert radius.min() >= 0.7
    assert radius.max() <= 1.3
    x, y, z = (mesh.vertices / radius[:, None]).T
    bumps = np.sin(6 * x) * np.sin(7 * y + 1) * np.sin(8 * z + 2)
    np.testing.assert_allclose(radius, 1 + 0.3 * bumps)


def test_swiss_roll():
    points, angles = swiss_roll(40, rng=3)
    again = swiss_roll(40, rng=np.random.default_rng(3))
    assert swiss_roll(rng=3)[0].shape == (5000, 3)
    assert [part.shape for part in swiss_roll(1, rng=3)] == [(1, 3), (1,)]
    np.testing.assert_array_equal(points, again[0])
    np.testing.assert_array_equal(angles, again[1])
    assert not np.array_equal(angles, swiss_roll(40, rng=4)[1])
    seed = int(np.random.default_rng(3).integers(2**32))
    expected = make_swiss_roll(40, random_state=seed)
    np.testing.assert_array_equal(points, expected[0])
    np.testing.assert_array_equal(angles, expected[1])


def test_bundled_words():
    words = bundled_words()
    assert words == sorted(set(words))
    assert {"iris", "wine", "cancer", "diabetes"} < set(words)
    assert all(re.fullmatch("[a-z]{3,}", word) for word in words)
    assert len(words) > 500


def test_bundled_documents():
    documents, vectors, labels = bundled_documents()
    assert len(documents) == len(labels) == 1797
    assert all(documents)
    assert vectors.array.shape == (64, 2)
    assert vectors["3,5"].tolist() == [3, 5]
    assert {pixel for pixels in documents for pixel in pixels} <= set(vectors)
    # the first image is a 0: a ring that leaves its centre empty
    assert not {"3,3", "4,4"} & set(documents[0])
    assert labels[0] == 0


def test_word_vectors_are_views_of_one_read_only_array():
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    vectors = WordVectors(("a", "b", "c"), array)
    assert np.shares_memory(vectors["b"], array)
    assert vectors["b"].tolist() == [2, 3]
    assert list(vectors) == ["a", "b", "c"]
    assert len(vectors) == 3
    assert "d" not in vectors
    with pytest.raises(KeyError):
        vectors["d"]
    with pytest.raises(ValueError, match="read-only"):
        vectors["a"][0] = 1
    array[0] = 9  # the caller's array stays writeable


def test_words_may_share_a_vector():
    array = np.eye(2, dtype=np.float32)
    vectors = WordVectors(("cat", "cats", "dog"), array, rows=[1, 1, 0])
    assert np.shares_memory(vectors["cats"], array)
    assert vectors["cat"].tolist() == vectors["cats"].tolist() == [0, 1]
    assert vectors.index == {"cat": 1, "cats": 1, "dog": 0}
    assert vectors.rows.tolist() == [1, 1, 0]
    assert WordVectors(("a", "b"), array).rows.tolist() == [0, 1]
    assert len(vectors) == 3
    assert deepcopy(vectors) is vectors
    copy = pickle.loads(pickle.dumps(vectors))
    assert copy.index == vectors.index
    assert not copy.array.flags.writeable
    np.testing.assert_array_equal(copy["dog"], vectors["dog"])
    for rows in ([0, 1], [0, 1, 2], [0, 1, -1]):
        with pytest.raises((ValueError, IndexError), match=r"^Rows|need as many"):
            WordVectors(("cat", "cats", "dog"), array, rows=rows)
    for words, array in (("aa", np.eye(2)), ("abc", np.eye(2)), ("ab", np.ones(2))):
        with pytest.raises(ValueError, match="need as many vectors"):
            WordVectors(tuple(words), array)


@pytest.mark.slow
def test_word_vectors_reach_workers_memory_mapped():
    vectors = WordVectors(tuple(map(str, range(1000))), np.ones((1000, 300)))

    def is_mapped(vectors):  # a function of a module would load the module there
        base = vectors["7"]
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        return isinstance(base, np.memmap)

    work = (joblib.delayed(is_mapped)(vectors) for _ in range(2))
    assert joblib.Parallel(n_jobs=2, max_nbytes=1000)(work) == [True, True]
