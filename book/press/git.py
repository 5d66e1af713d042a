"""The answers of git about the files of a book."""

import subprocess

from .repository import Repository

# Files that git does not know count, whatever the user's configuration hides.
_STATUS = ("status", "--porcelain", "--untracked-files=normal")
_KNOWN = ("ls-files", "--error-unmatch", "_toc.yml")
# All but recorded results, which a press that records writes while others run.
_FILES = ("--", ".", ":!book/results")


def check_clean(repository: Repository) -> None:
    """Raise unless git knows the book and would find nothing to commit."""
    changed = _git(repository, *_STATUS)
    if changed:
        raise RuntimeError(f"commit first, then record; git status says:\n{changed}")
    _git(repository, *_KNOWN)


def clean_commit(repository: Repository) -> str | None:
    """Return the commit that the files are of, results aside; None if one differs."""
    try:
        _git(repository, *_KNOWN)
        changed = _git(repository, *_STATUS, *_FILES)
        return None if changed else _git(repository, "rev-parse", "HEAD")
    except (subprocess.CalledProcessError, OSError):
        return None


def unchanged_since(repository: Repository, commit: str | None) -> bool:
    """Tell whether the files are still those of a commit, recorded results aside."""
    now = clean_commit(repository)
    if commit is None or now is None:
        return False
    try:
        _git(repository, "diff", "--quiet", commit, now, *_FILES)
    except subprocess.CalledProcessError:
        return False
    return True


def _git(repository: Repository, *arguments: str) -> str:
    command = ["git", "-C", str(repository.root), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()
