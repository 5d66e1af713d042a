"""Generated data, and data that scikit-learn bundles.

``rng`` is an argument of `numpy.random.default_rng`: a seed gives the same data again.
"""

from __future__ import annotations

import re

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import ConvexHull, Delaunay

from simlib._checks import whole_number
from simlib._typing import Seed
from simlib.datasets.mesh import Mesh
from simlib.datasets.word_vectors import WordVectors

ROADS = 1.41  # edges for each node, in the road network of California


def gaussian_psd(n: int, *, rng: Seed = None) -> np.ndarray:
    """Make Z Z^T, for Z of n x n standard normal numbers.

    Parameters
    ----------
    n : int
        Below 1 it is a ValueError.
    rng : int, Generator or None

    Returns
    -------
    ndarray, shape (n, n)
        Positive semidefinite, of slowly decaying spectrum.

    Examples
    --------
    >>> from simlib.datasets import gaussian_psd
    >>> gaussian_psd(100, rng=0).shape
    (100, 100)
    """
    n, rng = _drawn(n, rng)
    z = rng.standard_normal((n, n))
    return z @ z.T


def uniform_psd(n: int, *, rng: Seed = None) -> np.ndarray:
    """Make Z Z^T, for Z of n x n numbers uniform on [0, 1).

    The parameters are those of `gaussian_psd`.

    Returns
    -------
    ndarray, shape (n, n)
        Positive semidefinite, with one eigenvalue of about n^2 / 4 far above the rest.

    Examples
    --------
    >>> from simlib.datasets import uniform_psd
    >>> uniform_psd(100, rng=0).shape
    (100, 100)
    """
    n, rng = _drawn(n, rng)
    z = rng.random((n, n))
    return z @ z.T


def point_clouds(n: int, *, rng: Seed = None) -> dict[str, np.ndarray]:
    """Make points of four geometries, on which sketches of kernels differ.

    Two spheres, of radius 1 and 2, in 16 dimensions; twenty clusters of width .3 on a
    sphere of radius 2 in 64 dimensions; a sphere of radius 1 in a random subspace of
    dimension 3 in 64 dimensions.

    Parameters
    ----------
    n : int
        Number of points of each geometry; below 1 it is a ValueError.
    rng : int, Generator or None

    Returns
    -------
    dict of str to ndarray, shape (n, 16) or (n, 64)
        The points as rows, by the name of the geometry.

    Examples
    --------
    >>> from simlib.datasets import point_clouds
    >>> for name, X in point_clouds(100, rng=0).items():
    ...     print(name, X.shape)
    sphere, d = 16, r = 1 (100, 16)
    sphere, d = 16, r = 2 (100, 16)
    clusters, d = 64, r = 2 (100, 64)
    subspace of dimension 3, r = 1 (100, 64)
    """
    n, rng = _drawn(n, rng)
    unit, wide = (rng.standard_normal((n, 16)) for _ in range(2))
    centres = rng.standard_normal((20, 64))[rng.integers(20, size=n)]
    clusters = centres + 0.3 * rng.standard_normal((n, 64))
    subspace = np.linalg.qr(rng.standard_normal((64, 3)))[0]
    clouds = {
        "sphere, d = 16, r = 1": (1, unit),
        "sphere, d = 16, r = 2": (2, wide),
        "clusters, d = 64, r = 2": (2, clusters),
        "subspace of dimension 3, r = 1": (1, rng.standard_normal((n, 3)) @ subspace.T),
    }
    return {
        name: radius * X / np.linalg.norm(X, axis=1, keepdims=True)
        for name, (radius, X) in clouds.items()
    }


def cross_encoder_like(n: int, *, rng: Seed = None) -> np.ndarray:
    """Build an indefinite matrix with the spectrum of a symmetrised cross-encoder.

    Q diag(lambda) Q^T - R diag(mu) R^T + .03 (E + E^T) / sqrt 2 with lambda_1 = .25 n,
    lambda_k = .06 n k^-0.9 up to rank 60, Q from the QR of [1 + .1 g, g, ...] for
    normal g, R of 6 random orthonormal directions, E standard normal and mu = (.03,
    .02, .015, .01, .01, .008) n. For n < 60 (n < 6) Q (R) has n columns. The parameters
    are those of `gaussian_psd`.

    Returns
    -------
    ndarray, shape (n, n)
        Indefinite; about .18 of its Frobenius norm is negative.

    Examples
    --------
    >>> from simlib.datasets import cross_encoder_like
    >>> cross_encoder_like(300, rng=0).shape
    (300, 300)
    """
    n, rng = _drawn(n, rng)
    columns = rng.standard_normal((n, min(n, 60)))
    columns[:, 0] = 1 + 0.1 * columns[:, 0]
    q = np.linalg.qr(columns)[0]
    r = np.linalg.qr(rng.standard_normal((n, min(n, 6))))[0]
    e = rng.standard_normal((n, n))
    positive = 0.06 * n * np.arange(1, q.shape[1] + 1) ** -0.9
    positive[0] = 0.25 * n
    negative = n * np.array([0.03, 0.02, 0.015, 0.01, 0.01, 0.008])[: r.shape[1]]
    k = (q * positive) @ q.T - (r * negative) @ r.T
    return (k + k.T) / 2 + 0.03 * (e + e.T) / np.sqrt(2)


