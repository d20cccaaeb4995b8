"""Values of text features: nearly all are 1, and the few that are not stand in memory that chunks after them use."""

from __future__ import annotations

import io
import itertools
import random

import numpy as np
import pytest

import onepass as op
from onepass.streams import Chunk


def rows_of(share: float, rows: int, seed: int) -> list[list[tuple[str, float]]]:
    """Words, of which a share is given another value, by a number or by standing several times."""
    rng = random.Random(seed)
    made = []
    for _ in range(rows):
        row = [(f"w{word}", 1.0) for word in rng.sample(range(200), 12)]
        for i, (word, _) in enumerate(row):
            if rng.random() < share:
                row[i] = (word, rng.choice([0.5, 2.0, -1.0, 3.0]))
        made.append(row)
    return made


def text_of(rows: list[list[tuple[str, float]]]) -> bytes:
    def spelled(word: str, value: float) -> str:
        return word if value == 1.0 else " ".join([word] * int(value)) if value in (2.0, 3.0) else f"{word}:{value:g}"

    return b"".join(f"1 | {' '.join(spelled(*pair) for pair in row)}\n".encode() for row in rows)


def same(chunk: Chunk, rows: list[list[tuple[str, float]]]) -> bool:
    indptr, values = chunk.X.indptr, chunk.X.data
    found = [values[a:b].tolist() for a, b in itertools.pairwise(indptr)]
    return found == [[value for _, value in row] for row in rows]


@pytest.mark.parametrize("hash_bits", [None, 24])
@pytest.mark.parametrize("share", [0.0, 0.002, 0.03, 0.07, 0.5, 1.0])
def test_values_are_those_of_the_text(share: float, hash_bits: int | None) -> None:
    rows = rows_of(share, 3000, seed=1)
    stream = op.stream(io.BytesIO(text_of(rows)), format="vw", hash_bits=hash_bits, block_size=20_000)
    chunks = list(stream.batches())  # all of them alive at once
    start = 0
    for chunk in chunks:
        assert same(chunk, rows[start : start + len(chunk)])
        assert not chunk.X.data.flags.writeable
        start += len(chunk)
    assert start == len(rows) and len(chunks) > 5


def test_what_is_given_back_is_ones_again() -> None:
    for seed in range(4):
        for share in (0.01, 0.0):
            rows = rows_of(share, 500, seed)
            kept = None
            for chunk in op.stream(io.BytesIO(text_of(rows)), format="vw", block_size=8_000).batches():
                assert same(chunk, rows[: len(chunk)])
                rows = rows[len(chunk) :]
                if kept is None:
                    kept = chunk.X.data[5:50]  # a part outlives its chunk
                    before = kept.tolist()
            assert kept is not None and np.array_equal(kept, before)
