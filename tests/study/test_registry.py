"""Which data there are, where they are looked for, and how they are fetched."""

import functools
import gzip
import hashlib
import http.server
import io
import json
import lzma
import os
import re
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from study.datasets import (
    REGISTRY,
    CorruptDataError,
    DataNotFoundError,
    Dataset,
    File,
    available,
    convert,
    find,
    fingerprint,
    load_bunny,
    load_edge_list,
    load_twitter,
    load_words,
)
from study.datasets.__main__ import main
from study.datasets.content import content_sha256
from study.datasets.fetch import fetch
from study.datasets.registry import cache_folder
from support.processes import python, python_in_a_shell

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


def sha256(content):
    return hashlib.sha256(content).hexdigest()


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


def test_registry_pins_every_source():
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
            if file.content_sha256 is not None:
                with path.open("rb") as stream:
                    assert content_sha256(path.name, stream) == file.content_sha256


def test_given_folder_wins_over_cache(folders, register, monkeypatch):
    given, cache = folders
    register(File("a.txt", sha256(b"a"), recipe="-"))
    assert not available("toy")
    assert fingerprint()["toy_folder/a.txt"] is None
    in_cache = put(cache, b"a")
    assert find("toy", "a.txt") == in_cache
    in_given = put(given, b"a")
    assert find("toy", "a.txt") == in_given
    for change in functools.partial(monkeypatch.setenv, value=""), monkeypatch.delenv:
        change("SIMLIB_DATA")
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


def test_a_user_without_a_home(tmp_path, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("SIMLIB_DATA", str(tmp_path))
    assert not available("twitter")
    monkeypatch.delenv("SIMLIB_DATA")
    assert main(["list"]) == 0
    assert set(fingerprint().values()) == {None}
    with pytest.raises(DataNotFoundError, match=r"no folder.*set SIMLIB_DATA"):
        load_bunny()
    with pytest.raises(DataNotFoundError, match="set XDG_CACHE_HOME"):
        cache_folder()


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
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


def test_convert_twitter():
    records = lzma.decompress(convert.twitter(TWEETS)).decode().splitlines()
    assert records[0] == '{"line":0,"label":"positive","text":"good phone "}'
    assert json.loads(records[1]) == {
        "line": 1,
        "label": "neutral",
        "text": 'a\ttab, "quoted"',
    }


def test_convert_stsb_and_rte():
    # random.Random(0) leaves two rows in their order
    head, pairs = "index\tdev_row\tgenre\tsentence\n", "i\tj\tlabel\tdev_row\n"
    assert convert.stsb_sentences(STSB).decode() == (
        f"{head}0\t0\tmain-news\tA cat.\n1\t0\tmain-news\tA dog.\n"
        '2\t1\tmain-forums\tA "cat".\n'
    )
    assert convert.stsb_pairs(STSB).decode() == pairs + "0\t1\t2.5\t0\n2\t1\t5.0\t1\n"
    assert convert.rte_sentences(RTE).decode() == (
        f'{head}0\t0\t\tHe said "yes".\n1\t0\t\tHe spoke.\n2\t1\t\tIt rains.\n'
    )
    assert convert.rte_pairs(RTE).decode() == pairs + "0\t1\t0\t0\n2\t1\t1\t1\n"


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


@pytest.fixture
def offer(server, register):
    """Serve these bytes as the one public file of "toy"."""
    public, address = server

    def serve(raw, name="a.txt", **rest):
        (public / "raw").write_bytes(raw)
        rest = {"sha256": sha256(raw), "raw_sha256": sha256(raw)} | rest
        register(File(name, url=f"{address}/raw", **rest))
        return public / "raw"

    return serve


def test_fetch_downloads_checks_and_converts(folders, offer, capsys):
    form = convert.twitter(TWEETS)
    raw = offer(TWEETS, sha256=sha256(form), convert=convert.twitter)
    path = folders[1] / "toy_folder" / "a.txt"
    assert fetch("toy") == [path]
    assert path.read_bytes() == form
    assert [file.name for file in path.parent.iterdir()] == ["a.txt"]
    raw.unlink()
    assert main(["fetch", "toy"]) == 0  # it is here: nothing to download
    assert str(path) in capsys.readouterr().out


def test_fetch_accepts_another_compression(offer, folders):
    """As where zlib is zlib-ng, or xz another."""
    there, here = (gzip.compress(TWEETS, level) for level in (9, 1))
    convert = functools.partial(gzip.compress, compresslevel=1)
    known = {"sha256": sha256(there), "content_sha256": sha256(TWEETS)}
    offer(TWEETS, "a.gz", convert=convert, **known)
    [path] = fetch("toy")
    assert path.read_bytes()[10:] == here[10:]  # the time stands before
    assert fetch("toy") == [path]
    assert fingerprint()["toy_folder/a.gz"] == sha256(there)


@pytest.mark.parametrize(
    ("other", "found"),
    [({"raw_sha256": "0" * 64}, "hash"), ({"convert": bytes.upper}, sha256(b"RAW"))],
)
def test_fetch_refuses_another_file_and_another_conversion(
    folders, offer, capsys, other, found
):
    offer(b"raw", **other)
    assert main(["fetch", "toy"]) == 1
    assert found in capsys.readouterr().err
    assert not available("toy")


def test_fetch_without_a_hash(folders, offer):
    offer(gzip.compress(b"4 5\n"), "a.gz", sha256="", raw_sha256=None)
    [path] = fetch("toy")
    assert load_edge_list(path).shape == (2, 2)
    assert find("toy", "a.gz") == path


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


def test_list_tells_what_is_here(folders, register, capsys):
    register(File("a.txt", sha256(b"a"), recipe="-"))
    put(folders[0], b"a")
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert "toy (here): a toy" in text
    assert "twitter (missing)" in text
    assert "licence: scores CC BY-SA 4.0" in text


def test_command_line_fails_without_a_traceback(folders):
    result = python("-m", "study.datasets", "fetch", "words")
    assert result.returncode == 1
    assert "inspect_word2vec" in result.stderr
    assert "Traceback" not in result.stderr
    with pytest.raises(SystemExit, match="2"):
        main(["fetch", "nothing"])


def test_a_list_of_which_only_the_head_is_read():
    done = python_in_a_shell("-m study.datasets list | head -1")
    assert done.stdout.startswith("twitter")
    assert not done.stderr


def test_a_list_that_cannot_be_written():
    done = python_in_a_shell("-m study.datasets list > /dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("[Errno 28]")
    assert done.stderr.count("\n") == 1
