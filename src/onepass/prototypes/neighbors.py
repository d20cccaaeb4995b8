"""`KNNClassifier`: the nearest of the stored examples vote."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..estimators.labelled import LabelledLearner, LabelledState
from ..learner import LearnerTraits
from ..scheme.parameters import Parameters, choice, number
from ..scheme.rounds import Array

__all__ = ["KNNClassifier"]


@dataclasses.dataclass(repr=False)
class _Parameters(Parameters):
    n_neighbors: int = number(5, at_least=1, integer=True)
    window: int = number(1000, at_least=1, integer=True)
    weights: str = choice("uniform", "uniform", "distance")


@dataclasses.dataclass
class _Window(LabelledState):
    """A ring buffer: example number i is in slot i mod window. `points` has one example in each column."""

    points: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))
    owner: NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.empty(0, dtype=np.int64))
    weight: Array = dataclasses.field(default_factory=lambda: np.empty(0))
    stored: int = 0  # how many examples were stored so far: those with an importance above 0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        slots = len(self.owner)
        if slots % 16 or self.owner.dtype != np.int64:
            raise ValueError(f"{slots} slots, expected a multiple of 16 and whole numbers")
        if slots and not 0 <= self.owner.min() <= self.owner.max() < max(1, len(self.classes)):
            raise ValueError("owner has codes without a class")
        return {"points": (self._reader.columns if slots else 0, slots), "owner": (slots,), "weight": (slots,)}


class KNNClassifier(LabelledLearner):
    """The k nearest of the last `window` examples vote, by squared Euclidean distance.

    The memory is `window` rows. A prediction compares x with all of them, without an index.

    Parameters
    ----------
    n_neighbors : k.
    window : how many examples are stored; a new one replaces the oldest.
    weights : the weight of a vote is 1 ("uniform") or 1/distance ("distance"), times the importance.
    """

    _Parameters = _Parameters
    _State = _Window

    traits = LearnerTraits("class", frozenset({"predict_proba_one"}))

    def __init__(self, n_neighbors: int = 5, *, window: int = 1000, weights: str = "uniform") -> None:
        self.n_neighbors = n_neighbors
        self.window = window
        self.weights = weights

    def _numbers(self, columns: int, classes: int) -> int:
        return columns * int(self.window)

    def _absorb(self, state: _Window, X: Array, codes: NDArray[np.int64], w: Array) -> None:
        window = int(self.window)
        if not w.all():
            X, codes, w = X[w > 0], codes[w > 0], w[w > 0]
        if len(state.owner) == 0:
            slots = -(-window // 16) * 16
            state.points = np.zeros((X.shape[1], slots))
            state.owner, state.weight = np.zeros(slots, dtype=np.int64), np.zeros(slots)
        elif X.shape[1] > len(state.points):
            more = np.zeros((X.shape[1] - len(state.points), state.points.shape[1]))
            state.points = np.concatenate([state.points, more])
        first = state.stored
        state.stored += len(X)
        overwritten = max(0, len(X) - window)  # by later rows of the same call
        at = np.arange(first + overwritten, state.stored) % window
        state.points[:, at] = X[overwritten:].T
        state.owner[at], state.weight[at] = codes[overwritten:], w[overwritten:]

    def _learn_single(self, state: _Window, x: Any, label: Any, weight: float) -> None:
        row = self._vector(state, x, True, label not in state._index)
        if weight == 0.0 or len(row) != len(state.points) or len(state.owner) == 0:
            self._absorb(state, row[np.newaxis], np.array([state.register(label)]), np.array([weight]))
        else:
            at = state.stored % int(self.window)
            state.points[:, at] = row
            state.owner[at], state.weight[at] = state.register(label), weight
            state.stored += 1
        state.t += 1

    def _scores(self, state: _Window, X: Array) -> Array:
        """The share of the votes that each class gets."""
        size = min(state.stored, int(self.window))
        if size == 0:  # every example had importance 0
            return np.full((len(X), len(state.classes)), 1.0 / len(state.classes))
        arrays = (state.points, size, state.owner, state.weight)
        return _native.neighbour_votes(
            X, *arrays, len(state.classes), int(self.n_neighbors), self.weights == "distance"
        )

    def _fitting(self, state: _Window, X: Array) -> Array:
        columns = len(state.points)
        if X.shape[1] == columns:
            return X
        if X.shape[1] > columns:
            return np.ascontiguousarray(X[:, :columns])
        return np.pad(X, ((0, 0), (0, columns - X.shape[1])))

    def predict_proba(self, X: Any) -> Array:
        """The share of the votes that each class gets."""
        return self._table_scores(X)

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Each label's share of the votes. Empty before any class is known."""
        state = self._state
        if state is None or not state.t:
            return {}
        return dict(zip(state.classes, self._score_single(state, x).tolist(), strict=True))
