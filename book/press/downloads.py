"""Downloads of a reader: notebooks, records, and the command to run again."""

import ast
import base64
import re
import shlex
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import yaml

from .confirmation import Status
from .repository import Repository

if TYPE_CHECKING:
    from nbformat import NotebookNode

WIDTH = 80  # of a line of the command
HIDDEN = "application/papermill.record/"  # of what is glued and not shown

_YAML: dict[str, Any] = {"default_flow_style": True, "width": float("inf")}
_YAML |= {"sort_keys": False, "allow_unicode": True}
_MATH = re.compile(r"^```\{math\}\n(?::.*\n)*\n*(.*?)\n```$", re.S | re.M)
_LABEL = re.compile(r"^\([\w:-]+\)=\n", re.M)
_VALUE = re.compile(r"\{glue:text\}`([^`:]+)(?::([^`]*))?`")
_BLOCK = re.compile(r"^(`{3,})\{glue:\w+\} *(\S+)\n(.*?)^\1 *$", re.S | re.M)


def record_files(repository: Repository, chapter: str) -> list[str]:
    """Return the tables, values and provenance of a record, seen from its chapter."""
    folder = repository.results(chapter)
    found = sorted(folder.glob("*.csv"))
    found += [folder / name for name in ("values.json", "provenance.json")]
    return [f"results/{chapter}/{path.name}" for path in found if path.exists()]


def links(paths: Iterable[str]) -> str:
    """Return links of MyST to files, which Sphinx puts beside the pages."""
    return ", ".join(f"{{download}}`{p.rpartition('/')[2]} <{p}>`" for p in paths)


def command(chapter: str, parameters: dict[str, Any]) -> str:
    """Return the command that executes a chapter with these parameters."""
    lines = [f"papermill book/{chapter}.md {chapter}.ipynb"]
    for name, value in parameters.items():
        if isinstance(value, dict | list):
            text = yaml.safe_dump({name: value}, **_YAML)
            option = f"-y {shlex.quote(text.strip())}"
        else:
            flag = "-r" if isinstance(value, str) else "-p"  # text stays text
            option = f"{flag} {name} {shlex.quote(str(value))}"
        if len(lines[-1]) + len(option) < WIDTH:
            lines[-1] += f" {option}"
        else:
            lines.append(f"    {option}")
    return " \\\n".join(lines)


def run_it(row: Status, parameters: dict[str, Any], files: Iterable[str]) -> str:
    """Return the end of a page: how to execute it, and what of it to download."""
    text = f""":::{{admonition}} Run this chapter
:class: run-it

In a checkout of the repository, with the parameters of this page or with others:

```bash
{command(row.chapter, parameters)}
```

Download: {links(files)}"""
    if row.record:
        day, commit = row.provenance["executed"][:10], row.provenance["commit"][:7]
        text += f"\n\nThe recorded run is of {day}, commit `{commit}`; "
        text += f"its record is {row.record}."
    return f"{text}\n:::"


def hide_values(notebook: "NotebookNode") -> None:
    """Hide the outputs of cells that are glued into the text alone: all but figures."""
    for output in (o for cell in notebook.cells for o in cell.get("outputs", ())):
        data, noted = output.get("data", {}), output.get("metadata", {})
        if "scrapbook" in noted and "image/svg+xml" not in data:
            noted["scrapbook"]["mime_prefix"] = HIDDEN
            output.data = {HIDDEN + m.removeprefix(HIDDEN): data[m] for m in data}


def standalone(
    notebook: "NotebookNode", macros: Mapping[str, str] | None = None
) -> "NotebookNode":
    """Return an executed notebook whose text holds what its cells glued into it.

    Formulas are those of Jupyter's Markdown, without the macros of the book.
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
            _fill(cell, glued)
            for name, tex in (macros or {}).items():
                parts = re.split(rf"\\{name}(?![A-Za-z])", cell.source)
                cell.source = tex.join(parts)
    return made


def _fill(cell: "NotebookNode", glued: Mapping[str, Mapping[str, str]]) -> None:
    """Put what was glued into a cell of text."""
    images: dict[str, dict[str, str]] = {}

    def value(found: re.Match[str]) -> str:
        data = glued[found[1]]
        if "text/plain" not in data:
            return data["text/markdown"]
        return format(ast.literal_eval(data["text/plain"]), found[2] or "")

    def block(found: re.Match[str]) -> str:
        key, data = found[2], glued[found[2]]
        if "text/markdown" in data:
            return data["text/markdown"]
        drawing = base64.b64encode(data["image/svg+xml"].encode()).decode()
        images[f"{key}.svg"] = {"image/svg+xml": drawing}
        options, _, caption = found[3].strip().rpartition("\n\n")
        alt = re.search(r"^:alt: (.*)$", options, re.MULTILINE)
        return f"![{alt[1] if alt else key}](attachment:{key}.svg)\n\n{caption}"

    source = _VALUE.sub(value, _BLOCK.sub(block, cell.source))
    cell.source = _LABEL.sub("", _MATH.sub(r"$$\n\1\n$$", source))
    if images:
        cell.attachments = images
