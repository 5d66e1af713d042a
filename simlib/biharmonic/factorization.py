"""Solve with a sparse symmetric positive definite matrix, by the solver at hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csc_array, csc_matrix
from scipy.sparse.linalg import SuperLU, splu

__all__ = ["factorize", "superlu"]

SINGULAR = (
    "M without the landmarks is singular to rounding error. Parts of it are joined too "
    "weakly, or are too far from any landmark: add landmarks there."
)


def factorize(A: csc_array, solver: str) -> Callable[[np.ndarray], np.ndarray]:
    """Factorise once, and return the function B -> A^-1 B.

    Parameters
    ----------
    A : csc_array, shape (m, m)
        Symmetric positive definite.
    solver : {"auto", "superlu", "cholmod"}
        SciPy's SuperLU in its symmetric mode; CHOLMOD of scikit-sparse; "auto" takes
        CHOLMOD if it is installed. They differ by rounding.

    Raises
    ------
    ImportError
        "cholmod" without scikit-sparse.
    ValueError
        A is singular to rounding error.
    """
    if solver == "superlu":
        return superlu(A).solve
    try:
        from sksparse import cholmod
    except ImportError as error:
        if solver == "auto":
            return superlu(A).solve
        raise ImportError(
            'solver="cholmod" needs scikit-sparse, which needs SuiteSparse: '
            'pip install scikit-sparse, or take solver="superlu".'
        ) from error
    try:
        if hasattr(cholmod, "cho_factor"):  # since scikit-sparse 0.5
            solve = cholmod.cho_factor(A).solve
        else:
            solve = cholmod.cholesky(csc_matrix(A))
        _demand_accuracy(A, solve)
    except cholmod.CholmodError as error:
        raise ValueError(SINGULAR) from error
    return solve


def superlu(A: csc_array) -> SuperLU:
    """Factorise A = L D L^T by SuperLU: diagonal pivots, minimum degree order."""
    try:
        factor = splu(
            A,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0,
            options={"SymmetricMode": True},
        )
    except RuntimeError as error:
        raise ValueError(SINGULAR) from error
    _demand_accuracy(A, factor.solve)
    return factor


def _demand_accuracy(A: csc_array, solve: Callable[[np.ndarray], np.ndarray]) -> None:
    """Raise ValueError unless A^-1 A 1 = 1 to three digits."""
    ones = np.ones(A.shape[0])
    if not abs(solve(A @ ones) - ones).max() <= 1e-3:
        raise ValueError(SINGULAR)
