"""The store: the values that a similarity has evaluated, kept in one SQLite file.

A finished request is one transaction: its rows, columns and values as bytes, and a
checksum. Items are identified by hashes. The file is locked while it is open. It holds
every finished request, even if the process is killed.
``python -m simlib.similarity.store info|verify|export FILE`` looks into one.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import shutil
import sqlite3
import sys
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simlib._checks import warn
from simlib.similarity.identity import ID, digest
from simlib.similarity.store_file import (
    FULL,
    INSERT,
    Hold,
    Record,
    StoreError,
    begin,
    checksum_of,
    connect,
    is_store,
    manifest_of,
    store_errors,
    whole_requests,
)

__all__ = ["Names", "Record", "Store", "StoreError", "StoreWarning", "digest", "main"]

STEP = 2**16  # lines printed at a time
LARGEST = 2**20  # values of a row of the file, at most: SQLite takes 1e9 bytes
AGREE = ("dtype", "symmetric", "function_id")  # entries of the manifest that must agree


class StoreWarning(UserWarning):
    """A store has lost something to damage, or knows none of the items."""


class Names(NamedTuple):
    """A store, and the ids of the items on both sides of a request."""

    store: Store
    i: np.ndarray
    j: np.ndarray

    def hand(self, record: Record) -> None:
        """Take a finished request, to be written by `flush`."""
        self.store.hand(record._replace(i=self.i[record.i], j=self.j[record.j]))

    def flush(self) -> None:
        """Write the pending requests, as `Store.flush` does."""
        self.store.flush()


class Store:
    """The file of one similarity, open for writing; it is made if it does not exist.

    ``journal_mode=DELETE`` and ``synchronous=FULL``: a request that `flush` has written
    survives a crash of the process and of the machine. `pending` holds the requests
    that are not written yet. StoreError: the file is no store, in use, of another
    format, or has another dtype, symmetric or function_id than the `manifest`.
    """

    def __init__(self, path: str | os.PathLike[str], manifest: dict[str, str]):
        self.path = Path(os.path.realpath(path))  # a link stays one
        self._aside = self.path.with_name(self.path.name + ".damaged")
        self.pending: list[Record] = []
        self._process = os.getpid()
        self._dtype = np.dtype(manifest["dtype"]).newbyteorder("<")
        for place in (self.path, self.path.parent):  # SQLite sees it only on writing
            if place.exists() and not os.access(place, os.W_OK):
                raise StoreError(
                    f"{place} is read-only: a store is opened for writing."
                )
        self._open()
        try:
            with store_errors(self.path):
                if is_store(self._connection, self.path):
                    found = manifest_of(self._connection, self.path)
                    _check(self.path, found, manifest)
                else:
                    begin(self._connection, manifest)
        except BaseException:
            self._release()
            raise

    def _open(self) -> None:
        """Open the file, until this object or the process ends."""
        self._connection = connection = connect(self.path)
        try:
            self._hold = Hold(self.path, connection)
        except BaseException:
            connection.close()
            raise
        rest = (self._hold, self.pending, self._dtype, self._process)
        self._release = weakref.finalize(self, _release, connection, *rest)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()  # only the process that opened it writes

    @property
    def is_open(self) -> bool:
        """Whether this is the process that opened the file, and has not closed it."""
        return self._release.alive and os.getpid() == self._process

    def hand(self, record: Record) -> None:
        """Take a finished request, to be written by `flush`."""
        if self.is_open:
            self.pending += _cut(record)

    def flush(self) -> None:
        """Write the pending requests, each in its own transaction.

        If the file cannot be written, they stay pending and StoreError is raised.
        """
        if self.is_open and not self._hold.stands():
            raise StoreError(
                f"{self.path} is gone, or is another file: it was moved, deleted or "
                "replaced while it was open. Put it back, or hand what known() yields "
                f"to tell() of a Similarity with another store. {self._kept()}"
            )
        while self.pending and self.is_open:
            try:
                _write(self._connection, self.pending, self._dtype)
            except sqlite3.Error as error:
                cause = f"{self.path} could not be written: {error}."
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in FULL:
                    cause = f"The disk is full, or the file may grow no larger: {cause}"
                raise StoreError(f"{cause} {self._kept()}") from error

    def close(self) -> None:
        """Write pending requests and close the file, which stays open on StoreError."""
        if self.pending:
            self.flush()
        if self.is_open:
            self._release()

    def records(self) -> list[Record]:
        """Return what the file holds, and mend it if it is damaged."""
        with store_errors(self.path):
            whole, lost = whole_requests(self._connection, self.path, self._dtype)
            if lost:
                self._rescue(row for row, _ in whole)
        if lost:
            warn(
                f"{self.path} is damaged: {lost} of its blocks cannot be read and were "
                "dropped; their pairs are evaluated again where they are asked for. "
                f"{len(whole)} blocks are whole. The damaged file is kept as "
                f"{self._aside}.",
                StoreWarning,
            )
        return [record for _, record in whole]

    def _rescue(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Replace a damaged file by a new one that holds the readable rows."""
        manifest = manifest_of(self._connection, self.path)
        fresh = self.path.with_name(self.path.name + ".rescued")
        fresh.unlink(missing_ok=True)
        copy = connect(fresh)
        begin(copy, manifest)
        with copy as transaction:
            transaction.executemany(INSERT, rows)
        copy.close()
        self._connection.close()
        self._aside.unlink(missing_ok=True)
        try:
            os.link(self.path, self._aside)
        except OSError:  # not every file system has links
            shutil.copyfile(self.path, self._aside)
        os.replace(fresh, self.path)
        self._release()
        self._open()

    def _kept(self) -> str:
        """Return the sentence that says what became of the unwritten values."""
        if not self.pending:
            return "Nothing was evaluated."
        count = sum(record.values.size for record in self.pending)
        return (
            f"The last {count} values are finished and kept in memory; they are "
            "written with the next request that is asked, once that is possible."
        )


