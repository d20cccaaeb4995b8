"""A run is resumed over the very text that it has read, up to the end of its last row; or refused."""

from __future__ import annotations

import gzip
import io
import os
import random
from pathlib import Path
from typing import Any

import pytest
from support.command import onepass
from support.extras import require_extra
from test_positions import ROWS, TEXTS, WAYS, Pipe, Way, made, text_file

import onepass as op
from onepass import _native
from onepass.errors import InputError
from onepass.models.linear import LinearModel
from onepass.streams.fingerprint import ResumePoint, require_unchanged
from onepass.streams.formats import FORMATS
from onepass.streams.sources import Source

pa = require_extra("pyarrow")


def test_checksums_join() -> None:
    assert _native.crc32c(b"123456789") == 0xE3069283  # RFC 3720
    g = random.Random(1)
    for size in (0, 1, 7, 8, 9, 255, 32767, 32768, 32771, 100_003):
        text = g.randbytes(size)
        for cut in {0, min(1, size), size // 3, size}:
            one, two = text[:cut], text[cut:]
            joined = _native.join_crc32c(_native.crc32c(one), _native.crc32c(two), len(two))
            assert _native.crc32c(text) == _native.crc32c(two, _native.crc32c(one)) == joined


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("container", ["plain", "marked", "gzip", "zstd", "pipe"])
@pytest.mark.parametrize("format", [format for format in FORMATS if format in TEXTS])
def test_what_was_seen_is_the_text_up_to_the_last_row(format: str, container: str, tmp_path: Path) -> None:
    """At every position, however the stream is cut; and every byte of it counts."""
    sources = made(format, container, tmp_path)
    mark = b"\xef\xbb\xbf" if container == "marked" else b""
    texts = [mark + text_file(format, ROWS * number, ended=number == 0) for number in range(2)]
    ends: dict[int, set[tuple[int, int]]] = {}
    for way in (*WAYS[:6], Way(200, 3, 2)):
        stream = op.stream(sources(), format=format, on_error="skip", block_size=way.block, threads=way.threads)
        for chunk in stream.batches(way.size):
            at = chunk.position
            for number in range(at.file + 1):
                length, crc = stream.seen.of(number, at)
                text = texts[number] + b"\n" * (length == len(texts[number]) + 1)
                assert _native.crc32c(text[:length]) == crc
                assert text[length - 1 : length] == b"\n"
                if number < at.file:
                    assert length == len(text)
            assert number == 1 or stream.seen.of(1, at) is None
            ends.setdefault(at.example, set()).add((length, crc))
    rows_with_two = [example for example, met in ends.items() if len(met) > 1]
    assert not rows_with_two, "the same row ends at the same byte, whatever the blocks"
    assert len(ends) == 2 * ROWS, "each row has its own"


@pytest.mark.parametrize("container", ["plain", "gzip", "pipe"])
def test_a_change_of_any_byte_is_found(container: str, tmp_path: Path) -> None:
    text = text_file("vw", 0, ended=True)
    stream = op.stream(Pipe(text), format="vw", on_error="skip", block_size=150)
    chunk = list(stream.batches(5))[3]
    known, offset = stream.seen.of(0, chunk.position), chunk.position.offset
    assert known is not None and offset < known[0] < len(text)

    def resumed(given: bytes) -> Any:
        path = tmp_path / "a.vw"
        path.write_bytes(gzip.compress(given) if container == "gzip" else given)
        source = Source(str(path), Pipe(given) if container == "pipe" else None)
        again = op.stream(source.file or path, format="vw", on_error="skip", start=chunk.position)
        again.resume_point = ResumePoint(offset, known, require_unchanged(source, known, offset))
        *_, last = again.batches(5)
        return again.seen.of(0, last.position)

    assert resumed(text) == [*stream.seen.of(0, None)]
    assert resumed(text + b"1 | more\n")[0] == len(text) + 9
    for at in range(known[0]):
        with pytest.raises(InputError, match="has changed where it was read"):
            resumed(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
    for at in range(0, known[0], 5):
        with pytest.raises(InputError, match="were read"):
            resumed(text[:at])
    assert resumed(text[: known[0]] + b"1 | another\n" * 40)[0] == known[0] + 12 * 40, "what was not read may change"


def vw(rows: int) -> list[str]:
    g = random.Random(3)
    return [f"{g.choice([-1, 1])} | " + " ".join(f"w{g.randrange(99)}" for _ in range(9)) + "\n" for _ in range(rows)]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("cached", [False, True], ids=["parsed", "cached"])
def test_the_command_refuses_a_change_anywhere(packed: bool, cached: bool, tmp_path: Path) -> None:
    """Far from the beginning and from the end of what was read too."""
    lines, path = vw(9000), tmp_path / ("a.vw.gz" if packed else "a.vw")

    def write(text: list[str]) -> None:
        data = "".join(text).encode()
        path.write_bytes(gzip.compress(data, 1) if packed else data)

    write([*lines, "oops\n"])
    options = ["--cache-file", tmp_path / "c"] if cached else []
    assert onepass("learn", path, "--save", tmp_path / "m", *options).returncode == 1  # it stopped at the last line
    saved = (tmp_path / "m").read_bytes()
    for row in (0, 3000, 4500, 6000, 8998):
        changed = lines[row].replace("w", "v", 1)
        write([*lines[:row], changed, *lines[row + 1 :], "1 | fine\n"])
        os.utime(path, ns=(1, 1))
        result = onepass("learn", "--resume", tmp_path / "m", path, *options)
        assert result.returncode == 1 and "is not the stream that run read: it has changed" in result.stderr, row
        assert (tmp_path / "m").read_bytes() == saved
    write([*lines, "1 | fine\n"])
    assert onepass("learn", "--resume", tmp_path / "m", path, *options).returncode == 0
    (tmp_path / "whole.vw").write_text("".join([*lines, "1 | fine\n"]))
    onepass("learn", tmp_path / "whole.vw", "--save", tmp_path / "n")
    assert LinearModel.load(tmp_path / "m").named_weights() == LinearModel.load(tmp_path / "n").named_weights()


def test_the_command_refuses_another_pipe(tmp_path: Path) -> None:
    def piped(lines: list[str], *args: Any) -> Any:
        text = io.BufferedReader(Pipe("".join(lines).encode()))
        return onepass("learn", *args, stdin=io.TextIOWrapper(text))

    lines = vw(3000)
    assert piped([*lines, "oops\n"], "-", "--format", "vw", "--save", tmp_path / "m").returncode == 1
    for row in (0, 1500, 2999):
        changed = [*lines[:row], lines[row].replace("w", "v", 1), *lines[row + 1 :], "1 | fine\n"]
        result = piped(changed, "--resume", tmp_path / "m", "-")
        assert result.returncode == 1 and "it has changed where it was read" in result.stderr, row
    assert piped([*lines, "1 | fine\n"], "--resume", tmp_path / "m", "-").returncode == 0


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_the_command_refuses_another_table(format: str, tmp_path: Path) -> None:
    files = made(format, "plain", tmp_path)()
    command = ["learn", *files, "--on-error", "skip", "--save", tmp_path / "m", "--drop", "s"]
    assert onepass(*command).returncode in (0, 3)
    whole = files[0].read_bytes()
    files[0].write_bytes(whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1 :])
    result = onepass("learn", "--resume", tmp_path / "m", *files)
    assert result.returncode == 1 and "it has changed where it was read" in result.stderr
