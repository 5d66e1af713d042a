"""Claims of the papers: their tests, and what the book says of every numbered item."""

import json
import math
import re
import shutil

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from press import Repository
from press.claims import (
    KINDS,
    PAPERS,
    Claim,
    Item,
    Records,
    read_claims,
    read_items,
)
from press.expressions import evaluate, fill
from support.matrices import quick

BOOK = Repository.here().book
CLAIMS = read_claims()
ITEMS = read_items()
PAGES = "".join(path.read_text("utf-8") for path in sorted(BOOK.glob("*.md")))

# What the papers' texts number, read there and not in numbered.yml.
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

NAMES = {"cur": {"e": [0.5, 0.25], "stsb": {"a b": 2, "250": None}}, "n": 3}


# Expressions


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("cur.e[1] < cur.e[0] < 1", True),
        ("cur.e[1] < cur.e[0] > 1", False),
        ("cur.stsb['a b'] ** n - 2", 6),
        ("cur.stsb[250] is None", True),
        ("[x * k for x in cur.e for k in [1, 2] if k > 1]", [1.0, 0.5]),
        ("[a + b for a, b in zip(cur.e, [1, 2])]", [1.5, 2.25]),
        ("sum(x < 0.3 for x in cur.e)", 1),
        ("median([1, None, 2])", 2),
        ("median([1, None])", math.inf),
        ("not cur.e[0] > 1 and -n < 0", True),
        ("mean(cur.e) == 0.375 or missing", True),
        ("1 and n", 3),
        ("0 or n", 3),
        ("max(\n  [1,\n 2])", 2),
    ],
)
def test_values_of_expressions(expression, value):
    assert evaluate(expression, NAMES) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')",
        "open('x')",
        "(lambda: 1)()",
        "n.__class__",
        "cur.e.append",
        "'a'.join(['b'])",
        "[].__class__.__base__",
        "f'{n}'",
        "(n := 4)",
        "max(1, 2, key=abs)",
        "{n: 1}",
        "n @ n",
        "n if n else n",
        "max(*cur.e)",
        "cur.e[0:1]",
        "b'x'",
        "n n",
        "",
        "x = 1",
        "[x for x.y in cur.e]",
        "[a for a, *b in [[1]]]",
        "[a for a, c[0] in [[1]]]",
        "9 ** 9 ** 9 > 0",
    ],
)
def test_what_does_not_belong_into_an_expression(expression):
    with pytest.raises((ValueError, LookupError)):
        evaluate(expression, NAMES)


def test_unknown_names_and_keys():
    for expression in ("unknown", "cur.unknown", "cur['x']", "cur.e[7]", "n.real"):
        with pytest.raises(LookupError):
            evaluate(expression, NAMES)


@pytest.mark.parametrize(
    "expression",
    [
        "mean([1, None])",
        "1 / (n - 3)",
        "values(n)",
        "10.0 ** 999",
        "sqrt(-n)",
        "n < None",
    ],
)
def test_an_expression_without_a_value_is_named(expression):
    with pytest.raises(ValueError, match=re.escape(f"{expression!r} has no value")):
        evaluate(expression, NAMES)


numbers = st.integers(-9, 9).map(str)
terms = st.recursive(
    numbers,
    lambda t: st.one_of(
        st.tuples(t, st.sampled_from("+-*"), t).map(lambda p: f"({' '.join(p)})"),
        st.tuples(t, st.sampled_from(["<", "<=", "==", "!=", ">", ">="]), t).map(
            lambda p: f"({' '.join(p)})"
        ),
        st.tuples(t, st.sampled_from(["and", "or"]), t).map(
            lambda p: f"bool({p[0]} {p[1]} {p[2]})"
        ),
        st.lists(t, min_size=1, max_size=3).map(lambda p: f"max([{', '.join(p)}])"),
    ),
    max_leaves=12,
)


@quick
@given(terms)
def test_expressions_have_the_value_that_python_gives_them(expression):
    assert evaluate(expression, {"bool": bool}) == eval(expression)


