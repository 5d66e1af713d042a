"""The Python that pages show, and the exercises of chapters."""

import re

BLOCK = re.compile(
    r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL
)
EXERCISES = re.compile(
    r"^## Exercises\n(.*?)^(?:## |\*\*Where to go on)", re.MULTILINE | re.DOTALL
)
SOLUTION = re.compile(
    r"^:::\{dropdown\} Solution\n(.*?)^:::$\n?", re.MULTILINE | re.DOTALL
)


def python_blocks(text):
    """Return what is shown as Python, each with the output shown below, or ""."""
    return BLOCK.findall(text)


def solutions(text):
    """Return what stands below each exercise: code, and sentences."""
    return SOLUTION.findall(text)


def exercises(text):
    """Return the exercises of a chapter without their solutions, or None."""
    section = EXERCISES.search(text)
    return section and SOLUTION.sub("", section[1])
