"""What may be a label; and conversion of y as users give it to labels, sets of labels or numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import LabelError, ParameterError, short
from ..persistence import store
from .reals import as_reals, is_real

__all__ = [
    "Distinct",
    "alike",
    "as_label_sets",
    "as_labels",
    "as_target",
    "as_targets",
    "distinct",
    "indices_of",
    "label_array",
    "not_hashable",
    "plain",
    "require_few",
    "require_label",
    "require_no_dates",
    "sorted_classes",
    "sorts_before",
]


def plain(label: Any) -> Any:
    """NumPy's scalars as Python's; except dates and durations, some of which would become whole numbers."""
    return label.item() if isinstance(label, np.generic) and label.dtype.kind not in "mM" else label


def require_label(label: Any) -> None:
    """Refuse a value that cannot be a label, or that no file can hold: now, not when the model is saved."""
    if label is None or (isinstance(label, float) and not math.isfinite(label)):
        raise LabelError(f"a label must not be {label!r}")
    try:
        store.encode_values([label])
    except ParameterError as error:
        raise LabelError(str(error)) from None


# Limits on classes that were not declared: in all, and for numbers that are not whole. More of these are probably
# measurements, each of which would become a class.
MOST_CLASSES, MOST_FRACTIONS = 1_000_000, 100


def require_few(label: Any, known: Collection[Any], max_classes: int | None, rows: int) -> None:
    """Refuse one class too many; `known` are the classes so far, `rows` the examples up to this one."""
    most = MOST_CLASSES if max_classes is None else max_classes
    if len(known) >= most:
        raise LabelError(
            f"label {label!r} would be class {len(known) + 1:,}, but max_classes is {most:,}; raise it (in the command "
            "--max-classes), or use a regression if the labels are numbers"
        )
    if max_classes is None and _is_fraction(label):
        fractions = 1 + sum(map(_is_fraction, known))
        if fractions > MOST_FRACTIONS:
            raise LabelError(
                f"the labels look continuous ({fractions:,} distinct values that are not whole numbers in {rows:,} "
                "rows): use a regression (task='regression'; in the command --task regression or --loss_function "
                "squared). If they are classes, declare them or set max_classes (in the command --max-classes)"
            )


def _is_fraction(label: Any) -> bool:
    return isinstance(label, float) and not label.is_integer()


def not_hashable(label: Any, row: int | None = None) -> LabelError:
    """The error for a label that is not hashable."""
    where = "" if row is None else f"y[{row}]: "
    return LabelError(f"{where}a label must be hashable, got {label!r:.80} ({type(label).__name__})")


def alike(labels: Sequence[Any]) -> bool:
    """Can a NumPy array hold these labels unchanged?

    Not strings that end in NUL, which NumPy cuts off, and not integers beyond signed 64 bits: NumPy converts a mix of
    these and smaller ones to floats, which loses digits.
    """
    if len({type(label) for label in labels}) != 1 or not isinstance(labels[0], (str, bool, int, float)):
        return False
    if isinstance(labels[0], str):
        return not any(label.endswith("\0") for label in labels)
    if type(labels[0]) is int:
        return all(-(2**63) <= label < 2**63 for label in labels)
    return True


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Labels as an array: of their own type where `alike`, else of Python objects."""
    return np.array(labels) if alike(labels) else as_labels(labels)


def sorted_classes(labels: Any) -> NDArray[Any]:
    """The distinct labels of a table, in order."""
    given = labels if isinstance(labels, np.ndarray) else label_array([plain(label) for label in _listed(labels)])
    try:
        return np.asarray(np.unique(given))
    except TypeError:
        kinds = sorted({type(label).__name__ for label in given.ravel().tolist()})
        raise LabelError(
            f"the labels of a table must be of one type that sorts, got {', '.join(kinds)}; make them all texts or all "
            "numbers, or use learn_many, which takes any"
        ) from None


def _listed(labels: Any) -> list[Any]:
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise LabelError(f"expected a list of labels, got {short(labels)}")
    return list(labels)


def sorts_before(a: Any, b: Any) -> bool:
    """Is a smaller than b? No where they have no order."""
    try:
        return bool(a < b)
    except TypeError:
        return False


def require_no_dates(y: NDArray[Any]) -> None:
    """Refuse arrays of dates and durations, some of which would become whole numbers."""
    if y.dtype.kind in "mM":
        what = "dates" if y.dtype.kind == "M" else "durations"
        raise LabelError(f"y holds {what} ({y.dtype}), which are not labels; give them as strings: y.astype(str)")


