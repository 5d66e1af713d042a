"""Recorded results: where they come from, and that they can be had again."""

import json
import re

import numpy as np
import pytest

from simlib import (
    METHODS,
    Similarity,
    estimate_error,
    gallery,
    largest,
    relative_error,
    sicur,
    sms_nystrom,
    tikhonov,
)
from simlib.press import Repository, recorded

BOOK = Repository.here()
FILES = sorted((BOOK.book / "results").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_results_say_how_they_came_about(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    provenance = content["provenance"]
    assert content["values"]
    assert re.fullmatch("[0-9a-f]{40}", provenance["commit"])
    assert re.fullmatch("[0-9a-f]{64}", provenance["notebook"])
    assert provenance["parameters"] == (BOOK.overrides("full").get(path.stem) or {})
    assert all(provenance["data"].values()), "recorded without a data set"
    assert provenance["machine"]["cpu"]
    assert provenance["executed"]


def test_every_chapter_that_reads_its_results_has_them():
    readers = {
        page
        for page in BOOK.pages()
        if f'recorded("{page}")' in BOOK.source(page).read_text(encoding="utf-8")
    }
    assert readers
    assert readers <= {path.stem for path in FILES}


@pytest.fixture(scope="module")
def mrpc():
    """Return MRPC at the size of the full profile, which is all of it."""
    return gallery.load("mrpc", 2176)


@pytest.mark.usefixtures("data")
def test_the_table_of_sms_nystrom_can_be_derived_again(mrpc):
    table = recorded("sms_nystrom")["table5"]["mrpc"]
    for s, values in table.items():
        columns = round(int(s) / 816 * mrpc.similarity.n)
        for k in (0, len(values) - 1):
            answer = sms_nystrom(mrpc.similarity.fork(), columns, rng=k)
            again = relative_error(mrpc.matrix, answer)
            np.testing.assert_allclose(again, values[k], rtol=1e-6)


@pytest.mark.usefixtures("data")
def test_the_table_of_the_cur_family_can_be_derived_again(mrpc):
    table = recorded("cur")["table5"]["mrpc 250"]
    rows = round(250 / 816 * mrpc.similarity.n)
    for k in (0, len(table["sicur"]) - 1):
        answer = sicur(mrpc.similarity.fork(), rows // 2, rng=k)
        again = relative_error(mrpc.matrix, answer)
        np.testing.assert_allclose(again, table["sicur"][k], rtol=1e-6)


@pytest.mark.usefixtures("data")
def test_the_comparison_at_equal_cost_can_be_derived_again(mrpc):
    recorded_errors = recorded("cur")["errors"]["mrpc"]["tikhonov"]
    n = mrpc.similarity.n
    s = largest("tikhonov", n, int(0.2 * n * (n + 1) / 2))  # the third budget
    for k in (0, 1):
        answer = tikhonov(mrpc.similarity.fork(), s, rng=k)
        again = relative_error(mrpc.matrix, answer)
        np.testing.assert_allclose(again, recorded_errors[2][k], rtol=1e-4)


@pytest.mark.usefixtures("data")
def test_the_tables_of_the_tikhonov_core_can_be_derived_again():
    example = gallery.load("edit", 1400)
    n = example.similarity.n
    for table, label, options in (
        ("duel", "tikhonov", {}),
        ("kept", "overlay", {"overlay": True}),
        ("kept", "both", {"nugget": True, "overlay": True}),
    ):
        s = largest("tikhonov", n, int(0.1 * n * (n + 1) / 2), **options)
        answer = tikhonov(example.similarity.fork(), s, rng=0, **options)
        again = relative_error(example.matrix, answer)
        known = recorded("tikhonov")[table]["edit"][label][0]
        np.testing.assert_allclose(again, known, rtol=1e-4)


@pytest.mark.usefixtures("data")
def test_the_grid_of_all_methods_can_be_derived_again(mrpc):
    table = recorded("which_core")["errors"]
    n = mrpc.similarity.n
    for k, budget in enumerate((0.05, 0.1)):
        for name in ("tikhonov", "sms_nystrom", "stacur"):
            s = largest(name, n, int(budget * n * (n + 1) / 2))
            answer = METHODS[name].function(mrpc.similarity.fork(), s, rng=3)
            again = relative_error(mrpc.matrix, answer)
            np.testing.assert_allclose(again, table[name]["mrpc"][k][3], rtol=1e-4)
    assert table["rpcholesky"]["mrpc"][0][0] is None  # refused, as not semidefinite


@pytest.mark.usefixtures("data")
def test_the_gap_to_the_optimum_can_be_derived_again(mrpc):
    """Median over the draws of the error over that of the best rank, at 10 %."""
    gaps = recorded("optimal")["gaps"]
    n = mrpc.similarity.n
    s = largest("tikhonov", n, int(0.1 * n * (n + 1) / 2))
    tail = np.sort(np.abs(np.linalg.eigvalsh(mrpc.matrix)))[: n - s]
    best = np.linalg.norm(tail) / np.linalg.norm(mrpc.matrix)
    errors = [
        relative_error(mrpc.matrix, tikhonov(mrpc.similarity.fork(), s, rng=k))
        for k in range(10)
    ]
    row = gallery.NAMES.index("mrpc")
    again = np.median(errors) / best
    np.testing.assert_allclose(again, gaps["tikhonov"][row][1], rtol=1e-4)


@pytest.mark.usefixtures("data")
def test_the_intervals_can_be_derived_again():
    example = gallery.load("rte", 1000)
    sim = Similarity.from_matrix(example.matrix)
    s = largest("tikhonov", sim.n, int(0.1 * sim.n * (sim.n + 1) / 2))
    estimate = estimate_error(sim, tikhonov(sim, s, rng=0), rng=1000)
    low, high, _, value, heavy = recorded("error_bars")["intervals"]["rte"][0]
    again = estimate.low, estimate.high, estimate.value
    np.testing.assert_allclose(again, (low, high, value), rtol=1e-4)
    assert estimate.heavy_tailed == bool(heavy)


@pytest.mark.usefixtures("data")
def test_the_facts_of_a_matrix_can_be_derived_again(mrpc):
    facts = recorded("similarity_matrices")["facts"]["mrpc"]
    values = np.linalg.eigvalsh(mrpc.matrix)
    negative = np.linalg.norm(values[values < 0]) / np.linalg.norm(values)
    np.testing.assert_allclose(facts["negative_mass"], negative, rtol=1e-9)
    np.testing.assert_allclose(facts["smallest"], values[0], rtol=1e-9)
    tail = np.sort(np.abs(values))[:-50]
    best = np.linalg.norm(tail) / np.linalg.norm(values)
    np.testing.assert_allclose(facts["best"], best, rtol=1e-9)
