"""CSV and TSV: native/parse/csv_records.hpp finds where records end, Arrow reads what they hold.

If Arrow refuses a record of a block, the block is read again in halves, until only the refused records are left out.
Whether a record is malformed therefore does not depend on its neighbours, nor on how the file is cut.
"""

from __future__ import annotations

import csv
import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .blocks import BadLine, Block
from .chunk import Chunk, Position, exact
from .formats import MARK
from .records import Record, Records
from .roles import Roles
from .sources import Source
from .tables import assign_columns, finite, rows_of
from .threads import in_order

__all__ = ["of_csv"]

MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "Null"]
SAMPLE = 1 << 20  # bytes of a file that show what kinds its columns hold
NUMBER = r"^\s*-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
TRUTH = r"^(true|True|TRUE|false|False|FALSE)$"
# All that Arrow reads as numbers and truth values, and more; and the characters that undecodable bytes become.
NUMBERS = re.compile(
    r"[ \t]*[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf(inity)?|nan(\(\w*\))?)[ \t]*", re.IGNORECASE | re.ASCII
)
TRUTHS = frozenset(["true", "True", "TRUE", "1", "false", "False", "FALSE", "0"])
STRANGE = re.compile("[\udc80-\udcff]")
FEW = 256  # records that are checked one by one where Arrow refuses some of them
WHOLE = re.compile(r"[ \t]*-?\d+[ \t]*")
EXACT = 2.0**53  # float64 holds all whole numbers below exactly


def of_csv(stream: Any, table: Any) -> Iterator[Block]:
    """CSV in blocks of whole records, read on several threads."""
    records: Records = stream.records()
    layout = _layout(stream, records)

    def parse(block: Block) -> None:
        if block.header:
            _require_same_header(stream.sources[block.file], block, layout)
        _parse(layout, block)

    for block in in_order(_with_headers(stream, stream.blocks(how=records)), parse, stream.threads):
        assign_columns(block, stream, table)
        yield block


def _with_headers(stream: Any, blocks: Iterator[Block]) -> Iterator[Block]:
    """Mark the blocks that begin with the header: in each file the first block that has a record."""
    file, expected = stream.start.file, stream.header is True and not _begun(stream)
    for block in blocks:
        if block.file != file:
            file, expected = block.file, stream.header is True
        if expected and block.cut.records:
            block.header, expected = True, False
        yield block


def _begun(stream: Any) -> bool:
    """Does the stream start after the names of the columns, not only after empty lines?"""
    start: Position = stream.start
    if not 0 < start.offset < SAMPLE:
        return start.offset > 0
    before = stream.sources[start.file].beginning(start.offset) if start.file < len(stream.sources) else b""
    return bool(before.removeprefix(MARK).strip(b"\r\n"))


# -- what the columns are ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """The columns of CSV files: the kinds that the first rows show, and their roles."""

    columns: list[str]
    kinds: dict[str, Any]  # of the columns that are read
    unseen: frozenset[str]  # those without a value in the first rows
    roles: Roles
    records: Records

    def table(self, data: Any, kinds: dict[str, Any] | None = None) -> Any:
        """Records as an Arrow table; raises ArrowInvalid at anything unexpected."""
        import pyarrow
        from pyarrow import csv as reader

        kinds = self.kinds if kinds is None else kinds
        convert = reader.ConvertOptions(
            column_types=kinds, include_columns=list(kinds), null_values=MISSING, strings_can_be_null=True
        )
        read = reader.ReadOptions(use_threads=False, column_names=self.columns, block_size=1 << 30)
        return reader.read_csv(pyarrow.BufferReader(data), read, _dialect(self.records), convert)


def _dialect(records: Records, **more: Any) -> Any:
    from pyarrow import csv as reader

    return reader.ParseOptions(delimiter=records.separator, newlines_in_values=True, **more)


def _layout(stream: Any, records: Records) -> Layout:
    """The layout, from the beginnings of the files: the first line with names, and the first file that has rows."""
    import pyarrow

    columns = list(stream.header) if not isinstance(stream.header, bool) else []
    roles = Roles.of(stream).resolve(columns, stream.sources[0].name) if columns else Roles(label=False)
    there: dict[str, Any] = {}
    for source in stream.sources:
        last = source is stream.sources[-1]
        first, rows = _beginning(source, stream.header is True, records, wait=stream.follow and last)
        if first is not None and not columns:
            columns = _header(source, first, records) if stream.header else _numbered(rows, records)
            roles = Roles.of(stream).resolve(columns, source.name) if columns else roles
        there = _values(rows, columns, records)
        if there:
            break
    kinds = {name: _kind(name, there.get(name, []), roles, pyarrow) for name in columns}
    unseen = frozenset(name for name in columns if not len(there.get(name, [])))
    return Layout(columns, {name: kind for name, kind in kinds.items() if kind}, unseen, roles, records)


