"""Blocks of a source, parsed: what every format gives the stream, which cuts it into chunks."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError
from ..rows.rows import CSR, mark_validated
from .blocks import Block, too_long
from .chunk import COLUMNS, Chunk, Position, whole

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["BadLine", "Part", "in_order", "of_text"]


AHEAD = 1  # blocks parsed ahead, beside one for each thread, so that no thread waits for work


@dataclass
class BadLine:
    """A malformed line, after `row` rows of its part. `line` from 0 in the part, `column` in bytes."""

    row: int
    line: int
    column: int
    text: bytes
    what: str


@dataclass
class Part:
    """Rows of one block: `starts`, `index` and `value` as in a CSR matrix, and their answers (see `Chunk`).

    The block begins at `offset` of source number `file`, is `size` bytes long and has so many `lines`.
    """

    file: int
    offset: int
    size: int
    lines: int
    starts: NDArray[np.int32]
    index: NDArray[np.int32]
    value: NDArray[Any]
    y: NDArray[Any]
    weight: NDArray[np.float64] | None = None
    id: NDArray[Any] | None = None
    time: NDArray[Any] | None = None
    base: NDArray[np.float64] | None = None
    query: NDArray[np.int64] | None = None
    bad: list[BadLine] = field(default_factory=list)
    idle: bool = False
    table: Any = None
    hash_bits: int | None = None
    labels: str = ""  # what they are, by the end of this part: see Position
    crc: int | None = None  # of its text; None where it is not of lines
    text: Any = None  # the block that it was parsed from, until the next part is taken
    validated: bool = False  # are the rows validated?

    def __len__(self) -> int:
        return len(self.y)

    def cut(self, a: int, b: int, position: Position) -> Chunk:
        """Rows a to b − 1, which end at that position."""
        low, high = self.starts[a], self.starts[b]
        index = self.index[low:high]
        width = 1 << self.hash_bits if self.hash_bits is not None else int(index.max()) + 1 if len(index) else 0
        starts = self.starts[a : b + 1] - low if low else self.starts[a : b + 1]
        X = CSR(starts, index, self.value[low:high], (b - a, width), True, self.table, self.hash_bits)
        if self.validated:
            mark_validated(X)
        columns: dict[str, Any] = {
            name: None if (column := getattr(self, name)) is None else column[a:b] for name in COLUMNS
        }
        columns["y"] = whole(self.y[a:b])
        return Chunk(X=X, position=position, **columns)


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads of all streams, which never end: the garbage collector closes a stream that is dropped, in any
    thread and at any moment, and waiting for threads there could deadlock."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(64, thread_name_prefix="onepass-parse")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def in_this_process(parts: Iterator[Part]) -> Iterator[Part]:
    """The parts; in a forked child, whose threads are gone and whose files are its parent's, none but an error."""
    process = os.getpid()
    for part in parts:
        yield part
        if process != os.getpid():
            raise InputError("a stream that was begun does not go on in a forked process: begin it there")


def in_order(blocks: Iterable[Any], parse: Callable[[Any], Any], threads: int) -> Iterator[tuple[Any, Any]]:
    """Each block with what `parse` makes of it, in order; at most `threads` of them are parsed ahead."""
    if threads == 1:
        for block in blocks:
            yield block, parse(block)
        return
    process = os.getpid()
    waiting: deque[tuple[Any, Future[Any]]] = deque()
    try:
        for block in blocks:
            waiting.append((block, _pool().submit(parse, block)))
            while waiting and (len(waiting) > threads or getattr(block, "idle", False)):
                ready, future = waiting.popleft()
                yield ready, future.result()
        while waiting:
            ready, future = waiting.popleft()
            yield ready, future.result()
    finally:
        for _, future in waiting if process == os.getpid() else ():
            future.cancel()


@dataclass(frozen=True)
class Parsing:
    """How text becomes rows: `names` is the stream's growing table of names; without one, every block has its own.

    Where features are hashes there is a table only if the names are to be kept.
    """

    format: str
    hash_bits: int | None
    names: Any
    base: int
    keep_going: bool
    max_line: int
    expansion: Any = None
    sets: bool = False  # is a label a set of numbers?

    def parser(self, threads: int) -> Any:
        bits = -1 if self.hash_bits is None else self.hash_bits
        how = (self.base, self.keep_going, self.expansion, threads, self.sets, self.max_line)
        return _native.Parser(self.format, bits, *how)

    def table(self) -> Any:
        """Where the names of the next block go."""
        own = self.names is None and self.hash_bits is None and self.format != "svmlight"
        return _native.Names() if own else self.names


def of_text(blocks: Iterable[Block], parsing: Parsing, threads: int, spare: list[bytearray]) -> Iterator[Part]:
    """VW and svmlight text, parsed natively, some blocks ahead. Buffers that were parsed go to `spare`."""
    parser = parsing.parser(threads)
    waiting: deque[tuple[Block, Any]] = deque()

    def first() -> Part:
        rows = parser.take()
        block, names = waiting.popleft()
        if names is not None:
            rows.assign_columns(names)
        part = _text_part(block, rows, names, parsing)
        if block.size and block.left_in is None:
            spare.append(block.buffer)
        return part

    try:
        for block in blocks:
            names = parsing.table()
            parser.submit(block.left_in or block.buffer, block.offset, block.size, names)
            waiting.append((block, names))
            while waiting and (len(waiting) > (threads + AHEAD if threads > 1 else 0) or block.idle):
                yield first()
        while waiting:
            yield first()
    finally:
        parser.close()


def _text_part(block: Block, rows: Any, names: Any, parsing: Parsing) -> Part:
    tags = rows.tags
    bad = [BadLine(*each) for each in rows.bad]
    if block.overlong:
        bad = [BadLine(0, 0, 0, bytes(block.buffer[: -_native.PADDING]), too_long(block.overlong))]
    return Part(
        block.file,
        block.offset,
        block.size or (block.overlong and block.overlong + 1),
        rows.lines + bool(block.overlong),
        rows.starts,
        rows.index,
        rows.value,
        _sets(rows) if parsing.sets else rows.label,
        weight=rows.weight,
        id=None if tags is None else np.array([tag or None for tag in tags], dtype=object),
        base=rows.base,
        query=rows.query,
        bad=bad,
        idle=block.idle,
        table=names if parsing.hash_bits is None else None,
        hash_bits=parsing.hash_bits,
        crc=block.crc if block.overlong else rows.crc,
        text=block,
        validated=True,  # by the native parser
    )


def _sets(rows: Any) -> NDArray[Any]:
    """Labels that are sets, as tuples; None where there is no label."""
    y = np.empty(len(rows.label), dtype=object)
    members, start = whole(rows.members).tolist(), 0
    for row, size in enumerate(rows.label.tolist()):
        if size == size:
            y[row] = tuple(members[start : start + int(size)])
            start += int(size)
    return y
