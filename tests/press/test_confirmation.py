"""Records that a short run confirms, on a throwaway book."""

import re
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from press import confirm, recorded, status
from press.cli import main
from press.code import Source, content_hash, unpacked
from press.confirmation import bounded, compare, unreached
from press.inputs import Checkout
from press.results import (
    MIME,
    collect,
    read_part,
    read_results,
    record,
    write_part,
    write_results,
)
from support.books import HEAD, PARAMETERS, cell, commit, copied, edit, git, new_book

RECORD = ["alpha", "--profile", "full", "--record"]
CODE = """from time import time

import pandas as pd
from press import record
from tiny.study import errors

rows = []
for m in range(1, n + 1):
    row = {"n": m, "error": errors(m), "seconds": time()}
    if m == 3:
        row["error"] += 0
    rows.append(row)
record("errors", pd.DataFrame(rows), volatile=("seconds",))
record("about", {"last": errors(n), "clock": time()}, volatile=("clock",))"""
STUDY = """from tiny.lower import double

WIDE = 2
UNREAD = 0


def errors(n):
    scale = 1.5
    if n > WIDE:
        return in_blocks(n) / scale
    if n < 0:
        raise ValueError("negative")
    return double(n) / scale


def in_blocks(n):
    return double(n)


def unused():
    return UNREAD
"""


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory):
    """Alpha records errors(1), errors(2), errors(3) in full, errors(1) in quick."""
    book = new_book(tmp_path_factory.mktemp("recorded"))
    (book.root / "tiny/study.py").write_text(STUDY)
    book.source("alpha").write_text(HEAD + PARAMETERS + cell(CODE))
    commit(book, "start")
    assert main(RECORD, book) == 0
    commit(book, "record")
    return book


@pytest.fixture
def book(recorded_once, tmp_path):
    return copied(recorded_once, tmp_path)


def standing(book):
    (row,) = status(["alpha"], repository=book)
    return row.record


def confirmed(book):
    (row,) = confirm(["alpha"], repository=book)
    return row.record


def test_a_record_is_a_table_values_and_how_they_came_about(book):
    folder = book.results("alpha")
    assert {path.name for path in folder.iterdir()} == {
        "errors.csv",
        "values.json",
        "provenance.json",
        "probe.json",
    }
    text = (folder / "errors.csv").read_text()
    assert text.startswith("n,error,seconds\n1,1.3333333333333333,")
    made = read_part(folder, "provenance.json")
    kinds = {"n": "int", "error": "float", "seconds": "float"}
    assert made["tables"]["errors"] == kinds
    assert made["commit"] == git(book, "rev-parse", "HEAD~")
    values = read_results(book.book, "alpha")["values"]
    assert values["errors"]["error"].tolist() == [2 / 1.5, 4 / 1.5, 4.0]
    probe = read_part(folder, "probe.json")
    assert probe["entries"]["errors"]["table"][0] == ["n", "int", [1]]
    assert probe["parameters"] == {"n": 1}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("tiny/study.py", "return UNREAD", "return UNREAD + 1"),
        ("tiny/study.py", "UNREAD = 0", "UNREAD = 1"),
        ("tiny/study.py", "raise ValueError", "raise TypeError"),
        ("tiny/study.py", "    scale", "    # a comment\n    scale"),
        ("tiny/lower.py", "Twice n.", "Two times n."),
        ("tiny/other.py", "42", "43"),
        ("book/alpha.md", "# A chapter", "# Another"),
        ("tiny/study.py", STUDY, 'VALUE = 0\n\n"""Words."""\n' + STUDY),
    ],
)
def test_what_did_not_run_stales_nothing(book, file, old, new):
    edit(book.root / file, old, new)
    assert standing(book).verdict == "fresh"
    assert main(["--confirm", "alpha"], book) == 0
    assert not (book.results("alpha") / "confirmation.json").exists()


