"""A function at every point of a grid."""

import os
import threading
import time
from functools import partial
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from press import press
from study import Kept, sweep
from study.kept import _imported
from support.books import HEAD, PARAMETERS, cell, edit, new_book


def squares(n, draw):
    yield {"power": 1, "value": n + draw}
    yield {"power": 2, "value": (n + draw) ** 2}


def test_rows_in_the_order_of_the_points_with_their_arguments():
    table = sweep(squares, n=(10, 20), draw=range(2))
    expected = pd.DataFrame(
        [[n, d, p, (n + d) ** p] for n in (10, 20) for d in (0, 1) for p in (1, 2)],
        columns=["n", "draw", "power", "value"],
    )
    pd.testing.assert_frame_equal(table, expected)


def test_one_row_may_be_returned_and_may_name_its_arguments_itself():
    table = sweep(lambda a, b: {"b": b.shape[0]}, a=["x"], b=[np.zeros(3), np.ones(4)])
    assert table.to_dict("list") == {"a": ["x", "x"], "b": [3, 4]}


def test_numbers_of_numpy_are_arguments():
    axes = {"share": np.linspace(0.1, 0.3, 2), "draw": np.arange(2)}
    axes |= {"size": [np.float32(2)], "real": [np.True_]}
    table = sweep(lambda **_: {"value": 1}, **axes)
    assert list(table) == ["share", "draw", "size", "real", "value"]
    assert table.groupby("draw").value.sum().tolist() == [2, 2]


def fails(n, name):
    raise ZeroDivisionError("at last")


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_error_names_its_point(n_jobs):
    with pytest.raises(ZeroDivisionError, match="at last") as caught:
        sweep(fails, n=[3], name=["rte"], n_jobs=n_jobs)
    assert "at n=3, name='rte'" in caught.value.__notes__


def test_slips_are_told():
    with pytest.raises(TypeError, match="is a text, and no list"):
        sweep(abs, share="[0.1, 0.2]")
    with pytest.raises(TypeError, match=r"pass \['rte'\]"):
        sweep(squares, n="rte")
    with pytest.raises(TypeError, match="run gives int, but a row is a mapping"):
        sweep(lambda n: [n], n=[1])


FACTOR = 1


class Doubled:
    """Of this module, as of a notebook."""

    factor = 2


def inner(n):
    return n * FACTOR * Doubled.factor


def counted(n):
    os.environ["SWEEP_CALLS"] += "."
    return {"value": inner(n) / 3, "none": None}


@pytest.fixture
def called(monkeypatch):
    """Return a function that tells how often `counted` ran since it last told so."""
    monkeypatch.setenv("SWEEP_CALLS", "")

    def since():
        number = len(os.environ["SWEEP_CALLS"])
        os.environ["SWEEP_CALLS"] = ""
        return number

    return since


def test_what_is_finished_is_kept(tmp_path, called, monkeypatch):
    first = sweep(counted, n=[1, 2], keep=tmp_path)
    assert called() == 2
    again = sweep(counted, n=[1, 2, 3], keep=tmp_path)
    assert called() == 1
    pd.testing.assert_frame_equal(again[:2], first, check_dtype=False)
    monkeypatch.setattr("test_sweeps.FACTOR", 2)
    assert sweep(counted, n=[1], keep=tmp_path).value.tolist() == [4 / 3]
    assert called() == 1
    file = next(tmp_path.iterdir())
    file.write_bytes(b"x")  # cut off
    sweep(counted, n=[1, 2, 3], keep=tmp_path)
    assert called() >= 1


def fails_late(n):
    if n == 0:
        time.sleep(1)  # the others are done by then
        raise ZeroDivisionError
    return {"value": n}


def test_what_is_finished_beside_a_point_that_fails_is_kept(tmp_path):
    with pytest.raises(ZeroDivisionError):
        sweep(fails_late, n=range(6), keep=tmp_path, n_jobs=2)
    assert len([*tmp_path.iterdir()]) == 5


def test_a_sweep_that_was_stopped_goes_on(tmp_path, called, monkeypatch):
    real = inner

    def stops(n):
        if n == 3:
            raise KeyboardInterrupt
        return real(n)

    stops.__qualname__ = "inner"
    monkeypatch.setattr("test_sweeps.inner", stops)
    with pytest.raises(KeyboardInterrupt):
        sweep(counted, n=[1, 2, 3, 4], keep=tmp_path)
    assert called() == 3
    assert len([*tmp_path.iterdir()]) == 2


def test_partial_arguments_count(tmp_path, called):
    def run(n, factor):
        return counted(n * factor)

    for factor in (1, 2, 1):
        sweep(partial(run, factor=factor), n=[1], keep=tmp_path)
    assert called() == 3  # the last took the file of the one before


def test_what_cannot_be_compared_is_named(tmp_path):
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"whether lock \(lock\) is still the same"):
        sweep(lambda n: {"v": bool(lock)}, n=[1], keep=tmp_path)


