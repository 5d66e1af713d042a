r"""A scorer of pairs that is always there: whether two images show the same digit.

.. math::
    k(x, y) = \sigma \big( w^\top (W_2 \, (W_1 \, [x, y, x \circ y] + b_1)_+
    + b_2)_+ + b \big)

A small network of the form of a cross-encoder: it reads both items at once, and what it
says of a pair depends on their order. [x, y, x ∘ y] are the pixels of both images and
their products, (.)_+ is max(., 0), and σ is the logistic function.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from study.datasets.loaders import CrossEncoderData

N_TRAIN = 297  # images from which the network learned
SEED = 20220222  # of the order of the images and of the pairs
PIXELS = 64
WEIGHTS = "digit_pairs.npz"  # beside this module


@dataclass(frozen=True, eq=False)
class PairScorer:
    """The probability a network gives that two images show the same digit.

    It takes and returns float64 or float32, and costs 6200 multiplications a pair.

    Attributes
    ----------
    weights : tuple of ndarray, of shapes (192, 64), (64, 32) and (32, 1)
        One array for each layer.
    biases : tuple of ndarray, of shapes (64,), (32,) and (1,)
        What is added.

    Examples
    --------
    As a similarity, symmetrised:

    >>> from simlib import Similarity
    >>> from study.datasets import bundled_digit_pairs
    >>> images, scorer, _ = bundled_digit_pairs()
    >>> sim = Similarity(images[:100], scorer, symmetric=False, batch="block")
    >>> sim.symmetric, sim.symmetrized().symmetric
    (False, True)
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]

    def __call__(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        """Return the scores of all pairs of images: (p, 64) and (q, 64) to (p, q).

        The network reads x first. Raises ValueError for images not of 64 pixels.
        """
        x, y = _images(x), _images(y)
        of_x, of_y, of_product = np.split(self.weights[0], 3)
        one, two, three = self.biases
        scores = np.empty((len(x), len(y)), np.result_type(x, y, one))
        for row, image in zip(scores, x, strict=True):
            hidden = y @ (of_y + image[:, None] * of_product)
            hidden = (hidden + (image @ of_x + one)).clip(min=0)
            hidden = (hidden @ self.weights[1] + two).clip(min=0)
            row[:] = expit(hidden @ self.weights[2] + three)[:, 0]
        return scores


def bundled_digit_pairs() -> tuple[np.ndarray, PairScorer, np.ndarray]:
    """Return scikit-learn's digit images, and a network trained to compare them.

    Returns
    -------
    images : ndarray of float64, shape (1500, 64)
        Pixels between 0 and 1 of the images on which the network was not trained, in
        random but fixed order.
    scorer : PairScorer
        The network, of float32, made by ``train`` of this module from pairs of the
        other 297 images. It is right about 96 % of the pairs of these.
    labels : ndarray of int, shape (1500,)
        The digits.

    Examples
    --------
    >>> from study.datasets import bundled_digit_pairs
    >>> images, scorer, labels = bundled_digit_pairs()
    >>> K = scorer(images[:200], images[:200])
    >>> same = labels[:200, None] == labels[:200]
    >>> bool(((K > 0.5) == same).mean() > 0.95)
    True
    """
    images, labels, _ = _shuffled()
    return images[N_TRAIN:], _shipped(), labels[N_TRAIN:]


def bundled_cross_encoder() -> CrossEncoderData:
    """Return a stand-in for `load_cross_encoder`: images in place of sentences.

    Returns
    -------
    CrossEncoderData
        Of 1000 images: the scores of the network of `bundled_digit_pairs` for all
        ordered pairs, the pixels in place of embeddings, and 500 labelled pairs, whose
        label is 1 where both images show the same digit, as half of them do.

    Examples
    --------
    >>> from study.datasets import bundled_cross_encoder
    >>> data = bundled_cross_encoder()
    >>> data.matrix.shape, data.pairs.shape, data.scores.mean().item()
    ((1000, 1000), (500, 2), 0.5)
    """
    images, scorer, labels = bundled_digit_pairs()
    waiting = list(range(len(images)))
    order: list[int] = []
    while len(order) < 1000:  # a pair of one digit, then one of two
        first, alike = waiting.pop(0), len(order) % 4 == 0
        order += [
            first,
            next(k for k in waiting if (labels[k] == labels[first]) == alike),
        ]
        waiting.remove(order[-1])
    images, labels = images[order], labels[order]
    pairs = np.arange(1000).reshape(-1, 2)
    return CrossEncoderData(
        matrix=scorer(images, images).astype(float),
        sentences=[f"an image of {digit}" for digit in labels],
        embeddings=normalize(images).astype(np.float32),
        pairs=pairs,
        scores=(labels[pairs[:, 0]] == labels[pairs[:, 1]]).astype(float),
        dev_rows=np.arange(len(pairs)),
    )


def train() -> PairScorer:
    """Train the network of `bundled_digit_pairs` anew, in about 5 s.

    It learns from all ordered pairs of 297 images that show the same digit, an image
    with itself included, and from as many random pairs that do not: scikit-learn's
    ``MLPClassifier((64, 32), max_iter=500, random_state=0)``, rounded to float32.

    Notes
    -----
    The file is written by::

        scorer = train()
        layers = zip(scorer.weights, scorer.biases)
        arrays = (array for layer in layers for array in layer)
        np.savez_compressed("digit_pairs.npz", *arrays)
    """
    from sklearn.neural_network import MLPClassifier

    images, labels, rng = _shuffled()
    images, labels = images[:N_TRAIN], labels[:N_TRAIN]
    same = labels[:, None] == labels
    i, j = np.nonzero(same)
    others = rng.choice(np.argwhere(~same), len(i), replace=False)
    i, j = np.concatenate([i, others[:, 0]]), np.concatenate([j, others[:, 1]])
    network = MLPClassifier((64, 32), max_iter=500, random_state=0)
    pairs = np.hstack([images[i], images[j], images[i] * images[j]])
    network.fit(pairs, same[i, j])
    weights, biases = (
        tuple(array.astype(np.float32) for array in arrays)
        for arrays in (network.coefs_, network.intercepts_)
    )
    return PairScorer(weights, biases)


def _shipped() -> PairScorer:
    path = files(__package__) / WEIGHTS
    with path.open("rb") as file, np.load(file) as stored:
        arrays = [stored[name] for name in stored.files]
    return PairScorer(tuple(arrays[0::2]), tuple(arrays[1::2]))


def _shuffled() -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Return images and labels in a fixed random order, and the generator of that."""
    rng = np.random.default_rng(SEED)
    digits = load_digits()
    order = rng.permutation(len(digits.data))
    return digits.data[order] / 16, digits.target[order], rng


def _images(x: ArrayLike) -> np.ndarray:
    images = np.asarray(x)
    if images.ndim != 2 or images.shape[1] != PIXELS:
        raise ValueError(
            f"the network compares images of {PIXELS} pixels, rows of two-dimensional "
            f"arrays; got an array of shape {images.shape}"
        )
    return images
