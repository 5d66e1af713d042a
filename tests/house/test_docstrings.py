"""The reference: it names all that is public, and says of each name how to use it."""

import doctest
import importlib
import inspect
import os
import re
from pathlib import Path

import pytest

import simlib
from press.references import constructor, references
from study.datasets import DataNotFoundError
from support.public import look_up, public_names

ROOT = Path(simlib.__file__).parents[1]
IN_CHAPTERS = {"paper", "provenance", "record", "recorded"}  # of the press
OUTSIDE = re.compile("(numpy|scipy|sklearn|joblib)[.]")
WITH_EXAMPLES = [
    ".".join(path.relative_to(top).with_suffix("").parts).removesuffix(".__init__")
    for top, package in [(ROOT, "simlib"), (ROOT / "book", "study")]
    for path in sorted((top / package).rglob("*.py"))
    if ">>>" in path.read_text(encoding="utf-8")
]
SLOW = {"simlib.biharmonic.hub_labels", "study.datasets.corpora"}  # compile, load


class Reference:
    """The names and the modules in the directives of the reference."""

    def __init__(self, text):
        self.names, self.modules = [], []
        directive = re.compile(r"^\.\. ([\w:]+):: (\S+)\n((?:   :.*\n)*)", re.MULTILINE)
        for kind, name, block in directive.findall(text):
            options = dict(re.findall(r":([\w-]+): ?(.*)", block))
            if kind == "automodule":
                self.modules.append(name)
                self.names += [f"{name}.{key}" for key in _members(name, options)]
            else:
                path = options.get("module")  # of data
                self.names.append(f"{path}.{name}" if path else name)

    def docstrings(self):
        """Yield of all that has one its name, docstring, itself and its class."""
        for name in self.modules:
            module = importlib.import_module(name)
            yield name, inspect.getdoc(module), [module]
        for name in self.names:
            found = look_up(name)
            if callable(found):
                yield name, inspect.getdoc(found), [found]
            for key in vars(found) if inspect.isclass(found) else ():
                member = getattr(found, key)
                shown = inspect.isroutine(member) or isinstance(member, property)
                if shown and not key.startswith("_"):
                    yield f"{name}.{key}", inspect.getdoc(member), [member, found]


def _members(name, options):
    """Return what autodoc shows of a module."""
    if "members" not in options:
        return []
    module = importlib.import_module(name)
    functions = [key for key in module.__all__ if callable(getattr(module, key))]
    return options["members"].split(", ") if options["members"] else functions


@pytest.fixture(scope="module")
def reference():
    path = ROOT / "book" / "api.md"
    if not path.exists():
        pytest.skip("the book is not here")
    try:
        return Reference(path.read_text(encoding="utf-8"))
    except ImportError as error:
        pytest.skip(what_it_lacks(error))


def test_the_reference_lists_every_public_name_once(reference):
    public = public_names()
    assert public <= set(reference.names)
    for name in set(reference.names) - public:  # public in a module of its own
        module, _, last = name.rpartition(".")
        assert module in reference.modules
        assert last in importlib.import_module(module).__all__
    found = [id(look_up(name)) for name in reference.names]
    assert len(set(found)) == len(found)


def test_no_name_shows_the_module_that_it_shadows(reference):
    assert "simlib.tikhonov" in reference.names
    for name in reference.names:
        *_, module, last = name.split(".")
        assert module != last or name == "press.press"  # of the package


def test_every_name_has_an_example(reference):
    """But exceptions, and what of the press acts on the checkout it is called in."""
    for name in reference.names:
        found = look_up(name)
        error = inspect.isclass(found) and issubclass(found, Exception)
        outside = name.startswith("press.") and name.split(".")[-1] not in IN_CHAPTERS
        if callable(found) and not error and not outside:
            assert ">>>" in found.__doc__, name


def test_every_name_in_a_docstring_is_in_the_reference(reference):
    targets = [f".{name}" for name in reference.modules]
    for name, _, (found, *_) in reference.docstrings():
        targets.append(f".{name}")
        if inspect.isclass(found):
            targets += [f".{name}.{key}" for key in dir(found)]
    targets += [f".{name}" for name in reference.names]
    for name, docstring, parts in reference.docstrings():
        for used in references(docstring or "", *parts):
            inside = any(target.endswith(f".{used}") for target in targets)
            assert inside or OUTSIDE.match(used), f"{name} names {used}"
        plain = re.sub(r":\w+:`[^`]*`|``[^`]*``", "", docstring or "")
        for word in re.findall("`([^`]*)`", plain):
            assert re.fullmatch(r"[\w.]+", word), f"{name}: code wants two backticks"


def test_a_parameter_is_no_reference():
    text = "The `sim` of `largest`, ``not`` this, nor :eq:`eq:this`."
    assert references(text, simlib.tikhonov) == {"largest"}
    explained = (
        "`n`, `m`, `k`.\n\nReturns\n-------\nn, m : int\n\nSee Also\n---\nk : it"
    )
    assert references(explained) == {"k"}
    assert references("`limit`, `block`", simlib.Similarity.map, simlib.Similarity) == {
        "block"
    }


def test_only_names_of_others_may_lead_nowhere(reference):
    yaml = pytest.importorskip("yaml")
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    ignored = config["sphinx"]["config"]["nitpick_ignore_regex"]
    classes = [name for name in reference.names if inspect.isclass(look_up(name))]
    ours = [*reference.names, *reference.modules, "simlib.no_such_name"]
    ours += [name.split(".")[-1] for name in classes]
    for name in ours:
        for role in ("py:class", "py:exc", "py:func", "py:meth", "py:mod", "py:obj"):
            for kind, target in ignored:
                assert not (re.fullmatch(kind, role) and re.fullmatch(target, name))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
        for name in WITH_EXAMPLES
    ],
)
def test_examples(name):
    lacking = []
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(what_it_lacks(error))
    for test in doctest.DocTestFinder().find(module, globs={}):  # as it is copied
        try:
            doctest.DebugRunner().run(test)
        except doctest.UnexpectedException as failed:
            lacking.append(f"{test.name} needs {what_it_lacks(failed.exc_info[1])}")
        except doctest.DocTestFailure as failed:
            pytest.fail(f"{test.name} prints {failed.got}")
    if lacking:
        pytest.skip("; ".join(lacking))


def what_it_lacks(error):
    """Return which extra or data an example needs; raise any other error."""
    if isinstance(error, DataNotFoundError) and "SIMLIB_DATA" not in os.environ:
        return "SIMLIB_DATA"
    if extra := re.search(r"simlib\[\w+\]", str(error)):
        return extra[0]
    if isinstance(error, ModuleNotFoundError) and not error.name.startswith("simlib"):
        return error.name
    raise error


def test_the_reference_shows_what_a_class_takes():
    assert constructor(simlib.LowRank).startswith("(left, core, right=None, *, resid")
    assert constructor(look_up("simlib.regression.sketch.Sketch")) == "(m, n)"
    assert constructor(look_up("simlib.similarity.SimilarityMatrix")) == ""
