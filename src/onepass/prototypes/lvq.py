"""`LVQClassifier`: learning vector quantisation. Prototypes move towards rows of their class, and away from others."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..estimators.labelled import LabelledLearner, LabelledState
from ..estimators.minibatch import widened
from ..scheme.parameters import Parameters, choice, number
from ..scheme.rounds import Array
from .seeding import squared_distances

__all__ = ["LVQClassifier"]


@dataclasses.dataclass(repr=False)
class _Parameters(Parameters):
    prototypes_per_class: int = number(3, at_least=1, integer=True)
    variant: str = choice("lvq1", "lvq1", "olvq1", "lvq21")
    eta: float = number(0.05, above=0, below=1)
    window: float = number(0.3, above=0, below=1)
    passes: int = number(1, at_least=1, integer=True)


@dataclasses.dataclass
class _Prototypes(LabelledState):
    prototypes: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))
    owner: NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.empty(0, dtype=np.int64))
    rate: Array = dataclasses.field(default_factory=lambda: np.empty(0))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        K = len(self.owner)
        if self.owner.dtype != np.int64 or (K and not 0 <= self.owner.min() <= self.owner.max() < len(self.classes)):
            raise ValueError("owner has codes without a class")
        return {"prototypes": (K, self._reader.columns), "owner": (K,), "rate": (K,)}


class LVQClassifier(LabelledLearner):
    """Predicts the class of the nearest prototype. The first examples of a class become its prototypes; later ones move
    them.

    lvq1: the nearest prototype moves by η towards x if it has x's class, otherwise away (Kohonen 1990). olvq1: every
    prototype has its own rate, η ← η/(1 ± η), so that in the end all examples have the same weight (Kohonen 1992).
    lvq21: if x lies in a window between the nearest prototype of its class and the nearest of another class, both move
    (LVQ2.1).

    Parameters
    ----------
    prototypes_per_class : the number of prototypes of each class.
    variant : "lvq1", "olvq1" or "lvq21".
    eta : η. The importance of an example multiplies it, up to 1.
    window : for lvq21. x lies in the window if min(a/b, b/a) > (1 − window)/(1 + window); a and b are its distances.
    passes : passes of `fit` over its data.
    """

    _Parameters = _Parameters
    _State = _Prototypes

    def __init__(
        self,
        prototypes_per_class: int = 3,
        *,
        variant: str = "lvq1",
        eta: float = 0.05,
        window: float = 0.3,
        passes: int = 1,
    ) -> None:
        self.prototypes_per_class = prototypes_per_class
        self.variant = variant
        self.eta = eta
        self.window = window
        self.passes = passes

    def _numbers(self, columns: int, classes: int) -> int:
        return columns * classes * int(self.prototypes_per_class)

    def _absorb(self, state: _Prototypes, X: Array, codes: NDArray[np.int64], w: Array) -> None:
        if X.shape[1] > state.prototypes.shape[1]:
            state.prototypes = widened(state.prototypes, X.shape[1])
        start = 0
        for row in self._first_examples(state, codes, w):
            self._move(state, X[start:row], codes[start:row], w[start:row])
            state.prototypes = np.concatenate([state.prototypes, X[row : row + 1]])
            state.owner = np.append(state.owner, codes[row])
            state.rate = np.append(state.rate, float(self.eta))
            start = row + 1
        self._move(state, X[start:], codes[start:], w[start:])

    def _first_examples(self, state: _Prototypes, codes: NDArray[np.int64], w: Array) -> list[int]:
        """The rows that become prototypes: the first examples of each class."""
        wanted = int(self.prototypes_per_class)
        there = np.bincount(state.owner, minlength=int(codes.max()) + 1)
        rows: list[int] = []
        for code in np.unique(codes):
            if there[code] < wanted:
                rows += np.flatnonzero((codes == code) & (w > 0))[: wanted - there[code]].tolist()
        return sorted(rows)

    def _move(self, state: _Prototypes, X: Array, codes: NDArray[np.int64], w: Array) -> None:
        if len(X) and len(state.owner):
            arrays = (state.prototypes, state.owner, state.rate)
            _native.lvq_learn(
                np.ascontiguousarray(X), codes, w, *arrays, self.variant, float(self.eta), float(self.window)
            )

    def _scores(self, state: _Prototypes, X: Array) -> Array:
        """Minus the distance to the nearest prototype of each class."""
        out = np.full((len(X), len(state.classes)), -np.inf)
        if len(state.owner):
            distance = np.sqrt(squared_distances(X, state.prototypes))
            for code in np.unique(state.owner):
                out[:, code] = -distance[:, state.owner == code].min(axis=1)
        return out

    def _fitting(self, state: _Prototypes, X: Array) -> Array:
        columns = state.prototypes.shape[1]
        return np.ascontiguousarray(X[:, :columns]) if X.shape[1] >= columns else widened(X, columns)

    @property
    def prototypes_(self) -> Array:
        """The prototypes, one in each row."""
        return np.array(self._learned().prototypes)

    @property
    def prototype_classes_(self) -> NDArray[Any]:
        """The class of each prototype."""
        return np.asarray(self.classes_[self._learned().owner])