def test_a_function_that_moves_stales_nothing(book):
    moved = "def double(n):\n    return 2 * n\n"
    (book.root / "tiny/lowest.py").write_text(moved)
    (book.root / "tiny/lower.py").write_text("from .lowest import double\n")
    assert standing(book).verdict == "fresh"
    (book.root / "tiny/lowest.py").write_text(moved.replace("2 * n", "n + n"))
    assert standing(book).changed == {"code": ["tiny/lower.py:double"]}


OTHER = "WIDE = 3\n\n\ndef double(n):\n    return 3 * n\n"
LOWER, WIDE = "from tiny.lower import double", "WIDE = 2\n"


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        (LOWER, "from tiny.three import double", "double"),
        (LOWER, "from tiny.same import double", "double"),  # and not moved there
        (LOWER, "from tiny import three as double", "double"),
        (LOWER, "from math import sqrt as double", "double"),
        (LOWER, "from tiny.three import triple as double", "double"),  # that never ran
        (LOWER, "def double(n):\n    return 3 * n", "double"),
        (WIDE, "from tiny.three import WIDE\n", "WIDE"),
        (WIDE, "from tiny.same import WIDE\n", None),
        (WIDE, "from math import pi as WIDE\n", "WIDE"),
    ],
)
def test_a_name_means_what_it_meant(book, old, new, name):
    """Whatever else has that name."""
    three = f"{OTHER}\n\ndef triple(n):\n    return 3 * n\n"
    (book.root / "tiny/three.py").write_text(three)
    (book.root / "tiny/same.py").write_text(OTHER.replace("3", "2"))
    edit(book.root / "tiny/study.py", old, new)
    changed = {"code": [f"tiny/study.py:{name}"]} if name else {}
    assert standing(book).changed == changed


def test_a_list_of_public_names_counts_by_the_names_that_are_used(tmp_path):
    book = new_book(tmp_path)
    lists = book.root / "tiny/__init__.pyi"
    lists.write_text("from .lower import double as double\n")
    lazy = "import lazy_loader\n\n"
    lazy += "__getattr__, *_ = lazy_loader.attach_stub(__name__, __file__)\n"
    (book.root / "tiny/__init__.py").write_text(lazy)
    code = "from press import record\nfrom tiny import double\n\n"
    code += 'record("twice", double(n))'
    book.source("alpha").write_text(HEAD + PARAMETERS + cell(code))
    commit(book, "start")
    assert main(RECORD, book) == 0
    commit(book, "record")
    lists.write_text(
        f"# names\n{lists.read_text()}from .other import answer as answer\n"
    )
    assert standing(book).verdict == "fresh"
    (book.root / "tiny/three.py").write_text(OTHER)
    edit(lists, "from .lower", "from .three")
    assert standing(book).changed == {"code": ["tiny/__init__.pyi:double"]}


def test_older_records_know_an_import_by_its_name_alone(book):
    path = book.results("alpha") / "provenance.json"
    new = unpacked(read_part(path.parent, path.name)["code"])["tiny/study.py"]
    edit(path, new["<double"], content_hash(b"double")[:12])
    edit(book.root / "tiny/study.py", LOWER, LOWER.replace("tiny", "."))
    assert standing(book).verdict == "fresh"
    edit(book.root / "tiny/study.py", "import double", "import unread as double")
    assert standing(book).changed == {"code": ["tiny/study.py:double"]}


def test_a_function_moves_with_its_imports(book):
    (book.root / "tiny/lower.py").rename(book.root / "tiny/lowest.py")
    (book.root / "tiny/lower.py").write_text("")
    edit(book.root / "tiny/study.py", "tiny.lower", "tiny.lowest")
    assert standing(book).verdict == "fresh"
    edit(book.root / "tiny/lowest.py", "2 * n", "n + n")
    assert standing(book).verdict == "not confirmed"


