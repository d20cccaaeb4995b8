"""Position algebra: from every position that a stream gives, any other stream over the same files goes on with exactly
the rows that are left, however either is cut into blocks and chunks, parsed, packed or cached."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.extras import require_extra

import onepass as op
from onepass.errors import InputError, LineError, ParameterError
from onepass.streams import Position
from onepass.streams.chunk import Chunk, mappings
from onepass.streams.formats import FORMATS

pa = require_extra("pyarrow")

ROWS = 24  # of each of the two files


def vw(i: int) -> str:
    return f"{1 if i % 3 else -1} {1 + i % 2} 't{i} | a{i % 5} b:{i} c{i}"


def svmlight(i: int) -> str:
    return f"{i % 3} 1:{i + 1} {2 + i % 4}:0.5"


def jsonl(i: int) -> str:
    return json.dumps({"label": i % 3, "a": i + 1, "s": f"é{i}", "in": {"b": 2.5}})


def delimited(mark: str) -> Callable[[int], str]:
    def line(i: int) -> str:
        return mark.join([str(i % 3), str(i + 1), f'"two\nlines {i}"' if i % 4 == 1 else f"é{i}"])

    return line


# Of each format: a line, the lines before the first, lines that hold no row, lines that are malformed.
TEXTS: dict[str, tuple[Callable[[int], str], str, list[str], list[str]]] = {
    "vw": (vw, "", ["", "", " "], ["1 | a:nan", "x | b"]),
    "svmlight": (svmlight, "", ["", "# a comment", " "], ["1 2:nan", "1 2"]),
    "jsonl": (jsonl, "", ["", " ", ""], ['{"label": 1, "a": NaN}', "[]"]),
    "csv": (delimited(","), "label,a,s\n", ["", "", ""], ["1,2", "1,x,y"]),
    "tsv": (delimited("\t"), "label\ta\ts\n", ["", "", ""], ["1\t2", "1\tx\ty"]),
}


def text_file(format: str, first: int, ended: bool) -> bytes:
    line, header, blanks, bad = TEXTS[format]
    lines = [line(i) for i in range(first, first + ROWS)]
    for at, extra in zip((0, 3, 3, 9, 10, 15), [*blanks, *bad, bad[0]], strict=True):
        lines.insert(at, extra)
    return (header + "\n".join(lines) + ("\n" if ended else "")).encode()


def table_file(format: str, first: int) -> bytes:
    from pyarrow import parquet

    numbers = [float(i) if i % 7 != 5 else float("inf") for i in range(first, first + ROWS)]
    columns = {"label": [i % 3 for i in range(first, first + ROWS)], "a": numbers, "s": [f"é{x}" for x in numbers]}
    table, out = pa.table(columns), io.BytesIO()
    if format == "parquet":
        parquet.write_table(table, out, row_group_size=10)
    else:
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
    return out.getvalue()


class Pipe(io.RawIOBase):
    """Bytes that can be read once, a few at a time."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        part, self.left = self.left[: min(len(view), 777)], self.left[min(len(view), 777) :]
        view[: len(part)] = part
        return len(part)


def made(format: str, container: str, folder: Path) -> Callable[[], list[Any]]:
    """The two files, which can be had again and again."""
    files = []
    for number in range(2):
        packed = format in ("parquet", "arrow")
        data = table_file(format, ROWS * number) if packed else text_file(format, ROWS * number, ended=number == 0)
        if container == "marked":
            data = b"\xef\xbb\xbf" + data
        path = folder / f"{number}.{format}"
        if container == "gzip":
            data, path = gzip.compress(data), Path(f"{path}.gz")
        elif container == "zstd":
            data, path = pa.compress(data, "zstd", asbytes=True), Path(f"{path}.zst")
        path.write_bytes(data)
        files.append(path)
    return lambda: [Pipe(path.read_bytes()) for path in files] if container == "pipe" else list(files)


@dataclass(frozen=True)
class Way:
    """How a stream is cut."""

    block: int | None
    size: int | None
    threads: int
    cached: bool = False


WAYS = (
    Way(1, 1, 1),
    Way(40, 5, 3),
    Way(150, None, 2),
    Way(333, 7, 1),
    Way(None, 11, 2),
    Way(None, None, 1),
    Way(200, 3, 1, cached=True),
    Way(None, 9, 2, cached=True),
)


def rows_of(chunk: Chunk) -> Iterator[Any]:
    def column(name: str, silent: Any) -> Any:
        values = getattr(chunk, name)
        return [silent] * len(chunk) if values is None else list(values)

    return zip(mappings(chunk.X), chunk.answers(), column("weight", 1.0), column("id", None), strict=True)


