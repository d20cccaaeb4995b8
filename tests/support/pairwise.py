"""Pairwise covers: a few cells of a grid in which any two values that some cell combines still meet.

Most faults show in one value, or where two meet. Of a test marked `full` a cover of its parameters runs by default, and
all of them with `pytest -m full` (conftest.py).
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

Values = tuple[Hashable, ...]
Meeting = tuple[tuple[int, Hashable], ...]  # values, each with its place


def meetings(values: Values, strength: int) -> set[Meeting]:
    """All that `strength` of a cell's values are together: pairs, or triples, or single values."""
    return set(itertools.combinations(enumerate(values), min(strength, len(values))))


def cover(cells: Sequence[Values], strength: int = 2, most: int | None = None) -> list[int]:
    """The places of some cells, in their order, in which all meetings of all the cells occur; or `most` of these, far
    apart.

    Greedy: the cell with the most new meetings is next, the earlier of equals. What a cell adds only shrinks as others
    are taken, so that a cell whose stale count is not the largest need not be counted again.
    """
    left = [meetings(values, strength) for values in cells]
    heap = [(-len(each), at) for at, each in enumerate(left)]
    heapq.heapify(heap)
    covered: set[Meeting] = set()
    taken = []
    while heap:
        stale, at = heapq.heappop(heap)
        left[at] -= covered
        if len(left[at]) == -stale:
            covered |= left[at]
            taken.append(at)
        elif left[at]:
            heapq.heappush(heap, (-len(left[at]), at))
    taken.sort()
    return taken if most is None or most >= len(taken) else [taken[i * len(taken) // most] for i in range(most)]


def values_of(params: Mapping[str, Any]) -> Values:
    """A test's parameters as values of a grid: a cell (a frozen dataclass) is taken apart into its fields if these
    can be compared. What is no text or number goes by its identity, since cases of a test share their parameters."""
    values: list[Hashable] = []
    for value in params.values():
        fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else ()
        parts = [getattr(value, field.name) for field in fields]
        if parts and all(isinstance(part, Hashable) for part in (value, *parts)):
            values += parts
        else:
            values.append(value if isinstance(value, str | int | float) else id(value))
    return tuple(values)
