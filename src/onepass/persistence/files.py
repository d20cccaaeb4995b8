"""Safe writing of files, and a check that no file is both read and written.

A regular file is replaced atomically: at every moment its name refers to the whole old file or the whole new one, with
the permissions of the old one. A link stays a link; the file that it points to is replaced. Devices, pipes and open
descriptors (``/dev/stdout``, ``/dev/fd/3``) are written to directly; a disk device is refused.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import io
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO, Any

from ..errors import ParameterError

__all__ = ["Ledger", "abandon", "descriptor_of", "is_regular", "named", "opened", "replaced", "write"]

STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
LINKS = 40  # symbolic links followed at most, as in Linux


def write(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Replace a file, completely or not at all."""
    with replaced(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str], *, special: bool = True) -> Iterator[IO[bytes]]:
    """A file to write to, which replaces `path` when the block ends without an error.

    special    write to devices and pipes directly; False: refuse them
    """
    where = os.fspath(path)
    if special and not is_regular(where):
        file = opened(where)
        try:
            yield file
        except BaseException:
            abandon(file)
            raise
        file.close()
        return
    target = os.path.realpath(where)
    folder = os.path.dirname(target)
    temporary, process = os.path.join(folder, f".onepass-{os.urandom(8).hex()}.tmp"), os.getpid()
    with contextlib.ExitStack() as stack:
        with named(where, always=True):
            mode = _mode_of(where)
            # Opened first: a folder that cannot be opened for sync should fail before anything is replaced.
            handle = None if os.name == "nt" else os.open(folder, os.O_RDONLY)
            if handle is not None:
                stack.callback(os.close, handle)
            # Never more permissions than the file it replaces, even while empty; with 0o666 the umask decides.
            permissions = 0o666 if mode is None else mode
            raw = _File(temporary, "xb", where, opener=lambda name, flags: os.open(name, flags, permissions))
        file = _buffered(raw)
        try:
            if mode is not None and hasattr(os, "fchmod"):
                with contextlib.suppress(OSError):  # some file systems have no permission bits
                    os.fchmod(file.fileno(), mode)
            yield file
            with named(where, always=True):
                file.flush()
                os.fsync(file.fileno())
                file.close()
                os.replace(temporary, target)
        except BaseException:  # KeyboardInterrupt too must leave nothing behind
            abandon(file)
            if process == os.getpid():  # a forked child must leave the parent's file
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            raise
        if handle is not None:
            with named(where, always=True):
                _sync_folder(handle)


def opened(path: str | os.PathLike[str], mode: str = "wb") -> IO[bytes]:
    """A file written to directly, `mode` "wb" or "ab"; closing it leaves standard output open."""
    where = os.fspath(path)
    number = descriptor_of(where)
    if number in (1, 2):
        return _buffered(_Standard(number))
    if number is not None:
        with named(where):
            return _buffered(_File(os.dup(number), mode, where))
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISBLK(os.stat(where).st_mode):
            raise OSError(errno.EINVAL, "expected a file, found a disk", where)
    return _buffered(_File(where, mode, where))


def abandon(file: IO[bytes]) -> None:
    """Close a file that could not be written, without flushing its buffer."""
    with contextlib.suppress(OSError):
        file.raw.close()  # type: ignore[attr-defined]


def _buffered(raw: Any) -> IO[bytes]:
    return io.BufferedWriter(raw, 1 << 16)


class _File(io.FileIO):
    """A file whose errors contain the name that the user gave."""

    def __init__(self, file: str | int, mode: str, where: str, **how: Any) -> None:
        super().__init__(file, mode, **how)
        self.where, self.written = where, 0

    def write(self, data: Any) -> int:
        with named(self.where):
            written = super().write(data) or 0
        self.written += written
        return written

    def tell(self) -> int:
        return super().tell() if self.seekable() else self.written  # Parquet calls it for a pipe too


class _Standard(io.RawIOBase):
    """Standard output or error, after flushing what was printed; closing it leaves the stream open."""

    def __init__(self, number: int) -> None:
        self.stream, self.where = (sys.stdout, "standard output") if number == 1 else (sys.stderr, "standard error")
        self.written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with named(self.where):
            self.stream.flush()
            buffer = getattr(self.stream, "buffer", None)  # a notebook's has none
            if buffer is None:
                self.stream.write(bytes(data).decode("utf-8", "replace"))
            else:
                buffer.write(data)
            self.stream.flush()
        self.written += len(data)
        return len(data)

    def tell(self) -> int:
        return self.written


@contextlib.contextmanager
def named(path: str | os.PathLike[str], *, always: bool = False) -> Iterator[None]:
    """Put this name into errors of writing that have no name; `always`: or that of a temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and (always or error.filename is None):
            error.filename, error.filename2 = os.fspath(path), None
        raise


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Can the path be replaced? Not a device, a pipe or a descriptor, even of a file."""
    if descriptor_of(path) is not None:
        return False
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True  # the file does not exist yet, or there is an error, which opening it will report
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)  # opening a folder raises a clear error


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """The open descriptor that a path such as /dev/stdout names, maybe through links; None for other paths."""
    where = os.fspath(path)
    for _ in range(LINKS):
        if where in STANDARD:
            return STANDARD[where]
        folder, name = os.path.split(os.path.abspath(where))
        folder = os.path.realpath(folder)
        if name.isdecimal() and folder in ("/dev/fd", os.path.realpath("/dev/fd"), f"/proc/{os.getpid()}/fd"):
            return int(name)
        where = os.path.join(folder, name)
        if where not in STANDARD:
            try:
                where = os.path.join(folder, os.readlink(where))
            except OSError:
                return None
    return None


