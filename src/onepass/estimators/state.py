"""The `State` of small learners: numbers and arrays. And `Reader`, which maps names to their columns."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import DamagedFileError, FeatureError, InputError, NumericalError
from ..models.columns import require_same_names
from ..persistence import store
from ..rows.batches import Batch, Rows, as_rows, to_row
from ..rows.named import as_frame, named_vector, read_item
from ..scheme.rounds import Array

__all__ = ["Reader", "State", "mappings_of", "values_of", "vector_of"]


class Reader:
    """The columns of rows: a number of columns, or names, of which a new one gets the next column."""

    def __init__(self, names: list[str | int] | None = None, columns: int = 0) -> None:
        self.native = _native.RowReader()
        if names is not None:
            self.native.names = names
        elif columns:
            self.native.settle(columns)

    @property
    def columns(self) -> int:
        return self.native.columns

    @property
    def names(self) -> list[str | int] | None:
        """The names in the order of their columns; None if columns are positions."""
        return list(self.native.names) if self.native.named else None

    def row(self, x: Any, learn: bool) -> Array:
        """One row as a vector. A new name gets a column (`learn`), or is left out."""
        out: Array | None = self.native.row(x, learn)
        if out is None:
            out = self.native.row(dict(x) if isinstance(x, Mapping) else vector_of(x), learn)
            assert out is not None
        return out

    def truncate(self, columns: int) -> None:
        """Unregister the names beyond the first `columns`: the row that brought them was refused."""
        if self.native.named and self.columns > columns:
            self.native.names = self.native.names[:columns]

    def check(self, X: list[Any]) -> None:
        """Refuse malformed mappings before any name is registered, then the first that is too large."""
        large: NumericalError | None = None
        for number, x in enumerate(X):
            if not isinstance(x, Mapping):
                raise FeatureError(f"X[{number}] must be a mapping of names to numbers, like those before it")
            try:
                self.row(x, False)
            except NumericalError as error:
                large = large or error.at(number)
            except InputError as error:
                raise type(error)(f"row {number}: {error}") from None
        if large is not None:
            raise large

    def __getstate__(self) -> dict[str, Any]:
        return {"names": self.names, "columns": self.columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


@dataclasses.dataclass
class State:
    """What was learned: arrays, and numbers that JSON can hold. Fields that begin with _ are in no file."""

    _reader: Reader = dataclasses.field(default_factory=Reader)
    t: int = 0  # the number of learned examples
    seed: int = 0
    _frame: list[Any] | None = None  # the column names of the first table

    def mapping(self, x: Any) -> Any:
        """x; if the first table was a data frame, a mapping becomes a row of its columns."""
        return named_vector(x, self._frame) if self._frame is not None and isinstance(x, Mapping) else x

    def read(self, X: Any) -> Rows:
        """Rows in any form as a table, or as mappings if features have names."""
        rows = as_rows(X)
        if isinstance(rows, Batch) and rows.table is not None:  # the rows of a stream with named columns
            rows = mappings_of(rows)
        if isinstance(rows, Batch) or self._frame is None:
            return rows
        return as_frame(rows, self._frame)

    def check_names(self, table: Batch, learn: bool, columns: int) -> None:
        """Refuse a table with other column names than the learned ones. The first table (`columns` is 0) sets them."""
        require_same_names(table.names, self._frame)
        if learn and not columns:
            self._frame = table.names

    @property
    def labels(self) -> int:
        """The number of classes."""
        return 0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Array → its shape, as the numbers imply it."""
        raise NotImplementedError

    def widen(self, columns: int) -> None:
        """Add columns for new names, whose features were 0 so far."""
        raise NotImplementedError

    def config(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """As JSON and arrays."""
        numbers: dict[str, Any] = {"columns": self._reader.columns, "named": self._reader.names is not None}
        arrays: dict[str, NDArray[Any]] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name.startswith("_"):
                continue
            (arrays if isinstance(value, np.ndarray) else numbers)[field.name] = value
        names = self._reader.names if self._frame is None else self._frame
        if names is not None:
            encoded = store.encode_names(names)
            arrays |= {f"names.{key}": value for key, value in encoded.items()}
        return numbers, arrays

    @classmethod
    def from_config(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of `config`; parts that do not fit together are refused."""
        known = {field.name: field for field in dataclasses.fields(cls) if not field.name.startswith("_")}
        parts = {**{key: value for key, value in config.items() if key in known}, **_plain_arrays(arrays)}
        if set(parts) != set(known):
            raise DamagedFileError(f"expected {', '.join(known)}, found {', '.join(sorted(parts))}")
        for name, field in known.items():
            _require_kind(name, parts[name], field.default)
        _require_kind("columns", config["columns"], 0)
        decoded = _decoded_names(config, arrays)
        reader = Reader(decoded if config["named"] else None, config["columns"])
        state = cls(_reader=reader, _frame=None if config["named"] else decoded, **parts)
        _require_shapes(parts, known, state.shapes())
        return state


MOST = 2**53  # the largest count: a double cannot represent all larger integers


def _dtype_of(field: dataclasses.Field[Any]) -> np.dtype[Any]:
    """The type of an array, from the initial state."""
    assert field.default_factory is not dataclasses.MISSING
    dtype: np.dtype[Any] = field.default_factory().dtype
    return dtype


def _decoded_names(config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> list[Any] | None:
    """The names in a file: of features, or of the columns of a data frame; None if there are none."""
    names = {key[6:]: value for key, value in arrays.items() if key.startswith("names.")}
    if not names:
        if config["named"]:
            raise DamagedFileError("expected the names of the features, found none")
        return None
    decoded = store.decode_names(names)
    if len(set(decoded)) != config["columns"]:
        raise DamagedFileError("as many names as columns were expected")
    return decoded


def _require_shapes(
    parts: Mapping[str, Any], known: Mapping[str, dataclasses.Field[Any]], shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Refuse an array of a file that is not of the type and shape that the numbers imply."""
    for name, field in known.items():
        value = parts[name]
        if isinstance(value, np.ndarray) != (name in shapes):
            raise DamagedFileError(f"{name} is of the wrong kind")
        if name not in shapes:
            continue
        if value.dtype != _dtype_of(field):
            raise DamagedFileError(f"{name} holds {value.dtype}, expected {_dtype_of(field)}")
        if value.shape != shapes[name] or not np.all(np.isfinite(value)):
            raise DamagedFileError(f"{name} has shape {value.shape}, expected {shapes[name]} of finite numbers")


def _require_kind(name: str, value: Any, default: Any) -> None:
    """Refuse a number of a file that is not of the kind of its default."""
    if type(default) is bool:
        fits = type(value) is bool
    elif type(default) is int:
        fits = type(value) is int and 0 <= value and (value <= MOST or name == "seed")
    elif type(default) is float:
        fits = type(value) in (int, float) and math.isfinite(value)
    else:
        return
    if not fits:
        raise DamagedFileError(f"{name} is {value!r:.40}, expected a {type(default).__name__} in its range")


def _plain_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {key: np.ascontiguousarray(value) for key, value in arrays.items() if not key.startswith("names.")}


def mappings_of(batch: Batch) -> list[Mapping[Any, Any]]:
    """The rows of a stream as mappings."""
    assert batch.csr is not None
    data, indices, starts = (array.tolist() for array in batch.csr)
    names = batch.table.names(0, batch.columns)
    return [
        {names[j]: value for j, value in zip(indices[a:b], data[a:b], strict=True)}
        for a, b in itertools.pairwise(starts)
    ]


def vector_of(x: Any) -> Array:
    """A row of numbers in any shape as a vector."""
    row = to_row(x)
    if isinstance(row, tuple):
        index, values, columns = row
        row = np.zeros(columns)
        row[index] = values
    return np.asarray(row)


def values_of(x: Mapping[Any, Any]) -> Array:
    """The numbers of a mapping."""
    return np.array([read_item(name, value)[1] for name, value in x.items()], dtype=np.float64)
