"""Cut and check the rows of a chunk, for the verbs that learn."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..evaluation.examples import equal_runs
from ..rows.batches import as_base
from ..streams.chunk import join, known
from ..streams.row_stream import BLOCK
from .tasks import as_labels

if TYPE_CHECKING:
    from ..streams import Chunk

__all__ = [
    "check_bases",
    "cut",
    "declare_sides",
    "inside",
    "part_of",
    "round_up",
    "rows_of",
    "runs_of_labels",
    "split",
    "usual_every",
    "whole_queries",
]

LONGEST = 1 << 20  # the most examples of a query


def usual_every(chunk: Chunk, sizes: list[int]) -> int:
    """About fifty reports, as far as the first chunk tells; `sizes`: the files' bytes, where they are known."""
    size, at = sum(sizes), chunk.position
    if size and at.file == 0:
        end = at.offset or min(BLOCK, sizes[0])
        return round_up(len(chunk) * max(1.0, size / end) / 50)
    return round_up(len(chunk) / 50) if len(chunk) < 1000 else 10_000


def round_up(value: float) -> int:
    """Round up to one of 1, 2, 5, 10, 20, 50, …"""
    power = 1
    while 10 * power < value:
        power *= 10
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def cut(chunk: Chunk, every: int) -> Iterator[Chunk]:
    """Cut the chunk into parts that end at multiples of `every` examples, each with its position; 0 for no cuts."""
    end, start = chunk.position, 0
    while start < len(chunk):
        stop = len(chunk)
        if every:
            before = end.example - len(chunk) + start
            stop = min(stop, start + every - before % every)
        yield part_of(chunk, start, stop)
        start = stop


def part_of(chunk: Chunk, start: int, stop: int) -> Chunk:
    """Some of the rows, with the position where they end."""
    if stop - start == len(chunk):
        return chunk
    return chunk.part(start, stop)


def split(chunk: Chunk, rows: int) -> tuple[Chunk, Chunk]:
    """Split a chunk: the first `rows` rows, and the others."""
    return part_of(chunk, 0, rows), part_of(chunk, rows, len(chunk))


def rows_of(chunk: Chunk, kind: str) -> Chunk:
    """The rows in the form for the loop; `kind`: the kind of the metrics."""
    y = as_labels(chunk.y) if kind == "classes" else chunk.y
    return dataclasses.replace(chunk, y=y, time=None, base=as_base(chunk.base, len(chunk)))


def inside(chunk: Chunk) -> Chunk:
    """One-class learning: every row, labelled or not, becomes an example that should be inside the radius."""
    return dataclasses.replace(chunk, y=np.zeros(len(chunk)))


def declare_sides(model: Any, chunk: Chunk) -> None:
    """Declare two classes from the first rows if these have initial predictions, which favour the greater label."""
    if chunk.base is None or not np.any(chunk.base) or model.task not in ("auto", "binary") or model.started:
        return
    labels = sorted(set(as_labels(chunk.labelled().y).tolist()))
    if len(labels) == 2 and hasattr(model, "declare"):
        model.declare(labels)


def check_bases(model: Any, chunk: Chunk, learned: bool) -> None:
    """Raise if the model does not support the initial prediction of an example. If the rows are `learned`, their labels
    count, because these may be new classes."""
    if chunk.base is None or not np.any(chunk.base) or model is None:
        return
    if not hasattr(model, "refused_base"):
        chunk.require_no_base("but an ensemble of rules begins at 0; name a rule, or take it out")
    there = np.flatnonzero(known(chunk.y)) if learned else np.arange(len(chunk))
    refused = model.refused_base(chunk.base[there], as_labels(chunk.y[there]) if learned else None)
    if refused is not None:
        raise chunk.refused_base(int(there[refused[0]]), refused[1])


def runs_of_labels(chunk: Chunk, one_by_one: bool = False) -> Iterator[tuple[Chunk, bool]]:
    """Runs of consecutive rows that all have a label, or all have none."""
    if not len(chunk):
        return
    if not chunk.unlabelled and not one_by_one:
        yield chunk, True
        return
    there = known(chunk.y)
    runs = itertools.pairwise(range(len(chunk) + 1)) if one_by_one else equal_runs(there)
    for start, stop in runs:
        yield chunk.part(start, stop, chunk.position), bool(there[start])


def whole_queries(chunks: Iterator[Chunk], every: int) -> Iterator[Chunk]:
    """Chunks of whole queries: the last query is held back until it is complete. With `every`, a chunk also ends at the
    first end of a query after each multiple of so many examples."""
    held: list[Chunk] = []
    for chunk in chunks:
        keys = _queries(chunk)
        ends = np.flatnonzero(np.concatenate([keys[1:] != keys[:-1], [False]])) + 1
        if held and _queries(held[-1])[-1] != keys[0]:
            yield join(held)
            held = []
        start, first = 0, chunk.position.example - len(chunk)
        for stop in ends.tolist():
            due = every and (first + stop) // every > (first + start) // every
            if due or stop == ends[-1]:
                yield join([*held, chunk.part(start, stop)])
                held, start = [], stop
        held.append(chunk.part(start, len(chunk)))
        if sum(map(len, held)) > LONGEST:
            raise InputError(f"a query of more than {LONGEST:,} examples; ranking holds a query in memory")
    if held:
        yield join(held)


def _queries(chunk: Chunk) -> Any:
    return np.full(len(chunk), -1) if chunk.query is None else chunk.query
