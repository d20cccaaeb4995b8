"""What users hold, as what the loops read: dense or CSR batches, single rows, lists of mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import FeatureError, InputError

__all__ = ["Batch", "as_base", "as_batch", "as_importance", "is_mappings", "to_row"]


@dataclass
class Batch:
    """Rows of numbers: `dense`, or the three arrays of a CSR matrix. `names` where the columns have them."""

    rows: int
    columns: int
    dense: NDArray[Any] | None = None
    csr: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None
    names: list[str] | None = None
    # Rows of a stream: `distinct`, no column twice in a row; and what the columns stand for (see datasets.CSR).
    # `named`: columns are the model's own features, by name or by hash.
    distinct: bool = False
    table: Any = None
    hash_bits: int | None = None
    named: bool = False
    # All rows are well formed for sure. No argument: batches that are made of this one are looked at again.
    sound: bool = field(default=False, init=False)

    def part(self, start: int, stop: int) -> Batch:
        """Some of the rows, without copying."""
        if self.dense is not None:
            return Batch(stop - start, self.columns, dense=self.dense[start:stop], names=self.names)
        assert self.csr is not None
        data, indices, starts = self.csr
        low, high = starts[start], starts[stop]
        csr = (data[low:high], indices[low:high], starts[start : stop + 1] - low)
        part = replace(self, rows=stop - start, csr=csr)
        part.sound = self.sound
        return part

    def single(self) -> Any:
        """The one row of a batch of one, as `learn_one` takes it."""
        if self.dense is not None:
            return self.dense[0].astype(np.float64)
        assert self.csr is not None
        import scipy.sparse

        return scipy.sparse.csr_matrix(self.csr, shape=(1, self.columns))

    def at(self, indices: NDArray[np.int64], columns: int) -> Batch:
        """The same rows with column j moved to indices[j] of a wider table; columns that meet there are added up."""
        if self.dense is not None:
            starts = np.arange(0, self.dense.size + 1, max(1, self.columns), dtype=np.int64)
            csr = (np.ascontiguousarray(self.dense).ravel(), np.tile(indices, self.rows), starts)
        else:
            assert self.csr is not None
            csr = (self.csr[0], indices[self.csr[1]], self.csr[2].astype(np.int64))
        return Batch(self.rows, columns, csr=csr)

    def only(self, kept: NDArray[np.bool_], columns: int) -> Batch:
        """The same rows with some of their stored elements."""
        assert self.csr is not None
        data, indices, starts = self.csr
        counts = np.concatenate([[0], np.cumsum(kept)]).astype(starts.dtype)
        return replace(self, columns=columns, csr=(data[kept], indices[kept], counts[starts]))

    def take(self, order: NDArray[Any]) -> Batch:
        """The rows in another order, copied."""
        if self.dense is not None:
            return Batch(len(order), self.columns, dense=self.dense[order], names=self.names)
        assert self.csr is not None
        data, indices, starts = self.csr
        lengths = (starts[1:] - starts[:-1])[order]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(starts.dtype)
        # Where each element of the new rows stood: its row's old start, and its place in the row.
        at = np.repeat(starts[:-1][order] - ends[:-1], lengths) + np.arange(int(ends[-1]), dtype=starts.dtype)
        csr = (data[at], indices[at], ends)
        return replace(self, rows=len(order), csr=csr)

    def without_columns(self) -> Batch:
        """As many rows, all empty."""
        return Batch(self.rows, 0, csr=(np.empty(0), np.empty(0, np.int64), np.zeros(self.rows + 1, np.int64)))

    def require_finite(self) -> None:
        """Raise what the loops raise of a malformed row, before any row is learned."""
        data = self.dense if self.csr is None else self.csr[0]
        assert data is not None
        with np.errstate(over="ignore", invalid="ignore"):
            certain = np.isfinite(np.sum(data))  # far cheaper than a look at each; but large numbers overflow it
        if not certain and not np.all(finite := np.isfinite(data)):
            at = int(np.argmin(finite))
            row, column = divmod(at, self.columns) if self.csr is None else self._place(at)
            value = {"nan": "NaN", "inf": "infinity", "-inf": "-infinity"}[str(float(data.flat[at]))]
            raise InputError(
                f"X must hold finite numbers, but X[{row}, {column}] is {value}; drop or impute the row. "
                "Nothing of this call was learned"
            )
        if self.csr is not None and len(data) and not 0 <= self.csr[1].min() <= self.csr[1].max() < self.columns:
            outside = np.flatnonzero((self.csr[1] < 0) | (self.csr[1] >= self.columns))
            row, column = self._place(int(outside[0]))
            raise InputError(
                f"X has column index {column} in row {row}, outside its shape; build it with scipy.sparse, which checks"
            )

    def _place(self, position: int) -> tuple[int, int]:
        """Row and column of a stored element."""
        assert self.csr is not None
        return int(np.searchsorted(self.csr[2], position, side="right")) - 1, int(self.csr[1][position])


def is_mappings(X: Any) -> bool:
    """Is X a list of mappings (named rows) rather than a table of numbers?"""
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], Mapping)


def as_batch(X: Any) -> Batch:
    """A 2-D array, a SciPy sparse matrix, or a pandas or Polars frame, as a batch."""
    if isinstance(X, Batch):
        return X
    if hasattr(X, "tocsr"):
        matrix = (
            X.reshape(1, -1).tocsr() if getattr(X, "ndim", 2) == 1 else X.tocsr()
        )  # a row of a sparse array has one dimension
        if matrix.dtype not in (np.float64, np.float32):
            matrix = matrix.astype(np.float64)
        kind = np.int32 if matrix.indices.dtype == matrix.indptr.dtype == np.int32 else np.int64
        csr = (
            np.ascontiguousarray(matrix.data),
            np.ascontiguousarray(matrix.indices, dtype=kind),
            np.ascontiguousarray(matrix.indptr, dtype=kind),
        )
        batch = Batch(matrix.shape[0], matrix.shape[1], csr=csr)
        if getattr(matrix, "distinct", False):  # rows of a stream
            batch.distinct, batch.table, batch.hash_bits = matrix.distinct, matrix.table, matrix.hash_bits
            batch.sound = getattr(matrix, "sound", False)
        return batch
    names = list(X.columns) if hasattr(X, "columns") else None
    if names is not None and not all(isinstance(name, str) for name in names):
        names = None  # a frame's default 0, 1, 2, … are positions, not names
    try:
        table = np.asarray(X)
    except (TypeError, ValueError):
        raise FeatureError("X must be a table: its rows are of different lengths or kinds") from None
    if table.ndim != 2:
        raise FeatureError(f"X must be a table of rows and columns, got {table.ndim} dimension(s): {_shape(X)}")
    if table.dtype not in (np.float64, np.float32):
        table = _as_numbers(table)
    return Batch(table.shape[0], table.shape[1], dense=np.ascontiguousarray(table), names=names)


def as_importance(given: Any, rows: int) -> NDArray[np.float64] | None:
    """One weight per row, finite and not negative; one number stands for all rows."""
    if given is None:
        return None
    weights = _one_each(given, rows, "importance", " >= 0")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise InputError(f"importance must be finite and >= 0, but entry {bad[0]} is {weights[bad[0]]}")
    return weights


def as_base(given: Any, rows: int) -> NDArray[np.float64] | None:
    """What the score of each row begins at, finite; None where all begin at 0."""
    if given is None:
        return None
    base = _one_each(given, rows, "base", "")
    bad = np.flatnonzero(~np.isfinite(base))
    if len(bad):
        raise InputError(f"base must be finite, but entry {bad[0]} is {base[bad[0]]}")
    return base if np.any(base) else None


def _one_each(given: Any, rows: int, name: str, such: str) -> NDArray[np.float64]:
    try:
        values = np.asarray(given)
        if values.dtype.kind not in "biufO":
            raise TypeError(f"got {values.dtype}")
        if values.ndim == 0:
            values = np.full(rows, values)
        values = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must hold one number{such} per row: {error}") from None
    if values.shape != (rows,):
        raise InputError(f"{name} must hold one number per row: X has {rows} rows, got shape {values.shape}")
    return values


def to_row(x: Any) -> Any:
    """A single example that is neither a dict nor a float64 vector: as one of the two.

    A row of a sparse matrix comes as (indices, values, columns), so that it is learned as the matrix would be.
    """
    if isinstance(x, Mapping):
        return x
    if hasattr(x, "tocsr"):
        batch = as_batch(x)
        if batch.rows != 1:
            raise FeatureError(f"x must be one row of numbers, got {batch.rows}; use learn_many for several")
        batch.require_finite()
        assert batch.csr is not None
        indices, order = np.unique(batch.csr[1], return_inverse=True)
        values = np.zeros(len(indices))
        np.add.at(values, order, batch.csr[0])
        return indices.astype(np.int64), values, batch.columns
    if isinstance(x, (str, bytes)) or x is None or not hasattr(x, "__len__"):
        raise InputError(f"x must be a mapping of names to numbers or a row of numbers, got {x!r} ({type(x).__name__})")
    try:
        row = np.asarray(x)
    except (TypeError, ValueError):
        raise FeatureError(f"x must be one row of numbers, got nested values: {x!r:.80}") from None
    if row.ndim == 2 and row.shape[0] == 1:
        row = row[0]
    if row.ndim != 1:
        got = f"an array of shape {row.shape}"
        raise FeatureError(f"x must be one row of numbers, got {got}; use learn_many for several")
    return np.ascontiguousarray(_as_numbers(row), dtype=np.float64)


def _as_numbers(table: NDArray[Any]) -> NDArray[np.float64]:
    if table.dtype.kind == "c":
        raise InputError("Complex data not supported: X must hold real numbers")
    try:
        if table.dtype.kind not in "biufO":
            raise TypeError("such values have no one number")
        return table.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        advice = "use learn_one with mappings for text"
        raise InputError(f"X must hold numbers, got {table.dtype}: {error}; {advice}") from None


def _shape(X: Any) -> str:
    return f"shape {X.shape}" if hasattr(X, "shape") else (f"{len(X)} items" if isinstance(X, Sequence) else repr(X))
