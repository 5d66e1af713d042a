"""Loaders of the data sets of the registry, into plain arrays and lists."""

from __future__ import annotations

import gzip
import lzma
import warnings
import zlib
from dataclasses import dataclass
from os import PathLike

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from simlib._checks import one_of, whole_number
from simlib.datasets.mesh import Mesh
from simlib.datasets.word_vectors import WordVectors
from study.datasets.registry import CorruptDataError, find


@dataclass(frozen=True, eq=False)
class CrossEncoderData:
    """A full cross-encoder matrix and the labelled pairs inside it.

    Attributes
    ----------
    matrix : ndarray of float64, shape (n, n)
        Entry (i, j) scores the ordered pair (sentence i, sentence j). Not symmetrised.
    sentences : list of str
        The n sentences.
    embeddings : ndarray of float32, shape (n, 384)
        Unit vectors of a bi-encoder; their inner products are the cheap similarity.
    pairs : ndarray of int, shape (m, 2)
        The labelled pairs (i, j) with both sentences among the n.
    scores : ndarray of float64, shape (m,)
        Their labels: STS-B 0 to 5; MRPC 1 = paraphrase; RTE 0 = entailment, so that its
        correlation with the matrix is negative.
    dev_rows : ndarray of int, shape (m,)
        Their rows in the dev split.

    Examples
    --------
    >>> from study.datasets import load_cross_encoder
    >>> len(load_cross_encoder("rte").sentences)
    539
    """

    matrix: np.ndarray
    sentences: list[str]
    embeddings: np.ndarray
    pairs: np.ndarray
    scores: np.ndarray
    dev_rows: np.ndarray

    def first(self, n: int) -> CrossEncoderData:
        """Return the first n >= 1 sentences, or all, and the labelled pairs among them.

        Examples
        --------
        >>> from study.datasets import bundled_cross_encoder
        >>> data = bundled_cross_encoder().first(100)
        >>> data.matrix.shape, len(data.pairs)
        ((100, 100), 50)
        """
        n = whole_number(n, "n", 1)
        inside = (self.pairs < n).all(axis=1)
        return CrossEncoderData(
            matrix=self.matrix[:n, :n].copy(),
            sentences=self.sentences[:n],
            embeddings=self.embeddings[:n].copy(),
            pairs=self.pairs[inside],
            scores=self.scores[inside],
            dev_rows=self.dev_rows[inside],
        )


def load_word_vectors(name: str = "glove-twitter-25") -> WordVectors:
    """Load word vectors.

    Errors are those of `find`, and ValueError for another name.

    Parameters
    ----------
    name : {"glove-twitter-25", "wordbridge-300"}
        11705 words in 25 dimensions, or 42498 words in 300. The latter have 26725
        vectors of length 1: other forms of a word have the vector of its base form.

    Returns
    -------
    WordVectors
        Of float32, shape (11705, 25) or (26725, 300).

    Examples
    --------
    >>> from study.datasets import load_word_vectors
    >>> load_word_vectors("glove-twitter-25")
    WordVectors(11705 words, 25 dimensions)
    """
    with np.load(find(name, "vectors.npz")) as stored:
        forms = "surface" if "surface" in stored else "words"
        words = stored[forms].tobytes().decode("utf8").split("\n")
        rows = stored["surface_row"] if forms == "surface" else None
        return WordVectors(tuple(words), stored["vectors"], rows)


