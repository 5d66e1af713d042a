"""An answer larger than its memory: what it asks of the memory, and how long it takes.

Run with ``python benchmarks/out_of_core.py [folder]`` on Linux; the folder needs 5 GiB
on a disk. Two million items, rank 256, single precision: a factor of 2 GiB in a file.
Each line is the processor time of a question over that of multiplying the factor and
its transpose by a vector, block by block, and the most anonymous memory of the process
in the meantime, which is all memory but the pages of files.
"""

import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np

from simlib import LowRank

N, RANK = 2_000_000, 256
ROWS = 10_000  # of a block of the plain product
LIMIT = 2  # GiB


class Anonymous:
    """The most anonymous memory of this process while it runs, in GiB."""

    def __enter__(self):
        self.peak, self.done = 0.0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def watch(self):
        while True:
            status = Path("/proc/self/status").read_text()
            line = next(x for x in status.splitlines() if x.startswith("RssAnon"))
            self.peak = max(self.peak, int(line.split()[1]) / 2**20)
            if self.done.wait(0.002):
                return


def measured(question):
    """Return the seconds of the processor and the GiB that a question takes."""
    start = time.process_time()
    with Anonymous() as memory:
        question()
    return time.process_time() - start, memory.peak


def on_disk(path, shape):
    return np.lib.format.open_memmap(path, "w+", np.float32, shape)


def make(folder):
    """Save an answer, made block by block, and return it with its factor on disk."""
    rng = np.random.default_rng(0)
    left = on_disk(folder / "made.npy", (N, RANK))
    for k in range(0, N, ROWS):
        left[k : k + ROWS] = rng.standard_normal((ROWS, RANK), dtype=np.float32)
    core = np.diag(np.linspace(-1, 2, RANK)).astype(np.float32) / RANK
    return LowRank(left, core)


def main(folder):
    rng = np.random.default_rng(0)
    answer = folder / "answer"
    saving = measured(partial(make(folder).save, answer))
    (folder / "made.npy").unlink()
    K = LowRank.load(answer, mmap_mode="r")
    Z = on_disk(folder / "Z.npy", (N, RANK))
    x = rng.standard_normal(N, dtype=np.float32)
    i, j = rng.integers(N, size=(2, 10**6))

    def plain():
        small = sum(K.left[k : k + ROWS].T @ x[k : k + ROWS] for k in range(0, N, ROWS))
        out = np.empty(N, np.float32)
        for k in range(0, N, ROWS):
            out[k : k + ROWS] = K.left[k : k + ROWS] @ (K.core @ small)

    questions = {
        "save": saving,
        "load, mapped": lambda: LowRank.load(answer, mmap_mode="r"),
        "K @ x": lambda: K @ x,
        "K @ x, double precision": lambda: K @ x.astype(float),
        "K @ X, ten columns": lambda: K @ np.ones((N, 10), np.float32),
        "rows, twenty": lambda: K.rows(np.arange(20)),
        "entries, a million": lambda: K.entries(i, j),
        "diagonal": lambda: K.diagonal(),
        "norm": lambda: K.norm(),
        "embedding, into a file": lambda: K.embedding(out=Z),
        "eigh, ten": lambda: K.eigh(10),
        "solve": lambda: K.solve(x, 1.0),
    }
    bare = min(measured(plain)[0] for _ in range(3))
    for name, question in questions.items():
        seconds, memory = question if name == "save" else measured(question)
        verdict = "" if memory <= LIMIT else "   TOO MUCH"
        print(
            f"{name:28s}{seconds / bare:8.1f} times the plain product"
            f"{memory:8.2f} GiB (at most {LIMIT}){verdict}",
            flush=True,
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as path:
        main(Path(path))
