"""The labels of a stream are of one kind, and each is what the file says, whatever comes in the same block."""

from __future__ import annotations

import datetime
import io
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from support.extras import require_extra

import onepass as op
from onepass.errors import InputError, LineError
from onepass.streams import Position

pa = require_extra("pyarrow")

KINDS: dict[str, list[Any]] = {
    "numbers": [1, 2.5, -3, 2**53 + 1],
    "strings": ["1", "x", ""],
    "truth values": [True, False],
}
LARGE = [2**53 + 1, 2**53 + 2, 2**53 + 3, -(2**63), 2**63 - 1]


def jsonl(labels: list[Any]) -> bytes:
    return b"".join(json.dumps({"label": label, "a": 1}).encode() + b"\n" for label in labels)


@pytest.mark.parametrize("block", [1, 60, None])
@pytest.mark.parametrize(("first", "other"), list(itertools.permutations(KINDS, 2)))
def test_json_labels_of_another_kind_are_malformed(first: str, other: str, block: int | None) -> None:
    labels = [None, *KINDS[first], KINDS[other][0], None, *KINDS[first], *KINDS[other]]
    good = [
        label
        for label in labels
        if label is None
        or label not in KINDS[other]
        or type(label) is not type(KINDS[other][KINDS[other].index(label)])
    ]

    def stream(on_error: str, start: Position | None = None) -> Any:
        return op.stream(io.BytesIO(jsonl(labels)), format="jsonl", block_size=block, on_error=on_error, start=start)

    read = stream("skip")
    assert [y for _, y in read] == good
    assert read.skipped == len(labels) - len(good) > 1
    with pytest.raises(LineError, match=f"the labels before are {first}, and .* is one of {other}") as error:
        list(stream("raise"))
    assert error.value.line == 2 + len(KINDS[first])
    for chunk in stream("skip").batches(1):  # a resumed stream has not seen the first label
        assert [y for _, y in stream("skip", chunk.position)] == good[chunk.position.example :]


LARGE_LABELS = [
    (format, others)
    for format, others in itertools.product(("jsonl", "parquet", "arrow"), ([], [None], [0.5], [None, 0.5]))
    if format == "jsonl" or 0.5 not in others  # a column has one type
]


@pytest.mark.parametrize(("format", "others"), LARGE_LABELS, ids=str)
def test_large_whole_labels_stay_apart(format: str, others: list[Any], tmp_path: Path) -> None:
    labels = LARGE + others
    if format == "jsonl":
        (tmp_path / "a.jsonl").write_bytes(jsonl(labels))
    else:
        write(tmp_path / f"a.{format}", pa.array(labels, pa.int64()))
    for size, block in itertools.product((None, 1, 3, 5), (1, 60, None)):
        chunks = list(op.stream(tmp_path / f"a.{format}", block_size=block).batches(size))
        assert [y for chunk in chunks for y in chunk.answers()] == labels


def write(path: Path, labels: Any) -> None:
    from pyarrow import parquet

    table = pa.table({"label": labels, "a": [1.0] * len(labels)})
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)


COLUMNS = {
    "whole": (pa.array([1, 2]), "numbers"),
    "small": (pa.array([1, 2], pa.uint8()), "numbers"),
    "decimal": (pa.array([1.5, 2.0]), "numbers"),
    "text": (pa.array(["1", "2"]), "strings"),
    "large text": (pa.array(["1", "2"], pa.large_string()), "strings"),
    "coded text": (pa.array(["1", "2"]).dictionary_encode(), "strings"),
    "truth": (pa.array([True, False]), "truth values"),
    "nothing": (pa.array([None, None]), ""),
}


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_tables_whose_labels_are_of_different_kinds(format: str, tmp_path: Path) -> None:
    """Numbers widen; anything else would become other classes."""
    files = [tmp_path / f"{name}.{format}" for name in "123"]
    for (a, (one, kind)), (b, (two, other)) in itertools.product(COLUMNS.items(), COLUMNS.items()):
        for path, column in zip(files, (pa.array([None, None]), one, two), strict=True):
            write(path, column)
        expected = [None, None, *one.to_pylist(), *two.to_pylist()]
        chunks = op.stream(files).batches(2)
        met = [next(chunks), next(chunks)]
        if not kind or not other or kind == other:
            assert [y for _, y in op.stream(files)] == expected, (a, b)
            continue
        with pytest.raises(InputError) as error:
            next(chunks)
        assert f"{files[2]}: the label 'label' holds {other}" in str(error.value)
        assert f"but {kind} in {files[1]}" in str(error.value)
        with pytest.raises(InputError, match=f"but {kind} in the rows before"):
            list(op.stream(files, start=met[1].position))


def test_columns_that_can_be_no_labels(tmp_path: Path) -> None:
    for column in (
        pa.array([datetime.date(2024, 1, 1)]), pa.array([b"x"]), pa.array([[1]]),
        pa.array([datetime.timedelta(1)]), pa.array([{"a": 1}]),
    ):  # fmt: skip
        write(tmp_path / "a.parquet", column)
        with pytest.raises(InputError, match=r"the label 'label' holds .*, not numbers, strings or truth values"):
            list(op.stream(tmp_path / "a.parquet"))


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("where", ["label", "id", "s"])
def test_texts_of_tables_that_are_none(format: str, where: str, tmp_path: Path) -> None:
    """NumPy's strings lose a NUL at their end: "x\0" would be learned as "x"; and Arrow does not look at UTF-8."""
    from pyarrow import parquet

    texts = [b"x", b"x\0", b"\xff", b"y", b"\xed\xa0\x80"]
    wrong = pa.Array.from_buffers(pa.string(), len(texts), pa.array(texts).buffers())
    columns = {name: pa.array(["q"] * len(texts)) for name in ("label", "id", "s")} | {where: wrong}
    table = pa.table(columns | {"a": [1.0, 2.0, 3.0, float("inf"), 5.0]})
    path = tmp_path / f"a.{format}"
    if format == "parquet":
        parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(LineError, match="a NUL byte") as error:
        list(op.stream(path, id="id"))
    assert error.value.line == 2
    quarantine = tmp_path / "bad"
    stream = op.stream(path, id="id", on_error="skip", quarantine=quarantine)
    assert ([x["a"] for x, _ in stream], stream.skipped) == ([1.0], 4)
    said = [line.split(b"\t")[2] for line in quarantine.read_bytes().splitlines()]
    column = f"column {where!r}: ".encode()
    assert said == [
        column + b"a NUL byte", column + b"not UTF-8 text", b"a number is infinite, or a weight below 0",
        column + b"not UTF-8 text",
    ]  # fmt: skip