def load_cross_encoder(name: str, *, logits: bool = False) -> CrossEncoderData:
    """Load a stored cross-encoder matrix with its sentences and labelled pairs.

    Errors are those of `find`, and ValueError for another name.

    Parameters
    ----------
    name : {"stsb", "mrpc", "rte"}
        1400, 807 and 539 sentences.
    logits : bool
        MRPC and RTE are stored as log-odds and by default returned as probabilities
        1 / (1 + exp(-x)); True returns them as stored. STS-B is a similarity as it is.

    Examples
    --------
    >>> from study.datasets import load_cross_encoder
    >>> data = load_cross_encoder("rte")
    >>> data.matrix.shape, data.embeddings.shape, len(data.pairs)
    ((539, 539), (539, 384), 277)
    """
    one_of(name, ("stsb", "mrpc", "rte"), "The name of a matrix")
    with np.load(find(name, "cross_encoder_K.npz")) as stored:
        matrix = stored["K"].astype(np.float64)
    if name != "stsb" and not logits:
        matrix = 1 / (1 + np.exp(-matrix))
    n = len(matrix)
    with np.load(find(name, "bi_encoder.npz")) as stored:
        embeddings = stored["embeddings"][:n].astype(np.float32)
    lines = find(name, "cross_encoder_sentences.tsv").read_text("utf8").split("\n")
    table = np.loadtxt(find(name, "cross_encoder_pairs.tsv"), skiprows=1)
    table = table[(table[:, :2] < n).all(axis=1)]
    return CrossEncoderData(
        matrix=matrix,
        sentences=[line.split("\t", 3)[3] for line in lines[1 : n + 1]],
        embeddings=embeddings,
        pairs=table[:, :2].astype(np.intp),
        scores=table[:, 2],
        dev_rows=table[:, 3].astype(np.intp),
    )


