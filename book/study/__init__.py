"""What several chapters of the book share."""

from study.kept import Kept
from study.sweep import sweep

__all__ = ["Kept", "sweep"]
