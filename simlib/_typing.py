"""Names of types of arguments, for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import sparray, spmatrix


class _Array(Protocol):
    def __array__(self) -> np.ndarray[Any, Any]: ...


Indices: TypeAlias = Sequence[SupportsIndex] | _Array  # and no string
MatrixLike: TypeAlias = ArrayLike | sparray | spmatrix
Seed: TypeAlias = int | np.random.Generator | None
