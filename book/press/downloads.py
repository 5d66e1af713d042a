"""What a reader takes home: notebooks, recorded results, and the command to run again.

In the built book the executed notebook of a page lies in ``_sources/book/``, beside its
text, and the files of its record in ``results/<chapter>/``.
"""

import html
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from .confirmation import Status
from .repository import Repository

WIDTH = 80  # of a line of the command


class RecordedResults(SphinxDirective):
    """The directive ``recorded-results``: links to the files of all records."""

    def run(self) -> list[nodes.Node]:
        """Return a table of the chapters and their files."""
        repository = Repository(Path(self.env.app.srcdir))
        lines = ["| Chapter | Recorded |", "|:--|:--|"]
        for chapter in repository.pages():
            links = ", ".join(map(_link, record_files(repository, chapter)))
            lines += [f"| {{doc}}`{chapter}` | {links} |"] * bool(links)
        table = nodes.container()
        self.state.nested_parse(StringList(lines, ""), self.content_offset, table)
        return table.children


def record_files(repository: Repository, chapter: str) -> list[str]:
    """Return the tables, values and provenance of a record, as the book has them."""
    folder = repository.results(chapter)
    found = sorted(folder.glob("*.csv")) + sorted(folder.glob("values.json"))
    found += sorted(folder.glob("provenance.json"))
    return [f"results/{chapter}/{path.name}" for path in found]


def write_records(repository: Repository, folder: Path) -> None:
    """Copy the files of all records into a built book."""
    for chapter in repository.pages():
        for name in record_files(repository, chapter):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(repository.book / name, target)


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


def run_it(
    chapter: str,
    parameters: dict[str, Any],
    status: Status | None = None,
    files: Sequence[str] = (),
) -> str:
    """Return the end of a page: how to execute it, and what of it to download.

    Parameters
    ----------
    chapter : str
        Name of the chapter.
    parameters : dict
        Those of the page.
    status : Status, optional
        What is recorded.
    files : sequence of str
        Its files, seen from the root of the built book.
    """
    links = [f"_sources/book/{chapter}.ipynb", f"_sources/book/{chapter}.md", *files]
    lines = [
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
        f"Download: {', '.join(map(_link, links))}",
    ]
    if status and status.record:
        made = status.provenance
        lines += [
            "",
            f"The recorded run is of {made['executed'][:10]}, commit "
            f"`{made['commit'][:7]}`; its record is {status.record}.",
        ]
    return "\n".join([*lines, ":::"])
