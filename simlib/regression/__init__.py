"""Regression with a tall matrix and its powers, by sketching and preconditioning."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
