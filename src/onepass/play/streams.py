"""Streams to play: those of the worked numbers, generated ones, and your own, validated."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..errors import InputError, LabelError, ParameterError

TASKS = ("binary", "multiclass", "regression")
MOST_CLASSES = 10  # a class is drawn as its digit

Example = tuple[tuple[float, ...], Any]

# The example streams of the worked numbers: A is binary, M has three classes. Neither needs an intercept.
STREAMS: dict[str, list[Example]] = {
    "A": [((1, 2), 1), ((2, -1), -1), ((-1, 1), -1), ((1, 1), 1), ((0, -2), -1)],
    "M": [((1, 0), 0), ((0, 1), 1), ((-1, -1), 2), ((1, 1), 1), ((2, -1), 0)],
}


def read_examples(stream: Any, task: str, rounds: int, seed: int) -> tuple[list[Example], str]:
    """The first `rounds` examples, validated, and a name for the stream."""
    width = 1 if task == "regression" else 2
    if stream is None:
        pairs: Iterable[Any] = _made(task, rounds, seed)
        source = f"a stream made from seed {seed}"
    elif isinstance(stream, str):
        if stream not in STREAMS:
            raise ParameterError(f"stream={stream!r}: expected one of {', '.join(STREAMS)}, or a list of ((x1, x2), y)")
        fits = {"A": "binary", "M": "multiclass"}[stream]
        if task != fits:
            raise ParameterError(f"stream={stream!r} is for task={fits!r}, not for task={task!r}")
        pairs, source = STREAMS[stream], f"stream {stream}"
    elif hasattr(stream, "chunks"):
        pairs, source = _rows(stream, width, rounds), repr(stream)
    else:
        pairs, source = stream, "the given stream"
    if not isinstance(pairs, Iterable):
        raise ParameterError(f"stream={stream!r:.80}: expected a list of ((x1, x2), y), or a generator with chunks")
    examples = [_example(i, pair, width) for i, pair in enumerate(itertools.islice(pairs, rounds), start=1)]
    if not examples:
        raise InputError("the stream is empty: there is nothing to play")
    return _labelled(examples, task), source


def _rows(stream: Any, width: int, rounds: int) -> Iterator[Any]:
    for X, y in stream.chunks(rounds):
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] < width:
            raise ParameterError(f"stream={stream!r:.80}: its rows are not arrays of {width} or more numbers")
        yield from zip(X[:, :width].tolist(), y.tolist(), strict=True)


def _example(i: int, pair: Any, width: int) -> Example:
    expected = "(x, y)" if width == 1 else "((x1, x2), y)"
    try:
        x, y = pair
        row = np.atleast_1d(np.asarray(x))
    except (TypeError, ValueError):
        raise InputError(f"example {i}: expected {expected}, got {pair!r:.80}") from None
    if row.dtype.kind not in "iuf" or row.shape != (width,) or not np.all(np.isfinite(row)):
        raise InputError(f"example {i}: expected {expected} with finite numbers, got {pair!r:.80}")
    return tuple(row.astype(np.float64).tolist()), y


def _labelled(examples: list[Example], task: str) -> list[Example]:
    labels: list[Any] = []
    for i, (_, y) in enumerate(examples, start=1):
        number = float(y) if isinstance(y, numbers.Real | np.bool_) else math.nan
        if task == "regression":
            if not math.isfinite(number):
                raise LabelError(f"example {i}: y must be a finite number, got {y!r}")
            labels.append(number)
            continue
        legal = (-1, 0, 1) if task == "binary" else range(MOST_CLASSES)
        if number not in legal:
            expected = "-1 or +1, or 0 or 1" if task == "binary" else f"a whole number from 0 to {MOST_CLASSES - 1}"
            raise LabelError(f"example {i}: a {task} label must be {expected}, got {y!r}")
        labels.append(int(number))
    if task == "binary":
        if {-1, 0} <= set(labels):
            raise LabelError("binary labels must be -1 and +1, or 0 and 1; these are both -1 and 0")
        labels = [y or -1 for y in labels]
    return [(x, y) for (x, _), y in zip(examples, labels, strict=True)]


def _made(task: str, rounds: int, seed: int) -> list[Example]:
    """A generated stream whose numbers have one decimal, so that a round can be computed by hand."""
    rng = np.random.default_rng([seed, TASKS.index(task)])
    if task == "regression":
        X = rng.uniform(-1, 1, (rounds, 2))
        X = np.column_stack([2.5 * X[:, 0], 2 * X[:, 0] + 0.5 + 0.6 * X[:, 1]]).round(1)
        return [((x,), y) for x, y in X.tolist()]
    classes = 3 if task == "multiclass" else 2
    examples: list[Example] = []
    while len(examples) < rounds:
        # Six at a time: every class is equally frequent, and one of the six, but not of the first two, lies in the
        # cloud of another class.
        labels = np.concatenate([rng.permutation(classes) for _ in range(6 // classes)])
        clouds = labels.copy()
        clouds[rng.integers(2, 6)] += 1
        angle = 0.6 + 2 * np.pi * clouds / classes
        X = (1.5 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.6, (6, 2))).round(1)
        values = 1 - 2 * labels if task == "binary" else labels
        examples += [((a, b), y) for (a, b), y in zip(X.tolist(), values.tolist(), strict=True)]
    return examples[:rounds]


def whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name}={value!r}: expected a whole number >= {least}")
    return int(value)
