"""Where a stream's bytes come from: files plain or compressed, pipes, files that grow; and their format."""

from __future__ import annotations

import glob
import io
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from .. import _native
from ..errors import InputError, LineError, ParameterError

__all__ = ["FORMATS", "Block", "Cut", "Lines", "Sizes", "Source", "blocks", "detect", "shorten", "sources_of"]

FORMATS = ("vw", "svmlight", "csv", "tsv", "jsonl", "parquet", "arrow")
SUFFIXES = {
    ".vw": "vw", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".csv": "csv", ".tsv": "tsv",
    ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow",
    ".ipc": "arrow",
}  # fmt: skip
COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
# What is no text: how it begins, what it is, what to do.
BINARY = (
    (b"PK\x03\x04", "a zip archive (or an .xlsx, .npz)", "unpack it, or save the table as CSV"),
    (b"BZh", "compressed by bzip2", "unpack it; .gz and .zst are read as they are"),
    (b"\xfd7zXZ", "compressed by xz", "unpack it; .gz and .zst are read as they are"),
    (b"\xff\xfe", "UTF-16 text", "convert it to UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "convert it to UTF-8"),
    (b"\x93NUMPY", "a NumPy array", "op.prequential and partial_fit take arrays"),
    (b"SQLite format 3", "an SQLite database", "export a table as CSV"),
)
MARK = b"\xef\xbb\xbf"  # of a byte order, before UTF-8 text
CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b")) + b"\x7f"
SVMLIGHT = re.compile(rb"\s*[-+.\d][-+.\deE]*(\s+(qid|\d+):\S+)*\s*(#.*)?\r?")


@dataclass
class Source:
    """One input: a path, or an open binary file."""

    name: str
    file: IO[bytes] | None = None
    _once: Ahead | None = None  # an opened pipe of which only the first bytes were peeked at

    @property
    def reopens(self) -> bool:
        """Can it be read from the beginning again?"""
        return self.file is None and self.name not in ("-", "<stdin>")

    def beginning(self, size: int) -> bytes:
        """The first bytes, decompressed, without using them up."""
        file = self.open()
        try:
            return file.peek(size)
        except (OSError, EOFError) as error:
            raise InputError(f"cannot read {self.name}: {error}") from error
        finally:
            if self.reopens:
                file.close()

    def random_access(self) -> Any:
        """A file one can seek in: what Parquet and Arrow need."""
        file = self.open()
        if self.reopens and file.plain:
            file.close()
            return open(self.name, "rb")
        try:
            return io.BytesIO(file.read())
        finally:
            if self.reopens:
                file.close()

    def open(self) -> Ahead:
        """Its bytes, decompressed."""
        if self.reopens:
            return self._open()
        if self._once is None:
            self._once = self._open()
        return self._once

    def _open(self) -> Ahead:
        raw = self.file
        if raw is None:
            if self.name == "-":
                raw, self.name = sys.stdin.buffer, "<stdin>"
            else:
                try:
                    raw = open(self.name, "rb", buffering=0)
                except OSError as error:
                    raise InputError(f"cannot read {self.name}: {error.strerror}") from error
        try:
            ahead = Ahead(raw)
            kind = next((kind for magic, kind in COMPRESSED.items() if ahead.peek(4).startswith(magic)), None)
        except OSError as error:
            raise InputError(f"cannot read {self.name}: {error.strerror or error}") from error
        return ahead if kind is None else Ahead(_decompressed(ahead, kind), under=ahead)


class Ahead:
    """A binary file with `peek`: the first bytes, before they are read."""

    def __init__(self, file: Any, under: Ahead | None = None) -> None:
        self.file = file
        self.under = under  # the compressed file
        self.plain = under is None  # not compressed: offsets are those of the file, and it can be read from any of them
        self._ahead = b""

    def peek(self, size: int) -> bytes:
        while len(self._ahead) < size:
            more = self.file.read(size - len(self._ahead))
            if not more:
                break
            self._ahead += bytes(more)
        return self._ahead[:size]

    def readinto(self, view: memoryview) -> int:
        if self._ahead:
            part, self._ahead = self._ahead[: len(view)], self._ahead[len(view) :]
            view[: len(part)] = part
            return len(part)
        return self.file.readinto(view) or 0

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            rest, self._ahead = self._ahead, b""
            return rest + bytes(self.file.read())
        part = self._ahead[:size]
        self._ahead = self._ahead[size:]
        return part if len(part) == size else part + bytes(self.file.read(size - len(part)))

    def resume(self, offset: int, name: str) -> None:
        """Go on at a byte where a line begins: behind the end of another, or of a last one that was not ended."""
        where = f"the position to resume from is byte {offset:,} of {name}"
        if offset == len(MARK) and self.peek(offset) == MARK:
            self.read(offset)
            return
        try:
            self.skip(offset - 1)
            before = self.read(1)
        except EOFError:
            before = None
        if before is None or (not before and self.plain and self._behind_end()):
            raise InputError(f"{where}, which is behind its end; give the same file")
        if before not in (b"", b"\n", b"\r"):
            raise InputError(f"{where}, where no line begins; give the same file, unchanged or with more lines")

    def _behind_end(self) -> bool:
        """Was a place sought that the file does not have?"""
        if not self._seeks():
            return False
        at = self.file.seek(0, os.SEEK_CUR)
        end = self.file.seek(0, os.SEEK_END)
        self.file.seek(at)
        return bool(at > end)

    def _seeks(self) -> bool:
        try:
            return bool(self.file.seekable())
        except (OSError, AttributeError):
            return False  # a pipe

    def skip(self, size: int) -> None:
        """Go on `size` bytes further: by seeking where one can, else by reading. EOFError where there are fewer."""
        if self.plain and self._seeks():
            self.file.seek(size - len(self._ahead), os.SEEK_CUR)
            self._ahead = b""
            return
        while size > 0:
            part = self.read(min(size, 1 << 20))
            if not part:
                raise EOFError
            size -= len(part)

    def close(self) -> None:
        if self.file is not sys.stdin.buffer:
            self.file.close()
        if self.under is not None:
            self.under.close()

    # What gzip and pyarrow ask of a file.
    closed = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def _decompressed(file: Ahead, kind: str) -> Any:
    if kind == "gzip":
        import gzip

        return gzip.GzipFile(fileobj=file, mode="rb")  # type: ignore[call-overload]
    import pyarrow

    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, "r"), "zstd")


