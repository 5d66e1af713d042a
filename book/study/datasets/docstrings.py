r"""Short documents that are always there: what the scientific libraries say they do.

.. math::
    M_{wd} = \max\Big(0, \; \log \frac{c_{wd} \, c}{c_w \, c_d}\Big)
    \approx (U \Sigma V^\top)_{wd} , \qquad v_w = \frac{(U \Sigma)_w}{\|(U \Sigma)_w\|}

Word vectors by positive pointwise mutual information and a truncated singular value
decomposition: c_wd counts the word w in the whole docstring d; c_w, c_d and c are the
sums over docstrings, words and both.
"""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy.sparse import coo_array, csr_array
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
from sklearn.preprocessing import normalize

from simlib.datasets.word_vectors import WordVectors

SHORTEST, LONGEST = 8, 20  # words of a document
DIMENSIONS = 50  # of the word vectors
MODULES = {
    "numpy": "fft linalg ma polynomial random strings",
    "scipy": "cluster.hierarchy cluster.vq fft integrate interpolate io linalg ndimage "
    "optimize signal signal.windows sparse sparse.csgraph sparse.linalg spatial "
    "spatial.distance spatial.transform special stats stats.mstats stats.qmc",
    "sklearn": "cluster compose covariance cross_decomposition datasets decomposition "
    "ensemble feature_extraction feature_selection gaussian_process impute inspection "
    "linear_model manifold metrics mixture model_selection multiclass multioutput "
    "naive_bayes neighbors neural_network pipeline preprocessing semi_supervised svm "
    "tree",
}
_MARKUP = re.compile(r":math:`[^`]*`|:[\w:]+:(?=`)")
_SECTION = re.compile(r"^.*\n(?:-{3,}|={3,})$", re.MULTILINE)
_NO_PROSE = re.compile(r"\W|\w+\(|Read more in")


def bundled_docstrings() -> tuple[list[list[str]], WordVectors, tuple[str, ...]]:
    """Return what NumPy, SciPy and scikit-learn say of their functions and classes.

    Returns
    -------
    documents : list of list of str
        Of each docstring the first 20 words of what stands before its first section:
        lower-case runs of at least 3 letters, without scikit-learn's English stop
        words. Those of fewer than 8 words, and repetitions, are left out. About 1700;
        they change a little between releases of the three libraries.
    vectors : WordVectors
        A vector of length 1 in 50 dimensions for each word, made from the whole
        docstrings.
    names : tuple of str
        What each document describes, as "numpy.linalg.svd".

    Examples
    --------
    >>> from study.datasets import bundled_docstrings
    >>> documents, vectors, names = bundled_docstrings()
    >>> len(documents) == len(names), vectors["matrix"].shape
    (True, (50,))
    >>> documents[names.index("numpy.linalg.svd")][:3]
    ['singular', 'value', 'decomposition']
    """
    documents, vectors, names = _made()
    return [list(words) for words in documents], vectors, names


@cache
def _made() -> tuple[tuple[tuple[str, ...], ...], WordVectors, tuple[str, ...]]:
    """Return the same, to be kept."""
    docstrings = dict(_docstrings())
    named: dict[tuple[str, ...], str] = {}
    for name, docstring in docstrings.items():
        words = _words(_opening(docstring))[:LONGEST]
        if len(words) >= SHORTEST:
            named.setdefault(tuple(words), name)
    vocabulary = sorted({word for words in named for word in words})
    vectors = _vectors(vocabulary, list(dict.fromkeys(docstrings.values())))
    return tuple(named), vectors, tuple(named.values())


def _docstrings() -> Iterator[tuple[str, str]]:
    """Yield name and docstring of what is public and not deprecated, in fixed order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [
            importlib.import_module(f"{library}.{part}" if part else library)
            for library, parts in MODULES.items()
            for part in ["", *parts.split()]
        ]
    for module in modules:
        for name in sorted(vars(module).keys() & module.__all__):
            member = vars(module)[name]
            docstring = inspect.cleandoc(member.__doc__ or "")
            named = callable(member) and hasattr(member, "__name__")  # no distribution
            if named and name[0] != "_" and "deprecated::" not in docstring:
                yield f"{module.__name__}.{name}", docstring


def _opening(docstring: str) -> str:
    """Return the prose before the first section: no signature, formula or code."""
    paragraphs = re.split(r"\n\s*\n", _SECTION.split(docstring)[0])
    return " ".join(
        paragraph for paragraph in paragraphs if not _NO_PROSE.match(paragraph)
    )


def _words(text: str) -> list[str]:
    words = re.findall("[a-z]{3,}", _MARKUP.sub("", text).lower())
    return [word for word in words if word not in ENGLISH_STOP_WORDS]


def _vectors(vocabulary: list[str], texts: list[str]) -> WordVectors:
    counter = CountVectorizer(analyzer=_words, vocabulary=vocabulary)
    counts = coo_array(counter.transform(texts).T)
    of_words, of_texts = counts.sum(axis=1), counts.sum(axis=0)
    expected = of_words[counts.row] * of_texts[counts.col] / of_words.sum()
    information = np.log(counts.data / expected).clip(min=0)
    matrix = csr_array((information, counts.coords), shape=counts.shape)
    svd = TruncatedSVD(DIMENSIONS, algorithm="arpack", random_state=0)
    vectors = normalize(svd.fit_transform(matrix)).astype(np.float32)
    return WordVectors(tuple(vocabulary), vectors)
