"""The store of one similarity: the values of its items, and those of other items."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from simlib._checks import warn, whole_number
from simlib.similarity.budget import Budget, SimilarityError
from simlib.similarity.evaluate import Evaluator, Finished, Target
from simlib.similarity.identity import Table, identities
from simlib.similarity.known import Known, Places, grid, look
from simlib.similarity.store import Names, Record, Store, StoreError, StoreWarning

DIFFERENT = 0.01  # of the range of a store's values, or of their size if all are alike
UNSURE = 1e-5  # of this range: another function, or one whose answers vary


class Ledger:
    """The values kept for the next process; none without a store.

    `shelf` receives the stored values of the items of this matrix. `tables` hold the
    ids of these items, for rows and for columns.
    """

    def __init__(
        self, shelf: Known, store: Store | None = None, tables: Sequence[Table] = ()
    ):
        self.shelf, self.store, self.tables = shelf, store, tables
        self._others = Others(shelf.symmetric, shelf.dtype)

    def names(self, ids: Places | None = None) -> Names | None:
        """Return the store with ids of rows and columns, by default of this matrix."""
        if self.store is None:
            return None
        return Names(self.store, *(ids or (table.ids for table in self.tables)))

    def take(self, records: Sequence[Record]) -> list[Record]:
        """Put the values of these items on the shelf; return them as records."""
        ours = []
        for i, j, values, is_grid in records:
            (a, here_a), (b, here_b) = self._places(i, j)
            if self._others.loaded and not (here_a.all() and here_b.all()):
                one, other = Record(i, j, values, is_grid).pairs()
                self._others.put(one, other, values.ravel())
            if is_grid:
                values = values[np.ix_(here_a, here_b)]
            else:
                here_a = here_b = here_a & here_b
                values = values[here_a]
                self.shelf.put(a[here_a], b[here_b], values)
            if values.size:
                ours.append(Record(a[here_a], b[here_b], values, is_grid))
        self.shelf.restore([record[:3] for record in ours if record.grid])
        return ours

    def warn_of_strangers(self, records: Sequence[Record]) -> None:
        """Warn if the store has values, but none of these items."""
        for i, j, *_ in records:
            if any(here.any() for _, here in self._places(i, j)):
                return
        if self.store is not None and (count := sum(r.values.size for r in records)):
            named = any(table.by_name for table in self.tables)
            warn(
                f"{self.store.path} holds {count} values, and knows none of these "
                f"items, which go by {'items_id' if named else 'their data'} here. If "
                "they are those of which it was made, pass them in the form that they "
                "had then, and the same items_id or none.",
                StoreWarning,
            )

    def _places(self, i: np.ndarray, j: np.ndarray) -> Iterator[Places]:
        """Yield for rows and columns the numbers of these ids, and which are here."""
        for table, ids in zip(self.tables, (i, j), strict=True):
            yield table.places(ids)

    def ids_with(self, new_items: Any, side: int) -> Places | None:
        """Return ids of rows and columns, new items on one side; None without ids."""
        store = self.store
        if store is None or self.tables[side].by_name:
            return None
        if not self._others.loaded:
            records = store.records() if store.is_open else []
            self._others.loaded = True  # which `take` fills
            try:
                self.take(records)
            except BaseException:
                self._others.loaded = False
                raise
        new, inside = identities(new_items), self.tables[1 - side].ids
        return (inside, new) if side else (new, inside)

    def keeper(self, ids: Places) -> Finished:
        """Return a function that remembers values of items with these ids."""

        def keep(i: np.ndarray, j: np.ndarray, values: np.ndarray) -> None:
            self.take([Record(ids[0][i], ids[1][j], values, False)])

        return keep

    def fill(
        self, i: np.ndarray, j: np.ndarray, out: np.ndarray, known: Sequence[Known]
    ) -> None:
        """Write the known values of rows with ids i and columns with ids j to `out`."""
        rows, columns = grid(i, j)
        values = self._others.get(rows, columns)
        (a, here_a), (b, here_b) = self._places(rows, columns)
        here = here_a & here_b & np.isnan(values)  # new items may be like others
        values[here] = look(known, a[here], b[here])
        out[...] = values.reshape(out.shape)

    def catch_up(self) -> None:
        """Remember and write the values that an interrupt or a full disk has left."""
        if self.store is not None and self.store.pending:
            self.take(self.store.pending)
            with suppress(StoreError):  # the next evaluation raises it
                self.store.flush()


class Others:
    """Values of pairs of any items, which are identified by hashes of 64 bits."""

    def __init__(self, symmetric: bool, dtype: np.dtype):
        self.loaded = False  # set by the `Ledger` that fills it
        self._number: dict[int, int] = {}
        self._known = Known(2**31, symmetric=symmetric, dtype=dtype)

    def __reduce__(self) -> tuple[type[Others], tuple[bool, np.dtype]]:
        return Others, (self._known.symmetric, self._known.dtype)  # copies are empty

    def put(self, i: np.ndarray, j: np.ndarray, values: np.ndarray) -> None:
        """Remember values; of several values for a pair the first stays."""
        self._known.put(self._numbers(i), self._numbers(j), values)

    def get(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the value of each pair, NaN where unknown."""
        return self._known.get(self._numbers(i), self._numbers(j))

    def _numbers(self, names: np.ndarray) -> np.ndarray:
        names, at = np.unique(names, return_inverse=True)
        number = self._number
        found = [number.setdefault(name, len(number)) for name in names.tolist()]
        return np.array(found, np.int64)[at]


