"""Public names of the library, by the lists of its packages."""

import importlib
from pkgutil import iter_modules
from types import ModuleType

import simlib

PACKAGES = ["simlib"] + [
    f"simlib.{module.name}"
    for module in iter_modules(simlib.__path__)
    if module.ispkg or module.name == "landmarks"
]


def look_up(name):
    """Return what a dotted name means to whoever imports it."""
    path, *rest = name.split(".")
    found = importlib.import_module(path)
    for part in rest:
        path = f"{path}.{part}"
        if not hasattr(found, part):
            importlib.import_module(path)
        found = getattr(found, part)
    return found


def public_names():
    """Return each public name by the shortest path at which it is to be imported."""
    paths, shortest = list(PACKAGES), {}
    while paths:
        path = paths.pop(0)
        for name in look_up(path).__all__:
            member = look_up(f"{path}.{name}")
            if isinstance(member, ModuleType):
                paths.append(member.__name__)
            else:
                shortest.setdefault((name, id(member)), f"{path}.{name}")
    return set(shortest.values())
