"""Matrices that vary smoothly over a surface, a graph or a cloud of points.

Once: vertices, graph or points -> Laplacian -> biharmonic operator M -> P.
For each similarity function: P -> a `LowRank`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from simlib.biharmonic.approximation import biharmonic_approximation
from simlib.biharmonic.geodesics import exact_geodesics, graph_distances, heat_geodesics
from simlib.biharmonic.interpolation import interpolation
from simlib.biharmonic.mesh import merge_vertices
from simlib.biharmonic.neighbors import neighbor_graph
from simlib.biharmonic.operator import (
    biharmonic_operator,
    graph_laplacian,
    mesh_laplacian,
)

if TYPE_CHECKING:
    from simlib.biharmonic.hub_labels import HubLabels

__all__ = [
    "HubLabels",
    "biharmonic_approximation",
    "biharmonic_operator",
    "exact_geodesics",
    "graph_distances",
    "graph_laplacian",
    "heat_geodesics",
    "interpolation",
    "merge_vertices",
    "mesh_laplacian",
    "neighbor_graph",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name != "HubLabels":  # it alone needs numba
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return importlib.import_module("simlib.biharmonic.hub_labels").HubLabels


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
