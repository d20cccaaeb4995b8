"""`load`: a real set as a stream, read from its files as needed."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import DatasetError, ParameterError
from ..metrics.meters import whole
from ..rows.rows import cut, dicts, join, take
from .catalogue import SETS
from .fetch import Progress, find
from .readers import Block, lines

__all__ = ["RealStream", "load"]

DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, ValueError, KeyError, IndexError)


def load(name: str, part: str | None = None, *, raw: bool = False, progress: Progress | None = None) -> RealStream:
    """A real set by its name, in the order of its file; `datasets.SETS` lists them.

    Its files are looked for in the folder that ONEPASS_DATA names (as name/file), then in the user's cache
    (ONEPASS_CACHE, or the platform's folder), and otherwise downloaded to that cache from the set's public address, if
    it has one.

    part: which of its streams ("train", "test", …); by default the first. raw: texts instead of word counts. progress:
    called with (bytes so far, bytes in all or None) while downloading; by default a line on a terminal.
    """
    if name not in SETS:
        raise ParameterError(f"name={name!r} is not a data set; expected one of {', '.join(sorted(SETS))}")
    chosen = SETS[name]
    part = next(iter(chosen.parts)) if part is None else part
    if part not in chosen.parts:
        raise ParameterError(f"{name} has no part {part!r}; it has {', '.join(chosen.parts)}")
    stream = chosen.parts[part]
    if raw and stream.raw is None:
        raise ParameterError(f"{name} has no raw texts; leave raw out")
    read = stream.raw if raw and stream.raw is not None else stream.read
    paths = [find(chosen.file(name, file), progress) for file in stream.files]
    names = None if chosen.names is None else list(chosen.names)
    if chosen.vocabulary is not None:
        vocabulary = find(chosen.file(name, chosen.vocabulary), progress)
        names = [line.strip() for line in _guarded(lambda: lines(vocabulary), [vocabulary])]
    description = (
        f"{name} ({part}): {chosen.about}. {stream.rows:,} rows, {chosen.task}. From {chosen.origin}. "
        f"Licence: {chosen.licence}."
    )
    return RealStream(f"{name}/{part}", stream.rows, lambda: read(*paths), paths, description, chosen.task, names)


class RealStream:
    """The examples of a set in the order of its file: iterate for (x, y), or take `chunks(size)` of (X, y).

    Rows are read a block at a time. `description` says what they are and where they come from. Sets for ranking also
    have `batches(size)`, whose chunks carry the query of each row.
    """

    def __init__(
        self,
        name: str,
        rows: int,
        blocks: Callable[[], Iterator[Block]],
        paths: list[Path],
        description: str = "",
        task: str = "",
        names: list[str] | None = None,
    ) -> None:
        self.name, self.description, self.task, self.names, self.paths = name, description, task, names, paths
        self._rows, self._read = rows, blocks
        if task == "ranking":
            self.batches = self._batches

    def __repr__(self) -> str:
        return f"datasets.load({self.name!r}), {len(self):,} rows"

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for block in self._blocks():
            y = block[1].tolist() if isinstance(block[1], np.ndarray) else block[1]
            yield from zip(dicts(block[0], self.names), y, strict=True)

    def chunks(self, size: int = 1000) -> Iterator[tuple[Any, Any]]:
        """The stream as (X, y), `size` rows at a time; the last chunk holds what is left."""
        return ((part[0], part[1]) for part in cut(self._blocks(), whole("size", size)))

    def _batches(self, size: int = 1000) -> Iterator[Any]:
        for X, y, query in cut(self._blocks(), whole("size", size)):
            yield SimpleNamespace(X=X, y=y, query=query, weight=None, id=None, time=None)

    def shuffled(self, seed: int = 0) -> RealStream:
        """The rows in an order drawn from `seed`; all of them are then held in memory."""
        columns = tuple(join(list(column)) for column in zip(*self._blocks(), strict=True))
        order = np.random.Generator(np.random.PCG64(whole("seed", seed, least=0))).permutation(len(self))
        held = tuple(take(column, order) for column in columns)
        return RealStream(
            self.name, len(self), lambda: iter([held]), self.paths, self.description, self.task, self.names
        )

    def _blocks(self) -> Iterator[Block]:
        seen = 0
        for block in _guarded(self._read, self.paths):
            seen += len(block[1])
            yield block
        if seen != len(self):
            files = ", ".join(map(str, self.paths))
            raise DatasetError(f"{files}: expected {len(self):,} rows, found {seen:,}; restore the file, or delete it")


def _guarded(read: Callable[[], Iterator[Any]], paths: list[Path]) -> Iterator[Any]:
    """Turn any error while reading into a DatasetError that names the files and says what to do."""
    files = ", ".join(map(str, paths))
    try:
        yield from read()
    except DatasetError:
        raise
    except DAMAGED as error:
        raise DatasetError(f"{files}: damaged or not what it should be ({error}); restore it, or delete it") from error
