"""Recorded results: where they come from, and what else says the same."""

import re
import subprocess

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from press import Repository, paper, provenance, recorded
from press.chapters import parameters, parse_chapter
from press.inputs import Inputs
from press.results import read_part
from simlib import METHODS, Similarity
from simlib.approximation import fit
from simlib.neighbors import pair_search, promise
from simlib.neighbors.nearest import estimated_recall
from study import gallery
from study.datasets import load_cross_encoder, load_recipes, load_word_vectors

BOOK = Repository.here()
CHAPTERS = sorted(path.name for path in (BOOK.book / "results").glob("*"))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_results_say_how_they_came_about(chapter):
    assert recorded(chapter)
    made = provenance(chapter)
    assert re.fullmatch("[0-9a-f]{40}", made["commit"])
    assert re.fullmatch("[0-9a-f]{64}", made["notebook"])
    assert all(made["data"].values()), "recorded without a data set"
    assert made["machine"]["cpu"]
    assert made["executed"]
    assert made["code"]


@pytest.mark.parametrize("chapter", ["core", "anchored"])
def test_the_size_of_a_record_is_told(chapter):
    told = "with at most 1,000 items in the recorded run"
    assert told in BOOK.source(chapter).read_text("utf-8")
    assert provenance(chapter)["parameters"]["n"] == 1000


def test_words_about_the_sizes_of_turek_and_huth():
    """5 to 100 entries in a row, eight kernels ten times; 10 to 2,000 landmarks."""
    made = provenance("scale")["parameters"]
    assert (min(made["kept"]), max(made["kept"])) == (5, 100)
    assert (made["kernels"], made["repeats"]) == (8, 10)
    landmarks = provenance("geodesic_distances")["parameters"]["sizes"]
    assert (min(landmarks), max(landmarks)) == (10, 2000)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_record_has_a_probe_of_the_same_code(chapter):
    made = provenance(chapter)
    probe = read_part(BOOK.results(chapter), "probe.json")
    assert probe["parameters"].keys() == made["parameters"].keys()
    assert all(probe["data"].values())
    assert probe["entries"]
    full, quick = (Inputs.read(part).code for part in (made, probe))
    both = [
        (units[name].removeprefix("-"), quick[path][name].removeprefix("-"))
        for path, units in full.items()
        for name in units.keys() & quick.get(path, {}).keys()
    ]
    assert len(both) > 50
    assert all(one == other for one, other in both)


def defaults(text):
    """Return the parameters that the text of a chapter declares, with their values."""
    return parameters(parse_chapter(text))


@pytest.mark.parametrize("page", BOOK.pages())
def test_the_full_profile_leaves_no_parameter_to_the_chapter(page):
    declared = defaults(BOOK.source(page).read_text(encoding="utf-8"))
    assert set(BOOK.overrides("full").get(page, {})) == set(declared)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_results_have_the_parameters_of_the_full_profile(chapter):
    """Those that the profile did not set are what the chapter of the time declared."""
    made = provenance(chapter)
    known, full = made["parameters"], BOOK.overrides("full")[chapter]
    assert known == {name: full[name] for name in known}
    if set(known) == set(full):
        return
    source = f"{made['commit']}:{BOOK.relative(BOOK.source(chapter))}"
    command = ["git", "-C", str(BOOK.root), "show", source]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    if shown.returncode:
        pytest.skip(f"the history does not reach {made['commit'][:12]}")
    assert {**defaults(shown.stdout), **known} == full


def test_every_chapter_that_reads_its_results_has_them():
    readers = {
        page
        for page in BOOK.pages()
        if f'recorded("{page}")' in BOOK.source(page).read_text(encoding="utf-8")
    }
    assert readers
    missing = sorted(readers - {*CHAPTERS})
    assert not missing, f"press --profile full --record {' '.join(missing)}"
    assert {*CHAPTERS} <= {*BOOK.pages()}


@pytest.mark.usefixtures("data")
def test_the_facts_of_a_matrix_follow_from_its_spectrum():
    facts = recorded("similarity_matrices", "facts").set_index(["matrix", "share"])
    facts = facts.loc["mrpc", 1.0]
    values = np.linalg.eigvalsh(gallery.load("mrpc", 2176).matrix)
    negative = np.linalg.norm(values[values < 0]) / np.linalg.norm(values)
    np.testing.assert_allclose(facts["negative mass"], negative, rtol=1e-9)
    np.testing.assert_allclose(facts["smallest"], values[0], rtol=1e-9)
    tail = np.sort(np.abs(values))[:-50]
    best = np.linalg.norm(tail) / np.linalg.norm(values)
    np.testing.assert_allclose(facts["rank 50"], best, rtol=1e-9)


# Errors of an independent trial at 2, 5, 10 and 20 % of the pairs. Its tweets were told
# the diagonal; on the cortex it made no choice, and did harm.
ANCHORED = {
    "stsb: bi-encoder cosine": (0.26, 0.19, 0.16, 0.14),
    "mrpc: bi-encoder cosine": (0.28, 0.19, 0.16, 0.15),
    "rte: bi-encoder cosine": (0.39, 0.19, 0.13, 0.11),
    "twitter: centroid distance": (0.18, 0.12, 0.093, 0.074),
    "twitter: relaxed distance": (0.093, 0.065, 0.055, 0.047),
    "cortex: Euclidean distance": (0.124, 0.060, 0.034, 0.019),
}


@pytest.mark.parametrize("case", ANCHORED)
def test_errors_with_a_companion_are_those_of_the_trial(case):
    shown = recorded("anchored", "errors")
    ours = shown[(shown.case == case) & (shown.method == "anchored")]
    errors = ours.groupby("share").error.mean()
    assert [*errors.index] == [0.02, 0.05, 0.1, 0.2]
    assert (errors <= 1.05 * np.array(ANCHORED[case])).all()


