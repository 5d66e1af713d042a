"""The picture of the first page, drawn from recorded results.

Run with ``python benchmarks/picture.py``, after chapters were recorded. What it shows
is kept in the picture, so that a test can tell when it is out of date.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from press import recorded
from press.style import COLOURS, CURVES, figure_style, plain_log

BOOK = Path(__file__).parents[1] / "book"
PICTURE = BOOK / "_static" / "cost.png"
ERRORS = {
    "nystrom": CURVES["nystrom"],
    "sms_nystrom": CURVES["sms_nystrom"],
    "tikhonov": CURVES["tikhonov"],
    "anchored": {"label": "anchored", "color": COLOURS["green"], "marker": "P"},
}
RECALLS = {
    "NN-descent": {"color": COLOURS["blue"], "marker": "o", "label": "NN-descent"},
    "re-ranking": {"color": COLOURS["black"], "marker": "s", "label": "re-ranking"},
    "rounds": {"color": COLOURS["vermilion"], "marker": "D", "label": "nearest"},
}


def points():
    """Return the curves: panel -> name -> share of the pairs in per cent, mean."""
    cells = recorded("sentences")["results"]["stsb"]
    cells = [cell for name, cell in cells.items() if name.startswith("calls")]
    curves = recorded("neighbors")["curves"]["stsb"]
    return {
        "errors": {
            name: [
                [100 * c[name]["share"][0], c[name]["symmetrised"][0]] for c in cells
            ]
            for name in ERRORS
        },
        "recalls": {
            name: [
                [100 * float(share), 100 * float(np.mean([draw[1] for draw in draws]))]
                for share, draws in curves[name].items()
            ]
            for name in RECALLS
        },
    }


def draw(shown):
    """Return the figure."""
    figure_style()
    fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2))
    for ax, panel, looks in (
        (left, "errors", ERRORS),
        (right, "recalls", RECALLS),
    ):
        for name, look in looks.items():
            ax.plot(*np.transpose(sorted(shown[panel][name])), **look)
        ax.set(xlabel="pairs evaluated, %", xscale="log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
        ax.legend()
    plain_log(left)
    left.set(ylabel="relative error of the matrix", ylim=(0.08, 2))
    left.set_xticks([5, 10, 20, 40])
    right.set(ylabel="of the ten nearest found, %", ylim=(0, 100))
    right.set_xticks([round(x, 1) for x, _ in sorted(shown["recalls"]["rounds"])])
    return fig


if __name__ == "__main__":
    shown = points()
    draw(shown).savefig(PICTURE, dpi=160, metadata={"Description": json.dumps(shown)})
    print(PICTURE)
