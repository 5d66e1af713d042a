"""The end of a page: its record to download, and the command to run it again."""

import shlex
from collections.abc import Iterable
from typing import Any

import yaml

from .confirmation import Status
from .repository import Repository

WIDTH = 80  # of a line of the command

_YAML: dict[str, Any] = {"default_flow_style": True, "width": float("inf")}
_YAML |= {"sort_keys": False, "allow_unicode": True}


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
