"""Conclusions of a chapter, checked where it is executed."""

import os
from typing import Any


def expect(condition: Any, says: str) -> None:
    """Check a conclusion of a chapter.

    The profiles of the book hold to it: under the press it is an assertion. Whoever
    executes a chapter with parameters of his own is told on the page, and goes on. What
    `says` is a sentence.
    """
    if condition:
        return
    if "PRESS_LOG" in os.environ:
        raise AssertionError(f"this did not come out: {says}")
    from IPython.display import Markdown, display

    display(Markdown(f"> **With these parameters this did not come out:** {says}"))
