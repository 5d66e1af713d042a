"""Throwaway books with a package of their own, for tests of the press."""

import shutil
import subprocess

from press import Repository
from press.repository import write_atomically

HEAD = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {name: python3, display_name: Python 3, language: python}
---

# A chapter

"""

PARAMETERS = """```{code-cell} ipython3
:tags: [parameters]

n: int = 3     # how many
```
"""


def cell(code, tags=""):
    return f"\n```{{code-cell}} ipython3\n:tags: [{tags}]\n\n{code}\n```\n"


ALPHA = HEAD + PARAMETERS + cell("from tiny import middle\n\nprint(middle(n))")
BETA = HEAD + PARAMETERS + cell("import tiny.other\n\nprint(tiny.other.answer() + n)")


def new_book(folder):
    """Two chapters: alpha uses tiny.upper -> tiny.lower, beta tiny.other."""
    files = {
        "_toc.yml": "format: jb-book\nroot: book/index\n"
        "parts:\n- chapters: [{file: book/alpha}, {file: book/beta}]\n",
        "requirements.lock": "numpy==2\n",
        "book/index.md": "# Words only\n",
        "book/alpha.md": ALPHA,
        "book/beta.md": BETA,
        "book/profiles.yml": "quick: {alpha: {n: 1}}\n",
        "tiny/__init__.py": '_MODULES = {"middle": "tiny.upper"}\n\n\n'
        "def __getattr__(name):\n"
        "    from importlib import import_module\n\n"
        "    return getattr(import_module(_MODULES[name]), name)\n",
        "tiny/upper.py": "from .lower import double\n\n\n"
        "def middle(n):\n    return double(n) + 1\n",
        "tiny/lower.py": 'BASE = 2\n\n\ndef double(n):\n    """Twice n."""\n'
        "    return 2 * n\n\n\ndef unused(n):\n    return BASE\n",
        "tiny/other.py": "def answer():\n    return 42\n",
    }
    for name, text in files.items():
        write_atomically(folder / name, text)
    return Repository(folder, package="tiny", data="tiny.datasets")


def copied(repository, folder):
    """The book and all that was made of it, elsewhere."""
    shutil.copytree(repository.root, folder, dirs_exist_ok=True)
    return Repository(folder, package="tiny", data="tiny.datasets")


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def git(repository, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"]
    command = ["git", *identity, *arguments]
    return subprocess.run(
        command, cwd=repository.root, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(repository, message):
    """Commit the whole book, in a git repository of its own; return the commit."""
    if not (repository.root / ".git").exists():
        (repository.root / ".gitignore").write_text("executed/\n__pycache__/\n")
        git(repository, "init", "-q")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", message)
    return git(repository, "rev-parse", "HEAD")
