"""Arrow tables as sparse rows: those of Parquet and Arrow IPC, and what CSV is read as (delimited.py).

A number is the feature named as its column, a string is the feature name=value, a missing value or a zero is no
feature: the same row as a model makes of a mapping.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError
from ..rows.rows import CSR, stream_rows
from .blocks import Block
from .chunk import Chunk, exact
from .roles import Roles, words
from .table_interactions import crossed

__all__ = ["assign_columns", "finite", "rows_of"]


def assign_columns(block: Block, stream: Any, table: Any) -> None:
    """Give the rows of a block, whose columns are names of its own, those of the stream's table, or hashes.

    Called in the order of the stream.
    """
    hash_bits = stream.hash_bits
    if table is None and hash_bits is None:
        table = _native.Names()
    if stream.expansion is not None:
        arrays = crossed(block, stream, table)
    else:
        arrays = _placed(block.chunk.X, _columns(block.chunk.X, hash_bits, table))
    block.chunk = replace(block.chunk, X=stream_rows(*arrays, table if hash_bits is None else None, hash_bits))
    block.add_overlong()
    block.crc = crc_of(block)


def crc_of(block: Block) -> int | None:
    """Of the text of a block in memory; None where it has none, as rows of Parquet."""
    if block.overlong or not block.buffer:
        return block.crc if block.overlong else None
    return _native.crc32c(memoryview(block.buffer)[: block.size])


def _columns(X: CSR, hash_bits: int | None, table: Any) -> NDArray[np.int32]:
    """The column of every name: its hash, or its place in the table, which stores the names of hashes."""
    names: list[str] = X.table
    columns = np.full(len(names), -1, dtype=np.int32)
    if table is not None:
        # Names get their columns in the order in which they first occur in rows, however the rows are cut.
        used = _native.first_met(X.indices, len(names))
        columns[used] = table.intern([names[code] for code in used.tolist()])
    if hash_bits is None:
        return columns
    hashes: NDArray[np.int32] = _native.hash_names(names, hash_bits)
    return hashes


def _placed(X: CSR, columns: NDArray[np.int32]) -> tuple[Any, Any, Any]:
    """The arrays of the rows with columns[j] for each column j; values of a row that share a column are added up."""
    used = columns[columns >= 0]
    if X.distinct and len(np.unique(used)) == len(used):
        same = np.array_equal(columns, np.arange(len(columns)))
        return X.indptr, X.indices if same else columns[X.indices], X.data
    rows = _native.gather(X.indptr, X.indices, X.data, columns)
    return rows.starts, rows.index, rows.value


# -- any Arrow table --------------------------------------------------------------------------------------------------


def rows_of(table: Any, roles: Roles) -> Chunk:
    """The columns of an Arrow table as sparse rows over names of their own: the list `X.table`."""
    import pyarrow

    rows = table.num_rows
    names: list[str] = []
    columns: list[tuple[Any, int]] = []  # numbers and their code, or codes and what to add to them
    texts: list[tuple[str, list[Any]]] = []
    for name in table.column_names:
        if not roles.is_feature(name):
            continue
        column = table.column(name)
        if name in roles.text:
            texts.append((name, column.to_pylist()))
        elif not pyarrow.types.is_null(column.type):
            columns.append(_feature(name, column, names, roles))
    flat = _native.tabulate(columns, rows)
    starts, codes, values = flat.starts, flat.index, flat.value
    if texts:
        starts, codes, values = _with_texts(starts, codes, values, texts, names, roles.ngram)
    X = CSR(starts, codes, values, (rows, len(names)), distinct=not texts, table=names)
    y, weight = _labels(table, roles, rows), _weights(table, roles.weight)
    return Chunk(X, y, weight=weight, id=_plain(table, roles.id), time=_plain(table, roles.time))


def _feature(name: str, column: Any, names: list[str], roles: Roles) -> tuple[Any, int]:
    """A column for `_native.tabulate`: numbers and their code; or codes (below 0: missing) and what to add to them."""
    import pyarrow

    types, kind = pyarrow.types, column.type
    if name in roles.categorical:
        column, kind = column.cast(pyarrow.string()), pyarrow.string()
    base = len(names)
    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        names.append(name)
        return np.ascontiguousarray(_numbers(column)), base
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        raise InputError(f"column {name!r} holds {kind}, not numbers or strings: leave it out with drop=[{name!r}]")
    encoded = column.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
    names += [f"{name}={value}" for value in encoded.dictionary.to_pylist()]
    return encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32), base


def _numbers(column: Any) -> NDArray[np.float64]:
    import pyarrow

    if pyarrow.types.is_boolean(column.type):
        column = column.cast(pyarrow.int8())
    floats = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
    return np.asarray(floats, dtype=np.float64)


def _with_texts(starts: Any, codes: Any, values: Any, texts: Any, names: list[str], ngram: int) -> tuple[Any, Any, Any]:
    """The words of text columns, after the other features of their rows."""
    known: dict[str, int] = {}
    more: list[int] = []
    row_of: list[int] = []
    for name, column in texts:
        for row, text in enumerate(column):
            if text is not None:
                found = words(name, text, ngram)
                more += [known.setdefault(word, len(names) + len(known)) for word in found]
                row_of += [row] * len(found)
    names += known
    rows = np.concatenate([np.repeat(np.arange(len(starts) - 1), np.diff(starts)), np.array(row_of, dtype=np.int64)])
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=len(starts) - 1)
    return (
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        np.concatenate([codes, np.array(more, dtype=np.int32)])[order],
        np.concatenate([values, np.ones(len(more))])[order],
    )


def _labels(table: Any, roles: Roles, rows: int) -> NDArray[Any]:
    if not roles.label:
        return np.full(rows, np.nan)
    return _column(table.column(roles.label))


def _column(column: Any) -> NDArray[Any]:
    """Numbers as numbers (NaN: missing), where they fit; anything else as Python's own objects (None: missing)."""
    import pyarrow

    types = pyarrow.types
    if types.is_floating(column.type) or (types.is_signed_integer(column.type) and not column.null_count):
        return np.ascontiguousarray(column.to_numpy())
    return exact(column.to_pylist())


def _weights(table: Any, name: str | None) -> NDArray[np.float64] | None:
    if name is None:
        return None
    import pyarrow

    column, types = table.column(name), pyarrow.types
    numeric = (types.is_floating, types.is_integer, types.is_boolean, types.is_decimal, types.is_null)
    if not any(test(column.type) for test in numeric):
        raise InputError(f"the weight column {name!r} holds {column.type}, expected numbers; choose another column")
    numbers = _numbers(column).copy()
    numbers[np.isnan(numbers)] = 1.0
    return numbers


def _plain(table: Any, name: str | None) -> NDArray[Any] | None:
    return None if name is None else _column(table.column(name))


def finite(chunk: Chunk) -> bool:
    """Is no number infinite, nor a weight below 0?"""
    y, weight = chunk.y, chunk.weight
    numbers = [chunk.X.data, *([weight] if weight is not None else [])]
    if y.dtype.kind == "f":
        numbers.append(y[~np.isnan(y)])
    positive = weight is None or bool(np.all(weight >= 0))
    return positive and all(bool(np.all(np.isfinite(each))) for each in numbers)
