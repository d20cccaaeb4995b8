"""VW and svmlight text: native threads parse the blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..rows.rows import mark_validated, stream_rows
from .blocks import BadLine, Block
from .chunk import Chunk, whole

__all__ = ["of_text"]


AHEAD = 1  # blocks parsed ahead beyond one for each thread, so that no thread waits for work


@dataclass(frozen=True)
class Parsing:
    """How text becomes rows. `names` is the stream's growing table of names; without one, every block has its own.

    If features are hashes, there is a table only if the names behind them are wanted.
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
        """The table for the names of the next block."""
        own = self.names is None and self.hash_bits is None and self.format != "svmlight"
        return _native.Names() if own else self.names


def of_text(stream: Any, names: Any) -> Iterator[Block]:
    """VW and svmlight text."""
    keep_going = stream.on_error == "skip"
    how = (stream.base, keep_going, stream.max_line, stream.expansion, stream.multilabel)
    parsing = Parsing(stream.format, stream.hash_bits, names, *how)
    spare: list[bytearray] = []  # buffers that are used again
    return _parsed(stream.blocks(leave=True, spare=spare), parsing, stream.threads, spare)


def _parsed(blocks: Iterable[Block], parsing: Parsing, threads: int, spare: list[bytearray]) -> Iterator[Block]:
    """Parse blocks natively, some of them ahead. Buffers that were parsed go to `spare`."""
    parser = parsing.parser(threads)
    waiting: deque[tuple[Block, Any]] = deque()

    def first() -> Block:
        rows = parser.take()
        block, names = waiting.popleft()
        if names is not None:
            rows.assign_columns(names)
        _add_rows(block, rows, names, parsing)
        if block.size and block.left_in is None:
            spare.append(block.buffer)
        return block

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


def _add_rows(block: Block, rows: Any, names: Any, parsing: Parsing) -> None:
    """Add what the native parser has found to its block."""
    table = names if parsing.hash_bits is None else None
    X = stream_rows(rows.starts, rows.index, rows.value, table, parsing.hash_bits)
    tags = rows.tags
    block.chunk = Chunk(
        mark_validated(X),  # by the native parser
        _sets(rows) if parsing.sets else rows.label,
        weight=rows.weight,
        id=None if tags is None else np.array([tag or None for tag in tags], dtype=object),
        base=rows.base,
        query=rows.query,
    )
    block.bad = [BadLine(*each) for each in rows.bad]
    block.lines = rows.lines
    block.crc = block.crc if block.overlong else rows.crc
    block.add_overlong()


def _sets(rows: Any) -> NDArray[Any]:
    """Labels that are sets, as tuples; None where there is no label."""
    y = np.empty(len(rows.label), dtype=object)
    members, start = whole(rows.members).tolist(), 0
    for row, size in enumerate(rows.label.tolist()):
        if size == size:
            y[row] = tuple(members[start : start + int(size)])
            start += int(size)
    return y
