"""The façade of a reduction that is a classifier or a regressor, like its base."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score

from ..estimators.tables import as_classifier, as_regressor, read_targets
from .facade import ReductionEstimator
from .learners import is_regressor

__all__ = ["EitherEstimator"]


class EitherEstimator(ReductionEstimator):
    """One `EitherTask` inside."""

    _divides = True

    def _predicts_numbers(self) -> bool:
        return is_regressor(self.base)

    def _answers(self, y: Any, rows: int) -> Any:
        return read_targets(y, rows) if self._predicts_numbers() else super()._answers(y, rows)

    def _classes_of(self, answers: Any) -> list[Any] | None:
        return None if self._predicts_numbers() else super()._classes_of(answers)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row. A classifier's first call must declare the classes."""
        if self._predicts_numbers():
            with self._all_or_nothing():
                table = self._validated(X, reset=self._core is None)
                targets = self._answers(y, table.rows)
                importance = self._weights_of(sample_weight, table)
                self._core = self._core or self._new_core()
                self._learn(self._core, table, targets, importance, None)
            return self
        return super().partial_fit(X, y, classes, sample_weight)

    def predict(self, X: Any) -> NDArray[Any]:
        if not self._predicts_numbers():
            return super().predict(X)
        core, rows = self._core_and_rows(X)
        return core.score_rows(rows)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy; R² where the base is a regressor."""
        measure = r2_score if self._predicts_numbers() else accuracy_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        return as_regressor(tags) if self._predicts_numbers() else as_classifier(tags)
