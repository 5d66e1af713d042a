"""The press, on a throwaway book with a package of its own."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import ANY

import nbformat
import psutil
import pytest

from press import ChapterError, press, read_chapter, results, status
from press.chapters import ChapterReader, code_cells
from press.cli import main
from press.code import Source, cell_hash, cell_names, content_hash, reached
from press.inputs import Inputs, changes
from press.kernel import PERSONAL, environment
from press.repository import write_atomically
from press.results import read_results
from press.sphinx_extension import _row, merge
from support.books import (
    ALPHA,
    HEAD,
    PARAMETERS,
    cell,
    commit,
    copied,
    edit,
    git,
    new_book,
)
from support.processes import python


@pytest.fixture
def tiny(tmp_path):
    return new_book(tmp_path)


def printed(repository, chapter, profile="standard"):
    notebook = nbformat.read(repository.notebook(chapter, profile), as_version=4)
    return "".join(o.get("text", "") for c in code_cells(notebook) for o in c.outputs)


def failures(repository, *arguments, **options):
    with pytest.raises(ChapterError) as caught:
        press(*arguments, repository=repository, **options)
    return caught.value.failures


def test_overrides_are_injected_and_equal_work_is_shared(tiny):
    assert press(profile="quick", repository=tiny) == ["alpha", "beta"]
    assert printed(tiny, "alpha", "quick") == "3\n"
    assert press(profile="quick", repository=tiny) == []
    assert press(["book/beta.md"], repository=tiny) == []  # quick changes nothing
    assert printed(tiny, "beta") == "45\n"
    notebook = read_chapter(tiny.source("alpha"))
    merge(notebook, nbformat.read(tiny.notebook("alpha", "quick"), as_version=4))
    assert [c.source for c in notebook.cells[1:3]] == [
        "n: int = 3     # how many",
        "# Parameters\nn = 1\n",
    ]
    assert len(notebook.metadata.source_map) == len(notebook.cells)
    prompts = [cell.metadata.get("mystnb") for cell in notebook.cells[1:3]]
    assert [words["code_prompt_show"] for words in prompts] == [
        "Show the parameters",
        "Show the parameters of this run",
    ]
    assert "mystnb" not in notebook.cells[3].metadata


@pytest.mark.slow
def test_a_failing_chapter_names_line_cell_and_cause(tiny):
    edit(tiny.source("alpha"), "print(middle(n))", "x = 1\nx / (n - n)")
    edit(tiny.source("beta"), "print(", "raise ValueError('no')\nprint(")
    first, second = failures(tiny, profile="quick")
    line = tiny.source("alpha").read_text().splitlines().index("x / (n - n)") + 1
    place = f"book/alpha.md:{line}: In [3]: "  # after the injected cell
    assert first.told == f"{place}ZeroDivisionError: division by zero"
    assert first.details[-2:] == [
        "profile quick, parameters: n=1",
        "partial notebook: executed/quick/alpha.partial.ipynb",
    ]
    assert second.told.endswith("ValueError: no")
    assert (tiny.root / "executed/quick/alpha.partial.ipynb").exists()
    assert not tiny.notebook("alpha", "quick").exists()


def test_a_warning_in_a_hidden_cell_fails(tiny, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    warning = "import warnings\n\nwarnings.warn('mind the gap')"
    tiny.source("alpha").write_text(ALPHA + cell(warning, "remove-cell"))
    (failure,) = failures(tiny, ["alpha"])
    lines = tiny.source("alpha").read_text().splitlines()
    line = lines.index("warnings.warn('mind the gap')") + 1
    told = f"book/alpha.md:{line}: In [3]: wrote to standard error"
    assert failure.told == told
    assert "UserWarning: mind the gap" in failure.details[0]
    assert not tiny.notebook("alpha", "standard").exists()


MODULE = '''"""A module."""

from typing import TYPE_CHECKING

from .other import one as uno

if TYPE_CHECKING:
    from .b import two

__all__ = ["scaled"]
WIDE = 2000
UNUSED = {"# no comment": 1}  # a comment
print("imported")


class Box:
    """A box."""

    size = 3

    def __init__(self):
        self.n = 0

    def grown(self, by):
        """Grow."""
        self.n += by
        return self

    @property
    def full(self):
        return self.n > self.size


def scaled(values):
    """Return values."""
    if len(values) > WIDE:
        return blocked(values)
    for value in values:
        if value < 0:
            raise ValueError("no")
    return [2 * v for v in values]


def blocked(values):
    return [
        "a",  # é
    ]
'''


def units(text):
    return Source(text.encode(), "tree/a.py").hashes


def differing(before, after):
    before, after = units(before), units(after)
    return {n for n in before | after if before.get(n) != after.get(n)}


@pytest.mark.parametrize(
    ("old", "new", "differ"),
    [
        ("A module.", "Another\ntext.", set()),
        ("  # a comment", "", set()),
        ("Return values.", "Return all # of them.", set()),
        ("\n\n\ndef", "\n\n\n# now\n\ndef", set()),
        ('        "a",  # é\n', '        "a",\n', set()),
        ('["scaled"]', '["scaled", "Box"]', set()),
        ("import one", "import two", {"<uno"}),
        (".other", ".elsewhere", {"<uno"}),
        ("# no comment", "# no comments", {"UNUSED"}),
        ("WIDE = 2000", "WIDE = 1000", {"WIDE"}),
        ('"imported"', '"imports"', {"."}),
        ("size = 3", "size = 4", {"Box"}),
        ("self.n = 0", "self.n = 1", {"Box.__init__"}),
        ("@property\n    ", "", {"Box.full"}),
        ("blocked(values)\n", "blocked(values[1:])\n", {"scaled/0"}),
        ("> WIDE", ">= WIDE", {"scaled", "scaled/0"}),
        ('"no"', '"not"', {"scaled/1/0"}),
        ("value < 0", "value <= 0", {"scaled/1", "scaled/1/0"}),
        ("def blocked", "def blocks", {"blocked", "blocks"}),
        ("def blocked", "@noted(2)\ndef blocked", {"blocked", "def"}),
        ("def blocked", "def uno", {"blocked", "uno", "def"}),
        ("def blocked", "scaled = sorted\n\n\ndef blocked", {"."}),
        ("def blocked", "len = id\n\n\ndef blocked", {"len", "def"}),
        ("as uno", "as len", {"<uno", "<len", "def"}),
        ("    @prop", "    def fill(self): 1\n\n    @prop", {"Box.fill", "Box~"}),
    ],
)
def test_an_edit_changes_the_hash_of_its_unit_alone(old, new, differ):
    assert old in MODULE
    assert differing(MODULE, MODULE.replace(old, new, 1)) == differ


def test_units_of_functions_within_classes_twice_and_compiled():
    text = "class A:\n    if B:\n        c = 1\n        def f(self): return 2\n"
    assert differing(text, text.replace("1", "3")) == {"A"}
    assert differing(text, text.replace("return 2", "return 3")) == {"A.f"}
    twice = "def f(): return 1\n"
    assert differing(twice, 2 * twice) == {"f~2", "def"}
    jit = "import numba\n\n@numba.njit(cache=True)\ndef f(x):\n    x += 1\n"
    assert units(jit).keys() == {".", "def", "<numba", "f"}
    assert differing(jit, jit.replace("+= 1", "+= 2")) == {"f"}
    own = jit.replace("@numba.njit(cache=True)", "@compiled()")
    assert units(own).keys() == {".", "def", "<numba", "f"}


def test_a_name_imported_from_elsewhere_changes_what_reads_it():
    text = "import numpy as np\nfrom scipy.linalg import eigh\nimport unread\n"
    text += "def f(x):\n    return eigh(np.sqrt(x))\n"
    code = reached({"a.py": Source(text.encode())}, {"a.py": {"f"}}, ())
    assert code["a.py"].keys() == {".", "def", "f", "<np", "<eigh"}
    for old, new in [("from scipy.", "from numpy."), ("numpy as np", "math as np")]:
        now = units(text.replace(old, new))
        assert sum(now[name] != hash for name, hash in code["a.py"].items()) == 1


@pytest.mark.parametrize(
    "text", [b"\xef\xbb\xbfX = 1", b"# coding: latin-1\nT = '\xe9\xe9\xe9'; X = 1"]
)
def test_sources_in_other_encodings(text):
    before, after = (Source(t).hashes for t in (text, text.replace(b"X = 1", b"X = 2")))
    assert {n for n in before if before[n] != after[n]} == {"X"}


def test_hashes_of_units_are_the_same_on_every_python():
    """They stand in the provenance of recorded results; these never change."""
    text = MODULE + 'T = f"""{WIDE!r:>{10}}\n\n{1 + 1}"""  # c\n\n\nU = """\n\n """\n'
    found = units(text)
    assert [found[n] for n in (".", "Box", "scaled", "scaled/0", "T", "U")] == [
        "f8bb8cea5616",
        "ca708413a594",
        "094a396a126b",
        "2c87c2d0c6ee",
        "2360a8394dee",
        "d547bc353202",
    ]


def test_values_decide_where_a_unit_that_ran_reads_them():
    """By the name in the same module, or through an import, from cells anywhere."""
    texts = {
        "t/a.py": "from .b import SIZE as n\nN = 1\nM = N\n"
        "def f():\n    return n + M\n",
        "t/b.py": "SIZE = 2\nM = 3\n",
        "t/c.py": "SIZE = 4\nCELL = 5\nDOT = 6\ndef g():\n    return t.b.M\n"
        "def h():\n    return getattr(b, 'M')\n",
        "t/d.py": "from .b import *\ndef f():\n    return SIZE\n",
        "t/__init__.py": "from .b import SIZE as S\n",
    }
    sources = {path: Source(text.encode(), path) for path, text in texts.items()}

    def names(ran, cells=()):
        code = reached(sources, ran, cells)
        found = {f"{path[2]}{n}" for path, units in code.items() for n in units}
        return {n for n in found if n[1:] not in (".", "def") and "<" not in n}

    assert names({}) == set()
    assert names({"t/a.py": {"f"}}) == {"af", "aM", "aN", "bSIZE"}
    assert names({"t/c.py": {"g"}}) == {"cg", "aM", "aN", "bM"}
    assert names({"t/c.py": {"h"}}) == {"ch", "aM", "aN", "bM"}
    assert names({"t/d.py": {"f"}}) == {"df", "bSIZE", "cSIZE"}
    assert names({}, cell_names(["from t import S"])) == {"bSIZE"}
    assert names({}, cell_names(["from t.c import CELL as x\nx + t.DOT"])) == {
        "cCELL",
        "cDOT",
    }


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ('T = """a\n\nb"""', 'T = """a\nb"""', True),
        ('T = """a \nb"""', 'T = """a\nb"""', True),
        ('n = 1\nT = f"""{n}\n\nb"""', 'n = 1\nT = f"""{n}\nb"""', True),
        ("T = (\n'a'  # c\n\n'b')", "T = (\n'a'\n'b')", False),
        ('T = """a\n\nb"""  # c\n\n', 'T = """a\n\nb"""', False),
        ("%matplotlib inline\nx = 1", "%matplotlib inline\n\nx = 1", False),
        ("%%time\nx = 1", "%%time\nx = 1  # one", False),
        ("%%time\nx = 1", "x = 1", True),
        ("%run a.py", "%run b.py", True),
        ("%%bash\nls a | wc", "%%bash\nls b | wc", True),
    ],
)
def test_comments_do_not_count_and_lines_of_a_string_and_magics_do(one, other, differs):
    assert (cell_hash(one) != cell_hash(other)) is differs
    if "%" not in one:
        hashes = [units(f"def g():\n    {text}\n") for text in (one, other)]
        assert (hashes[0] != hashes[1]) is differs


@pytest.fixture(scope="module")
def pressed_once(tmp_path_factory):
    book = new_book(tmp_path_factory.mktemp("pressed"))
    press(repository=book)
    return book


@pytest.fixture
def pressed(pressed_once, tmp_path):
    """Both chapters executed in the standard profile."""
    return copied(pressed_once, tmp_path)


def out_of_date(repository, profile="standard"):
    rows = status(profile=profile, repository=repository)
    return {row.chapter: row.notebook for row in rows if row.notebook != {}}


def test_what_makes_a_notebook_stale(pressed):
    """Each edit in turn, on the same notebooks; nothing is executed again."""
    tree, lock = pressed.root, {"versions": ["requirements.lock"]}

    def code(unit):
        return {"alpha": {"code": [f"tiny/{unit}"]}}

    assert out_of_date(pressed) == {}
    for file, old, new, stale in [
        ("book/alpha.md", "# A chapter", "# The first chapter", {}),
        ("book/alpha.md", "# how many", "# the number", {}),
        ("book/alpha.md", ":tags: []", ":tags: [hide-input]", {}),
        (
            "book/alpha.md",
            ":tags: []",
            ":tags: [skip-execution]",
            {"alpha": {"code": ["book/alpha.md"]}},
        ),
        ("tiny/lower.py", "Twice n.", "Two times n.", {}),
        ("tiny/lower.py", "2 * n", "2 * n  # twice", {}),
        ("tiny/lower.py", "return BASE", "return 3", {}),
        ("tiny/lower.py", "BASE = 2", "BASE = 3", {}),
        ("tiny/lower.py", "BASE = 2", "BASE = 2\nimport this", {}),
        ("tiny/lower.py", "BASE = 2", "BASE = 2\nprint(1)", code("lower.py")),
        ("tiny/lower.py", "2 * n", "n + n", code("lower.py:double")),
        ("tiny/upper.py", "+ 1", "+ 2", code("upper.py:middle")),
        ("tiny/other.py", "42", "43", {"beta": {"code": ["tiny/other.py:answer"]}}),
        ("tiny/__init__.py", "    return", "    # lazily\n    return", {}),
        ("tiny/__init__.py", '{"mid', '{"new": "tiny.new", "mid', {}),
        ("book/beta.md", "n: int = 3", "n: int = 4", {"beta": {"parameters": ["n"]}}),
        ("book/beta.md", "[parameters]", "[]", {"beta": ANY}),
        ("book/beta.md", "+ n", "- n", {"beta": {"code": ["book/beta.md"]}}),
        ("requirements.lock", "2", "3", {"alpha": lock, "beta": lock}),
    ]:
        before = (tree / file).read_text(encoding="utf-8")
        edit(tree / file, old, new)
        assert out_of_date(pressed) == stale, (file, new)
        (tree / file).write_text(before, encoding="utf-8")
    assert out_of_date(pressed) == {}
    assert press(repository=pressed) == []


def test_another_python_and_another_profile_execute_again(pressed, monkeypatch):
    assert out_of_date(pressed, "quick") == {"alpha": None, "beta": None}
    monkeypatch.setattr("platform.python_version", lambda: "3.99.1")
    version = {"versions": ["Python"]}
    assert out_of_date(pressed) == {"alpha": version, "beta": version}


def test_what_differs_is_named_by_its_kind():
    shown = {"book/press/style.py": {"paint": "1", "paint/0": "-2"}}
    values = {"n": 3, "m": [1], "k": float("nan")}
    inputs = Inputs({"a": "1"}, {"b.py": {"f": "3"}} | shown, {}, values, "3.11")
    plain = json.loads(json.dumps(inputs.write()))
    assert changes(inputs, Inputs.read(plain)) == {}
    for name, value, found in [
        ("files", {"a": "2"}, {"code": ["a"]}),
        ("code", {"b.py": {"f": "4"}} | shown, {"code": ["b.py:f"]}),
        ("code", {"b.py": {"f": "3"}}, {"display": ["book/press/style.py:paint"]}),
        ("data", {"w": "5"}, {"data": ["w"]}),
        ("parameters", values | {"n": 3.0, "m": [True]}, {"parameters": ["m", "n"]}),
    ]:
        assert changes(inputs, replace(inputs, **{name: value})) == found


def test_what_the_press_did_not_write_is_not_executed(pressed):
    """Nor are its values recorded, however fresh its inputs are."""
    path = pressed.notebook("alpha", "standard")
    whole = path.read_text()
    for key in ("source", "outputs"):
        altered = json.loads(whole)
        altered["cells"][-1][key] = []
        path.write_text(json.dumps(altered))
        assert out_of_date(pressed) == {"alpha": None}
    old = '{"inputs": {"files": {}, "old": 1}}'
    for text in ("[]", '{"metadata": null}', f'{{"metadata": {{"press": {old}}}}}'):
        path.write_text(text)
        assert out_of_date(pressed) == {"alpha": None}
    path.write_text(whole)
    assert out_of_date(pressed) == {}


# What a reader of the chapter's text would not know that it depends on.
HIDDEN = {
    "import importlib as i\n\ni.import_module('tiny.' + 'far')": "tiny/far.py",
    "%run tools/script.py": "tools/script.py",
    "# what the script imports": "tiny/deep.py",
    "open('book/words.txt').close()": "book/words.txt",
    "import tiny.folder\n\ntiny.folder.words()": "tiny/folder/data/words.txt",
    "import subprocess, sys\n\n"
    "_ = subprocess.run([sys.executable, '-c', 'import tiny.child'])": "tiny/child.py",
    "from joblib import Parallel, delayed\nfrom tiny.work import work\n\n"
    "_ = Parallel(2)(delayed(work)(i) for i in range(2))": "tiny/worker.py",
    "try:\n    open('book/new.txt')\nexcept OSError:\n    pass": "book/new.txt",
}


@pytest.mark.slow
def test_nothing_that_a_chapter_reads_stays_unseen(tiny):
    for name, text in {
        "tools/script.py": "import tiny.deep\n",
        "book/words.txt": "words",
        "tiny/folder/__init__.py": "from pathlib import Path\n\n\ndef words():\n"
        "    return (Path(__file__).parent / 'data/words.txt').read_text()\n",
        "tiny/folder/data/words.txt": "words",
        "tiny/work.py": "def work(i):\n    import tiny.worker\n",
        "tiny/far.py": "",
        "tiny/deep.py": "",
        "tiny/child.py": "",
        "tiny/worker.py": "",
    }.items():
        write_atomically(tiny.root / name, text)
    cells = "".join(map(cell, HIDDEN))
    tiny.source("alpha").write_text(HEAD + PARAMETERS + cells)
    assert press(["alpha"], repository=tiny) == ["alpha"]
    assert press(["alpha"], repository=tiny) == []
    for file in HIDDEN.values():
        path = tiny.root / file
        before = path.read_text() if path.exists() else None
        path.write_text(f"{before}\nprint()\n")
        assert out_of_date(tiny)["alpha"] == {"code": [file]}
        path.unlink() if before is None else path.write_text(before)
    assert "alpha" not in out_of_date(tiny)


@pytest.mark.slow
def test_data_count_where_they_are_asked_for(tiny, monkeypatch):
    folder = tiny.root / "tiny/datasets"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "import sys\n\nHASHES = {'w/words': 'abc', 'w/other': 'd'}\n\n\n"
        "def load():\n    sys.audit('tiny.datasets', 'w/words')\n\n\n"
        "def fingerprint():\n    return HASHES\n"
    )
    tiny.source("alpha").write_text(
        ALPHA + cell("import tiny.datasets as d\n\nd.load()")
    )
    monkeypatch.syspath_prepend(tiny.root)
    import tiny.datasets as datasets

    try:
        press(repository=tiny)
        monkeypatch.setattr(datasets, "HASHES", {"w/words": "abc", "w/other": "e"})
        assert out_of_date(tiny) == {}
        monkeypatch.setattr(datasets, "HASHES", {"w/other": "e"})
        assert out_of_date(tiny) == {"alpha": {"data": ["w/words"]}}
    finally:
        for name in [n for n in sys.modules if n.partition(".")[0] == "tiny"]:
            del sys.modules[name]


def test_a_notebook_is_stored_only_if_nothing_changed_while_it_ran(tiny):
    """All are named: chapter, file read, parameter of the profile, lock, module."""
    changes = [
        ("book/alpha.md", "print(middle(n))", "print(middle(n) + 1)"),
        ("tiny/lower.py", "2 * n", "3 * n"),
        ("requirements.lock", "2", "3"),
        ("book/profiles.yml", "n: 1", "n: 2"),
    ]
    meddle = f"from pathlib import Path\n\nfor file, old, new in {changes}:\n"
    meddle += "    path = Path(file)\n"
    meddle += "    _ = path.write_text(path.read_text().replace(old, new))"
    tiny.source("alpha").write_text(ALPHA + cell(meddle))
    (failure,) = failures(tiny, ["alpha"], profile="quick")
    assert failure.told == (
        "book/alpha.md: book/alpha.md, book/profiles.yml, n, requirements.lock, "
        "tiny/lower.py:double changed while it ran: run the press again"
    )
    assert not tiny.notebook("alpha", "quick").exists()


def test_an_edit_that_was_undone_while_it_ran_is_noticed(tiny):
    code = "from pathlib import Path\n\n"
    code += "path = Path('tiny/other.py')\nold = path.read_text()\n"
    code += "_ = path.write_text('answer = 1')\n"
    code += "import tiny.other\n\n_ = path.write_text(old)\ntiny.other.answer"
    tiny.source("alpha").write_text(HEAD + cell(code))
    (failure,) = failures(tiny, ["alpha"])
    assert "tiny/other.py:answer changed while it ran" in failure.told


@pytest.fixture
def meanwhile(monkeypatch):
    """A function stands for what happens while a chapter is executed."""

    def install(happens, log=""):
        async def run(notebook, folder, *_):
            (folder / "log").write_text(log)
            happens(notebook)

        monkeypatch.setattr("press.execution.run", run)

    return install


def test_a_notebook_notes_the_results_that_it_displays(tiny, meanwhile):
    """Not those that another press recorded meanwhile; one of hours is kept."""
    path = tiny.results("beta") / "values.json"
    shown = tiny.relative(path)
    text = "{}"
    write_atomically(path, text)
    log = f"file {content_hash(text.encode())} {shown}\n"
    meanwhile(lambda _: path.write_text(f"{text} "), log)
    assert press(["alpha"], "full", repository=tiny) == ["alpha"]
    assert out_of_date(tiny, "full")["alpha"] == {"display": [shown]}
    path.write_text(text)
    assert press(["alpha"], repository=tiny) == []
    tiny.notebook("alpha", "standard").unlink()
    tiny.notebook("alpha", "full").unlink()
    (failure,) = failures(tiny, ["alpha"])
    assert f"{shown} changed while it ran" in failure.told


def traced(folder, code, *arguments):
    """Run code that is traced in a process of its own; return it, and the log."""
    (folder / "log").mkdir(exist_ok=True)
    code = f"import os, shutil, sys\n\nfrom press.tracer import trace\n\n{code}"
    done = python("-c", code, *arguments, cwd=folder)
    lines = (folder / "log/log").read_text().splitlines()
    return done, [line.split(" ", 2)[2] for line in lines]


def test_what_is_opened_within_a_folder_elsewhere_is_no_file_here(tmp_path):
    """As `shutil.rmtree` opens folders."""
    for file in ("root/in/a", "elsewhere/in/a"):
        write_atomically(tmp_path / file, "")
    done, noted = traced(
        tmp_path,
        "trace('root', 'log/log', 'data')\nos.chdir('root')\n"
        "shutil.rmtree('../elsewhere')\nopen('in/a').close()",
    )
    assert done.returncode == 0
    assert not (tmp_path / "elsewhere").exists()
    assert noted == ["in/a"]


@pytest.mark.parametrize(("prefix", "read"), [("env", ["a"]), ("", ["a", "env/b"])])
def test_an_environment_within_the_root_is_no_source(tmp_path, prefix, read):
    """Whatever its name; where the root is the environment, its files count."""
    for file in ("a", "env/b"):
        write_atomically(tmp_path / file, "")
    code = "sys.prefix = sys.argv[1]\ntrace('.', 'log/log', 'data')\n"
    code += "for name in ('a', 'env/b'):\n    open(name).close()"
    _, noted = traced(tmp_path, code, tmp_path / prefix)
    assert noted == read


def test_a_source_reached_through_a_link_counts(tmp_path):
    """As where the path of Python goes through a home that is a link."""
    write_atomically(tmp_path / "root/a.py", "def f():\n    return 1\n")
    (tmp_path / "link").symlink_to("root")
    code = "trace('root', 'log/log', 'data')\nsys.path.insert(0, 'link')\n"
    _, noted = traced(tmp_path, f"{code}import a\n\na.f()")
    assert noted == ["a.py", "a.py", "a.py"]  # read, imported, run


def test_a_kernel_starts_without_personal_settings(tiny, tmp_path, monkeypatch):
    """A backend of one's own would swallow figures, a kernel of one's own run them."""
    for name in PERSONAL:
        monkeypatch.setenv(name, "mine")
    assert not {*PERSONAL} & environment(tmp_path, tiny).keys()


def test_a_slip_in_what_is_read_is_told(tiny, capsys, monkeypatch, tmp_path):
    def told(*arguments):
        assert main([*arguments], tiny) == 1
        return capsys.readouterr().err

    assert "not in _toc.yml: gamma" in told("gamma")
    edit(tiny.book / "profiles.yml", "n: 1", "on: 1")  # a truth value, by YAML 1.1
    quick = ("book/alpha.md", "--profile", "quick")
    assert "quick: alpha has no parameter True; it has n." in told(*quick)
    edit(tiny.book / "alpha.md", "n: int = ", "n: int = = ")
    assert "the parameters are no Python" in told(*quick)
    edit(tiny.book / "alpha.md", ":tags: [parameters]", ":tags: [parameters")
    assert "alpha.md: " in told(*quick)
    monkeypatch.setattr("press.repository.__file__", str(tmp_path / "x/a/b/c.py"))
    assert main([]) == 1
    assert "the press works in a checkout of the repository" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--profile", "quick", "--record"], tiny)
    assert "--record needs --profile full" in capsys.readouterr().err


def test_untracked_files_count_whatever_is_configured(committed):
    git(committed, "config", "status.showUntrackedFiles", "no")
    assert committed.changed() == ""
    (committed.root / "forgotten.py").write_text("")
    assert committed.changed() == "?? forgotten.py"


@pytest.mark.slow
def test_a_kernel_that_dies_fails_its_chapter_and_no_other(tiny, capsys):
    code = "import os\nimport signal\n\nos.kill(os.getpid(), signal.SIGKILL)"
    tiny.source("alpha").write_text(HEAD + cell(code))
    (failure,) = failures(tiny, jobs=2)
    assert failure.told == "book/alpha.md: DeadKernelError: Kernel died"
    assert tiny.notebook("beta", "standard").exists()
    assert capsys.readouterr().out.splitlines()[:2] == [
        f"[{n}/2] {name}: executing (standard)"
        for n, name in ((1, "alpha"), (2, "beta"))
    ]


def started(book):
    """A press in a process of its own, which executes a chapter that sleeps.

    Tests in the background ignore an interrupt, and what they start would, too.
    """
    code = "import os\nfrom pathlib import Path\nfrom time import sleep\n\n"
    code += "_ = Path('new').write_text(str(os.getpid()))\n"
    code += "_ = Path('new').rename('pid')\nsleep(100)"
    book.source("alpha").write_text(HEAD + cell(code))
    script = book.root / "script.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom signal import *\n\n"
        "from press import Repository, main\n\nsignal(SIGINT, default_int_handler)\n"
        f"book = Repository(Path({str(book.root)!r}), 'tiny')\n"
        f"sys.exit(main(['alpha', '-j', '2'], book))\n"
    )
    process = subprocess.Popen(
        [sys.executable, script], stderr=subprocess.PIPE, text=True, process_group=0
    )
    while not (book.root / "pid").exists():
        assert process.poll() is None
        time.sleep(0.05)
    return process


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_in_one_line(tiny, sent):
    """As Ctrl-C in a terminal, to the press and to all of its processes, or `kill`."""
    process = started(tiny)
    (os.killpg if sent == signal.SIGINT else os.kill)(process.pid, sent)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.strip() == "press: interrupted; what was done is kept"
    assert [*(tiny.root / "executed").rglob("*.ipynb")] == []


def test_no_kernel_outlives_the_press(tiny):
    process = started(tiny)
    process.kill()
    process.communicate(timeout=60)
    kernel = int((tiny.root / "pid").read_text())
    end = time.monotonic() + 30
    while psutil.pid_exists(kernel) or [*(tiny.root / "executed").rglob("*.ipynb")]:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_full_disk_names_chapter_and_path_and_leaves_nothing(tiny):
    """A limit on the size of files stands for it: the kernel's files stay below."""
    tiny.source("alpha").write_text(ALPHA + cell("print('x' * 300_000)"))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limit[1]))
    try:
        (failure,) = failures(tiny, ["alpha"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    path = tiny.notebook("alpha", "standard")
    told = f"book/alpha.md: OSError: cannot write {path}: File too large"
    assert failure.told == told
    assert {p.name for p in path.parent.iterdir()} <= {".lock"}


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new text \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_presses_wait_for_each_other(tiny, capsys, monkeypatch):
    from filelock import FileLock

    path = tiny.root / "executed/standard/.lock"
    path.parent.mkdir(parents=True)
    other, acquire = FileLock(path), FileLock.acquire

    def meanwhile(lock, *arguments, **options):
        if "timeout" not in options:  # the one that waits
            assert capsys.readouterr().out == "waiting for another press (standard)\n"
            other.release()
        return acquire(lock, *arguments, **options)

    acquire(other)
    monkeypatch.setattr(FileLock, "acquire", meanwhile)
    press(["beta"], repository=tiny)
    assert not other.is_locked
    assert "[1/1] beta: executing (standard)" in capsys.readouterr().out


RECORDS = "from press import record\n\nrecord('n', n)"
RECORD = ["alpha", "--profile", "full", "--record"]


def recording(book):
    """Put a book in a git repository; alpha records its parameter."""
    book.source("alpha").write_text(HEAD + PARAMETERS + cell(RECORDS))
    commit(book, "start")
    return book


@pytest.fixture
def committed(tiny):
    return recording(tiny)


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory):
    book = recording(new_book(tmp_path_factory.mktemp("recorded")))
    assert main(RECORD, book) == 0
    return book


@pytest.fixture
def recorded(recorded_once, tmp_path):
    """The same after a run in the profile full, with its record."""
    return copied(recorded_once, tmp_path)


GIT = "git -c user.name=a -c user.email=a@b commit -q -m x"
WRITE = "from pathlib import Path\nfrom time import monotonic\n\npath = Path({!r})\n"
WRITE += "path.parent.mkdir(exist_ok=True, parents=True)\n"
WRITE += "_ = path.write_text(str(monotonic()))\n"
COMMIT = f"import os\n\n_ = os.system('git add . && {GIT}')"


@pytest.mark.parametrize(
    ("file", "then", "told"),
    [
        ("book/note.txt", COMMIT, "not recorded: alpha. Something was edited"),
        ("book/note.txt", "", "not recorded: alpha. Something was edited"),
        ("book/results/beta/values.json", COMMIT, ""),
    ],
)
def test_what_changes_the_commit_during_a_run(committed, file, then, told, capsys):
    """Nothing is recorded then, unless it is a record of another chapter."""
    meddle = cell(RECORDS) + cell(WRITE.format(file) + then)
    committed.source("alpha").write_text(HEAD + PARAMETERS + meddle)
    first = commit(committed, "meddle")
    assert main(RECORD, committed) == bool(told)
    assert told in capsys.readouterr().err
    assert (git(committed, "rev-parse", "HEAD") == first) == (not then)
    if not told:
        assert read_results(committed.book, "alpha")["provenance"]["commit"] == first


def test_a_notebook_is_recorded_with_the_commit_that_it_is_of(committed, capsys):
    """One made with uncommitted changes is executed again."""
    edit(committed.root / "tiny/other.py", "42", "43")
    press(["alpha"], "full", repository=committed)
    first = commit(committed, "43")
    press(["alpha"], "full", committed=True, repository=committed)
    assert "[1/1] alpha: executing (full)" in capsys.readouterr().out.splitlines()[-5:]
    (committed.book / "index.md").write_text("# Other words\n")
    commit(committed, "words")
    assert main(RECORD, committed) == 0
    assert read_results(committed.book, "alpha")["provenance"]["commit"] == first


def test_a_chapter_is_recorded_beside_one_whose_record_it_shows(committed):
    shows = "from pathlib import Path\n\nfrom press import record\n"
    shows += "from press.results import read_results\n\n"
    shows += "record('seen', len(read_results(Path('book'), 'alpha')))"
    committed.source("beta").write_text(HEAD + cell(shows))
    commit(committed, "beta")
    assert main(RECORD[1:], committed) == 0
    assert read_results(committed.book, "alpha")["values"] == {"n": 3}
    assert read_results(committed.book, "beta")["values"] == {"seen": 0}


def test_recording_makes_nothing_stale_and_status_tells_what_is(recorded, capsys):
    (row,) = status(["alpha"], "full", repository=recorded)
    assert (row.record.verdict, row.notebook) == ("fresh", {})
    capsys.readouterr()
    assert main(["--status", "--profile", "full"], recorded) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "alpha"
    assert told[1].startswith("  notebook: fresh (")
    assert told[2].startswith("  recorded: fresh (of 20")
    assert told[3:] == [
        "beta",
        "  notebook: not executed",
        "  recorded: nothing",
        "records: 1 fresh, 0 confirmed",
    ]

    edit(recorded.source("alpha"), "record('n', n)", "record('n', n + 1)")
    edit(recorded.source("alpha"), "n: int = 3", "n: int = 4")
    (recorded.root / "requirements.lock").write_text("numpy==3\n")
    first, second = status(repository=recorded)
    assert first.record.changed == {
        "code": ["book/alpha.md"],
        "versions": ["requirements.lock"],
        "parameters": ["n"],
    }
    cells = _row(first).split("|")  # of the colophon
    assert cells[1].strip() == "{doc}`alpha`"
    assert "<summary>1 functions and files</summary>`book/alpha.md`<" in cells[5]
    assert [text.strip() for text in _row(second).split("|")[3:6]] == ["", "", ""]


def test_papermill_reads_chapters_and_notebooks_and_writes_over_no_chapter(
    tiny, monkeypatch
):
    from papermill.iorw import load_notebook_node

    monkeypatch.chdir(tiny.root)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])
    for path in ["book/one.ipynb", "./two.ipynb", str(tiny.root / "three.ipynb")]:
        ChapterReader.write(nbformat.writes(notebook), path)
        assert load_notebook_node(path).cells[0].source == "1 + 1"
    with pytest.warns(UserWarning, match="does not end in"):  # else it is ignored
        chapter = load_notebook_node("book/alpha.md")
    assert chapter.cells[1].source == "n: int = 3     # how many"
    with pytest.raises(OSError, match="is a source; write the notebook"):
        ChapterReader.write("{}", "book/alpha.md")


def test_with_parameters_of_ones_own_a_chapter_shows_its_own_results(monkeypatch):
    shell = SimpleNamespace(user_ns={"In": ["", "n = 9", "# Parameters\nn = 3\n"]})
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.delenv("PRESS_LOG", raising=False)
    assert results.recorded("core") == {}
    assert results.recorded("queries", "orders") is not None  # of another chapter
    monkeypatch.setenv("PRESS_LOG", "a run of the press")
    assert results.recorded("core")
    monkeypatch.delenv("PRESS_LOG")
    del shell.user_ns["In"][-1]
    assert results.recorded("core")


def test_chapters_load_nothing_heavy():
    code = "import sys\nfrom press import paper, record, recorded\n"
    code += "print([m for m in ('papermill', 'sphinx', 'jupytext', 'nbformat', "
    code += "'IPython') if m in sys.modules])"
    assert python("-c", code).stdout == "[]\n"
