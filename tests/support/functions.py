"""Similarity functions in the three forms that `batch` tells."""

import numpy as np

from simlib import Similarity

BATCHES = [None, "pairs", "block"]


def in_form(one, batch):
    """A function of two items as one of pairs, or of blocks."""
    if batch == "pairs":
        return lambda xs, ys: [one(x, y) for x, y in zip(xs, ys, strict=True)]
    if batch == "block":
        return lambda xs, ys: [[one(x, y) for y in ys] for x in xs]
    return one


def listed(sim):
    """The pairs and values that are known, (i, j, K[i, j])."""
    return [triple for part in sim.known() for triple in zip(*part, strict=True)]


def known_pairs(sim):
    return [(int(i), int(j)) for i, j, _ in listed(sim)]


class Oracle:
    """A similarity function on 0..n-1 that writes down what it is asked.

    `asked` holds one list of ordered pairs for each time it is called.
    """

    def __init__(self, matrix, batch=None, fail=lambda x, y: None):
        self.matrix, self.batch, self.fail = np.asarray(matrix), batch, fail
        self.asked = []

    def __call__(self, x, y):
        if self.batch == "block":
            x, y = np.meshgrid(x, y, indexing="ij")
        pairs = list(zip(np.ravel(x).tolist(), np.ravel(y).tolist(), strict=True))
        answers = {self.fail(*pair) for pair in pairs} - {None}
        if answers:
            raise answers.pop()
        self.asked.append(pairs)
        return self.matrix[x, y]

    @property
    def pairs(self):
        return [pair for call in self.asked for pair in call]

    def check(self, sim, *, symmetric):
        """Assert that no pair was asked for twice, and that each one was counted."""
        block = self.batch == "block"  # may see the diagonal again, beside the others
        once = [[(i, j) for i, j in call if i != j or not block] for call in self.asked]
        pairs = [pair for call in once for pair in call]
        assert len(set(pairs)) == len(pairs)
        if symmetric:  # a block function may see both orders, at the same time
            together = [{frozenset(pair) for pair in call} for call in once]
            assert sum(map(len, together)) == len(set().union(*together))
            if self.batch != "block":
                assert sum(map(len, together)) == len(self.pairs)
        assert sim.calls == len(self.pairs)


def matrix(n, *, symmetric=True, seed=0):
    K = np.random.default_rng(seed).standard_normal((n, n))
    return K + K.T if symmetric else K


def make(n=9, *, columns=None, symmetric=True, batch=None, **options):
    """A matrix, its oracle and a similarity of n items, or of n rows and columns."""
    K = matrix(max(n, columns or n), symmetric=symmetric and columns is None)
    K = K[:n, : columns or n]
    oracle = Oracle(K, batch, options.pop("fail", lambda x, y: None))
    if columns is None:
        options["symmetric"] = symmetric
    else:
        options["columns"] = np.arange(columns)
    return K, oracle, Similarity(np.arange(n), oracle, batch=batch, **options)


class Mishap(Exception):
    """Needs two arguments, so that it cannot be pickled as it is."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")
