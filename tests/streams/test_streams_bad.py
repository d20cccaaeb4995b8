"""Malformed input is never learned: a named error with file, line, column and text; or left out, counted and kept."""

from __future__ import annotations

import errno
import gzip
import os
import re

import numpy as np
import pytest
from support.command import onepass as command
from support.extras import require_extra

import onepass as op
from onepass.errors import InputError, LineError, OnepassError, ParameterError
from onepass.models.linear import LinearModel

require_extra("pyarrow")

# format, a line that is wrong, its column, what is said of it.
BAD_LINES = [
    ("vw", b"1 | a:nan", 7, "must be a number, got 'nan'"),
    ("vw", b"1 | a:-inf", 7, "must be a number, got '-inf'"),
    ("vw", b"1 | a:1e999", 7, "'1e999' is too large"),
    ("vw", b"1 | a:1x", 7, "must be a number, got '1x'"),
    ("vw", b"1 | a:0x10", 7, "must be a number"),
    ("vw", b"1 | a:1:2", 7, "must be a number, got '1:2'"),
    ("vw", b"1 | a: b", 7, "no value after ':'"),
    ("vw", "1 | é a:1x".encode(), 9, "must be a number"),
    ("vw", b"1 | a\0b", 6, "a control character"),
    ("vw", b"1 | caf\xe9", 8, "not UTF-8"),
    ("vw", b"1 | \xed\xa0\x80", 5, "not UTF-8"),
    ("vw", b"abc | a", 1, "the label must be a number, got 'abc'"),
    ("vw", b"nan | a", 1, "the label must be a number"),
    ("vw", b"1:2:0.5 | a", 1, "the label must be a number"),
    ("vw", b"1 -2 | a", 3, "importance must be >= 0"),
    ("vw", b"1 2 3 4 | a", 7, "at most a label, an importance and an initial prediction"),
    ("vw", b"1 2 3", 6, "expected '|'"),
    ("vw", b"1 |a:x b", 6, "a namespace's scale must be a number"),
    ("vw", b"1 |:2 b", 4, "without a namespace"),
    ("vw", b"1 | a:1e300 b |n:1e300 c:1e300", 1, "too large"),
    ("svmlight", b"abc 1:2", 1, "the label must be a number, got 'abc'"),
    ("svmlight", b"1:2 3:4", 1, "must begin with a label"),
    ("svmlight", b"1 2:nan", 5, "a value must be a number, got 'nan'"),
    ("svmlight", b"1 2:1e999", 5, "too large"),
    ("svmlight", b"1 2147483647:1", 3, "an index must be at most 2147483646"),
    ("svmlight", b"1 99999999999999999999:1", 3, "an index must be at most"),
    ("svmlight", b"1 -3:1", 3, "whole number >= 0"),
    ("svmlight", b"1 a:1", 3, "whole number >= 0, got 'a'"),
    ("svmlight", b"1 3", 3, "expected index:value, got '3'"),
    ("svmlight", b"1 3:", 5, "must be a number"),
    ("svmlight", b"1 3:4:5", 6, "expected a blank"),
    ("svmlight", b"1 3:4\0", 6, "expected a blank"),
    ("svmlight", b"1 qid:x 3:4", 7, "qid must be a whole number"),
    ("svmlight", b"1,2 3:4", 1, "the label must be a number, got '1,2'"),
    ("csv", b"1,2", 1, "expected 3 columns, got 2"),
    ("csv", b"1,2,x,9", 1, "expected 3 columns, got 4"),
    ("csv", b"1,abc,x", 1, "column 'a' must be a number"),
    ("csv", b"1,1e999,x", 1, "column 'a' must be a finite number"),
    ("csv", b"1,inf,x", 1, "column 'a' must be a finite number"),
    ("csv", b"abc,1,x", 1, "column 'label' must be a number"),
    ("csv", b"1,2,\xff", 1, "not UTF-8"),
    ("csv", b"1,2,x\0y", 1, "a NUL byte"),
    ("jsonl", b'{"label": 1, "a": }', 19, "not JSON"),
    ("jsonl", b'{"label": 1, "a": NaN}', 1, "NaN is not a number"),
    ("jsonl", b'{"label": 1, "a": 1e999}', 1, "'a' must be a finite number"),
    ("jsonl", b'{"label": 1, "a": [1]}', 1, "'a' is a list"),
    ("jsonl", b"[1, 2]", 1, "expected an object"),
    ("jsonl", b'{"label": 1, "a": "\xff"}', 20, "not UTF-8"),
    ("jsonl", b'{"label": 1, "a": "\0"}', 20, "a NUL byte"),
    ("jsonl", b'{"label": 1, "a": ' + b"9" * 5000 + b"}", 1, "a number of more than 4,300 digits"),
    ("jsonl", b'{"label": ' + b"9" * 5000 + b"}", 1, "a number of more than 4,300 digits"),
    ("jsonl", b'{"label": 1, "a": ' + b"9" * 400 + b"}", 1, "'a' must be a finite number"),
    ("jsonl", b'{"label": 18446744073709551616}', 1, "a whole number of at most 64 bits"),
    ("jsonl", b'{"label": -1e999}', 1, "the label 'label' must be a finite number or a string"),
    ("jsonl", b'{"label": {"x": 1}, "a": 1}', 1, "the label 'label' must be a finite number or a string, got {'x': 1}"),
    ("jsonl", b'{"label": 1, "a": "\\ud800"}', 1, "half of a surrogate pair"),
    ("jsonl", b'{"label": "\\uDC00", "a": 1}', 1, "half of a surrogate pair"),
    ("jsonl", b'{"label": 1, "in": {"\\udbff": 1}}', 1, "half of a surrogate pair"),
    ("jsonl", b'{"label": 1, "a": "\\u0000"}', 1, "a NUL character"),
    ("jsonl", b'{"label": 1, "a": "\xed\xa0\x80"}', 20, "not UTF-8"),
    ("jsonl", b'\xff\xfe{"label": 1}', 1, "not UTF-8"),
    ("jsonl", b'{"label": "1", "a": 1}', 1, "the labels before are numbers, and '1' is one of strings"),
    ("jsonl", b'{"label": true, "a": 1}', 1, "the labels before are numbers, and True is one of truth values"),
    ("jsonl", b'{"label": 1, "a": 1, "a": 1}', 1, "two values are called 'a'"),
    ("jsonl", b'{"label": 1, "in": {"b": 1, "b": 2}}', 1, "two values are called 'b'"),
    ("jsonl", b'{"label": 1, "in": {"b": 1}, "in.b": 2}', 1, "two values are called 'in.b'"),
    ("jsonl", b'{"label": 1, "a": ' + b'{"a":' * 100 + b"1" + b"}" * 101, 1, "nested too deep"),
    ("jsonl", b'{"label": 1, "a": ' + b"[" * 9999 + b"]" * 9999 + b"}", 1, "nested too deep"),
    ("jsonl", b"null", 1, "expected an object"),
]
GOOD = {
    "vw": [b"1 | a:1", b"-1 | b"],
    "svmlight": [b"1 1:1", b"-1 2:1 3:4"],
    "csv": [b"1,2,x", b"0,3.5,y"],
    "jsonl": [b'{"label": 1, "a": 2}', b'{"label": 0, "b": "x"}'],
}
HEADER = {"csv": b"label,a,b\n"}


