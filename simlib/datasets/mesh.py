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
    >>> square = Mesh(np.eye(4, 3), np.array([[0, 1, 2], [0, 2, 3]]))
    >>> square.vertices[square.faces].shape
    (2, 3, 3)
    """

    vertices: np.ndarray
    faces: np.ndarray
