"""The data sets there are: where each file comes from, its hashes, where it lies.

``registry.toml`` beside this module says it. A file is looked for in
``$SIMLIB_DATA/<folder>/``, then in the user cache (``$XDG_CACHE_HOME`` or ``~/.cache``,
``simlib/<folder>/``) and checked when a process first reads it: its bytes or, as
another zlib makes other bytes, its content has to have the hash.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

from study.datasets import convert
from study.datasets.content import content_sha256


class DataNotFoundError(FileNotFoundError):
    """A data file, or the folder that ``SIMLIB_DATA`` names, is not there."""


class CorruptDataError(ValueError):
    """A data file is not the one the registry describes."""


@dataclass(frozen=True)
class File:
    """One file of a data set: it has either a `url` or a `recipe`.

    Attributes
    ----------
    name : str
        File name inside the data set's folder.
    sha256 : str
        Hash of the file that simlib reads; empty where we have never had the file.
    url : str, optional
        The public raw file, pinned to a commit.
    raw_sha256 : str, optional
        Hash of the raw file.
    convert : callable, optional
        Bytes of the raw file -> bytes of this file.
    recipe : str, optional
        Where no single public file exists: what the file is and how it was made.
    content_sha256 : str, optional
        Hash of what a compressed file holds, see ``study.datasets.content``.

    Examples
    --------
    >>> from study.datasets import REGISTRY
    >>> (file,) = REGISTRY["bunny"].files
    >>> file.name, file.recipe is None  # so it can be downloaded
    ('bunny_14290.npz', True)
    """

    name: str
    sha256: str = ""
    url: str | None = None
    raw_sha256: str | None = None
    convert: Callable[[bytes], bytes] | None = None
    recipe: str | None = None
    content_sha256: str | None = None

    def identify(self, stream: BufferedReader | BytesIO) -> str:
        """Return `sha256` if the stream holds this file, else the hash of its bytes."""
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        if self.content_sha256 is not None and found != self.sha256:
            stream.seek(0)
            if content_sha256(self.name, stream) == self.content_sha256:
                return self.sha256
        return found


@dataclass(frozen=True)
class Dataset:
    """A data set: the files its loader needs, their public source and licence.

    Attributes
    ----------
    name, folder : str
        The key in `REGISTRY`, and where the files lie.
    title, source, licence : str
        What it holds, where it comes from, under which terms.
    files : tuple of File
        What is read.

    Examples
    --------
    >>> from study.datasets import REGISTRY
    >>> REGISTRY["bunny"].title
    'the Stanford bunny as a closed mesh of 14290 vertices'
    """

    name: str
    folder: str
    title: str
    source: str
    licence: str
    files: tuple[File, ...]


def cache_folder() -> Path:
    """Return the user cache, the last place looked at and the one `fetch` fills."""
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(given or Path.home() / ".cache") / "simlib"
    except RuntimeError as error:
        raise DataNotFoundError(
            "There is no home folder for a cache: set XDG_CACHE_HOME, or SIMLIB_DATA "
            "to the folder of the data sets."
        ) from error


def lookup(name: str) -> Dataset:
    """Return the data set called `name`; ValueError lists the names there are."""
    if name not in REGISTRY:
        raise ValueError(f"no data set {name!r}; there are {', '.join(REGISTRY)}")
    return REGISTRY[name]


def find(dataset: str, file: str) -> Path:
    """Return the path of one file of a data set, its content checked.

    Raises the audit event ``study.datasets`` with ``folder/file``, the name that the
    file has in `fingerprint`; so does `available`, for each file.

    Parameters
    ----------
    dataset, file : str
        A name in `REGISTRY`, and of one of its files.

    Raises
    ------
    DataNotFoundError
        The file is in neither place, or ``SIMLIB_DATA`` names no folder.
    CorruptDataError
        The file found first does not hold what the registry says.
    ValueError
        No such data set, or it has no such file; the message lists what there is.

    Examples
    --------
    >>> from study.datasets import find
    >>> find("bunny", "bunny_14290.npz").name
    'bunny_14290.npz'
    """
    entry = lookup(dataset)
    known = {known.name: known for known in entry.files}
    if file not in known:
        raise ValueError(f"{dataset} has no file {file!r}; it has {', '.join(known)}")
    sys.audit("study.datasets", f"{entry.folder}/{file}")
    path = locate(entry, known[file])
    command = f"`python -m study.datasets fetch {dataset}`"
    if path is None:
        looked = " nor ".join(str(root / entry.folder / file) for root in _places())
        looked = looked or f"folder in which to look for {entry.folder}/{file}"
        raise DataNotFoundError(
            f"no {looked}. Run {command}, or set SIMLIB_DATA to the folder that holds "
            f"{entry.folder}/{file}."
        )
    if (found := _sha256(path, known[file])) != known[file].sha256 != "":
        raise CorruptDataError(
            f"{path} holds something else than the registry says (SHA-256 {found}, "
            f"not {known[file].sha256}). Delete it and run {command}."
        )
    return path


def available(name: str) -> bool:
    """Tell whether every file of a data set is there (`find` checks what they hold).

    Raises
    ------
    DataNotFoundError, ValueError
        ``SIMLIB_DATA`` is set and names no folder; no such data set.

    Examples
    --------
    >>> from simlib.datasets import bumpy_sphere
    >>> from study.datasets import available, load_bunny
    >>> mesh = load_bunny() if available("bunny") else bumpy_sphere()
    """
    entry = lookup(name)
    for file in entry.files:
        sys.audit("study.datasets", f"{entry.folder}/{file.name}")
    return all(locate(entry, file) is not None for file in entry.files)


def fingerprint() -> dict[str, str | None]:
    """Return the SHA-256 of every file that would be read, None where there is none.

    A dictionary of ``"folder/file"``: the registry's hash, if the file on disk has the
    content described; otherwise that of its bytes. Raises DataNotFoundError if
    ``SIMLIB_DATA`` names no folder.

    Examples
    --------
    >>> from study.datasets import fingerprint
    >>> missing = [file for file, sha256 in fingerprint().items() if sha256 is None]
    """
    return {
        f"{entry.folder}/{file.name}": _sha256(path, file) if path else None
        for entry in REGISTRY.values()
        for file in entry.files
        for path in [locate(entry, file)]
    }


def _places() -> list[Path]:
    """Return the folders to look in, first the one that wins."""
    given = os.environ.get("SIMLIB_DATA")
    if given and not Path(given).is_dir():
        raise DataNotFoundError(
            f"SIMLIB_DATA is {given!r}, which is not a folder: set it to the folder of "
            "the data sets, or unset it to use the user cache."
        )
    places = [Path(given)] if given else []
    with suppress(DataNotFoundError):  # a user without a home has no cache
        places.append(cache_folder())
    return places


def locate(entry: Dataset, file: File) -> Path | None:
    """Return where a file of a data set is, None if it is in neither place."""
    paths = (root / entry.folder / file.name for root in _places())
    return next((path for path in paths if path.is_file()), None)


def _sha256(path: Path, file: File) -> str:
    """Identify a file, once per process as long as its time and size stay."""
    stat = path.stat()
    return _identify(path, stat.st_mtime_ns, stat.st_size, file)


@cache
def _identify(path: Path, mtime_ns: int, size: int, file: File) -> str:
    with path.open("rb") as stream:
        return file.identify(stream)


def _read(path: Path) -> dict[str, Dataset]:
    """Read the entries of the registry."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: Dataset(name=name, files=tuple(map(_file, entry.pop("files"))), **entry)
        for name, entry in entries.items()
    }


def _file(entry: dict[str, Any]) -> File:
    if "convert" in entry:
        entry["convert"] = getattr(convert, entry["convert"])
    return File(**entry)


REGISTRY = _read(Path(__file__).with_suffix(".toml"))
