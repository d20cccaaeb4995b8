"""Blocks of a source, parsed: what every format gives the stream, which cuts it into chunks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _native
from ..datasets import CSR
from .chunk import Chunk, Position, whole
from .sources import Block

__all__ = ["BadLine", "Part", "in_order", "of_text"]


@dataclass
class BadLine:
    """A line that was not understood, after `row` rows of its part. `line` from 0 in the part, `column` in bytes."""

    row: int
    line: int
    column: int
    text: bytes
    what: str


@dataclass
class Part:
    """Rows of one block. `place` is where the block begins (file, offset); `lines` how many it has."""

    file: int
    offset: int
    rows: int
    cut: Callable[[int, int, Position], Chunk]  # the rows from … to …, which end at that position
    lines: int = 0
    size: int = 0
    bad: list[BadLine] = field(default_factory=list)
    idle: bool = False


def in_order(blocks: Iterable[Any], parse: Callable[[Any], Any], threads: int) -> Iterator[tuple[Any, Any]]:
    """Each block with what `parse` makes of it, in order; parsed ahead by as many threads, and no more than that."""
    if threads == 1:
        for block in blocks:
            yield block, parse(block)
        return
    waiting: deque[tuple[Any, Future[Any]]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="onepass-parse")
    try:
        for block in blocks:
            waiting.append((block, pool.submit(parse, block)))
            while waiting and (len(waiting) > threads + 1 or getattr(block, "idle", False)):
                ready, future = waiting.popleft()
                yield ready, future.result()
        while waiting:
            ready, future = waiting.popleft()
            yield ready, future.result()
    finally:
        for _, future in waiting:
            future.cancel()
        pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True)
class Parsing:
    """How text becomes rows: `names` is the stream's growing table of names; without one, every block has its own."""

    format: str
    hash_bits: int | None
    names: Any
    base: int
    keep_going: bool

    def __call__(self, block: Block) -> tuple[Any, Any]:
        """The rows, and the table their columns are of."""
        bits, names = -1 if self.hash_bits is None else self.hash_bits, self.names
        if names is None and bits < 0 and self.format != "svmlight":
            names = _native.Names()
        return _native.parse(self.format, block.buffer, block.size, bits, names, self.base, self.keep_going), names


def of_text(blocks: Iterable[Block], parsing: Parsing, threads: int) -> Iterator[Part]:
    """VW and svmlight text, parsed natively."""
    for block, (rows, names) in in_order(blocks, parsing, threads):
        if names is not None:
            rows.settle(names)
        yield _text_part(block, rows, names, parsing)


def _text_part(block: Block, rows: Any, names: Any, parsing: Parsing) -> Part:
    starts, index, value, label = rows.starts, rows.index, rows.value, rows.label
    weight, base, query, tags = rows.weight, rows.base, rows.query, rows.tags
    tags = None if tags is None else np.array([tag or None for tag in tags], dtype=object)
    fixed = None if parsing.hash_bits is None else 1 << parsing.hash_bits

    def cut(a: int, b: int, position: Position) -> Chunk:
        low, high = starts[a], starts[b]
        indices = index[low:high]
        columns = fixed or (int(indices.max()) + 1 if len(indices) else 0)
        X = CSR(
            starts[a : b + 1] - low if low else starts[: b + 1], indices, value[low:high], (b - a, columns),
            distinct=True, table=names, hash_bits=parsing.hash_bits,
        )  # fmt: skip
        parts = (None if column is None else column[a:b] for column in (weight, tags, None, base, query))
        return Chunk(X, whole(label[a:b]), *parts, position)

    bad = [
        BadLine(row, line, column, bytes(block.buffer[offset : offset + length]), what)
        for row, line, offset, length, column, what in rows.bad
    ]
    return Part(block.file, block.offset, len(rows), cut, rows.lines, block.size, bad, block.idle)
