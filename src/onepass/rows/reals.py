"""What counts as a number: dates, durations and complex numbers convert to floats, but to meaningless ones."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_reals", "is_real", "require_real"]

NO_REALS = (complex, datetime.date, datetime.time, datetime.timedelta)  # those of pandas are subclasses
KINDS = "biuf"  # kinds of NumPy types: booleans, whole numbers, floats


def is_real(value: Any) -> bool:
    """May this be converted by `float`? Python's numbers, NumPy's, Decimal, Fraction, … may."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return getattr(dtype, "kind", "O") in KINDS + "O"
    return not isinstance(value, NO_REALS)


def _described(value: Any) -> str:
    """A value that is not real, for messages."""
    return f"{value!r:.60} ({type(value).__name__}), which is no number"


def require_real(values: NDArray[Any], name: str) -> None:
    """Raise TypeError for an array that is of, or contains, dates, durations or complex numbers."""
    if values.dtype.kind == "O":
        odd = {kind for kind in set(map(type, values.flat)) if hasattr(kind, "dtype") or issubclass(kind, NO_REALS)}
        for at, value in enumerate(values.flat) if odd else ():
            if type(value) in odd and not is_real(value):
                place = ", ".join(map(str, np.unravel_index(at, values.shape)))
                raise TypeError(f"got {values.dtype}: {name}[{place}] is {_described(value)}")
    elif values.dtype.kind == "c":
        raise TypeError(f"got {values.dtype}: Complex data not supported")
    elif values.dtype.kind in "mM":
        raise TypeError(f"got {values.dtype}: dates and durations are not numbers")


def as_reals(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    """An array as doubles; raises TypeError, ValueError or OverflowError that names the value that is not a number."""
    require_real(values, name)
    if values.dtype.kind not in KINDS + "O":
        raise TypeError(f"got {values.dtype}: such values do not convert to one number each")
    return values.astype(np.float64)