@dataclass
class Files:
    """Two files of a format, and the streams over them."""

    format: str
    sources: Callable[[], list[Any]]
    folder: Path

    def stream(self, way: Way, start: Any = None, quarantine: str = "bad") -> op.streams.row_stream.Stream:
        cache = self.folder / f"{way.block}.cache" if way.cached else None
        return op.stream(
            self.sources(), format=self.format, weight=None, on_error="skip", quarantine=self.folder / quarantine,
            block_size=way.block, threads=way.threads, cache=cache, start=start,
        )  # fmt: skip

    def read(self, way: Way, start: Any = None) -> tuple[list[Any], int, list[bytes]]:
        """The rows, how many lines were skipped in all, and those that were now."""
        (self.folder / "now").unlink(missing_ok=True)
        stream = self.stream(way, start, "now")
        rows = [row for chunk in stream.batches(way.size) for row in rows_of(chunk)]
        return rows, stream.skipped, (self.folder / "now").read_bytes().splitlines()


CONTAINERS = ("plain", "marked", "gzip", "zstd", "pipe")


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("format", FORMATS)
def test_what_is_left_is_the_same_from_every_position(
    format: str, container: str, tmp_path: Path, record_property: Any
) -> None:
    if container == "marked" and format in ("parquet", "arrow"):
        container = "plain"  # no text
    files = Files(format, made(format, container, tmp_path), tmp_path)
    ways = [replace(way, cached=way.cached and container != "pipe") for way in WAYS]
    whole, skipped, bad = files.read(ways[-3])
    assert len(whole) + skipped == 2 * (ROWS + (format not in ("parquet", "arrow")) * 3)
    assert len(bad) == skipped > 0
    positions: dict[Position, None] = {}
    for way in ways:
        assert files.read(way) == (whole, skipped, bad)
        positions |= dict.fromkeys(chunk.position for chunk in files.stream(way).batches(way.size))
    assert {at.example for at in positions} >= set(range(1, len(whole) + 1)), "after every row"
    for at, way in zip(positions, itertools.cycle(ways), strict=False):
        again = json.loads(json.dumps(at.to_dict()))
        assert files.read(way, again) == (whole[at.example :], skipped, bad[at.skipped :]), (at, way)
    record_property("positions", len(positions))


def test_a_position_behind_positions(tmp_path: Path) -> None:
    """Resumed again and again, each time after one chunk, each time cut otherwise."""
    for format in FORMATS:
        (tmp_path / format).mkdir()
        files = Files(format, made(format, "plain", tmp_path / format), tmp_path / format)
        whole, skipped, _ = files.read(WAYS[0])
        at, rows = None, []
        for way in itertools.cycle(WAYS):
            stream = files.stream(way, at)
            chunk = next(stream.batches(way.size), None)
            if chunk is None:
                break
            rows += rows_of(chunk)
            at = chunk.position.to_dict()
        assert (rows, stream.skipped) == (whole, skipped)


