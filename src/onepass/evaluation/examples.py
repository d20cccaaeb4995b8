"""Streams in any form, as chunks of rows or as single examples.

A stream is one of: an object with `batches(size)`, whose chunks have X, y and perhaps weight, query, id, time, base; an
object with `chunks(size)` of (X, y); an iterable of (x, y) or (x, y, weight); an iterable of such chunks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ParameterError
from ..rows.batches import as_base, as_batch, as_importance
from ..rows.examples import Examples

__all__ = ["Example", "as_chunks", "as_examples", "is_event", "unlabelled"]

CHUNK = 4096  # rows of a call: enough that its cost does not count, few enough to stay in the processor's cache


class Example(NamedTuple):
    """One example; `y` is None where there is no label."""

    x: Any
    y: Any
    weight: float | None = None
    time: Any = None
    query: Any = None
    base: float = 0.0  # what its score begins at


def as_chunks(stream: Any, size: int, no_base: str = "") -> Iterator[Examples] | None:
    """The stream in chunks, or None where it comes one by one. `no_base`: why there may be no initial predictions."""
    if hasattr(stream, "batches"):
        return (_rows(chunk, no_base) for chunk in stream.batches(size))
    if hasattr(stream, "chunks"):
        return (_rows(chunk) for chunk in stream.chunks(size))
    return None


def split(stream: Iterable[Any]) -> tuple[Any, Iterator[Any]]:
    """The first item (None of an empty stream), and the stream with it."""
    items = iter(stream)
    for first in items:
        return first, itertools.chain([first], items)
    return None, iter(())


def is_chunk(item: Any) -> bool:
    """Is this an item of a stream of chunks: an object with X and y, or a pair of a table and its column?"""
    if hasattr(item, "X") and hasattr(item, "y"):
        return True
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        return False
    return len(getattr(item[0], "shape", ())) == 2 and hasattr(item[1], "__len__") and not isinstance(item[1], str)


def chunks_of(items: Iterator[Any], size: int) -> Iterator[Examples]:
    """The chunks of a stream, cut to at most `size` rows each."""
    for item in items:
        rows = _rows(item)
        for start in range(0, rows.size(), size):
            yield rows if rows.size() <= size else rows.part(start, min(start + size, rows.size()))


def equal_runs(kinds: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """(start, stop) of consecutive entries that are equal."""
    yield from itertools.pairwise([0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)])


def is_event(item: Any) -> bool:
    """Is this ("x", id, x) or ("y", id, y)? Of the former, an importance and an initial prediction may follow."""
    return isinstance(item, tuple) and len(item) in (3, 4, 5) and isinstance(item[0], str) and item[0] in ("x", "y")


def _rows(chunk: Any, no_base: str = "") -> Examples:
    if no_base and hasattr(chunk, "require_no_base"):
        chunk.require_no_base(no_base)
    if isinstance(chunk, Examples):
        rows = chunk
    elif isinstance(chunk, tuple | list) and not hasattr(chunk, "X"):
        rows = Examples(chunk[0], chunk[1], chunk[2] if len(chunk) > 2 else None)
    else:
        columns = {name: getattr(chunk, name, None) for name in ("weight", "time", "query", "base")}
        rows = Examples(chunk.X, chunk.y, **columns)
    count = rows.size()
    if rows.y is not None and len(rows.y) != count:
        raise InputError(f"a chunk has {count} rows but {len(rows.y)} labels")
    return replace(rows, weight=as_importance(rows.weight, count), base=as_base(rows.base, count))


def as_examples(stream: Any, named: bool, no_base: str = "") -> Iterator[Example]:
    """The stream one by one; `named`: rows of tables as mappings, for models that take only those."""
    if hasattr(stream, "batches") or not hasattr(stream, "__iter__"):  # batches know weights and times, pairs do not
        chunks = as_chunks(stream, CHUNK, no_base)
        if chunks is None:
            raise ParameterError(
                f"stream={stream!r:.80}: expected an iterable of (x, y), or one with chunks(size) or batches(size)"
            )
        yield from _one_by_one(chunks, named)
        return
    first, items = split(stream)
    if is_chunk(first):
        yield from _one_by_one(chunks_of(items, CHUNK), named)
        return
    for number, item in enumerate(items, start=1):
        if not isinstance(item, tuple | list) or len(item) not in (2, 3):
            raise InputError(
                f"example {number}: expected a pair (x, y) or (x, y, weight), got {type(item).__name__}; "
                "arrays go as zip(X, y)"
            )
        weight = None if len(item) == 2 or item[2] is None else float(as_importance([item[2]], 1)[0])  # type: ignore[index]
        yield Example(item[0], item[1], weight)


def _one_by_one(chunks: Iterator[Examples], named: bool) -> Iterator[Example]:
    for rows in chunks:
        count = rows.size()
        nothing = [None] * count
        columns = [_listed(column) if column is not None else nothing for column in (rows.y, rows.weight)]
        more = [nothing if column is None else column for column in (rows.time, rows.query)]
        bases = [0.0] * count if rows.base is None else rows.base.tolist()
        for x, y, weight, time, query, base in zip(single(rows.X, named), *columns, *more, bases, strict=True):
            yield Example(x, y, weight, time, query, base)


def single(X: Any, named: bool) -> Iterator[Any]:
    """The rows of a table, one at a time; as mappings where they are `named`, or have names."""
    if isinstance(X, list | tuple):
        yield from X
    elif hasattr(X, "iloc"):
        yield from X.to_dict("records")
    elif getattr(X, "table", None) is not None:  # of a stream whose columns have names, of which more may come
        from ..streams.chunk import mappings

        yield from mappings(X)
    elif named:
        yield from _as_mappings(X)
    elif hasattr(X, "format"):  # SciPy's
        batch = as_batch(X)
        yield from (batch.part(row, row + 1).single() for row in range(batch.rows))
    elif hasattr(X, "tocsr"):
        for row in range(X.shape[0]):
            yield X[row : row + 1]
    else:
        yield from X


def _as_mappings(X: Any) -> Iterator[dict[Any, Any]]:
    """Examples of numbers as mappings from the column to the value."""
    if hasattr(X, "dicts"):
        yield from X.dicts()
    elif hasattr(X, "tocsr"):
        data, indices, starts = (array.tolist() for array in as_batch(X).merged().stored)
        for start, stop in itertools.pairwise(starts):
            yield dict(zip(indices[start:stop], data[start:stop], strict=True))
    else:
        for row in np.asarray(X):
            yield dict(enumerate(row.tolist()))


def _listed(values: Any) -> Any:
    return values.tolist() if isinstance(values, np.ndarray) else values


def unlabelled(y: Any, rows: int, before: int) -> NDArray[np.bool_] | None:
    """Which rows have no label (None or NaN); None where all have one. An infinite label is an error."""
    if y is None:
        return np.ones(rows, dtype=bool)
    if isinstance(y, np.ndarray) and y.dtype.kind == "f" and y.ndim == 1:
        infinite = np.flatnonzero(np.isinf(y))
        if len(infinite):
            raise InputError(f"example {before + int(infinite[0]) + 1}: y must be finite, got {y[infinite[0]]!r}")
        missing = np.isnan(y)
    elif isinstance(y, np.ndarray) and y.dtype.kind != "O":
        return None
    else:
        missing = np.array([has_no_label(label, before + i + 1) for i, label in enumerate(y)], dtype=bool)
    return missing if missing.any() else None


def has_no_label(y: Any, number: int) -> bool:
    if y is None:
        return True
    if isinstance(y, float | np.floating):
        if math.isinf(y):
            raise InputError(f"example {number}: y must be a class or a finite number, got {y!r}")
        return math.isnan(y)
    return False


def takes_mappings_only(model: Any) -> bool:
    """Does the model take mappings only, as River's do?"""
    return any(kind.__module__.partition(".")[0] == "river" for kind in type(model).__mro__) or isinstance(
        model, Mapping
    )
