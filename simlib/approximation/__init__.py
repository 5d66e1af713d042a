"""Approximations of a similarity matrix from few of its entries (system 1).

Every method reads its matrix through a `Similarity` and answers with a `LowRank`.
"""

from simlib.approximation.cur import sicur, skeleton, stacur
from simlib.approximation.error import relative_error
from simlib.approximation.methods import METHODS, largest
from simlib.approximation.nystrom import nystrom
from simlib.approximation.optimal import optimal
from simlib.approximation.sms import sms_nystrom
from simlib.approximation.spectrum import Spectrum, estimate_spectrum, negative_mass
from simlib.approximation.tikhonov import tikhonov

__all__ = [
    "METHODS",
    "Spectrum",
    "estimate_spectrum",
    "largest",
    "negative_mass",
    "nystrom",
    "optimal",
    "relative_error",
    "sicur",
    "skeleton",
    "sms_nystrom",
    "stacur",
    "tikhonov",
]
