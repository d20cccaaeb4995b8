"""User data converted to what the loops read: dense or CSR batches, single rows, lists of mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import FeatureError, InputError
from . import csr as sparse
from .labels import plain
from .reals import as_reals, require_real

__all__ = ["Batch", "Rows", "as_base", "as_batch", "as_importance", "as_rows", "column_names", "is_mappings", "to_row"]


@dataclass
class Batch:
    """Rows of numbers: `dense`, or the three arrays of a CSR matrix. `names` where the columns have them."""

    rows: int
    columns: int
    dense: NDArray[Any] | None = None
    csr: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None
    names: list[Any] | None = None
    # Rows of a stream: `distinct` if no row has a column twice; `table` and `hash_bits` as in rows.CSR.
    # `named`: the columns are the model's own features, by name or by hash.
    distinct: bool = False
    table: Any = None
    hash_bits: int | None = None
    named: bool = False
    # Are all rows known to be well formed? Not an argument: a batch made of this one is validated again.
    validated: bool = field(default=False, init=False)

    def part(self, start: int, stop: int) -> Batch:
        """Some of the rows, without copying."""
        if self.dense is not None:
            return Batch(stop - start, self.columns, dense=self.dense[start:stop], names=self.names)
        assert self.csr is not None
        data, indices, starts = self.csr
        low, high = starts[start], starts[stop]
        csr = (data[low:high], indices[low:high], starts[start : stop + 1] - low)
        part = replace(self, rows=stop - start, csr=csr)
        part.validated = self.validated
        return part

    def single(self) -> Any:
        """The one row of a batch of one, as `learn_one` takes it."""
        if self.dense is not None:
            return self.dense[0].astype(np.float64)
        assert self.csr is not None
        if self.columns == 0:  # of a stream without features so far
            return {}
        import scipy.sparse

        return scipy.sparse.csr_matrix(self.merged().stored, shape=(1, self.columns))

    @property
    def stored(self) -> sparse.Arrays:
        """The values, indices and starts of sparse rows."""
        assert self.csr is not None
        return self.csr

    def merged(self) -> Batch:
        """The same sparse rows with ascending columns, each once: duplicates are added up."""
        csr = sparse.merged(self.stored)
        return self if csr is self.csr else replace(self, csr=csr)

    def filled(self, start: int, stop: int) -> NDArray[np.float64]:
        """Some of the rows as a dense, contiguous array of doubles."""
        if self.dense is not None:
            return np.ascontiguousarray(self.dense[start:stop], dtype=np.float64)
        part = self.part(start, stop).merged()
        data, indices, starts = part.stored
        out = np.zeros((part.rows, self.columns))
        out[np.repeat(np.arange(part.rows), np.diff(starts)), indices] = data
        return out

    def at(self, indices: NDArray[np.int64], columns: int) -> Batch:
        """The same rows with column j moved to indices[j] of a wider table; columns with equal indices are added up."""
        if self.dense is not None:
            starts = np.arange(0, self.dense.size + 1, max(1, self.columns), dtype=np.int64)
            csr = (np.ascontiguousarray(self.dense).ravel(), np.tile(indices, self.rows), starts)
        else:
            assert self.csr is not None
            csr = (self.csr[0], indices[self.csr[1]], self.csr[2].astype(np.int64))
        return Batch(self.rows, columns, csr=csr)

    def only(self, mask: NDArray[np.bool_], columns: int) -> Batch:
        """The same rows with the stored elements that `mask` selects."""
        assert self.csr is not None
        data, indices, starts = self.csr
        counts = np.concatenate([[0], np.cumsum(mask)]).astype(starts.dtype)
        return replace(self, columns=columns, csr=(data[mask], indices[mask], counts[starts]))

    def take(self, order: NDArray[Any]) -> Batch:
        """The rows in another order, copied."""
        if self.dense is not None:
            return Batch(len(order), self.columns, dense=self.dense[order], names=self.names)
        assert self.csr is not None
        data, indices, starts = self.csr
        lengths = (starts[1:] - starts[:-1])[order]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(starts.dtype)
        # The old position of each element: its row's old start plus its offset in the row.
        at = np.repeat(starts[:-1][order] - ends[:-1], lengths) + np.arange(int(ends[-1]), dtype=starts.dtype)
        csr = (data[at], indices[at], ends)
        return replace(self, rows=len(order), csr=csr)

    def without_columns(self) -> Batch:
        """As many rows, all empty."""
        return Batch(self.rows, 0, csr=(np.empty(0), np.empty(0, np.int64), np.zeros(self.rows + 1, np.int64)))

    def require_finite(self) -> None:
        """Raise the loops' error for NaN or infinity, before any row is learned."""
        data = self.dense if self.csr is None else self.csr[0]
        assert data is not None
        with np.errstate(over="ignore", invalid="ignore"):
            certain = np.isfinite(np.sum(data))  # far cheaper than testing each number, but large ones can overflow
        if not certain and not np.all(finite := np.isfinite(data)):
            at = int(np.argmin(finite))
            row, column = divmod(at, self.columns) if self.csr is None else self._place(at)
            value = {"nan": "NaN", "inf": "infinity", "-inf": "-infinity"}[str(float(data.flat[at]))]
            raise InputError(
                f"X must hold finite numbers, but X[{row}, {column}] is {value}; drop or impute the row. "
                "Nothing of this call was learned"
            )

    def _place(self, position: int) -> tuple[int, int]:
        """Row and column of a stored element."""
        assert self.csr is not None
        return int(np.searchsorted(self.csr[2], position, side="right")) - 1, int(self.csr[1][position])