GOOD = {"file": 0, "offset": 6, "line": 2, "skip": 1, "example": 2, "skipped": 0, "labels": ""}
WRONG: dict[str, Any] = {
    "not a mapping": (17, "expected a Position"),
    "a text": ("abc", "expected a Position"),
    "pairs": ([("file", 0)], "expected a Position"),
    "empty": ({}, "file and offset and line"),
    "one is missing": ({k: v for k, v in GOOD.items() if k != "skip"}, "skip is missing"),
    "one too many": ({**GOOD, "more": 1}, "no 'more'"),
    "below 0": ({**GOOD, "offset": -1}, "offset must be a whole number from 0"),
    "line 0": ({**GOOD, "line": 0}, "line must be a whole number from 1"),
    "a fraction": ({**GOOD, "skip": 1.0}, "skip must be"),
    "a truth value": ({**GOOD, "file": False}, "file must be"),
    "a text inside": ({**GOOD, "file": "0"}, "file must be"),
    "None": ({**GOOD, "line": None}, "line must be"),
    "beyond files": ({**GOOD, "offset": 1 << 63}, "offset must be"),
    "no kind of labels": ({**GOOD, "labels": "colours"}, "labels must be one of numbers, strings"),
    "kinds of labels": ({**GOOD, "labels": ["numbers"]}, "labels must be one of"),
    "a Position": (Position(file=-1), "file must be"),
    "more rows left out than came": ({**GOOD, "skip": 3}, "only 2 came before"),
    "another file": ({**GOOD, "file": 1}, "file number 1, counted from 0; there are 1"),
    "nothing before the beginning": (Position(example=3), "where nothing has come before"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_position(case: str, tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 | a\n" * 5)
    start, what = WRONG[case]
    with pytest.raises(ParameterError, match=what):
        op.stream(tmp_path / "a.vw", start=start)


@pytest.mark.parametrize("container", ["plain", "gzip", "pipe"])
def test_positions_that_the_file_does_not_have(container: str, tmp_path: Path) -> None:
    def read(at: dict[str, int], text: bytes = b"1 | a\n" * 5) -> list[Any]:
        path = tmp_path / "a.vw"
        path.write_bytes(gzip.compress(text) if container == "gzip" else text)
        return list(op.stream(Pipe(text) if container == "pipe" else path, format="vw", start=at))

    assert len(read(GOOD)) == 3
    assert read({**GOOD, "offset": 30, "skip": 0}) == []
    with pytest.raises(InputError, match=r"byte 7 of .*, where no line begins"):
        read({**GOOD, "offset": 7})
    with pytest.raises(InputError, match="beyond its end"):
        read({**GOOD, "offset": 36})
    with pytest.raises(InputError, match="ends 2 rows before that place"):
        read({**GOOD, "skip": 6, "example": 9})
    # A last line without an end is a line; the end that it gets later is its own, and nothing else may follow it.
    at = {**GOOD, "offset": 30, "skip": 0}
    assert read(at, b"1 | a\n" * 5) == read(at, (b"1 | a\n" * 5)[:-1]) == []
    assert read(at, b"1 | a\n" * 7) == [({"a": 1.0}, 1)] * 2
    with pytest.raises(InputError, match="where no line begins"):
        read(at, b"1 | a\n" * 4 + b"1 | aaa\n")


def test_positions_among_examples() -> None:
    examples = [({"a": i}, i) for i in range(5)]
    for chunk in op.stream(examples).batches(2):
        assert list(op.stream(examples, start=chunk.position)) == examples[chunk.position.example :]
    with pytest.raises(InputError, match="end 2 before that place"):
        list(op.stream(examples, start=Position(example=7)))
    with pytest.raises(ParameterError, match="a place in a file"):
        op.stream(examples, start=Position(offset=3, example=2))


@pytest.mark.parametrize("seed", range(1))
def test_a_table_is_resumed_within_its_batches(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of Parquet and Arrow are counted, not the batches that they happen to come in."""
    from onepass.streams import arrow

    sizes = np.random.default_rng(seed).integers(1, 60, size=4).tolist()
    for format in ("parquet", "arrow"):
        (tmp_path / format).mkdir()
        files = Files(format, made(format, "plain", tmp_path / format), tmp_path / format)
        whole = files.read(WAYS[0])[0]
        for given, taken in itertools.product(sizes, sizes):
            monkeypatch.setattr(arrow, "TOGETHER", given)
            positions = [chunk.position for chunk in files.stream(WAYS[1]).batches(5)]
            monkeypatch.setattr(arrow, "TOGETHER", taken)
            for at in positions:
                assert files.read(WAYS[1], at)[0] == whole[at.example :]


def test_lines_are_counted_in_each_file(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.vw").write_text("1 | a\nx | b\n1 | c\n")
    paths = [tmp_path / "a.vw", tmp_path / "b.vw"]
    assert len(list(op.stream(paths, on_error="skip", quarantine=tmp_path / "q"))) == 4
    assert re.findall(r"(\w)\.vw:(\d)", (tmp_path / "q").read_text()) == [("a", "2"), ("b", "2")]
    with pytest.raises(InputError, match="ends 3 rows before that place"):  # though another file follows
        list(op.stream(paths, on_error="skip", start={**GOOD, "skip": 4, "example": 5}))


def test_a_position_remembers_the_kind_of_labels_behind_rows_that_have_none(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"label": "x", "a": 1}\n' + '{"a": 2}\n' * 4 + '{"label": 1, "a": 3}\n')
    stream = op.stream(tmp_path / "a.jsonl", on_error="skip", block_size=1)
    at = [chunk.position for chunk in stream.batches(1)]
    assert [each.labels for each in at] == ["strings"] * 5 and stream.skipped == 1
    again = op.stream(tmp_path / "a.jsonl", on_error="skip", block_size=1, start=at[1])
    assert [chunk.position.labels for chunk in again.batches(1)] == ["strings"] * 3 and again.skipped == 1


JSON_LINES = {
    '{"label": 1, "y": 2}': (1, "which is the label, label or y"),
    '{"label": -9223372036854775809}': (1, "at most 64 bits"),
    '{"é": }': (7, "not JSON: Expecting value"),
    '{"label": 1, "w": "2"}': (1, "the weight 'w' must be a finite number >= 0, got '2'"),
    '{"label": 1, "w": true}': (1, "the weight 'w' must be a finite number >= 0, got True"),
    '{"label": 1, "w": -1}': (1, "the weight 'w' must be a finite number >= 0, got -1"),
    '{"label": 1, "w": 1%s}' % ("0" * 400): (1, "the weight 'w' must be a finite number >= 0"),
}


@pytest.mark.parametrize("line", JSON_LINES)
def test_what_is_wrong_with_a_line_of_json_and_where(line: str) -> None:
    column, what = JSON_LINES[line]
    with pytest.raises(LineError, match=what) as caught:
        list(op.stream(io.BytesIO(f"{line}\n".encode()), format="jsonl", weight="w"))
    assert caught.value.column == column
