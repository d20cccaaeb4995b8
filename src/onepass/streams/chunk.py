"""`Chunk`: consecutive rows of a stream with their labels, and the `Position` where they end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ParameterError, short
from ..rows.examples import Examples
from ..rows.labels import label_array
from ..rows.rows import CSR

__all__ = ["LABELS", "Chunk", "Position", "exact", "known", "whole"]


LABELS = ("numbers", "strings", "truth values")  # kinds: all labels of a stream are of one kind


@dataclass(frozen=True)
class Position:
    """A place in a stream: after `skip` rows, counted from `offset` of file number `file` on.

    A line begins at byte `offset` of the decompressed text; in Parquet and Arrow, `offset` counts rows. `line` is the
    number of that line, from 1; `example` and `skipped` count the rows and the malformed lines before this place.
    `labels` is the kind of the labels so far, one of LABELS, in JSON Lines, Parquet and Arrow. A position does not
    depend on how the stream is cut into blocks. `to_dict` gives it in a form for JSON.
    """

    file: int = 0
    offset: int = 0
    line: int = 1
    skip: int = 0
    example: int = 0
    skipped: int = 0
    labels: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def back(self, rows: int) -> Self:
        """The position so many rows before, in the same block of the file."""
        return replace(self, skip=self.skip - rows, example=self.example - rows)

    @classmethod
    def of(cls, given: Position | Mapping[str, Any] | None) -> Self:
        """From a position, or from its `to_dict()`; None: the beginning."""
        if given is None:
            return cls()
        if not isinstance(given, Position | Mapping):
            raise ParameterError(f"start={short(given)}: expected a Position, or what its to_dict() gave")
        values = given.to_dict() if isinstance(given, Position) else dict(given)
        wrong = _wrong_place(values)
        if wrong:
            raise ParameterError(f"start={short(given)}: expected a Position, or what its to_dict() gave, but {wrong}")
        return cls(**values)


def _wrong_place(values: dict[Any, Any]) -> str | None:
    """What is wrong with a position that no stream can have given."""
    names = [each.name for each in fields(Position)]
    if missing := [name for name in names if name not in values]:
        return f"{' and '.join(missing)} are missing" if len(missing) > 1 else f"{missing[0]} is missing"
    if unknown := [name for name in values if name not in names]:
        return f"it has no {unknown[0]!r}"
    if values["labels"] not in ("", *LABELS):
        return f"labels must be one of {', '.join(LABELS)} or empty, got {short(values['labels'])}"
    for name in names[:-1]:
        value, least = values[name], int(name == "line")
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 63:
            return f"{name} must be a whole number from {least} on, got {short(value)}"
    if values["skip"] > values["example"]:
        return f"{values['skip']:,} rows are to be left out, and only {values['example']:,} came before"
    return None


@dataclass(frozen=True)
class Chunk(Examples):
    """Rows in the order of the stream.

    `X` has the rows' features (a `CSR`; a list of mappings where the source is Python's own objects), `y` their labels:
    numbers or strings, NaN or None where there is none. `weight` (importance), `id` (VW's tag), `time`, `base` (VW's
    initial prediction) and `query` (svmlight's qid) are None where no row has them. `position` is where the rows end:
    `op.stream(..., start=position)` goes on from there.
    """

    y: NDArray[Any]
    id: NDArray[Any] | None = None
    position: Position = field(default_factory=Position)

    @classmethod
    def empty(cls) -> Self:
        """No rows."""
        X = CSR(np.zeros(1, np.int32), np.empty(0, np.int32), np.empty(0), (0, 0), True)
        return cls(X, np.empty(0))

    def __len__(self) -> int:
        return len(self.y)

    def answers(self) -> list[Any]:
        """The labels one by one: None where there is none."""
        there = known(self.y)
        if there.all():
            return list(self.y.tolist())
        labels = iter(whole(self.y[there]).tolist())
        return [next(labels) if known_here else None for known_here in there.tolist()]

    @property
    def unlabelled(self) -> bool:
        """Is there a row without a label?"""
        return self.y.dtype.kind in "fO" and not bool(known(self.y).all())

    def require_no_base(self, why: str) -> None:
        """Refuse rows with an initial prediction where it would be ignored."""
        if self.base is not None and np.any(self.base != 0.0):
            raise self.refused_base(int(np.flatnonzero(self.base)[0]), why)

    def refused_base(self, row: int, why: str) -> InputError:
        """What is wrong with the initial prediction of a row."""
        assert self.base is not None
        has = f"has an initial prediction ({self.base[row]:g}, the third number of its label)"
        return InputError(f"example {self._number(row):,} {has}, {why}")

    def require_no_weight(self, why: str) -> None:
        """Refuse rows with an importance where it would be ignored."""
        if self.weight is not None and np.any(self.weight != 1.0):
            row = int(np.flatnonzero(self.weight != 1.0)[0])
            raise InputError(f"example {self._number(row):,} has an importance ({self.weight[row]:g}), {why}")

    def _number(self, row: int) -> int:
        """The number of a row among all examples of the stream, from 1."""
        return self.position.example - len(self) + row + 1

    def part(self, start: int, stop: int, position: Position | None = None) -> Self:
        """Some of the rows. They end at `position`, by default so many rows before the end of these."""
        if position is None:
            position = self.position.back(len(self) - stop)
        return self._select(self.X[start:stop], slice(start, stop), position)

    def narrow_part(self, start: int, stop: int, position: Position) -> Self:
        """Some of the rows of a parsed block. They have as many columns as they reach, and labels of their own kind."""
        part = self._select(self.X.narrow_part(start, stop), slice(start, stop), position)
        return replace(part, y=whole(part.y))

    def labelled(self) -> Self:
        """The rows that have a label."""
        if not self.unlabelled:
            return self
        keep = np.flatnonzero(known(self.y))
        X = [self.X[row] for row in keep] if isinstance(self.X, list) else self.X.take(keep)
        kept = self._select(X, keep, self.position)
        return replace(kept, y=label_array(kept.y.tolist()) if kept.y.dtype == object else whole(kept.y))

    def selected(self, keep: NDArray[np.bool_]) -> Self:
        """The rows that `keep` marks, as their columns are."""
        rows = np.flatnonzero(keep)
        return self._select(self.X.take(rows), rows, self.position)

    def _select(self, X: Any, rows: Any, position: Position) -> Self:
        """The rows X with the entries of all columns that belong to them."""
        columns: dict[str, Any] = {
            name: None if (column := getattr(self, name)) is None else column[rows] for name in COLUMNS
        }
        return replace(self, X=X, position=position, **columns)


COLUMNS = ("y", "weight", "id", "time", "base", "query")


def known(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries are there: neither None nor NaN."""
    if y.dtype.kind == "f":
        return np.asarray(~np.isnan(y))
    if y.dtype == object:
        return np.array([value is not None and value == value for value in y.tolist()], dtype=bool)
    return np.ones(len(y), dtype=bool)


def whole(y: NDArray[Any]) -> NDArray[Any]:
    """Numbers as integers where all of them are whole; anything else as it is."""
    if y.dtype.kind != "f":
        return y
    with np.errstate(invalid="ignore"):  # NaN and what is too large are not whole
        as_integers = y.astype(np.int64)
    fits = np.array_equal(as_integers, y) and (not len(y) or -(2**53) < y.min() <= y.max() < 2**53)
    return as_integers if fits else y


def exact(values: list[Any]) -> NDArray[Any]:
    """Values of one kind as an array that holds each unchanged; NaN or None where there is none."""
    there = [value for value in values if value is not None]
    gaps, kinds = len(there) < len(values), {type(value) for value in there}
    largest = max((abs(value) for value in there if type(value) is int), default=0)
    if kinds <= {int, float} and (gaps or kinds != {int}) and largest <= 1 << 53:  # a float64 would round larger ones
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return label_array(values)


def mappings(X: Any, base: int = 0) -> Iterator[Mapping[str, Any]]:
    """Each row as a mapping of names to numbers; columns without names have the numbers of the file."""
    if isinstance(X, list):
        yield from X
        return
    names = X.table.names(0, X.shape[1]) if X.table is not None else None
    for start, stop in pairwise(X.indptr.tolist()):
        columns = X.indices[start:stop].tolist()
        called = [names[j] for j in columns] if names is not None else [str(j + base) for j in columns]
        yield dict(zip(called, X.data[start:stop].tolist(), strict=True))


def join(parts: list[Chunk]) -> Chunk:
    """Consecutive pieces as one chunk."""
    if len(parts) == 1:
        return parts[0]
    X: Any
    if isinstance(parts[0].X, list):
        X = [row for part in parts for row in part.X]
    else:
        starts = np.cumsum([0, *(len(part.X.data) for part in parts)])
        indptr = [part.X.indptr[1:] + start for part, start in zip(parts, starts.tolist(), strict=False)]
        X = replace(
            parts[0].X,
            indptr=np.concatenate([np.zeros(1, dtype=np.int32), *indptr]).astype(np.int32),
            indices=np.concatenate([part.X.indices for part in parts]),
            data=np.concatenate([part.X.data for part in parts]),
            shape=(sum(len(part) for part in parts), max(part.X.shape[1] for part in parts)),
        )
    joined = {name: _joined(parts, name) for name in COLUMNS}
    return replace(parts[-1], X=X, **joined)


# What a row has where its piece has no such column.
DEFAULTS = {"weight": 1.0, "base": 0.0, "query": -1, "id": None, "time": None}


def _joined(parts: list[Chunk], name: str) -> Any:
    values = [getattr(part, name) for part in parts]
    if all(value is None for value in values):
        return None
    filled = [
        value if value is not None else np.full(len(part), DEFAULTS[name], dtype=object if name == "id" else None)
        for value, part in zip(values, parts, strict=True)
    ]
    kinds = {each.dtype.kind for each in filled}
    if len(kinds) > 1 and (kinds & set("OUbMm") or any(_large(each) for each in filled)):
        filled = [each.astype(object) for each in filled]
    return np.concatenate(filled)


def _large(values: NDArray[Any]) -> bool:
    """Is there a whole number that a float64 would round?"""
    return values.dtype.kind == "i" and len(values) > 0 and not -(2**53) <= values.min() <= values.max() <= 2**53
