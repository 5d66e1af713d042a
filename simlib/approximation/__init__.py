"""Approximations of a similarity matrix from few of its entries (system 1).

Every method reads its matrix through a `Similarity` and answers with a `LowRank`.
"""

from simlib.approximation.adaptive import AdaptiveResult, approximate_to
from simlib.approximation.anchored import Anchored, anchored
from simlib.approximation.cur import sicur, skeleton, stacur
from simlib.approximation.error import relative_error
from simlib.approximation.error_estimate import ErrorEstimate, estimate_error
from simlib.approximation.estimators import SimilarityFeatures
from simlib.approximation.methods import COMPANION_METHODS, METHODS, largest
from simlib.approximation.nystrom import nystrom
from simlib.approximation.optimal import optimal
from simlib.approximation.overlay import overlay
from simlib.approximation.rpcholesky import rpcholesky
from simlib.approximation.sms import sms_nystrom
from simlib.approximation.spectrum import Spectrum, estimate_spectrum, negative_mass
from simlib.approximation.tikhonov import tikhonov

__all__ = [
    "COMPANION_METHODS",
    "METHODS",
    "AdaptiveResult",
    "Anchored",
    "ErrorEstimate",
    "SimilarityFeatures",
    "Spectrum",
    "anchored",
    "approximate_to",
    "estimate_error",
    "estimate_spectrum",
    "largest",
    "negative_mass",
    "nystrom",
    "optimal",
    "overlay",
    "relative_error",
    "rpcholesky",
    "sicur",
    "skeleton",
    "sms_nystrom",
    "stacur",
    "tikhonov",
]