def test_words_about_companions():
    """Half of the cases, wins everywhere, may lose, keeps its lead, all cases."""
    full = recorded("anchored")
    shown = full["errors"].pivot_table("error", ["case", "share"], "method")
    ours, plain = shown["anchored"].unstack(), shown["tikhonov"].unstack()
    assert (ours[0.02] < plain[0.2]).sum() == 6 == len(ours) / 2
    beside = ours / shown["tikhonov, nugget"].unstack()
    assert (beside.filter(regex="twitter|docstrings", axis=0) < 0.8).all(axis=None)
    assert (beside.loc["rte: bi-encoder cosine"] > 1).tolist() == [True] * 3 + [False]
    leads = beside.filter(regex="stsb|mrpc", axis=0)
    assert 0.6 < leads.min(axis=None) < leads.max(axis=None) < 0.9
    rivals = shown[["tikhonov", "companion", "w = 1"]].min(axis=1)
    assert (shown["anchored"] / rivals).max() < 1.04
    weight = full["errors"].pivot_table("weight", "case", "share")
    assert (weight.loc["swiss_roll: Euclidean distance", 0.05:] == 0).all()
    tails = full["tails"]
    left = tails[tails["rank"] == tails.landmarks].pivot_table("left", "case", "matrix")
    at = shown.xs(0.1, level="share")
    helps = at["w = 1"] < at["tikhonov"]
    assert ((left["K - B"] < left["K"]) == helps).all()
    norms = tails[tails["rank"] == 0].pivot_table("left", "case", "matrix")
    assert (norms["K - B"] < 1).all()
    roll = tails[tails.case.str.startswith("swiss_roll")]
    roll = roll.set_index(["matrix", "rank"]).left
    floor = roll["B", 100] - roll["K", 50]
    assert floor > at["tikhonov"]["swiss_roll: Euclidean distance"]


def test_words_about_what_is_worth_its_pairs():
    """Better, three of four corpora, a few per cent of them keep it, can lose more."""
    full = recorded("many_sentences")
    worth = full["worth"]
    score = worth.pivot_table("score", "task", "pairs")
    records = score.loc[["products", "sites"]]
    assert (records["few"] > records["none"] + 0.02).all()
    assert (records["few"] > records["all"] - 0.002).all()
    few = worth[worth.task.isin(["products", "sites"]) & (worth.pairs == "few")]
    assert (few.paid < 0.06).all()
    assert score["none"]["sentences"] > score["all"]["sentences"]
    known = recorded("coreference", "known").query("kind == 'event'").set_index("who")
    assert known.conll["cosines"] > known.conll["network"]
    orders = recorded("queries", "orders").query("queries == 'all'").set_index("order")
    assert orders.ndcg["cosine"] > orders.ndcg["network"]
    accuracy = recorded("documents", "accuracy")
    free, few, every = (
        accuracy[(accuracy.method == method) & (accuracy["rank"].isin(ranks))]
        .groupby("corpus")
        .accuracy.mean()
        for method, ranks in (("TF-IDF", [32]), ("tikhonov", [512]), ("exact", [32]))
    )
    assert {*few[few < free].index} == {"recipes", "ohsumed", "newsgroups"}
    assert few["ohsumed"] < free["ohsumed"] < every["ohsumed"]
    assert every["newsgroups"] < free["newsgroups"] < every["newsgroups"] + 0.01
    walk = full["walk"].set_index("answer")
    assert (walk.share < 0.06).all()
    assert walk.value["nearest, found"] > walk.free["nearest, found"] + 0.1
    assert walk.value["alike, found"] > 0.9


def test_words_about_intervals():
    """At least nine times in ten on every matrix; less than half of the time."""
    told = recorded("error_bars", "intervals")
    told = told.assign(held=told.truth.between(told.low, told.high))
    held = told.pivot_table("held", "matrix", "sample")
    assert held.stratified.min() >= 0.9
    assert held.uniform.idxmin() == "twitter_narrow"
    assert held.uniform.min() < 0.5


def test_words_about_growing_collections():
    """Falls, rises a little or by a third, stays level, less than the share."""
    growth = recorded("many_sentences", "growth")
    error = growth.pivot_table("error", ["method", "landmarks"], "items")
    plain, helped = (error.loc[f"sentences, {m}"] for m in ("tikhonov", "anchored"))
    assert (plain[175] > plain[1400]).all()
    grown = helped[1400] / helped[175]
    assert grown[[25, 50]].between(1, 1.1).all()
    assert 1.25 < grown[100] < 1.4
    assert (helped.dropna(axis=1) < plain.dropna(axis=1)).all(axis=None)
    words = error.loc["words, tikhonov"].dropna(axis=1)
    assert (np.ptp(words, axis=1) < 0.02).all()


# Squared errors of an independent trial: mesh, matrix, method -> error by landmarks.
# Its two draws of 50 landmarks are left out: there draws differ eightfold.
TRIAL = {
    ("bunny", "mean", "biharmonic"): {
        100: 7.5e-4, 200: 2.7e-4, 500: 5.7e-5, 1000: 1.5e-5, 2000: 3.4e-6,
    },
    ("bunny", "mean", "from points"): {
        100: 8.3e-4, 200: 3.3e-4, 500: 9.2e-5, 1000: 3.6e-5, 2000: 1.6e-5,
    },
    ("bunny", "mean", "nystrom"): {
        100: 6.1e-4, 200: 7.1e-5, 500: 9.7e-6, 1000: 3.5e-6, 2000: 2.0e-6,
    },
    ("cortex", "mean", "biharmonic"): {
        100: 7.2e-4, 500: 8.5e-5, 1000: 3.2e-5, 2000: 1.0e-5,
    },
    ("cortex", "mean", "from points"): {
        100: 5.3e-3, 500: 2.2e-3, 1000: 1.5e-3, 2000: 9.8e-4,
    },
    ("cortex", "mean", "nystrom"): {
        100: 7.0e-4, 500: 1.4e-5, 1000: 4.8e-6, 2000: 2.5e-6,
    },
}  # fmt: skip
ONE_DRAW = {
    ("bunny", "heat", "biharmonic"): {
        200: 2.0e-4, 500: 4.8e-5, 1000: 1.7e-5, 2000: 3.7e-6,
    },
    ("bunny", "heat", "from points"): {
        200: 2.5e-4, 500: 8.0e-5, 1000: 4.0e-5, 2000: 1.7e-5,
    },
    ("bunny", "heat", "X C'"): {
        200: 8.0e-5, 500: 2.7e-5, 1000: 2.2e-5, 2000: 2.0e-5,
    },
}  # fmt: skip
BEST = {
    "bunny": {50: 4.4e-5, 100: 1.1e-5, 200: 2.9e-6, 500: 4.9e-7, 1000: 1.3e-7},
    "cortex": {100: 1.7e-5, 500: 8.2e-7, 1000: 2.1e-7},
}


