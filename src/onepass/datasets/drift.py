"""Streams that change into others: abrupt, gradual and recurring drift between given streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..metrics.meters import whole
from ..rows.rows import CSR, cut, dicts, join, take

__all__ = ["Recurring", "Switch"]

STEP = 4096  # the examples of a block of draws; another value makes another stream


class _Composed:
    """Example t is example t of one of the streams, so all must have the same length and shape."""

    parts: tuple[Any, ...]
    seed: int

    def _which(self, start: int, rows: int) -> Any:
        """For examples start, start + 1, …: the number of the stream that each is taken from."""
        raise NotImplementedError

    def _check(self) -> None:
        name = type(self).__name__
        for stream in self.parts:
            if not hasattr(stream, "chunks") or not hasattr(stream, "__len__"):
                raise ParameterError(f"{name}({stream!r:.60}): expected a stream with chunks(size) and a length")
        lengths = [len(stream) for stream in self.parts]
        if len(set(lengths)) > 1:
            listed = ", ".join(f"{length:,}" for length in lengths)
            raise ParameterError(f"{name}: the streams must be of one length, got {listed}")

    def __len__(self) -> int:
        return len(self.parts[0])

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for X, y in self.chunks(STEP):
            yield from zip(dicts(X), y.tolist() if isinstance(y, np.ndarray) else y, strict=True)

    def chunks(self, size: int = 1000) -> Iterator[tuple[Any, Any]]:
        """The stream as (X, y), `size` rows at a time; the last chunk holds what is left."""
        return ((part[0], part[1]) for part in cut(self._blocks(), whole("size", size)))

    def _blocks(self) -> Iterator[tuple[Any, Any]]:
        start = 0
        for chunks in zip(*(stream.chunks(STEP) for stream in self.parts), strict=True):
            rows = len(chunks[0][1])
            which = self._which(start, rows)
            yield tuple(_mixed([chunk[i] for chunk in chunks], which) for i in (0, 1))
            start += rows

    def _changed(self, start: int, rows: int, since: Any, width: int) -> Any:
        """Has the change happened, `since` examples after its middle? With probability 1/(1 + e^(−4·since/width))."""
        if width == 0:
            return since >= 0
        with np.errstate(over="ignore"):
            p = 1.0 / (1.0 + np.exp(-4.0 * since / width))
        return np.random.Generator(np.random.PCG64([self.seed, start])).random(rows) < p


class Switch(_Composed):
    """The examples of `first`, later those of `second`: example t comes from `second` with probability
    1/(1 + e^(−4(t − at)/width)), so that most of the change happens within `width` examples around `at`
    (Bifet et al. 2010); width=0 switches at once. By default `at` is the middle.

    Example t is example t of the stream it is taken from, so both must have the same length and shape.
    """

    def __init__(self, first: Any, second: Any, at: int | None = None, width: int = 0, *, seed: int = 0) -> None:
        self.first, self.second = self.parts = (first, second)
        self._check()
        self.at = len(first) // 2 if at is None else whole("at", at, least=0)
        self.width, self.seed = whole("width", width, least=0), whole("seed", seed, least=0)

    def __repr__(self) -> str:
        return f"Switch({self.first!r}, {self.second!r}, at={self.at}, width={self.width})"

    def _which(self, start: int, rows: int) -> Any:
        t = np.arange(start, start + rows)
        return self._changed(start, rows, t - self.at, self.width).astype(np.int64)


class Recurring(_Composed):
    """The streams take turns of `every` examples, one after the other, again and again.

    A change takes some `width` examples around the end of a turn, as in `Switch`; 0 is at once.
    """

    def __init__(self, *streams: Any, every: int, width: int = 0, seed: int = 0) -> None:
        if len(streams) < 2:
            raise ParameterError(f"Recurring: expected two or more streams, got {len(streams)}")
        self.parts = streams
        self._check()
        self.every, self.width = whole("every", every), whole("width", width, least=0)
        self.seed = whole("seed", seed, least=0)

    def __repr__(self) -> str:
        return f"Recurring({', '.join(map(repr, self.parts))}, every={self.every}, width={self.width})"

    def _which(self, start: int, rows: int) -> Any:
        t = np.arange(start, start + rows)
        turn = (t + self.every // 2) // self.every  # the number of the nearest change; 0 is the beginning, not a change
        since = np.where(turn > 0, t - turn * self.every, 1e9)
        changed = self._changed(start, rows, since, self.width)
        return np.where(changed, turn, turn - 1) % len(self.parts)


def _mixed(chunks: list[Any], which: Any) -> Any:
    """Row i of chunks[which[i]]."""
    shapes = [getattr(part, "shape", ())[1:] for part in chunks]
    if len({type(part) for part in chunks}) > 1 or len(set(shapes)) > 1:
        found = " and ".join(str(getattr(part, "shape", type(part).__name__)) for part in chunks)
        raise ParameterError(f"the streams must have the same columns, got {found}")
    if isinstance(chunks[0], np.ndarray):
        return np.stack(chunks)[which, np.arange(len(which))]
    order = np.arange(len(which)) + len(which) * which
    return take(join(chunks), order) if isinstance(chunks[0], CSR | list) else None
