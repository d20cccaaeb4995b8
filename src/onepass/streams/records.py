"""Where the records of CSV and TSV files begin and end, as native/parse/csv_records.hpp finds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import _native
from .blocks import Cut, Lines, too_long

__all__ = ["Record", "Records"]

KINDS = _native.enums["RecordKind"]  # native/parse/csv_records.hpp


class Record(NamedTuple):
    """`text` begins at byte `begin` and has no line end; `line` counts from 0; `what` is wrong with its quotes."""

    begin: int
    line: int
    text: bytes
    what: str | None


@dataclass(frozen=True)
class Records(Lines):
    """Cuts CSV into blocks of whole records."""

    separator: str
    max_line: int  # bytes of a record

    beyond = 2  # the end of the line

    def cut(self, buffer: bytearray | bytes, filled: int, whole: bool) -> Cut:
        size, records, lines, well_quoted, _ = _native.cut_records(buffer, filled, self.separator, self.max_line, whole)
        return Cut(size, records, lines, well_quoted)

    def line_end(self, buffer: bytearray, start: int, filled: int, whole: bool) -> int:
        newline = buffer.find(b"\n", start, filled)
        carriage = buffer.find(b"\r", start, filled if newline < 0 else newline)
        if carriage < 0 or carriage + 1 == newline:
            return newline
        return carriage if carriage + 1 < filled or whole else -1

    def partial_line_end(self, buffer: bytearray, filled: int, whole: bool) -> int:
        return int(filled > 0 and not whole and buffer[filled - 1] == 13)

    def lines_within(self, buffer: bytearray, size: int) -> int:
        return _native.count_line_ends(buffer, size)

    def ends_line(self, byte: int) -> bool:
        return byte in (10, 13)

    def of(self, data: Any, size: int, whole: bool = True, most: int = 1 << 62) -> list[Record]:
        """The first `most` records of some bytes that begin with one."""
        listed = _native.list_records(data, size, self.separator, self.max_line, whole, most)
        view = memoryview(data)
        records = []
        for begin, end, line, place in zip(*(each.tolist() for each in listed), strict=True):
            kind = KINDS[place]
            what = None if kind == "row" else self._wrong(kind, view, begin, end, size)
            shown = min(end, begin + 200) if kind == "too_long" else end
            records.append(Record(begin, line, bytes(view[begin:shown]), what))
        return records

    def _wrong(self, kind: str, view: memoryview, begin: int, end: int, size: int) -> str:
        if kind == "text_after_quote":
            return "text after the quote that closes a field; inside quotes, a quote must be doubled"
        if kind == "open_quote":
            return "a quote opens a field, and none closes it before the next separator or end of a line"
        carriage = bytes(view[end : min(end + 2, size)]) == b"\r\n"
        return too_long(end - begin + carriage)
