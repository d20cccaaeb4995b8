"""Tables as sparse rows, through Arrow: CSV, TSV, Parquet, Arrow IPC.

A number is the feature of its column's name, a string the feature name=value, a missing value or a zero no feature at
all: what a model makes of the same row as a mapping.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError
from .crossing import crossed
from .parts import BadLine, Part, in_order
from .roles import Roles, words
from .sources import Block, Source, count_of

__all__ = ["MISSING", "Coded", "coded_part", "of_arrow", "of_csv"]

MISSING = ["", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "Null"]
SAMPLE = 1 << 20  # bytes of a CSV file that show what kinds its columns hold
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
        what = f"a line of {block.overlong:,} bytes, longer than max_line"
        coded.bad = [BadLine(0, 0, 0, bytes(block.buffer[:200]), what)]
        coded.lines = 1
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


# -- CSV and TSV ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """A CSV file's columns, the kinds that its first rows show, and what each is for."""

    columns: list[str]
    kinds: dict[str, Any]  # of the columns that are read
    roles: Roles
    delimiter: str
    header: bool

    def table(self, data: Any, first: bool) -> Any:
        """Bytes as an Arrow table; raises ArrowInvalid at anything unexpected."""
        from pyarrow import csv as reader

        return reader.read_csv(
            data,
            reader.ReadOptions(
                use_threads=False, column_names=self.columns, skip_rows=int(first and self.header), block_size=1 << 30
            ),
            reader.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            reader.ConvertOptions(
                column_types=self.kinds, include_columns=list(self.kinds), null_values=MISSING, strings_can_be_null=True
            ),
        )


def layout(source: Source, stream: Any) -> Layout:
    """Read the beginning of a CSV source, without using it up."""
    import pyarrow

    first = source.beginning(SAMPLE).removeprefix(b"\xef\xbb\xbf")
    delimiter = "\t" if stream.format == "tsv" else ","
    text = first[: first.rfind(b"\n") + 1 or len(first)].decode("utf-8", "replace").replace("\0", "")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    row = next(rows, [])
    header = stream.header
    columns = row if header is True else [str(i) for i in range(len(row))] if header is False else list(header)
    if len(set(columns)) != len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise InputError(f"{source.name}: two columns are called {twice!r}; give names with header=[…]")
    roles = Roles.of(stream).settle(columns, source.name) if columns else Roles(label=False)
    sample = [row for row in rows if len(row) == len(columns)] + ([row] if header is not True else [])
    values = dict(zip(columns, zip(*sample, strict=True), strict=True)) if sample else {name: () for name in columns}
    kinds = {name: _kind(name, values[name], roles, pyarrow) for name in columns}
    return Layout(columns, {name: kind for name, kind in kinds.items() if kind}, roles, delimiter, header is True)


NUMBER = r"^\s*-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
WHOLE = r"^\s*-?\d{1,18}\s*$"
TRUTH = r"^(?i:true|false)$"


def _kind(name: str, values: Sequence[str], roles: Roles, pyarrow: Any) -> Any:
    """What a column holds: what most of its values look like; a value that does not is then malformed."""
    if name == roles.id or name in roles.text or name in roles.categorical:
        return pyarrow.string()
    if name == roles.weight:
        return pyarrow.float64()
    if name not in (roles.label, roles.time) and not roles.is_feature(name):
        return None
    from pyarrow import compute

    column = pyarrow.array(values, pyarrow.string())
    there = column.filter(compute.invert(compute.is_in(column, pyarrow.array(MISSING))))

    def matches(form: str) -> NDArray[np.bool_]:
        return np.asarray(compute.match_substring_regex(there, form).to_numpy(zero_copy_only=False), dtype=bool)

    def mostly(form: str) -> bool:
        return 2 * int(np.count_nonzero(matches(form))) > len(there)

    if name == roles.label and mostly(WHOLE) and bool(np.all(matches(WHOLE) | ~matches(NUMBER))):
        return pyarrow.int64()
    number = len(there) == 0 or mostly(NUMBER)
    return pyarrow.float64() if number else pyarrow.bool_() if mostly(TRUTH) else pyarrow.string()


def of_csv(stream: Any, blocks: Iterator[Block], sources: list[Source], table: Any) -> Iterator[Part]:
    """CSV in blocks of whole records, read on several threads."""
    shape = layout(sources[0], stream)

    def parse(block: Block) -> Coded:
        first = block.offset <= 3
        if first and block.size and shape.header:
            _same_header(sources[block.file], block, shape)
        return _csv_rows(shape, block, first)

    for block, coded in in_order(blocks, parse, stream.threads):
        yield coded_part(coded, stream, table, block)


def _same_header(source: Source, block: Block, shape: Layout) -> None:
    line = bytes(block.buffer[: block.buffer.find(b"\n", 0, block.size)]).decode("utf-8", "replace")
    row = next(csv.reader([line], delimiter=shape.delimiter), [])
    if row != shape.columns:
        raise InputError(
            f"{source.name} has the columns {', '.join(row[:20])}; expected {', '.join(shape.columns[:20])}"
        )


