"""`KNNClassifier`: the nearest of the last examples vote."""

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
    """A ring: example number i is in slot i mod window. `points` has an example in each column, as loops read them."""

    points: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))
    owner: NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.empty(0, dtype=np.int64))
    weight: Array = dataclasses.field(default_factory=lambda: np.empty(0))
    kept: int = 0  # examples stored so far: those with an importance above 0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        slots = len(self.owner)
        if slots % 16 or self.owner.dtype != np.int64:
            raise ValueError(f"{slots} slots")
        if slots and not 0 <= self.owner.min() <= self.owner.max() < max(1, len(self.classes)):
            raise ValueError("owner has codes without a class")
        return {"points": (self._reader.columns if slots else 0, slots), "owner": (slots,), "weight": (slots,)}


class KNNClassifier(LabelledLearner):
    """The k nearest of the last `window` examples vote, by squared Euclidean distance.

    Memory is `window` rows. A prediction searches all of them: exact, without an index.

    Parameters
    ----------
    n_neighbors : k.
    window : how many examples are stored; a new one replaces the oldest.
    weights : votes count the same ("uniform") or by 1/distance ("distance"); importance multiplies them.
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
        first = state.kept
        state.kept += len(X)
        late = max(0, len(X) - window)  # rows that later rows of the same call would replace
        at = np.arange(first + late, state.kept) % window
        state.points[:, at] = X[late:].T
        state.owner[at], state.weight[at] = codes[late:], w[late:]

    def _learn_single(self, state: _Window, x: Any, label: Any, weight: float) -> None:
        row = self._vector(state, x, True, label not in state._index)
        if weight == 0.0 or len(row) != len(state.points) or len(state.owner) == 0:
            self._absorb(state, row[np.newaxis], np.array([state.register(label)]), np.array([weight]))
        else:
            at = state.kept % int(self.window)
            state.points[:, at] = row
            state.owner[at], state.weight[at] = state.register(label), weight
            state.kept += 1
        state.t += 1

    def _scores(self, state: _Window, X: Array) -> Array:
        """The votes of the neighbours, as parts of all votes."""
        size = min(state.kept, int(self.window))
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
        """The part of the votes that each class gets."""
        return self._table_scores(X)

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """label → part of the votes; changes nothing. Empty before any class is known."""
        state = self._state
        if state is None or not state.t:
            return {}
        return dict(zip(state.classes, self._score_single(state, x).tolist(), strict=True))
