"""The number of rows that are learned in one call: few enough that a signal is handled soon, even by slow learners."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from .rows import part_of

if TYPE_CHECKING:
    from ..streams import Chunk

__all__ = ["Pace"]

FIRST = 32  # rows of the first piece, before the speed of the learner is known
SHORT, LONG = 0.05, 0.2  # seconds: the limits for the time of a piece


class Pace:
    """Cuts chunks into pieces that take about a tenth of a second each. Fast learners soon get whole chunks."""

    def __init__(self) -> None:
        self.rows = FIRST

    def pieces(self, chunk: Chunk, whole_queries: bool = False) -> Iterator[Chunk]:
        """The chunk in pieces, each as long as the time spent on those before it allows. Pieces of `whole_queries` end
        where a query does."""
        start, ends = 0, _query_ends(chunk) if whole_queries else None
        while start < len(chunk):
            stop = min(start + self.rows, len(chunk))
            if ends is not None:
                stop = int(ends[np.searchsorted(ends, stop)])
            began = perf_counter()
            yield part_of(chunk, start, stop)
            self._adapt(stop - start, perf_counter() - began)
            start = stop

    def _adapt(self, rows: int, seconds: float) -> None:
        if seconds > LONG:
            self.rows = max(1, int(rows * (SHORT + LONG) / 2 / seconds))
        elif seconds < SHORT and rows >= self.rows:
            self.rows *= 4


def _query_ends(chunk: Chunk) -> np.ndarray:
    if chunk.query is None:
        return np.array([len(chunk)])
    return np.append(np.flatnonzero(chunk.query[1:] != chunk.query[:-1]) + 1, len(chunk))
