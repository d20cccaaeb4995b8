"""Parsed rows in a file of our own, read by mapping it into memory.

    magic · version · length and text of a JSON key · records · a closing record

A record is a JSON head (lengths and kinds of its arrays, what else its part holds) and the arrays, each from a multiple
of 8 bytes on, under a checksum. A file without its closing record was not finished and is never used; it is written
under another name and renamed at the end. The key has the sources' sizes and times and the options that shape rows:
where it differs, the sources are parsed again and the cache is replaced.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import IO, Any

import numpy as np

from .. import _native, hashing
from ..errors import DamagedFileError, InputError, ParameterError
from .chunk import COLUMNS, Position
from .parts import BadLine, Part

__all__ = ["cached"]

MAGIC = b"onepass rows\n\0\0\0"
VERSION = 2
RUN = 1 << 23  # bytes that are checked at a time
HEAD = struct.Struct("<QQQ")  # length of the JSON head, of the arrays, checksum of both
ARRAYS = ("starts", "index", "value", *COLUMNS)
SHAPING = (
    "format", "label", "weight", "id", "time", "features", "drop", "text", "categorical", "ngram", "interactions",
    "hash_bits", "keep_names", "multilabel", "base", "header", "on_error", "block_size", "max_line",
)  # fmt: skip


def cached(stream: Any, parts: Iterator[Part], table: Any) -> Iterator[Part]:
    """The parts from the cache; or parsed, and the cache written on the way."""
    path = os.fspath(stream.cache)
    key = _key(stream)
    reader = _Reader.open(path, key)
    if reader is not None:
        return reader.parts(table, stream.start)
    if stream.start != Position():
        return parts  # from the middle on: not the whole that a cache holds
    return _writing(path, key, parts, table)


def _key(stream: Any) -> str:
    sources = []
    for source in stream.sources:
        if not source.reopens:
            raise ParameterError("cache= needs files with a name, not a pipe or an open file")
        try:
            status = os.stat(source.name)
        except OSError as error:
            raise InputError(f"cannot read {source.name}: {error.strerror}") from error
        sources.append([os.path.abspath(source.name), status.st_size, status.st_mtime_ns])
    options = {name: getattr(stream, name) for name in SHAPING} | hashing.record(stream.hash_bits)
    return json.dumps({"sources": sources, "options": options}, default=list, sort_keys=True)


def _padded(length: int) -> int:
    return -(-length // 8) * 8


def _writing(path: str, key: str, parts: Iterator[Part], table: Any) -> Iterator[Part]:
    unfinished = f"{path}.{os.getpid()}.unfinished"
    known = 0
    try:
        with open(unfinished, "wb") as file:
            text = key.encode()
            file.write(MAGIC + struct.pack("<QQ", VERSION, len(text)) + text.ljust(_padded(len(text))))
            for part in parts:
                names = [] if table is None else table.names(known, len(table))
                known += len(names)
                _write_record(file, part, names)
                yield part
            _write(file, {"end": True}, [])
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)


def _write_record(file: IO[bytes], part: Part, names: list[str]) -> None:
    head: dict[str, Any] = {"names": names, "arrays": {}, "objects": {}}
    head |= {name: getattr(part, name) for name in ("file", "offset", "size", "lines", "hash_bits")}
    head["bad"] = [{**asdict(bad), "text": bad.text.decode("latin-1")} for bad in part.bad]
    arrays = []
    for name in ARRAYS:
        array = getattr(part, name)
        if array is None:
            continue
        if array.dtype.kind in "OU":
            head["objects"][name] = array.tolist()
            continue
        if name == "value":
            narrow = array.astype(np.float32)
            array = narrow if np.array_equal(narrow, array) else array  # half the size where nothing is lost
        head["arrays"][name] = [array.dtype.str, len(array)]
        arrays.append(array)
    _write(file, head, arrays)


def _write(file: IO[bytes], head: dict[str, Any], arrays: list[Any]) -> None:
    text = json.dumps(head).encode()
    body = [text.ljust(_padded(len(text)))]
    body += [array.tobytes().ljust(_padded(array.nbytes), b"\0") for array in arrays]
    whole = b"".join(body)
    file.write(HEAD.pack(len(text), len(whole) - len(body[0]), _native.checksum(whole)) + whole)


class _Reader:
    """A cache file that is whole and whose key fits."""

    def __init__(self, path: str, mapped: mmap.mmap, start: int) -> None:
        self.path, self.mapped, self.data, self.start = path, mapped, memoryview(mapped), start
        self.given_back = 0

    @classmethod
    def open(cls, path: str, key: str) -> _Reader | None:
        try:
            with open(path, "rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (FileNotFoundError, ValueError):  # an empty file cannot be mapped
            return None
        except OSError as error:
            raise InputError(f"cannot read the cache {path}: {error.strerror}") from error
        if data[: len(MAGIC)] != MAGIC:
            raise InputError(f"{path} is not a cache of rows; name another file, or remove it")
        if len(data) < len(MAGIC) + 16:
            return None
        version, length = struct.unpack_from("<QQ", data, len(MAGIC))
        begin = len(MAGIC) + 16
        if version != VERSION or data[begin : begin + length] != key.encode():
            return None
        return cls(path, data, begin + _padded(length))

    def parts(self, table: Any, start: Position) -> Iterator[Part]:
        columns = np.empty(0, dtype=np.int32)  # of the cache's names in this stream's table
        met = start == Position()
        for head, arrays in self._records():
            if table is not None and head["names"]:
                columns = np.concatenate([columns, np.array(table.intern(head["names"]), dtype=np.int32)])
            met = met or (head["file"], head["offset"]) == (start.file, start.offset)
            if not met:
                continue
            hashed = head["hash_bits"] is not None
            if table is not None and not hashed and not np.array_equal(columns, np.arange(len(columns))):
                arrays["index"] = columns[arrays["index"]]
            places = {name: head[name] for name in ("file", "offset", "size", "lines", "hash_bits")}
            bad = [BadLine(**{**each, "text": each["text"].encode("latin-1")}) for each in head["bad"]]
            yield Part(**places, **arrays, bad=bad, table=None if hashed else table)
        if not met and start.skip:
            raise InputError(f"start={start} is not a position in the cache {self.path}; remove the cache")

    def _records(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        with ThreadPoolExecutor(1) as ahead:  # reads and checks records while those before them are learned
            coming = ahead.submit(self._checked_run, self.start)
            while True:
                records = coming.result()
                last, _, end = records[-1]
                if not last.get("end"):
                    coming = ahead.submit(self._checked_run, end)
                for head, at, _ in records:
                    if head.get("end"):
                        return
                    arrays: dict[str, Any] = {name: _objects(values) for name, values in head["objects"].items()}
                    for name, (kind, count) in head["arrays"].items():
                        arrays[name] = np.frombuffer(self.data, dtype=kind, count=count, offset=at)
                        at += _padded(arrays[name].nbytes)
                    yield head, arrays
                self._give_back(end)

    def _give_back(self, end: int) -> None:
        """What was read need not count as this process's memory: whoever still looks at it finds it in the file."""
        end -= end % mmap.PAGESIZE
        if hasattr(mmap, "MADV_DONTNEED") and end > self.given_back:
            self.mapped.madvise(mmap.MADV_DONTNEED, self.given_back, end - self.given_back)
            self.given_back = end

    def _checked_run(self, at: int) -> list[tuple[dict[str, Any], int, int]]:
        """The next records of about RUN bytes: two threads that wait for each other at every one would lose more than
        checking costs."""
        records: list[tuple[dict[str, Any], int, int]] = []
        until = at + RUN
        while at < until and not (records and records[-1][0].get("end")):
            records.append(self._checked(at))
            at = records[-1][2]
        return records

    def _checked(self, at: int) -> tuple[dict[str, Any], int, int]:
        """The head of a record that is whole, where its arrays begin, and where it ends."""
        if at + HEAD.size > len(self.data):
            raise self._damaged()
        length, body, checksum = HEAD.unpack_from(self.data, at)
        at += HEAD.size
        end = at + _padded(length) + body
        if end > len(self.data) or _native.checksum(self.data[at:end]) != checksum:
            raise self._damaged()
        return json.loads(bytes(self.data[at : at + length])), at + _padded(length), end

    def _damaged(self) -> DamagedFileError:
        return DamagedFileError(f"the cache {self.path} is damaged; remove it, and it is made again")


def _objects(values: list[Any]) -> Any:
    if any(isinstance(value, list) for value in values):  # sets of labels
        sets = np.empty(len(values), dtype=object)
        sets[:] = [None if value is None else tuple(value) for value in values]
        return sets
    plain = values and all(isinstance(value, str) for value in values)
    return np.array(values) if plain else np.array(values, dtype=object)
