"""Looks of figures, in one place.

The colours are those of Okabe and Ito, which people with the usual kinds of colour
blindness tell apart; every curve has a marker of its own besides.
"""

from __future__ import annotations

import warnings
from pathlib import Path

COLOURS = {
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "orange": "#E69F00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "black": "#222222",
    "grey": "#8A8A8A",
}


def figure_style() -> None:
    """Give the figures of a chapter the style of the book.

    As SVG for the page, and as PNG, as Jupyter shows no SVG of a downloaded notebook.
    """
    import matplotlib.pyplot as plt
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg", "png")
    # A warning by the clock: on a busy machine a chapter would fail for it.
    warnings.filterwarnings("ignore", 'Creating legend with loc="best" can be slow')
    plt.style.use(Path(__file__).with_name("book.mplstyle"))
