"""Data that are always there: generated, or read from what is installed anyway."""

from simlib.datasets.generated import (
    bumpy_sphere,
    bundled_documents,
    bundled_words,
    cross_encoder_like,
    gaussian_psd,
    planar_roads,
    point_clouds,
    sigmoid_kernel,
    swiss_roll,
    uniform_psd,
)
from simlib.datasets.mesh import Mesh
from simlib.datasets.word_vectors import WordVectors

__all__ = [
    "Mesh",
    "WordVectors",
    "bumpy_sphere",
    "bundled_documents",
    "bundled_words",
    "cross_encoder_like",
    "gaussian_psd",
    "planar_roads",
    "point_clouds",
    "sigmoid_kernel",
    "swiss_roll",
    "uniform_psd",
]
