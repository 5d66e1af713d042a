"""Chapters with parameters of a reader's own: smaller ones, and odd ones.

Each chapter has a row of both in ``parameters.yml``; odd are a prime number of items,
one draw, one share, lists that are reversed. papermill executes them as it does for a
reader, without data. `make slow` tries the chapters of `FRAGILE`; others by name, or
all of them::

    SIMLIB_CHAPTERS=scale,recipes .venv/bin/pytest -m slow tests/book/test_parameters.py
    SIMLIB_CHAPTERS=all .venv/bin/pytest -m slow tests/book/test_parameters.py
"""

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
import yaml

from press import Repository, read_chapter
from press.chapters import code_cells, parameters
from press.execution import plain
from press.kernel import PERSONAL
from support.processes import python

BOOK = Repository.here()
SETS = yaml.safe_load(Path(__file__).with_name("parameters.yml").read_text("utf-8"))
PAGES = [page for page in BOOK.pages() if parameters(read_chapter(BOOK.source(page)))]
FRAGILE = """
    anchored attention_kernel biharmonic_interpolation core geodesic_distances
    least_squares neighbors nystrom powers road_network scale
"""
BAR = re.compile(r"\r[^\r\n]*(it/s|s/it)\]")  # of a sweep
NAMED = os.environ.get("SIMLIB_CHAPTERS", FRAGILE).replace(",", " ").split()


def reader(folder):
    """The environment of a reader: no press, no data, no settings of his own."""
    without = {"PRESS_LOG", "SIMLIB_DATA", *PERSONAL}
    kept = {name: value for name, value in os.environ.items() if name not in without}
    fonts = Path(sys.prefix, "matplotlib")  # made by make
    kept |= {"MPLCONFIGDIR": str(fonts)} if fonts.is_dir() else {}
    return kept | {"IPYTHONDIR": str(folder), "OPENBLAS_NUM_THREADS": "1"}


def executed(page, values, folder):
    """What papermill says if it fails, or what the cells write to standard error."""
    folder.mkdir()
    target = folder / f"{page}.ipynb"
    command = ["papermill", str(BOOK.source(page)), str(target), "--cwd", str(folder)]
    options = ["-y", json.dumps(values), "--execution-timeout", "120"]
    for _ in range(3):  # kernels that start at once may choose the same ports
        outside = {"env": reader(folder), "cwd": folder, "timeout": 300}
        run = python("-m", *command, *options, "--no-progress-bar", **outside)
        if "Kernel died before replying to kernel_info" not in run.stderr:
            break
    if run.returncode:
        return plain(run.stderr)
    cells = code_cells(nbformat.read(target, as_version=4))
    outputs = [output for cell in cells for output in cell.outputs]
    said = "".join(o.text for o in outputs if o.get("name") == "stderr")
    return BAR.sub("", said).strip()


@pytest.mark.parametrize("kind", SETS)
def test_every_chapter_has_a_set(kind):
    assert SETS[kind].keys() == set(PAGES)
    for page, values in SETS[kind].items():
        assert values.keys() <= parameters(read_chapter(BOOK.source(page))).keys(), page


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES if NAMED == ["all"] else NAMED)
def test_a_chapter_takes_parameters_of_ones_own(page, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        runs = {
            kind: pool.submit(executed, page, rows[page], tmp_path / kind)
            for kind, rows in SETS.items()
        }
    assert {kind: run.result() for kind, run in runs.items()} == dict.fromkeys(SETS, "")
