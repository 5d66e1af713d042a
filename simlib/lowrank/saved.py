"""Saving of objects made of arrays to a folder: all parts are written, or none.

Each array is a ``.npy`` file, each sparse array a ``.npz`` file. A JSON file names them
with their sizes and checksums. Nothing is pickled, and no pickle is read.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import shutil
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse

FORMAT, VERSION = "simlib.LowRank", 1
FACTS = "lowrank.json"
READ = 2**20  # bytes of a file at a time
MAPPED = ("left", "right")
HOME = "simlib.approximation"  # its modules define classes that may not be loaded yet


class Saved:
    """An object that can be saved; its parts are the arguments that make it."""

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the matrix to a folder, from which `load` reads it.

        Each dense part is a ``.npy`` file of NumPy, each sparse one a ``.npz`` of
        SciPy, and ``lowrank.json`` says the rest.

        Parameters
        ----------
        folder : str or path
            A new or an empty folder, or one that holds a saved matrix, which is
            replaced. It may be the folder from which this matrix is mapped.

        Raises
        ------
        ValueError, TypeError
            The residual is an operator, a part is no array and no plain value, or the
            folder is the current directory of the process.
        FileExistsError, FileNotFoundError
            The folder holds other files, or its parent folder does not exist.
        OSError
            Writing failed. The folder is then as it was, as it is after an interrupt.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from simlib import LowRank
        >>> K = LowRank(np.array([[1.0], [2.0]]), np.array([[3.0]]), method="mine")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     K.save(folder)
        ...     LowRank.load(folder, mmap_mode="r")
        LowRank(mine: n=2, rank=1)
        """
        parts = self._parts()
        folder = Path(folder).resolve()  # where a link leads
        _check_place(folder)
        try:
            with TemporaryDirectory(
                dir=folder.parent, prefix=f".{folder.name}-", ignore_cleanup_errors=True
            ) as beside:
                old, new = Path(beside, "old"), Path(beside, "new")
                new.mkdir()
                _write_parts(new, type(self).__name__, parts)
                try:
                    if folder.exists():
                        shutil.copymode(folder, new)
                        folder.rename(old)
                    new.rename(folder)
                except BaseException:
                    if old.exists() and not folder.exists():
                        old.rename(folder)
                    raise
        except OSError as error:
            reason = f"Nothing was saved in {folder}, as writing failed: {error}"
            if error.errno is None:  # NumPy has lost it
                raise OSError(f"{reason}. Is the disk full?") from error
            raise OSError(error.errno, reason) from error

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], mmap_mode: Literal["r", "c"] | None = None
    ) -> Self:
        """Read a matrix that `save` wrote, with the same class and the same bits.

        Parameters
        ----------
        folder : str or path
            The folder that was given to `save`.
        mmap_mode : "r" or "c", optional
            Map dense factors from their files, as `numpy.load` does, instead of reading
            them. Of these files only the size is then checked, and they must stay in
            their place. Sparse factors and the residual are read in any case.

        Returns
        -------
        LowRank

        Raises
        ------
        FileNotFoundError
            No matrix is saved there, or one of its files is missing.
        ValueError
            A file is damaged (the message names it); the matrix was saved by a newer
            simlib, or its class is unknown here; or `mmap_mode` is another value.
        """
        if mmap_mode not in (None, "r", "c"):
            raise ValueError(
                'mmap_mode is None, "r" or "c": what is saved is not changed in place; '
                f"got {mmap_mode!r}."
            )
        folder = Path(folder)
        facts = _facts(folder)
        parts: dict[str, Any] = {}
        files: dict[str, Any] = {}
        for part, value in facts["parts"].items():
            if isinstance(value, dict):
                mode, file = mmap_mode if part in MAPPED else None, value["file"]
                if file not in files:
                    files[file] = _read_array(folder, value, mode)
                value = files[file]
            parts[part] = value
        name = facts["class"]
        if name != cls.__name__:
            for module in pkgutil.iter_modules(importlib.import_module(HOME).__path__):
                importlib.import_module(f"{HOME}.{module.name}")
        kinds: list[type[Self]] = [cls]
        for kind in kinds:
            kinds += kind.__subclasses__()
        known = {kind.__name__: kind for kind in kinds}
        if name not in known:
            raise ValueError(
                f"What is in {folder} is of the class {name}, which is no "
                f"{cls.__name__}, or unknown here: import the module that defines it."
            )
        try:
            return known[name]._of_parts(parts)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise _damaged(folder / FACTS, error) from error

    def _parts(self) -> dict[str, Any]:  # arrays, sparse arrays and plain values
        raise NotImplementedError

    @classmethod
    def _of_parts(cls, parts: dict[str, Any]) -> Self:
        return cls(**parts)


