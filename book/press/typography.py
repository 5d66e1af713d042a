"""Numbers as they are printed: 5e-05 as 5 × 10⁻⁵, -2 with a minus, 13508 as 13,508."""

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_POWER = re.compile(r"(?<![\w.])(\d(?:\.\d+)?)e([+\-−]?)(\d+)(?!\w)")
_SMALL = re.compile(r"(?<![\w.,±])(?<!± )0\.000(0*)([1-9])(\d*)(?!\w|\.\d| ?±)")
_MINUS = re.compile(r"(?<![^\s(\[{|±≈=<>–])-(?=\d)")
_FOUR = re.compile(r"(?<![\w.,\[{])([1-9]),(\d{3})(?!\w|,\d)")
_LARGE = re.compile(r"(?<![\w.,/:+\-])[1-9]\d{4,}(?![\w/:\-])")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN = range(-2, 5)  # powers of ten that are written out
_CODE = (nodes.literal, nodes.FixedTextElement, nodes.math, nodes.raw)
_LEFT_ALONE = (*_CODE, nodes.citation, addnodes.desc)


def typeset(text: str, *, group: bool = True) -> str:
    """Return a text with the numbers that Python printed as a printer sets them.

    Digits are grouped by commas, from five on, if it is to `group`.

    >>> typeset("-0.5 of 39771 in 1e+08, 2e-02, 1.01e+03 or 2,176")
    '−0.5 of 39,771 in 10⁸, 0.02, 1010 or 2176'
    """

    def power(digits: str, exponent: int) -> str:
        raised = "10" + str(exponent).translate(_RAISED)
        return raised if digits == "1" else f"{digits}\u202f×\u202f{raised}"

    def printed(found: re.Match[str]) -> str:
        digits, sign, exponent = found[1], found[2].replace("−", "-"), int(found[3])
        exponent = -exponent if sign == "-" else exponent
        if exponent in _PLAIN or not float(digits):
            return f"{Decimal(digits).scaleb(exponent):f}"
        return power(digits, exponent)

    def small(found: re.Match[str]) -> str:
        digits = f"{found[2]}.{found[3]}" if found[3] else found[2]
        return power(digits, -4 - len(found[1]))

    text = _SMALL.sub(small, _POWER.sub(printed, text))
    text = _FOUR.sub(r"\1\2", _MINUS.sub("−", text))
    return _LARGE.sub(lambda found: f"{int(found[0]):,}", text) if group else text


def typeset_page(app: "Sphinx", tree: nodes.document, name: str) -> None:
    """Typeset the text of a page; code, formulas, sources and signatures stay.

    Cells with words may quote data, telephone numbers say: nothing is grouped there.
    """
    for node in [*tree.findall(nodes.Text)]:
        above, kept, words = node.parent, False, False
        while above is not None and not kept:
            if isinstance(above, nodes.entry):
                words = re.search(r"[^\W\d_]{3}", above.astext()) is not None
            kept, above = isinstance(above, _LEFT_ALONE), above.parent
        set_anew = typeset(node, group=not words)
        if not kept and set_anew != node:
            node.parent.replace(node, nodes.Text(set_anew))