def load_stsb_train() -> tuple[list[tuple[str, str]], np.ndarray]:
    """Load the training pairs of STS-B, from which a cross-encoder learns.

    Errors are those of `find`.

    Returns
    -------
    pairs : list of tuple of str
        5749 pairs of sentences. None of the development set is among them.
    scores : ndarray of float64, shape (5749,)
        How alike people found them, 0 to 5.

    Examples
    --------
    >>> from study.datasets import load_stsb_train
    >>> pairs, scores = load_stsb_train()
    >>> pairs[0], float(scores[0])
    (('A plane is taking off.', 'An air plane is taking off.'), 5.0)
    """
    with gzip.open(find("stsb-train", "sts-train.csv.gz"), "rt", encoding="utf8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    scores = np.array([float(row[4]) for row in rows])
    return [(row[5].strip(), row[6].strip()) for row in rows], scores


def load_words() -> list[str]:
    """Load the 65483 distinct lower-case words, sorted, for edit distances.

    Errors are those of `find`.

    Examples
    --------
    >>> from study.datasets import load_words
    >>> words = load_words()
    >>> len(words), "similar" in words
    (65483, True)
    """
    path = find("words", "googlenews_vocabulary_in_corpora.txt.xz")
    return lzma.decompress(path.read_bytes()).decode("utf8").split("\n")


def load_cortex(name: str = "fiducial") -> Mesh:
    """Load the cortex of a right hemisphere: a closed surface of genus 0, in mm.

    Errors are those of `find`, and ValueError for another name.

    Parameters
    ----------
    name : {"fiducial", "white", "full"}
        7502 vertices halfway between the grey matter's outer and inner surface; 7502 on
        the inner one; all 151487 of "fiducial" before its decimation.

    Examples
    --------
    >>> from study.datasets import load_cortex
    >>> mesh = load_cortex()
    >>> mesh.vertices.shape, mesh.faces.shape
    ((7502, 3), (15000, 3))
    """
    files = {
        "fiducial": ("cortex", "S1_rh_fiducial_7502.npz"),
        "white": ("cortex", "S1_rh_wm_7502.npz"),
        "full": ("cortex-full", "S1_rh.npz"),
    }
    with np.load(find(*files[one_of(name, files, "The name of a cortex")])) as stored:
        if name == "full":
            vertices = (stored["pia"].astype(np.float64) + stored["wm"]) / 2
        else:
            vertices = stored["vertices"].astype(np.float64)
        return Mesh(vertices, stored["faces"].astype(np.intp))


def load_bunny() -> Mesh:
    """Load the Stanford bunny, a closed `Mesh` of genus 0, of 14290 vertices.

    Errors are those of `find`.

    Examples
    --------
    >>> from study.datasets import load_bunny
    >>> mesh = load_bunny()
    >>> mesh.vertices.shape, mesh.faces.shape
    ((14290, 3), (28576, 3))
    """
    with np.load(find("bunny", "bunny_14290.npz")) as stored:
        vertices, faces = stored["vertices"], stored["faces"]
    return Mesh(vertices.astype(np.float64), faces.astype(np.intp))


def load_road_graph(name: str = "new-york", *, weighted: bool = False) -> csr_array:
    """Load the roads of New York City, or of a state of which SNAP has them.

    Errors are those of `find`, and ValueError for another name, or for lengths of
    SNAP's.

    Parameters
    ----------
    name : {"new-york", "roadnet-ca", "roadnet-pa", "roadnet-tx"}
        New York has 264346 nodes and 365050 edges, in one piece. The states are
        California, the graph of the paper's largest experiment, Pennsylvania and Texas:
        the largest piece of each. ``python -m study.datasets fetch roadnet-ca`` asks
        SNAP's server; the hashes of those files are not known to simlib.
    weighted : bool
        Whether an edge has its length in the DIMACS file, or 1. SNAP has no lengths.

    Returns
    -------
    csr_array of float64, shape (n, n)
        Symmetric: each edge is stored in both directions.

    Examples
    --------
    >>> from study.datasets import load_road_graph
    >>> graph = load_road_graph(weighted=True)
    >>> graph.shape, graph.nnz // 2
    ((264346, 264346), 365050)
    """
    states = {f"roadnet-{state.lower()}": state for state in ("CA", "PA", "TX")}
    if one_of(name, ["new-york", *states], "The name of a graph") != "new-york":
        if weighted:
            raise ValueError(f"{name} has no lengths: leave weighted=False.")
        return load_edge_list(find(name, f"roadNet-{states[name]}.txt.gz"))
    with np.load(find("road-network", "dimacs_ny.npz")) as stored:
        n, edges = int(stored["n"]), (stored["u"], stored["v"])
        lengths = stored["weight"].astype(np.float64)
    if not weighted:
        lengths[:] = 1
    graph = coo_array((lengths, edges), shape=(n, n)).tocsr()
    return graph + graph.T


def load_edge_list(path: str | PathLike[str]) -> csr_array:
    r"""Read the largest piece of a graph from a file as SNAP has them.

    Parameters
    ----------
    path : path
        Text, compressed or not: lines of two numbers of nodes, and others that begin
        with #. An edge may stand there once or in both directions.

    Returns
    -------
    csr_array of float64, shape (n, n)
        The adjacency matrix, symmetric, of ones, without loops. Nodes come in the order
        of their numbers; numbers that no edge has are left out.

    Raises
    ------
    FileNotFoundError, CorruptDataError
        No such file; a line that is not two whole numbers, or no edge.

    Examples
    --------
    >>> import tempfile
    >>> from study.datasets import load_edge_list
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     print("# a path, and two others\n7 3\n3 9\n20 21", file=file)
    ...     file.flush()
    ...     graph = load_edge_list(file.name)
    >>> graph.shape
    (3, 3)
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            edges = np.loadtxt(path, dtype=np.int64, comments="#", ndmin=2)
    except (ValueError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, FileNotFoundError) or getattr(error, "errno", None):
            raise  # of the system; NumPy leaves out its number
        raise CorruptDataError(f"{path} is no list of edges: {error}.") from error
    edges = edges[edges[:, 0] != edges[:, -1]]
    if edges.size == 0 or edges.shape[1] != 2:
        raise CorruptDataError(
            f"{path} is no list of edges: wanted are lines of two different numbers of "
            f"nodes, got {edges.shape[0]} lines of {edges.shape[1]}."
        )
    numbers, ends = np.unique(edges, return_inverse=True)
    i, j = ends.reshape(edges.shape).T
    half = coo_array((np.ones(i.size), (i, j)), shape=(numbers.size,) * 2).tocsr()
    graph = csr_array(half + half.T)
    graph.data[:] = 1
    _, piece = connected_components(graph, directed=False)
    largest = np.flatnonzero(piece == np.bincount(piece).argmax())
    return graph[largest][:, largest]
