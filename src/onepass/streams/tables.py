"""Arrow tables as sparse rows: those of Parquet and Arrow IPC, and what CSV is read as (delimited.py).

A number is the feature of its column's name, a string the feature name=value, a missing value or a zero no feature at
all: what a model makes of the same row as a mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError
from ..labels import label_array
from .crossing import crossed
from .parts import BadLine, Part
from .records import too_long
from .roles import Roles, words
from .sources import Block, Source

__all__ = ["Coded", "coded_of", "coded_part", "finite", "of_arrow"]

TOGETHER = 1 << 16  # rows of a record batch taken at once
CROSSED = 1 << 10  # so too where interactions make many features of few


@dataclass
class Coded:
    """Sparse rows over names of their own: feature `names[codes[k]]` with `values[k]`, k in starts[i]..starts[i+1]."""

    starts: NDArray[np.int32]
    codes: NDArray[np.int32]
    values: NDArray[np.float64]
    names: list[str]
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    id: NDArray[Any] | None
    time: NDArray[Any] | None
    bad: list[BadLine]
    lines: int
    distinct: bool = False  # no code stands twice in a row
    line_of: Callable[[int], tuple[int, bytes]] = lambda row: (row, b"")  # a row's line in its block, and its text


def coded_part(coded: Coded, stream: Any, table: Any, block: Block) -> Part:
    """Rows with the columns of the stream's table, or hashes. Called in the order of the stream."""
    hashed = stream.hash_bits is not None
    if table is None and not hashed:
        table = _native.Names()
    if stream.expansion is not None:
        rows, coded = crossed(coded, stream, table)
        starts, index, value = rows.starts, rows.index, rows.value
    else:
        starts, index, value = _placed(coded, _columns(coded, stream.hash_bits, table))
    if block.overlong:
        coded.bad = [BadLine(0, 0, 0, bytes(block.buffer[: -_native.PADDING]), too_long(block.overlong))]
        coded.lines = block.cut.lines
    return Part(
        block.file,
        block.offset,
        block.size or (block.overlong and block.overlong + 1),
        coded.lines,
        starts,
        index,
        value,
        coded.y,
        weight=coded.weight,
        id=coded.id,
        time=coded.time,
        bad=coded.bad,
        idle=block.idle,
        table=None if hashed else table,
        hash_bits=stream.hash_bits,
    )


def _columns(coded: Coded, hash_bits: int | None, table: Any) -> NDArray[np.int32]:
    """The column of every name: its hash, or its place in the table (which remembers the names behind hashes)."""
    columns = np.full(len(coded.names), -1, dtype=np.int32)
    if table is not None:
        # Names get their columns in the order in which rows meet them, however the rows are cut.
        met = _native.first_met(coded.codes, len(coded.names))
        columns[met] = table.intern([coded.names[code] for code in met.tolist()])
    if hash_bits is None:
        return columns
    hashes: NDArray[np.int32] = _native.hash_names(coded.names, hash_bits)
    return hashes


def _placed(coded: Coded, columns: NDArray[np.int32]) -> tuple[Any, Any, Any]:
    """The rows with columns[code] for each code; where two codes share a column, what meets in a row is added up."""
    used = columns[columns >= 0]
    if coded.distinct and len(np.unique(used)) == len(used):
        same = np.array_equal(columns, np.arange(len(columns)))
        return coded.starts, coded.codes if same else columns[coded.codes], coded.values
    rows = _native.gather(coded.starts, coded.codes, coded.values, columns)
    return rows.starts, rows.index, rows.value


# -- any Arrow table --------------------------------------------------------------------------------------------------


def coded_of(table: Any, roles: Roles) -> Coded:
    """The columns of an Arrow table as sparse rows."""
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
    return Coded(
        starts, codes, values, names, _labels(table, roles, rows), _weights(table, roles.weight),
        _plain(table, roles.id), _plain(table, roles.time), [], rows, distinct=not texts,
    )  # fmt: skip


def _feature(name: str, column: Any, names: list[str], roles: Roles) -> tuple[Any, int]:
    """What `tabulate` takes: numbers and their code; or codes, below 0 where there is none, and what to add to them."""
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
    """Numbers as numbers (NaN: missing), anything else as Python's own objects (None: missing)."""
    import pyarrow

    types = pyarrow.types
    if types.is_floating(column.type) or (types.is_integer(column.type) and not _would_blur(column)):
        return np.ascontiguousarray(column.to_numpy())
    if types.is_null(column.type):
        return np.full(len(column), np.nan)
    values = column.to_pylist()
    if types.is_boolean(column.type) and None not in values:
        return np.array(values, dtype=bool)
    return label_array(values)


