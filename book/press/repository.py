"""Where the chapters, profiles, notebooks and results of a book lie."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROFILES = ("quick", "standard", "full")

# Numbers as Python writes them, which YAML 1.1 takes for text.
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")


@dataclass(frozen=True)
class Repository:
    """A checkout of a book and the package that its chapters import.

    Parameters
    ----------
    root : Path
        The folder that holds ``_toc.yml``, ``book/`` and the package.
    package : str
        Name of the package.
    data : str
        Name of the package of the chapters' data sets, in ``book/``.
    """

    root: Path
    package: str = "simlib"
    data: str = "study.datasets"

    @classmethod
    def here(cls) -> "Repository":
        """Return the repository that this file belongs to."""
        root = Path(__file__).resolve().parents[2]
        if not (root / "_toc.yml").exists():
            raise FileNotFoundError(
                f"no book at {root}: the press works in a checkout of the repository, "
                "with the packages installed from it: pip install -e . -e ./book"
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
        """Return the folder of a chapter's recorded results."""
        return self.book / "results" / chapter

    def relative(self, path: Path) -> str:
        """Return a path as seen from the root."""
        return path.relative_to(self.root).as_posix()

    def pages(self) -> list[str]:
        """Return the pages of ``_toc.yml`` in reading order, without ``book/``."""
        toc = read_yaml(self.root / "_toc.yml")
        return [self.chapter_name(entry) for entry in _entries(toc)]

    def chapter_name(self, path: str) -> str:
        """Return the name of a chapter given as ``cur`` or by the path of its file."""
        path = path.removeprefix(f"{self.root}/").removeprefix("./")
        return path.removeprefix("book/").removesuffix(".md")

    def overrides(self, profile: str) -> dict[str, dict[str, Any]]:
        """Return the parameters that a profile changes, by chapter.

        The ``standard`` profile is each chapter's own parameter cell.

        Raises
        ------
        ValueError
            No such profile; or ``profiles.yml`` names a profile or a page that there
            is not, or something else than parameters.
        """
        if profile not in PROFILES:
            raise ValueError(f"profile {profile!r} is none of {', '.join(PROFILES)}")
        path, pages = self.book / "profiles.yml", self.pages()
        place = self.relative(path)
        profiles = _mapping(read_yaml(path), place, "{quick: {cur: {n: 100}}}")
        _known(profiles, PROFILES, f"{place}: no profile")
        place += f", {profile}:"
        changed = _mapping(profiles.get(profile), place, "{cur: {n: 100}}")
        _known(changed, pages, f"{place} no page")
        return {
            name: _mapping(values, f"{place} {name}", "{n: 100}")
            for name, values in changed.items()
        }


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that it is there either whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds.

    Raises
    ------
    ValueError
        No YAML; a key that is there twice, of which one would hide the other; or a
        number such as 1e5, which YAML takes for text.
    """
    import yaml

    with path.open("rb") as stream:
        try:
            loader = yaml.SafeLoader(stream)
            node = loader.get_single_node()
            if node is None:
                return None
            _refuse(node, path)
            return loader.construct_document(node)
        except yaml.YAMLError as error:
            told = " ".join(str(error).split())
            raise ValueError(f"{path} is no YAML: {told}") from None


def _refuse(node: Any, path: Path) -> None:
    """Refuse keys that are there twice and numbers that are text."""
    place = f"{path}, line {node.start_mark.line + 1}"
    if node.id == "scalar":
        text = node.style is None and node.tag.endswith(":str")
        if text and _NUMBER.fullmatch(node.value):
            raise ValueError(
                f"{place}: {node.value} is text in YAML; write 1.0e+5, say, with a "
                "point and a sign, or quotes if it is meant as text"
            )
        return
    seen = set()
    for part in node.value:
        if node.id == "mapping":
            key, part = part
            _refuse(key, path)
            if (key.tag, str(key.value)) in seen:
                line = key.start_mark.line + 1
                raise ValueError(f"{path}, line {line}: {key.value} is there twice")
            seen.add((key.tag, str(key.value)))
        _refuse(part, path)


def _mapping(value: Any, place: str, example: str) -> dict[str, Any]:
    """Return a mapping of a YAML file, empty where it holds nothing."""
    if value is None or isinstance(value, dict):
        return value or {}
    raise ValueError(f"{place} wants a mapping, as in {example}, not {value!r}")


def _known(found: Iterable[str], names: Sequence[str], none: str) -> None:
    """Refuse names that are not among those that there are."""
    unknown = [str(name) for name in found if name not in names]
    if unknown:
        raise ValueError(f"{none} {', '.join(unknown)}; there are {', '.join(names)}")


def _entries(node: Any) -> Iterator[str]:
    """Yield the files that a part of the table of contents names, in order."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("root", "file"):
                if not isinstance(value, str):
                    raise ValueError(f"_toc.yml: {key} wants a name, not {value!r}.")
                yield value
            else:
                yield from _entries(value)
    elif isinstance(node, list):
        for item in node:
            yield from _entries(item)
