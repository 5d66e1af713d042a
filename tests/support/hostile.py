"""Hostile arguments by their kind, and what may follow from them."""

import dis
import re
from collections.abc import Mapping

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

import simlib
from simlib import LowRank, Similarity
from support.matrices import psd, rbf

ERRORS = (ValueError, TypeError, IndexError, KeyError, MemoryError, ImportError)
ERRORS = (*ERRORS, np.linalg.LinAlgError, simlib.BudgetExceeded)
OURS = ("/simlib/", "/sklearn/")  # scikit-learn checks input where we let it
UNBOUNDED = ("NaN", "infinity", "huge", "an object among numbers")

N = 12
K = rbf(N) + 0.1 * np.eye(N)
TALL = np.random.default_rng(1).standard_normal((40, 4))

NOTHING = {
    "None": None,
    "a string": "similar",
    "an object": object(),
    "a dictionary": {"a": 1},
    "a list of None": [None, None, None],
    "a list of strings": ["a", "b"],
    "a complex number": 1j,
}
NO_NUMBERS = {
    "NaN": np.nan,
    "infinity": np.inf,
    "minus infinity": -np.inf,
    "a string": "similar",
    "a complex number": 1j,
}
SIZES = NO_NUMBERS | {"minus one": -1, "zero": 0, "a half": 0.5}
COUNTS = SIZES | {"a huge number": 10**12}
NUMBERS = NO_NUMBERS | {"minus one": -1.0, "huge": 1e300, "tiny": 1e-300}
NAMES = {"nonsense": "nonsense", "a number": 3, "bytes": b"x"}
INDICES = {key: value for key, value in NOTHING.items() if value is not None} | {
    "negative": [-1],
    "too large": [10**6],
    "repeated": [1, 1],
    "fractions": [0.5, 1.5],
    "floats": [0.0, 1.0],
    "bools": [True, False, True],
    "NaN": [np.nan],
    "two axes": [[0, 1], [2, 3]],
    "empty": [],
    "a number": 2,
    "a huge number": [2**63],
}
RETURNED = {
    "NaN": np.nan,
    "infinity": np.inf,
    "None": None,
    "a string": "1",
    "a complex number": 1j,
    "an array": np.ones(2),
    "an empty array": np.zeros(0),
    "an integer": 1,
    "a bool": True,
    "half precision": np.float16(1),
    "an array without axes": np.array(1.0),
    "a negative number": -1.0,
    "a huge number": 1e300,
    "a tiny number": 1e-300,
}