# A table, or named rows.
Rows: TypeAlias = Batch | list[Mapping[Any, Any]]


def is_mappings(X: Any) -> bool:
    """Is X a list of mappings (named rows) rather than a table of numbers?"""
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], Mapping)


def as_rows(X: Any) -> Rows:
    """Rows in any form: named ones as a list of mappings, all others as a batch."""
    if not is_mappings(X):
        return as_batch(X)
    for number, x in enumerate(X):
        if not isinstance(x, Mapping):
            raise FeatureError(f"row {number}: expected a mapping like the first row, got {x!r:.80}")
    return list(X)


def as_batch(X: Any, *, inside: bool = True) -> Batch:
    """A 2-D array, a SciPy sparse matrix, or a pandas or Polars frame, as a batch.

    The arrays of a sparse matrix are validated here, once for every reader; `require_finite` finds NaN.
    With `inside=False`, the loops of a `RuleModel` find indices outside the shape while they read.
    """
    if isinstance(X, Batch):
        return X
    if hasattr(X, "tocsr"):
        if getattr(X, "validated", False):  # rows of a stream, validated when it was read
            arrays, (rows, columns) = (X.data, X.indices, X.indptr), X.shape
        else:
            arrays, rows, columns = sparse.read_csr(X, inside=inside or getattr(X, "distinct", False))
        data, indices, starts = arrays
        if data.dtype not in (np.float64, np.float32):
            data = data.astype(np.float64)
        kind = np.int32 if indices.dtype == starts.dtype == np.int32 else np.int64
        csr = (
            np.ascontiguousarray(data),
            np.ascontiguousarray(indices, dtype=kind),
            np.ascontiguousarray(starts, dtype=kind),
        )
        batch = Batch(rows, columns, csr=csr)
        if getattr(X, "distinct", False):  # rows of a stream
            batch.distinct, batch.table, batch.hash_bits = X.distinct, X.table, X.hash_bits
            batch.validated = getattr(X, "validated", False)
        else:
            _require_columns(columns)
        return batch
    names = column_names(X)
    try:
        table = np.asarray(X)
    except (TypeError, ValueError):
        raise FeatureError("X must be a table: its rows are of different lengths or kinds") from None
    if table.ndim != 2:
        raise FeatureError(f"X must be a table of rows and columns, got {table.ndim} dimension(s): {_shape(X)}")
    _require_columns(table.shape[1])
    if table.dtype not in (np.float64, np.float32):
        table = _as_numbers(table)
    return Batch(table.shape[0], table.shape[1], dense=np.ascontiguousarray(table), names=names)


