"""What the experiments on text need: similarities of words, sentences and documents."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simlib.text import bounds, coreference, pair_network, refinement, wmd, wme

__all__ = ["bounds", "coreference", "pair_network", "refinement", "wmd", "wme"]


if not TYPE_CHECKING:  # for which every name would be a module

    def __getattr__(name: str) -> ModuleType:
        if name in __all__:
            return importlib.import_module(f"simlib.text.{name}")
        raise AttributeError(f"module 'simlib.text' has no attribute {name!r}")
