"""Tasks: how an example becomes a direction φ and a target, for `core.Learner`.

Rows arrive with the constant feature appended as their last coordinate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .core import Array, Direction, Rule, Task
from .errors import LabelError, ParameterError

__all__ = ["Binary", "Multiclass", "Ranking", "Regression", "Structured", "make"]


class Binary:
    """y ∈ {−1, +1}: φ = y·x, and ⟨w, φ⟩ should reach 1. Predicts +1 iff the score is above 0."""

    name = "binary"

    def shape(self, d: int) -> tuple[int, int]:
        return 1, d

    def scores(self, w: Array, x: Array) -> Array:
        return w @ x

    def direction(self, w: Array, x: Array, y: Any, rule: Rule) -> Direction:
        if y not in (-1, 1):
            raise LabelError(f"a binary label must be -1 or +1, got {y!r}")
        return Direction(phi=float(y) * x[np.newaxis])

    def predict(self, scores: Array) -> int:
        return 1 if scores[0] > 0 else -1


class Multiclass:
    """y ∈ 0..K−1: φ is +x in the row of y and −x in the row of its best-scoring rival."""

    name = "multiclass"

    def __init__(self, classes: int) -> None:
        if classes < 2:
            raise ParameterError(f"multiclass needs at least 2 classes, got {classes}")
        self.classes = classes

    def shape(self, d: int) -> tuple[int, int]:
        return self.classes, d

    def scores(self, w: Array, x: Array) -> Array:
        return w @ x

    def direction(self, w: Array, x: Array, y: Any, rule: Rule) -> Direction:
        if not 0 <= int(y) < self.classes:
            raise LabelError(f"a label must be 0..{self.classes - 1}, got {y!r}")
        phi = np.zeros_like(w)
        phi[int(y)] += x
        phi[rival(self.scores(w, x), int(y))] -= x
        return Direction(phi)

    def predict(self, scores: Array) -> int:
        return int(np.argmax(scores))  # the lowest index among equals


def rival(scores: Array, y: int) -> int:
    """The best-scoring class other than y, the lowest among equals."""
    others = np.array(scores)
    others[y] = -np.inf
    return int(np.argmax(others))


class Regression:
    """y real. The residual's sign turns it into a margin task: φ = side·x should reach side·y − ε.

    A zero residual has side +1: first-order rules stay passive, second-order ones still see φ.
    """

    name = "regression"

    def shape(self, d: int) -> tuple[int, int]:
        return 1, d

    def scores(self, w: Array, x: Array) -> Array:
        return w @ x

    def direction(self, w: Array, x: Array, y: Any, rule: Rule) -> Direction:
        if not np.isfinite(y):
            raise LabelError(f"a regression target must be a finite number, got {y!r}")
        side = -1.0 if y < self.scores(w, x)[0] else 1.0
        return Direction(side * x[np.newaxis], target=side * float(y) - rule.epsilon_tube(), side=side)

    def predict(self, scores: Array) -> float:
        return float(scores[0])


class Ranking:
    """x = (preferred, other): φ is their difference and should reach 1. A constant feature cancels; y is +1."""

    name = "ranking"

    def shape(self, d: int) -> tuple[int, int]:
        return 1, d

    def scores(self, w: Array, x: Any) -> Array:
        preferred, other = (np.append(np.asarray(row, dtype=np.float64), 0.0) for row in x)
        if w.shape[1] == 0:
            return np.zeros(1)
        return w @ (preferred - other)

    def direction(self, w: Array, x: Any, y: Any, rule: Rule) -> Direction:
        preferred, other = (np.append(np.asarray(row, dtype=np.float64), 0.0) for row in x)
        return Direction((preferred - other)[np.newaxis])

    def predict(self, scores: Array) -> int:
        return 1 if scores[0] > 0 else -1


class Structured:
    """y a structure: φ = Φ(x, y) − Φ(x, ỹ) should reach √cost(y, ỹ), ỹ the decoder's choice.

    `dimension` bounds the number of named features that the reference keeps.
    """

    name = "structured"

    def __init__(self, decoder: Any, dimension: int = 1000) -> None:
        self.decoder = decoder
        self.dimension = dimension
        self.columns: dict[Any, int] = {}

    def shape(self, d: int) -> tuple[int, int]:
        return 1, self.dimension + 1

    def vector(self, features: dict[Any, float]) -> Array:
        row = np.zeros(self.dimension + 1)
        for name, value in features.items():
            row[self.columns.setdefault(name, len(self.columns))] += value
        return row

    def weights(self, w: Array) -> dict[Any, float]:
        return {name: float(w[0, column]) for name, column in self.columns.items()}

    def scores(self, w: Array, x: Any) -> Array:
        y = self.decoder.decode(self.weights(w), x)
        return w @ self.vector(self.decoder.features(x, y))

    def direction(self, w: Array, x: Any, y: Any, rule: Rule) -> Direction:
        rival_y = self.decoder.loss_augmented(self.weights(w), x, y)
        phi = self.vector(self.decoder.features(x, y)) - self.vector(self.decoder.features(x, rival_y))
        return Direction(phi[np.newaxis], target=float(np.sqrt(self.decoder.cost(y, rival_y))))

    def predict(self, scores: Array) -> float:
        return float(scores[0])


def make(task: str | Task, classes: int = 2) -> Task:
    if not isinstance(task, str):
        return task
    plain = {"binary": Binary, "regression": Regression, "ranking": Ranking}
    if task == "multiclass":
        return Multiclass(classes)
    if task in plain:
        made: Task = plain[task]()
        return made
    raise ParameterError(f"task={task!r}: expected one of binary, multiclass, ranking, regression, or a Task")