def _require_columns(columns: int, what: str = "X") -> None:
    """Refuse rows without columns: they do not say how many columns later rows may have."""
    if columns == 0:
        raise FeatureError(f"{what} has 0 features; expected at least one column (a mapping may be empty)")


def column_names(X: Any) -> list[Any] | None:
    """The column names of a frame; None for arrays, and for the default names 0, 1, 2, … of a frame."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(columns, "__len__"):
        return None
    names = [plain(name) for name in columns]
    if names == list(range(len(names))):
        return None
    if len({type(name) for name in names}) > 1 or not isinstance(names[0], (str, int)):
        raise FeatureError(
            f"the columns of X must have names, all strings or all whole numbers, got {names!r:.80}; "
            "rename them: X.columns = [str(name) for name in X.columns]"
        )
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise FeatureError(f"two columns of X are called {twice!r}; give every column a name of its own")
    return names


def as_importance(given: Any, rows: int) -> NDArray[np.float64] | None:
    """One weight per row, finite and not negative; one number applies to all rows."""
    if given is None:
        return None
    weights = _one_each(given, rows, "importance", " >= 0")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise InputError(f"importance must be finite and >= 0, but entry {bad[0]} is {weights[bad[0]]}")
    return weights + 0.0  # of -0.0, which would mean an example that is only predicted, 0


def as_base(given: Any, rows: int) -> NDArray[np.float64] | None:
    """The base score of each row, finite; None where all are 0."""
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
        if values.ndim == 0:
            values = np.full(rows, values)
        values = np.ascontiguousarray(as_reals(values, name))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must hold one number{such} per row: {error}") from None
    if values.shape != (rows,):
        raise InputError(f"{name} must hold one number per row: X has {rows} rows, got shape {values.shape}")
    return values


def to_row(x: Any) -> Any:
    """Convert a single example to a dict or a float64 vector.

    A row of a sparse matrix becomes (indices, values, columns), so that it is learned as the matrix would be.
    """
    if isinstance(x, Mapping):
        return x
    if hasattr(x, "tocsr"):
        batch = as_batch(x)
        if batch.rows != 1:
            raise FeatureError(f"x must be one row of numbers, got {batch.rows}; use learn_many for several")
        batch.require_finite()
        assert batch.csr is not None
        values, indices, _ = sparse.merged(batch.csr)
        return indices.astype(np.int64), values.astype(np.float64), batch.columns
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
    _require_columns(len(row), "x")
    return np.ascontiguousarray(_as_numbers(row), dtype=np.float64)


def require_reals(X: Any) -> None:
    """Refuse a table whose values convert to floats but are not numbers. Input that is not a table passes."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return
    try:
        table = np.asarray(X)
    except (TypeError, ValueError):
        return
    if table.ndim == 2:
        try:
            require_real(table, "X")
        except TypeError as error:
            raise _no_numbers(table, error) from None


def _as_numbers(table: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return as_reals(table, "X" if table.ndim == 2 else "x")
    except (TypeError, ValueError, OverflowError) as error:
        raise _no_numbers(table, error) from None


def _no_numbers(table: NDArray[Any], error: Exception) -> InputError:
    got = f"{error}" if str(error).startswith("got") else f"got {table.dtype}: {error}"
    return InputError(f"X must hold numbers, {got}; use learn_one with mappings for text")


def _shape(X: Any) -> str:
    return f"shape {X.shape}" if hasattr(X, "shape") else (f"{len(X)} items" if isinstance(X, Sequence) else repr(X))
