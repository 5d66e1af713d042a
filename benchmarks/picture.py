"""The picture of the first page, drawn from recorded results.

Run with ``python benchmarks/picture.py``, after chapters were recorded. What it shows
is kept in the picture, so that a test can tell when it is out of date.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from press import recorded
from study.style import COLOURS, METHODS, figure_style, plain_log

BOOK = Path(__file__).parents[1] / "book"
PICTURE = BOOK / "_static" / "cost.png"
ERRORS = ("nystrom", "sms_nystrom", "tikhonov", "anchored")
RECALLS = ("NN-descent", "re-ranking", "nearest")


def points():
    """Return the curves: panel -> name -> share of the pairs in per cent, mean."""
    calls, searches = recorded("sentences", "calls"), recorded("neighbors", "searches")
    calls = calls[calls["items"] == "stsb"]
    searches = searches[(searches.case == "stsb") & (searches.k == 10)]
    return {
        "errors": {
            name: calls[calls.form == name]
            .groupby("share")[["paid", "error"]]
            .mean()
            .mul([100, 1])
            .to_numpy()
            .tolist()
            for name in ERRORS
        },
        "recalls": {
            name: [
                [100 * share, 100 * recall]
                for share, recall in searches[searches.method == name]
                .groupby("share")
                .recall.mean()
                .items()
            ]
            for name in RECALLS
        },
    }


def draw(shown):
    """Return the figure."""
    figure_style()
    fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
    for ax, panel, names in ((left, "errors", ERRORS), (right, "recalls", RECALLS)):
        for name in names:
            colour, marker = METHODS[name]
            look = {"color": COLOURS[colour], "marker": marker, "label": name}
            ax.plot(*np.transpose(sorted(shown[panel][name])), **look)
        ax.set(xlabel="pairs evaluated, %", xscale="log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
        ax.legend()
    plain_log(left)
    left.set(ylabel="relative error of the matrix", ylim=(0.08, 2))
    left.set_xticks([5, 10, 20, 40])
    right.set(ylabel="of the ten nearest found, %", ylim=(0, 100))
    right.set_xticks([round(x, 1) for x, _ in sorted(shown["recalls"]["nearest"])])
    return fig


if __name__ == "__main__":
    shown = points()
    draw(shown).savefig(PICTURE, dpi=160, metadata={"Description": json.dumps(shown)})
    print(PICTURE)
