"""Ridge fits of a core by normal equations, and those of a plausible size."""

import numpy as np


def filtered(B, ridge):
    """(B^T B + ridge I)^-1 B^T."""
    return np.linalg.solve(B.T @ B + ridge * np.eye(B.shape[1]), B.T)


def core(A, s1, ridge):
    """The fit to a block that begins with s1 landmarks, zero at infinity."""
    if np.isinf(ridge):
        return np.zeros((s1, s1))
    return filtered(A[:, :s1], ridge) @ A @ filtered(A[:s1].T, ridge).T


def plausible(A, s1, C, R):
    """Return ridges whose answer to the whole block is at most twice as large as K."""
    largest = max(np.linalg.norm(A[:, :s1], 2), np.linalg.norm(A[:s1], 2)) ** 2
    ridges = [0.0] + [10 ** (-10 + k / 2) * largest for k in range(21)]
    norm = np.sqrt(len(C) / s1 * (np.sum(C**2) + np.sum(R**2)) / 2)
    sizes = [np.linalg.norm(C @ core(A, s1, ridge) @ R) for ridge in ridges]
    good = [r for r, size in zip(ridges, sizes, strict=True) if size <= 2 * norm]
    return good or ridges[-1:]
