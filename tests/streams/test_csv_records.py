"""Rows + skipped + header = the records of a CSV file, in any dialect, however it is cut; and time linear in the file.

`records_of` says in Python what native/parse/csv_records.hpp says: where records end, and which of them are malformed.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.command import onepass as command
from support.extras import require_extra

import onepass as op
from onepass import _native
from onepass.errors import InputError, LineError

require_extra("pyarrow")

ROW, TEXT_AFTER_QUOTE, OPEN_QUOTE, TOO_LONG = range(4)
LONGEST = 1 << 24
PIECES = [b"1", b"2.5", b"a b", b'5" pipe', b'""', b'"q"', b'"x,y"', b'"l\nm"', b'"l\r\nm"', b'"l\rm"', b'"say ""hi"""',
          b"", b'"open', b'"a"b', b'"a" ', b' "a"', b'"', b'"""', b"caf\xc3\xa9", b"NA",
          b"a text of more than 24 bytes"]  # fmt: skip
SOUND = [piece for piece in PIECES if piece not in (b'"open', b'"a"b', b'"a" ', b'"', b'"""')]


@dataclass
class Record:
    begin: int
    end: int
    next: int
    kind: int


def line_end(text: bytes, start: int) -> int:
    ends = [at for at in (text.find(b"\n", start), text.find(b"\r", start)) if at >= 0]
    return min(ends, default=len(text))


def end_of_record(text: bytes, at: int, separator: bytes, longest: int) -> tuple[int, int]:
    """Where the line of the record that begins there ends, and what kind of record it is."""
    begin = at
    while True:
        if text[at : at + 1] == b'"':
            closing = text.find(b'"', at + 1)
            while closing >= 0 and text[closing + 1 : closing + 2] == b'"':
                closing = text.find(b'"', closing + 2)
            broken = closing < 0 or closing - begin > longest
            if broken or text[closing + 1 : closing + 2] not in (separator, b"\n", b"\r", b""):
                end = line_end(text, at + 1)
                return end, TEXT_AFTER_QUOTE if 0 <= closing < end else OPEN_QUOTE
            at = closing + 1
        else:
            while at < len(text) and text[at : at + 1] not in (separator, b"\n", b"\r"):
                at += 1
        if text[at : at + 1] != separator:
            return at, ROW
        at += 1


def records_of(text: bytes, separator: bytes = b",", longest: int = LONGEST) -> list[Record]:
    found, at = [], 0
    while at < len(text):
        end, kind = end_of_record(text, at, separator, longest)
        after = end + (2 if text[end : end + 2] == b"\r\n" else end < len(text))
        found.append(Record(at, end, after, TOO_LONG if end - at > longest else kind))
        at = after
    return found


def line_ends(text: bytes) -> int:
    return text.count(b"\n") + text.replace(b"\r\n", b"").count(b"\r")


def generated(g: np.random.Generator, pieces: list[bytes], separator: bytes = b",", columns: int = 3) -> bytes:
    """Some lines: their ends are all alike or mixed, a few lines are empty, a few have other numbers of columns."""
    ends = [[b"\n"], [b"\r\n"], [b"\r"], [b"\n", b"\r\n", b"\r"]][g.integers(4)]
    text = b""
    for _ in range(g.integers(1, 12)):
        width = columns if g.random() < 0.9 else int(g.integers(1, 5))
        line = separator.join(pieces[g.integers(len(pieces))] for _ in range(width))
        text += b"" if g.random() < 0.1 else line
        text += ends[g.integers(len(ends))]
    return text.rstrip(b"\r\n") if g.random() < 0.3 else text


