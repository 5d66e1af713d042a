"""Nearest items, similar pairs and clusters from few calls of a similarity."""

from simlib.neighbors.estimator import SimilarityNeighbors
from simlib.neighbors.graph import NeighborGraph, RecallEstimate
from simlib.neighbors.nearest import nearest
from simlib.neighbors.pairs import SimilarPairs, most_similar, pairs_above
from simlib.neighbors.search import SearchResult, search

__all__ = [
    "NeighborGraph",
    "RecallEstimate",
    "SearchResult",
    "SimilarPairs",
    "SimilarityNeighbors",
    "most_similar",
    "nearest",
    "pairs_above",
    "search",
]
