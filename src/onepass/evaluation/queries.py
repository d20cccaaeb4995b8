"""Examples of a ranking stream gathered into queries: one outcome for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import Outcomes
from ..rows.examples import Examples
from .run_state import decode, encode

__all__ = ["Queries"]

Array = NDArray[np.float64]


class Queries:
    """The rows of a query follow one another; a query is complete when the next begins, or the stream ends."""

    def __init__(self) -> None:
        self._key: Any = None
        self._open: list[tuple[Array, Array]] = []  # relevances and scores of the query that is still coming

    def add(self, rows: Examples, scores: Array) -> Outcomes | None:
        """Take rows with the scores they had; the queries that are complete now, if any."""
        relevance = np.asarray(rows.y, dtype=np.float64)
        keys = list(rows.query)
        done: list[tuple[Array, Array]] = []
        start = 0
        for i, key in enumerate(keys):
            if key != self._key:
                if i > start:
                    self._open.append((relevance[start:i], scores[start:i]))
                done += self._end()
                self._key, start = key, i
        self._open.append((relevance[start:], scores[start:]))
        return _outcomes(done)

    def state(self) -> Any:
        """What `restore` needs, as JSON."""
        return encode([self._key, self._open])

    def restore(self, content: Any) -> None:
        self._key, self._open = decode(content)

    def close(self) -> Outcomes | None:
        return _outcomes(self._end())

    def _end(self) -> list[tuple[Array, Array]]:
        parts, self._open = self._open, []
        if not parts:
            return []
        return [(np.concatenate([y for y, _ in parts]), np.concatenate([s for _, s in parts]))]


def _outcomes(queries: list[tuple[Array, Array]]) -> Outcomes | None:
    if not queries:
        return None
    width = max(len(y) for y, _ in queries)
    relevance, scores = (np.full((len(queries), width), np.nan) for _ in "ys")
    for row, (y, s) in enumerate(queries):
        relevance[row, : len(y)], scores[row, : len(s)] = y, s
    return Outcomes("rankings", relevance, np.zeros(len(queries)), np.ones(len(queries)), scores)