def changed(good, value, kind=None):
    """Return a copy with one value changed."""
    array = np.array(good, dtype=kind)
    array.flat[array.size // 2] = value
    return array


def arrays(good):
    """Return what may come in place of an array of finite numbers."""
    good = np.asarray(good)
    good = good.astype(float) if good.dtype.kind == "i" else good
    found = NOTHING | {
        "empty": np.zeros((0,) * good.ndim),
        "no rows": good[:0],
        "one row": good[:1],
        "three axes": good[None, None] if good.ndim == 1 else good[None],
        "a scalar": 1.0,
        "complex": good + 1j,
        "NaN": changed(good, np.nan),
        "infinity": changed(good, -np.inf),
        "objects": good.astype(object),
        "an object among numbers": changed(good, None, object),
        "strings": good.astype(str),
        "dates": np.zeros(good.shape, dtype="datetime64[s]"),
        "zeros": np.zeros_like(good),
        "negative": -good,
        "huge": good * 1e300,
        "tiny": good * 1e-300,
    }
    if good.ndim == 2:
        found |= {
            "one entry": good[:1, :1],
            "one column": good[:, :1],
            "no columns": good[:, :0],
            "not square": good[:, :-1],
            "flat": good.ravel(),
            "ragged": [[1.0], [1.0, 2.0]],
            "sparse": scipy.sparse.coo_array(good),
        }
    return found


def similarities(good):
    return NOTHING | {
        "an array": np.eye(N),
        "an answer": simlib.tikhonov(Similarity.from_matrix(K), 4, rng=0),
        "of one item": Similarity.from_matrix([[2.0]]),
        "of other items": Similarity.from_matrix(np.eye(3)),
        "of zeros": Similarity.from_matrix(np.zeros((N, N))),
        "without a limit left": Similarity(range(N), max, limit=0),
        "of NaN": Similarity(range(N), lambda i, j: np.nan),
        "not symmetric": Similarity.from_matrix(
            np.triu(np.ones((N, N))), symmetric=False
        ),
        "negative definite": Similarity.from_matrix(-psd(N)),
        "of single precision": Similarity.from_matrix(K.astype(np.float32)),
    }


def items(good):
    return NOTHING | {
        "empty": [],
        "one item": ["a"],
        "a set": {"a", "b"},
        "a number": 3,
        "an array without axes": np.array(3.0),
        "no rows": np.zeros((0, 3)),
        "an iterator": iter("abc"),
    }


def functions(good):
    def fails(x, y):
        raise OSError("no route to host")

    returning = {
        f"returns {name}": lambda x, y, value=value: value
        for name, value in RETURNED.items()
    }
    return (
        NOTHING
        | returning
        | {
            "takes one item": lambda x: 1.0,
            "raises": fails,
            "is not symmetric": lambda x, y: float(x < y),
        }
    )


def words(good):
    return NOTHING | {
        "empty": [],
        "an empty word": [""],
        "an unknown word": ["zebra"],
        "numbers": [1, 2],
        "a number": 3,
    }


def documents(good):
    return NOTHING | {
        "empty": [],
        "an empty document": [["a"], []],
        "a string for a document": ["ab", "c"],
        "numbers": [[1, 2]],
        "None among them": [["a"], None],
    }


def bags(good):
    return NOTHING | {
        "dense": good.toarray(),
        "negative": -good,
        "zero": 0 * good,
        "not normalised": 2 * good,
        "NaN": good * np.nan,
        "of other words": good[:, :-1],
        "no documents": good[:0],
        "complex": good * 1j,
        "of integers": good.astype(int),
        "half precision": good.toarray().astype(np.float16),
    }


def vectors(good):
    forms = {
        f"of {name}": dict.fromkeys(good, array)
        for name, array in arrays(np.ones(3)).items()
    }
    others = {"empty": {}, "a list": [1, 2]}
    mixed = {"of different lengths": {"a": np.ones(2), "b": np.ones(3)}}
    return NOTHING | forms | others | mixed


def blocks(good):
    return NOTHING | {
        "empty": [],
        "too few rows": [TALL[:3]],
        "too many rows": [TALL, TALL],
        "of different widths": [TALL[:30], TALL[30:, :2]],
        "NaN": [np.full_like(TALL, np.nan)],
        "complex": [TALL * 1j],
    }


ATTACKS = {
    "array": arrays,
    "similarity": similarities,
    "items": items,
    "function": functions,
    "words": words,
    "documents": documents,
    "bags": bags,
    "vectors": vectors,
    "blocks": blocks,
    "count": lambda good: COUNTS,
    "size": lambda good: SIZES,
    "number": lambda good: NUMBERS,
    "name": lambda good: NAMES,
    "indices": lambda good: INDICES,
}


def attacks(kind, good):
    """Return what may come in place of a good value; nothing of it is used up."""
    return ATTACKS[kind](good) | {"a generator": (k for k in (0, 1))}


def masked(good):
    """Return numbers, in the form in which they came, of which one is masked."""
    if isinstance(good, Mapping):
        return {name: masked(array) for name, array in good.items()}
    if scipy.sparse.issparse(good):
        return masked(good.toarray())
    if isinstance(good, list) and isinstance(good[0], np.ndarray):
        return [masked(array) for array in good]
    good = np.asarray(good)
    return np.ma.masked_array(good, np.arange(good.size).reshape(good.shape) == 1)


def equivalents(good):
    """Return the same numbers in other forms; of whole numbers in more of them."""
    good = np.asarray(good)
    fixed = good.copy()
    fixed.flags.writeable = False
    yield "read-only", fixed, good
    yield "a list", good.tolist(), good
    yield "in another order", np.asfortranarray(good), good
    yield "with strides", np.repeat(good, 2, axis=0)[::2], good
    yield "big-endian", good.astype(good.dtype.newbyteorder(">")), good
    half = good.astype(np.float16)
    yield "half precision", half, half.astype(float)
    for kind in (np.int8, np.uint8, np.int64, bool):
        whole = np.abs(np.rint(4 * good)).astype(kind)
        yield f"of {np.dtype(kind)}", whole, whole.astype(float)


def numbers(answer):
    """Return all numbers in an answer as one array of floats."""
    if answer is None:
        return np.zeros(0)
    if isinstance(answer, LowRank) or scipy.sparse.issparse(answer):
        return answer.toarray().astype(float).ravel()
    if isinstance(answer, LinearOperator):
        return numbers(answer @ np.eye(answer.shape[1]))
    if isinstance(answer, Mapping):
        answer = tuple(answer.values())
    if isinstance(answer, tuple | list):
        parts = [numbers(part) for part in answer if not isinstance(part, str)]
        return np.concatenate(parts) if parts else np.zeros(0)
    answer = np.asarray(answer)
    if np.iscomplexobj(answer):
        return np.concatenate([numbers(answer.real), numbers(answer.imag)])
    return answer.astype(float).ravel()


UNDERSTOOD = re.compile(  # Python, NumPy and SciPy on what is of another kind
    "could not convert string to float"
    "|argument must be a string or a real number"
    "|setting an array element with a sequence"
    "|not supported between instances of"
    "|cannot be interpreted as an integer"
    "|data type '.*' not understood|Cannot interpret '.*' as a data type"
    "|object is not iterable|has no len|Unable to allocate"
    "|dimension mismatch|expected 1-d or 2-d array|Scalar operands are not allowed"
    "|array must not contain infs or NaNs"
)


def on_purpose(error):
    """Tell whether an error was raised by simlib, or by what checks its input."""
    if UNDERSTOOD.search(str(error)) or isinstance(error, MemoryError):
        return True
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    raised = dis.opname[code.co_code[last.tb_lasti]] == "RAISE_VARARGS"
    ours = any(part in code.co_filename for part in OURS)
    return ours and raised and len(str(error)) > 15
