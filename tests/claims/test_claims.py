"""Claims of the papers: their tests, and what the book says of every numbered item."""

import math
import re
import shutil
from dataclasses import replace
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import eigvalsh

from claims import KINDS, PAPERS, Claim, Item, Records, read_claims, read_items, table
from claims.ray2022 import DEFAULT, PART, at
from claims.turek2022 import residual_of_kept
from claims.verdicts import Record, median, most, typical, where
from press import Repository, provenance
from simlib.regression import ExponentialFeatures

BOOK = Repository.here().book
CLAIMS = read_claims()
ITEMS = read_items()
PAGES = "".join(path.read_text("utf-8") for path in sorted(BOOK.glob("*.md")))

# What the papers' texts number.
THEOREMS = """
Theorem 1.4, Theorem 1.5, Theorem 1.6, Theorem 4.1, Theorem 4.2, Fact A.3, Fact B.3,
Lemma B.4, Lemma C.4, Fact D.1, Lemma D.2, Lemma D.3, Lemma D.4, Lemma E.1, Lemma E.2,
Lemma F.1, Lemma F.2, Lemma G.1, Theorem G.2, Theorem G.3, Theorem H.1, Lemma H.2,
Theorem H.4, Theorem H.5, Theorem H.6, Theorem H.7
"""
NUMBERED = {
    "ray2022": [
        "Algorithm 1",
        *(f"Table {k}" for k in range(1, 8)),
        *(f"Figure {k}" for k in range(1, 10)),
    ],
    "song2024": [
        *(f"Algorithm {k}" for k in range(1, 9)),
        *(" ".join(name.split()) for name in THEOREMS.split(",")),
    ],
    "turek2022": [
        *(f"Algorithm {k}" for k in (1, 2)),
        *(f"Figure {k}" for k in range(1, 9)),
    ],
}


class Given(Records):
    """Records that are given."""

    def __init__(self, values):
        super().__init__()
        self.values_given = Record(values, "")

    def __getitem__(self, name):
        return super().__getitem__(name) if name == "paper" else self.values_given[name]


RECORDS = Given({"cur": {"e": [0.5, 0.25], "stsb": {"a b": 2, "250": None}}, "n": 3})


# Records


def test_what_is_under_a_key_is_an_attribute():
    cur = Record({"e": [{"x": 1}], "stsb": {"a b": 2, "250": None, "items": 3}}, "cur")
    assert cur.e[0].x == cur["e"][0]["x"] == 1
    assert cur.stsb["a b"] == 2
    assert cur.stsb[250] is None
    assert cur.stsb["items"] == 3
    for missing, told in (
        (lambda: cur.unknown, "'unknown' in cur"),
        (lambda: cur.stsb[7], "7 in cur.stsb"),
        (lambda: cur.e[0].y, r"'y' in cur.e\[0\]"),
    ):
        with pytest.raises(LookupError, match=told):
            missing()


def test_a_run_that_came_to_nothing_counts_as_infinite():
    assert median([1, None, 2]) == 2
    assert median(v for v in (1, None)) == math.inf


def test_the_median_over_some_rows_of_a_table():
    table = pd.DataFrame({"m": ["a", "a", "b"], "k": [1, 2, 1], "error": [1.0, 2, 9]})
    assert len(where(table, m="a")) == 2
    assert typical(table, m="a") == 1.5
    assert typical(table, "k", m="b", k=1) == 1


# Verdicts


def claim(cases, found="", kind="limit", records=RECORDS):
    """A claim whose function returns these cases, called first if they are one."""
    function = cases if callable(cases) else lambda: (cases, found)
    return Claim(function, ("Table 1",), kind, "cur", records)


def unknown(unknown):
    return unknown.key > 1, ""


@pytest.mark.parametrize(
    ("cases", "verdict", "told"),
    [
        (True, "holds", "holds"),
        (False, "does not hold here", "does not hold here"),
        ([True, [True, False]], "holds in part", "holds in 2 of 3 cases"),
        (lambda: "why not", "not tested", "not tested"),
        (unknown, "not tested", "not tested"),
        (lambda n, cur: ([n == 3, cur.e[1] < n], ""), "holds", "holds"),
    ],
)
def test_a_verdict_is_what_comes_of_the_test(cases, verdict, told):
    assert (claim(cases).verdict, claim(cases).told) == (verdict, told)


