"""A read-only view of the weights of a linear model, for decoders of structured answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..models.linear import LinearModel
from ..scheme.readouts import Last
from ..scheme.rounds import Array

__all__ = ["WeightView"]


class WeightView:
    """The weights of a model by feature name; unknown names have weight 0.

    With readout="average" these are the averaged weights, or with `last` the current ones.
    """

    def __init__(self, model: LinearModel, *, last: bool = False) -> None:
        self._model = model
        # Known limit: the average readout answers for averages only, so the current weights are copied whole.
        copied = last and not isinstance(model.readout, Last)
        self._table: Array | None = model.weights(last=True)[0][0] if copied else None

    def many(self, names: list[str]) -> Array:
        """The weights of many names in one call."""
        at = self._model.find(names)
        known = at >= 0
        out = np.zeros(len(at))
        out[known] = self._model.weights_at(at[known]) if self._table is None else self._table[at[known]]
        return out

    def get(self, name: str | int, default: float = 0.0) -> float:
        [at] = self._model.find([name])
        if at < 0:
            return default
        return float(self._model.weights_at(np.array([at]))[0] if self._table is None else self._table[at])

    def __getitem__(self, name: str | int) -> float:
        return self.get(name)

    def dot(self, features: Mapping[Any, float]) -> float:
        """⟨w, features⟩."""
        with np.errstate(over="ignore", invalid="ignore"):  # the scores overflow, so the round will be refused
            return float(np.sum(self.many(list(features)) * list(features.values())))
