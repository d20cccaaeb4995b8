"""Names and categories as columns: one column for each (`OneHotEncoder`), or hashed columns (`FeatureHasher`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from .. import _native
from ..errors import FeatureError, InputError, ParameterError
from ..persistence import store
from ..rows.batches import Batch, column_names, is_mappings
from ..rows.expansion import as_number, numbers_of
from ..scheme.rounds import Array
from ..scheme.sizes import FEW, read_max_features, require_room
from .base import Rows, Transform, Vocabulary, as_rows, at_row, mappings_of
from .scaling import flag

__all__ = ["FeatureHasher", "OneHotEncoder"]


class OneHotEncoder(Transform):
    """Each value of a feature becomes the feature name=value, as models treat strings themselves; categories grow.

    A value that was not learned is dropped. Tables may hold numbers or strings; the result is a CSR matrix whose
    columns are in the order in which categories appeared, so that a chunk with new ones adds columns at the end.

    Parameters
    ----------
    features : the names of those to encode; by default all. The others must be numbers and stay unchanged.
    max_features : the most columns; by default ONEPASS_MAX_FEATURES in the environment, or else 2^26.
    """

    traits = dataclasses.replace(Transform.traits, forms=("rows", "names"))

    def __init__(self, features: Iterable[str] | None = None, *, max_features: int | None = None) -> None:
        self.features = features
        self.max_features = max_features

    def _new_state(self) -> Vocabulary:
        if self.features is not None:
            if isinstance(self.features, str) or not all(isinstance(name, str) for name in self.features):
                raise ParameterError(f"features={self.features!r}: expected a list of names, or None for all")
        read_max_features(self.max_features)
        return Vocabulary()

    def _copy(self, state: Vocabulary) -> Vocabulary:
        return state.copy()

    def _one(self, state: Vocabulary, x: Mapping[Any, Any], learn: bool) -> tuple[Any, Callable[[], None]]:
        z: dict[str, float] = {}
        for name, value in x.items():
            if self.features is None or name in self.features:
                z[f"{name}={category_name(name, value)}"] = 1.0
            else:
                number = as_number(name, value)
                if number != 0.0:
                    z[str(name)] = number
        if not learn:
            return {name: value for name, value in z.items() if name in state.index}, lambda: None
        if self.max_features is not None or len(state.list) + len(z) > FEW:
            state.require_few(z, self.max_features)
        return z, lambda: state.register_all(z)

    def _table(
        self, state: Vocabulary, batch: Batch, learn: bool, before: bool, after: bool = True
    ) -> tuple[Rows | None, Rows | None]:
        if batch.csr is not None:
            if batch.table is None:
                raise InputError("a sparse matrix has no categories: give OneHotEncoder a dense table, or mappings")
            rows = mappings_of(batch, [])
            old = [self._one(state, x, False)[0] for x in rows] if before or not learn else None
            return old, [at_row(row, self._learn, state, x) for row, x in enumerate(rows)] if learn else None
        if not (learn and before):
            rows_now = self._encoded(state, batch, learn)
            return (None, rows_now) if learn else (rows_now, None)
        # A row transformed before learning depends on the rows above: a new category is known from the next row on.
        old, new = [], []
        for row, values in enumerate(_values(batch).tolist()):
            x = dict(zip(self._column_names(batch), values, strict=True))
            old.append(at_row(row, self._one, state, x, False)[0])
            new.append(at_row(row, self._learn, state, x))
        return old, new

    def _learn(self, state: Vocabulary, x: Mapping[Any, Any]) -> Any:
        z, commit = self._one(state, x, True)
        commit()
        return z

    def _encoded(self, state: Vocabulary, batch: Batch, learn: bool) -> Batch:
        """A dense table as rows over the vocabulary, column by column."""
        table = _values(batch)
        names = self._column_names(batch)
        kinds: list[tuple[NDArray[Any], list[str], NDArray[Any]]] = []  # by column: code of each row, names, value
        new_names: list[tuple[int, int, str]] = []  # row and column of the first appearance, name
        for j, name in enumerate(names):
            codes, called, numbers = self._column(name, table[:, j])
            first = np.full(len(called), batch.rows, dtype=np.int64)
            there = np.flatnonzero(numbers != 0.0)[::-1]
            first[codes[there]] = there
            new_names += [
                (int(row), j, each)
                for row, each in zip(first.tolist(), called, strict=True)
                if row < batch.rows and each not in state.index
            ]
            kinds.append((codes, called, numbers))
        if learn:
            state.require_few([name for _, _, name in new_names], self.max_features)
            state.register_all(name for _, _, name in sorted(new_names))
        places = np.full((batch.rows, len(names)), -1, dtype=np.int32)
        values = np.ones((batch.rows, len(names)))
        for j, (codes, called, numbers) in enumerate(kinds):
            places[:, j] = np.array([state.index.get(each, -1) for each in called], dtype=np.int32)[codes]
            values[:, j] = numbers
        known = (places >= 0) & (values != 0.0)
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(known, axis=1))]).astype(np.int32)
        csr = (values[known], places[known], starts)
        return Batch(batch.rows, len(state), csr=csr, distinct=True, table=state)

    def _column(self, name: str, column: NDArray[Any]) -> tuple[NDArray[Any], list[str], Array]:
        if self.features is not None and name not in self.features:
            numbers = np.array([as_number(name, value) for value in column.tolist()])
            return np.zeros(len(column), dtype=np.intp), [name], numbers
        try:
            distinct, codes = np.unique(column, return_inverse=True)
        except TypeError:  # values of different kinds do not sort
            known: dict[Any, int] = {}
            codes = np.array([known.setdefault(category_name(name, value), len(known)) for value in column.tolist()])
            return codes, [f"{name}={value}" for value in known], np.ones(len(column))
        called = [f"{name}={category_name(name, value)}" for value in distinct.tolist()]
        return codes.reshape(-1), called, np.ones(len(column))

    def _read(self, X: Any) -> Rows:
        if isinstance(X, Batch) or is_mappings(X) or hasattr(X, "tocsr"):
            return as_rows(X)
        table = np.asarray(X)
        if table.ndim != 2:
            raise FeatureError(f"X must be a table of rows and columns, got {table.ndim} dimension(s)")
        names = column_names(X)
        return _Categories(len(table), table.shape[1], dense=table, names=names)

    def _single(self, x: Any) -> Batch:
        if isinstance(x, str | bytes) or not hasattr(x, "__len__"):
            raise InputError(f"x must be a mapping of names to values or a row of values, got {x!r:.80}")
        row = np.empty((1, len(x)), dtype=object)
        row[0] = list(x)
        return _Categories(1, len(x), dense=row)

    def _validated(self, X: Any, *, reset: bool) -> Batch:
        column_names(X)  # refuses ambiguous column names
        try:
            table = validate_data(self, X, dtype=None, ensure_all_finite=False, reset=reset)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(str(error)) from None
        if table.dtype.kind == "c":
            raise InputError("Complex data not supported: categories are strings or numbers")
        names = getattr(self, "feature_names_in_", None)
        return _Categories(
            len(table), table.shape[1], dense=table, names=None if names is None else [str(name) for name in names]
        )

    @property
    def categories_(self) -> list[str]:
        """The columns' names, in order: name=value."""
        if self._state is None:
            raise AttributeError("this OneHotEncoder has not learned anything yet")
        return list(self._state.list)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        self._names_in(input_features)
        return np.array(self._state.list, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _to_config(self, state: Vocabulary) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {}, dict(store.encode_names(state.list))

    def _from_config(self, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Vocabulary:
        names = store.decode_names(arrays)
        if len(set(names)) != len(names) or not all(isinstance(name, str) for name in names):
            raise ValueError("a category appears twice")
        return Vocabulary([str(name) for name in names])


class _Categories(Batch):
    """A table whose values need not be numbers."""

    def require_finite(self) -> None:
        pass  # each value is checked when it is converted to text


def _values(batch: Batch) -> NDArray[Any]:
    assert batch.dense is not None
    return batch.dense


def category_name(name: Any, value: Any) -> str:
    """A category as text: whole numbers alike, whatever their type."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    number = as_number(name, value)
    return str(int(number)) if number.is_integer() else repr(number)


class FeatureHasher(Transform):
    """Each feature moves to the column hash(name) mod 2^hash_bits, as in `LinearModel(hash_bits=…)` and op.stream.

    The hash is murmur3 of the name's UTF-8 bytes, and as in VW a name of digits is its number: the same on every
    machine. Features in the same column are added up. The columns of an array are called x0, x1, …

    Parameters
    ----------
    hash_bits : there are 2^hash_bits columns.
    signed : half of the names, by all bits of their hash, change their sign, so that collisions
        cancel on average.
    keep_names : remember which names were learned, for `names_` and `collisions_`; at most as many as
        ONEPASS_MAX_FEATURES in the environment says, by default 2^26.
    """

    _gives_rows: ClassVar[bool] = True
    _changes: ClassVar[bool] = False

    def __init__(self, hash_bits: int = 18, *, signed: bool = False, keep_names: bool = False) -> None:
        self.hash_bits = hash_bits
        self.signed = signed
        self.keep_names = keep_names

    def _new_state(self) -> Vocabulary:
        bits_of(self.hash_bits)
        flag("signed", self.signed)
        flag("keep_names", self.keep_names)
        return Vocabulary()

    def _copy(self, state: Vocabulary) -> Vocabulary:
        return state.copy() if self.keep_names else state

    def _hashed(self, names: list[str]) -> tuple[NDArray[np.int32], Array]:
        hashes = _native.hash_names(names, 32)
        mixed = hashes.view(np.uint32) * np.uint32(0x9E3779B1)  # a name of digits is its number: small
        signs = np.where(mixed >> 31, -1.0, 1.0) if self.signed else np.ones(len(names))
        return (hashes & np.int32((1 << bits_of(self.hash_bits)) - 1)).astype(np.int32), signs

    def _one(self, state: Vocabulary, x: Mapping[Any, Any], learn: bool) -> tuple[Any, Callable[[], None]]:
        row = numbers_of(x)
        names = [str(name) for name in row]
        slots, signs = self._hashed(names)
        z: dict[int, float] = {}
        for slot, value in zip(slots.tolist(), (signs * list(row.values())).tolist(), strict=True):
            z[slot] = z[slot] + value if slot in z else value

        if learn and self.keep_names:
            state.require_few(names, None, "leave out keep_names")

        def commit() -> None:
            if self.keep_names:
                state.register_all(names)

        return z, commit

    def _joined(self, rows: list[Any]) -> Rows:
        starts = np.cumsum([0, *(len(row) for row in rows)])
        indices = np.array([slot for row in rows for slot in row], dtype=np.int32)
        data = np.array([value for row in rows for value in row.values()], dtype=np.float64)
        return Batch(len(rows), 1 << self.hash_bits, csr=(data, indices, starts.astype(np.int32)))

    def _table(
        self, state: Vocabulary, batch: Batch, learn: bool, before: bool, after: bool = True
    ) -> tuple[Rows | None, Rows | None]:
        if batch.hash_bits is not None:
            raise FeatureError("the stream's features are hashes already; leave out FeatureHasher")
        if batch.table is not None:
            called: list[str] = batch.table.names(0, batch.columns)
            assert batch.csr is not None
            used = np.unique(batch.csr[1]).tolist()
        else:
            called = self._column_names(batch)
            used = list(range(batch.columns))
        slots, signs = self._hashed(called)
        out = replace(batch, table=None, distinct=False, names=None).at(slots.astype(np.int64), 1 << self.hash_bits)
        assert out.csr is not None
        signed = out.csr[0] * (np.tile(signs, batch.rows) if batch.csr is None else signs[batch.csr[1]])
        out = replace(out, csr=(signed, out.csr[1], out.csr[2])).only(out.csr[0] != 0.0, out.columns)
        if learn and self.keep_names:
            names = [called[column] for column in used]
            state.require_few(names, None, "leave out keep_names")
            state.register_all(names)
        return out if before or not learn else None, out if learn else None

    @property
    def names_(self) -> dict[int, list[str]]:
        """column → the names that share it."""
        names = self._stored_names()
        table: dict[int, list[str]] = {}
        for slot, name in zip(self._hashed(names)[0].tolist(), names, strict=True):
            table.setdefault(slot, []).append(name)
        return table

    @property
    def collisions_(self) -> int:
        """How many names share a column with an earlier name."""
        names = self._stored_names()
        return len(names) - len(np.unique(self._hashed(names)[0]))

    def _stored_names(self) -> list[str]:
        if not self.keep_names or self._state is None:
            raise AttributeError("names are stored on request only: FeatureHasher(keep_names=True), then learn")
        return list(self._state.list)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        self._names_in(input_features)
        return hashed_names(bits_of(self.hash_bits))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _to_config(self, state: Vocabulary) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {}, dict(store.encode_names(state.list))

    _from_config = OneHotEncoder._from_config


def bits_of(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= 30:
        raise ParameterError(f"hash_bits={value!r}: expected a whole number from 1 to 30")
    return int(value)


def hashed_names(bits: int) -> NDArray[Any]:
    """The names of 2^bits columns."""
    require_room(10 << bits, f"the names of 2^{bits} columns")
    return np.array([f"hash{slot}" for slot in range(1 << bits)], dtype=object)