def geodesics(mesh, distances, method, cutoff=1e-4):
    """Recorded squared errors, the mean of the draws by number of landmarks."""
    which = "mesh == @mesh and distances == @distances and method == @method"
    table = recorded("geodesic_distances", "contest").query(which)
    table = table[table.cutoff.isna() | (table.cutoff == cutoff)]
    return table.groupby("landmarks").error.mean()


@pytest.mark.parametrize("where", [*TRIAL, *ONE_DRAW], ids=" ".join)
def test_errors_on_geodesic_distances_are_those_of_the_trial(where):
    found = geodesics(*where)
    for size, expected in {**TRIAL, **ONE_DRAW}[where].items():
        factor = 1.3 if where in TRIAL and size > 100 else 2
        assert expected / factor < found[size] < expected * factor, size


@pytest.mark.parametrize("mesh", BEST)
def test_best_approximations_of_geodesic_distances_are_those_of_the_trial(mesh):
    found = geodesics(mesh, "mean", "optimal")
    for rank, expected in BEST[mesh].items():
        assert found[rank] == pytest.approx(expected, rel=0.3)


# Of the bunny with 1000 landmarks: kept in a row -> as thresholded, renormalised.
SPARSE = {
    ("column", 10): (2.0e-2, 7.0e-5), ("column", 15): (2.9e-3, 4.2e-5),
    ("column", 25): (3.6e-4, 2.3e-5), ("column", 50): (2.3e-5, 1.74e-5),
    ("row", 10): (3.4e-2, 7.9e-5), ("row", 25): (5.9e-4, 2.5e-5),
    ("row", 50): (3.0e-5, 1.75e-5),
}  # fmt: skip


@pytest.mark.parametrize(("by", "kept"), SPARSE)
def test_errors_of_sparse_interpolation_are_those_of_the_trial(by, kept):
    ours = recorded("scale", "errors").query("surface == 'bunny' and landmarks == 1000")
    ours = ours[(ours.by == by) & (ours.kept == kept)].groupby("rows").error.mean()
    for rows, expected in zip(("as kept", "divided"), SPARSE[by, kept], strict=True):
        assert expected / 2 < ours[rows] < expected * 2


def classified(corpus):
    """Recorded accuracies on a corpus, a row for each draw."""
    return recorded("documents", "accuracy").query("corpus == @corpus")


@pytest.mark.parametrize("corpus", ["twitter", "ohsumed", "newsgroups"])
def test_no_approximation_classifies_better_than_the_exact_kernel(corpus):
    """Beyond the spread over draws and the sampling error of the test documents."""
    facts = recorded("documents", "facts").set_index("corpus")
    found = classified(corpus).groupby(["method", "rank"]).accuracy.mean()
    (exact,) = found["exact"]
    sampling = np.sqrt(exact * (1 - exact) / facts.test[corpus])
    for method in ("optimal", "sms_nystrom", "stacur", "sicur", "tikhonov", "no core"):
        assert (found[method] < exact + 2 * sampling).all()


def test_words_about_ranks_and_draws_of_documents():
    """Up to 1,500 and 1,024, where the paper goes on; two draws, and one."""
    draws = recorded("documents", "accuracy").query("method == 'sms_nystrom'")
    draws = draws.groupby(["corpus", "rank"]).draw.nunique()
    most = draws.reset_index("rank").groupby("corpus")["rank"].max()
    others = {"recipes": 1024, "ohsumed": 1024, "newsgroups": 1024}
    assert most.to_dict() == {"twitter": 1500} | others
    theirs = paper("wmd_most_large").value
    assert theirs["twitter"] == most.twitter
    assert {theirs[c] for c in most.index.drop("twitter")} == {2500, 4096}
    assert draws.recipes.drop(1024).unique().tolist() == [2]
    assert draws["recipes", 1024] == 1
    assert draws.drop("recipes").min() == 10


