"""Parquet and Arrow IPC as sparse rows, record batch by record batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .blocks import BadLine, Block
from .chunk import Chunk
from .labels import LabelKind, kind_of_column
from .roles import Roles
from .sources import Source
from .tables import assign_columns, finite, rows_of

__all__ = ["of_arrow"]

TOGETHER = 1 << 16  # rows of a record batch taken at once
CROSSED = 1 << 10  # the same with interactions, which make many features of few


def of_arrow(stream: Any, table: Any) -> Iterator[Block]:
    """Record batches; offsets of positions count rows."""
    sources: list[Source] = stream.sources
    wanted = Roles.of(stream)
    labels = LabelKind(stream.start.labels)
    for number in range(stream.start.file, len(sources)):
        source = sources[number]
        skip = stream.start.offset if number == stream.start.file else 0
        roles = None
        together = TOGETHER if stream.expansion is None else CROSSED
        at = 0
        for whole in _record_batches(source, stream.format, together):
            if roles is None:
                roles = wanted.resolve(whole.schema.names, source.name)
                _require_label_kind(whole.schema, roles, labels, source.name)
            batch = whole.slice(max(0, skip - at))
            at += len(whole)
            if at > skip:
                block = Block(number, at - len(batch), bytearray(), len(batch), lines=len(batch), labels=labels.kind)
                _parse(block, batch, roles)
                assign_columns(block, stream, table)
                yield block
        if at < skip:
            raise InputError(f"{source.name} has {at:,} rows; the position to resume from is behind {skip:,} of them")


def _require_label_kind(schema: Any, roles: Roles, labels: LabelKind, name: str) -> None:
    """Refuse a file whose labels are of another kind than in earlier files: they would become new classes."""
    if not roles.label:
        return
    type = schema.field(roles.label).type
    kind = kind_of_column(type)
    if kind is None:
        raise InputError(
            f"{name}: the label {roles.label!r} holds {type}, not numbers, strings or truth values; convert it, or say "
            "label= another column"
        )
    if kind and not labels.take(kind, f"in {name}"):
        raise InputError(
            f"{name}: the label {roles.label!r} holds {kind} ({type}), but {labels.kind} {labels.where}; give files "
            "whose labels are of one kind"
        )


def _parse(block: Block, batch: Any, roles: Roles) -> None:
    """Add the rows of the record batch to the block; malformed ones as malformed lines."""
    try:
        chunk = rows_of(batch, roles)
        well_formed = finite(chunk) and not _has_nul(batch, roles, chunk)
    except UnicodeDecodeError:
        well_formed = False
    if well_formed:
        block.chunk, block.line_of = chunk, partial(_row_text, batch)
    else:
        _sieve(block, batch, roles)


def _has_nul(batch: Any, roles: Roles, chunk: Chunk) -> bool:
    """NumPy's strings lose NULs at their end, so that different labels would become equal."""
    from pyarrow import compute

    columns = (batch.column(name) for name in (roles.label, roles.id, roles.time) if name)
    return any("\0" in name for name in chunk.X.table) or any(
        bool(compute.any(compute.match_substring(_texts(column), "\0")).as_py())
        for column in columns
        if _texts(column) is not None
    )


def _texts(column: Any) -> Any:
    """A column of strings, without its dictionary; None where it holds something else."""
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    return column.cast(kind) if types.is_string(kind) or types.is_large_string(kind) else None


def _sieve(block: Block, batch: Any, roles: Roles) -> None:
    """Add the valid rows to the block, and what is wrong with the others."""
    import pyarrow

    wrong = _wrong_texts(batch, roles)
    legible = [row for row in range(len(batch)) if row not in wrong]
    numbers = rows_of(batch.take(pyarrow.array(legible, pyarrow.int64())), roles)
    what = "a number is infinite, or a weight below 0"
    wrong |= {legible[row]: what for row in np.flatnonzero(_not_finite(numbers)).tolist()}
    kept = [row for row in range(len(batch)) if row not in wrong]
    block.chunk = rows_of(batch.take(pyarrow.array(kept, pyarrow.int64())), roles)
    block.bad = [
        BadLine(int(np.searchsorted(kept, row)), row, 0, _row_text(batch, row)[1], wrong[row]) for row in sorted(wrong)
    ]
    block.line_of = lambda row: _row_text(batch, kept[row])


def _not_finite(chunk: Chunk) -> NDArray[np.bool_]:
    """Of every row: is a number infinite, or its weight below 0?"""
    rows = np.repeat(np.arange(len(chunk)), np.diff(chunk.X.indptr))
    wrong = np.zeros(len(chunk), dtype=bool)
    wrong[rows[~np.isfinite(chunk.X.data)]] = True
    for column in (chunk.y, chunk.weight):
        if column is not None and column.dtype.kind == "f":
            wrong |= np.isinf(column)
    if chunk.weight is not None:
        wrong |= chunk.weight < 0
    return wrong


def _wrong_texts(batch: Any, roles: Roles) -> dict[int, str]:
    """The rows with texts that are not UTF-8, or have a NUL."""
    import pyarrow

    wrong: dict[int, str] = {}
    for name in batch.column_names:
        used = roles.is_feature(name) or name in (roles.label, roles.id, roles.time)
        column = _texts(batch.column(name)) if used else None
        if column is None:
            continue
        for row, text in enumerate(column.cast(pyarrow.large_binary()).to_pylist()):
            if text is not None and (what := _wrong_text(text)):
                wrong.setdefault(row, f"column {name!r}: {what}")
    return wrong


def _wrong_text(text: bytes) -> str | None:
    try:
        return "a NUL byte" if "\0" in text.decode() else None
    except UnicodeDecodeError:
        return "not UTF-8 text"


def _row_text(batch: Any, row: int) -> tuple[int, bytes]:
    try:
        return row, str(batch.slice(row, 1).to_pylist()[0]).encode()
    except UnicodeDecodeError as error:
        return row, bytes(error.object)


def _record_batches(source: Source, format: str, together: int) -> Iterator[Any]:
    import pyarrow

    file = source.random_access()
    try:
        for batch in BATCHES[format](file, together):
            for start in range(0, batch.num_rows, together):
                yield pyarrow.Table.from_batches([batch.slice(start, together)])
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise InputError(f"{source.name} is not a whole {format} file: {error}") from error
    finally:
        file.close()


def _parquet(file: Any, together: int) -> Iterator[Any]:
    from pyarrow import parquet

    return iter(parquet.ParquetFile(file).iter_batches(batch_size=together))


def _ipc(file: Any, together: int) -> Iterator[Any]:
    """A file of Arrow IPC, or a stream, which has no index of its record batches. Their sizes are those of the file."""
    import pyarrow

    try:
        reader = pyarrow.ipc.open_file(file)
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    except pyarrow.ArrowInvalid:
        file.seek(0)
        return iter(pyarrow.ipc.open_stream(file))


# The record batches of an open file, by format. `together` is how many rows are wanted in a batch.
BATCHES: dict[str, Callable[[Any, int], Iterator[Any]]] = {"parquet": _parquet, "arrow": _ipc}
