"""Blocks of text: the first of a file is small, later ones are larger; its place alone decides how long a block is."""

from __future__ import annotations

import gc
import io
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from onepass import _native
from onepass.errors import InputError
from onepass.streams.blocks import Block, Sizes, blocks
from onepass.streams.sources import Source

BITS = 6


def test_a_blocks_place_decides_how_long_it_is(tmp_path: Path) -> None:
    """However long its lines and those before it are: so a stream that goes on from a block meets the same ones."""
    g = np.random.default_rng(0)
    path = tmp_path / "lines"
    for sizes, longest in ((Sizes(16, 40), 200), (Sizes(16, 16), 90), (Sizes(32, 64), 48)):
        path.write_text("".join("x" * int(n) + "\n" for n in g.geometric(0.03, size=300)))
        whole = [(b.offset, b.size, b.overlong) for b in blocks([Source(str(path))], sizes, longest)]
        assert len(whole) > 30
        for at, (offset, _, _) in enumerate(whole):
            rest = [(b.offset, b.size, b.overlong) for b in blocks([Source(str(path))], sizes, longest, offset=offset)]
            assert rest == whole[at:]


@pytest.mark.parametrize("cached", [False, True])
def test_the_first_block_is_small_and_later_ones_are_larger(tmp_path: Path, cached: bool) -> None:
    path, cache = tmp_path / "long.vw", tmp_path / "cache" if cached else None
    path.write_text(f"1 | a:0.5 b {'x' * 2040}\n" * 5400)
    read = lambda start=None: [  # noqa: E731
        (c.position, len(c)) for c in op.stream(path, hash_bits=BITS, cache=cache, start=start).batches()
    ]
    chunks = read()
    sizes = [size for _, size in chunks]
    assert len(sizes) == 4 and sizes[0] < 1050 and 2000 < sizes[1] < 2100 and abs(sizes[1] - sizes[2]) <= 1
    for at, (position, _) in enumerate(chunks):
        assert read(position) == chunks[at + 1 :]
    equal = [len(c) for c in op.stream(path, hash_bits=BITS, block_size=1 << 21, cache=cache).batches()]
    assert max(equal) < 1050, "a size that was asked for is that of all"


