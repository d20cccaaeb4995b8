"""Rows in memory: sparse ones without SciPy, and how parts of a stream are cut, joined and read row by row."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["CSR", "cut", "dicts", "join", "mark_validated", "stream_rows", "take"]

Array = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class CSR:
    """Sparse rows: row i is `data[a:b]` in columns `indices[a:b]` with a, b = `indptr[i]`, `indptr[i+1]`."""

    indptr: NDArray[np.int32]
    indices: NDArray[np.int32]
    data: Array
    shape: tuple[int, int]
    # Rows of an `op.stream`. No column is twice in a row, so a row keeps its order. Columns are those of a growing
    # `table` of names, or hashes of names (`hash_bits`), or plain numbers, of which larger ones may follow. While a
    # block of a table is parsed, `table` is the list of its own names.
    distinct: bool = False
    table: Any = None
    hash_bits: int | None = None
    # Not an argument: rows made of these, also by `replace`, are validated again.
    _validated: bool = dataclasses.field(default=False, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def dtype(self) -> np.dtype[np.float64]:
        return self.data.dtype

    @property
    def validated(self) -> bool:
        """Are the rows known to be well formed (`mark_validated`)? Not if they can be written to, as copies can."""
        arrays = (self.indptr, self.indices, self.data)
        return self._validated and not any(array.flags.writeable for array in arrays)

    def tocsr(self) -> CSR:
        """Itself, so that `LinearModel`, which takes SciPy's matrices, takes these rows too."""
        return self

    def __getitem__(self, rows: slice) -> CSR:
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise ParameterError(f"CSR rows are cut by slices of step 1, got {rows!r}; or use csr_matrix()")
        start, stop, _ = rows.indices(len(self))
        stop = max(start, stop)
        first, last = self.indptr[start], self.indptr[stop]
        part = dataclasses.replace(
            self,
            indptr=self.indptr[start : stop + 1] - first,
            indices=self.indices[first:last],
            data=self.data[first:last],
            shape=(stop - start, self.shape[1]),
        )
        return mark_validated(part) if self.validated else part

    def dicts(self, names: Sequence[str] | None = None) -> Iterator[dict[str, float]]:
        """Each row as a mapping from word to value; without `names` word j is called wj."""
        for start, stop in zip(self.indptr[:-1].tolist(), self.indptr[1:].tolist(), strict=True):
            columns = self.indices[start:stop].tolist()
            words = [f"w{j}" for j in columns] if names is None else [names[j] for j in columns]
            yield dict(zip(words, self.data[start:stop].tolist(), strict=True))

    def take(self, rows: NDArray[Any]) -> CSR:
        """Some rows in some order, copied."""
        lengths = (self.indptr[1:] - self.indptr[:-1])[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(self.indptr.dtype)
        at = np.repeat(self.indptr[:-1][rows] - ends[:-1], lengths) + np.arange(int(ends[-1]), dtype=ends.dtype)
        shape = (len(rows), self.shape[1])
        return dataclasses.replace(self, indptr=ends, indices=self.indices[at], data=self.data[at], shape=shape)

    def narrow_part(self, start: int, stop: int) -> CSR:
        """Some rows of a stream, with as many columns as they reach."""
        if stop - start == len(self):
            return self
        part = self[start:stop]
        narrow = dataclasses.replace(part, shape=(len(part), reach(part.indices, self.hash_bits)))
        return mark_validated(narrow) if self.validated else narrow

    def csr_matrix(self) -> csr_matrix:
        """The same rows as SciPy's matrix (the arrays are shared)."""
        from scipy.sparse import csr_matrix

        matrix: csr_matrix = csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)
        return matrix


def stream_rows(starts: Any, index: Any, value: Any, table: Any, hash_bits: int | None) -> CSR:
    """Rows of a stream, with as many columns as they reach."""
    return CSR(starts, index, value, (len(starts) - 1, reach(index, hash_bits)), True, table, hash_bits)


def reach(index: NDArray[np.int32], hash_bits: int | None) -> int:
    """How many columns rows with these indices have: all that hashes may have, otherwise up to the largest index."""
    return 1 << hash_bits if hash_bits is not None else int(index.max()) + 1 if len(index) else 0


def mark_validated(rows: CSR) -> CSR:
    """Mark rows as well formed, so that they are not validated again: starts ascend, columns are inside the shape and
    distinct within a row, numbers are finite. The arrays become read-only."""
    for array in (rows.indptr, rows.indices, rows.data):
        array.flags.writeable = False
    object.__setattr__(rows, "_validated", True)
    return rows


def dicts(X: Any, names: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Each row as a mapping; rows that are mappings or strings stay as they are."""
    if isinstance(X, list):
        yield from X
    elif isinstance(X, CSR):
        yield from X.dicts(names)
    else:
        called = [f"x{j}" for j in range(X.shape[1])] if names is None else names
        for row in X.tolist():
            yield dict(zip(called, row, strict=True))


def take(X: Any, rows: NDArray[Any]) -> Any:
    """Some rows of a table, a CSR or a list, in some order."""
    if isinstance(X, list):
        return [X[i] for i in rows.tolist()]
    return X.take(rows) if isinstance(X, CSR) else X[rows]


def cut(blocks: Iterable[tuple[Any, ...]], size: int) -> Iterator[tuple[Any, ...]]:
    """Blocks of any length as parts of `size` rows; the last part holds the remaining rows."""
    held: list[tuple[Any, ...]] = []
    count = 0
    for block in blocks:
        start, rows = 0, len(block[1])
        while start < rows:
            stop = min(rows, start + size - count)
            held.append(tuple(column[start:stop] for column in block))
            count += stop - start
            start = stop
            if count == size:
                yield tuple(join(list(columns)) for columns in zip(*held, strict=True))
                held, count = [], 0
    if held:
        yield tuple(join(list(columns)) for columns in zip(*held, strict=True))


def join(parts: list[Any]) -> Any:
    """Consecutive parts as one."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], list):
        return [row for part in parts for row in part]
    if not isinstance(parts[0], CSR):
        return np.concatenate(parts)
    shifts = np.cumsum([0, *(len(part.data) for part in parts)])
    indptr = [part.indptr[1:] + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
    return CSR(
        np.concatenate([[0], *indptr]).astype(np.int32),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.data for part in parts]),
        (sum(len(part) for part in parts), parts[0].shape[1]),
    )
