r"""The Tikhonov core of what a cheap similarity leaves unexplained.

.. math::
    \tilde K = B + (K - B)_{:,S_1} \, U \, (K - B)_{:,S_1}^\top , \qquad
    B_{ij} = w \, f(G_{ij})

Equation :eq:`eq:anchored` of the book: G holds the cheap similarities of the same
items, f is a monotone function fitted to the evaluated entries of K, the weight w is 0,
1/2 or 1, and U is the core of equation :eq:`eq:tikhonov` for K - B in place of K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from simlib import _scale
from simlib._checks import numbers, one_of, same_length, shaped, whole_number
from simlib._typing import Indices, Seed
from simlib.approximation.calibration import Interpolation, calibration_of
from simlib.approximation.companion import CheapPart, as_companion
from simlib.approximation.fit import COMMON, Problem, in_units
from simlib.approximation.plan import Number, Plan, Reading, drawn
from simlib.approximation.tikhonov import tikhonov, tikhonov_plan
from simlib.lowrank import LowRank
from simlib.lowrank.tall import read_only
from simlib.similarity.budget import BudgetExceeded, SimilarityError
from simlib.similarity.source import Source
from simlib.similarity.views import MappedSimilarity, SimilarityMatrix, check_similarity

WEIGHTS = (0.0, 0.5, 1.0)  # of the cheap part; of equally good ones the first is taken


def anchored(
    sim: Source,
    n_landmarks: Number,
    cheap: Source
    | Callable[[Any, Any], float]
    | ArrayLike
    | tuple[ArrayLike, ArrayLike],
    *,
    oversampling: float = 2,
    calibration: Literal["isotonic"] | None = "isotonic",
    base_rank: int | None = None,
    landmarks: Indices | tuple[Indices, Indices] | None = None,
    rng: Seed = None,
) -> Anchored:
    r"""Approximate a similarity matrix with the help of a cheap similarity.

    A cheap similarity that nearly agrees with K, such as bi-encoder cosines beside a
    cross-encoder, carries most of the matrix, and the evaluated entries are spent on
    the difference. A cheap similarity that does not help gets the weight 0.

    Parameters
    ----------
    sim, n_landmarks, oversampling
        As in `tikhonov`.
    cheap : Similarity, function, or array or sparse array of shape (n, d)
        The same items under a cheap similarity or distance; a function of two items; or
        the factor Z of similarities :math:`Z Z^\top`, for two collections a pair (Z, W)
        for :math:`Z W^\top`. Pass a matrix G of cheap similarities as
        ``Similarity.from_matrix(G)``: a symmetric array of shape (n, n) is refused.
        Calls of `cheap` are counted by `cheap` alone.
    calibration : "isotonic" or None, default="isotonic"
        Map cheap similarities, rounded to six digits, to entries of K by isotonic
        regression on the evaluated entries, and by a line beyond their range. None
        takes cheap similarities as they are: better if they have the scale of K and a
        few entries of K are far larger than the others.
    base_rank : int, optional
        Compress the cheap part to this rank, by `tikhonov`: the answer then consists of
        factors, and embeds items and new items. None keeps the cheap part as an
        operator, which computes entries when they are asked for and keeps none.
    landmarks : array of int, optional
        Indices to use in place of a draw; for two collections a pair of arrays.
    rng : int, Generator or None
        With the same seed `tikhonov` draws the same landmarks.

    Returns
    -------
    Anchored
        A `LowRank` of rank at most s1 plus the cheap part, symmetric if `sim` is, with
        the weight and the ridge that were chosen.

    Raises
    ------
    ValueError
        An option out of range; a cheap similarity of other items, or one that is not
        symmetric for a symmetric K, or an array with two possible meanings.
    BudgetExceeded, SimilarityError
        As for any request to `sim` or `cheap`.

    Notes
    -----
    Calls: those of `tikhonov`, ``n s1 - s1 (s1 - 1) / 2 + (s2 - s1)(s2 - s1 + 1) / 2``
    with s2 = min(z s1, n). As many calls of the cheap similarity, which
    `base_rank` without calibration spares; with `base_rank` also those of `tikhonov`
    for r landmarks, without it n^2 / 2 in each product with vectors. Flops: some ten
    times those of `tikhonov`, and O(n s1 log(n s1)).

    Weight and ridge, which may be infinite, are chosen together by the squared error on
    evaluated entries that a fit has not seen, :eq:`eq:two-kinds`, in the folds of
    `tikhonov` and in ten folds of the landmarks. Source: ours; residual corrections of
    a cheap model are known as multi-fidelity methods, see Kennedy and O'Hagan (2000).

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, anchored, relative_error, tikhonov
    >>> x = np.random.default_rng(0).standard_normal((300, 20))
    >>> noise = np.random.default_rng(1).standard_normal((300, 2))
    >>> K = np.exp(x @ x.T / 10) + noise @ noise.T
    >>> sim = Similarity.from_matrix(K)
    >>> answer = anchored(sim, 10, cheap=x, rng=0)
    >>> relative_error(K, answer) < 0.3 * relative_error(K, tikhonov(sim, 10, rng=0))
    True
    """
    sim = check_similarity(sim)
    cheap = as_companion(cheap, sim)
    if calibration is not None:
        one_of(calibration, ["isotonic"], "calibration, if it is not None,")
    if base_rank is not None:
        base_rank = whole_number(base_rank, "base_rank", 1, min(sim.shape))
    rng = np.random.default_rng(rng)
    choose = partial(drawn, landmarks=landmarks, rng=rng)
    plan = tikhonov_plan(sim.extent, n_landmarks, oversampling, draw=choose)
    _check_companion(cheap, plan, base_rank)
    problem = partial(Problem.of, S1=plan.landmarks, sim=sim)
    read = plan.read(sim)
    try:
        f: Callable[[ArrayLike], np.ndarray] = np.asarray
        if calibration:
            f = calibration_of(plan, plan.read(cheap), read, sim)
        calibrated, base = cheap.map(f), None
        if base_rank is not None:
            # Factors made for float64 have large entries that cancel: not in float32.
            coarser = min(sim.dtype, cheap.dtype)
            compressed = MappedSimilarity(cheap, f, coarser)
            base = tikhonov(compressed.blank(), base_rank, rng=rng)
        guess = plan.read(calibrated) if base is None else _read(base, plan)
    except SimilarityError as error:
        raise SimilarityError(f"The cheap similarity failed. {error}") from error
    K, B = problem(read), problem(guess)
    B = _in_units_of(K, B)
    weight, ridge = _choose(K, B)
    left, core, right = _less(K, B, weight).factors(ridge)
    residual, base_landmarks, base_rows = None, np.zeros(0, dtype=int), None
    if weight and base is None:
        residual = CheapPart(calibrated.map(partial(np.multiply, weight)), sim.dtype)
    elif weight and base is not None and base.landmarks is not None:
        left, core, right = _joined(K, core, base, weight)
        base_landmarks, base_rows = base.landmarks, base.row_landmarks
    answer = partial(plan.answer, sim, "anchored", left, core, right, Anchored)
    return answer(
        residual=residual,
        weight=weight,
        ridge=in_units(ridge, -K.exponent),
        calibration=f,
        base_landmarks=base_landmarks,
        base_row_landmarks=base_rows,
    )


class Anchored(LowRank):
    r"""The answer of `anchored`: a `LowRank` with the parameters that were chosen.

    Attributes
    ----------
    weight : float
        The weight w of the cheap part: 0, 0.5 or 1. Zero means that the cheap
        similarity did not help.
    ridge : float
        The regularisation of the core; infinity means that the core is zero.
    calibration : callable
        The function f from cheap similarities to predicted entries of K.
    base_landmarks : array of int
        With ``base_rank``, the items whose calibrated cheap similarities are the later
        columns of `left`; empty if the weight is zero.
    base_row_landmarks : array of int
        The same for `right`, and so the `base_landmarks` of the transpose.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib import Similarity, anchored
    >>> x = np.random.default_rng(0).standard_normal((200, 20))
    >>> sim = Similarity.from_matrix(np.exp(x @ x.T / 10))
    >>> answer = anchored(sim, 10, cheap=x, base_rank=30, rng=0)
    >>> answer.weight, answer.base_landmarks.size
    (1.0, 30)
    """

    def __init__(
        self,
        left: np.ndarray,
        core: np.ndarray,
        right: np.ndarray | None,
        *,
        weight: float,
        ridge: float,
        calibration: Callable[[ArrayLike], np.ndarray],
        base_landmarks: np.ndarray,
        base_row_landmarks: np.ndarray | None = None,
        **options: Any,
    ):
        options.setdefault("method", "anchored")
        super().__init__(left, core, right, **options)
        self.weight, self.ridge = weight, ridge
        self.calibration, self.base_landmarks = calibration, read_only(base_landmarks)
        same = base_row_landmarks is None
        self.base_row_landmarks = (
            self.base_landmarks if same else read_only(base_row_landmarks)
        )

    def _transpose(self) -> LowRank:
        turned: Any = super()._transpose()
        if turned is not self:
            turned.base_landmarks = self.base_row_landmarks
            turned.base_row_landmarks = self.base_landmarks
        return turned

    _adjoint = _transpose

    def _arguments(self) -> dict[str, Any]:
        chosen = ("weight", "ridge", "calibration")
        base = ("base_landmarks", "base_row_landmarks")
        return super()._arguments() | {n: getattr(self, n) for n in chosen + base}

    def _parts(self) -> dict[str, Any]:
        knots, values = None, None
        if isinstance(self.calibration, Interpolation):
            knots, values = self.calibration.knots, self.calibration.values
        elif self.calibration is not np.asarray:
            raise TypeError(
                "A calibration that `anchored` has not made cannot be saved."
            )
        parts = super()._parts() | {"knots": knots, "values": values}
        del parts["calibration"]
        return parts

    @classmethod
    def _of_parts(cls, parts: dict[str, Any]) -> Self:
        own = {name: parts.pop(name) for name in ("knots", "values")}
        f: Callable[[ArrayLike], np.ndarray] = np.asarray
        if own["knots"] is not None:
            f = Interpolation(own["knots"], own["values"])
        return cls(**parts, calibration=f)

    def extend(
        self, columns: ArrayLike, cheap_columns: ArrayLike | None = None
    ) -> np.ndarray:
        """Embed new items from their similarities and their cheap similarities.

        Parameters
        ----------
        columns : array of shape (m, l)
            Similarities to `landmarks`, as in `LowRank.extend`. The answer and the
            errors are the same.
        cheap_columns : array of shape (m, r), optional
            Cheap similarities to `base_landmarks`, not calibrated. Not needed if
            `base_landmarks` is empty.
        """
        if self.base_landmarks.size == 0:
            return super().extend(columns)
        if cheap_columns is None:
            raise ValueError(
                "New items need their cheap similarities to `base_landmarks` too: pass "
                "extend(columns, cheap_columns)."
            )
        columns = np.atleast_2d(numbers(columns, "columns"))
        cheap_columns = np.atleast_2d(numbers(cheap_columns, "cheap_columns"))
        same_length(columns, cheap_columns, "columns and cheap_columns")
        calibrated = self.calibration(cheap_columns)
        n_cheap = self.base_landmarks.size
        n_dear = self.left.shape[1] - n_cheap
        sides = 1 if self.symmetric or columns.shape[1] == n_dear else 2
        shaped(columns, ("m", sides * n_dear), "Similarities to `landmarks`")
        shaped(calibrated, ("m", sides * n_cheap), "Those to `base_landmarks`")
        parts = [part.reshape(len(part), sides, -1) for part in (columns, calibrated)]
        joined = np.concatenate(parts, axis=2).reshape(len(columns), -1)
        return super().extend(joined.astype(self.dtype))


def _check_companion(
    cheap: SimilarityMatrix, plan: Plan, base_rank: int | None
) -> None:
    """Raise if the limit of `cheap` does not pay for the plan and for `base_rank`."""
    besides = 0
    if base_rank is not None:
        besides = tikhonov_plan(cheap.extent, base_rank).price(cheap.blank())
    try:
        plan.check(cheap, lambda plan: plan.price(cheap) + besides)
    except BudgetExceeded as error:
        raise BudgetExceeded(f"The cheap similarity: {error}") from error


def _read(base: LowRank, plan: Plan) -> Reading:
    """Return the entries of a plan, computed from an approximation."""
    S1, S2 = plan.landmarks, plan.block
    C, R = base.T.rows(S1.columns).T, base.rows(S1.rows).T
    return Reading(C=C, R=R, A=base.rows(S2.rows)[:, S2.columns], diagonal=None)


def _in_units_of(K: Problem, B: Problem) -> Problem:
    """Return B divided by the power of two that K was divided by."""
    exponent = K.exponent - B.exponent
    if B.largest and _scale.exponent(B.largest) - exponent > COMMON:
        raise ValueError(
            "The cheap similarities are so much larger than those of the matrix that "
            "squares overflow: scale them, cheap.map(lambda values: values * 2.0**k), "
            "or let them be calibrated."
        )
    return B.divided(exponent)


def _less(K: Problem, B: Problem, weight: float) -> Problem:
    """Return the problem of K - w B."""
    if weight == 0:
        return K
    dtype, R = K.C.dtype, None
    if K.R is not None and B.R is not None:
        R = (K.R - weight * B.R).astype(dtype, copy=False)
    C = (K.C - weight * B.C).astype(dtype, copy=False)
    return replace(K, A=K.A - weight * B.A, C=C, R=R)


def _choose(K: Problem, B: Problem) -> tuple[float, float]:
    """Return the weight of B and the ridge that best predict unseen entries."""
    shape = len(K.C), len(K.C if K.R is None else K.R)
    if np.equal(K.s1, shape).any():  # every entry is evaluated
        return 0.0, 0.0
    eps = np.finfo(K.C.dtype).eps
    sizes = (np.linalg.norm(part.astype(float, copy=False)) for part in (K.A, K.C))
    negligible = eps * sum(size**2 for size in sizes)  # float64: float32 may overflow
    table = []
    for weight in WEIGHTS:
        problem = _less(K, B, weight)
        ridges = np.append(np.inf, problem.ridges()[::-1])
        errors = problem.held_out_errors(ridges).sum(axis=0)
        errors += problem.landmark_errors(ridges).sum(axis=0)
        k = int(np.argmin(np.maximum(errors, negligible)))
        table.append((max(errors[k], negligible), weight, float(ridges[k])))
    _, weight, ridge = min(table)
    return weight, ridge


def _joined(
    K: Problem, core: np.ndarray, base: LowRank, weight: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the factors of w P M Q^T + C U R^T, with C and R of K - w P M Q^T."""
    K, S1, dtype = K.divided(-K.exponent), K.S1, K.C.dtype
    M, (r, c) = weight * base.core, K.s1
    from_left = np.vstack([np.eye(c), -M @ base.right[S1.columns].T])
    from_right = np.vstack([np.eye(r), -M.T @ base.left[S1.rows].T])
    joined = from_left @ core @ from_right.T
    joined[c:, r:] += M
    if K.R is None:
        joined, right = (joined + joined.T) / 2, None
    else:
        right = np.hstack([K.R, base.right]).astype(dtype)
    return np.hstack([K.C, base.left]).astype(dtype), joined.astype(dtype), right
