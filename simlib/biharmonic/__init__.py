"""Distances along surfaces and graphs."""

from simlib.biharmonic.geodesics import graph_distances, heat_geodesics

__all__ = ["graph_distances", "heat_geodesics"]