def sources_of(given: Any) -> list[Source]:
    """Paths, a glob, a list of them, "-" or an open binary file, as sources."""
    if hasattr(given, "read"):
        if isinstance(given, io.TextIOBase):
            raise ParameterError("a stream reads bytes: open the file with 'rb'")
        name = getattr(given, "name", None)
        return [Source(str(name) if isinstance(name, str) else "<file>", given)]
    if isinstance(given, (str, os.PathLike)):
        path = os.fspath(given)
        if path != "-" and not os.path.exists(path) and any(mark in path for mark in "*?["):
            found = sorted(glob.glob(path, recursive=True))
            if not found:
                raise InputError(f"no file matches {path}")
            return [Source(each) for each in found]
        return [Source(path)]
    return [source for each in given for source in sources_of(each)]


def detect(source: Source) -> str:
    """The format of a source, by its name or else by its first bytes."""
    stem, suffix = os.path.splitext(source.name.lower())
    if suffix in (".gz", ".zst", ".zstd"):
        suffix = os.path.splitext(stem)[1]
    first = source.beginning(1 << 12) if SUFFIXES.get(suffix, "csv") in ("csv", "tsv") else b""
    if suffix in SUFFIXES:
        _require_text(source.name, first.split(b"\n", 1)[0])  # the names of columns; rows are judged one by one
        return SUFFIXES[suffix]
    found = _format_of(first)
    if found not in ("parquet", "arrow"):
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