def test_words_about_documents():
    """Level on tweets, within a point; one to three; about three, one and a half.

    Of all the differences of means, in points.
    """
    accuracy = recorded("documents", "accuracy")
    means = 100 * accuracy.groupby(["corpus", "rank", "method"]).accuracy.mean()
    means = means.unstack()
    free, exact = (means[m].groupby("corpus").max() for m in ("TF-IDF", "exact"))
    cores = means[["sms_nystrom", "tikhonov", "stacur", "sicur"]]
    some = cores.xs(512, level="rank")
    most = cores.groupby("corpus").tail(1).droplevel("rank")
    assert {*means.index.get_level_values("rank")[-2:]} == {512, 1500}
    assert abs(some.sub(free, axis=0).loc["twitter"]).max() < 0.5
    ahead = most.sub(free, axis=0)
    assert ahead.loc["twitter"].between(1.5, 2.7).all()
    assert (ahead.drop("twitter") > -1.3).all(axis=None)
    assert (ahead.drop("twitter") < 0).all(axis=None)
    gain = (some - cores.xs(128, level="rank")).mean(axis=1)
    assert 1 < gain.twitter < 2
    assert gain.drop("twitter").between(7.5, 10.5).all()
    for table in (some, most):
        assert (table.max(axis=1) - table.min(axis=1) < 1).all()
    bare = means["no core"].groupby("corpus").tail(1).droplevel("rank")
    assert (most.mean(axis=1) - bare).between(1, 3).all()
    assert (exact - some.mean(axis=1)).dropna().between(2.5, 3.5).all()
    assert (exact - most.mean(axis=1)).dropna().between(0, 1.5).all()
    trained = recorded("documents", "facts").set_index("corpus").training.recipes
    assert round(trained, -3) == 28_000
    read = METHODS["tikhonov"].calls(trained, 512) / (trained * (trained + 1) / 2)
    assert round(100 * read) == 4
    recipes = means.loc["recipes"]
    assert recipes["sms_nystrom"].iloc[-1] - recipes["landmarks alone"].iloc[-1] > 10
    price = recorded("documents", "prices").pivot_table(
        "microseconds", "corpus", "to a"
    )
    times = price["landmark"] / price["random document"]
    assert times.twitter < 1.3
    assert times.recipes == pytest.approx(2, rel=0.15)
    assert times[["ohsumed", "newsgroups"]].between(5.8, 7.2).all()
    search = recorded("documents", "search").query("gamma == 1")
    error = search.pivot_table("error", ["corpus", "rank"], "method")
    last = error.groupby("corpus").tail(1)
    assert (last["no core"] > 2 * last[cores.columns].max(axis=1)).all()
    same = search[search.method.isin([*cores.columns, "no core"])]
    order = same.groupby(["corpus", "rank"])[["error", "validation"]].apply(
        lambda two: two.corr("spearman").iloc[0, 1]
    )
    assert 10 <= (order < 0).sum() <= 11  # of sixteen
    assert 3 <= (order < -0.85).sum() <= 5
    best = same.pivot_table("validation", ["corpus", "rank"], "method", aggfunc="max")
    last = best.groupby("corpus").tail(1)
    assert (last["no core"] > last[cores.columns].max(axis=1)).sum() == 2


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_accuracy_of_words_on_recipes_is_that_of_scikit_learn():
    corpus = load_recipes(load_word_vectors("wordbridge-300"))
    train = [w for w, of in zip(corpus.documents, corpus.train, strict=True) if of]
    test = [w for w, of in zip(corpus.documents, corpus.train, strict=True) if not of]
    search = recorded("documents", "search")
    (C,) = search[(search.corpus == "recipes") & (search.method == "TF-IDF")].C
    machine = LinearSVC(C=C, dual=False, tol=0.01, max_iter=1000)
    vectorizer = TfidfVectorizer(analyzer=list)
    machine.fit(vectorizer.fit_transform(train), corpus.labels[corpus.train])
    found = machine.score(vectorizer.transform(test), corpus.labels[~corpus.train])
    facts = recorded("documents", "facts").set_index("corpus")
    assert facts.training.recipes == len(train)
    (told,) = classified("recipes").query("method == 'TF-IDF'").accuracy
    assert told == pytest.approx(found, abs=0.001)


def test_a_coarse_threshold_alone_makes_biharmonic_approximation_overtake():
    """On symmetric distances of the bunny; with the paper's 1e-4 it does not."""
    known = geodesics("bunny", "mean", "biharmonic")
    coarse, papers = (
        geodesics("bunny", "mean", "nystrom", cutoff) for cutoff in (1e-3, 1e-4)
    )
    assert known[2000] < coarse[2000] / 2
    assert (known > papers).all()
    assert (known / papers).loc[500:].is_monotonic_decreasing
    assert papers[2000] < geodesics_asymmetry()["bunny"] ** 2 / 5


def geodesics_asymmetry():
    return recorded("geodesic_distances", "heat").set_index("mesh").asymmetry


SENTENCES = ("stsb", "mrpc", "rte")


def sentences(name, share, form, column="error"):
    """Mean and standard error of recorded draws."""
    calls = recorded("sentences")["calls"].set_index(["items", "share", "form"])
    drawn = calls.sort_index().loc[(name, share, form), column]
    return drawn.mean(), drawn.std() / np.sqrt(drawn.size)


@pytest.mark.parametrize("name", SENTENCES)
@pytest.mark.parametrize("share", [0.1, 0.2, 0.4])
@pytest.mark.parametrize(
    ("form", "rival"),
    [("tikhonov", "sms_nystrom"), ("tikhonov", "sicur"), ("anchored", "tikhonov")],
)
def test_at_equal_calls_the_order_of_errors_on_sentences(name, share, form, rival):
    ours, theirs = (sentences(name, share, f) for f in (form, rival))
    assert ours[0] <= theirs[0] + np.hypot(ours[1], theirs[1])


@pytest.mark.usefixtures("data")
def test_what_the_network_says_of_sentences_is_that_of_scipy():
    data = load_cross_encoder("stsb")
    i, j = data.pairs.T
    known = recorded("sentences")["references"].set_index(["items", "who"]).spearman
    cosines = (data.embeddings[i] * data.embeddings[j]).sum(axis=1)
    for who, scores in (("network", data.matrix[i, j]), ("bi-encoder", cosines)):
        again = spearmanr(scores, data.scores).statistic
        assert known["stsb", who] == pytest.approx(again, abs=1e-4)


def test_no_approximation_from_the_network_alone_reaches_the_bi_encoder():
    """In Pearson's correlation on STS-B, with up to 40 % of the calls."""
    known = recorded("sentences")["references"].set_index(["items", "who"]).pearson
    for share in (0.05, 0.1, 0.2, 0.4):
        for form in ("sms_nystrom", "sicur", "tikhonov", "nugget_kept"):
            found, _ = sentences("stsb", share, form, "pearson")
            assert found < known["stsb", "bi-encoder"] - 0.2
    found, _ = sentences("stsb", 0.1, "tikhonov", "pearson")
    assert 0.15 < found < 0.25  # about a fifth
    assert sentences("stsb", 0.4, "companion", "pearson")[0] > 0.84


