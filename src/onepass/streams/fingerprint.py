"""How much of every source was read, and a checksum of it, so that a resumed stream is known to be the same.

Checksums are CRC-32C of the decompressed text, from its beginning up to the end of the last row. Those of blocks are
computed where blocks are parsed, and joined here, so that they do not depend on how the text is cut.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .. import _native
from ..errors import InputError
from .blocks import Block
from .chunk import Position
from .formats import FORMATS, MARK
from .sources import PeekableFile, Source

__all__ = ["Extent", "ReadExtents", "ResumePoint", "require_unchanged"]

Extent = list[int] | None  # bytes read from the beginning, and their checksum; None: unknown
PIECE = 1 << 20
BLANKS = b" \t\r\n\v\f"


@dataclass
class ResumePoint:
    """Where a stream is resumed in a file, and how much of that file an earlier run read."""

    offset: int  # in the file, where the stream goes on
    known: Extent = None  # what the earlier run read of it
    crc: int | None = None  # up to `offset`, where the file was read again and compared

    @property
    def unread(self) -> bool:
        """Must the file still be compared with what was read before?"""
        return self.known is not None and self.crc is None

    def resume(self, opened: PeekableFile, name: str) -> None:
        """Read a pipe up to the position. Compare it, and the bytes after it, with what was read before."""
        assert self.known is not None
        length, checksum = self.known
        there, self.crc = _sum(opened, self.offset)
        rest = opened.peek(length - self.offset)[: length - self.offset] if there == self.offset else b""
        there, crc = _ended(there + len(rest), _native.crc32c(rest, self.crc), length)
        if (there, crc) != (length, checksum):
            raise changed(name, there, length)


def require_unchanged(source: Source, known: Extent, offset: int = 0) -> int | None:
    """Raise unless a source still begins with what was read of it. Returns the checksum up to `offset`; None where
    nothing is known, or where the source can be read only once."""
    if known is None or not _read_twice(source):
        return None
    length, checksum = known
    opened = source.open()
    try:
        begun, before = _sum(opened, min(offset, length))
        more, crc = _sum(opened, length - begun, before)
    except (OSError, EOFError) as error:
        raise InputError(f"cannot read {source.name}: {error}") from error
    finally:
        opened.close()
    there, crc = _ended(begun + more, crc, length)
    if (there, crc) != (length, checksum):
        raise changed(source.name, there, length)
    return crc if offset > begun else before


def _read_twice(source: Source) -> bool:
    pipe = os.path.exists(source.name) and not os.path.isfile(source.name)  # whatever its name
    return source.reopens and not pipe


def changed(name: str, there: int, length: int) -> InputError:
    what = "has changed where it was read"
    if there < length:
        what = f"has {there:,} bytes, of which {length:,} were read"
    return InputError(
        f"--resume: {name} is not the stream that run read: it {what}; give the same stream, or use --start-from to "
        "begin a new run with its weights"
    )


def _sum(opened: PeekableFile, size: int, crc: int = 0) -> tuple[int, int]:
    """Read up to `size` bytes. Returns how many there were, and the checksum `crc` continued over them."""
    buffer = memoryview(bytearray(min(PIECE, max(size, 1))))
    there = 0
    while there < size:
        got = opened.readinto(buffer[: min(len(buffer), size - there)])
        if got == 0:
            break
        crc = _native.crc32c(buffer[:got], crc)
        there += got
    return there, crc


def _ended(there: int, crc: int, length: int) -> tuple[int, int]:
    """Count the line end that the parser added to a last line without one."""
    return (there, crc) if there + 1 != length else (length, _native.crc32c(b"\n", crc))


class ReadExtents:
    """For each position that a stream gives, how much was read by then, with its checksum."""

    def __init__(
        self, sources: list[Source], format: str, resume_point: ResumePoint | None, file: int, how: Any
    ) -> None:
        self.sources, self.format, self.how = sources, format, how
        self.resume_point, self.file = resume_point, file
        self.ends: dict[int, tuple[int, int]] = {}  # of each file: bytes of the blocks so far, and their checksum
        self.blocks: deque[tuple[Block, int]] = deque(maxlen=4)  # the last ones, and the checksum before each
        self.whole: dict[int, Extent] = {}  # of Parquet and Arrow files, which are not read in the order of their bytes

    def add(self, block: Block) -> None:
        """The next block of the stream, before its rows are used."""
        if block.crc is None:
            return
        if block.file in self.ends:
            before = self.ends[block.file][1]
        elif self.resume_point is not None and block.file == self.file and self.resume_point.offset:
            if self.resume_point.crc is None:
                return
            before = self.resume_point.crc
        else:
            before = _native.crc32c(MARK) if block.offset else 0
        self.blocks.append((block, before))
        end = block.end
        self.ends[block.file] = end, _native.join_crc32c(before, block.crc, block.length)

    def of(self, number: int, at: Position | None) -> Extent:
        """Of a source up to a position, or to the end of what was read."""
        if at is not None and number > at.file:
            return None
        if not FORMATS[self.format].text:
            return self._of_whole(number)
        if at is None or number < at.file:
            return list(self.ends[number]) if number in self.ends else None
        for block, before in self.blocks:
            if (block.file, block.offset) == (at.file, at.offset) and at.skip <= len(block.chunk):
                return self._within(block, before, at.skip)
        end = self.ends.get(number)
        return list(end) if end is not None and end[0] == at.offset else None

    def _of_whole(self, number: int) -> Extent:
        if number not in self.whole:
            source, size, crc = self.sources[number], 0, 0
            if _read_twice(source):
                opened = source.open()
                try:
                    size, crc = _sum(opened, 1 << 62)
                finally:
                    opened.close()
            self.whole[number] = [size, crc] if _read_twice(source) else None
        return self.whole[number]

    def _within(self, block: Block, before: int, rows: int) -> Extent:
        """Up to the end of so many rows of a block."""
        if rows == 0 or block.crc is None:
            return [block.offset, before]
        if rows == len(block.chunk) and all(bad.row < rows for bad in block.bad):
            return [block.end, _native.join_crc32c(before, block.crc, block.length)]
        text = self._text(block)
        if text is None:
            return [block.offset, before]
        end = self._end_of(block, text, rows)
        return [block.offset + end, _native.crc32c(text[:end], before)]

    def _text(self, block: Block) -> bytes | None:
        """The text that a block was parsed from, if it is still available."""
        source = self.sources[block.file]
        text = None
        if block.buffer and block.left_in is None:
            text = bytes(memoryview(block.buffer)[: block.size])
        elif _read_twice(source):
            opened = source.open()
            try:
                if opened.plain:
                    opened.skip(block.offset)
                    text = opened.read(block.length)
            finally:
                opened.close()
            if text is not None and len(text) + 1 == block.length:
                text += b"\n"
        return text if text is not None and _native.crc32c(text) == block.crc else None

    def _end_of(self, block: Block, text: bytes, rows: int) -> int:
        """Where so many rows of a block end. Other lines are malformed, or hold no row."""
        bad = {each.line for each in block.bad}
        ends = _record_ends(self.how, text) if self.how is not None else _line_ends(text, self.format == "svmlight")
        good = [end for line, end in ends if line not in bad]
        header = 0 if self.how is None else max(0, len(good) - len(block.chunk))  # the names of columns
        return good[min(header + rows, len(good)) - 1]


def _line_ends(text: bytes, comments: bool) -> Iterator[tuple[int, int]]:
    """The number of each line that is not blank, and the byte after it."""
    end = 0
    for number, line in enumerate(text.split(b"\n")[:-1]):
        end += len(line) + 1
        held = line.strip(BLANKS)
        if held and not (comments and held.startswith(b"#")):
            yield number, end


def _record_ends(how: Any, text: bytes) -> Iterator[tuple[int, int]]:
    records = how.of(text, len(text))
    ends = [*(record.begin for record in records[1:]), len(text)]
    for record, end in zip(records, ends, strict=True):
        yield record.line, end
