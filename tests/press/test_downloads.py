"""What a reader takes home: tables of recorded results, a command, pictures to move."""

import json
import re
import shlex
import shutil
from copy import deepcopy
from types import SimpleNamespace

import nbformat
from myst_nb.ext.glue import extract_glue_data_cell
from nbformat import v4

import simlib
from press import Repository, frames, provenance, read_chapter
from press.chapters import ChapterReader
from press.confirmation import Standing, Status
from press.downloads import WIDTH, command, links, record_files, run_it
from press.references import chapters_by_import
from press.repository import write_atomically
from press.sphinx_extension import _NEEDS, _append_box, _finish
from press.standalone import named, standalone
from support.books import HEAD

BOOK = Repository.here()


def test_records_are_offered_as_files():
    files = record_files(BOOK, "queries")
    folder = "results/queries"
    assert files[-2:] == [f"{folder}/splits.csv", f"{folder}/provenance.json"]
    assert all((BOOK.book / file).is_file() for file in files)
    assert links(files[-2:-1]) == "{download}`splits.csv <results/queries/splits.csv>`"
    assert record_files(BOOK, "index") == []


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
    notebook.metadata.kernelspec = read_chapter(BOOK.source("core")).metadata.kernelspec
    nbformat.write(notebook, source)
    shown = command("core", PARAMETERS)
    assert max(map(len, shown.splitlines())) <= WIDTH + 2
    name, chapter, target, *options = shlex.split(shown.replace("\\\n", ""))
    assert (name, chapter, target) == ("papermill", "book/core.md", "core.ipynb")
    target = tmp_path / target
    papermill.main(
        [str(source), str(target), *options, "--prepare-only"], standalone_mode=False
    )
    values = {}
    exec(nbformat.read(target, as_version=4).cells[1].source, values)
    assert {name: values[name] for name in PARAMETERS} == PARAMETERS


def test_a_chapter_ends_with_its_own_command(tmp_path):
    def notebook(code="", **values):
        cell = nbformat.v4.new_code_cell(code, metadata={"tags": ["parameters"]})
        made = nbformat.v4.new_notebook(cells=[cell])
        noted = {"source_map": [7], "press": {"inputs": {"parameters": values}}}
        made.metadata = nbformat.from_dict(noted)
        return made

    page = tmp_path / "executed/quick/core.ipynb"
    (tmp_path / "book").mkdir()
    for name in ("_toc.yml", "book/core.md", "book/profiles.yml"):
        shutil.copy(BOOK.root / name, tmp_path / name)
    chapter = notebook("n: int = 90\ndraws: int = 3")
    _append_box(chapter, notebook(draws=3, n=40), page)
    _, box = chapter.cells
    assert "papermill book/core.md core.ipynb -p n 40 -p draws 3\n" in box.source
    assert "{download}`core.ipynb </executed/quick/core.ipynb>`" in box.source
    assert box.cell_type == "markdown"
    assert chapter.metadata.source_map == [7, 7]
    assert "recorded run" not in box.source
    row = Status("queries", None, None, Standing("fresh"), provenance("queries"))
    told = run_it(row, {"n": 40}, [])
    commit = provenance("queries")["commit"]
    assert f"commit `{commit[:7]}`; its record is fresh." in told
    colophon = notebook()  # has no parameters
    _append_box(colophon, notebook(), page)
    assert len(colophon.cells) == 1


def executed():
    """A notebook whose text holds a value, a table and a figure of its cells."""
    markdown = """Error {glue:text}`error:.2f` on {glue:text}`where`{glue:text}`note`.

```{glue:figure} front
:name: fig-front
:alt: A line, rising

What to see: {glue:text}`where`.
```

```{glue:md} table
:format: myst
```
"""
    values = {
        "error": {"text/plain": "0.12345"},
        "where": {"application/papermill.record/text/plain": "'a sphere'"},
        "note": {"text/markdown": ", *so*"},
        "front": {
            "image/svg+xml": "<svg/>",
            "image/png": "iVBO",
            "text/plain": "<Figure>",
        },
        "table": {"text/markdown": "| a |\n|--:|\n| 1 |", "text/plain": "<Markdown>"},
    }
    cells = [v4.new_markdown_cell(markdown), v4.new_code_cell("glue(...)")]
    cells[1].outputs = [
        v4.new_output("display_data", data, metadata={"scrapbook": {"name": name}})
        for name, data in values.items()
    ]
    for k, cell in enumerate(cells):
        cell.id = f"cell{k}"
    return v4.new_notebook(cells=cells)


