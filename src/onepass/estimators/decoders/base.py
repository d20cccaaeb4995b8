"""What decoders share: weights by name, features of rows, labels by index."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Items
from typing import Any, Protocol

import numpy as np

from ...errors import InputError, LabelError, NumericalError, ParameterError
from ...persistence.store import encode_values
from ...rows.batches import to_row
from ...rows.reals import is_real
from ...scheme.parameters import Parameters
from ...scheme.rounds import Array

Features = dict[str | int, float]
Transform = Callable[[float], float]

# Beyond this a sum over positions could overflow, and no answer would be the best one.
LARGEST_SCORE = 1e300
QUIETLY = np.errstate(over="ignore", invalid="ignore")


class Weights(Protocol):
    """What a decoder is given as w: a mapping, read only. `many(names)`, where there is one, is faster for many."""

    def get(self, name: Any, default: float = 0.0, /) -> float: ...


def identity(cost: float) -> float:
    return cost


# -- named feature vectors -----------------------------------------------------------------------------------------


def expand(x: Mapping[Any, Any]) -> Features:
    """A mapping of names to numbers, strings or booleans as numbers alone; zeros are left out."""
    out: Features = {}
    for name, value in x.items():
        if isinstance(value, str):
            name, number = f"{name}={value}", 1.0
        else:
            try:
                if not is_real(value):
                    raise TypeError
                number = float(value)
            except (TypeError, ValueError):
                raise InputError(
                    f"feature {name!r} must be a number, a string or a boolean, got {value!r} ({type(value).__name__})"
                ) from None
        if not math.isfinite(number):
            raise InputError(
                f"feature {name!r} must be a finite number, got {number}; leave it out where its value is missing"
            )
        if number:
            out[name] = out.get(name, 0.0) + number
    return out


def difference(plus: Mapping[Any, float], minus: Mapping[Any, float]) -> Features:
    """plus − minus, without what cancels."""
    out = dict(plus)
    for name, value in minus.items():
        out[name] = out.get(name, 0.0) - value
    return {name: value for name, value in out.items() if value}


def weights_of(w: Weights, names: list[str]) -> Array:
    many = getattr(w, "many", None)
    if many is not None:
        return np.asarray(many(names), dtype=np.float64)
    return np.array([w.get(name, 0.0) for name in names], dtype=np.float64)


def read_row(x: Any) -> dict[str, float]:
    """One example's features: a mapping, a row of numbers, a word, or a list of words (each counts 1)."""
    if isinstance(x, str):
        return {x: 1.0}
    if isinstance(x, Mapping):
        return {str(name): value for name, value in expand(x).items()}
    if isinstance(x, (list, tuple)) and x and all(isinstance(word, str) for word in x):
        counts: dict[str, float] = {}
        for word in x:
            counts[word] = counts.get(word, 0.0) + 1.0
        return counts
    row = to_row(x)
    bad = np.flatnonzero(~np.isfinite(row))
    if len(bad):
        raise InputError(f"x must hold finite numbers, but x[{bad[0]}] is {row[bad[0]]}")
    return {str(j): float(row[j]) for j in np.flatnonzero(row)}


def read_rows(x: Any, what: str = "position") -> list[dict[str, float]]:
    """A sequence of examples' features."""
    if isinstance(x, Mapping) or not (isinstance(x, Items) or hasattr(x, "__array__")):
        raise InputError(f"x must be a sequence of {what}s, got {x!r:.80} ({type(x).__name__})")
    x = x if isinstance(x, Items) else np.asarray(x)
    if getattr(x, "ndim", 1) == 0:
        raise InputError(f"x must be a sequence of {what}s, got the number {x!r}")
    rows = []
    for position, each in enumerate(x):
        try:
            rows.append(read_row(each))
        except InputError as error:
            raise type(error)(f"{what} {position}: {error}") from None
    return rows


def escape(name: str, reserved: str) -> str:
    """A name inside a longer one, in which the reserved characters would mean something."""
    for character in "\\" + reserved:
        name = name.replace(character, "\\" + character)
    return name


# -- answers made of parts -----------------------------------------------------------------------------------------


@QUIETLY
def part_scores(w: Weights, parts: list[dict[str, float]]) -> Array:
    """Σⱼ xⱼ w[j] for each part's features."""
    names = [name for part in parts for name in part]
    values = np.array([value for part in parts for value in part.values()])
    at = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    out = np.zeros(len(parts))
    np.add.at(out, at, weights_of(w, names) * values)
    return checked(out)


