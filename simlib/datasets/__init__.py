"""Data: a registry of pinned, hashed sets with their loaders, and sets always there.

Examples
--------
>>> from simlib.datasets import available, bundled_words, load_words
>>> words = load_words() if available("words") else bundled_words()
"""

from simlib.datasets.generated import (
    bundled_documents,
    bundled_words,
    cross_encoder_like,
    gaussian_psd,
    sigmoid_kernel,
    uniform_psd,
)
from simlib.datasets.loaders import (
    Corpus,
    CrossEncoderData,
    WordVectors,
    load_cross_encoder,
    load_twitter,
    load_word_vectors,
    load_words,
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
    "File",
    "WordVectors",
    "available",
    "bundled_documents",
    "bundled_words",
    "cross_encoder_like",
    "find",
    "fingerprint",
    "gaussian_psd",
    "load_cross_encoder",
    "load_twitter",
    "load_word_vectors",
    "load_words",
    "sigmoid_kernel",
    "uniform_psd",
]
