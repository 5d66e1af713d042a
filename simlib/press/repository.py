"""Where the chapters, profiles, notebooks and results of a book lie."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROFILES = ("quick", "standard", "full")


@dataclass(frozen=True)
class Repository:
    """A checkout of a book and the package that its chapters import.

    Parameters
    ----------
    root : Path
        The folder that holds ``_toc.yml``, ``book/`` and the package.
    package : str
        Name of the package.
    """

    root: Path
    package: str = "simlib"

    @classmethod
    def here(cls) -> "Repository":
        """Return the repository that this file belongs to."""
        root = Path(__file__).resolve().parents[2]
        if not (root / "_toc.yml").exists():
            raise FileNotFoundError(
                f"no book at {root}: the press works in a checkout of the repository, "
                "with the package installed from it: pip install --editable ."
            )
        return cls(root)

    @property
    def book(self) -> Path:
        """The folder of the chapters."""
        return self.root / "book"

    def source(self, chapter: str) -> Path:
        """Return the Markdown file of a chapter."""
        return self.book / f"{chapter}.md"

    def executed(self, profile: str) -> Path:
        """Return the folder of a profile's executed notebooks."""
        return self.root / "executed" / profile

    def notebook(self, chapter: str, profile: str) -> Path:
        """Return the executed notebook of a chapter."""
        return self.executed(profile) / f"{chapter}.ipynb"

    def results(self, chapter: str) -> Path:
        """Return the file of a chapter's recorded results."""
        return self.book / "results" / f"{chapter}.json"

    def relative(self, path: Path) -> str:
        """Return a path as seen from the root."""
        return path.relative_to(self.root).as_posix()

    def pages(self) -> list[str]:
        """Return the pages of ``_toc.yml`` in reading order, without ``book/``."""
        toc = _load_yaml(self.root / "_toc.yml")
        return [self.chapter_name(entry) for entry in _entries(toc)]

    def chapter_name(self, path: str) -> str:
        """Return the name of a chapter given as ``cur`` or ``book/cur.md``."""
        return path.removeprefix("./").removeprefix("book/").removesuffix(".md")

    def overrides(self, profile: str) -> dict[str, dict[str, Any]]:
        """Return the parameters that a profile changes, by chapter.

        The ``standard`` profile is each chapter's own parameter cell.
        """
        if profile not in PROFILES:
            raise ValueError(f"profile {profile!r} is none of {', '.join(PROFILES)}")
        profiles = _load_yaml(self.book / "profiles.yml")
        return profiles.get(profile) or {}


def _load_yaml(path: Path) -> dict:
    import yaml

    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


def _entries(node: Any) -> Iterator[str]:
    """Yield the files that a part of the table of contents names, in order."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("root", "file"):
                yield value
            else:
                yield from _entries(value)
    elif isinstance(node, list):
        for item in node:
            yield from _entries(item)
