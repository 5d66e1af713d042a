"""Data that are always there: generated, or read from what is installed anyway."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