def _mode_of(path: str) -> int | None:
    """Permission bits of the file to be replaced; None where there is no file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "expected a file name, found a directory")
    if not is_regular(path):
        # Renaming over /dev/stdout or a pipe would replace the device itself.
        raise OSError(errno.EINVAL, "expected a regular file, found a device, pipe or socket")
    return stat.S_IMODE(status.st_mode) & 0o777


def _sync_folder(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network and FUSE file systems cannot sync a folder; there the rename is the best possible.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            reason = error.strerror or str(error)
            detail = f"the new file is in place but may not survive a power cut ({reason}); save again"
            raise OSError(error.errno, detail) from error


# -- no file is both read and written --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Use:
    source: str  # where the user gave the file: an option, a parameter
    path: str
    written: bool
    keys: frozenset[Any]
    instead_of: tuple[str, ...] = ()
    pattern: str | None = None  # a glob: a new file that it matches would be read later
    implied: bool = False  # standard output, which the user did not name


class Ledger:
    """The files that a job reads and writes, registered before any is opened for writing.

    A file that would be overwritten while it is read, or written twice, raises ParameterError. Links and different
    spellings of a path are resolved.
    """

    def __init__(self) -> None:
        self.uses: list[_Use] = []

    def reads(self, path: Any, source: str) -> None:
        """A path, a glob, or an open file."""
        if hasattr(path, "fileno") or not isinstance(path, str | os.PathLike):
            self._add(_Use(source, str(getattr(path, "name", "<file>")), False, _keys_of_file(path)))
            return
        where = os.fspath(path)
        if not os.path.exists(where) and glob.has_magic(where):
            for each in glob.glob(where, recursive=True):
                self._add(_Use(source, each, False, _keys(each)))
            self._add(_Use(source, where, False, frozenset(), pattern=where))
        else:
            self._add(_Use(source, where, False, _keys_of_descriptor(0) if where == "-" else _keys(where)))

    def writes(self, path: str | os.PathLike[str], source: str, instead_of: Sequence[str] = ()) -> None:
        """`instead_of`: inputs that are read completely before this file is replaced, and so may be the same file."""
        where = os.fspath(path)
        self._add(_Use(source, where, True, _keys(where), tuple(instead_of)))

    def prints(self, number: int, source: str) -> None:
        """Register standard output or error, where it is a file."""
        keys = frozenset(key for key in _keys_of_descriptor(number) if key[0] == "file")
        self._add(_Use(source, "", True, keys, implied=True))

    def takes_descriptor(self, number: int) -> bool:
        """Did the user name this descriptor as an output?"""
        return any(use.written and ("descriptor", number) in use.keys for use in self.uses)

    def _add(self, new: _Use) -> None:
        for old in self.uses:
            if (new.written or old.written) and not _allowed(new, old) and _same(new, old):
                out, other = (new, old) if new.written and not (old.written and new.implied) else (old, new)
                what = "written too" if other.written else "read"
                raise ParameterError(
                    f"{_words(out)} is the same file as {_words(other)}, which is {what}; "
                    f"give {out.source} another name"
                )
        self.uses.append(new)


def _words(use: _Use) -> str:
    return f"{use.source} {use.path}".rstrip()


def _allowed(a: _Use, b: _Use) -> bool:
    for one, other in ((a, b), (b, a)):
        if other.source in one.instead_of and not other.written:
            return True
        if one.implied and (other.implied or (other.written and any(key[0] == "descriptor" for key in other.keys))):
            return True
    return False


def _same(a: _Use, b: _Use) -> bool:
    if a.keys & b.keys:
        return True
    return any(
        one.pattern is not None and any(key[0] == "new" for key in other.keys) and _matches(other.path, one.pattern)
        for one, other in ((a, b), (b, a))
    )


def _matches(path: str, pattern: str) -> bool:
    """Would the glob find the file, once it exists?"""
    if "**" in pattern:  # any depth: the part after ** decides
        pattern = os.path.join("*", pattern.rpartition("**")[2].lstrip(os.sep))
        return PurePath(os.path.abspath(path)).match(pattern)
    return PurePath(os.path.abspath(path)).match(os.path.abspath(pattern))


def _keys(path: str) -> frozenset[Any]:
    """The identity of a file, whatever its name; empty for devices, which several jobs may share."""
    number = descriptor_of(path)
    if number is not None:
        return _keys_of_descriptor(number)
    try:
        return _keys_of(os.stat(path))
    except OSError:
        folder, name = os.path.split(os.path.realpath(path))
        try:
            status = os.stat(folder)
        except OSError:
            return frozenset({("new", folder, name)})
        return frozenset({("new", status.st_dev, status.st_ino, name)})


def _keys_of(status: os.stat_result) -> frozenset[Any]:
    if stat.S_ISCHR(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        return frozenset()
    if stat.S_ISBLK(status.st_mode):
        return frozenset({("disk", status.st_rdev)})
    return frozenset({("file", status.st_dev, status.st_ino)})


def _keys_of_descriptor(number: int) -> frozenset[Any]:
    stream = {0: sys.stdin, 1: sys.stdout, 2: sys.stderr}.get(number, number)
    keys = _keys_of_file(stream)
    # Two options that print to one descriptor would mix their output.
    return keys | {("descriptor", number)}


def _keys_of_file(file: Any) -> frozenset[Any]:
    """The identity of an open file or a descriptor."""
    try:
        return _keys_of(os.fstat(file if isinstance(file, int) else file.fileno()))
    except (AttributeError, OSError, TypeError, ValueError):
        return frozenset()  # closed, or in memory
