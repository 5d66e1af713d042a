"""Numbers of a page, as a printer sets them."""

from decimal import Decimal
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document
from hypothesis import given
from hypothesis import strategies as st
from sphinx import addnodes

from press.typography import typeset, typeset_page

PRINTED = {
    "1e+08": "10⁸",
    "1e−12": "10⁻¹²",
    "3.75e-05": "3.75 × 10⁻⁵",
    "1.00e+06": "1.00 × 10⁶",
    "1.01e+03": "1010",
    "2e-02": "0.02",
    "0e+00": "0",
    "-0.918 ± 0.3": "−0.918 ± 0.3",
    "264346 nodes, 2176 documents": "264,346 nodes, 2176 documents",
    "1200 GB and 23456.5": "1200 GB and 23,456.5",
    "1,497 of 39,771 and 1,000,000": "1497 of 39,771 and 1,000,000",
    "0.000375.": "3.75 × 10⁻⁴.",
    "{-1, 1} or |-5|, x = -0.3": "{−1, 1} or |−5|, x = −0.3",
    "0.000315 to 0.00005": "3.15 × 10⁻⁴ to 5 × 10⁻⁵",
    "0.00142 ± 0.0003": "0.00142 ± 0.0003",
    "0.0001": "10⁻⁴",
}
AS_THEY_ARE = [
    "2026-11-23",
    "all-minilm-l6-v2",
    "10.1145/12345678",
    "arXiv:2112.09631",
    "0.0001 ± 0.00002",
    "0.000",
    "(0,125)",
    "0.0005±0.0001",
    "at 1,500,20",
    "x^-1",
    "12345-67890",
    "A–1",
]


@pytest.mark.parametrize(("text", "expected"), PRINTED.items())
def test_printed(text, expected):
    """Powers of ten, minus signs and large numbers."""
    assert typeset(text).replace("\u202f", " ") == expected


@pytest.mark.parametrize("text", AS_THEY_ARE)
def test_left_alone(text):
    """Dates, names, addresses and ranges are no numbers."""
    assert typeset(text) == text


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 4))
def test_no_value_changes(value, digits):
    """What is read off a typeset number is what was printed."""
    printed = f"{value:.{digits}e}"
    text = typeset(printed).replace("−", "-").replace(",", "")
    mantissa, _, raised = text.rpartition("10") if "10" in text else (text, "", "")
    if raised and set(raised) <= set("⁻⁰¹²³⁴⁵⁶⁷⁸⁹"):
        lowered = raised.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
        factor = mantissa.replace("\u202f×\u202f", "")
        factor = factor if factor.strip("-") else f"{factor}1"
        assert Decimal(f"{factor}e{lowered}") == Decimal(printed)
    else:
        assert Decimal(text) == Decimal(printed)


def test_page():
    """Prose and cells are typeset; code, formulas and signatures are not."""
    page = new_document("page")
    page += nodes.paragraph("", "", nodes.Text("about 1e-05"))
    kept = [nodes.literal, nodes.literal_block, nodes.math, nodes.math_block]
    for kind in kept:
        page += nodes.paragraph("", "", kind("1e-05", "1e-05"))
    page += addnodes.desc("", nodes.paragraph("", "tol of 1e-05"))
    for cell in ("sony bravia 46164", "46164 GB"):
        page += nodes.entry("", nodes.paragraph("", cell))
    typeset_page(SimpleNamespace(), page, "page")
    texts = [node.astext().replace("\u202f", " ") for node in page.children]
    assert texts[:-2] == ["about 10⁻⁵", *["1e-05"] * len(kept), "tol of 1e-05"]
    assert texts[-2:] == ["sony bravia 46164", "46,164 GB"]
