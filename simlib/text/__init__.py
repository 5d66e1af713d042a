"""Word Mover's Distance, and cheap lower bounds of it and of edit distances."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
