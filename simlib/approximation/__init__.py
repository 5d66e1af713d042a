"""Low-rank approximation of a similarity matrix from few of its entries."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
