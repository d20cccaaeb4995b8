"""Sources as blocks: whole lines, or whole records, that are parsed together; and what was parsed from them."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .. import _native
from ..errors import InputError
from .chunk import Chunk
from .formats import MARK
from .sources import PeekableFile, Source

__all__ = ["BadLine", "Block", "Cut", "Lines", "Sizes", "blocks", "too_long"]


@dataclass
class BadLine:
    """A malformed line, after `row` rows of its block. `line` from 0 in the block, `column` in bytes."""

    row: int
    line: int
    column: int
    text: bytes
    what: str


@dataclass
class Block:
    """Whole lines of one file, `size` bytes from `offset` on: in `buffer`, which is padded, or left in the file.

    In Parquet and Arrow files, rows are counted instead of bytes. The parser of the format adds the rows (`chunk`) and
    the malformed lines; until then there are none.
    """

    file: int
    offset: int
    buffer: bytearray
    size: int
    idle: bool = False  # a followed file has nothing new for now
    overlong: int = 0  # instead of lines, one line of so many bytes was left out
    left_in: Any = None  # the TextFile from which the parser reads the lines
    cut: Cut = field(default_factory=lambda: Cut(0))
    header: bool = False  # does it begin with the names of columns?
    crc: int | None = 0  # of the text; None where there is none
    # Parsed:
    chunk: Chunk = field(default_factory=Chunk.empty)  # all rows, without a position
    bad: list[BadLine] = field(default_factory=list)
    lines: int = 0
    labels: str = ""  # the kind of all labels of the stream, up to the end of the block: see Position
    line_of: Callable[[int], tuple[int, bytes]] = lambda row: (row, b"")  # the line of a row, and its text

    @property
    def length(self) -> int:
        """In bytes, with a line that was left out."""
        return self.size or (self.overlong and self.overlong + 1)

    @property
    def end(self) -> int:
        return self.offset + self.length

    def add_overlong(self) -> None:
        """Add the line that was left out, if any, to the malformed ones."""
        if self.overlong:
            self.bad = [BadLine(0, 0, 0, bytes(self.buffer[: -_native.PADDING]), too_long(self.overlong))]
            self.lines = self.cut.lines


@dataclass(frozen=True)
class Cut:
    """How much of a buffer is whole lines, or records. Lines and records are counted only in CSV."""

    size: int
    records: int = 0
    lines: int = 0  # physical lines
    well_quoted: bool = True  # are the quotes of all records well formed?


class Lines:
    """Cuts text into blocks after the end of a line."""

    beyond = 1  # bytes after max_line that are needed to see whether a line is longer

    def cut(self, buffer: bytearray | bytes, filled: int, whole: bool) -> Cut:
        """The whole lines of the buffer. `whole`: the text ends with it."""
        return Cut(buffer.rfind(b"\n", 0, filled) + 1)

    def line_end(self, buffer: bytearray, start: int, filled: int, whole: bool) -> int:
        """The last byte of the first line end from `start` on; below 0 if there is none, or only a part of one."""
        return buffer.find(b"\n", start, filled)

    def partial_line_end(self, buffer: bytearray, filled: int, whole: bool) -> int:
        """How many of the last bytes may be the beginning of a line end."""
        return 0

    def lines_within(self, buffer: bytearray, size: int) -> int:
        """How many line ends a piece of an overlong line has."""
        return int(size > 0 and buffer[size - 1] == 10)

    def ends_line(self, byte: int) -> bool:
        return byte == 10


@dataclass(frozen=True)
class Sizes:
    """How many bytes blocks have: the `first` of a file, and the `later` ones."""

    first: int
    later: int

    def at(self, offset: int) -> int:
        """The size of a block. It depends on the offset alone, so that a resumed stream reads the same blocks."""
        return self.first if 2 * offset < self.first else self.later


def blocks(
    sources: list[Source], sizes: Sizes, max_line: int, *, file: int = 0, offset: int = 0, follow: bool = False,
    how: Lines | None = None, leave: bool = False, spare: list[bytearray] | None = None, resume_point: Any = None,
) -> Iterator[Block]:  # fmt: skip
    """The sources as blocks of about so many bytes, from `offset` of source number `file` on.

    A line longer than `max_line` bytes becomes an empty block that says how long it is.
    `how` says where blocks may end: by default after any line.
    `resume_point` (a fingerprint.ResumePoint) tells what was read before; a pipe must begin with the same bytes.
    With `leave`, blocks may stay in their files. Buffers that are no longer used may be put into `spare`, to be used
    again: new memory costs more time than reading into it.
    """
    for number in range(file, len(sources)):
        source = sources[number]
        opened = source.open()
        try:
            offset = _begin(opened, source.name, offset, resume_point if number == file else None)
            if leave and source.reopens and opened.plain:
                for block in _left_in_file(opened, source.name, number, sizes, offset):
                    yield block
                    opened.skip(block.size)  # tools that watch the open file (pv -d, long_stream.py) see the progress
                    offset += block.size
            last = number == len(sources) - 1
            reused = [] if spare is None else spare
            yield from _read_blocks(opened, number, sizes, max_line, offset, follow and last, how or Lines(), reused)
        except EOFError as error:
            raise InputError(f"{source.name}: the compressed file is truncated; its end is missing") from error
        except OSError as error:
            raise InputError(f"cannot read {source.name}: {error}") from error
        finally:
            opened.close()
        offset = 0


def _begin(file: PeekableFile, name: str, offset: int, resume_point: Any) -> int:
    """Skip to `offset`, or over the byte order mark of a file that is read from the beginning."""
    if resume_point is not None and resume_point.unread:
        resume_point.resume(file, name)
    elif offset:
        file.resume(offset, name)
    elif file.peek(len(MARK)) == MARK:
        file.read(len(MARK))
        return len(MARK)
    return offset


def _left_in_file(file: PeekableFile, name: str, number: int, sizes: Sizes, offset: int) -> Iterator[Block]:
    """Blocks that the parser itself reads from the file, as long as their line ends are found here."""
    descriptor = file.file.fileno()
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return
    text = _native.TextFile(descriptor, name)
    while True:
        capacity = sizes.at(offset)
        end, cut, looked = offset + capacity, 0, min(1 << 14, capacity)
        while True:  # search for the last line end, in more and more of the block
            tail = os.pread(descriptor, looked, end - looked)
            cut = tail.rfind(b"\n") + 1
            if cut or looked == capacity or len(tail) < looked:
                break
            looked = min(4 * looked, capacity)
        if not cut or len(tail) < looked:
            return
        size = capacity - looked + cut
        yield Block(number, offset, bytearray(), size, left_in=text)
        offset += size


def _read_blocks(
    file: PeekableFile, number: int, sizes: Sizes, max_line: int, offset: int, follow: bool, how: Lines,
    spare: list[bytearray],
) -> Iterator[Block]:  # fmt: skip
    limit = max_line + how.beyond
    capacity, kept = sizes.at(offset), b""
    overlong: _Overlong | None = None
    while True:
        capacity = _room_for(len(kept), capacity, limit)
        buffer = _buffer(capacity + _native.PADDING, spare)
        filled, ended = _fill(file, buffer, kept, capacity)
        whole = ended and not follow
        filled = _end_last_line(buffer, filled, how) if whole else filled
        if overlong is None:
            cut = how.cut(buffer, filled, whole)
            used = cut.size
            if used:
                yield Block(number, offset, buffer, used, cut=cut)
            elif filled >= limit:
                overlong = _Overlong(how, bytes(buffer[:200]))
                used = overlong.take(buffer, limit - 1, filled, whole)
        else:
            used = overlong.take(buffer, 0, filled, whole)
        kept = bytes(memoryview(buffer)[used:filled])
        if overlong is None:
            offset += used
        elif overlong.ended:
            yield overlong.block(number, offset)
            offset += overlong.length + 1
            overlong = None
        wider = not used and filled >= capacity
        capacity = min(2 * capacity, limit) if wider else sizes.at(offset)
        if whole and not kept:
            return
        if ended and follow:
            yield Block(number, offset, buffer, 0, idle=True)
            time.sleep(0.1)


def _room_for(size: int, capacity: int, limit: int) -> int:
    """The capacity, doubled until `size` bytes fit."""
    while capacity < size:
        capacity = min(2 * capacity, limit)
    return capacity


def _end_last_line(buffer: bytearray, filled: int, how: Lines) -> int:
    """Give the last line of the text an end, if it has none. Returns how many bytes there are then."""
    if filled and not how.ends_line(buffer[filled - 1]):
        buffer[filled] = 10
        return filled + 1
    return filled


def _fill(file: PeekableFile, buffer: bytearray, kept: bytes, capacity: int) -> tuple[int, bool]:
    """Fill the buffer after the bytes that were kept. Returns how many bytes it has, and whether the file has ended."""
    buffer[: len(kept)] = kept
    filled = len(kept)
    view = memoryview(buffer)
    while filled < capacity:
        got = file.readinto(view[filled:capacity])
        if got == 0:
            return filled, True
        filled += got
    return filled, False


class _Overlong:
    """A line longer than max_line, of which only the beginning is kept."""

    def __init__(self, how: Lines, beginning: bytes) -> None:
        self.how, self.beginning = how, beginning
        self.length = 0  # up to the last byte of its end
        self.lines = 0
        self.crc = 0
        self.ended = False

    def take(self, buffer: bytearray, start: int, filled: int, whole: bool) -> int:
        """Take the bytes of the buffer that belong to the line, and return how many. Its end is not before `start`."""
        end = self.how.line_end(buffer, start, filled, whole)
        used = end + 1 if end >= 0 else filled - self.how.partial_line_end(buffer, filled, whole)
        self.ended = end >= 0 or whole
        self.length += used - (end >= 0)
        self.lines += self.how.lines_within(buffer, used)
        self.crc = _native.crc32c(memoryview(buffer)[:used], self.crc)
        return used

    def block(self, number: int, offset: int) -> Block:
        text = bytearray(self.beginning + bytes(_native.PADDING))
        return Block(number, offset, text, 0, overlong=self.length, cut=Cut(0, 1, max(1, self.lines)), crc=self.crc)


def _buffer(length: int, spare: list[bytearray]) -> bytearray:
    while spare:
        buffer = spare.pop()
        if len(buffer) == length:
            return buffer
    return bytearray(length)


def too_long(length: int) -> str:
    return f"a line of {length:,} bytes, longer than max_line"