def test_what_is_confirmed_names_its_commit_and_changes_nothing_else(book, capsys):
    """A renamed variable, the lock, the chapter, a refusal, a case of no size: at once.

    Then the record is as it was, and a further edit wants another confirmation.
    """
    before = {p.name: p.read_text() for p in book.results("alpha").iterdir()}
    edit(book.root / "tiny/lower.py", "2 * n", "n + n")
    assert str(standing(book)) == "not confirmed: code changed: tiny/lower.py:double"
    edit(book.root / "requirements.lock", "2", "3")
    edit(book.source("alpha"), "rows.append(row)", "rows += [row]")
    new = "    if n > 9:\n        raise ValueError('large')\n"
    new += "    if n is None:\n        return 0\n    scale = 1.5"
    edit(book.root / "tiny/study.py", "    scale = 1.5", new)
    assert {*standing(book).changed} == {"code", "versions"}
    assert main(["--status"], book) == 0
    assert main(["--confirm"], book) == 0
    told = capsys.readouterr().out
    assert "recorded: confirmed: uncommitted, 3 values, largest deviation " in told
    assert told.splitlines()[-1] == "records: 0 fresh, 1 confirmed"
    git(book, "commit", "-a", "-q", "-m", "double")
    head = git(book, "rev-parse", "HEAD")
    edit(
        book.results("alpha") / "confirmation.json",
        '"commit": null',
        f'"commit": "{head}"',
    )
    assert f"confirmed: commit {head[:7]}, 3 values" in str(standing(book))
    edit(book.root / "tiny/lower.py", "n + n", "n + n + 0")
    since = f"since commit {head[:7]} code changed: tiny/lower.py:double"
    assert str(standing(book)) == f"not confirmed: {since}"
    after = {p.name: p.read_text() for p in book.results("alpha").iterdir()}
    del after["confirmation.json"]
    assert after == before


def test_values_that_moved_are_named(book, capsys):
    edit(book.root / "tiny/study.py", "scale = 1.5", "scale = 1.45")
    assert main(["--confirm"], book) == 1
    assert "moved: errors.error.0: 1.33333 -> 1.37931" in capsys.readouterr().out
    assert "about.last: 1.33333 -> 1.37931" in standing(book).told


def test_the_comparison_is_with_the_first_run_always(book):
    """Steps below the tolerance add up to one above it."""
    scales = ["1.5", "1.5000009", "1.5000018"]
    verdicts = []
    for old, new in pairwise(scales):
        edit(book.root / "tiny/study.py", f"scale = {old}\n", f"scale = {new}\n")
        verdicts.append(confirmed(book).verdict)
    assert verdicts == ["confirmed", "moved"]


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("study", "return in_blocks(n) / scale", "return in_blocks(n) * 1", "errors"),
        (
            "study",
            "    return double(n)\n\n",
            "    return double(n) + 0\n\n",
            "in_blocks",
        ),
        ("study", "WIDE = 2", "WIDE = 1 + 1", "errors"),
        ("study", "n > WIDE", "n >= WIDE", "errors"),
        (
            "study",
            "    return double(n) /",
            "    if n > 5:\n        n += 1\n    return double(n) /",
            "errors",
        ),
        ("alpha", "+= 0", "+= 1", ""),
        ("alpha", "m == 3", "m >= 3", ""),
        (
            "alpha",
            "    rows.append(row)",
            "    if m > 4:\n        row = {}\n    rows.append(row)",
            "",
        ),
    ],
)
def test_what_only_the_full_run_reaches_is_not_confirmed(book, file, old, new, told):
    path = book.source("alpha") if file == "alpha" else book.root / "tiny/study.py"
    edit(path, old, new)
    found = confirmed(book)
    place = f"tiny/study.py:{told}" if told else "book/alpha.md"
    assert found.verdict == "not confirmed"
    assert found.told == f"only the full run reaches what changed in {place}"


@pytest.mark.parametrize("told", ["raise ValueError(n)", "warn(f'{n} is many')"])
def test_a_new_error_or_warning_would_show(book, told):
    """As it would end, or be printed by, the full run."""
    path = book.root / "tiny/study.py"
    switch = f"    if n > 50:\n        {told}\n    return double(n) /"
    edit(path, "    return double(n) /", switch)
    assert confirmed(book).verdict == "confirmed"


