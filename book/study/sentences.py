r"""Approximations of a cross-encoder's matrix, and what they say of labelled pairs.

.. math::
    \bar K = (K + K^\top) / 2, \qquad
    \|K - \tilde K\|_F^2 = \|\bar K - \tilde K\|_F^2 + \|K - \bar K\|_F^2

for a symmetric approximation, equation :eq:`eq:two-references` of the book: an error
can be measured against the network's matrix K, whose entries depend on the order, or
against the mean of both orders, and the second is the smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from simlib._checks import one_of
from simlib.approximation.anchored import anchored
from simlib.approximation.cur import sicur, stacur
from simlib.approximation.methods import largest
from simlib.approximation.nystrom import nystrom
from simlib.approximation.optimal import optimal
from simlib.approximation.sms import sms_nystrom
from simlib.approximation.tikhonov import tikhonov
from simlib.landmarks import draw
from simlib.lowrank import LowRank
from simlib.similarity import Similarity
from study.datasets.loaders import CrossEncoderData

__all__ = ["FORMS", "Outcome", "equal_calls", "outcomes"]

KEPT = "_kept"  # the same with the evaluated entries as they are


class Form(NamedTuple):
    """What is approximated and how."""

    function: Callable[..., LowRank]
    sampled: bool = False  # whether a block of further items is read
    kept: bool = False  # whether there is also the form that keeps entries
    nugget: bool = False
    cheap: bool = False


FORMS = {
    "nystrom": Form(nystrom),
    "sms_nystrom": Form(sms_nystrom, sampled=True),
    "sicur": Form(sicur),
    "stacur": Form(stacur),
    "tikhonov": Form(tikhonov, sampled=True, kept=True),
    "nugget": Form(tikhonov, sampled=True, kept=True, nugget=True),
    "anchored": Form(anchored, sampled=True, kept=True, cheap=True),
    "optimal": Form(optimal),
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of one approximation.

    Attributes
    ----------
    scores : ndarray of float64, shape (m,)
        What it says of the labelled pairs.
    raw, symmetrised : float
        Relative error in the Frobenius norm, against K and against (K + K^T) / 2.
    labelled : float
        Relative error of the scores, against those of (K + K^T) / 2.
    share : float
        Entries evaluated, of all; "optimal" needs each.
    read : ndarray of bool, shape (m,)
        The labelled pairs that were evaluated.

    Examples
    --------
    >>> from study.datasets import bundled_cross_encoder
    >>> from study.sentences import outcomes
    >>> data = bundled_cross_encoder().first(200)
    >>> found = outcomes(data, {"tikhonov": 20}, rng=0)
    >>> found["tikhonov_kept"].raw < found["tikhonov"].raw
    True
    """

    scores: np.ndarray
    raw: float
    symmetrised: float
    labelled: float
    share: float
    read: np.ndarray


def equal_calls(n: int, share: float, forms: Iterable[str] = FORMS) -> dict[str, int]:
    """Return the landmarks of each form when all score the same share of the entries.

    ValueError for another form, and a share not in (0, 1] or too small for a landmark.

    Parameters
    ----------
    n : int
        Number of sentences.
    share : float
        Of the n^2 ordered pairs. What is symmetrised pays for both orders of a pair.
    forms : iterable of str
        Names in `FORMS`. "optimal" has no share: it gets the rank of "tikhonov".

    Examples
    --------
    >>> from study.sentences import equal_calls
    >>> equal_calls(1000, 0.1, ["sms_nystrom", "sicur", "tikhonov"])
    {'sms_nystrom': 50, 'sicur': 25, 'tikhonov': 50}
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1]; got {share}.")
    found = {}
    for name in forms:
        form = _form("tikhonov" if name == "optimal" else name)
        entries = n * (n + 1) // 2
        options = {"nugget": True} if form.nugget else {}
        found[name] = largest(form.function.__name__, n, share * entries, **options)
    return found


def outcomes(
    data: CrossEncoderData, n_landmarks: Mapping[str, int], *, rng: int = 0
) -> dict[str, Outcome]:
    """Approximate a cross-encoder's matrix in several ways, from the same landmarks.

    Parameters
    ----------
    data : CrossEncoderData
        The matrix, whole, the labelled pairs and the bi-encoder.
    n_landmarks : mapping
        Form -> number of landmarks, as of `equal_calls`; the rank of "optimal".
    rng : int
        Seed of every draw.

    Returns
    -------
    dict
        Form -> `Outcome`. With "tikhonov", "nugget" and "anchored" also the same with
        the evaluated entries kept, which takes no further call; and with "anchored"
        also "companion", the bi-encoder calibrated by the pairs that were evaluated,
        and nothing else. ValueError for another form.

    Examples
    --------
    >>> from study.datasets import bundled_cross_encoder
    >>> from study.sentences import equal_calls, outcomes
    >>> data = bundled_cross_encoder().first(200)
    >>> found = outcomes(data, equal_calls(200, 0.2, ["sicur", "anchored"]))
    >>> found["anchored"].symmetrised < found["sicur"].symmetrised
    True
    """
    K, Z = data.matrix, data.embeddings.astype(float)
    mean, skew = (K + K.T) / 2, (K - K.T) / 2
    i, j = data.pairs.T
    found = {}
    for name, s in n_landmarks.items():
        form = _form(name)
        sim = Similarity.from_matrix(mean, symmetric=True)
        read = np.ones(K.shape, dtype=bool)
        if form.function is optimal:
            answer = optimal(sim, s)
        else:
            options: dict[str, Any] = {"nugget": True} if form.nugget else {}
            options |= {"cheap": Z} if form.cheap else {}
            answer = form.function(sim, s, rng=rng, **options)
            sample = draw(len(K), s, 2, rng=rng)[1][: None if form.sampled else 0]
            read = _read(answer, sample)
            read |= read.T  # a pair that is read is known in both orders
            if form.nugget:
                np.fill_diagonal(read, True)

        def outcome(A: np.ndarray, read: np.ndarray = read) -> Outcome:
            difference = mean - A
            symmetrised = np.linalg.norm(difference) / np.linalg.norm(mean)
            difference += skew
            return Outcome(
                scores=A[i, j],
                raw=float(np.linalg.norm(difference) / np.linalg.norm(K)),
                symmetrised=float(symmetrised),
                labelled=_error(mean[i, j], A[i, j]),
                share=float(read.mean()),
                read=read[i, j],
            )

        A = answer.toarray()
        found[name] = outcome(A)
        if name == "anchored":
            found["companion"] = outcome(answer.calibration(Z @ Z.T))
        if form.kept:
            found[name + KEPT] = outcome(np.where(read, mean, A))
    return found


def _form(name: str) -> Form:
    return FORMS[one_of(name, FORMS, "The name of a form")]


def _read(answer: LowRank, sample: np.ndarray) -> np.ndarray:
    """Return which entries an answer has evaluated, in a block of items besides."""
    read = np.zeros(answer.shape, dtype=bool)
    columns = answer.landmarks
    rows = columns if answer.row_landmarks is None else answer.row_landmarks
    read[:, columns] = read[rows] = True
    read[np.ix_(sample, sample)] = True
    return read


def _error(exact: np.ndarray, found: np.ndarray) -> float:
    return float(np.linalg.norm(exact - found) / np.linalg.norm(exact))
