"""Named features as columns: mappings become sparse rows, and a name gets the next column when it first comes."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .batches import Batch
from .errors import FeatureError, InputError

__all__ = ["NamedColumns"]


class NamedColumns:
    """name → column."""

    def __init__(self, names: Iterable[str | int] = ()) -> None:
        self._column: dict[str | int, int] = {name: column for column, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self._column)

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._column)

    def forget(self, keep: int) -> None:
        """Go back to the first `keep` names."""
        self._column = dict(list(self._column.items())[:keep])

    def read(self, X: Sequence[Any]) -> tuple[Batch, list[str | int], list[int]]:
        """The rows, the names that are new in them (with columns after the known ones), and how many by each row."""
        fresh: dict[str | int, int] = {}
        data: list[float] = []
        indices: list[int] = []
        starts, new_by_row = [0], []
        for row, x in enumerate(X):
            if not isinstance(x, Mapping):
                raise FeatureError(
                    f"X[{row}] must be a mapping of names to numbers, like those before it; got {x!r:.80}"
                )
            values: dict[int, float] = {}
            for name, value in (read_item(*item) for item in x.items()):
                if value == 0.0:
                    continue
                column = self._column.get(name)
                if column is None:
                    column = fresh.setdefault(name, len(self._column) + len(fresh))
                values[column] = values.get(column, 0.0) + value
            for column in sorted(values):
                indices.append(column)
                data.append(values[column])
            starts.append(len(data))
            new_by_row.append(len(fresh))
        csr = (np.array(data, dtype=np.float64), np.array(indices, dtype=np.int64), np.array(starts, dtype=np.int64))
        return Batch(len(X), len(self._column) + len(fresh), csr=csr), list(fresh), new_by_row

    def admit(self, names: Iterable[str | int]) -> None:
        for name in names:
            self._column[name] = len(self._column)


def read_item(name: Any, value: Any) -> tuple[str | int, float]:
    """A feature: its name, a string or a whole number, and its number; a string value becomes ``name=value``."""
    if isinstance(value, str):
        return f"{name}={value}", 1.0
    if not isinstance(name, str):
        try:
            if isinstance(name, bool):
                raise TypeError
            name = operator.index(name)
        except TypeError:
            kind = type(name).__name__
            raise FeatureError(
                f"feature names must be strings or whole numbers, got {name!r:.80} ({kind}); convert it with str()"
            ) from None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        kind = type(value).__name__
        expected = "a number, a string or a boolean"
        raise InputError(f"feature {name!r} must be {expected}, got {value!r:.80} ({kind})") from None
    if not math.isfinite(number):
        raise InputError(
            f"feature {name!r} must be a finite number, got {value!r}; leave the feature out where its value is missing"
        )
    return name, number