def _format_of(first: bytes) -> str | None:
    for magic, kind in ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"\xff\xff\xff\xff", "arrow")):
        if first.startswith(magic):
            return kind
    first = first.removeprefix(b"\xef\xbb\xbf")
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
    """A long line, shortened to what is around `at`."""
    start = max(0, min(at - width // 2, len(text) - width))
    part = text[start : start + width].decode("utf-8", "replace")
    return ("…" if start else "") + part + ("…" if start + width < len(text) else "")


@dataclass
class Block:
    """Whole lines of one file, `size` bytes from `offset` on: in `buffer`, which is padded, or left in the file."""

    file: int
    offset: int
    buffer: bytearray
    size: int
    idle: bool = False  # a followed file has nothing new for now
    overlong: int = 0  # instead of lines, one line of so many bytes was left out
    left_in: Any = None  # the TextFile from which the parser reads them
    cut: Cut = field(default_factory=lambda: Cut(0))
    header: bool = False  # does it begin with the names of columns?
    crc: int = 0  # of a line that was left out


@dataclass(frozen=True)
class Cut:
    """What a buffer has before the end of its last whole line, or record. Only records are counted."""

    size: int
    records: int = 0
    lines: int = 0  # physical lines
    well_quoted: bool = True  # is every record so?


class Lines:
    """How text is cut into blocks: behind the end of a line."""

    beyond = 1  # bytes after max_line that show whether a line is longer

    def cut(self, buffer: bytearray | bytes, filled: int, whole: bool) -> Cut:
        """What the buffer has before the end of its last whole line. `whole`: the text ends there."""
        return Cut(buffer.rfind(b"\n", 0, filled) + 1)

    def line_end(self, buffer: bytearray, start: int, filled: int, whole: bool) -> int:
        """The last byte of the first end of a line from `start` on; below 0 where there is none that is whole."""
        return buffer.find(b"\n", start, filled)

    def partial_line_end(self, buffer: bytearray, filled: int, whole: bool) -> int:
        """How many of the last bytes may be the beginning of an end of a line."""
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
        """Of the block at this offset. Only the offset decides, so that a resumed stream reads the same blocks."""
        return self.first if 2 * offset < self.first else self.later


def blocks(
    sources: list[Source], sizes: Sizes, max_line: int, *, file: int = 0, offset: int = 0, follow: bool = False,
    how: Lines | None = None, leave: bool = False, spare: list[bytearray] | None = None, resume_point: Any = None,
) -> Iterator[Block]:  # fmt: skip
    """The sources as blocks of about so many bytes, from `offset` of source number `file` on.

    A line above `max_line` bytes comes as an empty block that says how long it was.
    `how` says where blocks may end: by default after any line.
    `resume_point` (a fingerprint.ResumePoint) tells what was read before; a pipe must begin with the same bytes.
    With `leave`, blocks may be in files still. Buffers that nobody uses any more may be put into `spare`: fresh memory
    costs more than reading into it.
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


def _begin(file: Ahead, name: str, offset: int, resume_point: Any) -> int:
    """Go to `offset`, or behind the byte order mark of a file that is read from the beginning."""
    if resume_point is not None and resume_point.unread:
        resume_point.resume(file, name)
    elif offset:
        file.resume(offset, name)
    elif file.peek(len(MARK)) == MARK:
        file.read(len(MARK))
        return len(MARK)
    return offset


def _left_in_file(file: Ahead, name: str, number: int, sizes: Sizes, offset: int) -> Iterator[Block]:
    """Blocks that the parser itself reads from the file, while line ends are found; `_read_blocks` reads the others."""
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
    file: Ahead, number: int, sizes: Sizes, max_line: int, offset: int, follow: bool, how: Lines,
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
    """Give the last line of the text an end, where it has none; how many bytes there are then."""
    if filled and not how.ends_line(buffer[filled - 1]):
        buffer[filled] = 10
        return filled + 1
    return filled


def _fill(file: Ahead, buffer: bytearray, kept: bytes, capacity: int) -> tuple[int, bool]:
    """How many bytes there are now, after those that were kept; and whether the file has no more."""
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
        """How many bytes of the buffer belong to it. Its end is not before `start`."""
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


def line_error(name: str, line: int, column: int, text: bytes, what: str) -> LineError:
    """`column` in bytes from 0."""
    return LineError(what, name, line, len(text[:column].decode("utf-8", "replace")) + 1, shorten(text, column))
