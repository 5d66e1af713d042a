"""simlib: similarity matrices too large to compute, approximated.

`Similarity` asks for few entries, a method such as `tikhonov` answers with a `LowRank`,
`estimate_error` tells how good the answer is. Subpackages load on first use.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from simlib.approximation import (
    METHODS,
    SimilarityFeatures,
    anchored,
    approximate_to,
    estimate_error,
    estimate_spectrum,
    largest,
    nystrom,
    optimal,
    relative_error,
    rpcholesky,
    sicur,
    skeleton,
    sms_nystrom,
    stacur,
    tikhonov,
)
from simlib.lowrank import LowRank
from simlib.regression import (
    AttentionKernelRegressor,
    even_power,
    lstsq,
    odd_power,
)
from simlib.similarity import BudgetExceeded, Similarity, SimilarityError

__all__ = [
    "METHODS",
    "AttentionKernelRegressor",
    "BudgetExceeded",
    "LowRank",
    "Similarity",
    "SimilarityError",
    "SimilarityFeatures",
    "anchored",
    "approximate_to",
    "estimate_error",
    "estimate_spectrum",
    "even_power",
    "largest",
    "lstsq",
    "nystrom",
    "odd_power",
    "optimal",
    "relative_error",
    "rpcholesky",
    "sicur",
    "skeleton",
    "sms_nystrom",
    "stacur",
    "tikhonov",
]

_SUBPACKAGES = (
    "biharmonic",
    "datasets",
    "gallery",
    "press",
    "regression",
    "sketch",
    "text",
)


def __getattr__(name: str) -> ModuleType:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"simlib.{name}")
    raise AttributeError(f"module 'simlib' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SUBPACKAGES])
