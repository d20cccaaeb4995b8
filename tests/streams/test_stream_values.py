"""Values of text features: nearly all are 1, and the few that are not stand in memory that chunks after them use."""

from __future__ import annotations

import io
import itertools
import random

import numpy as np
import pytest

import onepass as op
from onepass import _native
from onepass.streams import Chunk

Row = list[tuple[str, float]]
BAD = b"1 | w1 w2:3:4 w5\n"


def rows_of(share: float, rows: int, seed: int) -> list[Row]:
    """Words, a share of which have another value than 1."""
    rng = random.Random(seed)
    return [
        [(f"w{word}", rng.choice([0.5, 2.0, -1.0, 3.0]) if rng.random() < share else 1.0) for word in words]
        for words in (rng.sample(range(200), 12) for _ in range(rows))
    ]


def text_of(rows: list[Row]) -> bytes:
    """Values by numbers, or by words that stand several times; some rows have a number after each word."""
    lines = []
    for number, row in enumerate(rows):
        spelled = [
            f"{word}:{value:g}" if number % 10 == 3 or value in (0.5, -1.0) else " ".join([word] * int(value))
            for word, value in row
        ]
        lines.append(f"1 | {' '.join(spelled)}\n".encode())
    return b"".join(BAD + line if number % 97 == 5 else line for number, line in enumerate(lines))


def same(chunk: Chunk, rows: list[Row]) -> bool:
    X = chunk.X
    found = [X.data[a:b].tolist() for a, b in itertools.pairwise(X.indptr)]
    if X.hash_bits is not None:
        names = [word for row in rows for word, _ in row]
        assert np.array_equal(X.indices, _native.hash_names(names, X.hash_bits))
    return found == [[value for _, value in row] for row in rows]


@pytest.mark.parametrize("hash_bits", [None, 24])
@pytest.mark.parametrize("share", [0.0, 0.002, 0.03, 0.07, 0.5, 1.0])
def test_values_are_those_of_the_text(share: float, hash_bits: int | None) -> None:
    rows = rows_of(share, 3000, seed=1)
    stream = op.stream(io.BytesIO(text_of(rows)), format="vw", hash_bits=hash_bits, block_size=20_000, on_error="skip")
    chunks = list(stream.batches())  # all of them alive at once
    start = 0
    for chunk in chunks:
        assert same(chunk, rows[start : start + len(chunk)])
        assert not chunk.X.data.flags.writeable
        start += len(chunk)
    assert start == len(rows) and len(chunks) > 5 and stream.skipped == 31


def test_what_is_given_back_is_ones_again() -> None:
    for seed, share in itertools.product(range(4), (0.01, 0.0)):
        rows = rows_of(share, 500, seed)
        kept = None
        for chunk in op.stream(io.BytesIO(text_of(rows)), format="vw", block_size=8_000, on_error="skip").batches():
            assert same(chunk, rows[: len(chunk)])
            rows = rows[len(chunk) :]
            if kept is None:
                kept = chunk.X.data[5:50]  # a part outlives its chunk
                before = kept.tolist()
        assert kept is not None and np.array_equal(kept, before)