def lines_of_many_lengths(g: np.random.Generator, rows: int, longest: int) -> bytes:
    """VW text: words first, values later, a line beyond a piece of reading, blank lines, two ways to end a line."""
    out = []
    for row in range(rows):
        names = [f"w{g.integers(1000)}" + (f":{g.integers(9)}.5" if row > rows // 2 and k % 3 == 0 else "")
                 for k in range(int(g.geometric(0.05)))]  # fmt: skip
        if row == rows // 3:
            names += [f"long{k}" for k in range(longest // 10)]
        end = "\r\n" if row % 7 == 0 else "\n" if row % 11 else "\n\n"
        out.append(f"{g.choice([-1, 1])} |n {' '.join(names)}{end}")
    return "".join(out).encode()


def described(block: Block) -> tuple[int, int, int, int]:
    return block.file, block.offset, block.size, block.overlong


def test_blocks_that_are_left_in_a_file_are_those_that_are_read(tmp_path: Path) -> None:
    g = np.random.default_rng(1)
    path = tmp_path / "lines"
    for sizes, longest in ((Sizes(16, 40), 200), (Sizes(1 << 15, 1 << 16), 1 << 17), (Sizes(100, 1000), 2000)):
        for ended in (True, False):
            lengths = g.geometric(4 / sizes.first, size=300)
            path.write_bytes(b"".join(b"x" * int(n) + b"\n" for n in lengths)[: None if ended else -1])
            left = list(blocks([Source(str(path))] * 2, sizes, longest, leave=True))
            assert [described(b) for b in left] == [
                described(b) for b in blocks([Source(str(path))] * 2, sizes, longest)
            ]
            assert any(block.left_in for block in left) and not all(block.left_in for block in left)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("block_size", [None, 1 << 12, 1 << 16, 1 << 20])
def test_rows_of_a_file_are_those_of_its_bytes(tmp_path: Path, block_size: int | None, threads: int) -> None:
    text = lines_of_many_lengths(np.random.default_rng(2), 3000, 700_000)
    bad = text.replace(b"\n", b"\nnonsense here | a:b:c\n", 3).replace(b"w1 ", b"\xff ", 2)
    for content, skipped in ((text, 0), (bad, 5)):
        path = tmp_path / "rows.vw"
        path.write_bytes(content)
        read = []
        for source in (path, io.BytesIO(content)):
            stream = op.stream(
                source, format="vw", hash_bits=12, block_size=block_size, threads=threads, on_error="skip",
                quarantine=tmp_path / "bad",
            )  # fmt: skip
            chunks = list(stream.batches())
            where = (tmp_path / "bad").read_bytes().replace(str(path).encode(), b"<file>")
            read.append((stream.skipped, where, [c.position for c in chunks], chunks))
        (of_path, where, places, rows), (of_bytes, same_where, same_places, same_rows) = read
        assert (of_path, where, places) == (of_bytes, same_where, same_places) and of_path == skipped
        for one, other in zip(rows, same_rows, strict=True):
            for name in ("indptr", "indices", "data"):
                assert np.array_equal(getattr(one.X, name), getattr(other.X, name))
            assert np.array_equal(one.y, other.y) and one.y.dtype == other.y.dtype == np.int64


def test_a_file_that_changes_while_it_is_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "short.vw"
    path.write_bytes(b"1 | a b\n-1 | c\n")
    with path.open("rb") as file:
        text = _native.TextFile(file.fileno(), "short.vw")
    for size in (20, 12, 3):  # beyond its end, and within a line
        for threads in (1, 2):
            parser = _native.Parser("vw", 10, 0, False, None, threads, False, 1 << 24)
            parser.submit(text, 0, size, None)
            with pytest.raises(InputError, match=r"short\.vw was changed while it was read"):
                parser.take()
            parser.close()
    path.write_bytes(b"1 | a b\n-1 | d\n")
    parser = _native.Parser("vw", 10, 0, False, None, 1, False, 1 << 24)
    parser.submit(text, 8, 7, None)
    assert parser.take().label.tolist() == [-1]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files as Linux shows them")
def test_files_are_closed_when_they_were_read_or_given_up(tmp_path: Path) -> None:
    path = tmp_path / "rows.vw"
    path.write_bytes(b"1 | a b c\n" * 50_000)
    count = lambda: len(list(Path("/proc/self/fd").iterdir()))  # noqa: E731
    gc.collect()
    before = count()
    for _ in range(3):
        for _ in op.stream([path, path], hash_bits=8, block_size=1 << 14).batches():
            pass
        chunks = op.stream(path, hash_bits=8, block_size=1 << 14).batches()
        next(chunks)
        del chunks
        gc.collect()
    assert count() == before


def test_labels_are_whole_numbers_where_all_of_a_block_are() -> None:
    for labels, kind in (("1 -1 0", "i"), ("1 0.5", "f"), ("9007199254740991 -3", "i"), ("9007199254740992 1", "f")):
        text = "".join(f"{label} | a\n" for label in labels.split())
        [chunk] = op.stream(io.BytesIO(text.encode()), format="vw", hash_bits=8).batches()
        assert chunk.y.dtype.kind == kind and chunk.y.tolist() == [float(label) for label in labels.split()]


def test_values_are_ones_until_one_is_not() -> None:
    """Of words nothing is stored but the few values that are not 1."""
    for at in (0, 1, 5, None):
        lines = [f"1 | a b{'' if row != at else ':2'} c\n" for row in range(6)]
        [chunk] = op.stream(io.BytesIO("".join(lines).encode()), format="vw", hash_bits=12).batches()
        expected = [
            2.0 if 3 * row + k == (3 * at + 1 if at is not None else -1) else 1.0 for row in range(6) for k in range(3)
        ]
        assert chunk.X.data.tolist() == expected and not chunk.X.data.flags.writeable and chunk.X.validated
    twice = [next(op.stream(io.BytesIO(b"1 | a b c\n"), format="vw", hash_bits=12).batches()) for _ in range(2)]
    assert np.shares_memory(twice[0].X.data, twice[1].X.data)
