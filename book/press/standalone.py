"""The notebook that a reader takes home, whole without the book around it."""

import ast
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING

from .chapters import tags

if TYPE_CHECKING:
    from nbformat import NotebookNode

HIDDEN = "application/papermill.record/"  # of what is glued and not shown

_MATH = re.compile(r"^```\{math\}\n((?::[^\n]*\n)*)\n*(.*?)\n```$", re.S | re.M)
_LABEL = re.compile(r"^\([\w:-]+\)=\n", re.M)
_VALUE = re.compile(r"\{glue:text\}`([^`:]+)(?::([^`]*))?`")
_BLOCK = re.compile(r"^(`{3,})\{glue:\w+\} *(\S+)\n(.*?)^\1 *$", re.S | re.M)
_REST = re.compile(r"^(`{3,})\{(?!glue)[\w-]+\}[^\n]*\n(.*?)^\1 *$", re.S | re.M)
_ROLE = re.compile(r"\{(doc|eq|numref|ref|prf:ref|cite|cite:[pt])\}`([^`]+)`")
_INLINE = re.compile(r"\{math\}`([^`]+)`")
_BOX = re.compile(
    r"^(:{3,})\{([\w:-]+)\} *([^\n]*)\n(?::[^\n]*\n)*(.*?)^\1 *$", re.S | re.M
)


def hide_values(notebook: "NotebookNode") -> None:
    """Hide the outputs of cells that are glued into the text alone: all but figures."""
    for output in (o for cell in notebook.cells for o in cell.get("outputs", ())):
        data, noted = output.get("data", {}), output.get("metadata", {})
        if "scrapbook" in noted and "image/svg+xml" not in data:
            noted["scrapbook"]["mime_prefix"] = HIDDEN
            output.data = {HIDDEN + m.removeprefix(HIDDEN): data[m] for m in data}


def standalone(
    notebook: "NotebookNode",
    told: Callable[[str, str], str],
    macros: Mapping[str, str],
    needs: str = "",
) -> "NotebookNode":
    """Return an executed notebook in the Markdown that Jupyter shows.

    Its text holds what its cells glued into it so far, and what a role with a target is
    on the page, which `told` tells. Formulas are without the macros of the book. The
    first cell ends with what the notebook `needs`.
    """
    made = deepcopy(notebook)
    hide_values(made)
    glued = {
        output.metadata["scrapbook"]["name"]: {
            mime.removeprefix(HIDDEN): data for mime, data in output.data.items()
        }
        for cell in made.cells
        for output in cell.get("outputs", ())
        if "scrapbook" in output.get("metadata", {})
    }
    for cell in made.cells:
        if cell.cell_type == "markdown":
            _fill(cell, glued, told)
            for name, tex in macros.items():
                parts = re.split(rf"\\{name}(?![A-Za-z])", cell.source)
                cell.source = tex.join(parts)
        elif "remove-output" in tags(cell):
            cell.outputs = []  # its figure is in the text
        for output in cell.get("outputs", ()):
            if "text/markdown" in (data := output.get("data", {})):
                data["text/markdown"] = _plain(data["text/markdown"], told)
    if needs and made.cells and made.cells[0].cell_type == "markdown":
        made.cells[0].source += f"\n\n{needs}"
    return made


def named(role: str, target: str) -> str:
    """Return what a reference says where there is no page: its text, or its label."""
    text, _, label = target.rstrip(">").rpartition("<")
    name = label.partition(":")[2] or label
    if text:  # in which the label stands for the number
        name = text.strip().replace("{number}", name)
    return f"({name})" if role == "eq" or role.startswith("cite") else name


def _fill(
    cell: "NotebookNode",
    glued: Mapping[str, Mapping[str, str]],
    told: Callable[[str, str], str],
) -> None:
    """Put what was glued, and the names of references, into a cell of text."""
    images: dict[str, dict[str, str]] = {}

    def value(found: re.Match[str]) -> str:
        if (data := glued.get(found[1])) is None:
            return found[0]
        if "text/plain" not in data:
            return data["text/markdown"]
        return format(ast.literal_eval(data["text/plain"]), found[2] or "")

    def block(found: re.Match[str]) -> str:
        if (data := glued.get(key := found[2])) is None:
            return found[0]
        if "text/markdown" in data:
            return data["text/markdown"]
        images[f"{key}.png"] = {"image/png": data["image/png"]}
        options, _, caption = found[3].strip().rpartition("\n\n")
        alt = re.search(r"^:alt: (.*)$", options, re.MULTILINE)
        return f"![{alt[1] if alt else key}](attachment:{key}.png)\n\n{caption}"

    def formula(found: re.Match[str]) -> str:
        label = re.search(r"^:label: *(\S+)$", found[1], re.MULTILINE)
        tag = f"\n\\tag{{{told('eq', label[1]).strip('()')}}}" if label else ""
        return f"$$\n{found[2]}{tag}\n$$"

    def rest(found: re.Match[str]) -> str:
        return re.sub(r"^:.*\n", "", found[2], flags=re.M).strip() or "*On the page.*"

    source = _plain(_VALUE.sub(value, _BLOCK.sub(block, cell.source)), told)
    source = _LABEL.sub("", _MATH.sub(formula, _BOX.sub(_box, source)))
    cell.source = _REST.sub(rest, source)
    if images:
        cell.attachments = images


def _plain(text: str, told: Callable[[str, str], str]) -> str:
    """Return text without roles: what references say, and formulas."""
    text = _ROLE.sub(lambda found: told(found[1], found[2]), text)
    return _INLINE.sub(r"$\1$", text)


def _box(found: re.Match[str]) -> str:
    """Return a box of MyST as one that folds in Jupyter, or as text with a head."""
    _, kind, title, text = found.groups()
    text = _BOX.sub(_box, text).strip()
    if kind == "dropdown":
        return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>"
    head = f"**{kind.rpartition(':')[2].capitalize()}** {title}".strip()
    return f"{head}\n\n{text}"