def test_words_about_sentences():
    """In every row larger on the judged pairs; most of it on MRPC and less on RTE."""
    full = recorded("sentences")
    few = full["calls"].query("form in ['tikhonov', 'anchored', 'optimal']")
    few = few[few["items"] == "stsb"].groupby(["form", "share"])
    errors = few[["error", "error of judged pairs"]].mean()
    assert (errors["error of judged pairs"] > errors.error).all()
    floors = full["floors"].groupby(["items", "form"])[["rounded", "threshold"]].mean()
    best = floors.threshold.unstack()["mean of both orders"]
    rest = floors.drop("mean of both orders", level="form")
    lost = rest.rsub(best, axis=0, level="items")
    assert (lost.threshold < 0.1 * lost.rounded).mrpc.all()
    assert (lost.threshold < lost.rounded).rte.all()
    assert (lost.threshold > 0.3 * lost.rounded).rte.all()
    yes = (
        full["references"].set_index(["items", "who"]).f1["mrpc", "one answer for all"]
    )
    assert (abs(rest.threshold.mrpc - yes) < 0.001).all()


LEAST = {  # recall of the ten nearest from .02, .05 and .1 of the pairs
    "stsb": (0.55, 0.82, 0.94),
    "mrpc": (0.24, 0.45, 0.72),
    "twitter": (0.79, 0.95, 0.99),
    "edit": (0.55, 0.85, 0.94),
}


def test_no_contender_finds_two_points_more_than_nearest():
    """At equal calls, on sets where the limit pays for more than ten calls an item."""
    ten = recorded("neighbors", "searches").query("k == 10")
    found = ten.pivot_table("recall", ["case", "share"], "method")
    others = found.drop(columns=["nearest", "nearest alone"])
    assert len(others.columns) == 6
    for case, bounds in LEAST.items():
        for share, bound in zip((0.02, 0.05, 0.1), bounds, strict=True):
            ours = found.nearest[case, share]
            assert ours > others.loc[case, share].max() - 0.02
            assert ours >= bound


def test_words_about_the_pairs_that_neighbours_take():
    """Where the companion errs and where it is nearly the truth, for a recall of .8."""
    ten = recorded("neighbors", "searches").query("k == 10")
    means = ten.groupby(["case", "method", "share"]).recall.mean()

    def needed(case, method):
        curve = means[case, method]
        found = np.maximum.accumulate(curve)
        return np.exp(np.interp(0.8, found, np.log(curve.index), right=np.inf))

    others = set(ten.method) - {"nearest", "nearest alone"}
    for case in set(ten.case):
        best = min(needed(case, method) for method in others)
        ratio = needed(case, "nearest") / best
        if case in ("stsb", "mrpc", "rte", "edit"):
            assert 0.4 < ratio < 0.7
        else:
            assert 0.9 < ratio <= 1
        without = needed(case, "nearest alone") / needed(case, "nearest")
        least, most = {"rte": (1.25, 1.35), "pairs": (1.8, 2.1)}.get(case, (3, np.inf))
        assert least < without <= most  # three tenths more, twice, three times or more


def test_words_about_the_fewest_calls():
    """Behind those who name fewer than ten, on tweets and RTE; nowhere else."""
    ten = recorded("neighbors", "searches").query("k == 10")
    found, full = (
        ten.pivot_table(value, ["case", "share"], "method")
        for value in ("recall", "full")
    )
    assert (full[["nearest", "nearest alone"]] == 1).all(axis=None)
    others = found.drop(columns=["nearest", "nearest alone"])
    behind = others.max(axis=1) - found.nearest
    behind = behind[behind > 0.01]
    tweets, rte = ("twitter", 0.01), ("rte", 0.02)
    assert {*behind.index} == {tweets, rte}
    assert 0.015 < behind[tweets] < 0.025  # two points
    assert behind[rte] > 0.1
    assert others["re-ranking"][tweets] > others.loc[tweets].max() - 1e-3
    assert 0.5 < full["re-ranking"][tweets] < 0.6  # for nearly half it does not
    first = {*others.loc[rte].nlargest(3).index}
    assert first == {"ANNCUR", "ADACUR", "tikhonov"}
    assert (full.loc[rte, [*first]] < 0.05).all()  # for nearly all


def test_an_interval_of_ten_rows_begins_near_seven_tenths():
    K = np.random.default_rng(0).standard_normal((300, 300))
    sim = Similarity.from_matrix(K + K.T)
    every = np.argsort(-(K + K.T - np.diag(np.full(300, np.inf))), axis=1)[:, :10]
    found = estimated_recall(sim, every, False, 10, np.random.default_rng(0))
    assert found.value == 1
    assert 0.68 < found.low < 0.72


def test_certain_neighbours_cost_a_small_part_of_the_pairs():
    results = recorded("neighbors")
    certain, every = results["certain"], results["all_questions"]
    assert (certain["largest error"] < 1e-6).all()
    assert (certain.necessary <= certain.compared).all()
    assert (certain.compared < 1.3 * certain.necessary + 0.01).all()
    compared = certain.set_index(["case", "bound"]).compared
    [whole] = every[every.method == "exact"].share
    assert set(every["items"]) == {13071}
    assert whole < 0.003
    for case in ("twitter", "questions"):
        relaxed = compared[case, "relaxed distance"]
        assert relaxed < compared[case, "centroid distance"] < 1
        assert whole < relaxed  # the tenth neighbour comes nearer
    for method in ("nearest", "nearest alone"):
        assert every[every.method == method].recall.is_monotonic_increasing


def test_words_about_the_ridges():
    """Over five folds, twice the size, a twentieth, five items."""
    assert (fit.N_FOLDS, fit.TOO_LARGE, fit.ACCURATE) == (5, 2, 1 / 20)


