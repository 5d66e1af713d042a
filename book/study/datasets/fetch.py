"""Downloads of what is public, checked and converted; instructions for the rest."""

from __future__ import annotations

import io
import textwrap
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from study.datasets.registry import (
    CorruptDataError,
    DataNotFoundError,
    Dataset,
    File,
    cache_folder,
    find,
    locate,
    lookup,
)


def fetch(name: str) -> list[Path]:
    """Fill the user cache with what is missing of a data set.

    Parameters
    ----------
    name : str
        A name in `study.datasets.REGISTRY`.

    Returns
    -------
    list of Path
        Where the files of the data set are.

    Raises
    ------
    DataNotFoundError
        Some files have no single public source: the message says what each of them is,
        how it was made and where to put it. All others have been fetched by then.
        Or ``SIMLIB_DATA`` names no folder; then nothing has been.
    CorruptDataError, ValueError, ImportError
        A file on disk, or the result of a conversion, does not hold what it should; the
        download does not have the hash of the public file; pooch is not installed.
    """
    dataset = lookup(name)
    paths, wanted = [], []
    for file in dataset.files:
        if locate(dataset, file) is not None:
            paths.append(find(name, file.name))
        elif file.url is not None:
            paths.append(_download(dataset, file))
        else:
            wanted.append(file)
    if wanted:
        texts = [_instructions(dataset, file) for file in wanted]
        raise DataNotFoundError("\n\n".join(texts))
    return paths


def _download(dataset: Dataset, file: File) -> Path:
    import pooch  # which takes as long to load as everything here

    known_hash = f"sha256:{file.raw_sha256}" if file.raw_sha256 else None
    raw = pooch.retrieve(file.url, known_hash=known_hash, path=cache_folder() / "raw")
    data = Path(raw).read_bytes()
    if file.convert is not None:
        data = file.convert(data)
    if (found := file.identify(io.BytesIO(data))) != file.sha256 != "":
        raise CorruptDataError(
            f"{raw} converts to something else than the registry says (SHA-256 "
            f"{found}, not {file.sha256}). {_place(dataset, file)}"
        )
    path = cache_folder() / dataset.folder / file.name
    _write(path, data)
    return path


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")  # one for each writer
    part.write_bytes(data)
    part.replace(path)


def _instructions(dataset: Dataset, file: File) -> str:
    recipe = textwrap.fill(" ".join((file.recipe or "").split()), 88)
    return (
        f"{dataset.folder}/{file.name} cannot be downloaded as one public file.\n"
        f"{recipe}\n{_place(dataset, file)}"
    )


def _place(dataset: Dataset, file: File) -> str:
    path = Path(dataset.folder, file.name)
    places = [f"$SIMLIB_DATA/{path.as_posix()}"]
    with suppress(DataNotFoundError):
        places.append(str(cache_folder() / path))
    return (
        f"Put the file of SHA-256 {file.sha256}, or another compression of its "
        f"content, at {' or '.join(places)}."
    )
