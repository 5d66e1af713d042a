"""The data of the book: a registry of pinned, hashed sets with their loaders.

Examples
--------
>>> from simlib.datasets import bundled_words
>>> from study.datasets import available, load_words
>>> words = load_words() if available("words") else bundled_words()
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
