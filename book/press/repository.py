"""Places of the chapters, profiles, notebooks and results of a book, and its commit."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

PROFILES = ("quick", "standard", "full")
# All but recorded results, which a press that records writes while others run.
_FILES = ("--", ".", ":!book/results")


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

    def notebook(self, chapter: str, profile: str) -> Path:
        """Return the executed notebook of a chapter."""
        return self.root / "executed" / profile / f"{chapter}.ipynb"

    def results(self, chapter: str) -> Path:
        """Return the folder of a chapter's recorded results."""
        return self.book / "results" / chapter

    def relative(self, path: Path) -> str:
        """Return a path as seen from the root."""
        return path.relative_to(self.root).as_posix()

    def pages(self) -> list[str]:
        """Return the pages of ``_toc.yml`` in reading order, without ``book/``."""
        from sphinx_external_toc.parsing import parse_toc_yaml  # of jupyter-book

        toc = parse_toc_yaml(self.root / "_toc.yml")
        return [self.chapter_name(page) for page in toc]

    def chapter_name(self, path: str) -> str:
        """Return the name of a chapter given as ``cur`` or by the path of its file."""
        path = path.removeprefix(f"{self.root}/").removeprefix("./")
        return path.removeprefix("book/").removesuffix(".md")

    def overrides(self, profile: str) -> dict[str, dict[str, Any]]:
        """Return the parameters that a profile changes, by chapter."""
        if profile not in PROFILES:
            raise ValueError(f"profile {profile!r} is none of {', '.join(PROFILES)}")
        profiles = _mapping(read_yaml(self.book / "profiles.yml"), "", PROFILES)
        chapters = _mapping(profiles.get(profile), f", {profile}", self.pages())
        return {n: _mapping(v, f", {profile}: {n}") for n, v in chapters.items()}

    def macros(self) -> dict[str, str]:
        """Return the macros of formulas, of ``_config.yml``."""
        config = read_yaml(self.root / "_config.yml")["sphinx"]["config"]
        return dict(config["mathjax3_config"]["tex"]["macros"])

    def changed(self, *files: str) -> str:
        """Return what git would find to commit; raise if it does not know the book."""
        # Files that it does not know count, whatever the user's configuration hides.
        told = self._git("status", "--porcelain", "--untracked-files=normal", *files)
        if not told:
            self._git("ls-files", "--error-unmatch", "_toc.yml")
        return told

    def clean_commit(self) -> str | None:
        """Return the commit that the files are of, results aside; None if none is."""
        try:
            return None if self.changed(*_FILES) else self._git("rev-parse", "HEAD")
        except (subprocess.CalledProcessError, OSError):
            return None

    def unchanged_since(self, commit: str | None) -> bool:
        """Tell whether the files are those of a commit still, results aside."""
        if not (commit and self.clean_commit()):
            return False
        return not self._git("diff", "--name-only", commit, "HEAD", *_FILES)

    @contextmanager
    def at(self, commit: str) -> Iterator["Repository"]:
        """Check another commit out, in a folder that is there for a while."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "book").resolve()
            self._git("worktree", "add", "--detach", str(root), commit)
            try:
                yield replace(self, root=root)
            finally:
                self._git("worktree", "remove", "--force", str(root))

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.strip()


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that it is there either whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:  # of a full disk it names no file
        raise OSError(f"cannot write {path}: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore
    """A loader that refuses keys twice and knows Python's numbers, as 1e5."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Return a mapping in which no key hides another."""
        keys = [key.value for key, _ in node.value]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                told, mark = f"{key} is there twice", node.value[number][0].start_mark
                raise yaml.constructor.ConstructorError(None, None, told, mark)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    [*"-+.0123456789"],
)


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds, in which no key hides another."""
    try:
        return yaml.load(path.read_bytes(), _Loader)
    except yaml.YAMLError as error:
        told = " ".join(str(error).split()).replace('"<byte string>"', str(path))
        raise ValueError(f"{path} is no YAML: {told}") from None


def _mapping(value: Any, place: str, names: Sequence[str] = ()) -> dict[str, Any]:
    """Return a mapping of the profiles, empty where there is nothing."""
    if not isinstance(value, dict | None):
        raise ValueError(f"book/profiles.yml{place}: {value!r} is no mapping")
    unknown = [str(name) for name in value or () if names and name not in names]
    if unknown:
        told = f"no {', '.join(unknown)}; there are {', '.join(names)}"
        raise ValueError(f"book/profiles.yml{place}: {told}")
    return value or {}