def sigmoid_kernel(n: int, *, rng: Seed = None) -> np.ndarray:
    """Make tanh(0.1 X X^T - 0.5), for X of n x 20 standard normal numbers.

    The parameters are those of `gaussian_psd`. For given points
    `sklearn.metrics.pairwise.sigmoid_kernel` makes the matrix.

    Returns
    -------
    ndarray, shape (n, n)
        Strongly indefinite, entries in (-1, 1).

    Examples
    --------
    >>> from simlib.datasets import sigmoid_kernel
    >>> sigmoid_kernel(300, rng=0).shape
    (300, 300)
    """
    n, rng = _drawn(n, rng)
    x = rng.standard_normal((n, 20))
    return np.tanh(0.1 * (x @ x.T) - 0.5)


def bumpy_sphere(n_subdivisions: int = 4) -> Mesh:
    """Return a closed mesh: a sphere with smooth bumps and dents.

    The icosahedron with each triangle cut into four, `n_subdivisions` times, its
    vertices u projected to the unit sphere and moved to the radius
    1 + .3 sin(6 u_1) sin(7 u_2 + 1) sin(8 u_3 + 2).

    Parameters
    ----------
    n_subdivisions : int, default=4
        Below 0 it is a ValueError.

    Returns
    -------
    Mesh
        10 * 4^n_subdivisions + 2 vertices (2562 by default) and 20 * 4^n_subdivisions
        triangles that look outward.

    Examples
    --------
    >>> from simlib.datasets import bumpy_sphere
    >>> mesh = bumpy_sphere(2)
    >>> mesh.vertices.shape, mesh.faces.shape
    ((162, 3), (320, 3))
    """
    n_subdivisions = whole_number(n_subdivisions, "n_subdivisions", 0)
    g = (1 + np.sqrt(5)) / 2
    corners = [(0, s, t * g) for s in (-1, 1) for t in (-1, 1)]
    u = np.array([np.roll(corner, shift) for shift in range(3) for corner in corners])
    u /= np.linalg.norm(u[0])
    faces = ConvexHull(u).simplices
    inward = np.linalg.det(u[faces]) < 0
    faces[inward] = faces[inward][:, ::-1]
    for _ in range(n_subdivisions):
        edges = np.sort(faces[:, [1, 2, 2, 0, 0, 1]].reshape(-1, 2), axis=1)
        edges, middle = np.unique(edges, axis=0, return_inverse=True)
        a, b, c = faces.T
        d, e, f = len(u) + middle.reshape(-1, 3).T  # opposite to a, b, c
        triangles = (a, f, e), (b, d, f), (c, e, d), (d, e, f)
        faces = np.concatenate([np.column_stack(t) for t in triangles])
        new = u[edges].sum(axis=1)
        u = np.vstack([u, new / np.linalg.norm(new, axis=1, keepdims=True)])
    x, y, z = u.T
    radius = 1 + 0.3 * np.sin(6 * x) * np.sin(7 * y + 1) * np.sin(8 * z + 2)
    return Mesh(u * radius[:, None], faces)


def swiss_roll(n: int = 5000, *, rng: Seed = None) -> tuple[np.ndarray, np.ndarray]:
    """Return points on a rolled-up rectangle, by `sklearn.datasets.make_swiss_roll`.

    (t cos t, y, t sin t) for t uniform in [1.5 pi, 4.5 pi) and y in [0, 21): the points
    are about three times as dense inside as outside.

    Parameters
    ----------
    n : int, default=5000
    rng : int, Generator or None

    Returns
    -------
    points : ndarray, shape (n, 3)
    angles : ndarray, shape (n,)
        The angle t of each point.

    Examples
    --------
    >>> from simlib.datasets import swiss_roll
    >>> points, angles = swiss_roll(1000, rng=0)
    >>> points.shape, angles.shape
    ((1000, 3), (1000,))
    """
    from sklearn.datasets import make_swiss_roll

    n, rng = _drawn(n, rng)
    seed = int(rng.integers(2**32))
    points, angles = make_swiss_roll(n, random_state=seed)
    return points, np.atleast_1d(angles)


