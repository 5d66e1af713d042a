"""Looks of figures and tables, in one place.

The colours are those of Okabe and Ito, which people with the usual kinds of colour
blindness tell apart; every curve has a marker of its own besides.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

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

_WORD = re.compile(r"[^\d]*[^\W\d_]{2}|`")  # a cell that does not begin with a number

CURVES = {
    "nystrom": {"label": "Nyström", "color": COLOURS["grey"], "marker": "s"},
    "nystrom_cv": {
        "label": "Nyström, cut-off by CV",
        "color": COLOURS["sky"],
        "marker": "s",
        "linestyle": "--",
    },
    "sms_nystrom": {"label": "SMS-Nyström", "color": COLOURS["blue"], "marker": "o"},
    "skeleton": {"label": "Skeleton", "color": COLOURS["purple"], "marker": "x"},
    "sicur": {"label": "SiCUR", "color": COLOURS["orange"], "marker": "^"},
    "stacur": {"label": "StaCUR(s)", "color": COLOURS["green"], "marker": "v"},
    "stacur_d": {"label": "StaCUR(d)", "color": COLOURS["sky"], "marker": "<"},
    "tikhonov": {"label": "Tikhonov", "color": COLOURS["vermilion"], "marker": "D"},
    "rpcholesky": {"label": "RPCholesky", "color": COLOURS["black"], "marker": "P"},
    "optimal": {"label": "Optimal", "color": COLOURS["black"], "linestyle": "--"},
}


def figure_style() -> None:
    """Give the figures of a chapter the style of the book, as SVG."""
    import matplotlib.pyplot as plt
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    # A warning by the clock: on a busy machine a chapter would fail for it.
    warnings.filterwarnings("ignore", 'Creating legend with loc="best" can be slow')
    plt.style.use(Path(__file__).with_name("book.mplstyle"))


def markdown_table(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> Any:
    """Return a Markdown table to glue: floats with three significant digits.

    None becomes a dash. Columns of numbers are aligned right, but for the first.

    >>> print(markdown_table(["method", "error", "by"], [["CUR", 0.25, "rows"]]).data)
    | method | error | by |
    | :-- | --: | :-- |
    | CUR | 0.250 | rows |
    """
    from IPython.display import Markdown

    def cell(value: Any) -> str:
        if value is None:
            return "–"
        # A hyphen would be a place to break the line.
        if isinstance(value, float):
            return f"{value:#.3g}".rstrip(".").replace("-", "−")
        return re.sub(r"(?<=\de)-(?=\d)", "−", str(value)).replace("|", r"\|")

    cells = [[cell(value) for value in row] for row in rows]
    columns = zip(*cells, strict=True) if cells else [()] * len(header)
    words = [sum(map(bool, map(_WORD.match, c))) > len(c) / 2 for c in columns]
    aligned = [":--" if of_words else "--:" for of_words in [True, *words[1:]]]
    lines = [[cell(title) for title in header], aligned, *cells]
    return Markdown("\n".join(f"| {' | '.join(line)} |" for line in lines))


def definition_list(entries: Iterable[tuple[str, str]]) -> Any:
    """Return a Markdown definition list to glue, which fits a page of any width."""
    from IPython.display import Markdown

    lines = (f"{' '.join(t.split())}\n: {' '.join(d.split())}" for t, d in entries)
    return Markdown("\n\n".join(lines))


def plus_minus(values: Sequence[float]) -> str:
    """Return mean ± standard deviation, to the second digit of the latter.

    One value has none, and stands alone.

    >>> plus_minus([0.031, 0.034, 0.0299]), plus_minus([1.2e6, 1.3e6])
    ('0.0316 ± 0.0021', '(1.250 ± 0.071) × 1e6')
    """
    from statistics import fmean, stdev

    if len(values) == 1:
        return f"{values[0]:.3g}"
    mean, spread = fmean(values), stdev(values)
    scale = int(f"{mean:e}".partition("e")[2])
    whole = scale + 1 if scale < 6 else 0  # digits before the point, not to be cut
    if not spread:
        return f"{mean:.{max(3, whole)}g} ± 0"
    if spread < 1e-3 * abs(mean):
        return f"{mean:.{max(4, whole)}g} ± {spread:.1g}"
    scale = 0 if -3 <= scale < 6 else scale
    mean, spread = mean / 10.0**scale, spread / 10.0**scale
    decimals = max(0, 1 - int(f"{spread:.1e}".partition("e")[2]))
    text = f"{mean:.{decimals}f} ± {spread:.{decimals}f}"
    return f"({text}) × 1e{scale}" if scale else text
