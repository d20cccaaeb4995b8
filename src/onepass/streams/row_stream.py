"""`op.stream`: files, pipes and iterables as examples, one at a time or in chunks."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from .. import _native
from ..errors import InputError, ParameterError
from ..persistence import files
from ..rows.expansion import expand_one, make_expansion, numbers_of
from ..rows.labels import label_array, plain
from .blocks import BadLine, Block, Sizes, blocks
from .chunk import Chunk, Position, mappings
from .cutter import Cutter, Quarantine
from .fingerprint import ReadExtents, ResumePoint
from .formats import FORMATS, detect
from .records import Records
from .sources import Source, line_error, sources_of
from .threads import in_this_process

__all__ = ["Stream", "stream"]

BLOCK = 1 << 21  # bytes parsed together
LATER = 1 << 22  # after the first block of a file, which is smaller so that progress shows soon
CROSSED = 1 << 16  # with interactions, which make many features of few
LONGEST = 1 << 24  # bytes of a line
NO_PLACE = "for which a pair (x, y) has no place; read batches(), whose chunks have it as "


def stream(
    source: Any,
    *,
    format: str | None = None,
    label: Any = None,
    weight: str | None = None,
    id: str | None = None,
    time: str | None = None,
    features: Iterable[str] | None = None,
    drop: Iterable[str] | None = None,
    text: Iterable[str] | None = None,
    categorical: Iterable[str] | None = None,
    ngram: int = 1,
    interactions: Any = None,
    hash_bits: int | None = None,
    keep_names: bool = False,
    multilabel: bool = False,
    base: int = 0,
    header: bool | list[str] = True,
    on_error: str = "raise",
    quarantine: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    follow: bool = False,
    start: Position | dict[str, int] | None = None,
    threads: int | None = None,
    block_size: int | None = None,
    max_line: int = LONGEST,
) -> Stream:
    """Examples from files, standard input or an iterable. See docs/streams.md.

    source     a path, a glob, a list of paths, "-", an open binary file, or an iterable of (x, y)
    format     vw, svmlight, csv, tsv, jsonl, parquet, arrow; by default from the name or the first bytes
    label, weight, id, time, features, drop   columns of a table; label=False: it has none
    text, ngram   columns that become words, and runs of up to `ngram` words (VW: of features of a namespace)
    interactions  products of features: ["ab"], namespaces by their first letters; ["user*item"], by their names
    categorical   columns whose numbers are names (a postcode); strings always are names
    hash_bits  features are hashes of their names, as in LinearModel(hash_bits=…); None: every name has its own column
    keep_names with hash_bits: remember the names behind the hashes (`hashes`, `collisions`); takes memory for each name
    multilabel VW and svmlight: a label is a set of numbers, 1,3,5, and y has tuples
    base       svmlight: the index that becomes column 0
    header     CSV: is the first line the names of columns? A list: these are the names, and there is no such line
    on_error   "raise" at a malformed line, or "skip" it: counted, and written to the file `quarantine`
    cache      a file that stores the parsed rows for the next time
    follow     at the end of the last file, wait until it grows
    start      the Position to go on from
    threads    how many threads parse; by default one per core, at most 4
    """
    options = {name: value for name, value in locals().items() if name != "source"}
    return Stream(source, **options)


@dataclass(repr=False)
class Stream:
    """A stream of examples. Every `iter`, `chunks` or `batches` reads it from `start` again, if its sources can be."""

    source: Any
    format: str | None
    label: Any
    weight: str | None
    id: str | None
    time: str | None
    features: Iterable[str] | None
    drop: Iterable[str] | None
    text: Iterable[str] | None
    categorical: Iterable[str] | None
    ngram: int
    interactions: Any
    hash_bits: int | None
    keep_names: bool
    multilabel: bool
    base: int
    header: Any
    on_error: str
    quarantine: str | os.PathLike[str] | None
    cache: str | os.PathLike[str] | None
    follow: bool
    start: Any
    threads: int | None
    block_size: Any
    max_line: int

    skipped: int = field(default=0, init=False)  # malformed lines left out
    _quarantined: array[int] = field(default_factory=lambda: array("q"), init=False)  # bytes after each of them
    resume_point: ResumePoint | None = field(
        default=None, init=False
    )  # what another stream has read of the file before `start`
    seen: ReadExtents = field(init=False)  # how much of each source has been read, once it is
    names: Any = field(default=None, init=False)  # the growing table of names, where there is one

    def __post_init__(self) -> None:
        self.start = Position.of(self.start)
        self._check()
        self.sources: list[Source] = []
        if not _is_examples(self.source):
            self.sources = sources_of(self.source)
            if not self.sources:
                raise ParameterError("source: expected at least one file, got none")
        self._check_start()
        if self.sources:
            self._check_files()
            self.format = self.format or detect(self.sources[0])
        if self.multilabel and self.format not in ("vw", "svmlight"):
            raise ParameterError(f"multilabel=True: sets of labels are read from vw and svmlight, not {self.format}")
        if self.format == "svmlight" and self.interactions is not None:
            raise ParameterError("interactions= is not supported for svmlight, whose features are numbers, not names")
        self.sizes = self._sizes()
        if self.sources and (self.keep_names if self.hash_bits is not None else self.format != "svmlight"):
            self.names = _native.Names()
        # In tables only text columns have an order of words; n-grams are made when those are read.
        self.expansion = make_expansion(self.interactions, self.ngram if self.format == "vw" else 1)

    def _check(self) -> None:
        for name, value, allowed in (
            ("format", self.format, (None, *FORMATS)),
            ("on_error", self.on_error, ("raise", "skip")),
        ):
            if value not in allowed:
                raise ParameterError(f"{name}={value!r}: expected one of {', '.join(map(str, allowed))}")
        self._check_numbers()
        if self.interactions is not None and not isinstance(self.interactions, str | int):
            self.interactions = list(self.interactions) or None
        make_expansion(self.interactions)
        for name in ("keep_names", "multilabel"):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(f"{name}={getattr(self, name)!r}: expected True or False")
        self._check_combinations()

    def _check_numbers(self) -> None:
        if self.threads is None:
            self.threads = min(4, os.cpu_count() or 1)
        for name, low, high in (("ngram", 1, 100), ("base", 0, 1), ("max_line", 1, 1 << 30), ("threads", 1, 1024)):
            _whole(name, getattr(self, name), low, high)
        for name, low, high in (("hash_bits", 1, 30), ("block_size", 1, 1 << 30)):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), low, high)

    def _check_combinations(self) -> None:
        """Refuse options that lack another option, or exclude each other."""
        if self.keep_names and (self.hash_bits is None or _is_examples(self.source)):
            raise ParameterError(
                "keep_names=True keeps the names behind the hashes of a file's features: give files, and hash_bits"
            )
        if self.cache is not None and not isinstance(self.cache, str | os.PathLike):
            raise ParameterError(f"cache= must be the path of a file, or None for none, got {self.cache!r}")
        if self.cache is not None and (self.follow or _is_examples(self.source)):
            raise ParameterError(
                "cache= is not supported with follow=True or an iterable of examples: it needs files that do not grow"
            )
        if self.quarantine is not None and self.on_error != "skip":
            raise ParameterError('quarantine= needs on_error="skip"; give both')
        if self.format in ("vw", "svmlight"):
            for name in ("label", "weight", "id", "time", "features", "drop", "text", "categorical"):
                if getattr(self, name) is not None:
                    raise ParameterError(f"{name}= names columns of a table; {self.format} has its own way to say it")

    def _check_start(self) -> None:
        """Refuse a position that this kind of source cannot have."""
        at, count = self.start, len(self.sources)
        if not count and (at.file, at.offset, at.line, at.skip) != (0, 0, 1, 0):
            raise ParameterError(f"start={at}: a place in a file, and the source is an iterable of examples")
        if count and at.file >= count:
            raise ParameterError(f"start={at}: file number {at.file}, counted from 0; there are {count}")
        if count and at != Position() and (at.file, at.offset, at.skip) == (0, 0, 0):
            raise ParameterError(f"start={at}: at the beginning of the first file, where nothing has come before")

    def _check_files(self) -> None:
        """Refuse outputs that are also inputs."""
        ledger = files.Ledger()
        written = {"quarantine=": self.quarantine, "cache=": self.cache}
        if any(path is not None for path in written.values()):
            for source in self.sources:
                ledger.reads(source.name if source.file is None else source.file, "source")
        for said, path in written.items():
            if path is not None:
                ledger.writes(path, said)

    def _sizes(self) -> Sizes:
        if self.block_size is None and self.interactions is None and self.format in ("vw", "svmlight"):
            return Sizes(BLOCK, max(BLOCK, min(LATER, self.max_line)))
        size = self.block_size or (BLOCK if self.interactions is None else CROSSED)
        return Sizes(size, size)

    # -- reading -----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Examples (x, y), whatever their importance: x maps names to values, y is None where there is no label."""
        # Names instead of hashes, and only those of one block, not all names of the stream.
        unhashed = replace_options(self, hash_bits=None)
        try:
            for chunk in unhashed._cut(unhashed._parsed_blocks(local=True), None) if self.sources else self.batches():
                chunk.require_no_base(NO_PLACE + "base")
                yield from zip(mappings(chunk.X, self.base), chunk.answers(), strict=True)
        finally:
            self.skipped = unhashed.skipped

    def chunks(self, size: int = 4096) -> Iterator[tuple[Any, Any]]:
        """(X, y) of `size` rows each, as `learn_many` takes them. Raises where a row has an importance other than 1."""
        for chunk in self.batches(size):
            chunk.require_no_base(NO_PLACE + "base")
            chunk.require_no_weight(NO_PLACE + "weight")
            yield chunk.X, chunk.y

    def batches(self, size: int | None = None) -> Iterator[Chunk]:
        """Chunks of `size` rows, the last perhaps of fewer; without a size, as they are parsed, without copying."""
        if size is not None:
            _whole("size", size, 1, 1 << 31)
        if not self.sources:
            return self._of_examples(size or 4096)
        return self._cut(self._parsed_blocks(), size)

    def _parsed_blocks(self, local: bool = False) -> Iterator[Block]:
        """All blocks of the sources with their rows, in order. `local`: every block has names of its own."""
        if self.cache is not None and not local:
            from .cache import cached

            return cached(self, self._read(self.names), self.names)
        return self._read(None if local else self.names)

    def _read(self, names: Any) -> Iterator[Block]:
        assert self.format is not None
        return FORMATS[self.format].read(self, names)

    def records(self) -> Records:
        """How a file of CSV or TSV is cut into records."""
        return Records("\t" if self.format == "tsv" else ",", self.max_line)

    def blocks(self, **options: Any) -> Iterator[Block]:
        """The files as blocks of whole lines, not parsed yet."""
        start, where = self.start, (self.sources, self.sizes, self.max_line)
        return blocks(
            *where, file=start.file, offset=start.offset, follow=self.follow, resume_point=self.resume_point, **options
        )

    def _cut(self, blocks: Iterator[Block], size: int | None) -> Iterator[Chunk]:
        """Blocks as chunks of `size` rows; malformed lines raise, or are counted and written to the quarantine."""
        at = self.start
        assert self.format is not None
        how = self.records() if self.format in ("csv", "tsv") else None
        self.seen = ReadExtents(self.sources, self.format, self.resume_point, at.file, how)
        self.skipped = at.skipped
        with Quarantine(self.quarantine, append=at != Position()) as quarantine:
            self._quarantined = array("q", [quarantine.length])
            cutter = Cutter(self, size, quarantine)
            for block in in_this_process(blocks):
                yield from cutter.cut(block)
            yield from cutter.end()

    def _report(self, bad: BadLine, file: int, first_line: int, quarantine: Quarantine) -> None:
        name, line = self.sources[file].name, first_line + bad.line
        error = line_error(name, line, bad.column, bad.text, bad.what)
        if self.on_error == "raise":
            raise error
        self.skipped += 1
        quarantine.write(f"{name}:{line}\t{error.column}\t{bad.what}\t".encode() + bad.text + b"\n")
        self._quarantined.append(quarantine.length)

    def quarantine_length(self, at: Position) -> int:
        """The quarantine's length at a position that this stream gave; later lines are read again from there."""
        return int(self._quarantined[at.skipped - self.start.skipped])

    def _of_examples(self, size: int) -> Iterator[Chunk]:
        """Python's own (x, y) as chunks of mappings."""
        examples = iter(self.source)
        at = self.start
        if there := at.example - sum(1 for _ in islice(examples, at.example)):
            raise InputError(f"start={at}: the examples end {there:,} before that place; give the same ones")
        while rows := list(islice(examples, size)):
            at = replace(at, example=at.example + len(rows))
            for number, row in enumerate(rows):
                if not isinstance(row, tuple | list) or len(row) != 2:
                    place = at.example - len(rows) + number + 1
                    raise ParameterError(f"example {place}: expected a pair (x, y), got {type(row).__name__}")
            labels = [plain(y) for _, y in rows]
            y = label_array(labels)
            X = [x if self.expansion is None else expand_one(self.expansion, numbers_of(x)) for x, _ in rows]
            yield Chunk(X, y, position=at)

    @property
    def columns(self) -> list[str]:
        """The names of all features so far, by column; empty if features are hashes or numbers."""
        return [] if self.names is None or self.hash_bits is not None else self._known_names()

    @property
    def hashes(self) -> dict[int, list[str]]:
        """With `keep_names`: each hash so far, and the names that share it, in the order of the stream."""
        if not self.keep_names or self.hash_bits is None:
            raise ParameterError("the names behind hashes were not kept: op.stream(…, hash_bits=…, keep_names=True)")
        names = self._known_names()
        by_hash: dict[int, list[str]] = {}
        for hashed, name in zip(_native.hash_names(names, self.hash_bits).tolist(), names, strict=True):
            by_hash.setdefault(hashed, []).append(name)
        return by_hash

    @property
    def collisions(self) -> int:
        """With `keep_names`: how many names so far share their hash with an earlier name."""
        return sum(len(names) - 1 for names in self.hashes.values())

    def _known_names(self) -> list[str]:
        return list(self.names.names(0, len(self.names)))

    def __repr__(self) -> str:
        what = ", ".join(source.name for source in self.sources[:3]) if self.sources else type(self.source).__name__
        return f"stream({what}{', …' if len(self.sources) > 3 else ''}, format={self.format!r})"


def replace_options(stream: Stream, **changes: Any) -> Stream:
    """A stream over the same sources with other options."""
    other = copy(stream)
    for name, value in changes.items():
        setattr(other, name, value)
    return other


def _is_examples(source: Any) -> bool:
    """Is it an iterable of (x, y), not of paths?"""
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "read"):
        return False
    if isinstance(source, (list, tuple)):
        return bool(source) and not isinstance(source[0], (str, os.PathLike)) and not hasattr(source[0], "read")
    if not hasattr(source, "__iter__"):
        raise ParameterError(f"source={source!r:.80}: expected a path, paths, '-', a binary file, or examples (x, y)")
    return True


def _whole(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise ParameterError(f"{name}={value!r}: expected a whole number from {low} to {high}")