def test_words_about_the_search_for_pairs():
    """Half a per cent, ten an item, a twentieth, a quarter; 0.3 %, a tenth."""
    page = BOOK.source("duplicates").read_text("utf-8")
    assert page.count(rf"{promise.SPARED} \, U / g^2") == 2
    start = pair_search.START, pair_search.EACH, pair_search.OF_LIMIT
    assert (*start, pair_search.COLUMN) == (0.005, 10, 1 / 20, 1 / 4)
    assert (pair_search.ROUND, pair_search.GROWTH) == (0.003, 1 / 10)


def test_similar_pairs_keep_their_promise():
    results = recorded("duplicates")
    promises = results["promises"].astype({"kept": int})
    part, whole = (promises[promises.part == of] for of in (True, False))
    for _, runs in part.groupby("records"):
        assert len(runs) == 200
        assert (runs.promised >= 0.95).all()
        assert runs.kept.sum() >= 182
        assert (runs.found >= runs.promised).sum() >= 182
    assert (whole.groupby("records").calls.mean() <= 0.1).all()
    truths = results["truths"].set_index(["records", "by"])
    precision = truths.precision.sort_index().loc["products", "found"].item()
    assert 0.45 < precision < 0.55  # half are true matches
    curves = results["truths"].query("records == 'products'").sort_values("recall")
    wanted = [0.1, 0.2, 0.3, 0.4, 0.55, 0.7, 0.8]  # two fifths, and more than half
    free, paid = (
        np.interp(wanted, part.recall, part.precision)
        for part in (curves[curves.by == by] for by in ("cosine", "similarity"))
    )
    assert ((free > paid) == (np.array(wanted) < 0.5)).all()
    shown = results["reached"].pivot_table("recall", ["method", "measure"], "share")
    found = shown.xs("found", level="measure").iloc[:, 0]  # from one per cent
    assert abs(found["cosine"] - found["pairs_above"]) < 0.15
    assert found["without companion"] < 0.2
    clusters = results["clusters"].groupby("method").agreement.min()
    assert clusters.drop("HDBSCAN").min() > 0.95 > clusters["HDBSCAN"]


def test_choosing_the_cutoff_costs_little():
    """Against the best of the sweep in hindsight, by medians of the recorded draws."""
    cutoffs = recorded("nystrom", "cutoffs")
    medians = cutoffs.pivot_table("error", "matrix", "rule", aggfunc="median")
    best = medians.drop(columns=["cv", "tikhonov"]).min(axis=1)
    assert (medians.cv < 1.05 * best).all()
    assert (medians.tikhonov < 1.01 * medians.cv).all()


def test_words_about_nystrom_and_the_shift():
    full = recorded("nystrom")
    spread = full["spread"].groupby("matrix").error
    tail = spread.quantile(0.9) / spread.median()
    assert (tail[["stsb", "mrpc", "edit"]] > 2).all()
    assert tail.twitter < 1.2
    errors = full["errors"].groupby(["matrix", "method", "share"]).error.median()
    shift, core = errors.xs("sms_nystrom", level=1), errors.xs("tikhonov", level=1)
    assert (core < shift).all()
    assert core["stsb"].lt(errors["stsb", "nystrom_cv"]).all()
    ratio = core["mrpc"] / errors["mrpc", "nystrom_cv"]
    assert ratio.between(0.94, 1.03).all()
    assert np.ptp(shift["stsb"]) < 0.05  # more landmarks do not lower it
    floors = full["limits"].set_index("matrix")["negative mass"]
    assert (shift > 2 * floors.loc[shift.index.get_level_values(0)].to_numpy()).all()
    least = full["shifts"].groupby(["matrix", "share"]).larger.mean()
    assert least["stsb", 0.5] / least["stsb", 0.05] > 10


def test_words_about_similarity_matrices():
    full = recorded("similarity_matrices")
    facts = full["facts"][full["facts"].share == 1].set_index("matrix")
    spectra = full["spectra"].pivot_table("eigenvalue", "matrix", "position")
    assert spectra.loc["stsb", 2] < 0  # larger than every positive one but the first
    assert (spectra.loc["twitter"] > 0).all()
    assert facts["negative mass"].twitter < 1e-8
    large = (spectra[1] / abs(spectra[2])).drop("gaussian")
    assert (large > 5).all()
    told = full["estimates"].groupby("matrix").mean()
    assert abs(told.largest / facts.largest - 1).drop("gaussian").max() < 0.1
    assert 0.5 < told.smallest.stsb / facts.smallest.stsb < 1
    assert told["negative mass"].edit < 0.1 * facts["negative mass"].edit
    assert told.largest.gaussian > 3 * facts.largest.gaussian
    assert 0.18 < facts.constant.twitter < 0.22


@pytest.mark.parametrize("mesh", ["bunny", "cortex"])
def test_the_printed_formula_finds_the_transpose(mesh):
    floor = geodesics_asymmetry()[mesh] ** 2
    found = geodesics(mesh, "heat", "X C'")[2000]
    assert found == pytest.approx(floor, rel=0.2)
    assert geodesics(mesh, "heat", "X C', to K'")[2000] < 0.2 * floor


