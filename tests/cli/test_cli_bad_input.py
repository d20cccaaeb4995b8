"""Bad input: never a traceback; file:line:column, what is wrong and the text; nothing malformed is learned."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from support.command import onepass, process, write_vw

from onepass import LinearModel

GOOD = "1 | a b\n-1 | c d\n"
# Name, content, and what the message must say; None: it is read as it is.
BAD: dict[str, tuple[bytes, list[str] | None]] = {
    "nul.vw": (GOOD.encode() + b"1 | a\0b\n", ["nul.vw:3:6", "control character"]),
    "crlf.vw": (GOOD.replace("\n", "\r\n").encode(), None),
    "bom.vw": (b"\xef\xbb\xbf" + GOOD.encode(), None),
    "utf.vw": (GOOD.encode() + b"1 | \xff\xfe\n", ["utf.vw:3:5", "UTF-8"]),
    "nan.vw": (GOOD.encode() + b"1 | a:nan\n", ["nan.vw:3:7", "'nan'"]),
    "inf.vw": (GOOD.encode() + b"1 | a:1e999\n", ["inf.vw:3:7", "1e999"]),
    "label.vw": (GOOD.encode() + b"abc | a\n", ["label.vw:3:1", "'abc'"]),
    "index.svm": (b"1 1:1\n-1 99999999999:1\n", ["index.svm:2:4", "99999999999"]),
    "value.svm": (b"1 1:1\n-1 2:x\n", ["value.svm:2:", "'x'"]),
    "short.csv": (b"a,b,y\n1,2,0\n3,4\n", ["short.csv:3:1", "expected 3 columns, got 2", "'3,4'"]),
    "list.jsonl": (b'{"a": 1, "y": 0}\n{"a": [1], "y": 1}\n', ["list.jsonl:2:", "is a list"]),
    "json.jsonl": (b'{"a": 1, "y": 0}\n{"a": 1,\n', ["json.jsonl:2:", "not JSON"]),
    "truncated.vw.gz": (gzip.compress(GOOD.encode() * 5000)[:-30],
                        ["truncated.vw.gz", "truncated"]),
    "nolabel.csv": (b"a,b\n1,2\n", ["nolabel.csv: which column is the label? Say --label one of a, b", "--no-label"]),
    "what": (b"hello\n", ["cannot tell its format", "it begins 'hello'", "say --format one of vw"]),
    "nothing": (b"", ["cannot tell its format", "it is empty", "say --format one of vw"]),
    "junk.bin": (b",\0;\n\1\2\n" * 9, ["junk.bin is a binary file, not text: byte 2 is 0x00"]),
    "excel.csv": ("a,y\n1,2\n".encode("utf-16"), ["excel.csv is UTF-16 text; convert it to UTF-8"]),
    "book": (b"PK\x03\x04,,", ["book is a zip archive"]),
    "cut.parquet": (b"PAR1 and nothing more", ["cut.parquet is not a whole parquet file"]),
    "base.vw": (b"1 1 0.5 | a\n", ["initial prediction (0.5"]),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BAD))
def test_what_is_said_of_bad_input(name: str, tmp_path: Path) -> None:
    content, expected = BAD[name]
    (tmp_path / name).write_bytes(content)
    result = onepass("learn", name, "--progress", "none", cwd=tmp_path)
    assert "Traceback" not in result.stderr
    if expected is None:
        assert result.returncode == 0 and "\nexamples  2," in result.stdout
        return
    assert result.returncode == 1, result.stdout + result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""
    for words in expected:
        assert words in result.stderr
    assert "on_error=" not in result.stderr and "label=" not in result.stderr


@pytest.mark.parametrize("name", ["utf.vw", "label.vw", "index.svm", "short.csv", "list.jsonl", "json.jsonl", "nan.vw"])
def test_skipping_learns_the_rest_and_tells(name: str, tmp_path: Path) -> None:
    content, expected = BAD[name]
    assert expected is not None
    (tmp_path / name).write_bytes(content)
    result = onepass("learn", name, "--on-error", "skip", "--quarantine", "q", "--save", "m", cwd=tmp_path)
    assert result.returncode == 3, result.stderr
    assert "skipped   1 malformed line, written to q" in result.stdout
    line = int(expected[0].split(":")[1])
    bad = content.splitlines()[line - 1]
    (kept,) = (tmp_path / "q").read_bytes().splitlines()
    assert kept.startswith(f"{name}:{line}\t".encode()) and kept.endswith(b"\t" + bad)
    # The same model as of a file without that line.
    good = content.splitlines(keepends=True)
    del good[line - 1]
    (tmp_path / f"good-{name}").write_bytes(b"".join(good))
    onepass("learn", f"good-{name}", "--save", "n", cwd=tmp_path)
    one, other = (LinearModel.load(tmp_path / each) for each in "mn")
    assert np.array_equal(one.weights()[0], other.weights()[0]) and one.names == other.names


def test_what_came_before_a_bad_line_is_kept_and_the_mended_stream_resumes(tmp_path: Path) -> None:
    lines = write_vw(tmp_path / "whole.vw", 3000).read_text().splitlines(keepends=True)
    onepass("learn", "whole.vw", "--save", "whole", cwd=tmp_path)
    (tmp_path / "a.vw").write_text("".join([*lines[:2000], "oops\n", *lines[2000:]]))
    result = onepass("learn", "a.vw", "--save", "m", "--progress", "none", cwd=tmp_path)
    assert result.returncode == 1 and "a.vw:2001:5" in result.stderr
    assert "onepass learn --resume m a.vw" in result.stderr
    assert LinearModel.load(tmp_path / "m").t == 2000
    (tmp_path / "a.vw").write_text("".join(lines))
    assert onepass("learn", "--resume", "m", "a.vw", cwd=tmp_path).returncode == 0
    one, other = (LinearModel.load(tmp_path / each) for each in ("m", "whole"))
    assert np.array_equal(one.weights()[0], other.weights()[0]) and one.names == other.names


def test_a_line_of_a_hundred_megabytes_is_refused_in_little_memory(tmp_path: Path) -> None:
    with (tmp_path / "long.vw").open("wb") as file:
        file.write(b"1 | a\n-1 |")
        for _ in range(100):
            file.write(b" word" * 200_000)
        file.write(b"\n1 | a\n")
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

    result = process("learn", "long.vw", "--on-error", "skip", "--progress", "none", cwd=tmp_path, preexec_fn=limit)
    assert result.returncode == 3, result.stderr
    assert "\nexamples   2," in result.stdout or "examples  2," in result.stdout
    peak = int(result.stdout.split("at most ")[1].split(" MB")[0])
    assert peak < 300


@pytest.mark.parametrize(("name", "text"), [("a.vw", "| a b\n| c\n"), ("a.vw", ""), ("a.csv", ""), ("a.svm", "\n\n")])
def test_no_labels_at_all_is_said(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    result = onepass("learn", name, cwd=tmp_path)
    assert result.returncode == 0 and "no labelled example" in result.stdout


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    for name in ("none.vw", "none*.vw", "."):
        result = onepass("learn", name, cwd=tmp_path)
        assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result.stderr
    (tmp_path / "secret.vw").write_text(GOOD)
    (tmp_path / "secret.vw").chmod(0)
    if os.geteuid() != 0:
        result = onepass("learn", "secret.vw", cwd=tmp_path)
        assert result.returncode == 1 and "Permission denied" in result.stderr


def test_an_update_that_overflows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:1\n-1 1:2\n" * 3 + "1.5e308 1:1e-150\n-1.5e308 1:1e-150\n")
    result = onepass("learn", "a.svm", "--task", "regression", "--rule", "pa", "--save", "m", cwd=tmp_path)
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert "a.svm, in the rows after example 0" in result.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("name", "content"), [("empty.vw", ""), ("header.csv", "a,b,label\n"), ("no.csv", "a,label\n1,\n")]
)
def test_a_model_that_was_not_written_is_an_error(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    (tmp_path / "old").write_text("as it was")
    assert onepass("learn", name, cwd=tmp_path).returncode == 0
    for rule in ([], ["--rule", "auto"]):
        result = onepass("learn", name, *rule, "--save", "old", cwd=tmp_path)
        assert result.returncode == 1 and "nothing was learned" in result.stdout
        assert f"no labelled example in {name}" in result.stderr and "old was not written" in result.stderr
        assert "--task" in result.stderr and (tmp_path / "old").read_text() == "as it was"
        result = onepass("learn", name, *rule, "--task", "binary", "--save", "m", cwd=tmp_path)
        assert result.returncode == 0 and "\nmodel " in result.stdout
        assert onepass("learn", name, "--start-from", "m", "--save", "again", cwd=tmp_path).returncode == 0