def _write(
    connection: sqlite3.Connection, pending: list[Record], dtype: np.dtype
) -> None:
    """Write the first pending request."""
    record = pending[0]
    i, j = (items.astype(ID).tobytes() for items in (record.i, record.j))
    values = np.asarray(record.values, dtype=dtype).tobytes()
    row = (int(record.grid), i, j, values)
    with connection as transaction:
        transaction.execute(INSERT, (*row, checksum_of(row)))
    del pending[0]


def _release(
    connection: sqlite3.Connection,
    hold: Hold,
    pending: list[Record],
    dtype: np.dtype,
    process: int,
) -> None:
    """Write the pending requests, if that is possible, and close the file."""
    if os.getpid() == process:
        with contextlib.suppress(Exception):
            while pending and hold.stands():
                _write(connection, pending, dtype)
        connection.close()
        hold.release()


def _cut(record: Record) -> list[Record]:
    """Cut a record into records of at most `LARGEST` values."""
    i, j, values, grid = record
    if values.size <= LARGEST:
        return [record]
    if not grid:
        parts = [slice(k, k + LARGEST) for k in range(0, i.size, LARGEST)]
        return [Record(i[part], j[part], values[part], False) for part in parts]
    width = min(j.size, LARGEST)
    height = LARGEST // width
    rows = [slice(k, k + height) for k in range(0, i.size, height)]
    columns = [slice(k, k + width) for k in range(0, j.size, width)]
    return [Record(i[a], j[b], values[a, b], True) for a in rows for b in columns]


def _check(path: Path, found: dict[str, str], wanted: dict[str, str]) -> None:
    """Raise if a store was made for another similarity."""
    for name in AGREE:
        if found.get(name) != wanted[name]:
            cause = f"{found.get(name)} there and {wanted[name]} here."
            if name == "symmetric":
                cause += (
                    " Of two collections the order of a pair counts; to keep their "
                    "pairs in the file of one, make one of both, with `groups` in "
                    "pairs_above."
                )
            raise StoreError(
                f"{path} is the store of another similarity: it has not the same "
                f"{name}, which is {cause} Name another file, or pass what it was "
                "made with."
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Look into stores from the command line: info, verify, export.

    Returns 0; 1 where `verify` finds damage, 2 where the file is no store or in use.
    """
    parser = argparse.ArgumentParser(
        prog="python -m simlib.similarity.store",
        description="Look into a store of similarities.",
    )
    parser.add_argument(
        "verb",
        choices=("info", "verify", "export"),
        help="what it holds; whether it is whole; all values as CSV: the hashes of the "
        "two items, as digest gives them, and the value",
    )
    parser.add_argument("file", type=Path)
    given = parser.parse_args(arguments)
    try:
        status = _look(given.verb, given.file)
        sys.stdout.flush()
        return status
    except OSError as error:  # of ``export FILE > OTHER`` on a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # ``export FILE | head`` reads no more
            return 0
        print(f"The output could not be written: {error.strerror}", file=sys.stderr)
        return 2
    except StoreError as error:
        print(error, file=sys.stderr)
        return 2


def _look(verb: str, path: Path) -> int:
    """Carry out a verb of the command line; the file is not changed."""
    if not path.is_file():
        raise StoreError(f"{path} is not there.")
    with store_errors(path), contextlib.closing(connect(path)) as connection:
        if not is_store(connection, path):
            raise StoreError(f"{path} is empty.")
        manifest = manifest_of(connection, path)
        dtype = np.dtype(manifest["dtype"]).newbyteorder("<")
        whole, lost = whole_requests(connection, path, dtype)
    records = [record for _, record in whole]
    if verb == "export":
        _export(records, manifest["symmetric"] == "True")
        return 0
    if verb == "info":
        for name, value in manifest.items():
            print(f"{name}: {value}")
        print(f"requests: {len(records)}")
        sides = [side for record in records for side in (record.i, record.j)]
        print(f"items: {np.unique(np.concatenate([*sides, []])).size}")
        print(f"values: {sum(record.values.size for record in records)}")
        print(f"bytes: {path.stat().st_size}")
    print(f"damaged: {lost or 'nothing'}")
    return int(verb == "verify" and lost != "")


def _export(records: list[Record], symmetric: bool) -> None:
    """Print every pair once, with the first value that was stored for it."""
    some = [(np.zeros(0, np.uint64),) * 2, *(record.pairs() for record in records)]
    i, j = (np.concatenate(side) for side in zip(*some, strict=True))
    values = np.concatenate([[], *(record.values.ravel() for record in records)])
    if symmetric:
        i, j = np.minimum(i, j), np.maximum(i, j)
    _, first = np.unique(np.stack([i, j]), axis=1, return_index=True)
    writer = csv.writer(sys.stdout)
    writer.writerow(["i", "j", "value"])
    for part in np.split(first, range(STEP, first.size, STEP)):
        columns = (column[part].tolist() for column in (i, j, values))
        writer.writerows(zip(*columns, strict=True))


if __name__ == "__main__":
    sys.exit(main())