def test_words_about_geodesics():
    """Near vertices, cut-offs, columns, exact distances and short cuts."""
    heat = recorded("geodesic_distances", "heat").set_index("mesh")
    near = heat["nearest 1 %"] / heat["median"]
    assert 2.5 < near.bunny < 3
    assert near.drop("bunny").between(0.8, 1.25).all()
    assert heat["median"].between(0.008, 0.051).all()
    known = geodesics("bunny", "mean", "biharmonic")
    swept = {c: geodesics("bunny", "mean", "nystrom", c) for c in (1e-2, 1e-15)}
    assert (swept[1e-2].loc[500:] > known.loc[500:]).all()
    assert (swept[1e-15].loc[50:] > known.loc[50:]).all()
    finer = geodesics("bunny", "mean", "nystrom", 1e-6)
    assert (finer.loc[50:1000] > known.loc[50:1000]).all()
    assert finer[2000] < known[2000]
    assert (geodesics("bunny", "mean", "nystrom", 1e-4) < known).all()
    for mesh in ("bunny", "cortex"):
        known = geodesics(mesh, "mean", "biharmonic")
        assert (geodesics(mesh, "mean", "nystrom").loc[100:] < known.loc[100:]).all()
        columns = geodesics(mesh, "mean", "tikhonov")
        assert (columns < known[columns.index]).all()
        twice = known.loc[[100, 200, 1000]]  # as many solves as with half of these
        assert (columns[[50, 100, 500]].to_numpy() < twice.to_numpy()).all()
        assert geodesics(mesh, "heat", "biharmonic").is_monotonic_decreasing
    ratios = {
        name: geodesics("sphere", "exact", name) / geodesics("sphere", "mean", name)
        for name in ("biharmonic", "nystrom")
    }
    assert 4 < ratios["biharmonic"].iloc[-1] == ratios["biharmonic"].max() < 4.5
    assert ratios["nystrom"].max() > 3.5
    penalty = {
        mesh: geodesics(mesh, "mean", "from points")
        / geodesics(mesh, "mean", "biharmonic")
        for mesh in ("bunny", "cortex")
    }
    assert penalty["bunny"].min() < 1.05
    assert 4 < penalty["bunny"].max() < 5.5
    assert penalty["cortex"][50] > 3


def test_words_about_the_price_of_an_error_on_roads():
    """Hundreds and tens of times, a hundred times the landmarks, smallest runs."""
    answers = recorded("road_network", "answers").query("problem == 'roads'")
    answers = answers[answers.kept.isna() | (answers.kept == answers.kept.min())]
    by = ["method", "landmarks"]
    means = answers.groupby(by)[["error", "calls"]].mean().reset_index()

    def fewest(target, column):
        enough = means[means.error <= target].sort_values("calls")
        return enough.groupby("method")[column].first()

    for target, times in ((1e-2, 200), (1e-3, 10)):
        calls = fewest(target, "calls")
        assert calls[["nystrom", "tikhonov"]].min() > times * calls.biharmonic
    smallest = means.groupby("method").landmarks.min()
    assert fewest(1e-2, "landmarks").equals(smallest)
    landmarks, calls = fewest(1e-4, "landmarks"), fewest(1e-4, "calls")
    assert landmarks.biharmonic == pytest.approx(100 * landmarks.tikhonov, rel=0.05)
    assert calls.biharmonic > calls.tikhonov


def test_a_companion_helps_on_a_surface_while_landmarks_are_few():
    answers = recorded("road_network", "answers").query("problem == 'surface'")
    errors = answers.pivot_table("error", "landmarks", "method")
    few = errors.index < 100
    assert few.any()
    assert (errors.anchored[few] < 0.95 * errors.tikhonov[few]).all()
    assert (errors.anchored < 1.05 * errors.tikhonov).all()


def test_powers_keep_the_digits_that_are_claimed():
    """For a condition of a million and the fourth power."""
    errors = recorded("powers", "errors").query("b == 'generic' and j == 4")
    lost = errors[errors.condition == 1e6].set_index("method").error
    assert lost["explicit product"] > 0.5
    assert lost["Gram matrix"] > 1e-6
    assert not lost["Algorithm 1, 20 d rows"] < 0.1
    for name in ("cholesky_qr", "gram", "lsqr", "Algorithm 1"):
        assert lost[name] < 2e-11
        assert lost[name] < 5 * lost["Householder QR"]
        assert lost["Gram matrix"] > 1e5 * lost[name]


def test_words_about_the_time_of_powers():
    """Little longer, slower than all, more than five times, faster than QR."""
    times = recorded("powers", "times")
    seconds = times.pivot_table("seconds", "method", "j", aggfunc="min")
    for name in ("cholesky_qr", "gram", "Householder QR", "Gram matrix"):
        assert seconds.loc[name, 4] < 1.4 * seconds.loc[name, 1]
    printed = seconds.loc["Algorithm 1"]
    replaced = ["explicit product", "Gram matrix", "Householder QR"]
    assert (printed > 1.3 * seconds.loc[replaced].max()).all()
    six = seconds.loc["Algorithm 1, six digits"]
    assert (six > 5 * seconds.loc["Gram matrix"]).all()
    assert (seconds.loc[["gram", "cholesky_qr"]].max() < seconds.loc[replaced[2]]).all()
    assert seconds.loc["lsqr", 4] > 2 * seconds.loc["lsqr", 1]


def test_words_about_the_core():
    """Nugget and overlay are ahead of all others that keep what they have read."""
    cells = ["matrix", "share"]
    errors = recorded("core")["errors"]
    means = errors.pivot_table("overlay", cells, "method")
    names = ["nystrom", "nystrom_cv", "sms_nystrom", "skeleton", "sicur", "stacur"]
    assert (means.nugget < means[names].min(axis=1)).all()
    ridges = recorded("core")["ridges"].pivot_table(
        "error", ["matrix", "draw"], "ridge"
    )
    assert (ridges.cv < 1.1 * ridges.min(axis=1)).all()


