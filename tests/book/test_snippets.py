"""The Python that chapters show and do not execute, run as it stands."""

import re
import tempfile
import warnings

import numpy as np
import pytest

from press import Repository
from simlib import Similarity
from simlib.datasets import bumpy_sphere, swiss_roll
from support.examples import exercises, python_blocks, solutions
from support.processes import python

BOOK = Repository.here()
TEXTS = {page: BOOK.source(page).read_text(encoding="utf-8") for page in BOOK.pages()}
SOLVED = {page: solutions(text) for page, text in TEXTS.items() if solutions(text)}
WIDTH, LONGEST, LINES = 88, 30, 35  # the last of a page, without solutions

# They need a network or a service, for which test_recipes has stand-ins.
STANDING_IN = {"many_sentences", "queries", "recipes"}
# Of the first page, which are those of the README: test_readme.
FIRST = {"index"}


def shown(page):
    """Return what a page shows besides its solutions, with the output or ""."""
    solved = {block for text in solutions(TEXTS[page]) for block in python_blocks(text)}
    return [block for block in python_blocks(TEXTS[page]) if block not in solved]


def whole(page):
    """Return the examples of a page that stand alone, with their outputs."""
    return [block for block in shown(page) if block[1]]


def parts(page):
    """Return those that need what the page has defined."""
    return [code for code, output in shown(page) if not output]


WHOLE = [
    (page, k) for page in TEXTS if page not in FIRST for k in range(len(whole(page)))
]


def surfaces():
    points, angles = swiss_roll(300, rng=0)
    landmarks = np.arange(0, 300, 15)
    given = {"points": points, "landmarks": landmarks, "values": angles[landmarks]}
    mesh = bumpy_sphere(2)
    return given | {"vertices": mesh.vertices, "faces": mesh.faces}


def documents():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    from simlib import SimilarityFeatures
    from simlib.datasets import bundled_documents
    from simlib.text.wmd import WordMoverDistance

    given = {"gamma": 1.0, "make_pipeline": make_pipeline, "LinearSVC": LinearSVC}
    given |= {"StandardScaler": StandardScaler, "WordMoverDistance": WordMoverDistance}
    given |= {"np": np, "SimilarityFeatures": SimilarityFeatures}
    bags, vectors, labels = bundled_documents()
    return given | {"documents": bags[:120], "vectors": vectors, "labels": labels[:120]}


def neighbors():
    from sklearn.cluster import HDBSCAN
    from sklearn.manifold import Isomap

    with warnings.catch_warnings(action="ignore"):  # what umap misses
        from umap import UMAP

    from simlib.neighbors import SimilarityNeighbors

    x = np.random.default_rng(0).standard_normal((150, 3))
    sim = Similarity(x, lambda a, b: np.exp(-np.linalg.norm(a - b)))
    made = SimilarityNeighbors(sim, n_neighbors=15, cheap=x, random_state=0)
    given = {"HDBSCAN": HDBSCAN, "Isomap": Isomap, "UMAP": UMAP, "np": np}
    return given | {"neighbors": made.fit(np.arange(150))}


def nodes():
    from simlib.biharmonic import biharmonic_operator, graph_laplacian, interpolation
    from simlib.datasets import planar_roads

    M = biharmonic_operator(graph_laplacian(planar_roads(400, rng=0)[0]))
    return {"M": M, "b": np.arange(0, 400, 10), "interpolation": interpolation}


GIVEN = {  # what a page has defined where it shows a part
    "biharmonic_interpolation": surfaces,
    "documents": documents,
    "neighbors": neighbors,
    "scale": nodes,
}
COMPILED = ["neighbors"]  # UMAP, for half a minute


def run(code, name, names=None):
    names = dict(names or {})
    exec(compile(code, name, "exec"), names)
    return names


def test_everything_shown_is_run():
    pages = {page for page in TEXTS if parts(page)}
    assert pages == GIVEN.keys() | STANDING_IN
    assert {page for page in TEXTS if whole(page)} == FIRST | {p for p, _ in WHOLE}


@pytest.mark.parametrize(("page", "k"), WHOLE)
def test_an_example_prints_what_is_shown(page, k, capsys):
    code, output = whole(page)[k]
    run(code, page)
    assert capsys.readouterr().out == output


@pytest.mark.filterwarnings("ignore:Precomputed sparse input was not sorted")
@pytest.mark.filterwarnings("ignore:using precomputed metric")
@pytest.mark.parametrize(
    "page",
    [page for page in GIVEN if page not in COMPILED]
    + [pytest.param(page, marks=pytest.mark.slow) for page in COMPILED],
)
def test_a_part_runs_where_the_page_has_defined_the_rest(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = GIVEN[page]()
    [code] = parts(page)
    made = run(code, page, names)
    if page == "biharmonic_interpolation":
        assert np.allclose(made["everywhere"][made["landmarks"]], made["values"])
    if page == "scale":
        assert (tmp_path / "folder").is_dir()


@pytest.mark.parametrize(
    ("page", "k"), [(page, k) for page in SOLVED for k in range(len(SOLVED[page]))]
)
def test_a_solution_runs_and_shows_something(page, k, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    [(code, _)] = python_blocks(SOLVED[page][k])
    run(code, f"{page}, solution {k + 1}")
    assert capsys.readouterr().out


def test_the_chapters_that_are_used_have_exercises():
    used = {"many_sentences", "neighbors", "duplicates", "queries", "error_bars"}
    used |= {"which_method", "recipes", "nystrom", "core", "biharmonic_interpolation"}
    assert used | {"least_squares"} <= SOLVED.keys()


@pytest.mark.parametrize("page", SOLVED)
def test_exercises_are_short_and_solutions_hold_what_they_say(page):
    asked = exercises(TEXTS[page])
    assert len(SOLVED[page]) == len(re.findall(r"^\*\*.+\*\* ", asked, re.MULTILINE))
    assert len(asked.splitlines()) <= LINES
    for text in SOLVED[page]:
        code, _, said = text.removeprefix("```python\n").partition("```\n")
        lines = code.splitlines()
        assert any(line.lstrip().startswith("assert ") for line in lines)
        assert said.strip()
        assert len(lines) <= LONGEST
        assert max(map(len, lines)) <= WIDTH


def test_solutions_import_what_they_use_and_no_more(tmp_path):
    for page, texts in SOLVED.items():
        for k, text in enumerate(texts):
            [(code, _)] = python_blocks(text)
            (tmp_path / f"{page}_{k}.py").write_text(code, encoding="utf-8")
    for task in (["check", "--select", "E,F,W,B,SIM"], ["format", "--check", "--diff"]):
        made = python("-m", "ruff", *task, "--isolated", tmp_path)
        assert made.returncode == 0, made.stdout
