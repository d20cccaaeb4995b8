"""The numbers of saved arrays by name: the lists are those of `native/bind/saved.hpp`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import DamagedFileError
from ..scheme.rounds import Array

__all__ = ["array", "count", "number", "numbers"]


def numbers(kind: str, values: NDArray[np.float64]) -> dict[str, float]:
    """The numbers of a saved array; `kind` says which list has their names."""
    names = _native.saved[kind]
    if values.shape != (len(names),) or values.dtype != np.float64:
        found = f"{values.dtype} numbers of shape {values.shape}"
        detail = f"{found} instead of {len(names)} float64 numbers: {', '.join(names)}"
        raise DamagedFileError(f"{detail}; restore it from a backup")
    return dict(zip(names, values.tolist(), strict=True))


def number(kind: str, values: NDArray[np.float64], name: str) -> float:
    """One of the numbers, by its name."""
    return float(values[_native.saved[kind].index(name)])


def array(kind: str, values: Mapping[str, float]) -> Array:
    """The inverse of `numbers`."""
    return np.array([values[name] for name in _native.saved[kind]], dtype=np.float64)


def count(kind: str) -> int:
    """The length of the array."""
    return len(_native.saved[kind])
