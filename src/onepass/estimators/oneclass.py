"""`OneClass`: finds anomalies without labels (Crammer et al. 2006, section 6: uniclass prediction)."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from ..learner import LearnerTraits
from ..models.linear import LinearModel
from ..models.options import FeatureLimitOptions, OneClassOptions, RuleOptions, shared_options
from ..scheme.rounds import Array
from .fit_options import PassOptions
from .linear import LinearWeights

__all__ = ["OneClass"]


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class OneClass(
    OutlierMixin,  # type: ignore[misc]
    LinearWeights,
    PassOptions,
    FeatureLimitOptions,
    OneClassOptions,
    RuleOptions,
):
    """A centre w moves by a Passive-Aggressive step towards every x whose distance is larger than `radius`.

    `score_samples` is −‖x − w‖, `decision_function` radius − ‖x − w‖ (below 0 is an outlier), `predict` +1 or −1.
    """

    _answers_with = "outlier"

    @property
    def traits(self) -> LearnerTraits:
        return dataclasses.replace(super().traits, supervised=False, verbs=frozenset({"score_one", "explain_one"}))

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn afresh from a table; y is ignored."""
        with self._all_or_nothing():
            table = self._validated(X, reset=True)
            model = self._begin()
            self._passes(model, table, np.zeros(table.rows), self._weights_of(sample_weight, table, whole=True))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row."""
        with self._all_or_nothing():
            model = self._model
            table = self._validated(X, reset=model is None)
            (model or self._begin()).learn_many(table, None, self._weights_of(sample_weight, table))
        return self

    def learn_one(self, x: Any, y: Any = None, importance: float = 1.0) -> None:
        super().learn_one(x, None, importance)

    def learn_many(self, X: Any, y: Any = None, importance: Any = None) -> None:
        super().learn_many(X, None, importance)

    def score_samples(self, X: Any) -> Array:
        """−‖x − w‖ of every row."""
        model = self._fitted()
        table = self._validated(X, reset=False) if hasattr(self, "n_features_in_") else X
        return -model.distances(table)

    def decision_function(self, X: Any) -> Array:
        return self.radius + self.score_samples(X)

    def predict(self, X: Any) -> NDArray[np.int64]:
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def score_one(self, x: Any) -> float:
        """‖x − w‖ − radius: above 0 is an anomaly."""
        model = self._model or self._new_model()
        return float(model.score_one(x))

    def predict_one(self, x: Any) -> int:
        return 1 if self.score_one(x) <= 0 else -1

    @property
    def center_(self) -> Array:
        return np.asarray(self._learned().weights()[0][0])

    @property
    def offset_(self) -> float:
        """decision_function is score_samples minus this."""
        return -float(self.radius)

    def _new_model(self, classes: list[Any] | None = None) -> LinearModel:
        return LinearModel(**shared_options(self, LinearModel), task="oneclass")
