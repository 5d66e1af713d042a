"""Surfaces made of triangles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Mesh:
    """A surface made of triangles.

    Attributes
    ----------
    vertices : ndarray of float64, shape (n, 3)
        Coordinates.
    faces : ndarray of int, shape (m, 3)
        The vertices of each triangle, all in the same sense of rotation.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.datasets import Mesh
    >>> tetrahedron = Mesh(
    ...     np.vstack([np.zeros(3), np.eye(3)]),
    ...     np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]),
    ... )
    >>> tetrahedron.vertices[tetrahedron.faces[3]]
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    vertices: np.ndarray
    faces: np.ndarray