def ids(case) -> str:
    return f"{case[0]}-{case[1][:24]!r}"


@pytest.mark.parametrize("case", BAD_LINES, ids=ids)
def test_a_bad_line_stops_or_is_left_out(case, tmp_path):
    format, bad, column, what = case
    one, two = GOOD[format]
    path = tmp_path / "some.data"
    path.write_bytes(HEADER.get(format, b"") + b"\n".join([one, bad, two, two, bad]) + b"\n")
    line = 2 + (format in HEADER)
    clean = tmp_path / "clean.data"
    clean.write_bytes(HEADER.get(format, b"") + b"\n".join([one, two, two]) + b"\n")
    good = list(op.stream(clean, format=format))
    for size in (None, 1, 100):
        seen = 0
        with pytest.raises(LineError) as error:
            for chunk in op.stream(path, format=format).batches(size):
                seen += len(chunk)
        assert seen == 1, "the good line before it was handed over"
        assert (error.value.path, error.value.line, error.value.column) == (str(path), line, column)
        assert what in str(error.value)
        assert f"some.data:{line}:{column}: " in str(error.value)
        assert bad.decode("utf-8", "replace")[:20] in error.value.text
        quarantine = tmp_path / "bad.tsv"
        stream = op.stream(path, format=format, on_error="skip", quarantine=quarantine)
        chunks = list(stream.batches(size))
        assert (sum(map(len, chunks)), stream.skipped) == (3, 2)
        kept = [entry.split(b"\t", 3) for entry in quarantine.read_bytes().splitlines()]
        assert [entry[0].decode() for entry in kept] == [f"{path}:{line}", f"{path}:{line + 3}"]
        assert [entry[3] for entry in kept] == [bad, bad]
    assert list(op.stream(path, format=format, on_error="skip")) == good


