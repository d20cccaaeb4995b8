"""Class weights: the importance of an example depends on its label. For every classifier that takes tables."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from ..errors import LabelError, ParameterError
from ..rows.batches import Batch
from ..scheme.rounds import Array
from .tables import TableEstimator

__all__ = ["WeightedClasses"]


class WeightedClasses(TableEstimator):
    """`class_weight`: label → importance, or "balanced" (`fit` only)."""

    class_weight: dict[Any, float] | str | None

    def _importance(
        self, sample_weight: Any, table: Batch, labels: NDArray[Any], classes: NDArray[Any], *, whole: bool = False
    ) -> Array | None:
        weights = self._weights_of(sample_weight, table, whole=whole)
        if self.class_weight is None:
            return weights
        if self.class_weight == "balanced":
            per_class = compute_class_weight("balanced", classes=classes, y=labels)
            by_class = per_class[np.searchsorted(classes, labels)]
        else:
            by_class = self._class_weights(labels.tolist())
        return np.asarray(by_class, dtype=np.float64) * (1.0 if weights is None else weights)

    def _weighted(self, y: Any, importance: Any) -> Any:
        if self.class_weight is None:
            return importance
        return self._class_weights(list(y)) * (1.0 if importance is None else np.asarray(importance))

    def _class_weights(self, labels: list[Any]) -> Array:
        if not isinstance(self.class_weight, dict):
            raise ParameterError(f"class_weight={self.class_weight!r}: expected None, 'balanced' (fit only) or a dict")
        for label, weight in self.class_weight.items():
            if not isinstance(weight, Real) or not 0 <= weight < math.inf:
                raise ParameterError(f"class_weight[{label!r}]={weight!r}: expected a finite number >= 0")
        try:
            return np.array([float(self.class_weight.get(label, 1.0)) for label in labels])
        except TypeError:
            raise LabelError("a label must be hashable") from None
