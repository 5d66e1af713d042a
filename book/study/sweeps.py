"""A function at every point of a grid, as one table."""

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from study.kept import Kept

Row = Mapping[str, Any]
_PLAIN = (str, Number, np.generic, type(None))


def sweep(
    run: Callable[..., Row | Iterable[Row]],
    /,
    *,
    n_jobs: int | None = None,
    keep: str | os.PathLike[str] | None = None,
    **axes: Iterable[Any],
) -> pd.DataFrame:
    """Call a function at every point of a grid; return its rows as one table.

    Parameters
    ----------
    run : callable
        ``run(**point)`` returns or yields rows: mappings of a column to a value.
    n_jobs : int, optional
        How many points are computed side by side, as joblib has it.
    keep : path, optional
        A folder for the points that are finished, from which a sweep that was stopped
        goes on; see `study.Kept`.
    **axes : iterables
        The values of each argument. The last one changes fastest.

    Returns
    -------
    DataFrame
        The rows, in the order of the points. The arguments that are numbers or text
        are the first columns, unless the rows have columns of these names.

    Raises
    ------
    TypeError
        An axis that is a text; a row that is no mapping; with `keep`, a value that
        `run` reads in the notebook and that cannot be told from another.
    Exception
        Whatever `run` raises, with a note of the point.

    Examples
    --------
    >>> from study import sweep
    >>> def run(n, seed):
    ...     yield {"power": 1, "value": n + seed}
    ...     yield {"power": 2, "value": (n + seed) ** 2}
    >>> sweep(run, n=[10, 20], seed=[0])
        n  seed  power  value
    0  10     0      1     10
    1  10     0      2    100
    2  20     0      1     20
    3  20     0      2    400
    """
    for name, values in axes.items():
        if isinstance(values, str | bytes):
            if values[:1] in ("[", b"["):
                raise TypeError(
                    f"{name}={values!r} is a text, and no list. papermill reads lists "
                    f"by -y, as in -y '{{shares: [0.1, 0.2]}}'."
                )
            raise TypeError(f"{name}={values!r} is one value: pass [{values!r}]")
    grid = [dict(zip(axes, point, strict=True)) for point in product(*axes.values())]
    kept = Kept(run, keep) if keep is not None else None
    keys = [kept.key(point) for point in grid] if kept else []
    found = [kept.read(key, None) for key in keys] if kept else [None] * len(grid)
    todo = [k for k, rows in enumerate(found) if rows is None]
    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    made = pool(delayed(_rows)(run, grid[k], k) for k in todo)
    # In a chapter that is printed a bar would be an output.
    with tqdm(total=len(grid), disable="PRESS_LOG" in os.environ) as bar:
        bar.update(len(grid) - len(todo))
        for k, rows in made:
            found[k] = kept.write(keys[k], rows) if kept else rows
            bar.update()
    return pd.DataFrame([
        {name: value for name, value in point.items() if isinstance(value, _PLAIN)}
        | dict(row)
        for point, rows in zip(grid, found, strict=True)
        for row in rows or ()
    ])  # fmt: skip


def _rows(
    run: Callable[..., Any], point: dict[str, Any], k: int
) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of a point, and its rows; an error names it."""
    try:
        made = run(**point)
        rows = [made] if isinstance(made, Mapping) else [*made]
        if not all(isinstance(row, Mapping) for row in rows):
            kinds = sorted({type(row).__name__ for row in rows})
            raise TypeError(f"run gives {', '.join(kinds)}, but a row is a mapping")
    except Exception as error:
        error.add_note("at " + ", ".join(f"{k}={v!r}" for k, v in point.items()))
        raise
    return k, [dict(row) for row in rows]
