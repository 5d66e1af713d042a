"""Looks of figures: one colour, marker and name for each method of the book.

The colours are those of Okabe and Ito, which people with the usual kinds of colour
blindness tell apart; every curve has a marker of its own besides.
"""

from collections.abc import Iterable
from typing import Any

from press import style

COLOURS = style.COLOURS

METHODS = {  # a colour and a marker; the name is that of the function, or of the paper
    "nystrom": ("grey", "s"),
    "nystrom_cv": ("sky", "s"),
    "sms_nystrom": ("blue", "o"),
    "skeleton": ("purple", "X"),
    "sicur": ("orange", "^"),
    "stacur": ("green", "v"),
    "stacur, two samples": ("green", "<"),
    "rpcholesky": ("black", "p"),
    "tikhonov": ("vermilion", "D"),
    "tikhonov, nugget": ("orange", "<"),
    "companion": ("grey", "o"),
    "anchored": ("sky", "P"),
    "overlay": ("purple", "d"),
    "nugget, overlay": ("purple", "d"),
    "optimal": ("black", "*"),
    "biharmonic": ("blue", "h"),
    "from points": ("sky", "<"),
    "harmonic": ("purple", "P"),
    "X C'": ("purple", "X"),
    "shared_tree": ("orange", "^"),
    "tensor_srht": ("blue", "o"),
    "positive": ("purple", "X"),
    "taylor": ("vermilion", "D"),
    "nearest": ("blue", "*"),
    "nearest alone": ("grey", "*"),
    "re-ranking": ("black", "s"),
    "cosine": ("black", "s"),
    "NN-descent": ("green", "D"),
    "BM25": ("grey", "o"),
    "ANNCUR": ("purple", "X"),
    "ADACUR": ("green", ">"),
    "AXN": ("orange", "^"),
    "LAPACK": ("green", "s"),
    "Householder QR": ("green", "s"),
    "gram": ("blue", "o"),
    "cholesky_qr": ("vermilion", "P"),
    "lsqr": ("orange", "^"),
    "Gram matrix": ("grey", "D"),
    "sketch and solve": ("black", "X"),
    "explicit product": ("black", "X"),
    "Algorithm 1": ("purple", "v"),
}


def figure_style() -> None:
    """Give the figures of a chapter the style of the book."""
    import matplotlib.pyplot as plt

    style.figure_style()
    plt.rcParams["figure.constrained_layout.use"] = False  # seaborn lays out by itself


def looks(names: Iterable[str], column: str = "method") -> dict[str, Any]:
    """Return what seaborn's lines take to tell names apart by colour and marker.

    Names that stand in `METHODS` look as they do everywhere; others take what is free.

    Parameters
    ----------
    names : iterable of str
        In the order of the legend.
    column : str
        The column of the table that holds them.

    Raises
    ------
    ValueError
        More new names than there are colours.

    Examples
    --------
    >>> from study.style import looks
    >>> looks(["tikhonov", "a guess"])["markers"]
    {'tikhonov': 'D', 'a guess': 'o'}
    """
    names = [*names]
    chosen = {name: METHODS[name] for name in names if name in METHODS}
    for name in names:
        used = [{pair[k] for pair in chosen.values()} for k in (0, 1)]
        colour = next((c for c in COLOURS if c not in used[0]), None)
        marker = next((m for m in "osD^vPX*<>pdh" if m not in used[1]), None)
        if name not in chosen:
            if not (colour and marker):
                raise ValueError(
                    f"{len(names)} curves are more than colours: use panels"
                )
            chosen[name] = (colour, marker)
    return {
        "hue": column,
        "style": column,
        "hue_order": names,
        "style_order": names,
        "palette": {name: COLOURS[colour] for name, (colour, _) in chosen.items()},
        "markers": {name: marker for name, (_, marker) in chosen.items()},
        "dashes": False,
        "markeredgewidth": 0.3,
        "markersize": 5.5,
    }


def legend_below(grid: Any, columns: int = 4) -> None:
    """Move the legend of a grid of seaborn's below the panels, without a title."""
    old = grid.legend
    entries = zip(old.legend_handles, old.texts, strict=True)
    shown = [
        (mark, text.get_text())
        for mark, text in entries
        if mark.get_linewidth() or mark.get_marker() not in ("", "None")
    ]
    old.remove()
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
    grid.figure.legend(*zip(*shown, strict=True), **place, ncols=columns)


def plain_log(ax: Any) -> None:
    """Give an axes a logarithmic vertical scale with plain numbers on it."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