def _would_blur(column: Any) -> bool:
    """Integers with gaps become floats: would these be others then?"""
    import pyarrow.compute

    if not column.null_count:
        return False
    span = pyarrow.compute.min_max(column).as_py()
    return span["min"] is not None and not -(2**53) < span["min"] <= span["max"] < 2**53


def _weights(table: Any, name: str | None) -> NDArray[np.float64] | None:
    if name is None:
        return None
    numbers = _numbers(table.column(name)).copy()
    numbers[np.isnan(numbers)] = 1.0
    return numbers


def _plain(table: Any, name: str | None) -> NDArray[Any] | None:
    return None if name is None else _column(table.column(name))


# -- Parquet and Arrow IPC -------------------------------------------------------------------------------------------


def of_arrow(stream: Any, sources: list[Source], table: Any) -> Iterator[Part]:
    """Record batches; offsets of positions count rows."""
    wanted = Roles.of(stream)
    for number in range(stream.start.file, len(sources)):
        source = sources[number]
        skip = stream.start.offset if number == stream.start.file else 0
        roles = None
        together = TOGETHER if stream.expansion is None else CROSSED
        at = 0
        for whole in _record_batches(source, stream.format, together):
            batch = whole.slice(max(0, skip - at))
            at += len(whole)
            if at <= skip:
                continue
            roles = roles or wanted.settle(batch.schema.names, source.name)
            coded = coded_of(batch, roles)
            coded.line_of = partial(_row_text, batch)
            if not finite(coded):
                coded = _finite_rows(batch, roles, coded)
            yield coded_part(coded, stream, table, Block(number, at - len(batch), bytearray(), len(batch)))
        if at < skip:
            raise InputError(
                f"{source.name} has {at:,} rows, and the position to resume from is behind {skip:,} of them"
            )


def finite(coded: Coded) -> bool:
    """Is no number infinite, nor a weight below 0?"""
    numbers = [coded.values, *([coded.weight] if coded.weight is not None else [])]
    if coded.y.dtype.kind == "f":
        numbers.append(coded.y[~np.isnan(coded.y)])
    positive = coded.weight is None or bool(np.all(coded.weight >= 0))
    return positive and all(bool(np.all(np.isfinite(each))) for each in numbers)


def _finite_rows(batch: Any, roles: Roles, coded: Coded) -> Coded:
    import pyarrow

    rows = np.repeat(np.arange(len(coded.y)), np.diff(coded.starts))
    wrong = np.zeros(len(coded.y), dtype=bool)
    wrong[rows[~np.isfinite(coded.values)]] = True
    for column in (coded.y, coded.weight):
        if column is not None and column.dtype.kind == "f":
            wrong |= np.isinf(column)
    if coded.weight is not None:
        wrong |= coded.weight < 0
    good = batch.filter(pyarrow.array(~wrong))
    result = coded_of(good, roles)
    for row in np.flatnonzero(wrong).tolist():
        before = int(np.count_nonzero(~wrong[:row]))
        result.bad.append(
            BadLine(before, row, 0, _row_text(batch, row)[1], "a number is infinite, or a weight below 0")
        )
    result.lines = len(wrong)
    kept = np.flatnonzero(~wrong).tolist()
    result.line_of = lambda row: _row_text(batch, kept[row])
    return result


def _row_text(batch: Any, row: int) -> tuple[int, bytes]:
    return row, str(batch.slice(row, 1).to_pylist()[0]).encode()


def _record_batches(source: Source, format: str, together: int) -> Iterator[Any]:
    import pyarrow

    file = source.random_access()
    try:
        for batch in _batches_in(file, format, pyarrow, together):
            for start in range(0, batch.num_rows, together):
                yield pyarrow.Table.from_batches([batch.slice(start, together)])
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise InputError(f"{source.name} is not a whole {format} file: {error}") from error
    finally:
        file.close()


def _batches_in(file: Any, format: str, pyarrow: Any, together: int) -> Iterator[Any]:
    if format == "parquet":
        from pyarrow import parquet

        return iter(parquet.ParquetFile(file).iter_batches(batch_size=together))
    try:
        reader = pyarrow.ipc.open_file(file)
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    except pyarrow.ArrowInvalid:
        file.seek(0)
        return iter(pyarrow.ipc.open_stream(file))
