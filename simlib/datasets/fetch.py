"""Download, check and convert what is public; say how to get the rest."""

from __future__ import annotations

import hashlib
import textwrap
from pathlib import Path

from simlib.datasets.registry import (
    CorruptDataError,
    DataNotFoundError,
    Dataset,
    File,
    cache_folder,
    find,
    lookup,
)


def fetch(name: str) -> list[Path]:
    """Fill the user cache with what is missing of a data set.

    Parameters
    ----------
    name : str
        A name in `simlib.datasets.REGISTRY`.

    Returns
    -------
    list of Path
        Where the files of the data set are.

    Raises
    ------
    DataNotFoundError
        Some files have no single public source: the message says what each of them is,
        how it was made and where to put it. All others have been fetched by then.
    CorruptDataError
        A file on disk, or the result of a conversion, has the wrong hash.
    ValueError
        The download does not have the hash of the public file.
    ImportError
        pooch is not installed.
    """
    dataset = lookup(name)
    paths, wanted = [], []
    for file in dataset.files:
        try:
            paths.append(find(name, file.name))
        except DataNotFoundError:
            if file.url is None:
                wanted.append(file)
            else:
                paths.append(_download(dataset, file))
    if wanted:
        texts = [_instructions(dataset, file) for file in wanted]
        raise DataNotFoundError("\n\n".join(texts))
    return paths


def _download(dataset: Dataset, file: File) -> Path:
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            "downloads need pooch: pip install simlib[data]", name="pooch"
        ) from error
    raw = pooch.retrieve(
        file.url, known_hash=f"sha256:{file.raw_sha256}", path=cache_folder() / "raw"
    )
    data = Path(raw).read_bytes()
    if file.convert is not None:
        data = file.convert(data)
    found = hashlib.sha256(data).hexdigest()
    if found != file.sha256:
        raise CorruptDataError(
            f"{raw} converts to SHA-256 {found}, the registry has {file.sha256}: this "
            f"Python compresses differently. {_place(dataset, file)}"
        )
    path = cache_folder() / dataset.folder / file.name
    _write(path, data)
    return path


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
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
    return (
        f"Put the file of SHA-256 {file.sha256} "
        f"at $SIMLIB_DATA/{path.as_posix()} or {cache_folder() / path}."
    )
