"""Tensors of PyTorch, CuPy and JAX as answers and as vectors.

None of these libraries is needed to test it: a stand-in refuses what a tensor on a
graphics card refuses.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from simlib import Similarity, SimilarityError
from simlib.neighbors import SimilarityNeighbors, nearest, search
from simlib.similarity.identity import digests


class Tensor:
    """A tensor of PyTorch with a gradient, on a graphics card."""

    def __init__(self, values, place=("graph", "card"), size=2):
        self.values, self.place, self.size = np.asarray(values), place, size
        self.shape = self.values.shape

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")

    def _at(self, *place, size=None):
        return Tensor(self.values, place, size or self.size)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        return Tensor(self.values[rows], self.place, self.size)

    def reshape(self, shape):
        raise AssertionError("of a tensor on the card")

    def is_floating_point(self):
        return self.values.dtype.kind == "f"

    def element_size(self):
        return self.size

    def detach(self):
        return self._at(*(set(self.place) - {"graph"}))

    def cpu(self):
        return self._at(*(set(self.place) - {"card"}))

    def float(self):
        return self._at(*self.place, size=4)

    def numpy(self):
        if self.place or (self.size < 4 and self.is_floating_point()):
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values


class Cupy:
    """An array of CuPy."""

    __cuda_array_interface__ = {}  # noqa: RUF012

    def __init__(self, values):
        self.values, self.shape = np.asarray(values), np.shape(values)

    def __getitem__(self, rows):
        return Cupy(self.values[rows])

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def reshape(self, shape):
        raise AssertionError("of an array on the card")

    def get(self):
        return self.values


X = np.linspace(0, 1, 12)
FORMS = {
    "tensor": Tensor,
    "whole numbers": lambda values: Tensor(np.rint(9 * values).astype(int)),
    "list of tensors": lambda values: [Tensor(value) for value in values],
    "cupy": Cupy,
}


@pytest.mark.parametrize("form", FORMS)
def test_answers(form):
    def plain(x, y):
        values = 1 - np.abs(x - y)
        return np.rint(9 * values) if form == "whole numbers" else values

    sim = Similarity(X, lambda x, y: FORMS[form](1 - np.abs(x - y)), batch="pairs")
    expected = Similarity(X, plain, batch="pairs")
    np.testing.assert_array_equal(sim.rows([0, 5]), expected.rows([0, 5]))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("form", [np.asarray, Tensor, Cupy])
def test_an_answer_of_one_pair(form, shape):
    def function(x, y):
        return form(np.full(shape, 1 - abs(x - y)))

    found = Similarity(X, function).pairs([0, 3], [5, 4])
    np.testing.assert_array_equal(found, 1 - np.abs(X[[0, 3]] - X[[5, 4]]))


def test_an_answer_of_one_pair_is_one_number():
    sim = Similarity(X, lambda x, y: Tensor([x, y]))
    with pytest.raises(SimilarityError, match="items 0 and 1"):
        sim.pairs([0], [1])


@pytest.mark.parametrize("form", [Tensor, Cupy])
def test_vectors(form):
    vectors = np.column_stack([X, 1 - X])
    few = {"k": 2, "limit": 40, "rng": 0}
    graphs = [
        nearest(Similarity(X, lambda x, y: -abs(x - y)), cheap=cheap, **few)
        for cheap in (vectors, form(vectors))
    ]
    np.testing.assert_array_equal(*[graph.indices for graph in graphs])


@pytest.mark.parametrize("form", [Tensor, Cupy])
def test_a_matrix(form):
    K = 1 - np.abs(X - X[:, None])
    np.testing.assert_array_equal(Similarity.from_matrix(form(K)).rows([3]), K[[3]])


@pytest.mark.parametrize("form", [Tensor, Cupy])
def test_vectors_of_new_items(form):
    vectors, new = np.column_stack([X, 1 - X]), np.array([[0.3, 0.7], [0.9, 0.1]])
    graphs = [
        search(
            Similarity(X, lambda x, y: -abs(x - y)), new[:, 0], 2, limit=8,
            cheap=vectors, cheap_new=rows, fit_limit=20, rng=0,
        )
        for rows in (new, form(new))
    ]  # fmt: skip
    np.testing.assert_array_equal(*[graph.indices for graph in graphs])


@pytest.mark.parametrize("form", [Tensor, Cupy, lambda values: [*map(Tensor, values)]])
def test_items_of_an_estimator(form):
    def near(x, y):
        asked.append(1)
        return -np.abs(x.values - y.values).sum()

    asked, x = [], np.arange(12.0).reshape(4, 3)
    model = SimilarityNeighbors(near, 1, random_state=0).fit(form(x))
    calls = len(asked)
    assert model.transform(form(x)).indices.tolist()[::2] == [0, 1, 2, 3]
    assert len(asked) == calls
    assert model.transform(form(x[::-1])).indices.tolist()[::2] == [3, 2, 1, 0]


@pytest.mark.parametrize("form", [Tensor, Cupy, lambda values: [*map(Tensor, values)]])
def test_a_store_knows_items_that_are_tensors(form, tmp_path):
    """Of half precision what PyTorch has as float32."""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert_array_equal(digests(form(x)), digests(x))
    kept, i, j = {"store": tmp_path / "paid", "function_id": "taxi"}, [0, 1], [2, 3]

    def distance(a, b):
        return Tensor(np.abs(a.values - b.values).sum())

    first = Similarity([*map(Tensor, x)], distance, **kept)
    first.pairs(i, j)
    first.close()
    again = Similarity(form(x), distance, **kept)
    assert_array_equal(again.pairs(i, j), [18, 18])
    assert again.calls == 0


class Eager:
    """A scalar of TensorFlow, whose type has no kind."""

    dtype = object()

    def __float__(self):
        return 0.5


def test_a_scalar_whose_type_has_no_kind_is_a_number():
    assert Similarity(["a", "b"], lambda x, y: Eager()).block([0], [1]) == 0.5
