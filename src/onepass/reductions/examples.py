"""Rows and labels, as reductions distribute them among their bases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import FeatureError, InputError, LabelError
from ..rows.batches import Batch, as_batch, as_importance, is_mappings, to_row
from ..rows.labels import as_labels, not_hashable, plain, require_few, require_label

__all__ = ["Indices", "Labels", "Rows"]

Rows: TypeAlias = Batch | list[Any]  # a table, or named rows (mappings)
Indices: TypeAlias = NDArray[np.intp]

LARGE = 1e100  # far from overflow, far from data

# -- rows --------------------------------------------------------------------------------------------------------------


def read_rows(X: Any) -> Rows:
    rows: Rows = list(X) if is_mappings(X) else as_batch(X)
    if count(rows) == 0:
        raise InputError("X has no rows; expected at least one")
    return rows


def read_one(x: Any) -> Any:
    """x as a mapping, a float64 vector (converted once, and not by every base), or a row of a sparse matrix."""
    if isinstance(x, Mapping) or (isinstance(x, np.ndarray) and x.dtype == np.float64 and x.ndim == 1 and len(x)):
        return x
    row = to_row(x)  # raises the error if it is malformed
    return as_batch(x).single() if hasattr(x, "tocsr") else row


def width(x: Any) -> int:
    return int(x.shape[-1])


def read_importance(c: Any) -> float:
    if type(c) is float and 0.0 <= c < math.inf:
        return c
    weights = as_importance(c, 1)
    return 1.0 if weights is None else float(weights[0])


def count(rows: Rows) -> int:
    return rows.rows if isinstance(rows, Batch) else len(rows)


def part(rows: Rows, start: int, stop: int) -> Rows:
    return rows.part(start, stop) if isinstance(rows, Batch) else rows[start:stop]


def take(rows: Rows, at: Indices) -> Rows:
    """Some of the rows, in some order, perhaps repeated; all of them in order without copying."""
    if len(at) == count(rows) and np.array_equal(at, np.arange(len(at))):
        return rows
    if not isinstance(rows, Batch):
        return [rows[i] for i in at.tolist()]
    return rows.take(at)


def singles(rows: Rows) -> Iterator[Any]:
    """The rows one by one, as `learn_one` takes them: those of a sparse table stay sparse."""
    if not isinstance(rows, Batch):
        yield from rows
    elif rows.dense is not None:
        yield from np.asarray(rows.dense, dtype=np.float64)
    else:
        for row in range(rows.rows):
            yield rows.part(row, row + 1).single()


def is_extreme(x: Any, c: float) -> bool:
    """Might an update overflow because of the example's numbers, whatever the weights are?"""
    if c > LARGE:
        return True
    if not isinstance(x, Mapping):
        values = x.data if hasattr(x, "tocsr") else x
        with np.errstate(over="ignore"):
            return not float(values.dot(values)) < LARGE
    try:
        return len(x) > 0 and (max(x.values()) > LARGE or min(x.values()) < -LARGE)
    except TypeError:  # strings among the numbers
        numbers: Iterator[Any] = (value for value in x.values() if isinstance(value, (int, float, np.number)))
        return any(abs(value) > LARGE for value in numbers)


def are_extreme(rows: Rows, c: NDArray[np.float64] | None) -> bool:
    if c is not None and c.max() > LARGE:
        return True
    if not isinstance(rows, Batch):
        return any(is_extreme(x, 1.0) for x in rows)
    data = rows.dense if rows.csr is None else rows.csr[0]
    assert data is not None
    return data.size > 0 and not max(float(data.max()), -float(data.min())) < LARGE**0.5


def check_mappings(rows: Sequence[Any], check: Any) -> None:
    for row, x in enumerate(rows):
        try:
            if not isinstance(x, Mapping):
                raise FeatureError(f"expected a mapping like the first row, got {x!r:.80}")
            check(x)
        except InputError as error:
            raise type(error)(f"row {row}: {error}. Nothing of this call was learned") from None


# -- labels ------------------------------------------------------------------------------------------------------------


def read_labels(y: Any, rows: int) -> NDArray[Any]:
    labels = as_labels(y)
    if len(labels) != rows:
        raise InputError(f"X has {rows} rows, y has {len(labels)} labels")
    return labels


class Labels:
    """The labels of a reduction, numbered as declared, or in the order in which they appear."""

    def __init__(self, declared: Iterable[Any] | None = None) -> None:
        self.declared = declared is not None
        self.values: list[Any] = []
        self.index: dict[Any, int] = {}
        for label in () if declared is None else declared:
            label = plain(label)
            self._check_label(label, free=True)
            if label in self.index:
                raise LabelError(f"classes must be distinct, but {label!r} comes twice")
            self.add([label])

    def __len__(self) -> int:
        return len(self.values)

    def copy(self) -> Labels:
        out = Labels()
        out.declared, out.values, out.index = self.declared, list(self.values), dict(self.index)
        return out

    def add(self, labels: Iterable[Any]) -> None:
        for label in labels:
            self.index[label] = len(self.values)
            self.values.append(label)

    def one(self, label: Any) -> tuple[list[Any], int]:
        """The new labels (this one, or none), and the label's number after they have been added."""
        try:
            k = self.index.get(label)
        except TypeError:
            raise not_hashable(label) from None
        if k is not None:
            return [], k
        label = plain(label)
        self._check_label(label)
        return [label], len(self.values)

    def many(self, y: NDArray[Any]) -> tuple[list[Any], Indices]:
        """The new labels in order of appearance, and the number of each label after they have been added."""
        if y.dtype.kind in "biufUS":
            values, first, inverse = np.unique(y, return_index=True, return_inverse=True)
            labels: list[Any] = values.tolist()
        else:
            labels = [plain(label) for label in y.tolist()]
            first = inverse = np.arange(len(y))
        index = dict(self.index)
        for i in np.argsort(first, kind="stable").tolist():
            try:
                if labels[i] not in index:
                    self._check_label(labels[i], known=index, row=int(first[i]))
                    index[labels[i]] = len(index)
            except LabelError as error:
                raise LabelError(f"y[{first[i]}]: {error}. Nothing of this call was learned") from None
            except TypeError:
                raise not_hashable(labels[i], first[i]) from None
        numbers = np.array([index[label] for label in labels], dtype=np.intp)
        return list(index)[len(self.values) :], numbers[inverse.ravel()]

    def _check_label(self, label: Any, free: bool = False, known: dict[Any, int] | None = None, row: int = 0) -> None:
        if self.declared and not free:
            raise LabelError(f"label {label!r} is not one of the declared classes {self.values!r}")
        require_label(label)
        if not self.declared:
            require_few(label, self.index if known is None else known, None, row + 1)
