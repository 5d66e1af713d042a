"""Python in a process of its own."""

import subprocess
import sys


def python(*arguments, **options):
    """Run Python; return how it ended, and what it said."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def python_in_a_shell(line):
    """The same, where a pipe or the name of a file follows the arguments."""
    command = f"{sys.executable} {line}"
    return subprocess.run(command, shell=True, capture_output=True, text=True)