def _damaged(path: Path, why: object) -> ValueError:
    """Return the error for a file that is not as it was written."""
    return ValueError(f"{path} is damaged: {why}. Take a copy of it, or save again.")


def _check_place(folder: Path) -> None:
    """Raise if the folder holds anything that `Saved.save` has not written."""
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {folder.parent}; make it first.")
    if folder.exists() and folder.samefile(os.curdir):
        raise ValueError(
            f"The process works in {folder}, which would be replaced: name a folder in "
            "it."
        )
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        listed = _facts(folder)["parts"].values()
    except (OSError, ValueError) as error:
        raise FileExistsError(
            f"{folder} is not overwritten; name another folder, or remove it. {error}"
        ) from error
    ours = {value["file"] for value in listed if isinstance(value, dict)} | {FACTS}
    others = {path.name for path in folder.iterdir()} - ours
    if others:
        raise FileExistsError(
            f"{folder} holds {min(others)} besides a saved answer, so it is not "
            "overwritten; name another folder, or move that away."
        )


def _write_parts(folder: Path, kind: str, parts: dict[str, Any]) -> None:
    listed: dict[str, Any] = {}
    written: dict[int, dict[str, Any]] = {}  # by identity
    for name, value in parts.items():
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.ndarray) or scipy.sparse.issparse(value):
            if id(value) not in written:
                written[id(value)] = _write_array(folder, name, value)
            value = written[id(value)]
        elif not isinstance(value, str | int | float | None):
            raise TypeError(
                f"{name} is of type {type(value).__name__}, which cannot be saved."
            )
        listed[name] = value
    facts = {"format": FORMAT, "version": VERSION, "class": kind, "parts": listed}
    with open(folder / FACTS, "wb") as file:
        file.write(json.dumps(facts, indent=1).encode())
        _flush(file)


def _write_array(folder: Path, name: str, array: Any) -> dict[str, Any]:
    sparse = scipy.sparse.issparse(array)
    path = folder / f"{name}.{'npz' if sparse else 'npy'}"
    with open(path, "wb") as file:
        if sparse:
            scipy.sparse.save_npz(file, array, compressed=False)
        else:
            np.save(file, array, allow_pickle=False)
        _flush(file)
    size, checksum = path.stat().st_size, _checksum(path)
    return {"file": path.name, "bytes": size, "crc32": checksum}


def _flush(file: Any) -> None:
    """Bring a file to the disk, before its folder gets its name."""
    file.flush()
    os.fsync(file.fileno())


def _checksum(path: Path) -> int:
    checksum = 0
    with open(path, "rb") as file:
        while chunk := file.read(READ):
            checksum = zlib.crc32(chunk, checksum)
    return checksum


def _facts(folder: Path) -> dict[str, Any]:
    """Return the content of the JSON file, after a check of its main entries."""
    path = folder / FACTS
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no saved answer: there is no {path}.")
    try:
        facts = json.loads(path.read_bytes())
    except ValueError as error:
        raise _damaged(path, error) from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise ValueError(f"{path} is no file of simlib: it does not say {FORMAT!r}.")
    for name, kind in (("version", int), ("class", str), ("parts", dict)):
        untold = type(facts.get(name)) is not kind or facts[name] == ""
        if untold or (name == "version" and facts[name] < 1):
            raise _damaged(path, f"it does not tell its {name}")
        if name == "version" and facts[name] > VERSION:
            raise ValueError(
                f"{folder} was saved by a newer simlib, in format {facts[name]}; this "
                f"one reads formats up to {VERSION}. Update simlib."
            )
    for value in facts["parts"].values():
        file = value.get("file") if isinstance(value, dict) else FACTS
        if not isinstance(file, str) or Path(file).name != file:
            raise _damaged(path, f"it names the file {file!r}")
    return facts


def _read_array(folder: Path, listed: dict[str, Any], mode: Any) -> Any:
    path = folder / listed["file"]
    try:
        size = path.stat().st_size
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} is missing, and {FACTS} names it.") from error
    if size != listed.get("bytes"):
        raise _damaged(path, f"{size} bytes of {listed.get('bytes')}")
    mode = mode if path.suffix == ".npy" else None  # sparse ones are read
    if mode is None and _checksum(path) != listed.get("crc32"):
        raise _damaged(path, "its bytes have another checksum")
    try:
        if path.suffix == ".npz":
            array = scipy.sparse.load_npz(path)
            array.check_format(full_check=True)
            return array
        if mode is not None:
            return np.lib.format.open_memmap(path, mode=mode)
        with open(path, "rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # NumPy parses the header, SciPy unzips
        raise _damaged(path, error) from error
