"""simlib: similarity matrices too large to compute, approximated.

A `Similarity` evaluates few entries, a method such as `tikhonov` returns a `LowRank`,
and `estimate_error` estimates the error of it. Everything loads on first use.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