def checked(scores: Array) -> Array:
    if not np.all(np.abs(scores) <= LARGEST_SCORE):
        raise NumericalError("row 0: the scores overflow; scale the features down or choose smaller steps")
    return scores


def add_features(out: dict[str, float], part: dict[str, float]) -> None:
    for name, value in part.items():
        out[name] = out.get(name, 0.0) + value


def require_identity(decoder: object, transform: Transform) -> None:
    """Refuse a transform under which the cost no longer splits over the parts of an answer."""
    if transform is not identity:
        raise ParameterError(
            f"{type(decoder).__name__} finds the most violating answer for the cost itself only, not for its root: "
            "use cost_transform='identity', or selection='prediction' with any cost_transform"
        )


def read_indices(y: Any, count: int, what: str) -> list[int]:
    """A list of `count` whole numbers."""
    if isinstance(y, (str, bytes, Mapping)) or not hasattr(y, "__len__") or not hasattr(y, "__getitem__"):
        raise LabelError(f"y must be a list of {what}, got {y!r:.80}")
    if len(y) != count:
        raise LabelError(f"expected {count} {what}, y has {len(y)}")
    try:
        if any(isinstance(each, (bool, np.bool_)) for each in y):
            raise TypeError
        return [operator.index(each) for each in y]
    except TypeError:
        raise LabelError(f"y must be a list of {what}, whole numbers, got {y!r:.80}") from None


def wrong_parts(y: Any, y_hat: Any) -> float:
    """How many of two equally long answers' entries differ."""
    if len(y) != len(y_hat):
        raise InputError(f"the answers have {len(y)} and {len(y_hat)} entries; expected equally many")
    return float(sum(a != b for a, b in zip(y, y_hat, strict=True)))


# -- labels --------------------------------------------------------------------------------------------------------


def label_text(label: Any) -> str:
    """A label inside a feature name; "|" and "→", which end it there, are escaped."""
    text = label if isinstance(label, str) else repr(label)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("→", "\\→")


class Labelled(Parameters):
    """What the decoders share: labels by index, and the names "label|feature" of their weights."""

    family = "decoder"
    labels: tuple[Any, ...]

    # Names made of text are worth keeping: the model finds the weight of the same object faster.
    _LARGEST_CACHE = 1 << 16

    def __post_init__(self) -> None:
        if isinstance(self.labels, str) or not isinstance(self.labels, Iterable):
            raise ParameterError(f"labels={self.labels!r}: expected a list of labels")
        if type(self.labels) is not tuple or any(isinstance(label, np.generic) for label in self.labels):
            self.labels = tuple(_plain(label) for label in self.labels)
        encode_values(self.labels)  # a label that no file can hold is refused now, not when saving
        self._texts = [label_text(label) for label in self.labels]
        self._index = {label: index for index, label in enumerate(self.labels)}
        self._cache: dict[str, tuple[str, ...]] = {}
        if len(set(self._texts)) != len(self._texts) or len(self._index) != len(self._texts):
            raise ParameterError(f"labels={self.labels!r}: expected labels that differ, also as text")
        super().__post_init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": {}}

    def index_of(self, label: Any) -> int:
        try:
            return self._index[label]
        except (KeyError, TypeError):
            raise LabelError(f"label {label!r} is not one of {list(self.labels)!r}") from None

    def names_of(self, feature: str) -> tuple[str, ...]:
        """The names of a feature's weights, label by label."""
        names = self._cache.get(feature)
        if names is None:
            if len(self._cache) >= self._LARGEST_CACHE:
                self._cache.clear()
            names = self._cache[feature] = tuple(f"{text}|{feature}" for text in self._texts)
        return names

    @QUIETLY
    def emissions(self, w: Weights, rows: list[dict[str, float]]) -> Array:
        """Σⱼ xⱼ w[label|j] for each row (down) and label (across)."""
        names = [name for row in rows for feature in row for name in self.names_of(feature)]
        values = np.array([value for row in rows for value in row.values()])
        products = weights_of(w, names).reshape(len(values), len(self.labels)) * values[:, np.newaxis]
        out = np.zeros((len(rows), len(self.labels)))
        start = 0
        for scores, row in zip(out, rows, strict=True):
            scores[:] = products[start : start + len(row)].sum(axis=0)
            start += len(row)
        return checked(out)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