def test_what_the_short_run_alone_reaches_decides_nothing(book):
    path = book.root / "tiny/study.py"
    then = Source(path.read_bytes(), "tiny/study.py")
    ran = {"tiny/study.py": then.hashes}
    did_not = {"tiny/study.py": then.hashes | {"in_blocks": "-"}}
    edit(path, "    return double(n)\n\n", "    return double(n) + 0\n\n")
    assert unreached(did_not, ran, {}, Checkout(book)) == []
    assert unreached(ran, did_not, {}, Checkout(book)) == ["tiny/study.py:in_blocks"]


@pytest.mark.parametrize(
    ("switch", "old", "new"),
    [
        ("def errors(n, wide=2):\n    if n > wide:", "wide=2", "wide=3"),
        ("def errors(n):\n    wide = 2\n    if n > wide:", "wide = 2", "wide = 3"),
    ],
)
def test_so_is_a_size_that_a_function_sets(book, switch, old, new):
    """The short run, of n = 1, is below both."""
    path = book.root / "tiny/study.py"
    edit(path, "def errors(n):\n    scale = 1.5\n    if n > WIDE:", switch)
    edit(path, " / scale", " / 1.5")
    then = Source(path.read_bytes(), "tiny/study.py")
    edit(path, old, new)
    full = {"tiny/study.py": then.hashes | {"errors/1": "-"}}
    probe = {"tiny/study.py": full["tiny/study.py"] | {"errors/0": "-"}}
    found = unreached(full, probe, {}, Checkout(book))
    assert found == ["tiny/study.py:errors"]


BOUNDED = """CAP = 3


def few(n, cap=3):
    many = 4
    small = n < 4
    part = [*range(n)][:3]
    kept = [i for i in part if i < 4]
    return min(n, cap), max(n, many), min(n, CAP), 10 if n > 4 else 5, small and kept
"""


@pytest.mark.parametrize(
    ("old", "new", "is_found"),
    [
        ("cap=3", "cap=2", True),
        ("many = 4", "many = 5", True),
        ("n < 4", "n < 5", True),
        ("[:3]", "[:2]", True),
        ("i < 4", "i < 3", True),
        ("10 if", "20 if", True),
        ("CAP = 3", "CAP = 2", True),
        ("many = 4", "many = 2 * 3", True),
        ("min(n, CAP)", "min(n, OTHER)", True),
        ("min(n, cap)", "min(n, cap, 7)", False),  # no number stands for another
        ("i < 4", "i < FOUR", False),  # nor here
        ("range(n)", "range(n + 2)", False),
        ("min(n, cap)", "min(n + 0, cap)", False),
        ("small and", "small or", False),
    ],
)
def test_a_bound_of_sizes_that_changes_is_found(book, old, new, is_found):
    """Whether the short run passes it by is not to be seen."""
    path = book.root / "tiny/few.py"
    path.write_text(BOUNDED)
    commit(book, "few")
    ran = {"tiny/few.py": Source(path.read_bytes(), "tiny/few.py").hashes}
    edit(path, old, new)
    with book.at("HEAD") as recorded:
        found = bounded(ran, Checkout(recorded), Checkout(book))
    assert found == ["tiny/few.py:few"] * is_found


def test_a_record_with_a_bound_that_changes_is_not_confirmed(book):
    path = book.root / "tiny/study.py"
    edit(path, "return double(n) / scale", "return double(min(n, 8)) / scale")
    commit(book, "bounded")
    assert main(RECORD, book) == 0
    edit(path, "min(n, 8)", "min(n, 9)")
    found = confirmed(book)
    assert found.verdict == "not confirmed"
    assert found.told.endswith("what changed in tiny/study.py:errors")


