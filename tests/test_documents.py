"""The chapter on documents embeds the test with training documents alone."""

import ast
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from simlib.press import Repository, read_chapter
from simlib.press.chapters import code_cells, parse_cell

N_TRAIN, N_TEST, RANK = 40, 12, 10
LANDMARKS = ["sms_nystrom", "stacur", "sicur", "sicur_sym", "tikhonov", "raw"]
EVERYTHING = [*LANDMARKS, "optimal", "wmd", "wme"]


@pytest.fixture(scope="module")
def chapter():
    """What the chapter defines, but for what it computes."""
    page = read_chapter(Repository.here().source("document_classification"))
    nodes = [n for cell in code_cells(page) for n in parse_cell(cell.source).body]
    wanted = {"FUNCTIONS", "approximate", "spectral", "features", "scaled", "embed"}

    def names(node):
        match node:
            case ast.ImportFrom(module=module) if module.startswith("simlib"):
                return wanted
            case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                return {name}
        return set()

    chosen = [node for node in nodes if names(node) & wanted]
    assert len([n for n in chosen if not isinstance(n, ast.ImportFrom)]) == len(wanted)
    space = {"np": np, "seed": 0}
    exec(compile(ast.Module(chosen, []), page.metadata.get("path", "?"), "exec"), space)
    return SimpleNamespace(**space)


def documents(last=None):
    """Distances of points; `last` moves the last one, which is in the test."""
    points = np.random.default_rng(1).standard_normal((N_TRAIN + N_TEST, 3))
    others = np.random.default_rng(2).standard_normal((RANK, 3))
    if last is not None:
        points[-1] = last
    return SimpleNamespace(
        D=cdist(points, points[:N_TRAIN]),
        random=cdist(points, others),
        pool=N_TRAIN,
        m=N_TRAIN,
    )


@pytest.mark.parametrize("method", EVERYTHING)
def test_a_test_document_changes_no_other(chapter, method):
    Z, moved = (
        chapter.embed(documents(last), method, 1.0, RANK, 3) for last in (None, 2.0)
    )
    np.testing.assert_array_equal(moved[:-1], Z[:-1])
    assert np.abs(moved[-1] - Z[-1]).max() > 1e-3


@pytest.mark.parametrize("method", LANDMARKS)
def test_a_test_document_is_compared_with_landmarks_only(chapter, method):
    used = 0
    expected = chapter.embed(documents(), method, 1.0, RANK, 3)
    for column in range(N_TRAIN):
        data = documents()
        data.D[N_TRAIN:, column] = np.nan
        Z = chapter.embed(data, method, 1.0, RANK, 3)
        np.testing.assert_array_equal(Z[:N_TRAIN], expected[:N_TRAIN])
        used += bool(np.isnan(Z[N_TRAIN:]).any())
    # The signed features of SiCUR are made of its rows, as many as features.
    assert used == RANK == expected.shape[1]
