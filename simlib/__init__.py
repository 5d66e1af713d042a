"""simlib: similarity matrices too large to compute, approximated.

`Similarity` asks for few entries, a method such as `tikhonov` answers with a `LowRank`,
`estimate_error` tells how good the answer is. Subpackages load on first use.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from simlib.approximation import (
    METHODS,
    SiCUR,
    SMSNystroem,
    StaCUR,
    TikhonovNystroem,
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

if TYPE_CHECKING:
    from simlib import biharmonic as biharmonic
    from simlib import datasets as datasets
    from simlib import gallery as gallery
    from simlib import press as press
    from simlib import sketch as sketch
    from simlib import text as text

__all__ = [
    "METHODS",
    "AttentionKernelRegressor",
    "BudgetExceeded",
    "LowRank",
    "SMSNystroem",
    "SiCUR",
    "Similarity",
    "SimilarityError",
    "StaCUR",
    "TikhonovNystroem",
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

__version__ = "0.1.0"

_SUBPACKAGES = (
    "biharmonic",
    "datasets",
    "gallery",
    "press",
    "regression",
    "sketch",
    "text",
)


if not TYPE_CHECKING:  # for which every name would be a module

    def __getattr__(name: str) -> ModuleType:
        if name in _SUBPACKAGES:
            return importlib.import_module(f"simlib.{name}")
        raise AttributeError(f"module 'simlib' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SUBPACKAGES])
