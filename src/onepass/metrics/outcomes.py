"""Predictions and truth of consecutive examples, as arrays that every metric can read."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

__all__ = ["Labels", "Outcomes"]

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

OTHER = object()  # a prediction that is not a label


class Labels:
    """Labels as small numbers, in order of appearance. Code 0 is "no prediction".

    Labels are the same when Python compares them equal: 1, 1.0 and True are one label, "1" is another.
    """

    def __init__(self, values: Iterable[Hashable] = ()) -> None:
        self.values: list[Any] = [None]
        self._code: dict[Any, int] = {}
        self._numbers: tuple[Array, Codes] | None = None  # known numbers in order, and their codes
        for value in values:
            self.code(value)

    def __len__(self) -> int:
        """How many labels there are."""
        return len(self.values) - 1

    def __contains__(self, label: Any) -> bool:
        return label in self._code

    def code(self, label: Any) -> int:
        if label is None:
            return 0
        try:
            found = self._code.get(label)
        except TypeError:
            return self.code(_hashable(label))
        if found is None:
            found = len(self.values)
            self._code[label] = found
            self.values.append(label.item() if isinstance(label, np.generic) else label)
            self._numbers = None
        return found

    def judged(self, prediction: Any, y: Any) -> int:
        """The code of a prediction. One that is not hashable is compared with y at once, since it may change later."""
        try:
            return self.code(prediction)
        except InputError:
            return self.code(y) if bool(prediction == y) else self.code(OTHER)

    def codes(self, labels: Any) -> Codes:
        """The codes of many labels."""
        if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "biuf":
            return self._number_codes(labels)
        if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind == "U":
            distinct, first, place = np.unique(labels, return_index=True, return_inverse=True)
            self._register(labels[np.sort(first)])
            return np.array([self.code(label) for label in distinct.tolist()], dtype=np.int64)[place]
        return np.array([self.code(label) for label in labels], dtype=np.int64)

    def codes_at(self, labels: Sequence[Any], places: NDArray[np.intp]) -> Codes:
        """The codes of labels[place] for each place; new labels get codes in order of appearance."""
        occurring = np.flatnonzero(np.bincount(places, minlength=len(labels))).tolist()
        if any(labels[k] not in self for k in occurring):
            occurring.sort(key=lambda k: int(np.argmax(places == k)))
        codes = np.zeros(len(labels), dtype=np.int64)
        for k in occurring:
            codes[k] = self.code(labels[k])
        return codes[places]

    def _number_codes(self, labels: NDArray[Any]) -> Codes:
        values = labels.astype(np.float64, copy=False)  # inexact from 2^53 on, but no entry of _numbers is so large
        codes = self._known_codes(values)
        if codes is not None:
            return codes
        if labels.dtype.kind in "iu" and len(labels) and max(abs(int(labels.min())), abs(int(labels.max()))) >= 2**53:
            return np.array([self.code(label) for label in labels.tolist()], dtype=np.int64)
        self._register(labels[np.sort(np.unique(labels, return_index=True)[1])])
        known = [(float(value), code) for value, code in self._code.items() if _is_number(value) and abs(value) < 2**53]
        known.sort()
        self._numbers = (np.array([v for v, _ in known]), np.array([c for _, c in known], dtype=np.int64))
        codes = self._known_codes(values)
        assert codes is not None
        return codes

    def _register(self, labels: NDArray[Any]) -> None:
        for label in labels.tolist():
            self.code(label)

    def _known_codes(self, values: Array) -> Codes | None:
        """The codes of numbers; None where one is not known."""
        if self._numbers is None or not len(self._numbers[0]):
            return None
        ordered, codes = self._numbers
        if len(ordered) == 2:
            second = values == ordered[1]
            if np.count_nonzero(second) + np.count_nonzero(values == ordered[0]) != len(values):
                return None
            chosen: Codes = second.astype(np.int64)  # np.where of two numbers takes three times as long
            chosen *= codes[1] - codes[0]
            chosen += codes[0]
            return chosen
        place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
        return codes[place] if np.array_equal(ordered[place], values) else None

    def positive(self, wanted: Any = None) -> int:
        """The code of the positive class: `wanted`, else the larger label (the latest where they do not sort)."""
        if wanted is not None:
            return self._code.get(wanted, 0)
        known = [value for value in self.values[1:] if value is not OTHER]
        if len(known) < 2:
            # There is one class so far. 1 and True are positive by convention; for other labels the other class is not
            # known yet.
            return 1 if known and known[0] == 1 else 0
        try:
            return self._code[max(known)]
        except TypeError:
            return self._code[known[-1]]


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real)


def _hashable(label: Any) -> Hashable:
    """Collections of labels (multilabel) as hashable sets."""
    if isinstance(label, set):
        return frozenset(label)
    if isinstance(label, list | np.ndarray):
        return tuple(np.asarray(label).tolist()) if isinstance(label, np.ndarray) else tuple(label)
    raise InputError(f"a label must be hashable, got {label!r:.80} ({type(label).__name__})")


@dataclasses.dataclass
class Outcomes:
    """Consecutive examples. `kind` says what `truth` and `predicted` hold:

    "classes": codes of `labels`; "numbers": real numbers; "rankings": a row of relevances for each example, as
    wide as `scores`, NaN beyond its end (`predicted` is then not used); "sets": how many labels an example has and how
    many were predicted, with how many are in both as the one column of `scores`.

    `scores` has a column for every label (code − 1), NaN where the model had none for it; the margin of two classes
    s is stored as (−s/2, s/2), so that the difference of columns is the margin whatever the number of classes.
    `probabilities` has the same columns, 0 where the model did not know the label.
    """

    kind: str
    truth: NDArray[Any]
    predicted: NDArray[Any]
    weight: Array
    scores: Array | None = None
    probabilities: Array | None = None
    labels: Labels = dataclasses.field(default_factory=Labels)
    _known: dict[Any, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.truth)

    def once(self, key: Hashable, make: Callable[[Outcomes], Any]) -> Any:
        """A cache for values that depend on the examples, not on their weights."""
        if key not in self._known:
            self._known[key] = make(self)
        return self._known[key]

    def part(self, start: int, stop: int) -> Outcomes:
        if stop - start == len(self):
            return self
        cut = slice(start, stop)
        return Outcomes(
            self.kind,
            self.truth[cut],
            self.predicted[cut],
            self.weight[cut],
            None if self.scores is None else self.scores[cut],
            None if self.probabilities is None else self.probabilities[cut],
            self.labels,
        )

    def weighted(self, factors: Array) -> Outcomes:
        """The same examples, each counting `factors` as much."""
        return Outcomes(self.kind, self.truth, self.predicted, self.weight * factors,
                        self.scores, self.probabilities, self.labels, self._known)  # fmt: skip

    @staticmethod
    def join(parts: Sequence[Outcomes]) -> Outcomes:
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        ranking = first.kind == "rankings"
        return Outcomes(
            first.kind,
            _stack([part.truth for part in parts], np.nan) if ranking else np.concatenate([p.truth for p in parts]),
            np.concatenate([part.predicted for part in parts]),
            np.concatenate([part.weight for part in parts]),
            None if first.scores is None else _stack([p.scores for p in parts], np.nan),
            None if first.probabilities is None else _stack([p.probabilities for p in parts], 0.0),
            first.labels,
        )


def of_sets(truth: Sequence[Any], predicted: Sequence[Any], weight: Array, labels: Labels) -> Outcomes:
    """True and predicted label sets as outcomes; their members get codes in `labels`."""
    sizes = np.zeros((3, len(truth)))
    for row, (y, p) in enumerate(zip(truth, predicted, strict=True)):
        own, given = set(y), set(p)
        for label in (*y, *p):
            labels.code(label)
        sizes[:, row] = len(own), len(given), len(own & given)
    return Outcomes("sets", sizes[0], sizes[1], weight, sizes[2][:, np.newaxis], None, labels)


def _stack(tables: Sequence[Any], missing: float) -> Array:
    """Tables one above the other, the narrower filled up on the right."""
    width = max(table.shape[1] for table in tables)
    return np.concatenate([widened(table, width, missing) for table in tables])


def widened(table: Array, width: int, missing: float) -> Array:
    if table.shape[1] == width:
        return table
    out = np.full((len(table), width), missing)
    out[:, : table.shape[1]] = table
    return out
