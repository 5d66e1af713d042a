"""The content of a file, whatever compressed it."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import zipfile
import zlib
from io import BufferedReader, BytesIO
from pathlib import PurePath

import numpy as np

_UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    lzma.LZMAError,
    zlib.error,
    zipfile.BadZipFile,
)


def content_sha256(name: str, stream: BufferedReader | BytesIO) -> str | None:
    """Hash what a file holds, independently of how it is compressed.

    Parameters
    ----------
    name : str
        The name of the file, whose ending tells its format.
    stream : file object
        Its bytes, open for reading in binary mode.

    Returns
    -------
    str or None
        SHA-256, in hexadecimal, of the decompressed bytes of an ``.xz`` or ``.gz``
        file; of the names, types, shapes and values of the arrays of an ``.npz`` file,
        sorted by name; of the bytes of any other file. None if it cannot be read.

    Examples
    --------
    >>> from study.datasets.content import content_sha256
    >>> import gzip, io
    >>> quick, small = (gzip.compress(b"word" * 99, level) for level in (1, 9))
    >>> len({content_sha256("a.gz", io.BytesIO(file)) for file in (quick, small)})
    1
    """
    try:
        match PurePath(name).suffix:
            case ".xz":
                return hashlib.file_digest(lzma.open(stream), "sha256").hexdigest()
            case ".gz":
                return hashlib.file_digest(gzip.open(stream), "sha256").hexdigest()
            case ".npz":
                return _arrays(stream)
            case _:
                return hashlib.file_digest(stream, "sha256").hexdigest()
    except _UNREADABLE:
        return None


def _arrays(stream: BufferedReader | BytesIO) -> str:
    digest = hashlib.sha256()
    with np.lib.npyio.NpzFile(stream, allow_pickle=False) as stored:
        for name in sorted(stored):
            array = np.asarray(stored[name])
            header = (name, np.lib.format.dtype_to_descr(array.dtype), array.shape)
            digest.update(f"{header}\n".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()