@pytest.mark.parametrize("longest", [LONGEST, 20])
def test_records_are_what_their_definition_says(longest):
    """And wherever a block ends, what is cut off before is a part of them."""
    g = np.random.default_rng(1)
    kinds = set()
    for number in range(1500):
        text = generated(g, PIECES)
        if number % 3 == 0:  # anything at all
            text = b"".join(b'",\n\ra'[i : i + 1] for i in g.integers(0, 5, size=g.integers(1, 90)))
        expected = records_of(text, longest=longest)
        there = [record for record in expected if record.end > record.begin]
        begins, ends, lines, found = _native.list_records(text, len(text), ",", longest, True, 1000)
        assert begins.tolist() == [record.begin for record in there], text
        assert ends.tolist() == [record.end for record in there], text
        assert found.tolist() == [record.kind for record in there], text
        assert lines.tolist() == [line_ends(text[: record.begin]) for record in there], text
        assert _native.count_line_ends(text, len(text)) == line_ends(text)
        kinds.update(found.tolist())
        for size in range(len(text) + 1):
            cut, records, lines_cut, well_quoted, endless = _native.cut_records(text, size, ",", longest, False)
            before = [record for record in expected if record.next <= cut]
            assert cut == max((record.next for record in before), default=0), (text, size)
            assert records == sum(record.end > record.begin for record in before)
            assert lines_cut == line_ends(text[:cut])
            assert well_quoted == all(record.kind == ROW for record in before)
            assert endless or size - cut <= longest + 2, "it is known by then"
    assert kinds == ({ROW, TEXT_AFTER_QUOTE, OPEN_QUOTE} if longest == LONGEST else {*range(4)})