def test_other_parameters_and_data_want_another_record(book, monkeypatch):
    """And without its data a record cannot be confirmed."""

    def needs(part, **data):
        made = read_part(book.results("alpha"), f"{part}.json")
        write_part(book.results("alpha"), f"{part}.json", made | {"data": data})

    def at_hand(**data):
        monkeypatch.setattr("press.inputs.Checkout.data", data)

    at_hand(words="abc")
    needs("provenance", words="abc")
    edit(book.source("alpha"), "n: int = 3", "n: int = 4")
    assert confirmed(book).changed.keys() == {"parameters"}
    edit(book.source("alpha"), "n: int = 4", "n: int = 3")
    edit(book.root / "tiny/lower.py", "2 * n", "n + n")
    assert confirmed(book).verdict == "confirmed"
    at_hand(words="abd")
    for found in (standing(book), confirmed(book)):
        assert found.verdict == "not confirmed"
        assert found.changed.keys() == {"code", "data"}
    assert not book.notebook("alpha", "quick").with_suffix(".partial.ipynb").exists()
    needs("provenance")
    needs("probe", words="abc")
    (book.results("alpha") / "confirmation.json").unlink()
    at_hand()
    assert confirmed(book).verdict == "data missing"
    assert main(["--confirm"], book) == 0


def test_a_chapter_that_fails_at_its_end_tells_what_moved(book, capsys):
    edit(book.root / "tiny/study.py", "scale = 1.5", "scale = 1.45")
    source = book.source("alpha")
    source.write_text(source.read_text() + cell("assert errors(1) == 2 / 1.5, 'no'"))
    told = confirmed(book).told
    assert told.startswith("errors.error.0: 1.33333 -> 1.37931; about.last: 1.33333 ->")
    assert re.search(
        r"; it fails, book/alpha.md:\d+: In \[4\]: AssertionError: no$", told
    )
    edit(book.root / "tiny/lower.py", "2 * n", "2 / 0")
    assert main(["--confirm"], book) == 1
    assert "not confirmed: it fails, book/alpha.md:" in capsys.readouterr().out
    assert standing(book).verdict == "not confirmed"


def test_a_new_record_forgets_the_confirmation(book):
    edit(book.root / "tiny/study.py", "scale = 1.5", "scale = 1.45")
    commit(book, "scale")
    assert confirmed(book).verdict == "moved"
    commit(book, "moved")
    assert main(RECORD, book) == 0
    assert standing(book).verdict == "fresh"
    assert read_results(book.book, "alpha")["values"]["about"]["last"] == 6 / 1.45
    assert not (book.results("alpha") / "confirmation.json").exists()


# What is recorded, and how it is compared


def entry(monkeypatch, *arguments, **options):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda *a, **_: shown.extend(a))
    record(*arguments, **options)
    [(_, found)] = shown[0].items()
    return found


def test_tables_are_read_as_they_were_recorded(tmp_path, monkeypatch):
    frame = pd.DataFrame(
        {
            "case": ["rte", "250", "a, b"],
            "kind": pd.Categorical(["x", "y", "x"]),
            "error": [0.1 + 0.2, np.nan, 1e-300],
            "calls": np.array([1, 2, 2**53 + 1]),
            "exact": [True, False, True],
            "single": np.float32([0.1, 0.2, 0.3]),
        }
    )
    found = entry(monkeypatch, "errors", frame)
    name = found.pop("name")
    made = {"commit": "a"}
    write_results(tmp_path / "results" / "alpha", {name: found}, made)
    again = read_results(tmp_path, "alpha")["values"]["errors"]
    expected = frame.astype({"kind": "str", "single": "float64"})
    pd.testing.assert_frame_equal(again, expected, check_dtype=False, check_exact=True)
    assert [kind.kind for kind in again.dtypes[2:]] == ["f", "i", "b", "f"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (pd.DataFrame({"a": [1.0, np.inf]}), "an infinity in 'a'"),
        (pd.DataFrame({"a": [1, 2]}, index=[1, 2]), "record its reset_index"),
        (pd.DataFrame({"a": [1, "b"]}), "has int, str in 'a': one type a column"),
        (pd.DataFrame({3: [1]}), "a text of its own as name"),
        (pd.DataFrame({"a": [[1]]}), "has list in 'a'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "a text of its own as name"),
        (pd.DataFrame({"a": [2**63]}), "more than 64 bits in 'a'"),
        (pd.DataFrame({"a": ["x", ""]}), "empty text or a return in 'a'"),
        (pd.DataFrame({"seconds": [1]}), "has no secnds to be volatile"),
        ({"a": {"seconds": 1}}, "has no secnds to be volatile"),
        (float("nan"), "not JSON compliant"),
        (object(), "cannot record a object"),
        ({"deep": [{1: 2, "1": 3}]}, "same as strings"),
    ],
)
def test_what_a_record_cannot_hold_is_refused(value, told):
    volatile = ("secnds",) if "volatile" in told else ()
    with pytest.raises((ValueError, TypeError), match=told):
        record("errors", value, volatile=volatile)


