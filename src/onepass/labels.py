"""What a label may be, wherever one is admitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import store
from .errors import LabelError, ParameterError

__all__ = ["alike", "not_hashable", "plain", "require_label"]


def plain(label: Any) -> Any:
    """NumPy's scalars as Python's."""
    return label.item() if isinstance(label, np.generic) else label


def require_label(label: Any) -> None:
    """Refuse what is no label, or one that no file can hold: now, not when saving."""
    if label is None or (isinstance(label, float) and not math.isfinite(label)):
        raise LabelError(f"a label must not be {label!r}")
    try:
        store.encode_values([label])
    except ParameterError as error:
        raise LabelError(str(error)) from None


def not_hashable(label: Any, row: int | None = None) -> LabelError:
    """The error for a label that cannot be looked up."""
    where = "" if row is None else f"y[{row}]: "
    return LabelError(f"{where}a label must be hashable, got {label!r:.80} ({type(label).__name__})")


def alike(labels: Sequence[Any]) -> bool:
    """Are these of one kind that an array can hold as they are?"""
    return len({type(label) for label in labels}) == 1 and isinstance(labels[0], (str, bool, int, float))