@pytest.mark.parametrize(
    ("kind", "failed"), [("error", "wrong in print"), ("misprint", "misprint")]
)
def test_what_fails_is_called_by_its_kind(kind, failed):
    assert claim(True, kind=kind).verdict == "holds"
    assert claim(False, kind=kind).told == failed
    some = claim([True, False], kind=kind)
    assert (some.verdict, some.told) == (failed, f"{failed}; holds in 1 of 2 cases")
    assert claim(lambda: "", kind=kind).verdict == "not tested"
    assert claim(False, kind="remark").told == "remark"


def test_most_are_more_than_half_with_the_count_shown():
    two, three = most([True, False]), most(n < 3 for n in (1, 2, 9))
    assert claim(three).told == "holds (2 of 3)"
    assert claim(two).told == "does not hold here (1 of 2)"
    both = claim([True, two, three])
    assert both.told == "holds in 2 of 3 cases (1 of 2, 2 of 3)"


@pytest.mark.parametrize("cases", [3, [True, 3], [], [True, []], None, [[]]])
def test_a_test_is_a_condition(cases):
    with pytest.raises(ValueError, match="is no condition"):
        _ = claim(cases).verdict
    if isinstance(cases, list):
        with pytest.raises(ValueError, match="is no condition"):
            most(cases)


def test_what_is_not_recorded_is_named():
    assert claim(unknown).measured == "Not recorded: 'unknown' in "
    lacking = claim(lambda cur: ([cur.stsb[7] > 1], ""))
    assert lacking.measured == "Not recorded: 7 in .cur.stsb"
    item = Item(lambda cur: ("", f"{cur.x:d}"), "Table 1", "cur", records=RECORDS)
    assert item.beside == ("", "not recorded: 'x' in .cur")
    assert claim(unknown, records=Records()).measured == "Not recorded: unknown"


def test_a_figure_that_no_paper_has_is_no_matter_of_recording():
    with pytest.raises(ValueError, match=r"'sms_nothing' is not in book/papers\.yml"):
        _ = claim(lambda paper: (paper("sms_nothing") > 1, "")).verdict


@pytest.mark.parametrize(
    ("cases", "more", "status"),
    [
        ([True, True], {}, "reproduced"),
        ([True, False], {}, "reproduced in part"),
        ([False, lambda: ""], {}, "does not hold here"),
        ([False], {"corrected": "so"}, "corrected"),
        ([], {"absent": "why"}, "not reproduced here"),
        ([unknown], {}, "not recorded"),
    ],
)
def test_the_status_of_an_item_follows_from_its_claims(cases, more, status):
    claims = tuple(map(claim, cases))
    item = Item(lambda: None, "Table 1", "cur", claims=claims, **more)
    assert item.status == status
    with pytest.raises(ValueError, match="no claim tells"):
        _ = replace(item, claims=(claim(lambda: ""),), corrected="", absent="").status


# The book's


def to_be_recorded(told):
    """Whether nothing is missing, or a chapter records it when it is next recorded."""
    written = re.fullmatch(r"[Nn]ot recorded: (.+) in (\w+)(.*)", told)
    if not written:
        return not told
    key, chapter, rest = written.groups()
    key = (rest.lstrip(".").split("[")[0] if rest else key).strip("'")
    page = BOOK / f"{chapter}.md"
    return page.is_file() and f'record("{key}"' in page.read_text("utf-8")


