"""Regression with a tall matrix and its powers, by sketching and preconditioning."""

from simlib.regression.attention import AttentionKernelRegressor
from simlib.regression.features import ExponentialFeatures
from simlib.regression.powers import (
    Solution,
    even_power,
    lstsq,
    odd_power,
    solve_gram,
)
from simlib.regression.preconditioner import Preconditioner

__all__ = [
    "AttentionKernelRegressor",
    "ExponentialFeatures",
    "Preconditioner",
    "Solution",
    "even_power",
    "lstsq",
    "odd_power",
    "solve_gram",
]
