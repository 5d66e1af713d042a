"""The recipes of the book, run as they stand on the page."""

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations
from types import ModuleType

import numpy as np
import pytest
import tenacity
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from press import Repository, read_chapter
from press.chapters import tags
from simlib import Similarity, SimilarityError
from support.examples import python_blocks

N, LANDMARKS = 16, 4
TEXTS = [f"text {k} of {k * k % 7}" for k in range(N)]
DOCUMENTS = [f"{text} and {k % 11} others" for k, text in enumerate(10 * TEXTS)]
HEADING = re.compile(r"## (.+)")


def sections():
    """Return the code of each section of the page, shown or executed, in order."""
    found, heading = {"": []}, ""
    for cell in read_chapter(Repository.here().source("recipes")).cells:
        if cell.cell_type == "code" and "remove-cell" not in tags(cell):
            found[heading].append(cell.source)
        elif cell.cell_type == "markdown":
            for part in re.split(r"^(?=## )", cell.source, flags=re.MULTILINE):
                if match := HEADING.match(part):
                    heading = match[1]
                    found[heading] = []
                found[heading] += [code for code, _ in python_blocks(part)]
    return found


SECTIONS = sections()
RECIPES = [*SECTIONS][1:9]  # from a cross-encoder to a cluster; measurements follow


@pytest.fixture
def names(tmp_path):
    """Return what the top of the page defines, for a few items."""
    names = {"__name__": "__main__"}  # as in a notebook
    for code in SECTIONS[""]:
        exec(code, names)
    return names | {"n": N, "landmarks": LANDMARKS, "folder": tmp_path, "texts": TEXTS}


def run(heading, names):
    """Run a recipe, and return its similarity."""
    for code in SECTIONS[heading]:
        exec(compile(code, heading, "exec"), names)
    assert names["K"].shape == (N, N)
    return names["sim"]


def check(sim, function):
    """Compare all that is known with a function of two numbers of items; close."""
    known = 0
    for i, j, values in sim.known():
        pairs = zip(i.tolist(), j.tolist(), strict=True)
        expected = [function(a, b) for a, b in pairs]
        np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-9)
        known += np.count_nonzero(i != j)
    assert known >= (N - LANDMARKS) * LANDMARKS
    sim.close()


def alike(x, y):
    return len(set(x) & set(y)) / len(set(x) | set(y))


def test_a_recipe_has_ten_lines_at_most():
    assert (RECIPES[0], RECIPES[-1]) == ("A cross-encoder", "A Dask cluster")
    for heading in RECIPES:
        assert SECTIONS[heading], heading
        for code in SECTIONS[heading]:
            assert len([line for line in code.splitlines() if line.strip()]) <= 10


class CrossEncoder:
    """The one of sentence-transformers, but that its scores are made up."""

    asked = 0

    def __init__(self, model_name_or_path, num_labels=None, max_length=None):
        assert "/" in model_name_or_path

    def predict(self, sentences, batch_size=32, show_progress_bar=None):
        assert all(isinstance(text, str) for pair in sentences for text in pair)
        CrossEncoder.asked += len(sentences)
        return np.array([self.score(x, y) for x, y in sentences], dtype=np.float32)

    @staticmethod
    def score(x, y):
        return alike(x, y) + len(x) / 100  # another one in the other order


class SentenceTransformer:
    """Vectors of letters in place of a network's."""

    def __init__(self, model_name_or_path):
        pass

    def encode(self, sentences):
        letters = "abcdefghijklmnopqrstuvwxyz "
        return np.array([[text.count(a) for a in letters] for text in sentences], "f4")


@pytest.fixture
def sentence_transformers(monkeypatch):
    module = ModuleType("sentence_transformers")
    module.CrossEncoder, module.SentenceTransformer = CrossEncoder, SentenceTransformer
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("sentence_transformers")
def test_a_cross_encoder(names):
    sim = run("A cross-encoder", names)
    assert sim.calls == CrossEncoder.asked < N * N
    check(sim, lambda a, b: CrossEncoder.score(TEXTS[a], TEXTS[b]))
    assert run("A cross-encoder", names).calls == 0  # all of it in the file
    names["sim"].close()


@pytest.mark.usefixtures("sentence_transformers")
def test_queries_and_documents(names):
    names |= {"queries": TEXTS, "documents": DOCUMENTS}
    before = CrossEncoder.asked
    for calls in (50 * N, 0):  # the second time all of it is in the file
        for code in SECTIONS["Queries and documents"]:
            exec(compile(code, "recipe", "exec"), names)
        sim, found = names["sim"], names["found"]
        assert sim.calls == calls
        for i, j in enumerate(found.indices[:, 0]):
            score = CrossEncoder.score(TEXTS[i], DOCUMENTS[j])
            assert found.values[i, 0] == np.float32(score)
        sim.close()
    assert CrossEncoder.asked - before == 50 * N + sim.verified


def encoded(page, names):
    """Run what a page shows of a cross-encoder, and return its similarity."""
    text = Repository.here().source(page).read_text("utf-8")
    [code] = [code for code, _ in python_blocks(text) if "CrossEncoder" in code]
    exec(compile(code, page, "exec"), names)
    return names["sim"]


