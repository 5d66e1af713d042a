r"""A small network that says whether two items belong together.

.. math::
    k(x, y) = \sigma \big( w^\top (W \, [x, y, x \circ y] + b)_+ + \beta \big)

x and y are vectors of the items, :math:`x \circ y` the products of their entries, (.)_+
is max(., 0) and σ the logistic function. The form of the scorers of coreference: it
reads both items at once, and what it says depends on their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.utils import check_array

from simlib._checks import finite, whole_number

__all__ = ["PairNetwork", "train_pair_network"]


@dataclass(frozen=True, eq=False)
class PairNetwork:
    """A trained network, as a similarity of all pairs of two sets of vectors.

    Attributes
    ----------
    hidden : ndarray of float32, shape (3 d, h)
        The weights W, those of x, of y and of their products.
    bias, output : ndarrays of float32, shape (h,)
        b and w.
    offset : float
        β.

    Examples
    --------
    As a similarity, symmetrised:

    >>> import numpy as np
    >>> from simlib import Similarity
    >>> from study.pair_network import PairNetwork
    >>> rng = np.random.default_rng(0)
    >>> network = PairNetwork(rng.standard_normal((6, 4)), np.ones(4), np.ones(4), 0.0)
    >>> points = rng.standard_normal((9, 2))
    >>> sim = Similarity(points, network, symmetric=False, batch="block")
    >>> sim.symmetrized().columns([0]).shape
    (9, 1)
    """

    hidden: np.ndarray
    bias: np.ndarray
    output: np.ndarray
    offset: float

    def __call__(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        """Return the scores of all pairs, between 0 and 1: (p, d) and (q, d) to (p, q).

        Raises ValueError for what is no table of finite numbers with d columns.
        """
        of_x, of_y, of_both = np.split(self.hidden.astype(np.float32), 3)
        d = len(of_x)
        x, y = _vectors(x, d), _vectors(y, d)
        first, second = x @ of_x + self.bias.astype(np.float32), y @ of_y
        scores = np.empty((len(x), len(y)), dtype=np.float32)
        for row, vector, start in zip(scores, x, first, strict=True):
            hidden = y @ (vector[:, None] * of_both) + second + start
            row[:] = np.maximum(hidden, 0, out=hidden) @ self.output.astype(np.float32)
        return expit(scores + np.float32(self.offset))


def train_pair_network(
    X: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike,
    *,
    n_hidden: int = 64,
    negatives: int = 10,
    epochs: int = 4,
    alpha: float = 1e-3,
    random_state: int = 0,
) -> PairNetwork:
    """Train a `PairNetwork` to tell which items of a group have the same label.

    `sklearn.neural_network.MLPClassifier` trains it.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Vectors of the items.
    labels : array_like of int, shape (n,)
        Pairs with the same label are positive.
    groups : array_like of int, shape (n,)
        Only pairs within a group are looked at.
    n_hidden : int, default=64
        Hidden units h.
    negatives : int, default=10
        Of the pairs with different labels, at most that many for each positive one are
        drawn from a group.
    epochs : int, default=4
        Times that the pairs are seen, in a new order each time.
    alpha : float, default=1e-3
        Weight of the squares of the weights.
    random_state : int, default=0
        Of the draws, orders and first weights.

    Raises
    ------
    ValueError
        Not a label and a group for each vector; pairs of one kind only; a number that
        is not positive.

    Notes
    -----
    O(m d h) flops a time for m pairs, each in a random order of the two. Source: Cattan
    et al. (2020), with one hidden layer.

    Examples
    --------
    >>> import numpy as np
    >>> from study.pair_network import train_pair_network
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(np.arange(40), 5)
    >>> X = rng.standard_normal((40, 8))[labels] + 0.1 * rng.standard_normal((200, 8))
    >>> network = train_pair_network(X, labels, labels // 10, n_hidden=16, epochs=20)
    >>> scores = network(X[:50], X[:50])
    >>> same = labels[:50, None] == labels[:50]
    >>> bool(((scores > 0.5) == same).mean() > 0.95)
    True
    """
    from sklearn.neural_network import MLPClassifier

    vectors: np.ndarray = check_array(X, dtype=np.float32, input_name="X")
    labels, groups = np.asarray(labels), np.asarray(groups)
    if not labels.shape == groups.shape == vectors.shape[:1]:
        raise ValueError(
            f"{len(vectors)} vectors need as many labels and groups; got shapes "
            f"{labels.shape} and {groups.shape}."
        )
    alpha = finite(alpha, "alpha", 0)
    n_hidden = whole_number(n_hidden, "n_hidden", 1)
    negatives = whole_number(negatives, "negatives", 1)
    epochs = whole_number(epochs, "epochs", 1)
    rng = np.random.default_rng(random_state)
    pairs = np.concatenate(
        [
            _pairs(np.flatnonzero(groups == group), labels, negatives, rng)
            for group in np.unique(groups)
        ]
    )
    same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    if not 0 < same.sum() < same.size:
        raise ValueError("The pairs within groups are all alike: nothing to tell.")
    network = MLPClassifier((n_hidden,), alpha=alpha, random_state=random_state)
    for _ in range(epochs):
        for part in np.array_split(rng.permutation(len(pairs)), len(pairs) // 1000 + 1):
            turned = rng.permuted(pairs[part], axis=1)
            x, y = vectors[turned[:, 0]], vectors[turned[:, 1]]
            inputs = np.hstack([x, y, x * y])
            network.partial_fit(inputs, same[part], classes=[False, True])
    weights = [coefficients.astype(np.float32) for coefficients in network.coefs_]
    bias, offset = network.intercepts_
    return PairNetwork(
        weights[0], bias.astype(np.float32), weights[1][:, 0], float(offset[0])
    )


def _pairs(
    items: np.ndarray, labels: np.ndarray, negatives: int, rng: np.random.Generator
) -> np.ndarray:
    """Return all pairs of items with the same label, and some others."""
    i, j = np.triu_indices(items.size, 1)
    same = labels[items[i]] == labels[items[j]]
    others = np.flatnonzero(~same)
    wanted = min(others.size, negatives * int(same.sum()))
    chosen = np.append(np.flatnonzero(same), rng.choice(others, wanted, replace=False))
    return np.column_stack([items[i[chosen]], items[j[chosen]]])


def _vectors(x: ArrayLike, d: int) -> np.ndarray:
    vectors: np.ndarray = check_array(x, dtype=np.float32, ensure_min_samples=0)
    if vectors.shape[1] != d:
        raise ValueError(
            f"The network compares vectors of {d} entries; got an array of shape "
            f"{vectors.shape}."
        )
    return vectors
