"""Digests: what an item is, whatever holds it."""

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from simlib.similarity.identity import digest, digests, identities
from simlib.similarity.items import as_items
from support.regression import peak

N = 40
POINTS = np.random.default_rng(0).standard_normal((N, 3))
WORDS = [f"word {k}" for k in range(N)]


plain = st.recursive(
    st.one_of(
        st.text("ab1,:é\0", max_size=3),
        st.binary(max_size=3),
        st.integers(),
        st.booleans(),
        st.floats(allow_nan=False),
    ),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(plain, plain)
def test_digests_tell_items_apart(one, other):
    """A number is the same as an integer and as a float."""

    def number(item):
        if isinstance(item, list):
            return [number(part) for part in item]
        whole = isinstance(item, float) and item.is_integer()
        return int(item) if whole else item

    assert (digest(one) == digest(other)) == (repr(number(one)) == repr(number(other)))


def test_digests_of_arrays_mappings_and_what_is_missing():
    X = np.arange(6.0).reshape(2, 3)
    assert digest(X) == digest(X.T.copy().T) == digest(X.astype(">f8"))
    assert (
        len({digest(Y) for Y in (X, X.T, X.ravel(), X.astype(np.float32), X + 1)}) == 5
    )
    sparse = scipy.sparse.csr_array(X)
    assert digest(sparse) == digest(scipy.sparse.csc_array(X)) != digest(X)
    assert digest(np.array(["a", "b"], dtype=object)) == digest(["a", "b"])
    wide = np.array([["a", "b"], ["a", "much longer one"]])
    assert digest(wide[0]) == digest(np.array(["a", "b"])) == digest(["a", "b"])
    assert digest([np.float64(1.0), np.str_("a")]) == digest([1.0, "a"])
    assert digest({"a": 1, "b": None}) == digest({"b": None, "a": 1})
    assert digest({"a": 1, "b": 2}) != digest({"a": 2, "b": 1})
    assert digest({"a", "b"}) == digest({"b", "a"}) != digest({"a"})
    assert digest([np.nan]) == digest([np.float32("nan")]) != digest([None])
    kept = 5760120798103172560  # of files that exist
    assert digest([X, X[:, ::2], sparse, np.array(2.0), X[:0]]) == kept
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    for item in (object(), masked, [masked], {1: object()}):
        with pytest.raises(TypeError, match="pass items_id"):
            digest(item)


def test_collections_of_the_same_items_have_the_same_digests():
    expected = [digest(word) for word in WORDS]
    words = np.array(WORDS)
    frame = pandas.DataFrame({"word": WORDS, "at": range(N)}, index=range(N, 0, -1))
    for items in (WORDS, tuple(WORDS), words, words.astype(object), frame["word"]):
        assert digests(items).tolist() == expected
    assert digests(frame[["word"]]).tolist() == expected
    rows = [{"word": word, "at": k} for k, word in enumerate(WORDS)]
    assert digests(frame).tolist() == [digest(row) for row in rows]
    gaps = pandas.concat([frame, pandas.DataFrame({"word": [pandas.NA]})])
    assert digests(gaps).tolist() == [
        *digests(frame).tolist(),
        digest({"word": None, "at": np.nan}),
    ]
    X = scipy.sparse.csr_array(np.eye(5))
    assert digests(X).tolist() == [digest(X[[k]]) for k in range(5)]
    assert digests(POINTS).tolist() == digests(list(POINTS)).tolist()
    assert digests(np.arange(3.0)).tolist() == digests([0, 1, 2]).tolist()
    assert digests(POINTS[:0]).size == 0


def test_digests_of_an_array_make_no_copy_of_it():
    X = np.zeros((2**12, 2**10))
    assert peak(lambda: digests(X[:, 1:])) < X.nbytes / 8


@pytest.mark.parametrize("batch", [None, "pairs"])
def test_gaps_of_nullable_columns_are_the_same_in_every_form(batch):
    frame = pandas.DataFrame({"a": ["p", "q"], "b": pandas.array([1, None], "Int64")})
    ids = identities(as_items(frame, batch))
    assert ids.tolist() == digests([{"a": "p", "b": 1}, {"a": "q", "b": None}]).tolist()


class Tensor:
    """An array of another library, which has neither a type of NumPy nor astype."""

    dtype = "float32"

    def __init__(self, values):
        self.values, self.shape = values, values.shape

    def __getitem__(self, key):
        return Tensor(self.values[key])

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_digests_of_arrays_of_other_libraries():
    rows = POINTS.astype(np.float32)
    np.testing.assert_array_equal(digests(Tensor(rows)), digests(rows))


@pytest.mark.parametrize("kind", ["datetime64[ns]", "datetime64[s]", "timedelta64[s]"])
def test_a_column_of_times_is_its_cells(kind):
    times = pandas.Series(np.array([0, 86_400_000], kind))
    frame = pandas.DataFrame({"a": times, "b": 1})
    assert digests(times).tolist() == digests(list(times)).tolist()
    assert digests(frame).tolist() == digests(frame.to_dict("records")).tolist()
    plain = times.astype(kind.replace("[ns]", "[us]").replace("[s]", "[us]"))
    cells = plain.to_numpy()
    for same in (cells, cells.tolist(), list(cells)):
        assert digests(same).tolist() == digests(times).tolist()


class Series:
    """A column of Polars, with gaps that NumPy takes for NaN."""

    dtype = "Int64"

    def __init__(self, values):
        self.values, self.shape = values, (len(values),)

    def __getitem__(self, key):
        return Series(self.values[key])

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, float)

    def to_list(self):
        return self.values


def test_a_gap_of_a_column_is_that_of_a_list():
    assert digests(Series([1, None])).tolist() == digests([1, None]).tolist()
