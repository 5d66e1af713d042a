"""simlib: similarity matrices too large to compute, approximated.

`Similarity` asks for few entries, a method such as `tikhonov` answers with a `LowRank`,
`estimate_error` tells how good the answer is. Everything loads on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simlib import biharmonic as biharmonic
    from simlib import datasets as datasets
    from simlib import gallery as gallery
    from simlib import neighbors as neighbors
    from simlib import sketch as sketch
    from simlib import text as text
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
    from simlib.exceptions import BudgetExceeded, SimilarityError
    from simlib.lowrank import LowRank
    from simlib.regression import (
        AttentionKernelRegressor,
        even_power,
        lstsq,
        odd_power,
    )
    from simlib.similarity import Similarity
    from simlib.store import StoreError

__all__ = [
    "METHODS",
    "AttentionKernelRegressor",
    "BudgetExceeded",
    "LowRank",
    "Similarity",
    "SimilarityError",
    "SimilarityFeatures",
    "StoreError",
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
    "neighbors",
    "regression",
    "sketch",
    "text",
)

# Names that simlib.approximation does not define.
_MODULES = {
    "AttentionKernelRegressor": "simlib.regression",
    "BudgetExceeded": "simlib.exceptions",
    "LowRank": "simlib.lowrank",
    "Similarity": "simlib.similarity",
    "SimilarityError": "simlib.exceptions",
    "StoreError": "simlib.store",
    "even_power": "simlib.regression",
    "lstsq": "simlib.regression",
    "odd_power": "simlib.regression",
}


if not TYPE_CHECKING:  # for which every name would be there

    def __getattr__(name: str) -> Any:
        if name in _SUBPACKAGES:
            return importlib.import_module(f"simlib.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'simlib' has no attribute {name!r}")
        module = importlib.import_module(_MODULES.get(name, "simlib.approximation"))
        return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_SUBPACKAGES])
