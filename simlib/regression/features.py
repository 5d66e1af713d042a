r"""Features whose inner products are nearly the exponential kernel.

.. math::
    e^{\langle x, y \rangle}
    = \sum_{p \ge 0} \frac{\langle x^{\otimes p}, y^{\otimes p} \rangle}{p!}
    \approx \langle z(x), z(y) \rangle , \qquad
    z(x) = \left( 1, \; x, \; \frac{\Pi^2 x^{\otimes 2}}{\sqrt{2!}}, \; \dots, \;
    \frac{\Pi^q x^{\otimes q}}{\sqrt{q!}} \right)

Equation :eq:`eq:tensor-power` of the book. Each power has its own sketch, or all its
monomials if they are few.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations_with_replacement
from typing import Any, Literal, Self, get_args

import numpy as np
from scipy.special import comb, gammaln, pdtrc, xlogy
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.utils import Tags, gen_batches
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted, validate_data

from simlib._checks import generator, one_of, readable, whole_number
from simlib.lowrank.tall import dense
from simlib.regression.sketch import PolynomialSketch

Kind = Literal[
    "tensor_srht", "shared_tree", "taylor", "positive", "polynomial_count_sketch"
]
FEATURES_AT_ONCE = 2**20  # features computed at a time
REACH = 100  # squared norm up to which "auto" finds a degree, which is at most 191
ROUNDING = np.finfo(float).eps  # share of exp(|x|^2) that the series may leave out
NEGLIGIBLE = 1e-5  # the same for "shared_tree", where more degrees cost features


class ExponentialFeatures(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Features Z of the rows of X for which Z Z^T is about exp(X X^T), entrywise.

    `simlib.rpcholesky` is more accurate for the same rank, but depends on the data;
    `sklearn.kernel_approximation.RBFSampler` is for the Gaussian kernel.

    Parameters
    ----------
    n_components : int, default=512
        Number of features. One of them is constant, but for "positive".
    kind : str, default="tensor_srht"
        How the features are made.

        - "tensor_srht": each power by its own `PolynomialSketch`, or exactly by its
          monomials :math:`x^\alpha / \sqrt{\alpha!}` if that lowers the error.
        - "polynomial_count_sketch": the same, with the sketches of scikit-learn.
        - "shared_tree": the method of the paper. All sketched degrees have the same
          number of features and the same sketches. Biased, at best half as accurate.
        - "taylor": all monomials up to the last degree that fits. The most accurate
          for few columns, or for rows of norm at most 1 that point in all directions.
        - "positive": :math:`e^{\langle w, x \rangle - \|x\|^2 / 2}` for normal vectors
          w. No feature is negative; the error is among the largest.
    degree : "auto" or int, default="auto"
        The largest degree. "auto" takes so many terms that the rest is below the
        rounding error of :math:`e^{r^2}`, in the mean over the rows of `fit`, with r
        the norm of a row or 1 if that is larger; below 1e-5 of it for "shared_tree".
        Far longer rows of `transform` lack terms: fit to rows as long as those to come,
        or give a degree. Ignored by "positive".
    random_state : int, RandomState or None
        Source of randomness; "taylor" uses none.

    Attributes
    ----------
    degree_, budget_ : int and ndarray of int, or None for "positive"
        The largest degree that has features, and the number of features of each degree
        from 0.
    n_components_ : int
        Number of features, at most `n_components`.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn.

    Notes
    -----
    With m sketched features the variance of an entry, divided by
    :math:`e^{\|x\|^2 + \|y\|^2}`, is :math:`W^2 / m` in the mean over the rows, where W
    is the share of the terms :math:`\|x\|^{2p} / p!` of the sketched degrees p in
    :math:`e^{\|x\|^2}`. Keep rows short, as attention does by :math:`d^{-1/4}`.
    Flops for n rows, m features and degrees up to q: O(q n m log m) for sketches, n m q
    for monomials; 2 n m d for "positive". Memory besides Z: a few times 2^20 numbers.

    Source: Song, Yin and Zhang (2024), Theorem H.6 and Algorithm 8, for "shared_tree";
    Ahle et al. (2020) for the tree of independent sketches; Pham and Pagh (2013) for
    the sketches of scikit-learn; Choromanski et al. (2021) for "positive".

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.regression import ExponentialFeatures
    >>> X = np.random.default_rng(0).standard_normal((500, 8))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> Z = ExponentialFeatures(512, random_state=0).fit_transform(X)
    >>> K = np.exp(X @ X.T)
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 0.01 * np.linalg.norm(K))
    True
    """

    _parts: list[Callable[[Any], np.ndarray]]

    def __init__(
        self,
        n_components: int = 512,
        *,
        kind: Kind = "tensor_srht",
        degree: Literal["auto"] | int = "auto",
        random_state: int | np.random.RandomState | None = None,
    ):
        self.n_components = n_components
        self.kind = kind
        self.degree = degree
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Distribute the features over the degrees, and draw the sketches.

        X is an array or sparse array of shape (n, d), of which only the norms of the
        rows are used. ValueError or TypeError: an option out of range; for "taylor",
        `n_components` below the number of monomials of `degree`, or of degree 1.
        """
        one_of(self.kind, get_args(Kind), "`kind`")
        whole_number(self.n_components, "n_components", 1)
        if self.degree != "auto":
            whole_number(self.degree, 'degree, if not "auto",', 1)
        X = self._rows(X, reset=True)
        source: Any = (rng := generator(self.random_state))
        if self.kind == "positive":
            directions = rng.standard_normal((X.shape[1], int(self.n_components)))
            self._parts = [partial(_positive, directions=directions.astype(X.dtype))]
            self.budget_ = self.degree_ = None
            self.n_components_ = int(self.n_components)
            return self
        # The squared norms of rows, to two decimals, and the share of each.
        lengths = np.clip(row_norms(X, squared=True).astype(float), 1, REACH).round(2)
        squares, numbers = np.unique(lengths, return_counts=True)
        shares = numbers / len(lengths)
        degrees = np.arange(self._terms(squares, shares) + 1)
        counts = comb(X.shape[1] + degrees - 1, degrees)
        if self.kind == "taylor":
            budget = self._monomials_that_fit(counts)
        elif self.kind == "shared_tree":
            budget = _equal_budget(self.n_components, counts)
            source = int(rng.integers(2**63))  # the seed of every degree
        else:
            p = degrees[:, None]
            weights = np.exp(xlogy(p, squares) - gammaln(p + 1) - squares) @ shares
            budget = _weighted_budget(self.n_components, counts, weights)
        self.budget_ = np.trim_zeros(budget.astype(int), "b")
        self.degree_ = len(self.budget_) - 1
        self.n_components_ = int(self.budget_.sum())
        self._parts = []
        for k, size in enumerate(self.budget_.tolist()):
            if size == counts[k] and (k < 2 or self.kind != "shared_tree"):
                chosen = list(combinations_with_replacement(range(X.shape[1]), k))
                self._parts.append(partial(_monomials, chosen=np.array(chosen, int)))
            elif size > 0:
                self._parts.append(self._sketch(X, k, size, source))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of rows X (n, d), dense or sparse, shape (n, m).

        float32 stays float32.

        Raises
        ------
        ValueError
            Other columns than in `fit`; a row whose squared norm is above 100 if
            ``degree="auto"``, or above 1419 (177 in float32), where features overflow.
        """
        check_is_fitted(self, "n_components_")
        X = self._rows(X, reset=False)
        self._check_lengths(X)
        Z = np.empty((X.shape[0], self.n_components_), X.dtype)
        for rows in gen_batches(len(Z), max(1, FEATURES_AT_ONCE // self.n_components_)):
            Z[rows] = np.hstack([part(X[rows]) for part in self._parts])
        return Z

    def _rows(self, X: Any, *, reset: bool) -> Any:
        X = readable(X, "X")
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset
        )

    def _terms(self, squares: np.ndarray, shares: np.ndarray) -> int:
        """Return the degree up to which the series is taken."""
        if self.degree != "auto":
            return int(self.degree)
        remainder = NEGLIGIBLE if self.kind == "shared_tree" else ROUNDING
        left_out = pdtrc(np.arange(3 * REACH)[:, None], squares) @ shares
        return int(np.argmax(left_out <= remainder))

    def _monomials_that_fit(self, counts: np.ndarray) -> np.ndarray:
        fits = np.cumsum(counts) <= self.n_components
        asked = len(counts) - 1 if self.degree != "auto" else int(self.n_components > 1)
        if not fits[asked]:
            raise ValueError(
                f"The monomials of up to degree {asked} in {counts[1]:.0f} variables "
                f"are {counts[: asked + 1].sum():.0f} features, more than "
                f"n_components={self.n_components}: allow as many, or take "
                'kind="tensor_srht", which sketches what does not fit.'
            )
        return counts[fits]

    def _sketch(
        self, X: Any, degree: int, size: int, rng: Any
    ) -> Callable[[Any], np.ndarray]:
        """Return a map of rows to sketches of their powers over sqrt(degree!)."""
        if self.kind == "polynomial_count_sketch":
            seed = int(np.random.default_rng(rng).integers(2**31))
            options = {"degree": degree, "n_components": size, "random_state": seed}
            sketch = PolynomialCountSketch(**options).fit(X[:1]).transform
        else:
            shared = self.kind == "shared_tree"
            sketch = PolynomialSketch(size, X.shape[1], degree, shared=shared, rng=rng)
        scale = float(np.exp(-gammaln(degree + 1) / (2 * degree)))
        return partial(_scaled, sketch=sketch, scale=scale)

    def _check_lengths(self, X: Any) -> None:
        longest = row_norms(X, squared=True).max()
        reason = remedy = ""
        if longest > 2 * np.log(np.finfo(X.dtype).max):
            reason = f"and {X.dtype} holds no features of norm exp({longest / 2:.4g})"
        elif self.degree == "auto" and self.kind != "positive" and longest > REACH:
            reason = f'and degree="auto" takes terms for {REACH} at most'
            remedy = ", or give a degree"
        if reason:
            raise ValueError(
                f"A row has the squared norm {longest:.4g}, {reason}. Scale the rows, "
                "by d ** -0.25 as attention does, or to length 1 by "
                f"sklearn.preprocessing.normalize{remedy}."
            )

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _first_exact(n_components: int, counts: np.ndarray) -> int:
    """Return how many degrees are always exact: 0 alone, or 0 and 1."""
    return 2 if 2 * counts[1] < n_components else 1


def _equal_budget(n_components: int, counts: np.ndarray) -> np.ndarray:
    exact = _first_exact(n_components, counts)
    left = int(n_components - counts[:exact].sum())
    sketched = min(len(counts) - exact, left)
    return np.append(counts[:exact], [left // max(1, sketched)] * sketched)


def _weighted_budget(
    n_components: int, counts: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the number of features of each degree; `counts` of them are exact.

    If L features are left for sketched degrees whose weights have the sum W, the
    variance is proportional to W^2 / L. If degree p becomes exact, it is proportional
    to (W - w_p)^2 / (L - counts_p).
    """
    exact = np.arange(len(counts)) < _first_exact(n_components, counts)
    while True:
        left = n_components - counts[exact].sum()
        rest = np.where(exact, 0, weights)
        share = rest / max(rest.sum(), np.finfo(float).tiny)
        better = ~exact & (counts <= left * share * (2 - share))
        if not better.any():
            break
        exact[np.argmax(better)] = True
    sizes = np.floor(left * share)
    missing = 0 if exact.all() else int(left - sizes.sum())
    sizes[np.argsort(sizes - left * share, kind="stable")[:missing]] += 1
    return np.where(exact, counts, np.minimum(sizes, counts))


def _monomials(X: Any, *, chosen: np.ndarray) -> np.ndarray:
    """Return x^alpha / sqrt(alpha!); a row of `chosen` lists the variables of alpha."""
    if not chosen.size:  # degree 0
        return np.ones((X.shape[0], 1), X.dtype)
    columns = np.ascontiguousarray(dense(X).T)
    Z = np.ones((len(chosen), columns.shape[1]), X.dtype)
    last, power = -1, np.ones(len(chosen), dtype=int)
    for variable in chosen.T:
        power = np.where(variable == last, power + 1, 1)
        Z *= columns[variable]
        Z /= np.sqrt(power)[:, None]
        last = variable
    return Z.T


def _scaled(X: Any, *, sketch: Callable[[Any], np.ndarray], scale: float) -> np.ndarray:
    """Return the sketches of rows, which are scaled first so that none overflows."""
    return sketch(X * scale)


def _positive(X: Any, *, directions: np.ndarray) -> np.ndarray:
    exponents = X @ directions - row_norms(X, squared=True)[:, None] / 2
    return np.exp(exponents) * directions.shape[1] ** -0.5