def test_an_argument_that_changes_is_the_one_that_was_given(tmp_path):
    def extended(values):
        values.append(1)
        return len(values)

    kept = Kept(extended, tmp_path)
    assert [kept([0]), kept([0, 1]), kept([0])] == [2, 3, 2]


def test_functions_of_one_line_are_two(tmp_path):
    rules = [lambda n: n + 1, lambda n: n + 2]
    for _ in range(2):
        table = sweep(lambda rule: {"v": rule(1)}, rule=rules, keep=tmp_path)
        assert table.v.tolist() == [2, 3]


def test_a_result_that_no_file_holds_is_given_all_the_same(tmp_path):
    with pytest.warns(UserWarning, match="a result is not kept: cannot pickle"):
        assert Kept(lambda n: (n, threading.Lock()), tmp_path)(3)[0] == 3


NOTEBOOK = """import functools
import os
from study import Kept

class Base:
    shift = 1

class Rule(Base):
    def __init__(self, by):
        self.by = by
    def __call__(self, n):
        return n * self.by + self.shift + self.more
    @property
    def more(self):
        return 10

@functools.cache
def root(n):
    return n + 100

def leaf(n):
    return n + 1000

rule, table = Rule(2), {"leaf": leaf}

def run(n, rule=rule):
    os.environ["SWEEP_CALLS"] += "."
    return rule(n) + root(n) + table["leaf"](n)

"""


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("shift = 1", "shift = 2", 1),
        ("n * self", "n - self", 1),
        ("return 10", "return 20", 1),
        ("n + 100\n", "n + 200\n", 1),
        ("n + 1000", "n + 2000", 1),
        ("Rule(2)", "Rule(3)", 1),
        ("Rule(2)", "Rule(1 + 1)", 0),
    ],
)
def test_classes_and_functions_of_a_notebook_count_by_their_text(
    tmp_path, called, old, new, again
):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.push({"folder": tmp_path})
    for text in (NOTEBOOK, NOTEBOOK.replace(old, new)):
        shell.run_cell(text).raise_error()
        shell.run_cell("value = Kept(run, folder)(1); right = run(1)").raise_error()
        assert shell.user_ns["value"] == shell.user_ns["right"]
    assert called() == 3 + again


def test_the_object_of_a_method_counts(tmp_path):
    for factor in (1, 2):
        assert Kept(Scaled(factor).of, tmp_path)(3) == 3 * factor
        assert Kept(Scaled(factor), tmp_path)(3) == 3 * factor


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def of(self, n):
        return n * self.factor

    __call__ = of


def test_a_function_is_called_once_for_the_same_arguments(tmp_path, called):
    kept = Kept(power, tmp_path, ignore=["n_jobs"])
    x = np.arange(3.0)
    for y in (kept(x), kept(x, 2, n_jobs=2), kept(base=x, exponent=2)):
        np.testing.assert_array_equal(y, [0, 1, 4])
    assert called() == 1
    kept(x, 3)
    kept(x + 1)
    assert called() == 2
    assert kept.__name__ == "power"


def power(base, exponent=2, n_jobs=1):
    os.environ["SWEEP_CALLS"] += "."
    return base**exponent


CODE = """from pathlib import Path

from study import sweep
from tiny.lower import double


def run(k):
    with open('calls', 'a') as file:
        file.write('.')
    return {'value': double(k)}


table = sweep(run, k=range(n), keep='executed/kept')
print(table.value.tolist())"""


@pytest.mark.slow
def test_in_a_chapter_the_code_that_ran_decides(tmp_path):
    book = new_book(tmp_path)
    book.source("alpha").write_text(HEAD + PARAMETERS + cell(CODE))
    lower = book.root / "tiny/lower.py"

    def made():
        book.notebook("alpha", "standard").unlink(missing_ok=True)
        press(["alpha"], repository=book)
        calls = book.root / "calls"
        number = len(calls.read_text()) if calls.exists() else 0
        calls.unlink(missing_ok=True)
        return number

    assert made() == 3
    for old, new, again in [
        ("return BASE", "return 5", 0),
        ("Twice n.", "Two n.", 0),
        ("2 * n", "n + n", 3),
    ]:
        edit(lower, old, new)
        assert made() == again
    edit(book.source("alpha"), "n: int = 3", "n: int = 5")
    assert made() == 2
    edit(book.source("alpha"), "'value': ", "'value': 1 + ")
    assert made() == 5
    edit(book.root / "requirements.lock", "2", "3")
    assert made() == 5


def test_a_folder_that_is_a_file_loses_no_result(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="a result is not kept: "):
        assert Kept(lambda n: 2 * n, tmp_path / "file")(3) == 6


def test_a_module_that_is_reached_through_a_link_is_imported(tmp_path, monkeypatch):
    (tmp_path / "root").mkdir()
    (tmp_path / "root/reached_by_link.py").write_text("")
    (tmp_path / "link").symlink_to("root")
    monkeypatch.syspath_prepend(tmp_path / "link")
    import_module("reached_by_link")
    assert [*_imported(tmp_path / "root")] == ["reached_by_link.py"]
