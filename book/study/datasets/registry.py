"""Which data simlib knows: where each file comes from, its hashes, where it lies.

A file is looked for in ``$SIMLIB_DATA/<folder>/``, then in the user cache
(``$XDG_CACHE_HOME`` or ``~/.cache``, ``simlib/<folder>/``) and checked when a process
first reads it. `File.sha256` is the hash of its bytes, as the data folder's SOURCE.md
states it. Another zlib or xz makes other bytes of the same content, so a compressed
file also has `File.content_sha256`, and one of the two has to be right.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import BufferedReader, BytesIO
from pathlib import Path

from study.datasets import convert
from study.datasets.content import content_sha256


class DataNotFoundError(FileNotFoundError):
    """A data file, or the folder that ``SIMLIB_DATA`` names, is not there."""


class CorruptDataError(ValueError):
    """A data file is not the one the registry describes."""


@dataclass(frozen=True)
class File:
    """One file of a data set: it has either a `url` or a `recipe`.

    Attributes
    ----------
    name : str
        File name inside the data set's folder.
    sha256 : str
        Hash of the file that simlib reads, in its first compression. Empty where we
        have never had the file: then what is there is taken as it is.
    url : str, optional
        The public raw file, pinned to a commit.
    raw_sha256 : str, optional
        Hash of the raw file.
    convert : callable, optional
        Bytes of the raw file -> bytes of this file.
    recipe : str, optional
        Where no single public file exists: what the file is and how it was made.
    content_sha256 : str, optional
        Hash of what a compressed file holds, see ``study.datasets.content``.

    Examples
    --------
    >>> from study.datasets import REGISTRY
    >>> (file,) = REGISTRY["bunny"].files
    >>> file.name, file.recipe is None  # so it can be downloaded
    ('bunny_14290.npz', True)
    """

    name: str
    sha256: str
    url: str | None = None
    raw_sha256: str | None = None
    convert: Callable[[bytes], bytes] | None = None
    recipe: str | None = None
    content_sha256: str | None = None

    def identify(self, stream: BufferedReader | BytesIO) -> str:
        """Return `sha256` if the stream holds this file in any compression.

        Otherwise the SHA-256 of its bytes.
        """
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        if self.content_sha256 is not None and found != self.sha256:
            stream.seek(0)
            if content_sha256(self.name, stream) == self.content_sha256:
                return self.sha256
        return found


@dataclass(frozen=True)
class Dataset:
    """A data set: the files its loader needs, their public source and licence.

    Attributes
    ----------
    name : str
        The key in `REGISTRY`.
    folder : str
        Where its files lie.
    title : str
        What it holds.
    source : str
        Where the files come from.
    licence : str
        Under which terms.
    files : tuple of File
        What is read.

    Examples
    --------
    >>> from study.datasets import REGISTRY
    >>> dataset = REGISTRY["bunny"]
    >>> dataset.title
    'the Stanford bunny as a closed mesh of 14290 vertices'
    >>> [file.name for file in dataset.files]
    ['bunny_14290.npz']
    """

    name: str
    folder: str
    title: str
    source: str
    licence: str
    files: tuple[File, ...]


def cache_folder() -> Path:
    """Return the user cache, the last place looked at and the one `fetch` fills.

    DataNotFoundError tells of a user without a home.
    """
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(given or Path.home() / ".cache") / "simlib"
    except RuntimeError as error:
        raise DataNotFoundError(
            "There is no home folder for a cache: set XDG_CACHE_HOME, or SIMLIB_DATA "
            "to the folder of the data sets."
        ) from error


def lookup(name: str) -> Dataset:
    """Return the data set called `name`; ValueError lists the names there are."""
    if name not in REGISTRY:
        raise ValueError(f"no data set {name!r}; there are {', '.join(REGISTRY)}")
    return REGISTRY[name]


def find(dataset: str, file: str) -> Path:
    """Return the path of one file of a data set, its content checked.

    Raises the audit event ``study.datasets`` with ``folder/file``, the name that the
    file has in `fingerprint`; so does `available`, for each file. A hook of
    ``sys.addaudithook`` sees what data a program asks for.

    Parameters
    ----------
    dataset : str
        A name in `REGISTRY`.
    file : str
        The name of one of its files.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    DataNotFoundError
        The file is in neither place, or ``SIMLIB_DATA`` names no folder.
    CorruptDataError
        The file found first does not hold what the registry says.
    ValueError
        No such data set, or it has no such file; the message lists what there is.

    Examples
    --------
    >>> from study.datasets import find
    >>> find("bunny", "bunny_14290.npz").name
    'bunny_14290.npz'
    """
    entry = lookup(dataset)
    known = {known.name: known for known in entry.files}
    if file not in known:
        raise ValueError(f"{dataset} has no file {file!r}; it has {', '.join(known)}")
    sys.audit("study.datasets", f"{entry.folder}/{file}")
    path = locate(entry, known[file])
    command = f"`python -m study.datasets fetch {dataset}`"
    if path is None:
        looked = " nor ".join(str(root / entry.folder / file) for root in _places())
        looked = looked or f"folder in which to look for {entry.folder}/{file}"
        raise DataNotFoundError(
            f"no {looked}. Run {command}, or set SIMLIB_DATA to the folder that holds "
            f"{entry.folder}/{file}."
        )
    if (found := _sha256(path, known[file])) != known[file].sha256 != "":
        raise CorruptDataError(
            f"{path} holds something else than the registry says (SHA-256 {found}, "
            f"not {known[file].sha256}). Delete it and run {command}."
        )
    return path


def available(name: str) -> bool:
    """Tell whether every file of a data set is there (`find` checks what they hold).

    Raises audit events, see `find`.

    Parameters
    ----------
    name : str
        A name in `REGISTRY`.

    Returns
    -------
    bool

    Raises
    ------
    DataNotFoundError
        ``SIMLIB_DATA`` is set and names no folder.
    ValueError
        No such data set; the message lists those there are.

    Examples
    --------
    >>> from simlib.datasets import bumpy_sphere
    >>> from study.datasets import available, load_bunny
    >>> mesh = load_bunny() if available("bunny") else bumpy_sphere()
    """
    entry = lookup(name)
    for file in entry.files:
        sys.audit("study.datasets", f"{entry.folder}/{file.name}")
    return all(locate(entry, file) is not None for file in entry.files)


def fingerprint() -> dict[str, str | None]:
    """Return the SHA-256 of every file that would be read, None where there is none.

    Returns
    -------
    dict
        ``"folder/file"`` -> the registry's hash, if the file on disk has the content
        the registry describes, in any compression; otherwise the hash of its bytes.

    Raises
    ------
    DataNotFoundError
        ``SIMLIB_DATA`` is set and names no folder.

    Notes
    -----
    A process reads each file once, as long as its time and size stay.

    Examples
    --------
    >>> from study.datasets import fingerprint
    >>> missing = [file for file, sha256 in fingerprint().items() if sha256 is None]
    """
    return {
        f"{entry.folder}/{file.name}": _sha256(path, file) if path else None
        for entry in REGISTRY.values()
        for file in entry.files
        for path in [locate(entry, file)]
    }


def _places() -> list[Path]:
    """Return the folders to look in, first the one that wins."""
    given = os.environ.get("SIMLIB_DATA")
    if given and not Path(given).is_dir():
        raise DataNotFoundError(
            f"SIMLIB_DATA is {given!r}, which is not a folder: set it to the folder of "
            "the data sets, or unset it to use the user cache."
        )
    places = [Path(given)] if given else []
    with suppress(DataNotFoundError):  # a user without a home has no cache
        places.append(cache_folder())
    return places


def locate(entry: Dataset, file: File) -> Path | None:
    """Return where a file of a data set is, None if it is in neither place."""
    paths = (root / entry.folder / file.name for root in _places())
    return next((path for path in paths if path.is_file()), None)


def _sha256(path: Path, file: File) -> str:
    """Identify a file, once per process as long as its time and size stay."""
    stat = path.stat()
    return _identify(path, stat.st_mtime_ns, stat.st_size, file)


@cache
def _identify(path: Path, mtime_ns: int, size: int, file: File) -> str:
    with path.open("rb") as stream:
        return file.identify(stream)


def _github(repository: str, commit: str, path: str) -> str:
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"


_TWITTER = ("mkusner/wmd", "8522da3231cacbe91f94bad95651372bdf03762c")
_STSB = (
    "zhangzhenhu/Semantic-Texual-Similarity-Toolkits",
    "c55a72f51bd15a8bd75114247c06984b432050f9",
    "data/stsbenchmark/sts-dev.csv",
)
_STSB_TRAIN = (*_STSB[:2], "data/stsbenchmark/sts-train.csv")
_RTE = ("Ji-Yishan/MIEC-FYP", "250635701007f7f2dc00b63ce2cbc3dfe104b4e0", "RTE/dev.tsv")
_STOP_WORDS = (
    "archanray/approximate_similarities",
    "6d8f544d27c1b79c39f4c5926d314757ea16a84b",
    "WME/data_proc/stop_words_115.txt",
)
_BANKING = (
    "PolyAI-LDN/task-specific-datasets",
    "57ec275d8078af65b7731c2a98be812d844a6d6b",
)
_DEDUPE = ("dedupeio/dedupe-examples", "48916bf09205756a2948a30ec0275ac2e394288d")
_BUNNY = (
    "GeometryCollective/geometry-processing-js",
    "c7ea47ae808979a5361e3fcd61bf921a194bf897",
    "input/bunny.obj",
)
_STSB_RAW = {
    "url": _github(*_STSB),
    "raw_sha256": "5d7e944d8b02734b07bfdb5df67db3420c64bed153fcaa1ba47ad03480cf4234",
}
_RTE_RAW = {
    "url": _github(*_RTE),
    "raw_sha256": "e7e42b7ee79c36ebd780ebbdba525b939017da4ef9624c9e78b9ac2e69e36c28",
}
_MRPC_PAIRS = """\
From msr_paraphrase_train.txt (GitHub wasiahmad/paraphrase_identification, commit
88b208d0d094ab945d2401d9393531be1fec0076, dataset/msr-paraphrase-corpus/; SHA-256
61a88818ec384d8465297dda1883b469f1b22d442ab90183d13e06233b180591) and the ids of GLUE's
408 dev pairs (ju-resplande/PLUE, commit 7603970b7aa43b91ce5f0841aa42e6770dd6369f,
datasets/MRPC/dev.tsv): take the pairs in the order of random.Random(0).shuffle(
list(range(408))), strip spaces, number the sentences in order of first use."""
_BANKING_VECTORS = """\
Computed by this project, not a copy: array `embeddings`, float16, 13083 x 384, a row
for each question of train.csv, then of test.csv: all-MiniLM-L6-v2
(sentence-transformers, Apache-2.0) of the text without blanks at its ends, mean-pooled,
L2-normalised."""
_BI_ENCODER = """\
Computed by this project, not a copy: array `embeddings`, float16, {n} x 384, a row for
each line of cross_encoder_sentences.tsv: all-MiniLM-L6-v2 (sentence-transformers,
Apache-2.0) before any fine-tuning, mean-pooled, L2-normalised."""
_STSB_MATRIX = """\
Computed by this project, not a copy: array `K`, float16, 1400 x 1400, not symmetrised,
K[i, j] = output, about 0 to 1, for the ordered pair (sentence i, sentence j) of the
first 1400 sentences. Model: all-MiniLM-L6-v2 as a BERT sequence classifier with one
regression output on the pooled [CLS], fine-tuned on the 5749 pairs of sts-train (score
/ 5, mean squared error, raw output): 3 epochs, batch 32, AdamW, learning rate 4e-5
linear with 10 % warm-up, weight decay 0.01, gradient clip 1.0, dropout 0.1, seed
20240601, bfloat16 autocast. Every ordered pair, in batches of one exact length without
padding, matrix products in bfloat16, residual stream, layer norm and head in fp32."""
_LOGIT_MATRIX = """\
Computed by this project, not a copy: array `K`, float16, {n} x {n}, not symmetrised,
K[i, j] = {logit} for the ordered pair (sentence i, sentence j).
Model: {start} with one logit on the pooled [CLS],
fine-tuned on {train}, binary cross-entropy: 3 epochs, batch
32, AdamW, learning rate 5e-5 linear with 10 % warm-up, weight decay 0.01, gradient clip
1.0, seed 20240601, dropout 0.1 on the pooled vector only, word and position embeddings
frozen. Every ordered pair, in batches of one exact length without padding, matrix
products in bfloat16, the rest in fp32."""
_GLOVE = """\
From glove_twitter_25d.rda (GitHub rimonim/embedplyr, commit
12ceed9c9260fee82d28a5527ea6405fcf7f2a4d, data/; 11925 words with the 25-dimensional
GloVe vectors trained on 27B tokens of Twitter, nlp.stanford.edu/projects/glove): the
11705 words that occur in six corpora of ours (tweets, recipes, Ohsumed, 20 Newsgroups
and two more). numpy.savez_compressed of `vectors`, float32, 11705 x 25, and `words`,
uint8, the UTF-8 words joined by newlines."""
_WORDS = """\
From vocabulary/vocabulary_01.txt to _30.txt (GitHub chrisjmccormick/inspect_word2vec,
commit 2a880802b0efce54009ccab347d9f8a08f8a79b7; the entries of the word2vec Google News
model): the 65483 that are lower-cased tokens of six corpora of ours (tweets, recipes,
Ohsumed, 20 Newsgroups and two more), sorted, one a line, xz-compressed."""
_RECIPES = """\
From train.json of train.json.zip (GitHub jielulovesdessert/What-is-cooking, commit
c33094b6233d47380ed8941f24cf399ecd6b4025, git blob
6cfada17d0af7fbc8055238029ac1aa9bbc15908; the training file of the Kaggle competition
What's Cooking): JSON lines in its order with `id`, `label` (its `cuisine`) and
`ingredients`, as they are."""
_TEXT_FILES = """\
From the {n} files of {folder} (GitHub yao8839836/text_gcn, commit
962223652e9bb164ac2d83cd09fc7b8845ce860b): JSON lines in the order of their paths, test
before train, with `split` (train or test), `label` ({label}), `id` (the file's name)
and `text` (the file, decoded as Latin-1)."""
_LINES = """\
 UTF-8, no escapes that are not needed, no spaces between fields; lzma.compress with
preset 9 | PRESET_EXTREME."""
_WORDBRIDGE = """\
From public/data/words/WORD.vec (41353 files, raw DEFLATE of a uint32 and 300 float32)
and public/data/word_baseform.json (GitHub raghavchandra123/wordbridge, commit
21c286f21732d75c88cecc5ef6cdf7c992c79104; ConceptNet Numberbatch by all appearance):
what occurs in six corpora of ours (tweets, recipes, Ohsumed, 20 Newsgroups and two
more). numpy.savez_compressed of `vectors`, float16, 26725 x 300, exact; `words`, uint8,
the UTF-8 words joined by newlines; `surface`, the 42498 word forms in the same way;
`surface_row`, int32, the row of each: its own or that of its base form."""

_CORTEX = """\
From filestore/db/S1/surfaces/pia_rh.gii and wm_rh.gii (GitHub mvdoc/pycortex, commit
45772edc73b9fd640a0cb458482688a68cac5d52; SHA-256
127c4b4a4df29adcb438f9c46e76d0f433f80e9c94e4b84dfafb0e11e4e6d356 and
c53c5b9306140a5baa212b3056d4cae7317d55277e6ffa15ee9a3a7287e01c02):
numpy.savez_compressed of `pia` and `wm`, float32, 151487 x 3, and the `faces` they
share, int32, 302970 x 3, read with nibabel, values and order unchanged."""
_ROADS = """\
From the 747 files ny1/subgraphN (GitHub akashcodes/distributed-ksp-mpi, commit
7c56d9a5ba863c1925debe253243b206c4621bec), overlapping parts of USA-road-d.NY of the 9th
DIMACS Implementation Challenge (www.diag.uniroma1.it/challenge9): the union of their
arcs, as undirected edges. Arrays `n` = 264346, the number of nodes (DIMACS id - 1);
`u` < `v`, int32, the 365050 edges sorted by (u, v); `weight`, int32, their lengths."""
_DECIMATED = """\
Derived by this project, not a copy: `vertices`, float32, 7502 x 3, and `faces`, int32,
15000 x 3, of {surface} in S1_rh.npz (cortex-full) after quadric edge-collapse
decimation: fast_simplification 0.2.0, simplify(points_float32, faces,
target_count=15000)."""

_ECBPLUS = """\
From the 982 XML files ECB+_LREC2014/ECB+/TOPIC/DOCUMENT.xml of GitHub
tommasoc80/EventStoryLine, commit 46edefee5e82e0917b823abe0a18bf8c7770f15c (cltl/ecbPlus
has them as one zip). train, dev (topics 2, 5, 12, 18, 21, 23, 34, 35) and test (36 to
45) are the usual splits. """
_ECBPLUS_MENTIONS = (
    _ECBPLUS
    + """\
The 15122 mentions in the sentences that ECBplus_coreference_sentences.csv lists, sorted
by split, topic, doc, sent and start, as JSON lines: split, doc, topic (a number),
subtopic, sent, start and end (the first and last token in the sentence, from 0), text,
kind (event for the tags ACTION_ and NEG_, otherwise entity), tag, cluster (the instance
of its CROSS_DOC_COREF, else INTRA_RELATION_DOC, else SING_DOC_MENTION), relation
(cross, intra, none), m_id, tokens (of the mentions in pieces) and cluster_name."""
)
_ECBPLUS_SENTENCES = (
    _ECBPLUS
    + """\
The 16314 sentences as JSON lines: split, doc, topic, subtopic, sent, validated (whether
it is in that list) and tokens."""
)
_MENTION_EMBEDDINGS = """\
Computed by this project, not a copy. Arrays `span` and `text`, float16, 15122 x 384, in
the order of ecbplus_mentions.jsonl: by all-MiniLM-L6-v2, not fine-tuned, the mean of
the last hidden states over the tokens of the mention, within its sentence and up to 30
words of the sentences before and after; and the mean-pooled vector of its text."""
_PAIR_SCORES = """\
Computed by this project, not a copy. For each topic T of dev and test an array dev_T or
test_T, float16: the score in 0 to 1 of every ordered pair of its {kind} mentions; and
dev_T_mentions, test_T_mentions, int32, their rows in ecbplus_mentions.jsonl. The
scorer: a = [span, text] / norm of mention_embeddings.npz, standardised over all
mentions; input [a, b, a * b], dropout .2, 256 ReLU units, dropout .3, a logit, the
logistic function; trained on the pairs within the topics of train (all positive ones
and at most 20 times as many others, orders swapped at random) by AdamW (1e-3, weight
decay .01), batches of 512, seed 0, {epochs} epochs."""

_SETS = (
    Dataset(
        name="twitter",
        folder="wmd_twitter",
        title="3115 tweets labelled positive, neutral or negative",
        source=f"GitHub {_TWITTER[0]}, commit {_TWITTER[1]}, all_twitter_by_line.txt "
        "(the Sanders sentiment corpus)",
        licence="none stated in the repository",
        files=(
            File(
                "twitter.jsonl.xz",
                "be8b5ed8467982b7d579133f17b5339f878ce102922baeac0b71522922b473fe",
                _github(*_TWITTER, "all_twitter_by_line.txt"),
                "fede45a913a2ab6e6035428c37b88c7bbfe454275cc4b439997fa86f370a4623",
                convert.twitter,
                content_sha256="1685a814d02f3e070e4080d2e678c0cbbdae3984efd274448440224d6be38c85",
            ),
        ),
    ),
    Dataset(
        name="glove-twitter-25",
        folder="word_vectors_glove_twitter_25",
        title="11705 GloVe-Twitter word vectors of 25 dimensions",
        source="GitHub rimonim/embedplyr, commit "
        "12ceed9c9260fee82d28a5527ea6405fcf7f2a4d, data/glove_twitter_25d.rda",
        licence="vectors PDDL v1.0; the package GPL-3 or later",
        files=(
            File(
                "vectors.npz",
                "cdc942226afa4ae8e7c84d05efd9454f62964d26cf101ef133ddf313acb66afb",
                recipe=_GLOVE,
                content_sha256="3e2076c5ea1d1af55665d94237aac47c8f596591cd1f980c33fbad97108d81e5",
            ),
        ),
    ),
    Dataset(
        name="recipes",
        folder="recipe_whats_cooking",
        title="39774 recipes of 20 cuisines, by their ingredients (Recipe-L)",
        source="GitHub jielulovesdessert/What-is-cooking, commit "
        "c33094b6233d47380ed8941f24cf399ecd6b4025, train.json.zip (Kaggle, What's "
        "Cooking; recipes of Yummly)",
        licence="none stated in the repository; competition data, non-commercial use",
        files=(
            File(
                "recipes.jsonl.xz",
                "602e9c08a0dc86cae61bfaa23b4daddfef8f99ff2289a84a327654de90f12277",
                recipe=_RECIPES + _LINES,
                content_sha256="a78c892c777ed45159e6648419a323a8c21bda964400960ecd4c6ab530dc3083",
            ),
        ),
    ),
    Dataset(
        name="ohsumed",
        folder="ohsumed_single23",
        title="7400 abstracts in 23 classes of diseases, those with one label",
        source="GitHub yao8839836/text_gcn, commit "
        "962223652e9bb164ac2d83cd09fc7b8845ce860b, data/ohsumed_single_23 (of "
        "ohsumed-first-20000-docs)",
        licence="no licence file in the repository; OHSUMED is for research use",
        files=(
            File(
                "ohsumed_single23.jsonl.xz",
                "673dd35c24c6925d1ee564d9a3df0eafb60755d6e91f0ed53246355efc747e39",
                recipe=_TEXT_FILES.format(
                    n=7400,
                    folder="data/ohsumed_single_23/{training,test}/Cxx/ID",
                    label="C01 to C23",
                )
                + _LINES,
                content_sha256="bc032f3b9b8b861543596dbe009e914e4be21e0b117c8bb3b74c6609f34f5de4",
            ),
        ),
    ),
    Dataset(
        name="newsgroups",
        folder="twenty_newsgroups",
        title="18846 messages of 20 newsgroups, sorted by date",
        source="GitHub yao8839836/text_gcn, commit "
        "962223652e9bb164ac2d83cd09fc7b8845ce860b, data/20ng (20news-bydate)",
        licence="no licence file in the repository; public Usenet mail",
        files=(
            File(
                "20news_bydate.jsonl.xz",
                "55edc488abcaee4a2887353a24a183134b5080d14e03511c76d09ee65c9f966e",
                recipe=_TEXT_FILES.format(
                    n=18846,
                    folder="data/20ng/20news-bydate-{train,test}/GROUP/MESSAGE",
                    label="the group",
                )
                + _LINES,
                content_sha256="6b06632200480ec3ec560841c52ab4bbe41079630fa7c772b9cbc7dd15858779",
            ),
        ),
    ),
    Dataset(
        name="banking77",
        folder="banking77",
        title="13083 customers' questions to a bank in 77 intents, and their vectors",
        source=f"GitHub {_BANKING[0]}, commit {_BANKING[1]}, banking_data; embeddings "
        "are our own",
        licence="CC BY 4.0 (Casanueva et al., 2020)",
        files=(
            File(
                "train.csv.gz",
                "eec5f16d49941f140cc6eb7b31c721615609908d6211ecc9993781589fb87b2e",
                _github(*_BANKING, "banking_data/train.csv"),
                "b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b",
                convert.zipped,
                content_sha256="b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b",
            ),
            File(
                "test.csv.gz",
                "e90d8ab60d56afe35565762114f3e276f458921b11d09ed0baaf2adc44a13894",
                _github(*_BANKING, "banking_data/test.csv"),
                "d12d6e3bc4c3103966ae786dc435913c0c563dfa328f5a3646d0e62cfeeb474d",
                convert.zipped,
                content_sha256="d12d6e3bc4c3103966ae786dc435913c0c563dfa328f5a3646d0e62cfeeb474d",
            ),
            File(
                "bi_encoder.npz",
                "de7ac26497ed2beb33ac7c2565d0da1951b7046389ae10606985aed0f6690da8",
                recipe=_BANKING_VECTORS,
                content_sha256="10838f86f8c205b65ae2e6d64da2ab726781e85c4743b48f9323eb1674062c01",
            ),
        ),
    ),
    Dataset(
        name="stop-words",
        folder="word_lists",
        title="115 stop words",
        source=f"GitHub {_STOP_WORDS[0]}, commit {_STOP_WORDS[1]}, {_STOP_WORDS[2]}",
        licence="none stated in the repository",
        files=(
            File(
                "stop_words_115.txt",
                "89b64d30f541827651c69ebe5ecb7f84387769d91189f12546af39f26179f128",
                _github(*_STOP_WORDS),
                "89b64d30f541827651c69ebe5ecb7f84387769d91189f12546af39f26179f128",
                bytes,
            ),
        ),
    ),
    Dataset(
        name="wordbridge-300",
        folder="word_vectors_wordbridge300",
        title="word vectors of 300 dimensions for 42498 words (Numberbatch, inferred)",
        source="GitHub raghavchandra123/wordbridge, commit "
        "21c286f21732d75c88cecc5ef6cdf7c992c79104, public/data",
        licence="none in the repository; ConceptNet Numberbatch is CC BY-SA 4.0",
        files=(
            File(
                "vectors.npz",
                "d76f9363d03f6d68a070017d464733023a3af5e2297c1761eef7cc805a2ee3b1",
                recipe=_WORDBRIDGE,
                content_sha256="879c4ea1badfd8f5472b8671ccd92b8b1a036e62155931dbff4f9b8e9f1647cd",
            ),
        ),
    ),
    Dataset(
        name="stsb",
        folder="stsb",
        title="STS-B dev: a 1400 x 1400 cross-encoder matrix, sentences, scored pairs",
        source=f"GitHub {_STSB[0]}, commit {_STSB[1]}, {_STSB[2]}; matrix and "
        "embeddings are our own",
        licence="scores CC BY-SA 4.0; each text source keeps its own",
        files=(
            File(
                "cross_encoder_K.npz",
                "be113e556e15975c82c8bda4e4d1f00de3e04dc4902e17a0c24968f6846895af",
                recipe=_STSB_MATRIX,
                content_sha256="a728ff2ca96a5926190f673cc62f9839be3b2c829092b64cde2d5153437e4c29",
            ),
            File(
                "cross_encoder_sentences.tsv",
                "254b6a63ae6efa63d992268f9114c771b4e72c5dba77c8085896fed90410a314",
                convert=convert.stsb_sentences,
                **_STSB_RAW,
            ),
            File(
                "cross_encoder_pairs.tsv",
                "75287d2e5f02446c4d19c979f30f3cbcb9e6220bbb6cfb8571547d87cabc83ed",
                convert=convert.stsb_pairs,
                **_STSB_RAW,
            ),
            File(
                "bi_encoder.npz",
                "98ea95c1860bc81e9fdbfc9e8079dcc1e30f77e8c1d938315c3860f25ecd50be",
                recipe=_BI_ENCODER.format(n=2910),
                content_sha256="632b4e9080d057df529be82fc988e98953d5e0e7b3c184b0a252358e32f19f6b",
            ),
        ),
    ),
    Dataset(
        name="stsb-train",
        folder="stsb",
        title="STS-B train: 5749 scored pairs of sentences",
        source=f"GitHub {_STSB_TRAIN[0]}, commit {_STSB_TRAIN[1]}, {_STSB_TRAIN[2]}",
        licence="scores CC BY-SA 4.0; each text source keeps its own",
        files=(
            File(
                "sts-train.csv.gz",
                "c8f7386eb489cf22d04b65331f63746483473e81d0e7a2003777e79109072c3c",
                url=_github(*_STSB_TRAIN),
                raw_sha256="0f71910b59aa1ad973c5897f0791f3b0965a92b8f82b1a95f3eea9f4162fda82",
                convert=convert.zipped,
                content_sha256="0f71910b59aa1ad973c5897f0791f3b0965a92b8f82b1a95f3eea9f4162fda82",
            ),
        ),
    ),
    Dataset(
        name="mrpc",
        folder="mrpc",
        title="MRPC dev: an 807 x 807 cross-encoder matrix, sentences, labelled pairs",
        source="GitHub wasiahmad/paraphrase_identification, commit "
        "88b208d0d094ab945d2401d9393531be1fec0076, dataset/msr-paraphrase-corpus/"
        "msr_paraphrase_train.txt; matrix and embeddings are our own",
        licence="Microsoft Research data licence (research use)",
        files=(
            File(
                "cross_encoder_K.npz",
                "36513b98526e79b4a5114a8f4a216378ffcb31779d825ce501457eaea42c40f2",
                recipe=_LOGIT_MATRIX.format(
                    n=807,
                    logit="paraphrase log-odds",
                    start="all-MiniLM-L6-v2",
                    train="GLUE's MRPC train (3668 pairs)",
                ),
                content_sha256="075b6dbb3f53557e22e2da4c69b1a5d9ce0679fd593fbe7f220d906b2265dbb3",
            ),
            File(
                "cross_encoder_sentences.tsv",
                "09525cc6abfb69add54df2b349683eeaa7851c737815f861aae9a9f516aa88d4",
                recipe="Columns index, dev_row, genre (empty), sentence. "
                + _MRPC_PAIRS,
            ),
            File(
                "cross_encoder_pairs.tsv",
                "0ff5f98f8028e9902b0ef4683c9a660b322072447fb40d3d7d86f2e1ddc21f20",
                recipe="Columns i, j, label (1 = paraphrase), dev_row. " + _MRPC_PAIRS,
            ),
            File(
                "bi_encoder.npz",
                "d9b27706b3c1d3040a48c6e15fe098c0babc7ec11364c153a9c19863d0271329",
                recipe=_BI_ENCODER.format(n=807),
                content_sha256="3ae8c46f8226efe0c2a2cd4d50b9e7908eefc1e895a41ed66914876091e68a9d",
            ),
        ),
    ),
    Dataset(
        name="rte",
        folder="rte",
        title="RTE dev: a 539 x 539 cross-encoder matrix, sentences, labelled pairs",
        source=f"GitHub {_RTE[0]}, commit {_RTE[1]}, {_RTE[2]}; matrix and embeddings "
        "are our own",
        licence="none of its own (PASCAL RTE challenges, research use)",
        files=(
            File(
                "cross_encoder_K.npz",
                "8cc43aade8cdec85ee8efef3c08ecb4eee69075ea77b1e30999021f34fa7899c",
                recipe=_LOGIT_MATRIX.format(
                    n=539,
                    logit="entailment log-odds, i the premise,",
                    start="the cross-encoder of stsb",
                    train="RTE train (2490 pairs, target 1 = entailment)",
                )
                + " Pairs of more than 200 word pieces are cut.",
                content_sha256="12ec2a64be1381b697f9c42e06bc272278691f25417c708624e648a7e3887ca5",
            ),
            File(
                "cross_encoder_sentences.tsv",
                "7ef61a52b5a4236a56723ff987ac89148609a9397e3e90815a69773f05850542",
                convert=convert.rte_sentences,
                **_RTE_RAW,
            ),
            File(
                "cross_encoder_pairs.tsv",
                "c64244a370098e39ce0ced3534140eb2aa652160caa5b6bccef0212234b595a3",
                convert=convert.rte_pairs,
                **_RTE_RAW,
            ),
            File(
                "bi_encoder.npz",
                "f627c13e516d6a77798fbb68ddf6491b752270bcc5c4d55223ba11d33d8a57c9",
                recipe=_BI_ENCODER.format(n=539),
                content_sha256="5b9816c36b4ea8ea53f7ad5642ea369078ffea9ad8267ad1de35f10e02638602",
            ),
        ),
    ),
    Dataset(
        name="ecbplus",
        folder="ecbplus",
        title="ECB+: 15122 mentions of events and entities in news, and pair scores",
        source="GitHub tommasoc80/EventStoryLine, commit "
        "46edefee5e82e0917b823abe0a18bf8c7770f15c, ECB+_LREC2014; embeddings and "
        "scores are our own",
        licence="annotation CC BY 3.0 (Cybulska and Vossen, 2014)",
        files=(
            File(
                "ecbplus_mentions.jsonl.gz",
                "bac4bc2005e13a8ee352a97eedd088560e74c3c43e77f940443e71310f03cde5",
                recipe=_ECBPLUS_MENTIONS,
                content_sha256="868eb26f9c0942e398b1f4f4ce4b9e288ec142ac1f735a164530dc7c6a5f130d",
            ),
            File(
                "ecbplus_sentences.jsonl.gz",
                "3b44b460ca8ef2db4f61f4ac8e1dcfdd6fe2558ccc28f8cdab295ceaab113995",
                recipe=_ECBPLUS_SENTENCES,
                content_sha256="ae5711ccf6881b9e263bd266f283f990ec12223072ab9ea42e15e532b63a8548",
            ),
            File(
                "mention_embeddings.npz",
                "3f3679bc8a25291c1b14067de8f1426807ff086a521a1a597ec7aa47d99f13cf",
                recipe=_MENTION_EMBEDDINGS,
                content_sha256="e390a6e1cd0f2dfb3627c19e6bb71ea5f55ff8e919ef916194bc4b464b2f2cb5",
            ),
            File(
                "pair_scores_event.npz",
                "2098075d93fc2aa82171fd0a106055e4c1f9331bde792a95063e1b09be559089",
                recipe=_PAIR_SCORES.format(kind="event", epochs=6),
                content_sha256="64c9a8f06ee3aff67e5e5077e68ded873fad2bcc77341a0f6a660ab783903ac9",
            ),
            File(
                "pair_scores_entity.npz",
                "c2938e72d8d0592f624ef5408cd73296e7227cca6e2f230c3556cc6f5f1423ee",
                recipe=_PAIR_SCORES.format(kind="entity", epochs=3),
                content_sha256="55354b6ca492769fe4d2c4fb2c6093522e9e85b929bf4238d79ea406a58cbf83",
            ),
        ),
    ),
    Dataset(
        name="abt-buy",
        folder="record_linkage",
        title="Abt-Buy: 1081 and 1092 products of two shops, with their matches",
        source=f"GitHub {_DEDUPE[0]}, commit {_DEDUPE[1]}, record_linkage_example/ "
        "(from the entity-resolution benchmark of Leipzig's database group)",
        licence="MIT (the repository); public benchmark data",
        files=(
            File(
                "AbtBuy_Abt.csv.gz",
                "5c6f6ded88769483bfb3f11bc2a365579a90d94c58e242aef2c47cac48e1e7b4",
                url=_github(*_DEDUPE, "record_linkage_example/AbtBuy_Abt.csv"),
                raw_sha256="98ee245f1c831138525f48d7cf31394e53c97e9520301116dccb171666942ebe",
                convert=convert.zipped,
                content_sha256="98ee245f1c831138525f48d7cf31394e53c97e9520301116dccb171666942ebe",
            ),
            File(
                "AbtBuy_Buy.csv.gz",
                "ff824b7bb21e5dc759c09ae7f7a61ef37aa0c8c8ee4ed74ee4add5fac92a3ced",
                url=_github(*_DEDUPE, "record_linkage_example/AbtBuy_Buy.csv"),
                raw_sha256="a31023d7f02fd696d424d246f988fe5b80b41ab24b020592a6b1442c1ea26299",
                convert=convert.zipped,
                content_sha256="a31023d7f02fd696d424d246f988fe5b80b41ab24b020592a6b1442c1ea26299",
            ),
        ),
    ),
    Dataset(
        name="early-childhood",
        folder="record_linkage",
        title="3337 records of 1162 early-childhood sites in Chicago, from nine lists",
        source=f"GitHub {_DEDUPE[0]}, commit {_DEDUPE[1]}, csv_example/",
        licence="MIT (the repository); public data of the city",
        files=(
            File(
                "csv_example_input_with_true_ids.csv.gz",
                "f8462efaa2decd4b6566163f5182aea45cfecec24cca6e6fa4eb9db12148e1a9",
                url=_github(
                    *_DEDUPE, "csv_example/csv_example_input_with_true_ids.csv"
                ),
                raw_sha256="13cbb7b939c4b201f92b09b6e800ae034f1f783d825dda7095fdaccb2793edaa",
                convert=convert.zipped,
                content_sha256="13cbb7b939c4b201f92b09b6e800ae034f1f783d825dda7095fdaccb2793edaa",
            ),
        ),
    ),
    Dataset(
        name="words",
        folder="word_lists",
        title="65483 lower-case words for edit distances",
        source="GitHub chrisjmccormick/inspect_word2vec, commit "
        "2a880802b0efce54009ccab347d9f8a08f8a79b7, vocabulary/vocabulary_01.txt to _30",
        licence="none stated in the repository",
        files=(
            File(
                "googlenews_vocabulary_in_corpora.txt.xz",
                "dd5cc58e636e55ea762d665b11e8622be13362afcc0ef45d5bcf1facad105034",
                recipe=_WORDS,
                content_sha256="c67300bdf8e18ab4fe945a64fa1a1fd4ce85879327904cf868e687cb5bf3ee08",
            ),
        ),
    ),
    Dataset(
        name="cortex",
        folder="brain",
        title="a human right hemisphere as two closed meshes of 7502 vertices",
        source="GitHub mvdoc/pycortex, commit "
        "45772edc73b9fd640a0cb458482688a68cac5d52, filestore/db/S1/surfaces; the "
        "decimation is our own",
        licence="BSD 2-clause, (c) 2013 Regents of the University of California",
        files=(
            File(
                "S1_rh_fiducial_7502.npz",
                "b54698915c2abdeb5d6e53abb58ef63273e6ca1f8f1ef5a9a374cff3f77fb665",
                recipe=_DECIMATED.format(surface="(pia + wm) / 2"),
                content_sha256="28cd739499d78246a1139e979112f6bdb1b317680174a4823bb6956aa293e47b",
            ),
            File(
                "S1_rh_wm_7502.npz",
                "5da94a5cc38ab5eda21a6cad9f3baa9717557304e29b5ceae1b67a8ffdda34fa",
                recipe=_DECIMATED.format(surface="wm"),
                content_sha256="0ea560121bd0a7e79f3f6ad4ceccfcf85bbdef46d4f43eec772d99cd908c4138",
            ),
        ),
    ),
    Dataset(
        name="cortex-full",
        folder="brain",
        title="the same hemisphere with all its 151487 vertices",
        source="GitHub mvdoc/pycortex, commit "
        "45772edc73b9fd640a0cb458482688a68cac5d52, filestore/db/S1/surfaces",
        licence="BSD 2-clause, (c) 2013 Regents of the University of California",
        files=(
            File(
                "S1_rh.npz",
                "9d173b23ad2aab6af45a88e85eac994173fb6ea88c2b018e77955442d2147768",
                recipe=_CORTEX,
                content_sha256="cdff59eaa3284ea90a0210f4070eca516ac1448a3378c92cf61826393ff6e83c",
            ),
        ),
    ),
    Dataset(
        name="bunny",
        folder="bunny",
        title="the Stanford bunny as a closed mesh of 14290 vertices",
        source=f"GitHub {_BUNNY[0]}, commit {_BUNNY[1]}, {_BUNNY[2]} (the scan: "
        "Stanford 3D Scanning Repository)",
        licence="mesh MIT, (c) 2017 Rohan Sawhney; the scan by the Stanford Computer "
        "Graphics Laboratory, research use with acknowledgement",
        files=(
            File(
                "bunny_14290.npz",
                "e499158ee4eada5f43c5b1108b576e486f228b9438d2f56cb0ff8963aeec89d9",
                _github(*_BUNNY),
                "0d3c1c1b13861c03579b42ca8bb3ad0b8d5de14d307dbebc359a696795645605",
                convert.bunny,
                content_sha256="fd84bdd9a93064038b85c07b1cc2e5e93917e8b1f0e0ec1b5e340f4a5851b171",
            ),
        ),
    ),
    Dataset(
        name="road-network",
        folder="roadnet",
        title="the roads of New York City: a graph of 264346 nodes and 365050 edges",
        source="GitHub akashcodes/distributed-ksp-mpi, commit "
        "7c56d9a5ba863c1925debe253243b206c4621bec, ny1 (USA-road-d.NY of the 9th "
        "DIMACS Implementation Challenge)",
        licence="public domain (TIGER/Line, US Census); the repository's code MIT",
        files=(
            File(
                "dimacs_ny.npz",
                "568de18ab4cc7557ccbe2d118254dd069ec9410972a4d9d290b94f62894054d1",
                recipe=_ROADS,
                content_sha256="5d273b40b6e4b996cbf3ab6f8b3d4688e6d1ce4f791d9742242f31b7faa60952",
            ),
        ),
    ),
    *(
        Dataset(
            name=f"roadnet-{state.lower()}",
            folder="roadnet",
            title=f"the roads of {name}, as SNAP has them (roadNet-{state})",
            source=f"SNAP, snap.stanford.edu/data/roadNet-{state}.html (Leskovec et "
            "al., 2009)",
            licence="none stated; cite the source",
            files=(
                File(
                    f"roadNet-{state}.txt.gz",
                    sha256="",
                    url=f"https://snap.stanford.edu/data/roadNet-{state}.txt.gz",
                ),
            ),
        )
        for state, name in (
            ("CA", "California"),
            ("PA", "Pennsylvania"),
            ("TX", "Texas"),
        )
    ),
)

REGISTRY: dict[str, Dataset] = {dataset.name: dataset for dataset in _SETS}
