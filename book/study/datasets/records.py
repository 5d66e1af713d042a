"""Records of shops and of lists of addresses, with what is known to be the same."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from simlib._checks import whole_number
from simlib.datasets.generated import bundled_words
from study.datasets.registry import find
from study.datasets.selection import selection


@dataclass(frozen=True, eq=False)
class Records:
    """Records of one or more tables, some of which are of the same thing.

    Attributes
    ----------
    texts : list of str
        What names each of the n records, in one line and lower case.
    fields : dict of str to list of str
        Every column of the source, empty strings where it has none.
    entities : ndarray of int, shape (n,)
        Records of the same thing have the same number.
    tables : ndarray of int, shape (n,)
        The table that each is of.

    Examples
    --------
    >>> from study.datasets import load_abt_buy
    >>> records = load_abt_buy()
    >>> i, j = records.matches(between=True)
    >>> len(i), records.texts[i[5]]
    (1081, 'lacie usb 2.0 floppy disk drive - 706018')
    """

    texts: list[str]
    fields: dict[str, list[str]]
    entities: np.ndarray
    tables: np.ndarray

    def matches(self, *, between: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs i < j of records of the same thing, as two arrays.

        With `between` only those of two tables.
        """
        order = np.argsort(self.entities, kind="stable")
        sizes = np.bincount(self.entities)
        pairs = [
            (members[a], members[b])
            for members in np.split(order, np.cumsum(sizes)[:-1])
            for a in range(members.size)
            for b in range(a + 1, members.size)
        ]
        i, j = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        if between:
            good = self.tables[i] != self.tables[j]
            i, j = i[good], j[good]
        order = np.lexsort((j, i))
        return i[order], j[order]

    def take(self, indices: ArrayLike) -> Records:
        """Return some of the records, by numbers or by a mask.

        Others raise ValueError or IndexError.
        """
        rows = selection(indices, len(self.tables), "Records")
        return Records(
            [self.texts[row] for row in rows],
            {
                name: [column[row] for row in rows]
                for name, column in self.fields.items()
            },
            np.unique(self.entities[rows], return_inverse=True)[1],
            self.tables[rows],
        )


def load_abt_buy() -> Records:
    """Load the products of two shops, Abt and Buy.

    1081 and 1092 products; table 0 is Abt, 1 is Buy. A record is named by its title.
    1076 products are in both shops, five of them twice in Abt: 1081 pairs to be linked.
    Source: Köpcke, Thor and Rahm (2010), in the form of the dedupe library's examples.
    Errors are those of `find`.

    Returns
    -------
    Records
        With the fields ``title``, ``description`` and ``price``.

    Examples
    --------
    >>> from study.datasets import load_abt_buy
    >>> records = load_abt_buy()
    >>> len(records.texts), records.fields["price"][0]
    (2173, '$44.00')
    """
    shops = [
        _rows("abt-buy", f"AbtBuy_{shop}.csv.gz", "latin1") for shop in ("Abt", "Buy")
    ]
    rows = [row for shop in shops for row in shop]
    tables = np.repeat([0, 1], [len(shop) for shop in shops])
    return _records(rows, "unique_id", ["title"], tables)


def load_early_childhood() -> Records:
    """Load the sites of early-childhood programmes in Chicago, from nine lists.

    3337 records of 1162 sites, 6608 pairs of the same one. A record is named by site,
    address and telephone. Source: the dedupe library's examples. Errors are those of
    `find`.

    Returns
    -------
    Records
        With all columns of the source, such as ``Site name``, ``Zip`` and ``Phone``;
        ``tables`` numbers the lists by their names.

    Examples
    --------
    >>> from study.datasets import load_early_childhood
    >>> records = load_early_childhood()
    >>> len(records.matches()[0]), records.texts[1]
    (6608, "precious little one's learning center, inc. 221 e. 51st st. 2859902")
    """
    file = "csv_example_input_with_true_ids.csv.gz"
    rows = _rows("early-childhood", file, "utf8")
    tables = np.unique([row["Source"] for row in rows], return_inverse=True)[1]
    return _records(rows, "True Id", ["Site name", "Address", "Phone"], tables)


def _rows(dataset: str, file: str, encoding: str) -> list[dict[str, str]]:
    path = find(dataset, file)
    with gzip.open(path, "rt", encoding=encoding, newline="") as lines:
        return list(csv.DictReader(lines))


def _records(
    rows: list[dict[str, str]], key: str, naming: list[str], tables: np.ndarray
) -> Records:
    texts = [" ".join(row[name] for name in naming) for row in rows]
    return Records(
        texts=[" ".join(text.lower().split()) for text in texts],
        fields={name: [row[name] for row in rows] for name in rows[0] if name != key},
        entities=np.unique([row[key] for row in rows], return_inverse=True)[1],
        tables=tables,
    )


def planted_records(
    n_entities: int = 300, *, rng: int | np.random.Generator | None = None
) -> Records:
    """Make records of two tables whose matches are known, with slips of the pen.

    A thing is named by four words of `bundled_words` and a number, the first word one
    of few makers. The second table has nine tenths of the things, a tenth of them
    twice; one word in four lost a letter there, and one in eight is left out.

    Parameters
    ----------
    n_entities : int, default=300
        Things, 2 at least: else ValueError.
    rng : int, Generator or None
        Source of randomness.

    Returns
    -------
    Records
        With the field ``name``.

    Examples
    --------
    >>> from study.datasets import planted_records
    >>> records = planted_records(100, rng=0)
    >>> len(records.texts), len(records.matches(between=True)[0])
    (200, 100)
    """
    n_entities = whole_number(n_entities, "n_entities", 2)
    rng = np.random.default_rng(rng)
    words = bundled_words()
    names = [
        [
            words[int(rng.integers(20))],
            *(words[k] for k in rng.integers(20, len(words), size=3)),
            str(rng.integers(1000, 10000)),
        ]
        for _ in range(n_entities)
    ]
    second = [k for k in range(n_entities) for _ in range(_times(k))]
    texts = [" ".join(name) for name in names]
    for k in second:
        kept = [_slip(word, rng) for word in names[k] if rng.random() < 7 / 8]
        texts.append(" ".join(kept or names[k]))
    return Records(
        texts=texts,
        fields={"name": texts},
        entities=np.array([*range(n_entities), *second]),
        tables=np.repeat([0, 1], [n_entities, len(second)]),
    )


def _times(k: int) -> int:
    """Say how often a thing stands in the second table."""
    return {0: 0, 1: 2}.get(k % 10, 1)


def _slip(word: str, rng: np.random.Generator) -> str:
    if rng.random() < 3 / 4:
        return word
    place = int(rng.integers(len(word)))
    return word[:place] + word[place + 1 :]
