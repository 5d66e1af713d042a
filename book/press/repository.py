"""Places of the chapters, profiles, notebooks and results of a book."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PROFILES = ("quick", "standard", "full")


@dataclass(frozen=True)
class Repository:
    """A checkout of a book: ``_toc.yml``, ``book/`` and a package."""

    root: Path
    package: str = "simlib"  # that the chapters import
    data: str = "study.datasets"  # the package of their data sets

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
        """Return the parameters that a profile changes, by chapter."""
        if profile not in PROFILES:
            raise ValueError(f"profile {profile!r} is none of {', '.join(PROFILES)}")
        path = self.book / "profiles.yml"
        place = self.relative(path)
        profiles = _mapping(read_yaml(path), place, PROFILES)
        place += f", {profile}:"
        changed = _mapping(profiles.get(profile), place, self.pages())
        return {n: _mapping(values, f"{place} {n}") for n, values in changed.items()}


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
    """Return what a YAML file holds, in which no key hides another."""
    import yaml

    try:
        return yaml.load(path.read_bytes(), _loader())
    except yaml.YAMLError as error:
        told = " ".join(str(error).split()).replace('"<byte string>"', str(path))
        raise ValueError(f"{path} is no YAML: {told}") from None


@cache
def _loader() -> Any:
    """Return a loader that refuses keys twice and knows Python's numbers, as 1e5."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value:
                if (key.tag, str(key.value)) in seen:
                    told = f"{key.value} is there twice"
                    raise yaml.constructor.ConstructorError(
                        None, None, told, key.start_mark
                    )
                seen.add((key.tag, str(key.value)))
            return super().construct_mapping(node, deep)

    number = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float", number, list("-+.0123456789")
    )
    return Loader


def _mapping(value: Any, place: str, names: Sequence[str] = ()) -> dict[str, Any]:
    """Return a mapping of the profiles, empty where there is nothing."""
    if not isinstance(value, dict | None):
        example = "quick: {cur: {n: 100}}"
        raise ValueError(f"{place} wants a mapping, as in {example}, not {value!r}")
    unknown = [str(name) for name in value or () if names and name not in names]
    if unknown:
        told = f"no {', '.join(unknown)}; there are {', '.join(names)}"
        raise ValueError(f"{place} {told}")
    return value or {}


def _entries(node: Any) -> Iterator[str]:
    """Yield the files that a part of the table of contents names, in order."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key not in ("root", "file"):
                yield from _entries(value)
            elif isinstance(value, str):
                yield value
            else:
                raise ValueError(f"_toc.yml: {key} wants a name, not {value!r}.")
    elif isinstance(node, list):
        for item in node:
            yield from _entries(item)
