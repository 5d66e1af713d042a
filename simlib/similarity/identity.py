"""Hashes of items, in 64 bits: the same in every process and at every place."""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse

from simlib._checks import from_device
from simlib.similarity.items import names_of

ID = np.dtype("<u8")
HASHED = 2**17  # numbers of an array that are fetched at a time
_TIMES = datetime.date | datetime.time | datetime.timedelta


class Table:
    """The ids of the items of a collection: `ids`, hashes in uint64, shape (n,).

    `by_name` tells that `items_id` was given: items outside the collection have no ids.
    """

    def __init__(self, items: Any, n: int, items_id: Sequence[Any] | None = None):
        self.by_name = items_id is not None
        unordered = isinstance(items_id, str | Mapping | Set)
        if items_id is not None and (unordered or len(items_id) != n):
            raise ValueError(
                f"items_id names each of the {n} items: a sequence of as many strings "
                f"or numbers, all different; got {items_id!r:.60}."
            )
        self.ids = identities(items) if items_id is None else digests(items_id)
        self._order = np.argsort(self.ids)
        ordered = self.ids[self._order]
        if self.by_name and (ordered[1:] == ordered[:-1]).any():
            raise ValueError(
                "items_id names two items alike; each needs a name of its own."
            )

    def places(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the items with these ids, and which ids are known."""
        at = np.searchsorted(self.ids, ids, sorter=self._order)
        places = self._order.take(at, mode="clip")
        return places, self.ids[places] == ids


def digest(item: Any) -> int:
    """Return a hash of an item that is plain data.

    Parameters
    ----------
    item : object
        A string, bytes, a number, a date, a duration, None, an array, a row of a sparse
        matrix, or a list, tuple, set or mapping of these; anything else is a TypeError.

    Returns
    -------
    int
        64 bits of BLAKE2b, the same for a tuple and a list, and in any order of keys.

    Examples
    --------
    >>> from simlib.similarity import digest
    >>> digest(["a", "b"]) == digest(("a", "b"))
    True
    """
    hashed = hashlib.blake2b(digest_size=ID.itemsize)
    for part in _parts(from_device(item)):
        hashed.update(part)
    return int.from_bytes(hashed.digest(), "little")


def digests(items: Any) -> np.ndarray:
    """Return the `digest` of each item of a collection, an array of uint64."""
    return np.fromiter(map(digest, _each(items)), np.uint64)


def identities(items: Any) -> np.ndarray:
    """Return hashes that are all different, also for items that are equal."""
    ids = digests(items)
    _, which, counts = np.unique(ids, return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    earlier = np.arange(ids.size) - np.repeat(np.cumsum(counts) - counts, counts)
    for k, count in zip(order[earlier > 0], earlier[earlier > 0], strict=True):
        ids[k] = digest((int(ids[k]), int(count)))
    return ids


def _each(items: Any) -> Iterator[Any]:
    """Yield the items of a collection; rows of a data frame as mappings."""
    if hasattr(items, "columns") and not isinstance(items, np.ndarray):
        names = names_of(items)
        if len(set(names)) < len(names):
            raise ValueError(
                f"Two columns of the items have one name, of {names}: rename one."
            )
        columns = (_each(items[name]) for name in names)
        for cells in zip(*columns, strict=True):
            yield dict(zip(names, cells, strict=True)) if len(names) > 1 else cells[0]
    elif np.ma.isMaskedArray(items) or not hasattr(items, "shape"):
        yield from items.to_pylist() if hasattr(items, "to_pylist") else items  # Arrow
    else:
        rows = getattr(items, "iloc", items)  # pandas: by place, not by label
        step = max(1, HASHED // max(1, math.prod(items.shape[1:])))
        for k in range(0, items.shape[0], step):
            part = rows[k : k + step]
            dtype = getattr(part, "dtype", None)
            if hasattr(part, "astype") and not isinstance(dtype, np.dtype | None):
                part = part.astype(object)  # or a gap would be NaN here, None elsewhere
            if hasattr(part, "to_list"):  # of pandas and Polars: the cells of a record
                part = part.to_list()
            elif not scipy.sparse.issparse(part):
                part = np.asarray(from_device(part))
                part = part.tolist() if part.ndim == 1 else part
            yield from part


def _parts(value: Any) -> Iterator[bytes]:
    """Yield the bytes that stand for a value; no two values have the same."""
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value).__name__  # those of pandas are as others, up to nanoseconds
    if kind == "Timestamp" and not value.nanosecond:
        value = value.to_pydatetime()
    elif kind == "Timedelta" and not value.nanoseconds:
        value = value.to_pytimedelta()
    elif kind in ("NAType", "NaTType"):
        value = None
    plain = isinstance(value, np.ndarray) and not np.ma.isMaskedArray(value)
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        yield b"s%d:" % len(data) + data
    elif isinstance(value, float) and value.is_integer():
        yield b"n%d;" % int(value)  # a column of integers with a gap has become floats
    elif value is None or isinstance(value, Number | _TIMES):
        yield f"n{value!r};".encode()
    elif isinstance(value, bytes | bytearray):
        yield b"b%d:" % len(value) + value
    elif isinstance(value, list | tuple | range):
        yield b"l%d:" % len(value)
        for item in value:
            yield from _parts(item)
    elif isinstance(value, Mapping | Set):
        pairs = value.items() if isinstance(value, Mapping) else ((v, 1) for v in value)
        yield b"d%d:" % len(value)
        yield from sorted(b"".join(_parts(pair)) for pair in pairs)
    elif scipy.sparse.issparse(value):
        matrix = value.reshape(1, -1).tocsr() if value.ndim == 1 else value.tocsr()
        matrix = matrix.sorted_indices()
        yield f"m{matrix.shape}:".encode()
        for array in (matrix.indptr.astype("<i8"), matrix.indices.astype("<i8")):
            yield array.tobytes()
        yield from _parts(matrix.data)
    elif plain and value.dtype.kind in "biufc":
        dtype = value.dtype.newbyteorder("<")
        yield f"a{dtype.str}{value.shape}:".encode()
        yield np.ascontiguousarray(value, dtype).tobytes()
    elif plain and value.dtype.kind in "OSU":  # whose width depends on other strings
        yield from _parts(value.tolist())
    else:
        raise TypeError(
            f"There is no digest of a {type(value).__name__}: pass items_id, one "
            "string or number for each item, by which it is known again."
        )
