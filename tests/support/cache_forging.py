"""Caches of rows as a forger writes them: checksums are right, but shapes, heads, arrays or their order are not.

By hand, in the folder tests: python -W ignore -m support.cache_forging 100000 [seed]
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import struct
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import onepass as op
from onepass import _native
from onepass.errors import OnepassError
from onepass.streams import cache as caches

from .forging import change_array, change_config


@dataclass
class Record:
    """A record of a cache of rows, to be changed."""

    shape: list[int]
    head: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def claim(self) -> None:
        """Say of the arrays what they are."""
        for place, name in ((0, "starts"), (1, "index")):
            if name in self.arrays:
                self.shape[place] = self.arrays[name].size
        if "value" in self.arrays:
            self.shape[2] = self.arrays["value"].itemsize
        kinds = self.head.get("arrays")
        for name in kinds if isinstance(kinds, dict) else ():
            if name in self.arrays:
                kinds[name] = [self.arrays[name].dtype.str, self.arrays[name].size]


def records_of(cache: bytes) -> tuple[bytes, list[Record]]:
    """What is before the records of a cache, and the records; the closing one has nothing."""
    at = 32 + -(-int.from_bytes(cache[24:32], "little") // 8) * 8
    begin, records = cache[:at], []
    while at < len(cache):
        length, size, _ = caches.FRONT.unpack_from(cache, at)
        at += caches.FRONT.size
        shape = list(caches.SHAPE.unpack_from(cache, at))
        at += caches.SHAPE.size
        head = json.loads(cache[at : at + length])
        at += caches._padded(length)
        end, arrays = at + size, {}
        kinds = {"starts": ("<i4", shape[0]), "index": ("<i4", shape[1]), "value": (f"<f{shape[2]}", shape[1])}
        for name, (kind, count) in {**kinds, **head["arrays"]}.items() if head else ():
            arrays[name] = np.frombuffer(cache, dtype=kind, count=count, offset=at).copy()
            at += caches._padded(arrays[name].nbytes)
        records.append(Record(shape, head, arrays))
        at = end
    return begin, records


def record_bytes(record: Record) -> bytes:
    """A record as a file has it, under a checksum that fits."""
    file = io.BytesIO()
    caches._write(file, tuple(record.shape), record.head, list(record.arrays.values()))
    return file.getvalue()


CLAIMS = [0, 1, 2, 3, 4, 5, 8, 2**20, 2**30, 2**31 - 1, 2**31, 2**32, 2**61, 2**62, 2**63, 2**64 - 1]
KINDS = [
    "O",
    "<i8",
    "<u8",
    "<f4",
    ">f8",
    "<f2",
    "|b1",
    "|S3",
    "<U2",
    "<M8[D]",
    "<m8[s]",
    "|V8",
    "<c16",
    "i4,i4",
    "x",
    "",
]


def change_record(rng: np.random.Generator, record: Record) -> None:
    """Another claim, head, array or kind of array; half of the time what it says of its arrays is made to fit."""
    kind = rng.integers(5)
    kinds = record.head.get("arrays")
    if kind == 0:
        place = rng.integers(4)
        near = max(0, record.shape[place] + int(rng.integers(-2, 3)))
        record.shape[place] = near if rng.random() < 0.4 else CLAIMS[rng.integers(len(CLAIMS))]
    elif kind == 1 and record.head:
        change_config(rng, record.head, {})
    elif kind == 2 and isinstance(kinds, dict) and kinds:
        name = sorted(kinds)[rng.integers(len(kinds))]
        kinds[name] = [KINDS[rng.integers(len(KINDS))], record.shape[0] - 1]
    else:
        change_array(rng, record.head, record.arrays)
        if rng.random() < 0.5:
            record.claim()


def _framed(rng: np.random.Generator, data: bytes) -> bytes:
    """A record whose lengths or checksum are others; mostly under a checksum of what it says it is."""
    length, size, _ = caches.FRONT.unpack_from(data)
    steps = [-8, -1, 1, 8, 64, 2**31, 2**62]
    change = steps[rng.integers(len(steps))]
    length, size = (max(0, length + change), size) if rng.random() < 0.5 else (length, max(0, size + change))
    body = data[caches.FRONT.size :]
    whole = body[: caches.SHAPE.size + caches._padded(length) + size]
    checksum = _native.checksum(whole) if rng.random() < 0.9 else 1
    return bytes(caches.FRONT.pack(length % 2**64, size % 2**64, checksum)) + body


class CacheForge:
    """A source of text, the cache of its rows, and how both are read."""

    def __init__(self, source: Path, text: str, options: dict[str, Any], blocks: int = 60) -> None:
        source.write_text(text)
        self.cache = source.with_suffix(".cache")
        self.open = lambda **more: op.stream(source, cache=self.cache, block_size=blocks, **options, **more)
        self.positions = [chunk.position for chunk in self.open().batches(2)]
        self.sound = self.cache.read_bytes()
        self.begin, self.records = records_of(self.sound)

    def forge(self, rng: np.random.Generator) -> bool:
        """Write another cache; False where none could be written so."""
        records = copy.deepcopy(self.records)
        try:
            with np.errstate(all="ignore"):
                for _ in range(1 + int(rng.integers(3))):
                    change_record(rng, records[rng.integers(len(records))])
            pieces = [record_bytes(record) for record in records]
        except (ValueError, struct.error):
            return False
        at, other = rng.integers(len(pieces), size=2)
        kind = rng.integers(20)
        if kind == 0:
            del pieces[at]
        elif kind == 1:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif kind == 2:
            pieces.insert(at, pieces[other])
        elif kind < 6:
            pieces[at] = _framed(rng, pieces[at])
        elif kind == 6:
            pieces[at] = pieces[at][: rng.integers(len(pieces[at]))]
        begin = bytearray(self.begin)
        if rng.random() < 0.02:
            begin[rng.integers(len(begin))] ^= 1 << int(rng.integers(8))
        self.cache.write_bytes(bytes(begin) + b"".join(pieces))
        return True

    def use(self, rng: np.random.Generator) -> str:
        """Read it as one would, and learn from it. Only errors of ours may come of it."""
        learner = op.LinearClassifier()
        try:
            more = {"start": self.positions[rng.integers(len(self.positions))]} if rng.random() < 0.3 else {}
            for chunk in self.open(**more).batches(None if rng.random() < 0.5 else int(rng.integers(1, 9))):
                list(chunk.answers())
                known = chunk.labelled()
                with contextlib.suppress(OnepassError):
                    learner.learn_many(known.X, known.y, known.weight)
                with contextlib.suppress(OnepassError):
                    learner.predict_many(chunk.X)
        except OnepassError:
            return "refused"
        return "used"


SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "vw.vw": ("1 2 a|x p:1 q:2\n-1 1 0.5 b|x q:.5 r\n1 |y s\n| t:1e-3\n-1 |x p q r s t u v\n" * 4, {}),
    "hashed.vw": ("1 2 a|x p:1 q:2\n-1 |x q:.5 r\nbad |x:y:z :\n1 |y s\n" * 4, {"hash_bits": 5, "on_error": "skip"}),
    "kept.vw": ("1 2 a|x p:1 q:2\n-1 |x q:.5 r\n" * 4, {"hash_bits": 5, "keep_names": True}),
    "sets.vw": ("1,2 |x p q:2\n2 |x q\n3,1,2 |x r\n" * 4, {"multilabel": True}),
    "rank.svm": ("1 qid:1 1:2 5:.5\n0 qid:1 2:1 3:1\n2 qid:2 1:1\n" * 4, {"hash_bits": None}),
    "table.csv": (
        "a,b,c,w,i,t\n" + "1,x,yes,1,r1,5\n.5,y,no,2,r2,6\n,z,,1,r3,7\n" * 4,
        {"label": "c", "weight": "w", "id": "i", "time": "t"},
    ),
}


def fuzz(count: int, seed: int = 0) -> dict[str, int]:
    """So many forged caches, spread over the sources; raises what is no error of ours."""
    with tempfile.TemporaryDirectory() as folder:
        forges = [CacheForge(Path(folder) / name, *SOURCES[name]) for name in SOURCES]
        counts: dict[str, int] = {}
        for number in range(count):
            rng, forge = np.random.default_rng([seed, number]), forges[number % len(forges)]
            found = forge.use(rng) if forge.forge(rng) else "not written"
            counts[found] = counts.get(found, 0) + 1
    return counts


if __name__ == "__main__":
    print(fuzz(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
