"""Matrices that vary smoothly over a surface, a graph or a cloud of points.

vertices, graph or points -> Laplacian -> biharmonic operator M -> P, once
-> a `LowRank` for each similarity function.
"""

from simlib.biharmonic.approximation import biharmonic_approximation
from simlib.biharmonic.geodesics import (
    exact_geodesics,
    graph_distances,
    heat_geodesics,
)
from simlib.biharmonic.interpolation import interpolation
from simlib.biharmonic.neighbors import neighbor_graph
from simlib.biharmonic.operator import (
    biharmonic_operator,
    graph_laplacian,
    mesh_laplacian,
)

__all__ = [
    "biharmonic_approximation",
    "biharmonic_operator",
    "exact_geodesics",
    "graph_distances",
    "graph_laplacian",
    "heat_geodesics",
    "interpolation",
    "mesh_laplacian",
    "neighbor_graph",
]
