"""Files that are written: how, and that none of them is read by the same work.

A regular file is replaced whole: at every moment its name is the whole old file or the whole new one, with the
permissions of the old one. A link stays a link, and the file it points to is replaced. Devices, pipes and open
descriptors (``/dev/stdout``, ``/dev/fd/3``) are written to where they stand; a disk's device is refused.
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
LINKS = 40  # that are followed, as the system does


def write(path: str | os.PathLike[str], data: str | bytes) -> None:
    """The file anew, whole or not at all."""
    with replaced(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str], *, special: bool = True) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` when the block ends, and never where it fails.

    special    devices and pipes are written to at once; False: they are refused
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
            # Opened first: a folder that cannot be synced should fail before anything is replaced.
            handle = None if os.name == "nt" else os.open(folder, os.O_RDONLY)
            if handle is not None:
                stack.callback(os.close, handle)
            # Never wider than the file it replaces, not even while it is empty; 0o666 leaves it to the umask.
            wanted = 0o666 if mode is None else mode
            raw = _File(temporary, "xb", where, opener=lambda name, flags: os.open(name, flags, wanted))
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
            if process == os.getpid():  # in a forked child it is still the parent's
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            raise
        if handle is not None:
            with named(where, always=True):
                _sync_folder(handle)


def opened(path: str | os.PathLike[str], mode: str = "wb") -> IO[bytes]:
    """A file that is written to as the work goes on, `mode` "wb" or "ab"; closing it leaves standard output open."""
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
    """Close a file that could not be written, without trying to write the rest of it."""
    with contextlib.suppress(OSError):
        file.raw.close()  # type: ignore[attr-defined]


def _buffered(raw: Any) -> IO[bytes]:
    return io.BufferedWriter(raw, 1 << 16)


class _File(io.FileIO):
    """A file whose errors bear the name that the user gave it."""

    def __init__(self, file: str | int, mode: str, where: str, **how: Any) -> None:
        super().__init__(file, mode, **how)
        self.where, self.written = where, 0

    def write(self, data: Any) -> int:
        with named(self.where):
            written = super().write(data) or 0
        self.written += written
        return written

    def tell(self) -> int:
        return super().tell() if self.seekable() else self.written  # Parquet asks a pipe too


class _Standard(io.RawIOBase):
    """Standard output or error, behind what was printed there; closed, it stays open for others."""

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
    """Errors of writing know no name, or that of a temporary file (`always`): they get this one."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and (always or error.filename is None):
            error.filename, error.filename2 = os.fspath(path), None
        raise


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Nothing that has to be written to where it stands: no device, no pipe, and no descriptor, even of a file."""
    if descriptor_of(path) is not None:
        return False
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True  # nothing there yet; or an error, which opening it will name
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)  # opening a folder says what it is


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
    """Permission bits of the file to be replaced; None where there is none."""
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
        # Some network and FUSE file systems cannot sync a folder; there the rename is all one can do.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            reason = error.strerror or str(error)
            detail = f"the new file is in place but may not survive a power cut ({reason}); save again"
            raise OSError(error.errno, detail) from error


# -- no file is both read and written --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Use:
    said: str  # what names the file to the user: an option, a parameter
    path: str
    written: bool
    keys: frozenset[Any]
    instead_of: tuple[str, ...] = ()
    pattern: str | None = None  # a glob: a new file that it matches would be read by the next look
    implied: bool = False  # standard output: nobody asked for it


class Ledger:
    """What some work reads and writes. Every file comes in before any is opened for writing; one that would be
    overwritten while it is read, or written twice, raises ParameterError. Links and other spellings are seen through.
    """

    def __init__(self) -> None:
        self.uses: list[_Use] = []

    def reads(self, path: Any, said: str) -> None:
        """A path, a glob, or an open file."""
        if hasattr(path, "fileno") or not isinstance(path, str | os.PathLike):
            self._add(_Use(said, str(getattr(path, "name", "<file>")), False, _keys_of_file(path)))
            return
        where = os.fspath(path)
        if not os.path.exists(where) and glob.has_magic(where):
            for each in glob.glob(where, recursive=True):
                self._add(_Use(said, each, False, _keys(each)))
            self._add(_Use(said, where, False, frozenset(), pattern=where))
        else:
            self._add(_Use(said, where, False, _keys_of_descriptor(0) if where == "-" else _keys(where)))

    def writes(self, path: str | os.PathLike[str], said: str, instead_of: Sequence[str] = ()) -> None:
        """`instead_of`: what has been read by the time when this is replaced whole, and so may be the same file."""
        where = os.fspath(path)
        self._add(_Use(said, where, True, _keys(where), tuple(instead_of)))

    def prints(self, number: int, said: str) -> None:
        """Standard output and error, where they are files."""
        keys = frozenset(key for key in _keys_of_descriptor(number) if key[0] == "file")
        self._add(_Use(said, "", True, keys, implied=True))

    def takes_descriptor(self, number: int) -> bool:
        """Is it written to on somebody's wish?"""
        return any(use.written and ("descriptor", number) in use.keys for use in self.uses)

    def _add(self, new: _Use) -> None:
        for old in self.uses:
            if (new.written or old.written) and not _allowed(new, old) and _same(new, old):
                out, other = (new, old) if new.written and not (old.written and new.implied) else (old, new)
                what = "written too" if other.written else "read"
                raise ParameterError(
                    f"{_words(out)} is the same file as {_words(other)}, which is {what}; give {out.said} another name"
                )
        self.uses.append(new)


def _words(use: _Use) -> str:
    return f"{use.said} {use.path}".rstrip()


def _allowed(a: _Use, b: _Use) -> bool:
    for one, other in ((a, b), (b, a)):
        if other.said in one.instead_of and not other.written:
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
    """Would the glob find the file, when it is there?"""
    if "**" in pattern:  # any depth: what stands after it decides
        pattern = os.path.join("*", pattern.rpartition("**")[2].lstrip(os.sep))
        return PurePath(os.path.abspath(path)).match(pattern)
    return PurePath(os.path.abspath(path)).match(os.path.abspath(pattern))


def _keys(path: str) -> frozenset[Any]:
    """What a file is known by, whatever it is called; nothing for devices, which many may share."""
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
    # A terminal is read and printed to at once; what two options print there is mixed.
    return keys | {("descriptor", number)}


def _keys_of_file(file: Any) -> frozenset[Any]:
    """Of an open file or a descriptor."""
    try:
        return _keys_of(os.fstat(file if isinstance(file, int) else file.fileno()))
    except (AttributeError, OSError, TypeError, ValueError):
        return frozenset()  # closed, or in memory