def test_names_and_papers():
    assert {c.paper for c in CLAIMS} == set(PAPERS) == set(NUMBERED)
    assert len({c.name for c in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("found", CLAIMS, ids=lambda c: c.name)
def test_a_claim_of_the_book(found):
    assert to_be_recorded(found.unrecorded)
    assert found.measured.strip()
    assert found.kind in KINDS
    if found.kind == "holds":
        assert found.verdict in ("holds", "not tested")
    if found.kind in ("error", "misprint", "limit"):
        assert found.verdict != "holds"
    if found.kind == "remark":
        assert not found.cases
    assert f"(chap:{found.chapter})=" in PAGES


# Words that do not say all.
HEDGES = r"(?<!at )\bmost\b|generally|in general|typically|often|tends? to|almost all"


@pytest.mark.parametrize("found", CLAIMS, ids=lambda c: c.name)
def test_a_statement_on_most_is_judged_as_one(found):
    hedged = re.search(HEDGES, found.says, re.IGNORECASE)
    assert bool(found.counts) == bool(hedged and found.cases)


@pytest.mark.parametrize("item", ITEMS, ids=lambda i: f"{i.paper} {i.number}")
def test_a_numbered_item_of_the_book(item):
    assert item.status
    for side in item.beside:
        assert to_be_recorded(side if side.startswith("not recorded") else "")
    assert f"(chap:{item.chapter})=" in PAGES


@pytest.mark.parametrize("paper", PAPERS)
def test_a_table_has_all_of_a_paper(paper):
    head, _, *lines = table(paper).data.splitlines()
    assert head == "| Where | The paper | This book | Verdict | Chapter |"
    some = [x for x in (*ITEMS, *CLAIMS) if x.paper == paper]
    assert len(lines) == len(some)
    for line, entry in zip(lines, some, strict=True):
        cells = re.split(r"(?<!\\) \| ", line)
        assert len(cells) == 5
        assert f"<chap:{entry.chapter}>" in cells[4]
        assert (entry.status if isinstance(entry, Item) else entry.told) == cells[3]


@pytest.mark.parametrize("paper", PAPERS)
def test_everything_that_a_paper_numbers_is_listed(paper):
    assert sorted(i.number for i in ITEMS if i.paper == paper) == sorted(
        NUMBERED[paper]
    )


def test_claims_name_items_that_there_are():
    kinds = re.compile(r"(Table|Figure|Algorithm|Theorem|Lemma|Fact) [\w.]+$")
    named = {(c.paper, w) for c in CLAIMS for w in c.where if kinds.match(w)}
    assert named <= {(i.paper, i.number) for i in ITEMS}


def test_the_page_of_ray_et_al_has_the_sizes_of_the_records():
    page = (BOOK / "ray_reexamined.md").read_text("utf-8")
    told = re.search(
        r"Of STS-B the records of (.+?) have ([\d,]+) sentences, that of (.+?) has "
        r"([\d,]+), and this page has (\d+); at the same share",
        page,
    )
    assert told[1] == "{ref}`chap:nystrom` and {ref}`chap:sentences`"
    assert told[3] == "{ref}`chap:core`"
    all_of_them, core, here = (int(told[k].replace(",", "")) for k in (2, 4, 5))
    records = Records()
    known = records["sentences"].references
    assert set(where(known, items="stsb").sentences) == {all_of_them}
    for chapter, size in (("nystrom", all_of_them), ("core", core), ("sentences", 0)):
        n = provenance(chapter)["parameters"]["n"]
        assert min(n, all_of_them) == (size or n)
    assert typical(records["ray_reexamined"].matrices, "items", matrix="stsb") == here
    errors = where(records["core"].errors, matrix="stsb", method="tikhonov", share=0.1)
    more = {"items": "stsb", "form": "tikhonov", "share": 0.1}
    assert where(records["sentences"].calls, **more).error.mean() < errors.error.mean()


def test_no_score_of_ray_et_al_reaches_that_of_one_answer_for_all():
    claim = next(c for c in CLAIMS if c.name == "baselines")
    assert "the paper's Table 3 none reaches" in claim.measured
    assert "and 3 reach" in claim.measured
    sets = where(Records()["ray_reexamined"].sets, matrix="mrpc")
    scores = {
        form: [score for score, _ in Records()["paper"](form).mrpc.values()]
        for form in ("scores_sms_nystrom", "scores_stacur", "scores_sicur")
    }
    above = {f for f in scores if max(scores[f]) > sets["accuracy of yes"].max()}
    assert above == {"scores_sicur"}
    assert min(scores["scores_sicur"]) > sets["accuracy of yes"].max()


def test_what_the_page_of_ray_et_al_says_to_hold_does():
    page = (BOOK / "ray_reexamined.md").read_text("utf-8")
    assert "* **What holds**: similarity matrices of texts have relatively few" in page
    of = {c.name: c for c in CLAIMS if c.paper == "ray2022"}
    for name in ("few_negative", "sicur_good", "rectangular"):
        assert of[name].verdict == "holds"
    matched = of["sms_everywhere"].cases[: 3 * len(PART)]  # on what is nearly definite
    assert all(matched)
    for m in ("stsb", "mrpc"):  # at most twice, except on STS-B from 30 % on
        core = Records()["core"]
        for share in PART:
            twice = 2 * at(core, m, "tikhonov", share)
            assert (at(core, m, "sms_nystrom", share) > twice) == (
                m == "stsb" and share >= 0.3
            )
    few = Records()["ray_reexamined"].shift
    few = where(few, rule=DEFAULT)
    assert few[few.matrix.isin(["stsb", "mrpc"])].error.max() < 0.5


def test_a_claim_of_ray_et_al_is_tested_on_what_it_is_about():
    of = {c.name: c for c in CLAIMS if c.paper == "ray2022"}
    assert "cortex" in of["hardest"].measured
    assert len(of["hardest"].cases) == 3 * len(PART)  # texts alone
    assert of["hardest"].verdict == "holds"
    assert len(of["improves"].cases) == 12  # every factor of at least one
    assert len(of["less_than_exact"].cases) == 16
    assert "of 18 means of ours" in of["cap"].measured  # of the paper's methods
    assert "0.23 to 0.84 of the time" in of["wme_time"].measured


@pytest.mark.parametrize("draw", range(4))
def test_a_close_sketch_of_algorithm_8_leaves_more_than_y(draw):
    claim = next(c for c in CLAIMS if c.name == "residual")
    assert "48 points on a sphere in three dimensions" in claim.measured
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((48, 3)), rng.standard_normal(48)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    sketch = ExponentialFeatures(128 * 48, kind="shared_tree", random_state=draw)
    Z, K = sketch.fit_transform(X), np.exp(X @ X.T)
    edges = eigvalsh(Z @ Z.T, K)
    assert edges[0] > 0.5
    assert edges[-1] < 1.5
    left = K @ np.linalg.solve(Z @ Z.T, y) - y
    assert np.linalg.norm(left) > 10 * np.linalg.norm(y)


def test_what_is_kept_of_the_interpolation_solves_the_sparse_coding_problem():
    whole, half, few = (residual_of_kept(300, 20, kept) for kept in (20, 10, 2))
    assert whole < 1e-8
    assert whole < half < few
    assert few > 0.1


# A verdict that no record could change would be a verdict written down


AXES = "draw position share rank landmarks condition j size cutoff"  # find rows


class Mutated(Records):
    """The records with every number changed that was measured."""

    def __init__(self, change):
        super().__init__()
        self.change, self.seen = change, {}

    def __getitem__(self, name):
        if name == "paper":
            return lambda key: self.mutated(super(Mutated, self).__getitem__(name)(key))
        if name not in self.seen:
            self.seen[name] = self.mutated(super().__getitem__(name))
        return self.seen[name]

    def mutated(self, value):
        if isinstance(value, dict):
            changed = {key: self.mutated(part) for key, part in value.items()}
            return Record(changed, "mutated")
        if isinstance(value, list):
            return [self.mutated(part) for part in value]
        if isinstance(value, pd.DataFrame):
            found = value.select_dtypes("number").columns
            found = found.difference(AXES.split()) if len(found) > 1 else found
            return value.assign(**{c: value[c].map(self.mutated) for c in found})
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.change(value)
        return None if isinstance(value, bool) else value


def scattered(value):
    """Another number, unrelated to its neighbours."""
    return 1e3 * math.sin(1e4 * value + 1)


MUTATED = [
    Mutated(change)
    for change in (
        *(lambda x: -x, lambda x: math.nan, lambda x: 0 * x, lambda x: x + 1),
        scattered,
    )
]


TESTED = [c for c in CLAIMS if c.cases and signature(c.function).parameters]
TESTED = [c for c in TESTED if c.name != "residual"]  # its cases are computed


@pytest.mark.parametrize("found", TESTED, ids=lambda c: c.name)
def test_a_mutated_record_changes_what_comes_of_a_test(found):
    def changes(records):
        try:
            now = replace(found, records=records)
            return not now.unrecorded and now.outcome[0] != found.outcome[0]
        except (ArithmeticError, ValueError, TypeError, Warning):
            return False  # the cases were not reached

    assert any(map(changes, MUTATED))


def test_a_mutated_file_changes_verdict_and_status(tmp_path):
    shutil.copy(BOOK / "papers.yml", tmp_path)
    shutil.copytree(BOOK / "results", tmp_path / "results")
    path = tmp_path / "results" / "biharmonic_interpolation" / "entries.csv"
    content = pd.read_csv(path)
    of = {(i.paper, i.number): i for i in read_items(tmp_path)}
    assert of["turek2022", "Figure 5"].status == "reproduced in part"
    content.assign(**{"near zero": 0.05}).to_csv(path, index=False)
    of = {(i.paper, i.number): i for i in read_items(tmp_path)}
    assert of["turek2022", "Figure 5"].status == "does not hold here"
    assert of["turek2022", "Figure 5"].beside[1] == "5.00 %"
    shutil.rmtree(path.parent)
    named = {c.name: c for c in read_claims(tmp_path)}
    assert named["near_zero"].verdict == "not tested"