def test_texts_show_values_and_leave_mathematics_alone():
    text = "$K_{S_2}$: @{cur.e[0]:.1f}, @{cur.stsb['a b']:d} and @{n:,}"
    assert fill(text, NAMES) == "$K_{S_2}$: 0.5, 2 and 3"
    assert fill("@{cur['a: b']:.0f}", {"cur": {"a: b": 2.0}}) == "2"
    assert fill(r"\begin{array}{@{}l@{}}", NAMES) == r"\begin{array}{@{}l@{}}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("@{n}", r"'@{n}' wants a format, as in @{n:d}"),
        ("@{n:d} and @{cur['x}", "wants a format"),
        ("@{cur:.1f}", "'cur' cannot be shown as '.1f': unsupported format"),
    ],
)
def test_what_a_text_cannot_show_is_refused(text, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        fill(text, NAMES)


# Verdicts


def claim(test, found="", records=NAMES, kind="limit", most=()):
    tests = (test,) if isinstance(test, str) else tuple(test)
    where = ("Table 1",)
    return Claim(
        records, "x", "ray2022", where, "says", kind, "cur", found, tests, most
    )


@pytest.mark.parametrize(
    ("test", "verdict", "told"),
    [
        ("n == 3", "holds", "holds"),
        ("n == 4", "does not hold here", "does not hold here"),
        (
            ["n == 3", "[x > 0.3 for x in cur.e]"],
            "holds in part",
            "holds in 2 of 3 cases",
        ),
        ([], "not tested", "not tested"),
        ("unknown.key > 1", "not tested", "not tested"),
    ],
)
def test_a_verdict_is_what_comes_of_the_test(test, verdict, told):
    assert (claim(test).verdict, claim(test).told) == (verdict, told)


@pytest.mark.parametrize(
    ("kind", "failed"), [("error", "wrong in print"), ("misprint", "misprint")]
)
def test_what_fails_is_called_by_its_kind(kind, failed):
    assert claim("n == 3", kind=kind).verdict == "holds"
    assert claim("n == 4", kind=kind).told == failed
    some = claim(["n == 3", "n == 4"], kind=kind)
    assert (some.verdict, some.told) == (failed, f"{failed}; holds in 1 of 2 cases")
    assert claim([], kind=kind).verdict == "not tested"


def test_a_remark_is_not_judged():
    assert claim([], kind="remark").told == "remark"


def test_most_are_more_than_half_with_the_count_shown():
    two, three = ("[n > 1, n > 9]", "[n > 1, n > 2, n > 9]")
    assert claim([], most=(three,)).told == "holds (2 of 3)"
    assert claim([], most=(two,)).told == "does not hold here (1 of 2)"
    both = claim("n == 3", most=(two, three))
    assert both.told == "holds in 2 of 3 cases (1 of 2, 2 of 3)"
    with pytest.raises(ValueError, match="no condition"):
        _ = claim([], most=("n",)).verdict


def test_what_is_not_recorded_is_named():
    assert claim("unknown.key > 1").measured == "Not recorded: unknown"
    assert claim("2 * cur.e[7] > 1").measured == "Not recorded: 7 in cur.e"
    item = Item(NAMES, "ray2022", "Table 1", "", ours="@{unknown.x:d}")
    assert item.beside == ("", "not recorded: unknown")


def test_a_figure_that_no_paper_has_is_no_matter_of_recording():
    with pytest.raises(ValueError, match=r"'sms_nothing' is not in book/papers\.yml"):
        _ = claim("paper('sms_nothing') > 1", records=Records()).verdict


@pytest.mark.parametrize(
    "test",
    [
        "n",
        "[n > 1, n]",
        "cur.e",
        "[n > 1 for x in []]",
        ["n > 1", "[n > 1 for x in []]"],
        "1 and n",
    ],
)
def test_a_test_is_a_condition(test):
    with pytest.raises(ValueError, match=r"the claim 'x': .* no condition"):
        _ = claim(test).verdict


def test_an_error_names_its_claim_or_item():
    with pytest.raises(ValueError, match="the claim 'x': '1 / 0' has no value"):
        _ = claim([], found="@{1 / 0:d}").measured
    with pytest.raises(ValueError, match="ray2022, Table 1: '1 / 0' has no value"):
        _ = Item(NAMES, "ray2022", "Table 1", "", ours="@{1 / 0:d}").beside


@pytest.mark.parametrize(
    ("tests", "more", "status"),
    [
        (["n == 3", "n > 1"], {}, "reproduced"),
        (["n == 3", "n > 9"], {}, "reproduced in part"),
        (["n > 9", []], {}, "does not hold here"),
        (["n > 9"], {"corrected": "so"}, "corrected"),
        ([], {"absent": "why"}, "not reproduced here"),
        (["unknown"], {}, "not recorded"),
    ],
)
def test_the_status_of_an_item_follows_from_its_claims(tests, more, status):
    claims = tuple(claim(test) for test in tests)
    assert Item(NAMES, "ray2022", "Table 1", "", claims, **more).status == status


def test_an_item_of_which_nothing_is_known_is_refused():
    with pytest.raises(ValueError, match="no claim tells"):
        _ = Item(NAMES, "ray2022", "Table 1", "", (claim([]),)).status


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


def test_what_the_next_recording_brings_is_no_fault():
    assert to_be_recorded("")
    assert to_be_recorded("Not recorded: 'tree' in claims")
    assert to_be_recorded("not recorded: 7 in claims.sketched")
    assert not to_be_recorded("Not recorded: 'nothing' in claims")
    assert not to_be_recorded("Not recorded: unknown")


def test_names_and_papers():
    assert {c.paper for c in CLAIMS} == set(PAPERS) == set(NUMBERED)
    assert len({c.name for c in CLAIMS}) == len(CLAIMS)


def test_no_verdict_is_written_down():
    fields = {"where", "says", "kind", "chapter", "found"}
    for entries in yaml.safe_load((BOOK / "claims.yml").read_text("utf-8")).values():
        for name, entry in entries.items():
            assert fields <= entry.keys() <= fields | {"test", "most"}, name
    fields = {"what", "chapter", "theirs", "ours", "corrected", "absent"}
    for entries in yaml.safe_load((BOOK / "numbered.yml").read_text("utf-8")).values():
        for number, entry in entries.items():
            assert {"what", "chapter"} <= entry.keys() <= fields, number


@pytest.mark.parametrize("found", CLAIMS, ids=lambda c: c.name)
def test_a_claim_of_the_book(found):
    assert to_be_recorded(found.unrecorded)
    assert found.measured.strip()
    assert "@{" not in found.measured
    assert found.kind in KINDS
    if found.kind == "holds":
        assert found.verdict in ("holds", "not tested")
    if found.kind in ("error", "misprint", "limit"):
        assert found.verdict != "holds"
    if found.kind == "remark":
        assert not found.test
        assert not found.most
    assert f"(chap:{found.chapter})=" in PAGES


# Words that do not say all.
HEDGES = r"(?<!at )\bmost\b|generally|in general|typically|often|tends? to|almost all"


@pytest.mark.parametrize("found", CLAIMS, ids=lambda c: c.name)
def test_a_statement_on_most_is_judged_as_one(found):
    hedged = re.search(HEDGES, found.says, re.IGNORECASE)
    tested = found.test or found.most
    assert bool(found.most) == bool(hedged and tested)


@pytest.mark.parametrize("item", ITEMS, ids=lambda i: f"{i.paper} {i.number}")
def test_a_numbered_item_of_the_book(item):
    unrecorded = [c for c in item.claims if c.unrecorded]
    assert item.status != "not recorded" or unrecorded
    for side in item.beside:
        assert to_be_recorded(side if side.startswith("not recorded") else "")
    assert "@{" not in "".join(item.beside)
    assert f"(chap:{item.chapter})=" in PAGES


@pytest.mark.parametrize("paper", PAPERS)
def test_everything_that_a_paper_numbers_is_listed(paper):
    assert sorted(i.number for i in ITEMS if i.paper == paper) == sorted(
        NUMBERED[paper]
    )


def test_claims_name_items_that_there_are():
    kinds = re.compile(r"(Table|Figure|Algorithm|Theorem|Lemma|Fact) [\w.]+$")
    named = {(c.paper, w) for c in CLAIMS for w in c.where if kinds.match(w)}
    assert named <= {(i.paper, i.number) for i in ITEMS}


# A verdict that no record could change would be a verdict written down


class Mutated(Records):
    """The records with every number changed."""

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
            return {key: self.mutated(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.mutated(part) for part in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.change(value)
        return None if isinstance(value, bool) else value


def scattered(value):
    """Another number, unrelated to its neighbours."""
    return 1e3 * math.sin(1e4 * value + 1)


MUTATED = [
    Mutated(change)
    for change in (lambda x: -x, lambda x: math.nan, lambda x: 0 * x, scattered)
]


TESTED = [c for c in CLAIMS if (c.test or c.most) and not c.unrecorded]


@pytest.mark.parametrize("found", TESTED, ids=lambda c: c.name)
def test_a_mutated_record_changes_what_comes_of_a_test(found):
    tests = (*found.test, *found.most)
    true = [evaluate(test, found.records) for test in tests]

    def changes(records):
        try:
            return [evaluate(test, records) for test in tests] != true
        except (ArithmeticError, ValueError, TypeError):
            return True  # a logarithm of nothing, say

    assert any(map(changes, MUTATED))


def test_a_mutated_file_changes_verdict_and_status(tmp_path):
    for name in ("claims.yml", "numbered.yml", "papers.yml"):
        shutil.copy(BOOK / name, tmp_path)
    shutil.copytree(BOOK / "results", tmp_path / "results")
    path = tmp_path / "results" / "biharmonic_interpolation" / "values.json"
    content = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(content))
    of = {(i.paper, i.number): i for i in read_items(tmp_path)}
    assert of["turek2022", "Figure 5"].status == "reproduced in part"
    content["near_zero"] = [0.5]
    path.write_text(json.dumps(content))
    of = {(i.paper, i.number): i for i in read_items(tmp_path)}
    assert of["turek2022", "Figure 5"].status == "does not hold here"
    assert of["turek2022", "Figure 5"].beside[1] == "50.00 %"
    shutil.rmtree(path.parent)
    named = {c.name: c for c in read_claims(tmp_path)}
    assert named["near-zero"].verdict == "not tested"
