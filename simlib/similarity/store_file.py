"""The file of a store: a manifest, and a row for each finished request.

A row holds the rows, columns and values of a request as bytes, and a checksum. Errors
of SQLite are raised as a `StoreError` that tells what to do.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import sqlite3
import struct
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simlib.similarity.identity import ID
from simlib.similarity.known import grid

try:
    import fcntl
except ImportError:  # Windows, where closing a file keeps the other locks
    OPEN_FILE_LOCK = None
else:
    OPEN_FILE_LOCK = getattr(fcntl, "F_OFD_SETLK", None)  # of Linux

HELD = 2**62  # byte of the file that is locked, beyond all of its contents
FORMAT = 2
SMALLEST = 16  # bytes of a row, at least
APPLICATION = 0x53694D4C  # "SiML", in the header of the file
TABLES = """
CREATE TABLE manifest (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE requests (
    number INTEGER PRIMARY KEY,
    grid INTEGER NOT NULL,   -- 1: rows x columns, 0: pairs of one row and one column
    rows BLOB NOT NULL,      -- items, hashes of 64 bits, little-endian
    columns BLOB NOT NULL,
    entries BLOB NOT NULL,   -- little-endian floats of the type in the manifest
    checksum BLOB NOT NULL   -- BLAKE2b of the four before, 8 bytes
);
"""
INSERT = """
INSERT INTO requests (grid, rows, columns, entries, checksum) VALUES (?, ?, ?, ?, ?)
"""
IN_USE = (
    "is in use, by another process or another Similarity of this one. Wait for it, or "
    "close() that one; only one at a time may write."
)
FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class StoreError(RuntimeError):
    """A store cannot be opened, used or written; evaluated values stay in memory."""


class Record(NamedTuple):
    """A finished request: pairs (i[k], j[k]), or the grid of i and j.

    i and j are numbers of items; in a store they are hashes of items.
    """

    i: np.ndarray
    j: np.ndarray
    values: np.ndarray
    grid: bool

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the items of each value, flat."""
        return grid(self.i, self.j) if self.grid else (self.i, self.j)


def connect(path: Path) -> sqlite3.Connection:
    """Open a file, which is made if it does not exist, and lock it."""
    with store_errors(path):
        connection = sqlite3.connect(
            path, timeout=0, isolation_level="IMMEDIATE", check_same_thread=False
        )
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            ((journal,),) = connection.execute("PRAGMA journal_mode")
            if journal == "wal":
                raise StoreError(
                    f"{path} keeps a write-ahead log, which no store does. Name "
                    "another file."
                )
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN EXCLUSIVE")
            connection.commit()  # the lock stays
        except BaseException:
            connection.close()
            raise
    return connection


class Hold:
    """A second lock on the file of an open store, beside the lock of SQLite.

    When this process closes another handle of the file, such as after copying it, the
    system releases the lock of SQLite. It does not release this lock, which belongs to
    an open file description.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection):
        self._path, self.connection = path, connection
        self._file = os.open(path, os.O_RDWR)
        self.release = weakref.finalize(self, os.close, self._file)
        _holds.add(self)
        if OPEN_FILE_LOCK is not None:
            lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, HELD, 1, 0)
            try:
                fcntl.fcntl(self._file, OPEN_FILE_LOCK, lock)
            except (BlockingIOError, PermissionError) as error:
                raise StoreError(f"{path} {IN_USE}") from error
            except OSError:  # not every file system has such locks
                pass

    def stands(self) -> bool:
        """Tell whether the file is where it was opened."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._file))
        except OSError:
            return False


_holds: weakref.WeakSet[Hold] = weakref.WeakSet()


def _forked() -> None:
    """Release the locks in a forked child, which would keep them after its parent.

    Its connections are never closed: SQLite would delete the journal of the parent.
    """
    for hold in list(_holds):
        hold.release()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(hold.connection))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def begin(connection: sqlite3.Connection, manifest: dict[str, str]) -> None:
    """Make the tables of a new store."""
    with connection as transaction:
        transaction.execute("BEGIN IMMEDIATE")
        for statement in TABLES.split(";\n")[:-1]:
            transaction.execute(statement)
        entries = manifest | {"checksum": _sealed(manifest)}
        transaction.executemany("INSERT INTO manifest VALUES (?, ?)", entries.items())
        transaction.execute(f"PRAGMA application_id = {APPLICATION}")
        transaction.execute(f"PRAGMA user_version = {FORMAT}")