def test_resuming_counts_a_bad_line_once(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 | a\n1 x | b\n1 | c\n1 | d:nan\n1 | e\n| :\n")
    position, skipped, names = None, [], []
    for _ in range(4):
        stream = op.stream(path, on_error="skip", start=position, quarantine=tmp_path / "q")
        for chunk in stream.batches(1):
            position = chunk.position
            names += stream.columns[-1:]
            break
        skipped.append(stream.skipped)
    whole = op.stream(path, on_error="skip", quarantine=tmp_path / "r")
    assert sum(map(len, whole.batches())) == 3
    assert whole.skipped == 3
    assert (tmp_path / "q").read_text() == (tmp_path / "r").read_text()


def test_line_ends_and_marks(tmp_path):
    """CRLF, a byte order mark, a last line without an end, empty lines: nothing of them is data."""
    for format, lines in GOOD.items():
        path = tmp_path / f"a.{format}"
        path.write_bytes(HEADER.get(format, b"") + b"\n".join(lines) + b"\n")
        plain = list(op.stream(path, format=format))
        header = HEADER.get(format, b"").replace(b"\n", b"\r\n")
        path.write_bytes(b"\xef\xbb\xbf" + header + b"\r\n\r\n".join(lines))
        assert list(op.stream(path, format=format)) == plain, format
        for block in (1, 7, 30):
            assert list(op.stream(path, format=format, block_size=block)) == plain, format


def test_duplicate_features_are_added_up(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 |n a:1 b a:2.5 |n a\n")
    assert list(op.stream(path)) == [({"n^a": 4.5, "n^b": 1.0}, 1)]
    path.write_text("1 3:1 1:1 3:2\n")
    assert list(op.stream(path, format="svmlight")) == [({"3": 3.0, "1": 1.0}, 1)]


@pytest.mark.parametrize("format", ["vw", "svmlight", "csv", "jsonl", "parquet", "arrow"])
def test_empty_files(tmp_path, format):
    path = tmp_path / f"empty.{format}"
    path.write_bytes(HEADER.get(format, b""))
    if format in ("parquet", "arrow"):
        with pytest.raises(InputError, match=f"not a whole {format} file"):
            list(op.stream(path))
    else:
        assert list(op.stream(path)) == []
        assert list(op.stream(path).batches(10)) == []


@pytest.mark.parametrize("format", ["vw", "svmlight", "csv", "jsonl"])
def test_truncated_gzip(tmp_path, format):
    data = HEADER.get(format, b"") + b"\n".join(GOOD[format] * 5000) + b"\n"
    packed = gzip.compress(data)
    path = tmp_path / f"a.{format}.gz"
    for end in (len(packed) // 2, len(packed) - 1):
        path.write_bytes(packed[:end])
        with pytest.raises(InputError, match="truncated"):
            list(op.stream(path).batches())
    path.write_bytes(packed[: len(packed) // 2] + b"\xff" * 50 + packed[len(packed) // 2 + 50 :])
    with pytest.raises(InputError):
        list(op.stream(path).batches())


def test_truncated_zstd_and_tables(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    with pa.CompressedOutputStream(str(tmp_path / "a.vw.zst"), "zstd") as file:
        file.write(b"1 | a b:2\n" * 100_000)
    parquet.write_table(pa.table({"label": [1, 2], "a": [1.0, 2.0]}), tmp_path / "a.parquet")
    for name in ("a.vw.zst", "a.parquet"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(InputError):
            list(op.stream(path).batches())


@pytest.mark.parametrize("format", ["vw", "svmlight", "jsonl", "csv"])
def test_a_line_without_end_has_a_bound(tmp_path, format):
    """A gigabyte without a line end must not become a gigabyte of memory."""
    path = tmp_path / "a.data"
    one, two = GOOD[format]
    long = b"x" * 3_000_000
    path.write_bytes(HEADER.get(format, b"") + b"\n".join([one, long, two]) + b"\n")
    options = {"format": format, "max_line": 1_000_000, "block_size": 100_000}
    with pytest.raises(LineError, match=r"a line of 3,000,000 bytes, longer than max_line") as error:
        list(op.stream(path, **options))
    assert error.value.line == 2 + (format in HEADER)
    stream = op.stream(path, on_error="skip", **options)
    assert (len(list(stream)), stream.skipped) == (2, 1)
    path.write_bytes(HEADER.get(format, b"") + b"\n".join([one, two, long]))
    stream = op.stream(path, on_error="skip", **options)
    assert (len(list(stream)), stream.skipped) == (2, 1)


@pytest.mark.parametrize("format", ["vw", "svmlight", "jsonl", "csv", "tsv"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_the_longest_line_is_that_however_a_file_is_cut(tmp_path, format, end):
    """Lines of just so many bytes and of one more: in blocks that hold many of them, one, or none."""
    line = {"vw": b"1 | %s", "svmlight": b"1 1:%s", "jsonl": b'{"label": 1, "a": %s}', "csv": b"1,%s", "tsv": b"1\t%s"}[
        format
    ]
    longest = 400 + (end == b"\r\n" and format not in ("csv", "tsv"))  # there a carriage return is no part of a line
    lengths = [24, 400, 401, 30, 1500, 400, 402, 24, 402]
    lines = [line % (b"0." + b"1" * (length - len(line))) for length in lengths]
    header = {"csv": b"label,a" + end, "tsv": b"label\ta" + end}.get(format, b"")
    path = tmp_path / "a.data"
    found = set()
    for last in (b"", end):
        path.write_bytes(header + end.join(lines) + last)
        for size in (1, 7, 399, 402, 5000, None):
            quarantine = tmp_path / "q"
            options = {"format": format, "max_line": longest, "block_size": size, "on_error": "skip"}
            stream = op.stream(path, quarantine=quarantine, **options)
            assert (sum(map(len, stream.batches())), stream.skipped) == (5, 4), (size, last)
            found.add(quarantine.read_bytes().replace(end + b"\n", b"\n"))
    text = b"".join(sorted(found, key=len)[0].splitlines(keepends=True))
    numbers = [int(entry.split(b"\t")[0].rsplit(b":", 1)[1]) - bool(header) for entry in text.splitlines()]
    assert numbers == [3, 5, 7, 9]
    assert b"a line of 1,50" in text and lines[4][:200] in text and lines[4][:201] not in text
    assert len({re.sub(rb"of [\d,]+ bytes", b"", each) for each in found}) == 1, "the same text, however it is cut"


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"cannot read .*nothing.vw: No such file"):
        list(op.stream(tmp_path / "nothing.vw"))
    with pytest.raises(InputError, match="cannot read"):
        list(op.stream(tmp_path, format="vw"))
    path = tmp_path / "secret.vw"
    path.write_text("1 | a\n")
    path.chmod(0)
    if os.geteuid() == 0:  # root reads everything: let the system refuse by hand

        def refuse(*args, **kwargs):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InputError, match=r"cannot read .*secret.vw: Permission denied"):
        list(op.stream(path).batches())


def test_other_columns_in_another_file(tmp_path):
    (tmp_path / "1.csv").write_text("label,a\n1,2\n")
    (tmp_path / "2.csv").write_text("label,b\n1,2\n")
    with pytest.raises(InputError, match=r"2.csv has the columns label, b; expected label, a"):
        list(op.stream(str(tmp_path / "*.csv")))
    (tmp_path / "3.csv").write_text("label,a,a\n1,2,3\n")
    with pytest.raises(InputError, match="two columns are called 'a'"):
        list(op.stream(tmp_path / "3.csv"))


def test_infinity_in_parquet(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"label": [1, 0, 1], "a": [1.0, float("inf"), 3.0]}), tmp_path / "a.parquet")
    with pytest.raises(LineError, match=r"a.parquet:2:1: a number is infinite"):
        list(op.stream(tmp_path / "a.parquet"))
    stream = op.stream(tmp_path / "a.parquet", on_error="skip")
    assert ([y for _, y in stream], stream.skipped) == ([1, 1], 1)


def test_a_model_is_left_as_it_was(tmp_path):
    """What stood before the bad line is learned, nothing of the line itself."""
    path = tmp_path / "a.vw"
    path.write_text("1 | a\n-1 | b\n1 | c d:nan\n")
    model, expected = LinearModel("pa1"), LinearModel("pa1")
    for x, y in (({"a": 1.0}, 1), ({"b": 1.0}, -1)):
        expected.learn_one(x, y)
    with pytest.raises(OnepassError):
        for chunk in op.stream(path).batches():
            model.learn_many(chunk.X, chunk.y)
    assert model.named_weights() == expected.named_weights()
    assert model.names == ["a", "b"]


def test_pairs_have_no_place_for_an_importance(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 1 | a\n0 | b\n0 2.5 | b\n")
    with pytest.raises(InputError, match=r"example 3 has an importance \(2.5\).*read batches.*as weight"):
        list(op.stream(path).chunks(2))
    path.write_text("1 1 | a\n0 1 | b\n")  # all count alike
    assert [y.tolist() for _, y in op.stream(path).chunks(1)] == [[1], [0]]
    (tmp_path / "a.csv").write_text("y,w,a\n1,1,2\n0,0,3\n")
    with pytest.raises(InputError, match=r"example 2 has an importance \(0\)"):
        list(op.stream(tmp_path / "a.csv", weight="w").chunks())


def test_prequential_counts_the_importances_of_a_stream(tmp_path):
    """From the stream itself and from its batches alike; chunks of pairs are refused, not counted as 1."""
    path = tmp_path / "a.vw"
    path.write_text("1 2 | a\n0 | b:2\n0 2.5 | a b\n1 0 | a:3\n")
    runs = [op.prequential(op.LinearModel("pa1"), rows) for rows in (op.stream(path), op.stream(path).batches(2))]
    assert [run.weight for run in runs] == [5.5, 5.5] and runs[0].value == runs[1].value
    with pytest.raises(InputError, match="example 1 has an importance"):
        op.prequential(op.LinearModel("pa1"), op.stream(path).chunks(2))


def test_an_initial_prediction_is_never_forgotten(tmp_path):
    """VW's prediction is base + w·x; pairs (x, y) and other formats have no place for it and say so."""
    path = tmp_path / "a.vw"
    path.write_text("1 | a\n0 1 0.5 | b\n")
    for read in (lambda: list(op.stream(path)), lambda: list(op.stream(path).chunks())):
        with pytest.raises(InputError, match=r"example 2 has an initial prediction \(0.5"):
            read()
    for _ in range(2):  # batches have it, also when they come from a cache
        assert next(op.stream(path, cache=tmp_path / "cache").batches()).base.tolist() == [0.0, 0.5]
    done = command("convert", "a.vw", "b.svm", cwd=tmp_path)
    assert done.returncode == 1 and "initial prediction" in done.stderr


CROSSED = {
    "a.vw": ("1 | a:1 b:2", "0 | a:1e200 b:1e200 c:1", "1 | b:3 d:1", ""),
    "a.csv": ("1,2,1", "1e200,1e200,0", "3,,1", "a,b,y\n"),
    "a.jsonl": ('{"a": 1, "b": 2, "y": 1}', '{"a": 1e200, "b": 1e200, "c": 1, "y": 0}', '{"b": 3, "d": 1, "y": 1}', ""),
}


@pytest.mark.parametrize("bits", [None, 8])
@pytest.mark.parametrize("name", CROSSED)
def test_products_that_overflow_are_a_bad_line(name, bits, tmp_path):
    """What is learned is what a stream without that line teaches: names too."""
    first, wrong, last, header = CROSSED[name]
    path, without = tmp_path / name, tmp_path / f"without-{name}"
    path.write_text(f"{header}{first}\n{wrong}\n{last}\n{first}\n")
    without.write_text(f"{header}{first}\n{last}\n{first}\n")
    line = 3 if header else 2
    with pytest.raises(LineError, match=rf"{name}:{line}:1: .*too large"):
        list(op.stream(path, interactions="::", hash_bits=bits).batches())
    quarantine = tmp_path / "q"
    read = op.stream(path, interactions="::", hash_bits=bits, on_error="skip", quarantine=quarantine)
    learned = []
    for each in (read, op.stream(without, interactions="::", hash_bits=bits)):
        model = LinearModel("pa1", hash_bits=bits)
        for chunk in each.batches():
            model.learn_many(chunk.X, chunk.y)
        config, arrays = model.state()
        learned.append((config, {part: array.tobytes() for part, array in arrays.items()}))
    assert learned[0] == learned[1] and read.skipped == 1
    assert quarantine.read_text().startswith(f"{path}:{line}\t") and quarantine.read_text().endswith(f"\t{wrong}\n")


def test_products_of_a_table_that_overflow_are_a_bad_row(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [1.0, np.inf, 1e200, 2.0], "y": [0, 1, 0, 1]}), tmp_path / "a.parquet")
    read = op.stream(tmp_path / "a.parquet", interactions="::", on_error="skip", quarantine=tmp_path / "q")
    (chunk,) = read.batches(10)
    assert chunk.y.tolist() == [0, 1] and read.skipped == 2
    assert [line.split("\t")[0].rpartition(":")[2] for line in (tmp_path / "q").read_text().splitlines()] == ["2", "3"]


@pytest.mark.parametrize("place", ["nowhere/c", "."])
def test_a_cache_that_cannot_be_written_is_named(tmp_path, place):
    path = tmp_path / "a.vw"
    path.write_text("1 | a\n")
    with pytest.raises(InputError, match=r"(write|read) the cache .*: (No such file|Is a directory)"):
        list(op.stream(path, cache=tmp_path / place).batches())
    assert not list(tmp_path.glob("**/*unfinished"))


def test_a_cache_is_a_path(tmp_path):
    with pytest.raises(ParameterError, match="path of a file, or None for none, got False"):
        op.stream(tmp_path / "rows.vw", cache=False)
