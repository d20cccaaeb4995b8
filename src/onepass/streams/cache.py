"""The cache: parsed rows in a binary file.

    magic · version · length and text of a JSON key · records · a closing record

A record is the shape of its rows, a JSON head (what else its block holds, lengths and kinds of its other arrays) and
the arrays, each from a multiple of 8 bytes on, under a checksum. A native thread reads records before they are needed
(native/parse/cache_records.hpp) and checks that they are whole and their rows well formed, since the loops do not check
again; each has memory of its own, so that a file that is truncated or overwritten meanwhile is an error.
A file without its closing record was not finished and is never used; it is written under another name and renamed at
the end. The key has the sizes, times and inodes of the sources, and the options that change rows. If it differs, the
sources are parsed again and the cache is replaced.
"""

from __future__ import annotations

import json
import operator
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import pairwise
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import DamagedFileError, InputError, ParameterError
from ..persistence import files
from ..rows import hashing
from ..rows.labels import as_labels, label_array
from ..rows.rows import mark_validated, stream_rows
from .blocks import BadLine, Block
from .chunk import COLUMNS, LABELS, Chunk, Position, whole

__all__ = ["cached"]

MAGIC = b"onepass rows\n\0\0\0"
VERSION = 5
FRONT = struct.Struct("<QQQ")  # length of the JSON head, of the arrays, checksum of all that follows
SHAPE = struct.Struct("<QQQQ")  # starts (0: the closing record), nonzeros, bytes of a value, a bound of the indices
UNBOUNDED = 1 << 31  # of indices that are not names
PLACES = ("file", "offset", "size", "lines")  # of a block in its sources
PLAIN = (str, int, float, bool, type(None))  # what a column of objects holds
COLUMN_KINDS = {"y": "biufO", "weight": "f", "id": "biufMmO", "time": "biufMmO", "base": "f", "query": "i"}  # NumPy's
SHAPING = (
    "format", "label", "weight", "id", "time", "features", "drop", "text", "categorical", "ngram", "interactions",
    "hash_bits", "keep_names", "multilabel", "base", "header", "on_error", "max_line",
)  # fmt: skip


def cached(stream: Any, parsed: Iterator[Block], table: Any) -> Iterator[Block]:
    """The blocks from the cache; or as they are parsed, and then the cache is written."""
    path = os.fspath(stream.cache)
    key = _key(stream)
    reader = _Reader.open(path, key)
    if reader is not None:
        return reader.blocks(stream, table, parsed)
    if stream.start != Position():
        return parsed  # the stream starts in the middle, and a cache holds all of it
    return _write_blocks(path, key, parsed, table, stream)


def _key(stream: Any) -> str:
    sources = []
    for source in stream.sources:
        if not source.reopens:
            raise ParameterError("cache= needs files with a name, not a pipe or an open file")
        try:
            status = os.stat(source.name)
        except OSError as error:
            raise InputError(f"cannot read {source.name}: {error.strerror}") from error
        # The time of the last change of any kind and the inode cannot be set: they tell a file that was written over
        # with as many bytes, or replaced, and given its old time again.
        seen = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        sources.append([os.path.abspath(source.name), *seen])
    options = {name: getattr(stream, name) for name in SHAPING}
    options |= asdict(stream.sizes) | hashing.record(stream.hash_bits)
    return json.dumps({"sources": sources, "options": options}, default=list, sort_keys=True)