def test_words_about_queries_and_documents():
    """Half, three quarters, four in five, nine in ten, two hundred."""
    shown = recorded("queries", "searches")
    every = shown[shown.queries == "all"]
    found = every.pivot_table("found", ["method", "anchors"], "calls")
    assert found.loc["cosine"][20].between(0.45, 0.55).all()
    assert found.loc["cosine"][100].between(0.7, 0.8).all()
    assert found.loc[["cosine", "BM25"]][200].between(0.84, 0.9).all()
    near, others = found.loc["nearest"], found.drop("nearest")
    assert 0.72 < near.loc[1, 50] < 0.77 < near.loc[10, 50] < 0.8
    assert 0.86 < near.loc[1, 100] < 0.89 < near.loc[10, 100] < 0.93
    assert (near > others.groupby("anchors").max()).all(axis=None)
    assert found.loc["anchored"][20].lt(found.loc["cosine"][20]).all()
    assert (found.loc["anchored"] > found.loc["cosine"]).loc[40, [50, 100, 200]].all()
    gain = near - found.loc["cosine"]
    kept = gain.loc[1] / gain.loc[40]
    assert 0.45 < kept[20] < 0.55 < kept[50] < 0.78 < kept[100] < kept[200] < 0.86
    cosine = found.loc["cosine"].mean()
    same = np.interp(near.loc[10, 50], cosine, np.log(cosine.index))
    assert (every[every.anchors == 10].fixed == 10 * 1400).all()
    assert 150 < 10 * 1400 / (np.exp(same) - 50) < 250
    same = np.interp(near.loc[10, 50], near.loc[1], np.log(near.columns))
    assert 1000 < 9 * 1400 / (np.exp(same) - 50) < 2000
    assert (every.paid.round(9) == every.calls).all()


def test_words_about_the_worth_of_an_order():
    full = recorded("queries")
    gain = full["orders"].set_index(["order", "queries"]).ndcg
    lead = gain["cosine"] - gain["network"]
    assert 0 < lead["trained on"] < 0.02 < 0.08 < lead["not trained on"]
    assert gain["BM25"].lt(gain["network"] + 0.001).all()
    shown = full["searches"]
    ndcg = shown[shown.queries == "all"].pivot_table(
        "ndcg", ["method", "anchors"], "calls"
    )
    assert (ndcg.loc["cosine"][20] - gain["cosine", "all"]).abs().max() < 0.03
    assert (ndcg.loc["BM25"][20] > gain["BM25", "all"] + 0.03).all()
    assert (ndcg.loc[["cosine", "BM25"]].diff(axis=1).iloc[:, 1:] < 0.002).all(
        axis=None
    )


def test_words_about_landmarks_of_either_side():
    splits = recorded("queries", "splits").groupby(["method", "share"]).mean()
    error = splits["relative error"].unstack(0)
    assert (error.idxmin() == 0.7).all()
    assert (error.iloc[-1] < 1.06 * error.min()).all()
    assert (error.iloc[0] > 1.3 * error.min()).all()
    assert splits["ten best"].max() < 0.5
    right = recorded("queries", "links").set_index("compared").right
    assert 0.7 < (right[10] - right[1]) / (right[1092] - right[1]) < 0.8


def test_words_about_coreference():
    """The cosines are ahead; nine tenths; the best of those without a companion."""
    full = recorded("coreference")
    known = full["known"].set_index(["kind", "who"])
    scores = known[["conll", "agreement"]].unstack()
    assert (scores.conll.cosines > scores.conll.network).all()
    curves = full["curves"]
    means = curves.groupby(["kind", "share", "method"]).mean(numeric_only=True)
    agreement = means.same_kept.unstack()
    landmarks = ["nystrom", "sms_nystrom", "spectral", "sicur", "stacur", "tikhonov"]
    for kind, least in (("event", 0.96), ("entity", 0.89)):
        fifth = agreement.loc[kind, 0.2]
        assert least < fifth.refined < least + 0.03
        assert fifth[landmarks].max() < scores.agreement.cosines[kind]
        assert fifth[landmarks].max() < fifth.truncated + 0.005
        assert fifth[landmarks].max() < fifth.anchored < fifth.refined
        assert fifth.refined - 0.02 < fifth.highest < fifth.refined + 0.005
    assert agreement.nearest["entity", 0.2] < agreement.anchored["entity", 0.2]
    assert agreement.loc["event", 0.2][["nearest", "highest"]].min() > 0.95
    chosen = means.chosen.unstack().loc["entity", 0.2]
    assert chosen.anchored > chosen.refined + 0.02
    rules = ["sms_nystrom", "spectral", "frobenius", "twice"]
    assert np.ptp(means.chosen.unstack().loc["event", 0.2][rules]) < 0.01
    assert np.ptp(means.kept.unstack().loc["event", 0.2][rules]) > 0.05


def test_words_about_errors_of_scores_of_mentions():
    """On events the wrong pairs tell the F1 much better than the relative error."""
    curves = recorded("coreference", "curves")
    theirs = ["nystrom", "sms_nystrom", "spectral", "skeleton", "sicur", "stacur"]
    some = curves[curves.method.isin(theirs)]
    ranks = some.groupby("kind")[["error", "wrong", "kept", "same_kept"]].rank()
    rho = ranks.groupby(some.kind).corr()
    assert rho.kept["event", "wrong"] < rho.kept["event", "error"] - 0.25
    assert abs(rho.kept["entity", "wrong"] - rho.kept["entity", "error"]) < 0.1
    assert rho.same_kept["entity", "wrong"] < rho.same_kept["entity", "error"] - 0.1
    for share, part in some[some.kind == "event"].groupby("share"):
        rho = part[["error", "wrong", "kept"]].corr("spearman").kept
        if share <= 0.2:  # at one share it orders the methods from three tenths on
            assert rho.wrong > -0.45
        elif share <= 0.5:
            assert rho.wrong < min(-0.6, rho.error - 0.3)


def test_words_about_all_mentions_at_once():
    full = recorded("coreference")
    means = full["opens"].groupby(["kind", "share", "method"]).mean(numeric_only=True)
    levels = full["levels"].set_index(["kind", "method"])
    for kind in ("event", "entity"):
        same, f1 = (means[name].unstack().loc[kind] for name in ("agreement", "F1"))
        assert 0.87 < same.refined[0.01] < 0.92 < same.refined[0.02]
        assert (same.drop(columns="refined").max(axis=1) < same.refined).all()
        exact, free = levels.F1[kind, "all pairs"], levels.F1[kind, "cosines"]
        assert exact < f1.refined[0.1] < f1.refined[0.005]
        assert f1.refined.max() < free
