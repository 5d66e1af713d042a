"""Closed surfaces."""

import numpy as np


def check_closed_surface(mesh, n):
    """Every edge lies between two faces that turn the same way; genus 0."""
    assert mesh.vertices.shape == (n, 3)
    assert mesh.vertices.dtype == np.float64
    assert np.isfinite(mesh.vertices).all()
    edges = mesh.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    assert len(np.unique(edges, axis=0)) == len(edges)
    there, back = np.sort(edges @ [n, 1]), np.sort(edges @ [1, n])
    np.testing.assert_array_equal(there, back)
    assert n - len(edges) / 2 + len(mesh.faces) == 2  # Euler's characteristic
    assert len(np.unique(mesh.faces)) == n
