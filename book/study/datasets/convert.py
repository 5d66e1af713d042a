"""Conversions of public raw files to those that are read: pure functions of bytes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import random

import numpy as np


def twitter(raw: bytes) -> bytes:
    r"""Turn lines ``"label"<TAB>text`` into xz-compressed JSON lines.

    Each record has ``line`` (0-based), ``label`` (quotes removed) and ``text``
    (everything after the first tab, unchanged).
    """
    records = []
    for number, line in enumerate(raw.decode("utf8").removesuffix("\n").split("\n")):
        label, _, text = line.partition("\t")
        record = {"line": number, "label": label.strip('"'), "text": text}
        records.append(json.dumps(record, separators=(",", ":")) + "\n")
    return lzma.compress(
        "".join(records).encode("utf8"), preset=9 | lzma.PRESET_EXTREME
    )


def zipped(raw: bytes) -> bytes:
    """Compress a file, and change nothing else."""
    return gzip.compress(raw, mtime=0)


def stsb_sentences(raw: bytes) -> bytes:
    """Give the STS-B sentences numbers: index, dev_row, genre, sentence."""
    return _number(_stsb(raw))[0]


def stsb_pairs(raw: bytes) -> bytes:
    """Give the STS-B pairs by those numbers: i, j, label (0 to 5), dev_row."""
    return _number(_stsb(raw))[1]


def rte_sentences(raw: bytes) -> bytes:
    """Give the RTE sentences numbers: index, dev_row, genre (empty), sentence."""
    return _number(_rte(raw))[0]


def rte_pairs(raw: bytes) -> bytes:
    """Give the RTE pairs by those numbers: i, j, label (0 or 1), dev_row."""
    return _number(_rte(raw))[1]


def bunny(raw: bytes) -> bytes:
    """Turn the lines ``v x y z`` and ``f i j k`` of an OBJ file into arrays."""
    rows: dict[str, list[list[str]]] = {"v": [], "f": []}
    for line in raw.decode("ascii").splitlines():
        kind, *numbers = line.split()
        rows[kind].append(numbers)
    out = io.BytesIO()
    np.savez_compressed(
        out,
        vertices=np.array(rows["v"], dtype=np.float32),
        faces=np.array(rows["f"], dtype=np.int32) - 1,
    )
    return out.getvalue()


# One labelled pair: sentence, sentence, label, genre.
_Pair = tuple[str, str, str, str]


def _stsb(raw: bytes) -> list[_Pair]:
    """Read tab-separated rows without quoting: genre, ..., score, two sentences."""
    rows = [line.split("\t") for line in raw.decode("utf8").split("\n") if line]
    return [(row[5].strip(), row[6].strip(), row[4], row[0]) for row in rows]


def _rte(raw: bytes) -> list[_Pair]:
    """Read tab-separated rows with csv quoting: sentence1, sentence2, label, idx."""
    rows = csv.DictReader(io.StringIO(raw.decode("utf8"), newline=""), delimiter="\t")
    return [(row["sentence1"], row["sentence2"], row["label"], "") for row in rows]


def _number(pairs: list[_Pair]) -> tuple[bytes, bytes]:
    """Shuffle the pairs (seed 0) and number their sentences in order of first use."""
    order = list(range(len(pairs)))
    random.Random(0).shuffle(order)
    numbers: dict[str, int] = {}
    sentences, labels = ["index\tdev_row\tgenre\tsentence"], ["i\tj\tlabel\tdev_row"]
    for row in order:
        first, second, label, genre = pairs[row]
        for text in (first, second):
            if text not in numbers:
                numbers[text] = len(numbers)
                sentences.append(f"{numbers[text]}\t{row}\t{genre}\t{text}")
        labels.append(f"{numbers[first]}\t{numbers[second]}\t{label}\t{row}")
    return _table(sentences), _table(labels)


def _table(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode("utf8")
