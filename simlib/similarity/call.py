"""Calls of the function, here or in another process."""

from __future__ import annotations

import inspect
import os
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from simlib.similarity.items import some_of, unmasked


def call(
    number: int,
    function: Callable[..., Any],
    batch: str | None,
    xs: Any,
    ys: Any,
    places: tuple[np.ndarray, np.ndarray] | None,
) -> tuple[int, np.ndarray, float, BaseException | None]:
    """Evaluate one request, perhaps in another process.

    Pair k is (xs[k], ys[k]), or with `places` (xs[places[0][k]], ys[places[1][k]]).
    Returns the number of the request, its values, its seconds, and its error or None.
    """
    start = time.perf_counter()
    values: list[float] = []
    try:
        if places is not None:
            xs, ys = some_of(xs, places[0]), some_of(ys, places[1])
        if batch is None:
            for x, y in zip(xs, ys, strict=True):
                values.append(_number(_awaited(function(x, y))))
            answer = np.array(values)
        else:
            answer = unmasked(_awaited(function(xs, ys)))
            if answer.dtype.kind not in "fiub":
                raise TypeError(f"values of type {answer.dtype} are not real numbers")
        return number, answer, time.perf_counter() - start, None
    except BaseException as error:
        return number, np.array(values), time.perf_counter() - start, error


_loops: dict[tuple[int, Any], Any] = {}  # event loops of processes
_starting = threading.Lock()


def _awaited(value: Any) -> Any:
    """Return a value, or what a coroutine returns, even while an event loop runs."""
    if not hasattr(value, "__await__"):
        return value
    import asyncio

    try:
        asking = asyncio.get_running_loop()
    except RuntimeError:
        asking = None
    with _starting:
        if asking not in _loops.values():
            asking = None
        # A coroutine that asks another similarity keeps its own loop waiting.
        loop = _loops.get((os.getpid(), asking))
        if loop is None:
            loop = _loops[os.getpid(), asking] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, daemon=True).start()

    async def waiting() -> tuple[Any, BaseException | None]:
        try:
            return await value, None
        except (KeyboardInterrupt, SystemExit) as error:  # would end the loop
            return None, error

    future = asyncio.run_coroutine_threadsafe(waiting(), loop)
    try:
        answer, error = future.result()
    finally:
        future.cancel()  # after an interrupt
    if error is not None:
        raise error
    return answer


def is_async(function: Any) -> bool:
    """Tell whether a function, or the method __call__, is a coroutine function."""
    called = (function, type(function).__call__)
    return any(map(inspect.iscoroutinefunction, called))


def _number(value: Any) -> float:
    """Return one value as a float, if it is a real number."""
    given = value
    if hasattr(value, "reshape"):
        value = unmasked(value)
        if value.size == 1:  # from a model that takes lists of pairs, here one pair
            value = value.reshape(())
        if value.dtype == object and value.ndim == 0:
            value = value.item()
    other = getattr(getattr(value, "dtype", None), "kind", "f") not in "fiub"
    if other or isinstance(value, str | bytes | bytearray | memoryview):
        raise TypeError(f"{given!r}, of type {type(given).__name__}, is no real number")
    return float(value)


def call_there(*arguments: Any) -> tuple[int, np.ndarray, float, BaseException | None]:
    """Evaluate one request in another process; return an error that can be pickled."""
    number, values, seconds, error = call(*arguments)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        kind = RuntimeError if isinstance(error, Exception) else BaseException
        substitute = kind(repr(error))
        substitute.__cause__, error = error, substitute
    return number, values, seconds, error