def as_labels(y: Any) -> NDArray[Any]:
    """Labels as a vector, whatever their type."""
    if isinstance(y, np.ndarray):
        if y.ndim != 1:
            raise LabelError(f"y must hold one label per row, got shape {y.shape}")
        require_no_dates(y)
        return y
    if isinstance(y, (str, bytes)) or not isinstance(y, Iterable):
        raise LabelError(f"y must hold one label per row, got {short(y)}")
    values = list(y)
    out = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        out[row] = value  # one by one: NumPy would take a list of tuples for a table
    return out


def as_label_sets(y: Any, rows: int) -> list[list[Any]]:
    """A collection of labels for every row."""
    try:
        collections = [[plain(label) for label in members] for members in y if not isinstance(members, (str, bytes))]
    except TypeError:
        raise LabelError("y must hold a collection of labels for every row") from None
    if len(collections) != rows:
        raise LabelError(f"y must hold a collection of labels for each of {rows} rows, got {len(collections)}")
    return collections


def as_targets(y: Any) -> NDArray[np.float64]:
    """Real targets, finite."""
    try:
        given = np.asarray(y)
        if given.dtype == object and given.ndim == 1:
            targets = np.array([_number(value) for value in given], dtype=np.float64)
        else:
            targets = np.ascontiguousarray(as_reals(given, "y"))
    except (TypeError, ValueError, OverflowError):
        raise LabelError(f"y must hold numbers for regression, got {short(y)}") from None
    if given.ndim != 1:
        raise LabelError(f"y must hold one number per row, got shape {given.shape}")
    bad = np.flatnonzero(~np.isfinite(targets))
    if len(bad):
        raise LabelError(f"y must hold finite numbers, but y[{bad[0]}] is {targets[bad[0]]}")
    return targets


def as_target(y: Any) -> float:
    """One real target, finite."""
    try:
        target = _number(y)
    except (TypeError, ValueError, OverflowError):
        target = math.nan
    if not math.isfinite(target):
        raise LabelError(f"y must be a finite number, got {short(y)}")
    return target


def _number(value: Any) -> float:
    """Not a string, date or row, which NumPy and `float` would convert to numbers."""
    if isinstance(value, (str, bytes)) or not is_real(value) or np.ndim(value):
        raise TypeError
    return float(value)


class Distinct(NamedTuple):
    """The distinct labels in order of appearance, each row's index among them, the rows where a new one appears."""

    values: list[Any]
    codes: NDArray[np.intp]
    firsts: NDArray[np.intp]


def distinct(labels: list[Any]) -> Distinct:
    """Raises TypeError where one is not hashable."""
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    codes = np.fromiter(map(places.__getitem__, labels), np.intp, len(labels))
    newest = np.maximum.accumulate(codes)
    return Distinct(list(places), codes, np.flatnonzero(np.diff(newest, prepend=-1)))


def indices_of(labels: NDArray[Any], classes: list[Any]) -> NDArray[np.float64]:
    """Each label's index among the classes, as the loops take it; -1 for other labels."""
    if not classes:
        return np.full(len(labels), -1.0)
    if _compare_as_arrays(labels, classes):
        if len(classes) == 2:
            first, second = labels == classes[0], labels == classes[1]
            indices = second.astype(np.float64)
            if np.count_nonzero(first) + np.count_nonzero(second) != len(labels):
                indices[~(first | second)] = -1.0
            return np.asarray(indices)
        order = np.argsort(np.array(classes))
        ordered = np.array(classes)[order]
        at = np.minimum(np.searchsorted(ordered, labels), len(classes) - 1)
        return np.where(ordered[at] == labels, order[at], -1).astype(np.float64)
    table = {label: index for index, label in enumerate(classes)}
    return np.array([table.get(label, -1) for label in labels.tolist()], dtype=np.float64)


def _compare_as_arrays(labels: NDArray[Any], classes: list[Any]) -> bool:
    """Can NumPy compare these labels exactly? Beyond 2^53 a comparison as floats is not exact."""
    if labels.dtype.kind not in "bif" and labels.dtype not in (np.uint8, np.uint16, np.uint32):
        return False
    return all(isinstance(c, (bool, int, float)) and abs(c) < 2**53 for c in classes)
