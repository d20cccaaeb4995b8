"""Blocks of text: the first of a file is small, later ones are larger; its place alone decides how long a block is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onepass as op
from onepass.streams.sources import Sizes, Source, blocks

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
