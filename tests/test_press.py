"""The press, on a throwaway book with a package of its own."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

import simlib.press
from simlib.press import ChapterError, Fingerprints, Repository, press, read_chapter
from simlib.press.chapters import ChapterReader, cell_lines, code_cells
from simlib.press.cli import main
from simlib.press.closure import Package
from simlib.press.results import paper, read_results, record
from simlib.press.sphinx_extension import merge

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


@pytest.fixture
def tiny(tmp_path):
    """A book of two chapters: alpha uses tiny.upper -> tiny.lower, beta tiny.other."""
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
        "tiny/lower.py": 'def double(n):\n    """Twice n."""\n    return 2 * n\n',
        "tiny/other.py": "def answer():\n    return 42\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Repository(tmp_path, package="tiny")


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def keys(repository):
    fingerprints = Fingerprints(repository)
    return {name: fingerprints.key(name, {}) for name in ("alpha", "beta")}


def changed(before, after):
    return {name for name in before if before[name] != after[name]}


def printed(repository, chapter, profile="standard"):
    notebook = nbformat.read(repository.notebook(chapter, profile), as_version=4)
    return "".join(o.get("text", "") for c in code_cells(notebook) for o in c.outputs)


def failures(repository, *arguments, **options):
    with pytest.raises(ChapterError) as caught:
        press(*arguments, repository=repository, **options)
    return caught.value.failures


def test_a_deep_edit_executes_the_chapter_above_it_and_no_other(tiny, capsys):
    assert press(repository=tiny) == ["alpha", "beta"]
    assert printed(tiny, "alpha") == "7\n"
    assert press(repository=tiny) == []
    edit(tiny.root / "tiny/lower.py", "2 * n", "3 * n")
    assert press(repository=tiny) == ["alpha"]
    assert printed(tiny, "alpha") == "10\n"
    lines = capsys.readouterr().out.splitlines()
    assert "[1/2] alpha: executing (standard)" in lines
    assert lines[-1] == "[2/2] beta: up to date (standard)"


def test_overrides_are_injected_and_equal_work_is_shared(tiny):
    assert press(profile="quick", repository=tiny) == ["alpha", "beta"]
    assert printed(tiny, "alpha", "quick") == "3\n"
    assert press(["book/beta.md"], repository=tiny) == []  # quick changes nothing
    assert printed(tiny, "beta") == "45\n"
    notebook = read_chapter(tiny.source("alpha"))
    merge(notebook, nbformat.read(tiny.notebook("alpha", "quick"), as_version=4))
    assert [c.source for c in notebook.cells[1:3]] == [
        "n: int = 3     # how many",
        "# Parameters\nn = 1\n",
    ]
    assert len(notebook.metadata.source_map) == len(notebook.cells)


def test_a_failing_chapter_names_line_cell_and_cause(tiny):
    edit(tiny.source("alpha"), "print(middle(n))", "x = 1\nx / (n - n)")
    edit(tiny.source("beta"), "print(", "raise ValueError('no')\nprint(")
    first, second = failures(tiny, profile="quick")
    line = tiny.source("alpha").read_text().splitlines().index("x / (n - n)") + 1
    assert (first.cell, first.line) == (3, line)  # after the injected cell
    assert first.parameters == {"n": 1}
    assert str(first).startswith(
        f"book/alpha.md:{line}: In [3]: ZeroDivisionError: division by zero\n"
    )
    assert second.error == "ValueError: no"
    assert (tiny.root / first.notebook).exists()
    assert not tiny.notebook("alpha", "quick").exists()


def test_a_warning_in_a_hidden_cell_fails(tiny, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    warning = "import warnings\n\nwarnings.warn('mind the gap')"
    tiny.source("alpha").write_text(ALPHA + cell(warning, "remove-cell"))
    (failure,) = failures(tiny, ["alpha"])
    lines = tiny.source("alpha").read_text().splitlines()
    assert failure.error == "wrote to standard error"
    assert "UserWarning: mind the gap" in failure.detail
    assert lines[failure.line - 1].startswith("warnings.warn")
    assert not tiny.notebook("alpha", "standard").exists()


def test_a_progress_bar_fails(tiny):
    bar = "from tqdm import tqdm\n\nfor _ in tqdm(range(2)):\n    pass"
    tiny.source("alpha").write_text(HEAD + cell(bar, "remove-output"))
    (failure,) = failures(tiny, ["alpha"])
    assert "100%" in failure.detail


def git(repository, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"]
    command = ["git", *identity, *arguments]
    subprocess.run(command, cwd=repository.root, check=True, capture_output=True)


def test_results_are_recorded_from_a_full_run_of_a_clean_tree(tiny, capsys):
    code = "import numpy as np\nfrom simlib.press import record\n\n"
    code += "record('errors', {'cur': np.array([0.5, n])})"
    tiny.source("alpha").write_text(HEAD + PARAMETERS + cell(code))
    (tiny.root / ".gitignore").write_text("executed/\n__pycache__/\n")
    git(tiny, "init", "-q")
    assert main(["alpha", "--profile", "full", "--record"], tiny) == 1
    assert "commit first" in capsys.readouterr().err
    assert not tiny.notebook("alpha", "full").exists()

    git(tiny, "add", ".")
    git(tiny, "commit", "-q", "-m", "start")
    assert main(["--profile", "full", "--record"], tiny) == 0
    results = read_results(tiny.book, "alpha")
    assert results["values"] == {"errors": {"cur": [0.5, 3]}}
    origin = results["provenance"]
    assert len(origin["commit"]) == 40
    assert origin["key"] == keys(tiny)["alpha"]
    assert origin["machine"]["cores"] >= 1
    assert not tiny.results("beta").exists()

    notebook = read_chapter(tiny.source("alpha"))
    merge(notebook, nbformat.read(tiny.notebook("alpha", "full"), as_version=4))
    assert all(not done.outputs for done in code_cells(notebook))


@pytest.mark.parametrize("profile", ["quick", "standard"])
def test_recording_needs_the_full_profile(tiny, profile, capsys):
    with pytest.raises(SystemExit):
        main(["--profile", profile, "--record"], tiny)
    assert "--record needs --profile full" in capsys.readouterr().err


def test_record_refuses_what_json_cannot_hold():
    with pytest.raises(ValueError, match="not JSON compliant"):
        record("error", float("nan"))
    with pytest.raises(TypeError, match="cannot record a object"):
        record("thing", object())
    with pytest.raises(ValueError, match="same as strings"):
        record("curve", {"deep": [{1: 2, "1": 3}]})


def test_record_makes_numbers_strings_as_keys(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda *a, **_: shown.extend(a))
    record("curve", {1: 2, "2": 3})
    assert [*shown[0].values()] == [{"name": "curve", "value": {"1": 2, "2": 3}}]


def test_nothing_recorded_yet_is_an_empty_dictionary(tiny):
    assert read_results(tiny.book, "alpha") == {}


def test_papers_figures_carry_their_place():
    figure = paper("sms_stsb")
    assert figure.value[250] == 0.1738
    assert figure.table == "Table 5"
    with pytest.raises(KeyError, match=r"papers\.yml"):
        paper("sms_nothing")


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        ("book/alpha.md", "# A chapter", "# The first chapter", set()),
        ("book/alpha.md", "# how many", "# the number", set()),
        ("book/alpha.md", ":tags: []", ":tags: [hide-input]", set()),
        ("tiny/lower.py", "Twice n.", "Two times n.", set()),
        ("tiny/lower.py", "2 * n", "2 * n  # twice", set()),
        ("tiny/lower.py", "2 * n", "n + n", {"alpha"}),
        ("tiny/upper.py", "+ 1", "+ 2", {"alpha"}),
        ("tiny/other.py", "42", "43", {"beta"}),
        ("tiny/__init__.py", "    return", "    # lazily\n    return", set()),
        ("book/beta.md", "n: int = 3", "n: int = 4", {"beta"}),
        ("book/beta.md", ":tags: [parameters]", ":tags: []", {"beta"}),
        ("requirements.lock", "2", "3", {"alpha", "beta"}),
    ],
)
def test_what_makes_a_notebook_stale(tiny, file, old, new, stale):
    before = keys(tiny)
    edit(tiny.root / file, old, new)
    assert changed(before, keys(tiny)) == stale


def test_results_papers_and_data_count_where_they_are_read(tiny, monkeypatch):
    edit(tiny.source("alpha"), "print(", 'recorded("beta")\npaper("x")\nprint(')
    edit(tiny.source("beta"), "import tiny.other", "import tiny.other, tiny.datasets")
    (tiny.root / "tiny/datasets.py").write_text(
        "def fingerprint():\n    return {'words': None}\n"
    )
    monkeypatch.syspath_prepend(tiny.root)
    before = keys(tiny)
    tiny.results("beta").parent.mkdir()
    tiny.results("beta").write_text("{}")
    after = keys(tiny)
    assert changed(before, after) == {"alpha"}
    (tiny.book / "papers.yml").write_text("{}")
    assert changed(after, keys(tiny)) == {"alpha"}
    import tiny.datasets as datasets

    before = keys(tiny)
    monkeypatch.setattr(datasets, "fingerprint", lambda: {"words": "abc"})
    assert changed(before, keys(tiny)) == {"beta"}
    for name in [name for name in sys.modules if name.partition(".")[0] == "tiny"]:
        monkeypatch.delitem(sys.modules, name)


PACKAGE = {
    "__init__.py": "from typing import TYPE_CHECKING\n"
    "from .a import one\n"
    "if TYPE_CHECKING:\n    from .b import two\n"
    '_MODULES = {"three": "tree.sub.c"}\n',
    "a.py": "one = 1\n",
    "b.py": "two = 2\n",
    "sub/__init__.py": "from . import c\nfrom .d import four\nfive = 5\n",
    "sub/c.py": "from ..b import two\nthree = 3\n",
    "sub/d.py": "def four():\n    from tree import a\n    return 4\n",
}


@pytest.mark.parametrize(
    ("code", "modules"),
    [
        ("from tree import one", {"a"}),
        ("from tree import two", {"b"}),
        ("from tree import three", {"sub.c", "b"}),
        ("from tree.sub import four", {"sub.d", "a"}),
        ("from tree.sub import c", {"sub.c", "b"}),
        ("import tree.a", {"a"}),
        ("import tree\ntree.one + 1", {"a"}),
        ("import tree as t\nt.sub.four()", {"sub.d", "a"}),
        ("import tree.sub\ntree.sub.c.three", {"sub.c", "b"}),
        ("from tree import sub\nsub.four()", {"sub.d", "a"}),
        ("def f():\n    from tree.b import two", {"b"}),
        ("import_module('tree.a')", {"a"}),
        ("from tree.sub import five", {"sub", "sub.c", "sub.d", "a", "b"}),
        ("import numpy, treelike\ntreelike.a", set()),
    ],
)
def test_closure(tmp_path, code, modules):
    for name, text in PACKAGE.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = Package(tmp_path, "tree").closure(ast.parse(code))
    assert found == {f"tree.{name}" for name in modules}


def test_magics_do_not_hide_imports(tiny):
    edit(tiny.source("alpha"), "from tiny", "%%time\n%matplotlib inline\nfrom tiny")
    before = keys(tiny)
    edit(tiny.root / "tiny/lower.py", "2 * n", "3 * n")
    assert changed(before, keys(tiny)) == {"alpha"}


def test_lines_of_cells(tiny):
    lines = ALPHA.splitlines()
    assert [lines[number - 1] for number in cell_lines(ALPHA)] == [
        "n: int = 3     # how many",
        "from tiny import middle",
    ]


def test_unknown_chapters_and_profiles_are_named(tiny, capsys):
    assert main(["gamma"], tiny) == 1
    assert "not in _toc.yml: gamma" in capsys.readouterr().err
    with pytest.raises(ValueError, match="'huge' is none of"):
        press(profile="huge", repository=tiny)


def test_papermill_reads_chapters_by_path(tiny):
    command = [sys.executable, "-W", "error", "-m", "papermill", "--help-notebook"]
    done = subprocess.run(
        [*command, "book/alpha.md"], cwd=tiny.root, capture_output=True, text=True
    )
    assert "n: int (default 3)" in done.stdout
    assert "Warning" not in done.stderr


def test_papermill_still_reads_and_writes_the_notebooks_of_other_projects(tmp_path):
    path = str(tmp_path / "notebook.ipynb")
    ChapterReader.write("{}", path)
    assert ChapterReader.read(path) == "{}"
    with pytest.raises(OSError, match="is a source; write the notebook"):
        ChapterReader.write("{}", "book/cur.md")


def test_a_page_without_code_is_no_work(tiny, capsys):
    assert press(["index"], "quick", repository=tiny) == []
    assert "no page chosen has code" in capsys.readouterr().out


def test_chapters_load_nothing_heavy():
    code = "import sys\nfrom simlib.press import paper, record, recorded\n"
    code += "print([m for m in ('papermill', 'sphinx', 'jupytext', 'nbformat', "
    code += "'IPython') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.replace("'", '"')) == []


def test_no_module_hides_a_name_that_is_loaded_on_first_use():
    """A submodule, once imported, stands where the package would look the name up."""
    package = Path(simlib.press.__file__).parent
    assert not {path.stem for path in package.glob("*.py")} & set(simlib.press.__all__)