def is_store(connection: sqlite3.Connection, path: Path) -> bool:
    """Tell a store from an empty file; raise for anything else."""
    [application] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not (application or version or tables):
        return False
    if application != APPLICATION:
        raise StoreError(
            f"{path} is a database, but no store of similarities. Name another file."
        )
    if version != FORMAT:
        other = "a newer" if version > FORMAT else "an older"
        raise StoreError(
            f"{path} has format {version}, and this simlib reads {FORMAT}: it was made "
            f"by {other} one, which can read it."
        )
    return True


def manifest_of(connection: sqlite3.Connection, path: Path) -> dict[str, str]:
    """Return the manifest of a store."""
    try:
        found = dict(connection.execute("SELECT name, value FROM manifest").fetchall())
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        found = {}
    plain = all(isinstance(part, str) for pair in found.items() for part in pair)
    if not plain or found.pop("checksum", "") != _sealed(found):
        raise StoreError(
            f"The manifest of {path} is damaged: nothing tells whose similarities they "
            "are. Move the file away to begin anew."
        )
    return found


def rows_of(
    connection: sqlite3.Connection, path: Path
) -> tuple[list[tuple[Any, ...]], int, bool]:
    """Return the readable requests, how many are lost, and whether reading failed."""
    every = "SELECT grid, rows, columns, entries, checksum FROM requests"
    try:
        return connection.execute(every).fetchall(), 0, False
    except sqlite3.DatabaseError:
        pass
    rows, lost, last = [], 0, 0
    most = path.stat().st_size // SMALLEST  # a larger number is damaged
    greatest = "SELECT max(number) FROM requests WHERE number <= ?"
    try:
        [last] = connection.execute(greatest, (most,)).fetchone()
    except sqlite3.DatabaseError:
        lost = 1
    for number in range(1, (last or 0) + 1):
        try:
            row = connection.execute(every + " WHERE number = ?", (number,)).fetchone()
        except sqlite3.DatabaseError:
            row = None
        if row is None:
            lost += 1
        else:
            rows.append(row)
    with contextlib.suppress(sqlite3.DatabaseError):
        rows.extend(connection.execute(every + " WHERE number > ?", (most,)))
    return rows, lost, True


def whole_requests(
    connection: sqlite3.Connection, path: Path, dtype: np.dtype
) -> tuple[list[tuple[tuple[Any, ...], Record]], str]:
    """Return the undamaged rows with their records, and in words how many are lost."""
    rows, lost, torn = rows_of(connection, path)
    both = [(row, record_of(row, dtype)) for row in rows]
    whole = [(row, record) for row, record in both if record is not None]
    lost += len(both) - len(whole)
    return whole, f"at least {lost}" if torn else str(lost or "")


def record_of(row: tuple[Any, ...], dtype: np.dtype) -> Record | None:
    """Return a row of the file as a record, None if it is damaged."""
    *fields, checksum = row
    grid, *blobs = fields
    whole = all(isinstance(blob, bytes) for blob in blobs)
    if not whole or checksum_of(tuple(fields)) != checksum:
        return None
    i, j = (np.frombuffer(blob, ID).astype(np.uint64) for blob in blobs[:2])
    values = np.frombuffer(blobs[2], dtype).astype(dtype.newbyteorder("="))
    return Record(i, j, values.reshape(i.size, -1) if grid else values, bool(grid))


def checksum_of(fields: tuple[Any, ...]) -> bytes:
    """Return the checksum of the fields of a request."""
    hashed = hashlib.blake2b(digest_size=8)
    for field in fields:
        data = field if isinstance(field, bytes) else str(field).encode()
        hashed.update(b"%d:" % len(data))
        hashed.update(data)
    return hashed.digest()


def _sealed(manifest: dict[str, str]) -> str:
    """Return the checksum of a manifest."""
    entries = (part for pair in sorted(manifest.items()) for part in pair)
    return checksum_of(tuple(entries)).hex()


@contextlib.contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite about a file as a `StoreError`."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # damage may reach messages
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        said = f"cannot be read ({error}). Restore a copy, or move it away."
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            said = IN_USE
        elif code == sqlite3.SQLITE_NOTADB:
            said = "is no store of similarities, nor any database. Name another file."
        elif code == sqlite3.SQLITE_CANTOPEN and path.is_dir():
            said = "is a folder: name a file in it."
        elif code == sqlite3.SQLITE_CANTOPEN:
            said = f"cannot be opened: is there a folder {path.parent}, open to you?"
        elif code == sqlite3.SQLITE_READONLY:
            said = "is read-only: a store is opened for writing."
        elif code in FULL:
            said = f"could not be written: the disk is full ({error})."
        raise StoreError(f"{path} {said}") from error