def _padded(length: int) -> int:
    return -(-length // 8) * 8


class _SourcesChanged(Exception):
    """The sources changed while their cache was written."""


def _write_blocks(path: str, key: str, parsed: Iterator[Block], table: Any, stream: Any) -> Iterator[Block]:
    known = 0
    text = key.encode()
    with suppress(_SourcesChanged), _naming(path), files.replaced(path, special=False) as file:
        file.write(MAGIC + struct.pack("<QQ", VERSION, len(text)) + text.ljust(_padded(len(text))))
        for block in parsed:
            names = [] if table is None else table.names(known, len(table))
            known += len(names)
            _write_block(file, block, names, _width(stream.hash_bits, None if table is None else known))
            yield block
        _write(file, (0, 0, 0, 0), {}, [])
        if _key(stream) != key:
            raise _SourcesChanged


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Raise an error that names the cache where it cannot be written; errors of other files pass."""
    try:
        yield
    except OSError as error:
        if error.filename != path:
            raise
        raise InputError(f"cannot write the cache {path}: {error.strerror}; name another, or leave it out") from error


def _width(hash_bits: int | None, names: int | None) -> int:
    """The bound of all indices: of hashes of so many bits, of so many names, or of any number."""
    return 1 << hash_bits if hash_bits is not None else UNBOUNDED if names is None else names


def _write_block(file: IO[bytes], block: Block, names: list[str], width: int) -> None:
    X = block.chunk.X
    head: dict[str, Any] = {"names": names, "arrays": {}, "objects": {}, "hash_bits": X.hash_bits}
    head |= {"file": block.file, "offset": block.offset, "size": block.length, "lines": block.lines}
    head |= {"labels": block.labels, "crc": block.crc}
    head["bad"] = [{**asdict(bad), "text": bad.text.decode("latin-1")} for bad in block.bad]
    value: NDArray[Any] = np.asarray(X.data, dtype=np.float64)
    narrow = value.astype(np.float32)
    value = narrow if np.array_equal(narrow, value) else value  # half the size, where float32 holds the values exactly
    arrays = [np.asarray(X.indptr, dtype=np.int32), np.asarray(X.indices, dtype=np.int32), value]
    for name in COLUMNS:
        array = getattr(block.chunk, name)
        if array is None:
            continue
        if name == "y":
            array = whole(array)  # once, not at every reading
        if array.dtype.kind in "OU":
            head["objects"][name] = array.tolist()
        else:
            head["arrays"][name] = [array.dtype.str, len(array)]
            arrays.append(array)
    _write(file, (len(X.indptr), len(value), value.itemsize, width), head, arrays)


def _write(file: IO[bytes], shape: tuple[int, int, int, int], head: dict[str, Any], arrays: list[Any]) -> None:
    text = json.dumps(head).encode()
    body = [SHAPE.pack(*shape), text.ljust(_padded(len(text)))]
    body += [array.tobytes().ljust(_padded(array.nbytes), b"\0") for array in arrays]
    whole = b"".join(body)
    size = len(whole) - len(body[0]) - len(body[1])
    file.write(FRONT.pack(len(text), size, _native.checksum(whole)) + whole)


class _Reader:
    """A cache file with the expected key."""

    def __init__(self, path: str, begin: bytes) -> None:
        self.path, self.begin = path, begin

    @classmethod
    def open(cls, path: str, key: str) -> _Reader | None:
        text = key.encode()
        reader = cls(path, MAGIC + struct.pack("<QQ", VERSION, len(text)) + text.ljust(_padded(len(text))))
        try:
            with open(path, "rb") as file:
                begin = file.read(len(reader.begin))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"cannot read the cache {path}: {error.strerror}") from error
        if begin and begin[: len(MAGIC)] != MAGIC:
            raise InputError(f"{path} is not a cache of rows; name another file, or remove it")
        return reader if begin == reader.begin else None

    def blocks(self, stream: Any, table: Any, parsed: Iterator[Block]) -> Iterator[Block]:
        """From the stream's start on; where that is within a block of the cache, those that are `parsed`."""
        columns = np.empty(0, dtype=np.int32)  # of the cache's names in this stream's table
        hash_bits, start = stream.hash_bits, stream.start
        found = start == Position()
        for width, head, arrays in self._records():
            if table is not None and head["names"]:
                columns = np.concatenate([columns, np.array(table.intern(head["names"]), dtype=np.int32)])
            expected = _width(hash_bits, None if table is None else len(columns))
            if (head["hash_bits"], width) != (hash_bits, expected) or head["file"] >= len(stream.sources):
                raise self._damaged()
            found = found or (head["file"], head["offset"]) == (start.file, start.offset)
            if not found:
                continue
            names = table if hash_bits is None else None
            if names is not None:
                _rename(arrays, columns)
            places = {name: head[name] for name in (*PLACES, "labels", "crc", "bad")}
            X = stream_rows(arrays.pop("starts"), arrays.pop("index"), arrays.pop("value"), names, hash_bits)
            yield Block(**places, buffer=bytearray(), chunk=Chunk(mark_validated(X), **arrays))
        if not found:
            yield from parsed

    def _records(self) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
        """The bound of the indices, the head and the arrays of each."""
        try:
            with open(self.path, "rb") as file:
                if file.read(len(self.begin)) != self.begin:
                    raise self._damaged()
                checked = _native.CacheRecords(file.fileno(), len(self.begin))
        except OSError as error:
            raise InputError(f"cannot read the cache {self.path}: {error.strerror}") from error
        try:
            while (record := checked.take()) is not None:
                if not record:
                    raise self._damaged()
                yield self._read(*record)
        finally:
            checked.close()

    def _read(
        self, data: NDArray[np.uint8], at: int, length: int, starts: int, nonzeros: int, value_bytes: int, width: int
    ) -> tuple[int, dict[str, Any], dict[str, Any]]:
        """Check what the checksum cannot: a forged file may be refused, but must not do harm."""
        try:
            head = _checked(json.loads(data[at : at + length].tobytes()), starts - 1)
            arrays: dict[str, Any] = {
                name: _objects(name, head["objects"][name]) for name in COLUMNS if name in head["objects"]
            }
            kinds: dict[str, tuple[Any, int]] = {
                "starts": ("<i4", starts),
                "index": ("<i4", nonzeros),
                "value": (f"<f{value_bytes}", nonzeros),
            }
            kinds |= {name: _kind(name, *head["arrays"][name]) for name in COLUMNS if name in head["arrays"]}
            at += _padded(length)
            for name, (kind, count) in kinds.items():
                arrays[name] = np.frombuffer(data, dtype=kind, count=count, offset=at)
                at += _padded(arrays[name].nbytes)
            if any(len(arrays[name]) != starts - 1 for name in {"y"} | (arrays.keys() & set(COLUMNS))):
                raise ValueError("columns of other lengths")
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
            raise self._damaged() from error
        return width, head, arrays

    def _damaged(self) -> DamagedFileError:
        return DamagedFileError(
            f"the cache {self.path} is damaged, or was changed while it was read; remove it, and it is made again"
        )


def _rename(arrays: dict[str, Any], columns: NDArray[np.int32]) -> None:
    """Replace the columns that names have in the cache by `columns`, those that they have in the stream."""
    if not np.array_equal(columns, np.arange(len(columns))):
        arrays["index"] = columns[arrays["index"]]
        arrays["index"].flags.writeable = False


def _number(value: Any, low: int, high: int) -> int:
    number = operator.index(value)
    if not low <= number < high:
        raise ValueError(f"{number} is not from {low} to {high - 1}")
    return number


def _checked(head: dict[str, Any], rows: int) -> dict[str, Any]:
    """The head of so many rows, validated."""
    head |= {name: _number(head[name], 0, 1 << 62) for name in PLACES}
    if head["labels"] not in ("", *LABELS):
        raise ValueError("no kind of labels")
    head["crc"] = None if head["crc"] is None else _number(head["crc"], 0, 1 << 32)
    head["names"], head["bad"] = [str(name) for name in head["names"]], [_bad_line(bad, rows) for bad in head["bad"]]
    "".join(head["names"]).encode()  # raises on lone surrogates, which UTF-8 cannot hold
    if any(after.row < before.row for before, after in pairwise(head["bad"])):
        raise ValueError("malformed lines out of order")
    head.setdefault("hash_bits", -1)  # no stream has this number
    return head


def _bad_line(kept: dict[str, Any], rows: int) -> BadLine:
    row = _number(kept["row"], 0, rows + 1)
    line, column = (_number(kept[name], 0, 1 << 62) for name in ("line", "column"))
    return BadLine(row, line, column, kept["text"].encode("latin-1"), str(kept["what"]))


def _kind(name: str, kind: str, count: int) -> tuple[np.dtype[Any], int]:
    """The dtype and the length of a column of numbers, validated."""
    found = np.dtype(kind)
    if found.kind not in COLUMN_KINDS[name] or (found.kind in "iuf" and found.itemsize != 8) or not found.isnative:
        raise ValueError(f"{name} of kind {kind}")
    return found, _number(count, 0, 1 << 62)


def _objects(name: str, values: list[Any]) -> Any:
    """A column of texts, of sets of labels, or of numbers where there is none in some rows."""
    sets = name == "y" and any(isinstance(value, list) for value in values)
    for value in values:
        inside = value if sets and isinstance(value, list) else [value]
        if "O" not in COLUMN_KINDS[name] or not all(isinstance(one, PLAIN) for one in inside):
            raise ValueError(f"{name} of {type(value).__name__}")
    if sets:
        made = np.empty(len(values), dtype=object)
        made[:] = [None if value is None else tuple(value) for value in values]
        return made
    return label_array(values) if values and isinstance(values[0], str) else as_labels(values)
