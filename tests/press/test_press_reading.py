"""What the press reads: profiles, records, chapters, and whoever reads what it says."""

import os

import pytest

from press import status
from press.chapters import parameters, parse_chapter
from press.cli import main
from press.repository import write_atomically
from press.results import read_paper
from support.books import HEAD, cell, new_book


@pytest.fixture
def tiny(tmp_path):
    return new_book(tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("quick: {alhpa: {n: 1}}", ", quick: no alhpa; there are index, alpha"),
        ("ful: {alpha: {n: 1}}", "profiles.yml: no ful; there are quick, "),
        ("quick: {alpha: 3}", "profiles.yml, quick: alpha: 3 is no mapping"),
        ("quick: [alpha]", "profiles.yml, quick: ['alpha'] is no mapping"),
        ("- quick", "profiles.yml: ['quick'] is no mapping"),
        ("quick: {alpha: {n: 1}", "profiles.yml, line 1, column"),
        ("quick:\n  alpha: {n: 1}\n  alpha: {}", "alpha is there twice in "),
    ],
)
def test_what_is_wrong_in_the_profiles_is_told_with_its_place(tiny, text, told, capsys):
    (tiny.book / "profiles.yml").write_text(text)
    assert main(["--status", "--profile", "quick"], tiny) == 1
    said = capsys.readouterr().err.strip()
    assert told in said
    assert "\n" not in said


def test_numbers_are_those_of_python(tiny):
    numbers = "quick: {alpha: {n: '1e5', m: [1e5, -1.5e3, .5E-2], o: 1e, p: 1e5x}}"
    (tiny.book / "profiles.yml").write_text(numbers)
    read = {"n": "1e5", "m": [1e5, -1.5e3, 0.5e-2], "o": "1e", "p": "1e5x"}
    assert tiny.overrides("quick") == {"alpha": read}


def test_a_figure_stands_once_in_the_papers(tiny):
    (tiny.book / "papers.yml").write_text("x: {value: 1}\nx: {value: 2}\n")
    with pytest.raises(ValueError, match=r"x is there twice in .*papers\.yml, line 2"):
        read_paper(tiny.book, "x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<<<<<<< HEAD", "/provenance.json is no part of a record: Expecting value"),
        ("[]", "/provenance.json is no part of a record: it holds no dictionary"),
        ("{}", "/provenance.json is no part of a record: it has no commit, executed, "),
    ],
)
def test_a_damaged_record_is_named(tiny, text, told, capsys):
    write_atomically(tiny.results("alpha") / "provenance.json", text)
    assert main(["--status"], tiny) == 1
    assert f"book/results/alpha{told}" in capsys.readouterr().err


def test_who_stops_reading_is_told_nothing(tiny, monkeypatch, capfd):
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        assert main(["--status"], tiny) == 1
    assert capfd.readouterr().err == ""


def test_a_default_that_json_cannot_hold_is_given_by_its_code(tiny):
    code = "sizes: dict = {(1, 2): 3}\nnames: set = {'a', 'b'}\npair: tuple = (1, 2)"
    text = HEAD + cell(code, "parameters")
    assert parameters(parse_chapter(text)) == {
        "sizes": "{(1, 2): 3}",
        "names": "{'a', 'b'}",
        "pair": (1, 2),
    }
    tiny.source("alpha").write_text(text)
    (row,) = status(["alpha"], repository=tiny)
    assert row.notebook is None
