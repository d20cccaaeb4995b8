"""Tasks: how an example becomes a direction φ and a target, for `ReferenceLearner`.

The constant feature is the last coordinate of every x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError, LabelError, ParameterError
from .rounds import Array, Direction, Rule, Task

__all__ = ["Binary", "Multiclass", "Multilabel", "OneClass", "Ranking", "Regression", "Structured", "make"]


class OneRow:
    """One weight vector; the score of x is ⟨w, x⟩."""

    def shape(self, d: int) -> tuple[int, int]:
        return 1, d

    def scores(self, w: Array, x: Any) -> Array:
        return np.asarray(w @ x)


class Binary(OneRow):
    """y ∈ {−1, +1}: φ = y·x, and ⟨w, φ⟩ should reach 1. Predicts +1 iff the score is above 0."""

    name = "binary"

    def direction(self, w: Array, x: Array, y: Any, rule: Rule) -> Direction:
        if y not in (-1, 1):
            raise LabelError(f"a binary label must be -1 or +1, got {y!r}")
        return Direction(phi=float(y) * x[np.newaxis])

    def predict(self, w: Array, x: Array) -> int:
        return 1 if self.scores(w, x)[0] > 0 else -1


class Multiclass:
    """y ∈ 0..K−1: φ is +x in the row of y and −x in the row of its best-scoring rival.

    multiclass="uniform" and "proportional" divide −x among all classes that score at least as high as y (Crammer
    and Singer 2003). With `costs` the rival is the r that maximises s_r + √cost(y, r), and the target is that root.
    """

    name = "multiclass"

    def __init__(self, classes: int, multiclass: str = "rival", costs: Any = None) -> None:
        if classes < 2:
            raise ParameterError(f"multiclass needs at least 2 classes, got {classes}")
        self.classes = classes
        self.multiclass = multiclass
        self.roots = None if costs is None else np.sqrt(np.asarray(costs, dtype=np.float64))

    def shape(self, d: int) -> tuple[int, int]:
        return self.classes, d

    def scores(self, w: Array, x: Array) -> Array:
        return np.asarray(w @ x)

    def direction(self, w: Array, x: Array, y: Any, rule: Rule) -> Direction:
        if not 0 <= int(y) < self.classes:
            raise LabelError(f"a label must be 0..{self.classes - 1}, got {y!r}")
        scores, y = self.scores(w, x), int(y)
        if self.roots is not None:
            other = rival(scores + self.roots[y], y)
            return Direction(np.outer(_pair(len(w), y, other), x), target=float(self.roots[y, other]))
        parts = shares(scores, y, self.multiclass)
        # Σ parts = 0, so s_y may be subtracted: classes that tie with y then give exactly 0, which counts as an error.
        return Direction(np.outer(parts, x), m=float(np.sum(parts * (scores - scores[y]))))

    def predict(self, w: Array, x: Array) -> int:
        return int(np.argmax(self.scores(w, x)))  # the lowest index among equals


def _pair(classes: int, y: int, other: int) -> Array:
    pair = np.zeros(classes)
    pair[y], pair[other] = 1.0, -1.0
    return pair


def shares(scores: Array, y: int, multiclass: str) -> Array:
    """The coefficient of x in each row of φ: +1 for y, −1 divided among the classes that should score lower."""
    errors = (scores >= scores[y]) & (np.arange(len(scores)) != y)
    if multiclass in ("uniform", "proportional") and np.any(errors):
        over = np.where(errors, scores - scores[y], 0.0)
        proportional = multiclass == "proportional" and np.sum(over) > 0
        part = over / np.sum(over) if proportional else errors / np.sum(errors)
        return np.where(np.arange(len(scores)) == y, 1.0, -part)
    return _pair(len(scores), y, rival(scores, y))


def rival(scores: Array, y: int) -> int:
    """The best-scoring class other than y, the lowest among equals."""
    others = np.array(scores)
    others[y] = -np.inf
    return int(np.argmax(others))


class Multilabel(Multiclass):
    """y a set of classes: φ has +x in the lowest-scoring row of the classes in y, −x in the highest-scoring row of the
    others.

    If y has all classes, or none, nothing is learned. With threshold="calibrated" there are two directions with one
    step each: +x in the one row should reach 1, and so should −x in the other.
    """

    name = "multilabel"

    def direction(self, w: Array, x: Array, y: Any, rule: Rule) -> Direction:
        inside = np.isin(np.arange(self.classes), list(y))
        if np.all(inside) or not np.any(inside):
            return Direction(np.zeros_like(w))
        scores = self.scores(w, x)
        lowest = int(np.argmin(np.where(inside, scores, np.inf)))
        highest = int(np.argmax(np.where(inside, -np.inf, scores)))
        return Direction(np.outer(_pair(len(w), lowest, highest), x))

    def predict(self, w: Array, x: Array) -> Any:
        return set(np.flatnonzero(self.scores(w, x) > 0).tolist())


class OneClass(OneRow):
    """No y: w is a centre; every x should lie within `radius` of it: φ = (x − w)/‖x − w‖, m = −‖x − w‖, target −radius.

    The score is ‖x − w‖ − radius: above 0 is an anomaly.
    """

    name = "oneclass"

    def __init__(self, radius: float = 1.0) -> None:
        self.radius = radius

    def scores(self, w: Array, x: Any) -> Array:
        return np.array([np.linalg.norm(x - w[0]) - self.radius])

    def direction(self, w: Array, x: Array, y: Any, rule: Rule) -> Direction:
        distance = float(np.linalg.norm(x - w[0]))
        phi = (x - w) / distance if distance > 0 else np.zeros_like(w)
        return Direction(phi, target=-self.radius, m=-distance)

    def predict(self, w: Array, x: Array) -> int:
        return 1 if self.scores(w, x)[0] <= 0 else -1


class Regression(OneRow):
    """y real. The residual's sign turns it into a margin task: φ = side·x should reach side·y − ε.

    A zero residual has side +1: first-order rules stay passive, second-order ones still see φ.
    """

    name = "regression"

    def direction(self, w: Array, x: Array, y: Any, rule: Rule) -> Direction:
        if not np.isfinite(y):
            raise LabelError(f"a regression target must be a finite number, got {y!r}")
        side = -1.0 if y < self.scores(w, x)[0] else 1.0
        return Direction(side * x[np.newaxis], target=side * float(y) - rule.traits.epsilon, side=side)

    def predict(self, w: Array, x: Array) -> float:
        return float(self.scores(w, x)[0])


class Ranking(OneRow):
    """x = (preferred, other): φ is their difference, and its score should reach 1. The constant feature cancels; y is
    +1.
    """

    name = "ranking"

    def scores(self, w: Array, x: Any) -> Array:
        return np.asarray(w @ self._difference(x)) if w.shape[1] else np.zeros(1)

    def direction(self, w: Array, x: Any, y: Any, rule: Rule) -> Direction:
        return Direction(self._difference(x)[np.newaxis])

    def predict(self, w: Array, x: Any) -> int:
        return 1 if self.scores(w, x)[0] > 0 else -1

    def _difference(self, x: Any) -> Array:
        preferred, other = (np.append(np.asarray(row, dtype=np.float64), 0.0) for row in x)
        if not (np.all(np.isfinite(preferred)) and np.all(np.isfinite(other))):
            raise InputError(f"a pair must hold finite numbers, got {x!r}")
        return np.asarray(preferred - other)


class Structured:
    """y a structure: φ = Φ(x, y) − Φ(x, ỹ) should reach √cost(y, ỹ), ỹ the decoder's choice.

    selection="max_loss" takes the ỹ that costs most, score included; "prediction" the best-scoring one.
    `dimension` is the most named features that the reference stores.
    """

    name = "structured"

    def __init__(self, decoder: Any, dimension: int = 1000, selection: str = "max_loss") -> None:
        self.decoder = decoder
        self.dimension = dimension
        self.selection = selection
        self.columns: dict[Any, int] = {}

    def shape(self, d: int) -> tuple[int, int]:
        return 1, self.dimension + 1

    def scores(self, w: Array, x: Any) -> Array:
        weights = self.weights(w)
        features = self.decoder.features(x, self.decoder.decode(weights, x))
        return np.array([sum(weights.get(name, 0.0) * value for name, value in features.items())])

    def direction(self, w: Array, x: Any, y: Any, rule: Rule) -> Direction:
        weights = self.weights(w)
        most_loss = self.selection == "max_loss"
        other = self.decoder.loss_augmented(weights, x, y) if most_loss else self.decoder.decode(weights, x)
        phi = self._vector(self.decoder.features(x, y)) - self._vector(self.decoder.features(x, other))
        return Direction(phi[np.newaxis], target=float(np.sqrt(self.decoder.cost(y, other))))

    def predict(self, w: Array, x: Any) -> Any:
        return self.decoder.decode(self.weights(w), x)

    def weights(self, w: Array) -> dict[Any, float]:
        return {name: float(w[0, column]) for name, column in self.columns.items() if column < w.shape[1]}

    def _vector(self, features: dict[Any, float]) -> Array:
        row = np.zeros(self.dimension + 1)
        for name, value in features.items():
            column = self.columns.setdefault(name, len(self.columns))
            if column >= self.dimension:
                raise ParameterError(f"more than {self.dimension} features; give Structured a larger dimension")
            row[column] += value
        return row


def make(task: str | Task, classes: int = 2, multiclass: str = "rival", costs: Any = None, radius: float = 1.0) -> Task:
    if not isinstance(task, str):
        return task
    if task == "multiclass":
        return Multiclass(classes, multiclass, costs)
    if task == "multilabel":
        return Multilabel(classes)
    if task == "oneclass":
        return OneClass(radius)
    plain: dict[str, type[Task]] = {"binary": Binary, "regression": Regression, "ranking": Ranking}
    if task in plain:
        return plain[task]()
    raise ParameterError(
        f"task={task!r}: expected one of binary, multiclass, multilabel, oneclass, ranking, regression, or a Task"
    )
