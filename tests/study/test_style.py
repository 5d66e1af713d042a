"""Looks of the book's figures."""

from collections import Counter

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd
import pytest
import seaborn as sns

from study.style import COLOURS, METHODS, legend_below, looks, plain_log

matplotlib.use("agg")


def test_no_two_methods_look_alike_that_can_be_in_one_figure():
    columns = "skeleton sicur stacur rpcholesky tikhonov anchored optimal"
    tall = ["gram", "cholesky_qr", "lsqr", "Gram matrix", "Algorithm 1"]
    rooms = [
        ["nystrom", "nystrom_cv", "sms_nystrom", *columns.split()],
        ["tikhonov", "anchored", "nearest", "cosine", "BM25", "ANNCUR", "AXN"],
        ["nearest", "re-ranking", "NN-descent", "ANNCUR", "ADACUR"],
        ["tikhonov", "tikhonov, nugget", "companion", "anchored"],
        ["LAPACK", "sketch and solve", *tall],
        ["Householder QR", "explicit product", *tall],
    ]
    for room in rooms:
        assert max(Counter(METHODS[name] for name in room).values()) == 1


def test_colours_and_markers_exist():
    for colour, marker in METHODS.values():
        assert colour in COLOURS
        assert marker in matplotlib.markers.MarkerStyle.markers


def test_new_names_take_what_is_free():
    names = ["tikhonov", "first", "second", "third"]
    chosen = looks(names)
    assert len(set(chosen["palette"].values())) == len(names)
    assert len(set(chosen["markers"].values())) == len(names)
    assert chosen["palette"]["tikhonov"] == COLOURS["vermilion"]
    assert looks(reversed(names))["palette"]["tikhonov"] == COLOURS["vermilion"]
    with pytest.raises(ValueError, match="use panels"):
        looks(map(str, range(9)))


def test_seaborn_takes_them():
    table = pd.DataFrame({"x": [1, 2] * 2, "y": [0.1, 1, 2, 3], "core": list("aabb")})
    grid = sns.relplot(table, kind="line", x="x", y="y", **looks("ab", "core"))
    legend_below(grid, 2)
    plain_log(grid.ax)
    grid.figure.canvas.draw()
    lines = [line for line in grid.ax.get_lines() if len(line.get_xdata())]
    assert [line.get_marker() for line in lines] == ["o", "s"]
    assert [line.get_color() for line in lines] == [*COLOURS.values()][:2]
    assert [text.get_text() for text in grid.legend.get_texts()] == ["a", "b"]
    plt.close("all")
