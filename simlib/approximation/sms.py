r"""Submatrix-shifted Nyström (SMS-Nyström).

.. math::
    \tilde K = C (W + e I)^{+} C^\top, \qquad
    e = \alpha \max(0, -\lambda_{\min}(K_{S_2,S_2})), \quad S_1 \subset S_2

Equation :eq:`eq:sms` of the book, with C = K[:, S1] and W = K[S1, S1].
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.linalg

from simlib import _scale
from simlib._checks import finite, one_of, symmetric, word_or_number
from simlib._typing import Indices, Seed
from simlib.approximation.fit import smallest_inverted
from simlib.approximation.nystrom import pinv
from simlib.approximation.plan import Plan, Sides, drawn, nominal
from simlib.lowrank import LowRank
from simlib.lowrank.lowrank import Closed
from simlib.similarity.source import Source
from simlib.similarity.views import check_similarity

SHIFTED = 'some of its columns hold the shift besides; make it with variant="core".'


def sms_nystrom(
    sim: Source,
    n_landmarks: int | None = None,
    *,
    oversampling: float = 2,
    alpha: float = 1.5,
    shift: Literal["submatrix", "exact"] | float = "submatrix",
    variant: Literal["core", "landmarks", "printed"] = "core",
    rescale: Literal[False, "spectral", "frobenius"] = False,
    landmarks: Indices | None = None,
    rng: Seed = None,
) -> LowRank:
    r"""Approximate an indefinite matrix by Nyström with a shifted core.

    The result is positive semidefinite, so its error is never below the negative mass
    of the matrix (see `estimate_spectrum`); `tikhonov` has a smaller error from the
    same entries.

    Parameters
    ----------
    sim, n_landmarks, landmarks, rng
        As in `nystrom`; `sim` is symmetric, and s1 the number of landmarks.
    oversampling : float, default=2
        z: the shift is computed from a principal block of min(z s1, n) items that
        contains the landmarks.
    alpha : float, default=1.5
        Safety factor on the eigenvalue for "submatrix"; below 1 the core may be
        indefinite. The other shifts do not use it.
    shift : "submatrix", "exact" or float, default="submatrix"
        "exact" uses the smallest eigenvalue of the whole matrix, and reads all of it.
        A number is used as it is, and no block is read; if it is too small to make
        W + e I positive semidefinite, the result is indefinite.
    variant : "core", "landmarks" or "printed", default="core"
        Where the shift goes. "core": W alone, as in the code published with the paper.
        "landmarks": also C, at the rows of the landmarks, which is Nyström of K + e I.
        "printed": also C, at rows 1 to s1, an error of Algorithm 1 as printed.
    rescale : False, "spectral" or "frobenius", default=False
        Divide the result by :math:`\beta = \|W\| / \|W + e I\|` in that norm. The paper
        states the spectral norm. Its code uses the Frobenius norm, and for coreference,
        where it rescales, :math:`\|W + e I\|_F / \|W + 2 e I\|_F`.

    Returns
    -------
    LowRank
        Symmetric, positive semidefinite and of rank at most s1.

    Raises
    ------
    ValueError, BudgetExceeded, SimilarityError
        `sim` is not symmetric (use ``sim.symmetrized()``), or an option is out of
        range; any error of a request to `sim`.

    Notes
    -----
    Calls, with s2 = min(z s1, n): ``n s1 - s1 (s1 - 1) / 2`` for the columns plus
    ``(s2 - s1)(s2 - s1 + 1) / 2`` for the rest of the block. Flops: O(s2^3). Source:
    Ray et al. (2022), Algorithm 1, which lacks the maximum with zero.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, sms_nystrom
    >>> x = np.random.default_rng(0).standard_normal((300, 5))
    >>> sms_nystrom(Similarity.from_matrix(np.tanh(x @ x.T)), 20, rng=0)
    LowRank(sms_nystrom: n=300, rank=20, calls=6020)
    """
    sim = check_similarity(sim)
    symmetric(sim, "sms_nystrom")
    one_of(variant, ("core", "landmarks", "printed"), "variant")
    if rescale:
        one_of(rescale, ("spectral", "frobenius"), "rescale")
    word_or_number(shift, ("submatrix", "exact"), "shift")
    finite(alpha, "alpha", 0)
    choose = partial(drawn, landmarks=landmarks, rng=rng)
    plan = sms_plan(sim.n, n_landmarks, oversampling, shift=shift, draw=choose)
    S1, (C, _, block, _) = plan.columns, plan.read(sim)
    W = C[S1].astype(float)
    e = _shift(block.astype(float), shift, alpha, np.finfo(sim.dtype).eps)
    shifted = W + e * np.eye(S1.size)
    core = pinv(shifted, symmetric=True, rcond=smallest_inverted(sim.dtype))
    if rescale and W.any():
        order: Literal[2, "fro"] = 2 if rescale == "spectral" else "fro"
        scale = -_scale.exponent(W)  # or squares may overflow
        norm, larger = (np.linalg.norm(np.ldexp(A, scale), order) for A in (W, shifted))
        core = core * (larger / norm)
    if variant != "core":
        C = C.copy()
        rows = S1 if variant == "landmarks" else np.arange(S1.size)
        C[rows, np.arange(S1.size)] += e
    kind = LowRank if variant == "core" else partial(Closed, reason=SHIFTED)
    return plan.answer(sim, "sms_nystrom", C, core, kind=kind)


def sms_plan(
    n: int,
    n_landmarks: int | None,
    oversampling: float = 2,
    *,
    shift: Literal["submatrix", "exact"] | float = "submatrix",
    draw: Any = nominal,
    **_: object,
) -> Plan:
    """Return what `sms_nystrom` reads."""
    S1, S2 = draw(n, n_landmarks, oversampling)
    if shift == "exact":
        S2, oversampling = Sides.same(np.arange(n)), np.inf
    elif shift != "submatrix":
        S2, oversampling = S1, 1
    return Plan(n, S1, block=S2, oversampling=oversampling)


def _shift(block: np.ndarray, shift: str | float, alpha: float, eps: float) -> float:
    if not isinstance(shift, str):
        return float(shift)
    smallest = scipy.linalg.eigvalsh(block, subset_by_index=[0, 0])[0]
    if smallest >= -len(block) * eps * np.abs(block).max():  # but for rounding
        return 0.0  # a positive semidefinite block needs no shift
    return float(-smallest * (alpha if shift == "submatrix" else 1.0))
