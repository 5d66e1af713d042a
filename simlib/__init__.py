"""simlib: similarity matrices too large to compute, approximated.

`Similarity` asks for few entries, a method such as `tikhonov` answers with a `LowRank`,
`estimate_error` tells how good the answer is. Everything loads on first use.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