def planar_roads(n: int = 10000, *, rng: Seed = None) -> tuple[csr_array, np.ndarray]:
    """Make a planar graph that looks like a road network, and the points of its nodes.

    The minimum spanning tree of n points uniform in the unit square, and random other
    edges of their Delaunay triangulation up to 1.41 edges for each node, as in
    California (SNAP's roadNet-CA). Distances are not like those in a real country.

    Parameters
    ----------
    n : int, default=10000
        Number of nodes; below 4 it is a ValueError.
    rng : int, Generator or None

    Returns
    -------
    adjacency : csr_array of float64, shape (n, n)
        Symmetric, all entries are 1; in one connected piece.
    points : ndarray, shape (n, 2)
        The points of the nodes. Nodes near each other have numbers near each other.

    Examples
    --------
    >>> from simlib.datasets import planar_roads
    >>> adjacency, points = planar_roads(1000, rng=0)
    >>> adjacency.nnz // 2, points.shape
    (1410, (1000, 2))
    """
    n = whole_number(n, "n", 4)  # for a triangulation
    rng = np.random.default_rng(rng)
    points = rng.random((n, 2))
    cells = np.floor(points * np.sqrt(n) / 4)
    points = points[np.lexsort((points[:, 1], cells[:, 0]))]
    triangles = Delaunay(points).simplices.astype(np.int64)
    ends = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2))
    edges = np.unique(ends @ [n, 1])
    i, j = np.divmod(edges, n)
    lengths = np.linalg.norm(points[i] - points[j], axis=1)
    tree = minimum_spanning_tree(csr_array((lengths, (i, j)), shape=(n, n))).tocoo()
    tree = np.sort(np.array(tree.coords, dtype=np.int64), axis=0).T @ [n, 1]
    others = rng.permutation(np.setdiff1d(edges, tree))
    edges = np.concatenate([tree, others[: round(ROADS * n) - tree.size]])
    i, j = np.divmod(edges, n)
    half = csr_array((np.ones(i.size), (i, j)), shape=(n, n))
    return csr_array(half + half.T), points


def bundled_words() -> list[str]:
    """Return the words of the descriptions of scikit-learn's bundled data sets.

    Returns
    -------
    list of str
        Distinct runs of at least 3 letters, lower-case, sorted. They change a little
        between releases of scikit-learn.

    Examples
    --------
    >>> from simlib.datasets import bundled_words
    >>> words = bundled_words()
    >>> len(words) > 500, "iris" in words
    (True, True)
    """
    from sklearn import datasets

    names = ("iris", "wine", "breast_cancer", "diabetes", "digits", "linnerud")
    texts = (getattr(datasets, f"load_{name}")().DESCR for name in names)
    return sorted(set(re.findall("[a-z]{3,}", " ".join(texts).lower())))


def bundled_documents() -> tuple[list[list[str]], WordVectors, np.ndarray]:
    """Return scikit-learn's 1797 digit images of 8 x 8 pixels as bags of pixels.

    The Word Mover's Distance of two is an earth mover's distance of images.

    Returns
    -------
    documents : list of list of str
        Each image's pixels of intensity 8 (of 16) and more: "row,column".
    vectors : WordVectors
        The 64 pixel names and their coordinates, of float32, shape (64, 2).
    labels : ndarray of int, shape (1797,)
        The digits.

    Examples
    --------
    >>> from simlib.datasets import bundled_documents
    >>> documents, vectors, labels = bundled_documents()
    >>> documents[0][:3], int(labels[0])
    (['0,3', '0,4', '1,2'], 0)
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels = [(row, column) for row in range(8) for column in range(8)]
    names = np.array([f"{row},{column}" for row, column in pixels])
    documents = [names[image >= 8].tolist() for image in digits.data]
    vectors = WordVectors(tuple(names.tolist()), np.array(pixels, dtype=np.float32))
    return documents, vectors, digits.target


def _drawn(n: int, rng: Seed) -> tuple[int, np.random.Generator]:
    """Return the checked number n, and the generator."""
    return whole_number(n, "n", 1), np.random.default_rng(rng)
