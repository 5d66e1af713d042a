"""Words with their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from simlib._checks import indices, readable


@dataclass(frozen=True, eq=False, repr=False)
class WordVectors(Mapping):
    """A mapping from words to vectors that are views of one read-only array.

    Attributes
    ----------
    words : tuple of str
        The n words.
    array : ndarray of float32 or float64, shape (m, d)
        The vectors, in float64 unless given in single or half precision. Not copied if
        it is already contiguous and of that type.
    rows : ndarray of int, shape (n,)
        The row of the vector of each word; by default row i for word i. Several words,
        such as the forms of one word, may share a row.
    index : dict
        Word -> row.

    Raises
    ------
    ValueError, IndexError
        The words are not distinct, their number is not that of `rows`, or a row does
        not exist; the vectors are no array of real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from simlib.datasets import WordVectors
    >>> vectors = WordVectors(("cat", "dog"), np.eye(2))
    >>> vectors["dog"].tolist()
    [0.0, 1.0]
    """

    words: tuple[str, ...]
    array: np.ndarray
    rows: np.ndarray | None = None
    index: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        words = tuple(self.words)
        given = np.asanyarray(readable(self.array, "Vectors of words"))
        if given.dtype.kind not in "fiub":
            raise ValueError(f"Vectors of words must be real; got {given.dtype}.")
        single = given.dtype.kind == "f" and given.dtype.itemsize <= 4
        kind = np.float32 if single else np.float64
        with np.errstate(over="ignore"):  # later errors name the words of infinities
            array = np.ascontiguousarray(given, dtype=kind).view()
        array.flags.writeable = False
        given = np.arange(len(array)) if self.rows is None else self.rows
        rows = indices(given, len(array), "Rows").copy()
        rows.flags.writeable = False
        index = dict(zip(words, rows.tolist(), strict=False))
        if array.ndim != 2 or not len(index) == len(words) == len(rows):
            raise ValueError(
                f"{len(words)} words ({len(set(words))} distinct) need as many "
                f"vectors, got {len(rows)} of an array of shape {array.shape}"
            )
        # The dataclass is frozen: set its fields here.
        self.__dict__.update(words=words, array=array, rows=rows, index=index)

    def __repr__(self) -> str:
        n, d = len(self), self.array.shape[1]
        return f"{type(self).__name__}({n} words, {d} dimensions)"

    __eq__ = object.__eq__  # a Mapping would compare arrays
    __hash__ = object.__hash__

    def __getitem__(self, word: str) -> np.ndarray:
        return self.array[self.index[word]]

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __len__(self) -> int:
        return len(self.words)

    def __reduce__(self) -> tuple:
        return WordVectors, (self.words, self.array, self.rows)

    def __deepcopy__(self, memo: dict) -> WordVectors:
        return self  # it is immutable, and `sklearn.base.clone` copies often
