"""The examples that a reader sees first run as they stand."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from rapidfuzz.distance import JaroWinkler

from simlib import METHODS
from support.examples import python_blocks

ROOT = Path(__file__).parents[2]


def examples(page):
    """Return the examples of a page, each with the output shown below, or ""."""
    return python_blocks((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["README.md", "book/index.md"])
def test_python_examples_run_and_print_what_is_shown(page, capsys):
    blocks = examples(page)
    assert any(shown for _, shown in blocks)
    for block, shown in blocks:
        names = {}
        exec(compile(block, page, "exec"), names)
        printed = capsys.readouterr().out
        assert printed, "an example shows nothing"
        assert printed == (shown or printed)
        if "sim" in names:
            sim, (m, n) = names["sim"], names["sim"].shape
            pairs = n * (n + 1) / 2 if sim.symmetric else m * n
            assert sim.calls < pairs * 0.9, "it evaluates everything"


def test_the_grid_search_evaluates_no_pair_twice(monkeypatch):
    asked, function = [], JaroWinkler.similarity

    def recorded(x, y, **options):
        asked.append((min(x, y), max(x, y)))
        return function(x, y, **options)

    monkeypatch.setattr(JaroWinkler, "similarity", recorded)
    [block] = [one for one, _ in examples("README.md") if "GridSearchCV" in one]
    names = {}
    exec(compile(block, "README.md", "exec"), names)
    sim = names["sim"]  # of a few pairs both orders are compared
    assert len(asked) - sim.checks == len(set(asked)) == sim.calls
    assert sim.calls == METHODS["tikhonov"].calls(sim.n, 40)  # for all folds


@pytest.mark.parametrize(
    ("page", "some"),
    [
        ("README.md", {"test", "book", "quick", "full"}),
        ("CONTRIBUTING.md", {"test", "pytest", "lock"}),
    ],
)
def test_every_command_exists(page, some):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"(?:^|`|; |&& )make (\w+)", text, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert some <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_readme_names_every_method():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in METHODS if f"`{name}`" not in readme] == []


def test_files_that_the_readme_links_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((?!https?:)([^)]+)\)", text)
    assert linked
    assert all((ROOT / file).is_file() for file in linked)


def test_the_picture_shows_the_recorded_results():
    from PIL import Image

    spec = importlib.util.spec_from_file_location(
        "picture", ROOT / "benchmarks" / "picture.py"
    )
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    with Image.open(picture.PICTURE) as image:
        assert json.loads(image.text["Description"]) == picture.points()