@pytest.mark.parametrize("name", ["../x", "", "a b", "x.csv"])
def test_a_name_that_leaves_the_folder_is_refused(name):
    with pytest.raises(ValueError, match="is no name: use letters"):
        record(name, 1)


def test_two_names_differ_by_more_than_capitals(monkeypatch):
    assert entry(monkeypatch, "c", {1: 2, "2": 3})["value"] == {"1": 2, "2": 3}
    entries = [entry(monkeypatch, name, 1) for name in ("a", "A")]
    outputs = [{"data": {MIME: one}} for one in entries]
    notebook = SimpleNamespace(cells=[{"outputs": outputs}])
    with pytest.raises(ValueError, match="'A' is recorded twice"):
        collect(notebook)


def test_a_result_is_found_by_its_name():
    assert recorded("nystrom", "low_rank") == recorded("nystrom")["low_rank"]
    assert recorded("nystrom", "nothing") is None


@pytest.mark.parametrize(
    ("then", "now", "options", "expected"),
    [
        (1.0, 1.0, {}, (1, 0.0, [])),
        (1.0, 1 + 5e-7, {}, (1, 5e-7, [])),
        (1.0, 1.001, {}, (1, 0.0, ["e: 1 -> 1.001"])),
        (1.0, 1.001, {"rtol": 0.01}, (1, 1e-3, [])),
        (3e-16, -2e-16, {}, (1, 0.0, [])),
        (1, True, {}, (1, 0.0, ["e: 1 -> True"])),
        (None, 0.0, {}, (1, 0.0, ["e: None -> 0"])),
        ("a", "b", {}, (1, 0.0, ["e: a -> b"])),
        ([1, 2], [1], {}, (2, 0.0, ["e.1: 2 -> nothing"])),
        ({"t": 1, "a": 2}, {"t": 3, "a": 2}, {"volatile": ("t",)}, (1, 0.0, [])),
        ({"t": {"a": 1}}, {"t": {"a": 3}}, {"volatile": ("t",)}, (0, 0.0, [])),
        (1, 2, {"volatile": True}, (0, 0.0, [])),
    ],
)
def test_values_are_compared(then, now, options, expected):
    count, deviation, moved = compare(
        {"e": {"value": then}}, {"e": {"value": now} | options}
    )
    assert (count, moved) == (expected[0], expected[2])
    assert deviation == pytest.approx(expected[1], rel=1e-3)


def test_results_and_columns_are_compared_by_name(monkeypatch):
    count, _, moved = compare({"a": {"value": 1}}, {"b": {"value": 2}})
    assert (count, moved) == (2, ["b: nothing -> 2", "a: 1 -> nothing"])
    frames = [pd.DataFrame({"error": [e], "seconds": [e]}) for e in (0.5, 0.25)]
    then, now = (entry(monkeypatch, "e", f, volatile=("seconds",)) for f in frames)
    assert compare({"e": then}, {"e": now}) == (1, 0.0, ["e.error.0: 0.5 -> 0.25"])