def test_records_are_those_of_python():
    """Where every quote is closed, csv.reader(strict=True) finds the same records, with the same fields."""
    g = np.random.default_rng(2)
    same = 0
    for _ in range(1500):
        text = generated(g, PIECES)
        begins, ends, _, kinds = _native.list_records(text, len(text), ",", LONGEST, True, 1000)
        ours = [text[begin:end].decode() for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        try:
            theirs = list(filter(None, csv.reader(io.StringIO(text.decode(), newline=""), strict=True)))
        except csv.Error:
            assert kinds.any(), text
            continue
        assert not kinds.any(), text
        assert [next(csv.reader([record], strict=True)) for record in ours] == theirs, text
        same += 1
    assert same > 100


# -- streams ----------------------------------------------------------------------------------------------------------

NAMES = ["a", "b", "c"]
WAYS = [
    {"block_size": 1, "threads": 1},
    {"block_size": 7, "threads": 3},
    {"block_size": 64, "threads": 1},
    {"threads": 3},
]


def judged(text: bytes, header: bool, separator: bytes, longest: int) -> tuple[list[dict[str, float]], list[int], int]:
    """The rows of a file of strings, the lines of its malformed records, and how many records it has."""
    rows, bad = [], []
    there = [record for record in records_of(text, separator, longest) if record.end > record.begin]
    for record in there[header:]:
        line = text[record.begin : record.end].decode()
        fields = next(csv.reader([line], delimiter=separator.decode())) if record.kind == ROW else []
        if len(fields) == len(NAMES):
            known = zip(NAMES, fields, strict=True)
            rows.append({f"{name}={value}": 1.0 for name, value in known if value not in ("", "NA")})
        else:
            bad.append(1 + line_ends(text[: record.begin]))
    return rows, bad, len(there)


def conserved(text: bytes, header: bool, separator: bytes, longest: int, where: str) -> tuple[int, int]:
    rows, bad, records = judged(text, header, separator, longest)
    assert len(rows) + len(bad) + header == records
    options = {
        "format": "tsv" if separator == b"\t" else "csv", "header": True if header else NAMES, "label": False,
        "categorical": NAMES, "max_line": longest,
    }  # fmt: skip
    for number, way in enumerate(WAYS):
        data = gzip.compress(text) if number == 2 else b"\xef\xbb\xbf" + text if number == 1 else text
        quarantine = f"{where}/quarantine"
        stream = op.stream(io.BytesIO(data), on_error="skip", quarantine=quarantine, **options, **way)
        assert [x for x, _ in stream] == rows, (text, way)
        assert stream.skipped == len(bad), (text, way)
        kept = re.findall(rb"^<file>:(\d+)\t1\t", Path(quarantine).read_bytes(), re.MULTILINE)
        assert [int(line) for line in kept] == bad, (text, way)
        stream = op.stream(io.BytesIO(data), **options, **way)
        met = 0
        try:
            for chunk in stream.batches():
                met += len(chunk)
        except LineError as error:
            assert bad and error.line == bad[0], (text, way)
        else:
            assert not bad and met == len(rows), (text, way)
    return len(rows), len(bad)


@pytest.mark.full(most=4, quick=2)
@pytest.mark.parametrize("longest", [LONGEST, 24])
@pytest.mark.parametrize("separator", [b",", b"\t"], ids=["csv", "tsv"])
@pytest.mark.parametrize("seed", range(40))
def test_every_record_is_a_row_or_skipped(seed, separator, longest, tmp_path):
    g = np.random.default_rng(seed)
    rows = skipped = 0
    for _ in range(15):
        header = bool(g.integers(2))
        text = separator.join(name.encode() for name in NAMES) + b"\r\n" if header else b""
        text += generated(g, [piece.replace(b",", separator) for piece in PIECES], separator)
        found = conserved(text, header, separator, longest, str(tmp_path))
        rows, skipped = rows + found[0], skipped + found[1]
    assert rows > 8 and skipped > 8


def test_an_odd_quote_loses_no_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b,y\n1,q,0\n2,5" pipe,1\n3,r,0\n4,s,1\n')
    assert list(op.stream(path))[1] == ({"a": 2.0, 'b=5" pipe': 1.0}, 1)
    assert [y for _, y in op.stream(path)] == [0, 1, 0, 1]
    path.write_bytes(b'a,b,y\n1,q,0\n2,"5 pipe,1\n3,r,0\n4,s,1\n')
    with pytest.raises(LineError, match=r"a.csv:3:1: a quote opens a field, and none closes it.*'2,\"5 pipe,1'"):
        list(op.stream(path))
    stream = op.stream(path, on_error="skip", quarantine=tmp_path / "q")
    assert ([x["a"] for x, _ in stream], stream.skipped) == ([1, 3, 4], 1)
    assert (tmp_path / "q").read_bytes().endswith(b'\t2,"5 pipe,1\n')
    path.write_bytes(b'a,b,y\n1,"q",0\n2,"5 pipe,1\n3,"r",0\n4,"s"t,1\n5,"u",1\n')  # is closed where another begins
    stream = op.stream(path, on_error="skip", quarantine=tmp_path / "q")
    assert ([x["a"] for x, _ in stream], stream.skipped) == ([1, 3, 5], 2)
    assert b"a.csv:5\t1\ttext after the quote that closes" in (tmp_path / "q").read_bytes()


def test_a_long_quoted_field_is_one_record(tmp_path):
    """Longer than a block; and where it is longer than a line may be, its first line is malformed, not the rest."""
    long = b"".join(b"line %d, and more\n" % i for i in range(2000))
    text = b'a,b,y\n1,x,0\n2,"' + long + b'",1\n3,z,0\n'
    for size in (10, 1000, None):
        read = list(op.stream(io.BytesIO(text), format="csv", block_size=size))
        assert [x["a"] for x, _ in read] == [1, 2, 3] and f"b={long.decode()}" in read[1][0]
        stream = op.stream(io.BytesIO(text), format="csv", block_size=size, max_line=5000, on_error="skip")
        assert ([x["a"] for x, _ in stream], stream.skipped) == ([1, 3], 2001)  # its lines are no rows by themselves


def test_a_file_of_carriage_returns(tmp_path):
    """From its format to the number of a line."""
    path = tmp_path / "a.data"
    path.write_bytes(b'a,b,y\r1,q,0\r\r2,"p\rs",1\r3,r\r4,s,1\r')
    with pytest.raises(LineError, match=r"a.data:6:1: expected 3 columns, got 2; the line is '3,r'"):
        list(op.stream(path))
    for size in (1, 5, None):
        stream = op.stream(path, on_error="skip", block_size=size)
        assert [x["a"] for x, _ in stream] == [1, 2, 4] and (stream.format, stream.skipped) == ("csv", 1)


def table_of(text: bytes, **how) -> list[tuple[dict[str, float], object]]:
    return list(op.stream(io.BytesIO(text), format="csv", **how))


def test_pandas_reads_the_same_rows():
    pandas = require_extra("pandas")
    g = np.random.default_rng(4)
    pieces = [piece for piece in SOUND if b"\r" not in piece]  # which pandas makes \n of
    count = 0
    for _ in range(60):
        text = b"a,b,c\n" + generated(g, pieces)
        rows, bad, _ = judged(text, True, b",", LONGEST)
        if bad or not rows or b"\r," in text:  # an empty first field behind \r is lost there
            continue
        frame = pandas.read_csv(io.BytesIO(text), dtype=str, na_values=["NA"], keep_default_na=False)
        theirs = [
            {f"{name}={value}": 1.0 for name, value in row.items() if value == value and value != ""}
            for row in frame.to_dict("records")
        ]
        assert [x for x, _ in table_of(text, label=False, categorical=NAMES)] == theirs, text
        count += 1
    assert count > 10


# -- the work ---------------------------------------------------------------------------------------------------------

WORST = {
    "an open quote": lambda n: b'a,b,y\n1,"q,0\n' + b"1,q,0\n" * (n // 6),
    "open quotes": lambda n: b"a,b,y\n" + b'1,"q,0\n' * (n // 7),
    "doubled quotes behind an open one": lambda n: b'a,b,y\n1,"q,0\n' + b'1,"" ,0\n1,"""",0\n' * (n // 19),
    "text after quotes": lambda n: b"a,b,y\n" + b'1,"\n"q,0\n' * (n // 10),
    "fields of several lines": lambda n: b"a,b,y\n" + b'1,"q\nr",0\n' * (n // 10),
    "a field of many lines": lambda n: b'a,b,y\n1,"' + b"q\n" * (n // 2) + b'",0\n',
    "one long line": lambda n: b"a,b,y\n1," + b"q" * n + b",0\n",
    "carriage returns": lambda n: b"a,b,y\r" + b"1,q,0\r" * (n // 6),
}


@pytest.mark.parametrize("name", WORST)
def test_cutting_is_linear_in_the_file(name, monkeypatch):
    """Bytes that are looked at, in blocks much smaller than the file; and seconds, where only quotes cost them."""
    looked = [0]
    cut = _native.cut_records

    def counted(buffer, size, *more):
        looked[0] += size
        return cut(buffer, size, *more)

    monkeypatch.setattr(_native, "cut_records", counted)
    work = []
    for n in (20_000, 80_000):
        looked[0] = 0
        stream = op.stream(io.BytesIO(WORST[name](n)), format="csv", on_error="skip", block_size=500, threads=1)
        assert sum(map(len, stream.batches())) + stream.skipped > 0
        work.append(looked[0] / n)
    assert work[1] < 1.5 * work[0] and work[1] < 8, work
    seconds = []
    for n in (200_000, 1_600_000):
        text = WORST[name](n)
        times = []
        for _ in range(3):
            begin = time.process_time()
            cut(text, len(text), ",", LONGEST, True)
            times.append(time.process_time() - begin)
        seconds.append(min(times))
    assert seconds[1] < 32 * max(seconds[0], 1e-4), seconds


# -- names and kinds of columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [b"", b"\xef\xbb\xbf", b"\n\r\n"], ids=["empty", "mark", "blank"])
@pytest.mark.parametrize("names", [True, False, ["0", "1"]], ids=str)
def test_an_empty_first_file_hides_no_other(names, empty, tmp_path):
    header = b"0,1\n" if names is True else b""
    files = [tmp_path / f"{i}.csv" for i in range(5)]
    for path, text in zip(files, [empty, header, header + b"1,u\n2,v\n", empty, header + b"3,w"], strict=True):
        path.write_bytes(text)
    expected = [({"0": 1.0}, "u"), ({"0": 2.0}, "v"), ({"0": 3.0}, "w")]
    for size in (1, None):
        chunks = list(op.stream(files, header=names, label="1", block_size=size).batches(1))
        assert list(op.stream(files, header=names, label="1", block_size=size)) == expected
        for number, chunk in enumerate(chunks):
            rest = op.stream(files, header=names, label="1", block_size=size, start=chunk.position)
            assert list(rest) == expected[number + 1 :]
    assert list(op.stream(files[:2], header=names, label="1")) == []


def test_going_on_before_the_names_of_columns(tmp_path):
    """The second file, which is followed, had only empty lines when the position was given."""
    (tmp_path / "1.csv").write_bytes(b"a,y\n1,0\n")
    (tmp_path / "2.csv").write_bytes(b"\n\r\na,y\n2,1\n3,0\n")
    files = [tmp_path / "1.csv", tmp_path / "2.csv"]
    for offset, line, rows in ((1, 2, [2, 3]), (3, 3, [2, 3]), (7, 4, [2, 3]), (11, 5, [3])):
        start = op.streams.Position(file=1, offset=offset, line=line, example=1)
        assert [x["a"] for x, _ in op.stream(files, start=start)] == rows


def test_the_command_reads_past_an_empty_file(tmp_path):
    for name, text in (("1.csv", b""), ("2.csv", b'1,q,0\n2,5" pipe,1\n'), ("3.csv", b"\n3,r,0\r4,s,1")):
        (tmp_path / name).write_bytes(text)
    learn = ("learn", "*.csv", "--no-header", "--label", "2", "--rule", "pa1")
    done = command(*learn, "--json", "r", cwd=tmp_path)
    assert done.returncode == 0 and json.loads((tmp_path / "r").read_text())["examples"] == 4
    (tmp_path / "2.csv").write_bytes(b'1,q,0\n2,"5 pipe,1\n')
    done = command(*learn, cwd=tmp_path)
    assert done.returncode == 1 and "2.csv:2:1: a quote opens a field, and none closes it" in done.stderr


def test_names_of_columns_in_any_dialect(tmp_path):
    assert table_of(b'\n\r\n"a\nb","c ""d""",y\r\n1,2,0\r\n', block_size=1) == [({"a\nb": 1.0, 'c "d"': 2.0}, 0)]
    for text, what in (
        (b"a,b\xff,y\n1,2,0\n", r"file>:1: the first line.* is not UTF-8 text: byte 4 is 0xff"),
        (b'\n\na,"b,y\n1,2,0\n', r"file>:3: the first line.* is malformed: a quote opens"),
        (b"a,b\0,y\n1,2,0\n", "NUL byte"),
        (b"a,b,b,y\n1,2,3,0\n", "two columns are called 'b'"),
        (b"a,b,y\r1,2,0\rx", "expected 3 columns, got 1"),
    ):
        with pytest.raises(InputError, match=what):
            table_of(text)
    (tmp_path / "1.csv").write_bytes(b"a,y\n1,0\n")
    (tmp_path / "2.csv").write_bytes(b"\r\na\xff,y\n1,0\n")
    with pytest.raises(InputError, match=r"2.csv:2: the first line.*not UTF-8"):
        list(op.stream([tmp_path / "1.csv", tmp_path / "2.csv"]))
    long = b"x" * 5_000_000
    for text in (long + b",y\n1,0\n", long):
        with pytest.raises(InputError, match=r"first line.*longer than max_line"):
            table_of(text, max_line=1000)
    names = [f"{'column' * 1000}{i}" for i in range(400)]  # more than a megabyte of them
    [(x, y)] = table_of(",".join([*names, "y"]).encode() + b"\n" + b"1," * 400 + b"7\n")
    assert len(x) == 400 and y == 7


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_columns_of_one_name_in_a_table(format, tmp_path):
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = pa.table([[1.0], [2.0], [1]], names=["a", "a", "y"])
    path = tmp_path / f"t.{format}"
    parquet.write_table(table, path) if format == "parquet" else feather.write_feather(table, path)
    with pytest.raises(InputError, match=f"t.{format}: two columns are called 'a'; rename one"):
        list(op.stream(path))


@pytest.mark.parametrize("way", [{"threads": 1}, {"threads": 3}, {"block_size": 40_000, "threads": 3}], ids=str)
def test_labels_may_be_whole_at_first(way):
    """A megabyte of whole numbers, then others: all are numbers, and none is left out."""
    whole = [number % 7 for number in range(300_000)]
    text = b"a,y\n" + b"".join(b"1,%d\n" % y for y in whole) + b"2,1.5\n3,-2e3\n4,3\n5,\n"
    stream = op.stream(io.BytesIO(text), format="csv", **way)
    assert np.concatenate([chunk.y for chunk in stream.batches()])[:-1].tolist() == [*whole, 1.5, -2000.0, 3]


def test_large_whole_labels_stay_apart():
    """Beyond 2**53 doubles are even numbers; with decimals, gaps and more digits than 64 bits hold beside them."""
    labels = ["9007199254740993", "9007199254740992", "1.5", "", "90071992547409930001", "90071992547409930002", "-3"]
    expected = [None if not label else float(label) if "." in label else int(label) for label in labels]
    text = b"a,y\n" + "".join(f"1,{label}\n" for label in labels).encode()
    for size, rows in itertools.product((1, 20, 40, None), (1, 2, 3, 7, None)):
        chunks = list(op.stream(io.BytesIO(text), format="csv", block_size=size).batches(rows))
        assert [y for chunk in chunks for y in chunk.answers()] == expected, (size, rows)
    [(_, y)] = op.stream(io.BytesIO(text[:41]), format="csv").chunks()
    assert y.tolist() == expected[:2] and y.dtype == np.int64


def test_a_value_of_another_kind_is_named():
    """After a megabyte of numbers, of truth values, or of nothing."""
    many, pad = 1100, "x" * 1000
    for first, value, what in (
        ("1,2", "1,x", "column 'b' must be a number, as in the rows before, got 'x'"),
        ("1,true", "1,0.5", "column 'b' must be true or false, as in the rows before, got '0.5'"),
        ("1,", "1,x", "column 'b' has no value in the first rows"),
    ):
        text = ("a,b,pad,y\n" + f"{first},{pad},0\n" * many + f"{value},{pad},0\n{first},{pad},0\n").encode()
        with pytest.raises(LineError) as error:
            list(op.stream(io.BytesIO(text), format="csv", drop=["pad"]).batches())
        assert error.value.line == many + 2 and what in str(error.value)
        stream = op.stream(io.BytesIO(text), format="csv", drop=["pad"], on_error="skip")
        assert (sum(map(len, stream.batches())), stream.skipped) == (many + 1, 1)
    last = list(op.stream(io.BytesIO(text), format="csv", drop=["pad"], categorical="b").batches())[-1]
    assert last.X.table.names(0, 2) == ["a", "b=x"]


def test_what_is_no_number_is_none_for_arrow(monkeypatch):
    """Records that are looked at one by one are refused only where Arrow refuses them."""
    from onepass.streams import delimited

    g = np.random.default_rng(6)
    letters = "0123456789+-.eEinfatyxNAN \t()_"
    texts = {"".join(letters[i] for i in g.integers(len(letters), size=g.integers(1, 6))) for _ in range(3000)}
    texts |= {"1.", ".5", "1e5", "1E-5", "inf", "-Infinity", "nan", "-NaN", "nan(1)", "1e999", "0x1F", "+1", "1_0", "٣"}
    head = b"w,b,y\n" + b"1,true,1\n0,false,1\n" * 20
    rows = [f"{text},true,1" for text in sorted(texts)] + [f"1,{text},1" for text in sorted(texts) if len(text) < 3]
    text = head + "\n".join(rows).encode()
    fast = op.stream(io.BytesIO(text), format="csv", weight="w", on_error="skip")
    expected = list(fast)
    monkeypatch.setattr(delimited, "_wrong", lambda layout, raw: None)
    alone = op.stream(io.BytesIO(text), format="csv", weight="w", on_error="skip")
    assert list(alone) == expected and alone.skipped == fast.skipped > 1000
    assert len(expected) > 150


def test_rows_are_judged_alone():
    """What is malformed is so whatever stands beside it: one bad row among rows that only Arrow can judge."""
    rows = [b"tRue,1", b"True,1", b"false,0", b" true,1", b"1,1", b"0,0x1F", b"TRUE,+1", b"true, 1 ", b"true,1_0",
            b"true,infinity", b"FALSE,.5", b"false,5.", b"true,\xff", b'"true","1"', b"true,0"]  # fmt: skip
    head = b"a,y\n" + b"true,1\nfalse,0\n" * 20
    alone = {row: len(table_of(head + row + b"\n", on_error="skip")) - 40 for row in rows}
    g = np.random.default_rng(5)
    for _ in range(30):
        some = [rows[i] for i in g.integers(len(rows), size=12)]
        stream = op.stream(io.BytesIO(head + b"\n".join(some)), format="csv", on_error="skip", block_size=30)
        assert (len(list(stream)), stream.skipped) == (
            40 + sum(alone[row] for row in some),
            12 - sum(alone[row] for row in some),
        )
    assert 5 < sum(alone.values()) < len(rows)


def test_a_followed_table_may_be_empty_at_first(tmp_path):
    import threading

    path = tmp_path / "log.csv"
    path.write_bytes(b"")

    def write() -> None:
        with open(path, "ab", buffering=0) as file:
            for piece in (b"a,", b'b,y\n1,"x', b'\ny",0\n', b"2,z,", b"1\n"):
                time.sleep(0.15)
                file.write(piece)

    writer = threading.Thread(target=write)
    writer.start()
    rows = iter(op.stream(path, follow=True))
    assert [next(rows), next(rows)] == [({"a": 1.0, "b=x\ny": 1.0}, 0), ({"a": 2.0, "b=z": 1.0}, 1)]
    writer.join()
