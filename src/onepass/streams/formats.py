"""The formats that streams read: suffixes, first bytes and reader of each; and how the format of a file is found."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from .blocks import Block
    from .row_stream import Stream
    from .sources import Source

__all__ = ["COMPRESSED", "COMPRESSED_SUFFIXES", "FORMATS", "MARK", "Format", "detect", "format_of_name", "shorten"]


@dataclass(frozen=True)
class Format:
    """How files of a format are recognised and read.

    `read` takes a stream and its table of feature names (None if there is none), and yields blocks with their rows.
    `text` formats consist of lines, so that their files can be cut into blocks of lines, and a position in them is a
    place in bytes. In the others a position is a number of rows.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Stream, Any], Iterator[Block]]
    text: bool = True
    begins: tuple[bytes, ...] = ()  # the first bytes of its files, where they are always the same


# A module of a format is imported when the first file of that format is read: most programs read one format.


def read_sparse_text(stream: Stream, names: Any) -> Iterator[Block]:
    """VW and svmlight."""
    from .text import of_text

    return of_text(stream, names)


def read_delimited(stream: Stream, names: Any) -> Iterator[Block]:
    """CSV and TSV."""
    from .delimited import of_csv

    return of_csv(stream, names)


def read_json_lines(stream: Stream, names: Any) -> Iterator[Block]:
    from .jsonl import of_jsonl

    return of_jsonl(stream, names)


def read_columns(stream: Stream, names: Any) -> Iterator[Block]:
    """Binary tables, which Arrow reads: `BATCHES` in `arrow.py` has a function for each of these formats."""
    from .arrow import of_arrow

    return of_arrow(stream, names)


FORMATS = {
    each.name: each
    for each in (
        Format("vw", (".vw",), read_sparse_text),
        Format("svmlight", (".svm", ".svmlight", ".libsvm"), read_sparse_text),
        Format("csv", (".csv",), read_delimited),
        Format("tsv", (".tsv", ".tab"), read_delimited),
        Format("jsonl", (".jsonl", ".ndjson"), read_json_lines),
        Format("parquet", (".parquet",), read_columns, text=False, begins=(b"PAR1",)),
        Format(
            "arrow", (".arrow", ".feather", ".ipc"), read_columns, text=False, begins=(b"ARROW1", b"\xff\xff\xff\xff")
        ),
    )
}
COMPRESSED_SUFFIXES = (".gz", ".zst", ".zstd")
COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
# Data that is not text: its first bytes, what it is, what to do.
BINARY = (
    (b"PK\x03\x04", "a zip archive (or an .xlsx, .npz)", "unpack it, or save the table as CSV"),
    (b"BZh", "compressed by bzip2", "unpack it; .gz and .zst are read as they are"),
    (b"\xfd7zXZ", "compressed by xz", "unpack it; .gz and .zst are read as they are"),
    (b"\xff\xfe", "UTF-16 text", "convert it to UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "convert it to UTF-8"),
    (b"\x93NUMPY", "a NumPy array", "op.prequential and partial_fit take arrays"),
    (b"SQLite format 3", "an SQLite database", "export a table as CSV"),
)
MARK = b"\xef\xbb\xbf"  # the byte order mark, which may stand before UTF-8 text
CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b")) + b"\x7f"
SVMLIGHT = re.compile(rb"\s*[-+.\d][-+.\deE]*(\s+(qid|\d+):\S+)*\s*(#.*)?\r?")


def format_of_name(name: str) -> Format | None:
    """The format that belongs to a file's name, compressed or not."""
    stem, suffix = os.path.splitext(name.lower())
    if suffix in COMPRESSED_SUFFIXES:
        suffix = os.path.splitext(stem)[1]
    return next((each for each in FORMATS.values() if suffix in each.suffixes), None)


def detect(source: Source) -> str:
    """The format of a source, by its name or else by its first bytes."""
    named = format_of_name(source.name)
    if named is not None:
        if named.name in ("csv", "tsv"):  # the names of columns must be text; rows are checked later
            _require_text(source.name, source.beginning(1 << 12).split(b"\n", 1)[0])
        return named.name
    first = source.beginning(1 << 12)
    found = _format_of_bytes(first)
    if found is None or FORMATS[found].text:
        _require_text(source.name, first)
    if found is None:
        line = shorten(first.split(b"\n", 1)[0])
        begins = f"it begins {line!r}" if first else "it is empty"
        raise InputError(f"{source.name}: cannot tell its format, {begins}; say format= one of {', '.join(FORMATS)}")
    return found


def _require_text(name: str, first: bytes) -> None:
    """Refuse binary data: text has no NUL and at most a few control characters at its beginning."""
    for magic, what, remedy in BINARY:
        if first.startswith(magic):
            raise InputError(f"{name} is {what}; {remedy}")
    strange = len(first) - len(first.translate(None, CONTROLS))
    if b"\0" in first or 20 * strange > len(first):
        at = next(i for i, byte in enumerate(first) if byte in CONTROLS)
        raise InputError(
            f"{name} is a binary file, not text: byte {at + 1:,} is {first[at]:#04x}. Text (vw, svmlight, csv, tsv, "
            "jsonl), Parquet and Arrow are read; say format= if it is text all the same"
        )


def _format_of_bytes(first: bytes) -> str | None:
    for each in FORMATS.values():
        if each.begins and first.startswith(each.begins):
            return each.name
    first = first.removeprefix(MARK)
    line = next((line for line in re.split(rb"[\r\n]", first) if line.strip()), b"")
    if line.lstrip().startswith(b"{"):
        return "jsonl"
    if SVMLIGHT.fullmatch(line) or line.startswith(b"#"):
        return "svmlight"
    if b"|" in line and b"," not in line.split(b"|", 1)[0]:
        return "vw"
    if b"\t" in line:
        return "tsv"
    return "csv" if b"," in line else None


def shorten(text: bytes, at: int = 0, width: int = 120) -> str:
    """A line, shortened to the text around `at`."""
    start = max(0, min(at - width // 2, len(text) - width))
    part = text[start : start + width].decode("utf-8", "replace")
    return ("…" if start else "") + part + ("…" if start + width < len(text) else "")
