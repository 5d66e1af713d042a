"""What a reader takes home: notebooks, recorded results, and the command to run again.

In the built book the executed notebook of a page lies in ``_sources/book/``, beside its
text, and the recorded results in ``results/``, as `write_tables` made them.
"""

import html
import shlex
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from .repository import Repository
from .results import read_results
from .tables import FIELDS, LEVEL

WIDTH = 80  # of a line of the command


class RecordedResults(SphinxDirective):
    """The directive ``recorded-results``: links to the tables, and their columns."""

    def run(self) -> list[nodes.Node]:
        """Return a table of the chapters' files and one of the columns."""
        repository = Repository(Path(self.env.app.srcdir))
        lines = ["| Chapter | Table | Results in it |", "|:--|:--|:--|"]
        for chapter in repository.pages():
            values = read_results(repository.book, chapter).get("values", {})
            names = ", ".join(f"`{name}`" for name in values)
            if values:
                link = _link(f"results/{chapter}.csv")
                lines.append(f"| {{doc}}`{chapter}` | {link} | {names} |")
        lines += ["", "| Column | Type | Meaning |", "|:--|:--|:--|"]
        for name, (kind, told) in FIELDS.items():
            shown = f"`{name.format(1)}`, ..." if name == LEVEL else f"`{name}`"
            lines.append(f"| {shown} | {kind} | {told} |")
        lines += ["", f"The same for programs: {_link('results/datapackage.json')}."]
        tables = nodes.container()
        self.state.nested_parse(StringList(lines, ""), self.content_offset, tables)
        return tables.children


def _link(path: str) -> str:
    """Return a link from a page of the book to a file that is put beside it."""
    name = html.escape(path.rpartition("/")[2])
    return f'<a href="../{html.escape(path)}" download>{name}</a>'


def command(chapter: str, parameters: dict[str, Any]) -> str:
    """Return the command that executes a chapter with these parameters.

    Parameters
    ----------
    chapter : str
        Name of the chapter.
    parameters : dict
        Name -> number, text, truth value or None, or lists and dictionaries of these.
    """
    import yaml

    lines = [f"papermill book/{chapter}.md {chapter}.ipynb"]
    for name, value in parameters.items():
        if isinstance(value, dict | list):
            text = yaml.safe_dump(
                {name: value}, default_flow_style=True, width=float("inf"),
                sort_keys=False, allow_unicode=True,
            )  # fmt: skip
            option = f"-y {shlex.quote(text.strip())}"
        else:
            flag = "-r" if isinstance(value, str) else "-p"  # text stays text
            option = f"{flag} {name} {shlex.quote(str(value))}"
        if len(lines[-1]) + len(option) < WIDTH:
            lines[-1] += f" {option}"
        else:
            lines.append(f"    {option}")
    return " \\\n".join(lines)


def run_it(chapter: str, parameters: dict[str, Any], recorded: bool) -> str:
    """Return the end of a page: how to execute it, and what of it to download.

    Parameters
    ----------
    chapter : str
        Name of the chapter.
    parameters : dict
        Those of the page.
    recorded : bool
        Whether there are recorded results.
    """
    files = [f"_sources/book/{chapter}.ipynb", f"_sources/book/{chapter}.md"]
    files += [f"results/{chapter}.csv"] * recorded
    return "\n".join(
        [
            ":::{admonition} Run this chapter",
            ":class: run-it",
            "",
            "In a checkout of the repository, with the parameters of this page or with "
            "others:",
            "",
            "```bash",
            command(chapter, parameters),
            "```",
            "",
            f"Download: {', '.join(map(_link, files))}",
            ":::",
        ]
    )
