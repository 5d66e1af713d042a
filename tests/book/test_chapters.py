"""What every chapter of the book keeps to."""

import ast
import re
from functools import cache

import pytest

from press import Repository, read_chapter
from press.chapters import cell_code, code_cells, parameters, tags
from press.repository import PROFILES, read_yaml
from support.processes import python

BOOK = Repository.here()
PAGES = BOOK.pages()
WIDTH = 88
FOLDS = {"hide-input", "hide-cell", "remove-input", "remove-cell"}

# Pages whose one cell of code is hidden.
FOLDED = {"colophon", "index"}
READ = [page for page in PAGES if page not in FOLDED]

GLUE_ROLE = re.compile(r"\{glue(?::\w*)?\}`([^`]+)`")
GLUE_DIRECTIVE = re.compile(
    r"^[`:]{3,}\{glue(?::\w*)?\} *(\S+)(?:\n:doc: *(\S+))?", re.MULTILINE
)


@cache
def notebook(page):
    return read_chapter(BOOK.source(page))


@cache
def code(page):
    cells = [cell_code(cell.source) for cell in code_cells(notebook(page))]
    assert None not in cells, "a cell is not Python"
    return ast.Module([node for cell in cells for node in ast.parse(cell).body], [])


@cache
def glued(page):
    """Return patterns of the keys that a chapter glues; f-strings become wildcards."""
    patterns = []
    for node in ast.walk(code(page)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "glue":
            key = node.args[0]
            patterns.append("")
            for part in key.values if isinstance(key, ast.JoinedStr) else [key]:
                plain = isinstance(part, ast.Constant)
                patterns[-1] += re.escape(part.value) if plain else ".+"
    return patterns


def pasted(page):
    """Yield the page and key of each glued value that a chapter shows."""
    text = BOOK.source(page).read_text(encoding="utf-8")
    for match in GLUE_ROLE.finditer(text):
        document, _, key = match[1].rpartition("::")
        yield BOOK.chapter_name(document) or page, key.partition(":")[0]
    for match in GLUE_DIRECTIVE.finditer(text):
        key, document = match.groups()
        yield BOOK.chapter_name(document) if document else page, key


def test_every_page_of_the_book_folder_is_listed_once():
    files = {path.relative_to(BOOK.book) for path in BOOK.book.rglob("*.md")}
    assert {path.with_suffix("").as_posix() for path in files} == set(PAGES)
    assert len(set(PAGES)) == len(PAGES)


def test_every_chapter_has_its_question_and_its_quick_parameters():
    texts = {page: BOOK.source(page).read_text(encoding="utf-8") for page in PAGES}
    labels = {re.search(r"^\((chap:[\w-]+)\)=$", t, re.M) for t in texts.values()}
    _, _, asked = texts["index"].partition("\n## The chapters\n")
    assert {label[1] for label in labels if label} == {
        *re.findall(r"chap:[\w-]+", asked)
    }
    declaring = {page for page in PAGES if parameters(read_chapter(BOOK.source(page)))}
    assert declaring <= BOOK.overrides("quick").keys()


def test_sources_that_chapters_cite_are_listed():
    listed = (BOOK.book / "references.bib").read_text(encoding="utf-8")
    texts = "".join(BOOK.source(page).read_text(encoding="utf-8") for page in PAGES)
    cited = ",".join(re.findall(r"\{cite:\w+\}`([^`]+)`", texts)).split(",")
    keys = re.findall(r"^@\w+\{([^,]+),", listed, re.M)
    assert {*map(str.strip, cited)} <= {*keys}


@pytest.mark.parametrize("page", PAGES)
def test_a_chapter_with_code_has_one_parameters_cell(page):
    cells = code_cells(notebook(page))
    if page not in FOLDED and cells:  # which only show
        assert len([cell for cell in cells if "parameters" in tags(cell)]) == 1
        declared = parameters(notebook(page)).keys()
        assert declared
        for profile in PROFILES:
            assert BOOK.overrides(profile).get(page, {}).keys() <= declared


@pytest.mark.parametrize("page", PAGES)
def test_code_fits_the_page_and_defines_no_classes(page):
    lines = [line for c in code_cells(notebook(page)) for line in c.source.splitlines()]
    assert [line for line in lines if len(line) > WIDTH] == []
    assert not [n for n in ast.walk(code(page)) if isinstance(n, ast.ClassDef)]


@pytest.mark.parametrize("page", PAGES)
def test_shown_values_are_glued(page):
    missing = [
        (where, key)
        for where, key in pasted(page)
        if not any(re.fullmatch(pattern, key) for pattern in glued(where))
    ]
    assert missing == []


def test_papers_figures_say_where_they_are_printed():
    for key, entry in read_yaml(BOOK.book / "papers.yml").items():
        assert {"value", "source", "table"} <= set(entry), key


def test_equations_that_docstrings_name_are_in_the_book():
    pages = "".join(BOOK.source(page).read_text(encoding="utf-8") for page in PAGES)
    labels = set(re.findall(r"^:label: (eq:[\w-]+)", pages, re.MULTILINE))
    package = BOOK.root / BOOK.package
    text = "".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    named = set(re.findall(r":eq:`(eq:[\w-]+)`", text))
    assert named
    assert named - labels == set()


@pytest.mark.parametrize("page", PAGES)
def test_figures_have_captions_and_alternative_texts(page):
    for cell in code_cells(notebook(page)):
        if "plt.show()" in cell.source:
            options = cell.metadata.get("mystnb", {})
            assert options.get("figure", {}).get("caption"), cell.source
            assert options.get("figure", {}).get("name"), cell.source
            assert options.get("image", {}).get("alt"), cell.source


@pytest.mark.parametrize("page", PAGES)
def test_chapters_are_in_the_normal_form_of_jupytext(page):
    """What an editor with jupytext saves unchanged stays as it is."""
    import jupytext

    text = BOOK.source(page).read_text(encoding="utf-8")
    if "{code-cell}" in text:
        saved = jupytext.writes(jupytext.reads(text, "md:myst"), "md:myst")
        assert saved == text


@pytest.mark.parametrize("page", PAGES)
def test_assertions_say_in_words_what_did_not_come_out(page):
    nodes = list(ast.walk(code(page)))
    silent = [n for n in nodes if isinstance(n, ast.Assert) and n.msg is None]
    assert list(map(ast.unparse, silent)) == []
    for node in nodes:
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "expect":
            says = node.args[1]
            last = says.values[-1] if isinstance(says, ast.JoinedStr) else says
            assert last.value.endswith("."), ast.unparse(node)


def folds(cell):
    return FOLDS.intersection(tags(cell))


@pytest.mark.parametrize("page", READ)
def test_at_most_the_parameters_and_one_other_cell_are_folded(page):
    cells = code_cells(notebook(page))
    folded = [cell for cell in cells if folds(cell)]
    assert sum("parameters" not in tags(cell) for cell in folded) <= 1
    assert not any({"remove-input", "remove-cell"} & folds(cell) for cell in folded)
    every, hidden = (
        sum(len(cell.source.splitlines()) for cell in some) for some in (cells, folded)
    )
    assert hidden <= every / 5


@pytest.mark.parametrize("page", READ)
def test_a_chapter_uses_nothing_that_it_does_not_show(page, tmp_path):
    cells = code_cells(notebook(page))
    path = tmp_path / "page.py"
    path.write_text("\n".join(cell_code(c.source) for c in cells), encoding="utf-8")
    check = "ruff check --isolated --select F821,F401,F811"
    run = python("-m", *check.split(), path)
    assert run.returncode == 0, run.stdout
