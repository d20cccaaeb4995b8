"""``onepass convert``: write a stream in another format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from ..errors import InputError
from ..persistence.files import is_regular, replaced, write
from ..streams.formats import COMPRESSED_SUFFIXES, FORMATS, format_of_name
from .paths import Input, Output, writes
from .sections import SectionedCommand
from .source_options import add_source_options, on_error_option, source_options_of

if TYPE_CHECKING:
    from ..streams import Chunk, Stream

__all__ = ["command"]

TO = (*FORMATS, "cache")
WIDEST = 10_000  # the most columns of a table
ANSWERS = ("label", "weight", "id")  # the columns that are not features
VW_MARKS = str.maketrans({" ": "_", ":": "_", "|": "_", "\n": "_", "\r": "_", "\t": "_"})


@click.command(
    "convert",
    cls=SectionedCommand,
    short_help="Convert a file to another format.",
    context_settings={"show_default": True},
)
@click.argument("sources", nargs=-1, type=Input(), metavar="IN…")
@click.argument("out", type=Output(), metavar="OUT")
@add_source_options
@click.option("--to", type=click.Choice(TO), show_default="from OUT's name", help="The format to write.")
@click.option(
    "-b",
    "--hash-bits",
    type=click.IntRange(1, 30),
    metavar="BITS",
    help="With --to cache: hash the features' names, as `learn -b BITS` will.",
)
@on_error_option
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:  # fmt: skip
    """Write the examples of IN in the format of OUT: vw, svmlight, csv, tsv, jsonl, parquet, arrow or cache.

    Labels, weights, ids and features are kept. A string in a table becomes the feature name=value, as in learning. If
    OUT is a table (csv, parquet, …) and IN has no fixed columns, IN is read twice and each feature becomes a column.
    svmlight has numbers instead of names; OUT.names lists the names. OUT may be - (with --to), a pipe or a device. A
    cache is a file of parsed rows for `learn --cache`.

    \b
    Examples:
      onepass convert clicks.csv clicks.vw --label clicked
      onepass convert train.vw.gz train.parquet
      onepass convert train.vw train.vw.cache -b 18
    """
    out = given["out"]
    if not given["sources"]:
        raise click.UsageError("from what, to what? Give IN and OUT")
    to = given["to"] or _format_to_write(out)
    if to is None:
        raise click.UsageError(f"{out}: cannot tell the format from this name; give --to")
    if given["hash_bits"] is not None and to != "cache":
        raise click.UsageError("--hash-bits goes with --to cache; other formats have names")
    if to == "cache" and not is_regular(out):
        raise click.UsageError(f"{out}: a cache is read at any place, which only a regular file allows")
    if to == "svmlight" and is_regular(out):
        writes(f"{out}.names", "OUT.names")
    reading = source_options_of(given, given["hash_bits"])
    how: dict[str, Any] = {"on_error": "skip" if given["on_error"] == "skip" else "raise"}
    job = Conversion(lambda **more: reading.stream(**how, **more), to, out)
    job.go()
    if job.renamed:
        click.echo(f"{job.renamed:,} names had marks that {to} keeps for itself; they are _ now", err=True)
    skipped = f", {job.skipped:,} malformed lines skipped" if job.skipped else ""
    click.echo(f"{out}: {job.rows:,} examples as {to}{skipped}", err=True)
    if job.skipped:
        ctx.exit(3)


def _format_to_write(out: str) -> str | None:
    """The format, from the name of the output. Compressed files are not supported."""
    suffix = Path(out).suffix.lower()
    if suffix == ".cache":
        return "cache"
    named = None if suffix in COMPRESSED_SUFFIXES else format_of_name(out)
    return named.name if named else None


class Conversion:
    """One stream, written in another format. An existing file is replaced when the new one is complete."""

    def __init__(self, stream: Any, to: str, out: str) -> None:
        self.stream, self.to, self.out = stream, to, out
        self.rows = self.skipped = 0
        self._changed: set[str] = set()

    @property
    def renamed(self) -> int:
        return len(self._changed)

    def go(self) -> None:
        if self.to == "cache":
            for chunk in self._chunks(self.stream(cache=self.out)):
                self.rows += len(chunk)
            return
        with replaced(self.out) as file:
            self._write(file)

    def _chunks(self, stream: Stream) -> Iterator[Chunk]:
        for chunk in stream.batches():
            chunk.require_no_base("which no other format has; take it out")
            yield chunk
        self.skipped = stream.skipped

    def _examples(self) -> Iterator[tuple[dict[str, float], Any, float | None, Any]]:
        """The tuples (features, label, weight, id), one by one."""
        from ..streams.chunk import mappings

        stream = self.stream()
        for chunk in self._chunks(stream):
            weights = [None] * len(chunk) if chunk.weight is None else chunk.weight.tolist()
            ids = [None] * len(chunk) if chunk.id is None else list(chunk.id)
            rows = zip(mappings(chunk.X, stream.base), chunk.answers(), weights, ids, strict=True)
            for x, y, weight, tag in rows:
                self.rows += 1
                yield dict(x), y, weight, tag

    def _write(self, file: IO[bytes]) -> None:
        if self.to == "vw":
            for x, y, weight, tag in self._examples():
                file.write(self._vw_line(x, y, weight, tag).encode())
        elif self.to == "svmlight":
            self._svmlight(file)
        elif self.to == "jsonl":
            for x, y, weight, tag in self._examples():
                more = {name: value for name, value in (("weight", weight), ("id", tag)) if value is not None}
                row = {**({} if y is None else {"label": y}), **more, **x}
                file.write(json.dumps(row, ensure_ascii=False, default=str).encode() + b"\n")
        else:
            self._table(file)

    def _vw_line(self, x: dict[str, float], y: Any, weight: float | None, tag: Any) -> str:
        if isinstance(y, str) and not _is_number(y):
            raise InputError(f"example {self.rows:,}: VW's labels are numbers, got {y!r}; number the classes first")
        label = "" if y is None else f"{_number(y)}" + ("" if weight is None or weight == 1 else f" {weight:g}")
        spaces: dict[str, list[str]] = {}
        for name, value in x.items():
            space, caret, feature = str(name).partition("^")
            if not caret:
                space, feature = "", str(name)
            clean = feature.translate(VW_MARKS)
            if clean != feature:
                self._changed.add(feature)
            spaces.setdefault(space.translate(VW_MARKS), []).append(clean if value == 1 else f"{clean}:{value!r}")
        mark = f" '{str(tag).translate(VW_MARKS)}" if tag is not None else " " if label else ""
        return (
            label
            + mark
            + "".join(f"|{space} {' '.join(words)} " for space, words in spaces.items()).rstrip()
            + ("\n" if spaces else "|\n")
        )

    def _svmlight(self, file: IO[bytes]) -> None:
        numbers: dict[str, int] = {}  # the numbers of names, if features have names
        for x, y, _, _ in self._examples():
            if y is None or (isinstance(y, str) and not _is_number(y)):
                raise InputError(f"example {self.rows:,}: svmlight's labels are numbers, got {y!r}")
            pairs = sorted(self._numbered(x, numbers))
            line = f"{_number(y)} " + " ".join(f"{j}:{value!r}" for j, value in pairs)
            file.write(line.rstrip().encode() + b"\n")
        if numbers and not is_regular(self.out):
            click.echo(f"{self.out}: names are numbers now; only beside a file does OUT.names list them", err=True)
        elif numbers:
            write(f"{self.out}.names", "".join(f"{j} {name}\n" for name, j in numbers.items()))

    def _numbered(self, x: dict[str, float], numbers: dict[str, int]) -> list[tuple[int, float]]:
        """Features by number: the names themselves if all are numbers, otherwise in the order of appearance."""
        pairs = []
        for name, value in x.items():
            if not numbers and str(name).isdigit():
                pairs.append((int(name), value))
                continue
            if not numbers and self.rows > 1 and pairs:
                raise InputError(f"example {self.rows:,}: {name!r} is not a number as the features before were")
            pairs.append((numbers.setdefault(str(name), len(numbers) + 1), value))
        return pairs

    def _table(self, file: IO[bytes]) -> None:
        """Read the stream twice: first to find the features, then to write a column for each."""
        stream = self.stream()
        if not all(source.reopens for source in stream.sources):
            raise click.UsageError(f"--to {self.to} reads the stream twice, which a pipe does not allow; save it first")
        columns, answers = self._columns()
        self.rows = 0
        rows = (
            [
                *(value for name, value in zip(ANSWERS, (y, w, tag), strict=True) if name in answers),
                *map(x.get, columns),
            ]
            for x, y, w, tag in self._examples()
        )
        header = [*answers, *map(str, columns)]
        if self.to in ("csv", "tsv"):
            _delimited(file, header, rows, "," if self.to == "csv" else "\t")
        else:
            _arrow(file, header, rows, self.to)

    def _columns(self) -> tuple[dict[str, None], list[str]]:
        """The features of all examples, and those of label, weight and id that occur."""
        columns: dict[str, None] = {}
        has = dict.fromkeys(ANSWERS, False)
        for x, y, weight, tag in self._examples():
            columns.update(dict.fromkeys(x))
            for name, value in zip(ANSWERS, (y, weight, tag), strict=True):
                has[name] = has[name] or value is not None
            if len(columns) > WIDEST:
                raise InputError(f"more than {WIDEST:,} features: too wide for {self.to}; use jsonl, vw or svmlight")
        answers = [name for name, there in has.items() if there]
        taken = next((name for name in answers if name in columns), None)
        if taken is not None:
            raise InputError(f"a feature is called {taken!r} as the column for it would be; --drop or rename it")
        return columns, answers


def _delimited(file: IO[bytes], header: list[str], rows: Iterator[list[Any]], delimiter: str) -> None:
    import csv
    import io

    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(["" if value is None else value for value in row])
    text.detach()


def _arrow(file: IO[bytes], header: list[str], rows: Iterator[list[Any]], to: str) -> None:
    from itertools import islice

    import pyarrow

    writer = None
    while True:
        some = list(islice(rows, 4096))
        if not some and writer is not None:
            break
        columns = list(zip(*some, strict=True)) if some else [() for _ in header]
        arrays = [
            pyarrow.array(column) if name in ("label", "id") else pyarrow.array(column, pyarrow.float64())
            for name, column in zip(header, columns, strict=True)
        ]
        table = pyarrow.table(arrays, names=header)
        if writer is None:
            if to == "parquet":
                from pyarrow import parquet

                writer = parquet.ParquetWriter(file, table.schema)
            else:
                writer = pyarrow.ipc.new_file(file, table.schema)
            schema = table.schema
        try:
            writer.write_table(table.cast(schema))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError, ValueError) as error:
            raise InputError(
                f"labels or ids change their kind on the way, which {to} does not allow: {error}"
            ) from None
    writer.close()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
