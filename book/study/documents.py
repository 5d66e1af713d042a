r"""Features of documents for a linear machine, from distances to a few of them.

.. math:: z(x) = T^\top k(x), \qquad k(x)_j = e^{-\gamma \, d(x, j)}, \; j \in S_1

The columns S1 are drawn from the documents for training, and the matrix T is made of
the core of an approximation of the matrix between these. So a document of the test is
compared with landmarks alone, and changes the features of no other. Equation
:eq:`eq:penalty` of the book says what T is to a linear machine: a penalty.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.utils import check_array

from simlib._checks import one_of, whole_number
from simlib.approximation.cur import sicur, stacur
from simlib.approximation.nystrom import nystrom
from simlib.approximation.sms import sms_nystrom
from simlib.approximation.tikhonov import tikhonov
from simlib.landmarks import uniform
from simlib.lowrank import LowRank
from simlib.similarity import Similarity

__all__ = ["approximate", "document_features", "scaled"]

FUNCTIONS: dict[str, Callable[..., LowRank]] = {
    "nystrom": nystrom,
    "sms_nystrom": sms_nystrom,
    "stacur": stacur,
    "sicur": sicur,
    "tikhonov": tikhonov,
}


def approximate(
    K: np.ndarray,
    method: str,
    rank: int,
    *,
    rng: int | np.random.Generator | None = None,
) -> LowRank:
    """Approximate a symmetric matrix by a method that gives that many features.

    Parameters
    ----------
    K : array of shape (n, n)
        The matrix, whole.
    method : {"nystrom", "sms_nystrom", "stacur", "sicur", "tikhonov", "sicur_sym"}
        Functions of simlib with their defaults. "sicur_sym" is SiCUR, symmetrised,
        with half as many columns, which makes `rank` features of its rows.
    rank : int
        Number of features, 1 to n; with "sicur_sym" at least 2.
    rng : int, Generator or None
        Source of randomness. The same number gives all methods the same landmarks.

    Raises
    ------
    ValueError
        No such method; a matrix or a rank that the function refuses.

    Examples
    --------
    >>> import numpy as np
    >>> K = np.exp(-np.abs(np.subtract.outer(np.arange(20), np.arange(20))))
    >>> approximate(K, "sicur_sym", 6, rng=0).shape
    (20, 20)
    """
    one_of(method, (*FUNCTIONS, "sicur_sym"), "method")
    sim = Similarity.from_matrix(K, symmetric=True)
    if method == "sicur_sym":
        half = whole_number(rank, "rank") // 2
        return sicur(sim, half, symmetrize=True, rng=rng)
    return FUNCTIONS[method](sim, rank, rng=rng)


def document_features(
    D: np.ndarray,
    method: str,
    rank: int,
    *,
    gamma: float,
    rng: int | np.random.Generator | None = None,
) -> np.ndarray:
    r"""Return features of documents, from their distances to possible landmarks.

    Parameters
    ----------
    D : array of shape (n, m)
        Distances of n documents to the first m of them, which are for training; for
        "wme" to m random documents.
    method : str
        What the similarities to the landmarks are multiplied with.

        - "raw": nothing.
        - "nystrom", "sms_nystrom", "tikhonov", "sicur_sym": a root of the core, without
          its signs, as `LowRank.extend` does.
        - "stacur", "sicur": :math:`P \Sigma^{1/2}` for the core
          :math:`U = P \Sigma Q^\top`, as in the paper.
        - "optimal", "wmd": no landmarks, but the leading or all eigenvectors of the
          matrix between the m documents.
        - "wme": nothing; divided by the root of `rank`.
    rank : int
        Number of features, at most m, and 2 at least for "sicur_sym"; "wmd" has m,
        whatever it is.
    gamma : float
        Similarities are exp(-gamma distance).
    rng : int, Generator or None
        Source of the landmarks: the same number, the same landmarks for all methods.

    Returns
    -------
    ndarray of shape (n, rank)
        Fewer columns where the matrix has not that rank.

    Raises
    ------
    ValueError
        Distances that are no table of numbers, with a row for each column unless
        "wme"; `gamma` not positive; `rank` not between 1 and m; no such method.

    Notes
    -----
    Flops: O(n m) exponentials, O(n rank^2) and what the approximation takes; "optimal"
    and "wmd" O(n m^2). Source: Ray et al. (2022), section 4.1; Wu et al. (2018) for
    "wme". `simlib.SimilarityFeatures` is a transformer of items.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).standard_normal((50, 2))
    >>> D = np.linalg.norm(points[:, None] - points[None, :40], axis=2)
    >>> document_features(D, "sms_nystrom", 10, gamma=1.0, rng=0).shape  # trained on 40
    (50, 10)
    """
    D = check_array(D, dtype=[np.float64, np.float32], input_name="D")
    m = D.shape[1]
    if method != "wme" and len(D) < m:
        raise ValueError(
            f"Distances to {m} documents have rows of these first; got {len(D)} rows."
        )
    if not 0 < gamma < np.inf:
        raise ValueError(f"gamma must be positive and finite; got {gamma}.")
    rank = whole_number(rank, "rank", 1, m)
    if method in ("raw", "wme"):
        columns = D[:, uniform(m, rank, rng=rng)]
        if method == "wme":
            return np.exp(-gamma * columns) / np.sqrt(rank)
        return np.exp(-gamma * columns.astype(float))
    if method in ("wmd", "optimal"):
        return _spectral(D, rank if method == "optimal" else m, gamma)
    answer = approximate(np.exp(-gamma * D[:m].astype(float)), method, rank, rng=rng)
    columns = np.exp(-gamma * D[:, answer.landmarks].astype(float))
    if method in ("sicur", "stacur"):
        P, sigma, _ = np.linalg.svd(answer.core, full_matrices=False)
        return columns @ (P * np.sqrt(sigma))
    return answer.extend(columns)


def scaled(Z: np.ndarray, n_train: int) -> np.ndarray:
    """Return features less the mean of the first rows, whose mean square becomes 1.

    Of Z (n, k) the first `n_train` rows, 1 to n, are for training; ValueError for
    numbers that are not finite, and rows all alike.

    Examples
    --------
    >>> import numpy as np
    >>> scaled(np.array([[1.0], [3.0], [7.0]]), 2)[:, 0].tolist()
    [-1.0, 1.0, 5.0]
    """
    Z = check_array(Z, dtype=[np.float64, np.float32], input_name="Z")
    n_train = whole_number(n_train, "n_train", 1, len(Z))
    with np.errstate(over="ignore", invalid="ignore"):
        Z = Z - Z[0]  # exact where all are alike, of which the mean is rounded
        Z = Z - Z[:n_train].mean(axis=0)
        size = np.abs(Z[:n_train]).max(initial=0)
    if not 0 < size < np.inf:
        raise ValueError("The training rows are all alike, or too large: no scale.")
    Z = Z / size
    return Z / np.sqrt(np.square(Z[:n_train]).sum(axis=1).mean())


def _spectral(D: np.ndarray, rank: int, gamma: float) -> np.ndarray:
    """Return features from the eigenvectors of the matrix between the first."""
    K = np.exp(-gamma * D.astype(float))
    square = K[: D.shape[1]]
    Similarity.from_matrix(square, symmetric=True)  # an asymmetric one is refused
    values, vectors = np.linalg.eigh(square)
    order = np.argsort(-np.abs(values))[:rank]
    order = order[np.abs(values[order]) > 1e-12 * np.abs(values).max()]
    values, vectors = values[order], vectors[:, order]
    return K @ (vectors * (np.sign(values) / np.sqrt(np.abs(values))))
