"""The bytes of a stream: from files, plain or compressed, from pipes, from files that grow."""

from __future__ import annotations

import glob
import io
import os
import sys
from dataclasses import dataclass
from typing import IO, Any

from ..errors import InputError, LineError, ParameterError
from .formats import COMPRESSED, MARK, shorten

__all__ = ["Source", "sources_of"]


@dataclass
class Source:
    """One input: a path, or an open binary file."""

    name: str
    file: IO[bytes] | None = None
    _once: PeekableFile | None = None  # an opened pipe, of which only the first bytes were peeked at

    @property
    def reopens(self) -> bool:
        """Can it be read from the beginning again?"""
        return self.file is None and self.name not in ("-", "<stdin>")

    def beginning(self, size: int) -> bytes:
        """The first bytes, decompressed; they can still be read."""
        file = self.open()
        try:
            return file.peek(size)
        except (OSError, EOFError) as error:
            raise InputError(f"cannot read {self.name}: {error}") from error
        finally:
            if self.reopens:
                file.close()

    def random_access(self) -> Any:
        """A file that can seek, as Parquet and Arrow need."""
        file = self.open()
        if self.reopens and file.plain:
            file.close()
            return open(self.name, "rb")
        try:
            return io.BytesIO(file.read())
        finally:
            if self.reopens:
                file.close()

    def open(self) -> PeekableFile:
        """Its bytes, decompressed."""
        if self.reopens:
            return self._open()
        if self._once is None:
            self._once = self._open()
        return self._once

    def _open(self) -> PeekableFile:
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
            file = PeekableFile(raw)
            kind = next((kind for magic, kind in COMPRESSED.items() if file.peek(4).startswith(magic)), None)
        except OSError as error:
            raise InputError(f"cannot read {self.name}: {error.strerror or error}") from error
        return file if kind is None else PeekableFile(_decompressed(file, kind), under=file)


class PeekableFile:
    """A binary file with `peek`, which returns the next bytes without reading past them."""

    def __init__(self, file: Any, under: PeekableFile | None = None) -> None:
        self.file = file
        self.under = under  # the compressed file
        self.plain = under is None  # not compressed: it can be read from any offset
        self._peeked = b""

    def peek(self, size: int) -> bytes:
        while len(self._peeked) < size:
            more = self.file.read(size - len(self._peeked))
            if not more:
                break
            self._peeked += bytes(more)
        return self._peeked[:size]

    def readinto(self, view: memoryview) -> int:
        if self._peeked:
            part, self._peeked = self._peeked[: len(view)], self._peeked[len(view) :]
            view[: len(part)] = part
            return len(part)
        return self.file.readinto(view) or 0

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            rest, self._peeked = self._peeked, b""
            return rest + bytes(self.file.read())
        part = self._peeked[:size]
        self._peeked = self._peeked[size:]
        return part if len(part) == size else part + bytes(self.file.read(size - len(part)))

    def resume(self, offset: int, name: str) -> None:
        """Skip to a byte where a line begins: after a line end, or after a last line without one."""
        where = f"the position to resume from is byte {offset:,} of {name}"
        if offset == len(MARK) and self.peek(offset) == MARK:
            self.read(offset)
            return
        try:
            self.skip(offset - 1)
            before = self.read(1)
        except EOFError:
            before = None
        if before is None or (not before and self.plain and self._is_beyond_end()):
            raise InputError(f"{where}, which is beyond its end; give the same file")
        if before not in (b"", b"\n", b"\r"):
            raise InputError(f"{where}, where no line begins; give the same file, unchanged or with more lines")

    def _is_beyond_end(self) -> bool:
        """Is the place beyond the end of the file?"""
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
        """Skip `size` bytes: seek if the file can, otherwise read. EOFError if there are fewer."""
        if self.plain and self._seeks():
            self.file.seek(size - len(self._peeked), os.SEEK_CUR)
            self._peeked = b""
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

    # What gzip and pyarrow need of a file.
    closed = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def _decompressed(file: PeekableFile, kind: str) -> Any:
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


def line_error(name: str, line: int, column: int, text: bytes, what: str) -> LineError:
    """The error for a malformed line; `column` in bytes, from 0."""
    return LineError(what, name, line, len(text[:column].decode("utf-8", "replace")) + 1, shorten(text, column))