def test_a_record_without_its_probe_is_not_confirmed(book, capsys):
    """As after a recording that was killed."""
    edit(book.root / "tiny/lower.py", "2 * n", "n + n")
    assert confirmed(book).verdict == "confirmed"
    path = book.results("alpha") / "probe.json"
    path.unlink()
    assert main(["--confirm"], book) == 1
    told = (
        "code changed: tiny/lower.py:double; probe changed: probe.json, which is gone"
    )
    assert f"not confirmed: {told}" in capsys.readouterr().out
    for part in (path, path.with_name("confirmation.json")):
        part.write_text('{"entries": {}}')
        assert main(["--confirm"], book) == 1
        assert f"{part} is no part of a record: it has no" in capsys.readouterr().err
        part.unlink()


@pytest.mark.parametrize("name", ["errors.csv", "values.json"])
def test_a_record_that_was_edited_by_hand_is_not_fresh(book, name, capsys):
    path = book.results("alpha") / name
    text = path.read_text()
    path.write_text(text.replace("1", "2", 1))
    edit(book.root / "tiny/lower.py", "2 * n", "n + n")  # no short run heals that
    for _ in range(2):
        assert main(["--confirm"], book) == 1
        assert f"results changed: {name}" in capsys.readouterr().out
        path.unlink(missing_ok=True)
    path.write_text(text)
    assert confirmed(book).verdict == "confirmed"


def test_a_module_that_moves_is_confirmed(book):
    (book.root / "tiny/study.py").rename(book.root / "tiny/studies.py")
    edit(book.source("alpha"), "tiny.study", "tiny.studies")
    assert confirmed(book).verdict == "confirmed"
    edit(book.root / "tiny/studies.py", "WIDE = 2", "WIDE = 1 + 1")
    assert confirmed(book).verdict == "not confirmed"


def test_values_that_another_processor_rounds_otherwise_have_not_moved(book, capsys):
    """The recorded code moves as well, and the change does nothing beside it."""
    probe = book.results("alpha") / "probe.json"
    there = probe.read_text()
    assert there.count("1.33333333333") == 2
    probe.write_text(there.replace("1.33333333333", "1.34"))
    commit(book, "recorded on another machine")
    edit(book.root / "tiny/lower.py", "2 * n", "n + n")
    assert main(["--confirm"], book) == 0
    told = capsys.readouterr().out
    assert "3 values, largest deviation 0, beside the recorded code here" in told
    assert git(book, "worktree", "list").count("\n") == 0
    edit(book.root / "tiny/lower.py", "n + n", "n + n + 1")
    assert main(["--confirm"], book) == 1
    assert "moved: errors.error.0: 1.34 -> 2" in capsys.readouterr().out
    edit(book.root / "tiny/lower.py", "n + n + 1", "n + n + 0")
    assert confirmed(book).verdict == "confirmed"
    edit(book.root / "requirements.lock", "numpy==2", "numpy==3")
    assert confirmed(book).verdict == "moved"  # the recorded code has these, too


def test_a_short_run_without_a_value_confirms_nothing(book):
    edit(book.source("alpha"), 'record("', 'if n > 1:\n    record("')
    commit(book, "only large ones")
    assert main(RECORD, book) == 0
    edit(book.root / "tiny/lower.py", "2 * n", "n + n")
    found = confirmed(book)
    assert found.verdict == "not confirmed"
    assert found.told == "the short run has no value that the record has"


def test_a_recording_that_is_killed_leaves_no_older_probe(book, monkeypatch):
    def stop(folder, *_):
        raise KeyboardInterrupt

    edit(book.root / "tiny/study.py", "scale = 1.5", "scale = 1.4")
    commit(book, "scale")
    with monkeypatch.context() as patched:
        patched.setattr("press.recording.write_part", stop)
        assert main(RECORD, book) == 130
    edit(book.root / "tiny/study.py", "scale = 1.4", "scale = 1.5")
    assert confirmed(book).verdict == "not confirmed"
