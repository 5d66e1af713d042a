"""The data of the book: a registry of pinned, hashed sets with their loaders.

Examples
--------
>>> from simlib.datasets import bundled_words
>>> from study.datasets import available, load_words
>>> words = load_words() if available("words") else bundled_words()
"""

from study.datasets.attention_heads import bundled_attention_heads
from study.datasets.corpora import (
    Corpus,
    Duplicates,
    load_banking77,
    load_newsgroups,
    load_ohsumed,
    load_recipes,
    load_stop_words,
    load_twitter,
)
from study.datasets.digit_pairs import (
    PairScorer,
    bundled_cross_encoder,
    bundled_digit_pairs,
)
from study.datasets.docstrings import bundled_docstrings
from study.datasets.ecbplus import Mentions, load_ecbplus, planted_mentions
from study.datasets.loaders import (
    CrossEncoderData,
    load_bunny,
    load_cortex,
    load_cross_encoder,
    load_edge_list,
    load_road_graph,
    load_stsb_train,
    load_word_vectors,
    load_words,
)
from study.datasets.records import (
    Records,
    load_abt_buy,
    load_early_childhood,
    planted_records,
)
from study.datasets.registry import (
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
    "PairScorer",
    "Records",
    "available",
    "bundled_attention_heads",
    "bundled_cross_encoder",
    "bundled_digit_pairs",
    "bundled_docstrings",
    "find",
    "fingerprint",
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
    "planted_mentions",
    "planted_records",
]
