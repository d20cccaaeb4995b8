"""The input of `Ranker`: the examples of queries in order, and the query in progress."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import FeatureError, InputError, ParameterError
from ..models.linear import LinearModel
from ..persistence import store
from ..rows.batches import Batch, as_batch, to_row
from ..scheme.rounds import Array
from .decoders import Features, expand

__all__ = ["Examples", "Query", "Stream", "read_mappings", "read_one", "read_queries", "read_table"]

# Rows of float64, sparse ones with their indices in order and each there once; or mappings of names to numbers.
Examples = Batch | list[Features]


@dataclasses.dataclass
class Stream:
    """Validated examples, in order."""

    examples: Examples
    relevance: Array
    importance: Array
    queries: list[Any] | NDArray[Any]
    rows: NDArray[np.intp] | None = None  # the row numbers in the input; None for 0, 1, 2, …

    def __len__(self) -> int:
        return len(self.relevance)

    def query(self, i: int) -> Any:
        return _plain(self.queries[i])

    def row(self, i: int) -> int:
        return i if self.rows is None else int(self.rows[i])

    def changes(self) -> NDArray[np.bool_]:
        """A mask of the examples that begin a query, the first one included."""
        keys = self.queries
        if isinstance(keys, np.ndarray):
            return np.concatenate([np.ones(min(1, len(keys)), dtype=bool), keys[1:] != keys[:-1]])
        return np.array([i == 0 or keys[i] != keys[i - 1] for i in range(len(keys))], dtype=bool)

    def part(self, start: int, stop: int) -> Stream:
        examples = self.examples
        return Stream(
            examples.part(start, stop) if isinstance(examples, Batch) else examples[start:stop],
            self.relevance[start:stop],
            self.importance[start:stop],
            self.queries[start:stop],
            np.arange(start, stop) if self.rows is None else self.rows[start:stop],
        )

    def shuffled(self, generator: Any) -> Stream:
        """The queries in random order, and the examples in each."""
        run = np.cumsum(self.changes()) - 1
        place = generator.permutation(run[-1] + 1 if len(run) else 0)
        order = np.lexsort((generator.permutation(len(run)), place[run]))
        examples, keys = self.examples, self.queries
        return Stream(
            examples.take(order) if isinstance(examples, Batch) else [examples[i] for i in order],
            self.relevance[order],
            self.importance[order],
            keys[order] if isinstance(keys, np.ndarray) else [keys[i] for i in order],
            order,
        )


@dataclasses.dataclass(frozen=True)
class Query:
    """The last examples of a query, at most `room` of them, oldest first; all are dense, sparse or named.

    The first example decides which. Later rows are converted to the same kind. A mapping among rows with named columns
    converts all of them to mappings.
    """

    room: int
    key: Hashable = None
    examples: Examples = dataclasses.field(default_factory=list)
    relevance: Array = dataclasses.field(default_factory=lambda: np.zeros(0))
    importance: Array = dataclasses.field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.relevance)

    def require_comparable(self, model: LinearModel, examples: Examples) -> None:
        """Raise a FeatureError if the examples cannot be compared with those of the query."""
        if len(self) and kind_of(examples) != kind_of(self.examples):
            if "named" in (kind_of(examples), kind_of(self.examples)):
                _column_names(model)

    def with_same_kind(self, model: LinearModel, examples: Examples) -> tuple[Self, Examples]:
        """The query and further examples, converted to the same kind."""
        self.require_comparable(model, examples)
        ours, theirs = kind_of(self.examples), kind_of(examples)
        if not len(self) or ours == theirs:
            return self, examples
        if isinstance(examples, list):
            return dataclasses.replace(self, examples=_by_name(model, self.examples)), examples
        if ours == "named":
            return self, _by_name(model, examples)
        return self, _as_sparse(examples) if ours == "sparse" else _as_dense(examples)

    def append(self, examples: Examples, relevance: Array, importance: Array) -> Self:
        """The query with more examples of its kind; `room` is not enforced."""
        if not len(self):
            return dataclasses.replace(self, examples=examples, relevance=relevance, importance=importance)
        return dataclasses.replace(
            self,
            examples=_stacked(self.examples, examples),
            relevance=np.concatenate([self.relevance, relevance]),
            importance=np.concatenate([self.importance, importance]),
        )

    def copy_part(self, start: int, stop: int) -> Self:
        """A copy of some examples, because the caller may change its arrays, and a large table should not be kept."""
        examples: Examples
        if isinstance(self.examples, list):
            examples = self.examples[start:stop]
        else:
            part = self.examples.part(start, stop)
            examples = dataclasses.replace(
                part,
                dense=None if part.dense is None else part.dense.copy(),
                csr=None if part.csr is None else (part.csr[0].copy(), part.csr[1].copy(), part.csr[2].copy()),
            )
        relevance, importance = self.relevance[start:stop].copy(), self.importance[start:stop].copy()
        return dataclasses.replace(self, examples=examples, relevance=relevance, importance=importance)

    # -- files

    def arrays(self) -> dict[str, NDArray[Any]]:
        out: dict[str, NDArray[Any]] = {"relevance": self.relevance, "importance": self.importance}
        if isinstance(self.examples, list):
            rows = self.examples
            names = store.encode_names([name for row in rows for name in row])
            out.update({f"names.{key}": array for key, array in names.items()})
            out["values"] = np.array([value for row in rows for value in row.values()], dtype=np.float64)
            out["ends"] = np.cumsum([len(row) for row in rows], dtype=np.int64)
        elif self.examples.dense is not None:
            out["rows"] = self.examples.dense
        else:
            assert self.examples.csr is not None
            values, indices, starts = self.examples.csr
            out.update(indices=indices.astype(np.int64), values=values, ends=starts[1:].astype(np.int64))
        return out

    @classmethod
    def of_arrays(cls, room: int, key: Hashable, kind: str, arrays: Mapping[str, NDArray[Any]], columns: int) -> Query:
        relevance, importance = arrays["relevance"], arrays["importance"]
        if not all(np.isfinite(array).all() for array in arrays.values()) or np.any(importance < 0):
            raise ValueError("a number is not finite")
        if any(array.ndim != 1 for name, array in arrays.items() if name != "rows"):
            raise ValueError("an array is not of one dimension")
        examples = _examples(kind, arrays, columns)
        count = len(examples) if isinstance(examples, list) else examples.rows
        if not count == len(relevance) == len(importance):
            raise ValueError("rows and relevances differ in number")
        return cls(room, key, examples, relevance, importance).copy_part(max(0, count - room), count)


def kind_of(examples: Examples) -> str:
    return "named" if isinstance(examples, list) else ("sparse" if examples.dense is None else "dense")


def _examples(kind: str, arrays: Mapping[str, NDArray[Any]], columns: int) -> Examples:
    """The rows of a file: dense, sparse or named."""
    if kind == "dense":
        rows = arrays["rows"]
        if rows.ndim != 2 or not (0 < rows.shape[1] <= columns or len(rows) == 0):
            raise ValueError("a row does not fit the weights")
        return Batch(len(rows), rows.shape[1], dense=np.ascontiguousarray(rows, dtype=np.float64))
    if kind == "sparse":
        return _sparse_rows(arrays, columns)
    if kind != "named":
        raise ValueError(f"no kind of rows is {kind!r}")
    ends, values = arrays["ends"].tolist(), arrays["values"].tolist()
    names = store.decode_names({key[6:]: a for key, a in arrays.items() if key.startswith("names.")})
    spans = zip([0, *ends], ends, strict=False)
    return [dict(zip(names[a:b], values[a:b], strict=True)) for a, b in spans]


def _sparse_rows(arrays: Mapping[str, NDArray[Any]], columns: int) -> Batch:
    """The sparse rows of a file, with the checks that the loops rely on."""
    indices, values, ends = arrays["indices"].astype(np.int64), arrays["values"], arrays["ends"].astype(np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])
    if np.any(np.diff(starts) < 0) or not starts[-1] == len(values) == len(indices):
        raise ValueError("the rows do not fit together")
    rises = np.diff(indices) > 0
    rises[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(indices))] - 1] = True  # from row to row
    if np.any(indices < 0) or np.any(indices >= columns) or not np.all(rises):
        raise ValueError("a row does not fit the weights")
    return Batch(len(ends), columns, csr=(np.ascontiguousarray(values, dtype=np.float64), indices, starts))


def _stacked(above: Examples, below: Examples) -> Examples:
    if isinstance(above, list) or isinstance(below, list):
        assert isinstance(above, list) and isinstance(below, list)
        return above + below
    rows, columns = above.rows + below.rows, max(above.columns, below.columns)
    if above.dense is not None and below.dense is not None:
        return Batch(rows, columns, dense=np.concatenate([above.dense, below.dense]))
    assert above.csr is not None and below.csr is not None
    values, indices, starts = above.csr
    more_values, more_indices, more_starts = below.csr
    kind = np.int32 if starts.dtype == more_starts.dtype == np.int32 else np.int64
    if len(values) + len(more_values) > np.iinfo(kind).max:
        kind = np.int64
    ends = np.concatenate([starts.astype(np.int64), more_starts[1:].astype(np.int64) + len(values)])
    csr = (np.concatenate([values, more_values]), np.concatenate([indices, more_indices]).astype(kind, copy=False))
    return Batch(rows, columns, csr=(*csr, ends.astype(kind)))


def _as_sparse(table: Batch) -> Batch:
    assert table.dense is not None
    row, column = np.nonzero(table.dense)
    starts = np.searchsorted(row, np.arange(table.rows + 1))
    return Batch(table.rows, table.columns, csr=(table.dense[row, column], column.astype(np.int64), starts))


def _as_dense(table: Batch) -> Batch:
    assert table.csr is not None
    values, indices, starts = table.csr
    dense = np.zeros((table.rows, table.columns))
    np.add.at(dense, (np.repeat(np.arange(table.rows), np.diff(starts)), indices), values)
    return Batch(table.rows, table.columns, dense=dense)


def _column_names(model: LinearModel) -> list[Any]:
    if not model.names or not model.positional:
        raise FeatureError("a query cannot hold both rows and mappings, unless a data frame named the columns")
    return model.names


def _by_name(model: LinearModel, examples: Examples) -> list[Features]:
    if isinstance(examples, list):
        return examples
    names = _column_names(model)
    table = examples if examples.csr is not None else _as_sparse(examples)
    assert table.csr is not None
    out: list[Features] = []
    for i in range(table.rows):
        row: Features = {}
        span = slice(table.csr[2][i], table.csr[2][i + 1])
        for j, value in zip(table.csr[1][span].tolist(), table.csr[0][span].tolist(), strict=True):
            row[names[j]] = row.get(names[j], 0.0) + value
        out.append(row)
    return out


# -- input -------------------------------------------------------------------------------------------------


def read_one(model: LinearModel, x: Any) -> Examples:
    if isinstance(x, Mapping):
        model.check_one(x)
        return [expand(x)]
    if hasattr(x, "tocsr"):
        batch = model.check_rows(as_batch(x))
        if batch.rows != 1:
            raise FeatureError(f"x must be one row, got {batch.rows}; use learn_many for several")
        return read_table(model, batch)
    row = to_row(x)
    model.check_one(row)
    table = Batch(1, len(row), dense=row[np.newaxis])
    return table if model.hash_bits is None else _as_sparse(table)


def read_mappings(model: LinearModel, X: Any) -> list[Features]:
    def checked() -> Iterator[Features]:
        for row, x in enumerate(X):
            try:
                if not isinstance(x, Mapping):
                    raise InputError(f"expected a mapping like those before it, got {x!r:.80}")
                model.check_one(x)
                yield expand(x)
            except InputError as error:
                raise type(error)(f"row {row}: {error}. Nothing of this call was learned") from None

    return list(checked())


def read_table(model: LinearModel, batch: Batch) -> Batch:
    """The rows of a table. For a hashed model, whose rows may differ in width, all rows become sparse."""
    if batch.dense is not None:
        batch.require_finite()
        table = Batch(batch.rows, batch.columns, dense=batch.dense.astype(np.float64, copy=False))
        return table if model.hash_bits is None else _as_sparse(table)
    batch.require_finite()
    # Sort and merge the indices of each row, so that a row does not depend on the other rows of its batch.
    data, indices, starts = batch.merged().stored
    return dataclasses.replace(batch, csr=(data.astype(np.float64, copy=False), indices, starts))


def read_queries(qid: Any, rows: int) -> list[Any] | NDArray[Any]:
    if qid is None:
        return [None] * rows
    if isinstance(qid, (str, bytes)) or not hasattr(qid, "__len__"):
        raise InputError(f"qid must name the query of each row, got {qid!r:.80}")
    whole_numbers = isinstance(qid, np.ndarray) and qid.ndim == 1 and qid.dtype.kind in "iu"
    keys = qid.copy() if whole_numbers else [_plain(key) for key in qid]
    if len(keys) != rows:
        raise InputError(f"X has {rows} rows, qid has {len(keys)} entries")
    if not whole_numbers:
        check_queries(keys)
    return keys


def check_queries(keys: list[Any]) -> None:
    try:
        store.encode_values(list(set(keys)))  # a key that no file can store is refused now, not when saving
    except (TypeError, ParameterError) as error:
        raise InputError(f"a qid must be a string, a number or a tuple of these: {error}") from None


def _plain(key: Any) -> Any:
    return key.item() if isinstance(key, np.generic) else key
