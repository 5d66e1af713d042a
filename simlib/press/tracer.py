"""An audit hook that notes what the processes of a chapter read.

The press copies this file, as ``sitecustomize.py``, into a folder at the head of
``PYTHONPATH``. So it runs when the kernel starts, and in every Python process that the
kernel starts in turn, such as the workers of joblib. It writes two kinds of lines to
the log:

``file HASH PATH``
    A file below the root was opened for reading. The hash is that of its content at
    this moment, ``-`` where there was no such file; a compiled module counts as its
    source. The sources read lie beside the log, under their hashes.
``data NAME``
    The package looked for a file of a data set and raised its audit event.

Nothing but the standard library is needed here.
"""

import hashlib
import os
import sys
from _thread import get_ident

# What lies below a root without being its source: environments, and what was built.
_BUILT = {"__pycache__", "_build", "build", "executed", "site-packages"}


def trace(root: str, log: str, data_event: str) -> None:
    """Note what this process, and those forked from it, read from now on.

    Parameters
    ----------
    root : str
        The folder whose files count.
    log : str
        The file to append to.
    data_event : str
        The audit event whose first argument names a file of a data set.
    """
    stream = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    folder = os.path.dirname(log)
    environment = os.path.join(sys.prefix, "")
    roots = {os.path.join(os.path.abspath(root), ""), os.path.realpath(root) + os.sep}
    noted: set[str] = set()
    hashes: dict[tuple[object, ...], str] = {}
    inside: set[int] = set()  # threads that are in the hook: its own reads do not count

    def hook(event: str, arguments: tuple) -> None:
        if event not in ("open", data_event) or get_ident() in inside:
            return
        inside.add(get_ident())
        try:
            line = _data(arguments) if event == data_event else _file(arguments)
            if line and line not in noted:
                noted.add(line)
                os.write(stream, f"{line}\n".encode("utf-8", "surrogateescape"))
        finally:
            inside.discard(get_ident())

    def _data(arguments: tuple) -> str:
        return f"data {arguments[0]}"

    def _file(arguments: tuple) -> str:
        path, mode, flags = arguments
        if isinstance(path, int) or not _reads(mode, flags):
            return ""
        path = os.path.abspath(os.fsdecode(path))
        for root in roots:
            if path.startswith(root) and not (
                sys.prefix.startswith(root) and path.startswith(environment)
            ):
                relative = _source(path.removeprefix(root))
                if _BUILT.isdisjoint(relative.split(os.sep)) and relative[0] != ".":
                    return f"file {_hash(root + relative)} {relative}"
        return ""

    def _hash(path: str) -> str:
        try:
            stat = os.stat(path)
            version = path, stat.st_ino, stat.st_size, stat.st_mtime_ns
            if version in hashes:
                return hashes[version]
            with open(path, "rb") as source:
                content = source.read()
        except OSError:
            return "-"
        hashes[version] = hashlib.sha256(content).hexdigest()
        if path.endswith(".py"):
            with open(os.path.join(folder, hashes[version]), "wb") as copy:
                copy.write(content)
        return hashes[version]

    sys.addaudithook(hook)


def _reads(mode: str | None, flags: int) -> bool:
    """Tell whether a file is opened to be read: by `open`, or by `os.open`."""
    if mode is None:
        return not flags & (os.O_WRONLY | getattr(os, "O_DIRECTORY", 0))
    return "r" in mode or "+" in mode


def _source(path: str) -> str:
    """Return a path, or that of the source if it is one of a compiled module."""
    folder, name = os.path.split(path)
    above, last = os.path.split(folder)
    if last == "__pycache__" and name.endswith(".pyc"):
        return os.path.join(above, name.partition(".")[0] + ".py")
    return path


def _run_next() -> None:
    """Run the ``sitecustomize`` that this file stands before, if there is one."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec and spec.loader:
        spec.loader.exec_module(module_from_spec(spec))


if __name__ == "sitecustomize":
    if "PRESS_LOG" in os.environ:
        trace(*(os.environ[name] for name in ("PRESS_ROOT", "PRESS_LOG", "PRESS_DATA")))
    _run_next()
