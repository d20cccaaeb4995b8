"""One stream that turns into another: abrupt or gradual drift, made from any two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..metrics.meters import whole
from .rows import CSR, cut, dicts, join, take

__all__ = ["Switch"]

STEP = 4096  # examples decided together; another value is another stream


class Switch:
    """The examples of `first`, later those of `second`: example t comes from `second` with probability
    1/(1 + e^(−4(t − at)/width)), so that most of the change happens within `width` examples around `at`
    (Bifet et al. 2010); width=0 switches at once. By default `at` is the middle.

    Example t is example t of the stream it comes from, so both must be of one length and one shape.
    """

    def __init__(self, first: Any, second: Any, at: int | None = None, width: int = 0, *, seed: int = 0) -> None:
        for name, stream in (("first", first), ("second", second)):
            if not hasattr(stream, "chunks") or not hasattr(stream, "__len__"):
                raise ParameterError(f"Switch({name}={stream!r:.60}): expected a stream with chunks(size) and a length")
        if len(first) != len(second):
            raise ParameterError(f"Switch: both streams must be of one length, got {len(first):,} and {len(second):,}")
        self.first, self.second = first, second
        self.at = len(first) // 2 if at is None else whole("at", at, least=0)
        self.width, self.seed = whole("width", width, least=0), whole("seed", seed, least=0)

    def __repr__(self) -> str:
        return f"Switch({self.first!r}, {self.second!r}, at={self.at}, width={self.width})"

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for X, y in self.chunks(STEP):
            yield from zip(dicts(X), y.tolist() if isinstance(y, np.ndarray) else y, strict=True)

    def chunks(self, size: int = 1000) -> Iterator[tuple[Any, Any]]:
        """The stream as (X, y), `size` rows at a time; the last chunk holds what is left."""
        return ((part[0], part[1]) for part in cut(self._blocks(), whole("size", size)))

    def _blocks(self) -> Iterator[tuple[Any, Any]]:
        start = 0
        for one, other in zip_longest(self.first.chunks(STEP), self.second.chunks(STEP)):
            rows = len(one[1])
            switched = self._switched(start, rows)
            yield _mixed(one[0], other[0], switched), _mixed(one[1], other[1], switched)
            start += rows

    def _switched(self, start: int, rows: int) -> Any:
        t = np.arange(start, start + rows)
        if self.width == 0:
            return t >= self.at
        with np.errstate(over="ignore"):
            p = 1.0 / (1.0 + np.exp(-4.0 * (t - self.at) / self.width))
        return np.random.Generator(np.random.PCG64([self.seed, start])).random(rows) < p


def _mixed(one: Any, other: Any, switched: Any) -> Any:
    """Row i of `other` where switched[i], else of `one`."""
    if type(one) is not type(other) or getattr(one, "shape", ())[1:] != getattr(other, "shape", ())[1:]:
        shapes = [getattr(part, "shape", type(part).__name__) for part in (one, other)]
        raise ParameterError(f"Switch: both streams must have the same columns, got {shapes[0]} and {shapes[1]}")
    if isinstance(one, np.ndarray):
        return np.where(switched.reshape(-1, *[1] * (one.ndim - 1)), other, one)
    order = np.arange(len(switched)) + len(switched) * switched
    return take(join([one, other]), order) if isinstance(one, CSR | list) else None