def open_ledger(
    path: str | os.PathLike[str] | None,
    function_id: str | None,
    items_id: Sequence[Any] | None,
    verify: int,
    shelf: Known,
    evaluator: Evaluator,
) -> tuple[Ledger, int]:
    """Open the store, if a path is given, and put its values on the shelf.

    Returns the ledger, and the number of stored pairs that were evaluated again.
    """
    if path is None:
        if function_id is not None or items_id is not None:
            raise ValueError("function_id and items_id are for a store.")
        return Ledger(shelf), 0
    if not (isinstance(function_id, str) and function_id):
        raise ValueError(
            "A store needs function_id, a text that names the function and its "
            "version: nothing else could tell that the function was changed; got "
            f"{function_id!r}."
        )
    verify = whole_number(verify, "verify", least=0)
    tables = _named(evaluator.collections, shelf, items_id)
    manifest = {
        "dtype": shelf.dtype.name,
        "symmetric": str(shelf.symmetric),
        "form": str(evaluator.batch),
        "function_id": function_id,
    }
    store = Store(path, manifest)
    ledger = Ledger(shelf, store, tables)
    try:
        every = store.records()
        records = ledger.take(every)
        ledger.warn_of_strangers(every)
        return ledger, _evaluate_again(records, verify, shelf, evaluator, store.path)
    except BaseException:
        store.close()
        raise


def _named(
    collections: Sequence[Any], shelf: Known, items_id: Sequence[Any] | None
) -> list[Table]:
    """Return the ids of the rows and of the columns in the store."""
    if not isinstance(shelf.extent, tuple):
        return [Table(collections[0], shelf.extent, items_id)] * 2
    both = (None, None) if items_id is None else items_id
    if not (isinstance(both, tuple) and len(both) == 2):
        raise ValueError(
            "items_id names the rows and the columns of two collections: pass a "
            "pair, of which one may be None."
        )
    return list(map(Table, collections, shelf.shape, both))


def _evaluate_again(
    records: Sequence[Record],
    number: int,
    known: Known,
    evaluator: Evaluator,
    path: object,
) -> int:
    """Evaluate some pairs of a store again; raise or warn where they differ."""
    if not records:
        return 0
    rng = np.random.default_rng(len(records))
    some = [records[k] for k in rng.integers(0, len(records), 4 * number)]
    at = [tuple(rng.integers(record.values.shape)) for record in some]
    both = list(zip(some, at, strict=True))
    before = np.array([r.values[x] for r, x in both], known.dtype)
    pairs = [(r.i[x[0]], r.j[x[-1]]) for r, x in both]
    i, j = np.array(pairs, np.int64).reshape(-1, 2).T
    use = (i != j) | isinstance(known.extent, tuple)
    i, j, before = i[use], j[use], before[use]
    _, first = np.unique(known.keys(i, j), return_index=True)
    first = np.sort(first)[:number]
    i, j, before = i[first], j[first], before[first]
    if i.size == 0:
        return 0
    again = np.full_like(before, np.nan)
    target = Target(again, Budget(None))
    try:
        evaluator.run(evaluator.scattered(i, j, np.arange(i.size)), target)
    except SimilarityError:  # perhaps on a pair whose value was told: try the others
        for one in np.flatnonzero(np.isnan(again)).reshape(-1, 1):
            with suppress(SimilarityError):
                evaluator.run(evaluator.scattered(i, j, one), target)
        if np.isnan(again).all():
            raise
    got = ~np.isnan(again)
    i, j, before, again = i[got], j[got], before[got], again[got]
    low = min(float(record.values.min()) for record in records)
    high = max(float(record.values.max()) for record in records)
    size = max(abs(low), abs(high))
    span, rounding = high - low or size, 1000 * np.finfo(known.dtype).eps * size
    gap = np.abs(again - before)
    wrong = gap > UNSURE * span + rounding
    if wrong.any():
        k = int(np.argmax(gap))
        told = (
            f"The function does not give what {path} holds: "
            f"{evaluator.form.format(i[k], j[k])} have the similarity {before[k]:.9g} "
            f"there and {again[k]:.9g} here, and so have {np.count_nonzero(wrong)} of "
            f"the {i.size} pairs that were evaluated again. If the function was "
            "changed, give it another function_id, and a file of its own. If its "
            "answers vary by themselves, or these were told, pass verify=0."
        )
        if gap[k] > DIFFERENT * span + rounding:
            raise StoreError(told)
        warn(told, StoreWarning)
    return i.size