def _csv_rows(shape: Layout, block: Block, first: bool) -> Coded:
    import pyarrow

    data = pyarrow.py_buffer(memoryview(block.buffer)[: block.size])
    bad: list[BadLine] = []
    lines = count_of(b"\n", block.buffer, block.size)
    try:
        if block.buffer.find(b"\0", 0, block.size) >= 0:
            raise pyarrow.ArrowInvalid("NUL")
        table = _read(shape, data, first)
        coded = coded_of(table, shape.roles)
        if not _finite(coded):
            raise pyarrow.ArrowInvalid("infinite")
    except pyarrow.ArrowInvalid:
        good, bad = _sieve(shape, bytes(data), first)
        coded = coded_of(_read(shape, pyarrow.py_buffer(good), False), shape.roles)
    coded.bad, coded.lines = bad, lines
    coded.line_of = lambda row: _line_of(shape, bytes(data), first, {each.line for each in bad}, row)
    return coded


def _line_of(shape: Layout, data: bytes, first: bool, bad: set[int], row: int) -> tuple[int, bytes]:
    """Where a row of a block begins, and its text."""
    physical = data.decode("utf-8", "surrogateescape").split("\n")
    reader = csv.reader((line + "\n" for line in physical[:-1]), delimiter=shape.delimiter)
    begin, rows = 0, -1
    for record in reader:
        header = first and begin == 0 and shape.header
        rows += bool(record) and not header and begin not in bad
        if rows == row:
            break
        begin = reader.line_num
    text = "\n".join(physical[begin : reader.line_num]).encode("utf-8", "surrogateescape")
    return begin, text.rstrip(b"\r")


def _read(shape: Layout, data: Any, first: bool) -> Any:
    import pyarrow

    only_header = first and shape.header and bytes(data).find(b"\n") >= data.size - 1
    if data.size == 0 or only_header:
        return pyarrow.table({name: pyarrow.array([], kind) for name, kind in shape.kinds.items()})
    return shape.table(pyarrow.BufferReader(data), first)


def _finite(coded: Coded) -> bool:
    numbers = [coded.values, *([coded.weight] if coded.weight is not None else [])]
    if coded.y.dtype.kind == "f":
        numbers.append(coded.y[~np.isnan(coded.y)])
    positive = coded.weight is None or bool(np.all(coded.weight >= 0))
    return positive and all(bool(np.all(np.isfinite(each))) for each in numbers)


def _sieve(shape: Layout, data: bytes, first: bool) -> tuple[bytes, list[BadLine]]:
    """A block in which something is wrong, record by record: the good ones, and what is wrong with the others."""
    physical = data.decode("utf-8", "surrogateescape").split("\n")
    reader = csv.reader((line + "\n" for line in physical[:-1]), delimiter=shape.delimiter)
    good: list[str] = []
    bad: list[BadLine] = []
    begin = 0
    while True:
        try:
            record = next(reader)
            what = None
        except StopIteration:
            break
        except csv.Error as error:
            record, what = [], str(error)
        text = "\n".join(physical[begin : reader.line_num])
        if not (first and begin == 0 and shape.header) and (record or what):
            what = what or _wrong(shape, record, text)
            if what is None:
                good.append(text + "\n")
            else:
                raw = text.encode("utf-8", "surrogateescape")
                bad.append(BadLine(len(good), begin, 0, raw.rstrip(b"\r"), what))
        begin = reader.line_num
    return "".join(good).encode("utf-8", "surrogateescape"), bad


def _wrong(shape: Layout, record: list[str], text: str) -> str | None:
    """What is wrong with a record, if anything."""
    import pyarrow
    from pyarrow import compute

    if "\0" in text:
        return "a NUL byte"
    if any("\udc80" <= c <= "\udcff" for c in text):
        return "not UTF-8 text"
    if len(record) != len(shape.columns):
        return f"expected {len(shape.columns)} columns, got {len(record)}"
    for name, value in zip(shape.columns, record, strict=True):
        kind = shape.kinds.get(name)
        if kind is None or value in MISSING:
            continue
        if pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind) or pyarrow.types.is_boolean(kind):
            try:
                number = compute.cast(pyarrow.array([value.strip(" \t")]), kind)[0].as_py()
            except pyarrow.ArrowInvalid:
                return f"column {name!r} must be a number, as in the rows before, got {value[:80]!r}"
            if abs(float(number)) == float("inf"):
                return f"column {name!r} must be a finite number, got {value[:80]!r}"
            if name == shape.roles.weight and number < 0:
                return f"the weight in column {name!r} must be >= 0, got {value[:80]!r}"
    return None


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
    if types.is_integer(column.type) or types.is_floating(column.type):
        return np.ascontiguousarray(column.to_numpy())
    if types.is_null(column.type):
        return np.full(len(column), np.nan)
    values = column.to_pylist()
    if types.is_boolean(column.type) and None not in values:
        return np.array(values, dtype=bool)
    strings = values and None not in values and isinstance(values[0], str)
    return np.array(values) if strings else np.array(values, dtype=object)


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
            if not _finite(coded):
                coded = _finite_rows(batch, roles, coded)
            yield coded_part(coded, stream, table, Block(number, at - len(batch), bytearray(), len(batch)))
        if at < skip:
            raise InputError(
                f"{source.name} has {at:,} rows, and the position to resume from is behind {skip:,} of them"
            )


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
