"""Scales learned from the stream: `StandardScaler`, `MinMaxScaler`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import FeatureError, InputError, NumericalError, ParameterError
from ..learner import FORMS, LearnerTraits
from ..models.base import read_count
from ..models.columns import StreamColumns
from ..persistence import store
from ..rows.batches import Batch
from ..rows.expansion import as_number
from ..scheme.rounds import Array
from ..scheme.sizes import FEW, read_max_features, require_few
from .base import Rows, Transform

__all__ = ["MinMaxScaler", "StandardScaler"]


@dataclass
class Statistics:
    """Numbers of every column. `index` has the columns by name; None where they are positions."""

    arrays: dict[str, Array]  # may be longer than `used`
    start: dict[str, float]  # the initial values of a column
    rows: int = 0
    used: int = 0
    index: dict[Any, int] | None = None
    fixed: bool = False  # are the columns exactly those of one table?
    most: int | None = None  # columns; None: the limit of the environment
    lookup: StreamColumns = field(default_factory=StreamColumns)  # where a stream's names were found

    def copy(self) -> Statistics:
        arrays = {key: array[: self.used].copy() for key, array in self.arrays.items()}
        lookup = copy(self.lookup)
        lookup.at = self.lookup.at.copy()
        return replace(self, arrays=arrays, index=None if self.index is None else dict(self.index), lookup=lookup)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "lookup": StreamColumns()}

    def widen(self, columns: int) -> None:
        """Make room for `columns` columns; too many are refused."""
        if columns > self.used:
            self.require_few(columns)
            self.make_room(columns)

    def require_few(self, columns: int) -> None:
        """Refuse so many columns, before anything changes."""
        require_few(columns, self.most)
        bytes_needed = 16.0 * columns * len(self.arrays)  # they grow by doubling
        _native.require_memory(bytes_needed, f"the statistics of {columns} features", "use fewer", "FeatureError")

    def make_room(self, columns: int) -> None:
        room = len(next(iter(self.arrays.values())))
        if columns > room:
            more = max(columns, 2 * room) - room
            for key, array in self.arrays.items():
                self.arrays[key] = np.concatenate([array, np.full(more, self.start[key])])
        self.used = columns

    def at(self, columns: Any) -> dict[str, Array]:
        """The statistics of some columns, copied; −1 is an unknown column."""
        if not self.used:
            return {key: np.full(len(columns), start) for key, start in self.start.items()}
        return {key: np.where(columns >= 0, array[columns], self.start[key]) for key, array in self.arrays.items()}

    # The interface that `StreamColumns` needs.
    @property
    def n_features(self) -> int:
        return self.used

    @property
    def n_names(self) -> int:
        return self.used

    def find(self, names: Iterable[Any]) -> NDArray[np.int64]:
        index = self.index or {}
        return np.array([index.get(name, -1) for name in names], dtype=np.int64)

    def register(self, names: list[Any]) -> None:
        index = self.index = {} if self.index is None else self.index
        first = self.used
        self.widen(first + len(names))
        for column, name in enumerate(names, start=first):
            index[name] = column


class Running(Transform):
    """Base of the scalers: statistics of every column, which scale its numbers."""

    _start: ClassVar[dict[str, float]]
    max_features: int | None

    def _check(self) -> None:
        raise NotImplementedError

    def _dense(self, arrays: dict[str, Array], rows: int, X: Array, learn: bool, before: Any, after: Any) -> int:
        raise NotImplementedError

    def _sparse(self, arrays: dict[str, Array], rows: int, csr: Any, learn: bool, before: Any, after: Any) -> int:
        raise NotImplementedError

    def _mapping(self, arrays: dict[str, Array], rows: int, index: Any, x: Any, learn: bool, write: bool) -> Any:
        raise NotImplementedError

    @property
    def traits(self) -> LearnerTraits:  # type: ignore[override]
        forms = ("rows", "names") if self._refuse_sparse() else FORMS
        return dataclasses.replace(Transform.traits, forms=forms)

    def _refuse_sparse(self) -> str | None:
        """The reason why sparse tables are not supported; None where they are."""
        return None

    def _new_state(self) -> Statistics:
        self._check()
        read_max_features(self.max_features)
        return Statistics({key: np.empty(0) for key in self._start}, dict(self._start))

    def _copy(self, state: Statistics) -> Statistics:
        return state.copy()

    # -- mappings --------------------------------------------------------------------------------------------------

    def _one(self, state: Statistics, x: Mapping[Any, Any], learn: bool) -> tuple[Any, Callable[[], None]]:
        self._check()
        state.most = read_max_features(self.max_features)
        if state.index is None and state.used:
            raise FeatureError("this transform has learned rows of unnamed features; x has names")
        # Strings are categories: they have no scale and stay unchanged.
        z = self._mapping(state.arrays, state.rows, state.index or {}, x, learn, False)
        if z is None:
            raise _overflow(type(self).__name__, 0)
        if learn and (state.most is not None or state.used + len(z) > FEW):
            known = state.index or {}
            new = sum(name not in known and not isinstance(x[name], str) for name in z)
            state.require_few(state.used + new)

        def commit() -> None:
            index = state.index or {}
            state.register([name for name in z if name not in index and not isinstance(x[name], str)])
            self._mapping(state.arrays, state.rows, state.index or {}, x, True, True)
            state.rows += 1

        return z, commit

    # -- tables ----------------------------------------------------------------------------------------------------

    def _table(
        self, state: Statistics, batch: Batch, learn: bool, before: bool, after: bool = True
    ) -> tuple[Rows | None, Rows | None]:
        self._check()
        state.most = read_max_features(self.max_features)
        changed = self._dense_table if batch.dense is not None else self._sparse_table
        old, new = changed(state, batch, learn, before, after)
        return old, new

    def _dense_table(self, state: Statistics, batch: Batch, learn: bool, before: bool, after: bool) -> Any:
        columns = self._columns_of(state, batch, learn)
        X = np.ascontiguousarray(batch.dense, dtype=np.float64)
        old = np.empty_like(X) if before or not learn else None
        new = np.empty_like(X) if learn and after else None
        arrays = {key: array[: batch.columns] for key, array in state.arrays.items()}
        if columns is not None:
            arrays = state.at(columns)
        elif not learn:
            # An array of a file may be a read-only memory map.
            arrays = {key: np.require(array, requirements="W") for key, array in arrays.items()}
        reached = self._dense(arrays, state.rows, X, learn, old, new)
        if reached < batch.rows:
            raise _overflow(type(self).__name__, reached)
        if learn:
            state.rows += batch.rows
            if columns is not None:
                for key, array in state.arrays.items():
                    array[columns] = arrays[key]
        return (
            None if old is None else replace(batch, dense=old),
            None if new is None else replace(batch, dense=new),
        )

    def _columns_of(self, state: Statistics, batch: Batch, learn: bool) -> NDArray[np.intp] | None:
        """The state's columns for the table's columns; None where they are the first ones, in order."""
        if batch.names is not None:
            return self._named_columns(state, batch.names, learn)
        if state.used and state.used != batch.columns:
            raise FeatureError(
                f"X has {batch.columns} features, but {type(self).__name__} is expecting {state.used} features as input"
            )
        if state.index is not None and not state.fixed:
            raise FeatureError("this transform has learned named features; the columns of X have no names")
        if not learn and not state.used:
            return np.full(batch.columns, -1, dtype=np.intp)
        state.widen(batch.columns)
        return None

    @staticmethod
    def _named_columns(state: Statistics, names: list[Any], learn: bool) -> NDArray[np.intp] | None:
        if state.index is None and state.used:
            raise FeatureError("this transform has learned rows of unnamed features; the columns of X have names")
        columns = state.find(names).astype(np.intp)
        if learn and (columns < 0).any():
            state.register([name for name, column in zip(names, columns.tolist(), strict=True) if column < 0])
            columns = state.find(names).astype(np.intp)
        state.fixed = state.fixed or len(names) == state.used
        return None if np.array_equal(columns, np.arange(state.used)) else columns

    def _sparse_table(self, state: Statistics, batch: Batch, learn: bool, before: bool, after: bool) -> Any:
        refused = self._refuse_sparse()
        if refused is not None:
            raise InputError(refused)
        batch = canonical(batch)
        assert batch.csr is not None
        data, _, starts = batch.csr
        indices = self._sparse_columns(state, batch, learn)
        if not learn:  # unknown columns become one more column, of which nothing was learned
            state = state.copy()
            indices = np.where((indices < 0) | (indices >= state.used), state.used, indices)
            state.make_room(state.used + 1)
        values = np.ascontiguousarray(data, dtype=np.float64)
        csr = (starts.astype(np.int64), np.ascontiguousarray(indices, dtype=np.int32), values)
        old = np.empty_like(values) if before or not learn else None
        new = np.empty_like(values) if learn and after else None
        arrays = state.arrays
        reached = self._sparse(arrays, state.rows, csr, learn, old, new)
        if reached < batch.rows:
            raise _overflow(type(self).__name__, reached)
        if learn:
            state.rows += batch.rows
        out = [None if each is None else replace(batch, csr=(each, batch.csr[1], starts)) for each in (old, new)]
        return tuple(out)

    def _sparse_columns(self, state: Statistics, batch: Batch, learn: bool) -> NDArray[Any]:
        """The state's column of each stored value."""
        indices = batch.stored[1]
        if batch.table is not None:
            if state.index is None and state.used:
                raise FeatureError("this transform has learned rows of unnamed features; the stream's have names")
            return np.asarray(state.lookup.find(state, batch, learn)[indices])
        if batch.distinct and batch.hash_bits is None and state.index is None:
            if learn:
                state.widen(batch.columns)  # the numbers of a text stream: larger ones may follow
        elif batch.hash_bits is not None or learn or state.used >= batch.columns:
            self._columns_of(state, batch, learn)
        return indices

    # -- what was learned ------------------------------------------------------------------------------------------

    def _learned(self, key: str) -> Array:
        if self._state is None:
            raise AttributeError(f"this {type(self).__name__} has not learned anything yet")
        return np.array(self._state.arrays[key][: self._state.used])

    @property
    def n_samples_seen_(self) -> int:
        """Examples seen."""
        if self._state is None:
            raise AttributeError(f"this {type(self).__name__} has not learned anything yet")
        return int(self._state.rows)

    @property
    def names_(self) -> list[Any]:
        """The names of the columns, in the order of the numbers; empty where they are positions."""
        return [] if self._state is None or self._state.index is None else list(self._state.index)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        return np.asarray(self._names_in(input_features), dtype=object)

    # -- files -----------------------------------------------------------------------------------------------------

    def _to_config(self, state: Statistics) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        config = {"rows": state.rows, "used": state.used, "named": state.index is not None, "fixed": state.fixed}
        arrays: dict[str, NDArray[Any]] = {key: array[: state.used].copy() for key, array in state.arrays.items()}
        names = store.encode_names(list(state.index or ()))
        return config, arrays | {f"names.{key}": value for key, value in names.items()}

    def _from_config(self, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Statistics:
        state = self._new_state()
        state.rows, state.used = read_count(config, "rows"), read_count(config, "used")
        state.fixed = bool(config["fixed"])
        state.arrays = {key: arrays[key] for key in self._start}
        names = store.decode_names({key: arrays[f"names.{key}"] for key in ("utf8", "offsets", "is_int")})
        if config["named"]:
            state.index = {name: column for column, name in enumerate(names)}
        right = all(array.dtype == np.float64 and array.shape == (state.used,) for array in state.arrays.values())
        if not right or (config["named"] and len(set(names)) != state.used):
            raise ValueError("the statistics do not fit together")
        return state


class StandardScaler(Running):
    """x becomes (x − mean) / deviation, of the values seen so far (Welford 1962; population variance, as elsewhere).

    With `with_mean`, an absent feature was not measured: it is not counted and stays absent, as if it had its
    mean. Without, an absent feature is a zero: it counts, and stays zero; so the rows of text streams and CSR
    matrices keep their zeros, at a cost in proportion to the stored values. A constant feature is not scaled.

    Parameters
    ----------
    with_mean : subtract the mean. Not for sparse tables.
    with_std : divide by the standard deviation.
    max_features : the most columns; by default ONEPASS_MAX_FEATURES in the environment, or else 2^26.
    """

    _start: ClassVar[dict[str, float]] = {"count": 0.0, "mean": 0.0, "squares": 0.0}

    def __init__(self, *, with_mean: bool = True, with_std: bool = True, max_features: int | None = None) -> None:
        self.with_mean = with_mean
        self.with_std = with_std
        self.max_features = max_features

    def _check(self) -> None:
        for name in ("with_mean", "with_std"):
            flag(name, getattr(self, name))

    def _refuse_sparse(self) -> str | None:
        if not self.with_mean:
            return None
        return "Sparse rows lose their zeros when they are centred; use StandardScaler(with_mean=False)"

    def _native_arguments(self, arrays: dict[str, Array], rows: int) -> tuple[Any, ...]:
        numbers = (arrays["count"], arrays["mean"], arrays["squares"])
        return *numbers, float(rows), bool(self.with_mean), bool(self.with_std)

    def _dense(self, arrays: dict[str, Array], rows: int, X: Array, learn: bool, before: Any, after: Any) -> int:
        return int(_native.moments_dense(*self._native_arguments(arrays, rows), X, learn, before, after))

    def _sparse(self, arrays: dict[str, Array], rows: int, csr: Any, learn: bool, before: Any, after: Any) -> int:
        return int(_native.moments_sparse(*self._native_arguments(arrays, rows), *csr, learn, before, after))

    def _mapping(self, arrays: dict[str, Array], rows: int, index: Any, x: Any, learn: bool, write: bool) -> Any:
        return _native.moments_mapping(*self._native_arguments(arrays, rows), index, x, learn, write, as_number)

    @property
    def mean_(self) -> Array:
        """Of every column; an absent value is a zero without `with_mean`."""
        count, mean = self._learned("count"), self._learned("mean")
        return mean if self.with_mean else mean * count / max(1, self.n_samples_seen_)

    @property
    def var_(self) -> Array:
        count, mean, squares = (self._learned(key) for key in self._start)
        if self.with_mean:
            return np.asarray(squares / np.maximum(count, 1.0))
        rows = float(max(1, self.n_samples_seen_))
        return np.asarray((squares + mean * mean * (count * (rows - count) / rows)) / rows)

    @property
    def scale_(self) -> Array:
        """The divisor of each value."""
        spread = np.sqrt(self.var_) if self.with_std else np.ones_like(self._learned("mean"))
        noise = 10.0 * np.finfo(float).eps * np.abs(self._learned("mean"))
        return np.where(spread > noise, spread, 1.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        return tags


class MinMaxScaler(Running):
    """x becomes (x − least) / (greatest − least) of the values seen so far, in `feature_range`.

    A value outside those seen so far falls outside the range, unless `clip`. An absent feature is not counted and stays
    absent. `max_features` is the most columns there may be, as of `StandardScaler`.
    """

    _start: ClassVar[dict[str, float]] = {"low": np.inf, "high": -np.inf}

    def __init__(
        self,
        feature_range: tuple[float, float] = (0.0, 1.0),
        *,
        clip: bool = False,
        max_features: int | None = None,
    ) -> None:
        self.feature_range = feature_range
        self.clip = clip
        self.max_features = max_features

    def _check(self) -> None:
        flag("clip", self.clip)
        try:
            low, high = (float(end) for end in self.feature_range)
        except (TypeError, ValueError):
            low = high = np.nan
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            message = "expected two finite numbers, the first smaller (desired feature range Minimum < maximum)"
            raise ParameterError(f"feature_range={self.feature_range!r}: {message}")

    def _refuse_sparse(self) -> str | None:
        return "Sparse rows lose their zeros when they are shifted; use StandardScaler(with_mean=False)"

    def _native_arguments(self, arrays: dict[str, Array]) -> tuple[Any, ...]:
        low, high = self.feature_range
        return arrays["low"], arrays["high"], float(low), float(high), bool(self.clip)

    def _dense(self, arrays: dict[str, Array], rows: int, X: Array, learn: bool, before: Any, after: Any) -> int:
        return int(_native.range_dense(*self._native_arguments(arrays), X, learn, before, after))

    def _sparse(self, arrays: dict[str, Array], rows: int, csr: Any, learn: bool, before: Any, after: Any) -> int:
        return int(_native.range_sparse(*self._native_arguments(arrays), *csr, learn, before, after))

    def _mapping(self, arrays: dict[str, Array], rows: int, index: Any, x: Any, learn: bool, write: bool) -> Any:
        return _native.range_mapping(*self._native_arguments(arrays), index, x, learn, write, as_number)

    @property
    def data_min_(self) -> Array:
        return self._learned("low")

    @property
    def data_max_(self) -> Array:
        return self._learned("high")


def canonical(batch: Batch) -> Batch:
    """CSR rows with distinct columns in each row."""
    assert batch.csr is not None
    if batch.distinct:
        return batch
    return batch.merged()


def flag(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name}={value!r}: expected True or False")


def _overflow(name: str, row: int) -> NumericalError:
    return NumericalError(f"row {row}: the statistics of {name} overflow; scale the features down", row)
