"""Data: a registry of pinned, hashed sets with their loaders, and sets always there.

Examples
--------
>>> from simlib.datasets import available, bundled_words, load_words
>>> words = load_words() if available("words") else bundled_words()
"""

from simlib.datasets.attention_heads import bundled_attention_heads
from simlib.datasets.corpora import (
    Corpus,
    Duplicates,
    load_banking77,
    load_newsgroups,
    load_ohsumed,
    load_recipes,
    load_stop_words,
    load_twitter,
)
from simlib.datasets.digit_pairs import (
    PairScorer,
    bundled_cross_encoder,
    bundled_digit_pairs,
)
from simlib.datasets.docstrings import bundled_docstrings
from simlib.datasets.ecbplus import Mentions, load_ecbplus, planted_mentions
from simlib.datasets.generated import (
    bumpy_sphere,
    bundled_documents,
    bundled_words,
    cross_encoder_like,
    gaussian_psd,
    planar_roads,
    point_clouds,
    sigmoid_kernel,
    swiss_roll,
    uniform_psd,
)
from simlib.datasets.loaders import (
    CrossEncoderData,
    Mesh,
    WordVectors,
    load_bunny,
    load_cortex,
    load_cross_encoder,
    load_edge_list,
    load_road_graph,
    load_stsb_train,
    load_word_vectors,
    load_words,
)
from simlib.datasets.records import (
    Records,
    load_abt_buy,
    load_early_childhood,
    planted_records,
)
from simlib.datasets.registry import (
    REGISTRY,
    CorruptDataError,
    DataNotFoundError,
    Dataset,
    File,
    available,
    find,
    fingerprint,
)

__all__ = [
    "REGISTRY",
    "Corpus",
    "CorruptDataError",
    "CrossEncoderData",
    "DataNotFoundError",
    "Dataset",
    "Duplicates",
    "File",
    "Mentions",
    "Mesh",
    "PairScorer",
    "Records",
    "WordVectors",
    "available",
    "bumpy_sphere",
    "bundled_attention_heads",
    "bundled_cross_encoder",
    "bundled_digit_pairs",
    "bundled_docstrings",
    "bundled_documents",
    "bundled_words",
    "cross_encoder_like",
    "find",
    "fingerprint",
    "gaussian_psd",
    "load_abt_buy",
    "load_banking77",
    "load_bunny",
    "load_cortex",
    "load_cross_encoder",
    "load_early_childhood",
    "load_ecbplus",
    "load_edge_list",
    "load_newsgroups",
    "load_ohsumed",
    "load_recipes",
    "load_road_graph",
    "load_stop_words",
    "load_stsb_train",
    "load_twitter",
    "load_word_vectors",
    "load_words",
    "planar_roads",
    "planted_mentions",
    "planted_records",
    "point_clouds",
    "sigmoid_kernel",
    "swiss_roll",
    "uniform_psd",
]