def told(role, target):
    return f"({target[-1]})" if role == "eq" else f"the {role} of {target}"


def taken_home(notebook, **macros):
    return standalone(notebook, told, macros, "*Needs a checkout.*")


def test_a_notebook_that_is_taken_home_has_what_was_glued_in_its_text():
    found = taken_home(executed())
    text = """Error 0.12 on a sphere, *so*.

![A line, rising](attachment:front.png)

What to see: a sphere.

| a |
|--:|
| 1 |


*Needs a checkout.*"""
    assert found.cells[0].source == text
    [(name, drawn)] = found.cells[0].attachments.items()
    assert (name, drawn) == ("front.png", {"image/png": "iVBO"})
    shown = [mime for output in found.cells[1].outputs for mime in output.data]
    figure = ["image/svg+xml", "image/png", "text/plain"]
    assert [m for m in shown if "papermill" not in m] == figure
    values = deepcopy(found.cells[1])  # MyST-NB takes them for the text, and out
    assert len(extract_glue_data_cell(values)) == 5
    assert ["image/svg+xml" in output.data for output in values.outputs] == [True]
    nbformat.validate(found)


def test_references_in_a_table_that_a_cell_shows():
    notebook = executed()
    table = "| {numref}`{number} <chap:core>` | {math}`x^2` |"
    shown = v4.new_output("display_data", {"text/markdown": table})
    notebook.cells[1].outputs.append(shown)
    last = standalone(notebook, named, {}).cells[1].outputs[-1]
    assert last.data["text/markdown"] == "| core | $x^2$ |"


def test_a_figure_of_the_text_stands_in_a_notebook_once():
    notebook = executed()
    notebook.cells[1].metadata.tags = ["remove-output"]
    found = taken_home(notebook)
    assert "attachment:front.png" in found.cells[0].source
    assert found.cells[1].outputs == []
    assert len(notebook.cells[1].outputs) == 5


def test_what_no_cell_has_glued_yet_stays_as_it_is():
    notebook = executed()
    notebook.cells[1].outputs = notebook.cells[1].outputs[:1]
    found = standalone(notebook, named, {}).cells[0].source
    assert found.startswith("Error 0.12 on {glue:text}`where`{glue:text}`note`.\n\n```")
    assert found.endswith("```{glue:md} table\n:format: myst\n```\n")


def test_papermill_writes_the_numbers_of_a_chapter_into_its_text(tmp_path):
    starts = {"book/core.md": "Error 0.12", "a.ipynb": "Error {glue"}
    for source, start in starts.items():
        notebook = executed()
        notebook.metadata.papermill = {"input_path": source}
        path = tmp_path / "made.ipynb"
        ChapterReader.write(nbformat.writes(notebook), str(path))
        made = nbformat.read(path, as_version=4)
        assert made.cells[0].source.startswith(start)


def test_a_reference_without_a_page_is_its_text_or_its_label():
    assert named("ref", "chap:core") == "core"
    assert named("ref", "below <sec:search>") == "below"
    assert named("numref", "{number} <chap:core>") == "core"
    assert named("eq", "eq:core") == "(core)"
    assert named("cite:p", "wang2016,yadav2022") == "(wang2016,yadav2022)"
    assert named("doc", "colophon") == "colophon"


def formulas(source):
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell(source)])
    made = taken_home(notebook, R="\\mathbb{R}").cells[0].source
    return made.removesuffix("\n\n*Needs a checkout.*")


def test_a_notebook_that_is_taken_home_has_formulas_that_jupyter_knows():
    text = (
        "(sec:one)=\n## One\n\n```{math}\n:label: eq:one\n:nowrap:\n\na^2 \\,\nb\n```\n"
    )
    text += "As $a \\in \\R$ in {eq}`eq:one`.\n\n```{math}\nc\n```\nEnd"
    made = "## One\n\n$$\na^2 \\,\nb\n\\tag{e}\n$$\n"
    made += "As $a \\in \\mathbb{R}$ in (e).\n\n$$\nc\n$$\nEnd"
    assert formulas(text) == made


