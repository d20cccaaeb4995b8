"""Named features as columns: mappings become sparse rows, and a new name gets the next column."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FeatureError, InputError
from .batches import Batch
from .reals import is_real

__all__ = ["NamedColumns", "as_frame", "named_vector", "read_item"]


class NamedColumns:
    """name → column."""

    def __init__(self, names: Iterable[str | int] = ()) -> None:
        self._column: dict[str | int, int] = {name: column for column, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self._column)

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._column)

    def truncate(self, count: int) -> None:
        """Keep the first `count` names only."""
        self._column = dict(list(self._column.items())[:count])

    def read(self, X: Sequence[Any]) -> tuple[Batch, list[str | int], list[int]]:
        """The rows, their new names (whose columns follow the known ones), and how many were new up to each row."""
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

    def register(self, names: Iterable[str | int]) -> None:
        for name in names:
            self._column[name] = len(self._column)


def named_vector(x: Mapping[Any, Any], names: Sequence[Any]) -> NDArray[np.float64]:
    """A mapping as a row of the frame whose columns had these names."""
    for name, value in x.items():
        if (name if not isinstance(value, str) else f"{name}={value}") not in names:
            read_item(name, value)  # a malformed feature is the more useful error
            raise FeatureError(f"x has feature {name!r:.80}, which the frame learned first did not have")
    return np.array([read_item(name, x.get(name, 0.0))[1] for name in names])


def as_frame(rows: Sequence[Any], names: Sequence[Any]) -> Batch:
    """Mappings as rows of the frame whose columns had these names."""
    table = np.empty((len(rows), len(names)))
    for number, x in enumerate(rows):
        try:
            table[number] = named_vector(x, names)
        except InputError as error:
            raise type(error)(f"row {number}: {error}. Nothing of this call was learned") from None
    return Batch(len(table), table.shape[1], dense=table)


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
        if not is_real(value):
            raise TypeError
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
