"""Solve with a sparse symmetric positive definite matrix, by the solver at hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csc_array
from scipy.sparse.linalg import SuperLU, splu

__all__ = ["factorize", "superlu"]


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
    """
    if solver != "superlu":
        try:
            from scipy.sparse import csc_matrix
            from sksparse.cholmod import cholesky
        except ImportError as error:
            if solver == "cholmod":
                raise ImportError(
                    'solver="cholmod" needs scikit-sparse, which needs SuiteSparse: '
                    'pip install scikit-sparse, or take solver="superlu".'
                ) from error
        else:
            return cholesky(csc_matrix(A))
    return superlu(A).solve


def superlu(A: csc_array) -> SuperLU:
    """Factorise A = L D L^T by SuperLU, pivots on the diagonal, minimum degree order.

    On the matrices of the book as fast as CHOLMOD, with as few entries in L.
    """
    return splu(
        A,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0,
        options={"SymmetricMode": True},
    )
