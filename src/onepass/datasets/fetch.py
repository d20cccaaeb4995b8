"""Where the files of real sets are: the folder in ONEPASS_DATA, then the user's cache, else the public address of the
set.

A download is written to a temporary file in the same folder, resumed if the connection breaks, checked, and only then
renamed: whatever happens, there is the whole file or none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..errors import DatasetError

__all__ = ["File", "Source", "cache_folder", "download", "find"]

TRIES = 4  # broken connections before giving up
BYTES = 1 << 16
TIMEOUT = 30.0  # seconds without a byte

Progress = Callable[[int, int | None], object]


@dataclass(frozen=True)
class Source:
    """A public file: its address, its checksum, and how our file is made from it (None: it is our file)."""

    url: str
    sha256: str
    make: Callable[[Path, Path], None] | None = None  # called with (downloaded file, file to write)


@dataclass(frozen=True)
class File:
    """A file of a set, in the folder `set`; `source` is None if it cannot be downloaded."""

    set: str
    name: str
    source: Source | None = None
    origin: str = ""


def cache_folder() -> Path:
    """ONEPASS_CACHE, or the platform's folder for caches."""
    own = os.environ.get("ONEPASS_CACHE")
    if own:
        return Path(own)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "onepass" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "onepass"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "onepass"


def find(file: File, progress: Progress | None = None) -> Path:
    """The path of a file, downloaded into the cache if need be."""
    data = os.environ.get("ONEPASS_DATA")
    if data and (Path(data) / file.set / file.name).is_file():
        return Path(data) / file.set / file.name
    cached = cache_folder() / "datasets" / file.set / file.name
    if cached.is_file():
        return cached
    places = f"{cached.parent} (ONEPASS_DATA is not set)"
    if data:
        places = f"{Path(data) / file.set} (from ONEPASS_DATA) nor in {cached.parent}"
    advice = f"Put {file.name} into {cached.parent}, or set ONEPASS_DATA to a folder that has {file.set}/{file.name}."
    if file.source is None:
        raise DatasetError(
            f"the set {file.set!r} is not here: {file.name} is not in {places}, and it has no download. "
            f"It comes from {file.origin or 'elsewhere'}. {advice}"
        )
    import http.client  # imported here: it takes longer than all of `import onepass`

    try:
        _fetch(file.source, cached, progress)
    except (OSError, http.client.HTTPException) as error:
        raise DatasetError(
            f"the set {file.set!r} is not here: {file.name} is not in {places}, and {file.source.url} "
            f"could not be downloaded ({error}). {advice}"
        ) from error
    return cached


def _fetch(source: Source, target: Path, progress: Progress | None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with _temporary(target) as raw:
        download(source.url, raw, source.sha256, progress)
        if source.make is None:
            os.replace(raw, target)
            return
        with _temporary(target) as made:
            source.make(raw, made)
            os.replace(made, target)


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """A new file in the folder of `target`, removed at the end unless it was renamed."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    path = Path(name)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def download(url: str, path: Path, sha256: str, progress: Progress | None = None) -> None:
    """Fetch `url` into `path` and check it. A connection that breaks is resumed where it ended, TRIES times."""
    import http.client
    import urllib.error

    report = progress or _line(url)
    done, last = 0, ""
    with path.open("wb") as out:
        for _ in range(TRIES):
            try:
                done, whole = _receive(url, out, done, report)
            except urllib.error.HTTPError as error:
                error.close()
                raise  # the server's answer will not change
            except (OSError, http.client.HTTPException) as error:
                done, last = out.tell(), str(error) or type(error).__name__
                continue
            if whole:
                break
            last = f"the connection ended after {done:,} bytes"
        else:
            raise OSError(f"{last}, {TRIES} times over")
        out.flush()
        os.fsync(out.fileno())
    got = _sha256(path)
    if got != sha256:
        raise OSError(f"its checksum is {got}, expected {sha256}: it has changed or was damaged on the way")


def _receive(url: str, out: BinaryIO, done: int, report: Progress) -> tuple[int, bool]:
    """Continue from byte `done`; return the number of bytes now, and whether the file is complete."""
    import urllib.request

    headers = {"User-Agent": "onepass", **({"Range": f"bytes={done}-"} if done else {})}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as answer:
        if done and answer.status != 206:  # the server does not support ranges: begin again
            out.seek(0)
            out.truncate()
            done = 0
        length = answer.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        while part := answer.read(BYTES):
            out.write(part)
            done += len(part)
            report(done, total)
    return done, total is None or done >= total


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _line(url: str) -> Progress:
    """Progress on a terminal; silence elsewhere."""
    if not sys.stderr.isatty():
        return lambda done, total: None
    name = url.rpartition("/")[2]

    def show(done: int, total: int | None) -> None:
        of = "" if total is None else f" of {total / 1e6:.1f}"
        end = "\n" if done == total else ""
        sys.stderr.write(f"\r{name}: {done / 1e6:.1f}{of} MB{end}")
        sys.stderr.flush()

    return show
