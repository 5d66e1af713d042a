"""What a reader takes home: tables of recorded results, a command, pictures to move."""

import io
import json
import re
import shlex
import shutil
from types import SimpleNamespace

import nbformat
import pytest
from sphinx.util.docutils import docutils_namespace

import simlib
from press import Repository, frames, provenance, read_chapter, recorded
from press.confirmation import Standing, Status
from press.downloads import WIDTH, command, record_files, run_it, write_records
from press.references import uses
from press.sphinx_extension import Frames, _append_box, _leave_out_preloads
from press.style import markdown_table

BOOK = Repository.here()
HEAD = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {name: python3, display_name: Python 3, language: python}
---

"""


def test_the_book_holds_the_files_of_all_records(tmp_path):
    write_records(BOOK, tmp_path)
    files = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.*")}
    assert files == {name for page in BOOK.pages() for name in record_files(BOOK, page)}
    text = (tmp_path / "results/cur/values.json").read_text(encoding="utf-8")
    assert json.loads(text)["errors"] == recorded("cur", "errors")
    assert json.loads((tmp_path / "results/cur/provenance.json").read_text())["commit"]


PARAMETERS = {
    "n": 9,
    "share": 1e-05,
    "fair": True,
    "none": None,
    "mesh": "a 'bunny'",
    "sizes": [0.05, 1e-05, 2],
    "names": ["white", "it's"],
    "word": "10",
    "draws": {"twitter": 3, "größe": 4},
    "empty": {},
}


def test_the_command_sets_the_parameters_that_it_shows(tmp_path):
    from papermill.cli import papermill

    source = tmp_path / "in.ipynb"
    code = nbformat.v4.new_code_cell("x = 1", metadata={"tags": ["parameters"]})
    notebook = nbformat.v4.new_notebook(cells=[code])
    notebook.metadata.kernelspec = read_chapter(BOOK.source("cur")).metadata.kernelspec
    nbformat.write(notebook, source)
    shown = command("cur", PARAMETERS)
    assert max(map(len, shown.splitlines())) <= WIDTH + 2
    name, chapter, target, *options = shlex.split(shown.replace("\\\n", ""))
    assert (name, chapter, target) == ("papermill", "book/cur.md", "cur.ipynb")
    target = tmp_path / target
    papermill.main(
        [str(source), str(target), *options, "--prepare-only"], standalone_mode=False
    )
    values = {}
    exec(nbformat.read(target, as_version=4).cells[1].source, values)
    assert {name: values[name] for name in PARAMETERS} == PARAMETERS


def test_a_chapter_ends_with_its_own_command(tmp_path):
    def notebook(*code, **values):
        cells = [
            nbformat.v4.new_code_cell(line, metadata={"tags": ["parameters"]})
            for line in code
        ]
        made = nbformat.v4.new_notebook(cells=cells)
        made.metadata = nbformat.from_dict(
            {"source_map": [7], "press": {"inputs": {"parameters": values}}}
        )
        return made

    page = tmp_path / "executed/quick/cur.ipynb"
    (tmp_path / "book").mkdir()
    for name in ("_toc.yml", "book/cur.md", "book/profiles.yml"):
        shutil.copy(BOOK.root / name, tmp_path / name)
    chapter = notebook("n: int = 90\ndraws: int = 3")
    _append_box(chapter, notebook(draws=3, n=40), page)
    _, box = chapter.cells
    assert "papermill book/cur.md cur.ipynb -p n 40 -p draws 3\n" in box.source
    assert box.cell_type == "markdown"
    assert chapter.metadata.source_map == [7, 7]
    assert "recorded run" not in box.source
    files = record_files(BOOK, "cur")
    row = Status("cur", None, None, Standing("fresh"), provenance("cur"))
    told = run_it("cur", {"n": 40}, row, files)
    assert "../results/cur/values.json" in told
    assert f"commit `{provenance('cur')['commit'][:7]}`; its record is fresh." in told
    colophon = notebook()  # has no parameters
    _append_box(colophon, notebook(), page)
    assert colophon.cells == []


def test_only_the_preloading_of_fonts_is_left_out(tmp_path):
    kept = '<link rel="preload" as="script" href="a.js" />\n'
    path = tmp_path / "book" / "page.html"
    path.parent.mkdir()
    path.write_text(f'  <link rel="preload" as="font" href="a.woff2" />\n{kept}')
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html"))
    _leave_out_preloads(app, None)
    assert path.read_text() == kept


def test_functions_know_the_chapters_that_import_them(tmp_path):
    chapters = {
        "one": "from simlib import sicur, tikhonov as core\nimport numpy",
        "two": "from simlib.approximation import sicur",
        "words": None,
    }
    (tmp_path / "book").mkdir()
    for name, code in chapters.items():
        text = f"```{{code-cell}} ipython3\n{code}\n```\n" if code else "Words.\n"
        (tmp_path / "book" / f"{name}.md").write_text(f"{HEAD}{text}", encoding="utf-8")
    toc = "root: book/words\nchapters: [{file: book/one}, {file: book/two}]\n"
    (tmp_path / "_toc.yml").write_text(toc, encoding="utf-8")
    assert uses(Repository(tmp_path)) == {
        id(simlib.sicur): ["one", "two"],
        id(simlib.tikhonov): ["one"],
    }


def test_pictures_wait_under_a_slider_and_the_last_is_seen():
    import matplotlib.pyplot as plt

    pictures = {label: plt.figure(figsize=(1, 1)) for label in ("10", "</script>")}
    page = frames(pictures, name="<landmarks>", alt='A "plain" square').data
    assert plt.get_fignums() == []
    kept = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    labels, sources = zip(*json.loads(kept[1]), strict=True)
    assert labels == ("10", "</script>")
    assert f'<img src="{sources[-1]}" alt="A &quot;plain&quot; square">' in page
    assert all(source.startswith("data:image/webp;base64,") for source in sources)
    assert "<label hidden>&lt;landmarks&gt; <input" in page
    assert 'max="1" value="1"' in page
    assert "http" not in re.sub(r"base64,[^\"]*", "", page)
    again = {label: plt.figure(figsize=(1, 1)) for label in pictures}
    assert frames(again, name="<landmarks>", alt='A "plain" square').data == page


def test_another_picture_may_be_seen_first():
    from matplotlib.figure import Figure

    pictures = {n: Figure(figsize=(1, 1)) for n in (1, 2, 3)}
    page = frames(pictures, name="landmarks", alt="Nothing", first=2).data
    kept = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert f'<img src="{json.loads(kept[1])[1][1]}"' in page
    assert 'max="2" value="1"' in page
    assert "<output>2</output>" in page


def test_a_slider_needs_a_picture():
    with pytest.raises(ValueError, match="no picture"):
        frames({}, name="landmarks", alt="Nothing")
    with pytest.raises(ValueError, match="no picture with the label 3"):
        frames({2: None}, name="landmarks", alt="Nothing", first=3)


def built(folder, text):
    """What Sphinx makes of a page with the directive `frames`, and what it warns of."""
    from sphinx.application import Sphinx

    pages = folder / "book"
    pages.mkdir()
    (pages / "index.rst").write_text(f"A page\n======\n\n{text}", encoding="utf-8")
    for name in ("10.webp", "9.webp", "other.png"):
        (pages / "_static" / name).parent.mkdir(exist_ok=True)
        (pages / "_static" / name).touch()
    said = io.StringIO()
    with docutils_namespace():
        app = Sphinx(
            folder, None, folder / "out", folder / "out", "html", status=None,
            warning=said, confoverrides={"root_doc": "book/index"},
        )  # fmt: skip
        app.add_directive("frames", Frames, override=True)
        app.build()
    return (folder / "out/book/index.html").read_text(encoding="utf-8"), said.getvalue()


def test_files_wait_under_a_slider_in_the_order_of_their_numbers(tmp_path):
    page, said = built(
        tmp_path, ".. frames:: *.webp\n   :slider: n\n   :alt: Dots\n\n   *Below.*\n"
    )
    assert said == ""
    assert '<img src="../_static/10.webp" alt="Dots">' in page
    assert '[["9", "../_static/9.webp"], ["10", "../_static/10.webp"]]' in page
    assert "<em>Below.</em>" in page


@pytest.mark.parametrize(
    "text", ["*.webp\n   :slider: n", "*.jpg\n   :slider: n\n   :alt: a"]
)
def test_a_slider_says_what_it_wants(tmp_path, text):
    _, said = built(tmp_path, f".. frames:: {text}\n")
    assert "wants :slider:, :alt: and a pattern" in said


def test_numbers_in_tables_have_a_minus_at_which_no_line_breaks():
    data = markdown_table(["x", "y"], [[-0.5, 4.6e-06], ["a-b", "4e-15 (2)"]]).data
    assert "| −0.500 | 4.60e−06 |\n| a-b | 4e−15 (2) |" in data
    assert "| – |" in markdown_table(["x"], [[None]]).data


def test_tables_align_numbers_right_and_words_left():
    rows = [["Nyström", 0.5, "1 core", "yes"], ["CUR", None, "2 cores", "no, a sum"]]
    lines = markdown_table(["method", "error", "run on", "exact"], rows).data
    assert lines.splitlines()[1] == "| :-- | --: | --: | :-- |"
    assert markdown_table(["x", "y"], []).data.splitlines()[1] == "| :-- | --: |"