@pytest.mark.usefixtures("sentence_transformers")
def test_the_re_ranker_of_queries():
    sim = encoded("queries", {"queries": TEXTS, "documents": DOCUMENTS})
    assert sim.calls == 2 * len(DOCUMENTS) + 2
    expected = CrossEncoder.score(TEXTS[5], DOCUMENTS[31])
    assert sim.pairs([5], [31])[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.usefixtures("sentence_transformers")
def test_the_cross_encoder_of_many_sentences(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the file of the scores is written
    sim = encoded("many_sentences", {"sentences": TEXTS})
    scores = CrossEncoder.score
    expected = (scores(TEXTS[0], TEXTS[3]) + scores(TEXTS[3], TEXTS[0])) / 2
    assert sim.pairs([0], [3])[0] == pytest.approx(expected, rel=1e-6)
    assert sim.pairs([3], [0])[0] == sim.pairs([0], [3])[0]
    assert sim.calls == 1
    sim.close()


@pytest.fixture
def service():
    """A server that cannot answer at once for every fifth pair, or for none."""

    class Service(BaseHTTPRequestHandler):
        asked, answered, most, busy, down = [], 0, 0, 0, False
        lock = threading.Lock()

        def do_POST(self):
            pair = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with self.lock:
                first = pair not in self.asked
                Service.asked.append(pair)
                Service.busy += 1
                Service.most = max(self.most, self.busy)
            time.sleep(0.05)
            place = TEXTS.index(pair["first"]) + TEXTS.index(pair["second"])
            fails = self.down or (first and place % 5 == 0)
            with self.lock:
                Service.busy -= 1
                Service.answered += not fails
            self.send_response(503 if fails else 200)
            self.end_headers()
            score = alike(pair["first"], pair["second"])
            self.wfile.write(json.dumps({"score": score}).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        Service.url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Service
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_a_function_that_waits(names, service):
    names["url"] = service.url
    sim = run("A remote service", names)
    assert sim.calls + sim.checks == service.answered < N * (N + 1) / 2
    assert len(service.asked) > sim.calls  # asked again
    assert 2 < service.most <= 16
    check(sim, lambda a, b: alike(TEXTS[a], TEXTS[b]))
    names["judge"].retry.wait = tenacity.wait_none()
    service.down, asked = True, len(service.asked)
    sim = Similarity(TEXTS, names["judge"])
    with pytest.raises(SimilarityError, match=r"503.* on items 0 and 1"):
        sim.pairs([0], [1])
    assert len(service.asked) == asked + 8
    service.down = False
    assert sim.pairs([0], [1]) == alike(TEXTS[0], TEXTS[1])


@pytest.mark.slow
def test_a_coroutine(names):
    class Client:
        asked = 0

        async def score(self, x, y):
            self.asked += 1
            if self.asked % 9 == 0:
                raise ConnectionError("busy")
            return alike(x, y)

    names |= {"client": Client(), "retry": tenacity.retry}
    names |= {"stop_after_attempt": tenacity.stop_after_attempt}
    names["wait_random_exponential"] = lambda max: tenacity.wait_none()
    sim = run("A coroutine", names)
    assert sim.calls + sim.checks < names["client"].asked
    check(sim, lambda a, b: alike(TEXTS[a], TEXTS[b]))


def warped(x, y):
    """Return the distance of dynamic time warping by its recursion."""
    cost = np.full((len(x) + 1, len(y) + 1), np.inf)
    cost[0, 0] = 0
    for a, b in np.ndindex(len(x), len(y)):
        best = min(cost[a, b], cost[a, b + 1], cost[a + 1, b])
        cost[a + 1, b + 1] = (x[a] - y[b]) ** 2 + best
    return cost[-1, -1] ** 0.5


@pytest.mark.slow
def test_series(names):
    sim = run("Series of different lengths", names)
    assert sim.calls == 0  # the second time
    series = names["series"]
    assert len({x.size for x in series}) > 1
    check(sim, lambda a, b: warped(series[a], series[b]))


def moved(x, y):
    """Return the cost of transport by an assignment, all points of equal weight."""
    distances = cdist(np.repeat(x, len(y), axis=0), np.repeat(y, len(x), axis=0))
    return distances[linear_sum_assignment(distances)].mean()


def butina(D, radius):
    """Return the centre of each item's cluster, by all distances."""
    near, centre = radius >= D, np.full(len(D), -1)
    np.fill_diagonal(near, True)
    for i in sorted(range(len(D)), key=lambda i: (-near[i].sum(), i)):
        if centre[i] < 0:
            centre[near[i] & (centre < 0)] = i
    return centre


@pytest.mark.slow
def test_clouds_here_and_on_a_cluster(names, capsys):
    sim = run("Clouds of points", names)
    clouds, here = names["clouds"], names["K"].toarray()
    calls = sim.calls
    assert calls < N * (N - 1) / 2
    exact = Similarity(clouds, moved, diagonal=0.0).columns(np.arange(N))
    check(sim, lambda a, b: exact[a, b])
    run("Clusters of clouds", names)
    assert (names["butina"] == butina(exact, 0.8)).all()
    every = map(list, combinations(range(N), 5))
    least = min(exact[:, chosen].min(axis=1).sum() for chosen in every)
    assert exact[:, names["medoids"]].min(axis=1).sum() <= 1.1 * least
    sim = run("A Dask cluster", names)
    assert sim.calls == calls
    np.testing.assert_allclose(names["K"].toarray(), here, rtol=1e-9, atol=1e-9)
    check(sim, lambda a, b: exact[a, b])
    assert not capsys.readouterr().err  # the page would show it
