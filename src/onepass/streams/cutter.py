"""Parsed blocks as chunks of rows, each with the position where it ends; and where malformed lines are written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from ..errors import InputError
from ..persistence import files
from .blocks import Block
from .chunk import Chunk, Position, join

if TYPE_CHECKING:
    from .row_stream import Stream

__all__ = ["Cutter", "Quarantine"]


class Cutter:
    """Cuts the blocks of a stream into chunks of `size` rows; without a size, at the ends of blocks and bad lines."""

    def __init__(self, stream: Stream, size: int | None, quarantine: Quarantine) -> None:
        self.stream, self.size, self.quarantine = stream, size, quarantine
        self.at: Position = stream.start
        self.file, self.line, self.example, self.labels = self.at.file, self.at.line, self.at.example, self.at.labels
        self.row = self.at.skip  # where the stream begins in the block
        self.pieces: list[Chunk] = []  # of the next chunk
        self.held = 0  # rows of them

    def cut(self, block: Block) -> Iterator[Chunk]:
        """The chunks that end in this block."""
        if block.file != self.file:
            self._require_rows()
            self.file, self.line = block.file, 1
        self.labels = block.labels or self.labels
        self.stream.seen.add(block)
        rows = len(block.chunk)
        if self.row > rows:  # the position is of a stream with larger blocks
            self.row, self.line = self.row - rows, self.line + block.lines
            return
        for bad in [bad for bad in block.bad if bad.row >= self.row]:
            yield from self._rows(block, bad.row)
            if self.stream.on_error == "raise":
                yield from self._rest()
            self.stream._report(bad, self.file, self.line, self.quarantine)
        yield from self._rows(block, rows)
        self.line, self.row = self.line + block.lines, 0
        self.at = self._position(block.end, 0)
        if block.idle:
            yield from self._rest(self.at)

    def end(self) -> Iterator[Chunk]:
        """The last rows, at the end of the stream."""
        self._require_rows()
        yield from self._rest(self.at)

    def _rows(self, block: Block, stop: int) -> Iterator[Chunk]:
        """Add the rows up to `stop`; yields each chunk that becomes full."""
        while self.row < stop:
            until = stop if self.size is None else min(stop, self.row + self.size - self.held)
            self.example += until - self.row
            self.at = self._position(block.offset, until)
            self.pieces.append(block.chunk.narrow_part(self.row, until, self.at))
            self.held += until - self.row
            self.row = until
            if self.size is None or self.held == self.size:
                yield from self._rest()

    def _rest(self, position: Position | None = None) -> Iterator[Chunk]:
        """The pieces as a chunk, if there are any. It ends at `position`, by default where the last piece does."""
        if self.pieces:
            chunk = join(self.pieces)
            self.pieces, self.held = [], 0
            yield chunk if position is None else replace(chunk, position=position)

    def _position(self, offset: int, row: int) -> Position:
        return Position(self.file, offset, self.line, row, self.example, self.stream.skipped, self.labels)

    def _require_rows(self) -> None:
        """Refuse a position beyond the end of its file."""
        if self.row:
            raise InputError(
                f"start={self.at}: its file ends {self.row:,} rows before that place; give the same files, unchanged"
            )


class Quarantine:
    """The file for malformed lines; without a path, nothing is written."""

    def __init__(self, path: Any, append: bool) -> None:
        self.path, self.mode = path, "ab" if append else "wb"
        self.file: IO[bytes] | None = None
        self.length = 0  # in bytes, from the beginning of the file

    def __enter__(self) -> Quarantine:
        if self.path is not None:
            if self.mode == "ab" and files.is_regular(self.path) and os.path.exists(self.path):
                self.length = os.path.getsize(self.path)
            self.file = files.opened(self.path, self.mode)
        return self

    def write(self, line: bytes) -> None:
        if self.file is not None:
            try:
                self.file.write(line)
                self.file.flush()
            except OSError:
                files.abandon(self.file)
                raise
            self.length += len(line)

    def __exit__(self, *error: object) -> None:
        if self.file is not None:
            self.file.close()
