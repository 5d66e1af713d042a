"""Collections of items of any kind, and the fetching of some of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set, ValuesView
from typing import Any

import numpy as np
import scipy.sparse

from simlib._checks import from_device


def indexable(items: Any) -> Any:
    """Return items that can be fetched by number; raise for any other collection."""
    if scipy.sparse.issparse(items):
        return items.tocsr()
    if isinstance(items, str | bytes | bytearray | os.PathLike):
        raise TypeError(
            f"Items are a sequence or an array; a {type(items).__name__} is one item: "
            "pass [x]. The name of a file is not read: pass what it holds."
        )
    sized = hasattr(items, "shape") or hasattr(items, "__len__")
    if isinstance(items, Mapping | Set | ValuesView) or not sized:
        mapping, unordered = isinstance(items, Mapping), isinstance(items, Set)
        lacks = "no order" if unordered else "no numbers" if sized else "no len()"
        raise TypeError(
            f"Items are a sequence or an array; a {type(items).__name__} has {lacks}. "
            f"Pass list(items{'.values()' if mapping else ''})."
        )
    return items


def as_items(items: Any, batch: str | None) -> Any:
    """Return items in the form in which a function with this `batch` receives them.

    A data frame with one column becomes that column, unless it holds numbers and the
    function takes blocks. An array with one column that holds no numbers becomes that
    column. A function of two items receives the rows of other data frames as mappings.
    """
    items = indexable(items)
    if is_frame(items):
        if items.shape[1] == 1 and not (batch == "block" and numeric(items)):
            if hasattr(items, "iloc"):
                return items.iloc[:, 0]
            return [value for row in _records(items) for value in row.values()]
        return _records(items) if batch is None else items
    if isinstance(items, np.ndarray) and items.shape[1:] == (1,) and not numeric(items):
        return items[:, 0]
    return items


def count(items: Any) -> int:
    """Return how many items there are."""
    if not hasattr(items, "shape"):
        return len(items)
    if len(items.shape) == 0:
        raise ValueError("Items are a sequence or an array; got a single value.")
    return int(items.shape[0])


def is_frame(items: Any) -> bool:
    """Tell whether items are the rows of a data frame."""
    return hasattr(items, "columns") and len(getattr(items, "shape", ())) == 2


def names_of(frame: Any) -> list[Any]:
    """Return the names of the columns of a data frame."""
    names = getattr(frame, "column_names", None)  # of Arrow, whose `columns` are data
    return names if isinstance(names, list) else list(frame.columns)


def numeric(table: Any) -> bool:
    """Tell whether a data frame or an array holds numbers alone."""
    dtypes = getattr(table, "dtypes", None)  # of a data frame
    if dtypes is None and is_frame(table):  # of Arrow
        dtypes = [np.dtype(kind.to_pandas_dtype()) for kind in table.schema.types]
    if dtypes is None:
        return getattr(table, "dtype", np.dtype(object)).kind in "biufcV"
    return all(
        dtype.is_numeric() if hasattr(dtype, "is_numeric") else dtype.kind in "biufc"
        for dtype in dtypes
    )


def _records(frame: Any) -> list[dict[Any, Any]]:
    """Return the rows of a data frame, each a mapping from the names of columns."""
    for name in ("to_dicts", "to_pylist"):  # of Polars, of Arrow
        if hasattr(frame, name):
            return getattr(frame, name)()
    return frame.to_dict("records")


def some_of(items: Any, index: np.ndarray) -> Any:
    """Return the items with these numbers, in the form of the whole collection."""
    if hasattr(items, "iloc"):
        return items.iloc[index].reset_index(drop=True)  # or pandas aligns by labels
    if is_frame(items):
        return items.take(index) if hasattr(items, "take") else items[index]
    plain = isinstance(items, np.ndarray) or scipy.sparse.issparse(items)
    if not (plain or hasattr(items, "shape")):
        return [items[k] for k in index.tolist()]
    if plain or (np.diff(index) > 0).all():
        return items[index]
    index, at = np.unique(index, return_inverse=True)  # as an HDF5 file demands
    return items[index][at]


def check_alike(items: Any, new_items: Any) -> None:
    """Raise where new items have another shape, or a table of them other columns."""
    one, other = (getattr(array, "shape", None) for array in (items, new_items))
    if one is not None and other is not None and one[1:] != other[1:]:
        raise ValueError(
            f"New items are like those of the matrix, each of shape {tuple(one[1:])}; "
            f"got some of shape {tuple(other[1:])}. A single item x is passed as "
            "x[None], an array of one."
        )
    tables = [table for table in (items, new_items) if hasattr(table, "columns")]
    names = list(map(names_of, tables))
    if len(names) == 2 and names[0] != names[1]:
        raise ValueError(
            f"New items have the columns of the others, {names[0]}, in their order; "
            f"got {names[1]}."
        )


def unmasked(values: Any) -> np.ndarray:
    """Return values as an array, NaN where they are masked."""
    if np.ma.isMaskedArray(values) and values.dtype.kind in "fiub":
        dtype = values.dtype if values.dtype.kind == "f" else float
        return np.ma.filled(values.astype(dtype), np.nan)
    return np.asarray(from_device(values))