def test_a_notebook_that_is_taken_home_has_no_roles_and_no_boxes_of_myst():
    assert formulas("See {ref}`chap:one`, {cite:p}`a,b`; `{x}`, {math}`x_i`.") == (
        "See the ref of chap:one, the cite:p of a,b; `{x}`, $x_i$."
    )
    inner = ":::{dropdown} More\n:open:\nOne.\n\nTwo.\n:::\n"
    folded = "<details>\n<summary>More</summary>\n\nOne.\n\nTwo.\n\n</details>"
    assert formulas(inner) == f"{folded}\n"
    outer = f"::::{{prf:algorithm}} A walk\n:label: alg\n\nBegin.\n\n{inner}::::\nEnd"
    assert formulas(outer) == f"**Algorithm** A walk\n\nBegin.\n\n{folded}\nEnd"
    assert formulas(":::{note}\nWell.\n:::") == "**Note**\n\nWell."
    figure = "```{figure} a.png\n:name: fig\n\nWhat to see.\n```\n```python\nx\n```"
    assert formulas(figure) == "What to see.\n```python\nx\n```"
    assert formulas("```{raw} html\n:file: a.html\n```") == "*On the page.*"


def test_a_built_book_gets_mathjax_and_notebooks_and_loads_no_fonts_before(tmp_path):
    kept = '<link rel="preload" as="script" href="a.js" />\n'
    out = tmp_path / "out"
    path, download = out / "book/page.html", out / "_downloads/1a2b/core.ipynb"
    words = "Newer words, {glue:text}`error:.2f`.\n\n```{code-cell}\nglue(...)\n```\n"
    notebook = tmp_path / "executed/standard/core.ipynb"
    for file, text in {
        path: f'  <link rel="preload" as="font" href="a.woff2" />\n{kept}',
        download: "as it was executed",
        notebook: nbformat.writes(executed()),
        tmp_path / "_toc.yml": "format: jb-book\nroot: book/core\n",
        tmp_path / "book/core.md": f"{HEAD}{words}",
    }.items():
        write_atomically(file, text)
    html = SimpleNamespace(format="html")
    config = SimpleNamespace(mathjax3_config={"tex": {"macros": {}}})
    app = SimpleNamespace(srcdir=tmp_path, outdir=out, builder=html, config=config)
    _finish(app, None)
    assert path.read_text() == kept
    offered = nbformat.read(out / "_sources/book/core.ipynb", as_version=4)
    assert offered.cells[0].source == f"# A chapter\n\nNewer words, 0.12.\n\n{_NEEDS}"
    shown = {mime for output in offered.cells[1].outputs for mime in output.data}
    assert "image/svg+xml" in shown
    nbformat.validate(offered)
    assert nbformat.read(download, as_version=4) == offered
    assert (out / "_static/mathjax/tex-chtml.js").is_file()


def test_functions_know_the_chapters_that_import_them(tmp_path):
    chapters = {
        "one": "from simlib import sicur, tikhonov as core\nimport numpy",
        "two": "from simlib.approximation import sicur",
        "words": None,
    }
    for name, code in chapters.items():
        text = f"```{{code-cell}} ipython3\n{code}\n```\n" if code else "Words.\n"
        write_atomically(tmp_path / f"book/{name}.md", f"{HEAD}{text}")
    toc = "format: jb-book\nroot: book/words\n"
    toc += "chapters: [{file: book/one}, {file: book/two}]\n"
    write_atomically(tmp_path / "_toc.yml", toc)
    assert chapters_by_import(Repository(tmp_path)) == {
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


def test_the_pictures_of_a_page_are_a_slider_that_needs_nothing_else():
    """They are drawn by a script beside the book."""
    page = (BOOK.book / "_static/landmarks.html").read_text(encoding="utf-8")
    kept = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    labels, sources = zip(*json.loads(kept[1]), strict=True)
    assert [*labels] == sorted(labels, key=int)
    assert f'<img src="{sources[-1]}" alt="The Stanford bunny' in page
    assert all(source.startswith("data:image/webp;base64,") for source in sources)
    text = BOOK.source("geodesic_distances").read_text(encoding="utf-8")
    assert ":file: _static/landmarks.html\n" in text
