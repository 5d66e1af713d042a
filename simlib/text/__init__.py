"""What the experiments on text need: similarities of words, sentences and documents."""

import importlib
from types import ModuleType

__all__ = ["bounds", "wmd", "wme"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"simlib.text.{name}")
    raise AttributeError(f"module 'simlib.text' has no attribute {name!r}")