def _beginning(source: Source, header: bool, records: Records, wait: bool) -> tuple[Record | None, bytes]:
    """The first record, and the rows of the first megabyte, or of more if it has none. `wait`: rows will come."""
    size = SAMPLE
    while True:
        data = source.beginning(size)
        text, whole = data.removeprefix(MARK), len(data) < size and not wait
        first = records.of(text, len(text), whole, 1 + header)
        if len(first) > header or whole:
            break
        if len(data) < size:
            time.sleep(0.1)
        elif size > 2 * (SAMPLE + records.max_line):
            _require_first(source, first or not text.strip(b"\r\n"), records)
            break
        else:
            size *= 4
    rows = text[first[header].begin :] if len(first) > header else b""
    cut = records.cut(rows, len(rows), whole)
    if not cut.well_quoted:
        rows = b"".join(record.text + b"\n" for record in records.of(rows, len(rows), whole) if not record.what)
    return first[0] if first else None, rows if not cut.well_quoted else rows[: cut.size]


def _require_first(source: Source, there: object, records: Records) -> None:
    if not there:
        most = f"{records.max_line:,}"
        raise InputError(f"{source.name}: its first line is longer than max_line, {most} bytes; allow longer ones")


def _header(source: Source, record: Record, records: Records) -> list[str]:
    """The names of columns."""
    where = f"{source.name}:{record.line + 1}: the first line, which says what the columns are,"
    if record.what:
        raise InputError(f"{where} is malformed: {record.what}; the line is {record.text[:120]!r}")
    try:
        text = record.text.decode("utf-8")
        if "\0" in text:
            raise InputError(f"{where} has a NUL byte; is it CSV?")
        return _fields(text, records)
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} is {record.text[error.start]:#04x}"
        raise InputError(f"{where} is not UTF-8 text: {byte}; convert the file to UTF-8") from None
    except csv.Error as error:
        raise InputError(f"{where} cannot be read: {error}") from None


def _numbered(rows: bytes, records: Records) -> list[str]:
    """The names of columns without a header: as many numbers as the first row has fields."""
    first = b"".join(record.text for record in records.of(rows, len(rows), most=1))
    return [str(number) for number in range(len(_fields(first.decode("latin-1"), records)))]


def _fields(text: str, records: Records) -> list[str]:
    return next(csv.reader([text], delimiter=records.separator, strict=True), [])


def _require_same_header(source: Source, block: Block, layout: Layout) -> None:
    _require_first(source, not block.overlong, layout.records)
    row = _header(source, layout.records.of(block.buffer, block.size, most=1)[0], layout.records)
    if row != layout.columns:
        raise InputError(
            f"{source.name} has the columns {', '.join(row[:20])}; expected {', '.join(layout.columns[:20])}"
        )


def _values(rows: bytes, columns: list[str], records: Records) -> dict[str, Any]:
    """The values of the columns that are not missing, as bytes, from records with as many fields as columns."""
    import pyarrow
    from pyarrow import compute
    from pyarrow import csv as reader

    if not rows or not columns:
        return {}
    table = reader.read_csv(
        pyarrow.BufferReader(rows),
        reader.ReadOptions(use_threads=False, column_names=columns, block_size=1 << 30),
        _dialect(records, invalid_row_handler=lambda row: "skip"),
        reader.ConvertOptions(column_types=dict.fromkeys(columns, pyarrow.binary())),
    )
    missing = pyarrow.array(MISSING, pyarrow.binary())
    there = (column.filter(compute.invert(compute.is_in(column, missing))) for column in table.columns)
    return dict(zip(columns, there, strict=True)) if table.num_rows else {}


def _kind(name: str, there: Any, roles: Roles, pyarrow: Any) -> Any:
    """The kind of a column: that of most of its values. Values of another kind are malformed."""
    if name == roles.id or name in roles.text or name in roles.categorical:
        return pyarrow.string()
    if name == roles.weight:
        return pyarrow.float64()
    if name not in (roles.label, roles.time) and not roles.is_feature(name):
        return None
    from pyarrow import compute

    def mostly(form: str) -> bool:
        return bool(2 * compute.sum(compute.match_substring_regex(there, form)).as_py() > len(there))

    number = len(there) == 0 or mostly(NUMBER)
    return pyarrow.float64() if number else pyarrow.bool_() if mostly(TRUTH) else pyarrow.string()


# -- rows -------------------------------------------------------------------------------------------------------------


def _parse(layout: Layout, block: Block) -> None:
    """Add the rows and the malformed lines to the block."""
    header = int(block.header)
    begin = 0
    if header:
        first = layout.records.of(block.buffer, block.size, most=2)
        begin = first[1].begin if len(first) > 1 else block.size
    data = memoryview(block.buffer)[begin : block.size]
    found = cache(lambda: layout.records.of(block.buffer, block.size)[header:])
    chunk = _accepted(layout, data, block.cut.records - header) if block.cut.well_quoted else None
    bad: list[BadLine] = []
    if chunk is None:
        chunk, bad = _sieved(layout, found())
    block.chunk, block.bad, block.lines = chunk, bad, block.cut.lines
    refused = {each.line for each in bad}
    rows = cache(lambda: [record for record in found() if record.line not in refused])
    block.line_of = lambda row: (rows()[row].line, rows()[row].text)


def _accepted(layout: Layout, data: Any, records: int) -> Chunk | None:
    """So many records as rows; None where one of them is malformed."""
    import pyarrow

    if records == 0:
        empty = {name: pyarrow.array([], kind) for name, kind in layout.kinds.items()}
        return rows_of(pyarrow.table(empty), layout.roles)
    if not layout.columns or b"\0" in bytes(data):
        return None
    try:
        table = layout.table(data)
        if table.num_rows != records:
            return None
        chunk = rows_of(table, layout.roles)
        if not finite(chunk):
            return None
        if chunk.y.dtype.kind == "f" and bool(np.any(np.abs(chunk.y) >= EXACT)):
            label = layout.table(data, {layout.roles.label: pyarrow.string()}).column(0)
            chunk = replace(chunk, y=_exactly(label.to_pylist()))
    except pyarrow.ArrowInvalid:
        return None
    return chunk


def _exactly(texts: Sequence[str | None]) -> NDArray[Any]:
    """Labels some of which are beyond 2**53, where a double is not exact: whole numbers stay whole numbers."""
    return exact([int(text) if text and WHOLE.fullmatch(text) else text and float(text) for text in texts])


def _sieved(layout: Layout, found: list[Record]) -> tuple[Chunk, list[BadLine]]:
    """The valid rows of a block, and what is wrong with the other records."""
    good: list[Record] = []
    bad: list[BadLine] = []
    refused = dict(_refused(layout, [record for record in found if not record.what]))
    for record in found:
        what = record.what or refused.get(record)
        if what is None:
            good.append(record)
        else:
            bad.append(BadLine(len(good), record.line, 0, record.text, what))
    chunk = _accepted(layout, _joined(good), len(good))
    if chunk is None:
        raise InputError("some rows of CSV can be read alone, but not together; please report the file as a bug")
    return chunk, bad


def _joined(records: list[Record]) -> bytes:
    return b"".join(record.text + b"\n" for record in records)


def _refused(layout: Layout, records: list[Record]) -> Iterator[tuple[Record, str]]:
    """The records that Arrow refuses, and why."""
    if not records or _accepted(layout, _joined(records), len(records)) is not None:
        return
    if len(records) <= FEW:
        wrong = {record: what for record in records if (what := _wrong(layout, record.text))}
        if wrong:
            yield from wrong.items()
            yield from _refused(layout, [record for record in records if record not in wrong])
            return
        if len(records) == 1:
            yield records[0], "it cannot be read as a row"
            return
    half = len(records) // 2
    yield from _refused(layout, records[:half])
    yield from _refused(layout, records[half:])


def _wrong(layout: Layout, raw: bytes) -> str | None:
    """What is wrong with a record, if anything can be found: Arrow does not say which record it refuses."""
    if b"\0" in raw:
        return "a NUL byte"
    try:
        record = _fields(raw.decode("utf-8", "surrogateescape"), layout.records)
    except csv.Error:  # a very long field
        return None
    if len(record) != len(layout.columns):
        return f"expected {len(layout.columns)} columns, got {len(record)}"
    for name, value in zip(layout.columns, record, strict=True):
        kind = layout.kinds.get(name)
        what = None if kind is None or value in MISSING else _wrong_value(name, value, str(kind), layout)
        if what:
            return what
    return None


def _wrong_value(name: str, value: str, kind: str, layout: Layout) -> str | None:
    if STRANGE.search(value):
        return f"column {name!r} is not UTF-8 text"
    if kind == "string" or (kind == "bool" and value in TRUTHS):
        return None
    if kind == "bool" or not NUMBERS.fullmatch(value):
        if name in layout.unseen:
            what = "has no value in the first rows, and must then be a number or be named in categorical="
            return f"column {name!r} {what}, got {value[:80]!r}"
        form = "true or false" if kind == "bool" else "a number"
        return f"column {name!r} must be {form}, as in the rows before, got {value[:80]!r}"
    if math.isinf(number := float(value.partition("(")[0])):
        return f"column {name!r} must be a finite number, got {value[:80]!r}"
    if name == layout.roles.weight and number < 0:
        return f"the weight in column {name!r} must be >= 0, got {value[:80]!r}"
    return None
